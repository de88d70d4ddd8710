//! A recording in a file, a row of files, or a stream.

pub(crate) mod output;
pub(crate) mod recorder;
pub(crate) mod rotation;
pub(crate) mod sections;
