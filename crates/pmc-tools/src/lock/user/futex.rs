//! The system call `futex`: its operations and results, and how to find a lock's holder in its words.

use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField};
use pmc_sys::host::futex::FutexReading;

/// What a futex call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FutexAction {
    /// Waits until another thread wakes this one.
    Wait {
        /// Whether the kernel itself assigns the lock to threads (priority inheritance).
        is_pi: bool,
    },
    /// Waits for several futexes.
    WaitAny,
    /// Wakes waiting threads, as the last step of releasing a lock.
    Wake,
    /// Any other operation.
    Other,
}

/// Flags in the operation: whether the futex is private to the process, and the clock of the timeout.
const FLAGS: u64 = 128 | 256;

/// Returns the action of an operation, whose numbers are defined in `linux/futex.h`.
pub(super) fn action(operation: u64) -> FutexAction {
    match operation & 0xffff_ffff & !FLAGS {
        0 | 9 | 11 => FutexAction::Wait { is_pi: false },
        6 | 13 => FutexAction::Wait { is_pi: true },
        1 | 3 | 4 | 5 | 7 | 10 | 12 => FutexAction::Wake,
        _ => FutexAction::Other,
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// Another thread or a signal woke the thread.
    Woken,
    /// The timeout expired.
    TimedOut,
    /// The futex had already changed, so the thread did not wait.
    DidNotWait,
    /// The thread was still waiting when it exited or when the recording ended.
    Unfinished,
}

/// Returns how a wait ended, based on the result of the system call.
pub(super) fn wait_end(result: u64) -> WaitEnd {
    const EAGAIN: i64 = -11;
    const ETIMEDOUT: i64 = -110;
    // In 32-bit programs, the result has 32 bits.
    match i64::from(result as i32) {
        EAGAIN => WaitEnd::DidNotWait,
        ETIMEDOUT => WaitEnd::TimedOut,
        _ => WaitEnd::Woken,
    }
}

/// The bits with the holder's thread id, in the futex of a priority-inheritance lock or a robust lock.
const TID: u32 = 0x3fff_ffff;

/// The bit that is set in such a futex if threads wait for the lock.
const WAITERS: u32 = 1 << 31;

/// Returns the thread that the words of a lock identify as its holder, and which field identifies it.
pub(super) fn owner(
    reading: &FutexReading,
    purpose: FutexUse,
    field: OwnerField,
    is_pi: bool,
) -> Option<(i32, OwnerField)> {
    let [futex, .., third, fourth] = reading.words;
    let tid = |word: u32| i32::try_from(word).ok().filter(|tid| *tid > 0);
    // The values 0, 1 and 2 are states of locks that do not store the holder in the futex.
    if is_pi || futex & WAITERS != 0 && futex & TID > 2 && purpose == FutexUse::Mutex {
        return tid(futex & TID).map(|tid| (tid, OwnerField::Futex));
    }
    let word = match (field, purpose) {
        (OwnerField::Glibc, FutexUse::Mutex) => reading.words[2],
        // The field `__cur_writer`. Writers of such a lock wait at offset 12, readers at offset 8.
        (OwnerField::Glibc, FutexUse::RwLock) if reading.address % 8 == 4 => third,
        (OwnerField::Glibc, FutexUse::RwLock) => fourth,
        _ => return None,
    };
    tid(word).map(|tid| (tid, OwnerField::Glibc))
}

/// Returns the holder of the lock at a futex of unknown use; `None` if its words do not look like a mutex
/// that stores its holder.
pub(super) fn owner_by_words(reading: &FutexReading) -> Option<(i32, OwnerField)> {
    /// The state of a glibc mutex while threads wait for it.
    const CONTENDED: u32 = 2;
    let field = if reading.words[0] == CONTENDED { OwnerField::Glibc } else { OwnerField::Nowhere };
    owner(reading, FutexUse::Mutex, field, false)
}

/// Returns the start of the lock that contains a futex.
pub(super) fn lock_address(futex: u64, purpose: FutexUse, field: OwnerField) -> u64 {
    match (purpose, field) {
        // glibc's pthread_rwlock_t: __readers, __writers, __wrphase_futex, __writers_futex.
        (FutexUse::RwLock, OwnerField::Glibc) if futex % 8 == 4 => futex.wrapping_sub(12),
        (FutexUse::RwLock, OwnerField::Glibc) => futex.wrapping_sub(8),
        // The two futexes of glibc's pthread_cond_t.
        (_, OwnerField::InCondition) => futex & !7,
        _ => futex,
    }
}

/// Returns the address of the lock for which a thread waits on the futex of its parking_lot structure. `None`
/// if the words do not look like that structure:
///
/// ```text
///   -32 key: address of the lock   -24 next thread in the queue   -16 unpark token   -8 park token   0 futex
/// ```
/// Reader-writer locks have two keys: their address, and the next one.
pub(super) fn parking_lot_lock(reading: &FutexReading) -> Option<u64> {
    /// Lower addresses belong to 32-bit programs, whose structure is different.
    const LEAST_FUTEX: u64 = 1 << 32;
    const LEAST_ADDRESS: u64 = 1 << 16;
    /// Tokens of parked threads are small numbers that denote the kind of access.
    const MOST_TOKEN: u64 = 255;
    let [key, next, _, token] = reading.before.filter(|_| reading.address >= LEAST_FUTEX)?;
    let is_address = |word: u64| (LEAST_ADDRESS..1 << 56).contains(&word);
    let is_thread = next == 0 || is_address(next) && next.is_multiple_of(8);
    (is_address(key) && is_thread && token <= MOST_TOKEN).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_kernel() {
        assert_eq!(action(128), FutexAction::Wait { is_pi: false });
        assert_eq!(action(9 | 128 | 256), FutexAction::Wait { is_pi: false });
        assert_eq!(action(6 | 128), FutexAction::Wait { is_pi: true });
        assert_eq!(action(7 | 128), FutexAction::Wake);
        assert_eq!(action(8), FutexAction::Other);
        assert_eq!(wait_end(-110i64 as u64), WaitEnd::TimedOut);
        assert_eq!(wait_end(u64::from(-11i32 as u32)), WaitEnd::DidNotWait);
        assert_eq!(wait_end(0), WaitEnd::Woken);
    }

    #[test]
    fn owner_is_where_each_library_stores_it() {
        let reading = |address, words| FutexReading { time: 0, tid: 1, address, words, before: None };
        let of = |reading, purpose, field, is_pi| owner(&reading, purpose, field, is_pi);
        let glibc = reading(0x1000, [2, 0, 4711, 1, 0]);
        assert_eq!(of(glibc, FutexUse::Mutex, OwnerField::Glibc, false), Some((4711, OwnerField::Glibc)));
        assert_eq!(of(glibc, FutexUse::Mutex, OwnerField::Nowhere, false), None);
        assert_eq!(owner_by_words(&glibc), Some((4711, OwnerField::Glibc)));
        // A condition variable, and a futex on which `pthread_join` waits.
        assert_eq!(owner_by_words(&reading(0x1000, [0, 0, 4711, 8, 0])), None);
        assert_eq!(owner_by_words(&reading(0x1000, [4711, 0, 0, 0, 0])), None);
        let robust = reading(0x1000, [WAITERS | 4712, 0, 0, 1, 0]);
        let in_word = Some((4712, OwnerField::Futex));
        assert_eq!(of(robust, FutexUse::Mutex, OwnerField::Nowhere, false), in_word);
        let pi = reading(0x1000, [4712, 0, 0, 1, 0]);
        assert_eq!(of(pi, FutexUse::Other, OwnerField::Nowhere, true), in_word);
        // Readers of an rwlock at 0x1000 wait at 0x1008, writers at 0x100c.
        let reader = reading(0x1008, [0, 0, 0, 0, 4713]);
        let writer = reading(0x100c, [0, 0, 0, 4713, 0]);
        for reading in [reader, writer] {
            let found = of(reading, FutexUse::RwLock, OwnerField::Glibc, false);
            assert_eq!(found, Some((4713, OwnerField::Glibc)));
            assert_eq!(lock_address(reading.address, FutexUse::RwLock, OwnerField::Glibc), 0x1000);
        }
    }

    #[test]
    fn parking_lots_structure_names_the_lock() {
        let lock = |address, before| {
            let reading = FutexReading { time: 0, tid: 1, address, words: [1, 0, 0, 0, 0], before };
            parking_lot_lock(&reading)
        };
        let (futex, key, next) = (0x7f97_5432_3670, 0x55e0_1000_2003, 0x7f97_5452_4650);
        assert_eq!(lock(futex, Some([key, 0, 0, 0])), Some(key));
        assert_eq!(lock(futex, Some([key, next, 1, 8])), Some(key));
        for other in [[0, 0, 0, 0], [1, 0, 0, 0], [key, 7, 0, 0], [key, next, 0, next]] {
            assert_eq!(lock(futex, Some(other)), None, "{other:x?}");
        }
        assert_eq!(lock(0xf7a0_3670, Some([key, 0, 0, 0])), None);
        assert_eq!(lock(futex, None), None);
    }
}
