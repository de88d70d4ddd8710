//! Weighted stacks of each thread: the common source of all export formats.
//!
//! Receives the same input as tables and trees ([`TableInput`]), and a [`Query`]. Uses only the query's
//! filter and event. Returns rows with thread, time and stack. For formats with addresses and inlined calls,
//! a stack is a list of locations. For all other formats, a stack is the node at the end of a path through
//! functions.
//!
//! ```text
//!   row       event, thread, time, stack, value
//!   stack     locations, innermost first;  location -> calls, the inlined ones first
//!   paths     node -> function, and the node of its caller;  stack -> the node where it ends
//! ```

use rustc_hash::FxHashMap;

use super::code::{LocationCall, LocationCalls};
use super::event_totals::EventTotals;
use super::filter::{FilterState, by_name};
use super::query::Query;
use super::strings::StringTable;
use super::table_input::{ENDED_NAME, TableInput};
use super::wait_site::WaitSite;
use crate::session::intern::words;
use crate::session::live::ENDED;
use crate::session::samples::SampleAttribute;
use crate::session::thread_time::{ThreadState, WALL_CLOCK};
use crate::session::{CodeLocation, Module, SampleValue};
use pmc_perfdata::record::WaitPartner;
use pmc_text::text::split_parenthesis;

/// An event, with the sum of all samples and the sum of its rows.
#[derive(Debug, Clone, Default)]
pub struct StackEvent {
    /// The event's name; untrusted text.
    pub name: String,
    /// Sum of all samples, including those excluded by filters.
    pub total: SampleValue,
    /// Sum of the event's rows.
    pub kept: SampleValue,
}

impl StackEvent {
    /// Whether the event's periods are nanoseconds.
    pub fn is_clock(&self) -> bool {
        is_clock(&self.name)
    }

    /// Returns the unit of the periods: `nanoseconds`, another one that the name states, or `count`.
    pub fn unit(&self) -> &str {
        if self.is_clock() { "nanoseconds" } else { name_and_unit(&self.name).1.unwrap_or("count") }
    }

    /// Whether the event measured how long threads waited.
    pub fn has_waits(&self) -> bool {
        self.total.waited() > 0
    }
}

/// Prefix of the names of events whose periods are the times between two events.
pub const TIME_BETWEEN: &str = "time from ";

/// Whether the periods of the event with this name are nanoseconds.
pub fn is_clock(event: &str) -> bool {
    ["cpu-clock", "task-clock", WALL_CLOCK, "offcpu-", "nanoseconds"]
        .iter()
        .any(|clock| event.contains(clock))
        || event.starts_with(TIME_BETWEEN)
        || ThreadState::ALL.iter().any(|state| state.event_name() == event)
}

/// Splits the unit off an event's name: the values of `inuse_space (bytes)` are bytes. Only imported events
/// have one.
pub fn name_and_unit(event: &str) -> (&str, Option<&str>) {
    let split = split_parenthesis(event);
    match split.filter(|(_, unit)| !unit.is_empty() && unit.chars().all(char::is_alphabetic)) {
        Some((name, unit)) => (name, Some(unit)),
        None => (event, None),
    }
}

/// Returns what an event that is not a clock counts, in the plural: its unit, or `occurrences`.
pub fn counted_unit(event: &str) -> &str {
    name_and_unit(event).1.unwrap_or("occurrences")
}

/// A thread, under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StackThread {
    /// The process id, if rows contain it.
    pub pid: Option<i32>,
    /// The thread id, if rows contain it.
    pub tid: Option<i32>,
    /// The thread's name; untrusted text.
    pub comm: String,
    /// The process's name; untrusted text.
    pub process: Option<String>,
}

/// All samples that agree in the attributes that rows distinguish.
#[derive(Debug, Clone)]
pub struct StackRow {
    /// Index of the event.
    pub event: u32,
    /// Index of the thread.
    pub thread: u32,
    /// Index of the stack.
    pub stack: u32,
    /// Start of the row's time slice or bucket in nanoseconds of the recording's clock, if rows contain
    /// times. See [`StackProfile::slice`] and [`StackProfile::bucket`].
    pub time: Option<u64>,
    /// What the thread waited for; `None` if it ran, or if waiting was not recorded.
    pub wait: Option<WaitSite>,
    /// What ended the wait or ran instead of the thread, if rows contain it.
    pub partner: WaitPartner,
    /// The CPU, if rows contain it.
    pub cpu: Option<u32>,
    /// Index of the cgroup's path in [`StackProfile::cgroups`], if rows contain it.
    pub cgroup: Option<u32>,
    /// Index of a tracepoint's payload; see [`StackProfile::payload`].
    pub payload: Option<u64>,
    /// Sum of the samples.
    pub value: SampleValue,
}

impl StackRow {
    /// Returns the time of the row or, for a wait, the time at which it began.
    pub fn begin(&self) -> Option<u64> {
        self.time.map(|time| self.state().since(time, self.value.period))
    }

    /// Returns the state of the thread.
    pub fn state(&self) -> ThreadState {
        match self.wait {
            None => ThreadState::Running,
            Some(WaitSite::Cpu) => ThreadState::Runnable,
            Some(_) => ThreadState::Blocked,
        }
    }
}

/// Stacks with weights.
pub struct StackProfile<'a> {
    input: TableInput<'a>,
    /// The strings to which calls refer.
    pub texts: &'a StringTable,
    /// The modules, by the number in locations.
    pub modules: &'a [Module],
    /// The events of the recording, in order.
    pub events: Vec<StackEvent>,
    /// The threads of the rows.
    pub threads: Vec<StackThread>,
    /// The rows.
    pub rows: Vec<StackRow>,
    /// Length of the rows' time slices in nanoseconds.
    pub slice: Option<u64>,
    /// Length of the rows' time buckets in nanoseconds, if rows contain buckets instead of slices.
    pub bucket: Option<u64>,
    /// Paths of the rows' cgroups; untrusted text.
    pub cgroups: Vec<String>,
}

impl<'a> StackProfile<'a> {
    /// Selects the rows that pass a query's filter and belong to the query's event. If the query has no
    /// event, selects the rows of all events.
    pub fn new(
        input: &TableInput<'a>,
        modules: &'a [Module],
        events_totals: &[EventTotals],
        query: &Query,
        texts: &'a StringTable,
    ) -> Self {
        let at = |wanted: SampleAttribute| input.attribute_kinds.iter().position(|kind| *kind == wanted);
        let (payload, cgroup) = (at(SampleAttribute::Payload), at(SampleAttribute::Cgroup));
        let buckets = input.attribute_kinds.iter().enumerate().find_map(|(at, kind)| match kind {
            SampleAttribute::Bucket(buckets) => Some((at, *buckets)),
            _ => None,
        });
        let mut left_out = vec![SampleValue::default(); events_totals.len()];
        let named = by_name(input, &query.filter, query.totals, texts, &mut left_out);
        let mut filter_state = FilterState::new(input, &query.filter, texts);
        let event = |of: &EventTotals| StackEvent {
            name: of.name.clone(),
            total: of.total.clone(),
            ..<_>::default()
        };
        let mut profile = Self {
            input: *input,
            texts,
            modules,
            events: events_totals.iter().map(event).collect(),
            threads: Vec::new(),
            rows: Vec::new(),
            slice: filter_state.slice,
            bucket: buckets.map(|(_, buckets)| buckets.length),
            cgroups: Vec::new(),
        };
        let mut cgroups: FxHashMap<u64, u32> = FxHashMap::default();
        let mut numbers: FxHashMap<(Option<u64>, Option<u64>, u32), u32> = FxHashMap::default();
        for (key, value) in named.iter() {
            if query.event.is_some_and(|wanted| wanted != key.event as usize) {
                continue;
            }
            let verdict = filter_state.decide(key);
            if !(verdict.thread && verdict.time && verdict.other) {
                continue;
            }
            let (pid, tid) =
                (filter_state.word(key, filter_state.pid), filter_state.word(key, filter_state.tid));
            let thread = *numbers.entry((pid, tid, key.comm)).or_insert_with(|| {
                profile.threads.push(thread(input, pid, tid, key.comm));
                profile.threads.len() as u32 - 1
            });
            let payload = payload.and_then(|at| words(input.attributes.get(key.attributes).1).get(at));
            if let Some(event) = profile.events.get_mut(key.event as usize) {
                event.kept += value;
            }
            let cgroup = filter_state.word(key, cgroup).map(|id| {
                *cgroups.entry(id).or_insert_with(|| {
                    profile.cgroups.push(input.words.cgroup(id));
                    profile.cgroups.len() as u32 - 1
                })
            });
            let slice = filter_state.word(key, filter_state.time).zip(filter_state.slice);
            let bucket = buckets.and_then(|(at, buckets)| {
                filter_state.word(key, Some(at)).map(|number| buckets.start(number))
            });
            profile.rows.push(StackRow {
                event: key.event,
                thread,
                stack: key.stack,
                time: slice.map(|(at, slice)| at * slice).or(bucket),
                wait: filter_state
                    .state(key)
                    .filter(|state| state.is_off_cpu())
                    .and_then(|_| filter_state.word(key, filter_state.site))
                    .map(WaitSite::of_word),
                partner: filter_state
                    .word(key, filter_state.partner)
                    .map(WaitPartner::of_word)
                    .unwrap_or_default(),
                cpu: filter_state.word(key, filter_state.cpu).and_then(|cpu| cpu.try_into().ok()),
                cgroup,
                payload: payload.filter(|number| *number != u64::MAX),
                value: value.clone(),
            });
        }
        profile
    }

    /// Returns the locations of a stack, innermost first.
    pub fn stack(&self, number: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        self.input.resolved.stack(number)
    }

    /// Returns the calls at all locations.
    pub fn code(&self) -> &'a LocationCalls {
        self.input.code
    }

    /// Returns the location with this index.
    pub fn location(&self, number: u32) -> &CodeLocation {
        &self.input.resolved.locations[number as usize]
    }

    /// Returns the text for the partner of a row's wait: `ID:NAME` of a thread, or `[timer]`.
    pub fn partner(&self, row: &StackRow) -> Option<String> {
        (row.partner != WaitPartner::Unknown).then(|| self.input.partner_name(row.partner))
    }

    /// Returns a tracepoint's payload as text.
    pub fn payload(&self, number: u64) -> String {
        self.input.words.payload(number)
    }

    /// Returns the index of the default event, which is the first event with samples.
    pub fn first_event(&self) -> usize {
        self.events.iter().position(|event| event.kept.samples > 0).unwrap_or(0)
    }

    /// Returns the stacks as paths through functions.
    pub fn paths(&self) -> Paths {
        let mut paths = Paths::default();
        let mut numbers = PathLookup::default();
        // Remember the last stack with the node of each location, because neighbouring stacks share their
        // outer callers.
        let (mut last, mut now): (Vec<(u32, u32)>, Vec<u32>) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let stack = row.stack as usize;
            if paths.ends.get(stack).is_some_and(|end| *end != NONE) {
                continue;
            }
            now.clear();
            now.extend(self.stack(row.stack).rev());
            let same = last.iter().zip(&now).take_while(|((before, _), now)| before == *now).count();
            last.truncate(same);
            let mut node = last.last().map_or(NONE, |(_, node)| *node);
            for location in &now[same..] {
                for call in self.input.code.range(*location).rev() {
                    node = numbers.node(&mut paths, self.input.code, call, node);
                }
                last.push((*location, node));
            }
            if paths.ends.len() <= stack {
                paths.ends.resize(stack + 1, NONE);
            }
            paths.ends[stack] = node;
        }
        paths
    }
}

fn thread(input: &TableInput<'_>, pid: Option<u64>, tid: Option<u64>, comm: u32) -> StackThread {
    // Join all ended threads, regardless of their names.
    let number = |word: Option<u64>| word.filter(|word| *word != ENDED).map(|word| word as i32);
    StackThread {
        pid: number(pid),
        tid: number(tid),
        comm: if tid == Some(ENDED) { ENDED_NAME.to_owned() } else { input.words.comm(comm) },
        process: number(pid).and_then(|pid| input.words.task_name(pid)),
    }
}

/// Marks a function that has no caller.
const NONE: u32 = u32::MAX;

/// Functions, and the stacks' paths through them.
#[derive(Debug, Default)]
pub struct Paths {
    /// For each function, the index of one of its calls. A function has one entry for its inlined calls and
    /// another entry for its normal calls.
    pub functions: Vec<usize>,
    /// The nodes, by index; callers come before their callees.
    pub nodes: Vec<PathNode>,
    ends: Vec<u32>,
}

/// A function in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathNode {
    /// The caller's node.
    pub caller: Option<u32>,
    /// Index of the function.
    pub function: u32,
}

impl Paths {
    /// Returns the node where a stack ends, or `None` for a stack without frames.
    pub fn end(&self, stack: u32) -> Option<u32> {
        self.ends.get(stack as usize).copied().filter(|node| *node != NONE)
    }

    /// Returns the functions from a node out to the root.
    pub fn outward(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.outward_nodes(node).map(|node| self.nodes[node as usize].function)
    }

    /// Returns a node and its callers out to the root.
    pub fn outward_nodes(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node), |node| self.nodes[*node as usize].caller)
    }

    /// Returns a call of the function with this index.
    pub fn call<'c>(&self, function: u32, code: &'c LocationCalls) -> &'c LocationCall {
        &code.calls()[self.functions[function as usize]]
    }
}

/// Lookup tables for building paths.
#[derive(Default)]
struct PathLookup {
    /// Function numbers, by all properties that distinguish functions.
    functions: FxHashMap<LocationCall, u32>,
    /// Function numbers, by call.
    of_call: Vec<u32>,
    nodes: FxHashMap<(u32, u32), u32>,
}

impl PathLookup {
    fn node(&mut self, paths: &mut Paths, code: &LocationCalls, call: usize, caller: u32) -> u32 {
        if self.of_call.is_empty() {
            self.of_call.resize(code.calls().len(), NONE);
        }
        if self.of_call[call] == NONE {
            let function = LocationCall { file: None, line: 0, start: None, ..code.calls()[call] };
            self.of_call[call] = *self.functions.entry(function).or_insert_with(|| {
                paths.functions.push(call);
                paths.functions.len() as u32 - 1
            });
        }
        let function = self.of_call[call];
        *self.nodes.entry((caller, function)).or_insert_with(|| {
            paths.nodes.push(PathNode { caller: Some(caller).filter(|caller| *caller != NONE), function });
            paths.nodes.len() as u32 - 1
        })
    }
}
