//! The text of macOS's `sample` command: a call tree with the number of samples of each function.
//!
//! ```text
//!   Call graph:
//!       2531 Thread_74   DispatchQueue_1: com.apple.main-thread  (serial)
//!       + 2531 start  (in libdyld.dylib) + 1  [0x7fff6b]
//!       +   2500 main  (in app) + 12  [0x10a4]  main.c:12
//!       +   ! 31 read  (in libsystem_kernel.dylib) + 10  [0x7fff7c]
//!                                                        an empty line ends the tree
//! ```

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, MOST_FRAMES};
use super::text::{file_and_line, head_lines, lines, rust_name};

/// The line before the tree.
const START: &str = "Call graph:";

pub(super) fn is_format(head: &[u8]) -> bool {
    let mut lines = head_lines(head).filter(|line| !line.trim().is_empty());
    lines.next().is_some_and(|line| line.starts_with("Analysis of sampling ") || line.trim_end() == START)
}

/// A function whose callees follow.
struct TreeNode {
    /// Column of its count.
    column: usize,
    location: Option<ImportId>,
    thread: ImportId,
    /// Samples that no callee has received.
    rest: u64,
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let event = profile.event("samples", "")?;
    let mut lines = lines(bytes).skip_while(|(_, line)| !line.trim_end().ends_with(START));
    if lines.next().is_none() {
        return Err(ImportError::file("it has no line \"Call graph:\""));
    }
    let mut open: Vec<TreeNode> = Vec::new();
    for (number, line) in lines {
        if line.trim().is_empty() {
            break;
        }
        let text = line.trim_start_matches([' ', '+', '!', ':', '|', '\t']);
        let column = line.len() - text.len();
        let invalid = |what: &str| ImportError::line(number, what);
        let Some((count, text)) =
            text.split_once(' ').and_then(|(count, text)| Some((count.parse::<u64>().ok()?, text)))
        else {
            profile
                .lose(invalid("a line of the call graph must begin with a number of samples and a name"))?;
            continue;
        };
        while open.last().is_some_and(|node| node.column >= column) {
            finish(&mut open, event, &mut profile)?;
        }
        if open.len() > MOST_FRAMES {
            return Err(invalid("the call graph is too deep"));
        }
        let node = match open.last_mut() {
            None => TreeNode { column, location: None, thread: add_thread(text, &mut profile)?, rest: count },
            Some(caller) => {
                let Some(rest) = caller.rest.checked_sub(count) else {
                    let what = "a function has fewer samples than the functions that it calls";
                    profile.lose(invalid(what))?;
                    continue;
                };
                caller.rest = rest;
                let thread = caller.thread;
                TreeNode { column, location: Some(location(text, &mut profile)), thread, rest: count }
            }
        };
        open.push(node);
    }
    while !open.is_empty() {
        finish(&mut open, event, &mut profile)?;
    }
    Ok(profile)
}

/// Adds the samples of the innermost open function itself.
fn finish(
    open: &mut Vec<TreeNode>,
    event: ImportId,
    profile: &mut ImportedProfile,
) -> Result<(), ImportError> {
    let locations: Vec<ImportId> = open.iter().rev().filter_map(|node| node.location).collect();
    let Some(TreeNode { thread, rest, .. }) = open.pop().filter(|node| node.rest > 0) else { return Ok(()) };
    let stack = profile.stack(&locations)?;
    profile.add(ImportedSample {
        event,
        stack,
        thread,
        samples: rest,
        value: rest,
        ..ImportedSample::default()
    })
}

/// Adds a thread: `Thread_74   DispatchQueue_1: com.apple.main-thread  (serial)` or `Thread_75: name`.
fn add_thread(text: &str, profile: &mut ImportedProfile) -> Result<ImportId, ImportError> {
    let (start, rest) = text.split_once([' ', ':']).unwrap_or((text, ""));
    let name = rest.trim_start_matches([':', ' ']).split("  ").next().unwrap_or_default();
    let name = name.split_once(": ").map_or(name, |(_, name)| name);
    let tid = start.strip_prefix("Thread_").and_then(|digits| digits.parse().ok());
    match tid {
        Some(tid) => profile.thread(1, tid, if name.is_empty() { start } else { name }),
        None => profile.named_thread(text),
    }
}

/// Parses `name  (in module) + 12  [0x10a4]  main.c:12`.
fn location(text: &str, profile: &mut ImportedProfile) -> ImportId {
    let (name, rest) = text.split_once("  (in ").unwrap_or((text, ""));
    let (module, rest) = rest.split_once(')').unwrap_or((rest, ""));
    let position = rest.rsplit_once("  ").and_then(|(_, last)| file_and_line(last.trim()));
    let (file, line) = position.unwrap_or_default();
    let name = if name.trim() == "???" { "" } else { name };
    let call = ImportedCall {
        name: profile.text(&rust_name(name)),
        module: profile.text(module),
        file: profile.text(file),
        line,
        ..ImportedCall::default()
    };
    profile.plain_location(call)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "Analysis of sampling app (pid 9) every 1 millisecond\n\nCall graph:\n    \
        100 Thread_74   DispatchQueue_1: com.apple.main-thread  (serial)\n    \
        + 100 start  (in libdyld.dylib) + 1  [0x7fff6b]\n    \
        +   90 main  (in app) + 12  [0x10a4]  main.c:12\n    \
        +   ! 31 read  (in libsystem_kernel.dylib) + 10  [0x7fff7c]\n    \
        5 Thread_75: worker\n      5 ???  (in app)  load address 0x1\n\nTotal number in stack\n";

    #[test]
    fn own_samples_are_those_without_callees() {
        assert!(is_format(EXAMPLE.as_bytes()));
        let profile = read(EXAMPLE.as_bytes(), ImportedProfile::new()).unwrap();
        let counts: Vec<(u64, usize)> = profile
            .samples
            .iter()
            .map(|sample| (sample.samples, profile.stacks[sample.stack as usize].len()))
            .collect();
        assert_eq!(counts, [(31, 3), (59, 2), (10, 1), (5, 1)]);
        let threads: Vec<_> = profile
            .threads
            .iter()
            .map(|thread| (thread.tid, profile.get_text(thread.comm).to_string()))
            .collect();
        assert_eq!(threads, [(74, "com.apple.main-thread".to_owned()), (75, "worker".to_owned())]);
    }

    #[test]
    fn bad_lines_are_reported_with_their_number() {
        let read = |text: &str| read(text.as_bytes(), ImportedProfile::new());
        let lost = |text: &str| read(text).unwrap().lost().unwrap().to_string();
        assert!(lost("Call graph:\n  5 Thread_1\n    6 f  (in a)\n").starts_with("line 3: "));
        assert!(lost("Call graph:\n  x\n").starts_with("line 2: "));
        assert!(read("Analysis of sampling\n").unwrap_err().to_string().contains("Call graph"));
    }
}
