//! `pmcstat`, FreeBSD's tool that counts and samples: its options, its table of counters, and its formats for
//! logs. The program translates the options into requests.

pub mod counters;
pub mod log;
pub mod options;
pub mod text;

use pmc_sys::error::Exit;
use pmc_sys::error::advice::{AdvisedOption, OptionLetters};

/// The name under which pmc is pmcstat.
pub const NAME: &str = "pmcstat";
/// pmcstat's letters for the options that pmc's advice mentions.
pub const LETTERS: OptionLetters = &[
    (AdvisedOption::Period, "-n"),
    (AdvisedOption::Input, "-R"),
    (AdvisedOption::Processes, "-t"),
    (AdvisedOption::Recording, "-O"),
    (AdvisedOption::ExportFile, "-F"),
    (AdvisedOption::ExportFolder, "-D"),
];

// The exit status for usage errors, from sysexits(3).
const USAGE: u8 = 64;
/// The exit status if `-t` matches no process.
pub const NO_TARGETS: u8 = 65;
const UNAVAILABLE: u8 = 69;
/// The exit status for errors of the system.
pub const OS_ERROR: u8 = 71;

/// Converts an exit status to pmcstat's: a code of sysexits(3), never the command's own status.
pub fn status(exit: Exit) -> Exit {
    match exit {
        Exit::Usage => Exit::Command(USAGE),
        Exit::Failure | Exit::NotCreated => Exit::Command(OS_ERROR),
        Exit::NotExecutable | Exit::NotFound => Exit::Command(UNAVAILABLE),
        Exit::Command(status @ (USAGE | NO_TARGETS | UNAVAILABLE | OS_ERROR)) => Exit::Command(status),
        Exit::Done | Exit::Command(_) | Exit::Signal(_) | Exit::Interrupted(_) => Exit::Done,
    }
}
