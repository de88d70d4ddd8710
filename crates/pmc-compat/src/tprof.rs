//! `tprof(8)` of NetBSD: its subcommands and options, each translated into an [`Action`].

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use crate::getopt::{self, InvalidOption, OperandOrder};
use crate::{Action, LiveView, words_if_named};
use pmc_analysis::profile::counts::Aggregation;
use pmc_analysis::profile::sampled::SortKey;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::record::RecordDisplay;
use pmc_command::sampling_options::whole_machine;
use pmc_recording::recording::plan::{FilePlan, RecordRequest, RunSchedule};
use pmc_recording::recording::stat_request::{EventSelection, StatRequest, StatTiming};
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_view::report::ReportLayout;
use pmc_view::report::request::ReportRequest;
use pmc_view::report::row_layout::RowLayout;
use pmc_view::stat::StatLayout;

const NAME: &str = "tprof";

/// Default file for writing and reading samples.
pub const FILE: &str = "tprof.out";

/// Returns what to do if this process was started under the name `tprof`; `None` otherwise. [`status`]
/// converts its exit status.
pub fn if_named() -> Option<Result<Action, Exit>> {
    Some(match CommandLine::parse(words_if_named(NAME)?) {
        Ok(CommandLine { action: Subcommand::Help, .. }) => {
            let written = std::io::stdout().write_all(USAGE.as_bytes());
            Err(written.map_or(Exit::Failure, |()| Exit::Done))
        }
        Ok(line) => line.action(&Host::live()).map_err(|error| {
            say::error(&error);
            status(error.exit_status())
        }),
        Err(wrong) => {
            let usage = "tprof list, monitor, count, analyze or top; docs/coming-from-netbsd.md";
            say::error(&Error::usage(wrong).try_this(usage));
            Err(Exit::Failure)
        }
    })
}

/// Converts an exit status to tprof's.
pub fn status(exit: Exit) -> Exit {
    if exit == Exit::Usage { Exit::Failure } else { exit }
}

impl CommandLine {
    fn action(self, host: &Host) -> Result<Action> {
        let has = |letter| self.flags.contains(&letter);
        Ok(match self.action {
            Subcommand::Help | Subcommand::List => Action::List { words: Vec::new(), long: false },
            Subcommand::Monitor => {
                let mut request = RecordRequest::default();
                request.sample.events = self.events;
                request.sample.scope = whole_machine(host)?;
                request.sample.run_schedule =
                    RunSchedule { command: self.operands, ..RunSchedule::default() };
                let path = FilePlan::at(self.output.unwrap_or(FILE.to_owned()).into()).path;
                request.file.keeps_files = path.as_os_str() != "-";
                request.file.path = path;
                // `record` prints a summary at the end, as tprof does.
                let display = RecordDisplay { quiet: false, perf_summary: true, json: false };
                Action::Record(Box::new(request), display)
            }
            Subcommand::Count => {
                let request = StatRequest {
                    selection: EventSelection { events: self.events, ..EventSelection::default() },
                    scope: whole_machine(host)?,
                    is_whole_machine: true,
                    command: self.operands,
                    timing: StatTiming {
                        interval: self.interval_ms.map(std::time::Duration::from_millis),
                        ..StatTiming::default()
                    },
                    aggregation: Aggregation::Cpu,
                    ..StatRequest::default()
                };
                Action::Stat(Box::new(request), StatLayout::default())
            }
            Subcommand::Analyze => {
                // Samples that differ only in attributes that no option selects are added up. Without -s,
                // each address has its own row.
                let place = if has('s') { SortKey::Symbol } else { SortKey::SymbolOffset };
                let keys = [
                    (!has('P'), SortKey::Thread),
                    (!has('L'), SortKey::Tid),
                    (!has('C'), SortKey::Cpu),
                    (true, SortKey::Dso),
                    (true, place),
                ];
                let keys = keys.into_iter().filter(|(is_shown, _)| *is_shown);
                let keys: Vec<_> = keys.map(|(_, key)| key.into()).collect();
                let kernel = has('k').then(|| "[kernel.kallsyms]".to_owned());
                let mut request = ReportRequest {
                    input: Some(self.operands.into_iter().next().unwrap_or(FILE.into()).into()),
                    rows: RowLayout::new(&keys, &[])?,
                    only: RowSelection {
                        dsos: kernel.clone().map(|name| vec![name]),
                        ..RowSelection::default()
                    },
                    browses: false,
                    background: ScreenOptions::default().background()?,
                    style: ReportLayout {
                        show_samples: true,
                        filters: [("--pid", self.pid.map(|pid| pid.to_string())), ("--dsos", kernel)]
                            .into_iter()
                            .filter_map(|(option, value)| Some(format!("{option} {}", value?)))
                            .collect(),
                        ..ReportLayout::default()
                    },
                    ..ReportRequest::default()
                };
                request.samples.symbols = SymbolFiles::default().symbol_options()?;
                request.samples.selection.pids = self.pid.map(u32::cast_signed).into_iter().collect();
                Action::Report(Box::new(request))
            }
            Subcommand::Top => Action::Top(LiveView {
                events: self.events,
                command: self.operands,
                delay: self.interval_ms.map(Duration::from_millis),
                keys: has('c')
                    .then_some(SortKey::Cpu)
                    .into_iter()
                    .chain([SortKey::Dso, SortKey::Symbol])
                    .collect(),
                accumulate: self.flags.contains(&'a'),
                hide_user_symbols: !self.flags.contains(&'u'),
                show_samples: true,
                ..LiveView::default()
            }),
        })
    }
}

/// A parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The subcommand.
    pub action: Subcommand,
    /// `-e`, in pmc's event syntax.
    pub events: Vec<String>,
    /// `-o`.
    pub output: Option<String>,
    /// `-i`, in milliseconds.
    pub interval_ms: Option<u64>,
    /// `-p`.
    pub pid: Option<u32>,
    /// Option letters that take no value.
    pub flags: Vec<char>,
    /// The command or the file.
    pub operands: Vec<OsString>,
}

/// A subcommand.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "tprof's own names")]
pub enum Subcommand {
    #[default]
    Help,
    List,
    Monitor,
    Count,
    Analyze,
    Top,
}

/// The subcommands with their option letters; a colon follows each option that takes a value.
const ACTIONS: [(&str, Subcommand, &str); 6] = [
    ("-h", Subcommand::Help, ""),
    ("list", Subcommand::List, ""),
    ("monitor", Subcommand::Monitor, "e:o:"),
    ("count", Subcommand::Count, "e:i:"),
    ("analyze", Subcommand::Analyze, "CkLPp:s"),
    ("top", Subcommand::Top, "ace:i:u"),
];

/// The text of `tprof -h`.
pub const USAGE: &str = "\
usage:
  tprof list
        List the events
  tprof monitor [-e NAME[:OPTION][,SCALE]]... [-e NAME[:OPTION],=N]... [-o FILE] COMMAND [ARG]...
        Sample the whole machine while COMMAND runs, into FILE [default: tprof.out]
  tprof count -e NAME[:OPTION] [-e ...] [-i SECONDS] COMMAND [ARG]...
        Count on each CPU while COMMAND runs
  tprof analyze [-CkLPs] [-p PID] [FILE]
        Report the samples in FILE; combine CPUs (-C), threads (-L), processes (-P);
        the kernel only (-k), one process only (-p), by function (-s)
  tprof top [-acu] [-e NAME[,SCALE]]... [-i SECONDS]
        Show the running functions; accumulate (-a), one column per CPU (-c), include user mode (-u)
OPTION is u (user mode), k (the kernel) or uk. pmc ignores SCALE: the kernel adjusts the period.
";

impl CommandLine {
    /// Parses the words after the program's name.
    ///
    /// # Errors
    /// Returns the message to print for the first invalid word.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> std::result::Result<Self, String> {
        let mut words = words.into_iter();
        let name = words.next().ok_or("one of list, monitor, count, analyze, top is required")?;
        let action = ACTIONS.iter().find(|(own, ..)| name == *own);
        let &(name, action, letters) =
            action.ok_or_else(|| format!("unknown command `{}`", name.to_string_lossy()))?;
        let mut typed = Self { action, ..Self::default() };
        let wrong = |wrong| match wrong {
            InvalidOption::Unknown(letter) => format!("{name}: unknown option -- {letter}"),
            InvalidOption::NoValue(letter) => format!("option requires an argument -- {letter}"),
        };
        typed.operands = getopt::read(words, letters, OperandOrder::OptionsFirst, wrong, |letter, value| {
            match value {
                Some(value) => typed.take(letter, value.to_string_lossy().into_owned())?,
                None => typed.flags.push(letter),
            }
            Ok(())
        })?;
        match action {
            Subcommand::Monitor | Subcommand::Count if typed.operands.is_empty() => {
                Err(format!("{name}: a command is required"))
            }
            Subcommand::Count if typed.events.is_empty() => Err("count: -e is required".to_owned()),
            Subcommand::List | Subcommand::Top if !typed.operands.is_empty() => {
                Err(format!("{name} does not accept operands"))
            }
            Subcommand::Analyze if typed.operands.len() > 1 => {
                Err("analyze accepts only one file".to_owned())
            }
            _ => Ok(typed),
        }
    }

    fn take(&mut self, letter: char, value: String) -> std::result::Result<(), String> {
        match letter {
            'e' => self.events.push(event(&value)?),
            'o' => self.output = Some(value),
            'p' => self.pid = Some(value.parse().map_err(|_| format!("-p {value}: not a process id"))?),
            _ => {
                let seconds = value.parse().ok().filter(|&s: &f64| s.is_finite() && s >= 0.001);
                let seconds = seconds.ok_or_else(|| format!("-i {value}: must be seconds greater than 0"))?;
                self.interval_ms = Some((seconds * 1000.0) as u64);
            }
        }
        Ok(())
    }
}

/// Converts `NAME[:uk][,SCALE|,=N]` to pmc's syntax. In tprof, a scale states how much rarer an event is than
/// cycles, so that both cause the same number of interrupts. On Linux, the kernel adjusts the period
/// automatically.
fn event(text: &str) -> std::result::Result<String, String> {
    let Some((name, rate)) = text.rsplit_once(',') else { return Ok(text.to_owned()) };
    match rate.strip_prefix('=') {
        Some(number) => match number.parse::<u64>() {
            Ok(number @ 1..) => Ok(format!("{name},period={number}")),
            _ => Err(format!("-e {text}: `=` must be followed by a number of events greater than 0")),
        },
        None => match rate.parse::<f64>() {
            Ok(scale) if scale.is_finite() && scale > 0.0 => Ok(name.to_owned()),
            _ => Err(format!("-e {text}: the scale must be a number greater than 0, or =N")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> std::result::Result<CommandLine, String> {
        CommandLine::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn tprof_options_parse() {
        let typed = read("monitor -e cycles:uk,=1000 -e instructions,10 -o x sleep -e 5").unwrap();
        assert_eq!(typed.events, ["cycles:uk,period=1000", "instructions"]);
        assert_eq!((typed.output.as_deref(), typed.operands.len()), (Some("x"), 3));
        let typed = read("analyze -CLPsk -p 12 file").unwrap();
        assert_eq!((typed.flags.as_slice(), typed.pid), (&['C', 'L', 'P', 's', 'k'][..], Some(12)));
        assert_eq!(read("count -e a -i 0.5 true").unwrap().interval_ms, Some(500));
        assert_eq!(read("list").unwrap().action, Subcommand::List);
        assert_eq!(read("top -acu -i2").unwrap().interval_ms, Some(2000));
    }

    #[test]
    fn invalid_options_are_reported() {
        for (line, words) in [
            ("", "is required"),
            ("bottom", "unknown command"),
            ("monitor", "a command is required"),
            ("count true", "-e is required"),
            ("count -o x true", "unknown option -- o"),
            ("monitor -e", "requires an argument"),
            ("monitor -e a,=0 true", "greater than 0"),
            ("monitor -e a,x true", "scale"),
            ("top -i 0", "seconds"),
            ("analyze a b", "one file"),
            ("analyze -p x a", "not a process id"),
            ("list x", "does not accept operands"),
        ] {
            assert!(read(line).unwrap_err().contains(words), "{line}: {:?}", read(line));
        }
    }
}
