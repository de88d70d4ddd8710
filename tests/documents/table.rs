//! What the pages need to run, and the blocks that cannot run.

/// How the blocks of a page run, in one folder.
pub(crate) struct PageRun {
    /// Path in the repository.
    pub(crate) path: &'static str,
    /// Whether the printed lines must have the order of the shown ones. Rows with similar times do not.
    pub(crate) is_ordered: bool,
    /// A part of the commands that print to a terminal.
    pub(crate) on_terminal: Option<&'static str>,
    /// Programs that must be installed.
    pub(crate) programs: &'static [&'static str],
    /// Shell commands that make what the page takes for granted. `$PROGRAMS` is `tests/documents/programs`,
    /// and `$REPOSITORY` is the checkout.
    pub(crate) setup: &'static str,
    /// Shell commands that remove what the blocks leave outside the folder.
    pub(crate) teardown: &'static str,
}

const PLAIN: PageRun =
    PageRun { path: "", is_ordered: true, on_terminal: None, programs: &[], setup: "", teardown: "" };

/// The pages with blocks that run.
pub(crate) const PAGES: &[PageRun] = &[
    PageRun { path: "README.md", programs: &["g++", "sed"], ..PLAIN },
    PageRun {
        path: "docs/annotate.md",
        on_terminal: Some("--stdio"),
        programs: &["gcc", "awk"],
        setup: "cp $PROGRAMS/shares.c .; sed s,/src,$PWD, $PROGRAMS/shares.s >shares.s; gcc shares.s -o shares; pmc record -q -F 4000 -- ./shares",
        ..PLAIN
    },
    PageRun {
        path: "docs/ci.md",
        programs: &["gcc"],
        setup: "gcc -O1 -g -DTURNS=100 $PROGRAMS/versions.c -o old; gcc -O1 -g -DTURNS=150 $PROGRAMS/versions.c -o new",
        ..PLAIN
    },
    PageRun {
        path: "docs/counting.md",
        programs: &["gzip"],
        setup: "head -c 20000000 /dev/zero >big.so",
        ..PLAIN
    },
    PageRun {
        path: "docs/diff.md",
        is_ordered: false,
        on_terminal: Some("pmc diff"),
        programs: &["gcc"],
        setup: "cp $PROGRAMS/shares.c .; gcc -g -fno-omit-frame-pointer shares.c -o shares
            pmc record -q -g -F 4000 -o old.data -- ./shares 50 30
            pmc record -q -g -F 4000 -o new.data -- ./shares 20 60
            gcc -O1 -g -fno-omit-frame-pointer -pthread -DWRITE_US=3000 $PROGRAMS/queue.c -o queue
            pmc profile -q -o before.data -- ./queue
            gcc -O1 -g -fno-omit-frame-pointer -pthread -DWRITE_US=9000 $PROGRAMS/queue.c -o queue
            pmc profile -q -o after.data -- ./queue",
        ..PLAIN
    },
    PageRun { path: "docs/first-report.md", is_ordered: false, programs: &["g++"], ..PLAIN },
    PageRun {
        path: "docs/how-to.md",
        is_ordered: false,
        programs: &["g++", "gcc"],
        setup: "mkdir old new
            gcc -O1 -g -DBINARY $PROGRAMS/shop.c -o old/shop; gcc -O1 -g $PROGRAMS/shop.c -o new/shop",
        ..PLAIN
    },
    PageRun {
        path: "docs/import.md",
        setup: "cp $REPOSITORY/fuzz/corpus/imported_profile/go.cpu.pb.gz .
            echo 'main;f 1' >app.folded; echo 'NYTProf 5 0' >nytprof.out
            { for i in $(seq 12); do echo 'grep;main;parse 1'; done; printf 'grep;main;re'; } >cut.folded
            printf 'events: Ir\\nfn=main\\n1 x\\n' >broken.callgrind",
        ..PLAIN
    },
    PageRun {
        path: "docs/latency.md",
        programs: &["gcc"],
        setup: "gcc -O1 -g $PROGRAMS/store.c -o store",
        ..PLAIN
    },
    PageRun {
        path: "docs/lock.md",
        is_ordered: false,
        programs: &["g++", "gcc"],
        setup: "g++ -O1 -g -pthread $PROGRAMS/cache.cpp -o server; gcc -O1 -g -pthread $PROGRAMS/parallel-writes.c -o parallel-writes",
        ..PLAIN
    },
    PageRun {
        path: "docs/probe.md",
        programs: &["gcc"],
        setup: "pmc probe -q -d 'probe_server:*' || true; cp $PROGRAMS/server.c .; gcc -O1 -g server.c -o server",
        teardown: "pmc probe -q -d 'probe_server:*'",
        ..PLAIN
    },
    PageRun {
        path: "docs/record.md",
        is_ordered: false,
        programs: &["gcc"],
        setup: "gcc -O1 -g -pthread $PROGRAMS/wakers.c -o server",
        ..PLAIN
    },
    PageRun {
        path: "docs/report.md",
        on_terminal: Some("--stdio"),
        programs: &["gcc"],
        setup: "gcc -O1 -g -fno-optimize-sibling-calls $PROGRAMS/deep.c -o deep; pmc record -q -F 4000 --call-graph auto -- ./deep",
        ..PLAIN
    },
    PageRun {
        path: "docs/sched.md",
        is_ordered: false,
        programs: &["gcc", "taskset"],
        setup: "gcc -O1 -g -pthread $PROGRAMS/stall.c -o stall",
        ..PLAIN
    },
    PageRun { path: "docs/schemas/README.md", programs: &["jq"], ..PLAIN },
    PageRun {
        path: "docs/top.md",
        programs: &["gcc"],
        setup:
            "cp $PROGRAMS/shares.c .; sed s,/src,$PWD, $PROGRAMS/shares.s >shares.s; gcc shares.s -o shares
            gcc -O2 -g -fno-omit-frame-pointer -pthread docs/pictures/waits.c -o waits",
        is_ordered: false,
        ..PLAIN
    },
    PageRun {
        path: "docs/trace.md",
        is_ordered: false,
        programs: &["gcc"],
        setup: "gcc -O1 -g $PROGRAMS/log.c -o slow",
        ..PLAIN
    },
];

/// Why a block cannot run in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CannotRun {
    /// It needs hardware counters or traces. `tests/pmu` checks them on an emulated machine.
    Hardware,
    /// It needs a server that answers in a certain way.
    Server,
    /// It needs a container runtime with an image.
    Container,
    /// It needs a Python extension and the headers of Python.
    Python,
    /// It shows what other programs did at that time.
    OtherPrograms,
    /// It shows how long a disk takes.
    Disk,
    /// It shows strings of a process that may end too early.
    ShortProcess,
}

impl CannotRun {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Hardware => "hardware counters or traces (`tests/pmu` checks them on an emulated machine)",
            Self::Server => "a server that refuses a push",
            Self::Container => "a container runtime and an image",
            Self::Python => "a C extension for Python 3.12, which most machines cannot build",
            Self::OtherPrograms => "other programs that run at the same time",
            Self::Disk => "a disk with varying times",
            Self::ShortProcess => "a process that may end before pmc reads its strings",
        }
    }
}

/// The blocks with output that cannot run: page, first command that runs pmc, reason.
#[rustfmt::skip]
pub(crate) const CANNOT_RUN: &[(&str, &str, CannotRun)] = &[
    ("README.md", "pmc stat work 50000000", CannotRun::Hardware),
    ("docs/counting.md", "pmc stat -e '{cycles,instructions}' work 50000000", CannotRun::Hardware),
    ("docs/counting.md", "pmc stat -e instructions,instructions:u,cycles,stalled-cycles-frontend,stalled-cycles-backend,r8,cycles:u,r11 work 100000000", CannotRun::Hardware),
    ("docs/counting.md", "pmc stat --exact -e instructions,instructions:u,instructions:k,r8,stalled-cycles-backend,stalled-cycles-frontend,r8:u work 100000000", CannotRun::Hardware),
    ("docs/counting.md", "pmc stat -M ipc,ghz work 50000000", CannotRun::Hardware),
    ("docs/how-to.md", "pmc profile -p serve -- sleep 3", CannotRun::Container),
    ("docs/how-to.md", "pmc stat -a -G $cgroup -e cpu-clock,context-switches,page-faults -- sleep 2", CannotRun::Container),
    ("docs/how-to.md", "pmc stat -e task-clock -- /bin/serve", CannotRun::Container),
    ("docs/how-to.md", "pmc profile -- python3 prices.py", CannotRun::Python),
    ("docs/how-to.md", "pmc report --tree -s sym", CannotRun::Python),
    ("docs/how-to.md", "pmc report --no-children -g none -s sym,srcline", CannotRun::Python),
    ("docs/latency.md", "pmc latency syscall:fsync -g --heatmap --slowest 2 -- ./store", CannotRun::Disk),
    ("docs/push.md", "pmc export --push http://localhost:4318 --service shop", CannotRun::Server),
    ("docs/push.md", "pmc export -i old.data --push pyroscope=http://localhost:4040 --service shop", CannotRun::Server),
    ("docs/record.md", "pmc record -e arm_spe_0// -- ./hot 20000000", CannotRun::Hardware),
    ("docs/record.md", "pmc record -q -a --wall --wakers -- ./server", CannotRun::OtherPrograms),
    ("docs/sched.md", "pmc sched record -- taskset -c 0 ./stall", CannotRun::OtherPrograms),
    ("docs/sched.md", "pmc sched timehist --state --blame", CannotRun::OtherPrograms),
    ("docs/sched.md", "pmc sched map", CannotRun::OtherPrograms),
    ("docs/top-down.md", "pmc stat --topdown --td-level 2 -- ./work", CannotRun::Hardware),
    ("docs/top-down.md", "pmc stat -M tma_branch_mispredicts --metric-no-threshold -- ./work", CannotRun::Hardware),
    ("docs/trace.md", "pmc trace -e openat,read,write -- cat /etc/hostname | wc", CannotRun::ShortProcess),
];
