//! The running processes and their code, for unwinding samples as they arrive.
//!
//! Applies side-band records in time order. Keeps only the current state of a [`History`], so memory use
//! depends on the number of processes, not on the length of the recording. Returns each process's code with a
//! version number. As long as the version stays the same, every mapped address keeps its meaning. A forked
//! process shares its parent's version.

use rustc_hash::FxHashMap;

use super::history::{History, Timestamp};
use super::module::{self, Module, ModuleKind, Modules};
use super::space::MappedModule;
use pmc_perfdata::record::{Mmap, Mmap2, RawRecord, Record, kind};
use pmc_sys::abi::{CpuMode, misc};

/// Growth of the history that triggers a cleanup.
const CLEANUP_GROWTH: usize = 1 << 14;

/// The running processes.
#[derive(Debug)]
pub struct RunningProcesses {
    history: History,
    /// Number of running threads of each process.
    threads: FxHashMap<i32, u32>,
    /// See [`generated`](Self::generated).
    generated: FxHashMap<i32, u32>,
    /// Number of records so far, which serves as the history's time.
    now: Timestamp,
    /// Size of the state after the last cleanup.
    removable_len: usize,
}

impl Default for RunningProcesses {
    fn default() -> Self {
        let history = History::new(Modules::default());
        let (threads, generated) = (FxHashMap::default(), FxHashMap::default());
        Self { history, threads, generated, now: 0, removable_len: 0 }
    }
}

impl RunningProcesses {
    /// Applies a record. Ignores records that do not concern processes and their code.
    pub fn note(&mut self, raw: &RawRecord<'_>) {
        if !matches!(raw.kind, kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT) {
            return;
        }
        let in_kernel = matches!(raw.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel);
        let Some(record) = raw.parse() else { return };
        let map = match &record {
            Record::Mmap(map) => Some((map, map.is_data)),
            Record::Mmap2(map) => Some((&map.map, map.is_data())),
            _ => None,
        };
        if map.is_some_and(|(map, is_data)| in_kernel || is_data || map.len == 0 || map.thread.pid < 0) {
            return;
        }
        match &record {
            Record::Mmap(Mmap { thread, .. }) | Record::Mmap2(Mmap2 { map: Mmap { thread, .. }, .. }) => {
                self.threads.entry(thread.pid).or_insert(1);
                let name = map.map_or(&[][..], |(map, _)| map.name);
                if matches!(module::kind_in_process(name, thread.pid as u32), ModuleKind::Anonymous(_)) {
                    *self.generated.entry(thread.pid).or_default() += 1;
                }
            }
            // An exec ends all other threads, each of which has its own exit record.
            Record::Comm(comm) if comm.is_exec => {
                self.threads.entry(comm.thread.pid).or_insert(1);
            }
            Record::Fork(task) if raw.misc & misc::FORK_EXEC == 0 => {
                if task.thread.pid == task.parent.pid {
                    *self.threads.entry(task.thread.pid).or_default() += 1;
                    return;
                }
                self.threads.insert(task.thread.pid, 1);
                let generated = self.generated(task.parent.pid);
                self.generated.insert(task.thread.pid, generated);
            }
            Record::Exit(task) => {
                let Some(threads) = self.threads.get_mut(&task.thread.pid) else { return };
                *threads = threads.saturating_sub(1);
                if *threads == 0 {
                    self.threads.remove(&task.thread.pid);
                    self.generated.remove(&task.thread.pid);
                    self.history.end(task.thread.pid);
                }
                return;
            }
            _ => return,
        }
        self.now += 1;
        self.history.take(self.now, raw, &record);
        if self.history.removable_len() > 2 * self.removable_len + CLEANUP_GROWTH {
            self.history.forget(self.now, |pid| self.threads.contains_key(&pid));
            self.history.jitdumps.clear();
            self.removable_len = self.history.removable_len();
        }
    }

    /// Identifies the current code of a process; `None` for unknown processes.
    pub fn version(&self, pid: i32) -> Option<u32> {
        let epoch = self.history.epoch(pid, Timestamp::MAX);
        self.history.mappings(epoch).next().map(|_| self.history.version(epoch))
    }

    /// Number of times that a process has mapped memory for generated code. Mapping generated code at an
    /// unused address does not change the version.
    pub fn generated(&self, pid: i32) -> u32 {
        self.generated.get(&pid).copied().unwrap_or(0)
    }

    /// Iterates over the code of a process, by start address.
    pub fn code(&self, pid: i32) -> impl Iterator<Item = &MappedModule> {
        self.history.code(self.history.epoch(pid, Timestamp::MAX))
    }

    /// Returns the file with this number in [`MappedModule::module`]; `None` for code without a file.
    pub fn module(&self, number: u32) -> Option<&Module> {
        let module = self.history.modules().get(number as usize)?;
        matches!(module.kind, ModuleKind::File | ModuleKind::Vdso).then_some(module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::encode::Encoder;
    use pmc_perfdata::record::{MappedFileId, Records, Task, Thread};
    use pmc_text::units::PerfTime;

    fn thread(pid: i32, tid: i32) -> Thread {
        Thread { pid, tid }
    }

    fn tell(running: &mut RunningProcesses, tell: impl FnOnce(&mut Encoder)) {
        let mut encoder = Encoder::new(0);
        tell(&mut encoder);
        Records::new(encoder.bytes()).for_each(|record| running.note(&record));
    }

    fn map(running: &mut RunningProcesses, pid: i32, addr: u64, len: u64, name: &'static [u8]) {
        let map = Mmap { thread: thread(pid, pid), addr, len, pgoff: 0, is_data: false, name };
        let file = MappedFileId::Inode { major: 1, minor: 2, inode: 3, generation: 0 };
        tell(running, |out| out.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 }));
    }

    fn fork(running: &mut RunningProcesses, pid: i32, tid: i32, parent: i32) {
        let task = Task { thread: thread(pid, tid), parent: thread(parent, parent), time: PerfTime(0) };
        tell(running, |out| out.fork(&task));
    }

    fn shown(running: &RunningProcesses, pid: i32) -> Vec<(u64, u64, String)> {
        let name = |m: &MappedModule| running.module(m.module).map_or("-".to_owned(), Module::short_name);
        running.code(pid).map(|m| (m.start(), m.end(), name(m))).collect()
    }

    #[test]
    fn new_mappings_cover_old_ones() {
        let mut p = RunningProcesses::default();
        map(&mut p, 1, 10, 90, b"/a");
        map(&mut p, 1, 30, 20, b"/b");
        let piece = |start, end, name: &str| (start, end, name.to_owned());
        assert_eq!(shown(&p, 1), [piece(10, 30, "a"), piece(30, 50, "b"), piece(50, 100, "a")]);
        map(&mut p, 1, 0, 200, b"/c");
        assert_eq!(shown(&p, 1), [piece(0, 200, "c")]);
    }

    #[test]
    fn child_shares_parents_code_until_either_changes() {
        let mut p = RunningProcesses::default();
        map(&mut p, 1, 10, 90, b"/a");
        fork(&mut p, 2, 2, 1);
        assert_eq!(p.version(1), p.version(2));
        map(&mut p, 1, 200, 10, b"/b");
        assert_ne!(p.version(1), p.version(2));
        assert_eq!((shown(&p, 1).len(), shown(&p, 2).len()), (2, 1));
        assert_eq!((p.version(3), shown(&p, 3).len()), (None, 0));
    }

    #[test]
    fn adjacent_generated_code_is_not_a_new_version() {
        let mut p = RunningProcesses::default();
        map(&mut p, 1, 10, 90, b"/a");
        let before = p.version(1);
        map(&mut p, 1, 100, 10, b"//anon");
        map(&mut p, 1, 100, 10, b"//anon");
        assert_eq!((p.version(1), p.generated(1)), (before, 2));
        fork(&mut p, 2, 2, 1);
        assert_eq!((p.generated(2), p.generated(3)), (2, 0));
        map(&mut p, 1, 20, 10, b"//anon");
        assert_ne!(p.version(1), before);
    }

    #[test]
    fn exec_clears_and_last_thread_exit_forgets_mappings() {
        let mut p = RunningProcesses::default();
        fork(&mut p, 1, 1, 0);
        map(&mut p, 1, 10, 90, b"/a");
        fork(&mut p, 1, 7, 1);
        let exit = |p: &mut RunningProcesses, tid| {
            let mut record = Encoder::new(0);
            record.fork(&Task { thread: thread(1, tid), parent: thread(1, 1), time: PerfTime(0) });
            let mut bytes = record.bytes().to_vec();
            bytes[..4].copy_from_slice(&kind::EXIT.to_ne_bytes());
            Records::new(&bytes).for_each(|record| p.note(&record));
        };
        exit(&mut p, 7);
        assert_eq!(shown(&p, 1).len(), 1);
        let mut exec = Encoder::new(0);
        exec.comm(thread(1, 1), b"new");
        let mut bytes = exec.bytes().to_vec();
        bytes[4..6].copy_from_slice(&misc::COMM_EXEC.to_ne_bytes());
        Records::new(&bytes).for_each(|record| p.note(&record));
        assert_eq!((p.version(1), p.threads.len()), (None, 1));
        exit(&mut p, 1);
        assert!(p.threads.is_empty() && p.version(1).is_none());
    }
}
