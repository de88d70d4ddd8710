//! Modifiers (`:u`) and FreeBSD's qualifiers (`,usr,cmask=1`) after an event.
//!
//! Takes the letters and terms that `syntax` found after an event or a group; modifies the specs according to
//! perf's rules:
//!
//! * The first of `u k h` excludes all three levels, and each letter then includes its own level again. `G`
//!   and `H` work the same way.
//! * Letters on an event replace its defaults, so that guests are counted too unless `u`, `p` or `H` is
//!   given. Letters on a group add to the settings of its members.
//!
//! Some qualifiers are modifiers spelled as words ([`letters_of`]), some are terms that every event has, and
//! some are fields of the event's PMU. For the last kind, a generic event becomes the raw code that the core
//! PMU lists for it, because generic requests have no such fields:
//!
//! ```text
//! instructions,cmask=1   type 0, config 1  ──events/instructions: event=0xc0──►  type 4, config 0x10000c0
//! ```

use super::error::{Fault, ParseResult};
use super::names::VendorNames;
use super::syntax::{self, EventWord, Term, number};
use super::{EventSource, EventSpec, freebsd_masks, probe, terms};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic;
use pmc_sys::host::Host;

/// The meaning of each letter, shown in the error for an invalid one.
const LETTERS: &str = "u user, k kernel, h hypervisor, I not idle, G guest, H host, p (up to ppp) precise, P most precise, S sample the counts of the leader's group, D pinned, e exclusive, W weak group, R do not regroup";

/// Checked modifier letters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Modifiers<'a>(&'a str);

impl<'a> Modifiers<'a> {
    /// Checks the letters.
    pub(super) fn read(word: EventWord<'a>) -> ParseResult<Self> {
        let mut precise = 0;
        for (at, letter) in word.text.char_indices() {
            let span = word.at + at..word.at + at + letter.len_utf8();
            if !super::syntax::MODIFIERS.contains(letter) {
                return Err(Fault::at(&span, format!("unknown modifier `{letter}`")).expected(LETTERS));
            }
            if letter == 'b' {
                return Err(Fault::at(&span, "`b` has no effect")
                    .why("pmc does not count with BPF programs")
                    .try_this("omit it: the kernel counts the event separately for each reader"));
            }
            precise += u32::from(letter == 'p');
            if letter != 'p' && word.text[..at].contains(letter) {
                return Err(Fault::at(&span, format!("duplicate modifier `{letter}`")));
            }
            if precise > 3 {
                return Err(Fault::at(&span, "too many `p`: the highest precision is `ppp`")
                    .expected("p (constant skid), pp (requested zero skid) or ppp (zero skid)"));
            }
        }
        Ok(Self(word.text))
    }

    /// Wraps letters that are known to be valid.
    pub(super) fn trusted(letters: &'a str) -> Self {
        Self(letters)
    }

    pub(super) fn has(self, letter: char) -> bool {
        self.0.contains(letter)
    }

    /// Applies the event's own letters, which replace its defaults.
    pub(super) fn replace(self, spec: &mut EventSpec) {
        if let EventSource::Kernel(attr) = &mut spec.source {
            for flag in [
                Flag::ExcludeUser,
                Flag::ExcludeKernel,
                Flag::ExcludeHv,
                Flag::ExcludeHost,
                Flag::ExcludeGuest,
                Flag::ExcludeIdle,
            ] {
                attr.set(flag, false);
            }
            attr.set_precise_ip(0);
        }
        self.add(spec);
    }

    /// Applies letters that add to the event's settings: letters of its group, and qualifiers.
    pub(super) fn add(self, spec: &mut EventSpec) {
        spec.levels_chosen |= self.0.contains(['u', 'k', 'h']);
        // An explicit precision overrides the default, which is the highest supported level.
        spec.precise_max = self.has('P') || spec.precise_max && !self.has('p');
        spec.sample_read |= self.has('S');
        let EventSource::Kernel(attr) = &mut spec.source else { return };
        let mut levels =
            [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeHv].iter().any(|&f| attr.get(f));
        let mut exclusion = spec.exclusion_chosen;
        let mut precise = 0;
        for letter in self.0.chars() {
            match letter {
                'u' | 'k' | 'h' => {
                    if !levels {
                        for flag in [Flag::ExcludeUser, Flag::ExcludeKernel, Flag::ExcludeHv] {
                            attr.set(flag, true);
                        }
                        levels = true;
                    }
                    let own = match letter {
                        'u' => Flag::ExcludeUser,
                        'k' => Flag::ExcludeKernel,
                        _ => Flag::ExcludeHv,
                    };
                    attr.set(own, false);
                    if letter == 'u' && !exclusion {
                        attr.set(Flag::ExcludeGuest, true);
                    }
                }
                'G' | 'H' => {
                    if !exclusion {
                        attr.set(Flag::ExcludeHost, true);
                        attr.set(Flag::ExcludeGuest, true);
                        exclusion = true;
                    }
                    attr.set(if letter == 'G' { Flag::ExcludeGuest } else { Flag::ExcludeHost }, false);
                }
                'I' => attr.set(Flag::ExcludeIdle, true),
                'p' => {
                    precise += 1;
                    if !exclusion {
                        attr.set(Flag::ExcludeGuest, true);
                    }
                }
                'D' => attr.set(Flag::Pinned, true),
                'e' => attr.set(Flag::Exclusive, true),
                _ => {}
            }
        }
        if precise > 0 {
            attr.set_precise_ip(attr.precise_ip().saturating_add(precise).min(3));
        }
        spec.exclusion_chosen = exclusion;
    }
}

/// The modifier letters for qualifiers that are spelled as words.
pub(super) fn letters_of(qualifiers: &[Term<'_>]) -> ParseResult<String> {
    let mut letters = String::new();
    for qualifier in qualifiers {
        let on = is_on(qualifier)?;
        let letter = match qualifier.name.text {
            "usr" if on => 'u',
            "os" if on => 'k',
            "hv" if on => 'h',
            "guest" if on => 'G',
            "host" if on => 'H',
            "pinned" if on => 'D',
            "exclusive" if on => 'e',
            // Idle time is counted by default.
            "idle" if !on => 'I',
            _ => continue,
        };
        if !letters.contains(letter) {
            letters.push(letter);
        }
    }
    Ok(letters)
}

/// Whether a qualifier without a value is on (`inv`, `inv=1`) or off (`inv=0`).
fn is_on(qualifier: &Term<'_>) -> ParseResult<bool> {
    let Some(value) = qualifier.value else { return Ok(true) };
    if !syntax::FLAGS.contains(&qualifier.name.text) {
        return Ok(true);
    }
    match number(value.text) {
        Some(value @ 0..=1) => Ok(value == 1),
        _ => Err(Fault::at(&qualifier.span(), format!("`{}` does not take a value", qualifier.name.text))
            .expected(format!("{0}, {0}=1 or {0}=0", qualifier.name.text))),
    }
}

/// Applies all qualifiers except modifiers that are spelled as words.
pub(super) fn qualify(
    host: &Host,
    names: &VendorNames<'_>,
    specs: &mut [EventSpec],
    qualifiers: &[Term<'_>],
) -> ParseResult<()> {
    for qualifier in qualifiers {
        let on = is_on(qualifier)?;
        for spec in &mut *specs {
            apply(host, names, spec, qualifier, on)?;
        }
    }
    Ok(())
}

fn apply(
    host: &Host,
    names: &VendorNames<'_>,
    spec: &mut EventSpec,
    qualifier: &Term<'_>,
    on: bool,
) -> ParseResult<()> {
    match qualifier.name.text {
        "descendants" => {
            // As in FreeBSD, all threads of a process are always measured, but its descendants are measured
            // only on request. `no-inherit` excludes threads too.
            spec.qualifiers.inherit = Some(true);
            spec.qualifiers.descendants = on;
            if let EventSource::Kernel(attr) = &mut spec.source {
                attr.set(Flag::InheritThread, !on);
            }
        }
        "system" => {
            spec.qualifiers.system = on;
            spec.system_wide |= on;
        }
        "callchain" => {
            spec.qualifiers.callchain = on;
            spec.qualifiers.call_graph = Some(if on { "fp" } else { "no" }.to_owned());
        }
        "log-exit" => spec.qualifiers.log_exit = on,
        "log-cswitch" => spec.qualifiers.log_cswitch = on,
        "usr" | "os" | "hv" | "guest" | "host" | "idle" | "pinned" | "exclusive" => {}
        "retprobe" if on => {
            let probe = spec.attr().is_some_and(|attr| attr.config1_text().is_some());
            if !probe {
                return Err(Fault::at(&qualifier.span(), "`retprobe` applies only to probes on functions")
                    .expected("a preceding uprobe:PATH:FUNCTION or kprobe:FUNCTION"));
            }
            probe::returning(host, spec, &qualifier.span())?;
        }
        "retprobe" => {}
        "precise" => {
            let level = qualifier.value.and_then(|v| number(v.text)).filter(|&level| level <= 3).ok_or_else(
                || {
                    Fault::at(&qualifier.span(), "invalid precision level").expected(
                        "precise=0 (arbitrary skid), 1 (constant), 2 (zero requested) or 3 (zero required)",
                    )
                },
            )?;
            spec.precise_max = false;
            if let EventSource::Kernel(attr) = &mut spec.source {
                attr.set_precise_ip(level as u8);
                if level > 0 && !spec.exclusion_chosen {
                    attr.set(Flag::ExcludeGuest, true);
                }
            }
        }
        // `count` is FreeBSD's name for the threshold on AMD. Its `anythread` is Intel's field `any`.
        "count" => replace(host, names, spec, "cmask", qualifier)?,
        "anythread" => replace(host, names, spec, "any", qualifier)?,
        // Several FreeBSD masks may set the same field.
        name if syntax::MASKS.contains(&name) => {
            let (name, number) = freebsd_masks::read(qualifier)?;
            let value = qualifier.value.map(|value| EventWord { text: &number, at: value.at });
            field(host, names, spec, name, &Term { value, ..*qualifier })?;
        }
        name if syntax::FIELDS.contains(&name) => replace(host, names, spec, name, qualifier)?,
        _ => {
            terms::common(spec, qualifier)?;
        }
    }
    Ok(())
}

/// Sets a field of the event's PMU, replacing the event's value.
fn replace(
    host: &Host,
    names: &VendorNames<'_>,
    spec: &mut EventSpec,
    name: &str,
    qualifier: &Term<'_>,
) -> ParseResult<()> {
    let pmu = spec.pmu.as_ref().and_then(|pmu| host.pmu(pmu));
    if let (EventSource::Kernel(attr), Some(Ok(format))) =
        (&mut spec.source, pmu.and_then(|pmu| pmu.format(name)))
    {
        attr.set_word(format.word, attr.word(format.word).unwrap_or(0) & !format.mask);
    }
    field(host, names, spec, name, qualifier)
}

/// Adds bits to a field of the event's PMU. A generic event becomes the raw code that the core PMU lists for
/// it, since generic requests have no fields.
fn field(
    host: &Host,
    names: &VendorNames<'_>,
    spec: &mut EventSpec,
    name: &str,
    qualifier: &Term<'_>,
) -> ParseResult<()> {
    let cannot = |why: &str| {
        Err(Fault::at(
            &qualifier.span(),
            format!("`{}` cannot be applied to this event", qualifier.name.text),
        )
        .why(why))
    };
    let EventSource::Kernel(attr) = &spec.source else { return cannot("pmc itself measures it") };
    let pmu = match (attr.kind(), &spec.pmu) {
        (kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT, _) => {
            return cannot("the kernel counts this event in software");
        }
        (_, Some(pmu)) => host.pmu(pmu),
        (kind::HARDWARE | kind::HW_CACHE | kind::RAW, None) => host.core_pmu(),
        (_, None) => None,
    };
    let Some(pmu) = pmu else { return cannot("this machine has no matching PMU") };
    let term = Term { name: EventWord { text: name, at: qualifier.name.at }, value: qualifier.value };
    let code = terms::pmu_event(names, &pmu, &[term], "", false)?;
    let base = match attr.kind() {
        kind::HW_CACHE => return cannot("generic cache events have no event code to refine"),
        kind::HARDWARE => {
            let wanted = attr.config() & 0xffff_ffff;
            let generic = generic::GENERIC
                .iter()
                .find(|g| (g.kind, g.config) == (kind::HARDWARE, wanted))
                .map_or(&[][..], |g| g.names);
            let Some(name) = generic.iter().find(|name| pmu.event(name).is_some()) else {
                return cannot("its code on this machine is unknown");
            };
            let event = Term { name: EventWord { text: name, at: qualifier.name.at }, value: None };
            Some(terms::pmu_event(names, &pmu, &[event], "", false)?)
        }
        _ => None,
    };
    let EventSource::Kernel(attr) = &mut spec.source else { return Ok(()) };
    let add = |attr: &mut Attr, from: &EventSpec| {
        for word in [1, 7, 8, 16, 17] {
            attr.or_word(word, from.attr().and_then(|from| from.word(word)).unwrap_or(0));
        }
    };
    if let Some(base) = &base {
        attr.set_kind(base.attr().map_or(attr.kind(), Attr::kind));
        attr.set_config(0);
        add(attr, base);
    }
    add(attr, &code);
    Ok(())
}
