//! Warnings for the user about problems that make counts misleading or incomplete.

use pmc_sys::error::Warning;

/// A problem that this crate has detected.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the text of each says what it is")]
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
                "{holders} also reserved the hardware counters: both count, so events may share counters"
            )),
            CountersReserved { holders } => {
                Self::new(format!("the hardware counters are reserved by {holders}; counting anyway"))
                    .advise("--reserve=yield pauses instead")
            }
            AgentsPaused { pids } => Self::note(format!(
                "reserved the hardware counters; PCP's agent pmdaperfevent (pid {pids}) pauses its own \
                 counters"
            )),
            ProbesRemoved { count } => Self::note(format!(
                "removed {count} probe definitions from tracefs that a killed pmc had left there"
            )),
            Unreserved { why } => Self::new(format!("the hardware counters are not reserved: {why}")),
        }
    }
}
