//! CPUs that come on line and go while events are held: the kernel tells of them (uevents), so that nobody
//! has to look again and again.
//!
//! Hands on a descriptor to wait for, and whether anything was said of CPUs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// Listens to the kernel.
pub(super) struct CpuWatch(OwnedFd);

impl CpuWatch {
    /// Begins.
    ///
    /// # Errors
    /// The kernel's, where there are no uevents for us.
    pub(super) fn new() -> io::Result<Self> {
        /// What the kernel says itself, not udev.
        const KERNEL: u32 = 1;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// Whether a CPU has come or gone since the last time.
    pub(super) fn heard(&self) -> bool {
        let mut message = [0; 8 << 10];
        let mut heard = false;
        loop {
            match recv(&self.0, &mut message, RecvFlags::empty()) {
                // `online@/devices/system/cpu/cpu1`, and words behind it.
                Ok((_, len)) => {
                    let path = message[..len].split(|&byte| byte == 0).next().unwrap_or_default();
                    heard |= String::from_utf8_lossy(path).contains("@/devices/system/cpu/");
                }
                Err(rustix::io::Errno::INTR) => {}
                // More came than there was room for: who knows what.
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
    use crate::need::need;

    #[test]
    fn the_kernel_tells_of_cpus() {
        let watch = CpuWatch::new();
        if !need("uevents", watch.is_ok(), "the kernel sends no uevents here") {
            return;
        }
        let watch = watch.unwrap();
        assert!(!watch.heard());
        // Root may have the kernel say again that a CPU is there.
        let asked = std::fs::write("/sys/devices/system/cpu/cpu0/uevent", "change");
        if !need("root", asked.is_ok(), "this user may not ask for uevents") {
            return;
        }
        assert!(watch.heard(), "the message is there when the writing returns");
        assert!(!watch.heard());
    }
}
