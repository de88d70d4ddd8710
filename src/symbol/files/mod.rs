//! The files that names come from: found, opened, believed or not.
//!
//! Receives modules as a recording names them and the user's places; hands on [`Image`](image::Image)s with
//! what their headers say. Decides which file belongs to a module (the build-id decides). Leaves names to
//! `tables`, lines to `dwarf`.

pub(super) mod cache_file;
pub mod elf;
pub mod image;
pub mod locate;
pub mod mount;
pub mod source_text;
