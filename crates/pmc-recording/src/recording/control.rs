//! `--control fd:CTL[,ACK]` and `fifo:CTL[,ACK]`: while pmc counts or records, another process can send it
//! commands.
//!
//! Receives bytes; returns [`ControlCommand`]s. Answers each command with a line on ACK: `ack` (as in perf)
//! if the command was carried out, otherwise `refused:` and the reason.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::str::FromStr;

use pmc_events::counter::change::EventChange;
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::sys::descriptor;

/// The syntax of all commands, for the warning about an unknown one.
const COMMANDS: &str = "commands are enable [EVENT], disable [EVENT], period [EVENT] N, freq [EVENT] HZ, move \
                        EVENT ADDRESS, evlist [-F], ping, snapshot, stop";

/// A command from the other process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlCommand {
    /// Switch on the event with this name, or all events.
    Enable(Option<String>),
    /// Switch off the event with this name, or all events.
    Disable(Option<String>),
    /// Change the event with this name, or all events that support the change.
    Change(Option<String>, EventChange),
    /// End the measurement.
    Stop,
    /// Do nothing but answer.
    Ping,
    /// Write the contents of the rings (only `record`).
    Snapshot,
    /// Print the names of the events.
    EventList {
        /// Whether to print their sampling rates, too.
        rates: bool,
    },
}

impl ControlCommand {
    /// Parses a command in perf's syntax; `None` if the line is not a command.
    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').map_or((line, ""), |(word, rest)| (word, rest.trim()));
        let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
        let name = || named(rest);
        // An event name may contain spaces, but a number may not.
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
                change(EventChange::Address).filter(|command| !matches!(command, Self::Change(None, _)))?
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
    commands: std::fs::File,
    acknowledge: Option<std::fs::File>,
    lines: CommandLines,
    /// Whether the writer has closed its end of the channel.
    closed: bool,
}

/// Maximum length of a command in bytes.
const LONGEST_ORDER: usize = 256;
/// Maximum number of bytes to read before carrying out the commands in them. A process that never stops
/// writing must not keep pmc from measuring.
const MAX_BYTES_PER_READ: usize = 64 << 10;

/// Splits the bytes of the channel into commands.
#[derive(Debug, Default)]
pub struct CommandLines {
    /// The start of a command whose end has not arrived yet.
    pending: Vec<u8>,
    /// Whether `pending` has exceeded [`LONGEST_ORDER`], so that the rest of its line is skipped.
    is_too_long: bool,
}

impl CommandLines {
    /// Adds bytes, and passes each command that is now complete to `take`: the command, or else the line that
    /// is not a command. Lines that are too long are not commands.
    pub fn add(&mut self, bytes: &[u8], mut take: impl FnMut(Result<ControlCommand, String>)) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n' || byte == 0) {
            let line = part.strip_suffix(b"\n").or(part.strip_suffix(b"\0"));
            let text = line.unwrap_or(part);
            let room = LONGEST_ORDER - self.pending.len();
            self.is_too_long |= text.len() > room;
            self.pending.extend(&text[..text.len().min(room)]);
            if line.is_none() {
                return;
            }
            let text = String::from_utf8_lossy(&self.pending).trim().to_owned();
            match ControlCommand::parse(&text).filter(|_| !self.is_too_long) {
                Some(command) => take(Ok(command)),
                None if text.is_empty() && !self.is_too_long => {}
                None => take(Err(text)),
            }
            self.is_too_long = false;
            self.pending.clear();
        }
    }
}

/// The two ends of a control channel, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlChannel {
    /// Where commands arrive.
    commands: ControlEnd,
    /// Where pmc answers.
    answers: Option<ControlEnd>,
}

/// One end of a control channel.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ControlEnd {
    /// An open descriptor.
    Descriptor(i32),
    /// The path of a FIFO.
    Fifo(PathBuf),
}

impl FromStr for ControlChannel {
    type Err = Error;

    /// Parses `fd:CTL[,ACK]` or `fifo:CTL[,ACK]`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage("expected fd:CTL[,ACK] or fifo:CTL[,ACK]")
                .try_this("mkfifo ctl ack && pmc … --control fifo:ctl,ack …")
        };
        let (kind, ends) = text.split_once(':').ok_or_else(wrong)?;
        let (commands, answers) = ends.split_once(',').map_or((ends, None), |(o, a)| (o, Some(a)));
        let end = |end: &str| match kind {
            "fd" => end.parse().map(ControlEnd::Descriptor).map_err(|_| wrong()),
            "fifo" => Ok(ControlEnd::Fifo(end.into())),
            _ => Err(wrong()),
        };
        Ok(Self { commands: end(commands)?, answers: answers.map(end).transpose()? })
    }
}

impl ControlEnd {
    fn open(&self) -> Result<File> {
        match self {
            Self::Descriptor(number) => descriptor::duplicate(*number).map_err(|error| {
                Error::io(format!("--control: descriptor {number}"), error).exit(Exit::Usage)
            }),
            // Open the FIFO for both reading and writing. Otherwise, opening would block until there is a
            // writer, and reading would return end of file between two writers.
            Self::Fifo(path) => OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(descriptor::NONBLOCK)
                .open(path)
                .map_err(|error| Error::io(format!("--control: opening `{}`", path.display()), error)),
        }
    }
}

impl Control {
    /// Opens the channel.
    ///
    /// # Errors
    /// Fails if the FIFO or descriptor cannot be opened.
    pub fn open(channel: &ControlChannel) -> Result<Self> {
        let control = Self {
            commands: channel.commands.open()?,
            acknowledge: channel.answers.as_ref().map(ControlEnd::open).transpose()?,
            lines: CommandLines::default(),
            closed: false,
        };
        descriptor::set_nonblocking(&control.commands).map_err(|e| Error::io("--control", e))?;
        Ok(control)
    }

    /// Returns the commands received so far, oldest first. Warns about unknown words and skips them.
    pub(crate) fn commands(&mut self) -> Result<Vec<ControlCommand>> {
        let mut buffer = [0u8; 8 << 10];
        let (mut commands, mut read) = (Vec::new(), 0);
        while !self.closed && read < MAX_BYTES_PER_READ {
            match self.commands.read(&mut buffer) {
                Ok(0) => self.closed = true,
                Ok(got) => {
                    read += got;
                    self.lines.add(&buffer[..got], |command| match command {
                        Ok(command) => commands.push(command),
                        Err(word) => say::warn(
                            Warning::new(format!("--control: unknown command `{word}`")).advise(COMMANDS),
                        ),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading --control", error)),
            }
        }
        Ok(commands)
    }

    /// Acknowledges that the command was carried out.
    pub(crate) fn acknowledge(&mut self) {
        self.answer("ack");
    }

    /// Answers that the command was refused, and why.
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
        (!self.closed).then(|| self.commands.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut CommandLines, bytes: &[u8]) -> Vec<std::result::Result<ControlCommand, String>> {
        let mut all = Vec::new();
        lines.add(bytes, |command| all.push(command));
        all
    }

    #[test]
    fn orders_end_at_a_newline_or_zero_wherever_reads_end() {
        let text = b"stop\nenable a b \0\n\n  ping\r\nmove x 0x10\nmove 1\nperiod 0\nevlist -F\n";
        let whole = taken(&mut CommandLines::default(), text);
        let (mut lines, mut parts) = (CommandLines::default(), Vec::new());
        text.iter().for_each(|byte| parts.extend(taken(&mut lines, &[*byte])));
        assert_eq!(whole, parts);
        assert_eq!(
            whole,
            [
                Ok(ControlCommand::Stop),
                Ok(ControlCommand::Enable(Some("a b".into()))),
                Ok(ControlCommand::Ping),
                Ok(ControlCommand::Change(Some("x".into()), EventChange::Address(16))),
                Err("move 1".into()),
                Err("period 0".into()),
                Ok(ControlCommand::EventList { rates: true }),
            ]
        );
    }

    /// The end of a line that is too long once counted as a command.
    #[test]
    fn no_part_of_a_long_line_is_an_order() {
        for filler in [" ", "x "] {
            for length in [LONGEST_ORDER - 4, LONGEST_ORDER, LONGEST_ORDER + 1, 5 * LONGEST_ORDER] {
                let long = filler.repeat(length) + "stop\nping\n";
                let mut lines = CommandLines::default();
                let mut all = Vec::new();
                long.as_bytes().chunks(LONGEST_ORDER).for_each(|part| all.extend(taken(&mut lines, part)));
                assert!(matches!(&all[..], [.., Ok(ControlCommand::Ping)]), "{all:?}");
                let stops = all.contains(&Ok(ControlCommand::Stop));
                assert_eq!(stops, filler == " " && length + 4 <= LONGEST_ORDER, "{length}");
            }
        }
    }

    #[test]
    fn one_call_reads_a_bounded_part() {
        use std::io::Write as _;
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20).expect("a pipe of 1 MiB");
        writer.write_all("ping\n".repeat(100_000).as_bytes()).expect("it has room");
        let text = format!("fd:{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let mut control = Control::open(&text.parse().expect("a channel")).expect("an open channel");
        let first = control.commands().expect("commands").len();
        assert!(first <= MAX_BYTES_PER_READ.div_ceil(5) + (8 << 10), "{first}");
        let mut all = first;
        while all < 100_000 {
            all += control.commands().expect("commands").len();
        }
        assert_eq!(all, 100_000);
    }
}
