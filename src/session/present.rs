//! Who runs and what is mapped now, for those who look at samples while they come.
//!
//! Receives side-band records in the order of time; keeps, unlike [`History`](super::History), only what holds after the last of them, so
//! that memory follows the processes that live and not the length of the recording. Hands on each process's code, with a
//! version: as long as it stays the same, every address that meant something means the same. A fork shares its parent's.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::module::{self, Kind, Module, Modules};
use super::space::Mapped;
use crate::abi::{CpuMode, misc};
use crate::address::{Avma, FileOffset, Mapping};
use crate::record::{FileId, Mmap, RawRecord, Record, Task, kind};

/// [`Mapped::module`] of code without a file.
pub const NO_FILE: u32 = u32::MAX;

/// The processes of this moment.
#[derive(Debug, Default)]
pub struct Present {
    processes: FxHashMap<i32, Process>,
    modules: Modules,
    versions: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    version: u64,
    /// By start; they do not overlap.
    code: Arc<BTreeMap<u64, Mapped>>,
    /// Threads that were not seen to end.
    threads: u32,
}

impl Present {
    /// Takes in what a record says; those that say nothing of processes and mappings are left alone.
    pub fn note(&mut self, raw: &RawRecord<'_>) {
        if !matches!(raw.kind, kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT) {
            return;
        }
        let in_kernel = matches!(raw.cpu_mode(), CpuMode::Kernel | CpuMode::GuestKernel);
        match raw.parse() {
            Some(Record::Mmap(map)) if !in_kernel => self.map(&map, None),
            Some(Record::Mmap2(map)) if !in_kernel && !map.is_data() => {
                self.map(&map.map, Some(map.file));
            }
            Some(Record::Comm(comm)) if comm.is_exec => {
                let version = self.next_version();
                let process = self.processes.entry(comm.thread.pid).or_default();
                // The other threads end with an exec, and are told to.
                (process.version, process.code) = (version, Arc::default());
                process.threads = process.threads.max(1);
            }
            Some(Record::Fork(task)) if raw.misc & misc::FORK_EXEC == 0 => self.fork(&task),
            Some(Record::Exit(task)) => self.exit(&task),
            _ => {}
        }
    }

    fn next_version(&mut self) -> u64 {
        self.versions += 1;
        self.versions
    }

    fn fork(&mut self, task: &Task) {
        if task.thread.pid == task.parent.pid {
            self.processes.entry(task.thread.pid).or_default().threads += 1;
            return;
        }
        let parent = self.processes.get(&task.parent.pid).cloned().unwrap_or_default();
        self.processes.insert(task.thread.pid, Process { threads: 1, ..parent });
    }

    fn exit(&mut self, task: &Task) {
        let Some(process) = self.processes.get_mut(&task.thread.pid) else { return };
        process.threads = process.threads.saturating_sub(1);
        if process.threads == 0 {
            self.processes.remove(&task.thread.pid);
        }
    }

    fn map(&mut self, map: &Mmap<'_>, file: Option<FileId<'_>>) {
        let pid = map.thread.pid;
        if map.is_data || map.len == 0 || pid < 0 {
            return;
        }
        let mapping = Mapping { start: Avma(map.addr), len: map.len, offset: FileOffset(map.pgoff) };
        let module = match module::kind_in_process(map.name, pid as u32) {
            kind @ (Kind::File | Kind::Vdso) => {
                self.modules.add(kind, map.name, file, pid as u32, mapping, None)
            }
            _ => NO_FILE,
        };
        let new = Mapped { mapping, module };
        let process =
            self.processes.entry(pid).or_insert_with(|| Process { threads: 1, ..Process::default() });
        let code = Arc::make_mut(&mut process.code);
        let covered = cover(code, new);
        // Generated code comes and goes: where nothing was, nothing changes.
        if covered || module != NO_FILE {
            self.versions += 1;
            process.version = self.versions;
        }
    }

    /// What identifies the code of a process as it is now; `None` for processes of which nothing is known.
    pub fn version(&self, pid: i32) -> Option<u64> {
        self.processes.get(&pid).filter(|process| !process.code.is_empty()).map(|process| process.version)
    }

    /// The code of a process, by start.
    pub fn code(&self, pid: i32) -> impl Iterator<Item = &Mapped> {
        self.processes.get(&pid).into_iter().flat_map(|process| process.code.values())
    }

    /// The file with this number in [`Mapped::module`]; `None` for [`NO_FILE`].
    pub fn module(&self, number: u32) -> Option<&Module> {
        self.modules.all().get(number as usize)
    }
}

/// Puts a mapping in, over what it covers. Whether there was anything with another meaning.
fn cover(code: &mut BTreeMap<u64, Mapped>, new: Mapped) -> bool {
    let (start, end) = (new.start(), new.end());
    let mut overlapped: Vec<Mapped> = code.range(start..end).map(|(_, old)| *old).collect();
    overlapped.extend(code.range(..start).next_back().map(|(_, old)| *old).filter(|old| old.end() > start));
    for old in &overlapped {
        code.remove(&old.start());
        for piece in [old.cut(0, start), old.cut(end, u64::MAX)].into_iter().flatten() {
            code.insert(piece.start(), piece);
        }
    }
    code.insert(start, new);
    overlapped.iter().any(|old| !old.agrees(&new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::encode::Encoder;
    use crate::record::{Mmap2, Records, Thread};
    use crate::units::PerfTime;

    fn thread(pid: i32, tid: i32) -> Thread {
        Thread { pid, tid }
    }

    fn tell(present: &mut Present, tell: impl FnOnce(&mut Encoder)) {
        let mut encoder = Encoder::new(0);
        tell(&mut encoder);
        Records::new(encoder.bytes()).for_each(|record| present.note(&record));
    }

    fn map(present: &mut Present, pid: i32, addr: u64, len: u64, name: &'static [u8]) {
        let map = Mmap { thread: thread(pid, pid), addr, len, pgoff: 0, is_data: false, name };
        let file = FileId::Inode { major: 1, minor: 2, inode: 3, generation: 0 };
        tell(present, |out| out.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 }));
    }

    fn fork(present: &mut Present, pid: i32, tid: i32, parent: i32) {
        let task = Task { thread: thread(pid, tid), parent: thread(parent, parent), time: PerfTime(0) };
        tell(present, |out| out.fork(&task));
    }

    fn shown(present: &Present, pid: i32) -> Vec<(u64, u64, String)> {
        let name = |m: &Mapped| present.module(m.module).map_or("-".to_owned(), Module::short_name);
        present.code(pid).map(|m| (m.start(), m.end(), name(m))).collect()
    }

    #[test]
    fn mappings_cover_what_was_there() {
        let mut p = Present::default();
        map(&mut p, 1, 10, 90, b"/a");
        map(&mut p, 1, 30, 20, b"/b");
        let piece = |start, end, name: &str| (start, end, name.to_owned());
        assert_eq!(shown(&p, 1), [piece(10, 30, "a"), piece(30, 50, "b"), piece(50, 100, "a")]);
        map(&mut p, 1, 0, 200, b"/c");
        assert_eq!(shown(&p, 1), [piece(0, 200, "c")]);
    }

    #[test]
    fn a_child_has_its_parents_code_until_either_changes() {
        let mut p = Present::default();
        map(&mut p, 1, 10, 90, b"/a");
        fork(&mut p, 2, 2, 1);
        assert_eq!(p.version(1), p.version(2));
        map(&mut p, 1, 200, 10, b"/b");
        assert_ne!(p.version(1), p.version(2));
        assert_eq!((shown(&p, 1).len(), shown(&p, 2).len()), (2, 1));
        assert_eq!((p.version(3), shown(&p, 3).len()), (None, 0));
    }

    #[test]
    fn generated_code_beside_the_rest_is_no_new_version() {
        let mut p = Present::default();
        map(&mut p, 1, 10, 90, b"/a");
        let before = p.version(1);
        map(&mut p, 1, 100, 10, b"//anon");
        map(&mut p, 1, 100, 10, b"//anon");
        assert_eq!(p.version(1), before);
        map(&mut p, 1, 20, 10, b"//anon");
        assert_ne!(p.version(1), before);
    }

    #[test]
    fn exec_empties_and_the_last_threads_end_forgets() {
        let mut p = Present::default();
        fork(&mut p, 1, 1, 0);
        map(&mut p, 1, 10, 90, b"/a");
        fork(&mut p, 1, 7, 1);
        let exit = |p: &mut Present, tid| {
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
        assert_eq!((p.version(1), p.processes.len()), (None, 1));
        exit(&mut p, 1);
        assert!(p.processes.is_empty());
    }
}
