//! The events of a recording: what was asked for, the ids of the instances, a name.

use crate::sys::Attr;
use crate::sys::attr::kind;

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Event {
    /// What the kernel was asked for.
    pub attr: Attr,
    /// Ids of its instances, one a CPU or thread.
    pub ids: Vec<u64>,
    /// Its name, as the recorder kept it; foreign text, to be cleaned before it is printed.
    pub name: Option<String>,
}

impl Event {
    /// The recorder's name for it, or one made from type and config.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| name_of(&self.attr))
    }
}

/// perf's name for a type and config.
fn name_of(attr: &Attr) -> String {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE: [&str; 12] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ];
    let (kind, config) = (attr.kind(), attr.config());
    let known = match kind {
        kind::HARDWARE => HARDWARE.get((config & 0xffff_ffff) as usize),
        kind::SOFTWARE => SOFTWARE.get(config as usize),
        _ => None,
    };
    match (known, kind) {
        (Some(name), _) => (*name).to_owned(),
        (None, kind::RAW) => format!("raw 0x{config:x}"),
        (None, kind::TRACEPOINT) => format!("tracepoint {config}"),
        (None, kind) => format!("type {kind} config 0x{config:x}"),
    }
}
