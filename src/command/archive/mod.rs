//! `pmc archive`: writes a recording and its symbols into one file for other machines.

mod tar;

use std::collections::HashSet;
use std::path::PathBuf;

use crate::cli::archive::ArchiveArgs;
use pmc_analysis::analysis::archive::{self, ArchiveSizes, RecordingArchiveRequest};
use pmc_command::input::with_suffix;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_symbols::symbol::{ArchiveContent, SymbolOptions};
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::sys::output_file;
use pmc_text::text::clean;
use pmc_text::units::bytes;

/// What to write or unpack.
pub(super) enum ArchiveRequest {
    /// Write a portable recording.
    Portable { recording: PathBuf, archive: RecordingArchiveRequest },
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

impl ArchiveArgs {
    /// # Errors
    /// Fails if the output is a pipe, if the list of build IDs cannot be read, or if no archive is named and
    /// the current directory does not contain exactly one.
    pub(super) fn request(self) -> Result<ArchiveRequest> {
        if !self.perf {
            return self.portable();
        }
        if self.unpack {
            return Ok(ArchiveRequest::Unpack {
                archive: self.recording.typed().cloned().map_or_else(only_archive, Ok)?,
            });
        }
        let excluded = match &self.exclude_buildids {
            None => String::new(),
            Some(list) => std::fs::read_to_string(list)
                .map_err(|error| Error::io(format!("reading {}", list.display()), error))?,
        };
        Ok(ArchiveRequest::Pack {
            recording: self.recording.path(),
            all: self.all,
            excluded: excluded.split_whitespace().map(str::to_owned).collect(),
            symbols: self.symbols.symbol_options()?,
        })
    }

    fn portable(self) -> Result<ArchiveRequest> {
        let recording = self.recording.path();
        // A recording of `perf record --threads` is a directory, whose name may end in a slash.
        let usual = || with_suffix(output_file::without_slash(&recording), ".archive");
        let output = self.output.unwrap_or_else(usual);
        if output.as_os_str() == "-" {
            return Err(Error::usage("an archive cannot be written to a pipe")
                .why("its symbols are a section of a file")
                .try_options("-o FILE"));
        }
        Ok(ArchiveRequest::Portable {
            recording,
            archive: RecordingArchiveRequest {
                output,
                content: ArchiveContent {
                    code: !(self.no_code || self.anonymous),
                    whole_sources: self.with_source,
                    variables: self.with_debug,
                },
                callers: self.with_debug,
                anonymous: self.anonymous,
                symbols: self.symbols.symbol_options()?,
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

/// What an anonymous archive still contains.
const LEFT: &[&str] = &[
    "names of functions, and of programs, libraries and source files without their folders; build-ids",
    "names of events, options of the recorder, ids of processes, threads, namespaces and cgroups",
    "times since boot, CPU model, number of CPUs, memory size, caches, kernel version, recorder version",
];

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the archive cannot be written. With `--perf`, also fails if
/// there is no build-id cache, or tar fails.
pub(super) fn run(request: &ArchiveRequest) -> Result<Exit> {
    match request {
        ArchiveRequest::Portable { recording, archive: request } => {
            let (ArchiveSizes { file, section }, exit) =
                archive::write(import::open(recording)?, request, &Bars)?;
            let name = request.output.to_string_lossy();
            let (file, section) = (bytes(file), bytes(section));
            let content = if request.anonymous { "symbols" } else { "symbols and code" };
            say::note(format!("{}: {file}, with {section} of {content}", clean(&name)));
            if request.anonymous {
                LEFT.iter().for_each(|left| say::note(format!("  left in the file: {left}")));
            }
            return Ok(exit);
        }
        ArchiveRequest::Pack { recording, all, excluded, symbols } => {
            tar::pack(recording, *all, excluded, symbols, &tar::cache()?)?;
        }
        ArchiveRequest::Unpack { archive } => tar::unpack(archive, &tar::cache()?)?,
    }
    Ok(Exit::Done)
}
