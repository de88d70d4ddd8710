//! Every key of the help page, pressed in each pane that it is for while samples come in: what must then stand on the terminal.

use std::cell::{Cell, RefCell};

use pmc::tui::keys::{Action, Binding, CHAPTERS, Key, Pane};

use super::kit::{self, in_tmux};
use super::screen::{Tmux, ended, watching};
use super::{Lab, Running};

/// What a key must do, seen from a place where it has something to do.
struct Duty {
    /// Keys that lead there, pressed one after the other.
    before: &'static [&'static str],
    then: Then,
}

enum Then {
    /// This is to be read.
    Shown(&'static str),
    /// This is not to be read any more.
    Gone(&'static str),
    /// Something else stands there, be it only where the cursor is.
    Other,
    /// Everything is drawn anew, the same as before.
    Same,
    /// Fewer samples than before.
    Fewer,
}

use Then::{Fewer, Gone, Other, Same, Shown};

/// The duty of a row of the table in a pane. There is one for each action: whoever adds a key says here what it does.
fn duty(action: Action, pane: Pane) -> Duty {
    let (before, then): (&'static [&'static str], Then) = match (action, pane) {
        (Action::Up | Action::PageUp | Action::First, _) => (&["G"], Other),
        (Action::Down | Action::PageDown | Action::Last, _) => (&["g"], Other),
        (Action::Left, Pane::Tree) => (&["E", "g"], Other),
        (Action::Left | Action::Right, Pane::Flame) => (&["/", "thirty", "Enter"], Other),
        (Action::Left, _) => (&["Right", "Right"], Other),
        (Action::Right, _) => (&[], Other),
        (Action::Enter, Pane::Functions) => (&["g"], Shown("Callees of ")),
        (Action::Enter, Pane::Tree) => (&["g"], Other),
        (Action::Enter, Pane::Flame) => (&["g", "p"], Other),
        (Action::Enter, Pane::Threads) => (&["g"], Shown("only pid")),
        (Action::Enter, Pane::Events) => (&["j"], Shown("  task-clock  ")),
        (Action::Enter, Pane::Code) => (&["/", "jmp", "Enter"], Other),
        (Action::Back | Action::Undo, _) => (&["K"], Gone("only user space")),
        (Action::Quit, _) => (&[], Shown("status 0")),
        (Action::Help, _) => (&[], Shown("Moving")),
        (Action::Show(Pane::Functions), _) => (&["6"], Shown("Total▾")),
        (Action::Show(Pane::Tree), _) => (&[], Shown("Call tree, callers first")),
        (Action::Show(Pane::Flame), _) => (&[], Shown("Flame graph, callers above")),
        (Action::Show(Pane::Code), _) => (&["/", "fifty", "Enter"], Shown("of the function")),
        (Action::Show(Pane::Threads), _) => (&[], Shown("processes and threads; Enter")),
        (Action::Show(Pane::Events), _) => (&[], Shown("task-clock")),
        (Action::NextPane, _) => (&[], Shown("Call tree")),
        (Action::PreviousPane, _) => (&["3"], Shown("Call tree")),
        (Action::Search, _) => (&[], Shown("Search:")),
        (Action::Filter, _) => (&[], Shown("Show only:")),
        (Action::NextMatch | Action::PreviousMatch, _) => (&["/", "ty", "Enter"], Other),
        (Action::Annotate, _) => (&["/", "fifty", "Enter"], Shown("imul")),
        (Action::Callers, Pane::Flame) => (&["/", "fifty", "Enter"], Shown("sampled functions above")),
        (Action::Callers, _) => (&["/", "fifty", "Enter"], Shown("Callers of fifty")),
        (Action::Mark, _) => (&["g"], Shown("1 marked")),
        (Action::SortNext | Action::SortPrevious, _) => (&[], Gone("Total▾")),
        (Action::Reverse, _) => (&[], Shown("Total▴")),
        (Action::Keys, _) => (&[], Shown("by symbol")),
        (Action::InDso, _) => (&["/", "fifty", "Enter"], Shown("only in shares")),
        // Rows by thread come fourth.
        (Action::InThread, _) => (&["S", "S", "S"], Shown("only thread shares")),
        (Action::InFunction, _) => (&["/", "fifty", "Enter"], Shown("only under fifty")),
        (Action::HideKernel, _) => (&[], Shown("only user space")),
        (Action::HideUser, _) => (&[], Shown("only kernel")),
        (Action::Relative, _) => (&[], Shown("percentages of ")),
        (Action::Latency, _) => (&[], Shown("no latencies")),
        (Action::TimeStrip, _) => (&[], Shown("no timestamps")),
        (Action::Expand, _) => (&["C", "g"], Other),
        (Action::Collapse, _) => (&["E", "g"], Other),
        (Action::ExpandAll, _) => (&["C"], Other),
        (Action::CollapseAll, Pane::Tree) => (&["E"], Other),
        (Action::CollapseAll, _) => (&["p", "Enter"], Other),
        (Action::HotPath, Pane::Tree) => (&["C", "g"], Other),
        (Action::HotPath, _) => (&["g"], Other),
        (Action::Invert, Pane::Tree) => (&[], Shown("Call tree, sampled functions first")),
        (Action::Invert, _) => (&[], Shown("sampled functions above")),
        (Action::Recursion, _) => (&[], Shown("recursion")),
        (Action::ShowCallers, _) => (&[], Shown("start-up frames shown")),
        (Action::Source, _) => (&[], Other),
        (Action::Hottest, _) => (&["g"], Other),
        (Action::NextEvent | Action::PreviousEvent, _) => (&[], Shown("  task-clock  ")),
        (Action::Export, _) => (&[], Shown("Write to")),
        (Action::Freeze, _) => (&[], Shown("FROZEN")),
        (Action::Zero, _) => (&[], Fewer),
        (Action::Decay, _) => (&[], Shown("decaying")),
        (Action::Slower, _) => (&[], Shown("update every 0.6")),
        (Action::Faster, _) => (&[], Shown("update every 0.15")),
        // A process's children inherit its events: that a rate is changed is tried on CPUs.
        (Action::SampleLess | Action::SampleMore, _) => (&[], Shown("child processes inherit it")),
        (Action::Redraw, _) => (&[], Same),
        (Action::Suspend, _) => (&[], Shown("stopped here")),
    };
    Duty { before, then }
}

/// Keys that take back what Esc and Backspace do not; `None` where only a new screen does.
fn undoing(action: Action) -> Option<&'static [&'static str]> {
    Some(match action {
        Action::Left | Action::Right => &["Left", "Left", "Left"],
        Action::Mark => &["g", "Space"],
        Action::SortNext => &["<"],
        Action::SortPrevious => &[">"],
        Action::Reverse => &["r"],
        Action::Relative => &["F"],
        Action::Invert => &["i"],
        Action::Recursion => &["R"],
        Action::ShowCallers => &["b"],
        Action::Source => &["s"],
        Action::Freeze => &["f"],
        Action::Decay => &["D"],
        Action::Slower => &[")"],
        Action::Faster => &["("],
        // Both say the same.
        Action::SampleLess | Action::SampleMore | Action::Keys | Action::InThread | Action::Quit => {
            return None;
        }
        _ => &[],
    })
}

/// Samples by the header.
fn samples(shown: &str) -> u64 {
    let before = shown.split(" samples").next().unwrap_or_default();
    before.rsplit(' ').next().unwrap_or_default().replace(',', "").parse().unwrap_or(0)
}

/// The first number of a row.
fn percent(line: &str) -> f64 {
    let first = line.split('%').next().unwrap_or_default();
    first.trim().parse().unwrap_or(0.0)
}

/// A screen that shows all functions.
fn begin(lab: &Lab, is_frozen: bool) -> Option<(Running, Tmux)> {
    // Stopped, it is continued by its shell a little later.
    let (shares, tmux) = watching(
        lab,
        "-e task-clock -g --accumulate || while [ $? -eq 148 ]; do echo stopped here; sleep 1; fg; done",
    )?;
    tmux.until("the names of all that counts", |shown| {
        let all = ["fifty", "thirty", "twenty"].iter().all(|name| shown.contains(name));
        all && !shown.lines().any(|line| line.contains("  …") && percent(line) >= 5.0)
    });
    if is_frozen {
        tmux.keys(&["f"]);
        tmux.until_shown("FROZEN");
    }
    Some((shares, tmux))
}

/// The screen once every key typed so far has been read and drawn.
pub(super) fn at_rest(tmux: &Tmux) -> String {
    kit::wait_until_typed(|command| tmux.run(command));
    let shell = tmux.run(&["display-message", "-p", "#{pane_pid}"]).trim().parse().expect("a pid");
    let top = kit::wait_for_child(shell);
    let (same, last) = (Cell::new(0), RefCell::new(String::new()));
    kit::wait_for_screen(
        "rest",
        || tmux.painted(),
        |shown| {
            let is_same = last.borrow().as_str() == shown && kit::sleeps(top);
            same.set(if is_same { same.get() + 1 } else { 1 });
            shown.clone_into(&mut last.borrow_mut());
            same.get() == 3
        },
    )
}

#[test]
fn every_key_of_the_help_page_does_what_it_says() {
    let lab = Lab::new();
    for chapter in CHAPTERS {
        let mut open: Option<(Running, Tmux)> = None;
        for Binding { keys, action, panes, live, .. } in chapter.bindings {
            let panes = if panes.is_empty() { &[Pane::Functions] } else { *panes };
            for (key, pane) in keys.iter().flat_map(|key| panes.iter().map(move |pane| (*key, *pane))) {
                if open.is_none() {
                    open = begin(&lab, !live);
                }
                let Some((_, tmux)) = &open else { return };
                press(&lab, tmux, key, *action, pane, !live);
                match undoing(*action) {
                    None => open = None,
                    Some(keys) => {
                        keys.iter().for_each(|key| tmux.keys(&[key]));
                        // Questions and pages first, then filters and the pane.
                        tmux.keys(&["Escape"]);
                        kit::wait_until_typed(|command| tmux.run(command));
                        tmux.keys(&["BSpace", "BSpace", "BSpace", "BSpace"]);
                    }
                }
            }
        }
    }
}

#[track_caller]
fn press(lab: &Lab, tmux: &Tmux, key: Key, action: Action, pane: Pane, is_frozen: bool) {
    if pane == Pane::Code {
        // The costliest function need not be one with code of its own.
        tmux.keys(&["1", "/", "fifty", "Enter", "a"]);
        tmux.until_shown("of the function");
    } else {
        let at = Pane::ALL.iter().position(|other| *other == pane).map_or(0, |at| at + 1);
        tmux.keys(&[&at.to_string()]);
    }
    let Duty { before: way, then } = duty(action, pane);
    let rest = || if is_frozen { at_rest(tmux) } else { tmux.painted() };
    let mut painted = rest();
    if !way.is_empty() {
        way.iter().for_each(|key| tmux.keys(&[key]));
        kit::wait_until_typed(|command| tmux.run(command));
        painted = rest();
    }
    let text = tmux.shown();
    let what = format!("{key:?} ({action:?}) in {pane:?}");
    let is_known =
        |words: &str| assert!(!text.contains(words), "{what}: {words:?} stands there before\n{text}");
    tmux.keys(&[&in_tmux(key)]);
    match then {
        Shown(words) => {
            if !matches!(action, Action::Show(_)) {
                is_known(words);
            }
            drop(tmux.until(&what, |shown| shown.contains(words)));
        }
        Gone(words) => {
            assert!(text.contains(words), "{what}: {words:?} is not there before\n{text}");
            drop(tmux.until(&what, |shown| !shown.contains(words)));
        }
        Other => {
            drop(tmux.until(&what, |_| tmux.painted() != painted));
        }
        Same => {
            rest();
            assert_eq!(tmux.shown(), text, "{what}");
        }
        Fewer => drop(tmux.until(&what, |shown| samples(shown) < samples(&text))),
    }
    match action {
        Action::Quit => ended(lab, tmux, "0"),
        Action::Suspend => drop(tmux.until("it goes on", |shown| shown == text)),
        _ => {}
    }
}
