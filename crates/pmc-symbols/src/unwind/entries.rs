//! A file's call frame information, by address.
//!
//! ```text
//!   address -> index -> place of the function's entry -> row: where the caller's frame and registers are
//! ```
//!
//! framehop unwinds 64-bit stacks and reads these sections itself. For 64-bit files, only
//! [`Entries::frame_pointer`] is used, which shows whether the kernel's frame-pointer chain is reliable.

use std::sync::Arc;

use gimli::{
    AArch64, BaseAddresses, CfaRule, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, LittleEndian,
    Reader, Register, RegisterRule, Section, UnwindContext, UnwindOffset, UnwindSection, X86, X86_64,
};

use super::arch::Arch;

/// The call frame information of a file.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) arch: Arch,
    pub(super) eh_frame: Option<Arc<[u8]>>,
    pub(super) debug_frame: Option<Arc<[u8]>>,
    pub(super) bases: BaseAddresses,
    pub(super) index: EntryIndex,
    /// Whether any entry mentions the frame-pointer register. Go's entries never do, even though all Go
    /// functions have a frame pointer.
    pub(super) tell_frame_pointers: bool,
}

/// Locates each function's entry in its section.
#[derive(Debug)]
pub(super) enum EntryIndex {
    /// Start addresses of functions and the offsets of their entries, sorted by start.
    List(Vec<(u64, usize)>),
    /// The linker's index (`.eh_frame_hdr`), which [`UnwindTables`](super::UnwindTables) has verified, with
    /// the file addresses of the index and of `.eh_frame`.
    Linkers { header: Arc<[u8]>, address: u64, eh_frame: u64 },
}

/// Size of the header before the linker's table. The table contains pairs of function and entry, 4 bytes
/// each.
const INDEX_HEADER: usize = 12;

/// The content of the frame-pointer register in a function, according to its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FramePointer {
    /// The address of this function's frame record: the caller's frame pointer, then the return address.
    Own,
    /// The caller's frame pointer, unchanged.
    Callers,
    /// Some other value, because the function uses it as a general-purpose register.
    Other,
}

impl EntryIndex {
    /// Memory used in addition to the file's sections, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::List(functions) => size_of_val(functions.as_slice()),
            Self::Linkers { .. } => 0,
        }
    }

    /// Returns the offset of the entry for the last function that starts at or before this address.
    pub(super) fn place(&self, address: u64) -> Option<usize> {
        match self {
            Self::List(functions) => {
                let before = functions.partition_point(|(start, _)| *start <= address);
                Some(functions.get(before.checked_sub(1)?)?.1)
            }
            Self::Linkers { header, address: index, eh_frame } => {
                let (table, _) = header.get(INDEX_HEADER..)?.as_chunks::<8>();
                let from = |[a, b, c, d]: [u8; 4]| {
                    index.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into())
                };
                let function = |[a, b, c, d, ..]: &[u8; 8]| from([*a, *b, *c, *d]);
                let entry = |[.., a, b, c, d]: &[u8; 8]| from([*a, *b, *c, *d]);
                let before = table.partition_point(|pair| function(pair) <= address);
                let place = entry(table.get(before.checked_sub(1)?)?).wrapping_sub(*eh_frame);
                usize::try_from(place).ok()
            }
        }
    }
}

impl Entries {
    /// Returns the content of the frame-pointer register at an address; `None` if the tables do not specify
    /// it.
    pub(super) fn frame_pointer(&self, address: u64) -> Option<FramePointer> {
        let place = self.index.place(address).filter(|_| self.tell_frame_pointers)?;
        match (&self.eh_frame, &self.debug_frame) {
            (Some(bytes), _) => self.by_row(&eh_frame(bytes, self.arch), place, address),
            (_, Some(bytes)) => self.by_row(&debug_frame(bytes, self.arch), place, address),
            _ => None,
        }
    }

    fn by_row<'a, S>(&self, section: &S, place: usize, address: u64) -> Option<FramePointer>
    where
        S: UnwindSection<EndianSlice<'a, LittleEndian>>,
        S::Offset: gimli::UnwindOffset<usize>,
    {
        let entry = section.fde_from_offset(&self.bases, S::Offset::from(place), S::cie_from_offset).ok()?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(section, &self.bases, &mut context, address).ok()?;
        let register = frame_pointer(self.arch);
        if matches!(row.cfa(), CfaRule::RegisterAndOffset { register: base, .. } if *base == register) {
            return Some(FramePointer::Own);
        }
        Some(match row.register(register) {
            None | Some(RegisterRule::SameValue) => FramePointer::Callers,
            // arm64 code saves both registers as a pair, the frame record, and computes the CFA from the
            // stack pointer.
            Some(RegisterRule::Offset(at))
                if self.arch == Arch::Aarch64
                    && row.register(AArch64::X30) == Some(RegisterRule::Offset(at.saturating_add(8))) =>
            {
                FramePointer::Own
            }
            // In functions that align their stack, the rule is an expression: the register was saved at the
            // address that it now contains.
            Some(RegisterRule::Expression(saved)) => match saved.get(section) {
                Ok(expression) if expression.0.slice() == [DW_OP_BREG0 + register.0 as u8, 0] => {
                    FramePointer::Own
                }
                _ => FramePointer::Other,
            },
            Some(_) => FramePointer::Other,
        })
    }
}

const DW_OP_BREG0: u8 = gimli::constants::DW_OP_breg0.0;

/// Returns the number of the frame-pointer register.
pub(super) fn frame_pointer(arch: Arch) -> Register {
    match arch {
        Arch::X86_64 => X86_64::RBP,
        Arch::X86 => X86::EBP,
        Arch::Aarch64 => AArch64::X29,
    }
}

fn address_size(arch: Arch) -> u8 {
    if arch == Arch::X86 { 4 } else { 8 }
}

/// Maximum size of a CIE, which is read again for each function that refers to it. Those of compilers take
/// less than 100 bytes.
const LONGEST_CIE: usize = 1 << 10;
/// The error for a longer CIE.
pub(crate) const LONG_CIE: gimli::Error = gimli::Error::UnsupportedOffset;

/// Parses the CIE at an offset of a section.
///
/// # Errors
/// Fails if it is malformed or too long.
pub(crate) fn short_cie<R, S>(
    section: &S,
    bases: &BaseAddresses,
    at: S::Offset,
) -> gimli::Result<CommonInformationEntry<R>>
where
    R: Reader<Offset = usize>,
    S: UnwindSection<R> + Section<R>,
    S::Offset: UnwindOffset<usize>,
{
    let mut bytes = section.reader().clone();
    bytes.skip(UnwindOffset::into(at))?;
    match bytes.read_initial_length()? {
        (..=LONGEST_CIE, _) => S::cie_from_offset(section, bases, at),
        _ => Err(LONG_CIE),
    }
}

/// Parses these bytes as `.eh_frame`.
pub(super) fn eh_frame(bytes: &[u8], arch: Arch) -> EhFrame<EndianSlice<'_, LittleEndian>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(address_size(arch));
    section
}

/// Parses these bytes as `.debug_frame`.
pub(super) fn debug_frame(bytes: &[u8], arch: Arch) -> DebugFrame<EndianSlice<'_, LittleEndian>> {
    let mut section = DebugFrame::new(bytes, LittleEndian);
    section.set_address_size(address_size(arch));
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `.debug_frame` of x86-64 with a function at 0x1000, and the offset of its entry.
    ///
    /// ```text
    ///   1000  rsp+8                        just called: the register is the caller's
    ///   1001  rsp+16, rbp at cfa-16        it is saved, and may hold any value
    ///   1004  rbp+16, rbp at cfa-16        it points to the record
    ///   1010  rbp by expression (rbp+0)    the same in a function that aligns its stack
    ///   1020  rbp by expression (rbp+8)
    /// ```
    fn entries(tell_frame_pointers: bool) -> Entries {
        let entry = |head: &[u8], rest: &[u8]| {
            let mut body = [head, rest].concat();
            body.resize(body.len().next_multiple_of(8) + 4, 0);
            [&(body.len() as u32).to_le_bytes()[..], &body].concat()
        };
        // Version 1, no augmentation, factors 1 and -8, return address 16; cfa is rsp+8, rip at cfa-8.
        let common = entry(&u32::MAX.to_le_bytes(), &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]);
        let rules = [
            &[0x41, 0x0e, 16, 0x86, 2][..],
            &[0x43, 0x0d, 6],
            &[0x4c, 0x0c, 7, 16, 0x10, 6, 2, 0x76, 0],
            &[0x50, 0x10, 6, 2, 0x76, 8],
        ];
        let words = [0x1000u64, 0x100].map(u64::to_le_bytes).concat();
        let function = entry(&[&0u32.to_le_bytes()[..], &words].concat(), &rules.concat());
        let index = EntryIndex::List(vec![(0x1000, common.len())]);
        let debug_frame = Some([common, function].concat().into());
        let bases = BaseAddresses::default();
        Entries { arch: Arch::X86_64, eh_frame: None, debug_frame, bases, index, tell_frame_pointers }
    }

    #[test]
    fn unwind_rows_describe_the_frame_pointer() {
        use FramePointer::{Callers, Other, Own};
        let entries = entries(true);
        let at = [0xfff, 0x1000, 0x1001, 0x1004, 0x1010, 0x1020, 0x1100];
        let want = [None, Some(Callers), Some(Other), Some(Own), Some(Own), Some(Other), None];
        assert_eq!(at.map(|address| entries.frame_pointer(address)), want);
    }

    #[test]
    fn tables_without_the_register_give_no_rule() {
        assert_eq!(entries(false).frame_pointer(0x1004), None);
    }

    #[test]
    fn eh_frame_hdr_finds_the_last_function_before_an_address() {
        let pair = |function: i32, entry: i32| [function.to_le_bytes(), entry.to_le_bytes()].concat();
        // The index is at 0x5000, `.eh_frame` at 0x6000.
        let table = [pair(-0x4000, 0x1018), pair(-0x3000, 0x1040)].concat();
        let header: Arc<[u8]> = [&[0; INDEX_HEADER][..], &table].concat().into();
        let index = EntryIndex::Linkers { header, address: 0x5000, eh_frame: 0x6000 };
        let at = [0xfff, 0x1000, 0x1fff, 0x2000, u64::MAX];
        assert_eq!(
            at.map(|address| index.place(address)),
            [None, Some(0x18), Some(0x18), Some(0x40), Some(0x40)]
        );
        let list = EntryIndex::List(vec![(0x1000, 0x18), (0x2000, 0x40)]);
        assert_eq!(at.map(|address| list.place(address)), at.map(|address| index.place(address)));
    }
}
