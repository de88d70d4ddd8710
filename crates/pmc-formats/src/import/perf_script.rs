//! The text that `perf script`, `pmc script` and simpleperf's `report_sample.py` print.
//!
//! ```text
//!   grep  4100/4101 [002] 12.345678:  250000 cycles:u:    comm, pid/tid or tid, CPU, time, period, event
//!           55d0c1a01135 parse_line+0x15 (/usr/bin/grep)  address, function, module: innermost first
//!           55d0c1a02000 main+0x20 (inlined)
//!     main.c:30                                           source line, with -F +srcline
//!                                                         an empty line ends the sample
//!   grep  4100  12.345678:  cycles:u:   55d0c1a01135 parse_line+0x15 (/usr/bin/grep)    without a call chain
//! ```
//!
//! All fields but the thread are optional, because `-F` selects them.

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{file_and_line, head_lines, hex, is_digits, lines};

pub(super) fn is_format(head: &[u8]) -> bool {
    let mut lines = head_lines(head).filter(|line| !is_ignored(line)).take(1000);
    let is_sample = |line: std::borrow::Cow<'_, str>| {
        (!line.starts_with([' ', '\t']))
            .then(|| is_other_record(&line) || SampleHeader::parse(&line).is_some())
    };
    // A single-line sample may start with spaces, which align the names of threads.
    let Some(first) = lines.next() else { return false };
    let is_first = is_other_record(&first) || SampleHeader::parse(first.trim_start()).is_some();
    is_first && lines.filter_map(is_sample).all(|is_sample| is_sample)
}

fn is_ignored(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// Whether the line shows a record other than a sample, which `--show-mmap-events` and similar options add.
fn is_other_record(line: &str) -> bool {
    line.contains(" PERF_RECORD_")
}

/// The first line of a sample.
#[derive(Debug, PartialEq)]
struct SampleHeader<'a> {
    comm: &'a str,
    pid: i32,
    tid: i32,
    cpu: Option<u32>,
    time: Option<u64>,
    period: Option<u64>,
    event: Option<&'a str>,
    /// The text after the event: a frame, or the fields of a tracepoint.
    rest: &'a str,
}

/// A word and the offset of its end in the line.
type LineWord<'a> = (&'a str, usize);

impl<'a> SampleHeader<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<LineWord<'a>> = words(line).collect();
        let time_at = words.iter().position(|(word, _)| parse_time(word).is_some());
        let (fields, after) = match time_at {
            Some(at) => (&words[..at], at + 1),
            // Without a time, the fields end before the event.
            None => {
                let event = words.iter().skip(1).position(|(word, _)| is_event(word))? + 1;
                (&words[..event], event)
            }
        };
        let (mut fields, mut cpu, mut period) = (fields, None, None);
        // Flags such as `d..2.` follow the CPU.
        if let [rest @ .., (flags, _)] = fields
            && flags.contains('.')
            && !flags.bytes().any(|byte| byte == b'/')
            && rest.last().is_some_and(|(word, _)| parse_cpu(word).is_some())
        {
            fields = rest;
        }
        if let [rest @ .., (word, _)] = fields
            && let Some(number) = parse_cpu(word)
        {
            (fields, cpu) = (rest, Some(number));
        }
        if time_at.is_none()
            && let [rest @ .., (pid, _), (number, _)] = fields
            && parse_ids(pid).is_some()
            && !rest.is_empty()
            && is_digits(number)
        {
            period = number.parse().ok();
            fields = &fields[..fields.len() - 1];
        }
        let [comm @ .., (ids, _)] = fields else { return None };
        let (pid, tid) = parse_ids(ids)?;
        let (_, comm_end) = comm.last()?;
        let comm = line[..*comm_end].trim();
        let mut at = after;
        let mut end = match time_at {
            Some(time) => words[time].1,
            None => 0,
        };
        if let Some((word, word_end)) = words.get(at).filter(|(word, _)| is_digits(word))
            && words.get(at + 1).is_some_and(|(word, _)| is_event(word))
        {
            (period, end) = (word.parse().ok(), *word_end);
            at += 1;
        }
        let mut event = None;
        if let Some((word, word_end)) = words.get(at).filter(|(word, _)| is_event(word)) {
            (event, end) = (Some(word.trim_end_matches(':')), *word_end);
        }
        let time = time_at.and_then(|at| parse_time(words[at].0));
        Some(Self { comm, pid, tid, cpu, time, period, event, rest: line[end..].trim() })
    }
}

fn words(line: &str) -> impl Iterator<Item = LineWord<'_>> {
    line.split_ascii_whitespace()
        .map(|word| (word, word.as_ptr() as usize - line.as_ptr() as usize + word.len()))
}

/// Parses `12.345678:` in seconds; returns nanoseconds.
fn parse_time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    if !is_digits(seconds) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

fn parse_cpu(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('[')?.strip_suffix(']')?;
    if is_digits(digits) { digits.parse().ok() } else { None }
}

/// Parses `tid` or `pid/tid`. Without a process ID, the thread's ID also identifies its process.
fn parse_ids(word: &str) -> Option<(i32, i32)> {
    let number = |text: &str| -> Option<i32> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if is_digits(digits) { text.parse().ok() } else { None }
    };
    match word.split_once('/') {
        Some((pid, tid)) => Some((number(pid)?, number(tid)?)),
        None => number(word).map(|tid| (tid, tid)),
    }
}

fn is_event(word: &str) -> bool {
    word.len() > 1 && word.ends_with(':') && !word.starts_with(|c: char| c == ':' || c.is_ascii_digit())
}

/// A frame of a call chain.
#[derive(Debug, PartialEq, Default)]
struct ScriptFrame<'a> {
    name: &'a str,
    module: &'a str,
    /// Address in the module, if known.
    address: u64,
    is_kernel: bool,
    is_inlined: bool,
}

impl<'a> ScriptFrame<'a> {
    /// Parses `55d0c1a01135 parse_line+0x15 (/usr/bin/grep)`. perf prints no address for inlined functions.
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let (has_address, text) = match hex(first) {
            Some(_) if first.len() >= 4 || !rest.is_empty() || first == "0" => (true, rest.trim()),
            _ => (false, line),
        };
        let (symbol, module) = split_module(text);
        let is_inlined = module == Some("inlined");
        if !has_address && !is_inlined && module.is_none() {
            return None;
        }
        let module = module.filter(|_| !is_inlined).unwrap_or_default();
        // perf prints the offset in the module with -F +dsoff.
        let (module, address) = match module.rsplit_once("+0x") {
            Some((path, offset)) => match hex(offset) {
                Some(offset) => (path, offset),
                None => (module, 0),
            },
            None => (module, 0),
        };
        let is_kernel = is_kernel(module);
        let module = if module == "[unknown]" { "" } else { module };
        let name = match symbol.rsplit_once("+0x") {
            Some((name, offset)) if hex(offset).is_some() => name,
            _ => symbol,
        };
        let name = if name == "[unknown]" { "" } else { name };
        Some(Self { name, module, address, is_kernel, is_inlined })
    }
}

/// Whether the name is that of the kernel or one of its modules.
fn is_kernel(module: &str) -> bool {
    let others =
        ["[vdso]", "[vdso32]", "[vsyscall]", "[heap]", "[stack]", "[unknown]", "[uprobes]", "[vectors]"];
    let is_memory =
        module.starts_with("[anon") || module.starts_with("[stack:") || module.starts_with("[JIT");
    module.starts_with('[') && !others.contains(&module) && !is_memory
        || module.ends_with(".ko")
        || module.ends_with("/vmlinux")
}

/// Splits `name (module)`. Both may contain parentheses.
fn split_module(text: &str) -> (&str, Option<&str>) {
    let Some(inside) = text.strip_suffix(')') else { return (text, None) };
    let mut depth = 0usize;
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth > 0 => depth -= 1,
            b'(' if at == 0 || inside.as_bytes()[at - 1] == b' ' => {
                return (inside[..at].trim_end(), Some(&inside[at + 1..]));
            }
            b'(' => return (text, None),
            _ => {}
        }
    }
    (text, None)
}

/// The sample whose frames are being read.
struct OpenSample {
    sample: ImportedSample,
    /// Calls of the current location, and the finished locations.
    calls: Vec<ImportId>,
    locations: Vec<ImportId>,
    /// The last call, whose source line may follow.
    last: Option<ImportedCall>,
}

impl OpenSample {
    fn add(&mut self, profile: &mut ImportedProfile, frame: &ScriptFrame<'_>) {
        // A caller where nothing was mapped is no caller. pmc drops these in recordings too.
        if frame.name.is_empty() && frame.module.is_empty() && !self.locations.is_empty() {
            return;
        }
        let call = ImportedCall {
            name: profile.text(frame.name),
            module: profile.text(frame.module),
            address: if frame.name.is_empty() { frame.address } else { 0 },
            is_kernel: frame.is_kernel,
            ..ImportedCall::default()
        };
        self.calls.push(profile.call(call));
        self.last = Some(call);
        if !frame.is_inlined {
            self.close(profile);
        }
    }

    fn close(&mut self, profile: &mut ImportedProfile) {
        if !self.calls.is_empty() {
            self.locations.push(profile.location(&self.calls));
            self.calls.clear();
        }
    }

    /// Adds the source line of the last call.
    fn set_line(&mut self, profile: &mut ImportedProfile, file: &str, line: u32) {
        let Some(last) = self.last.take() else { return };
        let call = profile.text(file);
        let call = profile.call(ImportedCall { file: call, line, ..last });
        if let Some(open) = self.calls.last_mut() {
            *open = call;
        } else if let Some(location) = self.locations.pop() {
            let mut calls = profile.locations[location as usize].to_vec();
            if let Some(own) = calls.last_mut() {
                *own = call;
            }
            self.locations.push(profile.location(&calls));
        }
    }

    fn finish(mut self, profile: &mut ImportedProfile) -> Result<(), ImportError> {
        self.close(profile);
        let stack = profile.stack(&self.locations)?;
        profile.add(ImportedSample { stack, ..self.sample })
    }
}

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    let mut open: Option<OpenSample> = None;
    for (number, line) in lines(bytes) {
        if line.trim().is_empty() {
            if let Some(sample) = open.take() {
                sample.finish(&mut profile)?;
            }
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let is_indented = line.starts_with([' ', '\t']);
        if is_indented && let Some(sample) = &mut open {
            if let Some(frame) = ScriptFrame::parse(&line) {
                sample.add(&mut profile, &frame);
                continue;
            }
            if let Some((file, line)) = file_and_line(line.trim()) {
                sample.set_line(&mut profile, file, line);
                continue;
            }
        }
        if let Some(sample) = open.take() {
            sample.finish(&mut profile)?;
        }
        if is_other_record(&line) {
            continue;
        }
        let line = line.trim_start();
        let header = SampleHeader::parse(line).ok_or_else(|| match is_indented {
            true => ImportError::line(number, "neither a frame (address, function and module) nor a sample"),
            false => ImportError::line(
                number,
                "a sample must begin with a thread's name and ID, and a time or event",
            ),
        })?;
        let event = profile.event(header.event.unwrap_or("samples"), "")?;
        let thread = profile.thread(header.pid, header.tid, header.comm)?;
        let value = header.period.unwrap_or(1);
        let (cpu, time) = (header.cpu, header.time);
        let sample = ImportedSample { event, thread, cpu, time, value, stack: 0, samples: 1 };
        let mut sample = OpenSample { sample, calls: Vec::new(), locations: Vec::new(), last: None };
        match ScriptFrame::parse(header.rest) {
            Some(frame) if !header.rest.is_empty() => {
                sample.add(&mut profile, &frame);
                sample.finish(&mut profile)?;
            }
            _ => open = Some(sample),
        }
    }
    if let Some(sample) = open {
        sample.finish(&mut profile)?;
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_dialects_are_parsed() {
        let parsed = |line| SampleHeader::parse(line).unwrap_or_else(|| panic!("{line}"));
        let full = parsed("grep me  4100/4101 [002] 12.345678:     250000 cycles:u: ");
        assert_eq!((full.comm, full.pid, full.tid, full.cpu), ("grep me", 4100, 4101, Some(2)));
        assert_eq!(
            (full.time, full.period, full.event),
            (Some(12_345_678_000), Some(250_000), Some("cycles:u"))
        );
        let old = parsed("java 25607 4794564.109216: cycles:");
        assert_eq!((old.tid, old.cpu, old.period, old.event), (25607, None, None, Some("cycles")));
        let no_time = parsed("perf 12 cpu-clock:");
        assert_eq!((no_time.comm, no_time.tid, no_time.time), ("perf", 12, None));
        let flags = parsed("sh 5 [001] d..2. 1.5: sched:sched_switch: prev_comm=sh prev_pid=5");
        assert_eq!(
            (flags.cpu, flags.event, flags.rest),
            (Some(1), Some("sched:sched_switch"), "prev_comm=sh prev_pid=5")
        );
        let single = parsed("swapper 0 [000] 1.000001:  7 cycles:  ffffffff81 foo+0x4 ([kernel.kallsyms])");
        assert_eq!(single.rest, "ffffffff81 foo+0x4 ([kernel.kallsyms])");
        for bad in ["hello", "a;b 1", "events: Ir", "fn=(1) main", "name: value"] {
            assert_eq!(SampleHeader::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn frames_of_all_dialects_are_parsed() {
        let parsed = |line| ScriptFrame::parse(line).unwrap_or_else(|| panic!("{line}"));
        let frame = parsed("\t55d0 std::vec<(int)>::at(int, char (*)())+0x15 (/tmp/a b (deleted))");
        assert_eq!(
            (frame.name, frame.module),
            ("std::vec<(int)>::at(int, char (*)())", "/tmp/a b (deleted)")
        );
        let inlined = parsed(" 401136 foo (inlined)");
        assert!(inlined.is_inlined && inlined.name == "foo");
        assert!(parsed("  foo (inlined)").is_inlined);
        let unknown = parsed(" 7f12 [unknown] (/lib/x.so+0x12)");
        assert_eq!((unknown.name, unknown.module, unknown.address), ("", "/lib/x.so", 0x12));
        assert!(parsed(" ffffffff8100 do_idle+0x1 ([kernel.kallsyms])").is_kernel);
        assert!(!parsed(" 7fff0 [unknown] ([vdso])").is_kernel);
        assert_eq!(ScriptFrame::parse("  main.c:30"), None);
    }

    #[test]
    fn samples_keep_threads_times_and_lines() {
        let text = "# comment\n\ngrep 7 [001] 1.5: 10 cycles: \n\t 4010 inner (inlined)\n\t 4010 outer+0x1 (/bin/g)\n  \
                    a.c:3\n\t 4020 main+0x1 (/bin/g)\n\ngrep 7 [001] 2.5: 30 cycles: \n\t 4020 main+0x1 (/bin/g)\n";
        assert!(is_format(text.as_bytes()));
        let profile = read(text.as_bytes(), ImportedProfile::new()).unwrap();
        assert_eq!(profile.samples.iter().map(|sample| sample.value).collect::<Vec<_>>(), [10, 30]);
        assert_eq!(profile.samples[1].time, Some(2_500_000_000));
        let calls = &profile.locations[profile.stacks[0][0] as usize];
        assert_eq!(calls.len(), 2);
        assert_eq!(profile.calls[calls[1] as usize].line, 3);
        let error = read(b"grep 7 1.5: cycles:\n\t4010 a (b)\n\nwhat\n", ImportedProfile::new()).unwrap_err();
        assert!(error.to_string().starts_with("line 4: "));
    }
}
