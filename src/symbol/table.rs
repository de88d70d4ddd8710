//! A sorted table of functions: which one holds an address.
//!
//! Receives named ranges in any order, overlapping and doubled as they come out of symbol tables, and decides once which name stands
//! where; a lookup is then one binary search. Leaves reading of symbol tables to others.
//!
//! ```text
//!   symbols   [aaaaaaaaaaaaaaaa]  [bbbb    (no size: ends at the next)
//!                  [cccc]               [ddd]
//!   cuts      |aaaa|cccc|aaaaa|..|bbbbb|ddd|....      the latest start wins, then the outer one again
//! ```

/// How good a name is where several start at the same address; the larger is shown.
///
/// As perf chooses: sized before unsized, not weak before weak, global before local, fewer leading underscores, longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rank {
    /// It is a function, or at least no bare label.
    pub function: bool,
    /// Its binding is not weak.
    pub strong: bool,
    /// Its binding is not local.
    pub global: bool,
}

/// A function in a table. `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// The name as the table has it.
    pub name: &'a str,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    /// The table gave no size: `end` is only the farthest it can be.
    open: bool,
    rank: Rank,
    name_at: u32,
    name_len: u32,
}

/// Collects symbols.
#[derive(Debug, Default)]
pub struct Builder {
    entries: Vec<Entry>,
    names: String,
    /// Among names of one place the last added is shown, whatever the ranks say.
    last_wins: bool,
}

/// The finished table.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    names: String,
    /// Where the answer changes: from this address on it is that entry, or none.
    cuts: Vec<(u64, u32)>,
}

const NONE: u32 = u32::MAX;

/// All names of one module together; what a file claims beyond that is left out.
const MOST_NAME_BYTES: usize = 1 << 30;

impl Builder {
    /// A builder for a bare list of names (kallsyms), where perf shows the last name of a place.
    pub fn of_list() -> Self {
        Self { last_wins: true, ..Self::default() }
    }

    /// Adds a symbol; `size` 0 means that it reaches to the next symbol, `limit` (the end of its section) at most.
    pub fn add(&mut self, start: u64, size: u64, limit: u64, rank: Rank, name: &str) {
        let full = self.names.len() + name.len() > MOST_NAME_BYTES || self.entries.len() >= NONE as usize / 2;
        let end = if size == 0 { limit } else { start.saturating_add(size) };
        if name.is_empty() || full || end <= start {
            return;
        }
        let (name_at, name_len) = (self.names.len() as u32, name.len() as u32);
        self.names.push_str(name);
        self.entries.push(Entry { start, end, open: size == 0, rank, name_at, name_len });
    }

    /// Number of symbols so far.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sorts, chooses among names of the same place, ends the open ones.
    pub fn finish(self) -> Table {
        let Self { mut entries, names, last_wins } = self;
        let text = |e: &Entry| &names[e.name_at as usize..(e.name_at + e.name_len) as usize];
        let worth = |e: &Entry| {
            let underscores = text(e).bytes().take_while(|b| *b == b'_').count();
            (!e.open, e.rank, std::cmp::Reverse(underscores), e.name_len)
        };
        entries.sort_unstable_by(|a, b| {
            let better = || match last_wins {
                true => b.name_at.cmp(&a.name_at),
                // Equal names need an order too, or the choice would hang on the order in the file.
                false => worth(b).cmp(&worth(a)).then_with(|| text(a).cmp(text(b))),
            };
            a.start.cmp(&b.start).then_with(better)
        });
        entries.dedup_by_key(|e| e.start);
        end_the_open(&mut entries);
        let cuts = cut(&entries);
        Table { entries, names, cuts }
    }
}

/// Ends each open symbol at the next start; drops labels that stand inside of a function of known size.
fn end_the_open(entries: &mut Vec<Entry>) {
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

/// Sweeps over the starts with a stack of what is open, so that overlaps are decided once.
fn cut(entries: &[Entry]) -> Vec<(u64, u32)> {
    fn close_until(to: u64, stack: &mut Vec<u32>, entries: &[Entry], cuts: &mut Vec<(u64, u32)>) {
        // The top has the latest start; when it ends, what is below it and still runs stands again.
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

impl Table {
    /// The symbol that holds an address: of several the one that starts last.
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let at = self.cuts.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        let entry = self.entries.get(self.cuts[at].1 as usize)?;
        Some(self.symbol(entry))
    }

    /// All symbols, by start.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.entries.iter().map(|entry| self.symbol(entry))
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn symbol(&self, entry: &Entry) -> Symbol<'_> {
        let name = &self.names[entry.name_at as usize..(entry.name_at + entry.name_len) as usize];
        Symbol { start: entry.start, end: entry.end, name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(symbols: &[(u64, u64, &str)]) -> Table {
        let mut builder = Builder::default();
        for (start, size, name) in symbols {
            builder.add(*start, *size, 1000, Rank::default(), name);
        }
        builder.finish()
    }

    fn name(table: &Table, address: u64) -> &str {
        table.find(address).map_or("-", |s| s.name)
    }

    #[test]
    fn open_symbols_end_at_the_next_and_at_their_section() {
        let table = table(&[(10, 0, "a"), (20, 5, "b"), (30, 0, "c")]);
        let at: Vec<&str> = [9, 10, 19, 20, 24, 25, 30, 999, 1000].map(|a| name(&table, a)).into();
        assert_eq!(at, ["-", "a", "a", "b", "b", "-", "c", "c", "-"]);
    }

    #[test]
    fn the_inner_symbol_wins_and_the_outer_stands_again() {
        let table = table(&[(10, 90, "outer"), (20, 10, "inner"), (25, 0, "label")]);
        let at: Vec<&str> = [15, 20, 25, 30, 99, 100].map(|a| name(&table, a)).into();
        assert_eq!(at, ["outer", "inner", "inner", "outer", "outer", "-"]);
    }

    #[test]
    fn the_best_name_of_a_place_is_shown() {
        let mut builder = Builder::default();
        let rank = |function, strong, global| Rank { function, strong, global };
        builder.add(16, 8, 99, rank(true, false, true), "memcpy_weak");
        builder.add(16, 8, 99, rank(true, true, true), "__memcpy_long");
        builder.add(16, 8, 99, rank(true, true, true), "_memcpy");
        builder.add(16, 8, 99, rank(true, true, false), "local");
        assert_eq!(name(&builder.finish(), 17), "_memcpy");
    }

    #[test]
    fn of_a_list_the_last_name_of_a_place_is_shown() {
        let mut builder = Builder::of_list();
        let rank = |global| Rank { function: true, strong: true, global };
        builder.add(16, 0, 99, rank(true), "__pfx_start");
        builder.add(16, 0, 99, rank(true), "start_kernel_with_a_long_name");
        builder.add(16, 0, 99, rank(false), "start");
        assert_eq!(name(&builder.finish(), 17), "start");
    }

    proptest! {
        #[test]
        fn a_lookup_equals_a_linear_scan(
            symbols in prop::collection::vec((0u64..300, 0u64..60), 0..40),
            address in 0u64..400,
        ) {
            let mut builder = Builder::default();
            for (at, (start, size)) in symbols.iter().enumerate() {
                builder.add(*start, *size, 350, Rank::default(), &format!("s{at}"));
            }
            let table = builder.finish();
            let scanned = table.iter().filter(|s| s.start <= address && address < s.end).max_by_key(|s| s.start);
            prop_assert_eq!(table.find(address), scanned);
            // Independently of the table: whatever a sized symbol covers has a name.
            if symbols.iter().any(|(start, size)| *start <= address && address < start + size) {
                prop_assert!(scanned.is_some() || symbols.iter().any(|(s, n)| *n > 0 && *s <= address && address < s + n && symbols.iter().any(|(o, m)| o == s && m != n)));
            }
        }
    }
}
