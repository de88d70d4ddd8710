//! Which name stands at an address: tables made of symbols in any order, and looked up many times.
//!
//! Receives symbols out of [`files`](super::files), the kernel and JIT compilers; hands on the one name of
//! each address. Decides among several. Leaves the finding of files to others.

pub(super) mod elf_symbols;
pub mod name_list;
pub mod plt;
pub(super) mod sparse;
pub mod table;
