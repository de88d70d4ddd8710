//! Probes that children inherit.
//!
//! An event of the uprobe or kprobe PMU holds a pointer to its path or function. With `inherit` the kernel
//! follows it again in whoever forks, where it points to nothing of ours: the measured program's fork fails
//! (EFAULT). A probe that is defined in tracefs has a number instead, and is inherited as any tracepoint is:
//!
//! ```text
//! uprobe PMU: config1 -> "/lib/libc.so.6", config2 = 0x98930
//!   └─► uprobe_events: p:pmc_4711/e0 /lib/libc.so.6:0x98930 ─► events/pmc_4711/e0/id: tracepoint 2326
//! kprobe PMU: config1 -> "vfs_read", config2 = 0
//!   └─► kprobe_events: p:pmc_4711/e1 vfs_read+0x0
//! ```
//! Receives the events of a measurement; changes those that would do harm, and hands on what must outlive
//! their counters. The kernel's own tracepoint of a function is nobody else's: no other tool's probes change.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::Attr;
use crate::abi::attr::{WORDS, kind};
use crate::event::{EventSpec, Source};
use crate::host::Host;
use crate::sys::errno;

/// Bit of either PMU's `config` that asks for the return; the offset of a uprobe's semaphore stands in the
/// upper half (`include/linux/trace_events.h`).
const RETURNS: u64 = 1;

/// The files of tracefs that take definitions.
const UPROBES: &str = "uprobe_events";
const KPROBES: &str = "kprobe_events";

/// Definitions of one process are told apart by their number.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A probe in tracefs. It is removed when this is dropped, which the kernel allows once no event of it is
/// open.
#[derive(Debug)]
pub struct ProbeDefinition {
    list: PathBuf,
    name: String,
}

impl Drop for ProbeDefinition {
    fn drop(&mut self) {
        // One that is left behind counts nothing, and is removed by the next pmc that defines a probe.
        let _ = order(&self.list, &format!("-:{}", self.name));
    }
}

/// Lets children inherit the probes among these events without harm. An event that cannot be had so is not
/// inherited: those are handed on by name, with what the kernel said.
pub fn make_inheritable<'a>(
    events: impl Iterator<Item = &'a mut EventSpec>,
    inherit: bool,
    host: &Host,
) -> (Vec<ProbeDefinition>, Vec<(String, io::Error)>) {
    let (mut definitions, mut left_out) = (Vec::new(), Vec::new());
    for spec in events.filter(|spec| spec.qualifiers.inherit.unwrap_or(inherit)) {
        let is_kernel = spec.pmu.as_deref() == Some("kprobe");
        let Source::Kernel(attr) = &mut spec.source else { continue };
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
                // A place that the kernel takes no probe at, which its PMU will refuse and explain.
                if error.raw_os_error() != Some(errno::EINVAL) {
                    left_out.push((spec.name.clone(), error));
                }
            }
        }
    }
    (definitions, left_out)
}

/// A file of tracefs that takes definitions.
fn list(name: &str, host: &Host) -> io::Result<PathBuf> {
    host.tracefs().map(|events| events.with_file_name(name)).map_err(io::Error::other)
}

/// Defines the probe that the PMU was asked for, in the kernel or in a program; its number.
fn define(attr: &Attr, is_kernel: bool, host: &Host) -> io::Result<(ProbeDefinition, u64)> {
    let what = attr.config1_text().map(|text| text.to_string_lossy()).unwrap_or_default();
    // The kernel takes the line apart at blanks, and everything after a # for a comment.
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
            // Of a process that had our number before, and whose events are still open somewhere.
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

/// The same request for a tracepoint.
fn as_tracepoint(attr: &Attr, id: u64) -> Attr {
    let mut tracepoint = Attr::new(kind::TRACEPOINT, id);
    for word in (2..WORDS).filter(|word| !matches!(word, 7 | 8)) {
        tracepoint.set_word(word, attr.word(word).unwrap_or_default());
    }
    tracepoint
}

/// Removes what processes left behind that were killed.
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

/// One line for the kernel. The file must not be truncated: that would remove everybody's probes.
fn order(list: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).open(list)?.write_all(format!("{line}\n").as_bytes())
}
