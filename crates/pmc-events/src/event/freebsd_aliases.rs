//! Event names of FreeBSD's `pmc_allocate(3)`, and their equivalents on Linux.
//!
//! Takes a word that no other source resolves; returns event text, which `resolve` parses in turn. Case is
//! ignored, and `.`, `_`, `-` and space are equivalent. If Linux has no exact equivalent, the nearest event
//! is used, as documented in `docs/event-syntax.md`.

use pmc_sys::host::Host;

/// A FreeBSD name and its Linux equivalent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alias {
    /// The name as in FreeBSD's manual.
    pub(super) name: &'static str,
    /// Event text.
    pub(super) means: &'static str,
    /// Filter expression. Only matching records are counted.
    pub(super) filter: Option<&'static str>,
    /// Nanoseconds per tick of a FreeBSD clock; its counts are shown in ticks.
    pub(super) tick_ns: Option<u64>,
}

const fn alias(name: &'static str, means: &'static str) -> Alias {
    Alias { name, means, filter: None, tick_ns: None }
}

const fn filtered(name: &'static str, means: &'static str, filter: &'static str) -> Alias {
    Alias { name, means, filter: Some(filter), tick_ns: None }
}

/// A FreeBSD clock, counted in ticks.
const fn ticks(name: &'static str, tick_ns: u64) -> Alias {
    Alias { name, means: "cpu-clock", filter: None, tick_ns: Some(tick_ns) }
}

/// All names except `interrupts`, which depends on the processor.
pub(super) const ALIASES: &[Alias] = &[
    alias("unhalted-cycles", "cpu-cycles"),
    alias("unhalted-core-cycles", "cpu-cycles"),
    alias("unhalted-reference-cycles", "ref-cycles"),
    alias("instruction-retired", "instructions"),
    alias("branch-mispredicts", "branch-misses"),
    alias("branch-instruction-retired", "branch-instructions"),
    alias("branch-misses-retired", "branch-misses"),
    alias("ic-misses", "L1-icache-load-misses"),
    alias("dc-misses", "L1-dcache-load-misses"),
    alias("LLC-reference", "cache-references"),
    alias("LLC-misses", "cache-misses"),
    alias("resource-stall", "stalled-cycles-backend"),
    alias("iaf-instr-retired.any", "instructions"),
    alias("iaf-cpu-clk-unhalted.core", "cpu-cycles"),
    alias("iaf-cpu-clk-unhalted.ref", "ref-cycles"),
    alias("k8-bu-cpu-clk-unhalted", "cpu-cycles"),
    alias("k8-fr-retired-x86-instructions", "instructions"),
    alias("k8-ic-miss", "L1-icache-load-misses"),
    alias("k8-dc-miss", "L1-dcache-load-misses"),
    alias("k7-retired-instructions", "instructions"),
    alias("k7-ic-misses", "L1-icache-load-misses"),
    alias("k7-dc-misses", "L1-dcache-load-misses"),
    alias("p6-itlb-miss", "iTLB-load-misses"),
    // NetBSD's pmc(1).
    alias("ins-retired", "instructions"),
    alias("branch-retired", "branch-instructions"),
    alias("branch-miss-retired", "branch-misses"),
    alias("l1cache-miss", "L1-dcache-load-misses"),
    alias("itlb-misses", "iTLB-load-misses"),
    alias("int-hw", "irq:irq_handler_entry"),
    alias("tsc", "msr/tsc/"),
    alias("tsc-tsc", "msr/tsc/"),
    alias("perf-mperf", "msr/mperf/"),
    alias("perf-aperf", "msr/aperf/"),
    // FreeBSD's usual rates: kern.hz, stathz and profhz.
    ticks("soft-clock.hard", 1_000_000_000 / 1000),
    ticks("soft-clock.stat", 1_000_000_000 / 127),
    ticks("soft-clock.prof", 1_000_000_000 / 8128),
    alias("soft-lock.failed", "lock:contention_begin"),
    alias("soft-page_fault.all", "page-faults"),
    filtered("soft-page_fault.read", "exceptions:page_fault_user", "!(error_code & 2)"),
    filtered("soft-page_fault.write", "exceptions:page_fault_user", "error_code & 2"),
];

/// All names with their equivalents on this machine.
pub(super) fn names(host: &Host) -> impl Iterator<Item = (&'static str, &'static str)> {
    ALIASES
        .iter()
        .map(|alias| (alias.name, alias.means))
        .chain(std::iter::once(("interrupts", interrupts(host))))
}

/// The equivalent of this name on this machine.
pub(super) fn find(name: &str, host: &Host) -> Option<Alias> {
    let wanted = normal(name);
    // The class is optional: `CLOCK.HARD` is short for `SOFT-CLOCK.HARD`.
    let found = |wanted: &str| ALIASES.iter().find(|alias| normal(alias.name) == wanted);
    if let Some(alias) = found(&wanted).or_else(|| found(&format!("soft-{wanted}"))) {
        return Some(*alias);
    }
    (wanted == "interrupts").then(|| Alias {
        name: "interrupts",
        means: interrupts(host),
        filter: None,
        tick_ns: None,
    })
}

/// FreeBSD's counter classes, by the prefix of a name.
const CLASSES: [(&str, &str); 10] = [
    ("iap", "Intel's programmable counters"),
    ("iaf", "Intel's fixed counters"),
    ("ucp", "Intel's uncore counters"),
    ("ucf", "Intel's fixed uncore counter"),
    ("p6", "Intel's Pentium Pro to III"),
    ("k7", "AMD's K7"),
    ("k8", "AMD's K8"),
    ("armv7", "ARMv7"),
    ("armv8", "ARMv8"),
    ("soft", "FreeBSD's kernel"),
];

/// Splits a name into the description of its class and the rest.
pub(super) fn class(name: &str) -> Option<(&'static str, &str)> {
    let (prefix, rest) = name.split_once('-')?;
    let class = CLASSES.iter().find(|(class, _)| class.eq_ignore_ascii_case(prefix))?;
    Some((class.1, rest)).filter(|(_, rest)| !rest.is_empty())
}

/// Whether this is a FreeBSD name in upper case, as in FreeBSD's tables.
pub(super) fn in_capitals(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_lowercase())
        && ALIASES.iter().any(|alias| normal(alias.name) == normal(name))
}

/// The event that counts interrupts: a CPU-specific code, or device interrupts if there are no counters.
fn interrupts(host: &Host) -> &'static str {
    if host.pmu("cpu").is_none() {
        return "irq:irq_handler_entry";
    }
    match vendor(host).as_deref() {
        Some("GenuineIntel") => "cpu/event=0xcb,umask=0x1/",
        Some("AuthenticAMD") => "cpu/event=0x2c/",
        _ => "irq:irq_handler_entry",
    }
}

/// The CPU vendor, from the first lines of `/proc/cpuinfo` (the file is long on large machines).
fn vendor(host: &Host) -> Option<String> {
    use std::io::{BufRead, BufReader};
    let file = std::fs::File::open(host.path("/proc/cpuinfo")).ok()?;
    let line = BufReader::new(file)
        .lines()
        .take(10)
        .map_while(Result::ok)
        .find(|line| line.starts_with("vendor_id"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn normal(name: &str) -> String {
    name.chars().map(|c| if matches!(c, '.' | '_' | ' ') { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_punctuation_are_ignored() {
        let host = Host::rooted("/nonexistent");
        for name in ["SOFT-CLOCK.HARD", "soft_clock hard", "CLOCK.HARD"] {
            assert_eq!(find(name, &host).unwrap().tick_ns, Some(1_000_000), "{name}");
        }
        assert_eq!(find("Unhalted.Cycles", &host).unwrap().means, "cpu-cycles");
        assert!(find("cycels", &host).is_none());
    }
}
