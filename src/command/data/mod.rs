//! `pmc data convert`: opens a recording, has its samples named and put in order, and has them written as
//! one document.

mod plan;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

pub(super) use plan::Plan;

use super::progress::Bars;
use crate::analysis::script::{ScriptLine, Transcript};
use crate::analysis::{header, quality};
use crate::error::{Error, Exit, Result};
use crate::perfdata::Reader;
use crate::session::Session;
use crate::view::script::perf_json;

/// Runs it.
///
/// # Errors
/// When the recording cannot be read, or the document not be written.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    let session = Arc::new(Session::open(Reader::open(&plan.input)?)?);
    let shift = if plan.time_of_day { plan::time_of_day(&session.reader)? } else { 0 };
    let script = Transcript::load(session.clone(), &plan.request, &Bars)?;
    let facts = header::for_conversion(&session.reader);
    let mut out = open(plan)?;
    let written = |error| Error::output(plan.output.display(), error);
    let mut write = || {
        perf_json::begin(&mut out, &facts).map_err(written)?;
        let mut is_first = true;
        script.entries(&mut |line| match line {
            ScriptLine::Sample(entry) => {
                let first = std::mem::take(&mut is_first);
                perf_json::sample(&mut out, entry, script.places(), shift, first).map_err(written)
            }
            _ => Ok(()),
        })?;
        perf_json::end(&mut out).and_then(|()| out.flush()).map_err(written)
    };
    if let Err(error) = write() {
        // Half a document is none.
        if plan.output.as_os_str() != "-" {
            let _ = std::fs::remove_file(&plan.output);
        }
        return Err(error);
    }
    quality::warn(&session);
    Ok(Exit::Done)
}

fn open(plan: &Plan) -> Result<Box<dyn Write>> {
    if plan.output.as_os_str() == "-" {
        return Ok(Box::new(BufWriter::new(stdout().lock())));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    if plan.overwrite {
        options.truncate(true)
    } else {
        options.create_new(true)
    };
    let file = options.open(&plan.output).map_err(|error| {
        let is_there = error.kind() == io::ErrorKind::AlreadyExists;
        let error = Error::create(&plan.output, error);
        if is_there { error.try_this("-f, which writes over it") } else { error }
    })?;
    Ok(Box::new(BufWriter::new(file)))
}
