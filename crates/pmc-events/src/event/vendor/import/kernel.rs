//! The kernel's `tools/perf/pmu-events/arch/ARCH`: `mapfile.csv` lists a directory for each model. The files
//! in this directory contain the events and metrics of all the model's PMUs. `ArchStdEvent` refers to an
//! entry in the files next to the directories, and may override parts of it.

use std::collections::BTreeMap;
use std::path::Path;

use super::fields::{self, Object, word};
use super::tables::TableOwner;
use super::{TableImporter, below, folders, json_files};

/// Entries to which `ArchStdEvent` may refer, by lower-case name.
type Standard = BTreeMap<String, Object>;

/// Reads the directories listed in the map, whose columns are CPU, version, directory and kind.
pub(super) fn read(arch: &Path, map: &[Vec<String>], reader: &mut TableImporter) {
    let standard = standard(arch, reader);
    let mut done: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for row in map {
        let (cpuid, path) = (row[0].as_str(), row[2].as_str());
        let Some(folder) = below(arch, path) else {
            reader.unread.push((path.into(), "its path leads outside the directory".to_owned()));
            continue;
        };
        let model = path.rsplit('/').next().unwrap_or_default().to_lowercase();
        if !done.contains_key(path) {
            let files = model_files(&folder, &model, &standard, reader);
            done.insert(path, files);
        }
        for (pmu, file) in &done[path] {
            // The name of Arm's core PMU depends on the machine.
            let pmu = if cpuid.starts_with("0x") && pmu == "cpu" { "" } else { pmu };
            let owner = TableOwner { cpuid: cpuid.to_owned(), model: model.clone(), pmu: pmu.to_owned() };
            reader.tables.own(owner, file);
        }
    }
}

/// Reads the files of a model; returns its tables, each with its core PMU.
fn model_files(
    folder: &Path,
    model: &str,
    standard: &Standard,
    reader: &mut TableImporter,
) -> Vec<(String, String)> {
    let mut tables = Vec::new();
    let mut paths = json_files(folder);
    // Some models have an additional level of directories for their events.
    paths.extend(folders(folder).iter().flat_map(|folder| json_files(folder)));
    for path in paths {
        for object in reader.objects(&path, "Events") {
            let object = completed(object, standard);
            let unit = word(&object, "Unit").into_owned();
            let core = match unit.as_str() {
                "cpu_core" | "cpu_atom" | "cpu_lowpower" => unit.as_str(),
                _ if fields::pmu(&unit).is_empty() => "cpu",
                _ => "",
            };
            let stem =
                if core.is_empty() || core == "cpu" { model.to_owned() } else { format!("{model}_{core}") };
            let mut add = |pmu: &str, kind: &str| {
                let table = (pmu.to_owned(), format!("{stem}.{kind}.tsv"));
                if !tables.contains(&table) {
                    tables.push(table.clone());
                }
                table.1
            };
            if !word(&object, "EventName").is_empty() {
                let table = add(core, if core.is_empty() { "uncore" } else { "core" });
                reader.tables.event(&table, fields::event(&object, false));
            }
            if !word(&object, "MetricName").is_empty() {
                // Uncore metrics share a namespace with core metrics.
                let table = add(if core.is_empty() { "cpu" } else { core }, "metrics");
                reader.tables.metric(&table, fields::metric(&object));
            }
        }
    }
    tables
}

fn standard(arch: &Path, reader: &mut TableImporter) -> Standard {
    let mut standard = Standard::new();
    for path in json_files(arch) {
        for object in reader.objects(&path, "Events") {
            for field in ["EventName", "MetricName"] {
                let name = word(&object, field).to_lowercase();
                if !name.is_empty() {
                    standard.entry(name).or_insert_with(|| object.clone());
                }
            }
        }
    }
    standard
}

fn completed(object: Object, standard: &Standard) -> Object {
    let named = word(&object, "ArchStdEvent").to_lowercase();
    match standard.get(&named) {
        Some(base) => {
            let mut whole = base.clone();
            whole.extend(object);
            whole
        }
        None => object,
    }
}
