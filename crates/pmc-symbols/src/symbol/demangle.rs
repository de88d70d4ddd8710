//! Demangling: converts linker names to source names.
//!
//! The form of a name determines its language, since C++ programs may contain Rust code and vice versa. Names
//! may come from hostile files, so their length, depth and output are limited. Names that cannot be parsed
//! stay unchanged. Omits return types, the hashes in Rust names, and, unless asked for them, parameters.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::cplusplus::{self, BoundedString};

/// Maximum length of a name to demangle. Longer names stay unchanged.
const MOST_IN: usize = 16 * 1024;

/// Suffixes that LLVM appends to local functions, before a number: `.llvm.` if it moved them between files,
/// `.__uniq.` with `-funique-internal-linkage-names`. The number has no meaning, and changes with each build
/// or with the path of the source.
const NUMBERED: [&str; 2] = [".llvm.", ".__uniq."];

/// Returns the source name; `None` if it equals `raw` or `raw` cannot be parsed.
///
/// Keeps suffixes that name a part or a version of a function (`.cold`, `.part.0`, `.constprop.0`, `@plt`),
/// and removes the [numbered](NUMBERED) ones. Knows the names of C++, Rust and OCaml.
pub fn demangle(raw: &str) -> Option<String> {
    if raw.len() > MOST_IN {
        return None;
    }
    let plain = without_numbers(raw);
    let (name, rest) = plain.split_at(end_of_name(&plain));
    let read = match name.starts_with(['_', 'R']) {
        true if looks_rust(name) => rust(name).or_else(|| cpp(name, cplusplus::demangle)),
        true => cpp(name, cplusplus::demangle),
        false => ocaml(name),
    };
    match read {
        Some(read) => Some(read + rest),
        None => (plain != raw).then(|| plain.into_owned()),
    }
}

/// Returns the source name of a C++ function with its parameters; `None` for other names.
pub(super) fn with_parameters(raw: &str) -> Option<String> {
    if raw.len() > MOST_IN || looks_rust(raw) {
        return None;
    }
    let plain = without_numbers(raw);
    let (name, rest) = plain.split_at(end_of_name(&plain));
    Some(cpp(name, cplusplus::with_parameters)? + rest)
}

/// Returns the name without its parameters, its symbol version, and the suffix that compilers add after a
/// dot.
pub fn without_parameters(name: &str) -> &str {
    // `operator()(int)`: the parameters are the last pair of parentheses at the outermost level.
    let end = match name.strip_suffix(" const").unwrap_or(name) {
        whole if whole.ends_with(')') => cplusplus::parameters(whole).unwrap_or(whole.len()),
        whole => whole.find(['@', '.']).filter(|at| *at > 0).unwrap_or(whole.len()),
    };
    &name[..end]
}

/// Removes the [numbered](NUMBERED) suffixes.
fn without_numbers(raw: &str) -> Cow<'_, str> {
    NUMBERED.iter().fold(Cow::Borrowed(raw), |name, mark| without_number(name, mark))
}

/// Returns the end of the name before the symbol's version, or before an offset, as in imported texts.
fn end_of_name(plain: &str) -> usize {
    plain.find('@').or_else(|| plain.rfind("+0x")).unwrap_or(plain.len())
}

/// Removes a suffix and the number after it.
fn without_number<'a>(name: Cow<'a, str>, mark: &str) -> Cow<'a, str> {
    let Some(at) = name.find(mark) else { return name };
    let behind = &name[at + mark.len()..];
    let rest = behind.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    // Some versions write the hash in decimal, others in hexadecimal. Further suffixes may follow.
    if rest.len() == behind.len() || !(rest.is_empty() || rest.starts_with('.')) || at == 0 {
        return name;
    }
    (name[..at].to_owned() + rest).into()
}

/// Reads a name of OCaml's native compiler: `caml`, the module, and the function with a number that makes it
/// unique. `__`, since OCaml 5.1 `.`, separates the parts, and `$` precedes two hexadecimal digits of a
/// character that assemblers do not accept.
fn ocaml(name: &str) -> Option<String> {
    let path = name.strip_prefix("caml").filter(|path| path.starts_with(|c: char| c.is_ascii_uppercase()))?;
    let (_, stamp) = path.rsplit_once('_')?;
    let has_stamp = !stamp.is_empty() && stamp.bytes().all(|digit| digit.is_ascii_digit());
    if !has_stamp || !(path.contains("__") || path.contains('.')) {
        return None;
    }
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let hex = |digits: &str| u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii_graphic);
        let escaped = rest.strip_prefix('$').and_then(|rest| hex(rest.get(..2)?));
        let (character, len) = match escaped {
            Some(character) => (char::from(character), 3),
            None if rest.starts_with("__") && !out.is_empty() => ('.', 2),
            None => (first, first.len_utf8()),
        };
        out.push(character);
        rest = &rest[len..];
    }
    Some(out)
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

fn cpp(name: &str, read: fn(&str) -> Option<String>) -> Option<String> {
    // The name of a clone consists of the function's name, a dot and a suffix. Mangled names contain no dots.
    let (base, clone) = name.split_at(name.find('.').unwrap_or(name.len()));
    Some(read(base)? + clone)
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
            ("_RNvCskwGfYPst2Cb_3foo16example_function+0x1b", Some("foo::example_function+0x1b")),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE+0x3", Some("core::fmt::Formatter::pad+0x3")),
            ("main+0x12", None),
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
            ("helper.__uniq.51951270407735376741982696754339839967", Some("helper")),
            ("_ZL6helperi.__uniq.5195127040773537674.llvm.8022", Some("helper")),
            ("_ZL6helperi.__uniq.5195127040773537674.cold", Some("helper.cold")),
            ("odd.__uniq.x", None),
            ("camlShop__fib_81", Some("Shop.fib_81")),
            ("camlStdlib__List__map_1_264", Some("Stdlib.List.map_1_264")),
            ("camlShop__$2b$2b_83", Some("Shop.++_83")),
            ("camlShop.fib_81", Some("Shop.fib_81")),
            (
                "camlDune__exe__Main__anon_fn$5bmain$2eml$3a3$5d_90",
                Some("Dune.exe.Main.anon_fn[main.ml:3]_90"),
            ),
            ("camlShop__entry", None),
            ("caml_alloc_small_dispatch", None),
            ("camlShop__$zz_3", Some("Shop.$zz_3")),
            ("_start", None),
            ("_Z", None),
            ("__libc_start_main", None),
        ];
        for (raw, want) in cases {
            assert_eq!(demangle(raw).as_deref(), want, "{raw}");
        }
    }

    #[test]
    fn parameters_are_stripped_from_names() {
        assert_eq!(without_parameters("shop::Fast::serve(int) const"), "shop::Fast::serve");
        assert_eq!(without_parameters("f(int (*)(char))"), "f");
        assert_eq!(without_parameters("A::operator()(int)"), "A::operator()");
        assert_eq!(without_parameters("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(without_parameters("work.constprop.0"), "work");
        assert_eq!(without_parameters("main"), "main");
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
