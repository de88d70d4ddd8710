//! Hides names in a recording: of the host, commands, threads, cgroups and folders.
//!
//! The same name gets the same replacement everywhere in a file. File names stay without their folders,
//! because they and the functions are what a reader looks for.
//!
//! ```text
//! /home/ann/shop/bin/shop --> /folder1/shop       ann-worker-7 (a thread) --> thread1
//! /home/ann/shop/lib/x.so --> /folder2/x.so       /user.slice/ann         --> /cgroup1
//! ```

use rustc_hash::FxHashMap;

use pmc_perfdata::perfdata::feature::{BuildIdEntry, PmuMapping};
use pmc_perfdata::perfdata::{Features, RecordedEvent};
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{MappedFileId, RawRecord, Record, kind};
use pmc_sys::error::{Error, Result};

/// What replaces a name that has only one replacement.
const HIDDEN: &str = "hidden";

/// Offsets of the text in records.
const COMM_TEXT: usize = 16;
const CGROUP_TEXT: usize = 16;
const MMAP_TEXT: usize = 40;
const MMAP2_TEXT: usize = 72;

/// Replacements of names, numbered in the order of their first use.
#[derive(Debug, Default)]
pub(in crate::analysis) struct AnonymousNames {
    folders: FxHashMap<Vec<u8>, usize>,
    threads: FxHashMap<Vec<u8>, usize>,
    cgroups: FxHashMap<Vec<u8>, usize>,
    memory: FxHashMap<Vec<u8>, usize>,
}

/// Whether a record remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamelessRecord {
    Kept,
    Dropped,
}

/// Returns the number of a name.
fn number(of: &mut FxHashMap<Vec<u8>, usize>, name: &[u8]) -> usize {
    let next = of.len() + 1;
    *of.entry(name.to_vec()).or_insert(next)
}

impl AnonymousNames {
    /// Returns a path with another folder. Names in brackets stay the same.
    pub(in crate::analysis) fn path(&mut self, path: &[u8]) -> Vec<u8> {
        if path.starts_with(b"[anon:") {
            return format!("[anon:{}]", number(&mut self.memory, path)).into_bytes();
        }
        let Some(at) = path.iter().rposition(|byte| *byte == b'/').filter(|_| !path.starts_with(b"//"))
        else {
            return path.to_vec();
        };
        let (folder, name) = (&path[..at], &path[at + 1..]);
        if name.starts_with(b"memfd:") {
            return format!("/memfd:{} (deleted)", number(&mut self.memory, path)).into_bytes();
        }
        [format!("/folder{}/", number(&mut self.folders, folder)).as_bytes(), name].concat()
    }

    /// Returns a text in which every path has another folder. A path is a word with a slash, except C++
    /// operators.
    pub(in crate::analysis) fn text(&mut self, text: &str) -> String {
        let is_path = |c: char| !(c.is_whitespace() || "'\"`()<>{}[],;:".contains(c));
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(is_path) {
            let (before, word) = rest.split_at(start);
            let (word, after) = word.split_at(word.find(|c| !is_path(c)).unwrap_or(word.len()));
            out.push_str(before);
            match word.contains('/') && !word.contains("operator") {
                true => out.push_str(&String::from_utf8_lossy(&self.path(word.as_bytes()))),
                false => out.push_str(word),
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    fn thread(&mut self, name: &[u8]) -> Vec<u8> {
        format!("thread{}", number(&mut self.threads, name)).into_bytes()
    }

    /// Hides the names in a record.
    pub(super) fn hide_in_record(&mut self, record: &mut Vec<u8>) -> NamelessRecord {
        let bytes = record.clone();
        let Some(raw) = RawRecord::first(&bytes) else { return NamelessRecord::Dropped };
        match raw.parse() {
            Some(Record::Mmap(map)) => replace_text(record, MMAP_TEXT, map.name, &self.path(map.name)),
            Some(Record::Mmap2(map)) => {
                replace_text(record, MMAP2_TEXT, map.map.name, &self.path(map.map.name));
                if !matches!(map.file, MappedFileId::BuildId(_)) {
                    // The device and the inode number.
                    record[MMAP_TEXT..MMAP_TEXT + 24].fill(0);
                }
            }
            Some(Record::Comm(comm)) => replace_text(record, COMM_TEXT, comm.comm, &self.thread(comm.comm)),
            Some(Record::Cgroup(group)) => {
                let new = format!("/cgroup{}", number(&mut self.cgroups, group.path));
                replace_text(record, CGROUP_TEXT, group.path, new.as_bytes());
            }
            Some(Record::BuildId(row)) => {
                let entry = BuildIdEntry {
                    pid: row.pid,
                    misc: row.misc,
                    id: row.id.to_vec(),
                    name: self.path(row.name),
                };
                record.clear();
                entry.write_record(kind::HEADER_BUILD_ID, record);
            }
            Some(
                Record::ThreadMap(_)
                | Record::HeaderAttr(_)
                | Record::HeaderFeature(_)
                | Record::EventType(_)
                | Record::TracingData(_)
                | Record::EventUpdate(_)
                | Record::AuxtraceInfo(_)
                | Record::Auxtrace(_)
                | Record::AuxtraceError(_),
            ) => return NamelessRecord::Dropped,
            Some(_) => {}
            None => return NamelessRecord::Dropped,
        }
        NamelessRecord::Kept
    }

    /// Hides the paths in the names and attrs of events.
    pub(super) fn hide_events(&mut self, events: &mut [RecordedEvent], pmus: &[PmuMapping]) {
        for event in events {
            let is_probe = |pmu: &PmuMapping| {
                pmu.kind == event.attr.kind() && ["uprobe", "kprobe"].contains(&pmu.name.as_str())
            };
            if pmus.iter().any(is_probe) {
                // Pointers in the recorder, or addresses.
                event.attr.set_word(7, 0);
                event.attr.set_word(8, 0);
            }
            if let Some(name) = event.name.as_mut().filter(|name| name.contains(":/")) {
                *name = self.text(name);
            }
        }
    }

    /// Hides the names in feature sections, and drops sections that consist of names.
    pub(super) fn hide_features(&mut self, features: &mut Features) -> Result<()> {
        features.hostname = features.hostname.as_ref().map(|_| HIDDEN.to_owned());
        features.cmdline = features.cmdline.as_ref().map(|_| vec![HIDDEN.to_owned()]);
        for row in features.build_ids.iter_mut().flat_map(|list| &mut list.0) {
            row.name = self.path(&row.name);
        }
        if let Some(data) = &mut features.tracing_data {
            // It ends with the kernel's addresses and the names of threads.
            data.0 = TracingData::formats_only(&data.0).ok_or_else(|| {
                Error::new("cannot hide the names in the recording's tracepoint formats")
                    .why("they are damaged")
            })?;
        }
        // The wall-clock time, and sections of simpleperf with names of the device and its files.
        features.clock_data = None;
        (features.device_files, features.device_files2) = (None, None);
        (features.bpf_btf, features.auxtrace) = (None, None);
        if let Some(meta) = &mut features.meta_info {
            meta.keep_counts();
        }
        Ok(())
    }
}

/// Replaces the text at `at`, which is padded to a multiple of 8 bytes.
fn replace_text(record: &mut Vec<u8>, at: usize, old: &[u8], new: &[u8]) {
    let end = (at + (old.len() + 1).next_multiple_of(8)).min(record.len());
    let mut text = new.to_vec();
    text.resize((new.len() + 1).next_multiple_of(8), 0);
    record.splice(at.min(end)..end, text);
    let size = u16::try_from(record.len()).unwrap_or(u16::MAX);
    record[6..8].copy_from_slice(&size.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_replaced_consistently() {
        let mut names = AnonymousNames::default();
        let mut path = |path: &str| String::from_utf8(names.path(path.as_bytes())).unwrap();
        assert_eq!(path("/home/ann/bin/shop"), "/folder1/shop");
        assert_eq!(path("/home/ann/lib/libx.so"), "/folder2/libx.so");
        assert_eq!(path("/home/ann/bin/other"), "/folder1/other");
        assert_eq!(path("/memfd:secret (deleted)"), "/memfd:1 (deleted)");
        for same in ["[vdso]", "[kernel.kallsyms]_text", "//anon", "shop"] {
            assert_eq!(path(same), same);
        }
        assert_eq!(names.text("/home/ann/bin/shop: no such file"), "/folder1/shop: no such file");
        assert_eq!(names.text("src/main.rs"), "/folder3/main.rs");
        assert_eq!(names.text("operator/(int, int)"), "operator/(int, int)");
        assert_eq!(names.text("f::{closure at /home/ann/bin/x.rs:3}"), "f::{closure at /folder1/x.rs:3}");
    }
}
