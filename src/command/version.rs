//! `pmc version`: prints pmc's version, and which of perf's optional features it supports.

use std::io::{Write, stdout};

use pmc_sys::error::{Error, Exit, Result};

/// perf's optional features: the name, the macro (scripts search for either), and whether pmc supports the
/// feature.
const FEATURES: &[(&str, &str, bool)] = &[
    ("dwarf", "HAVE_DWARF_SUPPORT", true),
    ("dwarf-unwind-support", "HAVE_DWARF_UNWIND_SUPPORT", true),
    ("libelf", "HAVE_LIBELF_SUPPORT", true),
    ("libcapstone", "HAVE_LIBCAPSTONE_SUPPORT", true),
    ("libtraceevent", "HAVE_LIBTRACEEVENT", true),
    ("debuginfod", "HAVE_DEBUGINFOD_SUPPORT", true),
    ("zlib", "HAVE_ZLIB_SUPPORT", true),
    ("lzma", "HAVE_LZMA_SUPPORT", true),
    ("zstd", "HAVE_ZSTD_SUPPORT", true),
    ("auxtrace", "HAVE_AUXTRACE_SUPPORT", false),
    ("bpf", "HAVE_LIBBPF_SUPPORT", false),
    ("bpf_skeletons", "HAVE_BPF_SKEL", false),
    ("libperl", "HAVE_LIBPERL_SUPPORT", false),
    ("libpython", "HAVE_LIBPYTHON_SUPPORT", false),
];

/// Runs the command.
///
/// # Errors
/// Fails if a write fails.
pub(super) fn run(build_options: bool) -> Result<Exit> {
    let mut text = format!("pmc version {}\n", env!("CARGO_PKG_VERSION"));
    if build_options {
        for (name, perfs_macro, is_there) in FEATURES {
            let word = if *is_there { " on  " } else { " OFF " };
            text += &format!("{name:>22}: [{word}]  # {perfs_macro}\n");
        }
    }
    stdout().write_all(text.as_bytes()).map_err(|error| Error::output("the version", error))?;
    Ok(Exit::Done)
}
