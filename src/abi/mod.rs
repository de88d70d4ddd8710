//! The kernel's numbers and layouts, each written once: whoever asks for events and whoever reads what they
//! left name them from here.
//!
//! Receives nothing. Hands on bits, markers and names as `include/uapi/linux/perf_event.h` has them (taken
//! from `perf-event-open-sys`, or checked against it by the tests), the request's layout ([`Attr`]), and what
//! a tracepoint's format file says of a field. Makes no calls and reads no files: that is for `sys` and
//! `host`; the records are laid out in `record`.

pub mod attr;
pub mod aux_flag;
pub mod branch_sample_type;
pub mod context;
pub mod generic;
pub mod kallsyms;
pub mod read_format;
pub mod record_header;
pub mod sample_type;
pub mod tracepoint_field;

pub use attr::Attr;
pub use context::Context;
pub use kallsyms::KallsymsLine;
pub use record_header::{CpuMode, misc};
pub use tracepoint_field::TracepointField;

/// Constants of one `enum` of bits, from the bindings, and the table of their names in the order of the bits.
macro_rules! bits {
    ($($name:ident = $binding:ident;)*) => {
        $(#[allow(missing_docs, reason = "the kernel's names; perf_event_open(2) explains each")]
        pub const $name: u64 = perf_event_open_sys::bindings::$binding as u64;)*

        /// Name and bit, in the order of the bits.
        pub const NAMES: &[(&str, u64)] = &[$((stringify!($name), $name)),*];
    };
}
use bits;

/// The names of the bits that are set in a word, in the table's order; bits that the table lacks are left
/// out.
pub fn names_of(word: u64, table: &[(&'static str, u64)]) -> Vec<&'static str> {
    table.iter().filter(|(_, bit)| word & bit != 0).map(|(name, _)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event_open_sys::bindings as b;

    #[test]
    fn every_bit_that_the_bindings_know_has_a_name() {
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
