//! How long threads wait for locks: the results of `analysis::lock`. No I/O, no formatting.
//!
//! ```text
//!   lock:contention_begin/end ──► kernel   the kernel's locks, as in perf lock contention
//!   system call futex         ──► user     the locks of programs, with their holders
//! ```

pub mod kernel;
pub mod user;
