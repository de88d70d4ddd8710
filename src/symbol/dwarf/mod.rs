//! Source lines and inlined functions, out of debug information that nobody vouches for.
//!
//! Receives the files of a module and addresses; hands on the functions that stand at each ([`lines`]), kept
//! from one run to the next ([`cache`]). Refuses what nests deeper than a stack can bear ([`depth`]). Leaves
//! the finding of files to [`files`](super::files).

pub mod cache;
mod depth;
pub mod lines;
