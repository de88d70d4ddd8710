//! Which part of a request the kernel objects to: the same request is tried without one feature after the
//! other.
//!
//! Receives a refused request and a closure that tries another one; hands on the feature without which the
//! kernel accepts. The errno of a refused attr does not say which of its bits is wrong; this does, and
//! nothing is guessed.

use crate::abi::attr::{Flag, WORDS};
use crate::abi::{Attr, sample_type};

/// A part of a request that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// `precise_ip`: `:p`, `:pp`, `:ppp`.
    Precise,
    /// The branch stack.
    BranchStack,
    /// `exclude_user`, `exclude_kernel`, `exclude_hv`, `exclude_idle`: `:u`, `:k` …
    Levels,
    /// `exclude_host`, `exclude_guest`: `:G`, `:H`.
    Guest,
    /// Samples at all.
    Sampling,
    /// The depth of the call chain.
    StackDepth,
    /// The clock of the time stamps.
    Clock,
    /// Inheritance by children.
    Inherit,
    /// `exclusive`: `:e`.
    Exclusive,
    /// Fields that came after the first kernels with perf events: `config3`, `config4`, flags of 5.13 and
    /// later.
    NewFields,
}

impl Feature {
    /// All, in the order in which they are tried: the narrowest first.
    pub const ALL: [Self; 10] = [
        Self::NewFields,
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

    /// The request without it; `None` if it does not have it.
    pub fn left_out(self, attr: &Attr) -> Option<Attr> {
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
                without.set(Flag::Inherit, false);
                without.set(Flag::InheritThread, false);
                without.set(Flag::InheritStat, false);
            }
            Self::Exclusive => without.set(Flag::Exclusive, false),
            Self::NewFields => {
                for word in FIRST_NEW_WORD..WORDS {
                    without.set_word(word, 0);
                }
                for flag in
                    [Flag::BuildId, Flag::InheritThread, Flag::RemoveOnExec, Flag::Sigtrap, Flag::TextPoke]
                {
                    without.set(flag, false);
                }
            }
        }
        (without != *attr).then_some(without)
    }

    /// What is the matter, given that the kernel takes the request without it.
    pub(super) fn cause(self) -> &'static str {
        match self {
            Self::Precise => "the PMU has no sampling of this precision for the event",
            Self::BranchStack => "the PMU records no such branches for the event",
            Self::Levels => "the PMU cannot tell the privilege levels apart for this event",
            Self::Guest => "the PMU cannot tell host and guest apart for this event",
            Self::Sampling => "the PMU can count this event but not sample it",
            Self::StackDepth => "the call chain asked for is deeper than kernel.perf_event_max_stack",
            Self::Clock => "the kernel cannot stamp samples with this clock",
            Self::Inherit => "the kernel cannot let children inherit this combination",
            Self::Exclusive => "the PMU cannot be had for one group alone",
            Self::NewFields => "this kernel is older than one of the fields in use",
        }
    }

    /// What to do about it.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Precise => "take one p less, or P for the highest level there is",
            Self::BranchStack => "use --call-graph fp or dwarf instead of branches",
            Self::Levels => "leave out the modifiers u, k and h",
            Self::Guest => "leave out the modifiers G and H",
            Self::Sampling => "count it with pmc stat, or sample cpu-clock",
            Self::StackDepth => "ask for fewer frames, or raise kernel.perf_event_max_stack",
            Self::Clock => "use --clockid monotonic or leave it out",
            Self::Inherit => "add --no-inherit",
            Self::Exclusive => "leave out the modifier e",
            Self::NewFields => {
                "leave out config3, config4 and the terms that use them, or take a newer kernel"
            }
        }
    }
}

/// `sig_data`: this and what follows came with Linux 5.13.
const FIRST_NEW_WORD: usize = 15;

/// The feature without which `opens` accepts the request; `None` if no single one decides.
pub(super) fn culprit(attr: &Attr, mut opens: impl FnMut(&Attr) -> bool) -> Option<Feature> {
    Feature::ALL.into_iter().find(|feature| feature.left_out(attr).is_some_and(|attr| opens(&attr)))
}
