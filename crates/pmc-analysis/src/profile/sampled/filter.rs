//! Applies a query's filter to rows.
//!
//! Receives rows of distinct stacks and a [`Filter`]. Checks each row's thread, time, CPU and stack
//! ([`FilterState`]), and the names of modules and functions ([`by_name`]). `query` decides what happens to
//! the rows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::code::LocationCall;
use super::strings::{StringId, StringTable};
use super::table::RowSelection;
use super::table_input::TableInput;
use crate::session::SampleValue;
use crate::session::intern::words;
use crate::session::samples::{ANY_COMM, RowKey, SampleAttribute};
use crate::session::thread_time::ThreadState;
use pmc_sys::abi::CpuMode;

/// Selects the samples to include. If the rows do not distinguish threads, CPUs or times, a filter on that
/// attribute excludes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only include threads with these names.
    pub comms: Option<BTreeSet<String>>,
    /// Only include these processes.
    pub pids: Option<BTreeSet<i32>>,
    /// Only include these threads.
    pub tids: Option<BTreeSet<i32>>,
    /// Only include these CPUs.
    pub cpus: Option<BTreeSet<u32>>,
    /// Only include time slices that overlap this span, in nanoseconds of the recording's clock (both ends
    /// inclusive).
    pub time: Option<(u64, u64)>,
    /// Only include samples in the module with this short name.
    pub dso: Option<String>,
    /// Only include samples in this function or in its callees.
    pub symbol: Option<String>,
    /// Only include samples of threads in these states.
    pub states: Option<&'static [ThreadState]>,
    /// Exclude samples in user space.
    pub hide_user: bool,
    /// Exclude samples in the kernel.
    pub hide_kernel: bool,
    /// Selects the rows that the table keeps. The tree keeps the samples in the selected modules and
    /// functions. If rows have totals, the tree also keeps samples in callees of the selected functions.
    pub only: RowSelection,
}

impl Filter {
    /// Whether the filter excludes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the rows whose samples pass the name filter. Adds the sums of the other rows to `left_out`.
pub(super) fn by_name<'a>(
    input: &TableInput<'a>,
    filter: &Filter,
    with_totals: bool,
    texts: &StringTable,
    left_out: &mut [SampleValue],
) -> Cow<'a, [(RowKey, SampleValue)]> {
    let (only, code) = (&filter.only, input.code);
    if only.is_empty() {
        return input.rows.into();
    }
    let is_kept = |stack: u32| {
        let Some(leaf) = input.resolved.stack(stack).next() else { return false };
        let own = &code.calls()[code.own(leaf)];
        let mut calls = input.resolved.stack(stack).flat_map(|location| code.range(location));
        only.has_module(own, texts)
            && match with_totals {
                true => calls.any(|call| only.has_function(&code.calls()[call], texts)),
                false => only.has_function(own, texts),
            }
    };
    let (mut kept, mut last) = (Vec::new(), None);
    for row @ (key, value) in input.rows {
        let verdict = match last {
            Some((stack, verdict)) if stack == key.stack => verdict,
            _ => is_kept(key.stack),
        };
        last = Some((key.stack, verdict));
        if verdict {
            kept.push(row.clone());
        } else if let Some(sum) = left_out.get_mut(key.event as usize) {
            *sum += value;
        }
    }
    kept.into()
}

/// Whether a row passes each part of the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterVerdict {
    pub(super) thread: bool,
    pub(super) time: bool,
    pub(super) other: bool,
}

/// The state of a filter while it is applied. Caches results by number.
pub(super) struct FilterState<'a> {
    input: &'a TableInput<'a>,
    filter: &'a Filter,
    /// Index of each attribute in a row's list of attributes.
    pub(super) pid: Option<usize>,
    pub(super) tid: Option<usize>,
    pub(super) cpu: Option<usize>,
    pub(super) state: Option<usize>,
    pub(super) site: Option<usize>,
    pub(super) partner: Option<usize>,
    pub(super) time: Option<usize>,
    /// Length of a time slice in nanoseconds.
    pub(super) slice: Option<u64>,
    dso: Option<Option<StringId>>,
    symbol: Option<Option<FunctionName>>,
    of_comm: FxHashMap<u32, bool>,
    of_stack: Option<(u32, bool)>,
}

/// The name of the selected function.
#[derive(Debug, Clone, Copy)]
enum FunctionName {
    /// As some function is shown.
    Shown(StringId),
    /// Without the parameters of several functions.
    Short(StringId),
}

impl FunctionName {
    fn is_of(self, call: &LocationCall) -> bool {
        match self {
            Self::Shown(name) => call.symbol == name,
            Self::Short(name) => call.short == name,
        }
    }
}

impl<'a> FilterState<'a> {
    pub(super) fn new(input: &'a TableInput<'a>, filter: &'a Filter, texts: &StringTable) -> Self {
        let at = |wanted: fn(&SampleAttribute) -> bool| input.attribute_kinds.iter().position(wanted);
        let time = at(|attribute| matches!(attribute, SampleAttribute::Time(_)));
        let slice = time.and_then(|at| match input.attribute_kinds[at] {
            SampleAttribute::Time(slice) => Some(slice.max(1)),
            _ => None,
        });
        Self {
            input,
            filter,
            pid: at(|attribute| *attribute == SampleAttribute::Pid),
            tid: at(|attribute| *attribute == SampleAttribute::Tid),
            cpu: at(|attribute| *attribute == SampleAttribute::Cpu),
            state: at(|attribute| *attribute == SampleAttribute::State),
            site: at(|attribute| *attribute == SampleAttribute::WaitSite),
            partner: at(|attribute| *attribute == SampleAttribute::WaitPartner),
            time,
            slice,
            dso: filter.dso.as_deref().map(|name| texts.find(name)),
            symbol: filter.symbol.as_deref().map(|name| {
                let id = texts.find(name)?;
                let is_shown = input.code.calls().iter().any(|call| call.symbol == id);
                Some(if is_shown { FunctionName::Shown(id) } else { FunctionName::Short(id) })
            }),
            of_comm: FxHashMap::default(),
            of_stack: None,
        }
    }

    /// Returns an attribute of a row.
    pub(super) fn word(&self, key: &RowKey, at: Option<usize>) -> Option<u64> {
        // Rows without attributes have no list.
        let at = at?;
        words(self.input.attributes.get(key.attributes).1).get(at)
    }

    pub(super) fn decide(&mut self, key: &RowKey) -> FilterVerdict {
        let filter = self.filter;
        let numbered = |set: &Option<BTreeSet<i32>>, word: Option<u64>| {
            set.as_ref().is_none_or(|set| word.is_none_or(|word| set.contains(&(word as i32))))
        };
        let thread = numbered(&filter.pids, self.word(key, self.pid))
            && numbered(&filter.tids, self.word(key, self.tid))
            && self.comm(key.comm);
        let time = filter.time.is_none_or(|(from, to)| match (self.word(key, self.time), self.slice) {
            (Some(at), Some(slice)) => (from / slice..=to / slice).contains(&at),
            _ => true,
        });
        let cpu = filter.cpus.as_ref().is_none_or(|cpus| {
            self.word(key, self.cpu).is_none_or(|cpu| u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(&cpu)))
        });
        let state =
            filter.states.is_none_or(|states| self.state(key).is_none_or(|state| states.contains(&state)));
        FilterVerdict { thread, time, other: cpu && state && self.stack(key.stack) }
    }

    /// Returns the state of a row's thread, if rows distinguish states.
    pub(super) fn state(&self, key: &RowKey) -> Option<ThreadState> {
        self.word(key, self.state).and_then(ThreadState::of_number)
    }

    fn comm(&mut self, comm: u32) -> bool {
        let Some(wanted) = &self.filter.comms else { return true };
        if comm == ANY_COMM {
            return true;
        }
        let words = self.input.words;
        *self.of_comm.entry(comm).or_insert_with(|| wanted.contains(&words.comm(comm)))
    }

    /// Checks a stack. Caches the last result, because neighbouring rows often have the same stack.
    fn stack(&mut self, stack: u32) -> bool {
        let filter = self.filter;
        if self.dso.is_none() && self.symbol.is_none() && !filter.hide_user && !filter.hide_kernel {
            return true;
        }
        match self.of_stack {
            Some((last, verdict)) if last == stack => verdict,
            _ => {
                let verdict = self.admits(stack);
                self.of_stack = Some((stack, verdict));
                verdict
            }
        }
    }

    fn admits(&self, stack: u32) -> bool {
        let code = self.input.code;
        let Some(leaf) = self.input.resolved.stack(stack).next() else { return false };
        let own = &code.calls()[code.own(leaf)];
        let user = matches!(own.level, CpuMode::User | CpuMode::GuestUser);
        let kernel = matches!(own.level, CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor);
        if (user && self.filter.hide_user) || (kernel && self.filter.hide_kernel) {
            return false;
        }
        if self.dso.is_some_and(|dso| dso != Some(own.dso)) {
            return false;
        }
        self.symbol.is_none_or(|symbol| {
            let mut calls = self.input.resolved.stack(stack).flat_map(|location| code.range(location));
            symbol.is_some_and(|symbol| calls.any(|call| symbol.is_of(&code.calls()[call])))
        })
    }
}
