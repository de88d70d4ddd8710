//! The events of a recording: what was asked for, the ids of the instances, a name.

use crate::abi::attr::kind;
use crate::abi::{Attr, generic};

/// One event of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordedEvent {
    /// What the kernel was asked for.
    pub attr: Attr,
    /// Ids of its instances, one a CPU or thread.
    pub ids: Vec<u64>,
    /// Its name, as the recorder kept it; foreign text, to be cleaned before it is printed.
    pub name: Option<String>,
}

impl RecordedEvent {
    /// The recorder's name for it, or one made from type and config.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| name_of(&self.attr))
    }
}

/// perf's name for a type and config.
fn name_of(attr: &Attr) -> String {
    let (kind, config) = (attr.kind(), attr.config());
    match (generic::name_of(kind, config), kind) {
        (Some(name), _) => name.to_owned(),
        (None, kind::RAW) => format!("raw 0x{config:x}"),
        (None, kind::TRACEPOINT) => format!("tracepoint {config}"),
        (None, kind) => format!("type {kind} config 0x{config:x}"),
    }
}
