//! Kernel tracepoints, by name or pattern.

use super::super::error::{Fault, ParseResult, TextSpan};
use super::super::syntax::EventWord;
use super::super::{EventSource, EventSpec};
use crate::hint::Hint;
use pmc_sys::abi::attr::kind;
use pmc_sys::host::Host;
use pmc_sys::host::tracepoint::TracepointError;
use pmc_text::text::glob;

/// Returns the tracepoint, or all matching ones if one of the words is a pattern.
pub(in crate::event) fn tracepoints(
    host: &Host,
    system: EventWord<'_>,
    name: EventWord<'_>,
) -> ParseResult<Vec<EventSpec>> {
    let span = system.at..name.span().end;
    let no_tracefs = |error: TracepointError| fault_of(error, &span);
    let of_programs = host.program_probes();
    let tracepoint = |system: &str, name: &str, id| tracepoint(&of_programs, system, name, id);
    if !glob::is_pattern(system.text) && !glob::is_pattern(name.text) {
        return match host.tracepoint_id(system.text, name.text) {
            Ok(id) => Ok(vec![tracepoint(system.text, name.text, id)]),
            Err(TracepointError::Absent) => Err(unknown_tracepoint(host, system, name)),
            Err(error) => Err(no_tracefs(error)),
        };
    }
    let systems = if glob::is_pattern(system.text) {
        let mut systems = host.tracepoint_systems().map_err(no_tracefs)?;
        systems.retain(|s| glob::matches(system.text, s));
        systems
    } else {
        vec![system.text.to_owned()]
    };
    let mut specs = Vec::new();
    for system in &systems {
        let mut names = host.tracepoint_names(system).map_err(no_tracefs)?;
        names.retain(|n| glob::matches(name.text, n));
        for name in names {
            // Some entries (ftrace's own) have no ID and cannot be opened.
            if let Ok(id) = host.tracepoint_id(system, &name) {
                specs.push(tracepoint(system, &name, id));
            }
        }
    }
    if specs.is_empty() {
        if systems.len() == 1 && !glob::is_pattern(system.text) {
            return Err(unknown_tracepoint(host, system, name));
        }
        return Err(Fault::at(&span, "no tracepoint matches this pattern").try_this(Hint::ListTracepoints));
    }
    Ok(specs)
}

fn tracepoint(of_programs: &[String], system: &str, name: &str, id: u64) -> EventSpec {
    let mut spec = EventSpec::kernel(format!("{system}:{name}"), kind::TRACEPOINT, id);
    spec.of_user_mode = system == "syscalls" || of_programs.contains(&spec.name);
    if let EventSource::Kernel(attr) = &mut spec.source {
        attr.set_period(1);
    }
    spec.pmu = Some("tracepoint".to_owned());
    spec
}

fn unknown_tracepoint(host: &Host, system: EventWord<'_>, name: EventWord<'_>) -> Fault {
    let names = host.tracepoint_names(system.text).unwrap_or_default();
    if names.is_empty() {
        let systems = host.tracepoint_systems().unwrap_or_default();
        return Fault::at(&system.span(), format!("no tracepoints named `{}:…`", system.text))
            .meant(system.text, systems.iter().map(String::as_str))
            .try_this(Hint::ListTracepoints);
    }
    Fault::at(&name.span(), format!("`{}` has no tracepoint `{}`", system.text, name.text))
        .meant(name.text, names.iter().map(String::as_str))
        .try_this(Hint::ListTracepointsOf { system: system.text.to_owned() })
}

fn fault_of(error: TracepointError, span: &TextSpan) -> Fault {
    let fault = Fault::at(span, format!("cannot look up tracepoints: {error}"));
    let fault = match error {
        TracepointError::NotMounted => fault.why("pmc finds tracepoint ids in tracefs"),
        TracepointError::Denied(_) => fault.why("only root can read tracefs by default"),
        TracepointError::Absent => fault,
    };
    match error.remedy() {
        Some(remedy) => fault.try_this(remedy),
        None => fault,
    }
}
