//! perf options that pmc does not implement, and how pmc responds to them. The parser, the responses and
//! docs/perf-options.md are all generated from this table.
//!
//! When you implement one of these options in a command, remove it from this table, because clap rejects
//! duplicate options.

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};

/// How pmc responds to a perf option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionTreatment {
    /// Accepted silently, because pmc always behaves that way. The string describes the behaviour.
    AlreadySo(&'static str),
    /// Accepted with a note that it has no effect. The string gives the reason.
    Ignored(&'static str),
    /// Rejected. The strings give the reason and the alternative.
    Refused(&'static str, &'static str),
}

use OptionTreatment::{AlreadySo, Ignored, Refused};

/// A perf option in the syntax of `perf -h`: `-f, --force`, `--objdump <path>`, `--itrace[=<opts>]`.
#[derive(Debug, Clone, Copy)]
pub struct PerfOption {
    /// The commands that have this option, separated by commas.
    commands: &'static str,
    spelling: &'static str,
    /// How pmc responds to the option.
    pub answer: OptionTreatment,
}

impl PerfOption {
    /// Returns the commands that have this option.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.commands.split(", ")
    }

    /// Whether this command has the option.
    pub fn is_of(&self, command: &str) -> bool {
        self.commands().any(|name| name == command)
    }

    /// Returns the letter, such as `f`, if there is one.
    pub fn short(&self) -> Option<char> {
        self.spelling.strip_prefix('-')?.chars().next().filter(|letter| *letter != '-')
    }

    /// Returns the long name, such as `force`, if there is one.
    pub fn long(&self) -> Option<&'static str> {
        self.typed().strip_prefix("--")
    }

    /// Returns the option as users type it: `--force`.
    pub fn typed(&self) -> &'static str {
        let typed = &self.spelling[self.spelling.find("--").unwrap_or(0)..];
        &typed[..typed.find([' ', '[']).unwrap_or(typed.len())]
    }

    /// Whether the option takes a value. The value is optional if the syntax contains `[=`.
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

/// Adds perf's options to the command.
pub(crate) fn add(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let all = OPTIONS.iter().filter(|option| option.is_of(&name));
    all.fold(command, |command, option| command.arg(option.argument()))
}

/// Returns the perf options on this command line.
pub(crate) fn typed<'a>(
    command: &'a str,
    matches: &'a ArgMatches,
) -> impl Iterator<Item = &'static PerfOption> + 'a {
    let is_typed =
        |option: &&PerfOption| matches.value_source(option.spelling) == Some(ValueSource::CommandLine);
    OPTIONS.iter().filter(|option| option.is_of(command)).filter(is_typed)
}

const fn row(commands: &'static str, spelling: &'static str, answer: OptionTreatment) -> PerfOption {
    PerfOption { commands, spelling, answer }
}

const NO_TRACES: OptionTreatment = Refused(
    "pmc does not decode instruction traces (Intel PT, CoreSight)",
    "use perf, which reads the same file",
);
const NO_SWITCH: OptionTreatment =
    Refused("pmc does not read samples in order", "select a time range: --time FROM,TO");
const NO_SWITCH_LIVE: OptionTreatment =
    Refused("pmc does not read samples in order", "pmc record, then pmc script --time FROM,TO");
const NO_BRANCHES_LIVE: OptionTreatment =
    Refused("top does not count branches", "pmc record -b, then pmc report -b");
const NO_DUMP: OptionTreatment =
    Refused("it does not print records", "pmc report -D or pmc script -D, which dump every record");
const NO_OBJDUMP: OptionTreatment = Ignored("pmc has its own disassembler");
const NO_ADDR2LINE: OptionTreatment = Ignored("pmc reads line tables itself");
const NO_TYPES: OptionTreatment = Refused(
    "pmc does not track data types",
    "perf annotate --data-type, which reads pmc's files; pmc annotate shows variable names next to the code",
);
const FOR_CODE: OptionTreatment = Ignored("report does not show code; use pmc annotate");
const NO_SCRIPTS: OptionTreatment = Refused(
    "pmc does not embed Python or Perl, and does not load code",
    "pmc script --json prints one object per line, for any language",
);
const NO_GUEST_DATA: OptionTreatment = Refused(
    "pmc does not merge guest and host recordings",
    "perf inject --guest-data, which reads the same file",
);
const NO_GUESTS: OptionTreatment =
    Refused("pmc does not look up guest symbols", "perf kvm --guest report, which reads the same file");
const NO_KERNEL_LINES: OptionTreatment = Refused(
    "pmc does not read the kernel's debug information",
    "perf probe, whose probes pmc records; or a function, with %REGISTER or $argN",
);
const NO_BOOK: OptionTreatment =
    Refused("pmc has no info pages and no web pages", "pmc help COMMAND, or man pmc-COMMAND");

/// All options, sorted by command.
pub const OPTIONS: &[PerfOption] = &[
    // Options that several commands share.
    row(
        "annotate, buildid-cache, buildid-list, diff, evlist, inject, report, script",
        "-f, --force",
        AlreadySo("pmc reads recordings of any owner"),
    ),
    row(
        "annotate, buildid-list, diff, inject, script",
        "-v, --verbose",
        AlreadySo("damage in a recording is always reported"),
    ),
    row("annotate, diff, report", "-m, --modules", AlreadySo("kernel modules are always included")),
    row(
        "annotate, report, script, top",
        "--demangle-kernel",
        AlreadySo("kernel symbols are always demangled"),
    ),
    row("annotate, inject, report, script", "--itrace[=<opts>]", NO_TRACES),
    row("report, script", "--switch-on <event>", NO_SWITCH),
    row("report, script", "--switch-off <event>", NO_SWITCH),
    row("report, script", "--show-on-off-events", NO_SWITCH),
    row("kallsyms", "-v, --verbose", AlreadySo("an unreadable list is always reported")),
    row("annotate, top", "--objdump <path>", NO_OBJDUMP),
    row("annotate, report, script, top", "--addr2line <path>", NO_ADDR2LINE),
    row("report", "--addr2line-style <style>", NO_ADDR2LINE),
    row("report, script", "--unwind-style <style>", AlreadySo("pmc unwinds without libdw and libunwind")),
    row("annotate, diff", "-D, --dump-raw-trace", NO_DUMP),
    // Options in front of the command's name.
    row("pmc", "--debug <variable>", Ignored("pmc has no debug output; warnings are always printed")),
    row("pmc", "--debug-file <file>", Ignored("pmc has no debug output; warnings are always printed")),
    row("pmc", "--debugfs-dir <path>", Ignored("pmc finds tracefs automatically")),
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
            "pmc reads kernel code directly from /proc/kcore or a vmlinux",
            "pmc annotate --kcore FILE, with a copy of /proc/kcore",
        ),
    ),
    // help
    row("help", "-a, --all", AlreadySo("all commands are always listed")),
    row("help", "-m, --man", AlreadySo("man pages show the same text: man pmc-COMMAND, if installed")),
    row("help", "-i, --info", NO_BOOK),
    row("help", "-w, --web", NO_BOOK),
    // diff
    row(
        "diff",
        "--cycles-hist",
        Refused(
            "diff does not compare cycles between branches",
            "pmc report -b -s symbol_from,symbol_to,cycles of each recording",
        ),
    ),
    // top
    row("top", "--force", AlreadySo("top reads no files of other users")),
    row("top", "--source", AlreadySo("source lines are always shown between the instructions")),
    row("top", "--asm-raw", Ignored("the code pane has no room for bytes; use pmc annotate --asm-raw")),
    row("top", "--all-cgroups", AlreadySo("-s cgroup enables cgroup records when needed")),
    row("top", "--namespaces", Ignored("no column shows namespaces")),
    row("top", "--no-bpf-event", Ignored("BPF load records cost nothing")),
    row("top", "--num-thread-synthesize <n>", Ignored("one thread synthesizes records for running tasks")),
    row("top", "--proc-map-timeout <n>", Ignored("reading mappings has no time limit")),
    row("top", "--overwrite", Ignored("the ring buffers are read several times per second")),
    row("top", "--raw-trace", Ignored("no column shows the fields of tracepoints")),
    row("top", "--switch-on <event>", NO_SWITCH_LIVE),
    row("top", "--switch-off <event>", NO_SWITCH_LIVE),
    row("top", "--show-on-off-events", NO_SWITCH_LIVE),
    row(
        "top",
        "--stitch-lbr",
        Refused(
            "top does not keep the samples of each thread in order",
            "pmc record --call-graph lbr, then pmc report --stitch-lbr",
        ),
    ),
    row("top", "-b, --branch-any", NO_BRANCHES_LIVE),
    row("top", "-j, --branch-filter <branch filter mask>", NO_BRANCHES_LIVE),
    row("top", "--branch-history", NO_BRANCHES_LIVE),
    row(
        "top",
        "-D, --dump-symtab",
        Refused("top does not print symbol tables", "nm -n FILE; sort /proc/kallsyms for the kernel"),
    ),
    row(
        "top",
        "--sym-annotate <symbol name>",
        Refused("press a on a row to see its code", "pmc record, then pmc annotate SYMBOL"),
    ),
    // trace
    row("trace", "-f, --force", AlreadySo("trace reads files of any owner")),
    row("trace", "--comm", AlreadySo("each line contains the thread's name")),
    row("trace", "--syscalls", AlreadySo("system calls are always traced")),
    row("trace", "--sort-events", AlreadySo("events are always sorted by time")),
    row("trace", "--force-btf", Ignored("pmc has its own tables of arguments")),
    row("trace", "--libtraceevent_print", Ignored("pmc has its own tables of arguments")),
    row("trace", "--min-stack <n>", Ignored("stacks of any depth are shown")),
    row("trace", "--proc-map-timeout <n>", Ignored("reading mappings has no time limit")),
    row(
        "trace",
        "--tool_stats",
        Ignored("tables end with the number of calls, lost records and unmatched events"),
    ),
    row(
        "trace",
        "--show-cpu",
        Refused("a call may end on another CPU", "pmc record -e 'raw_syscalls:*', then pmc script"),
    ),
    row("trace", "--print-sample", NO_DUMP),
    row(
        "trace",
        "--bpf-summary",
        Refused(
            "it requires a BPF program in the kernel",
            "-s, which adds up the calls as they arrive, without a file",
        ),
    ),
    row(
        "trace",
        "--filter <filter>",
        Refused(
            "trace supports only system calls",
            "-e CALL,…, which filters in the kernel, or --filter-pids",
        ),
    ),
    row(
        "trace",
        "--kernel-syscall-graph",
        Refused("a stack ends at the system call", "pmc record -g -e raw_syscalls:sys_exit, then pmc report"),
    ),
    row(
        "trace",
        "-F, --pf <all|maj|min>",
        Refused("trace shows system calls only", "pmc record -e page-faults -c 1 -d, then pmc script"),
    ),
    row(
        "trace",
        "--sched",
        Refused("trace shows system calls only", "pmc record -e 'sched:*' -a, then pmc script"),
    ),
    row("trace", "--switch-on <event>", NO_SWITCH_LIVE),
    row("trace", "--switch-off <event>", NO_SWITCH_LIVE),
    row("trace", "--show-on-off-events", NO_SWITCH_LIVE),
    // record
    row("record", "--threads[=<spec>]", Ignored("one thread reads all ring buffers and is rarely busy")),
    row("record", "--tail-synthesize", Ignored("running tasks are described at the start of every file")),
    row("record", "--no-bpf-event", Ignored("BPF load records cost nothing")),
    row("record", "--aio[=<n>]", Ignored("records are written directly from the ring buffers")),
    row("record", "--affinity <node|cpu>", Ignored("one thread reads all ring buffers, on any CPU")),
    row("record", "--mmap-flush <number>", Ignored("records are written as soon as they are read")),
    row("record", "--num-thread-synthesize <n>", Ignored("one thread synthesizes records for running tasks")),
    row("record", "--proc-map-timeout <n>", Ignored("reading mappings has no time limit")),
    row("record", "--vmlinux <file>", Ignored("symbols are looked up when the file is read")),
    row("record", "--debuginfod[=<debuginfod urls>]", Ignored("symbols are looked up when the file is read")),
    row("record", "--timestamp-boundary", AlreadySo("the first and last timestamps are always recorded")),
    row(
        "record",
        "--setup-filter <pin|unpin>",
        Refused(
            "pmc does not filter with BPF programs",
            "--filter for tracepoints; -p, -u or -G for processes",
        ),
    ),
    row(
        "record",
        "--kcore",
        Refused(
            "a pmc recording is one file and contains no kernel memory",
            "pmc annotate on this machine, which reads the running kernel's code",
        ),
    ),
    // inject
    row("inject", "-k, --vmlinux <file>", AlreadySo("inject does not look up symbols")),
    row("inject", "--kallsyms <file>", AlreadySo("inject does not look up symbols")),
    row("inject", "--ignore-vmlinux", AlreadySo("inject does not look up symbols")),
    row("inject", "--unwind-style <unwind style>", AlreadySo("pmc has only its own unwinder")),
    row("inject", "--strip", NO_TRACES),
    row("inject", "--vm-time-correlation[=<opts>]", NO_TRACES),
    row("inject", "--guest-data[=<opts>]", NO_GUEST_DATA),
    row("inject", "--guestmount <directory>", NO_GUEST_DATA),
    row(
        "inject",
        "-s, --sched-stat",
        Refused(
            "newer kernels report both in one event",
            "pmc record -e sched:sched_switch -g -a: each sample is where a task stopped running",
        ),
    ),
    // stat
    row("stat, stat-record", "--affinity", Ignored("counters are opened once, on any CPU")),
    row(
        "stat, stat-record",
        "--hybrid-merge",
        AlreadySo("both core types are merged unless --no-merge is given"),
    ),
    row("stat, stat-record", "--record-tpebs", Ignored("retirement latencies come from the event tables")),
    row(
        "stat, stat-record",
        "--tpebs-mode <tpebs-mode>",
        Ignored("retirement latencies come from the event tables"),
    ),
    row(
        "stat, stat-record",
        "--percore-show-thread",
        Refused("pmc does not sum single events over the threads of a core", "-a --per-core, or -A"),
    ),
    row(
        "stat, stat-record",
        "--smi-cost",
        Refused(
            "it changes a system-wide setting (cpu/freeze_on_smi)",
            "write 1 there as root, then -e '{msr/aperf/,msr/smi/,cycles}': the share is 1 - cycles/aperf",
        ),
    ),
    row(
        "stat, stat-record",
        "-T, --transaction",
        Refused(
            "few processors support transactions",
            "-e '{instructions,cycles,cpu/cycles-t/,cpu/tx-start/,cpu/cycles-ct/}'",
        ),
    ),
    row(
        "stat, stat-record",
        "--iostat[=<default>]",
        Refused("it supports only some servers", "-a -e with uncore_iio_* events (pmc list pmu)"),
    ),
    row("stat-record", "--append", Ignored("the output file is always rewritten")),
    // list
    row("list", "--debug", AlreadySo("--long shows the attr fields of every event")),
    // report
    row("report", "--tui", AlreadySo("the full-screen interface is the default on a terminal")),
    row("annotate, report", "--skip-empty", AlreadySo("events without samples are never shown")),
    row("report", "--disable-order", AlreadySo("pmc never needs this")),
    row("report", "--pretty <key>", AlreadySo("there is one text format")),
    row("report", "--samples <n>", AlreadySo("the timeline pane shows every sample")),
    row(
        "annotate, report, top",
        "--ignore-vmlinux",
        AlreadySo("pmc uses a vmlinux only if its build-id matches the recorded kernel"),
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
        Refused("pmc does not sum cycles per basic block", "pmc report -b -s symbol_from,symbol_to,cycles"),
    ),
    row(
        "report",
        "--branch-history",
        Refused(
            "pmc does not combine branches with call chains",
            "pmc report -b, or pmc script -F +brstacksym",
        ),
    ),
    row(
        "report",
        "--show-ref-call-graph",
        Refused("each event shows its own call chains", "pmc record -g with all events"),
    ),
    // probe
    row(
        "probe",
        "--bootconfig",
        Refused("it prints no boot configuration", "pmc probe -D prints definitions"),
    ),
    row("probe", "--cache", Refused("static markers need no probe", "pmc record -e sdt_PROVIDER:NAME")),
    row("probe", "--demangle", AlreadySo("names are always demangled; mangled names work, too")),
    row("probe", "--demangle-kernel", Ignored("kernel symbols are always demangled")),
    row(
        "probe",
        "--range",
        Refused("pmc does not print ranges of locations", "pmc probe -V FUNCTION:LINE, for each line"),
    ),
    row("probe", "--symfs <directory>", Refused("a probe is in a file of this machine", "-x FILE")),
    row(
        "probe",
        "--target-ns <pid>",
        Refused("it does not enter mount namespaces", "-x /proc/PID/root/FILE"),
    ),
    row("probe", "-k, --vmlinux <file>", NO_KERNEL_LINES),
    row("probe", "-s, --source <directory>", NO_KERNEL_LINES),
    // script
    row("script", "-a, --all-cpus", AlreadySo("all CPUs are printed unless -C is given")),
    row("script", "--show-kernel-path", AlreadySo("samples show the recorded path of the kernel image")),
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
        AlreadySo("deferred call chains are always merged into their samples"),
    ),
    row(
        "script",
        "-L, --Latency",
        Refused("perf record never recorded the latency columns", "pmc script -F +misc"),
    ),
    row(
        "script",
        "-d, --debug-mode",
        Refused("it is a debug option of perf", "pmc info FILE counts the records"),
    ),
    row("script", "--insn-trace[=<raw|disasm>]", NO_TRACES),
    row("script", "--call-trace", NO_TRACES),
    row("script", "--call-ret-trace", NO_TRACES),
    row("script", "--graph-function <symbol[,symbol...]>", NO_TRACES),
    row("script", "--xed", Refused("pmc does not run xed", "pmc script -F +disasm")),
    row(
        "script",
        "--addr-range <addr[,addr...]>",
        Refused("-S takes names", "pmc script -F +addr, and a filter"),
    ),
];
