//! Detects CPUs that go online or offline while events are open. Uses the kernel's uevents, so no polling is
//! needed.
//!
//! When a CPU goes offline, the kernel permanently removes all events on it, although their counts can still
//! be read. Suspending a machine takes all CPUs but the first offline. Provides a descriptor that becomes
//! readable on uevents, and reports which of them concerned CPUs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// A socket for the kernel's uevents.
#[derive(Debug)]
pub struct CpuWatch(OwnedFd);

/// What has happened to CPUs since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CpuChanges {
    /// Whether a CPU has gone online or offline.
    pub any: bool,
    /// The CPUs that have gone offline.
    pub offline: Vec<u32>,
}

impl CpuWatch {
    /// Starts to listen for uevents.
    ///
    /// # Errors
    /// Fails if uevents are not available.
    pub fn new() -> io::Result<Self> {
        /// The group of events that come directly from the kernel, not from udev.
        const KERNEL: u32 = 1;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT))?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL))?;
        Ok(Self(socket))
    }

    /// Returns the changes since the last call.
    pub fn changes(&self) -> CpuChanges {
        let mut message = [0; 8 << 10];
        let mut changes = CpuChanges::default();
        loop {
            match recv(&self.0, &mut message, RecvFlags::empty()) {
                Ok((_, len)) => changes.add(&message[..len]),
                Err(rustix::io::Errno::INTR) => {}
                // Uevents were lost, so assume that one of them concerned a CPU.
                Err(rustix::io::Errno::NOBUFS) => changes.any = true,
                Err(_) => return changes,
            }
        }
    }
}

impl CpuChanges {
    /// Adds a message: `offline@/devices/system/cpu/cpu1`, and more words, each followed by a zero byte.
    fn add(&mut self, message: &[u8]) {
        let first = message.split(|&byte| byte == 0).next().unwrap_or_default();
        let first = String::from_utf8_lossy(first);
        let Some((action, cpu)) = first.split_once("@/devices/system/cpu/") else { return };
        self.any = true;
        let number: Option<u32> = cpu.strip_prefix("cpu").and_then(|number| number.parse().ok());
        self.offline.extend(number.filter(|_| action == "offline"));
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
        assert_eq!(watch.changes(), CpuChanges::default());
        // Root can make the kernel send the uevent of a CPU again.
        let asked = std::fs::write("/sys/devices/system/cpu/cpu0/uevent", "change");
        if !need("root", asked.is_ok(), "this user may not ask for uevents") {
            return;
        }
        let changes = watch.changes();
        assert!(changes.any && changes.offline.is_empty(), "the message is there when the writing returns");
        assert_eq!(watch.changes(), CpuChanges::default());
    }

    #[test]
    fn offline_cpus_are_found_in_messages() {
        let mut changes = CpuChanges::default();
        changes.add(b"remove@/devices/virtual/net/veth1\0ACTION=remove\0");
        assert_eq!(changes, CpuChanges::default());
        for message in [
            &b"offline@/devices/system/cpu/cpu12\0ACTION=offline\0"[..],
            b"online@/devices/system/cpu/cpu12\0ACTION=online\0",
            b"offline@/devices/system/cpu/cpu1",
        ] {
            changes.add(message);
        }
        assert_eq!(changes, CpuChanges { any: true, offline: vec![12, 1] });
    }
}
