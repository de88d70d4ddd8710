//! The kernel's performance monitoring units, from `/sys/bus/event_source/devices`.
//!
//! Provides type numbers, formats (the request bits of each term), named events, and the CPUs on which to
//! open the events of a unit. A [`Pmu`] reads files on demand, so opening an event reads only the few files
//! that it needs. `event` parses event text.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Host;
use super::cpulist::CpuList;

/// The kernel's directory of PMUs.
const DEVICES: &str = "/sys/bus/event_source/devices";

/// The PMU type of the persistent-events patch series (2013, never merged). A mainline kernel may assign this
/// number to any other PMU, so pmc uses it only between its own processes and never passes it to the kernel.
const PERSISTENT_TYPE: u32 = 6;
/// The PMU name in that series, used for both a kernel's PMU and a holder's run directory.
pub const PERSISTENT: &str = "persistent";

/// Maximum size of a file. A file in sysfs has at most one page, so a longer file is invalid.
const LONGEST_FILE: usize = 64 * 1024;

/// A PMU: a directory in `/sys/bus/event_source/devices`.
#[derive(Debug, Clone)]
pub struct Pmu {
    /// The directory's name: `cpu`, `uncore_imc_0`, `armv8_pmuv3_0`.
    pub name: String,
    /// `attr.type` of its events.
    pub kind: u32,
    dir: PathBuf,
    /// Whether this is a holder's run directory instead of the kernel's directory.
    is_published: bool,
}

/// The request bits of a term: the content of `format/TERM`.
///
/// ```text
/// config1:0-7,32-35        value  b11 … b8   b7 … b0
///                                  │          └──────► word 7, bits 7…0
///                                  └─────────────────► word 7, bits 35…32
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermFormat {
    /// Index of the u64 in `perf_event_attr`: see [`crate::abi::attr`].
    pub word: usize,
    /// The term's bits.
    pub mask: u64,
}

/// A named event: `events/NAME` and its accompanying files.
#[derive(Debug, Clone, PartialEq)]
pub struct PmuEvent {
    /// The event's terms, such as `event=0xcd,umask=0x1,ldlat=3`.
    pub terms: String,
    /// Factor that converts the count to `unit`; 1 without a `.scale` file.
    pub scale: f64,
    /// Unit of the scaled value; empty without a `.unit` file.
    pub unit: String,
    /// Whether a `.snapshot` file contains 1, which means that the value is a level, not a count.
    pub snapshot: bool,
    /// Whether a `.per-pkg` file contains 1, which means that one CPU counts for the whole package.
    pub per_package: bool,
}

/// An invalid format file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the kernel describes it as `{content}`, which is not config:BITS, config1:BITS … config4:BITS or \
     attrN:BITS"
)]
pub struct BadFormat {
    content: String,
}

impl Host {
    /// The names of all PMUs, in natural order (`imc_2` before `imc_10`). Reads one directory.
    pub fn pmu_names(&self) -> Vec<String> {
        names_in(&self.path(DEVICES))
    }

    /// The PMU with this name. Reads only its `type` file.
    pub fn pmu(&self, name: &str) -> Option<Pmu> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return None;
        }
        let dir = self.path(DEVICES).join(name);
        match text(&dir.join("type")) {
            Some(kind) => {
                let kind = kind.trim().parse().ok()?;
                Some(Pmu { name: name.to_owned(), kind, dir, is_published: false })
            }
            None if name == PERSISTENT => self.published_pmus().into_iter().next(),
            None => None,
        }
    }

    /// The core PMUs of a hybrid machine (`cpu_core` and `cpu_atom`, or several `armv8_…`), in the order of
    /// their type numbers. Empty if all cores are the same. Reads one directory, and the files of possible
    /// core PMUs.
    pub fn hybrid_pmus(&self) -> Vec<Pmu> {
        let mut cores: Vec<Pmu> = self
            .pmu_names()
            .into_iter()
            .filter(|name| name.starts_with("cpu_") || name.starts_with("armv") || name.starts_with("apple_"))
            .filter_map(|name| self.pmu(&name))
            .filter(|pmu| pmu.core_cpus().is_some_and(|cpus| !cpus.is_empty()))
            .collect();
        cores.sort_by_key(|pmu| pmu.kind);
        if cores.len() < 2 { Vec::new() } else { cores }
    }

    /// The core PMU of a machine that is not hybrid: `cpu`, or an architecture-specific name.
    pub fn core_pmu(&self) -> Option<Pmu> {
        self.pmu("cpu").or_else(|| {
            let names = self.pmu_names();
            let name = names
                .iter()
                .find(|n| n.starts_with("cpu_") || n.starts_with("armv") || n.starts_with("apple_"))?;
            self.pmu(name)
        })
    }
}

impl Pmu {
    /// The PMU for the run directory of a holder of persistent events. Its `type` file contains a value that
    /// is specific to pmc.
    pub(super) fn published(dir: PathBuf) -> Option<Self> {
        text(&dir.join("type"))?;
        Some(Self { name: PERSISTENT.to_owned(), kind: PERSISTENT_TYPE, dir, is_published: true })
    }

    /// The run directory, if a holder publishes these events. Their requests must never be passed to the
    /// kernel, where the bits have a different meaning.
    pub fn run_directory(&self) -> Option<&Path> {
        self.is_published.then_some(&self.dir)
    }

    /// The ID of an event that a holder publishes.
    pub fn published_id(&self, event: &str) -> Option<u64> {
        let terms = self.event(event)?.terms;
        terms.split(',').find_map(|term| term.trim().strip_prefix("config="))?.parse().ok()
    }

    /// The names of the PMU's terms (`format/*`), sorted.
    pub fn terms(&self) -> Vec<String> {
        names_in(&self.dir.join("format"))
    }

    /// The format of a term; `None` if the term does not exist.
    ///
    /// # Errors
    /// Fails if the kernel's description of the term is invalid.
    pub fn format(&self, term: &str) -> Option<Result<TermFormat, BadFormat>> {
        let text = self.entry("format", term)?;
        Some(text.parse())
    }

    /// The content of `format/TERM`, for listings.
    pub fn format_text(&self, term: &str) -> Option<String> {
        self.entry("format", term)
    }

    /// The names of the PMU's events (`events/*` without the files that describe them), sorted.
    pub fn events(&self) -> Vec<String> {
        let mut names = names_in(&self.dir.join("events"));
        names.retain(|name| !is_description(name));
        names
    }

    /// A named event.
    pub fn event(&self, name: &str) -> Option<PmuEvent> {
        if is_description(name) {
            return None;
        }
        let terms = self.entry("events", name)?;
        let beside = |suffix: &str| self.entry("events", &format!("{name}{suffix}"));
        let set = |suffix: &str| beside(suffix).is_some_and(|t| t.trim() == "1");
        let scale = beside(".scale").and_then(|t| t.trim().parse::<f64>().ok()).filter(|s| s.is_finite());
        Some(PmuEvent {
            terms,
            scale: scale.unwrap_or(1.0),
            unit: beside(".unit").unwrap_or_default(),
            snapshot: set(".snapshot"),
            per_package: set(".per-pkg"),
        })
    }

    /// The CPUs designated for the device or package (`cpumask`). A PMU with a `cpumask` cannot count
    /// individual tasks. `None` for core PMUs.
    pub fn cpumask(&self) -> Option<CpuList> {
        if self.is_per_core() { None } else { text(&self.dir.join("cpumask"))?.parse().ok() }
    }

    /// The CPUs whose cores have this PMU (`cpus`). It counts only there, even for tasks.
    pub fn core_cpus(&self) -> Option<CpuList> {
        let file = if self.is_per_core() { "cpumask" } else { "cpus" };
        text(&self.dir.join(file))?.parse().ok()
    }

    /// Arm's statistical profiling is a core PMU and follows tasks, but lists its CPUs like a device.
    fn is_per_core(&self) -> bool {
        self.name.starts_with("arm_spe")
    }

    /// A value in the PMU's `caps` directory, such as `max_precise`.
    pub fn capability(&self, name: &str) -> Option<String> {
        self.entry("caps", name)
    }

    /// A driver-specific file in the PMU's directory, such as Intel PT's `max_nonturbo_ratio`.
    pub fn attribute(&self, name: &str) -> Option<String> {
        self.entry("", name)
    }

    /// The names of the PMU's capabilities (`caps/*`), sorted.
    pub fn capabilities(&self) -> Vec<String> {
        names_in(&self.dir.join("caps"))
    }

    fn entry(&self, folder: &str, name: &str) -> Option<String> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return None;
        }
        text(&self.dir.join(folder).join(name))
    }
}

impl TermFormat {
    /// The largest value that fits into the term's bits.
    pub fn largest(&self) -> u64 {
        match self.mask.count_ones() {
            64 => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }

    /// Distributes the value's bits over the mask's bits, lowest first.
    pub fn place(&self, value: u64) -> u64 {
        let (mut placed, mut rest, mut mask) = (0, value, self.mask);
        while mask != 0 {
            let lowest = mask & mask.wrapping_neg();
            if rest & 1 == 1 {
                placed |= lowest;
            }
            rest >>= 1;
            mask ^= lowest;
        }
        placed
    }
}

impl std::str::FromStr for TermFormat {
    type Err = BadFormat;

    /// Parses `config:0-7,32-35`, `config1:0`, `attr5:23`.
    fn from_str(content: &str) -> Result<Self, BadFormat> {
        let parse = || {
            let (word, bits) = content.trim().split_once(':')?;
            let word = match word {
                "config" => 1,
                "config1" => 7,
                "config2" => 8,
                "config3" => 16,
                "config4" => 17,
                _ => word.strip_prefix("attr")?.parse().ok().filter(|&w| w < crate::abi::attr::WORDS)?,
            };
            let mut mask = 0u64;
            for range in bits.split(',') {
                let (low, high) = range.split_once('-').unwrap_or((range, range));
                let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
                if low > high || high > 63 {
                    return None;
                }
                mask |= (u64::MAX >> (63 - (high - low))) << low;
            }
            Some(Self { word, mask })
        };
        parse().ok_or_else(|| BadFormat { content: content.chars().take(80).collect() })
    }
}

impl fmt::Display for TermFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word {
            1 => f.write_str("config:")?,
            7 => f.write_str("config1:")?,
            8 => f.write_str("config2:")?,
            16 => f.write_str("config3:")?,
            17 => f.write_str("config4:")?,
            word => write!(f, "attr{word}:")?,
        }
        let bits: CpuList = (0..64).filter(|bit| self.mask >> bit & 1 == 1).collect();
        write!(f, "{bits}")
    }
}

/// Whether a file in `events` describes another one. Event names may contain dots, too.
fn is_description(name: &str) -> bool {
    [".scale", ".unit", ".snapshot", ".per-pkg", ".attr"].iter().any(|suffix| name.ends_with(suffix))
}

fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    (text.len() <= LONGEST_FILE).then(|| text.trim_end_matches(['\n', '\0']).to_owned())
}

/// The names in a directory, in natural order. Skips hidden files.
pub(super) fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort_by_cached_key(|name| counting_key(name));
    names
}

/// Sort key that orders names with the same stem by their trailing number.
fn counting_key(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[stem.len()..].parse() {
        Ok(number) => (stem.to_owned(), number),
        Err(_) => (name.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_parse_and_print() {
        for text in
            ["config:0-7", "config:0-7,32-35", "config1:1,6-10,44", "attr5:23", "config2:0-63", "config4:63"]
        {
            assert_eq!(text.parse::<TermFormat>().unwrap().to_string(), text);
        }
        for text in
            ["", "config", "config:", "config:64", "config:9-3", "attr18:1", "config5:1", "config:1-", "x:1"]
        {
            assert!(text.parse::<TermFormat>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_scattered_over_bit_ranges() {
        let format: TermFormat = "config:0-7,32-35".parse().unwrap();
        assert_eq!(format.place(0x28f), 0x2_0000_008f);
        assert_eq!(format.largest(), 0xfff);
        assert_eq!("config1:0-63".parse::<TermFormat>().unwrap().largest(), u64::MAX);
    }

    #[test]
    fn instances_are_sorted_numerically() {
        let mut names = ["imc_10", "imc_2", "cpu", "imc_1"].map(str::to_owned);
        names.sort_by_cached_key(|n| counting_key(n));
        assert_eq!(names, ["cpu", "imc_1", "imc_2", "imc_10"]);
    }
}
