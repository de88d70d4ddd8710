//! Where an export goes: to standard output, or to a file that is replaced at once or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{Error, Result, say};

/// Has something written to `path` (`-`: standard output). A file that is there is replaced once the new one
/// is whole; only its owner can read that one. What is no file (a pipe, a terminal) is written to.
///
/// # Errors
/// When it cannot be written; what was there before is then still there.
pub(super) fn write(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path.as_os_str() == "-" {
        return all(stdout().lock(), write).map_err(|error| Error::output("the export", error));
    }
    let is_odd = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    if is_odd {
        let file = OpenOptions::new().write(true).open(path);
        return all(file.map_err(|error| Error::create(path, error))?, write)
            .map_err(|error| Error::output(path.display(), error));
    }
    // Through a link its target is replaced, not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = target.with_file_name(name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
    let file = file.map_err(|error| Error::create(path, error))?;
    let written = all(file, write).and_then(|()| fs::rename(&beside, &target));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map_err(|error| Error::output(path.display(), error))?;
    say::note(format!("{} is written", path.display()));
    Ok(())
}

fn all(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    write(&mut out)?;
    out.flush()
}
