//! Detects CPUs that go online or offline while events are held. Uses the kernel's uevents, so the holder
//! does not need to poll.
//!
//! Provides a descriptor that becomes readable on uevents, and reports whether any of them concerned CPUs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// A socket for the kernel's uevents.
pub(super) struct CpuWatch(OwnedFd);

impl CpuWatch {
    /// Starts to listen for uevents.
    ///
    /// # Errors
    /// Fails if uevents are not available.
    pub(super) fn new() -> io::Result<Self> {
        /// The group of events that come directly from the kernel, not from udev.
        const KERNEL: u32 = 1;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// Whether a CPU has gone online or offline since the last call.
    pub(super) fn heard(&self) -> bool {
        let mut message = [0; 8 << 10];
        let mut heard = false;
        loop {
            match recv(&self.0, &mut message, RecvFlags::empty()) {
                // The message is `online@/devices/system/cpu/cpu1`, followed by more words.
                Ok((_, len)) => {
                    let path = message[..len].split(|&byte| byte == 0).next().unwrap_or_default();
                    heard |= String::from_utf8_lossy(path).contains("@/devices/system/cpu/");
                }
                Err(rustix::io::Errno::INTR) => {}
                // Uevents were lost, so assume that one of them concerned a CPU.
                Err(rustix::io::Errno::NOBUFS) => heard = true,
                Err(_) => return heard,
            }
        }
    }
}

impl AsFd for CpuWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::need;

    #[test]
    fn cpu_hotplug_events_are_received() {
        let watch = CpuWatch::new();
        if !need("uevents", watch.is_ok(), "the kernel sends no uevents here") {
            return;
        }
        let watch = watch.unwrap();
        assert!(!watch.heard());
        // Root can make the kernel send the uevent of a CPU again.
        let asked = std::fs::write("/sys/devices/system/cpu/cpu0/uevent", "change");
        if !need("root", asked.is_ok(), "this user may not ask for uevents") {
            return;
        }
        assert!(watch.heard(), "the message is there when the writing returns");
        assert!(!watch.heard());
    }
}
