//! The terms between slashes: `cpu/event=0x3c,umask=1,period=1000/`.
//!
//! Takes a PMU and the words of its terms; returns a spec. There are two kinds of terms: common ones, which
//! are valid for every event (`period`, `name`, `call-graph` …), and the PMU's own, whose bits are defined in
//! `format/*`. A term that is the name of one of the PMU's events expands to that event's terms:
//!
//! ```text
//! cpu/mem-loads,ldlat=30/   events/mem-loads: event=0xcd,umask=0x1,ldlat=3     format/ldlat: config1:0-15
//!   └► event=0xcd  umask=0x1  ldlat=3  ldlat=30  ──► config |= 0x1cd, config1 |= 3 | 30
//! ```
//! As in perf, if a field is given twice, its values are ORed.

use super::error::{Fault, ParseResult, TextSpan};
use super::names::{self, VendorNames};
use super::syntax::{self, Term, number, numbered_word, plain_digits};
use super::vendor::VendorEvent;
use super::{EventSource, EventSpec, PersistentEvent, Trace};
use crate::hint::Hint;
use pmc_sys::abi::attr::{AUX_ACTIONS, Flag, LARGEST_AUX_SAMPLE, kind};
use pmc_sys::abi::generic;
use pmc_sys::abi::{Attr, branch_sample_type, sample_type};
use pmc_sys::host::Host;
use pmc_sys::host::pmu::{Pmu, PmuEvent, TermFormat};
use pmc_sys::host::tracer::Tracer;

/// The terms that every event accepts, for messages and completion.
pub(super) const COMMON: &[&str] = &[
    "config",
    "config1",
    "config2",
    "config3",
    "config4",
    "name",
    "period",
    "freq",
    "branch_type",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "nr",
    "text_poke",
    "inherit_thread",
    "remove_on_exec",
    "sigtrap",
    "sig_data",
    "stream_id",
    "aux-output",
    "aux-action",
    "aux-sample-size",
    "aux_watermark",
    "metric-id",
    "cpu",
];

/// Flags that can be set by their names in the kernel.
const BY_NAME: [Flag; 4] = [Flag::TextPoke, Flag::InheritThread, Flag::RemoveOnExec, Flag::Sigtrap];

/// Valid values of `call-graph=`.
const CALL_GRAPHS: [&str; 4] = ["fp", "dwarf", "lbr", "no"];

const fn bit(flag: Flag) -> u64 {
    1 << flag as u8
}

/// Bits of `attrN=` that are overwritten later: the word, its bits, the fields' names, and what to use
/// instead.
fn decided() -> [(usize, u64, &'static str, Hint); 15] {
    [
        (0, !0, "type and size", "PMU/…/, or TYPE:CONFIG as in 4:0x3c".into()),
        (2, !0, "sample_period", "period=N, or freq=N".into()),
        (3, !0, "sample_type", Hint::SampleFields),
        (4, !0, "read_format", "omit it: groups and options determine the read format".into()),
        (5, bit(Flag::Disabled) | bit(Flag::EnableOnExec), "when the event starts", Hint::StartLater),
        (5, bit(Flag::Inherit), "inherit", "inherit, or no-inherit".into()),
        (5, bit(Flag::Freq), "freq", "freq=N".into()),
        (5, bit(Flag::WriteBackward), "write_backward", "overwrite, or no-overwrite".into()),
        (5, bit(Flag::ExcludeCallchainKernel), "exclude_callchain_kernel", Hint::UserChains),
        (5, bit(Flag::ExcludeCallchainUser), "exclude_callchain_user", Hint::KernelChains),
        (6, !0, "wakeups and kinds of breakpoints", "mem:ADDRESS/LENGTH:rwx for a breakpoint".into()),
        (9, !0, "branch_sample_type", "branch_type=WORD".into()),
        (10, !0, "sample_regs_user", Hint::UserRegisters),
        (11, !0, "sample_stack_user and clockid", Hint::StackOrClock),
        (12, !0, "sample_regs_intr", Hint::InterruptedRegisters),
    ]
}

/// A term after event names have been expanded.
#[derive(Debug)]
struct TermValue {
    name: String,
    value: Option<String>,
    span: TextSpan,
    /// The event whose description contains the term; `None` if the user typed the term.
    from: Option<String>,
}

impl TermValue {
    fn written(term: &Term<'_>) -> Self {
        Self {
            name: term.name.text.to_owned(),
            value: term.value.map(|v| v.text.to_owned()),
            span: term.span(),
            from: None,
        }
    }

    /// The value as a number up to `largest`; 1 if there is no value.
    fn number(&self, largest: u64) -> ParseResult<u64> {
        let Some(value) = &self.value else { return Ok(1) };
        let number = number(value).ok_or_else(|| {
            Fault::at(&self.span, format!("`{value}` is not a valid number for `{}`", self.name))
                .expected("a decimal number, or a hexadecimal number such as 0x1f")
        })?;
        if number > largest {
            return Err(Fault::at(&self.span, format!("{value} is too large for `{}`", self.name))
                .expected(format!("at most {largest} ({largest:#x})")));
        }
        Ok(number)
    }

    fn flag(&self) -> ParseResult<bool> {
        Ok(self.number(1)? == 1)
    }

    fn word(&self) -> ParseResult<String> {
        self.value.clone().ok_or_else(|| {
            Fault::at(&self.span, format!("`{}` needs a value", self.name))
                .expected(format!("{}=VALUE", self.name))
        })
    }

    /// A required number.
    fn needed(&self, largest: u64) -> ParseResult<u64> {
        self.word()?;
        self.number(largest)
    }
}

/// Applies the term if it is valid for every event; returns `false` otherwise.
pub(super) fn common(spec: &mut EventSpec, term: &Term<'_>) -> ParseResult<bool> {
    syntax::reject_ignored(term)?;
    set_common(spec, &TermValue::written(term))
}

fn set_common(spec: &mut EventSpec, term: &TermValue) -> ParseResult<bool> {
    let told = &mut spec.qualifiers;
    match term.name.as_str() {
        "name" => spec.name = term.word()?,
        // perf uses `metric-id` to label the events of metrics; pmc ignores the label.
        "metric-id" => drop(term.word()?),
        "time" => told.time = Some(term.flag()?),
        "call-graph" => {
            let word = term.word()?;
            if !CALL_GRAPHS.contains(&word.as_str()) {
                return Err(Fault::at(&term.span, format!("unknown call-graph mode `{word}`"))
                    .expected(CALL_GRAPHS.join(", ")));
            }
            told.call_graph = Some(word);
        }
        "branch_type" => {
            let words = term.word()?;
            let filter = branch_sample_type::filter(&words).map_err(|word| {
                let names = branch_sample_type::FILTERS.map(|(name, _)| name);
                Fault::at(&term.span, format!("unknown branch type `{word}`"))
                    .expected(names.join(", "))
                    .meant(word, names)
            })?;
            told.branch_type = Some(filter);
        }
        "stack-size" => told.stack_size = Some(term.needed(u64::from(u32::MAX))? as u32),
        "max-stack" => told.max_stack = Some(term.needed(u64::from(u16::MAX))? as u16),
        "inherit" => told.inherit = Some(term.flag()?),
        "no-inherit" => told.inherit = Some(!term.flag()?),
        "overwrite" => told.overwrite = Some(term.flag()?),
        "no-overwrite" => told.overwrite = Some(!term.flag()?),
        "cpu" => {
            let list = term.word()?;
            spec.cpus = Some(cpu_list(&list, &term.span)?);
        }
        "nr" => {
            let most = term.needed(u64::from(i32::MAX as u32))? as u32;
            if most == 0 {
                return Err(Fault::at(&term.span, "nr must be at least 1").expected("1 or more"));
            }
            told.most_samples = Some(most);
        }
        "aux-output" => {
            let on = term.flag()?;
            request(spec, term)?.set(Flag::AuxOutput, on);
        }
        "aux-action" => {
            let word = term.word()?;
            let known = AUX_ACTIONS.iter().find(|(name, _)| *name == word);
            let (_, bit) = known.ok_or_else(|| {
                Fault::at(&term.span, format!("unknown aux-action `{word}`"))
                    .expected(AUX_ACTIONS.map(|(name, _)| name).join(", "))
            })?;
            request(spec, term)?.set_aux_action(*bit);
        }
        "aux-sample-size" => {
            let bytes = term.needed(u64::from(LARGEST_AUX_SAMPLE))? as u32;
            request(spec, term)?.set_aux_sample_size(bytes);
        }
        "aux_watermark" => {
            let bytes = term.needed(u64::from(u32::MAX))? as u32;
            request(spec, term)?.set_aux_watermark(bytes);
        }
        "stream_id" => {
            let on = term.flag()?;
            let attr = request(spec, term)?;
            let others = attr.sample_type() & !sample_type::STREAM_ID;
            attr.set_sample_type(others | if on { sample_type::STREAM_ID } else { 0 });
        }
        name => return set_field(spec, term, name),
    }
    Ok(true)
}

/// Applies the term if it is the name of a flag or word of `perf_event_attr`; returns `false` otherwise.
fn set_field(spec: &mut EventSpec, term: &TermValue, name: &str) -> ParseResult<bool> {
    if let Some(flag) = BY_NAME.into_iter().find(|flag| flag.name() == name) {
        let on = term.flag()?;
        request(spec, term)?.set(flag, on);
        return Ok(true);
    }
    let word = match name {
        "period" | "freq" => None,
        "sig_data" => Some(15),
        "config" => Some(1),
        "config1" => Some(7),
        "config2" => Some(8),
        "config3" => Some(16),
        "config4" => Some(17),
        _ => match numbered_word(name) {
            Some(word) if word < pmc_sys::abi::attr::WORDS => Some(word),
            Some(_) => {
                let last = pmc_sys::abi::attr::WORDS - 1;
                return Err(Fault::at(&term.span, format!("perf_event_attr has no field `{name}`"))
                    .expected(format!("attr0 to attr{last}")));
            }
            None => return Ok(false),
        },
    };
    let value = if word.is_none() { term.needed(u64::MAX)? } else { term.number(u64::MAX)? };
    let tick_ns = spec.tick_ns.unwrap_or(1);
    let attr = request(spec, term)?;
    match word {
        None if name == "period" => {
            if value == 0 {
                return Err(Fault::at(&term.span, "period must be at least 1").expected("1 or more"));
            }
            attr.set_period(value.saturating_mul(tick_ns));
        }
        None => {
            if value == 0 {
                return Err(Fault::at(&term.span, "freq must be at least 1").expected("1 or more"));
            }
            attr.set_freq(value);
        }
        // A field name sets the whole field, while attrN adds bits.
        Some(word) if !name.starts_with("attr") => {
            attr.set_word(word, value);
        }
        Some(word) => {
            if let Some((.., field, instead)) =
                decided().into_iter().find(|(own, bits, ..)| *own == word && value & bits != 0)
            {
                return Err(Fault::at(
                    &term.span,
                    format!("`{name}` cannot set {field}: pmc sets it itself"),
                )
                .try_this(instead));
            }
            attr.or_word(word, value);
        }
    }
    Ok(true)
}

/// The kernel request for this event.
fn request<'s>(spec: &'s mut EventSpec, term: &TermValue) -> ParseResult<&'s mut Attr> {
    match &mut spec.source {
        EventSource::Kernel(attr) => Ok(attr),
        _ => Err(Fault::at(&term.span, format!("`{}` applies only to kernel events", term.name))
            .why("pmc itself measures this event")),
    }
}

/// Parses a CPU list from event text.
pub(super) fn cpu_list(text: &str, span: &TextSpan) -> ParseResult<pmc_sys::host::CpuList> {
    match text.parse::<pmc_sys::host::CpuList>() {
        Ok(cpus) if cpus.is_empty() => {
            Err(Fault::at(span, "empty CPU list").expected("CPU numbers and ranges, as in cpu=0-3,8"))
        }
        Ok(cpus) => Ok(cpus),
        Err(error) => {
            let why = error.cause().unwrap_or_default();
            Err(Fault::at(span, format!("invalid CPU list: {why}"))
                .expected("CPU numbers and ranges, as in cpu=0-3,8"))
        }
    }
}

/// Creates an event of this PMU with these terms.
///
/// `hybrid` is true if other cores of the machine have a different PMU, so a generic event must specify its
/// PMU.
pub(super) fn pmu_event(
    names: &VendorNames<'_>,
    pmu: &Pmu,
    terms: &[Term<'_>],
    name: &str,
    hybrid: bool,
) -> ParseResult<EventSpec> {
    let mut spec = EventSpec::kernel(name, pmu.kind, 0);
    place(&mut spec, pmu);
    for term in terms.iter().filter(|term| pmu.format(term.name.text).is_none()) {
        syntax::reject_ignored(term)?;
    }
    for term in expand(names, pmu, terms, &mut spec)? {
        if !set_common(&mut spec, &term)? {
            set(pmu, &mut spec, &term, hybrid)?;
        }
    }
    spec.trace = trace(&spec, pmu, terms);
    if let (Some(folder), EventSource::Kernel(attr)) = (pmu.run_directory(), &spec.source) {
        spec.source =
            EventSource::Held(PersistentEvent { run_directory: folder.to_owned(), id: attr.config() });
    }
    Ok(spec)
}

/// The defaults for a tracing event. If the user sets `config`, no field gets a default.
fn trace(spec: &EventSpec, pmu: &Pmu, terms: &[Term<'_>]) -> Option<Trace> {
    let tracer = Tracer::of_pmu(&pmu.name)?;
    let is_named = |field: &str| terms.iter().any(|term| [field, "config"].contains(&term.name.text));
    let unnamed = tracer.defaults(pmu).into_iter().filter(|(field, _)| !is_named(field));
    let defaults = unnamed.filter_map(|(field, value)| {
        let format = pmu.format(field)?.ok()?;
        Some((format.word, format.place(value)))
    });
    let mut fields = 0;
    if tracer == Tracer::ArmSpe {
        fields |= sample_type::DATA_SRC;
        let physical = pmu.format("pa_enable").and_then(std::result::Result::ok);
        let is_on = |format: TermFormat| spec.attr()?.word(format.word).map(|word| word & format.mask != 0);
        fields |= if physical.and_then(is_on) == Some(true) { sample_type::PHYS_ADDR } else { 0 };
    }
    Some(Trace { tracer, period: tracer.period(pmu), defaults: defaults.collect(), fields })
}

/// Applies the term if the event's PMU defines it; returns `false` otherwise.
pub(super) fn own(host: &Host, spec: &mut EventSpec, term: &Term<'_>) -> ParseResult<bool> {
    let Some(pmu) = spec.pmu.as_ref().and_then(|name| host.pmu(name)) else { return Ok(false) };
    if pmu.format(term.name.text).is_none() {
        return Ok(false);
    }
    set(&pmu, spec, &TermValue::written(term), false)?;
    Ok(true)
}

/// Sets the CPUs on which this PMU's events are opened.
pub(super) fn place(spec: &mut EventSpec, pmu: &Pmu) {
    spec.pmu = Some(pmu.name.clone());
    spec.cpus = pmu.cpumask();
    spec.system_wide = spec.cpus.is_some();
    spec.core_cpus = if spec.system_wide { None } else { pmu.core_cpus() };
}

/// Whether this is a core PMU, which supports generic names.
pub(super) fn is_core(pmu: &Pmu) -> bool {
    pmu.name == "cpu" || pmu.name.starts_with("armv") || pmu.core_cpus().is_some()
}

/// Expands each term that is the name of an event to the event's terms.
fn expand(
    names: &VendorNames<'_>,
    pmu: &Pmu,
    terms: &[Term<'_>],
    spec: &mut EventSpec,
) -> ParseResult<Vec<TermValue>> {
    let mut settings = Vec::new();
    // Whether each of the user's terms has supplied the value of a parameter.
    let mut used = vec![false; terms.len()];
    let mut described: Option<String> = None;
    let mut deferred = Vec::new();
    for (index, term) in terms.iter().enumerate() {
        let named = match term.value {
            None => Some(term.name.text),
            // `event=NAME` is equivalent to NAME.
            Some(value) if term.name.text == "event" && number(value.text).is_none() => Some(value.text),
            Some(_) => None,
        };
        let event = match named {
            Some(name) if term.value.is_some() || pmu.format(name).is_none() => find_event(names, pmu, name),
            _ => None,
        };
        let Some((event_name, event)) = event else {
            deferred.push(index);
            settings.push(TermValue::written(term));
            continue;
        };
        if let Some(first) = &described {
            return Err(Fault::at(
                &term.span(),
                format!("`{first}` and `{event_name}` are two events, not one"),
            )
            .expected(format!("{0}/{first}/,{0}/{event_name}/", pmu.name)));
        }
        described = Some(event_name.clone());
        let event = match event {
            NameSource::InSysfs(event) => event,
            NameSource::InTables(event) => {
                // The user's terms replace those of the table, as in `NAME,cmask=2`.
                let given = |name: &str| terms.iter().any(|t| t.name.text == name);
                names::check(pmu, &event, &given, &term.span())?;
                spec.counters = names.counters(&event);
                spec.recommended_period = event.period;
                spec.precise_max |= event.flags.contains('P');
                let own = |part: &&str| !given(part.split_once('=').map_or(*part, |(name, _)| name));
                let terms = event.terms.split(',').filter(own).collect::<Vec<_>>().join(",");
                PmuEvent { terms, scale: 1.0, unit: String::new(), snapshot: false, per_package: false }
            }
        };
        spec.scale = event.scale;
        spec.unit = event.unit;
        spec.snapshot = event.snapshot;
        spec.per_package = event.per_package;
        for part in event.terms.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(n, v)| (n.trim(), Some(v.trim())));
            let mut setting = TermValue {
                name: name.to_owned(),
                value: value.map(str::to_owned),
                span: term.span(),
                from: Some(event_name.clone()),
            };
            if value == Some("?") {
                let given = terms.iter().position(|t| t.name.text == name && t.value.is_some());
                let Some(given) = given else {
                    return Err(Fault::at(
                        &term.span(),
                        format!("the event `{event_name}` requires a value for `{name}`"),
                    )
                    .expected(format!("{}/{event_name},{name}=VALUE/", pmu.name)));
                };
                used[given] = true;
                setting.value = terms[given].value.map(|v| v.text.to_owned());
                setting.span = terms[given].span();
            }
            settings.push(setting);
        }
    }
    // A term that has supplied a parameter is not also applied as a separate term.
    let mut deferred = deferred.into_iter();
    settings.retain(|setting| setting.from.is_some() || deferred.next().is_none_or(|index| !used[index]));
    Ok(settings)
}

/// The source of an event's name.
enum NameSource<'n> {
    InSysfs(PmuEvent),
    InTables(VendorEvent<'n>),
}

/// The PMU's event with this name, ignoring case as in perf. If the kernel lists it too, as on Arm, the code
/// is the same.
fn find_event<'n>(names: &'n VendorNames<'_>, pmu: &Pmu, name: &str) -> Option<(String, NameSource<'n>)> {
    if let Some(event) = pmu.event(name) {
        return Some((name.to_owned(), NameSource::InSysfs(event)));
    }
    if let Some(name) = pmu.events().into_iter().find(|n| n.eq_ignore_ascii_case(name)) {
        let event = pmu.event(&name)?;
        return Some((name, NameSource::InSysfs(event)));
    }
    let event = names.on(pmu, name)?;
    Some((event.name.to_owned(), NameSource::InTables(event)))
}

/// Applies one of the PMU's own terms.
fn set(pmu: &Pmu, spec: &mut EventSpec, term: &TermValue, hybrid: bool) -> ParseResult<()> {
    let format = match pmu.format(&term.name) {
        Some(Ok(format)) => format,
        Some(Err(bad)) => {
            return Err(Fault::at(
                &term.span,
                format!("cannot use the term `{}` of {}: {bad}", term.name, pmu.name),
            ));
        }
        None => return other_term(pmu, spec, term, hybrid),
    };
    if term.value.is_none() && format.mask.count_ones() > 1 {
        return Err(Fault::at(&term.span, format!("`{}` needs a value", term.name)).expected(format!(
            "{}=NUMBER, at most {:#x}",
            term.name,
            format.largest()
        )));
    }
    if let Some(word) = &term.value
        && number(word).is_none()
        && term.name == "event"
    {
        let names = pmu.events();
        return Err(Fault::at(&term.span, format!("{} has no event `{word}`", pmu.name))
            .expected("a number, or the name of one of the PMU's events")
            .meant(word, names.iter().map(String::as_str)));
    }
    let value = term.number(format.largest())?;
    if let EventSource::Kernel(attr) = &mut spec.source {
        attr.or_word(format.word, format.place(value));
    }
    Ok(())
}

/// Applies a term that the PMU does not describe: a raw code, or a generic name on a core PMU.
fn other_term(pmu: &Pmu, spec: &mut EventSpec, term: &TermValue, hybrid: bool) -> ParseResult<()> {
    let EventSource::Kernel(attr) = &mut spec.source else { return Ok(()) };
    if term.value.is_none() {
        if let Some(code) = raw_code(&term.name) {
            attr.set_config(attr.config() | code);
            return Ok(());
        }
        if is_core(pmu)
            && let Some((kind, config)) = generic_code(&term.name)
        {
            attr.set_kind(kind);
            attr.set_config(config | if hybrid { u64::from(pmu.kind) << 32 } else { 0 });
            return Ok(());
        }
    }
    let (terms, events) = (pmu.terms(), pmu.events());
    let known = terms.iter().chain(&events).map(String::as_str).chain(COMMON.iter().copied());
    let what = match (&term.from, pmu.terms().is_empty() && pmu.events().is_empty()) {
        (Some(event), _) => {
            format!(
                "the kernel defines the event `{event}` with the term `{}`, which {} does not have",
                term.name, pmu.name
            )
        }
        (None, true) => format!("{} has no term `{}`: it has no terms of its own", pmu.name, term.name),
        (None, false) => format!("{} has no term or event `{}`", pmu.name, term.name),
    };
    let expected = match terms.as_slice() {
        [] => format!("a term that every event supports ({})", COMMON.join(", ")),
        own => format!(
            "a term of {} ({}), or a term that every event supports ({})",
            pmu.name,
            own.join(", "),
            COMMON.join(", ")
        ),
    };
    Err(Fault::at(&term.span, what).expected(expected).meant(&term.name, known))
}

/// `r1a8`, `r0x1a8`: the code after the `r`.
pub(super) fn raw_code(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    plain_digits(digits.strip_prefix("0x").unwrap_or(digits), 16)
}

/// Type and config of a generic hardware or cache event.
pub(super) fn generic_code(name: &str) -> Option<(u32, u64)> {
    if let Some(generic) = generic::find(name) {
        return (generic.kind == kind::HARDWARE).then_some((generic.kind, generic.config));
    }
    Some((kind::HW_CACHE, generic::cache(name).ok()?))
}
