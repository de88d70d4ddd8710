//! Equal lists of bytes, kept once each under a small number: stacks, mostly.
//!
//! Receives bytes that borrow from a record; hands on a number that is the same for equal lists with an equal tag.
//! Most samples repeat a stack that was seen before: one hash and one comparison each, no allocation.
//! [`Shared`] lets several threads add at a time: the hash says which of its parts is locked for that moment.

use std::hash::Hasher;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHasher;

use crate::record::Words;

/// Interned lists.
///
/// ```text
///   slots  | 0 | 3 | 0 | 1 | 2 |…   number + 1 at the place that the hash says, or behind it; 0: free
///   lists  | (tag, hash, end) …     number -> where its bytes end
///   bytes  | …                      all lists, one behind the other
/// ```
#[derive(Debug, Clone)]
pub struct Lists {
    slots: Vec<u32>,
    lists: Vec<Entry>,
    bytes: Vec<u8>,
}

fn hash(tag: u32, bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u32(tag);
    hasher.write(bytes);
    hasher.finish()
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    end: usize,
    tag: u32,
}

impl Default for Lists {
    fn default() -> Self {
        Self { slots: vec![0; 1024], lists: Vec::new(), bytes: Vec::new() }
    }
}

impl Lists {
    /// The number of a list with a tag.
    pub fn add(&mut self, tag: u32, bytes: &[u8]) -> u32 {
        self.add_hashed(hash(tag, bytes), tag, bytes)
    }

    fn add_hashed(&mut self, hash: u64, tag: u32, bytes: &[u8]) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 {
            let number = self.slots[slot] - 1;
            let entry = self.lists[number as usize];
            if entry.hash == hash && entry.tag == tag && self.bytes_of(number) == bytes {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        self.bytes.extend_from_slice(bytes);
        self.lists.push(Entry { hash, end: self.bytes.len(), tag });
        self.slots[slot] = self.lists.len() as u32;
        if self.lists.len() * 2 > self.slots.len() {
            self.grow();
        }
        self.lists.len() as u32 - 1
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0; mask + 1];
        for (number, entry) in self.lists.iter().enumerate() {
            let mut slot = entry.hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number as u32 + 1;
        }
        self.slots = slots;
    }

    fn bytes_of(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.lists[before].end);
        &self.bytes[start..self.lists[number].end]
    }

    /// The tag and the bytes of a list.
    ///
    /// # Panics
    /// When the number is another collection's.
    pub fn get(&self, number: u32) -> (u32, &[u8]) {
        (self.lists[number as usize].tag, self.bytes_of(number))
    }

    /// Bytes of all lists.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lists.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// All, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..self.lists.len() as u32).map(|number| self.get(number))
    }
}

/// Parts of [`Shared`]: enough that threads seldom meet.
const PARTS: usize = 64;

/// Lists that several threads add to.
#[derive(Debug)]
pub struct Shared {
    parts: Vec<Mutex<Lists>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { parts: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl Shared {
    /// A provisional number: see [`Shared::finish`].
    pub fn add(&self, tag: u32, bytes: &[u8]) -> u32 {
        let hash = hash(tag, bytes);
        // The low bits choose the slot inside the part.
        let part = (hash >> 58) as usize % PARTS;
        let mut lists = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        lists.add_hashed(hash, tag, bytes) * PARTS as u32 + part as u32
    }

    /// The parts, one behind the other, and what turns provisional numbers into places in that row.
    pub fn finish(self) -> (Vec<Lists>, impl Fn(u32) -> u32) {
        let parts: Vec<Lists> = self
            .parts
            .into_iter()
            .map(|part| part.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let mut start = 0;
        let starts: Vec<u32> = parts
            .iter()
            .map(|part| {
                let here = start;
                start += part.len() as u32;
                here
            })
            .collect();
        (parts, move |number| starts[number as usize % PARTS] + number / PARTS as u32)
    }
}

/// The bytes of words that are in memory, as [`Lists::add`] takes them.
pub fn bytes(words: &[u64], scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
}

/// The numbers in a list of four bytes each.
pub fn numbers(bytes: &[u8]) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
    bytes.as_chunks().0.iter().map(|number| u32::from_ne_bytes(*number))
}

/// The words of a list.
pub fn words(bytes: &[u8]) -> Words<'_> {
    Words::new(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_have_one_number() {
        let mut lists = Lists::default();
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
        // The empty list exists once for each tag.
        let empty = (0..5000).step_by(3).map(|n| found[n]).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(empty.len(), 2);
    }

    #[test]
    fn threads_agree_on_the_numbers() {
        let shared = Shared::default();
        let add = || (0..3000u32).map(|n| shared.add(n % 5, &n.to_ne_bytes())).collect::<Vec<_>>();
        let (one, other) = std::thread::scope(|scope| {
            let (one, other) = (scope.spawn(add), scope.spawn(add));
            (one.join().unwrap(), other.join().unwrap())
        });
        assert_eq!(one, other);
        let (parts, place) = shared.finish();
        let all: Vec<(u32, &[u8])> = parts.iter().flat_map(Lists::iter).collect();
        assert_eq!(all.len(), 3000);
        for (n, number) in one.into_iter().enumerate() {
            let (tag, bytes) = all[place(number) as usize];
            assert_eq!((tag, numbers(bytes).next()), (n as u32 % 5, Some(n as u32)));
        }
    }
}
