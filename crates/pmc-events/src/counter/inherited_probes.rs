//! Makes probes inheritable by child processes.
//!
//! An event of the uprobe or kprobe PMU holds a pointer to its path or function name. With `inherit`, the
//! kernel follows that pointer again in the forking process, where it points to unrelated memory, so the
//! measured program's fork fails (EFAULT). A probe defined in tracefs has an ID instead and is inherited like
//! any tracepoint:
//!
//! ```text
//! uprobe PMU: config1 -> "/lib/libc.so.6", config2 = 0x98930
//!   └─► uprobe_events: p:pmc_4711/e0 /lib/libc.so.6:0x98930 ─► events/pmc_4711/e0/id: tracepoint 2326
//! kprobe PMU: config1 -> "vfs_read", config2 = 0
//!   └─► kprobe_events: p:pmc_4711/e1 vfs_read+0x0
//! ```
//! Takes the events of a measurement and changes the events that would break a fork. Returns probe
//! definitions that must outlive the counters. The kernel gives each definition a separate tracepoint, so
//! other tools' probes are not affected.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::event::{EventSource, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{WORDS, kind};
use pmc_sys::host::Host;
use pmc_sys::sys::errno;

/// Bit in the `config` of both PMUs that requests a return probe. The upper half holds the offset of a
/// uprobe's semaphore (`include/linux/trace_events.h`).
const RETURNS: u64 = 1;

/// The tracefs files for probe definitions.
const UPROBES: &str = "uprobe_events";
const KPROBES: &str = "kprobe_events";

/// Number of this process's next probe definition.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A probe in tracefs, removed on drop. The kernel allows the removal once no event of the probe is open.
#[derive(Debug)]
pub struct ProbeDefinition {
    list: PathBuf,
    name: String,
}

impl Drop for ProbeDefinition {
    fn drop(&mut self) {
        // A leftover probe counts nothing; the next pmc process that defines a probe removes it.
        let _ = order(&self.list, &format!("-:{}", self.name));
    }
}

/// Converts the probes among these events so children can inherit them safely. An event that cannot be
/// converted is not inherited. Its name is returned with the kernel's error.
pub fn make_inheritable<'a>(
    events: impl Iterator<Item = &'a mut EventSpec>,
    inherit: bool,
    host: &Host,
) -> (Vec<ProbeDefinition>, Vec<(String, io::Error)>) {
    let (mut definitions, mut left_out) = (Vec::new(), Vec::new());
    for spec in events.filter(|spec| spec.qualifiers.inherit.unwrap_or(inherit)) {
        let is_kernel = spec.pmu.as_deref() == Some("kprobe");
        let EventSource::Kernel(attr) = &mut spec.source else { continue };
        if attr.config1_text().is_none() {
            continue;
        }
        if definitions.is_empty() {
            remove_abandoned(host);
        }
        match define(attr, is_kernel, host) {
            Ok((definition, id)) => {
                *attr = as_tracepoint(attr, id);
                (spec.pmu, spec.of_user_mode) = (Some("tracepoint".to_owned()), !is_kernel);
                definitions.push(definition);
            }
            Err(error) => {
                spec.qualifiers.inherit = Some(false);
                attr.inherit_nothing();
                // On EINVAL, the kernel cannot place a probe there; opening the event will fail and explain
                // why.
                if error.raw_os_error() != Some(errno::EINVAL) {
                    left_out.push((spec.name.clone(), error));
                }
            }
        }
    }
    (definitions, left_out)
}

/// Returns the path of a tracefs file for probe definitions.
fn list(name: &str, host: &Host) -> io::Result<PathBuf> {
    host.tracefs().map(|events| events.with_file_name(name)).map_err(io::Error::other)
}

/// Defines the kernel or user probe that the event requests from the PMU. Returns the probe and its
/// tracepoint ID.
fn define(attr: &Attr, is_kernel: bool, host: &Host) -> io::Result<(ProbeDefinition, u64)> {
    let what = attr.config1_text().map(|text| text.to_string_lossy()).unwrap_or_default();
    // The kernel splits the line at whitespace and treats everything after a # as a comment.
    if what.contains(|c: char| c.is_whitespace() || matches!(c, '#' | char::REPLACEMENT_CHARACTER)) {
        return Err(io::Error::other("a blank or # in the name"));
    }
    let (list, between) = if is_kernel { (list(KPROBES, host)?, '+') } else { (list(UPROBES, host)?, ':') };
    let letter = if attr.config() & RETURNS != 0 { 'r' } else { 'p' };
    let semaphore = match attr.config() >> 32 {
        0 => String::new(),
        offset => format!("({offset:#x})"),
    };
    let group = format!("pmc_{}", std::process::id());
    loop {
        let event = format!("e{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{group}/{event}");
        let place = format!("{what}{between}{:#x}{semaphore}", attr.config2());
        match order(&list, &format!("{letter}:{name} {place}")) {
            // An earlier process with the same pid left this probe behind, and its events are still open
            // somewhere.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => {
                let definition = ProbeDefinition { list, name };
                let id = host.tracepoint_id(&group, &event).map_err(io::Error::other)?;
                return Ok((definition, id));
            }
        }
    }
}

/// Returns the request for the probe's tracepoint; the other attributes stay the same.
fn as_tracepoint(attr: &Attr, id: u64) -> Attr {
    let mut tracepoint = Attr::new(kind::TRACEPOINT, id);
    for word in (2..WORDS).filter(|word| !matches!(word, 7 | 8)) {
        tracepoint.set_word(word, attr.word(word).unwrap_or_default());
    }
    tracepoint
}

/// Removes the probe definitions that killed pmc processes left behind.
fn remove_abandoned(host: &Host) {
    for list in [UPROBES, KPROBES].iter().filter_map(|name| list(name, host).ok()) {
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        for name in text.lines().filter_map(|line| line.split_once(':')?.1.split(' ').next()) {
            let pid = name.strip_prefix("pmc_").and_then(|rest| rest.split_once('/')?.0.parse().ok());
            if pid.is_some_and(|pid: u32| !host.lives(pid)) {
                let _ = order(&list, &format!("-:{name}"));
            }
        }
    }
}

/// Appends one line to a tracefs file. Truncating the file would remove the probes of all tools.
fn order(list: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(list)?.write_all(format!("{line}\n").as_bytes())
}
