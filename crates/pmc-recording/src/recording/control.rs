//! `--control fd:CTL[,ACK]` and `fifo:CTL[,ACK]`: commands from another process while counting or recording.
//! The code calls them orders.
//!
//! Receives bytes; returns [`ControlCommand`]s. Answers each order with a line on ACK: `ack` (as in perf) if
//! the order was carried out, otherwise `refused:` and the reason.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use pmc_events::counter::change::EventChange;
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::sys::descriptor;

/// An order from the other process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlCommand {
    /// Switch on all events, or the event with this name.
    Enable(Option<String>),
    Disable(Option<String>),
    /// Change all events that support the change, or the event with this name.
    Change(Option<String>, EventChange),
    Stop,
    Ping,
    /// Write the contents of the rings (only `record`).
    Snapshot,
    /// Print the names of the events, optionally with their sampling rates.
    EventList {
        rates: bool,
    },
}

impl ControlCommand {
    /// Parses an order in perf's syntax; `None` if the line is not a command.
    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let name = || named(rest);
        // An event name may contain spaces; a number cannot.
        let change = |change: fn(u64) -> EventChange| {
            let (name, number) = rest.rsplit_once(' ').unwrap_or(("", rest));
            let hexadecimal = number.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
            let number = hexadecimal.unwrap_or_else(|| number.parse()).ok().filter(|&number| number > 0)?;
            Some(Self::Change(named(name.trim()), change(number)))
        };
        Some(match (word, rest) {
            ("enable", _) => Self::Enable(name()),
            ("disable", _) => Self::Disable(name()),
            ("period", _) => change(EventChange::Period)?,
            ("freq", _) => change(EventChange::Frequency)?,
            ("move", _) => {
                change(EventChange::Address).filter(|order| !matches!(order, Self::Change(None, _)))?
            }
            ("stop", "") => Self::Stop,
            ("ping", "") => Self::Ping,
            ("snapshot", "") => Self::Snapshot,
            ("evlist", "") => Self::EventList { rates: false },
            ("evlist", "-F") => Self::EventList { rates: true },
            _ => return None,
        })
    }
}

/// The control channel.
#[derive(Debug)]
pub struct Control {
    orders: std::fs::File,
    acknowledge: Option<std::fs::File>,
    pending: Vec<u8>,
    /// Whether the writer has closed its end of the channel.
    closed: bool,
}

/// Maximum length of an order in bytes.
const LONGEST_ORDER: usize = 256;

impl Control {
    /// Opens the channel given in the option's text.
    ///
    /// # Errors
    /// If the text is malformed, or the FIFO or descriptor cannot be opened.
    pub fn open(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("--control {text}: expected fd:CTL[,ACK] or fifo:CTL[,ACK]"))
                .try_this("mkfifo ctl ack && pmc … --control fifo:ctl,ack …")
        };
        let (kind, ends) = text.split_once(':').ok_or_else(wrong)?;
        let (orders, acknowledge) = ends.split_once(',').map_or((ends, None), |(o, a)| (o, Some(a)));
        let open = |end: &str| -> Result<std::fs::File> {
            match kind {
                "fd" => {
                    let number = end.parse().map_err(|_| wrong())?;
                    descriptor::duplicate(number).map_err(|e| {
                        Error::io(format!("--control: descriptor {number}"), e)
                            .exit(pmc_sys::error::Exit::Usage)
                    })
                }
                // Open the FIFO for both reading and writing. Otherwise opening would block, and there would
                // be an end of file between two writers.
                "fifo" => OpenOptions::new()
                    .read(true)
                    .write(true)
                    .custom_flags(descriptor::NONBLOCK)
                    .open(end)
                    .map_err(|e| Error::io(format!("--control: opening `{end}`"), e)),
                _ => Err(wrong()),
            }
        };
        let control = Self {
            orders: open(orders)?,
            acknowledge: acknowledge.map(open).transpose()?,
            pending: Vec::new(),
            closed: false,
        };
        descriptor::set_nonblocking(&control.orders).map_err(|e| Error::io("--control", e))?;
        Ok(control)
    }

    /// Returns the orders received so far, oldest first. Warns about unknown words and skips them.
    pub(crate) fn orders(&mut self) -> Result<Vec<ControlCommand>> {
        let mut buffer = [0u8; LONGEST_ORDER];
        while !self.closed {
            match self.orders.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(got) => self.pending.extend_from_slice(&buffer[..got]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading --control", error)),
            }
        }
        let mut orders = Vec::new();
        while let Some(end) = self.pending.iter().position(|&b| b == b'\n' || b == 0) {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).trim().to_owned();
            match ControlCommand::parse(&line) {
                Some(order) => orders.push(order),
                None if line.is_empty() => {}
                None => say::warn(&Warning::UnknownOrder { word: line }),
            }
        }
        if self.pending.len() > LONGEST_ORDER {
            self.pending.clear();
        }
        Ok(orders)
    }

    /// Sends the answer that the order was carried out.
    pub(crate) fn acknowledge(&mut self) {
        self.answer("ack");
    }

    /// Sends the answer that the order was refused, with the reason.
    pub(crate) fn refuse(&mut self, why: &str) {
        self.answer(&format!("refused: {why}"));
    }

    fn answer(&mut self, line: &str) {
        if let Some(channel) = &mut self.acknowledge {
            let _ = channel.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Returns the descriptor to poll; `None` once the writer has closed the channel.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.orders.as_fd())
    }
}
