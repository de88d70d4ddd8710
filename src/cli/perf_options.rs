//! Options of perf's that pmc takes without having them: what each is answered. One table, from which the
//! parser takes the options, [`answered`] the answers, and docs/perf-options.md its lines.
//!
//! An option leaves this table when a command gets it for itself: clap refuses to know one twice.

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

/// What becomes of such an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Taken in silence: what it asks for is so anyway, for this reason.
    IsSo(&'static str),
    /// Taken, and said to change nothing, for this reason.
    Ignored(&'static str),
    /// Refused: why, and what to do instead.
    Refused(&'static str, &'static str),
}

use Answer::{Ignored, IsSo, Refused};

/// An option as `perf -h` writes it: `-f, --force`, `--objdump <path>`, `--itrace[=<opts>]`.
#[derive(Debug, Clone, Copy)]
pub struct PerfOption {
    /// The commands that it is an option of, with commas between.
    commands: &'static str,
    spelling: &'static str,
    /// What is answered.
    pub answer: Answer,
}

impl PerfOption {
    /// Whose option it is.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.commands.split(", ")
    }

    /// Whether it is an option of this command.
    pub fn is_of(&self, command: &str) -> bool {
        self.commands().any(|name| name == command)
    }

    /// `-f`'s letter, where there is one.
    pub fn short(&self) -> Option<char> {
        self.spelling.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')
    }

    /// `force`, where it has a long name.
    pub fn long(&self) -> Option<&'static str> {
        self.typed().strip_prefix("--")
    }

    /// As it is typed: `--force`.
    pub fn typed(&self) -> &'static str {
        let typed = &self.spelling[self.spelling.find("--").unwrap_or(0)..];
        &typed[..typed.find([' ', '[']).unwrap_or(typed.len())]
    }

    /// Whether it takes a value, which it may do without if there is a `[=`.
    pub fn takes_value(&self) -> bool {
        self.spelling.contains('<')
    }

    fn argument(&self) -> Arg {
        let argument = Arg::new(self.spelling).hide(true).value_parser(ValueParser::os_string());
        let argument = self.short().into_iter().fold(argument, Arg::short);
        let argument = self.long().into_iter().fold(argument, Arg::long);
        match (self.takes_value(), self.spelling.contains("[=")) {
            (true, true) => argument.num_args(0..=1).require_equals(true).action(ArgAction::Append),
            (true, false) => argument.allow_hyphen_values(true).action(ArgAction::Append),
            (false, _) => argument.value_parser(clap::value_parser!(u8)).action(ArgAction::Count),
        }
    }
}

/// The command with what it takes for perf's sake.
pub fn add(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let all = OPTIONS.iter().filter(|option| option.is_of(&name));
    all.fold(command, |command, option| command.arg(option.argument()))
}

/// Those that were typed.
pub fn typed<'a>(
    command: &'a str,
    matches: &'a ArgMatches,
) -> impl Iterator<Item = &'static PerfOption> + 'a {
    let is_typed =
        |option: &&PerfOption| matches.value_source(option.spelling) == Some(ValueSource::CommandLine);
    OPTIONS.iter().filter(|option| option.is_of(command)).filter(is_typed)
}

const fn row(commands: &'static str, spelling: &'static str, answer: Answer) -> PerfOption {
    PerfOption { commands, spelling, answer }
}

const NO_TRACES: Answer = Refused(
    "pmc reads no traces of instructions (Intel PT, CoreSight)",
    "the same with perf, which reads the same file",
);
const NO_OFF_CPU: Answer = Refused(
    "it needs a program in the kernel that measures how long tasks wait (perf: built with BUILD_BPF_SKEL=1)",
    "-e sched:sched_switch -g for where they begin to wait, or --switch-events",
);
const NO_SWITCH: Answer = Refused("samples are read in any order", "a span of time: --time FROM,TO");
const NO_SWITCH_LIVE: Answer =
    Refused("samples are counted in any order", "pmc record, then pmc script --time FROM,TO");
const NO_BRANCHES_LIVE: Answer =
    Refused("top counts where samples were taken, not branches", "pmc record -b, then pmc report -b");
const NO_DUMP: Answer =
    Refused("it prints no records", "pmc report -D, or pmc script -D, which print every record byte by byte");
const NO_OBJDUMP: Answer = Ignored("pmc disassembles by itself");
const NO_ADDR2LINE: Answer = Ignored("pmc reads lines by itself");
const NO_TYPES: Answer = Refused(
    "pmc follows instructions and lines, not the types of the data that they touch",
    "perf annotate --data-type, which reads pmc's files; pmc annotate names variables beside the code",
);
const FOR_CODE: Answer = Ignored("a report shows no code: pmc annotate does");
const NO_SCRIPTS: Answer = Refused(
    "it embeds neither Python nor Perl, and loads no code",
    "pmc script --json prints an object a line, for any language",
);
const NO_GUEST_DATA: Answer = Refused(
    "recordings of guests are not joined with their host's",
    "perf inject --guest-data, which reads the same file",
);
const NO_GUESTS: Answer =
    Refused("functions of guests are not looked for", "perf kvm --guest report, which reads the same file");
const NO_BOOK: Answer = Refused(
    "pmc has no info pages, and no pages of its commands on the web",
    "pmc help COMMAND, or man pmc-COMMAND where the man pages are installed",
);
const NO_CODE: Answer = Refused("script shows no code", "pmc script -F +brstacksym, or pmc annotate");

/// The table, command by command.
pub const OPTIONS: &[PerfOption] = &[
    // Of several commands.
    row(
        "annotate, buildid-cache, buildid-list, diff, evlist, inject, report, script",
        "-f, --force",
        IsSo("a recording is read whoever owns it"),
    ),
    row(
        "annotate, buildid-list, diff, inject, report, script",
        "-v, --verbose",
        IsSo("what is wrong with a recording is always said"),
    ),
    row("annotate, diff, report", "-m, --modules", IsSo("the kernel's modules are always among the symbols")),
    row(
        "annotate, report, script, top",
        "--demangle-kernel",
        IsSo("names of the kernel are demangled as all are"),
    ),
    row("annotate, inject, report, script", "--itrace[=<opts>]", NO_TRACES),
    row("report, script", "--switch-on <event>", NO_SWITCH),
    row("report, script", "--switch-off <event>", NO_SWITCH),
    row("report, script", "--show-on-off-events", NO_SWITCH),
    row("kallsyms", "-v, --verbose", IsSo("a list that cannot be read is always said")),
    row("annotate, top", "--objdump <path>", NO_OBJDUMP),
    row("annotate, report, script, top", "--addr2line <path>", NO_ADDR2LINE),
    row("report", "--addr2line-style <style>", NO_ADDR2LINE),
    row("report, script", "--unwind-style <style>", IsSo("stacks are unwound without libdw and libunwind")),
    row("annotate, diff", "-D, --dump-raw-trace", NO_DUMP),
    // Before the command.
    row("pmc", "--debug <variable>", Ignored("pmc prints no debugging output; warnings are always printed")),
    row("pmc", "--debug-file <file>", Ignored("pmc prints no debugging output; warnings are always printed")),
    row("pmc", "--debugfs-dir <path>", Ignored("pmc finds tracefs where the kernel has it mounted")),
    row("pmc", "--html-path", NO_BOOK),
    // annotate
    row("annotate", "--code-with-type", NO_TYPES),
    row("annotate", "--data-type[=<name>]", NO_TYPES),
    row("annotate", "--insn-stat", NO_TYPES),
    row("annotate", "--type-stat", NO_TYPES),
    // buildid-cache
    row(
        "buildid-cache",
        "-k, --kcore <file>",
        Refused(
            "the kernel's code is read where it is: /proc/kcore, or a vmlinux",
            "pmc annotate --kcore FILE, with a copy of /proc/kcore",
        ),
    ),
    // help
    row("help", "-a, --all", IsSo("all commands are always listed")),
    row(
        "help",
        "-m, --man",
        IsSo("a man page says what the help says: man pmc-COMMAND where they are installed"),
    ),
    row("help", "-i, --info", NO_BOOK),
    row("help", "-w, --web", NO_BOOK),
    // diff
    row(
        "diff",
        "--cycles-hist",
        Refused(
            "it compares no cycles between branches",
            "pmc report -b -s symbol_from,symbol_to,cycles of each recording",
        ),
    ),
    // top
    row("top", "--force", IsSo("nothing is read that could be somebody else's")),
    row("top", "--source", IsSo("code has its source lines between the instructions")),
    row("top", "--asm-raw", Ignored("the screen's code has no room for bytes: pmc annotate --asm-raw")),
    row("top", "--all-cgroups", IsSo("-s cgroup has cgroups told of whenever it needs them")),
    row("top", "--namespaces", Ignored("no column shows namespaces")),
    row("top", "--no-bpf-event", Ignored("the kernel tells of BPF programs as they are loaded, at no cost")),
    row("top", "--num-thread-synthesize <n>", Ignored("one thread tells what runs")),
    row("top", "--proc-map-timeout <n>", Ignored("mappings are read to their end")),
    row("top", "--overwrite", Ignored("rings are emptied several times a second")),
    row("top", "--raw-trace", Ignored("no column shows the fields of tracepoints")),
    row("top", "--switch-on <event>", NO_SWITCH_LIVE),
    row("top", "--switch-off <event>", NO_SWITCH_LIVE),
    row("top", "--show-on-off-events", NO_SWITCH_LIVE),
    row(
        "top",
        "--stitch-lbr",
        Refused(
            "samples are counted as they come, not in the order in which each thread made its calls",
            "pmc record --call-graph lbr, then pmc report --stitch-lbr",
        ),
    ),
    row("top", "-b, --branch-any", NO_BRANCHES_LIVE),
    row("top", "-j, --branch-filter <branch filter mask>", NO_BRANCHES_LIVE),
    row("top", "--branch-history", NO_BRANCHES_LIVE),
    row(
        "top",
        "-D, --dump-symtab",
        Refused("it prints no symbol tables", "nm -n FILE; sort /proc/kallsyms for the kernel's"),
    ),
    row(
        "top",
        "--sym-annotate <symbol name>",
        Refused("its screen opens the code of any row, on the key a", "pmc record, then pmc annotate SYMBOL"),
    ),
    // record
    row("record", "--threads[=<spec>]", Ignored("one thread empties all rings, and is seldom busy")),
    row("record", "--tail-synthesize", Ignored("what runs is told at the beginning of every file")),
    row(
        "record",
        "--no-bpf-event",
        Ignored("the kernel tells of BPF programs as they are loaded, at no cost"),
    ),
    row("record", "--aio[=<n>]", Ignored("rings are written straight from their memory")),
    row("record", "--affinity <node|cpu>", Ignored("rings are emptied from wherever pmc runs")),
    row("record", "--mmap-flush <number>", Ignored("rings are written as they are found")),
    row("record", "--num-thread-synthesize <n>", Ignored("one thread tells what runs")),
    row("record", "--proc-map-timeout <n>", Ignored("mappings are read to their end")),
    row("record", "--vmlinux <file>", Ignored("symbols are looked for when a report is made")),
    row(
        "record",
        "--debuginfod[=<debuginfod urls>]",
        Ignored("symbols are looked for when a report is made"),
    ),
    row("record", "--timestamp-boundary", IsSo("the first and last time are always in the file")),
    row("record", "--off-cpu", NO_OFF_CPU),
    row("record", "--off-cpu-thresh <ms>", NO_OFF_CPU),
    row(
        "record",
        "--setup-filter <pin|unpin>",
        Refused(
            "pmc filters without BPF programs",
            "--filter for tracepoints; -p, -u or -G for whom to record",
        ),
    ),
    row(
        "record",
        "--kcore",
        Refused(
            "a recording of pmc's is one file, without the kernel's memory",
            "pmc annotate on this machine, which reads the running kernel's code",
        ),
    ),
    // inject
    row("inject", "-k, --vmlinux <file>", IsSo("no function's name is looked for")),
    row("inject", "--kallsyms <file>", IsSo("no function's name is looked for")),
    row("inject", "--ignore-vmlinux", IsSo("no function's name is looked for")),
    row("inject", "--unwind-style <unwind style>", IsSo("pmc has one unwinder, its own")),
    row("inject", "--strip", NO_TRACES),
    row("inject", "--vm-time-correlation[=<opts>]", NO_TRACES),
    row("inject", "--guest-data[=<opts>]", NO_GUEST_DATA),
    row("inject", "--guestmount <directory>", NO_GUEST_DATA),
    row(
        "inject",
        "--aslr",
        Refused(
            "addresses are carried over as they are: without them nobody can look into the programs",
            "perf inject --aslr, which reads the same file",
        ),
    ),
    row(
        "inject",
        "-s, --sched-stat",
        Refused(
            "it joins sched:sched_stat_* with sched:sched_switch, which newer kernels give together",
            "pmc record -e sched:sched_switch -g -a: each sample is where a task stopped running",
        ),
    ),
    // stat
    row("stat, stat-record", "--affinity", Ignored("counters are opened once, from wherever pmc runs")),
    row("stat, stat-record", "--hybrid-merge", IsSo("both kinds of cores are one row unless --no-merge")),
    row("stat, stat-record", "--record-tpebs", Ignored("latencies of retirement are those of the table")),
    row(
        "stat, stat-record",
        "--tpebs-mode <tpebs-mode>",
        Ignored("latencies of retirement are those of the table"),
    ),
    row(
        "stat, stat-record",
        "--percore-show-thread",
        Refused("no event is summed over the threads of a core by itself", "-a --per-core, or -A"),
    ),
    row(
        "stat, stat-record",
        "--smi-cost",
        Refused(
            "it stops the counters of the whole machine in system management mode (cpu/freeze_on_smi)",
            "write 1 there as root, then -e '{msr/aperf/,msr/smi/,cycles}': the share is 1 - cycles/aperf",
        ),
    ),
    row(
        "stat, stat-record",
        "-T, --transaction",
        Refused(
            "few processors have transactions, and fewer have them on",
            "-e '{instructions,cycles,cpu/cycles-t/,cpu/tx-start/,cpu/cycles-ct/}'",
        ),
    ),
    row(
        "stat, stat-record",
        "--iostat[=<default>]",
        Refused(
            "it knows the ports of some servers only",
            "-a -e with events of uncore_iio_* (pmc list pmu)",
        ),
    ),
    row("stat-record", "--append", Ignored("a file of counts is always written anew")),
    // list
    row("list", "--debug", IsSo("--long shows the request of every event")),
    // report
    row("report", "--tui", IsSo("a terminal shows the screen unless something typed asks for text")),
    row("annotate, report", "--skip-empty", IsSo("events without samples have no table")),
    row("report", "--disable-order", IsSo("samples need no order here")),
    row("report", "--pretty <key>", IsSo("there is one form of the text for all of perf's")),
    row("report", "--samples <n>", IsSo("the screen's timeline shows any sample")),
    row(
        "annotate, report, top",
        "--ignore-vmlinux",
        IsSo("a vmlinux is believed only where its build-id is the recorded kernel's"),
    ),
    row("report", "-M, --disassembler-style <disassembler style>", FOR_CODE),
    row("report", "--asm-raw", FOR_CODE),
    row("report", "--source", FOR_CODE),
    row("report", "--objdump <path>", FOR_CODE),
    row("report", "--prefix <prefix>", FOR_CODE),
    row("report", "--prefix-strip <N>", FOR_CODE),
    row("report", "--percent-type <local-period>", FOR_CODE),
    row(
        "report",
        "--total-cycles",
        Refused(
            "it adds up cycles of basic blocks, which needs their code and a branch stack",
            "pmc report -b -s symbol_from,symbol_to,cycles",
        ),
    ),
    row(
        "report",
        "--branch-history",
        Refused("branches are not joined to call chains", "pmc report -b, or pmc script -F +brstacksym"),
    ),
    row(
        "report",
        "--show-ref-call-graph",
        Refused("each event shows the chains that were recorded with it", "pmc record -g with all events"),
    ),
    // script
    row("script", "-a, --all-cpus", IsSo("all CPUs of the recording are printed unless -C says otherwise")),
    row("script", "--show-kernel-path", IsSo("the path of the kernel's file is what its samples say")),
    row("script", "-s, --script <name>", NO_SCRIPTS),
    row("script", "-g, --gen-script <lang>", NO_SCRIPTS),
    row("script", "-l, --list", NO_SCRIPTS),
    row("script", "--dlfilter <file>", NO_SCRIPTS),
    row("script", "--list-dlfilters", NO_SCRIPTS),
    row("script", "--dlarg <argument>", NO_SCRIPTS),
    row("script", "--guest-code", NO_GUESTS),
    row("script", "--guestkallsyms <file>", NO_GUESTS),
    row("script", "--guestmodules <file>", NO_GUESTS),
    row("script", "--guestmount <directory>", NO_GUESTS),
    row("script", "--guestvmlinux <file>", NO_GUESTS),
    row(
        "script",
        "--merge-callchains",
        IsSo("callers that came later are joined to their samples wherever they were deferred"),
    ),
    row(
        "script",
        "-L, --Latency",
        Refused("the columns of latency were never recorded by perf record", "pmc script -F +misc"),
    ),
    row(
        "script",
        "-d, --debug-mode",
        Refused("it checks the order while it prints", "pmc info FILE counts the records"),
    ),
    row("script", "--insn-trace[=<raw|disasm>]", NO_TRACES),
    row("script", "--call-trace", NO_TRACES),
    row("script", "--call-ret-trace", NO_TRACES),
    row("script", "--graph-function <symbol[,symbol...]>", NO_TRACES),
    row("script", "--xed", NO_CODE),
    row("script", "--max-blocks <n>", NO_CODE),
    row(
        "script",
        "--addr-range <addr[,addr...]>",
        Refused("-S takes names", "pmc script -F +addr, and a filter"),
    ),
];
