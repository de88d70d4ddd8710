//! The processes, thread names and mappings at any time in a recording.
//!
//! Applies side-band records in time order, including forks, execs and overlapping mappings. For any
//! timestamp, returns the address space of a process, the name of a thread, or the mapping at an address.
//!
//! ```text
//! process 71   | epoch 4 (forked: parent's maps) | exec: epoch 5, grows with libraries | dlopen over old: 9
//!              '---------------------------------+-----------------------------------+---------------- time
//! ```
//! An [`Epoch`] is a period in the life of a process during which no address changes its meaning, so equal
//! address lists in an epoch have the same meaning. New mappings that do not overlap others extend the epoch.

mod data;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::intern::Interner;
use super::module::{self, FileAndAccess, Module, ModuleKind, Modules};
use super::space::{AddressSpaces, MappedModule, OwnedNodes, SpaceVersion};
use super::timeline::{ById, Timeline, at, past};
use pmc_perfdata::record::{Comm, Ksymbol, MappingAccess, Mmap, Namespaces, RawRecord, Record, Task, Thread};
use pmc_symbols::address::{Avma, FileOffset, Mapping};
use pmc_sys::abi::{CpuMode, misc};

pub use super::timeline::Timestamp;

/// A period in the life of a process, identified by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The kernel's address space, which all processes share.
    pub(crate) const KERNEL: Self = Self(0);
    /// The epoch of unknown processes.
    pub(crate) const UNKNOWN_PROCESS: Self = Self(1);
}

/// A thread's name, identified by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommId(pub u32);

/// The address space of an epoch.
#[derive(Debug, Clone, Copy)]
struct EpochSpace {
    root: SpaceVersion,
    /// The part of the space that no other epoch shares.
    own: OwnedNodes,
    /// The latest data epoch during this epoch.
    data: Option<Epoch>,
    /// See [`History::version`].
    version: u32,
}

/// Information about a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskInfo {
    /// Process id of the thread.
    pub(crate) pid: i32,
    /// The process that created the thread, if recorded.
    pub(crate) parent: Option<i32>,
}

/// A symbol added to the kernel during the recording: start, size, name.
pub type AddedSymbol = (Avma, u64, Arc<Path>);

/// A thread and its names.
#[derive(Debug)]
struct ThreadHistory {
    about: TaskInfo,
    names: Timeline<CommId>,
}

/// The history of a recording.
#[derive(Debug)]
pub struct History {
    spaces: AddressSpaces,
    epochs: Vec<EpochSpace>,
    processes: ById<Timeline<Epoch>>,
    /// The data epochs of each process, which cover all mappings. `None` unless the recorder captured
    /// mappings without code (`-d`).
    data: Option<ById<Timeline<Epoch>>>,
    threads: ById<ThreadHistory>,
    comms: Interner,
    /// The current mount namespace of each process during the replay.
    mounts: FxHashMap<i32, u64>,
    modules: Modules,
    versions: u32,
    /// Maximum number of nodes in all spaces, above which older versions are dropped; see
    /// [`History::limit_versions`].
    most_nodes: usize,
    /// Lookups before this timestamp use later versions of the spaces.
    dropped_before: Option<Timestamp>,
    /// Symbols added to the kernel during the recording.
    pub(crate) ksymbols: Vec<AddedSymbol>,
    /// jitdump files that processes mapped.
    pub(crate) jitdumps: Vec<(u32, PathBuf)>,
}

impl History {
    /// Creates an empty history.
    pub(crate) fn new(modules: Modules) -> Self {
        let nobody = |own| EpochSpace { root: SpaceVersion::EMPTY, own, data: None, version: 0 };
        let mut history = Self {
            spaces: AddressSpaces::default(),
            epochs: vec![nobody(OwnedNodes::ALL), nobody(OwnedNodes::NONE)],
            processes: ById::default(),
            data: None,
            threads: ById::default(),
            comms: Interner::default(),
            mounts: FxHashMap::default(),
            modules,
            versions: 0,
            most_nodes: usize::MAX,
            dropped_before: None,
            ksymbols: Vec::new(),
            jitdumps: Vec::new(),
        };
        history.name(Thread { pid: 0, tid: 0 }, 0, b"swapper");
        history
    }

    fn name(&mut self, thread: Thread, timestamp: Timestamp, comm: &[u8]) {
        let id = CommId(self.comms.add(0, comm));
        let about = TaskInfo { pid: thread.pid, parent: None };
        let new = ThreadHistory { about, names: Timeline::new() };
        self.threads.entry(thread.tid).or_insert(new).names.push((timestamp, id));
    }

    fn begin(&mut self, pid: i32, timestamp: Timestamp, root: SpaceVersion) -> Epoch {
        let epoch = Epoch(self.epochs.len() as u32);
        let (own, data) = (self.spaces.own(), self.current_data(pid));
        self.versions = self.versions.wrapping_add(1);
        self.epochs.push(EpochSpace { root, own, data, version: self.versions });
        self.processes.entry(pid).or_default().push((timestamp, epoch));
        epoch
    }

    fn current(&self, pid: i32) -> Option<Epoch> {
        self.processes.get(&pid)?.last().map(|(_, epoch)| *epoch)
    }

    /// Applies a side-band record; ignores other records. Timestamps must not decrease.
    pub(super) fn record(&mut self, timestamp: Timestamp, raw: &RawRecord<'_>) {
        if let Some(record) = raw.parse() {
            self.take(timestamp, raw, &record);
        }
    }

    /// Like [`History::record`], for a parsed record.
    pub(super) fn take(&mut self, timestamp: Timestamp, raw: &RawRecord<'_>, record: &Record<'_>) {
        self.bound_versions(timestamp);
        let in_kernel = matches!(raw.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel);
        match record {
            Record::Mmap(map) => self.map(timestamp, map, None, in_kernel),
            Record::Mmap2(map) => {
                let mut plain = map.map;
                plain.is_data = map.is_data();
                self.map(timestamp, &plain, Some((map.file, map.access())), in_kernel);
            }
            Record::Comm(comm) => self.take_name(timestamp, comm),
            Record::Fork(task) => self.fork(timestamp, task, raw.misc & misc::FORK_EXEC == 0),
            Record::Ksymbol(symbol) => self.ksymbol(symbol),
            Record::Namespaces(namespaces) => self.namespaces(namespaces),
            _ => {}
        }
    }

    /// Sets a thread's name. An exec empties the process's address space.
    pub(super) fn take_name(&mut self, timestamp: Timestamp, comm: &Comm<'_>) {
        self.name(comm.thread, timestamp, comm.comm);
        let pid = comm.thread.pid;
        if comm.is_exec && self.current(pid).is_some_and(|epoch| self.root(epoch) != SpaceVersion::EMPTY) {
            self.begin(pid, timestamp, SpaceVersion::EMPTY);
        }
        if comm.is_exec && self.data.is_some() {
            self.begin_data(pid, timestamp, SpaceVersion::EMPTY);
        }
    }

    /// Adds a new thread. If `inherits`, a new process starts with its parent's address space.
    pub(super) fn fork(&mut self, timestamp: Timestamp, task: &Task, inherits: bool) {
        let about = TaskInfo { pid: task.thread.pid, parent: Some(task.parent.pid) };
        let comm = self.names(task.parent.tid).and_then(|names| names.last()).map(|(_, comm)| *comm);
        let thread =
            self.threads.entry(task.thread.tid).or_insert(ThreadHistory { about, names: Timeline::new() });
        thread.about = about;
        thread.names.extend(comm.map(|comm| (timestamp, comm)));
        if task.thread.pid != task.parent.pid {
            if let Some(&mount) = self.mounts.get(&task.parent.pid) {
                self.mounts.insert(task.thread.pid, mount);
            }
            let parent = if inherits { self.current(task.parent.pid) } else { None };
            let root = parent.map_or(SpaceVersion::EMPTY, |epoch| self.share(epoch));
            let child = self.begin(task.thread.pid, timestamp, root);
            if let Some(parent) = parent {
                self.epochs[child.0 as usize].version = self.version(parent);
            }
            if let Some(epoch) = self.current_data(task.parent.pid).filter(|_| inherits) {
                let root = self.share(epoch);
                self.begin_data(task.thread.pid, timestamp, root);
            }
        }
    }

    /// Records the mount namespace of a process.
    pub(super) fn namespaces(&mut self, namespaces: &Namespaces<'_>) {
        // The list has the device and inode of each namespace; the mount namespace is the sixth.
        const MOUNT: usize = 5;
        if let Some(inode) = namespaces.links.get(2 * MOUNT + 1).filter(|inode| *inode != 0) {
            self.mounts.insert(namespaces.thread.pid, inode);
        }
    }

    /// Adds a mapping.
    pub(super) fn map(
        &mut self,
        timestamp: Timestamp,
        map: &Mmap<'_>,
        file: Option<FileAndAccess<'_>>,
        in_kernel: bool,
    ) {
        let pid = map.thread.pid;
        let mut mapping = Mapping { start: Avma(map.addr), len: map.len, offset: FileOffset(map.pgoff) };
        if in_kernel || pid == -1 {
            let kind = module::kind_in_kernel(map.name, &mapping);
            if !matches!(kind, ModuleKind::Kernel(_)) {
                mapping.offset = FileOffset(0);
            }
            let module = self.modules.add(kind, map.name, file, 0, mapping, None);
            self.modules.note_code(module, map.len);
            self.add_to_kernel(MappedModule { mapping, module });
            return;
        }
        self.note_jitdump(map);
        let kind = match module::kind_in_process(map.name, pid as u32) {
            // A non-executable mapping cannot contain generated code. perf creates no map for it either.
            ModuleKind::Anonymous(_) if map.is_data && map.name == b"//anon" => ModuleKind::Opaque,
            kind => kind,
        };
        if matches!(kind, ModuleKind::Anonymous(_)) {
            // Without a file, the offset is the address.
            mapping.offset = FileOffset(map.addr);
        }
        let module =
            self.modules.add(kind, map.name, file, pid as u32, mapping, self.mounts.get(&pid).copied());
        let new = MappedModule { mapping, module };
        self.map_data(pid, timestamp, new);
        if map.is_data {
            return;
        }
        self.modules.note_code(module, map.len);
        let last = self.current(pid);
        if !last.is_some_and(|epoch| self.add(epoch, new)) {
            let root = self.spaces.map(last.map_or(SpaceVersion::EMPTY, |epoch| self.root(epoch)), new);
            self.begin(pid, timestamp, root);
        }
    }

    fn note_jitdump(&mut self, map: &Mmap<'_>) {
        use std::os::unix::ffi::OsStrExt;
        if module::is_jitdump(map.name) {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(map.name));
            self.jitdumps.push((map.thread.pid as u32, path));
        }
    }

    /// Adds a mapping to an epoch. If this would change the meaning of an address, returns `false` and
    /// changes nothing.
    fn add(&mut self, epoch: Epoch, new: MappedModule) -> bool {
        let at = &mut self.epochs[epoch.0 as usize];
        let grown = self.spaces.add(at.root, at.own, new);
        if let Some(root) = grown {
            at.root = root;
            // Generated code is mapped often, so mapping it at an unused address does not change the version.
            let kind = &self.modules.all()[new.module as usize].kind;
            if !matches!(kind, ModuleKind::Anonymous(_) | ModuleKind::Opaque) {
                self.versions = self.versions.wrapping_add(1);
                at.version = self.versions;
            }
        }
        grown.is_some()
    }

    /// Adds a mapping to the kernel's only epoch. A changed mapping does not start a new one.
    fn add_to_kernel(&mut self, new: MappedModule) {
        let kernel = &mut self.epochs[Epoch::KERNEL.0 as usize];
        kernel.root = self.spaces.replace(kernel.root, kernel.own, new);
    }

    /// Returns the current space of an epoch, so that another epoch can start from it.
    fn share(&mut self, epoch: Epoch) -> SpaceVersion {
        let at = &mut self.epochs[epoch.0 as usize];
        at.own = self.spaces.own();
        at.root
    }

    /// Adds a symbol to the kernel.
    pub(super) fn ksymbol(&mut self, symbol: &Ksymbol<'_>) {
        if symbol.is_unregister || symbol.len == 0 {
            return;
        }
        let start = Avma(symbol.addr);
        let mapping = Mapping { start, len: symbol.len.into(), offset: FileOffset(0) };
        let module = self.modules.add(ModuleKind::Bpf, symbol.name, None, 0, mapping, None);
        self.modules.note_code(module, mapping.len);
        self.add_to_kernel(MappedModule { mapping, module });
        let name = self.modules.all()[module as usize].path.clone();
        self.ksymbols.push((start, symbol.len.into(), name));
    }

    /// Maps the upper half of the address space to the kernel, if the recording has no kernel mapping.
    pub(super) fn complete(&mut self) {
        if self.root(Epoch::KERNEL) == SpaceVersion::EMPTY {
            let mapping = Mapping { start: Avma(1 << 63), len: 1 << 63, offset: FileOffset(0) };
            let module =
                self.modules.add(ModuleKind::Kernel(None), b"[kernel.kallsyms]", None, 0, mapping, None);
            self.add_to_kernel(MappedModule { mapping, module });
        }
    }

    /// Removes the state before this timestamp, and the processes and threads that are no longer alive
    /// according to `lives`. Renumbers the epochs, and returns the new number of each old epoch. Epochs that
    /// are missing from the result must no longer be used. Keeps modules and names.
    pub(super) fn forget(
        &mut self,
        before: Timestamp,
        lives: impl Fn(i32) -> bool,
    ) -> FxHashMap<Epoch, Epoch> {
        // Newer entries may belong to a process that started during the check.
        let is_young = |from: Option<Timestamp>| from.is_some_and(|from| from > before);
        self.processes.retain(|pid, epochs| lives(*pid) || is_young(epochs.last().map(|(from, _)| *from)));
        // A thread without a name is never looked up.
        self.threads.retain(|tid, thread| {
            let last = thread.names.last().map(|(from, _)| *from);
            last.is_some() && (*tid == 0 || lives(*tid)) || is_young(last)
        });
        self.threads.values_mut().for_each(|thread| past(&mut thread.names, before));
        // The namespace of a process without an epoch is never looked up.
        self.mounts.retain(|pid, _| self.processes.contains_key(pid));
        self.forget_versions(before)
    }

    /// Limits the memory used by versions of address spaces, because a hostile recording can create a version
    /// with each mapping. Above this number of nodes, pmc drops the older versions, and lookups in them use
    /// the next remaining version.
    pub(super) fn limit_versions(&mut self, most_nodes: usize) {
        self.most_nodes = most_nodes;
    }

    /// Returns the timestamp before which pmc has dropped versions of address spaces, if any.
    pub(crate) fn dropped_before(&self) -> Option<Timestamp> {
        self.dropped_before
    }

    fn bound_versions(&mut self, now: Timestamp) {
        if self.spaces.len() > self.most_nodes {
            self.forget_versions(now);
            self.dropped_before = Some(now);
            // If the current mappings are close to the limit, raise it to twice their size, so that the total
            // work stays linear.
            self.most_nodes = self.most_nodes.max(2 * self.spaces.len());
        }
    }

    /// Removes the epochs that ended before this timestamp; see [`History::forget`].
    fn forget_versions(&mut self, before: Timestamp) -> FxHashMap<Epoch, Epoch> {
        let old = std::mem::take(&mut self.epochs);
        self.epochs = old[..2].to_vec();
        let mut moved: FxHashMap<Epoch, Epoch> =
            [Epoch::KERNEL, Epoch::UNKNOWN_PROCESS].into_iter().map(|epoch| (epoch, epoch)).collect();
        let of_data = self.data.iter_mut().flat_map(|data| data.values_mut());
        for epochs in self.processes.values_mut().chain(of_data) {
            past(epochs, before);
            for (_, epoch) in epochs {
                *epoch = *moved.entry(*epoch).or_insert_with(|| {
                    self.epochs.push(old[epoch.0 as usize]);
                    Epoch(self.epochs.len() as u32 - 1)
                });
            }
        }
        self.spaces.keep(self.epochs.iter_mut().map(|epoch| &mut epoch.root));
        let own = self.spaces.own();
        for epoch in &mut self.epochs {
            epoch.own = own;
            epoch.data = epoch.data.and_then(|data| moved.get(&data).copied());
        }
        moved
    }

    /// Ends a process. It has no epoch until it is created again.
    pub(super) fn end(&mut self, pid: i32) {
        self.processes.swap_remove(&pid);
    }

    /// Returns a measure of how much state could be removed. It grows with each mapping, process and thread.
    pub(super) fn removable_len(&self) -> usize {
        self.spaces.len() + self.epochs.len() + self.threads.len()
    }

    fn root(&self, epoch: Epoch) -> SpaceVersion {
        self.epochs[epoch.0 as usize].root
    }

    /// Returns a version that changes when files are mapped or code is replaced. Epochs with equal versions
    /// have the same files at the same addresses.
    pub(crate) fn version(&self, epoch: Epoch) -> u32 {
        self.epochs[epoch.0 as usize].version
    }

    /// Returns the epoch of a process at a timestamp.
    pub fn epoch(&self, pid: i32, timestamp: Timestamp) -> Epoch {
        self.processes.get(&pid).and_then(|epochs| at(epochs, timestamp)).unwrap_or(Epoch::UNKNOWN_PROCESS)
    }

    /// Returns the epoch of a process's data, which is its code epoch if the recording has no data mappings.
    pub(crate) fn data_epoch(&self, pid: i32, timestamp: Timestamp) -> Epoch {
        let epochs = self.data.as_ref().and_then(|data| data.get(&pid));
        epochs.and_then(|epochs| at(epochs, timestamp)).unwrap_or_else(|| self.epoch(pid, timestamp))
    }

    /// Returns the name of a thread, or the name of its process if the thread has no name.
    pub fn comm(&self, pid: i32, tid: i32, timestamp: Timestamp) -> Option<CommId> {
        // The kernel uses this id for all exiting tasks, so it does not identify a thread.
        if tid == -1 {
            return None;
        }
        let of = |id| self.names(id).and_then(|names| at(names, timestamp));
        of(tid).or_else(|| of(pid))
    }

    fn names(&self, tid: i32) -> Option<&Timeline<CommId>> {
        self.threads.get(&tid).map(|thread| &thread.names)
    }

    /// Returns a thread's most recent name. A process takes the name of its first thread.
    pub fn task_name(&self, tid: i32) -> Option<&[u8]> {
        let comm = self.comm(tid, tid, Timestamp::MAX)?;
        Some(self.comms.get(comm.0).1)
    }

    /// Returns the time of the last change to a thread's name or its process's epoch. Lookups at all later
    /// timestamps give the same result.
    pub(super) fn unchanged_since(&self, pid: i32, tid: i32) -> Timestamp {
        let last = |names: Option<&Timeline<CommId>>| {
            names.and_then(|names| names.last()).map_or(0, |(from, _)| *from)
        };
        let epochs = self.processes.get(&pid).and_then(|epochs| epochs.last()).map_or(0, |(from, _)| *from);
        last(self.names(tid)).max(last(self.names(pid))).max(epochs)
    }

    /// Returns the process of a thread and its parent, if the recording contains the thread.
    pub(crate) fn task(&self, tid: i32) -> Option<TaskInfo> {
        self.threads.get(&tid).map(|thread| thread.about)
    }

    /// Returns the process of a thread, if the recording contains the thread.
    pub fn process(&self, tid: i32) -> Option<i32> {
        self.task(tid).map(|task| task.pid)
    }

    /// Iterates over all threads in the records, in no particular order.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (i32, TaskInfo)> + '_ {
        self.threads.iter().map(|(tid, thread)| (*tid, thread.about))
    }

    /// Returns the name with this number, as untrusted bytes.
    pub fn comm_name(&self, comm: CommId) -> Option<&[u8]> {
        ((comm.0 as usize) < self.comms.len()).then(|| self.comms.get(comm.0).1)
    }

    /// Returns all names, ordered by number, as untrusted bytes.
    pub fn comms(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.comms.iter().map(|(_, comm)| comm)
    }

    /// Finds the mapping at an address in an epoch. Looks for code first, then for data (if recorded).
    pub(crate) fn find(&self, epoch: Epoch, address: Avma) -> Option<&MappedModule> {
        self.spaces.find(self.root(epoch), address).or_else(|| {
            let data = self.epochs[epoch.0 as usize].data?;
            self.spaces.find(self.root(data), address)
        })
    }

    /// Iterates over the mappings of an epoch, by start address.
    pub(crate) fn mappings(&self, epoch: Epoch) -> impl Iterator<Item = &MappedModule> {
        self.spaces.iter(self.root(epoch))
    }

    /// Iterates over the mappings of an epoch that may contain code.
    pub(crate) fn code(&self, epoch: Epoch) -> impl Iterator<Item = &MappedModule> {
        self.mappings(epoch).filter(|mapped| !self.modules()[mapped.module as usize].is_stack())
    }

    /// All modules, indexed by [`MappedModule::module`].
    pub fn modules(&self) -> &[Module] {
        self.modules.all()
    }

    /// Returns a module's inode number and access permissions, if recorded and kept.
    pub(crate) fn file_of(&self, module: u32) -> (Option<u64>, Option<MappingAccess>) {
        (self.modules.inode(module), self.modules.access(module))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_text::units::PerfTime;

    fn history() -> History {
        History::new(Modules::default())
    }

    fn map(history: &mut History, timestamp: Timestamp, pid: i32, addr: u64, len: u64, name: &str) {
        let thread = Thread { pid, tid: pid };
        let map = Mmap { thread, addr, len, pgoff: 0, is_data: false, name: name.as_bytes() };
        history.map(timestamp, &map, None, false);
    }

    fn found(history: &History, pid: i32, timestamp: Timestamp, address: u64) -> String {
        let epoch = history.epoch(pid, timestamp);
        let module = history.find(epoch, Avma(address)).map(|m| &history.modules()[m.module as usize]);
        module.map_or("-".to_owned(), Module::short_name)
    }

    fn task(pid: i32, tid: i32, ppid: i32, timestamp: Timestamp) -> Task {
        let thread = |pid, tid| Thread { pid, tid };
        Task { thread: thread(pid, tid), parent: thread(ppid, ppid), time: PerfTime(timestamp) }
    }

    fn exec(pid: i32, comm: &[u8]) -> Comm<'_> {
        Comm { thread: Thread { pid, tid: pid }, is_exec: true, comm }
    }

    #[test]
    fn stack_mapping_is_not_code() {
        let mut history = history();
        for (addr, name) in
            [(0x1000, "/bin/a"), (0x2000, "[stack]"), (0x3000, "[stack:7]"), (0x4000, "//anon")]
        {
            map(&mut history, 1, 5, addr, 0x1000, name);
        }
        let starts = history.code(history.epoch(5, 2)).map(|mapped| mapped.mapping.start.0);
        assert_eq!(starts.collect::<Vec<_>>(), [0x1000, 0x4000]);
    }

    #[test]
    fn fork_inherits_and_exec_clears_mappings() {
        let mut h = history();
        h.take_name(0, &exec(1, b"sh"));
        map(&mut h, 1, 1, 0x1000, 0x1000, "/bin/sh");
        h.fork(10, &task(2, 2, 1, 10), true);
        h.take_name(20, &exec(2, b"ls"));
        map(&mut h, 21, 2, 0x1000, 0x1000, "/bin/ls");
        map(&mut h, 30, 1, 0x8000, 0x1000, "/lib/x.so");
        assert_eq!(found(&h, 2, 15, 0x1800), "sh");
        assert_eq!(found(&h, 2, 25, 0x1800), "ls");
        assert_eq!(found(&h, 1, 25, 0x1800), "sh");
        // The child does not see mappings that the parent creates after the fork.
        assert_eq!(found(&h, 2, 35, 0x8000), "-");
        assert_eq!(found(&h, 1, 35, 0x8000), "x.so");
        let name = |pid, timestamp| h.comm(pid, pid, timestamp).map(|c| h.comms().nth(c.0 as usize).unwrap());
        assert_eq!((name(2, 15), name(2, 25)), (Some(&b"sh"[..]), Some(&b"ls"[..])));
        assert_eq!(name(99, 1), None);
    }

    #[test]
    fn epoch_lasts_until_an_address_is_remapped() {
        let mut h = history();
        map(&mut h, 1, 1, 0x1000, 0x1000, "/a");
        map(&mut h, 2, 1, 0x3000, 0x1000, "/b");
        assert_eq!(h.epoch(1, 1), h.epoch(1, 2));
        map(&mut h, 3, 1, 0x3000, 0x800, "/c");
        assert_ne!(h.epoch(1, 2), h.epoch(1, 3));
        assert_eq!(found(&h, 1, 2, 0x3400), "b");
        assert_eq!(found(&h, 1, 3, 0x3400), "c");
        assert_eq!(found(&h, 1, 3, 0x3900), "b");
        // Generated code is replaced often, but its names are looked up by address, so the epoch does not
        // change.
        map(&mut h, 4, 1, 0x9000, 0x1000, "//anon");
        let before = h.epoch(1, 4);
        let again = Mmap {
            pgoff: 77,
            ..Mmap {
                thread: Thread { pid: 1, tid: 1 },
                addr: 0x9000,
                len: 0x2000,
                pgoff: 0,
                is_data: false,
                name: b"//anon",
            }
        };
        h.map(5, &again, None, false);
        assert_eq!(before, h.epoch(1, 5));
    }

    #[test]
    fn exited_processes_are_dropped_and_others_kept() {
        let mut h = history();
        map(&mut h, 0, 1, 0x1000, 0x1000, "/bin/sh");
        for child in 0..1000 {
            let (pid, now) = (child + 2, child as u64 * 10 + 1);
            h.fork(now, &task(pid, pid, 1, now), true);
            h.take_name(now + 1, &exec(pid, b"child"));
            map(&mut h, now + 2, pid, 0x1000, 0x1000, "/bin/child");
        }
        let before = h.removable_len();
        h.forget(9_000, |pid| pid == 1 || pid == 500);
        assert!(h.removable_len() < before / 5, "{} of {before}", h.removable_len());
        assert_eq!(found(&h, 1, 20_000, 0x1800), "sh");
        assert_eq!(found(&h, 500, 20_000, 0x1800), "child");
        assert_eq!(found(&h, 400, 20_000, 0x1800), "-");
        // A process that started after the timestamp is kept.
        assert_eq!(found(&h, 1000, 20_000, 0x1800), "child");
        map(&mut h, 20_001, 500, 0x1000, 0x1000, "/lib/new.so");
        assert_eq!(found(&h, 500, 20_001, 0x1800), "new.so");
    }

    #[test]
    fn nested_mappings_use_bounded_memory() {
        let most = 10_000;
        let mut h = history();
        h.limit_versions(most);
        let mut largest = 0;
        for n in 0..20_000u64 {
            // Each mapping lies inside the previous one and therefore starts a new epoch.
            let name = ["/outer", "/inner"][n as usize % 2];
            map(&mut h, n, 1, 0x1000 * n, 0x1000 * (40_000 - 2 * n), name);
            h.bound_versions(n);
            largest = largest.max(h.spaces.len());
        }
        // The final mappings have about 40,000 pieces. Without a limit, all versions together would need
        // millions of nodes.
        assert!(largest < 250_000, "{largest} nodes");
        assert!(h.dropped_before().is_some());
        assert_eq!(found(&h, 1, 20_000, 0x1000 * 19_999), "inner");
        assert_eq!(found(&h, 1, 20_000, 0x1000 * 19_998), "outer");
    }

    #[test]
    fn thread_inherits_name_and_address_space() {
        let mut h = history();
        h.take_name(0, &exec(1, b"main"));
        map(&mut h, 1, 1, 0x1000, 0x1000, "/a");
        h.fork(5, &task(1, 7, 1, 5), true);
        assert_eq!(h.comm(1, 7, 6), h.comm(1, 1, 6));
        assert_eq!(h.epoch(1, 6), h.epoch(1, 1));
    }

    #[test]
    fn kernel_symbols_update_the_space_in_place() {
        let mut h = history();
        for n in 0..1000u64 {
            let name = format!("bpf_{n}");
            let addr = (1 << 63) + n * 0x1000;
            h.ksymbol(&Ksymbol { addr, len: 64, kind: 1, is_unregister: false, name: name.as_bytes() });
        }
        // Earlier versions of the kernel's space are never looked up, so each mapping takes one node.
        assert!(h.spaces.len() < 1100, "{} nodes", h.spaces.len());
        let found = |n: u64| h.find(Epoch::KERNEL, Avma((1 << 63) + n * 0x1000 + 63));
        assert!((0..1000).all(|n| found(n).is_some_and(|mapped| mapped.module == n as u32)));
    }

    #[test]
    fn kernel_is_mapped_without_records() {
        let mut h = history();
        h.complete();
        assert!(h.find(Epoch::KERNEL, Avma(0xffff_ffff_8100_0000)).is_some());
        assert!(h.find(Epoch::KERNEL, Avma(0x1000)).is_none());
    }
}
