//! Waits for the locks of libraries that park threads. Each thread waits on a separate futex, so the futex
//! does not show which lock the thread waits for.
//!
//! Receives the waits, with the lock's address if pmc read it from the structure of the waiting thread while
//! the program ran. Passes on each wait with the releases of its lock.
//!
//! ```text
//!   parking_lot's mutex at 0x5000    queue: thread A (futex 0xa0), thread B (futex 0xb0)
//!   hold  ── releases: wakes 0xa0 ──┐
//!   A     wait on 0xa0 ─────────────┴─ locks, releases: wakes 0xb0 ─┐
//!   B     wait on 0xb0 ─────────────────────────────────────────────┘   mostly for `hold`, not for A
//! ```

use rustc_hash::FxHashMap;

use super::sums::{FutexKey, LockWait, MOST_WAKES, Wake};
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, ParkingLibrary};

/// Maximum number of waits to remember.
const MOST_WAITS: usize = 1 << 20;

/// Minimum number of readings that identify the lock of the other waits in the same stack.
const LEAST_READINGS: u32 = 3;

/// Collects waits.
///
/// The releases of a lock are the wake-ups of all threads that waited for it. A wait without a reading is for
/// the lock that all readings in the same stack show, if there are enough. The locks of all other waits
/// remain unknown, and so do their holders.
#[derive(Debug, Default)]
pub(super) struct ParkedWaits(Vec<ParkedWait>);

#[derive(Debug)]
struct ParkedWait {
    library: ParkingLibrary,
    /// The wait, with the futex in place of the lock.
    wait: LockWait,
    /// The address of the lock, if it was read.
    lock: Option<u64>,
}

/// The lock that all readings in a stack show, and their number.
#[derive(Debug)]
struct StackReadings {
    /// `None` if the readings show different locks.
    lock: Option<u64>,
    count: u32,
}

impl ParkedWaits {
    /// Whether further waits would take too much memory.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MOST_WAITS
    }

    /// Adds a wait, and the key of the lock that was read.
    pub(super) fn add(&mut self, library: ParkingLibrary, wait: LockWait, key: Option<u64>) {
        let is_rwlock = wait.usage.purpose == FutexUse::RwLock;
        let lock = key.map(|key| if is_rwlock { key & !1 } else { key });
        self.0.push(ParkedWait { library, wait, lock });
    }

    /// Returns the waits for known locks, with the releases of the lock, and the waits for unknown locks.
    pub(super) fn resolve(self) -> (Vec<LockWait>, Vec<(ParkingLibrary, LockWait)>) {
        let mut stacks: FxHashMap<(i32, u32), StackReadings> = FxHashMap::default();
        for ParkedWait { wait, lock, .. } in &self.0 {
            let Some(lock) = lock else { continue };
            let stack = stacks.entry((wait.pid, wait.stack));
            let readings = stack.or_insert(StackReadings { lock: Some(*lock), count: 0 });
            readings.lock = readings.lock.filter(|known| known == lock);
            readings.count += 1;
        }
        let of_stack = |wait: &LockWait| {
            let readings = stacks.get(&(wait.pid, wait.stack))?;
            readings.lock.filter(|_| readings.count >= LEAST_READINGS)
        };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let mut releases: FxHashMap<FutexKey, Vec<Wake>> = FxHashMap::default();
        for ParkedWait { library, mut wait, lock } in self.0 {
            let Some(lock) = lock.or_else(|| of_stack(&wait)) else {
                unknown.push((library, wait));
                continue;
            };
            wait.lock = lock;
            releases.entry((wait.pid, lock)).or_default().append(&mut wait.wakes);
            known.push(wait);
        }
        releases.values_mut().for_each(|wakes| wakes.sort_by_key(|wake| wake.time));
        for wait in &mut known {
            let all = &releases[&(wait.pid, wait.lock)];
            let first = all.partition_point(|wake| wake.time <= wait.from);
            let end = all.partition_point(|wake| wake.time <= wait.to).max(first);
            let during = &all[first.max(end.saturating_sub(MOST_WAKES))..end];
            wait.wakes = during.iter().filter(|wake| wake.tid != wait.tid).copied().collect();
        }
        (known, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::WaitEnd;
    use super::super::uses::StackFutexUse;
    use super::*;
    use pmc_analysis::profile::sampled::futex_functions::OwnerField;

    const LIBRARY: ParkingLibrary = ParkingLibrary::ParkingLot;

    fn wait(tid: i32, stack: u32, from: u64, woken: (u64, i32)) -> LockWait {
        let usage = StackFutexUse {
            purpose: FutexUse::Mutex,
            owner_field: OwnerField::Parked(LIBRARY),
            is_go: false,
        };
        let wakes = vec![Wake { time: woken.0, tid: woken.1, stack: 9 }];
        let (to, how) = (woken.0 + 1, WaitEnd::Woken);
        LockWait {
            pid: 1,
            tid,
            lock: 0,
            from,
            to,
            stack,
            usage,
            how,
            has_loss: false,
            wakes,
            owners: Vec::new(),
        }
    }

    #[test]
    fn each_wait_gets_all_releases_of_its_lock() {
        let mut parked = ParkedWaits::default();
        parked.add(LIBRARY, wait(1, 0, 0, (10, 7)), Some(0x5000));
        parked.add(LIBRARY, wait(2, 0, 0, (12, 1)), Some(0x5000));
        parked.add(LIBRARY, wait(3, 1, 0, (11, 8)), Some(0x6000));
        let (known, unknown) = parked.resolve();
        assert!(unknown.is_empty());
        let wakers =
            |wait: &LockWait| (wait.lock, wait.wakes.iter().map(|wake| wake.tid).collect::<Vec<_>>());
        let all: Vec<_> = known.iter().map(wakers).collect();
        // Thread 7 held the first lock during nearly all of the second wait.
        assert_eq!(all, [(0x5000, vec![7]), (0x5000, vec![7, 1]), (0x6000, vec![8])]);
        assert_eq!(known[1].wakes[0].time, 10);
    }

    #[test]
    fn wait_without_a_reading_takes_the_only_lock_of_its_stack() {
        let locks = |readings: &[u64]| {
            let mut parked = ParkedWaits::default();
            for (at, lock) in readings.iter().enumerate() {
                parked.add(LIBRARY, wait(at as i32, 4, 0, (10, 70)), Some(*lock));
            }
            parked.add(LIBRARY, wait(60, 4, 20, (30, 70)), None);
            let (known, unknown) = parked.resolve();
            assert_eq!(known.len() + unknown.len(), readings.len() + 1);
            known.iter().find(|wait| wait.tid == 60).map(|wait| wait.lock)
        };
        assert_eq!(locks(&[0x5000; 3]), Some(0x5000));
        assert_eq!(locks(&[0x5000; 2]), None);
        assert_eq!(locks(&[0x5000, 0x5000, 0x5000, 0x6000]), None);
        assert_eq!(locks(&[]), None);
    }
}
