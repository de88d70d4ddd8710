//! Converts the parsed options of `pmc script` into a plan without clap's types.

use std::path::PathBuf;

use crate::cli::script::ScriptArgs;
use pmc_analysis::analysis::script::{DumpOrder, NamedRecording, ScriptRequest};
use pmc_command::plan;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::Stream;
use pmc_view::script::{ScriptClock, ScriptLayout};

/// Settings of `pmc script`.
#[derive(Debug)]
pub(in crate::command) struct ScriptPlan {
    pub(super) input: PathBuf,
    /// Whether to print the recording's header.
    pub(super) header: bool,
    /// Whether to print only the header.
    pub(super) header_only: bool,
    /// Whether to write a separate file for each event.
    pub(super) per_event: bool,
    /// Maximum number of samples and records.
    pub(super) limit: u64,
    pub(super) request: ScriptRequest,
    /// The layout, except for the parts that depend on the recording; see [`ScriptPlan::layout`].
    layout: ScriptLayout,
}

impl ScriptPlan {
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(typed: &ScriptArgs) -> Result<Self> {
        let request = ScriptRequest {
            selection: plan::selection(&typed.filter)?,
            fields: typed.fields.clone(),
            everything: typed.json,
            trace_fields: false,
            callers: !typed.hide_call_graph,
            max_stack: typed.max_stack,
            max_blocks: typed.max_blocks.filter(|most| *most > 0).unwrap_or(usize::MAX),
            joins: !typed.filter.no_join,
            stitches: typed.stitch_lbr,
            functions: typed.symbols.clone(),
            dsos: typed.dsos.clone(),
            inlines: match (typed.no_inline, typed.inline) {
                (true, _) => Some(false),
                (_, true) => Some(true),
                _ => None,
            },
            raw_names: typed.no_demangle,
            records: records(typed),
            dump: match (typed.dump_unsorted_raw_trace, typed.dump_raw_trace) {
                (true, _) => Some(DumpOrder::File),
                (_, true) => Some(DumpOrder::Time),
                _ => None,
            },
            // Scripts for perf parse this text, so omit names that perf would not show.
            symbols: SymbolOptions { placeholders: false, ..plan::symbol_options(&typed.symbol_files)? },
        };
        let layout = ScriptLayout {
            nanoseconds: typed.ns,
            clock: match (typed.reltime, typed.deltatime) {
                (true, _) => ScriptClock::SinceFirst,
                (_, true) => ScriptClock::SinceLast,
                _ => ScriptClock::Absolute,
            },
            full_paths: typed.full_source_path,
            stop_at: typed.stop_bt.clone(),
            json: typed.json,
            // Programs that parse perf's text rely on the number of lines.
            joins_unknown: Stream::Output.is_terminal() && !typed.per_event_dump,
            ..ScriptLayout::default()
        };
        if let Some(file) =
            typed.file.as_ref().filter(|file| file.as_os_str() == "flamegraph" && !file.exists())
        {
            return Err(Error::usage(format!("pmc script does not run scripts such as {}", file.display()))
                .try_this("pmc flamegraph draws a flame graph of the same recording"));
        }
        Ok(Self {
            input: plan::input(typed.input.as_ref().or(typed.file.as_ref())),
            header: typed.header_only || typed.header && !typed.json,
            header_only: typed.header_only,
            per_event: typed.per_event_dump,
            limit: plan::rows(typed.limit, false, 0) as u64,
            request,
            layout,
        })
    }

    /// Whether to print one JSON object per line.
    pub(super) fn is_json(&self) -> bool {
        self.layout.json
    }

    pub(super) fn layout(&self, script: &NamedRecording<'_>, reader: &Reader) -> ScriptLayout {
        let clock = reader.features().clock_data.as_ref();
        ScriptLayout {
            fields: script.fields().to_vec(),
            events: reader.events().iter().map(|event| event.name()).collect(),
            wall: clock.map(ClockData::to_wall_ns),
            has_chains: self.request.callers && pmc_analysis::analysis::has_chains(reader),
            is_aarch64: reader.features().arch.as_deref() == Some("aarch64"),
            ..self.layout.clone()
        }
    }
}

/// Returns the record types to print in addition to samples.
fn records(typed: &ScriptArgs) -> Vec<u32> {
    let choices: [(bool, &[u32]); 9] = [
        (typed.show_task_events, &[kind::COMM, kind::FORK, kind::EXIT]),
        (typed.show_mmap_events, &[kind::MMAP, kind::MMAP2]),
        (typed.show_switch_events, &[kind::SWITCH, kind::SWITCH_CPU_WIDE]),
        (typed.show_lost_events, &[kind::LOST, kind::LOST_SAMPLES]),
        (typed.show_namespace_events, &[kind::NAMESPACES]),
        (typed.show_cgroup_events, &[kind::CGROUP]),
        (typed.show_bpf_events, &[kind::KSYMBOL, kind::BPF_EVENT]),
        (typed.show_text_poke_events, &[kind::TEXT_POKE]),
        (typed.show_round_events, &[kind::FINISHED_ROUND]),
    ];
    choices.iter().filter(|(is_shown, _)| *is_shown).flat_map(|(_, kinds)| *kinds).copied().collect()
}
