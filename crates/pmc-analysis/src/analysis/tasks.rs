//! The contents of a recording other than samples: the number of records of each kind, tasks with their
//! mappings, and final counts.

use std::collections::BTreeMap;

use crate::profile::header::{FinalCount, RecordedMapping, RecordedTask};
use crate::session::{Epoch, Session, Timestamp};
use pmc_perfdata::record::{MappingAccess, kind};
use pmc_symbols::symbol::build_id::BuildId;

/// Returns the number of records of each kind, with the kind's name or else its number.
pub fn record_counts(session: &Session) -> Vec<(String, u64)> {
    let name = |number: u32| kind::name(number).map_or_else(|| number.to_string(), str::to_owned);
    session.index.counts().map(|(number, count)| (name(number), count)).collect()
}

/// Returns all tasks ordered by id. If `with_maps` is set, includes the mappings that existed at the end.
pub fn tasks(session: &Session, with_maps: bool) -> Vec<RecordedTask> {
    let history = &session.history;
    let last = Timestamp::MAX;
    let names: Vec<String> = history.comms().map(|comm| String::from_utf8_lossy(comm).into_owned()).collect();
    let mut all: BTreeMap<i32, RecordedTask> = BTreeMap::new();
    for (tid, about) in history.tasks() {
        let comm = history.comm(about.pid, tid, last);
        let maps = if with_maps && tid == about.pid { mappings(session, tid) } else { Vec::new() };
        let comm = comm.and_then(|comm| names.get(comm.0 as usize)).cloned();
        all.insert(
            tid,
            RecordedTask {
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

fn mappings(session: &Session, pid: i32) -> Vec<RecordedMapping> {
    let epoch = session.history.data_epoch(pid, Timestamp::MAX);
    if epoch == Epoch::UNKNOWN_PROCESS {
        return Vec::new();
    }
    let modules = session.history.modules();
    session
        .history
        .mappings(epoch)
        .map(|mapped| {
            let module = &modules[mapped.module as usize];
            let (inode, access) = session.history.file_of(mapped.module);
            let build_id = module.build_id.as_deref().and_then(BuildId::new).map(|id| id.to_string());
            RecordedMapping {
                start: mapped.mapping.start.0,
                end: mapped.mapping.start.0.saturating_add(mapped.mapping.len),
                offset: mapped.mapping.offset.0,
                access: access.unwrap_or(MappingAccess::CODE),
                file_id: inode.map(|inode| inode.to_string()).or(build_id).unwrap_or_else(|| "0".to_owned()),
                path: module.path.to_string_lossy().into_owned(),
            }
        })
        .collect()
}

/// Returns the counts of each thread at its exit.
pub fn counts(session: &Session) -> Vec<FinalCount> {
    let events = session.reader.events();
    let name = |event: usize| events.get(event).map_or_else(String::new, |event| event.name());
    let count = |read: &crate::session::ThreadCount| FinalCount {
        pid: read.thread.pid,
        tid: read.thread.tid,
        event: name(read.read.event),
        value: read.read.count.value,
    };
    session.reads.iter().map(count).collect()
}
