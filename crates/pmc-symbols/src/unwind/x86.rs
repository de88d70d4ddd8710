//! Unwinding for 32-bit x86, which framehop does not support: applies the rules in a file's call frame
//! information.
//!
//! ```text
//!   address -> entry (by function) -> row -> where the caller's esp is (CFA), where eip, ebp, … were kept
//! ```
//!
//! Missing entries are handled as in framehop on x86-64: without tables, the frame pointer is followed; in a
//! gap in the tables, a sampled function is assumed to have just been entered, and other functions are
//! assumed to have a frame pointer.

use framehop::FrameAddress;
use gimli::{UnwindContext, X86};

use super::callers::Caller;
use super::entries::Entries;
use super::row::{CallerValue, FrameValues};

/// Registers by DWARF number: eax, ecx, edx, ebx, esp, ebp, esi, edi, eip.
#[derive(Debug, Clone, Copy)]
pub(super) struct DwarfRegisters([u32; 9]);

impl DwarfRegisters {
    /// Returns the sampled registers; `others` is indexed by DWARF number.
    pub(super) fn new(ip: u64, sp: u64, fp: u64, others: &[u64]) -> Self {
        let mut all = [0; 9];
        for (register, value) in all.iter_mut().zip(others) {
            *register = *value as u32;
        }
        for (register, value) in [(X86::ESP, sp), (X86::EBP, fp), (X86::RA, ip)] {
            all[usize::from(register.0)] = value as u32;
        }
        Self(all)
    }

    fn get(&self, register: gimli::Register) -> Option<u32> {
        self.0.get(usize::from(register.0)).copied()
    }

    pub(super) fn ip(&self) -> u32 {
        self.0[usize::from(X86::RA.0)]
    }

    pub(super) fn sp(&self) -> u32 {
        self.0[usize::from(X86::ESP.0)]
    }

    pub(super) fn fp(&self) -> u32 {
        self.0[usize::from(X86::EBP.0)]
    }

    /// Returns the caller's registers, if the saved frame pointer and the return address are at `fp`.
    fn by_frame_pointer(&self, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Result<Option<Self>, ()> {
        if self.fp() == 0 {
            return Ok(None);
        }
        let sp = self.fp().checked_add(8).ok_or(())?;
        let fp = read(self.fp().into())? as u32;
        let mut caller = self.returned(sp, read)?;
        caller.0[usize::from(X86::EBP.0)] = fp;
        Ok(Some(caller))
    }

    /// Returns the registers after a return through the word below this stack pointer.
    fn returned(&self, sp: u32, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Result<Self, ()> {
        let mut caller = *self;
        caller.0[usize::from(X86::RA.0)] = read(u64::from(sp.checked_sub(4).ok_or(())?))? as u32;
        caller.0[usize::from(X86::ESP.0)] = sp;
        Ok(caller)
    }
}

/// Unwinds to the caller and returns it; `None` at the root. `entries` contains the entries
/// of the file mapped at the address, and the difference between mapped addresses and addresses in the file.
///
/// # Errors
/// Fails if the rules or the frame pointer do not lead to a caller.
pub(super) fn unwind_frame(
    entries: Option<(&Entries, u64)>,
    frame: FrameAddress,
    registers: &mut DwarfRegisters,
    context: &mut UnwindContext<usize>,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<Caller>, ()> {
    let is_exact = matches!(frame, FrameAddress::InstructionPointer(_));
    let mut is_interrupted = false;
    let caller = match entries {
        None => registers.by_frame_pointer(read)?,
        Some((entries, slide)) => {
            let address = frame.address_for_lookup().wrapping_sub(slide);
            match entries.caller(address, registers, context, read)? {
                TableLookup::Caller(caller, is_signal_frame) => {
                    is_interrupted = is_signal_frame;
                    caller
                }
                TableLookup::Gap if is_exact => {
                    Some(registers.returned(registers.sp().checked_add(4).ok_or(())?, read)?)
                }
                TableLookup::Gap => registers.by_frame_pointer(read)?,
            }
        }
    };
    let Some(caller) = caller else { return Ok(None) };
    // A return pops at least the return address, unless the function has kept it in a register. A signal
    // handler may have a separate stack.
    let is_further_out = caller.sp() > registers.sp()
        || (is_exact && caller.sp() == registers.sp() && caller.ip() != registers.ip());
    if !is_further_out && !is_interrupted {
        return Err(());
    }
    *registers = caller;
    Ok(Some(Caller { address: caller.ip().into(), is_interrupted }))
}

/// The result of looking up an address in the tables.
enum TableLookup {
    /// The caller's registers, or `None` at the root, and whether a signal interrupted the caller.
    Caller(Option<DwarfRegisters>, bool),
    /// The tables have no entry for the address.
    Gap,
}

/// A frame with its registers and the stack copy.
struct FullFrame<'a, R> {
    registers: &'a DwarfRegisters,
    read: &'a mut R,
}

impl<R: FnMut(u64) -> Result<u64, ()>> FrameValues for FullFrame<'_, R> {
    fn register(&mut self, register: gimli::Register) -> Option<u64> {
        self.registers.get(register).map(u64::from)
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        (self.read)(address).ok()
    }
}

impl Entries {
    fn caller(
        &self,
        address: u64,
        registers: &DwarfRegisters,
        context: &mut UnwindContext<usize>,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<TableLookup, ()> {
        let Some(row) = self.row(address, context) else { return Ok(TableLookup::Gap) };
        let root = Ok(TableLookup::Caller(None, false));
        if row.is_root() {
            return root;
        }
        let mut frame = FullFrame { registers, read };
        let cfa = row.cfa(&mut frame).ok_or(())?;
        let mut caller = *registers;
        // If a register's save slot is unreadable because an epilogue has already popped it, the register
        // keeps its value.
        for number in 0..X86::RA.0 {
            let register = gimli::Register(number);
            match row.caller_value(register, cfa, &mut frame) {
                Some(CallerValue::Known(value)) => caller.0[usize::from(number)] = value as u32,
                _ if register == X86::ESP => caller.0[usize::from(number)] = cfa as u32,
                _ => {}
            }
        }
        let ip = match row.caller_value(row.return_address, cfa, &mut frame).ok_or(())? {
            CallerValue::Known(ip) => ip as u32,
            CallerValue::Same => registers.ip(),
            CallerValue::Undefined => return root,
        };
        caller.0[usize::from(X86::RA.0)] = ip;
        Ok(TableLookup::Caller(Some(caller), row.is_signal_frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::Arch;
    use crate::unwind::entries::{EntryIndex, FrameTable};
    use crate::unwind::section::CallFrameSection;

    /// A function as compiled by gcc, at 0x1000, and a root function at 0x1100.
    ///
    /// ```text
    ///   1000  esp+4                         just called
    ///   1001  esp+8,  ebp at cfa-8          push %ebp
    ///   1003  ebp+8,  ebp at cfa-8          mov %esp,%ebp
    ///   1010  ecx+0,  ebp by expression     of the form that aligns the stack
    ///   1020  at *(ebp-4)
    ///   1030  esp+8,  ebx in edi, esi cfa-8 itself, edx at an address that is computed
    /// ```
    fn section() -> Vec<u8> {
        let entry = |head: &[u32], rest: &[u8]| {
            let mut body: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
            body.extend(rest);
            body.resize(body.len().next_multiple_of(4), 0);
            [&(body.len() as u32).to_le_bytes()[..], &body].concat()
        };
        // Version 1, no augmentation, factors 1 and -4, return address 8; cfa is esp+4, eip at cfa-4.
        let common = entry(&[!0], &[1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1]);
        let rules = [
            &[0x41, 0x0e, 8, 0x85, 2][..],
            &[0x42, 0x0d, 5],
            &[0x4d, 0x0c, 1, 0, 0x10, 5, 2, 0x75, 0],
            &[0x50, 0x0f, 3, 0x75, 0x7c, 0x06],
            &[0x50, 0x0c, 4, 8, 0x09, 3, 7, 0x14, 6, 2, 0x10, 2, 2, 0x23, 4],
        ];
        let called = entry(&[0, 0x1000, 0x100], &rules.concat());
        let root = entry(&[0, 0x1100, 0x100], &[0x07, 8]);
        [common, called, root].concat()
    }

    fn entries(section: Vec<u8>) -> Entries {
        let functions = functions(&section);
        entries_of(section, functions)
    }

    /// Start addresses, and offsets of the entries.
    fn functions(section: &[u8]) -> Vec<(u64, usize)> {
        let length = |at: usize| 4 + u32::from_le_bytes(section[at..at + 4].try_into().unwrap()) as usize;
        let first = length(0);
        vec![(0x1000, first), (0x1100, first + length(first))]
    }

    const SP: u32 = 0xffff_d000;

    /// Words on the stack, starting at [`SP`].
    const STACK: [u32; 8] = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, SP + 24, 0x88];

    fn read(address: u64) -> Result<u64, ()> {
        let at = address.checked_sub(SP.into()).ok_or(())? / 4;
        STACK.get(at as usize).map(|word| u64::from(*word)).ok_or(())
    }

    /// The sampled values of eax, ecx, edx, ebx, esp, ebp, esi, edi, eip.
    const SAMPLED: [u32; 9] = [1, SP + 12, 3, 4, SP, SP + 8, 6, 7, 0];

    /// Returns the caller's registers at an address; `None` at the root.
    fn caller(entries: Option<&Entries>, frame: FrameAddress, fp: u32) -> Result<Option<[u32; 9]>, ()> {
        let mut registers = DwarfRegisters(SAMPLED);
        registers.0[5] = fp;
        registers.0[8] = frame.address() as u32;
        let entries = entries.map(|entries| (entries, 0u64.wrapping_sub(0x4000)));
        let next = unwind_frame(entries, frame, &mut registers, &mut UnwindContext::new(), &mut read)?;
        assert!(next.is_none_or(|caller| caller == Caller::returned_to(registers.ip().into())));
        Ok(next.map(|_| registers.0))
    }

    /// Returns the mapped address of the file address `at`, which is lower by 0x4000.
    fn mapped(at: u64) -> FrameAddress {
        FrameAddress::InstructionPointer(at.wrapping_sub(0x4000))
    }

    #[test]
    fn rows_describe_the_caller() {
        let entries = entries(section());
        // ebx, esp, ebp, esi, eip, edx.
        let at = |address: u64, fp: u32| {
            let all = caller(Some(&entries), mapped(address), fp).unwrap();
            all.map(|all| [all[3], all[4], all[5], all[6], all[8], all[2]])
        };
        assert_eq!(at(0x1000, 5), Some([4, SP + 4, 5, 6, 0x11, 3]));
        assert_eq!(at(0x1002, 5), Some([4, SP + 8, 0x11, 6, 0x22, 3]));
        assert_eq!(at(0x1003, SP + 8), Some([4, SP + 16, 0x33, 6, 0x44, 3]));
        // ecx+0; the saved value is at the address in ebp.
        assert_eq!(at(0x1010, SP + 4), Some([4, SP + 12, 0x22, 6, 0x33, 3]));
        assert_eq!(at(0x1020, SP + 28), Some([4, SP + 24, 0x88, 6, 0x66, 3]));
        // edx is at cfa+4.
        assert_eq!(at(0x1030, SP + 28), Some([7, SP + 8, 0x88, SP, 0x22, 0x44]));
        // The tables mark this function as the root.
        assert_eq!(at(0x1100, 5), None);
    }

    #[test]
    fn without_rules_frame_pointers_are_used() {
        let (entries, ip) = (entries(section()), FrameAddress::from_instruction_pointer(0x4000_0000));
        let returned = FrameAddress::from_return_address(0x4000_0000).unwrap();
        let at = |entries, frame, fp| caller(entries, frame, fp).map(|all| all.map(|a| (a[4], a[5], a[8])));
        let by_frame_pointer = Ok(Some((SP + 16, 0x33, 0x44)));
        assert_eq!(at(None, ip, SP + 8), by_frame_pointer);
        // In a gap in a file's tables, a sampled function is assumed to have just been entered.
        assert_eq!(at(Some(&entries), ip, SP + 8), Ok(Some((SP + 4, SP + 8, 0x11))));
        assert_eq!(at(Some(&entries), returned, SP + 8), by_frame_pointer);
        assert_eq!(at(None, ip, 0), Ok(None));
        // These frame pointers lead beyond the copy, below it, backwards, and past the end of memory.
        for fp in [SP + 28, SP + 4000, SP - 4, SP - 8, 8, u32::MAX, u32::MAX - 7] {
            assert_eq!(at(None, ip, fp), Err(()), "{fp:x}");
        }
    }

    #[test]
    fn hostile_rules_terminate_the_walk() {
        let whole = section();
        let known = functions(&whole);
        let mut ends = 0;
        for at in 0..whole.len() {
            for value in [0, 1, 4, 0x0f, 0x10, 0x2f, 0x7f, 0x80, 0xc3, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                let entries = entries_of(changed, known.clone());
                for address in [0x1000, 0x1003, 0x1010, 0x1020, 0x1030, 0x1100] {
                    ends += usize::from(caller(Some(&entries), mapped(address), SP + 8).is_err());
                }
            }
        }
        assert!(ends > 0);
        // Invalid offsets are gaps.
        let functions = vec![(0, 0), (0x1000, usize::MAX), (0x1100, whole.len())];
        let entries = entries_of(whole, functions);
        for address in [5, 0x1000, 0x1100] {
            let entered = caller(Some(&entries), mapped(address), SP + 8).unwrap().unwrap();
            assert_eq!((entered[4], entered[8]), (SP + 4, 0x11), "{address:x}");
        }
    }

    fn entries_of(section: Vec<u8>, functions: Vec<(u64, usize)>) -> Entries {
        let section = CallFrameSection::Debug(section.into());
        let tables = vec![FrameTable { section, index: EntryIndex::List(functions) }];
        Entries { arch: Arch::X86, bases: gimli::BaseAddresses::default(), tables, tell_frame_pointers: true }
    }
}
