//! Selects the metrics that `pmc stat` shows: metrics and groups by name, user-defined expressions, and
//! levels of the top-down analysis.
//!
//! Receives the request. Returns formulas for this machine, and a description of the top-down tree. `profile`
//! evaluates the formulas; `counter` counts their events.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use pmc_analysis::analysis::counts::{CountsEvent, RecordedCounts};
use pmc_analysis::profile::counts::{MissingValueReason, StatCounts};
use pmc_analysis::profile::metrics::formula::Formula;
use pmc_analysis::profile::metrics::library::{Binder, MetricDefinition, MetricLibrary, UserMetric};
use pmc_analysis::profile::metrics::literals::{Literals, MetricEnvironment};
use pmc_analysis::profile::metrics::named::NAMED;
use pmc_analysis::profile::metrics::{self, RequestedMetrics, topdown};
use pmc_events::event::EventParser;
use pmc_events::event::vendor::{Vendor, VendorMetric};
use pmc_recording::recording::plan::MeasurementScope;
use pmc_sys::error::{Error, Result, Warning};
use pmc_sys::host::cpu::{self, Topology};
use pmc_sys::host::{CpuList, Host};
use pmc_text::text;
use pmc_view::stat::TopdownTree;

pub(super) enum CountSource<'a> {
    /// The counts come from counters on this machine.
    Here(&'a MeasurementScope),
    /// The counts come from a recording, whose header may contain a CPU id.
    Recorded { counts: &'a RecordedCounts, cpuid: Option<&'a str> },
}

/// The metrics of a table of counts.
#[derive(Default)]
pub(super) struct TableMetrics {
    pub(super) formulas: Vec<Formula>,
    /// Why each formula cannot be computed on this machine; `None` if it can. The list is empty until the
    /// events have been looked up.
    pub(super) lacking: Vec<Option<MissingValueReason>>,
    /// The kernel's top-down events, used if the tables contain no formulas for the top-down analysis.
    pub(super) shares: Option<&'static [&'static str]>,
    /// The tree of the top-down analysis, if requested.
    pub(super) tree: Option<TopdownTree>,
    /// Warnings about invalid metrics in the tables, which may have been imported. Only present if other
    /// metrics were requested as well.
    pub(super) left_out: Vec<Warning>,
}

impl TableMetrics {
    /// Looks up the requested metrics.
    ///
    /// # Errors
    /// Fails if a metric, group or level does not exist, or an expression is invalid.
    pub(super) fn new(asked: &RequestedMetrics, of: &CountSource<'_>, host: &Host) -> Result<Self> {
        if asked.is_empty() {
            return Ok(Self::default());
        }
        let vendor = match of {
            CountSource::Recorded { cpuid: Some(cpuid), .. } => Vendor::recorded(host, cpuid),
            _ => Vendor::find(host),
        };
        let written: Vec<_> = asked.expressions.iter().map(UserMetric::definition).collect();
        let own = NAMED.iter().copied().chain(vendor.metrics().map(definition));
        let known = own.chain(written.iter().copied()).collect::<Vec<_>>();
        let firsts = known.len() - written.len();
        let library = MetricLibrary::new(known);
        let mut chosen: Vec<&MetricDefinition<'_>> = Vec::new();
        for name in &asked.names {
            let before = chosen.len();
            chosen.extend(library.named(name).chain(library.of_group(name)));
            if chosen.len() == before {
                return Err(unknown(name, &library, &vendor));
            }
        }
        chosen.extend(library.definitions().skip(firsts));
        let mut found = Self::default();
        if let Some(level) = asked.topdown {
            match library.of_group("TopdownL1").next() {
                Some(_) => {
                    let levels = (1..=level).map(|level| format!("TopdownL{level}"));
                    levels.for_each(|group| chosen.extend(library.of_group(&group)));
                }
                // A later step looks up which of these events the recording contains.
                None if matches!(of, CountSource::Recorded { .. }) => found.shares = Some(&[]),
                None => {
                    let shares = topdown::events(|name| EventParser::new(host).parse(name).is_ok());
                    found.shares = Some(shares.ok_or_else(no_shares)?);
                }
            }
            let is_all = asked.names.is_empty() && asked.expressions.is_empty();
            found.tree = Some(TopdownTree { is_all, ..tree(level, &library)? });
        }
        let mut seen = HashSet::new();
        chosen.retain(|definition| seen.insert(std::ptr::from_ref(*definition)));
        let parser = RefCell::new(EventParser::new(host));
        let parse = |text: &str| parser.borrow_mut().parse(text).ok();
        let specs =
            |text: &str| Some(parse(text)?.iter().map(|group| group.events.len()).sum::<usize>() as f64);
        let environment = MetricEnvironment {
            literals: of.literals(host, &vendor),
            has_event: &|text| match of {
                CountSource::Here(_) => parse(text).is_some(),
                CountSource::Recorded { counts, .. } => {
                    let is_it = |event: &CountsEvent| event.name.eq_ignore_ascii_case(text);
                    counts.events.iter().any(is_it) || !vendor.named(text).is_empty()
                }
            },
            source_count: &|text| match of {
                CountSource::Here(_) => specs(text),
                // Recordings do not contain the number of PMUs.
                CountSource::Recorded { .. } => None,
            },
            retire_latency: &|event| vendor.retire_latency(event),
            is_cpuid: &|pattern| vendor.is(pattern),
        };
        let mut binder = Binder::new(&library, &environment);
        let mut wrong = None;
        for one in &chosen {
            match binder.formula(one) {
                Ok(mut formula) => {
                    let is_typed = |alias: &&&str| asked.names.iter().any(|name| name == **alias);
                    if let Some(alias) = one.aliases.iter().find(is_typed) {
                        formula.name = (*alias).to_owned();
                    }
                    found.formulas.push(formula);
                }
                Err(error) if one.raw && chosen.len() > 1 => {
                    let why = error.headline();
                    let what = format!("skipped a metric of the event tables: {why}");
                    found.left_out.push(Warning::note(what).advise(
                        "if you imported the tables, fix the metric there and run pmc list --import again",
                    ));
                    wrong = wrong.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        match wrong {
            Some(error) if found.formulas.is_empty() && found.shares.is_none() => Err(error),
            _ => Ok(found),
        }
    }

    /// Computes the metrics of a table.
    pub(super) fn derive(&self, counts: &mut StatCounts) {
        counts.derived = metrics::derive(counts, &self.formulas);
        for row in &mut counts.derived {
            let places = row.len() / self.formulas.len().max(1);
            for (derived, lacking) in row.chunks_mut(places.max(1)).zip(&self.lacking) {
                let Some(reason) = lacking else { continue };
                derived.iter_mut().for_each(|derived| derived.value = Err(reason.clone()));
            }
        }
        if self.shares.is_some() {
            let more = topdown::derive(counts);
            counts.derived.iter_mut().zip(more).for_each(|(row, more)| row.extend(more));
        }
    }
}

/// Converts a vendor's metric into a definition for the metric library.
fn definition(metric: VendorMetric<'_>) -> MetricDefinition<'_> {
    let VendorMetric { name, pmu, scale, groups, level, parent, expr, threshold, locate, text, .. } = metric;
    let help = text.unwrap_or_default();
    MetricDefinition {
        name,
        aliases: &[],
        pmu,
        scale,
        groups,
        level,
        parent,
        expression: expr,
        threshold,
        locate,
        help,
        raw: true,
    }
}

/// Returns the description of the top-down tree, down to this level.
///
/// # Errors
/// Fails if the tables do not have this level.
fn tree(level: u8, library: &MetricLibrary<'_>) -> Result<TopdownTree> {
    let levels =
        library.groups().into_iter().filter_map(|group| group.strip_prefix("TopdownL")?.parse::<u8>().ok());
    let deepest = levels.max().unwrap_or(1);
    if level > deepest {
        let why = match deepest {
            1 => "deeper levels require formulas for the processor model, and pmc has no table for this CPU",
            _ => "this CPU's table has these levels",
        };
        return Err(Error::usage(format!("--td-level {level}: the highest level is {deepest}")).why(why));
    }
    let parents: BTreeSet<&str> =
        library.definitions().map(|one| one.parent).filter(|name| !name.is_empty()).collect();
    let parents = parents.into_iter().map(str::to_owned).collect();
    Ok(TopdownTree { level, deepest, parents, is_all: true })
}

fn no_shares() -> Error {
    Error::new(
        "--topdown: this machine's core PMU has no top-down events, and no table has metrics for this CPU",
    )
    .why("Intel cores since Sandy Bridge provide them; virtual machines rarely do")
    .try_this("pmc list topdown; pmc info names the event table")
}

impl CountSource<'_> {
    /// Returns the values of `#literals` for the machine and the targets. A recording contains only the CPU
    /// topology; the other values are known only if it is read on a machine of the same kind.
    fn literals(&self, host: &Host, vendor: &Vendor) -> Literals {
        let (topology, whole_cpus, is_here) = match self {
            Self::Here(MeasurementScope::Cpus(cpus)) => (Topology::read(host), Some(cpus.clone()), true),
            Self::Here(_) => (Topology::read(host), None, true),
            Self::Recorded { counts, cpuid } => {
                let cpus = counts.threads.is_empty().then(|| counts.cpus.iter().copied().collect());
                let is_here = cpuid.is_none() || cpu::event_table_id(host, 0).as_deref() == vendor.id();
                (counts.topology.clone(), cpus, is_here)
            }
        };
        // Whether all hardware threads of each measured core are measured.
        let is_core_wide = |cpus: &CpuList| {
            let core =
                |cpu| topology.location(cpu).map(|location| (location.socket, location.die, location.core));
            topology
                .iter()
                .all(|(cpu, _)| cpus.contains(cpu) || !cpus.iter().any(|other| core(other) == core(cpu)))
        };
        let count = |number: usize| Some(number as f64).filter(|number| *number > 0.0);
        let flag = |is_so: bool| Some(f64::from(u8::from(is_so)));
        let present = || host.text("/sys/devices/system/cpu/present")?.parse::<CpuList>().ok();
        let online = topology.iter().count();
        let here = is_here.then_some(host);
        Literals {
            smt_on: count(online).and_then(|_| flag(topology.smt())),
            core_wide: flag(whole_cpus.as_ref().is_some_and(is_core_wide)),
            num_cpus: match self {
                Self::Here(_) => present().and_then(|cpus| count(cpus.iter().count())),
                Self::Recorded { .. } => count(online),
            },
            num_cpus_online: count(online),
            num_cores: count(topology.cores()),
            num_dies: count(topology.dies()),
            num_packages: count(topology.sockets()),
            system_tsc_freq: here.and_then(cpu::time_stamp_rate),
            slots: here.and_then(Host::core_pmu).and_then(|pmu| parse_number(&pmu.capability("slots")?)),
            has_pmem: here.and_then(|host| flag(host.path("/sys/firmware/acpi/tables/NFIT").exists())),
            target_cpu: flag(whole_cpus.is_some()),
        }
    }
}

fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let number =
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    number.filter(|number| *number > 0).map(|number| number as f64)
}

fn unknown(name: &str, library: &MetricLibrary<'_>, vendor: &Vendor) -> Error {
    let metrics = library.definitions().flat_map(|own| own.aliases.iter().copied().chain([own.name]));
    let near = text::nearest(name, metrics.chain(library.groups()), 3);
    let error = Error::usage(format!("unknown metric or metric group `{}`", text::clean(name)));
    let error =
        if near.is_empty() { error } else { error.detail(format!("did you mean {}?", near.join(", "))) };
    if vendor.metrics().next().is_some() {
        return error.try_this("pmc list metric, or pmc list metricgroup");
    }
    let mut models: Vec<String> =
        vendor.models().iter().map(|model| text::clean(&model.name).into_owned()).collect();
    models.dedup();
    let why = match (&models[..], vendor.id()) {
        ([], Some(id)) => {
            format!("no vendor metrics table for this CPU ({})", text::clean(id))
        }
        ([], None) => "the CPU model is unknown, so no vendor metrics are available".to_owned(),
        (models, _) => {
            format!("the table for this CPU, {}, contains events but no metrics", models.join(", "))
        }
    };
    error.why(why).try_this(
        "pmc list metric shows pmc's own; pmc list --import DIR adds those of the kernel's \
         tools/perf/pmu-events",
    )
}
