//! Imports tables supplied by the user: Intel's perfmon, Arm's data and the kernel's `pmu-events`. They are
//! stored in the format of the built-in tables, with descriptions.
//!
//! Takes a source directory and the directory for imported tables; writes TSV files there and returns a
//! summary. All input is validated: names, numbers, texts and file sizes. Invalid entries are skipped and
//! counted.
//!
//! ```text
//! perfmon/mapfile.csv  SKX/events/*.json  SKX/metrics/perf/*.json ─┐
//! data/pmu/*.json                                                  ├─► FOLDER/mapfile.tsv, FOLDER/FORM/*.tsv
//! pmu-events/arch/*/mapfile.csv           arch/*/MODEL/*.json     ─┘
//! ```

mod arm;
mod fields;
mod intel;
mod kernel;
mod tables;

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use pmc_sys::error::{Error, Result};
use pmc_sys::sys::regular_file::open_regular;
use tables::ImportedTables;

/// Maximum file size. The largest file in practice is about 12 MB.
const LARGEST_FILE: u64 = 128 << 20;
/// Size in bytes from which a `mapfile.csv` is ignored.
const LARGEST_MAP: u64 = 4 << 20;
/// Maximum number of files in a tree.
const MOST_FILES: usize = 20_000;

/// Summary of an import.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct VendorImportSummary {
    /// The kind of data: `Intel's perfmon`.
    pub form: &'static str,
    /// Number of CPU models.
    pub models: usize,
    /// Total number of events of all models.
    pub events: usize,
    /// Total number of metrics of all models.
    pub metrics: usize,
    /// Number of entries that were skipped because their name, code or formula is invalid.
    pub left_out: usize,
    /// Skipped files, with the reason.
    pub unread: Vec<(PathBuf, String)>,
}

/// Imports the tree at `from` into `into`, replacing an earlier import of the same kind.
///
/// # Errors
/// Fails if the directory has none of the three formats, if nothing in it can be read, or if `into` cannot be
/// written.
pub fn import(from: &Path, into: &Path) -> Result<VendorImportSummary> {
    let listed = fs::read_dir(from).map_err(|error| {
        Error::io(format!("reading the directory {}", from.display()), error)
            .try_this("specify the directory that contains the copy")
    })?;
    drop(listed);
    let mut reader = TableImporter { tables: ImportedTables::default(), unread: Vec::new(), files: 0 };
    let form = read(from, &mut reader)?;
    let TableImporter { tables, unread, files } = reader;
    let (events, metrics) = tables.count();
    if events + metrics == 0 {
        let error = Error::new(format!("no readable events below {}", from.display()));
        return Err(match (unread.first(), tables.left_out) {
            (Some((file, why)), _) => error.why(format!("{}: {why}", file.display())),
            (None, 0) if files == 0 => error.why("its model map lists no file that exists"),
            (None, 0) => error.why("its files contain no events"),
            (None, entries) => {
                let entries = if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") };
                error.why(format!("its files exist, but pmc cannot read the name or code of {entries}"))
            }
        });
    }
    let models = tables.models();
    let left_out = tables.left_out;
    tables.write(into, form.folder())?;
    Ok(VendorImportSummary { form: form.name(), models, events, metrics, left_out, unread })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ImportTreeKind {
    Intel,
    Arm,
    Kernel,
}

impl ImportTreeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Intel => "Intel's perfmon",
            Self::Arm => "Arm's data",
            Self::Kernel => "the kernel's pmu-events",
        }
    }

    fn folder(self) -> &'static str {
        match self {
            Self::Intel => "intel",
            Self::Arm => "arm",
            Self::Kernel => "kernel",
        }
    }
}

/// Detects the kind of the tree and reads it.
fn read(from: &Path, reader: &mut TableImporter) -> Result<ImportTreeKind> {
    let kernel = ["", "arch", "pmu-events/arch", "tools/perf/pmu-events/arch"].map(|below| from.join(below));
    if let Some(map) = reader.map(&from.join("mapfile.csv")) {
        if map.iter().any(|row| row[2].ends_with(".json")) {
            intel::read(from, &map, reader);
            return Ok(ImportTreeKind::Intel);
        }
        kernel::read(from, &map, reader);
        return Ok(ImportTreeKind::Kernel);
    }
    for arch in kernel {
        let mut found = false;
        for folder in folders(&arch) {
            if let Some(map) = reader.map(&folder.join("mapfile.csv")) {
                kernel::read(&folder, &map, reader);
                found = true;
            }
        }
        if found {
            return Ok(ImportTreeKind::Kernel);
        }
    }
    for folder in [from.join("pmu"), from.to_owned()] {
        if arm::read(&folder, reader) {
            return Ok(ImportTreeKind::Arm);
        }
    }
    Err(Error::new(format!("{} contains no events that pmc can read", from.display()))
        .why("it has no mapfile.csv, no subdirectory with one, and no pmu/*.json")
        .try_this(
            "use a copy of github.com/intel/perfmon, github.com/ARM-software/data, or Linux's \
                   tools/perf/pmu-events",
        ))
}

/// Reads files and collects the results.
struct TableImporter {
    tables: ImportedTables,
    unread: Vec<(PathBuf, String)>,
    files: usize,
}

impl TableImporter {
    /// The rows of a `mapfile.csv` without its heading, at least seven columns each; `None` if the file is
    /// missing.
    fn map(&mut self, path: &Path) -> Option<Vec<Vec<String>>> {
        let text = io::read_to_string(open_regular(path, true).ok()?.take(LARGEST_MAP)).ok();
        let text = text.filter(|text| (text.len() as u64) < LARGEST_MAP)?;
        let row = |line: &str| {
            let mut columns: Vec<String> = line.split(',').map(|word| word.trim().to_owned()).collect();
            columns.resize(columns.len().max(7), String::new());
            columns
        };
        let rows = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(row);
        // All maps except for s390's start with a heading.
        let rows = rows.filter(|row| !row[0].eq_ignore_ascii_case("Family-model") && !row[2].is_empty());
        Some(rows.collect())
    }

    /// The objects in a JSON file that is a list or contains a list called `list`. Unreadable files are
    /// recorded for the summary.
    fn objects(&mut self, path: &Path, list: &str) -> Vec<Map<String, Value>> {
        match self.parse(path) {
            Ok(Value::Array(objects)) => objects.into_iter().filter_map(object).collect(),
            Ok(Value::Object(mut document)) => match document.remove(list) {
                Some(Value::Array(objects)) => objects.into_iter().filter_map(object).collect(),
                _ => self.skip(path, format!("it has no list `{list}`")),
            },
            Ok(_) => self.skip(path, "it is not a list of events".to_owned()),
            Err(why) => self.skip(path, why),
        }
    }

    fn skip(&mut self, path: &Path, why: String) -> Vec<Map<String, Value>> {
        self.unread.push((path.to_owned(), why));
        Vec::new()
    }

    fn parse(&mut self, path: &Path) -> Result<Value, String> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(format!("the tree has more than {MOST_FILES} files"));
        }
        let read = || -> io::Result<Vec<u8>> {
            let file = open_regular(path, true)?;
            let mut bytes = Vec::new();
            file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| error.to_string())?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(format!("it is larger than {} MiB", LARGEST_FILE >> 20));
        }
        serde_json::from_slice(&bytes).map_err(|error| format!("not JSON: {error}"))
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// The subdirectories of a directory, by name.
fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.is_dir()).collect()
}

/// The JSON files in a directory, by name.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).take(MOST_FILES).collect();
    paths.sort();
    paths
}

/// Resolves a path in a map, relative to the map's directory. `None` if the path leads outside that
/// directory.
fn below(folder: &Path, named: &str) -> Option<PathBuf> {
    let named = Path::new(named.trim_start_matches('/'));
    let plain = named.components().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| folder.join(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a tree of these files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn read_back(store: &Path, file: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(store.join(file)).unwrap();
        text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    const MAP: &str = "Family-model,Version,Filename,EventType,Core Type,Native Model ID,Core Role Name\n\
        GenuineIntel-6-55-[01234],V1,/SKX/events/skylakex_core.json,core,,,\n\
        GenuineIntel-6-55-[01234],V1,/SKX/events/skylakex_uncore.json,uncore,,,\n\
        GenuineIntel-6-55-[01234],V1,/SKX/events/skylakex_uncore_experimental.json,uncore experimental,,,\n\
        GenuineIntel-6-55-[01234],V1,/SKX/metrics/skylakex_metrics.json,metrics,,,\n\
        GenuineIntel-6-97,V1,/ADL/events/alderlake_gracemont_core.json,hybridcore,0x20,0x000001,Atom\n\
        GenuineIntel-6-9A,V1,/ADL/events/alderlake_gracemont_core.json,hybridcore,0x20,0x000001,Atom\n";

    #[test]
    fn intel_tree_is_imported() {
        let from = tree(&[
            ("mapfile.csv", MAP),
            (
                "SKX/events/skylakex_core.json",
                r#"{"Header": {}, "Events": [
                {"EventName": "A.ONE", "EventCode": "0x01", "UMask": "0x2", "Counter": "0,1", "BriefDescription": "What one is"},
                {"EventName": "not a name", "EventCode": "0x01"}, {"EventCode": "0x3"}, 7]}"#,
            ),
            (
                "SKX/events/skylakex_uncore.json",
                r#"[{"Unit": "CHA", "EventName": "UNC_A", "EventCode": "0x1"}]"#,
            ),
            (
                "SKX/events/skylakex_uncore_experimental.json",
                r#"[{"Unit": "CHA", "EventName": "UNC_B", "EventCode": "0x2"}]"#,
            ),
            ("SKX/metrics/skylakex_metrics.json", "{}"),
            (
                "SKX/metrics/perf/skylakex_metrics_perf.json",
                r#"[{"MetricName": "per_one", "MetricExpr": "A.ONE / 2", "MetricGroup": "G;H", "BriefDescription": "Half"}]"#,
            ),
            (
                "ADL/events/alderlake_gracemont_core.json",
                r#"{"Events": [{"EventName": "B.TWO", "EventCode": "0x5"}]}"#,
            ),
        ]);
        let store = tempfile::tempdir().unwrap();
        let summary = import(from.path(), store.path()).unwrap();
        assert_eq!((summary.events, summary.metrics, summary.models, summary.left_out), (4, 1, 2, 2));
        assert_eq!((summary.form, summary.unread.len()), ("Intel's perfmon", 0));
        let core = read_back(store.path(), "intel/skylakex.core.tsv");
        assert_eq!(core, [["A.ONE", "", "event=0x1,umask=0x2", "0-1", "", "", "", "What one is"]]);
        let uncore = read_back(store.path(), "intel/skylakex.uncore.tsv");
        let flags: Vec<_> =
            uncore.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[4].as_str())).collect();
        assert_eq!(flags, [("UNC_A", "uncore_cha", ""), ("UNC_B", "uncore_cha", "x")]);
        let metrics = read_back(store.path(), "intel/skylakex.metrics.tsv");
        assert_eq!(
            (&metrics[0][5][..], &metrics[0][2][..], &metrics[0][11][..]),
            ("A.ONE / 2", "G;H", "Half")
        );
        let map = read_back(store.path(), "mapfile.tsv");
        let lines: Vec<_> =
            map.iter().map(|row| [&row[0], &row[1], &row[2], &row[5]].map(String::as_str)).collect();
        let skx = "GenuineIntel-6-55-[01234]";
        assert_eq!(
            lines,
            [
                [skx, "skylakex", "cpu", "intel/skylakex.core.tsv,intel/skylakex.metrics.tsv"],
                [skx, "skylakex", "", "intel/skylakex.uncore.tsv"],
                ["GenuineIntel-6-97", "alderlake", "cpu_atom", "intel/alderlake_gracemont.core.tsv"],
                ["GenuineIntel-6-9A", "alderlake", "cpu_atom", "intel/alderlake_gracemont.core.tsv"],
            ]
        );
    }

    #[test]
    fn kernel_tree_is_imported() {
        let map = "Family-model,Version,Filename,EventType\nGenuineIntel-6-BD,v1,lunarlake,core\n";
        let arm = "#Family-model,Version,Filename,EventType\n0x00000000410fd0c0,v1,arm/neoverse-n1,core\n";
        let from = tree(&[
            ("tools/perf/pmu-events/arch/x86/mapfile.csv", map),
            (
                "tools/perf/pmu-events/arch/x86/lunarlake/cache.json",
                r#"[
                {"Unit": "cpu_atom", "EventName": "X", "EventCode": "0x1"}, {"Unit": "cpu_core", "EventName": "X", "EventCode": "0x2"},
                {"Unit": "iMC", "EventName": "UNC_M_X", "EventCode": "0x3"},
                {"Unit": "cpu_core", "MetricName": "m", "MetricExpr": "cpu_core@X@ / 3"}]"#,
            ),
            ("tools/perf/pmu-events/arch/arm64/mapfile.csv", arm),
            (
                "tools/perf/pmu-events/arch/arm64/common-and-microarch.json",
                r#"[
                {"EventName": "STALL_BACKEND", "EventCode": "0x24", "BriefDescription": "short", "PublicDescription": "long"}]"#,
            ),
            (
                "tools/perf/pmu-events/arch/arm64/arm/neoverse-n1/stall.json",
                r#"[{"ArchStdEvent": "stall_backend"}]"#,
            ),
        ]);
        let store = tempfile::tempdir().unwrap();
        let summary = import(from.path(), store.path()).unwrap();
        assert_eq!((summary.events, summary.metrics, summary.models), (4, 1, 2));
        assert_eq!(read_back(store.path(), "kernel/lunarlake_cpu_core.core.tsv")[0][2], "event=0x2");
        assert_eq!(read_back(store.path(), "kernel/lunarlake.uncore.tsv")[0][1], "uncore_imc");
        assert_eq!(read_back(store.path(), "kernel/lunarlake_cpu_core.metrics.tsv")[0][5], "cpu_core@X@ / 3");
        let stall = &read_back(store.path(), "kernel/neoverse-n1.core.tsv")[0];
        assert_eq!([&stall[0][..], &stall[2][..], &stall[7][..]], ["STALL_BACKEND", "event=0x24", "short"]);
    }

    #[test]
    fn arm_tree_is_imported_with_other_tables() {
        let from = tree(&[
            (
                "pmu/neoverse-n1.json",
                r#"{"cpuid": "0x41d0c", "counters": 6, "events": [
                {"code": 17, "name": "CPU_CYCLES", "description": "Cycle"}, {"code": 70000, "name": "TOO_LARGE"}]}"#,
            ),
            ("pmu/common_armv8.json", r#"{"events": [{"code": 1, "name": "OF_ALL"}]}"#),
            ("pmu/pmu-schema.json", r#"{"type": "object"}"#),
        ]);
        let store = tempfile::tempdir().unwrap();
        let earlier = "cpuid\tmodel\tpmu\tcoretype\tnativeid\tfiles\nX-1\tm\tcpu\t\t\tintel/m.core.tsv\n\
            0x00\told\t\t\t\tarm/old.events.tsv\n";
        fs::write(store.path().join("mapfile.tsv"), earlier).unwrap();
        let summary = import(from.path(), store.path()).unwrap();
        assert_eq!((summary.events, summary.left_out, summary.form), (1, 1, "Arm's data"));
        let rows = read_back(store.path(), "arm/neoverse-n1.events.tsv");
        assert_eq!(rows, [["CPU_CYCLES", "", "event=0x11", "0-5", "", "", "", "Cycle"]]);
        let map: Vec<String> =
            read_back(store.path(), "mapfile.tsv").into_iter().map(|row| row[0].clone()).collect();
        assert_eq!(map, ["0x00000000410fd0c0", "X-1"], "ours first; what this form had before is gone");
    }

    #[test]
    fn hostile_trees_are_rejected_or_sanitized() {
        let store = tempfile::tempdir().unwrap();
        let refused = |files: &[(&str, &str)]| {
            let from = tree(files);
            import(from.path(), store.path()).unwrap_err().to_string()
        };
        assert!(refused(&[]).contains("contains no events that pmc can read"));
        assert!(refused(&[("mapfile.csv", MAP)]).contains("no readable events"));
        let torn =
            refused(&[("mapfile.csv", MAP), ("SKX/events/skylakex_core.json", r#"{"Events": [{"EventNa"#)]);
        assert!(torn.contains("no readable events"), "{torn}");
        let deep = "[".repeat(100_000);
        assert!(
            refused(&[("mapfile.csv", MAP), ("SKX/events/skylakex_core.json", &deep)])
                .contains("no readable events")
        );
        let outside = "F,V,Filename,E\nGenuineIntel-6-1,V1,/../../secret_core.json,core\n";
        assert!(refused(&[("mapfile.csv", outside)]).contains("no readable events"));
        assert!(!store.path().join("mapfile.tsv").exists(), "nothing is written where nothing was read");
        let odd = r#"[{"EventName": "A", "EventCode": "0x0", "MSRValue": "na",
            "BriefDescription": "a\u0007\u202eb\nc", "Counter": 5, "SampleAfterValue": -1},
            {"EventName": "B", "EventCode": "0xZZ"}, {"EventName": "C", "EventCode": [1]}]"#;
        let from = tree(&[("mapfile.csv", MAP), ("SKX/events/skylakex_core.json", odd)]);
        let summary = import(from.path(), store.path()).unwrap();
        assert_eq!((summary.events, summary.left_out), (1, 2));
        let rows = read_back(store.path(), "intel/skylakex.core.tsv");
        assert_eq!(rows, [["A", "", "event=0x0", "5", "", "", "", "a ?b c"]]);
    }

    #[test]
    fn tree_without_events_lists_its_contents() {
        let store = tempfile::tempdir().unwrap();
        let map = "F,V,Filename,E\nGenuineIntel-6-55,V1,/SKX/events/skylakex_core.json,core\n";
        for (text, why) in [
            ("[]", "its files contain no events"),
            (r#"{"Events": []}"#, "its files contain no events"),
            (r#"[{"EventName": "A", "EventCode": "x"}]"#, "cannot read the name or code of 1 entry"),
        ] {
            let from = tree(&[("mapfile.csv", map), ("SKX/events/skylakex_core.json", text)]);
            let error = import(from.path(), store.path()).unwrap_err();
            assert!(format!("{error:?}").contains(why), "{text}: {error:?}");
        }
        let kernel = "GenuineIntel-6-55,v1,skylakex,core\n";
        let error = import(tree(&[("mapfile.csv", kernel)]).path(), store.path()).unwrap_err();
        assert!(format!("{error:?}").contains("lists no file that exists"), "{error:?}");
    }
}
