//! The outputs of `pmc stat`: stderr, a file or a descriptor, and the scrape file.
//!
//! Receives formatted text. A failed write is reported once and ends the run with exit status 1. A broken
//! pipe ends the run silently.

use std::io::{self, Write};
use std::path::Path;

use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::sys::replacement::Replacement;
use pmc_sys::sys::{clock, descriptor, output_file};
use pmc_text::terminal::{self, Paint, Stream};
use pmc_view::gate::CiFormat;
use pmc_view::stat::{StatDestination, StatFormat, StatLayout};

/// The output for results.
pub(super) struct ResultSink {
    to: Box<dyn Write>,
    name: String,
    /// The standard stream to which the sink writes, if any.
    stream: Option<Stream>,
}

impl ResultSink {
    /// Opens the sink. A file starts with perf's first line, except in formats that cannot contain it.
    pub(super) fn open(layout: &StatLayout) -> Result<Self> {
        let (mut to, name, stream): (Box<dyn Write>, _, _) = match &layout.to {
            StatDestination::Stderr => {
                (Box::new(io::stderr()), "the results to stderr".to_owned(), Some(Stream::Error))
            }
            StatDestination::Descriptor(number) => {
                let file = descriptor::duplicate(*number).map_err(|error| {
                    Error::io(format!("--log-fd {number}"), error).exit(pmc_sys::error::Exit::Usage)
                })?;
                (Box::new(file), format!("the results to descriptor {number}"), None)
            }
            StatDestination::File(path) if path.as_os_str() == "-" => {
                if descriptor::stdout_was_closed() {
                    return Err(Error::io(
                        "-o -: writing the results",
                        io::Error::from_raw_os_error(pmc_sys::sys::errno::EBADF),
                    )
                    .why("standard output is closed"));
                }
                (Box::new(io::stdout()), "the results".to_owned(), Some(Stream::Output))
            }
            StatDestination::File(path) => {
                // Make the file readable only by its owner.
                let create = |path: &Path| {
                    output_file::create(path, 0o600, layout.append)
                        .map_err(|error| Error::create(AdvisedOption::Named("-o"), path, error))
                };
                (Box::new(create(path)?), format!("the results to {}", path.display()), None)
            }
        };
        let file = matches!(&layout.to, StatDestination::File(path) if path.as_os_str() != "-");
        let dated = matches!(layout.format, StatFormat::Text | StatFormat::Csv(_))
            && !layout.is_openmetrics()
            && layout.ci != Some(CiFormat::JUnit);
        if file && dated {
            let line = format!("# started on {}\n\n", clock::local_date());
            to.write_all(line.as_bytes()).map_err(|error| Error::output(&name, error))?;
        }
        Ok(Self { to, name, stream })
    }

    /// Whether the sink supports colours.
    pub(super) fn has_colour(&self) -> bool {
        self.stream.is_some_and(Stream::has_colour)
    }

    /// Returns the text styles that the sink supports.
    pub(super) fn paint(&self) -> Paint {
        self.stream.map(|stream| terminal::paint(stream, None, None)).unwrap_or_default()
    }

    /// Returns the line width, if the sink is a terminal.
    pub(super) fn width(&self) -> Option<usize> {
        self.stream.filter(|stream| stream.is_terminal()).map(terminal::columns)
    }

    /// Whether the sink is a screen that can be cleared.
    pub(super) fn is_screen(&self) -> bool {
        self.stream.is_some_and(Stream::is_screen)
    }

    /// Writes a piece of output in a single write, so that other writers cannot insert lines into it.
    pub(super) fn print(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let mut text = Vec::new();
        fill(&mut text)
            .and_then(|()| self.to.write_all(&text))
            .and_then(|()| self.to.flush())
            .map_err(|error| Error::output(&self.name, error))
    }
}

/// Replaces a file atomically: readers see either the old or the new text.
pub(super) fn replace(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let new = Replacement::new(&output_file::resolve_links(path)?.file_path()?);
        // A scraper that runs as another user must be able to read the file.
        new.create(0o666)?.write_all(text.as_bytes())?;
        new.put()
    };
    write().map_err(|error| Error::output(format_args!("the metrics to {}", path.display()), error))
}
