//! Recordings of each thread's whole time, in which several events together measure how long threads ran and
//! waited.
//!
//! Determines which event of a recording measures which state: samples of the clock event measure running
//! time, and samples of the off-CPU events measure waiting time ([`ThreadState`]).

use std::str::FromStr;

use super::parallelism::RunningTime;
use pmc_perfdata::perfdata::{BLOCKED_EVENT, RUNNABLE_EVENT, RecordedEvent};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic::{BPF_OUTPUT, CPU_CLOCK, TASK_CLOCK};
use pmc_sys::abi::sample_type;
use pmc_sys::error::Error;

/// Name of the combined event for running and waiting time.
pub const WALL_CLOCK: &str = "wall-clock";

/// The thread state that an event's samples represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    /// The thread ran during the period.
    Running,
    /// The thread waited for a CPU.
    Runnable,
    /// The thread waited for something else.
    Blocked,
}

impl ThreadState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Running, Self::Runnable, Self::Blocked];

    /// Returns the state for events whose periods are nanoseconds of a thread's time; `None` for other
    /// events.
    pub fn from_event(event: &RecordedEvent) -> Option<Self> {
        let name = event.name.as_deref();
        match (event.attr.kind(), event.attr.config()) {
            (kind::SOFTWARE, CPU_CLOCK | TASK_CLOCK) => Some(Self::Running),
            (kind::SOFTWARE, BPF_OUTPUT) if name == Some(BLOCKED_EVENT) => Some(Self::Blocked),
            (kind::SOFTWARE, BPF_OUTPUT) if name == Some(RUNNABLE_EVENT) => Some(Self::Runnable),
            _ => None,
        }
    }

    /// Returns the state with this number (`self as u64`).
    pub fn of_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u64 == number)
    }

    /// Returns the state with the most time; `None` if all sums are 0. `sums` is indexed by `self as usize`.
    pub fn longest(sums: [u64; 3]) -> Option<Self> {
        let states = [Self::Blocked, Self::Runnable, Self::Running];
        let longest = states.into_iter().max_by_key(|state| sums[*state as usize])?;
        Some(longest).filter(|state| sums[*state as usize] > 0)
    }

    /// Returns the name of the event that shows only this state.
    pub fn event_name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Runnable => "runnable",
            Self::Blocked => "waiting",
        }
    }

    /// Returns the word shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Runnable => "runnable",
            Self::Blocked => "blocked",
        }
    }

    /// Whether the thread was off the CPU.
    pub fn is_off_cpu(self) -> bool {
        self != Self::Running
    }

    /// Returns the time at which a thread entered this state, given the time and period of a sample. A wait
    /// began one period before its sample. A running thread is known to have run only at the time of the
    /// sample.
    pub(crate) fn since(self, time: u64, period: u64) -> u64 {
        if self.is_off_cpu() { time.saturating_sub(period) } else { time }
    }
}

/// A word that selects one or several states, such as `waiting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateWord {
    /// The word.
    pub word: &'static str,
    /// The states that it selects.
    pub states: &'static [ThreadState],
}

impl StateWord {
    const ALL: [Self; 5] = [
        Self { word: "running", states: &[ThreadState::Running] },
        Self { word: "runnable", states: &[ThreadState::Runnable] },
        Self { word: "blocked", states: &[ThreadState::Blocked] },
        Self { word: "waiting", states: &[ThreadState::Runnable, ThreadState::Blocked] },
        Self { word: "all", states: &ThreadState::ALL },
    ];

    /// Returns the states that the words select together; `None`, which means all, if there are no words.
    pub fn states(words: &[Self]) -> Option<Vec<ThreadState>> {
        (!words.is_empty()).then(|| words.iter().flat_map(|word| word.states).copied().collect())
    }
}

impl FromStr for StateWord {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|one| one.word == text.trim()).ok_or_else(|| {
            Error::usage(format!("{text:?} is not a thread state"))
                .try_this("one of running, runnable, blocked, waiting (the last two), all")
        })
    }
}

/// The events that together measure the threads' time.
///
/// All periods are in nanoseconds, so their sum is the total lifetime of the threads. Reports show the states
/// as separate events, because running time is sampled and waiting time is not. Exports and the live view
/// show them as one event ([`ThreadTime::joint`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTime {
    /// The state that each event of the recording measures; `None` for other events.
    states: Vec<Option<ThreadState>>,
    /// Index of the combined event, which is the first of them.
    event: usize,
}

impl ThreadTime {
    /// Returns `None` if the recording has no off-CPU time.
    pub fn from_events(events: &[RecordedEvent]) -> Option<Self> {
        let mut states: Vec<Option<ThreadState>> = events.iter().map(ThreadState::from_event).collect();
        if !states.iter().flatten().any(|state| state.is_off_cpu()) {
            return None;
        }
        // If there are several clock events, only one of them may count.
        let mut has_clock = false;
        for state in &mut states {
            if *state == Some(ThreadState::Running) && std::mem::replace(&mut has_clock, true) {
                *state = None;
            }
        }
        let event = states.iter().position(Option::is_some)?;
        Some(Self { states, event })
    }

    /// Whether the recording contains the wakers of waiting threads.
    pub fn has_partners(events: &[RecordedEvent]) -> bool {
        let is_wait =
            |event: &&RecordedEvent| ThreadState::from_event(event).is_some_and(ThreadState::is_off_cpu);
        events.iter().filter(is_wait).any(|event| event.attr.sample_type() & sample_type::ADDR != 0)
    }

    /// Returns the state that an event measures; `None` for an event that does not measure threads' time.
    #[inline]
    pub(crate) fn state(&self, event: usize) -> Option<ThreadState> {
        self.states.get(event).copied().flatten()
    }

    /// Returns the event under which the live view counts samples of this event, and the state of their
    /// threads.
    #[inline]
    pub(crate) fn joint(&self, event: usize) -> (usize, Option<ThreadState>) {
        match self.state(event) {
            Some(state) => (self.event, Some(state)),
            None => (event, None),
        }
    }

    /// Returns the name of the combined event if `event` is that event.
    pub(crate) fn name(&self, event: usize) -> Option<&'static str> {
        let has_clock = self.states.contains(&Some(ThreadState::Running));
        (event == self.event).then_some(if has_clock { WALL_CLOCK } else { BLOCKED_EVENT })
    }
}

/// How much of a thread's time the samples cover. Times are in nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadSpan {
    /// Start of the thread's first wait, or time of its first sample or switch.
    pub(crate) begin: u64,
    /// Time of the thread's last sample or switch.
    pub(crate) end: u64,
    /// Sum of the waiting time.
    pub(crate) waited: u64,
    /// Sum of the running time: exact if context switches were recorded, else an estimate from samples.
    pub(crate) ran: u64,
    /// Whether the running time is exact.
    pub(crate) is_exact: bool,
}

impl ThreadSpan {
    /// Adds a span of the same thread.
    pub(crate) fn include(&mut self, other: Self) {
        self.begin = self.begin.min(other.begin);
        self.end = self.end.max(other.end);
        self.waited = self.waited.saturating_add(other.waited);
        self.ran = self.ran.saturating_add(other.ran);
    }

    /// Replaces the estimated running time with the exact one.
    pub(super) fn ran_exactly(&mut self, time: &RunningTime) {
        (self.begin, self.end) = (self.begin.min(time.begin), self.end.max(time.end));
        (self.ran, self.is_exact) = (time.running, true);
    }
}
