//! The map of CPUs, in perf's format.

use std::io::{self, Write};

use crate::sched::map::{MapLine, MapRequest};
use crate::sched::tasks::SchedTasks;
use pmc_text::text::clean;
use pmc_text::units::PerfTime;

const BLUE: &str = "\x1b[34m";
const ON_RED: &str = "\x1b[41m";
const NORMAL: &str = "\x1b[0m";

impl MapRequest {
    fn painted(&self, colour: &str, is_marked: bool, text: &str) -> String {
        if is_marked && self.has_colour { format!("{colour}{text}{NORMAL}") } else { text.to_owned() }
    }
}

/// Writes one line.
pub(in crate::sched) fn write(
    out: &mut dyn Write,
    tasks: &SchedTasks,
    line: &MapLine<'_>,
    request: &MapRequest,
) -> io::Result<()> {
    write!(out, "  ")?;
    for (cpu, cell) in line.columns {
        let is_here = *cpu == line.cpu;
        let is_marked = is_here && request.marked_cpus.contains(*cpu);
        write!(out, "{}", request.painted(ON_RED, is_marked, if is_here { "*" } else { " " }))?;
        let text = match cell {
            Some(_) if line.is_out && is_here => "-  ".to_owned(),
            Some(cell) => format!("{} ", String::from_utf8_lossy(&cell.name)),
            None => "   ".to_owned(),
        };
        let is_coloured = cell.is_some_and(|cell| request.marked_tids.contains(&tasks.get(cell.task).tid));
        write!(out, "{}", request.painted(BLUE, is_coloured, &text))?;
    }
    write!(out, "  {:>12} secs ", PerfTime(line.time))?;
    if let Some(cell) = line.explained {
        let task = tasks.get(cell.task);
        let comm = if task.is_idle() { "swapper".into() } else { task.comm() };
        let text = format!("{} => {}:{}", String::from_utf8_lossy(&cell.name), clean(&comm), task.tid);
        write!(out, "{}", request.painted(BLUE, request.marked_tids.contains(&task.tid), &text))?;
    }
    if line.is_new_cpu {
        write!(out, " (CPU {})", line.cpu)?;
    }
    writeln!(out)
}
