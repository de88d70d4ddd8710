//! Cuts and pads text to a number of columns.

use unicode_width::UnicodeWidthChar;

use super::{clean, is_plain, width};

/// Maximum number of combining characters per letter: enough for any script, but too few to draw over the
/// lines above.
const COMBINING: usize = 2;

/// Cleans the text and cuts it to at most `most` columns. An ellipsis marks the cut.
pub fn cut(text: &str, most: usize) -> String {
    // Fast path for the usual case, since tables may have thousands of rows.
    if text.len() <= most && is_plain(text) {
        return text.to_owned();
    }
    shifted(text, 0, most)
}

/// Like [`cut`], but skips the first `skip` columns.
pub fn shifted(text: &str, skip: usize, most: usize) -> String {
    let text = clean(text);
    let mut out = String::new();
    let (mut column, mut used, mut combining) = (0, 0, 0);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let wide = c.width().unwrap_or(0);
        if wide == 0 {
            combining += 1;
            if combining <= COMBINING && column >= skip && used > 0 {
                out.push(c);
            }
            continue;
        }
        combining = 0;
        column += wide;
        if column <= skip {
            continue;
        }
        if used + wide > most || used + wide == most && chars.clone().any(|c| c.width().unwrap_or(0) > 0) {
            return with_ellipsis(out, most);
        }
        // If the cut goes through a wide character, a blank replaces its right half.
        if column - wide < skip {
            out.push(' ');
            used += column - skip;
        } else {
            out.push(c);
            used += wide;
        }
    }
    out
}

fn with_ellipsis(mut out: String, most: usize) -> String {
    if most == 0 {
        return String::new();
    }
    // One ellipsis is enough if the text already ends in one.
    while width(&out) + 1 > most || out.ends_with('…') {
        out.pop();
    }
    out.push('…');
    out
}

/// Pads the text on the right to `columns`; longer text stays unchanged.
pub fn padded(text: &str, columns: usize) -> String {
    let blanks = columns.saturating_sub(width(text));
    format!("{text}{:blanks$}", "")
}

/// Cuts and pads the text to exactly `columns`.
pub fn left(text: &str, columns: usize) -> String {
    padded(&cut(text, columns), columns)
}

/// Like [`left`], but pads on the left.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(width(&text));
    format!("{:blanks$}{text}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_truncated_to_columns() {
        assert_eq!(cut("malloc", 6), "malloc");
        assert_eq!(cut("malloc", 5), "mall…");
        assert_eq!(cut("Vec<…>::push", 6), "Vec<…");
        assert_eq!(cut("数据库", 5), "数据…");
        assert_eq!(cut("数据库", 4), "数…");
        assert_eq!(cut("e\u{301}\u{301}\u{301}\u{301}x", 2), "e\u{301}\u{301}x");
        assert_eq!(cut("a\u{1b}[2Jb\tc", 20), "a?[2Jb?c");
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(padded("abcde", 4), "abcde");
        assert_eq!(shifted("abcdef", 2, 10), "cdef");
        assert_eq!(shifted("数据", 1, 10), " 据");
        assert_eq!(cut("abc", 0), "");
    }

    proptest! {
        #[test]
        fn padding_fills_exact_columns(name in "\\PC*|[a-z\u{1b}\t数\u{301}]{0,30}", columns in 1usize..40, skip in 0usize..10) {
            prop_assert_eq!(width(&left(&name, columns)), columns);
            prop_assert!(width(&shifted(&name, skip, columns)) <= columns);
        }
    }
}
