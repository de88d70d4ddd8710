//! Stacks with their weights, thread by thread: the one form that all exports are made of.
//!
//! Receives what tables and trees are made of ([`Input`]) and a [`Query`], of which the filter and the event
//! count; hands on rows that know their thread and their time, each with a stack: as locations, for formats
//! that know addresses and inlined calls, and as the end of a path through functions, for all others.
//!
//! ```text
//!   row       event, thread, time, stack, value
//!   stack     locations, innermost first;  location -> calls, the inlined ones first
//!   paths     node -> function, and the node of its caller;  stack -> the node where it ends
//! ```

use rustc_hash::FxHashMap;

use super::filter::{Sieve, by_name};
use super::query::{EventTotals, Query};
use super::table::{ENDED_NAME, Input};
use super::{Call, Code, StringTable, Value};
use crate::session::intern::words;
use crate::session::live::ENDED;
use crate::session::samples::SampleAttribute;
use crate::session::{Location, Module};

/// An event, and what of it the filters left.
#[derive(Debug, Clone, Default)]
pub struct StackEvent {
    /// Its name; foreign text.
    pub name: String,
    /// All its samples, those that filters took out included.
    pub total: Value,
    /// What its rows come to.
    pub kept: Value,
}

impl StackEvent {
    /// Whether its periods are nanoseconds.
    pub fn is_clock(&self) -> bool {
        is_clock(&self.name)
    }
}

/// Whether an event's periods are nanoseconds, by its name.
pub fn is_clock(event: &str) -> bool {
    event.contains("cpu-clock") || event.contains("task-clock")
}

/// A thread under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StackThread {
    /// Its process, where rows know it.
    pub pid: Option<i32>,
    /// Its number, where rows know it.
    pub tid: Option<i32>,
    /// Its name; foreign text.
    pub comm: String,
    /// Its process's name; foreign text.
    pub process: Option<String>,
}

/// Samples that have everything in common that rows tell apart.
#[derive(Debug, Clone)]
pub struct StackRow {
    /// Index of its event.
    pub event: u32,
    /// Index of its thread.
    pub thread: u32,
    /// Number of its stack.
    pub stack: u32,
    /// When: nanoseconds of the recording's clock, where rows know it; the start of a slice of
    /// [`StackProfile::slice`].
    pub time: Option<u64>,
    /// A tracepoint's payload: a number for [`StackProfile::payload`].
    pub payload: Option<u64>,
    /// What they come to.
    pub value: Value,
}

/// Stacks with weights.
pub struct StackProfile<'a> {
    input: Input<'a>,
    /// The words of calls.
    pub texts: &'a StringTable,
    /// What was mapped, by the number that locations name.
    pub modules: &'a [Module],
    /// The events of the recording, in its order.
    pub events: Vec<StackEvent>,
    /// The threads that rows name.
    pub threads: Vec<StackThread>,
    /// The rows.
    pub rows: Vec<StackRow>,
    /// Length of the slices of time that rows tell apart, in nanoseconds.
    pub slice: Option<u64>,
}

impl<'a> StackProfile<'a> {
    /// The rows that a query's filter leaves, of its event or of all.
    pub fn new(
        input: &Input<'a>,
        modules: &'a [Module],
        events_totals: &[EventTotals],
        query: &Query,
        texts: &'a StringTable,
    ) -> Self {
        let at = |wanted: SampleAttribute| input.attribute_kinds.iter().position(|kind| *kind == wanted);
        let payload = at(SampleAttribute::Payload);
        let mut left_out = vec![Value::default(); events_totals.len()];
        let named = by_name(input, &query.filter, query.totals, texts, &mut left_out);
        let mut sieve = Sieve::new(input, &query.filter, texts);
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
            slice: sieve.slice,
        };
        let mut numbers: FxHashMap<(Option<u64>, Option<u64>, u32), u32> = FxHashMap::default();
        for (key, value) in named.iter() {
            if query.event.is_some_and(|wanted| wanted != key.event as usize) {
                continue;
            }
            let verdict = sieve.look(key);
            if !(verdict.thread && verdict.time && verdict.other) {
                continue;
            }
            let (pid, tid) = (sieve.word(key, sieve.pid), sieve.word(key, sieve.tid));
            let thread = *numbers.entry((pid, tid, key.comm)).or_insert_with(|| {
                profile.threads.push(thread(input, pid, tid, key.comm));
                profile.threads.len() as u32 - 1
            });
            let payload = payload.and_then(|at| words(input.attributes.get(key.attributes).1).get(at));
            if let Some(event) = profile.events.get_mut(key.event as usize) {
                event.kept += value;
            }
            profile.rows.push(StackRow {
                event: key.event,
                thread,
                stack: key.stack,
                time: sieve.word(key, sieve.time).zip(sieve.slice).map(|(at, slice)| at * slice),
                payload: payload.filter(|number| *number != u64::MAX),
                value: value.clone(),
            });
        }
        profile
    }

    /// The locations of a stack, innermost first.
    pub fn stack(&self, number: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        self.input.resolved.stack(number)
    }

    /// The calls at locations.
    pub fn code(&self) -> &'a Code {
        self.input.code
    }

    /// A location by its number.
    pub fn location(&self, number: u32) -> &Location {
        &self.input.resolved.locations[number as usize]
    }

    /// The words of a tracepoint's payload.
    pub fn payload(&self, number: u64) -> String {
        self.input.words.payload(number)
    }

    /// The event that is meant by default: the first with samples.
    pub fn first_event(&self) -> usize {
        self.events.iter().position(|event| event.kept.samples > 0).unwrap_or(0)
    }

    /// The stacks as paths through functions.
    pub fn paths(&self) -> Paths {
        let mut paths = Paths::default();
        let mut numbers = Numbers::default();
        // Neighbours share their outer callers: the last stack with, behind each location, its node.
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

fn thread(input: &Input<'_>, pid: Option<u64>, tid: Option<u64>, comm: u32) -> StackThread {
    // Those that have ended stand together, whatever their names were.
    let number = |word: Option<u64>| word.filter(|word| *word != ENDED).map(|word| word as i32);
    StackThread {
        pid: number(pid),
        tid: number(tid),
        comm: if tid == Some(ENDED) { ENDED_NAME.to_owned() } else { input.words.comm(comm) },
        process: number(pid).and_then(|pid| input.words.task_name(pid)),
    }
}

/// Stands for the caller of the outermost functions.
const NONE: u32 = u32::MAX;

/// Functions, and the paths that stacks take through them.
#[derive(Debug, Default)]
pub struct Paths {
    /// The functions by number: one of the calls that each is. An inlined function is another one than the
    /// same where it is called.
    pub functions: Vec<usize>,
    /// By number; callers come before what they call.
    pub nodes: Vec<PathNode>,
    ends: Vec<u32>,
}

/// A function in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathNode {
    /// The node of its caller.
    pub caller: Option<u32>,
    /// Number of the function.
    pub function: u32,
}

impl Paths {
    /// The node where a stack ends; `None` for a stack without frames.
    pub fn end(&self, stack: u32) -> Option<u32> {
        self.ends.get(stack as usize).copied().filter(|node| *node != NONE)
    }

    /// The functions from a node out to the root.
    pub fn outward(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let nodes = std::iter::successors(Some(node), |node| self.nodes[*node as usize].caller);
        nodes.map(|node| self.nodes[node as usize].function)
    }

    /// A call that is the function of this number.
    pub fn call<'c>(&self, function: u32, code: &'c Code) -> &'c Call {
        &code.calls()[self.functions[function as usize]]
    }
}

/// What is known while paths are laid out.
#[derive(Default)]
struct Numbers {
    /// By everything that tells functions apart.
    functions: FxHashMap<Call, u32>,
    /// By call.
    of_call: Vec<u32>,
    nodes: FxHashMap<(u32, u32), u32>,
}

impl Numbers {
    fn node(&mut self, paths: &mut Paths, code: &Code, call: usize, caller: u32) -> u32 {
        if self.of_call.is_empty() {
            self.of_call.resize(code.calls().len(), NONE);
        }
        if self.of_call[call] == NONE {
            let function = Call { file: None, line: 0, start: None, ..code.calls()[call] };
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
