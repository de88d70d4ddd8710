//! `--json=2`: one versioned document for a whole run. Values are JSON numbers. A missing value is `null` and
//! has a reason.
//!
//! ```text
//! begin     {"pmc": {"format": 2, ...}, "target": ..., "events": [...], "intervals": [
//! interval      {"time_s": ..., "rows": [...]},
//! end       ], "total": {"elapsed_s": ..., "rows": [...], "runs": [...]}, "warnings": [...]}
//! ```
//! Receives [`StatCounts`]. Intervals are written as they arrive, so memory use does not grow with the length
//! of a run. The schema is in `docs/output-formats.md`. Fields may be added; renaming or removing one
//! requires a new format number.

use std::io::{self, Write};

use serde::Serialize;

use super::StatSubject;
use pmc_analysis::profile::counts::CountPart;
use pmc_analysis::profile::counts::DerivedResult;
use pmc_analysis::profile::counts::{
    Aggregation, CpuTime, MissingValueReason, PlaceLabel, StatCounts, StatEvent, StatRow, StatValue,
};
use pmc_analysis::profile::metrics::shadow::{ComputedMetric, shadow};
use pmc_analysis::profile::sharing::relative_error;
use pmc_analysis::profile::statistics::MeasurementSummary;
use pmc_sys::error::Warning;
use pmc_text::text::as_json;
use pmc_text::units::seconds;

/// Version of the format, for readers to check.
pub const FORMAT: u32 = 2;

/// A [`Warning`] in the document. `remedy` is empty for a warning without a remedy.
#[derive(Serialize)]
struct WarningJson<'a> {
    what: &'a str,
    remedy: String,
}

/// Writes the start of the document. Uses only the events of `counts`, not its rows.
pub fn begin(out: &mut dyn Write, subject: &StatSubject, counts: &StatCounts) -> io::Result<()> {
    let events: Vec<_> = counts.events.iter().map(EventJson::from).collect();
    write!(out, "{{\"pmc\":{},\"target\":{},", as_json(&header()), as_json(&TargetJson::from(subject)))?;
    write!(
        out,
        "\"aggregation\":{},\"events\":{},",
        as_json(&aggregation(counts.aggregation)),
        as_json(&events)
    )?;
    write!(out, "\"intervals\":[")
}

/// Writes an interval; `number` counts intervals from 0.
pub fn interval(out: &mut dyn Write, counts: &StatCounts, number: usize) -> io::Result<()> {
    write!(out, "{}{}", if number == 0 { "\n" } else { ",\n" }, as_json(&part(counts)))
}

/// Writes the counts of the whole run, and the end of the document.
pub fn end(out: &mut dyn Write, total: &StatCounts, warnings: &[Warning]) -> io::Result<()> {
    let remedy = |of: &Warning| of.advice().map(|advice| advice.to_string()).unwrap_or_default();
    let warnings: Vec<WarningJson<'_>> =
        warnings.iter().map(|one| WarningJson { what: one.what(), remedy: remedy(one) }).collect();
    writeln!(out, "],\n\"total\":{},\"warnings\":{}}}", as_json(&part(total)), as_json(&warnings))
}

/// Writes the document of a run without intervals.
pub fn write(
    out: &mut dyn Write,
    subject: &StatSubject,
    total: &StatCounts,
    warnings: &[Warning],
) -> io::Result<()> {
    begin(out, subject, total)?;
    end(out, total, warnings)
}

#[derive(Serialize)]
pub(super) struct HeaderJson {
    format: u32,
    version: &'static str,
}

pub(super) fn header() -> HeaderJson {
    HeaderJson { format: FORMAT, version: env!("CARGO_PKG_VERSION") }
}

#[derive(Serialize)]
struct TargetJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<&'a str>,
}

impl<'a> From<&'a StatSubject> for TargetJson<'a> {
    fn from(subject: &'a StatSubject) -> Self {
        let (kind, command, list) = match subject {
            StatSubject::Command(words) => ("command", Some(words.as_slice()), None),
            StatSubject::SystemWide => ("system", None, None),
            StatSubject::Cpus(list) => ("cpus", None, Some(list.as_str())),
            StatSubject::Processes(list) => ("processes", None, Some(list.as_str())),
            StatSubject::Threads(list) => ("threads", None, Some(list.as_str())),
            StatSubject::User(user) => ("user", None, Some(user.as_str())),
        };
        Self { kind, command, list }
    }
}

fn aggregation(aggregation: Aggregation) -> &'static str {
    match aggregation {
        Aggregation::Global => "global",
        Aggregation::Cpu => "cpu",
        Aggregation::Core => "core",
        Aggregation::Cluster => "cluster",
        Aggregation::Cache(_) => "cache",
        Aggregation::Die => "die",
        Aggregation::Socket => "socket",
        Aggregation::Node => "node",
        Aggregation::Thread => "thread",
        Aggregation::Children => "children",
        Aggregation::Levels => "levels",
    }
}

#[derive(Serialize)]
struct EventJson<'a> {
    name: &'a str,
    unit: &'a str,
    scale: f64,
    level: &'a str,
    group: usize,
    cgroup: Option<&'a str>,
    snapshot: bool,
}

impl<'a> From<&'a StatEvent> for EventJson<'a> {
    fn from(e: &'a StatEvent) -> Self {
        let cgroup = e.cgroup.as_deref();
        Self {
            name: &e.name,
            unit: &e.unit,
            scale: e.scale,
            level: &e.level,
            group: e.group,
            cgroup,
            snapshot: e.snapshot,
        }
    }
}

/// An interval, or the whole run.
#[derive(Serialize)]
struct PartJson<'a> {
    /// End of the interval, in seconds since the start; `null` for a whole run.
    time_s: Option<f64>,
    elapsed_s: f64,
    user_s: Option<f64>,
    system_s: Option<f64>,
    /// Seconds for which the hardware counters were off because another program had reserved them.
    #[serde(skip_serializing_if = "Option::is_none")]
    yielded_s: Option<f64>,
    rows: Vec<RowJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<RunsJson>,
}

#[derive(Serialize)]
struct RunsJson {
    elapsed_s: Vec<f64>,
    user_s: Option<Vec<f64>>,
    system_s: Option<Vec<f64>>,
    statistics: Option<StatisticsJson>,
}

fn part(counts: &StatCounts) -> PartJson<'_> {
    let cpu = |pick: fn(CpuTime) -> u64| counts.cpu_time.map(|t| seconds(pick(t)));
    let each =
        |pick: fn(CpuTime) -> u64| counts.runs.iter().map(|r| r.cpu_time.map(|t| seconds(pick(t)))).collect();
    let runs = (!counts.runs.is_empty()).then(|| {
        let elapsed_s: Vec<f64> = counts.runs.iter().map(|r| seconds(r.elapsed_ns)).collect();
        let statistics = MeasurementSummary::from_values(&elapsed_s).map(|s| StatisticsJson::from(&s));
        RunsJson { elapsed_s, user_s: each(|t| t.user_ns), system_s: each(|t| t.system_ns), statistics }
    });
    PartJson {
        time_s: counts.timestamp_ns.map(seconds),
        elapsed_s: counts.elapsed_seconds(),
        user_s: cpu(|t| t.user_ns),
        system_s: cpu(|t| t.system_ns),
        yielded_s: Some(counts.yielded_ns).filter(|ns| *ns > 0).map(seconds),
        rows: (0..counts.rows.len()).map(|row| row_json(counts, row)).collect(),
        runs,
    }
}

#[derive(Serialize)]
struct RowJson<'a> {
    place: PlaceJson<'a>,
    summed: u32,
    values: Vec<ValueJson<'a>>,
    metrics: Vec<DerivedJson<'a>>,
}

/// The place for which a row counts, such as a CPU, core or thread. Contains only the fields that the
/// aggregation uses.
#[derive(Serialize)]
struct PlaceJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    die: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'static str>,
}

#[derive(Serialize)]
struct CacheJson {
    level: u32,
    id: u32,
}

#[derive(Serialize)]
struct ThreadJson<'a> {
    comm: &'a str,
    tid: u32,
}

impl<'a> From<&'a PlaceLabel> for PlaceJson<'a> {
    fn from(p: &'a PlaceLabel) -> Self {
        let thread = p.thread.as_ref().map(|(comm, tid)| ThreadJson { comm, tid: *tid });
        let cache = p.cache.map(|(level, id)| CacheJson { level, id });
        let PlaceLabel { node, socket, die, cluster, core, cpu, .. } = *p;
        Self { node, socket, die, cluster, cache, core, cpu, thread, part: p.part.map(CountPart::name) }
    }
}

#[derive(Serialize)]
struct ValueJson<'a> {
    /// Index into `events`.
    event: usize,
    /// Scaled value in the event's unit, or the mean of several runs; `null` with a reason if missing.
    value: Option<f64>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<CountJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<MetricJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<StatisticsJson>,
}

/// The count returned by the kernel, before scaling.
#[derive(Serialize)]
struct CountJson {
    raw: u64,
    enabled_ns: u64,
    running_ns: u64,
    share: f64,
    /// Half the width of the 95 % confidence interval, relative to the value; `null` if the count was not
    /// scaled.
    relative_error: Option<f64>,
}

#[derive(Serialize)]
struct ReasonJson<'a> {
    errno: Option<&'a str>,
    cause: &'a str,
    remedy: Option<&'a str>,
}

impl<'a> From<&'a MissingValueReason> for ReasonJson<'a> {
    fn from(r: &'a MissingValueReason) -> Self {
        Self { errno: r.errno, cause: &r.cause, remedy: Some(r.remedy.as_str()).filter(|r| !r.is_empty()) }
    }
}

#[derive(Serialize)]
struct MetricJson {
    name: &'static str,
    value: f64,
    unit: &'static str,
    inexact: bool,
}

#[derive(Serialize)]
struct DerivedJson<'a> {
    name: &'a str,
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    value: Option<f64>,
    inexact: bool,
    /// Half the width of the 95 % confidence interval, in the metric's unit, if events were multiplexed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<f64>,
    /// `bad` if the value crossed its threshold, otherwise `good`.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<&'static str>,
    /// Name of the parent in the tree of the top-down analysis.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonJson<'a>>,
}

/// A [`MeasurementSummary`] as it appears in JSON documents.
#[derive(Serialize)]
pub(super) struct StatisticsJson {
    count: usize,
    mean: f64,
    median: f64,
    min: f64,
    max: f64,
    stdev: f64,
    standard_error: f64,
    interval95: Option<[f64; 2]>,
    outliers: Vec<usize>,
}

impl From<&MeasurementSummary> for StatisticsJson {
    fn from(s: &MeasurementSummary) -> Self {
        Self {
            count: s.count,
            mean: s.mean,
            median: s.median,
            min: s.min,
            max: s.max,
            stdev: s.stdev,
            standard_error: s.error_of_mean(),
            interval95: s.interval.map(|(low, high)| [low, high]),
            outliers: s.outliers.clone(),
        }
    }
}

fn row_json(counts: &StatCounts, at: usize) -> RowJson<'_> {
    let row: &StatRow = &counts.rows[at];
    let absent = |event: &usize| matches!(counts.value(at, *event), StatValue::Absent);
    RowJson {
        place: PlaceJson::from(&row.place),
        summed: row.summed,
        values: (0..counts.events.len()).filter(|e| !absent(e)).map(|e| value_json(counts, at, e)).collect(),
        metrics: counts.derived.get(at).into_iter().flatten().map(derived_json).collect(),
    }
}

fn value_json(counts: &StatCounts, row: usize, event: usize) -> ValueJson<'_> {
    let value = counts.value(row, event);
    let scale = counts.events[event].scale;
    let runs: Vec<f64> = value.runs().iter().map(|v| v * scale).collect();
    let (status, count) = match value {
        StatValue::Counted { count, .. } => {
            let count = CountJson {
                raw: count.value,
                enabled_ns: count.enabled_ns,
                running_ns: count.running_ns,
                share: count.share(),
                relative_error: relative_error(*count),
            };
            (if value.number().is_some() { "counted" } else { "not counted" }, Some(count))
        }
        StatValue::NotSupported(_) => ("not supported", None),
        StatValue::NotCounted(_) | StatValue::Absent => ("not counted", None),
    };
    let metric = |m: ComputedMetric| MetricJson {
        name: m.metric.name,
        value: m.plain,
        unit: m.metric.unit,
        inexact: m.inexact,
    };
    ValueJson {
        event,
        value: value.number().map(|v| v * scale),
        status,
        reason: value.reason().map(ReasonJson::from),
        count,
        metrics: shadow(counts, row, event).into_iter().map(metric).collect(),
        statistics: MeasurementSummary::from_values(&runs).map(|s| StatisticsJson::from(&s)),
        runs,
    }
}

fn derived_json(derived: &DerivedResult) -> DerivedJson<'_> {
    DerivedJson {
        name: &derived.name,
        unit: &derived.unit,
        cgroup: derived.cgroup.as_deref(),
        value: derived.value.as_ref().ok().copied(),
        inexact: derived.inexact,
        error: derived.error,
        threshold: derived.crossed.map(super::threshold),
        parent: derived
            .branch
            .as_ref()
            .map(|branch| branch.parent.as_str())
            .filter(|parent| !parent.is_empty()),
        level: derived.branch.as_ref().map(|branch| branch.level),
        reason: derived.value.as_ref().err().map(ReasonJson::from),
    }
}
