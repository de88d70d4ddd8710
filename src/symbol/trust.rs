//! Why names or lines are missing, and what would bring them: the facts of a report's trust line.
//!
//! Received from the search for a module's files; hands on sentences. The remedy may ask the package
//! manager, so it is worked out only when it is shown.

use std::fmt;
use std::path::PathBuf;

use super::BuildId;

/// What is known about a module after its files were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The file whose bytes are the module's.
    pub binary: Option<PathBuf>,
    /// The separate file that gave symbols or lines.
    pub debug: Option<PathBuf>,
    /// Functions that its symbol tables name.
    pub symbols: usize,
    /// Whether it has line information and inlined functions.
    pub lines: bool,
    /// What is missing, worst first.
    pub missing: Vec<Missing>,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// No file at any of the places.
    File {
        /// Where the process had it.
        path: PathBuf,
        /// What the last attempt said, such as "Permission denied".
        said: String,
    },
    /// The file there now is another build.
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// What was recorded.
        recorded: BuildId,
        /// What the file has.
        found: Option<BuildId>,
    },
    /// The bytes are no ELF file that can be read.
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file has no symbol table but what dynamic linking needs.
    Stripped {
        /// The file.
        path: PathBuf,
        /// Its build-id.
        build_id: Option<BuildId>,
    },
    /// Names are there, lines and inlined functions are not.
    Lines {
        /// The file.
        path: PathBuf,
        /// Its build-id.
        build_id: Option<BuildId>,
    },
    /// The debug information cannot be read.
    BadLines {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `/proc/kallsyms` shows zeros instead of addresses.
    KernelAddressesHidden {
        /// Value of `kernel.kptr_restrict`.
        kptr_restrict: Option<u32>,
    },
    /// The recording was made by another kernel than the one that runs.
    OtherKernel {
        /// What was recorded.
        recorded: BuildId,
        /// The running kernel's.
        running: Option<BuildId>,
    },
    /// A JIT that left no symbols.
    PerfMap {
        /// The process.
        pid: u32,
        /// Where they were looked for and what was said.
        said: String,
    },
    /// Nothing was recorded about this code.
    Unknown,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, said } => write!(f, "{}: {said}", path.display()),
            Self::OtherBuild { path, recorded, found } => {
                write!(f, "{} is another build (recorded {recorded}, ", path.display())?;
                match found {
                    Some(found) => write!(f, "the file has {found})"),
                    None => write!(f, "the file has no build-id)"),
                }
            }
            Self::NotElf { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Stripped { path, .. } => write!(f, "{} is stripped", path.display()),
            Self::Lines { path, .. } => write!(f, "{} has no line information", path.display()),
            Self::BadLines { path, why } => {
                write!(f, "{}: the debug information cannot be read: {why}", path.display())
            }
            Self::KernelAddressesHidden { kptr_restrict: Some(level) } => {
                write!(f, "/proc/kallsyms hides addresses (kernel.kptr_restrict is {level})")
            }
            Self::KernelAddressesHidden { kptr_restrict: None } => {
                f.write_str("/proc/kallsyms hides addresses")
            }
            Self::OtherKernel { recorded, running } => {
                write!(f, "recorded with another kernel (recorded {recorded}, ")?;
                match running {
                    Some(running) => write!(f, "running {running})"),
                    None => f.write_str("the running one does not say its build-id)"),
                }
            }
            Self::PerfMap { pid, said } => write!(f, "process {pid} left no perf map: {said}"),
            Self::Unknown => f.write_str("nothing is known about this code"),
        }
    }
}
