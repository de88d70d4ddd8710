//! A file's call frame information, by address.
//!
//! ```text
//!   address -> table (.eh_frame, .debug_frame) -> index -> function's entry -> row: where the caller's
//!                                                                              registers are
//! ```
//!
//! framehop reads one of the tables of 64-bit files itself, and applies the simple rows. [`Row`] applies all
//! others.

use gimli::{
    AArch64, BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, FrameDescriptionEntry, LittleEndian,
    RegisterRule, UnwindContext, UnwindSection,
};

use super::arch::Arch;
use super::row::Row;
use super::section::{CallFrameSection, SharedBytes, debug_frame, eh_frame, frame_pointer};

/// The call frame information of a file.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) arch: Arch,
    pub(super) bases: BaseAddresses,
    /// The tables, in the order in which an address is looked up. For 64-bit files, framehop reads the first.
    pub(super) tables: Vec<FrameTable>,
    /// Whether any entry mentions the frame-pointer register. Go's entries never do, even though all Go
    /// functions have a frame pointer.
    pub(super) tell_frame_pointers: bool,
}

/// A section with call frame information.
#[derive(Debug)]
pub(super) struct FrameTable {
    pub(super) section: CallFrameSection,
    pub(super) index: EntryIndex,
}

/// A function's entry.
type FunctionEntry<'a> = FrameDescriptionEntry<EndianSlice<'a, LittleEndian>>;

/// Locates each function's entry in its section.
#[derive(Debug)]
pub(super) enum EntryIndex {
    /// Start addresses of functions and the offsets of their entries, sorted by start.
    List(Vec<(u64, usize)>),
    /// The linker's index (`.eh_frame_hdr`), which [`UnwindTables`](super::UnwindTables) has verified, with
    /// the file addresses of the index and of `.eh_frame`.
    Linkers { header: SharedBytes, address: u64, eh_frame: u64 },
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

impl FrameTable {
    /// Returns the entry of the function at a file address.
    fn function(&self, arch: Arch, bases: &BaseAddresses, address: u64) -> Option<FunctionEntry<'_>> {
        let place = self.index.place(address)?;
        let function = match &self.section {
            CallFrameSection::Eh(bytes) => {
                eh_frame(bytes, arch).fde_from_offset(bases, place.into(), EhFrame::cie_from_offset)
            }
            CallFrameSection::Debug(bytes) => {
                debug_frame(bytes, arch).fde_from_offset(bases, place.into(), DebugFrame::cie_from_offset)
            }
        };
        function.ok().filter(|function| function.contains(address))
    }
}

impl Entries {
    /// Returns the row for a file address; `None` if no table has one.
    pub(super) fn row<'a>(&'a self, address: u64, context: &'a mut UnwindContext<usize>) -> Option<Row<'a>> {
        let function =
            |table: &'a FrameTable| Some((table, table.function(self.arch, &self.bases, address)?));
        let (table, function) = self.tables.iter().find_map(function)?;
        let row = match &table.section {
            CallFrameSection::Eh(bytes) => {
                let section = eh_frame(bytes, self.arch);
                function.unwind_info_for_address(&section, &self.bases, context, address)
            }
            CallFrameSection::Debug(bytes) => {
                let section = debug_frame(bytes, self.arch);
                function.unwind_info_for_address(&section, &self.bases, context, address)
            }
        };
        Some(Row {
            arch: self.arch,
            rules: row.ok()?,
            section: &table.section,
            is_in_first_table: std::ptr::eq(table, &raw const self.tables[0]),
            encoding: function.cie().encoding(),
            return_address: function.cie().return_address_register(),
            is_signal_frame: function.is_signal_trampoline(),
        })
    }

    /// Returns the content of the frame-pointer register at an address; `None` if the tables do not specify
    /// it.
    pub(super) fn frame_pointer(&self, address: u64) -> Option<FramePointer> {
        if !self.tell_frame_pointers {
            return None;
        }
        let mut context = UnwindContext::new();
        let row = self.row(address, &mut context)?;
        let register = frame_pointer(self.arch);
        if matches!(row.rules.cfa(), CfaRule::RegisterAndOffset { register: base, .. } if *base == register) {
            return Some(FramePointer::Own);
        }
        Some(match row.rules.register(register) {
            None | Some(RegisterRule::SameValue) => FramePointer::Callers,
            // arm64 code saves both registers as a pair, the frame record, and computes the CFA from the
            // stack pointer.
            Some(RegisterRule::Offset(at))
                if self.arch == Arch::Aarch64
                    && row.rules.register(AArch64::X30)
                        == Some(RegisterRule::Offset(at.saturating_add(8))) =>
            {
                FramePointer::Own
            }
            // In functions that align their stack, the rule is an expression: the register was saved at the
            // address that it now contains.
            Some(RegisterRule::Expression(saved)) => match row.expression(&saved) {
                Some(expression) if expression.0.slice() == [DW_OP_BREG0 + register.0 as u8, 0] => {
                    FramePointer::Own
                }
                _ => FramePointer::Other,
            },
            Some(_) => FramePointer::Other,
        })
    }
}

const DW_OP_BREG0: u8 = gimli::constants::DW_OP_breg0.0;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A `.debug_frame` with a function at 0x1000 that has these rules.
    pub(in crate::unwind) fn with_rules(arch: Arch, rules: &[u8]) -> Entries {
        let entry = |head: &[u8], rest: &[u8]| {
            let mut body = [head, rest].concat();
            body.resize(body.len().next_multiple_of(8) + 4, 0);
            [&(body.len() as u32).to_le_bytes()[..], &body].concat()
        };
        // Version 1, no augmentation, factors 1 and -8. x86-64: return address 16; cfa is rsp+8, rip at
        // cfa-8. aarch64: return address 30; cfa is sp+0.
        let rest: &[u8] = match arch {
            Arch::Aarch64 => &[1, 0, 1, 0x78, 30, 0x0c, 31, 0],
            _ => &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1],
        };
        let common = entry(&u32::MAX.to_le_bytes(), rest);
        let words = [0x1000u64, 0x100].map(u64::to_le_bytes).concat();
        let function = entry(&[&0u32.to_le_bytes()[..], &words].concat(), rules);
        let index = EntryIndex::List(vec![(0x1000, common.len())]);
        let section = CallFrameSection::Debug([common, function].concat().into());
        let tables = vec![FrameTable { section, index }];
        Entries { arch, bases: BaseAddresses::default(), tables, tell_frame_pointers: true }
    }

    /// A function of x86-64 at 0x1000.
    ///
    /// ```text
    ///   1000  rsp+8                        just called: the register is the caller's
    ///   1001  rsp+16, rbp at cfa-16        it is saved, and may hold any value
    ///   1004  rbp+16, rbp at cfa-16        it points to the record
    ///   1010  rbp by expression (rbp+0)    the same in a function that aligns its stack
    ///   1020  rbp by expression (rbp+8)
    /// ```
    fn entries(tell_frame_pointers: bool) -> Entries {
        let rules = [
            &[0x41, 0x0e, 16, 0x86, 2][..],
            &[0x43, 0x0d, 6],
            &[0x4c, 0x0c, 7, 16, 0x10, 6, 2, 0x76, 0],
            &[0x50, 0x10, 6, 2, 0x76, 8],
        ];
        Entries { tell_frame_pointers, ..with_rules(Arch::X86_64, &rules.concat()) }
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
        let header: SharedBytes = [&[0; INDEX_HEADER][..], &table].concat().into();
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
