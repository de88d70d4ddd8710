//! PMUs that write traces: what the hardware does goes into an AUX area beside the ring, in a format of its
//! own, and no counter is read.
//!
//! Receives the name of a [`Pmu`]; hands on who it is to the decoders, and what perf asks of it where the
//! event's text says nothing. Decoding is theirs: `perf report`, `perf script --itrace`.

use super::pmu::Pmu;

/// Hardware that traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracer {
    /// Intel Processor Trace: every branch.
    IntelPt,
    /// Intel Branch Trace Store: every branch, by an older and slower way.
    IntelBts,
    /// Arm's Statistical Profiling Extension: operations, sampled by hardware.
    ArmSpe,
    /// Arm CoreSight: every branch.
    CoreSight,
    /// HiSilicon PCIe Tune and Trace.
    HisiPtt,
}

/// SPE's interval where its driver names no least one (perf's `arm_spe_pmu__sample_period`).
const SPE_INTERVAL: u64 = 4 << 10;

impl Tracer {
    /// The one that this PMU is; `None` for those that count.
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

    /// Its makers' name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::IntelPt => "Intel PT",
            Self::IntelBts => "Intel BTS",
            Self::ArmSpe => "Arm SPE",
            Self::CoreSight => "CoreSight",
            Self::HisiPtt => "HiSilicon PTT",
        }
    }

    /// `attr.sample_period` where nothing is said: SPE takes an operation in so many, the others trace all.
    pub(crate) fn period(self, pmu: &Pmu) -> u64 {
        match self {
            Self::ArmSpe => {
                let least = pmu.capability("min_interval").and_then(|text| text.trim().parse().ok());
                least.filter(|&least| least > 0).unwrap_or(SPE_INTERVAL)
            }
            _ => 1,
        }
    }

    /// The fields that perf sets where the text does not and the PMU has them (`intel_pt_default_config`,
    /// `arm_spe_recording_options`): times, so that what several CPUs have traced can be put in order, and
    /// what the decoder needs.
    pub(crate) fn defaults(self, pmu: &Pmu) -> Vec<(&'static str, u64)> {
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

/// Of the numbers whose bits are set the greatest up to 3, or else the least: the periods that perf takes.
fn nearest(set: u64) -> Option<u64> {
    const WANTED: u64 = 3;
    let is_in = |&number: &u64| set >> number & 1 == 1;
    (0..=WANTED).rev().find(is_in).or_else(|| (WANTED..64).find(is_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_nearest_to_perfs_is_taken() {
        for (set, period) in [(0, None), (0x249, Some(3)), (0x10, Some(4)), (0x3f, Some(3)), (0x1, Some(0))] {
            assert_eq!(nearest(set), period, "{set:#x}");
        }
    }

    #[test]
    fn pmus_that_trace_are_known_by_their_names() {
        assert_eq!(Tracer::of_pmu("intel_pt"), Some(Tracer::IntelPt));
        assert_eq!(Tracer::of_pmu("arm_spe_0"), Some(Tracer::ArmSpe));
        assert_eq!(Tracer::of_pmu("cpu"), None);
        assert_eq!(Tracer::of_pmu("arm_cmn_0"), None);
    }
}
