//! What is wrong with a command line, in the words and the form of every other error.
//!
//! Receives clap's complaint; hands on an [`Error`], with the nearest word where there is one, and with what
//! pmc has in the place of a command that only perf has.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::Error;

/// Commands of perf's that pmc has not: what each is for, and what of pmc comes nearest.
const PERF_ONLY: &[(&[&str], &str, &str)] = &[
    (
        &["sched", "kwork"],
        "follows the scheduler's tracepoints",
        "pmc record -e 'sched:*' -a, then pmc script; perf sched reads that file too",
    ),
    (
        &["lock"],
        "analyses the tracepoints of locks",
        "pmc record -e 'lock:*' -a -g, then pmc report; perf lock reads that file too",
    ),
    (
        &["mem", "c2c"],
        "samples memory accesses",
        "pmc record -d -W -e EVENT, then pmc report --mem-mode; perf mem report and perf c2c report read that file too",
    ),
    (
        &["trace"],
        "prints system calls as they happen",
        "pmc stat -e 'syscalls:*' counts them; pmc record -e 'syscalls:*' then pmc script prints them",
    ),
    (
        &["probe"],
        "defines probes in tracefs",
        "uprobe:FILE:FUNCTION is an event of pmc's, and pmc counts and samples what perf probe defined",
    ),
    (
        &["kvm", "iostat", "kmem"],
        "follows tracepoints of one subsystem",
        "pmc record -e 'SYSTEM:*' -a, then pmc script; perf reads that file too",
    ),
    (&["ftrace"], "drives the kernel's function tracer", "pmc record -e 'SYSTEM:*' for tracepoints"),
    (
        &["timechart"],
        "draws what each CPU did",
        "pmc record -e 'sched:*,power:*' -a; perf timechart reads that file",
    ),
    (
        &["bench", "test"],
        "measures or tests perf and the kernel",
        "pmc stat -r N COMMAND repeats and compares",
    ),
    (
        &["daemon"],
        "keeps recordings running",
        "pmc record --overwrite --switch-output takes snapshots on SIGUSR2",
    ),
    (
        &["archive", "buildid-cache", "inject", "data"],
        "keeps or rewrites recordings and their files",
        "perf does it with files that pmc writes; pmc report finds symbols by build-id where perf keeps them",
    ),
    (&["config"], "keeps perf's settings", "pmc has options and no settings file"),
    (&["kallsyms"], "looks up a kernel symbol", "grep ' NAME$' /proc/kallsyms"),
];

/// A complaint of clap's as an error.
pub(super) fn error(complaint: &clap::Error) -> Error {
    let texts = |kind| match complaint.get(kind) {
        Some(ContextValue::String(text)) => vec![text.as_str()],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let command = command(complaint);
    let error = match (&texts(ContextKind::InvalidSubcommand)[..], &texts(ContextKind::InvalidArg)[..]) {
        ([name], _) => match PERF_ONLY.iter().find(|(names, ..)| names.contains(name)) {
            Some((_, what, instead)) => {
                return Error::usage(format!("pmc has no command {name}"))
                    .why(format!("perf {name} {what}; pmc counts, samples and shows"))
                    .try_this(*instead);
            }
            None => Error::usage(format!("pmc has no command {name}")),
        },
        (_, [name]) if complaint.kind() == ErrorKind::UnknownArgument => {
            Error::usage(format!("{command} has no option {name}"))
        }
        // The first paragraph says what is wrong; then come tips, and the usage, which --help has too.
        _ => {
            let whole = complaint.render().to_string();
            let whole = whole.strip_prefix("error: ").unwrap_or(&whole);
            Error::usage(whole.split("\n\n").next().unwrap_or(whole).trim_end())
        }
    };
    let near = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let near: Vec<&str> = near.into_iter().flat_map(texts).collect();
    let error =
        if near.is_empty() { error } else { error.try_this(format!("did you mean {}?", near.join(" or "))) };
    error.try_this(format!("{command} --help"))
}

/// The command that was typed, as far as it is one: `pmc`, `pmc record`.
fn command(complaint: &clap::Error) -> String {
    let usage = complaint.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let words = usage.split_whitespace().skip_while(|word| *word != "pmc").skip(1);
    let literal: Vec<&str> =
        words.take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    [&["pmc"][..], &literal].concat().join(" ")
}
