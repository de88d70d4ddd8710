//! Unwinds stack copies: converts the registers and stack bytes in a sample to a chain of addresses.
//!
//! Takes each module's unwind tables once ([`UnwindTables`]), the modules of a process at a point in time
//! ([`Space`]), and samples. Returns chains, each with the reason why it ends ([`ChainEnd`]). Does not open
//! files, read recordings or resolve symbols; the caller finds the files.
//!
//! ```text
//!   Tables (one per file)        --+
//!   Tables                       --+--> Space (one per epoch) ----------+
//!                                            sample (regs, stack) -+--> Walker (one per thread) --> walk
//!   StackUnwinder: walks many samples, and joins truncated stacks --> chains
//! ```

mod arch;
mod callers;
mod code;
mod entries;
mod frame;
mod go_frames;
mod joiner;
mod registers;
mod row;
mod section;
mod signal_frame;
mod space;
mod stacks;
mod stitcher;
mod tables;
mod tracked;
mod walker;
mod x86;

pub use arch::Arch;
pub use frame::{ChainEnd, StackFrame};
pub use registers::UnwindRegisters;
pub(crate) use section::short_cie;
pub use space::Space;
pub use stacks::{StackUnwinder, StackWalker, UnwoundStack};
pub use stitcher::Stitcher;
pub use tables::UnwindTables;
pub use walker::Walker;
