//! PMUs that write traces instead of counting. The hardware writes to an AUX area next to the ring, in its
//! own format.
//!
//! Identifies the tracer of a [`Pmu`] for decoders, and provides perf's defaults for settings that are
//! missing from the event's text. `perf report` and `perf script --itrace` decode the trace.

use super::pmu::Pmu;

/// Tracing hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracer {
    /// Intel Processor Trace: every branch.
    IntelPt,
    /// Intel Branch Trace Store, which records every branch. Older and slower than Processor Trace.
    IntelBts,
    /// Arm's Statistical Profiling Extension, which samples operations in hardware.
    ArmSpe,
    /// Arm CoreSight: every branch.
    CoreSight,
    /// HiSilicon PCIe Tune and Trace.
    HisiPtt,
}

/// SPE's interval if the driver does not report a minimum (perf's `arm_spe_pmu__sample_period`).
const SPE_INTERVAL: u64 = 4 << 10;

impl Tracer {
    /// The tracer of this PMU; `None` for PMUs that count.
    pub fn of_pmu(name: &str) -> Option<Self> {
        match name {
            "intel_pt" => Some(Self::IntelPt),
            "intel_bts" => Some(Self::IntelBts),
            "cs_etm" => Some(Self::CoreSight),
            _ if name.starts_with("arm_spe_") => Some(Self::ArmSpe),
            _ if name.starts_with("hisi_ptt") => Some(Self::HisiPtt),
            _ => None,
        }
    }

    /// The vendor's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::IntelPt => "Intel PT",
            Self::IntelBts => "Intel BTS",
            Self::ArmSpe => "Arm SPE",
            Self::CoreSight => "CoreSight",
            Self::HisiPtt => "HiSilicon PTT",
        }
    }

    /// Default `attr.sample_period`. SPE samples one operation per interval; the others trace everything.
    pub fn period(self, pmu: &Pmu) -> u64 {
        match self {
            Self::ArmSpe => {
                let least = pmu.capability("min_interval").and_then(|text| text.trim().parse().ok());
                least.filter(|&least| least > 0).unwrap_or(SPE_INTERVAL)
            }
            Self::IntelPt | Self::IntelBts | Self::CoreSight | Self::HisiPtt => 1,
        }
    }

    /// The fields that perf sets if the PMU has them and the event's text does not set them
    /// (`intel_pt_default_config`, `arm_spe_recording_options`): timestamps, which are needed to order the
    /// traces of several CPUs, and fields that the decoder needs.
    pub fn defaults(self, pmu: &Pmu) -> Vec<(&'static str, u64)> {
        let mut fields = Vec::new();
        match self {
            Self::ArmSpe => fields.push(("ts_enable", 1)),
            Self::IntelPt => {
                fields.push(("tsc", 1));
                let is_able = |what: &str| pmu.capability(what).is_none_or(|text| text.trim() != "0");
                let sets = |what: &str| {
                    let text = pmu.capability(what).unwrap_or_default();
                    u64::from_str_radix(text.trim(), 16).unwrap_or(0)
                };
                let mtc = if is_able("mtc") { nearest(sets("mtc_periods")) } else { None };
                if let Some(period) = mtc {
                    fields.extend([("mtc", 1), ("mtc_period", period)]);
                    let psb = if is_able("psb_cyc") { nearest(sets("psb_periods")) } else { None };
                    fields.extend(psb.map(|period| ("psb_period", period)));
                }
                fields.extend([("pt", 1), ("branch", 1)]);
            }
            Self::IntelBts | Self::CoreSight | Self::HisiPtt => {}
        }
        fields
    }
}

/// Returns perf's choice of a period from a set of numbers, given as bits: the largest one up to 3, or else
/// the smallest.
fn nearest(set: u64) -> Option<u64> {
    const WANTED: u64 = 3;
    let is_in = |&number: &u64| set >> number & 1 == 1;
    (0..=WANTED).rev().find(is_in).or_else(|| (WANTED..64).find(is_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_period_to_perfs_default_is_chosen() {
        for (set, period) in [(0, None), (0x249, Some(3)), (0x10, Some(4)), (0x3f, Some(3)), (0x1, Some(0))] {
            assert_eq!(nearest(set), period, "{set:#x}");
        }
    }

    #[test]
    fn trace_pmus_are_recognized_by_name() {
        assert_eq!(Tracer::of_pmu("intel_pt"), Some(Tracer::IntelPt));
        assert_eq!(Tracer::of_pmu("arm_spe_0"), Some(Tracer::ArmSpe));
        assert_eq!(Tracer::of_pmu("cpu"), None);
        assert_eq!(Tracer::of_pmu("arm_cmn_0"), None);
    }
}
