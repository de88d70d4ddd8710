//! Constants and struct layouts of the kernel ABI, used both for opening events and for reading records.
//! Provides the bits, markers and names of `include/uapi/linux/perf_event.h` and the layout of a request
//! ([`Attr`]). Also parses the field lines of a tracepoint's format file. The numbers are taken from
//! `perf-event-open-sys`, or checked against it by the tests. System calls are made in `sys`, files are read
//! in `host`, and record layouts are in `record`.

pub mod attr;
pub mod aux_flag;
pub mod branch_sample_type;
pub mod context;
pub mod generic;
pub(crate) mod kallsyms;
pub mod read_format;
pub mod record_header;
pub mod sample_type;
pub mod syscall;
pub mod tracepoint_field;

pub use attr::Attr;
pub use context::Context;
pub use kallsyms::KallsymsLine;
pub use record_header::{CpuMode, misc};
pub use tracepoint_field::TracepointField;

/// Defines constants for a bit `enum` of the bindings, and a table of their names in bit order.
macro_rules! bits {
    ($($name:ident = $binding:ident;)*) => {
        $(#[allow(missing_docs, reason = "the kernel's names; perf_event_open(2) explains each")]
        pub const $name: u64 = perf_event_open_sys::bindings::$binding as u64;)*

        /// Names and bits, in bit order.
        pub const NAMES: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}
use bits;

/// Returns the names of the bits set in a word, in the table's order. Skips bits that are missing from the
/// table.
pub fn names_of(word: u64, table: &[(&'static str, u64)]) -> Vec<&'static str> {
    table.iter().filter(|(_, bit)| word & bit != 0).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event_open_sys::bindings as b;

    #[test]
    fn every_known_bit_has_a_name() {
        let all = |table: &[(&str, u64)]| table.iter().fold(0, |all, (_, bit)| all | bit);
        assert_eq!(all(sample_type::NAMES), u64::from(b::PERF_SAMPLE_MAX) - 1);
        assert_eq!(all(read_format::NAMES), u64::from(b::PERF_FORMAT_MAX) - 1);
        assert_eq!(all(&branch_sample_type::FILTERS), u64::from(b::PERF_SAMPLE_BRANCH_MAX) - 1);
        for table in [sample_type::NAMES, read_format::NAMES] {
            assert!(table.is_sorted_by_key(|(_, bit)| *bit));
        }
    }

    #[test]
    fn names_of_set_bits() {
        let word = sample_type::IP | sample_type::CPU | 1 << 40;
        assert_eq!(names_of(word, sample_type::NAMES), ["IP", "CPU"]);
    }
}
