//! The data mappings of a process. They are kept only if samples have data addresses, apart from those of
//! code, because they change more often.

use super::{Epoch, EpochSpace, History};
use crate::session::module::ModuleKind;
use crate::session::space::{MappedModule, SpaceVersion};
use crate::session::timeline::Timestamp;
use pmc_symbols::address::{Avma, FileOffset, Mapping};

impl History {
    /// Also keeps data mappings from now on.
    pub(in crate::session) fn keep_data(&mut self) {
        self.data.get_or_insert_default();
    }

    /// Returns the mapping that contains a data address. Anonymous memory that begins where the data of a
    /// file ends is returned as a part of the file.
    ///
    /// ```text
    ///   segment   |.data .bss              |   the size in memory exceeds the size in the file
    ///   mappings  |file        |//anon     |   the rest of .bss has no file: large variables
    /// ```
    pub(crate) fn find_data(&self, epoch: Epoch, address: Avma) -> Option<MappedModule> {
        let found = *self.find(epoch, address)?;
        let is_of = |module: u32, kind| self.modules.all()[module as usize].kind == kind;
        if !is_of(found.module, ModuleKind::Opaque) {
            return Some(found);
        }
        let start = found.mapping.start;
        let before = start.0.checked_sub(1).and_then(|before| self.find(epoch, Avma(before)));
        let Some(before) = before.filter(|before| is_of(before.module, ModuleKind::File)) else {
            return Some(found);
        };
        let offset = before.mapping.offset.0.saturating_add(start.0.saturating_sub(before.mapping.start.0));
        let mapping = Mapping { offset: FileOffset(offset), ..found.mapping };
        Some(MappedModule { mapping, module: before.module })
    }

    pub(super) fn current_data(&self, pid: i32) -> Option<Epoch> {
        self.data.as_ref()?.get(&pid)?.last().map(|(_, epoch)| *epoch)
    }

    /// Adds a data mapping. Data has separate epochs, so that its frequent changes do not end the epochs of
    /// code.
    pub(super) fn map_data(&mut self, pid: i32, timestamp: Timestamp, new: MappedModule) {
        if self.data.is_none() {
            return;
        }
        let last = self.current_data(pid);
        if !last.is_some_and(|epoch| self.add(epoch, new)) {
            let root = self.spaces.map(last.map_or(SpaceVersion::EMPTY, |epoch| self.root(epoch)), new);
            self.begin_data(pid, timestamp, root);
        }
    }

    pub(super) fn begin_data(&mut self, pid: i32, timestamp: Timestamp, root: SpaceVersion) {
        let epoch = Epoch(self.epochs.len() as u32);
        self.epochs.push(EpochSpace { root, own: self.spaces.own(), data: None, version: 0 });
        if let Some(data) = &mut self.data {
            data.entry(pid).or_default().push((timestamp, epoch));
        }
        if let Some(code) = self.current(pid) {
            self.epochs[code.0 as usize].data = Some(epoch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::module::Modules;
    use pmc_perfdata::record::{Mmap, Thread};

    #[test]
    fn anonymous_memory_behind_the_data_of_a_file_belongs_to_it() {
        let mut h = History::new(Modules::default());
        h.keep_data();
        let mut map = |addr: u64, pgoff: u64, name: &[u8], is_data: bool| {
            let thread = Thread { pid: 1, tid: 1 };
            h.map(1, &Mmap { thread, addr, len: 0x2000, pgoff, is_data, name }, None, false);
        };
        map(0x40_3000, 0x2000, b"/bin/a", true);
        map(0x40_5000, 0, b"//anon", true);
        map(0x40_9000, 0, b"//anon", true);
        map(0x50_0000, 0, b"[heap]", true);
        map(0x50_2000, 0, b"//anon", true);
        map(0x40_0000, 0, b"/bin/a", false);
        let at = |address: u64| {
            let mapped = h.find_data(h.epoch(1, 3), Avma(address)).unwrap();
            (h.modules()[mapped.module as usize].short_name(), mapped.mapping.file_offset(Avma(address)))
        };
        assert_eq!(at(0x40_6010), ("a".to_owned(), Some(FileOffset(0x5010))));
        for address in [0x40_9010, 0x50_2010] {
            assert_ne!(at(address).0, "a");
        }
    }
}
