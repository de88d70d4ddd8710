//! FreeBSD qualifiers that correspond to bits of the CPU's counters: `cachestate=m+e`, `core=this`, `mask=…`.
//!
//! Takes such a qualifier; returns the PMU field and the number. The qualifiers for Intel Core and Core2
//! (`core`, `agent`, `prefetch`, `cachestate`) and for AMD K7 (`unitmask`) have the same bits in all events.
//! The bits of `mask`, `rsp` and others depend on the event or model, so pmc accepts only numbers for these,
//! and rejects names with an explanation.

use super::error::{Fault, ParseResult};
use super::syntax::{MASKS as NAMES, Term, number};

/// Words and their bits.
type Bits = &'static [(&'static str, u64)];

/// Each qualifier, the field that it sets, and the bits for its words.
const MASKS: [(&str, &str, Bits); NAMES.len()] = [
    ("core", "umask", &[("this", 0x40), ("all", 0xc0)]),
    ("agent", "umask", &[("this", 0), ("any", 0x20)]),
    ("prefetch", "umask", &[("exclude", 0), ("only", 0x10), ("both", 0x30)]),
    ("cachestate", "umask", &[("i", 1), ("s", 2), ("e", 4), ("m", 8)]),
    ("unitmask", "umask", &[("i", 1), ("s", 2), ("e", 4), ("o", 8), ("m", 0x10)]),
    ("mask", "umask", &[]),
    ("rsp", "offcore_rsp", &[]),
    ("snoopresponse", "umask", &[]),
    ("snooptype", "umask", &[]),
    ("trans", "umask", &[]),
];

/// Returns the field and its value. The qualifier's words are joined by `+`, except for `unitmask`, whose
/// value is a sequence of letters.
pub(super) fn read(qualifier: &Term<'_>) -> ParseResult<(&'static str, String)> {
    let name = qualifier.name.text;
    let Some((_, field, words)) = MASKS.iter().find(|(own, ..)| *own == name) else {
        return Err(Fault::at(&qualifier.span(), format!("unknown mask `{name}`")));
    };
    let text = qualifier.value.map_or("", |value| value.text);
    if let Some(number) = number(text) {
        return Ok((field, number.to_string()));
    }
    let unknown = |word: &str| {
        let fault = Fault::at(&qualifier.span(), format!("`{name}` does not support the word `{word}`"));
        match *words {
            [] => fault
                .why(
                    "its keywords select different bits for each event or processor model, and only FreeBSD's tables define them",
                )
                .try_this(format!("use the number from the processor's manual: {name}=0x1")),
            _ => {
                let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                fault.expected(format!("a number, or words from {}, joined by `+`", known.join(", ")))
            }
        }
    };
    let bit = |word: &str| {
        let found = words.iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
        found.map(|(_, bits)| *bits).ok_or_else(|| unknown(word))
    };
    let each: Vec<String> = match name {
        "unitmask" => text.chars().filter(|c| *c != '+').map(String::from).collect(),
        _ => text.split('+').map(str::to_owned).collect(),
    };
    let bits: u64 = each.iter().map(|word| bit(word)).try_fold(0, |all, bits| bits.map(|bits| all | bits))?;
    Ok((field, bits.to_string()))
}
