//! libpfm4's event names, checked against the library's own encoder.

use crate::kit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::{need_libpfm, need_program, pmc};
use pmc_events::event;
use pmc_sys::host::Host;

/// Reads names and prints the library's encoding of each: `TYPE CONFIG CONFIG1`, or `no`.
const ENCODER: &str = r#"
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct arguments { void *attr; char **fstr; size_t size; int idx, cpu, flags, pad0; };
int main(void) {
    void *library = dlopen("libpfm.so.4", RTLD_NOW);
    if (!library) return 1;
    int (*initialize)(void) = (int (*)(void))dlsym(library, "pfm_initialize");
    int (*encode)(const char *, int, int, void *) =
        (int (*)(const char *, int, int, void *))dlsym(library, "pfm_get_os_event_encoding");
    if (initialize()) return 1;
    char name[512];
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = 0;
        uint64_t attr[32] = {128ull << 32};
        struct arguments arguments = {attr, NULL, sizeof arguments, 0, -1, 0, 0};
        if (encode(name, 9, 2, &arguments)) printf("no\n");
        else printf("%u %llx %llx\n", (unsigned)attr[0], (unsigned long long)attr[1], (unsigned long long)attr[7]);
    }
    return 0;
}
"#;

/// Returns the library's encoding of each name, independent of this machine's CPU.
fn encoded(folder: &Path, names: &[String]) -> Vec<String> {
    let source = folder.join("encoder.c");
    std::fs::write(&source, ENCODER).expect("a file");
    let program = folder.join("encoder");
    let built = std::process::Command::new("cc").arg("-o").arg(&program).arg(&source).arg("-ldl").status();
    assert!(built.expect("cc starts").success());
    let input = folder.join("names");
    std::fs::write(&input, names.join("\n") + "\n").expect("a file");
    let output = std::process::Command::new(&program)
        .env("LIBPFM_ENCODE_INACTIVE", "1")
        .stdin(std::fs::File::open(&input).expect("the names"))
        .stderr(Stdio::null())
        .output()
        .expect("it starts");
    let answers: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), names.len());
    answers
}

/// Copies a recorded CPU under another model and stepping.
fn another(folder: &Path, cpu: &str, model: u32, stepping: u32) -> PathBuf {
    let saved = kit::data("cpus").join(cpu);
    let root = folder.join(format!("{model}-{stepping}"));
    std::fs::create_dir_all(root.join("proc")).expect("a folder");
    std::os::unix::fs::symlink(saved.join("sys"), root.join("sys")).expect("a link");
    let text = format!(
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: Some Xeon\nstepping\t: {stepping}\n"
    );
    std::fs::write(root.join("proc/cpuinfo"), text).expect("a file");
    root
}

/// Names for which libpfm4 4.13 differs from Intel's newer files. It has codes of fixed counters instead of
/// the kernel's general events, masks that were corrected later, and counter masks and registers that the
/// user must write.
const OTHERWISE: [&str; 17] = [
    "ARITH:IDIV_ACTIVE",
    "ARITH:INT_DIVIDER_ACTIVE",
    "CPU_CLK_UNHALTED:THREAD",
    // A given counter mask is combined bit by bit with the event's own.
    "DTLB_LOAD_MISSES:WALK_ACTIVE",
    "DTLB_STORE_MISSES:WALK_ACTIVE",
    "EXE:AMX_BUSY",
    "INST_RETIRED:ANY",
    "INT_MISC:UNKNOWN_BRANCH_CYCLES",
    "MEM_LOAD_MISC_RETIRED:UC",
    "MEM_TRANS_RETIRED:STORE_SAMPLE",
    "TOPDOWN:BACKEND_BOUND_SLOTS",
    "TOPDOWN:BAD_SPEC_SLOTS",
    "TOPDOWN:BR_MISPREDICT_SLOTS",
    "TOPDOWN:MEMORY_BOUND_SLOTS",
    "UOPS_RETIRED:MS",
    "UOPS_RETIRED:STALL_CYCLES",
    "UOPS_RETIRED:TOTAL_CYCLES",
];

#[test]
fn names_match_libpfm() {
    if !need_libpfm() || !need_program("cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let saved = |cpu: &str| kit::data("cpus").join(cpu);
    let tables =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pmc-events/src/event/vendor/tables/intel");
    let mut compared: BTreeMap<&str, usize> = BTreeMap::new();
    for (prefix, table, root) in [
        ("skx", "skylakex", saved("skylake-x")),
        ("spr", "sapphirerapids", saved("sapphire-rapids")),
        ("clx", "cascadelakex", another(folder.path(), "skylake-x", 85, 7)),
        ("icx", "icelakex", another(folder.path(), "sapphire-rapids", 106, 6)),
    ] {
        let text = std::fs::read_to_string(tables.join(format!("{table}.core.tsv"))).expect("the table");
        let names: Vec<String> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split('\t').next())
            .filter(|name| name.matches('.').count() == 1)
            .map(|name| name.replace('.', ":"))
            .filter(|name| !OTHERWISE.contains(&name.as_str()))
            .flat_map(|name| [format!("{prefix}::{name}"), format!("{prefix}::{name}:u:c=2:i")])
            .collect();
        let host = Host::rooted(root);
        for (name, answer) in names.iter().zip(encoded(folder.path(), &names)) {
            // Another version of the library has other names.
            if answer == "no" {
                continue;
            }
            let groups =
                event::parse(name, &host).unwrap_or_else(|error| panic!("{name}: {}", error.message));
            let attr = groups[0].events[0].attr().expect("a request");
            let ours = format!("{} {:x} {:x}", attr.kind(), attr.config(), attr.config1());
            assert_eq!(ours, answer, "{name}");
            *compared.entry(prefix).or_default() += 1;
        }
    }
    assert!(compared.len() == 4 && compared.values().all(|&names| names > 50), "{compared:?}");
}

#[test]
fn libpfm_names_of_software_events_are_counted() {
    if !need_libpfm() || !kit::need_perf_events() {
        return;
    }
    // The library has its own names for the kernel's software events.
    let count = |arguments: &[&str]| -> kit::Ran {
        let mut command = pmc();
        command.args(["stat", "-x,"]).args(arguments).args(["--", "true"]);
        command.output().expect("the binary starts").into()
    };
    for arguments in [
        &["-e", "perf::PERF_COUNT_SW_PAGE_FAULTS:u"][..],
        &["--pfm-events", "PERF_COUNT_SW_PAGE_FAULTS:u"],
        &["-e", "task-clock", "--pfm-events", "{perf::PERF_COUNT_SW_PAGE_FAULTS:u,perf::CONTEXT-SWITCHES}"],
    ] {
        let counted = count(arguments).expect(0).stderr;
        let line = counted.lines().find(|line| line.contains("PAGE_FAULTS:u")).expect("its line").to_owned();
        assert!(
            line.split(',').next().is_some_and(|count| count.parse::<u64>().is_ok_and(|n| n > 0)),
            "{line}"
        );
    }
    count(&["-e", "skx::NO_SUCH_EVENT:AT_ALL"])
        .expect(2)
        .says(&["cannot resolve libpfm4's `skx::NO_SUCH_EVENT:AT_ALL`"]);
}
