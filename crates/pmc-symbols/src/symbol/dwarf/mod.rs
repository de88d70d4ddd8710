//! Source lines and inlined functions from untrusted debug information.
//!
//! Receives the files of a module and addresses; returns the functions at each ([`lines`]), cached between
//! runs ([`cache`]). Rejects units that nest too deep for the stack ([`depth`]). Leaves finding files to
//! [`files`](super::files).

pub(crate) mod cache;
mod depth;
pub(crate) mod lines;
