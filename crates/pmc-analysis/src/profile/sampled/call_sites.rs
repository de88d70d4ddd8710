//! The lines that call a function: for each sample in it, the frame from which it was called.
//!
//! Receives stacks with names ([`StackProfile`]). Returns one entry per calling function and line.

use rustc_hash::FxHashMap;

use super::SampleValue;
use super::code::LocationCall;
use super::stacks::StackProfile;
use super::strings::StringId;

/// A line that calls a function. All text is untrusted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallSite {
    /// The calling function.
    pub function: String,
    /// Its module's short name.
    pub module: String,
    /// The source file, and the line; 0 if unknown.
    pub source: Option<(String, u32)>,
    /// The samples in the called function and its callees.
    pub value: SampleValue,
}

/// Returns the lines that call the function with this name, costliest first, and the sum of all samples in
/// the function. With recursion, the caller is the first other function. Samples whose stack ends in the
/// function have no caller and are only part of the sum.
pub fn call_sites(stacks: &StackProfile<'_>, event: usize, function: &str) -> (Vec<CallSite>, SampleValue) {
    type Key = (StringId, StringId, Option<StringId>, u32);
    let (mut sum, mut of_line) = (SampleValue::default(), FxHashMap::<Key, SampleValue>::default());
    for row in stacks.rows.iter().filter(|row| row.event as usize == event) {
        let calls = stacks
            .stack(row.stack)
            .flat_map(|location| &stacks.code().calls()[stacks.code().range(location)]);
        let is_other = |call: &&LocationCall| stacks.texts.get(call.symbol) != function;
        let mut from_here = calls.skip_while(is_other).peekable();
        if from_here.peek().is_none() {
            continue;
        }
        sum += &row.value;
        if let Some(caller) = from_here.find(is_other) {
            *of_line.entry((caller.symbol, caller.dso, caller.file, caller.line)).or_default() += &row.value;
        }
    }
    let text = |id: StringId| stacks.texts.get(id).to_owned();
    let site = |((function, module, file, line), value): (Key, SampleValue)| CallSite {
        function: text(function),
        module: text(module),
        source: file.map(|file| (text(file), line)),
        value,
    };
    let mut sites: Vec<CallSite> = of_line.into_iter().map(site).collect();
    sites.sort_by(|a, b| {
        b.value
            .period
            .cmp(&a.value.period)
            .then_with(|| (&a.function, &a.source).cmp(&(&b.function, &b.source)))
    });
    (sites, sum)
}
