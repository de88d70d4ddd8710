//! Demangles C++ names to the spelling of `c++filt -i`.
//!
//! Takes a mangled name, whose length is limited by the caller; returns the name without the function's
//! own parameters and return type. The parser is `cpp_demangle`. This module corrects its unusual spellings
//! (`{vtable(X)}`, `(unsigned long)53`, `A<B, >`), and handles names for which it fails only on a signature
//! that pmc does not show anyway.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use pmc_text::text::{NameToken, name_tokens};

/// Maximum length of a result. Demangling fails if the result would be longer.
pub(super) const MOST_OUT: usize = 64 * 1024;
/// Maximum nesting depth. Each level takes a few hundred bytes of stack.
const MOST_DEEP: u32 = 128;

/// Casts before literals, and the suffixes that replace them.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(unsigned long)", "ul"),
    ("(unsigned long long)", "ull"),
    ("(long)", "l"),
    ("(long long)", "ll"),
];

/// The full and short names of `Ss`, `So`, `Si` and `Sd`. Before a constructor or destructor, the full name
/// is kept.
const SHORT: [(&str, &str); 4] = [
    ("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
    ("std::basic_ostream<char, std::char_traits<char> >", "std::ostream"),
    ("std::basic_istream<char, std::char_traits<char> >", "std::istream"),
    ("std::basic_iostream<char, std::char_traits<char> >", "std::iostream"),
];

/// Demangles a name; `None` if it is malformed.
pub(super) fn demangle(mangled: &str) -> Option<String> {
    let encoding = mangled.strip_prefix("_Z")?;
    if let Some((words, encoding)) = of_function(encoding) {
        return Some(words.to_owned() + &read(&format!("_Z{encoding}"), DemangleOptions::new())?);
    }
    // The parser prints only type names (`_ZTS…`) in the expected form, so parse the encoding as one of
    // these.
    let of_type = [("TV", "vtable for "), ("TT", "VTT for ")];
    if let Some((of, words)) = of_type.iter().find(|(of, _)| encoding.starts_with(of)) {
        let named = read(&format!("_ZTS{}", &encoding[of.len()..]), DemangleOptions::new())?;
        return Some((*words).to_owned() + named.strip_prefix("typeinfo name for ")?);
    }
    let mut name = read(mangled, DemangleOptions::new().no_params().no_return_type())?;
    // In a function type, a space separates the return type from the parameters.
    if encoding.starts_with("TIF") || encoding.starts_with("TSF") {
        let at = parameters(&name)?;
        if !name[..at].ends_with(' ') {
            name.insert(at, ' ');
        }
    }
    // The ref-qualifier belongs to the parameters.
    if encoding.trim_start_matches(['N', 'r', 'V', 'K']).starts_with(['R', 'O']) {
        let without = name.strip_suffix(" &&").or_else(|| name.strip_suffix(" &"));
        name.truncate(without.unwrap_or(&name).len());
    }
    Some(name)
}

/// Demangles a name with the function's parameters; `None` if it is malformed.
pub(super) fn with_parameters(mangled: &str) -> Option<String> {
    mangled.strip_prefix("_Z")?;
    read(mangled, DemangleOptions::new().no_return_type())
}

/// Finds the opening parenthesis that matches the one at the end of the text.
pub(super) fn parameters(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, letter) in text.char_indices().rev() {
        open += match letter {
            ')' => 1,
            '(' => -1,
            _ => 0,
        };
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits the encoding of a thunk or clone into its description and its target's encoding. The target is
/// shown with its parameters.
fn of_function(encoding: &str) -> Option<(&'static str, &str)> {
    match encoding.get(..2)? {
        "Th" => Some(("non-virtual thunk to ", behind_offset(&encoding[1..])?)),
        "Tv" => Some(("virtual thunk to ", behind_offset(&encoding[1..])?)),
        "Tc" => Some(("covariant return thunk to ", behind_offset(behind_offset(&encoding[2..])?)?)),
        "GT" if encoding.starts_with("GTt") => Some(("transaction clone for ", &encoding[3..])),
        "GT" => Some(("non-transaction clone for ", encoding.strip_prefix("GTn")?)),
        _ => None,
    }
}

/// Returns the text after `h NUMBER _` or `v NUMBER _ NUMBER _`.
fn behind_offset(text: &str) -> Option<&str> {
    let number = |text: &'_ str| -> Option<usize> { text.find('_').map(|at| at + 1) };
    let first = text.strip_prefix(['h', 'v'])?;
    let behind = &first[number(first)?..];
    match text.starts_with('v') {
        true => Some(&behind[number(behind)?..]),
        false => Some(behind),
    }
}

fn read(mangled: &str, options: DemangleOptions) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(MOST_DEEP);
    // A tail that the parser cannot read is a signature as encoded by an older compiler. The name before it
    // is complete.
    let (symbol, _) = BorrowedSymbol::with_tail_and_options(mangled.as_bytes(), &parse).ok()?;
    let mut out = BoundedString::default();
    symbol.structured_demangle(&mut out, &options.recursion_limit(MOST_DEEP)).ok()?;
    Some(without_abi_spelling(out.0))
}

fn without_abi_spelling(mut name: String) -> String {
    for (own, usual) in [(", >", ">"), (", )", ")")] {
        if name.contains(own) {
            name = name.replace(own, usual);
        }
    }
    for (whole, short) in SHORT {
        // The parser always shortens the first two names, and never the others.
        if name.contains(whole) || name.contains(short) {
            name = shortened(&name.replace(whole, short), whole, short);
        }
    }
    if name.contains('(') {
        space_function_types(&mut name);
    }
    let mut from = 0;
    while let Some(at) = name[from..].find('(').map(|at| from + at) {
        from = at + 1;
        let Some((cast, suffix)) = SUFFIXES.iter().find(|(cast, _)| name[at..].starts_with(cast)) else {
            continue;
        };
        let number = at + cast.len();
        let sign = usize::from(name[number..].starts_with('-'));
        let digits = name[number + sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            name.insert_str(number + sign + digits, suffix);
            name.replace_range(at..number, "");
        }
    }
    name.replace("std::nullptr_t", "decltype(nullptr)")
}

/// Inserts the space between return type and parameters in a function type that is a template argument
/// (`function<A (B)>`). The parser omits it after a class name.
fn space_function_types(name: &mut String) {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let bytes = name.as_bytes();
    for (at, token, _) in name_tokens(name) {
        match token {
            NameToken::Open('>' | ')') => open.push(at),
            NameToken::Close(closing @ ('>' | ')')) => {
                let Some(start) = open.pop() else { return };
                let is_argument = open.last().is_some_and(|at| bytes[*at] == b'<')
                    && matches!(bytes.get(at + 1), Some(b'>' | b','));
                let before = bytes[..start].last().copied().unwrap_or(b' ');
                let is_behind_name = before == b'>' || before == b'_' || before.is_ascii_alphanumeric();
                if closing == ')' && is_argument && is_behind_name {
                    found.push(start);
                }
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.into_iter().rev().for_each(|at| name.insert(at, ' '));
}

/// Restores the full class name before a constructor or destructor.
fn shortened(name: &str, whole: &str, short: &str) -> String {
    let own = short.trim_start_matches("std::");
    let mut parts = name.split(short);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let member = part.strip_prefix("::").map(|member| member.strip_prefix('~').unwrap_or(member));
        let behind = member.and_then(|member| member.trim_start_matches("basic_").strip_prefix(own));
        match behind.filter(|behind| !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')) {
            Some(behind) => {
                let tilde = if part.starts_with("::~") { "~" } else { "" };
                out.extend([whole, "::", tilde, "basic_", own, behind]);
            }
            None => out.extend([short, part]),
        }
    }
    out
}

/// A string with a maximum length.
#[derive(Default)]
pub(super) struct BoundedString(pub(super) String);

impl fmt::Write for BoundedString {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST_OUT {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_use_the_usual_spelling() {
        for (mangled, name) in [
            ("_Z1fILb1ELc65ELl5ELm53ELin1EEvv", "f<true, (char)65, 5l, 53ul, -1>"),
            ("_Z1fILxn7ELy7ELj7EEvv", "f<-7ll, 7ull, 7u>"),
            (
                "_ZSt4sqrtIiEN9__gnu_cxx11__enable_ifIXsrSt12__is_integerIT_E7__valueEdE6__typeES2_",
                "std::sqrt<int>",
            ),
            ("_ZTV1AIiE", "vtable for A<int>"),
            ("_ZTTSo", "VTT for std::ostream"),
            ("_ZThn16_N1AD0Ev", "non-virtual thunk to A::~A()"),
            (
                "_ZTv0_n24_NSoD1Ev",
                "virtual thunk to std::basic_ostream<char, std::char_traits<char> >::~basic_ostream()",
            ),
            ("_ZTch0_h8_N1A1fEi", "covariant return thunk to A::f(int)"),
            ("_ZGTtN1AC1EPKc", "transaction clone for A::A(char const*)"),
            ("_Z1gI1AIJEEEvv", "g<A<> >"),
            ("_Z1gI1AIiJEEJEEvv", "g<A<int>>"),
            ("_ZNKR1A3strEv", "A::str"),
            ("_ZNR1AanEv", "A::operator&"),
            ("_ZNR1AaaEv", "A::operator&&"),
            (
                "_ZNSsC1Ev",
                "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string",
            ),
            ("_ZNKSs4sizeEv", "std::string::size"),
            ("_ZNSirsERb", "std::istream::operator>>"),
            ("_Z1hIDnEvT_", "h<decltype(nullptr)>"),
            ("_ZTIF1ARiE", "typeinfo for A (int&)"),
            ("_Z1kISt8functionIF1AiEEEvv", "k<std::function<A (int)> >"),
            ("_ZNSt8functionIF1AIiEiEEaSERKS3_", "std::function<A<int> (int)>::operator="),
            ("_ZZ1fiE1x", "f(int)::x"),
        ] {
            assert_eq!(demangle(mangled).as_deref(), Some(name), "{mangled}");
        }
        for none in ["_Z", "_ZTh", "_ZTv0_", "_ZTc", "_ZGTt", "_ZGT", "_ZTV", "_Zé", "main"] {
            assert_eq!(demangle(none), None, "{none}");
        }
    }
}
