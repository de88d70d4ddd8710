//! Annotated code: finds the sampled functions ([`functions`]), and lists their instructions and lines with
//! costs ([`listing`]).
//!
//! Works on an [`Analysis`] without callers or, through [`functions::functions`], on the rows of a live
//! snapshot.

pub(crate) mod functions;
pub mod listing;

use std::sync::Arc;

use functions::SampledFunction;
use listing::ListingOptions;

use super::{Analysis, ProgressSink};
use crate::profile::annotate::{Listing, ListingEvent, ListingNote, Skid};
use pmc_sys::error::Result;

/// Which functions to annotate, and how.
#[derive(Debug, Clone, Default)]
pub struct AnnotationRequest {
    /// Name of the function; `None` selects the costliest functions.
    pub function: Option<String>,
    /// The modules whose functions to include; empty for all.
    pub dsos: Vec<String>,
    /// Maximum number of functions; 0 for all.
    pub most: usize,
    /// Minimum share of an event's total, in percent. Functions that are below it for every event are
    /// omitted.
    pub limit: f64,
    /// Whether to omit functions whose instructions are unavailable.
    pub skip_missing: bool,
    /// Options for each function's listing.
    pub options: ListingOptions,
}

/// The annotated code of several functions.
#[derive(Debug)]
pub struct Annotation {
    /// The listings, costliest function first.
    pub listings: Vec<Listing>,
    /// Number of functions with samples.
    pub functions: usize,
    /// Number of selected functions that were omitted because of [`AnnotationRequest::most`].
    pub left_out: usize,
}

impl Analysis {
    /// Returns the functions whose own code was sampled, in order of descending cost. The result is cached.
    pub(crate) fn functions(&mut self, progress: &dyn ProgressSink) -> Arc<[SampledFunction]> {
        if let Some(functions) = &self.functions {
            return functions.clone();
        }
        let meter = progress.begin("finding names", 0);
        let at = |p: pmc_symbols::symbol::SymbolProgress| meter.at(p.done as u64, p.total as u64);
        let (modules, resolved) = (self.samples.session.history.modules(), &self.samples.resolved);
        let events = self.samples.samples.totals.len();
        let all = functions::functions(modules, &mut self.symbols, resolved, events, &at);
        self.functions.insert(all.into()).clone()
    }

    /// Returns the listing of the function with this name, preferably from this module. For an inlined
    /// function, returns the listing of the function that contains it. A function without samples has a
    /// listing without costs.
    ///
    /// # Errors
    /// Returns a message for the user if no function in the modules with samples has this name.
    pub fn listing(
        &mut self,
        (dso, name): (&str, &str),
        options: &ListingOptions,
        progress: &dyn ProgressSink,
    ) -> std::result::Result<Listing, String> {
        let (all, events) = (self.functions(progress), self.events());
        let function = functions::find(&all, dso, name).or_else(|| self.host(&all, name, progress));
        if let Some(function) = function {
            return Ok(listing::listing(&mut self.symbols, function, &events, options));
        }
        let others = self.unsampled(name);
        let function = functions::find(&others, dso, name).ok_or_else(|| without_samples(name))?;
        let mut listing = listing::listing(&mut self.symbols, function, &events, options);
        listing.notes.insert(0, ListingNote { text: without_samples(name), remedy: None });
        Ok(listing)
    }

    /// Returns the listings of the requested functions.
    ///
    /// # Errors
    /// Fails if no function with the requested name is in the requested modules. Modules without samples do
    /// not count.
    pub fn annotate(
        &mut self,
        request: &AnnotationRequest,
        progress: &dyn ProgressSink,
    ) -> Result<Annotation> {
        let all = self.functions(progress);
        let events = self.events();
        let share = |(event, own): (&ListingEvent, &crate::session::SampleValue)| match event.total.period {
            0 => 0.0,
            total => own.period as f64 / total as f64 * 100.0,
        };
        let is_large = |of: &&SampledFunction| {
            events.iter().zip(&of.own).map(share).fold(0.0, f64::max) >= request.limit
        };
        let others;
        let mut explained = None;
        let chosen = match functions::choose(request.function.as_deref(), &request.dsos, &all) {
            Ok(chosen) => chosen,
            // Reports have rows for inlined functions, whose code is part of the function that contains them.
            Err(error) => {
                let name = request.function.as_deref().unwrap_or_default();
                let host = self.host(&all, name, progress);
                if let Some(host) = host.filter(|host| functions::is_in(host, &request.dsos)) {
                    let name = pmc_text::text::clean(name);
                    explained = Some(format!("{name} is inlined into this function"));
                    vec![host]
                } else {
                    others = self.unsampled(name);
                    explained = Some(without_samples(name));
                    let chosen = others.iter().filter(|of| functions::is_in(of, &request.dsos));
                    let chosen: Vec<&SampledFunction> = chosen.collect();
                    if chosen.is_empty() {
                        return Err(error);
                    }
                    chosen
                }
            }
        };
        let chosen: Vec<&SampledFunction> =
            chosen.into_iter().filter(|of| of.samples.is_empty() || is_large(of)).collect();
        let most = if request.most == 0 { chosen.len() } else { request.most.min(chosen.len()) };
        let is_shown = |listing: &Listing| !request.skip_missing || listing.bytes_from.is_some();
        let list = |function: &&SampledFunction| {
            let mut listing = listing::listing(&mut self.symbols, function, &events, &request.options);
            let note = explained.iter().map(|text| ListingNote { text: text.clone(), remedy: None });
            listing.notes.splice(0..0, note);
            listing
        };
        let listings = chosen.iter().map(list).filter(is_shown).take(most).collect();
        Ok(Annotation { listings, functions: all.len(), left_out: chosen.len() - most })
    }

    /// Returns the functions with this name that have no samples of their own.
    fn unsampled(&self, name: &str) -> Vec<SampledFunction> {
        let (modules, resolved) = (self.samples.session.history.modules(), &self.samples.resolved);
        functions::unsampled(name, modules, &self.symbols, resolved, self.samples.samples.totals.len())
    }

    /// Returns the function into which the function with this name was inlined.
    fn host<'a>(
        &mut self,
        all: &'a [SampledFunction],
        name: &str,
        progress: &dyn ProgressSink,
    ) -> Option<&'a SampledFunction> {
        let meter = progress.begin("looking for the functions that inline it", 0);
        let at = |p: pmc_symbols::symbol::SymbolProgress| meter.at(p.done as u64, p.total as u64);
        functions::host(all, name, &mut self.symbols, &self.samples.resolved, &at)
    }

    fn events(&self) -> Vec<ListingEvent> {
        let reader = &self.session().reader;
        let leader = |event| reader.features().group_leader(event);
        let mut events = listing::events(reader.events(), self.totals(), leader);
        if self.symbols.is_imported {
            // Costs of lines, without instructions: no distance applies.
            events.iter_mut().for_each(|event| event.skid = Skid::None);
        }
        events
    }
}

fn without_samples(name: &str) -> String {
    let name = pmc_text::text::clean(name);
    format!("{name} has no samples of its own, so its code has no costs")
}
