//! Searches for a regular expression. Text that is not a valid regular expression is searched for literally.

use regex_lite::{Regex, RegexBuilder};

/// A search.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The typed text.
    pub text: String,
    regex: Option<Regex>,
    /// Whether the text is searched for literally, because it is not (yet) a valid regular expression.
    pub is_plain: bool,
}

/// Maximum size of a compiled expression in bytes. Larger ones such as `a{999}{999}` are searched for
/// literally.
const LARGEST: usize = 1 << 20;

impl Search {
    /// Creates a search. It ignores case if the text has no capital letters.
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

    /// Whether the search is not empty.
    pub fn is_some(&self) -> bool {
        self.regex.is_some()
    }

    /// Whether `text` matches. An empty search matches nothing.
    pub fn finds(&self, text: &str) -> bool {
        self.regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Returns the byte ranges of all non-empty matches in `text`.
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
    fn search_is_case_sensitive_only_with_capitals() {
        assert!(Search::new("mal+oc").finds("MALLOC"));
        assert!(!Search::new("Malloc").finds("malloc"));
        assert_eq!(Search::new("o.").places("foobox"), [(1, 3), (4, 6)]);
        assert!(!Search::new("").is_some() && !Search::new("").finds("x"));
    }

    #[test]
    fn incomplete_regex_matches_as_text() {
        let search = Search::new("operator(");
        assert!(search.is_plain && search.finds("operator()(int)") && !search.finds("operator"));
        assert!(Search::new("a{999}{999}{999}").is_plain);
    }
}
