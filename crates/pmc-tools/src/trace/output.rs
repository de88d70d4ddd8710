//! The output of `pmc trace`: a file, or else stderr if a command runs and stdout if not.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use super::descriptors::{DescriptorLookup, DescriptorTable};
use super::feed::CallFilter;
use super::json;
use super::request::{SummaryStyle, TraceRequest};
use super::summary::CallSummary;
use super::text::{self, CallPart, SummaryLayout, TraceTotals};
use super::tracer::{CallResult, EnteredCall, TraceCounts, TracedCall};
use pmc_analysis::profile::script::AddressFunctions;
use pmc_command::warning::lost;
use pmc_perfdata::record::Record;
use pmc_sys::error::{Advice, AdvisedOption, Error, Result, Warning, say};
use pmc_sys::sys::output_file;
use pmc_text::units::thousands;

/// Returns the thread and the start time of a call.
fn call_key(call: &TracedCall) -> (i32, u64) {
    (call.entered.thread.tid, call.entered.begin)
}

/// Receives finished calls, and calls that have been in progress for a long time.
pub(super) struct TraceOutput {
    to: BufWriter<Box<dyn Write>>,
    name: String,
    filter: CallFilter,
    /// The descriptors of the traced processes; `None` if no calls are printed.
    descriptors: Option<DescriptorTable>,
    summary: Option<(CallSummary, SummaryStyle)>,
    layout: SummaryLayout,
    json: bool,
    /// The time to which printed times are relative. Unless specified, it is the start of the first call.
    start: Option<u64>,
    /// Number of calls that passed the filter, and how many of them returned.
    shown: u64,
    returned: u64,
    /// Number of calls after which to stop.
    most: Option<u64>,
    /// Thread and start time of each call in progress whose start has been printed.
    begun: HashSet<(i32, u64)>,
}

impl TraceOutput {
    /// Opens the output. `lookup` names descriptors.
    pub(super) fn open(request: &TraceRequest, lookup: DescriptorLookup) -> Result<Self> {
        let (to, name): (Box<dyn Write>, String) = match &request.output {
            Some(path) if path.as_os_str() == "-" => (Box::new(io::stdout()), "the calls".to_owned()),
            Some(path) => {
                let file = output_file::create(path, 0o600, false)
                    .map_err(|error| Error::create(AdvisedOption::Named("-o"), path, error))?;
                (Box::new(file), format!("the calls to {}", path.display()))
            }
            None if request.has_command => (Box::new(io::stderr()), "the calls to stderr".to_owned()),
            None => (Box::new(io::stdout()), "the calls".to_owned()),
        };
        Ok(Self {
            to: BufWriter::with_capacity(1 << 16, to),
            name,
            filter: request.filter.clone(),
            descriptors: request.prints_calls.then(|| DescriptorTable::new(lookup)),
            summary: request.summary.map(|style| (CallSummary::default(), style)),
            layout: request.layout,
            json: request.json,
            start: request.full_time.then_some(0),
            shown: 0,
            returned: 0,
            most: request.most_calls,
            begun: HashSet::default(),
        })
    }

    /// Whether the calls to print or to count include this one, regardless of its result.
    pub(super) fn selects(&self, call: &EnteredCall) -> bool {
        self.filter.selects(call)
    }

    /// Sets the name of a descriptor that is open before the first call.
    pub(super) fn set_descriptor(&mut self, pid: i32, fd: i32, name: &str) {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.set(pid, fd, name);
        }
    }

    /// Follows the tasks and their descriptors.
    pub(super) fn apply(&mut self, record: &Record<'_>) {
        if let Some(descriptors) = &mut self.descriptors {
            descriptors.apply(record);
        }
    }

    /// Processes a finished call. `functions` are the functions in its stack.
    pub(super) fn call(&mut self, call: &TracedCall, functions: Option<&AddressFunctions>) -> Result<()> {
        let start = *self.start.get_or_insert(call.entered.begin);
        let named = self.descriptors.as_mut().map(|descriptors| descriptors.follow(call));
        if self.is_full() || !self.filter.keeps(call) {
            return Ok(());
        }
        self.shown += 1;
        self.returned += u64::from(call.result != CallResult::Unfinished);
        if let Some((summary, _)) = &mut self.summary {
            summary.add(call);
        }
        let Some(named) = named else { return Ok(()) };
        if self.json && self.shown > self.layout.most_rows as u64 {
            return Ok(());
        }
        let part = if self.begun.remove(&call_key(call)) { CallPart::End } else { CallPart::Whole };
        let written = match self.json {
            true => json::write_call_json(&mut self.to, call, &named, functions),
            false => text::write_call(&mut self.to, call, part, &named, start, functions),
        };
        written.map_err(|error| Error::output(&self.name, error))
    }

    /// Prints the starts of calls that have been in progress for a long time, unless they have already been
    /// printed. `late` contains all such calls.
    pub(super) fn late_calls(&mut self, late: &[TracedCall]) -> Result<()> {
        let Some(descriptors) = &mut self.descriptors else { return Ok(()) };
        let mut begun = HashSet::default();
        for call in late.iter().filter(|call| self.filter.keeps(call)) {
            begun.insert(call_key(call));
            if self.begun.contains(&call_key(call)) {
                continue;
            }
            let start = *self.start.get_or_insert(call.entered.begin);
            let named = descriptors.follow(call);
            text::write_call(&mut self.to, call, CallPart::Begin, &named, start, None)
                .map_err(|error| Error::output(&self.name, error))?;
        }
        self.begun = begun;
        Ok(())
    }

    /// Whether the call limit has been reached.
    pub(super) fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.shown >= most)
    }

    /// Whether calls are printed.
    pub(super) fn prints_calls(&self) -> bool {
        self.descriptors.is_some()
    }

    /// Whether calls in progress are printed. JSON contains only finished calls.
    pub(super) fn prints_late_calls(&self) -> bool {
        self.prints_calls() && !self.json
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.to.flush().map_err(|error| Error::output(&self.name, error))
    }

    /// Writes the tables, and warns about losses.
    pub(super) fn finish(mut self, elapsed_ns: u64, counts: TraceCounts) -> Result<()> {
        let totals = TraceTotals { elapsed_ns, counts, shown: self.returned };
        let Self { to, summary, layout, json, shown, .. } = &mut self;
        let written = match (&*summary, *json) {
            (Some((summary, SummaryStyle::Threads)), false) => {
                text::write_threads(to, summary, &totals, layout)
            }
            (Some((summary, SummaryStyle::Totals)), false) => {
                text::write_totals(to, summary, &totals, layout)
            }
            (Some((summary, _)), true) => json::write_json(to, summary, &totals, layout),
            (None, true) if *shown > layout.most_rows as u64 => {
                json::write_omitted_json(to, *shown - layout.most_rows as u64)
            }
            (None, _) => Ok(()),
        };
        written.and_then(|()| to.flush()).map_err(|error| Error::output(&self.name, error))?;
        if counts.lost > 0 {
            let calls = thousands(counts.lost.div_ceil(2));
            say::warn(
                Warning::loss(format!("{}: about {calls} calls are missing", lost(counts.lost)))
                    .advise(Advice::options("trace fewer calls (-e), or use larger ring buffers (-m)")),
            );
        }
        Ok(())
    }
}
