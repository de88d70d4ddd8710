//! `--stats`, `--tasks`, `--mmaps` and `-T`: what a recording holds besides samples, as perf lists it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::cli::report::Report;
use crate::profile::recording::{Count, Mapping, Task};
use crate::record::kind;
use crate::session::{Epoch, Session, Timestamp};
use crate::view;

/// Writes the one that was asked for.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(out: &mut dyn Write, typed: &Report, session: &Session) -> io::Result<()> {
    if typed.stats {
        let kinds: Vec<(String, u64)> = session
            .index
            .counts()
            .map(|(number, count)| {
                (kind::name(number).map_or_else(|| number.to_string(), str::to_owned), count)
            })
            .collect();
        return view::listings::stats(out, &kinds, session.index.unknown);
    }
    view::listings::tasks(out, &tasks(session, typed.mmaps))
}

/// All tasks by their parents, with what they had mapped at the end.
fn tasks(session: &Session, with_maps: bool) -> Vec<Task> {
    let history = &session.history;
    let last = Timestamp::MAX;
    let names: Vec<String> = history.comms().map(|comm| String::from_utf8_lossy(comm).into_owned()).collect();
    let mut all: BTreeMap<i32, Task> = BTreeMap::new();
    for (tid, about) in history.tasks() {
        let comm = history.comm(about.pid, tid, last);
        let maps = if with_maps && tid == about.pid { mappings(session, tid) } else { Vec::new() };
        let comm = comm.and_then(|comm| names.get(comm.0 as usize)).cloned();
        all.insert(
            tid,
            Task {
                pid: about.pid,
                tid,
                parent: about.parent,
                comm: comm.unwrap_or_else(|| format!(":{tid}")),
                maps,
            },
        );
    }
    all.into_values().collect()
}

fn mappings(session: &Session, pid: i32) -> Vec<Mapping> {
    let epoch = session.history.epoch(pid, Timestamp::MAX);
    if epoch == Epoch::NOBODY {
        return Vec::new();
    }
    let modules = session.history.modules();
    session
        .history
        .mappings(epoch)
        .map(|mapped| Mapping {
            start: mapped.mapping.start.0,
            end: mapped.mapping.start.0.saturating_add(mapped.mapping.len),
            offset: mapped.mapping.offset.0,
            path: modules[mapped.module as usize].path.to_string_lossy().into_owned(),
        })
        .collect()
}

/// What threads' counters said when they ended.
pub(super) fn counts(session: &Session) -> Vec<Count> {
    let events = session.reader.events();
    let name = |event: usize| events.get(event).map_or_else(String::new, |event| event.name());
    let count = |read: &crate::session::ThreadCount| Count {
        pid: read.thread.pid,
        tid: read.thread.tid,
        event: name(read.event),
        value: read.value,
    };
    session.reads.iter().map(count).collect()
}
