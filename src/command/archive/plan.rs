//! Converts the parsed options of `pmc archive` into a plan.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::cli::archive::ArchiveArgs;
use pmc_analysis::analysis::archive::RecordingArchiveRequest;
use pmc_command::input::with_suffix;
use pmc_symbols::symbol::{ArchiveContent, SymbolOptions};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::output_file;

/// Actions of `pmc archive`.
pub(in crate::command) enum ArchivePlan {
    /// Write a portable recording.
    Portable { recording: PathBuf, request: RecordingArchiveRequest },
    /// Pack the symbol files of a recording for perf.
    Pack {
        recording: PathBuf,
        /// Whether to include the recording.
        all: bool,
        /// Build IDs to exclude.
        excluded: HashSet<String>,
        /// Where to look for the files.
        symbols: SymbolOptions,
    },
    /// Unpack an archive of perf.
    Unpack { archive: PathBuf },
}

impl ArchivePlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if the output is a pipe, if the list of build IDs cannot be read, or if no archive is named and
    /// the current directory does not contain exactly one.
    pub(in crate::command) fn new(typed: ArchiveArgs) -> Result<Self> {
        if !typed.perf {
            return Self::portable(typed);
        }
        if typed.unpack {
            return Ok(Self::Unpack { archive: typed.file.map_or_else(only_archive, Ok)? });
        }
        let excluded = match &typed.exclude_buildids {
            None => String::new(),
            Some(list) => std::fs::read_to_string(list)
                .map_err(|error| Error::io(format!("reading {}", list.display()), error))?,
        };
        Ok(Self::Pack {
            recording: typed.file.unwrap_or_else(|| "perf.data".into()),
            all: typed.all,
            excluded: excluded.split_whitespace().map(str::to_owned).collect(),
            symbols: typed.symbols.symbol_options()?,
        })
    }

    fn portable(typed: ArchiveArgs) -> Result<Self> {
        let recording = typed.file.unwrap_or_else(|| "perf.data".into());
        // A recording of `perf record --threads` is a directory, whose name may end in a slash.
        let usual = || with_suffix(output_file::without_slash(&recording), ".archive");
        let output = typed.output.unwrap_or_else(usual);
        if output.as_os_str() == "-" {
            return Err(Error::usage("an archive cannot be written to a pipe")
                .why("its symbols are a section of a file")
                .try_this("-o FILE"));
        }
        Ok(Self::Portable {
            recording,
            request: RecordingArchiveRequest {
                output,
                content: ArchiveContent {
                    code: !(typed.no_code || typed.anonymous),
                    whole_sources: typed.with_source,
                    variables: typed.with_debug,
                },
                callers: typed.with_debug,
                anonymous: typed.anonymous,
                symbols: typed.symbols.symbol_options()?,
            },
        })
    }
}

/// Returns the only archive in the current directory.
fn only_archive() -> Result<PathBuf> {
    let entries =
        std::fs::read_dir(".").map_err(|error| Error::io("reading the current directory", error))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut archives: Vec<String> =
        names.filter(|name| name.starts_with("perf") && name.ends_with(".tar.bz2")).collect();
    archives.sort();
    match archives.as_slice() {
        [one] => Ok(one.into()),
        [] => Err(Error::usage("no perf*.tar.bz2 in the current directory")
            .try_this("pmc archive --perf --unpack FILE")),
        several => Err(Error::usage(format!(
            "the current directory contains {} archives: {}",
            several.len(),
            several.join(", ")
        ))
        .try_this("pmc archive --perf --unpack FILE")),
    }
}
