//! Matches events of different names that measure the same: the running time of threads, or the only event of
//! an imported profile.
//!
//! Renames the events of the other recordings like those of the base, because events are matched by name.
//! Returns what the reader must know about it.

use super::measure::MeasureMatch;
use super::side::DiffSide;
use crate::profile::sampled;

/// What the reader must know about events with different names.
#[derive(Debug, Default)]
pub(super) struct MatchNotes {
    /// Notes with the names of files and events; untrusted text.
    pub(super) notes: Vec<String>,
    /// Sentences without text from the recordings.
    pub(super) scope: Vec<&'static str>,
    /// Whether events with different units are compared.
    pub(super) has_mixed_units: bool,
}

impl MatchNotes {
    fn add(&mut self, note: String, scope: Option<&'static str>) {
        // Events with the same name have the same note.
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        self.scope.extend(scope.filter(|scope| !self.scope.contains(scope)));
    }
}

/// Gives an event that measures running time the name of the base's event that measures the same, unless
/// both recordings have events of the same name. Prefers events with the same unit.
pub(super) fn match_running(sides: &mut [DiffSide], notes: &mut MatchNotes) {
    let Some((base, others)) = sides.split_first_mut() else { return };
    for side in others {
        for is_wanted in [|of| of != MeasureMatch::SharesOnly, |of| of == MeasureMatch::SharesOnly] {
            match_side(base, side, is_wanted, notes);
        }
    }
}

fn match_side(
    base: &DiffSide,
    side: &mut DiffSide,
    is_wanted: fn(MeasureMatch) -> bool,
    notes: &mut MatchNotes,
) {
    let has = |side: &DiffSide, name: &str| side.events.iter().any(|event| event.profile.name == name);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (at, event) in base.events.iter().enumerate() {
        let name = &event.profile.name;
        // If several events of the base have the same name, only the first is compared.
        let first = base.events.iter().position(|other| other.profile.name == *name).unwrap_or(at);
        let Some(measure) = base.events[first].measure else { continue };
        if event.measure != Some(measure) || has(side, name) {
            continue;
        }
        let twin = side.events.iter().enumerate().find_map(|(other, twin)| {
            let how = measure.matches(twin.measure?).filter(|how| is_wanted(*how))?;
            let is_free = pairs.iter().all(|(_, paired)| *paired != other) && !has(base, &twin.profile.name);
            is_free.then_some((other, how))
        });
        let Some((twin, how)) = twin else { continue };
        let of_side = &side.events[twin].profile.name;
        let note = format!("{}: {of_side} is compared with {name}; {}", side.file.path, how.reason());
        notes.add(note, Some(how.scope()));
        notes.has_mixed_units |= how == MeasureMatch::SharesOnly;
        pairs.push((at, twin));
    }
    for (at, twin) in pairs {
        side.events[twin].profile.name.clone_from(&base.events[at].profile.name);
    }
}

/// Gives the only event of a recording the name of the base's only event, if one of them was imported: other
/// programs have other names for events, or none.
pub(super) fn match_imported(sides: &mut [DiffSide], notes: &mut MatchNotes) {
    let Some((base, others)) = sides.split_first_mut() else { return };
    // Waits are not an event of other programs.
    let only = |side: &DiffSide| {
        let is_sampled = |at: &usize| {
            let event = &side.events[*at];
            event.profile.total.samples > 0 && !event.is_census()
        };
        let mut sampled = (0..side.events.len()).filter(is_sampled);
        sampled.next().filter(|_| sampled.next().is_none())
    };
    for side in others.iter_mut().filter(|side| side.is_imported || base.is_imported) {
        let (Some(of_base), Some(of_side)) = (only(base), only(side)) else { continue };
        let name = &base.events[of_base].profile.name;
        let event = &mut side.events[of_side].profile;
        if event.name != *name {
            notes.has_mixed_units |= sampled::is_clock(&event.name) != sampled::is_clock(name);
            let path = &side.file.path;
            let note = format!("{path}: {} is compared with {name}, the only event of the base", event.name);
            notes.add(note, None);
            event.name.clone_from(name);
        }
    }
}
