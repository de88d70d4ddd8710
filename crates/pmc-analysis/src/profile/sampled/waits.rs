//! What threads wait for: classifies the stacks of waits by the names of their functions.
//!
//! Receives resolved stacks with names; stores the [`WaitSite`] of each waiting row in the row's attributes.
//! Removes the scheduler's frames, so that the innermost frame is the kernel function that waits.
//!
//! ```text
//!   schedule ◄ futex_do_wait ◄ … ◄ lll_lock_wait ◄ pthread_mutex_lock ◄ Cache::get ◄ main
//!   (removed)  kernel: a futex                     libc: a mutex
//! ```
//! The kernel function shows the mechanism. For a futex, the library function shows the purpose. A page fault
//! counts as a page fault, regardless of the file or device that it waits for.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::code::LocationCalls;
use super::code_owner::CodeOwners;
use super::idle::{IdleGroup, IdleWaits};
use super::strings::{StringId, StringTable};
use super::table_input::TableInput;
use super::wait_site::{NameFacts, WaitSite, site};
use crate::session::SampleValue;
use crate::session::intern::{Interner, bytes, words};
use crate::session::samples::{RowKey, SampleAttribute};
use crate::session::thread_time::{ThreadSpan, ThreadState};
use crate::session::{ResolvedStacks, StackStore};

/// The row attributes that describe waits.
pub const ATTRIBUTES: [SampleAttribute; 3] =
    [SampleAttribute::State, SampleAttribute::WaitSite, SampleAttribute::Tid];

/// How threads spent their time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadTimeSums {
    /// Time from the first to the last event, in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of threads.
    pub threads: usize,
    /// Number of idle threads, and how long they waited for work. `sites` does not include these waits,
    /// unless requested.
    pub idle: (usize, u64),
    /// The idle threads by group, longest wait first; empty if they are shown.
    pub idle_groups: Vec<IdleGroup>,
    /// Fraction of the threads' lifetime that running and waiting time account for. Near 1, unless records
    /// are missing or running time was sampled incompletely. `None` if the threads existed too briefly to
    /// tell.
    pub coverage: Option<f64>,
    /// Running time of all threads, if it is known exactly. The running time in `sites` comes from the
    /// samples.
    pub running_ns: Option<u64>,
    /// Whether these are the sums of one interval of a live view.
    pub is_live: bool,
    /// Sum of the samples at each site, largest first.
    pub sites: Vec<(WaitSite, SampleValue)>,
}

impl ThreadTimeSums {
    /// Creates the sums without sites.
    pub(crate) fn new<'a>(
        elapsed_ns: u64,
        idle: &IdleWaits,
        threads: impl Iterator<Item = &'a ThreadSpan>,
    ) -> Self {
        // With less time than this, in nanoseconds, there are too few clock samples.
        const LEAST: u64 = 100_000_000;
        let (idle, idle_groups) = (idle.sums(), idle.groups.clone());
        let mut sums = Self { elapsed_ns, idle, idle_groups, ..Self::default() };
        let (mut existed, mut waited, mut ran) = (0u64, 0u64, 0u64);
        let mut is_exact = true;
        for span in threads {
            sums.threads += 1;
            is_exact &= span.is_exact;
            existed = existed.saturating_add(span.end.saturating_sub(span.begin));
            waited = waited.saturating_add(span.waited);
            ran = ran.saturating_add(span.ran);
        }
        let measured = waited.saturating_add(ran);
        sums.coverage =
            (existed >= LEAST || is_exact && existed > 0).then(|| measured as f64 / existed as f64);
        sums.running_ns = (is_exact && sums.threads > 0).then_some(ran);
        sums
    }

    /// Creates the sums of one interval of a live view, without sites.
    pub(crate) fn live(elapsed_ns: u64, threads: usize, idle: &IdleWaits) -> Self {
        let (idle, idle_groups) = (idle.sums(), idle.groups.clone());
        Self { elapsed_ns, threads, idle, idle_groups, is_live: true, ..Self::default() }
    }

    /// Returns these sums with the sites.
    pub(super) fn with_sites(&self, sites: &[(WaitSite, SampleValue)]) -> Self {
        Self { sites: sites.to_vec(), ..self.clone() }
    }

    /// Returns the time that threads spent in a state, in nanoseconds.
    pub fn time_in(&self, state: ThreadState) -> u64 {
        match self.running_ns {
            Some(exact) if state == ThreadState::Running => exact,
            _ => {
                let in_state = self.sites.iter().filter(|(site, _)| site.state() == state);
                in_state.fold(0, |sum, (_, value)| sum.saturating_add(value.period))
            }
        }
    }
}

/// Sums of rows by wait site.
pub(super) struct SiteSums<'a> {
    attributes: &'a Interner,
    /// Index of the site in a row's list of attributes.
    at: Option<usize>,
    sums: FxHashMap<WaitSite, SampleValue>,
}

impl<'a> SiteSums<'a> {
    pub(super) fn new(input: &TableInput<'a>) -> Self {
        let at = input.attribute_kinds.iter().position(|kind| *kind == SampleAttribute::WaitSite);
        Self { attributes: input.attributes, at, sums: FxHashMap::default() }
    }

    pub(super) fn add(&mut self, key: &RowKey, value: &SampleValue) {
        let word = self.at.and_then(|at| words(self.attributes.get(key.attributes).1).get(at));
        *self.sums.entry(word.map_or(WaitSite::Unknown, WaitSite::of_word)).or_default() += value;
    }

    pub(super) fn largest_first(self) -> Vec<(WaitSite, SampleValue)> {
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_by_key(|(site, value)| (Reverse(value.period), *site));
        sums
    }
}

/// Marks the values of waiting rows as waits, according to the rows' states.
pub(crate) fn mark(resolved: &mut ResolvedStacks, attributes: &Interner, kinds: &[SampleAttribute]) {
    let Some(at) = kinds.iter().position(|kind| *kind == SampleAttribute::State) else { return };
    for (key, value) in &mut resolved.rows {
        let state = words(attributes.get(key.attributes).1).get(at).and_then(ThreadState::of_number);
        if let Some(state) = state.filter(|state| state.is_off_cpu()) {
            *value = std::mem::take(value).waiting(state);
        }
    }
}

/// Returns the number of threads that have rows.
pub(crate) fn threads<'a>(
    rows: impl Iterator<Item = &'a (RowKey, SampleValue)>,
    attributes: &Interner,
    kinds: &[SampleAttribute],
) -> usize {
    let Some(at) = kinds.iter().position(|kind| *kind == SampleAttribute::Tid) else { return 0 };
    let tid = |(key, _): &(RowKey, SampleValue)| words(attributes.get(key.attributes).1).get(at);
    rows.filter_map(tid).collect::<FxHashSet<u64>>().len()
}

/// Removes the scheduler's frames from the stacks of waiting rows. Returns the rows' attributes with their
/// wait sites; `None` if rows have no wait sites.
pub(crate) fn classify(
    resolved: &mut ResolvedStacks,
    attributes: &Interner,
    kinds: &[SampleAttribute],
    code: &LocationCalls,
    texts: &StringTable,
) -> Option<Interner> {
    let at = |wanted| kinds.iter().position(|attribute| *attribute == wanted);
    let (state_at, site_at) = (at(SampleAttribute::State)?, at(SampleAttribute::WaitSite)?);
    let mut known: FxHashMap<StringId, NameFacts> = FxHashMap::default();
    let facts = |id: StringId| *known.entry(id).or_insert_with(|| NameFacts::from_name(texts.get(id)));
    let function_at = at(SampleAttribute::WaitFunction);
    let owners = function_at.map(|_| CodeOwners::new(code, texts));
    let mut classifier = Classifier { code, facts, owners, stacks: FxHashMap::default(), cut: None };
    if let StackStore::Interned(lists) = &resolved.stacks {
        classifier.cut = Some(Interner::clone(lists));
    }
    let mut marked = Interner::default();
    let mut scratch = Vec::new();
    let mut rows = std::mem::take(&mut resolved.rows);
    for (key, _) in &mut rows {
        let mut list: Vec<u64> = words(attributes.get(key.attributes).1).iter().collect();
        let state = list.get(state_at).and_then(|word| ThreadState::of_number(*word));
        let (mut site, mut function) = (WaitSite::Running, None);
        if let Some(state) = state.filter(|state| state.is_off_cpu()) {
            (site, key.stack, function) = classifier.wait(resolved, key.stack);
            if state == ThreadState::Runnable {
                site = WaitSite::Cpu;
            }
        }
        if let Some(word) = list.get_mut(site_at) {
            *word = site.word();
        }
        if let Some(word) = function_at.and_then(|at| list.get_mut(at)) {
            *word = function.map_or(u64::MAX, u64::from);
        }
        bytes(&list, &mut scratch);
        key.attributes = marked.add(0, &scratch);
    }
    resolved.rows = rows;
    if let Some(stacks) = classifier.cut {
        resolved.stacks = stacks.into();
    }
    resolved.merge_equal_rows();
    Some(marked)
}

struct Classifier<'a, F> {
    code: &'a LocationCalls,
    facts: F,
    /// The owners of the functions, if the locations of waiting functions are wanted.
    owners: Option<CodeOwners<'a>>,
    /// The site of each stack, the number of the same stack without the scheduler's frames, and the location
    /// of the function that waits.
    stacks: FxHashMap<u32, (WaitSite, u32, Option<u32>)>,
    /// The recording's stacks, and the same stacks without the scheduler's frames; `None` if no callers were
    /// recorded.
    cut: Option<Interner>,
}

impl<F: FnMut(StringId) -> NameFacts> Classifier<'_, F> {
    fn wait(&mut self, resolved: &ResolvedStacks, number: u32) -> (WaitSite, u32, Option<u32>) {
        if let Some(known) = self.stacks.get(&number) {
            return *known;
        }
        let stack: Vec<u32> = resolved.stack(number).collect();
        let calls: Vec<StringId> = stack
            .iter()
            .flat_map(|location| self.code.range(*location))
            .map(|call| self.code.calls()[call].short)
            .collect();
        let facts: Vec<NameFacts> = calls.iter().map(|call| (self.facts)(*call)).collect();
        let site = site(&facts);
        let function = self.owners.as_mut().and_then(|owners| owners.waiting_location(&stack));
        let mut found = (site, number, function);
        // Remove the innermost locations whose calls all belong to the scheduler.
        let is_scheduler = |location: &&u32| {
            let mut range = self.code.range(**location);
            range.all(|call| (self.facts)(self.code.calls()[call].short).is_scheduler)
        };
        let scheduler = stack.iter().take_while(is_scheduler).count();
        if let Some(cut) = &mut self.cut
            && (1..stack.len()).contains(&scheduler)
        {
            let tag = cut.get(number).0;
            let list: Vec<u8> =
                stack[scheduler..].iter().flat_map(|location| location.to_ne_bytes()).collect();
            found.1 = cut.add(tag, &list);
        }
        self.stacks.insert(number, found);
        found
    }
}
