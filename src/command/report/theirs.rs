//! perf's options that pmc has not: said in words, with what to do instead. Those that would change nothing are passed over.

use crate::cli::theirs::{OfReport, OfScript};
use crate::error::{Error, Result, Warning, say};

/// An option: whether it was typed, its name, why not, what to try.
type Refused<'a> = (bool, &'a str, &'a str, &'a str);

fn refuse(list: &[Refused<'_>]) -> Result<()> {
    match list.iter().find(|(is_typed, ..)| *is_typed) {
        Some((_, name, why, instead)) => {
            Err(Error::usage(format!("pmc has no {name}")).why(*why).try_this(*instead))
        }
        None => Ok(()),
    }
}

const NO_TRACES: &str = "pmc reads no traces of instructions (Intel PT, CoreSight)";
const SPANS: &str = "a span of time: --time FROM,TO";

/// Looks at what was typed for `report`.
///
/// # Errors
/// When an option asks for something that pmc does not do.
pub(in crate::command) fn of_report(typed: &OfReport) -> Result<()> {
    let for_annotate = typed.disassembler_style.is_some()
        || typed.asm_raw
        || typed.source
        || typed.objdump.is_some()
        || typed.prefix.is_some()
        || typed.prefix_strip.is_some()
        || typed.percent_type.is_some();
    if for_annotate {
        say::warn(&Warning::OptionsForCode);
    }
    refuse(&[
        (
            typed.total_cycles,
            "--total-cycles",
            "it adds up cycles of basic blocks, which needs their code and a branch stack",
            "pmc report -b -s symbol_from,symbol_to,cycles",
        ),
        (typed.itrace.is_some(), "--itrace", NO_TRACES, "perf report --itrace"),
        (typed.switch_on.is_some(), "--switch-on", "samples are read in any order", SPANS),
        (typed.switch_off.is_some(), "--switch-off", "samples are read in any order", SPANS),
        (typed.show_on_off_events, "--show-on-off-events", "it has no --switch-on", SPANS),
        (
            typed.show_cpu_utilization,
            "--show-cpu-utilization",
            "its columns are a sort key here",
            "-s comm,sym: the letter before a function says where it ran",
        ),
        (
            typed.branch_history,
            "--branch-history",
            "branches are not joined to call chains",
            "pmc report -b, or pmc script -F +brstacksym",
        ),
        (
            typed.show_ref_call_graph,
            "--show-ref-call-graph",
            "each event shows the chains that were recorded with it",
            "pmc record -g with all events",
        ),
        (
            typed.stitch_lbr,
            "--stitch-lbr",
            "chains are shown as the hardware kept them",
            "--call-graph dwarf",
        ),
        (
            typed.dump_raw_trace,
            "-D",
            "it does not print the bytes of records",
            "pmc script --show-task-events --show-mmap-events, or pmc info FILE for counts",
        ),
    ])
}

/// Looks at what was typed for `script`.
///
/// # Errors
/// When an option asks for something that pmc does not do.
pub(in crate::command) fn of_script(typed: &OfScript) -> Result<()> {
    let scripts = "pmc script --json prints an object a line, for any language";
    let needs_traces = typed.itrace.is_some()
        || typed.insn_trace.is_some()
        || typed.call_trace.is_some()
        || typed.call_ret_trace.is_some()
        || typed.graph_function.is_some();
    let branches = "pmc script -F +brstacksym";
    refuse(&[
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
            "chains are shown as the hardware kept them",
            "--call-graph dwarf",
        ),
    ])
}
