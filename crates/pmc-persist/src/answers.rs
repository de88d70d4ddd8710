//! What all commands of this crate need: the user's run directory, an entry's counts, and printing.

use std::io::{self, Write};

use serde_json::Value;

use pmc_command::pager::PagedOutput;
use pmc_recording::persistent::PersistentEntry;
use pmc_recording::persistent::client::{ask, misunderstood};
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::{EntryCounts, HolderAnswer, HolderRequest};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::persistent::RUN_DIRECTORY;

/// Returns the user's run directory.
pub(super) fn own(host: &Host) -> Result<RunDirectory> {
    host.own_run_directory().map(RunDirectory::at).ok_or_else(|| {
        Error::new("this user has no runtime directory")
            .why("XDG_RUNTIME_DIR is not set (a login session sets it)")
            .try_this(format!("{RUN_DIRECTORY}=DIR, a directory that only this user can write to"))
    })
}

/// Returns the counts of an entry.
pub(super) fn read(directory: &RunDirectory, entry: &PersistentEntry) -> Result<EntryCounts> {
    match ask(directory, &HolderRequest::Read { entry: entry.id.to_string() })? {
        (HolderAnswer::Counts(counts), _) => Ok(counts),
        _ => Err(misunderstood()),
    }
}

/// Prints the JSON document if there is one, otherwise the output of `text`.
pub(super) fn print(
    document: Option<Value>,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let mut out = PagedOutput::open();
    let written = match document {
        Some(document) => writeln!(out, "{}", pmc_text::text::as_json(&document)),
        None => text(&mut out),
    };
    written.and_then(|()| out.finish()).map_err(|error| Error::output("the persistent events", error))
}
