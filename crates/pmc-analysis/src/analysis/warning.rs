//! Warnings for the user about problems with a recording.

use pmc_sys::error::Warning;

/// A problem to warn about.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each text is self-explanatory")]
pub enum AnalysisWarning {
    Recording { what: String },
    DamagedRecording { what: String },
    NamesMissing { what: String },
    CallersMissing { what: String },
    FieldMissing { event: String, field: &'static str },
}

impl From<AnalysisWarning> for Warning {
    fn from(warning: AnalysisWarning) -> Self {
        use AnalysisWarning::*;
        match warning {
            Recording { what } => Self::note(what),
            DamagedRecording { what } => Self::new(what),
            NamesMissing { what } => Self::new(format!("function names or source lines are missing: {what}")),
            CallersMissing { what } => Self::new(format!("call chains may lack callers: {what}")),
            FieldMissing { event, field } => {
                Self::note_once(format!("{event} was recorded without {field}: the field is omitted"))
            }
        }
    }
}
