//! The architecture rules, checked against the sources: wings and floors, no import cycles, one place for
//! `unsafe`, one place for output.
//!
//! `sources` reads the code with `syn`, `resolve` finds the target of each path, and `rules` checks the
//! rules. This file holds the tables of allowed imports. The tables match the imports in use exactly: add an
//! edge here when you need it, and remove an edge with its last use. `planted` breaks each rule in every way
//! we thought of and checks that the break is found. An offence is printed as `file:line: what is wrong`.
//!
//! `heritage`, `links` and `examples` check the documentation, `words` checks prose and names, `loops` checks test
//! programs, and `dependencies` checks the external crates.

mod dependencies;
mod examples;
mod heritage;
mod links;
mod loops;
mod planted;
mod resolve;
mod rules;
mod sources;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rules::Tables;
use sources::Tree;

/// Allowed imports between floors: a floor may import the floors in its row, and itself.
///
/// ```text
///                     main
///                   command   <- cli        wires the rest
///           tui                view
///         holder
///        recording          analysis        the two engines
///                           profile
///
///                           session
/// persistent  counter        symbol  unwind
/// event                      address  worker_threads
///            perfdata
///            record          host
///              sys  abi
///      error  terminal  units  text               config (of the program)
/// ```
const FLOORS: &[(&str, &[&str])] = &[
    // The top.
    ("main", &["command", "sys", "error"]),
    (
        "command",
        &[
            "cli",
            "tui",
            "view",
            "holder",
            "recording",
            "analysis",
            "import",
            "config",
            "profile",
            "persistent",
            "counter",
            "event",
            "host",
            "symbol",
            "session",
            "perfdata",
            "sys",
            "record",
            "abi",
            "error",
            "terminal",
            "units",
            "text",
        ],
    ),
    ("cli", &[]),
    ("tui", &["view", "profile", "session", "error", "terminal", "units", "text"]),
    (
        "view",
        &[
            "profile",
            "interval",
            "persistent",
            "symbol",
            "session",
            "interval",
            "record",
            "abi",
            "error",
            "terminal",
            "units",
            "text",
        ],
    ),
    // Keeps events open for other processes to read: a server around the first engine's rings.
    ("holder", &["recording", "persistent", "counter", "host", "sys", "abi", "error", "units"]),
    // The engines.
    (
        "recording",
        &[
            "persistent",
            "counter",
            "event",
            "host",
            "symbol",
            "unwind",
            "worker_threads",
            "session",
            "interval",
            "perfdata",
            "sys",
            "record",
            "text",
            "abi",
            "error",
            "units",
        ],
    ),
    (
        "analysis",
        &[
            "import",
            "profile",
            "interval",
            "host",
            "symbol",
            "unwind",
            "worker_threads",
            "interval",
            "session",
            "perfdata",
            "sys",
            "record",
            "abi",
            "error",
            "units",
            "text",
            "address",
        ],
    ),
    ("profile", &["symbol", "interval", "session", "record", "abi", "error", "units", "text"]),
    ("profile", &["interval", "symbol", "session", "record", "abi", "error", "units", "text"]),
    // Converts profiles of other programs to recordings.
    (
        "import",
        &["profile", "symbol", "perfdata", "sys", "record", "abi", "error", "units", "text", "address"],
    ),
    // The measuring wing. `persistent` is shared by the holder and its clients.
    ("persistent", &["host", "sys", "text", "error"]),
    ("counter", &["event", "host", "sys", "abi", "error", "units", "text"]),
    ("event", &["host", "sys", "abi", "error", "text"]),
    ("host", &["sys", "abi", "error", "units"]),
    // The reading wing.
    ("symbol", &["worker_threads", "unwind", "go_table", "sys", "abi", "error", "text", "address"]),
    ("unwind", &["go_table", "abi", "record", "address"]),
    ("go_table", &[]),
    ("worker_threads", &["sys"]),
    // Pairs of events; pure.
    ("interval", &[]),
    ("session", &["symbol", "worker_threads", "perfdata", "record", "abi", "address"]),
    // Uses `sys` to open files safely in places where other users can create files.
    ("perfdata", &["sys", "record", "abi", "error", "units"]),
    // The ground: the kernel's interfaces and bytes, words and numbers. `error` asks `sys` for errno names.
    ("sys", &["abi", "units"]),
    ("record", &["abi", "units", "text"]),
    ("abi", &[]),
    ("error", &["sys", "terminal", "text"]),
    ("config", &["sys", "error"]),
    ("terminal", &[]),
    ("units", &[]),
    ("text", &[]),
    ("address", &[]),
];

/// Floors that may use each external crate, and each part of the standard library with effects outside the
/// process.
const OUTSIDE: &[(&str, &[&str])] = &[
    // The kernel and its interfaces.
    ("libc", &["sys"]),
    ("perf_event_open_sys", &["sys", "abi"]),
    (
        "rustix",
        &[
            "command",
            "tui",
            "holder",
            "recording",
            "analysis",
            "persistent",
            "counter",
            "host",
            "symbol",
            "perfdata",
            "sys",
            "terminal",
        ],
    ),
    ("memmap2", &["sys"]),
    (
        "std::fs",
        &[
            "command",
            "holder",
            "recording",
            "analysis",
            "import",
            "persistent",
            "counter",
            "event",
            "host",
            "symbol",
            "perfdata",
            "sys",
            "config",
        ],
    ),
    ("std::process", &["main", "command", "recording", "persistent", "counter", "symbol", "error", "sys"]),
    (
        "std::thread",
        &[
            "command",
            "holder",
            "tui",
            "recording",
            "analysis",
            "persistent",
            "counter",
            "worker_threads",
            "sys",
        ],
    ),
    (
        "std::env",
        &[
            "command",
            "recording",
            "analysis",
            "persistent",
            "counter",
            "host",
            "symbol",
            "perfdata",
            "sys",
            "config",
            "terminal",
        ],
    ),
    ("std::net", &["command", "view", "record"]),
    // User input and output.
    ("clap", &["command", "cli"]),
    ("std::io::stdin", &["tui", "perfdata", "terminal"]),
    ("std::io::stdout", &["command", "tui", "perfdata", "terminal"]),
    ("std::io::stderr", &["command", "error", "terminal"]),
    ("indicatif", &["command"]),
    ("ratatui", &["tui"]),
    ("comfy_table", &["view"]),
    ("unicode_width", &["text"]),
    ("strsim", &["text"]),
    ("regex_lite", &["tui", "analysis", "event"]),
    // File formats.
    ("serde", &["view", "import", "profile", "persistent", "text"]),
    ("serde_json", &["command", "holder", "view", "recording", "import", "persistent", "event", "text"]),
    ("zstd", &["event", "perfdata", "symbol"]),
    ("flate2", &["view", "perfdata"]),
    ("base64", &["view"]),
    ("inferno", &["view"]),
    ("fxprof_processed_profile", &["view"]),
    ("parquet", &["view"]),
    ("prost", &["symbol", "view", "import", "profile"]),
    ("twox_hash", &["view"]),
    ("lzma_rust2", &["symbol"]),
    ("crc32fast", &["symbol"]),
    // Programs and their debug information.
    ("object", &["event", "go_table", "symbol", "unwind"]),
    ("gimli", &["symbol", "unwind"]),
    ("addr2line", &["symbol"]),
    ("framehop", &["unwind"]),
    ("capstone", &["symbol"]),
    ("seccompiler", &["sys"]),
    ("cpp_demangle", &["symbol"]),
    ("rustc_demangle", &["symbol"]),
    // Containers, threads, errors.
    ("hashbrown", &["profile", "session"]),
    ("indexmap", &["import", "session"]),
    (
        "rustc_hash",
        &[
            "tui",
            "view",
            "recording",
            "analysis",
            "interval",
            "profile",
            "symbol",
            "unwind",
            "session",
            "perfdata",
            "record",
        ],
    ),
    ("smallvec", &["analysis", "interval", "session"]),
    ("rayon", &["symbol", "unwind", "session", "worker_threads"]),
    ("thiserror", &["counter", "host", "symbol", "perfdata"]),
];
/// Numbers that `sys` re-exports under libc's names: errors and signals.
const HANDED_OUT: &[(&str, &str)] = &[("sys", "libc")];
/// Modules below `command` that several commands share.
const SHARED_BY_COMMANDS: &[&str] = &[
    "destination",
    "gate",
    "recording_screen",
    "pager",
    "plan",
    "progress",
    "reasons",
    "row_options",
    "sampling_options",
    "screen",
    "temporary",
    "time_span",
    "warning",
];
/// Commands that still receive the typed options and do not build a plan from them.
const WITHOUT_PLAN: &[&str] = &[
    "command/info.rs",
    "command/list.rs",
    "command/netbsd.rs",
    "command/pmccontrol.rs",
    "command/perfalloc.rs",
    "command/reserve.rs",
    "command/tprof.rs",
];

const TABLES: Tables = Tables {
    floors: FLOORS,
    outside: OUTSIDE,
    handed_out: HANDED_OUT,
    shared_by_commands: SHARED_BY_COMMANDS,
    without_plan: WITHOUT_PLAN,
};

#[test]
fn sources_follow_the_architecture_rules() {
    let tree = Tree::of_workspace(&sources::root());
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

/// The sources form one tree only if each floor is in one crate, and if the roots of the crates only list
/// them.
#[test]
fn floors_are_in_one_crate_and_its_root_only_lists_them() {
    let root = sources::root();
    let mut folders: BTreeMap<String, PathBuf> = BTreeMap::new();
    for source in sources::sources(&root) {
        match source.floor() {
            "lib" => {
                let is_list = |line: &str| {
                    line.is_empty()
                        || ["//!", "#[", "#![cfg_attr(doctest", "pub mod ", "mod "]
                            .iter()
                            .any(|start| line.starts_with(start))
                };
                let others: Vec<&str> = source.text.lines().filter(|line| !is_list(line)).collect();
                assert!(others.is_empty(), "{}/lib.rs: {others:?}", source.folder.display());
            }
            floor => {
                let known = folders.entry(floor.to_owned()).or_insert_with(|| source.folder.clone());
                assert_eq!(*known, source.folder, "`{floor}` is in two crates");
            }
        }
    }
}

/// The rules know the external crates from the workspace's manifest, so no other manifest may add one.
#[test]
fn dependencies_are_declared_in_the_workspace() {
    for folder in sources::source_folders(&sources::root()) {
        let path = sources::root().join(folder).with_file_name("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).expect("the crate's manifest");
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if matches!(section, "[dependencies]" | "[dev-dependencies]") && line.contains('=') {
                assert!(line.ends_with(".workspace = true"), "{}: {line}", path.display());
            }
        }
    }
}

/// Tests wait with the functions of the kit: no other test file may sleep.
#[test]
fn only_the_test_kit_sleeps() {
    const SLEEP: &str = concat!("thread::", "sleep");
    let mut sleepers = sources::files(&sources::root().join("tests"), "rs");
    sleepers.retain(|(path, text)| !path.starts_with("kit") && text.contains(SLEEP));
    let sleepers: Vec<_> = sleepers.into_iter().map(|(path, _)| path).collect();
    assert!(sleepers.is_empty(), "these sleep by themselves: {sleepers:?}");
}
