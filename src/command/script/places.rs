//! Every address of a recording, named once, before the first line is printed.

use rustc_hash::FxHashMap;

use crate::command::report::symbols::Symbols;
use crate::profile::script::Place;
use crate::record::Words;
use crate::session::intern::Lists;
use crate::session::{History, Layer, Level, Location, Samples, location};
use crate::symbol::{Depth, Frame, Progress};

/// An address in its context, and whether its call is meant: the instruction before it.
type Question = (Layer, Level, u64, bool);

/// The places at each address.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    /// Where an address's places lie in `all`: innermost first.
    at: FxHashMap<Question, (u32, u32)>,
    calls: Calls,
}

/// Where a caller's frame is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Calls {
    /// At the return address, as perf does: where it is the next function's first, perf says so. Right, too, where the unwinder has
    /// stepped back already.
    #[default]
    AsReturned,
    /// In the call: the line behind it may be another, and belongs to what happens after.
    AsCalled,
}

impl Places {
    fn question(&self, layer: Layer, level: Level, address: u64, is_caller: bool) -> Question {
        let layer = if level == Level::User { layer } else { Layer::KERNEL };
        (layer, level, address, is_caller && self.calls == Calls::AsCalled)
    }
}

impl Places {
    /// Names all addresses of the stacks of a recording.
    pub(super) fn new(
        history: &History,
        samples: &Samples,
        symbols: &mut Symbols,
        depth: Depth,
        calls: Calls,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Self {
        let mut asked: Vec<Question> = Vec::new();
        let mut places = Self { calls, ..Self::default() };
        for (layer, list) in samples.stacks.iter().flat_map(Lists::iter) {
            location::walk(Words::new(list), usize::MAX, |level, address, is_caller| {
                let question = places.question(Layer(layer), level, address, is_caller);
                places.at.entry(question).or_insert_with(|| {
                    asked.push(question);
                    (0, 0)
                });
            });
        }
        let locations: Vec<Location> = asked
            .iter()
            .map(|&(layer, level, address, in_call)| {
                location::locate(history, layer, level, address, in_call)
            })
            .collect();
        let answers = symbols.answers(&locations, depth, progress);
        for ((number, &question), location) in asked.iter().enumerate().zip(&locations) {
            let (_, level, address, in_call) = question;
            // What is printed stays the return address.
            let step = u64::from(in_call);
            let first = places.all.len() as u32;
            let module = location.module.map(|module| &history.modules()[module as usize]);
            let base = Place {
                address,
                offset: location.place.wrapping_add(step),
                dso: module.map(|module| module.name_in_script()),
                in_kernel: level != Level::User,
                ..Place::default()
            };
            let (frames, at) = answers.of(number);
            let own = frames.last().and_then(|frame| symbols.function(frame).start);
            let into = at.zip(own).map_or(0, |(at, start)| at.wrapping_sub(start).wrapping_add(step));
            places.all.extend(frames.iter().map(|frame| place(&base, frame, into, symbols)));
            if frames.is_empty() {
                places.all.push(base);
            }
            places.at.insert(question, (first, places.all.len() as u32));
        }
        places
    }

    /// Appends the numbers of the places of a raw stack; at most `most`.
    pub(super) fn of(&self, layer: Layer, words: Words<'_>, most: usize, numbers: &mut Vec<u32>) {
        location::walk(words, most, |level, address, is_caller| {
            if let Some(&(from, to)) = self.at.get(&self.question(layer, level, address, is_caller)) {
                numbers.extend(from..to);
            }
        });
    }
}

fn place(base: &Place, frame: &Frame, into: u64, symbols: &Symbols) -> Place {
    let function = symbols.function(frame);
    let names = symbols.symbolizer.names();
    Place {
        symbol: Some(function.name.to_string()),
        into,
        source: frame.source.map(|source| (names.file(source.file).to_string(), source.line)),
        inlined: frame.inlined,
        ..base.clone()
    }
}
