//! Options shared by several commands: the selection of samples, the sources of symbols, and checks for
//! events that are counted in parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::options::sample_filter::SampleFilter;
use crate::options::stack_options::StackOptions;
use crate::options::symbol_files::SymbolFiles;
use crate::time_span::time_span;
use pmc_analysis::analysis::request::{NamePattern, SampleSelection, StackChanges};
use pmc_analysis::profile::sampled::SortKey;
use pmc_analysis::profile::sampled::sort::REFUSED;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::session::thread_time::ThreadState;
use pmc_events::event::EventSpec;
use pmc_recording::recording::plan::Delay;
use pmc_symbols::symbol::{Debuginfod, SymbolOptions};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::cpulist::CpuList;
use pmc_sys::sys::standard_input;
use pmc_text::terminal::theme::Background;
use pmc_text::text;
use pmc_text::units::{self, MS, S, parse_duration};

/// Default number of lines of a call tree in text output. Longer trees are hard to read.
pub const TREE_LINES: usize = 40;

/// Returns the recording to read: the named file, or else standard input if it has data, or else `perf.data`.
pub fn input(typed: Option<&PathBuf>) -> PathBuf {
    let waiting = || say::note("waiting for a recording on standard input; use -i perf.data to read a file");
    let unnamed = || if standard_input::brings_something(waiting) { "-" } else { "perf.data" }.into();
    typed.cloned().unwrap_or_else(unnamed)
}

/// Returns the path of a recording with a suffix. For standard input, the path is that of `perf.data`.
pub fn with_suffix(recording: &Path, suffix: &str) -> PathBuf {
    let named = if recording.as_os_str() == "-" { Path::new("perf.data") } else { recording };
    let mut path = named.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Rejects events that cannot distinguish user mode from kernel mode. `option` is the option that requires
/// the distinction.
///
/// # Errors
/// Fails if an event cannot distinguish the two modes. The error names the first such event.
pub fn check_levels<'e>(option: &str, mut events: impl Iterator<Item = &'e EventSpec>) -> Result<()> {
    let why = "the event already selects privilege levels, or always counts at all levels, as clocks do (use user_time and system_time)";
    events.find(|event| !event.has_levels()).map_or(Ok(()), |event| Err(no_parts(option, event, why)))
}

/// Returns the error for an event that cannot be split into the parts that `option` requests.
pub fn no_parts(option: &str, event: &EventSpec, why: &str) -> Error {
    Error::usage(format!("{option}: {} cannot be split this way", event.name))
        .why(why)
        .try_this("use a separate run")
}

/// Returns the background selected by `--theme`, or else by `PMC_THEME`. If the result is `None`, ask the
/// terminal.
///
/// # Errors
/// Fails if the variable has an invalid value.
pub fn background(theme: Option<&str>) -> Result<Option<Background>> {
    let variable = std::env::var("PMC_THEME").unwrap_or_default();
    match theme.unwrap_or(&variable) {
        "dark" => Ok(Some(Background::Dark)),
        "light" => Ok(Some(Background::Light)),
        "auto" | "" => Ok(None),
        other => Err(Error::usage(format!("PMC_THEME is {other:?}, which is not a known theme"))
            .try_this("dark, light or auto")),
    }
}

/// Parses `--stdio-color`. Returns `None` if the choice depends on the terminal.
pub fn colour(when: &str) -> Option<bool> {
    match when {
        "always" => Some(true),
        "never" => Some(false),
        _ => None,
    }
}

/// Assigns each tracepoint filter to the preceding `-e`.
pub fn tracepoint_filters(places: Vec<usize>, filters: Vec<String>) -> Result<Vec<(usize, String)>> {
    let of = |(place, filter): (usize, String)| {
        let event = place.checked_sub(1).ok_or_else(|| {
            Error::usage(format!("--filter '{filter}' must follow the event that it applies to"))
                .try_this("-e sched:sched_switch --filter 'prev_pid != 0'")
        })?;
        Ok((event, filter))
    };
    places.into_iter().zip(filters).map(of).collect()
}

/// Combines the options for symbol files with the environment variables.
///
/// # Errors
/// Fails if debuginfod is requested, but no server is configured.
pub fn symbol_options(typed: &SymbolFiles) -> Result<SymbolOptions> {
    let environment = SymbolOptions::from_environment();
    let servers = if typed.no_debuginfod { None } else { debuginfod(typed.debuginfod.as_ref())? };
    Ok(SymbolOptions {
        symfs: typed.symfs.clone(),
        kallsyms: typed.kallsyms.clone(),
        vmlinux: typed.vmlinux.clone(),
        debuginfod: servers,
        debuginfod_cache: environment.debuginfod_cache.clone().filter(|_| !typed.no_debuginfod),
        cache: environment.cache.clone().filter(|_| !typed.no_cache),
        ..environment
    })
}

/// Returns the debuginfod servers from `--debuginfod`, or else from the environment.
///
/// # Errors
/// Fails if debuginfod is requested, but no server is configured.
pub fn debuginfod(typed: Option<&Option<String>>) -> Result<Option<Arc<Debuginfod>>> {
    let servers = match typed {
        Some(Some(urls)) => Debuginfod::at(urls),
        Some(None) | None => Debuginfod::from_environment(),
    };
    if typed.is_some() && servers.is_none() {
        return Err(Error::usage("--debuginfod: no server given")
            .why("DEBUGINFOD_URLS is not set")
            .try_this("--debuginfod=https://debuginfod.elfutils.org"));
    }
    Ok(servers.map(Arc::new))
}

/// Returns the selection of samples.
///
/// # Errors
/// Fails if the list of CPUs or the time range is invalid.
pub fn selection(typed: &SampleFilter) -> Result<SampleSelection> {
    Ok(SampleSelection {
        comms: typed.comms.clone(),
        pids: typed.pid.clone(),
        tids: typed.tid.clone(),
        cpus: match typed.cpu.as_deref() {
            Some(list) => Some(cpus(list)?.iter().collect()),
            None => None,
        },
        socket: None,
        time: typed.time.as_deref().map(time_span).transpose()?,
        parallelism: None,
        states: None,
    })
}

/// Like [`selection`], including the stack options.
///
/// # Errors
/// See [`selection`].
pub fn selection_of_stacks(typed: &SampleFilter, stacks: &StackOptions) -> Result<SampleSelection> {
    let states = states(&stacks.state)?;
    Ok(SampleSelection { socket: stacks.socket_filter, states, ..selection(typed)? })
}

/// Returns the thread states that `--state` selects; `None` for all.
///
/// # Errors
/// Fails if a word is not a thread state.
pub fn states(words: &[String]) -> Result<Option<Vec<ThreadState>>> {
    if words.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for word in words {
        let named = ThreadState::named(word.trim()).ok_or_else(|| {
            Error::usage(format!("--state {word:?} is not a thread state"))
                .try_this("one of running, runnable, blocked, waiting (the last two), all")
        })?;
        all.extend(named);
    }
    Ok(Some(all))
}

/// perf's default pattern for parent functions, which matches kernel entry points.
const PARENT: &str = "^sys_|^do_page_fault";

/// Returns the changes to stacks that depend on function names.
///
/// # Errors
/// Fails if a pattern is invalid.
pub fn stack_changes(typed: &StackOptions) -> Result<StackChanges> {
    Ok(StackChanges {
        ignore_callees: typed.ignore_callees.as_deref().map(NamePattern::new).transpose()?,
        parent: match (&typed.parent, typed.exclude_other) {
            (Some(text), _) => Some(NamePattern::new(text)?),
            (None, true) => Some(NamePattern::new(PARENT)?),
            _ => None,
        },
        parents_only: typed.exclude_other,
    })
}

/// Returns the modules and functions to include.
pub fn only(typed: &StackOptions) -> RowSelection {
    RowSelection {
        dsos: listed(&typed.dsos),
        symbols: listed(&typed.symbols),
        part: typed.symbol_filter.clone(),
        named: typed.hide_unresolved,
        ..RowSelection::default()
    }
}

/// Minimum size of a call tree branch in a JSON document, in percent.
pub const BRANCH_IN_JSON: f64 = 0.05;

/// Parses a list of CPUs.
///
/// # Errors
/// Fails if the text is not a list of numbers.
pub fn cpus(list: &str) -> Result<CpuList> {
    list.parse()
        .map_err(|_| Error::usage(format!("{list:?} is not a list of CPUs")).try_this("a list such as 0-3,8"))
}

/// Parses a list that selects samples by the number of threads that ran in parallel.
///
/// # Errors
/// Fails if the text is not a list of numbers.
pub fn parallelism(list: &str) -> Result<CpuList> {
    list.parse().map_err(|_| {
        Error::usage(format!("{list:?} is not a list of thread counts")).try_this("a list such as 1-2,8")
    })
}

/// Parses a time and returns it in nanoseconds. The default unit is `bare` nanoseconds.
///
/// # Errors
/// Fails if the text is not a time, or the time is shorter than `least`.
pub fn duration(option: &str, text: &str, bare: u64, least: u64) -> Result<u64> {
    parse_duration(text, Some(bare)).filter(|&ns| ns >= least).ok_or_else(|| {
        let (shortest, unit) =
            (units::duration(least as f64), if bare == S { "seconds" } else { "milliseconds" });
        Error::usage(format!("{option} {text}: must be a time of at least {shortest}"))
            .try_this(format!("{option} 100ms, 5s or 2m; a bare number means {unit}"))
    })
}

/// Parses `--timeout`, in nanoseconds.
///
/// # Errors
/// Fails if the text is not a time.
pub fn timeout(typed: Option<&str>) -> Result<Option<u64>> {
    typed.map(|text| duration("--timeout", text, MS, MS)).transpose()
}

/// Parses `-D`: a time, or -1.
///
/// # Errors
/// Fails if the text is neither, or it is -1 without a control channel.
pub fn delay(typed: Option<&str>, has_control: bool) -> Result<Delay> {
    match typed {
        None => Ok(Delay::None),
        Some("-1") if has_control => Ok(Delay::UntilOrder),
        Some("-1") => Err(Error::usage("-D -1 requires --control").try_this("add --control fifo:PATH")),
        Some(text) => match parse_duration(text, Some(MS)) {
            Some(0) => Ok(Delay::None),
            Some(ns) => Ok(Delay::Ns(ns)),
            None => Err(Error::usage(format!("-D {text}: not a time")).try_this(
                "-D 500ms or -D 2s (a bare number means milliseconds), or -1 to wait for --control",
            )),
        },
    }
}

/// Parses the argument of `-D`: either ranges, or a delay as in [`delay`]. With ranges, the delay is the
/// start of the first range, and at the returned times recording is alternately turned off and on.
///
/// # Errors
/// Fails in the same cases as [`delay`], and if a range is invalid or the ranges are not in order.
pub fn delay_or_ranges(typed: Option<&str>, has_control: bool) -> Result<(Delay, Vec<u64>)> {
    let Some(text) = typed.filter(|text| text.get(1..).is_some_and(|rest| rest.contains('-'))) else {
        return Ok((delay(typed, has_control)?, Vec::new()));
    };
    let times: Option<Vec<u64>> = text
        .split(',')
        .map(|range| range.split_once('-').map(<[_; 2]>::from))
        .flat_map(|range| range.map_or([None; 2], |ends| ends.map(|end| parse_duration(end, Some(MS)))))
        .collect();
    match times.as_deref() {
        Some([first, rest @ ..]) if times.iter().flatten().is_sorted_by(|a, b| a < b) => {
            let delay = if *first == 0 { Delay::None } else { Delay::Ns(*first) };
            Ok((delay, rest.to_vec()))
        }
        _ => Err(Error::usage(format!("-D {text}: not a list of increasing time ranges"))
            .try_this("-D 10-20,30-40, or with units: -D 1s-2s,2500ms-3s")),
    }
}

/// Returns the selected names, or `None`, which selects all names, if the list is empty.
pub fn listed(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

/// Returns the sort key with this name.
///
/// # Errors
/// Fails if there is no such key; the error suggests similar ones.
pub fn sort_key(name: &str) -> Result<SortKey> {
    let name = name.trim();
    if let Some(key) = SortKey::of(name) {
        return Ok(key);
    }
    if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
        return Err(Error::usage(format!("pmc has no sort key {name:?}")).why(*why));
    }
    let error = Error::usage(format!("unknown sort key {name:?}"));
    let near = text::nearest(name, SortKey::names(), 3);
    Err(match near.first() {
        Some(_) => error.try_this(format!("did you mean {}?", near.join(" or "))),
        None => error.try_this(format!("one of {}", SortKey::names().collect::<Vec<_>>().join(", "))),
    })
}

/// Whether a name that is not a sort key may be a tracepoint field. It may be one if it has the syntax of a
/// field or does not resemble any sort key.
pub fn may_be_trace_field(name: &str) -> bool {
    let is_refused = REFUSED.iter().any(|(known, _)| *known == name);
    name.contains(['.', '/'])
        || name == "trace_fields"
        || !is_refused && text::nearest(name, SortKey::names(), 1).is_empty()
}

/// Returns the number of rows to show. This is the number that the user typed, where 0 means all rows, or
/// else `usual` for text and all rows for machine-readable output.
pub fn rows(typed: Option<usize>, is_text: bool, usual: usize) -> usize {
    match typed {
        Some(0) => usize::MAX,
        Some(rows) => rows,
        None if !is_text => usize::MAX,
        None => usual,
    }
}
