//! Records written by the kernel, except for `SAMPLE`: threads, mappings, context switches, losses.
//!
//! Each struct follows `perf_event_open(2)` in its field order. `parse` receives a cursor after the header
//! and decodes the fields. [`super::Layouts::sample_id`] decodes the `sample_id` after them.

use std::fmt::{self, Display, Write as _};

use super::bytes::{Cursor, RecordWords};
use pmc_sys::abi::misc;
use pmc_text::units::PerfTime;

/// A thread and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Thread {
    /// Process ID; −1 for the kernel or if there is no process, 0 for the idle task.
    pub pid: i32,
    /// Thread ID.
    pub tid: i32,
}

impl Thread {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { pid: c.i32()?, tid: c.i32()? })
    }
}

/// A mapping (`MMAP`). The name is a path or a word in brackets like `[vdso]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The thread; pid −1 for the kernel and its modules.
    pub thread: Thread,
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file, in bytes.
    pub pgoff: u64,
    /// Whether the mapping is not executable.
    pub is_data: bool,
    /// A path, or a name such as `[vdso]`.
    pub name: &'a [u8],
}

impl<'a> Mmap<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>, flags: u16) -> Option<Self> {
        Some(Self {
            thread: Thread::parse(c)?,
            addr: c.u64()?,
            len: c.u64()?,
            pgoff: c.u64()?,
            is_data: flags & misc::MMAP_DATA != 0,
            name: c.terminated()?,
        })
    }
}

/// The identity of the file in an `MMAP2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappedFileId<'a> {
    /// Device and inode.
    Inode {
        /// Major number of the device.
        major: u32,
        /// Minor number of the device.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// The build-id, up to 20 bytes.
    BuildId(&'a [u8]),
}

/// A mapping with the file's identity and the protection (`MMAP2`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mmap2<'a> {
    /// The fields of `MMAP`.
    pub map: Mmap<'a>,
    /// The file's identity.
    pub file: MappedFileId<'a>,
    /// `PROT_*` bits: 1 read, 2 write, 4 execute.
    pub prot: u32,
    /// `MAP_*` bits.
    pub flags: u32,
}

/// The access that a mapping allows. `Display` formats it as in `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MappingAccess {
    /// The lowest three `PROT_*` bits.
    prot: u8,
    is_shared: bool,
}

impl MappingAccess {
    /// The protection assumed for code in an `MMAP` record, which does not store one. perf assumes the same.
    pub const CODE: Self = Self { prot: PROT_EXEC as u8, is_shared: false };
}

impl Display for MappingAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(1, 'r'), (2, 'w'), (4, 'x')];
        letters
            .iter()
            .try_for_each(|(bit, letter)| f.write_char(if self.prot & bit != 0 { *letter } else { '-' }))?;
        f.write_char(if self.is_shared { 's' } else { 'p' })
    }
}

/// From `mman.h`.
const PROT_EXEC: u32 = 4;

impl<'a> Mmap2<'a> {
    /// The access that the mapping allows.
    pub fn access(&self) -> MappingAccess {
        const MAP_SHARED: u32 = 1;
        MappingAccess { prot: (self.prot & 7) as u8, is_shared: self.flags & MAP_SHARED != 0 }
    }

    /// Whether the mapping contains data but no code. With `-d`, data mappings are recorded too. Their
    /// records may lack the data flag, but always state the protection.
    pub fn is_data(&self) -> bool {
        // A protection of 0 means that it is unknown.
        self.map.is_data || self.prot & PROT_EXEC == 0 && self.prot != 0
    }

    pub(super) fn parse(c: &mut Cursor<'a>, bits: u16) -> Option<Self> {
        let (thread, addr, len, pgoff) = (Thread::parse(c)?, c.u64()?, c.u64()?, c.u64()?);
        let file = c.take(24)?;
        let file = match build_id(file).filter(|_| bits & misc::MMAP_BUILD_ID != 0) {
            Some(id) => MappedFileId::BuildId(id),
            None => {
                let mut c = Cursor::new(file);
                MappedFileId::Inode {
                    major: c.u32()?,
                    minor: c.u32()?,
                    inode: c.u64()?,
                    generation: c.u64()?,
                }
            }
        };
        let (prot, flags) = (c.u32()?, c.u32()?);
        let is_data = bits & misc::MMAP_DATA != 0;
        let map = Mmap { thread, addr, len, pgoff, is_data, name: c.terminated()? };
        Some(Self { map, file, prot, flags })
    }
}

/// Returns the build-id from the 24-byte file identity of a mapping with the build-id flag; `None` if the
/// identity is an inode despite the flag.
///
/// The kernel reports a mapping to one event after another and does not clear the flag in between
/// (`perf_event_mmap_output`). So if any event on the system requests build-ids, even another user's, the
/// records of the other events have the flag too.
///
/// ```text
/// build-id   size 0 0 0 | the bytes of the build-id
/// inode      major      | minor, inode, generation            8 0 0 0 | 1 0 0 0 … is the first disk
/// ```
pub(super) fn build_id(bytes: &[u8]) -> Option<&[u8]> {
    let (&[size, 0, 0, 0], bytes) = bytes.split_first_chunk()? else { return None };
    let id = bytes.get(..usize::from(size)).filter(|id| !id.is_empty())?;
    // A short build-id with two zeros at this offset is as rare as a disk with that many partitions.
    let is_minor = size < 16 && id.get(2..4) == Some(&[0; 2]);
    (!is_minor).then_some(id)
}

/// Records that did not fit into the ring (`LOST`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The event.
    pub id: u64,
    /// Number of records.
    pub lost: u64,
}

impl Lost {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { id: c.u64()?, lost: c.u64()? })
    }
}

/// A thread's new name (`COMM`), at most 15 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comm<'a> {
    /// The thread.
    pub thread: Thread,
    /// Whether an exec set the name; if so, the process has a new address space.
    pub is_exec: bool,
    /// The name.
    pub comm: &'a [u8],
}

impl<'a> Comm<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>, flags: u16) -> Option<Self> {
        let thread = Thread::parse(c)?;
        Some(Self { thread, is_exec: flags & misc::COMM_EXEC != 0, comm: c.terminated()? })
    }
}

/// A thread started or ended (`FORK`, `EXIT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The thread.
    pub thread: Thread,
    /// Its parent (on `EXIT`, the process that reaps it).
    pub parent: Thread,
    /// The time.
    pub time: PerfTime,
}

impl Task {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        let (pid, ppid, tid, ptid) = (c.i32()?, c.i32()?, c.i32()?, c.i32()?);
        Some(Self {
            thread: Thread { pid, tid },
            parent: Thread { pid: ppid, tid: ptid },
            time: PerfTime(c.u64()?),
        })
    }
}

/// The kernel paused or resumed the sampling of an event (`THROTTLE`, `UNTHROTTLE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// The time.
    pub time: PerfTime,
    /// The event.
    pub id: u64,
    /// The event from which this event was inherited, or this event itself.
    pub stream_id: u64,
}

impl Throttle {
    /// Whether pmc rather than the kernel paused the event, because another program reserved the counters
    /// (`--reserve=yield`). The kernel's own stream ids start at 1.
    pub fn is_reservation(&self) -> bool {
        self.stream_id == 0
    }

    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { time: PerfTime(c.u64()?), id: c.u64()?, stream_id: c.u64()? })
    }
}

/// A counter's value (`READ`). The words follow the event's `read_format`; the `sample_id` comes after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    /// The thread.
    pub thread: Thread,
    /// Values; see [`super::sample::ReadValues`].
    pub values: RecordWords<'a>,
}

impl<'a> Read<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self { thread: Thread::parse(c)?, values: c.all_words() })
    }
}

/// New data in the AUX area (`AUX`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aux {
    /// Offset of the data.
    pub offset: u64,
    /// Size of the data in bytes.
    pub size: u64,
    /// 1 truncated, 2 overwrite, 4 partial, 8 collision.
    pub flags: u64,
}

impl Aux {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { offset: c.u64()?, size: c.u64()?, flags: c.u64()? })
    }
}

/// A context switch (`SWITCH`, `SWITCH_CPU_WIDE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Whether the sampled task was switched out (otherwise, it was switched in).
    pub is_out: bool,
    /// Whether the task was preempted, that is, still runnable.
    pub is_preempted: bool,
    /// The other task (`SWITCH_CPU_WIDE`).
    pub other: Option<Thread>,
}

impl Switch {
    pub(super) fn new(flags: u16, other: Option<Thread>) -> Self {
        Self {
            is_out: flags & misc::SWITCH_OUT != 0,
            is_preempted: flags & misc::SWITCH_OUT_PREEMPT != 0,
            other,
        }
    }

    pub(super) fn parse(c: &mut Cursor<'_>, flags: u16) -> Option<Self> {
        Some(Self::new(flags, Some(Thread::parse(c)?)))
    }
}

/// A task's namespaces (`NAMESPACES`): rows of device and inode, in the order net, uts, ipc, pid, user, mnt,
/// cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// The task.
    pub thread: Thread,
    /// Two words per namespace: device, inode.
    pub links: RecordWords<'a>,
}

impl<'a> Namespaces<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self { thread: Thread::parse(c)?, links: c.pairs()? })
    }
}

/// A kernel symbol was registered or unregistered (`KSYMBOL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ksymbol<'a> {
    /// First address.
    pub addr: u64,
    /// Length in bytes.
    pub len: u32,
    /// 0 unknown, 1 BPF, 2 out of line (trampolines, kprobes).
    pub kind: u16,
    /// Whether the symbol was unregistered.
    pub is_unregister: bool,
    /// The symbol's name.
    pub name: &'a [u8],
}

impl<'a> Ksymbol<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self {
            addr: c.u64()?,
            len: c.u32()?,
            kind: c.u16()?,
            is_unregister: c.u16()? & 1 != 0,
            name: c.text(),
        })
    }
}

/// A BPF program was loaded or unloaded (`BPF_EVENT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfEvent {
    /// 1 load, 2 unload.
    pub kind: u16,
    /// Not used yet.
    pub flags: u16,
    /// The program's id.
    pub id: u32,
    /// Hash of its instructions.
    pub tag: [u8; 8],
}

impl BpfEvent {
    pub(super) fn parse(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self { kind: c.u16()?, flags: c.u16()?, id: c.u32()?, tag: *c.take(8)?.first_chunk()? })
    }
}

/// A new cgroup (`CGROUP`). Samples refer to it by this id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// The cgroup's id.
    pub id: u64,
    /// Its path in the cgroup hierarchy.
    pub path: &'a [u8],
}

impl<'a> Cgroup<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        Some(Self { id: c.u64()?, path: c.text() })
    }
}

/// A change of kernel text (`TEXT_POKE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPoke<'a> {
    /// First address.
    pub addr: u64,
    /// The old bytes.
    pub old: &'a [u8],
    /// The new bytes.
    pub new: &'a [u8],
}

impl<'a> TextPoke<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (addr, old, new) = (c.u64()?, c.u16()?, c.u16()?);
        Some(Self { addr, old: c.take(old.into())?, new: c.take(new.into())? })
    }
}

/// The user part of the call chain of an earlier sample of this thread (`CALLCHAIN_DEFERRED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallchainDeferred<'a> {
    /// The cookie that follows the deferred marker in the samples to which this chain belongs.
    pub cookie: u64,
    /// The chain.
    pub chain: RecordWords<'a>,
}

impl<'a> CallchainDeferred<'a> {
    pub(super) fn parse(c: &mut Cursor<'a>) -> Option<Self> {
        let (cookie, count) = (c.u64()?, c.u64()?);
        Some(Self { cookie, chain: c.words(count)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_flag_without_build_id_is_ignored() {
        let inode = |major: u32, minor: u32, inode: u64, generation: u64| {
            let (major, minor) = (major.to_ne_bytes(), minor.to_ne_bytes());
            [&major[..], &minor, &inode.to_ne_bytes(), &generation.to_ne_bytes()].concat()
        };
        let hash = |size: u8| {
            [&[size, 0, 0, 0][..], &vec![7; size.into()], &vec![0; 20 - usize::from(size)]].concat()
        };
        for size in [8, 16, 20] {
            assert_eq!(build_id(&hash(size)), Some(&vec![7; size.into()][..]), "{size}");
        }
        for (major, minor) in [(254, 1), (0, 27), (8, 1), (8, 17), (65, 300), (8, 0x1ff), (259, 3)] {
            for generation in [0, 0x0e27_e414] {
                assert_eq!(build_id(&inode(major, minor, 0x69_86a8, generation)), None, "{major}:{minor}");
            }
        }
        assert_eq!(build_id(&[]), None);
    }
}
