//! The string table: the distinct names of functions, modules, threads and files, each with a number.
//!
//! All strings are stored in one buffer, so a copy of the table needs only a few allocations. The live view
//! copies it every second.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use crate::session::intern::HashKeys;

/// Identifies a string in a [`StringTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StringId(pub u32);

/// The strings. They are untrusted, so views must clean them.
///
/// ```text
///   table  hash -> number
///   ends   | 4 | 9 |…               number -> end of its text
///   all    mainmalloc…
/// ```
#[derive(Debug, Default, Clone)]
pub struct StringTable {
    keys: HashKeys,
    table: HashTable<u32>,
    ends: Vec<usize>,
    all: String,
}

impl StringTable {
    /// Returns the number of a string, and adds the string if it is missing.
    pub fn add(&mut self, text: &str) -> StringId {
        if let Some(id) = self.find(text) {
            return id;
        }
        let Self { keys, table, ends, all } = self;
        all.push_str(text);
        ends.push(all.len());
        let number = ends.len() as u32 - 1;
        table.insert_unique(keys.hash_one(text), number, |number| keys.hash_one(word(all, ends, *number)));
        StringId(number)
    }

    /// Returns the number of a string, or `None` if it is missing.
    pub(crate) fn find(&self, text: &str) -> Option<StringId> {
        let Self { keys, table, ends, all } = self;
        table.find(keys.hash_one(text), |number| word(all, ends, *number) == text).copied().map(StringId)
    }

    /// Returns the string.
    ///
    /// # Panics
    /// Panics if the number belongs to another table.
    pub fn get(&self, id: StringId) -> &str {
        word(&self.all, &self.ends, id.0)
    }
}

fn word<'a>(all: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &all[start..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_string_has_one_id() {
        let mut texts = StringTable::default();
        assert_eq!(texts.find(""), None);
        let words: Vec<String> = (0..1000).map(|n| "é".repeat(n % 7) + &n.to_string()).collect();
        let ids: Vec<StringId> = words.iter().map(|word| texts.add(word)).collect();
        let empty = texts.add("");
        let copy = texts.clone();
        for (word, id) in words.iter().zip(ids) {
            assert_eq!((texts.add(word), copy.find(word), copy.get(id)), (id, Some(id), word.as_str()));
        }
        assert_eq!((copy.get(empty), copy.find("none")), ("", None));
    }
}
