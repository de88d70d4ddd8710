//! Options of `pmc inject`, and the request that they make.

use std::io::Read as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use pmc_analysis::analysis::inject::{FileSelection, InjectRequest};
use pmc_command::input::input;
use pmc_symbols::symbol::{BuildId, SymbolOptions};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::regular_file::open_regular;

/// Rewrite a recording: add build-ids, add JIT code as files, unwind stacks, decompress.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc inject -i perf.data -o plain.data                 decompress; turn a stream or directory into one file
  pmc record -o - … | pmc inject -b | pmc report        add build-ids of files with samples
  pmc inject -j -i perf.data -o jitted.data             write generated code to files that any perf can read
  pmc inject --convert-callchain -i big.data -o small.data   replace stack copies with call chains
  pmc inject --aslr -i perf.data -o public.data         other addresses, same functions")]
pub struct InjectArgs {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Output file; `-` is stdout. An existing file is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(crate) output: PathBuf,

    /// Insert the build-ids of files with samples
    #[arg(short, long)]
    pub(crate) build_ids: bool,

    /// Insert the build-ids of all mapped files
    #[arg(long)]
    pub(crate) buildid_all: bool,

    /// Drop mappings of files without samples, and identify the other files by build-id
    #[arg(short = 'B', long)]
    pub(crate) mmap2_buildids: bool,

    /// Identify the files of all mappings by build-id
    #[arg(long)]
    pub(crate) mmap2_buildid_all: bool,

    /// Use these build-ids for the files at these paths; file://LIST reads one pair per line
    #[arg(long, value_name = "ID PATH,…")]
    pub(crate) known_build_ids: Option<KnownBuildIds>,

    /// Write the code in jitdumps to ELF files, and add mappings for them
    #[arg(short, long)]
    pub(crate) jit: bool,

    /// Replace stack copies (record --call-graph dwarf) with call chains
    #[arg(long)]
    pub(crate) convert_callchain: bool,

    /// Replace all addresses, so that the recording does not reveal where the kernel placed code and data
    #[arg(long)]
    pub(crate) aslr: bool,

    /// Look up the recorded files below this directory
    #[arg(long, value_name = "FOLDER")]
    pub(crate) symfs: Option<PathBuf>,
}

/// Build-ids of files, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KnownBuildIds {
    /// The pairs.
    Pairs(Vec<(Vec<u8>, BuildId)>),
    /// A file with one pair per line.
    File(String),
}

impl FromStr for KnownBuildIds {
    type Err = Error;

    /// Parses `ID PATH,ID PATH`, or `file://LIST`.
    fn from_str(text: &str) -> Result<Self> {
        match text.strip_prefix("file://") {
            Some(path) => Ok(Self::File(path.to_owned())),
            None => pairs(text.split(',')).map(Self::Pairs),
        }
    }
}

impl KnownBuildIds {
    /// Returns the pairs of paths and build-ids.
    fn pairs(self) -> Result<Vec<(Vec<u8>, BuildId)>> {
        let path = match self {
            Self::Pairs(pairs) => return Ok(pairs),
            Self::File(path) => path,
        };
        let mut text = String::new();
        open_regular(path.as_ref(), true)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|error| Error::io(format!("reading {path}"), error))?;
        pairs(text.split('\n'))
    }
}

/// Parses pairs of a build-id and a path.
fn pairs<'a>(list: impl Iterator<Item = &'a str>) -> Result<Vec<(Vec<u8>, BuildId)>> {
    let pair = |pair: &str| {
        let (id, path) = pair.split_once(char::is_whitespace)?;
        Some((path.trim().as_bytes().to_vec(), BuildId::parse(id)?))
    };
    list.map(str::trim)
        .filter(|text| !text.is_empty())
        .map(|text| {
            pair(text).ok_or_else(|| {
                Error::usage(format!("{text:?} is not a build-id with a path"))
                    .try_options("--known-build-ids 'ID PATH,ID PATH', or file://LIST with one per line")
            })
        })
        .collect()
}

impl InjectArgs {
    /// Returns the recording, and how to rewrite it.
    ///
    /// # Errors
    /// Fails if the list of build IDs cannot be read.
    pub(crate) fn request(self) -> Result<(PathBuf, InjectRequest)> {
        let files = |all, hit| match (all, hit) {
            (true, _) => Some(FileSelection::All),
            (_, true) => Some(FileSelection::Hit),
            _ => None,
        };
        let known = self.known_build_ids.map(KnownBuildIds::pairs).transpose()?.unwrap_or_default();
        let request = InjectRequest {
            output: self.output,
            build_ids: files(self.buildid_all, self.build_ids || !known.is_empty()),
            mappings: files(self.mmap2_buildid_all, self.mmap2_buildids),
            known,
            jit: self.jit,
            convert_stacks: self.convert_callchain,
            aslr: self.aslr,
            symbols: SymbolOptions { symfs: self.symfs, ..SymbolOptions::from_environment() },
        };
        Ok((input(self.input.as_ref()), request))
    }
}
