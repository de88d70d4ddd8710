//! Code that is in no program file or belongs to another machine: JITs, the kernel, Arm.

use std::path::Path;
use std::process::Command;

use pmc_symbols::symbol::disassemble::{Flow, Instruction, Syntax};
use pmc_symbols::symbol::{SymbolModule, SymbolOptions, Symbolizer};
use serde_json::Value;

use super::lab::Lab;
use super::{annotate, json, kit, list, notes, samples};
use crate::kit::burn::least_samples;

/// A program that runs code it generates. It writes a jitdump (with the argument "dump") or only a perf map.
/// The first function's name contains an escape sequence. The code: push rbp; mov rbp,rsp; mov ecx,edi; dec
/// ecx; jne -4; pop rbp; ret.
const JIT: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
static void u32(FILE *f, uint32_t x) { fwrite(&x, 4, 1, f); }
static void u64(FILE *f, uint64_t x) { fwrite(&x, 8, 1, f); }
int main(void) {
  unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(p, code, sizeof code);
  char name[64];
#ifdef DUMP
  sprintf(name, "jit-%d.dump", getpid());
  FILE *f = fopen(name, "w+");
  u32(f, 0x4a695444); u32(f, 1); u32(f, 40); u32(f, 62); u32(f, 0); u32(f, getpid()); u64(f, 1); u64(f, 0);
  const char *fn = "evil\033[2Jjit", *src = "app.js";
  u32(f, 2); u32(f, 16 + 16 + 2 * (16 + strlen(src) + 1)); u64(f, 1); u64(f, (uint64_t)p); u64(f, 2);
  u64(f, (uint64_t)p); u32(f, 3); u32(f, 0); fwrite(src, strlen(src) + 1, 1, f);
  u64(f, (uint64_t)p + 6); u32(f, 4); u32(f, 0); fwrite(src, strlen(src) + 1, 1, f);
  u32(f, 0); u32(f, 16 + 40 + strlen(fn) + 1 + sizeof code); u64(f, 1);
  u32(f, getpid()); u32(f, getpid()); u64(f, (uint64_t)p); u64(f, (uint64_t)p); u64(f, sizeof code); u64(f, 1);
  fwrite(fn, strlen(fn) + 1, 1, f); fwrite(code, sizeof code, 1, f);
  fflush(f);
  mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
#else
  sprintf(name, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(name, "w");
  fprintf(f, "%lx %lx mapped\n", (long)p, sizeof code);
  fflush(f);
#endif
  for_cpu_ms(300) ((void (*)(int))p)(loops(100000));
  return 0;
}
"#;

#[test]
fn generated_code_is_read_from_a_jitdump() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("jit", JIT, &["-O1", "-DDUMP"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u"], &program);
    let document = json(&file, &["--functions", "1"]);
    let function = &document["functions"][0];
    assert_eq!(function["symbol"], "evil\u{1b}[2Jjit");
    assert!(function["bytes_from"].as_str().unwrap().contains("jit-"), "{function}");
    let code: Vec<&str> =
        list(function, "instructions").iter().map(|i| i["mnemonic"].as_str().unwrap()).collect();
    assert_eq!(code, ["push", "mov", "mov", "dec", "jne", "pop", "ret"]);
    let loops: u64 = list(function, "instructions")[3..5].iter().map(samples).sum();
    let all = function["events"][0]["function"]["samples"].as_u64().unwrap();
    assert!(all >= least_samples(280, 4000) as u64 && loops * 10 >= all * 9, "{loops} of {all}");
    let line = list(function, "lines").iter().max_by_key(|line| samples(line)).unwrap();
    assert_eq!((&line["file"], &line["line"]), (&"app.js".into(), &4.into()));
    let text = annotate(&file, &[]).expect(0).prints(&["evil?[2Jjit", "dec "]);
    assert!(!text.stdout.contains('\u{1b}'));
}

#[test]
fn generated_code_without_a_jitdump_has_a_remedy() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("jit", JIT, &["-O1"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u"], &program);
    let document = json(&file, &["mapped"]);
    let function = &document["functions"][0];
    assert!(notes(function).contains("left no jitdump"), "{}", notes(function));
    assert!(function["bytes_from"].is_null());
    // The sampled addresses are shown anyway.
    let all = function["events"][0]["function"]["samples"].as_u64().unwrap();
    assert_eq!(list(function, "instructions").iter().map(samples).sum::<u64>(), all);
    annotate(&file, &["mapped"]).expect(0).prints(&["no instructions", "try: make the runtime write one"]);
    remove_maps(&file);
}

/// Removes the map that the program left in /tmp.
fn remove_maps(file: &Path) {
    let events = kit::run(&["script", "--no-cache", "-F", "pid", "-i", file.to_str().unwrap()]);
    if let Some(pid) = events.stdout.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) {
        let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
    }
}

/// An ELF core file with one segment; /proc/kcore has many.
fn core(address: u64, bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend([4, 0, 62, 0, 1, 0, 0, 0]);
    [0u64, 64, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let sizes = [120u64, address, 0, bytes.len() as u64, bytes.len() as u64, 1];
    sizes.iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(bytes);
    file
}

#[test]
fn kernel_code_is_read_from_kernel_memory() {
    let Some(lab) = Lab::new() else { return };
    let hidden = std::fs::read_to_string("/proc/kallsyms")
        .unwrap_or_default()
        .lines()
        .all(|l| l.starts_with("0000000000000000"));
    if !kit::need("kallsyms", !hidden, "the kernel hides the addresses of its functions") {
        return;
    }
    let source = "#include <unistd.h>\n#include <fcntl.h>\nint main(void) { char b[65536]; int f = open(\"/dev/zero\", O_RDONLY); for_cpu_ms(200) if (read(f, b, sizeof b) < 0) return 1; return 0; }\n";
    let program = lab.build("reader", source, &["-O1"]);
    let file = lab.record("perf.data", &["-e", "cpu-clock:k"], &program);
    let document = json(&file, &["--functions", "1"]);
    let function = &document["functions"][0];
    let name = function["symbol"].as_str().unwrap().to_owned();
    assert_eq!(function["dso"], "[kernel.kallsyms]");
    if function["bytes_from"].is_null() {
        assert!(notes(function).contains("cannot read the kernel's code"), "{}", notes(function));
        annotate(&file, &[&name]).expect(0).prints(&["--vmlinux", "--kcore"]);
    }
    // A copy of kernel memory in which the function consists of one-byte instructions.
    let (start, size) = (function["start"].as_u64().unwrap(), function["size"].as_u64().unwrap());
    let kcore = lab.path("kcore");
    std::fs::write(&kcore, core(start - 16, &vec![0x90; size as usize + 32])).unwrap();
    let document = json(&file, &[&name, "--kcore", kcore.to_str().unwrap()]);
    let function = &document["functions"][0];
    let code = list(function, "instructions");
    assert_eq!(code.len() as u64, size);
    assert!(code.iter().all(|i| i["mnemonic"] == "nop"));
    assert_eq!(code[0]["address"].as_u64(), Some(start));
    let all = function["events"][0]["function"]["samples"].as_u64().unwrap();
    assert!(all > 0 && code.iter().map(samples).sum::<u64>() == all);
    std::fs::write(&kcore, b"rubbish").unwrap();
    let bad = json(&file, &[&name, "--kcore", kcore.to_str().unwrap()]);
    assert!(notes(&bad["functions"][0]).contains("not a 64-bit ELF file"), "{bad}");
}

const C: &str = r#"
#include <stdio.h>
static int weigh(int x) { return x * 31 ^ x >> 3; }
__attribute__((noinline)) int outer(int n, const char *text) {
    int sum = 0;
    for (int i = 0; i < n; i++) { if (text[i] == 'x') continue; sum += weigh(i); }
    switch (n) { case 1: puts("a"); break; case 2: puts("b"); break; case 3: return outer(n - 1, text); case 9: putchar(n); }
    return sum;
}
int main(int argc, char **argv) { return outer(argc, argv[0]); }
"#;

/// pmc's disassembly of a function in a program.
fn ours(program: &Path, function: &str) -> Vec<Instruction> {
    let options = SymbolOptions { cache: None, live: false, ..SymbolOptions::from_environment() };
    let mut symbolizer = Symbolizer::new(options).unwrap();
    let id = symbolizer.add(SymbolModule::file(program));
    let (start, size) =
        symbolizer.symbols(id).find(|s| s.name == function).map(|s| (s.start, s.end - s.start)).unwrap();
    let code = symbolizer.code(id, start, size, None).unwrap();
    symbolizer.disassemble(id, &code, Syntax::Att).unwrap()
}

/// objdump's addresses, each with the target address and its name if objdump prints one.
fn objdump(tool: &str, program: &Path, function: &str) -> Vec<(u64, Option<(u64, String)>)> {
    let program = program.to_str().unwrap();
    let text = kit::oracle::says(tool, &["-d", "--no-show-raw-insn", program]);
    let head = format!("<{function}>:");
    let body =
        text.lines().skip_while(|line| !line.ends_with(&head)).skip(1).take_while(|line| !line.is_empty());
    let line = |line: &str| {
        let (address, rest) = line.trim().split_once(':')?;
        let address = u64::from_str_radix(address, 16).ok()?;
        let code = rest.split(['#', ';']).next()?.split("//").next()?;
        let target = code.split_once(" <").and_then(|(before, name)| {
            let at = u64::from_str_radix(before.rsplit([' ', ',', '\t']).next()?, 16).ok()?;
            Some((at, name.split(['>', '+']).next()?.to_owned()))
        });
        Some((address, target))
    };
    body.filter_map(line).collect()
}

#[track_caller]
fn agrees_with_objdump(tool: &str, program: &Path) {
    let mut named = 0;
    for function in ["outer", "main"] {
        let ours = ours(program, function);
        let end = ours.last().unwrap().end();
        // Padding before the next function is not part of this function.
        let mut theirs = objdump(tool, program, function);
        theirs.retain(|(address, _)| *address < end);
        let addresses: Vec<u64> = ours.iter().map(|i| i.address).collect();
        assert_eq!(addresses, theirs.iter().map(|(address, _)| *address).collect::<Vec<_>>(), "{function}");
        for (instruction, (address, target)) in ours.iter().zip(theirs) {
            let leads = matches!(instruction.flow, Flow::Jump | Flow::Call);
            let Some((at, name)) = target.filter(|_| leads) else { continue };
            let ours = instruction.target.as_ref().unwrap_or_else(|| panic!("{address:x} leads nowhere"));
            assert_eq!(ours.address, at, "{address:x}");
            assert_eq!(ours.name.as_ref().map(|(name, _)| name.clone()), Some(name), "{address:x}");
            named += 1;
        }
    }
    assert!(named > 5, "only {named} targets");
}

#[test]
fn instructions_and_targets_match_objdump() {
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    for flags in [&["-O2", "-g"][..], &["-O0"], &["-O3", "-no-pie", "-fcf-protection=full"]] {
        agrees_with_objdump("objdump", &lab.build("prog", C, flags));
    }
}

/// A script written for perf's listing finds the same instructions in pmc's.
#[test]
fn disassembly_text_matches_objdump() {
    let source = r#"
#include <string.h>
volatile long sink;
volatile float step = 2.5f;
__attribute__((noipa)) long outer(long n) {
    char text[256];
    long sum = 0;
    double all = 1.5;
    for (long i = 0; i < n; i++) {
        if (i & 1) sum += i * 7;
        else if (sum > 1000000) sum -= i / 3;
        sum ^= sum >> 3;
        all = all * 1.0001 + step;
        if (all > 1e9) all /= 3.0;
    }
    memset(text, (int)sum, sizeof text);
    switch (n & 7) { case 1: sum += 5; break; case 2: sink = -1; break; case 5: sum = text[sum & 255]; break; }
    return sum + (long)all;
}
int main(void) { int i = 0; for_cpu_ms(400) sink += outer(loops(10000) + i++); return 0; }
"#;
    let Some(lab) = Lab::new() else { return };
    if !kit::need_program("objdump") {
        return;
    }
    let program = lab.build("prog", source, &["-O2", "-g"]);
    let file = lab.record("prog.data", &["-e", "cpu-clock", "-F", "5000"], &program);
    let blanks_as_one = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (ours, theirs) in [(&[][..], &[][..]), (&["-M", "intel"], &["-M", "intel"])] {
        let words =
            [&["annotate", "--stdio", "outer", "--max-rows", "0", "-i", file.to_str().unwrap()], ours];
        let listing = kit::run(&words.concat()).expect(0).stdout;
        let is_code = |line: &&str| line.contains(" :   ") && !line.ends_with(">:");
        // objdump labels a constant with the closest preceding symbol.
        let without_constants = |line: String| match line.split_once(" # ") {
            Some((code, name)) if !name.contains("<sink>") && !name.contains("<step>") => code.to_owned(),
            _ => line,
        };
        let ours: Vec<String> = listing
            .lines()
            .filter(is_code)
            .filter_map(|line| Some(without_constants(blanks_as_one(line.split_once(" :   ")?.1))))
            .collect();
        let program = program.to_str().unwrap();
        let all = kit::oracle::says("objdump", &[&["-d", "--no-show-raw-insn"], theirs, &[program]].concat());
        let body = all.lines().skip_while(|line| !line.ends_with("<outer>:")).skip(1);
        // Padding before the next function is not part of this function.
        let theirs = body.map(|line| without_constants(blanks_as_one(line)));
        let theirs: Vec<String> = theirs.take(ours.len()).collect();
        assert!(ours.len() > 10, "{listing}");
        assert_eq!(ours, theirs);
    }
}

#[test]
fn variables_and_got_slots_are_named() {
    let Some(lab) = Lab::new() else { return };
    let source = "#include <stdio.h>\nlong table[8];\n__attribute__((noinline)) long other(int n) { return n * 7; }\nstatic long (*volatile call)(int) = other;\n__attribute__((noinline)) long outer(int n) { puts(\"x\"); return table[2] + call(n); }\nint main(int c, char **v) { return outer(c); }\n";
    let program = lab.build("slots", source, &["-O1", "-fno-plt"]);
    let names: Vec<(String, u64)> =
        ours(&program, "outer").into_iter().filter_map(|i| i.refers?.name).collect();
    assert!(names.iter().any(|(name, into)| name == "puts" && *into == 0), "{names:?}");
    assert!(names.contains(&("table".to_owned(), 16)), "{names:?}");
    assert!(names.contains(&("call".to_owned(), 0)), "{names:?}");
}

#[test]
fn arm_code_is_disassembled_on_any_machine() {
    if !kit::need_program("aarch64-linux-gnu-gcc") || !kit::need_program("aarch64-linux-gnu-objdump") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("prog"));
    std::fs::write(&source, C).unwrap();
    for level in ["-O0", "-O2"] {
        let built = Command::new("aarch64-linux-gnu-gcc")
            .args([level, "-g", "-o"])
            .arg(&program)
            .arg(&source)
            .output()
            .unwrap();
        let linked = built.status.success();
        if !kit::need("libc6-dev-arm64-cross", linked, "there is no C library for Arm") {
            return;
        }
        agrees_with_objdump("aarch64-linux-gnu-objdump", &program);
    }
}

#[test]
fn hostile_recordings_do_no_harm() {
    let Some(lab) = Lab::new() else { return };
    let program = super::shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-g"], &program);
    let whole = std::fs::read(&file).unwrap();
    let bad = lab.path("bad.data");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..8 {
        let mut bytes = whole.clone();
        for _ in 0..round * 8 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % bytes.len();
            bytes[at] = (state >> 32) as u8;
        }
        std::fs::write(&bad, &bytes).unwrap();
        let (bad, good) = (bad.to_str().unwrap(), file.to_str().unwrap());
        for args in [
            &["annotate", "--functions", "0", "-i", bad][..],
            &["diff", "--tree", good, bad],
            &["diff", "--json", bad, bad],
        ] {
            let ran = kit::run(args);
            assert!(matches!(ran.status, Some(0 | 1)), "round {round} {args:?}: {ran:?}");
            assert!(
                !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
                "round {round} {args:?}"
            );
        }
    }
}

#[test]
fn hostile_code_does_no_harm() {
    let Some(lab) = Lab::new() else { return };
    let program = super::shares(&lab);
    let file = lab.record("perf.data", &["-e", "cpu-clock:u", "-F", "1000"], &program);
    let whole = std::fs::read(&program).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for round in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..40 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % bytes.len();
            bytes[at] = (state >> 32) as u8;
        }
        if round % 3 == 0 {
            bytes.truncate(state as usize % whole.len());
        }
        std::fs::write(&program, &bytes).unwrap();
        let ran = annotate(&file, &["--functions", "0", "--json"]);
        assert!(matches!(ran.status, Some(0 | 1)), "round {round}: {ran:?}");
        if ran.status == Some(0) {
            let _: Value = serde_json::from_str(&ran.stdout).expect("a whole document");
        }
    }
}
