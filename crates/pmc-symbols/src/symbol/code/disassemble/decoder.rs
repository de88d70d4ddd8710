//! Decodes machine code in this process with capstone.
//!
//! capstone is a C library, used because no Rust crate supports both architectures equally well;
//! [`gnu_syntax`](super::gnu_syntax) rewrites its x86 text. Comparison with Rust crates over whole `.text`
//! sections, with numbers and blanks normalized:
//!
//! ```text
//!   x86-64, iced-x86 1.22      libc.so.6    335,736 instructions: same lengths, 3.0 % spelled differently
//!                              pmc, debug 4,016,299: same lengths, 0.7 % (constants' signs, `set`, masks)
//!   aarch64, yaxpeax-arm 0.3   libc.so.6    277,028: 2,946 spelled differently, about 400 wrong or missing:
//!                              `add x0, x1, w2, uxtw #3` as `lsl #3`, `ldg` as `ldm`, unscaled `st2g`,
//!                              no SVE, no `bti`
//!   aarch64, disarm64 0.2      no aliases (`orr` for `mov`), no SVE
//! ```
//!
//! iced-x86 would be good enough for x86, but Arm code would still require capstone, so pmc would need two
//! decoders.

use std::ops::ControlFlow;

use capstone::arch::{BuildsCapstone, BuildsCapstoneSyntax, arm64, x86};
use capstone::{Capstone, Insn, InsnDetail, InsnGroupType};

use super::gnu_syntax::{self, CapstoneText};
use super::instruction::{
    CodeRequest, DATA, DisassemblyError, Flow, Instruction, InstructionSet, InstructionTarget, Syntax,
};

/// The decoders set up so far.
#[derive(Debug, Default)]
pub(super) struct Decoders(Vec<Decoder>);

impl Decoders {
    /// Decodes code, and visits its instructions in order until `visit` breaks. Unless only the first
    /// instruction is requested, bytes that are not an instruction are visited as [`DATA`].
    ///
    /// # Errors
    /// Fails if memory is short.
    pub(super) fn decode(
        &mut self,
        code: &CodeRequest<'_>,
        visit: &mut dyn FnMut(Instruction) -> ControlFlow<()>,
    ) -> Result<(), DisassemblyError> {
        let is_for = |known: &&Decoder| (known.machine, known.syntax) == (code.machine, code.syntax);
        if let Some(known) = self.0.iter().find(is_for) {
            return known.decode(code, visit);
        }
        let new = Decoder::new(code.machine, code.syntax)?;
        let decoded = new.decode(code, visit);
        self.0.push(new);
        decoded
    }
}

/// A decoder for an instruction set and a syntax.
#[derive(Debug)]
struct Decoder {
    capstone: Capstone,
    machine: InstructionSet,
    syntax: Syntax,
}

impl Decoder {
    fn new(machine: InstructionSet, syntax: Syntax) -> Result<Self, DisassemblyError> {
        let x86 = |mode| {
            let syntax = match syntax {
                Syntax::Att => x86::ArchSyntax::Att,
                Syntax::Intel => x86::ArchSyntax::Intel,
            };
            Capstone::new().x86().mode(mode).syntax(syntax).detail(true).build()
        };
        let capstone = match machine {
            InstructionSet::X86_64 => x86(x86::ArchMode::Mode64),
            InstructionSet::X86 => x86(x86::ArchMode::Mode32),
            InstructionSet::Aarch64 => {
                Capstone::new().arm64().mode(arm64::ArchMode::Arm).detail(true).build()
            }
        };
        Ok(Self { capstone: capstone.map_err(set_up)?, machine, syntax })
    }

    fn decode(
        &self,
        code: &CodeRequest<'_>,
        visit: &mut dyn FnMut(Instruction) -> ControlFlow<()>,
    ) -> Result<(), DisassemblyError> {
        let bytes = code.bytes;
        let step = if self.machine == InstructionSet::Aarch64 { 4 } else { 1 };
        let mut at = 0;
        while at < bytes.len() {
            let start = code.start.wrapping_add(at as u64);
            let mut iterator = self.capstone.disasm_iter(&bytes[at..], start).map_err(set_up)?;
            while let Some(instruction) = iterator.next() {
                let read = self.converted(&instruction);
                if read.bytes.is_empty() {
                    break;
                }
                at += read.bytes.len();
                if visit(read).is_break() || code.is_first_only {
                    return Ok(());
                }
            }
            if code.is_first_only {
                return Ok(());
            }
            if at < bytes.len() {
                let end = (at + step).min(bytes.len());
                if visit(data(&bytes[at..end], code.start.wrapping_add(at as u64))).is_break() {
                    return Ok(());
                }
                at = end;
            }
        }
        Ok(())
    }

    /// Converts an instruction from capstone's representation.
    fn converted(&self, instruction: &Insn<'_>) -> Instruction {
        let detail = self.capstone.insn_detail(instruction).ok();
        let mut read = read(self.machine, instruction, detail.as_ref());
        if self.machine != InstructionSet::Aarch64 {
            let base = self.capstone.insn_name(instruction.id()).unwrap_or_default();
            write_as_objdump(&mut read, &base, detail.as_ref(), self.syntax);
        }
        read
    }
}

fn set_up(error: capstone::Error) -> DisassemblyError {
    DisassemblyError::SetUp(error.to_string())
}

/// Creates a `.byte` line for bytes that are not an instruction.
fn data(bytes: &[u8], address: u64) -> Instruction {
    let list: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
    Instruction {
        address,
        bytes: bytes.into(),
        mnemonic: DATA.into(),
        operands: list.join(", ").into(),
        ..Instruction::default()
    }
}

fn read(machine: InstructionSet, of: &Insn<'_>, detail: Option<&InsnDetail<'_>>) -> Instruction {
    let mut instruction = Instruction {
        address: of.address(),
        bytes: of.bytes().into(),
        mnemonic: of.mnemonic().unwrap_or_default().into(),
        operands: of.op_str().unwrap_or_default().into(),
        ..Instruction::default()
    };
    let Some(detail) = detail else { return instruction };
    instruction.flow = flow(&instruction.mnemonic, detail);
    let place = |address| InstructionTarget { address, name: None };
    if matches!(instruction.flow, Flow::Jump | Flow::Call) {
        instruction.target = leads_to(&instruction.operands).map(place);
    }
    if machine == InstructionSet::X86_64 {
        let from_end = relative(&instruction.operands);
        instruction.refers = from_end.map(|distance| place(instruction.end().wrapping_add_signed(distance)));
    }
    instruction
}

/// Rewrites capstone's text for an x86 instruction in objdump's syntax.
fn write_as_objdump(
    instruction: &mut Instruction,
    base: &str,
    detail: Option<&InsnDetail<'_>>,
    syntax: Syntax,
) {
    let detail = detail.map(InsnDetail::arch_detail);
    let has_displacement =
        detail.as_ref().and_then(|detail| detail.x86()).is_some_and(|x86| x86.encoding().disp.is_some());
    let words = CapstoneText {
        base,
        mnemonic: &instruction.mnemonic,
        operands: &instruction.operands,
        bytes: &instruction.bytes,
        has_displacement,
    };
    let (mnemonic, operands) = match syntax {
        Syntax::Att => gnu_syntax::att(&words),
        Syntax::Intel => gnu_syntax::intel(&words),
    };
    (instruction.mnemonic, instruction.operands) = (mnemonic.into(), operands.into());
}

// Operands are parsed from their text, because capstone's binding converts register and shift numbers to
// enums without checking them. Some Arm encodings yield numbers outside these enums, which aborts the
// process.

/// Parses the address in the last operand: `0x1000`, `w0, #3, #0x1000`.
fn leads_to(operands: &str) -> Option<u64> {
    let last = operands.rsplit(", ").next()?;
    number(last.strip_prefix('#').unwrap_or(last))
}

/// Parses the displacement in `[rip + 0x10]` or `-0x10(%rip)`.
fn relative(operands: &str) -> Option<i64> {
    let (text, negative) = if let Some((_, rest)) = operands.split_once("[rip") {
        let rest = rest.split_once(']')?.0.trim();
        match rest.as_bytes().first() {
            None => return Some(0),
            Some(sign) => (rest[1..].trim(), *sign == b'-'),
        }
    } else {
        let (before, _) = operands.split_once("(%rip)")?;
        let start = before.rfind([' ', ':', '*']).map_or(0, |at| at + 1);
        let text = &before[start..];
        if text.is_empty() {
            return Some(0);
        }
        (text.trim_start_matches('-'), text.starts_with('-'))
    };
    let distance = number(text)? as i64;
    Some(if negative { distance.wrapping_neg() } else { distance })
}

/// Parses a number. capstone prints small numbers in decimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn flow(mnemonic: &str, detail: &InsnDetail<'_>) -> Flow {
    let is = |group: InsnGroupType::Type| {
        detail.groups().iter().any(|id| InsnGroupType::Type::from(id.0) == group)
    };
    // capstone also classifies Arm's `bl` as a jump.
    if is(InsnGroupType::CS_GRP_CALL) || matches!(mnemonic, "bl" | "blr") {
        Flow::Call
    } else if is(InsnGroupType::CS_GRP_RET) || is(InsnGroupType::CS_GRP_IRET) || mnemonic == "ret" {
        Flow::Return
    } else if is(InsnGroupType::CS_GRP_JUMP) {
        Flow::Jump
    } else {
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::super::disassemble;
    use super::*;

    #[test]
    fn x86_branch_targets_are_decoded() {
        // 1000: test edi,edi; jle 1009; call 2000; ret; lea rax,[rip+0x10]; (a bad byte) ; nop
        let code = [
            0x85, 0xff, 0x7e, 0x06, 0xe8, 0xf7, 0x0f, 0, 0, 0xc3, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0x06, 0x90,
        ];
        let all = disassemble(InstructionSet::X86_64, Syntax::Intel, &code, 0x1000).unwrap();
        let text: Vec<String> = all.iter().map(|i| format!("{} {}", i.mnemonic, i.operands)).collect();
        assert_eq!(
            text,
            ["test edi,edi", "jle 0x100a", "call 0x2000", "ret ", "lea rax,[rip+0x10]", ".byte 0x06", "nop "]
        );
        let flows: Vec<Flow> = all.iter().map(|i| i.flow).collect();
        assert_eq!(flows[..5], [Flow::Next, Flow::Jump, Flow::Call, Flow::Return, Flow::Next]);
        let target = |at: usize| all[at].target.as_ref().map(|t| t.address);
        assert_eq!((target(1), target(2), target(4)), (Some(0x100a), Some(0x2000), None));
        assert_eq!(all[4].refers.as_ref().map(|t| t.address), Some(0x1021));
        assert_eq!(all.iter().map(|i| i.bytes.len()).sum::<usize>(), code.len());
        let att = disassemble(InstructionSet::X86_64, Syntax::Att, &code, 0x1000).unwrap();
        assert_eq!(att[4].refers, all[4].refers);
        assert_eq!(att[2].target, all[2].target);
        assert_eq!((&*att[0].mnemonic, &*att[0].operands), ("test", "%edi,%edi"));
    }

    #[test]
    fn arm_branch_targets_are_decoded() {
        // cbz x0, +12; bl +0x1000; tbnz w1, #3, -8; ret; udf
        let words = [0xb400_0060u32, 0x9400_0400, 0x371f_ffc1, 0xd65f_03c0, 0xffff_ffff];
        let code: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let all = disassemble(InstructionSet::Aarch64, Syntax::Att, &code, 0x4000).unwrap();
        let got: Vec<_> = all.iter().map(|i| (i.flow, i.target.as_ref().map(|t| t.address))).collect();
        assert_eq!(
            got,
            [
                (Flow::Jump, Some(0x400c)),
                (Flow::Call, Some(0x5004)),
                (Flow::Jump, Some(0x4000)),
                (Flow::Return, None),
                (Flow::Next, None)
            ]
        );
        assert_eq!(&*all[4].mnemonic, ".byte");
        assert_eq!(all[4].bytes.len(), 4);
    }

    /// Operands as GNU objdump 2.40 prints them for the same bytes.
    #[test]
    fn addresses_without_a_register_are_unsigned() {
        let operands = |machine, syntax, code: &[u8]| -> Vec<String> {
            let all = disassemble(machine, syntax, code, 0).unwrap();
            all.iter().map(|i| i.operands.to_string()).collect()
        };
        let long = [
            0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, // mov %fs:0xfffffffffffffff8,%rax
            0x64, 0x48, 0x8b, 0x48, 0xf8, // mov %fs:-0x8(%rax),%rcx
            0x64, 0x48, 0x8b, 0x0c, 0xcd, 0xf0, 0xff, 0xff, 0xff, // mov %fs:-0x10(,%rcx,8),%rcx
            0xff, 0x14, 0x25, 0xe8, 0xff, 0xff, 0xff, // call *0xffffffffffffffe8
            0x64, 0xff, 0x24, 0x25, 0xf8, 0xff, 0xff, 0xff, // jmp *%fs:0xfffffffffffffff8
        ];
        assert_eq!(
            operands(InstructionSet::X86_64, Syntax::Att, &long),
            [
                "%fs:0xfffffffffffffff8,%rax",
                "%fs:-0x8(%rax),%rcx",
                "%fs:-0x10(,%rcx,8),%rcx",
                "*0xffffffffffffffe8",
                "*%fs:0xfffffffffffffff8"
            ]
        );
        assert_eq!(
            operands(InstructionSet::X86_64, Syntax::Intel, &long),
            [
                "rax,QWORD PTR fs:0xfffffffffffffff8",
                "rcx,QWORD PTR fs:[rax-0x8]",
                "rcx,QWORD PTR fs:[rcx*8-0x10]",
                "QWORD PTR ds:0xffffffffffffffe8",
                "QWORD PTR fs:0xfffffffffffffff8"
            ]
        );
        let short = [
            0x65, 0xa1, 0xf8, 0xff, 0xff, 0xff, // mov %gs:0xfffffff8,%eax
            0x8b, 0x48, 0xf8, // mov -0x8(%eax),%ecx
            0x8b, 0x0d, 0x00, 0x00, 0x00, 0x80, // mov 0x80000000,%ecx
        ];
        assert_eq!(
            operands(InstructionSet::X86, Syntax::Att, &short),
            ["%gs:0xfffffff8,%eax", "-0x8(%eax),%ecx", "0x80000000,%ecx"]
        );
    }

    #[test]
    fn distances_parse_in_both_syntaxes() {
        assert_eq!(relative("rax, qword ptr [rip - 0x20]"), Some(-0x20));
        assert_eq!(relative("byte ptr [rip], 3"), Some(0));
        assert_eq!(relative("%fs:-8(%rip), %rax"), Some(-8));
        assert_eq!(relative("*0x2fe2(%rip)"), Some(0x2fe2));
        assert_eq!(relative("(%rip)"), Some(0));
        assert_eq!((relative("%rax, %rbx"), leads_to("*%rax"), leads_to("")), (None, None, None));
        assert_eq!((leads_to("5"), leads_to("w1, #3, #0x3f00")), (Some(5), Some(0x3f00)));
    }

    #[test]
    fn arbitrary_bytes_are_disassembled() {
        let noise: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for machine in [InstructionSet::X86_64, InstructionSet::X86, InstructionSet::Aarch64] {
            let all = disassemble(machine, Syntax::Att, &noise, u64::MAX - 100).unwrap();
            assert_eq!(all.iter().map(|i| i.bytes.len()).sum::<usize>(), noise.len());
        }
    }
}
