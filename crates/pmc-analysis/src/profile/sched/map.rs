//! A map of all CPUs, which shows the task on each CPU after every switch.

use super::tasks::SchedTaskId;

/// The short name of a task in the map: a letter and a digit, `.` for an idle task, or `-` for a task that
/// the filter excludes.
pub type ShortName = [u8; 2];

/// A CPU in the map.
#[derive(Debug, Clone, Copy)]
pub struct MapCell {
    /// The task running on this CPU.
    pub task: SchedTaskId,
    /// The task's short name.
    pub name: ShortName,
}

/// A line of the map.
#[derive(Debug)]
pub struct MapLine<'a> {
    /// Time of the switch, in nanoseconds of the recording's clock.
    pub time: u64,
    /// The CPU that switched.
    pub cpu: u32,
    /// The columns, each with a CPU and the task running on it, if known.
    pub columns: &'a [(u32, Option<MapCell>)],
    /// Whether the cell of the switched CPU shows that a task selected by the filter has stopped running.
    pub is_out: bool,
    /// The task whose full name is shown, because its short name is new or its name has changed.
    pub explained: Option<MapCell>,
    /// Whether the CPU's column is new.
    pub is_new_cpu: bool,
}
