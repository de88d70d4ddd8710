//! Lists the code of a sampled function: fetches and merges its bytes, instructions, line numbers and source
//! text.
//!
//! The caller supplies a function with its samples; all other data comes from the symbolizer. Notes report
//! missing or unreliable data.

use pmc_sys::error::Advice;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::functions::SampledFunction;
use crate::analysis::symbols::RecordingSymbols;
use crate::profile::annotate::merge::InlineFrame;
use crate::profile::annotate::{
    InlineStack, Listing, ListingEvent, ListingNote, MergeInput, SampleValue, Skid, merge,
};
use pmc_perfdata::perfdata;
use pmc_symbols::symbol::code::{MOST_CODE, MachineCode};
use pmc_symbols::symbol::demangle::demangle;
use pmc_symbols::symbol::disassemble::{Instruction, Syntax};
use pmc_symbols::symbol::source_text::{SourceFolders, SourceLines};
use pmc_symbols::symbol::{Depth, MissingDataReason, SymbolRequest};
use pmc_sys::abi::attr::kind;

/// Maximum number of source files read for one function.
const MOST_FILES: usize = 100;

/// Options for listings.
#[derive(Debug, Clone, Default)]
pub struct ListingOptions {
    /// Syntax of x86 instructions.
    pub syntax: Syntax,
    /// Whether to show source lines.
    pub with_source: bool,
    /// Folders to search for source files.
    pub folders: SourceFolders,
    /// Whether to show names as the compiler wrote them.
    pub raw_names: bool,
    /// A copy of the recorded machine's `/proc/kcore`.
    pub kcore: Option<PathBuf>,
}

/// Returns the name, total and skid of each event. The function's costs are filled in later.
///
/// `leader` maps an event's index to the index of its group leader.
pub(crate) fn events(
    events: &[perfdata::RecordedEvent],
    totals: &[SampleValue],
    leader: impl Fn(usize) -> usize,
) -> Vec<ListingEvent> {
    let event = |(index, event): (usize, &perfdata::RecordedEvent)| {
        let attr = &event.attr;
        let skid = match (attr.kind(), attr.precise_ip()) {
            (kind::SOFTWARE, _) => Skid::Interrupt,
            (kind::TRACEPOINT | kind::BREAKPOINT, _) | (_, 2..) => Skid::None,
            (_, 1) => Skid::Constant,
            _ => Skid::Any,
        };
        let total = totals[index].clone();
        ListingEvent { name: event.name(), leader: leader(index), total, own: SampleValue::default(), skid }
    };
    events.iter().enumerate().map(event).collect()
}

/// Builds the listing of a function.
pub(crate) fn listing(
    symbols: &mut RecordingSymbols,
    function: &SampledFunction,
    events: &[ListingEvent],
    how: &ListingOptions,
) -> Listing {
    let mut notes = Vec::new();
    let code = symbols.symbolizer.code(function.id, function.start, function.size, how.kcore.as_deref());
    let code = code.map_err(|missing| {
        notes.push(match symbols.is_imported {
            true => ListingNote {
                text: "no instructions: imported profiles contain no code".into(),
                remedy: None,
            },
            false => ListingNote {
                text: format!("no instructions: {}", missing.why),
                remedy: missing.remedy.map(|hint| Advice::from(hint).to_string()),
            },
        });
    });
    let code = code.ok();
    let instructions = code.as_ref().map(|code| instructions(symbols, function, code, how, &mut notes));
    let instructions = instructions.unwrap_or_default();
    let places = if how.with_source {
        places(symbols, function, &instructions, code.as_ref(), how.raw_names)
    } else {
        Vec::new()
    };
    let sources = sources(symbols, function, &places, how, &mut notes);
    let head = Listing {
        symbol: if how.raw_names { &function.raw } else { &function.name }.clone(),
        raw: function.raw.clone(),
        dso: function.dso.clone(),
        path: function.path.clone(),
        start: function.start,
        size: function.size,
        events: events.to_vec(),
        bytes_from: code.as_ref().map(|code| shown(symbols, function, code)),
        notes,
        ..Listing::default()
    };
    merge(head, MergeInput { instructions, places, samples: function.samples.clone(), sources })
}

/// Returns the path to show for the file that contains the code.
fn shown(symbols: &RecordingSymbols, function: &SampledFunction, code: &MachineCode) -> String {
    symbols.symbolizer.path_in_process(function.id, &code.from).display().to_string()
}

fn instructions(
    symbols: &RecordingSymbols,
    function: &SampledFunction,
    code: &MachineCode,
    how: &ListingOptions,
    notes: &mut Vec<ListingNote>,
) -> Vec<Instruction> {
    let mut note = |text: String| notes.push(ListingNote { text, remedy: None });
    if function.size > MOST_CODE {
        note(format!("only the first {MOST_CODE} of {} bytes are shown", function.size));
    } else if (code.bytes.len() as u64) < function.size {
        note(format!(
            "{} has only {} of the function's {} bytes",
            shown(symbols, function, code),
            code.bytes.len(),
            function.size
        ));
    }
    if code.is_unlinked {
        note(
            "the code was read from the module's file without relocation: targets of jumps and calls outside the function are not shown"
                .into(),
        );
    }
    if code.from.starts_with("/proc") && code.from.ends_with("mem") {
        note(format!("the code comes from the current {}", code.from.display()));
    }
    let all = symbols.symbolizer.disassemble(function.id, code, how.syntax);
    let mut all = all.unwrap_or_else(|error| {
        note(format!("no instructions: {error}"));
        Vec::new()
    });
    let targets = all.iter_mut().flat_map(|instruction| [&mut instruction.target, &mut instruction.refers]);
    let names = targets.flatten().filter_map(|target| target.name.as_mut());
    // Demangle each name only once. Names repeat, because most jumps stay within the function.
    let mut known: FxHashMap<String, Option<String>> = FxHashMap::default();
    for (name, _) in names.filter(|_| !how.raw_names) {
        if !known.contains_key(name) {
            known.insert(name.clone(), demangle(name));
        }
        if let Some(Some(readable)) = known.get(name) {
            name.clone_from(readable);
        }
    }
    all
}

/// Returns the functions and lines at each instruction, and at sampled addresses after the last instruction.
fn places(
    symbols: &mut RecordingSymbols,
    function: &SampledFunction,
    instructions: &[Instruction],
    code: Option<&MachineCode>,
    raw_names: bool,
) -> Vec<InlineStack> {
    let behind = instructions.last().map_or(0, Instruction::end);
    let mut addresses: Vec<u64> = instructions.iter().map(|instruction| instruction.address).collect();
    addresses
        .extend(function.samples.iter().map(|(address, ..)| *address).filter(|address| *address >= behind));
    addresses.sort_unstable();
    addresses.dedup();
    if let Some(code) = code.filter(|code| !code.lines.is_empty()) {
        return addresses.into_iter().map(|address| generated(function, code, address)).collect();
    }
    let (asked, queries): (Vec<u64>, Vec<_>) = addresses
        .into_iter()
        .filter_map(|address| Some((address, symbols.symbolizer.query_at(function.id, address)?)))
        .unzip();
    let request = SymbolRequest { module: function.id, queries: &queries };
    let answers = symbols.symbolizer.resolve(&[request], Depth::Inlines, &|_| {});
    let names = symbols.symbolizer.names();
    let steps = |at: usize| {
        let frames = answers.frames(at);
        let step = |frame: &pmc_symbols::symbol::ResolvedFrame| {
            let function = names.function(frame.function);
            InlineFrame {
                function: if raw_names { &function.raw } else { names.shown(frame.function) }.clone(),
                file: frame.source.map(|source| names.file(source.file).clone()),
                line: frame.source.map_or(0, |source| source.line),
            }
        };
        frames.iter().map(step).collect()
    };
    asked.into_iter().enumerate().map(|(at, address)| InlineStack { address, steps: steps(at) }).collect()
}

/// Returns the source line of generated code, from the jitdump's line table.
fn generated(function: &SampledFunction, code: &MachineCode, address: u64) -> InlineStack {
    let at = code.lines.partition_point(|(from, ..)| *from <= address).checked_sub(1);
    let line = at.map(|at| &code.lines[at]);
    let step = InlineFrame {
        function: function.name.as_str().into(),
        file: line.map(|(_, file, _)| file.as_str().into()),
        line: line.map_or(0, |(.., line)| *line),
    };
    InlineStack { address, steps: vec![step] }
}

/// Reads the source files in `places`, and adds notes about files that are missing or newer than the program.
fn sources(
    symbols: &mut RecordingSymbols,
    function: &SampledFunction,
    places: &[InlineStack],
    how: &ListingOptions,
    notes: &mut Vec<ListingNote>,
) -> FxHashMap<Arc<str>, SourceLines> {
    let mut read = FxHashMap::default();
    if !how.with_source {
        return read;
    }
    let mut missing: Vec<MissingDataReason> = Vec::new();
    let mut newer: Vec<String> = Vec::new();
    let mut paths: Vec<&Arc<str>> =
        places.iter().filter_map(|place| place.steps.first()?.file.as_ref()).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths.iter().take(MOST_FILES) {
        match symbols.symbolizer.source(function.id, path, &how.folders) {
            Ok(source) => {
                if source.is_newer {
                    newer.push(path.to_string());
                }
                read.insert((*path).clone(), source.lines);
            }
            Err(reason) => missing.push(reason),
        }
    }
    if paths.is_empty() {
        let trust = symbols.symbolizer.quality(function.id);
        let lines = trust.missing.first();
        notes.push(ListingNote {
            text: lines.map_or_else(
                || "no source lines available".to_owned(),
                |lines| format!("no source lines: {lines}"),
            ),
            remedy: symbols.symbolizer.remedy(function.id).map(|hint| Advice::from(hint).to_string()),
        });
    }
    missing.iter().for_each(|reason| symbols.add_missing_source(reason));
    if let Some(reason) = missing.first() {
        let more = missing.len() - 1;
        let more = if more > 0 { format!(" (and {more} more files)") } else { String::new() };
        notes.push(ListingNote {
            text: format!("source file {reason}{more}"),
            remedy: Some(
                "specify a directory that contains the sources under their full paths (--symfs)".into(),
            ),
        });
    }
    if let Some(first) = newer.first() {
        notes.push(ListingNote {
            text: format!("{first} was modified after the program was built: line numbers may not match"),
            remedy: None,
        });
    }
    read
}
