//! Individual samples, as text in the format of `perf script` or as JSON lines.
//!
//! Receives [`ScriptEntry`]s and records in order, and writes perf's columns with perf's widths. Most of the
//! output consists of call chains. Each address is therefore formatted only once, and its text is copied for
//! every sample that contains it.
//!
//! ```text
//!   comm  pid/tid misc [cpu]   time:     period event: …
//!   deep  25485 U [000]  1042.425166:    500000 cpu-clock:          <- mod, parts
//!           1167 other+0x17 (/tmp/deep)                             <- places
//!   deep  25485   1042.424169: PERF_RECORD_COMM exec: deep:1/1      <- records
//! ```

mod columns;
pub mod counts;
mod digits;
mod dump;
mod json;
mod parts;
pub mod perf_json;
mod places;
mod records;

use std::io::{self, Write};
use std::sync::Arc;

use columns::{COLUMNS, ColumnText, START};
pub use dump::{record as dump_record, torn as dump_torn};
pub use json::omitted as omitted_json;
pub use parts::ReadSource;
use places::AddressLines;
use pmc_analysis::profile::script::{AddressFunctions, DumpedRecord, ScriptEntry, ScriptField, ScriptFields};
use pmc_perfdata::record::Record;
use pmc_sys::abi::misc;
use pmc_text::text::clean;

/// Which time to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScriptClock {
    /// Time on the recording's clock.
    #[default]
    Absolute,
    /// Time since the first line.
    SinceFirst,
    /// Time since the previous line.
    SinceLast,
}

/// Options for printing samples.
#[derive(Debug, Clone, Default)]
pub struct ScriptLayout {
    /// The fields of each event.
    pub fields: Vec<ScriptFields>,
    /// Names of the events; untrusted text.
    pub events: Vec<String>,
    /// Whether to print nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// Which time to print for each sample.
    pub clock: ScriptClock,
    /// Nanoseconds to add to the recording's clock to get the time of day, for the field `tod`.
    pub wall: Option<i64>,
    /// Whether call chains are shown for at least one event.
    pub has_chains: bool,
    /// Whether to use the register names of `aarch64` instead of `x86_64`.
    pub is_aarch64: bool,
    /// Whether to show source files with their directories.
    pub full_paths: bool,
    /// Functions after which call chains are cut off.
    pub stop_at: Vec<String>,
    /// Whether to print one JSON object per line.
    pub json: bool,
    /// Whether to collapse consecutive unknown frames into one line with their number, for human readers.
    pub joins_unknown: bool,
}

/// What to print of a recording, and how.
#[derive(Debug, Clone)]
pub struct ScriptOutput {
    /// Whether to print the recording's header.
    pub header: bool,
    /// Whether to print only the header.
    pub header_only: bool,
    /// Whether to write a separate file for each event.
    pub per_event: bool,
    /// Maximum number of samples and records.
    pub limit: u64,
    /// The layout, except for the parts that depend on the recording.
    pub layout: ScriptLayout,
}

/// Size in bytes at which the output buffer is written out.
const FULL: usize = 256 << 10;

/// Prints samples and records.
pub struct ScriptWriter<'a> {
    layout: &'a ScriptLayout,
    places: &'a AddressFunctions,
    lines: AddressLines,
    /// For each event, the index of its field selection in `lines` and `texts`.
    choices: Vec<usize>,
    /// For each field selection, the columns to write.
    texts: Vec<Arc<[ColumnText]>>,
    events: Vec<String>,
    width: usize,
    out: Vec<u8>,
    first: Option<u64>,
    before: Option<u64>,
    data_src_width: usize,
    /// The kind of the record that is being written, unless it is a sample.
    kind: Option<u32>,
    code: parts::SourceCode<'a>,
}

impl<'a> ScriptWriter<'a> {
    /// Returns a writer for samples with addresses in `places`. `read_source` finds source lines.
    pub fn new(layout: &'a ScriptLayout, places: &'a AddressFunctions, read_source: ReadSource<'a>) -> Self {
        let events: Vec<String> = layout.events.iter().map(|name| clean(name).into_owned()).collect();
        let width = events.iter().map(String::len).max().unwrap_or(0);
        let mut distinct: Vec<ScriptFields> = Vec::new();
        let choice = |fields: &ScriptFields| {
            distinct.iter().position(|other| other == fields).unwrap_or_else(|| {
                distinct.push(*fields);
                distinct.len() - 1
            })
        };
        let choices = layout.fields.iter().map(choice).collect();
        let texts_of = |fields: &ScriptFields| {
            let shown = COLUMNS.iter().filter(|column| fields.has(column.field));
            shown.filter_map(|column| column.text).collect()
        };
        Self {
            layout,
            places,
            texts: distinct.iter().map(texts_of).collect(),
            lines: AddressLines::new(distinct, places, layout),
            choices,
            events,
            width,
            out: Vec::with_capacity(FULL + (64 << 10)),
            first: None,
            before: None,
            data_src_width: 0,
            kind: None,
            code: parts::SourceCode::new(read_source),
        }
    }

    /// Prints one sample.
    pub fn write(&mut self, out: &mut dyn Write, entry: &ScriptEntry<'_>) -> io::Result<()> {
        if self.layout.json {
            json::sample(&mut self.out, entry, self.layout, self.places)?;
        } else {
            self.text(entry);
        }
        self.flush_full(out)
    }

    /// Prints a record other than a sample. `entry` has the record's process and time.
    pub fn write_record(
        &mut self,
        out: &mut dyn Write,
        entry: &ScriptEntry<'_>,
        kind: u32,
        record: &Record<'_>,
    ) -> io::Result<()> {
        if self.layout.json {
            json::record(&mut self.out, entry, self.layout, kind, record)?;
        } else if matches!(record, Record::FinishedRound) {
            self.out.extend(b"PERF_RECORD_FINISHED_ROUND\n");
        } else {
            let fields = self.layout.fields.get(entry.event).copied().unwrap_or_default();
            self.start(entry, fields, kind);
            records::text(&mut self.out, kind, entry.misc, record);
            if let (Record::Read(_), Some(count)) = (record, entry.period) {
                self.out.pop();
                writeln!(self.out, " {} {count}", self.events[entry.event])?;
            }
        }
        self.flush_full(out)
    }

    /// Prints a record as bytes and fields.
    pub fn write_dumped(&mut self, out: &mut dyn Write, dumped: &DumpedRecord<'_>) -> io::Result<()> {
        dump::record(&mut self.out, dumped)?;
        self.flush_full(out)
    }

    /// Reports the offset at which the records end prematurely.
    pub fn write_torn(
        &mut self,
        out: &mut dyn Write,
        offset: u64,
        file: &str,
        words: &str,
    ) -> io::Result<()> {
        dump::torn(&mut self.out, offset, file, words)?;
        self.flush_full(out)
    }

    /// Writes the buffered output.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let result = out.write_all(&self.out);
        self.out.clear();
        result
    }

    fn flush_full(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.out.len() < FULL {
            return Ok(());
        }
        self.finish(out)
    }

    fn text(&mut self, entry: &ScriptEntry<'_>) {
        let fields = self.layout.fields[entry.event];
        if fields.is_empty() {
            return;
        }
        for text in self.texts[self.choices[entry.event]].clone().iter() {
            text(self, entry, fields);
        }
        self.out.push(b'\n');
        if fields.has(ScriptField::SrcCode)
            && let Some(place) = entry.places.first().and_then(|number| self.places.at(*number).first())
        {
            self.code.print(&mut self.out, entry.tid, place);
        }
    }

    /// Writes the columns at the start of the line for a record other than a sample.
    fn start(&mut self, entry: &ScriptEntry<'_>, fields: ScriptFields, kind: u32) {
        self.kind = Some(kind);
        for column in &COLUMNS {
            if let Some(text) =
                column.text.filter(|_| START.contains(&column.field) && fields.has(column.field))
            {
                text(self, entry, fields);
            }
        }
        self.kind = None;
    }

    fn shown(&mut self, time: u64) -> u64 {
        match self.layout.clock {
            ScriptClock::Absolute => time,
            ScriptClock::SinceFirst => time.wrapping_sub(*self.first.get_or_insert(time)),
            ScriptClock::SinceLast => time.wrapping_sub(self.before.replace(time).unwrap_or(time)),
        }
    }

    /// Writes perf's letters for a record's `misc` bits. perf tests the bits of each mode separately, so the
    /// value 3 prints `K`, `U` and `H`.
    fn misc(&mut self, bits: u16) {
        use pmc_perfdata::record::kind as k;
        let start = self.out.len();
        let modes = [(1, b'K'), (2, b'U'), (3, b'H'), (4, b'G'), (5, b'g')];
        self.out.extend(modes.iter().filter(|(mode, _)| bits & mode == *mode).map(|(_, letter)| letter));
        match self.kind {
            Some(k::MMAP | k::MMAP2) if bits & misc::MMAP_DATA != 0 => self.out.push(b'M'),
            Some(k::COMM) if bits & misc::COMM_EXEC != 0 => self.out.push(b'E'),
            Some(k::SWITCH | k::SWITCH_CPU_WIDE) if bits & misc::SWITCH_OUT != 0 => {
                self.out.push(b'S');
                if bits & misc::SWITCH_OUT_PREEMPT != 0 {
                    self.out.push(b'p');
                }
            }
            _ => {}
        }
        let used = self.out.len() - start;
        self.out.resize(start + used.max(5) + 1, b' ');
    }
}
