//! Scans and shortens the names of functions, and suggests corrections for mistyped names.

/// Operators that contain bracket characters, the longest first.
const OPERATORS: [&str; 14] =
    ["->*", "<=>", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "<", ">", "\"\""];

/// The role of a token in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameToken {
    /// An opening bracket, with the bracket that closes it.
    Open(char),
    /// A closing bracket.
    Close(char),
    /// A character, `::`, or an operator.
    Text,
}

/// Splits a name in any language into tokens, each with its offset and text. Angle brackets in C++ operators
/// and arrows do not count as brackets.
pub fn name_tokens(name: &str) -> impl Iterator<Item = (usize, NameToken, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (before, rest) = name.split_at(at);
        let c = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_operator = before.strip_suffix("operator").is_some_and(|before| !before.ends_with(is_word));
        let whole = |known: &&&str| rest.starts_with(**known);
        let operator = is_operator.then(|| OPERATORS.iter().find(whole)).flatten();
        let (token, length) = match (operator, c) {
            (Some(operator), _) => (NameToken::Text, operator.len()),
            (_, '<') => (NameToken::Open('>'), 1),
            (_, '(') => (NameToken::Open(')'), 1),
            (_, '[') => (NameToken::Open(']'), 1),
            (_, '{') => (NameToken::Open('}'), 1),
            (_, '>') if before.ends_with(['-', '=']) => (NameToken::Text, 1),
            (_, '>' | ')' | ']' | '}') => (NameToken::Close(c), 1),
            _ if rest.starts_with("::") => (NameToken::Text, 2),
            _ => (NameToken::Text, c.len_utf8()),
        };
        at += length;
        Some((at - length, token, &rest[..length]))
    })
}

/// Replaces the template or type arguments in a part of a name with `<…>`, since names of nested containers
/// can fill several screens and differ only in details. Brackets must be balanced.
///
/// Keeps angle brackets without a name before them (`<T as Trait>::call`).
pub(super) fn folded(part: &str) -> String {
    let mut out = String::new();
    // Depth within the omitted brackets.
    let mut deep = 0usize;
    for (_, token, text) in name_tokens(part) {
        match token {
            NameToken::Open('>') if deep > 0 => deep += 1,
            NameToken::Open('>')
                if out.ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | ':')) =>
            {
                out.push_str("<…>");
                deep = 1;
            }
            NameToken::Close('>') if deep > 0 => deep -= 1,
            _ if deep == 0 => out.push_str(text),
            _ => {}
        }
    }
    out
}

/// Returns up to `most` names nearest to `wanted`, best first, for "did you mean".
///
/// Ignores case. A candidate that contains or extends the word also counts as near. Returns nothing if the
/// word is unlikely to be a typo of any candidate.
pub fn nearest<'a, I>(wanted: &str, candidates: I, most: usize) -> Vec<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    let wanted = wanted.to_lowercase();
    let length = wanted.chars().count();
    let allowed = 1 + length / 4;
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            // Each typo changes the length by at most one character.
            let may_be_near = lower.chars().count().abs_diff(length) <= allowed;
            let slips = may_be_near.then(|| strsim::damerau_levenshtein(&wanted, &lower));
            if let Some(slips) = slips.filter(|slips| *slips <= allowed) {
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
    fn arguments_are_folded() {
        for (part, shown) in [
            ("std::map<std::string, std::vector<int> >::find(long const&)", "std::map<…>::find(long const&)"),
            (
                "<alloc::vec::Vec<u8, A> as core::fmt::Write>::write",
                "<alloc::vec::Vec<…> as core::fmt::Write>::write",
            ),
            ("core::iter::Map::<I, F>::fold::{closure#0}", "core::iter::Map::<…>::fold::{closure#0}"),
            ("bool operator< <char>(Text<char> const&)", "bool operator< <char>(Text<…> const&)"),
            ("Pointer<Thing>::operator->() const", "Pointer<…>::operator->() const"),
            ("Stream& operator<<(Stream&, Pair<A, B> const&)", "Stream& operator<<(Stream&, Pair<…> const&)"),
            ("auto f<A>() -> Option<B<C> >", "auto f<…>() -> Option<…>"),
        ] {
            assert_eq!(folded(part), shown);
        }
    }

    #[test]
    fn typos_are_recognized() {
        assert_eq!(nearest("cycels", ["cycles", "instructions", "cache-misses"], 3), ["cycles"]);
        assert!(nearest("zzzzzz", ["cycles"], 3).is_empty());
    }
}
