//! Warnings about options, and about the results of commands.

use pmc_sys::error::Warning;
use pmc_text::units::{counted, thousands};

/// A problem to warn about.
#[derive(Debug, Clone)]
pub enum CommandWarning {
    BackgroundIgnored,
    OptionIgnored { option: &'static str, why: &'static str },
    SettingLeftOut { what: String },
    LineLeftOut { line: String, entry: String, why: String },
    MetricLeftOut { why: String },
    TargetOverridden { option: &'static str, by: &'static str },
    WholeMachine,
    DurationIsFilter { text: String },
    PresetNeedsAllCpus { preset: String, other: String },
    SwitchesOnly { why: String, remedy: &'static str },
    OwnProcessesOnly,
    NoHardware { why: String },
    TimeShared { times: usize },
    GroupsSplit { groups: usize },
    CountersYielded { off: String, of: String },
    RuntimeNameless { language: &'static str, why: &'static str, remedy: &'static str },
    TargetsEnded,
    SizeReached,
    CopiesKept { samples: u64, compat: u64 },
    StacksCut { percent: f64, are_largest: bool },
    RecordsLost { records: u64 },
    CallsLost { records: u64 },
    IntervalsLost { records: u64 },
    TraceCutOff,
    CommandFailed { name: String, status: u8 },
    MoreRuns { runs: usize, limit: f64, time: String },
    TooManyRuns { runs: usize, limit: f64, time: String, most: usize, budget: String },
    TimesEstimated,
    SecretUnencrypted,
}

impl From<CommandWarning> for Warning {
    fn from(warning: CommandWarning) -> Self {
        use CommandWarning::*;
        match warning {
            SecretUnencrypted => Self::new("the credentials are sent without encryption")
                .advise("use https:// unless the network is trusted"),
            BackgroundIgnored => Self::new("-d has no effect with a command: it runs in the foreground"),
            OptionIgnored { option, why } => Self::note(format!("{option} has no effect: {why}")),
            SettingLeftOut { what } => Self::note(format!("ignored a setting: {what}"))
                .advise("set PERF_CONFIG=/dev/null to ignore all settings"),
            LineLeftOut { line, entry, why } => Self::note(format!("{line}: skipped {entry}: {why}")),
            MetricLeftOut { why } => Self::note(format!("skipped a metric of the event tables: {why}"))
                .advise("if you imported the tables, fix the metric there and run pmc list --import again"),
            TargetOverridden { option, by } => {
                Self::new(format!("{option} has no effect: {by} selects what to measure"))
                    .advise("use only one of them")
            }
            SwitchesOnly { why, remedy } => Self::note(format!(
                "recording only when these tasks are switched in or out, without wake-ups or other tasks: {why}"
            ))
            .advise(remedy),
            WholeMachine => {
                Self::note("no command, process or CPU given: measuring the whole machine until Ctrl-C")
                    .advise("-a measures the same without this note; use -- COMMAND or -p PID for less")
            }
            DurationIsFilter { text } => Self::note(format!(
                "--duration {text} shows only calls of at least {text} ms, as in perf; the trace continues until Ctrl-C"
            ))
            .advise(format!("--duration {text}s ends it after {text} s; --min-duration {text} omits this note")),
            PresetNeedsAllCpus { preset, other } => Self::note(format!(
                "measuring {other} on all CPUs too, because {preset} can be measured only there"
            ))
            .advise(format!("pmc latency {other} -- COMMAND measures only COMMAND")),
            OwnProcessesOnly => {
                Self::note_once("sampling only your own processes: system-wide sampling requires privileges")
                    .advise("see kernel.perf_event_paranoid; CAP_PERFMON also allows it")
            }
            NoHardware { why } => Self::note(why),
            TimeShared { times } => Self::note(format!(
                "the events need {times} times as many counters as are available: each is counted about 1/{times} of the time and scaled"
            ))
            .advise("--exact runs the command again for each part instead"),
            GroupsSplit { groups } => Self::note(format!(
                "{groups} groups do not fit on the counters; their events are counted individually"
            )),
            CountersYielded { off, of } => Self::note(format!(
                "the hardware events were off for {off} of {of}, while another process held the reservation"
            )),
            RuntimeNameless { language, why, remedy } => {
                Self::note(format!("{language} functions will have no names: {why}")).advise(remedy)
            }
            TargetsEnded => Self::note("all sampled processes have ended"),
            SizeReached => Self::note("the recording has reached --max-size and ends here"),
            CopiesKept { samples, compat } => {
                let late = samples - compat;
                let why = match (late, compat) {
                    (_, 0) => "they will be unwound when the file is read, because pmc fell behind".to_owned(),
                    (0, _) => "their process is 32-bit Arm, which pmc does not unwind".to_owned(),
                    (..) => format!(
                        "{} will be unwound when the file is read, because pmc fell behind; \
                         the others are from a 32-bit Arm process, which pmc does not unwind",
                        thousands(late)
                    ),
                };
                let samples = counted(samples, "sample");
                let note = Self::note(format!("{samples} saved with a copy of the stack: {why}"));
                if late > 0 { note.advise("a lower -F avoids this") } else { note }
            }
            StacksCut { percent, are_largest } => {
                Self::note(format!("{percent:.1}% of the stacks are truncated at the end of the stack copy"))
                    .advise(match are_largest {
                        false => "--call-graph dwarf,65528 copies more of each stack",
                        true => "stack copies cannot be larger; the report shows the code where the stacks end",
                    })
            }
            CallsLost { records } => Self::loss(format!(
                "{}: about {} calls are missing",
                lost(records),
                thousands(records.div_ceil(2))
            ))
            .advise("trace fewer calls (-e), or use larger ring buffers (-m)"),
            IntervalsLost { records } => Self::loss(format!("{}: intervals are missing", lost(records)))
                .advise("measure fewer events, or use larger ring buffers (-m)"),
            RecordsLost { records } => Self::loss(lost(records)).advise("lower the frequency (-F), or use larger ring buffers (-m)"),
            TraceCutOff => Self::loss("trace data was lost: the AUX buffer overflowed")
                .advise("use a larger AUX buffer (-m RING,AREA), a longer period (-c), or -S"),
            TimesEstimated => Self::new(
                "the times are estimated from the recording's modification time, because it has no clock",
            )
            .advise("pmc record stores the clock; with perf, record with -k CLOCK_MONOTONIC"),
            MoreRuns { runs, limit, time } => Self::note(format!(
                "to show a change of {limit}%, each command is profiled {runs} more times, which takes about {time}"
            )),
            TooManyRuns { runs, limit, time, most, budget } => Self::new(format!(
                "to show a change of {limit}%, each command would have to be profiled {runs} more times, which takes \
                 about {time}; there is time for {most}"
            ))
            .advise(format!("--budget {budget}, a quieter machine, or a larger limit in the condition")),
            CommandFailed { name, status } => Self::new(format!("`{name}` ended with status {status}"))
                .advise("check that this is the command you want to compare"),
        }
    }
}

fn lost(records: u64) -> String {
    let were = if records == 1 { "was" } else { "were" };
    format!("{} {were} lost because the ring buffers were full", counted(records, "record"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_copies_are_attributed_to_32_bit_arm_only_if_such_a_process_was_recorded() {
        let said = |samples, compat| {
            let warning = Warning::from(CommandWarning::CopiesKept { samples, compat });
            format!("{warning:?}")
        };
        let late = said(7, 0);
        assert!(
            late.contains("7 samples saved") && late.contains("fell behind") && !late.contains("Arm"),
            "{late}"
        );
        let compat = said(7, 7);
        assert!(compat.contains("32-bit Arm") && !compat.contains("fell behind"), "{compat}");
        assert!(!compat.contains("lower -F"), "{compat}");
        let both = said(7, 5);
        assert!(both.contains("2 will be unwound") && both.contains("32-bit Arm"), "{both}");
    }
}
