//! Applies each action to the state.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind};

use super::flame;
use super::prompt::PromptKind;
use super::scroll::Scroll;
use super::stacks::SearchDirection;
use super::table::{self, FunctionColumn};
use super::time_strip::{self, TimeStrip};
use super::{Overlay, ScreenEffect, ScreenState};
use crate::engine::LiveCommand;
use crate::keys::{self, KeyAction, Pane};
use pmc_analysis::profile::sampled::{
    FunctionRef, Profile, ProfileEvent, ShareOf, SortKey, StackDirection, ThreadState,
};

/// The sort keys through which the user can cycle, in addition to those requested on the command line.
const KEYS: &[&[SortKey]] = &[
    &[SortKey::Dso, SortKey::Symbol],
    &[SortKey::Symbol],
    &[SortKey::Dso],
    &[SortKey::Comm],
    &[SortKey::Process],
    &[SortKey::Thread],
    &[SortKey::SrcLine, SortKey::Symbol],
    &[SortKey::Cpu],
];

/// Number of columns by which one key press scrolls long names.
const SHIFT: usize = 8;

impl ScreenState {
    pub(super) fn key(&mut self, key: &KeyEvent, effects: &mut Vec<ScreenEffect>) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.clicked = None;
        match self.over {
            Some(Overlay::Prompt(_)) => self.prompt_key(key, effects),
            Some(Overlay::Strip(_)) => self.strip_key(key, effects),
            Some(Overlay::Help(_)) => self.help_key(key, effects),
            None => {
                self.said = None;
                match keys::action(key, self.pane, self.status.is_live) {
                    Some(action) => self.act(action, effects),
                    None => self.unknown(key),
                }
            }
        }
    }

    fn unknown(&mut self, key: &KeyEvent) {
        if let KeyCode::Char(c) = key.code
            && keys::action(key, self.pane, true).is_some()
        {
            self.said = Some(format!("{c} works only in a live view"));
        }
    }

    fn help_key(&mut self, key: &KeyEvent, effects: &mut Vec<ScreenEffect>) {
        let Some(Overlay::Help(mut scroll)) = self.over.take() else { return };
        let len = keys::help().len();
        // The help page is taller than the pane, because it also covers the lines above and below it. It has
        // a heading.
        let height = self.areas().map_or(1, |areas| usize::from(areas.body.height + areas.detail.height));
        // The help page has no cursor, so the keys scroll its top line.
        let most = len.saturating_sub(height);
        let top = scroll.top;
        let mut go = |to: usize| scroll.top = to.min(most);
        match keys::action(key, Pane::Functions, self.status.is_live) {
            Some(KeyAction::Up) => go(top.saturating_sub(1)),
            Some(KeyAction::Down) => go(top + 1),
            Some(KeyAction::PageUp) => go(top.saturating_sub(height)),
            Some(KeyAction::PageDown) => go(top + height),
            Some(KeyAction::First) => go(0),
            Some(KeyAction::Last) => go(most),
            Some(KeyAction::Quit) => return effects.push(ScreenEffect::Quit),
            Some(KeyAction::Redraw) => effects.push(ScreenEffect::Redraw),
            Some(KeyAction::Suspend) => effects.push(ScreenEffect::Suspend),
            _ if key.code == KeyCode::Char(' ') => go(top + height),
            _ => return,
        }
        self.over = Some(Overlay::Help(scroll));
    }

    pub(super) fn act(&mut self, action: KeyAction, effects: &mut Vec<ScreenEffect>) {
        let height = self.height();
        let page = height.saturating_sub(1).max(1) as isize;
        match action {
            KeyAction::Up => self.go(-1),
            KeyAction::Down => self.go(1),
            KeyAction::PageUp => self.go(-page),
            KeyAction::PageDown => self.go(page),
            KeyAction::First => self.go(isize::MIN / 2),
            KeyAction::Last => self.go(isize::MAX / 2),
            KeyAction::Left => self.sideways(false),
            KeyAction::Right => self.sideways(true),
            KeyAction::Enter => self.enter(effects),
            KeyAction::Back => {
                if !self.undo(effects) {
                    if self.pane == self.home {
                        effects.push(ScreenEffect::Quit);
                    } else {
                        self.pane = self.home;
                    }
                }
            }
            KeyAction::Undo => {
                if !self.undo(effects) && self.pane != self.home {
                    self.pane = self.home;
                }
            }
            KeyAction::Quit => effects.push(ScreenEffect::Quit),
            KeyAction::Help => self.over = Some(Overlay::Help(Scroll::default())),
            KeyAction::Show(pane) => self.show(pane, effects),
            KeyAction::NextPane | KeyAction::PreviousPane => {
                let at = self.pane.number() - 1;
                let step = if action == KeyAction::NextPane { 1 } else { Pane::ALL.len() - 1 };
                self.show(Pane::ALL[(at + step) % Pane::ALL.len()], effects);
            }
            KeyAction::Search => self.open_prompt(PromptKind::Search),
            KeyAction::Filter => self.open_prompt(PromptKind::Filter),
            KeyAction::NextMatch => drop(self.find(SearchDirection::Next)),
            KeyAction::PreviousMatch => drop(self.find(SearchDirection::Back)),
            KeyAction::Annotate => self.show(Pane::Code, effects),
            KeyAction::Callers => self.around(StackDirection::Callee, effects),
            KeyAction::Mark => self.mark(),
            KeyAction::SortNext => self.sort_by(1),
            KeyAction::SortPrevious => self.sort_by(-1),
            KeyAction::Reverse => {
                self.table.reverse = !self.table.reverse;
                self.rebuild_table();
            }
            KeyAction::Keys => self.next_keys(effects),
            KeyAction::InDso | KeyAction::InFunction | KeyAction::InThread => self.zoom_in(action, effects),
            KeyAction::HideKernel => {
                self.narrow(
                    |filter| (filter.hide_kernel, filter.hide_user) = (!filter.hide_kernel, false),
                    effects,
                );
            }
            KeyAction::HideUser => {
                self.narrow(
                    |filter| (filter.hide_user, filter.hide_kernel) = (!filter.hide_user, false),
                    effects,
                );
            }
            KeyAction::States => self.switch_states(effects),
            KeyAction::Idle => self.switch_idle(effects),
            KeyAction::Relative => {
                self.query.relative = !self.query.relative;
                let of = if self.query.relative { "filtered samples" } else { "all samples" };
                self.said = Some(format!("percentages of {of}"));
                self.ask(effects);
            }
            KeyAction::Latency => self.switch_latency(effects),
            KeyAction::TimeStrip => self.open_strip(),
            KeyAction::Expand => self.open_branch(true),
            KeyAction::Collapse => self.open_branch(false),
            KeyAction::ExpandAll => self.open_all(true),
            KeyAction::CollapseAll => self.open_all(false),
            KeyAction::HotPath => self.hot_path(),
            KeyAction::Invert => {
                self.order = if self.order == StackDirection::Caller {
                    StackDirection::Callee
                } else {
                    StackDirection::Caller
                };
                self.stacks.forget();
                self.flame = flame::FlamePane::default();
                self.ask(effects);
            }
            KeyAction::Recursion => {
                self.query.collapse = !self.query.collapse;
                let how = if self.query.collapse { "folded" } else { "shown call by call" };
                self.said = Some(format!("direct recursion {how}"));
                self.ask(effects);
            }
            KeyAction::ShowCallers => {
                self.shows_callers = !self.shows_callers;
                let how = if self.shows_callers { "shown" } else { "hidden" };
                self.said = Some(format!("start-up frames {how}"));
                self.rebuild();
            }
            KeyAction::Source => self.code.toggle_source(height),
            KeyAction::Hottest => self.code.hottest(self.event_index(), height),
            KeyAction::NextEvent => self.step_event(1, effects),
            KeyAction::PreviousEvent => self.step_event(-1, effects),
            KeyAction::Export => self.open_prompt(PromptKind::Export),
            KeyAction::Freeze => effects.push(ScreenEffect::Command(LiveCommand::Freeze)),
            KeyAction::Zero => effects.push(ScreenEffect::Command(LiveCommand::Zero)),
            KeyAction::Decay => effects.push(ScreenEffect::Command(LiveCommand::Decay)),
            KeyAction::Slower => effects.push(ScreenEffect::Command(LiveCommand::Faster(false))),
            KeyAction::Faster => effects.push(ScreenEffect::Command(LiveCommand::Faster(true))),
            KeyAction::SampleLess => effects.push(ScreenEffect::Command(LiveCommand::SampleMore(false))),
            KeyAction::SampleMore => effects.push(ScreenEffect::Command(LiveCommand::SampleMore(true))),
            KeyAction::Redraw => effects.push(ScreenEffect::Redraw),
            KeyAction::Suspend => effects.push(ScreenEffect::Suspend),
        }
    }

    /// Moves the cursor up or down.
    pub(super) fn go(&mut self, lines: isize) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        match self.pane {
            Pane::Functions => {
                if let Some(event) = answer.profile.events.get(self.event_index()) {
                    self.table.by(lines, &answer.profile, event, height);
                }
            }
            Pane::Tree => self.stacks.by(lines, height),
            Pane::Flame => self.climb(lines),
            Pane::Code => {
                let len = self.code.shown.len();
                self.code.scroll.by(lines, len, height);
            }
            Pane::Threads => {
                let len = self.threads.lines.len();
                self.threads.scroll.by(lines, len, height);
            }
            Pane::Events => self.events.by(lines, answer.profile.events.len(), height),
        }
    }

    /// Moves the cursor up or down by levels of the flame graph.
    fn climb(&mut self, lines: isize) {
        let boxes = self.boxes();
        let Some(mut at) = self.flame_box(&boxes) else { return };
        for _ in 0..lines.unsigned_abs().min(1000) {
            let next = if lines < 0 {
                let above = if at.node == flame::ALL { None } else { Some(self.parents[at.node as usize]) };
                above.and_then(|above| boxes.iter().find(|b| b.node == above))
            } else {
                let below = flame::under(&boxes, &self.parents, &at);
                below.and_then(|below| boxes.iter().find(|b| b.node == below))
            };
            let Some(next) = next else { break };
            at = *next;
        }
        self.flame_to(at.node);
    }

    /// Returns the box under the flame graph's cursor.
    pub fn flame_box(&self, boxes: &[flame::FlameBox]) -> Option<flame::FlameBox> {
        let node = self.flame_node(self.flame.cursor).unwrap_or(flame::ALL);
        boxes.iter().find(|b| b.node == node).or(boxes.first()).copied()
    }

    pub(super) fn flame_to(&mut self, node: u32) {
        self.flame.cursor =
            if node == flame::ALL { None } else { self.stacks.identities.get(node as usize).copied() };
        // If the node is outside the zoomed part, or too narrow to be visible, zoom to its parent.
        let boxes = self.boxes();
        if node != flame::ALL && !boxes.iter().any(|b| b.node == node) {
            let parent = self.parents[node as usize];
            let parent = (parent != flame::ALL).then(|| self.stacks.identities[parent as usize]);
            self.flame.zoom = parent;
        }
        let boxes = self.boxes();
        let height = self.height();
        if let Some(at) = self.flame_box(&boxes) {
            let mut scroll = Scroll { cursor: at.depth, top: self.flame.top };
            let deepest = boxes.last().map_or(0, |b| b.depth);
            scroll.put(at.depth, deepest + 1, height);
            self.flame.top = scroll.top;
        }
    }

    /// Moves the cursor, or scrolls, to the left or right.
    fn sideways(&mut self, right: bool) {
        let height = self.height();
        match self.pane {
            Pane::Flame => {
                let boxes = self.boxes();
                let next = self.flame_box(&boxes).and_then(|at| flame::neighbour(&boxes, &at, right));
                if let Some(next) = next {
                    self.flame_to(next);
                }
            }
            Pane::Tree => {
                let Some(answer) = self.answer.clone() else { return };
                let Some(tree) = answer.profile.events.get(self.event_index()).and_then(|e| e.tree.as_ref())
                else {
                    return;
                };
                if right {
                    if !self.stacks.open(tree, true, height)
                        && self.stacks.node().is_some_and(|node| self.stacks.is_open(node))
                    {
                        self.stacks.by(1, height);
                    }
                } else if !self.stacks.open(tree, false, height) {
                    self.stacks.go_to_parent(height);
                }
            }
            pane => {
                let shift = if pane == Pane::Code { &mut self.code.shift } else { &mut self.table.shift };
                *shift = if right { (*shift + SHIFT).min(4000) } else { shift.saturating_sub(SHIFT) };
            }
        }
    }

    pub(super) fn enter(&mut self, effects: &mut Vec<ScreenEffect>) {
        let height = self.height();
        match self.pane {
            Pane::Functions => self.around(StackDirection::Caller, effects),
            Pane::Tree => {
                let is_open = self.stacks.node().is_some_and(|node| self.stacks.is_open(node));
                self.open_branch(!is_open);
            }
            Pane::Flame => {
                if self.flame.zoom != self.flame.cursor {
                    self.leave_crumb();
                    self.flame.zoom = self.flame.cursor;
                    self.flame.top = 0;
                    if let Some(node) = self.flame_node(self.flame.cursor) {
                        self.flame_to(node);
                    }
                }
            }
            Pane::Code => {
                if !self.code.toggle_inlined(height)
                    && !self.code.follow(height)
                    && let Some(symbol) = self.code.callee()
                {
                    let dso =
                        self.code.function.as_ref().map(|function| function.dso.clone()).unwrap_or_default();
                    self.annotate(FunctionRef { dso, symbol }, effects);
                }
            }
            Pane::Threads => {
                let Some(line) = self.threads.lines.get(self.threads.scroll.cursor).cloned() else { return };
                let only = Some([line.tid.unwrap_or(line.pid)].into());
                self.narrow(
                    |filter| match line.tid {
                        Some(_) => filter.tids = only,
                        None => filter.pids = only,
                    },
                    effects,
                );
                self.show(Pane::Functions, effects);
            }
            Pane::Events => {
                let chosen = self.events.cursor;
                self.choose_event(chosen, effects);
            }
        }
    }

    /// Whether call chains were recorded. Returns true until the first answer arrives.
    pub fn has_chains(&self) -> bool {
        self.event().is_none_or(|(profile, _)| profile.has_totals || profile.trust.stacks > 0)
    }

    /// Returns the message that explains how to record call chains.
    pub fn how_to_get_chains(&self) -> &'static str {
        match self.status.is_live {
            true => "no call chains: pmc top -g samples them",
            false => "no call chains: pmc record -g records them",
        }
    }

    /// Shows the call tree of the chosen function only.
    fn around(&mut self, order: StackDirection, effects: &mut Vec<ScreenEffect>) {
        let Some(function) = self.function() else {
            self.said = Some(self.no_function());
            return;
        };
        if !self.has_chains() {
            self.said = Some(self.how_to_get_chains().to_owned());
            return;
        }
        self.leave_crumb();
        self.query.root = Some(function.symbol);
        self.order = order;
        self.stacks.forget();
        self.flame = flame::FlamePane::default();
        if !matches!(self.pane, Pane::Tree | Pane::Flame) {
            self.pane = Pane::Tree;
        }
        self.ask(effects);
    }

    fn open_branch(&mut self, wanted: bool) {
        if self.pane != Pane::Tree {
            return;
        }
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        if let Some(tree) = answer.profile.events.get(self.event_index()).and_then(|e| e.tree.as_ref()) {
            self.stacks.open(tree, wanted, height);
        }
    }

    fn open_all(&mut self, wanted: bool) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        let Some(tree) = answer.profile.events.get(self.event_index()).and_then(|e| e.tree.as_ref()) else {
            return;
        };
        if self.pane == Pane::Flame {
            self.flame = flame::FlamePane::default();
        } else {
            self.stacks.open_all(tree, wanted, height);
        }
    }

    fn hot_path(&mut self) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        let Some(tree) = answer.profile.events.get(self.event_index()).and_then(|e| e.tree.as_ref()) else {
            return;
        };
        if self.pane == Pane::Flame {
            self.climb(isize::MAX / 2);
        } else {
            self.stacks.hot_path(tree, height);
        }
    }

    fn mark(&mut self) {
        let Some(answer) = self.answer.clone() else { return };
        if let Some(event) = answer.profile.events.get(self.event_index()) {
            self.table.mark(&answer.profile, event);
        }
        self.go(1);
    }

    /// Returns the columns by which the table can be sorted.
    pub fn columns(&self) -> Vec<FunctionColumn> {
        let Some((profile, event)) = self.event() else { return Vec::new() };
        let mut columns = vec![FunctionColumn::Own];
        if profile.has_totals {
            columns.insert(0, FunctionColumn::Total);
        }
        columns.extend((0..profile.keys_of(event).len()).map(FunctionColumn::Key));
        columns
    }

    fn sort_by(&mut self, step: isize) {
        let columns = self.columns();
        if columns.is_empty() {
            return;
        }
        let at = columns.iter().position(|column| *column == self.table.sort).unwrap_or(0) as isize;
        self.table.sort = columns[(at + step).rem_euclid(columns.len() as isize) as usize];
        self.rebuild_table();
        self.table_to(0);
    }

    fn next_keys(&mut self, effects: &mut Vec<ScreenEffect>) {
        let mut all: Vec<&[SortKey]> = vec![&self.first_keys];
        all.extend(KEYS.iter().filter(|keys| **keys != self.first_keys.as_slice()));
        if self.event().is_some_and(|(profile, _)| profile.has_latency) {
            all.push(&[SortKey::Parallelism]);
        }
        let at = all.iter().position(|keys| *keys == self.query.keys.as_slice());
        let next = all[at.map_or(0, |at| (at + 1) % all.len())].to_vec();
        self.said = Some(format!(
            "by {}",
            next.iter().map(|key| key.heading().to_lowercase()).collect::<Vec<_>>().join(", ")
        ));
        // Keep sorting by the same column if it still exists.
        if let FunctionColumn::Key(at) = self.table.sort {
            let key = self.query.keys.get(at);
            let at = key.and_then(|key| next.iter().position(|next| next == key));
            self.table.sort = at.map_or(FunctionColumn::Total, FunctionColumn::Key);
        }
        self.query.keys = next;
        self.table.marks.clear();
        self.ask(effects);
    }

    /// Switches shares between CPU time and wall-clock time.
    fn switch_latency(&mut self, effects: &mut Vec<ScreenEffect>) {
        if !self.event().is_some_and(|(profile, _)| profile.has_latency) {
            self.said = Some("no latencies: pmc record --latency records them".to_owned());
            return;
        }
        let (of, words) = match self.query.share_of {
            ShareOf::Period => (ShareOf::Latency, "wall-clock time (latency)"),
            ShareOf::Latency => (ShareOf::Period, "CPU time (overhead)"),
        };
        self.query.share_of = of;
        self.said = Some(format!("shares of {words}"));
        self.ask(effects);
    }

    /// Shows the next of running time, waiting time, time spent waiting for a CPU, and all of a thread's
    /// time. In the live view, the states are not separate events, so this changes the filter.
    fn switch_states(&mut self, effects: &mut Vec<ScreenEffect>) {
        if !self.has_waits() {
            return;
        }
        if self.state_events.is_empty() {
            let next = match self.query.filter.states {
                None => Some([ThreadState::Running].as_slice()),
                Some([ThreadState::Running]) => {
                    Some([ThreadState::Runnable, ThreadState::Blocked].as_slice())
                }
                Some(_) => None,
            };
            return self.narrow(|filter| filter.states = next, effects);
        }
        self.leave_crumb();
        let joint = self.state_events.iter().map(|(_, event)| *event).min();
        let at = self.state_events.iter().position(|(_, event)| Some(*event) == self.query.event);
        let next = match at.filter(|_| self.query.states_apart) {
            Some(at) => self.state_events.get(at + 1),
            None => self.state_events.first(),
        };
        self.query.states_apart = next.is_some();
        self.query.event = next.map(|(_, event)| *event).or(joint);
        self.said = Some(match next {
            Some((ThreadState::Running, _)) => "running time".to_owned(),
            Some((ThreadState::Runnable, _)) => "time spent waiting for a CPU".to_owned(),
            Some((ThreadState::Blocked, _)) => "waiting time".to_owned(),
            None => "all time of the threads: running and waiting".to_owned(),
        });
        self.ask(effects);
    }

    /// Notes which events measure states of threads. Returns the event to show first if it is another one
    /// than the one shown.
    pub(super) fn note_states(&mut self, profile: &Profile) -> Option<usize> {
        if !self.query.states_apart || !self.state_events.is_empty() {
            return None;
        }
        let state = |(event, of): (usize, &ProfileEvent)| of.state.map(|state| (state, event));
        self.state_events = profile.events.iter().enumerate().filter_map(state).collect();
        // Waiting for a CPU comes last, because it says the least about the program.
        self.state_events.sort_by_key(|(state, _)| (*state == ThreadState::Runnable, *state));
        let first = *profile.shown_events().first()?;
        (!self.state_events.is_empty() && Some(first) != self.query.event).then_some(first)
    }

    /// Shows or folds the waits of idle threads.
    fn switch_idle(&mut self, effects: &mut Vec<ScreenEffect>) {
        if !self.has_waits() {
            return;
        }
        self.leave_crumb();
        self.query.idle = !self.query.idle;
        self.said = Some(
            if self.query.idle { "idle threads are shown" } else { "idle threads are folded" }.to_owned(),
        );
        self.ask(effects);
    }

    /// Whether waiting time was measured. If not, shows a message that explains how to measure it.
    fn has_waits(&mut self) -> bool {
        let is_measured = |event: &ProfileEvent| {
            event.has_waits()
                || event.state.is_some()
                || event.thread_time.as_ref().is_some_and(|of| of.idle.0 > 0)
        };
        let has_waits = self.event().is_some_and(|(_, event)| is_measured(event));
        if !has_waits {
            let command = if self.status.is_live { "pmc top --wall" } else { "pmc record --wall" };
            self.said = Some(format!("no waiting time: use {command} to measure it"));
        }
        has_waits
    }

    /// Filters by the library, function or thread on the cursor's line.
    fn zoom_in(&mut self, action: KeyAction, effects: &mut Vec<ScreenEffect>) {
        let function = self.function();
        match action {
            KeyAction::InThread => {
                let comm = match self.pane {
                    Pane::Functions => self.event().and_then(|(profile, event)| {
                        table::named(profile, event, self.table.row(event)?, SortKey::Comm)
                    }),
                    Pane::Threads => self.threads.lines.get(self.threads.scroll.cursor).and_then(|line| {
                        self.event().map(|(profile, _)| profile.texts.get(line.comm).to_owned())
                    }),
                    _ => None,
                };
                match comm {
                    Some(comm) => self.narrow(|filter| filter.comms = Some([comm].into()), effects),
                    None => self.said = Some("this row covers several threads; see pane 5".to_owned()),
                }
            }
            KeyAction::InDso => {
                let of_row = self.event().and_then(|(profile, event)| {
                    table::named(profile, event, self.table.row(event)?, SortKey::Dso)
                });
                let dso = match self.pane {
                    Pane::Functions => of_row,
                    _ => function.map(|function| function.dso),
                };
                match dso {
                    Some(dso) => self.narrow(|filter| filter.dso = Some(dso), effects),
                    None => self.said = Some("this row covers several programs or libraries".to_owned()),
                }
            }
            _ => match function {
                Some(function) => self.narrow(|filter| filter.symbol = Some(function.symbol), effects),
                None => self.said = Some(self.no_function()),
            },
        }
    }

    fn step_event(&mut self, step: isize, effects: &mut Vec<ScreenEffect>) {
        let Some(count) = self.answer.as_ref().map(|answer| answer.profile.events.len()) else { return };
        if count < 2 {
            self.said = Some("there is only one event".to_owned());
            return;
        }
        let next = (self.query.event.unwrap_or(0) as isize + step).rem_euclid(count as isize) as usize;
        self.choose_event(next, effects);
    }

    fn choose_event(&mut self, event: usize, effects: &mut Vec<ScreenEffect>) {
        if self.query.event.unwrap_or(0) != event {
            self.leave_crumb();
            self.query.event = Some(event);
            self.ask(effects);
        }
        if self.pane == Pane::Events {
            self.show(Pane::Functions, effects);
        }
    }

    fn open_strip(&mut self) {
        let has_times =
            self.answer.as_ref().and_then(|answer| answer.times.as_ref()).is_some_and(|t| t.sums.len() > 1);
        if has_times {
            self.over = Some(Overlay::Strip(TimeStrip { at: self.size.0 / 2, anchor: None }));
        } else {
            self.said = Some("no timestamps".to_owned());
        }
    }

    fn strip_key(&mut self, key: &KeyEvent, effects: &mut Vec<ScreenEffect>) {
        let Some(Overlay::Strip(mut strip)) = self.over.take() else { return };
        let last = self.size.0.saturating_sub(1);
        match keys::action(key, Pane::Tree, self.status.is_live) {
            Some(KeyAction::Left) => strip.at = strip.at.saturating_sub(1),
            Some(KeyAction::Right) => strip.at = (strip.at + 1).min(last),
            Some(KeyAction::PageUp | KeyAction::Up) => strip.at = strip.at.saturating_sub(10),
            Some(KeyAction::PageDown | KeyAction::Down) => strip.at = (strip.at + 10).min(last),
            Some(KeyAction::First) => strip.at = 0,
            Some(KeyAction::Last) => strip.at = last,
            Some(KeyAction::Enter) => return self.apply_strip(strip, effects),
            Some(KeyAction::Quit) => return effects.push(ScreenEffect::Quit),
            Some(KeyAction::Suspend) => effects.push(ScreenEffect::Suspend),
            Some(KeyAction::Undo | KeyAction::Back | KeyAction::TimeStrip) => return,
            _ if key.code == KeyCode::Char(' ') => {
                strip.anchor = if strip.anchor.is_some() { None } else { Some(strip.at) };
            }
            _ => {}
        }
        self.over = Some(Overlay::Strip(strip));
    }

    /// Returns the time span selected on the strip, in nanoseconds.
    pub fn strip_span(&self, strip: &TimeStrip) -> Option<(u64, u64)> {
        let times = self.answer.as_ref()?.times.as_ref()?;
        let (first, last) = time_strip::slices(times.sums.len(), self.size.0, strip.span());
        let at = |slice: usize| times.from.saturating_add(times.slice.saturating_mul(slice as u64));
        Some((at(first), at(last + 1).saturating_sub(1)))
    }

    pub(super) fn apply_strip(&mut self, strip: TimeStrip, effects: &mut Vec<ScreenEffect>) {
        let Some(span) = self.strip_span(&strip) else { return };
        self.narrow(|filter| filter.time = Some(span), effects);
    }
}
