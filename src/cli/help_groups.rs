//! Layout of the help: the headings under which `--help` lists a command's options, and the options that `-h`
//! shows.
//!
//! The tables identify options by their long names, or by their letters if there is no long name. Options
//! without a group come first, under clap's default heading.

use clap::{Arg, Command};

/// Layout of a command's help.
struct HelpLayout {
    command: &'static str,
    /// The common options, which `-h` shows.
    usual: &'static [&'static str],
    /// The headings, each with the options under it.
    groups: &'static [(&'static str, &'static [&'static str])],
}

const HELPS: &[HelpLayout] = &[
    HelpLayout {
        command: "record",
        usual: &[
            "event",
            "freq",
            "count",
            "g",
            "call-graph",
            "wall",
            "all-cpus",
            "cpu",
            "pid",
            "tid",
            "cgroup",
            "no-inherit",
            "output",
            "duration",
            "delay",
            "filter",
            "compression-level",
            "switch-output",
            "verbose",
            "quiet",
        ],
        groups: &[
            (
                "Events",
                &[
                    "event",
                    "pfm-events",
                    "filter",
                    "exclude-perf",
                    "freq",
                    "count",
                    "strict-freq",
                    "strict",
                    "group",
                    "all-user",
                    "all-kernel",
                    "reserve",
                ],
            ),
            (
                "Call stacks",
                &[
                    "g",
                    "call-graph",
                    "max-stack",
                    "kernel-callchains",
                    "user-callchains",
                    "unwind",
                    "no-join",
                    "backlog",
                ],
            ),
            ("Waiting time", &["wall", "off-cpu", "off-cpu-thresh", "wakers"]),
            ("Targets", &["all-cpus", "cpu", "pid", "tid", "uid", "cgroup", "no-inherit", "per-thread"]),
            ("Duration", &["duration", "delay", "control", "snapshot", "overwrite", "dry-run"]),
            (
                "Output",
                &[
                    "output",
                    "compression-level",
                    "max-size",
                    "switch-output",
                    "switch-output-event",
                    "switch-max-files",
                    "switch-exec",
                    "timestamp-filename",
                    "no-buildid",
                    "no-buildid-cache",
                    "buildid-all",
                    "buildid-mmap",
                    "json",
                    "verbose",
                    "quiet",
                ],
            ),
            (
                "Fields of samples",
                &[
                    "timestamp",
                    "period",
                    "no-period",
                    "data",
                    "sample-mem-info",
                    "data-mmap",
                    "phys-data",
                    "data-page-size",
                    "code-page-size",
                    "weight",
                    "transaction",
                    "sample-cpu",
                    "raw-samples",
                    "branch-any",
                    "branch-filter",
                    "intr-regs",
                    "user-regs",
                    "no-samples",
                    "running-time",
                    "sample-identifier",
                    "aux-sample",
                    "clockid",
                ],
            ),
            ("Other records", &["stat", "switch-events", "latency", "namespaces", "all-cgroups", "synth"]),
            ("Rings", &["mmap-pages", "no-buffering", "realtime"]),
        ],
    },
    HelpLayout {
        command: "stat",
        usual: &[
            "event",
            "metrics",
            "detailed",
            "repeat",
            "vs",
            "fail-if",
            "warmup",
            "pre",
            "interval-print",
            "all-cpus",
            "cpu",
            "pid",
            "per-thread",
            "per-core",
            "per-socket",
            "no-aggr",
            "duration",
            "children",
            "topdown",
            "field-separator",
            "json",
            "output",
        ],
        groups: &[
            (
                "Events",
                &[
                    "event",
                    "pfm-events",
                    "perfevent-conf",
                    "filter",
                    "cputype",
                    "pmu-filter",
                    "detailed",
                    "all-user",
                    "all-kernel",
                    "null",
                    "reserve",
                ],
            ),
            (
                "Metrics",
                &[
                    "metrics",
                    "metric",
                    "metric-only",
                    "metric-no-group",
                    "metric-no-merge",
                    "metric-no-threshold",
                    "topdown",
                    "td-level",
                ],
            ),
            ("Targets", &["all-cpus", "cpu", "pid", "tid", "uid", "cgroup", "for-each-cgroup", "no-inherit"]),
            (
                "Runs",
                &[
                    "repeat",
                    "warmup",
                    "vs",
                    "fail-if",
                    "format",
                    "exact",
                    "pre",
                    "post",
                    "sync",
                    "table",
                    "show-output",
                ],
            ),
            (
                "Time",
                &[
                    "interval-print",
                    "interval-count",
                    "interval-clear",
                    "summary",
                    "duration",
                    "delay",
                    "control",
                ],
            ),
            (
                "Rows",
                &[
                    "no-aggr",
                    "per-thread",
                    "per-core",
                    "per-cluster",
                    "per-cache",
                    "per-die",
                    "per-socket",
                    "per-node",
                    "no-merge",
                    "children",
                    "user-kernel",
                ],
            ),
            (
                "Output",
                &[
                    "output",
                    "append",
                    "log-fd",
                    "field-separator",
                    "json",
                    "openmetrics",
                    "listen",
                    "log-exit",
                    "log-cswitch",
                    "no-csv-summary",
                    "big-num",
                    "no-big-num",
                    "scale",
                    "no-scale",
                    "verbose",
                    "quiet",
                ],
            ),
        ],
    },
    HelpLayout {
        command: "report",
        usual: &[
            "input",
            "sort",
            "fields",
            "call-graph",
            "no-children",
            "show-nr-samples",
            "show-total-period",
            "percent-limit",
            "limit",
            "comms",
            "pid",
            "cpu",
            "time",
            "dsos",
            "symbols",
            "no-inline",
            "header",
            "field-separator",
            "stdio",
            "json",
        ],
        groups: &[
            (
                "Rows and columns",
                &[
                    "sort",
                    "fields",
                    "show-nr-samples",
                    "show-total-period",
                    "show-cpu-utilization",
                    "percent-limit",
                    "percentage",
                    "limit",
                    "hierarchy",
                    "group",
                    "no-group",
                    "group-sort-idx",
                    "latency",
                    "time-quantum",
                    "mem-mode",
                    "branch-stack",
                    "no-branch-stack",
                    "parallelism",
                ],
            ),
            (
                "Call stacks",
                &[
                    "call-graph",
                    "inverted",
                    "children",
                    "no-children",
                    "max-stack",
                    "stitch-lbr",
                    "idle",
                    "no-join",
                    "parent",
                    "ignore-callees",
                    "collapse-recursion",
                ],
            ),
            (
                "Filters",
                &[
                    "comms",
                    "pid",
                    "tid",
                    "cpu",
                    "time",
                    "dsos",
                    "symbols",
                    "symbol-filter",
                    "hide-unresolved",
                    "exclude-other",
                    "socket-filter",
                ],
            ),
            (
                "Names",
                &[
                    "inline",
                    "no-inline",
                    "demangle",
                    "no-demangle",
                    "full-names",
                    "full-source-path",
                    "symfs",
                    "kallsyms",
                    "vmlinux",
                    "no-cache",
                    "debuginfod",
                    "no-debuginfod",
                ],
            ),
            (
                "Instead of a profile",
                &["header", "header-only", "stats", "dump-raw-trace", "tasks", "mmaps", "threads"],
            ),
            (
                "Output",
                &[
                    "stdio",
                    "color",
                    "theme",
                    "field-separator",
                    "json",
                    "csv",
                    "column-widths",
                    "ns",
                    "raw-trace",
                    "verbose",
                    "quiet",
                ],
            ),
        ],
    },
    HelpLayout {
        command: "trace",
        usual: &[
            "expr",
            "failure",
            "min-duration",
            "summary",
            "with-summary",
            "summary-only",
            "errno-summary",
            "g",
            "pid",
            "tid",
            "uid",
            "all-cpus",
            "input",
            "output",
            "timeout",
            "json",
        ],
        groups: &[
            (
                "Calls",
                &["expr", "failure", "min-duration", "g", "call-graph", "max-stack", "time", "string-limit"],
            ),
            (
                "Tables",
                &["summary", "with-summary", "summary-only", "summary-mode", "max-summary", "errno-summary"],
            ),
            (
                "Targets",
                &["pid", "tid", "uid", "all-cpus", "cpu", "cgroup", "filter-pids", "no-inherit", "input"],
            ),
            ("Duration", &["delay", "timeout", "duration", "max-events"]),
            ("Output", &["output", "json", "verbose", "quiet"]),
            ("Resources", &["mmap-pages", "realtime"]),
        ],
    },
    HelpLayout {
        command: "top",
        usual: &[
            "event",
            "freq",
            "count",
            "g",
            "call-graph",
            "all-cpus",
            "cpu",
            "pid",
            "tid",
            "uid",
            "cgroup",
            "delay",
            "sort",
            "comms",
            "dsos",
            "symbols",
            "hide-kernel-symbols",
            "wall",
            "idle",
            "stdio",
            "duration",
        ],
        groups: &[
            (
                "Events",
                &[
                    "event",
                    "pfm-events",
                    "filter",
                    "freq",
                    "count",
                    "g",
                    "call-graph",
                    "max-stack",
                    "reserve",
                ],
            ),
            ("Waiting time", &["wall", "off-cpu"]),
            ("Targets", &["all-cpus", "cpu", "pid", "tid", "uid", "cgroup", "no-inherit"]),
            (
                "Rows and columns",
                &[
                    "sort",
                    "fields",
                    "hierarchy",
                    "group",
                    "group-sort-idx",
                    "column-widths",
                    "show-nr-samples",
                    "show-total-period",
                    "percent-limit",
                    "count-filter",
                    "percentage",
                    "entries",
                    "children",
                    "no-children",
                    "idle",
                    "zero",
                    "accumulate",
                ],
            ),
            (
                "Filters",
                &["comms", "dsos", "symbols", "hide-kernel-symbols", "hide-user-symbols", "ignore-callees"],
            ),
            ("Output", &["delay", "duration", "stdio", "tui", "theme", "json", "verbose", "quiet"]),
        ],
    },
    HelpLayout {
        command: "script",
        usual: &[
            "input",
            "fields",
            "hide-call-graph",
            "symbols",
            "dsos",
            "comms",
            "pid",
            "tid",
            "cpu",
            "time",
            "ns",
            "reltime",
            "deltatime",
            "show-task-events",
            "show-mmap-events",
            "show-switch-events",
            "header",
            "no-inline",
            "max-stack",
            "json",
        ],
        groups: &[
            (
                "Lines",
                &[
                    "fields",
                    "hide-call-graph",
                    "stop-bt",
                    "max-stack",
                    "ns",
                    "reltime",
                    "deltatime",
                    "idle",
                    "no-join",
                    "stitch-lbr",
                    "full-source-path",
                    "per-event-dump",
                    "json",
                    "header",
                    "header-only",
                ],
            ),
            ("Filters", &["symbols", "dsos", "comms", "pid", "tid", "cpu", "time"]),
            (
                "Other records",
                &[
                    "show-task-events",
                    "show-mmap-events",
                    "show-switch-events",
                    "show-lost-events",
                    "show-namespace-events",
                    "show-cgroup-events",
                    "show-bpf-events",
                    "show-text-poke-events",
                    "show-round-events",
                    "dump-raw-trace",
                    "dump-unsorted-raw-trace",
                ],
            ),
            (
                "Names",
                &[
                    "inline",
                    "no-inline",
                    "demangle",
                    "no-demangle",
                    "symfs",
                    "kallsyms",
                    "vmlinux",
                    "no-cache",
                    "debuginfod",
                    "no-debuginfod",
                ],
            ),
        ],
    },
    HelpLayout {
        command: "annotate",
        usual: &[
            "input",
            "symbol",
            "dsos",
            "comms",
            "pid",
            "cpu",
            "time",
            "functions",
            "percent-limit",
            "show-nr-samples",
            "limit",
            "disassembler-style",
            "asm-raw",
            "no-source",
            "source-only",
            "print-line",
            "group",
            "stdio",
            "theme",
            "json",
        ],
        groups: &[
            ("Functions", &["symbol", "dsos", "functions", "skip-missing"]),
            ("Filters", &["comms", "pid", "tid", "cpu", "time", "no-join"]),
            (
                "Rows and columns",
                &[
                    "percent-limit",
                    "percent-type",
                    "show-nr-samples",
                    "show-total-period",
                    "limit",
                    "disassembler-style",
                    "asm-raw",
                    "no-asm-raw",
                    "source",
                    "no-source",
                    "source-only",
                    "print-line",
                    "full-paths",
                    "prefix",
                    "prefix-strip",
                    "group",
                    "demangle",
                    "no-demangle",
                ],
            ),
            ("Files", &["symfs", "kallsyms", "vmlinux", "no-cache", "debuginfod", "no-debuginfod", "kcore"]),
            ("Output", &["tui", "theme", "stdio", "stdio2", "color", "json", "quiet"]),
        ],
    },
];

fn of(command: &Command) -> Option<&'static HelpLayout> {
    HELPS.iter().find(|help| help.command == command.get_name())
}

fn is_named(arg: &Arg, name: &str) -> bool {
    match arg.get_long_and_visible_aliases() {
        Some(names) => names.contains(&name),
        None => arg.get_short().is_some_and(|short| name.chars().eq([short])),
    }
}

/// Puts the command's options under their headings.
pub(super) fn grouped(command: Command) -> Command {
    let Some(help) = of(&command) else { return command };
    command.mut_args(|arg| {
        let has = |names: &[&str]| names.iter().any(|name| is_named(&arg, name));
        match help.groups.iter().find(|(_, names)| has(names)) {
            Some((heading, _)) => arg.help_heading(*heading),
            None => arg,
        }
    })
}

/// Returns the command with only the options that `-h` shows; `None` if `-h` shows all options.
pub(crate) fn brief(command: Command) -> Option<Command> {
    let help = of(&command)?;
    let all = "All options: pmc help ";
    let more = format!("{all}{}, or --help", help.command);
    let more = match command.get_after_help() {
        Some(examples) => format!("{examples}\n\n{more}"),
        None => more,
    };
    let is_usual = |arg: &Arg| arg.is_positional() || help.usual.iter().any(|name| is_named(arg, name));
    Some(command.after_help(more).mut_args(|arg| if is_usual(&arg) { arg } else { arg.hide(true) }))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_name_is_an_option_in_exactly_one_group() {
        let mut parser = Cli::command();
        parser.build();
        for HelpLayout { command, usual, groups } in HELPS {
            let command = parser.find_subcommand(command).expect("a command");
            let options: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
            let named: Vec<&str> = groups.iter().flat_map(|(_, names)| *names).copied().collect();
            for name in named.iter().chain(*usual) {
                assert!(options.iter().any(|arg| is_named(arg, name)), "{}: {name}", command.get_name());
            }
            for name in *usual {
                assert!(*name == "input" || named.contains(name), "{}: {name}", command.get_name());
            }
            for name in &named {
                assert_eq!(named.iter().filter(|other| *other == name).count(), 1, "{name}");
            }
            assert!((15..=22).contains(&usual.len()), "{}: {}", command.get_name(), usual.len());
        }
    }
}
