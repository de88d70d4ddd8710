//! Compares docs/perf-options.md with the page that is generated from the parser. `manual` checks the pages that
//! `pmc man` writes.
//!
//! `PMC_BLESS=1 cargo test --test counting generated` rewrites it.

mod manual;
mod options;
mod syscalls;
mod table;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use clap::{Command as Parser, CommandFactory};
use pmc::cli::Cli;

/// Returns the parser. Building it takes a second in a debug build, which checks every option against every
/// other.
fn parser() -> &'static Parser {
    static PARSER: LazyLock<Parser> = LazyLock::new(|| {
        let mut parser = Cli::command();
        parser.build();
        parser
    });
    &PARSER
}

#[test]
fn page_of_perf_options_matches_the_parser() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/perf-options.md");
    let want = options::page(parser());
    if std::env::var_os("PMC_BLESS").is_some() {
        fs::write(&path, &want).expect("the file can be written");
    }
    let got = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        got == want,
        "{} is out of date: PMC_BLESS=1 cargo test --test counting generated",
        path.display()
    );
}
