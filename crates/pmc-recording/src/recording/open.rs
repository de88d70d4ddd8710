//! Opens a plan's events on its targets, and maps their rings.
//!
//! Receives a [`SamplePlan`]; returns [`Rings`] and the sampled threads. Chooses the ring size and the
//! default events, and limits the frequency to the kernel's maximum. [`drive`](super::drive) starts the
//! events.

use std::rc::Rc;

use super::off_cpu::{events, wakers};
use super::plan::{Delay, MeasurementScope, SamplePlan};
use super::reservation::EventChoice;
use super::ring_limit::ring_bytes;
use super::ring_size::RingSize;
use super::targets::{check_flags, explain, make_room_for_events, slots, slots_of_cpus, threads};
use super::warning::{smaller_rings, user_mode_only};
use super::{ended_threads, filters, launch, new_threads, time_slices};
use pmc_events::counter::Mode;
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::inherited_probes::{ProbeDefinition, make_inheritable};
use pmc_events::counter::open as door;
use pmc_events::counter::refusal::{Refusal, RefusalKind};
use pmc_events::counter::request::given_up::Fallback;
use pmc_events::counter::request::sampling::{CallGraph, Rate, SampleOptions};
use pmc_events::counter::reservation::Policy;
use pmc_events::counter::rings::{MappedPages, RingOptions, Rings, pages_of};
use pmc_events::counter::target::TargetCgroup;
use pmc_events::event::{EventGroup, EventParser, EventSpec};
use pmc_events::hint::Hint;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::{CONTEXT_SWITCHES, CPU_CYCLES};
use pmc_sys::abi::{Attr, sample_type};
use pmc_sys::error::{Error, Result, Warning, kernel_message, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::sys::clock;
use pmc_sys::sys::process::{self, PausedChild};
use pmc_sys::sys::{errno, page_size};
use pmc_text::units;

/// Groups of events, each with the cgroup in which it is measured.
pub type Groups = Vec<(EventGroup, Option<Rc<TargetCgroup>>)>;

/// Returns the requested events with their cgroups. If none are requested, returns `cycles:P`.
///
/// # Errors
/// Fails if an event or cgroup is unknown.
pub fn groups(plan: &SamplePlan, host: &Host) -> Result<Groups> {
    let mut parser =
        EventParser::new(host).with_target(launch::subject(&plan.scope, &plan.run_schedule.command));
    let mut groups = filters::events(&mut parser, &plan.events, &plan.filters)?;
    if plan.events.is_empty() {
        groups = parser.parse("cycles:P")?;
    }
    if plan.options.rate == Rate::Recommended {
        have_periods(&groups)?;
    }
    check_samples(&groups).map_err(|refusal| explain(*refusal, host))?;
    groups = time_slices::lead(groups);
    if let Some(off_cpu) = plan.off_cpu {
        groups.push(events::switch_event(plan));
        if off_cpu.has_wakers {
            groups.extend(wakers::wakeup_event(&mut parser)?);
        }
    }
    filters::exclude_self(&mut groups, plan.excludes_self)?;
    if !plan.strict {
        clock_for_cycles(&mut groups, host);
    }
    let cgroups: Vec<Rc<TargetCgroup>> = plan
        .cgroups
        .iter()
        .map(|name| TargetCgroup::open(host, name).map(Rc::new).map_err(launch::no_target))
        .collect::<Result<_>>()?;
    if cgroups.len() > groups.len() {
        return Err(Error::usage(format!(
            "-G names {} cgroups for {} events or groups",
            cgroups.len(),
            groups.len()
        )));
    }
    let single = cgroups.len() == 1;
    let of = |index: usize| if single { cgroups.first() } else { cgroups.get(index) }.cloned();
    Ok(groups.into_iter().enumerate().map(|(index, group)| (group, of(index))).collect())
}

/// Checks that at least one event is sampled, because a recording consists of samples. Events with
/// `log-cswitch` only log counts (see `pmc_allocate(3)`), so they require a sampled event as well.
fn check_samples(groups: &[EventGroup]) -> std::result::Result<(), Box<Refusal>> {
    let mut events = groups.iter().flat_map(|group| &group.events);
    let Some(first) = events.clone().next().filter(|_| events.all(|event| event.qualifiers.log_cswitch))
    else {
        return Ok(());
    };
    let cause = "log-cswitch logs counts, but record requires a sampled event";
    let known = (RefusalKind::BadRequest, cause, Hint::CountOrAddSampled { event: first.name.clone() });
    let attr = first.attr().cloned().unwrap_or_default();
    Err(Box::new(Refusal::before_the_kernel(&first.name, attr, errno::EINVAL, known)))
}

/// For `-c auto`, checks that each event has a period, recommended by its vendor or given in the event's
/// text.
fn have_periods(groups: &[EventGroup]) -> Result<()> {
    let members = |group: &'_ EventGroup| if group.leader_sampling { 1 } else { group.events.len() };
    let mut sampled = groups.iter().flat_map(|group| group.events.iter().take(members(group)));
    let without = |spec: &&EventSpec| {
        spec.recommended_period.is_none() && spec.attr().is_some_and(|attr| attr.period() == 0)
    };
    match sampled.find(without) {
        None => Ok(()),
        Some(spec) => Err(no_period(spec)),
    }
}

fn no_period(spec: &EventSpec) -> Error {
    let error = Error::usage(format!("-c auto: no period is recommended for `{}`", spec.name));
    let is_of_cores =
        spec.core_cpus.is_some() || spec.attr().is_none_or(|attr| attr.kind() < kind::FIRST_DYNAMIC);
    if spec.system_wide && !is_of_cores {
        return error
            .why("its PMU counts for a whole package or device: vendors recommend periods only for core events")
            .try_this("use pmc stat -a to count it");
    }
    error
        .why("only some vendor events have recommended periods")
        .try_options("-c N, or -F HZ")
        .try_this("use a vendor event: pmc list --long vendor shows the periods")
}

/// Replaces cycles with cpu-clock if the machine has no cycles event, as perf does.
fn clock_for_cycles(groups: &mut [EventGroup], host: &Host) {
    let all = groups.iter_mut().flat_map(|group| &mut group.events);
    let mut cycles = all.filter(|spec| spec.is_generic(kind::HARDWARE, CPU_CYCLES)).peekable();
    if cycles.peek().is_some()
        && let Err(refusal) = door::cycles(Mode::TaskSampling)
    {
        cycles.for_each(EventSpec::become_cpu_clock);
        let why = refusal.explain(&MachineFacts::own(host)).cause;
        say::warn(Warning::note_once(format!("sampling cpu-clock, because cycles is not available: {why}")));
    }
}

/// Replaces the maximum frequency by the kernel's limit, and lowers a frequency above that limit to it, as
/// perf does. With `--strict-freq` or `--strict` such a frequency is an error.
///
/// # Errors
/// Fails if the frequency exceeds the limit and one of these options is given, or if the limit cannot be
/// read.
pub fn check_frequency(plan: &mut SamplePlan, host: &Host) -> Result<()> {
    let limit: Option<u64> = host.number("/proc/sys/kernel/perf_event_max_sample_rate");
    let (wanted, most) = match (plan.options.rate, limit) {
        (Rate::Frequency(wanted), Some(most)) if wanted > most => (wanted, most),
        (Rate::MaxFrequency, Some(most)) => {
            say::note(format!("-F max: {} samples per second", units::thousands(most)));
            plan.options.rate = Rate::Frequency(most);
            return Ok(());
        }
        (Rate::MaxFrequency, None) => {
            let error = "-F max: /proc/sys/kernel/perf_event_max_sample_rate cannot be read";
            return Err(Error::usage(error).try_this("use a number"));
        }
        _ => return Ok(()),
    };
    let words = format!("-F {wanted}: the kernel allows {} samples per second", units::thousands(most));
    if plan.strict_freq || plan.strict {
        return Err(Error::usage(words)
            .why("kernel.perf_event_max_sample_rate is lower (the kernel lowers it when interrupts take too long)")
            .try_this(format!("sysctl kernel.perf_event_max_sample_rate={wanted}"))
            .try_options("-F max"));
    }
    say::warn(Warning::new(format!("{words}; using that")).advise("see kernel.perf_event_max_sample_rate"));
    plan.options.rate = Rate::Frequency(most);
    Ok(())
}

/// Whether the plan requests stack copies that are unwound while recording.
fn unwinds(plan: &SamplePlan, groups: &[(EventGroup, Option<Rc<TargetCgroup>>)]) -> bool {
    let mut written =
        groups.iter().flat_map(|(group, _)| &group.events).map(|spec| &spec.qualifiers.call_graph);
    let copies = plan.options.call_graph.is_some_and(CallGraph::copies);
    plan.unwinds && (copies || written.any(|mode| mode.as_deref() == Some("dwarf")))
}

/// Returns a holder's default options for opening events. Options in the request override them.
pub fn held_options() -> SampleOptions {
    // Use a clock that all readers of the records can read as well.
    SampleOptions { clock: clock::number("monotonic"), running_time: true, ..SampleOptions::default() }
}

/// Returns empty [`Rings`], without events.
pub(super) fn none() -> Result<Rings> {
    let none = Rings::new(Vec::new(), &SampleOptions::default(), RingOptions::default());
    none.map_err(|refusal| Error::new(refusal.event))
}

/// Opens the events on the plan's targets, and maps their rings. Also returns the sampled threads.
///
/// # Errors
/// Fails if a target does not exist, or the kernel refuses an event.
pub fn open(
    plan: &SamplePlan,
    host: &Host,
    mut groups: Groups,
    held: Option<&PausedChild>,
) -> Result<(Rings, Vec<Alive>)> {
    let mut threads = threads(&plan.scope, host)?;
    // A recording that yields to reservations must be able to start with its counters off.
    let on_exec = matches!(plan.scope, MeasurementScope::Command)
        && plan.run_schedule.delay == Delay::None
        && plan.reserve != Policy::Yield
        && !plan.includes_exec;
    let events = || groups.iter().flat_map(|(group, _)| &group.events);
    check_flags(events(), &plan.scope, &threads, host)?;
    let is_beside = |spec: &EventSpec| spec.qualifiers.system && !spec.qualifiers.samples_wakeups;
    let is_mixed = events().any(is_beside) && !matches!(plan.scope, MeasurementScope::Cpus(_));
    let mut options = plan.options.clone();
    if is_mixed {
        check_groups(&groups)?;
        // In a recording, either all samples contain the CPU or no sample does.
        options.fields |= sample_type::CPU;
    }
    let setting = RingOptions {
        system: matches!(plan.scope, MeasurementScope::Cpus(_)),
        on_exec,
        // A command that is sampled from its exec on needs no tracker event. All other targets exist before
        // their events are opened. A trace decoder also needs the tracker's records.
        tracker: !on_exec || plan.options.backward || plan.trace.is_some() || is_mixed,
        tracks_apart: plan.tracks_apart,
        with_id: plan.with_id || unwinds(plan, &groups),
        keeps_contexts: plan.options.stat || events().any(|spec| spec.qualifiers.logs()),
        per_thread: plan.per_thread,
        aux: plan.trace.as_ref().map(|trace| trace.area),
    };
    let refused = |refusal: Box<Refusal>| explain(*refusal, host);
    let probes = inheritable_probes(&mut groups, plan.options.inherit, &plan.scope, host);
    let mut rings = Rings::new(groups, &options, setting).map_err(refused)?;
    rings.keep(probes);
    let slots = slots(plan, host, &threads, held, &rings);
    let cpus = slots_of_cpus(host, &rings);
    let size = ring_bytes(plan, host, &slots);
    let sampled = match &plan.scope {
        MeasurementScope::Cpus(cpus) => Some(cpus),
        _ => None,
    };
    rings.check_cpus(&host.online_cpus(), sampled).map_err(refused)?;
    make_room_for_events(rings.descriptors(slots.len() + cpus.len()))?;
    let pages = pages_of(size);
    let map = |rings: &mut Rings| {
        rings.map(pages).map_err(|refusal| {
            refusal.explain(&MachineFacts::own(host)).into_error("mapping the ring buffers")
        })
    };
    // Map the rings as soon as the first thread's events are open. From then on, they record every thread
    // that starts.
    let at_once = if plan.per_thread { slots.len() } else { host.online_cpus().len() };
    let (mut gone, mut mapped): (Vec<_>, Option<MappedPages>) = (Vec::new(), None);
    for slots in slots.chunks(at_once.max(1)) {
        let before = gone.len();
        for slot in slots {
            let is_open = match mapped {
                None => rings.open(*slot),
                Some(mapped) => rings.open_late(*slot, mapped.pages),
            };
            if !is_open.map_err(refused)? {
                gone.push(slot.tid);
            }
        }
        if mapped.is_none() && gone.len() < before + slots.len() {
            mapped = Some(map(&mut rings)?);
        }
    }
    threads.retain(|thread| !gone.contains(&Some(thread.tid)));
    let Some(MappedPages { pages: mapped, limit }) = mapped else {
        return Err(match &plan.scope {
            MeasurementScope::Cpus(cpus) => Error::new(format!("CPUs {cpus} went offline")),
            _ => Error::new("the processes ended before pmc opened their events"),
        });
    };
    if let Some(limit) = limit {
        let is = |pages: usize| units::bytes((pages * page_size()) as u64);
        say::warn(smaller_rings(&is(mapped), &is(pages), limit));
    } else if plan.verbose {
        say::note(format!(
            "{} ring buffers of {}",
            rings.count(),
            units::bytes((mapped * page_size()) as u64)
        ));
    }
    new_threads::attach(plan, host, &mut rings, &mut threads, mapped)?;
    for slot in cpus {
        // Open events on whole CPUs last. They do not record the start of tasks, so a child that a recorded
        // task starts in the meantime would not be reported.
        rings.open_late(slot, mapped).map_err(refused)?;
    }
    rings.set_filters().map_err(filters::refused)?;
    check_slices(&rings)?;
    check_ends(host, &rings)?;
    say_fallbacks(&rings, plan.options.no_samples);
    say_silent_switches(plan, &rings);
    Ok((rings, threads))
}

/// Checks that no group mixes `system` events with other events. The kernel opens all events of a group on
/// the same target.
fn check_groups(groups: &[(EventGroup, Option<Rc<TargetCgroup>>)]) -> Result<()> {
    let is_system = |spec: &EventSpec| spec.qualifiers.system;
    let is_both = |group: &&EventGroup| {
        group.braces && group.events.iter().any(is_system) && !group.events.iter().all(is_system)
    };
    match groups.iter().map(|(group, _)| group).find(is_both) {
        None => Ok(()),
        Some(group) => {
            let names: Vec<&str> = group.events.iter().map(|spec| spec.name.as_str()).collect();
            Err(Error::usage(format!(
                "{{{}}}: some events count whole CPUs (`system`), others do not",
                names.join(",")
            ))
            .why("all events in a group must use the same PMU")
            .try_this("use one group per PMU"))
        }
    }
}

/// Opens the trigger events, which start another file when they occur. They use the plan's targets, but
/// separate, smaller rings.
///
/// # Errors
/// Fails if an event is unknown, or the kernel refuses it.
pub fn open_triggers(
    text: &str,
    plan: &SamplePlan,
    host: &Host,
    held: Option<&PausedChild>,
) -> Result<Rings> {
    const PAGES: usize = 8;
    let options =
        SampleOptions { inherit: plan.options.inherit, wakes_always: true, ..SampleOptions::default() };
    let plan = SamplePlan {
        events: vec![text.to_owned()],
        per_thread: plan.per_thread,
        ring: Some(RingSize::of_pages(PAGES)),
        reserve: plan.reserve,
        strict: true,
        run_schedule: plan.run_schedule.clone(),
        ..SamplePlan::on(plan.scope.clone(), options)
    };
    let groups = groups(&plan, host)?;
    let events = || groups.iter().flat_map(|(group, _)| &group.events);
    if let Some(spec) = events().find(|spec| spec.attr().is_some_and(|attr| attr.period() == 0)) {
        return Err(Error::usage(format!("--switch-output-event {}: needs a period", spec.name))
            .why("only tracepoints, probes and breakpoints work without a period")
            .try_this(format!("{}/period=1000000/", spec.name)));
    }
    open(&plan, host, groups, held).map(|(rings, _)| rings)
}

/// Makes it safe for children to inherit the probes among these events. See
/// [`inherited_probes`](pmc_events::counter::inherited_probes). Warns about each probe that cannot be
/// inherited.
pub(super) fn inheritable_probes(
    groups: &mut [(EventGroup, Option<Rc<TargetCgroup>>)],
    inherit: bool,
    scope: &MeasurementScope,
    host: &Host,
) -> Vec<ProbeDefinition> {
    // Events on whole CPUs are not inherited.
    let inherit = inherit && !matches!(scope, MeasurementScope::Cpus(_));
    let events = groups.iter_mut().flat_map(|(group, _)| &mut group.events);
    let probes = make_inheritable(events, inherit, host);
    if probes.abandoned > 0 {
        say::note(format!(
            "removed {} probe definitions left in tracefs by a killed pmc process",
            probes.abandoned
        ));
    }
    for (event, error) in probes.refused {
        let why = kernel_message(&error);
        let what = format!("{event} excludes new processes, because it has no probe in tracefs: {why}");
        say::warn(
            Warning::note(what).advise("root can mount tracefs on /sys/kernel/tracing and write there"),
        );
    }
    probes.definitions
}

/// Starts or stops the chosen events, even if an earlier call has already done so.
pub(super) fn switch(rings: &Rings, on: bool, events: EventChoice) -> Result<()> {
    let which = |event: &EventSpec| events.has(event.takes_counter());
    rings.switch_where(on, which).map_err(starting)
}

/// Starts or stops the event with this name, if it is among the chosen events.
pub(super) fn switch_named(rings: &Rings, on: bool, name: &str, events: EventChoice) -> Result<()> {
    let which = |event: &EventSpec| event.name == name && events.has(event.takes_counter());
    rings.switch_each(on, which).map_err(starting)
}

/// Returns the error for events that the kernel failed to start.
pub(super) fn starting(error: std::io::Error) -> Error {
    Error::io("starting the events", error)
}

/// Checks that children inherit the leaders of time-slice groups, and that these leaders count context
/// switches.
fn check_slices(rings: &Rings) -> Result<()> {
    let leaders = || rings.given_up().filter(|(spec, _)| spec.qualifiers.leads_slices);
    let error = Error::new("log-cswitch: per-time-slice counts are not available");
    if leaders().any(|(_, given_up)| given_up.has(Fallback::InheritedReads)) {
        return Err(error
            .why("child processes cannot inherit a group whose samples include counts (requires Linux 6.13 or newer)")
            .try_options("-i, which excludes child processes")
            .try_this("use log-exit, which logs each thread's counts when it exits"));
    }
    if leaders().any(|(_, given_up)| given_up.has(Fallback::UserOnly)) {
        return Err(error
            .why("context switches happen in the kernel, which you have no permission to measure")
            .try_this("use log-exit, which logs each thread's counts when it exits")
            .try_this("set kernel.perf_event_paranoid=1, or grant CAP_PERFMON"));
    }
    Ok(())
}

/// Checks that the kernel reports a thread's counts when the thread ends. Per-thread counts require this.
fn check_ends(host: &Host, rings: &Rings) -> Result<()> {
    let inherits = |attr: &Attr| attr.get(Flag::InheritStat) && attr.get(Flag::Inherit);
    let mut inheriting = rings.events().filter(|(_, attr, _)| inherits(attr)).peekable();
    // If the test cannot be run, assume that the kernel reports these counts.
    let cpu = host.online_cpus().first().unwrap_or(0);
    let are_counted = || ended_threads::are_counted(cpu).unwrap_or(true);
    if inheriting.peek().is_none() || are_counted() {
        return Ok(());
    }
    if let Some((spec, ..)) = inheriting.find(|(spec, ..)| spec.qualifiers.logs()) {
        let log = if spec.qualifiers.log_exit { "log-exit" } else { "log-cswitch" };
        return Err(Error::new(format!("{log}: per-thread counts are not available"))
            .why("this kernel does not report a thread's counts when the thread exits (Linux 5.13 to 6.18 without the fix)")
            .try_this("use Linux 6.19 or newer")
            .try_options("-i, which logs only the command's first thread, or the threads of -p"));
    }
    say::warn(
        Warning::note("-s: this kernel does not report a thread's counts when the thread exits")
            .advise("use Linux 6.19 or newer (or 5.13 to 6.18 with the fix)"),
    );
    Ok(())
}

/// Warns about requested features that the kernel does not support.
fn say_fallbacks(rings: &Rings, only_counts: bool) {
    for (spec, given_up) in rings.given_up() {
        if given_up.has(Fallback::UserOnly) {
            say::warn(user_mode_only(if only_counts { "counting" } else { "sampling" }));
        }
        if given_up.has(Fallback::DeferredChains) {
            say::warn(
                Warning::note_once("--call-graph fp,defer: this kernel cannot defer user-mode call chains")
                    .advise("requires Linux 6.19 or newer"),
            );
        }
        if given_up.has(Fallback::InheritedReads) {
            let what = format!(
                "{} excludes new threads and processes: this kernel can read groups (:S) only for a single thread",
                spec.name
            );
            say::warn(Warning::note(what).advise("record without :S, or use Linux 6.13 or newer"));
        }
        if given_up.has(Fallback::HostGuestExclusion) {
            let what = format!("{}: guests are sampled together with the host", spec.name);
            say::warn(Warning::note_once(what));
        }
    }
}

/// Warns if context switches are sampled in user mode only. The kernel opens such an event, but never writes
/// a sample for it.
fn say_silent_switches(plan: &SamplePlan, rings: &Rings) {
    let is_silent = |(spec, attr, _): &(&EventSpec, &Attr, _)| {
        spec.is_generic(kind::SOFTWARE, CONTEXT_SWITCHES) && attr.get(Flag::ExcludeKernel)
    };
    match (rings.events().any(|event| is_silent(&event)), plan.off_cpu) {
        (false, _) => {}
        (true, Some(_)) => say::warn(
            Warning::note(
                "waiting times are complete, but only waits in known library functions have a reason: no \
                 permission to record kernel stacks",
            )
            .advise("set kernel.perf_event_paranoid to 1 or lower, or run as root"),
        ),
        (true, None) => say::warn(
            Warning::new(
                "context-switches:u never occurs: a thread is in the kernel whenever it leaves its CPU",
            )
            .advise(
                "see kernel.perf_event_paranoid; record --off-cpu measures wait times without measuring the kernel",
            ),
        ),
    }
}

/// Gives real-time priority to the calling thread, which drains the rings.
///
/// # Errors
/// Fails if the kernel refuses the priority.
pub fn run_in_real_time(priority: Option<i32>) -> Result<()> {
    priority.map_or(Ok(()), |priority| {
        process::run_in_real_time(priority).map_err(|error| {
            Error::io(format!("--realtime {priority}"), error)
                .why("real-time priorities require CAP_SYS_NICE or a higher limit (ulimit -r)")
                .try_this("use sudo, or raise ulimit -r")
        })
    })
}
