//! `pmc list`: finds the requested events, tries to open each event, and prints the results one by one.
//!
//! Connects `event::listing`, which finds events, `counter::open`, which tries to open them, and the view.
//! Does not format.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::cli::list::ListArgs;
use pmc_analysis::profile::catalog::{
    self, Catalog, CatalogEntry, CatalogField, Encoding, EventAvailability, ImportSummary, MissingReason,
    OmittedEntries, PerfListEntry, UnreadableKind, VendorInfo,
};
use pmc_analysis::profile::metrics::library::MetricDefinition;
use pmc_analysis::profile::metrics::named::{NAMED, of_group};
use pmc_command::destination::Destination;
use pmc_command::pager::PagedOutput;
use pmc_command::reasons::{cleaned, no_tracepoint, why};
use pmc_command::values::Limit;
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::open::{OpenCache, TrialOpen};
use pmc_events::counter::refusal::Refusal;
use pmc_events::event::listing::{self, EventKind, ListedEvent, ListingSources, MarkersByFile, Precise};
use pmc_events::event::parse;
use pmc_events::event::vendor::{self, Vendor};
use pmc_symbols::symbol::build_id_cache::BuildIdCache;
use pmc_sys::error::{Advice, AdvisedOption, Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::sys::process;
use pmc_text::terminal::Stream;
use pmc_text::text::{self, glob};

/// What `pmc list` does.
pub(super) enum ListRequest {
    /// Imports event tables from this directory.
    Import(PathBuf),
    /// Lists events.
    List(EventList),
}

/// Which events to list, and how.
#[derive(Default)]
pub(super) struct EventList {
    /// Kinds, search words and patterns; without any, all events.
    pub(super) words: Vec<String>,
    /// The name or pattern of the PMUs.
    pub(super) unit: Option<String>,
    pub(super) deprecated: bool,
    /// Whether to show fields, aliases, units and formulas.
    pub(super) long: bool,
    /// Whether to omit descriptions.
    pub(super) no_descriptions: bool,
    /// Maximum number of events.
    pub(super) limit: Option<Limit>,
    pub(super) form: ListForm,
    /// The file to write; `None` is standard output.
    pub(super) output: Option<PathBuf>,
}

/// How to print a list.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ListForm {
    #[default]
    Text,
    Json,
    /// Names only, one per line, without trying them.
    Names,
    /// The names of usable events, on one line.
    RawDump,
}

impl ListArgs {
    /// Converts the options.
    pub(super) fn request(self) -> ListRequest {
        if let Some(from) = self.import {
            return ListRequest::Import(from);
        }
        ListRequest::List(EventList {
            words: self.words,
            unit: self.unit,
            deprecated: self.deprecated,
            long: self.long,
            no_descriptions: self.no_desc,
            limit: self.limit,
            form: match (self.json, self.names, self.raw_dump) {
                (true, ..) => ListForm::Json,
                (_, true, _) => ListForm::Names,
                (_, _, true) => ListForm::RawDump,
                _ => ListForm::Text,
            },
            output: self.output,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if nothing matches (the error suggests similar names), or a write fails.
pub(super) fn run(request: &ListRequest) -> Result<Exit> {
    let host = Host::live();
    match request {
        ListRequest::Import(from) => import(from, &host),
        ListRequest::List(list) => print(list, &host),
    }
}

fn print(list: &EventList, host: &Host) -> Result<Exit> {
    let wanted = ListSelection::new(list, host)?;
    let write = |out: &mut dyn Write| match list.form {
        ListForm::Names => names(&wanted, out),
        ListForm::RawDump => raw_dump(&wanted, out),
        ListForm::Text | ListForm::Json => events(&wanted, list, out),
    };
    let failed = |error| Error::output("the list of events", error);
    let find = |out: &mut dyn Write| match write(out).map_err(failed)? {
        true => Ok(()),
        false => Err(wanted.nothing()),
    };
    if let Some(path) = &list.output {
        Destination { path, option: AdvisedOption::Named("-o"), keeps: false }.write(find)?;
    } else {
        let mut out = PagedOutput::open();
        find(&mut out)?;
        out.finish().map_err(failed)?;
    }
    Ok(Exit::Done)
}

/// Imports event tables from other programs' data, and prints the result.
fn import(from: &Path, host: &Host) -> Result<Exit> {
    let Some(into) = host.imported_events() else {
        return Err(Error::new("no directory for imported events")
            .why("neither XDG_DATA_HOME nor HOME is set, or the directory belongs to another user")
            .try_this("XDG_DATA_HOME=FOLDER pmc list --import …"));
    };
    let summary = vendor::import::import(from, &into)?;
    let vendor = Vendor::find(host);
    let ours = vendor.models().iter().find(|model| model.imported_events());
    let came = ImportSummary {
        form: summary.form,
        events: summary.events,
        metrics: summary.metrics,
        models: summary.models,
        left_out: summary.left_out,
        unread: summary
            .unread
            .iter()
            .map(|(file, why)| (cleaned(file.to_string_lossy()), cleaned(why)))
            .collect(),
        folder: cleaned(into.to_string_lossy()),
        cpu: vendor.id().map(cleaned),
        model: ours.map(|model| cleaned(&model.name)),
    };
    let mut out = PagedOutput::open();
    pmc_view::list::imported(&mut out, &came)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the import summary", error))?;
    Ok(Exit::Done)
}

/// The parsed request. Kinds and PMUs select events, `--unit` narrows the selection, and words and patterns
/// filter it.
struct ListSelection<'h> {
    sources: ListingSources<'h>,
    kinds: Vec<EventKind>,
    pmus: Vec<String>,
    words: Vec<String>,
    unit: Option<UnitFilter>,
    metrics: MetricChoice,
    /// Whether only metrics are requested.
    only_metrics: bool,
    /// Whether to include events that the vendor has deprecated.
    deprecated: bool,
}

/// The metrics to show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricChoice {
    /// None, because only events are requested.
    None,
    /// All metrics, including those without events.
    Each,
    /// Only the names of the metric groups.
    Groups,
}

/// The PMUs that `--unit` selects; all other PMUs are hidden.
struct UnitFilter {
    /// The name as typed, without control characters.
    name: String,
    pmus: Vec<String>,
    /// The event kinds of the kernel's built-in PMUs, whose events have generic names.
    kinds: Vec<EventKind>,
}

impl UnitFilter {
    /// Returns the PMUs that match this name or pattern.
    fn named(typed: &str, sources: &ListingSources<'_>) -> Result<Self> {
        let mut unit = Self { name: cleaned(typed), pmus: Vec::new(), kinds: Vec::new() };
        let fits = |name: &&String| *name == typed || glob::is_pattern(typed) && glob::matches(typed, name);
        for name in sources.pmus.iter().filter(fits) {
            match EventKind::named(name) {
                Some(kind) => unit.kinds.push(kind),
                None => unit.pmus.push(name.clone()),
            }
        }
        if unit.pmus.is_empty() && unit.kinds.is_empty() {
            let names = sources.host.pmu_names().join(", ");
            return Err(Error::new(format!("unknown PMU {}", unit.name))
                .try_this(format!("one of: {}", cleaned(names))));
        }
        Ok(unit)
    }

    /// Whether events of this kind can belong to the selected PMUs.
    fn has_kind(&self, kind: EventKind) -> bool {
        self.kinds.contains(&kind) || belongs_to_pmu(kind) && !self.pmus.is_empty()
    }
}

/// Whether the names of this kind of events include the PMU.
fn belongs_to_pmu(kind: EventKind) -> bool {
    matches!(kind, EventKind::Pmu | EventKind::Vendor | EventKind::Raw)
}

/// Whether the PMU is one of `pmus`, or an instance of one.
fn is_among(pmus: &[String], pmu: &str) -> bool {
    pmus.iter().any(|asked| listing::is_same_pmu(asked, pmu))
}

impl<'h> ListSelection<'h> {
    fn new(list: &EventList, host: &'h Host) -> Result<Self> {
        let mut wanted = Self {
            sources: ListingSources::new(host).with_markers(markers),
            kinds: Vec::new(),
            pmus: Vec::new(),
            words: Vec::new(),
            unit: None,
            metrics: MetricChoice::None,
            only_metrics: false,
            deprecated: list.deprecated,
        };
        let pmus = &wanted.sources.pmus;
        for word in &list.words {
            match (EventKind::named(word), word.as_str()) {
                // In perf, this word selects all named events of all PMUs.
                (Some(EventKind::Pmu), _) => wanted.kinds.extend([EventKind::Pmu, EventKind::Vendor]),
                (Some(kind), "sdt") => wanted.kinds.extend([kind, EventKind::Marker]),
                (Some(kind), _) => wanted.kinds.push(kind),
                (_, "metric" | "metrics") => wanted.metrics = MetricChoice::Each,
                (_, "metricgroup" | "metricgroups") => wanted.metrics = MetricChoice::Groups,
                _ if pmus.contains(word) => wanted.pmus.push(word.clone()),
                _ => wanted.words.push(word.clone()),
            }
        }
        wanted.unit = list.unit.as_ref().map(|unit| UnitFilter::named(unit, &wanted.sources)).transpose()?;
        wanted.only_metrics = wanted.metrics != MetricChoice::None;
        if wanted.metrics == MetricChoice::None && wanted.is_of_all_kinds() && wanted.unit.is_none() {
            wanted.metrics = MetricChoice::Each;
        }
        Ok(wanted)
    }

    /// Whether neither a kind nor a PMU is selected.
    fn is_of_all_kinds(&self) -> bool {
        self.kinds.is_empty() && self.pmus.is_empty()
    }

    fn kind(&self, kind: EventKind) -> bool {
        let is_named = self.kinds.contains(&kind)
            || belongs_to_pmu(kind) && !self.pmus.is_empty()
            || self.is_of_all_kinds() && !self.only_metrics;
        is_named && self.unit.as_ref().is_none_or(|unit| unit.has_kind(kind))
    }

    /// Whether the names or the text contain one of the words, or a pattern matches a name.
    fn has_word<'a>(&self, names: impl Iterator<Item = &'a str> + Clone, text: &'a str) -> bool {
        let is_found = |word: &String| match glob::is_pattern(word) {
            true => names.clone().any(|name| glob::matches(word, name)),
            false => names.clone().chain([text]).any(|own| contains(own, word)),
        };
        self.words.is_empty() || self.words.iter().any(is_found)
    }

    /// Returns the selected built-in metrics.
    fn metrics(&self) -> impl Iterator<Item = &'static MetricDefinition<'static>> {
        let fits = |metric: &&MetricDefinition<'_>| {
            let names = [metric.name, metric.groups].into_iter().chain(metric.aliases.iter().copied());
            // Built-in metrics do not depend on a particular PMU.
            self.metrics != MetricChoice::None && self.unit.is_none() && self.has_word(names, metric.help)
        };
        NAMED.iter().filter(fits)
    }

    /// Returns the selected metrics from the vendor's tables for this machine's cores.
    fn vendor_metrics(&self) -> impl Iterator<Item = vendor::VendorMetric<'_>> {
        let ListingSources { pmus: here, vendor, .. } = &self.sources;
        let metrics = (self.metrics != MetricChoice::None).then(|| vendor.metrics()).into_iter().flatten();
        metrics.filter(move |metric| {
            let is_here = here.contains(metric.pmu)
                || metric.pmu.is_empty() && !here.is_empty()
                || vendor.is_of_named_cpu();
            let is_wanted = (self.pmus.is_empty() || is_among(&self.pmus, metric.pmu))
                && self.unit.as_ref().is_none_or(|unit| is_among(&unit.pmus, metric.pmu));
            let names = std::iter::once(metric.name).chain(metric.groups.split(';'));
            is_here && is_wanted && self.has_word(names, metric.text.unwrap_or_default())
        })
    }

    fn takes(&self, listed: &ListedEvent) -> bool {
        // A PMU filter applies only to PMU events. Other requested kinds are listed in full.
        let is_of = |pmus: &[String]| listed.pmu.as_ref().is_some_and(|pmu| is_among(pmus, pmu));
        let pmu_fits = (self.pmus.is_empty() || self.kinds.contains(&listed.kind) || is_of(&self.pmus))
            && self.unit.as_ref().is_none_or(|unit| unit.kinds.contains(&listed.kind) || is_of(&unit.pmus));
        if !self.deprecated && listed.manual.as_ref().is_some_and(|manual| manual.is_deprecated) {
            return false;
        }
        let names = std::iter::once(listed.name.as_str()).chain(listed.aliases.iter().copied());
        pmu_fits && self.has_word(names, &listed.text)
    }

    /// Returns the error for an empty list, with suggestions.
    fn nothing(&self) -> Error {
        let ListingSources { host, vendor, .. } = &self.sources;
        let all: Vec<String> = self.sources.names().map(|name| cleaned(&name)).collect();
        let words: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
        let mut near: Vec<&str> = self
            .words
            .iter()
            .flat_map(|word| text::nearest(word, all.iter().map(String::as_str), 3))
            .collect();
        near.dedup();
        let what = if self.only_metrics && self.is_of_all_kinds() { "metric" } else { "event" };
        let error = match (&self.unit, words.is_empty()) {
            (None, true) => Error::new(format!("no matching {what}s on this machine")),
            (Some(unit), true) => Error::new(format!("no matching {what}s on PMU {}", unit.name)),
            (unit, false) => {
                let of = unit.as_ref().map(|unit| format!(" of {}", unit.name)).unwrap_or_default();
                Error::new(format!("no {what}{of} has {} in its name or description", words.join(" or ")))
            }
        };
        let error = match &self.unit {
            Some(unit) if self.kinds.iter().any(|&kind| !unit.has_kind(kind)) => {
                error.why("generic and kernel events do not belong to a PMU")
            }
            _ => error,
        };
        let known = vendor.models().first().filter(|_| self.kinds.contains(&EventKind::Vendor));
        let error = match known.filter(|model| host.pmu(&model.pmu).is_none()) {
            Some(model) => error.why(format!(
                "the events in table {} require the PMU {}, which this machine does not have",
                model.name, model.pmu
            )),
            None => error,
        };
        match near.is_empty() {
            true => match &self.unit {
                None => error.try_this("pmc list shows all"),
                Some(unit) => {
                    error.try_this(format!("pmc list --unit '{}' shows all of its events", unit.name))
                }
            },
            false => error.try_this(format!("did you mean {}?", near.join(", "))),
        }
    }
}

/// Returns the markers in the files of the build-id cache, by file.
fn markers() -> MarkersByFile {
    let cached = BuildIdCache::usual().map(|cache| cache.markers()).unwrap_or_default();
    let is_here = |path: &Path| path.exists();
    cached
        .into_iter()
        .filter(|(path, _)| is_here(path))
        .map(|(path, names)| (path.to_string_lossy().into_owned(), names))
        .collect()
}

/// Whether `text` contains `word`. Ignores ASCII case only, which suffices for event names.
fn contains(text: &str, word: &str) -> bool {
    let (text, word) = (text.as_bytes(), word.as_bytes());
    word.is_empty() || text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Returns the names of all events, or of those that `words` request, without trying them.
pub(super) fn all_names(words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    let mut text = Vec::new();
    // Words that match nothing have no names.
    if let Ok(wanted) = ListSelection::new(&EventList { words, ..EventList::default() }, &Host::live()) {
        let _ = names(&wanted, &mut text);
    }
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

fn names(wanted: &ListSelection<'_>, out: &mut dyn Write) -> io::Result<bool> {
    let is_all = wanted.is_of_all_kinds() && wanted.unit.is_none() && wanted.words.is_empty();
    if is_all && !wanted.only_metrics {
        for name in wanted.sources.names() {
            writeln!(out, "{}", cleaned(&name))?;
        }
        return Ok(true);
    }
    let mut found = false;
    for listed in select(wanted).filter(|listed| !listed.form) {
        for name in std::iter::once(listed.name.as_str()).chain(listed.aliases.iter().copied()) {
            writeln!(out, "{}", cleaned(name))?;
        }
        found = true;
    }
    if wanted.only_metrics {
        // The words that -M accepts: metrics and metric groups.
        let groups = (wanted.metrics == MetricChoice::Each)
            .then(|| groups(wanted).into_iter().map(|(group, _)| group));
        for name in metric_names(wanted).into_iter().chain(groups.into_iter().flatten()) {
            writeln!(out, "{}", cleaned(name))?;
            found = true;
        }
    }
    Ok(found)
}

/// Prints the names of all events that can be opened on this machine. As in perf, all names are on one line,
/// separated by spaces, for use in shells.
fn raw_dump(wanted: &ListSelection<'_>, out: &mut dyn Write) -> io::Result<bool> {
    let host = wanted.sources.host;
    let facts = MachineFacts::own(host);
    let mut trier = EventTrier::new(host, &facts);
    let mut found = false;
    // perf does not print FreeBSD's event names.
    for listed in select(wanted).filter(|listed| !listed.form && listed.kind != EventKind::FreeBsd) {
        let entry = trier.entry(&listed, false, false);
        if entry.opens != EventAvailability::No {
            for name in [&entry.name].into_iter().chain(&entry.aliases) {
                write!(out, "{name} ")?;
            }
        }
        found = true;
    }
    if wanted.metrics != MetricChoice::None {
        for name in metric_names(wanted) {
            write!(out, "{} ", cleaned(name))?;
            found = true;
        }
    }
    writeln!(out)?;
    out.flush()?;
    if trier.cache.is_slow_to_close() {
        process::exit_while_child_closes();
    }
    Ok(found)
}

/// Returns the names of the metrics, or of their groups.
fn metric_names(wanted: &ListSelection<'_>) -> Vec<String> {
    if wanted.metrics == MetricChoice::Groups {
        return groups(wanted).into_iter().map(|(group, _)| group).collect();
    }
    let own = wanted.metrics().map(|metric| metric.name.to_owned());
    let mut names: Vec<String> =
        own.chain(wanted.vendor_metrics().map(|metric| metric.name.to_owned())).collect();
    names.dedup();
    names
}

/// Returns the metric groups and their members: first the built-in groups, then those from the vendor's
/// tables.
fn groups(wanted: &ListSelection<'_>) -> Vec<(String, Vec<String>)> {
    let mut own: Vec<(String, Vec<String>)> = Vec::new();
    for group in wanted.metrics().map(|metric| metric.groups) {
        if own.iter().all(|(known, _)| known != group) {
            own.push((group.to_owned(), of_group(group).map(|metric| metric.name.to_owned()).collect()));
        }
    }
    let mut theirs: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for metric in wanted.vendor_metrics() {
        for group in metric.groups.split(';').filter(|group| !group.is_empty()) {
            theirs.entry(group).or_default().push(metric.name.to_owned());
        }
    }
    for (group, members) in theirs {
        match own.iter_mut().find(|(known, _)| known == group) {
            Some((_, all)) => all.extend(members),
            None => own.push((group.to_owned(), members)),
        }
    }
    own
}

/// Returns the metrics as list entries. Only events can be opened, so the entries have no availability.
fn metrics(wanted: &ListSelection<'_>) -> Vec<CatalogEntry> {
    let entry = |name: &str, kind, text: String, means| CatalogEntry {
        name: cleaned(name),
        aliases: Vec::new(),
        kind,
        text,
        pmu: None,
        means,
        unit: String::new(),
        scale: 1.0,
        encoding: None,
        opens: EventAvailability::Form,
        reason: None,
        fields: None,
        manual: None,
    };
    if wanted.metrics == MetricChoice::Groups {
        let groups = groups(wanted).into_iter();
        return groups
            .map(|(group, members)| entry(&group, "metricgroup", members.join(", "), None))
            .collect();
    }
    let metric = |metric: &'static MetricDefinition<'static>| CatalogEntry {
        aliases: metric.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        unit: metric.scale.to_owned(),
        ..entry(metric.name, "metric", metric.help.to_owned(), Some(metric.expression.to_owned()))
    };
    let of_vendor = |metric: vendor::VendorMetric<'_>| {
        let model = wanted.sources.vendor.models().iter().find(|model| model.pmu == metric.pmu);
        let said = |text: &str| (!text.is_empty()).then(|| cleaned(text));
        let perf = PerfListEntry {
            unit: said(metric.pmu),
            metric_name: said(metric.name),
            metric_group: said(metric.groups),
            metric_expr: said(metric.expr),
            metric_threshold: said(metric.threshold),
            scale_unit: said(metric.scale),
            brief_description: metric.text.map(cleaned),
            ..PerfListEntry::default()
        };
        let text = cleaned(metric.text.unwrap_or_default());
        CatalogEntry {
            pmu: said(metric.pmu),
            manual: Some(VendorInfo {
                table: model.map(|model| model.name.clone()).unwrap_or_default(),
                imported: model.is_some_and(|model| model.imported_metrics()),
                perf,
                ..VendorInfo::default()
            }),
            ..entry(metric.name, "metric", text, said(metric.expr))
        }
    };
    wanted.metrics().map(metric).chain(wanted.vendor_metrics().map(of_vendor)).collect()
}

fn select<'a>(wanted: &'a ListSelection<'_>) -> impl Iterator<Item = ListedEvent> + 'a {
    let kinds = EventKind::ALL.into_iter().filter(|&kind| wanted.kind(kind));
    kinds.flat_map(|kind| wanted.sources.of_kind(kind)).filter(|listed| wanted.takes(listed))
}

/// Writes the requested events. Returns `false` if no event matches the request.
fn events(wanted: &ListSelection<'_>, list: &EventList, out: &mut dyn Write) -> io::Result<bool> {
    let host = wanted.sources.host;
    let facts = MachineFacts::own(host);
    let mut trier = EventTrier::new(host, &facts);
    // Read the attributes of tracepoints only if they are shown, because this requires opening thousands of
    // files.
    let exact = list.long || list.form == ListForm::Json;
    let limit = Limit::rows(list.limit, false, 0);
    let omitted = match limit {
        usize::MAX => 0,
        _ => (select(wanted).count() + metrics(wanted).len()).saturating_sub(limit),
    };
    let events = select(wanted).map(|listed| trier.entry(&listed, exact, list.long));
    let mut entries = events.chain(metrics(wanted)).take(limit).map(|mut entry| {
        if list.no_descriptions {
            entry.text.clear();
        }
        entry
    });
    let unreadable = || -> Vec<UnreadableKind> {
        let asked = wanted.kind(EventKind::Tracepoint);
        let error = host.tracepoint_systems().err().filter(|_| asked);
        let reason = error.map(|error| why("", no_tracepoint(error)));
        reason
            .map(|reason| UnreadableKind { kind: EventKind::Tracepoint.word(), reason })
            .into_iter()
            .collect()
    };
    // Unreadable tracepoints matter only if tracepoints were requested.
    let asked_for_them = wanted.words.is_empty() || wanted.words.iter().any(|word| word.contains(':'));
    if list.form == ListForm::Json {
        let catalog = Catalog {
            version: catalog::VERSION,
            events: entries.collect(),
            unreadable: unreadable(),
            omitted: OmittedEntries { events: omitted },
        };
        writeln!(out, "{:#}", text::as_json(&catalog))?;
        return Ok(!catalog.events.is_empty() || asked_for_them && !catalog.unreadable.is_empty());
    }
    // The line width is limited only on a terminal, not in files.
    let terminal = Stream::Output.size().filter(|_| list.output.is_none());
    let columns = terminal.map(|(columns, _)| usize::from(columns).max(60));
    let mut writer = pmc_view::list::ListWriter::new(out, columns, list.long);
    let mut found = false;
    entries.try_for_each(|entry| {
        found = true;
        writer.entry(&entry)
    })?;
    drop(entries);
    let slow = trier.cache.is_slow_to_close();
    let unreadable = unreadable();
    if found || (asked_for_them && !unreadable.is_empty()) {
        writer.finish(&unreadable)?;
        if omitted > 0 {
            writeln!(out, "\n… and {omitted} more events (--limit 0 shows all)")?;
        }
        found = true;
    }
    // Once everything is printed, close the tried events in the background.
    out.flush()?;
    if slow {
        process::exit_while_child_closes();
    }
    Ok(found)
}

/// Converts listed events to entries, and tries to open them.
struct EventTrier<'a> {
    host: &'a Host,
    pmus: Vec<String>,
    facts: &'a MachineFacts,
    cache: OpenCache,
    /// Results for the events that were tried as representatives: one per PMU for vendor events, and one for
    /// all tracepoints.
    tried: BTreeMap<String, (EventAvailability, Option<MissingReason>)>,
}

impl<'a> EventTrier<'a> {
    fn new(host: &'a Host, facts: &'a MachineFacts) -> Self {
        let pmus = host.pmu_names();
        Self { host, pmus, facts, cache: OpenCache::new(&facts.online), tried: BTreeMap::new() }
    }

    fn entry(&mut self, listed: &ListedEvent, exact: bool, long: bool) -> CatalogEntry {
        let tracepoint = listed.kind == EventKind::Tracepoint;
        let mut entry = CatalogEntry {
            name: cleaned(&listed.name),
            aliases: listed.aliases.iter().map(|&alias| alias.to_owned()).collect(),
            kind: listed.kind.word(),
            text: cleaned(&listed.text),
            pmu: listed.pmu.as_ref().map(cleaned),
            means: listed.means.as_ref().map(cleaned),
            unit: cleaned(&listed.unit),
            scale: listed.scale,
            encoding: None,
            opens: EventAvailability::Form,
            reason: None,
            fields: (tracepoint && long).then(|| self.fields(&listed.name)),
            manual: listed.manual.as_ref().map(|manual| of_manual(listed, manual)),
        };
        if listed.form {
            return entry;
        }
        // Try only one representative event, since a PMU may have thousands of events.
        let stands_for = match listed.kind {
            EventKind::Tracepoint => Some(String::new()),
            EventKind::Vendor => listed.pmu.clone(),
            EventKind::Marker => Some(listed.kind.word().to_owned()),
            _ => None,
        };
        let earlier = stands_for.as_ref().and_then(|all| self.tried.get(all).cloned());
        // If the user selected another CPU model, all its events are unavailable for the same reason.
        let is_absent = listed.kind == EventKind::Vendor
            && listed
                .pmu
                .as_ref()
                .is_some_and(|pmu| !self.pmus.iter().any(|own| listing::is_same_pmu(own, pmu)));
        if earlier.is_none() || exact && !is_absent {
            self.resolve(listed, &mut entry, earlier.is_none());
        }
        match (earlier, stands_for) {
            (Some(earlier), _) if entry.reason.is_none() => (entry.opens, entry.reason) = earlier,
            (None, Some(all)) => {
                // For events that were not tried themselves, the result shows that the PMU is usable, but not
                // that the encoding is valid.
                let (opens, reason) = (entry.opens, entry.reason.clone());
                if entry.encoding.is_some() || is_absent {
                    let opens =
                        if opens == EventAvailability::Yes { EventAvailability::AsAnother } else { opens };
                    self.tried.insert(all, (opens, reason));
                }
            }
            _ => {}
        }
        entry
    }

    /// Fills in the encoding and, if `try_it` is set, whether the event can be opened.
    fn resolve(&mut self, listed: &ListedEvent, entry: &mut CatalogEntry, try_it: bool) {
        // Resolve a vendor event by its encoding, which avoids a search through thousands of names.
        let text = match listed.kind {
            EventKind::Vendor | EventKind::Marker => listed.means.as_ref().unwrap_or(&listed.name),
            _ => &listed.name,
        };
        let groups = match parse(text, self.host) {
            Ok(groups) => groups,
            // If the Linux equivalent of a FreeBSD event is not available, the equivalent's error is more
            // helpful.
            Err(wrong) => {
                let wrong =
                    listed.means.as_ref().and_then(|means| parse(means, self.host).err()).unwrap_or(wrong);
                let cause =
                    wrong.cause.map_or(wrong.message.clone(), |cause| format!("{}: {cause}", wrong.message));
                let remedy = wrong.remedy.map(|hint| Advice::from(hint).to_string());
                let remedy = cleaned(remedy.unwrap_or_default());
                entry.opens = EventAvailability::No;
                entry.reason =
                    Some(MissingReason { missing: "", errno: None, cause: cleaned(cause), remedy });
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
        if !try_it {
            return;
        }
        let because = |refusal: Refusal| Some(why("", refusal.explain(self.facts)));
        (entry.opens, entry.reason) = match self.cache.trial(&spec) {
            TrialOpen::Opens => (EventAvailability::Yes, None),
            TrialOpen::UserOnly(refusal) => (EventAvailability::UserOnly, because(refusal)),
            TrialOpen::Refused(refusal) => (EventAvailability::No, because(refusal)),
        };
    }

    fn fields(&self, name: &str) -> Vec<CatalogField> {
        let Some((system, name)) = name.split_once(':') else { return Vec::new() };
        let fields = self.host.tracepoint_fields(system, name).unwrap_or_default();
        let field = |field: pmc_sys::abi::TracepointField| CatalogField {
            name: cleaned(&field.name),
            declaration: cleaned(&field.declaration),
            offset: field.offset,
            size: field.size,
        };
        fields.into_iter().map(field).collect()
    }
}

/// Returns the vendor's description of an event.
fn of_manual(listed: &ListedEvent, manual: &listing::VendorDetails) -> VendorInfo {
    let own = listed.name.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let perf = PerfListEntry {
        unit: listed.pmu.as_ref().map(cleaned),
        event_name: Some(cleaned(own)),
        encoding: listed.means.as_ref().map(cleaned),
        deprecated: manual.is_deprecated.then_some("1"),
        brief_description: (!listed.text.is_empty()).then(|| cleaned(&listed.text)),
        ..PerfListEntry::default()
    };
    VendorInfo {
        table: cleaned(&manual.table),
        imported: manual.is_imported,
        counters: cleaned(&manual.counters),
        precise: manual.precise.map(|precise| match precise {
            Precise::Can => "can",
            Precise::Only => "only",
        }),
        period: manual.period,
        perf,
    }
}
