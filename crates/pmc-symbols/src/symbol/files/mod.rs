//! The files that names come from: finds, opens and verifies them.
//!
//! Receives modules as recordings name them, and the places to search; returns [`Image`](image::Image)s and
//! the contents of their headers. Decides which file belongs to a module (by its build-id). Leaves names to
//! `tables`, lines to `dwarf`.

pub(super) mod cache_file;
pub mod elf;
pub(crate) mod image;
pub mod locate;
pub(crate) mod mount;
pub mod source_text;
