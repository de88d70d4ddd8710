//! Words and numbers cut to columns. Everything foreign passes here on its way to the screen.

use unicode_width::UnicodeWidthChar;

use crate::text;

/// Combining characters kept on one letter: enough for any script, not enough to climb over the lines above.
const COMBINING: usize = 2;

/// Harmless, and at most `width` columns wide; what is cut off is shown by an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    shifted(text, 0, width)
}

/// As [`cut`], without the first `skip` columns.
pub fn shifted(text: &str, skip: usize, width: usize) -> String {
    let text = text::clean(text);
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
        if used + wide > width {
            return with_ellipsis(out, width);
        }
        if used + wide == width && chars.clone().any(|c| c.width().unwrap_or(0) > 0) {
            return with_ellipsis(out, width);
        }
        // Half of a wide character that was moved out to the left.
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

fn with_ellipsis(mut out: String, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    while text::width(&out) + 1 > width {
        out.pop();
    }
    out.push('…');
    out
}

/// Cut and filled up to exactly `width` columns.
pub fn left(text: &str, width: usize) -> String {
    let mut out = cut(text, width);
    let have = text::width(&out);
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(have)));
    out
}

/// The same with the spaces in front.
pub fn right(text: &str, width: usize) -> String {
    let out = cut(text, width);
    let have = text::width(&out);
    let mut spaces: String = std::iter::repeat_n(' ', width.saturating_sub(have)).collect();
    spaces.push_str(&out);
    spaces
}

/// A share (0 to 1) in percent, seven columns.
pub fn percent(share: f64) -> String {
    format!("{:6.2}%", share * 100.0)
}

/// Half the width of a share's confidence interval, six columns.
pub fn error(half: f64) -> String {
    let percent = half * 100.0;
    let text = if percent >= 9.95 {
        format!("±{percent:.0}")
    } else if percent >= 0.095 {
        format!("±{percent:.1}")
    } else {
        format!("±{percent:.2}")
    };
    right(&text, 6)
}

/// A bar of `width` columns: its own part full, the part of what it called lighter.
pub fn bar(own: f64, total: f64, width: usize) -> String {
    let cells = |share: f64| ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    let (own, total) = (cells(own), cells(total));
    let light = total.saturating_sub(own);
    let mut out = "█".repeat(own);
    out.push_str(&"░".repeat(light));
    out.push_str(&" ".repeat(width - own - light));
    out
}

/// Heights of a row of numbers, one column each; an empty place for none, something to see for anything.
pub fn sparks(values: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let step = |value: &u64| match *value {
        0 => ' ',
        value => STEPS[((value as f64 / most as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_cut_to_columns() {
        assert_eq!(cut("malloc", 6), "malloc");
        assert_eq!(cut("malloc", 5), "mall…");
        assert_eq!(cut("数据库", 5), "数据…");
        assert_eq!(cut("数据库", 4), "数…");
        assert_eq!(cut("e\u{301}\u{301}\u{301}\u{301}x", 2), "e\u{301}\u{301}x");
        assert_eq!(cut("a\u{1b}[2Jb\tc", 20), "a?[2Jb?c");
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(shifted("abcdef", 2, 10), "cdef");
        assert_eq!(shifted("数据", 1, 10), " 据");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn bars_and_sparks() {
        assert_eq!(bar(0.25, 0.5, 8), "██░░    ");
        assert_eq!(bar(1.0, 0.3, 4), "████");
        assert_eq!(sparks(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(percent(0.1234), " 12.34%");
        assert_eq!(error(0.004), "  ±0.4");
    }

    proptest! {
        #[test]
        fn columns_are_exact(name in "\\PC*|[a-z\u{1b}\t数\u{301}]{0,30}", width in 1usize..40, skip in 0usize..10) {
            prop_assert_eq!(text::width(&left(&name, width)), width);
            prop_assert!(text::width(&shifted(&name, skip, width)) <= width);
        }
    }
}
