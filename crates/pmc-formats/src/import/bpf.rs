//! Stacks that bpftrace and the tools of bcc print.
//!
//! ```text
//!   @reads[                           bpftrace: a map, and the key of one of its values
//!       vfs_read+181                  function+offset, innermost first
//!       work+31
//!   , app, 1234]: 12                  other parts of the key: a name or an ID; then the value
//!
//!       b'vfs_read'                   bcc: profile, offcputime; the prefix b depends on the version
//!       --                            user code follows
//!       main
//!       -                app (1234)
//!           12                        the value ends a stack
//! ```
//!
//! bcc's `stackcount` prints no thread, or the thread as `app [1234]`.

use super::error::ImportError;
use super::folded::count_samples;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{head_lines, hex, is_digits, is_kernel, lines, split_module};
use pmc_text::text::split_parenthesis;

/// Minimum number of digits of an address before a function.
const ADDRESS_DIGITS: usize = 8;

pub(super) fn is_format(head: &[u8]) -> bool {
    is_bpftrace(head) || is_bcc(head)
}

/// Whether a map has a key that begins a stack, and each line outside of stacks may be a map or a message.
fn is_bpftrace(head: &[u8]) -> bool {
    let mut is_stack = false;
    for line in head_lines(head) {
        if is_stack && line.starts_with([' ', '\t', ']', ',']) {
            return true;
        }
        is_stack = opens_stack(&line);
    }
    false
}

/// Whether the line is the start of a map's key that continues in the next line.
fn opens_stack(line: &str) -> bool {
    let key = line.strip_prefix('@').and_then(|map| map.split_once('['));
    key.is_some_and(|(name, rest)| {
        let is_open = rest.trim().is_empty() || rest.trim_end().ends_with(',');
        is_open && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Whether the first block of indented lines ends with a number that is indented twice as far.
fn is_bcc(head: &[u8]) -> bool {
    let lines: Vec<_> = head_lines(head).collect();
    let blocks = lines.split(|line| line.trim().is_empty());
    let first = blocks.map(|block| block.iter().filter(|line| indent(line) > 0).collect::<Vec<_>>());
    first.into_iter().find(|block| !block.is_empty()).is_some_and(|block| match &block[..] {
        [frame, .., count] => is_digits(count.trim()) && indent(count) == 2 * indent(frame),
        _ => false,
    })
}

/// Returns the number of blanks at the start of a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A stack whose frames are being read.
#[derive(Default)]
struct OpenStack {
    /// Number of its first line; 0 if none is open.
    line: usize,
    /// Name of the map.
    map: String,
    locations: Vec<ImportId>,
    pid: Option<i32>,
    comm: String,
}

impl OpenStack {
    /// Adds a part of the key that is no stack.
    fn add_key(&mut self, part: &str) {
        match part.parse() {
            Ok(pid) => self.pid = self.pid.or(Some(pid)),
            Err(_) if self.comm.is_empty() => self.comm = part.to_owned(),
            Err(_) => self.comm = format!("{} {part}", self.comm),
        }
    }

    /// Adds the sample, which ends with the value in line `number`.
    fn finish(
        self,
        (event, value): (ImportId, u64),
        number: usize,
        profile: &mut ImportedProfile,
    ) -> Result<(), ImportError> {
        if self.locations.is_empty() {
            profile.skip("this value has no stack", |what| ImportError::line(number, what));
            return Ok(());
        }
        let thread = match self.pid {
            Some(pid) => profile.thread(pid, pid, &self.comm)?,
            None => profile.named_thread(&self.comm)?,
        };
        let stack = profile.stack(&self.locations)?;
        profile.add(ImportedSample { event, stack, thread, value, ..ImportedSample::default() })
    }
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let head = &bytes[..bytes.len().min(super::HEAD)];
    if is_bpftrace(head) {
        read_maps(bytes, &mut profile)?;
        count_samples("bpftrace's maps", &mut profile);
    } else {
        let has_times = head_lines(head).any(|line| indent(&line) == 0 && line.contains("(us)"));
        read_blocks(bytes, has_times, &mut profile)?;
        if !has_times {
            count_samples("bcc's stacks", &mut profile);
        }
    }
    Ok(profile)
}

fn unfinished(stack: &OpenStack) -> ImportError {
    ImportError::line(stack.line, "the stack that begins here does not end with a number")
}

/// Reads maps of bpftrace.
fn read_maps(bytes: &[u8], profile: &mut ImportedProfile) -> Result<(), ImportError> {
    let mut open = OpenStack::default();
    for (number, line) in lines(bytes) {
        if opens_stack(&line) {
            if open.line > 0 {
                profile.lose(unfinished(&open))?;
            }
            let (map, key) = line[1..].split_once('[').unwrap_or_default();
            open = OpenStack { line: number, map: map.to_owned(), ..OpenStack::default() };
            key.split(',').map(str::trim).filter(|part| !part.is_empty()).for_each(|part| open.add_key(part));
            continue;
        }
        if open.line == 0 {
            if line.starts_with('@') {
                profile.skip("this map has no stacks", |what| ImportError::line(number, what));
            } else if line.starts_with("Lost ") {
                profile.lose(ImportError::line(number, "bpftrace lost events"))?;
            }
            continue;
        }
        // The key ends with a bracket, and only the value follows.
        let Some((key, value)) = line.rsplit_once("]:").filter(|_| !line.starts_with([' ', '\t'])) else {
            if !matches!(line.trim(), "" | ",") {
                let location = location(line.trim(), profile);
                open.locations.push(location);
            }
            continue;
        };
        key.split(", ").map(str::trim).filter(|part| !part.is_empty()).for_each(|part| open.add_key(part));
        let open = std::mem::take(&mut open);
        // The value of stats() ends with the total.
        let value = value.rsplit("total ").next().unwrap_or_default().trim();
        let Ok(value) = value.parse::<u64>() else {
            profile.lose(ImportError::line(number, "the value of a stack must be a number of at least 0"))?;
            continue;
        };
        let event = profile.event(if open.map.is_empty() { "samples" } else { &open.map }, "")?;
        open.finish((event, value), number, profile)?;
    }
    if open.line > 0 {
        profile.lose(unfinished(&open))?;
    }
    Ok(())
}

/// Reads blocks of bcc. Values are microseconds if `has_times`.
fn read_blocks(bytes: &[u8], has_times: bool, profile: &mut ImportedProfile) -> Result<(), ImportError> {
    let event = match has_times {
        true => profile.event("time", "microseconds")?,
        false => profile.event("samples", "")?,
    };
    let mut open = OpenStack::default();
    for (number, line) in lines(bytes) {
        let text = line.trim();
        if text.is_empty() || indent(&line) == 0 && !line.starts_with('\t') {
            if open.line > 0 {
                profile.lose(unfinished(&std::mem::take(&mut open)))?;
            }
            continue;
        }
        if is_digits(text) {
            let value = text.parse().map_err(|_| ImportError::line(number, "the number is too large"))?;
            let value = if has_times { profile.scaled(event, value as f64) } else { value };
            std::mem::take(&mut open).finish((event, value), number, profile)?;
            continue;
        }
        if open.line == 0 {
            open.line = number;
        }
        if text == "--" {
            continue;
        }
        match thread_of(text) {
            Some((comm, pid)) => (open.comm, open.pid) = (comm.to_owned(), Some(pid)),
            None => {
                let location = location(text, profile);
                open.locations.push(location);
            }
        }
    }
    if open.line > 0 {
        profile.lose(unfinished(&open))?;
    }
    Ok(())
}

/// Parses `-                app (1234)` and `app [1234]`.
fn thread_of(text: &str) -> Option<(&str, i32)> {
    if let Some(rest) = text.strip_prefix("- ") {
        let (comm, pid) = split_parenthesis(rest)?;
        return Some((plain(comm.trim()), pid.parse().ok()?));
    }
    let (comm, pid) = text.strip_suffix(']')?.rsplit_once(" [")?;
    Some((plain(comm), pid.parse().ok()?))
}

/// Removes the marks of a text that Python's bcc printed as bytes: `b'main'`.
fn plain(text: &str) -> &str {
    let inside = text.strip_prefix("b'").and_then(|rest| rest.strip_suffix('\''));
    inside.or_else(|| text.strip_prefix("b\"").and_then(|rest| rest.strip_suffix('"'))).unwrap_or(text)
}

/// Parses a frame: `main+31`, `7f12ab34 main+31 (/bin/app)`, `main+0x1f [app]`, or an address.
fn location(text: &str, profile: &mut ImportedProfile) -> ImportId {
    let text = plain(text);
    let text = match text.split_once(' ') {
        Some((first, rest)) if first.len() >= ADDRESS_DIGITS && hex(first).is_some() => rest.trim(),
        _ => text,
    };
    let (symbol, module) = match split_module(text) {
        (symbol, Some(module)) if !symbol.is_empty() => (symbol, module),
        _ => match text.strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")) {
            Some((symbol, module)) => (symbol, module),
            None => (text, ""),
        },
    };
    let module = if module == "unknown" { "" } else { module };
    let marked = symbol.strip_suffix("_[k]");
    let symbol = marked.unwrap_or(symbol);
    let name = match symbol.rsplit_once('+') {
        Some((name, offset)) if is_digits(offset) || offset.starts_with("0x") => name,
        _ => symbol,
    };
    let address = hex(name).filter(|_| name.starts_with("0x") || name.len() >= ADDRESS_DIGITS);
    let is_nameless = address.is_some() || name == "[unknown]";
    let name = if is_nameless { 0 } else { profile.text(name) };
    let text = profile.text(if module == "kernel" { "" } else { module });
    profile.plain_location(ImportedCall {
        name,
        module: text,
        address: address.unwrap_or(0),
        is_kernel: marked.is_some() || module == "kernel" || is_kernel(module),
        ..ImportedCall::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns each sample as `event comm pid: functions, innermost first: value`.
    fn imported(text: &str) -> (Vec<String>, ImportedProfile) {
        assert!(is_format(text.as_bytes()), "{text}");
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        let name = |location: &ImportId| {
            let call = profile.calls[profile.locations[*location as usize][0] as usize];
            profile.get_text(call.name).to_string()
        };
        let row = |sample: &ImportedSample| {
            let thread = &profile.threads[sample.thread as usize];
            let stack: Vec<String> = profile.stacks[sample.stack as usize].iter().map(name).collect();
            let event = &profile.events[sample.event as usize].name;
            format!(
                "{event} {} {}: {}: {}",
                profile.get_text(thread.comm),
                thread.pid,
                stack.join(" "),
                sample.value
            )
        };
        (profile.samples.iter().map(row).collect(), profile)
    }

    #[test]
    fn maps_of_bpftrace_are_read() {
        let text = "Attaching 2 probes...\n\n@n: 7\n@off[app, 12, \n    ffffffff81000010 vfs_read+1 ([kernel.kallsyms])\n\
                    ,\n    operator+(A, B)+8\n    0x7f12ab340010\n]: 12\n@[\n    main+12\n, io]: 30\n@[\n]: 4\n\
                    @on[\n    main+12\n]: count 3, average 5, total 15\n@[\n    cut+1\n";
        let (rows, profile) = imported(text);
        assert_eq!(
            rows,
            ["off app 12: vfs_read operator+(A, B) : 12", "samples io 1: main: 30", "on  1: main: 15"]
        );
        assert!(profile.calls.iter().any(|call| call.is_kernel));
        let skipped: Vec<String> = profile.needless().map(ToString::to_string).collect();
        assert!(skipped[0].starts_with("line 3: this map has no stacks"), "{skipped:?}");
        assert!(skipped[1].starts_with("line 14: this value has no stack"), "{skipped:?}");
        assert!(profile.lost().unwrap().to_string().starts_with("line 18: the stack that begins here"));
    }

    #[test]
    fn blocks_of_bcc_are_read() {
        let text = "Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.\n^C\n    \
                    b'do_idle'\n    --\n    main\n    -                my app (13)\n        5\n\n    [unknown]\n    \
                    -                x (7)\n        1\n";
        assert_eq!(imported(text).0, ["samples my app 13: do_idle main: 5", "samples x 7: : 1"]);
        let times = text.replace("Sampling at 49 Hertz", "Tracing off-CPU time (us)");
        assert!(imported(&times).0[0].ends_with("do_idle main: 5000"));
        let counted = "Tracing 1 functions for \"ip_output\"... Hit Ctrl-C to end.\n\n  ip_output+0x1 [kernel]\n  main\n    \
                       app [9]\n    17\n";
        assert_eq!(imported(counted).0, ["samples app 9: ip_output main: 17"]);
        for other in ["a:\n  b\n  12\n", "list\n  12\n", "@param x\n  y\n", "    one\n"] {
            assert!(!is_format(other.as_bytes()), "{other}");
        }
    }
}
