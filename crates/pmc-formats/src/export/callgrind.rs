//! Callgrind's format, for KCachegrind and callgrind_annotate: costs of lines and of calls.
//!
//! ```text
//!   event: a__b_ : a (b) the name of an event, if its word in "events:" differs
//!   fn=(1) main          the function whose lines follow
//!   12 500               line, its own cost
//!   cfn=(2) work         a function called from here
//!   calls=3 0            number of samples with the call
//!   14 900               line of the call, inclusive cost
//! ```
//!
//! Readers compute a function's inclusive cost as its own cost plus the cost of its calls. To avoid double
//! counting, each stack adds only once to a function's inclusive cost: if the sample is in the function
//! itself, none of the function's calls count; otherwise, only the outermost one counts.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ExportContents, function_name};
use pmc_analysis::profile::sampled::{LocationCall, StackProfile, StringId};
use pmc_text::text::clean;

/// Costs, one per event.
type CallgrindCosts = Vec<u64>;

/// Costs of one function.
#[derive(Default)]
struct CallgrindFunction {
    /// Own costs by line.
    lines: BTreeMap<u32, CallgrindCosts>,
    /// Number of samples and costs, by line and called function.
    calls: BTreeMap<(u32, u32), (u64, CallgrindCosts)>,
}

/// Identity of a function: module, source file, name.
type CallgrindIdentity = (StringId, Option<StringId>, StringId);

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let stacks = contents.stacks;
    let used: Vec<usize> =
        (0..stacks.events.len()).filter(|at| stacks.events[*at].kept.samples > 0).collect();
    let (examples, functions) = add_up(stacks, &used);
    let full_names: Vec<_> = used.iter().map(|at| clean(&stacks.events[*at].name)).collect();
    let names: Vec<String> = full_names.iter().map(|name| event_word(name)).collect();
    let totals: Vec<u64> = used.iter().map(|at| stacks.events[*at].kept.period).collect();
    writeln!(out, "# callgrind format\nversion: 1\ncreator: pmc {}", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "cmd: {}", clean(contents.command()))?;
    for (word, name) in names.iter().zip(&full_names).filter(|(word, name)| *word != &**name) {
        writeln!(out, "event: {word} : {name}")?;
    }
    writeln!(out, "positions: line\nevents: {}\nsummary: {}", names.join(" "), costs(&totals))?;
    let mut known = CallgrindNames::default();
    for (function, call) in functions.iter().zip(&examples) {
        writeln!(out)?;
        known.place(out, stacks, ["ob", "fl", "fn"], call)?;
        for (line, own) in &function.lines {
            writeln!(out, "{line} {}", costs(own))?;
        }
        for ((line, callee), (samples, of_calls)) in &function.calls {
            known.place(out, stacks, ["cob", "cfi", "cfn"], &examples[*callee as usize])?;
            writeln!(out, "calls={samples} 0\n{line} {}", costs(of_calls))?;
        }
    }
    writeln!(out, "\ntotals: {}", costs(&totals))
}

/// Returns the word by which the format refers to an event.
pub(crate) fn event_word(name: &str) -> String {
    let word = |c: char| if c.is_alphanumeric() || "-_:".contains(c) { c } else { '_' };
    name.chars().map(word).collect()
}

/// Returns the costs of each function, and one of the calls to it, by function number.
fn add_up(stacks: &StackProfile<'_>, used: &[usize]) -> (Vec<LocationCall>, Vec<CallgrindFunction>) {
    let code = stacks.code();
    let mut numbers: FxHashMap<CallgrindIdentity, u32> = FxHashMap::default();
    let (mut examples, mut functions): (Vec<LocationCall>, Vec<CallgrindFunction>) = (Vec::new(), Vec::new());
    let (mut stack, mut outer): (Vec<(u32, u32)>, FxHashSet<u32>) = (Vec::new(), FxHashSet::default());
    for row in &stacks.rows {
        let Some(event) = used.iter().position(|at| *at == row.event as usize) else { continue };
        let add = |costs: &mut CallgrindCosts| {
            costs.resize(used.len(), 0);
            costs[event] = costs[event].saturating_add(row.value.period);
        };
        // Fill `stack` with function numbers and lines, outermost first.
        stack.clear();
        for location in stacks.stack(row.stack).rev() {
            for call in code.calls()[code.range(location)].iter().rev() {
                let number = *numbers.entry((call.dso, call.file, call.symbol)).or_insert_with(|| {
                    examples.push(*call);
                    functions.push(CallgrindFunction::default());
                    examples.len() as u32 - 1
                });
                stack.push((number, call.line));
            }
        }
        let Some(&(leaf, line)) = stack.last() else { continue };
        add(functions[leaf as usize].lines.entry(line).or_default());
        outer.clear();
        for pair in stack.windows(2) {
            let [(caller, line), (callee, _)] = *pair else { continue };
            if caller != leaf && outer.insert(caller) {
                let (samples, costs) = functions[caller as usize].calls.entry((line, callee)).or_default();
                *samples += row.value.samples;
                add(costs);
            }
        }
    }
    (examples, functions)
}

fn costs(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// Names written so far. The file contains each name only once, and later refers to it by number.
#[derive(Default)]
struct CallgrindNames {
    /// The number of each name, for each kind of name (object, file, function).
    numbers: [FxHashMap<String, usize>; 3],
}

impl CallgrindNames {
    /// Writes a function's module, file and name, each after its keyword from `words`.
    fn place(
        &mut self,
        out: &mut dyn Write,
        stacks: &StackProfile<'_>,
        words: [&str; 3],
        call: &LocationCall,
    ) -> io::Result<()> {
        let file = call.file.map_or("???".into(), |file| clean(stacks.texts.get(file)));
        let names = [
            clean(stacks.texts.get(call.dso)).into_owned(),
            file.into_owned(),
            function_name(call, stacks.texts),
        ];
        for ((word, name), numbers) in words.iter().zip(names).zip(&mut self.numbers) {
            let next = numbers.len() + 1;
            match numbers.get(&name) {
                Some(number) => writeln!(out, "{word}=({number})")?,
                None => {
                    writeln!(out, "{word}=({next}) {name}")?;
                    numbers.insert(name, next);
                }
            }
        }
        Ok(())
    }
}
