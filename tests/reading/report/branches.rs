//! Branches and memory accesses. The test machines cannot record them, so the test writes a recording with
//! pmc's writer. perf reads the same file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Thread, encode};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::sample_type;

use crate::kit::{self, oracle};

use super::against::{pmc_json, scripts_agree};
use super::lab::{DEEP, Lab};
use super::options::{table, tables_agree};

pub(super) const BASE: u64 = 0x5555_0000_0000;
pub(super) const ID: u64 = 7;
const WHO: Thread = Thread { pid: 100, tid: 100 };

/// Pseudo-random numbers with a fixed seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of(&mut self, list: &[u64]) -> u64 {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Addresses of the functions and of a variable, from `nm`.
pub(super) fn addresses(program: &Path) -> (Vec<u64>, u64) {
    let text = oracle::says("nm", &[program]);
    let of = |name: &str| {
        let line =
            text.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("the symbol is there");
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    };
    let code = ["leaf", "other", "down", "middle", "main"].map(of);
    (code.iter().flat_map(|start| [*start, start + 4, start + 9]).collect(), of("sink"))
}

/// Sample type of the recording.
const SAMPLE: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::ADDR
    | sample_type::CPU
    | sample_type::PERIOD
    | sample_type::BRANCH_STACK
    | sample_type::WEIGHT_STRUCT
    | sample_type::DATA_SRC;

/// `ANY | USER`.
pub(super) const BRANCHES: u64 = 8 | 1;

/// Writes a recording of a program named `deep` with this sample layout and these words in each sample.
pub(super) fn write_samples(
    path: &Path,
    program: &Path,
    (sample_type, branch_sample_type): (u64, u64),
    features: &Features,
    samples: &[Vec<u64>],
) {
    // Type and config of cpu-clock: perf names it without a machine that counts branches.
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(sample_type);
    attr.set_period(1000);
    attr.set_branch_sample_type(branch_sample_type);
    for flag in [Flag::Mmap, Flag::Mmap2, Flag::Comm, Flag::CommExec, Flag::MmapData, Flag::SampleIdAll] {
        attr.set(flag, true);
    }
    let event = RecordedEvent { attr, ids: vec![ID], name: Some("cpu-clock".to_owned()) };
    let mut writer =
        Writer::create(path, &[event], &Features::default(), WriteOptions::default()).expect("it begins");
    let trailer = pmc_perfdata::record::SampleLayout::new(&attr_of(path)).trailer_size();
    let mut sideband = encode::Encoder::new(trailer);
    sideband.comm(WHO, b"deep");
    let file = program.as_os_str().as_encoded_bytes();
    for (offset, prot) in [(0x1000, 5), (0x3000, 3)] {
        // GNU ld places data one page further in memory than in the file.
        let addr = BASE + if prot == 5 { offset } else { offset + 0x1000 };
        let map = Mmap { thread: WHO, addr, len: 0x1000, pgoff: offset, is_data: prot != 5, name: file };
        let inode = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
        sideband.mmap2(&Mmap2 { map, file: inode, prot, flags: 2 });
    }
    writer.append(&[sideband.bytes()]).expect("it is written");
    for body in samples {
        let mut record = Vec::new();
        record.extend(9u32.to_ne_bytes());
        record.extend(0x4002u16.to_ne_bytes());
        record.extend((8 + body.len() as u16 * 8).to_ne_bytes());
        record.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        writer.append(&[&record]).expect("it is written");
    }
    writer.finish(features).expect("it ends");
}

/// Writes 300 samples with up to eight branches each.
pub(crate) fn write(lab: &Lab, name: &str, seed: u64) -> PathBuf {
    let program = lab.build("deep", DEEP);
    let (code, sink) = addresses(&program);
    let mut samples = Vec::new();
    let mut dice = Dice(seed);
    for number in 0..300u64 {
        let mut body: Vec<u64> = vec![ID, BASE + dice.of(&code), 100 | 100 << 32, 1000 + number * 1000];
        body.extend([BASE + sink + dice.of(&[0, 0, 16]), 0, 1000]);
        let count = dice.of(&[0, 1, 4, 8]);
        body.push(count);
        for _ in 0..count {
            let flags =
                dice.of(&[2, 2, 2, 6, 10]) | dice.of(&[0, 3, 17, 200]) << 4 | dice.of(&[0, 1, 4, 6]) << 20;
            body.extend([BASE + dice.of(&code), BASE + dice.of(&code), flags]);
        }
        let weights = dice.of(&[0, 5, 90]) | dice.of(&[0, 7, 300]) << 32 | dice.of(&[0, 2, 11]) << 48;
        body.extend([weights, dice.of(&[0x1e_0508_0021, 0x6810_0142, 0x2a10_0142])]);
        samples.push(body);
    }
    let path = lab.path(name);
    write_samples(&path, &program, (SAMPLE, BRANCHES), &Features::default(), &samples);
    path
}

#[test]
fn parts_of_data_sources_match_perfs_columns() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("deep", DEEP);
    let (code, sink) = addresses(&program);
    // All values of each field: the operation, the level, the TLB.
    let sources = (0..32).chain((0..16).map(|level| level << 33)).chain((0..128).map(|tlb| tlb << 26));
    let sample =
        |source: u64| vec![ID, BASE + code[0], 100 | 100 << 32, 1000, BASE + sink, 0, 1000, 1, source];
    let samples: Vec<Vec<u64>> = sources.map(sample).collect();
    let file = lab.path("sources");
    let layout = (SAMPLE & !sample_type::BRANCH_STACK, 0);
    write_samples(&file, &program, layout, &Features::default(), &samples);
    let Some(perf) = oracle::perfs().into_iter().nth(1) else { return };
    for key in ["op", "cache", "memory", "dtlb"] {
        let ours = table("pmc", &file, &["--mem-mode", "-s", key]);
        // perf has one column per value: `  Load  Store  Other|Command`, then `  4.0%  1.0% 95.0%|deep`.
        let fields = format!("{key},comm");
        let columns = ["report", "--stdio", "-t", "|", "--mem-mode", "-F", &fields, "-i"];
        let text =
            kit::Ran::from(std::process::Command::new(&perf).args(columns).arg(&file).output().unwrap());
        let of = |ending: &str| -> Vec<String> {
            let line = text.stdout.lines().find_map(|line| line.trim_end().strip_suffix(ending));
            let line = line.unwrap_or_else(|| panic!("{}", text.stdout)).trim_start_matches('#');
            line.split_whitespace().map(str::to_owned).collect()
        };
        let (names, shares) = (of("|Command"), of("|deep"));
        assert_eq!((names.len(), shares.len()), (ours.len(), ours.len()), "{key}: {ours:?}");
        for (name, share) in names.into_iter().zip(shares) {
            let theirs: f64 = share.trim_end_matches('%').parse().unwrap();
            let ours =
                ours.get(&vec![name.clone()]).unwrap_or_else(|| panic!("{key}: no {name} in {ours:?}"));
            assert!((theirs - ours).abs() < 0.1, "{key} {name}: perf {theirs}, pmc {ours}");
        }
    }
}

/// The attr of the recording's first event.
fn attr_of(path: &Path) -> Attr {
    pmc_perfdata::perfdata::Reader::open(path).expect("its header is whole").events()[0].attr.clone()
}

#[test]
fn branch_counts_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let file = write(&lab, "branches", 3);
    tables_agree(&file, &["-b"]);
    for keys in
        ["in_tx", "abort", "cycles", "dso_from", "dso_to", "mispredict", "comm,dso_from,dso_to,cycles"]
    {
        tables_agree(&file, &["-b", "-s", keys]);
    }
    let rows = table("pmc", &file, &["-b", "-s", "symbol_from,symbol_to,srcline_from,srcline_to"]);
    assert!(rows.keys().all(|row| row[0].starts_with("[.] ") && row[2].starts_with("deep.c:")), "{rows:?}");
    // By default the report counts branches if they were recorded; `--no-branch-stack` counts samples.
    let samples = |options: &[&str]| pmc_json(&file, options)["events"][0]["samples"].as_u64().unwrap();
    assert!(samples(&[]) > 600 && samples(&["--no-branch-stack"]) == 300);
    for fields in [
        "brstack",
        "brstack,dso",
        "brstacksym",
        "brstacksym,dso",
        "brstackoff",
        "brstackoff,dso",
        "comm,ip,brstacksym",
    ] {
        scripts_agree(&file, &["-F", fields]);
    }
    let lines = super::against::script("pmc", &file, &["--json"]);
    std::fs::remove_file(lab.path("deep")).unwrap();
    for fields in ["brstack", "brstackoff", "brstackoff,dso"] {
        scripts_agree(&file, &["-F", fields]);
    }
    assert!(lines.contains(r#""from_symbol":"down""#) && lines.contains(r#""type":"RET""#));
}

#[test]
fn memory_accesses_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let file = write(&lab, "accesses", 5);
    for keys in ["dso_daddr", "mem", "snoop", "tlb", "locked", "blocked", "local_weight", "mem,snoop,tlb,dso"]
    {
        tables_agree(&file, &["--mem-mode", "-s", keys]);
    }
    // perf prints a column without a heading after the data symbol.
    let named = |tool: &str| -> Vec<(String, f64)> {
        let rows = table(tool, &file, &["--mem-mode", "-s", "symbol_daddr"]);
        rows.into_iter().map(|(words, share)| (words[0].clone(), share)).collect()
    };
    let (theirs, ours) = (named("perf"), named("pmc"));
    assert_eq!(theirs.len(), ours.len(), "{theirs:?} {ours:?}");
    for ((a, b), (c, d)) in theirs.iter().zip(&ours) {
        assert!(a == c && (b - d).abs() < 0.5, "{theirs:?} {ours:?}");
    }
    assert!(ours.iter().any(|(name, _)| name == "[.] sink+0x0"), "{ours:?}");
    scripts_agree(&file, &["-F", "comm,weight"]);
    for perf in oracle::perfs().into_iter().skip(1) {
        let fields = ["script", "-F", "comm,weight,ins_lat,retire_lat", "-i"];
        let theirs = std::process::Command::new(&perf).args(fields).arg(&file).output().unwrap();
        let ours = kit::pmc().args(fields).arg(&file).output().unwrap();
        assert!(!ours.stdout.is_empty() && theirs.stdout == ours.stdout, "{}", perf.display());
    }
    for keys in ["local_ins_lat", "dso_size"] {
        tables_agree(&file, &["--mem-mode", "-s", keys]);
    }
    let averages =
        ["-F", "overhead,weight1,weight2,weight3,sym", "--no-inline", "--no-branch-stack"].map(str::to_owned);
    let rows_of = |program: &Path| {
        let all = ["report", "--stdio", "-t", "|", "--no-children", "-i", file.to_str().unwrap()];
        let ran =
            kit::Ran::from(std::process::Command::new(program).args(all).args(&averages).output().unwrap());
        let lines = ran.stdout.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines
            .map(|line| line.split('|').map(|word| word.trim().to_owned()).collect())
            .collect::<BTreeSet<Vec<_>>>()
    };
    let ours = rows_of(Path::new(env!("CARGO_BIN_EXE_pmc")));
    assert!(!ours.is_empty() && ours.iter().all(|row| row.len() == 5 && row[2].as_str() > "0.0"), "{ours:?}");
    // perf has these columns since version 7.
    for perf in oracle::perfs().into_iter().skip(1) {
        assert_eq!(rows_of(&perf), ours, "{}", perf.display());
    }
}

/// The variables are larger than the part of their segment that is in the file.
const LARGE: &str = "
    enum { SIZE = 100000 };
    static volatile long first[SIZE], second[SIZE];
    long initialized = 5;
    int main(void) {
        for (int i = 0; i < SIZE; i += 64) { first[i] = initialized; second[i] = i; }
        return 0;
    }";

#[test]
fn large_variables_without_initial_values_have_names() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("large", LARGE);
    let file = lab.path("faults");
    let [program, file] = [&program, &file].map(|path| path.to_str().unwrap());
    kit::run(&["record", "-q", "-e", "page-faults:u", "-c", "1", "-d", "-o", file, "--", program]).expect(0);
    let rows =
        kit::run(&["report", "-i", file, "--stdio", "--mem-mode", "-s", "symbol_daddr"]).expect(0).stdout;
    // Each variable has 195 pages, and each page is touched once.
    for name in ["first+0x", "second+0x"] {
        let count = rows.lines().filter(|line| line.contains(name)).count();
        assert!(count > 190, "{name}: {count} of {rows}");
    }
}
