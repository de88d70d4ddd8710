//! Collects and numbers the distinct addresses in a recording, so that `script` can resolve them before
//! printing.
//!
//! Returns [`Addresses`], which maps an address in an epoch to its number. Unlike [`super::samples`], this
//! module keeps no stacks and computes no sums.

use super::call_chain::Unwind;
use super::history::Timestamp;
use super::intern::DistinctValues;
use super::location::{self, SampledAddress};
use super::order::SampleUnwinding;
use super::samples::{CallChain, ChainCompleter, SampleQuery};
use super::{Session, chunks};
use pmc_perfdata::perfdata;
use pmc_perfdata::record::{RawRecord, Sample};

/// Distinct addresses, indexed by number.
pub(crate) type Addresses = DistinctValues<SampledAddress>;

/// The kinds of addresses to collect.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AddressKinds {
    /// The sampled address and its callers.
    pub(crate) chains: bool,
    /// Both ends of branches.
    pub(crate) branches: bool,
    /// Data addresses.
    pub(crate) data: bool,
    /// Whether to look up each caller by an address inside its call, because the instruction after the call
    /// may belong to another source line. perf looks up the return address itself. If the next function
    /// starts there, perf prints that function's name.
    pub(crate) in_calls: bool,
}

impl AddressKinds {
    /// Whether to look up the callers of this chain one byte before their return addresses.
    pub(crate) fn steps_back(self, chain: &CallChain<'_>) -> bool {
        self.in_calls && !chain.in_calls
    }
}

/// Collects all requested addresses of the selected samples.
///
/// # Errors
/// Fails if the file cannot be read.
pub(crate) fn collect(
    session: &Session,
    query: &SampleQuery,
    kinds: AddressKinds,
    unwind: Option<&mut dyn Unwind>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Addresses, perfdata::PerfdataError> {
    let completer = || ChainCompleter::new(query.ignore_stacks).joining(&session.deferred).like_perf(session);
    let new = || (Addresses::default(), completer());
    let look = |own: &mut _, raw: &RawRecord<'_>, position, unwound: &[u64]| {
        sample(session, query, kinds, raw, position, unwound, own);
    };
    let wants = |sample: &Sample<'_>, timestamp| query.accepts_sample_of(session, sample, timestamp);
    let unwind = unwind.filter(|_| kinds.chains && !query.ignore_stacks);
    let unwinding = unwind.map(|unwinder| SampleUnwinding { unwinder, wants: &wants });
    let parts = chunks::walk(session, unwinding, rayon::current_num_threads(), new, look, progress)?;
    let mut parts = parts.into_iter().map(|(found, _)| found);
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        part.all().iter().for_each(|address| {
            all.add(*address);
        });
    }
    Ok(all)
}

fn sample(
    session: &Session,
    query: &SampleQuery,
    kinds: AddressKinds,
    raw: &RawRecord<'_>,
    position: Timestamp,
    unwound: &[u64],
    (found, completer): &mut (Addresses, ChainCompleter<'_>),
) {
    let Some((_, sample)) = session.reader.layouts().sample(raw) else { return };
    let timestamp = session.timestamp(sample.time().map(|time| time.0), position);
    if !query.accepts_sample_of(session, &sample, timestamp) {
        return;
    }
    let thread = sample.thread().unwrap_or_default();
    let epoch = session.history.epoch(thread.pid, timestamp);
    if kinds.chains {
        let chain = completer.chain(&sample, unwound);
        let steps_back = kinds.steps_back(&chain);
        location::walk(chain.words, usize::MAX, |level, address, is_caller| {
            found.add(SampledAddress::code(epoch, level, address).returned_to(steps_back && is_caller));
        });
    }
    if kinds.branches
        && let Some(branches) = sample.parts().and_then(|parts| parts.branches)
    {
        for branch in branches.iter() {
            found.add(SampledAddress::in_user_or_kernel(epoch, branch.from, false));
            found.add(SampledAddress::in_user_or_kernel(epoch, branch.to, false));
        }
    }
    if kinds.data
        && let Some(addr) = sample.addr()
    {
        let epoch = session.history.data_epoch(thread.pid, timestamp);
        found.add(SampledAddress::in_user_or_kernel(epoch, addr, true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Epoch;
    use pmc_sys::abi::CpuMode;

    #[test]
    fn each_address_has_one_id_per_context() {
        let mut addresses = Addresses::default();
        let ask = |n: u64, epoch| SampledAddress::code(Epoch(epoch), CpuMode::User, n * 16);
        let numbers: Vec<u32> = (0..10_000).map(|n| addresses.add(ask(n / 2, 7 + (n % 2) as u32))).collect();
        for (n, number) in numbers.iter().enumerate() {
            assert_eq!(addresses.find(&ask(n as u64 / 2, 7 + n as u32 % 2)), Some(*number));
            assert_eq!(*number as usize, n);
        }
        assert_eq!(addresses.find(&ask(3, 9)), None);
        let kernel = SampledAddress::code(Epoch(7), CpuMode::Kernel, 16);
        assert_eq!((kernel.epoch, addresses.add(kernel)), (Epoch::KERNEL, 10_000));
        // The same address has separate entries for data and for code.
        let (data, code) = (
            SampledAddress::in_user_or_kernel(Epoch(7), 16, true),
            SampledAddress::in_user_or_kernel(Epoch(7), 16, false),
        );
        assert_ne!(addresses.add(data), addresses.add(code));
        assert_eq!(addresses.all()[10_000], kernel);
    }
}
