//! Reads ELF files: segments, build-id, section contents, and whether symbols and lines are present.
//!
//! Takes the bytes of an untrusted file. [`locate`](super::locate) finds the files, `tables` reads
//! symbols, and `dwarf` reads lines.

use std::io::Read;

use object::elf;
use object::read::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{ObjectKind, SectionFlags, SectionIndex, SegmentFlags};
use rustc_hash::FxHashMap;

use crate::address::{FileOffset, Svma};
use crate::symbol::build_id::BuildId;

/// The total uncompressed size of a file's compressed sections may be at most this multiple of the file's
/// size, plus [`UNPACKED_FREE`]. Debug information usually compresses to between a third and a fifth of its
/// size.
const MOST_UNPACKED: u64 = 10;

/// Number of uncompressed bytes that are allowed regardless of the file's size.
const UNPACKED_FREE: u64 = 1 << 20;

/// Returns the maximum number of uncompressed bytes in a file of `len` bytes.
pub(crate) fn most_unpacked(len: u64) -> u64 {
    len.saturating_mul(MOST_UNPACKED).saturating_add(UNPACKED_FREE)
}

/// The loaded segments, which map file offsets to addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Box<[LoadSegment]>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadSegment {
    offset: u64,
    in_file: u64,
    address: u64,
    in_memory: u64,
    executable: bool,
    align: u64,
}

/// Reconstructs the program's segment offsets from its debug file, which contains neither the segments' bytes
/// nor their offsets.
///
/// Linkers place each segment at the next offset that equals its address modulo the alignment.
fn place_at_next_offsets(segments: &mut [LoadSegment]) {
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
    /// Reads the `PT_LOAD` program headers of a file.
    pub(crate) fn from_elf(file: &File<'_>) -> Self {
        let segment = |s: object::read::Segment<'_, '_>| {
            let (offset, in_file) = s.file_range();
            let executable = matches!(s.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags & elf::PF_X != elf::ProgramFlags(0));
            let align = s.align();
            LoadSegment { offset, in_file, address: s.address(), in_memory: s.size(), executable, align }
        };
        let mut segments: Vec<LoadSegment> = file.segments().map(segment).collect();
        if segments.iter().any(|s| s.executable && s.in_file == 0) {
            place_at_next_offsets(&mut segments);
        }
        Self(segments.into())
    }

    /// Returns the segments as rows: offset, size in the file, address, size in memory, whether it is
    /// executable, alignment.
    pub(crate) fn to_rows(&self) -> impl Iterator<Item = [u64; 6]> {
        let row =
            |s: &LoadSegment| [s.offset, s.in_file, s.address, s.in_memory, u64::from(s.executable), s.align];
        self.0.iter().map(row)
    }

    /// Inverse of [`Segments::to_rows`].
    pub(crate) fn of_rows(rows: impl Iterator<Item = [u64; 6]>) -> Self {
        let segment = |[offset, in_file, address, in_memory, executable, align]: [u64; 6]| LoadSegment {
            offset,
            in_file,
            address,
            in_memory,
            executable: executable != 0,
            align,
        };
        Self(rows.map(segment).collect())
    }

    /// Converts a file offset to an address in the file.
    ///
    /// If two segments share a page of the file, the kernel maps that page twice, and samples are in the
    /// executable mapping. Mappings consist of whole pages, so they include offsets slightly outside the
    /// segment.
    pub(crate) fn address(&self, offset: FileOffset) -> Option<Svma> {
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

    /// Returns the range of offsets around this one (end exclusive) in which address minus offset is
    /// constant; `None` outside of code.
    pub(crate) fn around(&self, offset: FileOffset) -> Option<(u64, u64)> {
        // If two segments share a page, use the executable one.
        let holds = |s: &&LoadSegment| s.executable && offset.0.wrapping_sub(s.offset) < s.in_file;
        self.0.iter().find(holds).map(|s| (s.offset, s.offset.saturating_add(s.in_file)))
    }

    /// Converts an address to a file offset, preferably in an executable segment.
    pub(crate) fn offset(&self, address: Svma) -> Option<FileOffset> {
        let inside = |s: &&LoadSegment| address.0.wrapping_sub(s.address) < s.in_file;
        let segment = self.0.iter().filter(inside).max_by_key(|s| s.executable)?;
        Some(FileOffset(address.0.wrapping_sub(segment.address).wrapping_add(segment.offset)))
    }
}

/// Reads the build-id from a file's notes.
pub fn build_id(file: &File<'_>) -> Option<BuildId> {
    file.build_id().ok().flatten().and_then(BuildId::new)
}

/// Whether a file has the sections that line lookup needs.
pub(crate) fn has_lines(file: &File<'_>) -> bool {
    section_in_file(file, ".debug_info") && section_in_file(file, ".debug_abbrev")
}

/// Whether the dynamic symbol table contains a function or variable with this name, defined or imported.
pub fn has_dynamic_symbol(file: &File<'_>, name: &str) -> bool {
    file.dynamic_symbols().any(|symbol| symbol.name() == Ok(name))
}

/// Whether a file has the linker's full symbol table.
pub(crate) fn has_symtab(file: &File<'_>) -> bool {
    section_in_file(file, ".symtab")
}

/// Whether the file contains a section's bytes. Debug files contain the headers of some sections without the
/// bytes (`SHT_NOBITS`).
fn section_in_file(file: &File<'_>, name: &str) -> bool {
    file.section_by_name(name).is_some_and(|s| s.file_range().is_some_and(|(_, size)| size > 0))
}

/// Returns a section's contents, decompressed if necessary. `None` if the section is missing or truncated, or
/// if the total uncompressed size that the file's compressed sections state is too large.
pub fn section<'a>(file: &File<'a>, name: &str) -> Option<std::borrow::Cow<'a, [u8]>> {
    let data = file.section_by_name(name)?.compressed_data().ok()?;
    if data.format != object::CompressionFormat::None && !stated_sizes_are_plausible(file) {
        return None;
    }
    data.decompress().ok()
}

/// Whether the stated uncompressed sizes of the compressed sections are plausible, given the file's size.
fn stated_sizes_are_plausible(file: &File<'_>) -> bool {
    let (mut claimed, mut len) = (0u64, 0u64);
    for section in file.sections() {
        if let Ok(range) = section.compressed_file_range()
            && range.format != object::CompressionFormat::None
        {
            claimed = claimed.saturating_add(range.uncompressed_size);
        }
        // Only count sections that lie within the file. Headers of others, and of empty ones, may state any
        // offset.
        if let (Ok(data), Some((offset, size))) = (section.data(), section.file_range())
            && !data.is_empty()
        {
            len = len.max(offset.saturating_add(size));
        }
    }
    claimed <= most_unpacked(len)
}

/// Decompresses the reduced symbol table that distributions add to programs: an ELF file in xz format, in the
/// section `.gnu_debugdata`.
pub(crate) fn mini_debug(file: &File<'_>) -> Option<Vec<u8>> {
    let packed = file.section_by_name(".gnu_debugdata")?.data().ok()?;
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(packed, false, 256 << 10)
        .take(most_unpacked(packed.len() as u64))
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

/// Returns the addresses at which the sections of a relocatable file will be loaded; empty for other files.
///
/// The kernel loads a module's executable sections in file order, each at its alignment, and the `.init`
/// sections elsewhere.
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

/// Returns the unrelocated bytes in a relocatable file, at an address assigned by `layout`.
pub(crate) fn laid_out<'a>(file: &File<'a>, address: u64, size: u64) -> Option<&'a [u8]> {
    let places = layout(file);
    let section = file.sections().find(|section| {
        places.get(&section.index()).is_some_and(|place| address.wrapping_sub(*place) < section.size())
    })?;
    let at = usize::try_from(address - places.get(&section.index())?).ok()?;
    let bytes = section.data().ok()?.get(at..)?;
    Some(&bytes[..bytes.len().min(size as usize)])
}

/// Whether a section contains machine code.
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
    fn offsets_map_to_addresses_through_their_segment() {
        // Code and data share a page of the file, as with GNU ld without -z separate-code.
        let mixed = segments(&[(0, 0x1500, 0x40_0000, true), (0x1500, 0x800, 0x60_1500, false)]);
        assert_eq!(mixed.address(FileOffset(0x1234)), Some(Svma(0x40_1234)));
        assert_eq!(mixed.address(FileOffset(0x1600)), Some(Svma(0x60_1600)));
        // In a file that was prelinked or linked by lld, address and offset differ by more than the base.
        let apart = segments(&[(0, 0x800, 0, false), (0x800, 0x800, 0x1800, true)]);
        assert_eq!(apart.address(FileOffset(0x900)), Some(Svma(0x1900)));
        assert_eq!(apart.address(FileOffset(0x1008)), Some(Svma(0x2008)), "the rest of the last page");
        assert_eq!(Segments::default().address(FileOffset(5)), None);
        // A hostile segment that wraps around the end of the address space.
        let wrapped = segments(&[(0x100, 0x1000, u64::MAX, true)]);
        assert_eq!(wrapped.offset(Svma(5)), Some(FileOffset(0x106)));
    }

    #[test]
    fn offsets_missing_in_the_debug_file_are_recovered() {
        // GNU ld: (0, 0x5e0), (0x1000, 0x145), (0x2000, 0xd0), (0x3e00 at 0x2e00); lld: text at 0x800 for
        // address 0x1800.
        let mut gnu = segments(&[
            (0, 0x5e0, 0, false),
            (0, 0x145, 0x1000, true),
            (0, 0xd0, 0x2000, false),
            (0, 0x210, 0x3e00, false),
        ])
        .0;
        place_at_next_offsets(&mut gnu);
        assert_eq!(gnu.iter().map(|s| s.offset).collect::<Vec<_>>(), [0, 0x1000, 0x2000, 0x2e00]);
        let mut lld = segments(&[(0, 0x800, 0, false), (0, 0x700, 0x1800, true)]).0;
        place_at_next_offsets(&mut lld);
        assert_eq!(lld.iter().map(|s| s.offset).collect::<Vec<_>>(), [0, 0x800]);
    }
}
