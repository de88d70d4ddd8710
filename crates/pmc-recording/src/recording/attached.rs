//! Records events that a holder keeps open. The recorder takes over the events and the contents of their
//! rings.
//!
//! Receives an entry and the plan of the recording; returns [`RecordSources`], as if this process had opened
//! the events. The events were configured when the holder opened them, so the plan is adjusted to them.

use std::os::fd::OwnedFd;

use super::handover::{recorded, refuse_counted, scope, take, threads};
use super::open::held_options;
use super::plan::{FilePlan, MeasurementScope, SamplePlan};
use super::sources::RecordSources;
use crate::persistent::PersistentEntry;
use crate::persistent::client::{ask, misunderstood};
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Handover, HolderAnswer, HolderRequest};
use pmc_events::counter::request::sampling::{CallGraph, SampleOptions};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;

/// An entry whose events are being handed over to this process.
pub struct HandedOverEntry {
    directory: RunDirectory,
    entry: PersistentEntry,
    open: Handover,
    descriptors: Vec<OwnedFd>,
}

impl HandedOverEntry {
    /// Requests the events from the holder, which also keeps them for now. Adjusts the plan's targets and
    /// sample fields to the events.
    ///
    /// # Errors
    /// Fails if the holder refuses, or if the plan does not match the events.
    pub fn ask(
        directory: RunDirectory,
        entry: PersistentEntry,
        plan: &mut SamplePlan,
        file: &FilePlan,
    ) -> Result<Self> {
        let (answer, descriptors) = ask(&directory, &HolderRequest::Attach { entry: entry.id.to_string() })?;
        let HolderAnswer::Given(open) = answer else { return Err(misunderstood()) };
        refuse_counted(&open, entry.id)?;
        let events: Vec<Attr> = open.events.iter().map(recorded).map(|event| event.attr).collect();
        let all = |is_so: fn(&Attr) -> bool| events.iter().take(open.sampled).all(is_so);
        let any = |flag: Flag| events.iter().any(|attr| attr.get(flag));
        if file.snapshots && !all(|attr| attr.get(Flag::WriteBackward)) {
            return Err(Error::usage(format!(
                "-S: the ring buffers of {} keep the oldest records",
                entry.definition.name
            ))
            .why("a snapshot needs ring buffers in overwrite mode")
            .try_this("pmc persist add … --overwrite, or pmc record --overwrite and adopt"));
        }
        // Unwinding while recording requires the event's id in each sample, because samples that keep their
        // stack copy are assigned to another event. It also requires the mappings in time, but a backward
        // ring is read only at the end.
        let tells_whose = all(|attr| attr.sample_type() & sample_type::IDENTIFIER != 0);
        plan.unwinds &= tells_whose && !any(Flag::WriteBackward);
        let copied = events.iter().map(Attr::sample_stack_user).max().unwrap_or(0);
        let has_chains = events.iter().any(|attr| attr.sample_type() & sample_type::CALLCHAIN != 0);
        plan.scope = scope(&open)?;
        plan.options = SampleOptions {
            call_graph: match copied {
                0 => has_chains.then_some(CallGraph::Fp),
                bytes => Some(CallGraph::Dwarf(bytes)),
            },
            max_stack: events.iter().map(Attr::sample_max_stack).max().filter(|most| *most > 0),
            data_mappings: any(Flag::MmapData),
            namespaces: any(Flag::Namespaces),
            cgroups: any(Flag::Cgroup),
            clock: events.iter().find(|attr| attr.get(Flag::UseClockid)).map(Attr::clockid),
            backward: any(Flag::WriteBackward),
            ..held_options()
        };
        Ok(Self { directory, entry, open: *open, descriptors })
    }

    /// Takes over the events and continues where the holder stopped reading. Also returns the threads to wait
    /// for. If all recorded threads have ended, it returns the ended threads, so the recording ends at its
    /// first check.
    ///
    /// # Errors
    /// Fails in the same cases as [`take`].
    pub fn take(&mut self, scope: &MeasurementScope, host: &Host) -> Result<(RecordSources, Vec<Alive>)> {
        let rings = take(&self.open, std::mem::take(&mut self.descriptors))?;
        let recorded = match scope {
            MeasurementScope::Processes(tids) => {
                let (over, left): (Vec<u32>, Vec<u32>) = tids.iter().partition(|&&tid| rings.is_over(tid));
                let ended = |tid| Alive { tid, pid: tid, comm: String::new() };
                match left[..] {
                    [] => over.into_iter().map(ended).collect(),
                    _ => threads(&MeasurementScope::Processes(left), host),
                }
            }
            scope => threads(scope, host),
        };
        Ok((RecordSources::from_rings(rings), recorded))
    }

    /// Asks the holder to drop the events, after the recording has taken everything it needs. The rings keep
    /// their contents, because this process has also mapped them.
    ///
    /// # Errors
    /// Fails if the holder refuses or does not answer.
    pub(crate) fn remove_entry(self) -> Result<()> {
        ask(&self.directory, &HolderRequest::Remove { entry: self.entry.id.to_string() }).map(drop)
    }
}
