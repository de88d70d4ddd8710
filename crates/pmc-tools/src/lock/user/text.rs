//! User-space locks, each with its waits, the functions that wait for it, and the threads that hold it.

use std::io::{self, Write};

use crate::lock::losses;
use crate::lock::user::{LockSite, LockThread, OtherWaits, UserLock, UserLocks, WaitingHolder};
use pmc_analysis::profile::sampled::futex_functions::OwnerField;
use pmc_text::table::{self, left, right};
use pmc_text::text::{DisplayName, clean};
use pmc_text::units::{self, counted};

/// Maximum width of a function's name.
const FUNCTION: usize = 60;

/// Writes at most `rows` locks, with at most `most` waiting threads and holders for each of them.
pub(super) fn write(out: &mut dyn Write, locks: &UserLocks, rows: usize, most: usize) -> io::Result<()> {
    headline(out, locks)?;
    for lock in locks.locks.iter().take(rows) {
        writeln!(out)?;
        one(out, lock, most)?;
        tree(out, locks, lock, most)?;
    }
    if locks.has_partial_trees {
        writeln!(out, "# Too many waits: the wait trees are incomplete.")?;
    }
    if locks.locks.len() > rows {
        let more = counted((locks.locks.len() - rows) as u64, "more lock");
        writeln!(out, "\n({more}; -E 0 shows all)")?;
    }
    if !locks.others.is_empty() {
        let of = |other: &OtherWaits| {
            format!("{} {} ({})", other.what.name(), duration(other.time), counted(other.waits, "wait"))
        };
        let all: Vec<String> = locks.others.iter().map(of).collect();
        writeln!(out, "\nnot locks: {}", all.join(", "))?;
    }
    if locks.has_goroutines {
        writeln!(
            out,
            "# Go: goroutine waits (sync.Mutex) do not reach the kernel, so they are not shown; \
             use Go's mutex profile"
        )?;
    }
    losses(out, &locks.counts, "futex calls")
}

fn duration(ns: u64) -> String {
    units::duration(ns as f64)
}

fn headline(out: &mut dyn Write, locks: &UserLocks) -> io::Result<()> {
    let waits = locks.locks.iter().map(|lock| lock.waits.count()).sum();
    if waits == 0 {
        return match locks.elapsed {
            0 => writeln!(out, "no waits for locks: no thread waited in a futex call"),
            elapsed => writeln!(out, "no waits for locks in {}", duration(elapsed)),
        };
    }
    write!(
        out,
        "{} waiting for {} in {} of {}",
        duration(locks.waited()),
        lock_count(locks),
        counted(waits, "wait"),
        counted(locks.threads as u64, "thread"),
    )?;
    if let Some(known) = known_share(locks.unknown(), locks.waited()) {
        write!(out, "; holder known for {known:.0}% of that time")?;
    }
    writeln!(out)
}

/// Returns the number of locks, and the libraries whose locks are unknown.
fn lock_count(locks: &UserLocks) -> String {
    let known = locks.locks.iter().filter(|lock| lock.address.is_some()).count();
    let mut libraries: Vec<&str> = locks.locks.iter().filter_map(library).collect();
    libraries.sort_unstable();
    libraries.dedup();
    let mut parts: Vec<String> = libraries.iter().map(|library| format!("locks of {library}")).collect();
    if known > 0 {
        parts.insert(0, counted(known as u64, "lock"));
    }
    parts.join(" and ")
}

/// Returns the library whose locks the row represents, because they are unknown.
fn library(lock: &UserLock) -> Option<&'static str> {
    match lock.owner_field {
        OwnerField::Parked(library) if lock.address.is_none() => Some(library.name()),
        _ => None,
    }
}

/// Returns the percentage of a waiting time for which the holder is known; `None` if it is known throughout.
fn known_share(unknown: u64, total: u64) -> Option<f64> {
    let unknown = share(unknown, total);
    (unknown >= 0.005).then_some((1.0 - unknown) * 100.0)
}

/// Returns the kind of lock with its variable or address, or else the locks of the library.
fn name(lock: &UserLock) -> String {
    if let Some(library) = library(lock) {
        return format!("locks of {library}");
    }
    let name = match &lock.variable {
        Some((name, 0)) => clean(name).into_owned(),
        Some((name, into)) => format!("{}+{into:#x}", clean(name)),
        None => lock.address.map(|address| format!("{address:#x}")).unwrap_or_default(),
    };
    format!("{} `{name}`", lock.purpose.name())
}

fn place(site: &LockSite) -> String {
    let function = site
        .function
        .as_deref()
        .map_or("an unknown function".to_owned(), |name| DisplayName::new(name).fit(FUNCTION).text());
    match &site.source {
        Some((file, line)) => {
            let file = file.rsplit('/').next().unwrap_or(file);
            format!("{function} ({}:{line})", clean(file))
        }
        None => function,
    }
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn one(out: &mut dyn Write, lock: &UserLock, most: usize) -> io::Result<()> {
    let total = lock.waits.sum();
    write!(out, "{} waiting for {}", duration(total), name(lock))?;
    if let Some(waiter) = lock.waiters.first() {
        write!(out, " in {}", place(&waiter.site))?;
    }
    match lock.holders.first() {
        Some(holder) => {
            write!(out, ", held by thread `{}`", clean(&holder.comm))?;
            if let Some(function) = holder.site.function.as_deref().filter(|_| holder.is_exact) {
                write!(out, " in {}", DisplayName::new(function).fit(FUNCTION).text())?;
            }
            write!(out, " {:.0}% of that time", share(holder.time, total) * 100.0)?;
            match known_share(lock.unknown, total) {
                Some(known) => writeln!(out, " (holder known for {known:.0}%)")?,
                None => writeln!(out)?,
            }
        }
        None if lock.address.is_none() => {
            writeln!(out, "; which locks, and which threads hold them, is unknown")?;
        }
        None => writeln!(out, ", held by an unknown thread")?,
    }
    let mean = lock.waits.mean();
    write!(
        out,
        "  {}: average {}, 99% below {}, longest {}",
        counted(lock.waits.count(), "wait"),
        duration(mean),
        duration(lock.waits.quantile(0.99)),
        duration(lock.waits.max()),
    )?;
    for (count, what) in [(lock.timed_out, "timed out"), (lock.unfinished, "not ended")] {
        if count > 0 {
            write!(out, ", {} {what}", units::thousands(count))?;
        }
    }
    writeln!(out, "; process {} ({})", clean(&lock.comm), lock.pid)?;
    let mut rows = Vec::new();
    parties(&mut rows, "waits", &lock.waiters, total, most);
    parties(&mut rows, "holds", &lock.holders, total, most);
    parties(&mut rows, "wakes", &lock.wakers, total, most);
    if lock.address.is_some()
        && lock.unknown > 0
        && (share(lock.unknown, total) >= 0.0005 || lock.holders.is_empty())
    {
        let why = match lock.owner_field.is_stored() {
            true => "unknown",
            false => "unknown: this kind of lock does not store its holder",
        };
        rows.push(vec![
            "holds".into(),
            percents(lock.unknown, total),
            duration(lock.unknown),
            why.into(),
            String::new(),
        ]);
    }
    table::write(out, &[left(4, 0), right(2, 0), right(2, 0), left(2, 0), left(2, 0)], None, rows)?;
    if !lock.owner_field.is_stored() && !lock.holders.is_empty() {
        writeln!(
            out,
            "    This kind of lock does not store its holder; the threads shown are those that released it."
        )?;
    }
    if let Some(library) = library(lock) {
        writeln!(
            out,
            "    {library} parks each waiting thread on a separate futex, which does not show the lock."
        )?;
    }
    if lock.readings > 0 {
        writeln!(
            out,
            "    The lock's owner field matches the holder in {} of {} readings.",
            units::thousands(lock.agreeing),
            units::thousands(lock.readings)
        )?;
    }
    Ok(())
}

/// Writes what the holders of this lock are waiting for and, if that is a lock too, its holders.
fn tree(out: &mut dyn Write, locks: &UserLocks, lock: &UserLock, most: usize) -> io::Result<()> {
    if lock.tree.is_empty() {
        return Ok(());
    }
    writeln!(out, "  the holders wait too:")?;
    let mut rows = Vec::new();
    holders(&mut rows, locks, &lock.tree, 0, most);
    table::write(out, &[right(4, 0), left(2, 0)], None, rows)
}

fn holders(rows: &mut Vec<Vec<String>>, locks: &UserLocks, all: &[WaitingHolder], level: usize, most: usize) {
    let indent = "  ".repeat(level);
    for holder in all.iter().take(most) {
        let end = if holder.is_deadlock { ", which waits above: a deadlock" } else { "" };
        let held = if level > 0 { "held by " } else { "" };
        let words = format!("{indent}{held}{} ({}){end}", clean(&holder.comm), holder.tid);
        rows.push(vec![duration(holder.time), words]);
        for wait in holder.waits.iter().take(most) {
            let what = match wait.lock.and_then(|lock| locks.locks.get(lock)) {
                Some(lock) => name(lock),
                None => wait.what.name().to_owned(),
            };
            let words = format!("{indent}  waits for {what} in {}", place(&wait.site));
            rows.push(vec![duration(wait.time), words]);
            holders(rows, locks, &wait.holders, level + 2, most);
        }
    }
    if all.len() > most {
        let rest = all[most..].iter().fold(0u64, |sum, holder| sum.saturating_add(holder.time));
        rows.push(vec![duration(rest), format!("{indent}{} more (-v)", all.len() - most)]);
    }
}

fn percents(part: u64, whole: u64) -> String {
    format!("{:.1}%", share(part, whole) * 100.0)
}

fn parties(rows: &mut Vec<Vec<String>>, what: &str, all: &[LockThread], total: u64, most: usize) {
    for party in all.iter().take(most) {
        rows.push(vec![
            what.to_owned(),
            percents(party.time, total),
            duration(party.time),
            format!("{} ({})", clean(&party.comm), party.tid),
            match party.is_exact {
                true => place(&party.site),
                false if party.site.function.is_none() => "function unknown".to_owned(),
                false => format!("last seen in {}", place(&party.site)),
            },
        ]);
    }
    if all.len() > most {
        let rest = all[most..].iter().fold(0u64, |sum, party| sum.saturating_add(party.time));
        let more = format!("{} more (-v)", all.len() - most);
        rows.push(vec![what.to_owned(), percents(rest, total), duration(rest), more, String::new()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_without_waits_say_why() {
        let said = |elapsed| {
            let locks = UserLocks { elapsed, ..UserLocks::default() };
            let mut out = Vec::new();
            write(&mut out, &locks, 9, 3).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(said(0), "no waits for locks: no thread waited in a futex call\n");
        assert_eq!(said(2_000_000), "no waits for locks in 2.00 ms\n");
    }
}
