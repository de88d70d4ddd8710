//! Waits in progress, with the stack at their start, and the parts of waits that samples describe.

use pmc_perfdata::record::{Thread, WaitPartner};

/// Length, in words, of a call chain that consists of a marker and one address.
pub(super) const SHORT: usize = 2;

/// A thread's stack when it left the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SwitchStack {
    /// The call chain with its markers, innermost first, and its first address.
    pub(super) chain: Vec<u64>,
    pub(super) ip: u64,
}

/// A wait in progress.
pub(super) struct Wait {
    pub(super) thread: Thread,
    pub(super) cpu: u32,
    pub(super) is_runnable: bool,
    pub(super) stack: Option<SwitchStack>,
    /// When the wait began, and whether the kernel sampled stacks then.
    pub(super) since: u64,
    pub(super) sampling: StackSampling,
    /// Time up to which samples of this wait have been written.
    pub(super) written: u64,
}

impl Wait {
    /// Creates a wait without a stack.
    pub(super) fn new(thread: Thread, cpu: u32, is_runnable: bool, since: u64) -> Self {
        Self { thread, cpu, is_runnable, stack: None, since, sampling: StackSampling::All, written: since }
    }

    /// Whether reading the stack again may find more callers.
    pub(super) fn has_short_stack(&self) -> bool {
        self.stack.as_ref().is_none_or(|stack| stack.chain.len() <= SHORT)
    }

    pub(super) fn owner(&self, part: &WaitPart) -> WaitOwner {
        let WaitPart { is_runnable, partner, .. } = *part;
        WaitOwner { thread: self.thread, cpu: self.cpu, is_runnable, partner }
    }
}

/// The thread of a wait, its last CPU, whether it was runnable, and the other side of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitOwner {
    pub(super) thread: Thread,
    pub(super) cpu: u32,
    pub(super) is_runnable: bool,
    pub(super) partner: WaitPartner,
}

/// A part of a wait during which the thread's state was the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitPart {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) is_runnable: bool,
    pub(super) partner: WaitPartner,
}

/// Which stacks the kernel samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) enum StackSampling {
    /// All stacks are sampled.
    All,
    /// No stacks are sampled.
    Pause,
    /// All stacks are sampled, during a window. Each stack represents this number of waits.
    Window(u64),
}
