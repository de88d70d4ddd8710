//! Presses every key of the help page in each pane it applies to, while samples arrive, and checks the
//! screen.

use std::cell::{Cell, RefCell};

use pmc_tui::keys::{BoundKey, CHAPTERS, KeyAction, KeyBinding, Pane};

use super::kit::{self, in_tmux};
use super::screen::{ended, watching};
use super::{Lab, Running};
use crate::kit::terminal::Tmux;

/// The required effect of a key, in a situation in which it has one.
struct Duty {
    /// Keys that lead to that situation, pressed one after the other.
    before: &'static [&'static str],
    then: Then,
}

enum Then {
    /// The screen shows this text.
    Shown(&'static str),
    /// The screen no longer shows this text.
    Gone(&'static str),
    /// The screen differs, at least in the position of the cursor.
    Other,
    /// The screen is redrawn without any change.
    Same,
    /// Fewer samples than before.
    Fewer,
}

use Then::{Fewer, Gone, Other, Same, Shown};

/// The required effect of an action in a pane. There is one for each action, so a new key needs an entry
/// here.
fn duty(action: KeyAction, pane: Pane) -> Duty {
    let (before, then): (&'static [&'static str], Then) = match (action, pane) {
        (KeyAction::Up | KeyAction::PageUp | KeyAction::First, _) => (&["G"], Other),
        (KeyAction::Down | KeyAction::PageDown | KeyAction::Last, _) => (&["g"], Other),
        (KeyAction::Left, Pane::Tree) => (&["E", "g"], Other),
        (KeyAction::Left | KeyAction::Right, Pane::Flame) => (&["/", "thirty", "Enter"], Other),
        (KeyAction::Left, _) => (&["Right", "Right"], Other),
        (KeyAction::Right, _) => (&[], Other),
        (KeyAction::Enter, Pane::Functions) => (&["g"], Shown("Callees of ")),
        (KeyAction::Enter, Pane::Tree) => (&["g"], Other),
        (KeyAction::Enter, Pane::Flame) => (&["g", "p"], Other),
        (KeyAction::Enter, Pane::Threads) => (&["g"], Shown("only pid")),
        (KeyAction::Enter, Pane::Events) => (&["j"], Shown("  task-clock  ")),
        (KeyAction::Enter, Pane::Code) => (&["/", "jmp", "Enter"], Other),
        (KeyAction::Back | KeyAction::Undo, _) => (&["K"], Gone("only user space")),
        (KeyAction::Quit, _) => (&[], Shown("status 0")),
        (KeyAction::Help, _) => (&[], Shown("Moving")),
        (KeyAction::Show(Pane::Functions), _) => (&["6"], Shown("Total▾")),
        (KeyAction::Show(Pane::Tree), _) => (&[], Shown("Call tree, callers first")),
        (KeyAction::Show(Pane::Flame), _) => (&[], Shown("Flame graph, callers above")),
        (KeyAction::Show(Pane::Code), _) => (&["/", "fifty", "Enter"], Shown("of the function")),
        (KeyAction::Show(Pane::Threads), _) => (&[], Shown("processes and threads; Enter")),
        (KeyAction::Show(Pane::Events), _) => (&[], Shown("task-clock")),
        (KeyAction::NextPane, _) => (&[], Shown("Call tree")),
        (KeyAction::PreviousPane, _) => (&["3"], Shown("Call tree")),
        (KeyAction::Search, _) => (&[], Shown("Search:")),
        (KeyAction::Filter, _) => (&[], Shown("Show only:")),
        (KeyAction::NextMatch | KeyAction::PreviousMatch, _) => (&["/", "ty", "Enter"], Other),
        (KeyAction::Annotate, _) => (&["/", "fifty", "Enter"], Shown("imul")),
        (KeyAction::Callers, Pane::Flame) => (&["/", "fifty", "Enter"], Shown("sampled functions above")),
        (KeyAction::Callers, _) => (&["/", "fifty", "Enter"], Shown("Callers of fifty")),
        (KeyAction::Mark, _) => (&["g"], Shown("1 marked")),
        (KeyAction::SortNext | KeyAction::SortPrevious, _) => (&[], Gone("Total▾")),
        (KeyAction::Reverse, _) => (&[], Shown("Total▴")),
        (KeyAction::Keys, _) => (&[], Shown("by symbol")),
        (KeyAction::InDso, _) => (&["/", "fifty", "Enter"], Shown("only in shares")),
        // Grouping by thread is the fourth choice.
        (KeyAction::InThread, _) => (&["S", "S", "S"], Shown("only thread shares")),
        (KeyAction::InFunction, _) => (&["/", "fifty", "Enter"], Shown("only under fifty")),
        (KeyAction::HideKernel, _) => (&[], Shown("only user space")),
        (KeyAction::HideUser, _) => (&[], Shown("only kernel")),
        (KeyAction::States | KeyAction::Idle, _) => (&[], Shown("no waiting time")),
        (KeyAction::Relative, _) => (&[], Shown("percentages of ")),
        (KeyAction::Latency, _) => (&[], Shown("no latencies")),
        (KeyAction::TimeStrip, _) => (&[], Shown("no timestamps")),
        (KeyAction::Expand, _) => (&["C", "g"], Other),
        (KeyAction::Collapse, _) => (&["E", "g"], Other),
        (KeyAction::ExpandAll, _) => (&["C"], Other),
        (KeyAction::CollapseAll, Pane::Tree) => (&["E"], Other),
        (KeyAction::CollapseAll, _) => (&["p", "Enter"], Other),
        (KeyAction::HotPath, Pane::Tree) => (&["C", "g"], Other),
        (KeyAction::HotPath, _) => (&["g"], Other),
        (KeyAction::Invert, Pane::Tree) => (&[], Shown("Call tree, sampled functions first")),
        (KeyAction::Invert, _) => (&[], Shown("sampled functions above")),
        (KeyAction::Recursion, _) => (&[], Shown("recursion")),
        (KeyAction::ShowCallers, _) => (&[], Shown("start-up frames shown")),
        (KeyAction::Source, _) => (&[], Other),
        (KeyAction::Hottest, _) => (&["g"], Other),
        (KeyAction::NextEvent | KeyAction::PreviousEvent, _) => (&[], Shown("  task-clock  ")),
        (KeyAction::Export, _) => (&[], Shown("Write to")),
        (KeyAction::Freeze, _) => (&[], Shown("FROZEN")),
        (KeyAction::Zero, _) => (&[], Fewer),
        (KeyAction::Decay, _) => (&[], Shown("decaying")),
        (KeyAction::Slower, _) => (&[], Shown("update every 0.6")),
        (KeyAction::Faster, _) => (&[], Shown("update every 0.15")),
        // A process's children inherit its events, so the rate cannot change. Changing the rate is tested on
        // CPUs.
        (KeyAction::SampleLess | KeyAction::SampleMore, _) => (&[], Shown("child processes inherit it")),
        (KeyAction::Redraw, _) => (&[], Same),
        (KeyAction::Suspend, _) => (&[], Shown("stopped here")),
    };
    Duty { before, then }
}

/// Keys that undo effects that Esc and Backspace do not undo; `None` if only a new screen does.
fn keys_that_undo(action: KeyAction) -> Option<&'static [&'static str]> {
    Some(match action {
        KeyAction::Left | KeyAction::Right => &["Left", "Left", "Left"],
        KeyAction::Mark => &["g", "Space"],
        KeyAction::SortNext => &["<"],
        KeyAction::SortPrevious => &[">"],
        KeyAction::Reverse => &["r"],
        KeyAction::Relative => &["F"],
        KeyAction::Invert => &["i"],
        KeyAction::Recursion => &["R"],
        KeyAction::ShowCallers => &["b"],
        KeyAction::Source => &["s"],
        KeyAction::Freeze => &["f"],
        KeyAction::Decay => &["D"],
        KeyAction::Slower => &[")"],
        KeyAction::Faster => &["("],
        // Both keys give the same message.
        KeyAction::SampleLess
        | KeyAction::SampleMore
        | KeyAction::Keys
        | KeyAction::InThread
        | KeyAction::Quit => {
            return None;
        }
        _ => &[],
    })
}

/// Number of samples in the header.
fn samples(shown: &str) -> u64 {
    let before = shown.split(" samples").next().unwrap_or_default();
    before.rsplit(' ').next().unwrap_or_default().replace(',', "").parse().unwrap_or(0)
}

/// The first number of a row.
fn percent(line: &str) -> f64 {
    let first = line.split('%').next().unwrap_or_default();
    first.trim().parse().unwrap_or(0.0)
}

/// Opens a screen that shows all functions.
fn begin(lab: &Lab, is_frozen: bool) -> Option<(Running, Tmux)> {
    // When it is stopped, the shell continues it a little later.
    let (shares, tmux) = watching(
        lab,
        "-e task-clock -g --accumulate || while [ $? -eq 148 ]; do echo stopped here; sleep 1; fg; done",
    )?;
    tmux.until("the names of all that counts", |shown| {
        let all = ["fifty", "thirty", "twenty"].iter().all(|name| shown.contains(name));
        all && !shown.lines().any(|line| line.contains("[looking up]") && percent(line) >= 5.0)
    });
    if is_frozen {
        tmux.keys(&["f"]);
        tmux.until_shown("FROZEN");
    }
    Some((shares, tmux))
}

/// The screen once every key typed so far has been read and drawn.
pub(super) fn settled_screen(tmux: &Tmux) -> String {
    tmux.wait_until_typed();
    let top = tmux.child();
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
fn every_key_on_the_help_page_works() {
    let lab = Lab::new();
    for chapter in CHAPTERS {
        let mut open: Option<(Running, Tmux)> = None;
        for KeyBinding { keys, action, panes, live, .. } in chapter.bindings {
            let panes = if panes.is_empty() { &[Pane::Functions] } else { *panes };
            for (key, pane) in keys.iter().flat_map(|key| panes.iter().map(move |pane| (*key, *pane))) {
                if open.is_none() {
                    open = begin(&lab, !live);
                }
                let Some((_, tmux)) = &open else { return };
                press(&lab, tmux, key, *action, pane, !live);
                match keys_that_undo(*action) {
                    None => open = None,
                    Some(keys) => {
                        keys.iter().for_each(|key| tmux.keys(&[key]));
                        // Escape closes questions and pages; Backspace then undoes filters and the pane.
                        tmux.keys(&["Escape"]);
                        tmux.wait_until_typed();
                        tmux.keys(&["BSpace", "BSpace", "BSpace", "BSpace"]);
                    }
                }
            }
        }
    }
}

#[track_caller]
fn press(lab: &Lab, tmux: &Tmux, key: BoundKey, action: KeyAction, pane: Pane, is_frozen: bool) {
    if pane == Pane::Code {
        // The function with the highest cost may be inlined, without separate code.
        tmux.keys(&["1", "/", "fifty", "Enter", "a"]);
        tmux.until_shown("of the function");
    } else {
        let at = Pane::ALL.iter().position(|other| *other == pane).map_or(0, |at| at + 1);
        tmux.keys(&[&at.to_string()]);
    }
    let Duty { before: way, then } = duty(action, pane);
    let rest = || if is_frozen { settled_screen(tmux) } else { tmux.painted() };
    let mut painted = rest();
    if !way.is_empty() {
        way.iter().for_each(|key| tmux.keys(&[key]));
        tmux.wait_until_typed();
        painted = rest();
    }
    let text = tmux.shown();
    let what = format!("{key:?} ({action:?}) in {pane:?}");
    let is_known =
        |words: &str| assert!(!text.contains(words), "{what}: {words:?} stands there before\n{text}");
    tmux.keys(&[&in_tmux(key)]);
    match then {
        Shown(words) => {
            if !matches!(action, KeyAction::Show(_)) {
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
        KeyAction::Quit => ended(lab, tmux, "0"),
        KeyAction::Suspend => drop(tmux.until("it goes on", |shown| shown == text)),
        _ => {}
    }
}
