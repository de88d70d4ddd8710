//! Shortens long names, and suggests corrections for mistyped names.

use std::borrow::Cow;

use super::width;
use crate::sort;

/// Replaces the template or type arguments of a function's name with `<…>` if the name is wider than `most`
/// columns. The names of nested containers can fill several screens and differ only in details.
///
/// Keeps angle brackets without a name before them (`<T as Trait>::call`), and operators.
pub(super) fn folded(name: &str, most: usize) -> Cow<'_, str> {
    if name.len() <= most || !name.contains('<') || width(name) <= most {
        return Cow::Borrowed(name);
    }
    let mut out = String::new();
    // Depth within the omitted brackets, and the number of open brackets that are kept.
    let (mut deep, mut kept) = (0usize, 0usize);
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let after_operator = name[..name.len() - rest.len()].ends_with("operator");
        let token = ["->", "<=>", "<<=", ">>=", "<<", "<=", ">=", "<", ">>"]
            .into_iter()
            .find(|token| rest.starts_with(token));
        let whole = match token {
            Some("->") => "->",
            Some(token) if after_operator => token,
            _ if after_operator && c == '>' => ">",
            _ => "",
        };
        if !whole.is_empty() {
            if deep == 0 {
                out.push_str(whole);
            }
            rest = &rest[whole.len()..];
            continue;
        }
        match c {
            '<' if deep > 0 => deep += 1,
            '<' if out.ends_with(|before: char| before.is_alphanumeric() || matches!(before, '_' | ':')) => {
                out.push_str("<…>");
                deep = 1;
            }
            '<' => {
                out.push(c);
                kept += 1;
            }
            '>' if deep > 0 => deep -= 1,
            '>' => {
                out.push(c);
                kept = kept.saturating_sub(1);
            }
            _ if deep == 0 => out.push(c),
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    // Unbalanced brackets are not arguments, so keep the whole name.
    if deep > 0 || kept > 0 { Cow::Borrowed(name) } else { Cow::Owned(out) }
}

/// Returns up to `most` names nearest to `wanted`, best first, for "did you mean".
///
/// Ignores case. A candidate that contains or extends the word also counts as near. Returns nothing if
/// no candidate is close enough to be a typo.
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
    sort::by(&mut scored, |a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_dropped_from_long_names_only() {
        assert_eq!(folded("std::vector<int>::push_back", 40), "std::vector<int>::push_back");
        let fold = |name: &'static str| folded(name, 8).into_owned();
        assert_eq!(
            fold("std::map<std::string, std::vector<int> >::find(long const&)"),
            "std::map<…>::find(long const&)"
        );
        assert_eq!(
            fold("<alloc::vec::Vec<u8, A> as core::fmt::Write>::write"),
            "<alloc::vec::Vec<…> as core::fmt::Write>::write"
        );
        assert_eq!(
            fold("core::iter::Map::<I, F>::fold::{closure#0}"),
            "core::iter::Map::<…>::fold::{closure#0}"
        );
        assert_eq!(fold("bool operator< <char>(Text<char> const&)"), "bool operator< <char>(Text<…> const&)");
        assert_eq!(fold("Pointer<Thing>::operator->() const"), "Pointer<…>::operator->() const");
        assert_eq!(
            fold("Stream& operator<<(Stream&, Pair<A, B> const&)"),
            "Stream& operator<<(Stream&, Pair<…> const&)"
        );
        assert_eq!(fold("auto f<A>() -> Option<B<C> >"), "auto f<…>() -> Option<…>");
        assert_eq!(fold("torn<by<a compiler"), "torn<by<a compiler");
    }

    #[test]
    fn typos_are_recognized() {
        assert_eq!(nearest("cycels", ["cycles", "instructions", "cache-misses"], 3), ["cycles"]);
        assert!(nearest("zzzzzz", ["cycles"], 3).is_empty());
    }
}
