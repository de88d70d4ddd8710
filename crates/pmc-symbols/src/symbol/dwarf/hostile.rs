//! Small ELF files with hostile debug information, for tests: many entries share one long list.

/// The entries that share the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::symbol) enum Sharing {
    /// Functions share a list of ranges.
    Functions,
    /// Blocks of one function share a list of ranges.
    Blocks,
    /// Variables of one function share a list of locations.
    Variables,
    /// Units, each with one function, share a list of ranges.
    Units,
}

/// Address at which the code begins.
pub(in crate::symbol) const CODE: u64 = 0x1000;
/// Size of the code in bytes.
const SIZE: u32 = 0x100;
/// Offset of the first list in its section.
const LISTS: u32 = 12;

/// Returns a file in which `entries` entries share a list of `items` items. The entries start at different
/// items, so that no two lists are equal.
pub(in crate::symbol) fn elf(sharing: Sharing, entries: u32, items: u32) -> Vec<u8> {
    assert!(entries <= items);
    let list = |entry: u32, size: u32| (LISTS + entry * size).to_le_bytes();
    let mut info = Vec::new();
    let mut unit = |body: Vec<u8>| {
        info.extend((body.len() as u32 + 8).to_le_bytes());
        info.extend([5, 0, 1, 8, 0, 0, 0, 0]);
        info.extend(body);
    };
    let code = [&CODE.to_le_bytes()[..], &SIZE.to_le_bytes()].concat();
    let root = || [&[1][..], &code].concat();
    let function_at_code = || [&[3][..], b"f\0", &code].concat();
    let all = |code: u8, size: u32| (0..entries).flat_map(move |at| [&[code][..], &list(at, size)].concat());
    match sharing {
        // The first function refers to its ranges in a form that does not exist for them.
        Sharing::Functions => {
            unit(root().into_iter().chain([7, 0, 0]).chain(all(2, 3)).chain([0]).collect());
        }
        Sharing::Blocks | Sharing::Variables => {
            let (code, size) = if sharing == Sharing::Blocks { (4, 3) } else { (5, 5) };
            let children = all(code, size).chain([0, 0]);
            unit(root().into_iter().chain(function_at_code()).chain(children).collect());
        }
        Sharing::Units => (0..entries).for_each(|at| {
            let ranges = list(at, 3);
            unit([&[6][..], &CODE.to_le_bytes(), &ranges, &[2], &ranges, &[0]].concat());
        }),
    }
    // Tag, whether there are children, and pairs of attribute and form.
    let kinds: [(u8, u8, &[u8]); 7] = [
        (0x11, 1, &[0x11, 0x01, 0x12, 0x06]),
        (0x2e, 0, &[0x55, 0x17]),
        (0x2e, 1, &[0x03, 0x08, 0x11, 0x01, 0x12, 0x06]),
        (0x0b, 0, &[0x55, 0x17]),
        (0x34, 0, &[0x02, 0x17]),
        (0x11, 1, &[0x11, 0x01, 0x55, 0x17]),
        (0x2e, 0, &[0x55, 0x05]),
    ];
    let kind = |(code, (tag, children, attributes)): (u8, (u8, u8, &[u8]))| {
        [&[code, tag, children], attributes, &[0, 0]].concat()
    };
    let abbreviations = (1..).zip(kinds).flat_map(kind).chain([0]).collect();
    // Offset pairs; a location has an empty expression.
    let lists = |item: &[u8]| {
        let items = item.repeat(items as usize);
        let length = items.len() as u32 + 9;
        [&length.to_le_bytes()[..], &[5, 0, 8, 0, 0, 0, 0, 0], &items, &[0]].concat()
    };
    with_sections(&[
        (".debug_info", info),
        (".debug_abbrev", abbreviations),
        (".debug_rnglists", lists(&[4, 0, 1])),
        (".debug_loclists", lists(&[4, 0x10, 0x11, 1, 0x9c])),
    ])
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
