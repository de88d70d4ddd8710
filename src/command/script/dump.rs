//! `--per-event-dump`: writes the lines of each event into a separate file.

use std::fs::File;
use std::path::{Path, PathBuf};

use pmc_analysis::analysis::script::{NamedRecording, ScriptLine};
use pmc_command::input::with_suffix;
use pmc_sys::error::{AdvisedOption, Error, Result, say};
use pmc_sys::sys::output_file;
use pmc_text::text::clean;
use pmc_text::units::{bytes, thousands};
use pmc_view::script::{ScriptLayout, ScriptWriter};

/// The output file of all events with the same name.
struct EventDump<'a> {
    path: PathBuf,
    file: File,
    writer: ScriptWriter<'a>,
    samples: u64,
}

impl<'a> EventDump<'a> {
    fn new(path: PathBuf, script: &'a NamedRecording<'_>, layout: &'a ScriptLayout) -> Result<Self> {
        let file = output_file::create(&path, 0o600, false);
        let file = file.map_err(|error| Error::create(AdvisedOption::Input, &path, error))?;
        let read_source = Box::new(|module, path: &str| script.source(module, path));
        Ok(Self { path, file, writer: ScriptWriter::new(layout, script.places(), read_source), samples: 0 })
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::output(format_args!("the samples to {}", self.path.display()), error)
    }

    fn take(&mut self, line: &ScriptLine<'_>) -> Result<()> {
        let written = match line {
            ScriptLine::Sample(entry) => {
                self.samples += 1;
                self.writer.write(&mut self.file, entry)
            }
            ScriptLine::Record(entry, kind, record) => {
                self.writer.write_record(&mut self.file, entry, *kind, record)
            }
            ScriptLine::Dumped(_) | ScriptLine::Torn { .. } => return Ok(()),
        };
        written.map_err(|error| self.failed(error))
    }

    fn finish(mut self) -> Result<()> {
        self.writer.finish(&mut self.file).map_err(|error| self.failed(error))?;
        let size = self.file.metadata().map_or(0, |about| about.len());
        let path = self.path.display().to_string();
        say::note(format!("{}: {} samples, {}", clean(&path), thousands(self.samples), bytes(size)));
        Ok(())
    }
}

/// Writes the files and prints their names. Records other than samples are written to the file of their
/// event. Events with the same name share a file.
///
/// # Errors
/// Fails if a file cannot be written, or the recording cannot be read.
pub(super) fn write(script: &NamedRecording<'_>, layout: &ScriptLayout, input: &Path) -> Result<()> {
    // A slash in an event's name must not select another directory.
    let suffix = |event: usize| format!(".{}.dump", clean(&layout.events[event]).replace('/', "_"));
    let path = |event: usize| with_suffix(input, &suffix(event));
    let mut dumps: Vec<EventDump<'_>> = Vec::new();
    let mut of_event: Vec<Option<usize>> = vec![None; layout.events.len()];
    script.entries(&mut |line| {
        let (ScriptLine::Sample(entry) | ScriptLine::Record(entry, ..)) = &line else { return Ok(()) };
        let Some(known) = of_event.get_mut(entry.event) else { return Ok(()) };
        let at = match *known {
            Some(at) => at,
            None => {
                let path = path(entry.event);
                let same = dumps.iter().position(|dump| dump.path == path);
                let at = same.unwrap_or(dumps.len());
                if at == dumps.len() {
                    dumps.push(EventDump::new(path, script, layout)?);
                }
                *known.insert(at)
            }
        };
        dumps[at].take(&line)
    })?;
    dumps.into_iter().try_for_each(EventDump::finish)
}
