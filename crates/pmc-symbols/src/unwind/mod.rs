//! Unwinds stacks that the kernel copied with a sample: converts registers and stack bytes to a chain of
//! addresses.
//!
//! Receives each module's unwind tables once ([`UnwindTables`]), the modules of a process at a point in time
//! ([`Space`]), and samples. Returns chains with the reason why each ends ([`ChainEnd`]). Opens no files and
//! knows nothing about recordings: the caller finds the files. Does not resolve symbols.
//!
//! ```text
//!   Tables (one per file)        --+
//!   Tables                       --+--> Space (one per epoch) ----------+
//!                                            sample (regs, stack) -+--> Walker (one per thread) --> walk
//!   StackUnwinder: walks many samples, and joins truncated stacks --> chains
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
use joiner::Joiner;
pub use registers::UnwindRegisters;
pub use space::Space;
pub use stacks::{StackUnwinder, StackWalker, UnwoundStack};
pub use stitcher::Stitcher;
pub use tables::UnwindTables;
pub use walker::{ChainEnd, StackFrame, Walker};
