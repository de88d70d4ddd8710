//! Archives of this machine's recordings, read on the emulated Arm machine, which has neither the programs
//! nor the architecture.

use super::*;

/// Commands that the guest runs. `archived/perf.data` is the archive that [`prepare`] makes.
pub(super) const BATCH: &[(&str, &str)] = &[
    ("archived_report", "$T report --stdio --children -i archived/perf.data"),
    ("archived_annotate", "$T annotate --stdio2 -i archived/perf.data"),
    ("archived_caller", "$T annotate --stdio2 -i archived/perf.data main"),
    ("archived_script", "$T script --inline -F +srcline,+disasm -i archived/perf.data"),
    ("archived_page", "$T export --format html -o - -i archived/perf.data"),
    ("archived_stacks", "$T export --format speedscope -o - -i archived/perf.data"),
];

/// A program with an inlined function.
const PROGRAM: &str = "
volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long inlined(unsigned long x) {
    return x * 31 + (x >> 7); /* the cost is here */
}
__attribute__((noinline)) unsigned long hot(unsigned long n) {
    /* Needs a frame, so that chains by frame pointers contain the caller. */
    unsigned long x = n + (__builtin_frame_address(0) == 0);
    while (n--)
        x ^= inlined(x);
    return x;
}
int main(void) {
    for (int i = 0; i < 300; i++)
        sink += hot(1000000 + i);
    return 0;
}
";

/// Records a program of this machine as `recorded/perf.data` in `out`, and archives it as
/// `archived/perf.data`. Does nothing without software events.
pub(super) fn prepare(out: &Path) {
    if !kit::need_perf_events() || !kit::need_program("gcc") {
        return;
    }
    for folder in ["recorded", "archived"] {
        fs::create_dir(out.join(folder)).expect("a new folder");
    }
    let source = out.join("host-program.c");
    fs::write(&source, PROGRAM).expect("the source can be written");
    succeed(Command::new("gcc").args(["-O2", "-g", "-o"]).arg(out.join("host-program")).arg(source));
    let pmc = |words: &[&str]| succeed(kit::pmc().current_dir(out).args(words));
    let record = ["record", "-q", "-N", "-g", "-F", "2000", "-e", "cpu-clock:u", "-o"];
    pmc(&[&record[..], &["recorded/perf.data", "--", "./host-program"]].concat());
    pmc(&["archive", "--with-debug", "-o", "archived/perf.data", "recorded/perf.data"]);
}

#[test]
fn archives_give_the_same_output_on_another_architecture() {
    for (name, command) in BATCH {
        let Some(there) = guest(name) else { return };
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
        if !out.join("archived/perf.data").exists() {
            return;
        }
        // Here, the same command reads the recording and the program.
        let line = command.replace("$T", kit::binary()).replace("archived/", "recorded/");
        let mut shell = Command::new("sh");
        shell.current_dir(&out).args(["-c", &line]).env_remove("DEBUGINFOD_URLS").env("NO_COLOR", "1");
        let here = Ran::from(shell.env("LC_ALL", "C").stdin(Stdio::null()).output().expect("sh starts"));
        let there = there.expect(0);
        // The page contains its data in compressed form.
        let expected = if *name == "archived_page" { "</html>" } else { "hot" };
        assert!(here.stdout.contains(expected), "{name}: {here:?}");
        assert_eq!(here.stdout, there.stdout, "{name}");
        assert_eq!(here.stderr, there.stderr, "{name}");
    }
}
