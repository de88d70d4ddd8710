//! Damaged, hostile and foreign recordings: no panic, no hang, and little more memory than the file's size.

use crate::fuzz::mutation::{self, Random};
use crate::fuzz::recordings::{self, read_all};
use crate::kit;

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use pmc_perfdata::perfdata::{Buffer, FeatureNumber, PerfdataError, Reader, RecordingLayout, RecordingNote};
use pmc_perfdata::record::{
    ChainEntry, MappedFileId, RawRecord, Record, SampleId, Thread, kind, sample::chain_entries,
};
use pmc_sys::abi::{Context, CpuMode, sample_type};
use pmc_text::units::PerfTime;

const SAVED: [&str; 5] = ["fp", "dwarf", "packed", "stream", "traces"];

fn saved(name: &str) -> Vec<u8> {
    std::fs::read(kit::data(&format!("perfdata/{name}.data"))).expect("a saved recording")
}

#[test]
fn stored_recordings_are_complete() {
    for name in SAVED {
        let path = kit::data(&format!("perfdata/{name}.data"));
        let records = read_all(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(records > 10, "{name}: {records}");
    }
}

/// Whether this process runs only one test. Otherwise, runs this test in such a process, where it must pass.
fn is_own_process(test: &str) -> bool {
    const NAME: &str = "PMC_TEST_OWN_PROCESS";
    let is_own = std::env::var_os(NAME).is_some();
    if !is_own {
        let mut own = std::process::Command::new(std::env::current_exe().expect("our own file"));
        own.args(["--exact", &format!("perfdata_hostile::{test}")]).env(NAME, "1");
        own.env("PERF_CONFIG", "/dev/null").env("PERF_BUILDID_DIR", "/dev/null").env("LC_ALL", "C");
        kit::Ran::from(own.output().expect("it starts")).expect(0).prints(&["1 passed"]);
    }
    is_own
}

#[test]
fn damaged_recordings_do_no_harm() {
    // The peak of this process includes the memory of other tests.
    if !is_own_process("damaged_recordings_do_no_harm") {
        return;
    }
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("damaged");
    let mut random = Random::new(1);
    let (mut read, mut refused) = (0, 0);
    for name in SAVED {
        let whole = saved(name);
        for round in 0..400 {
            let mut bytes = whole.clone();
            match random.below(2) {
                0 => mutation::bytes(&mut bytes, 1 << 20, &mut random),
                _ => mutation::perfdata::mutate(&mut bytes, 1 << 20, &mut random),
            }
            if round % 4 == 0 {
                bytes.truncate(random.below(whole.len()));
            }
            std::fs::write(&file, &bytes).expect("it can be written");
            let begun = Instant::now();
            match read_all(&file) {
                Ok(_) => read += 1,
                Err(error) => {
                    assert!(!pmc_sys::error::Error::from(error).to_string().is_empty());
                    refused += 1;
                }
            }
            assert!(begun.elapsed() < kit::PATIENCE, "{name}, round {round}");
        }
    }
    assert!(read > 500 && refused > 50, "{read} read, {refused} refused");
    let peak = kit::peak_kib(&std::fs::read_to_string("/proc/self/status").expect("our status"));
    assert!(peak < 300 << 10, "{peak} KiB at the peak");
}

/// Number of mutations of each of the two halves, which run at the same time.
const MUTATIONS: usize = 10_000;
/// The program itself reads each Nth mutation, too.
const EACH: usize = 100;

#[test]
fn mutated_recordings_do_no_harm() {
    if is_own_process("mutated_recordings_do_no_harm") {
        run_on_mutations(1);
    }
}

#[test]
fn more_mutated_recordings_do_no_harm() {
    if is_own_process("more_mutated_recordings_do_no_harm") {
        run_on_mutations(2);
    }
}

/// Runs the commands on mutations of the recordings in `fuzz/corpus`, in this process, whose standard output
/// they use. `recordings::verify` checks each result: no panic, no control characters, and no success if
/// samples are missing.
fn run_on_mutations(seed: u64) {
    const MOST_CPU: Duration = Duration::from_secs(10);
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("mutated");
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/recording"));
    let mut seeds: Vec<_> = folder.expect("seeds").map(|entry| entry.expect("an entry").path()).collect();
    seeds.sort();
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| std::fs::read(seed).expect("a seed")).collect();
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("a time");
    let mut random = Random::new(seed);
    for number in 0..MUTATIONS {
        let mut input = seeds[random.below(seeds.len())].clone();
        mutation::perfdata::mutate(&mut input, 1 << 20, &mut random);
        let commands = recordings::ALL[number % recordings::ALL.len()];
        let begun = used();
        let line = recordings::selected(commands, &input);
        let exit = recordings::check(commands, line, &input);
        assert!(used() - begun < MOST_CPU, "mutation {number}");
        if number % EACH == 0 && !line.starts_with("diff") {
            std::fs::write(&file, &input).expect("it can be written");
            let mut pmc = kit::pmc();
            let status = pmc.args(line.split_whitespace()).arg("-i").arg(&file).output().expect("it starts");
            let code = Some(i32::from(exit.code()));
            assert_eq!(status.status.code(), code, "mutation {number}: {line}: {status:?}");
        }
    }
    let peak = kit::peak_kib(&std::fs::read_to_string("/proc/self/status").expect("our status"));
    assert!(peak < 128 << 10, "{peak} KiB at the peak");
}

#[test]
fn file_without_events_is_rejected() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("eventless");
    let mut bytes = saved("fp");
    bytes[32..40].fill(0);
    std::fs::write(&file, &bytes).expect("it can be written");
    let text = file.display().to_string();
    kit::run(&["inject", "-o", "-", "-i", &text]).expect(1).says(&["the header describes no events"]);
}

#[test]
fn truncated_file_is_read_up_to_the_cut() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("torn");
    let whole = saved("fp");
    let all = read_all(&kit::data("perfdata/fp.data")).expect("it is whole");
    let reader = Reader::open(kit::data("perfdata/fp.data")).expect("it opens");
    let cut = reader.data_offset() + reader.data_size() * 3 / 4 + 3;
    std::fs::write(&file, &whole[..cut as usize]).expect("it can be written");
    let reader = Reader::open(&file).expect("it opens");
    assert!(matches!(reader.notes(), [RecordingNote::Torn { at, .. }] if *at == cut), "{:?}", reader.notes());
    let index = reader.scan(|_| {}).expect("it scans");
    // The cut record and the rest of the file are reported as one loss.
    let end =
        Reader::open(kit::data("perfdata/fp.data")).map(|whole| whole.data_offset() + whole.data_size());
    let end = end.expect("it opens");
    assert!(
        matches!(index.notes[..], [RecordingNote::Torn { at, lost, .. }] if at < cut && at + lost == end),
        "{:?}",
        index.notes
    );
    let some = read_all(&file).expect("it reads");
    assert!(some > 10 && some < all, "{some} of {all}");
}

#[test]
fn one_truncation_gives_one_note() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("torn");
    let notes = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("it can be written");
        Reader::open(&file).and_then(|reader| reader.scan(|_| {})).expect("it scans").notes
    };
    // Truncated within the features: one note covers all that are missing.
    let whole = saved("fp");
    let cut = notes(&whole[..whole.len() * 2 / 3]);
    assert!(matches!(&cut[..], [RecordingNote::BadFeatures(names)] if names.len() > 3), "{cut:?}");
    // The recorder was killed while it wrote a record.
    let mut killed = whole.clone();
    killed[48..56].fill(0);
    killed[72..104].fill(0);
    killed.truncate(6003);
    let killed = notes(&killed);
    assert!(matches!(killed[..], [RecordingNote::Unfinished { lost: 1.. }]), "{killed:?}");
    // Compressed records: truncated, and with an invalid size in the middle.
    let mut packed = saved("packed");
    let reader = Reader::open(kit::data("perfdata/packed.data")).expect("it opens");
    let torn = notes(&packed[..reader.data_offset() as usize + 1003]);
    assert!(matches!(torn[..], [RecordingNote::Torn { .. }]), "{torn:?}");
    packed[reader.data_offset() as usize + 6..][..2].fill(0);
    let torn = notes(&packed);
    assert!(
        matches!(torn[..], [RecordingNote::Torn { at, lost: 1.., .. }] if at == reader.data_offset()),
        "{torn:?}"
    );
}

#[test]
fn old_magic_is_read_in_both_byte_orders() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("old");
    for big in [false, true] {
        let mut bytes = built(big);
        std::fs::write(&file, &bytes).expect("it can be written");
        let newer = read_all(&file).expect("it reads");
        bytes[..8].copy_from_slice(b"PERFFILE");
        std::fs::write(&file, &bytes).expect("it can be written");
        assert_eq!(
            Reader::open(&file).expect("it opens").is_byte_swapped(),
            big == cfg!(target_endian = "little")
        );
        assert_eq!(read_all(&file).expect("it reads"), newer);
    }
}

#[test]
fn unnamed_tracepoints_use_their_format_name() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("nameless");
    let mut bytes = saved("traces");
    let named = Reader::open(kit::data("perfdata/traces.data")).expect("it opens");
    let names = |reader: &Reader| reader.events().iter().map(|event| event.name()).collect::<Vec<_>>();
    assert!(names(&named).iter().any(|name| name.starts_with("sched:")), "{:?}", names(&named));
    // The list of event names claims to be empty.
    let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
    let before = (0..FeatureNumber::EVENT_DESC as u32).filter(|bit| word(&bytes, 72) >> bit & 1 == 1).count();
    let row = (word(&bytes, 40) + word(&bytes, 48)) as usize + before * 16;
    let section = word(&bytes, row) as usize;
    bytes[section..section + 4].fill(0);
    std::fs::write(&file, bytes).expect("it can be written");
    let nameless = Reader::open(&file).expect("it opens");
    let plain = |name: &String| name.split(':').take(2).collect::<Vec<_>>().join(":");
    let (ours, theirs) = (names(&nameless), names(&named));
    assert_eq!(ours.iter().map(plain).collect::<Vec<_>>(), theirs.iter().map(plain).collect::<Vec<_>>());
}

#[test]
fn simpleperf_records_are_skipped() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("android");
    let whole = saved("fp");
    let count = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("it can be written");
        let reader = Reader::open(&file).expect("it opens");
        let index = reader.scan(|_| {}).expect("it scans");
        let torn = index.notes.iter().any(|note| matches!(note, RecordingNote::Torn { .. }));
        (index.count(kind::SAMPLE), index.unknown, torn)
    };
    let (samples, ..) = count(&whole);
    let start = Reader::open(kit::data("perfdata/fp.data")).expect("it opens").data_offset() as usize;
    // Tracing data in a record, then records with sizes of more than 16 bits: 100,000 and 3,000,000 bytes.
    let mut added: Vec<u8> = Vec::new();
    let mut record = |kind: u32, size: usize, first: u32| {
        let begin = added.len();
        added.extend(kind.to_ne_bytes());
        let (low, high) = (size as u16, (size >> 16) as u16);
        added.extend([high, low].iter().flat_map(|half| half.to_ne_bytes()));
        added.extend(first.to_ne_bytes());
        added.resize(begin + size, 0xff);
    };
    record(kind::HEADER_TRACING_DATA, 64, 50);
    record(kind::FIRST_SIMPLEPERF + 1, 100_000, 0);
    record(kind::FIRST_SIMPLEPERF + 1, 3_000_000, 0);
    let mut bytes = whole.clone();
    bytes.splice(start..start, added.iter().copied());
    // The table of features would have moved, so this file has none.
    let size = u64::from_ne_bytes(*whole[48..].first_chunk().unwrap()) + added.len() as u64;
    bytes[48..56].copy_from_slice(&size.to_ne_bytes());
    bytes[72..104].fill(0);
    bytes.truncate(start + size as usize);
    assert_eq!(count(&bytes), (samples, 2, false));
}

#[test]
fn non_recordings_are_rejected_with_advice() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("other");
    for (bytes, says) in [
        (&b""[..], "the file is empty"),
        (b"#!/bin/sh\necho hello, this is no recording", "does not start with PERFILE2"),
        (b"PERFFILE but from another age................", "header is truncated"),
        (b"PERFILE2\xff\xff\xff\xff\xff\xff\xff\xffx", "header is truncated"),
        (b"\x1f\x8b\x08\x00garbage", "unpacking"),
    ] {
        std::fs::write(&file, bytes).expect("it can be written");
        let error = pmc_sys::error::Error::from(Reader::open(&file).expect_err("it is refused")).to_string();
        assert!(error.contains(says), "{error}");
    }
    let error =
        pmc_sys::error::Error::from(Reader::open(lab.path().join("none")).expect_err("it is not there"));
    assert!(error.to_string().contains("try: record something first"), "{error}");
}

#[test]
fn compression_bomb_does_not_fill_the_disk() {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let file = lab.path().join("bomb");
    // A header and 512 MiB of zeros, compressed to about 20 KiB.
    let zeros = vec![0; 1 << 20];
    let mut packed =
        zstd::stream::Encoder::new(std::fs::File::create(&file).expect("it can be made"), 3).expect("zstd");
    std::io::Write::write_all(&mut packed, b"PERFILE2").expect("it packs");
    for _ in 0..512 {
        std::io::Write::write_all(&mut packed, &zeros).expect("it packs");
    }
    packed.finish().expect("it ends");
    assert!(matches!(Reader::open(&file), Err(PerfdataError::Bomb { .. })));
}

/// Builds a recording by hand, in either byte order.
struct Builder {
    out: Vec<u8>,
    big: bool,
}

impl Builder {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.out.push(value);
        self
    }
    fn u16(&mut self, value: u16) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.out.extend(if self.big { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }
    fn words(&mut self, values: &[u64]) -> &mut Self {
        for &value in values {
            self.u64(value);
        }
        self
    }
    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend(bytes);
        self
    }
    /// Writes bit fields, which fill each byte from the other end on big-endian machines.
    fn flags(&mut self, value: u64) -> &mut Self {
        let bytes = value.to_le_bytes();
        let big = self.big;
        self.out.extend(bytes.map(|b| if big { b.reverse_bits() } else { b }));
        self
    }
    /// Writes the bit fields of a branch entry, in the order and with the widths of the kernel's
    /// declaration.
    fn fields(&mut self, fields: &[(u64, u32)]) -> &mut Self {
        let (mut word, mut used) = (0, 0);
        for &(value, width) in fields {
            let at = if self.big { 64 - used - width } else { used };
            word |= value << at;
            used += width;
        }
        self.u64(word)
    }
    fn record(&mut self, kind: u32, misc: u16, body: impl FnOnce(&mut Self)) {
        let mut inner = Self { out: Vec::new(), big: self.big };
        body(&mut inner);
        self.u32(kind).u16(misc).u16(inner.out.len() as u16 + 8);
        self.out.extend(inner.out);
    }
}

/// Records of the kinds that few recordings contain.
fn rare_records(data: &mut Builder, trailer: impl Fn(&mut Builder)) {
    // Written by the kernel, with a trailer.
    data.record(kind::MMAP, 1, |b| {
        b.u32(7).u32(8).words(&[0x60_0000, 0x1000, 0]).bytes(b"/bin/cat");
        b.words(&[0]);
        trailer(b);
    });
    data.record(kind::NAMESPACES, 0, |b| {
        b.u32(7).u32(8).words(&[2, 4, 0xf000_0001, 4, 0xf000_0002]);
        trailer(b);
    });
    data.record(kind::KSYMBOL, 0, |b| {
        b.u64(0xffff_ffff_c000_1000).u32(0x40).u16(1).u16(0).bytes(b"bpf_prog_1\0\0\0\0\0\0");
        trailer(b);
    });
    data.record(kind::BPF_EVENT, 0, |b| {
        b.u16(1).u16(0).u32(12).bytes(&[1, 2, 3, 4, 5, 6, 7, 8]);
        trailer(b);
    });
    data.record(kind::CGROUP, 0, |b| {
        b.u64(1234).bytes(b"/system\0");
        trailer(b);
    });
    data.record(kind::TEXT_POKE, 0, |b| {
        b.u64(0xffff_ffff_8100_1000).u16(2).u16(2).bytes(&[0x90, 0x90, 0xeb, 0x10]);
        trailer(b);
    });
    data.record(kind::ITRACE_START, 0, |b| {
        b.u32(7).u32(8);
        trailer(b);
    });
    data.record(kind::SWITCH_CPU_WIDE, 1 << 13, |b| {
        b.u32(9).u32(10);
        trailer(b);
    });
    for (kind, words) in [
        (kind::LOST, &[77, 3][..]),
        (kind::THROTTLE, &[8000, 77, 1]),
        (kind::UNTHROTTLE, &[8001, 77, 1]),
        (kind::AUX, &[0, 64, 1]),
        (kind::LOST_SAMPLES, &[2]),
        (kind::AUX_OUTPUT_HW_ID, &[5]),
        (kind::CALLCHAIN_DEFERRED, &[1, 2, 0x40_1234, 0x40_5678]),
    ] {
        data.record(kind, 0, |b| {
            b.words(words);
            trailer(b);
        });
    }
    data.record(kind::READ, 0, |b| {
        b.u32(7).u32(8).words(&[42, 500, 400, 77]);
        trailer(b);
    });
    data.record(kind::EXIT, 0, |b| {
        b.u32(9).u32(7).u32(10).u32(8).u64(9000);
        trailer(b);
    });
    // Written by perf.
    for (kind, words) in [
        (kind::ID_INDEX, &[1, 77, 0, 3, 8][..]),
        (kind::STAT_CONFIG, &[2, 0, 1, 1, 1000]),
        (kind::STAT_ROUND, &[0, 9500]),
        (kind::TIME_CONV, &[10, 20, 30, 40, 50]),
    ] {
        data.record(kind, 0, |b| {
            b.words(words);
        });
    }
    data.record(kind::STAT, 0, |b| {
        b.u64(77).u32(3).u32(8).words(&[42, 500, 400]);
    });
    data.record(kind::HEADER_BUILD_ID, 2, |b| {
        b.u32(7).bytes(&[0xcd; 20]).bytes(&[0; 4]).bytes(b"/bin/cat").words(&[0]);
    });
    data.record(kind::HEADER_EVENT_TYPE, 0, |b| {
        b.u64(4000).bytes(b"clock\0\0\0");
    });
    data.record(kind::EVENT_UPDATE, 0, |b| {
        b.words(&[1, 77]).words(&[0x3ff0_0000_0000_0000]);
    });
    data.record(kind::EVENT_UPDATE, 0, |b| {
        b.words(&[3, 77]).u16(0).u16(2).u16(1).u16(3);
    });
    // Masks of 8-byte and of 4-byte words, and a range.
    data.record(kind::CPU_MAP, 0, |b| {
        b.u16(1).u16(1).u16(8).bytes(&[0; 4]).u64(0b1011).bytes(&[0; 6]);
    });
    data.record(kind::CPU_MAP, 0, |b| {
        b.u16(1).u16(1).u16(4).u32(0b1011).bytes(&[0; 6]);
    });
    data.record(kind::CPU_MAP, 0, |b| {
        b.u16(2).u8(0).u8(0).u16(1).u16(3);
    });
    data.record(kind::AUXTRACE_INFO, 0, |b| {
        b.u32(4).u32(0).words(&[1, 2]);
    });
    data.record(kind::AUXTRACE_ERROR, 0, |b| {
        b.u32(1).u32(2).u32(3).u32(7).u32(8).u32(1).words(&[0x40_1234, 9000]).bytes(b"error\0\0\0");
    });
}

/// A recording of one event with nearly every field, and one record of each interesting kind.
fn built(big: bool) -> Vec<u8> {
    let sample_type = sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::TIME
        | sample_type::CPU
        | sample_type::PERIOD
        | sample_type::READ
        | sample_type::CALLCHAIN
        | sample_type::RAW
        | sample_type::BRANCH_STACK
        | sample_type::REGS_USER
        | sample_type::STACK_USER
        | sample_type::WEIGHT_STRUCT
        | sample_type::DATA_SRC;
    let mut b = Builder { out: Vec::new(), big };
    let trailer = |b: &mut Builder| {
        b.u32(7).u32(8).u64(5000).u32(3).u32(0).u64(77);
    };
    let mut data = Builder { out: Vec::new(), big };
    data.record(kind::COMM, 1 << 13, |b| {
        b.u32(7).u32(8).bytes(b"bash\0\0\0\0");
        trailer(b);
    });
    data.record(kind::MMAP2, 2, |b| {
        b.u32(7).u32(8).words(&[0x40_0000, 0x1000, 0x2000]).u32(8).u32(1).words(&[4711, 1]).u32(5).u32(2);
        b.bytes(b"/bin/bash\0\0\0\0\0\0\0");
        trailer(b);
    });
    data.record(kind::MMAP2, 2 | 1 << 14, |b| {
        b.u32(7).u32(8).words(&[0x50_0000, 0x1000, 0]).u8(4).u8(0).u16(0).bytes(&[0xab; 20]).u32(5).u32(2);
        b.bytes(b"/lib/x\0\0");
        trailer(b);
    });
    data.record(kind::FORK, 0, |b| {
        b.u32(9).u32(7).u32(10).u32(8).u64(6000);
        trailer(b);
    });
    data.record(kind::SAMPLE, 2, |b| {
        b.words(&[77, 0x40_1234]).u32(7).u32(8).u64(7000).u32(3).u32(0).u64(1000);
        b.words(&[42, 500, 400, 77]); // value, enabled, running, id
        b.words(&[3, -512i64 as u64, 0x40_1234, 0x40_5678]);
        b.u32(4).bytes(b"RAW!");
        b.words(&[1, 0xf0, 0x70]);
        b.fields(&[(1, 1), (0, 1), (1, 1), (0, 1), (300, 16), (4, 4), (2, 2), (0, 4), (1, 3), (0, 31)]);
        b.words(&[2, 0x11, 0x22]);
        b.u64(16).bytes(b"stackstackstack!").u64(10);
        b.u64(9 | 5 << 32 | 6 << 48);
        b.u64(2);
    });
    data.record(kind::THREAD_MAP, 0, |b| {
        b.words(&[1, 7]).bytes(b"bash\0\0\0\0\0\0\0\0\0\0\0\0");
    });
    data.record(kind::CPU_MAP, 0, |b| {
        b.u16(0).u16(2).u16(1).u16(3);
    });
    rare_records(&mut data, trailer);
    data.record(kind::FINISHED_ROUND, 0, |_| {});

    let attr_size = 128u64;
    let (ids_at, attr_at) = (104, 112);
    let data_at = attr_at + attr_size + 16;
    b.bytes(if big { b"2ELIFREP" } else { b"PERFILE2" });
    b.words(&[
        104,
        attr_size + 16,
        attr_at,
        attr_size + 16,
        data_at,
        data.out.len() as u64,
        0,
        0,
        1 << 3,
        0,
        0,
        0,
    ]);
    assert_eq!(b.out.len(), ids_at);
    b.u64(77);
    let begin = b.out.len();
    b.u32(1).u32(attr_size as u32).words(&[0, 4000, sample_type, 0b111]);
    b.flags(1 << 1 | 1 << 8 | 1 << 10 | 1 << 18 | 2 << 15); // inherit, mmap, freq, sample_id_all, precise_ip 2
    b.u32(0)
        .u32(0)
        .words(&[0, 0, 1 << 3, 0b11])
        .u32(16)
        .u32(1)
        .words(&[0])
        .u32(4)
        .u16(127)
        .u16(0)
        .words(&[0, 0]);
    assert_eq!(b.out.len() - begin, 128);
    b.words(&[ids_at as u64, 8]);
    b.bytes(&data.out);
    let table = b.out.len() as u64;
    b.words(&[table + 16, 4 + 64]);
    b.u32(64).bytes(b"elsewhere").bytes(&[0; 55]);
    b.out
}

#[test]
fn both_byte_orders_parse_equally() {
    let mut in_each_order = Vec::new();
    for big in [false, true] {
        // The recording is also a seed of the fuzz targets.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording").join(match big {
            false => "byhand-little.data",
            true => "byhand-big.data",
        });
        if std::env::var_os("PMC_BLESS").is_some() {
            std::fs::write(&file, built(big)).expect("it can be written");
        }
        assert_eq!(std::fs::read(&file).expect("the seed"), built(big), "{file:?}: PMC_BLESS=1 writes it");
        let reader = Reader::open(&file).expect("it opens");
        assert_eq!(
            (reader.is_byte_swapped(), reader.form(), reader.notes()),
            (big, RecordingLayout::File, &[][..])
        );
        assert_eq!(reader.features().hostname.as_deref(), Some("elsewhere"));
        let event = &reader.events()[0];
        assert_eq!((event.ids.as_slice(), event.name().as_str()), (&[77][..], "cpu-clock:pp"));
        assert_eq!(
            (event.attr.precise_ip(), event.attr.clockid(), event.attr.sample_max_stack()),
            (2, 1, 127)
        );

        let mut buffer = Buffer::default();
        let index = reader.scan(|_| {}).expect("it scans");
        assert_eq!(index.notes, []);
        let records: Vec<_> = reader.load(&index.chunks[0], &mut buffer).expect("it loads").collect();
        assert!(records.iter().all(|raw| !matches!(raw.parse(), None | Some(Record::Unknown(_)))));
        // `Sample` is compared below.
        let is_sample = |raw: &&RawRecord<'_>| raw.kind == kind::SAMPLE;
        let others = records.iter().filter(|raw| !is_sample(raw));
        let parsed: Vec<String> =
            others.map(|raw| format!("{:?} {:?}", raw.parse(), reader.layouts().sample_id(raw))).collect();
        in_each_order.push(parsed);
        let thread = Thread { pid: 7, tid: 8 };
        let id = SampleId {
            thread: Some(thread),
            time: Some(PerfTime(5000)),
            id: Some(77),
            stream_id: None,
            cpu: Some(3),
        };
        for raw in &records[..4] {
            assert_eq!(reader.layouts().sample_id(raw), id);
        }
        let Some(Record::Comm(comm)) = records[0].parse() else { panic!("no comm") };
        assert_eq!((comm.thread, comm.is_exec, comm.comm), (thread, true, &b"bash"[..]));
        let Some(Record::Mmap2(map)) = records[1].parse() else { panic!("no mapping") };
        assert_eq!((map.map.addr, map.map.len, map.map.pgoff, map.prot), (0x40_0000, 0x1000, 0x2000, 5));
        assert_eq!(map.file, MappedFileId::Inode { major: 8, minor: 1, inode: 4711, generation: 1 });
        let Some(Record::Mmap2(map)) = records[2].parse() else { panic!("no mapping") };
        assert_eq!(
            (map.file, map.prot, map.map.name),
            (MappedFileId::BuildId(&[0xab; 4]), 5, &b"/lib/x"[..])
        );
        let Some(Record::Fork(fork)) = records[3].parse() else { panic!("no fork") };
        assert_eq!((fork.thread.tid, fork.parent.pid, fork.time), (10, 7, PerfTime(6000)));

        let (_, sample) = reader.layouts().sample(&records[4]).expect("a sample");
        assert_eq!(
            (sample.ip(), sample.thread(), sample.cpu_mode()),
            (Some(0x40_1234), Some(thread), CpuMode::User)
        );
        assert_eq!(
            (sample.time(), sample.cpu(), sample.period()),
            (Some(PerfTime(7000)), Some(3), Some(1000))
        );
        assert_eq!((sample.addr(), sample.id()), (None, Some(77)));
        let parts = sample.parts().expect("whole");
        let read = parts.read.expect("values");
        assert_eq!((read.enabled_ns(), read.running_ns()), (Some(500), Some(400)));
        let value = read.iter().next().expect("one");
        assert_eq!((value.value, value.id, value.lost), (42, Some(77), None));
        let chain: Vec<_> = chain_entries(parts.callchain.expect("a chain")).collect();
        let [user, a, b] = chain[..] else { panic!("{chain:?}") };
        assert_eq!((user, a), (ChainEntry::Context(Context::User), ChainEntry::Address(0x40_1234)));
        assert_eq!(b, ChainEntry::Address(0x40_5678));
        assert_eq!(parts.raw, Some(&b"RAW!"[..]));
        let branch = parts.branches.expect("branches").iter().next().expect("one");
        assert_eq!(
            (branch.from, branch.to, branch.flags.cycles(), branch.flags.kind()),
            (0xf0, 0x70, 300, "CALL")
        );
        assert!(branch.flags.is_mispredicted() && branch.flags.in_tx() && !branch.flags.is_predicted());
        assert_eq!((branch.flags.speculation(), branch.flags.privilege()), ("NON_SPEC_CORRECT_PATH", 1));
        let regs = parts.user_regs.expect("registers");
        assert_eq!((regs.abi, regs.get(0), regs.get(1), regs.get(2)), (2, Some(0x11), Some(0x22), None));
        let stack = parts.user_stack.expect("a stack");
        assert_eq!((stack.bytes, stack.asked), (&b"stackstack"[..], 16));
        let weight = parts.weight.expect("a weight");
        assert_eq!((weight.value(), weight.more(), parts.data_src), (9, Some((5, 6)), Some(2)));

        let Some(Record::ThreadMap(threads)) = records[5].parse() else { panic!("no threads") };
        assert_eq!(threads.iter().collect::<Vec<_>>(), [(7, &b"bash"[..])]);
        let Some(Record::CpuMap(cpus)) = records[6].parse() else { panic!("no CPUs") };
        assert_eq!(cpus.cpus(), [1, 3]);
    }
    let [little, big] = &in_each_order[..] else { unreachable!() };
    assert!(little.len() > 35);
    assert_eq!(big, little);
}
