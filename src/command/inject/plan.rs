//! Converts the parsed options of `pmc inject` into a plan.

use std::io::Read as _;
use std::path::PathBuf;

use crate::cli::inject::InjectArgs;
use pmc_analysis::analysis::inject::{FileSelection, InjectRequest};
use pmc_command::input::input;
use pmc_symbols::symbol::{BuildId, SymbolOptions};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::regular_file::open_regular;

/// Settings of `pmc inject`.
#[derive(Debug)]
pub(in crate::command) struct InjectPlan {
    pub(super) input: PathBuf,
    pub(super) request: InjectRequest,
}

impl InjectPlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if the list of build IDs is invalid.
    pub(in crate::command) fn new(typed: InjectArgs) -> Result<Self> {
        let files = |all, hit| match (all, hit) {
            (true, _) => Some(FileSelection::All),
            (_, true) => Some(FileSelection::Hit),
            _ => None,
        };
        let known = typed.known_build_ids.as_deref().map(known).transpose()?.unwrap_or_default();
        Ok(Self {
            input: input(typed.input.as_ref()),
            request: InjectRequest {
                output: typed.output,
                build_ids: files(typed.buildid_all, typed.build_ids || !known.is_empty()),
                mappings: files(typed.mmap2_buildid_all, typed.mmap2_buildids),
                known,
                jit: typed.jit,
                convert_stacks: typed.convert_callchain,
                aslr: typed.aslr,
                symbols: SymbolOptions { symfs: typed.symfs, ..SymbolOptions::from_environment() },
            },
        })
    }
}

/// Parses `ID PATH,ID PATH`, or a file with one such pair per line.
fn known(text: &str) -> Result<Vec<(Vec<u8>, BuildId)>> {
    let read = |path: &str| {
        let mut text = String::new();
        open_regular(path.as_ref(), true)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map(|_| text)
            .map_err(|error| Error::io(format!("reading {path}"), error))
    };
    let (list, between) = match text.strip_prefix("file://") {
        Some(path) => (read(path)?, '\n'),
        None => (text.to_owned(), ','),
    };
    let pair = |pair: &str| {
        let (id, path) = pair.split_once(char::is_whitespace)?;
        Some((path.trim().as_bytes().to_vec(), BuildId::parse(id)?))
    };
    let pairs = list.split(between).map(str::trim).filter(|text| !text.is_empty());
    pairs
        .map(|text| {
            pair(text).ok_or_else(|| {
                Error::usage(format!("{text:?} is not a build-id with a path"))
                    .try_this("--known-build-ids 'ID PATH,ID PATH', or file://LIST with one per line")
            })
        })
        .collect()
}
