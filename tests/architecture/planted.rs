//! Checks that the rules can fail. Each rule is broken in a small tree of sources, directly and in every
//! indirect way we thought of. A clean tree passes.

use crate::rules::{self, Tables};
use crate::sources::{SourceFile, Tree};

/// A small architecture: two wings (`count`, `read`) on a ground (`sys`, `words`), joined by `command`.
const SMALL: Tables = Tables {
    floors: &[
        ("command", &["cli", "count", "read", "words"]),
        ("count", &["sys"]),
        ("read", &["words"]),
        ("main", &["command"]),
        ("cli", &[]),
        ("sys", &[]),
        ("words", &[]),
    ],
    outside: &[("libc", &["sys"]), ("std::fs", &["count"]), ("std::process", &["main"]), ("clap", &["cli"])],
    handed_out: &[("sys", "libc")],
    shared_by_commands: &["progress"],
    without_plan: &[],
};

/// Sources that use every edge of the small architecture and break no rule.
const CLEAN: &[(&str, &str)] = &[
    (
        "lib.rs",
        "//! L\npub mod cli;\npub mod command;\npub mod count;\npub mod sys;\npub mod read;\npub mod words;",
    ),
    ("main.rs", "//! M\nfn main() -> std::process::ExitCode { pmc::command::main(); 0.into() }"),
    ("cli.rs", "//! C\npub struct Cli { pub command: u8 }\n#[derive(clap::Parser)]\npub struct Typed;"),
    (
        "command/mod.rs",
        "//! C\nmod list;\nmod progress;\nmod stat;\nuse crate::cli::Cli;\npub fn main() { stat::run(); list::run(); }",
    ),
    (
        "command/stat/mod.rs",
        "//! S\nmod plan;\nuse crate::command::progress::Progress;\nuse crate::count::open;\npub fn run() { plan::of(); }",
    ),
    ("command/stat/plan.rs", "//! P\nuse crate::cli::Typed;\npub fn of() {}"),
    ("command/list.rs", "//! L\npub fn run() { crate::read::read(crate::words::Word); }"),
    ("command/progress.rs", "//! P\npub struct Progress;"),
    ("count/mod.rs", "//! C\nmod ring;\nuse ring::Ring;\npub fn open() { let _ = std::fs::read(\"a\"); }"),
    (
        "count/ring.rs",
        "//! R\nuse crate::sys::errno::EPERM;\nuse super::open;\npub struct Ring;\n#[cfg(test)]\nmod tests {\n    \
         use super::*;\n    #[test]\n    fn t() { println!(\"{}\", std::process::id()); std::fs::read(\"4096\"); }\n}",
    ),
    ("sys.rs", "//! K\npub mod errno { pub use libc::EPERM; }\nfn f() { unsafe { libc::fork() }; }"),
    ("read/mod.rs", "//! R\nmod file;\nmod line;\nuse crate::words::Word;\npub fn read(_: Word) {}"),
    ("read/file.rs", "//! F\nuse super::line::Line;\nlet_me!(Line);"),
    ("read/line.rs", "//! L\npub struct Line;"),
    ("words.rs", "//! W\npub struct Word;"),
];

/// Returns the offences of the clean tree after adding or replacing these files.
fn offences(changed: &[(&str, &str)]) -> Vec<String> {
    let source = |(path, text): &(&str, &str)| SourceFile {
        folder: "src".into(),
        path: path.into(),
        text: (*text).to_owned(),
        is_test: false,
    };
    let mut sources: Vec<SourceFile> = CLEAN
        .iter()
        .filter(|(path, _)| !changed.iter().any(|(other, _)| other == path))
        .chain(changed)
        .map(source)
        .collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    let tree = Tree::new(sources, ["libc", "clap", "serde"].map(str::to_owned));
    rules::offences(&tree, &SMALL).iter().map(ToString::to_string).collect()
}

/// Adds lines to a file of the clean tree and checks that the rules report this file and nothing else.
fn caught(path: &str, more: &str, line: &str) {
    let own = CLEAN.iter().find(|(other, _)| *other == path).map_or("//! N", |(_, text)| text);
    let text = format!("{own}\n{more}\n");
    let found = offences(&[(path, text.as_str())]);
    let is_there = |found: &String| found.starts_with(&format!("src/{path}:")) && found.contains(line);
    assert!(found.iter().any(is_there), "{more}\n  is not caught as `{line}`, but as {found:#?}");
    let here = |found: &&String| !found.starts_with(&format!("src/{path}:"));
    assert_eq!(found.iter().filter(here).collect::<Vec<_>>(), Vec::<&String>::new(), "{more}");
}

#[test]
fn clean_sources_pass() {
    assert_eq!(offences(&[]), Vec::<String>::new());
}

#[test]
fn imports_between_wings_are_rejected() {
    let line = "`read` must not name `count`";
    for way in [
        "use crate::count::open;",
        "use crate::{words, count::{self, open as o}};",
        "use pmc::count::open;",
        "use ::pmc::count::open;",
        "use super::super::count::open;",
        "use super::super::count as words;",
        "use crate::count::*;",
        "pub use crate::count as away;",
        "fn f() { crate::count::open(); }",
        "fn f() { super::super::count::open(); }",
        "fn f() { use crate::count::open; }",
        "fn f(_: crate::count::Ring) {}",
        "impl crate::count::Open for u8 {}",
        "type R = crate::count::Ring;",
        "fn f() { vec![crate::count::open()]; }",
        "macro_rules! m { () => { $crate::count::open() }; }",
        "macro_rules! m { () => { use $crate::{words, count::{open}}; }; }",
        "#[derive(Debug)]\n#[some(with = crate::count::open)]\nstruct S;",
        "mod tests {}\nuse crate::count::open;",
        "#[cfg(test)]\nmod tests {}\nuse crate::count::open;",
        "#[cfg(not(test))]\nmod other { use crate::count::open; }",
        "mod inner { pub use super::super::super::count; pub fn f() { count::open(); } }",
        "use crate as c;\nuse c::count::open;",
        "fn f<T: crate::count::Open>() where T: crate::count::Close {}",
        "const C: u8 = { match 1 { crate::count::ONE => 1, _ => 2 } };",
        "fn f() { crate::count::open!(); }",
    ] {
        caught("read/file.rs", way, line);
    }
}

#[test]
fn imports_in_tests_are_checked_too() {
    caught("read/file.rs", "#[cfg(test)]\nmod tests { use crate::count::open; }", "must not name `count`");
    // Tests may use every floor that their own floor can reach.
    assert_eq!(offences(&[("read/test_data.rs", "//! T\n")]), Vec::<String>::new());
}

#[test]
fn reexports_do_not_hide_an_import() {
    // `words` re-exports `sys`. `read` may name `words`, but not the re-exported `sys`.
    for door in [
        "pub use crate::sys::errno;",
        "pub use crate::sys as errno;",
        "pub use crate::sys::*;",
        "pub type errno = crate::sys::errno;",
        "mod hidden { pub use crate::sys::errno; }\npub use hidden::errno;",
        "mod hidden { pub use crate::sys::errno; }\npub use hidden::*;",
    ] {
        let words = format!("//! W\npub struct Word;\n{door}");
        let found = offences(&[
            ("words.rs", words.as_str()),
            ("read/line.rs", "//! L\npub struct Line;\nuse crate::words::errno;"),
        ]);
        let line = "src/read/line.rs:3: `read` must not name `sys`";
        assert!(found.iter().any(|found| found == line), "{door}: {found:#?}");
        assert!(
            found.iter().any(|found| found.contains("`words` must not name `sys`")),
            "{door}: {found:#?}"
        );
    }
}

#[test]
fn hidden_constructs_are_rejected() {
    caught("read/file.rs", "#[path = \"../count/mod.rs\"]\nmod count;", "`#[path]` hides");
    caught("read/file.rs", "#[cfg_attr(unix, path = \"../count/mod.rs\")]\nmod count;", "`#[path]` hides");
    caught("read/file.rs", "include!(\"../count/mod.rs\");", "`include!` hides");
    caught("read/file.rs", "m!(include!(\"../count/mod.rs\"));", "`include!` hides");
    caught("read/file.rs", "extern crate libc as l;", "`extern crate` hides");
    caught("read/file.rs", "fn f( {", "is no Rust");
}

#[test]
fn external_crates_are_limited_to_their_floors() {
    for way in [
        "use std::fs;",
        "use std::{fs as f, io};",
        "use std as s;\nfn f() { s::fs::read(\"a\"); }",
        "use ::std::fs::File;",
        "fn f() { std::fs::read(\"a\"); }",
        "fn f() { vec![std::fs::read(\"a\")]; }",
    ] {
        caught("read/file.rs", way, "`read` must not name `std::fs`");
    }
    caught("read/file.rs", "use libc as l;\nfn f() { l::fork(); }", "`read` must not name `libc`");
    caught("read/file.rs", "use serde::Serialize;", "`serde` has no row");
    caught("read/file.rs", "#[derive(serde::Serialize)]\nstruct S;", "`serde` has no row");
    caught("read/file.rs", "fn f(p: &std::path::Path) { p.exists(); }", "asks the file system");
    caught("read/file.rs", "use std::process::exit as leave;", "must not name `std::process`");
    // Through a re-export in one of our own modules.
    let found = offences(&[
        ("words.rs", "//! W\npub struct Word;\npub use std::fs;"),
        ("read/line.rs", "//! L\npub struct Line;\nuse crate::words::fs::File;"),
    ]);
    assert!(
        found.iter().any(|found| found == "src/read/line.rs:3: `read` must not name `std::fs`"),
        "{found:#?}"
    );
}

#[test]
fn import_cycles_are_found() {
    let circle = "a circle of imports in read: line -> file -> line";
    for way in ["use super::file;", "use crate::read::file::Other;", "fn f() { super::file::g(); }"] {
        let found = offences(&[("read/line.rs", &format!("//! L\npub struct Line;\n{way}"))]);
        assert_eq!(found.len(), 2, "both lines of the circle: {found:#?}");
        assert!(found[1].starts_with("src/read/line.rs:3:") && found[1].contains(circle), "{found:#?}");
    }
    // Through the parent module, which re-exports it.
    let found = offences(&[
        (
            "read/mod.rs",
            "//! R\nmod file;\nmod line;\npub use file::Other;\nuse crate::words::Word;\npub fn read(_: Word) {}",
        ),
        ("read/file.rs", "//! F\nuse super::line::Line;\npub struct Other;"),
        ("read/line.rs", "//! L\npub struct Line;\nuse super::Other;"),
    ]);
    assert!(found.iter().any(|found| found.contains(circle)), "{found:#?}");
    // A cycle of three entries, one of which is a folder.
    let found = offences(&[
        ("read/file.rs", "//! F\nuse super::line::Line;"),
        ("read/line.rs", "//! L\npub struct Line;\nuse super::deep::thing::Thing;"),
        ("read/deep/mod.rs", "//! D\nmod thing;"),
        ("read/deep/thing.rs", "//! T\npub struct Thing;\nuse crate::read::file;"),
    ]);
    assert!(found.iter().any(|found| found.contains("deep -> file -> line -> deep")), "{found:#?}");
    // Floors, too.
    let found = offences(&[("words.rs", "//! W\npub struct Word;\nuse crate::read::read;")]);
    assert!(found.iter().any(|found| found.contains("in : words -> read -> words")), "{found:#?}");
}

#[test]
fn names_through_a_parents_import_are_rejected() {
    let line = |name: &str| {
        format!("`{name}` is not defined in `read`, which only imports it: name the module that defines it")
    };
    for import in
        ["pub use line::Line;", "use line::Line;", "pub(crate) use line::*;", "use self::line::Line;"]
    {
        let parent = format!(
            "//! R\nmod file;\nmod line;\n{import}\nuse crate::words::Word;\npub fn read(_: Word) {{}}"
        );
        for (way, name) in [
            ("use super::Line;", "super::Line"),
            ("use super::{Line as L, line};", "super::Line"),
            ("use crate::read::Line;", "crate::read::Line"),
            ("use super::*;\nfn f(_: Line) {}", "Line"),
            ("fn f() { super::Line::new(); }", "super::Line::new"),
        ] {
            let file = format!("//! F\n{way}");
            let found = offences(&[("read/mod.rs", &parent), ("read/file.rs", &file)]);
            assert!(found.iter().all(|found| found.ends_with(&line(name))), "{import} {way}: {found:#?}");
            assert_eq!(found.len(), 1, "{import} {way}: {found:#?}");
        }
        // Tests are exempt. Code outside the folder uses re-exports.
        let found = offences(&[
            ("read/mod.rs", &parent),
            ("read/line.rs", "//! L\npub struct Line;\n#[cfg(test)]\nmod tests { use super::super::Line; }"),
            (
                "command/list.rs",
                "//! L\npub fn run() { crate::read::read(crate::words::Word); crate::read::Line; }",
            ),
        ]);
        assert_eq!(found, Vec::<String>::new(), "{import}");
    }
    // A type alias is a definition, not an import.
    let parent = "//! R\nmod file;\nmod line;\npub type Row = line::Line;\nuse crate::words::Word;\npub fn read(_: Word) {}";
    let found = offences(&[("read/mod.rs", parent), ("read/file.rs", "//! F\nuse super::Row;")]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn commands_must_not_import_each_other() {
    caught("command/list.rs", "use super::stat;", "the command `list` must not name the command `stat`");
    caught("command/stat/plan.rs", "use crate::command::list;", "`stat` must not name the command `list`");
    caught("command/stat/mod.rs", "use crate::cli::Typed;", "only `command/mod.rs` and plans");
    caught("command/stat/mod.rs", "fn f(_: &crate::cli::Cli) {}", "only `command/mod.rs` and plans");
    caught(
        "command/list.rs",
        "use super::stat::plan::of;",
        "the command `list` must not name the command `stat`",
    );
}

#[test]
fn unused_table_entries_are_reported() {
    let found = offences(&[("read/mod.rs", "//! R\nmod file;\nmod line;\npub fn read<T>(_: T) {}")]);
    assert!(found.iter().any(|found| found.contains("`read` may name `words` and does not")), "{found:#?}");
    let found = offences(&[("count/mod.rs", "//! C\nmod ring;\npub fn open() {}")]);
    assert!(
        found.iter().any(|found| found.contains("`count` may name `std::fs` and does not")),
        "{found:#?}"
    );
    let found =
        offences(&[("command/stat/mod.rs", "//! S\nmod plan;\nuse crate::count::open;\npub fn run() {}")]);
    assert!(found.iter().any(|found| found.contains("strike it from SHARED_BY_COMMANDS")), "{found:#?}");
    let found = offences(&[("attic.rs", "//! A\n")]);
    assert_eq!(found, ["src/attic.rs:1: `attic` has no place in the house: draw it in FLOORS"]);
}

#[test]
fn unsafe_is_allowed_only_in_sys() {
    for way in
        ["fn f() { unsafe { g() } }", "m!(unsafe { g() });", "#![allow(unsafe_code)]", "unsafe fn f() {}"]
    {
        let line = "`unsafe` belongs into `sys`";
        let text = format!("//! K\n{way}");
        assert!(offences(&[("words.rs", &text)]).iter().any(|found| found.contains(line)), "{way}");
    }
}

#[test]
fn output_and_page_size_have_one_place() {
    for name in ["println", "print", "eprintln", "eprint", "dbg"] {
        caught("read/file.rs", &format!("fn f() {{ {name}!(\"x\"); }}"), &format!("`{name}!`"));
        caught("read/file.rs", &format!("fn f() {{ std::{name}!(\"x\"); }}"), &format!("`{name}!`"));
        caught(
            "read/file.rs",
            &format!("macro_rules! m {{ () => {{ {name}!(\"x\") }}; }}"),
            &format!("`{name}!`"),
        );
    }
    caught("read/file.rs", "const A: usize = 4096;", "4096 is no page size");
    caught("read/file.rs", "const A: usize = 4_096;", "4096 is no page size");
    caught("read/file.rs", "fn f() { m!(4096u64); }", "4096 is no page size");
    assert!(
        offences(&[("read/more.rs", "//! M\nconst A: u32 = 40960; // println! 4096 unsafe\n")]).is_empty()
    );
}

#[test]
fn module_names_comments_and_sizes_are_checked() {
    assert!(offences(&[("read/utils.rs", "//! U\n")])[0].contains("`utils` names no idea"));
    assert!(
        offences(&[("read/file.rs", "use super::line::Line;\nm!(Line);")])[0].contains("does not open with")
    );
    let long = format!("//! L\n{}", "\n".repeat(701));
    assert!(offences(&[("read/more.rs", &long)])[0].contains("lines hold two ideas"));
    let wide = format!("//! W\n// {}\n", "x".repeat(108));
    assert_eq!(
        offences(&[("read/more.rs", &wide)]),
        ["src/read/more.rs:2: a comment of 111 columns: wrap it at 110"]
    );
}
