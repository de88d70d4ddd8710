//! File systems that are visible only to this process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Mounts a file system of this type without attaching it to a directory, so that its files are accessible
/// only through the descriptor. Closing the descriptor unmounts the file system. Programs started by pmc do
/// not inherit the descriptor.
///
/// # Errors
/// Returns `EPERM` without CAP_SYS_ADMIN, `ENODEV` if the kernel does not support the file system, and
/// `ENOSYS` before Linux 5.2.
pub(crate) fn detached(kind: &str) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}
