//! Sums up individual counter readings into the rows of a table.
//!
//! Receives readings, each with its place. The place must contain only the fields that the aggregation
//! distinguishes. Returns [`StatRow`]s sorted by place.

use std::collections::BTreeMap;

use super::counts::{MissingValueReason, PlaceLabel, StatRow, StatValue};
use pmc_text::units::Count;

/// How to combine the counts of several counters into one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountJoin {
    /// Each counter counts a different part of the event all the time (CPUs, threads, PMU instances). Values
    /// and times are added.
    #[default]
    Parts,
    /// The counters take turns on the same task (the PMUs of a hybrid machine). Values and running times are
    /// added; the enabled time is the same for all and is not added.
    Turns,
}

/// A table under construction.
#[derive(Debug)]
pub struct Tally {
    events: usize,
    rows: BTreeMap<PlaceLabel, Vec<TallyCell>>,
    spots: BTreeMap<PlaceLabel, std::collections::BTreeSet<u64>>,
}

#[derive(Debug, Clone, Default)]
struct TallyCell {
    seen: bool,
    /// The sum; `None` until a reading of the cell has a count.
    count: Option<Count>,
    /// Number of readings in the sum.
    counters: u32,
    /// Why a counter of the cell is not available.
    refused: Option<MissingValueReason>,
}

impl Tally {
    /// Creates a table for this number of events.
    pub fn new(events: usize) -> Self {
        Self { events, rows: BTreeMap::new(), spots: BTreeMap::new() }
    }

    /// Adds a row for this place unless the place already has one. A place keeps its row even if nothing is
    /// counted there.
    pub fn row(&mut self, place: PlaceLabel) {
        self.rows.entry(place).or_insert_with(|| vec![TallyCell::default(); self.events]);
    }

    /// Adds a reading of `event` to the row of `place`. `spot` identifies the CPU or thread within the row. A
    /// `count` of `None` means that the counter never ran.
    pub fn add(&mut self, place: PlaceLabel, spot: u64, event: usize, count: Option<Count>, join: CountJoin) {
        let (Some(cell), Some(count)) = (self.cell(place, spot, event), count) else { return };
        cell.counters += 1;
        let sum = cell.count.get_or_insert_default();
        match join {
            CountJoin::Parts => *sum += count,
            CountJoin::Turns => sum.take_turns(count),
        }
    }

    /// Records why `event` has no counter in `place`. The cell still gets a value if another counter of the
    /// event works in that place.
    pub fn refuse(&mut self, place: PlaceLabel, spot: u64, event: usize, reason: &MissingValueReason) {
        if let Some(cell) = self.cell(place, spot, event) {
            cell.refused = Some(reason.clone());
        }
    }

    fn cell(&mut self, place: PlaceLabel, spot: u64, event: usize) -> Option<&mut TallyCell> {
        self.spots.entry(place.clone()).or_default().insert(spot);
        self.row(place.clone());
        let cell = self.rows.get_mut(&place)?.get_mut(event)?;
        cell.seen = true;
        Some(cell)
    }

    /// Returns the rows. `idle` returns the reason why an event with counters never ran.
    pub fn rows(self, idle: impl Fn(usize) -> MissingValueReason) -> Vec<StatRow> {
        let Self { rows, spots, .. } = self;
        rows.into_iter()
            .map(|(place, cells)| StatRow {
                summed: spots.get(&place).map_or(0, |s| s.len() as u32),
                values: cells
                    .into_iter()
                    .enumerate()
                    .map(|(event, cell)| match cell {
                        TallyCell { seen: false, .. } => StatValue::Absent,
                        TallyCell { count: Some(count), counters, .. } if count.running_ns > 0 => {
                            StatValue::Counted { count, counters, runs: Vec::new() }
                        }
                        TallyCell { count: None, refused: Some(reason), .. } => {
                            StatValue::NotSupported(reason)
                        }
                        _ => StatValue::NotCounted(idle(event)),
                    })
                    .collect(),
                place,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(cpu: u32) -> PlaceLabel {
        PlaceLabel { cpu: Some(cpu), ..PlaceLabel::default() }
    }

    fn count(value: u64, enabled_ns: u64, running_ns: u64) -> Option<Count> {
        Some(Count { value, enabled_ns, running_ns })
    }

    fn only(rows: &[StatRow]) -> Count {
        match rows {
            [StatRow { values, .. }] => match values[0] {
                StatValue::Counted { count, .. } => count,
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn partial_counts_add_up() {
        let mut tally = Tally::new(1);
        let place = PlaceLabel::default();
        tally.add(place.clone(), 0, 0, count(1, 10, 10), CountJoin::Parts);
        tally.add(place, 1, 0, count(2, 10, 5), CountJoin::Parts);
        let rows = tally.rows(|_| MissingValueReason::default());
        assert_eq!(only(&rows), Count { value: 3, enabled_ns: 20, running_ns: 15 });
        assert_eq!((rows[0].summed, rows[0].values[0].counters()), (2, 2));
    }

    #[test]
    fn multiplexed_events_share_the_enabled_time() {
        let mut tally = Tally::new(1);
        for _ in 0..2 {
            tally.add(PlaceLabel::default(), 0, 0, count(50, 100, 50), CountJoin::Turns);
        }
        let rows = tally.rows(|_| MissingValueReason::default());
        assert_eq!(only(&rows).scaled(), Some(100.0));
    }

    #[test]
    fn idle_events_are_not_counted_and_other_cpus_are_absent() {
        let mut tally = Tally::new(2);
        tally.add(cpu(0), 0, 0, count(0, 10, 0), CountJoin::Parts);
        let rows = tally.rows(|_| MissingValueReason::default());
        assert!(matches!(rows[0].values[..], [StatValue::NotCounted(_), StatValue::Absent]));
    }

    #[test]
    fn refused_events_get_a_row_and_others_keep_their_value() {
        let mut tally = Tally::new(2);
        let reason = MissingValueReason::new("no such counter", "");
        for event in 0..2 {
            tally.refuse(cpu(0), 0, event, &reason);
        }
        tally.add(cpu(0), 0, 1, count(3, 10, 10), CountJoin::Parts);
        let rows = tally.rows(|_| MissingValueReason::default());
        assert!(matches!(&rows[0].values[0], StatValue::NotSupported(why) if *why == reason));
        assert_eq!(rows[0].values[1].number(), Some(3.0));
    }
}
