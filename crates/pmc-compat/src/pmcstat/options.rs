//! Options of the `pmcstat` personality: FreeBSD's letters, whose order matters.
//!
//! A setting applies to every `-p`, `-s`, `-P` and `-S` after it, and a letter without a value toggles its
//! setting. This module parses the arguments into a [`CommandLine`], and checks only the rules that
//! apply on every machine.

use std::ffi::OsString;

use crate::getopt::{self, InvalidOption, OperandOrder};

/// Option letters; a colon follows each option that takes a value.
const LETTERS: &str = "ACD:EF:G:ILM:NO:P:R:S:TUWZa:c:def:gi:k:l:m:n:o:p:qr:s:t:u:vw:z:";

/// A requested counter, with the settings that precede it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counter {
    /// The event as the user typed it.
    pub spec: String,
    /// Whether the counter is system-wide (`-s`, `-S`).
    pub system: bool,
    /// Whether the counter samples (`-P`, `-S`).
    pub samples: bool,
    /// CPUs (`-c`): a list, or `*`.
    pub cpus: Option<String>,
    /// `-d`.
    pub descendants: bool,
    /// `-E`.
    pub log_exit: bool,
    /// `-W`.
    pub log_cswitch: bool,
    /// Not `-N`.
    pub chains: bool,
    /// `-C`.
    pub cumulative: bool,
    /// Sampling rate (`-n`). `None` selects FreeBSD's default, which depends on the event.
    pub rate: Option<u64>,
}

impl Counter {
    /// Returns the letter of the option that requests this kind of counter.
    pub fn letter(&self) -> char {
        match (self.system, self.samples) {
            (false, false) => 'p',
            (true, false) => 's',
            (false, true) => 'P',
            (true, true) => 'S',
        }
    }
}

/// A parsed command line.
#[derive(Debug, Default, PartialEq)]
pub struct CommandLine {
    /// The counters, in the order of the command line.
    pub counters: Vec<Counter>,
    /// `-t`: process ids and name patterns.
    pub targets: Vec<String>,
    /// `-w` and `-l`, in seconds.
    pub interval: Option<f64>,
    #[allow(missing_docs, reason = "explained above")]
    pub seconds: Option<f64>,
    /// The value of the last `-c`, which selects CPUs when a log is read.
    pub cpus: Option<String>,
    /// The values of the other letters, in order. If a letter is repeated, its last value counts.
    pub values: Vec<(char, String)>,
    /// Option letters that take no value.
    pub flags: Vec<char>,
    /// The command with its arguments.
    pub command: Vec<OsString>,
}

/// The usage message for invalid options.
pub const USAGE: &str = "\
usage: pmcstat [options] [COMMAND [ARG]...]
  -p SPEC, -s SPEC   count in processes, on CPUs        -P SPEC, -S SPEC   sample processes, CPUs
  for the counters after them:
    -c LIST  CPUs [default: all]      -C  cumulative counts          -d  descendants, too
    -E  log counts at exits           -W  log counts at switches     -N  no call chains
    -n RATE  events between samples   -U  user chains (always on)
  -t PID|REGEX  attach     -l SEC  end after     -w SEC  print every [default: 5]
  -o FILE  text output     -O FILE|HOST:PORT  log     -T  top mode     -f threshold=PERCENT
  -L  list events          -u SPEC  describe an event     -q, -v  quiet, verbose
  -R FILE  read a log: as text, or
    -G FILE  callers     -F FILE  callgrind     -m FILE  functions     -a FILE  lines of source
    -g  gprof's files, -D DIR  where, -M FILE  file map, -e  wide counters
    -z DEPTH  callers at most     -A, -I  address, offset in place of the function
    -c LIST, -i TID  some CPUs, one thread     -r DIR  root of files
";

impl CommandLine {
    /// Whether the letter was given.
    pub fn has(&self, letter: char) -> bool {
        self.flags.contains(&letter) || self.value(letter).is_some()
    }

    /// Returns the value of a letter.
    pub fn value(&self, letter: char) -> Option<&str> {
        self.values.iter().rev().find(|(of, _)| *of == letter).map(|(_, value)| value.as_str())
    }

    /// Parses the words after the program's name.
    ///
    /// # Errors
    /// Returns the message to print for the first invalid option or combination.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut typed = Self::default();
        let mut next = Counter { chains: true, ..Counter::default() };
        let wrong = |wrong| match wrong {
            InvalidOption::Unknown(letter) => format!("illegal option -- {letter}"),
            InvalidOption::NoValue(letter) => format!("option requires an argument -- {letter}"),
        };
        typed.command = getopt::read(words, LETTERS, OperandOrder::OptionsFirst, wrong, |letter, value| {
            match value {
                Some(value) => typed.take(letter, value.to_string_lossy().into_owned(), &mut next)?,
                None => typed.flag(letter, &mut next),
            }
            Ok(())
        })?;
        typed.check()?;
        Ok(typed)
    }

    fn flag(&mut self, letter: char, next: &mut Counter) {
        match letter {
            'C' => next.cumulative = !next.cumulative,
            'd' => next.descendants = !next.descendants,
            'E' => next.log_exit = !next.log_exit,
            'W' => next.log_cswitch = !next.log_cswitch,
            'N' => next.chains = !next.chains,
            _ => {}
        }
        self.flags.push(letter);
    }

    fn take(&mut self, letter: char, value: String, next: &mut Counter) -> Result<(), String> {
        let seconds = |text: &str| {
            let number = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
            number.ok_or_else(|| format!("Illegal value \"{text}\" of -{letter}: seconds, above 0"))
        };
        match letter {
            'p' | 's' | 'P' | 'S' => {
                let (system, samples) = (letter.eq_ignore_ascii_case(&'s'), letter.is_ascii_uppercase());
                self.counters.push(Counter { spec: value, system, samples, ..next.clone() });
            }
            'c' => {
                next.cpus = Some(value).filter(|cpus| cpus != "*");
                self.cpus.clone_from(&next.cpus);
            }
            'n' => {
                let rate = value.parse().ok().filter(|rate| *rate > 0);
                next.rate = Some(rate.ok_or_else(|| format!("Illegal count value \"{value}\""))?);
            }
            't' => self.targets.push(value),
            'w' => self.interval = Some(seconds(&value)?),
            'l' => self.seconds = Some(seconds(&value)?),
            _ => self.values.push((letter, value)),
        }
        if matches!(letter, 'c' | 'n') {
            self.flags.push(letter);
        }
        Ok(())
    }

    /// Checks the rules of pmcstat(8), in the same order as pmcstat(8).
    fn check(&self) -> Result<(), String> {
        let any = |of: fn(&Counter) -> bool| self.counters.iter().any(of);
        let [process, system] = [any(|one| !one.system), any(|one| one.system)];
        let [counting, sampling] = [any(|one| !one.samples), any(|one| one.samples)];
        let has = |letters: &str| letters.chars().any(|letter| self.has(letter));
        let has_target = !self.command.is_empty() || !self.targets.is_empty();
        let logs = any(|one| one.log_exit || one.log_cswitch);
        let rules = [
            (
                self.counters.is_empty() && !has("RLu"),
                "at least one of -p, -s, -P, -S, -R, -L or -u is required",
            ),
            (has("O") && has("R"), "options -O and -R are mutually exclusive"),
            (has("T") && self.seconds.is_some(), "options -T and -l are mutually exclusive"),
            (has("am") && !has("R"), "options -m and -a require -R"),
            (has("am") && has("gG"), "options -m and -a are mutually exclusive with -g and -G"),
            (
                has("R") && (has_target || !self.counters.is_empty()),
                "option -R cannot be combined with a command, -t or counters",
            ),
            (
                !self.targets.is_empty() && !process && !has("RLu"),
                "option -t requires a process mode counter (-p or -P)",
            ),
            (
                !has_target && (process || has("dEW")),
                "options -d, -E, -W, -p and -P require a command, or -t with running processes",
            ),
            (has("dEW") && !process, "options -d, -E and -W require a process mode counter (-p or -P)"),
            (has("c") && !system && !has("R"), "option -c requires a system mode counter (-s or -S), or -R"),
            (has("CW") && !counting && !has("R"), "options -C and -W require a counting mode counter"),
            (
                has("Nn") && !sampling || has("O") && !sampling && !logs,
                "options -N, -n and -O require a sampling mode counter",
            ),
            (has("eD") && !has("g"), "options -e and -D require -g"),
            (has("AI") && !has("mG"), "options -A and -I require -m or -G"),
            (has("f") && !has("T"), "option -f requires -T"),
            (has("M") && !has("gR"), "option -M requires -g or -R"),
            (counting && sampling && !has("O"), "option -O is required to count and sample at the same time"),
        ];
        rules.iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, words)| Err((*words).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandLine, String> {
        CommandLine::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_apply_to_later_events() {
        let typed = read("-d -w 12 -p k7-dc-misses -d -C -p ic-misses firefox -d").unwrap();
        let [first, second] = &typed.counters[..] else { panic!("{typed:?}") };
        assert_eq!(
            (first.descendants, first.cumulative, first.system, first.samples),
            (true, false, false, false)
        );
        assert_eq!((second.descendants, second.cumulative), (false, true));
        assert_eq!((typed.interval, typed.command.len()), (Some(12.0), 2));
        let typed = read("-O x -c 0,2 -s a -c * -n 100 -N -S b").unwrap();
        let [first, second] = &typed.counters[..] else { panic!("{typed:?}") };
        assert_eq!(first.cpus.as_deref(), Some("0,2"));
        assert_eq!(
            (second.cpus.as_deref(), second.rate, second.chains, second.samples),
            (None, Some(100), false, true)
        );
    }

    #[test]
    fn invalid_command_lines_are_rejected() {
        for (line, words) in [
            ("", "at least one of"),
            ("-x", "illegal option -- x"),
            ("-p", "requires an argument -- p"),
            ("-O a -R b", "-O and -R"),
            ("-T -l 5 -S a", "-T and -l"),
            ("-m a", "at least one of"),
            ("-m a -p b true", "require -R"),
            ("-R a true", "cannot be combined with a command"),
            ("-t 1 -s a", "requires a process mode"),
            ("-d -s a true", "require a process mode"),
            ("-p a", "require a command"),
            ("-c 0 -p a true", "-c requires"),
            ("-C -P a -O x true", "require a counting"),
            ("-n 5 -p a true", "require a sampling"),
            ("-e -p a true", "require -g"),
            ("-A -R a", "-A and -I require"),
            ("-f threshold=1 -p a true", "-f requires"),
            ("-p a -P b true", "-O is required"),
            ("-w x -p a true", "Illegal value"),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(words), "{line}: {said}");
        }
        for line in [
            "-L",
            "-u cycles",
            "-R x -m -",
            "-E -p a -O log make",
            "-T -S instructions",
            "-s a true",
            "-S a -O f true",
            "-S a -o f true",
            "-R x -c 0,1",
        ] {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line));
        }
    }
}
