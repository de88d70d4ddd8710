//! The frames of a stack, and why a chain of frames ends.

use crate::address::Avma;

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackFrame {
    /// The address in the frame's function.
    pub address: Avma,
    pub(super) kind: AddressKind,
    /// The stack pointer at this address, or 0 for frames from the kernel's chain. Address and stack pointer
    /// together identify a frame of a thread.
    pub(crate) sp: u64,
}

/// What an address means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AddressKind {
    /// The sampled address.
    #[default]
    Sampled,
    /// A return address, after a call.
    Returned,
    /// The address at which a signal interrupted the function, or the first of the code that returns from the
    /// signal.
    Interrupted,
}

impl StackFrame {
    pub(super) fn sampled(address: Avma, sp: u64) -> Self {
        Self { address, sp, kind: AddressKind::Sampled }
    }

    pub(super) fn returned_to(address: Avma, sp: u64) -> Self {
        Self { address, sp, kind: AddressKind::Returned }
    }

    /// Whether the address is that of the next instruction, not behind a call.
    pub(super) fn is_exact(&self) -> bool {
        self.kind != AddressKind::Returned
    }

    /// Whether a signal interrupted the function here, or the code returns from a signal.
    pub(super) fn is_of_signal(&self) -> bool {
        self.kind == AddressKind::Interrupted
    }

    /// Returns the address to look up in tables. For a return address, it is inside the call instruction.
    pub(super) fn lookup(&self) -> u64 {
        if self.is_exact() { self.address.0 } else { self.address.0.wrapping_sub(1) }
    }

    /// Returns the frame's word in a chain. All readers of chains look up callers one byte before their
    /// address, so an exact address of a caller is stored as one more.
    pub(super) fn word(&self) -> u64 {
        self.address.0.wrapping_add(u64::from(self.is_of_signal()))
    }
}

/// Why a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// The tables mark the outermost frame.
    Root,
    /// The next frame is beyond the end of the copy.
    Cut,
    /// The next frame is beyond the end of a copy that is shorter than requested. Either the tables are
    /// wrong, or the kernel could not read a page of the stack that the program has never used.
    Unread,
    /// The code at this address has no unwind tables, and the frame pointer did not lead to a caller.
    NoTables(Avma),
    /// The tables did not lead to a caller, because they are wrong or the stack is damaged.
    Lost,
    /// The chain reached its maximum length.
    Long,
}
