//! `pmc profile`: one step from a program to its answer.
//!
//! [`plan`] makes of it a `pmc record`, and a `pmc report` or `pmc export`, which the dispatcher runs one
//! after the other.

mod plan;

pub(super) use plan::{Answer, Plan};
