//! The map of CPUs, in perf's format.

use std::io::{self, Write};

use pmc_analysis::profile::sched::SchedTasks;
use pmc_analysis::profile::sched::map::MapLine;
use pmc_text::text::clean;
use pmc_text::units::PerfTime;

/// What to highlight in the map.
#[derive(Debug, Default)]
pub struct MapLayout {
    /// The CPUs to highlight.
    pub cpus: Vec<u32>,
    /// The threads to highlight.
    pub tids: Vec<i32>,
    /// Whether to use colours.
    pub has_colour: bool,
}

const BLUE: &str = "\x1b[34m";
const ON_RED: &str = "\x1b[41m";
const NORMAL: &str = "\x1b[0m";

impl MapLayout {
    fn painted(&self, colour: &str, is_wanted: bool, text: &str) -> String {
        if is_wanted && self.has_colour { format!("{colour}{text}{NORMAL}") } else { text.to_owned() }
    }
}

/// Writes one line.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write(
    out: &mut dyn Write,
    tasks: &SchedTasks,
    line: &MapLine<'_>,
    layout: &MapLayout,
) -> io::Result<()> {
    write!(out, "  ")?;
    for (cpu, cell) in line.columns {
        let is_here = *cpu == line.cpu;
        let is_marked = is_here && layout.cpus.contains(cpu);
        write!(out, "{}", layout.painted(ON_RED, is_marked, if is_here { "*" } else { " " }))?;
        let text = match cell {
            Some(_) if line.is_out && is_here => "-  ".to_owned(),
            Some(cell) => format!("{} ", String::from_utf8_lossy(&cell.name)),
            None => "   ".to_owned(),
        };
        let is_coloured = cell.is_some_and(|cell| layout.tids.contains(&tasks.get(cell.task).tid));
        write!(out, "{}", layout.painted(BLUE, is_coloured, &text))?;
    }
    write!(out, "  {:>12} secs ", PerfTime(line.time))?;
    if let Some(cell) = line.explained {
        let task = tasks.get(cell.task);
        let comm = if task.is_idle() { "swapper".into() } else { task.comm() };
        let text = format!("{} => {}:{}", String::from_utf8_lossy(&cell.name), clean(&comm), task.tid);
        write!(out, "{}", layout.painted(BLUE, layout.tids.contains(&task.tid), &text))?;
    }
    if line.is_new_cpu {
        write!(out, " (CPU {})", line.cpu)?;
    }
    writeln!(out)
}
