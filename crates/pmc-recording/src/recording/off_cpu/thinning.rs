//! Limits the number of stacks that the kernel samples, for programs with many context switches.
//!
//! Receives the records of switches; switches the sampling on and off, and returns the times of these
//! changes. The `SWITCH` records continue, so the times of all waits remain exact.
//! [`WaitShares`](super::shares::WaitShares) then distributes the waits without stacks.
//!
//! ```text
//!   switches   ││││││││││││││││││││││││││││││││││││││││││││││││
//!   stacks     ││││            ││││     ││││               ││││     a window each 20 ms on average
//! ```

use std::collections::VecDeque;
use std::io;

use super::events::{STACK_COPY, is_switch_event};
use super::wait::StackSampling;
use pmc_events::counter::rings::Rings;
use pmc_perfdata::record::{RawRecord, kind};
use pmc_sys::abi::misc;
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::sys::clock;

/// Number of switches per second above which not all stacks are sampled.
const MAX_SAMPLED_RATE: f64 = 20_000.0;
/// Number of stacks per second to sample if the rate of switches exceeds [`MAX_SAMPLED_RATE`].
const WANTED: f64 = 10_000.0;
/// Minimum and maximum of the average number of stacks in a window. They should fit into half of a ring.
const IN_WINDOW: (f64, f64) = (50.0, 200.0);
/// Minimum number of switches for measuring their rate, unless [`LONGEST`] passes first. With fewer, a short
/// burst of switches would start the thinning.
const LEAST: u64 = 1000;
/// Maximum time for which the rate of switches is measured, in nanoseconds.
const LONGEST: u64 = 100_000_000;
/// Maximum share of time to spend on switching the sampling on and off, which is slow if many threads inherit
/// the event.
const MOST_SWITCHING: f64 = 0.02;

const SECOND: f64 = 1e9;

/// Decides when the kernel samples the stacks of switches. Times are nanoseconds of the monotonic clock.
pub(in crate::recording) struct StackThinning {
    /// The windows, if not all stacks are sampled.
    windows: Option<SamplingWindows>,
    is_sampling: bool,
    /// Whether the events are on, apart from pauses.
    is_on: bool,
    /// Time of the next change, if there are windows.
    next: u64,
    /// Number of switches so far.
    switches: u64,
    /// Time and number of switches when the current rate measurement started.
    measured: (u64, u64),
    /// Time that the last change took.
    change_ns: u64,
    ring_bytes: u64,
    random: u64,
}

/// Lengths of windows and of the pauses between them, in nanoseconds.
///
/// Sampling the stack makes a switch 3 to 6 µs slower and needs 4 KiB in the ring. Above [`MAX_SAMPLED_RATE`]
/// switches per second, the kernel therefore samples stacks only during short windows. The pauses between
/// windows have random lengths. Otherwise, a program that alternates between two waits could be sampled at
/// only one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SamplingWindows {
    window: f64,
    /// Average length.
    pause: f64,
}

impl SamplingWindows {
    /// Returns the windows for a rate of switches per second, and rings of this size.
    fn new(rate: f64, ring_bytes: u64, change_ns: u64) -> Self {
        let room = ring_bytes as f64 / 2.0 / f64::from(STACK_COPY);
        let window = room.clamp(IN_WINDOW.0, IN_WINDOW.1) / rate * SECOND;
        let least = 2.0 * change_ns as f64 / MOST_SWITCHING;
        Self { window, pause: (window * (rate / WANTED - 1.0)).max(least - window) }
    }

    /// Returns the number of waits that a sampled wait represents.
    fn weight(self) -> u64 {
        ((self.window + self.pause) / self.window).round().max(1.0) as u64
    }
}

/// Stages of a drain at which the sampling may change. Draining takes longer than a window, so a window ends
/// before the rings are drained, and the next one begins when they have room again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recording) enum DrainStage {
    Before,
    /// Between both passes over the rings.
    Between,
    After,
}

impl StackThinning {
    pub(in crate::recording) fn new() -> Self {
        let now = clock::monotonic_ns();
        Self {
            windows: None,
            is_sampling: true,
            is_on: true,
            next: 0,
            switches: 0,
            measured: (now, 0),
            change_ns: 0,
            ring_bytes: 0,
            random: now | 1,
        }
    }

    /// Returns the time of the next change.
    pub(in crate::recording) fn due(&self) -> Option<u64> {
        self.windows.map(|_| self.next)
    }

    /// Counts a switch.
    pub(in crate::recording) fn note(&mut self, record: &RawRecord<'_>) {
        let is_switch = matches!(record.kind, kind::SWITCH | kind::SWITCH_CPU_WIDE);
        self.switches += u64::from(is_switch && record.misc & misc::SWITCH_OUT != 0);
    }

    /// Changes the sampling if a change is due. Returns the change and the time from which it applies.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(in crate::recording) fn apply(
        &mut self,
        rings: &Rings,
        stage: DrainStage,
    ) -> Result<Option<(u64, StackSampling)>> {
        if !self.is_on {
            return Ok(None);
        }
        let before = clock::monotonic_ns();
        self.ring_bytes = rings.ring_bytes();
        let Some(sampling) = self.advance(before, stage) else { return Ok(None) };
        let is_pause = sampling == StackSampling::Pause;
        rings.switch_each(!is_pause, is_switch_event).map_err(changing)?;
        let after = clock::monotonic_ns();
        self.change_ns = after - before;
        if is_pause {
            say::warn(Warning::note_once(
                "more than 20,000 context switches per second: only some stacks are sampled; waiting times \
                 remain exact",
            ));
        }
        // While the events are changed one after another, some stacks are not sampled.
        Ok(Some((if is_pause { before } else { after }, sampling)))
    }

    /// Samples all stacks from now on.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(in crate::recording) fn end(mut self, rings: &Rings) -> Result<(u64, StackSampling)> {
        if !self.is_sampling {
            rings.switch_each(true, is_switch_event).map_err(changing)?;
        }
        Ok(self.restart(true))
    }

    /// Restarts after the events have been switched on or off. If they are off, pmc does not change the
    /// sampling.
    pub(in crate::recording) fn restart(&mut self, is_on: bool) -> (u64, StackSampling) {
        let now = clock::monotonic_ns();
        self.is_on = is_on;
        (self.windows, self.is_sampling, self.measured) = (None, true, (now, self.switches));
        (now, StackSampling::All)
    }

    /// Returns the change that is due now, if any.
    fn advance(&mut self, now: u64, stage: DrainStage) -> Option<StackSampling> {
        let before = self.windows;
        // The number of switches is complete only after draining.
        if stage != DrainStage::Before {
            self.measure(now);
        }
        let Some(windows) = self.windows else {
            self.is_sampling = true;
            return before.map(|_| StackSampling::All);
        };
        let (length, change) = match (self.is_sampling, stage) {
            (true, _) => (2.0 * windows.pause * self.random(), StackSampling::Pause),
            (false, DrainStage::After) if now >= self.next => {
                (windows.window, StackSampling::Window(windows.weight()))
            }
            (false, _) => return None,
        };
        self.is_sampling = change != StackSampling::Pause;
        self.next = now + length as u64;
        Some(change)
    }

    /// Measures the rate of switches at intervals.
    fn measure(&mut self, now: u64) {
        let (since, before) = self.measured;
        let (time, new) = (now.saturating_sub(since), self.switches - before);
        if time == 0 || new < LEAST && time < LONGEST {
            return;
        }
        self.measured = (now, self.switches);
        let rate = new as f64 / time as f64 * SECOND;
        // Do not alternate between both states if the rate is near the limit.
        let most = if self.windows.is_some() { MAX_SAMPLED_RATE * 0.75 } else { MAX_SAMPLED_RATE };
        self.windows = (rate > most).then(|| SamplingWindows::new(rate, self.ring_bytes, self.change_ns));
    }

    /// Returns a random number from 0 to 1 (xorshift64).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn changing(error: io::Error) -> Error {
    Error::io("switching stack sampling on or off", error)
}

/// The changes of the sampling over time. They are needed when the records of switches arrive later.
pub(super) struct SamplingHistory {
    /// Each change with its time. The first change has taken effect; the others may not have.
    changes: VecDeque<(u64, StackSampling)>,
}

impl SamplingHistory {
    pub(super) fn new() -> Self {
        Self { changes: VecDeque::from([(0, StackSampling::All)]) }
    }

    /// Adds a change. Times must not decrease.
    pub(super) fn add(&mut self, time: u64, sampling: StackSampling) {
        self.changes.push_back((time, sampling));
    }

    /// Returns the sampling at a time. Times must not decrease, except for times before the previous change.
    pub(super) fn at(&mut self, time: u64) -> StackSampling {
        while self.changes.get(1).is_some_and(|(begin, _)| *begin <= time) {
            self.changes.pop_front();
        }
        self.changes.front().map_or(StackSampling::All, |(_, sampling)| *sampling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs a program with this many switches per second until this time; returns the changes.
    fn run(thinning: &mut StackThinning, begin: u64, rate: u64, until: u64) -> Vec<(u64, StackSampling)> {
        let step = MS / 10;
        let mut changes = Vec::new();
        for time in (begin..until).step_by(step as usize) {
            thinning.switches += rate * step / 1_000_000_000;
            // The loop wakes up when a change is due, and drains the rings.
            let is_due = thinning.due().is_none_or(|due| due <= time);
            let stages = [DrainStage::Before, DrainStage::Between, DrainStage::After];
            for stage in stages.into_iter().filter(|_| is_due) {
                changes.extend(thinning.advance(time, stage).map(|sampling| (time, sampling)));
            }
        }
        changes
    }

    fn thinning() -> StackThinning {
        StackThinning {
            measured: (0, 0),
            ring_bytes: 8 << 20,
            random: 88_172_645_463_325_252,
            ..StackThinning::new()
        }
    }

    #[test]
    fn stacks_of_few_switches_are_all_sampled() {
        assert_eq!(run(&mut thinning(), 0, 10_000, 5000 * MS), []);
    }

    #[test]
    fn many_switches_are_sampled_in_random_windows() {
        let mut thinning = thinning();
        let changes = run(&mut thinning, 0, 200_000, 20_000 * MS);
        assert!(changes.len() > 1000 && changes[0].0 <= 11 * MS, "{:?}", &changes[..3]);
        let (mut sampled, mut lengths) = (0, Vec::new());
        for pair in changes.windows(2) {
            let length = pair[1].0 - pair[0].0;
            match pair[0].1 {
                StackSampling::Window(weight) => {
                    assert_eq!(weight, 20);
                    sampled += length;
                }
                _ => lengths.push(length / MS),
            }
        }
        let share = sampled as f64 / (20_000.0 * MS as f64);
        assert!((0.04..0.06).contains(&share), "{share}");
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 20, "pauses of all lengths: {lengths:?}");
    }

    #[test]
    fn late_drains_are_no_burst_of_switches() {
        let mut thinning = thinning();
        for drain in 1..20 {
            let now = drain * 300 * MS;
            let changes = [DrainStage::Before, DrainStage::After].map(|stage| {
                // Draining finds the switches since the previous drain: 10,000 per second.
                thinning.switches += if stage == DrainStage::After { 3000 } else { 0 };
                thinning.advance(now, stage)
            });
            assert_eq!(changes, [None, None]);
        }
    }

    #[test]
    fn thinning_ends_when_switches_become_few() {
        let mut thinning = thinning();
        run(&mut thinning, 0, 200_000, 1000 * MS);
        let changes = run(&mut thinning, 1000 * MS, 10_000, 3000 * MS);
        assert_eq!(changes.last().map(|(_, sampling)| *sampling), Some(StackSampling::All));
        assert_eq!(thinning.due(), None);
    }

    #[test]
    fn slow_changes_are_rare() {
        let fast = SamplingWindows::new(100_000.0, 8 << 20, 10_000);
        assert_eq!(fast, SamplingWindows { window: 2e6, pause: 18e6 });
        let slow = SamplingWindows::new(100_000.0, 8 << 20, 5 * MS);
        assert_eq!(slow.window + slow.pause, 500e6);
    }

    #[test]
    fn history_finds_the_sampling_of_late_records() {
        let mut history = SamplingHistory::new();
        history.add(100, StackSampling::Pause);
        history.add(200, StackSampling::Window(5));
        let all = [50, 100, 199, 200, 300].map(|time| history.at(time));
        use StackSampling::{All, Pause, Window};
        assert_eq!(all, [All, Pause, Pause, Window(5), Window(5)]);
    }
}
