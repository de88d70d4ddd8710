//! Looks up source lines and inlined functions in DWARF.
//!
//! Takes the files of a module and sorted addresses in them; returns the functions at each address. Parses
//! only the units that contain an address. If there are many addresses, they are divided among threads in
//! contiguous runs, so that few units are parsed more than once. Each thread has its own view of the shared
//! sections.
//!
//! Follows split DWARF to `.dwp` packages and `.dwo` files, and dwz references to their supplementary file.
//! Since files may be hostile, the uncompressed size of sections is limited, and units that are nested too
//! deeply for the stack are rejected ([`depth`]).

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{DW_AT_ranges, Dwarf, DwarfPackage, EndianSlice, RunTimeEndian, SectionId, UnitType};
use rayon::prelude::*;
use rustc_hash::FxHashSet;
use typed_arena::Arena;

use super::depth::{self, MOST_DEEP, RangesLeft};
use super::sections::{DwarfSlice, LINE_SECTIONS, endian, load};
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::ModuleFiles;
use crate::symbol::tables::table::most_names;

/// One of the functions at an address. Functions are listed innermost first; the last one contains the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFrame {
    /// The linkage name if the compiler recorded one, else the source name.
    pub(crate) name: Option<Arc<str>>,
    /// The source file, as passed to the compiler.
    pub(crate) file: Option<Arc<str>>,
    /// 0 if unknown.
    pub(crate) line: u32,
    /// 0 if unknown.
    pub(crate) column: u32,
}

/// Maximum number of functions at one address. Any further functions are omitted.
const MOST_FRAMES: usize = 1000;
/// Minimum number of addresses per thread; for fewer, an additional thread is not worthwhile.
const FEW: usize = 64;

/// Returns the functions at each address, in the order of the addresses.
///
/// # Errors
/// Fails if there is no line information, or if none of it can be read.
pub(crate) fn resolve(
    found: &ModuleFiles,
    addresses: &[u64],
    done: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<LineFrame>>, String> {
    let has_lines = |image: &&Image| image.elf().is_ok_and(|file| elf::has_lines(&file));
    let Some(image) = [found.debug.as_ref(), found.binary.as_ref()].into_iter().flatten().find(has_lines)
    else {
        return Err("no line information".into());
    };
    let file = image.elf().map_err(|error| error.to_string())?;
    let endian = endian(&file);
    let sections = load(&file, &LINE_SECTIONS)?;
    let supplement = match &found.supplement {
        Some(image) => Some(load(&image.elf().map_err(|error| error.to_string())?, &LINE_SECTIONS)?),
        None => None,
    };
    let mut dwarf =
        sections.borrow_with_sup(supplement.as_ref(), |section| EndianSlice::new(section, endian));
    read_abbreviations(&mut dwarf);
    check(&dwarf, addresses)?;
    let dwarf = Arc::new(dwarf);
    let threads = if addresses.len() < 2 * FEW { 1 } else { rayon::current_num_threads() };
    let run = addresses.len().div_ceil(threads).max(1);
    let parts: Result<Vec<Vec<Vec<LineFrame>>>, String> = addresses
        .par_chunks(run)
        .map(|run| {
            let arena = SplitFiles::default();
            let mut reader = LineReader::new(dwarf.clone(), found, &arena).map_err(words)?;
            Ok(run
                .iter()
                .map(|address| {
                    let frames = reader.frames(*address);
                    done(1);
                    frames
                })
                .collect())
        })
        .collect();
    Ok(parts?.into_iter().flatten().collect())
}

/// Reads the abbreviations of all units in parallel, since all threads need them repeatedly.
fn read_abbreviations(dwarf: &mut Dwarf<DwarfSlice<'_>>) {
    let mut offsets = FxHashSet::default();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        offsets.insert(header.debug_abbrev_offset());
    }
    let section = &dwarf.debug_abbrev;
    let read: Vec<_> = offsets
        .into_par_iter()
        // Errors will be reported when the unit is used.
        .filter_map(|offset| Some((offset, Arc::new(section.abbreviations(offset).ok()?))))
        .collect();
    for (offset, abbreviations) in read {
        dwarf.abbreviations_cache.set::<DwarfSlice<'_>>(offset, abbreviations);
    }
}

/// Rejects units that contain one of the addresses and are nested too deeply for the stack, and files in
/// which very many entries refer to the same lists of address ranges.
fn check(dwarf: &Dwarf<DwarfSlice<'_>>, addresses: &[u64]) -> Result<(), String> {
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(words)? {
        // addr2line looks for no code in other units.
        if !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. } | UnitType::Partial) {
            headers.push(header);
        }
    }
    // addr2line keeps all ranges of all units, and those of the functions in units with samples.
    let (of_units, of_functions) = (RangesLeft::of(dwarf), RangesLeft::of(dwarf));
    headers.into_par_iter().try_for_each(|header| {
        let Ok(unit) = dwarf.unit(header) else { return Ok(()) };
        let root = unit.entry(header.root_offset()).ok().and_then(|root| root.attr_value(DW_AT_ranges));
        let list = root.and_then(|value| dwarf.attr_ranges_offset(&unit, value).ok().flatten());
        if let Some(list) = list.and_then(|list| dwarf.raw_ranges(&unit, list).ok()) {
            of_units.take(list)?;
        }
        if !holds_any(dwarf, &unit, addresses, || true) {
            return Ok(());
        }
        let checked = depth::check(dwarf, &unit, &of_functions);
        // Each level takes at least one byte. A malformed unit does not prevent the use of other units.
        let is_small = header.length_including_self() <= MOST_DEEP && !of_functions.is_used_up();
        if is_small { Ok(()) } else { checked }
    })
}

fn words(error: gimli::Error) -> String {
    error.to_string()
}

/// Whether a unit may contain one of the sorted addresses. This includes units without a list of ranges, and
/// units whose list is not read further because `may_read` forbids it.
pub(in crate::symbol) fn holds_any<'a>(
    dwarf: &Dwarf<DwarfSlice<'a>>,
    unit: &gimli::Unit<DwarfSlice<'a>>,
    addresses: &[u64],
    mut may_read: impl FnMut() -> bool,
) -> bool {
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return true };
    let mut said = false;
    while let Ok(Some(range)) = ranges.next() {
        if !may_read() {
            return true;
        }
        said = true;
        let at = addresses.partition_point(|address| *address < range.begin);
        if addresses.get(at).is_some_and(|address| *address < range.end) {
            return true;
        }
    }
    !said
}

/// Split DWARF files loaded during lookups.
#[derive(Default)]
struct SplitFiles {
    images: Arena<Image>,
    held: Arena<Vec<u8>>,
}

impl SplitFiles {
    fn section<'a>(
        &'a self,
        file: &object::File<'a>,
        name: Option<&str>,
        endian: RunTimeEndian,
    ) -> DwarfSlice<'a> {
        let bytes = match name.and_then(|name| elf::section(file, name)) {
            Some(Cow::Borrowed(bytes)) => bytes,
            Some(Cow::Owned(bytes)) => self.held.alloc(bytes),
            None => &[],
        };
        EndianSlice::new(bytes, endian)
    }
}

/// One thread's view of the debug information.
struct LineReader<'a> {
    context: Context<DwarfSlice<'a>>,
    package: Option<DwarfPackage<DwarfSlice<'a>>>,
    files: &'a SplitFiles,
    strings: FxHashSet<Arc<str>>,
    /// Number of bytes that may still be added to `strings`.
    room: usize,
}

impl<'a> LineReader<'a> {
    fn new(
        dwarf: Arc<Dwarf<DwarfSlice<'a>>>,
        found: &'a ModuleFiles,
        files: &'a SplitFiles,
    ) -> Result<Self, gimli::Error> {
        let package = found.package.as_ref().and_then(|image| {
            let file = image.elf().ok()?;
            let endian = endian(&file);
            let load = |id: SectionId| Ok::<_, gimli::Error>(files.section(&file, id.dwo_name(), endian));
            DwarfPackage::load(load, EndianSlice::new(&[], endian)).ok()
        });
        let context = Context::from_arc_dwarf(dwarf)?;
        let images = found.images().chain(&found.supplement).chain(&found.package);
        let room = most_names(images.map(|image| image.len()).sum());
        Ok(Self { context, package, files, strings: FxHashSet::default(), room })
    }

    /// Returns the functions at an address, up to the first malformed one.
    fn frames(&mut self, address: u64) -> Vec<LineFrame> {
        let mut list = Vec::new();
        // addr2line looks up the bytes from this address to the next one. The last address has no next one.
        if address == u64::MAX {
            return list;
        }
        let mut lookup = self.context.find_frames(address);
        let found = loop {
            match lookup {
                LookupResult::Output(output) => break output,
                LookupResult::Load { load, continuation } => {
                    let dwo = load_split(self.package.as_ref(), self.files, &load);
                    lookup = continuation.resume(dwo);
                }
            }
        };
        let Ok(mut found) = found else { return list };
        while let Ok(Some(frame)) = found.next() {
            if list.len() == MOST_FRAMES {
                break;
            }
            let Self { strings, room, .. } = self;
            let mut keep = |text: &str| match strings.get(text) {
                Some(kept) => Some(kept.clone()),
                None => {
                    *room = room.checked_sub(text.len())?;
                    let kept: Arc<str> = text.into();
                    strings.insert(kept.clone());
                    Some(kept)
                }
            };
            let name = frame.function.as_ref().and_then(|f| keep(&f.raw_name().ok()?));
            let location = frame.location.as_ref();
            list.push(LineFrame {
                name,
                file: location.and_then(|l| l.file).and_then(&mut keep),
                line: location.and_then(|l| l.line).unwrap_or(0),
                column: location.and_then(|l| l.column).unwrap_or(0),
            });
        }
        list
    }
}

/// Loads a skeleton's split unit from the package or from its own file.
fn load_split<'a>(
    package: Option<&DwarfPackage<DwarfSlice<'a>>>,
    files: &'a SplitFiles,
    load: &SplitDwarfLoad<DwarfSlice<'a>>,
) -> Option<Arc<Dwarf<DwarfSlice<'a>>>> {
    if let Some(unit) = package.and_then(|package| package.find_cu(load.dwo_id, &load.parent).ok().flatten())
    {
        let header = unit.units().next().ok()??;
        let is_safe = depth::check(&unit, &unit.unit(header).ok()?, &RangesLeft::of(&unit)).is_ok();
        return is_safe.then(|| Arc::new(unit));
    }
    let part = |slice: &DwarfSlice<'a>| PathBuf::from(OsStr::from_bytes(slice.slice()));
    let folder = load.comp_dir.as_ref().map(part).unwrap_or_default();
    let path = folder.join(part(load.path.as_ref()?));
    let image = files.images.alloc(Image::open(Path::new(&path)).ok()?);
    let file = image.elf().ok()?;
    let endian = endian(&file);
    let section = |id: SectionId| Ok::<_, gimli::Error>(files.section(&file, id.dwo_name(), endian));
    let mut dwarf = Dwarf::load(section).ok()?;
    dwarf.make_dwo(&load.parent);
    let header = dwarf.units().next().ok()??;
    let unit = dwarf.unit(header).ok()?;
    let is_safe = || depth::check(&dwarf, &unit, &RangesLeft::of(&dwarf)).is_ok();
    (unit.dwo_id == Some(load.dwo_id) && is_safe()).then(|| Arc::new(dwarf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::dwarf::hostile::{self, Sharing};

    #[test]
    fn files_whose_entries_share_long_lists_are_rejected() {
        let resolved = |sharing, entries, items| {
            let binary = Image::held("hostile", hostile::elf(sharing, entries, items));
            let files = ModuleFiles { binary: Some(binary), ..ModuleFiles::default() };
            resolve(&files, &[hostile::CODE], &|_| {})
        };
        for sharing in [Sharing::Functions, Sharing::Units] {
            let found = resolved(sharing, 3, 4).unwrap();
            assert!(!found[0].is_empty(), "{sharing:?}");
            let error = resolved(sharing, 1000, 6000).unwrap_err();
            assert!(error.contains("the same lists"), "{sharing:?}: {error}");
        }
    }

    #[test]
    fn last_address_has_no_functions() {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/elf_symbols/o2-dwarf5");
        let binary = Image::open(Path::new(program)).unwrap();
        let files = ModuleFiles { binary: Some(binary), ..ModuleFiles::default() };
        let found = resolve(&files, &[0x300, u64::MAX], &|_| {}).unwrap();
        assert!(!found[0].is_empty() && found[1].is_empty(), "{found:?}");
    }
}
