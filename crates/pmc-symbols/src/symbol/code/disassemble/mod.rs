//! Disassembler: converts machine code to instructions and their targets.
//!
//! Takes bytes and their instruction set; returns [`Instruction`]s with the addresses of jump and call
//! targets, to which [`code`](super) adds names. Does not run any other program. Bytes that are not an
//! instruction become `.byte`, so that the output covers every byte.
//!
//! The bytes are untrusted, and the decoder is a C library. So pmc decodes them in a process without any
//! privileges ([`decode_in`]). Without this call, as in unit tests and fuzz targets, this process decodes.
//!
//! ```text
//!   pmc                                            pmc as pmc-disassembler: no privileges, one socket
//!   process   CodeRequest ------ messages ------>  process: serve
//!                                                  decoder (capstone), gnu_syntax
//!   process   Vec<Instruction> <-- messages -----
//!             checked like any other input
//! ```

mod decoder;
mod gnu_syntax;
mod instruction;
mod messages;
mod process;

use std::ops::ControlFlow;

use self::decoder::Decoders;
pub(crate) use self::instruction::CodeRequest;
pub use self::instruction::{DisassemblyError, Flow, Instruction, InstructionSet, InstructionTarget, Syntax};
pub use self::process::{DisassemblerProcess, PROCESS_NAME, SeparateDecoding, decode_in, serve};

/// Disassembles all of `bytes`, whose address is `start`.
///
/// # Errors
/// Fails if the decoder cannot be set up, or if its process fails.
pub fn disassemble(
    machine: InstructionSet,
    syntax: Syntax,
    bytes: &[u8],
    start: u64,
) -> Result<Vec<Instruction>, DisassemblyError> {
    disassemble_each(&[CodeRequest { machine, syntax, start, bytes, is_first_only: false }]).remove(0)
}

/// Disassembles several pieces of code, which is faster than one at a time. Returns a result for each.
pub(super) fn disassemble_each(codes: &[CodeRequest<'_>]) -> Vec<Result<Vec<Instruction>, DisassemblyError>> {
    process::answers(codes).unwrap_or_else(|| {
        let mut decoders = Decoders::default();
        let one = |code| {
            let mut all = Vec::new();
            decoders.decode(code, &mut |instruction| {
                all.push(instruction);
                ControlFlow::Continue(())
            })?;
            Ok(all)
        };
        codes.iter().map(one).collect()
    })
}
