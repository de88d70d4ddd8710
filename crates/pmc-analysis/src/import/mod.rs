//! Opens recordings, and profiles of other programs, which are recognized by their content.
//!
//! Takes a path; returns a [`Reader`]. A profile in another format is converted to a recording that contains
//! its own names and lines (see [`recording`]), so that every command reads it in the same way. Each format
//! has a module that reads the file into an [`ImportedProfile`].
//!
//! ```text
//!   perf.data ------------------------------------------------------------> Reader
//!   other ---recognize--> folded, pprof, ... --> ImportedProfile --recording--> Reader
//! ```

mod error;
mod folded;
mod perf_script;
mod profile;
mod recording;
mod text;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use error::ImportError;
use pmc_perfdata::perfdata::{FeatureNumber, OpenedInput, PerfdataError, Reader};
use pmc_symbols::symbol::OriginalFacts;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::text::clean;
use profile::ImportedProfile;

/// Maximum size of a file in another format, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// Number of bytes from which formats are recognized.
const HEAD: usize = 1 << 16;

/// A format that pmc imports.
struct ImportFormat {
    /// The name that users know, in the plural if it has one.
    name: &'static str,
    /// Whether the start of a file (at most [`HEAD`] bytes) has this format.
    is_format: fn(&[u8]) -> bool,
    /// Reads a file.
    read: fn(&[u8], ImportedProfile) -> Result<ImportedProfile, ImportError>,
}

/// All formats, in the order in which they are tried: the most specific first.
const FORMATS: &[ImportFormat] = &[
    ImportFormat { name: "perf script text", is_format: perf_script::is_format, read: perf_script::read },
    ImportFormat { name: "folded stacks", is_format: folded::is_format, read: folded::read },
];

/// Opens a recording, or imports a profile in another format. `-` is standard input.
///
/// # Errors
/// Fails if the file cannot be read, or has no format that pmc reads.
pub fn open(path: impl AsRef<Path>) -> Result<Reader> {
    let path = path.as_ref();
    match Reader::open_any(path, may_be_profile, MOST_BYTES) {
        Ok(OpenedInput::Recording(reader)) => Ok(*reader),
        Ok(OpenedInput::Other(bytes)) => import(&bytes, path),
        Err(PerfdataError::NotPerfData { path, is_empty: false }) => Err(unknown(&path)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file that starts with these bytes may be text, JSON or a protobuf message.
fn may_be_profile(start: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= b' ' || b"\t\n\r".contains(byte);
    // The tag of one of the first fields of a message.
    let is_tag = |tag: u8| matches!(tag & 7, 0 | 2) && (1..=15).contains(&(tag >> 3));
    start.first().is_some_and(|first| is_tag(*first) || start.iter().all(is_text))
}

fn unknown(path: &Path) -> Error {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    Error::new(format!("{}: not a perf.data file", clean(&path.to_string_lossy())))
        .why("it does not start with PERFILE2, and has no other format that pmc reads")
        .try_this(format!("a file of one of these formats: perf.data, {}", names.join(", ")))
}

fn import(bytes: &[u8], path: &Path) -> Result<Reader> {
    let shown = match path.as_os_str() == "-" {
        true => Path::new("standard input"),
        false => path,
    };
    let head = &bytes[..bytes.len().min(HEAD)];
    let format = FORMATS.iter().find(|format| (format.is_format)(head)).ok_or_else(|| unknown(shown))?;
    let read = (format.read)(bytes, ImportedProfile::new());
    let checked = read.and_then(|profile| {
        if profile.samples.is_empty() {
            return Err(ImportError::file("it contains no samples"));
        }
        recording::check(&profile).map(|()| profile)
    });
    let profile = checked.map_err(|error| {
        let name = clean(&shown.to_string_lossy()).into_owned();
        Error::new(format!("cannot import {name} as {}: {}", format.name, clean(&error.to_string())))
            .why("the file is damaged, or written in a dialect that pmc does not know")
    })?;
    for note in recording::notes(&profile) {
        say::note(format!("{}: {note}", clean(&shown.to_string_lossy())));
    }
    recording::write(&profile, facts(bytes, path, format), path)
}

/// Returns the facts about the file that its conversion lacks.
fn facts(bytes: &[u8], path: &Path, format: &ImportFormat) -> OriginalFacts {
    let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
    let modified = std::fs::metadata(path)
        .map_or(0, |meta| meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()));
    OriginalFacts {
        modified_ns: modified,
        form: format.name.to_owned(),
        data_offset: 0,
        data_size: bytes.len() as u64,
        stacks: None,
        // Lists no section as missing, since other formats have none.
        features: FeatureNumber::ALL.iter().map(|feature| *feature as u32).collect(),
    }
}
