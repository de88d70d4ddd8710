//! A finished and symbolized measurement: the report, and the time by stack for flame graphs.

use super::meter::{MeteredLatency, SlowCandidate};
use super::request::LatencyRequest;
use super::result::{LatencyReport, SlowInterval};
use super::rules::{EventRole, IntervalRules};
use pmc_analysis::analysis::symbols::RecordingSymbols;
use pmc_analysis::profile::sampled::event_totals::EventTotals;
use pmc_analysis::profile::sampled::stacks::TIME_BETWEEN;
use pmc_analysis::profile::sampled::table_input::{RowStrings, TableInput};
use pmc_analysis::profile::sampled::{LocationCalls, NameStyle, Query, StackProfile, StringTable};
use pmc_analysis::session::intern::Interner;
use pmc_analysis::session::samples::{RowKey, comm_key, unnamed_thread};
use pmc_analysis::session::{CommId, History, SampleValue};
use pmc_symbols::symbol::Depth;

/// The result of a measurement.
#[derive(Debug)]
pub(super) struct NamedLatency<'a> {
    /// The data of the text report.
    pub(super) report: LatencyReport,
    history: &'a History,
    metered: MeteredLatency,
    code: LocationCalls,
    texts: StringTable,
}

impl<'a> NamedLatency<'a> {
    /// Symbolizes the result of each kind of interval.
    pub(super) fn all(
        history: &'a History,
        metered: Vec<MeteredLatency>,
        request: &LatencyRequest,
        symbols: &mut RecordingSymbols,
    ) -> Vec<Self> {
        let kinds = metered.into_iter().zip(&request.intervals);
        kinds.map(|(metered, rules)| Self::new(history, metered, &request.texts, rules, symbols)).collect()
    }

    fn new(
        history: &'a History,
        metered: MeteredLatency,
        events: &[String],
        rules: &IntervalRules,
        symbols: &mut RecordingSymbols,
    ) -> Self {
        let mut texts = StringTable::default();
        let code = match metered.has_stacks {
            true => {
                let (modules, locations) = (history.modules(), &metered.resolved.locations);
                symbols.name(modules, locations, Depth::Inlines, NameStyle::default(), &mut texts, &|_| {})
            }
            false => LocationCalls::default(),
        };
        let mut named = Self { report: LatencyReport::default(), history, metered, code, texts };
        let metered = &named.metered;
        named.report = LatencyReport {
            events: [EventRole::Begin, EventRole::End].map(|role| rules.events(events, role)),
            key: rules.key_descriptions(),
            nests: rules.nests,
            elapsed: metered.elapsed,
            counts: metered.counts,
            durations: metered.durations.clone(),
            slowest: metered.slowest.iter().map(|slow| named.slow_interval(slow)).collect(),
            heat: metered.heat.clone(),
            oldest: metered.oldest,
        };
        named
    }

    fn slow_interval(&self, slow: &SlowCandidate) -> SlowInterval {
        let begun = &slow.interval.begun;
        let names = LatencyNames(self.history);
        SlowInterval {
            begin: slow.interval.begin,
            duration: slow.interval.duration(),
            thread: (begun.thread.pid, begun.thread.tid),
            comm: names.comm(comm_key(begun.comm, begun.thread)),
            cpus: [begun.cpu, slow.cpu],
            key: self.metered.rules.values(&slow.key, &|tid| {
                let comm = self.history.comm(tid, tid, slow.interval.end)?;
                Some(names.comm(comm.0))
            }),
            has_loss: slow.interval.has_loss,
            stack: begun.stack.map_or_else(Vec::new, |stack| self.functions(stack)),
        }
    }

    /// Returns the names of the functions in a stack, innermost first.
    fn functions(&self, stack: u32) -> Vec<String> {
        let calls = |location| self.code.range(location).map(|call| &self.code.calls()[call]);
        let calls = self.metered.resolved.stack(stack).flat_map(calls);
        calls.map(|call| self.texts.get(call.symbol).to_owned()).collect()
    }

    /// Calls `visit` with the stacks of the begin events, weighted by nanoseconds.
    pub(super) fn with_stacks<R>(&self, visit: impl FnOnce(&StackProfile<'_>) -> R) -> R {
        let rows: &[(RowKey, SampleValue)] = &self.metered.resolved.rows;
        let mut total = SampleValue::default();
        rows.iter().for_each(|(_, value)| total += value);
        let [begin, end] = &self.report.events;
        let events = [EventTotals {
            name: format!("{TIME_BETWEEN}{} to {}", begin.join(", "), end.join(", ")),
            leader: 0,
            total,
            filtered: SampleValue::default(),
            state: None,
            is_only_sum: false,
            thread_time: None,
        }];
        let (names, attributes) = (LatencyNames(self.history), Interner::default());
        let input = TableInput {
            rows,
            resolved: &self.metered.resolved,
            attributes: &attributes,
            attribute_kinds: &[],
            code: &self.code,
            words: &names,
        };
        visit(&StackProfile::new(&input, self.history.modules(), &events, &Query::default(), &self.texts))
    }
}

/// Resolves thread names; rows have no other attributes.
struct LatencyNames<'a>(&'a History);

impl RowStrings for LatencyNames<'_> {
    fn comm(&self, comm: u32) -> String {
        let name = self.0.comm_name(CommId(comm));
        name.map_or_else(|| unnamed_thread(comm), |name| String::from_utf8_lossy(name).into())
    }

    fn task_name(&self, tid: i32) -> Option<String> {
        self.0.task_name(tid).map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn cgroup(&self, id: u64) -> String {
        id.to_string()
    }

    fn socket(&self, _: u64) -> Option<i64> {
        None
    }

    fn mapped(&self, _: u32) -> Option<u64> {
        None
    }

    fn payload(&self, _: u64) -> String {
        String::new()
    }
}
