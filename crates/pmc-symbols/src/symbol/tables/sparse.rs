//! Looks up a few addresses in large symbol tables, without keeping the whole tables in memory.
//!
//! Takes a module's files and addresses; returns the function at each address, and caches it for its whole
//! range. Scans the tables once per batch of new addresses, and then releases their pages. Returns the same
//! names as a complete [`SymbolTable`], which it can build as well.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::table::{NameRank, OwnedSymbol, SymbolTable, SymbolTableBuilder, WantedAddresses};
use super::{elf_symbols, plt};
use crate::address::IntervalMap;
use crate::go_table::GoTable;
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::ModuleFiles;

/// Address ranges, each with one result.
type KnownRanges = IntervalMap<Option<OwnedSymbol>>;

/// The results so far.
#[derive(Debug, Default)]
pub(in crate::symbol) struct SparseTable {
    known: Mutex<KnownRanges>,
    /// Functions with known bounds but without a symbol.
    nameless: Mutex<IntervalMap<()>>,
    /// The decompressed `.gnu_debugdata` symbol tables.
    mini: OnceLock<Vec<Image>>,
}

impl SparseTable {
    /// Returns the functions at these addresses in the file.
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

    /// Whether the result for an address is known.
    pub(in crate::symbol) fn knows(&self, address: u64) -> bool {
        self.around(address).is_some()
    }

    /// Returns the range of addresses with the same result as this one, if known, and whether it is a
    /// function.
    pub(in crate::symbol) fn around(&self, address: u64) -> Option<(Range<u64>, bool)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.find(address).map(|(range, found)| (range, found.is_some()))
    }

    /// Records the start and end of a function without a symbol.
    pub(in crate::symbol) fn add_nameless(&self, (start, end): (u64, u64)) {
        self.nameless.lock().unwrap_or_else(PoisonError::into_inner).replace(start..end, ());
    }

    /// Returns the function without a symbol at an address.
    pub(in crate::symbol) fn nameless(&self, address: u64) -> Option<Range<u64>> {
        let nameless = self.nameless.lock().unwrap_or_else(PoisonError::into_inner);
        nameless.find(address).map(|(range, ())| range)
    }

    fn walk(&self, few: WantedAddresses, files: &ModuleFiles, known: &mut KnownRanges) {
        let mut builder = SymbolTableBuilder::for_few(few);
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

    /// Builds a table of all functions in the files.
    pub(in crate::symbol) fn whole(&self, files: &ModuleFiles) -> SymbolTable {
        let mut builder = SymbolTableBuilder::default();
        files.images().for_each(|image| builder.leave_names_in(image));
        self.add_all(files, &mut builder);
        let table = builder.finish();
        files.images().for_each(Image::release);
        table
    }

    fn add_all(&self, files: &ModuleFiles, into: &mut SymbolTableBuilder) {
        let mini = self.mini(files).iter().map(|mini| mini.len());
        into.limit_names(files.images().map(|image| image.len()).chain(mini).sum());
        for image in files.images() {
            let Ok(file) = image.elf() else { continue };
            elf_symbols::add_symbols(&file, into, &|| image.release());
            if !elf::has_symtab(&file)
                && let Some(go) = GoTable::find(&file)
            {
                add_go_functions(&go, into);
            }
            plt::add_stubs(&file, into);
            image.release();
        }
        for mini in self.mini(files).iter().filter_map(|mini| mini.elf().ok()) {
            elf_symbols::add_symbols(&mini, into, &|| {});
        }
    }

    /// Returns the decompressed `.gnu_debugdata` symbol tables of the files.
    pub(in crate::symbol) fn mini(&self, files: &ModuleFiles) -> &[Image] {
        self.mini.get_or_init(|| {
            let packed = |image: &Image| elf::mini_debug(&image.elf().ok()?);
            files.images().filter_map(packed).map(|bytes| Image::held(".gnu_debugdata", bytes)).collect()
        })
    }
}

fn add_go_functions(go: &GoTable<'_>, into: &mut SymbolTableBuilder) {
    let rank = NameRank { function: true, strong: true, global: false };
    // Each of many hostile functions may have the rest of one long text as its name.
    let mut room = go.bytes();
    for (range, number) in go.functions() {
        let size = range.end - range.start;
        if !into.wants(range.start, size, range.end) {
            continue;
        }
        let Some(name) = go.function_name(number) else { continue };
        let Some(left) = room.checked_sub(name.len()) else { return };
        room = left;
        into.add(range.start, size, range.end, rank, name);
    }
}
