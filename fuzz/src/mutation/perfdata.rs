//! Mutations that know the layout of perf.data: header, attrs, records, feature sections, and the text of
//! tracepoint formats in them. They change sizes, counts, offsets, strings and fields, and keep the rest whole,
//! so that most inputs get past the checks of the header.

use std::sync::LazyLock;

use super::{Random, bytes, number};

const MAGIC: &[u8; 8] = b"PERFILE2";
/// Size of a record's header.
const RECORD: usize = 8;
/// Kinds of compressed records, with the offset of their data.
const COMPRESSED: [(u32, usize); 2] = [(81, 8), (83, 16)];
/// Types of records: those of the kernel, perf and simpleperf, and a few that do not exist.
static KINDS: LazyLock<Vec<u32>> =
    LazyLock::new(|| (1..=22).chain(64..=86).chain([32769, 0, 63, u32::MAX]).collect());
/// Strings for names of threads, files and events.
const STRINGS: [&[u8]; 12] = [
    b"",
    b"/",
    b"//anon",
    b"[kernel.kallsyms]_text",
    b"[vdso]",
    b"/tmp/perf-1.map",
    b"../../../../dev/zero",
    b"\x1b]0;title\x07\x1b[2J",
    b"\xff\xfe\xc0\x80",
    b"a<b<c<d<e<f<g<h<i<j<k<l<m<n<",
    b"%s%n%d",
    b"_ZN3foo3barIiEEvT_PFS1_S1_ES1_",
];
/// Pieces of tracepoint formats.
const FORMAT_WORDS: [&[u8]; 24] = [
    b"field:",
    b"offset:",
    b"size:",
    b"signed:",
    b";",
    b"\t",
    b"print fmt: \"",
    b"\", ",
    b"REC->",
    b"%s",
    b"%*.*llx",
    b"__print_flags(",
    b"__print_symbolic(",
    b"__get_str(",
    b"__get_dynamic_array(",
    b"((((((((((((((((",
    b"{ 0x1, \"a\" }",
    b"? 1 : ",
    b"/ 0",
    b"<< 64",
    b"[4294967295]",
    b"__data_loc char[] ",
    b"unsigned long ",
    b"%pS",
];

/// Changes a recording in file or pipe form. Other inputs get plain changes of bytes.
pub fn mutate(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let is_recording = input.len() > 16 && (input.starts_with(MAGIC) || input.starts_with(b"PERFFILE"));
    if !is_recording || random.below(16) == 0 {
        return bytes(input, max, random);
    }
    for _ in 0..1 + random.below(4) {
        if input.len() < 16 {
            break;
        }
        match word(input, 8) {
            16 => in_records(input, 16, None, random),
            _ if random.below(3) == 0 => in_records(input, 0, FileData::of(input), random),
            _ => in_file(input, random),
        }
    }
    if random.below(16) == 0 {
        input.truncate(random.below(input.len()));
    }
    input.truncate(max);
}

/// Changes a sequence of records without a header, such as a file of a directory.
pub fn records(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    in_records(input, 0, None, random);
    input.truncate(max);
}

fn word(input: &[u8], at: usize) -> u64 {
    input.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_ne_bytes(*word))
}

fn half(input: &[u8], at: usize) -> u32 {
    input.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

fn set_word(input: &mut [u8], at: usize, value: u64) {
    if let Some(place) = input.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

/// A range of the input, if it lies in it.
fn range(input: &[u8], at: u64, size: u64) -> Option<std::ops::Range<usize>> {
    let (start, size) = (usize::try_from(at).ok()?, usize::try_from(size).ok()?);
    let end = start.checked_add(size)?;
    (size > 0 && end <= input.len()).then_some(start..end)
}

/// Records of the file form.
#[derive(Clone, Copy)]
struct FileData {
    start: usize,
    end: usize,
}

impl FileData {
    fn of(input: &[u8]) -> Option<Self> {
        let data = range(input, word(input, 40), word(input, 48))?;
        (data.start >= 104).then_some(Self { start: data.start, end: data.end })
    }

    /// Moves what follows the records: their size has changed.
    fn resize(self, input: &mut [u8], new_end: usize) {
        set_word(input, 48, (new_end - self.start) as u64);
        let moved = (new_end as u64).wrapping_sub(self.end as u64);
        for row in feature_rows(input, new_end) {
            let at = word(input, row);
            if at >= self.end as u64 {
                set_word(input, row, at.wrapping_add(moved));
            }
        }
    }
}

/// Positions of the rows of the feature table, which begins at `table`.
fn feature_rows(input: &[u8], table: usize) -> Vec<usize> {
    let count: u32 = (0..4).map(|index| word(input, 72 + 8 * index).count_ones()).sum();
    (0..count as usize).map(|row| table + row * 16).filter(|row| row + 16 <= input.len()).collect()
}

/// Changes the parts of a file: header, attrs, ids, feature table and feature sections.
fn in_file(input: &mut Vec<u8>, random: &mut Random) {
    let data = FileData::of(input);
    match random.below(10) {
        0 => number(input, 8 + 8 * random.below(12), random),
        // A feature more or less: the rows of the others move.
        1 => input.get_mut(72 + random.below(5)).into_iter().for_each(|byte| *byte ^= 1 << random.below(8)),
        2 | 3 => in_attrs(input, random),
        4 => {
            let rows = feature_rows(input, data.map_or(0, |data| data.end));
            if let Some(&row) = rows.get(random.below(rows.len())) {
                let other = random.pick(&rows);
                match random.below(3) {
                    0 => (0..16).for_each(|at| input.swap(row + at, other + at)),
                    _ => number(input, row + 8 * random.below(2), random),
                }
            }
        }
        _ => in_feature(input, data, random),
    }
}

fn in_attrs(input: &mut [u8], random: &mut Random) {
    let Some(attrs) = range(input, word(input, 24), word(input, 32)) else { return };
    let entry = (word(input, 16) as usize).clamp(16, attrs.len().max(16));
    let attr = attrs.start + entry * random.below(attrs.len() / entry);
    if attr + entry > input.len() {
        return;
    }
    match random.below(5) {
        // Bits of sample_type, read_format, the flags, and branch_sample_type.
        0 | 1 => {
            let at = attr + random.pick(&[24, 24, 32, 40, 72]) + random.below(4);
            input.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << random.below(8));
        }
        2 => number(input, (attr + 4 * random.below(entry / 4)).min(input.len() - 1), random),
        3 => number(input, (attr + entry - 16 + 8 * random.below(2)).min(input.len() - 1), random),
        _ => {
            let (at, size) = (word(input, attr + entry - 16), word(input, attr + entry - 8));
            if let Some(ids) = range(input, at, size) {
                number(input, ids.start + 8 * random.below(ids.len() / 8), random);
            }
        }
    }
}

/// Changes the contents of a feature section, in place or as a longer or shorter copy at the end of the file.
fn in_feature(input: &mut Vec<u8>, data: Option<FileData>, random: &mut Random) {
    let rows = feature_rows(input, data.map_or(0, |data| data.end));
    let Some(&row) = rows.get(random.below(rows.len())) else { return };
    let Some(section) = range(input, word(input, row), word(input, row + 8)) else { return };
    let mut contents = input[section.clone()].to_vec();
    payload(&mut contents, random);
    if contents.len() <= section.len() {
        input[section.start..][..contents.len()].copy_from_slice(&contents);
    } else {
        let end = input.len() as u64;
        set_word(input, row, end);
        input.extend(&contents);
    }
    set_word(input, row + 8, contents.len() as u64);
}

/// Changes bytes that hold numbers, strings, or the text of tracepoint formats.
fn payload(contents: &mut Vec<u8>, random: &mut Random) {
    if contents.is_empty() {
        return contents.extend(random.pick(&STRINGS));
    }
    let has_formats = contents.windows(10).any(|window| window == b"print fmt:");
    if has_formats && random.below(3) > 0 {
        return format_text(contents, random);
    }
    match random.below(6) {
        0 => {
            let at = random.below(contents.len());
            let end = (at + random.below(64)).min(contents.len());
            contents.splice(at..end, random.pick(&STRINGS).iter().copied());
        }
        1 => contents.truncate(random.below(contents.len())),
        2 => {
            let more = contents[random.below(contents.len())..].to_vec();
            contents.extend(more);
        }
        3 => contents.extend(std::iter::repeat_n(random.word() as u8, 1 << random.below(14))),
        _ => {
            let at = random.below(contents.len()) & !3;
            number(contents, at, random);
        }
    }
}

/// Changes the text of tracepoint formats.
pub fn format_text(text: &mut Vec<u8>, random: &mut Random) {
    if text.is_empty() {
        return text.extend(random.pick(&FORMAT_WORDS));
    }
    // Prefers places after a line's colon, where the fields and the expressions are.
    let mut at = random.below(text.len());
    if let Some(colon) = text[at..].iter().position(|byte| *byte == b':').filter(|_| random.below(2) == 0) {
        at += colon;
    }
    let end = (at + random.below(12)).min(text.len());
    match random.below(6) {
        0 => drop(text.splice(at..end, random.pick(&FORMAT_WORDS).iter().copied())),
        1 => drop(text.splice(at..at, random.pick(&FORMAT_WORDS).iter().copied())),
        2 => drop(text.splice(at..at, random.pick(&FORMAT_WORDS).repeat(1 + random.below(300)))),
        3 => drop(text.drain(at..end)),
        4 => {
            let digits: Vec<usize> =
                (at..text.len()).filter(|at| text[*at].is_ascii_digit()).take(50).collect();
            if let Some(&digit) = digits.get(random.below(digits.len())) {
                let new =
                    random.pick(&[&b"0"[..], b"-1", b"65535", b"4294967295", b"99999999999999999999", b"8"]);
                text.splice(digit..=digit, new.iter().copied());
            }
        }
        _ => bytes(text, usize::MAX, random),
    }
}

/// Positions and sizes of the records in the range, as far as their headers make sense.
fn record_places(input: &[u8], start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    let mut at = start;
    while at + RECORD <= end {
        let size = usize::from(u16::from_ne_bytes([input[at + 6], input[at + 7]]));
        if size < RECORD || at + size > end {
            break;
        }
        places.push((at, size));
        // Data of a trace or of tracing data may follow the record.
        at += size
            + match half(input, at) {
                71 => word(input, at + 8) as usize % (1 << 32),
                66 => (half(input, at + 8) as usize).next_multiple_of(8),
                _ => 0,
            };
    }
    places
}

/// Changes one record, or their order and number.
fn in_records(input: &mut Vec<u8>, start: usize, data: Option<FileData>, random: &mut Random) {
    let (start, end) = data.map_or((start.min(input.len()), input.len()), |data| (data.start, data.end));
    let places = record_places(input, start, end);
    let Some(&(at, size)) = places.get(random.below(places.len())) else {
        return bytes(input, usize::MAX, random);
    };
    let before = input.len();
    match random.below(14) {
        0 => input[at..at + 4].copy_from_slice(&random.pick(&KINDS).to_ne_bytes()),
        1 => input[at + 4 + random.below(2)] ^= 1 << random.below(8),
        2 => number(&mut input[..at + RECORD], at + 6, random),
        3..=5 => {
            let field = (at + RECORD + 4 * random.below(size / 4)).min(before - 1);
            number(input, field, random);
        }
        6 => drop(input.drain(at..at + size)),
        7 => {
            let copy = input[at..at + size].to_vec();
            let (to, _) = random.pick(&places);
            input.splice(to..to, copy);
        }
        8 => {
            let copy = input[at..at + size].repeat(1 + random.below(200));
            input.splice(at..at, copy);
        }
        9 => {
            let new = new_record(random);
            input.splice(at..at, new);
        }
        10 if let Some(kind) = COMPRESSED.iter().find(|(kind, _)| *kind == half(input, at)) => {
            in_compressed(input, at, size, *kind, random);
        }
        _ => {
            // The body, with a size that fits.
            let mut body = input[at + RECORD..at + size].to_vec();
            payload(&mut body, random);
            body.resize(body.len().next_multiple_of(8).min(0xfff8 - RECORD), 0);
            let size_now = (body.len() + RECORD) as u16;
            input[at + 6..at + 8].copy_from_slice(&size_now.to_ne_bytes());
            input.splice(at + RECORD..at + size, body);
        }
    }
    if let Some(data) = data
        && before != input.len()
    {
        let new_end = data.end + input.len() - before;
        data.resize(input, new_end);
    }
}

/// A record of any kind, with a body of small numbers, ids and addresses.
fn new_record(random: &mut Random) -> Vec<u8> {
    let words = random.below(24);
    let mut record = random.pick(&KINDS).to_ne_bytes().to_vec();
    record.extend((random.pick(&[0_u16, 1, 2, 1 << 13, 1 << 14, 1 << 15])).to_ne_bytes());
    record.extend((8 + 8 * words as u16).to_ne_bytes());
    for _ in 0..words {
        let value = match random.below(4) {
            0 => random.word() % 64,
            1 => ((random.word() % (1 << 20)) << 32) | 1,
            2 => u64::from_ne_bytes(*b"/bin/ls\0"),
            _ => random.word() >> random.below(64),
        };
        record.extend(value.to_ne_bytes());
    }
    record
}

/// Unpacks a compressed record, changes the records in it, and packs them again.
fn in_compressed(
    input: &mut Vec<u8>,
    at: usize,
    size: usize,
    (kind, data): (u32, usize),
    random: &mut Random,
) {
    let Some(packed) = input.get(at + data..at + size) else { return };
    let mut unpacked = Vec::new();
    let Ok(mut stream) = zstd::stream::read::Decoder::new(packed) else { return };
    // The frame may go on in the next record, so its end may be missing.
    let _ = std::io::Read::read_to_end(&mut std::io::Read::take(&mut stream, 1 << 20), &mut unpacked);
    if unpacked.is_empty() {
        return;
    }
    in_records(&mut unpacked, 0, None, random);
    let Ok(packed) = zstd::stream::encode_all(&unpacked[..], 1) else { return };
    let whole = (data + packed.len()).next_multiple_of(8);
    let Ok(size_now) = u16::try_from(whole) else { return };
    let mut record = kind.to_ne_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(size_now.to_ne_bytes());
    if data == 16 {
        record.extend((packed.len() as u64).to_ne_bytes());
    }
    record.extend(packed);
    record.resize(whole, 0);
    input.splice(at..at + size, record);
}
