//! Options of `pmc archive`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::options::recording_file::RecordingFile;
use pmc_command::options::symbol_files::SymbolFiles;

/// Write a recording with its symbols, lines and code into one file that pmc can analyse on any machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc archive                             perf.data.archive, for pmc report -i on any machine
  pmc archive -o bug.data my.data         choose the file's name
  pmc archive --with-debug                also the code of callers, and the names of all variables
  pmc archive --no-code                   without machine code and source lines
  pmc archive --anonymous                 to publish: without names and addresses of this machine
  pmc archive --perf                      perf.data.tar.bz2 for perf: tar xvf … -C ~/.debug
  pmc archive --perf --all                the recording and its files in one tar archive
  pmc archive --perf --unpack perf.all-….tar.bz2
                                          unpack the recording here, and its files into the build-id cache
--perf requires tar and bzip2.")]
#[command(mut_args(|option| option.hide_short_help(false)))]
#[command(mut_arg("file", |file| file.help(
    "Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]; \
     with --unpack, the archive [default: the only perf*.tar.bz2 in this directory]"
)))]
pub struct ArchiveArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

    /// Output file [default: FILE.archive]
    #[arg(short, long, value_name = "FILE", conflicts_with = "perf")]
    pub(crate) output: Option<PathBuf>,

    /// Include neither machine code nor source lines
    #[arg(long, conflicts_with = "perf")]
    pub(crate) no_code: bool,

    /// Include whole source files instead of the lines around the sampled code
    #[arg(long, conflicts_with_all = ["perf", "no_code"])]
    pub(crate) with_source: bool,

    /// Include the code of callers, and the names of all variables in programs and libraries with samples
    #[arg(long, conflicts_with_all = ["perf", "no_code"])]
    pub(crate) with_debug: bool,

    /// Hide the names of the host, commands, threads, cgroups and folders, replace all addresses, and leave
    /// out code, registers and raw data
    #[arg(long, conflicts_with_all = ["perf", "with_source", "with_debug"])]
    pub(crate) anonymous: bool,

    #[command(flatten)]
    pub(crate) symbols: SymbolFiles,

    /// Pack the files with the recording's symbols in perf's format
    #[arg(long)]
    pub(crate) perf: bool,

    /// With --perf: also pack the recording
    #[arg(long, requires = "perf")]
    pub(crate) all: bool,

    /// With --perf: unpack an archive into the build-id cache
    #[arg(long, requires = "perf", conflicts_with = "all")]
    pub(crate) unpack: bool,

    /// Exclude the build-ids listed in this file, one per line
    #[arg(long, value_name = "FILE", requires = "perf", conflicts_with = "unpack")]
    pub(crate) exclude_buildids: Option<PathBuf>,
}
