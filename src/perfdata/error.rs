//! Why a recording cannot be read or written, and what is worth knowing about one that can.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::kind;
use crate::units;

/// Why reading or writing a recording failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It cannot be made.
    #[error("creating {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It does not begin as a recording does.
    #[error("{}: not a perf.data file", path.display())]
    NotPerfData {
        /// The file.
        path: PathBuf,
        /// It has no bytes at all.
        is_empty: bool,
    },
    /// A part without which nothing can be read makes no sense.
    #[error("{}: {what} (at byte {at})", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// A stream that has more bytes than there is room for.
    #[error("{}: longer than {}, half of what is free for temporary files", path.display(), units::bytes(*most))]
    TooLong {
        /// What it was read from.
        path: PathBuf,
        /// Bytes that are taken.
        most: u64,
    },
    /// Compressed content that unpacks to absurd amounts.
    #[error("{}: {} of compressed data unpack to more than {}", path.display(), units::bytes(*packed), units::bytes(*limit))]
    Bomb {
        /// The file.
        path: PathBuf,
        /// Compressed bytes read.
        packed: u64,
        /// What that many may unpack to.
        limit: u64,
    },
}

impl Error {
    /// For `map_err`: the kernel refused `doing` something to `path`.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// For `map_err`: the file cannot be made.
    pub(super) fn create(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Create { path: path.to_owned(), source }
    }
}

impl From<Error> for crate::error::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { doing, path, source } if source.kind() == io::ErrorKind::BrokenPipe => {
                // Whoever read our stream has had enough.
                Self::output(format_args!("{doing} {}", path.display()), source)
            }
            Error::Io { doing, path, source } => {
                let full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                let missing = source.kind() == io::ErrorKind::NotFound;
                let is_kept = full && path.metadata().is_ok_and(|there| there.len() > 0);
                let error = Self::io(format!("{doing} {}", path.display()), source);
                match (full, missing) {
                    (true, _) => {
                        let why = match is_kept {
                            true => "the file system is full; the file keeps what was written so far",
                            false => "the file system is full",
                        };
                        error.why(why).try_this("free some space, or record elsewhere with -o")
                    }
                    (_, true) => {
                        error.try_this("record something first (pmc record), or name a file with -i")
                    }
                    _ => error,
                }
            }
            Error::Create { path, source } => Self::create("-o", &path, source),
            Error::NotPerfData { is_empty: true, .. } => {
                Self::new(error.to_string()).why("the file is empty").try_this("record again")
            }
            Error::NotPerfData { .. } => Self::new(error.to_string())
                .why("it does not start with PERFILE2")
                .try_this("name a file that pmc record or perf record wrote"),
            Error::Malformed { .. } => Self::new(error.to_string())
                .why("the file is damaged, or truncated before its records")
                .try_this("record again"),
            Error::TooLong { .. } => Self::new(error.to_string())
                .try_this("use a file instead of the pipe, or set TMPDIR to a directory with more space"),
            Error::Bomb { .. } => Self::new(error.to_string())
                .why("implausible compression ratio: the file is damaged or hostile"),
        }
    }
}

/// What a reader should tell the user about a recording that it can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The recorder did not come to its end: no feature sections, read up to the end of the file.
    Unfinished {
        /// Bytes of a last record that was not written whole.
        lost: u64,
    },
    /// Records end in the middle; what follows cannot be read.
    Torn {
        /// Offset of the first byte that was not read.
        at: u64,
        /// Bytes that were not read.
        lost: u64,
        /// Kind and size of the record that begins there, if its header was read.
        header: Option<(u32, usize)>,
    },
    /// Feature sections that lie outside the file or do not hold what they should: their names.
    BadFeatures(Vec<String>),
    /// AUX data, which is skipped.
    Aux {
        /// Bytes skipped.
        bytes: u64,
    },
    /// Records of a number nobody knows, skipped by their size.
    Unknown {
        /// How many.
        count: u64,
        /// Offset and kind of the first.
        first: (u64, u32),
    },
    /// Records of the kernel that are too short for their fields, or whose text has no end: skipped.
    Malformed {
        /// How many.
        count: u64,
        /// Offset and kind of the first.
        first: (u64, u32),
    },
    /// Samples whose fields end before or behind their record: a damaged size hides the records behind it.
    Misshapen {
        /// How many.
        count: u64,
        /// Offset of the first.
        first: u64,
        /// Bytes in them that belong to no field.
        bytes: u64,
    },
    /// A file of the directory that could not be read.
    MissingFile(PathBuf),
    /// The compressed stream is damaged; what follows cannot be read.
    BadCompression {
        /// Offset of the record.
        at: u64,
    },
}

impl Note {
    /// Whether the recording is damaged, and not merely unfinished or newer than pmc.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Torn { .. }
            | Self::Malformed { .. }
            | Self::Misshapen { .. }
            | Self::BadFeatures(_)
            | Self::MissingFile(_)
            | Self::BadCompression { .. } => true,
            Self::Unfinished { .. } | Self::Aux { .. } | Self::Unknown { .. } => false,
        }
    }

    /// Whether samples could not be read, or not be trusted.
    pub fn loses_samples(&self) -> bool {
        self.is_damage() && !matches!(self, Self::Malformed { .. } | Self::BadFeatures(_))
    }

    /// Adds what the records told to what opening the file found out. A record that is cut off where the file
    /// ends is the same tear.
    pub(super) fn join(self, notes: &mut Vec<Self>) {
        if let Self::Torn { at, lost, header } = self {
            for note in notes.iter_mut() {
                match note {
                    Self::Torn { at: end, lost: more, header: cut } if at + lost == *end => {
                        (*end, *more, *cut) = (at, *more + lost, header);
                        return;
                    }
                    // More than a record's worth is damage of its own.
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

/// A record's kind as perf writes it: `MMAP2 (10)`.
fn kind_words(number: u32) -> String {
    format!("{} ({number})", kind::name(number).unwrap_or("unknown type"))
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unfinished { lost } => {
                f.write_str(
                    "the recorder was stopped before it could finish the file; everything up to its end is read",
                )?;
                match lost {
                    0 => Ok(()),
                    _ => write!(f, ", but for {} of a record that is not whole", units::bytes(*lost)),
                }
            }
            Self::Torn { at, lost, header } => {
                write!(f, "the records are cut off at offset {at:#x}")?;
                if let Some((kind, size)) = header {
                    write!(f, ", in {} of {}", kind_words(*kind), units::bytes(*size as u64))?;
                }
                write!(f, "; {} from there on cannot be read", units::bytes(*lost))
            }
            Self::BadFeatures(names) => match &names[..] {
                [name] => write!(f, "the {name} section is damaged and is not used"),
                _ => write!(f, "these sections are damaged and are not used: {}", names.join(", ")),
            },
            Self::Aux { bytes } => {
                write!(
                    f,
                    "{} of AUX data (hardware trace) skipped: perf script --itrace decodes it, pmc does not",
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
                    "{} samples are longer or shorter than their fields, the first at offset {first:#x}: {}; \
                     their sizes are damaged, and {} in them, perhaps of other records, cannot be read",
                    units::thousands(*count),
                    kind_words(kind::SAMPLE),
                    units::bytes(*bytes)
                )
            }
            Self::MissingFile(path) => {
                write!(f, "{} cannot be read; its records are missing", path.display())
            }
            Self::BadCompression { at } => {
                write!(f, "the compressed records are damaged at offset {at:#x}; what follows cannot be read")
            }
        }
    }
}
