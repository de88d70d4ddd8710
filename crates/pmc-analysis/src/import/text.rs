//! Lines and words of text formats.

use std::borrow::Cow;

/// Iterates over the lines with their numbers, from 1. Invalid UTF-8 is replaced.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, Cow<'_, str>)> {
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    (1..).zip(lines.map(String::from_utf8_lossy))
}

/// Iterates over the complete lines in the start of a file. The last line may be cut off, so it is included
/// only if it is the only one.
pub(super) fn head_lines(head: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let end = head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len());
    lines(&head[..end]).map(|(_, line)| line)
}

/// Parses a hexadecimal number, with or without `0x`.
pub(super) fn hex(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// Splits `file.py:12` into the file and the line number.
pub(super) fn file_and_line(text: &str) -> Option<(&str, u32)> {
    let (file, line) = text.rsplit_once(':')?;
    let line = line.parse().ok()?;
    (!file.is_empty()).then_some((file, line))
}

/// Splits DTrace's `module`function+0x12` into the module and the function.
pub(super) fn module_and_function(text: &str) -> Option<(&str, &str)> {
    let (module, function) = text.split_once('`')?;
    Some((module, without_offset(function)))
}

/// Removes the offset from `function+0x12`.
pub(super) fn without_offset(function: &str) -> &str {
    function.rsplit_once("+0x").map_or(function, |(name, _)| name)
}

/// Whether the text consists of decimal digits.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
