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

mod bpf;
mod call_order;
mod call_tree;
mod callgrind;
mod chrome;
mod dtrace;
mod error;
mod firefox;
mod folded;
mod jfr;
mod jfr_chunk;
mod jfr_cursor;
mod json;
mod perf_script;
mod pprof;
mod profile;
mod recording;
mod speedscope;
mod text;
mod unread;

use std::cell::OnceCell;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use error::ImportError;
use pmc_perfdata::perfdata::{FeatureNumber, OpenedInput, PerfdataError, Reader};
use pmc_symbols::symbol::OriginalFacts;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::sys::credentials;
use pmc_text::text::clean;
use profile::ImportedProfile;

/// Maximum size of a file in another format, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// Number of bytes from which text formats are recognized.
const HEAD: usize = 1 << 16;
/// Number of bytes from which the encoding of a text is recognized.
const HEAD_OF_TEXT: usize = 64;

/// The contents of a file, for recognizing its format.
struct ImportContent<'a> {
    bytes: &'a [u8],
    keys: OnceCell<json::TopKeys>,
}

impl ImportContent<'_> {
    /// Returns the start of the file.
    fn head(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(HEAD)]
    }

    /// Returns the keys of the outermost object, if the file is JSON.
    fn keys(&self) -> &json::TopKeys {
        self.keys.get_or_init(|| json::top_keys(self.bytes))
    }
}

/// Whether a file has a format.
type IsFormat = fn(&ImportContent<'_>) -> bool;
/// Reads a file.
type ReadFormat = fn(&[u8], ImportedProfile) -> Result<ImportedProfile, ImportError>;

/// A format that pmc imports.
struct ImportFormat {
    /// The name that users know, in the plural if it has one.
    name: &'static str,
    is_format: IsFormat,
    /// Whether it consists of lines.
    is_text: bool,
    read: ReadFormat,
}

impl ImportFormat {
    /// A format that consists of lines.
    const fn text(name: &'static str, is_format: IsFormat, read: ReadFormat) -> Self {
        Self { name, is_format, is_text: true, read }
    }

    /// Any other format.
    const fn other(name: &'static str, is_format: IsFormat, read: ReadFormat) -> Self {
        Self { name, is_format, is_text: false, read }
    }
}

/// All formats, in the order in which they are tried: the most specific first.
const FORMATS: &[ImportFormat] = &[
    ImportFormat::other("JFR", |it| jfr::is_format(it.head()), jfr::read),
    ImportFormat::other("pprof", |it| pprof::is_format(it.bytes), pprof::read),
    ImportFormat::other("speedscope", |it| it.keys().is_speedscope(), speedscope::read),
    ImportFormat::other("Firefox profile", |it| it.keys().is_firefox(), firefox::read),
    ImportFormat::other("V8 CPU profile", |it| it.keys().is_cpuprofile(), chrome::read_cpuprofile),
    ImportFormat::other("Chrome trace", |it| it.keys().is_trace(), chrome::read_trace),
    ImportFormat::text("callgrind", |it| callgrind::is_format(it.head()), callgrind::read),
    ImportFormat::text("macOS sample text", |it| call_tree::is_format(it.head()), call_tree::read),
    ImportFormat::text("DTrace stacks", |it| dtrace::is_format(it.head()), dtrace::read),
    ImportFormat::text("bpftrace and bcc stacks", |it| bpf::is_format(it.head()), bpf::read),
    ImportFormat::text(
        "perf script text",
        |it| !folded::is_certain(it.head()) && perf_script::is_format(it.head()),
        perf_script::read,
    ),
    ImportFormat::text("folded stacks", |it| folded::is_format(it.head()), folded::read),
];

/// Names of the compression formats that pmc does not decompress, the start of their files, and the command
/// that decompresses them.
const PACKED: &[(&str, &[u8], &str)] = &[
    ("xz", b"\xfd7zXZ\0", "xz -dc"),
    ("bzip2", b"BZh", "bzip2 -dc"),
    ("lz4", b"\x04\x22\x4d\x18", "lz4 -dc"),
    ("zip", b"PK\x03\x04", "unzip -p"),
];
/// The byte order mark with which some programs start texts in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Opens a recording, or imports a profile in another format. `-` is standard input.
///
/// # Errors
/// Fails if the file cannot be read, or has no format that pmc reads.
pub fn open(path: impl AsRef<Path>) -> Result<Reader> {
    let path = path.as_ref();
    match open_any(path) {
        Ok(OpenedInput::Recording(reader)) => Ok(*reader),
        Ok(OpenedInput::Other { bytes, torn }) => import(&bytes, torn, path),
        Err(PerfdataError::NotPerfData { path, is_empty: false }) => Err(unknown(&path)),
        Err(error) => Err(error.into()),
    }
}

/// Opens a recording for a command that reads `content`, which pmc does not import from other formats.
///
/// # Errors
/// Fails if the file cannot be read, or is not a recording. If it has another format that pmc reads, the
/// error names the format, and the commands that read it.
pub fn open_recording(path: impl AsRef<Path>, content: &str) -> Result<Reader> {
    let path = path.as_ref();
    let bytes = match open_any(path)? {
        OpenedInput::Recording(reader) => return Ok(*reader),
        OpenedInput::Other { bytes, .. } => bytes,
    };
    let name = shown_name(path);
    match recognize(without_mark(&bytes), &name)? {
        Some(format) => {
            Err(Error::new(format!("{name}: a profile in another format ({}), not a recording", format.name))
                .why(format!("pmc does not import {content} from other formats"))
                .try_this("pmc report -i FILE, pmc annotate -i FILE, or pmc export -i FILE")
                .try_this("for this command, a file written by pmc record or perf record"))
        }
        None => Err(PerfdataError::NotPerfData { path: path.to_owned(), is_empty: false }.into()),
    }
}

/// Opens a file. From here on, the thread parses what others wrote, so it gives up the capabilities that only
/// measuring needs.
fn open_any(path: &Path) -> Result<OpenedInput, PerfdataError> {
    credentials::keep_for_reading();
    Reader::open_any(path, |start| may_be_profile(start).then_some(MOST_BYTES))
}

/// Returns the name of a file for messages.
fn shown_name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => clean(&path.to_string_lossy()).into_owned(),
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// Whether a file that starts with these bytes (at most [`HEAD`]) may have one of the formats. A stream is
/// read to its end only if it may.
fn may_be_profile(start: &[u8]) -> bool {
    let start = without_mark(start);
    let content = ImportContent { bytes: start, keys: OnceCell::new() };
    // The keys by which formats in JSON differ may come later.
    is_object(start)
        || unread::find(start).is_some()
        || wide_encoding(start).is_some()
        || packed(start).is_some()
        || FORMATS.iter().any(|format| (format.is_format)(&content))
}

/// Whether this may be the start of an object in JSON.
fn is_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

/// Returns the row of [`PACKED`] for a packed file.
fn packed(bytes: &[u8]) -> Option<&'static (&'static str, &'static [u8], &'static str)> {
    // A folded stack may begin with the text BZh, too.
    let is_text = |name: &str| name == "bzip2" && bytes.get(4..10) != Some(b"1AY&SY".as_slice());
    PACKED.iter().find(|(name, start, _)| bytes.starts_with(start) && !is_text(name))
}

/// Returns the encoding of a text that is not in UTF-8, as `iconv` names it: from its byte order mark, or
/// because every second byte of its start is 0.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(HEAD_OF_TEXT)];
    let is_zero = |from: usize| head.iter().skip(from).step_by(2).all(|byte| *byte == 0);
    let is_text = |from: usize| {
        let is_ascii = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
        head.len() >= 8 && head.iter().skip(from).step_by(2).all(is_ascii)
    };
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ if is_text(0) && is_zero(1) => Some("UTF-16LE"),
        _ if is_zero(0) && is_text(1) => Some("UTF-16BE"),
        _ => None,
    }
}

fn unknown(path: &Path) -> Error {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    Error::new(format!("{}: not a perf.data file", shown_name(path)))
        .why("it does not start with PERFILE2, and has no other format that pmc reads")
        .try_this(format!("a file of one of these formats: perf.data, {}", names.join(", ")))
        .try_this(
            "if this is text of perf script: print a time, a thread with an event, or addresses, such as with \
             perf script -F comm,tid,time,period,event,ip,sym,dso",
        )
}

/// Returns the format of a file; `None` if pmc does not read it. `name` is the file's name for messages.
fn recognize(bytes: &[u8], name: &str) -> Result<Option<&'static ImportFormat>> {
    if let Some(format) = unread::find(bytes) {
        return Err(format.error(name));
    }
    if let Some((compression, _, unpack)) = packed(bytes) {
        return Err(Error::new(format!("{name}: compressed with {compression}"))
            .why("pmc decompresses only gzip and zstd")
            .try_this(format!("decompress the file: {unpack} FILE > PROFILE")));
    }
    if let Some(encoding) = wide_encoding(bytes) {
        return Err(Error::new(format!("{name}: text in {encoding}"))
            .why("pmc reads text in UTF-8")
            .try_this(format!("convert the file: iconv -f {encoding} -t UTF-8 FILE > PROFILE")));
    }
    let content = ImportContent { bytes, keys: OnceCell::new() };
    let format = FORMATS.iter().find(|format| (format.is_format)(&content));
    if format.is_none()
        && is_object(bytes)
        && let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(bytes)
    {
        return Err(Error::new(format!("{name}: invalid JSON: {error}"))
            .why("the file is truncated or damaged before the keys that show its format"));
    }
    Ok(format)
}

/// Imports a profile. `torn` says why its bytes could be unpacked only in part.
fn import(bytes: &[u8], torn: Option<String>, path: &Path) -> Result<Reader> {
    let (name, mut bytes) = (shown_name(path), without_mark(bytes));
    let format = recognize(bytes, &name)?.ok_or_else(|| unknown(path))?;
    let mut profile = ImportedProfile::new();
    if let Some(reason) = torn {
        profile.tear(bytes.len(), &reason);
        if format.is_text {
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            bytes = &bytes[..end];
        }
    }
    let mut needs = None;
    let checked = (format.read)(bytes, profile).and_then(|profile| {
        if profile.samples.is_empty() {
            needs = profile.needs();
            return Err(match profile.lost() {
                Some(lost) => ImportError::file(lost.to_string()),
                None => ImportError::unsupported("it contains no samples"),
            });
        }
        recording::check(&profile).map(|()| profile)
    });
    let profile = checked.map_err(|error| {
        let text = format!("cannot import {name} as {}: {}", format.name, clean(&error.to_string()));
        match error.is_damage() {
            true => Error::new(text).why(match needs {
                Some(needs) => format!("the file is damaged or cut off, and no sample is whole: {needs}"),
                None => "the file is damaged, or written in a dialect that pmc does not know".to_owned(),
            }),
            false => Error::new(text),
        }
    })?;
    for note in recording::notes(&profile) {
        say::note(format!("{name}: {note}"));
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
