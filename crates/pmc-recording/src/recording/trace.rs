//! Prepares the recording of hardware traces (Intel PT, Arm SPE): the sizes of the AUX areas, and the
//! settings for decoders.
//!
//! Receives a [`SamplePlan`] with its events; returns a [`TracePlan`], and the record (`AUXTRACE_INFO`) by
//! which perf selects its decoder. [`Rings`](pmc_events::counter::rings) maps the areas, and perf decodes the
//! traces.
//!
//! ```text
//!   ring   … | AUX: bytes 0 to n of the area | …  ──►  the same record   in the file
//!   area   |■■■■■ trace ■■■■■|                    ──►  AUXTRACE | bytes 0 to n
//! ```

use crate::recording::open::Groups;
use crate::recording::plan::{MeasurementScope, SamplePlan, TracePlan};
use crate::recording::ring_limit::may_lock_any;
use crate::recording::ring_size::RingSize;
use pmc_events::counter::request::{CounterFlags, OpenRequest};
use pmc_events::counter::rings::{AuxOptions, Rings};
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::{EventSource, EventSpec};
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MoreTimeConv, TimeConv};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic::DUMMY;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::tracer::Tracer;
use pmc_sys::sys::header_page::HeaderPage;
use pmc_sys::sys::page_size;
use pmc_sys::sys::ring::AuxMode;

/// Default sizes of the AUX areas, as in perf. The small size applies to users with a limit on locked memory,
/// whose rings are smaller too.
const AREA: u64 = 4 << 20;
const SMALL_AREA: u64 = 128 << 10;
const SMALL_RING: u64 = 256 << 10;
/// Minimum size that perf and the drivers accept for an area.
const LEAST_AREA: u64 = 8 << 10;
const LEAST_PAGES: usize = 2;

/// Adjusts the plan to its trace event, if it has one.
///
/// # Errors
/// Fails if pmc or the decoders do not support the combination.
pub fn adjust_to_trace(plan: &mut SamplePlan, groups: &mut Groups, host: &Host) -> Result<()> {
    let has_samples = sample_traces(plan.aux_sample, groups)?;
    let mut traces = groups.iter().flat_map(|(group, _)| &group.events).filter_map(of_event);
    let Some((spec, tracer, pmu)) = traces.next() else {
        if plan.aux_area.is_some() {
            return Err(Error::usage("-m RING,AREA and -S=SIZE require an event with an AUX buffer")
                .try_options("-m RING, -S")
                .try_options("-e intel_pt//, or -e arm_spe_0//"));
        }
        return Ok(());
    };
    if let Some((other, ..)) = traces.next() {
        return Err(Error::usage(format!("{} and {}: only one trace per recording", spec.name, other.name))
            .why("events that share a ring buffer also share its AUX buffer")
            .try_this("use a second recording"));
    }
    if let Tracer::CoreSight | Tracer::HisiPtt = tracer {
        return Err(Error::usage(format!("{}: pmc cannot record traces of {}", spec.name, tracer.name()))
            .why("its decoder requires registers that pmc does not write to the file")
            .try_this(format!(
                "perf record -e {}; pmc can read the resulting file, but not decode its trace",
                spec.name
            )));
    }
    if spec.qualifiers.system && !matches!(plan.scope, MeasurementScope::Cpus(_)) {
        return Err(Error::usage(format!(
            "{}: a whole-CPU trace cannot be combined with per-process events",
            spec.name
        ))
        .why("these events would share each CPU's ring buffer")
        .try_options("use a separate recording with -a"));
    }
    if plan.options.clock.is_some() {
        return Err(Error::usage(format!(
            "{}: its timestamps use the kernel's clock, but -k selects another clock",
            spec.name
        ))
        .try_options("omit -k (and --reserve=yield, which requires the monotonic clock)"));
    }
    let mode = if plan.options.backward || has_samples { AuxMode::Newest } else { AuxMode::Everything };
    let is_free = may_lock_any(host);
    let page = page_size() as u64;
    let usual = if is_free { AREA } else { SMALL_AREA };
    let pages = plan
        .aux_area
        .map_or((usual / page) as usize, RingSize::pages)
        .max((LEAST_AREA / page) as usize)
        .max(LEAST_PAGES);
    if !is_free && plan.ring.is_none() {
        plan.ring = Some(RingSize::of_bytes(SMALL_RING));
    }
    if mode == AuxMode::Everything {
        // Wake up before the area is full, but not too often.
        plan.options.aux_watermark = u32::try_from(pages as u64 * page / 4).unwrap_or(u32::MAX);
    }
    if plan.per_thread {
        // Decoders know which thread each piece of the trace belongs to. With timestamps, they would also
        // expect CPUs and context switches.
        plan.options.time = false;
        untimed(groups);
    } else {
        // Decoders can attribute a CPU's trace to threads only if context switches are recorded with CPU and
        // time.
        plan.options.switches = true;
        plan.options.fields |= sample_type::CPU;
    }
    plan.trace = Some(TracePlan { tracer, pmu, area: AuxOptions { pages, mode }, in_samples: has_samples });
    Ok(())
}

/// Removes SPE's default timestamps, as perf does if each thread has a separate area.
fn untimed(groups: &mut Groups) {
    let events = groups.iter_mut().flat_map(|(group, _)| &mut group.events);
    let traces = events.filter_map(|spec| spec.trace.as_mut());
    traces.filter(|trace| trace.tracer == Tracer::ArmSpe).for_each(|trace| trace.defaults.clear());
}

/// Returns the event, the tracer and its PMU, if the event is a trace.
fn of_event(spec: &EventSpec) -> Option<(EventSpec, Tracer, String)> {
    Some((spec.clone(), spec.trace.as_ref()?.tracer, spec.pmu.clone()?))
}

/// If requested, adds trace data to the samples of events whose group leader is a trace. Returns whether any
/// event's samples have such data.
fn sample_traces(asked: Option<u32>, groups: &mut Groups) -> Result<bool> {
    let mut any = false;
    for (group, _) in groups {
        let is_led = group.braces && group.events.first().is_some_and(|leader| leader.trace.is_some());
        for spec in group.events.iter_mut().skip(1) {
            let EventSource::Kernel(attr) = &mut spec.source else { continue };
            if let (true, 0, Some(bytes)) = (is_led, attr.aux_sample_size(), asked) {
                attr.set_aux_sample_size(bytes);
            }
            any |= attr.aux_sample_size() != 0;
        }
    }
    if asked.is_some() && !any {
        return Err(Error::usage("--aux-sample requires an event in a group led by a trace")
            .try_options("-e '{intel_pt//,branch-misses:u}', -e '{arm_spe_0//,cycles}'"));
    }
    Ok(any)
}

/// Checks that none of these events is a trace, because `what` does not support traces.
///
/// # Errors
/// Fails if an event records a trace. The error names the first one.
pub fn refuse(groups: &Groups, what: &str) -> Result<()> {
    match groups.iter().flat_map(|(group, _)| &group.events).find_map(of_event) {
        None => Ok(()),
        Some((spec, tracer, _)) => Err(Error::usage(format!(
            "{}: a trace of {} requires a decoder, and {what}",
            spec.name,
            tracer.name()
        ))
        .try_this(format!("pmc record -e {}, then perf script --itrace", spec.name))),
    }
}

impl TracePlan {
    /// Writes the decoder settings: how the trace's clock relates to other clocks, and which activity was
    /// traced.
    ///
    /// # Errors
    /// Fails if the PMU no longer exists.
    pub(crate) fn write_decoder_settings(
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
        // perf calls this word `per_cpu_mmaps`: whether each CPU has its own area.
        let per_cpu = u64::from(!plan.per_thread);
        let is_newest = u64::from(self.area.mode == AuxMode::Newest && !self.in_samples);
        let times = times.unwrap_or_default();
        let base =
            [u64::from(pmu.kind), times.shift, times.mult, times.zero, u64::from(times.more.is_some())];
        match self.tracer {
            // The same words as in perf's `arm_spe_info_fill`.
            Tracer::ArmSpe => out.auxtrace_info(ARM_SPE, &[u64::from(pmu.kind), per_cpu]),
            // The same words as in perf's `intel_bts_info_fill`.
            Tracer::IntelBts => {
                let words: Vec<u64> = base.into_iter().chain([is_newest]).collect();
                out.auxtrace_info(INTEL_BTS, &words);
            }
            // The same words as in perf's `intel_pt_info_fill`.
            Tracer::IntelPt => {
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
                // How context switches are recorded: for whole CPUs, for the recorded threads, or not at all.
                let switches = match plan.scope {
                    _ if plan.per_thread || config & mask("tsc") == 0 => 0,
                    MeasurementScope::Cpus(_) => 3,
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
            // `adjust_to_trace` refuses these.
            Tracer::CoreSight | Tracer::HisiPtt => {}
        }
        Ok(())
    }
}

/// perf's decoder numbers (`enum auxtrace_type`).
const INTEL_PT: u32 = 1;
const INTEL_BTS: u32 = 2;
const ARM_SPE: u32 = 4;

/// Returns how to convert the CPU's clock to the kernel's clock. Reads this from the header page that the
/// kernel provides for any event.
fn times() -> Option<TimeConv> {
    let mut request = OpenRequest::in_user_mode(kind::SOFTWARE, DUMMY, CounterFlags::default()).ok()?;
    let event = request.open(TargetSlot::OURSELVES, None, None).ok()?;
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
    use crate::kit::test_data;
    use pmc_events::event;
    use pmc_perfdata::record::{Record, Records};
    use pmc_sys::abi::Attr;

    /// Returns the plan for this trace on a machine from the test data.
    fn settled(
        machine: &str,
        text: &str,
        change: impl Fn(&mut SamplePlan),
    ) -> Result<(SamplePlan, Groups, Host)> {
        let host = Host::rooted(test_data(&format!("sysfs/{machine}")));
        let parsed = event::parse(text, &host).map_err(Error::from)?;
        let mut groups: Groups = parsed.into_iter().map(|group| (group, None)).collect();
        let mut plan = SamplePlan::on(MeasurementScope::Command, Default::default());
        change(&mut plan);
        adjust_to_trace(&mut plan, &mut groups, &host)?;
        Ok((plan, groups, host))
    }

    /// Settings for Intel PT's decoder: bits from the PMU's format files, the ratio of the clocks, and
    /// per-CPU areas (`intel_pt_info_fill` in perf's `arch/x86/util/intel-pt.c`).
    #[test]
    fn auxtrace_info_matches_perf() {
        let (plan, _, host) = settled("intel-server", "intel_pt//u", |_| {}).unwrap();
        let mut out = Encoder::new(0);
        plan.trace
            .as_ref()
            .unwrap()
            .write_decoder_settings(&plan, &Rings::default(), &host, &mut out)
            .unwrap();
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
    fn trace_attributes_match_perf() {
        use pmc_events::counter::request::sampling::{SampleRole, request};
        let config = |text: &str| {
            let (plan, groups, _) = settled("intel-server", text, |_| {}).unwrap();
            let role = SampleRole { leads: true, ..SampleRole::default() };
            let asked = request(&groups[0].0.events[0], &plan.options, role).unwrap();
            (asked.attr().config(), asked.attr().period())
        };
        // perf's defaults: tsc, mtc, pt and branch are set, and both periods are 3. Explicit settings are
        // kept.
        let usual = 1 << 10 | 1 << 9 | 1 | 1 << 13 | 3 << 14 | 3 << 24;
        assert_eq!(config("intel_pt//u"), (usual, 1));
        assert_eq!(
            config("intel_pt/branch=0,psb_period=1/u"),
            (usual & !(1 << 13) & !(3 << 24) | 1 << 24, 1)
        );
        assert_eq!(config("intel_pt/config=0x400/u"), (0x400, 1));
    }

    #[test]
    fn aux_area_size_respects_request_and_driver() {
        let pages = |asked: Option<usize>| {
            let (plan, ..) =
                settled("intel-server", "intel_pt//u", |plan| plan.aux_area = asked.map(RingSize::of_pages))
                    .unwrap();
            plan.trace.unwrap().area.pages as u64 * page_size() as u64
        };
        assert_eq!(pages(Some(1)), LEAST_AREA);
        assert_eq!(pages(Some(64)), 64 * page_size() as u64);
        assert!([AREA, SMALL_AREA].contains(&pages(None)));
    }

    #[test]
    fn undecodable_traces_are_rejected() {
        let refused = |text: &str, change: fn(&mut SamplePlan)| {
            settled("intel-server", text, change).map(drop).unwrap_err().to_string()
        };
        for (text, change, words) in [
            ("intel_pt//u,intel_pt//k", (|_| {}) as fn(&mut SamplePlan), "only one trace per recording"),
            ("intel_pt//u", |plan| plan.options.clock = Some(1), "-k"),
            (
                "cycles",
                |plan| plan.aux_area = Some(RingSize::of_pages(1)),
                "require an event with an AUX buffer",
            ),
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
