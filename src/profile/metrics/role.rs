//! Which roles perf's generic names stand for in metrics, and which names an expression takes without quotes.
//!
//! Receives names; decides nothing about values.

use crate::abi::generic;
use crate::profile::counts::Role;

/// The roles that perf's generic names stand for.
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

/// The role of a generic event name.
pub(super) fn role_of(name: &str) -> Option<Role> {
    ROLES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, role)| *role)
}

/// Generic names that contain `-`: an expression takes them as names without quotes.
pub(super) fn hyphenated() -> impl Iterator<Item = &'static str> {
    let generic = generic::GENERIC.iter().flat_map(|event| event.names.iter().copied());
    ROLES.iter().map(|(name, _)| *name).chain(generic).filter(|name| name.contains('-'))
}
