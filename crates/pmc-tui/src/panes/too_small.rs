//! The message for a terminal that is too small: the required size, wrapped to fit.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::layout::{LEAST_HEIGHT, LEAST_WIDTH};

pub(super) fn draw(buffer: &mut Buffer, area: Rect) {
    let (width, height) = (area.width, area.height);
    let words = format!("pmc needs {LEAST_WIDTH}x{LEAST_HEIGHT}, this is {width}x{height} (q quits)");
    for (line, start) in (0..height).zip((0..words.len()).step_by(usize::from(width.max(1)))) {
        let end = (start + usize::from(width)).min(words.len());
        buffer.set_stringn(area.x, area.y + line, &words[start..end], width.into(), Style::new());
    }
}
