//! Adding up: single readings become the rows of a table.
//!
//! Receives readings with the place each belongs to (already reduced to what the aggregation tells apart);
//! hands on [`Row`]s in the order of their places.

use std::collections::BTreeMap;

use super::counts::{PlaceLabel, Reason, Row, Value};
use crate::units::Count;

/// How counts of several counters that are shown as one event are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Each counts its own part all the time (CPUs, threads, PMU instances): everything is added.
    #[default]
    Parts,
    /// They take turns on the same task (the PMUs of a hybrid machine): values and running times are added,
    /// the time they were enabled is the same time.
    Turns,
}

/// A table being filled.
#[derive(Debug)]
pub struct Tally {
    events: usize,
    rows: BTreeMap<PlaceLabel, Vec<Cell>>,
    spots: BTreeMap<PlaceLabel, std::collections::BTreeSet<u64>>,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    seen: bool,
    /// `None` while no reading of the cell could be counted.
    count: Option<Count>,
    /// How many readings are in it.
    counters: u32,
    /// Why a counter of the cell could not be had.
    refused: Option<Reason>,
}

impl Tally {
    /// A table of so many events.
    pub fn new(events: usize) -> Self {
        Self { events, rows: BTreeMap::new(), spots: BTreeMap::new() }
    }

    /// Makes sure that there is a row for this place, even if nothing is counted in it.
    pub fn row(&mut self, place: PlaceLabel) {
        self.rows.entry(place).or_insert_with(|| vec![Cell::default(); self.events]);
    }

    /// Adds a reading of `event` to the row of `place`. `spot` tells the summed CPUs or threads apart.
    /// `None`: the counter never ran.
    pub fn add(&mut self, place: PlaceLabel, spot: u64, event: usize, count: Option<Count>, join: Join) {
        let (Some(cell), Some(count)) = (self.cell(place, spot, event), count) else { return };
        cell.counters += 1;
        let sum = cell.count.get_or_insert_default();
        match join {
            Join::Parts => *sum += count,
            Join::Turns => sum.take_turns(count),
        }
    }

    /// Says why `event` has no counter in `place`. One that counts there all the same is enough for a value.
    pub fn refuse(&mut self, place: PlaceLabel, spot: u64, event: usize, reason: &Reason) {
        if let Some(cell) = self.cell(place, spot, event) {
            cell.refused = Some(reason.clone());
        }
    }

    fn cell(&mut self, place: PlaceLabel, spot: u64, event: usize) -> Option<&mut Cell> {
        self.spots.entry(place.clone()).or_default().insert(spot);
        self.row(place.clone());
        let cell = self.rows.get_mut(&place)?.get_mut(event)?;
        cell.seen = true;
        Some(cell)
    }

    /// The rows. `idle` says why an event that has counters never ran.
    pub fn rows(self, idle: impl Fn(usize) -> Reason) -> Vec<Row> {
        let Self { rows, spots, .. } = self;
        rows.into_iter()
            .map(|(place, cells)| Row {
                summed: spots.get(&place).map_or(0, |s| s.len() as u32),
                values: cells
                    .into_iter()
                    .enumerate()
                    .map(|(event, cell)| match cell {
                        Cell { seen: false, .. } => Value::Absent,
                        Cell { count: Some(count), counters, .. } if count.running_ns > 0 => {
                            Value::Counted { count, counters, runs: Vec::new() }
                        }
                        Cell { count: None, refused: Some(reason), .. } => Value::NotSupported(reason),
                        _ => Value::NotCounted(idle(event)),
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

    fn only(rows: &[Row]) -> Count {
        match rows {
            [Row { values, .. }] => match values[0] {
                Value::Counted { count, .. } => count,
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_add_up() {
        let mut tally = Tally::new(1);
        let place = PlaceLabel::default();
        tally.add(place.clone(), 0, 0, count(1, 10, 10), Join::Parts);
        tally.add(place, 1, 0, count(2, 10, 5), Join::Parts);
        let rows = tally.rows(|_| Reason::default());
        assert_eq!(only(&rows), Count { value: 3, enabled_ns: 20, running_ns: 15 });
        assert_eq!((rows[0].summed, rows[0].values[0].counters()), (2, 2));
    }

    #[test]
    fn turns_share_the_enabled_time() {
        let mut tally = Tally::new(1);
        for _ in 0..2 {
            tally.add(PlaceLabel::default(), 0, 0, count(50, 100, 50), Join::Turns);
        }
        let rows = tally.rows(|_| Reason::default());
        assert_eq!(only(&rows).scaled(), Some(100.0));
    }

    #[test]
    fn what_never_ran_is_not_counted_and_what_is_elsewhere_is_absent() {
        let mut tally = Tally::new(2);
        tally.add(cpu(0), 0, 0, count(0, 10, 0), Join::Parts);
        let rows = tally.rows(|_| Reason::default());
        assert!(matches!(rows[0].values[..], [Value::NotCounted(_), Value::Absent]));
    }

    #[test]
    fn what_was_refused_has_its_row_and_what_counts_beside_it_its_value() {
        let mut tally = Tally::new(2);
        let reason = Reason::new("no such counter", "");
        for event in 0..2 {
            tally.refuse(cpu(0), 0, event, &reason);
        }
        tally.add(cpu(0), 0, 1, count(3, 10, 10), Join::Parts);
        let rows = tally.rows(|_| Reason::default());
        assert!(matches!(&rows[0].values[0], Value::NotSupported(why) if *why == reason));
        assert_eq!(rows[0].values[1].number(), Some(3.0));
    }
}
