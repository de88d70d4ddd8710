//! The code of functions that samples hit: which they are ([`functions`]), and what their instructions and lines cost ([`listing`]).

pub mod functions;
pub mod listing;
