//! The prose and the names: a word list for sentences to rewrite, and one name for one type.
//!
//! Both are ratchets. The tables state what is left; no change may raise a number.

use std::collections::BTreeMap;
use std::path::Path;

use regex_lite::Regex;

use super::links::pages;
use super::sources::{files, root, sources};

/// Words and phrases that usually mark a sentence which an engineer would not say. Rewrite the sentence; do
/// not swap the word.
const HINTS: &[&str] = &[
    "nobody",
    "somebody",
    "whoever",
    "whatever",
    "what is",
    "what was",
    "who is",
    "whom",
    "so many",
    "so long",
    "so large",
    "is none",
    "are none",
    "stands",
    "stand",
    "heed",
    "is said",
    "are told",
    "says of itself",
    "goes by",
    "comes to",
    "of its own",
    "by itself",
    "beside",
    "alone",
    "as it is",
    "at once",
    "in the end",
    "for ever",
    "on line",
    "the maker",
    "moment",
    "mended",
    "stumble",
    "riddle",
];

/// Hint words left in each floor, in all tests, and in the documentation.
const LEFT: &[(&str, usize)] = &[
    ("docs", 5),
    ("analysis", 4),
    ("cli", 5),
    ("command", 12),
    ("counter", 26),
    ("error", 2),
    ("event", 7),
    ("holder", 1),
    ("host", 4),
    ("persistent", 13),
    ("profile", 11),
    ("recording", 8),
    ("session", 13),
    ("symbol", 15),
    ("sys", 10),
    ("tui", 5),
    ("view", 2),
    ("tests", 122),
];

/// Types that share a name, with the number of their definitions.
const SHARED_NAMES: &[(&str, usize)] = &[];

/// Returns the texts to check, by the folder's name.
fn texts(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources(root) {
        texts.entry(source.floor().to_owned()).or_default().push(source.text);
    }
    let mut tests = files(&root.join("tests"), "rs");
    tests.retain(|(path, _)| !path.ends_with("architecture/words.rs"));
    texts.insert("tests".into(), tests.into_iter().map(|(_, text)| text).collect());
    texts.insert("docs".into(), pages(root).into_iter().map(|(_, text)| text).collect());
    texts
}

/// Returns the pattern of the hint words.
fn hints() -> Regex {
    // The words of a phrase may be on two lines, of a comment or of a string.
    const GAP: &str = r"(?:\s|\\|//[/!]?)+";
    let words = HINTS.join("|").replace(' ', GAP);
    // `\b` does not see the start of a word after `\n` in a string.
    Regex::new(&format!(r"(?i)(?:\b|\\[nt])(?:{words})\b")).expect("a pattern")
}

fn rows(counts: impl IntoIterator<Item = (String, usize)>) -> String {
    counts.into_iter().map(|(name, count)| format!("    ({name:?}, {count}),\n")).collect()
}

#[test]
fn hint_words_do_not_increase() {
    let hints = hints();
    let counts: BTreeMap<String, usize> = texts(&root())
        .into_iter()
        .map(|(folder, texts)| (folder, texts.iter().map(|text| hints.find_iter(text).count()).sum()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let limit = |folder: &str| LEFT.iter().find(|(known, _)| *known == folder).map_or(0, |(_, limit)| *limit);
    let is_worse = counts.iter().any(|(folder, count)| *count > limit(folder));
    assert!(!is_worse, "more hint words than the table LEFT allows. The texts have:\n{}", rows(counts));
}

#[test]
fn hint_words_are_found_in_every_text() {
    let texts = [
        ("Nobody knows.", 1),
        ("/// Returns what\n    /// is left.", 1),
        ("//! what\n//! is", 1),
        ("// so\n        // many", 1),
        (
            r#""first, what \
             is left""#,
            1,
        ),
        (r#""usage\nWhat is left\n\tStands""#, 2),
        ("understand standard somewhat is", 0),
        ("what\nthis is", 0),
    ];
    for (text, count) in texts {
        assert_eq!(hints().find_iter(text).count(), count, "{text}");
    }
}

#[test]
fn type_names_are_unique() {
    // Associated types of implementations are indented and end in `=`.
    let definition =
        Regex::new(r"(?m)^\s*(?:pub(?:\([a-z :]+\))? )?(?:(?:struct|enum|trait|union) (\w+)|type (\w+)(?:<[^>]*>)? = .*)")
            .expect("a pattern");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources(&root()) {
        for found in definition.captures_iter(&source.text) {
            let name = match (found.get(1), found.get(2)) {
                (Some(name), _) => name.as_str(),
                (None, Some(name)) if !found[0].trim_start_matches('\n').starts_with(' ') => name.as_str(),
                _ => continue,
            };
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 1);
    let shared = SHARED_NAMES.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    assert!(
        counts == shared,
        "the table SHARED_NAMES as the sources have it (never raise a number):\n{}",
        rows(counts)
    );
}
