//! `pmc probe`: lists, adds and removes probes in tracefs.
//!
//! ```text
//!   request: definitions --resolve--> tracepoints --host--> uprobe_events, kprobe_events
//!              └ places, lines, variables: symbol::probe ──> view
//! ```
//! A command adds either all of its probes or none of them.

mod request;
mod resolve;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use self::request::{ProbeAction, ProbeRequest, ProbeTarget};
use self::resolve::NewProbe;
use pmc_command::pager::PagedOutput;
use pmc_events::event::{LineRange, ProbeNames, ProbePoint};
use pmc_symbols::symbol::ProbedProgram;
use pmc_symbols::symbol::source_text::{self, SourceFolders};
use pmc_sys::abi::KallsymsLine;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::probe_event::{PROBE_LISTS, ProbeEvent, ProbeList, ProbeListError};
use pmc_sys::sys::credentials;
use pmc_text::text::{glob, shell_word};
use pmc_view::probe::{PlaceVariables, ProbeRow};

/// Number of attempts to remove a probe that is in use, and the interval between them.
const BUSY_TRIES: usize = 20;
const BUSY_WAIT: Duration = Duration::from_millis(50);

/// Runs the command.
///
/// # Errors
/// Fails if a place or a variable does not exist, or if tracefs cannot be read or changed.
pub(super) fn run(request: &ProbeRequest) -> Result<Exit> {
    say::be_quiet(request.is_quiet);
    // The kernel checks only the permissions of the files in tracefs.
    credentials::keep_for_reading();
    let host = Host::live();
    if !request.deletes.is_empty() {
        delete(request, &host)?;
    }
    match &request.action {
        None => {}
        Some(ProbeAction::Add(definitions)) => {
            let mut names = ProbeNames::new(names_of(&all_probes(&host)?));
            let probes = resolve::resolve(definitions, request, &host, &mut names)?;
            if !request.is_dry_run {
                add(&probes, request, &host)?;
            }
            say_added(&probes, request)?;
        }
        Some(ProbeAction::Print(definitions)) => {
            let probes = resolve::resolve(definitions, request, &host, &mut ProbeNames::default())?;
            let definitions: Vec<&ProbeEvent> = probes.iter().map(|probe| &probe.event).collect();
            print(|out| pmc_view::probe::each(out, &definitions))?;
        }
        Some(ProbeAction::List(pattern)) => list(pattern.as_deref(), &host)?,
        Some(ProbeAction::Lines(range)) => lines(range, request)?,
        Some(ProbeAction::Variables(points)) => variables(points, request)?,
        Some(ProbeAction::Functions) => functions(request, &host)?,
    }
    Ok(Exit::Done)
}

fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = PagedOutput::open();
    write(&mut out).and_then(|()| out.finish()).map_err(|error| Error::output("the probes", error))
}

/// Returns the path of the program to probe, which `option` requires.
fn required_program<'p>(request: &'p ProbeRequest, option: &str) -> Result<&'p Path> {
    match &request.target {
        ProbeTarget::Program(path) => Ok(path),
        ProbeTarget::Kernel { .. } => Err(Error::usage(format!("{option} requires a program"))
            .why("pmc does not read the kernel's debug information")
            .try_this(format!("pmc probe -x FILE {option} …"))),
    }
}

fn all_probes(host: &Host) -> Result<Vec<ProbeEvent>> {
    let mut all = Vec::new();
    for list in PROBE_LISTS {
        all.extend(host.probe_events(list).map_err(|error| refused(error.into(), "reading the probes"))?);
    }
    Ok(all)
}

fn names_of(probes: &[ProbeEvent]) -> impl Iterator<Item = (String, String)> + '_ {
    probes.iter().map(|probe| (probe.group.clone(), probe.name.clone()))
}

/// Returns the error for a list of probes that cannot be read or changed.
fn refused(error: ProbeListError, doing: &str) -> Error {
    use pmc_sys::host::tracepoint::TracepointError::NotMounted;
    let result = Error::new(format!("{doing}: {error}"));
    match error {
        ProbeListError::Tracefs(NotMounted) => result
            .why("the kernel manages probes through tracefs")
            .try_this(NotMounted.remedy().unwrap_or_default()),
        ProbeListError::Tracefs(_) | ProbeListError::Denied(_) => {
            result.why("only root may change probes").try_this("run as root, for example with sudo")
        }
        ProbeListError::Unsupported(ProbeList::Kernel) => result
            .why("the kernel was built without CONFIG_KPROBE_EVENTS")
            .try_options("-x FILE probes programs"),
        ProbeListError::Unsupported(ProbeList::Programs) => {
            result.why("the kernel was built without CONFIG_UPROBE_EVENTS")
        }
        ProbeListError::Refused { .. } => result,
    }
}

/// Writes all probes, or none.
fn add(probes: &[NewProbe], request: &ProbeRequest, host: &Host) -> Result<()> {
    let list = match request.target {
        ProbeTarget::Program(_) => ProbeList::Programs,
        ProbeTarget::Kernel { .. } => ProbeList::Kernel,
    };
    let adding = |error| refused(error, "adding the probe");
    let mut changes = host.change_probes(list).map_err(adding)?;
    let mut added: BTreeSet<(&str, &str)> = BTreeSet::new();
    for probe in probes {
        if request.is_verbose {
            say::note(format!("writing {}", probe.event));
        }
        let Err(error) = changes.add(&probe.event) else {
            added.insert((&probe.event.group, &probe.event.name));
            continue;
        };
        let mut left = Vec::new();
        for (group, name) in &added {
            if changes.remove(group, name).is_err() {
                left.push(format!("{group}:{name}"));
            }
        }
        let error = adding(error);
        return Err(match (added.is_empty(), left.is_empty()) {
            (true, _) => error,
            (false, true) => error.detail("the probes that this command had already added were removed"),
            (false, false) => error.try_this(format!("pmc probe -d {}: these were added", left.join(" -d "))),
        });
    }
    Ok(())
}

fn say_added(probes: &[NewProbe], request: &ProbeRequest) -> Result<()> {
    if request.is_quiet {
        return Ok(());
    }
    let rows: Vec<ProbeRow> = probes.iter().map(|probe| row(&probe.event, probe.place.clone())).collect();
    let mut text = Vec::new();
    pmc_view::probe::added(&mut text, &rows).map_err(|error| Error::output("the probes", error))?;
    String::from_utf8_lossy(&text).lines().for_each(say::line);
    Ok(())
}

/// Whether an event matches a name or pattern of the form `[GROUP:]EVENT`.
fn matches(pattern: &str, probe: &ProbeEvent) -> bool {
    let (group, event) = pattern.split_once(':').unwrap_or(("*", pattern));
    glob::matches(group, &probe.group) && glob::matches(event, &probe.name)
}

fn delete(request: &ProbeRequest, host: &Host) -> Result<()> {
    let probes = all_probes(host)?;
    for pattern in &request.deletes {
        let hit = probes.iter().filter(|probe| matches(pattern, probe));
        let events: BTreeSet<(ProbeList, &str, &str)> =
            hit.map(|probe| (probe.list, probe.group.as_str(), probe.name.as_str())).collect();
        if events.is_empty() {
            return Err(
                Error::new(format!("no probe matches `{pattern}`")).try_this("pmc probe -l lists the probes")
            );
        }
        let mut failure = None;
        for (list, group, name) in events {
            let removed = if request.is_dry_run { Ok(()) } else { remove(host, list, group, name) };
            if let Err(error) = removed {
                let error = refused(error, &format!("deleting {group}:{name}"));
                failure = Some(error.why("an event cannot be deleted while a recorder or tracer uses it"));
                continue;
            }
            if !request.is_quiet {
                say::line(format!("Removed event: {group}:{name}"));
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(())
}

/// Removes an event. If the event is open, waits for a while, since `pmc list` opens every event for a short
/// time.
fn remove(host: &Host, list: ProbeList, group: &str, name: &str) -> Result<(), ProbeListError> {
    let mut changes = host.change_probes(list)?;
    let mut tries = 1..BUSY_TRIES;
    loop {
        match changes.remove(group, name) {
            Err(ProbeListError::Refused { kind: io::ErrorKind::ResourceBusy, .. })
                if tries.next().is_some() =>
            {
                std::thread::sleep(BUSY_WAIT);
            }
            result => return result,
        }
    }
}

fn list(pattern: Option<&str>, host: &Host) -> Result<()> {
    let mut probes = all_probes(host)?;
    probes.retain(|probe| pattern.is_none_or(|pattern| matches(pattern, probe)));
    let mut rows = Vec::new();
    for of_file in probes.chunk_by(|a, b| file_of(a) == file_of(b)) {
        let describe = |program: Option<&ProbedProgram<'_>>| -> Vec<ProbeRow> {
            of_file.iter().map(|probe| row(probe, listed_place(probe, program))).collect()
        };
        let file = file_of(&of_file[0]).and_then(|path| resolve::open(Path::new(path)).ok());
        let described = file.and_then(|file| file.examine(|program| describe(Some(program))).ok());
        rows.extend(described.unwrap_or_else(|| describe(None)));
    }
    print(|out| rows.iter().try_for_each(|probe| pmc_view::probe::row(out, probe)))
}

/// Describes where an existing probe is, if possible by its position in the source code.
fn listed_place(probe: &ProbeEvent, program: Option<&ProbedProgram<'_>>) -> String {
    let returns = if probe.returns { "%return" } else { "" };
    let Some((_, offset)) = probe.file_and_offset() else {
        return format!("{}{returns}", probe.place.trim_end_matches("+0"));
    };
    let source = program.and_then(|program| program.source_place(program.address_of(offset)?));
    match source {
        Some(source) => pmc_view::probe::source_position(&source, probe.returns),
        None => format!("{offset:#x}{returns}"),
    }
}

/// Describes a probe at a place.
fn row(probe: &ProbeEvent, place: String) -> ProbeRow {
    let name = |text: &String| text.split_once('=').map_or(text.clone(), |(name, _)| name.to_owned());
    ProbeRow {
        event: format!("{}:{}", probe.group, probe.name),
        place,
        file: file_of(probe).map(str::to_owned),
        arguments: probe.arguments.iter().map(name).collect(),
    }
}

fn file_of(probe: &ProbeEvent) -> Option<&str> {
    probe.file_and_offset().map(|(file, _)| file)
}

fn lines(range: &LineRange, request: &ProbeRequest) -> Result<()> {
    let path = required_program(request, "-L")?;
    let found = resolve::open(path)?.examine(|program| match (&range.function, &range.file) {
        (Some(function), file) => program.function_lines(function, file.as_deref()),
        (None, file) => program.file_lines(file.as_deref().unwrap_or_default()),
    })??;
    if found.others > 0 {
        let function = range.function.as_deref().unwrap_or_default();
        say::note(format!(
            "{} other functions are named {function}: {function}@FILE selects one",
            found.others
        ));
    }
    let owner = std::fs::metadata(path).ok().map(|meta| meta.uid());
    let source = source_text::read(&found.file, &SourceFolders::default(), owner, || None);
    let source = source.map_err(|reason| {
        let folder = Path::new(&found.file).parent().unwrap_or(Path::new("/"));
        Error::new(format!("cannot read the source file {reason}"))
            .why("the program's debug information contains the path at which it was compiled")
            .try_this(format!("ln -s YOUR-SOURCE-DIRECTORY {}", shell_word(folder)))
    })?;
    let (first, last) = (range.first, range.last);
    print(|out| pmc_view::probe::lines(out, range.function.as_deref(), &found, &source.lines, (first, last)))
}

fn variables(points: &[ProbePoint], request: &ProbeRequest) -> Result<()> {
    let path = required_program(request, "-V")?;
    resolve::open(path)?.examine(|program| {
        points.iter().try_for_each(|point| {
            let places = program.places(&resolve::place_request(point, request))?;
            let at = |place| {
                let mut variables = program.available(place, request.shows_globals)?;
                variables.retain(|variable| request.filter.fits(&variable.name));
                Ok(PlaceVariables { place: resolve::position(program, place), variables })
            };
            let found: Vec<PlaceVariables> = places.iter().map(at).collect::<Result<_>>()?;
            let typed = resolve::typed_place(point, "");
            print(|out| pmc_view::probe::variables(out, &typed, &found))
        })
    })?
}

fn functions(request: &ProbeRequest, host: &Host) -> Result<()> {
    let mut names = match &request.target {
        ProbeTarget::Program(path) => resolve::open(path)?.examine(|program| program.functions())?,
        ProbeTarget::Kernel { module } => kernel_names(module.as_deref(), host)?,
    };
    names.retain(|name| request.filter.fits(name));
    if names.is_empty() {
        say::note("no function matches; a stripped program has only the names of exported functions");
    }
    print(|out| pmc_view::probe::each(out, &names))
}

/// Returns the functions of the kernel or of a module, sorted.
fn kernel_names(module: Option<&str>, host: &Host) -> Result<Vec<String>> {
    let text = host.kallsyms().ok_or_else(|| {
        Error::new("cannot read the kernel's symbols (/proc/kallsyms)").try_this("run as root")
    })?;
    let lines = text.split(|&byte| byte == b'\n').filter_map(KallsymsLine::read);
    let own = module.map_or_else(String::new, |module| format!("[{module}]"));
    let lines = lines.filter(|line| line.is_code() && line.module == own.as_bytes());
    let names: BTreeSet<String> = lines.map(|line| String::from_utf8_lossy(line.name).into_owned()).collect();
    Ok(names.into_iter().collect())
}
