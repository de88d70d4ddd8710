//! What the disassembler takes and returns: machine code with its instruction set, and instructions.

/// The instruction set of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit Arm.
    Aarch64,
}

impl InstructionSet {
    /// Converts the number in ELF headers (`e_machine`).
    pub(crate) fn of_elf(number: u16) -> Option<Self> {
        match number {
            62 => Some(Self::X86_64),
            3 => Some(Self::X86),
            183 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the number in ELF headers (`e_machine`).
    pub(crate) fn elf_number(self) -> u16 {
        match self {
            Self::X86_64 => 62,
            Self::X86 => 3,
            Self::Aarch64 => 183,
        }
    }

    /// Converts the output of `uname -m`.
    pub(crate) fn of_uname(word: &str) -> Option<Self> {
        match word {
            "x86_64" => Some(Self::X86_64),
            "i386" | "i486" | "i586" | "i686" => Some(Self::X86),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }
}

/// Syntax of x86 instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Syntax {
    /// `mov %rax,(%rdi)`, the default of perf and objdump.
    #[default]
    Att,
    /// `mov QWORD PTR [rdi],rax`.
    Intel,
}

/// An instruction's effect on control flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    /// Continues with the next instruction.
    #[default]
    Next,
    /// Jumps elsewhere, perhaps conditionally.
    Jump,
    /// Calls a function that then returns here.
    Call,
    /// Returns from the function.
    Return,
}

/// An address in an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionTarget {
    /// The address, in the same address space as the instruction's.
    pub address: u64,
    /// The demangled name of the function at that address, and the offset into it. The name is untrusted
    /// text.
    pub name: Option<(String, u64)>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Instruction {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: Box<[u8]>,
    /// The mnemonic.
    pub mnemonic: Box<str>,
    /// The operands, with targets as plain addresses.
    pub operands: Box<str>,
    /// Its effect on control flow.
    pub flow: Flow,
    /// The target of a jump or call, if the code contains it.
    pub target: Option<InstructionTarget>,
    /// The address of its memory operand, if the operand is relative to the instruction's address.
    pub refers: Option<InstructionTarget>,
}

impl Instruction {
    /// Returns the end address, exclusive.
    pub fn end(&self) -> u64 {
        self.address.wrapping_add(self.bytes.len() as u64)
    }

    /// Returns the operands of a jump or call, with `words` in place of the last one, the target.
    pub fn operands_with_target(&self, words: &str) -> String {
        let before = self.operands.rfind(", ").map_or("", |at| &self.operands[..at + 2]);
        format!("{before}{words}")
    }

    /// Whether the bytes are not an instruction.
    pub fn is_data(&self) -> bool {
        &*self.mnemonic == DATA
    }
}

/// The mnemonic of bytes that are not an instruction.
pub(super) const DATA: &str = ".byte";

/// Machine code to disassemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeRequest<'a> {
    pub(crate) machine: InstructionSet,
    pub(crate) syntax: Syntax,
    /// Address of the first byte.
    pub(crate) start: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether to disassemble only the instruction at the start, if there is one.
    pub(crate) is_first_only: bool,
}

/// The reason why code was not disassembled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DisassemblyError {
    /// The decoder or its process cannot be set up.
    #[error("the disassembler cannot be set up: {0}")]
    SetUp(String),
    /// The process that decodes the code failed.
    #[error("the disassembler's process failed on the {size} bytes of code at {start:#x}: {how}")]
    Failed {
        /// Address of the code.
        start: u64,
        /// Size of the code.
        size: usize,
        /// What the process did.
        how: String,
    },
    /// The process has failed too often to be started again.
    #[error("the disassembler's process has failed too often; its last error: {0}")]
    GaveUp(String),
}
