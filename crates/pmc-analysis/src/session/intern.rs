//! Interning: stores equal values only once, and numbers them 0, 1, … in order of arrival.
//!
//! [`Interner`] stores byte lists (mostly stacks) contiguously, [`SharedInterner`] accepts them from several
//! threads, and [`DistinctValues`] stores values of one type. Most samples repeat earlier values. A repeated
//! value costs one hash and one comparison, but no allocation. Since values are untrusted (addresses, names),
//! each table has its own [`HashKeys`], so that a recording cannot provoke collisions.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashTable;
use rayon::prelude::*;
use rustc_hash::FxHasher;

use pmc_perfdata::record::RecordWords;

/// The keys of a hash function, which differ between tables and between runs.
pub(crate) type HashKeys = hashbrown::DefaultHashBuilder;

/// A map with untrusted keys.
pub(crate) type KeyedMap<K, V> = std::collections::HashMap<K, V, HashKeys>;

/// Interned byte lists, each with a tag. Two lists are equal if their contents and tags are equal.
///
/// ```text
///   table  | hash -> number
///   lists  | (tag, hash, end) …     number -> where its bytes end
///   bytes  | …                      all lists, one after the other
/// ```
#[derive(Debug, Clone, Default)]
pub struct Interner {
    keys: HashKeys,
    table: HashTable<u32>,
    lists: Vec<InternedList>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct InternedList {
    hash: u64,
    end: usize,
    tag: u32,
}

fn hash(keys: &HashKeys, tag: u32, bytes: &[u8]) -> u64 {
    let mut hasher = keys.build_hasher();
    hasher.write_u32(tag);
    hasher.write(bytes);
    hasher.finish()
}

impl Interner {
    /// Returns the number assigned to the list with these bytes and this tag. Adds the list if it is new.
    pub(crate) fn add(&mut self, tag: u32, bytes: &[u8]) -> u32 {
        self.add_hashed(hash(&self.keys, tag, bytes), tag, bytes)
    }

    fn add_hashed(&mut self, hash: u64, tag: u32, bytes: &[u8]) -> u32 {
        let is_it = |number: &u32| {
            let list = &self.lists[*number as usize];
            list.hash == hash && list.tag == tag && self.bytes_of(*number) == bytes
        };
        if let Some(number) = self.table.find(hash, is_it) {
            return *number;
        }
        let number = self.lists.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.lists.push(InternedList { hash, end: self.bytes.len(), tag });
        self.table.insert_unique(hash, number, |number| self.lists[*number as usize].hash);
        number
    }

    fn bytes_of(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.lists[before].end);
        &self.bytes[start..self.lists[number].end]
    }

    /// Returns the tag and bytes of the list with this number.
    ///
    /// # Panics
    /// Panics if the number belongs to another interner.
    pub(crate) fn get(&self, number: u32) -> (u32, &[u8]) {
        (self.lists[number as usize].tag, self.bytes_of(number))
    }

    /// Total size of all lists in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Number of lists.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are no lists.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Iterates over all lists, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u8])> {
        (0..self.lists.len() as u32).map(|number| self.get(number))
    }
}

/// Number of parts of a [`SharedInterner`]; large enough that threads rarely contend for the same part.
const PARTS: usize = 64;

/// An interner for several threads. The first bytes of a list determine which part to lock while adding the
/// list.
///
/// The order in which threads add lists is random, but the final numbers are not: see
/// [`finish`](Self::finish).
#[derive(Debug)]
pub(crate) struct SharedInterner {
    keys: HashKeys,
    parts: Vec<Mutex<InternerPart>>,
}

#[derive(Debug, Default)]
struct InternerPart {
    lists: Interner,
    /// The position at which each list first occurs, indexed by list number.
    first: Vec<u64>,
}

impl InternerPart {
    fn add(&mut self, position: u64, hash: u64, tag: u32, bytes: &[u8]) -> u32 {
        let number = self.lists.add_hashed(hash, tag, bytes);
        match self.first.get_mut(number as usize) {
            Some(first) => *first = position.min(*first),
            None => self.first.push(position),
        }
        number
    }

    /// Returns the lists in the order of their first occurrence and, for each list number, its rank in that
    /// order.
    fn finish(self) -> (InOrder, Vec<u32>) {
        let mut by_position: Vec<(u64, u32)> = self.first.into_iter().zip(0..).collect();
        by_position.sort_unstable();
        let order: Vec<u32> = by_position.into_iter().map(|(_, number)| number).collect();
        let mut ranks = vec![0; order.len()];
        (0..).zip(&order).for_each(|(rank, number)| ranks[*number as usize] = rank);
        (InOrder { lists: self.lists, order }, ranks)
    }
}

/// The lists of one part of a [`SharedInterner`], in the order of their first occurrence.
#[derive(Debug)]
pub(crate) struct InOrder {
    lists: Interner,
    order: Vec<u32>,
}

impl InOrder {
    /// Iterates over the tags and bytes of all lists, in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u8])> {
        self.order.iter().map(|number| self.lists.get(*number))
    }
}

impl Default for SharedInterner {
    fn default() -> Self {
        Self { keys: HashKeys::default(), parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl SharedInterner {
    /// Adds a list and returns a provisional number; see [`finish`](Self::finish). `position` is the list's
    /// position in the recording. If two lists share a position, the same thread must add both.
    pub(crate) fn add(&self, position: u64, tag: u32, bytes: &[u8]) -> u32 {
        // The hash that selects the part does not use random keys, because final numbers continue from part
        // to part. Random keys would give a different order in each run.
        let mut first = FxHasher::default();
        first.write(&bytes[..bytes.len().min(24)]);
        let part = (first.finish() >> 40) as usize % PARTS;
        let hash = hash(&self.keys, tag, bytes);
        let mut adding = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        adding.add(position, hash, tag, bytes) * PARTS as u32 + part as u32
    }

    /// Returns the parts, and a function that maps provisional numbers to final ones. Final numbers continue
    /// from part to part. Within a part, they follow the order of first occurrence. They are the same in each
    /// run, for any number of threads.
    pub(crate) fn finish(self) -> (Vec<InOrder>, impl Fn(u32) -> u32) {
        let parts = self.parts.into_par_iter();
        let parts = parts.map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner).finish());
        let (parts, ranks): (Vec<InOrder>, Vec<Vec<u32>>) = parts.unzip();
        let mut start = 0;
        let starts: Vec<u32> = ranks
            .iter()
            .map(|ranks| {
                let here = start;
                start += ranks.len() as u32;
                here
            })
            .collect();
        let number = move |number: u32| {
            let part = number as usize % PARTS;
            starts[part] + ranks[part][number as usize / PARTS]
        };
        (parts, number)
    }
}

/// Distinct values, indexed by number.
#[derive(Debug, Clone)]
pub(crate) struct DistinctValues<T> {
    keys: HashKeys,
    table: HashTable<u32>,
    all: Arc<Vec<T>>,
}

impl<T> Default for DistinctValues<T> {
    fn default() -> Self {
        Self { keys: HashKeys::default(), table: HashTable::new(), all: Arc::default() }
    }
}

impl<T: Hash + Eq + Clone> DistinctValues<T> {
    /// Returns the number assigned to a value. Adds the value if it is new.
    #[inline]
    pub(crate) fn add(&mut self, value: T) -> u32 {
        let Self { keys, table, all } = self;
        let hash = keys.hash_one(&value);
        if let Some(number) = table.find(hash, |number| all[*number as usize] == value) {
            return *number;
        }
        let number = all.len() as u32;
        Arc::make_mut(all).push(value);
        table.insert_unique(hash, number, |number| keys.hash_one(&all[*number as usize]));
        number
    }

    /// Returns the number assigned to a value, if present.
    #[inline]
    pub(crate) fn find(&self, value: &T) -> Option<u32> {
        self.table.find(self.keys.hash_one(value), |number| self.all[*number as usize] == *value).copied()
    }

    /// Returns all values, indexed by number. A clone of the list never changes, because later additions go
    /// to a copy.
    pub(crate) fn all(&self) -> &Arc<Vec<T>> {
        &self.all
    }
}

/// Converts words to bytes for [`Interner::add`].
pub(crate) fn bytes(words: &[u64], scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
}

/// Iterates over the four-byte numbers in a list.
pub(crate) fn numbers(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
    bytes.as_chunks().0.iter().map(|number| u32::from_ne_bytes(*number))
}

/// The words of a list.
pub(crate) fn words(bytes: &[u8]) -> RecordWords<'_> {
    RecordWords::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_share_one_id() {
        let mut lists = Interner::default();
        let mut scratch = Vec::new();
        let mut found = Vec::new();
        for round in 0..2 {
            for n in 0..5000u64 {
                bytes(&[n, n * 7][..(n % 3) as usize], &mut scratch);
                let number = lists.add(n as u32 % 2, &scratch);
                if round == 0 { found.push(number) } else { assert_eq!(number, found[n as usize]) }
            }
        }
        let (tag, list) = lists.get(found[4997]);
        assert_eq!((tag, words(list).iter().collect::<Vec<_>>()), (1, vec![4997, 4997 * 7]));
        // There is one empty list per tag.
        let empty = (0..5000).step_by(3).map(|n| found[n]).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(empty.len(), 2);
    }

    #[test]
    fn ids_agree_between_threads() {
        let all = |from: u32, until: u32| {
            let shared = SharedInterner::default();
            let add = |n: u32| shared.add(n.into(), n % 5, &(n % 3000).to_ne_bytes());
            let (one, other) = std::thread::scope(|scope| {
                let one = scope.spawn(|| (from..6000).map(add).collect::<Vec<_>>());
                let other = scope.spawn(|| (0..until).rev().map(add).collect::<Vec<_>>());
                (one.join().unwrap(), other.join().unwrap())
            });
            let (parts, number) = shared.finish();
            let all: Vec<(u32, &[u8])> = parts.iter().flat_map(InOrder::iter).collect();
            assert_eq!(all.len(), 3000);
            let added = (from..6000).zip(one).chain((0..until).rev().zip(other));
            for (n, provisional) in added {
                let (tag, bytes) = all[number(provisional) as usize];
                assert_eq!((tag, numbers(bytes).next()), (n % 5, Some(n % 3000)));
            }
            all.into_iter().map(|(tag, bytes)| (tag, bytes.to_vec())).collect::<Vec<_>>()
        };
        // The result does not depend on which thread adds which lists, or on whether both threads add the
        // same list.
        let expected = all(0, 0);
        for (from, until) in [(0, 6000), (3000, 3000), (100, 5900), (6000, 6000)] {
            assert_eq!(all(from, until), expected);
        }
    }
}
