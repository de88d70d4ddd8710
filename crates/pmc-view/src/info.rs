//! `pmc info` as text for human readers, in 80 columns. This module only formats a [`MachineReport`].
//!
//! A reason that applies to several rows is printed only once, as a numbered note below the table:
//!
//! ```text
//! What works
//!   stat       limited  count a command, no hardware events [1]
//!   stat -a    limited  count all CPUs, no hardware events [1]
//!   [1] this virtual machine has no hardware counters (ENOENT)
//!       try: enable the virtual PMU in the hypervisor
//! ```

use std::io::{self, Write};

use pmc_analysis::profile::machine::{
    CoreCounterReport, EventTable, EventTables, MachineReport, MissingReason, PmuReport, ReservationReport,
    UseCaseReport, UserReport,
};
use pmc_text::table::{self, ColumnShape, left, right};
use pmc_text::text::{clean, wrap};
use pmc_text::units::{bytes, counted, thousands};

/// Line width in columns.
const COLUMNS: usize = 80;

/// Writes the whole output of `pmc info`.
pub fn write(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    system(out, machine)?;
    counters(out, machine)?;
    event_tables(out, &machine.event_tables)?;
    pmus(out, &machine.pmus)?;
    holders(out, machine)?;
    user(out, machine)?;
    verdicts(out, &machine.verdicts)
}

/// Writes a table of the hardware counters, whether each generic event works, and the processes that use
/// counters.
pub fn write_counters(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    let number = |number: Option<u32>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let mut rows = Vec::new();
    for unit in &machine.counters {
        let width = |bits: Option<u32>| bits.map_or_else(|| "?".to_owned(), |bits| format!("{bits} bits"));
        let mut row = |class: &str, count, bits, free: String| {
            let name = clean(&unit.pmu).into_owned();
            rows.push(vec![name, class.to_owned(), number(count), width(bits), free]);
        };
        row("general", unit.general, unit.general_width, number(unit.free));
        if unit.fixed.is_some() {
            row("fixed", unit.fixed, unit.fixed_width, String::new());
        }
    }
    for pmu in &machine.pmus {
        if machine.counters.iter().all(|unit| unit.pmu != pmu.name) {
            let class = match (pmu.name.as_str(), &pmu.cpumask) {
                ("software" | "tracepoint" | "breakpoint" | "kprobe" | "uprobe" | "msr", _) => {
                    "no hardware counters"
                }
                (_, Some(_)) => "device",
                _ => "other",
            };
            let name = clean(&pmu.name).into_owned();
            rows.push(vec![name, class.to_owned(), String::new(), String::new(), String::new()]);
        }
    }
    let head = ["PMU", "CLASS", "NUMBER", "WIDTH", "FREE"].map(str::to_owned).to_vec();
    let shapes = [left(0, 0), left(2, 0), right(2, 0), right(2, 0), right(2, 0)];
    table::write(out, &shapes, Some(COLUMNS as u16), std::iter::once(head).chain(rows))?;
    counters(out, machine)?;
    holders(out, machine)
}

fn system(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    let cpu = &machine.cpu;
    let kernel = machine.kernel.as_deref().unwrap_or("unknown");
    let model = cpu.model.as_deref().unwrap_or("unknown model");
    let id = cpu.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    let mut seats = vec![format!("{} online ({})", counted(cpu.cpus as u64, "CPU"), cpu.online)];
    seats.push(counted(cpu.sockets as u64, "socket"));
    if cpu.dies > cpu.sockets {
        seats.push(counted(cpu.dies as u64, "die"));
    }
    seats.push(format!("{}{}", counted(cpu.cores as u64, "core"), if cpu.smt { " with SMT" } else { "" }));
    if cpu.nodes > 1 {
        seats.push(counted(cpu.nodes as u64, "NUMA node"));
    }
    let mut rows = vec![
        ("Kernel", format!("Linux {kernel}, {}", machine.architecture)),
        ("CPU", format!("{model}{id}")),
        ("", seats.join(", ")),
    ];
    if cpu.virtual_machine {
        let name = cpu.hypervisor.as_deref().unwrap_or("unknown model");
        rows.push(("Hypervisor", name.to_owned()));
    }
    entries(out, &[left(0, 12), left(0, 0)], rows)
}

fn counters(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    heading(out, "Hardware counters")?;
    if machine.counters.is_empty() {
        wrapped(out, "  ", "none: the kernel has not registered a PMU for the cores of this machine")?;
    }
    for unit in &machine.counters {
        wrapped(out, "  ", &unit_line(unit))?;
        wrapped(out, "    ", &unit.how)?;
    }
    let named = |state: &str| -> Vec<String> {
        let events = machine.hardware_events.iter().filter(|event| event.state == state);
        events
            .map(|event| match event.share {
                Some(share) => format!("{} ({:.0} % of the time)", event.event, share * 100.0),
                None => event.event.to_owned(),
            })
            .collect()
    };
    for (state, words) in [
        ("running", "counting"),
        ("shared", "time-shared with others"),
        ("waiting", "busy: the event was opened, but no counter was free"),
        ("idle", "the event was opened but did not run"),
        ("refused", "not here"),
    ] {
        let events = named(state);
        let pointless = state == "refused" && machine.counters.is_empty();
        if !events.is_empty() && !pointless {
            wrapped(out, "  ", &format!("{words}: {}", events.join(", ")))?;
        }
    }
    Ok(())
}

fn unit_line(unit: &CoreCounterReport) -> String {
    let on = unit.cpus.as_ref().map(|cpus| format!(" (CPUs {cpus})")).unwrap_or_default();
    let wide = |bits: Option<u32>| bits.map(|bits| format!(" of {bits} bits")).unwrap_or_default();
    let mut parts = Vec::new();
    match unit.general {
        Some(general) => parts.push(format!("{general} general{}", wide(unit.general_width))),
        None => parts.push("number of general counters unknown".to_owned()),
    }
    if let Some(fixed) = unit.fixed {
        parts.push(format!("{fixed} fixed{}", wide(unit.fixed_width)));
    }
    if let (Some(free), Some(general)) = (unit.free, unit.general) {
        parts.push(if free >= general {
            "all general counters free".to_owned()
        } else {
            format!("{free} general counters free now")
        });
    }
    format!("{}{on}: {}", unit.pmu, parts.join(", "))
}

fn event_tables(out: &mut dyn Write, known: &EventTables) -> io::Result<()> {
    heading(out, "Vendor events")?;
    if known.tables.is_empty() {
        let cpu = known.cpu.as_deref().unwrap_or("this CPU (unknown model)");
        let none = format!(
            "no table for {cpu}: use codes from its manual (r1a8, cpu/event=0xa8,umask=0x1/), or pmc list \
             --import DIR to import tables from Intel, Arm or the kernel sources"
        );
        return wrapped(out, "  ", &none);
    }
    for table in &known.tables {
        wrapped(out, "  ", &table_line(table))?;
    }
    Ok(())
}

fn table_line(table: &EventTable) -> String {
    let pmu = if table.pmu.is_empty() { "uncore" } else { &table.pmu };
    let mut parts = vec![format!("{} events", thousands(table.events as u64))];
    if table.metrics > 0 {
        parts.push(format!("{} metrics", thousands(table.metrics as u64)));
    }
    let origin = match (table.imported_events, table.metrics > 0 && table.imported_metrics) {
        (true, true) => " (imported)",
        (true, false) if table.metrics > 0 => " (events imported)",
        (true, false) => " (imported)",
        (false, true) => " (metrics imported)",
        (false, false) => "",
    };
    let here = if table.here { "" } else { "; this machine has no PMU that counts them" };
    format!("{pmu}: table {}, {}{origin}{here}", clean(&table.model), parts.join(" and "))
}

fn pmus(out: &mut dyn Write, pmus: &[PmuReport]) -> io::Result<()> {
    heading(out, "PMUs")?;
    if pmus.is_empty() {
        return wrapped(out, "  ", "none in /sys/bus/event_source/devices");
    }
    let heading = ["name", "type", "events", "opened on", "terms"].map(str::to_owned).to_vec();
    let rows = pmus.iter().map(|pmu| {
        let on = match (&pmu.cpus, &pmu.cpumask) {
            (_, Some(mask)) => format!("CPU {}", clean(mask)),
            (Some(cpus), None) => format!("CPU {}", clean(cpus)),
            (None, None) => "any".to_owned(),
        };
        let terms: Vec<&str> = pmu.formats.keys().map(String::as_str).collect();
        let (name, events) = (clean(&pmu.name).into_owned(), pmu.events.len().to_string());
        vec![name, pmu.kind.to_string(), events, on, clean(&terms.join(" ")).into_owned()]
    });
    let shapes = [left(2, 0), right(2, 0), right(2, 0), left(2, 0), left(2, 0)];
    table::write(out, &shapes, Some(COLUMNS as u16), std::iter::once(heading).chain(rows))
}

fn holders(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    heading(out, "Processes with counters")?;
    let holders = &machine.holders;
    let watchdog = match holders.nmi_watchdog {
        Some(true) => "on: uses one counter on each CPU (sysctl kernel.nmi_watchdog=0 frees it)",
        Some(false) => "off",
        None => "none in this kernel",
    };
    let mut rows =
        vec![("NMI watchdog", watchdog.to_owned()), ("reservation", reservation(&holders.reservation))];
    let mut label = "open events";
    for process in holders.processes.iter().take(MOST_HOLDERS) {
        let user = process.uid.map(|uid| format!(", uid {uid}")).unwrap_or_default();
        let events = counted(process.events as u64, "event");
        let line = format!("{events} in process {} ({}{user})", process.pid, process.comm);
        rows.push((std::mem::take(&mut label), line));
    }
    if holders.processes.is_empty() {
        rows.push((label, "none in the readable processes".to_owned()));
    }
    if holders.processes.len() > MOST_HOLDERS {
        let more = holders.processes.len() - MOST_HOLDERS;
        rows.push(("", format!("and {} more (--json has all)", counted(more as u64, "process"))));
    }
    if holders.hidden > 0 {
        let hidden = counted(holders.hidden as u64, "process");
        rows.push(("", format!("no permission to inspect {hidden}")));
    }
    if holders.truncated {
        rows.push(("", "the search stopped early: too many file descriptors".to_owned()));
    }
    entries(out, &ENTRY, rows)
}

fn reservation(reservation: &ReservationReport) -> String {
    let file = &reservation.lock_file;
    let told = |pids: &[u32], does: &str| match pids {
        [] => String::new(),
        pids => {
            let pids: Vec<String> = pids.iter().map(|pid| format!("pid {pid}")).collect();
            format!("; the agent ({}) {does}", pids.join(", "))
        }
    };
    let agents = told(&reservation.agents, "honours reservations")
        + &told(&reservation.deaf_agents, "does not have this file open and ignores reservations");
    match (&reservation.unknown, reservation.holders.is_empty()) {
        (Some(why), _) => format!("unknown: {why}{agents}"),
        (None, false) => format!("held by {}{agents}", reservation.holders.join(", ")),
        (None, true) if reservation.exists => format!("free ({file}){agents}"),
        (None, true) => format!("not in use (no {file}){agents}"),
    }
}

/// Maximum number of processes listed in the text.
const MOST_HOLDERS: usize = 8;

fn user(out: &mut dyn Write, machine: &MachineReport) -> io::Result<()> {
    let (user, settings) = (&machine.user, &machine.settings);
    heading(out, &format!("This user: {}", who(user)))?;
    let level =
        settings.perf_event_paranoid.map_or("no perf events".to_owned(), |level| format!("level {level}"));
    let allowed: Vec<&str> = [
        (user.allowed.user, "own processes"),
        (user.allowed.kernel, "kernel mode"),
        (user.allowed.cpu_wide, "whole CPUs"),
        (user.allowed.raw_tracepoint, "tracepoint data"),
    ]
    .iter()
    .filter(|(yes, _)| *yes)
    .map(|(_, what)| *what)
    .collect();
    let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
    let ring = match user.ring_kb {
        Some(kb) => format!("{} for ring buffers across all CPUs", bytes(kb * 1024)),
        None => "no limit for ring buffers".to_owned(),
    };
    let locked = user.locked_memory.map_or("unlimited".to_owned(), bytes);
    let mut rows = vec![
        ("paranoid", format!("{level}; allows this user: {allowed}")),
        ("locked memory", format!("{ring}, and {locked} by ulimit -l")),
    ];
    if let Some(rate) = settings.perf_event_max_sample_rate {
        let percent = settings.perf_cpu_time_max_percent.filter(|p| (1..100).contains(p));
        let percent = percent
            .map(|p| format!(", lowered when sampling takes more than {p}% of a CPU"))
            .unwrap_or_default();
        rows.push(("sample rate", format!("at most {} per second{percent}", thousands(rate))));
    }
    if let Some(frames) = settings.perf_event_max_stack {
        rows.push(("call chains", format!("at most {frames} frames")));
    }
    rows.push(("rdpmc", user_reads(settings.user_access).to_owned()));
    let names = match user.kernel_symbols {
        true => "the kernel shows its addresses",
        false => {
            "the kernel hides its addresses, so kernel functions have no names (to show them: CAP_SYSLOG, or kernel.kptr_restrict=0 and kernel.perf_event_paranoid=1)"
        }
    };
    let [soft, hard] = user.open_files.map(|most| most.map_or("unlimited".to_owned(), thousands));
    rows.push(("symbols", names.to_owned()));
    rows.push(("open files", format!("{soft}, can be raised to {hard}")));
    entries(out, &ENTRY, rows)
}

/// Describes which programs can read counters without a system call (`rdpmc` on x86, `perf_user_access` on
/// arm64).
fn user_reads(user_access: Option<u32>) -> &'static str {
    match user_access {
        None => "no PMU lets programs read its counters directly",
        Some(0) => "programs cannot read counters directly",
        Some(1) => "programs can read the counters of their own mapped events directly",
        Some(_) => "any program can read counters directly",
    }
}

fn who(user: &UserReport) -> String {
    let mut who = if user.uid == 0 { "root".to_owned() } else { format!("uid {}", user.uid) };
    if user.capabilities.is_empty() {
        who.push_str(", no relevant capabilities");
    } else {
        who.push_str(&format!(", {}", user.capabilities.join(" ")));
    }
    if user.user_namespace {
        who.push_str(" (in a user namespace, whose capabilities do not apply to perf events)");
    }
    if user.seccomp != "off" {
        who.push_str(&format!(", seccomp {}", user.seccomp));
    }
    who
}

fn verdicts(out: &mut dyn Write, verdicts: &[UseCaseReport]) -> io::Result<()> {
    heading(out, "What works")?;
    let mut notes: Vec<&MissingReason> = Vec::new();
    let mut rows = Vec::new();
    for verdict in verdicts {
        let mut line = clean(verdict.purpose).into_owned();
        for why in &verdict.reasons {
            let same = |note: &&MissingReason| {
                (&note.cause, &note.remedy, note.errno) == (&why.cause, &why.remedy, why.errno)
            };
            let number = notes.iter().position(same).unwrap_or_else(|| {
                notes.push(why);
                notes.len() - 1
            });
            line.push_str(match why.missing {
                "" => " ",
                _ => ", no ",
            });
            line.push_str(&format!(
                "{}{}[{}]",
                why.missing,
                if why.missing.is_empty() { "" } else { " " },
                number + 1
            ));
        }
        rows.push(vec![verdict.command.to_owned(), verdict.state.to_owned(), line]);
    }
    table::write(out, &[left(2, 0), left(2, 7), left(2, 0)], Some(COLUMNS as u16), rows)?;
    for (number, why) in notes.iter().enumerate() {
        let errno = why.errno.map(|name| format!(" ({name})")).unwrap_or_default();
        let mark = format!("  [{}] ", number + 1);
        let indent = " ".repeat(mark.len());
        write_hanging(out, &mark, &indent, &format!("{}{errno}", why.cause))?;
        if !why.remedy.is_empty() {
            write_hanging(out, &indent, &format!("{indent}     "), &format!("try: {}", why.remedy))?;
        }
    }
    Ok(())
}

fn heading(out: &mut dyn Write, title: &str) -> io::Result<()> {
    writeln!(out)?;
    write_hanging(out, "", "    ", title)
}

/// Shapes of two columns: a label and its text.
const ENTRY: [ColumnShape; 2] = [left(2, 13), left(2, 0)];

fn entries(out: &mut dyn Write, shapes: &[ColumnShape; 2], rows: Vec<(&str, String)>) -> io::Result<()> {
    let rows = rows.into_iter().map(|(label, text)| vec![label.to_owned(), clean(&text).into_owned()]);
    table::write(out, shapes, Some(COLUMNS as u16), rows)
}

fn wrapped(out: &mut dyn Write, indent: &str, text: &str) -> io::Result<()> {
    write_hanging(out, indent, &format!("{indent}  "), text)
}

/// Cleans, wraps and writes `text`. The first line starts with `first`, and all other lines start with
/// `rest`.
fn write_hanging(out: &mut dyn Write, first: &str, rest: &str, text: &str) -> io::Result<()> {
    wrap(first, rest, text, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::machine::{
        AllowedUses, CpuReport, HardwareEvent, HolderProcess, HolderReport, KernelSettings,
    };
    use pmc_text::text::width;
    use std::collections::BTreeMap;

    fn why(missing: &'static str) -> MissingReason {
        MissingReason {
            missing,
            errno: Some("ENOENT"),
            cause: "there is no PMU".to_owned(),
            remedy: "get one".to_owned(),
        }
    }

    fn machine() -> MachineReport {
        MachineReport {
            version: 1,
            kernel: Some("6.1.0".to_owned()),
            architecture: "x86_64",
            cpu: CpuReport {
                model: Some("Some CPU".to_owned()),
                id: None,
                online: "0-7".to_owned(),
                cpus: 8,
                sockets: 1,
                dies: 1,
                cores: 4,
                nodes: 1,
                smt: true,
                virtual_machine: false,
                hypervisor: None,
            },
            event_tables: EventTables {
                cpu: Some("GenuineIntel-6-55-4".to_owned()),
                tables: vec![EventTable {
                    model: "skylakex".to_owned(),
                    pmu: "cpu".to_owned(),
                    here: true,
                    events: 470,
                    metrics: 260,
                    imported_events: true,
                    imported_metrics: false,
                }],
            },
            pmus: vec![PmuReport {
                name: "uncore_imc_0".to_owned(),
                kind: 13,
                events: vec!["a".to_owned(), "b".to_owned()],
                formats: (0..30).map(|n| (format!("term{n}"), "config:0".to_owned())).collect(),
                cpus: None,
                cpumask: Some("0,4".to_owned()),
                capabilities: BTreeMap::new(),
            }],
            counters: vec![CoreCounterReport {
                pmu: "cpu".to_owned(),
                cpus: None,
                general: Some(8),
                general_width: Some(48),
                fixed: Some(4),
                fixed_width: Some(48),
                free: Some(6),
                found_by: "cpuid+probe".to_owned(),
                how: "both say so".to_owned(),
            }],
            hardware_events: vec![
                HardwareEvent { event: "cycles", state: "shared", share: Some(0.625), reason: None },
                HardwareEvent { event: "bus-cycles", state: "refused", share: None, reason: Some(why("")) },
            ],
            holders: HolderReport {
                nmi_watchdog: Some(true),
                reservation: ReservationReport {
                    lock_file: "/run/lock".to_owned(),
                    exists: true,
                    holders: vec!["perfalloc (pid 7)".to_owned()],
                    agents: vec![9],
                    deaf_agents: vec![10],
                    unknown: None,
                },
                processes: (1..12)
                    .map(|pid| HolderProcess { pid, comm: "perf".to_owned(), uid: Some(0), events: 1 })
                    .collect(),
                hidden: 1,
                truncated: false,
            },
            settings: KernelSettings {
                perf_event_paranoid: Some(2),
                perf_event_mlock_kb: Some(516),
                perf_event_max_sample_rate: Some(100_000),
                perf_cpu_time_max_percent: Some(0),
                perf_event_max_stack: Some(127),
                perf_event_max_contexts_per_stack: Some(8),
                nmi_watchdog: Some(true),
                kptr_restrict: Some(1),
                ptrace_scope: None,
                unprivileged_bpf_disabled: None,
                user_access: Some(1),
            },
            user: UserReport {
                uid: 1000,
                capabilities: Vec::new(),
                user_namespace: false,
                seccomp: "filter",
                locked_memory: Some(8 << 20),
                ring_kb: Some(516 * 8),
                open_files: [Some(1024), None],
                kernel_symbols: false,
                allowed: AllowedUses { user: true, kernel: false, cpu_wide: false, raw_tracepoint: false },
            },
            verdicts: vec![
                UseCaseReport {
                    command: "stat",
                    purpose: "count a command",
                    state: "limited",
                    reasons: vec![why("hardware events")],
                },
                UseCaseReport {
                    command: "record -b",
                    purpose: "taken branches",
                    state: "not",
                    reasons: vec![why("")],
                },
            ],
        }
    }

    fn text(machine: &MachineReport) -> String {
        let mut out = Vec::new();
        write(&mut out, machine).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn held_and_shared_counters_are_reported() {
        let text = text(&machine());
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "8 CPUs online (0-7), 1 socket, 4 cores with SMT",
            "cpu: 8 general of 48 bits, 4 fixed of 48 bits, 6 general counters free now",
            "time-shared with others: cycles (62 % of the time)",
            "not here: bus-cycles",
            "held by perfalloc (pid 7); the agent (pid 9) honours reservations; the agent (pid 10) does not \
             have this file open and ignores reservations",
            "on: uses one counter on each CPU",
            "and 3 processes more",
            "no permission to inspect 1 process",
            "level 2; allows this user: own processes locked",
            "4.03 MiB for ring buffers",
        ] {
            assert!(flowing.contains(words), "{words:?} not in\n{text}");
        }
        assert!(text.lines().all(|line| width(line) <= COLUMNS), "{text}");
    }

    #[test]
    fn same_reason_is_explained_once() {
        let text = text(&machine());
        assert!(text.contains("count a command, no hardware events [1]"), "{text}");
        assert!(text.contains("taken branches [1]"), "{text}");
        assert_eq!(text.matches("there is no PMU (ENOENT)").count(), 1, "{text}");
    }
}
