//! `pmcstat`: from FreeBSD's options to what pmc does.
//!
//! Receives the words; finds the processes of `-t`; hands on a command of pmc's in words with the place of
//! its output, or the counters of a table in columns. Says what Linux or pmc does not have.

use std::ffi::OsString;

use super::NO_TARGETS;
use crate::analysis::request::Pattern;
use crate::cli::pmcstat::{Counter, Pmcstat};
use crate::error::{Error, Exit, Result};
use crate::host::Host;
use crate::units::S;

/// What is done.
pub(super) enum Answer {
    /// A command, without the program's name, and where it writes; if it records, with counters beside it.
    Command(Vec<OsString>, Output, Option<Columns>),
    Columns(Columns),
}

/// In the place of standard output.
pub(super) enum Output {
    Standard,
    File(String),
    Socket(String),
}

/// Counters that are printed in columns.
pub(in crate::command) struct Columns {
    pub(super) counters: Vec<Column>,
    pub(super) pids: Vec<u32>,
    pub(super) command: Vec<OsString>,
    pub(super) interval_ns: u64,
    pub(super) timeout_ns: Option<u64>,
    pub(super) file: Option<String>,
}

/// One of them.
pub(super) struct Column {
    /// As typed.
    pub(super) spec: String,
    /// The event as pmc has it.
    pub(super) event: String,
    /// Of whole CPUs.
    pub(super) system: bool,
    /// Totals are shown, not what came since the line before.
    pub(super) cumulative: bool,
}

/// Decides it from the words behind the program's name.
///
/// # Errors
/// Options that break the rules or are not to be had (64); no process of `-t` (65).
pub(super) fn answer(words: impl Iterator<Item = OsString>, host: &Host) -> Result<Answer> {
    let typed = &Pmcstat::parse(words).map_err(|why| Error::usage(format!("ERROR: {why}")))?;
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    if typed.has('L') {
        return Ok(Answer::Command(words(&["list"]), Output::Standard, None));
    }
    if let Some(spec) = typed.value('u') {
        return Ok(Answer::Command(words(&["list", "--long", spec]), Output::Standard, None));
    }
    if let Some(file) = typed.value('R') {
        return Ok(read(typed, file));
    }
    if typed.has('g') {
        return Err(Error::usage("ERROR: option -g without -R")
            .why("gprof's files are made of a log that is whole")
            .try_this("-O log first, then: pmcstat -R log -g"));
    }
    let pids = targets(typed, host)?;
    let samples = typed.counters.iter().any(|one| one.samples);
    let logs = |one: &Counter| one.log_exit || one.log_cswitch;
    // A log of counts takes all counters; beside samples those that are not logged have their columns.
    let is_recorded = |one: &Counter| one.samples || logs(one);
    let all_in_log = !samples && typed.counters.iter().any(logs);
    let (recorded, counted): (Vec<&Counter>, Vec<&Counter>) =
        typed.counters.iter().partition(|one| all_in_log || is_recorded(one));
    let is_mixed = recorded.iter().any(|one| one.system != recorded[0].system);
    if is_mixed && typed.has('T') {
        return Err(Error::usage("ERROR: -T shows processes or CPUs")
            .try_this("-O FILE in place of -T; or pmcstat -T -S …"));
    }
    let columns = (!counted.is_empty()).then(|| Columns {
        counters: counted.into_iter().map(column).collect(),
        pids: pids.clone(),
        command: typed.command.clone(),
        interval_ns: nanoseconds(typed.interval.unwrap_or(5.0)),
        timeout_ns: typed.seconds.map(nanoseconds),
        file: typed.value('o').filter(|file| *file != "-").map(str::to_owned),
    });
    Ok(match columns {
        Some(columns) if recorded.is_empty() => Answer::Columns(columns),
        Some(_) if typed.has('T') => {
            return Err(Error::usage("ERROR: -T shows samples, and no counters beside them")
                .try_this("-O FILE in place of -T; or pmcstat -p … & pmcstat -T …"));
        }
        columns => {
            let (words, output) = record(typed, &recorded, &pids, samples)?;
            Answer::Command(words, output, columns)
        }
    })
}

fn column(counter: &Counter) -> Column {
    Column {
        spec: counter.spec.clone(),
        event: text(counter),
        system: counter.system,
        cumulative: counter.cumulative,
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * S as f64) as u64
}

/// `-R`: one of the commands that read recordings.
fn read(typed: &Pmcstat, file: &str) -> Answer {
    let mut words: Vec<String> = Vec::new();
    let mut to = typed.value('o');
    if let Some(out) = typed.value('F') {
        words.extend(["export", "--format", "callgrind", "-o", out].map(str::to_owned));
    } else if let Some(out) = typed.value('G') {
        to = Some(out);
        words.extend(["report", "--stdio", "-g", "caller"].map(str::to_owned));
    } else if typed.has('g') {
        words
            .extend(["export", "--format", "gmon", "-o", typed.value('D').unwrap_or(".")].map(str::to_owned));
        // Which file is of which program, is said where -M wants it.
        words.extend(typed.value('M').is_none().then(|| "-q".to_owned()));
        to = typed.value('M');
    } else if typed.has('T') {
        words.push("report".to_owned());
    } else if let Some(out) = typed.value('a').or(typed.value('m')) {
        to = Some(out);
        // -A wants addresses alone, -I where in the function they are.
        let named = match (typed.has('A'), typed.has('I')) {
            (true, _) => "",
            (false, true) => ",sym,symoff",
            (false, false) => ",sym",
        };
        words.extend(["script".to_owned(), "-F".to_owned(), format!("comm,tid,time,event,ip{named},dso")]);
        words.extend(typed.value('a').is_none().then(|| "--hide-call-graph".to_owned()));
    } else {
        words.push("script".to_owned());
    }
    words.extend(["-i".to_owned(), file.to_owned()]);
    let options = [('z', "--max-stack"), ('r', "--symfs"), ('i', "--tid")];
    for (value, option) in options.iter().filter_map(|(letter, option)| Some((typed.value(*letter)?, option)))
    {
        words.extend([(*option).to_owned(), value.to_owned()]);
    }
    let output = to.filter(|to| *to != "-").map_or(Output::Standard, |to| Output::File(to.to_owned()));
    Answer::Command(words.into_iter().map(OsString::from).collect(), output, None)
}

/// Sampling, and logs of counts: a recording, or top.
fn record(
    typed: &Pmcstat,
    counters: &[&Counter],
    pids: &[u32],
    samples: bool,
) -> Result<(Vec<OsString>, Output)> {
    let log = typed.value('O');
    let socket = log.filter(|log| log.contains(':') && !log.contains('/'));
    let mut words: Vec<String> = match (typed.has('T'), samples) {
        (true, _) => vec!["top".to_owned()],
        (false, true) => vec!["record".to_owned()],
        (false, false) => vec!["stat".to_owned(), "record".to_owned()],
    };
    if !typed.has('T') {
        let Some(log) = log else {
            return Err(Error::usage("ERROR: the log has no file")
                .try_this("-O FILE, which -R FILE reads (with -G, -F, -m or -a); or -T"));
        };
        words.extend(["-o".to_owned(), if socket.is_some() { "-".to_owned() } else { log.to_owned() }]);
    }
    for counter in counters {
        words.extend(["-e".to_owned(), text(counter)]);
    }
    let system = counters.iter().all(|counter| counter.system);
    if !pids.is_empty() {
        let list: Vec<String> = pids.iter().map(u32::to_string).collect();
        words.extend(["-p".to_owned(), list.join(",")]);
    }
    words.extend(system.then(|| "-a".to_owned()));
    for setting in typed.value('f').filter(|_| typed.has('T')).iter().flat_map(|all| all.split(',')) {
        let percent = setting.strip_prefix("threshold=").ok_or_else(|| {
            Error::usage(format!("ERROR: -f {setting} is not to be had"))
                .why("callers are always shown whole")
                .try_this("-f threshold=PERCENT")
        })?;
        words.extend(["--percent-limit".to_owned(), percent.to_owned()]);
    }
    if let Some(seconds) = typed.seconds {
        words.extend(["--timeout".to_owned(), format!("{}ms", seconds * 1000.0)]);
    }
    let flags = [('q', "-q"), ('v', "-v")];
    let flags = flags.into_iter().filter(|(letter, _)| typed.has(*letter) && !typed.has('T'));
    words.extend(flags.map(|(_, flag)| flag.to_owned()));
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    if !typed.command.is_empty() {
        words.push("--".into());
        words.extend_from_slice(&typed.command);
    }
    Ok((words, socket.map_or(Output::Standard, |to| Output::Socket(to.to_owned()))))
}

/// The event with all that was set for it, as one of pmc's.
fn text(counter: &Counter) -> String {
    let mut text = counter.spec.clone();
    let mut add = |is_said: bool, qualifier: &str| {
        if is_said {
            text = format!("{text},{qualifier}");
        }
    };
    if !counter.system {
        add(true, if counter.descendants { "descendants" } else { "descendants=0" });
        add(counter.log_exit, "log-exit");
        add(counter.log_cswitch, "log-cswitch");
    }
    // Beside what is of processes; where all is of CPUs, -a says it too.
    add(counter.system, "system");
    add(counter.samples, &format!("period={}", counter.rate));
    add(counter.samples, if counter.chains { "callchain" } else { "callchain=0" });
    // -c is of whole CPUs: what counts processes after it goes with them.
    if let Some(cpus) = counter.cpus.as_ref().filter(|_| counter.system) {
        add(true, &format!("cpu={cpus}"));
    }
    text
}

/// The processes of `-t`.
fn targets(typed: &Pmcstat, host: &Host) -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for target in &typed.targets {
        if let Ok(pid) = target.parse() {
            pids.push(pid);
            continue;
        }
        let pattern = Pattern::new(target)?;
        let own = std::process::id();
        let named = |pid: &u32| *pid != own && pattern.finds(&host.comm(*pid));
        pids.extend(host.processes().into_iter().filter(named));
    }
    if pids.is_empty() && !typed.targets.is_empty() {
        return Err(Error::new("ERROR: No matching target processes.").exit(Exit::Command(NO_TARGETS)));
    }
    Ok(pids)
}
