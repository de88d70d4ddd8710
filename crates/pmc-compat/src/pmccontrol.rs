//! The `pmccontrol` personality: under that name, pmc prints the lists of FreeBSD's pmccontrol(8). For the
//! other functions of that tool, it names the Linux equivalents. Exit statuses are those of sysexits(3).

use std::ffi::OsString;

use crate::getopt::{self, InvalidOption, OperandOrder};
use crate::{Action, words_if_named};
use pmc_sys::error::{Error, Exit, say};

// The exit status for usage errors, from sysexits(3).
const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;

const NAME: &str = "pmccontrol";
/// Option letters; a colon follows each option that takes a value.
const LETTERS: &str = "c:d:e:lLs";

/// Returns what to print if this process was started under the name `pmccontrol`; `None` otherwise.
pub fn if_named() -> Option<Result<Action, Exit>> {
    Some(list(words_if_named(NAME)?).map_err(|error| {
        say::error(&error);
        error.exit_status()
    }))
}

fn list(words: impl Iterator<Item = OsString>) -> Result<Action, Error> {
    let usage = |why: String| {
        let instead = "pmccontrol -l (counters), -L (events); docs/coming-from-pmcstat.md";
        Error::usage(format!("ERROR: {why}")).try_this(instead).exit(Exit::Command(USAGE))
    };
    let wrong = |wrong| match wrong {
        InvalidOption::Unknown(letter) => usage(format!("illegal option -- {letter}")),
        InvalidOption::NoValue(letter) => usage(format!("option requires an argument -- {letter}")),
    };
    let mut typed = Vec::new();
    let operands = getopt::read(words, LETTERS, OperandOrder::OptionsFirst, wrong, |letter, _| {
        typed.push(letter);
        Ok(())
    })?;
    if let Some(operand) = operands.first() {
        return Err(usage(format!("unexpected operand `{}`", operand.to_string_lossy())));
    }
    let unavailable = |letter: char, why: &str, instead: &str| {
        let error = Error::usage(format!("ERROR: option -{letter} is not available on Linux"));
        Err(error.why(why).try_this(instead).exit(Exit::Command(UNAVAILABLE)))
    };
    match typed[..] {
        ['l'] => Ok(Action::ListCounters),
        ['L'] => Ok(Action::List { words: Vec::new(), long: false }),
        ['s'] => unavailable(
            's',
            "the kernel has no such statistics for the whole machine, only for each recording",
            "pmc report --stats -i FILE shows lost records and throttling",
        ),
        [letter @ ('c' | 'd' | 'e'), ..] if typed.iter().all(|letter| "cde".contains(*letter)) => {
            unavailable(
                letter,
                "Linux cannot disable a single counter: the kernel may assign events to any counter",
                "pmc reserve COMMAND makes PCP's agent release its counters; pmc info shows which processes \
                 use counters",
            )
        }
        [] => Err(usage("one of -l, -L, -s, -c, -d and -e is required".to_owned())),
        _ => Err(usage("-l, -L and -s cannot be combined with other options".to_owned())),
    }
}
