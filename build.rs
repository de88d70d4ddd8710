//! Lays out the code of a release build: what reads recordings and draws screens stands behind what counts.
//!
//! The kernel maps a program's code in windows of 64 KiB around what is touched, so the memory of a short `pmc stat` is
//! the number of windows its functions are strewn over. A linker script that only adds one section gathers the rest:
//!
//! ```text
//!   .text           std, clap, events, counters, stat
//!   .text.reading   perfdata, session, symbol, unwind, tui, … and the libraries that only they use;
//!                   of a static build, also what C's library has for locales, names of hosts, wide characters
//! ```
//!
//! Nothing depends on it: a name that matches nothing is no error, and without the script the program does the same.
//! It is left out where another linker than the toolchain's own (lld or GNU ld) is asked for, since mold has no scripts.

use std::{env, fs, path::Path};

/// Modules of pmc, as paths; what is below them goes with them.
const MODULES: &[&str] = &[
    "perfdata",
    "session",
    "symbol",
    "unwind",
    "record",
    "tui",
    "event::guess",
    "profile::sampled",
    "profile::annotate",
    "profile::compare",
    "profile::diff",
    "view::annotate",
    "view::diff",
    "view::header",
    "view::info",
    "view::list",
    "view::listings",
    "view::openmetrics",
    "view::report",
    "view::script",
    "view::stat::compare",
    "view::top",
    "command::annotate",
    "command::diff",
    "command::header",
    "command::info",
    "command::list",
    "command::perfalloc",
    "command::record",
    "command::report",
    "command::reserve",
    "command::screen",
    "command::script",
    "command::top",
    "cli::annotate",
    "cli::diff",
    "cli::info",
    "cli::list",
    "cli::perfalloc",
    "cli::record",
    "cli::report",
    "cli::reserve",
    "cli::sample_filter",
    "cli::script",
    "cli::symbol_files",
    "cli::theirs",
    "cli::top",
];

/// Parts of names of functions that only those use, and what is large of those that a short run does not call.
const LIBRARIES: &[&str] = &[
    "addr2line",
    "backtrace_rs",
    "capstone",
    "12clap_builder5error",
    "12clap_builder6output",
    "comfy_table",
    "console",
    "4core3net",
    "4core5slice4sort",
    "core..slice..sort",
    "cpp_demangle",
    "crossbeam",
    "crossterm",
    "flate2",
    "framehop",
    "gimli",
    "indexmap",
    "indicatif",
    "lzma_rust2",
    "miniz_oxide",
    "6object4read",
    "object..read",
    "ratatui",
    "rayon",
    "regex",
    "rustc_demangle",
    "ruzstd",
    "serde",
    "sha2",
    "smallvec",
    "3std4sync4mpmc",
    "strsim",
    "zlib_rs",
];

/// Beginnings of names in C: zstd's and capstone's.
const PREFIXES: &[&str] = &[
    "ZSTD_",
    "HUF_",
    "FSE_",
    "XXH_",
    "HIST_",
    "COVER_",
    "ZDICT_",
    "FASTCOVER_",
    "POOL_",
    "cs_",
    "X86_",
    "AArch64_",
    "AARCH64_",
    "MCInst",
    "SStream",
    "printInst",
    "printOperand",
    "decodeInst",
    "decodeToMCInst",
    "printAlias",
];

/// Members of C's libraries, as a static build takes them in; what starts a program and picks its string functions is not
/// among them.
const C_MEMBERS: &[&str] = &[
    "libc.a:*printf*.o",
    "libc.a:strto[dfl]*.o",
    "libc.a:w*ops.o",
    "libc.a:*gconv*.o",
    "libc.a:*locale*.o",
    "libc.a:*gettext*.o",
    "libc.a:loadmsgcat.o",
    "libc.a:plural*.o",
    "libc.a:tz*.o",
    "libc.a:nss*.o",
    "libc.a:nscd*.o",
    "libc.a:dns-*.o",
    "libc.a:files-*.o",
    "libc.a:res*.o",
    "libc.a:getaddr*.o",
    "libc.a:*sse*.o",
    "libc.a:*avx2*.o",
    "libm*.a:*-fma*.o",
    "libm*.a:*-avx*.o",
    "libgcc.a:*.o",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    let set = |name: &str| env::var(name).unwrap_or_default();
    let flags = set("CARGO_ENCODED_RUSTFLAGS");
    let own_linker = ["linker", "fuse-ld", "link-self-contained"].iter().any(|word| flags.contains(word))
        || !set("RUSTC_LINKER").is_empty();
    if set("OPT_LEVEL") == "0" || set("CARGO_CFG_TARGET_ARCH") != "x86_64" || own_linker {
        return;
    }
    let script = Path::new(&set("OUT_DIR")).join("reading.ld");
    fs::write(&script, layout()).expect("the linker script is written");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
}

/// The script. Both manglings of Rust are matched: `3pmc7session` (a path) and `pmc..session` (inside of a type).
fn layout() -> String {
    let mut patterns = Vec::new();
    for module in MODULES {
        let counted: String = module.split("::").map(|part| format!("{}{part}", part.len())).collect();
        patterns.push(format!("*3pmc{counted}*"));
        patterns.push(format!("*pmc..{}*", module.replace("::", "..")));
    }
    patterns.extend(LIBRARIES.iter().map(|part| format!("*{part}*")));
    patterns.extend(PREFIXES.iter().map(|prefix| format!("{prefix}*")));
    let mut lines: String = patterns.iter().map(|pattern| format!("    *(.text.{pattern})\n")).collect();
    lines.extend(C_MEMBERS.iter().map(|member| format!("    *{member}(.text .text.*)\n")));
    format!("SECTIONS {{\n  .text.reading : {{\n{lines}  }}\n}} INSERT AFTER .text;\n")
}
