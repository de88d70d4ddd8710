//! Lines and words of text formats.

use std::borrow::Cow;

use pmc_symbols::symbol::demangle::demangle;

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

/// Whether the name is that of the kernel or one of its modules.
pub(super) fn is_kernel(module: &str) -> bool {
    let others =
        ["[vdso]", "[vdso32]", "[vsyscall]", "[heap]", "[stack]", "[unknown]", "[uprobes]", "[vectors]"];
    let is_memory =
        module.starts_with("[anon") || module.starts_with("[stack:") || module.starts_with("[JIT");
    module.starts_with('[') && !others.contains(&module) && !is_memory
        || module.ends_with(".ko")
        || module.ends_with("/vmlinux")
}

/// Splits `name (module)`. Both may contain parentheses.
pub(super) fn split_module(text: &str) -> (&str, Option<&str>) {
    let Some(inside) = text.strip_suffix(')') else { return (text, None) };
    let mut depth = 0usize;
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth > 0 => depth -= 1,
            b'(' if at == 0 || inside.as_bytes()[at - 1] == b' ' => {
                return (inside[..at].trim_end(), Some(&inside[at + 1..]));
            }
            b'(' => return (text, None),
            _ => {}
        }
    }
    (text, None)
}

/// Completes the name of a Rust function that was demangled as if it were C++, as `sample` and DTrace do:
/// `_$LT$T$u20$as$u20$a..B$GT$::f::h0123456789abcdef (.llvm.12)` is `<T as a::B>::f`. Mangles it again, since
/// the demangler knows Rust's escapes.
pub(super) fn rust_name(name: &str) -> Cow<'_, str> {
    let symbol = name.split_once(" (.llvm.").map_or(name, |(symbol, _)| symbol);
    let is_hash = |hash: &str| {
        hash.strip_prefix('h')
            .is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let Some((path, hash)) = symbol.rsplit_once("::").filter(|(_, hash)| is_hash(hash)) else {
        return Cow::Borrowed(name);
    };
    let parts = path.split("::").chain([hash]);
    let symbol: String = parts.map(|part| format!("{}{part}", part.len())).collect();
    demangle(&format!("_ZN{symbol}E")).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Whether the text consists of decimal digits.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_demangled_rust_names_are_completed() {
        let hash = "h0123456789abcdef";
        let named = |path: &str| rust_name(&format!("{path}::{hash}")).into_owned();
        assert_eq!(named("std::rt::lang_start"), "std::rt::lang_start");
        assert_eq!(named("_$LT$a..B$LT$T$GT$$u20$as$u20$c..D$GT$::f"), "<a::B<T> as c::D>::f");
        assert_eq!(named("a::run::_$u7b$$u7b$closure$u7d$$u7d$"), "a::run::{{closure}}");
        assert_eq!(named("<T as a::B>::poll"), "<T as a::B>::poll");
        assert_eq!(rust_name(&format!("a::b::{hash} (.llvm.123)")), "a::b");
        for other in ["operator..", "a::b::hello", "ns::h(int)", "a::h0123456789abcdeg"] {
            assert_eq!(rust_name(other), other);
        }
    }
}
