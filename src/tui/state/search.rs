//! What is searched for: a regular expression while it is being typed, and the same as plain text where it is
//! none.

use regex_lite::{Regex, RegexBuilder};

/// A search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// What was typed.
    pub text: String,
    regex: Option<Regex>,
    /// It is no regular expression (yet), so it is looked for as it stands.
    pub is_plain: bool,
}

/// Memory of a compiled expression: `a{999}{999}` is refused, and taken as text.
const LARGEST: usize = 1 << 20;

impl Search {
    /// Without a capital letter, case does not matter.
    pub fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        let any_case = !text.chars().any(char::is_uppercase);
        let build = |pattern: &str| {
            RegexBuilder::new(pattern).case_insensitive(any_case).size_limit(LARGEST).build().ok()
        };
        let regex = build(text);
        let is_plain = regex.is_none();
        Self { text: text.to_owned(), regex: regex.or_else(|| build(&regex_lite::escape(text))), is_plain }
    }

    /// Whether anything is searched for.
    pub fn is_some(&self) -> bool {
        self.regex.is_some()
    }

    /// Whether it is in a text. Without anything to search for nothing matches.
    pub fn finds(&self, text: &str) -> bool {
        self.regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Where it is in a text, by byte; empty matches are none.
    pub fn places(&self, text: &str) -> Vec<(usize, usize)> {
        let Some(regex) = &self.regex else { return Vec::new() };
        regex
            .find_iter(text)
            .map(|found| (found.start(), found.end()))
            .filter(|(from, to)| from < to)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_matters_with_a_capital_letter_only() {
        assert!(Search::new("mal+oc").finds("MALLOC"));
        assert!(!Search::new("Malloc").finds("malloc"));
        assert_eq!(Search::new("o.").places("foobox"), [(1, 3), (4, 6)]);
        assert!(!Search::new("").is_some() && !Search::new("").finds("x"));
    }

    #[test]
    fn half_an_expression_is_text() {
        let search = Search::new("operator(");
        assert!(search.is_plain && search.finds("operator()(int)") && !search.finds("operator"));
        assert!(Search::new("a{999}{999}{999}").is_plain);
    }
}
