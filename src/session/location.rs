//! From raw stacks to stacks of locations: each address becomes a module and a place in it.
//!
//! Receives the interned stacks of pass 2, each with the layer it was seen in; hands on distinct [`Location`]s and
//! distinct stacks of their numbers. Here the same code in many processes, wherever each had it mapped, becomes one.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use rayon::iter::Either;
use rustc_hash::FxHashMap;

use super::intern::{Lists, bytes, numbers};
use super::samples::{Extra, Key, Samples, Value, join};
use super::{History, Kind, Layer};
use crate::abi::CpuMode;
use crate::address::Avma;
use crate::record::{ChainEntry, Words};

/// A place in the code. Many thousands of them are kept, so they are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// Offset in the file for modules that are files (and the vdso), else the address in memory. For a caller's
    /// frame it is one less than the return address, so that it lies in the call.
    pub place: u64,
    /// The complement of the address: the highest one is free.
    data: Option<NonZeroU64>,
    /// The number and one.
    module: Option<NonZeroU32>,
    /// Where the code ran.
    pub level: CpuMode,
}

const _: () = assert!(size_of::<Location>() == 24);

impl Location {
    fn new(module: Option<u32>, level: CpuMode, place: u64) -> Self {
        let module = module.and_then(|number| NonZeroU32::new(number.wrapping_add(1)));
        Self { place, data: None, module, level }
    }

    /// Number of the module in [`History::modules`]; `None` where nothing was mapped.
    pub fn module(&self) -> Option<u32> {
        self.module.map(|number| number.get() - 1)
    }

    /// The address itself, where it is one of data.
    pub fn data(&self) -> Option<u64> {
        self.data.map(|complement| !complement.get())
    }
}

/// Stacks by their number.
#[derive(Debug, Clone)]
pub enum Stacks {
    /// Lists of numbers of locations, innermost first, four bytes each.
    Lists(Arc<Lists>),
    /// Nobody asked for callers: the number of a location is that of the stack which is it alone.
    Leaves,
}

impl Default for Stacks {
    fn default() -> Self {
        Self::Lists(Arc::default())
    }
}

impl From<Lists> for Stacks {
    fn from(lists: Lists) -> Self {
        Self::Lists(lists.into())
    }
}

/// Stacks whose addresses were looked up.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Each place once.
    pub locations: Arc<Vec<Location>>,
    /// The stacks: see [`Resolved::stack`].
    pub stacks: Stacks,
    /// The rows of pass 2, their stacks being numbers in `stacks`.
    pub rows: Vec<(Key, Value)>,
}

/// Looks up one address.
pub fn locate(history: &History, layer: Layer, level: CpuMode, address: u64, is_caller: bool) -> Location {
    let address = if is_caller { address.saturating_sub(1) } else { address };
    let layer = match level {
        CpuMode::User => Some(layer),
        CpuMode::Kernel => Some(Layer::KERNEL),
        _ => None,
    };
    let found = layer.and_then(|layer| history.find(layer, Avma(address)));
    match found {
        Some(mapped) => {
            let by_offset = matches!(history.modules()[mapped.module as usize].kind, Kind::File | Kind::Vdso);
            let offset = mapped.mapping.file_offset(Avma(address)).map(|offset| offset.0);
            let place = if by_offset { offset.unwrap_or(address) } else { address };
            Location::new(Some(mapped.module), level, place)
        }
        None => Location::new(None, level, address),
    }
}

/// Walks a raw stack: level, address, and whether it is a caller's return address, innermost first. At most `most`
/// addresses are shown.
pub fn walk(words: Words<'_>, most: usize, mut visit: impl FnMut(CpuMode, u64, bool)) {
    let mut level = CpuMode::Unknown;
    let mut is_caller = false;
    let mut count = 0;
    for word in words.iter() {
        match ChainEntry::from(word) {
            ChainEntry::Context(context) => {
                level = context.mode();
                // The first address of a context is where it was left, not a return address.
                is_caller = false;
            }
            ChainEntry::Address(address) => {
                if count == most {
                    return;
                }
                count += 1;
                visit(level, address, is_caller);
                is_caller = true;
            }
        }
    }
}

impl Resolved {
    /// The locations of a stack, innermost first.
    pub fn stack(&self, number: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        match &self.stacks {
            Stacks::Lists(lists) => Either::Left(numbers(lists.get(number).1)),
            Stacks::Leaves => Either::Right(std::iter::once(number)),
        }
    }

    /// Sorts the rows again, and adds up those that have become the same.
    pub fn rejoin(&mut self) {
        join(&mut self.rows);
    }
}

/// Looks up all stacks, and joins rows whose stacks turned out to be the same. `most`: as in [`walk`].
pub fn resolve(history: &History, samples: &mut Samples, most: usize) -> Resolved {
    let (mut locations, mut stacks) = (Vec::new(), Lists::default());
    // Each distinct address of each layer is looked up once.
    let mut known: FxHashMap<(Layer, CpuMode, u64, bool), u32> = FxHashMap::default();
    let mut places: FxHashMap<Location, u32> = FxHashMap::default();
    let mut stack_of: Vec<u32> = Vec::new();
    let mut scratch = Vec::new();
    for part in std::mem::take(&mut samples.stacks) {
        for (layer, list) in part.iter() {
            scratch.clear();
            walk(Words::new(list), most, |level, address, is_caller| {
                let layer = if level == CpuMode::User { Layer(layer) } else { Layer::KERNEL };
                let number = *known.entry((layer, level, address, is_caller)).or_insert_with(|| {
                    let location = locate(history, layer, level, address, is_caller);
                    *places.entry(location).or_insert_with(|| {
                        locations.push(location);
                        locations.len() as u32 - 1
                    })
                });
                scratch.extend(number.to_ne_bytes());
            });
            stack_of.push(stacks.add(0, &scratch));
        }
    }
    let mut rows = std::mem::take(&mut samples.rows);
    for (key, _) in &mut rows {
        key.stack = stack_of[key.stack as usize];
    }
    if !samples.places.is_empty() {
        resolve_extras(history, samples, &mut places, &mut locations, &mut rows);
    }
    join(&mut rows);
    Resolved { locations: locations.into(), stacks: stacks.into(), rows }
}

/// Puts numbers of locations where the extras have addresses.
fn resolve_extras(
    history: &History,
    samples: &mut Samples,
    places: &mut FxHashMap<Location, u32>,
    locations: &mut Vec<Location>,
    rows: &mut [(Key, Value)],
) {
    let mut resolved = Lists::default();
    let mut number_of: Vec<u32> = Vec::new();
    let mut scratch = Vec::new();
    for (layer, list) in samples.extras.iter() {
        let mut words: Vec<u64> = Words::new(list).iter().collect();
        for (at, extra) in &samples.places {
            let Some(word) = words.get_mut(*at).filter(|word| **word != u64::MAX) else { continue };
            let (layer, level) = match *word >> 63 {
                0 => (Layer(layer), CpuMode::User),
                _ => (Layer::KERNEL, CpuMode::Kernel),
            };
            let location = Location {
                data: NonZeroU64::new(!*word).filter(|_| *extra != Extra::From),
                ..locate(history, layer, level, *word, false)
            };
            *word = u64::from(*places.entry(location).or_insert_with(|| {
                locations.push(location);
                locations.len() as u32 - 1
            }));
        }
        bytes(&words, &mut scratch);
        number_of.push(resolved.add(0, &scratch));
    }
    samples.extras = resolved;
    for (key, _) in rows {
        key.extra = number_of.get(key.extra as usize).copied().unwrap_or(0);
    }
}
