//! Annotated code of a function, with the current costs of its instructions.
//!
//! Receives a function with its samples from a snapshot; returns its listing. Uses a separate symbolizer,
//! because the one for names keeps no tables. The caller runs this slower one on its own thread.

use std::sync::Arc;

use super::names::NameLookup;
use super::snapshot::Snapshot;
use crate::analysis::annotate::functions;
use crate::analysis::annotate::listing::{self, ListingOptions};
use crate::analysis::symbols::Symbols;
use crate::error::Result;
use crate::perfdata;
use crate::profile::annotate::Listing;
use crate::profile::sampled::{FunctionRef, Value};
use crate::session::live::LiveState;
use crate::session::samples::Key;
use crate::session::{Location, Module, Resolved, Stacks};
use crate::symbol::Options;

/// A function to annotate, and its samples.
pub struct FunctionSamples {
    /// The function's names.
    pub function: FunctionRef,
    modules: Vec<Module>,
    events: Vec<perfdata::RecordedEvent>,
    totals: Vec<Value>,
    samples: Resolved,
}

impl FunctionSamples {
    /// Gathers the samples of a function.
    pub fn new(snapshot: &Snapshot, shared: &LiveState, names: &NameLookup, function: FunctionRef) -> Self {
        let (mut locations, mut rows): (Vec<Location>, _) = (Vec::new(), Vec::new());
        for (location, event, value) in snapshot.samples_of(&function) {
            rows.push((
                Key { event: event as u32, stack: locations.len() as u32, comm: 0, attributes: 0 },
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
            samples: Resolved { locations: locations.into(), stacks: Stacks::Leaves, rows },
        }
    }
}

/// Builds listings of functions.
pub struct Lister {
    symbols: Symbols,
    how: ListingOptions,
    /// Number of modules that the symbolizer already knows.
    modules: usize,
}

impl Lister {
    /// # Errors
    /// The errors of [`Symbols::none`].
    pub fn new(options: Options, how: ListingOptions) -> Result<Self> {
        Ok(Self { symbols: Symbols::none(Options { alone: false, ..options })?, how, modules: 0 })
    }

    /// Returns the listing of a function.
    ///
    /// # Errors
    /// When no sample hit the function itself; the text is for the user.
    pub fn listing(&mut self, of: &FunctionSamples) -> Result<Arc<Listing>, String> {
        let FunctionSamples { function, modules, events, totals, samples } = of;
        self.symbols.know(&modules[self.modules.min(modules.len())..]);
        self.modules = modules.len();
        let all = functions::functions(modules, &mut self.symbols, samples, events.len(), &|_| {});
        let is_it =
            |of: &&functions::SampledFunction| of.name == function.symbol || of.raw == function.symbol;
        let Some(found) = all.iter().find(is_it).or(all.first()) else {
            let name = crate::text::clean(&function.symbol);
            return Err(format!("{name} has no samples of its own, so its code has no costs"));
        };
        let events = listing::events(events, totals, |event| event);
        Ok(Arc::new(listing::listing(&mut self.symbols, found, &events, &self.how)))
    }
}
