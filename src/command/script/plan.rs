//! `pmc script`: what was typed, turned into what it means, without clap's types.

use std::path::PathBuf;

use crate::analysis::script::{ScriptRequest, Transcript};
use crate::cli::perf_options::OfScript;
use crate::cli::script::Script;
use crate::command::plan::{self, NO_TRACES, SPANS};
use crate::error::Result;
use crate::perfdata::Reader;
use crate::record::kind;
use crate::symbol::Options;
use crate::view::script::{Clock, Layout};

/// What `pmc script` does.
#[derive(Debug)]
pub(in crate::command) struct Plan {
    pub(super) input: PathBuf,
    /// What the recording says of itself is shown …
    pub(super) header: bool,
    /// … and nothing else.
    pub(super) header_only: bool,
    pub(super) request: ScriptRequest,
    /// But for what hangs on the recording: [`Plan::layout`].
    layout: Layout,
}

impl Plan {
    /// # Errors
    /// When something typed means nothing here.
    pub(in crate::command) fn new(typed: &Script) -> Result<Self> {
        refuse_absent(&typed.theirs)?;
        let request = ScriptRequest {
            selection: plan::selection(&typed.filter)?,
            fields: typed.fields.clone(),
            everything: typed.json,
            callers: !typed.hide_call_graph,
            max_stack: typed.max_stack,
            functions: typed.symbols.clone(),
            dsos: typed.dsos.clone(),
            inlines: match (typed.no_inline, typed.inline) {
                (true, _) => Some(false),
                (_, true) => Some(true),
                _ => None,
            },
            raw_names: typed.no_demangle,
            records: records(typed),
            // Text that perf's scripts read: what perf does not name has no name.
            symbols: Options { placeholders: false, ..plan::symbol_options(&typed.symbol_files)? },
        };
        let layout = Layout {
            nanoseconds: typed.ns,
            clock: match (typed.reltime, typed.deltatime) {
                (true, _) => Clock::SinceFirst,
                (_, true) => Clock::SinceLast,
                _ => Clock::Absolute,
            },
            full_paths: typed.full_source_path,
            stop_at: typed.stop_bt.clone(),
            json: typed.json,
            ..Layout::default()
        };
        Ok(Self {
            input: plan::input(typed.input.as_ref().or(typed.file.as_ref())),
            header: typed.header_only || typed.header && !typed.json,
            header_only: typed.header_only,
            request,
            layout,
        })
    }

    /// How a recording is printed.
    pub(super) fn layout(&self, script: &Transcript<'_>, reader: &Reader) -> Layout {
        let clock = reader.features().clock_data.as_ref();
        Layout {
            fields: script.fields().to_vec(),
            events: reader.events().iter().map(|event| event.name()).collect(),
            wall: clock.map(|clock| clock.wall_clock_ns.wrapping_sub(clock.clockid_time_ns) as i64),
            has_chains: self.request.callers && crate::analysis::has_chains(reader),
            is_aarch64: reader.features().arch.as_deref() == Some("aarch64"),
            ..self.layout.clone()
        }
    }
}

/// The kinds of records besides samples.
fn records(typed: &Script) -> Vec<u32> {
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

/// perf's options that pmc has not: said in words, with what to do instead. Those that would change nothing
/// are passed over.
///
/// # Errors
/// When an option asks for something that pmc does not do.
fn refuse_absent(typed: &OfScript) -> Result<()> {
    let scripts = "pmc script --json prints an object a line, for any language";
    let needs_traces = typed.itrace.is_some()
        || typed.insn_trace.is_some()
        || typed.call_trace.is_some()
        || typed.call_ret_trace.is_some()
        || typed.graph_function.is_some();
    let branches = "pmc script -F +brstacksym";
    plan::refuse(&[
        (typed.script.is_some(), "scripts inside", "it embeds neither Python nor Perl", scripts),
        (typed.gen_script.is_some(), "generator of scripts", "it embeds neither Python nor Perl", scripts),
        (typed.list, "scripts inside", "it embeds neither Python nor Perl", scripts),
        (typed.dlfilter.is_some() || typed.list_dlfilters, "--dlfilter", "it loads no code", scripts),
        (needs_traces, "--itrace and its kin", NO_TRACES, "perf script --itrace"),
        (typed.xed || typed.max_blocks.is_some(), "field brstackinsn", "it shows no code here", branches),
        (typed.latency, "-L", "the columns of latency were never recorded by perf record", "-F +misc"),
        (typed.debug_mode, "-d", "it checks the order while it prints", "pmc info FILE counts the records"),
        (
            typed.dump_raw_trace || typed.dump_unsorted_raw_trace,
            "-D",
            "it does not print the bytes of records",
            "--show-task-events --show-mmap-events, or pmc info FILE for counts",
        ),
        (typed.per_event_dump, "--per-event-dump", "it writes one stream", "--json, and a filter by .event"),
        (typed.addr_range.is_some(), "--addr-range", "-S takes names", "-F +addr, and a filter"),
        (
            typed.switch_on.is_some() || typed.switch_off.is_some(),
            "--switch-on, --switch-off",
            "it has --time",
            SPANS,
        ),
        (typed.show_on_off_events, "--show-on-off-events", "it has no --switch-on", SPANS),
        (
            typed.stitch_lbr,
            "--stitch-lbr",
            "calls that the processor kept are joined to the callers recorded with them, not to other samples' calls",
            "pmc record --call-graph dwarf",
        ),
    ])
}
