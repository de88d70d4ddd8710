//! Kernel symbols that name locks, and the sections of kernel code that contain only lock functions.

use std::collections::BTreeMap;
use std::ops::Bound;

use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::abi::KallsymsLine;
use pmc_sys::host::Host;

/// Symbols at the start and end of the code sections with lock functions: first for mutexes and semaphores,
/// then for spin locks.
const SECTIONS: [(&str, &str); 2] =
    [("__sched_text_start", "__sched_text_end"), ("__lock_text_start", "__lock_text_end")];

/// Prefixes of the names of lock functions, for kernels whose sections are unknown.
const FUNCTIONS: &[&str] = &[
    "__mutex_lock",
    "mutex_lock",
    "rwsem_down_",
    "down_read",
    "down_write",
    "__down",
    "rt_mutex_",
    "rtlock_",
    "_raw_spin_lock",
    "_raw_read_lock",
    "_raw_write_lock",
    "queued_spin_lock_slowpath",
    "native_queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "percpu_down_write",
    "__percpu_down_read",
    "percpu_rwsem_wait",
];

/// Functions of the tracepoints themselves, which appear in the stacks of some kernels.
const TRACEPOINTS: &[&str] =
    &["__traceiter_contention", "trace_contention", "perf_trace_contention", "__bpf_trace_contention"];

/// The kernel's symbols.
#[derive(Debug, Default)]
pub(super) struct KernelLockSymbols {
    sections: Vec<(u64, u64)>,
    /// Names of variables by address, as untrusted text.
    variables: BTreeMap<u64, String>,
}

impl KernelLockSymbols {
    /// Reads the recorded kernel's symbols from a copy of its symbol list, or from the running kernel if the
    /// recording was made on this machine. Keeps the names of variables only if they are needed.
    pub(super) fn read(options: &SymbolOptions, is_from_here: bool, needs_variables: bool) -> Self {
        let text = match &options.kallsyms {
            Some(path) => std::fs::read(path).ok(),
            None => is_from_here.then(|| Host::live().kallsyms()).flatten(),
        };
        text.map(|text| Self::parse(&text, needs_variables)).unwrap_or_default()
    }

    fn parse(text: &[u8], needs_variables: bool) -> Self {
        let mut ends = [[0; 2]; SECTIONS.len()];
        let mut variables = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n').filter_map(KallsymsLine::read) {
            if !line.is_code() {
                let name = || String::from_utf8_lossy(line.name).into_owned();
                let is_variable = matches!(line.kind, b'd' | b'D' | b'b' | b'B') && line.address != 0;
                if needs_variables && is_variable {
                    variables.entry(line.address).or_insert_with(name);
                }
                continue;
            }
            for (section, names) in ends.iter_mut().zip(SECTIONS) {
                for (end, name) in section.iter_mut().zip([names.0, names.1]) {
                    if line.name == name.as_bytes() {
                        *end = line.address;
                    }
                }
            }
        }
        let sections = ends.into_iter().map(|[start, end]| (start, end)).filter(|(start, end)| start < end);
        Self { sections: sections.collect(), variables }
    }

    /// Whether the code at this address, in this function, is part of the implementation of locks.
    pub(super) fn is_lock_function(&self, address: u64, function: &str) -> bool {
        let starts = |names: &[&str]| names.iter().any(|name| function.starts_with(name));
        if self.sections.is_empty() {
            return starts(FUNCTIONS) || starts(TRACEPOINTS);
        }
        self.sections.iter().any(|(start, end)| (*start..*end).contains(&address)) || starts(TRACEPOINTS)
    }

    /// Returns the name of the variable at or before an address; empty if the lock is in allocated memory.
    pub(super) fn variable(&self, address: u64) -> &str {
        let above = (Bound::Excluded(address), Bound::Unbounded);
        let (mut before, mut after) = (self.variables.range(..=address), self.variables.range(above));
        // Addresses after the last variable are allocated memory.
        match (before.next_back(), after.next()) {
            (Some((_, name)), Some(_)) => name,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_variables_are_found() {
        let text = b"ffffffff82000000 T __sched_text_start\nffffffff82000100 T __sched_text_end\n\
            ffffffff83000000 D tasklist_lock\nffffffff83000040 b other\n0000000000000000 A fixed\n";
        let symbols = KernelLockSymbols::parse(text, true);
        assert!(symbols.is_lock_function(0xffff_ffff_8200_0010, "mutex_lock"));
        assert!(!symbols.is_lock_function(0xffff_ffff_8200_0100, "vfs_write"));
        assert!(symbols.is_lock_function(1, "__traceiter_contention_begin"));
        assert_eq!(symbols.variable(0xffff_ffff_8300_0008), "tasklist_lock");
        assert_eq!(symbols.variable(0xffff_8885_0000_0000), "");
        assert_eq!(symbols.variable(u64::MAX), "");
        assert_eq!(KernelLockSymbols::parse(text, false).variable(0xffff_ffff_8300_0008), "");
        let without = KernelLockSymbols::default();
        assert!(without.is_lock_function(1, "rwsem_down_write_slowpath"));
        assert!(!without.is_lock_function(1, "ext4_buffered_write_iter"));
    }
}
