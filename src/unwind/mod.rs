//! Unwinding of stacks that were copied when a sample was taken: registers and stack bytes in, a chain of
//! addresses out.
//!
//! Receives each module's unwind tables once ([`Tables`]), the modules of a process at one time ([`Space`]),
//! and samples; hands on chains with the reason why each ends ([`End`]). Opens nothing and knows no
//! recording: whoever calls finds the files. Decides nothing about symbols.
//!
//! ```text
//!   Tables (one a file, shared)  --+
//!   Tables                       --+--> Space (one an epoch) -----------+
//!                                            sample (regs, stack) -+--> Walker (one a thread) --> walk
//!   StackUnwinder: many samples at once, and what cut stacks are joined with --> chains
//! ```

mod arch;
mod code;
mod entries;
mod joiner;
mod registers;
mod space;
mod stacks;
mod stitcher;
mod tables;
mod walker;
mod x86;

pub use arch::Arch;
pub use code::Program;
use joiner::Joiner;
pub use registers::Registers;
pub use space::Space;
pub use stacks::{StackUnwinder, StackWalker, UnwoundStack};
pub use stitcher::Stitcher;
pub use tables::Tables;
pub use walker::{End, Frame, Walker};
