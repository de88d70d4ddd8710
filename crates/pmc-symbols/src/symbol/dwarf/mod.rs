//! Looks up source lines and inlined functions in untrusted debug information.
//!
//! Takes the files of a module and addresses in them; returns the functions at each address ([`lines`]),
//! cached between runs ([`cache`]). Rejects units that are nested too deeply for the stack ([`depth`]).
//! [`files`](super::files) finds the files.

pub(in crate::symbol) mod abbreviations;
pub(crate) mod cache;
mod depth;
#[cfg(test)]
pub(in crate::symbol) mod hostile;
pub(crate) mod lines;
pub(in crate::symbol) mod sections;
mod slice;
mod split;
pub(in crate::symbol) mod units;
