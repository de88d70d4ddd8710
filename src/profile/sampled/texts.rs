//! Words, each once, by number: names of functions, modules, threads and files.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A word's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TextId(pub u32);

/// The words. They are foreign: views clean them.
#[derive(Debug, Default, Clone)]
pub struct Texts {
    all: Vec<Arc<str>>,
    known: FxHashMap<Arc<str>, TextId>,
}

impl Texts {
    /// The number of a word.
    pub fn add(&mut self, text: &str) -> TextId {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        let text: Arc<str> = text.into();
        self.all.push(text.clone());
        let id = TextId(self.all.len() as u32 - 1);
        self.known.insert(text, id);
        id
    }

    /// The number of a word that may be there.
    pub fn find(&self, text: &str) -> Option<TextId> {
        self.known.get(text).copied()
    }

    /// The word.
    ///
    /// # Panics
    /// When the number is another collection's.
    pub fn get(&self, id: TextId) -> &str {
        &self.all[id.0 as usize]
    }
}
