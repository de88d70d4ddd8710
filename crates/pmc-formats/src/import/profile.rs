//! A profile of another program, as lists of samples, stacks and frames without duplicates.
//!
//! The importer of a format fills it; [`recording`](super::recording) writes it as a recording. Limits its
//! size, so that a hostile file cannot exhaust the memory.
//!
//! ```text
//!   sample -- stack -- locations, innermost first -- calls, the inlined functions first
//!      '-- event, thread
//! ```

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::error::ImportError;
use pmc_text::text::prefix;
use pmc_text::units::thousands;

/// Maximum number of frames of a stack. The outermost callers of deeper stacks are dropped.
pub(crate) const MOST_FRAMES: usize = 1 << 12;
/// Maximum number of frames in all distinct stacks.
const MOST_STACK_WORDS: usize = 1 << 26;
/// Maximum number of samples, before rows of several samples are split.
const MOST_SAMPLES: usize = 1 << 25;
/// Maximum number of events and of threads.
const MOST_EVENTS: usize = 1 << 10;
const MOST_THREADS: usize = 1 << 20;
/// Maximum value of a sample, so that sums cannot overflow.
const MOST_VALUE: u64 = 1 << 60;
/// Maximum length of a name in bytes. Longer names are cut.
const LONGEST_NAME: usize = 1 << 12;

/// The number of a text, call, location, stack or thread in an [`ImportedProfile`].
pub(crate) type ImportId = u32;

/// One function of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct ImportedCall {
    /// Text: the function's name; empty if unknown.
    pub(crate) name: ImportId,
    /// Text: the module's name; empty if unknown.
    pub(crate) module: ImportId,
    /// Text: the source file; empty if unknown.
    pub(crate) file: ImportId,
    /// Line number; 0 if unknown.
    pub(crate) line: u32,
    /// Address in the module, for code without a name; 0 if unknown.
    pub(crate) address: u64,
    /// Whether this is kernel code.
    pub(crate) is_kernel: bool,
}

/// A thread under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ImportedThread {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// Text: the thread's name; empty if unknown.
    pub(crate) comm: ImportId,
}

/// The meaning of an event's values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ImportedQuantity {
    pub(crate) name: String,
    /// Factor from the file's values to those of pmc: pmc counts times in nanoseconds.
    pub(crate) scale: f64,
}

/// One or several samples with the same stack.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ImportedSample {
    pub(crate) event: ImportId,
    pub(crate) stack: ImportId,
    pub(crate) thread: ImportId,
    pub(crate) cpu: Option<u32>,
    /// Nanoseconds on any clock; see [`ImportedProfile::has_dates`].
    pub(crate) time: Option<u64>,
    /// Number of samples; at least 1.
    pub(crate) samples: u64,
    /// Sum of their periods.
    pub(crate) value: u64,
}

/// Records that the import left out.
#[derive(Debug)]
pub(crate) struct SkippedRecords {
    /// Position of the first one, and the reason.
    first: ImportError,
    count: u64,
}

impl fmt::Display for SkippedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "{}; 1 record skipped", self.first),
            count => write!(f, "{}; {} records skipped, this is the first", self.first, thousands(count)),
        }
    }
}

/// A profile of another program.
#[derive(Debug)]
pub(crate) struct ImportedProfile {
    pub(crate) events: Vec<ImportedQuantity>,
    pub(crate) texts: IndexSet<Arc<str>>,
    pub(crate) calls: IndexSet<ImportedCall>,
    /// Calls by location, the inlined ones first.
    pub(crate) locations: IndexSet<Box<[ImportId]>>,
    /// Locations by stack, innermost first.
    pub(crate) stacks: IndexSet<Box<[ImportId]>>,
    pub(crate) threads: IndexSet<ImportedThread>,
    pub(crate) samples: Vec<ImportedSample>,
    /// Whether times are nanoseconds since the epoch.
    pub(crate) has_dates: bool,
    /// What the user should know about the import.
    pub(crate) notes: Vec<String>,
    /// Records without content that can be shown, by the reason. The result is complete without them.
    needless: IndexMap<String, SkippedRecords>,
    /// Records that could not be read, so that the result is incomplete.
    lost: Option<SkippedRecords>,
    /// Whether the file was packed, and its end is missing.
    is_torn: bool,
    /// If the end of the file is missing: why the rest may contain no sample that is whole.
    needs: Option<&'static str>,
    /// Events by the texts of their name and unit.
    event_numbers: HashMap<(ImportId, ImportId), ImportId>,
    /// Threads without IDs, by their name.
    named_threads: HashMap<ImportId, ImportId>,
    stack_words: usize,
    cut_stacks: u64,
}

impl ImportedProfile {
    pub(crate) fn new() -> Self {
        let mut profile = Self {
            events: Vec::new(),
            texts: IndexSet::new(),
            calls: IndexSet::new(),
            locations: IndexSet::new(),
            stacks: IndexSet::new(),
            threads: IndexSet::new(),
            samples: Vec::new(),
            has_dates: false,
            notes: Vec::new(),
            needless: IndexMap::new(),
            lost: None,
            is_torn: false,
            needs: None,
            event_numbers: HashMap::new(),
            named_threads: HashMap::new(),
            stack_words: 0,
            cut_stacks: 0,
        };
        profile.text("");
        profile
    }

    /// Adds a text. Number 0 is the empty text.
    pub(crate) fn text(&mut self, text: &str) -> ImportId {
        let text = prefix(text.trim(), LONGEST_NAME);
        match self.texts.get_index_of(text) {
            Some(number) => number as ImportId,
            None => self.texts.insert_full(text.into()).0 as ImportId,
        }
    }

    pub(crate) fn get_text(&self, number: ImportId) -> &Arc<str> {
        &self.texts[number as usize]
    }

    /// Adds an event, or returns the number of the event with this name. `unit` is the unit of its values.
    pub(crate) fn event(&mut self, name: &str, unit: &str) -> Result<ImportId, ImportError> {
        let key = (self.text(name), self.text(unit));
        if let Some(known) = self.event_numbers.get(&key) {
            return Ok(*known);
        }
        let event = ImportedQuantity::new(name, unit);
        let known = self.events.iter().position(|known| *known == event);
        let number = known.unwrap_or(self.events.len());
        if known.is_none() {
            self.events.push(event);
            limit("events", self.events.len(), MOST_EVENTS)?;
        }
        self.event_numbers.insert(key, number as ImportId);
        Ok(number as ImportId)
    }

    pub(crate) fn call(&mut self, call: ImportedCall) -> ImportId {
        self.calls.insert_full(call).0 as ImportId
    }

    /// Adds a location with these calls, of which all but the last were inlined.
    pub(crate) fn location(&mut self, calls: &[ImportId]) -> ImportId {
        let calls = &calls[..calls.len().min(MOST_FRAMES)];
        add_list(&mut self.locations, calls).0
    }

    /// Adds a location with a single call.
    pub(crate) fn plain_location(&mut self, call: ImportedCall) -> ImportId {
        let call = self.call(call);
        self.location(&[call])
    }

    /// Adds a stack of locations, innermost first.
    pub(crate) fn stack(&mut self, locations: &[ImportId]) -> Result<ImportId, ImportError> {
        let kept = &locations[..locations.len().min(MOST_FRAMES)];
        self.cut_stacks += u64::from(kept.len() < locations.len());
        let (number, is_new) = add_list(&mut self.stacks, kept);
        if is_new {
            self.stack_words += kept.len();
            limit("frames in all stacks", self.stack_words, MOST_STACK_WORDS)?;
        }
        Ok(number)
    }

    /// Adds a thread. Formats without IDs pass 0 for both.
    pub(crate) fn thread(&mut self, pid: i32, tid: i32, comm: &str) -> Result<ImportId, ImportError> {
        let comm = self.text(comm);
        let number = self.threads.insert_full(ImportedThread { pid, tid, comm }).0;
        limit("threads", self.threads.len(), MOST_THREADS)?;
        Ok(number as ImportId)
    }

    /// Adds a thread with a known name and an unknown ID. It gets a new ID.
    pub(crate) fn named_thread(&mut self, comm: &str) -> Result<ImportId, ImportError> {
        let text = self.text(comm);
        if let Some(known) = self.named_threads.get(&text) {
            return Ok(*known);
        }
        let number = self.thread(ONLY_PROCESS, ONLY_PROCESS + self.threads.len() as i32, comm)?;
        self.named_threads.insert(text, number);
        Ok(number)
    }

    /// Adds a sample. `value` is in the unit of the event.
    pub(crate) fn add(&mut self, sample: ImportedSample) -> Result<(), ImportError> {
        if sample.value > MOST_VALUE {
            return Err(ImportError::Limit { what: "a sample's value", most: MOST_VALUE });
        }
        self.samples.push(ImportedSample { samples: sample.samples.max(1), ..sample });
        limit("samples", self.samples.len(), MOST_SAMPLES)
    }

    /// Notes that a record was skipped because it contains nothing that can be shown. `reason` is the rule,
    /// and `at` creates the error with its position.
    pub(crate) fn skip(&mut self, reason: &str, at: impl FnOnce(&str) -> ImportError) {
        if let Some(skipped) = self.needless.get_mut(reason) {
            skipped.count += 1;
            return;
        }
        self.needless.insert(reason.to_owned(), SkippedRecords { first: at(reason), count: 1 });
    }

    /// Notes that a record was skipped because it could not be read.
    ///
    /// # Errors
    /// Fails with the error if it does not concern a single record.
    pub(crate) fn lose(&mut self, error: ImportError) -> Result<(), ImportError> {
        match error {
            ImportError::Line { .. }
            | ImportError::Byte { .. }
            | ImportError::Item { .. }
            | ImportError::Time { .. } => {}
            ImportError::File(_) | ImportError::Unsupported(_) | ImportError::Limit { .. } => {
                return Err(error);
            }
        }
        self.lost.get_or_insert(SkippedRecords { first: error, count: 0 }).count += 1;
        Ok(())
    }

    /// Notes that the file is cut off. `needs` says why the rest may contain no sample that is whole.
    ///
    /// # Errors
    /// Fails like [`Self::lose`].
    pub(crate) fn cut(&mut self, error: ImportError, needs: &'static str) -> Result<(), ImportError> {
        self.needs = Some(needs);
        if self.is_torn { Ok(()) } else { self.lose(error) }
    }

    /// Notes that only the first bytes of a packed file could be unpacked: `len`, for this reason.
    pub(crate) fn tear(&mut self, len: usize, reason: &str) {
        self.is_torn = true;
        let what = format!("the packed file is damaged or cut off here ({reason})");
        self.lost = Some(SkippedRecords { first: ImportError::byte(len, what), count: 1 });
    }

    /// Returns why a file that is cut off may contain no sample that is whole.
    pub(crate) fn needs(&self) -> Option<&'static str> {
        self.needs
    }

    /// Returns the records that could not be read.
    pub(crate) fn lost(&self) -> Option<&SkippedRecords> {
        self.lost.as_ref()
    }

    /// Returns the records that were skipped although they could be read.
    pub(crate) fn needless(&self) -> impl Iterator<Item = &SkippedRecords> {
        self.needless.values()
    }

    /// Converts a value in the unit of an event to pmc's unit.
    pub(crate) fn scaled(&self, event: ImportId, value: f64) -> u64 {
        (value * self.events[event as usize].scale).round() as u64
    }

    /// Returns the number of stacks whose outermost callers were dropped.
    pub(crate) fn cut_stacks(&self) -> u64 {
        self.cut_stacks
    }
}

/// ID of the process and of the first thread in profiles without IDs.
const ONLY_PROCESS: i32 = 1;

/// Adds a list, and returns its number and whether it is new.
fn add_list(lists: &mut IndexSet<Box<[ImportId]>>, list: &[ImportId]) -> (ImportId, bool) {
    match lists.get_index_of(list) {
        Some(number) => (number as ImportId, false),
        None => (lists.insert_full(list.into()).0 as ImportId, true),
    }
}

fn limit(what: &'static str, count: usize, most: usize) -> Result<(), ImportError> {
    if count > most { Err(ImportError::Limit { what, most: most as u64 }) } else { Ok(()) }
}

impl ImportedQuantity {
    /// Creates an event. Its name states the unit, unless values are plain counts or the name implies it.
    fn new(name: &str, unit: &str) -> Self {
        // A recording's names of events end at the first NUL.
        let name = name.trim().replace(char::is_control, "?");
        let name = if name.is_empty() { "samples" } else { prefix(&name, LONGEST_NAME) };
        let (unit, scale) = match unit.trim() {
            "nanoseconds" | "nanosecond" | "ns" => ("nanoseconds", 1.0),
            "microseconds" | "microsecond" | "us" | "µs" => ("nanoseconds", 1e3),
            "milliseconds" | "millisecond" | "ms" => ("nanoseconds", 1e6),
            "seconds" | "second" | "s" => ("nanoseconds", 1e9),
            "bytes" | "byte" | "B" => ("bytes", 1.0),
            "" | "count" | "none" | "samples" | "objects" | "events" => ("", 1.0),
            other => (other, 1.0),
        };
        let is_known = unit.is_empty()
            || name.contains(unit)
            || unit == "nanoseconds" && pmc_analysis::profile::sampled::stacks::is_clock(name);
        let name = if is_known { name.to_owned() } else { format!("{name} ({unit})") };
        Self { name, scale }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_state_the_unit_once() {
        let named = |name, unit| {
            let event = ImportedQuantity::new(name, unit);
            (event.name, event.scale)
        };
        assert_eq!(named("cpu", "nanoseconds"), ("cpu (nanoseconds)".to_owned(), 1.0));
        assert_eq!(named("cpu (nanoseconds)", "nanoseconds"), ("cpu (nanoseconds)".to_owned(), 1.0));
        assert_eq!(named("cpu-clock:u", "nanoseconds"), ("cpu-clock:u".to_owned(), 1.0));
        assert_eq!(named("wall", "milliseconds"), ("wall (nanoseconds)".to_owned(), 1e6));
        assert_eq!(named("inuse_space", "bytes"), ("inuse_space (bytes)".to_owned(), 1.0));
        assert_eq!(named("cycles", "count"), ("cycles".to_owned(), 1.0));
        assert_eq!(named("", ""), ("samples".to_owned(), 1.0));
        assert_eq!(named("\0a\n", ""), ("?a".to_owned(), 1.0));
    }

    #[test]
    fn limits_are_errors_and_deep_stacks_are_cut() {
        let mut profile = ImportedProfile::new();
        let location = profile.plain_location(ImportedCall::default());
        let deep = vec![location; MOST_FRAMES + 5];
        let stack = profile.stack(&deep).unwrap();
        assert_eq!(profile.stacks[stack as usize].len(), MOST_FRAMES);
        assert_eq!(profile.cut_stacks(), 1);
        let sample = ImportedSample { value: u64::MAX, ..ImportedSample::default() };
        assert!(matches!(profile.add(sample), Err(ImportError::Limit { .. })));
        let threads: Vec<u32> = ["a", "b", "a"].map(|comm| profile.named_thread(comm).unwrap()).into();
        assert_eq!(threads, [0, 1, 0]);
        assert_eq!(profile.threads[1].tid, 2);
    }
}
