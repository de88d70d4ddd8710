//! A bare list of names and addresses, as kallsyms is one: kept small, since it has a hundred thousand of them.
//!
//! Receives names without sizes in any order; decides as perf does: a name reaches to the next address, at most a given
//! distance, and of several names of a place the last is shown.

use super::table::Symbol;

/// The list.
#[derive(Debug, Default)]
pub struct NameList {
    /// Rising, each once.
    starts: Vec<u64>,
    /// Where each name begins and ends in `names`.
    spans: Vec<(u32, u32)>,
    names: String,
    /// Addresses at which a name ends that began before, whatever follows.
    ends: Vec<u64>,
    reach: u64,
}

/// All names together; what a list claims beyond that is left out.
const MOST_NAME_BYTES: usize = 256 << 20;

impl NameList {
    /// An empty list whose names reach at most so far.
    pub fn new(reach: u64) -> Self {
        Self { reach, ..Self::default() }
    }

    /// Adds a name.
    pub fn add(&mut self, start: u64, name: &str) {
        if name.is_empty() || self.names.len() + name.len() > MOST_NAME_BYTES {
            return;
        }
        let at = self.names.len() as u32;
        self.names.push_str(name);
        self.starts.push(start);
        self.spans.push((at, self.names.len() as u32));
    }

    /// A name that began before this address ends there at the latest.
    pub fn end_at(&mut self, address: u64) {
        self.ends.push(address);
    }

    /// Puts the list in order. To be called once all names were added.
    pub fn finish(&mut self) {
        let mut order: Vec<u32> = (0..self.starts.len() as u32).collect();
        // Stable: of one place the last that was added stays last.
        order.sort_by_key(|at| self.starts[*at as usize]);
        let last_of_place = |pair: &[u32]| self.starts[pair[0] as usize] != self.starts[pair[1] as usize];
        let mut kept: Vec<u32> =
            order.windows(2).filter(|pair| last_of_place(pair)).map(|pair| pair[0]).collect();
        kept.extend(order.last());
        self.starts = kept.iter().map(|at| self.starts[*at as usize]).collect();
        self.spans = kept.iter().map(|at| self.spans[*at as usize]).collect();
        self.names.shrink_to_fit();
        self.ends.sort_unstable();
    }

    /// The name that holds an address.
    pub fn find(&self, address: u64) -> Option<Symbol<'_>> {
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        Some(self.symbol(at)).filter(|symbol| address < symbol.end)
    }

    fn symbol(&self, at: usize) -> Symbol<'_> {
        let start = self.starts[at];
        let next = self.starts.get(at + 1).copied();
        let stop = self.ends.get(self.ends.partition_point(|end| *end <= start)).copied();
        let end = [next, stop].into_iter().flatten().fold(start.saturating_add(self.reach), u64::min);
        let (from, to) = self.spans[at];
        Symbol { start, end, name: &self.names[from as usize..to as usize] }
    }

    /// All names, by start.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        (0..self.starts.len()).map(|at| self.symbol(at))
    }

    /// Number of places with a name.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_of_a_place_is_shown_and_reaches_to_the_next() {
        let mut list = NameList::new(100);
        for (start, name) in
            [(40, "later"), (16, "__pfx_start"), (16, "start_kernel"), (16, "start"), (500, "far")]
        {
            list.add(start, name);
        }
        list.end_at(60);
        list.finish();
        let name = |address| list.find(address).map_or("-", |s| s.name);
        let at: Vec<&str> = [15, 16, 39, 40, 59, 60, 500, 599, 600].map(name).into();
        assert_eq!(at, ["-", "start", "start", "later", "later", "-", "far", "far", "-"]);
        assert_eq!(list.len(), 3);
    }
}
