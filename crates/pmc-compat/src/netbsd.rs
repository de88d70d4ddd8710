//! `pmc -c EVENT COMMAND` and `pmc -C` from NetBSD 2 to 7, which count an event in user mode and in the
//! kernel, and print one line. Exit statuses match those of NetBSD's tool, which does not pass on the
//! command's status.

use std::ffi::OsString;

use pmc_command::sampling_options;
use pmc_events::counter::Levels;
use pmc_events::counter::counter_set::{CounterReading, CounterSet};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::event::EventParser;
use pmc_recording::recording::counting::{CountPlan, CountingSetup, IntervalReadings, Observer, measure};
use pmc_recording::recording::launch;
use pmc_recording::recording::plan::{MeasurementScope, RunSchedule};
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::sys::process::Streams;

const USAGE: u8 = 1;
const CANNOT_START: u8 = 4;
const NO_COMMAND: u8 = 6;

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// `-C`: clean up after a `pmc` that was killed.
    Cancel,
    /// `-c EVENT COMMAND …`.
    Count {
        /// The event as the user typed it.
        event: String,
        /// The command with its arguments.
        command: Vec<OsString>,
    },
}

/// Parses the words. Returns `None` if they do not have the form of NetBSD's command.
///
/// # Errors
/// Returns the message to print for an invalid command line.
pub fn parse(words: &[OsString]) -> Option<Result<CommandLine, &'static str>> {
    match words.split_first()? {
        (first, []) if first == "-C" => Some(Ok(CommandLine::Cancel)),
        (first, _) if first == "-C" => Some(Err("-C stands alone")),
        (first, rest) if first == "-c" => Some(match rest {
            [event, command @ ..] if !command.is_empty() => {
                let event = event.to_string_lossy().into_owned();
                Ok(CommandLine::Count { event, command: command.to_vec() })
            }
            [_] => Err("no command given"),
            _ => Err("option requires an argument -- c"),
        }),
        _ => None,
    }
}

/// Runs the command line if it has the form of NetBSD's `pmc`. `words` excludes the program's name.
pub fn if_old(words: &[OsString]) -> Option<Exit> {
    let done = match parse(words)? {
        Err(wrong) => {
            let error = Error::usage(wrong).try_this("pmc -c EVENT COMMAND, or pmc stat --user-kernel");
            Err(error.exit(Exit::Command(USAGE)))
        }
        Ok(CommandLine::Cancel) => {
            say::note("nothing to cancel: the kernel closes counters when their process ends");
            Ok(Exit::Done)
        }
        Ok(CommandLine::Count { event, command }) => count(&event, command),
    };
    Some(done.unwrap_or_else(|error| {
        say::error(&error);
        match error.exit_status() {
            Exit::Usage => Exit::Command(USAGE),
            Exit::NotFound | Exit::NotExecutable => Exit::Command(NO_COMMAND),
            exit => exit,
        }
    }))
}

fn count(event: &str, command: Vec<OsString>) -> Result<Exit> {
    let host = &Host::live();
    let scope = MeasurementScope::Command;
    let mut parser = EventParser::new(host).with_target(launch::subject(&scope, &command));
    // A privilege level appended to the text applies only to the last event.
    let whole = parser.parse_single(event, &format!("pmc stat --user-kernel -e {event} -- COMMAND"))?;
    sampling_options::check_levels("-c", whole.iter().flat_map(|group| &group.events))?;
    let mut groups = Vec::new();
    for level in ["usr", "os"] {
        groups.extend(parser.parse(&format!("{event},{level}"))?.into_iter().map(|group| (group, None)));
    }
    // Keyboard signals are meant for the command, so pmc continues until the command has ended.
    let signals = launch::signals(&[])?;
    let setup = CountingSetup {
        host,
        plan: CountPlan {
            groups,
            scope,
            inherit: true,
            levels: Levels::AsWritten,
            interval_ns: None,
            interval_count: None,
        },
        run_schedule: RunSchedule { command, ..RunSchedule::default() },
        streams: Streams::Shared,
        signals: &signals,
        control: None,
        watcher: None,
    };
    let run = measure(setup, &mut RefusalCheck { host, event })?;
    // The first half of the events counts in user mode. On a hybrid machine, each half consists of several
    // events.
    let users = run.set.specs().len() / 2;
    let sum = |is_user: bool| {
        let own = |reading: &&CounterReading| (reading.event < users) == is_user;
        let counts = run.readings.iter().filter(own).filter_map(|reading| reading.count?.scaled());
        counts.reduce(|a, b| a + b)
    };
    let kernel = sum(false).map(|count| format!(" kernel {count:.0}")).unwrap_or_default();
    let line = format!("{event}: user {:.0}{kernel}\n", sum(true).unwrap_or_default());
    let written = std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes());
    written.map_err(|error| Error::output("the counts", error))?;
    Ok(Exit::Done)
}

/// Reports an event that cannot be counted, before the command starts.
struct RefusalCheck<'a> {
    host: &'a Host,
    event: &'a str,
}

impl Observer for RefusalCheck<'_> {
    fn opened(&mut self, set: &CounterSet, _: &[ThreadInfo]) -> Result<()> {
        let users = set.specs().len() / 2;
        let refused = |range: std::ops::Range<usize>| {
            set.refusals().skip(range.start).take(range.len()).flatten().next()
        };
        let explain = |refusal: &pmc_events::counter::refusal::Refusal| {
            refusal.clone().isolate().explain(&MachineFacts::own(self.host))
        };
        if let Some(refusal) = refused(0..users) {
            let error = explain(refusal).into_error(format!("counting {}", self.event));
            return Err(error.exit(Exit::Command(CANNOT_START)));
        }
        if let Some(refusal) = refused(users..set.specs().len()) {
            say::note(format!("user mode only: {}", explain(refusal).cause));
        }
        Ok(())
    }

    fn interval(&mut self, _: &IntervalReadings<'_>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Result<CommandLine, &'static str>> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn netbsd_pmc_options_parse() {
        assert_eq!(read("-C"), Some(Ok(CommandLine::Cancel)));
        let count = |command: &[&str]| {
            let command = command.iter().map(OsString::from).collect();
            Some(Ok(CommandLine::Count { event: "cycles".into(), command }))
        };
        assert_eq!(read("-c cycles ls -l"), count(&["ls", "-l"]));
        assert_eq!(read("-c cycles"), Some(Err("no command given")));
        assert_eq!(read("-c"), Some(Err("option requires an argument -- c")));
        assert_eq!(read("-C x"), Some(Err("-C stands alone")));
        assert_eq!((read("stat -C 0"), read("")), (None, None));
    }
}
