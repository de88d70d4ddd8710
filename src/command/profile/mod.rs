//! `pmc profile`: records and shows the result in one step.
//!
//! [`plan`] converts it into a `pmc record` and a `pmc report` or `pmc export`. The dispatcher runs one
//! after the other.

mod plan;

pub(super) use plan::{ProfilePlan, ViewCommand};
