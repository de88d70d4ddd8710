//! Sums up single readings into the rows of a table.
//!
//! Receives readings, each with its place. The caller has already reduced the place to the fields that the
//! aggregation distinguishes. Returns [`Row`]s sorted by place.

use std::collections::BTreeMap;

use super::counts::{PlaceLabel, Reason, Row, Value};
use crate::units::Count;

/// How to combine the counts of several counters that are shown as one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Each counter counts a different part all the time (CPUs, threads, PMU instances): everything is added.
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
    rows: BTreeMap<PlaceLabel, Vec<Cell>>,
    spots: BTreeMap<PlaceLabel, std::collections::BTreeSet<u64>>,
}

#[derive(Debug, Clone, Default)]
struct Cell {
    seen: bool,
    /// `None` until a reading of the cell has a count.
    count: Option<Count>,
    /// Number of readings in the sum.
    counters: u32,
    /// Why a counter of the cell is not available.
    refused: Option<Reason>,
}

impl Tally {
    /// Creates a table of this number of events.
    pub fn new(events: usize) -> Self {
        Self { events, rows: BTreeMap::new(), spots: BTreeMap::new() }
    }

    /// Adds a row for this place if it is missing, even if nothing is counted there.
    pub fn row(&mut self, place: PlaceLabel) {
        self.rows.entry(place).or_insert_with(|| vec![Cell::default(); self.events]);
    }

    /// Adds a reading of `event` to the row of `place`. `spot` identifies the CPU or thread within the row. A
    /// `count` of `None` means that the counter never ran.
    pub fn add(&mut self, place: PlaceLabel, spot: u64, event: usize, count: Option<Count>, join: Join) {
        let (Some(cell), Some(count)) = (self.cell(place, spot, event), count) else { return };
        cell.counters += 1;
        let sum = cell.count.get_or_insert_default();
        match join {
            Join::Parts => *sum += count,
            Join::Turns => sum.take_turns(count),
        }
    }

    /// Records why `event` has no counter in `place`. The cell still has a value if another counter counts
    /// there.
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

    /// Returns the rows. `idle` returns the reason why an event with counters never ran.
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
