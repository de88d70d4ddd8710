//! Collects a recording's metadata, with perf's labels.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;

use crate::profile::header::{ConversionInfo, RecordingHeader, RequestedEvent, VERSION};
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_perfdata::perfdata::{FeatureNumber, Reader, RecordTally, RecordedEvent, RecordingLayout};
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_symbols::symbol::OriginalFacts;
use pmc_symbols::symbol::archive::original_facts as original_facts_of;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::{Attr, names_of, read_format, sample_type};
use pmc_sys::error::{Advice, Error, Result};
use pmc_sys::sys::clock;
use pmc_text::units::PerfTime;

/// Names of the layouts of recordings. The other names of forms are formats of imported profiles.
const LAYOUTS: [&str; 3] = ["file", "pipe", "directory"];

/// Returns the contents of the header and the feature sections.
pub fn read(reader: &Reader) -> RecordingHeader {
    let build_ids = reader.features().build_ids.iter().flat_map(|list| &list.0);
    RecordingHeader {
        version: VERSION,
        facts: facts(reader),
        events: events(reader),
        build_ids: build_ids
            .map(|row| {
                let id = pmc_text::text::hex(&row.id, "");
                (id, String::from_utf8_lossy(&row.name).into_owned())
            })
            .collect(),
        records: Vec::new(),
        notes: reader.notes().iter().map(ToString::to_string).collect(),
        ..RecordingHeader::default()
    }
}

/// Returns the metadata for exports to other formats.
pub fn for_conversion(reader: &Reader) -> ConversionInfo {
    let features = reader.features();
    let changed = std::fs::metadata(reader.path()).ok().and_then(|meta| u64::try_from(meta.ctime()).ok());
    let (offset, size) = (reader.data_offset(), reader.data_size());
    let cpus = features.nr_cpus.as_ref();
    let numbers = [
        ("data-offset", Some(offset)),
        ("data-size", Some(size)),
        ("feat-offset", Some(offset + size)),
        ("nrcpus-online", cpus.map(|cpus| cpus.online.into())),
        ("nrcpus-avail", cpus.map(|cpus| cpus.available.into())),
    ];
    let texts = [
        ("hostname", &features.hostname),
        ("os-release", &features.os_release),
        ("arch", &features.arch),
        ("cpu-desc", &features.cpu_desc),
        ("cpuid", &features.cpuid),
        ("perf-version", &features.version),
    ];
    ConversionInfo {
        captured_on: changed,
        numbers: numbers.into_iter().filter_map(|(name, number)| Some((name, number?))).collect(),
        texts: texts.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))).collect(),
        cmdline: features.cmdline.clone(),
    }
}

/// Returns the recorded build-ids with their file names; if `with_hits` is set, only for files with samples.
///
/// # Errors
/// Fails if the records cannot be read.
pub fn build_ids(reader: &Reader, with_hits: bool) -> Result<Vec<(String, String)>> {
    let mut rows = read(reader).build_ids;
    if with_hits {
        let tally = RecordTally::of_files_hit(reader)?;
        let hit: HashSet<String> =
            tally.files(false).iter().map(|file| String::from_utf8_lossy(&file.name).into_owned()).collect();
        // The name of the kernel's mapping ends with a symbol, whose address shows how the kernel was
        // relocated.
        let marked = |name: &str| ["_text", "_stext"].map(|mark| format!("{name}{mark}"));
        rows.retain(|(_, name)| hit.contains(name) || marked(name).iter().any(|name| hit.contains(name)));
    }
    Ok(rows)
}

/// Returns the modification time of the recording's file, in nanoseconds since 1970. For an archive, this is
/// the time of the original recording.
pub fn modified_ns(reader: &Reader) -> Option<i64> {
    if let Some(facts) = facts_in_archive(reader) {
        return Some(facts.modified_ns).filter(|ns| *ns != 0);
    }
    let path = match reader.form() {
        RecordingLayout::Directory => reader.path().join("data"),
        // A pipe's modification time is the start time of the recording.
        _ if reader.path().as_os_str() == "-" => "/dev/stdin".into(),
        RecordingLayout::File | RecordingLayout::Pipe => reader.path().into(),
    };
    let about = std::fs::metadata(path).ok()?;
    Some(about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec()))
}

/// Returns facts about the recording's file or, for an archive, about the original file.
pub(super) fn original_facts(reader: &Reader) -> OriginalFacts {
    facts_in_archive(reader).unwrap_or_else(|| {
        let form = match reader.form() {
            RecordingLayout::File => LAYOUTS[0],
            RecordingLayout::Pipe => LAYOUTS[1],
            RecordingLayout::Directory => LAYOUTS[2],
        };
        let has = |feature: &&FeatureNumber| reader.features().section(**feature).is_some();
        let features = FeatureNumber::ALL.iter().filter(has);
        OriginalFacts {
            modified_ns: modified_ns(reader).unwrap_or_default(),
            form: form.to_owned(),
            data_offset: reader.data_offset(),
            data_size: reader.data_size(),
            stacks: None,
            features: features.map(|feature| *feature as u32).collect(),
        }
    })
}

/// Formats in which samples may have times, for advice.
pub const FORMATS_WITH_TIMES: &str =
    "perf script text, JFR, Firefox profile, V8 CPU profile, Chrome trace, or speedscope with a unit of time";

/// Returns the format of the file from which the recording was imported, if it was.
fn imported_form(reader: &Reader) -> Option<String> {
    let form = facts_in_archive(reader)?.form;
    (!LAYOUTS.contains(&&*form)).then_some(form)
}

/// Whether the recording was imported from a profile of another program.
pub fn is_imported(reader: &Reader) -> bool {
    imported_form(reader).is_some()
}

/// Adds the remedy for data that the recording lacks: `record`, a command that records it. Recording options
/// do not help with an imported profile, so its remedy is a format in `formats`, or else to record again.
pub fn advise(error: Error, reader: &Reader, record: impl Into<Advice>, formats: &str) -> Error {
    let record = record.into();
    let Some(form) = imported_form(reader) else { return error.try_this(record) };
    let error = error.why(format!("it was imported from a file of the format {form}"));
    error.try_this(match formats {
        "" => format!("record the program with pmc: {record}"),
        _ => format!("import a format that can have them: {formats}"),
    })
}

fn facts_in_archive(reader: &Reader) -> Option<OriginalFacts> {
    original_facts_of(&reader.features().archive.as_ref()?.0).ok()
}

fn facts(reader: &Reader) -> Vec<(String, String)> {
    let features = reader.features();
    let mut facts = Vec::new();
    let mut say = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.push((label.to_owned(), value));
        }
    };
    let original = original_facts(reader);
    say("form", Some(original.form.clone()));
    let captured = modified_ns(reader).map(|time| clock::local_date_of(time.div_euclid(1_000_000_000)));
    say("captured on", captured);
    say("data offset", Some(original.data_offset.to_string()));
    say("data size", Some(original.data_size.to_string()));
    say("hostname", features.hostname.clone());
    say("os release", features.os_release.clone());
    say("perf version", features.version.clone());
    say("arch", features.arch.clone());
    say("nrcpus online", features.nr_cpus.as_ref().map(|cpus| cpus.online.to_string()));
    say("nrcpus avail", features.nr_cpus.as_ref().map(|cpus| cpus.available.to_string()));
    say("cpudesc", features.cpu_desc.clone());
    say("cpuid", features.cpuid.clone());
    say("total memory", features.total_mem_kib.map(|kib| format!("{kib} kB")));
    say("cmdline", features.cmdline.as_ref().map(|words| words.join(" ")));
    if let Some(topology) = &features.cpu_topology {
        for list in &topology.core_siblings {
            say("sibling sockets", Some(list.clone()));
        }
        for list in &topology.thread_siblings {
            say("sibling threads", Some(list.clone()));
        }
    }
    for node in features.numa_topology.iter().flatten() {
        let memory = format!("total = {} kB, free = {} kB", node.total_kib, node.free_kib);
        say(&format!("node{} meminfo", node.node), Some(memory));
        say(&format!("node{} cpu list", node.node), Some(node.cpus.clone()));
    }
    let mappings = features.pmu_mappings.as_ref().map(|list| {
        list.iter().map(|pmu| format!("{} = {}", pmu.name, pmu.kind)).collect::<Vec<_>>().join(", ")
    });
    say("pmu mappings", mappings);
    if let Some(span) = &features.sample_time {
        say("time of first sample", Some(PerfTime(span.first).to_string()));
        say("time of last sample", Some(PerfTime(span.last).to_string()));
        let duration = span.last.saturating_sub(span.first);
        say("sample duration", Some(format!("{:.3} ms", duration as f64 / 1e6)));
    }
    say("wall-clock reference", features.clock_data.as_ref().map(clock_reference));
    let compression = features.compressed.as_ref();
    say("compressed", compression.map(|c| format!("Zstd, level = {}, ratio = {}", c.level, c.ratio)));
    // Only `pmc archive` writes this section, so other recordings do not list it as missing.
    let usual = FeatureNumber::ALL.iter().filter(|feature| **feature != FeatureNumber::ARCHIVE);
    let missing = usual.filter(|feature| !original.features.contains(&(**feature as u32)));
    say("missing features", Some(missing.map(|feature| feature.name()).collect::<Vec<_>>().join(" ")));
    facts
}

/// Describes the time on the wall clock, the same time on the recording's clock, and their uncertainty.
fn clock_reference(data: &ClockData) -> String {
    let ClockData { clockid, wall_clock_ns, clockid_time_ns, .. } = *data;
    let clock = match clockid {
        ClockData::DEFAULT_CLOCK => "the default clock".to_owned(),
        number => format!("clock {number}"),
    };
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let uncertainty = data.uncertainty_ns.map_or(String::new(), |ns| format!(", ± {ns} ns"));
    let [wall, own] = [wall_clock_ns, clockid_time_ns].map(seconds);
    format!("{wall} s since 1970 = {own} s on {clock}{uncertainty}")
}

fn events(reader: &Reader) -> Vec<RequestedEvent> {
    let features = reader.features();
    let tracing = features.tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
    let fields = |recorded: &RecordedEvent| {
        let id = (recorded.attr.kind() == kind::TRACEPOINT).then(|| recorded.attr.config())?;
        let own = tracing.as_ref()?.format(id)?.fields.iter().filter(|field| !field.is_common());
        Some(own.map(|field| field.name.clone()).collect())
    };
    let mut events: Vec<RequestedEvent> = reader
        .events()
        .iter()
        .map(|recorded| RequestedEvent { trace_fields: fields(recorded), ..event(recorded) })
        .collect();
    for group in features.groups.iter().flatten() {
        if let Some(leader) = events.get_mut(group.leader as usize) {
            leader.members = group.members as usize;
            leader.group.clone_from(&group.name);
        }
    }
    events
}

/// Formats the attributes of an event on one line.
pub(crate) fn attr_words(attr: &Attr) -> String {
    let words = attr_fields(attr).into_iter().map(|(name, value)| format!("{name} = {value}"));
    words.collect::<Vec<_>>().join(", ")
}

fn attr_fields(attr: &Attr) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let word = |index| attr.word(index).unwrap_or_default();
    let mut say = |name: &str, value: String| fields.push((name.to_owned(), value));
    say("type", attr.kind().to_string());
    say("size", attr.size().to_string());
    say("config", if attr.config() == 0 { "0".to_owned() } else { format!("{:#x}", attr.config()) });
    if attr.period() != 0 {
        say("{ sample_period, sample_freq }", attr.period().to_string());
    }
    say("sample_type", names_of(attr.sample_type(), sample_type::NAMES).join("|"));
    say("read_format", names_of(attr.read_format(), read_format::NAMES).join("|"));
    for flag in Flag::ALL.iter().filter(|flag| attr.get(**flag)) {
        say(flag.name(), "1".to_owned());
    }
    if attr.precise_ip() > 0 {
        say("precise_ip", attr.precise_ip().to_string());
    }
    let (hex, decimal) = (|value: u64| format!("{value:#x}"), |value: u64| value.to_string());
    let (low, high) = (|word: u64| word & 0xffff_ffff, |word: u64| word >> 32);
    let rest = [
        ("{ wakeup_events, wakeup_watermark }", decimal(low(word(6)))),
        ("bp_type", decimal(high(word(6)))),
        ("{ bp_addr, config1 }", hex(word(7))),
        ("{ bp_len, config2 }", hex(word(8))),
        ("branch_sample_type", hex(word(9))),
        ("sample_regs_user", hex(word(10))),
        ("sample_stack_user", decimal(low(word(11)))),
        ("clockid", (high(word(11)) as i32).to_string()),
        ("sample_regs_intr", hex(word(12))),
        ("aux_watermark", decimal(low(word(13)))),
        ("sample_max_stack", decimal(high(word(13)))),
        ("aux_sample_size", decimal(low(word(14)))),
        ("sig_data", hex(word(15))),
    ];
    let said = rest.into_iter().filter(|(_, value)| value != "0" && value != "0x0");
    said.for_each(|(name, value)| say(name, value));
    fields
}

fn event(event: &RecordedEvent) -> RequestedEvent {
    let attr = &event.attr;
    RequestedEvent {
        name: event.name(),
        ids: event.ids.clone(),
        attr: attr_fields(attr),
        period: attr.period(),
        is_freq: attr.get(Flag::Freq),
        members: 1,
        ..RequestedEvent::default()
    }
}
