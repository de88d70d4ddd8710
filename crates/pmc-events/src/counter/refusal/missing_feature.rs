//! Finds the part of a request that the kernel rejects, by retrying the request with one feature removed at a
//! time.
//!
//! Takes a refused request, and a closure that tries a changed request. Returns the feature that must be
//! dropped for the kernel to accept the request. The errno does not show which bit of an attr is the problem,
//! so this module tests instead of guessing.

use crate::hint::Hint;
use pmc_sys::abi::attr::{Flag, WORDS};
use pmc_sys::abi::{Attr, sample_type};

/// A feature that can be removed from a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OmittableFeature {
    /// `precise_ip`: `:p`, `:pp`, `:ppp`.
    Precise,
    BranchStack,
    /// `exclude_user`, `exclude_kernel`, `exclude_hv`, `exclude_idle`: `:u`, `:k` …
    Levels,
    /// `exclude_host`, `exclude_guest`: `:G`, `:H`.
    Guest,
    Sampling,
    /// `sample_max_stack`: the maximum depth of call chains.
    StackDepth,
    /// The clock for timestamps.
    Clock,
    /// Inheritance by children.
    Inherit,
    /// `exclusive`: `:e`.
    Exclusive,
    /// `config3`, `config4`.
    LateConfig,
    /// Inheritance by threads only (Linux 5.13).
    InheritThread,
    /// Flags added in Linux 5.13 and later.
    LateFlags,
}

impl OmittableFeature {
    /// All features in the order in which they are tried, the narrowest first.
    pub(crate) const ALL: [Self; 12] = [
        Self::LateConfig,
        Self::InheritThread,
        Self::LateFlags,
        Self::Precise,
        Self::BranchStack,
        Self::StackDepth,
        Self::Clock,
        Self::Guest,
        Self::Levels,
        Self::Exclusive,
        Self::Inherit,
        Self::Sampling,
    ];

    /// Returns the request without the feature; `None` if the request does not use it.
    pub(crate) fn left_out(self, attr: &Attr) -> Option<Attr> {
        let mut without = attr.clone();
        match self {
            Self::Precise => without.set_precise_ip(0),
            Self::BranchStack => {
                without.set_branch_sample_type(0);
                without.set_sample_type(attr.sample_type() & !sample_type::BRANCH_STACK);
            }
            Self::Levels => {
                for flag in [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeHv, Flag::ExcludeIdle] {
                    without.set(flag, false);
                }
            }
            Self::Guest => {
                without.set(Flag::ExcludeHost, false);
                without.set(Flag::ExcludeGuest, false);
            }
            Self::Sampling => {
                without.set_period(0);
                without.set_precise_ip(0);
                without.set_sample_type(0);
                without.set_branch_sample_type(0);
            }
            Self::StackDepth => without.set_sample_max_stack(0),
            Self::Clock => {
                without.set(Flag::UseClockid, false);
                without.set_clockid(0);
            }
            Self::Inherit => {
                without.inherit_nothing();
                without.set(Flag::InheritStat, false);
            }
            Self::InheritThread => without.set(Flag::InheritThread, false),
            Self::Exclusive => without.set(Flag::Exclusive, false),
            Self::LateConfig => {
                for word in CONFIG3..WORDS {
                    without.set_word(word, 0);
                }
            }
            Self::LateFlags => {
                for flag in
                    [Flag::BuildId, Flag::InheritThread, Flag::RemoveOnExec, Flag::Sigtrap, Flag::TextPoke]
                {
                    without.set(flag, false);
                }
            }
        }
        (without != *attr).then_some(without)
    }

    /// Returns the cause to report if the kernel accepts the request without this feature.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::Precise => "the PMU does not support this precision for the event",
            Self::BranchStack => "the PMU cannot record the requested branch types for this event",
            Self::Levels => "the PMU cannot distinguish privilege levels for this event",
            Self::Guest => "the PMU cannot distinguish host and guest for this event",
            Self::Sampling => "the PMU can count this event but not sample it",
            Self::StackDepth => "the requested call chain is deeper than kernel.perf_event_max_stack",
            Self::Clock => "the kernel does not support this clock for timestamps",
            Self::Inherit => "the kernel does not support inheritance for this combination",
            Self::InheritThread => {
                "this kernel cannot follow new threads without also following new processes"
            }
            Self::Exclusive => "the PMU does not support exclusive groups",
            Self::LateConfig => "the PMU does not support this config3 or config4",
            Self::LateFlags => "this kernel does not support one of the flags in use",
        }
    }

    pub(super) fn remedy(self) -> Hint {
        match self {
            Self::Precise => "use one p less, or P for the highest available level".into(),
            Self::BranchStack => Hint::ChainsWithoutBranches,
            Self::Levels => "omit the modifiers u, k and h".into(),
            Self::Guest => "omit the modifiers G and H".into(),
            Self::Sampling => Hint::CountIt,
            Self::StackDepth => "request fewer frames, or raise kernel.perf_event_max_stack".into(),
            Self::Clock => Hint::OtherClock,
            Self::Inherit => Hint::DoNotInherit,
            Self::InheritThread => Hint::FollowProcesses,
            Self::Exclusive => "omit the modifier e".into(),
            Self::LateConfig => "omit config3, config4 and the terms that use them".into(),
            Self::LateFlags => {
                "omit text_poke, inherit_thread, remove_on_exec and sigtrap, or use a newer kernel".into()
            }
        }
    }
}

/// Index of the first driver-specific word (`config3`, `config4`); these words are the latest additions to
/// the attr.
const CONFIG3: usize = 16;

/// Finds the feature whose removal makes `opens` accept the request. If no single feature is the cause, tries
/// pairs and returns the wider feature of the pair. For example, a PMU that cannot sample may not support
/// privilege levels either.
pub(super) fn refused_feature(attr: &Attr, mut opens: impl FnMut(&Attr) -> bool) -> Option<OmittableFeature> {
    let single = OmittableFeature::ALL
        .into_iter()
        .find(|one| one.left_out(attr).is_some_and(|without| opens(&without)));
    single.or_else(|| {
        OmittableFeature::ALL.into_iter().rev().find(|wide| {
            let Some(without) = wide.left_out(attr) else { return false };
            let mut both = OmittableFeature::ALL.into_iter().filter_map(|other| other.left_out(&without));
            both.any(|without| opens(&without))
        })
    })
}

/// Returns the contradiction that makes the kernel reject the request on every PMU, and a remedy. Returns
/// `None` if the request contains no contradiction. Source: `perf_copy_attr` and `perf_event_alloc` in
/// `kernel/events/core.c`.
pub(super) fn contradiction(attr: &Attr) -> Option<(String, Hint)> {
    const OUT: &str = "omit these bits of attr5";
    let last = Flag::ALL.iter().map(|&flag| flag as u32).max().unwrap_or_default();
    let unknown = attr.word(FLAGS).unwrap_or_default() >> (last + 1);
    let has = |flag| attr.get(flag);
    let (cause, remedy) = if has(Flag::RemoveOnExec) && has(Flag::EnableOnExec) {
        let cause = "remove_on_exec would remove the event at the exec that should start it";
        (cause.to_owned(), Hint::RunningProcessOrKeep)
    } else if has(Flag::Sigtrap) && !has(Flag::RemoveOnExec) {
        let cause = "sigtrap requires remove_on_exec: a new program would not expect the signal";
        (cause.to_owned(), Hint::RunningProcessRemoved)
    } else if has(Flag::InheritThread) && !has(Flag::Inherit) {
        ("inherit_thread requires inherit".to_owned(), Hint::InheritThreads)
    } else if unknown != 0 {
        (format!("this kernel does not support bits {:#x} of attr5", unknown << (last + 1)), OUT.into())
    } else if let Some((field, able)) = of_a_trace(attr) {
        let cause = format!("{field} requires a trace event as the group leader, {able}");
        (cause, Hint::GroupWithTrace)
    } else {
        return None;
    };
    Some((cause, remedy))
}

/// Returns an attribute of the request that requires an AUX trace, and a further requirement of that
/// attribute.
fn of_a_trace(attr: &Attr) -> Option<(String, &'static str)> {
    match (attr.aux_action(), attr.aux_sample_size()) {
        (0, 0) if attr.get(Flag::AuxOutput) => {
            Some(("aux_output".to_owned(), "and the event's own PMU must be able to write to the trace"))
        }
        (0, 0) => None,
        (0, size) => {
            Some((format!("aux_sample_size {size}"), "from a PMU whose trace can be read during tracing"))
        }
        (action, _) => Some((
            format!("aux_action {action:#x}"),
            "from a PMU that can pause tracing (Linux 6.13 or newer)",
        )),
    }
}

/// Index of the word that holds the flag bits.
const FLAGS: usize = 5;
