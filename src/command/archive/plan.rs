//! What was typed for `pmc archive`, and what it means.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::cli::archive::Archive;
use crate::error::{Error, Result};

/// What `pmc archive` does.
pub(in crate::command) enum Plan {
    /// Packs up what a recording's names come from.
    Pack {
        recording: PathBuf,
        /// The recording, too.
        all: bool,
        /// Build-ids that are left out.
        excluded: HashSet<String>,
    },
    /// Unpacks such an archive.
    Unpack { archive: PathBuf },
}

impl Plan {
    /// What was typed, as what it means.
    ///
    /// # Errors
    /// No archive, or several, where none is named; a list that cannot be read.
    pub(in crate::command) fn new(typed: Archive) -> Result<Self> {
        if typed.unpack {
            return Ok(Self::Unpack { archive: typed.file.map_or_else(only_archive, Ok)? });
        }
        let excluded = match &typed.exclude_buildids {
            None => String::new(),
            Some(list) => std::fs::read_to_string(list)
                .map_err(|error| Error::io(format!("reading {}", list.display()), error))?,
        };
        Ok(Self::Pack {
            recording: typed.file.unwrap_or_else(|| "perf.data".into()),
            all: typed.all,
            excluded: excluded.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

/// The archive of this folder.
fn only_archive() -> Result<PathBuf> {
    let entries = std::fs::read_dir(".").map_err(|error| Error::io("reading this folder", error))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut archives: Vec<String> =
        names.filter(|name| name.starts_with("perf") && name.ends_with(".tar.bz2")).collect();
    archives.sort();
    match archives.as_slice() {
        [one] => Ok(one.into()),
        [] => Err(Error::usage("there is no perf*.tar.bz2 here").try_this("pmc archive --unpack FILE")),
        several => Err(Error::usage(format!("{} archives are here: {}", several.len(), several.join(", ")))
            .try_this("pmc archive --unpack FILE")),
    }
}
