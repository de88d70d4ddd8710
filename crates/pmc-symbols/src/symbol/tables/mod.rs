//! Symbol tables: decide which name belongs to an address. Built once from symbols in any order, and queried
//! many times.
//!
//! Receives symbols from [`files`](super::files), the kernel and JIT compilers; returns one name per address.
//! Decides among several names. Leaves finding the files to others.

pub(super) mod elf_symbols;
pub(crate) mod name_list;
pub(crate) mod plt;
pub(super) mod sparse;
pub(crate) mod table;
