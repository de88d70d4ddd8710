//! The real binary on a real terminal (tmux's): keys, screens, and the state of the terminal afterwards.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pmc_tui::keys::{CHAPTERS, KeyAction};

use crate::kit::burn::{burn_flags, least_samples, share_error};
use crate::kit::terminal::Tmux;
use crate::kit::{self, in_tmux, need_perf_events, need_program, pmc, run};

/// Functions of 50, 30 and 20 %: chains of multiplications take the same time everywhere. Asking for the
/// frame's address makes the compiler build a frame. The rounds differ, or they could run in step with the
/// samples.
const SHARES: &str = r#"
volatile unsigned long sink;
#define SPIN(n) unsigned long x = (unsigned long)__builtin_frame_address(0); \
  for (long i = 0; i < loops(n); i++) { x = x * 6364136223846793005ul + 1; __asm__ volatile("" : "+r"(x)); } sink = x;
__attribute__((noinline)) void half(long n) { SPIN(n * 50) }
__attribute__((noinline)) void third(long n) { SPIN(n * 30) }
__attribute__((noinline)) void fifth(long n) { SPIN(n * 20) }
__attribute__((noinline)) void work(long n) { half(n); third(n); fifth(n); sink++; }
int main(void) { long i = 0; for_cpu_ms(500) work(100 + i++ * 7919 % 503); return 0; }
"#;

/// Code under hostile symbol names, in a thread with a hostile name.
const HOSTILE: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
static unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
static const char *names[] = {"evil\033[2J\033]0;gotcha\007name", "tab\tname", "\346\225\260\346\215\256\345\272\223", "e\314\201\314\201\314\201\314\201\314\201\314\201combining", "plain"};
int main(void) {
  unsigned char *p = mmap(0, 8192, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char name[64];
  sprintf(name, "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(name, "w");
  for (int i = 0; i < 5; i++) {
    memcpy(p + 256 * i, code, sizeof code);
    fprintf(f, "%lx 40 %s\n", (long)p + 256 * i, names[i]);
  }
  fclose(f);
  prctl(PR_SET_NAME, "e\033[31mv\til\346\225\260");
  for (int r = 0; r < 40; r++) for (int i = 0; i < 5; i++) for_cpu_ms(2) ((void (*)(int, int))(p + 256 * i))(loops(50000), loops(50000));
  return 0;
}
"#;

/// Error of a share, in percent, in a recording of a program that works for 500 ms.
fn error() -> f64 {
    100.0 * share_error(least_samples(500, 3989))
}

/// A temporary folder with programs and recordings.
struct Lab(tempfile::TempDir);

impl Lab {
    /// Returns `None` if a required program or perf events are unavailable.
    fn new() -> Option<Self> {
        let has_all = need_program("tmux") && need_program("gcc") && need_perf_events();
        has_all.then(|| Self(tempfile::tempdir().unwrap()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds a program and records it.
    fn record(&self, source: &str, name: &str) -> PathBuf {
        let code = self.path(&format!("{name}.c"));
        std::fs::write(&code, source).unwrap();
        let program = self.path(name);
        let built = Command::new("gcc")
            .args(burn_flags())
            .args(["-O1", "-g", "-fno-omit-frame-pointer", "-x", "c", "-o"])
            .args([&program, &code])
            .status()
            .unwrap();
        assert!(built.success());
        let data = self.path(&format!("{name}.data"));
        let recorded = pmc()
            .args(["record", "-q", "-e", "cpu-clock:u", "-F", "3989", "-g", "-o"])
            .args([&data, &program])
            .stdout(Stdio::null())
            .output()
            .unwrap();
        assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
        data
    }
}

/// Starts a shell in a terminal of this size.
#[track_caller]
fn shell(lab: &Lab, width: u16, height: u16) -> Tmux {
    let path = format!(
        "PATH={}:{}",
        Path::new(crate::kit::binary()).parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let cache = format!("XDG_CACHE_HOME={}", lab.path("cache").display());
    // A backtrace would scroll the panic's message away.
    let settings =
        ["env", "-u", "NO_COLOR", "-u", "RUST_BACKTRACE", "LC_ALL=C.UTF-8", "PS1=> ", &path, &cache];
    let shell = ["bash", "--norc", "--noprofile"];
    let tmux = Tmux::start(
        width,
        height,
        &["-c", lab.0.path().to_str().unwrap()],
        &[&settings[..], &shell].concat(),
    );
    tmux.until_shown(">");
    tmux
}

/// Types a command and Enter.
#[track_caller]
fn enter(tmux: &Tmux, command: &str) {
    tmux.text(command);
    tmux.keys(&["Enter"]);
}

#[track_caller]
fn press(tmux: &Tmux, keys: &[&str]) {
    for key in keys {
        tmux.keys(&[key]);
        if *key == "Escape" {
            tmux.wait_until_typed();
        }
    }
}

#[track_caller]
fn resize(tmux: &Tmux, width: u16, height: u16) {
    tmux.run(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
}

/// Checks that pmc restored the terminal, and that the last command had this exit status.
#[track_caller]
fn is_sane(tmux: &Tmux, status: &str) {
    tmux.until("the shell's own screen", |screen| {
        tmux.fact("alternate_on") == "0" && screen.trim_end().ends_with('>')
    });
    enter(tmux, "echo status=$?=");
    tmux.until_shown(&format!("status={status}="));
    assert_eq!(tmux.fact("cursor_flag"), "1", "the cursor is seen");
    assert_eq!(tmux.fact("mouse_any_flag"), "0", "the mouse is the terminal's");
    enter(tmux, "clear; stty -a | tr ' ' '\\n' | grep -cE '^(icanon|echo|isig|icrnl|opost);?$'");
    tmux.until("a terminal in cooked mode", |screen| screen.lines().any(|line| line.trim() == "5"));
}

/// Waits until the whole recording has been read.
#[track_caller]
fn settled(terminal: &Tmux) -> String {
    terminal.until("a whole profile", |screen| {
        screen.contains("samples") && !screen.lines().next().is_some_and(|header| header.contains('['))
    })
}

/// Percentage number `which`, counted from 0, of the first line with these words.
fn share(screen: &str, words: &str, which: usize) -> f64 {
    let line =
        screen.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}:\n{screen}"));
    let percents = line.split_whitespace().filter_map(|word| word.strip_suffix('%'));
    percents.filter_map(|word| word.parse().ok()).nth(which).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn recording_can_be_browsed() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 120, 40);
    enter(&terminal, "pmc report shares.data");
    terminal.until_shown("half");
    let screen = settled(&terminal);
    assert_eq!(terminal.fact("alternate_on"), "1");
    // Known shares within twice the error that the screen shows, and one more point. (An excess of four
    // errors has a probability of one in ten thousand.)
    for (name, wanted) in [("half", 50.0), ("third", 30.0), ("fifth", 20.0)] {
        let line = screen.lines().find(|line| line.contains(&format!("  {name}"))).unwrap();
        let error: f64 = line.split('±').nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
        let own = share(&screen, &format!("  {name}"), 1);
        assert!(
            (own - wanted).abs() < 2.0 * error + 1.0,
            "{name}: {own} instead of {wanted} ±{error}\n{screen}"
        );
    }
    // Drill down: the callees of `work`.
    press(&terminal, &["/"]);
    enter(&terminal, "\\] work$");
    press(&terminal, &["Enter"]);
    let screen = terminal.until_shown("Callees of work");
    let screen = if screen.contains("half") { screen } else { terminal.until_shown("half") };
    assert!(screen.contains("third") && !screen.contains("main  shares"), "{screen}");
    // The flame graph of those, then of everything.
    press(&terminal, &["3"]);
    terminal.until_shown("▏half");
    press(&terminal, &["Escape"]);
    terminal.until_shown("Total▾");
    press(&terminal, &["3"]);
    let screen = terminal.until_shown("▏main");
    assert!(screen.contains("▏work"), "{screen}");
    press(&terminal, &["/"]);
    enter(&terminal, "half");
    let screen = terminal.until_shown("match \"half\"");
    let matched = share(&screen, "match", 0);
    assert!((matched - 50.0).abs() < error(), "{screen}");
    // The function's code, with a hot line.
    press(&terminal, &["a"]);
    let screen = terminal.until_shown("{ SPIN(n * 50) }");
    assert!(screen.contains("of the function") && screen.contains("imul"), "{screen}");
    // Filter.
    press(&terminal, &["Escape", "1", "&"]);
    enter(&terminal, "fifth|third");
    let screen = terminal.until_shown(" of 2: ");
    assert!(!screen.contains("half"), "{screen}");
    press(&terminal, &["Escape"]);
    terminal.until_shown("half");
    // Restrict the view to a time range.
    press(&terminal, &["T", "g", "Space", "Right", "Right", "Right", "Enter"]);
    terminal.until_shown("only 0.000-");
    press(&terminal, &["Escape"]);
    // Export the view to a file.
    press(&terminal, &["x", "C-w"]);
    enter(&terminal, "folded");
    terminal.until_shown("pmc-view.folded is written");
    let folded = std::fs::read_to_string(lab.path("pmc-view.folded")).unwrap();
    let line = folded.lines().find(|line| line.contains("main;work;half ")).unwrap();
    assert!(line.rsplit(' ').next().unwrap().parse::<u64>().unwrap() > 10, "{folded}");
    // The umask sets its mode, like that of any new file.
    let mode = |name: &str| std::fs::metadata(lab.path(name)).unwrap().permissions().mode();
    std::fs::write(lab.path("any"), "").unwrap();
    assert_eq!(mode("pmc-view.folded"), mode("any"));
    press(&terminal, &["x", "C-w"]);
    enter(&terminal, "folded");
    terminal.until_shown("File exists");
    press(&terminal, &["x", "C-u"]);
    enter(&terminal, "view.json");
    terminal.until_shown("view.json is written");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(lab.path("view.json")).unwrap()).unwrap();
    assert!(json["events"][0]["rows"].as_array().unwrap().len() > 4);
    // Resize: smaller, larger, too small, and back.
    press(&terminal, &["g"]);
    for (width, height) in [(60, 15), (200, 50)] {
        resize(&terminal, width, height);
        let screen = terminal.until("the last line where it belongs", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            lines.len() == usize::from(height) && lines[usize::from(height) - 1].contains("? help")
        });
        assert!(screen.contains("half") && screen.contains("1 Functions"), "{screen}");
    }
    resize(&terminal, 50, 12);
    terminal.until_shown("pmc needs 60x15, this is 50x12");
    resize(&terminal, 100, 30);
    terminal.until_shown("half");
    // pmc writes nothing while nothing changes.
    let pid = terminal.child();
    let written = || {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().to_owned()
    };
    kit::wait_until_idle(pid);
    let before = written();
    kit::let_pass(Duration::from_millis(1500));
    assert_eq!(before, written(), "an idle screen draws");
    press(&terminal, &["q"]);
    is_sane(&terminal, "0");
}

#[test]
fn colours_follow_the_terminal() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 120, 30);
    // Colours of the bars: true colour on a dark and on a light background, and the nearest of 256 colours.
    let (dark, light, either) = ("38;2;232;144;79m", "38;2;154;74;0m", "38;2;175;95;0m");
    let shows = |colour: &str| {
        let coloured = || terminal.painted();
        kit::wait_for_screen(colour, coloured, |screen| screen.contains(colour) && screen.contains("half"));
    };
    for (before, option, colour) in [
        ("COLORTERM=truecolor", "--theme dark", dark),
        ("COLORTERM=truecolor", "--theme light", light),
        ("COLORTERM=truecolor PMC_THEME=light", "", light),
        ("COLORTERM=truecolor COLORFGBG='15;0'", "", dark),
        ("COLORTERM= TERM=screen-256color", "--theme dark", "38;5;173m"),
        ("COLORTERM= TERM=screen", "--theme dark", "38;5;3m"),
    ] {
        enter(&terminal, &format!("clear; {before} pmc report {option} shares.data"));
        shows(colour);
        press(&terminal, &["Q"]);
        is_sane(&terminal, "0");
    }
    // The terminal's reply about its background arrives between two keys.
    enter(&terminal, "clear; COLORTERM=truecolor pmc report shares.data");
    shows(either);
    let answer: Vec<String> =
        b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\".iter().map(|byte| format!("{byte:02x}")).collect();
    let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
    press(&terminal, &["j"]);
    terminal.run(&[&["send-keys", "-H"], &answer[..]].concat());
    press(&terminal, &["j"]);
    shows(light);
    let screen = terminal.until_shown("3 of ");
    assert!(screen.contains("Total▾"), "{screen}");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
    enter(&terminal, "clear; COLORTERM=truecolor NO_COLOR=1 pmc report --theme light shares.data");
    terminal.until_shown("half");
    let coloured = terminal.painted();
    assert!(!coloured.contains("38;"), "{coloured}");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
    enter(&terminal, "clear; PMC_THEME=pink pmc report shares.data");
    terminal.until_shown("dark, light or auto");
    is_sane(&terminal, "2");
}

#[test]
fn every_key_on_the_help_page_is_handled() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 90, 24);
    enter(&terminal, "pmc report shares.data");
    terminal.until_shown("half");
    settled(&terminal);
    let leaves = [KeyAction::Quit, KeyAction::Back, KeyAction::Suspend];
    for pane in ["1", "2", "3", "4", "5", "6"] {
        for binding in CHAPTERS.iter().flat_map(|chapter| chapter.bindings) {
            if leaves.contains(&binding.action) {
                continue;
            }
            // Undo the key's effect: Escape closes questions and choices before it removes filters. The
            // pane's key returns to the pane.
            let keys: Vec<String> = binding.keys.iter().map(|key| in_tmux(*key)).collect();
            let mut all: Vec<&str> = keys.iter().map(String::as_str).collect();
            all.extend(["Escape", pane]);
            press(&terminal, &all);
        }
        assert_eq!(terminal.fact("alternate_on"), "1", "pane {pane}:\n{}", terminal.shown());
    }
    press(&terminal, &["Escape", "1", "?"]);
    terminal.until_shown("Moving");
    press(&terminal, &["G"]);
    terminal.until_shown("quit immediately");
    press(&terminal, &["q"]);
    terminal.until_shown("Shared Object");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
}

#[test]
fn redraw_does_not_wait_for_a_terminal_reply() {
    let Some(lab) = Lab::new() else { return };
    if !need_program("script") {
        return;
    }
    let data = lab.record(SHARES, "shares");
    // The terminal of `script` replies to no query. Ctrl-L redraws, `Q` quits.
    let report = format!("stty rows 24 cols 80; {} report {}", crate::kit::binary(), data.display());
    let mut script = Command::new("script")
        .args(["-qec", &report, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    script.stdin.take().unwrap().write_all(b"\x0cQ").unwrap();
    let output = script.wait_with_output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && screen.contains("\x1b[2J"), "{}: {screen}", output.status);
}

#[test]
fn terminal_is_restored_after_every_kind_of_exit() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 80, 24);
    for (signal, status) in [("TERM", "143"), ("INT", "130"), ("HUP", "129")] {
        enter(&terminal, "pmc report shares.data");
        terminal.until_shown("half");
        let killed =
            Command::new("kill").args([format!("-{signal}"), terminal.child().to_string()]).status().unwrap();
        assert!(killed.success());
        is_sane(&terminal, status);
    }
    // After a panic its message is readable.
    enter(&terminal, "PMC_TEST_PANIC=draw pmc report shares.data");
    terminal.until_shown("PMC_TEST_PANIC asked for this");
    is_sane(&terminal, if cfg!(debug_assertions) { "101" } else { "134" });
    // Stop with the key, continue, stop from outside, continue.
    enter(&terminal, "clear; pmc report shares.data");
    terminal.until_shown("half");
    let pid = terminal.child();
    press(&terminal, &["C-z"]);
    terminal.until_shown("Stopped");
    is_sane(&terminal, "148");
    enter(&terminal, "fg");
    terminal.until_shown("Total▾");
    assert_eq!(terminal.fact("alternate_on"), "1");
    press(&terminal, &["2"]);
    terminal.until_shown("Call tree");
    kit::wait_until_idle(pid);
    assert!(Command::new("kill").args(["-TSTP", &pid.to_string()]).status().unwrap().success());
    terminal.until_shown("Stopped");
    enter(&terminal, "clear; fg");
    terminal.until_shown("Call tree");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
}

#[test]
fn without_terminal_report_prints_text() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 100, 50);
    for command in [
        "TERM=dumb pmc report shares.data",
        "pmc report shares.data </dev/null",
        "pmc report shares.data <&-",
        "pmc report --stdio shares.data",
        "pmc report shares.data | cat",
        "pmc report --max-rows 3 shares.data",
    ] {
        enter(&terminal, "clear");
        enter(&terminal, &format!("{command}; echo ended=$?="));
        let screen = terminal.until_shown("ended=0=");
        assert!(screen.contains("half"), "{command}:\n{screen}");
        assert_eq!(terminal.fact("alternate_on"), "0", "{command}");
    }
    enter(&terminal, "clear; pmc report shares.data | head -3; echo ended=${PIPESTATUS[0]}=");
    terminal.until_shown("ended=0=");
    // An unreadable file is reported without switching to the full screen.
    enter(&terminal, "clear; pmc report missing.data; echo ended=$?=");
    let screen = terminal.until_shown("ended=1=");
    assert!(screen.contains("missing.data"), "{screen}");
    run(&["report", "--stdio", lab.path("shares.data").to_str().unwrap()]).expect(0).prints(&["half"]);
}

#[test]
fn text_on_a_terminal_is_coloured() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 100, 50);
    let bar = "38;2;232;144;79m█";
    for (before, options, is_coloured) in [
        ("COLORTERM=truecolor", "--theme dark", true),
        ("COLORTERM=truecolor NO_COLOR=1", "--theme dark --stdio-color always", true),
        ("COLORTERM=truecolor NO_COLOR=1", "--theme dark", false),
        ("COLORTERM=truecolor TERM=dumb", "--theme dark", false),
        ("COLORTERM=truecolor", "--theme dark --color never", false),
    ] {
        enter(
            &terminal,
            &format!("clear; {before} pmc report --stdio {options} shares.data; echo ended=$?="),
        );
        terminal.until_shown("ended=0=");
        let screen = terminal.painted();
        assert_eq!(screen.contains(bar), is_coloured, "{before} {options}:\n{screen}");
        assert!(is_coloured || !screen.contains('\x1b'), "{before} {options}:\n{screen}");
    }
}

#[test]
fn long_output_is_paged() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    std::fs::write(lab.path("never"), "[pager]\n\treport = false\n").unwrap();
    let terminal = shell(&lab, 80, 12);
    let report = "report --stdio shares.data";
    for (command, is_paged) in [
        (format!("PAGER='sed s/^/page:/' pmc {report}"), true),
        (format!("PAGER=cat PERF_PAGER=\"sed 's/^/page:/'\" pmc {report}"), true),
        ("PAGER='sed s/^/page:/' pmc script shares.data".to_owned(), true),
        ("PAGER='sed s/^/page:/' pmc list sw".to_owned(), true),
        ("PAGER='A=page: sed s/^/page:/' pmc list sw".to_owned(), true),
        (format!("PERF_CONFIG=never PAGER='sed s/^/page:/' pmc -p {report}"), true),
        (format!("PERF_CONFIG=never PAGER='sed s/^/page:/' pmc {report}"), false),
        // The output fits the screen.
        ("PAGER='sed s/^/page:/' pmc evlist -i shares.data".to_owned(), false),
        (format!("TERM=dumb PAGER='sed s/^/page:/' pmc {report}"), false),
        (format!("PAGER='sed s/^/page:/' pmc --no-pager {report}"), false),
        (format!("PAGER='sed s/^/page:/' pmc {report} --no-pager"), false),
        (format!("PAGER='sed s/^/page:/' pmc {report} | tail"), false),
        (format!("PAGER= pmc {report}"), false),
        (format!("PAGER=/no/such/pager pmc {report}"), false),
    ] {
        enter(&terminal, "clear");
        enter(&terminal, &format!("{command}; echo ended=$?="));
        let screen = terminal.until_shown("ended=0=");
        let is_there = |line: &str| line.starts_with("page:") && line.len() > 20;
        assert_eq!(screen.lines().any(is_there), is_paged, "{command}:\n{screen}");
        assert!(!screen.contains("pmc: "), "{command}:\n{screen}");
    }
    // A pager that exits early is not an error.
    enter(&terminal, "clear; PAGER='head -2' pmc script shares.data; echo ended=$?=");
    let screen = terminal.until_shown("ended=0=");
    assert!(screen.contains("shares") && !screen.contains("pmc: "), "{screen}");
    enter(&terminal, "clear; PAGER='no-such-pager | cat; exit 127' pmc script shares.data; echo ended=$?=");
    let screen = terminal.until_shown("ended=1=");
    assert!(screen.contains("the pager did not start"), "{screen}");
    if need_program("less") {
        // Keys go to the pager, and messages wait until it exits.
        enter(&terminal, &format!("clear; PAGER=less pmc {report}"));
        terminal.until("less", |screen| screen.lines().last() == Some(":"));
        press(&terminal, &["C-c", "C-\\", "G"]);
        terminal.until_shown("Trust");
        press(&terminal, &["q"]);
        is_sane(&terminal, "0");
    }
}

/// A function that is inlined into two others, which have no loops.
const INLINED: &str = r#"
volatile unsigned long sink;
static inline __attribute__((always_inline)) void spin(long n) {
  unsigned long x = (unsigned long)__builtin_frame_address(0);
  for (long i = 0; i < loops(n); i++) { x = x * 6364136223846793005ul + 1; __asm__ volatile("" : "+r"(x)); }
  sink = x;
}
__attribute__((noinline)) void cheap(long n) { spin(n * 10); sink++; }
__attribute__((noinline)) void dear(long n) { spin(n * 90); sink++; }
int main(void) { long i = 0; for_cpu_ms(500) { cheap(100 + i++ * 7919 % 503); dear(100); } return 0; }
"#;

#[test]
fn inlined_function_shows_its_own_and_its_callers_code() {
    let Some(lab) = Lab::new() else { return };
    lab.record(INLINED, "inlined");
    let terminal = shell(&lab, 100, 40);
    enter(&terminal, "pmc report -i inlined.data");
    // The table appears first with symbols only, then with inlined functions.
    let own = |screen: &str| {
        let row = screen.lines().find(|line| line.trim_end().ends_with("  spin"))?;
        row.split_whitespace().nth(1)?.strip_suffix('%')?.parse::<f64>().ok()
    };
    terminal.until("spin's own samples", |screen| own(screen).is_some_and(|own| own > 80.0));
    press(&terminal, &["/"]);
    enter(&terminal, " spin$");
    press(&terminal, &["a"]);
    let screen = terminal.until_shown("of all: dear (inlined)");
    let screen =
        if screen.contains("of the function") { screen } else { terminal.until_shown("of the function") };
    assert!(screen.contains("imul"), "{screen}");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
    // Machine-readable output follows perf: samples count for the function that contains their code.
    let data = lab.path("inlined.data");
    let args = ["report", "-i", data.to_str().unwrap(), "--csv", "--no-children", "-s", "sym"];
    let rows = run(&args).expect(0);
    let share = |name: &str| {
        let row = rows.stdout.lines().find(|line| line.ends_with(name));
        let share = row.and_then(|row| row.split(',').nth(1)?.strip_suffix('%')?.parse::<f64>().ok());
        share.unwrap_or_default()
    };
    assert!(share("dear") > 60.0 && share("spin") == 0.0, "{}", rows.stdout);
}

/// One function whose lines take 50, 30 and 20 %. Each round depends on the one before it; otherwise its
/// time would depend on where the compiler places the loop.
const LINES: &str = r#"
volatile unsigned long sink;
#define ROUND __asm__ volatile("imul %0, %0\n\timul %0, %0\n\timul %0, %0\n\timul %0, %0" : "+r"(x));
__attribute__((noinline)) void work(long n) {
  unsigned long x = (unsigned long)__builtin_frame_address(0);
  for (long i = 0; i < loops(n) * 50; i++) { ROUND } /* half */
  for (long i = 0; i < loops(n) * 30; i++) { ROUND } /* third */
  for (long i = 0; i < loops(n) * 20; i++) { ROUND } /* fifth */
  sink = x;
}
int main(void) { long i = 0; for_cpu_ms(500) work(100 + i++ * 7919 % 503); return 0; }
"#;

#[test]
fn source_lines_show_their_share() {
    let Some(lab) = Lab::new() else { return };
    lab.record(LINES, "lines");
    let terminal = shell(&lab, 120, 60);
    enter(&terminal, "pmc annotate -i lines.data");
    terminal.until_shown("of the function");
    let screen = terminal.until_shown("/* fifth */");
    for (name, wanted) in [("half", 50.0), ("third", 30.0), ("fifth", 20.0)] {
        let lines = screen.lines().filter(|line| line.contains(&format!("/* {name} */")));
        let percent = |line: &str| line.split_whitespace().next()?.strip_suffix('%')?.parse::<f64>().ok();
        let shown: f64 = lines.filter_map(percent).sum();
        assert!((shown - wanted).abs() < error(), "{name}: {shown} instead of {wanted}\n{screen}");
    }
    assert!(screen.contains("of all: work (lines)"), "{screen}");
    press(&terminal, &["q"]);
    is_sane(&terminal, "0");
}

#[test]
fn annotate_opens_the_code_pane() {
    let Some(lab) = Lab::new() else { return };
    lab.record(SHARES, "shares");
    let terminal = shell(&lab, 100, 40);
    // Without a name `annotate` opens the function with the highest cost, and other panes are reachable from
    // it.
    enter(&terminal, "pmc annotate -i shares.data");
    terminal.until_shown("of all: half (shares)");
    assert_eq!(terminal.fact("alternate_on"), "1");
    press(&terminal, &["1"]);
    let screen = settled(&terminal);
    assert!(screen.contains("third"), "{screen}");
    press(&terminal, &["q"]);
    terminal.until_shown("of all: half (shares)");
    press(&terminal, &["q"]);
    is_sane(&terminal, "0");
    enter(&terminal, "clear; pmc annotate -i shares.data third -M intel --no-source");
    let screen = terminal.until_shown("of all: third (shares)");
    assert!(screen.contains("imul    r") && !screen.contains("SPIN"), "{screen}");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
    // An unknown function ends pmc, with the error on the restored terminal.
    enter(&terminal, "clear; pmc annotate -i shares.data thrid; echo ended=$?=");
    let screen = terminal.until_shown("ended=1=");
    assert!(screen.contains("no function named") && screen.contains("third"), "{screen}");
    for options in ["--stdio", "--max-rows 4", "--json", "| cat", "</dev/null"] {
        enter(&terminal, "clear");
        enter(&terminal, &format!("pmc annotate -i shares.data half {options}; echo ended=$?="));
        terminal.until_shown("ended=0=");
        assert_eq!(terminal.fact("alternate_on"), "0", "{options}");
    }
}

#[test]
fn truncated_file_does_not_break_the_screen() {
    let Some(lab) = Lab::new() else { return };
    let whole = std::fs::read(lab.record(SHARES, "shares")).unwrap();
    std::fs::write(lab.path("torn.data"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(lab.path("noise.data"), &whole[..60]).unwrap();
    let terminal = shell(&lab, 90, 24);
    enter(&terminal, "pmc report torn.data");
    terminal.until_shown("Functions");
    settled(&terminal);
    press(&terminal, &["6"]);
    terminal.until_shown("Data quality");
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
    enter(&terminal, "pmc report noise.data");
    is_sane(&terminal, "1");
}

#[test]
fn hostile_names_are_harmless() {
    let Some(lab) = Lab::new() else { return };
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    lab.record(HOSTILE, "hostile");
    let terminal = shell(&lab, 100, 24);
    enter(&terminal, "pmc report hostile.data");
    terminal.until_shown("plain");
    let screen = settled(&terminal);
    for name in ["evil?[2J?]0;gotcha?name", "tab?name", "数据库", "combining"] {
        assert!(screen.contains(name), "no {name} in:\n{screen}");
    }
    let names = ["evil?[2J", "tab?name", "数据库", "plain"];
    assert_ne!(terminal.fact("pane_title"), "gotcha");
    let width = |line: &str, word: &str| line.find(word).map(|at| pmc_text::text::width(&line[..at]));
    let columns: Vec<usize> = screen
        .lines()
        .filter(|line| line.contains('%'))
        .filter_map(|line| names.iter().find_map(|name| width(line, name)))
        .collect();
    assert!(
        columns.len() >= 4 && columns.iter().all(|column| *column == columns[0]),
        "{columns:?}\n{screen}"
    );
    for key in ["2", "3", "5"] {
        press(&terminal, &[key]);
        terminal.until("a name", |screen| screen.contains('?') && screen.contains("1 Functions"));
        if key == "5" {
            terminal.until_shown("e?[31mv?il数");
        }
        assert_eq!(terminal.fact("alternate_on"), "1");
    }
    press(&terminal, &["1", "/"]);
    enter(&terminal, "数据库");
    press(&terminal, &["a"]);
    terminal.until("its code, or the reason for its absence", |screen| {
        screen.contains("数据库") && !screen.contains("looking for")
    });
    press(&terminal, &["Q"]);
    is_sane(&terminal, "0");
}
