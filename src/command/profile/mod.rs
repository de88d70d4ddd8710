//! `pmc profile`: records and shows the result in one step.
//!
//! [`plan`] converts the options into those of `pmc record` and of `pmc report` or `pmc export`. The
//! dispatcher runs both commands in turn.

mod plan;

pub(super) use plan::{ProfilePlan, ViewCommand};
