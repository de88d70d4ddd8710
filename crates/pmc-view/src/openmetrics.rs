//! OpenMetrics 1.0 text, for scrapers that read a file or a socket.
//!
//! Receives cumulative [`StatCounts`] (since the start, not per interval) and returns the whole exposition,
//! and the answers to HTTP requests for it. Chooses families, units and labels, but does not open files or
//! sockets. Source: OpenMetrics 1.0.0, sections "Text format" and "Metric types".
//!
//! ```text
//! # TYPE pmc_events counter
//! # HELP pmc_events Occurrences of an event.
//! pmc_events_total{event="page-faults",cpu="0"} 49
//! # TYPE pmc_event_time_seconds counter
//! # UNIT pmc_event_time_seconds seconds
//! ...
//! # EOF
//! ```

use std::fmt::Write;

use pmc_analysis::profile::counts::{MissingValueReason, PlaceLabel, StatCounts, StatEvent, StatValue};
use pmc_text::units::seconds;

/// Answers an HTTP request, which may be incomplete, with the page or an error.
pub fn http_response(request: &[u8], page: &str) -> Vec<u8> {
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics" | b"/") => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", page)
        }
        (b"GET" | b"HEAD", _) => ("404 Not Found", "text/plain", "the page is /metrics\n"),
        _ => ("405 Method Not Allowed", "text/plain", "GET /metrics\n"),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if method == b"HEAD" { "" } else { body };
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The metric family of an event. A family has only one unit, so each unit needs a separate family.
struct MetricFamily {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
}

const EVENTS: MetricFamily = MetricFamily {
    name: "pmc_events",
    kind: "counter",
    unit: "",
    help: "Event count, scaled if the event was multiplexed.",
};
const TIME: MetricFamily = MetricFamily {
    name: "pmc_event_time_seconds",
    kind: "counter",
    unit: "seconds",
    help: "Time measured by a clock event.",
};
const ENERGY: MetricFamily = MetricFamily {
    name: "pmc_event_energy_joules",
    kind: "counter",
    unit: "joules",
    help: "Energy measured by an event.",
};
const BYTES: MetricFamily = MetricFamily {
    name: "pmc_event_data_bytes",
    kind: "counter",
    unit: "bytes",
    help: "Amount of data measured by an event.",
};
const OTHER: MetricFamily = MetricFamily {
    name: "pmc_event_amount",
    kind: "counter",
    unit: "",
    help: "Value of an event, in the unit of its label.",
};
const LEVEL: MetricFamily = MetricFamily {
    name: "pmc_event_level",
    kind: "gauge",
    unit: "",
    help: "Current value of an event that does not accumulate.",
};
const ENABLED: MetricFamily = MetricFamily {
    name: "pmc_event_enabled_seconds",
    kind: "counter",
    unit: "seconds",
    help: "Time during which the event was enabled.",
};
const RUNNING: MetricFamily = MetricFamily {
    name: "pmc_event_running_seconds",
    kind: "counter",
    unit: "seconds",
    help: "Time during which the event was on a counter.",
};
const MISSING: MetricFamily = MetricFamily {
    name: "pmc_event_missing",
    kind: "gauge",
    unit: "",
    help: "1 for each event without a count, labeled with the reason.",
};
const METRIC: MetricFamily =
    MetricFamily { name: "pmc_metric", kind: "gauge", unit: "", help: "A named or user-defined metric." };
const ELAPSED: MetricFamily = MetricFamily {
    name: "pmc_elapsed_seconds",
    kind: "counter",
    unit: "seconds",
    help: "Wall-clock time since counting began.",
};
const YIELDED: MetricFamily = MetricFamily {
    name: "pmc_yielded_seconds",
    kind: "counter",
    unit: "seconds",
    help: "Time during which the hardware events were disabled because of a reservation.",
};

/// Returns an event's family, and the factor that converts its count to the family's unit.
fn family(event: &StatEvent) -> (&'static MetricFamily, f64) {
    if event.snapshot {
        return (&LEVEL, event.scale);
    }
    match event.role {
        // Clock events count nanoseconds, regardless of the unit in which they are displayed.
        Some(role) if role.is_time() => (&TIME, 1e-9),
        _ => match event.unit.as_str() {
            "" => (&EVENTS, event.scale),
            "Joules" => (&ENERGY, event.scale),
            "Bytes" => (&BYTES, event.scale),
            "KiB" => (&BYTES, event.scale * 1024.0),
            "MiB" => (&BYTES, event.scale * 1024.0 * 1024.0),
            "GiB" => (&BYTES, event.scale * 1024.0 * 1024.0 * 1024.0),
            _ => (&OTHER, event.scale),
        },
    }
}

/// Returns the whole exposition of the counts since the start, ending in `# EOF`.
pub fn exposition(counts: &StatCounts) -> String {
    let mut samples: Vec<(&MetricFamily, Vec<String>)> = Vec::new();
    let mut put = |family: &'static MetricFamily, labels: &str, number: f64| {
        let suffix = if family.kind == "counter" { "_total" } else { "" };
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let line = format!("{}{suffix}{labels} {number}", family.name);
        match samples.iter_mut().find(|(f, _)| f.name == family.name) {
            Some((_, lines)) => lines.push(line),
            None => samples.push((family, vec![line])),
        }
    };
    put(&ELAPSED, "", counts.elapsed_seconds());
    if counts.yielded_ns > 0 {
        put(&YIELDED, "", seconds(counts.yielded_ns));
    }
    for (at, row) in counts.rows.iter().enumerate() {
        for (index, event) in counts.events.iter().enumerate() {
            let mut labels = event_labels(counts, index);
            place_labels(&mut labels, &row.place);
            match counts.value(at, index) {
                value @ StatValue::Counted { count, .. } => {
                    let (family, factor) = family(event);
                    if let Some(number) = value.number() {
                        let mut labels = labels.clone();
                        if matches!(family.name, "pmc_event_amount" | "pmc_event_level") {
                            label(&mut labels, "unit", &event.unit);
                        }
                        put(family, &labels, number * factor);
                    }
                    put(&ENABLED, &labels, seconds(count.enabled_ns));
                    put(&RUNNING, &labels, seconds(count.running_ns));
                }
                StatValue::NotCounted(MissingValueReason { errno, cause, .. })
                | StatValue::NotSupported(MissingValueReason { errno, cause, .. }) => {
                    label(&mut labels, "errno", errno.unwrap_or_default());
                    label(&mut labels, "cause", cause);
                    put(&MISSING, &labels, 1.0);
                }
                StatValue::Absent => {}
            }
        }
        for metric in counts.derived.get(at).into_iter().flatten() {
            if let Ok(value) = metric.value {
                let mut labels = String::new();
                label(&mut labels, "metric", &metric.name);
                label(&mut labels, "unit", &metric.unit);
                label(&mut labels, "cgroup", metric.cgroup.as_deref().unwrap_or_default());
                place_labels(&mut labels, &row.place);
                put(&METRIC, &labels, value);
            }
        }
    }
    let mut out = String::new();
    for (family, lines) in samples {
        let _ = writeln!(out, "# TYPE {} {}", family.name, family.kind);
        if !family.unit.is_empty() {
            let _ = writeln!(out, "# UNIT {} {}", family.name, family.unit);
        }
        let _ = writeln!(out, "# HELP {} {}", family.name, escaped(family.help));
        for line in lines {
            out += &line;
            out.push('\n');
        }
    }
    out += "# EOF\n";
    out
}

/// Returns the labels `event` and `cgroup`. Adds `position` for a repeated event, because label sets must be
/// unique.
fn event_labels(counts: &StatCounts, index: usize) -> String {
    let event = &counts.events[index];
    let mut labels = String::new();
    label(&mut labels, "event", &event.name);
    label(&mut labels, "cgroup", event.cgroup.as_deref().unwrap_or_default());
    let again = counts.events[..index].iter().any(|e| e.name == event.name && e.cgroup == event.cgroup);
    if again {
        label(&mut labels, "position", &index.to_string());
    }
    labels
}

fn place_labels(labels: &mut String, place: &PlaceLabel) {
    let numbers = [
        ("node", place.node),
        ("socket", place.socket),
        ("die", place.die),
        ("cluster", place.cluster),
        ("cache_level", place.cache.map(|(level, _)| level)),
        ("cache", place.cache.map(|(_, id)| id)),
        ("core", place.core),
        ("cpu", place.cpu),
    ];
    for (name, number) in numbers {
        if let Some(number) = number {
            label(labels, name, &number.to_string());
        }
    }
    if let Some((comm, tid)) = &place.thread {
        label(labels, "comm", comm);
        label(labels, "tid", &tid.to_string());
    }
    if let Some(part) = place.part {
        label(labels, "part", part.name());
    }
}

/// Appends a label unless it is empty.
fn label(labels: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        let comma = if labels.is_empty() { "" } else { "," };
        let _ = write!(labels, "{comma}{name}=\"{}\"", escaped(value));
    }
}

/// Escapes backslashes, quotes and newlines, and replaces other control characters.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    pmc_text::text::clean(&escaped).into_owned()
}
