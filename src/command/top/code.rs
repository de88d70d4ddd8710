//! The code of functions with what their instructions cost now.
//!
//! A thread of its own with a symbolizer of its own: the one for names keeps no tables, and this one may take its time.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::names::Known;
use super::picture::Picture;
use crate::analysis::annotate::functions;
use crate::analysis::annotate::listing::{self, ListingOptions};
use crate::analysis::symbols::Symbols;
use crate::perfdata;
use crate::profile::annotate::Listing;
use crate::profile::sampled::Value;
use crate::session::live::LiveState;
use crate::session::samples::Key;
use crate::session::{Location, Module, Resolved, Stacks};
use crate::symbol::Options;
use crate::symbol::disassemble::Syntax;
use crate::tui::board::latest;
use crate::tui::{Board, FunctionRef};

/// A function whose code is wanted, and its samples.
pub(super) struct Wanted {
    function: FunctionRef,
    modules: Vec<Module>,
    events: Vec<perfdata::Event>,
    totals: Vec<Value>,
    samples: Resolved,
}

/// Gathers what is known of a function.
pub(super) fn wanted(picture: &Picture, shared: &LiveState, known: &Known, function: FunctionRef) -> Wanted {
    let (mut locations, mut rows): (Vec<Location>, _) = (Vec::new(), Vec::new());
    for (location, event, value) in picture.samples_of(&function) {
        rows.push((
            Key { event: event as u32, stack: locations.len() as u32, comm: 0, attributes: 0 },
            value,
        ));
        locations.push(location);
    }
    let events = shared.events.iter();
    Wanted {
        function,
        modules: known.named().modules().to_vec(),
        events: events
            .map(|event| perfdata::Event {
                attr: event.attr.clone(),
                ids: Vec::new(),
                name: Some(event.name.clone()),
            })
            .collect(),
        totals: picture.totals(),
        samples: Resolved { locations: locations.into(), stacks: Stacks::Leaves, rows },
    }
}

/// Works until nobody asks any more.
pub(super) fn run(wanted: &Receiver<Wanted>, options: Options, board: &Board) {
    let options = Options { sparse: false, ..options };
    let Ok(mut symbols) = Symbols::none(options) else { return };
    let mut modules = 0;
    while let Some(one) = latest(wanted) {
        symbols.know(&one.modules[modules.min(one.modules.len())..]);
        modules = one.modules.len();
        let listing = listing(&mut symbols, &one);
        board.put(|poll| poll.listing = Some((one.function, listing)));
    }
}

fn listing(symbols: &mut Symbols, wanted: &Wanted) -> Result<Arc<Listing>, String> {
    let Wanted { function, modules, events, totals, samples } = wanted;
    let all = functions::functions(modules, symbols, samples, events.len(), &|_| {});
    let is_it = |of: &&functions::SampledFunction| of.name == function.symbol || of.raw == function.symbol;
    let Some(found) = all.iter().find(is_it).or(all.first()) else {
        let name = crate::text::clean(&function.symbol);
        return Err(format!("no sample was taken in {name} itself: there is nothing to weigh its code by"));
    };
    let events = listing::events(events, totals);
    let how = ListingOptions { syntax: Syntax::Att, with_source: true, ..ListingOptions::default() };
    Ok(Arc::new(listing::listing(symbols, found, &events, &how)))
}
