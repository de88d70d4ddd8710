//! Requests to open events. Once `event` has built a `perf_event_attr`, only this module changes it.
//!
//! Takes an [`EventSpec`] (parsed from the event's text), a [`Mode`], [`CounterFlags`], and a CPU for system
//! modes. Performs the same checks as FreeBSD's `pmc_allocate(3)` and returns an [`OpenRequest`]. The request
//! is then complete for counting; for sampling, [`sampling`] adds more fields. [`super::open`] opens the
//! event and may drop parts of the request.

pub mod given_up;
pub mod sampling;

use super::refusal::{Refusal, RefusalKind};
use super::target::TargetSlot;
use crate::event::{EventSource, EventSpec};
use crate::hint::Hint;
use given_up::GivenUp;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, read_format, sample_type};
use pmc_sys::host::CpuList;
use pmc_sys::sys::errno;

/// The scope of a counter, and whether it samples. These are FreeBSD's four modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Counts everything on a CPU (`PMC_MODE_SC`).
    SystemCounting,
    /// Samples everything on a CPU (`PMC_MODE_SS`).
    SystemSampling,
    /// Counts a thread (`PMC_MODE_TC`).
    TaskCounting,
    /// Samples a thread (`PMC_MODE_TS`).
    TaskSampling,
}

impl Mode {
    pub(super) fn samples(self) -> bool {
        matches!(self, Self::SystemSampling | Self::TaskSampling)
    }

    fn is_system(self) -> bool {
        matches!(self, Self::SystemCounting | Self::SystemSampling)
    }
}

/// Additional options for a counter (FreeBSD's `PMC_F_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterFlags {
    /// Also count children that start later (`inherit`).
    pub descendants: bool,
    /// Log the count at each context switch: the group's leader samples switches and reads the count. Tasks
    /// only.
    pub log_cswitch: bool,
    /// Log a thread's count when the thread ends (`inherit_stat`). Tasks only.
    pub log_exit: bool,
    /// Record call chains in samples; sampling only.
    pub callchain: bool,
}

/// Privilege levels to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Levels {
    /// The levels given in each event's text.
    #[default]
    AsWritten,
    /// User mode only (`--all-user`).
    User,
    /// Kernel mode only (`--all-kernel`).
    Kernel,
}

/// When an event starts counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountingStart {
    /// When the event is enabled.
    Enabled,
    /// When the task calls exec, unless the event is enabled earlier.
    Exec,
    /// When the event is opened. A group member starts with its leader.
    AtOnce,
}

/// A checked request, which can be opened on any number of targets.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The event's name, for refusal messages.
    pub(super) event: String,
    /// The attributes as requested.
    pub(super) whole: Attr,
    /// The attributes without the dropped parts, used for the next open.
    pub(super) attr: Attr,
    pub(super) given_up: GivenUp,
    /// Whether the event requests the highest available precision (modifier `P`).
    pub(super) precise_max: bool,
    /// Whether the event's text selects the host or guests.
    pub(super) exclusion_chosen: bool,
}

impl OpenRequest {
    /// Creates a request from the attributes of an event that is already open.
    pub(super) fn from_open_event(event: &str, attr: Attr) -> Self {
        Self {
            event: event.to_owned(),
            whole: attr.clone(),
            attr,
            given_up: GivenUp::default(),
            precise_max: false,
            exclusion_chosen: true,
        }
    }
}

/// Checks a request and builds its `perf_event_attr`. The result is complete for counting. For sampling,
/// [`sampling::request`] adds the sampling fields. Does not open the event.
///
/// In system mode, `cpu` is the CPU to count on. It must be `None` for task modes, as in `pmc_allocate(3)`.
///
/// # Errors
/// Returns `EINVAL` for flags that the mode does not support, a system mode without a CPU, or an event that
/// is not a kernel event. Returns `ENXIO` for an event that a holder keeps open, since it must be read
/// through the holder. Errors that only the kernel can detect (hardware, privilege) are reported when the
/// event is opened.
pub fn allocate(
    spec: &EventSpec,
    mode: Mode,
    flags: CounterFlags,
    cpu: Option<u32>,
) -> Result<OpenRequest, Box<Refusal>> {
    let refuse = |errno, kind, cause: &str, remedy: Hint| {
        let attr = spec.attr().cloned().unwrap_or_default();
        Err(Box::new(Refusal::before_the_kernel(&spec.name, attr, errno, (kind, cause, remedy))))
    };
    let bad = |cause: &str, remedy: Hint| refuse(errno::EINVAL, RefusalKind::BadRequest, cause, remedy);
    let attr = match &spec.source {
        EventSource::Kernel(attr) => attr,
        EventSource::Tool(_) => {
            return bad("pmc itself measures it, without a kernel event", Hint::CountTool);
        }
        EventSource::Held(_) => {
            let cause = "a holder keeps the event open, with its own ring buffers";
            return refuse(errno::ENXIO, RefusalKind::NoHardware, cause, Hint::SnapshotHeldEvent);
        }
    };
    let logs = flags.log_cswitch || flags.log_exit;
    match (mode.is_system(), cpu) {
        (true, None) => return bad("counting on a whole CPU requires a CPU number", "".into()),
        (false, Some(_)) => {
            return bad(
                "a task's counter follows the task to any CPU, so it cannot have a CPU number",
                "".into(),
            );
        }
        _ if flags.callchain && !mode.samples() => return bad("only samples have call chains", Hint::Sample),
        _ if spec.qualifiers.most_samples.is_some() && spec.qualifiers.inherit == Some(true) => {
            return bad("the kernel cannot stop an inherited event", "omit nr= or inherit".into());
        }
        _ if logs && mode.is_system() => {
            let remedy = Hint::ChooseTask;
            return bad("only per-task counts can be logged at exits and context switches", remedy);
        }
        _ => {}
    }
    let mut attr = attr.clone();
    attr.set(Flag::Disabled, true);
    // The kernel does not allow inheritance for an event with a sample limit.
    let descendants = flags.descendants && !(mode.samples() && spec.qualifiers.most_samples.is_some());
    attr.set(Flag::Inherit, spec.qualifiers.inherit.unwrap_or(descendants));
    attr.set(Flag::InheritStat, logs);
    if mode.samples() {
        let chains = if flags.callchain { sample_type::CALLCHAIN } else { 0 };
        attr.set_sample_type(attr.sample_type() | chains);
    } else {
        // A counting event has no period, but the spec of a tracepoint or breakpoint has one for sampling.
        // The sample identifier costs nothing, and perf sets it too.
        attr.set_period(0);
        attr.set_sample_type(sample_type::IDENTIFIER);
        attr.set_read_format(read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING);
    }
    Ok(OpenRequest {
        event: spec.name.clone(),
        whole: attr.clone(),
        attr,
        given_up: GivenUp::default(),
        precise_max: spec.precise_max,
        exclusion_chosen: spec.exclusion_chosen,
    })
}

/// Checks that an event bound to CPUs (by `cpu=LIST` or by its PMU) can be opened on all these CPUs. At least
/// one of the CPUs must be in `counted`, the CPUs to be measured. `None` means that tasks are measured on any
/// CPU.
///
/// # Errors
/// Returns `EINVAL`, like `pmc_allocate(3)` for a bad CPU number.
pub(crate) fn check_cpus(
    spec: &EventSpec,
    online: &CpuList,
    counted: Option<&CpuList>,
) -> Result<(), Box<Refusal>> {
    let attr = || spec.attr().cloned().unwrap_or_default();
    let error = std::io::Error::from_raw_os_error(errno::EINVAL);
    if let Some(missing) = spec.cpus.iter().flat_map(CpuList::iter).find(|&cpu| !online.contains(cpu)) {
        let slot = TargetSlot { tid: None, cpu: Some(missing) };
        return Err(Box::new(Refusal::new(&spec.name, attr(), slot, &error)));
    }
    // The parts of a hybrid event are exempt, since each part counts only on its own cores.
    let bound = spec.cpus.as_ref().or(spec.core_cpus.as_ref().filter(|_| spec.merge.is_none()));
    match (bound, counted) {
        (Some(bound), Some(counted)) if bound.intersection(counted).is_empty() => {
            let cause =
                format!("the event can be counted only on CPUs {bound}, but CPUs {counted} were selected");
            let remedy = Hint::AddCpus { cpus: bound.clone() };
            let known = (RefusalKind::BadRequest, cause.as_str(), remedy);
            Err(Box::new(Refusal::before_the_kernel(&spec.name, attr(), errno::EINVAL, known)))
        }
        _ => Ok(()),
    }
}

impl OpenRequest {
    /// Creates a request to count a task in user mode, which requires the least privilege.
    ///
    /// # Errors
    /// Fails in the same cases as [`allocate`].
    pub fn in_user_mode(kind: u32, config: u64, flags: CounterFlags) -> Result<Self, Box<Refusal>> {
        let mut request = allocate(&EventSpec::generic(kind, config), Mode::TaskCounting, flags, None)?;
        request.levels(Levels::User);
        Ok(request)
    }

    pub(crate) fn event(&self) -> &str {
        &self.event
    }

    /// The attributes that the kernel accepted, or that the next open will use.
    pub fn attr(&self) -> &Attr {
        &self.attr
    }

    pub(crate) fn levels(&mut self, levels: Levels) {
        self.change(|attr| set_levels(attr, levels));
    }

    /// Sets when the event starts.
    pub fn start(&mut self, start: CountingStart) {
        self.change(|attr| set_start(attr, start));
    }

    /// Sets whether one read returns the values of the whole group, each with its event's ID.
    pub(crate) fn read_as_group(&mut self, grouped: bool) {
        const AS_GROUP: u64 = read_format::GROUP | read_format::ID;
        self.change(|attr| {
            let alone = attr.read_format() & !AS_GROUP;
            attr.set_read_format(alone | if grouped { AS_GROUP } else { 0 });
        });
    }

    /// Sets whether the event is pinned, that is, either always on a counter or in the error state. Clears
    /// `exclusive`, so that other events can still use the PMU.
    pub(crate) fn pinned(&mut self, pinned: bool) {
        self.change(|attr| {
            attr.set(Flag::Pinned, pinned);
            attr.set(Flag::Exclusive, false);
        });
    }

    /// Changes the request. Dropped parts stay dropped.
    pub(super) fn change(&mut self, change: impl Fn(&mut Attr)) {
        change(&mut self.whole);
        change(&mut self.attr);
    }
}

fn set_levels(attr: &mut Attr, levels: Levels) {
    let (user, kernel) = match levels {
        Levels::AsWritten => return,
        Levels::User => (true, false),
        Levels::Kernel => (false, true),
    };
    attr.set(Flag::ExcludeUser, !user);
    attr.set(Flag::ExcludeKernel, !kernel);
}

fn set_start(attr: &mut Attr, start: CountingStart) {
    attr.set(Flag::Disabled, start != CountingStart::AtOnce);
    attr.set(Flag::EnableOnExec, start == CountingStart::Exec);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::PersistentEvent;
    use pmc_sys::abi::attr::kind;

    fn task_clock() -> EventSpec {
        EventSpec::new("task-clock", EventSource::Kernel(Attr::new(kind::SOFTWARE, 1)))
    }

    #[test]
    fn pmc_allocate_rules_are_checked() {
        let spec = task_clock();
        let refused = |mode, flags, cpu| {
            let refusal = allocate(&spec, mode, flags, cpu).err()?;
            assert_eq!(refusal.event, "task-clock");
            refusal.errno
        };
        let none = CounterFlags::default();
        assert_eq!(refused(Mode::TaskCounting, none, None), None);
        assert_eq!(refused(Mode::SystemCounting, none, Some(0)), None);
        assert_eq!(refused(Mode::SystemCounting, none, None), Some(errno::EINVAL));
        assert_eq!(refused(Mode::TaskCounting, none, Some(0)), Some(errno::EINVAL));
        let callchain = CounterFlags { callchain: true, ..none };
        assert_eq!(refused(Mode::TaskCounting, callchain, None), Some(errno::EINVAL));
        assert_eq!(refused(Mode::TaskSampling, callchain, None), None);
        for log in [CounterFlags { log_exit: true, ..none }, CounterFlags { log_cswitch: true, ..none }] {
            assert_eq!(refused(Mode::SystemCounting, log, Some(0)), Some(errno::EINVAL));
            assert_eq!(refused(Mode::TaskCounting, log, None), None);
            let request = allocate(&spec, Mode::TaskCounting, log, None).unwrap();
            assert!(request.attr().get(Flag::InheritStat));
        }
        let held = PersistentEvent { run_directory: "/run/pmc/persistent".into(), id: 1 };
        let held = EventSpec::new("persistent/x/", EventSource::Held(held));
        let refusal = allocate(&held, Mode::TaskCounting, none, None).err().unwrap();
        assert_eq!(
            (refusal.errno, refusal.explain(&Default::default()).kind),
            (Some(errno::ENXIO), RefusalKind::NoHardware)
        );
    }

    #[test]
    fn counting_request_has_no_period() {
        let mut spec = task_clock();
        if let EventSource::Kernel(attr) = &mut spec.source {
            attr.set_period(1);
        }
        let mut request = allocate(&spec, Mode::TaskCounting, CounterFlags::default(), None).unwrap();
        request.start(CountingStart::Exec);
        request.levels(Levels::User);
        let attr = request.attr();
        assert_eq!((attr.period(), attr.sample_type()), (0, sample_type::IDENTIFIER));
        assert!(attr.get(Flag::Disabled) && attr.get(Flag::EnableOnExec) && attr.get(Flag::ExcludeKernel));
        assert!(!attr.get(Flag::Inherit));
    }
}
