//! Downloads debug files, programs and sources from debuginfod servers, by build-id.
//!
//! Takes the build-id of a missing file; returns its path in the cache shared by gdb, perf and elfutils.
//! elfutils' client `debuginfod-find` does the download; it maintains this cache, and supports proxies and
//! certificates. This module sets default limits on the size and duration of downloads, and stops querying
//! servers that do not answer. [`files`](super::files) decides when to query a server.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::symbol::build_id::BuildId;
use pmc_sys::sys::helper_program::helper;

const CLIENT: &str = "debuginfod-find";

/// The client's limits (seconds, bytes), with pmc's defaults. The client's own defaults are to wait 90
/// seconds for an unresponsive server, and to accept files of any size.
const LIMITS: [(&str, &str); 3] =
    [("DEBUGINFOD_TIMEOUT", "20"), ("DEBUGINFOD_MAXTIME", "180"), ("DEBUGINFOD_MAXSIZE", "1073741824")];

/// The kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Artifact<'a> {
    /// The program or library.
    Executable,
    /// The separate debug file.
    DebugInfo,
    /// A source file, identified by its path in the debug information.
    Source(&'a str),
}

/// The servers to query.
#[derive(Debug)]
pub struct Debuginfod {
    /// The value of `DEBUGINFOD_URLS`.
    urls: OsString,
    /// Why pmc stopped querying the servers.
    failed: OnceLock<String>,
}

impl PartialEq for Debuginfod {
    fn eq(&self, other: &Self) -> bool {
        self.urls == other.urls
    }
}

impl Eq for Debuginfod {}

impl Debuginfod {
    /// Creates a client from a value of `DEBUGINFOD_URLS`: URL prefixes separated by spaces. `None` if there
    /// is no URL.
    pub fn at(urls: impl Into<OsString>) -> Option<Self> {
        let urls: OsString = urls.into();
        let is_empty = urls.as_bytes().trim_ascii().is_empty();
        (!is_empty).then_some(Self { urls, failed: OnceLock::new() })
    }

    /// Returns the servers that the environment configures.
    pub fn from_environment() -> Option<Self> {
        Self::at(std::env::var_os("DEBUGINFOD_URLS")?)
    }

    /// Returns the reason why pmc stopped querying the servers.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Downloads a file and returns its path, if a server has it. Blocks for the duration of the download.
    pub(crate) fn fetch(&self, artifact: Artifact<'_>, build_id: BuildId) -> Option<PathBuf> {
        if self.failed.get().is_some() {
            return None;
        }
        let mut client = helper(CLIENT);
        let word = match artifact {
            Artifact::Executable => "executable",
            Artifact::DebugInfo => "debuginfo",
            Artifact::Source(_) => "source",
        };
        client.args([word, &build_id.to_string()]);
        if let Artifact::Source(path) = artifact {
            client.arg(path);
        }
        client.env("DEBUGINFOD_URLS", &self.urls).env("LC_ALL", "C");
        client.env_remove("DEBUGINFOD_PROGRESS").env_remove("DEBUGINFOD_VERBOSE");
        for (limit, value) in LIMITS.iter().filter(|(limit, _)| std::env::var_os(limit).is_none()) {
            client.env(limit, value);
        }
        let output = match client.stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) => {
                let said = pmc_sys::error::kernel_message(&error);
                let _ = self.failed.set(format!("{CLIENT}: {said} (try: apt install debuginfod)"));
                return None;
            }
        };
        if output.status.success() {
            let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
            return Some(PathBuf::from(OsString::from_vec(path.to_vec())));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().last().unwrap_or_default();
        // Even if a server does not have this file, or the file is too large, the server may have the next
        // one.
        if !["No such file or directory", "File too large"].iter().any(|of_file| said.ends_with(of_file)) {
            let said = said.strip_prefix("Server query failed: ").unwrap_or(said);
            let servers = self.urls.to_string_lossy();
            let _ = self.failed.set(format!("pmc stopped asking the debuginfod servers ({servers}): {said}"));
        }
        None
    }
}

/// The folder in which elfutils' client caches files by build-id.
pub(in crate::symbol) fn cache(folder: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let home = folder("HOME");
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
    folder("DEBUGINFOD_CACHE_PATH")
        .or(old)
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("debuginfod_client")))
        .or_else(|| Some(home?.join(".cache/debuginfod_client")))
}
