//! The one table of advice that names commands and options of pmc.
//!
//! The libraries return what may help as values ([`Hint`](pmc_sys::error::Hint)), because they do not know
//! the program. `install` is called once, before the first message.

use std::any::Any;

use pmc_events::hint::Hint as EventHint;
use pmc_perfdata::perfdata::Hint as FileHint;
use pmc_symbols::hint::Hint as SymbolHint;
use pmc_sys::error::advice::set_table;
use pmc_sys::error::{Advice, AdvisedOption};

/// Makes messages use the table.
pub fn install() {
    set_table(advice);
}

/// Returns pmc's advice for a hint of one of the libraries; `None` if the hint's own words are good.
fn advice(hint: &dyn Any) -> Option<Advice> {
    if let Some(hint) = hint.downcast_ref() {
        return for_recordings(hint);
    }
    hint.downcast_ref().and_then(for_events).or_else(|| hint.downcast_ref().and_then(for_symbols))
}

fn for_recordings(hint: &FileHint) -> Option<Advice> {
    Some(match hint {
        FileHint::RecordFirst => Advice::about(
            AdvisedOption::Input,
            "record something first (pmc record), or name a file with {option}",
        ),
        FileHint::NameRecording => "specify a file written by pmc record or perf record".into(),
        _ => return None,
    })
}

fn for_symbols(hint: &SymbolHint) -> Option<Advice> {
    use SymbolHint::*;
    Some(match hint {
        ListFunctions => "pmc probe -F -x FILE lists the functions".into(),
        ListFunctionsOfTable => "pmc probe -F -x FILE lists the functions in its symbol table".into(),
        ProbeLibrary => Advice::options("-x LIBRARY; ldd lists the libraries"),
        LinesWithCode => "pmc probe -L FUNCTION shows the lines with code".into(),
        VariablesInScope => "pmc probe -V PLACE shows the variables there".into(),
        VariablesOrOtherLine => {
            "pmc probe -V PLACE shows the variables there; another line may have it".into()
        }
        OtherCache => "pmc --buildid-dir DIR COMMAND uses another cache".into(),
        ArchiveMore => Advice::options(
            "pmc archive with the original recording, without --no-code; --with-debug includes callers",
        ),
        BuildWithSymbols { id } => Advice::options(format!(
            "build it with -g and do not strip it, or fetch the debug file with build-id {id} \
             (--debuginfod)"
        )),
        RecordedFiles => Advice::options("specify the directory with the recorded machine's files (--symfs)"),
        FetchBuild { id } => {
            Advice::options(format!("record again, or fetch the file with build-id {id} (--debuginfod)"))
        }
        KernelImage { id } => {
            Advice::options(format!("specify the kernel image with build-id {id} (--vmlinux)"))
        }
        GivenKernelImage => Advice::options("--vmlinux"),
        AnyKernelImage => Advice::options("run as root, or specify the kernel image (--vmlinux)"),
        KernelMemory => Advice::options(
            "run as root on a machine with /proc/kcore, or specify the kernel image (--vmlinux) or a \
             copy of its memory (--kcore)",
        ),
        _ => return None,
    })
}

fn for_events(hint: &EventHint) -> Option<Advice> {
    use EventHint::*;
    Some(match hint {
        ShowEvents => "pmc list shows the events of this machine".into(),
        UseOtherEvent => "use another event; see pmc list".into(),
        NameOrCode => "a name from `pmc list`, or the raw code: cpu/event=0xNN,umask=0xNN/".into(),
        ChooseEvent { kinds } => format!("choose an available event: pmc list {kinds}").into(),
        ChooseTracepoint => "choose an existing tracepoint: pmc list tracepoint".into(),
        ListTracepoints => "pmc list tracepoint".into(),
        ListTracepointsOf { system } => format!("pmc list '{system}:*'").into(),
        ChooseEventOf { pmu } => format!("choose an existing event: pmc list {pmu}").into(),
        SeeEventsOf { pmu } => format!("see the PMU's events: pmc list --long {pmu}").into(),
        ShowPmus => "pmc info shows the available PMUs".into(),
        ShowMissingPmus => "pmc info shows the available PMUs, and why others are missing".into(),
        CountFewer => "count fewer events or run longer; pmc info shows which processes use counters".into(),
        StopOtherMeasurement => {
            "stop the other measurement first; pmc info lists the processes with open perf events".into()
        }
        HoldEvent { name } => format!("pmc persist add {name} -e EVENT creates one").into(),
        HoldAnother => "pmc persist add ANOTHER -e EVENT, with these settings".into(),
        SnapshotHeldEvent => "pmc persist snapshot NAME -o FILE".into(),
        CountOrAddSampled { event } => {
            Advice::options(format!("pmc stat record -e {event},log-cswitch …, or add another -e"))
        }
        SampleKernel => "pmc record -a -e EVENT:k".into(),
        AddUpCores => "pmc stat -a --per-core adds up the threads of each core".into(),
        SampleFields => {
            Advice::options("pmc record has an option for each field of a sample: -d, -W, --phys-data …")
        }
        StartLater => Advice::options("-D MS"),
        UserChains => "pmc record --user-callchains".into(),
        KernelChains => "pmc record --kernel-callchains".into(),
        UserRegisters => "pmc record --user-regs=NAME,…".into(),
        InterruptedRegisters => "pmc record --intr-regs=NAME,…".into(),
        StackOrClock => "stack-size=BYTES, or pmc record -k CLOCK".into(),
        SampleMarker { marker } => format!("pmc record -e {marker}").into(),
        FunctionAndLine => "FUNCTION:LINE; pmc probe -L FUNCTION shows the lines".into(),
        ChooseProcess => Advice::options("use -p PID for a program's symbol"),
        StartProgramFirst => {
            Advice::options("start it first, then measure it with -p PID; or link it with -no-pie")
        }
        ImportElsewhere => "XDG_DATA_HOME=DIR pmc list --import …, where DIR is writable".into(),
        CountTool => "count it: pmc stat -e …".into(),
        Sample => "pmc record".into(),
        ChooseTask => Advice::options("use -p PID or -- COMMAND"),
        AddCpus { cpus } => Advice::options(format!("add them: -C {cpus}")),
        ChainsWithoutBranches => Advice::options("use --call-graph fp or dwarf instead of branches"),
        ChainsByFramePointers => Advice::options("use --call-graph fp"),
        CountIt => "count it with pmc stat, or sample cpu-clock".into(),
        OtherClock => Advice::options("use --clockid monotonic, or omit --clockid"),
        DoNotInherit => Advice::options("add --no-inherit"),
        FollowProcesses => "follow child processes (pmcstat -d), or use Linux 5.13 or newer".into(),
        RunningProcessOrKeep => Advice::options("measure a running process (-p), or omit remove_on_exec"),
        RunningProcessRemoved => Advice::options("add remove_on_exec, and measure a running process (-p)"),
        InheritThreads => Advice::options("omit --no-inherit (-i) or inherit_thread"),
        GroupWithTrace => {
            "use a group such as '{arm_spe_0//,EVENT/aux-action=pause/}' with pmc record, or omit the term"
                .into()
        }
        SmallerRingsAndAux => {
            Advice::options("use smaller ring and AUX buffers (-m RING,AREA), or fewer CPUs")
        }
        SmallerRings => Advice::options(
            "use smaller ring buffers (-m), or raise kernel.perf_event_mlock_kb or `ulimit -l`",
        ),
        LowerFrequency { most } => {
            Advice::options(format!("use at most {most} (-F max), or raise the limit"))
        }
        WholeCpus => Advice::options("count system-wide: -a, or -C with a list of CPUs"),
        WholeCpusOrProbe => Advice::options("count on whole CPUs (-a), or use kprobe:FUNCTION"),
        ShowRequest => Advice::options("show the request with -vv"),
        RecordAddresses => Advice::options("record with -d"),
        RecordStackDepth => Advice::options("record with --max-stack"),
        RecordFrequency => Advice::options("record with -F"),
        RecordPeriods => Advice::options("record with -P"),
        RecordAlone => Advice::options("record with -i, or -a"),
        YieldReservation => Advice::options("--reserve=yield pauses instead"),
        MarkerOfProcess => Advice::options(
            "a marker (USDT) in the command, its libraries, or files mapped by the process (-p PID)",
        ),
        HeldEvent => "held by pmc persist; see pmc persist show".into(),
        KernelSymbolOnly => Advice::options(
            "with -a, -C or :k the symbol must be in the kernel; without CONFIG_KALLSYMS_ALL, the \
             kernel lists only functions",
        ),
        SymbolSearch => Advice::options("pmc searches the command, or the files mapped by -p PID"),
        MarkerSearch => {
            Advice::options("pmc searches the command and its libraries, or the files mapped by -p PID")
        }
        CreateLockFile => "as root, create the file for an agent started later: pmc reserve --create".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_of_the_libraries_name_commands_and_options() {
        let said = |hint: &dyn Any| advice(hint).map(|advice| advice.to_string()).unwrap_or_default();
        assert_eq!(
            said(&FileHint::RecordFirst),
            "record something first (pmc record), or name a file with -i"
        );
        assert_eq!(said(&EventHint::ShowPmus), "pmc info shows the available PMUs");
        let tracepoints = EventHint::ListTracepointsOf { system: "sched".to_owned() };
        assert_eq!(said(&tracepoints), "pmc list 'sched:*'");
        assert_eq!(said(&SymbolHint::ListFunctions), "pmc probe -F -x FILE lists the functions");
        assert_eq!(said(&EventHint::from("modprobe x")), "");
        for (hint, word) in [
            (EventHint::LowerFrequency { most: 7 }, "-F max"),
            (EventHint::WholeCpus, "-a"),
            (EventHint::SeeEventsOf { pmu: "power".to_owned() }, "pmc list --long power"),
            (EventHint::ChooseEvent { kinds: "hw cache" }, "pmc list hw cache"),
            (EventHint::ChainsWithoutBranches, "dwarf"),
            (EventHint::SmallerRings, "-m"),
            (EventHint::StopOtherMeasurement, "pmc info"),
            (EventHint::RecordPeriods, "record with -P"),
        ] {
            assert!(said(&hint).contains(word), "{hint:?}");
        }
    }
}
