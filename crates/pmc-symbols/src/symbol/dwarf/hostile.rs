//! Small ELF files with hostile debug information, for tests: many entries share one long list, line program,
//! path or unit.

/// The shared part of the debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::symbol) enum Sharing {
    /// Functions share a list of ranges.
    Functions,
    /// Blocks of one function share a list of ranges.
    Blocks,
    /// Blocks of one function share a list of ranges that consists only of base addresses.
    Bases,
    /// Variables of one function share a list of locations.
    Variables,
    /// Units, each with one function, share a list of ranges.
    Units,
    /// Units share a line program with many instructions.
    Lines,
    /// Units share a line program with many source files.
    Headers,
    /// Source files share a folder with a long name.
    Folders,
    /// Source files do not use the long name of their unit's folder, as with absolute names.
    Base,
    /// Partial units share a line program with many source files, as in files that dwz wrote. Each declares a
    /// function `g`.
    Partial,
    /// Units share a table of abbreviations.
    Abbreviations,
}

/// Address at which the code begins.
pub(in crate::symbol) const CODE: u64 = 0x1000;
/// Size of the code in bytes.
const SIZE: u32 = 0x100;
/// Offset of the first list in its section.
const LISTS: u32 = 12;
/// Size of an abbreviation that units share.
const SHARED_KIND: u32 = 6;

/// Adds a unit without a type signature.
fn add_unit(info: &mut Vec<u8>, kind: u8, abbreviations: u32, body: &[u8]) {
    info.extend((body.len() as u32 + 8).to_le_bytes());
    info.extend([5, 0, kind, 8]);
    info.extend(abbreviations.to_le_bytes());
    info.extend(body);
}

fn code() -> Vec<u8> {
    [&CODE.to_le_bytes()[..], &SIZE.to_le_bytes()].concat()
}

/// Returns a file in which `entries` entries share a list of `items` items. The entries start at different
/// items, so that no two lists are equal.
pub(in crate::symbol) fn elf(sharing: Sharing, entries: u32, items: u32) -> Vec<u8> {
    assert!(entries <= items);
    let (mut info, mut line) = (Vec::new(), Vec::new());
    let base = [&[5][..], &CODE.to_le_bytes()].concat();
    // Offset pairs.
    let range = if sharing == Sharing::Bases { base } else { vec![4, 0, 1] };
    let list = |entry: u32, size: usize| (LISTS + entry * size as u32).to_le_bytes();
    let mut unit = |body: Vec<u8>| add_unit(&mut info, 1, 0, &body);
    let root = || [&[1][..], &code()].concat();
    let function_at_code = || [&[3][..], b"f\0", &code()].concat();
    let all = |code: u8, size| (0..entries).flat_map(move |at| [&[code][..], &list(at, size)].concat());
    let with_line = || [&[8][..], &code(), &[0; 4]].concat();
    match sharing {
        // The first function refers to its ranges in a form that does not exist for them.
        Sharing::Functions => {
            unit(root().into_iter().chain([7, 0, 0]).chain(all(2, 3)).chain([0]).collect());
        }
        Sharing::Blocks | Sharing::Bases | Sharing::Variables => {
            let (code, size) = if sharing == Sharing::Variables { (5, 5) } else { (4, range.len()) };
            let children = all(code, size).chain([0, 0]);
            unit(root().into_iter().chain(function_at_code()).chain(children).collect());
        }
        Sharing::Units => (0..entries).for_each(|at| {
            let ranges = list(at, 3);
            unit([&[6][..], &CODE.to_le_bytes(), &ranges, &[2], &ranges, &[0]].concat());
        }),
        Sharing::Lines | Sharing::Headers => {
            (0..entries).for_each(|_| unit(with_line()));
            line =
                if sharing == Sharing::Lines { line_program(1, 1, items) } else { line_program(1, items, 1) };
        }
        Sharing::Folders => {
            unit(with_line());
            line = line_program(items, entries, 1);
        }
        Sharing::Base => {
            let base = b"b".repeat(items as usize);
            unit([&[11][..], &base, &[0], &code(), &[0; 4]].concat());
            line = line_program(1, entries, 1);
        }
        Sharing::Partial => {
            let partial = [&[12, 0, 0, 0, 0, 13][..], b"g\0", &[0, 7, 0]].concat();
            (0..entries).for_each(|_| add_unit(&mut info, 3, 0, &partial));
            // Until DWARF 4, partial units have the type of others.
            (0..entries).for_each(|_| add_unit(&mut info, 1, 0, &partial));
            // The code of the function in the first partial unit.
            let function = [&[15][..], &17u32.to_le_bytes(), &code(), &[0]].concat();
            add_unit(&mut info, 1, 0, &[&[14][..], &code(), &[0; 4], &function].concat());
            line = line_program(1, items, 1);
        }
        Sharing::Abbreviations => (0..entries).for_each(|number| {
            add_unit(&mut info, 1, number * SHARED_KIND, &two_bytes(number + 1));
        }),
    }
    let abbreviations = if sharing == Sharing::Abbreviations {
        (0..entries).flat_map(|number| [&two_bytes(number + 1)[..], &[0x11, 0, 0, 0]].concat()).collect()
    } else {
        abbreviations()
    };
    // A location has an empty expression.
    let lists = |item: &[u8]| {
        let items = item.repeat(items as usize);
        let length = items.len() as u32 + 9;
        [&length.to_le_bytes()[..], &[5, 0, 8, 0, 0, 0, 0, 0], &items, &[0]].concat()
    };
    with_sections(&[
        (".debug_info", info),
        (".debug_abbrev", abbreviations),
        (".debug_line", line),
        (".debug_rnglists", lists(&range)),
        (".debug_loclists", lists(&[4, 0x10, 0x11, 1, 0x9c])),
    ])
}

/// Returns a file with skeletons that share one split unit, and the file of the split unit, which has this
/// many functions. The skeletons refer to it as `u.dwo` in `folder`.
pub(in crate::symbol) fn split(folder: &str, skeletons: u32, functions: u32) -> [Vec<u8>; 2] {
    let id = [7; 8];
    let (mut info, mut split) = (Vec::new(), Vec::new());
    let skeleton = [&id[..], &[9], b"u.dwo\0", folder.as_bytes(), &[0], &code()].concat();
    (0..skeletons).for_each(|_| add_unit(&mut info, 4, 0, &skeleton));
    let function = [&[10][..], b"f\0", &code()].concat();
    let body = [&id[..], &[1], &code(), &function.repeat(functions as usize), &[0]].concat();
    add_unit(&mut split, 5, 0, &body);
    [
        with_sections(&[(".debug_info", info), (".debug_abbrev", abbreviations())]),
        with_sections(&[(".debug_info.dwo", split), (".debug_abbrev.dwo", abbreviations())]),
    ]
}

fn abbreviations() -> Vec<u8> {
    // Tag, whether there are children, and pairs of attribute and form.
    let kinds: [(u8, u8, &[u8]); 15] = [
        (0x11, 1, &[0x11, 0x01, 0x12, 0x06]),
        (0x2e, 0, &[0x55, 0x17]),
        (0x2e, 1, &[0x03, 0x08, 0x11, 0x01, 0x12, 0x06]),
        (0x0b, 0, &[0x55, 0x17]),
        (0x34, 0, &[0x02, 0x17]),
        (0x11, 1, &[0x11, 0x01, 0x55, 0x17]),
        (0x2e, 0, &[0x55, 0x05]),
        (0x11, 0, &[0x11, 0x01, 0x12, 0x06, 0x10, 0x17]),
        (0x4a, 0, &[0x76, 0x08, 0x1b, 0x08, 0x11, 0x01, 0x12, 0x06]),
        (0x2e, 0, &[0x03, 0x08, 0x11, 0x01, 0x12, 0x06]),
        (0x11, 0, &[0x1b, 0x08, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17]),
        (0x3c, 1, &[0x10, 0x17]),
        (0x2e, 0, &[0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b]),
        (0x11, 1, &[0x11, 0x01, 0x12, 0x06, 0x10, 0x17]),
        (0x2e, 0, &[0x31, 0x10, 0x11, 0x01, 0x12, 0x06]),
    ];
    let kind = |(code, (tag, children, attributes)): (u8, (u8, u8, &[u8]))| {
        [&[code, tag, children], attributes, &[0, 0]].concat()
    };
    (1..).zip(kinds).flat_map(kind).chain([0]).collect()
}

/// Encodes a number below 16,384 in LEB128.
fn two_bytes(number: u32) -> [u8; 2] {
    [number as u8 | 0x80, (number >> 7) as u8]
}

/// Returns a line program with this many files, in a folder whose name has this many bytes. It has a row at
/// the code, and then this many instructions that add no rows.
fn line_program(folder: u32, files: u32, instructions: u32) -> Vec<u8> {
    let folder = [&[b'/'][..], &b"d".repeat(folder as usize), &[0]].concat();
    let header = [
        &[1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1][..],
        &[1, 1, 8, 2, b'/', 0],
        &folder,
        &[2, 1, 8, 2, 0x0b],
        &two_bytes(files),
        &b"f\0\x01".repeat(files as usize),
    ]
    .concat();
    let idle = [6].repeat(instructions as usize);
    let rows = [&[0, 9, 2][..], &CODE.to_le_bytes(), &[1], &idle, &[2, 1, 0, 1, 1]].concat();
    let size = (header.len() as u32).to_le_bytes();
    let rest = [&[5, 0, 8, 0][..], &size, &header, &rows].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

/// Returns a 64-bit x86 file with these sections, whose code is at [`CODE`].
fn with_sections(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut names = b"\0.shstrtab\0".to_vec();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    file.resize(64, 0);
    file.extend([1u32, 5].map(u32::to_le_bytes).concat());
    file.extend([0, CODE, CODE, SIZE.into(), SIZE.into(), 0x1000].map(u64::to_le_bytes).concat());
    let mut headers = vec![0; 64];
    let mut header = |name: usize, kind: u32, at: usize, size: usize| {
        headers.extend([(name as u32).to_le_bytes(), kind.to_le_bytes()].concat());
        headers.extend([0, 0, at as u64, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat());
    };
    for (name, bytes) in sections {
        header(names.len(), 1, file.len(), bytes.len());
        names.extend([name.as_bytes(), &[0]].concat());
        file.extend(bytes);
    }
    header(1, 3, file.len(), names.len());
    file.extend(names);
    let at = file.len() as u64;
    file.extend(headers);
    file[32] = 64;
    file[40..48].copy_from_slice(&at.to_le_bytes());
    let count = sections.len() as u16 + 2;
    for (field, value) in [(52, 64), (54, 56), (56, 1), (58, 64), (60, count), (62, count - 1)] {
        file[field..field + 2].copy_from_slice(&value.to_le_bytes());
    }
    file
}
