//! User-space locks as rows for AI agents (`pmc mcp`): short, with times in milliseconds.

use serde_json::{Map, Value as Json, json};

use super::text::share;
use super::{LockThread, UserLock, UserLocks};
use pmc_view::agent::{milliseconds, rounded};

/// Maximum number of threads to list for each lock.
const MOST_THREADS: usize = 3;

/// Returns one row per lock, longest wait first. All names are untrusted text.
pub(super) fn rows(locks: &UserLocks) -> impl Iterator<Item = Json> {
    let waited = locks.waited();
    locks.locks.iter().map(move |lock| row(lock, waited))
}

/// Returns what the rows have in common.
pub(super) fn head(locks: &UserLocks) -> Map<String, Json> {
    let others = locks.others.iter().map(|other| {
        json!({"what": other.what.name(), "waiting_ms": milliseconds(other.time), "waits": other.waits})
    });
    Map::from_iter([
        ("elapsed_ms".to_owned(), milliseconds(locks.elapsed).into()),
        ("threads".to_owned(), locks.threads.into()),
        ("waiting_ms".to_owned(), milliseconds(locks.waited()).into()),
        ("unknown_holder_ms".to_owned(), milliseconds(locks.unknown()).into()),
        ("not_locks".to_owned(), others.collect()),
    ])
}

/// Returns facts about the quality of the data.
pub(super) fn trust(locks: &UserLocks) -> Json {
    let counts = &locks.counts;
    json!({
        "paired": counts.paired, "without_end": counts.replaced + counts.expired,
        "without_begin": counts.ends_only, "with_loss": counts.with_loss,
        "goroutines_missing": locks.has_goroutines,
    })
}

fn row(lock: &UserLock, waited: u64) -> Json {
    let total = lock.waits.sum();
    let thread = |thread: &LockThread| {
        json!({
            "tid": thread.tid, "thread": thread.comm, "function": thread.site.function.as_deref(),
            "file": thread.site.file(), "line": thread.site.line(), "waiting_ms": milliseconds(thread.time),
            "percent": rounded(share(thread.time, total)),
        })
    };
    let threads = |all: &[LockThread]| all.iter().take(MOST_THREADS).map(thread).collect::<Json>();
    let mut row = json!({
        "command": lock.comm, "kind": lock.purpose.name(),
        "variable": lock.variable.as_ref().map(|(name, _)| name),
        "address": lock.address.map(|address| format!("{address:#x}")),
        "waiting_ms": milliseconds(total), "percent": rounded(share(total, waited)),
        "waits": lock.waits.count(),
        "held_by": threads(&lock.holders), "waited_by": threads(&lock.waiters),
    });
    // Locks of libraries that park threads have no known holders.
    if !lock.wakers.is_empty() {
        row["woken_by"] = threads(&lock.wakers);
    }
    if !lock.tree.is_empty() {
        row["holders_waited_themselves"] = true.into();
    }
    row
}
