//! `pmc profile`: makes a recording and shows it, in one step.
//!
//! [`plan`] converts the options to options of `pmc record`, and of `pmc report` or `pmc export`. The caller
//! runs these two commands one after the other.

mod plan;

pub(super) use plan::{ProfilePlan, ViewCommand};
