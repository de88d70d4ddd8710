//! The `tprof` personality: pmc called by that name takes the sub-commands of NetBSD's tprof(8), each of
//! which is a command of pmc's in other words.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::cli::tprof::{Action, FILE, Tprof};
use crate::error::{Error, Exit, Result, say};
use crate::perfdata::Reader;
use crate::record::kind;

const NAME: &str = "tprof";

/// What is left to do: a command in words, or nothing.
pub(super) struct Personality {
    pub(super) words: Vec<OsString>,
    /// Whose statistics are shown at the end.
    recorded: Option<String>,
}

/// What this process shall do if `tprof` is the name by which it was started; `None` otherwise.
pub(super) fn if_named() -> Option<std::result::Result<Personality, Exit>> {
    let mut words = std::env::args_os();
    let program = words.next()?;
    if Path::new(&program).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    Some(match Tprof::parse(words) {
        Ok(typed) => Ok(personality(&typed)),
        Err(wrong) => {
            let usage = "tprof list, monitor, count, analyze or top; docs/coming-from-netbsd.md";
            say::error(&Error::usage(wrong).try_this(usage));
            Err(Exit::Failure)
        }
    })
}

fn personality(typed: &Tprof) -> Personality {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(OsString::from));
    let has = |letter| typed.flags.contains(&letter);
    let output = typed.output.as_deref().unwrap_or(FILE);
    let interval = typed.interval_ms.map(|ms| format!("{ms}ms"));
    match typed.action {
        Action::List => add(&["list"]),
        Action::Monitor => add(&["record", "-q", "-a", "-o", output]),
        Action::Count => add(&["stat", "-a", "-A"]),
        Action::Analyze => {
            // What is not distinguished is added up; without -s each address stands by itself.
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
            return Personality { words, recorded: None };
        }
        Action::Top => {
            add(&["top", "-n", "--sort", if has('c') { "cpu,dso,sym" } else { "dso,sym" }]);
            let flags = [(has('a'), "--accumulate"), (!has('u'), "-U")];
            flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, flag)| add(&[flag]));
        }
    }
    for event in &typed.events {
        add(&["-e", event]);
    }
    if let Some(interval) = interval {
        add(&[if typed.action == Action::Top { "-d" } else { "-I" }, &interval]);
    }
    if !typed.operands.is_empty() {
        add(&["--"]);
        words.extend_from_slice(&typed.operands);
    }
    Personality { words, recorded: (typed.action == Action::Monitor).then(|| output.to_owned()) }
}

impl Personality {
    /// After the command: what tprof says of its samples, and its status.
    pub(super) fn finish(self, exit: Exit) -> Exit {
        if let Some(Err(error)) = self.recorded.filter(|_| exit != Exit::Usage).map(|file| statistics(&file))
        {
            say::error(&error);
            return Exit::Failure;
        }
        if exit == Exit::Usage { Exit::Failure } else { exit }
    }
}

/// Samples, and what the kernel did not write: it has rings where tprof has buffers.
fn statistics(file: &str) -> Result<()> {
    let index = Reader::open(Path::new(file))?.scan(|_| {})?;
    let of = |wanted: &[u32]| -> u64 {
        index.counts().filter(|(kind, _)| wanted.contains(kind)).map(|(_, count)| count).sum()
    };
    let samples = of(&[kind::SAMPLE]);
    let (throttled, lost) = (of(&[kind::THROTTLE]), of(&[kind::LOST, kind::LOST_SAMPLES]));
    say::plainly(format!("{NAME}: {samples} samples, {throttled} times throttled, {lost} records of losses"));
    Ok(())
}
