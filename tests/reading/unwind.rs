//! Unwinding against the compiler's own unwinder: a program copies its registers and stack and prints the
//! result of `backtrace(3)` at the same point.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use crate::kit;

use std::process::Command;

use pmc_symbols::address::{Avma, FileOffset, Mapping};
use pmc_symbols::unwind::{Arch, ChainEnd, Space, UnwindRegisters, UnwindTables, Walker};

const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

static int copy(const char *out) {
    ucontext_t context;
    void *found[256];
    getcontext(&context);
    int count = backtrace(found, 256);
#if defined(__x86_64__)
    greg_t *g = context.uc_mcontext.gregs;
    unsigned long regs[4] = { g[REG_RIP], g[REG_RSP], g[REG_RBP], 0 };
#else
    unsigned long regs[4] = { context.uc_mcontext.pc, context.uc_mcontext.sp,
        context.uc_mcontext.regs[29], context.uc_mcontext.regs[30] };
#endif
    pthread_attr_t attr;
    void *low; size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    size_t bytes = (char *)low + size - (char *)regs[1];
    if (bytes > 65528) bytes = 65528;
    FILE *f = fopen(out, "wb");
    fwrite(regs, sizeof regs, 1, f);
    unsigned long n = count;
    fwrite(&n, sizeof n, 1, f);
    fwrite(found, sizeof *found, count, f);
    fwrite((void *)regs[1], 1, bytes, f);
    fclose(f);
    char name[512], line[512];
    snprintf(name, sizeof name, "%s.maps", out);
    FILE *maps = fopen("/proc/self/maps", "r"), *to = fopen(name, "w");
    while (fgets(line, sizeof line, maps)) fputs(line, to);
    fclose(to);
    return count;
}
__attribute__((noinline)) int deep(int n, const char *out, volatile int *sum) {
    char room[200];
    memset(room, n, sizeof room);
    *sum += room[n % 200];
    int r = n == 0 ? copy(out) : deep(n - 1, out, sum) + 1;
    return r + room[5] + *sum;
}
static int compare(const void *a, const void *b) {
    static int done;
    volatile int sum = 0;
    if (!done++) deep(20, (const char *)getenv("OUT"), &sum);
    return *(const int *)a - *(const int *)b;
}
static void *thread(void *unused) {
    int list[] = { 3, 1, 2 };
    qsort(list, 3, sizeof *list, compare);
    return unused;
}
int main(int argc, char **argv) {
    if (argc > 1) { pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); }
    else thread(0);
    return 0;
}
"#;

struct Copied {
    registers: UnwindRegisters,
    /// Result of `backtrace(3)`, innermost first.
    found: Vec<u64>,
    stack: Vec<u8>,
    maps: String,
    arch: Arch,
}

fn copied(args: &[&str], in_thread: bool) -> Option<Copied> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => Arch::X86_64,
        "aarch64" => Arch::Aarch64,
        other => {
            kit::need("arch", false, &format!("{other} is not unwound"));
            return None;
        }
    };
    if !kit::need_program("gcc") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.c"), PROGRAM).unwrap();
    let built = Command::new("gcc")
        .args(["a.c", "-o", "prog", "-pthread"])
        .args(args)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let out = folder.path().join("out");
    let mut run = Command::new(folder.path().join("prog"));
    if in_thread {
        run.arg("thread");
    }
    assert!(run.env("OUT", &out).status().unwrap().success());
    let bytes = std::fs::read(&out).unwrap();
    let words: Vec<u64> = bytes.chunks_exact(8).map(|w| u64::from_le_bytes(w.try_into().unwrap())).collect();
    let count = words[4] as usize;
    let maps = std::fs::read_to_string(folder.path().join("out.maps")).unwrap();
    // Keep the files: the tests read them when they parse the maps.
    let kept = folder.keep();
    Some(Copied {
        registers: UnwindRegisters {
            ip: words[0],
            sp: words[1],
            fp: words[2],
            lr: words[3],
            others: [0; 29],
        },
        found: words[5..5 + count].to_vec(),
        stack: bytes[8 * (5 + count)..].to_vec(),
        maps: maps.replace("\u{0}", "") + &format!("#{}", kept.display()),
        arch,
    })
}

/// The process's code with the unwind tables of its files, except files whose path ends in `without`.
fn space(copied: &Copied, without: Option<&str>) -> Space {
    let mut space = Space::new(copied.arch);
    for line in copied.maps.lines().filter(|l| l.contains(" r-xp ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = words[0].split_once('-').unwrap();
        let mapping = Mapping {
            start: Avma(hex(start)),
            len: hex(end) - hex(start),
            offset: FileOffset(hex(words[2])),
        };
        let path = words.get(5).copied().unwrap_or("");
        let tables = std::fs::read(path).ok().and_then(|bytes| UnwindTables::read(&bytes, None));
        space.add(&mapping, tables.as_ref().filter(|_| without.is_none_or(|w| !path.ends_with(w))));
    }
    space
}

impl Drop for Copied {
    fn drop(&mut self) {
        if let Some((_, folder)) = self.maps.rsplit_once('#') {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

#[test]
fn chains_match_the_compilers_unwinder() {
    for args in [
        &["-O2", "-fomit-frame-pointer"][..],
        &["-O0"],
        &["-O2", "-no-pie"],
        &["-O2", "-fomit-frame-pointer", "-Wl,--no-eh-frame-hdr"],
    ] {
        for in_thread in [false, true] {
            // Without the index the C library's unwinder fails; pmc builds its own index.
            let blind = args.contains(&"-Wl,--no-eh-frame-hdr");
            let Some(copied) = copied(args, in_thread) else { return };
            let mut chain = Vec::new();
            let end = Walker::default().walk(
                &space(&copied, None),
                &copied.registers,
                &copied.stack,
                200,
                &mut chain,
            );
            let ours: Vec<u64> = chain.iter().map(|frame| frame.address.0).collect();
            assert_eq!(end, ChainEnd::Root, "{args:?} thread {in_thread}: {ours:x?}");
            assert!(ours.len() > 22, "{args:?}: {ours:x?}");
            if !blind {
                // The first address is the call site itself, which differs.
                let theirs: Vec<u64> = copied.found[1..].iter().copied().filter(|a| *a != 0).collect();
                let least = theirs.len().min(ours.len() - 1);
                assert!(least > 22, "{theirs:x?}");
                assert_eq!(ours[1..=least], theirs[..least], "{args:?} thread {in_thread}");
            }
        }
    }
}

#[test]
fn short_copies_truncate_chains_and_missing_tables_are_named() {
    let Some(copied) = copied(&["-O2", "-fomit-frame-pointer"], false) else { return };
    let (mut walker, mut chain) = (Walker::default(), Vec::new());
    let whole = space(&copied, None);
    for size in [1024, 2048, 4000] {
        let end = walker.walk(&whole, &copied.registers, &copied.stack[..size], 200, &mut chain);
        assert_eq!(end, ChainEnd::Cut, "{size}: {chain:x?}");
        assert!(chain.len() < copied.found.len());
    }
    let blind = space(&copied, Some("/prog"));
    let end = walker.walk(&blind, &copied.registers, &copied.stack, 200, &mut chain);
    assert!(matches!(end, ChainEnd::NoTables(_)), "{end:?} {chain:x?}");
}

#[test]
fn corrupt_input_does_not_panic() {
    let Some(copied) = copied(&["-O2"], false) else { return };
    let whole = space(&copied, None);
    let (mut walker, mut chain) = (Walker::default(), Vec::new());
    let mut dice = 0x5eed_0000_0002u64;
    let mut next = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice
    };
    for _ in 0..2000 {
        let mut registers = copied.registers;
        match next() % 4 {
            0 => registers.ip = next(),
            1 => registers.sp = u64::MAX - next() % 64,
            2 => registers.fp = next(),
            _ => registers.ip = copied.found[next() as usize % copied.found.len()],
        }
        let mut stack = copied.stack[..(next() as usize % copied.stack.len())].to_vec();
        for _ in 0..20 {
            if !stack.is_empty() {
                let at = next() as usize % stack.len();
                stack[at] = next() as u8;
            }
        }
        walker.walk(&whole, &registers, &stack, 127, &mut chain);
        assert!(chain.len() <= 127);
    }
}

#[test]
fn endless_unwind_rules_are_rejected() {
    if !kit::need_program("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The rule for the frame address is an expression that jumps three bytes back, to itself.
    for (escape, usable) in
        [(".cfi_escape 0x0f,3,0x2f,0xfd,0xff", false), (".cfi_escape 0x0f,2,0x77,8", true)]
    {
        let source = format!(".globl main\nmain: .cfi_startproc\n{escape}\nnop\nret\n.cfi_endproc\n");
        std::fs::write(folder.path().join("a.s"), source).unwrap();
        let built =
            Command::new("gcc").args(["a.s", "-o", "prog"]).current_dir(folder.path()).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let bytes = std::fs::read(folder.path().join("prog")).unwrap();
        assert_eq!(UnwindTables::read(&bytes, None).is_some(), usable, "{escape}");
    }
}
