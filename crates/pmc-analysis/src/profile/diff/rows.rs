//! The lines of a comparison: rows of all recordings, matched by their sort keys, compared and sorted.

use rustc_hash::FxHashMap;

use super::{
    ChangeTest, ChangeVerdict, Compute, CostSource, DiffChange, DiffEvent, DiffRow, change, set_verdicts,
};
use crate::profile::sampled::{RowCell, SampleValue, StringTable, TableRow, table};

/// Compares the rows of one event. `sides` contains the total and the rows of each recording, the base first,
/// or `None` if the recording does not contain the event. Rows are sorted by their change in recording number
/// `order`, where 1 is the first recording after the base. If `order` is 0, rows are sorted by their share in
/// the base. Ties are sorted by the rows' text.
pub(crate) fn compare(
    name: &str,
    sides: &[Option<(SampleValue, Vec<TableRow>)>],
    (compute, source): (Compute, CostSource),
    order: usize,
    texts: &StringTable,
) -> DiffEvent {
    let mut known: FxHashMap<&[RowCell], usize> = FxHashMap::default();
    let mut lines: Vec<DiffRow> = Vec::new();
    for (side, of) in sides.iter().enumerate() {
        for row in of.iter().flat_map(|(_, rows)| rows).filter(|row| row.own.samples > 0) {
            let at = *known.entry(&row.cells).or_insert_with(|| {
                let values = vec![SampleValue::default(); sides.len()];
                lines.push(DiffRow { cells: row.cells.clone(), values, changes: Vec::new() });
                lines.len() - 1
            });
            lines[at].values[side] += &row.own;
        }
    }
    let totals: Vec<Option<SampleValue>> =
        sides.iter().map(|side| side.as_ref().map(|(total, _)| total.clone())).collect();
    changes((compute, source), &totals, lines.iter_mut().map(|line| (&line.values[..], &mut line.changes)));
    lines.sort_by(|a, b| {
        let share = |line: &DiffRow, side: usize| {
            totals[side].as_ref().map_or(0.0, |total| super::part(total, &line.values[side]).share)
        };
        let key = |line: &DiffRow| match order {
            0 => share(line, 0),
            _ => weight(compute, line.changes.get(order - 1).and_then(Option::as_ref)),
        };
        // If two changes are equal, such as two infinite ratios, the line with the higher cost comes first.
        let biggest = |line: &DiffRow| (0..totals.len()).map(|side| share(line, side)).fold(0.0, f64::max);
        key(b)
            .total_cmp(&key(a))
            .then_with(|| biggest(b).total_cmp(&biggest(a)))
            .then_with(|| table::compare(&a.cells, &b.cells, texts))
    });
    DiffEvent { name: name.to_owned(), totals, lines, ..DiffEvent::default() }
}

/// Returns the value by which a change is sorted.
fn weight(compute: Compute, change: Option<&DiffChange>) -> f64 {
    let value = |change: &DiffChange| match (compute, change.value) {
        // Sort insignificant ratios last. Rows with few samples often have the largest ratios, but these mean
        // nothing.
        (Compute::Ratio, _) if matches!(change.verdict, ChangeVerdict::Noise | ChangeVerdict::Rare) => -1.0,
        (Compute::DeltaAbs | Compute::Time, Some(value)) => value.abs(),
        (_, Some(value)) => value,
        // A ratio whose denominator is zero counts as infinite.
        (_, None) => f64::INFINITY,
    };
    change.map_or(f64::NEG_INFINITY, value)
}

/// Computes the changes of all lines or nodes together. Each recording is one family of tests.
pub(super) fn changes<'a>(
    how: (Compute, CostSource),
    totals: &[Option<SampleValue>],
    all: impl Iterator<Item = (&'a [SampleValue], &'a mut Vec<Option<DiffChange>>)>,
) {
    let Some((Some(base), others)) = totals.split_first() else { return };
    let mut places: Vec<&mut Vec<Option<DiffChange>>> = Vec::new();
    // The tests, by recording and then by line.
    let mut tests: Vec<Vec<Option<ChangeTest>>> = vec![Vec::new(); others.len()];
    for (values, into) in all {
        into.clear();
        for (side, total) in others.iter().enumerate() {
            let both = total.as_ref();
            let both = both.map(|total| change(how, (base, total), (&values[0], &values[side + 1])));
            let (change, test) = both.unzip();
            into.push(change);
            tests[side].push(test);
        }
        places.push(into);
    }
    for (side, tests) in tests.into_iter().enumerate() {
        let pairs = places.iter_mut().zip(tests);
        let mut family: Vec<_> =
            pairs.filter_map(|(place, test)| Some((place[side].as_mut()?, test?))).collect();
        set_verdicts(&mut family);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::StringId;

    fn value(samples: u64) -> SampleValue {
        SampleValue { samples, period: samples * 7, squares: samples as f64 * 49.0, ..SampleValue::default() }
    }

    fn side(rows: &[(u32, u64)]) -> Option<(SampleValue, Vec<TableRow>)> {
        let row = |(name, samples): &(u32, u64)| TableRow {
            cells: [RowCell::Text(StringId(*name))].into(),
            own: value(*samples),
            total: value(*samples),
            ..TableRow::default()
        };
        Some((value(rows.iter().map(|(_, samples)| samples).sum()), rows.iter().map(row).collect()))
    }

    fn compared(sides: &[Option<(SampleValue, Vec<TableRow>)>], compute: Compute, order: usize) -> DiffEvent {
        let mut texts = StringTable::default();
        for word in 0..9 {
            texts.add(&word.to_string());
        }
        compare("cycles", sides, (compute, CostSource::Sampled), order, &texts)
    }

    fn seen(event: &DiffEvent) -> Vec<(u32, ChangeVerdict)> {
        let name = |line: &DiffRow| match line.cells[0] {
            RowCell::Text(StringId(name)) => name,
            _ => 0,
        };
        event.lines.iter().map(|line| (name(line), line.changes[0].unwrap().verdict)).collect()
    }

    #[test]
    fn real_changes_are_reported_and_noise_is_not() {
        let base = side(&[(1, 5000), (2, 3000), (3, 2000), (5, 60), (7, 1)]);
        let new = side(&[(1, 3000), (2, 5050), (3, 2010), (4, 50), (8, 1)]);
        let event = compared(&[base, new], Compute::DeltaAbs, 1);
        let rows = seen(&event);
        assert_eq!(rows[..2], [(2, ChangeVerdict::More), (1, ChangeVerdict::Less)]);
        for want in [
            (3, ChangeVerdict::Noise),
            (4, ChangeVerdict::New),
            (5, ChangeVerdict::Gone),
            (7, ChangeVerdict::Rare),
            (8, ChangeVerdict::Rare),
        ] {
            assert!(rows.contains(&want), "{want:?} is not in {rows:?}");
        }
        let change = event.lines[0].changes[0].unwrap();
        assert!((change.share.value - 0.2).abs() < 0.01 && change.adjusted < 1e-9, "{change:?}");
    }

    #[test]
    fn few_samples_are_never_judged() {
        // Two samples of a long time each against one: a large change of a cost without any evidence.
        let one = |samples: u64, period: u64| {
            let own = SampleValue { samples, period, squares: 0.0, ..SampleValue::default() };
            let mut total = own.clone();
            let row = TableRow { cells: [RowCell::Number(1)].into(), own, ..TableRow::default() };
            total += value(1000);
            Some((total, vec![row]))
        };
        for compute in [Compute::Time, Compute::DeltaAbs, Compute::Ratio, Compute::Weighted(1.0, 1.0)] {
            let event = compared(&[one(2, 900_000), one(1, 400_000)], compute, 1);
            assert_eq!(event.lines[0].changes[0].unwrap().verdict, ChangeVerdict::Rare, "{compute:?}");
        }
        // The stated minimum.
        let base = side(&[(1, 1000)]);
        for (samples, verdict) in [(10, ChangeVerdict::Rare), (11, ChangeVerdict::Noise)] {
            let event = compared(&[base.clone(), side(&[(1, 1000), (2, samples)])], Compute::Time, 1);
            let line = event.lines.iter().find(|line| line.values[0].samples == 0).unwrap();
            assert_eq!(line.changes[0].unwrap().verdict, verdict, "{samples}");
        }
    }

    #[test]
    fn census_is_not_judged_and_has_no_error() {
        let sides = [side(&[(1, 100), (2, 5)]), side(&[(1, 300)])];
        for compute in [Compute::Time, Compute::DeltaAbs, Compute::Ratio] {
            let event = compare("waiting", &sides, (compute, CostSource::Census), 1, &StringTable::default());
            for change in event.lines.iter().map(|line| line.changes[0].unwrap()) {
                assert_eq!(change.verdict, ChangeVerdict::NotJudged);
                assert_eq!((change.share.error(), change.interval.0), (0.0, change.interval.1), "{change:?}");
            }
        }
    }

    #[test]
    fn equal_changes_are_sorted_by_name() {
        // A string's number depends on which thread found it first, so it must not affect the order.
        for words in [["b", "a", "c"], ["c", "b", "a"]] {
            let mut texts = StringTable::default();
            let rows: Vec<(u32, u64)> = words.iter().map(|word| (texts.add(word).0, 10)).collect();
            let how = (Compute::DeltaAbs, CostSource::Sampled);
            let event = compare("cycles", &[side(&rows), side(&rows)], how, 1, &texts);
            let names = event.lines.iter().map(|line| match line.cells[0] {
                RowCell::Text(id) => texts.get(id),
                _ => "",
            });
            assert_eq!(names.collect::<String>(), "abc");
        }
    }

    #[test]
    fn totals_are_normalized() {
        let (base, new) = (side(&[(1, 500), (2, 300), (3, 200)]), side(&[(1, 5000), (2, 3000), (3, 2000)]));
        let event = compared(&[base, new], Compute::Delta, 1);
        assert!(event.lines.iter().all(|line| line.changes[0].unwrap().verdict == ChangeVerdict::Noise));
        assert!(event.lines.iter().all(|line| line.changes[0].unwrap().share.value.abs() < 1e-9));
    }

    #[test]
    fn ratios_and_weighted_diffs_use_periods() {
        let sides = [side(&[(1, 1000), (2, 1000), (3, 10)]), side(&[(1, 2000), (2, 1010), (4, 40)])];
        let event = compared(&sides, Compute::Ratio, 1);
        let rows = seen(&event);
        assert_eq!(rows[0], (4, ChangeVerdict::New), "a ratio to nothing is the largest");
        assert_eq!(rows[1], (1, ChangeVerdict::More));
        assert!(rows.contains(&(2, ChangeVerdict::Noise)));
        let two = event.lines[1].changes[0].unwrap();
        assert!(two.value == Some(2.0) && two.interval.0 > 1.8 && two.interval.1 < 2.2, "{two:?}");
        let event = compared(&sides, Compute::Weighted(2.0, 1.0), 1);
        let one = event.lines.iter().find(|line| line.cells[0] == RowCell::Text(StringId(1))).unwrap();
        assert_eq!(one.changes[0].unwrap().value, Some(0.0));
    }

    #[test]
    fn event_missing_in_one_recording_has_no_change() {
        let event = compared(&[side(&[(1, 10)]), None, side(&[(1, 20)])], Compute::Delta, 2);
        assert!(event.lines[0].changes[0].is_none() && event.lines[0].changes[1].is_some());
        let by_base = compared(&[side(&[(1, 10), (2, 90)]), side(&[(1, 90), (2, 10)])], Compute::Delta, 0);
        assert_eq!(seen(&by_base)[0].0, 2);
    }
}
