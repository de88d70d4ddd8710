//! `pmc evlist`: the events of a recording, as its header has them.
//!
//! Wires the reader, what a recording says of itself, and the view.

mod plan;

use std::io::{BufWriter, Write, stdout};

pub(super) use plan::Plan;

use crate::analysis::header;
use crate::error::{Error, Exit, Result};
use crate::perfdata::Reader;
use crate::view;

/// Runs it.
///
/// # Errors
/// A file that cannot be read, and those of writing.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    let recording = header::of(&Reader::open(&plan.file)?);
    let mut out = BufWriter::new(stdout().lock());
    view::header::events(&mut out, &recording, plan.form)
        .and_then(|()| out.flush())
        .map_err(|error| Error::output("the list of events", error))?;
    Ok(Exit::Done)
}
