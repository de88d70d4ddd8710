//! The text that `perf script`, `pmc script` and simpleperf's `report_sample.py` print.
//!
//! ```text
//!   grep  4100/4101 [002] 12.345678:  250000 cycles:u:    comm, pid/tid or tid, CPU, time, period, event
//!           55d0c1a01135 parse_line+0x15 (/usr/bin/grep)  address, function, module: innermost first
//!           55d0c1a02000 main+0x20 (inlined)
//!     main.c:30                                           source line, with -F +srcline
//!    insn: 48 3d e8 03                                    instruction bytes, with -F +insn
//!                                                         an empty line ends the sample
//!   grep  4100  12.345678:  cycles:u:   55d0c1a01135 parse_line+0x15 (/usr/bin/grep)    without a call chain
//! ```
//!
//! All fields are optional, because `-F` selects them. A line with fewer than two of thread, time and event
//! is taken for a sample only if a frame follows. Without any field, an empty line precedes each stack.

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample};
use super::text::{file_and_line, head_lines, hex, is_digits, is_kernel, lines, split_module};

/// Largest ID of a thread. A larger number is a period.
const LARGEST_TID: i32 = 1 << 22;
/// Width of an address in a frame, which follows a tab or a blank.
const ADDRESS_WIDTH: usize = 16;
/// Width of a period, which follows a blank. Threads' IDs are narrower.
const PERIOD_WIDTH: usize = 10;
/// Fields at the end of a line that pmc does not import: the instruction at the address, and its length.
const INSTRUCTION_FIELDS: [&str; 2] = [" ilen: ", " insn: "];

/// Whether most lines are parts of samples.
pub(super) fn is_format(head: &[u8]) -> bool {
    let lines: Vec<_> = head_lines(head).take(1000).collect();
    let (mut parts, mut odd, mut is_open) = (0usize, 0usize, false);
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).map_or("", |line| line);
        match ScriptLine::parse(line, next, is_open) {
            ScriptLine::Header(_) | ScriptLine::Frame(_) | ScriptLine::OtherRecord => {
                parts += 1;
                is_open = true;
            }
            ScriptLine::Odd => odd += 1,
            ScriptLine::Blank => is_open = false,
            ScriptLine::Comment | ScriptLine::Source(_) | ScriptLine::Field => {}
        }
    }
    parts > 0 && odd * 4 <= parts || parts > 1 && odd == 1
}

/// A line of the text.
enum ScriptLine<'a> {
    Blank,
    Comment,
    /// A record other than a sample, which `--show-mmap-events` and similar options add.
    OtherRecord,
    Header(SampleHeader<'a>),
    Frame(ScriptFrame<'a>),
    /// The source line of the last frame, if it is known.
    Source(Option<(&'a str, u32)>),
    /// A field that pmc does not import.
    Field,
    Odd,
}

impl<'a> ScriptLine<'a> {
    /// `next` is the following line. `is_open` says whether the lines before belong to a sample that an empty
    /// line has not ended.
    fn parse(line: &'a str, next: &str, is_open: bool) -> Self {
        if line.trim().is_empty() {
            return Self::Blank;
        }
        if line.contains(" PERF_RECORD_") {
            return Self::OtherRecord;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let line = without_instruction(line);
        if line.trim().is_empty() {
            return if is_open { Self::Field } else { Self::Odd };
        }
        let frame = ScriptFrame::parse(line);
        if line.starts_with('\t')
            && let Some(frame) = frame
            && (is_open || is_perf_frame(line))
        {
            return Self::Frame(frame);
        }
        let is_before_frame = is_perf_frame(next);
        let header = SampleHeader::parse(line, is_before_frame);
        // The name of a thread may begin like a comment.
        let is_comment = line.starts_with('#');
        let is_sample = |header: &SampleHeader<'_>| {
            header.fields() >= 2 && (!is_comment || header.ids.is_some() && header.time.is_some())
        };
        match header {
            Some(header)
                if is_sample(&header) || is_before_frame && !(is_open && is_indented) || header.is_flat() =>
            {
                return Self::Header(header);
            }
            _ if is_comment => return Self::Comment,
            _ => {}
        }
        let is_frame = |frame: &ScriptFrame<'_>| match is_open && is_indented {
            true => frame.has_module() || frame.has_long_address(),
            false => frame.has_long_address() && (frame.has_module() || is_flat_frame(line)),
        };
        if let Some(frame) = frame.filter(is_frame) {
            return Self::Frame(frame);
        }
        let text = line.trim();
        match file_and_line(text) {
            Some((_, 0)) if is_open && is_indented => Self::Source(None),
            Some(source) if is_open && is_indented => Self::Source(Some(source)),
            // perf prints the address of code without a source line.
            None if is_open
                && is_indented
                && (is_address_in_file(text) || text.starts_with("??:") || text == ":0") =>
            {
                Self::Source(None)
            }
            _ => match header {
                Some(header)
                    if header.time.is_some()
                        || ScriptFrame::parse(header.rest).is_some_and(|frame| frame.has_long_address()) =>
                {
                    Self::Header(header)
                }
                // perf writes fields behind blanks, and only frames behind a tab.
                _ if is_open && line.starts_with(' ') => Self::Field,
                _ => Self::Odd,
            },
        }
    }
}

/// Whether perf may have printed this line as a frame of a call chain.
fn is_perf_frame(line: &str) -> bool {
    let Some(inside) = line.strip_prefix('\t') else { return false };
    let address = inside.trim_start().split(' ').next().unwrap_or_default();
    let end = inside.len() - inside.trim_start().len() + address.len();
    hex(address).is_some() && (end >= ADDRESS_WIDTH || inside.trim_end().ends_with(')'))
}

/// Whether perf may have printed this line as the only frame of a sample without other fields: an aligned
/// address behind blanks.
fn is_flat_frame(line: &str) -> bool {
    let inside = line.trim_start_matches(' ');
    let address = inside.split(' ').next().unwrap_or_default();
    let start = line.len() - inside.len();
    start > 0 && start + address.len() > ADDRESS_WIDTH && hex(address).is_some()
}

/// Removes the instruction and its length from the end of a line.
fn without_instruction(line: &str) -> &str {
    let starts = INSTRUCTION_FIELDS.iter().filter_map(|field| line.find(field));
    starts.min().map_or(line, |start| &line[..start])
}

/// Whether the text has the form `libc.so.6[29d90]`.
fn is_address_in_file(text: &str) -> bool {
    text.strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['))
        .is_some_and(|(_, inside)| hex(inside).is_some())
}

/// The first line of a sample.
#[derive(Debug, PartialEq)]
struct SampleHeader<'a> {
    /// Empty if it is missing.
    comm: &'a str,
    /// IDs of the process and the thread.
    ids: Option<(i32, i32)>,
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
    /// Parses all fields that the line has. Returns `None` if it has none. If a frame follows in the next
    /// line, this line has none.
    fn parse(line: &'a str, is_before_frame: bool) -> Option<Self> {
        let words: Vec<LineWord<'a>> = words(line).collect();
        let time_at = words.iter().position(|(word, _)| parse_time(word).is_some());
        let first_event = || {
            let event = (1..words.len()).find(|at| event_len(&words[*at..]) > 0);
            event.or_else(|| (event_len(&words) > 0).then_some(0))
        };
        // Without a time, the fields end before the event. Without both, they end before a frame.
        let frame = || frame_at(line, &words).filter(|_| !is_before_frame);
        let fields_end = time_at.or_else(first_event).or_else(frame).unwrap_or(words.len());
        let mut fields = &words[..fields_end];
        let (mut cpu, mut period, mut ids) = (None, None, None);
        // Flags such as `d..2.` follow the CPU, and the mode of the CPU (-F +misc) follows the fields.
        if let [rest @ .., (flags, _)] = fields
            && let Some((before, _)) = rest.last()
            && (is_flags(flags) && parse_cpu(before).is_some()
                || is_mode(flags) && (parse_cpu(before).is_some() || parse_ids(before).is_some()))
        {
            fields = rest;
        }
        if let [rest @ .., (word, _)] = fields
            && let Some(number) = parse_cpu(word)
        {
            (fields, cpu) = (rest, Some(number));
        }
        if time_at.is_none()
            && let [rest @ .., (number, _)] = fields
            && is_digits(number)
        {
            let is_after_ids = rest.last().is_some_and(|(word, _)| parse_ids(word).is_some());
            let before = rest.last().map_or(0, |(_, end)| *end);
            let is_wide = fields[fields.len() - 1].1 - before >= PERIOD_WIDTH;
            let is_too_large = parse_ids(number).is_none_or(|(_, tid)| tid > LARGEST_TID);
            // The name of a thread may be a number, if blanks do not align the first number.
            let has_name = rest.len() > 1 || line.starts_with(' ');
            if is_wide || is_too_large || is_after_ids && has_name {
                (fields, period) = (rest, number.parse().ok());
            }
        }
        if let [rest @ .., (word, _)] = fields
            && let Some(found) = parse_ids(word)
        {
            (fields, ids) = (rest, Some(found));
        }
        let comm = fields.last().map_or("", |(_, end)| line[..*end].trim());
        let mut at = time_at.map_or(fields_end, |at| at + 1);
        let end_of = |at: usize| at.checked_sub(1).map_or(0, |at| words[at].1);
        if period.is_none()
            && let Some((word, end)) = words.get(at).filter(|(word, _)| is_digits(word) && time_at.is_some())
            && (event_len(&words[at + 1..]) > 0
                || at + 1 == words.len()
                || frame_at(&line[*end..], &words[at + 1..]) == Some(0))
        {
            period = word.parse().ok();
            at += 1;
        }
        let mut event = None;
        let len = event_len(&words[at..]);
        if len > 0 {
            let start = words[at].1 - words[at].0.len();
            at += len;
            event = Some(line[start..end_of(at)].trim_end_matches(':'));
        }
        let time = time_at.and_then(|at| parse_time(words[at].0));
        let rest = line[end_of(at)..].trim();
        let header = Self { comm, ids, cpu, time, period, event, rest };
        (!comm.is_empty() || header.fields() > 0 || period.is_some() || cpu.is_some()).then_some(header)
    }

    /// Whether a frame follows a single field: the name or the ID of a thread, or a period.
    fn is_flat(&self) -> bool {
        let has_field = self.period.is_some() || self.ids.is_some() || !self.comm.is_empty();
        has_field && ScriptFrame::parse(self.rest).is_some_and(|frame| frame.has_long_address())
    }

    /// Returns how many of thread, time and event the line has.
    fn fields(&self) -> usize {
        [self.ids.is_some(), self.time.is_some(), self.event.is_some()].into_iter().filter(|is| *is).count()
    }
}

fn words(line: &str) -> impl Iterator<Item = LineWord<'_>> {
    line.split_ascii_whitespace()
        .map(|word| (word, word.as_ptr() as usize - line.as_ptr() as usize + word.len()))
}

/// Returns the number of words of the event with which the words start. pmc's names of events may end with a
/// unit: `cpu (nanoseconds):`.
fn event_len(words: &[LineWord<'_>]) -> usize {
    match words {
        [(word, _), ..] if is_event(word) => 1,
        [(name, _), (unit, _), ..]
            if unit.starts_with('(')
                && unit.ends_with("):")
                && !is_digits(name)
                && parse_time(name).is_none() =>
        {
            2
        }
        _ => 0,
    }
}

/// Returns the index of the word that is the address of a frame. perf aligns addresses to the right.
fn frame_at(line: &str, words: &[LineWord<'_>]) -> Option<usize> {
    let is_address = |(word, _): &LineWord<'_>| {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        word.len() >= 4 && hex(word).is_some() && line[..start].ends_with("  ")
    };
    words.iter().rposition(is_address)
}

fn is_flags(word: &str) -> bool {
    word.contains('.') && !word.contains('/')
}

/// Whether the word shows the mode of the CPU and its like, as `-F +misc` prints them.
fn is_mode(word: &str) -> bool {
    word.len() <= 3
        && word.starts_with(['K', 'U', 'H', 'G', 'g', 'E', 'M', 'S'])
        && word.bytes().all(|byte| b"KUHGgEMSp".contains(&byte))
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
#[derive(Debug, PartialEq, Clone, Copy, Default)]
struct ScriptFrame<'a> {
    name: &'a str,
    module: &'a str,
    /// Address in the process, and the number of its digits.
    ip: Option<(u64, usize)>,
    /// Address in the module, if known.
    address: u64,
    is_kernel: bool,
    is_inlined: bool,
}

impl<'a> ScriptFrame<'a> {
    /// Parses `55d0c1a01135 parse_line+0x15 (/usr/bin/grep)`. Some versions of perf print no address for
    /// inlined functions.
    fn parse(line: &'a str) -> Option<Self> {
        let is_aligned = is_perf_frame(line);
        let line = line.trim();
        let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let (ip, text) = match hex(first) {
            Some(ip) if first.len() >= 4 || !rest.is_empty() || first == "0" || is_aligned => {
                (Some((ip, first.len())), rest.trim())
            }
            _ => (None, line),
        };
        let (symbol, module) = match split_module(text) {
            // Without the module, a name in parentheses is a name: `(garbage collector)`.
            ("", Some(module))
                if ip.is_some() && !module.starts_with(['/', '[']) && !module.contains('.') =>
            {
                (text, None)
            }
            split => split,
        };
        let is_inlined = module == Some("inlined");
        if ip.is_none() && !is_inlined && module.is_none() {
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
        let name = match symbol.rsplit_once("+0x") {
            Some((name, offset)) if hex(offset).is_some() => name,
            _ => symbol,
        };
        let name = if name == "[unknown]" { "" } else { name };
        // With -F ip, the address is all that is known.
        let address = ip.filter(|_| text.is_empty()).map_or(address, |(ip, _)| ip);
        Some(Self { name, module, ip, address, is_kernel, is_inlined })
    }

    /// Whether the address is not a short word that is accidentally a hexadecimal number.
    fn has_long_address(&self) -> bool {
        self.ip.is_some_and(|(_, digits)| digits >= 4)
    }

    fn has_module(&self) -> bool {
        !self.module.is_empty() || self.is_inlined
    }
}

/// The sample whose frames are being read.
struct OpenSample {
    sample: ImportedSample,
    /// Calls of the current location, and the finished locations.
    calls: Vec<ImportId>,
    locations: Vec<ImportId>,
    /// Address of the calls of the current location, if known.
    ip: Option<u64>,
    /// The last call, whose source line may follow.
    last: Option<ImportedCall>,
}

impl OpenSample {
    fn new(header: &SampleHeader<'_>, profile: &mut ImportedProfile) -> Result<Self, ImportError> {
        let event = profile.event(header.event.unwrap_or("samples"), "")?;
        let thread = match header.ids {
            Some((pid, tid)) => profile.thread(pid, tid, header.comm)?,
            None => profile.named_thread(header.comm)?,
        };
        let value = header.period.unwrap_or(1);
        let (cpu, time) = (header.cpu, header.time);
        let sample = ImportedSample { event, thread, cpu, time, value, stack: 0, samples: 1 };
        Ok(Self { sample, calls: Vec::new(), locations: Vec::new(), ip: None, last: None })
    }

    fn add(&mut self, profile: &mut ImportedProfile, frame: &ScriptFrame<'_>) {
        let ip = frame.ip.map(|(ip, _)| ip);
        // A function is inlined into the next one only at the same address. perf also calls a second symbol
        // of a function inlined.
        if let (Some(open), Some(ip)) = (self.ip, ip)
            && open != ip
        {
            self.close(profile);
        }
        let module = if frame.module == "[unknown]" { "" } else { frame.module };
        // A caller where nothing was mapped is no caller. pmc drops these in recordings too.
        if frame.name.is_empty() && module.is_empty() && frame.address == 0 && !self.locations.is_empty() {
            return;
        }
        let call = ImportedCall {
            name: profile.text(frame.name),
            module: profile.text(module),
            address: if frame.name.is_empty() { frame.address } else { 0 },
            is_kernel: frame.is_kernel,
            ..ImportedCall::default()
        };
        self.calls.push(profile.call(call));
        self.last = Some(call);
        self.ip = self.ip.or(ip);
        if !frame.is_inlined {
            self.close(profile);
        }
    }

    fn close(&mut self, profile: &mut ImportedProfile) {
        self.ip = None;
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

/// A header without fields.
const NO_HEADER: SampleHeader<'_> =
    SampleHeader { comm: "", ids: None, cpu: None, time: None, period: None, event: None, rest: "" };

pub(super) fn read(bytes: &[u8], mut profile: ImportedProfile) -> Result<ImportedProfile, ImportError> {
    // Without blank lines, each frame without a header is a sample.
    let has_blank_lines = lines(bytes.trim_ascii_end()).any(|(_, line)| line.trim().is_empty());
    let mut has_headers = false;
    let mut open: Option<OpenSample> = None;
    let mut lines = lines(bytes).peekable();
    while let Some((number, line)) = lines.next() {
        let next = lines.peek().map_or("", |(_, line)| line);
        match ScriptLine::parse(&line, next, open.is_some()) {
            ScriptLine::Comment => {}
            ScriptLine::Blank | ScriptLine::OtherRecord => {
                if let Some(sample) = open.take() {
                    sample.finish(&mut profile)?;
                }
            }
            ScriptLine::Header(header) => {
                if let Some(sample) = open.take() {
                    sample.finish(&mut profile)?;
                }
                has_headers = true;
                let sample = open.insert(OpenSample::new(&header, &mut profile)?);
                if let Some(frame) = ScriptFrame::parse(header.rest).filter(|_| !header.rest.is_empty()) {
                    sample.add(&mut profile, &frame);
                }
            }
            ScriptLine::Frame(frame) => {
                if !has_blank_lines
                    && !has_headers
                    && let Some(sample) = open.take()
                {
                    sample.finish(&mut profile)?;
                }
                let sample = match &mut open {
                    Some(sample) => sample,
                    None if has_headers => {
                        profile.lose(ImportError::line(number, "this frame belongs to no sample"))?;
                        continue;
                    }
                    None => open.insert(OpenSample::new(&NO_HEADER, &mut profile)?),
                };
                sample.add(&mut profile, &frame);
            }
            ScriptLine::Source(source) => {
                if let (Some(sample), Some((file, line))) = (&mut open, source) {
                    sample.set_line(&mut profile, file, line);
                }
            }
            ScriptLine::Field => {
                profile.skip("pmc does not import this field", |what| ImportError::line(number, what));
            }
            ScriptLine::Odd => {
                let what = "a sample must begin with a thread's name and ID, a time or an event, and a frame with \
                            an address";
                profile.lose(ImportError::line(number, what))?;
            }
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
        let parsed = |line| SampleHeader::parse(line, false).unwrap_or_else(|| panic!("{line}"));
        let full = parsed("grep me  4100/4101 [002] 12.345678:     250000 cycles:u: ");
        assert_eq!((full.comm, full.ids, full.cpu), ("grep me", Some((4100, 4101)), Some(2)));
        assert_eq!(
            (full.time, full.period, full.event),
            (Some(12_345_678_000), Some(250_000), Some("cycles:u"))
        );
        let old = parsed("java 25607 4794564.109216: cycles:");
        assert_eq!(
            (old.ids, old.cpu, old.period, old.event),
            (Some((25607, 25607)), None, None, Some("cycles"))
        );
        let no_time = parsed("perf 12 cpu-clock:");
        assert_eq!((no_time.comm, no_time.ids, no_time.time), ("perf", Some((12, 12)), None));
        let flags = parsed("sh 5 [001] d..2. 1.5: sched:sched_switch: prev_comm=sh prev_pid=5");
        assert_eq!(
            (flags.cpu, flags.event, flags.rest),
            (Some(1), Some("sched:sched_switch"), "prev_comm=sh prev_pid=5")
        );
        let single = parsed("swapper 0 [000] 1.000001:  7 cycles:  ffffffff81 foo+0x4 ([kernel.kallsyms])");
        assert_eq!(single.rest, "ffffffff81 foo+0x4 ([kernel.kallsyms])");
        for bad in ["hello", "a;b 1", "events: Ir", "fn=(1) main", "name: value"] {
            assert!(SampleHeader::parse(bad, false).is_none_or(|header| header.fields() < 2), "{bad}");
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
        let odd = read(b"grep 7 1.5: cycles:\n\t4010 a (b)\n\nwhat\n", ImportedProfile::new()).unwrap();
        assert!(odd.lost().unwrap().to_string().starts_with("line 4: "));
    }
}
