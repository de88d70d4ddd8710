//! Splits a count into two parts: the process itself and its children.
//!
//! Receives one row for the process without its children, and one row that includes its children. Adds a row
//! for the children, which is the difference between these two rows.

use super::counts::{CountPart, PlaceLabel, StatRow, StatValue};
use pmc_text::units::Count;

/// Inserts a row for the children between the rows [`CountPart::Own`] and [`CountPart::Sum`].
pub fn add_children(rows: &mut Vec<StatRow>) {
    let of = |part| rows.iter().position(|row: &StatRow| row.place.part == Some(part));
    let (Some(own), Some(sum)) = (of(CountPart::Own), of(CountPart::Sum)) else { return };
    let pairs = rows[own].values.iter().zip(&rows[sum].values);
    let values = pairs.map(|(own, sum)| children(own, sum)).collect();
    let place = PlaceLabel { part: Some(CountPart::Children), ..PlaceLabel::default() };
    rows.insert(sum, StatRow { place, summed: 0, values });
}

fn children(own: &StatValue, sum: &StatValue) -> StatValue {
    match (own, sum) {
        (StatValue::Counted { count: own, .. }, &StatValue::Counted { count: ref sum, counters, .. }) => {
            StatValue::Counted { count: parents_part(*own, *sum), counters, runs: Vec::new() }
        }
        // Elapsed time cannot be split between a process and its children.
        (StatValue::Absent, _) | (_, StatValue::Absent) => StatValue::Absent,
        (StatValue::Counted { .. }, missing) | (missing, _) => missing.clone(),
    }
}

/// Returns the difference `sum` - `own`, at least 0. If the events were multiplexed, both values are
/// estimates, and so is the difference. It is scaled in the same way as `sum`.
fn parents_part(own: Count, sum: Count) -> Count {
    if own.share() >= 1.0 && sum.share() >= 1.0 {
        let more = |sum: u64, own: u64| sum.saturating_sub(own);
        // Without children, the result is a valid count of 0.
        let time = more(sum.enabled_ns, own.enabled_ns).max(1);
        return Count { value: more(sum.value, own.value), enabled_ns: time, running_ns: time };
    }
    let more = (sum.scaled().unwrap_or_default() - own.scaled().unwrap_or_default()).max(0.0);
    Count { value: (more * sum.share()).round() as u64, ..sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: CountPart, value: u64, enabled_ns: u64, running_ns: u64) -> StatRow {
        let count = Count { value, enabled_ns, running_ns };
        let place = PlaceLabel { part: Some(part), ..PlaceLabel::default() };
        StatRow {
            place,
            summed: 0,
            values: vec![StatValue::Counted { count, counters: 1, runs: Vec::new() }],
        }
    }

    fn numbers(own: [u64; 3], sum: [u64; 3]) -> Vec<(Option<CountPart>, f64)> {
        let [a, b] =
            [(CountPart::Own, own), (CountPart::Sum, sum)].map(|(part, [v, e, r])| row(part, v, e, r));
        let mut rows = vec![a, b];
        add_children(&mut rows);
        rows.iter().map(|row| (row.place.part, row.values[0].number().unwrap())).collect()
    }

    #[test]
    fn children_are_sum_minus_self() {
        let parts = numbers([30, 10, 10], [100, 50, 50]);
        assert_eq!(
            parts,
            [(Some(CountPart::Own), 30.0), (Some(CountPart::Children), 70.0), (Some(CountPart::Sum), 100.0)]
        );
    }

    #[test]
    fn missing_children_count_as_zero_and_never_negative() {
        assert_eq!(numbers([30, 10, 10], [30, 10, 10])[1].1, 0.0);
        assert_eq!(numbers([31, 10, 10], [30, 10, 10])[1].1, 0.0);
        assert_eq!(numbers([40, 10, 5], [30, 10, 5])[1].1, 0.0);
    }

    #[test]
    fn scaled_counts_are_subtracted_as_estimates() {
        // The processes' own count is 60, and the total is 200.
        assert_eq!(numbers([30, 10, 5], [50, 40, 10])[1].1, 140.0);
    }
}
