//! The cost of each thread, for lists of threads.
//!
//! Receives sums by sample attributes and thread name. Returns one sum for each thread, and the names of
//! their processes.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::filter::FilterState;
use super::share::ShareOf;
use super::strings::{StringId, StringTable};
use super::table_input::{ENDED_NAME, TableInput};
use crate::session::SampleValue;
use crate::session::live::ENDED;
use crate::session::samples::RowKey;

/// A thread, with its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSum {
    /// The process id.
    pub pid: i32,
    /// The thread id.
    pub tid: i32,
    /// The thread's name.
    pub comm: StringId,
    /// Sum of the samples of the thread.
    pub value: SampleValue,
}

/// Returns the costs of threads, largest first, and the names of their processes. `by_attributes` contains
/// sums by sample attributes and thread name.
pub(super) fn threads(
    input: &TableInput<'_>,
    by_attributes: FxHashMap<(u32, u32), SampleValue>,
    filter_state: &FilterState<'_>,
    share_of: ShareOf,
    texts: &mut StringTable,
) -> (Vec<ThreadSum>, FxHashMap<i32, StringId>) {
    let mut by_thread: FxHashMap<(u64, u64, u32), SampleValue> = FxHashMap::default();
    for ((attributes, comm), value) in by_attributes {
        let key = RowKey { event: 0, stack: 0, comm, attributes };
        if let Some(pid) = filter_state.word(&key, filter_state.pid) {
            let tid = filter_state.word(&key, filter_state.tid).unwrap_or(pid);
            *by_thread.entry((pid, tid, comm)).or_default() += value;
        }
    }
    let mut process_names = FxHashMap::default();
    let threads = by_thread.into_iter().map(|((pid, tid, comm), value)| {
        // Join all ended threads, regardless of their names.
        let is_over = (pid == ENDED, tid == ENDED);
        let (pid, tid) = (pid as i32, tid as i32);
        let process = if is_over.0 { Some(ENDED_NAME.to_owned()) } else { input.words.task_name(pid) };
        if let Some(name) = process {
            process_names.entry(pid).or_insert_with(|| texts.add(&name));
        }
        let comm = if is_over.1 { texts.add(ENDED_NAME) } else { texts.add(&input.words.comm(comm)) };
        ThreadSum { pid, tid, comm, value }
    });
    let mut threads: Vec<ThreadSum> = threads.collect();
    threads
        .sort_by_key(|thread| (Reverse(share_of.cost(&thread.value)), thread.pid, thread.tid, thread.comm));
    (threads, process_names)
}
