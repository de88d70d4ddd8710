//! A sorted table for finding the function that contains an address.
//!
//! Takes named ranges in any order, with the overlaps and duplicates of real symbol tables. Determines in
//! advance which name applies to each range, so that each lookup is a single binary search.
//!
//! ```text
//!   symbols   [aaaaaaaaaaaaaaaa]  [bbbb    (no size: ends at the next)
//!                  [cccc]               [ddd]
//!   cuts      |aaaa|cccc|aaaaa|..|bbbbb|ddd|....      the latest start wins, then the outer one again
//! ```

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use crate::symbol::files::image::Image;

/// Priority of a name among several names with the same start. The name with the greatest rank is shown.
///
/// As in perf, symbols with a size come before symbols without one, then non-weak before weak, global before
/// local, fewer leading underscores before more, and longer names before shorter. If a lower-ranked symbol is
/// larger, its name applies after the end of the higher-ranked one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct NameRank {
    /// Whether it is a function, or at least not just a label.
    pub(crate) function: bool,
    /// Whether its binding is not weak.
    pub(crate) strong: bool,
    /// Whether its binding is not local.
    pub(crate) global: bool,
}

/// A function in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The name in the table.
    pub name: &'a str,
}

/// A [`Symbol`] that does not borrow from its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedSymbol {
    /// First address.
    pub(crate) start: u64,
    /// End address, exclusive.
    pub(crate) end: u64,
    /// The name in the table.
    pub(crate) name: Arc<str>,
}

impl From<Symbol<'_>> for OwnedSymbol {
    fn from(Symbol { start, end, name }: Symbol<'_>) -> Self {
        Self { start, end, name: name.into() }
    }
}

#[derive(Debug, Clone, Copy)]
struct SymbolEntry {
    start: u64,
    end: u64,
    /// Whether the symbol table gave no size; `end` is then an upper bound.
    open: bool,
    rank: NameRank,
    /// Number of leading underscores of the name.
    underscores: u32,
    name: NameAt,
}

/// Where a name is stored: the number of a file in [`NameStore`], or [`OWN`], and the position in it.
#[derive(Debug, Clone, Copy)]
struct NameAt {
    file: u8,
    at: u32,
    len: u32,
}

/// Marks names that are not in a file.
const OWN: u8 = u8::MAX;

/// Stores the names of symbols. Names in a file are not copied, because a compiler's names take tens of
/// megabytes.
#[derive(Debug, Default)]
struct NameStore {
    files: Vec<Image>,
    own: String,
    /// Total size of all names.
    bytes: usize,
    /// Maximum total size of all names.
    most: Option<usize>,
}

impl NameStore {
    /// Adds a name; `None` if the limit has been reached.
    fn add(&mut self, name: &str) -> Option<NameAt> {
        let len = u32::try_from(name.len()).ok()?;
        let most = self.most.unwrap_or(MOST_NAME_BYTES);
        self.bytes = self.bytes.checked_add(name.len()).filter(|bytes| *bytes <= most)?;
        let mut files = (0..OWN).zip(&self.files);
        let there = files.find_map(|(file, image)| Some((file, image.position_of(name.as_bytes())?)));
        if let Some((file, at)) = there
            && let Ok(at) = u32::try_from(at)
        {
            return Some(NameAt { file, at, len });
        }
        let at = self.own.len() as u32;
        self.own.push_str(name);
        Some(NameAt { file: OWN, at, len })
    }

    fn get(&self, NameAt { file, at, len }: NameAt) -> &str {
        let place = at as usize..at as usize + len as usize;
        match self.files.get(usize::from(file)) {
            // Another process may have changed the mapped file since pmc read it.
            Some(image) => image.get(place).and_then(|name| str::from_utf8(name).ok()).unwrap_or_default(),
            None => &self.own[place],
        }
    }
}

/// Collects symbols.
#[derive(Debug, Default)]
pub(crate) struct SymbolTableBuilder {
    entries: Vec<SymbolEntry>,
    names: NameStore,
    /// If set, keeps only symbols that affect these addresses.
    only: Option<WantedAddresses>,
}

/// The finished table.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    entries: Vec<SymbolEntry>,
    names: NameStore,
    /// Addresses at which the result changes, each with the index of the entry that applies from there, or
    /// [`NONE`].
    cuts: Vec<(u64, u32)>,
}

const NONE: u32 = u32::MAX;

/// The addresses to look up, and the range around each of them that has the same result.
///
/// ```text
///   symbols        [aaaaaaaaaaaaaa]   [bbbb        boundaries are starts and ends
///   wanted             ^                           what covers it is kept
///   same answer    |---------------|               from the last boundary before it to the first behind
/// ```
/// A label without a size ends at the next boundary, and symbols added later may create a closer boundary.
/// Labels whose final range does not contain the address are therefore dropped at the end.
#[derive(Debug, Default, Clone)]
pub(crate) struct WantedAddresses {
    wanted: Vec<u64>,
    /// For each address, the last boundary at or before it, and the first one after it.
    around: Vec<(u64, u64)>,
    /// The address range is divided into steps of `1 << shift` bytes; for each step, the number of addresses
    /// before it.
    steps: Vec<u32>,
    shift: u32,
}

impl WantedAddresses {
    /// Creates a set of these addresses, which may be in any order.
    pub(crate) fn new(wanted: impl IntoIterator<Item = u64>) -> Self {
        let mut wanted: Vec<u64> = wanted.into_iter().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let around = vec![(0, u64::MAX); wanted.len()];
        let low = wanted.first().copied().unwrap_or_default();
        let reach = wanted.last().copied().unwrap_or_default() - low;
        // Use about as many steps as there are addresses.
        let shift = u64::BITS - (reach / wanted.len().max(1) as u64).leading_zeros();
        let mut steps = Vec::with_capacity(wanted.len() + 2);
        for (at, address) in wanted.iter().enumerate() {
            steps.resize(((address - low) >> shift) as usize + 1, at as u32);
        }
        steps.push(wanted.len() as u32);
        Self { wanted, around, steps, shift }
    }

    /// Returns the index of the first wanted address at or after `address`. Called twice per symbol of a
    /// large table, so it must be fast.
    fn first_from(&self, address: u64) -> usize {
        let Some(into) = self.wanted.first().and_then(|low| address.checked_sub(*low)) else { return 0 };
        let step = (into >> self.shift) as usize;
        let steps = self.steps.get(step..).and_then(|steps| steps.first_chunk());
        let Some([from, to]) = steps else { return self.wanted.len() };
        let (from, to) = (*from as usize, *to as usize);
        from + self.wanted[from..to].partition_point(|wanted| *wanted < address)
    }

    /// Whether there are no addresses.
    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Iterates over the addresses in ascending order, each with the range that has the same result.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (u64, (u64, u64))> {
        self.wanted.iter().copied().zip(self.around.iter().copied())
    }

    fn wants(&mut self, start: u64, end: u64, is_open: bool) -> bool {
        let first = self.first_from(start);
        self.boundary(first, start);
        // Nearly all symbols contain no wanted address. This check detects that without a second search.
        let is_clear = self.wanted.get(first).is_none_or(|wanted| *wanted >= end);
        let behind = if is_clear { first } else { self.first_from(end) };
        self.boundary(behind, end);
        behind > first && (!is_open || self.around[first].0 == start)
    }

    /// Propagates boundaries. Each boundary was recorded only for the adjacent addresses, but also limits the
    /// ranges of more distant addresses without a closer boundary.
    fn propagate_boundaries(&mut self) {
        for at in 1..self.around.len() {
            self.around[at].0 = self.around[at].0.max(self.around[at - 1].0);
        }
        for at in (1..self.around.len()).rev() {
            self.around[at - 1].1 = self.around[at - 1].1.min(self.around[at].1);
        }
    }

    /// Whether there is no boundary between a label and its wanted address. Limits `end` to the next
    /// boundary.
    fn keeps_label(&self, start: u64, end: &mut u64) -> bool {
        self.around.get(self.first_from(start)).is_some_and(|(from, to)| {
            *end = (*end).min(*to);
            *from == start
        })
    }

    /// Records a boundary. `behind` is the index of the first wanted address at or after it.
    fn boundary(&mut self, behind: usize, boundary: u64) {
        if let Some((from, _)) = self.around.get_mut(behind) {
            *from = (*from).max(boundary);
        }
        if let Some((_, to)) = behind.checked_sub(1).and_then(|before| self.around.get_mut(before)) {
            *to = (*to).min(boundary);
        }
    }
}

/// Maximum size of all names of a module together. Names beyond it are ignored.
const MOST_NAME_BYTES: usize = 1 << 30;

/// Returns the maximum total size of the names from files of `bytes` bytes. In the files of compilers and
/// linkers, names are smaller than the files, although some share their text.
pub(crate) fn most_names(bytes: usize) -> usize {
    bytes.saturating_mul(4).saturating_add(1 << 20)
}

impl SymbolTableBuilder {
    /// Creates a builder for a table that can look up only these addresses, and takes no memory for any
    /// others.
    pub(crate) fn for_few(few: WantedAddresses) -> Self {
        Self { only: Some(few), ..Self::default() }
    }

    /// Makes the table refer to names in this file instead of copying them.
    pub(crate) fn leave_names_in(&mut self, image: &Image) {
        self.names.files.push(image.clone());
    }

    /// Limits the total size of the names, given the size of the files that contain them. In a hostile file,
    /// each of many symbols may have the rest of one long text as its name.
    pub(crate) fn limit_names(&mut self, files: usize) {
        self.names.most = Some(most_names(files).min(MOST_NAME_BYTES));
    }

    /// Whether a symbol affects the result. If not, callers need not read its name.
    pub(crate) fn wants(&mut self, start: u64, size: u64, limit: u64) -> bool {
        let end = if size == 0 { limit } else { start.saturating_add(size) };
        match &mut self.only {
            Some(few) if end > start => few.wants(start, end, size == 0),
            Some(_) => false,
            None => true,
        }
    }

    /// Adds a symbol. If `size` is 0, the symbol extends to the next one, but not beyond `limit`, the end of
    /// its section.
    pub(crate) fn add(&mut self, start: u64, size: u64, limit: u64, rank: NameRank, name: &str) {
        let full = self.entries.len() >= NONE as usize / 2;
        let end = if size == 0 { limit } else { start.saturating_add(size) };
        if name.is_empty() || full || end <= start {
            return;
        }
        let underscores = name.bytes().take_while(|byte| *byte == b'_').count() as u32;
        if let Some(name) = self.names.add(name) {
            self.entries.push(SymbolEntry { start, end, open: size == 0, rank, underscores, name });
        }
    }

    /// Builds the table: sorts the symbols, chooses among names with the same start, and determines where
    /// symbols without a size end.
    pub(crate) fn finish(self) -> SymbolTable {
        self.finish_few().0
    }

    /// Like [`SymbolTableBuilder::finish`]; also returns the ranges around the wanted addresses.
    pub(crate) fn finish_few(self) -> (SymbolTable, WantedAddresses) {
        let Self { mut entries, names, only } = self;
        let mut only = only;
        if let Some(few) = &mut only {
            few.propagate_boundaries();
            entries.retain_mut(|e| !e.open || few.keeps_label(e.start, &mut e.end));
        }
        let few = only.unwrap_or_default();
        let worth = |e: &SymbolEntry| (!e.open, e.rank, Reverse(e.underscores), e.name.len, Reverse(e.end));
        entries.sort_unstable_by_key(|e| (Reverse(e.start), Reverse(worth(e))));
        // Ties require a defined order; otherwise, the choice would depend on the order in the file. Names
        // are not compared, because other processes may change mapped bytes during the sort.
        entries.dedup_by(|next, kept| {
            let is_same = next.start == kept.start;
            if is_same && worth(next) == worth(kept) && names.get(next.name) < names.get(kept.name) {
                *kept = *next;
            }
            is_same && (next.open || next.end <= kept.end)
        });
        // If symbols have the same start, the one with the highest rank is innermost.
        entries.reverse();
        end_the_open(&mut entries);
        entries.shrink_to_fit();
        let cuts = cut(&entries);
        (SymbolTable { entries, names, cuts }, few)
    }
}

/// Ends each symbol without a size at the next start. Drops labels inside a function of known size.
fn end_the_open(entries: &mut Vec<SymbolEntry>) {
    let mut covered_to = 0;
    entries.retain(|e| {
        if !e.open {
            covered_to = covered_to.max(e.end);
        }
        !e.open || e.start >= covered_to
    });
    for at in 1..entries.len() {
        let next = entries[at].start;
        let before = &mut entries[at - 1];
        if before.open {
            before.end = before.end.min(next);
        }
    }
}

/// Resolves overlaps once, by sweeping over the starts with a stack of open symbols.
fn cut(entries: &[SymbolEntry]) -> Vec<(u64, u32)> {
    fn close_until(to: u64, stack: &mut Vec<u32>, entries: &[SymbolEntry], cuts: &mut Vec<(u64, u32)>) {
        // The top has the latest start. When it ends, the next symbol on the stack that has not ended applies
        // again.
        while let Some(&top) = stack.last() {
            let end = entries[top as usize].end;
            if end > to {
                break;
            }
            while stack.last().is_some_and(|&below| entries[below as usize].end <= end) {
                stack.pop();
            }
            cuts.push((end, stack.last().copied().unwrap_or(NONE)));
        }
    }
    let mut cuts: Vec<(u64, u32)> = Vec::with_capacity(entries.len() + 1);
    let mut stack: Vec<u32> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        close_until(entry.start, &mut stack, entries, &mut cuts);
        if cuts.last().is_some_and(|(at, _)| *at == entry.start) {
            cuts.pop();
        }
        cuts.push((entry.start, index as u32));
        stack.push(index as u32);
    }
    close_until(u64::MAX, &mut stack, entries, &mut cuts);
    cuts
}

impl SymbolTable {
    /// Builds a table from functions that do not overlap.
    pub(crate) fn from_functions<'a>(functions: impl Iterator<Item = (Range<u64>, Cow<'a, str>)>) -> Self {
        let mut builder = SymbolTableBuilder::default();
        let rank = NameRank { function: true, strong: true, global: true };
        for (range, name) in functions {
            builder.add(range.start, range.end - range.start, range.end, rank, &name);
        }
        builder.finish()
    }

    /// Returns the symbol that contains an address. If several symbols do, returns the one with the latest
    /// start.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let at = self.cuts.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let entry = self.entries.get(self.cuts[at].1 as usize)?;
        Some(self.symbol(entry))
    }

    /// Returns the address, above `address`, up to which [`SymbolTable::find`] gives the same result.
    pub(crate) fn same_until(&self, address: u64) -> u64 {
        let behind = self.cuts.partition_point(|(start, _)| *start <= address);
        self.cuts.get(behind).map_or(u64::MAX, |(start, _)| *start)
    }

    /// Iterates over all symbols, by start address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.entries.iter().map(|entry| self.symbol(entry))
    }

    /// Iterates over the results of [`SymbolTable::find`], each of which applies up to the next address.
    pub(crate) fn areas(&self) -> impl Iterator<Item = (u64, Option<Symbol<'_>>)> {
        let symbol = |number: u32| self.entries.get(number as usize).map(|entry| self.symbol(entry));
        self.cuts.iter().map(move |(start, number)| (*start, symbol(*number)))
    }

    /// Number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn symbol(&self, entry: &SymbolEntry) -> Symbol<'_> {
        Symbol { start: entry.start, end: entry.end, name: self.names.get(entry.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(symbols: &[(u64, u64, &str)]) -> SymbolTable {
        let mut builder = SymbolTableBuilder::default();
        for (start, size, name) in symbols {
            builder.add(*start, *size, 1000, NameRank::default(), name);
        }
        builder.finish()
    }

    fn name(table: &SymbolTable, address: u64) -> &str {
        table.find(address).map_or("-", |s| s.name)
    }

    #[test]
    fn sizeless_symbols_end_at_the_next_symbol_or_section() {
        let table = table(&[(10, 0, "a"), (20, 5, "b"), (30, 0, "c")]);
        let at: Vec<&str> = [9, 10, 19, 20, 24, 25, 30, 999, 1000].map(|a| name(&table, a)).into();
        assert_eq!(at, ["-", "a", "a", "b", "b", "-", "c", "c", "-"]);
    }

    #[test]
    fn inner_symbol_wins_and_outer_resumes_after_it() {
        let table = table(&[(10, 90, "outer"), (20, 10, "inner"), (25, 0, "label")]);
        let at: Vec<&str> = [15, 20, 25, 30, 99, 100].map(|a| name(&table, a)).into();
        assert_eq!(at, ["outer", "inner", "inner", "outer", "outer", "-"]);
    }

    #[test]
    fn names_are_borrowed_from_the_file() {
        let image = Image::held("file", b"\0main\0work\0".to_vec());
        let mut builder = SymbolTableBuilder::default();
        builder.leave_names_in(&image);
        builder.add(10, 5, 99, NameRank::default(), str::from_utf8(&image[6..10]).unwrap());
        builder.add(20, 5, 99, NameRank::default(), "another");
        let table = builder.finish();
        assert_eq!([name(&table, 12), name(&table, 22)], ["work", "another"]);
        assert_eq!(table.names.own, "another");
    }

    #[test]
    fn names_take_memory_in_proportion_to_the_file() {
        let text = "n".repeat(1 << 20);
        let mut builder = SymbolTableBuilder::default();
        builder.limit_names(text.len());
        for at in 0..1000 {
            builder.add(10 * at, 5, u64::MAX, NameRank::default(), &text[at as usize..]);
        }
        let table = builder.finish();
        assert_eq!((table.len(), table.names.bytes <= most_names(text.len())), (5, true));
    }

    #[test]
    fn best_name_at_an_address_is_chosen() {
        let mut builder = SymbolTableBuilder::default();
        let rank = |function, strong, global| NameRank { function, strong, global };
        builder.add(16, 8, 99, rank(true, false, true), "memcpy_weak");
        builder.add(16, 8, 99, rank(true, true, true), "__memcpy_long");
        builder.add(16, 8, 99, rank(true, true, true), "_memcpy");
        builder.add(16, 8, 99, rank(true, true, false), "local");
        assert_eq!(name(&builder.finish(), 17), "_memcpy");
        // Lower-ranked symbols apply after the end of higher-ranked ones.
        let table = table(&[(10, 5, "longer name"), (10, 20, "name"), (10, 3, "a"), (10, 0, "label")]);
        let at: Vec<&str> = [10, 14, 15, 29, 30].map(|a| name(&table, a)).into();
        assert_eq!(at, ["longer name", "longer name", "name", "name", "-"]);
    }

    proptest! {
        #[test]
        fn lookup_equals_linear_scan(
            symbols in prop::collection::vec((0u64..300, 0u64..60), 0..40),
            address in 0u64..400,
            others in prop::collection::vec(0u64..400, 0..6),
        ) {
            let mut builder = SymbolTableBuilder::default();
            for (at, (start, size)) in symbols.iter().enumerate() {
                builder.add(*start, *size, 350, NameRank::default(), &format!("s{at}"));
            }
            let table = builder.finish();
            let scanned = table.iter().filter(|s| s.start <= address && address < s.end).max_by_key(|s| s.start);
            prop_assert_eq!(table.find(address), scanned);
            // Independently of the table, every address inside a symbol with a size must have a name.
            let is_covered = symbols.iter().any(|(start, size)| (*start..start + size).contains(&address));
            prop_assert!(scanned.is_some() || !is_covered);
            // A table for a few addresses gives the same results, even within the bounds that it returns.
            let wanted = others.iter().copied().chain([address]);
            let mut few = SymbolTableBuilder::for_few(WantedAddresses::new(wanted));
            for (at, (start, size)) in symbols.iter().enumerate() {
                if few.wants(*start, *size, 350) {
                    few.add(*start, *size, 350, NameRank::default(), &format!("s{at}"));
                }
            }
            let (alone, few) = few.finish_few();
            for (address, (from, to)) in few.bounds() {
                for near in from..to.min(400) {
                    prop_assert_eq!(table.find(near), alone.find(address), "{} near {}", near, address);
                }
            }
            for near in address..table.same_until(address).min(500) {
                prop_assert_eq!(table.find(near), table.find(address), "{} near {}", near, address);
            }
        }
    }
}
