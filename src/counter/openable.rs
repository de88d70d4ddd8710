//! Whether an event opens here: tried once for each distinct request, remembered for the rest of the run.
//!
//! Receives specs and [`Facts`]; hands on [`Opens`]. Tracepoints are not tried one by one, since the kernel takes some 35 ms to
//! close each: the first one that is asked about stands for all, and its descriptor stays open until the whole is dropped, so that
//! the answer is not kept waiting.

use std::collections::HashMap;

use super::facts::Facts;
use super::refusal::{self, Asked, Refusal, RefusalKind};
use crate::abi::Attr;
use crate::abi::attr::{Flag, kind};
use crate::event::{EventSpec, Source};
use crate::sys::perf::{EventFd, OpenTarget};

/// Whether an event opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opens {
    /// As it is.
    Yes,
    /// Only in user mode: why not in the kernel.
    UserOnly(Refusal),
    /// Not: why.
    No(Refusal),
}

/// Tries events for our own process, or on a CPU where the PMU counts a whole device.
#[derive(Debug)]
pub struct Prober<'f> {
    facts: &'f Facts,
    known: HashMap<(Attr, Option<u32>), Opens>,
    tracepoint: Option<Opens>,
    held: Vec<EventFd>,
}

impl<'f> Prober<'f> {
    /// Nothing is tried yet.
    pub fn new(facts: &'f Facts) -> Self {
        Self { facts, known: HashMap::new(), tracepoint: None, held: Vec::new() }
    }

    /// Whether a tracepoint is held open, whose closing the kernel takes its time for.
    pub fn is_slow_to_close(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether this event opens.
    pub fn opens(&mut self, spec: &EventSpec) -> Opens {
        let Source::Kernel(attr) = &spec.source else { return Opens::Yes };
        if spec.persistent {
            return Opens::No(Refusal {
                errno: None,
                kind: RefusalKind::NoHardware,
                cause: "no holder of persistent events runs, and the kernel has none".to_owned(),
                remedy: String::new(),
            });
        }
        if attr.kind() == kind::TRACEPOINT {
            if let Some(opens) = &self.tracepoint {
                return opens.clone();
            }
            let opens = self.try_levels(attr, None, true);
            self.tracepoint = Some(opens.clone());
            return opens;
        }
        let device =
            spec.uncore.then(|| spec.cpus.as_ref()?.intersection(&self.facts.online).first()).flatten();
        let key = (attr.clone(), device);
        if let Some(opens) = self.known.get(&key) {
            return opens.clone();
        }
        let opens = self.try_levels(attr, device, false);
        self.known.insert(key, opens.clone());
        opens
    }

    fn try_levels(&mut self, attr: &Attr, cpu: Option<u32>, hold: bool) -> Opens {
        let refusal = match self.open(attr, cpu, hold) {
            Ok(()) => return Opens::Yes,
            Err(refusal) => refusal,
        };
        let mut in_user = attr.clone();
        in_user.set(Flag::ExcludeKernel, true);
        // A tracepoint fires in the kernel: in user mode it would open and never count.
        let worth =
            refusal.kind == RefusalKind::NoPrivilege && cpu.is_none() && attr.kind() != kind::TRACEPOINT;
        if !worth || attr.get(Flag::ExcludeKernel) {
            return Opens::No(refusal);
        }
        match self.open(&in_user, cpu, false) {
            Ok(()) => Opens::UserOnly(refusal),
            // Privilege was only the first obstacle; this one would remain.
            Err(deeper) if deeper.kind == RefusalKind::NoHardware => Opens::No(deeper),
            Err(_) => Opens::No(refusal),
        }
    }

    fn open(&mut self, attr: &Attr, cpu: Option<u32>, hold: bool) -> Result<(), Refusal> {
        let place = cpu.map_or(OpenTarget::Task(0), OpenTarget::Cpu);
        let mut wanted = attr.clone();
        wanted.set(Flag::Disabled, true);
        let opened = EventFd::open(&wanted, place, None).or_else(|error| {
            // Where host and guest cannot be told apart nobody has asked for it: counting leaves it out as well.
            wanted.set(Flag::ExcludeGuest, false);
            if wanted.get(Flag::ExcludeHost) || !attr.get(Flag::ExcludeGuest) {
                return Err(error);
            }
            EventFd::open(&wanted, place, None).map_err(|_| error)
        });
        match opened {
            Ok(event) => {
                if hold {
                    self.held.push(event);
                }
                Ok(())
            }
            Err(error) => Err(refusal::explain(&error, &Asked::opening(attr, place), self.facts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::parse;
    use crate::host::Host;

    #[test]
    fn the_same_request_is_tried_once() {
        let host = Host::live();
        let facts = Facts::own(&host);
        let mut prober = Prober::new(&facts);
        let mut opens = |text: &str| {
            let groups = parse(text, &host).unwrap();
            prober.opens(&groups[0].events[0])
        };
        assert_eq!(opens("page-faults"), opens("faults"));
        assert_eq!(opens("duration_time"), Opens::Yes);
        let Opens::No(refusal) = opens("1:99") else { panic!("no kernel has software event 99") };
        assert!(refusal.cause.contains("99"), "{refusal:?}");
        assert_eq!(prober.known.len(), 2, "page-faults and faults are one request");
    }
}
