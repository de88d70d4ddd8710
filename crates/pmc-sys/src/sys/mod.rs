//! The kernel interface: all `unsafe` blocks and libc names of pmc are in this folder.
//!
//! Provides safe types for open events ([`perf`]), process start, locks, signals and limits. Makes no
//! decisions about events or policy.
#![allow(unsafe_code)]

pub mod arch;

pub mod background;
pub mod clock;
pub mod credentials;
pub mod descriptor;
pub mod file_map;
pub mod header_page;
pub mod limits;
pub mod lock;
pub mod memory;
pub(crate) mod mount;
pub mod output_file;
pub mod perf;
pub(crate) mod pfm;
pub mod process;
pub mod replacement;
pub mod ring;
pub mod signal;
pub mod standard_input;
pub mod standard_output;

/// Returns the symbolic name of an errno, such as `ENOENT` (`errno(3)`).
pub fn errno_name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => { match number { $(libc::$name => Some(stringify!($name)),)* _ => None } };
    }
    names!(EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV
        ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE
        EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EOVERFLOW EOPNOTSUPP ETIMEDOUT ECONNREFUSED
        EADDRINUSE EADDRNOTAVAIL ENOTCONN ECONNRESET EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED)
}

/// Returns the size of a memory page in bytes. Never assume 4096: there are arm64 kernels with 16 and 64
/// KiB.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The errors that other modules distinguish, by the kernel's names.
pub mod errno {
    pub use libc::{
        E2BIG, EACCES, EAGAIN, EBADF, EBUSY, ECHILD, EFAULT, EINTR, EINVAL, EIO, EMFILE, ENAMETOOLONG,
        ENFILE, ENODEV, ENOENT, ENOEXEC, ENOMEM, ENOSPC, ENOSYS, ENOTTY, ENXIO, EOPNOTSUPP, EOVERFLOW, EPERM,
        ESRCH,
    };
}
