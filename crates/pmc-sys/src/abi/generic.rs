//! Events that have the same name on all machines: the kernel's generic hardware, software and cache events.
//!
//! Translates a name to the type and config of `perf_event_open(2)`, and back. Does not check whether the
//! machine supports an event; `counter` does.

use super::attr::{Attr, kind};

/// A generic hardware or software event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenericEvent {
    /// `attr.type`: [`kind::HARDWARE`] or [`kind::SOFTWARE`].
    pub kind: u32,
    /// `attr.config`.
    pub config: u64,
    /// The event's names. `pmc list` shows the first one.
    pub names: &'static [&'static str],
    /// One-line description of what the event counts.
    pub text: &'static str,
}

const fn hardware(config: u64, names: &'static [&'static str], text: &'static str) -> GenericEvent {
    GenericEvent { kind: kind::HARDWARE, config, names, text }
}

const fn software(config: u64, names: &'static [&'static str], text: &'static str) -> GenericEvent {
    GenericEvent { kind: kind::SOFTWARE, config, names, text }
}

/// `cycles` (`PERF_COUNT_HW_CPU_CYCLES`).
pub const CPU_CYCLES: u64 = 0;
/// `cpu-clock` (`PERF_COUNT_SW_CPU_CLOCK`).
pub const CPU_CLOCK: u64 = 0;
/// `task-clock` (`PERF_COUNT_SW_TASK_CLOCK`).
pub const TASK_CLOCK: u64 = 1;
/// `page-faults` (`PERF_COUNT_SW_PAGE_FAULTS`).
pub const PAGE_FAULTS: u64 = 2;
/// `context-switches` (`PERF_COUNT_SW_CONTEXT_SWITCHES`).
pub const CONTEXT_SWITCHES: u64 = 3;
/// `cpu-migrations` (`PERF_COUNT_SW_CPU_MIGRATIONS`).
pub const CPU_MIGRATIONS: u64 = 4;
/// `minor-faults` (`PERF_COUNT_SW_PAGE_FAULTS_MIN`).
pub const MINOR_FAULTS: u64 = 5;
/// `major-faults` (`PERF_COUNT_SW_PAGE_FAULTS_MAJ`).
pub const MAJOR_FAULTS: u64 = 6;
/// `dummy` (`PERF_COUNT_SW_DUMMY`).
pub const DUMMY: u64 = 9;
/// `bpf-output` (`PERF_COUNT_SW_BPF_OUTPUT`).
pub const BPF_OUTPUT: u64 = 10;
/// `cgroup-switches` (`PERF_COUNT_SW_CGROUP_SWITCHES`).
pub const CGROUP_SWITCHES: u64 = 11;

/// Whether the event is one of the kernel's clocks, `cpu-clock` or `task-clock`. Their timers need a period.
/// When the event is opened with a frequency, the kernel converts it to a period, which each sample contains
/// (`perf_swevent_init_hrtimer`).
pub fn is_clock(attr: &Attr) -> bool {
    attr.kind() == kind::SOFTWARE && [CPU_CLOCK, TASK_CLOCK].contains(&attr.config())
}

/// All generic events except the cache events, in numerical order (`enum perf_hw_id`, `enum perf_sw_ids`).
pub const GENERIC: &[GenericEvent] = &[
    hardware(CPU_CYCLES, &["cpu-cycles", "cycles"], "unhalted cycles, at the CPU's current frequency"),
    hardware(1, &["instructions"], "instructions retired"),
    hardware(2, &["cache-references"], "usually accesses to the last-level cache"),
    hardware(3, &["cache-misses"], "usually accesses that missed the last-level cache"),
    hardware(4, &["branch-instructions", "branches"], "branch instructions retired"),
    hardware(5, &["branch-misses"], "branches with a mispredicted target or direction"),
    hardware(6, &["bus-cycles"], "bus cycles"),
    hardware(
        7,
        &["stalled-cycles-frontend", "idle-cycles-frontend"],
        "cycles in which the front end supplied no instructions",
    ),
    hardware(
        8,
        &["stalled-cycles-backend", "idle-cycles-backend"],
        "cycles in which no instruction retired because resources were busy",
    ),
    hardware(9, &["ref-cycles"], "unhalted cycles, at a constant frequency"),
    software(CPU_CLOCK, &["cpu-clock"], "CPU time measured by a high-resolution timer, in nanoseconds"),
    software(TASK_CLOCK, &["task-clock"], "time the task ran, nanoseconds"),
    software(PAGE_FAULTS, &["page-faults", "faults"], "page faults"),
    software(CONTEXT_SWITCHES, &["context-switches", "cs"], "switches to another task"),
    software(CPU_MIGRATIONS, &["cpu-migrations", "migrations"], "task migrations to another CPU"),
    software(MINOR_FAULTS, &["minor-faults"], "page faults handled without disk I/O"),
    software(MAJOR_FAULTS, &["major-faults"], "page faults that required disk access"),
    software(7, &["alignment-faults"], "unaligned accesses that the kernel fixed up"),
    software(8, &["emulation-faults"], "instructions that the kernel emulated"),
    software(DUMMY, &["dummy"], "counts nothing; carries side-band records"),
    software(BPF_OUTPUT, &["bpf-output"], "data that BPF programs write"),
    software(CGROUP_SWITCHES, &["cgroup-switches"], "switches to a task in another cgroup"),
];

/// Returns the generic event with this name.
pub fn find(name: &str) -> Option<&'static GenericEvent> {
    GENERIC.iter().find(|generic| generic.names.contains(&name))
}

/// Returns perf's name for the generic hardware or software event of this type and config. Ignores the upper
/// half of a hardware event's config, which selects a PMU.
pub fn name_of(kind: u32, config: u64) -> Option<&'static str> {
    let config = if kind == kind::HARDWARE { config & 0xffff_ffff } else { config };
    let event = GENERIC.iter().find(|event| event.kind == kind && event.config == config)?;
    // perf prints the shorter of these names. The other aliases are accepted as input but never printed.
    let is_short = |name: &&&str| matches!(**name, "cycles" | "branches");
    event.names.iter().find(is_short).or(event.names.first()).copied()
}

/// One part of a cache event's name, with all its spellings.
struct CacheWord {
    names: &'static [&'static str],
    text: &'static str,
}

/// Caches by number (`enum perf_hw_cache_id`), each with the operations that it supports.
const CACHES: [(CacheWord, &[u64]); 7] = [
    (
        CacheWord { names: &["L1-dcache", "l1-d", "l1d", "L1-data"], text: "level 1 data cache" },
        &[READ, WRITE, PREFETCH],
    ),
    (
        CacheWord {
            names: &["L1-icache", "l1-i", "l1i", "L1-instruction"],
            text: "level 1 instruction cache",
        },
        &[READ, PREFETCH],
    ),
    (CacheWord { names: &["LLC", "L2"], text: "last-level cache" }, &[READ, WRITE, PREFETCH]),
    (CacheWord { names: &["dTLB", "d-tlb", "Data-TLB"], text: "data TLB" }, &[READ, WRITE, PREFETCH]),
    (CacheWord { names: &["iTLB", "i-tlb", "Instruction-TLB"], text: "instruction TLB" }, &[READ]),
    (CacheWord { names: &["branch", "branches", "bpu", "btb", "bpc"], text: "branch predictor" }, &[READ]),
    (CacheWord { names: &["node"], text: "memory on the local NUMA node" }, &[READ, WRITE, PREFETCH]),
];

const READ: u64 = 0;
const WRITE: u64 = 1;
const PREFETCH: u64 = 2;

/// Operations by number (`enum perf_hw_cache_op_id`).
const OPERATIONS: [CacheWord; 3] = [
    CacheWord { names: &["load", "loads", "read"], text: "loads" },
    CacheWord { names: &["store", "stores", "write"], text: "stores" },
    CacheWord {
        names: &["prefetch", "prefetches", "speculative-read", "speculative-load"],
        text: "prefetches",
    },
];

/// Results by number (`enum perf_hw_cache_op_result_id`).
const RESULTS: [CacheWord; 2] = [
    CacheWord { names: &["refs", "Reference", "ops", "access"], text: "accesses" },
    CacheWord { names: &["misses", "miss"], text: "misses" },
];

/// Why a name is not a cache event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCacheEvent {
    /// The name does not start with the name of a cache.
    OtherName,
    /// A later part of the name is neither an operation nor a result.
    UnknownPart,
    /// The cache does not support the operation, such as writes to an instruction cache.
    Impossible,
}

/// Returns the config of a cache event. Its name consists of a cache, optionally followed by an operation and
/// a result in either order (`LLC`, `LLC-misses`, `l1d-load-misses`). The defaults are loads and accesses.
/// Case is ignored.
///
/// # Errors
/// Returns the reason why the name is not a cache event.
pub fn cache(name: &str) -> Result<u64, NoCacheEvent> {
    let lower = name.to_lowercase();
    // The longest spelling wins: `branches` before `branch`.
    let (number, spelling, (_, allowed)) = CACHES
        .iter()
        .zip(0u64..)
        .flat_map(|(cache, number)| {
            cache.0.names.iter().map(move |name| (number, name.to_lowercase(), cache))
        })
        .filter(|(_, spelling, _)| {
            lower.strip_prefix(spelling.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
        .max_by_key(|(_, spelling, _)| spelling.len())
        .ok_or(NoCacheEvent::OtherName)?;
    let (mut operation, mut result) = (None, None);
    let mut rest = lower[spelling.len()..].strip_prefix('-');
    while let Some(part) = rest {
        let mut known = None;
        for (parts, into) in [(OPERATIONS.as_slice(), &mut operation), (RESULTS.as_slice(), &mut result)] {
            if known.is_none() && into.is_none() {
                known = longest(parts, part).map(|(value, length)| {
                    *into = Some(value);
                    length
                });
            }
        }
        let length = known.ok_or(NoCacheEvent::UnknownPart)?;
        rest = part[length..].strip_prefix('-');
    }
    let (operation, result) = (operation.unwrap_or(READ), result.unwrap_or(0));
    if !allowed.contains(&operation) {
        return Err(NoCacheEvent::Impossible);
    }
    Ok(number | operation << 8 | result << 16)
}

/// Finds the part with which `text` begins. Returns its number and the length of the matching spelling.
fn longest(parts: &[CacheWord], text: &str) -> Option<(u64, usize)> {
    parts
        .iter()
        .zip(0u64..)
        .flat_map(|(part, value)| part.names.iter().map(move |name| (value, name.to_lowercase())))
        .filter(|(_, name)| {
            text.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
        .map(|(value, name)| (value, name.len()))
        .max_by_key(|(_, length)| *length)
}

/// Returns every cache event: its usual name (`L1-dcache-load-misses`), its config and a one-line
/// description.
pub fn cache_events() -> impl Iterator<Item = (String, u64, String)> {
    CACHES.iter().zip(0u64..).flat_map(|((cache, allowed), number)| {
        allowed.iter().flat_map(move |&operation| {
            [0u64, 1].into_iter().map(move |result| {
                let words = &OPERATIONS[operation as usize];
                // perf's usual names are `-loads` and `-load-misses`.
                let name = match result {
                    0 => format!("{}-{}", cache.names[0], words.names[1]),
                    _ => format!("{}-{}-{}", cache.names[0], words.names[0], RESULTS[1].names[0]),
                };
                let text = match result {
                    0 => format!("{} of the {}", words.text, cache.text),
                    _ => format!("{} that missed the {}", words.text, cache.text),
                };
                (name, number | operation << 8 | result << 16, text)
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_names_parse_in_all_spellings() {
        for (name, config) in [
            ("L1-dcache-loads", 0),
            ("L1-dcache-load-misses", 0x10000),
            ("l1-d-read-miss", 0x10000),
            ("L1-data-misses-load", 0x10000),
            ("LLC", 2),
            ("LLC-misses", 0x10002),
            ("L2-store-refs", 0x102),
            ("dTLB-prefetch-misses", 0x10203),
            ("iTLB", 4),
            ("branch-loads", 5),
            ("branches-load-misses", 0x10005),
            ("node-speculative-read", 0x206),
            ("l1i-speculative-load-miss", 0x10201),
        ] {
            assert_eq!(cache(name), Ok(config), "{name}");
        }
        assert_eq!(cache("L1-icache-stores"), Err(NoCacheEvent::Impossible));
        assert_eq!(cache("L1-dcache-lods"), Err(NoCacheEvent::UnknownPart));
        assert_eq!(cache("LLC-loads-loads"), Err(NoCacheEvent::UnknownPart));
        assert_eq!(cache("cycles"), Err(NoCacheEvent::OtherName));
    }

    #[test]
    fn numbers_match_the_kernel() {
        use perf_event_open_sys::bindings as b;
        for (name, kind, config) in [
            ("cycles", kind::HARDWARE, b::PERF_COUNT_HW_CPU_CYCLES),
            ("instructions", kind::HARDWARE, b::PERF_COUNT_HW_INSTRUCTIONS),
            ("cache-references", kind::HARDWARE, b::PERF_COUNT_HW_CACHE_REFERENCES),
            ("cache-misses", kind::HARDWARE, b::PERF_COUNT_HW_CACHE_MISSES),
            ("branches", kind::HARDWARE, b::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
            ("branch-misses", kind::HARDWARE, b::PERF_COUNT_HW_BRANCH_MISSES),
            ("bus-cycles", kind::HARDWARE, b::PERF_COUNT_HW_BUS_CYCLES),
            ("stalled-cycles-frontend", kind::HARDWARE, b::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
            ("stalled-cycles-backend", kind::HARDWARE, b::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
            ("ref-cycles", kind::HARDWARE, b::PERF_COUNT_HW_REF_CPU_CYCLES),
            ("cpu-clock", kind::SOFTWARE, b::PERF_COUNT_SW_CPU_CLOCK),
            ("task-clock", kind::SOFTWARE, b::PERF_COUNT_SW_TASK_CLOCK),
            ("page-faults", kind::SOFTWARE, b::PERF_COUNT_SW_PAGE_FAULTS),
            ("context-switches", kind::SOFTWARE, b::PERF_COUNT_SW_CONTEXT_SWITCHES),
            ("cpu-migrations", kind::SOFTWARE, b::PERF_COUNT_SW_CPU_MIGRATIONS),
            ("minor-faults", kind::SOFTWARE, b::PERF_COUNT_SW_PAGE_FAULTS_MIN),
            ("major-faults", kind::SOFTWARE, b::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
            ("alignment-faults", kind::SOFTWARE, b::PERF_COUNT_SW_ALIGNMENT_FAULTS),
            ("emulation-faults", kind::SOFTWARE, b::PERF_COUNT_SW_EMULATION_FAULTS),
            ("dummy", kind::SOFTWARE, b::PERF_COUNT_SW_DUMMY),
            ("bpf-output", kind::SOFTWARE, b::PERF_COUNT_SW_BPF_OUTPUT),
            ("cgroup-switches", kind::SOFTWARE, b::PERF_COUNT_SW_CGROUP_SWITCHES),
        ] {
            assert_eq!(name_of(kind, config.into()), Some(name));
            assert_eq!(find(name).map(|event| (event.kind, event.config)), Some((kind, config.into())));
        }
        assert_eq!(GENERIC.len() as u32, b::PERF_COUNT_HW_MAX + b::PERF_COUNT_SW_MAX);
        let cache =
            |cache: u32, operation: u32, result: u32| Ok(u64::from(cache | operation << 8 | result << 16));
        let (read, miss) = (b::PERF_COUNT_HW_CACHE_OP_READ, b::PERF_COUNT_HW_CACHE_RESULT_MISS);
        for (name, number) in [
            ("L1-dcache", b::PERF_COUNT_HW_CACHE_L1D),
            ("L1-icache", b::PERF_COUNT_HW_CACHE_L1I),
            ("LLC", b::PERF_COUNT_HW_CACHE_LL),
            ("dTLB", b::PERF_COUNT_HW_CACHE_DTLB),
            ("iTLB", b::PERF_COUNT_HW_CACHE_ITLB),
            ("branch", b::PERF_COUNT_HW_CACHE_BPU),
            ("node", b::PERF_COUNT_HW_CACHE_NODE),
        ] {
            assert_eq!(super::cache(&format!("{name}-load-misses")), cache(number, read, miss), "{name}");
        }
        let access = b::PERF_COUNT_HW_CACHE_RESULT_ACCESS;
        let store = cache(b::PERF_COUNT_HW_CACHE_LL, b::PERF_COUNT_HW_CACHE_OP_WRITE, access);
        assert_eq!(super::cache("LLC-stores"), store);
        let prefetch = cache(b::PERF_COUNT_HW_CACHE_LL, b::PERF_COUNT_HW_CACHE_OP_PREFETCH, access);
        assert_eq!(super::cache("LLC-prefetches"), prefetch);
    }

    #[test]
    fn generic_names_have_their_usual_meaning() {
        let mut seen = 0;
        for (name, config, _) in cache_events() {
            assert_eq!(cache(&name), Ok(config), "{name}");
            seen += 1;
        }
        assert_eq!(seen, 2 * (3 + 2 + 3 + 3 + 1 + 1 + 3));
    }
}
