//! Recording of what hardware traces (Intel PT, Arm SPE): how much of it, and what its decoders must know.
//!
//! Receives a [`SamplePlan`] with its events; hands on a [`TracePlan`], and the record in the file
//! (`AUXTRACE_INFO`) by which perf finds the decoder. Leaves the areas to [`Rings`](crate::counter::rings),
//! decoding to perf.
//!
//! ```text
//!   ring   … | AUX: bytes 0 to n of the area | …  ──►  the same record   in the file
//!   area   |■■■■■ trace ■■■■■|                    ──►  AUXTRACE | bytes 0 to n
//! ```

use crate::abi::attr::{Flag, kind};
use crate::abi::generic::DUMMY;
use crate::abi::{Attr, sample_type};
use crate::counter::rings::{AuxOptions, Rings};
use crate::error::{Error, Result};
use crate::event::{EventSpec, Source};
use crate::host::Host;
use crate::host::tracer::Tracer;
use crate::record::encode::Encoder;
use crate::record::{MoreTimeConv, TimeConv};
use crate::recording::open::{Groups, may_lock_any};
use crate::recording::plan::{SamplePlan, Scope, TracePlan};
use crate::sys::header_page::HeaderPage;
use crate::sys::page_size;
use crate::sys::perf::{EventFd, OpenTarget};
use crate::sys::ring::AuxMode;

/// The areas' size where nothing is said, as with perf: for those who may lock any memory, and for others,
/// whose rings are smaller then, too.
const AREA: u64 = 4 << 20;
const SMALL_AREA: u64 = 128 << 10;
const SMALL_RING: u64 = 256 << 10;
/// The least that perf and the drivers take.
const LEAST_AREA: u64 = 8 << 10;
const LEAST_PAGES: usize = 2;

/// Makes the plan agree with the trace among its events, if there is one.
///
/// # Errors
/// What pmc, or its decoders, could not make sense of.
pub(crate) fn settle(plan: &mut SamplePlan, groups: &mut Groups, host: &Host) -> Result<()> {
    let has_samples = sample_traces(plan.aux_sample, groups)?;
    let mut traces = groups.iter().flat_map(|(group, _)| &group.events).filter_map(of_event);
    let Some((spec, tracer, pmu)) = traces.next() else {
        if plan.aux_pages.is_some() {
            return Err(Error::usage("-m RING,AREA and -S=SIZE require an event with an AUX buffer")
                .try_this("-m RING, -S")
                .try_this("-e intel_pt//, or -e arm_spe_0//"));
        }
        return Ok(());
    };
    if let Some((other, ..)) = traces.next() {
        return Err(Error::usage(format!("{} and {}: only one trace per recording", spec.name, other.name))
            .why("events on one ring buffer share its AUX buffer")
            .try_this("use a second recording"));
    }
    if let Tracer::CoreSight | Tracer::HisiPtt = tracer {
        return Err(Error::usage(format!("{}: pmc cannot record traces of {}", spec.name, tracer.name()))
            .why("its decoder needs registers that pmc does not write to the file")
            .try_this(format!("perf record -e {}; pmc reads that file except for the trace", spec.name)));
    }
    if spec.qualifiers.system && !matches!(plan.scope, Scope::Cpus(_)) {
        return Err(Error::usage(format!("{}: a trace of whole CPUs beside events of processes", spec.name))
            .why("they would share each CPU's ring buffer")
            .try_this("use a separate recording with -a"));
    }
    if plan.options.clock.is_some() {
        return Err(Error::usage(format!(
            "{}: its times are the kernel's own, and -k chooses another clock",
            spec.name
        ))
        .try_this("omit -k (and --reserve=yield, which requires the monotonic clock)"));
    }
    let mode = if plan.options.backward || has_samples { AuxMode::Newest } else { AuxMode::Everything };
    let is_free = may_lock_any(host);
    let page = page_size() as u64;
    let usual = if is_free { AREA } else { SMALL_AREA };
    let pages =
        plan.aux_pages.unwrap_or((usual / page) as usize).max((LEAST_AREA / page) as usize).max(LEAST_PAGES);
    if !is_free && plan.ring_pages.is_none() {
        plan.ring_pages = Some((SMALL_RING / page) as usize);
    }
    if mode == AuxMode::Everything {
        // Early enough to be there before the area is full, late enough to come seldom.
        plan.options.aux_watermark = u32::try_from(pages as u64 * page / 4).unwrap_or(u32::MAX);
    }
    if plan.per_thread {
        // Whose a piece is, is known. Decoders that see times would look for CPUs and switches, too.
        plan.options.time = false;
        untimed(groups);
    } else {
        // Who ran when, and where, is all that tells whose a piece of a CPU's trace is.
        plan.options.switches = true;
        plan.options.fields |= sample_type::CPU;
    }
    plan.trace = Some(TracePlan { tracer, pmu, area: AuxOptions { pages, mode }, in_samples: has_samples });
    Ok(())
}

/// Leaves out the times that SPE has by default, as perf does where each thread has an area of its own.
fn untimed(groups: &mut Groups) {
    let events = groups.iter_mut().flat_map(|(group, _)| &mut group.events);
    let traces = events.filter_map(|spec| spec.trace.as_mut());
    traces.filter(|trace| trace.tracer == Tracer::ArmSpe).for_each(|trace| trace.defaults.clear());
}

/// The event, who traces and its PMU, if it is a trace.
fn of_event(spec: &EventSpec) -> Option<(EventSpec, Tracer, String)> {
    Some((spec.clone(), spec.trace.as_ref()?.tracer, spec.pmu.clone()?))
}

/// Has each event behind a trace in its group carry some of it in its samples, if that is asked for. Whether
/// any does.
fn sample_traces(asked: Option<u32>, groups: &mut Groups) -> Result<bool> {
    let mut any = false;
    for (group, _) in groups {
        let is_led = group.braces && group.events.first().is_some_and(|leader| leader.trace.is_some());
        for spec in group.events.iter_mut().skip(1) {
            let Source::Kernel(attr) = &mut spec.source else { continue };
            if let (true, 0, Some(bytes)) = (is_led, attr.aux_sample_size(), asked) {
                attr.set_aux_sample_size(bytes);
            }
            any |= attr.aux_sample_size() != 0;
        }
    }
    if asked.is_some() && !any {
        return Err(Error::usage("--aux-sample requires an event in a group led by a trace")
            .try_this("-e '{intel_pt//,branch-misses:u}', -e '{arm_spe_0//,cycles}'"));
    }
    Ok(any)
}

/// No trace is among these events, which `what` could do nothing with.
///
/// # Errors
/// The first trace.
pub(crate) fn refuse(groups: &Groups, what: &str) -> Result<()> {
    match groups.iter().flat_map(|(group, _)| &group.events).find_map(of_event) {
        None => Ok(()),
        Some((spec, tracer, _)) => Err(Error::usage(format!(
            "{}: a trace of {} is for decoders, and {what}",
            spec.name,
            tracer.name()
        ))
        .try_this(format!("pmc record -e {}, then perf script --itrace", spec.name))),
    }
}

impl TracePlan {
    /// Appends what decoders must know: how times in the trace relate to the others, and what was traced how.
    ///
    /// # Errors
    /// When the PMU has gone.
    pub(crate) fn tell(
        &self,
        plan: &SamplePlan,
        rings: &Rings,
        host: &Host,
        out: &mut Encoder,
    ) -> Result<()> {
        let Some(pmu) = host.pmu(&self.pmu) else {
            return Err(Error::new(format!("{}: the PMU no longer exists", self.pmu)));
        };
        let times = times();
        if let Some(times) = &times {
            out.time_conv(times);
        }
        // perf keeps the number for what it calls itself: whether each CPU has its area.
        let per_cpu = u64::from(!plan.per_thread);
        let is_newest = u64::from(self.area.mode == AuxMode::Newest && !self.in_samples);
        let times = times.unwrap_or_default();
        let base =
            [u64::from(pmu.kind), times.shift, times.mult, times.zero, u64::from(times.more.is_some())];
        match self.tracer {
            // `arm_spe_info_fill`
            Tracer::ArmSpe => out.auxtrace_info(ARM_SPE, &[u64::from(pmu.kind), per_cpu]),
            // `intel_bts_info_fill`
            Tracer::IntelBts => {
                let words: Vec<u64> = base.into_iter().chain([is_newest]).collect();
                out.auxtrace_info(INTEL_BTS, &words);
            }
            // `intel_pt_info_fill`
            _ => {
                let mask = |field: &str| {
                    pmu.format(field).and_then(std::result::Result::ok).map_or(0, |format| format.mask)
                };
                let number =
                    |name: &str| pmu.attribute(name).and_then(|text| text.trim().parse().ok()).unwrap_or(0);
                let ratio = pmu.attribute("tsc_art_ratio").unwrap_or_default();
                let (numerator, denominator) = ratio.trim().split_once(':').unwrap_or_default();
                let [numerator, denominator] = [numerator, denominator].map(|text| text.parse().unwrap_or(0));
                let own = rings.requests().find(|(_, attr)| attr.kind() == pmu.kind);
                let config = own.map_or(0, |(_, attr)| attr.config());
                // How context switches are told: on whole CPUs, of the recorded threads, not at all.
                let switches = match plan.scope {
                    _ if plan.per_thread || config & mask("tsc") == 0 => 0,
                    Scope::Cpus(_) => 3,
                    _ => 2,
                };
                let events = pmu.capability("event_trace").and_then(|text| text.trim().parse().ok());
                let words: Vec<u64> = base
                    .into_iter()
                    .chain([mask("tsc"), mask("noretcomp"), switches, is_newest, per_cpu])
                    .chain([mask("mtc"), mask("mtc_period"), numerator, denominator, mask("cyc")])
                    .chain([number("max_nonturbo_ratio"), 0, events.unwrap_or(0)])
                    .collect();
                out.auxtrace_info(INTEL_PT, &words);
            }
        }
        Ok(())
    }
}

/// perf's numbers of decoders (`enum auxtrace_type`).
const INTEL_PT: u32 = 1;
const INTEL_BTS: u32 = 2;
const ARM_SPE: u32 = 4;

/// How the CPU's clock and the kernel's relate, by the page that the kernel shares beside any event.
fn times() -> Option<TimeConv> {
    let mut attr = Attr::new(kind::SOFTWARE, DUMMY);
    // Else it is not for everybody.
    attr.set(Flag::ExcludeKernel, true);
    let event = EventFd::open(&attr, OpenTarget::Task(0), None).ok()?;
    let clock = HeaderPage::map(&event).ok()?.clock_conversion()?;
    let more = MoreTimeConv {
        cycles: clock.cycles,
        mask: clock.mask,
        has_zero: clock.has_zero,
        is_short: clock.is_short,
    };
    Some(TimeConv { shift: clock.shift.into(), mult: clock.mult.into(), zero: clock.zero, more: Some(more) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event;
    use crate::record::{Record, Records};

    /// A plan of this trace on a saved machine.
    fn settled(
        machine: &str,
        text: &str,
        change: impl Fn(&mut SamplePlan),
    ) -> Result<(SamplePlan, Groups, Host)> {
        let host = Host::rooted(format!("{}/tests/data/sysfs/{machine}", env!("CARGO_MANIFEST_DIR")));
        let parsed = event::parse(text, &host).map_err(Error::from)?;
        let mut groups: Groups = parsed.into_iter().map(|group| (group, None)).collect();
        let mut plan = SamplePlan::on(Scope::Command, Default::default());
        change(&mut plan);
        settle(&mut plan, &mut groups, &host)?;
        Ok((plan, groups, host))
    }

    /// What the decoder of Intel PT is told: bits of its format files, the ratio of clocks, and that each
    /// CPU has its area (`intel_pt_info_fill` in perf's `arch/x86/util/intel-pt.c`).
    #[test]
    fn decoders_are_told_what_perf_tells_them() {
        let (plan, _, host) = settled("intel-server", "intel_pt//u", |_| {}).unwrap();
        let mut out = Encoder::new(0);
        plan.trace.as_ref().unwrap().tell(&plan, &Rings::default(), &host, &mut out).unwrap();
        let (mut kinds, mut words) = (Vec::new(), Vec::new());
        for record in Records::new(out.bytes()) {
            if let Some(Record::AuxtraceInfo(info)) = record.parse() {
                kinds.push(info.kind);
                words = info.private.iter().collect();
            }
        }
        assert_eq!(kinds, [INTEL_PT]);
        // type, times (this machine's own), tsc, noretcomp, switches, snapshots, CPUs, mtc, its period, …
        assert_eq!((words[0], words[5], words[6]), (8, 1 << 10, 1 << 11));
        assert_eq!(words[7..12], [0, 0, 1, 1 << 9, 0xf << 14]);
        assert_eq!((words[14], words[16], words.len()), (1 << 1, 0, 18));
    }

    #[test]
    fn what_is_traced_is_what_perf_would_trace() {
        use crate::counter::request::sampling::{SampleRole, request};
        let config = |text: &str| {
            let (plan, groups, _) = settled("intel-server", text, |_| {}).unwrap();
            let role = SampleRole { leads: true, ..SampleRole::default() };
            let asked = request(&groups[0].0.events[0], &plan.options, role).unwrap();
            (asked.attr().config(), asked.attr().period())
        };
        // tsc, mtc, pt, branch, and the periods of 3 that perf prefers; what is written stands.
        let usual = 1 << 10 | 1 << 9 | 1 | 1 << 13 | 3 << 14 | 3 << 24;
        assert_eq!(config("intel_pt//u"), (usual, 1));
        assert_eq!(
            config("intel_pt/branch=0,psb_period=1/u"),
            (usual & !(1 << 13) & !(3 << 24) | 1 << 24, 1)
        );
        assert_eq!(config("intel_pt/config=0x400/u"), (0x400, 1));
    }

    #[test]
    fn areas_are_as_large_as_is_asked_for_and_drivers_take() {
        let pages = |asked| {
            let (plan, ..) = settled("intel-server", "intel_pt//u", |plan| plan.aux_pages = asked).unwrap();
            plan.trace.unwrap().area.pages as u64 * page_size() as u64
        };
        assert_eq!(pages(Some(1)), LEAST_AREA);
        assert_eq!(pages(Some(64)), 64 * page_size() as u64);
        assert!([AREA, SMALL_AREA].contains(&pages(None)));
    }

    #[test]
    fn what_no_decoder_could_use_is_refused() {
        let refused = |text: &str, change: fn(&mut SamplePlan)| {
            settled("intel-server", text, change).map(drop).unwrap_err().to_string()
        };
        for (text, change, words) in [
            ("intel_pt//u,intel_pt//k", (|_| {}) as fn(&mut SamplePlan), "only one trace per recording"),
            ("intel_pt//u", |plan| plan.options.clock = Some(1), "-k"),
            ("cycles", |plan| plan.aux_pages = Some(1), "require an event with an AUX buffer"),
            ("cycles", |plan| plan.aux_sample = Some(64), "requires an event in a group led by a trace"),
            (
                "intel_pt//u,cycles",
                |plan| plan.aux_sample = Some(64),
                "requires an event in a group led by a trace",
            ),
        ] {
            let said = refused(text, change);
            assert!(said.contains(words), "{text}: {said}");
        }
        let (plan, groups, _) =
            settled("intel-server", "{intel_pt//u,cycles:u}", |plan| plan.aux_sample = Some(64)).unwrap();
        assert!(plan.trace.is_some_and(|trace| trace.in_samples && trace.area.mode == AuxMode::Newest));
        assert_eq!(groups[0].0.events[1].attr().map(Attr::aux_sample_size), Some(64));
    }
}
