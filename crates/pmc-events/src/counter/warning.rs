//! Warnings for the user about problems that make counts misleading or incomplete.

use crate::hint::Hint;
use pmc_sys::error::Warning;

/// A problem that this crate has detected.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each text is self-explanatory")]
pub enum EventWarning {
    CountersShared { holders: String },
    CountersReserved { holders: String },
    AgentsPaused { pids: String },
    Unreserved { why: String },
    ProbesRemoved { count: usize },
}

impl From<EventWarning> for Warning {
    fn from(warning: EventWarning) -> Self {
        use EventWarning::*;
        match warning {
            CountersShared { holders } => Self::new(format!(
                "pmc reserved the hardware counters, but so did {holders}: events may be multiplexed"
            )),
            CountersReserved { holders } => {
                Self::new(format!("the hardware counters are reserved by {holders}; counting anyway"))
                    .advise(Hint::YieldReservation)
            }
            AgentsPaused { pids } => Self::note(format!(
                "reserved the hardware counters; PCP's agent pmdaperfevent (pid {pids}) pauses its own \
                 counters"
            )),
            ProbesRemoved { count } => Self::note(format!(
                "removed {count} probe definitions left in tracefs by a killed pmc process"
            )),
            Unreserved { why } => {
                Self::new(format!("measuring without reserving the hardware counters: {why}"))
            }
        }
    }
}
