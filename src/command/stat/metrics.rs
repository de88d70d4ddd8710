//! Which metrics `pmc stat` shows: those that were asked for by name or group, the user's own, the levels of
//! the top-down analysis.
//!
//! Receives what was asked for; hands on formulas for this machine and what there is to say about the tree
//! that they make. What they are computed from is `profile`'s, what counts their events `counter`'s.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use super::plan::Metrics as Asked;
use crate::error::{Error, Result};
use crate::event::Parser;
use crate::event::vendor::{Metric, Vendor};
use crate::host::Host;
use crate::host::cpu::{self, Topology};
use crate::profile::counts::{Counts, Reason};
use crate::profile::metrics::formula::Formula;
use crate::profile::metrics::library::{self, Binder, Definition, Library};
use crate::profile::metrics::literals::{Environment, Literals};
use crate::profile::metrics::named::NAMED;
use crate::profile::metrics::{self, topdown};
use crate::recording::plan::Scope;
use crate::text;
use crate::view::stat::Tree;

/// Metrics of a table of counts.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) formulas: Vec<Formula>,
    /// For each formula, as far as events were looked for: why it has no value on this machine.
    pub(super) lacking: Vec<Option<Reason>>,
    /// The top-down analysis by the kernel's events, where there are no formulas for it: its events.
    pub(super) shares: Option<&'static [&'static str]>,
    /// The top-down analysis was asked for.
    pub(super) tree: Option<Tree>,
}

impl Metrics {
    /// Finds out what was asked for. `scope`: what is counted; a recording has none.
    ///
    /// # Errors
    /// Names of no metric or group, expressions that cannot be understood, levels that there are not.
    pub(super) fn new(asked: &Asked, scope: Option<&Scope>, host: &Host) -> Result<Self> {
        if asked.is_empty() {
            return Ok(Self::default());
        }
        let vendor = Vendor::of(host);
        let written = asked.expressions.iter().map(|text| library::definition(text));
        let written = written.collect::<Result<Vec<_>>>()?;
        let own = NAMED.iter().copied().chain(vendor.metrics().map(definition));
        let known = own.chain(written.iter().copied()).collect::<Vec<_>>();
        let firsts = known.len() - written.len();
        let library = Library::new(known);
        let mut chosen: Vec<&Definition<'_>> = Vec::new();
        for name in &asked.names {
            let before = chosen.len();
            chosen.extend(library.named(name).chain(library.of_group(name)));
            if chosen.len() == before {
                return Err(unknown(name, &library));
            }
        }
        chosen.extend(library.definitions().skip(firsts));
        let mut found = Self::default();
        if let Some(level) = asked.topdown {
            let tree = tree(level, &library)?;
            match library.of_group("TopdownL1").next() {
                Some(_) => {
                    let levels = (1..=level).map(|level| format!("TopdownL{level}"));
                    levels.for_each(|group| chosen.extend(library.of_group(&group)));
                }
                // Which of them a recording holds is seen when they are looked for.
                None if scope.is_none() => found.shares = Some(&[]),
                None => {
                    let shares = topdown::events(|name| Parser::new(host).parse(name).is_ok());
                    found.shares = Some(shares.ok_or_else(no_shares)?);
                }
            }
            found.tree = Some(tree);
        }
        let mut seen = HashSet::new();
        chosen.retain(|definition| seen.insert(std::ptr::from_ref(*definition)));
        let parser = RefCell::new(Parser::new(host));
        let parse = |text: &str| parser.borrow_mut().parse(text).ok();
        let specs =
            |text: &str| Some(parse(text)?.iter().map(|group| group.events.len()).sum::<usize>() as f64);
        let environment = Environment {
            literals: literals(scope, host),
            has_event: &|text| parse(text).is_some(),
            source_count: &specs,
            retire_latency: &|event| vendor.retire_latency(event),
            is_cpuid: &|pattern| vendor.is(pattern),
        };
        let mut binder = Binder::new(&library, &environment);
        found.formulas = chosen.into_iter().map(|one| binder.formula(one)).collect::<Result<_>>()?;
        Ok(found)
    }

    /// Computes them for a table.
    pub(super) fn derive(&self, counts: &mut Counts) {
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

/// A vendor's metric, for the library.
fn definition(metric: Metric<'_>) -> Definition<'_> {
    let Metric { name, pmu, scale, groups, level, parent, expr, threshold, locate, text, .. } = metric;
    let help = text.unwrap_or_default();
    Definition {
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

/// What there is to say about the tree to this level.
///
/// # Errors
/// A level that the tables do not have.
fn tree(level: u8, library: &Library<'_>) -> Result<Tree> {
    let levels =
        library.groups().into_iter().filter_map(|group| group.strip_prefix("TopdownL")?.parse::<u8>().ok());
    let deepest = levels.max().unwrap_or(1);
    if level > deepest {
        let why = match deepest {
            1 => {
                "deeper levels are formulas of each processor model's own, and there is no table of them for this CPU"
            }
            _ => "they are the levels of this CPU's table",
        };
        return Err(Error::usage(format!("--td-level {level}: the highest level is {deepest}")).why(why));
    }
    let parents: BTreeSet<&str> =
        library.definitions().map(|one| one.parent).filter(|name| !name.is_empty()).collect();
    Ok(Tree { level, deepest, parents: parents.into_iter().map(str::to_owned).collect() })
}

fn no_shares() -> Error {
    Error::new(
        "--topdown: this machine's core PMU has no top-down events, and no table has metrics for this CPU",
    )
    .why("they come with Intel cores since Sandy Bridge; virtual machines seldom pass them on")
    .try_this("pmc list topdown; pmc info names the table that is used")
}

/// What this machine, and whom is measured, make of `#literals`.
fn literals(scope: Option<&Scope>, host: &Host) -> Literals {
    let topology = Topology::read(host);
    let whole_cpus = scope.and_then(|scope| match scope {
        Scope::Cpus(cpus) => Some(cpus.clone()),
        _ => None,
    });
    // All threads of each core that is measured at all.
    let is_core_wide = |cpus: &crate::host::CpuList| {
        let core = |cpu| topology.seat(cpu).map(|seat| (seat.socket, seat.die, seat.core));
        topology
            .iter()
            .all(|(cpu, _)| cpus.contains(cpu) || !cpus.iter().any(|other| core(other) == core(cpu)))
    };
    let count = |number: usize| Some(number as f64).filter(|number| *number > 0.0);
    let flag = |is_so: bool| Some(f64::from(u8::from(is_so)));
    let present = host
        .text("/sys/devices/system/cpu/present")
        .and_then(|list| list.parse::<crate::host::CpuList>().ok());
    Literals {
        smt_on: flag(topology.smt()),
        core_wide: flag(whole_cpus.as_ref().is_some_and(is_core_wide)),
        num_cpus: present.and_then(|cpus| count(cpus.iter().count())),
        num_cpus_online: count(topology.iter().count()),
        num_cores: count(topology.cores()),
        num_dies: count(topology.dies()),
        num_packages: count(topology.sockets()),
        system_tsc_freq: cpu::time_stamp_rate(host),
        slots: host.core_pmu().and_then(|pmu| parse_number(&pmu.capability("slots")?)),
        has_pmem: flag(host.path("/sys/firmware/acpi/tables/NFIT").exists()),
        target_cpu: flag(whole_cpus.is_some()),
    }
}

fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let number =
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    number.filter(|number| *number > 0).map(|number| number as f64)
}

fn unknown(name: &str, library: &Library<'_>) -> Error {
    let metrics = library.definitions().flat_map(|own| own.aliases.iter().copied().chain([own.name]));
    let near = text::nearest(name, metrics.chain(library.groups()), 3);
    let error = Error::usage(format!("no metric `{}`, and no group of metrics", text::clean(name)));
    let error =
        if near.is_empty() { error } else { error.detail(format!("did you mean {}?", near.join(", "))) };
    error.try_this("pmc list metric, or pmc list metricgroup")
}
