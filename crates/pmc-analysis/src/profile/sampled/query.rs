//! Queries about a profile, as plain data, and the code that answers them.
//!
//! Receives rows of distinct stacks ([`TableInput`]), their events, and a [`Query`]. Filters the rows, joins
//! rows that the query does not distinguish, and builds tables and trees from them. All views of profiles use
//! this module. A report runs a single query; the full-screen view runs one after each key press, and the
//! live view at each refresh. The caller provides the rows. It also adds the data about modules and losses.
//!
//! ```text
//!   rows ── filter ──+── join rows with equal keys ── tables, trees
//!                    +── all filters but time:    sums by slice of time    (to choose a time slice)
//!                    '── all filters but threads: sums by thread           (to choose a thread)
//! ```

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::chains::{ChainRequest, add_chains};
use super::event_totals::EventTotals;
use super::filter::{Filter, FilterState, by_name};
use super::language;
use super::share::ShareOf;
use super::sort::SortKey;
use super::strings::{StringId, StringTable};
use super::table::{self, RowRank, TableRequest};
use super::table_input::TableInput;
use super::thread_states::{StateRun, StateSums};
use super::thread_sums::{self, ThreadSum};
use super::time_sums::{TimeSums, times};
use super::tree::CallTree;
use super::tree::{StackDirection, TreeOptions, trees};
use super::waits::SiteSums;
use super::{Profile, ProfileEvent};
use crate::session::SampleValue;
use crate::session::samples::{ANY_COMM, RowKey};
use crate::session::thread_time::ThreadState;

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The event that tables and trees show; `None` means all events.
    pub event: Option<usize>,
    /// The sort keys that distinguish rows.
    pub keys: Vec<SortKey>,
    /// The total that shares refer to, and the order of rows and branches.
    pub share_of: ShareOf,
    /// Whether rows have totals in addition to their own costs.
    pub totals: bool,
    /// Whether rows split their own costs by CPU mode.
    pub by_mode: bool,
    /// Whether a sample counts for its innermost function, inlined or not. Otherwise it counts for the
    /// function that contains the code, as in perf.
    pub innermost: bool,
    /// Criteria for the order of rows, most important first. Ties are ordered by total.
    pub ranks: Vec<RowRank>,
    /// Which end of the stacks is the tree's top; `None` means no tree.
    pub tree: Option<StackDirection>,
    /// Whether direct recursion is collapsed to one node.
    pub collapse: bool,
    /// Minimum share (0 to 1) of the event's cost for a branch to be shown.
    pub limit: f64,
    /// Minimum share (0 to 1) for a row to be shown.
    pub row_limit: f64,
    /// Options for the call chains of rows; `None` means no chains.
    pub chains: Option<ChainRequest>,
    /// The function at the tree's root. The tree shows its callees in caller order, and its callers in callee
    /// order.
    pub root: Option<String>,
    /// Whether the answer includes [`LanguageFunction`](super::LanguageFunction)s.
    pub language_functions: bool,
    /// Whether shares refer to the filtered samples instead of all samples.
    pub relative: bool,
    /// Whether to include the waits of idle threads.
    pub idle: bool,
    /// Whether each state of threads is a separate event, with a separate total, instead of a part of one
    /// event with the threads' whole time.
    pub states_apart: bool,
    /// The sort keys for the event of blocked threads; `None` for [`Self::keys`]. Its rows have no totals.
    pub waiting_keys: Option<Vec<SortKey>>,
    /// Selects the samples to include.
    pub filter: Filter,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            event: None,
            keys: vec![SortKey::Comm, SortKey::Dso, SortKey::Symbol],
            share_of: ShareOf::Period,
            totals: false,
            by_mode: false,
            innermost: false,
            ranks: Vec::new(),
            tree: None,
            collapse: false,
            limit: 0.0,
            row_limit: 0.0,
            chains: None,
            root: None,
            language_functions: false,
            relative: false,
            idle: false,
            states_apart: false,
            waiting_keys: None,
            filter: Filter::default(),
        }
    }
}

/// The answer to a query.
#[derive(Debug, Default)]
pub struct QueryAnswer {
    /// The query.
    pub query: Query,
    /// Tables and trees. The data about modules and losses is not filled in.
    pub profile: Profile,
    /// The periods of the query's event over time, ignoring the query's time filter. If the query is for all
    /// events, contains the periods of the first event. `None` if rows have no time.
    pub times: Option<TimeSums>,
    /// The cost of each thread for the same event, ignoring the query's thread filters, largest first. Empty
    /// if rows have no threads.
    pub threads: Vec<ThreadSum>,
    /// Names of the threads' processes, by process id.
    pub process_names: FxHashMap<i32, StringId>,
    /// The states of each thread over time, by thread id, ignoring the query's thread and time filters. Empty
    /// unless the event measures running and waiting time.
    pub thread_states: FxHashMap<i32, Vec<StateRun>>,
}

/// Answers a query. `texts` contains the strings of the calls in `input`.
pub(crate) fn answer(
    input: &TableInput<'_>,
    events_totals: &[EventTotals],
    query: &Query,
    mut texts: StringTable,
) -> QueryAnswer {
    let mut filter_state = FilterState::new(input, &query.filter, &texts);
    let mut rows = Vec::new();
    let mut left_out = vec![SampleValue::default(); events_totals.len()];
    let mut by_slice: FxHashMap<u64, u64> = FxHashMap::default();
    let measures_threads =
        |event: usize| events_totals.get(event).is_some_and(|source| source.thread_time.is_some());
    let (mut state_sums, mut state_threads) = (StateSums::default(), FxHashSet::default());
    let mut by_attributes: FxHashMap<(u32, u32), SampleValue> = FxHashMap::default();
    let shown = query.event.unwrap_or(0);
    let has_all = (query.event.is_none() || query.event == Some(0) && events_totals.len() == 1)
        && query.filter == Filter { only: query.filter.only.clone(), ..Filter::default() };
    let looks = !has_all || filter_state.pid.is_some() || filter_state.time.is_some();
    let mut site_sums = SiteSums::new(input);
    for (key, value) in if looks { input.rows } else { &[] } {
        let event = key.event as usize;
        let is_wanted = query.event.is_none_or(|wanted| wanted == event);
        // Timelines and sums of threads contain all states.
        let is_of_threads = event == shown || measures_threads(event) && measures_threads(shown);
        if !(is_wanted || is_of_threads) {
            continue;
        }
        let verdict = filter_state.decide(key);
        if measures_threads(event)
            && verdict.other
            && let Some(state) = filter_state.state(key)
            && let Some(slice) = filter_state.word(key, filter_state.time)
            && let Some(tid) = filter_state.word(key, filter_state.tid)
        {
            state_sums.add(tid as i32, slice, state, value.period);
            state_threads.extend(verdict.thread.then_some(tid as i32));
        } else if event == shown
            && verdict.other
            && verdict.thread
            && let Some(slice) = filter_state.word(key, filter_state.time)
        {
            let sum: &mut u64 = by_slice.entry(slice).or_default();
            *sum = sum.saturating_add(query.share_of.cost(value));
        }
        if is_of_threads && verdict.other && verdict.time && filter_state.pid.is_some() {
            let sum: &mut SampleValue = by_attributes.entry((key.attributes, key.comm)).or_default();
            // A thread without cost in this event has a timeline too.
            if event == shown {
                *sum += value;
            }
        }
        if verdict.other && verdict.thread && verdict.time {
            if !has_all && is_wanted {
                rows.push((*key, value.clone()));
            }
            if !has_all && measures_threads(event) {
                site_sums.add(key, value);
            }
        } else if is_wanted && let Some(sum) = left_out.get_mut(event) {
            *sum += value;
        }
    }
    let rows: Cow<'_, [(RowKey, SampleValue)]> = if has_all { input.rows.into() } else { rows.into() };
    if has_all {
        let of_threads = |(key, _): &&(RowKey, SampleValue)| measures_threads(key.event as usize);
        rows.iter().filter(of_threads).for_each(|(key, value)| site_sums.add(key, value));
    }
    let sites = site_sums.largest_first();
    // Joined rows keep only those attributes that are sort keys.
    let all_keys = [&query.keys[..], query.waiting_keys.as_deref().unwrap_or_default()].concat();
    let rows = joined(rows, &all_keys);
    let input = TableInput { rows: &rows, ..*input };
    let kept = by_name(&input, &query.filter, query.totals, &texts, &mut left_out);
    let totals: Vec<SampleValue> = events_totals.iter().map(|source| source.total.clone()).collect();
    let request = TableRequest {
        keys: &query.keys,
        with_totals: query.totals,
        by_mode: query.by_mode,
        innermost: query.innermost,
        only: &query.filter.only,
        ranks: &query.ranks,
        share_of: query.share_of,
    };
    let mut tables = match &query.waiting_keys {
        None => table::tables(&input, request, events_totals.len(), &mut texts),
        Some(keys) => {
            let is_wait = |(key, _): &(RowKey, SampleValue)| {
                let source = events_totals.get(key.event as usize);
                source.is_some_and(|source| source.state == Some(ThreadState::Blocked))
            };
            let (waits, others): (Vec<_>, Vec<_>) = input.rows.iter().cloned().partition(is_wait);
            let others = TableInput { rows: &others, ..input };
            let mut all = table::tables(&others, request, events_totals.len(), &mut texts);
            let request = TableRequest { keys, with_totals: false, ranks: &[], ..request };
            let waits = TableInput { rows: &waits, ..input };
            let of_waits = table::tables(&waits, request, events_totals.len(), &mut texts);
            all.iter_mut().zip(of_waits).for_each(|(rows, waits)| rows.extend(waits));
            all
        }
    };
    if let Some(chains) = query.chains {
        add_chains(&input, request, chains, &totals, &mut tables, &mut texts);
    }
    let kept = TableInput { rows: &kept, ..input };
    let mut of_languages = match query.language_functions {
        true => language::functions(&kept, events_totals.len(), query.share_of, &texts),
        false => Vec::new(),
    }
    .into_iter();
    let mut grown = grown(&kept, query, &totals, &texts).into_iter();
    let events = events_totals.iter().zip(tables).zip(left_out).map(|((source, rows), left_out)| {
        let mut filtered = source.filtered.clone();
        filtered += left_out;
        let total = source.total.clone();
        let mut event = ProfileEvent {
            name: source.name.clone(),
            total: if query.relative { total.without(&filtered) } else { total },
            share_of: query.share_of,
            filtered,
            rows,
            tree: grown.next(),
            language_functions: of_languages.next().unwrap_or_default(),
            leader: source.leader,
            state: source.state,
            is_only_sum: source.is_only_sum,
            keys: query.waiting_keys.clone().filter(|_| source.state == Some(ThreadState::Blocked)),
            thread_time: source.thread_time.as_ref().map(|of| of.with_sites(&sites)),
        };
        let mut rows = std::mem::take(&mut event.rows);
        rows.retain(|row| event.share(event.cost(&row.total)) >= query.row_limit);
        ProfileEvent { rows, ..event }
    });
    let events = events.collect();
    let shown_state = events_totals.get(shown).and_then(|source| source.state);
    let shows_threads = measures_threads(shown);
    let thread_states = state_sums.runs(filter_state.slice.unwrap_or(1), |tid, slice, sums| {
        if shows_threads && state_threads.contains(&tid) {
            let all = by_slice.entry(slice).or_default();
            *all = match shown_state {
                Some(state) => all.saturating_add(sums[state as usize]),
                None => sums.iter().fold(*all, |sum, part| sum.saturating_add(*part)),
            };
        }
    });
    let times = filter_state.slice.map(|slice| times(&by_slice, slice));
    let (threads, process_names) =
        thread_sums::threads(&input, by_attributes, &filter_state, query.share_of, &mut texts);
    let profile = Profile {
        texts,
        keys: query.keys.clone(),
        has_totals: query.totals,
        has_latency: events_totals.iter().any(|source| source.total.latency() > 0),
        share_of: query.share_of,
        events,
        ..Profile::default()
    };
    QueryAnswer { query: query.clone(), profile, times, threads, process_names, thread_states }
}

/// Returns the call tree of each event, if the query asks for trees.
fn grown(
    input: &TableInput<'_>,
    query: &Query,
    totals: &[SampleValue],
    texts: &StringTable,
) -> Vec<CallTree> {
    let Some(order) = query.tree else { return Vec::new() };
    let (share_of, collapse, limit) = (query.share_of, query.collapse, query.limit);
    let grown = |root| trees(input, TreeOptions { order, share_of, collapse, limit, root }, totals, texts);
    let mut grown = match query.root.as_deref().map(|name| texts.find(name)) {
        // A tree cannot start at an unknown function.
        Some(None) => Vec::new(),
        root => grown(root.flatten()),
    };
    grown.resize_with(totals.len(), Default::default);
    grown
}

/// Joins neighbouring rows that differ only in attributes that the keys do not distinguish. Rows are sorted
/// by stack.
fn joined<'a>(rows: Cow<'a, [(RowKey, SampleValue)]>, keys: &[SortKey]) -> Cow<'a, [(RowKey, SampleValue)]> {
    let comms = keys.iter().any(|key| key.is_of_name());
    let attributes = keys.iter().any(|key| !key.is_of_name() && !key.is_of_code());
    let plain = |key: &RowKey| RowKey {
        comm: if comms { key.comm } else { ANY_COMM },
        attributes: if attributes { key.attributes } else { 0 },
        ..*key
    };
    if (comms && attributes) || rows.windows(2).all(|pair| plain(&pair[0].0) != plain(&pair[1].0)) {
        return rows;
    }
    let mut joined: Vec<(RowKey, SampleValue)> = Vec::new();
    for (key, value) in rows.iter() {
        // Keep the attributes of the first row, because no sort key uses them.
        let same = joined.last_mut().filter(|(last, _)| plain(last) == plain(key));
        match same {
            Some((_, sum)) => *sum += value,
            None => joined.push((*key, value.clone())),
        }
    }
    joined.into()
}

/// Returns a function's periods by time slice, with as many slices as `like` has, for a row's history graph.
pub(crate) fn history(
    input: &TableInput<'_>,
    query: &Query,
    (dso, symbol): (&str, &str),
    like: &TimeSums,
    texts: &StringTable,
) -> Vec<u64> {
    let mut sums = vec![0; like.sums.len()];
    let mut filter_state = FilterState::new(input, &query.filter, texts);
    let (Some(dso), Some(symbol), Some(width)) = (texts.find(dso), texts.find(symbol), filter_state.slice)
    else {
        return sums;
    };
    let shown = query.event.unwrap_or(0);
    for (key, value) in input.rows.iter().filter(|(key, _)| key.event as usize == shown) {
        let Some(leaf) = input.resolved.stack(key.stack).next() else { continue };
        let call = &input.code.calls()[input.code.own(leaf)];
        if call.symbol != symbol || call.dso != dso {
            continue;
        }
        let verdict = filter_state.decide(key);
        if verdict.other
            && verdict.thread
            && let Some(slice) = filter_state.word(key, filter_state.time)
        {
            let at = (slice.saturating_mul(width)).saturating_sub(like.from) / like.slice.max(1);
            if let Some(sum) = usize::try_from(at).ok().and_then(|at| sums.get_mut(at)) {
                *sum = sum.saturating_add(query.share_of.cost(value));
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::table::RowSelection;
    use crate::profile::sampled::{LocationCall, LocationCalls};
    use crate::session::ResolvedStacks;
    use crate::session::intern::{Interner, bytes};
    use crate::session::samples::SampleAttribute;
    use pmc_sys::abi::CpuMode;

    struct TestNames;

    impl crate::profile::sampled::table_input::RowStrings for TestNames {
        fn comm(&self, comm: u32) -> String {
            ["cat", "dog"].get(comm as usize).map_or_else(String::new, |name| (*name).to_owned())
        }
        fn task_name(&self, tid: i32) -> Option<String> {
            (tid == 10).then(|| "zoo".to_owned())
        }
        fn cgroup(&self, _: u64) -> String {
            String::new()
        }
        fn socket(&self, _: u64) -> Option<i64> {
            None
        }
        fn mapped(&self, _module: u32) -> Option<u64> {
            None
        }
        fn payload(&self, _: u64) -> String {
            String::new()
        }
    }

    /// main > work > (leaf | sys), and recursion of work; two threads, slices of 100 ns.
    struct World {
        resolved: ResolvedStacks,
        attributes: Interner,
        code: LocationCalls,
        texts: StringTable,
    }

    const KINDS: [SampleAttribute; 3] =
        [SampleAttribute::Pid, SampleAttribute::Tid, SampleAttribute::Time(100)];

    impl World {
        fn new() -> Self {
            let mut texts = StringTable::default();
            let mut code = LocationCalls::default();
            for (symbol, dso, level) in [
                ("main", "app", CpuMode::User),
                ("work", "app", CpuMode::User),
                ("leaf", "libc", CpuMode::User),
                ("sys", "[kernel]", CpuMode::Kernel),
            ] {
                let call = LocationCall::new(texts.add(dso), texts.add(symbol), level, true);
                code.push(&[call], Some(0));
            }
            let mut resolved = ResolvedStacks::default();
            let (mut stacks, mut attributes) = (Interner::default(), Interner::default());
            let mut scratch = Vec::new();
            // Stack (innermost first), name, tid, slice, samples.
            let rows: [(&[u32], u32, u64, u64, u64); 5] = [
                (&[2, 1, 0], 0, 10, 5, 40),
                (&[2, 1, 1, 0], 0, 10, 6, 20),
                (&[3, 1, 0], 0, 10, 6, 10),
                (&[2, 1, 0], 1, 11, 8, 25),
                (&[0], 1, 11, 9, 5),
            ];
            for (stack, comm, tid, slice, samples) in rows {
                let numbers: Vec<u8> = stack.iter().flat_map(|number: &u32| number.to_ne_bytes()).collect();
                let stack = stacks.add(0, &numbers);
                bytes(&[10, tid, slice], &mut scratch);
                let attributes = attributes.add(0, &scratch);
                let value = SampleValue {
                    samples,
                    period: samples * 2,
                    squares: samples as f64 * 4.0,
                    ..SampleValue::default()
                };
                resolved.rows.push((RowKey { event: 0, stack, comm, attributes }, value));
            }
            resolved.rows.sort_by_key(|(key, _)| *key);
            resolved.stacks = stacks.into();
            Self { resolved, attributes, code, texts }
        }

        fn input(&self) -> TableInput<'_> {
            TableInput {
                rows: &self.resolved.rows,
                resolved: &self.resolved,
                attributes: &self.attributes,
                attribute_kinds: &KINDS,
                code: &self.code,
                words: &TestNames,
            }
        }

        fn ask(&self, query: Query) -> QueryAnswer {
            let total = SampleValue { samples: 100, period: 200, squares: 400.0, ..SampleValue::default() };
            let source = EventTotals { name: "clock".to_owned(), total, ..EventTotals::default() };
            answer(&self.input(), &[source], &query, self.texts.clone())
        }
    }

    fn by_symbol() -> Query {
        Query { event: Some(0), keys: vec![SortKey::Symbol], totals: true, ..Query::default() }
    }

    /// Returns the symbol, own and total cost of each row.
    fn rows(answer: &QueryAnswer) -> Vec<(String, u64, u64)> {
        let name = |row: &super::super::TableRow| {
            let super::super::RowCell::Symbol(_, id) = row.cells[0] else { panic!("{row:?}") };
            answer.profile.texts.get(id).to_owned()
        };
        let rows = answer.profile.events[0].rows.iter();
        rows.map(|row| (name(row), row.own.samples, row.total.samples)).collect()
    }

    fn row(symbol: &str, own: u64, total: u64) -> (String, u64, u64) {
        (symbol.to_owned(), own, total)
    }

    #[test]
    fn without_filter_all_samples_count() {
        let answer = World::new().ask(by_symbol());
        assert_eq!(
            rows(&answer),
            [row("main", 5, 100), row("work", 0, 95), row("leaf", 85, 85), row("sys", 10, 10)]
        );
        let times = answer.times.unwrap();
        assert_eq!((times.from, times.slice), (500, 100));
        assert_eq!(times.sums, [80, 60, 0, 50, 10]);
        let threads: Vec<_> = answer.threads.iter().map(|t| (t.pid, t.tid, t.value.samples)).collect();
        assert_eq!(threads, [(10, 10, 70), (10, 11, 30)]);
        let name = answer.process_names[&10];
        assert_eq!(answer.profile.texts.get(name), "zoo", "not that of a thread");
    }

    #[test]
    fn every_sort_key_has_a_cell() {
        let keys: Vec<SortKey> = SortKey::names().map(|name| name.parse().unwrap()).collect();
        let count = keys.len();
        let answer = World::new().ask(Query { keys, ..by_symbol() });
        assert!(answer.profile.events[0].rows.iter().all(|row| row.cells.len() == count));
    }

    #[test]
    fn rows_below_the_limit_are_omitted() {
        let answer = World::new().ask(Query { row_limit: 0.2, ..by_symbol() });
        assert_eq!(rows(&answer), [row("main", 5, 100), row("work", 0, 95), row("leaf", 85, 85)]);
    }

    #[test]
    fn self_samples_belong_to_the_innermost_inlined_function_on_request() {
        let mut world = World::new();
        // Two nested inlined functions at leaf's location; the code belongs to leaf.
        let mut code = LocationCalls::default();
        for (number, symbols) in
            [&["main"][..], &["work"], &["add", "sum", "leaf"], &["sys"]].iter().enumerate()
        {
            let calls: Vec<LocationCall> = (0..symbols.len())
                .map(|at| LocationCall {
                    inlined: at + 1 < symbols.len(),
                    line: 10 + at as u32,
                    file: Some(world.texts.add("leaf.c")),
                    ..LocationCall::new(
                        world.texts.add("app"),
                        world.texts.add(symbols[at]),
                        CpuMode::User,
                        number < 4,
                    )
                })
                .collect();
            code.push(&calls, Some(0));
        }
        world.code = code;
        let of = |innermost, keys: &[SortKey]| {
            let answer = world.ask(Query { innermost, keys: keys.to_vec(), ..by_symbol() });
            let mut rows = rows(&answer);
            rows.retain(|(name, ..)| ["add", "sum", "leaf"].contains(&name.as_str()));
            rows.sort();
            rows
        };
        for keys in [&[SortKey::Symbol][..], &[SortKey::Symbol, SortKey::SrcLine]] {
            let perfs = [row("add", 0, 85), row("leaf", 85, 85), row("sum", 0, 85)];
            assert_eq!(of(false, keys), perfs, "as perf has it");
            let own = [row("add", 85, 85), row("leaf", 0, 85), row("sum", 0, 85)];
            assert_eq!(of(true, keys), own);
        }
    }

    #[test]
    fn periods_by_mode_are_computed_on_request() {
        let world = World::new();
        let in_mode = |by_mode: bool| {
            let rows = world.ask(Query { by_mode, ..by_symbol() }).profile.events.remove(0).rows;
            rows.iter().map(|row| (row.by_mode.is_some(), row.in_mode(0), row.in_mode(1))).collect::<Vec<_>>()
        };
        // By descending total: main, work (no own samples), leaf, sys.
        let own = [(true, 0, 10), (false, 0, 0), (true, 0, 170), (true, 20, 0)];
        assert_eq!(in_mode(true), own);
        assert_eq!(in_mode(false), [(false, 0, 0); 4]);
    }

    #[test]
    fn filters_exclude_samples_and_report_how_many() {
        let world = World::new();
        let only = |filter: Filter| world.ask(Query { filter, ..by_symbol() });
        let comm = only(Filter { comms: Some(["dog".to_owned()].into()), ..Filter::default() });
        assert_eq!(rows(&comm), [row("main", 5, 30), row("leaf", 25, 25), row("work", 0, 25)]);
        let event = &comm.profile.events[0];
        assert_eq!((event.total.samples, event.filtered.samples), (100, 70));
        assert_eq!(comm.threads.len(), 2, "a thread can still be chosen");
        let tid = only(Filter { tids: Some([10].into()), ..Filter::default() });
        assert_eq!(rows(&tid)[0], row("main", 0, 70));
        let time = only(Filter { time: Some((600, 850)), ..Filter::default() });
        assert_eq!(rows(&time)[0], row("main", 0, 55));
        assert_eq!(time.times.unwrap().sums.len(), 5, "the strip shows what can be chosen");
        let kernel = only(Filter { hide_user: true, ..Filter::default() });
        assert_eq!(rows(&kernel), [row("sys", 10, 10), row("main", 0, 10), row("work", 0, 10)]);
        let under = only(Filter { symbol: Some("sys".to_owned()), ..Filter::default() });
        assert_eq!(rows(&under).len(), 3);
        let dso = only(Filter { dso: Some("app".to_owned()), ..Filter::default() });
        assert_eq!(rows(&dso), [row("main", 5, 5)]);
        assert!(rows(&only(Filter { dso: Some("nowhere".to_owned()), ..Filter::default() })).is_empty());
        let relative = world.ask(Query {
            relative: true,
            filter: Filter { hide_user: true, ..Filter::default() },
            ..by_symbol()
        });
        assert_eq!(relative.profile.events[0].total.samples, 10);
    }

    /// Returns the symbols of the tree with their samples, parents first.
    fn nodes(answer: &QueryAnswer) -> Vec<(&str, u64)> {
        let tree = answer.profile.events[0].tree.as_ref().unwrap();
        tree.nodes.iter().map(|node| (answer.profile.texts.get(node.symbol), node.total.samples)).collect()
    }

    #[test]
    fn tree_contains_samples_that_pass_name_filters() {
        let world = World::new();
        let ask = |only: RowSelection, totals: bool| {
            let filter = Filter { only, ..Filter::default() };
            world.ask(Query {
                totals,
                tree: Some(StackDirection::Caller),
                collapse: true,
                filter,
                ..by_symbol()
            })
        };
        let some = |name: &str| Some(vec![name.to_owned()]);
        for totals in [false, true] {
            let sys = ask(RowSelection { symbols: some("sys"), ..RowSelection::default() }, totals);
            assert_eq!(nodes(&sys), [("main", 10), ("work", 10), ("sys", 10)]);
            assert_eq!((rows(&sys).len(), sys.profile.events[0].filtered.samples), (1, 90));
            let part = ask(RowSelection { part: Some("ea".to_owned()), ..RowSelection::default() }, totals);
            assert_eq!(nodes(&part), [("main", 85), ("work", 85), ("leaf", 85)]);
            let libc = ask(RowSelection { dsos: some("libc"), ..RowSelection::default() }, totals);
            assert_eq!(nodes(&libc), nodes(&part), "samples taken there");
        }
        let app = ask(RowSelection { dsos: some("app"), ..RowSelection::default() }, true);
        assert_eq!(nodes(&app), [("main", 5)], "not those of what was called elsewhere");
        let work = |totals| ask(RowSelection { symbols: some("work"), ..RowSelection::default() }, totals);
        assert_eq!(nodes(&work(true))[..2], [("main", 95), ("work", 95)]);
        assert_eq!(work(true).profile.events[0].filtered.samples, 5);
        assert!(nodes(&work(false)).is_empty(), "nothing was taken in it");
    }

    #[test]
    fn rows_are_sorted_as_requested() {
        let world = World::new();
        let order = |ranks: &[RowRank]| {
            let answer = world.ask(Query { ranks: ranks.to_vec(), ..by_symbol() });
            rows(&answer).into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
        };
        assert_eq!(order(&[]), ["main", "work", "leaf", "sys"]);
        assert_eq!(order(&[RowRank::Own]), ["leaf", "sys", "main", "work"]);
        assert_eq!(order(&[RowRank::Samples]), ["leaf", "sys", "main", "work"]);
        assert_eq!(order(&[RowRank::Key(SortKey::Symbol), RowRank::Own]), ["leaf", "main", "sys", "work"]);
    }

    #[test]
    fn tree_can_be_rooted_at_a_function() {
        let world = World::new();
        let tree = |order: StackDirection| {
            let query = Query { tree: Some(order), root: Some("work".to_owned()), ..by_symbol() };
            let mut answer = world.ask(query);
            let tree = answer.profile.events[0].tree.take().unwrap();
            let name = |number: &u32| {
                let node = &tree.nodes[*number as usize];
                (answer.profile.texts.get(node.symbol).to_owned(), node.total.samples)
            };
            let roots: Vec<_> = tree.roots.iter().map(name).collect();
            let below: Vec<_> = tree.nodes[tree.roots[0] as usize].children.iter().map(name).collect();
            (roots, below)
        };
        let named =
            |list: &[(&str, u64)]| list.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect::<Vec<_>>();
        let (roots, callees) = tree(StackDirection::Caller);
        assert_eq!(roots, named(&[("work", 95)]));
        assert_eq!(callees, named(&[("leaf", 65), ("work", 20), ("sys", 10)]));
        let (roots, callers) = tree(StackDirection::Callee);
        assert_eq!(roots, named(&[("work", 95)]));
        assert_eq!(callers, named(&[("main", 95)]), "the outermost of a recursion counts");
        let query = Query { tree: Some(StackDirection::Caller), root: Some("x".to_owned()), ..by_symbol() };
        let none = world.ask(query);
        assert!(none.profile.events[0].tree.as_ref().unwrap().nodes.is_empty());
    }

    #[test]
    fn function_has_a_time_series() {
        let world = World::new();
        let like = TimeSums { from: 500, slice: 100, sums: vec![0; 5] };
        let of = |dso, symbol| history(&world.input(), &by_symbol(), (dso, symbol), &like, &world.texts);
        assert_eq!(of("libc", "leaf"), [80, 40, 0, 50, 0]);
        assert_eq!(of("libc", "main"), [0; 5]);
    }
}
