//! The instructions at sampled addresses, each of which is read from the program's file and disassembled
//! once.

use rustc_hash::FxHashMap;

use super::{MOST_CACHED, NamedRecording};
use crate::profile::script::Instruction;
use crate::session::location;
use pmc_symbols::symbol::demangle::demangle;

/// Recently used instructions, by the number of their address; `None` if the code is unavailable.
#[derive(Debug, Default)]
pub(super) struct SampledInstructions(FxHashMap<u32, Option<Instruction>>);

impl SampledInstructions {
    /// Returns the instruction at the address with this number.
    pub(super) fn at(&mut self, script: &NamedRecording<'_>, number: u32) -> Option<&Instruction> {
        if self.0.len() >= MOST_CACHED {
            self.0.clear();
        }
        self.0.entry(number).or_insert_with(|| read(script, number)).as_ref()
    }
}

fn read(script: &NamedRecording<'_>, number: u32) -> Option<Instruction> {
    let address = *script.addresses.all().get(number as usize)?;
    let location = location::locate(&script.session.history, address);
    let (id, query) = script.symbols.query(&location)?;
    let symbolizer = &script.symbols.symbolizer;
    let mut instruction = symbolizer.instruction(id, symbolizer.address(id, query)?)?;
    if !script.request.raw_names {
        demangle_target(&mut instruction);
    }
    Some(instruction)
}

/// Demangles the name of a jump's target.
pub(super) fn demangle_target(instruction: &mut Instruction) {
    let name = instruction.target.as_mut().and_then(|target| target.name.as_mut());
    if let Some((name, readable)) = name.and_then(|(name, _)| demangle(name).map(|text| (name, text))) {
        *name = readable;
    }
}
