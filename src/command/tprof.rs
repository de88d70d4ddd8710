//! The `tprof` personality: under that name, pmc takes the subcommands of NetBSD's tprof(8) and
//! translates each into a pmc command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::cli::tprof::{FILE, TprofAction, TprofCommandLine, USAGE};
use pmc_sys::error::{Error, Exit, say};

const NAME: &str = "tprof";

/// Returns the pmc command line to run if this process was started under the name `tprof`; `None`
/// otherwise. Its exit status is converted by [`status`].
pub(super) fn if_named() -> Option<std::result::Result<Vec<OsString>, Exit>> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    if Path::new(&program).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    Some(match TprofCommandLine::parse(words) {
        Ok(TprofCommandLine { action: TprofAction::Help, .. }) => {
            let written = std::io::Write::write_all(&mut std::io::stdout(), USAGE.as_bytes());
            Err(written.map_or(Exit::Failure, |()| Exit::Done))
        }
        Ok(typed) => Ok(in_words(&typed)),
        Err(wrong) => {
            let usage = "tprof list, monitor, count, analyze or top; docs/coming-from-netbsd.md";
            say::error(&Error::usage(wrong).try_this(usage));
            Err(Exit::Failure)
        }
    })
}

fn in_words(typed: &TprofCommandLine) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(OsString::from));
    let has = |letter| typed.flags.contains(&letter);
    let output = typed.output.as_deref().unwrap_or(FILE);
    let interval = typed.interval_ms.map(|ms| format!("{ms}ms"));
    match typed.action {
        TprofAction::Help | TprofAction::List => add(&["list"]),
        // Like tprof, `record` prints a summary at the end.
        TprofAction::Monitor => add(&["record", "-a", "-o", output]),
        TprofAction::Count => add(&["stat", "-a", "-A"]),
        TprofAction::Analyze => {
            // Sums up samples over the attributes that the options ignore. Without -s each address has a
            // separate row.
            let place = if has('s') { "sym" } else { "symoff" };
            let keys =
                [(!has('P'), "pid"), (!has('L'), "tid"), (!has('C'), "cpu"), (true, "dso"), (true, place)];
            let keys: Vec<&str> =
                keys.iter().filter(|(is_shown, _)| *is_shown).map(|(_, key)| *key).collect();
            add(&["report", "--stdio", "-n", "--sort", &keys.join(",")]);
            if has('k') {
                add(&["--dsos", "[kernel.kallsyms]"]);
            }
            if let Some(pid) = typed.pid {
                add(&["--pid", &pid.to_string()]);
            }
            let file = typed.operands.first().map_or(OsStr::new(FILE), OsString::as_os_str);
            add(&["-i"]);
            words.push(file.to_owned());
            return words;
        }
        TprofAction::Top => {
            add(&["top", "-n", "--sort", if has('c') { "cpu,dso,sym" } else { "dso,sym" }]);
            let flags = [(has('a'), "--accumulate"), (!has('u'), "-U")];
            flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, flag)| add(&[flag]));
        }
    }
    for event in &typed.events {
        add(&["-e", event]);
    }
    if let Some(interval) = interval {
        add(&[if typed.action == TprofAction::Top { "-d" } else { "-I" }, &interval]);
    }
    if !typed.operands.is_empty() {
        add(&["--"]);
        words.extend_from_slice(&typed.operands);
    }
    words
}

/// Converts an exit status to tprof's.
pub(super) fn status(exit: Exit) -> Exit {
    if exit == Exit::Usage { Exit::Failure } else { exit }
}
