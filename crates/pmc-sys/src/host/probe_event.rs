//! Probes that users define in tracefs (`uprobe_events`, `kprobe_events`), each of which is a tracepoint.
//!
//! Lists, adds and removes probes. Errors distinguish a missing file, missing permission, and a definition
//! that the kernel refuses. The kernel writes the reason for a refusal to `error_log`.

use std::fmt;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use super::Host;
use super::tracepoint::TracepointError;
use crate::error::kernel_message;

/// The kernel's two lists of probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeList {
    /// Probes in the kernel and its modules.
    Kernel,
    /// Probes in programs and libraries.
    Programs,
}

/// Both lists.
pub const PROBE_LISTS: [ProbeList; 2] = [ProbeList::Kernel, ProbeList::Programs];

/// A probe: `p:GROUP/NAME PLACE ARGUMENT=PLACE:TYPE …`, `r:…` for a function's return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeEvent {
    /// The list that contains the probe.
    pub list: ProbeList,
    /// Whether the probe fires when the function returns.
    pub returns: bool,
    /// The tracepoint's subsystem.
    pub group: String,
    /// The tracepoint's name. Several probes may share it.
    pub name: String,
    /// `FILE:OFFSET` or `FUNCTION+OFFSET`.
    pub place: String,
    /// The values that the probe records, in the kernel's notation.
    pub arguments: Vec<String>,
}

/// Why a list of probes cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeListError {
    /// Tracefs is not mounted, or cannot be read.
    #[error("{0}")]
    Tracefs(#[from] TracepointError),
    /// The kernel does not support such probes.
    #[error("this kernel has no {}", .0.file_name())]
    Unsupported(ProbeList),
    /// The file cannot be written.
    #[error("no permission to change {0}")]
    Denied(String),
    /// The kernel refused the definition.
    #[error("the kernel refuses `{definition}`: {why}")]
    Refused {
        /// The refused line.
        definition: String,
        /// The kernel's error, and the reason from its log.
        why: String,
        /// The kind of the error.
        kind: ErrorKind,
    },
}

impl ProbeList {
    /// The name of the list's file in tracefs.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Kernel => "kprobe_events",
            Self::Programs => "uprobe_events",
        }
    }
}

impl fmt::Display for ProbeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.returns { 'r' } else { 'p' };
        write!(f, "{kind}:{}/{} {}", self.group, self.name, self.place)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

impl ProbeEvent {
    /// Parses a line of a list. `None` if the line has an unknown form, which other tools may have written.
    pub fn parse(list: ProbeList, line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (kind, name) = words.next()?.split_once(':')?;
        let (group, name) = name.split_once('/')?;
        // The number after `r` is the maximum number of concurrent calls.
        let returns = kind.starts_with('r');
        if !returns && kind != "p" {
            return None;
        }
        Some(Self {
            list,
            returns,
            group: group.to_owned(),
            name: name.to_owned(),
            place: words.next()?.to_owned(),
            arguments: words.map(str::to_owned).collect(),
        })
    }

    /// The program, and the offset of the probe in it; `None` for a kernel probe.
    pub fn file_and_offset(&self) -> Option<(&str, u64)> {
        let (file, offset) = self.place.rsplit_once(':').filter(|_| self.list == ProbeList::Programs)?;
        // The offset of a reference counter may follow in parentheses.
        let offset = offset.split('(').next()?.strip_prefix("0x")?;
        Some((file, u64::from_str_radix(offset, 16).ok()?))
    }
}

impl Host {
    fn probe_file(&self, list: ProbeList) -> Result<PathBuf, TracepointError> {
        Ok(self.tracefs()?.with_file_name(list.file_name()))
    }

    /// Reads a list of probes. The list is empty if the kernel does not support this kind of probe.
    ///
    /// # Errors
    /// Returns [`TracepointError::NotMounted`] or [`TracepointError::Denied`].
    pub fn probe_events(&self, list: ProbeList) -> Result<Vec<ProbeEvent>, TracepointError> {
        let path = self.probe_file(list)?;
        match read_to_string(&path) {
            Ok(text) => Ok(text.lines().filter_map(|line| ProbeEvent::parse(list, line)).collect()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(TracepointError::Denied(path.display().to_string()))
            }
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Tracepoints that are probes in programs (`perf probe -x`), as `subsystem:name`; empty if the list
    /// cannot be read.
    pub fn program_probes(&self) -> Vec<String> {
        let probes = self.probe_events(ProbeList::Programs).unwrap_or_default();
        probes.into_iter().map(|probe| format!("{}:{}", probe.group, probe.name)).collect()
    }

    /// Opens a list of probes for modification.
    ///
    /// # Errors
    /// May fail with any [`ProbeListError`] except [`ProbeListError::Refused`].
    pub fn change_probes(&self, list: ProbeList) -> Result<ProbeChanges, ProbeListError> {
        let path = self.probe_file(list)?;
        match OpenOptions::new().append(true).open(&path) {
            Ok(file) => Ok(ProbeChanges { file, errors: path.with_file_name("error_log") }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(ProbeListError::Unsupported(list)),
            Err(_) => Err(ProbeListError::Denied(path.display().to_string())),
        }
    }
}

/// A list of probes, open for modification.
#[derive(Debug)]
pub struct ProbeChanges {
    file: File,
    errors: PathBuf,
}

impl ProbeChanges {
    /// Adds a probe.
    ///
    /// # Errors
    /// Returns [`ProbeListError::Refused`].
    pub fn add(&mut self, probe: &ProbeEvent) -> Result<(), ProbeListError> {
        let definition = probe.to_string();
        self.order(&definition).map_err(|error| {
            let reason = self.logged_error(&definition);
            refused(definition, &error, reason)
        })
    }

    /// Removes all probes with this name.
    ///
    /// # Errors
    /// Returns [`ProbeListError::Refused`], with [`ErrorKind::ResourceBusy`] while an event with this name is
    /// open.
    pub fn remove(&mut self, group: &str, name: &str) -> Result<(), ProbeListError> {
        let definition = format!("-:{group}/{name}");
        self.order(&definition).map_err(|error| refused(definition, &error, None))
    }

    /// Writes a line. The kernel executes each write separately, so a line must not be split.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn order(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }

    /// The reason that the kernel logged for refusing a definition.
    fn logged_error(&self, definition: &str) -> Option<String> {
        logged_reason(&read_to_string(&self.errors).ok()?, definition)
    }
}

fn refused(definition: String, error: &io::Error, reason: Option<String>) -> ProbeListError {
    let words = kernel_message(error);
    let why = match reason {
        Some(reason) => format!("{words}: {reason}"),
        None => words,
    };
    ProbeListError::Refused { definition, why, kind: error.kind() }
}

/// Finds the last error for a definition in the kernel's log.
///
/// ```text
/// [  152.171] trace_uprobe: error: Invalid argument
///   Command: p:group/name /bin/true:0x10 x=%nonsense
///                                          ^
/// ```
fn logged_reason(log: &str, definition: &str) -> Option<String> {
    let (before, _) = log.rsplit_once(&format!("Command: {definition}\n"))?;
    let line = before.trim_end().lines().last()?;
    Some(line.split_once("error: ")?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_lists_are_read_and_written() {
        let text = "p:probe_a/f /tmp/a b:0x12";
        assert_eq!(ProbeEvent::parse(ProbeList::Programs, text).unwrap().place, "/tmp/a");
        let text = "p:probe_a/f /tmp/a:0x0000000000001179 n=-28(%bp):s32 s=+0(%di):string";
        let probe = ProbeEvent::parse(ProbeList::Programs, text).unwrap();
        assert_eq!(probe.file_and_offset(), Some(("/tmp/a", 0x1179)));
        assert_eq!(probe.to_string(), text);
        let probe = ProbeEvent::parse(ProbeList::Kernel, "r16:k/open do_sys_open+0 $retval").unwrap();
        assert_eq!((probe.returns, probe.file_and_offset()), (true, None));
        assert_eq!(ProbeEvent::parse(ProbeList::Kernel, "e:g/e a.b"), None);
    }

    #[test]
    fn reason_of_the_last_refusal_is_found() {
        let log = "[1.0] trace_uprobe: error: Old\n  Command: p:a/b c\n  ^\n\
                   [2.0] trace_uprobe: error: Invalid fetch argument\n  Command: p:a/b c\n          ^\n";
        assert_eq!(logged_reason(log, "p:a/b c").as_deref(), Some("Invalid fetch argument"));
        assert_eq!(logged_reason(log, "p:a/b d"), None);
    }
}
