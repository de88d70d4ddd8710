//! Lists the code of a function with the current costs of its instructions.
//!
//! Builds the listing of a function from its samples in a snapshot. Uses a separate symbolizer, which keeps
//! its tables, unlike the one for names. Building a listing is slow, so the caller does it on a separate
//! thread.

use std::sync::Arc;

use super::names::NameLookup;
use super::snapshot::LiveSnapshot;
use crate::analysis::annotate::functions;
use crate::analysis::annotate::listing::{self, ListingOptions};
use crate::analysis::symbols::RecordingSymbols;
use crate::profile::annotate::Listing;
use crate::profile::sampled::{FunctionRef, SampleValue};
use crate::session::live::LiveState;
use crate::session::samples::RowKey;
use crate::session::{CodeLocation, Module, ResolvedStacks, StackStore};
use pmc_perfdata::perfdata;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::Result;

/// A function to annotate, and its samples.
pub struct FunctionSamples {
    /// The function's names.
    pub function: FunctionRef,
    modules: Vec<Module>,
    events: Vec<perfdata::RecordedEvent>,
    totals: Vec<SampleValue>,
    samples: ResolvedStacks,
}

impl FunctionSamples {
    /// Collects the samples of a function.
    pub fn new(
        snapshot: &LiveSnapshot,
        shared: &LiveState,
        names: &NameLookup,
        function: FunctionRef,
    ) -> Self {
        let (mut locations, mut rows): (Vec<CodeLocation>, _) = (Vec::new(), Vec::new());
        for (location, event, value) in snapshot.samples_of(&function) {
            rows.push((
                RowKey { event: event as u32, stack: locations.len() as u32, comm: 0, attributes: 0 },
                value,
            ));
            locations.push(location);
        }
        let events = shared.events.iter();
        Self {
            function,
            modules: names.table().modules().to_vec(),
            events: events
                .map(|event| perfdata::RecordedEvent {
                    attr: event.attr.clone(),
                    ids: Vec::new(),
                    name: Some(event.name.clone()),
                })
                .collect(),
            totals: snapshot.totals(),
            samples: ResolvedStacks { locations: locations.into(), stacks: StackStore::Leaves, rows },
        }
    }
}

/// Builds listings of functions.
pub struct ListingBuilder {
    symbols: RecordingSymbols,
    how: ListingOptions,
    /// Number of modules that have already been registered with the symbolizer.
    modules: usize,
}

impl ListingBuilder {
    /// # Errors
    /// Fails in the same cases as [`RecordingSymbols::none`].
    pub fn new(options: SymbolOptions, how: ListingOptions) -> Result<Self> {
        Ok(Self {
            symbols: RecordingSymbols::none(SymbolOptions { alone: false, ..options })?,
            how,
            modules: 0,
        })
    }

    /// Returns the listing of a function.
    ///
    /// # Errors
    /// Returns a message for the user if the function itself has no samples.
    pub fn listing(&mut self, of: &FunctionSamples) -> Result<Arc<Listing>, String> {
        let FunctionSamples { function, modules, events, totals, samples } = of;
        self.symbols.add_modules(&modules[self.modules.min(modules.len())..]);
        self.modules = modules.len();
        let all = functions::functions(modules, &mut self.symbols, samples, events.len(), &|_| {});
        let is_it =
            |of: &&functions::SampledFunction| of.name == function.symbol || of.raw == function.symbol;
        let Some(found) = all.iter().find(is_it).or(all.first()) else {
            let name = pmc_text::text::clean(&function.symbol);
            return Err(format!("{name} has no samples of its own, so its code has no costs"));
        };
        let events = listing::events(events, totals, |event| event);
        Ok(Arc::new(listing::listing(&mut self.symbols, found, &events, &self.how)))
    }
}
