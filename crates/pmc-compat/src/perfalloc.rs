//! The `perfalloc` personality: started under that name, pmc accepts the options of PCP's `perfalloc`, so
//! existing scripts continue to work. It also reproduces the original's pitfalls, since scripts may depend on
//! them: the command starts without waiting for the lock, `-d` reports success before it tries the lock, and
//! getopt consumes the command's options. `pmc reserve` does not have these pitfalls.
//!
//! With COMMAND, the processes have the same roles as in the original: the started process becomes COMMAND,
//! and a child holds the lock. One bug is fixed, since no script can rely on it: in the original, the child
//! runs forever if the command exits before the child has asked to be notified.
//!
//! As in glibc, options may appear between operands. The options of COMMAND are therefore interpreted as
//! options of perfalloc, unless `--` precedes them or `POSIXLY_CORRECT` is set. An option that ends the
//! program (`-h`, `-v` or an invalid one) takes effect immediately, and the words after it are not parsed.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::getopt::{self, InvalidOption, OperandOrder};
use pmc_events::counter::reservation::{self, LockFile};
use pmc_sys::error::{Error, Exit, Result, message, say};
use pmc_sys::host::Host;
use pmc_sys::sys::background::{self, BackgroundSide};
use pmc_sys::sys::signal::{self, Signals};

const NAME: &str = "perfalloc";

/// The signals that end a reservation.
const ENDING: [i32; 2] = [signal::INT, signal::HUP];

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// `-h`.
    Help,
    /// `-v`.
    Version,
    /// An invalid option. The string is getopt's message without the program's name.
    Wrong(String),
    /// Reserve the counters.
    Reserve(Settings),
}

/// What to reserve, and how long.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether to run in the background: whether `-d` is the last of the options `-d` and `-D`.
    pub background: bool,
    /// `-f FILE`.
    pub file: Option<PathBuf>,
    /// The operands: the command.
    pub command: Vec<OsString>,
}

/// Parses the words after the program's name.
pub fn parse(words: impl IntoIterator<Item = OsString>, posixly_correct: bool) -> CommandLine {
    let order = if posixly_correct { OperandOrder::OptionsFirst } else { OperandOrder::Permuted };
    let wrong = |wrong| {
        CommandLine::Wrong(match wrong {
            InvalidOption::Unknown(letter) => format!("invalid option -- '{letter}'"),
            InvalidOption::NoValue(letter) => format!("option requires an argument -- '{letter}'"),
        })
    };
    let mut typed = Settings::default();
    let operands = getopt::read(words, "dDf:hv", order, wrong, |letter, value| {
        match letter {
            'd' => typed.background = true,
            'D' => typed.background = false,
            'h' => return Err(CommandLine::Help),
            'v' => return Err(CommandLine::Version),
            _ => typed.file = value.map(PathBuf::from),
        }
        Ok(())
    });
    match operands {
        Ok(command) => CommandLine::Reserve(Settings { command, ..typed }),
        Err(ended) => ended,
    }
}

/// Runs `perfalloc` if this process was started under that name; returns `None` otherwise.
pub fn main_if_named() -> Option<Exit> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    if Path::new(&program).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    let program = program.to_string_lossy();
    let result = match parse(words, std::env::var_os("POSIXLY_CORRECT").is_some()) {
        CommandLine::Help => print(&usage(&program)).map(|()| Exit::Done),
        CommandLine::Version => {
            print(&format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))).map(|()| Exit::Done)
        }
        CommandLine::Wrong(words) => {
            say::line(format!("{program}: {words}"));
            print(&usage(&program)).map(|()| Exit::Failure)
        }
        CommandLine::Reserve(typed) => reserve(typed),
    };
    Some(result.unwrap_or_else(|error| {
        if !error.is_quiet() {
            say::line(error.to_string());
        }
        error.exit_status()
    }))
}

fn usage(program: &str) -> String {
    format!(
        "Usage: {program} [OPTION]... [command [arg ...]]
Reserves the hardware performance counters while it runs; exits with status 1
if they cannot be reserved.

  -D       stay in the foreground (default)
  -d       go to the background
  -f FILE  lock file (default $PCP_PMDAS_DIR/perfevent/perflock)
  -h       print this and exit
  -v       print the version and exit

With a command, the reservation lasts as long as the command runs. Put -- before
a command that has options of its own.
"
    )
}

fn print(text: &str) -> Result<()> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| Error::output("standard output", error))
}

fn reserve(typed: Settings) -> Result<Exit> {
    let path = typed.file.unwrap_or_else(|| LockFile::default_path(&Host::live()));
    match typed.command.split_first() {
        Some((command, arguments)) => reserve_while(command, arguments, &path),
        None => {
            if typed.background {
                match background::fork().map_err(|error| failed("fork", &error))? {
                    BackgroundSide::Parent => return Ok(Exit::Done),
                    BackgroundSide::Child => settle_in_background(&path)?,
                }
            }
            hold(&path)
        }
    }
}

/// Executes the command in this process, while a child holds the lock and exits with the command. The command
/// cannot detect whether the lock is held.
fn reserve_while(command: &OsStr, arguments: &[OsString], path: &Path) -> Result<Exit> {
    let parent = std::process::id();
    match background::fork().map_err(|error| failed("fork", &error))? {
        BackgroundSide::Parent => {
            let error = Command::new(command).args(arguments).exec();
            Err(failed(&command.to_string_lossy(), &error))
        }
        BackgroundSide::Child => {
            // A SIGHUP that is ignored, as under nohup, would not report the end of a quick command.
            signal::restore_default(&ENDING);
            if !background::signal_at_end_of(parent).map_err(|error| failed("prctl", &error))? {
                return Ok(Exit::Done);
            }
            let lock_file = LockFile::open(path).map_err(words);
            std::env::set_current_dir("/").map_err(|error| failed("chdir", &error))?;
            background::close_standard_streams().map_err(|error| failed("/dev/null", &error))?;
            hold_file(&lock_file?)
        }
    }
}

/// Detaches like `daemon(3)`. As in the original, a relative path of the lock file is then relative to the
/// root directory.
fn settle_in_background(path: &Path) -> Result<()> {
    background::leave_session().map_err(|error| failed("daemon", &error))?;
    background::close_standard_streams().map_err(|error| failed(&path.to_string_lossy(), &error))
}

fn hold(path: &Path) -> Result<Exit> {
    signal::restore_default(&ENDING);
    hold_file(&LockFile::open(path).map_err(words)?)
}

/// Holds the lock until SIGINT or SIGHUP arrives; other signals keep their default action.
fn hold_file(file: &LockFile) -> Result<Exit> {
    let _reservation = file.reserve().map_err(words)?;
    Signals::catch(&ENDING).and_then(|signals| signals.wait()).map_err(|error| failed("signal", &error))?;
    Ok(Exit::Done)
}

/// Converts the error to the original's message, which names the failed call and the system's error.
fn words(error: reservation::ReservationError) -> Error {
    match error {
        reservation::ReservationError::Missing(path) => {
            Error::new(format!("open {}: No such file or directory", path.display()))
        }
        reservation::ReservationError::Unusable { path, source } => {
            failed(&format!("open {}", path.display()), &source)
        }
        reservation::ReservationError::NoLocks { source, .. } => failed("fcntl", &source),
        reservation::ReservationError::Refused { .. } => {
            Error::new("fcntl: Resource temporarily unavailable")
        }
    }
}

fn failed(call: &str, error: &io::Error) -> Error {
    Error::new(format!("{call}: {}", message(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, posixly_correct: bool) -> CommandLine {
        parse(line.split_whitespace().map(OsString::from), posixly_correct)
    }

    fn reserve(background: bool, file: &str, command: &[&str]) -> CommandLine {
        let file = (!file.is_empty()).then(|| file.into());
        CommandLine::Reserve(Settings {
            background,
            file,
            command: command.iter().map(OsString::from).collect(),
        })
    }

    #[test]
    fn options_may_follow_operands() {
        assert_eq!(read("ls -d -f x dir", false), reserve(true, "x", &["ls", "dir"]));
        assert_eq!(read("ls -d dir", true), reserve(false, "", &["ls", "-d", "dir"]));
        assert_eq!(read("-dD -- ls -d", false), reserve(false, "", &["ls", "-d"]));
        assert_eq!(read("a -- -d -- b", false), reserve(false, "", &["a", "-d", "--", "b"]));
        assert_eq!(read("-dfx - y", false), reserve(true, "x", &["-", "y"]));
    }

    #[test]
    fn first_terminating_option_wins() {
        assert_eq!(read("-hv", false), CommandLine::Help);
        assert_eq!(read("-v -x", false), CommandLine::Version);
        assert_eq!(read("ls -l", false), CommandLine::Wrong("invalid option -- 'l'".into()));
        assert_eq!(read("--help", false), CommandLine::Wrong("invalid option -- '-'".into()));
        assert_eq!(read("-f", false), CommandLine::Wrong("option requires an argument -- 'f'".into()));
    }
}
