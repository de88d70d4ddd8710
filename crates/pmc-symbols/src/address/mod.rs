//! Three kinds of addresses, as types that cannot be mixed up, and the mapping from one to the next.
//!
//! ```text
//!   Avma ------ Mapping ------> FileOffset ---- program headers ----> Svma
//!   in a process                in the file                           as numbered in the file
//!   (in samples)                                                      (in symbols and DWARF)
//! ```
//!
//! Mmap records and samples contain addresses as plain integers. Only `symbol` reads files, so it converts
//! file offsets to file addresses.

mod intervals;

use std::fmt;

pub use intervals::IntervalMap;

macro_rules! kind_of_address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

kind_of_address! {
    /// Actual virtual memory address: in a running process (or the kernel).
    Avma
}
kind_of_address! {
    /// Stated virtual memory address: as used in the file's program headers, symbols and debug information.
    Svma
}
kind_of_address! {
    /// Offset from the start of a file, in bytes.
    FileOffset
}

/// A part of a file mapped into a process's memory, as in an mmap record or a line of `/proc/PID/maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// First address.
    pub start: Avma,
    /// Length in bytes.
    pub len: u64,
    /// Offset in the file that is mapped at `start` (`pgoff`).
    pub offset: FileOffset,
}

impl Mapping {
    /// Whether the mapping contains the address.
    pub fn contains(&self, address: Avma) -> bool {
        address.0.wrapping_sub(self.start.0) < self.len
    }

    /// Returns the file offset for an address; `None` outside of the mapping.
    pub fn file_offset(&self, address: Avma) -> Option<FileOffset> {
        self.contains(address).then(|| FileOffset(self.offset.0.wrapping_add(address.0 - self.start.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_map_to_file_offsets() {
        let mapping = Mapping { start: Avma(0x5555_0000), len: 0x2000, offset: FileOffset(0x1000) };
        assert_eq!(mapping.file_offset(Avma(0x5555_0010)), Some(FileOffset(0x1010)));
        assert_eq!(mapping.file_offset(Avma(0x5555_2000)), None);
        assert_eq!(mapping.file_offset(Avma(0x5554_ffff)), None);
        let last = Mapping { start: Avma(u64::MAX - 9), len: 100, offset: FileOffset(0) };
        assert_eq!(last.file_offset(Avma(u64::MAX)), Some(FileOffset(9)));
    }
}
