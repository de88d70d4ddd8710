//! What to measure, where, and how to show it: the request that the options become.

use std::path::PathBuf;

use super::options::LatencyOptions;
use super::presets::{self, LatencyPreset};
use super::rules::{IntervalRules, KeySource};
use pmc_analysis::analysis::request::SampleSelection;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::sampling_options::{ProcessSelector, TargetOptions, overridden, scope, whole_machine};
use pmc_command::warning::measures_whole_machine;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, Rate, SampleOptions};
use pmc_recording::recording::filters;
use pmc_recording::recording::plan::{MeasurementScope, RunSchedule, SamplePlan, SelfExclusion};
use pmc_recording::recording::ring_size::RingSize;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result, Warning};
use pmc_sys::host::Host;
use pmc_sys::sys::clock;
use pmc_text::terminal::{self, Stream};

/// The source of the events.
#[derive(Debug)]
pub(super) enum LatencySource {
    /// A recording, and which of its samples to include.
    Recording(PathBuf, Box<SampleSelection>),
    Live(Box<SamplePlan>),
}

/// What to measure, and how to show it.
#[derive(Debug)]
pub struct LatencyRequest {
    pub(super) source: LatencySource,
    /// The events as the user typed them, each listed once.
    pub(super) texts: Vec<String>,
    /// The kinds of intervals; none share an event.
    pub(super) intervals: Vec<IntervalRules>,
    /// Number of slowest intervals to keep.
    pub(super) slowest: usize,
    /// Whether to add up times by the stacks of the begin events.
    pub(super) stacks: bool,
    /// Whether to keep a heat map.
    pub(super) heat: bool,
    /// Maximum length of a stack.
    pub(super) max_stack: usize,
    /// Where to look for symbols.
    pub(super) symbols: SymbolOptions,
    /// Width of the text output.
    pub(super) width: usize,
    /// Whether to print JSON objects.
    pub(super) json: bool,
    /// File for a flame graph.
    pub(super) flamegraph: Option<PathBuf>,
    /// File for folded stacks.
    pub(super) folded: Option<PathBuf>,
    /// Time between printed lines (`-I`), in nanoseconds.
    pub(super) period: Option<u64>,
    /// Warnings about the options, which are printed when the measurement starts.
    pub(super) warnings: Vec<Warning>,
}

impl LatencyOptions {
    /// Returns the request. `host` is the machine to measure.
    ///
    /// # Errors
    /// Fails if the options contradict each other, or the events cannot be measured on this machine.
    pub fn request(self, host: &Host) -> Result<LatencyRequest> {
        let is_live = self.input.is_none();
        let chosen = self.chosen(is_live.then_some(host))?;
        let machine_wide = chosen.iter().position(|preset| preset.needs_all_cpus);
        let of_target = chosen.iter().position(|preset| !preset.needs_all_cpus);
        let are_presets = self.events.len() != 2 || chosen.len() == 2;
        let (texts, mut intervals) = presets::merged(chosen);
        self.add_filters(&mut intervals, are_presets)?;
        let stacks =
            self.stacks || self.call_graph.is_some() || self.flamegraph.is_some() || self.folded.is_some();
        if intervals.len() > 1 {
            let options = [
                ("-I", self.interval_print.is_some()),
                ("--flamegraph", self.flamegraph.is_some()),
                ("--folded", self.folded.is_some()),
            ];
            if let Some((option, _)) = options.iter().find(|(_, is_given)| *is_given) {
                return Err(Error::usage(format!(
                    "{option} shows one kind of interval, not {}",
                    intervals.len()
                ))
                .try_this(format!("pmc latency {} {option} …", self.events[0])));
            }
        }
        let mut warnings = Vec::new();
        if let (Some(wide), Some(other), false) = (machine_wide, of_target, self.command.is_empty()) {
            let [preset, other] = [wide, other].map(|at| self.events[at].clone());
            let what =
                format!("measuring {other} on all CPUs too, because {preset} can be measured only there");
            warnings.push(
                Warning::note(what).advise(format!("pmc latency {other} -- COMMAND measures only COMMAND")),
            );
        }
        let source = match &self.input {
            Some(input) => LatencySource::Recording(input.clone(), Box::new(self.selection()?)),
            None => {
                let machine_wide = machine_wide.map(|at| self.events[at].as_str());
                let plan =
                    self.sample_plan(&texts, &mut intervals, machine_wide, stacks, host, &mut warnings)?;
                LatencySource::Live(Box::new(plan))
            }
        };
        let files = SymbolFiles {
            symfs: self.symfs.clone(),
            kallsyms: self.kallsyms.clone(),
            vmlinux: self.vmlinux.clone(),
            ..SymbolFiles::default()
        };
        intervals.iter_mut().for_each(|interval| interval.nests |= self.nest);
        Ok(LatencyRequest {
            source,
            texts,
            intervals,
            slowest: self.slowest,
            stacks,
            heat: self.heatmap,
            max_stack: self.max_stack.into(),
            symbols: files.symbol_options()?,
            width: terminal::columns(Stream::Output),
            json: self.json,
            flamegraph: self.flamegraph,
            folded: self.folded,
            period: self.interval_print.map(|period| period.as_nanos() as u64),
            warnings,
        })
    }

    /// Returns the presets on the command line, or the pair of its two events.
    fn chosen(&self, live: Option<&Host>) -> Result<Vec<LatencyPreset>> {
        let presets = self.events.iter().map(|name| LatencyPreset::named(name, live));
        let presets = presets.collect::<Result<Vec<_>>>()?;
        let names = || self.events.iter().zip(&presets);
        let is_repeated = |at: usize| self.events[..at].contains(&self.events[at]);
        match (names().find(|(_, preset)| preset.is_some()), names().find(|(_, preset)| preset.is_none())) {
            (None, None) => Err(self.no_events()),
            (None, Some(_)) => match self.events.as_slice() {
                [begin, end] => Ok(vec![LatencyPreset::of_events(begin, end, &self.key)]),
                [name] => Err(Error::usage(format!("latency {name}: the end event is missing"))
                    .why(format!("a single word must be a preset: {}", presets::NAMES))
                    .try_this(format!("pmc latency {name} END_EVENT"))),
                more => Err(Error::usage(format!("latency: {} events, but an interval has two", more.len()))
                    .why("only presets can be listed: each is an interval")
                    .try_this("commas between alternative events: pmc latency BEGIN,BEGIN END")),
            },
            (Some((preset, _)), Some((event, _))) => {
                Err(Error::usage(format!("latency: {preset} is a preset, but {event} is not"))
                    .why(format!("the presets are {}", presets::NAMES))
                    .try_this("either presets or two events"))
            }
            (Some((name, _)), None) if !self.key.is_empty() => {
                Err(Error::usage(format!("-k: the preset {name} has its own key"))
                    .try_this("specify both events to choose another key"))
            }
            (Some(_), None) => match (0..self.events.len()).find(|&at| is_repeated(at)) {
                Some(at) => Err(Error::usage(format!("latency: {} is given twice", self.events[at]))
                    .try_this("list each preset once")),
                None => Ok(presets.into_iter().flatten().collect()),
            },
        }
    }

    /// Returns the error for a command line without events.
    fn no_events(&self) -> Error {
        let pid = |selector: &ProcessSelector| match selector {
            ProcessSelector::Id(pid) => pid.to_string(),
            ProcessSelector::Named(name) => name.clone(),
        };
        let pids: Vec<String> = self.targets.pids.iter().map(pid).collect();
        let ids = [("-p", pids), ("-t", self.targets.tids.iter().map(u32::to_string).collect())];
        let ids = ids.iter().find(|(_, ids)| !ids.is_empty());
        let target = match (ids, self.command.is_empty()) {
            (Some((option, ids)), _) => format!("{option} {}", ids.join(",")),
            (None, false) => format!("-- {}", self.command[0].to_string_lossy()),
            (None, true) => "-- COMMAND".to_owned(),
        };
        Error::usage("latency: no events given")
            .why("pmc measures the time from one event to another, or that of a preset")
            .try_this(format!("pmc latency syscall:read {target}: how long a system call takes"))
            .try_this(format!("pmc latency func:PATH:NAME {target}: how long a function runs"))
            .try_this("pmc latency runq block: waits for a CPU, and disk requests, on all CPUs")
    }

    /// Adds each `--filter` to the rules of the preceding event, or to all rules of the preceding preset.
    fn add_filters(&self, intervals: &mut [IntervalRules], are_presets: bool) -> Result<()> {
        for (event, filter) in self.filter_places.clone().assign(self.filter.clone())? {
            let interval = if are_presets { event.min(intervals.len() - 1) } else { 0 };
            let rules = &mut intervals[interval].rules;
            let last = rules.iter().map(|rule| rule.text).max().unwrap_or(0);
            let text = (!are_presets).then(|| event.min(last));
            for rule in rules.iter_mut().filter(|rule| text.is_none_or(|text| rule.text == text)) {
                rule.filter = Some(filters::both(rule.filter.take(), &filter));
            }
        }
        Ok(())
    }

    /// Returns the selected samples of a recording.
    fn selection(&self) -> Result<SampleSelection> {
        let pid = |selector: &ProcessSelector| match selector {
            ProcessSelector::Id(pid) => Ok(pid.cast_signed()),
            ProcessSelector::Named(name) => Err(Error::usage(format!("-p {name}: not a number"))
                .try_options("with -i, use the ids in the recording")),
        };
        Ok(SampleSelection {
            pids: self.targets.pids.iter().map(pid).collect::<Result<_>>()?,
            tids: self.targets.tids.iter().map(|tid| tid.cast_signed()).collect(),
            cpus: self.targets.cpus.as_ref().map(|cpus| cpus.iter().collect()),
            time: self.time,
            ..SampleSelection::default()
        })
    }

    /// Returns the plan for a live measurement. `machine_wide` is a preset that can only be measured on all
    /// CPUs. If an event occurs in only one rule, the kernel applies the rule's filter.
    fn sample_plan(
        &self,
        texts: &[String],
        intervals: &mut [IntervalRules],
        machine_wide: Option<&str>,
        stacks: bool,
        host: &Host,
        warnings: &mut Vec<Warning>,
    ) -> Result<SamplePlan> {
        let call_graph = self.call_graph.unwrap_or(CallGraph::Auto(DEFAULT_STACK));
        if let CallGraph::FpDeferred | CallGraph::Lbr = call_graph {
            let mode = if call_graph == CallGraph::Lbr { "lbr" } else { "fp,defer" };
            let events = texts.iter().map(|text| format!(" -e {text}")).collect::<String>();
            return Err(Error::usage(format!("--call-graph {mode} is not supported by a live measurement"))
                .why("only recordings have such call chains")
                .try_this(format!(
                    "pmc record --call-graph {mode}{events} …, then pmc latency -g -i perf.data"
                )));
        }
        if let (Some(preset), true) = (machine_wide, self.targets.has_tasks()) {
            return Err(Error::usage(format!("{preset} cannot be measured for individual processes"))
                .why("its events are charged to whichever thread is running")
                .try_options("omit -p, -t and -u: this is measured on all CPUs"));
        }
        let targets = TargetOptions {
            all_cpus: self.targets.all_cpus || machine_wide.is_some() && self.targets.cpus.is_none(),
            ..self.targets.clone()
        };
        warnings.extend(overridden(&self.targets));
        let mut scope = scope(&targets, host)?;
        if self.command.is_empty() && matches!(scope, MeasurementScope::Command) {
            scope = whole_machine(host)?;
            warnings.push(measures_whole_machine());
        }
        let mut filters = Vec::new();
        for text in 0..texts.len() {
            let rules = intervals.iter_mut().flat_map(|interval| &mut interval.rules);
            let mut of_text = rules.filter(|rule| rule.text == text);
            if let (Some(rule), None) = (of_text.next(), of_text.next()) {
                filters.extend(rule.filter.take().map(|filter| (text, filter)));
            }
        }
        let mut rules = intervals.iter().flat_map(|interval| &interval.rules);
        let is_by_thread = rules.all(|rule| rule.key == [KeySource::Thread]);
        let options = SampleOptions {
            // By default, some probes would be sampled at a frequency.
            rate: Rate::Period(1),
            call_graph: stacks.then_some(call_graph),
            max_stack: stacks.then_some(self.max_stack),
            // pmc can read this clock as well, so it knows up to which time the records are complete.
            clock: clock::number("monotonic"),
            build_ids: false,
            inherit: !self.no_inherit && !matches!(scope, MeasurementScope::Threads(_)),
            ..SampleOptions::default()
        };
        Ok(SamplePlan {
            events: texts.to_vec(),
            filters,
            // Exclude pmc itself, except for pairs that span several threads, which need the events of all
            // threads.
            excludes_self: match is_by_thread && matches!(scope, MeasurementScope::Cpus(_)) {
                true => SelfExclusion::AllOrNone,
                false => SelfExclusion::Never,
            },
            ring: self.mmap_pages,
            useful_ring: RingSize::PAIRS,
            unwinds: true,
            with_id: true,
            verbose: self.verbose > 0,
            run_schedule: RunSchedule {
                command: self.command.clone(),
                timeout: self.timeout,
                ..RunSchedule::default()
            },
            ..SamplePlan::on(scope, options)
        })
    }
}
