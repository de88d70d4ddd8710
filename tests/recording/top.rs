//! `pmc top`: its tables for programs with known shares, how it starts and ends, and its screen in tmux.

use pmc_analysis::profile::sampled::SortKey;

use crate::Lab;
use crate::kit::{
    self,
    burn::{burn_flags, loops},
};

mod keys;
pub(crate) mod screen;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

impl Lab {
    /// Compiles a C program.
    #[track_caller]
    fn compile(&self, name: &str, source: &str) -> PathBuf {
        let (from, to) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&from, source).expect("the source can be written");
        let mut gcc = Command::new("gcc");
        // Without optimization every function has a frame.
        gcc.args(burn_flags()).args(["-O0", "-g", "-fno-omit-frame-pointer", "-o"]).arg(&to).arg(&from);
        let run = gcc.output().expect("gcc starts");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        to
    }
}

/// A process that is killed when the test ends.
pub(crate) struct Running(kit::ProcessGuard);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(kit::ProcessGuard::start(command.stdin(Stdio::null()).stdout(Stdio::null())))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn pid(&self) -> String {
        self.id().to_string()
    }
}

/// One function takes half of the time, another three tenths, and a third one fifth. Each multiplication
/// depends on the one before, so a round takes the same time wherever the linker places the loop. The next
/// function is chosen at random, because samples come at even intervals.
const SHARES: &str = r"
#define LOOP(name) void name(unsigned n) { register unsigned x = n; for (register unsigned i = 0; i < n; i++) { \
    x = x * 31 + 7; x = x * 37 + 5; x = x * 41 + 3; x = x * 43 + 1; } }
LOOP(fifty) LOOP(thirty) LOOP(twenty)
int main(void) {
    unsigned n = loops(5000);
    for (unsigned long long dice = 88172645463325252ull;;) {
        dice ^= dice << 13; dice ^= dice >> 7; dice ^= dice << 17;
        unsigned turn = (dice >> 32) % 10;
        if (turn < 5) fifty(n); else if (turn < 8) thirty(n); else twenty(n);
    }
}
";

/// Whether this machine can run these tests.
#[track_caller]
fn ready() -> bool {
    let needs = [kit::need_root(), kit::need_perf_events(), kit::need_program("gcc")];
    needs.iter().all(|&met| met)
}

/// Runs `pmc top --stdio` with these options until it ends.
#[track_caller]
fn top(options: &[&str]) -> kit::Ran {
    kit::pmc().args(["top", "--stdio", "-e", "cpu-clock"]).args(options).output().expect("pmc starts").into()
}

/// The tables of a run, each with its summary line.
fn tables(stdout: &str) -> Vec<&str> {
    let starts: Vec<usize> = stdout
        .match_indices(" samples/s of ")
        .map(|(at, _)| stdout[..at].rfind('\n').map_or(0, |n| n + 1))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([stdout.len()]);
    starts.iter().zip(ends).map(|(start, end)| &stdout[*start..end]).collect()
}

/// The percentage in a column of a function's row.
#[track_caller]
fn percent(table: &str, function: &str, column: usize) -> f64 {
    let row = table.lines().find(|line| line.ends_with(&format!("[.] {function}")));
    let row = row.unwrap_or_else(|| panic!("no {function} in\n{table}"));
    let field = row.split('%').nth(column).and_then(|part| part.split_whitespace().last());
    field.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number in {row}"))
}

/// The error after the first percentage (`±`) in a function's row.
#[track_caller]
fn error(table: &str, function: &str) -> f64 {
    let row = table.lines().find(|line| line.ends_with(&format!("[.] {function}"))).expect("a row");
    let field = row.split('±').nth(1).and_then(|part| part.split_whitespace().next());
    field.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no error in {row}"))
}

#[test]
fn function_shares_are_correct() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let ran =
        top(&["-p", &shares.pid(), "-F", "2000", "-d", "1", "--duration", "3s", "--accumulate"]).expect(0);
    let all = tables(&ran.stdout);
    assert!((2..=4).contains(&all.len()), "{} tables\n{}", all.len(), ran.stdout);
    let last = all.last().expect("a table");
    for (function, share) in [("fifty", 50.0), ("thirty", 30.0), ("twenty", 20.0)] {
        let shown = percent(last, function, 0);
        // The ± is a 95% interval. Two and a half of it are exceeded once in a million times. The program's own
        // randomness adds a little.
        let error = error(last, function);
        assert!((shown - share).abs() < 2.5 * error + 1.5, "{function}: {shown} for {share}\n{last}");
    }
    assert!(last.contains("none lost"), "{last}");
}

#[test]
fn callers_include_their_callees() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let ran = top(&["-g", "-p", &shares.pid(), "-F", "2000", "--duration", "2s"]).expect(0);
    let all = tables(&ran.stdout);
    let last = all.last().expect("a table");
    assert!(percent(last, "main", 0) > 90.0, "{last}");
    assert!(last.contains("Call tree") && last.contains("fifty"), "{last}");
    let ran = top(&["-g", "--no-children", "-p", &shares.pid(), "-F", "2000", "--duration", "1s"]).expect(0);
    assert!(!ran.stdout.contains("Children"), "{}", ran.stdout);
}

#[test]
fn threads_and_processes_are_separated() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let program = lab.compile("shares", SHARES);
    let (one, other) =
        (Running::start(&mut Command::new(&program)), Running::start(&mut Command::new(&program)));
    let pids = format!("{},{}", one.pid(), other.pid());
    let ran = top(&["-p", &pids, "-s", "pid,comm,sym", "--duration", "1s", "-n"]).expect(0);
    for pid in [one.pid(), other.pid()] {
        let row = |line: &&str| line.contains(&format!(" {pid}:shares ")) && line.contains("fifty");
        assert!(ran.stdout.lines().any(|line| row(&line)), "no row of {pid}\n{}", ran.stdout);
    }
    let only = top(&["-p", &pids, "--symbols", "thirty", "--duration", "1s"]).expect(0);
    assert!(only.stdout.contains("thirty") && !only.stdout.contains("fifty"), "{}", only.stdout);
    let kernel = top(&["-p", &pids, "-U", "--duration", "1s"]).expect(0);
    assert!(!kernel.stdout.contains("[.]"), "{}", kernel.stdout);
}

#[test]
fn older_samples_decay_expire_or_stay() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let options = ["-p", &shares.pid(), "-F", "1000", "-d", "0.5", "--duration", "4.2s"];
    let counts = |mode: &[&str]| -> Vec<u64> {
        let ran = top(&[&options[..], mode].concat()).expect(0);
        let number = |line: &str| line.split(' ').next()?.replace(',', "").parse().ok();
        ran.stdout.lines().filter(|line| line.contains(" samples of cpu-clock")).filter_map(number).collect()
    };
    // Both run concurrently, so that they see the same load of the machine.
    let (stays, goes) = std::thread::scope(|scope| {
        let stays = scope.spawn(|| counts(&["--accumulate"]));
        let goes = counts(&["-z"]);
        (stays.join().expect("it ends"), goes)
    });
    assert!(stays.windows(2).all(|pair| pair[0] <= pair[1]), "{stays:?}");
    // The last interval is a short one.
    let goes = &goes[..goes.len() - 1];
    assert!(*stays.last().expect("a table") > 2 * goes.iter().max().expect("a table"), "{stays:?} {goes:?}");
}

#[test]
fn closed_pipe_ends_top_successfully() {
    if !ready() || !kit::need_program("bash") {
        return;
    }
    let pmc = crate::kit::binary();
    let start = Instant::now();
    let line = format!("{pmc} top -e cpu-clock -d 0.2 2>&1 | head -3; echo ${{PIPESTATUS[0]}}");
    let run = Command::new("bash").args(["-c", &line]).stdin(Stdio::null()).output().expect("bash starts");
    let text = String::from_utf8_lossy(&run.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines.last()), (4, Some(&"0")), "{text}");
    // Otherwise it would run forever.
    assert!(start.elapsed() < kit::PATIENCE);
}

#[test]
fn closed_stdin_is_ignored() {
    if !ready() {
        return;
    }
    let pmc = crate::kit::binary();
    for end in ["<&-", "</dev/null"] {
        let line = format!("{pmc} top -e cpu-clock -d 0.5 --duration 1.2s {end}");
        let run: kit::Ran = Command::new("sh").args(["-c", &line]).output().expect("sh starts").into();
        let run = run.expect(0);
        // Three tables if the machine has enough time.
        assert!((1..=3).contains(&tables(&run.stdout).len()), "{}", run.stdout);
    }
}

#[test]
fn dumb_terminal_gets_plain_lines() {
    if !ready() || !kit::need_program("script") {
        return;
    }
    let pmc = crate::kit::binary();
    let line = format!("TERM=dumb {pmc} top -e cpu-clock --duration 0.5s");
    let run = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
    let run: kit::Ran = run.expect("script starts").into();
    let run = run.expect(0);
    assert!(run.stdout.contains("samples/s of cpu-clock") && !run.stdout.contains('\x1b'), "{}", run.stdout);
}

#[test]
fn unprivileged_user_sees_own_processes() {
    if !ready() || !kit::need_program("setpriv") {
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let strict = paranoid.trim().parse::<i32>().is_ok_and(|level| (1..=2).contains(&level));
    if !kit::need("paranoid", strict, "kernel.perf_event_paranoid is not 1 or 2") {
        return;
    }
    let lab = Lab::new();
    let shares = lab.compile("shares", SHARES);
    // A copy that the other user can read.
    let pmc = lab.path("pmc");
    kit::copy_program(kit::binary(), &pmc);
    let open = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    };
    [lab.0.path(), &pmc, &shares].into_iter().for_each(open);
    let script = format!(
        "{} & p=$!; {} top --stdio -e cpu-clock --duration 4s; s=$?; kill $p; exit $s",
        shares.display(),
        pmc.display()
    );
    let run: kit::Ran = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "sh", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .expect("setpriv starts")
        .into();
    let run = run.expect(0).says(&["only your own processes"]).prints(&["fifty"]);
    assert_eq!(run.stderr.matches("only your own processes").count(), 1, "{}", run.stderr);
}

#[test]
fn top_ends_with_its_last_target() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let mut shares =
        Command::new(lab.compile("shares", SHARES)).stdin(Stdio::null()).spawn().expect("it starts");
    let pid = shares.id().to_string();
    let top = ["top", "--stdio", "-e", "cpu-clock", "-p", &pid, "-d", "600"];
    let pmc = kit::pmc().args(top).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("pmc starts");
    kit::wait_for_counters(pmc.id(), 1);
    kit::wait_for_ticks(shares.id(), 30);
    shares.kill().expect("it can be killed");
    shares.wait().expect("it ended");
    let run = kit::Ran::from(pmc.wait_with_output().expect("pmc ends"));
    let run = run.expect(0).says(&["all sampled processes have ended"]).prints(&["fifty"]);
    assert_eq!(tables(&run.stdout).len(), 1, "{}", run.stdout);
}

#[test]
fn command_is_sampled_until_it_ends_and_ends_with_top() {
    if !ready() || !kit::need_program("timeout") {
        return;
    }
    let lab = Lab::new();
    let shares = lab.compile("shares", SHARES).display().to_string();
    let line = format!("echo heard; timeout 1 {shares}");
    // pmc exits with the command's status. The command's output stays out of the tables. There is no message
    // that the process has ended.
    let run = top(&["-g", "-d", "600", "--", "sh", "-c", &line]).expect(124).prints(&["fifty", "thirty"]);
    assert_eq!(tables(&run.stdout).len(), 1, "{}", run.stdout);
    assert!(run.stderr.contains("heard") && !run.stdout.contains("heard"), "{}{}", run.stderr, run.stdout);
    assert!(!run.stderr.contains("all sampled processes have ended"), "{}", run.stderr);
    // A command that still runs is terminated.
    let line = format!("echo $$ >{0}; exec {shares}", lab.path("pid").display());
    top(&["--duration", "700ms", "-d", "600", "--", "sh", "-c", &line]).expect(0).prints(&["fifty"]);
    let pid = std::fs::read_to_string(lab.path("pid")).expect("the command's number");
    kit::wait_for("the command's end", || kit::ticks(pid.trim().parse().expect("a number")).is_none());
    // Nothing is printed for a command that cannot be started.
    let run = top(&["--", "/does/not/exist"]).expect(127).says(&["ENOENT"]);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
}

#[test]
fn hostile_names_are_harmless() {
    if !ready() || !kit::need_program("objcopy") {
        return;
    }
    let lab = Lab::new();
    let source = r#"
#include <sys/prctl.h>
static volatile unsigned sink;
void spin(void) { for (unsigned i = 0; i < LOOPS; i++) sink += i; }
int main(void) { prctl(PR_SET_NAME, "e\033[2J\tv\xcc\x81\xe6\x95\xb0"); for (;;) spin(); }
"#;
    std::fs::write(lab.path("evil.c"), source.replace("LOOPS", &loops(100_000).to_string()))
        .expect("the source can be written");
    let object = lab.path("evil.o");
    let run = |command: &mut Command| assert!(command.status().expect("it starts").success(), "{command:?}");
    run(Command::new("gcc").args(["-O1", "-c", "-o"]).arg(&object).arg(lab.path("evil.c")));
    run(Command::new("objcopy").args(["--redefine-sym", "spin=sp\u{1b}[2J\ti\u{202e}n数"]).arg(&object));
    let program = lab.path("evil\u{1b}]0;title\u{7}");
    run(Command::new("gcc").arg("-o").arg(&program).arg(&object));
    let evil = Running::start(&mut Command::new(&program));
    let ran = top(&["-p", &evil.pid(), "-s", "comm,dso,sym", "--duration", "1s"]).expect(0);
    let bad = ran.stdout.chars().find(|c| c.is_control() && *c != '\n' || *c == '\u{202e}');
    assert_eq!(bad, None, "{:?}", ran.stdout);
    let row = ran.stdout.lines().find(|line| line.contains("sp?[2J?i?n数"));
    let row = row.unwrap_or_else(|| panic!("no row\n{}", ran.stdout));
    let heading = ran.stdout.lines().find(|line| line.contains("Symbol")).expect("a heading");
    // Columns line up with the heading, whatever the width of the characters.
    let column = |line: &str, word: &str| {
        use unicode_width::UnicodeWidthStr;
        line[..line.find(word).unwrap_or(0)].width()
    };
    assert_eq!(column(heading, "Symbol"), column(row, "[.]"), "{heading}\n{row}");
}

#[test]
fn errors_and_signals_set_the_exit_status() {
    kit::run(&["top", "--stdio", "-s", "simbol"]).expect(2).says(&["did you mean"]);
    kit::run(&["top", "--stdio", "-d", "0"]).expect(2).says(&["must be a time"]);
    kit::run(&["top", "--tui"]).expect(2).says(&["requires a terminal"]);
    kit::run(&["top", "--stdio", "--call-graph", "dwarf"]).expect(2).says(&["pmc record"]);
    if !ready() {
        return;
    }
    kit::run(&["top", "--stdio", "-e", "no-such-event"]).expect(2);
    kit::run(&["top", "--stdio", "-p", "999999999"]).expect(1).says(&["no process"]);
    for (signal, status) in [("INT", Some(0)), ("TERM", None), ("HUP", None)] {
        let mut pmc = kit::pmc();
        let child =
            pmc.args(["top", "--stdio", "-e", "cpu-clock", "-d", "0.3"]).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("pmc starts");
        // pmc is running once its first line appears.
        let mut first = [0; 1];
        child.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("a table");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().expect("kill starts").success());
        let run = kit::Ran::from(child.wait_with_output().expect("pmc ends"));
        assert_eq!(run.status, status, "{signal}: {}", run.stderr);
        assert!(
            run.stdout.contains("samples/s of cpu-clock") || run.stdout.contains(" s: "),
            "{}",
            run.stdout
        );
    }
}

#[test]
fn each_event_has_its_own_table() {
    if !ready() {
        return;
    }
    let run =
        kit::run(&["top", "--stdio", "-e", "cpu-clock,page-faults", "-a", "--duration", "1s"]).expect(0);
    let tables = run.stdout.matches("samples of ").count();
    assert!(tables >= 2 && run.stdout.contains("page-faults"), "{}", run.stdout);
}

#[test]
fn json_prints_one_line_per_interval() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let options = ["top", "--json", "-e", "cpu-clock", "-p", &shares.pid(), "-d", "0.2", "--duration", "1s"];
    let run = kit::run(&options).expect(0);
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    // At least one line: a busy machine may allow no more.
    let last = lines.last().expect("a line");
    assert_eq!((&last["version"], &last["lost"]), (&1.into(), &0.into()), "{last}");
    let event = &last["events"][0];
    assert_eq!(event["name"], "cpu-clock");
    let rows = event["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["sym"] == "fifty" && row["dso"] == "shares"), "{last}");
    assert!(last["since_ns"].as_u64() >= Some(200_000_000) && last["split"]["user"].is_f64(), "{last}");
}

#[test]
fn perf_options_select_columns_rows_and_events() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let pid = shares.pid();
    // Prints tables until a busy machine has given the program time for enough samples.
    let tables = |options: &[&str], is_enough: &dyn Fn(&str) -> bool| {
        let mut pmc = kit::pmc();
        pmc.args(["top", "--stdio", "-e", "cpu-clock", "-p", &pid, "-d", "200ms"]).args(options);
        let mut top = kit::ProcessGuard::start(pmc.stdout(Stdio::piped()));
        let mut lines = BufReader::new(top.0.stdout.take().expect("a pipe")).lines();
        let mut printed = String::new();
        while !is_enough(&printed) {
            printed += &lines.next().expect("another line").expect("a line");
            printed.push('\n');
        }
        printed
    };
    let has = |words: &'static str| move |printed: &str| printed.contains(words);
    // The requested columns, in this order.
    let columns = tables(&["--fields", "sample,sym"], &has("Symbol"));
    let heading = columns.lines().find(|line| line.contains("Symbol")).expect("a heading");
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["Samples", "Symbol"], "{columns}");
    // Rows below rows.
    let below = tables(&["-H", "-s", "comm,sym"], &has("[.] fifty"));
    let program = below.lines().position(|line| line.trim_end().ends_with("shares")).expect("the program");
    let function = below.lines().position(|line| line.contains("[.] fifty")).expect("a function");
    assert!(program < function, "{below}");
    // No function has that many samples, and no row is from the kernel if the kernel is hidden.
    let has_three = |printed: &str| printed.matches(" samples/s of ").count() > 3;
    assert!(!tables(&["-f", "1000000"], &has_three).contains("fifty"));
    let user = tables(&["--hide_kernel_symbols", "--percentage", "relative", "-s", "sym"], &has("[.] fifty"));
    assert!(!user.contains("[k]"), "{user}");
    // Callees count as the function's self cost.
    let options = ["-g", "--no-children", "--ignore-callees", "^main$", "-s", "sym", "-r", "1"];
    let callees = tables(&options, &has("[.] main"));
    assert!(!callees.contains("[.] fifty"), "{callees}");
}

#[test]
fn fields_of_the_sort_keys_are_sampled() {
    if !ready() {
        return;
    }
    let page_faults = |key: &str, options: &[&str]| -> kit::Ran {
        let all = [&["top", "--stdio", "-e", "page-faults", "-c", "1", "-s", key], options].concat();
        kit::pmc().args(all).args(["--", "true"]).output().expect("pmc starts").into()
    };
    for (key, page) in [("data_page_size", "4K"), ("code_page_size", "4K")] {
        page_faults(key, &[]).expect(0).prints(&[page]);
    }
    // Addresses in the kernel's mapping of the program, not 0.
    assert!(!page_faults("phys_daddr", &[]).expect(0).stdout.contains("0000000000000000"));
    let live = |key: &SortKey| page_faults(key.name(), &["--no-children"]);
    let refused: Vec<&str> = SortKey::names()
        .map(|name| name.parse::<SortKey>().expect("it is a sort key"))
        .filter(|key| {
            let ran = live(key);
            match ran.status {
                Some(0) => false,
                _ => {
                    ran.expect(2).says(&["live view", "try: pmc record"]);
                    true
                }
            }
        })
        .map(SortKey::name)
        .collect();
    for key in ["time", "trace", "parent", "parallelism", "waker", "ran_instead", "symbol_to", "mispredict"] {
        assert!(refused.contains(&key), "{key}: {refused:?}");
    }
    assert!(!refused.contains(&"transaction") && !refused.contains(&"process"), "{refused:?}");
}
