//! Text around table rows: headlines, data quality, advice.
//!
//! Wraps the text for human readers, or writes it as comment lines for programs.

use std::io::{self, Write};

use pmc_text::text::{width, wrap_remark};

/// Writer for text around table rows. Wraps it for human readers, or writes it as comment lines for programs.
pub(super) struct Remarks<'a> {
    /// The output. Table rows are written to it directly.
    pub(super) out: &'a mut dyn Write,
    is_commented: bool,
    width: usize,
    /// The current line, which is not complete yet.
    line: Vec<u8>,
}

impl<'a> Remarks<'a> {
    /// Returns a writer to `out`. `width` is the maximum line width in columns; `None` for no limit.
    pub(super) fn new(out: &'a mut dyn Write, width: Option<usize>, is_commented: bool) -> Self {
        Self { out, is_commented, width: width.unwrap_or(usize::MAX), line: Vec::new() }
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if self.is_commented {
            self.out.write_all(if line.is_empty() { b"#" } else { b"# " })?;
        }
        let text = String::from_utf8_lossy(&line);
        // Coloured text is always short enough to fit, so it is not wrapped.
        if text.contains('\x1b') || width(&text) <= self.width {
            self.out.write_all(&line)?;
            return self.out.write_all(b"\n");
        }
        let lines = wrap_remark(&text, self.width);
        lines.iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }
}

impl Write for Remarks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part.strip_suffix(b"\n").unwrap_or(part));
            if part.ends_with(b"\n") {
                self.end_line()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
