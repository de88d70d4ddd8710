//! Futexes on which threads are currently waiting: their addresses, and the words stored there.
//!
//! ```text
//!   /proc/PID/task/TID/syscall   202 0x55a2378730c0 0x80 …   the call in which the thread waits
//!   /proc/PID/mem                2 0 4711 1 0                the words before and at that address
//! ```
//! Requires permission to trace the process, which its own user usually has. Futexes that cannot be read are
//! omitted.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::Host;
use crate::sys::clock;

/// Number of 32-bit words to read at each futex.
pub const FUTEX_WORDS: usize = 5;

/// Number of 64-bit words to read before each futex.
pub const WORDS_BEFORE: usize = 4;

/// The words at a futex while a thread is waiting on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexReading {
    /// Time of the reading, in nanoseconds on `CLOCK_MONOTONIC`.
    pub time: u64,
    /// The waiting thread.
    pub tid: i32,
    /// Address of the futex.
    pub address: u64,
    /// The futex and the words after it.
    pub words: [u32; FUTEX_WORDS],
    /// The words before the futex; `None` if they cannot be read.
    pub before: Option<[u64; WORDS_BEFORE]>,
}

/// Numbers of the system calls `futex` and `futex_wait`.
const CALLS: [u64; 2] = [if cfg!(target_arch = "x86_64") { 202 } else { 98 }, 455];

impl Host {
    /// Reads the futexes on which threads of a process are waiting, for at most `most` threads.
    pub fn futex_readings(&self, pid: u32, most: usize, found: &mut Vec<FutexReading>) {
        let Ok(tasks) = std::fs::read_dir(self.path(format!("/proc/{pid}/task"))) else { return };
        let mut memory = None;
        for task in tasks.flatten().take(most) {
            let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let call = self.blocked_at(tid).and_then(|blocked| blocked.call);
            let Some((_, [address, ..])) = call.filter(|(number, _)| CALLS.contains(number)) else {
                continue;
            };
            let open = || File::open(self.path(format!("/proc/{pid}/mem"))).ok();
            let Some(memory) = memory.get_or_insert_with(open) else { return };
            let mut bytes = [0; FUTEX_WORDS * 4];
            if memory.read_exact_at(&mut bytes, address).is_err() {
                continue;
            }
            let mut earlier = [0; WORDS_BEFORE * 8];
            let start = address.checked_sub(earlier.len() as u64);
            let is_read = start.is_some_and(|start| memory.read_exact_at(&mut earlier, start).is_ok());
            let mut before = [0; WORDS_BEFORE];
            for (word, bytes) in before.iter_mut().zip(earlier.as_chunks::<8>().0) {
                *word = u64::from_ne_bytes(*bytes);
            }
            let mut words = [0; FUTEX_WORDS];
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = u32::from_ne_bytes(*bytes);
            }
            let (time, tid, before) = (clock::monotonic_ns(), tid as i32, is_read.then_some(before));
            found.push(FutexReading { time, tid, address, words, before });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_waiting_thread_is_found() {
        let (unpark, parked) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || parked.recv());
        let mut found = Vec::new();
        // The thread may not have started to wait yet.
        while found.is_empty() {
            Host::live().futex_readings(std::process::id(), usize::MAX, &mut found);
        }
        assert!(found.iter().all(|reading| reading.address != 0 && reading.time > 0));
        drop(unpark);
        let _ = thread.join();
    }
}
