//! Stack copies that pmc unwinds while recording: the file, its messages, and the same results as with
//! deferred unwinding.

use std::collections::BTreeMap;

use super::*;
use crate::kit::burn::{burn_flags, least_samples, loops, share_error};

/// A program without frame pointers, which works for the given milliseconds. One part of the work is below
/// `alpha`, three parts are below `beta`.
const HOT: &str = r#"
#include <stdlib.h>
volatile unsigned long sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i * 7; }
__attribute__((noinline)) int rec(int d, int n) {
    char b[64];
    b[d % 64] = d;
    if (d == 0) { leaf(n); return b[0]; }
    int r = rec(d - 1, n) + b[d % 64];
    sink += r;
    return r;
}
__attribute__((noinline)) int alpha(int n) { return rec(10, n) + 1; }
__attribute__((noinline)) int beta(int n) { return rec(20, 3 * n) + 2; }
int main(int c, char **v) {
    int s = c;
    for_cpu_ms(atoi(v[1])) { s += alpha(loops(50000)); s += beta(loops(50000)); }
    return s == 42;
}
"#;

#[track_caller]
fn hot(lab: &Lab) -> PathBuf {
    lab.program("hot", HOT, &["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"])
}

/// Percentage of samples with each function anywhere in their stack, from pmc's report, and the percentage
/// of complete stacks.
#[track_caller]
fn totals(file: &Path) -> (BTreeMap<String, f64>, f64) {
    let mut pmc = kit::pmc();
    let run: kit::Ran =
        pmc.args(["report", "--json", "-s", "sym", "-i"]).arg(file).output().expect("pmc starts").into();
    let json: serde_json::Value = serde_json::from_str(&run.expect(0).stdout).expect("one JSON document");
    let event = &json["events"][0];
    let rows = event["rows"].as_array().expect("rows");
    let share = |row: &serde_json::Value| {
        let name = row["sym"].as_str()?.to_owned();
        Some((name, row["total"]["percent"].as_f64()?))
    };
    let trust = &json["trust"];
    let rooted = trust["rooted"].as_f64().expect("a count") / trust["stacks"].as_f64().expect("a count");
    (rows.iter().filter_map(share).collect(), rooted)
}

#[test]
fn live_unwinding_matches_deferred_unwinding() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let program = hot(&lab);
    // Processes come and go, so pmc must track several address spaces.
    let shell = format!("for i in 1 2 3 4 5 6; do {0} 130; done; exec {0} 330", program.display());
    let (live, deferred) = (lab.path("live"), lab.path("deferred"));
    let work = ["sh", "-c", &shell];
    let options =
        |when| ["-e", "cpu-clock", "--call-graph", "dwarf", "-F", "2000", "-m", "16M", "--unwind", when];
    let run = record(&live, &options("live"), &work).expect(0).says(&["none lost"]);
    record(&deferred, &options("deferred"), &work).expect(0).says(&["none lost"]);
    let samples = told(&run.stderr, " samples");
    assert_eq!((our_samples(&live), second_opinion(&live)), (samples, samples));

    let [size, before] = [&live, &deferred].map(|file| std::fs::metadata(file).expect("it is there").len());
    // On a very busy machine some stacks may be left to the reader.
    let all = !run.stderr.contains("saved with a copy of the stack");
    assert!(!all || size * 10 < before, "{size} bytes instead of {before}");
    let events = perf(&["evlist", "-v"], &live);
    assert!(
        !all || events.contains("CALLCHAIN")
            && !events.contains("STACK_USER")
            && !events.contains("REGS_USER"),
        "{events}"
    );

    let error = 100.0 * (share_error(samples) + share_error(our_samples(&deferred)));
    let ((ours, our_roots), (theirs, their_roots)) = (totals(&live), totals(&deferred));
    for name in ["main", "alpha", "beta", "rec", "leaf"] {
        let share = |of: &BTreeMap<String, f64>| of.get(name).copied().unwrap_or(0.0);
        let (live, deferred) = (share(&ours), share(&theirs));
        assert!(
            deferred > 10.0 && (live - deferred).abs() < error,
            "{name}: {live} % live, {deferred} % deferred"
        );
    }
    assert!(our_roots > 0.97 && their_roots > 0.97, "{our_roots} and {their_roots} of stacks complete");
    if !all {
        return;
    }
    // perf treats the file as a normal recording with call chains.
    let perfs = perf(&["report", "--stdio", "--no-inline", "-g", "none", "-s", "symbol"], &live);
    let beta = perfs
        .lines()
        .find(|line| line.split_whitespace().any(|word| word == "beta"))
        .unwrap_or_else(|| panic!("{perfs}"));
    let beta: f64 = beta.trim().split('%').next().and_then(|n| n.parse().ok()).expect("a share");
    assert!((beta - ours["beta"]).abs() < 0.1, "perf {beta}, pmc {}", ours["beta"]);
}

/// The callers of `wide` are outside the copy.
const WIDE: &str = r#"
volatile unsigned long sink;
__attribute__((noinline)) int leaf(int n) { for (int i = 0; i < n; i++) sink += i * 7; return n; }
__attribute__((noinline)) int wide(int n) {
    volatile char b[20000];
    b[n % 20000] = n;
    return leaf(n) + b[n % 20000];
}
int main(void) { for_cpu_ms(WORK_MS) sink += wide(loops(100000)); return 0; }
"#;

/// Builds [`WIDE`] with or without frame pointers, to work for this CPU time.
#[track_caller]
fn wide(lab: &Lab, frame_pointers: &str, ms: u32) -> PathBuf {
    let source = WIDE.replace("WORK_MS", &ms.to_string());
    lab.program("wide", &source, &["-O2", frame_pointers, "-fno-optimize-sibling-calls"])
}

#[test]
fn stack_copies_and_frame_pointers_complement_each_other() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let hot = hot(&lab);
    let wide = wide(&lab, "-fno-omit-frame-pointer", 400);
    let main = |mode: &str, program: &Path| {
        let file = lab.path("stacks");
        // Otherwise, pmc also completes stacks with frames that it reads from memory.
        let alone: &[&str] = if mode == "fp" { &[] } else { &["--no-join"] };
        let options = [&["-e", "cpu-clock:u", "--call-graph", mode, "-F", "2000"], alone].concat();
        let work = [program.to_str().expect("UTF-8"), "400"];
        record(&file, &options, &work).expect(0).says(&["none lost"]);
        assert_eq!(perf_samples(&file), our_samples(&file), "{mode}");
        totals(&file).0.get("main").copied().unwrap_or(0.0)
    };
    let table =
        [("fp", &wide), ("dwarf", &wide), ("auto", &wide), ("fp", &hot), ("dwarf", &hot), ("auto", &hot)];
    let whole = table.map(|(mode, program)| main(mode, program) > 90.0);
    assert_eq!(whole, [true, false, true, false, true, true]);
}

#[test]
fn frames_beyond_the_copy_are_read_from_memory() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let wide = wide(&lab, "-fomit-frame-pointer", 1500);
    let complete = |options: &[&str]| {
        let file = lab.path("stacks");
        let options = [&["-e", "cpu-clock:u", "--call-graph", "auto", "-F", "2000"], options].concat();
        record(&file, &options, &[wide.to_str().expect("UTF-8")]).expect(0);
        let (functions, rooted) = totals(&file);
        (rooted, functions.get("main").copied().unwrap_or(0.0))
    };
    // Those of the first round are cut, because there was nothing to read yet.
    let (rooted, main) = complete(&[]);
    assert!(rooted > 0.5 && main > 50.0, "{rooted}, {main} %");
    let (rooted, main) = complete(&["--no-join"]);
    assert!(rooted < 0.1 && main < 10.0, "{rooted}, {main} %");
}

/// `main` keeps 200 KB on the stack: a list whose nodes look like frame records, with the next node followed
/// by code. `visit` uses the frame-pointer register to walk the list.
const LIST: &str = r#"
#include <cstddef>
struct Node { Node *next; int (*work)(int); };
volatile int sink;
__attribute__((noinline)) int work(int n) { for (int i = 0; i < n; i++) sink = sink + i * 7; return sink; }
__attribute__((noinline)) int other(int n) { return work(n) + 1; }
__attribute__((noinline)) int visit(Node *first, int n) {
    int sum = 0;
    for (Node *at = first; at; at = at->next) {
        register Node *in_register asm("rbp") = at;
        asm volatile("" : "+r"(in_register));
        sum += in_register->work(n);
        asm volatile("" : "+r"(in_register));
    }
    return sum;
}
int main() {
    Node nodes[12800];
    for (size_t i = 0; i < 12800; i++) nodes[i] = { i + 1 < 12800 ? &nodes[i + 1] : nullptr, i % 3 ? work : other };
    int sum = 0;
    for_cpu_ms(300) sum += visit(nodes, loops(300));
    return sum == 42;
}
"#;

/// CPU time of [`LIST`], in milliseconds.
const LIST_MS: u64 = 300;

/// Copies a recording and clears the user part of the kernel's frame-pointer chains, so only DWARF unwinding
/// remains.
fn without_frame_pointers(file: &Path, to: &Path) {
    let mut bytes = std::fs::read(file).expect("a recording");
    let word =
        |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (attr, data) = (word(&bytes, 24) as usize, word(&bytes, 40) as usize);
    let sample_type = word(&bytes, attr + 24);
    let (callchain, read) = (1u64 << 5, 1u64 << 4);
    assert_eq!(sample_type & (callchain | read), callchain, "{sample_type:x}");
    // One word each: ip, tid, time, addr, id, cpu, period, stream id, identifier.
    let front = (sample_type & 0x1_03cf).count_ones() as usize;
    let end = data + word(&bytes, 48) as usize;
    let mut record = data;
    while record < end {
        let size = u16::from_ne_bytes([bytes[record + 6], bytes[record + 7]]) as usize;
        if bytes[record..record + 4] == 9u32.to_ne_bytes() {
            let chain = record + 8 + 8 * front;
            let words = (1..=word(&bytes, chain) as usize).map(|index| chain + 8 * index);
            let user = words.skip_while(|at| word(&bytes, *at) != -512i64 as u64).skip(1);
            user.collect::<Vec<_>>().into_iter().for_each(|at| bytes[at..at + 8].fill(0));
        }
        record += size;
    }
    std::fs::write(to, bytes).expect("room");
}

#[test]
fn frame_pointer_chains_never_replace_dwarf_chains() {
    if !ready() || !kit::need_program("g++") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    let (source, program) = (lab.path("list.cpp"), lab.path("list"));
    std::fs::write(&source, LIST).expect("a source");
    let options = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
    assert!(
        Command::new("g++")
            .args(burn_flags())
            .args(options)
            .args([&program, &source])
            .status()
            .expect("g++ starts")
            .success()
    );
    let work = [program.to_str().expect("UTF-8")];
    for when in ["live", "deferred"] {
        let file = lab.path(when);
        // A disk may take longer to write the copies than the default rings last.
        let options =
            ["-e", "cpu-clock:u", "--call-graph", "auto,65528", "-F", "2000", "-m", "32M", "--unwind", when];
        record(&file, &options, &work).expect(0).says(&["none lost"]);
        let stacks = chains_of(&file, "visit", &["--no-inline"]);
        let is_whole = |chain: &&Vec<String>| {
            let mut functions: Vec<&str> =
                chain.iter().map(|name| name.split('(').next().unwrap_or(name)).collect();
            // The callers of `main` are read from memory.
            let main = functions.iter().position(|name| *name == "main");
            functions.truncate(main.map_or(functions.len(), |main| main + 1));
            ["work visit main", "work other visit main", "other visit main", "visit main"]
                .contains(&functions.join(" ").as_str())
        };
        let broken: Vec<_> = stacks.iter().filter(|chain| !is_whole(chain)).take(3).collect();
        let is_enough = stacks.len() >= least_samples(LIST_MS, 2000);
        assert!(is_enough && broken.is_empty(), "{when}: {} {broken:?}", stacks.len());
    }
    // The same copies without frame pointers give the same stacks, or shorter ones.
    let (auto, dwarf) = (lab.path("deferred"), lab.path("dwarf"));
    without_frame_pointers(&auto, &dwarf);
    let [auto, dwarf] = [auto, dwarf].map(|file| chains_of(&file, "", &[]));
    assert!(
        auto.len() == dwarf.len() && auto.iter().zip(&dwarf).all(|(auto, dwarf)| auto.starts_with(dwarf))
    );
}

/// Goes 80 calls deep, far beyond a copy of 8 KiB. Go's unwind tables never give the location of the frame
/// pointer.
const DEEP_GO: &str = r#"
package main
import "syscall"
//go:noinline
func leaf(n int) int { s := 0; for i := 0; i < LOOPS; i++ { s += i * n % 7 }; return s }
//go:noinline
func level(d int) int { var b [60]int; b[d%60] = d; if d == 0 { return leaf(d) + b[0] }; return level(d-1) + b[d%60] }
func cpu() int64 { var u syscall.Rusage; syscall.Getrusage(0, &u); return u.Utime.Nano() + u.Stime.Nano() }
func main() { s := 0; for end := cpu() + 500e6; cpu() < end; { s += level(80) }; if s == 42 { panic(s) } }
"#;

#[test]
fn frame_pointers_continue_where_the_copy_ends() {
    if !ready() || !kit::need_program("go") {
        return;
    }
    let lab = Lab::new();
    let (source, program, file) = (lab.path("deep.go"), lab.path("deepgo"), lab.path("file"));
    std::fs::write(&source, DEEP_GO.replace("LOOPS", &loops(100_000).to_string())).expect("a source");
    let mut go = Command::new("go");
    go.args(["build", "-o"])
        .args([&program, &source])
        .env("GO111MODULE", "off")
        .env("GOCACHE", lab.path("cache"));
    assert!(go.status().expect("go starts").success());
    let options = ["-e", "cpu-clock:u", "--call-graph", "auto,8192", "--no-join", "-F", "1000"];
    record(&file, &options, &[program.to_str().expect("UTF-8")]).expect(0);
    let stacks = chains_of(&file, "main.leaf", &["--no-join"]);
    let levels = |chain: &Vec<String>| chain.iter().filter(|name| *name == "main.level").count();
    // A function that is just being entered has no frame record yet, so the kernel skips its caller.
    let exact = stacks.iter().filter(|chain| levels(chain) == 81).count();
    let longest = stacks.iter().map(levels).max();
    assert!(
        stacks.len() >= least_samples(500, 1000) && longest == Some(81) && exact * 100 > stacks.len() * 95,
        "{exact} of {}, {longest:?}",
        stacks.len()
    );
}

/// Touches a new page at each level of a recursion of 24 KiB, on the way down and back, in different leaf
/// functions. Each touch is one page fault, so every run samples the same places.
const DEEP: &str = r#"
#include <sys/mman.h>
char *page;
__attribute__((noinline)) void even(void) { *(volatile char *)page = 1; page += 4096; }
__attribute__((noinline)) void odd(void) { even(); *(volatile char *)page = 1; page += 4096; }
__attribute__((noinline)) int level(int d) {
    volatile char b[1000];
    b[d] = d;
    if (d % 2) odd(); else even();
    if (d < 24) b[0] = level(d + 1);
    if (d % 3) even(); else odd();
    return b[d];
}
__attribute__((noinline)) void touch(void) { volatile char b[65536]; for (int i = 65535; i >= 0; i -= 64) b[i] = 1; }
int main(void) {
    page = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(page, 4 << 20, MADV_NOHUGEPAGE);
    touch();
    return level(0) == 42;
}
"#;

/// The functions of each sample with `level` in it, from `pmc script`.
#[track_caller]
fn chains(file: &Path, more: &[&str]) -> Vec<Vec<String>> {
    chains_of(file, "level", more)
}

/// The functions of each sample with this function in it, innermost first, from `pmc script`.
#[track_caller]
pub(super) fn chains_of(file: &Path, function: &str, more: &[&str]) -> Vec<Vec<String>> {
    let mut pmc = kit::pmc();
    pmc.args(["script", "-F", "ip,sym"]).args(more).arg("-i").arg(file);
    let run: kit::Ran = pmc.output().expect("pmc starts").into();
    let stdout = run.expect(0).stdout;
    let name = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let chain = |sample: &str| sample.trim().lines().map(name).collect::<Vec<_>>();
    let of_ours = |chain: &Vec<String>| chain.iter().any(|name| name.starts_with(function));
    stdout.split("\n\n").map(chain).filter(of_ours).collect()
}

#[test]
fn truncated_stacks_are_joined_with_earlier_ones() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let options = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = lab.program("deep", DEEP, &options);
    let recorded = |bytes: &str, more: &[&str]| {
        let (file, mode) = (lab.path("stacks"), format!("dwarf,{bytes}"));
        let options =
            [&["-e", "page-faults:u", "-c", "1", "-m", "16M", "--call-graph", &mode], more].concat();
        let run = record(&file, &options, &[program.to_str().expect("UTF-8")]).expect(0).says(&["none lost"]);
        assert_eq!(perf_samples(&file), our_samples(&file), "{more:?}");
        (file, !run.stderr.contains("saved with a copy of the stack"))
    };
    let whole = chains(&recorded("40000", &[]).0, &[]);
    let from_main = |chains: &[Vec<String>]| {
        chains.iter().filter(|chain| chain.iter().any(|name| name == "main")).count()
    };
    assert!(whole.len() > 50 && from_main(&whole) == whole.len(), "{whole:?}");
    let short = |chain: &Vec<String>| chain[..chain.len().min(2)].to_vec();
    for when in ["live", "deferred"] {
        let (file, all) = recorded("8192", &["--unwind", when]);
        // On a very busy machine, some stacks are left to the reader, which has not seen the others.
        if !all {
            continue;
        }
        assert_eq!(chains(&file, &[]), whole, "{when}");
        let mut pmc = kit::pmc();
        let text: kit::Ran = pmc.args(["report", "-v", "-i"]).arg(&file).output().expect("pmc starts").into();
        text.expect(0).prints(&["of the stacks were truncated at the copy size, and were completed"]);
        // perf also prints the frames after the marker of the joined part.
        let by_perf = perf(&["script", "-F", "ip,sym"], &file).matches(" main").count();
        assert_eq!(by_perf >= whole.len(), when == "live", "{by_perf}");
    }
    // Stacks that are not joined are truncated, and begin like the whole ones.
    let live = chains(&recorded("8192", &["--no-join"]).0, &["--no-join"]);
    let deferred = chains(&recorded("8192", &["--unwind", "deferred"]).0, &["--no-join"]);
    for cut in [live, deferred] {
        assert!(from_main(&cut) < whole.len(), "{cut:?}");
        assert_eq!(cut.iter().map(short).collect::<Vec<_>>(), whole.iter().map(short).collect::<Vec<_>>());
    }
}

#[test]
fn running_process_is_unwound_with_earlier_mappings() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let program = hot(&lab);
    let mut target = Command::new(&program).arg("100000000").spawn().expect("it starts");
    kit::wait_for_ticks(target.id(), 5);
    let pid = target.id().to_string();
    for scope in [&["-p", &pid][..], &["-a"], &["-p", &pid, "-z"], &["-p", &pid, "-d"]] {
        let file = lab.path("running");
        let options = [&["-e", "cpu-clock", "--call-graph", "dwarf", "--timeout", "400"], scope].concat();
        record(&file, &options, &[]).expect(0);
        let (shares, _) = totals(&file);
        let share = |name: &str| shares.get(name).copied().unwrap_or(0.0);
        assert!(share("beta") > 2.0 && share("main") > share("beta"), "{scope:?}: {shares:?}");
        assert_eq!(perf_samples(&file), our_samples(&file), "{scope:?}");
    }
    target.kill().expect("it runs");
    target.wait().expect("it ends");
}

#[test]
fn streams_and_rotated_files_are_unwound() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let program = hot(&lab);
    let stream = lab.path("stream");
    let line = format!(
        "{} record -q -e cpu-clock --call-graph dwarf -o - -- {} 300 >{}",
        crate::kit::binary(),
        program.display(),
        stream.display()
    );
    assert!(Command::new("sh").args(["-c", &line]).status().expect("sh starts").success());
    let chains = perf(&["script", "-F", "ip,sym"], &stream);
    assert!(chains.contains("beta") && chains.contains("main"), "{chains}");
    let row = lab.path("row.data");
    let options = ["-e", "cpu-clock", "--call-graph", "dwarf", "--switch-output=1s"];
    // However fast the machine is, the second file begins before the second run.
    let twice = format!("{0} 1000; sleep 1.2; {0} 1000", program.display());
    record(&row, &options, &["sh", "-c", &twice]).expect(0);
    let files: Vec<PathBuf> = std::fs::read_dir(lab.0.path())
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().contains("row.data."))
        .collect();
    assert!(files.len() > 1, "{files:?}");
    for (file, samples) in
        files.iter().map(|file| (file, our_samples(file))).filter(|(_, samples)| *samples > 100)
    {
        let (shares, _) = totals(file);
        let least = 100.0 * (0.75 - share_error(samples));
        assert!(shares.get("beta").is_some_and(|beta| *beta > least), "{}: {shares:?}", file.display());
    }
}

#[test]
fn samples_not_unwound_in_time_keep_their_stack_copy() {
    if !ready() || !kit::need_program("strace") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("file");
    let mut target = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh starts");
    kit::wait_for_ticks(target.id(), 2);
    let pid = target.id().to_string();
    let options = ["-e", "cpu-clock", "--call-graph", "dwarf,256", "--timeout", "700", "-p", &pid];
    // strace delays the opening of the target's files, so their unwind tables arrive after the recording.
    let delay =
        ["-f", "-qq", "-o", "/dev/null", "-e", "trace=openat2", "-e", "inject=openat2:delay_enter=4s"];
    let mut pmc = kit::pmc();
    let mut strace = Command::new("strace");
    strace.args(delay).arg(pmc.get_program()).arg("record").args(options).arg("-o").arg(&file);
    strace.envs(pmc.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run: kit::Ran = strace.output().expect("strace starts").into();
    let run = run.expect(0).says(&["saved with a copy of the stack"]);
    let samples = told(&run.stderr, " samples");
    assert_eq!((our_samples(&file), perf_samples(&file)), (samples, samples));
    // perf sees two events; pmc treats them as one.
    let events = perf(&["evlist"], &file);
    assert_eq!(events.lines().filter(|line| line.starts_with("cpu-clock")).count(), 2, "{events}");
    let json = pmc.args(["report", "--json", "-s", "comm", "-i"]).arg(&file).output().expect("pmc starts");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("one JSON document");
    let names = json["events"].as_array().expect("events").iter().map(|event| event["name"].as_str());
    assert_eq!(names.flatten().filter(|name| name.starts_with("cpu-clock")).count(), 1);
    assert_eq!(json["trust"]["samples"].as_u64(), Some(samples as u64), "{json:#}");
    // Without stacks that keep their copy, the file has no trace of the second event.
    let run = record(&file, &options, &[]).expect(0);
    let events = if run.stderr.contains("saved with a copy of the stack") { 2 } else { 1 };
    assert_eq!(perf(&["evlist"], &file).lines().filter(|line| line.starts_with("cpu-clock")).count(), events);
    target.kill().expect("it runs");
    target.wait().expect("it ends");
}

/// A 32-bit program without libraries: frames of every kind that gcc makes, in a known order. It works for
/// 200 ms.
const NARROW: &str = r#"
volatile unsigned sink;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) sink += i * 7; }
__attribute__((noinline)) int rec(int d, int n) {
    volatile char b[40];
    b[d] = d;
    if (d == 0) { leaf(n); return b[0]; }
    int r = rec(d - 1, n) + b[d];
    sink += r;
    return r;
}
/* Its size is not known: it has a frame pointer. */
__attribute__((noinline)) int sized(int n) { volatile char b[n & 63 | 1]; b[0] = 1; return rec(3, n) + b[0]; }
/* Where its frame is an expression says. */
__attribute__((noinline)) int aligned(int n) {
    volatile char b[64] __attribute__((aligned(64)));
    b[0] = 1;
    return sized(n) + b[0];
}
static inline __attribute__((always_inline)) unsigned cpu_ms(void) {
    long time[2], result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(265), "b"(3), "c"(time) : "memory");
    return time[0] * 1000 + time[1] / 1000000;
}
void begin(void) {
    while (cpu_ms() < 200) sink += aligned(LOOPS);
    __asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
__asm__(".globl _start\n_start: .cfi_startproc\n.cfi_undefined eip\ncall begin\nhlt\n.cfi_endproc\n");
"#;

#[test]
fn stacks_of_32_bit_programs_are_unwound() {
    if !ready() || !kit::need_program("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    let (source, file) = (lab.path("narrow.c"), lab.path("file"));
    std::fs::write(&source, NARROW.replace("LOOPS", &loops(50_000).to_string())).expect("a source");
    let order = ["leaf", "rec", "rec", "rec", "rec", "sized", "aligned", "begin", "_start"];
    for (tables, frames) in [(true, "-fomit-frame-pointer"), (false, "-fno-omit-frame-pointer")] {
        let program = lab.path(if tables { "tables" } else { "pointers" });
        let mut gcc = Command::new("gcc");
        gcc.args(["-m32", "-nostdlib", "-static", "-O2", "-fno-pic", "-no-pie", "-fno-stack-protector"]);
        gcc.args(["-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables", frames, "-o"]);
        let built = gcc.arg(&program).arg(&source).output().is_ok_and(|run| run.status.success());
        let runs = built && Command::new(&program).status().is_ok_and(|status| status.success());
        if !kit::need("ia32", runs, "gcc makes no 32-bit programs, or this kernel runs none") {
            return;
        }
        if !tables {
            let taken = Command::new("objcopy").args(["-R", ".eh_frame"]).arg(&program).output();
            assert!(taken.is_ok_and(|run| run.status.success()));
        }
        for when in ["live", "deferred"] {
            let options = ["-e", "cpu-clock:u", "--call-graph", "dwarf", "--unwind", when];
            record(&file, &options, &[program.to_str().expect("a plain path")]).expect(0);
            let mut pmc = kit::pmc();
            let run: kit::Ran =
                pmc.args(["script", "-F", "ip,sym", "-i"]).arg(&file).output().expect("pmc starts").into();
            let text = run.expect(0).stdout;
            let stacks: Vec<Vec<&str>> = text
                .split("\n\n")
                .map(|stack| stack.lines().filter_map(|line| line.split_whitespace().nth(1)).collect())
                .filter(|stack: &Vec<&str>| !stack.is_empty())
                .collect();
            let whole = stacks.iter().filter(|stack| **stack == order).count();
            assert!(
                stacks.len() >= least_samples(200, 4000) && whole * 10 > stacks.len() * 9,
                "{when} {tables}: {whole} of {text}"
            );
            // With frame pointers, the caller of a function that is just being entered is missing.
            let strange = stacks.iter().find(|stack| tables && !order.ends_with(stack));
            assert!(strange.is_none(), "{when}: {strange:?}");
        }
    }
}
