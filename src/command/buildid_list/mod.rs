//! `pmc buildid-list`: which files a recording means, as their build-ids tell.
//!
//! Wires the reader, what a recording says of itself, and the view.

mod plan;

use std::collections::HashSet;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

pub(super) use plan::Plan;

use crate::analysis::header;
use crate::error::{Error, Exit, Result};
use crate::perfdata::{Reader, RecordTally};
use crate::symbol::{Image, elf, kernel};
use crate::text::hex;
use crate::view;

/// Runs it.
///
/// # Errors
/// A file that cannot be read, or has no build-id; and those of writing.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    let rows = match plan {
        Plan::Kernel => {
            let id = kernel::running_build_id().ok_or_else(|| {
                Error::new("the running kernel's build-id is not to be had")
                    .why("/sys/kernel/notes cannot be read, or has none")
            })?;
            vec![(hex(id.bytes(), ""), String::new())]
        }
        Plan::File { path, with_hits } => match of_program(path) {
            Some(id) => vec![(id?, String::new())],
            None => of_recording(&Reader::open(path)?, *with_hits)?,
        },
    };
    let mut out = BufWriter::new(stdout().lock());
    view::header::build_ids(&mut out, &rows)
        .and_then(|()| out.flush())
        .map_err(|error| Error::output("the list of build-ids", error))?;
    Ok(Exit::Done)
}

/// The build-id of an ELF file; `None` where the file is none.
fn of_program(path: &Path) -> Option<Result<String>> {
    let image = Image::open(path).ok()?;
    let file = image.elf().ok()?;
    let id = elf::build_id(&file).map(|id| hex(id.bytes(), ""));
    Some(id.ok_or_else(|| {
        Error::new(format!("{} has no build-id", path.display())).why("it was linked without --build-id")
    }))
}

fn of_recording(reader: &Reader, with_hits: bool) -> Result<Vec<(String, String)>> {
    let mut rows = header::of(reader).build_ids;
    if with_hits {
        let mut tally = RecordTally::new(true);
        reader.scan(|record| tally.note(record, reader.layouts()))?;
        let hit: HashSet<String> =
            tally.files(false).iter().map(|file| String::from_utf8_lossy(&file.name).into_owned()).collect();
        // The kernel's mapping has the name of the symbol behind it by which a moved kernel is recognised.
        let marked = |name: &str| ["_text", "_stext"].map(|mark| format!("{name}{mark}"));
        rows.retain(|(_, name)| hit.contains(name) || marked(name).iter().any(|name| hit.contains(name)));
    }
    Ok(rows)
}
