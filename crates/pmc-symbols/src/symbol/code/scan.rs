//! Finds the sizes of instructions and the addresses in their operands, without decoding the rest of them.
//!
//! Takes bytes of code and their address; returns what an archive needs of each instruction. An archive
//! contains millions of instructions, whose text nobody reads when it is written.
//! [`disassemble`](super::disassemble) takes a microsecond per instruction, this module some nanoseconds. A
//! test compares the results of both. Bytes that are not an instruction count as instructions of the smallest
//! size.
//!
//! ```text
//!   x86       prefixes | REX | opcode, or VEX | EVEX | XOP, opcode | ModRM [SIB] [displacement] | immediate
//!   aarch64   one word
//! ```

use super::LONGEST_INSTRUCTION;
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
        InstructionSet::X86_64 => X86::new(bytes, true).instruction(address),
        InstructionSet::X86 => X86::new(bytes, false).instruction(address),
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

/// What follows an opcode.
#[derive(Debug, Clone, Copy, Default)]
struct X86Form {
    has_modrm: bool,
    /// Size of the immediate in bytes.
    immediate: usize,
    /// Whether the immediate is the distance to a target.
    is_relative: bool,
}

impl X86Form {
    const fn plain(immediate: usize) -> Self {
        Self { has_modrm: false, immediate, is_relative: false }
    }

    const fn modrm(immediate: usize) -> Self {
        Self { has_modrm: true, immediate, is_relative: false }
    }

    const fn relative(immediate: usize) -> Self {
        Self { has_modrm: false, immediate, is_relative: true }
    }
}

/// An x86 instruction and how much of it was read.
struct X86<'a> {
    bytes: &'a [u8],
    at: usize,
    is_64: bool,
    /// Whether there is an operand-size prefix (66).
    has_short_operand: bool,
    /// Whether there is an address-size prefix (67).
    has_short_address: bool,
    /// Whether REX.W is set.
    is_wide: bool,
}

impl<'a> X86<'a> {
    fn new(bytes: &'a [u8], is_64: bool) -> Self {
        let bytes = &bytes[..bytes.len().min(LONGEST_INSTRUCTION as usize)];
        Self { bytes, at: 0, is_64, has_short_operand: false, has_short_address: false, is_wide: false }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Skips bytes; `None` if they are missing.
    fn skip(&mut self, count: usize) -> Option<()> {
        self.at += count;
        (self.at <= self.bytes.len()).then_some(())
    }

    /// Reads the whole instruction; `None` if it is not one.
    fn instruction(mut self, address: u64) -> Option<ScannedInstruction> {
        self.prefixes()?;
        let first = self.next()?;
        let is_vector = self.is_64 || self.peek().is_some_and(|byte| byte >= 0xc0);
        let form = match first {
            0x0f => {
                let second = self.next()?;
                match second {
                    0x38 | 0x3a => {
                        self.skip(1)?;
                        X86Form::modrm(usize::from(second == 0x3a))
                    }
                    opcode => self.two_byte(opcode)?,
                }
            }
            0xc5 if is_vector => {
                self.skip(1)?;
                self.vector(1)?
            }
            0xc4 if is_vector => {
                let map = self.next()? & 0x1f;
                self.skip(1)?;
                self.vector(map)?
            }
            0x62 if is_vector => {
                let map = self.next()? & 7;
                self.skip(2)?;
                self.vector(map)?
            }
            0x8f if self.peek()? & 0x1f >= 8 => {
                let map = self.next()? & 0x1f;
                self.skip(2)?;
                X86Form::modrm([1, 0, 4].get(usize::from(map) - 8).copied()?)
            }
            opcode => self.one_byte(opcode)?,
        };
        let modrm = self.peek().filter(|_| form.has_modrm);
        let displacement = if form.has_modrm { self.modrm()? } else { None };
        let immediate = self.at;
        self.skip(form.immediate)?;
        let end = address.wrapping_add(self.at as u64);
        let absolute = |distance: i64| end.wrapping_add_signed(distance);
        let operand = if form.is_relative {
            let target = absolute(signed(&self.bytes[immediate..self.at]));
            Some(AddressOperand::Target(if self.is_64 { target } else { target & u64::from(u32::MAX) }))
        } else {
            // call, call far, jmp, jmp far
            let is_branch = first == 0xff && modrm.is_some_and(|modrm| (2..=5).contains(&(modrm >> 3 & 7)));
            let kind = if is_branch { AddressOperand::Slot } else { AddressOperand::Data };
            displacement.map(|distance| kind(absolute(distance)))
        };
        Some(ScannedInstruction { size: self.at, operand })
    }

    fn prefixes(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                0x66 => self.has_short_operand = true,
                0x67 => self.has_short_address = true,
                0xf0 | 0xf2 | 0xf3 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 => {}
                rex @ 0x40..=0x4f if self.is_64 => {
                    self.is_wide = rex & 8 != 0;
                    self.at += 1;
                    return Some(());
                }
                _ => return Some(()),
            }
            self.at += 1;
        }
    }

    /// Size of an immediate of up to 4 bytes.
    fn immediate(&self) -> usize {
        if self.has_short_operand && !self.is_wide { 2 } else { 4 }
    }

    /// Size of the distance in a near jump or call. 64-bit code ignores the prefix.
    fn distance(&self) -> usize {
        if self.is_64 { 4 } else { self.immediate() }
    }

    fn one_byte(&self, opcode: u8) -> Option<X86Form> {
        let is_test = self.peek().is_some_and(|modrm| modrm >> 3 & 7 < 2);
        let only_32 = |form| (!self.is_64).then_some(form);
        Some(match opcode {
            0x00..=0x3f => match opcode & 7 {
                0..=3 => X86Form::modrm(0),
                4 => X86Form::plain(1),
                5 => X86Form::plain(self.immediate()),
                _ => return only_32(X86Form::plain(0)),
            },
            0x60 | 0x61 | 0xce | 0xd6 => return only_32(X86Form::plain(0)),
            0x62 => return only_32(X86Form::modrm(0)),
            0x82 => return only_32(X86Form::modrm(1)),
            0x9a | 0xea => return only_32(X86Form::plain(self.immediate() + 2)),
            0xd4 | 0xd5 => return only_32(X86Form::plain(1)),
            0x68 | 0xa9 => X86Form::plain(self.immediate()),
            0x69 | 0x81 | 0xc7 => X86Form::modrm(self.immediate()),
            0x6a | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe4..=0xe7 => X86Form::plain(1),
            0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => X86Form::modrm(1),
            0x63 | 0x84..=0x8f | 0xc4 | 0xc5 | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => X86Form::modrm(0),
            0x70..=0x7f | 0xe0..=0xe3 | 0xeb => X86Form::relative(1),
            0xa0..=0xa3 => X86Form::plain(match (self.is_64, self.has_short_address) {
                (true, false) => 8,
                (true, true) | (false, false) => 4,
                (false, true) => 2,
            }),
            0xb8..=0xbf => X86Form::plain(if self.is_wide { 8 } else { self.immediate() }),
            0xc2 | 0xca => X86Form::plain(2),
            0xc8 => X86Form::plain(3),
            0xe8 | 0xe9 => X86Form::relative(self.distance()),
            0xf6 => X86Form::modrm(usize::from(is_test)),
            0xf7 => X86Form::modrm(if is_test { self.immediate() } else { 0 }),
            _ => X86Form::plain(0),
        })
    }

    /// Opcodes after 0f.
    fn two_byte(&self, opcode: u8) -> Option<X86Form> {
        Some(match opcode {
            0x04 | 0x0a | 0x0c | 0x24..=0x27 | 0x36 | 0x39 | 0x3b..=0x3f | 0x7a | 0x7b => return None,
            0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
                X86Form::plain(0)
            }
            0x80..=0x8f => X86Form::relative(self.distance()),
            0x0f | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => X86Form::modrm(1),
            _ => X86Form::modrm(0),
        })
    }

    /// Reads the opcode after a VEX or EVEX prefix.
    fn vector(&mut self, map: u8) -> Option<X86Form> {
        let opcode = self.next()?;
        Some(match (map, opcode) {
            (1, 0x77) => X86Form::plain(0),
            (1, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) | (3, _) => X86Form::modrm(1),
            (1 | 2 | 5 | 6, _) => X86Form::modrm(0),
            _ => return None,
        })
    }

    /// Reads ModRM, SIB and displacement. Returns the displacement if it is relative to the end of the
    /// instruction.
    fn modrm(&mut self) -> Option<Option<i64>> {
        let modrm = self.next()?;
        let (mode, base) = (modrm >> 6, modrm & 7);
        if mode == 3 {
            return Some(None);
        }
        if self.has_short_address && !self.is_64 {
            self.skip(match (mode, base) {
                (0, 6) | (2, _) => 2,
                (1, _) => 1,
                _ => 0,
            })?;
            return Some(None);
        }
        let is_alone = match base {
            4 => self.next()? & 7 == 5,
            base => base == 5,
        };
        let displacement = self.at;
        self.skip(match mode {
            1 => 1,
            2 => 4,
            _ if is_alone => 4,
            _ => 0,
        })?;
        let is_relative = self.is_64 && mode == 0 && base == 5 && !self.has_short_address;
        Some(is_relative.then(|| signed(&self.bytes[displacement..self.at])))
    }
}

/// Reads a signed little-endian number of up to 8 bytes.
fn signed(bytes: &[u8]) -> i64 {
    let unsigned = bytes.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let unused = 64 - 8 * bytes.len() as u32;
    unsigned.checked_shl(unused).unwrap_or_default().cast_signed() >> unused.min(63)
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
