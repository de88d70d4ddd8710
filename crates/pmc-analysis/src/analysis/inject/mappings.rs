//! Adds build-ids to mappings, and drops mappings without samples.

use rustc_hash::FxHashMap;

use super::{FileIds, FileSelection};
use pmc_perfdata::perfdata::RecordTally;
use pmc_perfdata::record::{MappedFileId, RawRecord, Record, write_by_build_id};
use pmc_symbols::symbol::identify;
use pmc_sys::abi::misc;

/// Which mappings to keep, and their build-ids.
pub(super) struct KeptMappings {
    /// The files whose mappings are kept, with their build-ids.
    files: FxHashMap<Vec<u8>, Option<Vec<u8>>>,
    drops_others: bool,
}

impl KeptMappings {
    pub(super) fn new(tally: &RecordTally, of: FileSelection, ids: &FileIds<'_>) -> Self {
        let files = tally.files(of == FileSelection::All).into_iter().filter(|file| !file.is_kernel);
        Self {
            files: files.map(|file| (file.name.clone(), ids.build_id(&file))).collect(),
            drops_others: of == FileSelection::Hit,
        }
    }

    /// Appends the rewritten mapping, or nothing if its file has no samples.
    pub(super) fn write(&self, raw: &RawRecord<'_>, out: &mut Vec<u8>) {
        let (map, has_id) = match raw.parse() {
            Some(Record::Mmap(map)) => (map, false),
            Some(Record::Mmap2(map)) => (map.map, matches!(map.file, MappedFileId::BuildId(_))),
            _ => return out.extend_from_slice(raw.bytes),
        };
        let is_kernel = raw.misc & misc::CPUMODE_MASK == 1 || map.thread.pid < 0;
        let file = self.files.get(map.name);
        if !is_kernel && file.is_none() && self.drops_others {
            return;
        }
        let id = file.and_then(Option::as_ref).filter(|_| identify::is_path(map.name));
        match id {
            Some(id) if !has_id => write_by_build_id(raw, id, out),
            _ => out.extend_from_slice(raw.bytes),
        }
    }
}
