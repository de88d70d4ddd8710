//! Explains why names or lines are missing and how to get them, for the trust line of reports.
//!
//! Takes the results of the search for a module's files; returns sentences. Remedies may query the package
//! manager, so they are computed only when they are shown.

use crate::hint::Hint;
use pmc_sys::error::Advice;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use super::build_id::BuildId;
use pmc_sys::sys::helper_program::helper;
use pmc_sys::sys::regular_file::path_in_process;

/// The result of the search for a module's files: which data was found, and which is missing.
///
/// The description of the files is boxed, which saves memory if few of a million modules have files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleDataQuality {
    found: Option<Box<FoundData>>,
    /// Missing data, worst first.
    pub missing: Vec<MissingDataReason>,
}

/// The files and data that were found for a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundData {
    /// The module's own file.
    pub binary: Option<PathBuf>,
    /// The separate debug file, if it provided symbols or lines.
    pub debug: Option<PathBuf>,
    /// Number of symbol table entries.
    pub symbols: usize,
    /// Whether the module has line information and inlined functions.
    pub lines: bool,
}

impl FoundData {
    const NOTHING: Self = Self { binary: None, debug: None, symbols: 0, lines: false };
}

impl ModuleDataQuality {
    /// Creates the result for a module with these files and missing data.
    pub(super) fn new(found: FoundData, missing: Vec<MissingDataReason>) -> Self {
        Self { found: Some(found.into()), missing }
    }

    /// Creates the result for a module for which nothing was found.
    pub fn lacking(reason: MissingDataReason) -> Self {
        Self { found: None, missing: vec![reason] }
    }

    /// Returns the files and data that were found.
    pub fn found(&self) -> &FoundData {
        self.found.as_deref().unwrap_or(&FoundData::NOTHING)
    }

    pub(super) fn found_mut(&mut self) -> &mut FoundData {
        self.found.get_or_insert_with(|| FoundData::NOTHING.into())
    }
}

/// Whether a file cannot be opened because it does not exist.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A reason for missing data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingDataReason {
    /// No file was found.
    File {
        /// The file's path in the process.
        path: Arc<Path>,
        /// The error of the last attempt. `Cow`, because a million files may be missing, nearly all with the
        /// same error.
        said: Cow<'static, str>,
    },
    /// The file exists but cannot be opened or read.
    Unreadable {
        /// The file.
        path: Arc<Path>,
        /// The kernel's error, for example "Too many open files".
        said: Box<str>,
    },
    /// The file now has a different build-id.
    OtherBuild {
        /// The file.
        path: PathBuf,
        /// The build-id in the recording.
        recorded: BuildId,
        /// The build-id of the file. Boxed, so that this variant does not determine the size of the enum.
        found: Option<Box<BuildId>>,
    },
    /// The file is not a valid ELF file.
    NotElf {
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// The file was truncated while pmc read it.
    Shortened {
        /// The file.
        path: PathBuf,
    },
    /// The file has no symbols except for dynamic ones.
    Stripped {
        /// The file.
        path: PathBuf,
        /// Its build-id.
        build_id: Option<BuildId>,
    },
    /// Names are available, but lines and inlined functions are not.
    Lines {
        /// The file.
        path: PathBuf,
        /// Its build-id.
        build_id: Option<BuildId>,
    },
    /// The debug information is invalid.
    BadLines {
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// No worker thread could be started to read lines and inlined functions.
    NoThreads,
    /// Code was not disassembled.
    Undecoded {
        /// The error.
        why: String,
    },
    /// `/proc/kallsyms` shows zeros instead of addresses.
    KernelAddressesHidden {
        /// Value of `kernel.kptr_restrict`.
        kptr_restrict: Option<u32>,
    },
    /// The recorded kernel is not the running kernel.
    OtherKernel {
        /// The build-id in the recording.
        recorded: BuildId,
        /// The build-id of the running kernel.
        running: Option<BuildId>,
    },
    /// The kernel image that the user specified (`--vmlinux`) is not used, for this reason.
    GivenVmlinux(Box<MissingDataReason>),
    /// A JIT has not published names.
    PerfMap {
        /// The process.
        pid: u32,
        /// The paths that were tried, with their errors.
        said: String,
    },
    /// The reason that an archive contains.
    Archived {
        /// The text of the reason.
        why: Box<str>,
        /// The remedy.
        remedy: Option<Box<str>>,
        /// See [`MissingDataReason::is_failure`].
        is_failure: bool,
    },
    /// The recording contains no information about this code.
    Unknown,
    /// The recording contains no mapping at these addresses.
    NotMapped,
}

impl MissingDataReason {
    /// Creates the reason for an existing file that pmc cannot read.
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::Unreadable { path: path.into(), said: pmc_sys::error::kernel_message(error).into() }
    }

    /// Creates the reason for a file that could not be opened: it is missing or unreadable.
    pub(super) fn of_error(path: &Path, error: &io::Error) -> Self {
        match is_absence(error) {
            true => Self::File { path: path.into(), said: pmc_sys::error::kernel_message(error).into() },
            false => Self::unreadable(path, error),
        }
    }

    /// Whether pmc failed to read a file that exists or that the user specified. A missing or stripped file
    /// is not a failure.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Unreadable { .. }
            | Self::NotElf { .. }
            | Self::Shortened { .. }
            | Self::BadLines { .. }
            | Self::NoThreads
            | Self::Undecoded { .. }
            | Self::GivenVmlinux(_) => true,
            Self::Archived { is_failure, .. } => *is_failure,
            Self::File { .. }
            | Self::OtherBuild { .. }
            | Self::Stripped { .. }
            | Self::Lines { .. }
            | Self::KernelAddressesHidden { .. }
            | Self::OtherKernel { .. }
            | Self::PerfMap { .. }
            | Self::Unknown
            | Self::NotMapped => false,
        }
    }

    /// The file whose debug package would contain the missing data.
    pub(super) fn lacks_package(&self) -> Option<&Path> {
        match self {
            Self::Stripped { path, .. } | Self::Lines { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns how to get the missing names, if pmc knows a way. May query the package manager.
    pub(crate) fn remedy(&self, packages: &DebugPackages) -> Option<Hint> {
        match self {
            Self::Stripped { path, build_id } | Self::Lines { path, build_id } => {
                if let Some(package) = packages.of(path) {
                    return Some(installation(&package, &package_sources(), &os_release()).into());
                }
                Some(match build_id {
                    Some(id) => Hint::BuildWithSymbols { id: *id },
                    None => "build it with -g and do not strip it".into(),
                })
            }
            Self::Unreadable { said, .. } if said.starts_with("Permission denied") => Some("run the report as root".into()),
            Self::File { .. } => Some(Hint::RecordedFiles),
            Self::OtherBuild { recorded, .. } => {
                Some(Hint::FetchBuild { id: *recorded })
            }
            Self::KernelAddressesHidden { .. } => Some("sysctl kernel.kptr_restrict=0, or run as root".into()),
            Self::OtherKernel { recorded, .. } => Some(Hint::KernelImage { id: *recorded }),
            Self::GivenVmlinux(why) => match &**why {
                Self::OtherBuild { recorded, .. } => Some(Hint::KernelImage { id: *recorded }),
                why => why.remedy(packages),
            },
            Self::PerfMap { .. } => Some(
                "make the runtime write one: node --perf-basic-prof, python -X perf, java -XX:+DumpPerfMapAtExit, \
                 erl +JPperf true, ruby --yjit-perf, php -d opcache.jit_debug=16"
                    .into(),
            ),
            Self::NoThreads => Some("raise the process and memory limits (ulimit -u, ulimit -v)".into()),
            Self::Archived { remedy, .. } => remedy.as_deref().map(Hint::from),
            Self::Shortened { .. } => Some("run the report again when the file is complete".into()),
            Self::Unreadable { .. }
            | Self::NotElf { .. }
            | Self::BadLines { .. }
            | Self::Undecoded { .. }
            | Self::Unknown
            | Self::NotMapped => None,
        }
    }
}

/// The Debian packages with the debug files of installed files, as far as known.
#[derive(Debug, Default)]
pub(crate) struct DebugPackages(Mutex<HashMap<PathBuf, Option<String>>>);

/// Maximum number of files in one call of the package manager. Their paths must fit into a command line.
const MOST_ASKED: usize = 500;

impl DebugPackages {
    /// Asks the package manager for files together, because each call reads the lists of all packages.
    pub(super) fn find<'a>(&self, files: impl Iterator<Item = &'a Path>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked = Vec::new();
        for file in files {
            if known.contains_key(file) {
                continue;
            }
            match std::fs::canonicalize(file).ok().filter(|real| may_be_packaged(real)) {
                Some(real) => asked.push((file, real)),
                None => {
                    known.insert(file.to_owned(), None);
                }
            }
        }
        for asked in asked.chunks(MOST_ASKED) {
            let said = owners(asked.iter().map(|(_, real)| real));
            known.extend(asked.iter().map(|(file, real)| ((*file).to_owned(), package_in(&said, real))));
        }
    }

    /// Returns the package for a file; `None` on other systems, and for files that do not belong to a
    /// package.
    fn of(&self, file: &Path) -> Option<String> {
        self.find(std::iter::once(file));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(file)?.clone()
    }
}

/// Whether packages use the file's folder.
fn may_be_packaged(real: &Path) -> bool {
    let is_packaged = ["/usr", "/opt", "/lib", "/bin", "/sbin"].iter().any(|root| real.starts_with(root));
    is_packaged && !real.starts_with("/usr/local")
}

/// Returns the path of a file in its package, if it may lack `/usr`, as on systems with a merged /usr.
fn shipped(real: &Path) -> Option<PathBuf> {
    real.strip_prefix("/usr").ok().map(|rest| Path::new("/").join(rest))
}

/// Returns what the package manager says about the owners of files.
fn owners<'a>(files: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut ask = helper("dpkg-query");
    let ask = ask.arg("--search").args(files.flat_map(|real| [Some(real.clone()), shipped(real)]).flatten());
    // Other systems have no dpkg-query.
    let said = ask.stdin(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&said).into_owned()
}

/// Extracts the package of a file from lines such as `libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6`.
fn package_in(said: &str, real: &Path) -> Option<String> {
    let is_file =
        |path: &str| Path::new(path) == real || shipped(real).is_some_and(|it| it == Path::new(path));
    let mut lines = said.lines().filter(|line| !line.starts_with("diversion "));
    let (packages, _) = lines.find_map(|line| line.split_once(": ").filter(|(_, path)| is_file(path)))?;
    let package = packages.split([':', ',']).next()?.trim();
    // The C library's debug package is in the main archive; all others are in the debug archive.
    Some(if package == "libc6" { "libc6-dbg".into() } else { format!("{package}-dbgsym") })
}

/// Returns the command that installs a debug package, given the package manager's sources and `os-release`.
/// If the debug archive is not among the sources, the command adds it.
fn installation(package: &str, sources: &str, os_release: &str) -> String {
    let install = format!("apt install {package}");
    let mut lines = sources.lines().filter(|line| !line.trim_start().starts_with('#'));
    let names_archive = |line: &str| {
        line.split_whitespace().any(|word| word.ends_with("-debug") || word.contains("ddebs.ubuntu.com"))
    };
    if !package.ends_with("-dbgsym") || lines.any(names_archive) {
        return install;
    }
    let value = |name: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.map(|value| value.trim_matches('"'))
    };
    // Derivatives of Ubuntu use Ubuntu's packages.
    let archive = match (value("UBUNTU_CODENAME"), value("ID"), value("VERSION_CODENAME")) {
        (Some(ubuntu), ..) => format!("http://ddebs.ubuntu.com {ubuntu} main universe"),
        (None, Some("debian"), Some(debian)) => {
            format!("http://deb.debian.org/debian-debug {debian}-debug main")
        }
        _ => return format!("{install}, from your distribution's archive of debug symbols"),
    };
    format!("{install}, after adding \"deb {archive}\" to /etc/apt/sources.list.d/debug.list and apt update")
}

/// Reads the package manager's sources.
fn package_sources() -> String {
    let files = std::fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten();
    let files = files.map(|file| file.path()).chain([PathBuf::from("/etc/apt/sources.list")]);
    files.filter_map(|file| std::fs::read_to_string(file).ok()).collect::<Vec<_>>().join("\n")
}

fn os_release() -> String {
    std::fs::read_to_string("/etc/os-release").unwrap_or_default()
}

impl fmt::Display for MissingDataReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, said } => write!(f, "{}: {said}", path_in_process(path).display()),
            Self::Unreadable { path, said } => write!(f, "{}: {said}", path_in_process(path).display()),
            Self::OtherBuild { path, recorded, found } => {
                write!(f, "{} is another build (recorded {recorded}, ", path_in_process(path).display())?;
                match found {
                    Some(found) => write!(f, "the file has {found})"),
                    None => write!(f, "the file has no build-id)"),
                }
            }
            Self::NotElf { path, why } => write!(f, "{}: {why}", path_in_process(path).display()),
            Self::Shortened { path } => {
                write!(
                    f,
                    "{} was truncated while pmc was reading it, or the disk returned an error",
                    path_in_process(path).display()
                )
            }
            Self::Stripped { path, .. } => write!(f, "{} is stripped", path_in_process(path).display()),
            Self::Lines { path, .. } => {
                write!(f, "{} has no line information", path_in_process(path).display())
            }
            Self::BadLines { path, why } => {
                write!(f, "{}: cannot read the debug information: {why}", path_in_process(path).display())
            }
            Self::NoThreads => f.write_str(
                "source lines and inlined functions are omitted because pmc could not start a thread",
            ),
            Self::Undecoded { why } => f.write_str(why),
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
                    None => f.write_str("the build-id of the running kernel is unknown)"),
                }
            }
            Self::GivenVmlinux(why) => {
                write!(f, "{} is not used: {why}", Advice::from(Hint::GivenKernelImage))
            }
            Self::PerfMap { pid, said } => write!(f, "process {pid} left no perf map: {said}"),
            Self::Archived { why, .. } => f.write_str(why),
            Self::Unknown => f.write_str("this code is unknown"),
            Self::NotMapped => f.write_str("nothing was mapped at these addresses"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_package_is_named() {
        let said = "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\nbash: /bin/bash\n\
                    diversion by dash from: /bin/sh\ndash: /bin/sh\nzlib1g:amd64, zlib1g:i386: /usr/lib/libz.so.1\n";
        let of = |path: &str| package_in(said, Path::new(path));
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libc.so.6").as_deref(), Some("libc6-dbg"));
        assert_eq!(of("/usr/bin/bash").as_deref(), Some("bash-dbgsym"));
        assert_eq!(of("/bin/sh").as_deref(), Some("dash-dbgsym"));
        assert_eq!(of("/usr/lib/libz.so.1").as_deref(), Some("zlib1g-dbgsym"));
        assert_eq!((of("/usr/bin/ba"), package_in("", Path::new("/usr/bin/bash"))), (None, None));
    }

    #[test]
    fn missing_debug_archive_is_named() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\nVERSION_CODENAME=bookworm\n";
        let usual = "deb http://deb.debian.org/debian bookworm main\n\
                     # deb http://deb.debian.org/debian-debug bookworm-debug main\n";
        let of = |package, sources: &str, release| installation(package, sources, release);
        assert_eq!(
            of("coreutils-dbgsym", usual, debian),
            "apt install coreutils-dbgsym, after adding \"deb http://deb.debian.org/debian-debug bookworm-debug \
             main\" to /etc/apt/sources.list.d/debug.list and apt update"
        );
        // The C library's symbols are in the main archive.
        assert_eq!(of("libc6-dbg", usual, debian), "apt install libc6-dbg");
        let deb822 = "Types: deb\nURIs: http://mirror/debian-debug\nSuites: bookworm-debug\n";
        assert_eq!(of("coreutils-dbgsym", deb822, debian), "apt install coreutils-dbgsym");

        let ubuntu = "ID=ubuntu\nVERSION_CODENAME=noble\nUBUNTU_CODENAME=noble\n";
        let said = of("coreutils-dbgsym", usual, ubuntu);
        assert!(said.contains("adding \"deb http://ddebs.ubuntu.com noble main universe\" to "), "{said}");
        let ddebs = "deb http://ddebs.ubuntu.com noble main";
        assert_eq!(of("coreutils-dbgsym", ddebs, ubuntu), "apt install coreutils-dbgsym");
        let other = of("coreutils-dbgsym", "", "ID=devuan\n");
        assert_eq!(other, "apt install coreutils-dbgsym, from your distribution's archive of debug symbols");
    }

    #[test]
    fn reasons_have_a_remedy() {
        let packages = &DebugPackages::default();
        let id = BuildId::parse("ab12").unwrap();
        let missing = MissingDataReason::Stripped { path: "/nowhere/prog".into(), build_id: Some(id) };
        assert_eq!(missing.to_string(), "/nowhere/prog is stripped");
        assert_eq!(missing.remedy(packages), Some(Hint::BuildWithSymbols { id }));
        let hidden = MissingDataReason::KernelAddressesHidden { kptr_restrict: Some(2) };
        assert_eq!(hidden.to_string(), "/proc/kallsyms hides addresses (kernel.kptr_restrict is 2)");
        assert!(hidden.remedy(packages).unwrap().to_string().contains("kptr_restrict=0"));
    }
}
