//! Equal lists of words, kept once each under a small number.
//!
//! Receives bytes that borrow from a record; hands on a number that is the same for equal lists with an equal tag.
//! Most samples repeat a stack that was seen before: one hash and one comparison each, no allocation.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::record::Words;

/// Interned lists.
///
/// ```text
///   slots  | 0 | 3 | 0 | 1 | 2 |…   number + 1 at the place that the hash says, or behind it; 0: free
///   lists  | (tag, hash, end) …     number -> where its bytes end
///   bytes  | …                      all lists, one behind the other
/// ```
#[derive(Debug)]
pub struct Lists {
    slots: Vec<u32>,
    lists: Vec<Entry>,
    bytes: Vec<u8>,
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
    pub fn add(&mut self, tag: u32, words: Words<'_>) -> u32 {
        let bytes = words.as_bytes();
        let mut hasher = FxHasher::default();
        hasher.write_u32(tag);
        hasher.write(bytes);
        let hash = hasher.finish();
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

    /// The tag and the words of a list.
    ///
    /// # Panics
    /// When the number is another collection's.
    pub fn get(&self, number: u32) -> (u32, Words<'_>) {
        (self.lists[number as usize].tag, Words::new(self.bytes_of(number)))
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
    pub fn iter(&self) -> impl Iterator<Item = (u32, Words<'_>)> {
        (0..self.lists.len() as u32).map(|number| self.get(number))
    }
}

/// The bytes of words that are in memory, as [`Lists::add`] takes them.
pub fn bytes(words: &[u64], scratch: &mut Vec<u8>) {
    scratch.clear();
    scratch.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_have_one_number() {
        let mut lists = Lists::default();
        let mut scratch = Vec::new();
        let mut numbers = Vec::new();
        for round in 0..2 {
            for n in 0..5000u64 {
                bytes(&[n, n * 7][..(n % 3) as usize], &mut scratch);
                let number = lists.add(n as u32 % 2, Words::new(&scratch));
                if round == 0 { numbers.push(number) } else { assert_eq!(number, numbers[n as usize]) }
            }
        }
        let (tag, words) = lists.get(numbers[4997]);
        assert_eq!((tag, words.iter().collect::<Vec<_>>()), (1, vec![4997, 4997 * 7]));
        // The empty list exists once for each tag.
        let empty = (0..5000).step_by(3).map(|n| numbers[n]).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(empty.len(), 2);
    }
}
