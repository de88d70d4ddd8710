//! Recordings: perf.data as file, as pipe, packed and as directory, through the commands that read them.
//! `cargo test` includes this module too.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pmc_perfdata::perfdata::{Buffer, FeatureNumber, PerfdataError, Reader};
use pmc_perfdata::record::sample::chain_entries;
use pmc_perfdata::record::tracepoint::{KernelNames, Payload, TracingData};
use pmc_perfdata::record::unwound::{self, StrippedFields};
use pmc_perfdata::record::{Layouts, RawRecord, Record, Sample, kind};
use pmc_sys::error::Exit;

use super::in_process::{self, CommandResult, MemoryFile};

/// A whole recording, to compare with.
const WHOLE: &[u8] = include_bytes!("../corpus/recording/perf6-fp.data");

/// Reads all data of a recording with the library and returns the number of records.
///
/// # Errors
/// Fails if the file is not a recording or cannot be read.
pub fn read_all(path: &Path) -> Result<u64, PerfdataError> {
    let reader = Reader::open(path)?;
    let tracing = reader.features().tracing_data.as_ref().and_then(|data| TracingData::parse(&data.0));
    for &feature in FeatureNumber::ALL {
        let _ = reader.features().section(feature);
    }
    let index = reader.scan(|_| {})?;
    let mut buffer = Buffer::default();
    let mut records = 0;
    for chunk in &index.chunks {
        for raw in reader.load(chunk, &mut buffer)? {
            records += 1;
            match raw.parse() {
                Some(Record::CpuMap(map)) => drop(map.cpus()),
                Some(Record::IdIndex(rows)) => drop(rows.iter().count()),
                Some(Record::ThreadMap(rows)) => drop(rows.iter().count()),
                _ => {}
            }
            let _ = reader.layouts().sample_id(&raw);
            let Some((event, sample)) = reader.layouts().sample(&raw) else { continue };
            let _ =
                (sample.callchain().map(|chain| chain_entries(chain).count()), sample.time(), sample.cpu());
            let Some(parts) = sample.parts() else { continue };
            let _ = parts.read.map(|read| (read.iter().count(), read.enabled_ns(), read.running_ns()));
            let _ =
                parts.branches.map(|branches| branches.iter().map(|b| b.flags.kind().len()).sum::<usize>());
            let _ = parts.user_regs.map(|regs| (0..70).filter_map(|r| regs.get(r)).count());
            if let (Some(bytes), Some(tracing)) = (parts.raw, &tracing)
                && let Some(format) = tracing.format(reader.events()[event].attr.config())
            {
                let payload = Payload { bytes, is_byte_swapped: tracing.is_byte_swapped };
                format.print(payload, KernelNames::NONE, &mut String::new());
            }
        }
    }
    Ok(records)
}

/// What a plain walk over the records of an unpacked recording finds, without pmc's reader.
#[derive(Debug, PartialEq, Eq)]
pub struct Walk {
    /// Number of samples.
    pub samples: u64,
    /// Whether the records end before the place where the header says so, or inside a record.
    pub is_cut: bool,
}

/// Walks over the records. Returns `None` for recordings that are not as simple: packed, unfinished, of another
/// byte order, or by Android's simpleperf.
pub fn walk(input: &[u8]) -> Option<Walk> {
    let word = |at: usize| input.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word));
    if !input.starts_with(b"PERFILE2") {
        return None;
    }
    let is_pipe = word(8)? == 16;
    let (mut at, end) = match is_pipe {
        true => (16, input.len() as u64),
        false => (word(40)?, word(40)?.checked_add(word(48)?)?),
    };
    if !is_pipe && (at < 104 || word(48)? == 0 || (72..104).step_by(8).all(|at| word(at) == Some(0))) {
        return None;
    }
    let mut walk = Walk { samples: 0, is_cut: end > input.len() as u64 };
    while at < end {
        let header = usize::try_from(at).ok().and_then(word);
        let (kind, size) = header.map_or((0, 0), |header| (header as u32, header >> 48));
        if size < 8 || size > end - at || size > (input.len() as u64).saturating_sub(at) {
            walk.is_cut = true;
            break;
        }
        if matches!(
            kind,
            kind::COMPRESSED | kind::COMPRESSED2 | kind::FIRST_SIMPLEPERF
                ..=kind::LAST_SIMPLEPERF | kind::HEADER_TRACING_DATA | kind::AUXTRACE
        ) {
            return None;
        }
        walk.samples += u64::from(kind == kind::SAMPLE);
        at += size;
    }
    Some(walk)
}

/// Command lines that read a recording: `-i FILE` and the options of [`QUIET`] follow.
pub struct CommandLines {
    /// The words, of which an input takes one line.
    pub lines: &'static [&'static str],
    /// Whether they read all samples, so that a damaged recording gives a failure.
    pub reads_all: bool,
    /// Whether they look up symbols, and have the options for it.
    pub has_symbols: bool,
    /// Whether they print text, which must not contain control characters.
    pub is_text: bool,
}

/// Options that keep the machine's files out of it, except debug files (`/usr/lib/debug`) and files of the
/// build-id cache with a build-id of the recording. Seeds therefore come from other machines.
const QUIET: &str = "--symfs /nonexistent --no-cache --no-debuginfod";

/// `pmc report`.
pub const REPORT: CommandLines = CommandLines {
    lines: &[
        "report --stdio",
        "report --json --children -g -n",
        "report --csv -n -s pid,comm,dso,sym,cpu,time",
        "report --stdio -H -s comm,dso,sym --header -T --show-total-period",
        "report --stdio --tree --no-inline",
        "report --stdio -G --group --idle",
        "report --stdio -b",
        "report --stdio --mem-mode",
        "report --stdio --latency --parallelism 1-4",
        "report --csv -s trace,srcline,srcfile,symoff,dso_size,weight,socket,addr,transaction,cgroup,cgroup_id",
        "report --csv -s op,cache,memory,dtlb,snoop,blocked,locked,mem,tlb,local_weight,code_page_size,data_page_size,\
         dcacheline,phys_daddr,symbol_daddr,dso_daddr,symbol_iaddr,ins_lat,local_ins_lat,p_stage_cyc",
        "report --stdio -s dso_from,dso_to,symbol_from,symbol_to,addr_from,addr_to,cycles,mispredict,in_tx,abort,srcline_to",
        "report --stdio --stitch-lbr",
        "report --stdio --idle -s comm,state,wait_site,waker,ran_instead",
        "report --stdio --state waiting,running",
        "report --stats",
        "report --mmaps",
        "report --tasks",
        "report -D",
    ],
    reads_all: true,
    has_symbols: true,
    is_text: true,
};

/// `pmc script`.
pub const SCRIPT: CommandLines = CommandLines {
    lines: &[
        "script",
        "script --json",
        "script -F comm,tid",
        "script -F +brstack,+brstacksym,+iregs,+uregs,+weight,+data_src,+phys_addr,+bpf-output",
        "script -F +brstackinsn,+srcline,+insn,+period,+addr,+code_page_size",
        "script --show-task-events --show-mmap-events --show-switch-events --show-lost-events \
         --show-namespace-events --show-cgroup-events --show-bpf-events --show-text-poke-events \
         --show-round-events --header",
        "script -D",
        "script --dump-unsorted-raw-trace --deltatime",
        "script --time 10%-60% --stitch-lbr --ns",
        "script -F comm,ip,brstackoff,brstackdisasm,disasm,data_page_size,ins_lat,retire_lat,cgroup,machine_pid",
    ],
    reads_all: true,
    has_symbols: true,
    is_text: true,
};

/// `pmc annotate`.
pub const ANNOTATE: CommandLines = CommandLines {
    lines: &["annotate --stdio --skip-missing", "annotate --stdio2 --functions 0", "annotate --json --group"],
    reads_all: true,
    has_symbols: true,
    is_text: true,
};

/// `pmc diff`, with a whole recording first.
pub const DIFF: CommandLines = CommandLines {
    lines: &["diff", "diff --tree", "diff --stream", "diff --csv -p -F -s pid,dso,sym", "diff --json"],
    reads_all: true,
    has_symbols: true,
    is_text: true,
};

/// `pmc export`.
pub const EXPORT: CommandLines = CommandLines {
    lines: &[
        "export --format html -o -",
        "export --format svg -o -",
        "export --format folded -o -",
        "export --format firefox -o -",
        "export --format perfetto -o -",
        "export --format speedscope -o -",
        "export --format pprof -o -",
        "export --format callgrind -o -",
        "export --format otlp -o -",
        "data convert --to-json -",
    ],
    reads_all: true,
    has_symbols: true,
    is_text: false,
};

/// Commands that read profiles of other programs.
pub const IMPORT: CommandLines = CommandLines {
    lines: &[
        "report --stdio --children -g -n",
        "report --csv -n -s pid,tid,comm,dso,sym,srcline,cpu,time",
        "report --json --tree",
        "script",
        "annotate --stdio --skip-missing",
        "diff",
        "export --format folded -o -",
        "export --format pprof -o -",
        "export --format speedscope -o -",
        "export --format firefox -o -",
        "export --format callgrind -o -",
    ],
    reads_all: true,
    has_symbols: true,
    is_text: false,
};

/// `pmc inject`.
pub const INJECT: CommandLines = CommandLines {
    lines: &[
        "inject -o - --symfs /nonexistent",
        "inject -o - --symfs /nonexistent -b",
        "inject -o - --symfs /nonexistent --mmap2-buildid-all",
        "inject -o - --symfs /nonexistent --convert-callchain",
        "inject -o - --symfs /nonexistent --aslr",
    ],
    reads_all: true,
    has_symbols: false,
    is_text: false,
};

/// Commands that show what is in a recording's header.
pub const HEADER: CommandLines = CommandLines {
    lines: &[
        "evlist",
        "evlist -v",
        "evlist -F -g",
        "evlist --trace-fields",
        "buildid-list",
        "buildid-list --with-hits",
        "report --header-only",
        "script --header-only",
    ],
    reads_all: false,
    has_symbols: false,
    is_text: true,
};

/// `pmc stat report`.
pub const STAT: CommandLines = CommandLines {
    lines: &["stat report", "stat report --json", "stat report -x ,"],
    reads_all: true,
    has_symbols: false,
    is_text: true,
};

/// Commands that evaluate certain events.
pub const EVENTS: CommandLines = CommandLines {
    lines: &[
        "sched latency",
        "sched timehist --summary",
        "sched timehist -w -n -V",
        "sched map",
        "sched script",
        "lock",
        "lock contention",
        "trace",
        "trace -s",
    ],
    reads_all: false,
    has_symbols: false,
    is_text: true,
};

/// All groups of command lines.
pub const ALL: [&CommandLines; 9] =
    [&REPORT, &SCRIPT, &ANNOTATE, &DIFF, &EXPORT, &INJECT, &HEADER, &STAT, &EVENTS];

/// Index of the command line that an input takes. If it is [`usize::MAX`], the bytes of the input select one.
pub static LINE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Number of command lines of the target that ran last.
pub static LINES: AtomicUsize = AtomicUsize::new(1);

/// Returns the command line for an input.
pub fn selected(commands: &CommandLines, input: &[u8]) -> &'static str {
    LINES.store(commands.lines.len(), Ordering::Relaxed);
    let line = LINE.load(Ordering::Relaxed);
    if line != usize::MAX {
        return commands.lines[line % commands.lines.len()];
    }
    let number = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    commands.lines[(number >> 32) as usize % commands.lines.len()]
}

/// Runs a command line, and checks its result. Returns its status.
pub fn check(commands: &CommandLines, line: &str, input: &[u8]) -> Exit {
    let file = MemoryFile::new(input);
    let result = in_process::run(words(commands, line, &file.path()));
    verify(commands, line, input, &result);
    result.exit
}

/// Returns the words of a command line for a recording at this path.
pub fn words(commands: &CommandLines, line: &str, path: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = line.split_ascii_whitespace().map(Into::into).collect();
    if commands.has_symbols && !line.starts_with("data") {
        // The machine's own list has a hundred thousand symbols.
        static SYMBOLS: LazyLock<MemoryFile> =
            LazyLock::new(|| MemoryFile::new(b"ffffffff81000000 T _text\n"));
        words.extend(QUIET.split_ascii_whitespace().map(Into::into));
        words.extend(["--kallsyms".into(), SYMBOLS.path().into()]);
    }
    if line.starts_with("diff") {
        static BASE: LazyLock<MemoryFile> = LazyLock::new(|| MemoryFile::new(WHOLE));
        words.extend([BASE.path().into(), path.into()]);
    } else {
        words.extend(["-i".into(), path.into()]);
    }
    words
}

/// Checks a command's result against the input.
///
/// # Panics
/// Panics if the result is wrong: a failure without a message, control characters of a hostile recording in the
/// output, or success although samples are missing.
pub fn verify(commands: &CommandLines, line: &str, input: &[u8], result: &CommandResult) {
    let CommandResult { exit, out, err } = result;
    let wrong = |what: &str| {
        let out = String::from_utf8_lossy(&out[..out.len().min(2000)]).into_owned();
        panic!("pmc {line}: {what}\nstatus: {exit:?}\nstderr: {err}\nstdout: {out}");
    };
    match exit {
        Exit::Done => {}
        Exit::Failure | Exit::Usage if !err.is_empty() => {}
        _ => wrong("a failure without a message, or an unexpected status"),
    }
    let is_control = |byte: &u8| *byte < 0x20 && !b"\n\t".contains(byte) || *byte == 0x7f;
    if commands.is_text && out.iter().any(is_control) || err.as_bytes().iter().any(is_control) {
        wrong("control characters in the output");
    }
    let Some(walk) = walk(input).filter(|_| commands.reads_all) else { return };
    if walk.is_cut && *exit == Exit::Done {
        wrong("status 0 although records are missing");
    }
    // Without a word on stderr, every sample has its line.
    if line == "script -F comm,tid" && walk.samples > 0 && *exit == Exit::Done && !err.contains("samples") {
        let lines = out.iter().filter(|byte| **byte == b'\n').count() as u64;
        if lines != walk.samples {
            wrong(&format!("{lines} of {} samples", walk.samples));
        }
    }
    if line.starts_with("inject") && *exit == Exit::Done {
        let rewritten = MemoryFile::new(out);
        let samples = Reader::open(rewritten.path()).and_then(|reader| reader.scan(|_| {}));
        match samples.map(|index| index.count(kind::SAMPLE)) {
            Ok(samples) if samples == walk.samples => {}
            // Addresses in samples of unknown events cannot be replaced.
            Ok(_) if line.contains("--aslr") && err.contains("omitted") => {}
            Ok(samples) => wrong(&format!("{samples} of {} samples in the new recording", walk.samples)),
            Err(error) => wrong(&format!("the new recording cannot be read: {error}")),
        }
    }
}

/// Reads the input with the library, and rewrites its samples with stack copies as pmc does while it records.
pub fn read(input: &[u8]) {
    let file = MemoryFile::new(input);
    if read_all(&file.path()).is_ok() {
        let _ = rewrite(&file.path());
    }
}

/// Replaces the stack copies of all samples by chains, shortens the copies, and marks the samples as those of a
/// fallback event. The new samples must have all other fields of the old ones.
fn rewrite(path: &Path) -> Result<(), PerfdataError> {
    let reader = Reader::open(path)?;
    let without: Vec<(StrippedFields, Layouts)> =
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(data, registers)| StrippedFields::new(data, registers))
            .map(|stripped| {
                let attrs: Vec<_> = reader.events().iter().map(|event| stripped.attr(&event.attr)).collect();
                let attrs = attrs.iter().zip(reader.events());
                let of =
                    attrs.map(|(new, event)| (new.as_ref().unwrap_or(&event.attr), event.ids.as_slice()));
                (stripped, Layouts::new(of))
            })
            .into();
    let index = reader.scan(|_| {})?;
    let mut buffer = Buffer::default();
    let mut out = Vec::new();
    for chunk in &index.chunks {
        for raw in reader.load(chunk, &mut buffer)? {
            let Some((event, sample)) = reader.layouts().sample(&raw) else { continue };
            for (stripped, layouts) in without.iter().filter(|_| StrippedFields::takes(sample.layout())) {
                out.clear();
                if stripped.write(&raw, &sample, &[0x1000, 0x2000], &mut out) {
                    let new = RawRecord::first(&out).expect("a record");
                    let (of, new) = layouts.sample(&new).expect("a sample");
                    assert_eq!(event, of);
                    check_same(&sample, &new);
                    let chain = new.callchain().expect("a chain").iter();
                    assert!(chain.skip(1).collect::<Vec<_>>().ends_with(&[0x1000, 0x2000]));
                    assert_eq!(new.addr(), sample.addr().filter(|_| stripped.keeps_data()));
                }
            }
            out.clear();
            unwound::write_without_padding(&raw, &sample, &mut out);
            assert!(out.len() <= raw.bytes.len(), "a sample has grown");
            let new = RawRecord::first(&out).expect("a record");
            let (_, new) = reader.layouts().sample(&new).expect("a sample");
            check_same(&sample, &new);
            let copy = |sample: &Sample<'_>| Some(sample.parts()?.user_stack?.bytes.to_vec());
            assert_eq!(copy(&sample), copy(&new));
            out.clear();
            if unwound::write_with_fallback_id(&raw, &sample, &mut out) {
                assert_eq!(out.len(), raw.bytes.len());
                assert_eq!(out[16..], raw.bytes[16..]);
            }
        }
    }
    Ok(())
}

/// Checks that two samples have the same fields, except for data, registers, stack copy and chain.
fn check_same(old: &Sample<'_>, new: &Sample<'_>) {
    let front = |sample: &Sample<'_>| {
        (sample.ip(), sample.thread(), sample.time(), sample.id(), sample.cpu(), sample.period())
    };
    assert_eq!(front(old), front(new));
    // Without the front's end, the other parts cannot be read.
    let (Some(old), Some(new)) = (old.parts(), new.parts()) else { return };
    assert_eq!(old.raw, new.raw);
    assert_eq!(old.weight.map(|weight| weight.value()), new.weight.map(|weight| weight.value()));
    assert_eq!((old.transaction, old.cgroup, old.phys_addr), (new.transaction, new.cgroup, new.phys_addr));
}

/// Parses the input as tracing data, and prints each of its formats with the input's end and others as payload.
/// An input that is not tracing data is the text of one format. The text is the same each time, and only
/// names of functions and the kernel's constant strings make it differ.
pub fn formats(input: &[u8]) {
    let text;
    let data = match TracingData::parse(input) {
        Some(data) => data,
        None => {
            text = tracing_data(input);
            let Some(data) = TracingData::parse(&text) else { return };
            data
        }
    };
    // Arrays of 8 bytes at offset 8, for fields with a place.
    let places = [0, 8, 0, 8].repeat(16);
    let payloads = [&input[input.len() - input.len().min(200)..], &[0; 64], &[0xff; 64], &places];
    let named = |address: u64| address.is_multiple_of(2).then(|| ("function".to_owned(), address % 16));
    let names = KernelNames { code: &named, texts: Some(&data.texts) };
    let mut seen = HashSet::new();
    for id in (0..2000).filter(|id| data.format(*id).is_some_and(|format| seen.insert(&raw const *format))) {
        let Some(format) = data.format(id) else { continue };
        for bytes in payloads {
            let payload = Payload { bytes, is_byte_swapped: data.is_byte_swapped };
            let mut printed = [String::new(), String::new(), String::new()];
            format.print(payload, names, &mut printed[0]);
            format.print(payload, names, &mut printed[1]);
            format.print(payload, KernelNames::NONE, &mut printed[2]);
            assert_eq!(printed[0], printed[1]);
            assert!(printed[0] == printed[2] || printed[0].contains("function") || !data.texts.is_empty());
        }
    }
}

/// Wraps the text of a format in the tracing data of a recording.
fn tracing_data(format: &[u8]) -> Vec<u8> {
    let mut data = b"\x17\x08\x44tracing0.6\0\0\x08".to_vec();
    let long = |data: &mut Vec<u8>, bytes: &[u8]| {
        data.extend((bytes.len() as u64).to_ne_bytes());
        data.extend(bytes);
    };
    data.extend(4096_u32.to_ne_bytes());
    data.extend(b"header_page\0");
    long(&mut data, b"");
    data.extend(b"header_event\0");
    long(&mut data, b"");
    data.extend(0_u32.to_ne_bytes());
    data.extend(1_u32.to_ne_bytes());
    data.extend(b"fuzz\0");
    data.extend(1_u32.to_ne_bytes());
    long(&mut data, format);
    data.extend(0_u32.to_ne_bytes());
    let texts = b"0x8000800080008 : \"a text\"\n";
    data.extend((texts.len() as u32).to_ne_bytes());
    data.extend(texts);
    data.extend([0; 8]);
    data
}
