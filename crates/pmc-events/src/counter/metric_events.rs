//! Groups the events of metrics so that they fit on this machine's counters.
//!
//! Takes the event texts of each metric, resolves them with the [`EventParser`], determines which counters
//! each event needs, and lets [`schedule`] group them. Returns the groups to open, and the events that this
//! machine does not support.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::facts::MachineFacts;
use super::fit;
use super::schedule::{self, CounterNeed, FIRST_FIXED};
use crate::event::{EventGroup, EventParser, EventSource, EventSpec, ParseError, PmuCounters};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic;
use pmc_sys::host::Host;

/// The events of a metric, as texts for `-e`.
#[derive(Debug, Clone, Default)]
pub struct MetricEventTexts<'a> {
    /// Events for the metric's value, all of which are required.
    pub value: Vec<&'a str>,
    /// Events for the metric's threshold. Events that this machine does not support are omitted.
    pub threshold: Vec<&'a str>,
    /// Events to count only if they fit into an existing group. They never get a separate group.
    pub optional: Vec<&'a str>,
}

/// How to group events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricEventGrouping {
    /// Schedule a metric's events together if possible.
    pub grouped: bool,
    /// Count events shared by several metrics once.
    pub merged: bool,
}

impl Default for MetricEventGrouping {
    fn default() -> Self {
        Self { grouped: true, merged: true }
    }
}

/// The events counted for metrics.
#[derive(Debug, Default)]
pub struct MetricEvents {
    /// The groups. Groups of several events are weak.
    pub groups: Vec<EventGroup>,
    /// For each metric, in order: the first event that cannot be counted, and the reason.
    pub lacking: Vec<Option<(String, Box<ParseError>)>>,
}

/// Finds the events of metrics and groups them. `is_counted` returns `true` for events that are already
/// counted.
///
/// # Errors
/// Missing events are not errors; the result lists them.
pub fn find(
    metrics: &[MetricEventTexts<'_>],
    grouping: MetricEventGrouping,
    is_counted: impl Fn(&str) -> bool,
    parser: &mut EventParser<'_>,
    host: &Host,
) -> MetricEvents {
    if metrics.is_empty() {
        // Without metrics, no files need to be read.
        return MetricEvents::default();
    }
    let mut known = MetricEventSpecs { texts: Vec::new(), specs: Vec::new(), by_text: HashMap::new() };
    let mut found = MetricEvents::default();
    let mut sets: [Vec<Vec<usize>>; 3] = Default::default();
    for metric in metrics {
        let mut lacks = None;
        let mut indices = |texts: &[&str], known: &mut MetricEventSpecs, lacks: &mut Option<_>| {
            let mut set = Vec::new();
            for text in texts.iter().filter(|text| !is_counted(text)) {
                match known.index(text, parser) {
                    // A metric may refer to the same event twice.
                    Ok(event) if set.contains(&event) => {}
                    Ok(event) => set.push(event),
                    Err(error) => *lacks = lacks.take().or(Some(((*text).to_owned(), error))),
                }
            }
            set
        };
        let value = indices(&metric.value, &mut known, &mut lacks);
        let is_there = lacks.is_none();
        found.lacking.push(lacks);
        if is_there {
            sets[0].push(value);
            sets[1].push(indices(&metric.threshold, &mut known, &mut None));
            sets[2].push(indices(&metric.optional, &mut known, &mut None));
        }
        if !grouping.merged {
            // The next metric gets separate events, even if they have the same names.
            known.by_text.clear();
        }
    }
    // Events needed only for thresholds come last.
    let [value, threshold, optional] = sets;
    let mut sets = [value, threshold].concat();
    let slots = Slots::from_host(host);
    known.add_slots(&mut sets, &slots, parser);
    if !grouping.grouped {
        let single = |set: Vec<usize>| set.into_iter().map(|event| vec![event]);
        sets = sets.into_iter().flat_map(single).collect();
    }
    let needs = needs(&known.specs, &slots, host);
    let mut groups = schedule::groups(&sets, &needs);
    schedule::fill(&mut groups, &optional, &needs);
    if !grouping.grouped {
        // Slots and topdown events stay in one group, since topdown events cannot be read without the slots
        // event.
        let of_slots =
            |&event: &usize| matches!(needs[event], CounterNeed::Slots(_) | CounterNeed::PartOfSlots(_));
        let parts = |group: Vec<usize>| match group.iter().any(of_slots) {
            true => vec![group],
            false => group.into_iter().map(|event| vec![event]).collect(),
        };
        groups = groups.into_iter().flat_map(parts).collect();
    }
    let facts = OnceCell::new();
    for group in groups {
        let texts: Vec<&str> = group.iter().map(|&event| known.texts[event].as_str()).collect();
        let text = if texts.len() > 1 { format!("{{{}}}:W", texts.join(",")) } else { texts.concat() };
        let parsed = parser.parse(&text).unwrap_or_default();
        found.groups.extend(parsed.into_iter().flat_map(|group| match is_limited(&group) {
            true => vec![group],
            false => ask_the_kernel(group, facts.get_or_init(|| MachineFacts::own(host))),
        }));
    }
    found
}

/// The events that metrics use: their texts, and one spec per event.
struct MetricEventSpecs {
    texts: Vec<String>,
    specs: Vec<EventSpec>,
    /// Keyed by the text in lower case.
    by_text: HashMap<String, Result<usize, Box<ParseError>>>,
}

impl MetricEventSpecs {
    fn index(&mut self, text: &str, parser: &mut EventParser<'_>) -> Result<usize, Box<ParseError>> {
        let Self { texts, specs, by_text } = self;
        let add = || {
            let spec = parser.parse(text)?.into_iter().flat_map(|group| group.events).next();
            texts.push(text.to_owned());
            specs.extend(spec);
            Ok(texts.len() - 1)
        };
        by_text.entry(text.to_ascii_lowercase()).or_insert_with(add).clone()
    }

    /// For each PMU whose topdown events are used, adds a set that contains the slots event. Topdown events
    /// cannot be read without the slots event, but formulas may omit it.
    fn add_slots(&mut self, sets: &mut Vec<Vec<usize>>, slots: &Slots, parser: &mut EventParser<'_>) {
        let pmus: Vec<(u32, Option<String>)> = self
            .specs
            .iter()
            .filter(|spec| slots.is_part(spec))
            .map(|spec| (kind_of(spec), spec.pmu.clone()))
            .collect();
        for (kind, pmu) in pmus {
            if self.specs.iter().any(|spec| slots.is(spec) && kind_of(spec) == kind) {
                continue;
            }
            let text = pmu.map_or_else(|| "slots".to_owned(), |pmu| format!("{pmu}/slots/"));
            if let Ok(slots) = self.index(&text, parser) {
                sets.push(vec![slots]);
            }
        }
    }
}

/// Whether pmc knows which counters the events can use.
fn is_limited(group: &EventGroup) -> bool {
    group.events.len() < 2 || group.events.iter().all(|spec| !spec.takes_counter() || spec.counters.is_some())
}

/// Splits a weak group into parts that the kernel accepts.
fn ask_the_kernel(group: EventGroup, facts: &MachineFacts) -> Vec<EventGroup> {
    let singles: Vec<EventGroup> =
        group.events.iter().map(|spec| EventGroup { events: vec![spec.clone()], ..group }).collect();
    let passes = fit::passes(&singles.iter().collect::<Vec<_>>(), facts);
    let part = |pass: &Vec<usize>| EventGroup {
        events: pass.iter().map(|&at| group.events[at].clone()).collect(),
        braces: pass.len() > 1,
        ..group
    };
    passes.iter().map(part).collect()
}

/// Returns the counters that the vendor's table lists for an event, as bits of [`CounterNeed::OneOf`].
fn counters(spec: &EventSpec) -> Option<u64> {
    let PmuCounters { general, fixed } = spec.counters?;
    Some(general & !FIXED | fixed.map_or(0, |number| 1 << (FIRST_FIXED + u32::from(number))))
}

/// Generic events other than cycles that have fixed counters on Intel CPUs.
const INSTRUCTIONS: u64 = 1;
const REF_CYCLES: u64 = 9;

/// The bits of all fixed counters.
const FIXED: u64 = !0 << FIRST_FIXED;

fn needs(specs: &[EventSpec], slots: &Slots, host: &Host) -> Vec<CounterNeed> {
    // The kernel's watchdog occupies the cycles counter.
    let is_watched = host.number("/proc/sys/kernel/nmi_watchdog") == Some(1);
    let free = if is_watched { !(1 << (FIRST_FIXED + 1)) } else { !0 };
    // An event without a list of counters is assumed to work on any counter that other events of its PMU use.
    let mut all: HashMap<u32, u64> = HashMap::new();
    for spec in specs {
        *all.entry(kind_of(spec)).or_default() |= counters(spec).unwrap_or(0);
    }
    let need = |spec: &EventSpec| {
        let pmu = kind_of(spec);
        match &spec.source {
            EventSource::Kernel(attr) if matches!(attr.kind(), kind::SOFTWARE | kind::TRACEPOINT) => {
                CounterNeed::Nothing
            }
            EventSource::Kernel(_) if slots.is(spec) => CounterNeed::Slots(pmu),
            EventSource::Kernel(_) if slots.is_part(spec) => CounterNeed::PartOfSlots(pmu),
            EventSource::Kernel(attr) if spec.takes_counter() => {
                let all = all[&pmu];
                let general = if all & !FIXED == 0 { !FIXED } else { all & !FIXED };
                // With this bit, the event also counts the core's other hardware thread.
                const ANY: u64 = 1 << 21;
                let is_plain = attr.config() & 0xffff_ffff & !ANY == attr.config() & 0xffff;
                let fixed = |number: u32| all & 1 << (FIRST_FIXED + number);
                let usable = match (counters(spec), attr.kind(), attr.config() & 0xffff) {
                    // Architectural cycles and instructions can use general counters too.
                    (Some(own), _, 0x3c | 0xc0) if own & FIXED != 0 => {
                        general | if is_plain { own } else { 0 }
                    }
                    (Some(own), ..) => own,
                    (None, kind::HARDWARE, generic::CPU_CYCLES) => general | fixed(1),
                    (None, kind::HARDWARE, INSTRUCTIONS) => general | fixed(0),
                    (None, kind::HARDWARE, REF_CYCLES) if fixed(2) != 0 => fixed(2),
                    (None, _, _) if spec.system_wide => return CounterNeed::Alone,
                    (None, ..) => general,
                };
                CounterNeed::OneOf(pmu, usable & free)
            }
            _ => CounterNeed::Alone,
        }
    };
    specs.iter().map(need).collect()
}

/// The `attr.type` of the PMU that counts the event; generic events go to the core PMU.
fn kind_of(spec: &EventSpec) -> u32 {
    match spec.attr().map(|attr| (attr.kind(), attr.config() >> 32)) {
        Some((kind::HARDWARE | kind::HW_CACHE, 0)) => kind::RAW,
        Some((kind::HARDWARE | kind::HW_CACHE, pmu)) => pmu as u32,
        Some((kind, _)) => kind,
        None => u32::MAX,
    }
}

/// The slots event and the topdown events (such as `topdown-retiring`) of core PMUs in newer Intel CPUs. They
/// use a fixed counter and the bytes of the register `PERF_METRICS` (Intel SDM 3B, 20.3.9.3).
#[derive(Debug)]
struct Slots {
    /// The `attr.type` of the PMUs that have these events.
    pmus: Vec<u32>,
}

impl Slots {
    fn from_host(host: &Host) -> Self {
        let pmus = ["cpu", "cpu_core"].iter().filter_map(|name| host.pmu(name));
        Self { pmus: pmus.filter(|pmu| pmu.event("slots").is_some()).map(|pmu| pmu.kind).collect() }
    }

    fn is(&self, spec: &EventSpec) -> bool {
        self.has(spec, |config| config == 0x400)
    }

    fn is_part(&self, spec: &EventSpec) -> bool {
        self.has(spec, |config| config & !0x700 == 0x8000)
    }

    fn has(&self, spec: &EventSpec, is_it: impl Fn(u64) -> bool) -> bool {
        spec.attr().is_some_and(|attr| self.pmus.contains(&attr.kind()) && is_it(attr.config()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;
    use pmc_sys::host::Host;

    const TOGETHER: MetricEventGrouping = MetricEventGrouping { grouped: true, merged: true };

    fn found(
        cpu: &str,
        metrics: &[&[&'static str]],
        grouping: MetricEventGrouping,
    ) -> (Vec<String>, Vec<Option<String>>) {
        let host = Host::rooted(test_data(&format!("cpus/{cpu}")));
        let wanted = |value: &&[&'static str]| MetricEventTexts {
            value: value.to_vec(),
            ..MetricEventTexts::default()
        };
        let metrics: Vec<MetricEventTexts<'_>> = metrics.iter().map(wanted).collect();
        let found = find(&metrics, grouping, |_| false, &mut EventParser::new(&host), &host);
        let names =
            |group: &EventGroup| group.events.iter().map(|e| e.name.as_str()).collect::<Vec<_>>().join(" ");
        let lacking = found.lacking.into_iter().map(|lack| lack.map(|(text, _)| text));
        (found.groups.iter().map(names).collect(), lacking.collect())
    }

    #[test]
    fn vendor_tables_define_the_available_counters() {
        // Five events need four general counters, since cycles have a fixed counter.
        let metric = &[
            "CPU_CLK_UNHALTED.THREAD",
            "UOPS_ISSUED.ANY",
            "UOPS_RETIRED.RETIRE_SLOTS",
            "MACHINE_CLEARS.COUNT",
            "BR_MISP_RETIRED.ALL_BRANCHES",
            "BACLEARS.ANY",
        ];
        let (groups, lacking) = found("skylake-x", &[metric, &["nonsense.event", "cycles"]], TOGETHER);
        assert_eq!(groups, [metric[..5].join(" "), metric[5].to_owned()]);
        assert_eq!(lacking, [None, Some("nonsense.event".to_owned())]);
    }

    #[test]
    fn slots_event_is_added_to_topdown_events() {
        let metric = &["UOPS_ISSUED.ANY", "topdown-retiring", "topdown-fe-bound"];
        let (groups, _) = found("sapphire-rapids", &[metric], TOGETHER);
        assert_eq!(groups, ["cpu/slots/ topdown-retiring topdown-fe-bound UOPS_ISSUED.ANY"]);
        let single = MetricEventGrouping { grouped: false, merged: true };
        let (groups, _) = found("sapphire-rapids", &[metric], single);
        assert_eq!(groups, ["cpu/slots/ topdown-retiring topdown-fe-bound", "UOPS_ISSUED.ANY"]);
    }

    #[test]
    fn metrics_may_define_their_own_events() {
        let metrics: [&[&str]; 2] = [&["UOPS_ISSUED.ANY", "duration_time"], &["uops_issued.any"]];
        let apart = MetricEventGrouping { grouped: true, merged: false };
        assert_eq!(
            found("skylake-x", &metrics, apart).0,
            ["UOPS_ISSUED.ANY", "duration_time", "uops_issued.any"]
        );
        assert_eq!(found("skylake-x", &metrics, TOGETHER).0, ["UOPS_ISSUED.ANY", "duration_time"]);
    }
}
