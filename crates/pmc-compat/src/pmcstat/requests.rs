//! Translates FreeBSD's options into requests.
//!
//! Receives the command line, and finds the processes that `-t` selects. Returns the commands of pmc with
//! their requests and output files, or the counters for a table. Rejects options that Linux or pmc does not
//! support.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::counters::{Column, Columns};
use super::log::Log;
use super::options::{CommandLine, Counter, USAGE};
use super::text::{DEPTH, Format, LeafName};
use super::{NO_TARGETS, OS_ERROR};
use crate::{Action, LiveView};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::request::{MAX_STACK, NamePattern, SampleSelection};
use pmc_analysis::analysis::script::ScriptRequest;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::record::RecordDisplay;
use pmc_command::sampling_options::{ProcessSelector, TargetOptions, scope_or_machine};
use pmc_command::temporary::TemporaryRecording;
use pmc_events::event::EventParser;
use pmc_formats::export::ExportFormat;
use pmc_formats::export::request::ExportRequest;
use pmc_recording::recording::launch;
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, RecordRequest, RunSchedule};
use pmc_recording::recording::stat_request::{EventSelection, StatRequest, StatTiming};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::{CpuList, Host};
use pmc_text::units::S;
use pmc_view::report::ReportLayout;
use pmc_view::report::request::ReportRequest;
use pmc_view::stat::StatLayout;

/// What the options request.
pub(super) enum Plan {
    /// Commands to run one after another, and counters to print during the recording.
    Steps(Vec<Step>, Option<Columns>),
    Columns(Columns),
}

/// A step to run, and where its standard output goes.
pub struct Step {
    pub(super) work: Work,
    pub(super) output: Output,
    /// The log of a step without a named one.
    pub(super) log: Option<TemporaryRecording>,
}

/// A command of pmc, or a log to print in one of pmcstat's formats.
pub(super) enum Work {
    Run(Action),
    Print(Box<Log>, Format),
}

/// Where standard output goes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Output {
    Standard,
    Error,
    File(String),
    Socket(String),
}

/// Converts the command line, without the program's name.
///
/// # Errors
/// Fails if the options conflict or are not available (status 64), or `-t` matches no process (65).
pub(super) fn answer(words: impl Iterator<Item = OsString>, host: &Host) -> Result<Plan> {
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
        let list = Step::run(Action::List { words, long }, Output::Standard);
        return Ok(Plan::Steps(vec![list], None));
    }
    if let Some(file) = typed.value('R') {
        return Ok(Plan::Steps(read(typed, file)?, None));
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
        Some(columns) if recorded.is_empty() => Plan::Columns(columns),
        Some(_) if typed.has('T') => {
            return Err(Error::usage("ERROR: -T shows samples, not counters")
                .try_this("-O FILE in place of -T; or pmcstat -p … & pmcstat -T …"));
        }
        columns if typed.has('T') || typed.has('O') => {
            Plan::Steps(vec![record(typed, &recorded, &pids, typed.value('O'), false, host)?], columns)
        }
        columns => {
            let log = TemporaryRecording::new().map_err(|error| {
                Error::io("ERROR: Cannot create a temporary log", error)
                    .exit(Exit::NotCreated)
                    .try_this("-O FILE, or set TMPDIR to another directory")
            })?;
            let path = log.path().display().to_string();
            // The text output already includes the information in the summary line.
            let recording = record(typed, &recorded, &pids, Some(&path), true, host)?;
            let output = typed.value('o').filter(|file| *file != "-").map(str::to_owned);
            let output = output.map_or(Output::Error, Output::File);
            let recorded = LogSource::new(path.into(), MAX_STACK, None)?;
            let text = Step { log: Some(log), ..printed(&recorded, Format::Records, output) };
            Plan::Steps(vec![recording, text], columns)
        }
    })
}

/// Checks the requested counters before settings are appended to their text. Adds the default rate, which
/// comes from FreeBSD's tables or else is 65536. A clock is sampled at each tick.
fn check(typed: &mut CommandLine, pids: &[u32], host: &Host) -> Result<()> {
    let scope =
        if pids.is_empty() { MeasurementScope::Command } else { MeasurementScope::Processes(pids.to_vec()) };
    let mut parser = EventParser::new(host).with_target(launch::subject(&scope, &typed.command));
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
fn read(typed: &CommandLine, file: &str) -> Result<Vec<Step>> {
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
    let max_stack = typed.value('z').map_or(Ok(MAX_STACK), |depth| {
        let number = depth.parse().ok().filter(|depth| *depth > 0);
        number.ok_or_else(|| Error::usage(format!("ERROR: Illegal callchain depth \"{depth}\".")))
    })?;
    let threads = typed.value('i').into_iter().flat_map(|list| list.split(',')).map(|thread| {
        thread.parse().map_err(|_| Error::usage(format!("ERROR: Illegal thread id \"{thread}\".")))
    });
    let mut log = LogSource::new(file.into(), max_stack, typed.value('r').map(PathBuf::from))?;
    log.selection.tids = threads.collect::<Result<_>>()?;
    let cpus = typed.cpus.as_deref().map(str::parse::<CpuList>).transpose()?;
    log.selection.cpus = cpus.map(|cpus| cpus.iter().collect());
    // `-` means the file given by `-o`.
    let text = typed.value('o').unwrap_or("-");
    let to = |path: &str| match (path, text) {
        ("-", "-") => Output::Standard,
        ("-", path) | (path, _) => Output::File(path.to_owned()),
    };
    let leaf = match (typed.has('A'), typed.has('I')) {
        (true, _) => LeafName::Address,
        (false, true) => LeafName::WithOffset,
        (false, false) => LeafName::Symbol,
    };
    let mut steps = Vec::new();
    if let Some(out) = typed.value('F') {
        let out = if out == "-" { text } else { out };
        steps.push(exported(&log, ExportFormat::Callgrind, out, Some(Output::Standard)));
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
        let report = Action::Report(Box::new(log.report(typed)?));
        steps.push(Step::run(report, out.map_or(Output::Standard, to)));
    } else if steps.is_empty() || out.is_some_and(|_| !"FGMma".chars().any(|of| typed.value(of) == Some("-")))
    {
        steps.push(printed(&log, Format::Records, out.map_or(Output::Standard, to)));
    }
    if file == "-" && steps.len() > 1 {
        return Err(Error::usage("ERROR: a log on standard input supports only one output")
            .why("the log must be read again for each output")
            .try_this("-R FILE"));
    }
    // Redirecting standard output to a file is permanent, so steps that need the original standard output run
    // first.
    steps.sort_by_key(|step| step.output != Output::Standard);
    Ok(steps)
}

impl Step {
    fn run(action: Action, output: Output) -> Self {
        Self { work: Work::Run(action), output, log: None }
    }
}

/// A log to read, and which of its samples.
struct LogSource {
    input: PathBuf,
    selection: SampleSelection,
    max_stack: usize,
    symbols: SymbolOptions,
}

impl LogSource {
    fn new(input: PathBuf, max_stack: usize, symfs: Option<PathBuf>) -> Result<Self> {
        let symbols = SymbolFiles { symfs, ..SymbolFiles::default() }.symbol_options()?;
        Ok(Self { input, selection: SampleSelection::default(), max_stack, symbols })
    }

    fn samples(&self) -> AnalysisRequest {
        AnalysisRequest {
            selection: self.selection.clone(),
            max_stack: self.max_stack,
            ..AnalysisRequest::new(self.symbols.clone())
        }
    }

    fn report(&self, typed: &CommandLine) -> Result<ReportRequest> {
        let usual = ReportRequest::default();
        let filters = [("--tid", typed.value('i')), ("--cpu", typed.cpus.as_deref())].into_iter();
        Ok(ReportRequest {
            input: Some(self.input.clone()),
            samples: AnalysisRequest { measure: usual.samples.measure, ..self.samples() },
            percent_limit: threshold(typed)?,
            background: ScreenOptions::default().background()?,
            style: ReportLayout {
                filters: filters.filter_map(|(option, text)| Some(format!("{option} {}", text?))).collect(),
                ..ReportLayout::default()
            },
            ..usual
        })
    }
}

/// Returns the step that exports a log to another format.
fn exported(log: &LogSource, format: ExportFormat, to: &str, output: Option<Output>) -> Step {
    let request = ExportRequest {
        samples: log.samples(),
        is_quiet: output.is_none(),
        ..ExportRequest::new(log.input.clone(), to.into(), format)
    };
    Step::run(Action::Export(Box::new(request)), output.unwrap_or(Output::Standard))
}

/// Returns the step that prints a log in one of pmcstat's formats.
fn printed(log: &LogSource, form: Format, output: Output) -> Step {
    let fields = match form {
        Format::Lines => "comm,tid,time,event,ip,sym,srcline",
        Format::Records => "comm,tid,time,period,event,ip",
        Format::Functions(_) | Format::Callers(..) => "comm,tid,time,event,ip,sym,dso",
    };
    let symbols = SymbolOptions { placeholders: false, ..log.symbols.clone() };
    let request = ScriptRequest {
        selection: log.selection.clone(),
        fields: vec![fields.parse().expect("these fields exist")],
        inlines: Some(false),
        max_blocks: usize::MAX,
        ..ScriptRequest::with_callers(log.max_stack, symbols)
    };
    let log = Box::new(Log { input: log.input.clone(), request });
    Step { work: Work::Print(log, form), output, log: None }
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
    host: &Host,
) -> Result<Step> {
    if typed.has('T') && log.is_some() {
        return Err(Error::usage(
            "ERROR: -T and -O cannot be combined: -T shows samples, -O writes them to a file",
        )
        .try_this("-O FILE, then: pmcstat -R FILE -T"));
    }
    let socket = log.filter(|log| log.contains(':') && !log.contains('/'));
    let output = PathBuf::from(if socket.is_some() { "-" } else { log.unwrap_or_default() });
    let target = socket.map_or(Output::Standard, |to| Output::Socket(to.to_owned()));
    let events = counters.iter().map(|counter| text(counter)).collect();
    let all_cpus = counters.iter().all(|counter| counter.system);
    let timeout = typed.seconds.map(Duration::from_secs_f64);
    let (quiet, verbose) = (is_quiet || typed.has('q'), typed.has('v'));
    let command = typed.command.clone();
    if typed.has('T') {
        let view = LiveView {
            events,
            pids: pids.to_vec(),
            all_cpus,
            command,
            delay: typed.interval.map(Duration::from_secs_f64),
            timeout,
            percent_limit: threshold(typed)?,
            ..LiveView::default()
        };
        return Ok(Step::run(Action::Top(view), target));
    }
    let targets = TargetOptions {
        pids: pids.iter().map(|pid| ProcessSelector::Id(*pid)).collect(),
        all_cpus,
        ..TargetOptions::default()
    };
    let scope = scope_or_machine(&targets, !command.is_empty(), host)?;
    let action = if counters.iter().any(|counter| counter.samples) {
        let mut request = RecordRequest::default();
        request.sample.events = events;
        request.sample.scope = scope;
        request.sample.verbose = verbose;
        request.sample.run_schedule = RunSchedule { command, timeout, ..RunSchedule::default() };
        request.file.path = FilePlan::at(output).path;
        request.file.keeps_files = socket.is_none();
        Action::Record(Box::new(request), RecordDisplay { quiet, perf_summary: !quiet, json: false })
    } else {
        let request = StatRequest {
            selection: EventSelection { events, ..EventSelection::default() },
            scope,
            is_whole_machine: true,
            command,
            timing: StatTiming { timeout, ..StatTiming::default() },
            verbose,
            recording: Some(output),
            ..StatRequest::default()
        };
        Action::Stat(Box::new(request), StatLayout { quiet, ..StatLayout::default() })
    };
    Ok(Step::run(action, target))
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

    fn work(line: &str) -> Vec<Work> {
        let answer =
            answer(line.split(' ').map(OsString::from), &Host::live()).map_err(|error| error.to_string());
        let Ok(Plan::Steps(steps, None)) = answer else { panic!("{line}") };
        steps.into_iter().map(|step| step.work).collect()
    }

    #[test]
    fn top_mode_has_interval_and_threshold() {
        let work = &work("-T -w 30 -f threshold=2.5 -n 7 -S clock.hard")[..];
        let [Work::Run(Action::Top(top))] = work else { panic!() };
        assert_eq!(top.events, ["clock.hard,system,period=7,callchain"]);
        assert_eq!(
            (top.all_cpus, top.delay, top.percent_limit),
            (true, Some(Duration::from_secs(30)), Some(2.5))
        );
    }

    #[test]
    fn top_mode_of_a_log_is_a_report() {
        let work = &work("-R log -T -f threshold=20")[..];
        let [Work::Run(Action::Report(report))] = work else { panic!() };
        assert_eq!((report.percent_limit, report.input.clone()), (Some(20.0), Some("log".into())));
    }

    #[test]
    fn standard_output_is_written_first() {
        let work = &work("-R log -m map -a - -z 3")[..];
        let [Work::Print(lines, Format::Lines), Work::Print(functions, _)] = work else { panic!() };
        assert_eq!(lines.request.fields, ["comm,tid,time,event,ip,sym,srcline".parse().unwrap()]);
        assert_eq!((functions.request.max_stack, functions.request.inlines), (3, Some(false)));
    }
}
