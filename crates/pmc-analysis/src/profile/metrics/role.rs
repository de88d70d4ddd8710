//! Maps perf's generic event names to roles in metrics. Lists the names that an expression accepts without
//! quotes.
//!
//! Handles only names, not values.

use crate::profile::counts::EventRole;
use pmc_sys::abi::generic;

/// Roles of perf's generic event names.
const ROLES: &[(&str, EventRole)] = &[
    ("task-clock", EventRole::TaskClock),
    ("cpu-clock", EventRole::CpuClock),
    ("cycles", EventRole::Cycles),
    ("cpu-cycles", EventRole::Cycles),
    ("ref-cycles", EventRole::RefCycles),
    ("bus-cycles", EventRole::BusCycles),
    ("instructions", EventRole::Instructions),
    ("branches", EventRole::Branches),
    ("branch-instructions", EventRole::Branches),
    ("branch-misses", EventRole::BranchMisses),
    ("cache-references", EventRole::CacheReferences),
    ("cache-misses", EventRole::CacheMisses),
    ("stalled-cycles-frontend", EventRole::StalledFrontend),
    ("idle-cycles-frontend", EventRole::StalledFrontend),
    ("stalled-cycles-backend", EventRole::StalledBackend),
    ("idle-cycles-backend", EventRole::StalledBackend),
    ("L1-dcache-loads", EventRole::L1dLoads),
    ("L1-dcache-load-misses", EventRole::L1dLoadMisses),
    ("L1-icache-loads", EventRole::L1iLoads),
    ("L1-icache-load-misses", EventRole::L1iLoadMisses),
    ("LLC-loads", EventRole::LlcLoads),
    ("LLC-load-misses", EventRole::LlcLoadMisses),
    ("dTLB-loads", EventRole::DtlbLoads),
    ("dTLB-load-misses", EventRole::DtlbLoadMisses),
    ("iTLB-loads", EventRole::ItlbLoads),
    ("iTLB-load-misses", EventRole::ItlbLoadMisses),
];

/// Returns the role of a generic event name.
pub(super) fn role_of(name: &str) -> Option<EventRole> {
    ROLES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, role)| *role)
}

/// Returns the generic names that contain `-`. An expression accepts them without quotes.
pub(super) fn hyphenated() -> impl Iterator<Item = &'static str> {
    let generic = generic::GENERIC.iter().flat_map(|event| event.names.iter().copied());
    ROLES.iter().map(|(name, _)| *name).chain(generic).filter(|name| name.contains('-'))
}
