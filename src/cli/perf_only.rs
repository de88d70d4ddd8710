//! Commands of perf and of FreeBSD's pmc(8) that pmc does not have.

/// Commands of perf that pmc does not have: their names, their purpose and the nearest pmc equivalent.
pub const PERF_ONLY: &[(&[&str], &str, &str)] = &[
    (
        &["sched", "kwork"],
        "follows the scheduler's tracepoints",
        "pmc record -e 'sched:*' -a, then pmc script; perf sched reads that file too",
    ),
    (
        &["lock"],
        "analyses the tracepoints of locks",
        "pmc record -e 'lock:*' -a -g, then pmc report; perf lock reads that file too",
    ),
    (
        &["mem", "c2c"],
        "samples memory accesses",
        "pmc record -d -W -e EVENT, then pmc report --mem-mode; perf mem report and perf c2c report read that file too",
    ),
    (
        &["trace"],
        "prints system calls as they happen",
        "pmc stat -e 'syscalls:*' counts them; pmc record -e 'syscalls:*' then pmc script prints them",
    ),
    (
        &["probe"],
        "defines probes in tracefs",
        "uprobe:FILE:FUNCTION, kprobe:FUNCTION and sdt_PROVIDER:NAME are events of pmc's, and pmc counts and samples what perf probe defined",
    ),
    (
        &["kvm", "iostat", "kmem"],
        "follows tracepoints of one subsystem",
        "pmc record -e 'SYSTEM:*' -a, then pmc script; perf reads that file too",
    ),
    (&["ftrace"], "drives the kernel's function tracer", "pmc record -e 'SYSTEM:*' for tracepoints"),
    (
        &["timechart"],
        "draws what each CPU did",
        "pmc record -e 'sched:*,power:*' -a; perf timechart reads that file",
    ),
    (
        &["bench", "test"],
        "measures or tests perf and the kernel",
        "pmc stat -r N COMMAND repeats and compares",
    ),
    (
        &["daemon"],
        "keeps recordings running",
        "pmc record --overwrite --switch-output takes snapshots on SIGUSR2",
    ),
];

/// Commands of FreeBSD's pmc(8) with another name in pmc: their names, their purpose and what to type.
pub(crate) const FREEBSD_ONLY: &[(&[&str], &str, &str)] = &[
    (&["list-events"], "lists the events", "pmc list [TEXT]; pmc list --long TEXT for -u, -U and -f"),
    (&["stat-system"], "counts on the whole machine", "pmc stat -a -- COMMAND"),
    (
        &["filter"],
        "copies the samples of some processes or threads into another log",
        "pmc report, pmc script or pmc export with --pid PID, --tid TID, --comm NAME",
    ),
    (
        &["summary"],
        "shows the processes with the most samples of each event",
        "pmc report -s tgid,comm -i LOG; --percent-limit PERCENT leaves out the rest",
    ),
    (&["view"], "shows a recording", "pmc report -i LOG"),
];
