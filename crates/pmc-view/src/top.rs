//! The output of `pmc top` without the screen: for each interval, one line about the sampling, followed by
//! the tables of a report.
//!
//! ```text
//! 12.0 s: 7,998 samples/s of cpu-clock, none lost; kernel 12.3%, user 80.1%, idle 7.6%; pmc: 0.9% CPU
//! ```

use std::io::{self, Write};

use serde_json::json;

use super::report::{self, ReportLayout};
use pmc_analysis::profile::sampled::trust::losses;
use pmc_analysis::profile::sampled::{LiveHeader, Profile};
use pmc_text::text::{as_json, clean};
use pmc_text::units::{bytes, counted, seconds, thousands};

/// Version of the JSON format; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Writes one interval as a JSON object on a single line. The object contains the sample rate and losses, and
/// each event's rows in the format of `report --json`. docs/top.md explains the fields.
pub fn write_json(
    out: &mut dyn Write,
    head: &LiveHeader,
    profile: &Profile,
    layout: &ReportLayout,
) -> io::Result<()> {
    let split = head.split.map(|(kernel, user, idle)| json!({"kernel": kernel, "user": user, "idle": idle}));
    let facts = json!({
        "since_ns": head.since_ns, "rate": head.rate, "samples": head.samples, "lost": head.lost,
        "throttled": head.throttled, "unknown": head.unknown, "split": split, "own_cpu": head.own_cpu,
        "own_memory": head.own_memory, "notes": head.notes,
    });
    let mut events = Vec::new();
    report::write_events_json(&mut events, profile, layout)?;
    // Newlines within strings are escaped, so an unescaped newline always separates rows.
    events.retain(|&byte| byte != b'\n');
    let (facts, events) = (as_json(&facts).to_string(), String::from_utf8_lossy(&events));
    let facts = facts.trim_start_matches('{').trim_end_matches('}');
    writeln!(out, "{{\"version\":{VERSION},{facts},\"events\":{events}}}")
}

/// Writes one interval as text.
pub fn write(
    out: &mut dyn Write,
    head: &LiveHeader,
    profile: &Profile,
    layout: &ReportLayout,
) -> io::Result<()> {
    let events: Vec<_> = head.events.iter().map(|name| clean(name)).collect();
    write!(
        out,
        "{:.1} s: {} samples/s of {}, ",
        seconds(head.since_ns),
        thousands(head.rate.round() as u64),
        events.join(", ")
    )?;
    write!(out, "{}", losses(head.samples, head.lost, false))?;
    if head.throttled > 0 {
        write!(out, ", throttled {}", counted(head.throttled, "time"))?;
    }
    if head.unknown > 0 {
        write!(out, ", {} of unknown events", thousands(head.unknown))?;
    }
    if let Some((kernel, user, idle)) = head.split {
        let [kernel, user, idle] = [kernel, user, idle].map(|part| part * 100.0);
        write!(out, "; kernel {kernel:.1}%, user {user:.1}%, idle {idle:.1}%")?;
    }
    writeln!(out, "; pmc itself: {:.1}% CPU, {}", head.own_cpu * 100.0, bytes(head.own_memory))?;
    for note in &head.notes {
        writeln!(out, "{}", clean(note))?;
    }
    writeln!(out)?;
    report::write_tables(out, profile, layout)?;
    writeln!(out)
}
