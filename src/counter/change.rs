//! What of an open event can be changed while it runs: how often it samples, and where a breakpoint lies.
//!
//! Receives the instances of events (a thread's, a CPU's) with what they were opened with; hands on whether
//! the kernel made the change, or why it is not made. Which events are meant is the caller's to say.
//!
//! Source: `_perf_event_period` and `perf_event_modify_attr` in `kernel/events/core.c`.

use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CPU_CLOCK, TASK_CLOCK};
use crate::abi::{Attr, sample_type};
use crate::error::kernel_words;
use crate::sys::perf::EventFd;

/// The kernel's timers that sample clocks fire no more often (`perf_swevent_start_hrtimer`), in nanoseconds.
pub const SHORTEST_CLOCK_NS: u64 = 10_000;

/// Whether it is one of the kernel's clocks. Their timers have periods: a frequency becomes one when it
/// is opened, and stands in each sample (`perf_swevent_init_hrtimer`).
pub fn is_clock(attr: &Attr) -> bool {
    attr.kind() == kind::SOFTWARE && [CPU_CLOCK, TASK_CLOCK].contains(&attr.config())
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A sample every so many occurrences.
    Period(u64),
    /// So many samples a second.
    Frequency(u64),
    /// A sample of a clock every so many nanoseconds: its samples go on saying the period that it was opened
    /// with, which whoever orders this puts right.
    ClockPeriod(u64),
    /// The breakpoint lies there, with the length and kind of access that it has.
    Address(u64),
}

impl Change {
    /// Changes these instances. `is_on`: whether they count at the moment.
    ///
    /// # Errors
    /// Why not, in words. Nothing is changed unless all can be; where the kernel refuses one, those before
    /// it are changed.
    pub fn make<'e>(
        self,
        instances: impl Iterator<Item = (&'e Attr, &'e EventFd)> + Clone,
        is_on: bool,
    ) -> Result<(), String> {
        if instances.clone().next().is_none() {
            return Err("no counter of it is open here".to_owned());
        }
        instances.clone().try_for_each(|(attr, _)| self.check(attr))?;
        for (attr, fd) in instances {
            let done = match self {
                Self::Period(number) | Self::Frequency(number) | Self::ClockPeriod(number) => {
                    fd.set_period(number)
                }
                Self::Address(address) => fd.modify(&moved(attr, address, is_on)),
            };
            done.map_err(|error| format!("the kernel refuses it: {}", kernel_words(&error)))?;
        }
        Ok(())
    }

    /// Whether the kernel makes it for the task alone that the event is open on: not for those who have
    /// inherited it, and for nobody once it was exchanged with a child's that has ended.
    pub(super) fn is_of_one_task(self) -> bool {
        !matches!(self, Self::Address(_))
    }

    /// As an order: `period EVENT 1000`.
    pub fn as_order(self, event: Option<&str>) -> String {
        let (word, number) = match self {
            Self::Period(number) | Self::ClockPeriod(number) => ("period", number.to_string()),
            Self::Frequency(hertz) => ("freq", hertz.to_string()),
            Self::Address(address) => ("move", format!("{address:#x}")),
        };
        [Some(word), event, Some(&number)].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Whether the change is one that what is sampled afterwards tells the truth of.
    fn check(self, attr: &Attr) -> Result<(), String> {
        let has = |field| attr.sample_type() & field != 0;
        let why = match self {
            Self::Address(_) if attr.kind() != kind::BREAKPOINT => "only breakpoints (mem:…) have an address",
            Self::Address(_) if attr.period() != 0 && !has(sample_type::ADDR) => {
                "its samples do not say their address: record with -d"
            }
            Self::Address(_)
                if attr.sample_type() & sample_type::CALLCHAIN != 0 && attr.sample_max_stack() == 0 =>
            {
                "the kernel compares all of the request, and chose the depth of stacks itself: say --max-stack"
            }
            Self::Address(_) => return Ok(()),
            _ if attr.period() == 0 => "it counts, and takes no samples",
            Self::ClockPeriod(_) if !is_clock(attr) => "it is no clock",
            Self::ClockPeriod(_) => return Ok(()),
            Self::Period(_) if attr.get(Flag::Freq) => "it was opened with a frequency: order `freq`",
            Self::Frequency(_) if !attr.get(Flag::Freq) => "it was opened with a period: order `period`",
            _ if is_clock(attr) => {
                "the kernel would go on writing the old period into the samples of a clock: record again"
            }
            // `perf_swevent_event`: with PERF_SAMPLE_PERIOD and a period, each occurrence is a sample.
            Self::Period(_)
                if matches!(attr.kind(), kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT) =>
            {
                "what the kernel counts without hardware changes only a frequency: record with -F"
            }
            _ if !has(sample_type::PERIOD) => "its samples do not say their period: record with -P",
            _ => return Ok(()),
        };
        Err(why.to_owned())
    }
}

/// What a breakpoint was opened with, moved; as the kernel has it by now: an exec that was to start it has.
fn moved(attr: &Attr, address: u64, is_on: bool) -> Attr {
    let mut attr = attr.clone();
    attr.set_breakpoint(attr.bp_type(), address, attr.config2());
    attr.set(Flag::Disabled, !is_on);
    attr.set(Flag::EnableOnExec, false);
    attr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_tell_lies_is_not_changed() {
        let mut clock = Attr::new(kind::SOFTWARE, CPU_CLOCK);
        let mut faults = Attr::new(kind::SOFTWARE, 2);
        for attr in [&mut clock, &mut faults] {
            assert!(Change::Period(5).check(attr).unwrap_err().contains("takes no samples"));
            attr.set_freq(99);
            attr.set_sample_type(sample_type::PERIOD);
            assert_eq!(Change::ClockPeriod(5).check(attr).is_ok(), is_clock(attr));
            assert!(Change::Period(5).check(attr).unwrap_err().contains("order `freq`"));
            assert!(Change::Address(5).check(attr).unwrap_err().contains("breakpoints"));
        }
        assert!(Change::Frequency(5).check(&clock).unwrap_err().contains("old period"));
        assert_eq!(Change::Frequency(5).check(&faults), Ok(()));
        faults.set_period(9);
        assert!(Change::Period(5).check(&faults).unwrap_err().contains("without hardware"));
        faults.set_freq(9);
        faults.set_sample_type(0);
        assert!(Change::Frequency(5).check(&faults).unwrap_err().contains("record with -P"));
    }
}
