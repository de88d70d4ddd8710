//! The external crates: their sources, licences and versions, where C code comes in, and the reasons to trust
//! them (`docs/dependencies.md`).
//!
//! Asks `cargo tree`, which resolves the features that pmc uses. The tables match the tree exactly, so that
//! each new case is a decision, and each old one leaves. Advisories are not checked here: their database is
//! on the network (see `docs/dependencies.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::sources::root;

/// Licences that ask for nothing but a notice. Most crates offer one of these.
const LICENCES: &[&str] = &["MIT", "Apache-2.0"];

/// Crates in the program that are under another licence, with the reason to accept it.
const OTHER_LICENCES: &[(&str, &str, &str)] = &[
    ("foldhash", "Zlib", "asks for less than MIT"),
    ("inferno", "CDDL-1.0", "covers only inferno's own files, which are unchanged and public"),
    ("unicode-ident", "(MIT OR Apache-2.0) AND Unicode-3.0", "tables of Unicode; used by macros only"),
    ("zlib-rs", "Zlib", "asks for less than MIT"),
    ("zstd", "BSD-3-Clause", "asks for a notice"),
    ("zstd-safe", "BSD-3-Clause", "asks for a notice"),
    ("zstd-sys", "BSD-3-Clause", "asks for a notice"),
];

/// Crates that the program contains or runs in its build in several versions, with the reason.
const SEVERAL_VERSIONS: &[(&str, &str)] =
    &[("gimli", "framehop 0.16 uses 0.33"), ("syn", "macros run in the build only; clap's use syn 3")];

/// Crates that compile C code.
const C_CODE: &[&str] = &["capstone-sys", "zstd-sys"];

/// A line of `cargo tree`.
#[derive(Debug, PartialEq)]
struct TreeLine {
    depth: usize,
    name: String,
    version: String,
    /// Folder or repository. `None` for crates.io.
    origin: Option<String>,
    licence: String,
}

impl TreeLine {
    /// Parses `2|clap_derive v4.6.7 (proc-macro)|MIT`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, '|');
        let depth = fields.next()?.parse().ok()?;
        let mut package = fields.next()?.split(' ');
        let licence = fields.next()?.to_owned();
        let name = package.next()?.to_owned();
        let version = package.next()?.strip_prefix('v')?.to_owned();
        let origin = package.find(|word| *word != "(proc-macro)");
        let origin = origin.map(|word| word.trim_matches(['(', ')']).to_owned());
        Some(Self { depth, name, version, origin, licence })
    }
}

/// Returns the tree of the packages that these kinds of dependencies (`normal`, `build`, `dev`) lead to.
fn tree(kinds: &str) -> Vec<TreeLine> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["tree", "--offline", "--locked", "--color=never", "--workspace", "--no-dedupe"];
    let out = Command::new(cargo)
        .args(arguments)
        .args(["--prefix=depth", "--format=|{p}|{l}", "--edges", kinds])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("a text");
    let parse = |line| TreeLine::parse(line).unwrap_or_else(|| panic!("cargo tree prints {line:?}"));
    text.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

/// Whether the licence offers one of [`LICENCES`].
fn is_usual(licence: &str) -> bool {
    let mut offers = licence.split('/').flat_map(|part| part.split(" OR ")).map(str::trim);
    !licence.contains("AND") && offers.any(|offer| LICENCES.contains(&offer))
}

/// Returns the crates with an unusual licence.
fn other_licences(tree: &[TreeLine]) -> BTreeSet<(&str, &str)> {
    let others = tree.iter().filter(|line| !is_usual(&line.licence));
    others.map(|line| (line.name.as_str(), line.licence.as_str())).collect()
}

/// Returns the names of crates with several versions.
fn several_versions(tree: &[TreeLine]) -> BTreeSet<&str> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree {
        versions.entry(&line.name).or_default().insert(&line.version);
    }
    versions.into_iter().filter(|(_, versions)| versions.len() > 1).map(|(name, _)| name).collect()
}

/// Returns the crates that depend directly on the crate of this name.
fn dependents<'a>(tree: &'a [TreeLine], name: &str) -> BTreeSet<&'a str> {
    let found = tree.iter().enumerate().filter(|(_, line)| line.name == name && line.depth > 0);
    let parent = |(at, line): (usize, &TreeLine)| {
        tree[..at].iter().rev().find(|above| above.depth < line.depth).map(|above| above.name.as_str())
    };
    found.filter_map(parent).collect()
}

#[test]
fn licences_are_compatible() {
    let tree = tree("normal,build");
    assert!(tree.len() > 100, "only {} lines", tree.len());
    let listed = OTHER_LICENCES.iter().map(|(name, licence, _)| (*name, *licence)).collect();
    assert_eq!(other_licences(&tree), listed, "left: crates with another licence; right: OTHER_LICENCES");
}

#[test]
fn each_crate_is_in_the_program_once() {
    let listed = SEVERAL_VERSIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(several_versions(&tree("normal,build")), listed, "right: SEVERAL_VERSIONS");
}

#[test]
fn crates_come_from_the_registry_or_this_folder() {
    let workspace = root().canonicalize().expect("a folder");
    let from = tree("normal,build,dev").into_iter().filter_map(|line| Some((line.name, line.origin?)));
    let elsewhere: BTreeSet<_> =
        from.filter(|(_, origin)| !std::path::Path::new(origin).starts_with(&workspace)).collect();
    assert!(elsewhere.is_empty(), "these come from elsewhere: {elsewhere:?}");
}

#[test]
fn only_listed_crates_compile_c_code() {
    let tree = tree("normal,build");
    let mut compiling = dependents(&tree, "cc");
    compiling.extend(dependents(&tree, "cmake"));
    assert_eq!(compiling, C_CODE.iter().copied().collect(), "right: C_CODE");
}

#[test]
fn direct_dependencies_have_a_reason() {
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).expect("a text");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let mut listed: Vec<&str> = Vec::new();
    for (name, rest) in rows {
        let columns: Vec<&str> = rest.trim_end_matches('|').split('|').map(str::trim).collect();
        assert!(columns.iter().all(|column| !column.is_empty()), "docs/dependencies.md: {name}: {columns:?}");
        listed.push(name);
    }
    listed.sort();
    let lines = tree("normal,build,dev");
    let direct = lines.iter().filter(|line| line.depth == 1 && line.origin.is_none());
    let direct: BTreeSet<&str> = direct.map(|line| line.name.as_str()).collect();
    assert_eq!(listed, direct.into_iter().collect::<Vec<_>>(), "left: docs/dependencies.md");
}

/// The checks above find what they look for.
#[test]
fn offending_crates_are_found() {
    let text = "0|pmc v0.1.0 (/pmc)|MIT\n1|a v1.0.0|GPL-2.0-only\n2|cc v1.2.0|MIT\n1|b v1.0.0 (proc-macro)|Zlib OR MIT\n\
                2|a v2.0.0|Unlicense/MIT\n1|c v1.0.0 (https://host/c.git#12)|(MIT OR Apache-2.0) AND BSD-3-Clause";
    let tree: Vec<TreeLine> = text.lines().map(|line| TreeLine::parse(line).expect("a line")).collect();
    let others = [("a", "GPL-2.0-only"), ("c", "(MIT OR Apache-2.0) AND BSD-3-Clause")];
    assert_eq!(other_licences(&tree), others.into());
    assert_eq!(several_versions(&tree), ["a"].into());
    assert_eq!(dependents(&tree, "cc"), ["a"].into());
    assert_eq!(dependents(&tree, "a"), ["pmc", "b"].into());
    let origins: Vec<Option<&str>> = tree.iter().map(|line| line.origin.as_deref()).collect();
    assert_eq!(origins, [Some("/pmc"), None, None, None, None, Some("https://host/c.git#12")]);
}
