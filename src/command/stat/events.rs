//! Selects the events that `pmc stat` counts: the requested events, the events of metrics, or the default set
//! for this machine.
//!
//! Receives the events of the request. Returns parsed groups with their cgroups, and the metrics to
//! derive.

use std::path::Path;
use std::rc::Rc;

use super::collect::quantity;
use super::metrics::{CountSource, TableMetrics};
use super::parts;
use pmc_analysis::profile::counts::{Aggregation, MissingValueReason};
use pmc_analysis::profile::metrics::formula::{Formula, Operand};
use pmc_events::counter::Mode;
use pmc_events::counter::metric_events;
use pmc_events::counter::open::cycles;
use pmc_events::counter::refusal::Refusal;
use pmc_events::counter::target::TargetCgroup;
use pmc_events::event::perfevent_conf::{DerivedEvent, PerfeventConf, SkippedLine};
use pmc_events::event::{EventGroup, EventParser, EventSpec, ParseError, perfevent_conf};
use pmc_recording::recording::plan::MeasurementScope;
use pmc_recording::recording::stat_request::{CgroupChoice, EventSelection, StatRequest};
use pmc_recording::recording::{filters, launch};
use pmc_sys::error::{Error, Result, Warning};
use pmc_sys::host::Host;

/// The events and metrics to count.
pub(super) struct ResolvedSelection {
    pub(super) groups: Vec<(EventGroup, Option<Rc<TargetCgroup>>)>,
    pub(super) metrics: TableMetrics,
    /// Warnings about events and metrics that were requested but are skipped.
    pub(super) left_out: Vec<Warning>,
    /// Why the kernel refused `cycles`, if there are no counters for the hardware events of the default set.
    pub(super) no_hardware: Option<Box<Refusal>>,
}

impl ResolvedSelection {
    /// Returns the cgroup name of each event, in order.
    pub(super) fn cgroup_names(&self) -> Vec<Option<String>> {
        let names = self.groups.iter().flat_map(|(group, cgroup)| {
            let name = cgroup.as_ref().map(|c| c.name().to_owned());
            std::iter::repeat_n(name, group.events.len())
        });
        names.collect()
    }
}

/// Determines the events to count. `has_all_rows`: whether default events that the machine cannot count have
/// rows, too.
///
/// # Errors
/// Fails if an event is invalid, a metric is unknown, or a cgroup cannot be opened.
pub(super) fn resolve_selection(
    request: &StatRequest,
    has_all_rows: bool,
    host: &Host,
) -> Result<ResolvedSelection> {
    let EventSelection { events, detailed, null, metrics, .. } = &request.selection;
    let mut parser = EventParser::new(host).with_target(launch::subject(&request.scope, &request.command));
    let mut chosen = filters::events(&mut parser, events, &request.selection.filters)?;
    let mut sums = Vec::new();
    let mut left_out = Vec::new();
    if let Some(path) = &request.selection.perfevent_conf {
        let conf = perfevent_conf(path, host, &mut parser)?;
        chosen.extend(conf.groups);
        sums.extend(conf.sums.iter().map(|sum| derived(sum, &chosen)));
        left_out.extend(conf.left_out.into_iter().map(|SkippedLine { line, entry, why }| {
            Warning::note(format!("{}:{line}: skipped {entry}: {why}", path.display()))
        }));
    }
    let mut no_hardware = None;
    if events.is_empty() && request.selection.perfevent_conf.is_none() && !null && metrics.is_empty() {
        no_hardware = cycles(Mode::TaskCounting).err();
        let whole_cpus = matches!(request.scope, MeasurementScope::Cpus(_) | MeasurementScope::AllThreads);
        // Text output has a single note about missing counters. Machine-readable output has a row for each
        // event, as in perf.
        let hardware = no_hardware.is_none() || has_all_rows;
        let set = default_set(*detailed, whole_cpus, hardware, host).into_iter();
        // Clocks do not distinguish privilege levels.
        for text in set.skip(usize::from(request.aggregation == Aggregation::Levels)) {
            chosen.extend(parser.parse(text)?);
        }
    } else if *detailed > 0 && !null {
        for text in DETAILED.iter().take(usize::from(*detailed)) {
            chosen.extend(parser.parse(text)?);
        }
    }
    let mut metrics = TableMetrics::new(metrics, &CountSource::Here(&request.scope), host)?;
    left_out.append(&mut metrics.left_out);
    if let Some(tree) = &mut metrics.tree {
        tree.is_all &= chosen.is_empty();
    }
    let found = add(&mut chosen, &metrics.formulas, &request.selection, &mut parser, host);
    if chosen.is_empty() && metrics.shares.is_none() && !null {
        lacks_all(&metrics.formulas, &found)?;
        // A metric without events (`#num_cpus`) needs a row too, which this event provides, as in perf.
        if !metrics.formulas.is_empty() {
            chosen.extend(parser.parse("duration_time")?);
        }
    }
    // The events of the formulas from --perfevent-conf are already present.
    metrics.lacking = sums.iter().map(|_| None).chain(found).collect();
    metrics.formulas.splice(..0, sums);
    if let Some(set) = metrics.shares {
        chosen.extend(parser.parse(&format!("{{{}}}:W", set.join(",")))?);
    }
    narrow(&mut chosen, &request.selection, host)?;
    let chosen = parts::split(chosen, request.aggregation)?;
    Ok(ResolvedSelection { groups: bind(chosen, &request.cgroups, host)?, metrics, left_out, no_hardware })
}

/// Reads a configuration file of PCP's agent, and selects the parts for this machine.
///
/// # Errors
/// Fails if the file cannot be read or parsed, or if it configures no event that this machine can count.
fn perfevent_conf(path: &Path, host: &Host, parser: &mut EventParser<'_>) -> Result<PerfeventConf> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(format!("--perfevent-conf: reading {}", path.display()), error))?;
    let conf = perfevent_conf::read(&text, host, parser)
        .map_err(|bad| Error::usage(format!("--perfevent-conf {}: {bad}", path.display())))?;
    if !conf.groups.is_empty() {
        return Ok(conf);
    }
    let lines =
        conf.left_out.iter().map(|SkippedLine { line, entry, why }| format!("line {line}: {entry}: {why}"));
    Err(Error::new(format!(
        "--perfevent-conf {}: this machine cannot count any of its events",
        path.display()
    ))
    .detail(lines.collect::<Vec<_>>().join("\n"))
    .try_this("a `[perf]` section with events from `pmc list`"))
}

/// Converts a derived event into a metric. A derived event's factors apply to raw counts, but the metric is
/// computed from displayed values.
fn derived(sum: &DerivedEvent, chosen: &[EventGroup]) -> Formula {
    let quantity =
        |name: &str| of_groups(chosen).find(|event| event.name == name).map_or((1.0, ""), quantity);
    let unit = match sum.terms.iter().all(|(_, factor)| factor.is_none()) {
        true => quantity(&sum.terms[0].0).1,
        false => "",
    };
    let factor = |name: &str, factor: Option<f64>| factor.map_or(1.0, |factor| factor / quantity(name).0);
    let terms = sum.terms.iter().map(|(name, own)| (name.clone(), factor(name, *own)));
    Formula::sum(&sum.name, unit, terms)
}

/// Removes the events of cores and PMUs that are not selected.
///
/// # Errors
/// Fails if no event is left.
fn narrow(groups: &mut Vec<EventGroup>, selection: &EventSelection, host: &Host) -> Result<()> {
    let EventSelection { core_kind, pmu, .. } = selection;
    if let Some(kind) = core_kind
        && host.pmu(kind).is_none()
        && host.pmu(&format!("cpu_{kind}")).is_none()
    {
        let names = host.pmu_names();
        let cores = names.iter().filter_map(|name| name.strip_prefix("cpu_")).collect::<Vec<_>>();
        let error = Error::usage(format!("--cputype {kind}: this machine has no cores of this type"));
        return Err(match cores.is_empty() {
            true => error.why("all cores are of the same type").try_options("omit --cputype"),
            false => error.try_this(format!("one of: {}", cores.join(", "))),
        });
    }
    let mut left_out = Vec::new();
    for group in groups.iter_mut() {
        group.events.retain(|spec| {
            let own = spec.pmu.as_deref();
            let is_core = |kind: &String| own.is_some_and(|own| own == kind || own == format!("cpu_{kind}"));
            // Keep events without alternatives on other PMUs, because the user requested them explicitly.
            let fits_core = spec.core_cpus.is_none() || core_kind.as_ref().is_none_or(is_core);
            let fits_pmu =
                spec.merge.is_none() || spec.core_cpus.is_some() || pmu.is_none() || own == pmu.as_deref();
            left_out.extend(own.filter(|_| !fits_core || !fits_pmu).map(str::to_owned));
            fits_core && fits_pmu
        });
    }
    groups.retain(|group| !group.events.is_empty());
    if groups.is_empty() && !left_out.is_empty() {
        left_out.sort();
        left_out.dedup();
        let (option, name) = match (core_kind, pmu) {
            (Some(kind), _) => ("--cputype", kind),
            (None, pmu) => ("--pmu-filter", pmu.as_ref().unwrap_or(&left_out[0])),
        };
        return Err(Error::usage(format!("{option} {name}: no event matches"))
            .try_this(format!("use one of these PMUs: {}", left_out.join(", "))));
    }
    Ok(())
}

/// Adds the events that the formulas need, unless they are already counted. For each formula that cannot be
/// computed on this machine, returns the reason.
fn add(
    groups: &mut Vec<EventGroup>,
    formulas: &[Formula],
    selection: &EventSelection,
    parser: &mut EventParser<'_>,
    host: &Host,
) -> Vec<Option<MissingValueReason>> {
    fn names(operands: &[Operand]) -> Vec<&str> {
        operands.iter().map(|operand| operand.name.as_str()).collect()
    }
    let wanted = |formula| {
        let more = if selection.metrics.thresholds {
            names(Formula::threshold_operands(formula))
        } else {
            Vec::new()
        };
        // In a top-down analysis, the shares are more important than the threshold marks, so the events of
        // thresholds are optional.
        let (threshold, optional) =
            if selection.metrics.topdown.is_some() { (Vec::new(), more) } else { (more, Vec::new()) };
        metric_events::MetricEventTexts { value: names(Formula::operands(formula)), threshold, optional }
    };
    let wanted: Vec<_> = formulas.iter().map(wanted).collect();
    let is_counted = |name: &str| of_groups(groups).any(|event| event.name.eq_ignore_ascii_case(name));
    let found = metric_events::find(&wanted, selection.grouping, is_counted, parser, host);
    groups.extend(found.groups);
    let reason = |(event, error): (String, Box<ParseError>)| {
        MissingValueReason::new(format!("this machine does not count {event}: {}", error.message), "")
    };
    found.lacking.into_iter().map(|lack| lack.map(reason)).collect()
}

fn of_groups(groups: &[EventGroup]) -> impl Iterator<Item = &EventSpec> {
    groups.iter().flat_map(|group| &group.events)
}

/// Returns an error if no metric can be computed and there is nothing else to count.
fn lacks_all(formulas: &[Formula], lacking: &[Option<MissingValueReason>]) -> Result<()> {
    let Some(reason) = lacking.iter().flatten().next().filter(|_| lacking.iter().all(Option::is_some)) else {
        return Ok(());
    };
    let what = match formulas {
        [one] => format!("metric {} cannot be computed", one.name),
        all => format!("none of these {} metrics can be computed", all.len()),
    };
    Err(Error::new(what)
        .why(&reason.cause)
        .try_this("pmc list metric shows this machine's metrics; pmc info names the event table"))
}

/// Events that `-d`, `-dd` and `-ddd` add, as in perf.
const DETAILED: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

fn default_set(detailed: u8, whole_cpus: bool, hardware: bool, host: &Host) -> Vec<&'static str> {
    let clock = if whole_cpus { "cpu-clock" } else { "task-clock" };
    let mut set = vec![clock, "context-switches,cpu-migrations,page-faults"];
    if hardware {
        set.push("cycles");
        for (name, file) in [("stalled-cycles-frontend", "frontend"), ("stalled-cycles-backend", "backend")] {
            let path = format!("/sys/bus/event_source/devices/cpu/events/stalled-cycles-{file}");
            if host.path(path).exists() {
                set.push(name);
            }
        }
        set.push("instructions,branches,branch-misses");
        set.extend(DETAILED.iter().take(usize::from(detailed)));
    }
    set
}

/// Assigns cgroups to groups of events: either one cgroup to each group, in order, or all cgroups to every
/// group.
fn bind(
    groups: Vec<EventGroup>,
    cgroups: &CgroupChoice,
    host: &Host,
) -> Result<Vec<(EventGroup, Option<Rc<TargetCgroup>>)>> {
    let open = |name: &String| -> Result<Option<Rc<TargetCgroup>>> {
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Some(Rc::new(TargetCgroup::open(host, name).map_err(launch::no_target)?)))
    };
    match cgroups {
        CgroupChoice::None => Ok(groups.into_iter().map(|group| (group, None)).collect()),
        CgroupChoice::Each(names) => {
            let opened: Vec<_> = names.iter().map(open).collect::<Result<_>>()?;
            Ok(opened.iter().flat_map(|c| groups.iter().map(move |g| (g.clone(), c.clone()))).collect())
        }
        CgroupChoice::InOrder(names) => {
            let opened: Vec<_> = names.iter().map(open).collect::<Result<_>>()?;
            if opened.len() > groups.len() {
                return Err(Error::usage(format!(
                    "-G names {} cgroups for {} events or groups",
                    opened.len(),
                    groups.len()
                ))
                .try_options("--for-each-cgroup counts every event in each cgroup"));
            }
            let single = opened.len() == 1;
            let of =
                |index: usize| if single { opened[0].clone() } else { opened.get(index).cloned().flatten() };
            Ok(groups.into_iter().enumerate().map(|(index, group)| (group, of(index))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::test_data;
    use pmc_events::event::parse;
    use pmc_sys::host::Host;

    fn left(text: &str, core_kind: Option<&str>, pmu: Option<&str>) -> Result<Vec<Option<String>>> {
        let mut groups = parse(text, &Host::rooted(test_data("host/hybrid"))).unwrap();
        let selection = EventSelection {
            core_kind: core_kind.map(str::to_owned),
            pmu: pmu.map(str::to_owned),
            ..EventSelection::default()
        };
        narrow(&mut groups, &selection, &Host::rooted(test_data("host/hybrid")))?;
        Ok(groups.into_iter().flat_map(|group| group.events).map(|spec| spec.pmu).collect())
    }

    #[test]
    fn only_one_core_type_is_kept() {
        let pmus = |kind| left("cycles,page-faults", kind, None).unwrap();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(pmus(None), [named("cpu_core"), named("cpu_atom"), None]);
        assert_eq!(pmus(Some("core")), [named("cpu_core"), None]);
        assert_eq!(pmus(Some("cpu_atom")), [named("cpu_atom"), None]);
        let error = left("cycles", Some("gold"), None).unwrap_err().to_string();
        assert!(error.contains("--cputype gold"), "{error}");
        // An event that only one PMU provides must be kept.
        assert_eq!(left("cycles", None, Some("x")).unwrap().len(), 2);
    }
}
