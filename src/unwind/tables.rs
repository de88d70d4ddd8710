//! A file's unwind tables, taken out once and shared by all processes that have it mapped.

use std::ops::Range;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use object::read::{File, Object, ObjectSection, ObjectSegment};

use crate::address::{FileOffset, Mapping};

/// The processors whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

/// Bytes shared between unwinders.
pub(super) type Bytes = Arc<[u8]>;

/// What a file says about unwinding its functions.
#[derive(Debug, Clone)]
pub struct Tables {
    sections: ExplicitModuleSectionInfo<Bytes>,
    /// File range and address of each loaded segment.
    segments: Vec<(Range<u64>, u64)>,
}

/// A single section of unwind data beyond this size is not taken.
const MOST_BYTES: u64 = 512 << 20;

impl Tables {
    /// Takes the tables (`.eh_frame` with its index, else `.debug_frame`) out of an ELF file; a separate debug file may
    /// add the `.debug_frame` that the program lacks. `None` when the file is no ELF file or has no such table.
    pub fn read(program: &[u8], debug: Option<&[u8]>) -> Option<Self> {
        let file = File::parse(program).ok()?;
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let eh_frame = bytes(&file, ".eh_frame");
        let debug_frame =
            || bytes(&file, ".debug_frame").or_else(|| bytes(&File::parse(debug?).ok()?, ".debug_frame"));
        let debug_frame = if eh_frame.is_none() { debug_frame() } else { None };
        if eh_frame.is_none() && debug_frame.is_none() {
            return None;
        }
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame_hdr: usable_index(&file).and_then(|_| bytes(&file, ".eh_frame_hdr")),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame,
            debug_frame,
            ..ExplicitModuleSectionInfo::default()
        };
        let segment = |s: object::read::Segment<'_, '_>| {
            let (offset, size) = s.file_range();
            (offset..offset.saturating_add(size), s.address())
        };
        Some(Self { sections, segments: file.segments().map(segment).collect() })
    }

    pub(super) fn sections(&self) -> ExplicitModuleSectionInfo<Bytes> {
        self.sections.clone()
    }

    /// By how much a mapping of the file lies above the file's own addresses.
    pub(super) fn slide(&self, mapping: &Mapping) -> u64 {
        let FileOffset(start) = mapping.offset;
        let last = start.saturating_add(mapping.len.saturating_sub(1));
        // The mapping is made of whole pages: it may begin a little before its segment.
        let segment = self
            .segments
            .iter()
            .filter(|(file, _)| file.start <= last && start < file.end)
            .max_by_key(|(file, _)| file.end.min(last).saturating_sub(file.start.max(start)));
        let address =
            segment.map_or(start, |(file, address)| address.wrapping_add(start).wrapping_sub(file.start));
        mapping.start.0.wrapping_sub(address)
    }
}

/// A section's bytes, copied; the copy outlives the file and is shared by all processes.
fn bytes(file: &File<'_>, name: &str) -> Option<Bytes> {
    let section = file.section_by_name(name)?;
    let packed = section.compressed_data().ok()?;
    let size = packed.uncompressed_size;
    if size == 0 || size > MOST_BYTES.min((packed.data.len() as u64).saturating_mul(1032)) {
        return None;
    }
    Some(packed.decompress().ok()?.as_ref().into())
}

/// The index is only used in the form that every linker makes: a sorted table of 4-byte values relative to itself.
/// Without it the frames are indexed anew.
fn usable_index(file: &File<'_>) -> Option<()> {
    let section = file.section_by_name(".eh_frame_hdr")?;
    let header = section.data().ok()?.get(..12)?;
    (header[0] == 1 && header[2] == 0x03 && header[3] == 0x3b).then_some(())
}
