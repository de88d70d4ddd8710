//! Parts of one count side by side: a process's own and its children's, or user mode's and the kernel's.
//!
//! Receives rows of what was counted of a process alone and of it with its children; hands on a row more, the
//! difference.

use super::counts::{Part, PlaceLabel, Row, Value};
use crate::units::Count;

/// Puts what children counted between the rows of [`Part::Own`] and [`Part::Sum`].
pub fn add_children(rows: &mut Vec<Row>) {
    let of = |part| rows.iter().position(|row: &Row| row.place.part == Some(part));
    let (Some(own), Some(sum)) = (of(Part::Own), of(Part::Sum)) else { return };
    let pairs = rows[own].values.iter().zip(&rows[sum].values);
    let values = pairs.map(|(own, sum)| children(own, sum)).collect();
    let place = PlaceLabel { part: Some(Part::Children), ..PlaceLabel::default() };
    rows.insert(sum, Row { place, summed: 0, values });
}

fn children(own: &Value, sum: &Value) -> Value {
    match (own, sum) {
        (Value::Counted { count: own, .. }, &Value::Counted { count: ref sum, counters, .. }) => {
            Value::Counted { count: beyond(*own, *sum), counters, runs: Vec::new() }
        }
        // Of the time that passes children have no part of their own.
        (Value::Absent, _) | (_, Value::Absent) => Value::Absent,
        (Value::Counted { .. }, missing) | (missing, _) => missing.clone(),
    }
}

/// What `sum` has more than `own`; nothing is less than none. Where they took turns with others, each is an
/// estimate, and so is this: it is scaled as the sum is.
fn beyond(own: Count, sum: Count) -> Count {
    if own.share() >= 1.0 && sum.share() >= 1.0 {
        let more = |sum: u64, own: u64| sum.saturating_sub(own);
        // Where there were no children, their count is a 0 that was counted.
        let time = more(sum.enabled_ns, own.enabled_ns).max(1);
        return Count { value: more(sum.value, own.value), enabled_ns: time, running_ns: time };
    }
    let more = (sum.scaled().unwrap_or_default() - own.scaled().unwrap_or_default()).max(0.0);
    Count { value: (more * sum.share()).round() as u64, ..sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: Part, value: u64, enabled_ns: u64, running_ns: u64) -> Row {
        let count = Count { value, enabled_ns, running_ns };
        let place = PlaceLabel { part: Some(part), ..PlaceLabel::default() };
        Row { place, summed: 0, values: vec![Value::Counted { count, counters: 1, runs: Vec::new() }] }
    }

    fn numbers(own: [u64; 3], sum: [u64; 3]) -> Vec<(Option<Part>, f64)> {
        let [a, b] = [(Part::Own, own), (Part::Sum, sum)].map(|(part, [v, e, r])| row(part, v, e, r));
        let mut rows = vec![a, b];
        add_children(&mut rows);
        rows.iter().map(|row| (row.place.part, row.values[0].number().unwrap())).collect()
    }

    #[test]
    fn children_are_what_the_sum_has_more() {
        let parts = numbers([30, 10, 10], [100, 50, 50]);
        assert_eq!(parts, [(Some(Part::Own), 30.0), (Some(Part::Children), 70.0), (Some(Part::Sum), 100.0)]);
    }

    #[test]
    fn no_children_are_a_count_of_none_and_never_less() {
        assert_eq!(numbers([30, 10, 10], [30, 10, 10])[1].1, 0.0);
        assert_eq!(numbers([31, 10, 10], [30, 10, 10])[1].1, 0.0);
        assert_eq!(numbers([40, 10, 5], [30, 10, 5])[1].1, 0.0);
    }

    #[test]
    fn estimates_are_compared_as_such() {
        // 60 of the processes, 200 in all.
        assert_eq!(numbers([30, 10, 5], [50, 40, 10])[1].1, 140.0);
    }
}
