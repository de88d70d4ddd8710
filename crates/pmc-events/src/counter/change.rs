//! Changes an open event while it runs: its sampling rate, or the address of a breakpoint.
//!
//! Takes the instances of events (one per thread or CPU) and the attributes with which they were opened. If
//! an event cannot be changed, returns the reason. The caller chooses which events to change.
//!
//! Source: `_perf_event_period` and `perf_event_modify_attr` in `kernel/events/core.c`.

use crate::hint::Hint;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic;
use pmc_sys::abi::{Attr, sample_type};
use pmc_sys::error::Advice;
use pmc_sys::error::kernel_message;
use pmc_sys::sys::perf::EventFd;

/// Minimum period of the kernel's clock events, in nanoseconds (`perf_swevent_start_hrtimer`).
pub const SHORTEST_CLOCK_NS: u64 = 10_000;

/// A change to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventChange {
    /// Sample every N occurrences.
    Period(u64),
    /// Sample N times per second.
    Frequency(u64),
    /// Sample a clock every N nanoseconds. Its samples still contain the period that was set when it was
    /// opened. The caller must correct them.
    ClockPeriod(u64),
    /// Move the breakpoint to this address; its length and access type stay the same.
    Address(u64),
}

impl EventChange {
    /// Changes these instances. `is_on` is true if they are currently counting.
    ///
    /// # Errors
    /// Returns the reason, as text. pmc checks all instances before it changes any of them. If the kernel
    /// then refuses one instance, the earlier instances have already been changed.
    pub(crate) fn make<'e>(
        self,
        instances: impl Iterator<Item = (&'e Attr, &'e EventFd)> + Clone,
        is_on: bool,
    ) -> Result<(), String> {
        if instances.clone().next().is_none() {
            return Err("none of its counters is open in this process".to_owned());
        }
        instances.clone().try_for_each(|(attr, _)| self.check(attr))?;
        for (attr, fd) in instances {
            let done = match self {
                Self::Period(number) | Self::Frequency(number) | Self::ClockPeriod(number) => {
                    fd.set_period(number)
                }
                Self::Address(address) => fd.modify(&moved(attr, address, is_on)),
            };
            done.map_err(|error| format!("the kernel refuses it: {}", kernel_message(&error)))?;
        }
        Ok(())
    }

    /// Whether the kernel applies the change only to the task on which the event was opened. Such a change
    /// does not affect tasks that inherited the event. It affects no task at all if the kernel has swapped
    /// the event with that of a child that has since ended.
    pub(super) fn is_of_one_task(self) -> bool {
        !matches!(self, Self::Address(_))
    }

    /// The control command for this change, for example `period EVENT 1000`.
    pub fn as_command(self, event: Option<&str>) -> String {
        let (word, number) = match self {
            Self::Period(number) | Self::ClockPeriod(number) => ("period", number.to_string()),
            Self::Frequency(hertz) => ("freq", hertz.to_string()),
            Self::Address(address) => ("move", format!("{address:#x}")),
        };
        [Some(word), event, Some(&number)].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Checks that samples will be correct after the change.
    fn check(self, attr: &Attr) -> Result<(), String> {
        let with = |why: &str, hint: Hint| Err(format!("{why}: {}", Advice::from(hint)));
        let has = |field| attr.sample_type() & field != 0;
        let why = match self {
            Self::Address(_) if attr.kind() != kind::BREAKPOINT => "only breakpoints (mem:…) have an address",
            Self::Address(_) if attr.period() != 0 && !has(sample_type::ADDR) => {
                return with("its samples do not contain addresses", Hint::RecordAddresses);
            }
            Self::Address(_)
                if attr.sample_type() & sample_type::CALLCHAIN != 0 && attr.sample_max_stack() == 0 =>
            {
                let why = "the kernel accepts the change only if the rest of the request is unchanged, but the \
                           kernel itself set the stack depth";
                return with(why, Hint::RecordStackDepth);
            }
            Self::Address(_) => return Ok(()),
            _ if attr.period() == 0 => "it is counted, not sampled",
            Self::ClockPeriod(_) if !generic::is_clock(attr) => "it is not a clock",
            Self::ClockPeriod(_) => return Ok(()),
            Self::Period(_) if attr.get(Flag::Freq) => "the event was opened with a frequency: use `freq`",
            Self::Frequency(_) if !attr.get(Flag::Freq) => "it was opened with a period: use `period`",
            _ if generic::is_clock(attr) => {
                "for clock events, the kernel would keep writing the old period to samples: record again"
            }
            // `perf_swevent_event`: if the event has a period and PERF_SAMPLE_PERIOD, the kernel samples
            // every occurrence.
            Self::Period(_)
                if matches!(attr.kind(), kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT) =>
            {
                return with("for software events, only a frequency can be changed", Hint::RecordFrequency);
            }
            _ if !has(sample_type::PERIOD) => {
                return with("its samples do not contain periods", Hint::RecordPeriods);
            }
            _ => return Ok(()),
        };
        Err(why.to_owned())
    }
}

/// Returns the breakpoint's attributes with the new address and its current state (on or off). Clears
/// `EnableOnExec`, since the exec has already happened.
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
    fn misleading_changes_are_rejected() {
        let mut clock = Attr::new(kind::SOFTWARE, generic::CPU_CLOCK);
        let mut faults = Attr::new(kind::SOFTWARE, 2);
        for attr in [&mut clock, &mut faults] {
            assert!(EventChange::Period(5).check(attr).unwrap_err().contains("not sampled"));
            attr.set_freq(99);
            attr.set_sample_type(sample_type::PERIOD);
            assert_eq!(EventChange::ClockPeriod(5).check(attr).is_ok(), generic::is_clock(attr));
            assert!(EventChange::Period(5).check(attr).unwrap_err().contains("use `freq`"));
            assert!(EventChange::Address(5).check(attr).unwrap_err().contains("breakpoints"));
        }
        assert!(EventChange::Frequency(5).check(&clock).unwrap_err().contains("old period"));
        assert_eq!(EventChange::Frequency(5).check(&faults), Ok(()));
        faults.set_period(9);
        assert!(EventChange::Period(5).check(&faults).unwrap_err().contains("software events"));
        faults.set_freq(9);
        faults.set_sample_type(0);
        assert!(EventChange::Frequency(5).check(&faults).unwrap_err().contains("record periods"));
    }
}
