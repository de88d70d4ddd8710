//! Measures how deeply a unit of debug information is nested, and how many address ranges its functions have,
//! in one fast scan of its bytes.
//!
//! Takes a parsed unit; decides whether [`lines`](super::lines) may pass it to addr2line, which recurses
//! once per level of inlining and would overflow the stack on a hostile file. Neither gimli 0.34 nor
//! addr2line 0.27 limits the nesting (addr2line limits only chains of abstract origins, to 16). addr2line
//! also keeps each range of each function, although many functions of a hostile file may share one long list.
//!
//! The scan visits every entry of each unit with samples. It is fast because it determines how to skip an
//! entry's bytes only once per kind of entry, and because most kinds have a fixed size. gimli's own scan
//! (`EntriesRaw::skip_attributes`) gives the same result, but takes twice as long if entries have few
//! attributes, as in a program with only lines and inlining (173 MB/s instead of 351).

use gimli::{
    Abbreviation, AttributeSpecification, DebugRngListsIndex, Dwarf, Error, RangeListsOffset,
    RawRangeListsOffset, RawRngListIter, Reader, UnitHeader, constants as dw,
};

use super::sections::{DwarfSlice, WorkLimit};

/// Maximum nesting depth of inlined functions in a unit. Real compilers stay below 100. Each level takes less
/// than 4 KiB of stack.
pub(super) const MOST_DEEP: usize = 10_000;
/// Maximum number of entry kinds of a unit whose [`SkipPlan`] is cached. Compilers number the kinds from 1.
const MOST_KEPT: usize = 1 << 14;

/// Counts the items of a list of ranges, including those that only set a base address.
///
/// # Errors
/// Fails if there are more than `limit` allows.
pub(super) fn count_ranges(
    mut list: RawRngListIter<DwarfSlice<'_>>,
    limit: &WorkLimit,
) -> Result<(), String> {
    // addr2line rejects a malformed list too.
    while let Ok(Some(_)) = list.next() {
        if !limit.take(1) {
            return Err("very many of its entries refer to the same lists of address ranges".to_owned());
        }
    }
    Ok(())
}

/// Scans a unit without recursion.
///
/// # Errors
/// Fails if the unit is nested too deeply, has too many ranges, or is malformed.
pub(super) fn check<'a>(
    dwarf: &Dwarf<DwarfSlice<'a>>,
    unit: &gimli::Unit<DwarfSlice<'a>>,
    limit: &WorkLimit,
) -> Result<(), String> {
    let whole = |error: Error| error.to_string();
    let mut lists: Vec<RangeList> = Vec::new();
    let mut rest = unit.header.range_from(unit.header.root_offset()..).map_err(whole)?;
    let mut plans: Vec<Option<SkipPlan>> = Vec::new();
    let most_kept = MOST_KEPT.min(rest.len());
    let mut deep = 0usize;
    while !rest.is_empty() {
        let code = rest.read_uleb128().map_err(whole)?;
        if code == 0 {
            // Never goes below 0. Otherwise, surplus end markers would make later entries appear less deeply
            // nested than they are.
            deep = deep.saturating_sub(1);
            continue;
        }
        let at = usize::try_from(code).unwrap_or(usize::MAX);
        let make = || {
            let kind = unit.abbreviations.get(code).ok_or(Error::InvalidAbbreviationCode(code));
            kind.map(|kind| SkipPlan::new(kind, &unit.header))
        };
        let has_children = if at < most_kept {
            if plans.len() <= at {
                plans.resize_with((at + 1).next_power_of_two(), || None);
            }
            let plan = match &mut plans[at] {
                Some(plan) => plan,
                empty => empty.insert(make().map_err(whole)?),
            };
            plan.skip(&unit.header, &mut rest, &mut lists).map_err(whole)?
        } else {
            make().and_then(|plan| plan.skip(&unit.header, &mut rest, &mut lists)).map_err(whole)?
        };
        for list in lists.drain(..) {
            if let Ok(list) = list.offset(dwarf, unit).and_then(|at| dwarf.raw_ranges(unit, at)) {
                count_ranges(list, limit)?;
            }
        }
        deep += usize::from(has_children);
        if deep > MOST_DEEP {
            return Err(format!("a unit is nested deeper than {MOST_DEEP} levels"));
        }
    }
    Ok(())
}

/// How to skip the attributes of one kind of entry.
struct SkipPlan {
    has_children: bool,
    /// Each variable-length part, with the number of fixed bytes before it.
    parts: Vec<(usize, VariablePart)>,
    /// Number of fixed bytes after the last variable-length part.
    rest: usize,
}

/// A part that encodes its own length.
#[derive(Clone, Copy)]
enum VariablePart {
    Leb,
    Text,
    Block1,
    Block2,
    Block4,
    Block,
    /// The value's form precedes it.
    Indirect,
    /// A reference to a function's address ranges.
    Ranges(dw::DwForm),
    Unknown(dw::DwForm),
}

/// A reference to a list of address ranges.
enum RangeList {
    Offset(usize),
    Index(usize),
}

impl RangeList {
    fn offset<'a>(
        self,
        dwarf: &Dwarf<DwarfSlice<'a>>,
        unit: &gimli::Unit<DwarfSlice<'a>>,
    ) -> Result<RangeListsOffset, Error> {
        match self {
            Self::Offset(at) => Ok(dwarf.ranges_offset_from_raw(unit, RawRangeListsOffset(at))),
            Self::Index(at) => dwarf.ranges_offset(unit, DebugRngListsIndex(at)),
        }
    }
}

impl SkipPlan {
    fn new(kind: &Abbreviation, header: &UnitHeader<DwarfSlice<'_>>) -> Self {
        let mut plan = Self { has_children: kind.has_children(), parts: Vec::new(), rest: 0 };
        // The entries whose ranges addr2line reads.
        let is_function = matches!(kind.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine);
        for attribute in kind.attributes() {
            match attribute.size(header) {
                _ if is_function && attribute.name() == dw::DW_AT_ranges => {
                    let part = VariablePart::Ranges(attribute.form());
                    plan.parts.push((std::mem::take(&mut plan.rest), part));
                }
                Some(bytes) => plan.rest += bytes,
                None => plan.parts.push((std::mem::take(&mut plan.rest), part(attribute.form()))),
            }
        }
        plan
    }

    /// Skips the attributes; returns whether child entries follow. Adds references to address ranges to
    /// `lists`.
    fn skip(
        &self,
        header: &UnitHeader<DwarfSlice<'_>>,
        bytes: &mut DwarfSlice<'_>,
        lists: &mut Vec<RangeList>,
    ) -> Result<bool, Error> {
        for &(ahead, part) in &self.parts {
            bytes.skip(ahead)?;
            match part {
                VariablePart::Ranges(form) => lists.extend(range_list(form, header, bytes)?),
                part => skip_part(part, header, bytes)?,
            }
        }
        bytes.skip(self.rest)?;
        Ok(self.has_children)
    }
}

/// Reads a reference to a list. Returns `None` if it has another form, which addr2line skips too.
fn range_list(
    mut form: dw::DwForm,
    header: &UnitHeader<DwarfSlice<'_>>,
    bytes: &mut DwarfSlice<'_>,
) -> Result<Option<RangeList>, Error> {
    let size = |number: u64| usize::try_from(number).map_err(|_| Error::UnsupportedOffset);
    while form == dw::DW_FORM_indirect {
        form = dw::DwForm(bytes.read_uleb128_u16()?);
    }
    Ok(Some(match form {
        dw::DW_FORM_sec_offset => RangeList::Offset(bytes.read_offset(header.format())?),
        dw::DW_FORM_data4 => RangeList::Offset(bytes.read_u32()? as usize),
        dw::DW_FORM_data8 => RangeList::Offset(size(bytes.read_u64()?)?),
        dw::DW_FORM_rnglistx => RangeList::Index(size(bytes.read_uleb128()?)?),
        other => {
            match fixed(other, header) {
                Some(length) => bytes.skip(length)?,
                None => skip_part(part(other), header, bytes)?,
            }
            return Ok(None);
        }
    }))
}

fn skip_part(
    part: VariablePart,
    header: &UnitHeader<DwarfSlice<'_>>,
    bytes: &mut DwarfSlice<'_>,
) -> Result<(), Error> {
    let length = match part {
        VariablePart::Leb => return bytes.skip_leb128(),
        VariablePart::Text => return bytes.read_null_terminated_slice().map(|_| ()),
        VariablePart::Block1 => bytes.read_u8()?.into(),
        VariablePart::Block2 => bytes.read_u16()?.into(),
        VariablePart::Block4 => bytes.read_u32()? as usize,
        VariablePart::Block => {
            usize::try_from(bytes.read_uleb128()?).map_err(|_| Error::UnsupportedOffset)?
        }
        VariablePart::Indirect => loop {
            let form = dw::DwForm(bytes.read_uleb128_u16()?);
            match (fixed(form, header), self::part(form)) {
                (Some(length), _) => break length,
                (None, VariablePart::Indirect) => {}
                (None, part) => return skip_part(part, header, bytes),
            }
        },
        VariablePart::Unknown(form) | VariablePart::Ranges(form) => return Err(Error::UnknownForm(form)),
    };
    bytes.skip(length)
}

/// Returns the size of a form if it is the same for all values.
fn fixed(form: dw::DwForm, header: &UnitHeader<DwarfSlice<'_>>) -> Option<usize> {
    let constant = (form == dw::DW_FORM_implicit_const).then_some(0);
    AttributeSpecification::new(dw::DW_AT_null, form, constant).size(header)
}

fn part(form: dw::DwForm) -> VariablePart {
    match form {
        dw::DW_FORM_block1 => VariablePart::Block1,
        dw::DW_FORM_block2 => VariablePart::Block2,
        dw::DW_FORM_block4 => VariablePart::Block4,
        dw::DW_FORM_block | dw::DW_FORM_exprloc => VariablePart::Block,
        dw::DW_FORM_string => VariablePart::Text,
        dw::DW_FORM_udata
        | dw::DW_FORM_sdata
        | dw::DW_FORM_ref_udata
        | dw::DW_FORM_strx
        | dw::DW_FORM_GNU_str_index
        | dw::DW_FORM_addrx
        | dw::DW_FORM_GNU_addr_index
        | dw::DW_FORM_loclistx
        | dw::DW_FORM_rnglistx => VariablePart::Leb,
        dw::DW_FORM_indirect => VariablePart::Indirect,
        other => VariablePart::Unknown(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::need;
    use crate::symbol::dwarf::sections::ranges_size;
    use gimli::RunTimeEndian;
    use object::{Object, ObjectSection};

    /// Computes the same depth with gimli's own scan.
    fn walked(unit: &gimli::Unit<DwarfSlice<'_>>) -> Result<isize, Error> {
        let mut entries = unit.entries_raw(None)?;
        let mut deepest = 0;
        while !entries.is_empty() {
            deepest = deepest.max(entries.next_depth());
            if let Some(kind) = entries.read_abbreviation()? {
                entries.skip_attributes(kind.attributes())?;
            }
        }
        Ok(deepest)
    }

    #[test]
    fn units_of_this_program_match_gimli() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let file = object::File::parse(&*program).unwrap();
        let load = |id: gimli::SectionId| {
            let section = file.section_by_name(id.name());
            let bytes = section.and_then(|s| s.data().ok()).unwrap_or_default();
            Ok::<_, Error>(DwarfSlice::new(bytes, RunTimeEndian::Little))
        };
        let dwarf = gimli::Dwarf::load(load).unwrap();
        let has_units = dwarf.units().next().is_ok_and(|unit| unit.is_some());
        if !need("debug-information", has_units, "this test was built without debug information") {
            return;
        }
        let limit = WorkLimit::new(ranges_size(&dwarf));
        let (mut units, mut count) = (dwarf.units(), 0);
        while let Some(header) = units.next().unwrap() {
            let unit = dwarf.unit(header).unwrap();
            let deepest = walked(&unit);
            assert!(deepest.is_ok_and(|deepest| deepest < MOST_DEEP as isize), "{deepest:?}");
            assert_eq!(check(&dwarf, &unit, &limit), Ok(()));
            count += 1;
        }
        assert!(count > 10);
    }
}
