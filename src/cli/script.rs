//! `pmc script`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::sample_filter::SampleFilter;
use super::symbol_files::SymbolFiles;

/// Print the samples one by one, in the order of time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc script                              as perf script prints it
  pmc script | stackcollapse-perf.pl      flame graphs
  pmc script -F comm,tid,time,ip,sym      chosen fields
  pmc script -F +srcline,-period          the usual fields, changed
  pmc script --json                       one object a line
Fields: comm, pid, tid, misc, cpu, time, tod, event, period, trace, ip, sym, symoff, dso, srcline, srccode, addr,
data_src, weight, ins_lat, phys_addr, data_page_size, code_page_size, cgroup, uregs, iregs, brstack, brstacksym,
brstackoff, bpf-output, stream_id, dsoff; flags, synth, ipc and callindent are empty (pmc reads no instruction traces),
and so are machine_pid and vcpu (pmc reads no guests' samples).")]
pub struct Script {
    /// The recording (also as -i); `-` is standard input [default: what comes on it, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// What is printed; +NAME and -NAME change the usual choice; hw: sw: trace: raw: before it mean such
    /// events only
    #[arg(short = 'F', long, value_name = "[KIND:]FIELD,…", allow_hyphen_values = true)]
    pub fields: Vec<String>,

    /// Leave out callers
    #[arg(short = 'G', long)]
    pub hide_call_graph: bool,

    /// Cut call chains off behind these functions
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub stop_bt: Vec<String>,

    /// Only samples taken in these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    pub symbols: Vec<String>,

    /// Only samples taken in these programs and libraries
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dsos: Vec<String>,

    /// Longest call chain
    #[arg(long, value_name = "FRAMES", default_value_t = 127)]
    pub max_stack: usize,

    /// Complete calls that the processor kept (record --call-graph lbr) with those of the thread's samples
    /// before
    #[arg(long)]
    pub stitch_lbr: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub filter: SampleFilter,

    /// Times to the nanosecond
    #[arg(long)]
    pub ns: bool,

    /// Times since the first line
    #[arg(long, conflicts_with = "deltatime")]
    pub reltime: bool,

    /// Times since the line before
    #[arg(long)]
    pub deltatime: bool,

    /// Show forks, exits and new names too
    #[arg(long)]
    pub show_task_events: bool,

    /// Show what was mapped too
    #[arg(long)]
    pub show_mmap_events: bool,

    /// Show context switches too, if recorded
    #[arg(long)]
    pub show_switch_events: bool,

    /// Show what was lost too
    #[arg(long)]
    pub show_lost_events: bool,

    /// Show namespaces too, if recorded
    #[arg(long)]
    pub show_namespace_events: bool,

    /// Show cgroups too, if recorded
    #[arg(long)]
    pub show_cgroup_events: bool,

    /// Show BPF programs that came and went too, if recorded
    #[arg(long)]
    pub show_bpf_events: bool,

    /// Show changes of the kernel's code too, if recorded
    #[arg(long)]
    pub show_text_poke_events: bool,

    /// Show where the recorder's rounds end too
    #[arg(long)]
    pub show_round_events: bool,

    /// Show all records too, byte by byte and field by field
    #[arg(short = 'D', long, conflicts_with = "json")]
    pub dump_raw_trace: bool,

    /// The same, records in the order of the file, not of time
    #[arg(long, conflicts_with = "json")]
    pub dump_unsorted_raw_trace: bool,

    /// Show what the recording says of itself first
    #[arg(short = 'I', long, alias = "show-info")]
    pub header: bool,

    /// Show only what the recording says of itself
    #[arg(long)]
    pub header_only: bool,

    /// Find inlined functions (default where stacks were copied, as perf does)
    #[arg(long, overrides_with = "no_inline")]
    pub inline: bool,

    /// Names from symbol tables only
    #[arg(long)]
    pub no_inline: bool,

    /// Names as people write them (default)
    #[arg(long, overrides_with = "no_demangle")]
    pub demangle: bool,

    /// Names as the compiler wrote them
    #[arg(long)]
    pub no_demangle: bool,

    /// Paths of source files in full
    #[arg(long)]
    pub full_source_path: bool,

    /// Write each event's lines to a file of its own beside the recording: FILE.EVENT.dump
    #[arg(long, conflicts_with_all = ["header", "header_only", "dump_raw_trace"])]
    pub per_event_dump: bool,

    /// Print one JSON object a line
    #[arg(short = 'j', long)]
    pub json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub symbol_files: SymbolFiles,
}
