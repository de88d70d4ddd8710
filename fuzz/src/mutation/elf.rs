//! Changes of ELF files that keep what surrounds the change: libFuzzer and [`super::bytes`] shift the rest of
//! the file, after which nothing in it is found.
//!
//! The file may be anywhere in the input, after the part that a target defines.

use std::ops::Range;

use super::{Random, bytes, number};

/// Sizes of the headers of 64-bit files, and offsets in them.
const SECTION: usize = 64;
const SEGMENT: usize = 56;

/// Changes the content of a section, a header, or a field of a table, and sometimes anything.
pub fn change(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let file = input.windows(4).position(|four| four == b"\x7fELF").unwrap_or(0);
    let places = places(&input[file..]);
    if places.is_empty() || random.below(16) == 0 {
        return bytes(input, max, random);
    }
    for _ in 0..1 + random.below(6) {
        let place = places[random.below(places.len())].clone();
        let part = &mut input[file + place.start..file + place.end];
        let at = random.below(part.len());
        match random.below(6) {
            0 => part[at] ^= 1 << random.below(8),
            1 => part[at] = random.word() as u8,
            2 => part[at] = part[at].wrapping_add(1),
            3 => {
                let len = (1 + random.below(24)).min(part.len());
                let (from, to) = (random.below(part.len() - len + 1), random.below(part.len() - len + 1));
                part.copy_within(from..from + len, to);
            }
            _ => number(part, at, random),
        }
    }
    // What comes before the file: the target's own part.
    if file > 0 && random.below(3) == 0 {
        let at = random.below(file);
        number(&mut input[..file], at, random);
    }
    input.truncate(max);
}

/// Returns the parts of a 64-bit little-endian file: headers, tables, and the contents of sections.
fn places(file: &[u8]) -> Vec<Range<usize>> {
    let word = |at: usize, size: usize| {
        let bytes = file.get(at..at.checked_add(size)?)?;
        let word = bytes.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        usize::try_from(word).ok()
    };
    let mut places = Vec::new();
    let mut add = |start: Option<usize>, size: Option<usize>| {
        if let (Some(start), Some(size)) = (start, size)
            && size > 0
            && start.checked_add(size).is_some_and(|end| end <= file.len())
        {
            places.push(start..start + size);
        }
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return places;
    }
    add(Some(4), Some(60));
    let (segments, sections) = (word(32, 8), word(40, 8).unwrap_or(0));
    add(segments, word(56, 2).map(|count| count * SEGMENT));
    for number in 0..word(60, 2).unwrap_or(0).min(100) {
        let Some(header) = sections.checked_add(number * SECTION).filter(|at| *at < file.len()) else {
            break;
        };
        add(Some(header), Some(SECTION));
        // SHT_NOBITS
        if word(header + 4, 4).is_some_and(|kind| kind != 8) {
            add(word(header + 24, 8), word(header + 32, 8));
        }
    }
    places
}
