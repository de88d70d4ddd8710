//! Selects the tables for this machine's CPUs, by looking up the CPU's ID in `mapfile.tsv`.
//!
//! Takes a [`Host`]; returns [`Model`]s. For each PMU, the first matching line of the file applies. The file
//! distinguishes the kinds of hybrid cores by CPUID; pmc uses the kernel's PMUs (`cpu_core`, `cpu_atom`,
//! `cpu_lowpower`) instead, so that it does not have to query each CPU. An Arm ID identifies one kind of
//! core, without variant and revision; the PMU's CPU list determines the cores on which it counts.

use std::path::PathBuf;

use super::row::rows;
use super::table::{self, PACKED, VendorTable, unpack};
use pmc_sys::host::Host;
use pmc_sys::host::cpu::event_table_id;
use pmc_sys::host::pmu::Pmu;

/// The events and metrics of one kind of core, or of the uncore.
#[derive(Debug)]
pub struct Model {
    /// The table's name for the model: `skylakex`, `amdzen4`, `neoverse-n1`.
    pub name: String,
    /// The sysfs name of its core PMU: `cpu`, `cpu_core`, `armv8_pmuv3_0`; empty for the uncore.
    pub pmu: String,
    pub(super) tables: Vec<VendorTable>,
}

/// Numbers of entries in a model's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelEntryCounts {
    /// Events of cores.
    pub cores: usize,
    /// Events of other PMUs.
    pub uncore: usize,
    /// Metrics.
    pub metrics: usize,
}

/// The models of a machine, core models first. `id` is the ID of the first CPU. `is_here` is true if this CPU
/// belongs to the running machine; in this case, its PMUs show whether it has other kinds of cores.
pub(super) fn models(host: &Host, id: &str, is_here: bool) -> Vec<Model> {
    let maps = ModelLists::read(host);
    if let Some(core) = arm_core(id) {
        let pmus = if is_here { arm_pmus(host) } else { Vec::new() };
        return arm_models(host, &maps, pmus, core);
    }
    let mut models: Vec<Model> = Vec::new();
    for map in maps.both() {
        let known = models.len();
        for [pattern, name, pmu, _, _, files] in rows(map.text).map(|row| row.columns()) {
            if models[known..].iter().all(|model| model.pmu != pmu) && fits(pattern, id) {
                models.push(Model { name: name.to_owned(), pmu: pmu.to_owned(), tables: map.tables(files) });
            }
        }
        // Imported tables take precedence. The built-in tables supply the kinds that are missing, such as
        // metrics.
        for model in models.split_off(known) {
            match models.iter_mut().find(|own| own.pmu == model.pmu) {
                Some(own) => own.complete(model.tables),
                None => models.push(model),
            }
        }
    }
    models.sort_by_key(|model| model.pmu.is_empty());
    models
}

impl Model {
    /// Whether its events were imported.
    pub fn imported_events(&self) -> bool {
        self.tables.iter().any(|table| table.is_imported() && !table.holds_metrics())
    }

    /// Whether its metrics were imported.
    pub fn imported_metrics(&self) -> bool {
        self.tables.iter().any(|table| table.is_imported() && table.holds_metrics())
    }

    /// Counts the core events, the uncore events (AMD's tables have both), and the metrics of its tables.
    pub fn count(&self) -> ModelEntryCounts {
        let rows = |metrics: bool| {
            let tables = self.tables.iter().filter(move |table| table.holds_metrics() == metrics);
            tables.flat_map(VendorTable::rows)
        };
        let events = rows(false).count();
        let cores = rows(false).filter(|row| row.is_of_cores()).count();
        ModelEntryCounts { cores, uncore: events - cores, metrics: rows(true).count() }
    }

    /// Adds tables of kinds that the model does not have yet.
    fn complete(&mut self, tables: Vec<VendorTable>) {
        for table in tables {
            if self.tables.iter().all(|own| own.holds_metrics() != table.holds_metrics()) {
                self.tables.push(table);
            }
        }
    }
}

/// The two lists of models: imported by the user, and built in.
struct ModelLists {
    folder: PathBuf,
    imported: String,
    own: String,
}

/// One of the two lists.
struct ModelList<'a> {
    text: &'a str,
    folder: Option<&'a PathBuf>,
}

impl ModelLists {
    fn read(host: &Host) -> Self {
        let folder = host.imported_events().unwrap_or_default();
        let imported = table::imported(&folder, "mapfile.tsv").unwrap_or_default();
        Self { folder, imported, own: unpack(PACKED, "mapfile.tsv").unwrap_or_default() }
    }

    fn both(&self) -> [ModelList<'_>; 2] {
        [
            ModelList { text: &self.imported, folder: Some(&self.folder) },
            ModelList { text: &self.own, folder: None },
        ]
    }
}

impl ModelList<'_> {
    fn tables(&self, files: &str) -> Vec<VendorTable> {
        let table = |file| match self.folder {
            Some(folder) => VendorTable::imported(folder, file),
            None => VendorTable::parse(file),
        };
        files.split(',').map(table).collect()
    }
}

/// Whether an ID matches the pattern in a line of the map, an extended regular expression. It must match from
/// the start of the ID up to its end or a `-`.
pub(super) fn fits(pattern: &str, id: &str) -> bool {
    // For most lines, comparing the literal prefix is enough to rule out a match.
    let plain = pattern.find(['[', '(', '.', '\\']).unwrap_or(pattern.len());
    id.starts_with(&pattern[..plain])
        && regex_lite::Regex::new(&format!("^(?:{pattern})(?:-|$)")).is_ok_and(|regex| regex.is_match(id))
}

/// Implementer and part number of an Arm core, from a hexadecimal MIDR.
fn arm_core(id: &str) -> Option<(u64, u64)> {
    let midr = u64::from_str_radix(id.strip_prefix("0x")?, 16).ok()?;
    Some((midr >> 24 & 0xff, midr >> 4 & 0xfff))
}

/// The core PMUs.
fn arm_pmus(host: &Host) -> Vec<Pmu> {
    let mut pmus = host.hybrid_pmus();
    if pmus.is_empty() {
        pmus.extend(host.core_pmu());
    }
    pmus
}

/// One model for each core PMU or, if the machine lists no core PMU, one model with the usual PMU name.
fn arm_models(host: &Host, maps: &ModelLists, pmus: Vec<Pmu>, first: (u64, u64)) -> Vec<Model> {
    let mut cores: Vec<(String, (u64, u64))> = pmus
        .into_iter()
        .map(|pmu| {
            let cpu = pmu.core_cpus().and_then(|cpus| cpus.first());
            let id = cpu.and_then(|cpu| event_table_id(host, cpu));
            (pmu.name, id.as_deref().and_then(arm_core).unwrap_or(first))
        })
        .collect();
    if cores.is_empty() {
        cores.push(("armv8_pmuv3_0".to_owned(), first));
    }
    let model = |(pmu, core): (String, (u64, u64))| {
        let of_it = |columns: &[&str; 6]| arm_core(columns[0]) == Some(core);
        maps.both().into_iter().find_map(|map| {
            let [_, name, _, _, _, files] = rows(map.text).map(|row| row.columns()).find(of_it)?;
            let tables = match map.folder {
                Some(_) => map.tables(files),
                None => vec![VendorTable::of_arm(name)],
            };
            Some(Model { name: name.to_owned(), pmu: pmu.clone(), tables })
        })
    };
    cores.into_iter().filter_map(model).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::vendor::Vendor;
    use crate::kit::test_data;

    /// The PMU and name of each model for an ID, on a machine without PMUs.
    fn models_of(id: &str) -> Vec<String> {
        let host = Host::rooted("/nonexistent");
        models(&host, id, true).iter().map(|m| format!("{}/{}", m.pmu, m.name)).collect()
    }

    #[test]
    fn first_matching_line_wins() {
        assert_eq!(models_of("GenuineIntel-6-55-4"), ["cpu/skylakex", "/skylakex"]);
        assert_eq!(models_of("GenuineIntel-6-55-7"), ["cpu/cascadelakex", "/cascadelakex"], "by stepping");
        assert_eq!(models_of("GenuineIntel-6-5"), [""; 0], "the model must match in full");
        assert_eq!(models_of("AuthenticAMD-23-18-0"), ["cpu/amdzen1"], "before the line of all of family 23");
        assert_eq!(models_of("AuthenticAMD-23-8-2"), ["cpu/amdzen1"]);
        assert_eq!(models_of("AuthenticAMD-23-71-0"), ["cpu/amdzen2"]);
        assert_eq!(models_of("AuthenticAMD-25-21-2"), ["cpu/amdzen3"]);
        assert_eq!(models_of("AuthenticAMD-25-61-2"), ["cpu/amdzen4"]);
        assert_eq!(models_of("AuthenticAMD-26-44-0"), ["cpu/amdzen5"]);
        assert_eq!(models_of("AuthenticAMD-26-50-0"), ["cpu/amdzen6"]);
        assert_eq!(models_of("HygonGenuine-24-0-1"), [""; 0]);
        assert_eq!(models_of("GenuineIntel-6-BE-0"), ["cpu/alderlaken", "/alderlaken"], "no hybrid");
    }

    #[test]
    fn events_are_counted_per_pmu() {
        let host = Host::rooted("/nonexistent");
        for (id, wanted) in [
            ("AuthenticAMD-25-61-2", &[("cpu", 336, 166, 0)][..]),
            ("GenuineIntel-6-55-4", &[("cpu", 470, 0, 260), ("", 0, 3308, 0)]),
        ] {
            let models = models(&host, id, true);
            let counts = models.iter().map(|model| (model.pmu.as_str(), model.count()));
            let counts: Vec<_> =
                counts.map(|(pmu, count)| (pmu, count.cores, count.uncore, count.metrics)).collect();
            assert_eq!(counts, wanted, "{id}");
        }
    }

    #[test]
    fn core_types_have_their_own_tables() {
        assert_eq!(
            models_of("GenuineIntel-6-97-2"),
            ["cpu_core/alderlake", "cpu_atom/alderlake", "/alderlake"]
        );
        let host = Host::rooted("/nonexistent");
        let arrow_lake_h = models(&host, "GenuineIntel-6-C5-2", true);
        let named = |pmu: &str, name: &str| {
            let model = arrow_lake_h.iter().find(|model| model.pmu == pmu).unwrap();
            model.tables.iter().any(|table| table.rows().any(|row| row.name() == name))
        };
        // The two kinds of small cores, Skymont and Crestmont, differ only in their native model IDs.
        assert!(named("cpu_atom", "ARITH.IDIV_ACTIVE") && !named("cpu_lowpower", "ARITH.IDIV_ACTIVE"));
        assert!(named("cpu_lowpower", "INST_RETIRED.ANY"));
    }

    #[test]
    fn arm_is_matched_by_implementer_and_part() {
        for id in ["0x00000000410fd0c0", "0x00000000413fd0c1", "0x410fd0cf"] {
            assert_eq!(models_of(id), ["armv8_pmuv3_0/neoverse-n1"], "{id}: whatever variant and revision");
        }
        assert_eq!(models_of("0x00000000420fd0c0"), [""; 0], "another maker's");
        let tree = |name: &str| Host::rooted(test_data(&format!("sysfs/{name}")));
        let vendor = Vendor::find(&tree("arm-server"));
        assert_eq!(vendor.id(), Some("0x00000000413fd0c1"), "from /proc/cpuinfo");
        assert_eq!(vendor.models()[0].name, "neoverse-n1");
        assert_eq!(vendor.named("cpu_cycles")[0].terms, "event=0x11");
    }
}
