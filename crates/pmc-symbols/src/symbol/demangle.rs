//! Demangling: converts linker names to source names.
//!
//! The form of a name determines its language, since C++ programs may contain Rust code and vice versa. Names
//! may come from hostile files, so their length, depth and output are limited. Names that cannot be parsed
//! stay unchanged. Like perf, omits parameters, return types, and the hashes in Rust names.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::cplusplus::{self, BoundedString};

/// Maximum length of a name to demangle. Longer names stay unchanged.
const MOST_IN: usize = 16 * 1024;
/// Returns the source name; `None` if it equals `raw` or `raw` cannot be parsed.
///
/// Keeps suffixes added by compilers and linkers (`.cold`, `.constprop.0`, `@plt`), except for the number
/// that LLVM appends to local functions when it moves them between files (`.llvm.123`). This number has no
/// meaning and changes with each build.
pub fn demangle(raw: &str) -> Option<String> {
    if raw.len() > MOST_IN {
        return None;
    }
    let plain = without_llvm(raw);
    let (name, version) = plain.split_at(plain.find('@').unwrap_or(plain.len()));
    let read = match name.starts_with(['_', 'R']) {
        true if looks_rust(name) => rust(name).or_else(|| cpp(name)),
        true => cpp(name),
        false => None,
    };
    match read {
        Some(read) => Some(read + version),
        None => (plain != raw).then(|| plain.into_owned()),
    }
}

/// Removes `.llvm.` and the number after it.
fn without_llvm(raw: &str) -> Cow<'_, str> {
    const MARK: &str = ".llvm.";
    let Some(at) = raw.find(MARK) else { return raw.into() };
    let behind = &raw[at + MARK.len()..];
    let rest = behind.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    // Some versions write the hash in decimal, others in hexadecimal. Further suffixes may follow.
    if rest.len() == behind.len() || !(rest.is_empty() || rest.starts_with('.')) || at == 0 {
        return raw.into();
    }
    (raw[..at].to_owned() + rest).into()
}

/// Whether a name was mangled by Rust. The current scheme starts with `_R`. The legacy scheme is C++'s, with
/// names that end in `17h`, 16 hexadecimal digits and `E`.
fn looks_rust(name: &str) -> bool {
    let has_hash = || {
        name.match_indices("17h").any(|(at, _)| {
            let hash = &name.as_bytes()[at + 3..];
            hash.len() > 16 && hash[..16].iter().all(u8::is_ascii_hexdigit) && hash[16] == b'E'
        })
    };
    name.starts_with("_R") || name.starts_with("_ZN") && has_hash()
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut out = BoundedString::default();
    write!(out, "{demangled:#}").ok()?;
    Some(out.0)
}

fn cpp(name: &str) -> Option<String> {
    // The name of a clone consists of the function's name, a dot and a suffix. Mangled names contain no dots.
    let (base, clone) = name.split_at(name.find('.').unwrap_or(name.len()));
    Some(cplusplus::demangle(base)? + clone)
}

#[cfg(test)]
mod tests {
    use super::super::cplusplus::MOST_OUT;
    use super::*;

    #[test]
    fn mangling_scheme_is_detected_by_prefix() {
        let cases = [
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", Some("core::fmt::Formatter::pad")),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", Some("foo::example_function")),
            ("_Z3addii", Some("add")),
            ("_ZNSt6vectorIiSaIiEE9push_backERKi", Some("std::vector<int, std::allocator<int> >::push_back")),
            ("_Z3addii.cold", Some("add.cold")),
            ("_Z3addii.constprop.0.isra.0", Some("add.constprop.0.isra.0")),
            ("_Z3addii@plt", Some("add@plt")),
            ("main", None),
            ("helper.llvm.12345678901234567890", Some("helper")),
            ("helper.llvm.12345.cold", Some("helper.cold")),
            ("_Z3addii.llvm.0123456789", Some("add")),
            ("_RNvCskwGfYPst2Cb_3foo16example_function.llvm.9ABCDEF", Some("foo::example_function")),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.8022", Some("core::fmt::Formatter::pad")),
            ("odd.llvm.", None),
            ("odd.llvm.words", None),
            ("helper.isra.0", None),
            ("helper.part.0.cold", None),
            ("_start", None),
            ("_Z", None),
            ("__libc_start_main", None),
        ];
        for (raw, want) in cases {
            assert_eq!(demangle(raw).as_deref(), want, "{raw}");
        }
    }

    #[test]
    fn hostile_names_have_bounded_output() {
        let deep = format!("_Z{}i", "P".repeat(10_000));
        assert_eq!(demangle(&deep), None);
        let mut bomb = String::from("_Z1fI");
        for _ in 0..200 {
            bomb.push_str("St4pairIS_S_E");
        }
        bomb.push('E');
        assert!(demangle(&bomb).is_none_or(|out| out.len() <= MOST_OUT));
        assert_eq!(demangle(&"_Z".repeat(20_000)), None);
        let nested = format!("_RN{}", "v".repeat(10_000));
        assert!(demangle(&nested).is_none_or(|out| out.len() <= MOST_OUT));
    }
}
