//! The recording that a command reads: as perf's commands take it (`-i FILE`), or as its first word.

use std::path::PathBuf;

use clap::Args;

use crate::input::input;

/// The options of a command that reads one recording.
#[derive(Debug, Clone, Default, Args)]
#[group(id = "recording")]
pub struct RecordingFile {
    /// Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE", hide = true)]
    input: Option<PathBuf>,
}

impl RecordingFile {
    /// The file that was typed, if any.
    pub fn typed(&self) -> Option<&PathBuf> {
        self.input.as_ref().or(self.file.as_ref())
    }

    /// Returns these options with another file if none was typed.
    #[must_use]
    pub fn or(self, file: Option<PathBuf>) -> Self {
        let file = self.typed().cloned().or(file);
        Self { file, input: None }
    }

    /// Returns the recording to read; see [`input`].
    pub fn path(&self) -> PathBuf {
        input(self.typed())
    }
}
