//! A recording as a self-contained HTML page, for sharing it with others.
//!
//! Writes the data that the page's script draws: names once, paths as a tree, ends of stacks by thread and
//! time, and the code of the most expensive functions. [`page`] has the page itself.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::json;

use super::{ExportContents, function_name};
use pmc_analysis::profile::annotate::{Listing, ListingNote, ListingRow, RowContent};
use pmc_analysis::profile::sampled::CodeKind;
use pmc_analysis::profile::sampled::stacks::{Paths, StackEvent, StackRow, StackThread};
use pmc_analysis::profile::sampled::{StackProfile, StringId, counted_unit};
use pmc_text::json_document::Streamed;
use pmc_text::text::{as_json, clean, without_version, write_json};
use pmc_view::{annotate, page, report};

/// Maximum number of time slices among which all waits of a thread are divided. A thread's waits do not
/// overlap, so valid recordings never need as many; this limits recordings with wrong times.
const MOST_SLICES: u64 = 1000;

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    page::write(out, contents.title, "", |out| data(out, contents))
}

fn data(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let stacks = contents.stacks;
    let mut trust = Vec::new();
    report::write_trust(&mut trust, contents.answer)?;
    let events = stacks.events.iter().map(|event| {
        json!({
            "name": clean(&event.name), "clock": event.is_clock(), "unit": clean(counted_unit(&event.name)),
            "samples": event.total.samples, "period": event.total.period,
        })
    });
    let named = PageThreads::from_stacks(stacks);
    let threads = named.threads.iter().map(|names| {
        let thread = &stacks.threads[names[0] as usize];
        let comms = names.iter().map(|name| clean(&stacks.threads[*name as usize].comm));
        json!({
            "pid": thread.pid, "tid": thread.tid, "comms": comms.collect::<Vec<_>>(),
            "process": thread.process.as_deref().map(clean),
        })
    });
    let head = json!({
        "title": clean(contents.title),
        "version": env!("CARGO_PKG_VERSION"),
        "started": contents.recording.started.map(|ns| ns / 1_000_000),
        "span": contents.recording.span.map(|(first, last)| last.saturating_sub(first)),
        "facts": contents.recording.about.facts.iter().map(|(label, value)| [clean(label), clean(value)])
            .collect::<Vec<_>>(),
        "trust": String::from_utf8_lossy(&trust),
        "event": contents.event,
        "events": events.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
    });
    let code = Streamed(contents.listings.iter().map(HtmlCode::new));
    write!(out, "{{\"head\":{},\"code\":", as_json(&head))?;
    write_json(out, &code)?;
    let paths = stacks.paths();
    functions(out, stacks, &paths)?;
    // The distance in the list from a node back to its caller; 0 if the node has no caller.
    let back = paths.nodes.iter().zip(0u32..).map(|(node, at)| node.caller.map_or(0, |caller| at - caller));
    page::list(out, "back", back)?;
    page::list(out, "fn", paths.nodes.iter().map(|node| node.function))?;
    cells(out, stacks, &paths, &named.of)?;
    write!(out, "}}")
}

/// The threads of a page. A thread that changed its name is one thread.
struct PageThreads {
    /// For each thread of the page, the indexes of its names in [`StackProfile::threads`], the last name
    /// first.
    threads: Vec<Vec<u32>>,
    /// The thread of the page, by index in [`StackProfile::threads`].
    of: Vec<u32>,
}

impl PageThreads {
    fn from_stacks(stacks: &StackProfile<'_>) -> Self {
        let mut last = vec![0; stacks.threads.len()];
        for row in &stacks.rows {
            let last = &mut last[row.thread as usize];
            *last = row.time.unwrap_or(0).max(*last);
        }
        Self::new(&stacks.threads, &last)
    }

    /// `last` contains the time of the last sample with each name.
    fn new(named: &[StackThread], last: &[u64]) -> Self {
        let mut known: FxHashMap<(i32, i32), u32> = FxHashMap::default();
        let mut threads: Vec<Vec<u32>> = Vec::new();
        let of = named.iter().zip(0u32..).map(|(thread, name)| {
            let new = threads.len() as u32;
            let number = match (thread.pid, thread.tid) {
                (Some(pid), Some(tid)) => *known.entry((pid, tid)).or_insert(new),
                // Without numbers, names are all that distinguishes threads.
                _ => new,
            };
            if number == new {
                threads.push(Vec::new());
            }
            threads[number as usize].push(name);
            number
        });
        let of = of.collect();
        for names in &mut threads {
            names.sort_by_key(|name| Reverse(last[*name as usize]));
        }
        Self { threads, of }
    }
}

/// Writes the functions: name, module, index of the code kind, and whether the function is inlined.
fn functions(out: &mut dyn Write, stacks: &StackProfile<'_>, paths: &Paths) -> io::Result<()> {
    let calls = || (0..paths.functions.len() as u32).map(|function| paths.call(function, stacks.code()));
    let names = calls().map(|call| without_version(&function_name(call, stacks.texts)).to_owned());
    let names: Vec<String> = names.collect();
    page::list(out, "names", names.iter())?;
    page::list(out, "brief", names.iter().map(|name| page::brief(name)))?;
    let mut modules: FxHashMap<StringId, u32> = FxHashMap::default();
    let mut words = Vec::new();
    let numbers = calls().map(|call| {
        *modules.entry(call.dso).or_insert_with(|| {
            words.push(clean(stacks.texts.get(call.dso)));
            words.len() as u32 - 1
        })
    });
    let numbers: Vec<u32> = numbers.collect();
    page::list(out, "modules", words.iter())?;
    page::list(out, "module", numbers.into_iter())?;
    page::list(
        out,
        "kind",
        calls().map(|call| CodeKind::from_mode(call.level, stacks.texts.get(call.dso)) as u8),
    )?;
    page::list(out, "inlined", calls().map(|call| u8::from(call.inlined)))
}

/// Node, event, thread, time slice, and state of the thread.
type CellKey = (u32, u32, u32, u64, u8);

/// Writes the nodes at which stacks end, sorted by node. Each entry has an event, thread, time slice, node,
/// number of samples and sum of periods, and a thread state if waiting was recorded.
///
/// `threads` contains the thread of the page for each thread of `stacks`.
fn cells(out: &mut dyn Write, stacks: &StackProfile<'_>, paths: &Paths, threads: &[u32]) -> io::Result<()> {
    let slice = stacks.slice.unwrap_or(1).max(1);
    let number = |row: &StackRow| row.time.unwrap_or(0) / slice;
    // The timestamp of a wait is the time at which it ended.
    let waited = |row: &StackRow| if row.wait.is_some() && row.time.is_some() { row.value.period } else { 0 };
    let mut division = WaitDivision::default();
    let mut begin = |row: &StackRow| {
        number(row).saturating_sub(division.slices_before(row.thread, waited(row).saturating_sub(1) / slice))
    };
    let begins: Vec<u64> = stacks.rows.iter().map(&mut begin).collect();
    let first = begins.iter().copied().min().unwrap_or(0);
    let mut sums: FxHashMap<CellKey, (u64, u64)> = FxHashMap::default();
    for (row, begin) in stacks.rows.iter().zip(begins) {
        let Some(node) = paths.end(row.stack) else { continue };
        let state = row.state() as u8;
        let mut add = |slice: u64, samples: u64, period: u64| {
            let thread = threads[row.thread as usize];
            let sum = sums.entry((node, row.event, thread, slice - first, state)).or_default();
            *sum = (sum.0 + samples, sum.1.saturating_add(period));
        };
        // Divide a long wait among the slices that it covers.
        let mut left = row.value.period;
        for earlier in (begin + 1..=number(row)).rev() {
            let part = left.min(slice);
            add(earlier, if earlier == number(row) { row.value.samples } else { 0 }, part);
            left -= part;
        }
        add(begin, if begin == number(row) { row.value.samples } else { 0 }, left);
    }
    let mut cells: Vec<_> = sums.into_iter().collect();
    cells.sort_unstable();
    let slices = cells.iter().map(|((.., slice, _), _)| slice + 1).max().unwrap_or(0);
    let has_times = stacks.rows.iter().any(|row| row.time.is_some());
    write!(out, ",\"slice\":{slice},\"slices\":{}", if has_times { slices } else { 0 })?;
    let mut last = 0;
    let step = cells.iter().map(move |((node, ..), _)| node - std::mem::replace(&mut last, *node));
    page::list(out, "cellNode", step)?;
    page::list(out, "cellEvent", cells.iter().map(|((_, event, ..), _)| *event))?;
    page::list(out, "cellThread", cells.iter().map(|((_, _, thread, ..), _)| *thread))?;
    page::list(out, "cellSlice", cells.iter().map(|((.., slice, _), _)| *slice))?;
    if stacks.events.iter().any(StackEvent::has_waits) {
        page::list(out, "cellState", cells.iter().map(|((.., state), _)| *state))?;
    }
    page::list(out, "cellSamples", cells.iter().map(|(_, (samples, _))| *samples))?;
    page::list(out, "cellPeriod", cells.iter().map(|(_, (_, period))| *period))
}

/// Divides waits among time slices, up to the limit [`MOST_SLICES`] per thread.
#[derive(Default)]
struct WaitDivision {
    /// Number of slices used so far, by thread.
    used: FxHashMap<u32, u64>,
}

impl WaitDivision {
    /// Returns the number of slices that a wait covers before its last slice. `wanted` is the number computed
    /// from its period. If the result is smaller, the rest of the period counts for the first of these
    /// slices.
    fn slices_before(&mut self, thread: u32, wanted: u64) -> u64 {
        let used = self.used.entry(thread).or_default();
        let slices = wanted.min(MOST_SLICES - *used);
        *used += slices;
        slices
    }
}

/// The annotated code of a function.
#[derive(Serialize)]
struct HtmlCode<'a> {
    name: Cow<'a, str>,
    brief: Option<String>,
    module: Cow<'a, str>,
    /// Cost of the function, by event.
    own: Vec<u64>,
    notes: Vec<String>,
    rows: Vec<HtmlCodeRow<'a>>,
}

/// A row of code: a function name (`f`), a source line (`s`) or an instruction (`i`), with its cost by event.
#[derive(Serialize)]
#[serde(untagged)]
enum HtmlCodeRow<'a> {
    Function {
        f: Cow<'a, str>,
        brief: Option<String>,
        depth: usize,
    },
    Source {
        s: u32,
        text: Option<String>,
        file: Option<Cow<'a, str>>,
        depth: usize,
        code: bool,
        cost: Vec<u64>,
    },
    Instruction {
        i: String,
        text: String,
        cost: Vec<u64>,
    },
}

impl<'a> HtmlCode<'a> {
    fn new(listing: &'a Listing) -> Self {
        let note = |note: &ListingNote| match &note.remedy {
            Some(remedy) => format!("{}; try: {}", clean(&note.text), clean(remedy)),
            None => clean(&note.text).into_owned(),
        };
        Self {
            name: clean(&listing.symbol),
            brief: page::brief(&listing.symbol),
            module: clean(&listing.dso),
            own: listing.events.iter().map(|event| event.own.period).collect(),
            notes: listing.notes.iter().map(note).collect(),
            rows: listing.rows.iter().map(|row| HtmlCodeRow::new(listing, row)).collect(),
        }
    }
}

impl<'a> HtmlCodeRow<'a> {
    fn new(listing: &'a Listing, row: &'a ListingRow) -> Self {
        let cost = || (0..listing.events.len()).map(|event| row.value(event).period).collect();
        match &row.kind {
            RowContent::Function { name, depth } => {
                Self::Function { f: clean(name), brief: page::brief(name), depth: *depth }
            }
            RowContent::Source { file, line, depth, has_code } => Self::Source {
                s: *line,
                text: listing.text(*file, *line).map(annotate::source_line),
                file: listing.files.get(*file).map(|file| clean(&file.path)),
                depth: *depth,
                code: *has_code,
                cost: cost(),
            },
            RowContent::Instruction(of) => {
                let text = format!("{} {}", of.mnemonic, annotate::operands(listing, of));
                let text = clean(&text).trim_end().to_owned();
                Self::Instruction { i: format!("{:x}", of.address), text, cost: cost() }
            }
            RowContent::Address(address) => {
                Self::Instruction { i: format!("{address:x}"), text: String::new(), cost: cost() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_with_false_times_do_not_enlarge_the_page() {
        let mut division = WaitDivision::default();
        assert_eq!([3, 0, 200].map(|wanted| division.slices_before(7, wanted)), [3, 0, 200]);
        let sum: u64 = (0..5000).map(|_| division.slices_before(7, u64::MAX / 2)).sum();
        assert_eq!(sum, MOST_SLICES - 203);
        assert_eq!(division.slices_before(8, 5), 5, "another thread");
    }

    #[test]
    fn renamed_thread_is_one_thread_with_its_last_name() {
        let thread = |tid: Option<i32>, comm: &str| StackThread {
            pid: tid.map(|_| 7),
            tid,
            comm: comm.to_owned(),
            process: None,
        };
        let named = [
            thread(Some(7), "java"),
            thread(Some(8), "java"),
            thread(Some(8), "GC Thread#0"),
            thread(None, "java"),
            thread(None, "java"),
        ];
        let PageThreads { threads, of } = PageThreads::new(&named, &[90, 10, 50, 0, 0]);
        assert_eq!(threads, [vec![0], vec![2, 1], vec![3], vec![4]]);
        assert_eq!(of, [0, 1, 1, 2, 3]);
    }
}
