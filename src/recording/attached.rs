//! A recording of events that a holder keeps: they become this recorder's, with all that their rings hold.
//!
//! Receives an entry and the plan of who wants it; hands on [`Sources`] as if they had been opened here. What
//! the events are was said when they were opened: the plan learns it from them.

use std::os::fd::OwnedFd;

use super::handover::{recorded, refuse_counted, scope, take, threads};
use super::open::held_options;
use super::plan::{FilePlan, SamplePlan, Scope};
use super::sources::Sources;
use crate::abi::attr::Flag;
use crate::abi::{Attr, sample_type};
use crate::counter::request::sampling::{CallGraph, SampleOptions};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::persistent::Entry;
use crate::persistent::client::{ask, misunderstood};
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Answer, Handover, Request};

/// An entry whose events are on their way to us.
pub(crate) struct Attached {
    directory: RunDirectory,
    entry: Entry,
    open: Handover,
    descriptors: Vec<OwnedFd>,
}

impl Attached {
    /// Has the holder, which keeps them all the same, hand them over, and has the plan agree with them: whom
    /// they are open on, and what their samples bring.
    ///
    /// # Errors
    /// What the holder refuses; what cannot be done with them.
    pub(crate) fn ask(
        directory: RunDirectory,
        entry: Entry,
        plan: &mut SamplePlan,
        file: &FilePlan,
    ) -> Result<Self> {
        let (answer, descriptors) = ask(&directory, &Request::Attach { entry: entry.id.to_string() })?;
        let Answer::Given(open) = answer else { return Err(misunderstood()) };
        refuse_counted(&open, entry.id)?;
        let events: Vec<Attr> = open.events.iter().map(recorded).map(|event| event.attr).collect();
        let all = |is_so: fn(&Attr) -> bool| events.iter().take(open.sampled).all(is_so);
        let any = |flag: Flag| events.iter().any(|attr| attr.get(flag));
        if file.snapshots && !all(|attr| attr.get(Flag::WriteBackward)) {
            return Err(Error::usage(format!(
                "-S: the rings of {} keep the oldest records",
                entry.definition.name
            ))
            .why("a snapshot needs ring buffers in overwrite mode")
            .try_this("pmc persist add … --overwrite, or pmc record --overwrite and adopt"));
        }
        // Who copies stacks must say whose they are: what keeps its copy belongs to another event. And what
        // is mapped must be known in time, which a ring that keeps the newest tells in the end.
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

    /// Takes them over, from where the holder has stopped reading. With the threads that are recorded; where
    /// all have ended, with these: the recording ends when it has looked for them.
    ///
    /// # Errors
    /// As [`take`].
    pub(crate) fn take(&mut self, scope: &Scope, host: &Host) -> Result<(Sources, Vec<Alive>)> {
        let rings = take(&self.open, std::mem::take(&mut self.descriptors))?;
        let recorded = match scope {
            Scope::Processes(tids) => {
                let (over, left): (Vec<u32>, Vec<u32>) = tids.iter().partition(|&&tid| rings.is_over(tid));
                let ended = |tid| Alive { tid, pid: tid, comm: String::new() };
                match left[..] {
                    [] => over.into_iter().map(ended).collect(),
                    _ => threads(&Scope::Processes(left), host),
                }
            }
            scope => threads(scope, host),
        };
        Ok((Sources::of(rings), recorded))
    }

    /// All is there that the recording needs: they are held no more. The rings, which are ours as well, keep
    /// what they hold.
    ///
    /// # Errors
    /// The holder's.
    pub(crate) fn settle(self) -> Result<()> {
        ask(&self.directory, &Request::Remove { entry: self.entry.id.to_string() }).map(drop)
    }
}
