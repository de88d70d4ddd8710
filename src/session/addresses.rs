//! The distinct addresses of a recording, each once under a small number: what `script` must name before it prints.
//!
//! Receives the samples in any order, in parallel; hands on [`Addresses`]: a table that answers, for an address seen in
//! a layer, with its number. Unlike [`super::samples`] it keeps no stacks and adds nothing up.
//!
//! ```text
//!   slots  | (address, layer and level, number + 1) |  …   at the place that the hash says, or behind it; 0: free
//! ```

use std::hash::{BuildHasher, RandomState};

use super::samples::{Stacker, Unwind, Wanted};
use super::{Layer, Moment, Session, chunks, location};
use crate::abi::CpuMode;
use crate::perfdata;
use crate::record::RawRecord;

/// An address in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The stretch of the process's life; the kernel's for its addresses.
    pub layer: Layer,
    /// In which privilege it was seen.
    pub level: CpuMode,
    /// The address as it was recorded.
    pub address: u64,
    /// It is data, not code.
    pub is_data: bool,
    /// The call before it is meant: it is where that call returns to.
    pub in_call: bool,
}

impl Question {
    /// An address of code.
    pub fn code(layer: Layer, level: CpuMode, address: u64) -> Self {
        let layer = if level == CpuMode::User { layer } else { Layer::KERNEL };
        Self { layer, level, address, is_data: false, in_call: false }
    }

    /// An address that says itself whether it is the kernel's, as those of branches and data do.
    pub fn by_half(layer: Layer, data_layer: Option<Layer>, address: u64) -> Self {
        match (address >> 63, data_layer) {
            (0, None) => Self::code(layer, CpuMode::User, address),
            (0, Some(layer)) => Self { is_data: true, ..Self::code(layer, CpuMode::User, address) },
            _ => {
                Self { is_data: data_layer.is_some(), ..Self::code(Layer::KERNEL, CpuMode::Kernel, address) }
            }
        }
    }

    /// The same as where a call returns to, if it is.
    pub fn returned_to(self, in_call: bool) -> Self {
        Self { in_call, ..self }
    }

    fn tag(self) -> u64 {
        let kind = u64::from(self.in_call) << 1 | u64::from(self.is_data);
        u64::from(self.layer.0) << 8 | (self.level as u64) << 2 | kind
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    address: u64,
    tag: u64,
    /// Number + 1.
    number: u32,
}

/// Distinct addresses.
#[derive(Debug)]
pub struct Addresses {
    slots: Vec<Slot>,
    asked: Vec<Question>,
    /// Foreign addresses must not be able to choose their slots.
    factor: u64,
}

impl Default for Addresses {
    fn default() -> Self {
        let factor = RandomState::new().hash_one(0u8) | 1;
        Self { slots: vec![Slot::default(); 1 << 12], asked: Vec::new(), factor }
    }
}

impl Addresses {
    #[inline]
    fn place(&self, address: u64, tag: u64) -> usize {
        // The high bits of the product depend on all bits of the factors.
        let mixed = (address ^ tag.rotate_right(20)).wrapping_mul(self.factor);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }

    /// The number of an address that may be there.
    #[inline]
    pub fn find(&self, question: Question) -> Option<u32> {
        let tag = question.tag();
        let mut at = self.place(question.address, tag);
        loop {
            let slot = &self.slots[at];
            if slot.number == 0 {
                return None;
            }
            if slot.address == question.address && slot.tag == tag {
                return Some(slot.number - 1);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// The number of an address.
    #[inline]
    pub fn add(&mut self, question: Question) -> u32 {
        match self.find(question) {
            Some(number) => number,
            None => self.insert(question),
        }
    }

    #[cold]
    fn insert(&mut self, question: Question) -> u32 {
        self.asked.push(question);
        let number = self.asked.len() as u32;
        if self.asked.len() * 2 > self.slots.len() {
            self.slots = vec![Slot::default(); self.slots.len() * 2];
            for at in 0..self.asked.len() {
                self.put(self.asked[at], at as u32 + 1);
            }
        } else {
            self.put(question, number);
        }
        number - 1
    }

    fn put(&mut self, question: Question, number: u32) {
        let tag = question.tag();
        let mut at = self.place(question.address, tag);
        while self.slots[at].number != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = Slot { address: question.address, tag, number };
    }

    /// All, by number.
    pub fn all(&self) -> &[Question] {
        &self.asked
    }
}

/// Which addresses are looked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kinds {
    /// Of the sample and its callers.
    pub chains: bool,
    /// Both ends of branches.
    pub branches: bool,
    /// Of data.
    pub data: bool,
    /// Callers are looked up in their call: the line behind it may be another, and belongs to what happens after. perf looks
    /// up the return address as it is: where it is the next function's first, perf says so. That is right, too, where the
    /// unwinder has stepped back already.
    pub in_calls: bool,
}

/// Finds all addresses of the samples that are wanted (threads' names are not looked at: a few too many do no harm).
///
/// # Errors
/// When the file cannot be read.
pub fn collect(
    session: &Session,
    wanted: &Wanted,
    kinds: Kinds,
    unwind: Option<&dyn Unwind>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Addresses, perfdata::Error> {
    let new = || (Addresses::default(), Stacker::new(wanted, unwind).joining(&session.deferred));
    let look = |(found, stacker): &mut (Addresses, Stacker<'_>), raw: &RawRecord<'_>, position| {
        sample(session, wanted, kinds, raw, position, stacker, found);
    };
    let parts = chunks::walk(session, rayon::current_num_threads(), new, look, progress)?;
    let mut parts = parts.into_iter().map(|(found, _)| found);
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        part.asked.iter().for_each(|question| {
            all.add(*question);
        });
    }
    Ok(all)
}

fn sample(
    session: &Session,
    wanted: &Wanted,
    kinds: Kinds,
    raw: &RawRecord<'_>,
    position: Moment,
    stacker: &mut Stacker<'_>,
    found: &mut Addresses,
) {
    let Some((_, sample)) = session.reader.layouts().sample(raw) else { return };
    let time = sample.time().map(|time| time.0);
    let thread = sample.thread().unwrap_or_default();
    let is_asked =
        |list: &Option<rustc_hash::FxHashSet<i32>>, id| list.as_ref().is_none_or(|l| l.contains(&id));
    if !wanted.takes(&sample, time)
        || !is_asked(&wanted.pids, thread.pid)
        || !is_asked(&wanted.tids, thread.tid)
    {
        return;
    }
    let moment = if session.has_time { time.unwrap_or(0) } else { position };
    let layer = session.history.layer(thread.pid, moment);
    if kinds.chains {
        let words = stacker.chain(&sample, layer);
        location::walk(words, usize::MAX, |level, address, is_caller| {
            found.add(Question::code(layer, level, address).returned_to(kinds.in_calls && is_caller));
        });
    }
    if kinds.branches
        && let Some(branches) = sample.parts().and_then(|parts| parts.branches)
    {
        for branch in branches.iter() {
            found.add(Question::by_half(layer, None, branch.from));
            found.add(Question::by_half(layer, None, branch.to));
        }
    }
    if kinds.data
        && let Some(addr) = sample.addr()
    {
        found.add(Question::by_half(layer, Some(session.history.data_layer(thread.pid, moment)), addr));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_number_in_each_context() {
        let mut addresses = Addresses::default();
        let ask = |n: u64, layer| Question::code(Layer(layer), CpuMode::User, n * 16);
        let numbers: Vec<u32> = (0..10_000).map(|n| addresses.add(ask(n / 2, 7 + (n % 2) as u32))).collect();
        for (n, number) in numbers.iter().enumerate() {
            assert_eq!(addresses.find(ask(n as u64 / 2, 7 + n as u32 % 2)), Some(*number));
            assert_eq!(*number as usize, n);
        }
        assert_eq!(addresses.find(ask(3, 9)), None);
        let kernel = Question::code(Layer(7), CpuMode::Kernel, 16);
        assert_eq!((kernel.layer, addresses.add(kernel)), (Layer::KERNEL, 10_000));
        // What is data in a process is another question than what is code there.
        let (data, code) =
            (Question::by_half(Layer(7), Some(Layer(7)), 16), Question::by_half(Layer(7), None, 16));
        assert_ne!(addresses.add(data), addresses.add(code));
        assert_eq!(addresses.all()[10_000], kernel);
    }
}
