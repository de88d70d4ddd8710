//! The screen in tmux: the real binary, real keys, and the text on the terminal.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Lab, Running, SHARES, kit, ready};
use crate::kit::burn::{least_samples, share_error};
use crate::kit::terminal::Tmux;

/// Runs a shell line in a terminal of this size. The shell prints the exit status after it, and leaves the
/// terminal's settings before and after it in `folder`.
#[track_caller]
pub(crate) fn shell_line(folder: &Path, line: &str, width: u16, height: u16) -> Tmux {
    let line = format!(
        "stty -g >{0}/before; {line}; echo \"status $?\"; stty -g >{0}/after; exec sleep 60",
        folder.display()
    );
    Tmux::start(width, height, &[], &[&line])
}

pub(super) fn watching(lab: &Lab, options: &str) -> Option<(Running, Tmux)> {
    if !ready() || !kit::need_program("tmux") {
        return None;
    }
    let shares = Running::start(&mut Command::new(lab.compile("shares", SHARES)));
    let line = format!(
        "set -m; cd {}; {} top -e cpu-clock -p {} -d 0.3 {options}",
        lab.0.path().display(),
        crate::kit::binary(),
        shares.pid()
    );
    let tmux = shell_line(lab.0.path(), &line, 120, 40);
    Some((shares, tmux))
}

/// Checks the exit status and that the terminal's settings are restored.
#[track_caller]
pub(super) fn ended(lab: &Lab, tmux: &Tmux, status: &str) {
    tmux.until_shown(&format!("status {status}"));
    let settings = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap_or_default();
    tmux.until("the settings after", |_| !settings("after").is_empty());
    assert_eq!(settings("before"), settings("after"));
    assert_eq!(
        tmux.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]).trim(),
        "0 1 0"
    );
}

#[test]
fn live_screen_starts_freezes_resets_exports_and_ends() {
    let lab = Lab::new();
    let Some((_shares, tmux)) = watching(&lab, "-g") else { return };
    tmux.until("all functions", |shown| {
        ["fifty", "thirty", "twenty"].iter().all(|name| shown.contains(name))
    });
    // While frozen, the picture does not change.
    tmux.keys(&["f"]);
    tmux.until_shown("FROZEN");
    let still = super::keys::settled_screen(&tmux);
    kit::let_pass(Duration::from_millis(900));
    assert_eq!(still, tmux.painted());
    tmux.keys(&["f"]);
    tmux.until("going on", |shown| !shown.contains("FROZEN"));
    tmux.keys(&["z"]);
    tmux.until_shown("fifty");
    tmux.keys(&["q"]);
    ended(&lab, &tmux, "0");
}

#[test]
fn rows_below_the_limit_are_hidden() {
    let lab = Lab::new();
    let Some((_shares, tmux)) = watching(&lab, "--percent-limit 25") else { return };
    // Enough samples for stable percentages.
    let samples = |shown: &str| {
        let number = shown.split(" samples").next()?.rsplit(' ').next()?.replace(',', "");
        number.parse::<u64>().ok()
    };
    let shown = tmux.until("many samples", |shown| samples(shown).is_some_and(|number| number > 500));
    let has = |name: &str| shown.contains(name);
    assert!(has("fifty") && has("thirty") && !has("twenty"), "{shown}");
    tmux.keys(&["q"]);
    ended(&lab, &tmux, "0");
}

#[test]
fn rate_of_cpu_events_can_be_changed() {
    let lab = Lab::new();
    if !ready() || !kit::need_program("tmux") {
        return;
    }
    let line = format!(
        "env LC_ALL=en_US.UTF-8 {} top -a -F 1000 -e cpu-clock,page-faults -d 0.3",
        crate::kit::binary()
    );
    let tmux = shell_line(lab.0.path(), &line, 120, 40);
    tmux.until("samples", |shown| shown.contains(" samples  ") && !shown.contains(" 0 samples  "));
    let rates = [(",", "500 samples"), (".", "1,000 samples"), (".", "2,000 samples")];
    for event in ["cpu-clock", "page-faults"] {
        tmux.until_shown(&format!("  {event}  "));
        for (key, rate) in rates {
            tmux.keys(&[key]);
            tmux.until_shown(&format!("{event}: {rate} per second"));
        }
        tmux.keys(&["]"]);
    }
    tmux.keys(&["Q"]);
    ended(&lab, &tmux, "0");
}

#[test]
fn command_output_does_not_overwrite_the_screen() {
    let lab = Lab::new();
    if !ready() || !kit::need_program("tmux") || !kit::need_program("timeout") {
        return;
    }
    let shares = lab.compile("shares", SHARES);
    let line = format!(
        "{} top -e cpu-clock -d 0.3 -- sh -c 'echo heard; echo heard >&2; timeout 2 {}; echo heard'",
        crate::kit::binary(),
        shares.display()
    );
    let tmux = shell_line(lab.0.path(), &line, 120, 40);
    let shown = tmux.until_shown("the command has ended");
    assert!(shown.contains("fifty") && !shown.contains("heard"), "{shown}");
    tmux.keys(&["q"]);
    ended(&lab, &tmux, "0");
}

#[test]
fn live_rows_events_filters_history_and_code() {
    let lab = Lab::new();
    let Some((_shares, tmux)) = watching(&lab, "-e task-clock -g --accumulate") else { return };
    let all = |shown: &str| ["fifty", "thirty", "twenty"].iter().all(|name| shown.contains(name));
    let header = |shown: &str| shown.lines().next().unwrap_or_default().to_owned();
    tmux.until("all functions", all);
    // The other event, and back.
    tmux.keys(&["]"]);
    tmux.until("the other event", |shown| header(shown).contains("  task-clock  ") && all(shown));
    tmux.keys(&["["]);
    tmux.until("the first event", |shown| header(shown).contains("  cpu-clock  "));
    // Filter rows by pattern.
    tmux.keys(&["&"]);
    tmux.text("fift|twent");
    tmux.keys(&["Enter"]);
    let shown = tmux.until("two rows", |shown| shown.contains(" of 2: "));
    assert!(!shown.contains("thirty"), "{shown}");
    // The row's history, in the line below the table.
    tmux.until("a history", |shown| {
        let line = shown.lines().find(|line| line.contains(" of 2: ")).unwrap_or_default();
        line.chars().filter(|c| ('▁'..='█').contains(c)).count() > 3
    });
    // The function's code, with changing weights.
    tmux.keys(&["g", "a"]);
    let code = tmux.until("code with costs", |shown| shown.contains("of the function"));
    assert!(code.contains("imul") && code.contains("fifty"), "{code}");
    tmux.until("newer weights", |shown| shown != code && shown.contains("of the function"));
    tmux.keys(&["1", "Escape"]);
    tmux.until("all functions again", all);
    // First the process, then its functions.
    tmux.keys(&["5"]);
    tmux.until_shown("processes and threads; Enter");
    tmux.keys(&["Enter"]);
    let shown = tmux.until("functions of the process", |shown| shown.contains("only pid") && all(shown));
    assert!(shown.contains("▾"), "{shown}");
    // Escape immediately followed by a key would count as Alt with that key.
    tmux.keys(&["Escape"]);
    tmux.until("all processes", |shown| !shown.contains("only pid"));
    tmux.keys(&["K"]);
    tmux.until_shown("only user space");
    tmux.keys(&["Escape"]);
    tmux.until("kernel and all", |shown| !shown.contains("only user space"));
    tmux.keys(&["2"]);
    tmux.until("the tree", |shown| shown.contains("callers first"));
    tmux.keys(&["3"]);
    tmux.until("the flame graph", |shown| shown.contains("▏fifty"));
    tmux.keys(&["Q"]);
    ended(&lab, &tmux, "0");
}

#[test]
fn signal_leaves_a_sane_terminal() {
    let lab = Lab::new();
    let Some((_shares, tmux)) = watching(&lab, "") else { return };
    tmux.until_shown("fifty");
    assert!(Command::new("kill").arg(tmux.child().to_string()).status().expect("kill starts").success());
    ended(&lab, &tmux, "143");
}

#[test]
fn top_ends_after_its_duration() {
    let lab = Lab::new();
    let Some((_shares, tmux)) = watching(&lab, "--duration 8s") else { return };
    tmux.until_shown("fifty");
    ended(&lab, &tmux, "0");
}

#[test]
fn live_view_can_be_written_to_files() {
    let lab = Lab::new();
    let Some((shares, tmux)) = watching(&lab, "-g --accumulate") else { return };
    tmux.until("all functions", |shown| {
        ["fifty", "thirty", "twenty"].iter().all(|name| shown.contains(name))
    });
    kit::wait_for_ticks(shares.pid().parse().expect("a number"), 150);
    for name in ["view.folded", "view.json", "view.data"] {
        tmux.keys(&["x"]);
        tmux.until_shown("Write to");
        tmux.keys(&["C-u"]);
        tmux.text(name);
        tmux.keys(&["Enter"]);
        tmux.until_shown(&format!("{name} is written"));
    }
    tmux.keys(&["Q"]);
    ended(&lab, &tmux, "0");
    let folded = std::fs::read_to_string(lab.path("view.folded")).expect("a file");
    let count = |name: &str| -> f64 {
        let lines = folded.lines().filter(|line| line.contains("main;") && line.contains(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    };
    let (fifty, all) = (count("fifty"), count("fifty") + count("thirty") + count("twenty"));
    let error = share_error(least_samples(1490, 4000));
    assert!((fifty / all - 0.5).abs() < error, "{folded}");
    let json = std::fs::read_to_string(lab.path("view.json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["events"][0]["rows"].as_array().is_some_and(|rows| !rows.is_empty()));
    // pmc and perf read the same data from the saved recording.
    let data = lab.path("view.data").display().to_string();
    let report = kit::run(&["report", "--json", "--no-inline", "-s", "sym", "-i", &data]).expect(0);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    let rows = report["events"][0]["rows"].as_array().expect("rows");
    let share = |name: &str| {
        rows.iter().find(|row| row["sym"] == name).and_then(|row| row["self"]["percent"].as_f64())
    };
    for (name, wanted) in [("fifty", 50.0), ("thirty", 30.0), ("twenty", 20.0)] {
        assert!(
            share(name).is_some_and(|share| (share - wanted).abs() < 100.0 * error),
            "{name}: {:?}",
            share(name)
        );
    }
    if kit::need_program("perf") {
        let perf =
            kit::oracle::perf_of(Path::new(&data), &["report", "--stdio", "--no-children", "-s", "sym"]);
        assert!(perf.contains("fifty") && perf.contains("main"), "{perf}");
    }
}

/// The first thread only waits, for a worker and for one short-lived child at a time.
const BOSS: &str = r#"
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static void spin(unsigned ms) { for_cpu_ms(ms) for (volatile long i = loops(20000); i > 0; i--) ; }
static void *work(void *unused) { prctl(PR_SET_NAME, "worker"); for (;;) spin(2); return unused; }
int main(void) {
    prctl(PR_SET_NAME, "boss");
    pthread_t worker;
    pthread_create(&worker, 0, work, 0);
    for (;;) { if (fork() == 0) { spin(40); _exit(0); } wait(0); }
}
"#;

#[test]
fn processes_show_their_names_and_exit_is_reported() {
    if !ready() || !kit::need_program("tmux") {
        return;
    }
    let lab = Lab::new();
    let boss = Running::start(&mut Command::new(lab.compile("boss", BOSS)));
    let pid = boss.pid();
    let line = format!("{} top -e cpu-clock -p {pid} -d 0.3 --accumulate", kit::binary());
    let tmux = shell_line(lab.0.path(), &line, 120, 40);
    tmux.until("functions", |shown| shown.contains("spin"));
    tmux.keys(&["5"]);
    // Only the worker uses the CPU, but the row has the process's name. Children have no pid once they have
    // ended.
    let row = |shown: &str, words: &[&str]| {
        shown.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().ends_with(words))
    };
    tmux.until("the names", |shown| {
        row(shown, &[&pid, "boss"]) && row(shown, &["–", "(ended)"]) && !shown.contains(" -1 ")
    });
    drop(boss);
    let shown = tmux.until_shown("ENDED: all sampled processes have ended");
    assert!(row(&shown, &[&pid, "boss"]), "{shown}");
    // From here `q` leads back to the functions, and there it quits.
    tmux.keys(&["q", "q"]);
    ended(&lab, &tmux, "0");
}
