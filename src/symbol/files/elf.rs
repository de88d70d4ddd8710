//! What an ELF file says: its segments, its build-id, its sections' bytes, and whether it has symbols and
//! lines.
//!
//! Receives the bytes of an untrusted file; hands on values. Leaves finding files to
//! [`locate`](super::locate), symbols to `tables`, line tables to `dwarf`.

use std::io::Read;

use object::elf;
use object::read::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{ObjectKind, SectionFlags, SectionIndex, SegmentFlags};
use rustc_hash::FxHashMap;

use crate::address::{FileOffset, Svma};
use crate::symbol::BuildId;

/// Bytes that all compressed sections of a file may claim together: so many times the file's own, and
/// [`UNPACKED_FREE`]. Debug information packs to a third or a fifth.
const MOST_UNPACKED: u64 = 10;

/// Bytes that those of any file may claim.
const UNPACKED_FREE: u64 = 1 << 20;

/// Most bytes that may be unpacked of a file of `len` bytes.
pub fn most_unpacked(len: u64) -> u64 {
    len.saturating_mul(MOST_UNPACKED).saturating_add(UNPACKED_FREE)
}

/// The loaded segments: how places in the file and the file's addresses belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<LoadSegment>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadSegment {
    offset: u64,
    in_file: u64,
    address: u64,
    in_memory: u64,
    executable: bool,
    align: u64,
}

/// Works out where the segments lay in the program, from a debug file that was left without their bytes and
/// places.
///
/// Linkers put one behind the other, each at the next place that agrees with its address modulo the
/// alignment.
fn place_anew(segments: &mut [LoadSegment]) {
    let mut end = 0u64;
    for segment in segments {
        let align = segment.align.max(1);
        let gap = (segment.address % align + align - end % align) % align;
        segment.offset = end.saturating_add(gap);
        segment.in_file = segment.in_memory;
        end = segment.offset.saturating_add(segment.in_memory);
    }
}

impl Segments {
    /// The `PT_LOAD` program headers of a file.
    pub fn of(file: &File<'_>) -> Self {
        let segment = |s: object::read::Segment<'_, '_>| {
            let (offset, in_file) = s.file_range();
            let executable = matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags & elf::PF_X != elf::ProgramFlags(0));
            let align = s.align();
            LoadSegment { offset, in_file, address: s.address(), in_memory: s.size(), executable, align }
        };
        let mut segments: Vec<LoadSegment> = file.segments().map(segment).collect();
        if segments.iter().any(|s| s.executable && s.in_file == 0) {
            place_anew(&mut segments);
        }
        Self(segments)
    }

    /// The file's address of a place in the file.
    ///
    /// Two segments may share a page of the file; the kernel then maps that page twice, and what samples hit
    /// is the executable one. A mapping is made of whole pages, so a place shortly outside of a segment
    /// belongs to it too.
    pub fn address(&self, offset: FileOffset) -> Option<Svma> {
        let at = offset.0;
        let inside = |s: &&LoadSegment| at.wrapping_sub(s.offset) < s.in_file.max(s.in_memory);
        let within = self
            .0
            .iter()
            .filter(inside)
            .max_by_key(|s| (s.executable, at.wrapping_sub(s.offset) < s.in_file));
        let near = || {
            self.0.iter().filter(|s| s.executable).min_by_key(|s| {
                s.offset.saturating_sub(at).max(at.saturating_sub(s.offset.saturating_add(s.in_file)))
            })
        };
        let segment = within.or_else(near)?;
        Some(Svma(at.wrapping_sub(segment.offset).wrapping_add(segment.address)))
    }

    /// The places in the file, around this one, whose addresses lie as far from them: first, and first
    /// behind. `None` outside of code.
    pub fn around(&self, offset: FileOffset) -> Option<(u64, u64)> {
        // Where two segments share a page, the executable one is meant.
        let holds = |s: &&LoadSegment| s.executable && offset.0.wrapping_sub(s.offset) < s.in_file;
        self.0.iter().find(holds).map(|s| (s.offset, s.offset.saturating_add(s.in_file)))
    }

    /// The place in the file of an address, in a segment with code if there is a choice.
    pub fn offset(&self, address: Svma) -> Option<FileOffset> {
        let inside = |s: &&LoadSegment| address.0.wrapping_sub(s.address) < s.in_file;
        let segment = self.0.iter().filter(inside).max_by_key(|s| s.executable)?;
        Some(FileOffset((address.0 - segment.address).wrapping_add(segment.offset)))
    }
}

/// The build-id in a file's notes.
pub fn build_id(file: &File<'_>) -> Option<BuildId> {
    file.build_id().ok().flatten().and_then(BuildId::new)
}

/// A file with any of the sections that line lookup needs.
pub fn has_lines(file: &File<'_>) -> bool {
    section_in_file(file, ".debug_info") && section_in_file(file, ".debug_abbrev")
}

/// Whether a function or variable of this name is in the dynamic symbol table, be it another file's.
pub fn has_dynamic_symbol(file: &File<'_>, name: &str) -> bool {
    file.dynamic_symbols().any(|symbol| symbol.name() == Ok(name))
}

/// A file with the linker's full symbol table.
pub fn has_symtab(file: &File<'_>) -> bool {
    section_in_file(file, ".symtab")
}

/// Files of debug information keep the headers of sections whose bytes they left behind (`SHT_NOBITS`).
fn section_in_file(file: &File<'_>, name: &str) -> bool {
    file.section_by_name(name).is_some_and(|s| s.file_range().is_some_and(|(_, size)| size > 0))
}

/// A section's bytes, unpacked when they are compressed; `None` when it is absent or torn, or when the file's
/// compressed sections claim too much together.
pub fn section<'a>(file: &File<'a>, name: &str) -> Option<std::borrow::Cow<'a, [u8]>> {
    let data = file.section_by_name(name)?.compressed_data().ok()?;
    if data.format != object::CompressionFormat::None && !claims_are_plausible(file) {
        return None;
    }
    data.decompress().ok()
}

/// Whether the compressed sections of a file unpack to a size that its own explains.
fn claims_are_plausible(file: &File<'_>) -> bool {
    let (mut claimed, mut len) = (0u64, 0u64);
    for section in file.sections() {
        if let Ok(range) = section.compressed_file_range()
            && range.format != object::CompressionFormat::None
        {
            claimed = claimed.saturating_add(range.uncompressed_size);
        }
        // Sections that lie in the file: others may claim any offset.
        if let (Ok(_), Some((offset, size))) = (section.data(), section.file_range()) {
            len = len.max(offset.saturating_add(size));
        }
    }
    claimed <= most_unpacked(len)
}

/// The stripped symbol table that distributions pack into programs (`.gnu_debugdata`: an ELF file in xz).
pub fn mini_debug(file: &File<'_>) -> Option<Vec<u8>> {
    let packed = file.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(packed, false, 256 << 10)
        .take(most_unpacked(packed.len() as u64))
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Where a relocatable file's sections come to lie; empty for files that state addresses.
///
/// The kernel lays out a module's executable sections in the order of the file, each at its alignment, those
/// of `.init` elsewhere.
pub(in crate::symbol) fn layout(file: &File<'_>) -> FxHashMap<SectionIndex, u64> {
    let mut places = FxHashMap::default();
    if file.kind() != ObjectKind::Relocatable {
        return places;
    }
    let mut end = 0u64;
    for section in file.sections() {
        let init = section.name_bytes().is_ok_and(|name| name.starts_with(b".init"));
        if is_code(section.flags()) && !init {
            let place = end.checked_next_multiple_of(section.align().max(1)).unwrap_or(end);
            places.insert(section.index(), place);
            end = place.saturating_add(section.size());
        }
    }
    places
}

/// The bytes of a relocatable file at an address where its sections come to lie, as they are in the file.
pub fn laid_out<'a>(file: &File<'a>, address: u64, size: u64) -> Option<&'a [u8]> {
    let places = layout(file);
    let section = file.sections().find(|section| {
        places.get(&section.index()).is_some_and(|place| address.wrapping_sub(*place) < section.size())
    })?;
    let at = usize::try_from(address - places.get(&section.index())?).ok()?;
    let bytes = section.data().ok()?.get(at..)?;
    Some(&bytes[..bytes.len().min(size as usize)])
}

/// Whether a section holds machine code.
pub(in crate::symbol) fn is_code(flags: SectionFlags) -> bool {
    let wanted = elf::SHF_ALLOC | elf::SHF_EXECINSTR;
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags & wanted == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(list: &[(u64, u64, u64, bool)]) -> Segments {
        let make = |&(offset, size, address, executable)| LoadSegment {
            offset,
            in_file: size,
            address,
            in_memory: size,
            executable,
            align: 0x1000,
        };
        Segments(list.iter().map(make).collect())
    }

    #[test]
    fn places_become_addresses_by_the_segment_that_holds_them() {
        // The text and the data share a page of the file, as GNU ld leaves it without -z separate-code.
        let mixed = segments(&[(0, 0x1500, 0x40_0000, true), (0x1500, 0x800, 0x60_1500, false)]);
        assert_eq!(mixed.address(FileOffset(0x1234)), Some(Svma(0x40_1234)));
        assert_eq!(mixed.address(FileOffset(0x1600)), Some(Svma(0x60_1600)));
        // A prelinked or lld-made file: address and offset differ by more than the base.
        let apart = segments(&[(0, 0x800, 0, false), (0x800, 0x800, 0x1800, true)]);
        assert_eq!(apart.address(FileOffset(0x900)), Some(Svma(0x1900)));
        assert_eq!(apart.address(FileOffset(0x1008)), Some(Svma(0x2008)), "the rest of the last page");
        assert_eq!(Segments::default().address(FileOffset(5)), None);
    }

    #[test]
    fn places_that_a_debug_file_lost_are_found_again() {
        // GNU ld: (0, 0x5e0), (0x1000, 0x145), (0x2000, 0xd0), (0x3e00 at 0x2e00); lld: text at 0x800 for
        // address 0x1800.
        let mut gnu = segments(&[
            (0, 0x5e0, 0, false),
            (0, 0x145, 0x1000, true),
            (0, 0xd0, 0x2000, false),
            (0, 0x210, 0x3e00, false),
        ])
        .0;
        place_anew(&mut gnu);
        assert_eq!(gnu.iter().map(|s| s.offset).collect::<Vec<_>>(), [0, 0x1000, 0x2000, 0x2e00]);
        let mut lld = segments(&[(0, 0x800, 0, false), (0, 0x700, 0x1800, true)]).0;
        place_anew(&mut lld);
        assert_eq!(lld.iter().map(|s| s.offset).collect::<Vec<_>>(), [0, 0x800]);
    }
}
