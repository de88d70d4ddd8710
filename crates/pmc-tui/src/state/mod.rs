//! The state of the screen, and how each input changes it. It is a pure state machine: keys, clicks and
//! answers go in, and effects come out. It does not access the terminal, a clock or samples.
//!
//! ```text
//!   key ─┐
//!   click ├─> State::update ──> effects: ask, annotate, export, stop, quit, …
//!   poll ─┘        '── drawn by `panes`
//! ```

pub mod actions;
pub mod code;
pub mod flame;
pub mod pointer;
pub mod prompt;
pub mod scroll;
pub mod search;
pub mod stacks;
pub mod table;
pub(super) mod table_widths;
pub mod threads;
pub mod time_strip;

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use super::engine::{EngineStatus, EngineUpdates, LiveCommand, ViewFormat};
use super::keys::Pane;
use super::layout::{self, ScreenAreas};
use code::CodePane;
use flame::FlamePane;
use pmc_analysis::profile::sampled::{
    CallTree, Filter, FunctionRef, PENDING, Profile, ProfileEvent, Query, QueryAnswer, SortKey,
    StackDirection, ThreadState,
};
use prompt::Prompt;
use scroll::Scroll;
use search::Search;
use stacks::StacksPane;
use table::FunctionTable;
use threads::ThreadsPane;
use time_strip::TimeStrip;

/// An input.
#[derive(Debug)]
pub enum ScreenInput {
    /// A key.
    Key(KeyEvent),
    /// A click, a drag or a turn of the wheel.
    Mouse(MouseEvent),
    /// Pasted text.
    Paste(String),
    /// The new number of columns and lines of the terminal.
    Resize(u16, u16),
    /// The engine's updates.
    Poll(Box<EngineUpdates>),
}

/// An effect that the caller carries out.
#[derive(Debug, PartialEq)]
#[allow(missing_docs, reason = "see `Engine`")]
pub enum ScreenEffect {
    Ask(Box<Query>),
    Annotate(FunctionRef),
    History(FunctionRef),
    Export(ViewFormat, PathBuf),
    Command(LiveCommand),
    Redraw,
    Suspend,
    Quit,
}

/// An overlay on top of the pane.
#[derive(Debug)]
pub enum Overlay {
    /// The help page, with its scroll position.
    Help(Scroll),
    /// A prompt in the last line.
    Prompt(Prompt),
    /// The selection of a time span.
    Strip(TimeStrip),
}

/// An earlier view, to which Esc returns.
#[derive(Debug, Clone)]
struct Breadcrumb {
    query: Query,
    pane: Pane,
    zoom: Option<u64>,
    search: Search,
    filter: Search,
}

/// The complete state of the screen.
#[derive(Debug)]
pub struct ScreenState {
    /// Columns and lines of the terminal.
    pub size: (u16, u16),
    /// The current pane.
    pub pane: Pane,
    /// The initial pane.
    pub home: Pane,
    /// The overlay on top of the pane, if any.
    pub over: Option<Overlay>,
    /// The current query.
    pub query: Query,
    /// The last answer.
    pub answer: Option<Arc<QueryAnswer>>,
    /// Whether the answer to the current query has not arrived yet.
    pub is_waiting: bool,
    /// The information in the header.
    pub status: EngineStatus,
    /// The table of functions.
    pub table: FunctionTable,
    /// The call tree.
    pub stacks: StacksPane,
    /// The flame graph.
    pub flame: FlamePane,
    /// The parent of each node in the answer's tree.
    pub parents: Vec<u32>,
    /// Source and assembly.
    pub code: CodePane,
    /// Processes and threads.
    pub threads: ThreadsPane,
    pub events: Scroll,
    /// Whether the start-up functions that all programs have are shown individually.
    pub shows_callers: bool,
    /// The current search.
    pub search: Search,
    /// The filter for rows.
    pub filter: Search,
    /// A function, and its periods over time.
    pub history: Option<(FunctionRef, Vec<u64>)>,
    /// The message in the last line.
    pub said: Option<String>,
    crumbs: Vec<Breadcrumb>,
    /// The function whose history was requested.
    asked_history: Option<FunctionRef>,
    /// The line of the last click. A second click on it acts as Enter.
    clicked: Option<(Pane, usize)>,
    /// The events that measure one state of threads each, in the order of the key that switches between them.
    /// Empty until the first answer, and in the live view.
    state_events: Vec<(ThreadState, usize)>,
    /// The sort keys of the first query, which are the first ones in the cycle of sort keys.
    first_keys: Vec<SortKey>,
    /// Whether callers or callees are at the root of the tree.
    order: StackDirection,
}

impl ScreenState {
    /// Returns the initial state. [`ScreenState::query`] is the first query to send.
    ///
    /// If the query requests a tree, its order is stored, but the tree is requested only when a pane shows
    /// it.
    pub fn new(query: Query, size: (u16, u16)) -> Self {
        let order = query.tree.unwrap_or_default();
        let query = Query { tree: None, ..query };
        Self {
            size,
            pane: Pane::Functions,
            home: Pane::Functions,
            over: None,
            first_keys: query.keys.clone(),
            state_events: Vec::new(),
            order,
            query,
            answer: None,
            is_waiting: true,
            status: EngineStatus::default(),
            table: FunctionTable::default(),
            stacks: StacksPane::default(),
            flame: FlamePane::default(),
            parents: Vec::new(),
            code: CodePane::default(),
            threads: ThreadsPane::default(),
            events: Scroll::default(),
            shows_callers: false,
            search: Search::default(),
            filter: Search::default(),
            history: None,
            said: None,
            crumbs: Vec::new(),
            asked_history: None,
            clicked: None,
        }
    }

    /// Returns the parts of the screen; `None` if it is too small.
    pub fn areas(&self) -> Option<ScreenAreas> {
        let has_times =
            self.answer.as_ref().and_then(|a| a.times.as_ref()).is_some_and(|times| times.sums.len() > 1);
        layout::areas(self.size, has_times, matches!(self.over, Some(Overlay::Strip(_))))
    }

    /// Returns the height of the pane in lines.
    pub fn height(&self) -> usize {
        self.areas().map_or(1, |areas| areas.body.height.into())
    }

    /// Returns the index of the shown event.
    pub fn event_index(&self) -> usize {
        self.answer.as_ref().and_then(|answer| answer.query.event).unwrap_or(0)
    }

    /// Returns the shown event.
    pub fn event(&self) -> Option<(&Profile, &ProfileEvent)> {
        let answer = self.answer.as_ref()?;
        Some((&answer.profile, answer.profile.events.get(self.event_index())?))
    }

    /// Returns the shown tree.
    pub fn tree(&self) -> Option<(&Profile, &ProfileEvent, &CallTree)> {
        let (profile, event) = self.event()?;
        Some((profile, event, event.tree.as_ref()?))
    }

    /// Handles an input; returns its effects.
    pub fn update(&mut self, input: ScreenInput) -> Vec<ScreenEffect> {
        let mut effects = Vec::new();
        match input {
            ScreenInput::Resize(width, height) => {
                self.size = (width, height);
                self.refit();
            }
            ScreenInput::Poll(poll) => self.take(*poll, &mut effects),
            ScreenInput::Key(key) => self.key(&key, &mut effects),
            ScreenInput::Mouse(mouse) => self.mouse(mouse, &mut effects),
            ScreenInput::Paste(text) => self.paste(&text),
        }
        let wanted = if self.pane == Pane::Functions { self.function() } else { None };
        if wanted.is_some() && wanted != self.asked_history {
            self.asked_history.clone_from(&wanted);
            effects.extend(wanted.map(ScreenEffect::History));
        }
        effects
    }

    /// Keeps the cursors visible after the screen's height has changed.
    fn refit(&mut self) {
        let height = self.height();
        let len = self.table.shown.len();
        self.table.scroll.by(0, len, height);
        self.stacks.scroll.by(0, self.stacks.lines.len(), height);
        self.code.refit(height);
        self.threads.scroll.by(0, self.threads.lines.len(), height);
    }

    fn take(&mut self, poll: EngineUpdates, effects: &mut Vec<ScreenEffect>) {
        if let Some(status) = poll.status {
            self.status = status;
        }
        if let Some(said) = poll.said {
            self.said = Some(said);
        }
        if let Some(function) = poll.opens {
            (self.home, self.pane) = (Pane::Code, Pane::Code);
            self.code.wait_for(function);
        }
        if let Some((function, listing)) = poll.listing {
            let event = self.event_index();
            let height = self.height();
            self.code.set(function, listing, event, height);
        }
        if let Some(answer) = poll.answer {
            match self.note_states(&answer.profile) {
                Some(first) => {
                    self.query.event = Some(first);
                    self.ask(effects);
                }
                None => {
                    self.is_waiting = answer.query != self.query;
                    // The history may be outdated, because names may have been resolved or samples added.
                    self.asked_history = None;
                    self.answer = Some(answer);
                    self.rebuild();
                }
            }
        }
        if let Some((function, history)) = poll.history {
            self.history = Some((function, history));
        }
    }

    /// Recomputes everything that depends on the answer.
    fn rebuild(&mut self) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        self.threads.set(&answer, height);
        let Some(event) = answer.profile.events.get(self.event_index()) else { return };
        self.table.rebuild(&answer.profile, event, &self.filter, !self.shows_callers, height);
        self.parents.clear();
        match &event.tree {
            Some(tree) => {
                self.parents = stacks::parents(tree);
                let starts_at_root =
                    answer.query.root.is_none() && answer.query.tree == Some(StackDirection::Caller);
                self.stacks.set(&answer.profile, tree, starts_at_root && !self.shows_callers, height);
                for callers in &self.stacks.folded {
                    self.parents[callers.last as usize] = self.parents[callers.first as usize];
                }
            }
            None => self.stacks.lines.clear(),
        }
    }

    /// Returns the cursor's function if its name is known, because queries require the name.
    pub fn function(&self) -> Option<FunctionRef> {
        self.any_function().filter(|function| function.symbol != PENDING)
    }

    /// Explains why the cursor's line has no function.
    fn no_function(&self) -> String {
        match self.any_function() {
            Some(_) => "its name is still being looked up; try again".to_owned(),
            None => "no function is selected".to_owned(),
        }
    }

    /// Returns the cursor's function, even if its name is unknown.
    fn any_function(&self) -> Option<FunctionRef> {
        let (profile, event) = self.event()?;
        let of_node = |node: u32| {
            let node = event.tree.as_ref()?.nodes.get(node as usize)?;
            let text = |id| profile.texts.get(id).to_owned();
            Some(FunctionRef { dso: text(node.dso), symbol: text(node.symbol) })
        };
        match self.pane {
            Pane::Functions => table::function(profile, event, self.table.row(event)?),
            Pane::Tree => of_node(self.stacks.node()?),
            Pane::Flame => of_node(self.flame_node(self.flame.cursor)?),
            Pane::Code => self.code.function.clone(),
            Pane::Threads | Pane::Events => None,
        }
    }

    /// Returns the function with the largest own cost in the table.
    fn costliest(&self) -> Option<FunctionRef> {
        let (profile, event) = self.event()?;
        let rows = event.rows.iter().filter(|row| row.own.samples > 0);
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(event.cost(&row.own)));
        rows.into_iter().find_map(|row| table::function(profile, event, row))
    }

    /// Returns the function whose code contains the cursor's line. For an inlined function, this is the
    /// function into which it is inlined.
    fn outer_function(&self) -> Option<FunctionRef> {
        let node = match self.pane {
            Pane::Tree => self.stacks.node(),
            Pane::Flame => self.flame_node(self.flame.cursor),
            _ => None,
        };
        let Some(((profile, _, tree), mut number)) = self.tree().zip(node) else { return self.function() };
        if self.order == StackDirection::Caller {
            while tree.nodes.get(number as usize)?.inlined && self.parents[number as usize] != flame::ALL {
                number = self.parents[number as usize];
            }
        }
        let node = tree.nodes.get(number as usize)?;
        let text = |id| profile.texts.get(id).to_owned();
        let function = FunctionRef { dso: text(node.dso), symbol: text(node.symbol) };
        (function.symbol != PENDING).then_some(function)
    }

    /// Returns the index of a node in the flame graph; `None` for the whole event.
    pub fn flame_node(&self, identity: Option<u64>) -> Option<u32> {
        let identity = identity?;
        self.stacks.identities.iter().position(|other| *other == identity).map(|at| at as u32)
    }

    /// Returns the flame graph's boxes for the width of the screen.
    pub fn boxes(&self) -> Vec<flame::FlameBox> {
        let Some((profile, event, tree)) = self.tree() else { return Vec::new() };
        let zoom = self.flame_node(self.flame.zoom).unwrap_or(flame::ALL);
        let above = (self.parents.as_slice(), self.stacks.folded.as_slice());
        flame::boxes((profile, tree), above, self.flame_total(event, tree), zoom, self.size.0.into())
    }

    /// Returns the cost that the full width of the flame graph represents.
    pub fn flame_total(&self, event: &ProfileEvent, tree: &CallTree) -> u64 {
        let roots: u64 = tree.roots.iter().map(|root| tree.cost(*root)).fold(0, u64::saturating_add);
        // The tree of a single function is as wide as that function. The whole tree has a gap where small
        // branches are omitted.
        if self.answer.as_ref().is_some_and(|answer| answer.query.root.is_some()) {
            return roots;
        }
        event.cost(&event.total).saturating_sub(event.cost(&event.filtered)).max(roots)
    }

    /// Sends the query, including the tree if it is shown.
    fn ask(&mut self, effects: &mut Vec<ScreenEffect>) {
        let wants_tree = matches!(self.pane, Pane::Tree | Pane::Flame);
        // Once a tree has been shown, keep requesting it, because users switch between panes.
        if wants_tree || self.query.tree.is_some() {
            self.query.tree = Some(self.order);
        }
        self.is_waiting = true;
        self.asked_history = None;
        effects.push(ScreenEffect::Ask(Box::new(self.query.clone())));
    }

    /// Shows a pane, and requests the tree if the pane needs it.
    fn show(&mut self, pane: Pane, effects: &mut Vec<ScreenEffect>) {
        if pane == Pane::Code && self.pane != Pane::Code {
            if let Some(function) = self.outer_function() {
                let chosen = self.any_function().filter(|chosen| *chosen != function);
                self.annotate(function, effects);
                if let Some(inlined) = chosen {
                    self.code.look_for(inlined.symbol, self.event_index(), self.height());
                }
            } else if self.any_function().is_some() {
                self.said = Some(self.no_function());
                return;
            } else if self.code.function.is_some() {
                // Keep the code that is already shown.
            } else if let Some(function) = self.costliest() {
                self.said = Some(format!("showing the hottest function, {}", function.symbol));
                self.annotate(function, effects);
            } else {
                self.said = Some("select a function, then press a".to_owned());
            }
        }
        self.pane = pane;
        if matches!(pane, Pane::Tree | Pane::Flame) && self.query.tree.is_none() {
            self.ask(effects);
        }
    }

    fn annotate(&mut self, function: FunctionRef, effects: &mut Vec<ScreenEffect>) {
        if self.code.function.as_ref() != Some(&function) || self.status.is_live {
            self.code.wait_for(function.clone());
            effects.push(ScreenEffect::Annotate(function));
        }
    }

    /// Saves the current view, so that Esc can return to it.
    fn leave_crumb(&mut self) {
        self.crumbs.push(Breadcrumb {
            query: self.query.clone(),
            pane: self.pane,
            zoom: self.flame.zoom,
            search: self.search.clone(),
            filter: self.filter.clone(),
        });
        // Limit the length of the history.
        if self.crumbs.len() > 200 {
            self.crumbs.remove(0);
        }
    }

    /// Whether there is a filter, a zoom or a search to undo.
    fn has_undo(&self) -> bool {
        !self.crumbs.is_empty() || !self.search.text.is_empty() || !self.filter.text.is_empty()
    }

    /// Undoes the last filter or zoom. Returns false if there was none.
    fn undo(&mut self, effects: &mut Vec<ScreenEffect>) -> bool {
        // Undo searches that are newer than the filter or zoom first.
        let then = self.crumbs.last().map(|crumb| (crumb.search.clone(), crumb.filter.clone()));
        let (search, filter) = then.unwrap_or_default();
        let is_filtered = filter.text != self.filter.text;
        if is_filtered || search.text != self.search.text {
            (self.search, self.filter) = (search, filter);
            if is_filtered {
                self.rebuild();
            }
            return true;
        }
        let Some(crumb) = self.crumbs.pop() else { return false };
        self.pane = crumb.pane;
        self.flame.zoom = crumb.zoom;
        let same = Query { tree: self.query.tree, ..crumb.query.clone() } == self.query;
        if !same {
            if self.query.root != crumb.query.root {
                self.stacks.forget();
            }
            self.order = crumb.query.tree.unwrap_or(self.order);
            self.query = crumb.query;
            self.ask(effects);
        }
        true
    }

    /// Changes the filter and sends the query.
    fn narrow(&mut self, change: impl FnOnce(&mut Filter), effects: &mut Vec<ScreenEffect>) {
        self.leave_crumb();
        change(&mut self.query.filter);
        self.ask(effects);
    }
}
