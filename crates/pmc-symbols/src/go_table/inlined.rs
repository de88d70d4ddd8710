//! Calls that the Go compiler inlined. Each function has a tree of them, outside of the table of functions:
//!
//! ```text
//!   function -> table of values: number of the innermost inlined call at each address
//!            -> tree: of each call, the name of the called function and an address of its caller
//! ```
//!
//! The trees are in a section since Go 1.27. Before, only the runtime's description of the module
//! (`moduledata`) says where they begin. Its layout depends on the version (`src/runtime/symtab.go`), so each
//! of its fields that may be the begin is tried, until the trees of some functions are valid. Go 1.17 and
//! earlier versions use pointers instead of offsets, and are not read.

use object::read::{File, Object, ObjectSection, ObjectSegment};

use super::{GoFunction, GoTable, GoVersion, linked, word};

/// Fields of `moduledata` that may be `gofunc`, as numbers of pointers. It is number 38 in Go 1.18, 40 in Go
/// 1.20.
const FIELDS: std::ops::Range<u64> = 36..48;
/// Maximum number of places that are examined as `moduledata`.
const MOST_MODULES: usize = 16;
/// Number of functions whose trees must be valid.
const TRIED: usize = 16;

/// The trees of all functions.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlineTrees<'a> {
    /// The file from their begin.
    bytes: &'a [u8],
    version: GoVersion,
}

/// An inlined call.
#[derive(Debug, Clone, Copy)]
pub(super) struct InlinedCall {
    /// Offset of the called function's name.
    pub(super) name: usize,
    /// An address of the calling function, as an offset from the start of the code that contains both.
    pub(super) caller: u64,
}

impl<'a> InlineTrees<'a> {
    pub(super) fn new(bytes: &'a [u8], version: GoVersion) -> Self {
        Self { bytes, version }
    }

    /// Finds the trees of a table's functions; `None` if no function has one.
    pub(super) fn find(file: &File<'a>, table: &GoTable<'a>) -> Option<Self> {
        if !table.version.is_relative() {
            return None;
        }
        let with_tree: Vec<(usize, GoFunction)> = (0..table.functions)
            .filter_map(|number| Some((number, table.function(number).filter(|of| of.tree.is_some())?)))
            .take(TRIED)
            .collect();
        let are_valid = |trees: &Self| {
            let is_valid = |(number, function): &(usize, GoFunction)| {
                table
                    .range(*number)
                    .is_some_and(|range| trees.is_valid(table, function, range.end - range.start))
            };
            !with_tree.is_empty() && with_tree.iter().all(is_valid)
        };
        let found = in_sections(file).chain(in_modules(file, table));
        found.map(|bytes| Self::new(bytes, table.version)).find(are_valid)
    }

    /// Reads an inlined call.
    pub(super) fn call(&self, tree: usize, number: usize) -> Option<InlinedCall> {
        let (size, name, caller) = if self.version == GoVersion::V18 { (20, 12, 16) } else { (16, 4, 8) };
        let at = tree.checked_add(number.checked_mul(size)?)?;
        let field = |offset: usize| word(self.bytes, at.checked_add(offset)?, 4);
        Some(InlinedCall { name: usize::try_from(field(name)?).ok()?, caller: field(caller)? })
    }

    /// Whether a function's first inlined call is a call in this function.
    fn is_valid(&self, table: &GoTable<'_>, function: &GoFunction, len: u64) -> bool {
        let call = function.tree.and_then(|tree| self.call(tree, 0));
        call.is_some_and(|call| call.caller < len && table.is_name(call.name))
    }
}

fn in_sections<'a>(file: &File<'a>) -> impl Iterator<Item = &'a [u8]> {
    let named = [".go.func", ".data.rel.ro.go.func"].into_iter();
    named.filter_map(|name| file.section_by_name(name)?.data().ok())
}

/// Returns the parts of the file that begin where a field of `moduledata` points to.
fn in_modules<'a>(file: &File<'a>, table: &GoTable<'a>) -> impl Iterator<Item = &'a [u8]> {
    let size = table.pointer as u64;
    modules(file, table).take(MOST_MODULES).flat_map(move |module| {
        FIELDS.filter_map(move |field| {
            let at = module.checked_add(field * size)?;
            let stored = from(file, at).and_then(|bytes| word(bytes, 0, size as usize));
            from(file, linked(file, at, stored.unwrap_or(0))?)
        })
    })
}

/// Returns the addresses of pointers to the table. `moduledata` begins with one.
fn modules<'a>(file: &File<'a>, table: &GoTable<'a>) -> impl Iterator<Item = u64> {
    let (address, size) = (table.address, table.pointer);
    let stored = file.segments().flat_map(move |segment| {
        let (start, words) = (segment.address(), segment.data().unwrap_or_default().chunks_exact(size));
        words
            .enumerate()
            .filter(move |(_, bytes)| word(bytes, 0, size) == Some(address))
            .map(move |(at, _)| start.wrapping_add((at * size) as u64))
    });
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let relocated = relocations.filter(move |(_, to)| u64::try_from(to.addend()) == Ok(address));
    stored.chain(relocated.map(|(at, _)| at))
}

/// Returns the contents of a segment from an address.
fn from<'a>(file: &File<'a>, address: u64) -> Option<&'a [u8]> {
    file.segments().find_map(|segment| {
        let offset = usize::try_from(address.checked_sub(segment.address())?).ok()?;
        segment.data().ok()?.get(offset..).filter(|bytes| !bytes.is_empty())
    })
}
