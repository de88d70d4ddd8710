//! Positions of the screen's parts as a function of its size.
//!
//! ```text
//!   header   source of samples, number of samples, losses, own cost
//!   tabs     the panes and the active filters
//!   strip    the time strip of the recording (if it fits)
//!   heading  column titles
//!   body
//!   detail   the chosen line in full, on two lines if they fit
//!   footer   hints, a prompt, or a message
//! ```

use crate::keys::Pane;
use ratatui::layout::Rect;

/// Minimum width of the screen.
pub const LEAST_WIDTH: u16 = 60;
/// Minimum height of the screen.
pub const LEAST_HEIGHT: u16 = 15;
/// Minimum screen height at which the time strip is shown.
const ROOMY: u16 = 20;

/// Minimum screen height at which the details get two lines.
const TALL: u16 = 24;

/// The parts of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "drawn above")]
pub struct ScreenAreas {
    pub header: Rect,
    pub tabs: Rect,
    pub strip: Option<Rect>,
    pub heading: Rect,
    pub body: Rect,
    pub detail: Rect,
    pub footer: Rect,
}

/// Returns the parts of the screen; `None` if the screen is too small.
pub fn areas((width, height): (u16, u16), wants_strip: bool, needs_strip: bool) -> Option<ScreenAreas> {
    if width < LEAST_WIDTH || height < LEAST_HEIGHT {
        return None;
    }
    let mut y = 0;
    let mut line = |height: u16| {
        let rect = Rect { x: 0, y, width, height };
        y += height;
        rect
    };
    let header = line(1);
    let tabs = line(1);
    let has_strip = (wants_strip && height >= ROOMY) || needs_strip;
    let strip = has_strip.then(|| line(1));
    let heading = line(1);
    let details = if height >= TALL { 2 } else { 1 };
    let body = line(height - 4 - details - u16::from(has_strip));
    Some(ScreenAreas { header, tabs, strip, heading, body, detail: line(details), footer: line(1) })
}

/// Returns the start and end column of each pane's tab.
fn tab_places() -> impl Iterator<Item = (Pane, u16, u16)> {
    let mut x = 0;
    Pane::ALL.into_iter().map(move |pane| {
        let from = x;
        x += pane.tab().len() as u16;
        (pane, from, x)
    })
}

/// Returns the pane whose tab is at this column.
pub fn tab_at(x: u16) -> Option<Pane> {
    tab_places().find(|(_, from, to)| (*from..*to).contains(&x)).map(|(pane, ..)| pane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_fills_the_screen() {
        assert_eq!(areas((59, 15), true, false), None);
        assert_eq!(areas((60, 14), true, false), None);
        for (size, strip) in [((60, 15), false), ((200, 50), true), ((80, 24), false)] {
            let areas = areas(size, strip, false).unwrap();
            assert_eq!(areas.footer.y, size.1 - 1);
            assert_eq!(areas.detail.y, areas.body.y + areas.body.height);
            assert_eq!(areas.strip.is_some(), strip);
        }
        assert!(areas((60, 15), true, true).unwrap().strip.is_some());
    }
}
