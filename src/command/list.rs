//! `pmc list`: finds the events that were asked for, tries each, and shows them as they come.
//!
//! Wires `event::listing` (what there is), `counter::open` (what opens) and the view; formats nothing.

use std::io::{self, Write};

use super::destination::Destination;
use super::pager::Output;
use super::reasons::{cleaned, no_tracepoint, why};
use crate::cli::list::List;
use crate::counter::facts::Facts;
use crate::counter::open::{OpenCache, TrialOpen};
use crate::counter::refusal::Refusal;
use crate::error::{Error, Exit, Result};
use crate::event::listing::{self, Kind, Listed};
use crate::event::{glob, parse};
use crate::host::Host;
use crate::profile::catalog::{self, Catalog, Encoding, Entry, Field, Opens, Unreadable};
use crate::profile::metrics::library::Definition;
use crate::profile::metrics::named::{NAMED, of_group};
use crate::sys::process;
use crate::terminal::Stream;
use crate::text;
use crate::view;

/// Runs it.
///
/// # Errors
/// When nothing is found, with the names that come near; and those of writing.
pub(super) fn run(typed: &List) -> Result<Exit> {
    let host = Host::live();
    let wanted = Wanted::new(typed, &host)?;
    let write = |out: &mut dyn Write| match (typed.names, typed.raw_dump) {
        (true, _) => names(&host, &wanted, out),
        (_, true) => raw_dump(&host, &wanted, out),
        _ => events(&host, &wanted, typed, out),
    };
    let failed = |error| Error::output("the list of events", error);
    let find = |out: &mut dyn Write| match write(out).map_err(failed)? {
        true => Ok(()),
        false => Err(wanted.nothing(&host)),
    };
    if let Some(path) = &typed.output {
        Destination { path, option: "-o", keeps: false }.write(find)?;
    } else {
        let mut out = Output::new();
        find(&mut out)?;
        out.finish().map_err(failed)?;
    }
    Ok(Exit::Done)
}

/// What was asked for: kinds and PMUs narrow the list, words and patterns search in it.
struct Wanted {
    kinds: Vec<Kind>,
    pmus: Vec<String>,
    words: Vec<String>,
    metrics: Metrics,
    /// Nothing but metrics was asked for.
    only_metrics: bool,
}

/// What of the metrics is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Metrics {
    /// Events were asked for, and they are none.
    None,
    /// Each, with the events or alone.
    Each,
    /// The names of their groups.
    Groups,
}

impl Wanted {
    fn new(typed: &List, host: &Host) -> Result<Self> {
        let mut wanted = Self {
            kinds: Vec::new(),
            pmus: Vec::new(),
            words: Vec::new(),
            metrics: Metrics::None,
            only_metrics: false,
        };
        for word in &typed.words {
            match (Kind::named(word), word.as_str()) {
                (Some(kind), _) => wanted.kinds.push(kind),
                (_, "metric" | "metrics") => wanted.metrics = Metrics::Each,
                (_, "metricgroup" | "metricgroups") => wanted.metrics = Metrics::Groups,
                _ if host.pmu(word).is_some() => wanted.pmus.push(word.clone()),
                _ => wanted.words.push(word.clone()),
            }
        }
        if let Some(pmu) = &typed.unit {
            let fits = |name: &String| name == pmu || glob::is_pattern(pmu) && glob::matches(pmu, name);
            for name in host.pmu_names().into_iter().filter(fits) {
                // The kernel's own PMUs have the generic names.
                match Kind::named(&name) {
                    Some(kind) => wanted.kinds.push(kind),
                    None => wanted.pmus.push(name),
                }
            }
            if wanted.pmus.is_empty() && wanted.kinds.is_empty() {
                let names = host.pmu_names().join(", ");
                return Err(Error::new(format!("there is no PMU {}", cleaned(pmu)))
                    .try_this(format!("one of: {}", cleaned(names))));
            }
        }
        wanted.only_metrics = wanted.metrics != Metrics::None;
        if wanted.metrics == Metrics::None && wanted.kinds.is_empty() && wanted.pmus.is_empty() {
            wanted.metrics = Metrics::Each;
        }
        Ok(wanted)
    }

    fn kind(&self, kind: Kind) -> bool {
        let of_a_pmu = matches!(kind, Kind::Pmu | Kind::Raw) && !self.pmus.is_empty();
        let names_none = self.kinds.is_empty() && self.pmus.is_empty();
        self.kinds.contains(&kind) || of_a_pmu || names_none && !self.only_metrics
    }

    /// The metrics that are to be shown, by name or group.
    fn metrics(&self) -> impl Iterator<Item = &'static Definition<'static>> {
        let fits = |metric: &&Definition<'_>| {
            let texts = [metric.name, metric.groups, metric.help];
            let names = || texts[..2].iter().chain(metric.aliases);
            let is_found = |word: &String| match glob::is_pattern(word) {
                true => names().any(|name| glob::matches(word, name)),
                false => texts.iter().chain(metric.aliases).any(|text| contains(text, word)),
            };
            self.words.is_empty() || self.words.iter().any(is_found)
        };
        let all = NAMED.iter().filter(|_| self.metrics != Metrics::None);
        all.filter(fits)
    }

    fn takes(&self, listed: &Listed) -> bool {
        // A PMU narrows what is a PMU's; a kind that was asked for as well stays whole.
        let pmu_fits = self.pmus.is_empty()
            || self.kinds.contains(&listed.kind)
            || listed.pmu.as_ref().is_some_and(|pmu| self.pmus.contains(pmu));
        let names = || std::iter::once(listed.name.as_str()).chain(listed.aliases.iter().copied());
        let fits = |word: &String| {
            if glob::is_pattern(word) {
                return names().any(|name| glob::matches(word, name));
            }
            names().chain([listed.text.as_str()]).any(|text| contains(text, word))
        };
        pmu_fits && (self.words.is_empty() || self.words.iter().any(fits))
    }

    /// Nothing fits: what may have been meant.
    fn nothing(&self, host: &Host) -> Error {
        let all: Vec<String> = listing::names(host).map(|name| cleaned(&name)).collect();
        let words: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
        let mut near: Vec<&str> = self
            .words
            .iter()
            .flat_map(|word| text::nearest(word, all.iter().map(String::as_str), 3))
            .collect();
        near.dedup();
        let error = match words.is_empty() {
            true => Error::new("there is no event of this kind here"),
            false => Error::new(format!("no event has {} in its name or description", words.join(" or "))),
        };
        match near.is_empty() {
            true => error.try_this("pmc list without words shows all there are"),
            false => error.try_this(format!("did you mean {}?", near.join(", "))),
        }
    }
}

/// Case does not matter; ASCII is enough for event names.
fn contains(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty() || text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

fn names(host: &Host, wanted: &Wanted, out: &mut dyn Write) -> io::Result<bool> {
    if wanted.words.is_empty() && wanted.kinds.is_empty() && wanted.pmus.is_empty() && !wanted.only_metrics {
        for name in listing::names(host) {
            writeln!(out, "{}", cleaned(&name))?;
        }
        return Ok(true);
    }
    let mut found = false;
    for listed in select(host, wanted).filter(|listed| !listed.form) {
        for name in std::iter::once(listed.name.as_str()).chain(listed.aliases.iter().copied()) {
            writeln!(out, "{}", cleaned(name))?;
        }
        found = true;
    }
    if wanted.only_metrics {
        for name in metric_names(wanted) {
            writeln!(out, "{name}")?;
            found = true;
        }
    }
    Ok(found)
}

/// The names of what opens here on one line: perf's form, which shells split at its spaces.
fn raw_dump(host: &Host, wanted: &Wanted, out: &mut dyn Write) -> io::Result<bool> {
    let facts = Facts::own(host);
    let cache = OpenCache::new(&facts.online);
    let mut trier = Trier { host, facts: &facts, cache, tried: false };
    let mut found = false;
    // Of two spellings of an event perf knows the first; FreeBSD's are no words of perf's.
    for listed in select(host, wanted).filter(|listed| !listed.form && listed.kind != Kind::FreeBsd) {
        let entry = trier.entry(&listed, false, false);
        if entry.opens != Opens::No {
            write!(out, "{} ", entry.name)?;
        }
        found = true;
    }
    // Metrics are no events: they are named where they are asked for.
    if wanted.only_metrics {
        for name in metric_names(wanted) {
            write!(out, "{name} ")?;
            found = true;
        }
    }
    writeln!(out)?;
    out.flush()?;
    if trier.cache.is_slow_to_close() {
        process::close_behind();
    }
    Ok(found)
}

/// The names of the metrics, or of their groups.
fn metric_names(wanted: &Wanted) -> Vec<&'static str> {
    let name = |metric: &'static Definition<'static>| match wanted.metrics {
        Metrics::Groups => metric.groups,
        _ => metric.name,
    };
    let mut names: Vec<&str> = wanted.metrics().map(name).collect();
    names.dedup();
    names
}

/// The metrics as entries: they need no opening, only their events do.
fn metrics(wanted: &Wanted) -> Vec<Entry> {
    let entry = |name: &str, kind, text: String, means| Entry {
        name: name.to_owned(),
        aliases: Vec::new(),
        kind,
        text,
        pmu: None,
        means,
        unit: String::new(),
        scale: 1.0,
        encoding: None,
        opens: Opens::Form,
        reason: None,
        fields: None,
    };
    if wanted.metrics == Metrics::Groups {
        let members = |group: &str| of_group(group).map(|metric| metric.name).collect::<Vec<_>>().join(", ");
        let groups = metric_names(wanted).into_iter();
        return groups.map(|group| entry(group, "metricgroup", members(group), None)).collect();
    }
    let metric = |metric: &'static Definition<'static>| Entry {
        aliases: metric.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        unit: metric.scale.to_owned(),
        ..entry(metric.name, "metric", metric.help.to_owned(), Some(metric.expression.to_owned()))
    };
    wanted.metrics().map(metric).collect()
}

fn select<'a>(host: &'a Host, wanted: &'a Wanted) -> impl Iterator<Item = Listed> + 'a {
    let kinds = Kind::ALL.into_iter().filter(|&kind| wanted.kind(kind));
    kinds.flat_map(|kind| listing::of_kind(host, kind)).filter(|listed| wanted.takes(listed))
}

/// Writes the events; `false` if there are none.
fn events(host: &Host, wanted: &Wanted, typed: &List, out: &mut dyn Write) -> io::Result<bool> {
    let facts = Facts::own(host);
    let cache = OpenCache::new(&facts.online);
    let mut trier = Trier { host, facts: &facts, cache, tried: false };
    // The requests of thousands of tracepoints are thousands of files: read when they are shown.
    let exact = typed.long || typed.json;
    let events = select(host, wanted).map(|listed| trier.entry(&listed, exact, typed.long));
    let mut entries = events.chain(metrics(wanted)).map(|mut entry| {
        if typed.no_desc {
            entry.text.clear();
        }
        entry
    });
    let unreadable = || -> Vec<Unreadable> {
        let asked = wanted.kind(Kind::Tracepoint);
        let error = host.tracepoint_systems().err().filter(|_| asked);
        let reason = error.map(|error| why("", no_tracepoint(error)));
        reason.map(|reason| Unreadable { kind: Kind::Tracepoint.word(), reason }).into_iter().collect()
    };
    if typed.json {
        let catalog =
            Catalog { version: catalog::VERSION, events: entries.collect(), unreadable: unreadable() };
        serde_json::to_writer_pretty(&mut *out, &catalog)?;
        writeln!(out)?;
        return Ok(true);
    }
    // A file has no edge.
    let terminal = Stream::Output.size().filter(|_| typed.output.is_none());
    let columns = terminal.map(|(columns, _)| usize::from(columns).max(60));
    let mut writer = view::list::Writer::new(out, columns, typed.long);
    let mut found = false;
    entries.try_for_each(|entry| {
        found = true;
        writer.entry(&entry)
    })?;
    drop(entries);
    let slow = trier.cache.is_slow_to_close();
    let unreadable = unreadable();
    let asked_for_them = wanted.words.is_empty() || wanted.words.iter().any(|word| word.contains(':'));
    if found || (asked_for_them && !unreadable.is_empty()) {
        writer.finish(&unreadable)?;
        found = true;
    }
    // What was tried is closed when all is on the screen, and nobody needs to wait for it.
    out.flush()?;
    if slow {
        process::close_behind();
    }
    Ok(found)
}

/// Turns what is listed into entries, trying each.
struct Trier<'a> {
    host: &'a Host,
    facts: &'a Facts,
    cache: OpenCache,
    /// A tracepoint has been tried and stands for the rest.
    tried: bool,
}

impl Trier<'_> {
    fn entry(&mut self, listed: &Listed, exact: bool, long: bool) -> Entry {
        let tracepoint = listed.kind == Kind::Tracepoint;
        let mut entry = Entry {
            name: cleaned(&listed.name),
            aliases: listed.aliases.iter().map(|&alias| alias.to_owned()).collect(),
            kind: listed.kind.word(),
            text: cleaned(&listed.text),
            pmu: listed.pmu.as_ref().map(cleaned),
            means: listed.means.as_ref().map(cleaned),
            unit: cleaned(&listed.unit),
            scale: listed.scale,
            encoding: None,
            opens: Opens::Form,
            reason: None,
            fields: (tracepoint && long).then(|| self.fields(&listed.name)),
        };
        if listed.form {
            return entry;
        }
        if tracepoint && self.tried && !exact {
            entry.opens = Opens::AsAnother;
            return entry;
        }
        self.resolve(listed, &mut entry);
        entry
    }

    /// Fills in the request and whether it opens.
    fn resolve(&mut self, listed: &Listed, entry: &mut Entry) {
        let groups = match parse(&listed.name, self.host) {
            Ok(groups) => groups,
            // A FreeBSD name whose Linux event is not to be had: that one's own trouble says more.
            Err(wrong) => {
                let wrong =
                    listed.means.as_ref().and_then(|means| parse(means, self.host).err()).unwrap_or(wrong);
                let cause =
                    wrong.cause.map_or(wrong.message.clone(), |cause| format!("{}: {cause}", wrong.message));
                let remedy = cleaned(wrong.remedy.unwrap_or_default());
                entry.opens = Opens::No;
                entry.reason = Some(catalog::Why { missing: "", errno: None, cause: cleaned(cause), remedy });
                return;
            }
        };
        let Some(spec) = groups.into_iter().next().and_then(|group| group.events.into_iter().next()) else {
            return;
        };
        entry.encoding = spec.attr().map(|attr| Encoding {
            kind: attr.kind(),
            config: attr.config(),
            config1: attr.config1(),
            config2: attr.config2(),
        });
        let stands_in = listed.kind == Kind::Tracepoint && std::mem::replace(&mut self.tried, true);
        let because = |refusal: Refusal| Some(why("", refusal.explain(self.facts)));
        (entry.opens, entry.reason) = match self.cache.trial(&spec) {
            TrialOpen::Opens if stands_in => (Opens::AsAnother, None),
            TrialOpen::Opens => (Opens::Yes, None),
            TrialOpen::UserOnly(refusal) => (Opens::UserOnly, because(refusal)),
            TrialOpen::Refused(refusal) => (Opens::No, because(refusal)),
        };
    }

    fn fields(&self, name: &str) -> Vec<Field> {
        let Some((system, name)) = name.split_once(':') else { return Vec::new() };
        let fields = self.host.tracepoint_fields(system, name).unwrap_or_default();
        let field = |field: crate::abi::TracepointField| Field {
            name: cleaned(&field.name),
            declaration: cleaned(&field.declaration),
            offset: field.offset,
            size: field.size,
        };
        fields.into_iter().map(field).collect()
    }
}
