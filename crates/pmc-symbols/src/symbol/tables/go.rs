//! Functions and lines of Go programs, from the table that Go's runtime needs for its own stack traces. It is
//! in every Go program, also in those built with `-ldflags="-s -w"`, which have no other names.
//!
//! ```text
//!   header -> functab: start of each function -> function: name, and where its file and line tables begin
//!                                                    line table: differences of lines and addresses
//! ```
//!
//! The section is `.gopclntab` or, in position-independent programs, `.data.rel.ro.gopclntab`. In files
//! without section headers, the segments are searched for its first bytes. The formats are those of Go 1.2,
//! 1.16, 1.18 and 1.20 (`src/runtime/symtab.go`, `src/internal/abi/symtab.go`). Calls that the compiler
//! inlined are not read.

use std::ops::Range;

use object::read::{File, Object, ObjectSection, ObjectSegment, RelocationTarget};

use super::table::{NameRank, SymbolTableBuilder};

/// Maximum number of functions; more than any legitimate file has.
const MOST_FUNCTIONS: usize = 1 << 22;
/// Maximum length of a name.
const LONGEST_NAME: usize = 1 << 14;
/// Maximum number of steps of a line table. Functions have as many as lines, calls and inlined lines.
const MOST_STEPS: usize = 1 << 16;

/// The layout of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoVersion {
    /// Go 1.2 to 1.15.
    V2,
    /// Go 1.16 and 1.17.
    V16,
    /// Go 1.18 and later. Addresses are relative to the start of the code.
    V18,
}

/// The table of a file.
#[derive(Debug)]
pub(crate) struct GoTable<'a> {
    bytes: &'a [u8],
    version: GoVersion,
    /// Size of a pointer in bytes.
    pointer: usize,
    /// Size of the smallest instruction, in bytes.
    quantum: u64,
    /// Start of the code.
    text: u64,
    functions: usize,
    /// Offsets of the parts.
    names: usize,
    units: usize,
    files: usize,
    values: usize,
    functab: usize,
}

/// A line of a Go function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoLine {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// The fields of a function's entry.
#[derive(Debug, Clone, Copy)]
struct GoFunction {
    start: u64,
    name: usize,
    file_table: usize,
    line_table: usize,
    unit: usize,
}

impl<'a> GoTable<'a> {
    /// Finds the table of a file; `None` if it is not a Go program.
    pub(crate) fn of(file: &File<'a>) -> Option<Self> {
        if !file.is_little_endian() {
            return None;
        }
        let named = [".gopclntab", ".data.rel.ro.gopclntab"];
        if let Some(section) = named.iter().find_map(|name| file.section_by_name(name)) {
            return Self::read(section.data().ok()?, section.address(), file);
        }
        if file.sections().next().is_some() {
            return None;
        }
        // The table is in a segment that is not executable.
        file.segments().find_map(|segment| {
            let bytes = segment.data().ok()?;
            headers(bytes).find_map(|at| Self::read(&bytes[at..], segment.address() + at as u64, file))
        })
    }

    fn read(bytes: &'a [u8], address: u64, file: &File<'_>) -> Option<Self> {
        let (version, quantum, pointer) = header(bytes)?;
        let field = |number: usize| word(bytes, 8 + number * pointer, pointer);
        let offset = |number: usize| usize::try_from(field(number)?).ok();
        let functions = offset(0).filter(|count| (1..MOST_FUNCTIONS).contains(count))?;
        let text = || {
            let at = 8 + 2 * pointer;
            match word(bytes, at, pointer)? {
                0 => relocated(file, address.wrapping_add(at as u64)).or_else(|| start_of_text(file)),
                text => Some(text),
            }
        };
        let table = match version {
            GoVersion::V2 => {
                let functab = 8 + pointer;
                // Behind the functions: the end of the code, and the offset of the list of files.
                let end = functab.checked_add(functions.checked_mul(2 * pointer)?)?.checked_add(pointer)?;
                let files = word(bytes, end, 4)? as usize;
                Self {
                    bytes,
                    version,
                    pointer,
                    quantum,
                    text: 0,
                    functions,
                    names: 0,
                    units: 0,
                    files,
                    values: 0,
                    functab,
                }
            }
            GoVersion::V16 | GoVersion::V18 => {
                let first = if version == GoVersion::V18 { 3 } else { 2 };
                let text = if version == GoVersion::V18 { text()? } else { 0 };
                let [names, units, files, values, functab] = [0, 1, 2, 3, 4].map(|part| offset(first + part));
                Self {
                    bytes,
                    version,
                    pointer,
                    quantum,
                    text,
                    functions,
                    names: names?,
                    units: units?,
                    files: files?,
                    values: values?,
                    functab: functab?,
                }
            }
        };
        // The functions are sorted, and there is one more address: the end of the last one.
        let (first, last) = (table.start(0)?, table.start(table.functions)?);
        (first < last && table.function(0)?.start == first).then_some(table)
    }

    /// Number of functions.
    pub(crate) fn len(&self) -> usize {
        self.functions
    }

    /// Size of the addresses in the list of functions.
    fn width(&self) -> usize {
        if self.version == GoVersion::V18 { 4 } else { self.pointer }
    }

    /// Returns the start of a function. Behind the last one is the end of the code.
    fn start(&self, number: usize) -> Option<u64> {
        let width = self.width();
        let at = self.functab.checked_add(number.checked_mul(2 * width)?)?;
        Some(self.text.wrapping_add(word(self.bytes, at, width)?))
    }

    fn range(&self, number: usize) -> Option<Range<u64>> {
        let range = self.start(number)?..self.start(number + 1)?;
        (range.start < range.end).then_some(range)
    }

    fn function(&self, number: usize) -> Option<GoFunction> {
        let width = self.width();
        let at = self.functab.checked_add(number.checked_mul(2 * width)?)?.checked_add(width)?;
        let offset = usize::try_from(word(self.bytes, at, width)?).ok()?;
        // Before Go 1.16, offsets are relative to the table's begin.
        let base = if self.version == GoVersion::V2 { 0 } else { self.functab };
        let at = base.checked_add(offset)?;
        let start = self.text.wrapping_add(word(self.bytes, at, width)?);
        let field = |number: usize| {
            let at = at.checked_add(width + 4 * number)?;
            Some(word(self.bytes, at, 4)? as usize)
        };
        // name, args, deferreturn, pcsp, pcfile, pcln, npcdata, unit.
        let unit = if self.version == GoVersion::V2 { Some(0) } else { field(7) };
        Some(GoFunction { start, name: field(0)?, file_table: field(4)?, line_table: field(5)?, unit: unit? })
    }

    fn name(&self, function: &GoFunction) -> Option<&'a str> {
        text_at(self.bytes, self.names.checked_add(function.name)?)
    }

    /// Adds all functions.
    pub(crate) fn add_functions(&self, into: &mut SymbolTableBuilder) {
        let rank = NameRank { function: true, strong: true, global: false };
        // Each of many hostile functions may have the rest of one long text as its name.
        let mut room = self.bytes.len();
        for number in 0..self.functions {
            let Some(range) = self.range(number) else { continue };
            if !into.wants(range.start, range.end - range.start, range.end) {
                continue;
            }
            let Some(name) = self.function(number).and_then(|function| self.name(&function)) else {
                continue;
            };
            let Some(left) = room.checked_sub(name.len()) else { return };
            room = left;
            into.add(range.start, range.end - range.start, range.end, rank, name);
        }
    }

    /// Returns the function and the line at an address.
    pub(crate) fn line(&self, address: u64) -> Option<GoLine> {
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let number = low.checked_sub(1)?;
        if !self.range(number)?.contains(&address) {
            return None;
        }
        let function = self.function(number)?;
        let line = self.value(function.line_table, function.start, address)?;
        let file = usize::try_from(self.value(function.file_table, function.start, address)?).ok()?;
        let place = match self.version {
            GoVersion::V2 => word(self.bytes, self.files.checked_add(file.checked_mul(4)?)?, 4)? as usize,
            GoVersion::V16 | GoVersion::V18 => {
                let number = function.unit.checked_add(file)?;
                let at = self.units.checked_add(number.checked_mul(4)?)?;
                self.files.checked_add(word(self.bytes, at, 4)? as usize)?
            }
        };
        Some(GoLine {
            function: self.name(&function)?.to_owned(),
            file: text_at(self.bytes, place)?.to_owned(),
            line: u32::try_from(line).ok()?,
        })
    }

    /// Returns the value at an address, from a table of differences. Values begin with -1.
    ///
    /// ```text
    ///   zigzag(value - last), (address - last) / quantum;  a difference of 0 ends the table
    /// ```
    fn value(&self, table: usize, start: u64, address: u64) -> Option<i64> {
        let mut bytes = self.bytes.get(self.values.checked_add(table)?..)?;
        let (mut value, mut at) = (-1i64, start);
        for step in 0..MOST_STEPS {
            let change = varint(&mut bytes)?;
            if change == 0 && step > 0 {
                return None;
            }
            let change = i64::from(change >> 1) ^ -i64::from(change & 1);
            value = value.checked_add(change)?;
            at = at.checked_add(u64::from(varint(&mut bytes)?).checked_mul(self.quantum)?)?;
            if address < at {
                return Some(value);
            }
        }
        None
    }
}

/// Returns the version, the size of the smallest instruction and the size of a pointer.
fn header(bytes: &[u8]) -> Option<(GoVersion, u64, usize)> {
    let [magic @ .., 0, 0, quantum @ (1 | 2 | 4), pointer @ (4 | 8)] = bytes.first_chunk::<8>()? else {
        return None;
    };
    let version = match u32::from_le_bytes([magic[0], magic[1], magic[2], magic[3]]) {
        0xffff_fffb => GoVersion::V2,
        0xffff_fffa => GoVersion::V16,
        0xffff_fff0 | 0xffff_fff1 => GoVersion::V18,
        _ => return None,
    };
    Some((version, u64::from(*quantum), usize::from(*pointer)))
}

/// Returns the positions in a segment that look like a header. The table is aligned to at least eight bytes.
fn headers(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let (words, _) = bytes.as_chunks::<8>();
    words
        .iter()
        .enumerate()
        .filter(|(_, word)| word[1] == 0xff && header(*word).is_some())
        .map(|(at, _)| at * 8)
}

/// Returns the value that the dynamic linker stores at an address of a position-independent program.
fn relocated(file: &File<'_>, address: u64) -> Option<u64> {
    let (_, relocation) = file.dynamic_relocations()?.find(|(at, _)| *at == address)?;
    let is_relative = matches!(relocation.target(), RelocationTarget::Absolute);
    u64::try_from(relocation.addend()).ok().filter(|text| is_relative && *text > 0)
}

fn start_of_text(file: &File<'_>) -> Option<u64> {
    file.section_by_name(".text").map(|section| section.address())
}

/// Reads an integer of four or eight bytes.
fn word(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..size].copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(word))
}

/// Reads a text up to its null byte.
fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let len = rest.iter().take(LONGEST_NAME).position(|byte| *byte == 0)?;
    str::from_utf8(&rest[..len]).ok().filter(|text| !text.is_empty())
}

/// Reads an unsigned LEB128 number of at most 32 bits.
fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number in LEB128.
    fn leb(mut value: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A table of values, each with the number of instructions that have it.
    fn values(list: &[(i64, u32)]) -> Vec<u8> {
        let mut last = -1;
        let mut bytes = Vec::new();
        for (value, count) in list {
            let change = value - last;
            bytes.extend(leb((change << 1 ^ change >> 63) as u32));
            bytes.extend(leb(*count));
            last = *value;
        }
        bytes.push(0);
        bytes
    }

    /// A table with `main.one` at 0x1000 (lines 10 and 8 of a.go, 16 bytes each) and `main.two` from 0x1040
    /// to 0x1060 (line 300 of b.go).
    fn table(magic: u32, pointer: usize) -> Vec<u8> {
        let is_relative = magic & 0xf < 2;
        let is_old = magic == 0xffff_fffb;
        let header_words = if is_relative {
            8
        } else if is_old {
            1
        } else {
            7
        };
        let width = if is_relative { 4 } else { pointer };
        let put = |bytes: &mut Vec<u8>, value: u64, width: usize| {
            bytes.extend(&value.to_le_bytes()[..width]);
        };
        let names = b"\0main.one\0main.two\0".to_vec();
        let files = b"\0/src/a.go\0/src/b.go\0".to_vec();
        let pcvalues: [Vec<u8>; 4] =
            [values(&[(10, 16), (8, 16)]), values(&[(0, 32)]), values(&[(300, 32)]), values(&[(1, 32)])];
        let header = 8 + header_words * pointer;
        let functab = 2 * 2 * width + width + 4;
        let names_at = header + functab.next_multiple_of(8) + 2 * (width + 32);
        let files_at = names_at + names.len();
        let values_at = files_at + files.len();
        let lens: Vec<usize> = pcvalues.iter().map(Vec::len).collect();
        let value_at = |number: usize| lens[..number].iter().sum::<usize>();
        let units_at = values_at + value_at(4);
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, pointer as u8]);
        put(&mut bytes, 2, pointer);
        if !is_old {
            put(&mut bytes, 2, pointer);
            if is_relative {
                put(&mut bytes, 0x1000, pointer);
            }
            for part in [names_at, units_at, files_at, values_at, header] {
                put(&mut bytes, part as u64, pointer);
            }
        }
        assert_eq!(bytes.len(), header);
        let text = if is_relative { 0 } else { 0x1000 };
        let base = if is_old { header } else { 0 };
        let first = base + functab.next_multiple_of(8);
        for (start, function) in [(0, first), (0x40, first + width + 32)] {
            put(&mut bytes, text + start, width);
            put(&mut bytes, function as u64, width);
        }
        put(&mut bytes, text + 0x60, width);
        put(&mut bytes, units_at as u64, 4);
        bytes.resize(header + functab.next_multiple_of(8), 0);
        let (name_base, value_base) = if is_old { (names_at, values_at) } else { (0, 0) };
        for (start, name, file, line) in [(0u64, 1, 1, 0), (0x40, 10, 3, 2)] {
            put(&mut bytes, text + start, width);
            let fields =
                [name + name_base, 0, 0, 0, value_at(file) + value_base, value_at(line) + value_base, 0, 0];
            fields.into_iter().for_each(|field| put(&mut bytes, field as u64, 4));
        }
        bytes.extend([names, files].concat());
        bytes.extend(pcvalues.concat());
        let file_base = if is_old { files_at } else { 0 };
        [1, 11].into_iter().for_each(|file: usize| put(&mut bytes, (file + file_base) as u64, 4));
        bytes
    }

    /// Any ELF file, which the table refers to only if it has no start of the code.
    fn program() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    #[test]
    fn all_versions_have_functions_and_lines() {
        let program = program();
        let file = File::parse(&*program).unwrap();
        for magic in [0xffff_fffb, 0xffff_fffa, 0xffff_fff0, 0xffff_fff1u32] {
            for pointer in [4, 8] {
                let bytes = table(magic, pointer);
                let go = GoTable::read(&bytes, 0, &file).unwrap();
                let mut names = SymbolTableBuilder::default();
                names.limit_names(1 << 10);
                go.add_functions(&mut names);
                let names = names.finish();
                let name = |at: u64| names.find(at).map(|symbol| (symbol.name.to_owned(), symbol.start));
                assert_eq!(name(0x1010), Some(("main.one".into(), 0x1000)), "{magic:x} {pointer}");
                assert_eq!(name(0x1040), Some(("main.two".into(), 0x1040)));
                assert_eq!(name(0x1060), None);
                let line = |at: u64| go.line(at).map(|of| (of.function, of.file, of.line));
                let (one, two) = ("main.one".to_owned(), "main.two".to_owned());
                assert_eq!(line(0x100f), Some((one.clone(), "/src/a.go".into(), 10)), "{magic:x} {pointer}");
                assert_eq!(line(0x1010), Some((one, "/src/a.go".into(), 8)));
                // No line is known for the rest of the function.
                assert_eq!((line(0x1020), line(0xfff), line(0x1060)), (None, None, None));
                assert_eq!(line(0x1041), Some((two, "/src/b.go".into(), 300)));
                assert_eq!(go.len(), 2);
            }
        }
    }

    #[test]
    fn header_is_found_in_other_bytes() {
        let table = table(0xffff_fff1, 8);
        let bytes = [&[0xff; 64][..], &table].concat();
        assert_eq!(headers(&bytes).collect::<Vec<_>>(), [64]);
        assert_eq!(headers(&bytes[1..]).count() + headers(&[]).count(), 0);
    }

    #[test]
    fn damaged_tables_do_no_harm() {
        let program = program();
        let file = File::parse(&*program).unwrap();
        let mut read = 0;
        for magic in [0xffff_fffb, 0xffff_fffa, 0xffff_fff1u32] {
            let whole = table(magic, 8);
            for at in 0..whole.len() {
                for value in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut bytes = whole.clone();
                    bytes[at] = value;
                    let Some(go) = GoTable::read(&bytes, 0, &file) else { continue };
                    read += 1;
                    let few = super::super::table::WantedAddresses::new([0x1010, 0x1050]);
                    go.add_functions(&mut SymbolTableBuilder::for_few(few));
                    [0, 0x1000, 0x1010, 0x1050, u64::MAX]
                        .into_iter()
                        .for_each(|address| _ = go.line(address));
                }
                let _cut = GoTable::read(&whole[..at], 0, &file).map(|go| go.line(0x1010));
            }
        }
        assert!(read > 1000, "{read}");
    }
}
