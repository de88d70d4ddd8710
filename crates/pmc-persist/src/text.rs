//! Persistent events as text: the entries that the holder keeps open, their counts, and lost entries.

use std::collections::BTreeSet;
use std::io::{self, Write};

use pmc_recording::persistent::message::{CpuCounts, EntryCounts};
use pmc_recording::persistent::{LostEntry, PersistentEntry};
use pmc_sys::abi::read_format;
use pmc_text::table::{self, left, right};
use pmc_text::text::clean;
use pmc_text::units::{Count, bytes, thousands, thousands_f64};

/// Writes one line per entry that is open, then the lost entries.
pub(super) fn list(
    out: &mut dyn Write,
    held: &[(String, &PersistentEntry)],
    lost: &[LostEntry],
) -> io::Result<()> {
    if held.is_empty() {
        writeln!(out, "no events are held; to hold one: pmc persist add NAME -e EVENT")?;
    } else {
        let head =
            ["ID", "NAME", "OWNER", "EVENT", "ON", "RINGS", "MODE", "SINCE"].map(str::to_owned).to_vec();
        let row = |(owner, entry): &(String, &PersistentEntry)| {
            let rings = format!("{} × {}", entry.rings, bytes(entry.ring_bytes));
            let counts_only = entry.definition.counts_only;
            vec![
                entry.id.to_string(),
                clean(&entry.definition.name).into_owned(),
                clean(owner).into_owned(),
                clean(&entry.event()).into_owned(),
                target(entry),
                if counts_only { "none".to_owned() } else { rings },
                mode(entry).to_owned(),
                entry.opened(),
            ]
        };
        let shapes =
            [right(0, 0), left(2, 0), left(2, 0), left(2, 0), left(2, 0), left(2, 0), left(2, 0), left(2, 0)];
        table::write(out, &shapes, None, std::iter::once(head).chain(held.iter().map(row)))?;
    }
    for one @ LostEntry { entry, why, .. } in lost {
        let (name, event) = (clean(&entry.definition.name), clean(&entry.definition.event));
        writeln!(out, "lost: {name} ({event}, id {}), {}: {}", entry.id, one.when(), clean(why))?;
    }
    Ok(())
}

/// Describes the processes and CPUs for which an entry counts.
fn target(entry: &PersistentEntry) -> String {
    let pids: Vec<String> = entry.definition.pids.iter().map(u32::to_string).collect();
    let cpus = entry.definition.cpus.as_ref().map(|cpus| format!("CPU {}", clean(cpus)));
    let target = match (pids.is_empty(), cpus) {
        (true, cpus) => cpus.unwrap_or_else(|| "all CPUs".to_owned()),
        (false, None) => format!("pid {}", pids.join(",")),
        (false, Some(cpus)) => format!("pid {} on {cpus}", pids.join(",")),
    };
    if entry.ended.is_some() { format!("{target} (ended)") } else { target }
}

/// Describes how an entry handles records.
fn mode(entry: &PersistentEntry) -> &'static str {
    if entry.definition.counts_only { "counts only" } else { entry.definition.mode.name() }
}

/// Writes the properties of an entry.
pub(super) fn entry(out: &mut dyn Write, entry: &PersistentEntry) -> io::Result<()> {
    let PersistentEntry { id, definition, ring_bytes, rings, user_only, attr, .. } = entry;
    let mut rows = vec![
        ("name", clean(&definition.name).into_owned()),
        ("id", id.to_string()),
        ("event", clean(&entry.event()).into_owned()),
        ("on", target(entry)),
        ("since", entry.opened()),
        ("rings", format!("{rings} of {}", bytes(*ring_bytes))),
        ("mode", mode(entry).to_owned()),
        ("call chains", if definition.call_graph { "by frame pointers" } else { "none" }.to_owned()),
        ("shared", definition.share.name().to_owned()),
    ];
    if let Some(filter) = &definition.filter {
        rows.push(("filter", clean(filter).into_owned()));
    }
    if let Some(ended) = entry.ended_at() {
        rows.push(("ended", format!("{ended}; its records are held until pmc persist rm {id}")));
    }
    if *user_only {
        rows.push(("levels", "user mode only: no permission to measure the kernel".to_owned()));
    }
    // Print only nonzero words.
    let words = attr.iter().rposition(|word| word != "0x0").map_or(0, |last| last + 1);
    let request = attr[..words].iter().enumerate().filter(|(_, word)| *word != "0x0");
    let request: Vec<String> = request.map(|(index, word)| format!("attr{index}={}", clean(word))).collect();
    rows.push(("request", request.join(" ")));
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    table::write(out, &[left(0, 0), left(2, 0)], None, rows)
}

/// Index of the attr word that holds the read format.
const READ_FORMAT: usize = 4;

/// Writes the counts of an entry.
pub(super) fn counts(out: &mut dyn Write, entry: &PersistentEntry, counts: &EntryCounts) -> io::Result<()> {
    let head = ["CPU", "COUNT", "COUNTED", "LOST RECORDS"].map(str::to_owned).to_vec();
    // If a recorder opened the event, its read format may lack the enabled and running times.
    let format = entry
        .attr
        .get(READ_FORMAT)
        .and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    let has_times = format.is_none_or(|format| format & read_format::TOTAL_TIME_RUNNING != 0);
    let row = |place: String, row: &CpuCounts| {
        let share = match row.enabled {
            _ if !has_times => "not read".to_owned(),
            0 => "never".to_owned(),
            enabled => format!("{:.1}%", row.running as f64 / enabled as f64 * 100.0),
        };
        vec![place, value(entry, row.value as f64), share, thousands(row.lost)]
    };
    let place = |cpu: Option<u32>| cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
    let (name, event) = (clean(&entry.definition.name), entry.event());
    let event = clean(&event);
    writeln!(out, "{name}: {event}, {}, since {}", target(entry), entry.opened())?;
    for (index, event) in counts.events.iter().enumerate() {
        let of_event = || counts.rows.iter().filter(|row| row.event == index);
        if counts.events.len() > 1 {
            writeln!(out, "{}:", clean(event))?;
        }
        let rows = of_event().map(|one| row(place(one.cpu), one));
        let rows = std::iter::once(head.clone()).chain(rows).chain([row("all".to_owned(), &sum(of_event()))]);
        table::write(out, &[right(0, 3), right(2, 0), right(2, 0), right(2, 0)], None, rows)?;
    }
    match counts.living {
        Some(0) => writeln!(out, "all measured threads have ended"),
        _ => Ok(()),
    }
}

/// Formats a count with its unit.
fn value(entry: &PersistentEntry, count: f64) -> String {
    match &entry.unit {
        None => thousands_f64(count, 0),
        Some((scale, unit)) => {
            format!("{} {}", thousands_f64(count * scale.parse().unwrap_or(1.0), 2), clean(unit))
        }
    }
}

fn sum<'a>(rows: impl Iterator<Item = &'a CpuCounts>) -> CpuCounts {
    rows.fold(CpuCounts::default(), |all, row| CpuCounts {
        value: all.value.saturating_add(row.value),
        enabled: all.enabled.saturating_add(row.enabled),
        running: all.running.saturating_add(row.running),
        lost: all.lost.saturating_add(row.lost),
        ..all
    })
}

/// Writes one row per counter, with one column per CPU and one for the sum. Counts of multiplexed counters
/// are scaled.
pub(super) fn by_cpu(out: &mut dyn Write, counters: &[(&PersistentEntry, EntryCounts)]) -> io::Result<()> {
    let cpus: BTreeSet<Option<u32>> =
        counters.iter().flat_map(|(_, counts)| counts.rows.iter().map(|row| row.cpu)).collect();
    let place = |cpu: &Option<u32>| cpu.map_or_else(|| "any".to_owned(), |cpu| format!("CPU{cpu}"));
    let head = std::iter::once(String::new()).chain(cpus.iter().map(place)).chain(["TOTAL".to_owned()]);
    let line = |(entry, counts): &(&PersistentEntry, EntryCounts)| {
        let number = |row: &CpuCounts| {
            let CpuCounts { value, enabled: enabled_ns, running: running_ns, .. } = *row;
            Count { value, enabled_ns, running_ns }.scaled().unwrap_or_default()
        };
        let of =
            |cpu: &Option<u32>| counts.rows.iter().filter(|row| row.cpu == *cpu).map(number).sum::<f64>();
        let cells = cpus.iter().map(of).chain([counts.rows.iter().map(number).sum()]);
        let cells = cells.map(|number| value(entry, number));
        std::iter::once(clean(&entry.definition.event).into_owned()).chain(cells).collect()
    };
    let shapes: Vec<_> = std::iter::once(left(0, 0)).chain(cpus.iter().map(|_| right(2, 0))).collect();
    let shapes = [shapes, vec![right(2, 0)]].concat();
    table::write(out, &shapes, None, std::iter::once(head.collect()).chain(counters.iter().map(line)))
}
