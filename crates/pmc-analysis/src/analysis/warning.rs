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
    InstructionsMissing { what: String },
    ArchiveUnusable { what: String },
    ArchiveOptions,
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
            InstructionsMissing { what } => Self::new(format!("instructions are missing: {what}")).advise(
                "raise the process and memory limits (ulimit -u, ulimit -v) if pmc cannot start a process",
            ),
            ArchiveUnusable { what } => Self::new(what)
                .advise("run pmc archive again on the recorded machine; until then, pmc searches this machine for symbols"),
            ArchiveOptions => Self::note_once(
                "the recording is an archive with its own symbols: --symfs, --vmlinux and --kallsyms have no \
                 effect"
            ),
            FieldMissing { event, field } => {
                Self::note_once(format!("{event} was recorded without {field}: the field is omitted"))
            }
        }
    }
}
