//! Costs of functions in languages whose runtimes generate code and name its functions: Python, JavaScript,
//! Java, Erlang.
//!
//! Receives rows of stacks and the calls at their locations, and returns one row per function. A function's
//! own cost includes the native code that it runs, mainly its interpreter. In the table of all functions, in
//! contrast, a Python function never has own samples.
//!
//! ```text
//!   stack  dict_lookup <- _PyEval_EvalFrameDefault <- py::f <- _PyEval_EvalFrameDefault <- py::main
//!     own:    py::f
//!     total:  py::f, py::main
//! ```

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::code::{CodeKind, LocationCall, LocationCalls};
use super::share::ShareOf;
use super::strings::{StringId, StringTable};
use super::table_input::TableInput;
use crate::session::SampleValue;

/// A function of a language, with its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct LanguageFunction {
    /// The function's name, as written by the runtime.
    pub symbol: StringId,
    /// Samples in the function and in the native code that it runs.
    pub own: SampleValue,
    /// `own`, plus samples in the functions that it calls.
    pub total: SampleValue,
}

/// Prefixes of function names that belong to a runtime instead of a program: V8, the JVM, BEAM.
const RUNTIME_STARTS: [&str; 8] = [
    "Builtin:",
    "BytecodeHandler:",
    "Stub:",
    "Interpreter",
    "StubRoutines",
    "I2C/C2I adapters",
    "global::",
    "erts_beamasm:",
];
/// Suffixes of function names that belong to a runtime.
const RUNTIME_ENDS: [&str; 5] = ["stub", "Blob", "-CodeInfoPrologue", "::codeHeader", "::codeFooter"];

/// Whether a call is code that a runtime generated and named.
pub(super) fn is_generated(call: &LocationCall, texts: &StringTable) -> bool {
    call.named && CodeKind::from_mode(call.level, texts.get(call.dso)) == CodeKind::Generated
}

/// Whether a name of generated code belongs to a runtime itself instead of its language.
pub(super) fn is_runtime_name(name: &str) -> bool {
    RUNTIME_STARTS.iter().any(|start| name.starts_with(start))
        || RUNTIME_ENDS.iter().any(|end| name.ends_with(end))
}

fn is_function(call: &LocationCall, texts: &StringTable) -> bool {
    is_generated(call, texts) && !is_runtime_name(texts.get(call.short))
}

/// Returns, for each call, whether the predicate is true. Checks each pair of module and function only once.
pub(super) fn marked(
    code: &LocationCalls,
    texts: &StringTable,
    holds: fn(&LocationCall, &StringTable) -> bool,
) -> Vec<bool> {
    let mut known: FxHashMap<(StringId, StringId), bool> = FxHashMap::default();
    let ask =
        |call: &LocationCall| *known.entry((call.dso, call.symbol)).or_insert_with(|| holds(call, texts));
    code.calls().iter().map(ask).collect()
}

/// A function's sums, and the last row that was added to the function's total.
#[derive(Default)]
struct LanguageSum {
    own: SampleValue,
    total: SampleValue,
    counted: Option<usize>,
}

/// Returns the functions of each event, by descending own cost.
pub(super) fn functions(
    input: &TableInput<'_>,
    events: usize,
    share_of: ShareOf,
    texts: &StringTable,
) -> Vec<Vec<LanguageFunction>> {
    let is_function = marked(input.code, texts, is_function);
    if !is_function.contains(&true) {
        return vec![Vec::new(); events];
    }
    let mut sums: Vec<FxHashMap<StringId, LanguageSum>> = Vec::new();
    sums.resize_with(events, FxHashMap::default);
    for (number, (key, value)) in input.rows.iter().enumerate() {
        let calls = input.resolved.stack(key.stack).flat_map(|location| input.code.range(location));
        let mut is_innermost = true;
        for call in calls.filter(|call| is_function[*call]) {
            let symbol = input.code.calls()[call].symbol;
            let sum = sums[key.event as usize].entry(symbol).or_default();
            if std::mem::take(&mut is_innermost) {
                sum.own += value;
            }
            // A recursive function counts once.
            if sum.counted.replace(number) != Some(number) {
                sum.total += value;
            }
        }
    }
    let of_event = |sums: FxHashMap<StringId, LanguageSum>| {
        let function = |(symbol, LanguageSum { own, total, .. })| LanguageFunction { symbol, own, total };
        let mut functions: Vec<LanguageFunction> = sums.into_iter().map(function).collect();
        functions.sort_by_key(|function| {
            let cost = |value: &SampleValue| Reverse(share_of.cost(value));
            (cost(&function.own), cost(&function.total), texts.get(function.symbol))
        });
        functions
    };
    sums.into_iter().map(of_event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::CpuMode;

    #[test]
    fn runtime_internals_are_not_functions() {
        let mut texts = StringTable::default();
        let mut is = |dso: &str, name: &str, named: bool| {
            let call = LocationCall::new(texts.add(dso), texts.add(name), CpuMode::User, named);
            is_function(&call, &texts)
        };
        let jit = "[JIT] tid 7";
        for name in ["py::serve:/srv/shop.py", "JS:*serve shop.js:3:15", "shop:serve/2", "JIT$serve"] {
            assert!(is(jit, name, true) && !is("libc.so.6", name, true) && !is(jit, name, false), "{name}");
        }
        for name in ["Builtin:JSEntry", "Interpreter", "I2C/C2I adapters", "VM_Version stub", "global::swap"]
        {
            assert!(!is(jit, name, true), "{name}");
        }
        assert!(is("[anon:v8]", "JS:*serve", true) && is("jitted-7-1.so", "serve", true));
    }
}
