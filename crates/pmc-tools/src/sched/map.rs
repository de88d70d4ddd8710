//! A map of all CPUs, which shows the task on each CPU after every switch.

use pmc_sys::error::Result;
use pmc_sys::host::cpulist::CpuList;

use super::SchedRecording;
use super::machine::{SchedCounts, SchedMachine};
use super::replay::{SchedStep, replay};
use super::tasks::{SchedTaskId, SchedTasks, slot};

/// What to show in a map, and how.
#[derive(Debug)]
pub(super) struct MapRequest {
    /// Whether a CPU gets a column only once it has switched.
    pub(super) compact: bool,
    /// The CPUs whose lines to include.
    pub(super) cpus: Option<CpuList>,
    /// The names of the tasks whose lines to include; empty for all.
    pub(super) names: Vec<String>,
    /// Whether a name also matches task names that contain it.
    pub(super) fuzzy: bool,
    /// The CPUs to highlight.
    pub(super) marked_cpus: CpuList,
    /// The threads to highlight.
    pub(super) marked_tids: Vec<i32>,
    /// Whether to use colours.
    pub(super) has_colour: bool,
}

impl MapRequest {
    fn selects(&self, name: &str) -> bool {
        self.names.is_empty()
            || self.names.iter().any(|one| if self.fuzzy { name.contains(one.as_str()) } else { name == one })
    }
}

/// The short name of a task in the map: a letter and a digit, `.` for an idle task, or `-` for a task that
/// the filter excludes.
pub(super) type ShortName = [u8; 2];

/// A CPU in the map.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapCell {
    /// The task running on this CPU.
    pub(super) task: SchedTaskId,
    /// The task's short name.
    pub(super) name: ShortName,
}

/// A line of the map.
#[derive(Debug)]
pub(super) struct MapLine<'a> {
    /// Time of the switch, in nanoseconds of the recording's clock.
    pub(super) time: u64,
    /// The CPU that switched.
    pub(super) cpu: u32,
    /// The columns, each with a CPU and the task running on it, if known.
    pub(super) columns: &'a [(u32, Option<MapCell>)],
    /// Whether the cell of the switched CPU shows that a task selected by the filter has stopped running.
    pub(super) is_out: bool,
    /// The task whose full name is shown, because its short name is new or its name has changed.
    pub(super) explained: Option<MapCell>,
    /// Whether the CPU's column is new.
    pub(super) is_new_cpu: bool,
}

/// The state of the map.
struct SchedMap<'r> {
    request: &'r MapRequest,
    columns: Vec<(u32, Option<MapCell>)>,
    /// The short name of each task.
    names: Vec<Option<ShortName>>,
    has_idle: bool,
    next: ShortName,
    /// The task that last left each CPU.
    left: Vec<Option<SchedTaskId>>,
}

impl SchedRecording {
    /// Visits the state of the map after each switch. Returns the counts of unmatched events.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or `visit` fails.
    pub(super) fn map(
        &self,
        request: &MapRequest,
        visit: &mut dyn FnMut(&SchedTasks, &MapLine<'_>) -> Result<()>,
    ) -> Result<SchedCounts> {
        let mut map = SchedMap {
            request,
            columns: Vec::new(),
            names: Vec::new(),
            has_idle: false,
            next: *b"A0",
            left: Vec::new(),
        };
        let machine = replay(&self.session, self.decoder.clone(), None, &mut |machine, context, step, _| {
            let cpu = context.cpu;
            match step {
                SchedStep::Out(out, _) => map.leave(cpu, out.task),
                SchedStep::In(switched) => {
                    return map.switch(machine, context.time, cpu, switched.task, visit);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(machine.counts())
    }
}

impl SchedMap<'_> {
    fn leave(&mut self, cpu: u32, task: SchedTaskId) {
        *slot(&mut self.left, cpu as usize) = Some(task);
    }

    /// Returns the task's short name, and whether it is new.
    fn name(&mut self, tasks: &SchedTasks, task: SchedTaskId) -> (ShortName, bool) {
        let about = tasks.get(task);
        if about.is_idle() {
            return (*b". ", !std::mem::replace(&mut self.has_idle, true));
        }
        if let Some(name) = *slot(&mut self.names, task.index()) {
            return (name, false);
        }
        let name = if self.request.selects(&about.comm()) { self.next_name() } else { *b"- " };
        self.names[task.index()] = Some(name);
        (name, true)
    }

    fn next_name(&mut self) -> ShortName {
        let name = self.next;
        let [letter, digit] = name;
        self.next = match (letter, digit) {
            (b'Z', b'9') => *b"A0",
            (b'Z', digit) => [b'A', digit + 1],
            (letter, digit) => [letter + 1, digit],
        };
        name
    }

    fn switch(
        &mut self,
        machine: &mut SchedMachine,
        time: u64,
        cpu: u32,
        task: SchedTaskId,
        visit: &mut dyn FnMut(&SchedTasks, &MapLine<'_>) -> Result<()>,
    ) -> Result<()> {
        let tasks = &mut machine.tasks;
        let (name, is_new) = self.name(tasks, task);
        let cell = MapCell { task, name };
        if !self.request.compact {
            // As in perf, show columns up to the highest CPU so far.
            self.columns.extend((self.columns.len() as u32..=cpu).map(|cpu| (cpu, None)));
        }
        let column = self.columns.iter().position(|(column, _)| *column == cpu);
        let column = column.unwrap_or_else(|| {
            self.columns.push((cpu, None));
            self.columns.len() - 1
        });
        let is_new_cpu = self.request.compact && self.columns[column].1.is_none();
        self.columns[column].1 = Some(cell);
        if self.request.cpus.as_ref().is_some_and(|cpus| !cpus.contains(cpu)) {
            return Ok(());
        }
        let left = self.left.get(cpu as usize).copied().flatten();
        let filters = !self.request.names.is_empty();
        let comes = !filters || self.request.selects(&shown_name(tasks, task));
        let leaves = filters
            && left.is_some_and(|left| {
                let is_named = self.names.get(left.index()).is_some_and(Option::is_some);
                is_named && self.request.selects(&shown_name(tasks, left))
            });
        if comes {
            let is_explained = tasks.take_renamed(task) | is_new;
            let explained = is_explained.then_some(cell);
            let line = MapLine { time, cpu, columns: &self.columns, is_out: false, explained, is_new_cpu };
            visit(tasks, &line)?;
        }
        if leaves {
            let line = MapLine {
                time,
                cpu,
                columns: &self.columns,
                is_out: true,
                explained: None,
                is_new_cpu: false,
            };
            visit(tasks, &line)?;
        }
        Ok(())
    }
}

/// Returns the task name that filters are compared with.
fn shown_name(tasks: &SchedTasks, task: SchedTaskId) -> String {
    let task = tasks.get(task);
    if task.is_idle() { "swapper".to_owned() } else { task.comm().into_owned() }
}
