//! The kernel interface. All of pmc's `unsafe` blocks and uses of libc are in this folder.
//!
//! Provides safe types for open events ([`perf`]), process start, locks, signals and limits. Makes no
//! decisions about events or policy.
#![allow(unsafe_code)]

pub mod arch;

pub mod background;
pub mod clock;
pub mod cpu_watch;
pub mod credentials;
pub mod deleted_file;
pub mod descriptor;
pub mod file_map;
pub mod header_page;
pub mod helper_program;
pub mod limits;
pub mod lock;
pub mod memory;
pub(crate) mod mount;
pub mod output_file;
pub mod perf;
pub(crate) mod pfm;
pub mod process;
pub mod process_memory;
pub mod regular_file;
pub mod replacement;
pub mod ring;
pub mod sample_clock;
pub mod sandbox;
pub mod signal;
pub mod standard_input;
pub mod standard_output;
pub mod wait;

/// Returns the symbolic name of an errno, such as `ENOENT` (`errno(3)`).
pub fn errno_name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => { match number { $(libc::$name => Some(stringify!($name)),)* _ => None } };
    }
    names!(EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV
        ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE
        EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENODATA EOVERFLOW EOPNOTSUPP ETIMEDOUT ECONNREFUSED
        EADDRINUSE EADDRNOTAVAIL ENOTCONN ECONNRESET EALREADY EINPROGRESS ESTALE EDQUOT ECANCELED ENOTBLK ENOTSOCK
        EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EPFNOSUPPORT EAFNOSUPPORT ENETDOWN
        ENETUNREACH ENETRESET ECONNABORTED ENOBUFS EISCONN ESHUTDOWN EHOSTDOWN EHOSTUNREACH EILSEQ EBADMSG EPROTO ENOMSG
        EIDRM ENOSTR ETIME ENOSR ENOLINK EUSERS EREMOTE EMULTIHOP EBADFD ENOMEDIUM EMEDIUMTYPE ENOKEY EKEYEXPIRED
        EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON)
}

/// Returns the size of a memory page in bytes. It is not always 4096: some arm64 kernels have pages of 16 or
/// 64 KiB.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// Whether a connection could not be accepted because descriptors or memory are exhausted. The connection
/// keeps waiting, so a loop that accepts connections must pause.
pub fn lacks_resources(error: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

/// The error numbers that other modules check for, with the kernel's names.
pub mod errno {
    pub use libc::{
        E2BIG, EACCES, EAGAIN, EBADF, EBUSY, ECHILD, EFAULT, EINTR, EINVAL, EIO, EMFILE, ENAMETOOLONG,
        ENFILE, ENODEV, ENOENT, ENOEXEC, ENOMEM, ENOSPC, ENOSYS, ENOTTY, ENXIO, EOPNOTSUPP, EOVERFLOW, EPERM,
        ESRCH,
    };
}
