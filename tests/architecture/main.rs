//! What Cargo, rustc and clippy cannot check in the sources and the documentation.
//!
//! They check most rules: a crate names only the crates in its manifest, `unsafe` is forbidden outside
//! `pmc-sys`, printing and exiting are lints, and `clippy.toml` keeps `pmc-text` and `pmc-view` free of effects.
//! `modules` adds the rules about modules. `loops` checks test programs, `dependencies` the external crates,
//! and `heritage`, `links` and `examples` the documentation. `outside` uses the libraries in another program.

mod dependencies;
mod examples;
mod heritage;
#[path = "../kit/unit.rs"]
mod kit;
mod links;
mod loops;
mod modules;
mod outside;
mod sources;

/// Tests wait with the functions of the kit: no other test file may sleep.
#[test]
fn only_the_test_kit_sleeps() {
    const SLEEP: &str = concat!("thread::", "sleep");
    let mut sleepers = sources::files(&sources::root().join("tests"), "rs");
    sleepers.retain(|(path, text)| !path.starts_with("kit") && text.contains(SLEEP));
    let sleepers: Vec<_> = sleepers.into_iter().map(|(path, _)| path).collect();
    assert!(sleepers.is_empty(), "these sleep by themselves: {sleepers:?}");
}

/// Output files are opened by `pmc_sys::sys::output_file` and `replacement`, which know what another user may
/// have put at a path. A new file (`create_new`) is safe anywhere.
#[test]
fn outputs_are_opened_in_one_place() {
    const FOLLOWING: [&str; 4] = [" File::create(", "(File::create(", "fs::write(", ".create(true)"];
    let opens = |source: &sources::SourceFile| {
        let code = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        FOLLOWING.iter().any(|call| code.contains(call))
    };
    let sources = sources::sources(&sources::root());
    let openers: Vec<_> = sources.iter().filter(|source| opens(source)).map(|source| &source.path).collect();
    assert!(openers.is_empty(), "these follow links of other users: {openers:?}");
}
