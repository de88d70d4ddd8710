//! A compact list of names and addresses, for kallsyms, which has a hundred thousand names.
//!
//! Takes names without sizes, in any order. Follows perf's rules: a name extends to the next address, but
//! not beyond a given distance, and the last name at an address wins. A finished list is one block with the
//! same layout in memory and in a file. Unused parts of a mapped file take no memory.
//!
//! ```text
//!   | reach, starts, ends | ends, rising | by start, rising: start, where its name ends | all names |
//!          u64 each            u64 each                u64, u32                           UTF-8
//!                                                                                    all little-endian
//! ```

use super::table::Symbol;
use crate::symbol::files::image::Image;

/// The finished list.
#[derive(Debug)]
pub(crate) struct NameList {
    image: Image,
    /// Offset of the list in the image.
    at: usize,
    reach: u64,
    len: usize,
    ends: usize,
}

/// Collects names.
#[derive(Debug, Default)]
pub(crate) struct NameListBuilder {
    names: Vec<(u64, u32, u32)>,
    text: String,
    /// Addresses at which earlier names end, even if no name follows.
    ends: Vec<u64>,
    reach: u64,
}

/// Maximum size of all names together. Names that exceed it are ignored.
const MOST_NAME_BYTES: usize = 256 << 20;
/// Size of the header: reach, number of starts, number of ends.
const HEAD: usize = 24;
/// Size of an entry: start address, end of the name.
const PLACE: usize = 12;

impl Default for NameList {
    fn default() -> Self {
        NameListBuilder::default().finish()
    }
}

impl NameListBuilder {
    /// Creates an empty builder. `reach` is the maximum size of a name's address range.
    pub(crate) fn new(reach: u64) -> Self {
        Self { reach, ..Self::default() }
    }

    pub(crate) fn add(&mut self, start: u64, name: &str) {
        if name.is_empty() || self.text.len() + name.len() > MOST_NAME_BYTES {
            return;
        }
        let at = self.text.len() as u32;
        self.text.push_str(name);
        self.names.push((start, at, self.text.len() as u32));
    }

    /// Ends the range of any earlier name at this address.
    pub(crate) fn end_at(&mut self, address: u64) {
        self.ends.push(address);
    }

    /// Serializes the list.
    pub(crate) fn encode(mut self) -> Vec<u8> {
        // The sort is stable, so the last name at each address is kept.
        self.names.sort_by_key(|(start, ..)| *start);
        self.names.reverse();
        self.names.dedup_by_key(|(start, ..)| *start);
        self.names.reverse();
        self.ends.sort_unstable();
        let Self { names, text, ends, reach } = self;
        let of_name = |(_, from, to): &(u64, u32, u32)| &text[*from as usize..*to as usize];
        let bytes: usize = names.iter().map(|name| of_name(name).len()).sum();
        let mut out = Vec::with_capacity(HEAD + names.len() * PLACE + ends.len() * 8 + bytes);
        out.extend([reach, names.len() as u64, ends.len() as u64].iter().flat_map(|word| word.to_le_bytes()));
        out.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
        let mut end = 0u32;
        for name in &names {
            end += of_name(name).len() as u32;
            out.extend(name.0.to_le_bytes());
            out.extend(end.to_le_bytes());
        }
        for name in &names {
            out.extend(of_name(name).as_bytes());
        }
        out
    }

    /// Builds the list.
    pub(crate) fn finish(self) -> NameList {
        let (reach, ends) = (self.reach, self.ends.len());
        let image = Image::held("[names]", self.encode());
        let len = word(&image, 8).unwrap_or(0) as usize;
        NameList { image, at: 0, reach, len, ends }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// Returns the first index below `len` for which `is_before` is false, or else `len`.
fn partition_point(len: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (0, len);
    while from < to {
        let middle = from + (to - from) / 2;
        if is_before(middle) { from = middle + 1 } else { to = middle }
    }
    from
}

impl NameList {
    /// Opens a list that starts at an offset in an image and extends to its end; `None` if the list is
    /// invalid.
    pub(crate) fn open(image: Image, at: usize) -> Option<Self> {
        let number = |place: usize| usize::try_from(word(&image, at.checked_add(place)?)?).ok();
        let (len, ends) = (number(8)?, number(16)?);
        let fixed = len.checked_mul(PLACE)?.checked_add(ends.checked_mul(8)?)?.checked_add(HEAD)?;
        let text = image.len().checked_sub(at.checked_add(fixed)?)?;
        let list = Self { at, reach: word(&image, at)?, len, ends, image };
        let named = len.checked_sub(1).map_or(Some(0), |last| list.name_end(last))?;
        (named == text).then_some(list)
    }

    fn end(&self, number: usize) -> u64 {
        word(&self.image, self.at + HEAD + number * 8).unwrap_or(u64::MAX)
    }

    fn place(&self, number: usize) -> usize {
        self.at + HEAD + self.ends * 8 + number * PLACE
    }

    fn start(&self, number: usize) -> u64 {
        word(&self.image, self.place(number)).unwrap_or(u64::MAX)
    }

    /// End of a name in the block of all names.
    fn name_end(&self, number: usize) -> Option<usize> {
        let end = self.image.get(self.place(number) + 8..)?.first_chunk()?;
        Some(u32::from_le_bytes(*end) as usize)
    }

    fn name(&self, number: usize) -> Option<&str> {
        let from = number.checked_sub(1).map_or(Some(0), |before| self.name_end(before))?;
        let names = self.image.get(self.place(self.len)..)?;
        std::str::from_utf8(names.get(from..self.name_end(number)?)?).ok()
    }

    /// Returns the name whose range contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let at = partition_point(self.len, |number| self.start(number) <= address).checked_sub(1)?;
        self.symbol(at).filter(|symbol| address < symbol.end)
    }

    fn symbol(&self, at: usize) -> Option<Symbol<'_>> {
        let start = self.start(at);
        let next = (at + 1 < self.len).then(|| self.start(at + 1));
        let stop = partition_point(self.ends, |number| self.end(number) <= start);
        let stop = (stop < self.ends).then(|| self.end(stop));
        let end = [next, stop].into_iter().flatten().fold(start.saturating_add(self.reach), u64::min);
        Some(Symbol { start, end, name: self.name(at)? })
    }

    /// Releases the memory of pages that were read, if the list is a mapped file.
    pub(crate) fn release(&self) {
        self.image.release();
    }

    /// Iterates over all names, by start address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        (0..self.len).filter_map(|at| self.symbol(at))
    }

    /// Number of addresses with a name.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_name_at_an_address_wins_and_extends_to_the_next() {
        let mut list = NameListBuilder::new(100);
        for (start, name) in
            [(40, "later"), (16, "__pfx_start"), (16, "start_kernel"), (16, "start"), (500, "far")]
        {
            list.add(start, name);
        }
        list.end_at(60);
        let mut bytes = b"other".to_vec();
        bytes.append(&mut list.encode());
        // A list that is too short or too long is invalid.
        for wrong in [&bytes[..bytes.len() - 1], &bytes[..5], &bytes[..20], &[&bytes[..], b"x"].concat()] {
            assert!(NameList::open(Image::held("x", wrong.to_vec()), 5).is_none());
        }
        let list = NameList::open(Image::held("x", bytes), 5).unwrap();
        let name = |address| list.find(address).map_or("-", |s| s.name);
        let at: Vec<&str> = [15, 16, 39, 40, 59, 60, 500, 599, 600].map(name).into();
        assert_eq!(at, ["-", "start", "start", "later", "later", "-", "far", "far", "-"]);
        assert_eq!(list.len(), 3);
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), counts in (0u64..4, 0u64..4)) {
            let mut bytes = bytes;
            for (place, count) in [(8, counts.0), (16, counts.1)] {
                if let Some(word) = bytes.get_mut(place..place + 8) {
                    word.copy_from_slice(&count.to_le_bytes());
                }
            }
            if let Some(list) = NameList::open(Image::held("x", bytes), 0) {
                let _ = (list.find(7), list.find(u64::MAX), list.iter().count());
            }
        }
    }
}
