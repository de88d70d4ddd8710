//! The names that the kernel's probe syntax uses for registers, by DWARF number.

use object::Architecture;

/// The first eight registers of x86-64. The others are named after their numbers.
const X86_64: [&str; 8] = ["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"];
const X86: [&str; 8] = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"];
const RISCV: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6",
    "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// Returns the name of a general-purpose register; `None` for other registers, which probes cannot read.
pub(super) fn name(architecture: Architecture, register: u16) -> Option<String> {
    let register = usize::from(register);
    let of = |names: &[&str]| names.get(register).map(|name| (*name).to_owned());
    match architecture {
        Architecture::X86_64 => {
            of(&X86_64).or_else(|| (8..16).contains(&register).then(|| format!("r{register}")))
        }
        Architecture::I386 => of(&X86),
        Architecture::Aarch64 if register < 31 => Some(format!("x{register}")),
        Architecture::Aarch64 if register == 31 => Some("sp".to_owned()),
        Architecture::Riscv64 | Architecture::Riscv32 if register > 0 => of(&RISCV),
        _ => None,
    }
}
