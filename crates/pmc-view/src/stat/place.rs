//! Names of places in perf's format: `CPU0`, `S0-D0-C1`, `bash-4910`.

use pmc_analysis::profile::counts::{Aggregation, EventRole, PlaceLabel, StatCounts, StatRow};
use pmc_text::table::{self, left, right};
use pmc_text::text;

/// Returns the place as one word; empty if all counts are summed into one row.
pub(super) fn word(place: &PlaceLabel, aggregation: Aggregation) -> String {
    let number = |n: Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let (socket, die) = (number(place.socket), number(place.die));
    match aggregation {
        Aggregation::Global => String::new(),
        Aggregation::Cpu => format!("CPU{}", number(place.cpu)),
        Aggregation::Core => format!("S{socket}-D{die}-C{}", number(place.core)),
        Aggregation::Cluster => format!("S{socket}-D{die}-CLS{}", number(place.cluster)),
        Aggregation::Cache(_) => {
            let (level, id) = place.cache.unzip();
            format!("S{socket}-D{die}-L{}-ID{}", number(level), number(id))
        }
        Aggregation::Die => format!("S{socket}-D{die}"),
        Aggregation::Socket => format!("S{socket}"),
        Aggregation::Node => format!("N{}", number(place.node)),
        Aggregation::Thread => match &place.thread {
            Some((name, id)) => format!("{}-{id}", text::clean(name)),
            None => "?".to_owned(),
        },
        Aggregation::Children | Aggregation::Levels => {
            place.part.map(|part| part.name().to_owned()).unwrap_or_default()
        }
    }
}

/// Whether rows with this aggregation show the number of CPUs that they sum.
pub(super) fn is_summed(aggregation: Aggregation) -> bool {
    use Aggregation::{Children, Cpu, Global, Levels, Thread};
    !matches!(aggregation, Global | Cpu | Thread | Children | Levels)
}

/// Returns the number of CPUs summed for this event. Wall-clock time counts as one CPU, because it is read
/// only once.
pub(super) fn summed(counts: &StatCounts, row: &StatRow, event: Option<usize>) -> u32 {
    match event {
        Some(event) if counts.events[event].role == Some(EventRole::DurationTime) => {
            u32::from(row.values.get(event).is_some_and(|value| value.number().is_some()))
        }
        _ => row.summed,
    }
}

/// Returns the table's columns before the value, with perf's widths.
pub(super) fn columns(counts: &StatCounts, row: &StatRow, event: Option<usize>) -> String {
    let word = word(&row.place, counts.aggregation);
    let width = match counts.aggregation {
        Aggregation::Global => return String::new(),
        Aggregation::Cpu => 10,
        Aggregation::Core | Aggregation::Cluster => 15,
        Aggregation::Cache(_) => 20,
        Aggregation::Die => 12,
        Aggregation::Socket | Aggregation::Node => 6,
        Aggregation::Children | Aggregation::Levels => 8,
        Aggregation::Thread => {
            let (name, id) = word.rsplit_once('-').unwrap_or((&word, ""));
            return table::line(&[right(0, 16), left(0, 9), left(1, 0)], [name, &format!("-{id}"), ""]);
        }
    };
    let summed = is_summed(counts.aggregation).then(|| format!("{:4} ", summed(counts, row, event)));
    table::line(&[left(0, width), left(1, 0)], [word, summed.unwrap_or_default()])
}

/// Returns the titles of the columns before the value in interval mode, with perf's wording and widths.
pub(super) fn headline(aggregation: Aggregation) -> &'static str {
    match aggregation {
        Aggregation::Global => "",
        Aggregation::Cpu => " CPU       ",
        Aggregation::Core => " core            cpus",
        Aggregation::Cluster => " cluster         cpus",
        Aggregation::Cache(_) => " cache                cpus",
        Aggregation::Die => " die          cpus",
        Aggregation::Socket => " socket cpus",
        Aggregation::Node => " node   cpus",
        Aggregation::Thread => "             comm-pid     ",
        Aggregation::Children | Aggregation::Levels => " part    ",
    }
}
