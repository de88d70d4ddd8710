//! `pmc inject`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// Write a recording anew: with build-ids, with generated code as files, unwound, unpacked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc inject -i perf.data -o plain.data                 unpacked (record -z), a stream or a directory as one file
  pmc record -o - … | pmc inject -b | pmc report        build-ids of what was hit, in the stream
  pmc inject -j -i perf.data -o jitted.data             generated code becomes files that any perf reads
  pmc inject --convert-callchain -i big.data -o small.data   copies of stacks become call chains")]
pub struct Inject {
    /// The recording; `-` is standard input [default: what comes on it, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Where the new recording goes; `-` is standard output. One that is there is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Put the build-ids of files that samples lie in into the stream
    #[arg(short, long)]
    pub build_ids: bool,

    /// Put the build-ids of all mapped files into the stream
    #[arg(long)]
    pub buildid_all: bool,

    /// Leave out mappings of files without samples, and name the others' files by build-id
    #[arg(short = 'B', long)]
    pub mmap2_buildids: bool,

    /// Name the files of all mappings by build-id
    #[arg(long)]
    pub mmap2_buildid_all: bool,

    /// Build-ids of files at these paths; file://LIST has a pair a line
    #[arg(long, value_name = "ID PATH,…")]
    pub known_build_ids: Option<String>,

    /// Make files of the code in jitdumps, and map them where and when it was
    #[arg(short, long)]
    pub jit: bool,

    /// Make call chains of copied stacks (record --call-graph dwarf), and leave out the copies
    #[arg(long)]
    pub convert_callchain: bool,

    /// Look for the recorded files below this folder
    #[arg(long, value_name = "FOLDER")]
    pub symfs: Option<PathBuf>,
}
