//! Joins several runs of the same events into one table, for `-r N` and `--exact`.
//!
//! Receives the [`StatCounts`] of whole runs. Returns one table whose values contain the results of every
//! run. `statistics` computes mean, spread and outliers from them.

use super::counts::{CpuTime, RunTime, StatCounts, StatValue};

/// Joins runs of the same events in the same places. Adds up the counts, keeps the scaled value of each run,
/// and averages the times. Returns a single run unchanged, and an empty table if there are no runs. A value
/// that is missing in one run is missing in the result.
pub fn join(runs: Vec<StatCounts>) -> StatCounts {
    let mut runs = runs.into_iter();
    let Some(mut joined) = runs.next() else { return StatCounts::default() };
    if runs.len() == 0 {
        return joined;
    }
    let mut times = vec![RunTime { elapsed_ns: joined.elapsed_ns, cpu_time: joined.cpu_time }];
    for value in joined.rows.iter_mut().flat_map(|row| &mut row.values) {
        if let StatValue::Counted { count, runs, .. } = value {
            runs.extend(count.scaled());
        }
    }
    for run in runs {
        joined.yielded_ns += run.yielded_ns;
        times.push(RunTime { elapsed_ns: run.elapsed_ns, cpu_time: run.cpu_time });
        for row in &mut joined.rows {
            let Some(other) = run.rows.iter().find(|r| r.place == row.place) else { continue };
            for (value, more) in row.values.iter_mut().zip(&other.values) {
                match (&mut *value, more) {
                    (StatValue::Counted { count, runs, .. }, StatValue::Counted { count: more, .. }) => {
                        *count += *more;
                        runs.extend(more.scaled());
                    }
                    (StatValue::Counted { .. }, missing) => *value = missing.clone(),
                    _ => {}
                }
            }
        }
    }
    let number = times.len() as u64;
    let mean = |of: fn(&CpuTime) -> u64| {
        times.iter().filter_map(|t| t.cpu_time.as_ref()).map(of).sum::<u64>() / number
    };
    joined.elapsed_ns = times.iter().map(|t| t.elapsed_ns).sum::<u64>() / number;
    if joined.cpu_time.is_some() {
        joined.cpu_time = Some(CpuTime { user_ns: mean(|t| t.user_ns), system_ns: mean(|t| t.system_ns) });
    }
    joined.runs = times;
    joined
}

/// Joins tables of different events into one, as if all events had been counted in one run. Each table comes
/// with the final index of each of its events. Times are averaged over the tables.
pub fn join_tables(tables: Vec<(Vec<usize>, StatCounts)>) -> StatCounts {
    let all: usize = tables.iter().map(|(order, _)| order.len()).sum();
    let number = tables.len().max(1) as u64;
    let mut joined = StatCounts::default();
    let mut events = vec![None; all];
    let (mut elapsed, mut user, mut system, mut timed) = (0, 0, 0, false);
    for (order, table) in tables {
        elapsed += table.elapsed_ns;
        joined.yielded_ns += table.yielded_ns;
        if let Some(time) = table.cpu_time {
            (user, system, timed) = (user + time.user_ns, system + time.system_ns, true);
        }
        joined.aggregation = table.aggregation;
        for (event, &at) in table.events.into_iter().zip(&order) {
            if let Some(slot) = events.get_mut(at) {
                *slot = Some(event);
            }
        }
        for row in table.rows {
            let index = joined.rows.iter().position(|r| r.place == row.place).unwrap_or_else(|| {
                joined.rows.push(super::counts::StatRow {
                    place: row.place.clone(),
                    summed: row.summed,
                    values: vec![StatValue::Absent; all],
                });
                joined.rows.len() - 1
            });
            for (value, &at) in row.values.into_iter().zip(&order) {
                if let Some(slot) = joined.rows[index].values.get_mut(at) {
                    *slot = value;
                }
            }
        }
    }
    joined.events = events.into_iter().flatten().collect();
    joined.elapsed_ns = elapsed / number;
    joined.cpu_time = timed.then_some(CpuTime { user_ns: user / number, system_ns: system / number });
    joined
}

#[cfg(test)]
mod tests {
    use super::super::counts::{PlaceLabel, StatEvent, StatRow};
    use super::*;
    use pmc_text::units::Count;

    fn table(name: &str, value: u64, elapsed_ns: u64) -> StatCounts {
        StatCounts {
            events: vec![StatEvent {
                name: name.into(),
                role: None,
                level: String::new(),
                scale: 1.0,
                unit: String::new(),
                snapshot: false,
                group: 0,
                cgroup: None,
            }],
            rows: vec![StatRow {
                place: PlaceLabel::default(),
                summed: 1,
                values: vec![StatValue::Counted {
                    count: Count { value, enabled_ns: 10, running_ns: 10 },
                    counters: 1,
                    runs: vec![],
                }],
            }],
            elapsed_ns,
            ..StatCounts::default()
        }
    }

    #[test]
    fn runs_are_stored_separately() {
        let joined = join(vec![table("a", 10, 100), table("a", 20, 300)]);
        assert_eq!(joined.rows[0].values[0].runs(), [10.0, 20.0]);
        assert_eq!(joined.rows[0].values[0].number(), Some(15.0));
        assert_eq!(joined.elapsed_ns, 200);
        assert_eq!(joined.runs.len(), 2);
    }

    #[test]
    fn passes_are_merged_in_requested_order() {
        let joined = join_tables(vec![(vec![1], table("b", 2, 100)), (vec![0], table("a", 1, 100))]);
        let names: Vec<_> = joined.events.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(joined.rows[0].values[0].number(), Some(1.0));
        assert_eq!(joined.rows[0].values[1].number(), Some(2.0));
    }
}
