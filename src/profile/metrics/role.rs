//! Maps perf's generic names to roles in metrics, and lists the names that an expression accepts without
//! quotes.
//!
//! Receives names; does not handle values.

use crate::abi::generic;
use crate::profile::counts::Role;

/// Roles of perf's generic names.
const ROLES: &[(&str, Role)] = &[
    ("task-clock", Role::TaskClock),
    ("cpu-clock", Role::CpuClock),
    ("cycles", Role::Cycles),
    ("cpu-cycles", Role::Cycles),
    ("ref-cycles", Role::RefCycles),
    ("bus-cycles", Role::BusCycles),
    ("instructions", Role::Instructions),
    ("branches", Role::Branches),
    ("branch-instructions", Role::Branches),
    ("branch-misses", Role::BranchMisses),
    ("cache-references", Role::CacheReferences),
    ("cache-misses", Role::CacheMisses),
    ("stalled-cycles-frontend", Role::StalledFrontend),
    ("idle-cycles-frontend", Role::StalledFrontend),
    ("stalled-cycles-backend", Role::StalledBackend),
    ("idle-cycles-backend", Role::StalledBackend),
    ("L1-dcache-loads", Role::L1dLoads),
    ("L1-dcache-load-misses", Role::L1dLoadMisses),
    ("L1-icache-loads", Role::L1iLoads),
    ("L1-icache-load-misses", Role::L1iLoadMisses),
    ("LLC-loads", Role::LlcLoads),
    ("LLC-load-misses", Role::LlcLoadMisses),
    ("dTLB-loads", Role::DtlbLoads),
    ("dTLB-load-misses", Role::DtlbLoadMisses),
    ("iTLB-loads", Role::ItlbLoads),
    ("iTLB-load-misses", Role::ItlbLoadMisses),
];

/// Returns the role of a generic event name.
pub(super) fn role_of(name: &str) -> Option<Role> {
    ROLES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, role)| *role)
}

/// Returns the generic names that contain `-`. An expression accepts them without quotes.
pub(super) fn hyphenated() -> impl Iterator<Item = &'static str> {
    let generic = generic::GENERIC.iter().flat_map(|event| event.names.iter().copied());
    ROLES.iter().map(|(name, _)| *name).chain(generic).filter(|name| name.contains('-'))
}
