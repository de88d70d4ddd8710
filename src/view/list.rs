//! `pmc list` as text: an event a line while they come, reasons numbered and explained at the end.
//!
//! Receives [`Entry`] by entry; decides nothing about them. On a terminal long lines are wrapped under their
//! column; elsewhere an event stays on one line, so that `grep` finds it whole.
//!
//! ```text
//! software
//!   cpu-clock                 yes   time on the CPU by its high-resolution timer
//!   page-faults, faults       user  page faults
//! hardware
//!   cpu-cycles, cycles        no 1  cycles while the CPU is not halted
//!
//!   no 1: this virtual machine has no hardware counters (ENOENT)
//!         try: enable the virtual PMU in the hypervisor
//! ```

use std::io::{self, Write};

use crate::profile::catalog::{Entry, Opens, Unreadable, Why};
use crate::text::{padded, wrap};

/// Writes the list.
pub struct Writer<'o> {
    out: &'o mut dyn Write,
    /// Columns of the terminal; `None` where lines are not wrapped.
    columns: Option<usize>,
    long: bool,
    kind: &'static str,
    notes: Vec<Why>,
    as_another: bool,
    user_only: Option<Why>,
}

/// Columns of the names, when they are not longer.
const NAME: usize = 32;
/// Where the text begins.
const TEXT: usize = 2 + NAME + 2 + 5 + 2;

impl<'o> Writer<'o> {
    /// To `out`, with `long` for all that is known of each event.
    pub fn new(out: &'o mut dyn Write, columns: Option<usize>, long: bool) -> Self {
        Self { out, columns, long, kind: "", notes: Vec::new(), as_another: false, user_only: None }
    }

    /// Writes an event.
    ///
    /// # Errors
    /// Those of the output.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.heading(entry.kind)?;
        let mut name = entry.name.clone();
        for alias in &entry.aliases {
            name.push_str(", ");
            name.push_str(alias);
        }
        let state = self.state(entry);
        // The kernel gives the events of its PMUs no text: their terms say more than nothing.
        let mut text = match (&entry.means, entry.text.is_empty()) {
            (Some(means), true) => means.clone(),
            _ => entry.text.clone(),
        };
        if !entry.unit.is_empty() {
            let unit = format!("in {}", entry.unit);
            text = if text.is_empty() { unit } else { format!("{text}, {unit}") };
        }
        let first = format!("  {}  {state:5}  ", padded(&name, NAME));
        self.hanging(&first, &" ".repeat(TEXT), &text)?;
        if self.long { self.details(entry) } else { Ok(()) }
    }

    /// Explains what was numbered, and what could not be read.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(&mut self, unreadable: &[Unreadable]) -> io::Result<()> {
        for kind in unreadable {
            self.heading(kind.kind)?;
            self.reason("  not shown: ", &kind.reason)?;
        }
        if self.notes.is_empty() && !self.as_another && self.user_only.is_none() {
            return Ok(());
        }
        writeln!(self.out)?;
        for (number, why) in std::mem::take(&mut self.notes).iter().enumerate() {
            self.reason(&format!("  no {}: ", number + 1), why)?;
        }
        if let Some(why) = self.user_only.take() {
            self.reason("  user: in user mode only: ", &why)?;
        }
        if self.as_another {
            let text = "not tried: another tracepoint was, and stands for all, since closing each takes the kernel some 35 ms";
            self.hanging("  yes*: ", "        ", text)?;
        }
        Ok(())
    }

    fn heading(&mut self, kind: &'static str) -> io::Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        if !self.kind.is_empty() {
            writeln!(self.out)?;
        }
        self.kind = kind;
        // What was found so far need not wait for the next kind, which may take longer to read.
        self.out.flush()?;
        writeln!(self.out, "{kind}")
    }

    fn state(&mut self, entry: &Entry) -> String {
        match (entry.opens, &entry.reason) {
            (Opens::Yes, _) => "yes".to_owned(),
            (Opens::AsAnother, _) => {
                self.as_another = true;
                "yes*".to_owned()
            }
            (Opens::Form, _) => "form".to_owned(),
            (Opens::UserOnly, why) => {
                self.user_only = self.user_only.take().or_else(|| why.clone());
                "user".to_owned()
            }
            (Opens::No, None) => "no".to_owned(),
            (Opens::No, Some(why)) => {
                let number = self.notes.iter().position(|note| note == why).unwrap_or_else(|| {
                    self.notes.push(why.clone());
                    self.notes.len() - 1
                });
                format!("no {}", number + 1)
            }
        }
    }

    fn details(&mut self, entry: &Entry) -> io::Result<()> {
        let mut lines: Vec<(&str, String)> = Vec::new();
        if let Some(means) = entry.means.as_ref().filter(|_| !entry.text.is_empty()) {
            lines.push(("means", means.clone()));
        }
        if let Some(code) = &entry.encoding {
            let mut text = format!("type {} config {:#x}", code.kind, code.config);
            for (name, value) in [("config1", code.config1), ("config2", code.config2)] {
                if value != 0 {
                    text.push_str(&format!(" {name} {value:#x}"));
                }
            }
            lines.push(("request", text));
        }
        if !entry.unit.is_empty() {
            lines.push(("unit", format!("count × {} = {}", entry.scale, entry.unit)));
        }
        for field in entry.fields.iter().flatten() {
            lines.push(("field", field.declaration.clone()));
        }
        for (label, text) in lines {
            self.hanging(&format!("      {label:7}  "), &" ".repeat(15), &text)?;
        }
        Ok(())
    }

    fn reason(&mut self, label: &str, why: &Why) -> io::Result<()> {
        let errno = why.errno.map(|name| format!(" ({name})")).unwrap_or_default();
        let indent = " ".repeat(label.len().min(13));
        self.hanging(label, &indent, &format!("{}{errno}", why.cause))?;
        if why.remedy.is_empty() {
            return Ok(());
        }
        self.hanging(&indent, &format!("{indent}     "), &format!("try: {}", why.remedy))
    }

    /// Writes `text` behind `first`, wrapped under `rest` where lines are wrapped at all.
    fn hanging(&mut self, first: &str, rest: &str, text: &str) -> io::Result<()> {
        let lines = wrap(first, rest, text, self.columns.unwrap_or(usize::MAX));
        lines.iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::width;

    fn entry(name: &str, kind: &'static str, opens: Opens) -> Entry {
        Entry {
            name: name.to_owned(),
            aliases: Vec::new(),
            kind,
            text: "counts something of interest to somebody".to_owned(),
            pmu: None,
            means: None,
            unit: String::new(),
            scale: 1.0,
            encoding: None,
            opens,
            reason: None,
            fields: None,
        }
    }

    fn written(columns: Option<usize>, entries: &[Entry]) -> String {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, columns, false);
        for entry in entries {
            writer.entry(entry).unwrap();
        }
        writer.finish(&[]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_same_reason_is_explained_once() {
        let why = |cause: &str| {
            Some(Why { missing: "", errno: Some("ENOENT"), cause: cause.to_owned(), remedy: "x".to_owned() })
        };
        let refused = |name, cause| Entry { reason: why(cause), ..entry(name, "hardware", Opens::No) };
        let text = written(None, &[refused("a", "gone"), refused("b", "gone"), refused("c", "other")]);
        assert_eq!(text.matches("gone").count(), 1);
        assert!(text.contains("no 2: other (ENOENT)\n        try: x\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains(" no 1 ")).count(), 2, "{text}");
    }

    #[test]
    fn lines_are_wrapped_on_terminals_only() {
        let entries = [entry("a", "software", Opens::Yes)];
        assert!(written(Some(60), &entries).lines().all(|line| width(line) <= 60));
        assert_eq!(written(None, &entries).lines().count(), 2);
    }
}
