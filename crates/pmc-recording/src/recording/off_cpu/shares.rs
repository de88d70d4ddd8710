//! Distributes the time of waits without stacks among the stacks of similar waits.
//!
//! Receives all waits. If some waits began while stacks were not sampled ([`thinning`](super::thinning)),
//! returns additional periods for some of the stacks. Waits are similar if they have the same thread, state
//! and waker, and a similar length, so the sums by thread, state and waker remain exact.
//!
//! ```text
//!   short waits of a thread   A 3 µs   ·  5 µs   A 4 µs   ·  3 µs       (· without a stack: 8 µs for A)
//!   long ones                 B 9 ms   ·  8 ms   C 9 ms   ·  8 ms       (8 ms for each of B and C)
//! ```

use rustc_hash::FxHashMap;

use super::wait::{StackSampling, SwitchStack, WaitOwner};
use pmc_perfdata::record::WaitPartner;

/// Number of stacks among which to distribute waits, unless the thread ends earlier.
const ENOUGH: usize = 32;

/// Maximum number of classes of similar waits that a thread has before its waits are distributed. Without
/// wakers, a thread has at most 128 classes.
const MOST_CLASSES: usize = 512;

/// The properties that similar waits of a thread have in common: state, partner and the logarithm of the
/// length.
type WaitClass = (bool, WaitPartner, u32);

/// An additional period for a stack; `None` if no stack is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitShare {
    pub(super) owner: WaitOwner,
    pub(super) stack: Option<SwitchStack>,
    pub(super) period: u64,
}

/// Waits by thread.
///
/// A stack's expected share equals its share of all waits, because stacks are sampled in randomly chosen
/// windows. If lengths were ignored, shares based on few stacks would depend on how often a stack waits
/// instead of how long. If no similar wait has a stack, the time goes to the thread's last stack from waits
/// of the closest length. If a thread has too many wakers, its waits are distributed early.
#[derive(Default)]
pub(super) struct WaitShares(FxHashMap<i32, ThreadWaits>);

#[derive(Default)]
struct ThreadWaits(FxHashMap<WaitClass, SimilarWaits>);

struct SimilarWaits {
    owner: WaitOwner,
    /// Sum of the waits that began while stacks were not sampled.
    without: u64,
    /// Number of the waits in `stacks`.
    count: usize,
    /// For each stack, the sum of its waits from windows, each multiplied by the number of waits that it
    /// represents.
    stacks: FxHashMap<SwitchStack, u128>,
    /// The stack of the most recent wait with a stack.
    last: Option<SwitchStack>,
}

impl WaitShares {
    /// Adds a wait without a stack, which began while stacks were not sampled. Returns the shares of earlier
    /// waits if the thread has too many classes.
    pub(super) fn add_without(&mut self, owner: WaitOwner, period: u64) -> Vec<WaitShare> {
        let shares = self.make_room(owner.thread.tid);
        let waits = self.waits(owner, period);
        waits.without = waits.without.saturating_add(period);
        shares
    }

    /// Adds a wait with a stack. Returns the shares of similar waits if there are enough stacks, and those of
    /// earlier waits if the thread has too many classes.
    pub(super) fn add(
        &mut self,
        owner: WaitOwner,
        stack: &SwitchStack,
        period: u64,
        sampling: StackSampling,
    ) -> Vec<WaitShare> {
        let mut shares = self.make_room(owner.thread.tid);
        let waits = self.waits(owner, period);
        if let StackSampling::Window(weight) = sampling {
            waits.count += 1;
            let weight = u128::from(period) * u128::from(weight);
            match waits.stacks.get_mut(stack) {
                Some(sum) => *sum = sum.saturating_add(weight),
                None => drop(waits.stacks.insert(stack.clone(), weight)),
            }
        }
        if waits.last.as_ref() != Some(stack) {
            waits.last = Some(stack.clone());
        }
        if waits.count >= ENOUGH {
            shares.extend(waits.shares());
        }
        shares
    }

    /// Returns the shares of a thread that has ended.
    pub(super) fn end(&mut self, tid: i32) -> Vec<WaitShare> {
        self.0.remove(&tid).map_or_else(Vec::new, ThreadWaits::shares)
    }

    /// Returns the shares of all threads.
    pub(super) fn finish(&mut self) -> Vec<WaitShare> {
        let mut threads: Vec<(i32, ThreadWaits)> = self.0.drain().collect();
        threads.sort_unstable_by_key(|(tid, _)| *tid);
        threads.into_iter().flat_map(|(_, waits)| waits.shares()).collect()
    }

    /// Distributes the waits of a thread that has too many classes.
    fn make_room(&mut self, tid: i32) -> Vec<WaitShare> {
        match self.0.get_mut(&tid) {
            Some(thread) if thread.0.len() >= MOST_CLASSES => thread.distribute(),
            _ => Vec::new(),
        }
    }

    fn waits(&mut self, owner: WaitOwner, period: u64) -> &mut SimilarWaits {
        // Each class is twice as long as the previous one.
        let length = period.checked_ilog2().unwrap_or(0);
        let thread = self.0.entry(owner.thread.tid).or_default();
        let class = (owner.is_runnable, owner.partner, length);
        let waits = thread.0.entry(class).or_insert_with(|| SimilarWaits::new(owner, None));
        waits.owner = owner;
        waits
    }
}

impl ThreadWaits {
    /// Distributes all waits, and removes their classes. For later waits, keeps a stack for each length.
    fn distribute(&mut self) -> Vec<WaitShare> {
        let old = std::mem::take(self);
        for ((is_runnable, _, length), waits) in old.0.iter().filter(|(_, waits)| waits.last.is_some()) {
            let owner = WaitOwner { partner: WaitPartner::Unknown, ..waits.owner };
            let class = (*is_runnable, owner.partner, *length);
            self.0.entry(class).or_insert_with(|| SimilarWaits::new(owner, waits.last.clone()));
        }
        old.shares()
    }

    fn shares(mut self) -> Vec<WaitShare> {
        let mut keys: Vec<WaitClass> = self.0.keys().copied().collect();
        keys.sort_unstable();
        let mut shares = Vec::new();
        for key @ (is_runnable, _, length) in &keys {
            let lasts = keys.iter().filter(|(other, ..)| other == is_runnable);
            let lasts = lasts.filter_map(|key| Some((key.2, self.0[key].last.as_ref()?)));
            let similar =
                lasts.min_by_key(|(other, _)| other.abs_diff(*length)).map(|(_, stack)| stack.clone());
            if let Some(waits) = self.0.get_mut(key) {
                waits.last = waits.last.take().or(similar);
                shares.extend(waits.shares());
            }
        }
        shares
    }
}

impl SimilarWaits {
    fn new(owner: WaitOwner, last: Option<SwitchStack>) -> Self {
        Self { owner, without: 0, count: 0, stacks: FxHashMap::default(), last }
    }

    /// Distributes and removes the waits without stacks.
    fn shares(&mut self) -> Vec<WaitShare> {
        let (owner, without) = (self.owner, std::mem::take(&mut self.without));
        let stacks = std::mem::take(&mut self.stacks);
        self.count = 0;
        let total = stacks.values().fold(0u128, |sum, weight| sum.saturating_add(*weight));
        if without == 0 {
            return Vec::new();
        }
        if total == 0 {
            return vec![WaitShare { owner, stack: self.last.clone(), period: without }];
        }
        let mut stacks: Vec<(SwitchStack, u128)> = stacks.into_iter().collect();
        stacks.sort_unstable_by(|(a, _), (b, _)| a.chain.cmp(&b.chain));
        // Round the sums instead of the shares, so that no time is lost.
        let (mut so_far, mut given) = (0u128, 0);
        let share = |(stack, weight): (SwitchStack, u128)| {
            so_far = so_far.saturating_add(weight);
            let until = part(without, so_far, total);
            let period = until - std::mem::replace(&mut given, until);
            WaitShare { owner, stack: Some(stack), period }
        };
        stacks.into_iter().map(share).filter(|share| share.period > 0).collect()
    }
}

/// Returns `sum * part / whole`.
fn part(sum: u64, part: u128, whole: u128) -> u64 {
    // Very large periods would overflow. The shift changes the ratio by less than 2^-63.
    let shift = (u128::BITS - whole.leading_zeros()).saturating_sub(64);
    (u128::from(sum) * (part >> shift) / (whole >> shift)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::Thread;
    use proptest::prelude::*;

    fn owner(tid: i32) -> WaitOwner {
        WaitOwner {
            thread: Thread { pid: tid, tid },
            cpu: 0,
            is_runnable: false,
            partner: WaitPartner::Unknown,
        }
    }

    fn stack(ip: u64) -> SwitchStack {
        SwitchStack { chain: vec![ip], ip }
    }

    fn by_stack(shares: &[WaitShare]) -> Vec<(Option<u64>, u64)> {
        shares.iter().map(|share| (share.stack.as_ref().map(|stack| stack.ip), share.period)).collect()
    }

    #[test]
    fn time_without_stacks_goes_to_similar_waits_of_the_thread() {
        let mut shares = WaitShares::default();
        (0..8).for_each(|_| drop(shares.add_without(owner(7), 1000)));
        shares.add_without(owner(7), 50);
        shares.add_without(owner(8), 500);
        let mut got = Vec::new();
        for wait in 0..ENOUGH as u64 {
            let ip = if wait % 4 == 0 { 2 } else { 1 };
            got.extend(shares.add(owner(7), &stack(ip), 1000, StackSampling::Window(10)));
        }
        assert_eq!(by_stack(&got), [(Some(1), 6000), (Some(2), 2000)]);
        // Without a similar wait from a window, the last stack gets the time. A thread without stacks has no
        // stack to use.
        shares.add(owner(7), &stack(3), 40, StackSampling::All);
        assert_eq!(by_stack(&shares.end(7)), [(Some(3), 50)]);
        assert_eq!(by_stack(&shares.finish()), [(None, 500)]);
        assert_eq!(shares.finish(), []);
    }

    #[test]
    fn few_stacks_count_for_waits_of_the_most_similar_length() {
        let mut shares = WaitShares::default();
        shares.add(owner(7), &stack(1), 10, StackSampling::Window(100));
        shares.add(owner(7), &stack(2), 1_000_000, StackSampling::Window(100));
        for period in [4, 900_000, 40_000_000] {
            shares.add_without(owner(7), period);
        }
        let mut got = by_stack(&shares.end(7));
        got.sort_unstable();
        assert_eq!(got, [(Some(1), 4), (Some(2), 900_000), (Some(2), 40_000_000)]);
    }

    #[test]
    fn many_short_lived_wakers_take_bounded_memory() {
        let mut shares = WaitShares::default();
        let woken_by = |waker| WaitOwner { partner: WaitPartner::Thread(waker), ..owner(7) };
        let mut got = shares.add(woken_by(1), &stack(5), 1000, StackSampling::Window(10));
        for waker in 2..=10_000 {
            got.extend(shares.add_without(woken_by(waker), 1000));
            assert!(shares.0[&7].0.len() <= MOST_CLASSES);
        }
        got.extend(shares.finish());
        let mut wakers: Vec<WaitPartner> = got.iter().map(|share| share.owner.partner).collect();
        wakers.sort_unstable();
        assert_eq!(wakers, (2..=10_000).map(WaitPartner::Thread).collect::<Vec<_>>());
        assert!(by_stack(&got).iter().all(|share| *share == (Some(5), 1000)));
    }

    /// A thread alternates between a long and a short wait. Sampling every second wait would find only one of
    /// them.
    #[test]
    fn alternating_waits_have_their_shares() {
        let mut shares = WaitShares::default();
        let mut random = 1u64;
        let (mut sums, mut total) = ([0u64; 3], 0);
        let mut is_window = false;
        let note = |sums: &mut [u64; 3], all: Vec<WaitShare>| {
            for share in all {
                sums[share.stack.map_or(0, |stack| stack.ip as usize)] += share.period;
            }
        };
        for wait in 0..400_000u64 {
            if wait.is_multiple_of(10) {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                is_window = random >> 33 & 15 == 0;
            }
            let (ip, period) = [(1, 9000), (2, 1000)][(wait % 2) as usize];
            total += period;
            if is_window {
                sums[ip] += period;
                let all = shares.add(owner(7), &stack(ip as u64), period, StackSampling::Window(16));
                note(&mut sums, all);
            } else {
                shares.add_without(owner(7), period);
            }
        }
        let rest = shares.finish();
        note(&mut sums, rest);
        assert_eq!(sums.iter().sum::<u64>(), total);
        let share = sums[1] as f64 / total as f64;
        assert!((0.899..0.901).contains(&share), "{sums:?}");
    }

    proptest! {
        #[test]
        fn sums_are_exact(
            waits in prop::collection::vec((0..3i32, 0..4u64, any::<u32>(), any::<u16>()), 0..400),
            huge: bool,
        ) {
            let mut shares = WaitShares::default();
            let (mut want, mut got) = (0u64, 0u64);
            for (tid, ip, period, weight) in waits {
                let (period, weight) = (u64::from(period), u64::from(weight));
                let sampling = |weight| if weight % 3 == 0 { StackSampling::All } else { StackSampling::Window(weight) };
                let all = match ip {
                    0 => {
                        want += period;
                        shares.add_without(owner(tid), period)
                    }
                    ip if huge => shares.add(owner(tid), &stack(ip), u64::MAX - period, sampling(u64::MAX - weight)),
                    ip => shares.add(owner(tid), &stack(ip), period, sampling(weight)),
                };
                got += all.iter().map(|share| share.period).sum::<u64>();
            }
            got += shares.finish().iter().map(|share| share.period).sum::<u64>();
            prop_assert_eq!(got, want);
        }
    }
}
