//! `perf_event_open(2)` and operations on the descriptor that it returns.
//!
//! Opens an event on a target (task, CPU, cgroup), as requested by an [`Attr`]. The resulting [`EventFd`] can
//! be read, enabled and closed. Errors come from the kernel; `counter` explains them.

use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use perf_event_open_sys as kernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::abi::Attr;

/// Target of an event: the pid and cpu arguments of `perf_event_open(2)`.
#[derive(Debug, Clone, Copy)]
pub enum OpenTarget<'a> {
    /// One thread, on any CPU.
    Task(u32),
    /// One thread, only while it runs on this CPU.
    TaskOnCpu(u32, u32),
    /// All threads on this CPU.
    Cpu(u32),
    /// The tasks of the cgroup (an open directory of its hierarchy) on this CPU.
    CgroupOnCpu(BorrowedFd<'a>, u32),
}

/// An open event, which is closed on drop. Closing a tracepoint takes about 35 ms in the kernel.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
}

impl From<OwnedFd> for EventFd {
    /// Wraps an event that another process opened. If the descriptor is not an event, [`id`](Self::id)
    /// returns an error.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

impl EventFd {
    /// Opens an event, in the group of `leader` if there is one.
    ///
    /// # Errors
    /// Returns the kernel's error. `E2BIG` means that the attributes use a word that this kernel does not
    /// support.
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
            // `size` bytes long, alive and writable during the call; `attr` keeps alive the string that it
            // points to.
            let fd = unsafe { kernel::perf_event_open(image.as_mut_ptr().cast(), pid, cpu, group, flags) };
            if fd >= 0 {
                // SAFETY: the kernel has just returned this descriptor, and it has no other owner.
                return Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } });
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Reads the words described by the event's `read_format`. Returns the number of u64 words read. `0`
    /// means that a pinned event could not be put on a counter.
    ///
    /// # Errors
    /// Returns the kernel's error; `ENOSPC` if `words` is shorter than the event's data.
    pub fn read(&self, words: &mut [u64]) -> io::Result<usize> {
        loop {
            // SAFETY: any bytes are valid u64 values, and the kernel writes no more than the length of the
            // slice.
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

    /// Whether the event's task and all children that inherited the event have ended (`is_event_hup` in
    /// `kernel/events/core.c`).
    pub fn has_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(self, PollFlags::empty())];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
    }

    /// Starts counting; with `group`, for all events of the group.
    ///
    /// # Errors
    /// Returns the kernel's error from the ioctl.
    pub fn enable(&self, group: bool) -> io::Result<()> {
        // SAFETY: the descriptor is ours, the argument a plain number.
        checked(unsafe { kernel::ioctls::ENABLE(self.fd.as_raw_fd(), u32::from(group)) })
    }

    /// Starts or stops only this event. Stopping a group's leader stops the whole group.
    ///
    /// # Errors
    /// Returns the kernel's error from the ioctl.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        if on {
            return self.enable(false);
        }
        // SAFETY: as for `enable`.
        checked(unsafe { kernel::ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Enables the event for `samples` more samples, after which the kernel stops it.
    ///
    /// # Errors
    /// Returns `EINVAL` for an event that is inherited by children, or that does not sample.
    pub fn refresh(&self, samples: u32) -> io::Result<()> {
        // SAFETY: the descriptor is ours, the argument a plain number.
        checked(unsafe { kernel::ioctls::REFRESH(self.fd.as_raw_fd(), samples as _) })
    }

    /// Changes the event's period, or its frequency in Hz if it was opened with a frequency. Children that
    /// inherited the event keep the old value.
    ///
    /// # Errors
    /// Returns `EINVAL` for an event that does not sample, or a frequency that is too high.
    pub fn set_period(&self, mut period: u64) -> io::Result<()> {
        let order = kernel::bindings::PERIOD as _;
        // SAFETY: the kernel reads a u64 that is alive during the call. (The bindings' own function passes
        // the number instead of its address.)
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), order, &raw mut period) })
    }

    /// Moves a breakpoint, including the copies that children have inherited. `attr` must equal the original
    /// attributes except for address, length, kind of access, and `disabled`, which determines whether the
    /// breakpoint stays active.
    ///
    /// # Errors
    /// Returns `EINVAL` if no register can watch the address, or if other attributes differ; `EOPNOTSUPP` if
    /// the event is not a breakpoint.
    pub fn modify(&self, attr: &Attr) -> io::Result<()> {
        let mut image = attr.image(attr.size());
        // SAFETY: as in `open`: the kernel reads `size` bytes of `image`.
        checked(unsafe { kernel::ioctls::MODIFY_ATTRIBUTES(self.fd.as_raw_fd(), image.as_mut_ptr().cast()) })
    }

    /// Returns the kernel's unique id of the event.
    ///
    /// # Errors
    /// Returns the kernel's error from the ioctl.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: `id` is a u64 alive during the call.
        checked(unsafe { kernel::ioctls::ID(self.fd.as_raw_fd(), &raw mut id) })?;
        Ok(id)
    }

    /// Redirects this event's records to the ring buffer of `other`.
    ///
    /// # Errors
    /// Returns `EINVAL` unless both events are bound to the same CPU (or, without a CPU, to the same task)
    /// and have the same clock and direction.
    pub fn set_output(&self, other: &Self) -> io::Result<()> {
        // The bindings declare the descriptor as the plain number that the kernel expects.
        // SAFETY: both descriptors are ours and open.
        checked(unsafe { kernel::ioctls::SET_OUTPUT(self.fd.as_raw_fd(), other.fd.as_raw_fd() as _) })
    }

    /// Pauses writing to the ring buffer mapped on this event, while counting continues. Dropping the guard
    /// resumes writing.
    ///
    /// # Errors
    /// Returns the kernel's error; `EINVAL` if no ring buffer is mapped.
    pub fn pause(&self) -> io::Result<Paused<'_>> {
        self.pause_output(true).map(|()| Paused { event: self })
    }

    fn pause_output(&self, on: bool) -> io::Result<()> {
        // SAFETY: the descriptor is ours, the argument a plain number.
        checked(unsafe { kernel::ioctls::PAUSE_OUTPUT(self.fd.as_raw_fd(), u32::from(on)) })
    }

    /// Sets a tracepoint's filter expression.
    ///
    /// # Errors
    /// Returns the kernel's error from the ioctl; `EINVAL` for an invalid expression.
    pub fn set_filter(&self, expression: &std::ffi::CStr) -> io::Result<()> {
        // SAFETY: the string ends with NUL and lives during the call; the kernel only reads it.
        checked(unsafe { kernel::ioctls::SET_FILTER(self.fd.as_raw_fd(), expression.as_ptr().cast_mut()) })
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Guarantees that the kernel does not write to an event's ring buffer, which is required for reading a
/// backward ring.
#[derive(Debug)]
pub struct Paused<'e> {
    event: &'e EventFd,
}

impl Paused<'_> {
    /// Whether this is the paused event.
    pub(super) fn is(&self, event: RawFd) -> bool {
        self.event.fd.as_raw_fd() == event
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        // If resuming fails, the event writes no more records, which the reader of the ring detects.
        let _ = self.event.pause_output(false);
    }
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
