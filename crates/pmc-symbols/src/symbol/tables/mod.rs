//! Symbol tables, which decide which name belongs to an address. They are built once, from symbols in any
//! order, and queried many times.
//!
//! Takes symbols from [`files`](super::files), the kernel and JIT compilers; returns one name per address,
//! chosen among all that apply.

pub(super) mod elf_symbols;
pub(crate) mod name_list;
pub(crate) mod plt;
pub(super) mod sparse;
pub(crate) mod table;
