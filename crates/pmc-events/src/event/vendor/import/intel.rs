//! Intel's perfmon: for each model, `mapfile.csv` lists one file for each kind of event.

use std::collections::BTreeSet;
use std::path::Path;

use super::tables::TableOwner;
use super::{TableImporter, below, fields};

/// Reads the files listed in the map, whose columns are CPU, version, file, kind, core type, native ID, and
/// role of the core.
pub(super) fn read(tree: &Path, map: &[Vec<String>], reader: &mut TableImporter) {
    let mut seen = BTreeSet::new();
    for row in map {
        let [cpuid, _, path, kind, _, _, role] = [0, 1, 2, 3, 4, 5, 6].map(|column| row[column].as_str());
        let (suffix, is_uncore) = match kind {
            "core" | "hybridcore" => ("core", false),
            "uncore" | "uncore experimental" => ("uncore", true),
            "metrics" => ("metrics", false),
            // These files define the bits of offcore and similar registers. The event codes already include
            // these bits.
            _ => continue,
        };
        let Some(file) = below(tree, path) else {
            reader.unread.push((path.into(), "its path leads outside the directory".to_owned()));
            continue;
        };
        let Some(stem) = file.file_stem().and_then(|stem| stem.to_str()).map(str::to_lowercase) else {
            continue;
        };
        let words = ["_uncore_experimental", "_core", "_uncore", "_metrics"];
        let model = words.iter().fold(stem.clone(), |stem, word| stem.replace(word, ""));
        let name = model.split('_').next().unwrap_or_default().to_owned();
        let pmu = match (is_uncore, role) {
            (true, _) => "",
            (_, "Core") => "cpu_core",
            (_, "Atom") => "cpu_atom",
            (_, "LowPower" | "LowPower_Core") => "cpu_lowpower",
            _ => "cpu",
        };
        let table = format!("{model}.{suffix}.tsv");
        reader.tables.own(TableOwner { cpuid: cpuid.to_owned(), model: name, pmu: pmu.to_owned() }, &table);
        // Several CPU models refer to the same file.
        if !seen.insert(file.clone()) {
            continue;
        }
        if suffix != "metrics" {
            for object in reader.objects(&file, "Events") {
                let event = fields::event(&object, kind == "uncore experimental");
                reader.tables.event(&table, event);
            }
            continue;
        }
        // The `perf` directory contains the same metrics in perf's format, in which formulas contain the
        // event names.
        let perf = file.with_file_name("perf").join(format!("{stem}_perf.json"));
        if perf.exists() {
            for object in reader.objects(&perf, "Metrics") {
                reader.tables.metric(&table, fields::metric(&object));
            }
        } else {
            reader.unread.push((file, "perf's version (metrics/perf/…_perf.json) is missing".to_owned()));
        }
    }
}
