//! Mappings that name their file by its build-id.
//!
//! ```text
//! MMAP   | pid tid | addr | len | pgoff |                                      | name … |
//! MMAP2  | pid tid | addr | len | pgoff | maj min ino generation | prot, flags | name … |
//!                                       | size 0 0 0 build-id    |  24 bytes: either of the two
//! ```

use rustc_hash::FxHashMap;

use super::{FileIds, Files};
use crate::abi::misc;
use crate::perfdata::RecordTally;
use crate::record::{FileId, HEADER, RawRecord, Record, kind};
use crate::symbol::identify;

/// Where the identity of a file begins in a record, and its bytes.
const AT: usize = HEADER + 32;
const LEN: usize = 24;
/// `PROT_READ` and `PROT_EXEC`: what an `MMAP` maps that is not of data.
const CODE: u32 = 5;

/// What becomes of mappings.
pub(super) struct Mappings {
    /// The files whose mappings stay, with their build-ids.
    files: FxHashMap<Vec<u8>, Option<Vec<u8>>>,
    drops_others: bool,
}

impl Mappings {
    pub(super) fn new(tally: &RecordTally, of: Files, ids: &FileIds<'_>) -> Self {
        let files = tally.files(of == Files::All).into_iter().filter(|file| !file.is_kernel);
        Self {
            files: files.map(|file| (file.name.clone(), ids.of(&file))).collect(),
            drops_others: of == Files::Hit,
        }
    }

    /// Appends what becomes of a mapping: nothing, where no sample lies in its file.
    pub(super) fn write(&self, raw: &RawRecord<'_>, out: &mut Vec<u8>) {
        let (map, has_id) = match raw.parse() {
            Some(Record::Mmap(map)) => (map, false),
            Some(Record::Mmap2(map)) => (map.map, matches!(map.file, FileId::BuildId(_))),
            _ => return out.extend_from_slice(raw.bytes),
        };
        let is_kernel = raw.misc & misc::CPUMODE_MASK == 1 || map.thread.pid < 0;
        let file = self.files.get(map.name);
        if !is_kernel && file.is_none() && self.drops_others {
            return;
        }
        let id = file.and_then(Option::as_ref).filter(|_| identify::is_path(map.name));
        match id {
            Some(id) if !has_id => write_by_id(raw, id, out),
            _ => out.extend_from_slice(raw.bytes),
        }
    }
}

fn write_by_id(raw: &RawRecord<'_>, id: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let id = &id[..id.len().min(20)];
    let mut identity = [0; LEN];
    identity[0] = id.len() as u8;
    identity[4..4 + id.len()].copy_from_slice(id);
    out.extend_from_slice(&raw.bytes[..AT]);
    out.extend(identity);
    if raw.kind == kind::MMAP2 {
        out.extend_from_slice(&raw.bytes[AT + LEN..]);
    } else {
        let prot = if raw.misc & misc::MMAP_DATA != 0 { 0 } else { CODE };
        out.extend(prot.to_ne_bytes());
        out.extend(0u32.to_ne_bytes());
        out.extend_from_slice(&raw.bytes[AT..]);
    }
    let header = &mut out[start..];
    header[..4].copy_from_slice(&kind::MMAP2.to_ne_bytes());
    header[4..6].copy_from_slice(&(raw.misc | misc::MMAP_BUILD_ID).to_ne_bytes());
    let size = header.len() as u16;
    header[6..HEADER].copy_from_slice(&size.to_ne_bytes());
}
