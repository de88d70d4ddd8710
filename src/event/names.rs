//! What can be asked for: every name that [`parse`](super::parse) understands on a machine, with a line that says what it is.
//!
//! Receives the [`Host`]; hands on [`Listed`] names, kind by kind, so that `pmc list`, completion and messages read only
//! what they show. Whether an event opens is `counter`'s to say.

use super::generic::{self, GENERIC, What};
use super::{freebsd, syntax, terms};
use crate::host::Host;
use crate::host::pmu::Pmu;
use crate::host::tracepoint::TracepointError;

/// The chapters of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Generic events of the processor.
    Hardware,
    /// Events of the kernel.
    Software,
    /// Generic cache events.
    Cache,
    /// Measured by pmc itself.
    Tool,
    /// Named by a PMU in sysfs.
    Pmu,
    /// Tracepoints of the kernel.
    Tracepoint,
    /// FreeBSD's names.
    FreeBsd,
    /// Patterns to fill in: raw codes, breakpoints, uprobes.
    Pattern,
}

impl Kind {
    /// The chapter's name, as `pmc list` takes and prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Software => "software",
            Self::Cache => "cache",
            Self::Tool => "tool",
            Self::Pmu => "pmu",
            Self::Tracepoint => "tracepoint",
            Self::FreeBsd => "freebsd",
            Self::Pattern => "pattern",
        }
    }
}

/// A name that can be typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// As it is typed: `cpu-cycles`, `power/energy-pkg/`, `sched:sched_switch`.
    pub name: String,
    /// Other names for the same.
    pub aliases: Vec<String>,
    /// Its chapter.
    pub kind: Kind,
    /// What it counts, in one line; empty where the kernel does not say.
    pub text: String,
    /// The PMU, for those of sysfs.
    pub pmu: Option<String>,
    /// What it stands for: `type 0, config 0x1`, or the kernel's terms such as `event=0x3c`.
    pub encoding: String,
    /// Factor from the count to `unit`.
    pub scale: f64,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
}

impl Listed {
    fn new(
        kind: Kind,
        name: impl Into<String>,
        text: impl Into<String>,
        encoding: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            kind,
            text: text.into(),
            pmu: None,
            encoding: encoding.into(),
            scale: 1.0,
            unit: String::new(),
        }
    }
}

/// A term of a PMU: what may stand between the slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTerm {
    /// Its name.
    pub name: String,
    /// The bits it sets, in the kernel's notation (`config:0-7`); empty for terms that every event takes.
    pub bits: String,
}

/// Hardware, software and tool events. Reads nothing.
pub fn generic() -> impl Iterator<Item = Listed> {
    GENERIC.iter().map(|generic| {
        let (kind, encoding) = match generic.what {
            What::Hardware(config) => (Kind::Hardware, format!("type 0, config {config:#x}")),
            What::Software(config) => (Kind::Software, format!("type 1, config {config:#x}")),
            What::Tool(_) => (Kind::Tool, String::new()),
        };
        let mut listed = Listed::new(kind, generic.names[0], generic.text, encoding);
        listed.aliases = generic.names[1..].iter().map(|&n| n.to_owned()).collect();
        listed
    })
}

/// Cache events under their usual names. Reads nothing.
pub fn cache() -> impl Iterator<Item = Listed> {
    generic::cache_events().map(|(name, config, text)| {
        Listed::new(Kind::Cache, name, text, format!("type 3, config {config:#x}"))
    })
}

/// The events that PMUs name in sysfs.
pub fn of_pmus(host: &Host) -> impl Iterator<Item = Listed> + '_ {
    let mut pmus = host.pmu_names();
    // A holder process of pmc publishes this one elsewhere than the kernel would.
    if !pmus.iter().any(|name| name == "persistent") {
        pmus.push("persistent".to_owned());
    }
    pmus.into_iter().filter_map(|name| host.pmu(&name)).flat_map(|pmu| of_pmu(&pmu))
}

/// The events that this PMU names.
pub fn of_pmu(pmu: &Pmu) -> Vec<Listed> {
    let listed = |name: String| {
        let event = pmu.event(&name)?;
        // Parameters that the user must give are shown with the name, as perf does.
        let open: Vec<&str> = event.terms.split(',').filter(|term| term.ends_with("=?")).collect();
        let shown = [&[name.as_str()], open.as_slice()].concat().join(",");
        let mut listed = Listed::new(Kind::Pmu, format!("{}/{shown}/", pmu.name), "", event.terms);
        listed.pmu = Some(pmu.name.clone());
        listed.scale = event.scale;
        listed.unit = event.unit;
        if event.snapshot {
            listed.text = "a level, not a sum".to_owned();
        }
        Some(listed)
    };
    pmu.events().into_iter().filter_map(listed).collect()
}

/// All tracepoints, read subsystem by subsystem as the caller goes on.
///
/// # Errors
/// Why there are none.
pub fn tracepoints(host: &Host) -> Result<impl Iterator<Item = Listed> + '_, TracepointError> {
    Ok(host.tracepoints()?.map(|name| Listed::new(Kind::Tracepoint, name, "", "")))
}

/// FreeBSD's names and what each stands for. Reads nothing.
pub fn freebsd() -> impl Iterator<Item = Listed> {
    freebsd::ALIASES.iter().map(|alias| {
        let filter = alias.filter.map_or(String::new(), |filter| format!(", where {filter}"));
        Listed::new(
            Kind::FreeBsd,
            alias.name,
            format!("FreeBSD's name for {}{filter}", alias.means),
            alias.means,
        )
    })
}

/// Forms that take a number, an address or a path.
pub fn patterns() -> impl Iterator<Item = Listed> {
    [
        ("rHEX", "a raw code of the core PMU, as in r1a8"),
        ("PMU/TERM=VALUE,…/", "any event of a PMU by its terms, as in cpu/event=0x3c,umask=0x1/"),
        ("TYPE:CONFIG", "type and config of the kernel's request, as in 4:0x1a8"),
        ("mem:ADDRESS[/LENGTH][:rwx]", "a hardware breakpoint, as in mem:0x1000/8:w"),
        (
            "uprobe:PATH:FUNCTION",
            "entries of a function, as in uprobe:/lib/x86_64-linux-gnu/libc.so.6:malloc",
        ),
        ("uprobe:PATH:FUNCTION%return", "returns from a function"),
    ]
    .into_iter()
    .map(|(name, text)| Listed::new(Kind::Pattern, name, text, ""))
}

/// The words that may follow an event after a comma; those with a value end in `=`. Reads nothing.
pub fn qualifiers() -> impl Iterator<Item = String> {
    let valued = syntax::VALUED.iter().map(|name| format!("{name}="));
    syntax::FLAGS.iter().map(|&name| name.to_owned()).chain(valued)
}

/// What can be typed without naming a tracepoint: generic, cache, tool, PMU and FreeBSD events.
pub fn all_but_tracepoints(host: &Host) -> impl Iterator<Item = Listed> + '_ {
    generic().chain(cache()).chain(of_pmus(host)).chain(freebsd())
}

/// The terms of a PMU, its own first, then those that every event takes.
pub fn terms(pmu: &Pmu) -> Vec<ListedTerm> {
    let own = pmu.terms().into_iter().map(|name| {
        let bits = pmu.format_text(&name).unwrap_or_default();
        ListedTerm { name, bits }
    });
    let common = terms::COMMON.iter().map(|&name| ListedTerm { name: name.to_owned(), bits: String::new() });
    own.chain(common).collect()
}
