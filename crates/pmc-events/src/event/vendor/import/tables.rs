//! Collects rows of events and metrics, and writes them to files. Decides which file a row belongs to and
//! which names are valid. Does not depend on the source of the data.

use crate::hint::Hint;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use pmc_sys::error::{Error, Result};
use pmc_sys::sys::output_file;

/// The columns of an events file.
const EVENTS: &str = "name\tpmu\tterms\tcounters\tflags\tsav\textra\ttext";
/// The columns of a metrics file.
const METRICS: &str =
    "name\tscale\tgroups\tlevel\tparent\texpr\tthreshold\tlocate\tdomain\tresolution\tcategory\ttext";
/// The columns of the map.
const MAP: &str = "cpuid\tmodel\tpmu\tcoretype\tnativeid\tfiles";

/// An event, in the columns of a table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ImportedEvent {
    pub(crate) name: String,
    /// Empty for core events.
    pub(crate) pmu: String,
    pub(crate) terms: String,
    pub(crate) counters: String,
    pub(crate) flags: String,
    pub(crate) period: Option<u64>,
    pub(crate) extra: String,
    pub(crate) text: String,
}

/// A metric, in the columns of a table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ImportedMetric {
    pub(crate) name: String,
    pub(crate) scale: String,
    pub(crate) groups: String,
    pub(crate) level: Option<u8>,
    pub(crate) parent: String,
    pub(crate) expr: String,
    pub(crate) threshold: String,
    pub(crate) locate: String,
    pub(crate) text: String,
}

/// One line of the map: the CPUs to which a set of files applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TableOwner {
    /// The pattern that the CPU's ID must match.
    pub(crate) cpuid: String,
    pub(crate) model: String,
    /// The core PMU; empty for the uncore, and on Arm, where the machine determines it.
    pub(crate) pmu: String,
}

/// Everything read so far.
#[derive(Debug, Default)]
pub(super) struct ImportedTables {
    /// Rows by file, then by PMU and lower-case name.
    events: BTreeMap<String, BTreeMap<(String, String), ImportedEvent>>,
    metrics: BTreeMap<String, BTreeMap<String, ImportedMetric>>,
    /// The lines of the map and their files, in the order of the source's map, since the first match wins.
    owners: Vec<(TableOwner, Vec<String>)>,
    /// Number of entries with an invalid name or code.
    pub(crate) left_out: usize,
}

impl ImportedTables {
    /// Adds an event to a file (`skylakex.core.tsv`). If several events have the same name, the first one is
    /// kept.
    pub(super) fn event(&mut self, file: &str, event: Option<ImportedEvent>) {
        match event.filter(|event| is_name(&event.name) && (event.pmu.is_empty() || is_name(&event.pmu))) {
            Some(event) => {
                let key = (event.pmu.clone(), event.name.to_ascii_lowercase());
                self.events.entry(file.to_owned()).or_default().entry(key).or_insert(event);
            }
            None => self.left_out += 1,
        }
    }

    /// Adds a metric to a file (`skylakex.metrics.tsv`).
    pub(super) fn metric(&mut self, file: &str, metric: Option<ImportedMetric>) {
        match metric.filter(|metric| is_name(&metric.name) && !metric.expr.is_empty()) {
            Some(metric) => {
                let key = metric.name.to_ascii_lowercase();
                self.metrics.entry(file.to_owned()).or_default().entry(key).or_insert(metric);
            }
            None => self.left_out += 1,
        }
    }

    /// Sets the CPUs to which a file applies.
    pub(super) fn own(&mut self, owner: TableOwner, file: &str) {
        let plain = |text: &str| text.len() < 400 && !text.contains(char::is_control);
        if !plain(&owner.cpuid) || owner.cpuid.is_empty() || !is_name(&owner.model) {
            self.left_out += 1;
            return;
        }
        let files = match self.owners.iter_mut().find(|(own, _)| *own == owner) {
            Some((_, files)) => files,
            None => {
                self.owners.push((owner, Vec::new()));
                let Some((_, files)) = self.owners.last_mut() else { return };
                files
            }
        };
        if !files.iter().any(|own| own == file) {
            files.push(file.to_owned());
        }
    }

    /// Number of events and metrics.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.events.values().map(BTreeMap::len).sum(), self.metrics.values().map(BTreeMap::len).sum())
    }

    /// Number of models that have at least one table.
    pub(super) fn models(&self) -> usize {
        let mut models: Vec<&str> = self.owners.iter().map(|(owner, _)| owner.model.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        models.len()
    }

    /// Writes the files to `folder` in `into`, and adds their lines to the map in `into`, before the lines
    /// for data of other kinds.
    pub(super) fn write(&self, into: &Path, folder: &str) -> Result<()> {
        let home = into.join(folder);
        let failed = |path: &Path, error| {
            Error::io(format!("writing {}", path.display()), error).try_this(Hint::ImportElsewhere)
        };
        if home.exists() {
            fs::remove_dir_all(&home).map_err(|error| failed(&home, error))?;
        }
        output_file::create_folder(&home, 0o777).map_err(|error| failed(&home, error))?;
        let write = |path: &Path, text: &str| {
            let written =
                output_file::create(path, 0o666, false).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| failed(path, error))
        };
        for (file, events) in &self.events {
            let mut text = format!("{EVENTS}\n");
            for ImportedEvent { name, pmu, terms, counters, flags, period, extra, text: said } in
                events.values()
            {
                let period = period.map_or(String::new(), |period| period.to_string());
                let row = [name, pmu, terms, counters, flags, &period, extra, said].map(String::as_str);
                let _ = writeln!(text, "{}", row.join("\t"));
            }
            write(&home.join(file), &text)?;
        }
        for (file, metrics) in &self.metrics {
            let mut text = format!("{METRICS}\n");
            for ImportedMetric { name, scale, groups, level, parent, expr, threshold, locate, text: said } in
                metrics.values()
            {
                let level = level.map_or(String::new(), |level| level.to_string());
                let row = [name, scale, groups, &level, parent, expr, threshold, locate];
                let _ = writeln!(text, "{}\t\t\t\t{said}", row.map(String::as_str).join("\t"));
            }
            write(&home.join(file), &text)?;
        }
        let mut map = format!("{MAP}\n");
        for (TableOwner { cpuid, model, pmu }, files) in &self.owners {
            let is_there =
                |file: &&String| self.events.contains_key(*file) || self.metrics.contains_key(*file);
            let files: Vec<String> =
                files.iter().filter(is_there).map(|file| format!("{folder}/{file}")).collect();
            if !files.is_empty() {
                let _ = writeln!(map, "{cpuid}\t{model}\t{pmu}\t\t\t{}", files.join(","));
            }
        }
        let path = into.join("mapfile.tsv");
        let earlier = fs::read_to_string(&path).unwrap_or_default();
        let ours = format!("\t{folder}/");
        for line in earlier.lines().skip(1).filter(|line| !line.contains(&ours)) {
            let _ = writeln!(map, "{line}");
        }
        write(&path, &map)
    }
}

/// Whether this is a valid name for an event, metric, PMU or model. A valid name has no characters with a
/// special meaning in event text, tables or paths.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    !name.is_empty() && name.len() <= 200 && name.chars().all(plain) && !name.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_contain_only_allowed_characters() {
        assert!(is_name("MEM_LOAD_RETIRED.L3_MISS") && is_name("umc_cas_cmd.rd") && is_name("cpu-cycles"));
        for name in ["", "a b", "a,b", "a/b", "../a", "a\tb", "a\u{1b}[31m", "a=1", "é", &"x".repeat(201)] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
