//! Folded stacks: a line per stack, with its outermost function first and its weight last.
//!
//! ```text
//!   grep;main;parse_line 17         inferno-collapse-perf, stackcollapse-perf.pl, bpftrace
//!   [main tid=12];java/lang/Thread.run;app/Main.work_[j] 5      async-profiler
//!   <module> (app.py:30);work (app.py:12);read (libc.so.6) 44   py-spy, with native code
//! ```
//!
//! The format does not say whether the first name is a thread or a function, nor what the weight counts. See
//! [`FoldedLines`] and [`count_samples`] for the rules.

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{file_and_line, head_lines, hex, is_digits, lines, module_and_function};
use pmc_text::text::split_parenthesis;
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

/// Largest number of decimal places of weights that are kept.
const MOST_DECIMALS: u32 = 9;
/// Maximum sum of the weights after their decimal places were made whole numbers.
const MOST_SCALED: f64 = 1e18;

/// Whether most lines are stacks with weights.
pub(super) fn is_format(head: &[u8]) -> bool {
    let LineCounts { stacks, with_callers, odd } = LineCounts::of(head);
    // A text with odd lines must look like stacks otherwise.
    let is_mostly_whole = odd * 10 <= stacks || odd == 1 && stacks > 1;
    stacks > 0 && (odd == 0 || is_mostly_whole && with_callers * 2 >= stacks)
}

/// Whether all lines are stacks with callers, so that the text has no other format, whatever the functions
/// are called.
pub(super) fn is_certain(head: &[u8]) -> bool {
    let LineCounts { stacks, with_callers, odd } = LineCounts::of(head);
    odd == 0 && stacks > 0 && with_callers == stacks
}

/// Numbers of lines.
#[derive(Default)]
struct LineCounts {
    stacks: usize,
    /// Stacks of more than one function.
    with_callers: usize,
    odd: usize,
}

impl LineCounts {
    fn of(head: &[u8]) -> Self {
        let mut counts = Self::default();
        // Bytes of a binary file can look like a line with a number at its end.
        if head.contains(&0) {
            return counts;
        }
        let Self { stacks, with_callers, odd } = &mut counts;
        for line in head_lines(head) {
            match FoldedLine::parse(&line) {
                // Keys with values, as in configuration files, are no stacks.
                FoldedLine::Stack(stack, _)
                    if !stack.starts_with([' ', '\t'])
                        && (stack.contains(SEPARATOR) || !stack.ends_with(':')) =>
                {
                    *stacks += 1;
                    *with_callers += usize::from(stack.contains(SEPARATOR));
                }
                FoldedLine::Stack(..) | FoldedLine::Odd => *odd += 1,
                FoldedLine::Blank | FoldedLine::Comment | FoldedLine::Empty => {}
            }
        }
        counts
    }
}

/// A line of the text.
enum FoldedLine<'a> {
    Blank,
    Comment,
    Stack(&'a str, f64),
    /// A weight without a stack, as py-spy writes it for threads that run no Python code.
    Empty,
    Odd,
}

impl<'a> FoldedLine<'a> {
    fn parse(line: &'a str) -> Self {
        let text = line.trim();
        if text.is_empty() {
            return Self::Blank;
        }
        if weight(text.trim_start_matches([SEPARATOR, ' ', '\t'])).is_some() {
            return Self::Empty;
        }
        let stack = split(line);
        // The flame graph tools write comments. A thread's name may begin like one.
        if let Some(rest) = line.strip_prefix('#') {
            let is_sentence = rest.starts_with([' ', '\t', '#', '!']);
            let is_stack = |stack: &str| !is_sentence || stack.contains(SEPARATOR) && !stack.contains("; ");
            return match stack {
                Some((stack, weight)) if is_stack(stack) => Self::Stack(stack, weight),
                _ => Self::Comment,
            };
        }
        stack.map_or(Self::Odd, |(stack, weight)| Self::Stack(stack, weight))
    }
}

/// Splits a line into its stack and its weight.
fn split(line: &str) -> Option<(&str, f64)> {
    let (stack, number) = line.trim_end().rsplit_once([' ', '\t'])?;
    let weight = weight(number)?;
    (!stack.trim().is_empty()).then_some((stack, weight))
}

/// Parses a weight: `12`, `-3`, `0.25`, or `1e-05`, as Python prints it.
fn weight(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse().ok().filter(|weight: &f64| is_number && weight.is_finite())
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let all = FoldedLines::new(bytes);
    if all.have_two_weights {
        let what = "each stack has two weights: import the two profiles, and compare them with pmc diff";
        return Err(ImportError::unsupported(what));
    }
    let event = profile.event(all.event, "")?;
    let mut locations: Vec<ImportId> = Vec::new();
    for (number, line) in lines(bytes) {
        let invalid = |what: &str| ImportError::line(number, what);
        let (stack, weight) = match FoldedLine::parse(&line) {
            FoldedLine::Blank | FoldedLine::Comment => continue,
            FoldedLine::Empty => {
                profile.skip("this line has a weight, but no stack", invalid);
                continue;
            }
            FoldedLine::Odd => {
                profile.lose(invalid("a folded stack must end with a space and its weight, a number"))?;
                continue;
            }
            FoldedLine::Stack(_, weight) if weight < 0.0 => {
                profile
                    .lose(invalid("a weight must not be negative, as in the difference of two profiles"))?;
                continue;
            }
            FoldedLine::Stack(stack, weight) => (stack, weight),
        };
        let (thread, stack) = thread_and_stack(stack, all.has_threads, &mut profile)?;
        locations.clear();
        // Inlined functions and the function that contains them.
        let mut inlined: Vec<ImportId> = Vec::new();
        for name in stack.split(SEPARATOR).map(str::trim).filter(|name| !name.is_empty()).rev() {
            let (call, is_inlined) = call(&mut profile, name, all.have_places);
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
        let value = (weight * all.factor).round() as u64;
        profile.add(ImportedSample { event, stack, thread, value, ..ImportedSample::default() })?;
    }
    if all.factor == 1.0 {
        count_samples("folded stacks", &mut profile);
    }
    if all.factor != 1.0 {
        profile.notes.push(format!(
            "weights have fractions, so pmc shows them in units of 1/{}, and each line counts as one sample",
            all.factor
        ));
    }
    Ok(profile)
}

/// What all lines of a file have in common.
struct FoldedLines {
    /// Whether the first name of each stack is a thread: all could be names of threads, and none is a
    /// function in which threads start. Names that can only be threads do not depend on the others.
    has_threads: bool,
    /// Whether each stack has two weights.
    have_two_weights: bool,
    /// Whether names end with the place of the function, as py-spy writes them.
    have_places: bool,
    /// Factor that makes the weights whole numbers.
    factor: f64,
    event: &'static str,
}

impl FoldedLines {
    fn new(bytes: &[u8]) -> Self {
        let (mut has_threads, mut have_two_weights, mut have_places) = (true, true, false);
        let (mut decimals, mut sum) = (0, 0.0);
        for (_, line) in lines(bytes) {
            let FoldedLine::Stack(stack, weight) = FoldedLine::parse(&line) else { continue };
            have_two_weights = have_two_weights && split(stack).is_some();
            let first = || stack.split(SEPARATOR).next().unwrap_or_default().trim();
            has_threads = has_threads && (is_certain_thread(first()) || is_thread_name(first()));
            have_places = have_places || stack.contains(".py:") || stack.contains(".py)");
            sum += weight.max(0.0);
            while decimals < MOST_DECIMALS && !is_whole(weight * 10f64.powi(decimals as i32)) {
                decimals += 1;
            }
        }
        while decimals > 0 && sum * 10f64.powi(decimals as i32) > MOST_SCALED {
            decimals -= 1;
        }
        let event = if decimals == 0 { "weight" } else { "weight (fractions)" };
        Self { has_threads, have_two_weights, have_places, factor: 10f64.powi(decimals as i32), event }
    }
}

/// Whether a decimal number that was multiplied by a power of ten is whole.
fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() <= number.abs() * 1e-12
}

/// Takes the values of all samples for numbers of samples if their sum is small. Otherwise they are sums of
/// periods or times. `format` names the format, in the plural.
pub(super) fn count_samples(format: &str, profile: &mut ImportedProfile) {
    let sum = profile.samples.iter().map(|sample| sample.value).fold(0u64, u64::saturating_add);
    if sum <= MOST_COUNTED {
        profile.samples.iter_mut().for_each(|sample| sample.samples = sample.value.max(1));
        return;
    }
    profile.notes.push(format!(
        "{format} do not contain numbers of samples; the weights add up to {}, so each of the {} lines counts as one \
         sample",
        thousands(sum),
        thousands(profile.samples.len() as u64)
    ));
}

/// Whether the name has a form that only threads and processes have. async-profiler, py-spy and
/// stackcollapse-perf.pl (with `--pid` or `--tid`) write these.
fn is_certain_thread(name: &str) -> bool {
    name.starts_with('[') && without_ids(name).1.is_some()
        || py_spy_thread(name).is_some()
        || py_spy_process(name).is_some()
}

fn is_thread_name(name: &str) -> bool {
    let (comm, _) = without_ids(name);
    let is_kernel_thread = comm.split_once('/').is_some_and(|(start, number)| {
        !start.contains(['.', ' ']) && number.starts_with(|c: char| c.is_ascii_digit() || c == 'u')
    });
    // LuaJIT's profiler writes addresses of functions in C, and lines of functions in Lua.
    let is_address =
        hex(comm.trim_start_matches('@')).is_some() && comm.trim_start_matches('@').starts_with("0x");
    let is_line = file_and_line(comm).is_some_and(|(file, _)| file.contains('.'));
    comm.len() <= LONGEST_COMM
        && (is_kernel_thread || !comm.contains(['(', ')', '<', '>', '/', '`', '!']))
        && !is_address
        && !is_line
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

/// Parses py-spy's `thread (494): MainThread` and `thread (494)`. Without an ID of the system, py-spy prints
/// Python's, `thread (0x7F31C2FFD6C0)`.
fn py_spy_thread(name: &str) -> Option<(Option<i32>, &str)> {
    let (tid, rest) = name.strip_prefix("thread (")?.split_once(')')?;
    let is_python = tid.starts_with("0x") && hex(tid).is_some();
    let tid: Option<i32> = tid.parse().ok();
    let comm = rest.trim_start_matches(':').trim();
    (tid.is_some() || is_python).then_some((tid, if comm.is_empty() { name } else { comm }))
}

/// Splits py-spy's thread off a stack. Returns its ID, its name, and the rest. The name may contain the
/// separator; functions end with their places.
fn split_py_spy_thread(stack: &str) -> Option<(Option<i32>, &str, &str)> {
    let first = stack.split(SEPARATOR).next().unwrap_or_default();
    py_spy_thread(first)?;
    let is_function =
        |at: &usize| stack[at + 1..].split(SEPARATOR).next().is_some_and(|name| name.ends_with(')'));
    let end = stack.match_indices(SEPARATOR).map(|(at, _)| at).find(is_function).unwrap_or(first.len());
    let (tid, comm) = py_spy_thread(&stack[..end])?;
    Some((tid, comm, stack.get(end + 1..).unwrap_or_default()))
}

/// Parses py-spy's `process 494:"python3 app.py"` at the start of a stack. Returns the ID, the command, and
/// the rest of the stack.
fn py_spy_process(stack: &str) -> Option<(i32, &str, &str)> {
    let (pid, rest) = stack.strip_prefix("process ")?.split_once(":\"")?;
    let pid = pid.parse().ok()?;
    // The command may contain the separator of names.
    let (command, rest) = match rest.split_once("\";") {
        Some(found) => found,
        None => (rest.strip_suffix('"').unwrap_or(rest), ""),
    };
    Some((pid, command, rest))
}

/// Splits the thread off a stack. `has_threads` says whether all first names are threads.
fn thread_and_stack<'a>(
    stack: &'a str,
    has_threads: bool,
    profile: &mut ImportedProfile,
) -> Result<(ImportId, &'a str), ImportError> {
    let mut stack = stack.trim();
    // py-spy writes the parents of a process before it.
    let mut process = None;
    while let Some((pid, command, rest)) = py_spy_process(stack) {
        process = Some((pid, command));
        stack = rest.trim();
    }
    if let Some((tid, comm, rest)) = split_py_spy_thread(stack) {
        let thread = match (process, tid) {
            (Some((pid, _)), tid) => profile.thread(pid, tid.unwrap_or(pid), comm)?,
            (None, Some(tid)) => profile.thread(1, tid, comm)?,
            (None, None) => profile.named_thread(comm)?,
        };
        return Ok((thread, rest));
    }
    if let Some((pid, command)) = process {
        let program = command.split(' ').next().unwrap_or_default();
        let comm = program.rsplit('/').next().unwrap_or_default();
        return Ok((profile.thread(pid, pid, comm)?, stack));
    }
    let (first, rest) = stack.split_once(SEPARATOR).unwrap_or((stack, ""));
    let first = first.trim();
    if !has_threads && !is_certain_thread(first) {
        return Ok((profile.named_thread("")?, stack));
    }
    let thread = match without_ids(first) {
        (comm, Some((pid, tid))) if first.contains('/') || first.contains(" tid=") => {
            profile.thread(pid, tid, comm)?
        }
        _ => profile.named_thread(first)?,
    };
    Ok((thread, rest))
}

/// Returns the call with this name, and whether it is marked as inlined. `has_place` says whether a name may
/// end with the place of the function.
fn call(profile: &mut ImportedProfile, name: &str, has_place: bool) -> (ImportedCall, bool) {
    let marks = ["_[k]", "_[i]", "_[j]", "_[w]", "_[0]", "_[1]"];
    let mark = marks.into_iter().find(|mark| name.ends_with(mark)).unwrap_or_default();
    let name = without_address(&name[..name.len() - mark.len()]);
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
    } else if has_place && let Some((function, place)) = split_parenthesis(name) {
        let (name, text) = (profile.text(function), profile.text(place));
        match is_source(place) {
            true => ImportedCall { name, file: text, ..ImportedCall::default() },
            false => ImportedCall { name, module: text, ..ImportedCall::default() },
        }
    } else {
        ImportedCall { name: profile.text(name), is_kernel, ..ImportedCall::default() }
    };
    (call, mark == "_[i]")
}

/// Removes the address from `function<0000000000401106>`, as the pprof of gperftools and jemalloc writes it.
fn without_address(name: &str) -> &str {
    let split = name.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'));
    match split {
        Some((function, address))
            if !function.is_empty() && address.len() == 16 && hex(address).is_some() =>
        {
            function
        }
        _ => name,
    }
}

/// Splits py-spy's `function (file.py:12)`.
fn with_position(name: &str) -> Option<(&str, (&str, u32))> {
    let (function, place) = split_parenthesis(name)?;
    Some((function, file_and_line(place)?))
}

/// Whether the place of a function is a file of Python or `<string>`. Otherwise it is a library.
fn is_source(place: &str) -> bool {
    [".py", ".pyx", ".pyw"].iter().any(|end| place.ends_with(end)) || place.starts_with('<')
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
        let py_spy =
            imported("thread (9): io; 0;f (a.py:1);g (a.py:2) 1\nthread (8): io;x 1\nthread (7): io 1\n");
        assert_eq!(comms(&py_spy), ["io; 0", "io", "io"]);
        assert_eq!(py_spy.stacks.iter().map(|stack| stack.len()).collect::<Vec<_>>(), [2, 1, 0]);
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
    fn places_of_py_spy_are_files_or_modules() {
        let imported = |text: &str| {
            let profile = imported(text);
            let text = |number| profile.get_text(number).to_string();
            let calls = profile.calls.iter();
            calls.map(|call| (text(call.name), text(call.file), text(call.module))).collect::<Vec<_>>()
        };
        let call =
            |name: &str, file: &str, module: &str| (name.to_owned(), file.to_owned(), module.to_owned());
        let expected = [
            call("read", "", "libc.so.6"),
            call("f(int) const", "", "ext.so"),
            call("<module>", "<string>", ""),
            call("main", "a b/app.py", ""),
        ];
        let stack = "main (a b/app.py);<module> (<string>);f(int) const (ext.so);read (libc.so.6) 1\n";
        assert_eq!(imported(stack), expected);
        // Other writers' parentheses are parts of names.
        assert_eq!(imported("operator() (x) 1\n"), [call("operator() (x)", "", "")]);
    }

    #[test]
    fn bad_lines_are_reported_with_their_number() {
        let error = |text: &str| read(text.as_bytes(), ImportedProfile::new()).unwrap_err().to_string();
        assert!(imported("a;b 1\na;b\n").lost().unwrap().to_string().starts_with("line 2: "));
        assert!(error("a;b 1 2\na;c 1 2\n").contains("two weights"));
        assert_eq!(imported("a;operator 1 2\na;c 2\n").samples.len(), 2);
        assert!(is_format(b"a;b 1\n# c\n\nmain 2\n") && !is_format(b"hello world\n"));
        assert!(!is_format(b"\xfd7zXZ\0\x04 12\n"));
    }
}
