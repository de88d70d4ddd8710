//! Reads events from PCP's `perfevent.conf`: the events that PCP's agent would count on this machine.
//!
//! Takes the file's text, the [`Host`] and an [`EventParser`]. Returns events with their names in the file,
//! sums of events, and skipped lines with reasons. libpfm4 names are translated to pmc's event text; the
//! caller computes the sums.
//!
//! ```text
//! [hsw hsw_ep]               only the first section that names a PMU of this machine is used
//! UNHALTED_CORE_CYCLES:u     EVENT [cpu | cpu_rr | node | node_rr | NUMBER]
//! RAW:NAME rawcode=0x13c     a raw code from the processor's manual
//! RAPL:PACKAGE_ENERGY node   energy, through the kernel's `power` PMU
//! [dynamic]                  PMU.EVENT [NUMBER] [PARAMETER:VALUE …], from sysfs
//! [NAME:derived]             a sum: EVENT [where] [SCALE | perf_scale]; `||` precedes an alternative
//! ```

use std::fmt;

use super::EventGroup;
use super::libpfm::uncore_unit;
use super::resolve::EventParser;
use pmc_sys::host::cpu::Topology;
use pmc_sys::host::{CpuList, Host};

/// The contents of a file for this machine.
#[derive(Debug, Default)]
pub struct PerfeventConf {
    /// The events, in the file's order and with the file's names.
    pub groups: Vec<EventGroup>,
    /// The derived events.
    pub sums: Vec<DerivedEvent>,
    /// Lines in the selected sections whose events cannot be counted on this machine.
    pub left_out: Vec<SkippedLine>,
}

/// A derived event: a sum of events.
#[derive(Debug, PartialEq)]
pub struct DerivedEvent {
    /// The derived event's name.
    pub name: String,
    /// Event names and their factors; `None` means the event's scale from sysfs.
    pub terms: Vec<(String, Option<f64>)>,
}

/// A line whose event cannot be counted on this machine.
#[derive(Debug, PartialEq)]
pub struct SkippedLine {
    /// Line number, from 1.
    pub line: usize,
    /// The event, or the name of the derived event.
    pub entry: String,
    /// The reason, as one clause.
    pub why: String,
}

/// A line with a syntax error.
#[derive(Debug, PartialEq)]
pub struct BadLine {
    /// Line number, from 1.
    pub(crate) line: usize,
    /// The error.
    pub(crate) what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Parses a file.
///
/// # Errors
/// Returns the first line with a syntax error.
pub fn read(text: &str, host: &Host, parser: &mut EventParser<'_>) -> Result<PerfeventConf, BadLine> {
    let sections = sections(text)?;
    let core = core_names(host);
    let mut conf = PerfeventConf::default();
    let mut places = PlacementState::new(host);
    let chosen = sections.iter().find(|section| match &section.kind {
        SectionKind::Pmus(names) => names.iter().any(|name| is_here(name, host, &core)),
        _ => false,
    });
    let dynamic = sections.iter().filter(|section| section.kind == SectionKind::Dynamic);
    for section in chosen.into_iter().chain(dynamic) {
        for line in &section.lines {
            match line.groups(section.kind == SectionKind::Dynamic, host, parser, &mut places) {
                Ok(groups) => conf.groups.extend(groups),
                Err(why) => conf.leave_out(line.number, line.event, why),
            }
        }
    }
    for section in &sections {
        if let SectionKind::Derived(name) = section.kind {
            match conf.sum(&section.lines) {
                Ok(terms) => conf.sums.push(DerivedEvent { name: name.to_owned(), terms }),
                Err(why) => conf.leave_out(section.number, name, why),
            }
        }
    }
    Ok(conf)
}

impl PerfeventConf {
    fn leave_out(&mut self, line: usize, entry: &str, why: String) {
        self.left_out.push(SkippedLine { line, entry: entry.to_owned(), why });
    }

    /// Returns the first alternative whose events are all counted; otherwise, the reason why no alternative
    /// can be used.
    fn sum(&self, lines: &[ConfLine<'_>]) -> Result<Vec<(String, Option<f64>)>, String> {
        let mut missing = String::from("it does not name any events");
        for alternative in lines.split(|line| line.event == "||").filter(|lines| !lines.is_empty()) {
            let events = || self.groups.iter().flat_map(|group| &group.events);
            let absent = alternative.iter().find(|line| !events().any(|event| event.name == line.event));
            if let Some(line) = absent {
                missing = format!("its event {} is not counted", line.event);
                continue;
            }
            if alternative.iter().any(|line| line.place != alternative[0].place) {
                return Err("its events are counted on different CPUs".to_owned());
            }
            let unscaled = |line: &&ConfLine<'_>| {
                line.scale == Some(Scale::Sysfs)
                    && events()
                        .any(|event| event.name == line.event && event.scale == 1.0 && event.unit.is_empty())
            };
            if let Some(line) = alternative.iter().find(unscaled) {
                return Err(format!("sysfs has no scale for the event {}", line.event));
            }
            let term = |line: &ConfLine<'_>| match line.scale {
                Some(Scale::Sysfs) => (line.event.to_owned(), None),
                Some(Scale::Factor(factor)) => (line.event.to_owned(), Some(factor)),
                None => (line.event.to_owned(), Some(1.0)),
            };
            return Ok(alternative.iter().map(term).collect());
        }
        Err(missing)
    }
}

#[derive(Debug, PartialEq)]
enum SectionKind<'a> {
    Pmus(Vec<&'a str>),
    Dynamic,
    Derived(&'a str),
}

#[derive(Debug)]
struct ConfSection<'a> {
    number: usize,
    kind: SectionKind<'a>,
    lines: Vec<ConfLine<'a>>,
}

/// The CPUs on which an event is counted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CpuPlacement {
    Everywhere,
    NextCpu,
    FirstOfNodes,
    NextOfNodes,
    Cpu(u32),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Factor(f64),
    Sysfs,
}

#[derive(Debug)]
struct ConfLine<'a> {
    number: usize,
    event: &'a str,
    place: CpuPlacement,
    /// Scale of a derived event.
    scale: Option<Scale>,
    /// Value of `rawcode=`, without 0x.
    code: Option<&'a str>,
    /// Parameters of a dynamic event.
    parameters: Vec<(&'a str, &'a str)>,
}

fn sections(text: &str) -> Result<Vec<ConfSection<'_>>, BadLine> {
    let mut sections: Vec<ConfSection<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let bad = |what: String| BadLine { line: number, what };
        let comment = line
            .match_indices('#')
            .find(|(at, _)| line[..*at].chars().last().is_none_or(char::is_whitespace));
        let line = line[..comment.map_or(line.len(), |(at, _)| at)].trim();
        if let Some(rest) = line.strip_prefix('[') {
            let names = rest.strip_suffix(']').ok_or_else(|| bad("the `[` is not closed".to_owned()))?;
            let kind = match names.trim() {
                "" => return Err(bad("`[]` does not name a PMU".to_owned())),
                "dynamic" => SectionKind::Dynamic,
                name => match name.trim_matches('"').strip_suffix(":derived") {
                    Some(name) => SectionKind::Derived(name),
                    None => SectionKind::Pmus(pmu_names(name)),
                },
            };
            sections.push(ConfSection { number, kind, lines: Vec::new() });
        } else if !line.is_empty() {
            let section =
                sections.last_mut().ok_or_else(|| bad("an event before the first `[…]`".to_owned()))?;
            let mut words = line.split_whitespace();
            let event = words.next().unwrap_or_default();
            let is_derived = matches!(section.kind, SectionKind::Derived(_));
            if event != "||" && !event.starts_with(|c: char| c.is_ascii_alphabetic())
                || event == "||" && !is_derived
            {
                return Err(bad(format!("`{event}` is not an event")));
            }
            let mut line = ConfLine {
                number,
                event,
                place: CpuPlacement::Everywhere,
                scale: None,
                code: None,
                parameters: Vec::new(),
            };
            words.try_for_each(|word| line.option(word, &section.kind)).map_err(bad)?;
            section.lines.push(line);
        }
    }
    Ok(sections)
}

/// Splits names at whitespace and commas; a quoted string is one name.
fn pmu_names(text: &str) -> Vec<&str> {
    let parts = text.split('"').enumerate().map(|(index, part)| (index % 2 == 1, part));
    let names =
        parts.flat_map(|(is_quoted, part)| part.split(move |c| !is_quoted && matches!(c, ' ' | '\t' | ',')));
    names.filter(|name| !name.is_empty()).collect()
}

impl<'a> ConfLine<'a> {
    fn option(&mut self, word: &'a str, kind: &SectionKind<'a>) -> Result<(), String> {
        match (word, kind) {
            ("cpu", _) => self.place = CpuPlacement::Everywhere,
            ("cpu_rr", _) => self.place = CpuPlacement::NextCpu,
            ("node", _) => self.place = CpuPlacement::FirstOfNodes,
            ("node_rr", _) => self.place = CpuPlacement::NextOfNodes,
            ("perf_scale", SectionKind::Derived(_)) => self.scale = Some(Scale::Sysfs),
            _ => match (word.parse::<u32>(), word.parse::<f64>(), word.split_once([':', '=']), kind) {
                // A number without a decimal point is a CPU, even in derived events.
                (Ok(cpu), ..) => self.place = CpuPlacement::Cpu(cpu),
                (_, Ok(scale), _, SectionKind::Derived(_)) if scale.is_finite() => {
                    self.scale = Some(Scale::Factor(scale))
                }
                (_, _, Some(("rawcode", code)), SectionKind::Pmus(_)) => {
                    let digits = code.strip_prefix("0x").unwrap_or(code);
                    u64::from_str_radix(digits, 16)
                        .map_err(|_| format!("`{word}` is not a hexadecimal number"))?;
                    self.code = Some(digits);
                }
                (_, _, Some(parameter), SectionKind::Dynamic) => self.parameters.push(parameter),
                _ => return Err(format!("unknown word `{word}` after an event")),
            },
        }
        Ok(())
    }

    /// The events of this line, or the reason why it cannot be counted.
    fn groups(
        &self,
        is_dynamic: bool,
        host: &Host,
        parser: &mut EventParser<'_>,
        places: &mut PlacementState,
    ) -> Result<Vec<EventGroup>, String> {
        let mut groups = match is_dynamic {
            true => parser.parse(&self.dynamic(host)?).map_err(|error| error.message)?,
            false => self.fixed(parser)?,
        };
        let cpus = places.take(self.place)?;
        for event in groups.iter_mut().flat_map(|group| &mut group.events) {
            self.event.clone_into(&mut event.name);
            // A package's PMU already selects one CPU per package.
            if !event.system_wide || matches!(self.place, CpuPlacement::Cpu(_)) {
                event.cpus = cpus.clone().or(event.cpus.take());
            }
        }
        Ok(groups)
    }

    /// Resolves a sysfs event.
    fn dynamic(&self, host: &Host) -> Result<String, String> {
        let (pmu, event) = self.event.split_once('.').ok_or("the name does not have the form PMU.EVENT")?;
        if pmu == "software" {
            return Ok(event.to_owned());
        }
        let found = host.pmu(pmu).ok_or_else(|| format!("this machine has no PMU {pmu}"))?;
        if !found.events().iter().any(|own| own == event) {
            return Err(format!("the PMU {pmu} has no event {event}"));
        }
        let parameters = self.parameters.iter().map(|(name, value)| format!(",{name}={value}"));
        Ok(format!("{pmu}/{event}{}/", parameters.collect::<String>()))
    }

    /// Resolves a libpfm4, raw, RAPL or pmc event.
    fn fixed(&self, parser: &mut EventParser<'_>) -> Result<Vec<EventGroup>, String> {
        let mut parse = |text: &str| parser.parse(text).map_err(|error| error.message);
        if self.event.starts_with("RAW:") {
            let code = self.code.ok_or("a RAW: event requires rawcode=0x…")?;
            // The agent excludes the hypervisor and guests.
            return parse(&format!("r{code}:ukH"));
        }
        if let Some(register) = self.event.strip_prefix("RAPL:") {
            let known = RAPL.iter().find(|(own, _)| *own == register);
            let (_, event) = known
                .ok_or_else(|| "it is a package limit, not a counter; see /sys/class/powercap".to_owned())?;
            return parse(&format!("power/{event}/"));
        }
        match (to_kernel_event(self.event), of_model(self.event)) {
            (Some(Ok(text)), None) => parse(&text),
            (Some(Ok(text)), Some(name)) => parse(&text).or_else(|why| parse(&name).map_err(|_| why)),
            (Some(Err(why)), name) => name.and_then(|name| parse(&name).ok()).ok_or(why),
            // A name that the library does not know may be pmc's own name in upper case.
            (None, Some(name)) => parse(&name).or_else(|why| parse(bare(self.event)).map_err(|_| why)),
            (None, None) => parse(bare(self.event)),
        }
    }
}

/// The agent's names for energy registers, and the matching kernel events.
const RAPL: [(&str, &str); 4] = [
    ("PACKAGE_ENERGY", "energy-pkg"),
    ("PP0_ENERGY", "energy-cores"),
    ("PP1_ENERGY", "energy-gpu"),
    ("DRAM_ENERGY", "energy-ram"),
];

/// libpfm4 names that mean the same event on all CPUs that have them.
const EQUALS: [(&str, &str); 12] = [
    ("UNHALTED_CORE_CYCLES", "cycles"),
    ("CPU_CLK_UNHALTED", "cycles"),
    ("CYCLES_NOT_IN_HALT", "cycles"),
    ("INSTRUCTION_RETIRED", "instructions"),
    ("INSTRUCTIONS_RETIRED", "instructions"),
    ("RETIRED_INSTRUCTIONS", "instructions"),
    ("UNHALTED_REFERENCE_CYCLES", "ref-cycles"),
    ("LLC_REFERENCES", "cache-references"),
    ("LLC_MISSES", "cache-misses"),
    ("BRANCH_INSTRUCTIONS_RETIRED", "branches"),
    ("MISPREDICTED_BRANCH_RETIRED", "branch-misses"),
    ("BRANCH_MISSES_RETIRED", "branch-misses"),
];

/// The event without its libpfm4 PMU prefix.
fn bare(event: &str) -> &str {
    event.split_once("::").map_or(event, |(_, event)| event)
}

/// The name if it is a CPU-specific libpfm4 name, which has a PMU prefix or upper case before the first
/// colon. Unit masks and modifiers after the colon may be in lower case.
fn of_model(event: &str) -> Option<String> {
    match event.split_once("::") {
        Some(("perf", _)) => None,
        Some(_) => Some(event.to_owned()),
        None => {
            let name = event.split(':').next().unwrap_or_default();
            (!name.contains(|c: char| c.is_ascii_lowercase())).then(|| format!("::{event}"))
        }
    }
}

/// Translates `PMU::EVENT:UMASK:MODIFIER` to pmc's event text if the kernel has its own name for the event.
/// Returns an error for an uncore event without such a name, and `None` for any other event.
fn to_kernel_event(text: &str) -> Option<Result<String, String>> {
    let (pmu, rest) = text.split_once("::").unwrap_or(("", text));
    let mut parts = rest.split(':');
    let event = parts.next().unwrap_or_default();
    let (mut letters, mut qualifiers, mut masks) = (String::new(), String::new(), Vec::new());
    for part in parts {
        match part.split_once('=').unwrap_or((part, "1")) {
            ("u" | "k" | "h", "1") => letters.push_str(part.get(..1).unwrap_or_default()),
            ("e", "1") => qualifiers.push_str(",edge"),
            ("i", "1") => qualifiers.push_str(",inv"),
            ("t", "1") => qualifiers.push_str(",any"),
            ("c", number) => qualifiers.push_str(&format!(",cmask={number}")),
            _ => masks.push(part),
        }
    }
    let name = match (uncore_pmu(pmu), event.split_once("PERF_COUNT_")) {
        (Some(device), _) => match (event, masks.as_slice()) {
            (_, []) if event.ends_with("_CLOCKTICKS") => format!("{device}/clockticks/"),
            ("UNC_M_CAS_COUNT", ["RD"]) => format!("{device}/cas_count_read/"),
            ("UNC_M_CAS_COUNT", ["WR"]) => format!("{device}/cas_count_write/"),
            _ => {
                return Some(Err(format!(
                    "the kernel has no name for this event; use {device}/event=…,umask=…/"
                )));
            }
        },
        (None, Some(("", generic))) => generic_name(generic),
        (None, _) => {
            let (_, generic) = EQUALS.iter().find(|(own, _)| *own == event && masks.is_empty())?;
            (*generic).to_owned()
        }
    };
    let colon = if letters.is_empty() { "" } else { ":" };
    Some(Ok(format!("{name}{colon}{letters}{qualifiers}")))
}

/// `HW_CPU_CYCLES` → `cpu-cycles`.
fn generic_name(name: &str) -> String {
    match name.split_once('_').map_or(name, |(_, name)| name) {
        "REF_CPU_CYCLES" => "ref-cycles".to_owned(),
        "PAGE_FAULTS_MIN" => "minor-faults".to_owned(),
        "PAGE_FAULTS_MAJ" => "major-faults".to_owned(),
        other => other.to_ascii_lowercase().replace('_', "-"),
    }
}

/// `snbep_unc_imc0` → `uncore_imc_0`.
fn uncore_pmu(name: &str) -> Option<String> {
    let (_, unit) = name.split_once("_unc_")?;
    Some(uncore_unit(unit).1)
}

/// The kernel's names of Intel core families (`caps/pmu_name`), and the prefixes of libpfm4's names for
/// them.
const INTEL: [(&str, &str); 17] = [
    ("core2", "core"),
    ("nehalem", "nhm"),
    ("westmere", "wsm"),
    ("sandybridge", "snb"),
    ("ivybridge", "ivb"),
    ("haswell", "hsw"),
    ("broadwell", "bdw"),
    ("skylake", "skl"),
    ("skylake", "skx"),
    ("skylake", "clx"),
    ("icelake", "icl"),
    ("icelake", "icx"),
    ("sapphire_rapids", "spr"),
    ("alderlake_hybrid", "adl"),
    ("bonnell", "atom"),
    ("silvermont", "slm"),
    ("goldmont", "glm"),
];

/// The prefixes of libpfm4's names for this machine's core PMUs; empty if there are no counters.
fn core_names(host: &Host) -> Vec<String> {
    let Some(pmu) = host.core_pmu() else { return Vec::new() };
    let cpuinfo = host.text("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    match field("vendor_id") {
        Some("GenuineIntel") => {
            let own = pmu.capability("pmu_name").unwrap_or_default();
            let family = INTEL.iter().filter(|(kernel, _)| *kernel == own).map(|(_, name)| *name);
            family.chain(["ix86arch"]).map(str::to_owned).collect()
        }
        Some("AuthenticAMD") => {
            let family = field("cpu family").and_then(|family| family.parse::<u32>().ok());
            family.map(|family| format!("amd64_fam{family:02x}h")).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the machine has a PMU with this libpfm4 or kernel name.
fn is_here(name: &str, host: &Host, core: &[String]) -> bool {
    let is_core = |own: &String| {
        name.strip_prefix(own.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    name == "perf"
        || core.iter().any(is_core)
        || host.pmu(&uncore_pmu(name).unwrap_or_else(|| name.to_owned())).is_some()
}

/// The online CPUs, with the state of the round-robin placements.
struct PlacementState {
    online: CpuList,
    nodes: Vec<Vec<u32>>,
    next_cpu: usize,
    next_of_nodes: usize,
}

impl PlacementState {
    fn new(host: &Host) -> Self {
        let topology = Topology::read(host);
        let mut numbers: Vec<Option<u32>> = topology.iter().map(|(_, location)| location.node).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |node| {
            topology.iter().filter(move |(_, location)| location.node == node).map(|(cpu, _)| cpu).collect()
        };
        Self {
            online: host.online_cpus(),
            nodes: numbers.into_iter().map(of).collect(),
            next_cpu: 0,
            next_of_nodes: 0,
        }
    }

    /// The CPUs for the next event; `None` means all.
    fn take(&mut self, place: CpuPlacement) -> Result<Option<CpuList>, String> {
        let cpus: CpuList = match place {
            CpuPlacement::Everywhere => return Ok(None),
            CpuPlacement::Cpu(cpu) if self.online.contains(cpu) => [cpu].into_iter().collect(),
            CpuPlacement::Cpu(cpu) => return Err(format!("CPU {cpu} is not online")),
            CpuPlacement::NextCpu => {
                self.next_cpu += 1;
                self.online.iter().nth((self.next_cpu - 1) % self.online.len().max(1)).into_iter().collect()
            }
            CpuPlacement::FirstOfNodes => {
                self.nodes.iter().filter_map(|cpus| cpus.first().copied()).collect()
            }
            CpuPlacement::NextOfNodes => {
                self.next_of_nodes += 1;
                self.nodes
                    .iter()
                    .filter_map(|cpus| cpus.get((self.next_of_nodes - 1) % cpus.len().max(1)).copied())
                    .collect()
            }
        };
        Ok(Some(cpus))
    }
}
