//! Tracks what each descriptor of the traced processes refers to.
//!
//! Receives finished calls in the order in which they ended, and tracks those that open, duplicate and close
//! descriptors. All other descriptors are looked up in `/proc` when they are first used. By then, the process
//! may have reused the number, so such a name may be wrong.

use std::sync::Arc;

use pmc_perfdata::record::Record;
use pmc_sys::abi::syscall::{ArgumentKind, Syscall};
use rustc_hash::FxHashMap;

use super::tracer::{CallResult, TracedCall};

/// What a descriptor refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DescriptorName {
    /// A path, or the kernel's name for a file without a path, such as `pipe:[1234]`.
    pub(super) name: Arc<str>,
    /// Whether the name may be wrong because the descriptor may have referred to another file when the name
    /// was read.
    pub(super) may_have_changed: bool,
}

/// The names of a call's descriptors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CallDescriptors {
    /// The name of the descriptor that each argument refers to, if any.
    pub(super) arguments: [Option<DescriptorName>; 6],
    /// The descriptor that the call returns.
    pub(super) result: Option<DescriptorName>,
}

/// Returns what a descriptor of a process currently refers to, if that can be read.
pub(super) type DescriptorLookup = Box<dyn Fn(i32, i32) -> Option<String>>;

#[derive(Debug, Clone)]
struct OpenDescriptor {
    name: DescriptorName,
    closes_on_exec: bool,
}

/// Maximum number of descriptors in all processes.
const MOST_DESCRIPTORS: usize = 1 << 18;

/// The value of `O_CLOEXEC`, `SOCK_CLOEXEC`, `EFD_CLOEXEC` and so on in all supported ABIs.
const CLOEXEC: u32 = 0x8_0000;
/// Flag of `close_range` for closing the descriptors on exec instead of immediately.
const CLOSE_RANGE_CLOEXEC: u32 = 4;
/// Commands of `fcntl`.
const F_DUPFD: u32 = 0;
const F_SETFD: u32 = 2;
const F_DUPFD_CLOEXEC: u32 = 1030;

/// The descriptors of all processes.
pub(super) struct DescriptorTable {
    processes: FxHashMap<i32, FxHashMap<i32, OpenDescriptor>>,
    count: usize,
    lookup: DescriptorLookup,
}

impl std::fmt::Debug for DescriptorTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DescriptorTable").field("processes", &self.processes).finish_non_exhaustive()
    }
}

impl DescriptorTable {
    /// Returns a table without processes.
    pub(super) fn new(lookup: DescriptorLookup) -> Self {
        Self { processes: FxHashMap::default(), count: 0, lookup }
    }

    /// Adds a descriptor that is known to be open before the first call.
    pub(super) fn set(&mut self, pid: i32, fd: i32, name: &str) {
        let name = DescriptorName { name: Arc::from(name), may_have_changed: false };
        self.insert(pid, fd, OpenDescriptor { name, closes_on_exec: false });
    }

    /// Updates the descriptors after a task record.
    pub(super) fn apply(&mut self, record: &Record<'_>) {
        match record {
            Record::Fork(fork) if fork.thread.pid != fork.parent.pid => {
                self.forget(fork.thread.pid);
                if let Some(parent) = self.processes.get(&fork.parent.pid).cloned() {
                    self.count += parent.len();
                    self.processes.insert(fork.thread.pid, parent);
                    self.limit();
                }
            }
            Record::Exit(exit) if exit.thread.pid == exit.thread.tid => self.forget(exit.thread.pid),
            _ => {}
        }
    }

    /// Returns the names of a call's descriptors, and applies the call's effect on them.
    pub(super) fn follow(&mut self, call: &TracedCall) -> CallDescriptors {
        let mut names = CallDescriptors::default();
        let entered = &call.entered;
        let Some(known) = entered.call() else { return names };
        let pid = entered.thread.pid;
        for argument in known.signature(&entered.arguments).iter().flat_map(|known| &known.arguments) {
            if matches!(argument.kind, ArgumentKind::Fd | ArgumentKind::DirFd) {
                let at = argument.register;
                names.arguments[at] = self.name(pid, entered.arguments[at] as i32);
            }
        }
        if let CallResult::Value(result) = call.result {
            names.result = self.effect(pid, known, call, result as i32);
        }
        names
    }

    fn name(&mut self, pid: i32, fd: i32) -> Option<DescriptorName> {
        if fd < 0 {
            return None;
        }
        if let Some(name) = self.known(pid, fd) {
            return Some(name.clone()).filter(|name| !name.name.is_empty());
        }
        let name = self.look_up(pid, fd)?;
        self.insert(pid, fd, OpenDescriptor { name: name.clone(), closes_on_exec: false });
        Some(name)
    }

    /// Returns the name of a descriptor, if its opening was traced or its name has been looked up before. The
    /// name is empty if the path could not be read.
    fn known(&self, pid: i32, fd: i32) -> Option<&DescriptorName> {
        Some(&self.processes.get(&pid)?.get(&fd)?.name)
    }

    fn look_up(&self, pid: i32, fd: i32) -> Option<DescriptorName> {
        Some(DescriptorName { name: Arc::from((self.lookup)(pid, fd)?), may_have_changed: true })
    }

    /// Applies the effect of a successful call. Returns the name of the descriptor that the call returned.
    fn effect(
        &mut self,
        pid: i32,
        known: &Syscall,
        call: &TracedCall,
        result: i32,
    ) -> Option<DescriptorName> {
        let entered = &call.entered;
        // All arguments used here have 32 bits. The kernel ignores the upper half of the registers.
        let argument = |at: usize| entered.arguments[at] as u32;
        let fd = argument(0) as i32;
        let count = known.arguments().len();
        // Older calls such as `pipe` have no flags.
        let closes_on_exec = |at: usize| at < count && argument(at) & CLOEXEC != 0;
        let path = |at: usize| Some((entered.memory.bytes(at)?, !entered.memory.is_recorded(at)));
        match known.name {
            "open" => self.open(pid, result, path(0), closes_on_exec(1)),
            "creat" => self.open(pid, result, path(0), false),
            "openat" => self.open(pid, result, path(1), closes_on_exec(2)),
            // The flags are in memory. If the descriptor survives an exec, its name is looked up in /proc
            // again.
            "openat2" => self.open(pid, result, path(1), true),
            "close" => {
                self.remove(pid, fd);
                None
            }
            "close_range" => {
                let range = argument(0)..=argument(1);
                match argument(2) & CLOSE_RANGE_CLOEXEC {
                    0 => self.retain(pid, |fd, _| !range.contains(&(fd as u32))),
                    _ => {
                        let own = self.processes.get_mut(&pid).into_iter().flatten();
                        own.filter(|(fd, _)| range.contains(&(**fd as u32)))
                            .for_each(|(_, open)| open.closes_on_exec = true);
                    }
                }
                None
            }
            // This call has no effect.
            "dup2" if fd == result => self.known(pid, fd).cloned(),
            "dup" | "dup2" => self.copy(pid, fd, result, false),
            "dup3" => self.copy(pid, fd, result, closes_on_exec(2)),
            "fcntl" | "fcntl64" => match argument(1) {
                F_DUPFD => self.copy(pid, fd, result, false),
                F_DUPFD_CLOEXEC => self.copy(pid, fd, result, true),
                F_SETFD => {
                    if let Some(open) = self.processes.get_mut(&pid).and_then(|own| own.get_mut(&fd)) {
                        open.closes_on_exec = argument(2) & 1 != 0;
                    }
                    None
                }
                _ => None,
            },
            "execve" | "execveat" => {
                self.retain(pid, |_, open| !open.closes_on_exec);
                None
            }
            "pipe" | "pipe2" | "socketpair" => {
                let at = if known.name == "socketpair" { 3 } else { 0 };
                for word in entered.memory.bytes(at).into_iter().flat_map(|pair| pair.chunks_exact(4)) {
                    let fd = i32::from_ne_bytes(*word.first_chunk()?);
                    let closes = closes_on_exec(1);
                    self.create(pid, fd, if at == 3 { "socket" } else { "pipe" }, closes);
                }
                None
            }
            "socket" => self.create(pid, result, "socket", closes_on_exec(1)),
            "accept" => self.create(pid, result, "socket", false),
            "accept4" => self.create(pid, result, "socket", closes_on_exec(3)),
            "memfd_create" => self.create(pid, result, "memfd", argument(1) & 1 != 0),
            "open_by_handle_at" => self.open(pid, result, None, closes_on_exec(2)),
            name => {
                let (name, flags) =
                    SPECIAL.iter().find(|(call, ..)| *call == name).map(|(_, name, at)| (*name, *at))?;
                let closes = flags.is_none_or(closes_on_exec);
                let name = DescriptorName { name: Arc::from(name), may_have_changed: false };
                self.insert(pid, result, OpenDescriptor { name: name.clone(), closes_on_exec: closes });
                Some(name)
            }
        }
    }

    /// Adds a descriptor for a file that was opened with this path. The flag is set if the path may have
    /// changed since. A relative path is completed from `/proc`, unless the descriptor already refers to
    /// another file. If the path could not be read, the name is empty, so that this file is not mistaken for
    /// one that is opened later.
    fn open(
        &mut self,
        pid: i32,
        fd: i32,
        path: Option<(&[u8], bool)>,
        closes_on_exec: bool,
    ) -> Option<DescriptorName> {
        let (path, may_have_changed) = path.unwrap_or_default();
        let mut typed = String::from_utf8_lossy(path).into_owned();
        // The memory that contained the path has changed.
        if may_have_changed && typed.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
            typed.clear();
        }
        let is_relative = !typed.is_empty() && !typed.starts_with('/');
        let end = typed.trim_start_matches("./").to_owned();
        let complete = is_relative.then(|| self.look_up(pid, fd)).flatten();
        let name = complete
            .filter(|complete| complete.name.ends_with(&end))
            .unwrap_or_else(|| DescriptorName { name: Arc::from(typed), may_have_changed });
        let is_known = !name.name.is_empty();
        self.insert(pid, fd, OpenDescriptor { name: name.clone(), closes_on_exec });
        is_known.then_some(name)
    }

    /// Adds a descriptor whose name can only be found in `/proc`.
    fn create(&mut self, pid: i32, fd: i32, kind: &str, closes_on_exec: bool) -> Option<DescriptorName> {
        let is_it = |name: &DescriptorName| name.name.contains(kind);
        let unnamed = || DescriptorName { name: Arc::from(kind), may_have_changed: false };
        let name = self.look_up(pid, fd).filter(is_it).unwrap_or_else(unnamed);
        self.insert(pid, fd, OpenDescriptor { name: name.clone(), closes_on_exec });
        Some(name)
    }

    fn copy(&mut self, pid: i32, from: i32, to: i32, closes_on_exec: bool) -> Option<DescriptorName> {
        let name = self.known(pid, from).cloned();
        match &name {
            Some(name) => self.insert(pid, to, OpenDescriptor { name: name.clone(), closes_on_exec }),
            None => self.remove(pid, to),
        }
        name
    }

    fn insert(&mut self, pid: i32, fd: i32, open: OpenDescriptor) {
        if fd >= 0 {
            self.count += usize::from(self.processes.entry(pid).or_default().insert(fd, open).is_none());
            self.limit();
        }
    }

    fn remove(&mut self, pid: i32, fd: i32) {
        self.retain(pid, |own, _| own != fd);
    }

    fn retain(&mut self, pid: i32, keep: impl Fn(i32, &OpenDescriptor) -> bool) {
        let Some(own) = self.processes.get_mut(&pid) else { return };
        let before = own.len();
        own.retain(|fd, open| keep(*fd, open));
        self.count -= before - own.len();
        if own.is_empty() {
            self.processes.remove(&pid);
        }
    }

    fn forget(&mut self, pid: i32) {
        self.count -= self.processes.remove(&pid).map_or(0, |own| own.len());
    }

    /// Drops all entries if there are too many. Names are then looked up again.
    fn limit(&mut self) {
        if self.count > MOST_DESCRIPTORS {
            self.processes.clear();
            self.count = 0;
        }
    }
}

/// Calls that open, duplicate or close descriptors, in addition to those in [`SPECIAL`].
const CHANGING: [&str; 21] = [
    "open",
    "creat",
    "openat",
    "openat2",
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "fcntl64",
    "execve",
    "execveat",
    "pipe",
    "pipe2",
    "socketpair",
    "socket",
    "accept",
    "accept4",
    "memfd_create",
    "open_by_handle_at",
];

/// Whether a call with this name opens, duplicates or closes descriptors.
pub(super) fn changes_descriptors(name: &str) -> bool {
    CHANGING.contains(&name) || SPECIAL.iter().any(|(call, ..)| *call == name)
}

/// Calls that return a descriptor without a path. Each has the kernel's name for the descriptor, and the
/// index of the argument with the close-on-exec flag. If there is no such argument, the descriptor is always
/// closed on exec.
const SPECIAL: [(&str, &str, Option<usize>); 16] = [
    ("epoll_create", "anon_inode:[eventpoll]", Some(1)),
    ("epoll_create1", "anon_inode:[eventpoll]", Some(0)),
    ("eventfd", "anon_inode:[eventfd]", Some(1)),
    ("eventfd2", "anon_inode:[eventfd]", Some(1)),
    ("timerfd_create", "anon_inode:[timerfd]", Some(1)),
    ("signalfd", "anon_inode:[signalfd]", Some(3)),
    ("signalfd4", "anon_inode:[signalfd]", Some(3)),
    ("inotify_init", "anon_inode:inotify", Some(0)),
    ("inotify_init1", "anon_inode:inotify", Some(0)),
    ("pidfd_open", "anon_inode:[pidfd]", None),
    ("perf_event_open", "anon_inode:[perf_event]", None),
    ("userfaultfd", "anon_inode:[userfaultfd]", Some(0)),
    ("io_uring_setup", "anon_inode:[io_uring]", None),
    ("fanotify_init", "anon_inode:[fanotify]", None),
    ("fsopen", "anon_inode:[fscontext]", None),
    ("landlock_create_ruleset", "anon_inode:[landlock-ruleset]", None),
];

#[cfg(test)]
mod tests {
    use super::super::memory::{CallMemory, CapturedMemory};
    use super::super::tracer::EnteredCall;
    use super::*;
    use pmc_perfdata::record::{Task, Thread};
    use pmc_sys::abi::syscall::{SyscallAbi, SyscallTable};
    use pmc_text::units::PerfTime;

    fn call(pid: i32, name: &str, arguments: &[u64], path: Option<(usize, &str)>, result: i64) -> TracedCall {
        let abi = SyscallAbi::X86_64;
        let number = SyscallTable::get().by_name(name).unwrap().number(abi).unwrap().into();
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let mut memory = CallMemory::default();
        if let Some((at, path)) = path {
            memory.set(at, CapturedMemory::Bytes(path.as_bytes().to_vec(), false));
        }
        let thread = Thread { pid, tid: pid };
        let entered =
            EnteredCall { thread, abi, number, arguments: all, begin: 0, memory, stack: Box::default() };
        TracedCall {
            entered,
            end: 1,
            result: CallResult::Value(result),
            comm: Arc::from("x"),
            has_loss: false,
        }
    }

    fn table() -> DescriptorTable {
        DescriptorTable::new(Box::new(|_, fd| (fd == 9).then(|| "/nine".to_owned())))
    }

    fn shown(name: &Option<DescriptorName>) -> String {
        name.as_ref().map_or("-".to_owned(), |name| {
            format!("{}{}", if name.may_have_changed { "~" } else { "" }, name.name)
        })
    }

    /// Returns the name that a descriptor has as the argument of `fsync`.
    fn named(table: &mut DescriptorTable, pid: i32, fd: u64) -> String {
        shown(&table.follow(&call(pid, "fsync", &[fd], None, 0)).arguments[0])
    }

    #[test]
    fn descriptors_follow_the_calls_that_change_them() {
        let mut table = table();
        table.set(1, 0, "/dev/tty");
        assert_eq!(named(&mut table, 1, 0), "/dev/tty");
        let open = call(1, "openat", &[0, 1, CLOEXEC.into()], Some((1, "/etc/passwd")), 3);
        assert_eq!(shown(&table.follow(&open).result), "~/etc/passwd");
        let dup = call(1, "dup2", &[3, 7], None, 7);
        assert_eq!(shown(&table.follow(&dup).result), "~/etc/passwd");
        let close = table.follow(&call(1, "close", &[3], None, 0));
        assert_eq!(shown(&close.arguments[0]), "~/etc/passwd", "the name before the call");
        assert_eq!([named(&mut table, 1, 3), named(&mut table, 1, 7)], ["-", "~/etc/passwd"]);
        assert_eq!(named(&mut table, 1, 9), "~/nine");
        table.follow(&call(1, "close_range", &[5, u64::from(u32::MAX), 0], None, 0));
        assert_eq!(named(&mut table, 1, 7), "-");
        let epoll = call(1, "epoll_create1", &[CLOEXEC.into()], None, 4);
        assert_eq!(shown(&table.follow(&epoll).result), "anon_inode:[eventpoll]");
        table.follow(&call(1, "execve", &[], None, 0));
        assert_eq!([named(&mut table, 1, 0), named(&mut table, 1, 4)], ["/dev/tty", "-"]);
    }

    #[test]
    fn descriptors_close_on_exec_only_if_the_call_has_such_a_flag() {
        let mut table = table();
        // `eventfd` has only one argument, so the second register is unrelated.
        table.follow(&call(1, "eventfd", &[0, CLOEXEC.into()], None, 3));
        table.follow(&call(1, "eventfd", &[0], None, 4));
        table.follow(&call(1, "eventfd", &[0], None, 5));
        let range = [4, 4, CLOSE_RANGE_CLOEXEC.into()];
        table.follow(&call(1, "close_range", &range, None, 0));
        assert_eq!(named(&mut table, 1, 4), "anon_inode:[eventfd]");
        // The upper half of the register is not part of the command.
        table.follow(&call(1, "fcntl", &[5, 1 << 32 | u64::from(F_SETFD), 1], None, 0));
        table.follow(&call(1, "execve", &[], None, 0));
        let names = [3, 4, 5].map(|fd| named(&mut table, 1, fd));
        assert_eq!(names, ["anon_inode:[eventfd]", "-", "-"]);
    }

    #[test]
    fn a_file_without_a_known_path_has_no_name() {
        let mut table = table();
        assert_eq!(table.follow(&call(1, "openat", &[0, 1, 0], None, 9)).result, None);
        assert_eq!(named(&mut table, 1, 9), "-", "the descriptor may refer to another file by now");
        let relative = |table: &mut DescriptorTable, path| {
            shown(&table.follow(&call(1, "openat", &[0, 1, 0], Some((1, path)), 9)).result)
        };
        assert_eq!(relative(&mut table, "nine"), "~/nine");
        assert_eq!(relative(&mut table, "other"), "~other");
        assert_eq!(relative(&mut table, "/\u{1}"), "-", "the memory has changed");
    }

    #[test]
    fn children_inherit_descriptors_and_processes_end() {
        let mut table = table();
        table.set(1, 3, "/a");
        let task = |pid, parent| Task {
            thread: Thread { pid, tid: pid },
            parent: Thread { pid: parent, tid: parent },
            time: PerfTime(0),
        };
        table.apply(&Record::Fork(task(2, 1)));
        table.follow(&call(1, "close", &[3], None, 0));
        assert_eq!([named(&mut table, 1, 3), named(&mut table, 2, 3)], ["-", "/a"]);
        table.apply(&Record::Exit(task(2, 1)));
        assert_eq!(named(&mut table, 2, 3), "-");
        assert_eq!(table.count, 0);
    }

    #[test]
    fn pipes_have_two_ends_and_failed_calls_no_effect() {
        let mut table = table();
        let mut pipe = call(1, "pipe2", &[1, 0], None, 0);
        let pair: Vec<u8> = [4i32, 5].iter().flat_map(|fd| fd.to_ne_bytes()).collect();
        pipe.entered.memory.set(0, CapturedMemory::Bytes(pair, false));
        table.follow(&pipe);
        assert_eq!([named(&mut table, 1, 4), named(&mut table, 1, 5)], ["pipe", "pipe"]);
        let mut close = call(1, "close", &[4], None, 0);
        close.result = CallResult::Error(9);
        table.follow(&close);
        assert_eq!(named(&mut table, 1, 4), "pipe");
    }
}
