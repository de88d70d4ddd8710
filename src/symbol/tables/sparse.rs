//! Names of a few addresses out of large symbol tables, which are never kept: for those who watch and must stay small.
//!
//! Receives the files of a module and addresses; hands on the function at each, and remembers it for as far as it holds. A
//! table is walked through when an address comes that is new, once for all new ones; its pages are given back
//! afterwards. Names nothing differently than the whole [`Table`](super::table::Table) would.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::plt;
use super::table::{Builder, Few};
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::Found;

/// A stretch of addresses with one answer.
#[derive(Debug, Clone)]
struct Piece {
    end: u64,
    /// Start, end, name.
    symbol: Option<Named>,
}

/// A function: start, end, name as the table has it.
pub(in crate::symbol) type Named = (u64, u64, Box<str>);

/// What has been looked up.
#[derive(Debug, Default)]
pub(in crate::symbol) struct Sparse {
    /// By start.
    known: Mutex<BTreeMap<u64, Piece>>,
    /// The packed symbol tables of the files, unpacked.
    mini: OnceLock<Vec<Image>>,
}

/// The stretch that an address lies in, and its start.
fn piece(known: &BTreeMap<u64, Piece>, address: u64) -> Option<(u64, &Piece)> {
    let (start, piece) = known.range(..=address).next_back()?;
    (address < piece.end).then_some((*start, piece))
}

impl Sparse {
    /// The functions at these addresses of the file.
    pub(in crate::symbol) fn find(&self, addresses: &[Option<u64>], found: &Found) -> Vec<Option<Named>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = addresses.iter().flatten().copied().filter(|address| piece(&known, *address).is_none());
        let few = Few::new(new);
        if !few.is_empty() {
            self.walk(few, found, &mut known);
        }
        addresses.iter().map(|address| piece(&known, (*address)?)?.1.symbol.clone()).collect()
    }

    /// Whether the answer for an address is there already.
    pub(in crate::symbol) fn knows(&self, address: u64) -> bool {
        self.around(address).is_some()
    }

    /// From where and to where the answer is that for this address, if it is there already.
    pub(in crate::symbol) fn around(&self, address: u64) -> Option<(u64, u64)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        piece(&known, address).map(|(start, piece)| (start, piece.end))
    }

    fn walk(&self, few: Few, found: &Found, known: &mut BTreeMap<u64, Piece>) {
        let wanted: Vec<u64> = few.wanted().to_vec();
        let mut builder = Builder::for_few(few);
        for image in [&found.binary, &found.debug].into_iter().flatten() {
            let Ok(file) = image.elf() else { continue };
            elf::add_symbols_in_steps(&file, &mut builder, &|| image.release());
        }
        for mini in self.mini(found) {
            if let Ok(file) = mini.elf() {
                elf::add_symbols(&file, &mut builder);
            }
        }
        // Stubs stand where no symbol does; to find their names takes longer than all the rest.
        for image in [&found.binary, &found.debug].into_iter().flatten() {
            let Ok(file) = image.elf() else { continue };
            let places = plt::places(&file);
            places.iter().for_each(|(start, end)| builder.part(*start, *end));
            if places.iter().any(|(start, end)| builder.lacks_some(*start, *end)) {
                plt::add_stubs(&file, &mut builder);
            }
        }
        let (table, few) = builder.finish_few();
        for address in wanted {
            let (from, to) = few.bounds(address).unwrap_or((address, address + 1));
            let symbol = table.find(address).map(|symbol| (symbol.start, symbol.end, symbol.name.into()));
            known.insert(from, Piece { end: to, symbol });
        }
        for image in [&found.binary, &found.debug].into_iter().flatten() {
            image.release();
        }
    }

    fn mini(&self, found: &Found) -> &[Image] {
        self.mini.get_or_init(|| {
            let packed = |image: &Image| elf::mini_debug(&image.elf().ok()?);
            let images = [&found.binary, &found.debug].into_iter().flatten();
            images.filter_map(packed).map(|bytes| Image::held(".gnu_debugdata", bytes)).collect()
        })
    }
}
