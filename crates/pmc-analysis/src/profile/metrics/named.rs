//! pmc's named metrics (`-M`), with their expressions.
//!
//! Provides [`MetricDefinition`]s. All expressions use the language of [`super::grammar`], so users can
//! define the same metrics with `--metric`.

use super::library::MetricDefinition;

macro_rules! named {
    ($($group:ident $name:literal $(| $alias:literal)* [$unit:literal] = $expression:literal : $help:literal;)+) => {
        &[$(MetricDefinition {
            name: $name, aliases: &[$($alias),*], groups: stringify!($group), scale: $unit, expression: $expression,
            help: $help, pmu: "", level: None, parent: "", threshold: "", locate: "", raw: false,
        }),+]
    };
}

/// All named metrics, in the order of `pmc list`.
#[rustfmt::skip]
pub const NAMED: &[MetricDefinition<'static>] = named! {
    Summary "ipc" | "insn_per_cycle" [""] = "instructions / cycles": "instructions per cycle";
    Summary "cpi" | "cycles_per_insn" [""] = "cycles / instructions": "cycles per instruction";
    Summary "ghz" | "frequency" | "cycles_frequency" ["GHz"] = "cycles / task-clock / 1e6": "clock rate while running";
    Summary "cpus_utilized" | "cpus" ["CPUs"] = "task-clock / 1e3 / duration_time": "average number of busy CPUs";
    Branches "branch_miss_rate" ["%"] = "100 * branch-misses / branches": "mispredicted branches";
    Branches "branch_rate" | "branch_frequency" ["M/sec"] = "branches / task-clock / 1e3": "branches per second of CPU time";
    Branches "branch_mpki" [""] = "1e3 * branch-misses / instructions": "branch misses per 1000 instructions";
    CacheMisses "cache_miss_rate" ["%"] = "100 * cache-misses / cache-references": "last-level accesses that missed";
    CacheMisses "cache_mpki" [""] = "1e3 * cache-misses / instructions": "cache misses per 1000 instructions";
    CacheMisses "l1d_miss_rate" ["%"] = "100 * L1-dcache-load-misses / L1-dcache-loads": "loads that missed the L1 data cache";
    CacheMisses "llc_miss_rate" ["%"] = "100 * LLC-load-misses / LLC-loads": "last-level loads that missed";
    MemoryTLB "dtlb_miss_rate" ["%"] = "100 * dTLB-load-misses / dTLB-loads": "loads that missed the data TLB";
    MemoryTLB "itlb_miss_rate" ["%"] = "100 * iTLB-load-misses / iTLB-loads": "fetches that missed the instruction TLB";
    Pipeline "stalled_per_insn" | "stalled_cycles_per_instruction" [""] = "max(stalled-cycles-frontend, stalled-cycles-backend) / instructions": "stalled cycles per instruction";
    Pipeline "frontend_idle" | "frontend_cycles_idle" ["%"] = "100 * stalled-cycles-frontend / cycles": "cycles stalled by the front end";
    Pipeline "backend_idle" | "backend_cycles_idle" ["%"] = "100 * stalled-cycles-backend / cycles": "cycles stalled by the back end";
    OS "page_fault_rate" | "page_faults_per_second" ["/sec"] = "1e3 * page-faults / task-clock": "page faults per second of CPU time";
    OS "context_switch_rate" | "cs_per_second" ["/sec"] = "1e3 * context-switches / task-clock": "context switches per second of CPU time";
    OS "migration_rate" | "migrations_per_second" ["/sec"] = "1e3 * cpu-migrations / task-clock": "CPU migrations per second of CPU time";
};

/// Returns all metrics in this group, ignoring case. Returns no metrics if the group does not exist.
pub fn of_group(group: &str) -> impl Iterator<Item = &'static MetricDefinition<'static>> {
    NAMED.iter().filter(move |named| named.groups.eq_ignore_ascii_case(group))
}

#[cfg(test)]
mod tests {
    use super::super::library::{Binder, MetricLibrary};
    use super::super::literals::MetricEnvironment;
    use super::*;

    #[test]
    fn named_metrics_parse_and_are_unique() {
        let library = MetricLibrary::new(NAMED.iter().copied());
        let mut binder = Binder::new(&library, &MetricEnvironment::UNKNOWN);
        for named in library.definitions() {
            let formula = binder.formula(named).unwrap();
            assert!(!formula.operands().is_empty());
            for name in std::iter::once(&named.name).chain(named.aliases) {
                assert_eq!(library.named(name).collect::<Vec<_>>(), [named]);
            }
            // A word must not be both a metric and a group, nor both a metric and an event.
            assert!(library.named(named.groups).next().is_none() && of_group(named.groups).count() > 1);
            assert!(formula.operands().iter().all(|operand| library.named(&operand.name).next().is_none()));
        }
        assert_eq!(library.named("Insn-Per-Cycle").next().unwrap().name, "ipc");
        assert!(library.named("nonsense").next().is_none() && of_group("nonsense").next().is_none());
    }
}
