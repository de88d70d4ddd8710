//! Parses event text into a tree of words. Handles only the grammar, and does not resolve event names.
//!
//! Takes text; returns [`EventItem`]s whose [`EventWord`]s carry their positions. `resolve` interprets the
//! words. The parser must know the names of qualifiers, because commas separate both events and qualifiers:
//!
//! ```text
//! {cycles:u , instructions , period=1000} :S , imc / event=4,umask=3 / , usr , sched : sched_switch : k
//! └────────────── group ─────────────────┘    └ name └── terms ──┘    │     └───── pair ─────┘  modifiers
//!                            └ qualifier of the preceding word ────────────────┘
//! ```
//!
//! The text is scanned once without recursion, so even malicious text takes only linear time.

use super::error::{Fault, ParseResult, TextSpan};
use crate::hint::Hint;

/// A piece of the text and its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventWord<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl EventWord<'_> {
    pub(super) fn span(&self) -> TextSpan {
        self.at..self.at + self.text.len()
    }

    /// Splits `SYMBOL+OFFSET`; the offset defaults to 0.
    pub(super) fn symbol_and_offset(self) -> (Self, u64) {
        match self.text.split_once('+').map(|(symbol, offset)| (symbol, number(offset))) {
            Some((text, Some(offset))) => (Self { text, ..self }, offset),
            _ => (self, 0),
        }
    }
}

/// An item of an event list: an event or a group.
#[derive(Debug)]
pub(super) enum EventItem<'a> {
    Event(EventSyntax<'a>),
    Group(GroupSyntax<'a>),
}

/// `{a,b}:S,usr`
#[derive(Debug)]
pub(super) struct GroupSyntax<'a> {
    pub(super) events: Vec<EventSyntax<'a>>,
    pub(super) modifiers: Option<EventWord<'a>>,
    pub(super) qualifiers: Vec<Term<'a>>,
}

/// An event, as typed.
#[derive(Debug)]
pub(super) struct EventSyntax<'a> {
    /// The text without the qualifiers, which is the event's display name.
    pub(super) text: EventWord<'a>,
    pub(super) body: Body<'a>,
    /// The terms between slashes; `None` without slashes.
    pub(super) terms: Option<Vec<Term<'a>>>,
    pub(super) modifiers: Option<EventWord<'a>>,
    pub(super) qualifiers: Vec<Term<'a>>,
}

/// The part before the slashes and the modifiers.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// `cycles`, `cpu`, `r1a8`
    Name(EventWord<'a>),
    /// `sched:sched_switch`, `4:0x1a8`
    Pair(EventWord<'a>, EventWord<'a>),
    /// `mem:0x1000/8:rw`
    Breakpoint { address: EventWord<'a>, length: Option<EventWord<'a>>, access: Option<EventWord<'a>> },
    /// `uprobe:/bin/sh:main`
    Uprobe { path: EventWord<'a>, place: EventWord<'a> },
    /// `kprobe:vfs_read`, `kretprobe:ext4:ext4_sync_file`
    Kprobe { place: EventWord<'a>, returns: bool },
    /// `sdt:/usr/lib/libstdc++.so.6:libstdcxx:throw`
    Marker { path: EventWord<'a>, provider: EventWord<'a>, name: EventWord<'a> },
    /// `skx::MEM_LOAD_RETIRED:L3_MISS:u`, `::INST_RETIRED:ANY_P`
    Libpfm(EventWord<'a>),
}

/// `umask=0x3`, `edge`, `@driver=word`
#[derive(Debug, Clone, Copy)]
pub(super) struct Term<'a> {
    pub(super) name: EventWord<'a>,
    pub(super) value: Option<EventWord<'a>>,
}

impl Term<'_> {
    pub(super) fn span(&self) -> TextSpan {
        self.name.at..self.value.map_or(self.name.span().end, |v| v.span().end)
    }
}

/// Modifier letters; [`qualify`](super::qualify) describes each one.
pub(super) const MODIFIERS: &str = "ukhGHIpPSDeWbR";

/// Qualifiers without a value.
pub(super) const FLAGS: [&str; 29] = [
    "usr",
    "os",
    "hv",
    "idle",
    "guest",
    "host",
    "pinned",
    "exclusive",
    "inv",
    "edge",
    "any",
    "anythread",
    "descendants",
    "system",
    "log-exit",
    "log-cswitch",
    "callchain",
    "retprobe",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "time",
    "text_poke",
    "inherit_thread",
    "remove_on_exec",
    "sigtrap",
    "stream_id",
    "aux-output",
];

/// Qualifiers with a value.
pub(super) const VALUED: [&str; 27] = [
    "precise",
    "period",
    "freq",
    "count",
    "cpu",
    "name",
    "cmask",
    "umask",
    "ldlat",
    "frontend",
    "offcore_rsp",
    "ch_mask",
    "fc_mask",
    "config",
    "config1",
    "config2",
    "config3",
    "config4",
    "call-graph",
    "stack-size",
    "max-stack",
    "branch_type",
    "sig_data",
    "nr",
    "aux-action",
    "aux-sample-size",
    "aux_watermark",
];

/// Qualifiers that set fields of the event's PMU.
pub(super) const FIELDS: [&str; 10] =
    ["cmask", "umask", "inv", "edge", "any", "ldlat", "frontend", "offcore_rsp", "ch_mask", "fc_mask"];

/// FreeBSD qualifiers that set bits of a counter.
pub(super) const MASKS: [&str; 10] = [
    "core",
    "agent",
    "prefetch",
    "cachestate",
    "unitmask",
    "mask",
    "rsp",
    "snoopresponse",
    "snooptype",
    "trans",
];

/// Words of perf or FreeBSD that pmc does not support, with the reason and the alternative.
const NOT_YET: [(&str, &str, Hint); 2] = [
    ("kgmon", "no kernel supports it: even FreeBSD never implemented its PMC_F_KGMON", Hint::SampleKernel),
    ("percore", "pmc cannot sum a single event over the threads of a core", Hint::AddUpCores),
];

fn is_not_yet(name: &str) -> bool {
    NOT_YET.iter().any(|(word, ..)| *word == name)
}

/// Rejects a word that perf or FreeBSD supports but that would have no effect in pmc.
pub(super) fn reject_ignored(term: &Term<'_>) -> ParseResult<()> {
    let name = term.name.text;
    let (why, instead) = match NOT_YET.iter().find(|(word, ..)| *word == name) {
        Some((_, why, instead)) => (*why, instead.clone()),
        None if name.starts_with('@') => {
            ("pmc does not pass driver-specific terms to the kernel", Hint::from("omit it"))
        }
        None => return Ok(()),
    };
    let fault = Fault::at(&term.span(), format!("`{name}` has no effect")).why(why);
    Err(fault.try_this(instead))
}

/// Parses the whole text.
pub(super) fn read(text: &str) -> ParseResult<Vec<EventItem<'_>>> {
    let mut reader = EventTextReader { text, at: 0 };
    let mut items: Vec<EventItem<'_>> = Vec::new();
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Err(Fault::at(&(0..text.len()), "an event is missing here").expected(AN_EVENT));
    }
    loop {
        reader.skip_blanks();
        if let Some(qualifier) = reader.qualifier(!items.is_empty())? {
            match items.last_mut() {
                Some(EventItem::Event(event)) => event.qualifiers.push(qualifier),
                Some(EventItem::Group(group)) => group.qualifiers.push(qualifier),
                None => return Err(nothing_to_qualify(&qualifier)),
            }
        } else if reader.opens_group() {
            items.push(EventItem::Group(reader.group()?));
        } else {
            items.push(EventItem::Event(reader.event()?));
        }
        reader.skip_blanks();
        match reader.peek() {
            None => return Ok(items),
            Some(',') => reader.at += 1,
            Some('}') => {
                return Err(Fault::at(&reader.here(), "unmatched closing brace").expected("`,` or the end"));
            }
            Some(_) => return Err(reader.unexpected("`,` or the end")),
        }
    }
}

/// Checks that the text contains only one event.
pub(super) fn check_single(text: &str) -> ParseResult<()> {
    let items = read(text)?;
    let mut events = items.iter().flat_map(|item| match item {
        EventItem::Event(event) => std::slice::from_ref(event),
        EventItem::Group(group) => &group.events,
    });
    let Some(second) = events.nth(1) else { return Ok(()) };
    let name = second.text.text;
    let message = format!("`{name}` is not a qualifier, and only one event is allowed here");
    let qualifiers = FLAGS.into_iter().chain(VALUED).chain(MASKS);
    Err(Fault::at(&second.text.span(), message)
        .expected("an event with its qualifiers, such as cycles,usr")
        .meant(name, qualifiers))
}

const AN_EVENT: &str = "an event, such as cycles, task-clock, sched:sched_switch or cpu/event=0x3c/";

fn nothing_to_qualify(qualifier: &Term<'_>) -> Fault {
    let name = qualifier.name.text;
    Fault::at(&qualifier.span(), format!("`{name}` must follow an event"))
        .expected("an event and then its qualifiers, as in cycles,usr")
}

/// Whether a libpfm4 name starts here: an optional PMU, then two colons.
fn is_libpfm(rest: &str) -> bool {
    let is_pmu = |c: char| c.is_ascii_alphanumeric() || c == '_';
    rest.trim_start_matches(is_pmu).starts_with("::")
}

struct EventTextReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> EventTextReader<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn here(&self) -> TextSpan {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn unexpected(&self, expected: &str) -> Fault {
        match self.peek() {
            Some(c) => Fault::at(&self.here(), format!("unexpected `{c}`")).expected(expected),
            None => Fault::at(&self.here(), "unexpected end of the text").expected(expected),
        }
    }

    /// Returns the text up to one of the delimiters, without surrounding whitespace.
    fn until(&mut self, delimiters: &[char]) -> EventWord<'a> {
        let rest = &self.text[self.at..];
        let length = rest.find(delimiters).unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        let part = &rest[..length];
        let lead = part.len() - part.trim_start().len();
        EventWord { text: part.trim(), at: start + lead }
    }

    /// Returns the word that starts here if it qualifies the previous event. After an event, a bare `cpu` is
    /// a qualifier whose value is missing; at the start of the text, it may be a PMU.
    fn qualifier(&mut self, after_event: bool) -> ParseResult<Option<Term<'a>>> {
        let start = self.at;
        let name = self.until(&['=', ',', '{', '}', ':', '/']);
        let next = self.peek();
        let known = match next {
            Some('=') => {
                VALUED.contains(&name.text)
                    || MASKS.contains(&name.text)
                    || FLAGS.contains(&name.text)
                    || is_not_yet(name.text)
                    || numbered_word(name.text).is_some()
            }
            None | Some(',' | '}') => {
                FLAGS.contains(&name.text)
                    || after_event && (VALUED.contains(&name.text) || is_not_yet(name.text))
            }
            _ => false,
        };
        if !known {
            self.at = start;
            return Ok(None);
        }
        if !self.eat('=') {
            if VALUED.contains(&name.text) {
                return Err(Fault::at(&name.span(), format!("`{}` needs a value", name.text))
                    .expected(format!("{}=VALUE", name.text)));
            }
            return Ok(Some(Term { name, value: None }));
        }
        let mut value = self.value(&[',', '}', '{'])?;
        // The commas of a CPU list. A number cannot be an event, so a number after the comma continues the
        // list.
        while name.text == "cpu" && self.peek() == Some(',') {
            let rest = &self.text[self.at + 1..];
            let length = rest.find([',', '}', '{']).unwrap_or(rest.len());
            let word = &rest[..length];
            let is_range = !word.trim().is_empty()
                && word.trim().chars().all(|c| c.is_ascii_digit() || c == '-')
                && word.trim().starts_with(|c: char| c.is_ascii_digit());
            if !is_range {
                break;
            }
            self.at += 1 + length;
            value = EventWord { text: self.text[value.at..self.at].trim_end(), at: value.at };
        }
        Ok(Some(Term { name, value: Some(value) }))
    }

    /// A value, quoted or plain.
    fn value(&mut self, delimiters: &[char]) -> ParseResult<EventWord<'a>> {
        if self.peek() != Some('\'') {
            let value = self.until(delimiters);
            if value.text.is_empty() {
                return Err(
                    Fault::at(&(value.at..value.at), "the value is missing").expected("a value after `=`")
                );
            }
            return Ok(value);
        }
        let open = self.at;
        self.at += 1;
        let rest = &self.text[self.at..];
        let Some(length) = rest.find('\'') else {
            return Err(Fault::at(&(open..open + 1), "this quote is not closed").expected("another `'`"));
        };
        let word = EventWord { text: &rest[..length], at: self.at };
        self.at += length + 1;
        Ok(word)
    }

    /// Whether a group starts here, possibly after its name.
    fn opens_group(&self) -> bool {
        let rest = &self.text[self.at..];
        rest.find(['{', ',', '}', '/', ':']).is_some_and(|at| rest[at..].starts_with('{'))
    }

    fn group(&mut self) -> ParseResult<GroupSyntax<'a>> {
        // Like perf, pmc accepts a name before the brace but does not show it in `stat`.
        let _name = self.until(&['{']);
        let open = self.here();
        self.at += 1;
        let mut events: Vec<EventSyntax<'a>> = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek().is_none() {
                return Err(not_closed(&open));
            }
            if let Some(qualifier) = self.qualifier(!events.is_empty())? {
                match events.last_mut() {
                    Some(event) => event.qualifiers.push(qualifier),
                    None => return Err(nothing_to_qualify(&qualifier)),
                }
            } else if self.opens_group() {
                let brace = self.text[self.at..].find('{').unwrap_or(0) + self.at;
                return Err(Fault::at(&(brace..brace + 1), "a group cannot contain another group")
                    .expected("an event, or `}` before the next group"));
            } else {
                events.push(self.event()?);
            }
            self.skip_blanks();
            match self.peek() {
                None => return Err(not_closed(&open)),
                Some(',') => self.at += 1,
                Some('}') => break,
                Some(_) => return Err(self.unexpected("`,` or `}`")),
            }
        }
        self.at += 1;
        let modifiers = if self.eat(':') { Some(self.modifiers()?) } else { None };
        Ok(GroupSyntax { events, modifiers, qualifiers: Vec::new() })
    }

    fn modifiers(&mut self) -> ParseResult<EventWord<'a>> {
        let word = self.until(&[',', '{', '}', ':', '/']);
        if word.text.is_empty() {
            return Err(Fault::at(&(word.at..word.at), "the modifiers are missing after `:`")
                .expected(format!("letters from {MODIFIERS}")));
        }
        Ok(word)
    }

    fn event(&mut self) -> ParseResult<EventSyntax<'a>> {
        let start = self.at;
        let rest = &self.text[start..];
        let mut modifiers = None;
        let body = if rest.starts_with("mem:") {
            self.breakpoint(&mut modifiers)?
        } else if rest.starts_with("uprobe:") {
            self.uprobe(&mut modifiers)?
        } else if rest.starts_with("sdt:") {
            self.marker(&mut modifiers)?
        } else if let Some(keyword) = ["kprobe:", "kretprobe:"].into_iter().find(|w| rest.starts_with(w)) {
            self.at += keyword.len();
            Body::Kprobe { place: self.kprobe(&mut modifiers)?, returns: keyword == "kretprobe:" }
        } else if is_libpfm(rest) {
            Body::Libpfm(self.libpfm()?)
        } else {
            self.named(&mut modifiers)?
        };
        let mut terms = None;
        if modifiers.is_none() && self.eat('/') {
            terms = Some(self.terms()?);
            let colon = self.eat(':');
            let word = self.until(&[',', '{', '}', ':', '/']);
            if !word.text.is_empty() {
                modifiers = Some(word);
            } else if colon {
                return Err(Fault::at(&(word.at..word.at), "the modifiers are missing after `:`")
                    .expected(format!("letters from {MODIFIERS}")));
            }
        }
        let text = self.text[start..self.at].trim_end();
        Ok(EventSyntax {
            text: EventWord { text, at: start },
            body,
            terms,
            modifiers,
            qualifiers: Vec::new(),
        })
    }

    /// `PMU::EVENT:UMASK:MODIFIER`
    fn libpfm(&mut self) -> ParseResult<EventWord<'a>> {
        let word = self.until(&[',', '{', '}']);
        if word.text.ends_with("::") {
            let end = word.span().end;
            return Err(Fault::at(&(end..end), "an event is missing after `::`")
                .expected("a libpfm4 event name, such as skx::MEM_LOAD_RETIRED:L3_MISS:u"));
        }
        Ok(word)
    }

    /// `name`, `name:mods`, `a:b`, `a:b:mods`
    fn named(&mut self, modifiers: &mut Option<EventWord<'a>>) -> ParseResult<Body<'a>> {
        let name = self.until(&[':', '/', ',', '{', '}']);
        if name.text.is_empty() {
            return Err(match self.peek() {
                None | Some(',' | '}') => {
                    Fault::at(&self.here(), "an event is missing here").expected(AN_EVENT)
                }
                Some(_) => self.unexpected(AN_EVENT),
            });
        }
        if !self.eat(':') {
            return Ok(Body::Name(name));
        }
        let second = self.until(&[':', '/', ',', '{', '}']);
        if second.text.is_empty() {
            return Err(Fault::at(&(second.at..second.at), "something is missing after `:`")
                .expected(format!("modifiers (letters from {MODIFIERS}), or the name of a tracepoint")));
        }
        if self.eat(':') {
            *modifiers = Some(self.modifiers()?);
            return Ok(Body::Pair(name, second));
        }
        let numeric = name.text.bytes().all(|b| b.is_ascii_digit()) || name.text.starts_with("0x");
        let is_marker = name.text.starts_with("sdt_");
        if !numeric && !is_marker && second.text.chars().all(|c| MODIFIERS.contains(c)) {
            *modifiers = Some(second);
            return Ok(Body::Name(name));
        }
        Ok(Body::Pair(name, second))
    }

    /// `mem:ADDR[/LEN][:rwx][:mods]`
    fn breakpoint(&mut self, modifiers: &mut Option<EventWord<'a>>) -> ParseResult<Body<'a>> {
        self.at += "mem:".len();
        let address = self.until(&[':', '/', ',', '{', '}']);
        let mut length = None;
        let rest = &self.text[self.at..];
        if let Some(rest) = rest.strip_prefix('/') {
            let part = &rest[..rest.find([':', '/', ',', '{', '}', '=']).unwrap_or(rest.len())];
            // `mem:0x1000/name=x/` has terms instead of a length.
            if part.trim().starts_with(|c: char| c.is_ascii_digit())
                || !rest[part.len()..].starts_with(['=', ',', '/'])
            {
                self.at += 1;
                length = Some(self.until(&[':', '/', ',', '{', '}']));
            }
        }
        let mut access = None;
        while self.peek() == Some(':') {
            self.at += 1;
            let word = self.until(&[':', '/', ',', '{', '}']);
            let letters = !word.text.is_empty() && word.text.chars().all(|c| "rwx".contains(c));
            if letters && access.is_none() {
                access = Some(word);
            } else if modifiers.is_none() && !word.text.is_empty() {
                *modifiers = Some(word);
            } else {
                return Err(Fault::at(&word.span(), "this cannot follow a breakpoint")
                    .expected("mem:ADDRESS[/LENGTH][:ACCESS][:MODIFIERS], as in mem:0x1000/8:rw:u"));
            }
        }
        Ok(Body::Breakpoint { address, length, access })
    }

    /// `uprobe:PATH:PLACE[:mods]`. The path contains slashes, so it ends at a colon.
    fn uprobe(&mut self, modifiers: &mut Option<EventWord<'a>>) -> ParseResult<Body<'a>> {
        self.at += "uprobe:".len();
        let path = self.until(&[':', ',', '{', '}']);
        if path.text.is_empty() || !self.eat(':') {
            return Err(Fault::at(&(path.at..self.at), "this uprobe is incomplete")
                .expected("uprobe:PATH:FUNCTION or uprobe:PATH:0xOFFSET, as in uprobe:/bin/sh:main"));
        }
        let place = self.until(&[':', '/', ',', '{', '}']);
        if place.text.is_empty() {
            return Err(Fault::at(&(place.at..place.at), "the function or offset is missing")
                .expected("a function, or a file offset 0xOFFSET"));
        }
        if self.eat(':') {
            *modifiers = Some(self.modifiers()?);
        }
        Ok(Body::Uprobe { path, place })
    }

    /// `sdt:PATH:PROVIDER:NAME[:mods]`
    fn marker(&mut self, modifiers: &mut Option<EventWord<'a>>) -> ParseResult<Body<'a>> {
        let mut words = [EventWord { text: "", at: self.at }; 3];
        self.at += "sdt".len();
        for (index, word) in words.iter_mut().enumerate() {
            let is_there = self.eat(':');
            *word = self.until(if index == 0 { &[':', ',', '{', '}'] } else { &[':', '/', ',', '{', '}'] });
            if !is_there || word.text.is_empty() {
                return Err(Fault::at(&word.span(), "this marker is incomplete")
                    .expected("sdt:PATH:PROVIDER:NAME, or sdt_PROVIDER:NAME"));
            }
        }
        if self.eat(':') {
            *modifiers = Some(self.modifiers()?);
        }
        let [path, provider, name] = words;
        Ok(Body::Marker { path, provider, name })
    }

    /// `[MODULE:]PLACE[:mods]`: a second word with only modifier letters is parsed as modifiers, as
    /// elsewhere.
    fn kprobe(&mut self, modifiers: &mut Option<EventWord<'a>>) -> ParseResult<EventWord<'a>> {
        const DELIMITERS: [char; 5] = [':', '/', ',', '{', '}'];
        let mut place = self.until(&DELIMITERS);
        if place.text.is_empty() {
            return Err(Fault::at(&(place.at..place.at), "the kernel function is missing")
                .expected("kprobe:FUNCTION, kprobe:FUNCTION+0xOFFSET or kprobe:MODULE:FUNCTION"));
        }
        let start = self.at;
        if self.eat(':') {
            let second = self.until(&DELIMITERS);
            let is_last = self.peek() != Some(':');
            if is_last && second.text.chars().all(|c| MODIFIERS.contains(c)) {
                self.at = start;
            } else {
                place.text = &self.text[place.at..second.span().end];
            }
        }
        if self.eat(':') {
            *modifiers = Some(self.modifiers()?);
        }
        Ok(place)
    }

    /// The terms after the opening slash, up to and including the closing slash.
    fn terms(&mut self) -> ParseResult<Vec<Term<'a>>> {
        let open = self.at - 1..self.at;
        let mut terms = Vec::new();
        self.skip_blanks();
        if self.eat('/') {
            return Ok(terms);
        }
        loop {
            self.skip_blanks();
            let name = self.until(&['=', ',', '/']);
            if self.peek().is_none() {
                return Err(
                    Fault::at(&open, "this slash is not closed").expected("another `/` after the terms")
                );
            }
            if name.text.is_empty() {
                return Err(Fault::at(&self.here(), "a term is missing here").expected("TERM or TERM=VALUE"));
            }
            let value = if self.eat('=') { Some(self.value(&[',', '/'])?) } else { None };
            terms.push(Term { name, value });
            self.skip_blanks();
            match self.peek() {
                Some('/') => {
                    self.at += 1;
                    return Ok(terms);
                }
                Some(',') => self.at += 1,
                Some(_) => return Err(self.unexpected("`,` or `/`")),
                None => {
                    return Err(
                        Fault::at(&open, "this slash is not closed").expected("another `/` after the terms")
                    );
                }
            }
        }
    }
}

fn not_closed(open: &TextSpan) -> Fault {
    Fault::at(open, "this brace is not closed").expected("`}` after the last event of the group")
}

/// The number in `attr5`.
pub(super) fn numbered_word(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("attr")?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) { None } else { digits.parse().ok() }
}

/// A number in perf's notation (`12`, `0x1f`).
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => plain_digits(hex, 16),
        None => plain_digits(text, 10),
    }
}

/// Accepts only digits; `from_str_radix` would accept a sign.
pub(super) fn plain_digits(text: &str, radix: u32) -> Option<u64> {
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        None
    } else {
        u64::from_str_radix(text, radix).ok()
    }
}
