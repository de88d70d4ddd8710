//! The output of `pmcstat` for a log, in FreeBSD's formats: individual records (`-R` only), sampled functions
//! (`-m`), source lines (`-a`), and callers (`-G`).
//!
//! ```text
//! records     callchain 4711 0x0 1 2 u        -m   0x401136 leaf 0x401126 0x401150
//!             ...       0x401136              -a   0x401136 leaf /src/a.c:12
//!             ...       0x401170                   0x401170 main /src/a.c:20
//!             exitval   0x1 4711 88                --
//!
//! -G          @ clock.hard [40 samples]
//!
//!             75.00%  [30]       leaf @ /bin/program
//!              100.0%  [30]        main
//! ```
//! Also prints pmcstat's counter table, which has one column per counter and one line per interval:
//!
//! ```text
//! #             p/instructions               p/branches
//!                      1234567                    12345
//! ```

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use pmc_analysis::profile::script::{AddressFunction, AddressFunctions, ScriptEntry};
use pmc_perfdata::record::{Record, kind};
use pmc_text::table::{self, ColumnShape, right};
use pmc_text::text::clean;

/// Default depth of a caller tree, as in pmcstat.
pub(super) const DEPTH: usize = 16;
/// Maximum depth of a caller tree; limits the recursion that prints it.
const GREATEST_DEPTH: usize = 1024;

/// Kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// The log's records.
    Records,
    /// Each sampled address, with its function and the function's start and end.
    Functions(LeafName),
    /// Each address in each call chain, with its function and source line.
    Lines,
    /// Callers of each function, up to this depth.
    Callers(LeafName, usize),
}

/// How to name a sampled function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafName {
    /// Name the function by its symbol.
    Symbol,
    /// Name the function by its symbol and the offset within the symbol (`-I`).
    WithOffset,
    /// Name the function by the sampled address (`-A`).
    Address,
}

#[derive(Debug, Clone)]
pub(super) struct LoggedEvent {
    /// The event's name; untrusted text.
    pub(super) name: String,
    pub(super) kind: LoggedKind,
}

/// Kind of an event's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedKind {
    /// Ordinary samples.
    Sampled,
    /// A thread's counts from one context switch to the next (`-W`).
    Counted,
    /// Context switches, at which thread counts (`-W`) are read.
    Switches,
}

#[derive(Debug)]
pub(super) struct LogWriter<'a> {
    form: Format,
    events: Vec<LoggedEvent>,
    places: &'a AddressFunctions,
    /// Each process's counts at exit, by event.
    exits: BTreeMap<i32, BTreeMap<usize, u64>>,
    /// One tree of callers per event.
    callers: Vec<CallerNode>,
}

impl<'a> LogWriter<'a> {
    /// Returns a writer for this format. `exits` holds each process's counts at exit, by event.
    pub(super) fn new(
        form: Format,
        events: Vec<LoggedEvent>,
        places: &'a AddressFunctions,
        exits: BTreeMap<i32, BTreeMap<usize, u64>>,
    ) -> Self {
        let callers = events.iter().map(|_| CallerNode::default()).collect();
        Self { form, events, places, exits, callers }
    }

    /// Writes the lines before the first record.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub(super) fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        let events = self.events.iter().enumerate().filter(|_| self.form == Format::Records);
        let mut events = events.filter(|(_, event)| event.kind != LoggedKind::Switches);
        events.try_for_each(|(number, event)| {
            writeln!(out, "{:<9} {number:#x} \"{}\"", "allocate", clean(&event.name))
        })
    }

    /// Writes a sample, or adds it to the caller tree of its event.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub(super) fn sample(&mut self, out: &mut dyn Write, entry: &ScriptEntry<'_>) -> io::Result<()> {
        let Some(event) = self.events.get(entry.event).filter(|event| event.kind != LoggedKind::Switches)
        else {
            return Ok(());
        };
        let is_counted = event.kind == LoggedKind::Counted;
        match self.form {
            Format::Records if is_counted => self.count(out, "cswval", entry),
            Format::Records => self.record_of_sample(out, entry),
            _ if is_counted => Ok(()),
            Format::Functions(name) => {
                let Some(place) = self.frames(entry).next() else { return Ok(()) };
                let (address, start) = (place.address, place.address.wrapping_sub(place.into));
                match &place.symbol {
                    None => writeln!(out, "{address:#x} <unknown> 0x0 0x0"),
                    Some(_) => {
                        let end = start.wrapping_add(place.size);
                        writeln!(out, "{address:#x} {} {start:#x} {end:#x}", leaf_name(place, name))
                    }
                }
            }
            Format::Lines => {
                for place in self.frames(entry) {
                    let address = place.address;
                    let (file, line) =
                        place.source.as_ref().map_or(("??", 0), |(file, line)| (&**file, *line));
                    match &place.symbol {
                        None => writeln!(out, "{address:#x} <unknown> ??:0"),
                        Some(symbol) => {
                            writeln!(out, "{address:#x} {} {}:{line}", clean(symbol), clean(file))
                        }
                    }?;
                }
                writeln!(out, "--")
            }
            Format::Callers(name, depth) => {
                let places = self.places;
                let frames = entry.places.iter().filter_map(|number| places.at(*number).last());
                let mut node = &mut self.callers[entry.event];
                node.samples += 1;
                for (level, place) in frames.take(depth.min(GREATEST_DEPTH)).enumerate() {
                    let name = if level == 0 { name } else { LeafName::Symbol };
                    node = node.callers.entry(CallerKey::new(place, name)).or_default();
                    node.samples += 1;
                }
                Ok(())
            }
        }
    }

    /// Writes a record other than a sample.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub(super) fn record(
        &mut self,
        out: &mut dyn Write,
        entry: &ScriptEntry<'_>,
        number: u32,
        record: &Record<'_>,
    ) -> io::Result<()> {
        if self.form != Format::Records {
            return Ok(());
        }
        let text = |bytes: &[u8]| clean(&String::from_utf8_lossy(bytes)).into_owned();
        match record {
            Record::Mmap(map) => {
                writeln!(out, "{:<9} {} {:#x} \"{}\"", "map-in", map.thread.pid, map.addr, text(map.name))
            }
            Record::Mmap2(mapped) => {
                let map = &mapped.map;
                writeln!(out, "{:<9} {} {:#x} \"{}\"", "map-in", map.thread.pid, map.addr, text(map.name))
            }
            Record::Comm(comm) if comm.is_exec => {
                writeln!(out, "{:<9} {} \"{}\"", "exec", comm.thread.pid, text(comm.comm))
            }
            Record::Fork(task) if task.thread.pid != task.parent.pid => {
                writeln!(out, "{:<9} {} {}", "fork", task.parent.pid, task.thread.pid)
            }
            Record::Exit(task) if task.thread.pid == task.thread.tid => {
                self.exit(out, task.thread.pid)?;
                writeln!(out, "{:<9} {}", "exit", task.thread.pid)
            }
            Record::Lost(lost) => writeln!(out, "{:<9} {}", "drop", lost.lost),
            // The kernel's records have a time. Those that a recorder writes at the end repeat other losses.
            Record::LostSamples(lost) if entry.time.is_some_and(|time| time > 0) => {
                writeln!(out, "{:<9} {lost}", "drop")
            }
            Record::Read(_) if number == kind::READ => self.count(out, "cswval", entry),
            _ => Ok(()),
        }
    }

    /// Writes the final lines: process exits or callers.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Format::Records => {
                while let Some(pid) = self.exits.keys().next().copied() {
                    self.exit(out, pid)?;
                }
                writeln!(out, "closelog")
            }
            Format::Callers(..) => {
                for (event, root) in
                    self.events.iter().zip(&self.callers).filter(|(_, root)| root.samples > 0)
                {
                    writeln!(out, "@ {} [{} samples]\n", clean(&event.name), root.samples)?;
                    for (key, node) in root.sorted() {
                        let mut dso = None;
                        node.write(out, key, 0, root.samples, &mut dso)?;
                        writeln!(out)?;
                    }
                }
                Ok(())
            }
            Format::Functions(_) | Format::Lines => Ok(()),
        }
    }

    fn record_of_sample(&self, out: &mut dyn Write, entry: &ScriptEntry<'_>) -> io::Result<()> {
        let (event, pid) = (entry.event, entry.pid.unwrap_or(-1));
        let is_user = self.frames(entry).next().is_none_or(|place| !place.in_kernel);
        let level = if is_user { 'u' } else { 's' };
        if !entry.has_chain {
            let address = self.frames(entry).next().map_or(0, |place| place.address);
            return writeln!(out, "{:<9} {event:#x} {pid} {address:#x} {level}", "sample");
        }
        let cpu = entry.cpu.map_or(-1, i64::from);
        let count = self.frames(entry).count();
        writeln!(out, "{:<9} {pid} {event:#x} {cpu} {count} {level}", "callchain")?;
        let mut frames = self.frames(entry);
        frames.try_for_each(|place| writeln!(out, "{:<9} {:#x}", "...", place.address))
    }

    fn count(&self, out: &mut dyn Write, word: &str, entry: &ScriptEntry<'_>) -> io::Result<()> {
        let (pid, value) = (entry.pid.unwrap_or(-1), entry.period.unwrap_or(0));
        writeln!(out, "{word:<9} {:#x} {pid} {value}", entry.event)
    }

    fn exit(&mut self, out: &mut dyn Write, pid: i32) -> io::Result<()> {
        let counts = self.exits.remove(&pid).unwrap_or_default();
        counts
            .into_iter()
            .try_for_each(|(event, value)| writeln!(out, "{:<9} {event:#x} {pid} {value}", "exitval"))
    }

    /// Returns the function at each address, ignoring inlined functions.
    fn frames(&self, entry: &ScriptEntry<'_>) -> impl Iterator<Item = &'a AddressFunction> {
        let (places, numbers) = (self.places, entry.places.to_vec());
        numbers.into_iter().filter_map(move |number| places.at(number).last())
    }
}

fn leaf_name(place: &AddressFunction, name: LeafName) -> String {
    match (&place.symbol, name) {
        (Some(symbol), LeafName::Symbol) => clean(symbol).into_owned(),
        (Some(symbol), LeafName::WithOffset) => format!("{}+{:#x}", clean(symbol), place.into),
        _ => format!("{:#x}", place.address),
    }
}

/// A node of the caller tree: a function and its callers.
#[derive(Debug, Default)]
struct CallerNode {
    samples: u64,
    callers: HashMap<CallerKey, CallerNode>,
}

/// Identity of a function: its name or address, and the file that contains it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct CallerKey {
    name: String,
    dso: Option<Arc<str>>,
}

impl CallerKey {
    fn new(place: &AddressFunction, name: LeafName) -> Self {
        Self { name: leaf_name(place, name), dso: place.dso.clone() }
    }
}

impl CallerNode {
    /// Returns the callers, most samples first.
    fn sorted(&self) -> Vec<(&CallerKey, &Self)> {
        let mut all: Vec<(&CallerKey, &Self)> = self.callers.iter().collect();
        all.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.samples.cmp(&of_a.samples).then_with(|| a.cmp(b)));
        all
    }

    /// Writes this function and its callers. `dso` is the file printed most recently.
    fn write<'k>(
        &'k self,
        out: &mut dyn Write,
        key: &'k CallerKey,
        depth: usize,
        total: u64,
        dso: &mut Option<&'k Arc<str>>,
    ) -> io::Result<()> {
        let share = match self.samples == total {
            true => "100.0%".to_owned(),
            false => format!("{:05.2}%", 100.0 * self.samples as f64 / total as f64),
        };
        let samples = format!(" [{}] ", self.samples);
        write!(out, "{:depth$}{share} {samples:<12}{:depth$}{}", "", "", key.name)?;
        match key.dso.as_ref().filter(|own| *dso != Some(*own)) {
            Some(own) => writeln!(out, " @ {}", clean(own))?,
            None => writeln!(out)?,
        }
        *dso = key.dso.as_ref().or(*dso);
        self.sorted()
            .into_iter()
            .try_for_each(|(key, node)| node.write(out, key, depth + 1, self.samples, dso))
    }
}

/// Number of digits of the largest 64-bit number, by pmcstat's formula.
const WIDTH: usize = (64.0 / std::f64::consts::LOG2_10) as usize + 1;
/// If the terminal's height is unknown, the header is repeated after this number of lines.
const SCREEN: usize = 23;

/// The counter table. A column is at least as wide as its title and the largest 64-bit number.
#[derive(Debug, Default)]
pub(super) struct CounterTable {
    titles: Vec<String>,
    shapes: Vec<ColumnShape>,
    /// Lines printed since the last header.
    lines: usize,
}

impl CounterTable {
    /// Returns a table for these counters. System-wide counters have a CPU.
    pub(super) fn new<'c>(counters: impl Iterator<Item = (&'c str, Option<u32>)>) -> Self {
        let title = |(spec, cpu): (&str, Option<u32>)| {
            cpu.map_or_else(|| format!("p/{spec}"), |cpu| format!("s/{cpu:02}/{spec}"))
        };
        let titles: Vec<String> = counters.map(title).collect();
        let shapes = table::fitted(&vec![right(1, WIDTH); titles.len()], [titles.as_slice()]);
        Self { titles, shapes, lines: 0 }
    }

    /// Writes a line. Before it, writes a header if the previous header has scrolled off the terminal, which
    /// has `screen` lines. Shows `-` instead of 0 if the counter did not run.
    pub(super) fn write(
        &mut self,
        out: &mut dyn Write,
        screen: Option<usize>,
        values: impl Iterator<Item = Option<u64>>,
    ) -> io::Result<()> {
        let cells = values.map(|value| value.map_or_else(|| "-".to_owned(), |value| value.to_string()));
        let mut text = format!(" {}\n", table::line(&self.shapes, cells));
        if self.lines == 0 || self.lines >= screen.map_or(SCREEN, |lines| lines.max(2) - 1) {
            text = format!("#{}\n{text}", table::line(&self.shapes, &self.titles));
            self.lines = 0;
        }
        self.lines += 1;
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(symbol: &str, address: u64, into: u64) -> AddressFunction {
        let (symbol, dso) = (Some(Arc::from(symbol)), Some(Arc::from("/bin/program")));
        AddressFunction { symbol, dso, address, into, size: 0x2a, ..AddressFunction::default() }
    }

    fn written(form: Format, places: &AddressFunctions, entries: &[ScriptEntry<'_>]) -> String {
        let event = LoggedEvent { name: "clock.hard".to_owned(), kind: LoggedKind::Sampled };
        let exits = BTreeMap::from([(7, BTreeMap::from([(0, 88)]))]);
        let mut writer = LogWriter::new(form, vec![event], places, exits);
        let mut out = Vec::new();
        writer.begin(&mut out).unwrap();
        entries.iter().for_each(|entry| writer.sample(&mut out, entry).unwrap());
        writer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn output_matches_freebsd() {
        let mut places = AddressFunctions::default();
        places.push([place("leaf", 0x401136, 0x10)]);
        places.push([AddressFunction {
            source: Some((Arc::from("/src/a.c"), 20)),
            ..place("main", 0x401170, 4)
        }]);
        places.push([AddressFunction { address: 0xdead, ..AddressFunction::default() }]);
        let entry = |places: &'static [u32]| ScriptEntry {
            pid: Some(7),
            cpu: Some(1),
            places,
            has_chain: true,
            ..ScriptEntry::default()
        };
        let entries = [entry(&[0, 1]), entry(&[0, 1]), entry(&[0]), entry(&[2])];
        let of = |form| written(form, &places, &entries);
        let records = of(Format::Records);
        let lines: Vec<&str> = records.lines().collect();
        assert_eq!(lines[0], "allocate  0x0 \"clock.hard\"");
        assert_eq!(lines[1..4], ["callchain 7 0x0 1 2 u", "...       0x401136", "...       0x401170"]);
        assert_eq!(lines[lines.len() - 2..], ["exitval   0x0 7 88", "closelog"]);
        let name = LeafName::Symbol;
        let functions = of(Format::Functions(name));
        assert_eq!(functions.lines().next(), Some("0x401136 leaf 0x401126 0x401150"));
        assert!(functions.ends_with("0xdead <unknown> 0x0 0x0\n"), "{functions}");
        let offset = of(Format::Functions(LeafName::WithOffset));
        assert!(offset.starts_with("0x401136 leaf+0x10 "), "{offset}");
        let lines = of(Format::Lines);
        assert!(lines.starts_with("0x401136 leaf ??:0\n0x401170 main /src/a.c:20\n--\n"), "{lines}");
        let callers = of(Format::Callers(name, DEPTH));
        assert!(
            callers.starts_with(
                "@ clock.hard [4 samples]\n\n75.00%  [3]        leaf @ /bin/program\n 66.67%  [2]         main\n\n"
            ),
            "{callers}"
        );
        let leaf = of(Format::Callers(name, 1));
        assert!(!leaf.contains("main") && leaf.contains("25.00%  [1]        0xdead\n"), "{leaf}");
    }
}
