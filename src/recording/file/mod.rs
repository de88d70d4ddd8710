//! A recording in a file, a row of files, or a stream.
//!
//! ```text
//!   rings ──► recorder (what is done at each wake) ──► output (counts, mends, unwinds) ──► perfdata::Writer
//!                 '─ rotation: when the next file begins     '─ features: the machine, the events, build-ids
//!   a holder's rings ──► snapshot ──► output
//! ```

pub(crate) mod counts;
pub(crate) mod features;
pub(crate) mod output;
pub(crate) mod recorder;
pub(crate) mod rotation;
pub(crate) mod snapshot;
