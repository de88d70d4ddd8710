//! The rules of the house, read from the sources: wings and floors, no circles, one address for `unsafe`, one mouth.
//!
//! `sources` reads the code with `syn`, `resolve` finds what each path stands for, `rules` judges; here stand the tables
//! of who may name whom. They hold exactly what is in use: whoever needs an edge draws it here, whoever takes the last use
//! of one away strikes it out. `planted` shows each rule being broken, and each way around them that we thought of.
//! An offence is printed as `file:line: what is wrong`.

mod planted;
mod resolve;
mod rules;
mod sources;

use std::path::Path;

use rules::Tables;
use sources::Tree;

const FLOORS: &[(&str, &[&str])] = &[];
const OUTSIDE: &[(&str, &[&str])] = &[
    ("std::fs", &[]),
    ("std::process", &[]),
    ("std::net", &[]),
    ("std::env", &[]),
    ("std::thread", &[]),
    ("std::io::stdin", &[]),
    ("std::io::stdout", &[]),
    ("std::io::stderr", &[]),
];
const HANDED_OUT: &[(&str, &str)] = &[("sys", "libc")];
const SHARED_BY_COMMANDS: &[&str] = &[];

const TABLES: Tables =
    Tables { floors: FLOORS, outside: OUTSIDE, handed_out: HANDED_OUT, shared_by_commands: SHARED_BY_COMMANDS };

/// The package's own sources.
fn package() -> Tree {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Tree::of_package(Path::new(&root))
}

#[test]
fn the_sources_keep_the_rules() {
    let tree = package();
    assert!(tree.files.len() > 10, "only {} sources found", tree.files.len());
    let offences = rules::offences(&tree, &TABLES);
    let lines: Vec<String> = offences.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} lines break a rule:\n{}\n\nThe tables as the sources have them:\n{}",
        lines.len(),
        lines.join("\n"),
        rules::tables_in_use(&tree, &TABLES)
    );
}
