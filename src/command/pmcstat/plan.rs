//! `pmcstat`: converts FreeBSD's options to pmc commands.
//!
//! Receives the command line, and finds the processes that `-t` selects. Returns pmc commands with their
//! options and output files, or the counters for a table. Rejects options that Linux or pmc does not support.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::export::{self, ExportSource};
use crate::cli::{Command, defaults, list, report, script, stat, top};
use pmc_analysis::analysis::request::NamePattern;
use pmc_command::options::{recording_options, sample_filter, stack_options, symbol_files};
use pmc_command::record::args::RecordArgs;
use pmc_command::sampling_options::ProcessSelector;
use pmc_command::temporary::TemporaryRecording;
use pmc_compat::pmcstat::counters::{Column, Columns};
use pmc_compat::pmcstat::options::{CommandLine, Counter, USAGE};
use pmc_compat::pmcstat::text::{DEPTH, Format, LeafName};
use pmc_compat::pmcstat::{NO_TARGETS, OS_ERROR};
use pmc_events::event::EventParser;
use pmc_formats::export::ExportFormat;
use pmc_recording::recording::launch;
use pmc_recording::recording::plan::MeasurementScope;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::{CpuList, Host};
use pmc_text::units::S;

/// What the options request.
pub(super) enum PmcstatPlan {
    /// Commands to run one after another, and counters to print during the recording.
    Steps(Vec<PmcstatStep>, Option<Columns>),
    Columns(Columns),
}

/// A step to run, and where its standard output goes.
pub(in crate::command) struct PmcstatStep {
    pub(super) action: PmcstatAction,
    pub(super) output: PmcstatOutput,
    /// The log of a step without a named one.
    pub(super) log: Option<TemporaryRecording>,
}

/// A pmc command, or a log to print in one of pmcstat's formats.
pub(in crate::command) enum PmcstatAction {
    Command(Command),
    Print(Box<script::ScriptArgs>, Format),
}

/// Where standard output goes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::command) enum PmcstatOutput {
    Standard,
    Error,
    File(String),
    Socket(String),
}

/// Converts the command line, without the program's name.
///
/// # Errors
/// Fails if the options conflict or are not available (status 64), or `-t` matches no process (65).
pub(super) fn answer(words: impl Iterator<Item = OsString>, host: &Host) -> Result<PmcstatPlan> {
    let typed = CommandLine::parse(words).map_err(|why| {
        let error = Error::usage(format!("ERROR: {why}"));
        if why.starts_with("illegal option") || why.starts_with("at least") {
            error.detail(USAGE)
        } else {
            error
        }
    });
    let typed = &mut typed?;
    if typed.has('L') || typed.has('u') {
        let spec = typed.value('u').filter(|_| !typed.has('L'));
        let (words, long) = (spec.into_iter().map(str::to_owned).collect(), spec.is_some());
        let list = Command::List(list::ListArgs { words, long, ..defaults() });
        return Ok(PmcstatPlan::Steps(vec![PmcstatStep::command(list, PmcstatOutput::Standard)], None));
    }
    if let Some(file) = typed.value('R') {
        return Ok(PmcstatPlan::Steps(read(typed, file)?, None));
    }
    if let Some(letter) = "gGFzri".chars().find(|letter| typed.has(*letter)) {
        return Err(Error::usage(format!("ERROR: option -{letter} without -R"))
            .why("it applies only to a finished log")
            .try_this(format!("-O log first, then: pmcstat -R log -{letter} …")));
    }
    let pids = targets(typed, host)?;
    check(typed, &pids, host)?;
    let typed = &*typed;
    let samples = typed.counters.iter().any(|one| one.samples);
    let logs = |one: &Counter| !one.system && (one.log_exit || one.log_cswitch);
    let recorded: Vec<&Counter> = typed.counters.iter().filter(|one| one.samples || logs(one)).collect();
    let counted: Vec<&Counter> = typed.counters.iter().filter(|one| !one.samples).collect();
    let is_mixed = recorded.iter().any(|one| one.system != recorded[0].system);
    if !samples && typed.has('T') {
        return Err(Error::usage("ERROR: -T shows samples").try_this("-P or -S in place of -p or -s"));
    }
    if is_mixed && typed.has('T') {
        return Err(Error::usage("ERROR: -T shows processes or CPUs")
            .try_this("-O FILE in place of -T; or pmcstat -T -S …"));
    }
    // Logged counters are shown in a separate table at the end, so they do not need a second counter for this
    // table. Without a log, `-o` names the file for the table.
    let has_columns = counted.iter().any(|one| !logs(one))
        || typed.interval.is_some()
        || typed.has('o') && typed.has('O')
        || counted.iter().any(|one| one.cumulative);
    let columns = (has_columns && !counted.is_empty()).then(|| Columns {
        counters: counted.into_iter().map(column).collect(),
        pids: pids.clone(),
        command: typed.command.clone(),
        interval_ns: nanoseconds(typed.interval.unwrap_or(5.0)),
        timeout: typed.seconds.map(Duration::from_secs_f64),
        file: typed.value('o').filter(|file| *file != "-").map(str::to_owned),
    });
    Ok(match columns {
        Some(columns) if recorded.is_empty() => PmcstatPlan::Columns(columns),
        Some(_) if typed.has('T') => {
            return Err(Error::usage("ERROR: -T shows samples, not counters")
                .try_this("-O FILE in place of -T; or pmcstat -p … & pmcstat -T …"));
        }
        columns if typed.has('T') || typed.has('O') => {
            PmcstatPlan::Steps(vec![record(typed, &recorded, &pids, typed.value('O'), false)?], columns)
        }
        columns => {
            let log = TemporaryRecording::new().map_err(|error| {
                Error::io("ERROR: Cannot create a temporary log", error)
                    .exit(Exit::NotCreated)
                    .try_this("-O FILE, or set TMPDIR to another directory")
            })?;
            let path = log.path().display().to_string();
            // The text output already includes the information in the summary line.
            let recording = record(typed, &recorded, &pids, Some(&path), true)?;
            let output = typed.value('o').filter(|file| *file != "-").map(str::to_owned);
            let output = output.map_or(PmcstatOutput::Error, PmcstatOutput::File);
            let recorded = ExportSource { input: Some(path.into()), ..defaults() };
            let text = PmcstatStep { log: Some(log), ..printed(&recorded, Format::Records, output) };
            PmcstatPlan::Steps(vec![recording, text], columns)
        }
    })
}

/// Checks the requested counters before settings are appended to their text. Adds the default rate, which
/// comes from FreeBSD's tables or else is 65536. A clock is sampled at each tick.
fn check(typed: &mut CommandLine, pids: &[u32], host: &Host) -> Result<()> {
    let scope =
        if pids.is_empty() { MeasurementScope::Command } else { MeasurementScope::Processes(pids.to_vec()) };
    let mut parser = EventParser::new(host).measuring(launch::subject(&scope, &typed.command));
    for counter in &mut typed.counters {
        let letter = counter.letter();
        let groups = parser.parse_single(&counter.spec, &format!("give -{letter} once per event"));
        // On FreeBSD, pmc_allocate(3) rejects such a counter.
        let groups = groups.map_err(|error| Error::from(error).exit(Exit::Command(OS_ERROR)))?;
        let spec = groups.iter().flat_map(|group| &group.events).next();
        let of_event = spec.and_then(|spec| spec.tick_ns.map(|_| 1).or(spec.recommended_period));
        counter.rate = counter.rate.or(of_event);
        if let Some(Err(error)) = counter.cpus.as_ref().map(|cpus| cpus.parse::<CpuList>()) {
            let (cpus, why) =
                (counter.cpus.as_deref().unwrap_or_default(), error.cause().unwrap_or_default());
            return Err(Error::usage(format!("ERROR: -c {cpus}: {why}")).try_this("a list such as 0,2, or *"));
        }
    }
    let mut of_processes = typed.counters.iter().filter(|one| !one.system);
    let first = of_processes.next().is_some_and(|one| one.descendants);
    if !pids.is_empty() && of_processes.any(|one| one.descendants != first) {
        return Err(Error::usage("ERROR: -d applies to only some of the counters")
            .why("existing children must be included for all -t processes or for none")
            .try_this("put -d before the first of them"));
    }
    Ok(())
}

fn column(counter: &Counter) -> Column {
    Column {
        spec: counter.spec.clone(),
        // The log opens separate counters.
        event: text(&Counter { log_exit: false, log_cswitch: false, ..counter.clone() }),
        system: counter.system,
        cumulative: counter.cumulative,
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * S as f64) as u64
}

/// Converts `-R` to commands that read the recording, one command per output.
fn read(typed: &CommandLine, file: &str) -> Result<Vec<PmcstatStep>> {
    let refused = [
        ('C', "a log has no counters to show in columns", "pmcstat -C -p …"),
        ('w', "pmc prints a log only once", "pmcstat -T -w …, without -R"),
        ('l', "pmc reads a log to its end", "pmcstat -l …, without -R"),
    ];
    let is_typed = |letter: char| match letter {
        'w' => typed.interval.is_some(),
        'l' => typed.seconds.is_some(),
        _ => typed.has(letter),
    };
    if let Some((letter, why, instead)) = refused.iter().find(|(letter, ..)| is_typed(*letter)) {
        return Err(Error::usage(format!("ERROR: option -{letter} with -R")).why(*why).try_this(*instead));
    }
    if typed.has('M') && !typed.has('g') {
        return Err(Error::usage("ERROR: option -M without -g")
            .why("it maps gprof's files to programs")
            .try_this("-g -M FILE"));
    }
    let usual: stack_options::StackOptions = defaults();
    let max_stack = typed.value('z').map_or(Ok(usual.max_stack), |depth| {
        let number = depth.parse().ok().filter(|depth| *depth > 0);
        number.ok_or_else(|| Error::usage(format!("ERROR: Illegal callchain depth \"{depth}\".")))
    })?;
    let threads = typed.value('i').into_iter().flat_map(|list| list.split(',')).map(|thread| {
        thread.parse().map_err(|_| Error::usage(format!("ERROR: Illegal thread id \"{thread}\".")))
    });
    let threads = threads.collect::<Result<_>>()?;
    let cpu = typed.cpus.as_deref().map(str::parse).transpose()?;
    let log = ExportSource {
        input: Some(file.into()),
        filter: sample_filter::SampleFilter { tid: threads, cpu, ..defaults() },
        stacks: stack_options::StackOptions { max_stack, ..usual },
        symbol_files: symbol_files::SymbolFiles { symfs: typed.value('r').map(Into::into), ..defaults() },
        ..defaults()
    };
    // `-` means the file given by `-o`.
    let text = typed.value('o').unwrap_or("-");
    let to = |path: &str| match (path, text) {
        ("-", "-") => PmcstatOutput::Standard,
        ("-", path) | (path, _) => PmcstatOutput::File(path.to_owned()),
    };
    let leaf = match (typed.has('A'), typed.has('I')) {
        (true, _) => LeafName::Address,
        (false, true) => LeafName::WithOffset,
        (false, false) => LeafName::Symbol,
    };
    let mut steps = Vec::new();
    if let Some(out) = typed.value('F') {
        let out = if out == "-" { text } else { out };
        steps.push(exported(&log, ExportFormat::Callgrind, out, Some(PmcstatOutput::Standard)));
    }
    if let Some(out) = typed.value('G') {
        let depth = if typed.has('z') { max_stack } else { DEPTH };
        steps.push(printed(&log, Format::Callers(leaf, depth), to(out)));
    }
    if typed.has('g') {
        // With `-M`, prints which file belongs to which program.
        let folder = typed.value('D').unwrap_or(".");
        steps.push(exported(&log, ExportFormat::Gmon, folder, typed.value('M').map(to)));
    }
    for (letter, form) in [('m', Format::Functions(leaf)), ('a', Format::Lines)] {
        steps.extend(typed.value(letter).map(|out| printed(&log, form, to(out))));
    }
    let out = typed.value('o');
    if typed.has('T') {
        let report = Command::Report(Box::new(report::ReportArgs {
            input: log.input.clone(),
            percent_limit: threshold(typed)?,
            filter: log.filter.clone(),
            stacks: log.stacks.clone(),
            symbol_files: log.symbol_files.clone(),
            ..defaults()
        }));
        steps.push(PmcstatStep::command(report, out.map_or(PmcstatOutput::Standard, to)));
    } else if steps.is_empty() || out.is_some_and(|_| !"FGMma".chars().any(|of| typed.value(of) == Some("-")))
    {
        steps.push(printed(&log, Format::Records, out.map_or(PmcstatOutput::Standard, to)));
    }
    if file == "-" && steps.len() > 1 {
        return Err(Error::usage("ERROR: a log on standard input supports only one output")
            .why("the log must be read again for each output")
            .try_this("-R FILE"));
    }
    // Redirecting standard output to a file is permanent, so steps that need the original standard output run
    // first.
    steps.sort_by_key(|step| step.output != PmcstatOutput::Standard);
    Ok(steps)
}

impl PmcstatStep {
    fn command(command: Command, output: PmcstatOutput) -> Self {
        Self { action: PmcstatAction::Command(command), output, log: None }
    }
}

/// Returns the step that exports a log to another format.
fn exported(
    log: &ExportSource,
    format: ExportFormat,
    to: &str,
    output: Option<PmcstatOutput>,
) -> PmcstatStep {
    let source = ExportSource { output: Some(to.into()), quiet: output.is_none(), ..log.clone() };
    let export = Command::Export(Box::new(export::ExportArgs {
        format: Some(format),
        source,
        push: defaults(),
        tables: defaults(),
    }));
    PmcstatStep::command(export, output.unwrap_or(PmcstatOutput::Standard))
}

/// Returns the step that prints a log in one of pmcstat's formats.
fn printed(log: &ExportSource, form: Format, output: PmcstatOutput) -> PmcstatStep {
    let fields = match form {
        Format::Lines => "comm,tid,time,event,ip,sym,srcline",
        Format::Records => "comm,tid,time,period,event,ip",
        Format::Functions(_) | Format::Callers(..) => "comm,tid,time,event,ip,sym,dso",
    };
    let script = Box::new(script::ScriptArgs {
        input: log.input.clone(),
        fields: vec![fields.parse().expect("these fields exist")],
        no_inline: true,
        max_stack: log.stacks.max_stack,
        filter: log.filter.clone(),
        symbol_files: log.symbol_files.clone(),
        ..defaults()
    });
    PmcstatStep { action: PmcstatAction::Print(script, form), output, log: None }
}

/// Returns the percentage given with `-f`.
fn threshold(typed: &CommandLine) -> Result<Option<f64>> {
    let percent = |setting: &str| {
        let percent = setting.strip_prefix("threshold=").ok_or_else(|| {
            Error::usage(format!("ERROR: -f {setting} is not supported"))
                .why("callers are always shown in full")
                .try_this("-f threshold=PERCENT")
        })?;
        percent.parse().map_err(|_| Error::usage(format!("ERROR: -f {setting}: not a percentage")))
    };
    let settings = typed.value('f').into_iter().flat_map(|all| all.split(',')).map(percent);
    Ok(settings.collect::<Result<Vec<f64>>>()?.pop())
}

/// Returns the step that samples or logs counts: `pmc record` or `pmc top`. `is_quiet` suppresses the summary
/// line of a recording that is printed as text afterwards.
fn record(
    typed: &CommandLine,
    counters: &[&Counter],
    pids: &[u32],
    log: Option<&str>,
    is_quiet: bool,
) -> Result<PmcstatStep> {
    if typed.has('T') && log.is_some() {
        return Err(Error::usage(
            "ERROR: -T and -O cannot be combined: -T shows samples, -O writes them to a file",
        )
        .try_this("-O FILE, then: pmcstat -R FILE -T"));
    }
    let socket = log.filter(|log| log.contains(':') && !log.contains('/'));
    let output = PathBuf::from(if socket.is_some() { "-" } else { log.unwrap_or_default() });
    let target = socket.map_or(PmcstatOutput::Standard, |to| PmcstatOutput::Socket(to.to_owned()));
    let events = counters.iter().map(|counter| text(counter)).collect();
    let all_cpus = counters.iter().all(|counter| counter.system);
    let selected = pids.iter().map(|pid| ProcessSelector::Id(*pid)).collect();
    let timeout = typed.seconds.map(Duration::from_secs_f64);
    let (quiet, verbose) = (is_quiet || typed.has('q'), typed.has('v').into());
    let command = typed.command.clone();
    let command = if typed.has('T') {
        let top: top::TopArgs = defaults();
        Command::Top(Box::new(top::TopArgs {
            events,
            pids: selected,
            all_cpus,
            delay: typed.interval.map_or(top.delay, Duration::from_secs_f64),
            timeout,
            percent_limit: threshold(typed)?,
            command,
            ..defaults()
        }))
    } else if counters.iter().any(|counter| counter.samples) {
        let recording = recording_options::RecordingOptions { output, timeout, quiet, verbose, ..defaults() };
        Command::Record(Box::new(RecordArgs {
            events,
            pids: selected,
            all_cpus,
            recording,
            command,
            ..defaults()
        }))
    } else {
        let stat::StatRecordArgs { counted, shown, .. } = defaults();
        let counted = stat::CountArgs { events, pids: selected, all_cpus, timeout, command, ..counted };
        let shown = stat::StatDisplayArgs { quiet, verbose, ..shown };
        Command::StatRecord(Box::new(stat::StatRecordArgs { counted, output, shown }))
    };
    Ok(PmcstatStep::command(command, target))
}

/// Returns the event with all its settings, in pmc's syntax.
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
    // The flag has an effect only if other counters count processes. Otherwise, -a already selects all CPUs.
    add(counter.system, "system");
    add(counter.samples, &format!("period={}", counter.rate.unwrap_or(65536)));
    add(counter.samples, if counter.chains { "callchain" } else { "callchain=0" });
    // `-c` applies only to system-wide counters. Per-process counters ignore it.
    if let Some(cpus) = counter.cpus.as_ref().filter(|_| counter.system) {
        add(true, &format!("cpu={cpus}"));
    }
    text
}

/// Returns the processes selected by `-t`.
fn targets(typed: &CommandLine, host: &Host) -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for target in &typed.targets {
        if let Ok(pid) = target.parse() {
            pids.push(pid);
            continue;
        }
        let pattern = target.parse::<NamePattern>()?;
        let own = std::process::id();
        let named = |pid: &u32| *pid != own && pattern.finds(&host.comm(*pid));
        pids.extend(host.processes().into_iter().filter(named));
    }
    if pids.is_empty() && !typed.targets.is_empty() {
        return Err(Error::new("ERROR: No matching target processes.").exit(Exit::Command(NO_TARGETS)));
    }
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actions(line: &str) -> Vec<PmcstatAction> {
        let answer =
            answer(line.split(' ').map(OsString::from), &Host::live()).map_err(|error| error.to_string());
        let Ok(PmcstatPlan::Steps(steps, None)) = answer else { panic!("{line}") };
        steps.into_iter().map(|step| step.action).collect()
    }

    #[test]
    fn top_mode_has_interval_and_threshold() {
        let actions = &actions("-T -w 30 -f threshold=2.5 -n 7 -S clock.hard")[..];
        let [PmcstatAction::Command(Command::Top(top))] = actions else { panic!() };
        assert_eq!(top.events, ["clock.hard,system,period=7,callchain"]);
        assert_eq!((top.all_cpus, top.delay.as_secs(), top.percent_limit), (true, 30, Some(2.5)));
    }

    #[test]
    fn top_mode_of_a_log_is_a_report() {
        let actions = &actions("-R log -T -f threshold=20")[..];
        let [PmcstatAction::Command(Command::Report(report))] = actions else { panic!() };
        assert_eq!((report.percent_limit, report.input.clone()), (Some(20.0), Some("log".into())));
    }

    #[test]
    fn standard_output_is_written_first() {
        let actions = &actions("-R log -m map -a - -z 3")[..];
        let [PmcstatAction::Print(lines, Format::Lines), PmcstatAction::Print(functions, _)] = actions else {
            panic!()
        };
        assert_eq!(lines.fields, ["comm,tid,time,event,ip,sym,srcline".parse().unwrap()]);
        assert_eq!((functions.max_stack, functions.no_inline), (3, true));
    }
}
