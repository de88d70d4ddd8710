//! What may help if names, lines or code are missing, as a value.
//!
//! A [`Hint`] says it in general words: this crate does not know the commands and options of the program that
//! prints the message. A program that has them matches the value.

use std::fmt;

use pmc_sys::error::Advice;

use crate::build_id::BuildId;

/// What may help.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "`Display` says what each one means")]
pub enum Hint {
    /// Advice about the file or the system.
    Text(String),
    ListFunctions,
    ListFunctionsOfTable,
    ProbeLibrary,
    LinesWithCode,
    VariablesInScope,
    VariablesOrOtherLine,
    OtherCache,
    ArchiveMore,
    BuildWithSymbols {
        id: BuildId,
    },
    RecordedFiles,
    FetchBuild {
        id: BuildId,
    },
    KernelImage {
        id: BuildId,
    },
    GivenKernelImage,
    AnyKernelImage,
    KernelMemory,
}

impl<T: Into<String>> From<T> for Hint {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl From<Hint> for Advice {
    fn from(hint: Hint) -> Self {
        Self::hint(hint)
    }
}

impl pmc_sys::error::Hint for Hint {}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::ListFunctions => f.write_str("choose one of the functions of the file"),
            Self::ListFunctionsOfTable => f.write_str("choose a function of its symbol table"),
            Self::ProbeLibrary => f.write_str("probe it in the library; ldd lists the libraries"),
            Self::LinesWithCode => f.write_str("choose a line with code"),
            Self::VariablesInScope => f.write_str("choose a variable that is in scope there"),
            Self::VariablesOrOtherLine => {
                f.write_str("choose a variable that is in scope there, or another line")
            }
            Self::OtherCache => f.write_str("use another directory for the build-id cache"),
            Self::ArchiveMore => f.write_str("write the archive again, with more code"),
            Self::BuildWithSymbols { id } => {
                write!(f, "build it with -g and do not strip it, or fetch the debug file with build-id {id}")
            }
            Self::RecordedFiles => f.write_str("specify the directory with the recorded machine's files"),
            Self::FetchBuild { id } => write!(f, "record again, or fetch the file with build-id {id}"),
            Self::KernelImage { id } => write!(f, "specify the kernel image with build-id {id}"),
            Self::GivenKernelImage => f.write_str("the given kernel image"),
            Self::AnyKernelImage => f.write_str("run as root, or specify the kernel image"),
            Self::KernelMemory => f.write_str(
                "run as root on a machine with /proc/kcore, or specify the kernel image or a copy of \
                 its memory",
            ),
        }
    }
}
