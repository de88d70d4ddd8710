//! User-space locks as a JSON document. docs/lock.md explains the fields.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::text::share;
use super::{HolderWait, LockThread, UserLock, UserLocks, WaitingHolder};
use crate::lock::event_counts;
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField};
use pmc_text::json_document::{list_up_to, percent};
use pmc_text::text::as_json;

/// Writes at most `limit` locks, each with at most as many threads.
pub(super) fn write(out: &mut dyn Write, locks: &UserLocks, limit: usize) -> io::Result<()> {
    write!(
        out,
        "{{\n\"version\": 1,\n\"elapsed_ns\": {},\n\"threads\": {},\n\"locks\": ",
        locks.elapsed, locks.threads
    )?;
    let omitted = list_up_to(out, &locks.locks, limit, |lock| lock_json(locks, lock, limit))?;
    let others = locks.others.iter();
    let others: Json = others
        .map(|other| json!({"what": other.what.name(), "wait_total_ns": other.time, "waits": other.waits}))
        .collect();
    let mut events = event_counts(&locks.counts);
    events["did_not_wait"] = json!(locks.did_not_wait);
    writeln!(
        out,
        ",\n\"not_locks\": {},\n\"has_partial_trees\": {},\n\"has_goroutines\": {},\n\"events\": {},\n\"omitted\": {{\"locks\": {omitted}}}\n}}",
        as_json(&others),
        locks.has_partial_trees,
        locks.has_goroutines,
        as_json(&events)
    )
}

fn holder_json(locks: &UserLocks, holder: &WaitingHolder) -> Json {
    let wait = |wait: &HolderWait| -> Json {
        let lock = wait.lock.and_then(|lock| locks.locks.get(lock));
        json!({
            "what": wait.what.name(), "address": lock.and_then(address),
            "variable": lock.and_then(|lock| lock.variable.as_ref()).map(|(name, _)| name),
            "function": wait.site.function.as_deref(), "file": wait.site.file(),
            "line": wait.site.line(), "time_ns": wait.time,
            "holders": wait.holders.iter().map(|holder| holder_json(locks, holder)).collect::<Json>(),
        })
    };
    json!({
        "tid": holder.tid, "comm": holder.comm, "time_ns": holder.time, "is_deadlock": holder.is_deadlock,
        "waits": holder.waits.iter().map(wait).collect::<Json>(),
    })
}

fn address(lock: &UserLock) -> Option<String> {
    lock.address.map(|address| format!("{address:#x}"))
}

/// Returns the object of a lock, with at most `limit` waiting threads and holders.
fn lock_json(locks: &UserLocks, lock: &UserLock, limit: usize) -> Json {
    let total = lock.waits.sum();
    let party = |party: &LockThread| -> Json {
        json!({
            "tid": party.tid, "comm": party.comm, "function": party.site.function.as_deref(),
            "file": party.site.file(), "line": party.site.line(),
            "is_exact": party.is_exact, "time_ns": party.time, "waits": party.waits, "percent": percent(share(party.time, total)),
        })
    };
    let kind = match lock.purpose {
        FutexUse::Mutex => "mutex",
        FutexUse::RwLock => "rwlock",
        FutexUse::SemaphoreLock => "semaphore",
        _ => "runtime",
    };
    let field = match lock.owner_field {
        OwnerField::Glibc => Some("glibc"),
        OwnerField::Futex => Some("futex"),
        OwnerField::Nowhere | OwnerField::InCondition | OwnerField::Parked(_) => None,
    };
    let parking = match lock.owner_field {
        OwnerField::Parked(library) => Some(library.name()),
        _ => None,
    };
    json!({
        "pid": lock.pid, "comm": lock.comm, "address": address(lock),
        "variable": lock.variable.as_ref().map(|(name, _)| name),
        "offset": lock.variable.as_ref().map(|(_, into)| into),
        "kind": kind, "owner_field": field, "parking_library": parking,
        "wait_total_ns": total, "waits": lock.waits.count(), "wait_max_ns": lock.waits.max(),
        "wait_min_ns": lock.waits.min(), "avg_wait_ns": lock.waits.mean(),
        "wait_p50_ns": lock.waits.quantile(0.5), "wait_p99_ns": lock.waits.quantile(0.99),
        "timed_out": lock.timed_out, "unfinished": lock.unfinished, "with_loss": lock.with_loss,
        "waiters": lock.waiters.iter().take(limit).map(party).collect::<Json>(),
        "holders": lock.holders.iter().take(limit).map(party).collect::<Json>(),
        "wakers": lock.wakers.iter().take(limit).map(party).collect::<Json>(),
        "waiting_holders": lock.tree.iter().map(|holder| holder_json(locks, holder)).collect::<Json>(),
        "unknown_holder_ns": lock.unknown,
        "owner_readings": lock.readings, "owner_agrees": lock.agreeing,
        "omitted": {
            "waiters": lock.waiters.len().saturating_sub(limit),
            "holders": lock.holders.len().saturating_sub(limit),
            "wakers": lock.wakers.len().saturating_sub(limit),
        },
    })
}
