//! Records that perf 6.1 and the test kernel do not write: deferred call chains (6.18), counts of lost
//! samples, empty stack copies, calls kept by the processor (LBR).

use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{branch_sample_type, sample_type};

use super::against::{pmc_json, script};
use crate::kit;

pub(super) const USER: u64 = -512i64 as u64;
const KERNEL: u64 = -128i64 as u64;
const DEFERRED: u64 = -640i64 as u64;

fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let mut out = kind.to_ne_bytes().to_vec();
    out.extend(misc.to_ne_bytes());
    out.extend((8 + words.len() as u16 * 8).to_ne_bytes());
    out.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    out
}

fn who(tid: u64) -> u64 {
    100 | tid << 32
}

/// Sample fields: id, address, thread, time, period and call chain.
const CHAINS: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::PERIOD
    | sample_type::CALLCHAIN;

/// Writes a recording of these records, whose samples have the layout of [`CHAINS`].
pub(super) fn write(path: &std::path::Path, read_format: u64, records: &[Vec<u8>]) {
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(CHAINS);
    attr.set_read_format(read_format);
    write_as(path, attr, records);
}

/// Writes a recording of these records without information about its machine. Its process has a program
/// mapped from address 0 on.
fn write_as(path: &std::path::Path, attr: Attr, records: &[Vec<u8>]) {
    let mapping = [who(100), 0, MAPPED, 0, u64::from_ne_bytes(*b"/no/prog"), 0, who(100), 0, 7];
    let records = [&[record(1, 2, &mapping)], records].concat();
    write_whole(path, attr, &Features::default(), &records);
}

/// End of the mapped addresses.
const MAPPED: u64 = 1 << 40;

/// Writes a recording with these sections and records.
fn write_whole(path: &std::path::Path, mut attr: Attr, features: &Features, records: &[Vec<u8>]) {
    attr.set(Flag::SampleIdAll, true);
    let event = RecordedEvent { attr, ids: vec![7], name: Some("cpu-clock".to_owned()) };
    let mut writer =
        Writer::create(path, &[event], &Features::default(), WriteOptions::default()).expect("it begins");
    for record in records {
        writer.append(&[record]).expect("it is written");
    }
    writer.finish(features).expect("it ends");
}

/// A sample. Its address is the first of the chain, unless the whole chain is deferred.
pub(super) fn sample(misc: u16, tid: u64, time: u64, chain: &[u64]) -> Vec<u8> {
    let ip = if chain[0] == DEFERRED { 0x1111 } else { chain[1] };
    let mut words = vec![7, ip, who(tid), time, 1, chain.len() as u64];
    words.extend(chain);
    record(9, misc, &words)
}

fn deferred(tid: u64, time: u64, cookie: u64, chain: &[u64]) -> Vec<u8> {
    let mut words = vec![cookie, chain.len() as u64];
    words.extend(chain);
    words.extend([who(tid), time, 7]);
    record(22, 0, &words)
}

/// The addresses of each sample.
fn stacks(file: &std::path::Path) -> Vec<Vec<String>> {
    let text = script("pmc", file, &["-F", "tid,ip"]);
    let parts = text.split("\n\n").filter(|part| !part.trim().is_empty());
    parts.map(|part| part.lines().skip(1).map(|line| line.trim().to_owned()).collect()).collect()
}

#[test]
fn deferred_call_chains_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deferred");
    let kernel = 0xffff_ffff_8100_0000;
    write(
        &file,
        0,
        &[
            // Two samples in the kernel wait for the same user-mode chain. One in the process waits for
            // another thread's chain with the same number.
            sample(1, 100, 10, &[KERNEL, kernel, kernel + 16, DEFERRED, 5]),
            sample(1, 100, 20, &[KERNEL, kernel + 32, DEFERRED, 5]),
            sample(2, 101, 25, &[DEFERRED, 5]),
            deferred(100, 30, 5, &[USER, 0xa000, 0xb000, 0xc000]),
            deferred(101, 35, 5, &[USER, 0x1111, 0xd000]),
            // The chain of this sample never arrives.
            sample(1, 100, 40, &[KERNEL, kernel, DEFERRED, 6]),
        ],
    );
    let want: [&[&str]; 4] = [
        &["ffffffff81000000", "ffffffff81000010", "a000", "b000", "c000"],
        &["ffffffff81000020", "a000", "b000", "c000"],
        &["1111", "d000"],
        &["ffffffff81000000"],
    ];
    assert_eq!(stacks(&file), want);
    let document = pmc_json(&file, &["--percent-limit", "0"]);
    assert_eq!(document["trust"]["samples"], 4);
    assert_eq!(document["trust"]["frames"], 5 + 4 + 2 + 1);
}

#[test]
fn unmapped_callers_are_truncated_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("false");
    let kernel = 0xffff_ffff_8100_0000;
    let chains: [&[u64]; 5] = [
        // Invalid from some address to the end (once in the process, once after the kernel); between valid
        // addresses; the sampled address itself; no invalid address.
        &[USER, 0x1111, 0x2222, MAPPED + 1, 7 << 60],
        &[KERNEL, kernel, USER, 0x1111, MAPPED + 1],
        &[USER, 0x1111, MAPPED + 1, 0x2222],
        &[USER, MAPPED + 1],
        &[USER, 0x1111, 0x2222],
    ];
    let level = |chain: &[u64]| if chain[0] == KERNEL { 1 } else { 2 };
    let samples: Vec<_> = chains.iter().map(|chain| sample(level(chain), 100, 10, chain)).collect();
    write(&file, 0, &samples);
    // In the text output for perf's scripts, chains stay as they were recorded.
    assert_eq!(stacks(&file).iter().map(Vec::len).collect::<Vec<_>>(), [4, 3, 3, 1, 2]);
    let document = pmc_json(&file, &["--percent-limit", "0"]);
    let trust = &document["trust"];
    assert_eq!((&trust["cut_off"], &trust["frames"]), (&2.into(), &(2 + 2 + 3 + 1 + 2).into()));
    let rows = document["events"][0]["rows"].as_array().unwrap();
    let mut names: Vec<&str> = rows.iter().map(|row| row["sym"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["[kernel.kallsyms]", "[not mapped]", "[prog]"]);
    let text = kit::run(&["report", "--stdio", "-i", file.to_str().unwrap()]).expect(0);
    text.prints(&["40.0% of the stacks led to unmapped addresses and were truncated there."]);
}

#[test]
fn lost_counts_of_events_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lost");
    // PERF_FORMAT_ID | PERF_FORMAT_LOST.
    let read = |tid: u64, value: u64, lost: u64| record(8, 0, &[who(tid), value, 7, lost, who(tid), 50, 7]);
    write(&file, 4 | 16, &[sample(2, 100, 10, &[USER, 0x1111]), read(100, 40, 3), read(101, 60, 4)]);
    assert_eq!(pmc_json(&file, &[])["trust"]["lost_samples"], 7);
    let text = kit::run(&["report", "--stdio", "-T", "-i", file.to_str().unwrap()]).expect(0);
    let text = text.prints(&["7 lost (87.5%)", "PID", "cpu-clock"]).stdout;
    let row = |tid: &str| text.lines().find(|line| line.split_whitespace().nth(1) == Some(tid)).unwrap();
    assert!(row("100").ends_with(" 40") && row("101").ends_with(" 60"), "{text}");
}

#[test]
fn recorded_callers_are_kept_without_a_stack_copy() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("copies");
    let kernel = 0xffff_ffff_8100_0000;
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(CHAINS | sample_type::REGS_USER | sample_type::STACK_USER);
    // bp, sp and ip.
    attr.set_sample_regs_user(0b111 << 6);
    attr.set_sample_stack_user(16);
    // Fields after the chain: the ABI (0: no registers), registers, requested size, the copy and its valid
    // size.
    let copied = |misc: u16, chain: &[u64], behind: &[u64]| {
        let mut words = vec![7, chain[1], who(100), 10, 1, chain.len() as u64];
        words.extend(chain.iter().chain(behind));
        record(9, misc, &words)
    };
    let in_process = [USER, 0x1111, 0x2222, 0x3333];
    let in_kernel = [KERNEL, kernel, kernel + 16, USER, 0x1111, 0x2222];
    let regs = [2, 0, 0x7000, 0x1111];
    write_as(
        &file,
        attr,
        &[
            copied(2, &in_process, &[&regs[..], &[0]].concat()),
            copied(2, &in_process, &[&regs[..], &[16, 0, 0, 0]].concat()),
            copied(2, &in_process, &[0, 0]),
            copied(1, &in_kernel, &[&regs[..], &[0]].concat()),
            // The copy exists but unwinding it fails.
            copied(2, &in_process, &[&regs[..], &[16, 0, 0, 16]].concat()),
            copied(1, &in_kernel, &[&regs[..], &[16, 0, 0, 16]].concat()),
            // A 32-bit process: its words are not 64-bit return addresses.
            copied(2, &[USER, 0x1111], &[1, 0x7000, 0x7000, 0x1111, 16, 0, 0x2222, 16]),
            // An unknown ABI.
            copied(2, &[USER, 0x1111], &[3, 0x7000, 0x7000, 0x1111, 16, 0, 0x2222, 16]),
        ],
    );
    let (process, kernel): ([&str; 3], [&str; 4]) =
        (["1111", "2222", "3333"], ["ffffffff81000000", "ffffffff81000010", "1111", "2222"]);
    let want: [&[&str]; 8] = [&process, &process, &process, &kernel, &process, &kernel, &["1111"], &["1111"]];
    assert_eq!(stacks(&file), want);
    let trust = &pmc_json(&file, &[])["trust"];
    assert_eq!((&trust["frames"], &trust["ends"]["compat"]), (&(4 * 3 + 2 * 4 + 2).into(), &1.into()));
}

/// Three functions, each with a frame of 64 bytes that only the unwind tables describe.
const FRAMES: &str = ".globl _start
_start: .cfi_startproc; .cfi_undefined rip; call outer; nop; .cfi_endproc
outer: .cfi_startproc; .cfi_def_cfa rsp, 64; call middle; ret; .cfi_endproc
middle: .cfi_startproc; .cfi_def_cfa rsp, 64; call inner; ret; .cfi_endproc
inner: .cfi_startproc; .cfi_def_cfa rsp, 64; nop; ret; .cfi_endproc
";

/// A recording of the program above: samples in `inner`, each with its time, the size of its stack copy and
/// the requested size.
fn copies(dir: &std::path::Path, samples: &[(u64, usize, usize)]) -> std::path::PathBuf {
    let path = |name: &str| dir.join(name).display().to_string();
    std::fs::write(path("a.s"), FRAMES).unwrap();
    let built = format!("as -o {0}.o {0}.s && ld -Ttext 0x401000 -o {0} {0}.o", path("a"));
    assert!(std::process::Command::new("sh").args(["-c", &built]).status().unwrap().success());
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(CHAINS | sample_type::REGS_USER | sample_type::STACK_USER);
    // bp, sp and ip.
    attr.set_sample_regs_user(0b111 << 6);
    attr.set_sample_stack_user(192);
    let mut name = path("a").into_bytes();
    name.resize(name.len().next_multiple_of(8) + 8, 0);
    let name = name.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    let mapping = [who(100), 0x40_1000, 0x1000, 0x1000].into_iter().chain(name).chain([who(100), 0, 7]);
    let mut records = vec![record(1, 2, &mapping.collect::<Vec<_>>())];
    let mut stack = [0; 24];
    (stack[7], stack[15], stack[23]) = (0x40_1011, 0x40_100b, 0x40_1005);
    for &(time, copied, asked) in samples {
        let front = [7, 0x40_1012, who(100), time, 1, 2, USER, 0x40_1012];
        let regs = [2, 0, 0x7000, 0x40_1012, asked as u64];
        let words = front.iter().chain(&regs).chain(&stack[..asked / 8]).copied().chain([copied as u64]);
        records.push(record(9, 2, &words.collect::<Vec<_>>()));
    }
    let file = dir.join("copies");
    write_whole(&file, attr, &Features::default(), &records);
    file
}

fn can_build() -> bool {
    cfg!(target_arch = "x86_64") && !["as", "ld"].map(kit::need_program).contains(&false)
}

#[test]
fn stack_copies_are_joined_in_time_order() {
    if !can_build() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The first sample in the file is the last in time; the others complete its stack.
    let file = copies(dir.path(), &[(30, 64, 64), (10, 192, 192), (20, 128, 128)]);
    let names = |file: &std::path::Path| script("pmc", file, &["-F", "sym"]);
    let whole = "\n inner\n middle\n outer\n _start\n\n".repeat(3);
    assert_eq!(names(&file), whole);
    let trust = &pmc_json(&file, &[])["trust"];
    assert_eq!((&trust["rooted"], &trust["ends"]["cut"]), (&3.into(), &0.into()), "{trust:#}");
    let to = dir.path().join("chains");
    let paths = [&file, &to].map(|path| path.to_str().unwrap());
    kit::run(&["inject", "--convert-callchain", "-i", paths[0], "-o", paths[1]]).expect(0);
    assert_eq!(names(&to), whole);
    let trust = &pmc_json(&file, &["--no-join"])["trust"];
    assert_eq!((&trust["rooted"], &trust["ends"]["cut"]), (&1.into(), &2.into()), "{trust:#}");
}

#[test]
fn stack_that_ends_within_its_copy_is_not_truncated() {
    if !can_build() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // If the requested size exceeds the stack, the copy is complete, so a failing walk is not a truncation.
    let ends = |asked: usize| {
        let file = copies(dir.path(), &[(10, 128, asked)]);
        let ends = pmc_json(&file, &[])["trust"]["ends"].clone();
        (ends["cut"].as_u64(), ends["lost"].as_u64())
    };
    assert_eq!((ends(128), ends(192)), ((Some(1), Some(0)), (Some(0), Some(1))));
}

#[test]
fn lbr_call_stacks_become_chains() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lbr");
    let kernel = 0xffff_ffff_8100_0000;
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(CHAINS | sample_type::BRANCH_STACK);
    attr.set_branch_sample_type(branch_sample_type::USER | branch_sample_type::CALL_STACK);
    let kept = |misc: u16, chain: &[u64], branches: &[(u64, u64)]| {
        let mut words = vec![7, chain[1], who(100), 10, 1, chain.len() as u64];
        words.extend(chain.iter().chain(&[branches.len() as u64]));
        words.extend(branches.iter().flat_map(|(from, to)| [*from, *to, 0]));
        record(9, misc, &words)
    };
    let calls = [(0x5000, 0x1100), (0x6000, 0x4f00)];
    write_as(
        &file,
        attr,
        &[
            kept(2, &[USER, 0x1111, 0x2222], &calls),
            kept(1, &[KERNEL, kernel, USER, 0x1111], &calls),
            // The outermost call returns to a recorded caller, so the callers after it come from the chain.
            kept(2, &[USER, 0x1111, 0x9999, 0x6005, 0x7005], &calls),
            kept(2, &[USER, 0x1111, 0x2222], &[]),
            // A kernel thread; the calls that the processor kept belong to another process.
            kept(1, &[KERNEL, kernel, kernel + 16], &calls),
        ],
    );
    let want: [&[&str]; 5] = [
        &["1111", "5000", "6000"],
        &["ffffffff81000000", "1111", "5000", "6000"],
        &["1111", "5000", "6000", "7004"],
        &["1111", "2222"],
        &["ffffffff81000000", "ffffffff81000010"],
    ];
    assert_eq!(stacks(&file), want);
    assert_eq!(pmc_json(&file, &[])["trust"]["frames"], 3 + 4 + 4 + 2 + 2);
}

#[test]
fn running_kernel_symbols_are_used_only_for_its_own_recordings() {
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let of = |line: &str, name: &str| line.split_once(" T ").is_some_and(|(_, rest)| rest == name);
    let start = |name: &str| {
        let line = kallsyms.lines().find(|line| of(line, name))?;
        u64::from_str_radix(line.split(' ').next()?, 16).ok().filter(|start| *start != 0)
    };
    let (Some(text), Some(function)) = (start("_text"), start("schedule")) else {
        kit::need("kallsyms", false, "this user does not see the kernel's addresses");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernel");
    let name = b"[kernel.kallsyms]_text\0\0";
    let words = name.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
    let fields = [u64::from(u32::MAX), text, 1 << 25, text];
    // A mapping of the kernel, followed by pid, time and id.
    let mapped = record(1, 1, &fields.into_iter().chain(words).chain([0, 0, 7]).collect::<Vec<_>>());
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(CHAINS);
    let symbol = |features: &Features, options: &[&str]| {
        write_whole(
            &file,
            attr.clone(),
            features,
            &[mapped.clone(), sample(1, 100, 10, &[KERNEL, function])],
        );
        let symbol = pmc_json(&file, options)["events"][0]["rows"][0]["sym"].clone();
        symbol.as_str().unwrap_or("none").to_owned()
    };
    let host = |file: &str| Some(std::fs::read_to_string(file).unwrap().trim().to_owned());
    let here = Features {
        hostname: host("/proc/sys/kernel/hostname"),
        os_release: host("/proc/sys/kernel/osrelease"),
        ..Features::default()
    };
    let elsewhere = Features { os_release: Some("2.6.32".to_owned()), ..here.clone() };
    let unsaid = Features::default();
    let symfs = ["--symfs", dir.path().to_str().unwrap()];
    assert_eq!(symbol(&here, &[]), "schedule");
    assert_eq!(symbol(&unsaid, &["--kallsyms", "/proc/kallsyms"]), "schedule");
    for (features, options) in [(&unsaid, &[][..]), (&elsewhere, &[]), (&here, &symfs), (&unsaid, &symfs)] {
        assert_eq!(symbol(features, options), "[kernel.kallsyms]", "{options:?}");
    }
}
