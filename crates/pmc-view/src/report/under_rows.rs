//! Call chains below each row, in perf's layout, for scripts that parse perf's output.
//!
//! ```text
//!     39.71%    39.53%  calls    calls  [.] leaf
//!             |
//!             ---leaf                                  common part of all chains
//!                |
//!                |--11.91%--main                       and its branches
//!                |
//!                 --4.33%--middle
//!                           main
//! ```
//! Percentages refer to the total. With `fractal`, they refer to the parent, and a final branch `[...]` shows
//! the cost of omitted branches. `flat` and `folded` print separate chains.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::{ChainPosition, ChainShape, ChainUnit, ReportFormat, ReportLayout, tree};
use pmc_analysis::profile::sampled::{ChainNode, ChainTree, Profile, ProfileEvent, SampleValue, TableRow};

/// Left margin of all chains except folded ones.
const MARGIN: &str = "            ";
/// Text to the left of a branch for each outer level: blank if the level has no more branches, otherwise a
/// vertical line.
const RAILS: [&str; 2] = ["           ", "|          "];

/// Maximum depth; protects against damaged recordings.
const DEEPEST: usize = 1024;

pub(super) struct ChainWriter<'a> {
    profile: &'a Profile,
    event: &'a ProfileEvent,
    layout: &'a ReportLayout,
    /// See [`ChainPosition::UnderRows`].
    omits_first: bool,
    /// Separator between the functions of a folded chain.
    separator: &'a str,
}

impl<'a> ChainWriter<'a> {
    /// Returns a writer for an event's rows if the layout puts chains below rows.
    pub(super) fn new(
        profile: &'a Profile,
        event: &'a ProfileEvent,
        layout: &'a ReportLayout,
    ) -> Option<Self> {
        let ChainPosition::UnderRows { omits_first } = layout.chains else { return None };
        let separator = match &layout.form {
            ReportFormat::Separated(separator) => separator,
            _ => ";",
        };
        Some(Self { profile, event, layout, omits_first, separator })
    }

    /// Writes the chains of a row, if it has any.
    pub(super) fn write(&self, out: &mut dyn Write, row: &TableRow) -> io::Result<()> {
        let Some(chains) = &row.chains else { return Ok(()) };
        match self.layout.shape {
            ChainShape::Tree | ChainShape::Fractal => self.graph(out, chains, row),
            ChainShape::Flat | ChainShape::Folded => self.one_by_one(out, chains),
        }
    }

    fn cost(&self, value: &SampleValue) -> u64 {
        self.event.cost(value)
    }

    fn names(&self, node: &ChainNode) -> Vec<String> {
        let name = |link| tree::name(self.profile, link, self.layout, usize::MAX).painted(self.layout.paint);
        node.links.iter().copied().map(name).collect()
    }

    /// Formats the number in front of a chain. Percentages are `cost` relative to `all`.
    fn amount(&self, value: &SampleValue, cost: u64, all: u64) -> String {
        match self.layout.unit {
            ChainUnit::Period => value.period.to_string(),
            ChainUnit::Count => value.samples.to_string(),
            ChainUnit::Percent => format!("{:.2}%", cost as f64 * 100.0 / all.max(1) as f64),
        }
    }

    fn most(&self) -> usize {
        self.layout.branches.unwrap_or(usize::MAX)
    }

    fn graph(&self, out: &mut dyn Write, chains: &ChainTree, row: &TableRow) -> io::Result<()> {
        let mut roots = &chains.roots[..];
        let mut margin = MARGIN.to_owned();
        let mut has_printed = false;
        let mut above = row.total.clone();
        if let [only] = *roots {
            let node = &chains.nodes[only as usize];
            if self.cost(&node.total) == self.cost(&row.total) {
                let names = self.names(node);
                for name in names.iter().skip(usize::from(self.omits_first)).take(self.most()) {
                    if has_printed {
                        writeln!(out, "{margin}{name}")?;
                    } else {
                        writeln!(out, "{margin}|\n{margin}---{name}")?;
                        margin += "   ";
                        has_printed = true;
                    }
                }
                roots = &node.children;
                above = above.without(&node.own);
            }
        }
        let all = match self.layout.shape {
            ChainShape::Fractal => self.cost(&row.total),
            _ => self.cost(&self.event.total),
        };
        let place = BranchStart { margin: &margin, all, above: &above };
        self.branches(out, chains, roots, &place, &mut vec![true])?;
        // Do not write an empty line if the row has no chains.
        if has_printed || !roots.is_empty() { writeln!(out) } else { Ok(()) }
    }

    /// Writes the branches that start at `place`, with all their descendants. `rails` says for each level
    /// whether its vertical line continues.
    fn branches(
        &self,
        out: &mut dyn Write,
        chains: &ChainTree,
        list: &[u32],
        place: &BranchStart<'_>,
        rails: &mut Vec<bool>,
    ) -> io::Result<()> {
        if rails.len() > DEEPEST {
            return Ok(());
        }
        let BranchStart { margin, all, above } = *place;
        let is_fractal = self.layout.shape == ChainShape::Fractal;
        let level = rails.len() - 1;
        let mut left = above.clone();
        let mut rest = all;
        for (at, number) in list.iter().enumerate().take(self.most()) {
            let node = &chains.nodes[*number as usize];
            rest = rest.saturating_sub(self.cost(&node.total));
            left = left.without(&node.total);
            let ends = at + 1 == list.len() && !(is_fractal && rest > 0);
            writeln!(out, "{margin}{}", drawn(rails))?;
            rails[level] = !ends;
            let drawn = drawn(rails);
            let amount = self.amount(&node.total, self.cost(&node.total), all);
            for (at, name) in self.names(node).iter().enumerate() {
                match at {
                    0 => writeln!(out, "{margin}{}--{amount}--{name}", joint(&drawn))?,
                    _ => writeln!(out, "{margin}{drawn}{name}")?,
                }
            }
            let below = node.total.clone().without(&node.own);
            let all = if is_fractal { self.cost(&below) } else { all };
            rails.push(true);
            self.branches(out, chains, &node.children, &BranchStart { margin, all, above: &below }, rails)?;
            rails.pop();
        }
        // As in perf, the branch `[...]` is omitted if counts are shown and the omitted branches have no
        // samples.
        let has_rest = rest > 0 && rest != all && (self.layout.unit != ChainUnit::Count || left.samples > 0);
        if is_fractal && has_rest {
            rails[level] = false;
            let amount = self.amount(&left, rest, all);
            writeln!(out, "{margin}{}--{amount}--[...]", joint(&drawn(rails)))?;
        }
        Ok(())
    }

    fn one_by_one(&self, out: &mut dyn Write, chains: &ChainTree) -> io::Result<()> {
        let least = (self.layout.branch_limit / 100.0 * self.cost(&self.event.total) as f64) as u64;
        let mut above: Vec<Option<usize>> = vec![None; chains.nodes.len()];
        for (number, node) in chains.nodes.iter().enumerate() {
            node.children.iter().for_each(|child| above[*child as usize] = Some(number));
        }
        let ends_here = |node: &ChainNode| node.own.samples > 0 && self.cost(&node.own) >= least;
        let mut ends: Vec<usize> = (0..above.len()).filter(|at| ends_here(&chains.nodes[*at])).collect();
        ends.sort_by_key(|at| Reverse(self.cost(&chains.nodes[*at].own)));
        for end in ends.into_iter().take(self.most()) {
            let mut on_the_way: Vec<usize> = std::iter::successors(Some(end), |at| above[*at]).collect();
            on_the_way.reverse();
            let names: Vec<String> =
                on_the_way.iter().flat_map(|at| self.names(&chains.nodes[*at])).collect();
            let node = &chains.nodes[end];
            let all = self.cost(&self.event.total);
            if self.layout.shape == ChainShape::Folded {
                // A folded chain counts only samples that end at its last function. A flat chain, as in perf,
                // also counts samples that continue from there.
                let amount = self.amount(&node.own, self.cost(&node.own), all);
                let names: Vec<String> = names.iter().map(|name| name.replace(self.separator, ".")).collect();
                writeln!(out, "{amount} {}", names.join(self.separator))?;
            } else {
                writeln!(out, "           {}", self.amount(&node.total, self.cost(&node.total), all))?;
                for name in names {
                    writeln!(out, "{MARGIN}    {name}")?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

/// Returns the vertical lines of all levels as text.
fn drawn(rails: &[bool]) -> String {
    rails.iter().map(|goes_on| RAILS[usize::from(*goes_on)]).collect()
}

/// Returns the tree's vertical lines as text, up to the column of the last one, where a branch starts.
fn joint(drawn: &str) -> &str {
    &drawn[..drawn.len() - RAILS[0].len() + 1]
}

/// Margin and costs shared by sibling branches.
struct BranchStart<'a> {
    margin: &'a str,
    /// The total that percentages refer to.
    all: u64,
    /// Cost of all sibling branches, including omitted branches.
    above: &'a SampleValue,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::sampled::chain_tree::ChainLink;
    use pmc_sys::abi::CpuMode;

    /// Writes a tree in which `main` has own samples and calls `work` and `idle`. Another branch was too
    /// small to keep.
    fn written(shape: ChainShape, unit: ChainUnit, omits_first: bool) -> String {
        let mut profile = Profile::default();
        let dso = profile.texts.add("app");
        let value = |samples: u64| SampleValue { samples, period: samples * 10, ..SampleValue::default() };
        let mut node = |names: &[&str], own: u64, total: u64, children: &[u32]| {
            let link = |name: &&str| ChainLink {
                symbol: profile.texts.add(name),
                dso,
                level: CpuMode::User,
                inlined: *name == "idle",
            };
            let links = names.iter().map(link).collect();
            ChainNode { links, own: value(own), total: value(total), children: children.to_vec() }
        };
        let nodes = vec![
            node(&["start", "main"], 4, 20, &[1, 2]),
            node(&["work", "leaf"], 8, 8, &[]),
            node(&["idle"], 4, 4, &[]),
        ];
        let chains = Some(Box::new(ChainTree { nodes, roots: vec![0] }));
        let row = TableRow { own: value(4), total: value(20), chains, ..TableRow::default() };
        let event = ProfileEvent { total: value(40), ..ProfileEvent::default() };
        let chains = ChainPosition::UnderRows { omits_first };
        let layout = ReportLayout { shape, unit, chains, is_piped: true, ..ReportLayout::default() };
        let mut out = Vec::new();
        ChainWriter::new(&profile, &event, &layout).unwrap().write(&mut out, &row).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn layouts_match_perf() {
        let graph = "            |
            ---start
               main
               |          
               |--20.00%--work
               |          leaf
               |          
                --10.00%--idle (inlined)

";
        assert_eq!(written(ChainShape::Tree, ChainUnit::Percent, false), graph);
        let later = graph.replace("start\n               main", "main");
        assert_eq!(written(ChainShape::Tree, ChainUnit::Percent, true), later);
        let fractal = "            |
            ---start
               main
               |          
               |--40.00%--work
               |          leaf
               |          
               |--20.00%--idle (inlined)
                --40.00%--[...]

";
        assert_eq!(written(ChainShape::Fractal, ChainUnit::Percent, false), fractal);
        let flat = "           80
                start
                main
                work
                leaf

           200
                start
                main

           40
                start
                main
                idle (inlined)

";
        assert_eq!(written(ChainShape::Flat, ChainUnit::Period, false), flat);
        let folded = "8 start;main;work;leaf\n4 start;main\n4 start;main;idle (inlined)\n";
        assert_eq!(written(ChainShape::Folded, ChainUnit::Count, false), folded);
    }
}
