//! Qualifiers: what FreeBSD writes behind an event, `cycles,usr,cmask=1`.
//!
//! Receives the terms that `syntax` found behind an event or a group; changes specs. Some are modifiers in words
//! ([`letters_of`]), some are terms that every event takes, and some are fields of the event's PMU: for those a generic event becomes
//! the code that the machine's core PMU lists for it, because a generic request has no fields:
//!
//! ```text
//! instructions,cmask=1   type 0, config 1  ──events/instructions: event=0xc0──►  type 4, config 0x10000c0
//! ```

use super::error::{Fault, Result};
use super::syntax::{self, Term, Word, number};
use super::{EventSpec, Source, probe, terms};
use crate::abi::attr::{Flag, kind};
use crate::abi::generic;
use crate::host::Host;

/// The modifiers that qualifiers say in words.
pub(super) fn letters_of(qualifiers: &[Term<'_>]) -> Result<String> {
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
            // Idle time is counted unless it is said not to be.
            "idle" if !on => 'I',
            _ => continue,
        };
        if !letters.contains(letter) {
            letters.push(letter);
        }
    }
    Ok(letters)
}

/// Whether a qualifier that stands alone is said (`inv`, `inv=1`) or denied (`inv=0`).
fn is_on(qualifier: &Term<'_>) -> Result<bool> {
    let Some(value) = qualifier.value else { return Ok(true) };
    if !syntax::FLAGS.contains(&qualifier.name.text) {
        return Ok(true);
    }
    match number(value.text) {
        Some(value @ 0..=1) => Ok(value == 1),
        _ => Err(Fault::at(&qualifier.span(), format!("`{}` is said or not", qualifier.name.text))
            .expected(format!("{0}, {0}=1 or {0}=0", qualifier.name.text))),
    }
}

/// Applies the qualifiers that are no modifiers in other words.
pub(super) fn qualify(host: &Host, specs: &mut [EventSpec], qualifiers: &[Term<'_>]) -> Result<()> {
    for qualifier in qualifiers {
        let on = is_on(qualifier)?;
        for spec in &mut *specs {
            apply(host, spec, qualifier, on)?;
        }
    }
    Ok(())
}

fn apply(host: &Host, spec: &mut EventSpec, qualifier: &Term<'_>, on: bool) -> Result<()> {
    match qualifier.name.text {
        "descendants" => spec.qualifiers.descendants = on,
        "log-cswitch" => spec.qualifiers.log_cswitch = on,
        "log-exit" => spec.qualifiers.log_exit = on,
        "usr" | "os" | "hv" | "guest" | "host" | "idle" | "pinned" | "exclusive" => {}
        "retprobe" if on => {
            let uprobe = spec.attr().is_some_and(|attr| attr.config1_text().is_some());
            if !uprobe {
                return Err(Fault::at(&qualifier.span(), "`retprobe` is for uprobes")
                    .expected("uprobe:PATH:FUNCTION before it"));
            }
            probe::returning(host, spec, &qualifier.span())?;
        }
        "retprobe" => {}
        "percore" => spec.qualifiers.percore = on,
        "precise" => {
            let level = qualifier.value.and_then(|v| number(v.text)).filter(|&level| level <= 3).ok_or_else(
                || {
                    Fault::at(&qualifier.span(), "no such level of precision")
                        .expected("precise=0 (any skid), 1 (constant), 2 (zero requested) or 3 (zero)")
                },
            )?;
            if let Source::Kernel(attr) = &mut spec.source {
                attr.set_precise_ip(level as u8);
                if level > 0 && !spec.sides_chosen {
                    attr.set(Flag::ExcludeGuest, true);
                }
            }
        }
        // FreeBSD's word for the threshold on AMD; its `anythread` is Intel's field `any`.
        "count" => field(host, spec, "cmask", qualifier)?,
        "anythread" => field(host, spec, "any", qualifier)?,
        "cmask" | "umask" | "inv" | "edge" | "any" => field(host, spec, qualifier.name.text, qualifier)?,
        _ => {
            terms::common(spec, qualifier)?;
        }
    }
    Ok(())
}

/// Sets a field of the event's PMU. A generic event becomes the code that the core PMU lists for it, since
/// generic requests have no fields.
fn field(host: &Host, spec: &mut EventSpec, name: &str, qualifier: &Term<'_>) -> Result<()> {
    let cannot = |why: &str| {
        Err(Fault::at(
            &qualifier.span(),
            format!("`{}` cannot be applied to this event", qualifier.name.text),
        )
        .why(why))
    };
    let Source::Kernel(attr) = &spec.source else { return cannot("pmc itself measures it") };
    let pmu = match (attr.kind(), &spec.pmu) {
        (kind::SOFTWARE | kind::TRACEPOINT | kind::BREAKPOINT, _) => {
            return cannot("the kernel counts it without hardware");
        }
        (_, Some(pmu)) => host.pmu(pmu),
        (kind::HARDWARE | kind::HW_CACHE | kind::RAW, None) => host.core_pmu(),
        (_, None) => None,
    };
    let Some(pmu) = pmu else { return cannot("this machine shows no PMU for it") };
    let term = Term { name: Word { text: name, at: qualifier.name.at }, value: qualifier.value };
    let code = terms::pmu_event(&pmu, &[term], "", false)?;
    let base = match attr.kind() {
        kind::HW_CACHE => return cannot("generic cache events have no code that could be refined"),
        kind::HARDWARE => {
            let wanted = attr.config() & 0xffff_ffff;
            let names = generic::GENERIC
                .iter()
                .find(|g| (g.kind, g.config) == (kind::HARDWARE, wanted))
                .map_or(&[][..], |g| g.names);
            let Some(name) = names.iter().find(|name| pmu.event(name).is_some()) else {
                return cannot("the machine does not say which code it has");
            };
            let event = Term { name: Word { text: name, at: qualifier.name.at }, value: None };
            Some(terms::pmu_event(&pmu, &[event], "", false)?)
        }
        _ => None,
    };
    let Source::Kernel(attr) = &mut spec.source else { return Ok(()) };
    if let Some(base) = base.as_ref().and_then(EventSpec::attr) {
        attr.set_kind(base.kind());
        attr.set_config(0);
    }
    for from in [base.as_ref(), Some(&code)].into_iter().flatten().filter_map(EventSpec::attr) {
        for word in [1, 7, 8, 16, 17] {
            attr.or_word(word, from.word(word).unwrap_or(0));
        }
    }
    Ok(())
}
