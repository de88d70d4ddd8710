//! Types of variables: their C names, sizes and members, and how the kernel prints their values.

use gimli::{AttributeValue, Operation, constants as dw};

use super::dies::{Die, Dies, is_qualifier};

/// Maximum nesting of types and of unnamed members.
const MOST_NESTED: usize = 32;

/// Maximum number of entries to read for the members of a structure, since an invalid structure may contain
/// itself.
const MOST_ENTRIES: usize = 1_000_000;

/// A type, which may be an array whose first dimensions have already been indexed.
#[derive(Clone)]
pub(super) struct ValueType<'a> {
    /// The type without qualifiers and typedefs; `None` for `void`.
    pub(super) die: Option<Die<'a>>,
    /// The remaining dimensions, if this is an array.
    dimensions: Vec<u64>,
}

/// A member of a structure.
pub(super) struct StructMember<'a> {
    pub(super) die: Die<'a>,
    pub(super) offset: u64,
    /// For a bit field: the number of bits, and the position of the lowest bit relative to `offset`.
    pub(super) bits: Option<(u64, u64)>,
}

impl<'a> ValueType<'a> {
    /// Returns the type of a variable or member, or the type to which a pointer or array refers.
    pub(super) fn from_die(dies: &Dies<'a>, die: &Die<'a>) -> Self {
        let kind = dies.plain_kind(die);
        let dimensions = match &kind {
            Some(kind) if kind.tag() == Some(dw::DW_TAG_array_type) => dimensions(dies, kind),
            _ => Vec::new(),
        };
        Self { die: kind, dimensions }
    }

    pub(super) fn tag(&self) -> Option<gimli::DwTag> {
        self.die.as_ref()?.tag()
    }

    pub(super) fn is_pointer(&self) -> bool {
        matches!(
            self.tag(),
            Some(dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type)
        )
    }

    pub(super) fn is_array(&self) -> bool {
        self.tag() == Some(dw::DW_TAG_array_type)
    }

    pub(super) fn is_struct(&self) -> bool {
        matches!(self.tag(), Some(dw::DW_TAG_structure_type | dw::DW_TAG_union_type | dw::DW_TAG_class_type))
    }

    /// Returns the type to which a pointer points, or the type of an array's elements.
    pub(super) fn element(&self, dies: &Dies<'a>) -> Self {
        let nothing = Self { die: None, dimensions: Vec::new() };
        match (&self.die, self.dimensions.len()) {
            (Some(_), 2..) => Self { die: self.die.clone(), dimensions: self.dimensions[1..].to_vec() },
            (Some(die), _) => Self::from_die(dies, die),
            (None, _) => nothing,
        }
    }

    /// The size in bytes.
    pub(super) fn size(&self, dies: &Dies<'a>) -> Option<u64> {
        size(dies, self, MOST_NESTED)
    }

    /// Whether the type is a `char`, signed or unsigned.
    pub(super) fn is_character(&self, dies: &Dies<'a>) -> bool {
        let encoding = self.die.as_ref().and_then(|die| encoding(dies, die));
        matches!(encoding, Some(dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char | dw::DW_ATE_UTF))
            && self.size(dies) == Some(1)
    }

    /// Whether the kernel should print the value with a sign.
    pub(super) fn is_signed(&self, dies: &Dies<'a>) -> bool {
        let encoding = self.die.as_ref().and_then(|die| encoding(dies, die));
        matches!(encoding, Some(dw::DW_ATE_signed | dw::DW_ATE_signed_char | dw::DW_ATE_signed_fixed))
    }

    /// Whether this is a floating-point number.
    pub(super) fn is_float(&self, dies: &Dies<'a>) -> bool {
        let encoding = self.die.as_ref().and_then(|die| encoding(dies, die));
        matches!(
            encoding,
            Some(
                dw::DW_ATE_float
                    | dw::DW_ATE_complex_float
                    | dw::DW_ATE_imaginary_float
                    | dw::DW_ATE_decimal_float
            )
        )
    }

    /// Whether this unit only declares the structure, without its members.
    pub(super) fn is_declaration(&self) -> bool {
        self.die.as_ref().is_some_and(|die| die.own(dw::DW_AT_declaration).is_some())
    }

    /// The names of the members, for suggestions.
    pub(super) fn member_names(&self, dies: &Dies<'a>) -> Vec<String> {
        let members = self.die.iter().flat_map(|die| die.children(&mut { MOST_ENTRIES }));
        members.filter(|die| die.tag() == Some(dw::DW_TAG_member)).filter_map(|die| dies.name(&die)).collect()
    }

    /// Finds a member, searching unnamed members and base classes too.
    pub(super) fn member(&self, dies: &Dies<'a>, wanted: &str) -> Option<StructMember<'a>> {
        find_member(dies, self.die.as_ref()?, wanted, MOST_NESTED, &mut { MOST_ENTRIES })
    }
}

fn encoding<'a>(dies: &Dies<'a>, die: &Die<'a>) -> Option<gimli::DwAte> {
    match die.own(dw::DW_AT_encoding)? {
        AttributeValue::Encoding(encoding) => Some(encoding),
        _ => dies.number(die, dw::DW_AT_encoding).map(|number| gimli::DwAte(number as u8)),
    }
}

fn dimensions<'a>(dies: &Dies<'a>, array: &Die<'a>) -> Vec<u64> {
    let ranges = array
        .children(&mut { MOST_ENTRIES })
        .into_iter()
        .filter(|die| die.tag() == Some(dw::DW_TAG_subrange_type));
    let count = |range: Die<'a>| {
        let bound = || dies.number(&range, dw::DW_AT_upper_bound)?.checked_add(1);
        dies.number(&range, dw::DW_AT_count).or_else(bound).unwrap_or(0)
    };
    ranges.map(count).collect()
}

fn size<'a>(dies: &Dies<'a>, kind: &ValueType<'a>, most: usize) -> Option<u64> {
    let die = kind.die.as_ref()?;
    if kind.is_array() && most > 0 {
        let element = size(dies, &ValueType::from_die(dies, die), most - 1)?;
        return kind.dimensions.iter().try_fold(element, |size, count| size.checked_mul(*count));
    }
    let own = die.own(dw::DW_AT_byte_size).and_then(|size| size.udata_value());
    own.or_else(|| kind.is_pointer().then(|| u64::from(die.home.unit.encoding().address_size)))
}

fn find_member<'a>(
    dies: &Dies<'a>,
    container: &Die<'a>,
    wanted: &str,
    most: usize,
    left: &mut usize,
) -> Option<StructMember<'a>> {
    for die in container.children(left) {
        let tag = die.tag();
        if !matches!(tag, Some(dw::DW_TAG_member | dw::DW_TAG_inheritance)) {
            continue;
        }
        let name = dies.name(&die).filter(|_| tag == Some(dw::DW_TAG_member));
        let offset = member_offset(&die);
        if name.as_deref() == Some(wanted) {
            let (offset, bits) = bit_field(dies, &die, offset)?;
            return Some(StructMember { die, offset, bits });
        }
        if name.is_none() && most > 0 {
            let inner = dies.plain_kind(&die);
            if let Some(found) = inner.and_then(|inner| find_member(dies, &inner, wanted, most - 1, left)) {
                return Some(StructMember { offset: found.offset.checked_add(offset)?, ..found });
            }
        }
    }
    None
}

/// The offset of a member in bytes; 0 for members of a union.
fn member_offset(member: &Die<'_>) -> u64 {
    match member.own(dw::DW_AT_data_member_location) {
        Some(AttributeValue::Exprloc(expression)) => {
            let mut operations = expression.operations(member.home.unit.encoding());
            match operations.next() {
                Ok(Some(Operation::PlusConstant { value })) => value,
                _ => 0,
            }
        }
        Some(value) => value.udata_value().unwrap_or(0),
        None => 0,
    }
}

/// Returns the offset of the bytes that contain a bit field, and the position of its bits in them.
fn bit_field<'a>(dies: &Dies<'a>, member: &Die<'a>, offset: u64) -> Option<(u64, Option<(u64, u64)>)> {
    let number = |name| member.own(name).and_then(|value| value.udata_value());
    let Some(size) = number(dw::DW_AT_bit_size) else { return Some((offset, None)) };
    let container =
        ValueType::from_die(dies, member).size(dies).filter(|bytes| *bytes > 0)?.checked_mul(8)?;
    if let Some(start) = number(dw::DW_AT_data_bit_offset) {
        let before = start - start % container;
        return Some((offset.checked_add(before / 8)?, Some((size, start - before))));
    }
    // DWARF 3 counts from the highest bit, regardless of the machine's byte order.
    let from_top = number(dw::DW_AT_bit_offset)?;
    Some((offset, Some((size, container.checked_sub(from_top)?.checked_sub(size)?))))
}

/// Returns the type's name in C, without qualifiers: `struct item*`, `long int`.
pub(super) fn type_name<'a>(dies: &Dies<'a>, die: &Die<'a>) -> String {
    let mut kind = dies.kind(die);
    let mut stars = String::new();
    for _ in 0..MOST_NESTED {
        let Some(die) = kind else { return format!("void{stars}") };
        let named = |prefix: &str| {
            let name = dies.name(&die).unwrap_or_else(|| "{...}".to_owned());
            format!("{prefix}{name}{stars}")
        };
        match die.tag() {
            Some(tag) if is_qualifier(tag) => kind = dies.kind(&die),
            Some(dw::DW_TAG_pointer_type | dw::DW_TAG_array_type) => {
                stars.push('*');
                kind = dies.kind(&die);
            }
            Some(dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type) => {
                stars.insert(0, '&');
                kind = dies.kind(&die);
            }
            Some(dw::DW_TAG_subroutine_type) => return format!("(function_type){stars}"),
            Some(dw::DW_TAG_structure_type) => return named("struct "),
            Some(dw::DW_TAG_union_type) => return named("union "),
            Some(dw::DW_TAG_enumeration_type) => return named("enum "),
            _ => return named(""),
        }
    }
    stars
}
