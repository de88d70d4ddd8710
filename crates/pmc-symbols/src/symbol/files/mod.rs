//! Finds, opens and verifies the files that contain names.
//!
//! Takes modules with their names in the recording, and the places to search; returns
//! [`Image`](image::Image)s and the contents of their headers. The build-id determines which file belongs to
//! a module. `tables` reads names, and `dwarf` reads lines.

pub(super) mod cache_file;
pub mod elf;
pub(crate) mod image;
pub mod locate;
pub(crate) mod mount;
pub mod source_text;
