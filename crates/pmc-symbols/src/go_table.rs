//! Functions, lines and sizes of stack frames of Go programs, from the table that Go's runtime needs for its
//! own stack traces. It is in every Go program, also in those built with `-ldflags="-s -w"`, which have
//! neither other names nor unwind tables.
//!
//! ```text
//!   header -> functab: start of each function -> function: name, and where its value tables begin
//!                                                    line table: differences of lines and addresses
//!                                                    frame table: differences of sizes and addresses
//! ```
//!
//! The section is `.gopclntab` or, in position-independent programs, `.data.rel.ro.gopclntab`. In files
//! without section headers, the segments are searched for its first bytes. The formats are those of Go 1.2,
//! 1.16, 1.18 and 1.20 (`src/runtime/symtab.go`, `src/internal/abi/symtab.go`). [Inlined calls](inlined) are
//! read for Go 1.18 and later.

mod inlined;

use std::ops::Range;

use object::read::{File, Object, ObjectSection, ObjectSegment, RelocationTarget};

use self::inlined::InlineTrees;

/// Maximum number of functions; more than any legitimate file has.
const MOST_FUNCTIONS: usize = 1 << 22;
/// Maximum length of a name.
const LONGEST_NAME: usize = 1 << 14;
/// Maximum number of steps of a line table. Functions have as many as lines, calls and inlined lines.
const MOST_STEPS: usize = 1 << 16;
/// Maximum depth of inlined calls.
const MOST_INLINED: usize = 256;
/// The table of values with the numbers of inlined calls, in a function's list of such tables.
const INLINED_CALLS: usize = 2;
/// The flag of functions without callers.
const OUTERMOST: u8 = 1;
/// The tree of inlined calls, in a function's list of data.
const INLINE_TREE: usize = 3;

/// The layout of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoVersion {
    /// Go 1.2 to 1.15.
    V2,
    /// Go 1.16 and 1.17.
    V16,
    /// Go 1.18 and 1.19. Addresses are relative to the start of the code.
    V18,
    /// Go 1.20 and later. Functions have the line where they begin.
    V20,
}

impl GoVersion {
    fn is_relative(self) -> bool {
        matches!(self, Self::V18 | Self::V20)
    }
}

/// The table of a file.
#[derive(Debug)]
pub(crate) struct GoTable<'a> {
    bytes: &'a [u8],
    address: u64,
    inlined: Option<InlineTrees<'a>>,
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
    frame_table: usize,
    file_table: usize,
    line_table: usize,
    unit: usize,
    /// The table of inlined calls, and their tree.
    inlined_table: usize,
    tree: Option<usize>,
    /// See [`GoTable::is_outermost`].
    outermost: bool,
}

impl<'a> GoTable<'a> {
    /// Finds the table of a file; `None` if it is not a Go program.
    pub(crate) fn find(file: &File<'a>) -> Option<Self> {
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
            let stored = word(bytes, at, pointer)?;
            linked(file, address.wrapping_add(at as u64), stored).or_else(|| start_of_text(file))
        };
        let [names, units, files, values, functab] = if version == GoVersion::V2 {
            let functab = 8 + pointer;
            // Behind the functions: the end of the code, and the offset of the list of files.
            let end = functab.checked_add(functions.checked_mul(2 * pointer)?)?.checked_add(pointer)?;
            [0, 0, word(bytes, end, 4)? as usize, 0, functab]
        } else {
            let first = if version.is_relative() { 3 } else { 2 };
            let [names, units, files, values, functab] = [0, 1, 2, 3, 4].map(|part| offset(first + part));
            [names?, units?, files?, values?, functab?]
        };
        let text = if version.is_relative() { text()? } else { 0 };
        let table = Self {
            bytes,
            address,
            inlined: None,
            version,
            pointer,
            quantum,
            text,
            functions,
            names,
            units,
            files,
            values,
            functab,
        };
        // The functions are sorted, and there is one more address: the end of the last one.
        let (first, last) = (table.start(0)?, table.start(table.functions)?);
        (first < last && table.function(0)?.start == first).then_some(table)
    }

    /// Adds the inlined calls to the lines.
    pub(crate) fn with_inlined_calls(self, file: &File<'a>) -> Self {
        Self { inlined: InlineTrees::find(file, &self), ..self }
    }

    /// Number of functions.
    pub(crate) fn len(&self) -> usize {
        self.functions
    }

    /// Size of the table in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the code of all functions, with their numbers.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (Range<u64>, usize)> {
        (0..self.functions).filter_map(|number| Some((self.range(number)?, number)))
    }

    pub(crate) fn function_name(&self, number: usize) -> Option<&'a str> {
        self.name(self.function(number)?.name)
    }

    /// Whether a function never has a caller, because Go starts its threads or goroutines there. Go 1.16 and
    /// earlier versions do not tell.
    pub(crate) fn is_outermost(&self, number: usize) -> bool {
        self.function(number).is_some_and(|function| function.outermost)
    }

    /// Returns the sizes in bytes of a function's stack frame without the return address: the offset of the
    /// first instruction in the function that has it, and the size, which is negative in code that changes
    /// the stack of another function.
    pub(crate) fn frame_sizes(&self, number: usize) -> impl Iterator<Item = (u64, i64)> {
        let steps = self.function(number).map(|function| self.steps(function.frame_table));
        let mut start = 0;
        steps.into_iter().flatten().map(move |(end, size)| (std::mem::replace(&mut start, end), size))
    }

    /// Size of the addresses in the list of functions.
    fn width(&self) -> usize {
        if self.version.is_relative() { 4 } else { self.pointer }
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
            let at = at.checked_add(width)?.checked_add(number.checked_mul(4)?)?;
            Some(word(self.bytes, at, 4)? as usize)
        };
        // name, args, deferreturn, pcsp, pcfile, pcln, number of value tables, unit, in Go 1.20 the line,
        // then four bytes, of which the second has flags, and the last is the number of data. The value
        // tables and the data follow.
        let (unit, bytes) = match self.version {
            GoVersion::V2 => (Some(0), 7),
            GoVersion::V16 | GoVersion::V18 => (field(7), 8),
            GoVersion::V20 => (field(7), 9),
        };
        let tables = field(6)?;
        let [_, flags, _, data] = (field(bytes)? as u32).to_le_bytes();
        let data = usize::from(data);
        let inlined_table = if INLINED_CALLS < tables { field(bytes + 1 + INLINED_CALLS)? } else { 0 };
        let tree = if INLINE_TREE < data && inlined_table > 0 {
            field(tables.checked_add(bytes + 1 + INLINE_TREE)?).filter(|tree| *tree != u32::MAX as usize)
        } else {
            None
        };
        let (name, frame_table, file_table, line_table) = (field(0)?, field(3)?, field(4)?, field(5)?);
        Some(GoFunction {
            start,
            name,
            frame_table,
            file_table,
            line_table,
            unit: unit?,
            inlined_table,
            tree,
            outermost: flags & OUTERMOST != 0,
        })
    }

    fn name(&self, offset: usize) -> Option<&'a str> {
        text_at(self.bytes, self.names.checked_add(offset)?)
    }

    /// Whether a name begins at an offset.
    fn is_name(&self, offset: usize) -> bool {
        let before = self.names.checked_add(offset).and_then(|at| self.bytes.get(at.checked_sub(1)?));
        before == Some(&0) && self.name(offset).is_some()
    }

    /// Returns the functions and lines at an address, innermost first: inlined calls and the function that
    /// contains the code. Returns nothing if the line is unknown.
    pub(crate) fn lines(&self, address: u64) -> Vec<GoLine> {
        let Some(function) = self.function_at(address) else { return Vec::new() };
        let inlined = || self.with_inlined(&function, address);
        inlined().or_else(|| Some(vec![self.line(&function, function.name, address)?])).unwrap_or_default()
    }

    fn function_at(&self, address: u64) -> Option<GoFunction> {
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low.midpoint(high);
            if self.start(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let number = low.checked_sub(1)?;
        self.range(number)?.contains(&address).then(|| self.function(number))?
    }

    /// Returns the inlined calls and the function that contains them; `None` if any is invalid.
    fn with_inlined(&self, function: &GoFunction, mut address: u64) -> Option<Vec<GoLine>> {
        let (trees, tree) = (self.inlined?, function.tree?);
        let mut lines = Vec::new();
        while lines.len() < MOST_INLINED {
            let number = self.value(function.inlined_table, function.start, address)?;
            let Ok(number) = usize::try_from(number) else {
                lines.push(self.line(function, function.name, address)?);
                return Some(lines);
            };
            let call = trees.call(tree, number)?;
            lines.push(self.line(function, call.name, address)?);
            address = function.start.checked_add(call.caller)?;
        }
        None
    }

    /// Returns the line at an address of a function, which belongs to the function with this name.
    fn line(&self, function: &GoFunction, name: usize, address: u64) -> Option<GoLine> {
        let line = self.value(function.line_table, function.start, address)?;
        let file = usize::try_from(self.value(function.file_table, function.start, address)?).ok()?;
        let place = if self.version == GoVersion::V2 {
            word(self.bytes, self.files.checked_add(file.checked_mul(4)?)?, 4)? as usize
        } else {
            let number = function.unit.checked_add(file)?;
            let at = self.units.checked_add(number.checked_mul(4)?)?;
            self.files.checked_add(word(self.bytes, at, 4)? as usize)?
        };
        Some(GoLine {
            function: self.name(name)?.to_owned(),
            file: text_at(self.bytes, place)?.to_owned(),
            line: u32::try_from(line).ok()?,
        })
    }

    /// Returns the value of a table at an address of the function that starts at `start`.
    fn value(&self, table: usize, start: u64, address: u64) -> Option<i64> {
        let offset = address.checked_sub(start)?;
        self.steps(table).find_map(|(end, value)| (offset < end).then_some(value))
    }

    /// Returns the values of a table of differences, each with the offset in the function where it ends.
    /// Values begin with -1.
    ///
    /// ```text
    ///   zigzag(value - last), (address - last) / quantum;  a difference of 0 ends the table
    /// ```
    fn steps(&self, table: usize) -> impl Iterator<Item = (u64, i64)> {
        let at = self.values.checked_add(table);
        let mut bytes = at.and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        let (mut value, mut end) = (-1i64, 0u64);
        (0..MOST_STEPS).map_while(move |step| {
            let change = varint(&mut bytes)?;
            if change == 0 && step > 0 {
                return None;
            }
            let change = i64::from(change >> 1) ^ -i64::from(change & 1);
            value = value.checked_add(change)?;
            end = end.checked_add(u64::from(varint(&mut bytes)?).checked_mul(self.quantum)?)?;
            Some((end, value))
        })
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
        0xffff_fff0 => GoVersion::V18,
        0xffff_fff1 => GoVersion::V20,
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

/// Returns the pointer at an address: the stored one, or in position-independent programs the one that the
/// dynamic linker stores there.
fn linked(file: &File<'_>, address: u64, stored: u64) -> Option<u64> {
    if stored > 0 {
        return Some(stored);
    }
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

    /// Number of fields of a function in [`table`].
    const FIELDS: usize = 20;
    /// Where the tree of `main.one` begins.
    const TREE: usize = 32;

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
        let pcvalues = [
            values(&[(10, 16), (8, 16)]),
            values(&[(0, 32)]),
            values(&[(300, 32)]),
            values(&[(1, 32)]),
            // The frame of `main.one`, and its inlined calls.
            values(&[(0, 4), (24, 28)]),
            values(&[(1, 8), (0, 8), (-1, 16)]),
        ];
        let header = 8 + header_words * pointer;
        let functab = 2 * 2 * width + width + 4;
        let function = width + 4 * FIELDS;
        let names_at = header + functab.next_multiple_of(8) + 2 * function;
        let files_at = names_at + names.len();
        let values_at = files_at + files.len();
        let lens: Vec<usize> = pcvalues.iter().map(Vec::len).collect();
        let value_at = |number: usize| lens[..number].iter().sum::<usize>();
        let units_at = values_at + value_at(6);
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
        for (start, function) in [(0, first), (0x40, first + function)] {
            put(&mut bytes, text + start, width);
            put(&mut bytes, function as u64, width);
        }
        put(&mut bytes, text + 0x60, width);
        put(&mut bytes, units_at as u64, 4);
        bytes.resize(header + functab.next_multiple_of(8), 0);
        let (name_base, value_base) = if is_old { (names_at, values_at) } else { (0, 0) };
        for (start, name, file, line) in [(0u64, 1, 1, 0), (0x40, 10, 3, 2)] {
            put(&mut bytes, text + start, width);
            let [file, line, frame, calls] = [file, line, 4, 5].map(|number| value_at(number) + value_base);
            let mut fields = vec![name + name_base, 0, 0, frame, file, line];
            // Three tables of values, and four data, of which the last is the tree.
            fields.push(3);
            let before_sizes = if is_old { 7 } else { 8 + usize::from(magic == 0xffff_fff1) };
            fields.resize(before_sizes, 0);
            fields.push(4 << 24);
            fields.extend([0, 0, calls, 0, 0, 0, if name == 1 { TREE } else { u32::MAX as usize }]);
            fields.resize(FIELDS, 0);
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
                let functions: Vec<_> =
                    go.functions().map(|(range, number)| (range, go.function_name(number))).collect();
                let wanted = [(0x1000..0x1040, Some("main.one")), (0x1040..0x1060, Some("main.two"))];
                assert_eq!(functions, wanted, "{magic:x} {pointer}");
                let line = |at: u64| {
                    let lines = go.lines(at);
                    assert!(lines.len() < 2, "{lines:?}");
                    lines.into_iter().next().map(|of| (of.function, of.file, of.line))
                };
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
    fn frame_sizes_are_read() {
        let program = program();
        let file = File::parse(&*program).unwrap();
        for magic in [0xffff_fffb, 0xffff_fffa, 0xffff_fff0, 0xffff_fff1u32] {
            let bytes = table(magic, 8);
            let go = GoTable::read(&bytes, 0, &file).unwrap();
            assert_eq!(go.frame_sizes(0).collect::<Vec<_>>(), [(0, 0), (4, 24)], "{magic:x}");
            assert_eq!(go.frame_sizes(2).count(), 0);
        }
    }

    /// `main.one` contains `main.two`, which contains `main.one` again.
    #[test]
    fn inlined_calls_are_read() {
        let program = program();
        let file = File::parse(&*program).unwrap();
        for (magic, version) in [(0xffff_fff0u32, GoVersion::V18), (0xffff_fff1, GoVersion::V20)] {
            let bytes = table(magic, 8);
            let mut go = GoTable::read(&bytes, 0, &file).unwrap();
            let mut trees = vec![0; TREE];
            for (name, caller) in [(10u32, 16u32), (1, 8)] {
                let fields = match version {
                    GoVersion::V18 => [0, 0, 0, name, caller].to_vec(),
                    _ => vec![0, name, caller, 0],
                };
                trees.extend(fields.into_iter().flat_map(u32::to_le_bytes));
            }
            go.inlined = Some(InlineTrees::new(&trees, version));
            let lines = |go: &GoTable<'_>, at: u64| {
                go.lines(at).into_iter().map(|of| (of.function, of.line)).collect::<Vec<_>>()
            };
            let (one, two) = ("main.one".to_owned(), "main.two".to_owned());
            assert_eq!(lines(&go, 0x1018), [(one.clone(), 8)]);
            assert_eq!(lines(&go, 0x1009), [(two.clone(), 10), (one.clone(), 8)]);
            assert_eq!(lines(&go, 0x1000), [(one.clone(), 10), (two, 10), (one.clone(), 8)]);
            // A tree that is cut: only the function itself is known.
            go.inlined = Some(InlineTrees::new(&trees[..trees.len() - 30], version));
            assert_eq!(lines(&go, 0x1000), [(one, 10)]);
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
                    for (_, number) in go.functions() {
                        let _read = (go.function_name(number), go.frame_sizes(number).count());
                    }
                    [0, 0x1000, 0x1010, 0x1050, u64::MAX]
                        .into_iter()
                        .for_each(|address| _ = go.lines(address));
                }
                let _cut = GoTable::read(&whole[..at], 0, &file).map(|go| go.lines(0x1010));
            }
        }
        assert!(read > 1000, "{read}");
    }
}
