//! Lists of a recording's contents other than samples, in perf's formats: record kinds, tasks and mappings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use pmc_analysis::profile::header::{FinalCount, RecordedTask};
use pmc_symbols::symbol::kernel::{KernelMap, KernelSymbol};
use pmc_text::table::{self, left, right};
use pmc_text::text::clean;

/// Writes the number and share of the records of each kind.
pub fn stats(out: &mut dyn Write, kinds: &[(String, u64)], unknown: u64) -> io::Result<()> {
    let all: u64 = kinds.iter().map(|(_, count)| count).sum::<u64>() + unknown;
    writeln!(out, "\nAggregated stats:")?;
    writeln!(out, "{:>16} events: {all:10}", "TOTAL")?;
    let share = |count: u64| count as f64 / all.max(1) as f64 * 100.0;
    let unknown = Some(("UNKNOWN".to_owned(), unknown)).filter(|(_, count)| *count > 0);
    kinds.iter().chain(&unknown).try_for_each(|(name, count)| {
        writeln!(out, "{:>16} events: {count:10}  ({:4.1}%)", clean(name), share(*count))
    })
}

/// Writes the addresses of kernel symbols in the format of `perf kallsyms`, in the order of `names`. For
/// symbols in modules, also writes the address relative to the module's start.
pub fn kernel_symbols(out: &mut dyn Write, names: &[String], found: &[KernelSymbol]) -> io::Result<()> {
    for name in names {
        let mut own = found.iter().filter(|symbol| symbol.name == *name).peekable();
        if own.peek().is_none() {
            writeln!(out, "{}: not found", clean(name))?;
        }
        for KernelSymbol { module, file, start, end, .. } in own {
            let (owner, base) =
                module.as_ref().map_or(("[kernel]", 0), |(name, base)| (name.as_str(), *base));
            let file = match (file, module) {
                (Some(file), _) => file.to_string_lossy(),
                (None, Some((name, _))) => name.into(),
                (None, None) => "[kernel.kallsyms]".into(),
            };
            let (from, to) = (start.wrapping_sub(base), end.wrapping_sub(base));
            let (name, owner, file) = (clean(name), clean(owner), clean(&file));
            writeln!(out, "{name}: {owner} {file} {start:#x}-{end:#x} ({from:#x}-{to:#x})")?;
        }
    }
    Ok(())
}

/// Writes the kernel and its modules with their build-ids, in the format of `perf buildid-list -m`.
pub fn kernel_maps(out: &mut dyn Write, maps: &[KernelMap]) -> io::Result<()> {
    maps.iter().try_for_each(|KernelMap { id, name, start, end }| {
        let id = id.map_or(String::new(), |id| id.to_string());
        writeln!(out, "{id} {start:16x} {end:16x} {}", clean(&name.to_string_lossy()))
    })
}

/// Writes the tasks as a tree, each below its parent, with their mappings.
pub fn tasks(out: &mut dyn Write, tasks: &[RecordedTask]) -> io::Result<()> {
    writeln!(out, "# {:>8} {:>8} {:>8}  comm", "pid", "tid", "ppid")?;
    let known: BTreeSet<i32> = tasks.iter().map(|task| task.tid).collect();
    let mut below: BTreeMap<i32, Vec<&RecordedTask>> = BTreeMap::new();
    let mut open: Vec<(&RecordedTask, usize)> = Vec::new();
    for task in tasks {
        // A task whose parent is missing, or is the task itself, becomes a root.
        match task.parent.filter(|parent| known.contains(parent) && *parent != task.tid) {
            Some(parent) => below.entry(parent).or_default().push(task),
            None => open.push((task, root_depth(task))),
        }
    }
    open.reverse();
    let mut shown = BTreeSet::new();
    loop {
        while let Some((task, depth)) = open.pop() {
            if !shown.insert(task.tid) {
                continue;
            }
            one(out, task, depth)?;
            let children = below.get(&task.tid).into_iter().flatten().rev();
            open.extend(children.map(|child| (*child, depth + 1)));
        }
        // The remaining tasks are their own ancestors. This happens only in damaged recordings.
        match tasks.iter().find(|task| !shown.contains(&task.tid)) {
            Some(task) => open.push((task, root_depth(task))),
            None => return Ok(()),
        }
    }
}

/// Returns the indentation depth of a root. Like perf 7.2, treats the idle task as the parent of each task
/// without a recorded parent.
fn root_depth(task: &RecordedTask) -> usize {
    usize::from(task.tid != 0)
}

/// Maximum indentation depth; deeper tasks are not indented further.
const DEEPEST: usize = 40;

fn one(out: &mut dyn Write, task: &RecordedTask, depth: usize) -> io::Result<()> {
    let (parent, indent) = (task.parent.unwrap_or(-1), depth.min(DEEPEST));
    writeln!(out, "  {:8} {:8} {parent:8} |{:indent$}{}", task.pid, task.tid, "", clean(&task.comm))?;
    for map in &task.maps {
        let (from, to, access, offset) = (map.start, map.end, map.access, map.offset);
        let (id, path) = (&map.file_id, clean(&map.path));
        writeln!(out, "{:32}{:indent$}{from:x}-{to:x} {access} {offset:08x} {id} {path}", "", "")?;
    }
    Ok(())
}

/// Writes each thread's counts at exit: one row per thread, one column per event.
pub fn counts(out: &mut dyn Write, counts: &[FinalCount]) -> io::Result<()> {
    if counts.is_empty() {
        return writeln!(out, "\nThe recording has no thread counts (pmc record -s).");
    }
    let events: BTreeSet<&str> = counts.iter().map(|count| count.event.as_str()).collect();
    let mut rows: BTreeMap<(i32, i32), BTreeMap<&str, u64>> = BTreeMap::new();
    for count in counts {
        let sum = rows.entry((count.pid, count.tid)).or_default().entry(&count.event).or_default();
        *sum = sum.saturating_add(count.value);
    }
    let head = ["#", "PID", "TID"].map(Cow::from).into_iter().chain(events.iter().map(|event| clean(event)));
    let row = |((pid, tid), values): ((i32, i32), BTreeMap<&str, u64>)| {
        let values = events.iter().map(|event| values.get(event).copied().unwrap_or(0).to_string());
        [String::new(), pid.to_string(), tid.to_string()].into_iter().chain(values).collect()
    };
    let shapes = [vec![left(0, 1), right(1, 8), right(1, 8)], vec![right(2, 14); events.len()]].concat();
    let rows = std::iter::once(head.map(Cow::into_owned).collect()).chain(rows.into_iter().map(row));
    writeln!(out)?;
    table::write(out, &shapes, None, rows)
}
