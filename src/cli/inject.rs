//! Options of `pmc inject`.

use std::path::PathBuf;

use clap::Args;

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
    pub(crate) known_build_ids: Option<String>,

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
