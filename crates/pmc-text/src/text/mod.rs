//! Text utilities: cleans untrusted strings; measures, cuts and wraps text; suggests similar names.
//!
//! The strings come from files, processes and users. The results are safe to print, and can be aligned.
//! Prints nothing.

mod cut;
mod digits;
mod display_name;
pub mod glob;
mod json;
mod names;
mod wrap;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use unicode_width::UnicodeWidthStr;

pub use cut::{cut, left, padded, right, shifted};
pub use digits::Digits;
pub use display_name::{DisplayName, without_version};
pub use json::{JsonDisplay, as_json, write_json};
pub use names::{NameToken, name_tokens, nearest};
pub use wrap::{wrap, wrap_remark};

/// Replaces with `?` all characters that a terminal would interpret: control characters (C0, DEL, C1) and
/// characters that reorder a line (bidirectional overrides). Columns stay aligned.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !is_plain(text) && text.contains(hostile) {
        Cow::Owned(text.chars().map(|c| if hostile(c) { '?' } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether the text is printable ASCII only, which is the usual case. Testing all bytes is faster than
/// stopping at the first mismatch.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
}

fn hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Returns a path as a word for a shell, quoted if necessary, for commands that pmc suggests. Control
/// characters become `?`.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_safe) {
        true => text.into_owned(),
        false => format!("'{}'", clean(&text).replace('\'', r"'\''")),
    }
}

/// Returns the number of columns that `text` occupies on a terminal.
pub fn width(text: &str) -> usize {
    if is_plain(text) { text.len() } else { text.width() }
}

/// Returns the text around the byte offset `at`, with a caret and `note` in a second line below it. Shows at
/// most 60 characters on either side.
pub fn with_caret(text: &str, at: usize, note: &str) -> String {
    const SHOWN: usize = 60;
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let first = before.char_indices().rev().take(SHOWN).last().map_or(before.len(), |(at, _)| at);
    let last = after.char_indices().nth(SHOWN).map_or(after.len(), |(at, _)| at);
    let before = format!("{}{}", if first > 0 { "…" } else { "" }, clean(&before[first..]));
    let after = format!("{}{}", clean(&after[..last]), if last < after.len() { "…" } else { "" });
    format!("{before}{after}\n{}^ {note}", " ".repeat(width(&before)))
}

/// Returns the longest start of a text with at most `most` bytes that is valid UTF-8.
pub fn prefix(text: &str, most: usize) -> &str {
    let end = (0..=text.len().min(most)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Escapes text for an attribute or element of HTML or XML.
pub fn xml_escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the text of a CSV cell. Text that a spreadsheet would take for a formula (it begins with `=`, `+`,
/// `-` or `@`, and is not a number) gets a `'` in front. Names of other people's functions, threads and files
/// must not run as formulas. Source: OWASP, *CSV Injection*.
pub fn csv_cell(text: String) -> String {
    let is_number = || text.len() == 1 || text.trim_end_matches('%').parse::<f64>().is_ok();
    if text.starts_with(['=', '+', '-', '@']) && !is_number() { format!("'{text}") } else { text }
}

/// Formats bytes in base 16, two digits each, separated by `between`.
pub fn hex(bytes: &[u8], between: &str) -> String {
    let mut out = String::with_capacity(bytes.len() * (2 + between.len()));
    for (at, byte) in bytes.iter().enumerate() {
        let _ = write!(out, "{}{byte:02x}", if at > 0 { between } else { "" });
    }
    out
}

/// Splits `name (inside)` at its last parenthesis.
pub fn split_parenthesis(text: &str) -> Option<(&str, &str)> {
    text.strip_suffix(')')?.rsplit_once(" (")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_neutralized() {
        assert_eq!(clean("a\u{1b}[31mb\tc\u{202e}d"), "a?[31mb?c?d");
        assert!(matches!(clean("plain ü"), Cow::Borrowed(_)));
    }

    #[test]
    fn paths_are_quoted_for_the_shell() {
        for (path, word) in [
            ("/tmp/a-b_c.d", "/tmp/a-b_c.d"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("a\nb", "'a?b'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }

    #[test]
    fn width_counts_terminal_columns() {
        for (text, columns) in [("", 0), ("plain", 5), ("pläin", 5), ("日本", 4), ("e\u{301}", 1)] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn csv_cells_are_no_formulas() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-[NSView draw]", "-0x10"] {
            assert_eq!(csv_cell(formula.to_owned()), format!("'{formula}"));
        }
        for plain in ["", "-", "main", "operator-", "-12", "+0.00", "-1.5e-3", "+12.50%", "'=1", "\"=1\""] {
            assert_eq!(csv_cell(plain.to_owned()), plain);
        }
    }

    #[test]
    fn bytes_print_as_two_hex_digits() {
        assert_eq!(hex(&[0, 0xab, 7], ""), "00ab07");
        assert_eq!(hex(&[0, 0xab, 7], " "), "00 ab 07");
        assert_eq!(hex(&[], " "), "");
    }
}
