//! Callers that only unusual rules of the unwind tables lead to. Each program works in `leaf`, below a function
//! with such a rule, and nearly all stacks must reach `main`, live and deferred.

use super::stacks::chains_of;
use super::*;
use crate::kit::burn::{least_samples, loops};

/// CPU time of each program, in milliseconds.
const WORK_MS: u64 = 200;
const RATE: u64 = 2000;

/// Works for [`WORK_MS`] in parts, each in a call of `part`.
const COMMON: &str = r"
volatile unsigned long sink;
__attribute__((noinline)) int leaf(int n) { for (int i = 0; i < n; i++) sink += i * 7; return n; }
__attribute__((noinline)) int part(void);
int main(void) { for_cpu_ms(200) sink += part(); return 0; }
#ifdef CALLS_ALIGNED
int aligned(void);
int part(void) { return aligned() + 1; }
#endif
";

struct Unusual {
    name: &'static str,
    source: &'static str,
    flags: &'static [&'static str],
    /// The callers of `leaf`, innermost first. Others may be between them.
    callers: &'static [&'static str],
}

/// A program whose `part` calls `aligned`, which is written in assembly and calls `saves`.
const ALIGNED: Unusual = Unusual {
    name: "",
    source: "",
    flags: &["-O2", "-fomit-frame-pointer", "-DCALLS_ALIGNED"],
    callers: &["saves", "aligned", "part", "main"],
};

const PROGRAMS: [Unusual; 6] = [
    Unusual {
        name: "the code that returns from a signal (its CFA is in memory)",
        source: r#"
#include <signal.h>
void handler(int s) { leaf(LOOPS); sink++; }
__attribute__((noinline)) int interrupted(void) { raise(SIGUSR1); return sink++; }
int part(void) { signal(SIGUSR1, handler); return interrupted() + 1; }
"#,
        flags: &["-O2"],
        callers: &["handler", "interrupted", "part", "main"],
    },
    Unusual {
        name: "only .debug_frame, but the C runtime has an .eh_frame",
        source: "int part(void) { volatile char b[200]; b[3] = 1; return leaf(LOOPS) + b[3]; }",
        flags: &["-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
        callers: &["part", "main"],
    },
    Unusual {
        name: "an aligned frame of variable size (the CFA was saved in memory)",
        source: r#"
#include <alloca.h>
#include <string.h>
int part(void) {
    _Alignas(64) volatile char b[640];
    char *c = alloca(1 + sink % 64);
    memset(c, 1, 1);
    b[3] = c[0];
    return leaf(LOOPS) + b[3];
}
"#,
        flags: &["-O2", "-fomit-frame-pointer", "-mstackrealign"],
        callers: &["part", "main"],
    },
    Unusual {
        name: "a CFA in a register that another function saved",
        source: r#"
__attribute__((noinline)) int saves(void) { int n = LOOPS; leaf(n); sink++; return leaf(n); }
__asm__(".globl aligned\n .type aligned, @function\n aligned: .cfi_startproc\n"
        "push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset rbx, -16\n"
        "mov %rsp, %rbx\n .cfi_def_cfa_register rbx\n and $-64, %rsp\n sub $256, %rsp\n call saves\n"
        "mov %rbx, %rsp\n .cfi_def_cfa_register rsp\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n"
        ".cfi_endproc\n .size aligned, . - aligned");
"#,
        ..ALIGNED
    },
    Unusual {
        name: "a CFA that an expression reads from the stack",
        source: r#"
__attribute__((noinline)) int saves(void) { return leaf(LOOPS) + 1; }
__asm__(".globl aligned\n .type aligned, @function\n aligned: .cfi_startproc\n"
        "mov %rsp, %rax\n .cfi_def_cfa_register rax\n and $-64, %rsp\n sub $64, %rsp\n mov %rax, 8(%rsp)\n"
        ".cfi_escape 0x0f, 5, 0x77, 8, 0x06, 0x23, 8\n call saves\n"
        "mov 8(%rsp), %rsp\n .cfi_def_cfa rsp, 8\n ret\n"
        ".cfi_endproc\n .size aligned, . - aligned");
"#,
        ..ALIGNED
    },
    Unusual {
        name: "a return address in a register",
        source: r#"
__asm__(".globl kept\n .type kept, @function\n kept: .cfi_startproc\n"
        "pop %rdi\n .cfi_def_cfa_offset 0\n .cfi_register rip, rdi\n mov %rsi, %rcx\n"
        "1: dec %rcx\n jnz 1b\n push %rdi\n .cfi_def_cfa_offset 8\n .cfi_offset rip, -8\n ret\n"
        ".cfi_endproc\n .size kept, . - kept");
int kept(int, long);
int part(void) { sink++; return kept(0, LOOPS) + 1; }
"#,
        flags: &["-O2", "-fomit-frame-pointer"],
        callers: &["part", "main"],
    },
];

#[track_caller]
fn build(lab: &Lab, unusual: &Unusual, name: &str) -> PathBuf {
    let text = format!("{COMMON}{}", unusual.source).replace("LOOPS", &loops(100_000).to_string());
    lab.program(name, &text, &[unusual.flags, &["-fno-optimize-sibling-calls"]].concat())
}

/// Records a program, and checks that nearly all stacks of its work have the callers.
#[track_caller]
fn check(lab: &Lab, unusual: &Unusual, program: &Path) {
    for when in ["live", "deferred"] {
        let file = lab.path(when);
        let rate = RATE.to_string();
        let options =
            ["-e", "cpu-clock:u", "--call-graph", "dwarf", "-F", &rate, "-m", "16M", "--unwind", when];
        record(&file, &options, &[program.to_str().expect("UTF-8")]).expect(0);
        let work = if unusual.source.contains("leaf(") { "leaf" } else { "kept" };
        let stacks = chains_of(&file, work, &["--no-inline"]);
        let has_callers = |chain: &&Vec<String>| {
            let mut wanted = unusual.callers.iter().peekable();
            for name in chain.iter() {
                wanted.next_if(|caller| name == *caller);
            }
            wanted.peek().is_none()
        };
        let whole = stacks.iter().filter(has_callers).count();
        let other: Vec<_> = stacks.iter().filter(|chain| !has_callers(chain)).take(3).collect();
        assert!(
            stacks.len() >= least_samples(WORK_MS, RATE) && whole * 100 >= stacks.len() * 97,
            "{}, {when}: {whole} of {}, {other:?}",
            unusual.name,
            stacks.len()
        );
    }
}

#[test]
fn unusual_rules_lead_to_the_callers() {
    if !ready() || !kit::need_program("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    for (number, unusual) in PROGRAMS.iter().enumerate() {
        let program = build(&lab, unusual, &format!("program{number}"));
        check(&lab, unusual, &program);
    }
}

/// A handler, called with and without `SA_SIGINFO`, for which the kernel writes two kinds of signal frames.
const SIGNALS: Unusual = Unusual {
    name: "the code that returns from a signal, without tables",
    source: r#"
#include <signal.h>
void handler(int s) { leaf(LOOPS); sink++; }
__attribute__((noinline)) int interrupted(void) { __asm__ volatile("int3"); return sink++; }
int part(void) {
    static int turn;
    struct sigaction action = { .sa_handler = handler, .sa_flags = turn++ % 2 ? SA_SIGINFO : 0 };
    sigaction(SIGTRAP, &action, 0);
    return interrupted() + 1;
}
"#,
    flags: &["-O2", "-fomit-frame-pointer"],
    callers: &["handler", "interrupted", "part", "main"],
};

/// pmc cannot read the vdso of 32-bit processes, which returns from their signals.
#[test]
fn handlers_of_32_bit_programs_have_callers() {
    if !ready() || !kit::need_program("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    let (source, trial) = (lab.path("trial.c"), lab.path("trial"));
    std::fs::write(&source, "#include <signal.h>\nint main(void) { return 0; }").expect("a source");
    let built = Command::new("gcc").args(["-m32", "-o"]).arg(&trial).arg(&source).output();
    let runs = built.is_ok_and(|run| run.status.success())
        && Command::new(&trial).status().is_ok_and(|status| status.success());
    if !kit::need("ia32", runs, "gcc makes no 32-bit programs, or this kernel runs none") {
        return;
    }
    let narrow = Unusual { flags: &["-O2", "-fomit-frame-pointer", "-m32"], ..SIGNALS };
    check(&lab, &narrow, &build(&lab, &narrow, "narrow"));
}

/// Like musl's, the code that returns from the signal has no tables.
#[test]
fn handlers_with_their_own_return_code_have_callers() {
    if !ready() || !kit::need_program("gcc") || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    let source = r#"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) void handler(int s) { leaf(LOOPS); sink++; }
void back(void);
__asm__(".type back, @function\n back: mov $15, %rax\n syscall\n .size back, . - back");
__attribute__((noinline)) int interrupted(void) { __asm__ volatile("int3"); return sink++; }
int part(void) {
    struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } action = { handler, 0x04000000, back, 0 };
    syscall(SYS_rt_sigaction, SIGTRAP, &action, 0, 8);
    return interrupted() + 1;
}
"#;
    let own = Unusual { source, ..SIGNALS };
    check(&lab, &own, &build(&lab, &own, "own"));
}

#[test]
fn debug_frame_is_found_in_the_separate_debug_file() {
    if !ready() || !kit::need_program("gcc") || !kit::need_program("objcopy") {
        return;
    }
    let lab = Lab::new();
    let unusual =
        PROGRAMS.iter().find(|unusual| unusual.name.contains(".debug_frame")).expect("it is listed");
    let (program, debug) = (build(&lab, unusual, "stripped"), lab.path("stripped.debug"));
    let [program_name, debug_name] = [&program, &debug].map(|path| path.to_str().expect("UTF-8"));
    let link = format!("--add-gnu-debuglink={debug_name}");
    for arguments in
        [&["--only-keep-debug", program_name, debug_name][..], &["--strip-debug", &link, program_name]]
    {
        assert!(Command::new("objcopy").args(arguments).status().expect("objcopy starts").success());
    }
    check(&lab, unusual, &program);
}

#[test]
fn vfork_has_a_caller() {
    if !ready() || !kit::need_program("gcc") || !kit::need_tracefs("syscalls") {
        return;
    }
    let lab = Lab::new();
    let text = "
        #include <sys/wait.h>
        #include <unistd.h>
        __attribute__((noinline)) int spawn(void) { pid_t p = vfork(); if (p == 0) _exit(0); int s; waitpid(p, &s, 0); return s; }
        int main(void) { for (int i = 0; i < 20; i++) spawn(); return 0; }";
    let (program, file) = (lab.program("spawn", text, &["-O2"]), lab.path("file"));
    for event in ["syscalls:sys_enter_vfork", "syscalls:sys_exit_vfork"] {
        let options = ["-e", event, "--call-graph", "dwarf,16384"];
        record(&file, &options, &[program.to_str().expect("UTF-8")]).expect(0);
        let stacks = chains_of(&file, "spawn", &[]);
        // The child and the parent return from the call.
        let least = if event.contains("exit") { 40 } else { 20 };
        assert_eq!((stacks.len(), our_samples(&file)), (least, least), "{event}");
    }
}
