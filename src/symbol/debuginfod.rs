//! Files that debuginfod servers hand out by build-id: debug files, programs, sources.
//!
//! Receives what is missing here; hands on where it lies in the cache, which gdb, perf and elfutils share.
//! The asking is left to elfutils' own client, `debuginfod-find`: it keeps that cache, and knows proxies and
//! certificates. Decides how much and how long a download may be, where the user has not said so, and that
//! servers which do not answer are not asked again. Leaves to [`files`](super::files) when to ask.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::symbol::BuildId;

/// The program that asks.
const CLIENT: &str = "debuginfod-find";

/// What the client heeds, and what it is told where the user says nothing (seconds, bytes): by itself it
/// waits a minute and a half for a server that does not answer, and takes files of any size.
const LIMITS: [(&str, &str); 3] =
    [("DEBUGINFOD_TIMEOUT", "20"), ("DEBUGINFOD_MAXTIME", "180"), ("DEBUGINFOD_MAXSIZE", "1073741824")];

/// Which file of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact<'a> {
    /// The program or library itself.
    Executable,
    /// Its separate debug file.
    DebugInfo,
    /// A source file, by the path in the debug information.
    Source(&'a str),
}

/// The servers that may be asked.
#[derive(Debug)]
pub struct Debuginfod {
    /// As in `DEBUGINFOD_URLS`.
    urls: OsString,
    /// Why they are not asked any more.
    failed: OnceLock<String>,
}

impl PartialEq for Debuginfod {
    fn eq(&self, other: &Self) -> bool {
        self.urls == other.urls
    }
}

impl Eq for Debuginfod {}

impl Debuginfod {
    /// Servers as `DEBUGINFOD_URLS` lists them: prefixes of URLs with spaces between them. `None` where there
    /// is none in it.
    pub fn at(urls: impl Into<OsString>) -> Option<Self> {
        let urls: OsString = urls.into();
        let is_empty = urls.as_bytes().trim_ascii().is_empty();
        (!is_empty).then_some(Self { urls, failed: OnceLock::new() })
    }

    /// Those that the environment names.
    pub fn from_environment() -> Option<Self> {
        Self::at(std::env::var_os("DEBUGINFOD_URLS")?)
    }

    /// Why the servers are not asked any more.
    pub fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Asks for a file; where it lies, if there is one. May take as long as a download takes.
    pub fn fetch(&self, artifact: Artifact<'_>, build_id: BuildId) -> Option<PathBuf> {
        if self.failed.get().is_some() {
            return None;
        }
        let mut client = Command::new(CLIENT);
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
                let said = crate::error::kernel_words(&error);
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
        // That a server has no such file, or too large a one, says nothing about the next.
        if !["No such file or directory", "File too large"].iter().any(|of_file| said.ends_with(of_file)) {
            let said = said.strip_prefix("Server query failed: ").unwrap_or(said);
            let servers = self.urls.to_string_lossy();
            let _ =
                self.failed.set(format!("the debuginfod servers are not asked any more ({servers}): {said}"));
        }
        None
    }
}

/// The folder in which elfutils' client keeps files, by build-id.
pub(in crate::symbol) fn cache(folder: &dyn Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let home = folder("HOME");
    let old = home.as_ref().map(|home| home.join(".debuginfod_client_cache")).filter(|old| old.is_dir());
    folder("DEBUGINFOD_CACHE_PATH")
        .or(old)
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("debuginfod_client")))
        .or_else(|| Some(home?.join(".cache/debuginfod_client")))
}
