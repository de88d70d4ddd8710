//! Words: making foreign strings harmless, measuring them, and guessing what was meant.
//!
//! Receives strings from files, processes and users; hands back strings that are safe to print and to align.
//! Leaves the printing to others.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

/// The text without anything that a terminal would act on: control characters (C0, DEL, C1) and the
/// characters that reorder a line (bidirectional overrides) become `?`, so columns stay in place.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(hostile) {
        Cow::Owned(text.chars().map(|c| if hostile(c) { '?' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Compact JSON without anything that a terminal would act on, and without loss: what [`clean`] replaces is written as
/// `\uXXXX`. (JSON itself asks for that below U+0020 only, and such characters can stand in strings only.)
pub fn clean_json(json: &str) -> Cow<'_, str> {
    if !json.contains(hostile) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if hostile(c) {
            out.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The names nearest to `wanted`, best first, at most `most`: for "did you mean".
///
/// Case is ignored; a candidate that contains or extends the word counts as near; nothing is
/// returned when nothing is close enough to be a slip of the finger.
pub fn nearest<'a, I>(wanted: &str, candidates: I, most: usize) -> Vec<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let slips = strsim::damerau_levenshtein(&wanted, &lower);
            let allowed = 1 + wanted.chars().count() / 4;
            if slips <= allowed {
                Some((slips as f64, candidate))
            } else if wanted.len() >= 4 && (lower.starts_with(&wanted) || lower.contains(&wanted)) {
                Some((allowed as f64 + lower.len() as f64 / 1000.0, candidate))
            } else {
                None
            }
        })
        .collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_made_harmless() {
        assert_eq!(clean("a\u{1b}[31mb\tc\u{202e}d"), "a?[31mb?c?d");
        assert!(matches!(clean("plain ü"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_keeps_what_it_hides() {
        let json = "\"a\u{9b}31m\u{202e}\u{7f}\"";
        assert_eq!(clean_json(json), r#""a\u009b31m\u202e\u007f""#);
        assert_eq!(serde_json::from_str::<String>(&clean_json(json)).unwrap(), "a\u{9b}31m\u{202e}\u{7f}");
    }

    #[test]
    fn slips_are_recognised() {
        assert_eq!(nearest("cycels", ["cycles", "instructions", "cache-misses"], 3), ["cycles"]);
        assert!(nearest("zzzzzz", ["cycles"], 3).is_empty());
    }
}
