//! Finds interpreters in the samples. Determines whether the functions of their languages have names, and how
//! to get missing names.
//!
//! Receives the stacks and the calls at their locations, and returns results for the data quality statement.
//! An interpreter is recognized by its evaluator, the function that runs programs of the language. The
//! language's functions have names only if a runtime generates code for them and writes the names to a file.

use rustc_hash::FxHashSet;

use super::code::LocationCalls;
use super::language::{is_generated, marked};
use super::strings::{StringId, StringTable};
use crate::session::ResolvedStacks;
use pmc_symbols::symbol::runtime_names;

struct Interpreter {
    language: &'static str,
    /// Names of the interpreter's evaluator. While a program of the language runs, its stack contains one of
    /// them.
    evaluators: &'static [&'static str],
    /// Returns whether functions of the language never have names, given the module of the evaluator.
    is_nameless: fn(module: &str) -> bool,
    /// Returns a remedy for missing names.
    remedy: fn(module: &str) -> &'static str,
}

/// First minor version of Python 3 that writes the names of its functions. Source: docs.python.org, "Python
/// support for the Linux perf profiler".
const NAMING_PYTHON: u32 = 12;

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        language: "Python",
        evaluators: &["_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx"],
        is_nameless: |module| python_minor(module).is_some_and(|minor| minor < NAMING_PYTHON),
        remedy: |module| match python_minor(module) {
            Some(minor) if minor >= NAMING_PYTHON => "python -X perf, or PYTHONPERFSUPPORT=1",
            _ => runtime_names::PYTHON,
        },
    },
    Interpreter {
        language: "Perl",
        evaluators: &["Perl_runops_standard"],
        is_nameless: |_| true,
        remedy: |_| runtime_names::PERL,
    },
    Interpreter {
        language: "PHP",
        evaluators: &["execute_ex"],
        is_nameless: |_| false,
        remedy: |_| runtime_names::PHP,
    },
    Interpreter {
        language: "Ruby",
        // The first name is often stripped from the file; the second name is exported.
        evaluators: &["vm_exec_core", "ruby_run_node"],
        is_nameless: |_| false,
        remedy: |_| runtime_names::RUBY,
    },
];

/// Whether a function is an interpreter's evaluator.
pub(super) fn is_evaluator(symbol: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| interpreter.evaluators.contains(&symbol))
}

/// Returns the minor version from the name of a Python file (`python3.11`, `libpython3.11.so.1.0`), or 0 for
/// Python 2.
fn python_minor(module: &str) -> Option<u32> {
    let (_, version) = module.split_once("python")?;
    let (major, minor) = version.split_once('.')?;
    let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
    match major {
        "2" => Some(0),
        "3" => minor[..digits].parse().ok(),
        _ => None,
    }
}

/// A language whose functions have no names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamelessLanguage {
    pub(crate) language: &'static str,
    /// Number of samples in the interpreter and its callees.
    pub(crate) samples: u64,
    /// How to get names for the functions.
    pub(crate) remedy: &'static str,
}

/// Returns the languages whose functions have no names. If no callers were recorded, returns only languages
/// whose functions never have names.
pub(super) fn nameless(
    resolved: &ResolvedStacks,
    code: &LocationCalls,
    texts: &StringTable,
    has_callers: bool,
) -> Vec<NamelessLanguage> {
    let mut found = Vec::new();
    for interpreter in INTERPRETERS {
        let names: FxHashSet<StringId> =
            interpreter.evaluators.iter().filter_map(|name| texts.find(name)).collect();
        if names.is_empty() {
            continue;
        }
        let is_evaluator: Vec<bool> = code.calls().iter().map(|call| names.contains(&call.short)).collect();
        let Some(first) = is_evaluator.iter().position(|is_evaluator| *is_evaluator) else { continue };
        let module = texts.get(code.calls()[first].dso);
        let is_generated = marked(code, texts, is_generated);
        let (mut all, mut nameless) = (0, 0);
        for (key, value) in &resolved.rows {
            let calls = || resolved.stack(key.stack).flat_map(|location| code.range(location));
            if calls().any(|call| is_evaluator[call]) {
                all += value.samples;
                nameless += if calls().any(|call| is_generated[call]) { 0 } else { value.samples };
            }
        }
        // If names are missing in only a minority of the stacks, the cause is broken stacks, not the runtime.
        if (interpreter.is_nameless)(module) || has_callers && nameless * 2 > all {
            let (language, remedy) = (interpreter.language, (interpreter.remedy)(module));
            found.push(NamelessLanguage { language, samples: nameless, remedy });
        }
    }
    found
}

/// Returns the number of samples whose stack ends where Erlang called C code. Erlang code runs on the stacks
/// of its own processes. The kernel cannot follow a stack from C code to such a stack, and stack copies do
/// not contain it.
pub(super) fn erlang_ends(resolved: &ResolvedStacks, code: &LocationCalls, texts: &StringTable) -> u64 {
    if texts.find("global::process_main").is_none() && texts.find("global::call_light_bif_shared").is_none() {
        return 0;
    }
    let is_erlangs = marked(code, texts, |call, texts| {
        is_generated(call, texts) && texts.get(call.short).starts_with("global::")
    });
    let ends_there = |stack: u32| {
        let outermost = resolved.stack(stack).rev().map(|location| code.own(location));
        let mut named = outermost.filter(|call| code.calls()[*call].named);
        named.next().is_some_and(|call| is_erlangs[call])
    };
    resolved.rows.iter().filter(|(key, _)| ends_there(key.stack)).map(|(_, value)| value.samples).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_version_is_read_from_the_file_name() {
        for (module, minor) in [
            ("python3.11", Some(11)),
            ("libpython3.12.so.1.0", Some(12)),
            ("libpython3.7m.so.1.0", Some(7)),
            ("python2.7", Some(0)),
            ("python3", None),
            ("libshop.so", None),
        ] {
            assert_eq!(python_minor(module), minor, "{module}");
        }
    }
}
