//! A cursor in a list that may be longer than the screen.

/// Scroll position of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scroll {
    /// The line of the cursor.
    pub cursor: usize,
    /// The top line of the screen.
    pub top: usize,
}

impl Scroll {
    /// Moves the cursor to a line of a list with `len` lines, of which `height` are visible.
    pub fn put(&mut self, line: usize, len: usize, height: usize) {
        self.cursor = line.min(len.saturating_sub(1));
        let height = height.max(1);
        if self.cursor < self.top {
            self.top = self.cursor;
        }
        if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
        self.top = self.top.min(len.saturating_sub(height));
    }

    /// Moves the cursor by this number of lines.
    pub fn by(&mut self, lines: isize, len: usize, height: usize) {
        self.put(self.cursor.saturating_add_signed(lines), len, height);
    }

    /// Moves the cursor to a line, and scrolls the line to the middle of the screen.
    pub fn centre(&mut self, line: usize, len: usize, height: usize) {
        self.top = line.saturating_sub(height / 2);
        self.put(line, len, height);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_stays_in_the_list_and_on_screen() {
        let mut scroll = Scroll::default();
        scroll.by(30, 100, 10);
        assert_eq!((scroll.cursor, scroll.top), (30, 21));
        scroll.by(-5, 100, 10);
        assert_eq!((scroll.cursor, scroll.top), (25, 21));
        scroll.by(-100, 100, 10);
        assert_eq!((scroll.cursor, scroll.top), (0, 0));
        scroll.by(1000, 100, 10);
        assert_eq!((scroll.cursor, scroll.top), (99, 90));
        // The list becomes shorter, then empty.
        scroll.by(0, 5, 10);
        assert_eq!((scroll.cursor, scroll.top), (4, 0));
        scroll.by(0, 0, 10);
        assert_eq!(scroll, Scroll::default());
    }
}
