//! A sample's call chain as a whole: markers where they are missing, the part that came later, the part that
//! is unwound from a copy of the stack.
//!
//! Receives samples; hands on words that are equal for equal chains. Unwinding itself is the caller's,
//! through [`Unwind`].

use super::Epoch;
use super::deferred::Deferred;
use super::intern::bytes;
use crate::abi::{CpuMode, context, sample_type};
use crate::record::{Parts, Sample, Words};

/// Makes [`Walk`]s.
pub trait Unwind: Sync {
    /// One for a thread.
    fn walker(&self) -> Box<dyn Walk + '_>;
}

/// Turns registers and a copy of the stack into a call chain.
pub trait Walk: Send {
    /// Appends the chain, innermost first, return addresses as they are.
    fn walk(&mut self, epoch: Epoch, parts: &Parts<'_>, chain: &mut Vec<u64>);
}

/// Makes a sample's chain whole: markers where they are missing, the user part unwound where the stack was
/// copied.
pub struct Stacker<'a> {
    walker: Option<Box<dyn Walk + 'a>>,
    deferred: Option<&'a Deferred>,
    ignore_callers: bool,
    chain: Vec<u64>,
    scratch: Vec<u8>,
}

impl<'a> Stacker<'a> {
    /// One for a thread. `ignore_callers`: chains are the sampled address alone.
    pub fn new(ignore_callers: bool, unwind: Option<&'a dyn Unwind>) -> Self {
        Self {
            walker: unwind.map(Unwind::walker),
            deferred: None,
            ignore_callers,
            chain: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Joins chains with their parts that came later.
    pub fn joining(self, deferred: &'a Deferred) -> Self {
        Self { deferred: (!deferred.is_empty()).then_some(deferred), ..self }
    }

    /// Context markers and addresses, innermost first; without a copy where the record has them so.
    pub fn chain<'s>(&'s mut self, sample: &Sample<'s>, epoch: Epoch) -> Words<'s> {
        let mode = sample.cpu_mode();
        let ip = sample.ip();
        let chain = if self.ignore_callers { None } else { sample.callchain() };
        let has_copy = sample.layout().sample_type() & sample_type::STACK_USER != 0 && !self.ignore_callers;
        let awaited = chain.and_then(Deferred::awaited);
        if !has_copy
            && awaited.is_none()
            && let Some(chain) = chain
        {
            let starts_well = chain.get(0).is_some_and(|word| word >= context::MAX)
                && chain.get(1).is_some_and(|word| word < context::MAX && ip.is_none_or(|ip| ip == word));
            if starts_well {
                return chain;
            }
        }
        self.chain.clear();
        self.chain.extend([context::marker(mode), ip.unwrap_or(0)]);
        if let Some(chain) = chain {
            // The last two words are then no addresses.
            let own = if awaited.is_some() { chain.first(chain.len() - 2) } else { chain };
            self.append(own, ip);
        }
        if let (Some(cookie), Some(deferred)) = (awaited, self.deferred) {
            let tid = sample.thread().map_or(0, |thread| thread.tid);
            if let Some(part) = deferred.part(tid, cookie) {
                let first = part.iter().position(|word| word < context::MAX).unwrap_or(part.len());
                if mode == CpuMode::User {
                    // The sample was taken in the process: its part begins with the sampled address.
                    self.chain.extend(part.iter().skip(first + 1));
                } else {
                    self.chain.push(context::marker(CpuMode::User));
                    self.chain.extend(part.iter().skip(first));
                }
            }
        }
        if has_copy && let (Some(walker), Some(parts)) = (&mut self.walker, sample.parts()) {
            unwound(walker.as_mut(), epoch, &parts, mode, &mut self.chain);
        }
        bytes(&self.chain, &mut self.scratch);
        Words::new(&self.scratch)
    }

    /// Puts a chain behind the sampled address, which stands in it again (or, with precise events, nearly
    /// so).
    fn append(&mut self, chain: Words<'_>, ip: Option<u64>) {
        let first = chain.iter().position(|word| word < context::MAX);
        let Some(first) = first else { return };
        let same_context = first == 0 || chain.get(first - 1) == self.chain.first().copied();
        let mut rest = chain.iter().skip(first);
        if same_context || ip.is_none() {
            if ip.is_none() {
                self.chain.clear();
                self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
                self.chain.push(chain.get(first).unwrap_or(0));
            }
            rest.next();
        } else {
            // The sample is in another context than its chain begins with.
            self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
        }
        self.chain.extend(rest);
    }
}

/// Adds the user part, unwound from the copied stack, behind the kernel's.
fn unwound(walker: &mut dyn Walk, epoch: Epoch, parts: &Parts<'_>, mode: CpuMode, chain: &mut Vec<u64>) {
    if mode == CpuMode::User {
        // The walk begins with the sampled address itself.
        let ip = chain.get(1).copied().unwrap_or(0);
        chain.truncate(1);
        walker.walk(epoch, parts, chain);
        if chain.len() == 1 {
            chain.push(ip);
        }
    } else {
        chain.push(context::marker(CpuMode::User));
        let before = chain.len();
        walker.walk(epoch, parts, chain);
        if chain.len() == before {
            chain.pop();
        }
    }
}
