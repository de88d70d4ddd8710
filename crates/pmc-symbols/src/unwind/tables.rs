//! A file's unwind tables, extracted once and shared by all processes that map it.

use std::ops::Range;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use gimli::{
    CallFrameInstruction, CieOrFde, EndianSlice, LittleEndian, Operation, Register, Section, UnwindSection,
};
use object::Architecture;
use object::read::{File, Object, ObjectSection, ObjectSegment};

use super::arch::Arch;
use super::code::{ProgramCode, ProgramFile};
use super::entries::{Entries, EntryIndex, FrameTable};
use super::go_frames;
use super::section::{self, CallFrameSection, LONG_CIE, SharedBytes, short_cie};
use crate::address::{FileOffset, Mapping};
use crate::go_table::GoTable;

/// The unwind data of a file.
#[derive(Debug, Clone)]
pub struct UnwindTables {
    sections: ExplicitModuleSectionInfo<SharedBytes>,
    /// The file range and address of each loaded segment.
    segments: Arc<[(Range<u64>, u64)]>,
    /// Ranges of file addresses that have entries, sorted by start.
    covered: Arc<[Range<u64>]>,
    entries: Arc<Entries>,
    code: Option<ProgramCode>,
}

/// An entry's offset in its section, and the start of its function.
type EntryPosition = (usize, u64);

/// Maximum alignment of functions. The padding before the next function is never executed.
const PADDING: u64 = 64;

/// Maximum size of a section with unwind data. Larger sections are ignored.
const MOST_BYTES: u64 = 512 << 20;

impl UnwindTables {
    /// Extracts the tables of an ELF file: `.eh_frame` with its index, and `.debug_frame`, which may also
    /// come from a separate debug file or from the table of Go's runtime. Returns `None` if the file is not
    /// ELF, has no such table, or is for an architecture that pmc does not unwind.
    pub fn read(program: &[u8], debug: Option<&[u8]>) -> Option<Self> {
        let file = File::parse(program).ok()?;
        let range = |name: &str| {
            let section = file.section_by_name(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let arch = match file.architecture() {
            Architecture::I386 => Arch::X86,
            Architecture::Aarch64 => Arch::Aarch64,
            Architecture::X86_64 => Arch::X86_64,
            _ => return None,
        };
        if !file.is_little_endian() {
            return None;
        }
        let start = |name: &str| range(name).map_or(0, |range| range.start);
        let bases = gimli::BaseAddresses::default().set_eh_frame(start(".eh_frame"));
        let bases = bases.set_text(start(".text")).set_got(start(".got"));
        let eh_frame = bytes(&file, ".eh_frame").map(CallFrameSection::Eh);
        // The code that starts a program has an .eh_frame, even if the rest was compiled without.
        let debug_frame = bytes(&file, ".debug_frame")
            .or_else(|| bytes(&File::parse(debug?).ok()?, ".debug_frame"))
            .or_else(|| go_frames::debug_frame(&GoTable::find(&file)?, arch));
        let sections = [eh_frame, debug_frame.map(CallFrameSection::Debug)].into_iter().flatten();
        let mut read: Vec<(CallFrameSection, CheckedFrames)> =
            sections.filter_map(|section| Some((section.clone(), section.checked(arch, &bases)?))).collect();
        // framehop reads the first table, which is the one with more functions.
        read.sort_by_key(|(_, frames)| std::cmp::Reverse(frames.places.len()));
        let mut explicit = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range(".text"),
            got_svma: range(".got"),
            ..ExplicitModuleSectionInfo::default()
        };
        let (mut tables, mut covered, mut tell_frame_pointers) = (Vec::new(), Vec::new(), false);
        for (section, frames) in read {
            let mut header = None;
            match &section {
                CallFrameSection::Eh(bytes) if tables.is_empty() => {
                    header = usable_index(&file, &frames.places)
                        .and_then(|()| self::bytes(&file, ".eh_frame_hdr"));
                    explicit.eh_frame_svma = range(".eh_frame");
                    explicit.eh_frame_hdr_svma = range(".eh_frame_hdr");
                    explicit.eh_frame_hdr.clone_from(&header);
                    explicit.eh_frame = Some(bytes.clone());
                }
                CallFrameSection::Debug(bytes) if tables.is_empty() => {
                    explicit.debug_frame = Some(bytes.clone())
                }
                CallFrameSection::Eh(_) | CallFrameSection::Debug(_) => {}
            }
            let index = match header {
                Some(header) if arch != Arch::X86 => EntryIndex::Linkers {
                    header,
                    address: start(".eh_frame_hdr"),
                    eh_frame: start(".eh_frame"),
                },
                _ => {
                    let mut functions: Vec<_> =
                        frames.places.iter().map(|(place, start)| (*start, *place)).collect();
                    functions.sort_unstable();
                    EntryIndex::List(functions)
                }
            };
            covered.extend(frames.covered);
            tell_frame_pointers |= frames.tell_frame_pointers;
            tables.push(FrameTable { section, index });
        }
        if tables.is_empty() {
            return None;
        }
        if tables.len() > 1 {
            merge(&mut covered);
        }
        let sections = explicit;
        let segment = |s: object::read::Segment<'_, '_>| {
            let (offset, size) = s.file_range();
            (offset..offset.saturating_add(size), s.address())
        };
        let segments = file.segments().map(segment).collect();
        let entries = Arc::new(Entries { arch, bases, tables, tell_frame_pointers });
        Some(Self { sections, segments, covered: covered.into(), entries, code: None })
    }

    /// Adds the file's code, which is needed to check callers found through frame pointers.
    #[must_use]
    pub fn with_program(self, program: ProgramFile) -> Self {
        let code = ProgramCode { arch: self.entries.arch, program, segments: Arc::clone(&self.segments) };
        Self { code: Some(code), ..self }
    }

    /// The file's code, if available.
    pub(super) fn code(&self) -> Option<&ProgramCode> {
        self.code.as_ref()
    }

    /// Returns the ranges of file addresses that have entries, sorted by start. Ranges with short gaps
    /// between them are merged.
    pub(super) fn covered(&self) -> Arc<[Range<u64>]> {
        self.covered.clone()
    }

    pub(super) fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Whether the tables come from a 32-bit x86 file.
    pub(super) fn is_x86(&self) -> bool {
        self.entries.arch == Arch::X86
    }

    /// Memory used, in bytes.
    pub fn bytes(&self) -> usize {
        let header = self.sections.eh_frame_hdr.as_ref().map_or(0, |header| header.len());
        let table = |table: &FrameTable| table.section.bytes().len() + table.index.bytes();
        let tables: usize = self.entries.tables.iter().map(table).sum();
        header + tables + size_of_val(&*self.covered)
    }

    pub(super) fn sections(&self) -> ExplicitModuleSectionInfo<SharedBytes> {
        self.sections.clone()
    }

    /// Returns the difference between mapped addresses and addresses in the file.
    pub(super) fn slide(&self, mapping: &Mapping) -> u64 {
        let FileOffset(start) = mapping.offset;
        let last = start.saturating_add(mapping.len.saturating_sub(1));
        // Mappings consist of whole pages, so this one may start slightly before the segment.
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

/// Copies a section's contents. The copy outlives the file, and is shared by all processes.
pub(super) fn bytes(file: &File<'_>, name: &str) -> Option<SharedBytes> {
    let section = file.section_by_name(name)?;
    let packed = section.compressed_data().ok()?;
    let size = packed.uncompressed_size;
    if size == 0 || size > MOST_BYTES.min((packed.data.len() as u64).saturating_mul(1032)) {
        return None;
    }
    Some(packed.decompress().ok()?.as_ref().into())
}

/// Checks whether the linker's index is usable. It must be a sorted table of 4-byte values relative to the
/// table's address (the format that all linkers emit), and each entry must point to a checked frame.
/// Otherwise, pmc builds an index itself.
///
/// ```text
///   u8 version 1 | u8 | u8 0x03 | u8 0x3b | i32 to .eh_frame | u32 count | count × (i32 function, i32 frame)
/// ```
fn usable_index(file: &File<'_>, places: &[EntryPosition]) -> Option<()> {
    let (index, frames) = (file.section_by_name(".eh_frame_hdr")?, file.section_by_name(".eh_frame")?);
    let (header, table) = index.data().ok()?.split_at_checked(12)?;
    let form = header[0] == 1 && header[2] == 0x03 && header[3] == 0x3b;
    let leads_to_a_frame = |entry: &[u8]| {
        let Some(distance) = entry.last_chunk::<4>().map(|b| i32::from_le_bytes(*b)) else { return false };
        let address = index.address().wrapping_add_signed(i64::from(distance));
        let place = address.wrapping_sub(frames.address()) as usize;
        places.binary_search_by_key(&place, |(place, _)| *place).is_ok()
    };
    (form && table.chunks_exact(8).all(leads_to_a_frame)).then_some(())
}

/// The result of checking a section's frames.
struct CheckedFrames {
    /// The offsets of all frames, in ascending order.
    places: Vec<EntryPosition>,
    covered: Vec<Range<u64>>,
    /// See [`Entries`].
    tell_frame_pointers: bool,
}

impl CallFrameSection {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Eh(bytes) | Self::Debug(bytes) => bytes,
        }
    }

    /// Reads all frames in the section. Returns `None` if they cannot be used; see [`checked`].
    fn checked(&self, arch: Arch, bases: &gimli::BaseAddresses) -> Option<CheckedFrames> {
        let register = section::frame_pointer(arch);
        match self {
            Self::Eh(bytes) => checked(&section::eh_frame(bytes, arch), bases, register),
            Self::Debug(bytes) => checked(&section::debug_frame(bytes, arch), bases, register),
        }
    }
}

/// Reads all frames in a section. Returns `None` if a CIE is too long, or if a rule's expression contains a
/// branch: compilers never emit branches there, and in framehop, a backward branch could loop forever.
fn checked<'a, S>(section: &S, bases: &gimli::BaseAddresses, frame_pointer: Register) -> Option<CheckedFrames>
where
    S: UnwindSection<EndianSlice<'a, LittleEndian>> + Section<EndianSlice<'a, LittleEndian>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut tell_frame_pointers = false;
    let mut branches =
        |mut instructions: gimli::CallFrameInstructionIter<'_, EndianSlice<'a, LittleEndian>>, encoding| {
            while let Ok(Some(instruction)) = instructions.next() {
                tell_frame_pointers |= matches!(
                    instruction,
                    CallFrameInstruction::DefCfa { register, .. }
                    | CallFrameInstruction::DefCfaRegister { register }
                    | CallFrameInstruction::Offset { register, .. }
                    | CallFrameInstruction::Expression { register, .. } if register == frame_pointer
                );
                let (CallFrameInstruction::DefCfaExpression { expression }
                | CallFrameInstruction::Expression { expression, .. }
                | CallFrameInstruction::ValExpression { expression, .. }) = instruction
                else {
                    continue;
                };
                let Ok(expression) = expression.get(section) else { continue };
                let mut operations = expression.operations(encoding);
                while let Ok(Some(operation)) = operations.next() {
                    if matches!(operation, Operation::Bra { .. } | Operation::Skip { .. }) {
                        return true;
                    }
                }
            }
            false
        };
    let mut places = Vec::new();
    let mut covered = Vec::new();
    let mut entries = section.entries(bases);
    // Frames after an error cannot be used for unwinding either, since lookups would fail with the same
    // error.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let frame = match partial.parse(short_cie) {
            Ok(frame) => frame,
            Err(LONG_CIE) => return None,
            Err(_) => continue,
        };
        let (cie, encoding) = (frame.cie(), frame.cie().encoding());
        if branches(cie.instructions(section, bases), encoding)
            || branches(frame.instructions(section, bases), encoding)
        {
            return None;
        }
        places.push((frame.offset(), frame.initial_address()));
        covered.push(frame.initial_address()..frame.end_address());
    }
    merge(&mut covered);
    covered.shrink_to_fit();
    Some(CheckedFrames { places, covered, tell_frame_pointers })
}

/// Sorts ranges, and merges those with only padding between them.
fn merge(ranges: &mut Vec<Range<u64>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end.saturating_add(PADDING);
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eh_frame_hdr_is_used_only_if_it_leads_to_fdes() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let file = File::parse(&*program).unwrap();
        let frames = bytes(&file, ".eh_frame").unwrap();
        let bases = gimli::BaseAddresses::default();
        let bases = bases.set_eh_frame(file.section_by_name(".eh_frame").unwrap().address());
        let section = section::eh_frame(&frames, Arch::X86_64);
        let CheckedFrames { mut places, covered, .. } =
            checked(&section, &bases, section::frame_pointer(Arch::X86_64)).unwrap();
        assert!(covered.is_sorted_by(|a, b| a.end + PADDING < b.start));
        assert!(covered.iter().any(|range| range.contains(&(file.entry()))));
        assert!(places.len() > 100 && usable_index(&file, &places).is_some());
        places.remove(places.len() / 2);
        assert!(usable_index(&file, &places).is_none());
    }

    #[test]
    fn frames_that_may_share_a_long_cie_are_rejected() {
        let has_tables = |padding: usize| {
            // Version 1, no augmentation, factors 1 and -8, return address 16; then instructions.
            let common =
                [&[0xff; 4][..], &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1], &vec![0; padding]].concat();
            let function = [&[0; 4][..], &0x1000u64.to_le_bytes(), &0x100u64.to_le_bytes()].concat();
            let entry = |body: Vec<u8>| [&(body.len() as u32).to_le_bytes()[..], &body].concat();
            let bytes = [entry(common), entry(function)].concat();
            let section = section::debug_frame(&bytes, Arch::X86_64);
            let frame_pointer = section::frame_pointer(Arch::X86_64);
            let frames = checked(&section, &gimli::BaseAddresses::default(), frame_pointer);
            frames.is_some_and(|frames| frames.places.len() == 1)
        };
        assert!(has_tables(100) && !has_tables(1 << 10));
    }

    #[test]
    fn other_architectures_have_no_tables() {
        let mut program = std::fs::read("/proc/self/exe").unwrap();
        assert!(UnwindTables::read(&program, None).is_some());
        program[18..20].copy_from_slice(&object::elf::EM_RISCV.0.to_le_bytes());
        assert!(UnwindTables::read(&program, None).is_none());
    }

    #[test]
    fn non_elf_input_has_no_tables() {
        assert!(UnwindTables::read(b"", None).is_none());
        assert!(UnwindTables::read(&[0x7f; 1000], None).is_none());
    }
}
