//! The makers' own events and metrics: the names of their manuals, with what the CPU is told for them.
//!
//! Receives a [`Host`]; hands on the rows of the tables for its CPUs as they are. What a row's terms mean on
//! a PMU is `names`' concern, what a metric's formula means is `profile`'s. Nothing is unpacked before it is
//! asked for.
//!
//! ```text
//! tables/*.tsv ──packed by a test──► table.bin ──┬─model (which CPU is it?)──► rows of its files
//! the user's copy ──import──► its own tables ────┘ and these first
//! ```
//!
//! The tables come from Intel's perfmon (BSD-3-Clause) and Arm's data (Apache-2.0), whose notices stand
//! beside them; those of AMD are names and codes alone.

mod arm;
pub mod import;
mod model;
mod row;
pub mod table;

pub use model::{Count, Model};

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::host::Host;
use crate::host::cpu::{event_table_id, event_table_id_of, named_id};

/// The tables for this machine's CPUs. Cheap to make; a file is unpacked when it is first asked for.
#[derive(Debug)]
pub struct Vendor {
    id: Option<String>,
    models: Vec<Model>,
    /// Of each event's name in small letters: the numbers of its model, of the table there, and of the row's
    /// first byte.
    index: OnceLock<HashMap<String, Vec<[usize; 3]>>>,
}

/// An event of a table; every text as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The model whose table it is of: `skylakex`.
    pub model: &'a str,
    /// Whether that table has been imported.
    pub is_imported: bool,
    /// As its maker spells it: `MEM_LOAD_RETIRED.L3_MISS`, `ls_any_fills_from_sys.dram_io_all`.
    pub name: &'a str,
    /// Whose it is: the PMU as sysfs names it, without the instance's number (`uncore_cha`). Never empty.
    pub pmu: &'a str,
    /// What it stands for, as files of sysfs have it: `event=0xd1,umask=0x20`.
    pub terms: &'a str,
    /// The counters that it can use: `0-3`, `F1` for the fixed counter 1, `F` for the uncore's; empty: not
    /// known.
    pub counters: &'a str,
    /// What else is known, a letter each: `p` can be precise, `P` must, `o` takes an offcore register,
    /// `t` is counted alone, `f` free running, `d` deprecated, `x` experimental …
    pub flags: &'a str,
    /// The period at which its maker samples it.
    pub period: Option<u64>,
    /// Words `KEY=VALUE`: `msr=0x3f6`, `filter=…`.
    pub extra: &'a str,
    /// What it counts, in words, where a table has been imported that says so.
    pub text: Option<&'a str>,
}

/// A metric of a table; every text as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric<'a> {
    /// `tma_backend_bound`
    pub name: &'a str,
    /// The core PMU whose table it is from; empty for those of the uncore.
    pub pmu: &'a str,
    /// A factor and a unit: `100%`.
    pub scale: &'a str,
    /// Separated by `;`.
    pub groups: &'a str,
    /// Where it stands in the tree of the top-down method; 1 for its roots.
    pub level: Option<u8>,
    /// The metric above it in that tree.
    pub parent: &'a str,
    /// What it is computed by, in perf's language.
    pub expr: &'a str,
    /// When it is worth a look, in the same language.
    pub threshold: &'a str,
    /// The events to sample with.
    pub locate: &'a str,
    /// In which slots or clocks it is given.
    pub domain: &'a str,
    /// The levels at which it is valid (of a thread, core, socket …).
    pub resolution: &'a str,
    /// Its maker's word for the kind of metric.
    pub category: &'a str,
    /// What it says, in words, where a table has been imported that says so.
    pub text: Option<&'a str>,
}

impl Vendor {
    /// The tables for the CPU that `PMC_CPUID` or `PERF_CPUID` names, or else the host's files.
    pub fn of(host: &Host) -> Self {
        let id = event_table_id(host, 0);
        let models = id.as_deref().map(|id| model::models(host, id, true)).unwrap_or_default();
        Self { id, models, index: OnceLock::new() }
    }

    /// The tables for the CPU that the header of a recording names; where nothing is understood by that,
    /// those of this machine. `host`: who reads it, and may have imported tables.
    pub fn recorded(host: &Host, cpuid: &str) -> Self {
        let Some(id) = event_table_id_of(cpuid) else { return Self::of(host) };
        let models = model::models(host, &id, false);
        Self { id: Some(id), models, index: OnceLock::new() }
    }

    /// perf's id of the CPU: `GenuineIntel-6-55-7`, `0x00000000410fd0c0`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether the user named the CPU, which need not be this machine's.
    pub fn is_of_named_cpu(&self) -> bool {
        named_id().is_some() && named_id() == self.id
    }

    /// Whether the CPU is what a line of `mapfile.tsv` could name so, an extended regular expression.
    pub fn is(&self, pattern: &str) -> bool {
        self.id().is_some_and(|id| model::fits(pattern, id))
    }

    /// One for each kind of core, then the uncore's; empty where there is no table for this CPU.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// All events, in the order of the tables.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.rows(false).map(|(model, row)| event(model, row))
    }

    /// The events of this name in any case, one for each PMU that has it.
    pub fn named(&self, name: &str) -> Vec<Event<'_>> {
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

    /// The cycles from the retirement before to that of an instruction with this event (`NAME:R` in metrics):
    /// what the maker measured on average, where a table says so.
    pub fn retire_latency(&self, event: &str) -> Option<f64> {
        let table = table::unpack(table::PACKED, "intel/retire_latency.tsv")?;
        let is_it = |[model, name, ..]: &[&str; 4]| {
            name.eq_ignore_ascii_case(event) && self.models.iter().any(|own| own.name == *model)
        };
        let [_, _, _, mean] = row::rows(&table).map(|row| row.columns()).find(is_it)?;
        mean.parse().ok()
    }

    /// All metrics, in the order of the tables.
    pub fn metrics(&self) -> impl Iterator<Item = Metric<'_>> {
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
            Metric {
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

    fn rows(&self, metrics: bool) -> impl Iterator<Item = (&Model, row::Row<'_>)> {
        self.models.iter().flat_map(move |model| {
            let tables = model.tables.iter().filter(move |table| table.holds_metrics() == metrics);
            tables.flat_map(move |table| table.rows().map(move |row| (model, row)))
        })
    }
}

fn event<'a>(model: &'a Model, row: row::Row<'a>) -> Event<'a> {
    let [name, pmu, terms, counters, flags, period, extra, text] = row.columns();
    let pmu = if pmu.is_empty() { &model.pmu } else { pmu };
    Event {
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
    fn names_are_found_in_any_case() {
        let vendor = played("GenuineIntel-6-55-4");
        let [event] = vendor.named("offcore_response.demand_data_rd.L3_MISS.any_snoop")[..] else { panic!() };
        assert_eq!((event.pmu, event.counters), ("cpu", "0-3"));
        assert_eq!(event.terms, "event=0xb7,umask=0x1,offcore_rsp=0x3fbc000001");
        assert!(event.flags.contains('o') && event.period == Some(100_003));
        assert_eq!(vendor.named("unc_iio_data_req_of_cpu.mem_read.part0")[0].pmu, "uncore_iio");
        assert!(vendor.named("UNC_IIO_DATA_REQ_OF_CPU.MEM_READ").is_empty());
    }

    #[test]
    fn a_name_may_be_of_two_kinds_of_cores() {
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
    fn retire_latencies_are_those_of_the_model() {
        let latency = |id| played(id).retire_latency("mem_load_retired.L2_HIT");
        assert_eq!(latency("GenuineIntel-6-AD-1"), Some(5.71));
        assert_eq!(latency("GenuineIntel-6-BD-1"), None);
    }

    #[test]
    fn every_line_of_the_map_has_its_files() {
        let map = table::unpack(table::PACKED, "mapfile.tsv").unwrap();
        let mut events = 0;
        for [id, name, pmu, _, _, files] in row::rows(&map).map(|row| row.columns()) {
            for file in files.split(',') {
                let table = table::Table::of(file);
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
                assert!(table::Table::of_arm(name).rows().count() > 10, "{name}");
            }
        }
        assert!(events > 47_000, "{events}");
    }
}
