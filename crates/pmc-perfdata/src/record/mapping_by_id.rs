//! Converts a mapping record into one that identifies the file by its build-id.
//!
//! ```text
//! MMAP   | pid tid | addr | len | pgoff |                                      | name … |
//! MMAP2  | pid tid | addr | len | pgoff | maj min ino generation | prot, flags | name … |
//!                                       | size 0 0 0 build-id    |  24 bytes: one of the two
//! ```

use super::{HEADER, RawRecord, kind};
use pmc_sys::abi::misc;

/// Offset and size of a file's identity in a record.
const AT: usize = HEADER + 32;
const LEN: usize = 24;
/// `PROT_READ` and `PROT_EXEC`: the protection of an `MMAP` that does not map data.
const CODE: u32 = 5;

/// Appends an `MMAP` or `MMAP2` record as an `MMAP2` with this build-id. All other fields, including the
/// time, stay the same.
pub fn write_by_build_id(raw: &RawRecord<'_>, id: &[u8], out: &mut Vec<u8>) {
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
