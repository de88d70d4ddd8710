//! The code of functions that samples hit: which they are ([`functions`]), and what their instructions and
//! lines cost ([`listing`]).
//!
//! Receives an [`Analysis`] without callers (or the live state's rows, through [`functions::functions`]);
//! hands on listings.

pub mod functions;
pub mod listing;

use std::sync::Arc;

use functions::SampledFunction;
use listing::ListingOptions;

use super::{Analysis, ProgressSink};
use crate::error::Result;
use crate::profile::annotate::{Event, Listing};

/// Which functions' code is wanted, and how.
#[derive(Debug, Clone, Default)]
pub struct AnnotationRequest {
    /// A function's name; `None`: the costliest functions.
    pub function: Option<String>,
    /// Only functions of these modules; empty: of all.
    pub dsos: Vec<String>,
    /// At most so many; 0: all.
    pub most: usize,
    /// Without those that cost less than this part of each event, in percent.
    pub limit: f64,
    /// Without those whose instructions are not to be had.
    pub skip_missing: bool,
    /// What is shown of each.
    pub options: ListingOptions,
}

/// The code of functions.
#[derive(Debug)]
pub struct Annotation {
    /// Costliest function first.
    pub listings: Vec<Listing>,
    /// Number of functions with samples.
    pub functions: usize,
    /// Number of those that were asked for, but are more than the request's most.
    pub left_out: usize,
}

impl Analysis {
    /// The functions whose own code samples hit, costliest first. They are looked for once.
    pub fn functions(&mut self, progress: &dyn ProgressSink) -> Arc<[SampledFunction]> {
        if let Some(functions) = &self.functions {
            return functions.clone();
        }
        let meter = progress.begin("finding names", 0);
        let at = |p: crate::symbol::Progress| meter.at(p.done as u64, p.total as u64);
        let (modules, resolved) = (self.samples.session.history.modules(), &self.samples.resolved);
        let events = self.samples.samples.totals.len();
        let all = functions::functions(modules, &mut self.symbols, resolved, events, &at);
        self.functions.insert(all.into()).clone()
    }

    /// The code of one function of this name, in this module if there is one; of an inlined function that of
    /// the function that it is inlined into.
    ///
    /// # Errors
    /// When no sample was taken in such a function itself; says so to the user.
    pub fn listing(
        &mut self,
        (dso, name): (&str, &str),
        options: &ListingOptions,
        progress: &dyn ProgressSink,
    ) -> std::result::Result<Listing, String> {
        let (all, events) = (self.functions(progress), self.events());
        let function = functions::find(&all, dso, name).or_else(|| {
            let meter = progress.begin("finding where it is inlined", 0);
            let at = |p: crate::symbol::Progress| meter.at(p.done as u64, p.total as u64);
            functions::host(&all, name, &mut self.symbols, &self.samples.resolved, &at)
        });
        let function = function.ok_or_else(|| {
            let name = crate::text::clean(name);
            format!("no sample was taken in {name} itself: there is nothing to weigh its code by")
        })?;
        Ok(listing::listing(&mut self.symbols, function, &events, options))
    }

    /// The code of the functions that were asked for.
    ///
    /// # Errors
    /// When no function of that name, or in these modules, has samples.
    pub fn annotate(
        &mut self,
        request: &AnnotationRequest,
        progress: &dyn ProgressSink,
    ) -> Result<Annotation> {
        let all = self.functions(progress);
        let events = self.events();
        let share = |(event, own): (&Event, &crate::session::Value)| match event.total.period {
            0 => 0.0,
            total => own.period as f64 / total as f64 * 100.0,
        };
        let is_large = |of: &&SampledFunction| {
            events.iter().zip(&of.own).map(share).fold(0.0, f64::max) >= request.limit
        };
        let chosen = functions::choose(request.function.as_deref(), &request.dsos, &all)?;
        let chosen: Vec<&SampledFunction> = chosen.into_iter().filter(is_large).collect();
        let most = if request.most == 0 { chosen.len() } else { request.most.min(chosen.len()) };
        let is_shown = |listing: &Listing| !request.skip_missing || listing.bytes_from.is_some();
        let list = |function: &&SampledFunction| {
            listing::listing(&mut self.symbols, function, &events, &request.options)
        };
        let listings = chosen.iter().map(list).filter(is_shown).take(most).collect();
        Ok(Annotation { listings, functions: all.len(), left_out: chosen.len() - most })
    }

    fn events(&self) -> Vec<Event> {
        let reader = &self.session().reader;
        listing::events(reader.events(), self.totals(), |event| reader.features().group_leader(event))
    }
}
