//! Names of some addresses out of large symbol tables, of which nothing else is looked at or kept.
//!
//! Receives the files of a module and addresses; hands on the function at each, and remembers it for as far
//! as it holds. A table is walked through when an address comes that is new, once for all new ones; its pages
//! are given back afterwards. Names nothing differently than the whole [`Table`] does, which is made here for
//! those who want it.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::table::{Builder, OwnedSymbol, Table, WantedAddresses};
use super::{elf_symbols, plt};
use crate::address::IntervalMap;
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::ModuleFiles;

/// Ranges of addresses with one answer each.
type Known = IntervalMap<Option<OwnedSymbol>>;

/// What has been looked up.
#[derive(Debug, Default)]
pub(in crate::symbol) struct SparseTable {
    known: Mutex<Known>,
    /// Functions that no symbol names, as far as somebody found out where they begin and end.
    nameless: Mutex<IntervalMap<()>>,
    /// The packed symbol tables of the files, unpacked.
    mini: OnceLock<Vec<Image>>,
}

impl SparseTable {
    /// The functions at these addresses of the file.
    pub(in crate::symbol) fn find(
        &self,
        addresses: &[Option<u64>],
        files: &ModuleFiles,
    ) -> Vec<Option<OwnedSymbol>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = addresses.iter().flatten().copied().filter(|address| known.find(*address).is_none());
        let wanted = WantedAddresses::new(new);
        if !wanted.is_empty() {
            self.walk(wanted, files, &mut known);
        }
        addresses.iter().map(|address| known.find((*address)?)?.1.clone()).collect()
    }

    /// Whether the answer for an address is there already.
    pub(in crate::symbol) fn knows(&self, address: u64) -> bool {
        self.around(address).is_some()
    }

    /// From where and to where the answer is that for this address, if it is there already, and whether it is
    /// a function.
    pub(in crate::symbol) fn around(&self, address: u64) -> Option<(Range<u64>, bool)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.find(address).map(|(range, found)| (range, found.is_some()))
    }

    /// Remembers a function that no symbol names: start and end.
    pub(in crate::symbol) fn add_nameless(&self, (start, end): (u64, u64)) {
        self.nameless.lock().unwrap_or_else(PoisonError::into_inner).replace(start..end, ());
    }

    /// The one at an address.
    pub(in crate::symbol) fn nameless(&self, address: u64) -> Option<Range<u64>> {
        let nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.find(address).map(|(range, ())| range)
    }

    fn walk(&self, few: WantedAddresses, files: &ModuleFiles, known: &mut Known) {
        let mut builder = Builder::for_few(few);
        self.add_all(files, &mut builder);
        let (table, few) = builder.finish_few();
        let mut behind = 0;
        for (address, (from, to)) in few.bounds() {
            if address >= behind {
                known.replace(from..to, table.find(address).map(OwnedSymbol::from));
                behind = to;
            }
        }
    }

    /// All functions of the files.
    pub(in crate::symbol) fn whole(&self, files: &ModuleFiles) -> Table {
        let mut builder = Builder::default();
        files.images().for_each(|image| builder.leave_names_in(image));
        self.add_all(files, &mut builder);
        let table = builder.finish();
        files.images().for_each(Image::release);
        table
    }

    fn add_all(&self, files: &ModuleFiles, into: &mut Builder) {
        for image in files.images() {
            let Ok(file) = image.elf() else { continue };
            elf_symbols::add_symbols(&file, into, &|| image.release());
            plt::add_stubs(&file, into);
            image.release();
        }
        for mini in self.mini(files).iter().filter_map(|mini| mini.elf().ok()) {
            elf_symbols::add_symbols(&mini, into, &|| {});
        }
    }

    /// The packed symbol tables of the files, unpacked.
    pub(in crate::symbol) fn mini(&self, files: &ModuleFiles) -> &[Image] {
        self.mini.get_or_init(|| {
            let packed = |image: &Image| elf::mini_debug(&image.elf().ok()?);
            files.images().filter_map(packed).map(|bytes| Image::held(".gnu_debugdata", bytes)).collect()
        })
    }
}
