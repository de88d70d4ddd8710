//! Stacks that end early: the report says where and why.

use super::*;

/// Recursion with frames larger than the default stack copy.
const DEEP: &str = r#"
volatile long sink;
__attribute__((noinline)) long down(int depth) {
    volatile char room[400];
    room[depth] = 1;
    if (depth == 0)
        for (long i = 0; i < loops(100000); i++) sink += i;
    else
        sink += down(depth - 1);
    return room[depth];
}
int main(void) {
    for_cpu_ms(300) sink += down(100);
    return sink == 42;
}
"#;

#[track_caller]
fn build(lab: &Lab, flags: &[&str]) -> String {
    std::fs::write(lab.path("deep.c"), DEEP).unwrap();
    let program = lab.text("prog");
    lab.run("gcc", &[&["-O1", "-g", "deep.c", "-o", &program], flags].concat());
    program
}

/// The report as JSON and as text.
#[track_caller]
fn reports(file: &Path) -> (Value, String) {
    let text = kit::run(&["report", "--stdio", "--no-cache", "-i", file.to_str().unwrap()]).expect(0);
    (report_of_stacks(file), text.stdout)
}

#[track_caller]
fn report_of_stacks(file: &Path) -> Value {
    let ran = kit::run(&["report", "--json", "--no-cache", "-i", file.to_str().unwrap()]);
    serde_json::from_str(&ran.expect(0).stdout).unwrap()
}

#[test]
fn too_small_stack_copies_are_reported() {
    if !ready(&["gcc"]) {
        return;
    }
    let lab = Lab::new();
    let program = build(&lab, &["-fomit-frame-pointer"]);
    let file = lab.record(&["--call-graph", "dwarf,8192", "--unwind", "deferred"], &[&program]);
    let (document, text) = reports(&file);
    let ends = &document["trust"]["ends"];
    let (copied, cut) = (ends["copied"].as_u64().unwrap(), ends["cut"].as_u64().unwrap());
    assert!(copied >= least_samples(300, 2000) as u64 && cut * 10 >= copied * 8, "{ends}");
    assert!(text.contains("at the end of the stack copy"), "{text}");
    assert!(text.contains("--call-graph dwarf,65528"), "{text}");

    // The suggested option fixes it.
    let file = lab.record(&["--call-graph", "dwarf,65528", "--unwind", "deferred"], &[&program]);
    let (document, text) = reports(&file);
    let ends = &document["trust"]["ends"];
    assert!(ends["cut"].as_u64().unwrap() * 20 < ends["copied"].as_u64().unwrap(), "{ends}");
    assert!(!text.contains("at the end of the stack copy"), "{text}");
    assert!(!text.contains("copy more of each stack"), "{text}");

    // Unwound while recording: the recorder reports the truncation, and the report advises only options that
    // were not in use.
    let file = lab.record(&["--call-graph", "dwarf,8192"], &[&program]);
    let (_, text) = reports(&file);
    assert!(text.contains("end early") && text.contains("try: copy more of each stack"), "{text}");
    let words = ["record", "-e", "cpu-clock", "--call-graph", "dwarf,8192", "-o"];
    let out = lab.path("again");
    let ran = kit::pmc().args(words).arg(&out).arg("--").arg(&program).output().expect("pmc starts");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("of the stacks are truncated at the end of the stack copy"), "{said}");
}

#[test]
fn incomplete_chains_are_attributed_to_a_module() {
    if !ready(&["gcc"]) {
        return;
    }
    let lab = Lab::new();
    // The frame pointer register holds some other value.
    let program = build(&lab, &["-fomit-frame-pointer"]);
    let file = lab.record(&["--call-graph", "fp"], &[&program]);
    let (document, text) = reports(&file);
    let trust = &document["trust"];
    let broken = trust["broken"].as_array().unwrap();
    let sum: u64 = broken.iter().map(|row| row["samples"].as_u64().unwrap()).sum();
    let (stacks, rooted) = (trust["stacks"].as_u64().unwrap(), trust["rooted"].as_u64().unwrap());
    assert_eq!(sum, stacks - rooted, "{trust}");
    assert!(sum * 10 > stacks * 5 && broken[0]["module"] == "prog", "{trust}");
    assert!(text.contains("in prog") && text.contains("try: record --call-graph auto"), "{text}");
}

/// The table of `wrong` says that its frame is empty, although it pushes a word.
const WRONG_TABLE: &str = r#"
volatile long sink;
__attribute__((noinline)) long leaf(void) { for (long i = 0; i < loops(100000); i++) sink += i; return 1; }
__asm__(".globl wrong\n .type wrong, @function\n wrong: .cfi_startproc\n"
        "push $8\n call leaf\n pop %rcx\n ret\n .cfi_endproc\n .size wrong, . - wrong");
long wrong(void);
int main(void) { for_cpu_ms(300) sink += wrong(); return sink == 42; }
"#;

#[test]
fn wrong_tables_are_named_without_unfit_advice() {
    if !ready(&["gcc"]) || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let lab = Lab::new();
    std::fs::write(lab.path("wrong.c"), WRONG_TABLE).unwrap();
    let program = lab.text("wrong");
    lab.run("gcc", &["-O1", "-fomit-frame-pointer", "wrong.c", "-o", &program]);
    for (when, cause) in [
        ("deferred", "in wrong, whose unwind tables yield no caller"),
        ("live", "in wrong; the unwind tables there are missing or wrong"),
    ] {
        let file = lab.record(&["--call-graph", "dwarf,8192", "--unwind", when], &[&program]);
        let (_, text) = reports(&file);
        assert!(text.contains("end early") && text.contains(cause), "{when}: {text}");
        assert!(
            !text.contains("copy more of each stack") && !text.contains("-fno-omit-frame-pointer"),
            "{text}"
        );
    }
}
