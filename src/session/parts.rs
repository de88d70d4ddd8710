//! The parts of samples and the other records that are handed upwards as they are: `profile` and `view` show them, and know
//! them from here. Decides nothing.

pub use crate::record::decode::{BranchFlags, DataSource, page_size, transaction};
pub use crate::record::sample::{Registers, Weight};
pub use crate::record::{FileId, Record, kind, misc};
