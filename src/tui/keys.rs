//! The table of keys: action, panes and description of each key.
//!
//! Maps a key and the pane in which it was pressed to an [`Action`]. The help page, the hints in the last
//! line and the table in `docs/tui.md` are generated from the same rows, so they cannot become outdated.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A pane with its own key bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pane {
    /// The table of functions, or of rows with other sort keys.
    Functions,
    /// The call tree.
    Tree,
    /// The flame graph.
    Flame,
    /// Source and assembly.
    Code,
    /// Processes and threads.
    Threads,
    /// Events and the quality of the data.
    Events,
}

impl Pane {
    /// All panes in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Functions, Self::Tree, Self::Flame, Self::Code, Self::Threads, Self::Events];

    /// Returns the pane's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Functions => "Functions",
            Self::Tree => "Tree",
            Self::Flame => "Flame",
            Self::Code => "Code",
            Self::Threads => "Threads",
            Self::Events => "Events",
        }
    }
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table below says it in words")]
pub enum Action {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    First,
    Last,
    Enter,
    Back,
    Undo,
    Quit,
    Help,
    Show(Pane),
    NextPane,
    PreviousPane,
    Search,
    Filter,
    NextMatch,
    PreviousMatch,
    Annotate,
    Callers,
    Mark,
    SortNext,
    SortPrevious,
    Reverse,
    Keys,
    InDso,
    InThread,
    InFunction,
    HideKernel,
    HideUser,
    Relative,
    Latency,
    TimeStrip,
    Expand,
    Collapse,
    ExpandAll,
    CollapseAll,
    HotPath,
    Invert,
    Recursion,
    ShowCallers,
    Source,
    Hottest,
    NextEvent,
    PreviousEvent,
    Export,
    Freeze,
    Zero,
    Decay,
    Slower,
    Faster,
    SampleLess,
    SampleMore,
    Redraw,
    Suspend,
}

/// A key in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character; upper case requires Shift.
    Char(char),
    /// A character with Control.
    Ctrl(char),
    /// A named key.
    Named(KeyCode, &'static str),
}

impl Key {
    fn is(self, event: &KeyEvent) -> bool {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        match self {
            Self::Char(c) => !ctrl && !alt && event.code == KeyCode::Char(c),
            Self::Ctrl(c) => ctrl && event.code == KeyCode::Char(c),
            Self::Named(code, _) => !alt && event.code == code,
        }
    }

    /// Returns the name for the help page.
    pub fn name(self) -> String {
        match self {
            Self::Char(' ') => "Space".to_owned(),
            Self::Char(c) => c.to_string(),
            Self::Ctrl(c) => format!("^{}", c.to_ascii_uppercase()),
            Self::Named(_, name) => name.to_owned(),
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Binding {
    /// The keys, starting with the one for the hint line.
    pub keys: &'static [Key],
    /// The action.
    pub action: Action,
    /// The panes in which the keys work; empty for all panes.
    pub panes: &'static [Pane],
    /// Whether the keys work only in the live view.
    pub live: bool,
    /// One or two words for the hint line; empty for no hint.
    pub hint: &'static str,
    /// Description on the help page.
    pub help: &'static str,
}

/// A chapter of the help page.
#[derive(Debug)]
pub struct Chapter {
    /// The heading.
    pub title: &'static str,
    /// The rows.
    pub bindings: &'static [Binding],
}

const UP: Key = Key::Named(KeyCode::Up, "↑");
const DOWN: Key = Key::Named(KeyCode::Down, "↓");
const LEFT: Key = Key::Named(KeyCode::Left, "←");
const RIGHT: Key = Key::Named(KeyCode::Right, "→");
const PAGE_UP: Key = Key::Named(KeyCode::PageUp, "PgUp");
const PAGE_DOWN: Key = Key::Named(KeyCode::PageDown, "PgDn");
const HOME: Key = Key::Named(KeyCode::Home, "Home");
const END: Key = Key::Named(KeyCode::End, "End");
const ENTER: Key = Key::Named(KeyCode::Enter, "Enter");
const ESC: Key = Key::Named(KeyCode::Esc, "Esc");
const BACKSPACE: Key = Key::Named(KeyCode::Backspace, "Backspace");
const TAB: Key = Key::Named(KeyCode::Tab, "Tab");
const BACKTAB: Key = Key::Named(KeyCode::BackTab, "Shift-Tab");
const F1: Key = Key::Named(KeyCode::F(1), "F1");
const F3: Key = Key::Named(KeyCode::F(3), "F3");
const F4: Key = Key::Named(KeyCode::F(4), "F4");
const F6: Key = Key::Named(KeyCode::F(6), "F6");
const F10: Key = Key::Named(KeyCode::F(10), "F10");

const LISTS: &[Pane] = &[Pane::Functions, Pane::Threads, Pane::Events];
const MAPS: &[Pane] = &[Pane::Tree, Pane::Flame, Pane::Code];
const STACKS: &[Pane] = &[Pane::Tree, Pane::Flame];
const NAMED: &[Pane] = &[Pane::Functions, Pane::Tree, Pane::Flame];

const fn row(keys: &'static [Key], action: Action, hint: &'static str, help: &'static str) -> Binding {
    Binding { keys, action, panes: &[], live: false, hint, help }
}

const fn only(
    panes: &'static [Pane],
    keys: &'static [Key],
    action: Action,
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding { keys, action, panes, live: false, hint, help }
}

const fn live(keys: &'static [Key], action: Action, hint: &'static str, help: &'static str) -> Binding {
    Binding { keys, action, panes: &[], live: true, hint, help }
}

use Key::{Char, Ctrl};

/// The table. If several rows match a key, the first one for the pane wins.
pub const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Moving",
        bindings: &[
            row(&[UP, Char('k'), Ctrl('p')], Action::Up, "", "one line up"),
            row(&[DOWN, Char('j'), Ctrl('n')], Action::Down, "", "one line down"),
            row(&[PAGE_UP, Ctrl('b')], Action::PageUp, "", "one screen up"),
            row(&[PAGE_DOWN, Ctrl('f')], Action::PageDown, "", "one screen down"),
            row(&[HOME, Char('g')], Action::First, "", "first line"),
            row(&[END, Char('G')], Action::Last, "", "last line"),
            row(&[LEFT], Action::Left, "", "left: close the branch or go to its caller; scroll names"),
            only(MAPS, &[Char('h')], Action::Left, "", "left in tree, flame graph and code"),
            row(&[RIGHT, Char('l')], Action::Right, "", "right: open the branch or go into it; scroll names"),
            row(&[TAB], Action::NextPane, "pane", "next pane"),
            row(&[BACKTAB], Action::PreviousPane, "", "previous pane"),
            row(&[Char('1')], Action::Show(Pane::Functions), "", "functions"),
            row(&[Char('2')], Action::Show(Pane::Tree), "", "call tree"),
            row(&[Char('3')], Action::Show(Pane::Flame), "", "flame graph"),
            row(&[Char('4')], Action::Show(Pane::Code), "", "source and assembly"),
            row(&[Char('5')], Action::Show(Pane::Threads), "", "processes and threads"),
            row(&[Char('6')], Action::Show(Pane::Events), "", "events and data quality"),
        ],
    },
    Chapter {
        title: "Looking closer",
        bindings: &[
            only(&[Pane::Functions], &[ENTER], Action::Enter, "callees", "callees as a tree"),
            only(&[Pane::Tree], &[ENTER], Action::Enter, "open", "open or close the branch"),
            only(&[Pane::Flame], &[ENTER], Action::Enter, "zoom", "zoom in on the function"),
            only(&[Pane::Threads], &[ENTER], Action::Enter, "only this", "only this process or thread"),
            only(&[Pane::Events], &[ENTER], Action::Enter, "choose", "select this event"),
            only(
                &[Pane::Code],
                &[ENTER],
                Action::Enter,
                "jump",
                "follow the jump; open or close an inlined function",
            ),
            only(NAMED, &[Char('c')], Action::Callers, "callers", "callers as a tree"),
            only(NAMED, &[Char('a')], Action::Annotate, "code", "source and assembly with costs"),
            only(NAMED, &[Char('o')], Action::InFunction, "", "only samples in the function or its callees"),
            only(NAMED, &[Char('d')], Action::InDso, "", "only samples in its program or library"),
            row(&[Char('t')], Action::InThread, "", "only samples of threads with its name"),
            row(&[Char('K')], Action::HideKernel, "", "hide or show kernel samples"),
            row(&[Char('U')], Action::HideUser, "", "hide or show user samples"),
            row(
                &[Char('T')],
                Action::TimeStrip,
                "time",
                "select a time range: ← →, Space for the other end, Enter",
            ),
            row(&[ESC, BACKSPACE], Action::Undo, "undo", "undo the last filter or zoom"),
            row(&[Char('['), Char('{')], Action::PreviousEvent, "", "previous event"),
            row(&[Char(']'), Char('}')], Action::NextEvent, "", "next event"),
            row(&[Char('F')], Action::Relative, "", "percentages of all or of filtered samples"),
            row(&[Char('L')], Action::Latency, "", "shares of CPU time or of wall-clock time"),
        ],
    },
    Chapter {
        title: "Searching",
        bindings: &[
            row(&[Char('/'), F3], Action::Search, "search", "search for a regular expression"),
            row(&[Char('n')], Action::NextMatch, "", "next match"),
            row(&[Char('N')], Action::PreviousMatch, "", "previous match"),
            row(
                &[Char('&'), Char('\\'), F4],
                Action::Filter,
                "filter",
                "show only matching rows; empty shows all",
            ),
        ],
    },
    Chapter {
        title: "Lists",
        bindings: &[
            only(
                &[Pane::Functions],
                &[Char('s'), Char('>'), F6],
                Action::SortNext,
                "sort",
                "sort by the next column",
            ),
            only(&[Pane::Functions], &[Char('<')], Action::SortPrevious, "", "sort by the previous column"),
            only(&[Pane::Functions], &[Char('r')], Action::Reverse, "", "reverse the order"),
            only(
                &[Pane::Functions],
                &[Char('S')],
                Action::Keys,
                "",
                "group by function, library, thread, line or CPU",
            ),
            only(
                &[Pane::Functions],
                &[Char(' ')],
                Action::Mark,
                "",
                "mark the row; the last line sums marked rows",
            ),
        ],
    },
    Chapter {
        title: "Call tree and flame graph",
        bindings: &[
            only(STACKS, &[Char('p')], Action::HotPath, "hot path", "open the hottest path from here"),
            only(STACKS, &[Char('i')], Action::Invert, "invert", "callers first, or sampled functions first"),
            only(STACKS, &[Char('R')], Action::Recursion, "", "fold or unfold direct recursion"),
            only(NAMED, &[Char('b')], Action::ShowCallers, "", "show or hide start-up frames"),
            only(&[Pane::Tree], &[Char('+'), Char('=')], Action::Expand, "", "open the branch"),
            only(&[Pane::Tree], &[Char('-')], Action::Collapse, "", "close the branch"),
            only(&[Pane::Tree], &[Char('E')], Action::ExpandAll, "", "open all branches"),
            only(STACKS, &[Char('C')], Action::CollapseAll, "", "close all branches; zoom out"),
        ],
    },
    Chapter {
        title: "Code",
        bindings: &[
            only(
                &[Pane::Code],
                &[Char('H'), Char('p')],
                Action::Hottest,
                "hottest",
                "hottest line, then the next hottest",
            ),
            only(&[Pane::Code], &[Char('s')], Action::Source, "source", "show or hide source lines"),
        ],
    },
    Chapter {
        title: "Live",
        bindings: &[
            live(&[Char('f')], Action::Freeze, "freeze", "pause or resume"),
            live(&[Char('z')], Action::Zero, "zero", "reset the counts"),
            live(&[Char('D')], Action::Decay, "", "old samples decay or accumulate"),
            live(&[Char('(')], Action::Slower, "", "refresh half as often"),
            live(&[Char(')')], Action::Faster, "", "refresh twice as often"),
            live(&[Char(',')], Action::SampleLess, "", "sample the event half as often"),
            live(&[Char('.')], Action::SampleMore, "", "sample the event twice as often"),
        ],
    },
    Chapter {
        title: "Other",
        bindings: &[
            row(
                &[Char('x'), Char('P')],
                Action::Export,
                "export",
                "export the view to a file; the extension selects the format",
            ),
            row(&[Char('?'), F1], Action::Help, "help", "this page"),
            only(LISTS, &[Char('h')], Action::Help, "", "this page, in lists"),
            row(&[Ctrl('l')], Action::Redraw, "", "redraw the screen"),
            row(&[Ctrl('z')], Action::Suspend, "", "suspend; fg resumes"),
            row(&[Char('q')], Action::Back, "back", "back: close this or undo a zoom; quit at the start"),
            row(&[Char('Q'), Ctrl('c'), F10], Action::Quit, "", "quit immediately"),
        ],
    },
];

/// Returns the action of a key in a pane.
pub fn action(event: &KeyEvent, pane: Pane, is_live: bool) -> Option<Action> {
    let fits = |binding: &&Binding| {
        (binding.panes.is_empty() || binding.panes.contains(&pane))
            && (!binding.live || is_live)
            && binding.keys.iter().any(|key| key.is(event))
    };
    CHAPTERS.iter().flat_map(|chapter| chapter.bindings).find(fits).map(|binding| binding.action)
}

/// Returns the rows for the hint line of a pane.
pub fn hints(pane: Pane, is_live: bool) -> impl Iterator<Item = &'static Binding> {
    let all = CHAPTERS.iter().flat_map(|chapter| chapter.bindings);
    all.filter(move |binding| {
        !binding.hint.is_empty()
            && (binding.panes.is_empty() || binding.panes.contains(&pane))
            && (!binding.live || is_live)
    })
}

/// Whether an action has no effect without recorded call chains.
pub fn needs_chains(action: Action, pane: Pane) -> bool {
    action == Action::Callers || action == Action::Enter && pane == Pane::Functions
}

/// Returns the rows of the help page: a chapter's title, or keys and their description.
pub fn help() -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for chapter in CHAPTERS {
        rows.push((String::new(), chapter.title.to_owned()));
        for binding in chapter.bindings {
            let keys: Vec<String> = binding.keys.iter().map(|key| key.name()).collect();
            rows.push((keys.join(" "), format!("{}{}", place(binding), binding.help)));
        }
    }
    rows
}

/// Returns the pane of a row as a prefix of its description; empty for all panes or if the chapter names it.
fn place(binding: &Binding) -> String {
    let is_enter = binding.keys.first() == Some(&ENTER);
    match binding.panes {
        [pane] if is_enter => format!("{}: ", pane.name()),
        _ => String::new(),
    }
}

/// Returns the table in Markdown, for the documentation.
pub fn markdown() -> String {
    let mut out = String::new();
    for chapter in CHAPTERS {
        out += &format!("| {} | |\n|---|---|\n", chapter.title);
        for binding in chapter.bindings {
            let keys: Vec<String> = binding.keys.iter().map(|key| format!("`{}`", key.name())).collect();
            out += &format!("| {} | {}{} |\n", keys.join(" "), place(binding), binding.help);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(c: char) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
    }

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for pane in Pane::ALL {
            let all = CHAPTERS.iter().flat_map(|chapter| chapter.bindings);
            let here = all.filter(|b| b.panes.is_empty() || b.panes.contains(&pane));
            let mut keys: Vec<String> = here.flat_map(|b| b.keys.iter().map(|key| key.name())).collect();
            keys.sort();
            let before = keys.len();
            keys.dedup();
            assert_eq!(before, keys.len(), "{pane:?}: {keys:?}");
        }
    }

    #[test]
    fn h_is_left_where_there_is_a_left() {
        assert_eq!(action(&press('h'), Pane::Tree, false), Some(Action::Left));
        assert_eq!(action(&press('h'), Pane::Functions, false), Some(Action::Help));
        assert_eq!(action(&press('z'), Pane::Functions, false), None);
        assert_eq!(action(&press('z'), Pane::Functions, true), Some(Action::Zero));
        let ctrl = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&ctrl, Pane::Functions, false), Some(Action::Quit));
    }

    #[test]
    fn every_pane_has_hints() {
        for pane in Pane::ALL {
            assert!(hints(pane, false).any(|row| row.keys[0] == Char('?') && row.hint == "help"));
        }
    }
}
