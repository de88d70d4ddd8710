//! The instructions at sampled addresses, each of which is read from the program's file and disassembled
//! once, many together.

use rustc_hash::FxHashMap;

use super::{MOST_CACHED, NamedRecording};
use crate::profile::script::Instruction;
use crate::session::location;
use pmc_symbols::symbol::ModuleId;
use pmc_symbols::symbol::demangle::demangle;

/// Number of addresses whose instructions are read together. Addresses are numbered in the order in which
/// samples contain them, so the next samples need the next instructions.
const READ_AHEAD: u32 = 256;

/// Recently used instructions, by the number of their address; `None` if the code is unavailable.
#[derive(Debug, Default)]
pub(super) struct SampledInstructions(FxHashMap<u32, Option<Instruction>>);

impl SampledInstructions {
    /// Returns the instruction at the address with this number.
    pub(super) fn at(&mut self, script: &NamedRecording<'_>, number: u32) -> Option<&Instruction> {
        if !self.0.contains_key(&number) {
            if self.0.len() >= MOST_CACHED {
                self.0.clear();
            }
            self.read(script, number);
        }
        self.0.get(&number)?.as_ref()
    }

    /// Reads the instructions at the addresses from this number on.
    fn read(&mut self, script: &NamedRecording<'_>, first: u32) {
        let symbolizer = &script.symbols.symbolizer;
        let address = |number: u32| -> Option<(ModuleId, u64)> {
            let address = *script.addresses.all().get(number as usize)?;
            let location = location::locate(&script.session.history, address);
            // Addresses of data have numbers too.
            let (id, query) = script.symbols.query(&location).filter(|_| location.data().is_none())?;
            Some((id, symbolizer.address(id, query)?))
        };
        let unknown = (first..first.saturating_add(READ_AHEAD)).filter(|number| !self.0.contains_key(number));
        let unknown: Vec<(u32, Option<(ModuleId, u64)>)> =
            unknown.map(|number| (number, address(number))).collect();
        let known: Vec<(ModuleId, u64)> = unknown.iter().filter_map(|(_, address)| *address).collect();
        let mut instructions = symbolizer.instructions(&known).into_iter();
        for (number, address) in unknown {
            let mut instruction = address.and_then(|_| instructions.next()?);
            if let Some(instruction) = instruction.as_mut().filter(|_| !script.request.raw_names) {
                demangle_target(instruction);
            }
            self.0.insert(number, instruction);
        }
    }
}

/// Demangles the name of a jump's target.
pub(super) fn demangle_target(instruction: &mut Instruction) {
    let name = instruction.target.as_mut().and_then(|target| target.name.as_mut());
    if let Some((name, readable)) = name.and_then(|(name, _)| demangle(name).map(|text| (name, text))) {
        *name = readable;
    }
}
