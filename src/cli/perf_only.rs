//! Commands of perf and of FreeBSD's pmc(8) that do not exist in pmc.

/// perf commands that do not exist in pmc: names, purpose, and the nearest equivalent in pmc.
pub const PERF_ONLY: &[(&[&str], &str, &str)] = &[
    (
        &["kwork"],
        "measures interrupts and work queues",
        "pmc latency irq, or pmc latency softirq; pmc latency workqueue:workqueue_execute_start \
         workqueue:workqueue_execute_end -k work -a, for work queues; pmc record -e 'irq:*,workqueue:*' -a: \
         perf kwork report reads that file",
    ),
    (
        &["mem", "c2c"],
        "samples memory accesses",
        "pmc record -d -W -e EVENT, then pmc report --mem-mode; perf mem report and perf c2c report read that file too",
    ),
    (&["iostat"], "counts PCIe traffic by device", "pmc latency block measures the requests of disks"),
    (
        &["kmem"],
        "shows who allocates kernel memory",
        "pmc record -g -e kmem:kmalloc,kmem:kmem_cache_alloc -a, then pmc report; \
         pmc latency kmem:kmalloc kmem:kfree -k ptr -a, for how long allocations live",
    ),
    (
        &["kvm"],
        "shows what virtual machines do",
        "pmc record -e 'kvm:*' -a, then pmc script; perf reads that file too",
    ),
    (
        &["ftrace"],
        "drives the kernel's function tracer",
        "pmc latency BEGIN END, for the time between two events (ftrace latency -e); \
         pmc latency kprobe:FUNCTION kprobe:FUNCTION%return -a, for a function (ftrace latency -T); \
         pmc record -e 'SYSTEM:*' -a, then pmc script, for tracepoints",
    ),
    (
        &["timechart"],
        "draws what each CPU and each thread did",
        "pmc sched record, then pmc sched map, for CPUs; \
         pmc record --wall -- COMMAND, then pmc export --format perfetto, for threads; \
         pmc record -e 'sched:*,power:*' -a: perf timechart reads that file",
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

/// Commands of FreeBSD's pmc(8) that have a different name in pmc: names, purpose, and the command to type
/// instead.
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
        "pmc report -s tgid,comm -i LOG; --percent-limit PERCENT hides the rest",
    ),
    (&["view"], "shows a recording", "pmc report -i LOG"),
];
