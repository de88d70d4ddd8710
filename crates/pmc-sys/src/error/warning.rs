//! Warnings and notes about a result. Each hazard is a variant; its text ends with a remedy if there is
//! one.
//!
//! The code that detects a hazard supplies the facts. [`say`](super::say) prints the warning, and prints
//! a [`Severity::Once`] note only once.

use std::fmt;

use super::advice::Advice;

/// The limit that keeps the ring buffers below the requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingLimit {
    /// The user's locked-memory limit (EPERM).
    LockedMemory,
    /// Memory or address space (ENOMEM).
    Memory,
}

/// Severity of a [`Warning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The result may be incomplete.
    Warning,
    /// Useful to know.
    Note,
    /// Useful to know and true for the whole run: printed once per process.
    Once,
}

/// A hazard to report.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the text of each says what it is")]
pub enum Warning {
    BackgroundIgnored,
    OptionIgnored { option: &'static str, why: &'static str },
    UnknownOrder { word: String },
    OrderRefused { order: String, why: String },
    NotHandedOver { why: String },
    HeldEventGone { event: String, why: String },
    CountersShared { holders: String },
    CountersReserved { holders: String },
    AgentsPaused { pids: String },
    Unreserved { why: String },
    CountersLeftAlone,
    CountersYielded { off: String, of: String },
    NoHardware { why: String },
    NoCycles { why: String },
    TimeShared { times: usize },
    UserModeOnly { doing: &'static str },
    OwnProcessesOnly,
    GuestsTogether { event: String },
    TargetOverridden { option: &'static str, by: &'static str },
    WholeMachine,
    ChildrenNotRead { event: String },
    EndsNotCounted,
    ChainsNotDeferred,
    ProbeNotInherited { event: String, why: String },
    FrequencyLowered { asked: u64, most: String },
    RingsSmaller { bytes: String, asked: String, limit: RingLimit },
    GroupsSplit { groups: usize },
    TargetsGone { count: usize, what: &'static str },
    NobodyLeft,
    NoSamples { why: String, remedy: Advice },
    SizeReached,
    RuntimeNameless { language: &'static str, why: &'static str, remedy: &'static str },
    CopiesKept { samples: String },
    StacksCut { percent: f64, are_largest: bool },
    RecordsLost,
    TraceCutOff,
    RecordsTorn,
    FilesNotKept { why: String },
    SettingLeftOut { what: String },
    LineLeftOut { line: String, entry: String, why: String },
    MetricLeftOut { why: String },
    Recording { what: String },
    DamagedRecording { what: String },
    NamesMissing { what: String },
    FieldMissing { event: String, field: &'static str },
    CommandFailed { name: String, status: u8 },
}

impl Warning {
    pub(crate) fn loudness(&self) -> Severity {
        match self {
            Self::BackgroundIgnored
            | Self::UnknownOrder { .. }
            | Self::OrderRefused { .. }
            | Self::NotHandedOver { .. }
            | Self::HeldEventGone { .. }
            | Self::CountersShared { .. }
            | Self::CountersReserved { .. }
            | Self::Unreserved { .. }
            | Self::FrequencyLowered { .. }
            | Self::NoSamples { .. }
            | Self::TargetOverridden { .. }
            | Self::RecordsLost
            | Self::TraceCutOff
            | Self::RecordsTorn
            | Self::DamagedRecording { .. }
            | Self::NamesMissing { .. }
            | Self::CommandFailed { .. } => Severity::Warning,
            Self::CountersLeftAlone
            | Self::ChainsNotDeferred
            | Self::NoCycles { .. }
            | Self::UserModeOnly { .. }
            | Self::OwnProcessesOnly
            | Self::GuestsTogether { .. }
            | Self::FieldMissing { .. } => Severity::Once,
            _ => Severity::Note,
        }
    }

    /// Returns the message without the remedy.
    pub fn what(&self) -> String {
        match self {
            Self::BackgroundIgnored => {
                "-d has no effect with a command: it runs in the foreground".to_owned()
            }
            Self::OptionIgnored { option, why } => format!("{option} has no effect: {why}"),
            Self::UnknownOrder { word } => format!("--control: unknown command `{word}`"),
            Self::HeldEventGone { event, why } => {
                format!("pmc no longer records {event}, and its last records are missing: {why}")
            }
            Self::NotHandedOver { why } => format!("cannot hand over the events (SIGUSR1): {why}"),
            Self::OrderRefused { order, why } => format!("--control: `{order}`: {why}"),
            Self::CountersShared { holders } => format!(
                "{holders} also reserved the hardware counters: both count, so events may share counters"
            ),
            Self::CountersReserved { holders } => {
                format!("the hardware counters are reserved by {holders}; counting anyway")
            }
            Self::AgentsPaused { pids } => format!(
                "reserved the hardware counters; PCP's agent pmdaperfevent (pid {pids}) pauses its own \
                 counters"
            ),
            Self::Unreserved { why } => format!("the hardware counters are not reserved: {why}"),
            Self::CountersLeftAlone => {
                "another process has reserved the hardware counters: pmc does not use them until that \
                 process ends"
                    .to_owned()
            }
            Self::CountersYielded { off, of } => format!(
                "the hardware events were off for {off} of {of}, while another process held the reservation"
            ),
            Self::NoHardware { why } => why.clone(),
            Self::NoCycles { why } => format!("sampling cpu-clock, because cycles is not available: {why}"),
            Self::TimeShared { times } => format!(
                "the events need {times} times the available counters: each is counted about 1/{times} of \
                 the time and scaled"
            ),
            Self::UserModeOnly { doing } => {
                format!("{doing} user mode only (:u): no permission to measure the kernel")
            }
            Self::OwnProcessesOnly => {
                "sampling only your own processes: system-wide sampling requires privileges".to_owned()
            }
            Self::TargetOverridden { option, by } => {
                format!("{option} has no effect: {by} selects what to measure")
            }
            Self::WholeMachine => {
                "no command, process or CPU was named: measuring the whole machine until Ctrl-C".to_owned()
            }
            Self::ChildrenNotRead { event } => {
                format!(
                    "{event} excludes new threads and processes: this kernel can read groups (:S) only for \
                     a single thread"
                )
            }
            Self::EndsNotCounted => "-s: this kernel does not report a thread's counts at its end".to_owned(),
            Self::ChainsNotDeferred => {
                "--call-graph fp,defer: this kernel cannot defer user-mode call chains".to_owned()
            }
            Self::ProbeNotInherited { event, why } => {
                format!("{event} excludes new processes: no probe in tracefs: {why}")
            }
            Self::GuestsTogether { event } => format!("{event}: guests are sampled together with the host"),
            Self::FrequencyLowered { asked, most } => {
                format!("-F {asked}: the kernel allows {most} samples per second; using that")
            }
            Self::RingsSmaller { bytes, asked, limit } => {
                let why = match limit {
                    RingLimit::LockedMemory => "the locked-memory limit is reached",
                    RingLimit::Memory => "out of memory or address space",
                };
                format!("ring buffers of {bytes} instead of {asked}: {why}")
            }
            Self::GroupsSplit { groups } => {
                format!("{groups} groups do not fit on the counters; their events are counted individually")
            }
            Self::TargetsGone { count, what } => {
                format!("{count} {what} before their counters were open; skipped")
            }
            Self::NobodyLeft => "all sampled processes have ended".to_owned(),
            Self::NoSamples { why, .. } => format!("no samples: {why}"),
            Self::RuntimeNameless { language, why, .. } => {
                format!("{language} functions will have no names: {why}")
            }
            Self::SizeReached => "the recording has reached --max-size and ends here".to_owned(),
            Self::CopiesKept { samples } => format!(
                "{samples} samples keep their stack copy, to be unwound when the file is read: pmc fell behind, or the \
                 process is 32-bit Arm"
            ),
            Self::StacksCut { percent, .. } => {
                format!("{percent:.1}% of the stacks are truncated at the end of their copy")
            }
            Self::RecordsLost => "records were lost because the ring buffers were full".to_owned(),
            Self::TraceCutOff => "trace data was lost: the AUX buffer overflowed".to_owned(),
            Self::RecordsTorn => {
                "counts of some threads are missing: threads that ended at the same time on several CPUs \
                 overwrote each other's records (a kernel bug)"
                    .to_owned()
            }
            Self::FilesNotKept { why } => {
                format!(
                    "the recording is complete, but its files were not copied to the build-id cache: {why}"
                )
            }
            Self::SettingLeftOut { what } => format!("ignored a setting: {what}"),
            Self::LineLeftOut { line, entry, why } => {
                format!("{line}: skipped {entry}: {why}")
            }
            Self::MetricLeftOut { why } => format!("skipped a metric of the event tables: {why}"),
            Self::NamesMissing { what } => format!("function names or lines are missing: {what}"),
            Self::Recording { what } | Self::DamagedRecording { what } => what.clone(),
            Self::FieldMissing { event, field } => {
                format!("{event} was recorded without {field}: the field is omitted")
            }
            Self::CommandFailed { name, status } => format!("`{name}` ended with status {status}"),
        }
    }

    /// Returns the remedy or the setting behind the hazard, if there is one.
    pub fn advice(&self) -> Option<Advice> {
        let text = match self {
            Self::UnknownOrder { .. } => {
                "commands are enable [EVENT], disable [EVENT], period [EVENT] N, freq [EVENT] HZ, move EVENT ADDRESS, \
                 evlist [-F], ping, snapshot, stop"
            }
            Self::CountersReserved { .. } => "--reserve=yield pauses instead",
            Self::TimeShared { .. } => "--exact runs the command again for each part instead",
            Self::UserModeOnly { .. } => "see kernel.perf_event_paranoid",
            Self::OwnProcessesOnly => "see kernel.perf_event_paranoid; CAP_PERFMON also allows it",
            Self::FrequencyLowered { .. } => "see kernel.perf_event_max_sample_rate",
            Self::RingsSmaller { limit: RingLimit::LockedMemory, .. } => {
                "raise kernel.perf_event_mlock_kb, or ulimit -l"
            }
            Self::RingsSmaller { limit: RingLimit::Memory, .. } => "raise ulimit -v, or ask for less with -m",
            Self::NoSamples { remedy, .. } => return Some(remedy.clone()),
            Self::RuntimeNameless { remedy, .. } => remedy,
            Self::StacksCut { are_largest: false, .. } => "--call-graph dwarf,65528 copies more of each",
            Self::StacksCut { are_largest: true, .. } => {
                "copies cannot be larger; the report shows which code the stacks end in"
            }
            Self::CopiesKept { .. } => "a lower -F avoids this",
            Self::TargetOverridden { .. } => "use only one of them",
            Self::WholeMachine => {
                "-a measures the same without this note; -- COMMAND or -p PID measures less"
            }
            Self::ChildrenNotRead { .. } => "record without :S, or use Linux 6.13 or newer",
            Self::EndsNotCounted => "use Linux 6.19 or newer (or 5.13 to 6.18 with the fix)",
            Self::ChainsNotDeferred => "requires Linux 6.19 or newer",
            Self::ProbeNotInherited { .. } => "root can mount tracefs on /sys/kernel/tracing and write there",
            Self::SettingLeftOut { .. } => "set PERF_CONFIG=/dev/null to ignore all settings",
            Self::FilesNotKept { .. } => "-N copies none; pmc --buildid-dir DIR record copies them elsewhere",
            Self::RecordsTorn => "taskset -c 0 pmc … avoids it, since it needs several CPUs",
            Self::TraceCutOff => "use a larger AUX buffer (-m RING,AREA), a longer period (-c), or -S",
            Self::RecordsLost => "lower the frequency (-F), or use larger ring buffers (-m)",
            Self::CommandFailed { .. } => "check that this is the command you want to compare",
            Self::MetricLeftOut { .. } => {
                "if you imported the tables, fix the metric there and run pmc list --import again"
            }
            _ => return None,
        };
        Some(text.into())
    }
}

impl Warning {
    /// Returns the full message; `spelled` makes text of the advice.
    pub(super) fn text(&self, spelled: impl Fn(&Advice) -> String) -> String {
        match self.advice() {
            None => self.what(),
            Some(advice) => format!("{} ({})", self.what(), spelled(&advice)),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Advice::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_end_with_a_remedy() {
        let lost = Warning::RecordsLost;
        assert_eq!(
            lost.to_string(),
            "records were lost because the ring buffers were full (lower the frequency (-F), or use larger ring buffers (-m))"
        );
        assert_eq!(lost.loudness(), Severity::Warning);
        let word = "on".to_owned();
        assert!(
            Warning::UnknownOrder { word }
                .to_string()
                .contains("unknown command `on` (commands are enable [")
        );
        let gone = Warning::TargetsGone { count: 2, what: "threads ended" };
        assert_eq!(gone.to_string(), "2 threads ended before their counters were open; skipped");
    }
}
