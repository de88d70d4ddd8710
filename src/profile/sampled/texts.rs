//! Words, each once, by number: names of functions, modules, threads and files.
//!
//! All words lie in one string, so that a copy (the live view makes one each second) is a few blocks of memory.

use std::hash::Hasher;

use rustc_hash::FxHasher;

/// A word's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TextId(pub u32);

/// The words. They are foreign: views clean them.
///
/// ```text
///   slots  | 0 | 2 | 0 | 1 |…       number + 1 at the place that the hash says, or behind it; 0: free
///   ends   | 4 | 9 |…               number -> where its letters end
///   hashes | … | … |…
///   all    mainmalloc…
/// ```
#[derive(Debug, Default, Clone)]
pub struct Texts {
    all: String,
    ends: Vec<usize>,
    hashes: Vec<u32>,
    slots: Vec<u32>,
}

/// Slots at first; always a power of two.
const SLOTS: usize = 64;

fn hash(text: &str) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    // The high bits are the better ones.
    (hasher.finish() >> 32) as u32
}

impl Texts {
    /// The number of a word.
    pub fn add(&mut self, text: &str) -> TextId {
        let hash = hash(text);
        if let Some(id) = self.look_up(text, hash) {
            return id;
        }
        self.all.push_str(text);
        self.ends.push(self.all.len());
        self.hashes.push(hash);
        let number = self.ends.len() as u32;
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        } else {
            Self::put(&mut self.slots, hash, number);
        }
        TextId(number - 1)
    }

    /// The number of a word that may be there.
    pub fn find(&self, text: &str) -> Option<TextId> {
        self.look_up(text, hash(text))
    }

    /// The word.
    ///
    /// # Panics
    /// When the number is another collection's.
    pub fn get(&self, id: TextId) -> &str {
        let number = id.0 as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[number]]
    }

    fn look_up(&self, text: &str, hash: u32) -> Option<TextId> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        while self.slots[slot] != 0 {
            let id = TextId(self.slots[slot] - 1);
            if self.hashes[id.0 as usize] == hash && self.get(id) == text {
                return Some(id);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    fn put(slots: &mut [u32], hash: u32, number: u32) {
        let mask = slots.len() - 1;
        let mut slot = hash as usize & mask;
        while slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        slots[slot] = number;
    }

    fn grow(&mut self) {
        let mut slots = vec![0; (self.slots.len() * 2).max(SLOTS)];
        for (number, hash) in (1..).zip(&self.hashes) {
            Self::put(&mut slots, *hash, number);
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_one_number() {
        let mut texts = Texts::default();
        assert_eq!(texts.find(""), None);
        let words: Vec<String> = (0..1000).map(|n| "é".repeat(n % 7) + &n.to_string()).collect();
        let ids: Vec<TextId> = words.iter().map(|word| texts.add(word)).collect();
        let empty = texts.add("");
        let copy = texts.clone();
        for (word, id) in words.iter().zip(ids) {
            assert_eq!((texts.add(word), copy.find(word), copy.get(id)), (id, Some(id), word.as_str()));
        }
        assert_eq!((copy.get(empty), copy.find("none")), ("", None));
    }
}
