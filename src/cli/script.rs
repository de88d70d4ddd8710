//! Options of `pmc script`, and the request that they make.

use std::path::PathBuf;

use clap::Args;

use pmc_analysis::analysis::request::MAX_STACK;
use pmc_analysis::analysis::script::{DumpOrder, FieldChange, ScriptRequest};
use pmc_analysis::profile::script::ScriptField;
use pmc_command::options::recording_file::RecordingFile;
use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::Limit;
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::Stream;
use pmc_view::script::{ScriptClock, ScriptLayout, ScriptOutput};

/// Fields that are always empty. pmc reads no instruction traces, and no samples of guests.
const EMPTY: [ScriptField; 6] = [
    ScriptField::Flags,
    ScriptField::Synth,
    ScriptField::Ipc,
    ScriptField::CallIndent,
    ScriptField::MachinePid,
    ScriptField::Vcpu,
];

/// Returns the examples, and the names of all fields.
fn after_help() -> String {
    let names = |is_empty: bool| -> String {
        let fields = ScriptField::ALL.iter().filter(|field| EMPTY.contains(field) == is_empty);
        fields.map(|field| field.name()).collect::<Vec<_>>().join(", ")
    };
    let fields = format!(
        "Fields: {}. Always empty, because pmc reads no instruction traces and no guests' samples: {}.",
        names(false),
        names(true)
    );
    "\
Examples:
  pmc script                              the format of perf script
  pmc script | stackcollapse-perf.pl      flame graphs
  pmc script -F comm,tid,time,ip,sym      chosen fields
  pmc script -F +srcline,-period          changes to the default fields
  pmc script --json                       one object per line
"
    .to_owned()
        + &fields
}

/// Print the samples one by one, in time order.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub struct ScriptArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

    /// Fields to print; +NAME and -NAME change the default; a prefix hw:, sw:, trace: or raw: selects the
    /// event type
    #[arg(
        short = 'F',
        long,
        value_name = "[KIND:]FIELD,…",
        allow_hyphen_values = true,
        help_heading = "Lines"
    )]
    pub(crate) fields: Vec<FieldChange>,

    /// Do not print call chains
    #[arg(short = 'G', long, help_heading = "Lines")]
    pub(crate) hide_call_graph: bool,

    /// Stop call chains after these functions
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        help_heading = "Lines",
        hide_short_help = true
    )]
    pub(crate) stop_bt: Vec<String>,

    /// Print only samples in these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) symbols: Vec<String>,

    /// Print only samples in these programs and libraries
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) dsos: Vec<String>,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "FRAMES", default_value_t = MAX_STACK, help_heading = "Lines")]
    pub(crate) max_stack: usize,

    /// Maximum number of code blocks between branches to print, for the brstackinsn fields
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) max_blocks: Option<usize>,

    /// Complete LBR call chains (record --call-graph lbr) from earlier samples of the thread
    #[arg(long, help_heading = "Lines", hide_short_help = true)]
    pub(crate) stitch_lbr: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) filter: SampleFilter,

    /// Show times in nanoseconds
    #[arg(long, help_heading = "Lines")]
    pub(crate) ns: bool,

    /// Print times relative to the first line
    #[arg(long, conflicts_with = "deltatime", help_heading = "Lines")]
    pub(crate) reltime: bool,

    /// Print times relative to the previous line
    #[arg(long, help_heading = "Lines")]
    pub(crate) deltatime: bool,

    /// Also print forks, exits and name changes
    #[arg(long, help_heading = "Other records")]
    pub(crate) show_task_events: bool,

    /// Also print mappings
    #[arg(long, help_heading = "Other records")]
    pub(crate) show_mmap_events: bool,

    /// Also print context switches, if recorded
    #[arg(long, help_heading = "Other records")]
    pub(crate) show_switch_events: bool,

    /// Also print lost records
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_lost_events: bool,

    /// Also print namespaces, if recorded
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_namespace_events: bool,

    /// Also print cgroups, if recorded
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_cgroup_events: bool,

    /// Also print BPF program loads and unloads, if recorded
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_bpf_events: bool,

    /// Also print changes of kernel code, if recorded
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_text_poke_events: bool,

    /// Also print the records that end each of the recorder's rounds
    #[arg(long, help_heading = "Other records", hide_short_help = true)]
    pub(crate) show_round_events: bool,

    /// Also dump all records, as bytes and fields
    #[arg(
        short = 'D',
        long,
        conflicts_with = "json",
        help_heading = "Other records",
        hide_short_help = true
    )]
    pub(crate) dump_raw_trace: bool,

    /// Same as -D, but in file order instead of time order
    #[arg(long, conflicts_with = "json", help_heading = "Other records", hide_short_help = true)]
    pub(crate) dump_unsorted_raw_trace: bool,

    /// Print the recording's header first
    #[arg(short = 'I', long, alias = "show-info", help_heading = "Lines")]
    pub(crate) header: bool,

    /// Print only the recording's header
    #[arg(long, help_heading = "Lines", hide_short_help = true)]
    pub(crate) header_only: bool,

    /// Show inlined functions (default with stack copies, as in perf)
    #[arg(long, overrides_with = "no_inline", help_heading = "Names", hide_short_help = true)]
    pub(crate) inline: bool,

    /// Do not look for inlined functions
    #[arg(long, help_heading = "Names")]
    pub(crate) no_inline: bool,

    /// Demangle symbol names (default)
    #[arg(long, overrides_with = "no_demangle", help_heading = "Names", hide_short_help = true)]
    pub(crate) demangle: bool,

    /// Show mangled symbol names
    #[arg(long, help_heading = "Names", hide_short_help = true)]
    pub(crate) no_demangle: bool,

    /// Show full paths of source files
    #[arg(long, help_heading = "Lines", hide_short_help = true)]
    pub(crate) full_source_path: bool,

    /// Write each event's lines to a separate file next to the recording: FILE.EVENT.dump
    #[arg(long, conflicts_with_all = ["header", "header_only", "dump_raw_trace"], help_heading = "Lines", hide_short_help = true)]
    pub(crate) per_event_dump: bool,

    /// Maximum number of samples and records to print; 0 prints all [default: all]
    #[arg(long, value_name = "N", conflicts_with = "per_event_dump", hide_short_help = true)]
    pub(crate) limit: Option<Limit>,

    /// Print one JSON object per line
    #[arg(short = 'j', long, help_heading = "Lines")]
    pub(crate) json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,
}

impl ScriptArgs {
    /// Returns the recording, which of its samples and records to show, and how to print them.
    ///
    /// # Errors
    /// Fails if a script is named, or no debuginfod server is configured.
    pub(crate) fn request(self) -> Result<(PathBuf, ScriptRequest, ScriptOutput)> {
        if let Some(file) =
            self.recording.typed().filter(|file| file.as_os_str() == "flamegraph" && !file.exists())
        {
            return Err(Error::usage(format!("pmc script does not run scripts such as {}", file.display()))
                .try_this("pmc flamegraph draws a flame graph of the same recording"));
        }
        let records = self.records();
        let recording = self.recording.path();
        let request = ScriptRequest {
            selection: self.filter.selection(),
            fields: self.fields,
            everything: self.json,
            trace_fields: false,
            callers: !self.hide_call_graph,
            max_stack: self.max_stack,
            max_blocks: self.max_blocks.filter(|most| *most > 0).unwrap_or(usize::MAX),
            joins: !self.filter.no_join,
            stitches: self.stitch_lbr,
            functions: self.symbols,
            dsos: self.dsos,
            inlines: match (self.no_inline, self.inline) {
                (true, _) => Some(false),
                (_, true) => Some(true),
                _ => None,
            },
            raw_names: self.no_demangle,
            records,
            dump: match (self.dump_unsorted_raw_trace, self.dump_raw_trace) {
                (true, _) => Some(DumpOrder::File),
                (_, true) => Some(DumpOrder::Time),
                _ => None,
            },
            // Scripts for perf parse this text, so omit names that perf would not show.
            symbols: SymbolOptions { placeholders: false, ..self.symbol_files.symbol_options()? },
        };
        let output = ScriptOutput {
            header: self.header_only || self.header && !self.json,
            header_only: self.header_only,
            per_event: self.per_event_dump,
            limit: self.limit.map_or(u64::MAX, |limit| limit.get() as u64),
            layout: ScriptLayout {
                nanoseconds: self.ns,
                clock: match (self.reltime, self.deltatime) {
                    (true, _) => ScriptClock::SinceFirst,
                    (_, true) => ScriptClock::SinceLast,
                    _ => ScriptClock::Absolute,
                },
                full_paths: self.full_source_path,
                stop_at: self.stop_bt,
                json: self.json,
                // Programs that parse perf's text rely on the number of lines.
                joins_unknown: Stream::Output.is_terminal() && !self.per_event_dump,
                ..ScriptLayout::default()
            },
        };
        Ok((recording, request, output))
    }

    /// Returns the record types to print in addition to samples.
    fn records(&self) -> Vec<u32> {
        let choices: [(bool, &[u32]); 9] = [
            (self.show_task_events, &[kind::COMM, kind::FORK, kind::EXIT]),
            (self.show_mmap_events, &[kind::MMAP, kind::MMAP2]),
            (self.show_switch_events, &[kind::SWITCH, kind::SWITCH_CPU_WIDE]),
            (self.show_lost_events, &[kind::LOST, kind::LOST_SAMPLES]),
            (self.show_namespace_events, &[kind::NAMESPACES]),
            (self.show_cgroup_events, &[kind::CGROUP]),
            (self.show_bpf_events, &[kind::KSYMBOL, kind::BPF_EVENT]),
            (self.show_text_poke_events, &[kind::TEXT_POKE]),
            (self.show_round_events, &[kind::FINISHED_ROUND]),
        ];
        choices.iter().filter(|(is_shown, _)| *is_shown).flat_map(|(_, kinds)| *kinds).copied().collect()
    }
}
