//! Applies one row of call frame information: computes the caller's registers from those of a frame.
//!
//! ```text
//!   row:  CFA = rbp + 16, or an expression        the caller's stack pointer
//!         rip at CFA - 8, rbx in r12, ...         where the caller's registers are
//! ```
//!
//! Takes the values of registers and of words on the stack from a [`FrameValues`]. Supports all rules of
//! DWARF 5, section 6.4.1, for all architectures. Expressions may read registers and memory.

use gimli::{
    AArch64, CfaRule, Encoding, EndianSlice, EvaluationResult, Expression, LittleEndian, Register,
    RegisterRule, UnwindExpression, UnwindTableRow, Value, X86_64,
};

use super::arch::Arch;
use super::section::{CallFrameSection, debug_frame, eh_frame, frame_pointer};

/// Maximum number of operations in an expression. Compilers generate about three, glibc five.
const MOST_OPERATIONS: u32 = 100;

/// The registers and the stack of a frame.
pub(super) trait FrameValues {
    /// Returns the value of a register in the frame; `None` if unknown.
    fn register(&mut self, register: Register) -> Option<u64>;

    /// Reads a word of the stack; `None` beyond the copy.
    fn word(&mut self, address: u64) -> Option<u64>;
}

/// The value of a register in the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerValue {
    /// The register has this value.
    Known(u64),
    /// The frame does not change the register, or the tables do not mention it.
    Same,
    /// The value is lost. For the return address, the frame is the root.
    Undefined,
}

/// The rules that hold at an address.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) arch: Arch,
    pub(super) rules: &'a UnwindTableRow<usize>,
    pub(super) section: &'a CallFrameSection,
    /// Whether the row comes from the table that framehop reads.
    pub(super) is_in_first_table: bool,
    pub(super) encoding: Encoding,
    /// The register that holds the return address.
    pub(super) return_address: Register,
    /// Whether the kernel called the function, to return from a signal handler. The caller was then
    /// interrupted, and its address is not a return address.
    pub(super) is_signal_frame: bool,
}

impl<'a> Row<'a> {
    pub(super) fn expression(
        &self,
        expression: &UnwindExpression<usize>,
    ) -> Option<Expression<EndianSlice<'a, LittleEndian>>> {
        match self.section {
            CallFrameSection::Eh(bytes) => expression.get(&eh_frame(bytes, self.arch)).ok(),
            CallFrameSection::Debug(bytes) => expression.get(&debug_frame(bytes, self.arch)).ok(),
        }
    }

    /// Whether framehop can apply the row from its cache. For other rows, it knows only three registers and
    /// reads no memory; if it fails, it caches that the function has a frame pointer.
    pub(super) fn is_simple(&self) -> bool {
        let saved_at = |register| match self.rules.register(register) {
            None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Some(None),
            Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
            Some(_) => None,
        };
        let CfaRule::RegisterAndOffset { register: base, offset } = *self.rules.cfa() else { return false };
        let (Some(fp), Some(address)) = (saved_at(frame_pointer(self.arch)), saved_at(self.return_address))
        else {
            return false;
        };
        let is_place = |at: i64| at % 8 == 0 && i16::try_from(offset.saturating_add(at) / 8).is_ok();
        let are_places = [fp, address].into_iter().flatten().all(is_place);
        let is_root = self.is_root();
        let form = match self.arch {
            Arch::X86_64 if is_root => true,
            Arch::X86_64 if base == X86_64::RSP => {
                address == Some(-8) && offset % 8 == 0 && u16::try_from(offset / 8).is_ok()
            }
            Arch::X86_64 => base == X86_64::RBP && (offset, fp, address) == (16, Some(-16), Some(-8)),
            Arch::Aarch64 if base == AArch64::SP => {
                offset % 16 == 0 && u16::try_from(offset / 16).is_ok() && (fp.is_none() || address.is_some())
            }
            Arch::Aarch64 => {
                base == AArch64::X29
                    && offset % 8 == 0
                    && u16::try_from(offset / 8).is_ok()
                    && fp.is_some()
                    && address.is_some()
            }
            Arch::X86 => false,
        };
        form && are_places && self.is_in_first_table && !self.is_signal_frame
    }

    /// Whether the tables mark the frame as the outermost one.
    pub(super) fn is_root(&self) -> bool {
        match self.rules.register(self.return_address) {
            Some(RegisterRule::Undefined) => true,
            // On arm64, compilers omit the rule of functions that keep their return address in its register.
            None => self.arch != Arch::Aarch64,
            Some(_) => false,
        }
    }

    /// Returns the canonical frame address: the caller's stack pointer, unless a rule says otherwise.
    pub(super) fn cfa(&self, frame: &mut impl FrameValues) -> Option<u64> {
        match self.rules.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.word(frame.register(*register)?.wrapping_add_signed(*offset)))
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None, frame),
        }
    }

    /// Returns a register's value in the caller; `None` if it cannot be computed.
    pub(super) fn caller_value(
        &self,
        register: Register,
        cfa: u64,
        frame: &mut impl FrameValues,
    ) -> Option<CallerValue> {
        let at = |offset: i64| self.word(cfa.wrapping_add_signed(offset));
        Some(CallerValue::Known(match self.rules.register(register) {
            None | Some(RegisterRule::SameValue) => return Some(CallerValue::Same),
            Some(RegisterRule::Undefined) => return Some(CallerValue::Undefined),
            Some(RegisterRule::Offset(offset)) => frame.word(at(offset))?,
            Some(RegisterRule::ValOffset(offset)) => at(offset),
            Some(RegisterRule::Register(other)) => frame.register(other)?,
            Some(RegisterRule::Expression(expression)) => {
                let place = self.evaluate(&expression, Some(cfa), frame)?;
                frame.word(place)?
            }
            Some(RegisterRule::ValExpression(expression)) => self.evaluate(&expression, Some(cfa), frame)?,
            Some(RegisterRule::Constant(value)) => self.word(value),
            Some(RegisterRule::Architectural) => return None,
        }))
    }

    /// Shortens a value to the size of a word.
    fn word(&self, value: u64) -> u64 {
        if self.arch == Arch::X86 { value & u64::from(u32::MAX) } else { value }
    }

    /// Evaluates an expression. `initial` is the initial value on the expression's stack.
    fn evaluate(
        &self,
        expression: &UnwindExpression<usize>,
        initial: Option<u64>,
        frame: &mut impl FrameValues,
    ) -> Option<u64> {
        let mut evaluation = self.expression(expression)?.evaluation(self.encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate();
        loop {
            result = match result.ok()? {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = frame.register(register)?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                EvaluationResult::RequiresMemory { address, size, space: None, .. } => {
                    let bits = u32::from(size).saturating_mul(8);
                    let word = frame.word(address)?;
                    let kept = word & u64::MAX.checked_shr(64_u32.checked_sub(bits)?)?;
                    evaluation.resume_with_memory(Value::Generic(kept))
                }
                _ => return None,
            };
        }
        let mask = self.word(u64::MAX);
        evaluation.value_result()?.to_u64(mask).ok()
    }
}

#[cfg(test)]
mod tests {
    use gimli::UnwindContext;

    use super::*;
    use crate::unwind::entries::tests::with_rules;

    #[test]
    fn framehop_applies_only_rows_that_cannot_fail() {
        use Arch::{Aarch64, X86_64};
        let rows: [(Arch, &[u8], bool); 14] = [
            (X86_64, &[], true),
            // rsp+16, rbp at cfa-16; rbp+16, rbp at cfa-16.
            (X86_64, &[0x0e, 16, 0x86, 2], true),
            (X86_64, &[0x0c, 6, 16, 0x86, 2], true),
            // rbp+32; rbp+16 with rbp at cfa-24; rsp+12; rbx+8; an expression; rip in rdi.
            (X86_64, &[0x0c, 6, 32, 0x86, 2], false),
            (X86_64, &[0x0c, 6, 16, 0x86, 3], false),
            (X86_64, &[0x0e, 12], false),
            (X86_64, &[0x0c, 3, 8], false),
            (X86_64, &[0x0f, 3, 0x76, 0x78, 0x06], false),
            (X86_64, &[0x09, 16, 5], false),
            // The return address is undefined: the root.
            (X86_64, &[0x07, 16], true),
            // sp+0; sp+32 with x29 at cfa-32 and x30 at cfa-24; without x30; x30 in x5.
            (Aarch64, &[], true),
            (Aarch64, &[0x0e, 32, 0x9d, 4, 0x9e, 3], true),
            (Aarch64, &[0x0e, 32, 0x9d, 4], false),
            (Aarch64, &[0x09, 30, 5], false),
        ];
        for (arch, rules, want) in rows {
            let (entries, mut context) = (with_rules(arch, rules), UnwindContext::new());
            let row = entries.row(0x1010, &mut context).unwrap();
            assert_eq!(row.is_simple(), want, "{arch:?} {rules:x?}");
        }
        assert!(with_rules(X86_64, &[]).row(0x1100, &mut UnwindContext::new()).is_none());
    }

    /// Registers with 100 times their number, and a stack on which each word is its address plus 1.
    struct Values;

    impl FrameValues for Values {
        fn register(&mut self, register: Register) -> Option<u64> {
            Some(u64::from(register.0) * 100).filter(|value| *value < 2000)
        }

        fn word(&mut self, address: u64) -> Option<u64> {
            (address < 10_000).then_some(address + 1)
        }
    }

    #[test]
    fn rules_compute_the_values_of_the_caller() {
        use CallerValue::{Known, Same, Undefined};
        let cfa_and = |rules: &[u8], register: u16| {
            let (entries, mut context) = (with_rules(Arch::X86_64, rules), UnwindContext::new());
            let row = entries.row(0x1010, &mut context).unwrap();
            let cfa = row.cfa(&mut Values)?;
            Some((cfa, row.caller_value(Register(register), cfa, &mut Values)?))
        };
        // rsp (700) + 8; rip at cfa-8; rbx not mentioned.
        assert_eq!(cfa_and(&[], 16), Some((708, Known(701))));
        assert_eq!(cfa_and(&[], 3), Some((708, Same)));
        // cfa = *(rbp - 8) = 593; rbx in r12; rbx is cfa - 16; rbx undefined.
        assert_eq!(cfa_and(&[0x0f, 3, 0x76, 0x78, 0x06, 0x09, 3, 12], 3), Some((593, Known(1200))));
        assert_eq!(cfa_and(&[0x14, 3, 2], 3), Some((708, Known(692))));
        assert_eq!(cfa_and(&[0x07, 3], 3), Some((708, Undefined)));
        // rbx at the address rsp + 40, and rbx is rsp + 40.
        assert_eq!(cfa_and(&[0x10, 3, 2, 0x77, 40], 3), Some((708, Known(741))));
        assert_eq!(cfa_and(&[0x16, 3, 2, 0x77, 40], 3), Some((708, Known(740))));
        // Two bytes of the word at cfa - 8 = 700: DW_OP_deref_size.
        assert_eq!(cfa_and(&[0x16, 3, 5, 0x38, 0x1c, 0x94, 2, 0x96], 3), Some((708, Known(701))));
        // An unknown register, a word beyond the stack, and an endless expression.
        assert_eq!(cfa_and(&[0x09, 3, 40], 3), None);
        assert_eq!(cfa_and(&[0x10, 3, 3, 0x0a, 0xff, 0xff], 3), None);
        assert_eq!(cfa_and(&[0x0f, 3, 0x2f, 0xfd, 0xff], 3), None);
    }
}
