//! Symbolizes each address in a recording once, before the first line is printed.

use std::sync::Arc;

use crate::analysis::symbols::RecordingSymbols;
use crate::profile::script::{AddressFunction, AddressFunctions};
use crate::session::distinct_addresses::Addresses;
use crate::session::{CodeLocation, History, location};
use pmc_symbols::symbol::{Depth, ResolvedFrame, SymbolProgress};
use pmc_sys::abi::CpuMode;

/// Symbolizes all addresses, in the order of their numbers.
pub(super) fn name(
    history: &History,
    addresses: &Addresses,
    symbols: &mut RecordingSymbols,
    depth: Depth,
    raw_names: bool,
    progress: &(dyn Fn(SymbolProgress) + Sync),
) -> AddressFunctions {
    let locations: Vec<CodeLocation> =
        addresses.all().iter().map(|address| location::locate(history, *address)).collect();
    let of_data: Vec<usize> = (0..locations.len()).filter(|at| addresses.all()[*at].is_data).collect();
    let answers = symbols.answers(&locations, depth, progress);
    let data: Vec<CodeLocation> = of_data.iter().map(|at| locations[*at]).collect();
    let variables = symbols.answers(&data, Depth::Data, &|_| {});
    // Caches each module's name, and whether its file was found.
    let mut known: Vec<Option<(Arc<str>, bool)>> = vec![None; history.modules().len()];
    let mut about = |module: u32, symbols: &RecordingSymbols| {
        let ask = || {
            let has_file =
                symbols.id(module).map(|id| symbols.symbolizer.quality(id).found().binary.is_some());
            (history.modules()[module as usize].name_in_script().into(), has_file.unwrap_or(false))
        };
        known[module as usize].get_or_insert_with(ask).clone()
    };
    let mut places = AddressFunctions::default();
    let mut next_data = 0;
    for (number, (question, location)) in addresses.all().iter().zip(&locations).enumerate() {
        let (frames, at) = if question.is_data {
            next_data += 1;
            variables.frames_at(next_data - 1)
        } else {
            answers.frames_at(number)
        };
        // The lookup used an address inside the call instruction, but the return address is printed.
        let step = u64::from(question.in_call);
        let (dso, has_file) = location.module().map(|module| about(module, symbols)).unzip();
        let base = AddressFunction {
            address: question.address,
            offset: location.offset.wrapping_add(step),
            dso,
            module: location.module(),
            has_file: has_file.unwrap_or(false),
            in_kernel: question.level != CpuMode::User,
            is_imported: symbols.is_imported,
            ..AddressFunction::default()
        };
        let own = frames.last().and_then(|frame| symbols.function(frame).start);
        let into = at.zip(own).map_or(0, |(at, start)| at.wrapping_sub(start).wrapping_add(step));
        if frames.is_empty() {
            places.push([base]);
        } else {
            places.push(frames.iter().map(|frame| place(&base, frame, into, symbols, raw_names)));
        }
    }
    places
}

fn place(
    base: &AddressFunction,
    frame: &ResolvedFrame,
    into: u64,
    symbols: &RecordingSymbols,
    raw_names: bool,
) -> AddressFunction {
    let function = symbols.function(frame);
    let names = symbols.symbolizer.names();
    AddressFunction {
        symbol: Some(if raw_names { &function.raw } else { symbols.shown(frame) }.clone()),
        into,
        size: function.size,
        source: frame.source.map(|source| (names.file(source.file).clone(), source.line)),
        inlined: frame.inlined,
        ..base.clone()
    }
}
