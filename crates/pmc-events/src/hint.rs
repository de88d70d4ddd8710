//! What may help if an event cannot be used, as a value.
//!
//! A [`Hint`] says it in general words: this crate does not know the commands and options of the program that
//! prints the message. A program that has them matches the value.

use std::fmt;

use pmc_sys::error::Advice;
use pmc_sys::host::cpulist::CpuList;

/// What may help.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "`Display` says what each one means")]
pub enum Hint {
    /// Advice about the event text, the kernel or the system. Empty if nothing helps.
    Text(String),
    ShowEvents,
    UseOtherEvent,
    NameOrCode,
    ChooseEvent {
        kinds: &'static str,
    },
    ChooseTracepoint,
    ListTracepoints,
    ListTracepointsOf {
        system: String,
    },
    ChooseEventOf {
        pmu: String,
    },
    SeeEventsOf {
        pmu: String,
    },
    ShowPmus,
    ShowMissingPmus,
    CountFewer,
    StopOtherMeasurement,
    HoldEvent {
        name: String,
    },
    HoldAnother,
    SnapshotHeldEvent,
    CountOrAddSampled {
        event: String,
    },
    SampleKernel,
    AddUpCores,
    SampleFields,
    StartLater,
    UserChains,
    KernelChains,
    UserRegisters,
    InterruptedRegisters,
    StackOrClock,
    SampleMarker {
        marker: String,
    },
    FunctionAndLine,
    ChooseProcess,
    StartProgramFirst,
    ImportElsewhere,
    CountTool,
    Sample,
    ChooseTask,
    AddCpus {
        cpus: CpuList,
    },
    ChainsWithoutBranches,
    ChainsByFramePointers,
    CountIt,
    OtherClock,
    DoNotInherit,
    FollowProcesses,
    RunningProcessOrKeep,
    RunningProcessRemoved,
    InheritThreads,
    GroupWithTrace,
    SmallerRingsAndAux,
    SmallerRings,
    LowerFrequency {
        most: u64,
    },
    WholeCpus,
    WholeCpusOrProbe,
    ShowRequest,
    CreateLockFile,
    YieldReservation,
    MarkerOfProcess,
    HeldEvent,
    KernelSymbolOnly,
    SymbolSearch,
    MarkerSearch,
    RecordAddresses,
    RecordStackDepth,
    RecordFrequency,
    RecordPeriods,
    RecordAlone,
}

impl Hint {
    /// Whether nothing is known to help.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

impl<T: Into<String>> From<T> for Hint {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl From<Hint> for Advice {
    fn from(hint: Hint) -> Self {
        Self::hint(hint)
    }
}

impl pmc_sys::error::Hint for Hint {}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::ShowEvents => f.write_str("choose one of this machine's events"),
            Self::UseOtherEvent => f.write_str("use another event"),
            Self::NameOrCode => {
                f.write_str("a name of this machine's events, or the raw code: cpu/event=0xNN,umask=0xNN/")
            }
            Self::ChooseEvent { .. } => f.write_str("choose an available event"),
            Self::ChooseTracepoint => f.write_str("choose an existing tracepoint"),
            Self::ListTracepoints => f.write_str("choose one of the kernel's tracepoints"),
            Self::ListTracepointsOf { system } => write!(f, "choose a tracepoint of {system}"),
            Self::ChooseEventOf { pmu } => write!(f, "choose an existing event of {pmu}"),
            Self::SeeEventsOf { pmu } => write!(f, "see the events of {pmu}"),
            Self::ShowPmus => f.write_str("choose a PMU of this machine"),
            Self::ShowMissingPmus => f.write_str("use an event of a PMU that this machine has"),
            Self::CountFewer => f.write_str("count fewer events or run longer"),
            Self::StopOtherMeasurement => f.write_str("stop the other measurement first"),
            Self::HoldEvent { name } => write!(f, "let a holder open an event named {name}"),
            Self::HoldAnother => f.write_str("let a holder open another event with these settings"),
            Self::SnapshotHeldEvent => f.write_str("read the event through its holder"),
            Self::CountOrAddSampled { event } => write!(f, "count {event} only, or add a sampled event"),
            Self::SampleKernel => f.write_str("sample the event on all CPUs in kernel mode: EVENT:k"),
            Self::AddUpCores => f.write_str("add up the threads of each core"),
            Self::SampleFields => f.write_str("request the fields of a sample by name"),
            Self::StartLater => f.write_str("enable the event after it was opened"),
            Self::UserChains => f.write_str("request call chains of user mode only"),
            Self::KernelChains => f.write_str("request call chains of the kernel only"),
            Self::UserRegisters => f.write_str("request the registers by name"),
            Self::InterruptedRegisters => f.write_str("request the registers by name"),
            Self::StackOrClock => f.write_str("stack-size=BYTES, or a clock for all events"),
            Self::SampleMarker { marker } => write!(f, "open {marker}"),
            Self::FunctionAndLine => f.write_str("FUNCTION:LINE"),
            Self::ChooseProcess => f.write_str("select a process for a program's symbol"),
            Self::StartProgramFirst => f.write_str(
                "start it first, then measure the process; or link it without position-independent code",
            ),
            Self::ImportElsewhere => f.write_str("write the tables to a writable directory (XDG_DATA_HOME)"),
            Self::CountTool => f.write_str("count it without a kernel event"),
            Self::Sample => f.write_str("sample the event"),
            Self::ChooseTask => f.write_str("select a process or command"),
            Self::AddCpus { cpus } => write!(f, "add CPUs {cpus}"),
            Self::ChainsWithoutBranches => {
                f.write_str("request call chains by frame pointers or stack copies instead of branches")
            }
            Self::ChainsByFramePointers => f.write_str("request call chains by frame pointers"),
            Self::CountIt => f.write_str("count it, or sample cpu-clock"),
            Self::OtherClock => f.write_str("use the monotonic clock, or the default"),
            Self::DoNotInherit => f.write_str("do not inherit the event"),
            Self::FollowProcesses => f.write_str("follow child processes, or use Linux 5.13 or newer"),
            Self::RunningProcessOrKeep => f.write_str("measure a running process, or omit remove_on_exec"),
            Self::RunningProcessRemoved => f.write_str("add remove_on_exec, and measure a running process"),
            Self::InheritThreads => f.write_str("inherit the event, or omit inherit_thread"),
            Self::GroupWithTrace => {
                f.write_str("sample a group whose leader is a trace event, or omit the term")
            }
            Self::SmallerRingsAndAux => f.write_str("use smaller ring and AUX buffers, or fewer CPUs"),
            Self::SmallerRings => {
                f.write_str("use smaller ring buffers, or raise kernel.perf_event_mlock_kb or `ulimit -l`")
            }
            Self::LowerFrequency { most } => write!(f, "use at most {most}, or raise the limit"),
            Self::WholeCpus => f.write_str("count system-wide, or on a list of CPUs"),
            Self::WholeCpusOrProbe => f.write_str("count on whole CPUs, or use kprobe:FUNCTION"),
            Self::ShowRequest => f.write_str("compare the request with the kernel's source"),
            Self::RecordAddresses => f.write_str("record addresses"),
            Self::RecordStackDepth => f.write_str("record with a stack depth"),
            Self::RecordFrequency => f.write_str("record with a frequency"),
            Self::RecordPeriods => f.write_str("record periods"),
            Self::RecordAlone => f.write_str("record without child processes, or all CPUs"),
            Self::YieldReservation => f.write_str("pausing during the reservation avoids this"),
            Self::MarkerOfProcess => {
                f.write_str("a marker (USDT) in the command, its libraries, or files mapped by the process")
            }
            Self::HeldEvent => f.write_str("held by another process"),
            Self::KernelSymbolOnly => f.write_str(
                "on whole CPUs or in kernel mode the symbol must be in the kernel; without \
                 CONFIG_KALLSYMS_ALL, the kernel lists only functions",
            ),
            Self::SymbolSearch => {
                f.write_str("only the command, or the files mapped by the process, are searched")
            }
            Self::MarkerSearch => f.write_str(
                "only the command and its libraries, or the files mapped by the process, are searched",
            ),
            Self::CreateLockFile => f.write_str("as root, create the file for an agent started later"),
        }
    }
}
