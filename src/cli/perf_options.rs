//! Options of perf's that `pmc report` and `pmc script` take without showing them: those that ask for nothing
//! here, and those that are answered with words.

use clap::Args;

/// Of `perf report`.
#[allow(missing_docs, reason = "perf's names")]
#[derive(Debug, Clone, Default, Args)]
pub struct OfReport {
    #[arg(short, long, hide = true)]
    pub force: bool,
    #[arg(short = 'I', long, hide = true)]
    pub show_info: bool,
    #[arg(short, long, hide = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[arg(short, long, hide = true)]
    pub modules: bool,
    #[arg(long, hide = true)]
    pub skip_empty: bool,
    #[arg(long, hide = true)]
    pub demangle_kernel: bool,
    #[arg(long, hide = true)]
    pub disable_order: bool,
    #[arg(long, hide = true)]
    pub stdio_color: Option<String>,
    #[arg(long, hide = true)]
    pub pretty: Option<String>,
    #[arg(long, hide = true)]
    pub samples: Option<String>,
    #[arg(short = 'M', long, hide = true)]
    pub disassembler_style: Option<String>,
    #[arg(long, hide = true)]
    pub asm_raw: bool,
    #[arg(long, hide = true)]
    pub source: bool,
    #[arg(long, hide = true)]
    pub objdump: Option<String>,
    #[arg(long, hide = true)]
    pub prefix: Option<String>,
    #[arg(long, hide = true)]
    pub prefix_strip: Option<String>,
    #[arg(long, hide = true)]
    pub percent_type: Option<String>,
    #[arg(long, hide = true)]
    pub ignore_vmlinux: bool,
    #[arg(long, hide = true)]
    pub total_cycles: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub itrace: Option<Option<String>>,
    #[arg(long, hide = true)]
    pub switch_on: Option<String>,
    #[arg(long, hide = true)]
    pub switch_off: Option<String>,
    #[arg(long, hide = true)]
    pub show_on_off_events: bool,
    #[arg(long, hide = true)]
    pub show_cpu_utilization: bool,
    #[arg(long, hide = true)]
    pub branch_history: bool,
    #[arg(long, hide = true)]
    pub show_ref_call_graph: bool,
    #[arg(long, hide = true)]
    pub stitch_lbr: bool,
}

/// Of `perf script`.
#[allow(missing_docs, reason = "perf's names")]
#[derive(Debug, Clone, Default, Args)]
pub struct OfScript {
    #[arg(short, long, hide = true)]
    pub force: bool,
    #[arg(short = 'I', long, hide = true)]
    pub show_info: bool,
    #[arg(short, long, hide = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[arg(short, long, hide = true)]
    pub all_cpus: bool,
    #[arg(long, hide = true)]
    pub demangle_kernel: bool,
    #[arg(long, hide = true)]
    pub show_kernel_path: bool,
    #[arg(short, long, hide = true)]
    pub script: Option<String>,
    #[arg(short, long, hide = true)]
    pub gen_script: Option<String>,
    #[arg(short, long, hide = true)]
    pub list: bool,
    #[arg(short = 'L', long = "Latency", hide = true)]
    pub latency: bool,
    #[arg(short, long, hide = true)]
    pub debug_mode: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub itrace: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub insn_trace: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub call_trace: Option<Option<String>>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub call_ret_trace: Option<Option<String>>,
    #[arg(long, hide = true)]
    pub graph_function: Option<String>,
    #[arg(long, hide = true)]
    pub xed: bool,
    #[arg(long, hide = true)]
    pub dlfilter: Option<String>,
    #[arg(long, hide = true)]
    pub list_dlfilters: bool,
    #[arg(long, hide = true)]
    pub max_blocks: Option<u32>,
    #[arg(long, hide = true)]
    pub per_event_dump: bool,
    #[arg(long, hide = true)]
    pub addr_range: Option<String>,
    #[arg(long, hide = true)]
    pub switch_on: Option<String>,
    #[arg(long, hide = true)]
    pub switch_off: Option<String>,
    #[arg(long, hide = true)]
    pub show_on_off_events: bool,
    #[arg(long, hide = true)]
    pub stitch_lbr: bool,
}
