//! Converts the parsed options of `pmc record` into a [`RecordPlan`] without clap's types.
//!
//! Checks the rules that clap cannot express. Does not open any files or events. All errors are usage errors
//! (exit status 2).

use crate::cli::persist::AttachArgs;
use crate::cli::record::RecordArgs;
use pmc_command::options::recording_options::RecordingOptions;
use pmc_command::plan::{delay_or_ranges, timeout, tracepoint_filters};
use pmc_command::sampling_options::{
    TargetArgs, WEIGHT, are_held, call_graph, overridden, pfm_events, rate, ring_pages, scope, size,
    whole_machine,
};
use pmc_command::warning::CommandWarning;
use pmc_events::counter::Levels;
use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::reservation::Policy;
use pmc_events::counter::rings::pages_of;
use pmc_recording::persistent::PersistentEntry;
use pmc_recording::persistent::client::find;
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::recording::file::finished_files::names_file;
use pmc_recording::recording::plan::{
    BuildIdChoice, FilePlan, MeasurementScope, OffCpuPlan, Rotation, RunSchedule, SamplePlan, SelfExclusion,
    Synthesis,
};
use pmc_sys::abi::attr::LARGEST_AUX_SAMPLE;
use pmc_sys::abi::{branch_sample_type, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::sys::arch::{REGISTER_NAMES, REGISTERS};
use pmc_sys::sys::clock;
use pmc_text::text::clean;
use pmc_text::units::{MS, parse_duration};

/// Settings of `pmc record`.
pub(in crate::command) struct RecordPlan {
    pub(super) sample: SamplePlan,
    pub(super) file: FilePlan,
    /// Warnings about the options, printed before recording begins.
    pub(super) warnings: Vec<CommandWarning>,
    pub(super) control: Option<String>,
    /// Real-time priority of the thread that reads the ring buffers.
    pub(super) realtime: Option<i32>,
    pub(super) dry_run: bool,
    pub(super) quiet: bool,
    /// Whether to print perf's lines about the files even if stderr is not a terminal, for scripts that
    /// search for these lines.
    pub(in crate::command) prints_perf_summary: bool,
    /// Whether to discard the command's output.
    pub(in crate::command) hides_output: bool,
    /// Whether to print a JSON summary.
    pub(super) json: bool,
    /// The persistent entry that provides the events, if any.
    pub(super) attached: Option<(RunDirectory, PersistentEntry)>,
}

impl RecordPlan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(mut typed: RecordArgs, host: &Host) -> Result<Self> {
        typed.events.extend(pfm_events(&typed.pfm_events));
        if typed.wall {
            typed.events.push("cpu-clock".to_owned());
        }
        let off_cpu = off_cpu(&typed)?;
        let targets = TargetArgs {
            pids: &typed.pids,
            tids: &typed.tids,
            user: typed.uid.as_deref(),
            cpus: typed.cpus.as_deref(),
            all_cpus: typed.all_cpus,
        };
        let overridden = overridden(targets);
        let mut scope = scope(targets, host)?;
        if let (true, true, MeasurementScope::Command) =
            (are_held(&typed.events), typed.command.is_empty(), &scope)
        {
            // The targets were chosen when the events were added to the holder.
            scope = MeasurementScope::Cpus(host.online_cpus());
        }
        let mut warnings: Vec<CommandWarning> = overridden.into_iter().collect();
        if typed.command.is_empty() && matches!(scope, MeasurementScope::Command) {
            scope = whole_machine(host)?;
            warnings.push(CommandWarning::WholeMachine);
        }
        if typed.cgroups.is_some() && !matches!(scope, MeasurementScope::Cpus(_)) {
            return Err(
                Error::usage("cgroups can only be recorded on whole CPUs").try_this("add -a, or -C CPUS")
            );
        }
        if typed.per_thread && matches!(scope, MeasurementScope::Cpus(_)) {
            return Err(Error::usage("--per-thread requires threads, not CPUs").try_this("-p PID or -t TID"));
        }
        let (delay, switches) = delay_or_ranges(typed.delay.as_deref(), typed.recording.control.is_some())?;
        let options = sample_options(&typed, &scope, host)?;
        let (ring, area) = match typed.mmap_pages.as_deref().map(|text| text.split_once(',').ok_or(text)) {
            None => (None, None),
            Some(Err(ring)) => (Some(ring), None),
            Some(Ok((ring, area))) => (Some(ring), Some(area)),
        };
        // perf's flag `e` (also take a snapshot at the end) is always on.
        let kept = typed.recording.snapshot.as_deref().map(|text| text.trim_start_matches('e'));
        let kept = kept.filter(|text| !text.is_empty()).map(|text| size("-S", text)).transpose()?;
        let area = area.filter(|text| !text.is_empty()).map(ring_pages).transpose()?;
        let aux_pages = area.or(kept.map(pages_of));
        let sample = SamplePlan {
            events: match (typed.group, typed.events.is_empty()) {
                (true, false) if typed.filter.is_empty() => vec![format!("{{{}}}", typed.events.join(","))],
                (true, false) => {
                    return Err(Error::usage(
                        "--group combines all -e into one, and --filter applies to only one -e",
                    )
                    .try_this("-e '{a,b}' --filter … -e c"));
                }
                _ => typed.events,
            },
            filters: tracepoint_filters(typed.filter_places, typed.filter)?,
            cgroups: typed.cgroups.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect(),
            excludes_self: if typed.exclude_perf { SelfExclusion::Tracepoints } else { SelfExclusion::Never },
            freq_max: typed.freq.as_deref() == Some("max"),
            strict_freq: typed.strict_freq,
            strict: typed.strict,
            with_id: typed.sample_identifier || off_cpu.is_some(),
            off_cpu,
            per_thread: typed.per_thread,
            backlog: typed.backlog,
            ring_pages: ring.filter(|text| !text.is_empty()).map(ring_pages).transpose()?,
            aux_pages,
            aux_sample: typed.aux_sample.as_deref().map(aux_sample).transpose()?,
            reserve: typed.reserve.parse()?,
            run_schedule: RunSchedule {
                command: typed.command,
                environment: typed.environment,
                delay,
                switches,
                ..RunSchedule::default()
            },
            ..SamplePlan::on(scope, options)
        };
        let plan = Self::with(typed.recording, typed.buildid_mmap, sample)?;
        Ok(Self { warnings, dry_run: typed.dry_run, ..plan })
    }

    /// Converts the options of `pmc persist attach`, which has no options for opening events.
    pub(in crate::command) fn attaching(typed: AttachArgs, host: &Host) -> Result<Self> {
        let AttachArgs { name, recording, command } = typed;
        if let Some(size) = recording.snapshot.as_deref().filter(|size| !size.is_empty()) {
            return Err(Error::usage(format!("-S={size}: a size requires a trace, and a holder has none"))
                .try_this("-S"));
        }
        let sample = SamplePlan {
            reserve: Policy::Off,
            run_schedule: RunSchedule { command, ..RunSchedule::default() },
            ..SamplePlan::on(MeasurementScope::Command, SampleOptions::default())
        };
        let plan = Self::with(recording, false, sample)?;
        Ok(Self { prints_perf_summary: false, attached: Some(find(&name, host)?), ..plan })
    }

    /// Adds the options that also apply to events that are already open. `carries_ids` is true if mmap
    /// records contain build IDs.
    fn with(typed: RecordingOptions, carries_ids: bool, mut sample: SamplePlan) -> Result<Self> {
        sample.synthesis = synthesis(&typed.synth);
        // Samples in an overwritable ring buffer may be older than the known mappings of their processes.
        sample.unwinds = typed.unwind != "deferred" && !sample.options.backward;
        sample.joins = !typed.no_join;
        sample.verbose = typed.verbose > 0;
        sample.run_schedule.timeout_ns = timeout(typed.timeout.as_deref())?;
        Ok(Self {
            sample,
            file: file(&typed, carries_ids)?,
            warnings: Vec::new(),
            control: typed.control,
            realtime: typed.realtime,
            dry_run: false,
            quiet: typed.quiet,
            prints_perf_summary: !typed.quiet,
            hides_output: false,
            json: typed.json,
            attached: None,
        })
    }
}

/// Converts the options that determine the contents of samples.
fn sample_options(typed: &RecordArgs, scope: &MeasurementScope, host: &Host) -> Result<SampleOptions> {
    let filters = typed.branch_filter.iter().map(|text| branches(text)).collect::<Result<Vec<_>>>()?;
    let mut branches = filters.into_iter().reduce(|all, one| all | one);
    if typed.branch_any {
        branches = Some(branches.unwrap_or(0) | branch_sample_type::ANY);
    }
    Ok(SampleOptions {
        rate: rate(typed.freq.as_deref(), typed.count.as_deref(), host)?,
        call_graph: call_graph(typed.call_graph.as_deref(), typed.stacks)?,
        max_stack: typed.max_stack,
        kernel_callchains: typed.kernel_callchains,
        user_callchains: typed.user_callchains,
        fields: fields(typed),
        period: match (typed.period, typed.no_period) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        data_mappings: typed.data || typed.data_mmap,
        branches,
        intr_regs: typed.intr_regs.as_deref().map(|text| registers("--intr-regs", text)).transpose()?,
        user_regs: typed.user_regs.as_deref().map(|text| registers("--user-regs", text)).transpose()?,
        clock: match typed.clockid.as_deref() {
            Some(text) => Some(clock_of(text)?),
            // pmc itself records the times of gaps, and ends the remaining waits when the recording ends.
            // Both require a clock that pmc can read, unlike the kernel's default clock.
            None => (typed.reserve == "yield" || measures_waits(typed)).then_some(clock::MONOTONIC),
        },
        namespaces: typed.namespaces,
        cgroups: typed.all_cgroups,
        switches: typed.switch_events || typed.latency || measures_waits(typed),
        stat: typed.stat,
        running_time: typed.running_time,
        no_samples: typed.no_samples,
        levels: match (typed.all_user, typed.all_kernel) {
            (true, _) => Levels::User,
            (_, true) => Levels::Kernel,
            _ => Levels::AsWritten,
        },
        inherit: !typed.no_inherit && !typed.per_thread && !matches!(scope, MeasurementScope::Threads(_)),
        backward: typed.overwrite || typed.recording.snapshot.is_some(),
        wakes_always: typed.no_buffering,
        ..SampleOptions::default()
    })
}

/// Returns the plan for the output files. `carries_ids` is true if mmap records contain build IDs.
fn file(typed: &RecordingOptions, carries_ids: bool) -> Result<FilePlan> {
    let is_stream = typed.output.as_os_str() == "-";
    let rotation = typed.switch_output.as_deref().map(rotation).transpose()?;
    let rotation = rotation.or(typed.switch_output_event.is_some().then_some(Rotation::Signal));
    if typed.switch_max_files.is_some() && rotation.is_none() {
        return Err(Error::usage("--switch-max-files requires --switch-output")
            .try_this("--switch-output=100M, or =30s, or --switch-output-event EVENT"));
    }
    if let Some(command) = &typed.switch_exec {
        if rotation.is_none() {
            return Err(Error::usage("--switch-exec requires --switch-output")
                .try_this("--switch-output=60s --switch-exec CMD"));
        }
        if !names_file(command) {
            return Err(Error::usage(format!(
                "--switch-exec: the command {:?} does not use the file",
                clean(command)
            ))
            .why("sh runs it with the name of the finished file as \"$1\"")
            .try_this("--switch-exec 'CMD \"$1\"', in single quotes"));
        }
    }
    if is_stream && rotation.is_some() {
        return Err(Error::usage("--switch-output requires files, but `-o -` is a stream"));
    }
    if is_stream && typed.json {
        return Err(Error::usage("--json and -o - both use standard output").try_this("-o FILE"));
    }
    Ok(FilePlan {
        is_stamped: typed.timestamp_filename && !is_stream,
        compress: typed.compression_level.filter(|&level| level > 0),
        rotation,
        rotates_at: typed.switch_output_event.clone(),
        most_files: typed.switch_max_files,
        switch_exec: typed.switch_exec.clone(),
        max_size: typed.max_size.as_deref().map(|text| size("--max-size", text)).transpose()?,
        snapshots: typed.snapshot.is_some(),
        build_ids: match (typed.no_buildid, typed.buildid_all) {
            (true, _) => BuildIdChoice::None,
            (_, true) => BuildIdChoice::All,
            _ => BuildIdChoice::Hit,
        },
        keeps_files: !(typed.no_buildid_cache || carries_ids || is_stream),
        ..FilePlan::of(typed.output.clone())
    })
}

/// Parses `--aux-sample`, in bytes.
fn aux_sample(text: &str) -> Result<u32> {
    const USUAL: u32 = 4 << 10;
    if text.is_empty() {
        return Ok(USUAL);
    }
    let bytes = size("--aux-sample", text)?;
    u32::try_from(bytes).ok().filter(|&bytes| bytes <= LARGEST_AUX_SAMPLE).ok_or_else(|| {
        Error::usage(format!("--aux-sample={text}: exceeds the maximum size of a sample"))
            .try_this("at most 60K")
    })
}

/// Parses `--switch-output`. As in perf, the default unit is bytes.
fn rotation(text: &str) -> Result<Rotation> {
    if text == "signal" {
        return Ok(Rotation::Signal);
    }
    match parse_duration(text, None) {
        Some(ns) if ns > 0 => Ok(Rotation::Ns(ns)),
        _ => size("--switch-output", text).map(Rotation::Bytes).map_err(|_| {
            Error::usage(format!("--switch-output={text}: expected signal, a size or a time"))
                .try_this("--switch-output=100M, or --switch-output=30s (ms, s, m, h, d)")
        }),
    }
}

/// Parses `--synth`. As in perf, mappings are synthesized only together with tasks.
fn synthesis(words: &[String]) -> Synthesis {
    let has = |what: &[&str]| words.iter().any(|word| what.contains(&word.as_str()));
    Synthesis {
        tasks: has(&["all", "task", "mmap"]),
        mappings: has(&["all", "mmap"]),
        cgroups: has(&["all", "cgroup"]),
    }
}

/// Whether the recording includes the waiting time of threads.
fn measures_waits(typed: &RecordArgs) -> bool {
    typed.off_cpu || typed.wall
}

/// Returns the plan for recording off-CPU time, if an option requests it.
fn off_cpu(typed: &RecordArgs) -> Result<Option<OffCpuPlan>> {
    if !measures_waits(typed) {
        return match (typed.off_cpu_thresh.is_some(), typed.wakers) {
            (false, false) => Ok(None),
            (true, _) => Err(Error::usage("--off-cpu-thresh requires --off-cpu or --wall")),
            (_, true) => Err(Error::usage("--wakers requires --off-cpu or --wall")),
        };
    }
    let option = if typed.wall { "--wall" } else { "--off-cpu" };
    let refused = [
        (
            typed.overwrite || typed.recording.snapshot.is_some(),
            "--overwrite",
            "a wait may have begun in records that were overwritten",
        ),
        (
            typed
                .clockid
                .as_deref()
                .map(clock_of)
                .transpose()?
                .is_some_and(|clock| clock != clock::MONOTONIC),
            "-k",
            "waits are measured with the `monotonic` clock",
        ),
        (typed.per_thread, "--per-thread", "measuring a thread's waits requires records from all CPUs"),
        (typed.delay.is_some(), "-D", "context switches are recorded from the start"),
        (typed.cgroups.is_some(), "-G", "the kernel also reports context switches of other cgroups"),
        (typed.all_user, "--all-user", "a thread is in the kernel whenever it leaves its CPU"),
        (
            typed.recording.unwind == "deferred",
            "--unwind deferred",
            "waits are written with their call chains",
        ),
    ];
    if let Some((_, other, why)) = refused.iter().find(|(is_set, ..)| *is_set) {
        return Err(Error::usage(format!("{option} cannot be combined with {other}")).why(*why));
    }
    let threshold_ns = match typed.off_cpu_thresh.as_deref() {
        None => 0,
        Some(text) => parse_duration(text, Some(MS)).ok_or_else(|| {
            Error::usage(format!("--off-cpu-thresh {text}: expected a time"))
                .try_this("--off-cpu-thresh 1ms (us, ms, s)")
        })?,
    };
    Ok(Some(OffCpuPlan { threshold_ns, has_wakers: typed.wakers }))
}

/// Returns the sample fields requested by individual options.
fn fields(typed: &RecordArgs) -> u64 {
    let chosen = [
        (typed.data, sample_type::ADDR | sample_type::DATA_SRC),
        (typed.sample_mem_info, sample_type::DATA_SRC),
        (typed.phys_data, sample_type::PHYS_ADDR),
        (typed.data_page_size, sample_type::DATA_PAGE_SIZE),
        (typed.code_page_size, sample_type::CODE_PAGE_SIZE),
        (typed.weight, WEIGHT),
        (typed.transaction, sample_type::TRANSACTION),
        (typed.sample_cpu || measures_waits(typed), sample_type::CPU),
        (typed.raw_samples, sample_type::RAW),
    ];
    chosen.iter().filter(|(on, _)| *on).fold(0, |all, (_, field)| all | field)
}

fn branches(text: &str) -> Result<u64> {
    branch_sample_type::filter(text).map_err(|word| {
        let names: Vec<&str> = branch_sample_type::FILTERS.iter().map(|(name, _)| *name).collect();
        Error::usage(format!("-j {text}: unknown branch type `{word}`"))
            .try_this(format!("one of: {}", names.join(", ")))
    })
}

fn registers(option: &str, text: &str) -> Result<u64> {
    let names: Vec<&str> = REGISTER_NAMES.iter().map(|(name, _)| *name).collect();
    let listed = || format!("one of: {}", names.join(", "));
    match text {
        "" => return Ok(REGISTERS),
        "?" => {
            return Err(
                Error::usage(format!("{option}: registers available on this machine")).try_this(listed())
            );
        }
        _ => {}
    }
    text.split(',').try_fold(0, |mask, word| {
        let known = REGISTER_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim()));
        let (_, number) = known.ok_or_else(|| {
            Error::usage(format!("{option}={text}: unknown register `{word}`")).try_this(listed())
        })?;
        Ok(mask | 1 << number)
    })
}

fn clock_of(text: &str) -> Result<i32> {
    clock::number(text).ok_or_else(|| {
        Error::usage(format!("-k {text}: unknown clock"))
            .try_this("one of: realtime, monotonic, monotonic_raw, boottime, tai, or the kernel's number")
    })
}
