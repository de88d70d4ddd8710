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
//! Takes the events of a measurement, and converts those that would make a fork fail. Returns probe
//! definitions that must outlive the counters. The kernel gives each definition a separate tracepoint, so
//! other tools' probes are not affected.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::event::{EventSource, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{WORDS, kind};
use pmc_sys::host::Host;
use pmc_sys::host::probe_event::{PROBE_LISTS, ProbeChanges, ProbeList};
use pmc_sys::sys::errno;

/// Bit in the `config` of both PMUs that requests a return probe. The upper half of `config` holds the offset
/// of a uprobe's semaphore (`include/linux/trace_events.h`).
const RETURNS: u64 = 1;

/// Number to use in the name of this process's next probe definition.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A probe in tracefs, removed on drop. The kernel only allows the removal once no event of the probe is
/// open.
#[derive(Debug)]
pub struct ProbeDefinition {
    changes: ProbeChanges,
    group: String,
    event: String,
}

impl Drop for ProbeDefinition {
    fn drop(&mut self) {
        // A leftover probe counts nothing; the next pmc process that defines a probe removes it.
        let _ = self.changes.remove(&self.group, &self.event);
    }
}

/// Result of [`make_inheritable`].
#[derive(Debug, Default)]
pub struct InheritableProbes {
    /// The probes in tracefs, which must outlive the counters.
    pub definitions: Vec<ProbeDefinition>,
    /// Names of the events that could not be converted, with the kernel's errors.
    pub refused: Vec<(String, io::Error)>,
    /// Number of removed probe definitions that killed pmc processes had left in tracefs.
    pub abandoned: usize,
}

/// Converts the probes among these events so that children can inherit them safely. An event that cannot be
/// converted is not inherited.
pub fn make_inheritable<'a>(
    events: impl Iterator<Item = &'a mut EventSpec>,
    inherit: bool,
    host: &Host,
) -> InheritableProbes {
    let mut probes = InheritableProbes::default();
    for spec in events.filter(|spec| spec.qualifiers.inherit.unwrap_or(inherit)) {
        let is_kernel = spec.pmu.as_deref() == Some("kprobe");
        let EventSource::Kernel(attr) = &mut spec.source else { continue };
        if attr.config1_text().is_none() {
            continue;
        }
        if probes.definitions.is_empty() {
            probes.abandoned += remove_abandoned(host);
        }
        match define(attr, is_kernel, host) {
            Ok((definition, id)) => {
                *attr = as_tracepoint(attr, id);
                (spec.pmu, spec.of_user_mode) = (Some("tracepoint".to_owned()), !is_kernel);
                probes.definitions.push(definition);
            }
            Err(error) => {
                spec.qualifiers.inherit = Some(false);
                attr.inherit_nothing();
                // EINVAL means that the kernel cannot place a probe there. Opening the event will then fail
                // with an explanation.
                if error.raw_os_error() != Some(errno::EINVAL) {
                    probes.refused.push((spec.name.clone(), error));
                }
            }
        }
    }
    probes
}

/// Defines in tracefs the kernel or user probe that the event requests from the PMU. Returns the probe and
/// its tracepoint ID.
fn define(attr: &Attr, is_kernel: bool, host: &Host) -> io::Result<(ProbeDefinition, u64)> {
    let what = attr.config1_text().map(|text| text.to_string_lossy()).unwrap_or_default();
    // The kernel splits the line at whitespace and treats everything after a # as a comment.
    if what.contains(|c: char| c.is_whitespace() || matches!(c, '#' | char::REPLACEMENT_CHARACTER)) {
        return Err(io::Error::other("a blank or # in the name"));
    }
    let (list, between) = if is_kernel { (ProbeList::Kernel, '+') } else { (ProbeList::Programs, ':') };
    let mut changes = host.change_probes(list).map_err(io::Error::other)?;
    let letter = if attr.config() & RETURNS != 0 { 'r' } else { 'p' };
    let semaphore = match attr.config() >> 32 {
        0 => String::new(),
        offset => format!("({offset:#x})"),
    };
    let group = format!("pmc_{}", std::process::id());
    loop {
        let event = format!("e{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let place = format!("{what}{between}{:#x}{semaphore}", attr.config2());
        match changes.order(&format!("{letter}:{group}/{event} {place}")) {
            // An earlier process with the same pid left this probe behind, and its events are still open
            // somewhere.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => {
                let definition = ProbeDefinition { changes, group, event };
                let id = host.tracepoint_id(&definition.group, &definition.event);
                return Ok((definition, id.map_err(io::Error::other)?));
            }
        }
    }
}

/// Returns attributes that request the probe's tracepoint and are otherwise unchanged.
fn as_tracepoint(attr: &Attr, id: u64) -> Attr {
    let mut tracepoint = Attr::new(kind::TRACEPOINT, id);
    for word in (2..WORDS).filter(|word| !matches!(word, 7 | 8)) {
        tracepoint.set_word(word, attr.word(word).unwrap_or_default());
    }
    tracepoint
}

/// Removes the probe definitions that killed pmc processes left behind, and returns their number.
fn remove_abandoned(host: &Host) -> usize {
    let mut count = 0;
    for list in PROBE_LISTS {
        for probe in host.probe_events(list).unwrap_or_default() {
            let pid = probe.group.strip_prefix("pmc_").and_then(|pid| pid.parse().ok());
            if pid.is_some_and(|pid: u32| !host.lives(pid))
                && let Ok(mut changes) = host.change_probes(list)
            {
                count += usize::from(changes.remove(&probe.group, &probe.name).is_ok());
            }
        }
    }
    count
}
