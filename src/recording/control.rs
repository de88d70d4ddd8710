//! `--control fd:CTL[,ACK]` and `fifo:CTL[,ACK]`: orders from another process while counting or recording.
//!
//! Receives bytes, hands on [`Order`]s; each is answered with `ack` and a newline on ACK, as perf answers.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{Error, Result, Warning, say};
use crate::sys::descriptor;

/// What the other process wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Enable,
    Disable,
    Stop,
    Ping,
    /// `record`: write what the rings hold.
    Snapshot,
}

/// The channel.
#[derive(Debug)]
pub(crate) struct Control {
    orders: std::fs::File,
    acknowledge: Option<std::fs::File>,
    pending: Vec<u8>,
    /// The writer's end is closed: there is nothing more to come.
    closed: bool,
}

/// An order longer than this is not one.
const LONGEST_ORDER: usize = 256;

impl Control {
    /// Opens the channel that the option names.
    pub(crate) fn open(text: &str) -> Result<Self> {
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
                            .exit(crate::error::Exit::Usage)
                    })
                }
                // Read and write, so that opening waits for nobody and no end of file comes between two
                // writers.
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

    /// The orders that have come, in order. Words that are none are named and left.
    pub(crate) fn orders(&mut self) -> Result<Vec<Order>> {
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
            let word = String::from_utf8_lossy(&line[..end]).trim().to_owned();
            match word.as_str() {
                "enable" => orders.push(Order::Enable),
                "disable" => orders.push(Order::Disable),
                "stop" => orders.push(Order::Stop),
                "ping" => orders.push(Order::Ping),
                "snapshot" => orders.push(Order::Snapshot),
                "" => {}
                other => say::warn(&Warning::UnknownOrder { word: other.to_owned() }),
            }
        }
        if self.pending.len() > LONGEST_ORDER {
            self.pending.clear();
        }
        Ok(orders)
    }

    /// Says that an order was carried out.
    pub(crate) fn acknowledge(&mut self) {
        if let Some(channel) = &mut self.acknowledge {
            let _ = channel.write_all(b"ack\n");
        }
    }

    /// The channel to wait for; `None` when nothing can come any more.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        (!self.closed).then(|| self.orders.as_fd())
    }
}
