//! Wraps text into lines.

use super::{clean, width};

/// Cleans `text` and wraps it into lines of at most `columns`. The first line begins with `first`, and all
/// other lines begin with `rest`. Lines do not end with a blank. A word wider than a line is kept whole. Runs
/// of blanks within a line are kept, so that columns stay aligned.
pub fn wrap(first: &str, rest: &str, text: &str, columns: usize) -> Vec<String> {
    let text = clean(text);
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_inclusive(' ') {
        if !is_empty && width(&line) + width(word.trim_end()) > columns {
            line.truncate(line.trim_end().len());
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
        }
        line.push_str(word);
        is_empty = false;
    }
    line.truncate(line.trim_end().len());
    lines.push(line);
    lines
}

/// Wraps a remark that begins with spaces, a label, or both (`  try: …`), into lines of at most `columns`.
/// Continuation lines are indented to the text after the label, unless the label is long.
pub fn wrap_remark(remark: &str, columns: usize) -> Vec<String> {
    /// Maximum indentation of continuation lines.
    const DEEPEST: usize = 16;
    let text = remark.trim_start();
    let indent = remark.len() - text.len();
    let label = remark.find(": ").map(|at| at + 2).filter(|begin| *begin <= DEEPEST);
    let rest = " ".repeat(label.unwrap_or(indent).min(DEEPEST));
    wrap(&" ".repeat(indent), &rest, text, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("a: ", "   ", "one two three", 10), ["a: one two", "   three"]);
        assert_eq!(wrap("", "  ", "incomprehensibilities of it", 8), ["incomprehensibilities", "  of it"]);
        assert_eq!(wrap("- ", "  ", "a  b \u{1b}", 80), ["- a  b ?"]);
        assert_eq!(wrap("label ", "", "", 80), ["label"]);
    }

    #[test]
    fn wrapped_notes_are_indented_below_their_label() {
        assert_eq!(wrap_remark("  try: one two", 10), ["  try: one", "       two"]);
        assert_eq!(wrap_remark("  one two", 6), ["  one", "  two"]);
        assert_eq!(wrap_remark("far too many words: one", 22), ["far too many words:", "one"]);
    }
}
