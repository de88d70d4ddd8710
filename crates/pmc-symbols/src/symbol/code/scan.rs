//! Finds the sizes of instructions and the addresses in their operands, without decoding the rest of them.
//!
//! Takes bytes of code and their address; returns what an archive needs of each instruction. An archive
//! contains millions of instructions, whose text nobody reads when it is written.
//! [`disassemble`](super::disassemble) takes a microsecond per instruction, iced-x86 some nanoseconds. A test
//! compares the results of both. Bytes that are not an instruction count as instructions of the smallest
//! size.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};

use super::disassemble::InstructionSet;

/// What an archive needs of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::symbol) struct ScannedInstruction {
    /// Its size in bytes.
    pub(in crate::symbol) size: usize,
    /// The address in its operands, if the code contains it.
    pub(in crate::symbol) operand: Option<AddressOperand>,
}

/// An address in the operands of an instruction, in the same address space as the instruction's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::symbol) enum AddressOperand {
    /// The target of a jump or call.
    Target(u64),
    /// The memory that contains the target of a jump or call.
    Slot(u64),
    /// The memory that another instruction uses.
    Data(u64),
}

/// Scans the instruction at the start of `bytes`, which must not be empty. `address` is its address.
pub(in crate::symbol) fn scan(machine: InstructionSet, bytes: &[u8], address: u64) -> ScannedInstruction {
    let scanned = match machine {
        InstructionSet::X86_64 => x86(64, bytes, address),
        InstructionSet::X86 => x86(32, bytes, address),
        InstructionSet::Aarch64 => {
            let operand = bytes.first_chunk().and_then(|word| aarch64(u32::from_le_bytes(*word), address));
            return ScannedInstruction { size: bytes.len().min(4), operand };
        }
    };
    scanned.unwrap_or(ScannedInstruction { size: 1, operand: None })
}

/// Returns the target of a branch: `b`, `bl`, `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`.
fn aarch64(word: u32, address: u64) -> Option<AddressOperand> {
    // Position and number of the bits of the signed distance in words.
    let (at, bits) = match word >> 24 {
        0x14..=0x17 | 0x94..=0x97 => (0, 26),
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => (5, 19),
        0x36 | 0x37 | 0xb6 | 0xb7 => (5, 14),
        _ => return None,
    };
    let words = (word << (32 - at - bits)).cast_signed() >> (32 - bits);
    Some(AddressOperand::Target(address.wrapping_add_signed(4 * i64::from(words))))
}

/// Scans x86 code of 32 or 64 bits; `None` if the bytes are not an instruction.
fn x86(bits: u32, bytes: &[u8], address: u64) -> Option<ScannedInstruction> {
    let instruction = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE).decode();
    let operand = match instruction.op0_kind() {
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
            Some(AddressOperand::Target(instruction.near_branch_target()))
        }
        _ if instruction.memory_base() == Register::RIP => {
            let is_branch = matches!(instruction.mnemonic(), Mnemonic::Call | Mnemonic::Jmp);
            let kind = if is_branch { AddressOperand::Slot } else { AddressOperand::Data };
            Some(kind(instruction.ip_rel_memory_address()))
        }
        _ => None,
    };
    (!instruction.is_invalid()).then_some(ScannedInstruction { size: instruction.len(), operand })
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSection, ObjectSymbol};

    use super::super::disassemble::{Flow, Syntax, disassemble};
    use super::*;

    /// Scans code from start to end.
    fn scan_all(machine: InstructionSet, bytes: &[u8], start: u64) -> Vec<(u64, ScannedInstruction)> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let address = start.wrapping_add(at as u64);
            let scanned = scan(machine, &bytes[at..], address);
            at += scanned.size;
            all.push((address, scanned));
        }
        all
    }

    /// The same from the disassembler.
    fn decode_all(machine: InstructionSet, bytes: &[u8], start: u64) -> Vec<(u64, ScannedInstruction)> {
        let all = disassemble(machine, Syntax::Att, bytes, start).unwrap();
        let one = |of: &super::super::disassemble::Instruction| {
            let target = of.target.as_ref().map(|it| AddressOperand::Target(it.address));
            let is_next = of.flow == Flow::Next;
            let kind = if is_next { AddressOperand::Data } else { AddressOperand::Slot };
            let operand = target.or(of.refers.as_ref().map(|it| kind(it.address)));
            (of.address, ScannedInstruction { size: of.bytes.len(), operand })
        };
        all.iter().map(one).collect()
    }

    /// The functions of this test program, which come from many crates, and from C.
    #[test]
    fn real_code_is_scanned_like_it_is_disassembled() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let file = object::File::parse(&*program).unwrap();
        let machine = match file.architecture() {
            object::Architecture::Aarch64 => InstructionSet::Aarch64,
            _ => InstructionSet::X86_64,
        };
        let text = file.section_by_name(".text").unwrap();
        let functions: Vec<_> = file.symbols().filter(|it| it.kind() == object::SymbolKind::Text).collect();
        // Disassembling all of them takes a minute.
        let mut count = 0;
        for function in functions.iter().step_by(functions.len() / 1000) {
            let start = function.address();
            let Ok(Some(code)) = text.data_range(start, function.size()) else { continue };
            let (scanned, decoded) = (scan_all(machine, code, start), decode_all(machine, code, start));
            let different = scanned.iter().zip(&decoded).find(|(scanned, decoded)| scanned != decoded);
            assert_eq!(different, None, "{:?} at {start:#x}", function.name());
            count += scanned.len();
        }
        assert!(count > 10_000, "{count}");
    }

    #[test]
    fn rare_encodings_are_scanned_like_they_are_disassembled() {
        let long: &[&[u8]] = &[
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],             // movabs $…,%rax
            &[0xa1, 1, 2, 3, 4, 5, 6, 7, 8],                   // movabs …,%eax
            &[0x66, 0xb8, 1, 2],                               // mov $0x201,%ax
            &[0x66, 0x81, 0x05, 1, 0, 0, 0, 2, 0],             // addw $2,1(%rip)
            &[0xf6, 0x05, 1, 0, 0, 0, 2],                      // testb $2,1(%rip)
            &[0xf7, 0x1d, 1, 0, 0, 0],                         // negl 1(%rip)
            &[0xc8, 1, 0, 2],                                  // enter $1,$2
            &[0xff, 0x15, 1, 0, 0, 0],                         // call *1(%rip)
            &[0xff, 0x25, 1, 0, 0, 0],                         // jmp *1(%rip)
            &[0xff, 0x35, 1, 0, 0, 0],                         // push 1(%rip)
            &[0x66, 0x48, 0x8d, 0x3d, 1, 0, 0, 0],             // data16 lea 1(%rip),%rdi
            &[0xe3, 0xfe],                                     // jrcxz
            &[0x0f, 0x84, 0xfa, 0xff, 0xff, 0xff],             // je
            &[0x0f, 0xba, 0x25, 1, 0, 0, 0, 7],                // btl $7,1(%rip)
            &[0x66, 0x0f, 0x3a, 0x0f, 0x05, 1, 0, 0, 0, 8],    // palignr $8,1(%rip),%xmm0
            &[0x0f, 0x38, 0xf0, 0x04, 0x25, 1, 0, 0, 0],       // movbe 1,%eax
            &[0xc5, 0xf8, 0x77],                               // vzeroupper
            &[0xc5, 0xf9, 0x70, 0x05, 1, 0, 0, 0, 2],          // vpshufd $2,1(%rip),%xmm0
            &[0xc4, 0xe2, 0x7d, 0x18, 0x05, 1, 0, 0, 0],       // vbroadcastss 1(%rip),%ymm0
            &[0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1],                // vextracti128 $1,%ymm0,%xmm1
            &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x05, 1, 0, 0, 0], // vmovups 1(%rip),%zmm0
            &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x40, 1],          // vmovups 64(%rax),%zmm0
            &[0x62, 0xf3, 0x7d, 0x48, 0x3b, 0xc1, 1],          // vextracti32x8 $1,%zmm0,%ymm1
            &[0x8f, 0xe9, 0x78, 0x80, 0xc1],                   // vfrczps %xmm1,%xmm0
            &[0x8f, 0x00],                                     // pop (%rax)
            &[0x06],                                           // invalid
            &[0x0f, 0x04],                                     // invalid
            &[0x67, 0x8b, 0x05, 1, 0, 0, 0],                   // mov 1(%eip),%eax
        ];
        let short: &[&[u8]] = &[
            &[0x06],                         // push %es
            &[0x40],                         // inc %eax
            &[0x62, 0x05, 1, 0, 0, 0],       // bound %eax,1
            &[0xc4, 0x05, 1, 0, 0, 0],       // les 1,%eax
            &[0xc5, 0xf8, 0x77],             // vzeroupper
            &[0x9a, 1, 0, 0, 0, 2, 0],       // lcall $2,$1
            &[0x67, 0x8b, 0x46, 1],          // mov 1(%bp),%eax
            &[0x67, 0x8b, 0x06, 1, 0],       // mov 1,%eax
            &[0x67, 0xa1, 1, 0],             // addr16 mov 1,%eax
            &[0x8b, 0x05, 1, 0, 0, 0],       // mov 1,%eax
            &[0xe8, 0xf0, 0xef, 0xff, 0xff], // call, below address 0
        ];
        // cbz, bl, tbnz, b.eq, ret, an invalid word
        let arm = [0xb400_0060u32, 0x9400_0400, 0x371f_ffc1, 0x54ff_ffe0, 0xd65f_03c0, 0xffff_ffff];
        let arm: Vec<Vec<u8>> = arm.iter().map(|word| word.to_le_bytes().to_vec()).collect();
        let arm: Vec<&[u8]> = arm.iter().map(Vec::as_slice).collect();
        for (machine, codes) in
            [(InstructionSet::X86_64, long), (InstructionSet::X86, short), (InstructionSet::Aarch64, &arm)]
        {
            for code in codes {
                let code = [code, &[0x90; 4][..]].concat();
                assert_eq!(scan_all(machine, &code, 0x1000), decode_all(machine, &code, 0x1000), "{code:x?}");
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_scanned_to_their_end() {
        let noise: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for machine in [InstructionSet::X86_64, InstructionSet::X86, InstructionSet::Aarch64] {
            let all = scan_all(machine, &noise, u64::MAX - 100);
            assert_eq!(all.iter().map(|(_, scanned)| scanned.size).sum::<usize>(), noise.len());
        }
    }
}
