//! The status line during a recording, and the summary line at the end.
//!
//! Receives the totals, and shows them on a terminal. There is no status line while a command runs, because
//! the command shares pmc's stderr and may use the terminal.

use serde_json::{Value as Json, json};

use pmc_events::counter::rings::InstanceReading;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_recording::recording::file::output::Totals;
use pmc_recording::recording::file::recorder::StatusLine;
use pmc_recording::recording::file::result::{RecordingResult, lost};
use pmc_recording::recording::record::Recorded;
use pmc_sys::error::{Error, Warning, say};
use pmc_sys::sys::clock::process_cpu_ns;
use pmc_text::terminal::Stream;
use pmc_text::units;

/// Interval between updates, in nanoseconds.
const BEAT: u64 = 500_000_000;

pub(super) struct RecordStatusLine {
    is_on: bool,
    /// Time of the first call.
    start: Option<u64>,
    last: u64,
    /// Number of samples at the previous update.
    samples: u64,
}

impl RecordStatusLine {
    /// Creates a status line, which appears only if `may_show` is set and stderr is a terminal.
    pub(super) fn new(may_show: bool) -> Self {
        Self { is_on: may_show && Stream::Error.is_screen(), start: None, last: 0, samples: 0 }
    }
}

impl StatusLine for RecordStatusLine {
    fn show(&mut self, now: u64, totals: &Totals) {
        if !self.is_on {
            return;
        }
        let start = *self.start.get_or_insert(now);
        let since = now - self.last.max(start);
        if since < BEAT {
            return;
        }
        let rate = (totals.samples - self.samples) as f64 * 1e9 / since as f64;
        let line = format!(
            "recording {}: {} samples, {}/s, {} lost, {}, own CPU {:.1}%",
            units::duration((now - start) as f64),
            units::thousands(totals.samples),
            units::thousands(rate as u64),
            units::thousands(totals.lost),
            units::bytes(totals.bytes),
            100.0 * process_cpu_ns() as f64 / (now - start).max(1) as f64,
        );
        say::status(&line);
        (self.last, self.samples) = (now, totals.samples);
    }
}

/// Version of [`document`]; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Returns the JSON summary of a recording. docs/record.md explains the fields.
pub(super) fn document(recorded: &Recorded, own_cpu_ns: u64) -> Json {
    let Recorded { events, result: run, exit, lost, no_samples, .. } = recorded;
    let totals = &run.totals;
    let event = |(at, event): (usize, &RecordedEvent)| {
        let own = || run.readings.iter().filter(|reading| reading.instance.event == at);
        let [count, lost] = [own().map(|one| one.count.value).sum::<u64>(), own().map(|one| one.lost).sum()];
        json!({"name": event.name(), "count": count, "lost": lost})
    };
    let ended_by = match (&run.failed, run.is_full, run.timed_out, run.interrupted, run.outcome) {
        (Some(_), ..) => "error",
        _ if run.is_handed_over => "holder",
        (_, true, ..) => "size",
        (_, _, true, ..) => "timeout",
        (_, _, _, Some(_), _) => "signal",
        (.., Some(_)) => "command",
        _ => "targets",
    };
    json!({
        "version": VERSION,
        "files": run.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "samples": totals.samples, "switches": totals.switches, "unwritten": totals.unwritten,
        "lost": lost, "throttled": totals.throttled, "bytes": totals.bytes, "elapsed_ns": run.elapsed_ns,
        "traced": totals.traced, "truncated": totals.truncated, "own_cpu_ns": own_cpu_ns, "samples_cpu_ns": totals.cpu_ns,
        "events": events.iter().enumerate().map(event).collect::<Vec<_>>(),
        "copies_kept": run.kept.samples, "stacks_unwound": run.ends.walked, "stacks_cut": run.ends.cut,
        "stacks_joined": run.ends.joined,
        "ended_at_exec": run.ended_at_exec.as_ref().map(|ends| {
            ends.iter().map(|end| json!({"pid": end.pid, "name": end.name})).collect::<Vec<_>>()
        }),
        "ended_by": ended_by, "status": exit.code(), "no_samples": no_samples.as_ref().map(Warning::what),
        "error": run.failed.as_ref().map(Error::headline),
    })
}

/// Returns the lines that perf prints about a recording, with the actual names of its files.
pub(super) fn perf_summary(run: &RecordingResult, is_stream: bool) -> Vec<String> {
    let totals = &run.totals;
    let names: Vec<String> = run.files.iter().map(|file| file.display().to_string()).collect();
    let (last, earlier) = match names.split_last() {
        Some((last, earlier)) if !is_stream => (last.as_str(), earlier),
        _ => ("-", &[][..]),
    };
    let samples = match totals.samples {
        0 => String::new(),
        samples => format!(" ({samples} samples)"),
    };
    let megabytes = totals.bytes as f64 / (1 << 20) as f64;
    let dumped = earlier.iter().map(|name| format!("[ perf record: Dump {name} ]"));
    let ended = [
        format!("[ perf record: Woken up {} times to write data ]", run.drains),
        format!("[ perf record: Captured and wrote {megabytes:.3} MB {last}{samples} ]"),
    ];
    dumped.chain(ended).collect()
}

/// Returns the summary line of a recording: `perf.data: 12,345 samples, none lost, 1.2 MiB; 3.1 µs of
/// CPU a sample`. Names the context switches if the recording consists of those.
pub(super) fn summary_line(to: &str, totals: &Totals, readings: &[InstanceReading]) -> String {
    let missing = lost(totals, readings);
    let losses = match missing {
        0 => "none lost".to_owned(),
        _ => {
            let share = 100.0 * missing as f64 / (missing + totals.samples).max(1) as f64;
            let losing = readings.iter().filter(|reading| reading.lost > 0);
            let mut cpus: Vec<u32> = losing.filter_map(|reading| reading.instance.slot.cpu).collect();
            cpus.sort_unstable();
            cpus.dedup();
            let on = match cpus.as_slice() {
                [] => String::new(),
                [one] => format!(" on CPU {one}"),
                _ => format!(" on CPUs {}", cpus.into_iter().collect::<pmc_sys::host::CpuList>()),
            };
            format!("{} records lost ({share:.2}%{on})", units::thousands(missing))
        }
    };
    let unless_none = |number: u64, words: String| if number == 0 { String::new() } else { words };
    let [more, throttles, cuts] =
        [totals.unwritten, totals.throttled, totals.truncated].map(units::thousands);
    let unwritten = unless_none(totals.unwritten, format!(", {more} more could not be written"));
    let throttled = unless_none(totals.throttled, format!(", throttled {throttles} times"));
    let traced = unless_none(totals.traced, format!(", {} of trace", units::bytes(totals.traced)));
    let truncated = unless_none(totals.truncated, format!(", trace truncated {cuts} times"));
    let each = match totals.samples {
        0 => format!("{} of CPU", units::duration(totals.cpu_ns as f64)),
        samples => format!("{} of CPU a sample", units::duration(totals.cpu_ns as f64 / samples as f64)),
    };
    let written = match (totals.samples, totals.switches) {
        (0, 1..) => format!("{} context switches", units::thousands(totals.switches)),
        (samples, _) => format!("{} samples", units::thousands(samples)),
    };
    format!(
        "{to}: {written}{unwritten}{traced}, {losses}{truncated}{throttled}, {}; {each}",
        units::bytes(totals.bytes)
    )
}
