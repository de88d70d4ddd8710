//! The prose and the names: a word list for sentences to rewrite, and one name for one type.
//!
//! Both are ratchets. The tables state what is left; a change may lower the numbers and must then lower them
//! here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

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

/// Hint words left in each folder: of `src`, in all tests, and in the documentation.
const LEFT: &[(&str, usize)] = &[
    ("docs", 16),
    ("src/analysis", 5),
    ("src/cli", 23),
    ("src/command", 21),
    ("src/counter", 33),
    ("src/error", 3),
    ("src/event", 15),
    ("src/holder", 3),
    ("src/host", 8),
    ("src/perfdata", 1),
    ("src/persistent", 15),
    ("src/profile", 17),
    ("src/recording", 15),
    ("src/session", 20),
    ("src/symbol", 19),
    ("src/sys", 11),
    ("src/tui", 5),
    ("src/unwind", 3),
    ("src/view", 4),
    ("tests", 143),
];

/// Types that share a name, with the number of their definitions.
const SHARED_NAMES: &[(&str, usize)] = &[];

/// Returns the files below `folder` with this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == extension) {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the texts to check, by the folder's name.
fn texts(root: &Path) -> BTreeMap<String, Vec<String>> {
    let read = |path: PathBuf| fs::read_to_string(path).expect("a text");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(&root.join("src"), "rs") {
        let below = path.strip_prefix(root.join("src")).expect("a source");
        let folder = below.components().next().expect("a name").as_os_str().to_string_lossy();
        texts.entry(format!("src/{folder}")).or_default().push(read(path.clone()));
    }
    let is_other = |path: &PathBuf| !path.ends_with("architecture/words.rs");
    texts.insert(
        "tests".into(),
        files(&root.join("tests"), "rs").into_iter().filter(is_other).map(read).collect(),
    );
    let mut docs: Vec<String> = files(&root.join("docs"), "md").into_iter().map(read).collect();
    docs.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| read(root.join(name))));
    texts.insert("docs".into(), docs);
    texts
}

fn rows(counts: impl IntoIterator<Item = (String, usize)>) -> String {
    counts.into_iter().map(|(name, count)| format!("    ({name:?}, {count}),\n")).collect()
}

#[test]
fn hint_words_become_fewer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let hints = Regex::new(&format!(r"(?i)\b({})\b", HINTS.join("|"))).expect("a pattern");
    let counts: BTreeMap<String, usize> = texts(root)
        .into_iter()
        .map(|(folder, texts)| (folder, texts.iter().map(|text| hints.find_iter(text).count()).sum()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let left = LEFT.iter().map(|(folder, count)| ((*folder).to_owned(), *count)).collect();
    assert!(counts == left, "the table LEFT as the texts have it (never raise a number):\n{}", rows(counts));
}

#[test]
fn one_name_is_one_type() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Associated types of implementations are indented and end in `=`.
    let definition =
        Regex::new(r"(?m)^\s*(?:pub(?:\([a-z :]+\))? )?(?:(?:struct|enum|trait|union) (\w+)|type (\w+)(?:<[^>]*>)? = .*)")
            .expect("a pattern");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(&root.join("src"), "rs") {
        let text = fs::read_to_string(path).expect("a source");
        for found in definition.captures_iter(&text) {
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
