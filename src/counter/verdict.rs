//! What works on this machine for this user: every use of pmc is tried with the requests that it would make.
//!
//! Receives [`Facts`], a tracepoint's id, and a [`Kernel`] to try requests on (the real one, or a test's); hands on a
//! [`Verdict`] for each use. Nothing is concluded from settings alone: they only explain what the kernel refused.
//!
//! ```text
//! software event, user + kernel --ok--> + hardware event --ok--> works
//!      | refused                              | refused --> limited: hardware events missing
//!      v
//! user only --ok--> limited: kernel mode missing          (own processes)
//!      | refused
//!      v
//!    not
//! ```

use std::io;

use super::facts::Facts;
use super::refusal::{self, Asked, Call, Refusal};
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::{CPU_CLOCK, CPU_CYCLES};
use crate::abi::{Attr, branch_sample_type, sample_type};
use crate::sys::header_page::HeaderPage;
use crate::sys::perf::{EventFd, OpenTarget};

/// Whether a use works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// All of it.
    Works,
    /// With something missing.
    Limited,
    /// Not at all.
    Not,
}

/// What became of one use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What one would type.
    pub command: &'static str,
    /// What it is good for.
    pub purpose: &'static str,
    /// Whether it works.
    pub ability: Ability,
    /// What is missing (empty: all of it), and why.
    pub missing: Vec<(&'static str, Refusal)>,
}

/// Takes requests, as the kernel does.
pub trait Kernel {
    /// Opens an event, maps a ring of so many pages if that is not 0, and lets both go.
    ///
    /// # Errors
    /// The call that failed and what the kernel said.
    fn accepts(
        &mut self,
        attr: &Attr,
        place: OpenTarget<'_>,
        ring_pages: usize,
    ) -> Result<(), (Call, io::Error)>;
}

/// The kernel that runs us. Closing a tracepoint takes it some 35 ms, so those stay open as long as this lives.
#[derive(Debug, Default)]
pub struct ThisKernel {
    held: Vec<EventFd>,
}

impl ThisKernel {
    /// Whether a tracepoint is held open.
    pub fn is_slow_to_close(&self) -> bool {
        !self.held.is_empty()
    }
}

impl Kernel for ThisKernel {
    fn accepts(
        &mut self,
        attr: &Attr,
        place: OpenTarget<'_>,
        ring_pages: usize,
    ) -> Result<(), (Call, io::Error)> {
        let mut attr = attr.clone();
        attr.set(Flag::Disabled, true);
        let event = EventFd::open(&attr, place, None).map_err(|error| (Call::Open, error))?;
        if ring_pages > 0 {
            let bytes = (ring_pages as u64 + 1) * crate::sys::page_size() as u64;
            HeaderPage::map_with_ring(&event, ring_pages).map_err(|error| (Call::Map { bytes }, error))?;
        }
        if attr.kind() == kind::TRACEPOINT {
            self.held.push(event);
        }
        Ok(())
    }
}

/// What a use does with its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Count,
    Sample,
    CopyStack,
    Branches,
    Tracepoint,
}

/// Where a use counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Own,
    Others,
    Cpus,
}

/// The uses that are tried.
const USES: [(&str, &str, Use, Scope); 9] = [
    ("stat", "count a command", Use::Count, Scope::Own),
    ("stat -p", "count another user's process", Use::Count, Scope::Others),
    ("stat -a", "count all CPUs", Use::Count, Scope::Cpus),
    ("stat -e sched:*", "count tracepoints", Use::Tracepoint, Scope::Own),
    ("record", "sample a command", Use::Sample, Scope::Own),
    ("record -a", "sample all CPUs", Use::Sample, Scope::Cpus),
    ("record --call-graph dwarf", "stacks without frame pointers", Use::CopyStack, Scope::Own),
    ("record -b", "taken branches", Use::Branches, Scope::Own),
    ("top", "watch all CPUs", Use::Sample, Scope::Cpus),
];

/// Pages of the ring that sampling asks for: what `perf_event_mlock_kb` allows by default with 4 KiB pages.
const RING_PAGES: usize = 128;
/// Pages of the smallest useful ring.
const SMALL_RING_PAGES: usize = 8;
/// Samples a second asked for.
const FREQUENCY: u64 = 1000;

/// The fields of every sample.
const SAMPLE: u64 = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::CALLCHAIN;
/// One register that every architecture has by this number.
const ANY_REGISTER: u64 = 1 << 8;
/// Tries every use. `tracepoint`: the id of a common one, or why there is none.
pub fn verdicts(kernel: &mut dyn Kernel, facts: &Facts, tracepoint: &Result<u64, Refusal>) -> Vec<Verdict> {
    USES.iter()
        .map(|&(command, purpose, use_, scope)| {
            let mut judge = Judge { kernel, facts, use_, scope, missing: Vec::new() };
            let usable = match (use_, tracepoint) {
                (Use::Tracepoint, Err(refusal)) => judge.lacks("", refusal.clone()),
                (Use::Tracepoint, Ok(id)) => judge.tries("", &Attr::new(kind::TRACEPOINT, *id)),
                (Use::Branches, _) => judge.tries("", &judge.request(kind::HARDWARE, CPU_CYCLES, true)),
                _ => judge.climb(),
            };
            let ability = match (usable, judge.missing.is_empty()) {
                (false, _) => Ability::Not,
                (true, false) => Ability::Limited,
                (true, true) => Ability::Works,
            };
            Verdict { command, purpose, ability, missing: judge.missing }
        })
        .collect()
}

struct Judge<'a> {
    kernel: &'a mut dyn Kernel,
    facts: &'a Facts,
    use_: Use,
    scope: Scope,
    missing: Vec<(&'static str, Refusal)>,
}

impl Judge<'_> {
    /// The ladder drawn above; `false` if not even the lowest rung holds.
    fn climb(&mut self) -> bool {
        let both = self.request(kind::SOFTWARE, CPU_CLOCK, false);
        let mut user_only = false;
        if let Err(first) = self.accepts(&both, self.ring()) {
            let in_user = self.request(kind::SOFTWARE, CPU_CLOCK, true);
            if self.accepts(&in_user, 0).is_err() {
                return self.lacks("", first);
            }
            if self.ring() > 0 && self.accepts(&in_user, RING_PAGES).is_err() {
                match self.accepts(&in_user, SMALL_RING_PAGES) {
                    Ok(()) => self.lacks("large rings", first.clone()),
                    Err(none) => return self.lacks("", none),
                };
            }
            if self.accepts(&both, 0).is_err() {
                user_only = true;
                self.lacks("kernel mode", first);
            }
        }
        let hardware = self.request(kind::HARDWARE, CPU_CYCLES, user_only);
        self.tries("hardware events", &hardware);
        true
    }

    fn tries(&mut self, missing: &'static str, attr: &Attr) -> bool {
        match self.accepts(attr, 0) {
            Ok(()) => true,
            Err(refusal) => self.lacks(missing, refusal),
        }
    }

    fn lacks(&mut self, missing: &'static str, refusal: Refusal) -> bool {
        self.missing.push((missing, refusal));
        false
    }

    fn ring(&self) -> usize {
        if matches!(self.use_, Use::Sample | Use::CopyStack) { RING_PAGES } else { 0 }
    }

    /// The request that the use makes for this event.
    fn request(&self, kind: u32, config: u64, user_only: bool) -> Attr {
        let mut attr = Attr::new(kind, config);
        attr.set(Flag::ExcludeKernel, user_only);
        if matches!(self.use_, Use::Count | Use::Tracepoint) {
            return attr;
        }
        attr.set_freq(self.facts.settings.max_sample_rate.map_or(FREQUENCY, |most| most.clamp(1, FREQUENCY)));
        let mut sample = SAMPLE;
        match self.use_ {
            Use::CopyStack => {
                sample |= sample_type::REGS_USER | sample_type::STACK_USER;
                attr.set_sample_regs_user(ANY_REGISTER);
                attr.set_sample_stack_user(8192);
            }
            Use::Branches => {
                sample |= sample_type::BRANCH_STACK;
                attr.set_branch_sample_type(branch_sample_type::USER | branch_sample_type::ANY);
            }
            _ => {}
        }
        attr.set_sample_type(sample);
        attr
    }

    fn accepts(&mut self, attr: &Attr, ring_pages: usize) -> Result<(), Refusal> {
        let place = match self.scope {
            Scope::Own => OpenTarget::Task(0),
            Scope::Others => OpenTarget::Task(1),
            Scope::Cpus => OpenTarget::Cpu(self.facts.online.first().unwrap_or(0)),
        };
        self.kernel.accepts(attr, place, ring_pages).map_err(|(call, error)| {
            let asked = Asked { call, ..Asked::opening(attr, place) };
            refusal::explain(&error, &asked, self.facts)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::refusal::RefusalKind;
    use crate::host::saved;
    use crate::sys::credentials::Credentials;
    use crate::sys::errno;

    /// A kernel that answers by a rule.
    struct Rule<F>(F);

    impl<F: FnMut(&Attr, OpenTarget<'_>, usize) -> Result<(), i32>> Kernel for Rule<F> {
        fn accepts(
            &mut self,
            attr: &Attr,
            place: OpenTarget<'_>,
            ring: usize,
        ) -> Result<(), (Call, io::Error)> {
            (self.0)(attr, place, ring).map_err(|number| {
                let call =
                    if ring > 0 && number == errno::EPERM { Call::Map { bytes: 1 } } else { Call::Open };
                (call, io::Error::from_raw_os_error(number))
            })
        }
    }

    fn judge(
        machine: &str,
        uid: u32,
        rule: impl FnMut(&Attr, OpenTarget<'_>, usize) -> Result<(), i32>,
    ) -> Vec<Verdict> {
        let capabilities = if uid == 0 { u64::MAX } else { 0 };
        let facts = Facts::read(&saved(machine), Credentials { uid, capabilities, ..Credentials::default() });
        verdicts(&mut Rule(rule), &facts, &Ok(77))
    }

    fn of<'a>(verdicts: &'a [Verdict], command: &str) -> &'a Verdict {
        verdicts.iter().find(|verdict| verdict.command == command).unwrap()
    }

    #[test]
    fn a_kernel_that_takes_all() {
        let all = judge("two-sockets", 0, |_, _, _| Ok(()));
        assert!(all.iter().all(|verdict| verdict.ability == Ability::Works), "{all:?}");
    }

    #[test]
    fn a_machine_without_hardware_counters() {
        let all = judge("vm-without-pmu", 0, |attr, _, _| {
            if attr.kind() == kind::HARDWARE { Err(errno::ENOENT) } else { Ok(()) }
        });
        let stat = of(&all, "stat");
        assert_eq!(stat.ability, Ability::Limited);
        assert_eq!(stat.missing[0].0, "hardware events");
        assert!(stat.missing[0].1.cause.contains("virtual machine"));
        assert_eq!(of(&all, "record -b").ability, Ability::Not);
        assert_eq!(of(&all, "stat -e sched:*").ability, Ability::Works);
    }

    #[test]
    fn a_user_at_paranoid_2() {
        let all = judge("two-sockets", 1000, |attr, place, _| {
            let own = matches!(place, OpenTarget::Task(0));
            if own && attr.get(Flag::ExcludeKernel) { Ok(()) } else { Err(errno::EACCES) }
        });
        let stat = of(&all, "stat");
        assert_eq!(stat.ability, Ability::Limited);
        assert_eq!(stat.missing.len(), 1);
        assert_eq!(stat.missing[0].0, "kernel mode");
        for command in ["stat -a", "top", "stat -p"] {
            let verdict = of(&all, command);
            assert_eq!(verdict.ability, Ability::Not, "{command}");
            assert_eq!(verdict.missing[0].1.kind, RefusalKind::NoPrivilege);
        }
        assert_eq!(of(&all, "record").ability, Ability::Limited);
    }

    #[test]
    fn a_user_without_ring_memory() {
        let all =
            judge(
                "two-sockets",
                1000,
                |_, _, ring| {
                    if ring > SMALL_RING_PAGES { Err(errno::EPERM) } else { Ok(()) }
                },
            );
        let record = of(&all, "record");
        assert_eq!((record.ability, record.missing[0].0), (Ability::Limited, "large rings"));
        assert!(record.missing[0].1.remedy.contains("-m"));
        assert_eq!(of(&all, "stat").ability, Ability::Works);
    }
}
