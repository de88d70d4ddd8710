//! `pmc profile`: recording and report in one step, and runtimes that are told to name their code.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::kit::{
    self,
    burn::{burn_flags, busy_shell, least_samples, share_error},
};

/// A temporary working folder.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// Builds a C program; returns `None` without a compiler.
    #[track_caller]
    fn build(&self, name: &str, source: &str, options: &[&str]) -> Option<String> {
        if !kit::need_program("gcc") {
            return None;
        }
        let (file, program) = (self.0.path().join(format!("{name}.c")), self.0.path().join(name));
        std::fs::write(&file, source).expect("a source");
        let built = Command::new("gcc")
            .arg("-O1")
            .args(burn_flags())
            .args(options)
            .arg("-o")
            .args([&program, &file])
            .status();
        assert!(built.expect("gcc starts").success());
        Some(program.to_str().expect("UTF-8").to_owned())
    }

    #[track_caller]
    fn profile(&self, words: &[&str]) -> kit::Ran {
        kit::pmc().arg("profile").args(words).current_dir(self.0.path()).output().expect("pmc starts").into()
    }
}

/// CPU time of [`SPIN`] without an argument, in milliseconds.
const SPIN_MS: u64 = 400;

/// With an argument, it runs until it is killed.
const SPIN: &str = "
__attribute__((noinline)) int busy(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }
int main(int c, char **v) { (void)v; for_cpu_ms(c > 1 ? 1000000000 : 400) busy(loops(1000000)); return 7; }
";

#[test]
fn command_is_recorded_and_reported_in_one_step() {
    let folder = Folder::new();
    let Some(program) = folder.build("spin", SPIN, &[]) else { return };
    if !kit::need_perf_events() {
        return;
    }
    // pmc exits with the command's status. The report is sorted by self cost.
    let run =
        folder.profile(&["-e", "cpu-clock:u", "--", &program]).expect(7).says(&["perf.data:", "none lost"]);
    let row =
        run.stderr.lines().find(|line| line.ends_with(" busy")).unwrap_or_else(|| panic!("{}", run.stderr));
    let share: f64 = row.trim().split('%').next().and_then(|n| n.parse().ok()).expect("a share");
    // The dynamic loader takes about a millisecond.
    let least = 100.0 * (0.98 - share_error(least_samples(SPIN_MS, 999)));
    assert!(share > least && run.stderr.lines().count() < 40 && run.stdout.is_empty(), "{}", run.stderr);
    // The recording has all callers.
    let file = folder.0.path().join("perf.data");
    let tree = kit::run(&["report", "--stdio", "--tree", "-i", file.to_str().expect("UTF-8")]).expect(0);
    // Samples of `main`'s other callees give `busy` a line of its own, even if theirs are hidden.
    let is_below_main = ["› main › busy", "├ busy", "└ busy"].iter().any(|path| tree.stdout.contains(path));
    assert!(is_below_main && tree.stdout.contains("› main"), "{}", tree.stdout);
    folder.profile(&["--", "/does/not/exist"]).expect(127).says(&["ENOENT"]);
    folder.profile(&[]).expect(2).says(&["nothing to profile", "pmc profile -- COMMAND"]);
}

#[test]
fn closed_output_keeps_the_commands_status() {
    if !kit::need_perf_events() {
        return;
    }
    let folder = Folder::new();
    let mut pmc = kit::pmc();
    pmc.args(["profile", "--stdio", "-e", "page-faults", "--", "sh", "-c", "exit 3"]);
    let mut running = pmc
        .current_dir(folder.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pmc starts");
    drop(running.stderr.take());
    assert_eq!(running.wait().expect("it ends").code(), Some(3));
}

#[test]
fn result_is_written_to_a_requested_file() {
    let folder = Folder::new();
    let Some(program) = folder.build("spin", SPIN, &[]) else { return };
    if !kit::need_perf_events() {
        return;
    }
    let read = |name: &str| std::fs::read_to_string(folder.0.path().join(name)).expect("an answer");
    let run = folder.profile(&["-e", "cpu-clock:u", "--html", "page.html", "--", &program]).expect(7);
    assert_eq!(run.says(&["perf.data:", "page.html is written"]).stdout, "");
    assert!(read("page.html").starts_with("<!doctype html>"));
    folder.profile(&["-q", "-e", "cpu-clock:u", "--format", "folded", "--", &program]).expect(7);
    assert!(read("perf.folded").contains("main;busy "), "{}", read("perf.folded"));
    // An invalid output format is reported before the command runs.
    folder.profile(&["--format", "xml", "-o", "never", "--", &program]).expect(2).says(&["unknown format"]);
    assert!(!folder.0.path().join("never").exists());
}

#[test]
fn running_processes_are_found_by_name() {
    let folder = Folder::new();
    let Some(program) = folder.build("pmc-by-name", SPIN, &[]) else { return };
    if !kit::need_perf_events() {
        return;
    }
    let mut running = Command::new(&program).arg("long").spawn().expect("it starts");
    kit::wait_for_ticks(running.id(), 2);
    let by_name = ["-e", "cpu-clock:u", "-p", "pmc-by-name", "--duration", "300ms", "-o", "by-name"];
    folder.profile(&by_name).expect(0).prints(&["busy"]);
    running.kill().expect("it runs");
    running.wait().expect("it ends");
    folder.profile(&["-p", "pmc-by-name"]).expect(2).says(&["no process is named `pmc-by-name`", "pgrep"]);
}

/// Source of a program that prints an environment variable. Its exported functions make its file look like a
/// runtime.
fn runtime(exported: &[&str], variable: &str) -> String {
    let functions: String =
        exported.iter().map(|name| format!("int {name}(void) {{ return 0; }}\n")).collect();
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n{functions}\
         int main(void) {{ const char *v = getenv(\"{variable}\"); printf(\"<%s>\\n\", v ? v : \"none\"); return 0; }}"
    )
}

#[test]
fn runtimes_are_told_to_write_perf_maps() {
    let folder = Folder::new();
    let node = "--perf-basic-prof --interpreted-frames-native-stack";
    for (name, exported, variable, said) in [
        ("any", &[][..], "NODE_OPTIONS", "<none>".to_owned()),
        ("node", &["_ZN4node5StartEiPPc"], "NODE_OPTIONS", format!("<--no-warnings {node}>")),
        ("new", &["Py_BytesMain", "PyUnstable_PerfMapState_Init"], "PYTHONPERFSUPPORT", "<1>".to_owned()),
        ("old", &["Py_BytesMain"], "PYTHONPERFSUPPORT", "<none>".to_owned()),
        (
            "java",
            &["JLI_Launch"],
            "JAVA_TOOL_OPTIONS",
            "<-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit>".to_owned(),
        ),
        ("luajit", &["luaJIT_setmode"], "LUA", "<none>".to_owned()),
        ("ruby", &["ruby_sysinit"], "RUBYOPT", "<none>".to_owned()),
        ("php", &["php_execute_script"], "PHP", "<none>".to_owned()),
        ("perl", &["perl_run"], "PERL5OPT", "<none>".to_owned()),
    ] {
        let Some(program) = folder.build(name, &runtime(exported, variable), &["-rdynamic"]) else { return };
        if !kit::need_perf_events() {
            return;
        }
        // Run through a script, as most runtimes are.
        let script = folder.0.path().join(format!("{name}.sh"));
        std::fs::write(&script, format!("#!{program}\n")).expect("a script");
        let run = |options: &[&str]| {
            let mut pmc = kit::pmc();
            pmc.arg("profile").args(options).args(["-e", "cpu-clock:u", "--"]).arg(&script);
            let pmc = pmc
                .current_dir(folder.0.path())
                .env_remove("PYTHONPERFSUPPORT")
                .env_remove("RUBYOPT")
                .env_remove("JAVA_TOOL_OPTIONS");
            let before = if name == "node" { "--no-warnings" } else { "" };
            kit::Ran::from(pmc.env("NODE_OPTIONS", before).output().expect("pmc starts"))
        };
        make_executable(&script);
        let asked = run(&[]).expect(0);
        let said = if name == "any" { "<>".to_owned() } else { said };
        assert!(asked.stdout.starts_with(&said), "{name}: {}", asked.stdout);
        let is_named = asked.stderr.contains("to name its generated code");
        assert_eq!(is_named, matches!(name, "node" | "new" | "java"), "{}", asked.stderr);
        for (lacks, remedy) in [
            ("old", "Python functions will have no names: this Python is older than 3.12"),
            ("luajit", "LUAJIT_USE_PERFTOOLS"),
            ("ruby", "(ruby --yjit --yjit-perf, from Ruby 3.3 on)"),
            ("php", "-d opcache.jit_debug=16)"),
            ("perl", "perl -d:NYTProf"),
        ] {
            assert_eq!(asked.stderr.contains(remedy), name == lacks, "{name}: {}", asked.stderr);
        }
        let left_alone = run(&["--no-runtime-env"]).expect(0);
        let before = if name == "node" {
            "<--no-warnings>"
        } else if name == "any" {
            "<>"
        } else {
            "<none>"
        };
        assert!(left_alone.stdout.starts_with(before), "{name}: {}", left_alone.stdout);
    }
}

#[test]
fn python_behind_shims_and_shared_libraries_is_recognized() {
    let folder = Folder::new();
    let at = folder.0.path().to_str().expect("UTF-8");
    let path = |name: &str| folder.0.path().join(name);
    let names = "void PyUnstable_PerfMapState_Init(void) {}\n";
    let library = folder.build("libpython3.13.so", names, &["-shared", "-fPIC"]);
    let (linked, beside) = (format!("-L{at}"), format!("-Wl,-rpath,{at}"));
    let options = ["-rdynamic", "-Wl,--no-as-needed", &linked, "-l:libpython3.13.so", &beside];
    let python = folder.build("python3.13", &runtime(&["Py_BytesMain"], "PYTHONPERFSUPPORT"), &options);
    let (Some(_), Some(python)) = (library, python) else { return };
    if !kit::need_perf_events() {
        return;
    }
    // Like pyenv: its shims run the manager, and `which` tells what program a shim runs.
    let manager = format!("#!/bin/sh\ncase $1 in which) echo {python};; exec) exec {python};; esac\n");
    let shim = format!(
        "#!/bin/sh\nset -e\nprogram=\"${{0##*/}}\"\nexec \"{at}/manager\" exec \"$program\" \"$@\"\n"
    );
    for (name, text) in [("manager", manager), ("python3", shim)] {
        std::fs::write(path(name), text).expect("a script");
        make_executable(&path(name));
    }
    for program in [path("python3.13"), path("python3")] {
        let mut pmc = kit::pmc();
        pmc.args(["profile", "-e", "cpu-clock:u", "--"]).arg(&program).env_remove("PYTHONPERFSUPPORT");
        let run = kit::Ran::from(pmc.current_dir(folder.0.path()).output().expect("pmc starts")).expect(0);
        assert!(run.stdout.starts_with("<1>"), "{}: {}", program.display(), run.stdout);
        run.says(&["asking Python to name its generated code: PYTHONPERFSUPPORT=1"]);
    }
}

#[test]
fn erlang_program_has_function_names() {
    if !kit::need_program("erl") || !kit::need_perf_events() {
        return;
    }
    let folder = Folder::new();
    let source = "-module(fib).\n-export([main/0]).\nfib(N) when N < 2 -> N;\nfib(N) -> fib(N-1) + fib(N-2).\n\
        main() -> io:format(\"~p~n\", [fib(32)]), halt().\n";
    std::fs::write(folder.0.path().join("fib.erl"), source).expect("a module");
    let built = Command::new("erlc").arg("fib.erl").current_dir(folder.0.path()).status();
    assert!(built.expect("erlc starts").success());
    let run = folder.profile(&["-e", "cpu-clock:u", "--", "erl", "-noshell", "-s", "fib", "main"]).expect(0);
    assert!(run.stderr.lines().any(|line| line.contains("fib:fib/1")), "{}", run.stderr);
    run.says(&["asking BEAM to name its generated code: ERL_AFLAGS=+JPperf true"]);
}

fn make_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn node_program_has_function_names() {
    if !kit::need_program("node") || !kit::need_perf_events() {
        return;
    }
    let folder = Folder::new();
    let script = folder.0.path().join("fib.js");
    let source = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\nconsole.log(fib(34));\n";
    std::fs::write(&script, source).expect("a script");
    let run = folder.profile(&["-e", "cpu-clock:u", "--", "node", script.to_str().expect("UTF-8")]).expect(0);
    assert!(run.stderr.lines().any(|line| line.contains("fib")), "{}", run.stderr);
}

#[test]
fn command_output_is_unchanged() {
    let folder = Folder::new();
    if !kit::need_program("gzip") || !kit::need_perf_events() {
        return;
    }
    let text: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(folder.0.path().join("F"), &text).expect("a text");
    for options in [&[][..], &["--stdio"]] {
        let packed = std::fs::File::create(folder.0.path().join("F.gz")).expect("a file");
        let mut pmc = kit::pmc();
        pmc.arg("profile").args(options).args(["-e", "cpu-clock", "--", "gzip", "-9", "-c", "F"]);
        let run = pmc.current_dir(folder.0.path()).stdout(packed).output().expect("pmc starts");
        kit::Ran::from(run).expect(0).says(&["gzip", "Trust: "]);
        let mut unpack = Command::new("gzip");
        let unpacked =
            unpack.args(["-dc", "F.gz"]).current_dir(folder.0.path()).output().expect("gzip starts");
        assert!(unpacked.status.success() && unpacked.stdout == text.as_bytes());
    }
    // Without a command, the report goes to standard output.
    let own = std::process::id().to_string();
    let run = folder.profile(&["-e", "page-faults", "-p", &own, "--duration", "100ms"]).expect(0);
    assert!(run.stdout.contains("Trust: ") && !run.stderr.contains("Trust: "), "{}", run.stdout);
}

/// The summary of the data's quality in a text, without the words around it.
#[track_caller]
fn trust(text: &str) -> String {
    let line = text.lines().find_map(|line| line.split_once("Trust: "));
    line.unwrap_or_else(|| panic!("{text}")).1.trim_end_matches('.').to_owned()
}

#[test]
fn all_commands_print_the_same_trust_line() {
    let folder = Folder::new();
    let Some(program) = folder.build("spin", SPIN, &[]) else { return };
    if !kit::need_perf_events() {
        return;
    }
    let profiled = trust(&folder.profile(&["-e", "cpu-clock:u", "--", &program]).expect(7).stderr);
    assert!(profiled.contains("of stacks complete") && profiled.contains("named"), "{profiled}");
    let file = folder.0.path().join("perf.data");
    let file = file.to_str().expect("UTF-8");
    for shows in [&["report", "--stdio", "-i", file][..], &["report", "--stdio", "-g", "caller", "-i", file]]
    {
        assert_eq!(trust(&kit::run(shows).expect(0).stdout), profiled);
    }
    // A report that does not read callers makes no claim about them.
    let flat = kit::run(&["report", "--stdio", "-g", "none", "--no-children", "-i", file]).expect(0).stdout;
    assert!(trust(&flat).ends_with("call chains were not read") && !trust(&flat).contains("root"), "{flat}");
    let compared = kit::run(&["diff", file, file]).expect(0).stdout;
    assert_eq!(trust(&compared), format!("{file}: {}", trust(&flat)));
    // Without samples there is no claim about symbols.
    let idle = folder.profile(&["-e", "cpu-clock:u", "-F", "1", "--", "true"]).expect(0);
    assert_eq!(trust(&idle.stderr), "0 samples, none lost");
}

#[test]
fn time_of_unsampled_processes_is_reported() {
    let folder = Folder::new();
    let Some(program) = folder.build("spin", SPIN, &[]) else { return };
    if !kit::need_perf_events() {
        return;
    }
    // Only the shell is long enough to be sampled reliably.
    let short = format!("for i in $(seq 300); do /bin/true; done; {}", busy_shell(100));
    let in_no_sample = "of the command's CPU time (";
    // Percentage of the CPU time without samples.
    let unsampled = |said: &str| {
        let before = said.split_once(in_no_sample).map(|(before, _)| before.trim_end().trim_end_matches('%'));
        before.map_or(0.0, |before| before.rsplit(' ').next().unwrap().parse::<f64>().expect("a number"))
    };
    let mut of_short = 100.0_f64;
    for event in ["cpu-clock", "cpu-clock:u"] {
        let run = folder.profile(&["-v", "-e", event, "--", "sh", "-c", &short]).expect(0);
        let run =
            run.says(&[in_no_sample, "samples miss", "try: use a higher rate (-F), or pmc stat --children"]);
        let file = folder.0.path().join("perf.data");
        let file = file.to_str().expect("UTF-8");
        kit::run(&["report", "--stdio", "-i", file]).expect(0).prints(&[in_no_sample]);
        // The unsampled time is unknown for a part of the samples.
        let part = kit::run(&["report", "--stdio", "-i", file, "--time", "0%-1%"]).expect(0);
        assert!(!part.stdout.contains(in_no_sample), "{}", part.stdout);
        let json = kit::run(&["report", "--json", "-i", file]).expect(0).stdout;
        let trust = &serde_json::from_str::<serde_json::Value>(&json).expect("JSON")["trust"];
        let [counted, sampled] = ["counted", "sampled"].map(|key| trust[key].as_u64().expect("a number"));
        assert!(sampled < counted, "{trust}");
        of_short = of_short.min(unsampled(&run.stderr));
    }
    let run = folder.profile(&["-v", "-e", "cpu-clock", "--", &program]).expect(7);
    // On a busy machine the sampling timer fires late.
    assert!(unsampled(&run.stderr) < of_short / 2.0, "{of_short}: {}", run.stderr);
}
