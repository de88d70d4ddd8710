//! The sampled functions, with the sampled addresses in each of them.
//!
//! Computes one [`SampledFunction`] per function from the rows of pass 2, in order of descending cost. Also
//! finds functions by the names that users type.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::analysis::symbols::RecordingSymbols;
use crate::profile::annotate::SampleValue;
use crate::session::{CodeLocation, Module, ResolvedStacks};
use pmc_symbols::symbol::demangle::{demangle, without_parameters};
use pmc_symbols::symbol::{Depth, FunctionId, ModuleId, SymbolProgress};
use pmc_sys::error::{Error, Result};
use pmc_text::text::{self, clean};

/// Maximum length of a name that users can type.
const LONGEST: usize = 16 << 10;

#[derive(Debug, Clone)]
pub(crate) struct SampledFunction {
    /// Symbolizer id of the function's module.
    pub(crate) id: ModuleId,
    /// Demangled name.
    pub(crate) name: String,
    /// Name as in the symbol table.
    pub(crate) raw: String,
    /// The module's short name.
    pub(crate) dso: String,
    /// The module's path.
    pub(crate) path: String,
    /// Start address of the code in the module's file.
    pub(crate) start: u64,
    /// Size of the code in bytes.
    pub(crate) size: u64,
    /// Address, event index and cost of each sampled address.
    pub(crate) samples: Vec<(u64, usize, SampleValue)>,
    /// Cost per event.
    pub(crate) own: Vec<SampleValue>,
}

/// Adds up the samples whose innermost address lies in a named function. `events` is the number of events.
pub(crate) fn functions(
    modules: &[Module],
    symbols: &mut RecordingSymbols,
    resolved: &ResolvedStacks,
    events: usize,
    progress: &(dyn Fn(SymbolProgress) + Sync),
) -> Vec<SampledFunction> {
    let mut leaves: FxHashMap<(u32, u32), SampleValue> = FxHashMap::default();
    for (key, value) in &resolved.rows {
        if let Some(leaf) = resolved.stack(key.stack).next() {
            *leaves.entry((leaf, key.event)).or_default() += value;
        }
    }
    let mut numbers: Vec<u32> = leaves.keys().map(|(leaf, _)| *leaf).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let locations: Vec<CodeLocation> =
        numbers.iter().map(|number| resolved.locations[*number as usize]).collect();
    let answers = symbols.answers(&locations, Depth::Names, progress);
    let mut found: FxHashMap<FunctionId, SampledFunction> = FxHashMap::default();
    for ((leaf, event), value) in leaves {
        let Ok(at) = numbers.binary_search(&leaf) else { continue };
        let (frames, Some(address)) = answers.frames_at(at) else { continue };
        let (Some(frame), Some(module)) = (frames.last(), locations[at].module()) else { continue };
        let function = symbols.function(frame);
        let Some(start) = function.start else { continue };
        let sampled = found.entry(frame.function).or_insert_with(|| {
            let module = &modules[module as usize];
            SampledFunction {
                id: function.module,
                name: symbols.shown(frame).to_string(),
                raw: function.raw.to_string(),
                dso: module.short_name(),
                path: module.path.to_string_lossy().into_owned(),
                start,
                size: function.size,
                samples: Vec::new(),
                own: vec![SampleValue::default(); events],
            }
        });
        if let Some(own) = sampled.own.get_mut(event as usize) {
            *own += &value;
        }
        sampled.samples.push((address, event as usize, value));
    }
    let mut all: Vec<SampledFunction> = found.into_values().collect();
    all.sort_by(|a, b| {
        // Periods of different events cannot be compared, so the first event with samples determines the
        // order.
        let weight = |of: &SampledFunction| of.own.iter().map(|value| value.period).collect::<Vec<u64>>();
        weight(b).cmp(&weight(a)).then_with(|| (&a.name, &a.path, a.start).cmp(&(&b.name, &b.path, b.start)))
    });
    all
}

impl SampledFunction {
    /// Whether `typed` is the name of this function, with or without parameters, or its linker name.
    fn is_called(&self, typed: &str) -> bool {
        is_called(&self.name, &self.raw, typed)
    }
}

fn is_called(name: &str, raw: &str, typed: &str) -> bool {
    name == typed || raw == typed || without_parameters(name) == typed || without_parameters(raw) == typed
}

/// Returns the functions with exactly this name, or else those with this name when parameters are ignored. If
/// no function matches, returns the most similar names.
fn named<'a>(
    all: &'a [SampledFunction],
    typed: &str,
) -> std::result::Result<Vec<&'a SampledFunction>, Vec<&'a str>> {
    let exact: Vec<&SampledFunction> = all.iter().filter(|of| of.name == typed || of.raw == typed).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let alike: Vec<&SampledFunction> = all.iter().filter(|of| of.is_called(typed)).collect();
    if !alike.is_empty() {
        return Ok(alike);
    }
    Err(text::nearest(typed, all.iter().map(|of| of.name.as_str()), 3))
}

/// Returns the function with this name, preferably from module `dso`.
pub(crate) fn find<'a>(all: &'a [SampledFunction], dso: &str, name: &str) -> Option<&'a SampledFunction> {
    let is_it = |of: &&SampledFunction| of.name == name || of.raw == name;
    let in_dso = |of: &&SampledFunction| of.dso == dso || dso.is_empty();
    let is_alike = |of: &&SampledFunction| of.is_called(name) && in_dso(of);
    let exact = all.iter().find(|of| is_it(of) && in_dso(of)).or_else(|| all.iter().find(is_it));
    exact.or_else(|| all.iter().find(is_alike))
}

/// Returns the function into which the function with this name was inlined. If there are several, returns the
/// one in which the inlined code costs most.
pub(crate) fn host<'a>(
    all: &'a [SampledFunction],
    name: &str,
    symbols: &mut RecordingSymbols,
    resolved: &ResolvedStacks,
    progress: &(dyn Fn(SymbolProgress) + Sync),
) -> Option<&'a SampledFunction> {
    let mut leaves: FxHashMap<u32, u64> = FxHashMap::default();
    for (key, value) in &resolved.rows {
        if let Some(leaf) = resolved.stack(key.stack).next() {
            let sum = leaves.entry(leaf).or_default();
            *sum = sum.saturating_add(value.period);
        }
    }
    let numbers: Vec<u32> = leaves.keys().copied().collect();
    let locations: Vec<CodeLocation> =
        numbers.iter().map(|number| resolved.locations[*number as usize]).collect();
    let answers = symbols.answers(&locations, Depth::Inlines, progress);
    let mut hosts: FxHashMap<(ModuleId, Option<u64>), u64> = FxHashMap::default();
    for (at, number) in numbers.iter().enumerate() {
        let Some((outer, inlined)) = answers.frames_at(at).0.split_last() else { continue };
        if inlined.iter().any(|frame| **symbols.shown(frame) == *name) {
            let outer = symbols.function(outer);
            let sum = hosts.entry((outer.module, outer.start)).or_default();
            *sum = sum.saturating_add(leaves[number]);
        }
    }
    let cost = |of: &&SampledFunction| hosts.get(&(of.id, Some(of.start))).copied();
    all.iter().filter(|of| cost(of).is_some()).max_by_key(|of| (cost(of), std::cmp::Reverse(of.start)))
}

/// Returns the functions with this name that have no samples, in modules that have some.
pub(crate) fn unsampled(
    name: &str,
    modules: &[Module],
    symbols: &RecordingSymbols,
    resolved: &ResolvedStacks,
    events: usize,
) -> Vec<SampledFunction> {
    let sampled: BTreeSet<u32> = resolved.locations.iter().filter_map(CodeLocation::module).collect();
    let in_module = |number: u32| {
        let id = symbols.id(number)?;
        let module = &modules[number as usize];
        let all = symbols.symbolizer.symbols(id).filter(|symbol| symbol.name.len() <= LONGEST);
        let named = all.filter_map(|symbol| {
            let demangled = demangle(symbol.name);
            let shown = demangled.as_deref().unwrap_or(symbol.name);
            is_called(shown, symbol.name, name).then(|| (shown.to_owned(), symbol))
        });
        Some(named.map(move |(name, symbol)| SampledFunction {
            id,
            name,
            raw: symbol.name.to_owned(),
            dso: module.short_name(),
            path: module.path.to_string_lossy().into_owned(),
            start: symbol.start,
            size: symbol.end.wrapping_sub(symbol.start),
            samples: Vec::new(),
            own: vec![SampleValue::default(); events],
        }))
    };
    sampled.into_iter().filter_map(in_module).flatten().collect()
}

/// Whether a function is in one of these modules. Always true if `dsos` is empty.
pub(crate) fn is_in(function: &SampledFunction, dsos: &[String]) -> bool {
    dsos.is_empty() || dsos.iter().any(|dso| *dso == function.dso || *dso == function.path)
}

/// Returns the requested functions, costliest first.
///
/// # Errors
/// Fails if no function in the given modules has this name. The error suggests similar names.
pub(crate) fn choose<'a>(
    name: Option<&str>,
    dsos: &[String],
    all: &'a [SampledFunction],
) -> Result<Vec<&'a SampledFunction>> {
    let in_dso = |of: &&SampledFunction| is_in(of, dsos);
    let Some(name) = name else { return Ok(all.iter().filter(in_dso).collect()) };
    let of_name = named(all, name).map_err(|near| {
        let error = Error::new(format!("no function named {:?} has samples", clean(name)));
        match (near.is_empty(), all.first()) {
            (false, _) => error.try_this(format!("did you mean {}?", near.join(" or "))),
            (_, Some(first)) => {
                error.try_this(format!("use a name from pmc report, such as {:?}", clean(&first.name)))
            }
            _ => error.why("no sample in the recording could be resolved to a function name"),
        }
    })?;
    let chosen: Vec<&SampledFunction> = of_name.iter().copied().filter(in_dso).collect();
    if chosen.is_empty() {
        let mut others: Vec<&str> = of_name.iter().map(|of| of.dso.as_str()).collect();
        others.dedup();
        return Err(Error::new(format!("{} has no samples in {}", clean(name), dsos.join(", ")))
            .try_options(format!("-d {}", others.join(","))));
    }
    Ok(chosen)
}
