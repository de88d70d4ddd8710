//! Arm's tables have a different layout: one list with the number and name of every event, and a list of
//! event numbers for each core. This module converts a core's events to the layout used for other vendors.

use std::fmt::Write as _;

use super::row::rows;

/// Returns the events of a core, in the column format of the other tables.
///
/// Keeps only the upper-case letters of Arm's flags (`A`rchitectural, `I`mplementation defined,
/// `R`ecommended, `D` for the driver only), because the other letters have a different meaning in the other
/// vendors' tables. A code with a second name in the core's manual gets one row per name.
pub(super) fn events_of(core: &str, events: &str, cores: &str) -> String {
    let columns = rows(cores).map(|row| row.columns::<6>()).find(|columns| columns[0] == core);
    let Some([.., counters, numbers]) = columns else { return String::new() };
    let counters = match counters.parse::<u32>() {
        Ok(number @ 1..) => format!("0-{}", number - 1),
        _ => String::new(),
    };
    let all: Vec<[&str; 4]> = rows(events).map(|row| row.columns()).collect();
    let ranges = numbers.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    });
    let mut text = "name\tpmu\tterms\tcounters\tflags\n".to_owned();
    let mut named: Vec<&str> = Vec::new();
    let own: Vec<_> = ranges.flatten().filter_map(|row| all.get(row)).collect();
    for also in [false, true] {
        for [code, name, flags, manual] in own.iter().copied() {
            let name = if also { manual } else { name };
            if name.is_empty() || named.contains(name) {
                continue;
            }
            named.push(name);
            let flags: String = flags.chars().filter(char::is_ascii_uppercase).collect();
            let _ = writeln!(text, "{name}\t\tevent={code}\t{counters}\t{flags}");
        }
    }
    text
}
