//! How events measure for how long threads run, and which of these measures are comparable.

use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::CPU_CYCLES;
use pmc_sys::abi::{Attr, generic};

/// How an event measures for how long threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunningMeasure {
    unit: RunningUnit,
    /// Whether the event excludes user mode, the kernel, and idle time.
    excluded: [bool; 3],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunningUnit {
    /// Nanoseconds: `cpu-clock` and `task-clock`.
    Nanoseconds,
    /// CPU cycles, which are not counted while a CPU is idle.
    Cycles,
}

/// How well the events of two recordings match, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeasureMatch {
    SameUnit(RunningUnit),
    /// Cycles and time: only shares are comparable.
    SharesOnly,
}

impl RunningMeasure {
    /// Returns `None` if the event does not measure running time. For clocks, the kernel ignores `precise_ip`
    /// and the bits for hypervisor and guest (`perf_swevent_hrtimer`).
    pub(super) fn from_attr(attr: &Attr) -> Option<Self> {
        let unit = match (attr.kind(), attr.config()) {
            _ if generic::is_clock(attr) => RunningUnit::Nanoseconds,
            (kind::HARDWARE, CPU_CYCLES) => RunningUnit::Cycles,
            _ => return None,
        };
        let has_idle = unit == RunningUnit::Nanoseconds && attr.get(Flag::ExcludeIdle);
        let excluded = [attr.get(Flag::ExcludeUser), attr.get(Flag::ExcludeKernel), has_idle];
        Some(Self { unit, excluded })
    }

    pub(super) fn matches(self, other: Self) -> Option<MeasureMatch> {
        match self.unit == other.unit {
            true => (self.excluded == other.excluded).then_some(MeasureMatch::SameUnit(self.unit)),
            false => (self.excluded[..2] == other.excluded[..2]).then_some(MeasureMatch::SharesOnly),
        }
    }
}

impl MeasureMatch {
    /// Returns the reason for which the events are comparable.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::SameUnit(RunningUnit::Nanoseconds) => "both are CPU time",
            Self::SameUnit(RunningUnit::Cycles) => "both are CPU cycles",
            Self::SharesOnly => "both measure running, but in different units, so only shares are comparable",
        }
    }

    /// Returns a sentence without the names of events.
    pub(super) fn scope(self) -> &'static str {
        match self {
            Self::SameUnit(RunningUnit::Nanoseconds) => "the recordings have different clocks of CPU time",
            Self::SameUnit(RunningUnit::Cycles) => {
                "the recordings have different events that count CPU cycles"
            }
            Self::SharesOnly => {
                "one recording has CPU cycles and the other CPU time, so only shares of running time are \
                 comparable"
            }
        }
    }
}
