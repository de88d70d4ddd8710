//! Suggestions for an unknown word.
//!
//! Takes the word and the [`Host`]; returns an error with the most similar names on the machine. Reads many
//! files, but runs only after an error.

use super::error::Fault;
use super::names::VendorNames;
use super::syntax::{self, EventWord};
use super::{Tool, freebsd_aliases, glob};
use crate::hint::Hint;
use pmc_sys::abi::generic;
use pmc_sys::host::Host;

/// Every event name on this machine, for suggestions.
pub(super) fn event_names(host: &Host, makers: &VendorNames<'_>) -> Vec<String> {
    let mut names: Vec<String> = fixed_names().into_iter().map(str::to_owned).collect();
    names.extend(cache_names());
    for pmu in host.pmu_names() {
        if let Some(pmu) = host.pmu(&pmu) {
            names.extend(pmu.events());
        }
    }
    names.extend(makers.all().map(str::to_ascii_lowercase));
    names.extend(freebsd_aliases::ALIASES.iter().map(|alias| alias.name.to_owned()));
    names
}

pub(super) fn unknown(host: &Host, makers: &VendorNames<'_>, word: EventWord<'_>) -> Fault {
    let mut names = event_names(host, makers);
    if let Ok(tracepoints) = host.tracepoints() {
        names.extend(tracepoints);
    }
    let pmus = host.pmu_names();
    if pmus.iter().any(|pmu| glob::fits_pmu(word.text, pmu)) {
        return Fault::at(&word.span(), format!("`{}` is a PMU, but no event is given", word.text))
            .expected(format!("{}/EVENT/ or {0}/TERM=VALUE,…/", word.text));
    }
    let qualifiers = syntax::FLAGS.into_iter().chain(syntax::VALUED);
    if let Some((name, _)) = word.text.split_once('=') {
        return Fault::at(&(word.at..word.at + name.len()), format!("unknown qualifier `{name}`"))
            .expected(format!(
                "an event, or one of the qualifiers {}",
                qualifiers.clone().collect::<Vec<_>>().join(", ")
            ))
            .meant(name, qualifiers);
    }
    names.extend(qualifiers.map(str::to_owned));
    Fault::at(&word.span(), format!("unknown event `{}`", word.text))
        .meant(word.text, names.iter().map(String::as_str))
        .try_this(Hint::ShowEvents)
}

pub(super) fn unknown_pmu(host: &Host, word: EventWord<'_>) -> Fault {
    let mut pmus: Vec<String> = host.pmu_names().iter().map(|name| stem(name).to_owned()).collect();
    pmus.dedup();
    let list = if pmus.is_empty() { "none".to_owned() } else { pmus.join(", ") };
    Fault::at(&word.span(), format!("this machine has no PMU named `{}`", word.text))
        .expected(format!("one of its PMUs ({list})"))
        .meant(word.text, pmus.iter().map(String::as_str).chain(fixed_names()))
}

/// The names common to all machines, except cache events.
fn fixed_names() -> Vec<&'static str> {
    let tools = Tool::ALL.iter().map(|(_, name, _)| *name);
    generic::GENERIC.iter().flat_map(|generic| generic.names.iter().copied()).chain(tools).collect()
}

/// The usual names of the cache events.
pub(super) fn cache_names() -> Vec<String> {
    generic::cache_events().map(|(name, _, _)| name).collect()
}

/// The common name of all instances of a PMU: `uncore_imc` for `uncore_imc_3`.
fn stem(pmu: &str) -> &str {
    match pmu.trim_end_matches(|c: char| c.is_ascii_digit()).strip_suffix('_') {
        Some(stem) if stem.len() < pmu.len() - 1 => stem,
        _ => pmu,
    }
}
