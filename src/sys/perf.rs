//! `perf_event_open(2)` and what can be done with the descriptor it gives.
//!
//! Receives an [`Attr`] and a place (task, CPU, cgroup); hands on an [`EventFd`] that reads, enables and closes
//! itself. Errors are the kernel's own; `counter` explains them.

use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as kernel;

use super::attr::{Attr, Flag};

/// `read_format` bits (`enum perf_event_read_format`).
pub mod format {
    use perf_event_open_sys::bindings as b;
    /// Nanoseconds enabled.
    pub const TOTAL_TIME_ENABLED: u64 = b::PERF_FORMAT_TOTAL_TIME_ENABLED as u64;
    /// Nanoseconds on a counter.
    pub const TOTAL_TIME_RUNNING: u64 = b::PERF_FORMAT_TOTAL_TIME_RUNNING as u64;
    /// The kernel's id of the event.
    pub const ID: u64 = b::PERF_FORMAT_ID as u64;
    /// All events of the group in one read.
    pub const GROUP: u64 = b::PERF_FORMAT_GROUP as u64;
    /// Records lost by the event (Linux 6.0).
    pub const LOST: u64 = b::PERF_FORMAT_LOST as u64;
}

/// `sample_type` bits (`enum perf_event_sample_format`).
#[allow(missing_docs, reason = "the kernel's names; perf_event_open(2) explains each")]
pub mod sample {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const WEIGHT: u64 = 1 << 14;
    pub const DATA_SRC: u64 = 1 << 15;
    pub const IDENTIFIER: u64 = 1 << 16;
    pub const TRANSACTION: u64 = 1 << 17;
    pub const REGS_INTR: u64 = 1 << 18;
    pub const PHYS_ADDR: u64 = 1 << 19;
    pub const CGROUP: u64 = 1 << 21;
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// `branch_sample_type` bits (`enum perf_branch_sample_type`), by the names that perf's `-j` has for them.
pub mod branch {
    /// Name and bit.
    pub const FILTERS: [(&str, u64); 21] = [
        ("u", 1),
        ("k", 1 << 1),
        ("hv", 1 << 2),
        ("any", 1 << 3),
        ("any_call", 1 << 4),
        ("any_ret", 1 << 5),
        ("ind_call", 1 << 6),
        ("abort_tx", 1 << 7),
        ("in_tx", 1 << 8),
        ("no_tx", 1 << 9),
        ("cond", 1 << 10),
        ("stack", CALL_STACK),
        ("ind_jmp", 1 << 12),
        ("call", 1 << 13),
        ("no_flags", NO_FLAGS),
        ("no_cycles", NO_CYCLES),
        ("save_type", 1 << 16),
        ("hw_index", HW_INDEX),
        ("priv", 1 << 18),
        ("counter", 1 << 19),
        ("any_return", 1 << 5),
    ];
    /// User mode.
    pub const USER: u64 = 1;
    /// The three levels.
    pub const LEVELS: u64 = 7;
    /// Any taken branch.
    pub const ANY: u64 = 1 << 3;
    /// Calls and returns cancel out: what is left is the call stack.
    pub const CALL_STACK: u64 = 1 << 11;
    /// Without mispredictions.
    pub const NO_FLAGS: u64 = 1 << 14;
    /// Without cycles.
    pub const NO_CYCLES: u64 = 1 << 15;
    /// With the place in the hardware's own ring.
    pub const HW_INDEX: u64 = 1 << 17;
}

/// `PERF_SAMPLE_IDENTIFIER`: the id stands first in every record.
pub const SAMPLE_IDENTIFIER: u64 = 1 << 16;

/// Where an event counts: the pid and cpu arguments of `perf_event_open(2)`.
#[derive(Debug, Clone, Copy)]
pub enum OpenTarget<'a> {
    /// One thread, on whichever CPU it runs.
    Task(u32),
    /// One thread, only while it runs on this CPU.
    TaskOnCpu(u32, u32),
    /// Everything on this CPU.
    Cpu(u32),
    /// The tasks of the cgroup (an open directory of its hierarchy) on this CPU.
    CgroupOnCpu(BorrowedFd<'a>, u32),
}

impl OpenTarget<'_> {
    /// The CPU, if the place is bound to one.
    pub fn cpu(&self) -> Option<u32> {
        match *self {
            Self::Task(_) => None,
            Self::TaskOnCpu(_, cpu) | Self::Cpu(cpu) | Self::CgroupOnCpu(_, cpu) => Some(cpu),
        }
    }

    /// The thread, if the place is bound to one.
    pub fn task(&self) -> Option<u32> {
        match *self {
            Self::Task(tid) | Self::TaskOnCpu(tid, _) => Some(tid),
            Self::Cpu(_) | Self::CgroupOnCpu(..) => None,
        }
    }
}

/// An open event. Dropping it closes it, which for tracepoints costs the kernel some 35 ms each.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// Opens an event, in the group of `leader` if there is one.
    ///
    /// # Errors
    /// The kernel's. `E2BIG` means that a word is in use that this kernel does not know.
    pub fn open(attr: &Attr, place: OpenTarget<'_>, leader: Option<&Self>) -> io::Result<Self> {
        let mut image = attr.image(attr.size());
        let (pid, cpu, mut flags) = match place {
            OpenTarget::Task(tid) => (tid as c_int, -1, 0),
            OpenTarget::TaskOnCpu(tid, cpu) => (tid as c_int, cpu as c_int, 0),
            OpenTarget::Cpu(cpu) => (-1, cpu as c_int, 0),
            OpenTarget::CgroupOnCpu(dir, cpu) => {
                (dir.as_raw_fd(), cpu as c_int, c_ulong::from(kernel::bindings::PERF_FLAG_PID_CGROUP))
            }
        };
        flags |= c_ulong::from(kernel::bindings::PERF_FLAG_FD_CLOEXEC);
        let group = leader.map_or(-1, |leader| leader.fd.as_raw_fd());
        loop {
            // SAFETY: `image` is the kernel's struct (checked against the bindings in attr's tests), at least
            // `size` bytes long, alive and writable during the call; text it points to is kept by `attr`.
            let fd = unsafe { kernel::perf_event_open(image.as_mut_ptr().cast(), pid, cpu, group, flags) };
            if fd >= 0 {
                // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
                return Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } });
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Reads the words that the event's `read_format` describes; the number of u64 words read.
    /// None read (`0`) means that a pinned event could not be put on a counter.
    pub fn read(&self, words: &mut [u64]) -> io::Result<usize> {
        loop {
            // SAFETY: any bytes are valid u64 values, and the length given is that of the slice.
            let got =
                unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(words)) };
            if got >= 0 {
                return Ok(got as usize / 8);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Starts counting; with `group` every event of the group.
    pub fn enable(&self, group: bool) -> io::Result<()> {
        // SAFETY: the descriptor is ours, the argument a plain number.
        checked(unsafe { kernel::ioctls::ENABLE(self.fd.as_raw_fd(), u32::from(group)) })
    }

    /// Stops counting; with `group` every event of the group.
    pub fn disable(&self, group: bool) -> io::Result<()> {
        // SAFETY: as for `enable`.
        checked(unsafe { kernel::ioctls::DISABLE(self.fd.as_raw_fd(), u32::from(group)) })
    }

    /// Sets the count to 0 (not the times); with `group` of every event of the group.
    pub fn reset(&self, group: bool) -> io::Result<()> {
        // SAFETY: as for `enable`.
        checked(unsafe { kernel::ioctls::RESET(self.fd.as_raw_fd(), u32::from(group)) })
    }

    /// The kernel's unique id of the event.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: `id` is a u64 alive during the call.
        checked(unsafe { kernel::ioctls::ID(self.fd.as_raw_fd(), &raw mut id) })?;
        Ok(id)
    }

    /// Leads this event's records into the ring that is mapped on `other`.
    ///
    /// # Errors
    /// `EINVAL` unless both count on the same CPU (or, bound to none, the same task), with the same clock and direction.
    pub fn set_output(&self, other: &Self) -> io::Result<()> {
        // The bindings take the descriptor as the number that the kernel expects.
        // SAFETY: both descriptors are ours and open.
        checked(unsafe { kernel::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd() as _) })
    }

    /// Stops (or lets go on) the writing into the ring that is mapped on this event, while counting goes on.
    pub fn pause(&self, on: bool) -> io::Result<()> {
        // SAFETY: the descriptor is ours, the argument a plain number.
        checked(unsafe { kernel::ioctls::PAUSE_OUTPUT(self.fd.as_raw_fd(), u32::from(on)) })
    }

    /// Sets a tracepoint's filter expression.
    pub fn set_filter(&self, expression: &std::ffi::CStr) -> io::Result<()> {
        // SAFETY: the string ends in NUL and lives during the call; the kernel only reads it.
        checked(unsafe { kernel::ioctls::SET_FILTER(self.fd.as_raw_fd(), expression.as_ptr().cast_mut()) })
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether the kernel would open this event for our own process, disabled; the event is closed at once.
///
/// # Errors
/// What the kernel said instead.
pub fn probe(attr: &Attr, place: OpenTarget<'_>) -> io::Result<()> {
    let mut attr = attr.clone();
    attr.set(Flag::Disabled, true);
    attr.set(Flag::EnableOnExec, false);
    EventFd::open(&attr, place, None).map(drop)
}
