//! Why a file of another format cannot be imported.

use std::fmt;

/// Why an import failed. The caller adds the file's name and format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImportError {
    /// A line is invalid.
    Line {
        /// Number of the line, starting at 1.
        line: usize,
        /// The rule that it breaks.
        what: String,
    },
    /// A part of a binary file is invalid.
    Byte {
        /// Offset of the part in the unpacked file.
        at: usize,
        /// The rule that it breaks.
        what: String,
    },
    /// A record of a file without lines is invalid.
    Item {
        /// What the format calls the record, such as `event`.
        kind: &'static str,
        /// Number of the record, starting at 0.
        number: usize,
        /// The rule that it breaks.
        what: String,
    },
    /// The records at a time of a trace do not fit together.
    Time {
        /// Nanoseconds.
        ns: u64,
        /// The rule that they break.
        what: String,
    },
    /// The file is invalid as a whole.
    File(String),
    /// The file is valid, but contains nothing that pmc can import.
    Unsupported(String),
    /// The file exceeds a limit of pmc.
    Limit { what: &'static str, most: u64 },
}

impl ImportError {
    pub(crate) fn line(line: usize, what: impl Into<String>) -> Self {
        Self::Line { line, what: what.into() }
    }

    pub(crate) fn byte(at: usize, what: impl Into<String>) -> Self {
        Self::Byte { at, what: what.into() }
    }

    pub(crate) fn item(kind: &'static str, number: usize, what: impl Into<String>) -> Self {
        Self::Item { kind, number, what: what.into() }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// Whether the file breaks a rule of its format, at least as far as pmc knows the format.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Line { .. } | Self::Byte { .. } | Self::Item { .. } | Self::Time { .. } | Self::File(_) => {
                true
            }
            Self::Unsupported(_) | Self::Limit { .. } => false,
        }
    }

    pub(crate) fn file(what: impl Into<String>) -> Self {
        Self::File(what.into())
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { line, what } => write!(f, "line {line}: {what}"),
            Self::Byte { at, what } => write!(f, "byte {at}: {what}"),
            Self::Item { kind, number, what } => write!(f, "{kind} {number}: {what}"),
            Self::Time { ns, what } => write!(f, "at {:.3} µs: {what}", *ns as f64 / 1e3),
            Self::File(what) | Self::Unsupported(what) => f.write_str(what),
            Self::Limit { what, most } => write!(f, "{what}: more than pmc imports (at most {most})"),
        }
    }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> Self {
        // Its text ends with "at line N column N".
        Self::File(error.to_string())
    }
}
