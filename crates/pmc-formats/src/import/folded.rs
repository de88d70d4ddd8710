//! Folded stacks: a line per stack, with its outermost function first and its weight last.
//!
//! ```text
//!   grep;main;parse_line 17         inferno-collapse-perf, stackcollapse-perf.pl, bpftrace
//!   [main tid=12];java/lang/Thread.run;app/Main.work_[j] 5      async-profiler
//!   <module> (app.py:30);work (app.py:12) 44                    py-spy
//! ```
//!
//! The format does not say whether the first name is a thread or a function, nor what the weight counts. See
//! [`has_thread_names`] and [`are_counts`] for the rules.

use std::borrow::Cow;

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{file_and_line, head_lines, is_digits, lines, module_and_function};
use pmc_text::units::thousands;

/// Maximum sum of the weights that are taken for numbers of samples.
const MOST_COUNTED: u64 = 1_000_000;
/// Longest name of a thread of the kernel, in bytes.
const LONGEST_COMM: usize = 15;
/// Functions in which threads start.
const START_FUNCTIONS: &[&str] = &[
    "main",
    "_main",
    "start",
    "_start",
    "__libc_start_main",
    "start_thread",
    "thread_start",
    "_pthread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "all",
    "root",
    "total",
];
/// Separates the names of a stack.
const SEPARATOR: char = ';';

pub(super) fn is_format(head: &[u8]) -> bool {
    // Bytes of a binary file can look like a line with a number at its end.
    if head.contains(&0) {
        return false;
    }
    let mut lines = head_lines(head).filter(|line| !is_ignored(line)).peekable();
    // Keys with values, as in configuration files, are no stacks.
    let fits = |line: Cow<'_, str>| {
        split(&line).is_some_and(|(stack, _)| {
            !stack.starts_with([' ', '\t']) && (stack.contains(SEPARATOR) || !stack.ends_with(':'))
        })
    };
    lines.peek().is_some() && lines.all(fits)
}

/// Whether the line is empty or a comment, as the flame graph tools write them.
fn is_ignored(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// Splits a line into its stack and its weight.
fn split(line: &str) -> Option<(&str, f64)> {
    let (stack, weight) = line.trim_end().rsplit_once([' ', '\t'])?;
    let is_number = weight.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let weight: f64 = weight.parse().ok().filter(|_| is_number)?;
    (!stack.trim().is_empty()).then_some((stack, weight))
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let event = profile.event("weight", "")?;
    let has_threads = has_thread_names(bytes);
    let mut stacks = lines(bytes).filter(|(_, line)| !is_ignored(line));
    let has_two_weights = |line: &str| split(line).and_then(|(stack, _)| split(stack)).is_some();
    if stacks.all(|(_, line)| has_two_weights(&line)) {
        let what = "each stack has two weights: import the two profiles, and compare them with pmc diff";
        return Err(ImportError::unsupported(what));
    }
    let mut locations: Vec<ImportId> = Vec::new();
    let mut has_fractions = false;
    for (number, line) in lines(bytes).filter(|(_, line)| !is_ignored(line)) {
        let (stack, weight) = split(&line).ok_or_else(|| {
            ImportError::line(number, "a folded stack must end with a space and its weight, a number")
        })?;
        has_fractions |= weight.fract() != 0.0;
        let mut names = stack.split(SEPARATOR).map(str::trim);
        let comm = if has_threads { names.next().unwrap_or_default() } else { "" };
        let thread = thread(&mut profile, comm)?;
        locations.clear();
        // Inlined functions and the function that contains them.
        let mut inlined: Vec<ImportId> = Vec::new();
        for name in names.filter(|name| !name.is_empty()).rev() {
            let (call, is_inlined) = call(&mut profile, name);
            inlined.push(profile.call(call));
            if !is_inlined {
                locations.push(profile.location(&inlined));
                inlined.clear();
            }
        }
        if !inlined.is_empty() {
            locations.push(profile.location(&inlined));
        }
        let stack = profile.stack(&locations)?;
        let value = weight.round() as u64;
        profile.add(ImportedSample { event, stack, thread, value, ..ImportedSample::default() })?;
    }
    let sum = profile.samples.iter().map(|sample| sample.value).fold(0u64, u64::saturating_add);
    if are_counts(sum) {
        profile.samples.iter_mut().for_each(|sample| sample.samples = sample.value.max(1));
    } else {
        profile.notes.push(format!(
            "folded stacks do not contain numbers of samples; the weights add up to {}, so each of the {} lines \
             counts as one sample",
            thousands(sum),
            thousands(profile.samples.len() as u64)
        ));
    }
    if has_fractions {
        profile.notes.push("weights with fractions were rounded to whole numbers".to_owned());
    }
    Ok(profile)
}

/// Whether weights with this sum are numbers of samples. Otherwise they are sums of periods or times.
fn are_counts(sum: u64) -> bool {
    sum <= MOST_COUNTED
}

/// Whether the first name of each stack is a thread. It is one if all first names could be names of threads,
/// and none is a function in which threads start.
fn has_thread_names(bytes: &[u8]) -> bool {
    let mut stacks = lines(bytes).filter(|(_, line)| !is_ignored(line));
    stacks.all(|(_, line)| {
        let Some((stack, _)) = split(&line) else { return true };
        let first = stack.split(SEPARATOR).next().unwrap_or_default().trim();
        is_thread_name(first)
    })
}

fn is_thread_name(name: &str) -> bool {
    // async-profiler and stackcollapse-perf.pl (with --pid or --tid) add numbers.
    if name.starts_with('[') && name.contains(" tid=") || py_spy_thread(name).is_some() {
        return true;
    }
    let (comm, _) = without_ids(name);
    let is_kernel_thread = comm.split_once('/').is_some_and(|(start, number)| {
        !start.contains(['.', ' ']) && number.starts_with(|c: char| c.is_ascii_digit() || c == 'u')
    });
    comm.len() <= LONGEST_COMM
        && !comm.is_empty()
        && (is_kernel_thread || !comm.contains(['(', ')', '<', '>', '/', '`', '!']))
        && !comm.contains("::")
        && !comm.starts_with('[')
        && !START_FUNCTIONS.contains(&comm)
}

/// Splits off the IDs at the end of a thread's name: `java-12/34`, `java-12/?`, `java-12`, `[java tid=34]`.
fn without_ids(name: &str) -> (&str, Option<(i32, i32)>) {
    if let Some((comm, tid)) =
        name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.rsplit_once(" tid="))
        && let Ok(tid) = tid.parse()
    {
        return (comm, Some((tid, tid)));
    }
    let ids = name.rsplit_once('-').and_then(|(comm, ids)| {
        let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
        let pid: i32 = if is_digits(pid) { pid.parse().ok()? } else { return None };
        let tid = if tid == "?" { pid } else { tid.parse().ok().filter(|_| is_digits(tid))? };
        (!comm.is_empty()).then_some((comm, (pid, tid)))
    });
    ids.map_or((name, None), |(comm, ids)| (comm, Some(ids)))
}

/// Parses py-spy's `thread (494): MainThread` and `thread (494)`.
fn py_spy_thread(name: &str) -> Option<(i32, &str)> {
    let (tid, rest) = name.strip_prefix("thread (")?.split_once(')')?;
    Some((tid.parse().ok()?, rest.trim_start_matches(':').trim()))
}

fn thread(profile: &mut ImportedProfile, name: &str) -> Result<ImportId, ImportError> {
    if let Some((tid, comm)) = py_spy_thread(name) {
        return profile.thread(1, tid, if comm.is_empty() { name } else { comm });
    }
    match without_ids(name) {
        (comm, Some((pid, tid))) if name.contains('/') || name.contains(" tid=") => {
            profile.thread(pid, tid, comm)
        }
        _ => profile.named_thread(name),
    }
}

/// Returns the call with this name, and whether it is marked as inlined.
fn call(profile: &mut ImportedProfile, name: &str) -> (ImportedCall, bool) {
    let marks = ["_[k]", "_[i]", "_[j]", "_[w]", "_[0]", "_[1]"];
    let mark = marks.into_iter().find(|mark| name.ends_with(mark)).unwrap_or_default();
    let name = &name[..name.len() - mark.len()];
    let is_kernel = mark == "_[k]";
    let call = if let Some(module) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        // Code without a name, in this module.
        let module = if module == "unknown" { "" } else { module };
        ImportedCall { module: profile.text(module), is_kernel, ..ImportedCall::default() }
    } else if let Some((module, function)) = module_and_function(name) {
        let (module, name) = (profile.text(module), profile.text(function));
        ImportedCall { module, name, is_kernel, ..ImportedCall::default() }
    } else if let Some((function, (file, line))) = with_position(name) {
        let (name, file) = (profile.text(function), profile.text(file));
        ImportedCall { name, file, line, is_kernel, ..ImportedCall::default() }
    } else {
        ImportedCall { name: profile.text(name), is_kernel, ..ImportedCall::default() }
    };
    (call, mark == "_[i]")
}

/// Splits py-spy's `function (file.py:12)`.
fn with_position(name: &str) -> Option<(&str, (&str, u32))> {
    let (function, position) = name.strip_suffix(')')?.rsplit_once(" (")?;
    Some((function, file_and_line(position)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str) -> ImportedProfile {
        read(text.as_bytes(), ImportedProfile::new()).unwrap()
    }

    fn comms(profile: &ImportedProfile) -> Vec<String> {
        profile.threads.iter().map(|thread| profile.get_text(thread.comm).to_string()).collect()
    }

    #[test]
    fn first_name_is_a_thread_only_if_all_could_be() {
        assert_eq!(comms(&imported("grep;main;a 1\nsh;_start;b 2\n")), ["grep", "sh"]);
        assert_eq!(comms(&imported("kworker/0:1-e;worker_thread 1\n")), ["kworker/0:1-e"]);
        assert_eq!(comms(&imported("main;a 1\ngrep;b 2\n")), [""]);
        assert_eq!(comms(&imported("<module> (a.py:1);f (a.py:2) 2\n")), [""]);
        let ids = imported("java-12/34;run 1\n[main tid=7];run 2\n");
        let ids: Vec<(i32, i32)> = ids.threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
        assert_eq!(ids, [(12, 34), (7, 7)]);
        let py_spy = imported("thread (9): Main;f (a.py:1) 1\nthread (8);g (a.py:2) 1\n");
        assert_eq!(comms(&py_spy), ["Main", "thread (8)"]);
    }

    #[test]
    fn small_weights_are_counts_of_samples() {
        let counts = imported("a;b 5\na;c 7\n");
        assert_eq!(counts.samples.iter().map(|sample| sample.samples).sum::<u64>(), 12);
        assert!(counts.notes.is_empty());
        let times = imported("a;b 5000000000\na;c 7\n");
        assert_eq!(times.samples.iter().map(|sample| sample.samples).sum::<u64>(), 2);
        assert!(times.notes[0].contains("5000000007") || times.notes[0].contains("5,000,000,007"));
    }

    #[test]
    fn marks_modules_and_positions_are_parsed() {
        let profile = imported("x;f (a b/c.py:12);libc.so`read+0x12;outer;inl_[i];sys_[k];[libc.so.6] 1\n");
        let stack = &profile.stacks[0];
        let of = |at: usize| -> Vec<ImportedCall> {
            profile.locations[stack[at] as usize].iter().map(|call| profile.calls[*call as usize]).collect()
        };
        let name = |call: &ImportedCall| profile.get_text(call.name).to_string();
        assert_eq!(of(0)[0].name, 0);
        assert_eq!(&**profile.get_text(of(0)[0].module), "libc.so.6");
        assert!(of(1)[0].is_kernel && name(&of(1)[0]) == "sys");
        assert_eq!(of(2).iter().map(name).collect::<Vec<_>>(), ["inl", "outer"]);
        assert_eq!(name(&of(3)[0]), "read");
        assert_eq!((&**profile.get_text(of(4)[0].file), of(4)[0].line), ("a b/c.py", 12));
    }

    #[test]
    fn bad_lines_are_reported_with_their_number() {
        let error = |text: &str| read(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        assert!(error("a;b 1\na;b\n").starts_with("line 2: "));
        assert!(error("a;b 1 2\na;c 1 2\n").contains("two weights"));
        assert_eq!(imported("a;operator 1 2\na;c 2\n").samples.len(), 2);
        assert!(is_format(b"a;b 1\n# c\n\nmain 2\n") && !is_format(b"hello world\n"));
        assert!(!is_format(b"\xfd7zXZ\0\x04 12\n"));
    }
}
