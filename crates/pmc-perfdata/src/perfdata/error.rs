//! Errors that occur when reading and writing recordings, and notes on readable recordings.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::kind;
use pmc_sys::error::{Advice, AdvisedOption, Exit};
use pmc_text::units;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PerfdataError {
    /// A system call failed.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be created.
    #[error("creating {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The existing recording cannot be renamed.
    #[error("cannot keep the existing recording as {}: {source}", path.display())]
    Keep {
        /// The new name.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not start like a recording.
    #[error("{}: not a perf.data file", path.display())]
    NotPerfData {
        /// The file.
        path: PathBuf,
        /// Whether the file is empty.
        is_empty: bool,
    },
    /// A part of the file that is needed to read it is invalid.
    #[error("{}: {what} (at byte {at})", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        what: &'static str,
        /// Offset of the invalid part, in bytes.
        at: u64,
    },
    /// A stream is larger than the available space.
    #[error("{}: larger than {}, half of the free space for temporary files", path.display(), units::bytes(*most))]
    TooLong {
        /// The source of the stream.
        path: PathBuf,
        /// Maximum size, in bytes.
        most: u64,
    },
    /// A file that is not a recording is too large to be read as a whole.
    #[error("{}: not a perf.data file, and larger than {}", path.display(), units::bytes(*most))]
    LargeInput {
        /// The file.
        path: PathBuf,
        /// Maximum size, in bytes.
        most: u64,
    },
    /// Compressed data expands to an implausible size.
    #[error("{}: {} of compressed data expands to more than {}", path.display(), units::bytes(*packed), units::bytes(*limit))]
    Bomb {
        /// The file.
        path: PathBuf,
        /// Number of compressed bytes read.
        packed: u64,
        /// Maximum size to which this many bytes may expand.
        limit: u64,
    },
}

/// What may help, as a value: a program says it with its own commands and options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint {
    /// There is no file of this name.
    RecordFirst,
    /// The file is not a recording.
    NameRecording,
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::RecordFirst => "record something first, or name another file",
            Self::NameRecording => "specify a file that perf record or a similar recorder wrote",
        })
    }
}

impl pmc_sys::error::Hint for Hint {}

impl PerfdataError {
    /// Returns a closure for `map_err` that reports the failed operation `doing` on `path`.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// Returns a function for `map_err`, for a file that cannot be created.
    pub(super) fn create(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Create { path: path.to_owned(), source }
    }

    /// Returns a function for `map_err`, for an existing recording that cannot be renamed to `path`.
    pub(super) fn keep(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Keep { path: path.to_owned(), source }
    }
}

impl From<PerfdataError> for pmc_sys::error::Error {
    fn from(error: PerfdataError) -> Self {
        match error {
            PerfdataError::Io { doing, path, source } if source.kind() == io::ErrorKind::BrokenPipe => {
                // The process that reads from the pipe has closed it.
                Self::output(format_args!("{doing} {}", path.display()), source)
            }
            PerfdataError::Io { doing, path, source } => {
                let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                let missing = source.kind() == io::ErrorKind::NotFound;
                let is_kept = full && path.metadata().is_ok_and(|there| there.len() > 0);
                let error = Self::io(format!("{doing} {}", path.display()), source);
                match (full, missing) {
                    (true, _) => {
                        let why = match is_kept {
                            true => "the file system is full; the file contains all records written so far",
                            false => "the file system is full",
                        };
                        error.why(why).try_option(
                            AdvisedOption::Recording,
                            "free some space, or record to another file system with {option}",
                        )
                    }
                    (_, true) => error.try_this(Advice::hint(Hint::RecordFirst)),
                    _ => error,
                }
            }
            PerfdataError::Create { path, source } => Self::create(AdvisedOption::Recording, &path, source),
            PerfdataError::Keep { path, source } => {
                let is_other = source.kind() == io::ErrorKind::AlreadyExists;
                let error =
                    Self::io(format!("cannot keep the existing recording as {}", path.display()), source)
                        .exit(Exit::NotCreated);
                let error = match is_other {
                    true => error
                        .why(format!("{} is not a recording, so pmc will not overwrite it", path.display())),
                    false => error,
                };
                error.try_option(AdvisedOption::Recording, "{option} FILE, with another name")
            }
            PerfdataError::NotPerfData { is_empty: true, .. } => {
                Self::new(error.to_string()).why("the file is empty").try_this("record again")
            }
            PerfdataError::NotPerfData { .. } => Self::new(error.to_string())
                .why("it does not start with PERFILE2")
                .try_this(Advice::hint(Hint::NameRecording)),
            PerfdataError::Malformed { .. } => Self::new(error.to_string())
                .why("the file is damaged, or truncated before its records")
                .try_this("record again"),
            PerfdataError::TooLong { .. } => Self::new(error.to_string())
                .try_this("use a file instead of the pipe, or set TMPDIR to a directory with more space"),
            PerfdataError::LargeInput { .. } => Self::new(error.to_string())
                .why("pmc reads files of other formats into memory")
                .try_this("export fewer samples with the other program"),
            PerfdataError::Bomb { .. } => Self::new(error.to_string())
                .why("implausible compression ratio: the file is damaged or hostile"),
        }
    }
}

/// A problem with a readable recording that the user should know about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingNote {
    /// The recorder did not finish, so there are no feature sections. The file is read to its end.
    Unfinished {
        /// Bytes of an incomplete last record.
        lost: u64,
    },
    /// A record is cut off; the remaining data cannot be read.
    Torn {
        /// Offset of the first unread byte.
        at: u64,
        /// Number of unread bytes.
        lost: u64,
        /// Kind and size of the record at that offset, if its header could be read.
        header: Option<(u32, usize)>,
    },
    /// Names of feature sections that are outside the file or invalid.
    BadFeatures(Vec<String>),
    /// AUX data, which pmc skips.
    Aux {
        /// Number of skipped bytes.
        bytes: u64,
    },
    /// Records of unknown kinds, which are skipped.
    Unknown {
        /// Number of records.
        count: u64,
        /// Offset and kind of the first record.
        first: (u64, u32),
    },
    /// Kernel records that are too short for their fields or contain an unterminated string. They are
    /// skipped.
    Malformed {
        /// Number of records.
        count: u64,
        /// Offset and kind of the first record.
        first: (u64, u32),
    },
    /// Samples that are longer or shorter than their fields. If a size field is damaged, the records after it
    /// may be missing.
    Misshapen {
        /// Number of samples.
        count: u64,
        /// Offset of the first sample.
        first: u64,
        /// Number of bytes in these samples that do not belong to a field.
        bytes: u64,
    },
    /// A file of the directory that cannot be read.
    MissingFile(PathBuf),
    /// The compressed stream is damaged; the remaining data cannot be read.
    BadCompression {
        /// Offset of the damaged record.
        at: u64,
    },
    /// Records of a file in another format that could not be converted.
    Import {
        /// The position of the first one, the reason, and the number of records.
        what: String,
    },
}

impl RecordingNote {
    /// Whether the recording is damaged, as opposed to unfinished or newer than pmc.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Torn { .. }
            | Self::Malformed { .. }
            | Self::Misshapen { .. }
            | Self::BadFeatures(_)
            | Self::MissingFile(_)
            | Self::BadCompression { .. }
            | Self::Import { .. } => true,
            Self::Unfinished { .. } | Self::Aux { .. } | Self::Unknown { .. } => false,
        }
    }

    /// Whether samples could not be read or cannot be trusted.
    pub fn loses_samples(&self) -> bool {
        self.is_damage() && !matches!(self, Self::Malformed { .. } | Self::BadFeatures(_))
    }

    /// Adds a note on the records to the notes from opening the file. If a record is cut off at the end of
    /// the file, its note is merged with the note on the truncated file.
    pub(super) fn join(self, notes: &mut Vec<Self>) {
        if let Self::Torn { at, lost, header } = self {
            for note in notes.iter_mut() {
                match note {
                    Self::Torn { at: end, lost: more, header: cut } if at + lost == *end => {
                        (*end, *more, *cut) = (at, *more + lost, header);
                        return;
                    }
                    // If more than one record is missing, there is other damage.
                    Self::Unfinished { lost: begun } if *begun == 0 && lost <= u16::MAX.into() => {
                        *begun = lost;
                        return;
                    }
                    _ => {}
                }
            }
        }
        notes.push(self);
    }
}

/// Returns a record's kind in perf's notation: `MMAP2 (10)`.
fn kind_words(number: u32) -> String {
    format!("{} ({number})", kind::name(number).unwrap_or("unknown type"))
}

impl RecordingNote {
    /// Whether parts of the file itself are missing, and not only records.
    pub fn is_incomplete(&self) -> bool {
        match self {
            Self::Unfinished { .. } | Self::Torn { .. } | Self::BadFeatures(_) | Self::MissingFile(_) => true,
            Self::Aux { .. }
            | Self::Unknown { .. }
            | Self::Malformed { .. }
            | Self::Misshapen { .. }
            | Self::BadCompression { .. }
            | Self::Import { .. } => false,
        }
    }
}

impl std::fmt::Display for RecordingNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unfinished { lost } => {
                f.write_str(
                    "the recorder was stopped before it finished the file; pmc reads the records written so far",
                )?;
                match lost {
                    0 => Ok(()),
                    _ => write!(f, ", except {} of an incomplete record", units::bytes(*lost)),
                }
            }
            Self::Torn { at, lost, header } => {
                write!(f, "the records are truncated at offset {at:#x}")?;
                if let Some((kind, size)) = header {
                    write!(f, ", in {} of {}", kind_words(*kind), units::bytes(*size as u64))?;
                }
                write!(f, "; the remaining {} cannot be read", units::bytes(*lost))
            }
            Self::BadFeatures(names) => match &names[..] {
                [name] => write!(f, "ignored the damaged section {name}"),
                _ => write!(f, "ignored damaged sections: {}", names.join(", ")),
            },
            Self::Aux { bytes } => {
                write!(
                    f,
                    "skipped {} of AUX data (hardware trace): pmc does not decode it, but perf script does",
                    units::bytes(*bytes)
                )
            }
            Self::Unknown { count, first: (at, kind) } => {
                write!(
                    f,
                    "{} records of unknown type skipped, the first at offset {at:#x}: type {kind}",
                    units::thousands(*count)
                )
            }
            Self::Malformed { count, first: (at, kind) } => {
                write!(
                    f,
                    "{} damaged records skipped, the first at offset {at:#x}: {}",
                    units::thousands(*count),
                    kind_words(*kind)
                )
            }
            Self::Misshapen { count, first, bytes } => {
                write!(
                    f,
                    "{} samples are damaged: their sizes do not match their fields, the first at offset {first:#x}: {}; {} in them, perhaps from other records, cannot be read",
                    units::thousands(*count),
                    kind_words(kind::SAMPLE),
                    units::bytes(*bytes)
                )
            }
            Self::MissingFile(path) => {
                write!(f, "{} cannot be read; its records are missing", path.display())
            }
            Self::Import { what } => f.write_str(what),
            Self::BadCompression { at } => {
                write!(
                    f,
                    "the compressed records are damaged at offset {at:#x}; later records cannot be read"
                )
            }
        }
    }
}
