//! Vendor events and metrics: names from the vendors' manuals, with their codes.
//!
//! Takes a [`Host`]; returns the unmodified table rows for its CPUs. `names` interprets a row's terms, and
//! `profile` interprets a metric's formula. Tables are unpacked on demand.
//!
//! ```text
//! tables/*.tsv ──packed by a test──► table.bin ──┬─model (which CPU is it?)──► rows of its files
//! the user's copy ──import──► its own tables ────┘ and these first
//! ```
//!
//! The tables come from Intel's perfmon (BSD-3-Clause) and Arm's data (Apache-2.0), whose notices are in
//! the same directory. AMD's tables contain only names and codes.

mod arm;
pub mod import;
mod model;
mod row;
pub mod table;

pub(crate) use model::Model;

use std::collections::HashMap;
use std::sync::OnceLock;

use pmc_sys::host::Host;
use pmc_sys::host::cpu::{event_table_id, event_table_id_of, named_id};

/// The tables for this machine's CPUs. This is cheap to create, because files are unpacked on first use.
#[derive(Debug)]
pub struct Vendor {
    id: Option<String>,
    models: Vec<Model>,
    /// Maps each lower-case event name to the model's index, the table's index in the model, and the row's
    /// byte offset.
    index: OnceLock<HashMap<String, Vec<[usize; 3]>>>,
}

/// An event from a table, with all text unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorEvent<'a> {
    /// The model of the table: `skylakex`.
    pub(crate) model: &'a str,
    /// Whether the table was imported.
    pub(crate) is_imported: bool,
    /// The vendor's spelling: `MEM_LOAD_RETIRED.L3_MISS`, `ls_any_fills_from_sys.dram_io_all`.
    pub name: &'a str,
    /// The PMU's sysfs name without an instance number (`uncore_cha`). Never empty.
    pub pmu: &'a str,
    /// The terms, as in sysfs files: `event=0xd1,umask=0x20`.
    pub(crate) terms: &'a str,
    /// The counters that the event can use: `0-3`, `F1` for fixed counter 1, `F` for the fixed counter of an
    /// uncore unit; empty if unknown.
    pub(crate) counters: &'a str,
    /// Flags, one letter each: `p` supports precise samples, `P` requires them, `o` needs an offcore
    /// register, `t` must be counted separately, `f` free running, `d` deprecated, `x` experimental …
    pub(crate) flags: &'a str,
    /// The vendor's recommended sampling period.
    pub(crate) period: Option<u64>,
    /// `KEY=VALUE` words: `msr=0x3f6`, `filter=…`.
    pub extra: &'a str,
    /// The description, if an imported table contains one.
    pub(crate) text: Option<&'a str>,
}

/// A metric from a table, with all text unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorMetric<'a> {
    /// The metric's name: `tma_backend_bound`.
    pub name: &'a str,
    /// The core PMU of the table; empty for uncore metrics.
    pub pmu: &'a str,
    /// A factor and a unit: `100%`.
    pub scale: &'a str,
    /// Groups, separated by `;`.
    pub groups: &'a str,
    /// Level in the top-down tree; 1 for its roots.
    pub level: Option<u8>,
    /// The parent metric in that tree.
    pub parent: &'a str,
    /// The formula, in perf's language.
    pub expr: &'a str,
    /// The condition under which the value is noteworthy, in the same language.
    pub threshold: &'a str,
    /// The events to sample with.
    pub locate: &'a str,
    /// The unit in which the metric is expressed: slots or clocks.
    pub(crate) domain: &'a str,
    /// The levels at which the metric is valid (thread, core, socket …).
    pub(crate) resolution: &'a str,
    /// The vendor's category of the metric.
    pub(crate) category: &'a str,
    /// The description, if an imported table contains one.
    pub text: Option<&'a str>,
}

impl Vendor {
    /// Finds the tables for the CPU that `PMC_CPUID` or `PERF_CPUID` specifies, or else for the host's CPU.
    pub fn find(host: &Host) -> Self {
        let id = event_table_id(host, 0);
        let models = id.as_deref().map(|id| model::models(host, id, true)).unwrap_or_default();
        Self { id, models, index: OnceLock::new() }
    }

    /// Finds the tables for the CPU in a recording's header, or this machine's tables if the header cannot be
    /// interpreted. `host` is the machine that reads the recording, which may have imported tables.
    pub fn recorded(host: &Host, cpuid: &str) -> Self {
        let Some(id) = event_table_id_of(cpuid) else { return Self::find(host) };
        let models = model::models(host, &id, false);
        Self { id: Some(id), models, index: OnceLock::new() }
    }

    /// perf's ID of the CPU: `GenuineIntel-6-55-7`, `0x00000000410fd0c0`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether the user selected the CPU, which may differ from this machine's.
    pub fn is_of_named_cpu(&self) -> bool {
        named_id().is_some() && named_id() == self.id
    }

    /// Whether the CPU's ID matches this pattern, an extended regular expression as in `mapfile.tsv`.
    pub fn is(&self, pattern: &str) -> bool {
        self.id().is_some_and(|id| model::fits(pattern, id))
    }

    /// One model for each kind of core, then one for the uncore; empty if there is no table for this CPU.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// All events, in table order.
    pub fn events(&self) -> impl Iterator<Item = VendorEvent<'_>> {
        self.rows(false).map(|(model, row)| event(model, row))
    }

    /// The events with this name, ignoring case: one for each PMU that has it.
    pub fn named(&self, name: &str) -> Vec<VendorEvent<'_>> {
        let index = self.index.get_or_init(|| {
            let mut index: HashMap<String, Vec<[usize; 3]>> = HashMap::new();
            for (number, model) in self.models.iter().enumerate() {
                for (table, rows) in
                    model.tables.iter().enumerate().filter(|(_, table)| !table.holds_metrics())
                {
                    for (at, row) in rows.rows_at() {
                        index.entry(row.name().to_ascii_lowercase()).or_default().push([number, table, at]);
                    }
                }
            }
            index
        });
        let of_it = index.get(&name.to_ascii_lowercase()).into_iter().flatten();
        of_it
            .filter_map(|&[model, table, at]| {
                let model = &self.models[model];
                Some(event(model, model.tables[table].row_at(at)?))
            })
            .collect()
    }

    /// The retirement latency that the vendor measured (`NAME:R` in metrics): the average number of cycles
    /// between the previous retirement and the retirement of an instruction with this event. `None` if no
    /// table lists it.
    pub fn retire_latency(&self, event: &str) -> Option<f64> {
        let table = table::unpack(table::PACKED, "intel/retire_latency.tsv")?;
        let is_it = |[model, name, ..]: &[&str; 4]| {
            name.eq_ignore_ascii_case(event) && self.models.iter().any(|own| own.name == *model)
        };
        let [_, _, _, mean] = row::rows(&table).map(|row| row.columns()).find(is_it)?;
        mean.parse().ok()
    }

    /// All metrics, in table order.
    pub fn metrics(&self) -> impl Iterator<Item = VendorMetric<'_>> {
        self.rows(true).map(|(model, row)| {
            let [
                name,
                scale,
                groups,
                level,
                parent,
                expr,
                threshold,
                locate,
                domain,
                resolution,
                category,
                text,
            ] = row.columns();
            let (level, text) = (level.parse().ok(), said(text));
            VendorMetric {
                name,
                pmu: &model.pmu,
                scale,
                groups,
                level,
                parent,
                expr,
                threshold,
                locate,
                domain,
                resolution,
                category,
                text,
            }
        })
    }

    fn rows(&self, metrics: bool) -> impl Iterator<Item = (&Model, row::VendorRow<'_>)> {
        self.models.iter().flat_map(move |model| {
            let tables = model.tables.iter().filter(move |table| table.holds_metrics() == metrics);
            tables.flat_map(move |table| table.rows().map(move |row| (model, row)))
        })
    }
}

fn event<'a>(model: &'a Model, row: row::VendorRow<'a>) -> VendorEvent<'a> {
    let [name, pmu, terms, counters, flags, period, extra, text] = row.columns();
    let pmu = if pmu.is_empty() { &model.pmu } else { pmu };
    VendorEvent {
        model: &model.name,
        is_imported: model.imported_events(),
        name,
        pmu,
        terms,
        counters,
        flags,
        period: period.parse().ok(),
        extra,
        text: said(text),
    }
}

fn said(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(id: &str) -> Vendor {
        let models = model::models(&Host::rooted("/nonexistent"), id, true);
        Vendor { id: Some(id.to_owned()), models, index: OnceLock::new() }
    }

    #[test]
    fn names_are_case_insensitive() {
        let vendor = played("GenuineIntel-6-55-4");
        let [event] = vendor.named("offcore_response.demand_data_rd.L3_MISS.any_snoop")[..] else { panic!() };
        assert_eq!((event.pmu, event.counters), ("cpu", "0-3"));
        assert_eq!(event.terms, "event=0xb7,umask=0x1,offcore_rsp=0x3fbc000001");
        assert!(event.flags.contains('o') && event.period == Some(100_003));
        assert_eq!(vendor.named("unc_iio_data_req_of_cpu.mem_read.part0")[0].pmu, "uncore_iio");
        assert!(vendor.named("UNC_IIO_DATA_REQ_OF_CPU.MEM_READ").is_empty());
    }

    #[test]
    fn name_may_exist_on_two_core_types() {
        let vendor = played("GenuineIntel-6-97-2");
        let both = vendor.named("inst_retired.any");
        let pmus: Vec<_> = both.iter().map(|event| event.pmu).collect();
        assert_eq!(pmus, ["cpu_core", "cpu_atom"]);
        assert!(vendor.metrics().all(|metric| metric.pmu == "cpu_core"));
        let top: Vec<_> =
            vendor.metrics().filter(|m| m.groups.contains("TopdownL1")).map(|m| m.name).collect();
        assert_eq!(top, ["tma_backend_bound", "tma_bad_speculation", "tma_frontend_bound", "tma_retiring"]);
    }

    #[test]
    fn retire_latencies_depend_on_the_model() {
        let latency = |id| played(id).retire_latency("mem_load_retired.L2_HIT");
        assert_eq!(latency("GenuineIntel-6-AD-1"), Some(5.71));
        assert_eq!(latency("GenuineIntel-6-BD-1"), None);
    }

    #[test]
    fn every_map_line_has_its_files() {
        let map = table::unpack(table::PACKED, "mapfile.tsv").unwrap();
        let mut events = 0;
        for [id, name, pmu, _, _, files] in row::rows(&map).map(|row| row.columns()) {
            for file in files.split(',') {
                let table = table::VendorTable::parse(file);
                assert!(table.rows().count() > 0, "{file}");
                if !id.starts_with("0x") && !table.holds_metrics() {
                    let model = Model { name: name.to_owned(), pmu: pmu.to_owned(), tables: Vec::new() };
                    for row in table.rows() {
                        let event = event(&model, row);
                        assert!(!event.name.is_empty() && !event.pmu.is_empty(), "{file}: {}", event.name);
                        assert!(event.terms.starts_with("event="), "{file}: {}: {}", event.name, event.terms);
                        events += 1;
                    }
                }
            }
            if id.starts_with("0x") {
                assert!(table::VendorTable::of_arm(name).rows().count() > 10, "{name}");
            }
        }
        assert!(events > 47_000, "{events}");
    }
}
