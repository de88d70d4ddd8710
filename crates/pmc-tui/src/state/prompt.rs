//! Prompts in the last line: search, filter, file name.
//!
//! A search or filter is applied while the user types; Esc reverts it.

use std::path::{Path, PathBuf};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::search::Search;
use super::stacks::SearchDirection;
use super::{Overlay, ScreenEffect, ScreenState};
use crate::engine::ViewFormat;
use crate::keys::Pane;
use pmc_formats::export::ExportFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A search.
    Search,
    /// A filter for rows.
    Filter,
    /// The file to write.
    Export,
}

#[derive(Debug)]
pub struct Prompt {
    pub kind: PromptKind,
    /// The text typed so far.
    pub text: String,
    /// The search or filter that was active before the prompt was opened.
    before: Search,
    /// The cursor's line before the prompt was opened; in the code pane, the cursor's row.
    line: usize,
    node: Option<u64>,
}

/// Maximum length of the typed text. Protects against accidental pastes.
const LONGEST: usize = 1000;

impl Prompt {
    /// Returns the label in front of the typed text.
    pub fn question(&self) -> &'static str {
        match self.kind {
            PromptKind::Search => "Search: ",
            PromptKind::Filter => "Show only: ",
            PromptKind::Export => "Write to: ",
        }
    }
}

/// Returns the format for a file's extension, or a message that lists the known extensions.
fn form(path: &str) -> Result<ViewFormat, String> {
    if path.ends_with(".data") {
        return Ok(ViewFormat::PerfData);
    }
    let unknown =
        |_| format!("the file name needs one of these extensions: {}, .data", ExportFormat::endings());
    ExportFormat::of_file(Path::new(path)).map(ViewFormat::Format).map_err(unknown)
}

impl ScreenState {
    pub(super) fn open_prompt(&mut self, kind: PromptKind) {
        let (text, before) = match kind {
            PromptKind::Search => (String::new(), self.search.clone()),
            PromptKind::Filter => (self.filter.text.clone(), self.filter.clone()),
            PromptKind::Export => ("pmc-view.html".to_owned(), Search::default()),
        };
        let node = if self.pane == Pane::Flame {
            self.flame.cursor
        } else {
            self.stacks.node().map(|node| self.stacks.identities[node as usize])
        };
        let line = match self.pane {
            Pane::Code => self.code.row().unwrap_or_default() as usize,
            _ => self.table.scroll.cursor,
        };
        self.over = Some(Overlay::Prompt(Prompt { kind, text, before, line, node }));
    }

    pub(super) fn prompt_key(&mut self, key: &KeyEvent, effects: &mut Vec<ScreenEffect>) {
        let Some(Overlay::Prompt(mut prompt)) = self.over.take() else { return };
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return self.give_up(prompt),
            KeyCode::Char('c' | 'g') if ctrl => return self.give_up(prompt),
            KeyCode::Enter => return self.finish(prompt, effects),
            KeyCode::Backspace if prompt.text.is_empty() => return self.give_up(prompt),
            KeyCode::Backspace => drop(prompt.text.pop()),
            KeyCode::Char('h') if ctrl => drop(prompt.text.pop()),
            KeyCode::Char('u') if ctrl => prompt.text.clear(),
            KeyCode::Char('w') if ctrl => {
                let kept = prompt.text.trim_end().rfind([' ', '/', '.']).map_or(0, |at| at + 1);
                prompt.text.truncate(kept.min(prompt.text.len().saturating_sub(1)));
            }
            KeyCode::Char(c)
                if !ctrl && !key.modifiers.contains(KeyModifiers::ALT) && prompt.text.len() < LONGEST =>
            {
                prompt.text.push(c);
            }
            _ => {}
        }
        self.try_out(&prompt);
        self.over = Some(Overlay::Prompt(prompt));
    }

    pub(super) fn paste(&mut self, text: &str) {
        let Some(Overlay::Prompt(mut prompt)) = self.over.take() else { return };
        let room = LONGEST.saturating_sub(prompt.text.len());
        prompt.text.extend(text.chars().filter(|c| !c.is_control()).take(room));
        self.try_out(&prompt);
        self.over = Some(Overlay::Prompt(prompt));
    }

    /// Applies the text typed so far.
    fn try_out(&mut self, prompt: &Prompt) {
        match prompt.kind {
            PromptKind::Search => {
                self.search = Search::new(&prompt.text);
                self.go_back(prompt);
                self.find(SearchDirection::Largest);
            }
            PromptKind::Filter => {
                self.filter = Search::new(&prompt.text);
                self.rebuild_table();
            }
            PromptKind::Export => {}
        }
    }

    /// Moves the cursor back to where the search started.
    fn go_back(&mut self, prompt: &Prompt) {
        let height = self.height();
        match self.pane {
            Pane::Code => self.code.go_to(prompt.line as u32, height),
            Pane::Flame => self.flame.cursor = prompt.node,
            Pane::Tree => {
                let found = self
                    .stacks
                    .lines
                    .iter()
                    .position(|line| Some(self.stacks.identities[line.node as usize]) == prompt.node);
                if let Some(line) = found {
                    self.stacks.put(line, height);
                }
            }
            _ => self.table_to(prompt.line),
        }
    }

    fn give_up(&mut self, prompt: Prompt) {
        match prompt.kind {
            PromptKind::Search => {
                self.go_back(&prompt);
                self.search = prompt.before;
            }
            PromptKind::Filter => {
                self.filter = prompt.before;
                self.rebuild_table();
            }
            PromptKind::Export => {}
        }
    }

    fn finish(&mut self, prompt: Prompt, effects: &mut Vec<ScreenEffect>) {
        match prompt.kind {
            PromptKind::Search if prompt.text.is_empty() => {
                // As in vi, an empty search repeats the last one.
                self.search = prompt.before;
                self.find(SearchDirection::Next);
            }
            PromptKind::Search | PromptKind::Filter => {
                let typed = if prompt.kind == PromptKind::Search { &self.search } else { &self.filter };
                if typed.is_plain {
                    let words = "is not a valid regular expression: searching for the literal text";
                    self.said = Some(format!("{:?} {words}", typed.text));
                }
            }
            PromptKind::Export if prompt.text.is_empty() => {}
            PromptKind::Export => match form(&prompt.text) {
                Ok(form) => {
                    self.said = Some(format!("writing {} …", prompt.text));
                    effects.push(ScreenEffect::Export(form, PathBuf::from(prompt.text)));
                }
                Err(which) => self.said = Some(which),
            },
        }
    }

    pub(super) fn rebuild_table(&mut self) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        let Some(event) = answer.profile.events.get(self.event_index()) else { return };
        self.table.rebuild(&answer.profile, event, &self.filter, !self.shows_callers, height);
    }

    pub(super) fn table_to(&mut self, line: usize) {
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return };
        if let Some(event) = answer.profile.events.get(self.event_index()) {
            self.table.put(line, &answer.profile, event, height);
        }
    }

    /// Moves the cursor to a match of the search. Returns whether there is a match.
    pub(super) fn find(&mut self, step: SearchDirection) -> bool {
        if !self.search.is_some() {
            return false;
        }
        let height = self.height();
        let Some(answer) = self.answer.clone() else { return false };
        let Some(event) = answer.profile.events.get(self.event_index()) else { return false };
        let (profile, backwards) = (&answer.profile, step == SearchDirection::Back);
        let from = |cursor: usize| cursor + usize::from(step == SearchDirection::Next);
        let found = match (self.pane, &event.tree) {
            (Pane::Functions, _) if step == SearchDirection::Largest => {
                let line = self.table.largest(profile, event, &self.search);
                line.map(|line| self.table.put(line, profile, event, height))
            }
            (Pane::Functions, _) => {
                let line =
                    self.table.find(profile, event, &self.search, from(self.table.scroll.cursor), backwards);
                line.map(|line| self.table.put(line, profile, event, height))
            }
            (Pane::Code, _) => {
                let row = self.code.find(&self.search, step == SearchDirection::Next, backwards);
                row.map(|row| self.code.go_to(row, height))
            }
            (Pane::Tree, Some(tree)) => {
                let node = self.stacks.find(profile, tree, &self.search, self.stacks.node(), step);
                node.map(|node| self.stacks.reveal(tree, node, height))
            }
            (Pane::Flame, Some(tree)) => {
                let here = self.flame_node(self.flame.cursor);
                let node = self.stacks.find(profile, tree, &self.search, here, step);
                node.map(|node| self.flame_to(node))
            }
            (Pane::Threads, _) => {
                let len = self.threads.lines.len();
                let cursor = self.threads.scroll.cursor;
                let matches = |line: &usize| {
                    let line = &self.threads.lines[*line];
                    let name = profile.texts.get(line.comm);
                    self.search.finds(&format!("{} {} {name}", line.pid, line.tid.unwrap_or(line.pid)))
                };
                let line = if backwards {
                    (1..=len).map(|back| (cursor + len - back) % len).find(matches)
                } else {
                    (0..len).map(|on| (from(cursor) + on) % len).find(matches)
                };
                line.map(|line| self.threads.scroll.put(line, len, height))
            }
            _ => Some(()),
        };
        let is_found = found.is_some();
        if !is_found
            && !self.shows_callers
            && (self.table.callers.is_some() || !self.stacks.folded.is_empty())
        {
            // The match may be a hidden start-up function.
            self.shows_callers = true;
            self.rebuild();
            if self.find(step) {
                return true;
            }
            self.shows_callers = false;
            self.rebuild();
        }
        self.said = (!is_found).then(|| format!("nothing matches {:?}", self.search.text));
        is_found
    }
}
