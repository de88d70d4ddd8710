//! Rules that define whether an event begins or ends an interval, and by which key events are paired.
//!
//! [`IntervalRules`] contains the rules as requested by the user, with the names of events and fields.
//! [`BoundRules`] contains the same rules for the events of one recording, with event indices and field
//! offsets.
//!
//! ```text
//!   -k tid             the thread of both events
//!   -k dev,sector      equal fields of both events
//!   -k pid=next_pid    a field of the begin event equals another one of the end event
//! ```

use std::str::FromStr;

use smallvec::SmallVec;

use super::filter::FieldFilter;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::tracepoint::{Payload, TracepointFormat, TracingData};
use pmc_perfdata::record::{Sample, Thread};
use pmc_sys::abi::TracepointField;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::error::{Error, Result};
use pmc_text::text::{self, glob};

/// Whether an event begins or ends an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventRole {
    /// The event begins an interval.
    Begin,
    /// The event ends an interval.
    End,
}

/// A property of an event that is part of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeySource {
    /// The thread in which the event happened.
    Thread,
    /// The process in which the event happened.
    Process,
    /// The CPU on which the event happened.
    Cpu,
    /// A field of the tracepoint.
    Field(String),
}

impl KeySource {
    /// Parses a word of `-k`. A leading dot marks a field whose name would otherwise have another meaning.
    pub(super) fn named(word: &str) -> Self {
        match word {
            "tid" | "thread" => Self::Thread,
            "process" | "tgid" => Self::Process,
            "cpu" => Self::Cpu,
            _ => Self::Field(word.strip_prefix('.').unwrap_or(word).to_owned()),
        }
    }

    fn description(&self) -> &str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Cpu => "CPU",
            Self::Field(name) => name,
        }
    }
}

/// What a begin event and its end event have in common: the same property, or one of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyPair {
    pub(super) begin: KeySource,
    pub(super) end: KeySource,
}

impl FromStr for KeyPair {
    type Err = Error;

    /// Parses a word of `-k`: `NAME` or `BEGIN=END`.
    fn from_str(text: &str) -> Result<Self> {
        let (begin, end) = text.split_once('=').unwrap_or((text, text));
        if begin.is_empty() || end.is_empty() {
            return Err(
                Error::usage("a name is missing").try_options("-k tid, -k dev,sector or -k pid=next_pid")
            );
        }
        Ok(Self { begin: KeySource::named(begin), end: KeySource::named(end) })
    }
}

/// One of the rules for an event.
#[derive(Debug, Clone)]
pub(super) struct EventRule {
    /// Index of the event's text in the request.
    pub(super) text: usize,
    /// Whether the event begins or ends an interval.
    pub(super) role: EventRole,
    /// The parts of the key.
    pub(super) key: Vec<KeySource>,
    /// A filter expression that pmc evaluates.
    pub(super) filter: Option<String>,
}

/// Rules for one kind of interval.
#[derive(Debug, Clone)]
pub(super) struct IntervalRules {
    /// The rules, in the order in which they apply to an event.
    pub(super) rules: Vec<EventRule>,
    /// Whether intervals with the same key nest, as calls of a recursive function do.
    pub(super) nests: bool,
}

impl IntervalRules {
    /// Returns the texts of the events with this role. `texts` are those of the request.
    pub(super) fn events(&self, texts: &[String], role: EventRole) -> Vec<String> {
        let of_role = self.rules.iter().filter(|rule| rule.role == role);
        of_role.map(|rule| texts[rule.text].clone()).collect()
    }

    /// Returns descriptions of the parts of the key.
    pub(super) fn key_descriptions(&self) -> Vec<String> {
        let of = |role| self.rules.iter().find(|rule| rule.role == role).map_or(&[][..], |rule| &rule.key);
        let pairs = of(EventRole::Begin).iter().zip(of(EventRole::End));
        pairs
            .map(|(begin, end)| match begin == end {
                true => begin.description().to_owned(),
                false => format!("{} = {}", begin.description(), end.description()),
            })
            .collect()
    }

    /// Finds the events of a recording by their names. Returns, for each event, the index of its text. A text
    /// may contain alternatives (`a|b`).
    ///
    /// # Errors
    /// Fails if one of the event texts matches no recorded event.
    pub(super) fn find(
        &self,
        texts: &[String],
        events: &[RecordedEvent],
        file: &str,
    ) -> Result<Vec<Option<usize>>> {
        let names: Vec<String> = events.iter().map(RecordedEvent::name).collect();
        // Of several alternatives (`a|b`), use the first one that the recording contains.
        let wanted: Vec<&str> = texts.iter().map(|text| alternative(text, &names)).collect();
        let text_of = |name: &String| wanted.iter().position(|text| is_named(text, name));
        let found: Vec<Option<usize>> = names.iter().map(text_of).collect();
        // The recording must contain at least one begin event and at least one end event.
        let has = |role| {
            let mut of_role = self.rules.iter().filter(|rule| rule.role == role);
            of_role.any(|rule| found.contains(&Some(rule.text)))
        };
        let Some(missing) = [EventRole::Begin, EventRole::End].into_iter().find(|role| !has(*role)) else {
            return Ok(found);
        };
        let missing = self.events(texts, missing).join(" or ");
        let mut shown: Vec<&str> = names.iter().map(String::as_str).collect();
        shown.dedup();
        let near = text::nearest(&missing, shown.iter().copied(), 1);
        let error = Error::new(format!("{file} has no event {missing}"))
            .why(format!("it contains {}", shown[..shown.len().min(8)].join(", ")));
        let texts = texts.iter().map(|text| format!("-e {text}")).collect::<Vec<_>>().join(" ");
        let error = match near.first() {
            Some(near) => error.try_this(format!("{near}, if that is the event you mean")),
            None => error,
        };
        Err(error.try_this(format!("pmc record {texts} …, then pmc latency with the same events")))
    }

    /// Binds the rules to events. `text_of` is the index of each event's text.
    ///
    /// # Errors
    /// Fails if an event lacks a field, or a filter is invalid.
    pub(super) fn bind(
        &self,
        events: &[RecordedEvent],
        text_of: &[Option<usize>],
        tracing: Option<TracingData>,
    ) -> Result<BoundRules> {
        let is_byte_swapped = tracing.as_ref().is_some_and(|tracing| tracing.is_byte_swapped);
        let mut rules: Vec<Vec<BoundRule>> = Vec::new();
        for (event, text) in events.iter().zip(text_of) {
            let is_tracepoint = event.attr.kind() == kind::TRACEPOINT;
            let format = tracing.as_ref().and_then(|tracing| tracing.format(event.attr.config()));
            let format = format.filter(|_| is_tracepoint);
            if text.is_some() && (event.attr.get(Flag::Freq) || event.attr.period() > 1) {
                return Err(Error::new(format!("{}: not every occurrence is recorded", event.name()))
                    .why("the event is sampled by frequency or period, so most pairs are incomplete")
                    .try_options("record each occurrence: omit -F and period=, or use -c 1"));
            }
            let of_event = self.rules.iter().filter(|rule| Some(rule.text) == *text);
            rules.push(of_event.map(|rule| bind(rule, &event.name(), format)).collect::<Result<_>>()?);
        }
        Ok(BoundRules { rules, is_byte_swapped })
    }
}

/// Returns the first alternative in a text that is the name of an event.
fn alternative<'t>(text: &'t str, names: &[String]) -> &'t str {
    let mut all = text.split('|');
    let first = all.clone().next().unwrap_or(text);
    all.find(|text| names.iter().any(|name| is_named(text, name))).unwrap_or(first)
}

/// Whether the name of a recorded event matches the user's text: the names are equal, possibly without
/// modifiers, or the text is a pattern that matches.
fn is_named(text: &str, name: &str) -> bool {
    fn plain(name: &str) -> &str {
        match name.rsplit_once(':') {
            Some((before, modifiers))
                if before.split(':').count() == 2
                    && !before.contains('/')
                    && modifiers.bytes().all(|letter| b"ukhHGpPSDIWeb".contains(&letter)) =>
            {
                before
            }
            _ => name,
        }
    }
    let matches = |text: &str| glob::matches(plain(text), plain(name));
    text == name || text.split(',').any(matches)
}

fn bind(rule: &EventRule, name: &str, format: Option<&TracepointFormat>) -> Result<BoundRule> {
    let source = |source: &KeySource| {
        Ok(match source {
            KeySource::Thread => BoundSource::Thread,
            KeySource::Process => BoundSource::Process,
            KeySource::Cpu => BoundSource::Cpu,
            KeySource::Field(field) => match format.map(|format| (format, format.field(field))) {
                Some((_, Some(field))) => BoundSource::Field(field.clone()),
                Some((format, None)) => return Err(no_field(name, field, format)),
                None => {
                    return Err(Error::usage(format!("-k {field}: {name} has no fields"))
                        .why("only tracepoints have fields")
                        .try_options("-k tid, -k process or -k cpu"));
                }
            },
        })
    };
    let key = rule.key.iter().map(source).collect::<Result<_>>()?;
    let filter = match (&rule.filter, format) {
        (None, _) => None,
        (Some(text), Some(format)) => {
            let wrong = |why| Error::usage(format!("--filter {text:?}: {why}"));
            Some(FieldFilter::parse(text, format).map_err(wrong)?)
        }
        (Some(_), None) => {
            return Err(Error::usage(format!("--filter: `{name}` is not a tracepoint"))
                .why("only tracepoints have fields; a filter applies to the preceding event"));
        }
    };
    Ok(BoundRule { role: rule.role, key, filter })
}

fn no_field(name: &str, field: &str, format: &TracepointFormat) -> Error {
    let own = format.fields.iter().filter(|field| !field.is_common()).map(|field| field.name.as_str());
    let fields: Vec<&str> = own.collect();
    Error::usage(format!("-k {field}: {name} has no such field"))
        .why(format!("its fields are {}", fields.join(", ")))
        .try_options("-k BEGIN=END, if the fields of the two events have different names: -k pid=next_pid")
}

#[derive(Debug)]
enum BoundSource {
    Thread,
    Process,
    Cpu,
    Field(TracepointField),
}

#[derive(Debug)]
pub(super) struct BoundRule {
    pub(super) role: EventRole,
    key: Vec<BoundSource>,
    filter: Option<FieldFilter>,
}

/// The rules for the events of a recording.
#[derive(Debug)]
pub(super) struct BoundRules {
    rules: Vec<Vec<BoundRule>>,
    is_byte_swapped: bool,
}

/// A key: for each part, a number, or the length and the bytes of a string.
pub(super) type IntervalKey = SmallVec<[u8; 16]>;

/// Maximum length of a string in a key, in bytes.
const MAX_TEXT: usize = 255;

impl BoundRules {
    /// Whether there is a rule for this event.
    pub(super) fn has(&self, event: usize) -> bool {
        self.rules.get(event).is_some_and(|rules| !rules.is_empty())
    }

    /// Calls `visit` with each rule whose filter the sample passes, and with the sample's key, if it has all
    /// parts.
    pub(super) fn each(
        &self,
        event: usize,
        sample: &Sample<'_>,
        mut visit: impl FnMut(EventRole, Option<IntervalKey>),
    ) {
        let Some(rules) = self.rules.get(event).filter(|rules| !rules.is_empty()) else { return };
        let needs_payload = rules.iter().any(BoundRule::needs_payload);
        let bytes = if needs_payload { sample.parts().and_then(|parts| parts.raw) } else { None };
        let payload = bytes.map(|bytes| Payload { bytes, is_byte_swapped: self.is_byte_swapped });
        for rule in rules {
            let passes = |filter: &FieldFilter| payload.is_some_and(|payload| filter.passes(payload));
            if rule.filter.as_ref().is_none_or(passes) {
                visit(rule.role, rule.key(sample, payload));
            }
        }
    }
}

impl BoundRule {
    fn needs_payload(&self) -> bool {
        self.filter.is_some() || self.key.iter().any(|source| matches!(source, BoundSource::Field(_)))
    }

    fn key(&self, sample: &Sample<'_>, payload: Option<Payload<'_>>) -> Option<IntervalKey> {
        let mut key = IntervalKey::new();
        let thread = || sample.thread().unwrap_or(Thread { pid: -1, tid: -1 });
        for source in &self.key {
            let number = match source {
                BoundSource::Thread => i64::from(thread().tid),
                BoundSource::Process => i64::from(thread().pid),
                BoundSource::Cpu => i64::from(sample.cpu()?),
                BoundSource::Field(field) => match payload?.text_in(field) {
                    Some(text) => {
                        let text = &text[..text.len().min(MAX_TEXT)];
                        key.push(text.len() as u8);
                        key.extend_from_slice(text);
                        continue;
                    }
                    None => payload?.number_in(field)?,
                },
            };
            key.extend_from_slice(&number.to_ne_bytes());
        }
        Some(key)
    }

    /// Formats the values in a key; see [`BoundRules::values`].
    fn values(&self, key: &[u8], thread_name: &dyn Fn(i32) -> Option<String>) -> Option<Vec<String>> {
        let mut rest = key;
        let mut values = Vec::new();
        for source in &self.key {
            match source {
                BoundSource::Field(field) if field.is_text() => {
                    let (len, after) = rest.split_first()?;
                    let (text, after) = after.split_at_checked((*len).into())?;
                    values.push(String::from_utf8_lossy(text).into_owned());
                    rest = after;
                }
                source => {
                    let (number, after) = rest.split_first_chunk()?;
                    let number = i64::from_ne_bytes(*number);
                    values.push(match source {
                        BoundSource::Field(field) if field.name == "dev" => device(number as u64),
                        BoundSource::Field(field) if field.name == "pid" || field.name.ends_with("_pid") => {
                            let name = i32::try_from(number).ok().and_then(thread_name);
                            name.map_or_else(|| number.to_string(), |name| format!("{name}/{number}"))
                        }
                        BoundSource::Field(field) if !field.is_signed => (number as u64).to_string(),
                        _ => number.to_string(),
                    });
                    rest = after;
                }
            }
        }
        Some(values)
    }
}

/// Formats a device number as tracepoints do: `259,1`.
fn device(number: u64) -> String {
    format!("{},{}", number >> 20 & 0xfff, number & 0xf_ffff)
}

impl BoundRules {
    /// Formats the values in the key of a begin event. `thread_name` returns the name of a thread.
    pub(super) fn values(&self, key: &[u8], thread_name: &dyn Fn(i32) -> Option<String>) -> Vec<String> {
        let mut begins = self.rules.iter().flatten().filter(|rule| rule.role == EventRole::Begin);
        begins.find_map(|rule| rule.values(key, thread_name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_without_modifiers() {
        for (text, name, is) in [
            ("sched:sched_switch", "sched:sched_switch", true),
            ("sched:sched_switch", "sched:sched_switch:u", true),
            ("sched:sched_switch:k", "sched:sched_switch", true),
            ("sched:sched_wakeup*", "sched:sched_wakeup_new", true),
            ("sched:sched_[st]witch", "sched:sched_switch", true),
            ("sched:sched_wakeup", "sched:sched_wakeup_new", false),
            ("uprobe:/bin/sh:main", "uprobe:/bin/sh:main", true),
            ("uprobe:/bin/sh:main", "uprobe:/bin/sh:main%return", false),
        ] {
            assert_eq!(is_named(text, name), is, "{text} {name}");
        }
    }

    #[test]
    fn words_of_keys_have_their_meaning() {
        assert_eq!(KeySource::named("tid"), KeySource::Thread);
        assert_eq!(KeySource::named(".cpu"), KeySource::Field("cpu".to_owned()));
        assert_eq!(KeySource::named("pid"), KeySource::Field("pid".to_owned()));
        assert_eq!(device(259 << 20 | 1), "259,1");
    }
}
