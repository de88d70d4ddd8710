//! The metrics that have names (`-M`): what each needs and how it is computed.
//!
//! Receives a name; hands on the events to count and a [`Definition`]. Everything is written in the language
//! of [`super::expression`], so that a user's `--metric` can do the same.

use super::expression::{Definition, Expression};

/// A metric with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The name, lower case.
    pub name: &'static str,
    /// Other names it goes by.
    pub aliases: &'static [&'static str],
    /// The group that it is in, by which several are asked for at once.
    pub group: &'static str,
    /// Unit; empty for plain ratios.
    pub unit: &'static str,
    /// The events it needs, as event text.
    pub events: &'static [&'static str],
    /// How it is computed.
    pub expression: &'static str,
    /// What it says.
    pub help: &'static str,
}

macro_rules! named {
    ($($group:ident $name:literal $(| $alias:literal)* [$unit:literal] = $expression:literal of $($event:literal),+ : $help:literal;)+) => {
        &[$(Named {
            name: $name, aliases: &[$($alias),*], group: stringify!($group), unit: $unit, events: &[$($event),+],
            expression: $expression, help: $help,
        }),+]
    };
}

/// Every metric with a name, in the order of a list.
#[rustfmt::skip]
pub const NAMED: &[Named] = named! {
    Summary "ipc" | "insn_per_cycle" [""] = "instructions / cycles" of "instructions", "cycles": "instructions per cycle";
    Summary "cpi" | "cycles_per_insn" [""] = "cycles / instructions" of "cycles", "instructions": "cycles per instruction";
    Summary "ghz" | "frequency" ["GHz"] = "cycles / task-clock / 1e6" of "cycles", "task-clock": "clock rate while running";
    Summary "cpus_utilized" | "cpus" ["CPUs"] = "task-clock / 1e3 / duration_time" of "task-clock": "CPUs kept busy on average";
    Branches "branch_miss_rate" ["%"] = "100 * branch-misses / branches" of "branch-misses", "branches": "branches predicted wrongly";
    Branches "branch_mpki" [""] = "1e3 * branch-misses / instructions" of "branch-misses", "instructions": "branch misses per 1000 instructions";
    CacheMisses "cache_miss_rate" ["%"] = "100 * cache-misses / cache-references" of "cache-misses", "cache-references": "last-level accesses that missed";
    CacheMisses "cache_mpki" [""] = "1e3 * cache-misses / instructions" of "cache-misses", "instructions": "cache misses per 1000 instructions";
    CacheMisses "l1d_miss_rate" ["%"] = "100 * L1-dcache-load-misses / L1-dcache-loads" of "L1-dcache-load-misses", "L1-dcache-loads": "loads that missed the L1 data cache";
    CacheMisses "llc_miss_rate" ["%"] = "100 * LLC-load-misses / LLC-loads" of "LLC-load-misses", "LLC-loads": "last-level loads that missed";
    MemoryTLB "dtlb_miss_rate" ["%"] = "100 * dTLB-load-misses / dTLB-loads" of "dTLB-load-misses", "dTLB-loads": "loads that missed the data TLB";
    MemoryTLB "itlb_miss_rate" ["%"] = "100 * iTLB-load-misses / iTLB-loads" of "iTLB-load-misses", "iTLB-loads": "fetches that missed the instruction TLB";
    Pipeline "stalled_per_insn" [""] = "max(stalled-cycles-frontend, stalled-cycles-backend) / instructions" of "stalled-cycles-frontend", "stalled-cycles-backend", "instructions": "stalled cycles per instruction";
    Pipeline "frontend_idle" ["%"] = "100 * stalled-cycles-frontend / cycles" of "stalled-cycles-frontend", "cycles": "cycles without work from the front end";
    Pipeline "backend_idle" ["%"] = "100 * stalled-cycles-backend / cycles" of "stalled-cycles-backend", "cycles": "cycles waiting for the back end";
    OS "page_fault_rate" ["/sec"] = "1e3 * page-faults / task-clock" of "page-faults", "task-clock": "page faults per second of CPU time";
    OS "context_switch_rate" ["/sec"] = "1e3 * context-switches / task-clock" of "context-switches", "task-clock": "context switches per second of CPU time";
};

/// The metric of this name or alias, in any case, with `-` as good as `_`.
pub fn find(name: &str) -> Option<&'static Named> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    NAMED.iter().find(|n| n.name == name || n.aliases.contains(&name.as_str()))
}

/// All of this group, in any case; none where there is no such group.
pub fn of_group(group: &str) -> impl Iterator<Item = &'static Named> {
    NAMED.iter().filter(move |named| named.group.eq_ignore_ascii_case(group))
}

impl Named {
    /// The metric as it is computed.
    ///
    /// # Errors
    /// What is wrong with the expression; nothing, as a test sees to it.
    pub fn definition(&self) -> crate::error::Result<Definition> {
        Ok(Definition {
            name: self.name.to_owned(),
            unit: self.unit.to_owned(),
            help: self.help.to_owned(),
            expression: Expression::parse(self.expression)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_metric_parses_and_names_the_events_it_needs() {
        for named in NAMED {
            let definition = named.definition().unwrap();
            for event in definition.expression.events() {
                assert!(
                    event == "duration_time" || named.events.contains(&event.as_str()),
                    "{}: {event}",
                    named.name
                );
            }
            assert_eq!(find(named.name), Some(named));
        }
        assert_eq!(find("Insn-Per-Cycle").unwrap().name, "ipc");
        assert!(find("nonsense").is_none() && of_group("nonsense").next().is_none());
        // One word must not mean a metric and a group.
        assert!(NAMED.iter().all(|named| find(named.group).is_none() && of_group(named.group).count() > 1));
    }
}
