//! Lists all named events of this machine, and templates for unnamed ones, for `pmc list`.
//!
//! Takes a [`Host`] and the requested kinds; returns an iterator, so that thousands of tracepoints are read
//! only on demand. Does not open any events; `event::parse` converts a listed name to a request.

use crate::hint::Hint;
use pmc_sys::error::Advice;
use std::collections::{BTreeMap, BTreeSet};

use super::vendor::{self, Vendor};
use super::{Tool, freebsd_aliases};
use pmc_sys::abi::{attr, generic};
use pmc_sys::host::Host;
use pmc_sys::host::persistent::has_holder;
use pmc_sys::host::pmu::Pmu;

/// The kind of an event, in list order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// Generic hardware events.
    Hardware,
    /// Generic cache events.
    Cache,
    /// Software events of the kernel.
    Software,
    /// Events measured by pmc itself.
    Tool,
    /// Named events of the PMUs in sysfs.
    Pmu,
    /// Events from the vendors' manuals.
    Vendor,
    /// Raw event codes for the PMUs (templates).
    Raw,
    /// Breakpoints (a template).
    Breakpoint,
    /// Probes in functions of programs and the kernel (templates).
    Probe,
    /// Markers (USDT) in the files of the build-ID cache.
    Marker,
    /// FreeBSD's names.
    FreeBsd,
    /// Tracepoints.
    Tracepoint,
}

impl EventKind {
    /// All kinds, in list order.
    pub const ALL: [Self; 12] = [
        Self::Hardware,
        Self::Cache,
        Self::Software,
        Self::Tool,
        Self::Pmu,
        Self::Vendor,
        Self::Raw,
        Self::Breakpoint,
        Self::Probe,
        Self::Marker,
        Self::FreeBsd,
        Self::Tracepoint,
    ];

    /// The kind's name in JSON and as a filter.
    pub fn word(self) -> &'static str {
        self.words()[0]
    }

    /// The kind's names on the command line. If perf has a word for this category, it comes first.
    pub(crate) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Hardware => &["hardware", "hw"],
            Self::Cache => &["cache", "hwcache"],
            Self::Software => &["software", "sw"],
            Self::Tool => &["tool"],
            Self::Pmu => &["pmu"],
            Self::Vendor => &["vendor"],
            Self::Raw => &["raw"],
            Self::Breakpoint => &["breakpoint", "mem"],
            Self::Probe => &["probe", "uprobe", "kprobe", "sdt"],
            Self::Marker => &["marker"],
            Self::FreeBsd => &["freebsd"],
            Self::Tracepoint => &["tracepoint", "tracepoints"],
        }
    }

    /// The kind with this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.words().iter().any(|name| name.eq_ignore_ascii_case(word)))
    }
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedEvent {
    /// The entry's kind.
    pub kind: EventKind,
    /// The text to type, or a template with placeholders in capitals.
    pub name: String,
    /// Other names of the same event.
    pub aliases: &'static [&'static str],
    /// A one-line description; empty if the kernel provides none.
    pub text: String,
    /// The event's PMU, if the event belongs to one.
    pub pmu: Option<String>,
    /// The terms of a PMU event, or the Linux event of a FreeBSD name.
    pub means: Option<String>,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
    /// Factor that converts the count to the unit.
    pub scale: f64,
    /// Whether the entry is a template, which must be filled in before it can be opened.
    pub form: bool,
    /// Details from the vendor's table, for vendor events.
    pub manual: Option<VendorDetails>,
}

/// Details of an event in a vendor's table, in addition to its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VendorDetails {
    /// The table: `skylakex`.
    pub table: String,
    /// Whether the user imported it.
    pub is_imported: bool,
    /// The counters that it can use: `0-3`, `F1`; empty if the table does not list them.
    pub counters: String,
    /// Support for precise samples.
    pub precise: Option<Precise>,
    /// The vendor's recommended sampling period.
    pub period: Option<u64>,
    /// Whether the vendor has deprecated it.
    pub is_deprecated: bool,
}

/// Support for precise samples, from the vendor's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precise {
    /// Precise samples are supported.
    Can,
    /// Only precise samples are supported.
    Only,
}

impl ListedEvent {
    fn new(kind: EventKind, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            aliases: &[],
            text: text.into(),
            pmu: None,
            means: None,
            unit: String::new(),
            scale: 1.0,
            form: false,
            manual: None,
        }
    }

    fn form(kind: EventKind, name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { form: true, ..Self::new(kind, name, text) }
    }
}

/// Machine data from which the list is built.
#[derive(Debug)]
pub struct ListingSources<'h> {
    /// The machine.
    pub host: &'h Host,
    /// The vendor tables for the machine's CPUs.
    pub vendor: Vendor,
    /// The names of the machine's PMUs, including the common names of numbered instances.
    pub pmus: BTreeSet<String>,
    find_markers: fn() -> MarkersByFile,
}

/// Markers as `PROVIDER:NAME`, by file path.
pub type MarkersByFile = Vec<(String, Vec<String>)>;

impl<'h> ListingSources<'h> {
    /// Creates the sources for this machine.
    pub fn new(host: &'h Host) -> Self {
        Self { host, vendor: Vendor::find(host), pmus: pmu_names(host), find_markers: Vec::new }
    }

    /// Adds markers, which are searched for only if their kind is requested.
    #[must_use]
    pub fn with_markers(self, find_markers: fn() -> MarkersByFile) -> Self {
        Self { find_markers, ..self }
    }

    /// The entries of a kind. There are no tracepoints if tracefs cannot be read; [`Host::tracefs`] returns
    /// the reason.
    pub fn of_kind(&self, kind: EventKind) -> Box<dyn Iterator<Item = ListedEvent> + '_> {
        let host = self.host;
        match kind {
            EventKind::Hardware => Box::new(generic_events(kind, attr::kind::HARDWARE)),
            EventKind::Software => Box::new(generic_events(kind, attr::kind::SOFTWARE)),
            EventKind::Tool => Box::new(
                Tool::ALL.iter().map(|(_, name, text)| ListedEvent::new(EventKind::Tool, *name, *text)),
            ),
            EventKind::Cache => Box::new(
                generic::cache_events().map(|(name, _, text)| ListedEvent::new(EventKind::Cache, name, text)),
            ),
            EventKind::Pmu => {
                Box::new(pmus(host).flat_map(|(shown, pmu)| pmu_events(&shown, &pmu)).chain(held(host)))
            }
            EventKind::Vendor => Box::new(vendor_events(&self.vendor, &self.pmus).into_iter()),
            EventKind::Raw => Box::new(std::iter::once(raw_code()).chain(pmus(host).filter_map(raw_terms))),
            EventKind::Breakpoint => Box::new(std::iter::once(ListedEvent::form(
                EventKind::Breakpoint,
                "mem:ADDRESS[/LENGTH][:rwx]",
                "reads, writes or executions of an address (hardware breakpoint); also mem:&SYMBOL",
            ))),
            EventKind::Probe => Box::new(probes().into_iter().map(|(form, text)| {
                ListedEvent::form(EventKind::Probe, form, Advice::from(text).to_string())
            })),
            EventKind::Marker => Box::new((self.find_markers)().into_iter().flat_map(markers_of)),
            EventKind::FreeBsd => Box::new(freebsd_aliases::names(host).map(|(name, means)| ListedEvent {
                means: Some(means.to_owned()),
                ..ListedEvent::new(EventKind::FreeBsd, name, format!("FreeBSD's name for {means}"))
            })),
            EventKind::Tracepoint => match host.tracepoints() {
                Ok(names) => Box::new(
                    names
                        .filter(|name| !is_record_only(host, name))
                        .map(|name| ListedEvent::new(EventKind::Tracepoint, name, "")),
                ),
                Err(_) => Box::new(std::iter::empty()),
            },
        }
    }

    /// Names for completion: every event with its aliases, and the terms of each PMU as `PMU/TERM=`.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let is_deprecated =
            |listed: &ListedEvent| listed.manual.as_ref().is_some_and(|manual| manual.is_deprecated);
        let events = EventKind::ALL.into_iter().flat_map(move |kind| self.of_kind(kind));
        let named = events.filter(move |listed| !listed.form && !is_deprecated(listed)).flat_map(|listed| {
            std::iter::once(listed.name).chain(listed.aliases.iter().map(|&alias| alias.to_owned()))
        });
        let terms = pmus(self.host).flat_map(|(shown, pmu)| {
            pmu.terms().into_iter().map(move |term| format!("{shown}/{term}=")).collect::<Vec<_>>()
        });
        named.chain(terms)
    }
}

/// Returns the templates of probes, with descriptions.
fn probes() -> [(&'static str, Hint); 5] {
    [
        ("uprobe:PATH:FUNCTION", "calls to a function in a program or library; also PATH:0xOFFSET".into()),
        ("kprobe:FUNCTION", "calls to a kernel function; also MODULE:FUNCTION, FUNCTION+0xOFFSET".into()),
        ("kretprobe:FUNCTION", "returns from a kernel function".into()),
        ("sdt_PROVIDER:NAME", Hint::MarkerOfProcess),
        ("sdt:PATH:PROVIDER:NAME", "a marker in a program or library".into()),
    ]
}

/// Whether this `ftrace` entry only describes a tracer's record format. Like most `ftrace` entries, it then
/// has no ID and cannot be opened.
fn is_record_only(host: &Host, name: &str) -> bool {
    name.split_once(':')
        .is_some_and(|(system, name)| system == "ftrace" && host.tracepoint_id(system, name).is_err())
}

fn generic_events(kind: EventKind, attr_kind: u32) -> impl Iterator<Item = ListedEvent> {
    generic::GENERIC.iter().filter(move |event| event.kind == attr_kind).map(move |event| {
        let (name, aliases) = event.names.split_first().unwrap_or((&"", &[]));
        ListedEvent { aliases, ..ListedEvent::new(kind, *name, event.text) }
    })
}

/// The PMUs, with the names to type. Numbered instances of a device (`uncore_imc_0`, `uncore_imc_1`) appear
/// once, under their common name.
fn pmus(host: &Host) -> impl Iterator<Item = (String, Pmu)> {
    let mut seen: Vec<String> = Vec::new();
    let names = host.pmu_names();
    let stem = |name: &str| stem(name).map(str::to_owned);
    let listed: Vec<_> = names
        .iter()
        .filter_map(|name| {
            let several =
                |stem_: &str| names.iter().filter(|n| stem(n).as_deref() == Some(stem_)).count() > 1;
            let shown = stem(name).filter(|s| several(s)).unwrap_or_else(|| name.clone());
            if seen.contains(&shown) {
                return None;
            }
            seen.push(shown.clone());
            Some((shown, host.pmu(name)?))
        })
        .collect();
    listed.into_iter()
}

/// `uncore_imc` for `uncore_imc_0`.
fn stem(name: &str) -> Option<&str> {
    let (stem, number) = name.rsplit_once('_')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(stem)
}

/// Whether both names denote the same PMU, or one denotes an instance of the other.
pub fn is_same_pmu(one: &str, other: &str) -> bool {
    one == other || stem(one) == Some(other) || stem(other) == Some(one)
}

/// The names of this machine's PMUs, including the common names of numbered instances.
pub fn pmu_names(host: &Host) -> BTreeSet<String> {
    let names = host.pmu_names();
    names.iter().filter_map(|name| stem(name)).map(str::to_owned).chain(names.iter().cloned()).collect()
}

/// Vendor events for PMUs of this machine, as the user may type them: in lower case as in perf, with a PMU if
/// several core types have an event with the same name.
fn vendor_events(vendor: &Vendor, here: &BTreeSet<String>) -> Vec<ListedEvent> {
    let kinds: BTreeSet<&str> =
        vendor.models().iter().map(|model| model.pmu.as_str()).filter(|pmu| !pmu.is_empty()).collect();
    let mut of_cores: BTreeMap<String, u32> = BTreeMap::new();
    if kinds.len() > 1 {
        for event in vendor.events().filter(|event| kinds.contains(event.pmu)) {
            *of_cores.entry(event.name.to_ascii_lowercase()).or_default() += 1;
        }
    }
    let listed = |event: vendor::VendorEvent<'_>| {
        let name = event.name.to_ascii_lowercase();
        let is_shared = of_cores.get(&name).is_some_and(|&kinds| kinds > 1);
        let has = |flag: char| event.flags.contains(flag);
        let manual = VendorDetails {
            table: event.model.to_owned(),
            is_imported: event.is_imported,
            counters: event.counters.to_owned(),
            precise: match (has('P'), has('p')) {
                (true, _) => Some(Precise::Only),
                (_, true) => Some(Precise::Can),
                _ => None,
            },
            period: event.period,
            is_deprecated: has('d'),
        };
        ListedEvent {
            pmu: Some(event.pmu.to_owned()),
            means: Some(format!("{}/{}/", event.pmu, event.terms)),
            manual: Some(manual),
            ..ListedEvent::new(
                EventKind::Vendor,
                if is_shared { format!("{}/{name}/", event.pmu) } else { name },
                event.text.unwrap_or_default(),
            )
        }
    };
    // For a CPU selected by the user, list all events, even if they cannot be counted on this machine.
    let is_listed = |pmu: &str| here.contains(pmu) || vendor.is_of_named_cpu();
    vendor.events().filter(|event| is_listed(event.pmu)).map(listed).collect()
}

/// The markers of a file.
fn markers_of((path, names): (String, Vec<String>)) -> impl Iterator<Item = ListedEvent> {
    names.into_iter().map(move |name| ListedEvent {
        means: Some(format!("sdt:{path}:{name}")),
        ..ListedEvent::new(EventKind::Marker, format!("sdt_{name}"), format!("marker in {path}"))
    })
}

/// The events that holders keep open for this user.
fn held(host: &Host) -> impl Iterator<Item = ListedEvent> {
    let runs = |pmu: &Pmu| pmu.run_directory().is_some_and(|folder| has_holder(folder).unwrap_or(true));
    let held = host.published_pmus().into_iter().filter(runs);
    held.flat_map(|pmu| pmu_events(&pmu.name, &pmu))
        .map(|event| ListedEvent { text: Advice::from(Hint::HeldEvent).to_string(), ..event })
}

fn pmu_events(shown: &str, pmu: &Pmu) -> Vec<ListedEvent> {
    let entries = pmu.events().into_iter().filter_map(|name| {
        let event = pmu.event(&name)?;
        // The user must supply values for terms that have none. As in perf, these terms are shown with the
        // name.
        let open: Vec<&str> =
            event.terms.split(',').map(str::trim).filter(|term| term.ends_with("=?")).collect();
        let form = !open.is_empty();
        let text = [&[name.as_str()], open.as_slice()].concat().join(",");
        Some(ListedEvent {
            pmu: Some(pmu.name.clone()),
            means: Some(event.terms.clone()),
            unit: event.unit.clone(),
            scale: event.scale,
            form,
            ..ListedEvent::new(EventKind::Pmu, format!("{shown}/{text}/"), "")
        })
    });
    entries.collect()
}

fn raw_code() -> ListedEvent {
    ListedEvent::form(EventKind::Raw, "rHEX", "a raw core PMU event, such as r1a8")
}

fn raw_terms((shown, pmu): (String, Pmu)) -> Option<ListedEvent> {
    let terms = pmu.terms();
    if terms.is_empty() {
        return None;
    }
    let form =
        format!("{shown}/{}/", terms.iter().map(|term| format!("{term}=N")).collect::<Vec<_>>().join(","));
    Some(ListedEvent {
        pmu: Some(pmu.name.clone()),
        ..ListedEvent::form(
            EventKind::Raw,
            form,
            format!("an event of {shown}, specified by any of its terms"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::parse;
    use crate::kit::test_data;

    fn machines() -> Vec<(String, Host)> {
        let folders = ["sysfs", "cpus"].map(test_data);
        let entries =
            folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), Host::rooted(entry.path())))
            .collect()
    }

    #[test]
    fn listed_events_parse() {
        let mut seen = 0;
        for (machine, host) in machines().into_iter().chain([("this one".to_owned(), Host::live())]) {
            let sources = ListingSources::new(&host);
            let kinds = EventKind::ALL
                .into_iter()
                .filter(|kind| !matches!(kind, EventKind::Tracepoint | EventKind::Vendor));
            for kind in kinds {
                for listed in sources.of_kind(kind).filter(|listed| !listed.form) {
                    // A FreeBSD name may stand for an event that this machine does not have.
                    if kind != EventKind::FreeBsd {
                        assert!(parse(&listed.name, &host).is_ok(), "{machine}: {}", listed.name);
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn category_names_match_perf() {
        for (word, kind) in [
            ("hw", EventKind::Hardware),
            ("sw", EventKind::Software),
            ("cache", EventKind::Cache),
            ("hwcache", EventKind::Cache),
            ("pmu", EventKind::Pmu),
            ("tool", EventKind::Tool),
            ("tracepoint", EventKind::Tracepoint),
        ] {
            assert_eq!(EventKind::named(word), Some(kind));
        }
        assert_eq!(EventKind::named("cycles"), None);
    }

    #[test]
    fn numbered_instances_are_listed_once() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = root.path().join("sys/bus/event_source/devices").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for instance in 0..2 {
            file(&format!("uncore_imc_{instance}/type"), "20\n");
            file(&format!("uncore_imc_{instance}/cpumask"), "0\n");
            file(&format!("uncore_imc_{instance}/format/event"), "config:0-7\n");
            file(&format!("uncore_imc_{instance}/events/cas_count_read"), "event=0x04\n");
            file(&format!("uncore_imc_{instance}/events/cas_count_read.unit"), "MiB\n");
            file(&format!("uncore_imc_{instance}/events/cas_count_read.scale"), "6.103515625e-5\n");
        }
        file("armv8_pmuv3_0/type", "8\n");
        file("armv8_pmuv3_0/events/open", "event=?\n");
        let host = Host::rooted(root.path());
        let sources = ListingSources::new(&host);
        let listed: Vec<ListedEvent> = sources.of_kind(EventKind::Pmu).collect();
        let shown: Vec<_> = listed.iter().map(|l| (l.name.as_str(), l.unit.as_str(), l.form)).collect();
        assert_eq!(
            shown,
            [("armv8_pmuv3_0/open,event=?/", "", true), ("uncore_imc/cas_count_read/", "MiB", false)]
        );
        assert!(parse("uncore_imc/cas_count_read/", &host).is_ok());
        let names: Vec<String> = sources.names().collect();
        assert!(names.contains(&"uncore_imc/event=".to_owned()), "{names:?}");
        assert!(names.contains(&"cycles".to_owned()) && names.contains(&"cpu-cycles".to_owned()));
    }
}
