//! The key table: action, panes and description of each key.
//!
//! Maps a key, and the pane in which it was pressed, to a [`KeyAction`]. The help page, the hints in the last
//! line and the table in `docs/tui.md` are generated from the same rows, so they are always up to date.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A pane with its own key bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pane {
    /// The function table, or a table with other sort keys.
    Functions,
    /// The call tree.
    Tree,
    /// The flame graph.
    Flame,
    /// Source and assembly.
    Code,
    /// Processes and threads.
    Threads,
    /// Events and data quality.
    Events,
}

impl Pane {
    /// All panes, ordered by number.
    pub const ALL: [Self; 6] =
        [Self::Functions, Self::Tree, Self::Flame, Self::Code, Self::Threads, Self::Events];

    /// Returns the key that shows the pane, from 1 on.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// Returns the text of the pane's tab.
    pub fn tab(self) -> String {
        format!(" {} {} ", self.number(), self.name())
    }

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
#[allow(missing_docs, reason = "the table below explains it in words")]
pub enum KeyAction {
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
    States,
    Idle,
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

/// A key in the key table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKey {
    /// A character. An upper-case letter requires Shift.
    Char(char),
    /// A character with Control.
    Ctrl(char),
    /// A key with a name, such as Enter.
    Named(KeyCode, &'static str),
}

impl BoundKey {
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

/// A row of the key table.
#[derive(Debug)]
pub struct KeyBinding {
    /// The keys. The first one is shown in the hint line.
    pub keys: &'static [BoundKey],
    /// The action.
    pub action: KeyAction,
    /// The panes in which the keys work; empty if they work in all panes.
    pub panes: &'static [Pane],
    /// Whether the keys work only in the live view.
    pub live: bool,
    /// One or two words for the hint line; empty if there is no hint.
    pub hint: &'static str,
    /// Description on the help page.
    pub help: &'static str,
}

/// A chapter of the help page.
#[derive(Debug)]
pub struct HelpChapter {
    /// The heading.
    pub title: &'static str,
    /// The rows.
    pub bindings: &'static [KeyBinding],
}

const UP: BoundKey = BoundKey::Named(KeyCode::Up, "↑");
const DOWN: BoundKey = BoundKey::Named(KeyCode::Down, "↓");
const LEFT: BoundKey = BoundKey::Named(KeyCode::Left, "←");
const RIGHT: BoundKey = BoundKey::Named(KeyCode::Right, "→");
const PAGE_UP: BoundKey = BoundKey::Named(KeyCode::PageUp, "PgUp");
const PAGE_DOWN: BoundKey = BoundKey::Named(KeyCode::PageDown, "PgDn");
const HOME: BoundKey = BoundKey::Named(KeyCode::Home, "Home");
const END: BoundKey = BoundKey::Named(KeyCode::End, "End");
const ENTER: BoundKey = BoundKey::Named(KeyCode::Enter, "Enter");
const ESC: BoundKey = BoundKey::Named(KeyCode::Esc, "Esc");
const BACKSPACE: BoundKey = BoundKey::Named(KeyCode::Backspace, "Backspace");
const TAB: BoundKey = BoundKey::Named(KeyCode::Tab, "Tab");
const BACKTAB: BoundKey = BoundKey::Named(KeyCode::BackTab, "Shift-Tab");
const F1: BoundKey = BoundKey::Named(KeyCode::F(1), "F1");
const F3: BoundKey = BoundKey::Named(KeyCode::F(3), "F3");
const F4: BoundKey = BoundKey::Named(KeyCode::F(4), "F4");
const F6: BoundKey = BoundKey::Named(KeyCode::F(6), "F6");
const F10: BoundKey = BoundKey::Named(KeyCode::F(10), "F10");

const LISTS: &[Pane] = &[Pane::Functions, Pane::Threads, Pane::Events];
const MAPS: &[Pane] = &[Pane::Tree, Pane::Flame, Pane::Code];
const STACKS: &[Pane] = &[Pane::Tree, Pane::Flame];
const NAMED: &[Pane] = &[Pane::Functions, Pane::Tree, Pane::Flame];

const fn row(
    keys: &'static [BoundKey],
    action: KeyAction,
    hint: &'static str,
    help: &'static str,
) -> KeyBinding {
    KeyBinding { keys, action, panes: &[], live: false, hint, help }
}

const fn only(
    panes: &'static [Pane],
    keys: &'static [BoundKey],
    action: KeyAction,
    hint: &'static str,
    help: &'static str,
) -> KeyBinding {
    KeyBinding { keys, action, panes, live: false, hint, help }
}

const fn live(
    keys: &'static [BoundKey],
    action: KeyAction,
    hint: &'static str,
    help: &'static str,
) -> KeyBinding {
    KeyBinding { keys, action, panes: &[], live: true, hint, help }
}

use BoundKey::{Char, Ctrl};

/// The key table. If several rows match a key, the first row that applies to the pane wins.
pub const CHAPTERS: &[HelpChapter] = &[
    HelpChapter {
        title: "Moving",
        bindings: &[
            row(&[UP, Char('k'), Ctrl('p')], KeyAction::Up, "", "one line up"),
            row(&[DOWN, Char('j'), Ctrl('n')], KeyAction::Down, "", "one line down"),
            row(&[PAGE_UP, Ctrl('b')], KeyAction::PageUp, "", "one screen up"),
            row(&[PAGE_DOWN, Ctrl('f')], KeyAction::PageDown, "", "one screen down"),
            row(&[HOME, Char('g')], KeyAction::First, "", "first line"),
            row(&[END, Char('G')], KeyAction::Last, "", "last line"),
            row(&[LEFT], KeyAction::Left, "", "left: collapse the branch or go to its caller; scroll names"),
            only(MAPS, &[Char('h')], KeyAction::Left, "", "left in the tree, flame graph and code"),
            row(
                &[RIGHT, Char('l')],
                KeyAction::Right,
                "",
                "right: expand the branch or enter it; scroll names",
            ),
            row(&[TAB], KeyAction::NextPane, "pane", "next pane"),
            row(&[BACKTAB], KeyAction::PreviousPane, "", "previous pane"),
            row(&[Char('1')], KeyAction::Show(Pane::Functions), "", "functions"),
            row(&[Char('2')], KeyAction::Show(Pane::Tree), "", "call tree"),
            row(&[Char('3')], KeyAction::Show(Pane::Flame), "", "flame graph"),
            row(&[Char('4')], KeyAction::Show(Pane::Code), "", "source and assembly"),
            row(&[Char('5')], KeyAction::Show(Pane::Threads), "", "processes and threads"),
            row(&[Char('6')], KeyAction::Show(Pane::Events), "", "events and data quality"),
        ],
    },
    HelpChapter {
        title: "Looking closer",
        bindings: &[
            only(&[Pane::Functions], &[ENTER], KeyAction::Enter, "callees", "callees as a tree"),
            only(&[Pane::Tree], &[ENTER], KeyAction::Enter, "open", "open or close the branch"),
            only(&[Pane::Flame], &[ENTER], KeyAction::Enter, "zoom", "zoom in on the function"),
            only(&[Pane::Threads], &[ENTER], KeyAction::Enter, "only this", "only this process or thread"),
            only(&[Pane::Events], &[ENTER], KeyAction::Enter, "choose", "select this event"),
            only(
                &[Pane::Code],
                &[ENTER],
                KeyAction::Enter,
                "jump",
                "follow the jump; open or close an inlined function",
            ),
            only(NAMED, &[Char('c')], KeyAction::Callers, "callers", "callers as a tree"),
            only(NAMED, &[Char('a')], KeyAction::Annotate, "code", "source and assembly with costs"),
            only(
                NAMED,
                &[Char('o')],
                KeyAction::InFunction,
                "",
                "only samples in the function or its callees",
            ),
            only(NAMED, &[Char('d')], KeyAction::InDso, "", "only samples in this program or library"),
            row(&[Char('t')], KeyAction::InThread, "", "only samples of threads with this name"),
            row(&[Char('K')], KeyAction::HideKernel, "", "hide or show kernel samples"),
            row(&[Char('U')], KeyAction::HideUser, "", "hide or show user samples"),
            row(&[Char('W')], KeyAction::States, "waits", "running, waiting, waiting for a CPU, or all time"),
            row(&[Char('I')], KeyAction::Idle, "", "show or fold the waits of idle threads"),
            row(
                &[Char('T')],
                KeyAction::TimeStrip,
                "time",
                "select a time range: ← →, Space for the other end, Enter",
            ),
            row(&[ESC, BACKSPACE], KeyAction::Undo, "undo", "undo the last filter or zoom"),
            row(&[Char('['), Char('{')], KeyAction::PreviousEvent, "", "previous event"),
            row(&[Char(']'), Char('}')], KeyAction::NextEvent, "", "next event"),
            row(
                &[Char('F')],
                KeyAction::Relative,
                "",
                "percentages of all samples, or of the filtered samples only",
            ),
            row(&[Char('L')], KeyAction::Latency, "", "shares of CPU time or of wall-clock time"),
        ],
    },
    HelpChapter {
        title: "Searching",
        bindings: &[
            row(&[Char('/'), F3], KeyAction::Search, "search", "search for a regular expression"),
            row(&[Char('n')], KeyAction::NextMatch, "", "next match"),
            row(&[Char('N')], KeyAction::PreviousMatch, "", "previous match"),
            row(
                &[Char('&'), Char('\\'), F4],
                KeyAction::Filter,
                "filter",
                "show only matching rows; empty shows all",
            ),
        ],
    },
    HelpChapter {
        title: "Lists",
        bindings: &[
            only(
                &[Pane::Functions],
                &[Char('s'), Char('>'), F6],
                KeyAction::SortNext,
                "sort",
                "sort by the next column",
            ),
            only(
                &[Pane::Functions],
                &[Char('<')],
                KeyAction::SortPrevious,
                "",
                "sort by the previous column",
            ),
            only(&[Pane::Functions], &[Char('r')], KeyAction::Reverse, "", "reverse the order"),
            only(
                &[Pane::Functions],
                &[Char('S')],
                KeyAction::Keys,
                "",
                "group by function, library, thread, line or CPU",
            ),
            only(
                &[Pane::Functions],
                &[Char(' ')],
                KeyAction::Mark,
                "",
                "mark the row; the last line sums marked rows",
            ),
        ],
    },
    HelpChapter {
        title: "Call tree and flame graph",
        bindings: &[
            only(STACKS, &[Char('p')], KeyAction::HotPath, "hot path", "expand the hottest path from here"),
            only(
                STACKS,
                &[Char('i')],
                KeyAction::Invert,
                "invert",
                "callers first, or sampled functions first",
            ),
            only(STACKS, &[Char('R')], KeyAction::Recursion, "", "fold or unfold direct recursion"),
            only(NAMED, &[Char('b')], KeyAction::ShowCallers, "start-up", "show or hide start-up frames"),
            only(&[Pane::Tree], &[Char('+'), Char('=')], KeyAction::Expand, "", "open the branch"),
            only(&[Pane::Tree], &[Char('-')], KeyAction::Collapse, "", "close the branch"),
            only(&[Pane::Tree], &[Char('E')], KeyAction::ExpandAll, "", "open all branches"),
            only(STACKS, &[Char('C')], KeyAction::CollapseAll, "", "close all branches; zoom out"),
        ],
    },
    HelpChapter {
        title: "Code",
        bindings: &[
            only(
                &[Pane::Code],
                &[Char('H'), Char('p')],
                KeyAction::Hottest,
                "hottest",
                "hottest line, then the next hottest",
            ),
            only(&[Pane::Code], &[Char('s')], KeyAction::Source, "source", "show or hide source lines"),
        ],
    },
    HelpChapter {
        title: "Live",
        bindings: &[
            live(&[Char('f')], KeyAction::Freeze, "freeze", "pause or resume"),
            live(&[Char('z')], KeyAction::Zero, "zero", "reset the counts"),
            live(&[Char('D')], KeyAction::Decay, "", "old samples decay or accumulate"),
            live(&[Char('(')], KeyAction::Slower, "", "refresh half as often"),
            live(&[Char(')')], KeyAction::Faster, "", "refresh twice as often"),
            live(&[Char(',')], KeyAction::SampleLess, "", "sample the event half as often"),
            live(&[Char('.')], KeyAction::SampleMore, "", "sample the event twice as often"),
        ],
    },
    HelpChapter {
        title: "Other",
        bindings: &[
            row(
                &[Char('x'), Char('P')],
                KeyAction::Export,
                "export",
                "export the view to a file; the extension selects the format",
            ),
            row(&[Char('?'), F1], KeyAction::Help, "help", "this page"),
            only(LISTS, &[Char('h')], KeyAction::Help, "", "this page, in lists"),
            row(&[Ctrl('l')], KeyAction::Redraw, "", "redraw the screen"),
            row(&[Ctrl('z')], KeyAction::Suspend, "", "suspend; fg resumes"),
            row(&[Char('q')], KeyAction::Back, "back", "back: close this or undo a zoom; quit at the start"),
            row(&[Char('Q'), Ctrl('c'), F10], KeyAction::Quit, "", "quit immediately"),
        ],
    },
];

pub fn action(event: &KeyEvent, pane: Pane, is_live: bool) -> Option<KeyAction> {
    let fits = |binding: &&KeyBinding| {
        (binding.panes.is_empty() || binding.panes.contains(&pane))
            && (!binding.live || is_live)
            && binding.keys.iter().any(|key| key.is(event))
    };
    CHAPTERS.iter().flat_map(|chapter| chapter.bindings).find(fits).map(|binding| binding.action)
}

/// Returns the rows for the hint line of a pane.
pub fn hints(pane: Pane, is_live: bool) -> impl Iterator<Item = &'static KeyBinding> {
    let all = CHAPTERS.iter().flat_map(|chapter| chapter.bindings);
    all.filter(move |binding| {
        !binding.hint.is_empty()
            && (binding.panes.is_empty() || binding.panes.contains(&pane))
            && (!binding.live || is_live)
    })
}

/// Whether an action has no effect without recorded call chains.
pub fn needs_chains(action: KeyAction, pane: Pane) -> bool {
    action == KeyAction::Callers || action == KeyAction::Enter && pane == Pane::Functions
}

/// Returns the rows of the help page. Each is a chapter title, or keys with their description.
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

/// Returns the pane of a row as a prefix for its description. The prefix is empty if the row applies to all
/// panes or if the chapter title already names the pane.
fn place(binding: &KeyBinding) -> String {
    let is_enter = binding.keys.first() == Some(&ENTER);
    match binding.panes {
        [pane] if is_enter => format!("{}: ", pane.name()),
        _ => String::new(),
    }
}

/// Returns the key table in Markdown, for the documentation.
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
    fn no_key_has_two_meanings_in_one_pane() {
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
    fn h_means_left_only_in_panes_that_move_left() {
        assert_eq!(action(&press('h'), Pane::Tree, false), Some(KeyAction::Left));
        assert_eq!(action(&press('h'), Pane::Functions, false), Some(KeyAction::Help));
        assert_eq!(action(&press('z'), Pane::Functions, false), None);
        assert_eq!(action(&press('z'), Pane::Functions, true), Some(KeyAction::Zero));
        let ctrl = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&ctrl, Pane::Functions, false), Some(KeyAction::Quit));
    }

    #[test]
    fn every_pane_has_hints() {
        for pane in Pane::ALL {
            assert!(hints(pane, false).any(|row| row.keys[0] == Char('?') && row.hint == "help"));
        }
    }
}
