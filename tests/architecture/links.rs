//! Checks the links and file names in the documentation: README.md, CONTRIBUTING.md, CHANGELOG.md, `docs/*.md`
//! and the READMEs of the libraries.
//!
//! A link leads to a file of this repository, and its `#anchor` to a heading of that file. A name in
//! backquotes that looks like a path of this repository exists: relative to the root, to a crate's
//! `src` or to the page, where `view/table.rs` may stand for `crates/pmc-view/src/table.rs`. The name of a source
//! file without a folder exists somewhere in the sources.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use regex_lite::Regex;

use super::sources::{SourceFile, files, root, source_folders, sources};

/// Beginnings of paths in other folders: build results, and the run directory of persistent events.
const ELSEWHERE: &[&str] = &["target/", "persistent/1/", "persistent/execs/"];

/// Returns the documentation: the path from the root, and the text.
pub(super) fn pages(root: &Path) -> Vec<(PathBuf, String)> {
    let mut pages = Vec::new();
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/llms.txt"] {
        pages.push((PathBuf::from(name), fs::read_to_string(root.join(name)).expect("a text")));
    }
    let docs = files(&root.join("docs"), "md").into_iter();
    pages.extend(docs.map(|(path, text)| (Path::new("docs").join(path), text)));
    let crates = files(&root.join("crates"), "md").into_iter();
    pages.extend(crates.map(|(path, text)| (Path::new("crates").join(path), text)));
    pages
}

/// Returns the lines of a page that are not code, with their numbers.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    let lines = page.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence && !line.starts_with("    ")
    })
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let name: String = title.trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        // The second heading of the same name has the number 1.
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let mut candidates = std::iter::once(name.clone()).chain(repeated);
        anchors.extend(candidates.find(|candidate| !anchors.contains(candidate)));
    }
    anchors
}

/// Returns the problem of a link from a page, if it has one.
fn link_fault(root: &Path, page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { root.join(page) } else { root.join(page).parent()?.join(file) };
    if !target.exists() {
        return Some(format!("the link {link} leads to no file"));
    }
    if !anchor.is_empty() {
        let text = fs::read_to_string(&target).unwrap_or_default();
        if !anchors(&text).iter().any(|name| name == anchor) {
            return Some(format!("the link {link} leads to no heading"));
        }
    }
    None
}

/// Whether a name in backquotes is a path of this repository, rather than a path of the system, an event or
/// a pattern.
fn is_path(root: &Path, name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    // Placeholders: `cli/COMMAND.rs`.
    let has_placeholder =
        name.split(['/', '.']).any(|part| part.len() > 3 && part.chars().all(|c| c.is_ascii_uppercase()));
    let is_elsewhere = ELSEWHERE.iter().any(|beginning| name.starts_with(beginning));
    if !name.chars().all(is_plain) || has_placeholder || is_elsewhere {
        return false;
    }
    let Some((folder, _)) = name.split_once('/') else { return name.ends_with(".rs") };
    let has_folder = root.join(folder).is_dir()
        || source_folders(root).iter().any(|sources| root.join(sources).join(folder).is_dir());
    name.ends_with(".rs") || (has_folder && !folder.is_empty())
}

/// Returns the names of all source files, without their folders.
fn source_names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let names =
            sources(&root()).into_iter().filter_map(|source| source.path.file_name().map(OsStr::to_owned));
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    })
}

/// Whether a path from the root, from a crate's `src` or from the page's folder exists. A source file's name
/// without a folder may be anywhere in the sources.
fn exists(root: &Path, page: &Path, name: &str) -> bool {
    let folder = page.parent().expect("a page has a folder");
    let mut places = source_folders(root);
    places.extend([PathBuf::new(), folder.to_owned()]);
    let in_crate = name.split_once('/').map(|(name, path)| format!("crates/pmc-{name}/src/{path}"));
    places.iter().any(|place| root.join(place).join(name).exists())
        || in_crate.is_some_and(|path| root.join(path).exists())
        || (!name.contains('/') && source_names().contains(name))
}

/// Returns the faults of one page.
fn faults(root: &Path, page: &Path, text: &str) -> Vec<String> {
    let links = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let names = Regex::new("`([^`]+)`").expect("a pattern");
    let mut faults = Vec::new();
    for (number, line) in prose(text) {
        let mut wrong = |what: String| faults.push(format!("{}:{number}: {what}", page.display()));
        // A link in backquotes is an example.
        let without_code = names.replace_all(line, "``");
        for link in links.captures_iter(&without_code) {
            link_fault(root, page, &link[1]).map(&mut wrong);
        }
        for name in names.captures_iter(line) {
            if is_path(root, &name[1]) && !exists(root, page, &name[1]) {
                wrong(format!("there is no file {}", &name[1]));
            }
        }
    }
    faults
}

#[test]
fn links_and_file_names_in_the_documentation_exist() {
    let root = root();
    let faults: Vec<String> =
        pages(&root).iter().flat_map(|(page, text)| faults(&root, page, text)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Agents start at `docs/llms.txt`, and cannot list the folder.
#[test]
fn list_for_agents_names_every_page() {
    let list = fs::read_to_string(root().join("docs/llms.txt")).expect("a text");
    let pages = files(&root().join("docs"), "md").into_iter().map(|(path, _)| path.display().to_string());
    let missing: Vec<String> = pages.filter(|page| !list.contains(&format!("]({page})"))).collect();
    assert!(missing.is_empty(), "docs/llms.txt does not name {missing:?}");
}

/// Returns the files that a text names in backquotes, in its order.
fn named_files(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs")).collect()
}

/// A contributor follows the path from a file to a row by hand.
#[test]
fn path_from_a_file_to_a_row_is_short() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("a text");
    let path = page.split("**From a file to a row**").nth(1).expect("the path");
    let files = named_files(path.split("\n\n").next().expect("a paragraph"));
    assert!((10..=25).contains(&files.len()), "{} files", files.len());
    let folders: Vec<&str> = files.iter().filter_map(|file| Some(file.rsplit_once('/')?.0)).collect();
    let entered: Vec<&&str> = folders.chunk_by(|a, b| a == b).map(|files| &files[0]).collect();
    for folder in &entered {
        let times = entered.iter().filter(|other| other == &folder).count();
        assert!(times < 3, "{folder} is entered {times} times");
    }
}

/// A row of "I want to add" names tables and functions, which are in one of the files of the row.
#[test]
fn names_in_the_rows_of_additions_exist() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("a text");
    let rows = page.split("\n## I want to add").nth(1).expect("the table");
    let is_name = |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let all = sources(&root());
    let mut missing = Vec::new();
    for row in rows.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let (_, places) = row.trim_start_matches("| ").split_once(" | ").expect("two columns");
        let words: Vec<&str> = places.split('`').skip(1).step_by(2).collect();
        let is_of_row = |source: &&SourceFile| {
            let path = Path::new("").join(&source.folder).join(&source.path).display().to_string();
            let short = path.replace("crates/pmc-", "").replace("/src/", "/");
            let folder = |word: &str| word.ends_with('/') && short.contains(word.trim_end_matches('/'));
            words.iter().any(|word| path.ends_with(word) || short.ends_with(word) || folder(word))
        };
        let texts: Vec<&SourceFile> = all.iter().filter(is_of_row).collect();
        let is_there = |word: &&&str| texts.iter().any(|source| source.text.contains(&***word));
        let names = words.iter().filter(|word| is_name(word) && !word.starts_with("pmc"));
        missing.extend(names.filter(|word| !is_there(word)).map(|word| format!("{word}: {row}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn broken_links_and_file_names_are_found() {
    let root = root();
    let page = Path::new("docs/install.md");
    let fault = |text: &str| faults(&root, page, text);
    for good in [
        "[a](record.md) [b](../README.md#licence) [c](#here)\n## Here\n",
        "[a](https://example.org/x.md) `/usr/lib/none.rs.d` `irq/none` `L1-dcache` `cli/COMMAND.rs`",
        "    [code](none.md)\n```\n[code](none.md)\n```\n`[code](none.md)`",
        "`src/main.rs` `counter/open.rs` `recorder.rs` `tests/pmu` `event/vendor/tables/`",
    ] {
        let text = good.replace("(#here)", "(install.md#permissions)");
        assert_eq!(fault(&text), Vec::<String>::new());
    }
    for bad in [
        "[a](none.md)",
        "[a](record.md#none)",
        "[a](#none)",
        "[a\nb](none.md)",
        "`src/none.rs`",
        "`counter/none.rs`",
        "`none.rs`",
        "`tests/none`",
    ] {
        assert_eq!(fault(bad).len(), 1, "{bad}: {:?}", fault(bad));
    }
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# pmc\n## What's `--vs`: comparing, now?\n#no heading\n## A\n## A\n    # code\n";
    assert_eq!(anchors(page), ["pmc", "whats---vs-comparing-now", "a", "a-1"]);
}
