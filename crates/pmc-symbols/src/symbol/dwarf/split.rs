//! Loads split units (`.dwo` files and `.dwp` packages), each once for all threads.
//!
//! Takes references from skeleton units; returns the split units. Rejects units for the same reasons as
//! [`units`](super::units). addr2line reads a split unit for each skeleton that refers to it, and skeletons
//! of a hostile file may share one large unit.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use gimli::{
    Dwarf, DwarfPackage, DwarfPackageSections, DwarfSections, DwoId, RunTimeEndian, Section, SectionId,
};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::abbreviations;
use super::depth;
use super::sections::{DwarfSlice, LINE_SECTIONS, WorkLimit, endian, load, ranges_size, units_size};
use super::units::{SplitReference, UnitLimits};
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;

/// Maximum number of bytes of split units to read per byte of their files. A unit has one skeleton, and is
/// counted at most twice.
const SPLIT_BYTES: usize = 8;

/// The split units, by the number with which skeletons refer to them.
pub(super) type SplitUnits<'a> = FxHashMap<DwoId, Arc<Dwarf<DwarfSlice<'a>>>>;

/// The sections of a package.
pub(super) type PackageSections<'i> = (RunTimeEndian, DwarfPackageSections<Cow<'i, [u8]>>);

/// The sections of a `.dwo` file.
pub(super) type SplitSections<'i> = (RunTimeEndian, DwarfSections<Cow<'i, [u8]>>);

pub(super) fn load_package(image: &Image) -> Option<PackageSections<'_>> {
    let file = image.elf().ok()?;
    let section = |id: SectionId| id.dwo_name().and_then(|name| elf::section(&file, name));
    let load = |id| Ok::<_, gimli::Error>(section(id).unwrap_or_default());
    Some((endian(&file), DwarfPackageSections::load(load).ok()?))
}

pub(super) fn open_package<'a>(
    (endian, sections): &'a PackageSections<'_>,
) -> Option<DwarfPackage<DwarfSlice<'a>>> {
    sections.borrow(|bytes| DwarfSlice::new(bytes, *endian), DwarfSlice::new(&[], *endian)).ok()
}

/// Opens the `.dwo` files of the units that are not in the package. Opens each file once, even if skeletons
/// spell its path differently.
pub(super) fn open_files(
    references: &[SplitReference],
    package: Option<&DwarfPackage<DwarfSlice<'_>>>,
) -> Vec<Image> {
    let is_packed = |id: DwoId| package.is_some_and(|package| package.cu_index.find(id.0).is_some());
    let path = |of: &SplitReference| of.path.as_ref().filter(|_| !is_packed(of.id))?.canonicalize().ok();
    let paths: FxHashSet<PathBuf> = references.par_iter().filter_map(path).collect();
    paths.into_par_iter().filter_map(|path| Image::open(&path).ok()).collect()
}

pub(super) fn load_files(files: &[Image]) -> Vec<SplitSections<'_>> {
    let sections = files.par_iter().filter_map(|image| {
        let file = image.elf().ok()?;
        Some((endian(&file), load(&file, &LINE_SECTIONS, SectionId::dwo_name).ok()?))
    });
    sections.collect()
}

/// Reads the units to which skeletons refer. `parent` has the skeletons.
///
/// # Errors
/// Fails if very many skeletons refer to the same entries.
pub(super) fn read<'a>(
    parent: &Dwarf<DwarfSlice<'a>>,
    references: &[SplitReference],
    package: Option<&DwarfPackage<DwarfSlice<'a>>>,
    files: &'a [SplitSections<'_>],
) -> Result<SplitUnits<'a>, String> {
    let mut size = package.map_or(0, |package| {
        package.debug_info.reader().len()
            + package.debug_line.reader().len()
            + package.debug_abbrev.reader().len()
    });
    let mut ranges = package.map_or(0, |package| package.debug_rnglists.reader().len());
    ranges += parent.ranges.debug_ranges().reader().len();
    let borrow = |(endian, sections): &'a SplitSections<'_>| {
        sections.borrow(|section| DwarfSlice::new(section, *endian))
    };
    for dwarf in files.iter().map(borrow) {
        size += whole_size(&dwarf);
        ranges += ranges_size(&dwarf);
    }
    let limits = SplitLimits {
        whole: WorkLimit::new(size.saturating_mul(SPLIT_BYTES)),
        units: UnitLimits::new(size, ranges),
    };
    let mut skeletons: FxHashMap<DwoId, usize> = FxHashMap::default();
    references.iter().for_each(|of| *skeletons.entry(of.id).or_default() += 1);
    let from_files = files.par_iter().map(|file| {
        let mut dwarf = borrow(file);
        dwarf.make_dwo(parent);
        Ok(dwarf)
    });
    let packed = skeletons.par_iter().filter_map(|(&id, _)| {
        let dwarf = package?.find_cu(id, parent).ok().flatten()?;
        // Units of a package may share their parts.
        Some(limits.take(whole_size(&dwarf)).map(|()| dwarf))
    });
    let units = from_files.chain(packed).map(|dwarf| limits.read(dwarf?, &skeletons));
    units.filter_map(Result::transpose).collect()
}

fn whole_size(dwarf: &Dwarf<DwarfSlice<'_>>) -> usize {
    units_size(dwarf) + dwarf.debug_abbrev.reader().len()
}

/// The work that the split units may cause.
struct SplitLimits {
    whole: WorkLimit,
    units: UnitLimits,
}

type SplitUnit<'a> = (DwoId, Arc<Dwarf<DwarfSlice<'a>>>);

impl SplitLimits {
    fn take(&self, bytes: usize) -> Result<(), String> {
        match self.whole.take(bytes) {
            true => Ok(()),
            false => Err("very many of its units refer to the same split units".to_owned()),
        }
    }

    /// Returns a split unit if addr2line may read it for each of its skeletons.
    fn read<'a>(
        &self,
        mut dwarf: Dwarf<DwarfSlice<'a>>,
        skeletons: &FxHashMap<DwoId, usize>,
    ) -> Result<Option<SplitUnit<'a>>, String> {
        abbreviations::read(&mut dwarf);
        // addr2line reads only the first unit.
        let Ok(Some(header)) = dwarf.units().next() else { return Ok(None) };
        self.units.count_header(&dwarf, header)?;
        let Ok(unit) = dwarf.unit(header) else { return Ok(None) };
        let Some((id, count)) = unit.dwo_id.and_then(|id| Some((id, *skeletons.get(&id)?))) else {
            return Ok(None);
        };
        for _ in 0..count {
            if !self.allow(&dwarf, &unit)? {
                return Ok(None);
            }
        }
        Ok(Some((id, Arc::new(dwarf))))
    }

    /// Whether addr2line may read a split unit once more.
    fn allow(
        &self,
        dwarf: &Dwarf<DwarfSlice<'_>>,
        unit: &gimli::Unit<DwarfSlice<'_>>,
    ) -> Result<bool, String> {
        self.take(unit.header.length_including_self())?;
        self.units.count_header(dwarf, unit.header)?;
        let checked = depth::check(dwarf, unit, &self.units.function_ranges);
        if self.units.function_ranges.is_exceeded() {
            checked.clone()?;
        }
        Ok(checked.is_ok())
    }
}
