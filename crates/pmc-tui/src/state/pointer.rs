//! The mouse: a click selects, a second click on the same line acts as Enter, the wheel scrolls, and dragging
//! over the strip selects a time span.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::table_widths::TableWidths;
use super::time_strip::TimeStrip;
use super::{Overlay, ScreenEffect, ScreenState};
use crate::keys::{self, KeyAction, KeyBinding, Pane};
use crate::layout;
use pmc_text::text;

/// Returns the width of a hint, including the blanks before and after it.
fn hint_width(key: &str, words: &str) -> usize {
    text::width(key) + text::width(words) + 3
}

/// Number of lines that one step of the wheel scrolls.
const WHEEL: isize = 3;

impl ScreenState {
    /// Returns the hints of the last line, from left to right, each with its action, key and words. The most
    /// important hints come first, because the line may be too short for all of them.
    pub fn hints(&self) -> Vec<(KeyAction, String, &'static str)> {
        let mut all: Vec<_> = keys::hints(self.pane, self.status.is_live)
            .filter(|binding| self.has_chains() || !keys::needs_chains(binding.action, self.pane))
            .filter(|binding| self.has_effect(binding.action))
            .filter_map(|binding| Some((binding.action, binding.keys.first()?.name(), self.hint(binding))))
            .collect();
        all.sort_by_key(|(action, ..)| match action {
            KeyAction::Help | KeyAction::Back => 0,
            KeyAction::States | KeyAction::ShowCallers => 1,
            KeyAction::Search | KeyAction::Filter => 2,
            KeyAction::Enter => 3,
            KeyAction::NextPane => 4,
            _ => 5,
        });
        let mut used = 0;
        let count = all.iter().take_while(|(_, key, words)| {
            used += hint_width(key, words);
            used <= usize::from(self.size.0)
        });
        let count = count.count();
        all.truncate(count);
        all
    }

    /// Whether there is anything that an action with a hint can change now.
    fn has_effect(&self, action: KeyAction) -> bool {
        match action {
            KeyAction::States => self.event().is_some_and(|(_, event)| event.thread_time.is_some()),
            KeyAction::ShowCallers => {
                let is_hidden = match self.pane {
                    Pane::Functions => self.table.callers.is_some(),
                    _ => !self.stacks.folded.is_empty(),
                };
                self.shows_callers || is_hidden
            }
            _ => true,
        }
    }

    /// Returns the words for a key.
    fn hint(&self, binding: &KeyBinding) -> &'static str {
        let is_end = binding.action == KeyAction::Back && self.pane == self.home && !self.has_undo();
        if is_end { "quit" } else { binding.hint }
    }

    /// Returns the action whose hint is at a column of the last line.
    fn hint_at(&self, x: usize) -> Option<KeyAction> {
        let mut end = 0;
        let hints = self.hints();
        let hit = hints.iter().find(|(_, key, words)| {
            end += hint_width(key, words);
            x < end
        });
        hit.map(|(action, ..)| *action)
    }

    pub(super) fn mouse(&mut self, mouse: MouseEvent, effects: &mut Vec<ScreenEffect>) {
        let Some(areas) = self.areas() else { return };
        let (x, y) = (mouse.column, mouse.row);
        match mouse.kind {
            MouseEventKind::ScrollDown | MouseEventKind::ScrollUp => {
                let down = mouse.kind == MouseEventKind::ScrollDown;
                match &mut self.over {
                    Some(Overlay::Help(scroll)) => {
                        let most = crate::keys::help().len().saturating_sub(1);
                        scroll.top =
                            scroll.top.saturating_add_signed(if down { WHEEL } else { -WHEEL }).min(most);
                    }
                    Some(_) => {}
                    None => self.go(if down { WHEEL } else { -WHEEL }),
                }
            }
            MouseEventKind::Down(MouseButton::Left) => {
                let on_strip = areas.strip.is_some_and(|strip| strip.y == y);
                match self.over {
                    Some(Overlay::Help(_)) => self.over = None,
                    Some(Overlay::Prompt(_)) => {}
                    _ if on_strip => self.over = Some(Overlay::Strip(TimeStrip { at: x, anchor: Some(x) })),
                    Some(Overlay::Strip(_)) => self.over = None,
                    None if y == areas.tabs.y => {
                        if let Some(pane) = layout::tab_at(x) {
                            self.act(KeyAction::Show(pane), effects);
                        }
                    }
                    None if y == areas.footer.y => {
                        // A message hides the hints. A click removes the message.
                        match self.said.take() {
                            Some(_) => {}
                            None => self.hint_at(x.into()).into_iter().for_each(|hit| self.act(hit, effects)),
                        }
                    }
                    None if y == areas.heading.y && self.pane == Pane::Functions => {
                        let widths =
                            self.event().map(|(profile, event)| TableWidths::new(self, profile, event));
                        if let Some(column) = widths.and_then(|widths| widths.at(x.into())) {
                            if self.table.sort == column {
                                self.table.reverse = !self.table.reverse;
                            } else {
                                (self.table.sort, self.table.reverse) = (column, false);
                            }
                            self.rebuild_table();
                        }
                    }
                    None if (areas.body.y..areas.body.y + areas.body.height).contains(&y) => {
                        self.click((y - areas.body.y).into(), x.into(), effects);
                    }
                    None => {}
                }
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                if let Some(Overlay::Strip(strip)) = &mut self.over {
                    strip.at = x.min(self.size.0.saturating_sub(1));
                }
            }
            MouseEventKind::Up(MouseButton::Left) => {
                if let Some(Overlay::Strip(strip)) = self.over {
                    // A click without dragging only sets the cursor, so that the user can continue with the
                    // keyboard.
                    if strip.anchor.is_some_and(|anchor| anchor != strip.at) {
                        self.over = None;
                        self.apply_strip(strip, effects);
                    } else if let Some(Overlay::Strip(strip)) = &mut self.over {
                        strip.anchor = None;
                    }
                }
            }
            _ => {}
        }
    }

    fn click(&mut self, line: usize, x: usize, effects: &mut Vec<ScreenEffect>) {
        let height = self.height();
        let at = match self.pane {
            Pane::Functions => self.table.scroll.top + line,
            Pane::Tree => self.stacks.scroll.top + line,
            Pane::Code => self.code.scroll.top + line,
            Pane::Threads => self.threads.scroll.top + line,
            Pane::Events => self.events.top + line,
            Pane::Flame => {
                let depth = self.flame.top + line;
                let boxes = self.boxes();
                let hit = boxes.iter().position(|b| b.depth == depth && (b.x..b.x + b.width).contains(&x));
                let Some(hit) = hit else { return };
                self.flame_to(boxes[hit].node);
                hit
            }
        };
        let len = match self.pane {
            Pane::Functions => self.table.shown.len(),
            Pane::Tree => self.stacks.lines.len(),
            Pane::Code => self.code.shown.len(),
            Pane::Threads => self.threads.lines.len(),
            Pane::Events => self.answer.as_ref().map_or(0, |answer| answer.profile.events.len()),
            Pane::Flame => usize::MAX,
        };
        if at >= len {
            return;
        }
        match self.pane {
            Pane::Functions => self.table_to(at),
            Pane::Tree => self.stacks.put(at, height),
            Pane::Code => self.code.scroll.put(at, len, height),
            Pane::Threads => self.threads.scroll.put(at, len, height),
            Pane::Events => self.events.put(at, len, height),
            Pane::Flame => {}
        }
        let here = (self.pane, at);
        if self.clicked == Some(here) {
            self.clicked = None;
            self.enter(effects);
        } else {
            self.clicked = Some(here);
        }
    }
}
