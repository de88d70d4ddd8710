//! Converts records, in time order, to finished system calls.

use super::selection::CallSelection;
use std::sync::Arc;

use pmc_perfdata::record::{Layouts, RawRecord, Thread, kind};
use pmc_sys::abi::syscall::SyscallAbi;

use super::decoder::{SyscallDecoder, SyscallEvent};
use super::memory::CallMemory;
use super::tracer::{CallResult, EnteredCall, SyscallTracer, TraceCounts, TracedCall};

/// Which finished calls to keep.
#[derive(Debug, Clone, Default)]
pub(super) struct CallFilter {
    /// The calls to keep.
    pub(super) selection: CallSelection,
    /// Minimum duration of a call, in nanoseconds.
    pub(super) least_ns: u64,
    /// Whether to keep only calls that fail.
    pub(super) only_failed: bool,
}

impl CallFilter {
    /// Whether the call is among those to keep, regardless of its duration and result.
    pub(super) fn selects(&self, call: &EnteredCall) -> bool {
        self.selection.is_all() || self.selection.has(call.call().map(|call| call.name))
    }

    /// Whether to keep this call.
    pub(super) fn keeps(&self, call: &TracedCall) -> bool {
        self.selects(&call.entered)
            && call.duration() >= self.least_ns
            && (!self.only_failed || matches!(call.result, CallResult::Error(_)))
    }
}

/// Reads records in time order.
#[derive(Debug)]
pub(super) struct SyscallFeed {
    layouts: Arc<Layouts>,
    /// A decoder for each event; `None` for events of other tracepoints.
    decoders: Vec<Option<SyscallDecoder>>,
    /// Whether there are events for all system calls. If there are, the events for individual system calls
    /// only add strings.
    has_all_calls: bool,
    /// The ABI of calls that are not known to be 32-bit calls.
    abi: SyscallAbi,
    /// Tracks the calls in progress, and the threads.
    pub(super) tracer: SyscallTracer,
}

/// The part of a sample that describes a system call.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventPayload<'a> {
    /// Index of the event.
    pub(super) event: usize,
    /// The tracepoint's payload.
    pub(super) payload: &'a [u8],
    /// The ABI of the sample's registers, if it has any.
    pub(super) registers: Option<u64>,
}

impl<'a> EventPayload<'a> {
    /// Returns the payload and the thread of a sample; `None` if the record is not a sample or has no
    /// payload.
    #[inline]
    fn from_record(raw: &RawRecord<'a>, layouts: &'a Layouts) -> Option<(Thread, Self)> {
        let (event, sample) = layouts.sample(raw)?;
        let parts = sample.parts()?;
        let registers = parts.user_regs.map(|registers| registers.abi);
        Some((sample.thread()?, Self { event, payload: parts.raw?, registers }))
    }
}

/// The ABI number for 32-bit registers in a sample (`PERF_SAMPLE_REGS_ABI_32`).
const REGISTERS_32: u64 = 1;

impl SyscallFeed {
    /// Creates a feed for records with these layouts, with one decoder per event.
    pub(super) fn new(
        layouts: Arc<Layouts>,
        decoders: Vec<Option<SyscallDecoder>>,
        abi: SyscallAbi,
        tracer: SyscallTracer,
    ) -> Self {
        let has_all_calls = decoders.iter().flatten().any(|decoder| !decoder.is_of_one_call());
        Self { layouts, decoders, has_all_calls, abi, tracer }
    }

    /// Decodes a sample; `None` if it does not belong to a system call.
    #[inline]
    pub(super) fn decode(&self, raw: &RawRecord<'_>) -> Option<(Thread, SyscallAbi, SyscallEvent)> {
        let (thread, sample) = EventPayload::from_record(raw, &self.layouts)?;
        let (_, abi, event) = self.event(sample)?;
        Some((thread, abi, event))
    }

    /// Decodes the payload of an event; `None` if it does not belong to a system call.
    #[inline]
    fn event(&self, sample: EventPayload<'_>) -> Option<(&SyscallDecoder, SyscallAbi, SyscallEvent)> {
        let decoder = self.decoders.get(sample.event)?.as_ref()?;
        let decoded = decoder.decode(sample.payload)?;
        let is_32_bit = sample.registers == Some(REGISTERS_32);
        Some((decoder, if is_32_bit { self.abi.of_32_bits() } else { self.abi }, decoded))
    }

    /// Handles a record. Returns the call that it ends, if any. `memory` contains the data to which the
    /// event's arguments point.
    #[inline]
    pub(super) fn record(
        &mut self,
        time: u64,
        raw: &RawRecord<'_>,
        memory: CallMemory,
    ) -> Option<TracedCall> {
        if raw.kind != kind::SAMPLE {
            return self.tracer.apply(time, &raw.parse()?);
        }
        let layouts = Arc::clone(&self.layouts);
        let (thread, sample) = EventPayload::from_record(raw, &layouts)?;
        self.handle(time, thread, sample, memory, Box::default)
    }

    /// Handles an event. Calls `stack` if a system call begins.
    #[inline]
    pub(super) fn handle(
        &mut self,
        time: u64,
        thread: Thread,
        sample: EventPayload<'_>,
        mut memory: CallMemory,
        stack: impl FnOnce() -> Box<[u32]>,
    ) -> Option<TracedCall> {
        let (decoder, abi, decoded) = self.event(sample)?;
        if decoder.has_texts() {
            memory.merge(decoder.texts(sample.payload));
        }
        if decoder.is_of_one_call() && self.has_all_calls {
            if let SyscallEvent::Enter(number, _) = decoded {
                self.tracer.add_memory(thread, number, memory);
            }
            return None;
        }
        match decoded {
            SyscallEvent::Enter(number, arguments) => {
                let stack = stack();
                self.tracer.enter(EnteredCall { thread, abi, number, arguments, begin: time, memory, stack });
                None
            }
            SyscallEvent::Exit(number, result) => {
                let mut call = self.tracer.exit(thread, time, abi, number, result)?;
                call.entered.memory.finish(memory);
                Some(call)
            }
        }
    }

    /// Returns the number of calls, losses and other counts so far.
    pub(super) fn counts(&self) -> TraceCounts {
        self.tracer.counts()
    }
}
