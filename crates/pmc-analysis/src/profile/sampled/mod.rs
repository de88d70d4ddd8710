//! Profiles: samples aggregated as the user requested.
//!
//! Receives rows of distinct stacks (`session`) and the calls at each location ([`LocationCalls`], from
//! `symbol`). Returns a read-only [`Profile`]: a table of rows, a call tree, and the quality of the data.
//! Pure.
//!
//! ```text
//!   rows (event, stack, name, attributes) --+--> table:   own and total cost per sort key
//!   location -> calls ----------------------+--> tree:    in caller or callee order
//!                                           '--> quality: roots reached, frames without names
//! ```

pub mod boilerplate;
pub mod call_sites;
pub(crate) mod callers;
pub mod cell;
pub mod chain_tree;
pub mod chains;
pub mod code;
mod code_cells;
pub mod code_owner;
pub mod event_totals;
mod filter;
pub mod futex_functions;
pub mod idle;
pub(crate) mod interpreters;
pub(crate) mod language;
mod live;
mod place;
pub(crate) mod profile_quality;
pub mod query;
mod sample_cells;
pub(crate) mod share;
pub mod sort;
pub mod stacks;
pub(crate) mod strings;
pub mod table;
pub mod table_input;
pub mod thread_states;
pub mod thread_sums;
pub mod time_sums;
pub mod tree;
pub mod trust;
pub mod wait_site;
pub mod waits;

pub use crate::session::SampleValue;
pub use crate::session::thread_time::ThreadState;
pub use cell::RowCell;
pub use chain_tree::{ChainNode, ChainTree};
pub use code::{CodeKind, LocationCall, LocationCalls, NameStyle};
pub use filter::Filter;
pub use language::LanguageFunction;
pub use live::{FunctionRef, LiveHeader, PENDING};
pub use profile_quality::{ModuleQuality, ProfileQuality};
pub use query::{Query, QueryAnswer};
pub use share::{ShareOf, half_width};
pub use sort::SortKey;
pub use stacks::{StackProfile, counted_unit, is_clock, name_and_unit};
pub use strings::{StringId, StringTable};
pub use table::TableRow;
pub use tree::{CallTree, StackDirection};
use waits::ThreadTimeSums;

/// Version of the JSON document; incremented when a field changes its meaning.
pub const VERSION: u32 = 1;

/// An aggregated recording.
#[derive(Debug, Default)]
pub struct Profile {
    /// The string table.
    pub texts: StringTable,
    /// The sort keys: one per cell of a row.
    pub keys: Vec<SortKey>,
    /// Names of the tracepoint fields used as sort keys.
    pub trace_fields: Vec<String>,
    /// Whether rows have totals in addition to their own costs. This requires that call chains were recorded
    /// and requested.
    pub has_totals: bool,
    /// Whether values have latencies. This requires that the recording contains context switches.
    pub has_latency: bool,
    /// The total that shares refer to.
    pub share_of: ShareOf,
    /// One entry per event, in the recording's order.
    pub events: Vec<ProfileEvent>,
    /// Symbols and missing data of each module with samples.
    pub modules: Vec<ModuleQuality>,
    /// Quality of the data.
    pub trust: ProfileQuality,
}

impl Profile {
    /// Returns the indices of the events to show, in the order in which views show them. Of the events that
    /// measure times of threads, the one with the most time comes first.
    pub fn shown_events(&self) -> Vec<usize> {
        let is_shown = |index: &usize| !self.events[*index].is_only_sum;
        let mut shown: Vec<usize> = (0..self.events.len()).filter(is_shown).collect();
        let at: Vec<usize> = (0..shown.len()).filter(|at| self.events[shown[*at]].state.is_some()).collect();
        let mut of_threads: Vec<usize> = at.iter().map(|at| shown[*at]).collect();
        of_threads.sort_by_key(|index| std::cmp::Reverse(self.events[*index].total.period));
        at.into_iter().zip(of_threads).for_each(|(at, index)| shown[at] = index);
        shown
    }

    /// Returns the sort keys of an event's rows.
    pub fn keys_of<'a>(&'a self, event: &'a ProfileEvent) -> &'a [SortKey] {
        event.keys.as_deref().unwrap_or(&self.keys)
    }

    /// Returns the heading of a sort key.
    pub fn heading(&self, key: SortKey) -> &str {
        self.trace_field(key).unwrap_or_else(|| key.heading())
    }

    /// Returns the name of a sort key's field in JSON documents.
    pub fn field_name(&self, key: SortKey) -> &str {
        self.trace_field(key).unwrap_or_else(|| key.field_name())
    }

    fn trace_field(&self, key: SortKey) -> Option<&str> {
        let SortKey::TraceField(field) = key else { return None };
        self.trace_fields.get(usize::from(field)).map(String::as_str)
    }
}

/// One event of a profile.
#[derive(Debug, Default)]
pub struct ProfileEvent {
    /// The event's name in the recording; untrusted text.
    pub name: String,
    /// Sum of all samples, including those excluded by filters.
    pub total: SampleValue,
    /// The total that shares refer to.
    pub share_of: ShareOf,
    /// Sum of the samples excluded by filters.
    pub filtered: SampleValue,
    /// The rows of the table, largest first.
    pub rows: Vec<TableRow>,
    /// The call tree, if call chains were recorded and requested.
    pub tree: Option<CallTree>,
    /// Functions of languages with a runtime, if they were requested.
    pub language_functions: Vec<LanguageFunction>,
    /// Index of the group's leader; the event's own index if it does not belong to a group.
    pub leader: usize,
    /// The state of threads that the event measures; `None` if it measures all states, or no times of
    /// threads.
    pub state: Option<ThreadState>,
    /// Whether views show only the sum of the event, in the first line. This is the case for the time in
    /// which threads waited for a CPU, which says more about the machine than about the code, unless the user
    /// selected this state.
    pub is_only_sum: bool,
    /// The sort keys of the rows, if they differ from [`Profile::keys`].
    pub keys: Option<Vec<SortKey>>,
    /// How threads spent their time, if the event measures times of threads.
    pub thread_time: Option<ThreadTimeSums>,
}

impl ProfileEvent {
    /// Returns the cost of a value, from which shares are computed.
    pub fn cost(&self, value: &SampleValue) -> u64 {
        self.share_of.cost(value)
    }

    /// Whether the event measured how long threads waited.
    pub fn has_waits(&self) -> bool {
        self.total.waited() > 0
    }

    /// Returns the milliseconds per second that threads were running, runnable and blocked; `None` unless
    /// this is an interval of a live view.
    pub fn rates(&self, value: &SampleValue) -> Option<[f64; 3]> {
        let sums = self.thread_time.as_ref().filter(|sums| sums.is_live)?;
        let [runnable, blocked] = value.off_cpu();
        let elapsed = sums.elapsed_ns.max(1) as f64;
        Some([value.ran(), runnable, blocked].map(|time| time as f64 * 1000.0 / elapsed))
    }

    /// Returns a cost's share of the total, 0 to 1.
    pub fn share(&self, cost: u64) -> f64 {
        share::share(cost, self.cost(&self.total))
    }

    /// Returns a cost's share of all periods or of all latencies, 0 to 1.
    pub fn share_by(&self, of: ShareOf, cost: u64) -> f64 {
        share::share(cost, of.cost(&self.total))
    }

    /// Returns half the width of the 95 % confidence interval of a value's share.
    pub fn error(&self, value: &SampleValue) -> f64 {
        self.error_by(self.share_of, value)
    }

    /// Returns half the width of the 95 % confidence interval of a value's share of all periods or of all
    /// latencies. Waits are measured, not sampled, so only running time has an error.
    pub fn error_by(&self, of: ShareOf, value: &SampleValue) -> f64 {
        if of == ShareOf::Latency || !self.has_waits() {
            return half_width(self.share_by(of, of.cost(value)), of.draws(&self.total));
        }
        if value.ran() == 0 {
            return 0.0;
        }
        let sampled = SampleValue { period: self.total.ran(), ..self.total.clone() };
        let error = half_width(share::share(value.ran(), sampled.period), of.draws(&sampled));
        error * share::share(sampled.period, self.total.period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shrinks_with_the_square_root_of_samples() {
        let event = |samples: u64, period: u64| ProfileEvent {
            total: SampleValue {
                samples,
                period: samples * period,
                squares: (samples * period * period) as f64,
                ..SampleValue::default()
            },
            ..ProfileEvent::default()
        };
        let half = |event: ProfileEvent| {
            event.error(&SampleValue { period: event.total.period / 2, ..SampleValue::default() })
        };
        let (few, many) = (half(event(100, 7)), half(event(10_000, 7)));
        assert!((0.09..0.1).contains(&few) && (0.0097..0.0099).contains(&many), "{few} {many}");
        assert!(event(100, 1).error(&SampleValue::default()) > 0.01);
        assert_eq!(ProfileEvent::default().error(&SampleValue::default()), 1.0);
        // One sample with a large period dominates the variance of many samples with small periods.
        let uneven =
            SampleValue { samples: 100, period: 199, squares: 99.0 + 10_000.0, ..SampleValue::default() };
        assert!(ShareOf::Period.draws(&uneven) < 4.0);
    }
}
