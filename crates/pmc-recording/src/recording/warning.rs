//! Warnings for the user about problems that make a measurement misleading or incomplete.

use pmc_events::counter::rings::RingLimit;
use pmc_sys::error::{Advice, Warning};
use pmc_text::units::duration;

/// A problem that this crate has detected.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "each text is self-explanatory")]
pub enum RecordingWarning {
    UnknownOrder { word: String },
    CommandRefused { command: String, why: String },
    NotHandedOver { why: String },
    HeldEventGone { event: String, why: String },
    CountersLeftAlone,
    NoCycles { why: String },
    UserModeOnly { doing: &'static str },
    SwitchesUserOnly,
    WaitsWithoutStacks,
    StacksThinned,
    GuestsTogether { event: String },
    ChildrenNotRead { event: String },
    EndsNotCounted,
    ChainsNotDeferred,
    ProbeNotInherited { event: String, why: String },
    FrequencyLowered { asked: u64, most: String },
    RingsSmaller { bytes: String, asked: String, limit: RingLimit },
    PrivilegesChanged,
    ProcessesUnmeasured { name: String, pid: u32, more: usize },
    CommandPartlyCounted { counted_ns: u64, used_ns: u64 },
    CpuOffline { cpu: u32 },
    TargetsGone { count: usize, what: &'static str },
    NoSamples { why: String, remedy: Advice },
    RecordsTorn,
    FilesNotKept { why: String },
    CommandsBehind { waiting: usize },
    FileGone { file: String },
    FileCommandFailed { file: String, why: String },
}

/// Advice if the kernel stops measuring programs with other privileges, which also happens to root's events.
fn measure_privileged() -> &'static str {
    if rustix::process::geteuid().is_root() {
        "record whole CPUs (-a)"
    } else {
        "run pmc as root, or record whole CPUs (-a)"
    }
}

impl From<RecordingWarning> for Warning {
    fn from(warning: RecordingWarning) -> Self {
        use RecordingWarning::*;
        match warning {
            UnknownOrder { word } => Self::new(format!("--control: unknown command `{word}`")).advise(
                "commands are enable [EVENT], disable [EVENT], period [EVENT] N, freq [EVENT] HZ, move \
                 EVENT ADDRESS, evlist [-F], ping, snapshot, stop",
            ),
            CommandRefused { command, why } => Self::new(format!("--control: `{command}`: {why}")),
            NotHandedOver { why } => Self::new(format!("cannot hand over the events (SIGUSR1): {why}")),
            HeldEventGone { event, why } => {
                Self::loss(format!("pmc no longer records {event}, and its last records are missing: {why}"))
            }
            CountersLeftAlone => Self::note_once(
                "another process has reserved the hardware counters: pmc will not use them until the reservation is released",
            ),
            NoCycles { why } => {
                Self::note_once(format!("sampling cpu-clock, because cycles is not available: {why}"))
            }
            UserModeOnly { doing } => {
                Self::note_once(format!("{doing} user mode only (:u): no permission to measure the kernel"))
                    .advise("see kernel.perf_event_paranoid")
            }
            SwitchesUserOnly => Self::new(
                "context-switches:u never occurs: a thread is in the kernel whenever it leaves its CPU",
            )
            .advise(
                "see kernel.perf_event_paranoid; record --off-cpu measures wait times without measuring the kernel",
            ),
            WaitsWithoutStacks => Self::note(
                "waiting times are complete, but only waits in known library functions have a reason: no permission \
                 to record kernel stacks",
            )
            .advise("set kernel.perf_event_paranoid to 1 or lower, or run as root"),
            StacksThinned => Self::note_once(
                "more than 20,000 context switches per second: only some stacks are sampled; waiting times remain exact",
            ),
            GuestsTogether { event } => {
                Self::note_once(format!("{event}: guests are sampled together with the host"))
            }
            ChildrenNotRead { event } => Self::note(format!(
                "{event} excludes new threads and processes: this kernel can read groups (:S) only for a \
                 single thread"
            ))
            .advise("record without :S, or use Linux 6.13 or newer"),
            EndsNotCounted => Self::note("-s: this kernel does not report a thread's counts when the thread exits")
                .advise("use Linux 6.19 or newer (or 5.13 to 6.18 with the fix)"),
            ChainsNotDeferred => {
                Self::note_once("--call-graph fp,defer: this kernel cannot defer user-mode call chains")
                    .advise("requires Linux 6.19 or newer")
            }
            ProbeNotInherited { event, why } => {
                Self::note(format!("{event} excludes new processes, because it has no probe in tracefs: {why}"))
                    .advise("root can mount tracefs on /sys/kernel/tracing and write there")
            }
            FrequencyLowered { asked, most } => {
                Self::new(format!("-F {asked}: the kernel allows {most} samples per second; using that"))
                    .advise("see kernel.perf_event_max_sample_rate")
            }
            RingsSmaller { bytes, asked, limit } => {
                let (why, advice) = match limit {
                    RingLimit::LockedMemory => (
                        "the locked-memory limit is reached",
                        "raise kernel.perf_event_mlock_kb, or ulimit -l",
                    ),
                    RingLimit::Memory => {
                        ("out of memory or address space", "raise ulimit -v, or use smaller buffers with -m")
                    }
                };
                Self::note(format!("ring buffers of {bytes} instead of {asked}: {why}")).advise(advice)
            }
            PrivilegesChanged => Self::note_once(
                "the kernel stopped measuring the command when it executed a program with other privileges \
                 (setuid, setgid or file capabilities)",
            )
            .advise(measure_privileged()),
            ProcessesUnmeasured { name, pid, more } => {
                let others = if more == 1 { "process" } else { "processes" };
                let processes = match more {
                    0 => format!("{name} (pid {pid}) and its children when it executed a program"),
                    _ => format!(
                        "{name} (pid {pid}), {more} other {others}, and their children when they executed programs"
                    ),
                };
                Self::new(format!(
                    "the kernel stopped measuring {processes}: such programs have other privileges (setuid, setgid or \
                     file capabilities), cannot be read by their user, or cannot be loaded"
                ))
                .advise(measure_privileged())
            }
            CommandPartlyCounted { counted_ns, used_ns } => {
                let [counted, used] = [counted_ns, used_ns].map(|ns| duration(ns as f64));
                Self::new(format!(
                    "the events were on for {counted} of the {used} of CPU time that the command used: the kernel \
                     stops measuring programs with other privileges (setuid, setgid or file capabilities)"
                ))
                .advise("run pmc as root")
            }
            CpuOffline { cpu } => Self::new(format!(
                "CPU {cpu} went offline, so the kernel has ended its events: the measurement does not include it from then on"
            ))
            .advise("measure again while all CPUs stay online and the machine is not suspended"),
            TargetsGone { count, what } => {
                Self::note(format!("{count} {what} before their counters were open; skipped"))
            }
            NoSamples { why, remedy } => Self::new(format!("no samples: {why}")).advise(remedy),
            RecordsTorn => Self::loss(
                "counts of some threads are missing: threads that ended at the same time on several CPUs \
                 overwrote each other's records (a kernel bug)",
            )
            .advise("taskset -c 0 pmc … avoids this bug, which occurs only with several CPUs"),
            CommandsBehind { waiting } => Self::new(format!(
                "{waiting} finished files wait for --switch-exec: its command takes longer than recording a file"
            ))
            .advise("use a faster command, or a longer --switch-output"),
            FileGone { file } => {
                Self::new(format!("{file}: removed before the command of --switch-exec could run"))
                    .advise("use a larger --switch-max-files")
            }
            FileCommandFailed { file, why } => {
                Self::new(format!("{file}: the command of --switch-exec failed, and the file is kept: {why}"))
                    .advise("run the command for this file again")
            }
            FilesNotKept { why } => Self::note(format!(
                "the recording is complete, but its files were not copied to the build-id cache: {why}"
            ))
            .advise("use -N to skip copying files, or pmc --buildid-dir DIR record to use another directory"),
        }
    }
}
