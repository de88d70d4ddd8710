//! Assesses the quality of a recording: modules with missing data, lost samples, and truncated stacks.
//!
//! Computes the data for the *Trust* line from the session's counters and the symbolizer's results.

use std::collections::BTreeSet;
use std::path::Path;

use super::symbols::RecordingSymbols;
use super::{has_chains, header};
use crate::profile::sampled::profile_quality::{StackCounts, UnsampledEvent, UnwindEnds};
use crate::profile::sampled::{self, ModuleQuality, StringTable};
use crate::session::{Samples, Session};
use pmc_perfdata::perfdata::feature::MetaInfo;
use pmc_perfdata::perfdata::{Reader, RecordingNote};
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::{MissingDataReason, ModuleDataQuality};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::error::{Advice, Exit, Result, Warning, say};

/// Maximum number of unreadable files to name in warnings.
const MOST_FAILURES: usize = 10;
/// Maximum number of modules for which to look for remedies.
const REMEDIES: usize = 5;
/// pmc looks for a remedy only if at least one in this many frames is an unnamed frame of the module, because
/// asking the package manager can take longer than the report.
const REMEDY_FROM: u64 = 200;

/// Returns the number of lost samples or, if it is unknown, the number of lost records of any kind.
pub fn lost(session: &Session) -> u64 {
    // Lost-sample records and the counters report the same losses, so these numbers are not added up.
    let facts = &session.facts;
    facts.lost_samples.max(facts.lost_by_events).max(facts.lost_records)
}

/// Returns the notes about the file.
pub fn notes(session: &Session) -> Vec<String> {
    let dropped = session.history.dropped_before().map(|_| {
        "its mappings change so often that pmc dropped old ones to save memory: early samples may be \
         misattributed"
            .to_owned()
    });
    session.notes().iter().map(ToString::to_string).chain(dropped).collect()
}

/// Whether the file is damaged, so that the number of lost records is unknown.
pub fn is_damaged(session: &Session) -> bool {
    session.notes().iter().any(RecordingNote::is_damage)
}

/// Warns about damage, for output that already shows all other notes. Returns the exit status.
pub fn warn_of_damage(session: &Session) -> Exit {
    warn_of_notes(session.notes())
}

/// Warns about damage to a file, for output that shows only the file's header. Returns the exit status.
///
/// # Errors
/// Fails if reading the file fails.
pub fn warn_of_header(reader: &Reader) -> Result<Exit> {
    // The header shows whether records are missing; only a scan can find where.
    let is_cut = reader.notes().iter().any(RecordingNote::loses_samples);
    let notes = if is_cut { reader.scan(|_| {})?.notes } else { reader.notes().to_vec() };
    Ok(warn_of_notes(&notes))
}

/// Warns about the damage that a scan noted. Returns the exit status.
pub fn warn_of_notes(notes: &[RecordingNote]) -> Exit {
    for note in notes.iter().filter(|note| note.is_damage()) {
        say::warn(Warning::new(note.to_string()));
    }
    if notes.iter().any(RecordingNote::loses_samples) { Exit::Failure } else { Exit::Done }
}

/// Prints all notes on the file and its losses as warnings, for output that cannot show notes. Returns the
/// exit status.
pub fn warn(session: &Session) -> Exit {
    let exit = warn_of_damage(session);
    let counted = |count: u64, words: &str| (count > 0).then(|| format!("{count} {words}"));
    let lost = counted(lost(session), "samples or records were lost while recording");
    let unknown = counted(session.index.unknown_samples, "samples of unknown events are omitted");
    let notes = session.notes().iter().filter(|note| !note.is_damage()).map(ToString::to_string);
    for what in notes.chain(lost).chain(unknown) {
        say::note(what);
    }
    exit
}

/// Warns about files that pmc could not read, so that names or source lines are missing, and about code that
/// was not disassembled.
pub fn warn_of_names(failures: impl IntoIterator<Item = MissingDataReason>) {
    let is_of_code = |failure: &MissingDataReason| matches!(failure, MissingDataReason::Undecoded { .. });
    let (code, files): (Vec<_>, Vec<_>) = failures.into_iter().partition(is_of_code);
    warn_of_failures(files, |what| {
        Warning::new(format!("function names or source lines are missing: {what}"))
    });
    warn_of_failures(code, |what| {
        Warning::new(format!("instructions are missing: {what}")).advise(
            "raise the process and memory limits (ulimit -u, ulimit -v) if pmc cannot start a process",
        )
    });
}

/// Warns about files that pmc could not read, so that call chains may end early or lack functions.
pub(super) fn warn_of_chains(failures: impl IntoIterator<Item = MissingDataReason>) {
    warn_of_failures(failures, |what| Warning::new(format!("call chains may lack callers: {what}")));
}

fn warn_of_failures(
    failures: impl IntoIterator<Item = MissingDataReason>,
    warning: impl Fn(&str) -> Warning,
) {
    // Several recordings or modules may share a file.
    let failures: BTreeSet<String> = failures.into_iter().map(|failure| failure.to_string()).collect();
    for what in failures.iter().take(MOST_FAILURES) {
        say::warn(warning(what));
    }
    if let Some(more) = failures.len().checked_sub(MOST_FAILURES).filter(|more| *more > 0) {
        say::warn(warning(&format!("{more} more such errors")));
    }
}

/// Returns the modules with samples, most frames first.
pub(super) fn modules(
    session: &Session,
    symbols: &RecordingSymbols,
    quality: &StackCounts,
    texts: &mut StringTable,
) -> Vec<ModuleQuality> {
    let mut list: Vec<ModuleQuality> = quality
        .modules
        .iter()
        .map(|(&module, &(frames, unnamed))| {
            let Some(module) = module else {
                let name = sampled::code::UNKNOWN;
                return ModuleQuality {
                    path: Path::new(name).into(),
                    name: texts.add(name),
                    build_id: None,
                    data: ModuleDataQuality::lacking(MissingDataReason::NotMapped).into(),
                    frames,
                    unnamed,
                    remedy: None,
                };
            };
            let of = &session.history.modules()[module as usize];
            ModuleQuality {
                path: of.path.clone(),
                name: texts.add(&of.short_name()),
                build_id: of.build_id.as_ref().map(|id| pmc_text::text::hex(id, "").into()),
                data: symbols.id(module).map(|id| symbols.symbolizer.quality(id)).unwrap_or_default(),
                frames,
                unnamed,
                remedy: None,
            }
        })
        .collect();
    list.sort_by(|a, b| b.frames.cmp(&a.frames).then_with(|| a.path.as_os_str().cmp(b.path.as_os_str())));
    list
}

/// Finds remedies for the modules with the most unnamed frames. May ask the package manager.
pub(super) fn add_remedies(modules: &mut [ModuleQuality], session: &Session, symbols: &RecordingSymbols) {
    let frames: u64 = modules.iter().map(|module| module.frames).sum();
    let matters = |module: &&mut ModuleQuality| module.unnamed > 0 && module.unnamed >= frames / REMEDY_FROM;
    let mut worst: Vec<&mut ModuleQuality> = modules.iter_mut().filter(matters).collect();
    worst.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    for module in worst.into_iter().take(REMEDIES) {
        let all = session.history.modules().iter().enumerate();
        let mut same = all.filter(|(_, of)| of.path == module.path);
        let id = same.find_map(|(number, _)| symbols.id(number as u32));
        module.remedy =
            id.and_then(|id| symbols.symbolizer.remedy(id)).map(|hint| Advice::from(hint).to_string().into());
    }
}

/// The call-graph mode that `pmc profile` uses by default.
const OF_PROFILE: &str = "auto,65528";

/// Returns the live unwinding mode that the command line selects, and whether it selects the maximum size of
/// stack copies.
fn unwound_live(typed: &[String]) -> (Option<&'static str>, bool) {
    let equals = typed.iter().filter_map(|word| word.strip_prefix("--call-graph="));
    let pairs = typed.iter().zip(typed.iter().skip(1));
    let apart = pairs.filter(|(word, _)| *word == "--call-graph").map(|(_, value)| value.as_str());
    let is_profile = typed.get(1).is_some_and(|command| command == "profile");
    let asked = equals.chain(apart).next().or(is_profile.then_some(OF_PROFILE)).unwrap_or_default();
    let (mode, bytes) = asked.split_once(',').unwrap_or((asked, ""));
    let mode = ["dwarf", "auto"].into_iter().find(|known| *known == mode);
    (mode, mode.is_some() && bytes.parse() == Ok(LARGEST_STACK_COPY))
}

/// Returns the counted total of a clock or cycles event, and the sum of its sample periods. Returns `None` if
/// no total was recorded, or if any samples were excluded.
fn unsampled(session: &Session, samples: &Samples) -> Option<UnsampledEvent> {
    let known = session.index.count(kind::SAMPLE).saturating_sub(session.index.unknown_samples);
    if samples.totals.iter().map(|total| total.samples).sum::<u64>() != known {
        return None;
    }
    let meta = session.reader.features().meta_info.as_ref()?;
    session.reader.events().iter().enumerate().zip(&samples.totals).find_map(|((at, event), total)| {
        let is_time = sampled::is_clock(&event.name());
        let is_of_cpu = is_time || event.name().starts_with("cycles");
        let counted = meta.counted(at).filter(|_| is_of_cpu)?;
        Some(UnsampledEvent { counted, sampled: total.period, is_time })
    })
}

/// Returns the data for the trust line.
pub(super) fn trust(
    session: &Session,
    samples: &Samples,
    quality: &StackCounts,
    mut ends: UnwindEnds,
    has_stacks: bool,
) -> sampled::ProfileQuality {
    let name = |module: u32| session.history.modules()[module as usize].short_name();
    let mut broken: Vec<(String, u64)> = quality
        .broken
        .iter()
        .filter(|_| has_stacks)
        .map(|(module, samples)| (module.map_or_else(|| sampled::code::UNKNOWN.to_owned(), name), *samples))
        .collect();
    broken.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if has_stacks {
        // The kernel may have found the callers of generated code by frame pointers.
        for (module, samples) in &mut ends.no_tables {
            if module.as_deref().is_some_and(sampled::code::is_generated_module) {
                let found = broken.iter().find(|(name, _)| Some(name) == module.as_ref());
                *samples = found.map_or(0, |(_, broken)| *broken).min(*samples);
            }
        }
        ends.no_tables.retain(|(_, samples)| *samples > 0);
    }
    let sum = |pick: fn(&(u64, u64)) -> u64| quality.modules.values().map(pick).sum();
    let typed = session.reader.features().cmdline.as_deref().unwrap_or_default();
    let (unwound_live, largest_live) = unwound_live(typed);
    let in_events = session.reader.events().iter().map(|event| event.attr.sample_stack_user());
    let in_archive = session.converted.as_ref().map(|stacks| stacks.copy_size);
    let copied = in_events.chain(in_archive).max().unwrap_or(0);
    sampled::ProfileQuality {
        unwound_live: unwound_live.filter(|_| ends.copied == 0),
        cut_live: session
            .reader
            .features()
            .meta_info
            .as_ref()
            .and_then(MetaInfo::stacks)
            .map(|(unwound, cut)| cut as f64 / unwound.max(1) as f64 * 100.0),
        is_imported: header::is_imported(&session.reader),
        largest_copies: largest_live || copied == LARGEST_STACK_COPY,
        samples: samples.totals.iter().map(|total| total.samples).sum(),
        // Lost-sample records and the counters report the same losses, so these numbers are not added up.
        lost_samples: session
            .facts
            .lost_samples
            .max(session.facts.lost_by_events.saturating_add(samples.lost)),
        lost_records: session.facts.lost_records,
        chains_unread: !has_stacks && has_chains(&session.reader),
        unsampled: unsampled(session, samples),
        throttled: session.facts.throttled,
        yielded_ns: session.facts.yielded_ns,
        unknown: session.index.unknown_samples,
        is_damaged: is_damaged(session),
        stacks: if has_stacks { quality.stacks } else { 0 },
        rooted: quality.rooted,
        cut_off: if has_stacks { quality.cut_off } else { 0 },
        joined: if has_stacks { quality.joined } else { 0 },
        broken,
        ends,
        frames: sum(|counts| counts.0),
        unnamed: sum(|counts| counts.1),
        nameless_languages: quality.nameless_languages.clone(),
        erlang_ends: quality.erlang_ends,
        notes: notes(session),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwind_mode_is_read_from_the_command_line() {
        let how = |line: &str| unwound_live(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(how("pmc record --call-graph dwarf,16384 ls"), (Some("dwarf"), false));
        assert_eq!(how("pmc record --call-graph=auto -- ls"), (Some("auto"), false));
        assert_eq!(how("pmc record --call-graph dwarf,65528 ls"), (Some("dwarf"), true));
        assert_eq!(how("pmc profile -- ls dwarf"), (Some("auto"), true));
        assert_eq!(how("pmc profile --call-graph fp -- ls"), (None, false));
        assert_eq!(how("pmc record -g ls"), (None, false));
    }
}
