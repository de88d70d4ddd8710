//! What is to be seen at a moment: rows and names are brought together, idling is set apart, and the query answered.
//!
//! Receives [`Live`](crate::session::live::Live)'s looks and the names known by then; hands on answers and the facts of
//! the header. Decides when samples fade. Waits for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Followed, Known};
use super::plan::{Memory, Plan, Shown};
use crate::abi::CpuMode;
use crate::host::Host;
use crate::host::cpu::Topology;
use crate::profile::sampled::query::{self, Source};
use crate::profile::sampled::table::{Input, Words};
use crate::profile::sampled::{Answer, Code, Filter, Query, StringId, StringTable, Value};
use crate::session::Location;
use crate::session::live::LiveState;
use crate::session::live::{Counts, Look};
use crate::session::samples::Key;
use crate::sys::clock::{monotonic_ns, process_cpu_ns};
use crate::sys::memory;
use crate::sys::process::exists;
use crate::tui::FunctionRef;
use crate::view::top::Head;

/// Where the kernel waits for something to do, by perf's list.
const IDLE: &[&str] = &[
    "acpi_idle_do_entry",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle",
    "cpu_startup_entry",
    "default_idle",
    "default_idle_call",
    "enter_idle",
    "exit_idle",
    "idle_cpu",
    "intel_idle",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "mwait_idle",
    "mwait_idle_with_hints",
    "mwait_idle_with_hints.constprop.0",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// Of what passes from one table to the next.
pub(super) const KEEP: f64 = 7.0 / 8.0;

/// Freed memory is returned to the kernel so often: what is taken again must be cleared again.
const GIVE_BACK: Duration = Duration::from_secs(8);

/// Whoever looks.
pub(super) struct Painter {
    pub(super) shared: Arc<LiveState>,
    pub(super) known: Known,
    pub(super) plan: Arc<Plan>,
    sockets: FxHashMap<u32, i64>,
    start: u64,
    before: Before,
    given_back: Instant,
    host: Host,
}

/// How things stood when the head was last made.
#[derive(Clone, Copy)]
struct Before {
    at: u64,
    cpu: u64,
    counts: Counts,
}

/// A look with the names that were known then: what queries are answered from, also again and again.
pub(super) struct Picture {
    /// Empty once it was let go.
    look: Look,
    is_let_go: bool,
    code: Code,
    followed: Followed,
    texts: StringTable,
    comms: Vec<String>,
    cgroups: FxHashMap<u64, Vec<u8>>,
    sources: Vec<Source>,
    /// Periods of each event: in the kernel, in programs, idle.
    splits: Vec<(u64, u64, u64)>,
}

impl Painter {
    pub(super) fn new(shared: Arc<LiveState>, known: Known, plan: Arc<Plan>) -> Self {
        let host = Host::live();
        let sockets = match plan.shown.keys.contains(&crate::profile::sampled::SortKey::Socket) {
            true => sockets(&host),
            false => FxHashMap::default(),
        };
        let now = monotonic_ns();
        let before = Before { at: now, cpu: process_cpu_ns(), counts: Counts::default() };
        Self { shared, known, plan, sockets, start: now, before, given_back: Instant::now(), host }
    }

    /// What the options ask.
    pub(super) fn query(&self) -> Query {
        let Shown { keys, only, comms, has_totals, tree, hide_kernel, hide_user, layout, .. } =
            &self.plan.shown;
        Query {
            keys: keys.clone(),
            totals: *has_totals,
            tree: *tree,
            limit: layout.branch_limit / 100.0,
            filter: Filter {
                comms: comms.as_ref().map(|names| names.iter().cloned().collect()),
                hide_user: *hide_user,
                hide_kernel: *hide_kernel,
                only: only.clone(),
                ..Filter::default()
            },
            ..Query::default()
        }
    }

    /// Looks. What the last picture has found out need not be found out again.
    pub(super) fn picture(&self, last: Option<Picture>) -> Picture {
        let (mut code, mut followed) = match last {
            Some(last) => (last.code, last.followed),
            None => Default::default(),
        };
        let (mut look, comms, cgroups) = {
            let live = self.shared.live();
            let comms = live.history().comms().map(|comm| String::from_utf8_lossy(comm).into_owned());
            (live.look(), comms.collect(), live.cgroups().clone())
        };
        let texts = {
            let mut named = self.known.named();
            named.code(&look.resolved.locations, look.generation, &mut code, &mut followed);
            named.texts.clone()
        };
        let idle: FxHashSet<StringId> = IDLE.iter().filter_map(|name| texts.find(name)).collect();
        let mut sources: Vec<Source> = self
            .shared
            .events
            .iter()
            .map(|event| Source { name: event.name.clone(), leader: event.leader, ..Source::default() })
            .collect();
        let mut splits = vec![(0, 0, 0); sources.len()];
        let mut rows = std::mem::take(&mut look.resolved.rows);
        rows.retain(|(key, value)| {
            let event = key.event as usize;
            let Some(leaf) = look.resolved.stack(key.stack).next() else { return false };
            let call = &code.calls()[code.own(leaf)];
            let in_kernel = call.level == CpuMode::Kernel;
            let is_idle = in_kernel && idle.contains(&call.symbol);
            let split = &mut splits[event];
            let part = match (is_idle, in_kernel) {
                (true, _) => &mut split.2,
                (_, true) => &mut split.0,
                _ => &mut split.1,
            };
            *part += value.period;
            let is_shown = !is_idle || self.plan.shown.show_idle;
            if is_shown {
                sources[event].total += *value;
            }
            is_shown
        });
        look.resolved.rows = rows;
        Picture { look, is_let_go: false, code, followed, texts, comms, cgroups, sources, splits }
    }

    /// Answers from a picture.
    pub(super) fn answer(&self, picture: &Picture, query: &Query) -> Answer {
        let words = Spoken { picture, sockets: &self.sockets };
        let input = Input {
            rows: &picture.look.resolved.rows,
            resolved: &picture.look.resolved,
            attributes: &picture.look.attributes,
            attribute_kinds: &self.plan.wanted.attributes,
            code: &picture.code,
            words: &words,
        };
        query::answer(&input, &picture.sources, query, picture.texts.clone())
    }

    /// The facts of the header, and the beginning of the next interval. `event`: which one the split is of.
    pub(super) fn head(&mut self, picture: &Picture, event: usize) -> Head {
        let counts = self.shared.live().counts();
        let now = Before { at: monotonic_ns(), cpu: process_cpu_ns(), counts };
        let seconds = (now.at - self.before.at).max(1) as f64 / 1e9;
        let split = picture.splits.get(event).map(|&(kernel, user, idle)| {
            let all = (kernel + user + idle).max(1) as f64;
            (kernel as f64 / all, user as f64 / all, idle as f64 / all)
        });
        let mut notes = Vec::new();
        if self.shared.is_yielding() {
            notes.push("somebody else has reserved the hardware counters: not counted".to_owned());
        }
        if counts.thinned > 0 {
            notes.push(
                "there are too many different stacks: some rare ones stand for others (the ± is larger)"
                    .to_owned(),
            );
        }
        let head = Head {
            since_ns: now.at - self.start,
            rate: (counts.samples - self.before.counts.samples) as f64 / seconds,
            events: self.shared.events.iter().map(|event| event.name.clone()).collect(),
            lost: counts.lost,
            samples: counts.samples,
            throttled: counts.throttled,
            unknown: counts.unknown,
            split,
            own_cpu: (now.cpu - self.before.cpu) as f64 / 1e9 / seconds,
            own_memory: self.own_memory(),
            notes,
        };
        self.before = now;
        head
    }

    fn own_memory(&self) -> u64 {
        let statm = self.host.text("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        pages * crate::sys::page_size() as u64
    }

    /// An interval is over: what was added up fades, stays or goes, and what nobody needs any more is forgotten.
    pub(super) fn turn(&mut self, memory: Memory) {
        let before = self.shared.settled();
        let mut live = self.shared.live();
        match memory {
            Memory::Fading => live.fade(KEEP),
            Memory::Lasting => {}
            Memory::None => live.zero(),
        }
        let has_forgotten = live.tidy(before, exists);
        drop(live);
        if has_forgotten && self.given_back.elapsed() > GIVE_BACK {
            self.given_back = Instant::now();
            memory::give_back();
        }
    }
}

impl Picture {
    /// Gives back what is shared with the sampling thread, which must copy it otherwise, all of it, as soon as there is
    /// something new. What was found out stays for the next picture.
    pub(super) fn let_go(&mut self) {
        self.look = Look::default();
        self.is_let_go = true;
    }

    /// Whether it was let go.
    pub(super) fn is_let_go(&self) -> bool {
        self.is_let_go
    }

    /// What each function cost itself, by module and name.
    pub(super) fn own(&self, event: usize) -> FxHashMap<(StringId, StringId), u64> {
        let mut by_leaf = vec![0u64; self.code.len()];
        for (key, value) in self.look.resolved.rows.iter().filter(|(key, _)| key.event as usize == event) {
            if let Some(leaf) = self.look.resolved.stack(key.stack).next() {
                by_leaf[leaf as usize] += value.period;
            }
        }
        let mut sums = FxHashMap::default();
        for (leaf, period) in (0..).zip(by_leaf).filter(|(_, period)| *period > 0) {
            let call = &self.code.calls()[self.code.own(leaf)];
            *sums.entry((call.dso, call.symbol)).or_default() += period;
        }
        sums
    }

    /// The samples taken in a function: where, of which event, what they cost.
    pub(super) fn samples_of(&self, function: &FunctionRef) -> Vec<(Location, usize, Value)> {
        let (Some(dso), Some(symbol)) = (self.text(&function.dso), self.text(&function.symbol)) else {
            return Vec::new();
        };
        let resolved = &self.look.resolved;
        let rows = resolved.rows.iter().filter_map(|(key, value)| {
            let leaf = resolved.stack(key.stack).next()?;
            let call = &self.code.calls()[self.code.own(leaf)];
            (call.dso == dso && call.symbol == symbol)
                .then(|| (resolved.locations[leaf as usize], key.event as usize, *value))
        });
        rows.collect()
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[(Key, Value)] {
        &self.look.resolved.rows
    }

    /// The places in the code that rows may name.
    pub(super) fn locations(&self) -> &[Location] {
        &self.look.resolved.locations
    }

    /// The locations of a row's stack, innermost first.
    pub(super) fn stack(&self, number: u32) -> impl Iterator<Item = Location> + '_ {
        self.look.resolved.stack(number).map(|number| self.look.resolved.locations[number as usize])
    }

    /// A row's attributes.
    pub(super) fn attributes(&self, number: u32) -> &[u8] {
        if self.look.attributes.is_empty() { &[] } else { self.look.attributes.get(number).1 }
    }

    /// A thread's name by a row's number for it.
    pub(super) fn comm(&self, comm: u32) -> String {
        match self.comms.get(comm as usize) {
            Some(name) => name.clone(),
            // perf's name for those without; the sign of the number was cut off to make room for the mark.
            None => format!(":{}", (comm << 1) as i32 >> 1),
        }
    }

    /// All samples of each event.
    pub(super) fn totals(&self) -> Vec<Value> {
        self.sources.iter().map(|source| source.total).collect()
    }

    /// The number of a word.
    pub(super) fn text(&self, text: &str) -> Option<StringId> {
        self.texts.find(text)
    }
}

fn sockets(host: &Host) -> FxHashMap<u32, i64> {
    Topology::read(host).iter().map(|(cpu, seat)| (cpu, i64::from(seat.socket))).collect()
}

/// Words for the numbers in rows.
struct Spoken<'a> {
    picture: &'a Picture,
    sockets: &'a FxHashMap<u32, i64>,
}

impl Words for Spoken<'_> {
    fn comm(&self, comm: u32) -> String {
        self.picture.comm(comm)
    }

    fn cgroup(&self, id: u64) -> String {
        match self.picture.cgroups.get(&id) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => id.to_string(),
        }
    }

    fn socket(&self, cpu: u64) -> Option<i64> {
        self.sockets.get(&u32::try_from(cpu).ok()?).copied()
    }

    fn payload(&self, _number: u64) -> String {
        String::new()
    }
}
