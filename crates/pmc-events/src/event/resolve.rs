//! Resolves words to requests: looks up each name on this machine and applies modifiers and qualifiers.
//!
//! Takes the tree from `syntax` and the [`Host`]; returns [`EventGroup`]s. Reads only the files that are
//! required for a word: none for `task-clock`, one directory for `cycles` (to check for hybrid cores), and
//! the PMU's files for `pmu/…/`.
//!
//! One event in the text may become several if it is a pattern over PMUs or tracepoints, or a generic event
//! on a hybrid machine. The members of a group are split by PMU, so that each kernel group contains events of
//! only one PMU:
//!
//! ```text
//! {cycles,instructions}   on   cpu_core and cpu_atom
//!    cycles/core  cycles/atom          group 1: cycles/core, instructions/core
//!    instr./core  instr./atom    ──►   group 2: cycles/atom, instructions/atom
//! ```

use super::error::{Fault, ParseError, ParseResult, TextSpan};
use super::names::VendorNames;
use super::probe::EventTarget;
use super::qualify::Modifiers;
use super::syntax::{self, Body, EventItem, EventSyntax, EventWord, GroupSyntax, Term, number};
use super::{
    EventGroup, EventSource, EventSpec, Tool, did_you_mean, freebsd_aliases, glob, libpfm, probe, qualify,
    terms,
};
use crate::hint::Hint;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::{self, NoCacheEvent};
use pmc_sys::host::Host;
use pmc_sys::host::pmu::{PERSISTENT, Pmu};

/// Maximum number of requests from one text: more than any kernel can open, but few enough to fit in memory.
const MOST_EVENTS: usize = 100_000;

/// Parses event text.
///
/// # Errors
/// Returns the first word that is not valid on this machine.
pub fn parse(text: &str, host: &Host) -> ParseResult<Vec<EventGroup>, Box<ParseError>> {
    EventParser::new(host).parse(text)
}

/// Parses several event texts (repeated `-e`), and assigns unique merge numbers.
#[derive(Debug)]
pub struct EventParser<'h> {
    host: &'h Host,
    sources: probe::ProbeSources<'h>,
    subject: EventTarget,
    names: VendorNames<'h>,
    /// The core PMUs of a hybrid machine; `None` until first used.
    hybrid: Option<Vec<Pmu>>,
    merges: u32,
    /// Number of requests from the current text so far.
    count: usize,
}

impl<'h> EventParser<'h> {
    /// Creates a parser for this machine.
    pub fn new(host: &'h Host) -> Self {
        let (sources, subject) = (probe::ProbeSources::new(host), EventTarget::default());
        Self { host, sources, subject, names: VendorNames::new(host), hybrid: None, merges: 0, count: 0 }
    }

    /// Sets the target of the events.
    #[must_use]
    pub fn with_target(self, subject: EventTarget) -> Self {
        Self { subject, ..self }
    }

    /// Parses one text.
    ///
    /// # Errors
    /// Returns the first word that is not valid on this machine.
    pub fn parse(&mut self, text: &str) -> ParseResult<Vec<EventGroup>, Box<ParseError>> {
        self.groups(text).map_err(|fault| fault.within(text))
    }

    /// Parses text that must contain a single event. `several` is the hint to show if it contains more.
    ///
    /// # Errors
    /// Returns the position of a second event, or the first word that is not valid on this machine.
    pub fn parse_single(
        &mut self,
        text: &str,
        several: &str,
    ) -> ParseResult<Vec<EventGroup>, Box<ParseError>> {
        syntax::check_single(text).map_err(|fault| fault.try_this(several).within(text))?;
        self.parse(text)
    }

    fn groups(&mut self, text: &str) -> ParseResult<Vec<EventGroup>> {
        let mut groups = Vec::new();
        self.count = 0;
        for item in syntax::read(text)? {
            match &item {
                EventItem::Event(event) => groups.extend(self.event(event)?.into_iter().map(single)),
                EventItem::Group(group) => groups.extend(self.group(group)?),
            }
        }
        Ok(groups)
    }

    fn group(&mut self, group: &GroupSyntax<'_>) -> ParseResult<Vec<EventGroup>> {
        let modifiers = group.modifiers.map(Modifiers::read).transpose()?;
        let letters = qualify::letters_of(&group.qualifiers)?;
        let mut dealt: Vec<PmuGroup> = Vec::new();
        for event in &group.events {
            let mut specs = self.event(event)?;
            for spec in &mut specs {
                if let Some(modifiers) = modifiers {
                    modifiers.add(spec);
                }
                Modifiers::trusted(&letters).add(spec);
            }
            qualify::qualify(self.host, &self.names, &mut specs, &group.qualifiers)?;
            for spec in specs {
                assign(&mut dealt, spec);
            }
        }
        let weak = modifiers.is_some_and(|m| m.has('W'));
        let leader_sampling = modifiers.is_some_and(|m| m.has('S'));
        let groups = dealt.into_iter().map(|PmuGroup { mut events, .. }| {
            // The kernel applies the leader's `pinned` and `exclusive` to the whole group, and rejects them
            // on other members.
            let said = |flag| events.iter().filter_map(EventSpec::attr).any(|attr| attr.get(flag));
            let (pinned, exclusive) = (said(Flag::Pinned), said(Flag::Exclusive));
            for (index, event) in events.iter_mut().enumerate() {
                if let EventSource::Kernel(attr) = &mut event.source {
                    attr.set(Flag::Pinned, pinned && index == 0);
                    attr.set(Flag::Exclusive, exclusive && index == 0);
                }
            }
            EventGroup { events, braces: true, weak, leader_sampling }
        });
        Ok(groups.collect())
    }

    fn event(&mut self, event: &EventSyntax<'_>) -> ParseResult<Vec<EventSpec>> {
        let specs = self.qualified(event);
        // The letters after the colon may be the name of a tracepoint, such as of the probe `g:h`.
        let (Err(_), Body::Name(first), Some(second), None) =
            (&specs, &event.body, event.modifiers, &event.terms)
        else {
            return specs;
        };
        if probe::tracepoints(self.host, *first, second).is_err() {
            return specs;
        }
        let body = Body::Pair(*first, second);
        let qualifiers = event.qualifiers.clone();
        self.qualified(&EventSyntax { body, modifiers: None, qualifiers, terms: None, text: event.text })
    }

    /// Resolves the event with its modifiers and qualifiers.
    fn qualified(&mut self, event: &EventSyntax<'_>) -> ParseResult<Vec<EventSpec>> {
        if let Some(word) = event.modifiers {
            Modifiers::read(word)?;
        }
        let mut specs = self.body(event)?;
        if let (Some(word), [EventSpec { source: EventSource::Held(_), .. }]) =
            (event.modifiers.or(event.qualifiers.first().map(|q| q.name)), specs.as_slice())
        {
            return Err(held_as_it_is(&word.span()));
        }
        self.count += specs.len();
        if self.count > MOST_EVENTS {
            return Err(Fault::at(
                &event.text.span(),
                format!("the event list expands to more than {MOST_EVENTS} events"),
            ));
        }
        // `cycles,usr` is equivalent to `cycles:u`, and is shown as `cycles:u`.
        let written = event.modifiers.map_or("", |word| word.text);
        let mut letters = written.to_owned();
        letters.extend(qualify::letters_of(&event.qualifiers)?.chars().filter(|&c| !written.contains(c)));
        if !letters.is_empty() {
            let added: String = letters[written.len()..].chars().filter(|&c| "ukhGH".contains(c)).collect();
            for spec in &mut specs {
                Modifiers::trusted(&letters).replace(spec);
                if spec.has_user_mode && letters.contains(['u', 'k', 'h']) {
                    if !letters.contains('u') {
                        let words = format!("`{}` counts only in user mode", event.text.text);
                        return Err(Fault::at(&event.text.span(), words).expected("usr, or neither"));
                    }
                    // The kernel writes these records in kernel mode, even if they concern user mode.
                    if let EventSource::Kernel(attr) = &mut spec.source {
                        [Flag::ExcludeKernel, Flag::ExcludeHv].iter().for_each(|flag| attr.set(*flag, false));
                    }
                }
                if !added.is_empty() && spec.name == event.text.text {
                    spec.name = with_letters(event, &added);
                }
            }
        }
        qualify::qualify(self.host, &self.names, &mut specs, &event.qualifiers)?;
        Ok(specs)
    }

    /// Resolves the event with its terms, but without its modifiers.
    fn body(&mut self, event: &EventSyntax<'_>) -> ParseResult<Vec<EventSpec>> {
        let name = event.text.text;
        let mut specs = match event.body {
            Body::Name(word) => match &event.terms {
                None => return self.bare(word, event),
                Some(given) => match self.everywhere(word.text, name) {
                    Some(specs) => specs,
                    None => return self.with_terms(word, given, event),
                },
            },
            Body::Pair(first, second) => self.pair(first, second, event)?,
            Body::Breakpoint { address, length, access } => {
                let letters =
                    qualify::letters_of(&event.qualifiers)? + event.modifiers.map_or("", |m| m.text);
                let kernel_alone = letters.contains('k') && !letters.contains('u');
                let words = (address, length, access);
                vec![probe::breakpoint((&self.sources, &self.subject), words, kernel_alone, name)?]
            }
            Body::Uprobe { path, place } => vec![probe::uprobe(&self.sources, path, place, name)?],
            Body::Marker { path, provider, name: marker } => {
                self.markers(Some(path), (provider, marker), name)?
            }
            Body::Libpfm(word) => self.libpfm(word, name)?,
            Body::Kprobe { place, returns } => vec![probe::kprobe(&self.sources, place, returns, name)?],
        };
        for term in event.terms.iter().flatten() {
            for spec in &mut specs {
                let probe = spec.attr().is_some_and(|attr| attr.config1_text().is_some());
                if probe && terms::own(self.host, spec, term)? {
                    continue;
                }
                if !terms::common(spec, term)? {
                    return Err(Fault::at(
                        &term.span(),
                        format!("this event has no term `{}`", term.name.text),
                    )
                    .expected(format!("one of the terms {}", terms::COMMON.join(", ")))
                    .meant(term.name.text, terms::COMMON.iter().copied()));
                }
            }
        }
        Ok(specs)
    }

    /// Resolves an event by its libpfm4 name.
    fn libpfm(&mut self, word: EventWord<'_>, name: &str) -> ParseResult<Vec<EventSpec>> {
        let name = name.strip_prefix("::").unwrap_or(name);
        let unknown =
            |why: String| Fault::at(&word.span(), format!("cannot resolve libpfm4's `{name}`: {why}"));
        match libpfm::meaning(word.text, self.host).map_err(unknown)? {
            libpfm::Meaning::Request(attr) => {
                let mut spec = EventSpec::kernel(name, attr.kind(), attr.config());
                spec.levels_chosen = attr.get(Flag::ExcludeUser) || attr.get(Flag::ExcludeKernel);
                if attr.kind() >= kind::FIRST_DYNAMIC {
                    let pmus = self.host.pmu_names().into_iter().filter_map(|pmu| self.host.pmu(&pmu));
                    if let Some(pmu) = pmus.into_iter().find(|pmu| pmu.kind == attr.kind()) {
                        terms::place(&mut spec, &pmu);
                    }
                }
                spec.source = EventSource::Kernel(*attr);
                Ok(vec![spec])
            }
            libpfm::Meaning::Text(text) => {
                let counted = self.count;
                let groups = self.groups(&text).map_err(|fault| unknown(fault.within(&text).message))?;
                self.count = counted;
                let mut specs: Vec<EventSpec> = groups.into_iter().flat_map(|group| group.events).collect();
                specs.iter_mut().for_each(|spec| name.clone_into(&mut spec.name));
                Ok(specs)
            }
        }
    }

    /// Resolves a word that is the same on every machine: a generic, cache or raw event.
    fn everywhere(&mut self, word: &str, name: &str) -> Option<Vec<EventSpec>> {
        if let Some(tool) = Tool::named(word) {
            return Some(vec![EventSpec {
                unit: "ns".to_owned(),
                ..EventSpec::new(name, EventSource::Tool(tool))
            }]);
        }
        if let Some(generic) = generic::find(word) {
            return Some(match generic.kind {
                kind::SOFTWARE => vec![EventSpec::kernel(name, kind::SOFTWARE, generic.config)],
                _ => self.on_cores(generic.kind, generic.config, name),
            });
        }
        // perf's names are case-insensitive, but `LLC-MISSES` in upper case is FreeBSD's name for a different
        // event.
        if let Ok(config) = generic::cache(word)
            && !freebsd_aliases::in_capitals(word)
        {
            return Some(self.on_cores(kind::HW_CACHE, config, name));
        }
        let code = terms::raw_code(word)?;
        Some(self.on_cores(kind::RAW, code, name))
    }

    /// Returns one hardware event, or one per kind of core.
    fn on_cores(&mut self, kind: u32, config: u64, name: &str) -> Vec<EventSpec> {
        let cores = self.hybrid().to_vec();
        if cores.is_empty() {
            return vec![EventSpec::kernel(name, kind, config)];
        }
        let merge = self.merge();
        cores
            .iter()
            .map(|pmu| {
                // Generic types specify the PMU in the upper half of config; a raw code uses the PMU's own
                // type.
                let mut spec = match kind {
                    kind::RAW => EventSpec::kernel(name, pmu.kind, config),
                    _ => EventSpec::kernel(name, kind, config | u64::from(pmu.kind) << 32),
                };
                terms::place(&mut spec, pmu);
                spec.merge = Some(merge);
                spec
            })
            .collect()
    }

    fn hybrid(&mut self) -> &[Pmu] {
        self.hybrid.get_or_insert_with(|| self.host.hybrid_pmus())
    }

    fn merge(&mut self) -> u32 {
        self.merges += 1;
        self.merges
    }

    /// Resolves a single word.
    fn bare(&mut self, word: EventWord<'_>, event: &EventSyntax<'_>) -> ParseResult<Vec<EventSpec>> {
        let name = event.text.text;
        if let Some(specs) = self.everywhere(word.text, name) {
            return Ok(specs);
        }
        let impossible = generic::cache(word.text) == Err(NoCacheEvent::Impossible);
        let term = Term { name: word, value: None };
        if let Some(specs) = self.named_by_pmus(&term, &[], name)? {
            return Ok(specs);
        }
        if let Some(alias) = freebsd_aliases::find(word.text, self.host) {
            return self.freebsd(&alias, word, name);
        }
        if let Some((class, rest)) = freebsd_aliases::class(word.text) {
            return self.of_class(class, rest, word, event);
        }
        if let Some(own) = self.names.spelled_freely(word.text).map(str::to_owned)
            && let Some(specs) = self.of_tables(&own, word, &[], name)
        {
            return specs;
        }
        if impossible {
            return Err(Fault::at(
                &word.span(),
                format!("`{}` is not an event: this cache does not support this operation", word.text),
            )
            .meant(word.text, did_you_mean::cache_names().iter().map(String::as_str)));
        }
        if let Some(pmu) = self.host.pmu(word.text) {
            let events = pmu.events();
            let example = events.first().map_or("config=1", String::as_str);
            return Err(Fault::at(&word.span(), format!("`{}` is a PMU, but no event is given", word.text))
                .expected(format!("{0}/EVENT/ or {0}/TERM=VALUE,…/, as in {0}/{example}/", word.text)));
        }
        Err(did_you_mean::unknown(self.host, &self.names, word))
    }

    /// Resolves an event that sysfs or the vendor tables list under this name for one or more PMUs.
    fn named_by_pmus(
        &mut self,
        event: &Term<'_>,
        more: &[Term<'_>],
        name: &str,
    ) -> ParseResult<Option<Vec<EventSpec>>> {
        let word = event.name.text;
        let mut given = vec![*event];
        given.extend_from_slice(more);
        let mut specs = Vec::new();
        for pmu in self.host.pmu_names() {
            let Some(pmu) = self.host.pmu(&pmu) else { continue };
            if pmu.event(word).is_some() {
                let hybrid = pmu.core_cpus().is_some();
                specs.push(terms::pmu_event(&self.names, &pmu, &given, name, hybrid)?);
            }
        }
        if specs.is_empty() {
            return self.of_tables(word, event.name, more, name).transpose();
        }
        self.number_instances(&mut specs);
        Ok(Some(specs))
    }

    /// Resolves the event `own` of the vendor tables, which the user typed as `word`.
    fn of_tables(
        &mut self,
        own: &str,
        word: EventWord<'_>,
        more: &[Term<'_>],
        name: &str,
    ) -> Option<ParseResult<Vec<EventSpec>>> {
        let pmus = match self.names.pmus(own, &word.span())? {
            Ok(pmus) => pmus,
            Err(fault) => return Some(Err(fault)),
        };
        let mut given = vec![Term { name: EventWord { text: own, at: word.at }, value: None }];
        given.extend_from_slice(more);
        Some(self.on_some(&pmus, &given, name))
    }

    /// Returns the event on each of these PMUs. Not all instances need to have the event, but at least one
    /// must.
    fn on_some(&mut self, pmus: &[Pmu], given: &[Term<'_>], name: &str) -> ParseResult<Vec<EventSpec>> {
        let hybrid = pmus.iter().any(|pmu| pmu.core_cpus().is_some()) && !self.hybrid().is_empty();
        let mut specs = Vec::new();
        let mut first_fault = None;
        for pmu in pmus {
            match terms::pmu_event(&self.names, pmu, given, name, hybrid) {
                Ok(spec) => specs.push(spec),
                Err(fault) => first_fault = first_fault.or(Some(fault)),
            }
        }
        match first_fault {
            Some(fault) if specs.is_empty() => return Err(fault),
            _ => self.number_instances(&mut specs),
        }
        Ok(specs)
    }

    fn number_instances(&mut self, specs: &mut [EventSpec]) {
        if specs.len() > 1 {
            let merge = self.merge();
            for spec in specs {
                spec.merge = Some(merge);
            }
        }
    }

    /// Resolves `word/terms/` if the word is not a generic event: one or several PMUs, or a sysfs event
    /// with additional terms.
    fn with_terms(
        &mut self,
        word: EventWord<'_>,
        given: &[Term<'_>],
        event: &EventSyntax<'_>,
    ) -> ParseResult<Vec<EventSpec>> {
        let name = event.text.text;
        if word.text == PERSISTENT
            && let Some(spec) = self.published(word, given, name)?
        {
            return Ok(vec![spec]);
        }
        let mut pmus: Vec<Pmu> = self.host.pmu(word.text).into_iter().collect();
        if pmus.is_empty() {
            let names = self.host.pmu_names();
            let fitting = names.iter().filter(|name| glob::fits_pmu(word.text, name));
            pmus = fitting.filter_map(|name| self.host.pmu(name)).collect();
        }
        if !pmus.is_empty() {
            return self.on_some(&pmus, given, name);
        }
        if let Some(specs) = self.named_by_pmus(&Term { name: word, value: None }, given, name)? {
            return Ok(specs);
        }
        Err(did_you_mean::unknown_pmu(self.host, word))
    }

    /// Resolves `persistent/NAME/`, an event published by a holder; this user's holder comes before root's.
    /// `None` if no holder has the event and the kernel has a PMU of this name.
    fn published(
        &self,
        word: EventWord<'_>,
        given: &[Term<'_>],
        name: &str,
    ) -> ParseResult<Option<EventSpec>> {
        let trees = self.host.published_pmus();
        let is_name = |term: &&Term<'_>| term.value.is_none() || term.name.text != "name";
        // Published entries contain `persistent,config=ID`; pmc prints only `ID`.
        let has_id = |term: &Term<'_>| term.name.text == "config" && term.value.is_some();
        let is_bit = |term: &&Term<'_>| term.name.text != PERSISTENT || !given.iter().any(has_id);
        let mut asked = given.iter().filter(is_name).filter(is_bit);
        let (wanted, more) = (asked.next(), asked.next());
        let id = wanted.and_then(|term| match term.value {
            None => number(term.name.text),
            Some(value) => number(value.text).filter(|_| has_id(term)),
        });
        let of = |tree: &Pmu| match id {
            Some(id) => {
                let published =
                    tree.events().into_iter().find(|event| tree.published_id(event) == Some(id))?;
                let known = Term { name: EventWord { text: &published, ..word }, value: None };
                terms::pmu_event(&self.names, tree, &[known], name, false).ok()
            }
            None => terms::pmu_event(&self.names, tree, given, name, false).ok(),
        };
        if let Some(spec) = trees.iter().filter(|_| wanted.is_some()).find_map(of) {
            return match more {
                Some(more) => Err(held_as_it_is(&more.span())),
                None => Ok(Some(spec)),
            };
        }
        if self.host.pmu_names().iter().any(|pmu| pmu == PERSISTENT) {
            return Ok(None);
        }
        let held: Vec<String> = trees.iter().flat_map(Pmu::events).collect();
        let (span, asked) = wanted.map_or((word.span(), "NAME"), |term| (term.span(), term.name.text));
        let fault = match held.as_slice() {
            [] => Fault::at(&span, "no persistent event is held")
                .why("no holder is running, or the holder has no entries"),
            some => Fault::at(&span, format!("no persistent event named `{asked}`"))
                .expected(format!("one of: {}", some.join(", ")))
                .meant(asked, some.iter().map(String::as_str)),
        };
        Err(fault.try_this(Hint::HoldEvent { name: asked.to_string() }))
    }

    /// Resolves `a:b`: a numeric event, a tracepoint, or invalid modifiers.
    fn pair(
        &mut self,
        first: EventWord<'_>,
        second: EventWord<'_>,
        event: &EventSyntax<'_>,
    ) -> ParseResult<Vec<EventSpec>> {
        if let Some(kind) = number(first.text) {
            let kind = u32::try_from(kind)
                .map_err(|_| Fault::at(&first.span(), "a type number has 32 bits").expected("TYPE:CONFIG"))?;
            let config = number(second.text).ok_or_else(|| {
                Fault::at(&second.span(), format!("invalid config `{}`", second.text))
                    .expected("TYPE:CONFIG, two numbers as in 4:0x1a8")
            })?;
            // On hybrid machines, a generic numeric event applies to all core PMUs, unless the upper half of
            // its config specifies one.
            return Ok(match kind {
                kind::HARDWARE | kind::HW_CACHE if config >> 32 == 0 => {
                    self.on_cores(kind, config, event.text.text)
                }
                kind::RAW => self.on_cores(kind, config, event.text.text),
                _ => vec![EventSpec::kernel(event.text.text, kind, config)],
            });
        }
        let known = Tool::named(first.text).is_some()
            || generic::find(first.text).is_some()
            || generic::cache(first.text).is_ok()
            || terms::raw_code(first.text).is_some();
        if known {
            Modifiers::read(second)?;
            let again = event.modifiers.unwrap_or(second);
            return Err(Fault::at(&again.span(), "duplicate modifiers")
                .expected(format!("put all letters after one colon, as in {}:uk", first.text)));
        }
        match probe::tracepoints(self.host, first, second) {
            Ok(specs) => Ok(specs),
            // Markers defined by `perf probe` are tracepoints; all others are looked up in files.
            Err(_) if first.text.starts_with("sdt_") && first.text.len() > "sdt_".len() => {
                let provider = EventWord { text: &first.text["sdt_".len()..], at: first.at + "sdt_".len() };
                self.markers(None, (provider, second), event.text.text)
            }
            Err(fault) => {
                if let Some(pmu) = self.host.pmu(first.text)
                    && !matches!(pmu.name.as_str(), "tracepoint" | "breakpoint")
                {
                    return Err(Fault::at(
                        &second.span(),
                        format!("`{}` is a PMU: its events go between slashes", pmu.name),
                    )
                    .expected(format!("{}/{}/", pmu.name, second.text)));
                }
                let events = did_you_mean::event_names(self.host, &self.names);
                let near = pmc_text::text::nearest(first.text, events.iter().map(String::as_str), 1);
                Err(match near.first() {
                    // A misspelt generic name with invalid modifiers is not a tracepoint.
                    Some(name) if first.text.len() <= 100 && self.is_no_system(first.text) => {
                        fault.try_this(format!("use `{name}` for the event with this name"))
                    }
                    _ => fault,
                })
            }
        }
    }

    /// Resolves markers. All locations of a marker are shown as one event.
    fn markers(
        &mut self,
        path: Option<EventWord<'_>>,
        words: (EventWord<'_>, EventWord<'_>),
        typed: &str,
    ) -> ParseResult<Vec<EventSpec>> {
        let mut names = probe::markers(&self.sources, &self.subject, path, words, typed)?;
        names.iter_mut().for_each(|places| self.number_instances(places));
        Ok(names.concat())
    }

    /// Whether tracefs can be read and lists no tracepoints for this subsystem.
    fn is_no_system(&self, name: &str) -> bool {
        self.host.tracepoint_names(name).is_ok_and(|names| names.is_empty())
    }

    /// Resolves the name that follows a FreeBSD counter class. It may be a native event of this machine.
    fn of_class(
        &mut self,
        class: &str,
        rest: &str,
        word: EventWord<'_>,
        event: &EventSyntax<'_>,
    ) -> ParseResult<Vec<EventSpec>> {
        let name = event.text.text;
        let own = rest.to_ascii_lowercase().replace(['-', '.'], "_");
        for rest in [rest, &own] {
            if let Some(specs) = self.everywhere(rest, name) {
                return Ok(specs);
            }
            let term = Term { name: EventWord { text: rest, at: word.at }, value: None };
            if let Some(specs) = self.named_by_pmus(&term, &[], name)? {
                return Ok(specs);
            }
        }
        if let Some(own) = self.names.spelled_freely(rest).map(str::to_owned)
            && let Some(specs) = self.of_tables(&own, word, &[], name)
        {
            return specs;
        }
        Err(Fault::at(&word.span(), format!("`{}` is FreeBSD's name for {class}", word.text))
            .why("pmc uses Linux event names, and this machine has no similar event")
            .expected(Hint::NameOrCode))
    }

    /// Resolves a FreeBSD name by parsing its equivalent event text.
    fn freebsd(
        &mut self,
        alias: &freebsd_aliases::Alias,
        word: EventWord<'_>,
        name: &str,
    ) -> ParseResult<Vec<EventSpec>> {
        let items = syntax::read(alias.means)?;
        let Some(EventItem::Event(event)) = items.first() else {
            return Err(did_you_mean::unknown(self.host, &self.names, word));
        };
        let mut specs =
            self.body(event).map_err(|fault| fault.of_alias(word.text, &word.span(), alias.means))?;
        for spec in &mut specs {
            name.clone_into(&mut spec.name);
            spec.filter = alias.filter.map(str::to_owned);
            spec.has_user_mode = alias.filter.is_some();
            if let (Some(tick_ns), EventSource::Kernel(attr)) = (alias.tick_ns, &mut spec.source) {
                // Sample at each tick, unless the text specifies a different number of ticks.
                attr.set_period(tick_ns);
                spec.tick_ns = Some(tick_ns);
                spec.scale = 1.0 / tick_ns as f64;
                "ticks".clone_into(&mut spec.unit);
            }
        }
        Ok(specs)
    }
}

/// Members of a group that are scheduled together.
struct PmuGroup {
    /// The PMU that the members share; `None` while no member requires a particular PMU.
    pmu: Option<String>,
    events: Vec<EventSpec>,
}

/// Adds a member to the group for its PMU. Only events on wildcard instances and hybrid PMUs are split into
/// separate groups. All other events join the first group, which the kernel then accepts or rejects.
fn assign(hands: &mut Vec<PmuGroup>, spec: EventSpec) {
    let parts = spec.merge.is_some() || spec.core_cpus.is_some();
    let pmu = if parts { spec.pmu.clone() } else { None };
    let own = match &pmu {
        None => (!hands.is_empty()).then_some(0),
        // Prefers the group of the same PMU, then a group that is not bound to a PMU yet.
        Some(_) => hands
            .iter()
            .position(|hand| hand.pmu == pmu)
            .or_else(|| hands.iter().position(|h| h.pmu.is_none())),
    };
    match own {
        Some(at) => {
            hands[at].pmu = hands[at].pmu.take().or(pmu);
            hands[at].events.push(spec);
        }
        None => hands.push(PmuGroup { pmu, events: vec![spec] }),
    }
}

/// The error for an attempt to change the settings of a running event.
fn held_as_it_is(span: &TextSpan) -> Fault {
    Fault::at(span, "the settings of a persistent event cannot be changed")
        .expected("only persistent/NAME/")
        .try_this(Hint::HoldAnother)
}

fn single(event: EventSpec) -> EventGroup {
    let leader_sampling = event.sample_read;
    EventGroup { events: vec![event], braces: false, weak: false, leader_sampling }
}

/// The event as typed, with additional modifiers appended.
fn with_letters(event: &EventSyntax<'_>, letters: &str) -> String {
    let bare = event.modifiers.is_none() && event.terms.is_none();
    format!("{}{}{letters}", event.text.text, if bare { ":" } else { "" })
}
