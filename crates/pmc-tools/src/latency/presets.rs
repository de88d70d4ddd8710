//! The presets of `pmc latency`: event pairs that answer common questions.
//!
//! ```text
//!   block          block:block_rq_issue → block:block_rq_complete             dev, sector
//!   runq           wake-up, or preemption → the switch to the thread          pid = next_pid
//!   syscall:NAME   syscalls:sys_enter_NAME → syscalls:sys_exit_NAME           thread
//!   func:PATH:F    uprobe:PATH:F → uprobe:PATH:F%return                       thread, nested
//! ```

use super::rules::{EventRole, EventRule, IntervalRules, KeyPair, KeySource};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;

/// The event pair of a preset, or of the events on the command line.
#[derive(Debug)]
pub(super) struct LatencyPreset {
    /// The events. For recordings, a text may contain alternatives (`a|b`).
    pub(super) texts: Vec<String>,
    pub(super) interval: IntervalRules,
    /// Whether events may occur in a thread other than the one that they describe, so that all CPUs must be
    /// measured.
    pub(super) needs_all_cpus: bool,
}

/// The names of the presets.
pub(super) const NAMES: &str = "block, runq, irq, softirq, fault, syscall:NAME, func:PATH:NAME";

fn rule(text: usize, role: EventRole, key: &[&str], filter: Option<&str>) -> EventRule {
    let key = key.iter().map(|word| KeySource::named(word)).collect();
    EventRule { text, role, key, filter: filter.map(str::to_owned) }
}

impl LatencyPreset {
    /// Returns a pair whose two events have the same key fields.
    fn pair(begin: &str, end: &str, key: &[&str]) -> Self {
        let rules = vec![rule(0, EventRole::Begin, key, None), rule(1, EventRole::End, key, None)];
        let texts = vec![begin.to_owned(), end.to_owned()];
        Self { texts, interval: IntervalRules { rules, nests: false }, needs_all_cpus: false }
    }

    fn on_all_cpus(self) -> Self {
        Self { needs_all_cpus: true, ..self }
    }

    /// Returns the preset with this name; `None` if it is unknown. `live` is the machine to measure; `None`
    /// for a recording.
    ///
    /// # Errors
    /// Fails if this machine lacks the events.
    pub(super) fn named(name: &str, live: Option<&Host>) -> Result<Option<Self>> {
        let preset = match name {
            "block" => {
                let key = ["dev", "sector"];
                let mut pair = Self::pair("block:block_rq_issue", "block:block_rq_complete", &key);
                // A flush completes twice: first without a sector, then with sector 0, with which it was
                // issued.
                pair.interval.rules[1].filter = Some("sector != 0xffffffffffffffff".to_owned());
                pair.on_all_cpus()
            }
            "irq" => {
                Self::pair("irq:irq_handler_entry", "irq:irq_handler_exit", &["cpu", "irq"]).on_all_cpus()
            }
            "softirq" => Self::pair("irq:softirq_entry", "irq:softirq_exit", &["cpu", "vec"]).on_all_cpus(),
            "runq" => run_queue(live.is_some()),
            "fault" => {
                if let Some(host) = live.filter(|host| host.pmu("kprobe").is_none()) {
                    return Err(no_end_of_faults(host));
                }
                Self::pair("kprobe:handle_mm_fault", "kretprobe:handle_mm_fault", &["tid"])
            }
            name => match name.split_once(':') {
                Some(("syscall", call)) if !call.is_empty() => {
                    let [enter, exit] = ["enter", "exit"].map(|side| format!("syscalls:sys_{side}_{call}"));
                    Self::pair(&enter, &exit, &["tid"])
                }
                Some(("func", function)) if function.contains(':') => {
                    let [entry, exit] = ["", "%return"].map(|side| format!("uprobe:{function}{side}"));
                    let mut pair = Self::pair(&entry, &exit, &["tid"]);
                    pair.interval.nests = true;
                    pair
                }
                _ => return Ok(None),
            },
        };
        Ok(Some(preset))
    }

    /// Returns a pair of two events. By default, events of the same thread are paired.
    pub(super) fn of_events(begin: &str, end: &str, keys: &[KeyPair]) -> Self {
        let side = |of: fn(&KeyPair) -> &KeySource| match keys {
            [] => vec![KeySource::Thread],
            keys => keys.iter().map(|pair| of(pair).clone()).collect(),
        };
        let (begin_key, end_key) = (side(|pair| &pair.begin), side(|pair| &pair.end));
        let of = |text, role, key| EventRule { text, role, key, filter: None };
        // With a single event, each occurrence ends one interval and begins the next.
        let (texts, end_text) = match begin == end {
            true => (vec![begin.to_owned()], 0),
            false => (vec![begin.to_owned(), end.to_owned()], 1),
        };
        let rules = vec![of(end_text, EventRole::End, end_key), of(0, EventRole::Begin, begin_key)];
        Self { texts, interval: IntervalRules { rules, nests: false }, needs_all_cpus: false }
    }
}

/// Returns one list of the events of all presets, and their rules, which refer to that list.
pub(super) fn merged(presets: Vec<LatencyPreset>) -> (Vec<String>, Vec<IntervalRules>) {
    let mut all: Vec<String> = Vec::new();
    let mut intervals = Vec::new();
    for LatencyPreset { mut texts, mut interval, .. } in presets {
        interval.rules.iter_mut().for_each(|rule| rule.text += all.len());
        all.append(&mut texts);
        intervals.push(interval);
    }
    (all, intervals)
}

/// Returns the pair that measures how long a thread waits for a CPU, from its wake-up or preemption until it
/// runs.
fn run_queue(is_live: bool) -> LatencyPreset {
    // Recordings by newer versions of `perf sched` contain sched_waking instead of sched_wakeup.
    let wakeup = if is_live { "sched:sched_wakeup" } else { "sched:sched_wakeup|sched:sched_waking" };
    let texts = [wakeup, "sched:sched_wakeup_new", "sched:sched_switch"].map(str::to_owned).to_vec();
    // 256 is the state of a preempted thread (`TASK_REPORT_MAX`); thread 0 is the idle task.
    let preempted = "(prev_state == 0 || prev_state == 256) && prev_pid != 0";
    let rules = vec![
        rule(0, EventRole::Begin, &["pid"], None),
        rule(1, EventRole::Begin, &["pid"], None),
        rule(2, EventRole::End, &["next_pid"], Some("next_pid != 0")),
        rule(2, EventRole::Begin, &["prev_pid"], Some(preempted)),
    ];
    LatencyPreset { texts, interval: IntervalRules { rules, nests: false }, needs_all_cpus: true }
}

fn no_end_of_faults(host: &Host) -> Error {
    let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    Error::new("fault: this kernel does not report the end of page faults")
        .why(format!(
            "exceptions:page_fault_user marks only the start of a fault, and Linux {} has no kprobes (CONFIG_KPROBE_EVENTS) to probe handle_mm_fault",
            release.trim()
        ))
        .try_this("pmc record -e exceptions:page_fault_user -g, which shows where faults happen")
        .try_this("pmc stat -e major-faults, which counts faults that wait for a disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_name_their_events() {
        let texts = |name| LatencyPreset::named(name, None).unwrap().map(|preset| preset.texts);
        assert_eq!(texts("syscall:read").unwrap(), ["syscalls:sys_enter_read", "syscalls:sys_exit_read"]);
        assert_eq!(
            texts("func:/bin/sh:main").unwrap(),
            ["uprobe:/bin/sh:main", "uprobe:/bin/sh:main%return"]
        );
        assert!(texts("fault").is_some() && texts("runq").is_some());
        for none in ["syscall:", "func:x", "sched:sched_switch", "nothing"] {
            assert!(texts(none).is_none(), "{none}");
        }
    }

    #[test]
    fn merged_presets_have_one_list_of_events() {
        let preset = |name| LatencyPreset::named(name, None).unwrap().unwrap();
        let (texts, intervals) = merged(vec![preset("syscall:read"), preset("runq")]);
        let of = |interval: &IntervalRules| interval.rules.iter().map(|rule| rule.text).collect::<Vec<_>>();
        assert_eq!((texts.len(), of(&intervals[0]), of(&intervals[1])), (5, vec![0, 1], vec![2, 3, 4, 4]));
    }

    #[test]
    fn keys_may_differ_by_event() {
        let keys: Vec<KeyPair> = ["pid=next_pid", "cpu"].map(|key| key.parse().unwrap()).into();
        let rules = LatencyPreset::of_events("a:b", "c:d", &keys).interval.rules;
        assert_eq!(rules[0].key, [KeySource::Field("next_pid".to_owned()), KeySource::Cpu]);
        assert_eq!(rules[1].key, [KeySource::Field("pid".to_owned()), KeySource::Cpu]);
        assert!("=x".parse::<KeyPair>().is_err());
        let same = LatencyPreset::of_events("a:b", "a:b", &[]);
        assert_eq!((same.texts.len(), same.interval.rules.len()), (1, 2));
    }
}
