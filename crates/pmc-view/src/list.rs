//! `pmc list` as text: one event per line. Numbers refer to the reasons that are listed at the end.
//!
//! Receives one [`CatalogEntry`] at a time and only formats it. The lines under a heading form a section,
//! which is written when it is complete. The name column of a section is as wide as its longest name. On a
//! terminal, names get at most half of the width, and long lines wrap within their column. In a file or pipe,
//! each event is on one line, for `grep`.
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

use pmc_analysis::profile::catalog::{
    CatalogEntry, EventAvailability, ImportSummary, MissingReason, UnreadableKind,
};
use pmc_text::table::{self, left};
use pmc_text::text::{width, wrap};
use pmc_text::units::thousands;

pub struct ListWriter<'o> {
    out: &'o mut dyn Write,
    /// Width of the terminal in columns; `None` disables wrapping.
    columns: Option<usize>,
    long: bool,
    heading: String,
    /// Lines under the current heading that have not been written yet.
    lines: Vec<ListLine>,
    notes: Vec<MissingReason>,
    /// Kinds of events of which pmc tried to open only one. A note explains each kind.
    as_another: Vec<&'static str>,
    user_only: Option<MissingReason>,
}

/// A formatted entry.
struct ListLine {
    name: String,
    state: String,
    text: String,
    /// Further details, each with its label.
    details: Vec<(&'static str, String)>,
}

/// Minimum width of the name column.
const NAME: usize = 32;

impl<'o> ListWriter<'o> {
    /// Returns a writer to `out`. If `long` is set, it writes all details of each event.
    pub fn new(out: &'o mut dyn Write, columns: Option<usize>, long: bool) -> Self {
        Self {
            out,
            columns,
            long,
            heading: String::new(),
            lines: Vec::new(),
            notes: Vec::new(),
            as_another: Vec::new(),
            user_only: None,
        }
    }

    /// Adds an event. It is written together with the other events under the same heading.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn entry(&mut self, entry: &CatalogEntry) -> io::Result<()> {
        match &entry.manual {
            None => self.heading(entry.kind)?,
            // Vendor manuals list thousands of events, so group them by PMU and by table.
            Some(manual) => {
                let pmu = entry.pmu.as_deref().map(|pmu| format!(" {pmu}")).unwrap_or_default();
                let imported = if manual.imported { ", imported" } else { "" };
                self.heading(&format!("{}{pmu} ({}{imported})", entry.kind, manual.table))?;
            }
        }
        let mut name = entry.name.clone();
        for alias in &entry.aliases {
            name.push_str(", ");
            name.push_str(alias);
        }
        let state = self.state(entry);
        // The kernel does not describe PMU events, so show their terms instead.
        let mut text = match (&entry.means, entry.text.is_empty()) {
            (Some(means), true) => means.clone(),
            _ => entry.text.clone(),
        };
        if !entry.unit.is_empty() {
            let unit = format!("in {}", entry.unit);
            text = if text.is_empty() { unit } else { format!("{text}, {unit}") };
        }
        if self.columns.is_none()
            && let Some(kind) = perf_kind(entry.kind)
        {
            text = format!("{text} {kind}").trim_start().to_owned();
        }
        let details = if self.long { details(entry) } else { Vec::new() };
        self.lines.push(ListLine { name, state, text, details });
        Ok(())
    }

    /// Writes the lines under the current heading.
    fn section(&mut self) -> io::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        let longest = lines.iter().map(|line| width(&line.name)).max().unwrap_or(0).max(NAME);
        let names = longest.min(self.columns.map_or(longest, |columns| (columns / 2).max(NAME)));
        for ListLine { name, state, text, details } in lines {
            let is_wide = width(&name) > names;
            if is_wide {
                writeln!(self.out, "  {name}")?;
            }
            let shapes = [left(2, names), left(2, 5), left(2, 0)];
            let first = table::line(&shapes, [if is_wide { "" } else { &name }, &state, ""]);
            self.write_hanging(&first, &" ".repeat(table::width(&shapes)), &text)?;
            for (label, text) in details {
                self.write_hanging(&format!("      {label:7}  "), &" ".repeat(15), &text)?;
            }
        }
        Ok(())
    }

    /// Writes the numbered reasons, and the kinds of events that could not be read.
    ///
    /// # Errors
    /// Fails if writing fails.
    pub fn finish(&mut self, unreadable: &[UnreadableKind]) -> io::Result<()> {
        self.section()?;
        for kind in unreadable {
            self.heading(kind.kind)?;
            self.reason("  not shown: ", &kind.reason)?;
        }
        if self.notes.is_empty() && self.as_another.is_empty() && self.user_only.is_none() {
            return Ok(());
        }
        writeln!(self.out)?;
        for (number, why) in std::mem::take(&mut self.notes).iter().enumerate() {
            self.reason(&format!("  no {}: ", number + 1), why)?;
        }
        if let Some(why) = self.user_only.take() {
            self.reason("  user: in user mode only: ", &why)?;
        }
        for kind in std::mem::take(&mut self.as_another) {
            let text = match kind {
                "tracepoint" => {
                    "not tested: pmc tested one tracepoint on behalf of all, because closing each takes the kernel about 35 ms"
                }
                _ => "not tried: pmc tried another event of the same PMU",
            };
            self.write_hanging("  yes*: ", "        ", text)?;
        }
        Ok(())
    }

    fn heading(&mut self, heading: &str) -> io::Result<()> {
        if self.heading == heading {
            return Ok(());
        }
        self.section()?;
        if !self.heading.is_empty() {
            writeln!(self.out)?;
        }
        heading.clone_into(&mut self.heading);
        // Show the events found so far, because reading the next kind of events may take a while.
        self.out.flush()?;
        writeln!(self.out, "{heading}")
    }

    fn state(&mut self, entry: &CatalogEntry) -> String {
        match (entry.opens, &entry.reason) {
            (EventAvailability::Yes, _) => "yes".to_owned(),
            (EventAvailability::AsAnother, _) => {
                if !self.as_another.contains(&entry.kind) {
                    self.as_another.push(entry.kind);
                }
                "yes*".to_owned()
            }
            (EventAvailability::Form, _) => "form".to_owned(),
            (EventAvailability::UserOnly, why) => {
                self.user_only = self.user_only.take().or_else(|| why.clone());
                "user".to_owned()
            }
            (EventAvailability::No, None) => "no".to_owned(),
            (EventAvailability::No, Some(why)) => {
                let number = self.notes.iter().position(|note| note == why).unwrap_or_else(|| {
                    self.notes.push(why.clone());
                    self.notes.len() - 1
                });
                format!("no {}", number + 1)
            }
        }
    }

    fn reason(&mut self, label: &str, why: &MissingReason) -> io::Result<()> {
        let errno = why.errno.map(|name| format!(" ({name})")).unwrap_or_default();
        let indent = " ".repeat(label.len().min(13));
        self.write_hanging(label, &indent, &format!("{}{errno}", why.cause))?;
        if why.remedy.is_empty() {
            return Ok(());
        }
        self.write_hanging(&indent, &format!("{indent}     "), &format!("try: {}", why.remedy))
    }

    /// Writes `text` after `first`. If lines are wrapped, continuation lines start with `rest`.
    fn write_hanging(&mut self, first: &str, rest: &str, text: &str) -> io::Result<()> {
        let lines = wrap(first, rest, text, self.columns.unwrap_or(usize::MAX));
        lines.iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }
}

/// Returns perf's label for a kind of event. Scripts search for these labels.
fn perf_kind(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "hardware" => "[Hardware event]",
        "cache" => "[Hardware cache event]",
        "software" => "[Software event]",
        "tool" => "[Tool event]",
        "pmu" => "[Kernel PMU event]",
        "raw" => "[Raw event descriptor]",
        "breakpoint" => "[Hardware breakpoint]",
        "tracepoint" => "[Tracepoint event]",
        "marker" => "[SDT event]",
        _ => return None,
    })
}

/// Returns the details of an event in addition to its name and text.
fn details(entry: &CatalogEntry) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&'static str, String)> = Vec::new();
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
    if let Some(manual) = &entry.manual {
        let mut facts = Vec::new();
        if !manual.counters.is_empty() {
            facts.push(format!("counters {}", manual.counters));
        }
        facts.extend(manual.precise.map(|precise| match precise {
            "only" => "precise only".to_owned(),
            _ => "supports precise sampling".to_owned(),
        }));
        facts.extend(manual.period.map(|period| format!("period {period}")));
        facts.extend(manual.perf.deprecated.map(|_| "deprecated".to_owned()));
        if !facts.is_empty() {
            lines.push(("manual", facts.join(", ")));
        }
        for (label, text) in [("groups", &manual.perf.metric_group), ("shown", &manual.perf.metric_threshold)]
        {
            lines.extend(text.as_ref().map(|text| (label, text.replace(';', "; "))));
        }
    }
    for field in entry.fields.iter().flatten() {
        lines.push(("field", field.declaration.clone()));
    }
    lines
}

/// Maximum number of unreadable files to list after an import.
const MOST_UNREAD: usize = 5;

/// Reports the result of an import.
///
/// # Errors
/// Fails if writing fails.
pub fn imported(out: &mut dyn Write, came: &ImportSummary) -> io::Result<()> {
    let counted = |number: usize, one: &str, many: &str| {
        format!("{} {}", thousands(number as u64), if number == 1 { one } else { many })
    };
    let events = counted(came.events, "event", "events");
    let metrics = counted(came.metrics, "metric", "metrics");
    let models = counted(came.models, "model", "models");
    writeln!(out, "{}: {events} and {metrics} of {models}, stored in {}", came.form, came.folder)?;
    match (&came.model, &came.cpu) {
        (Some(model), _) => writeln!(out, "including this CPU: {model}")?,
        (None, Some(cpu)) => writeln!(out, "none of them are for this CPU, {cpu}")?,
        (None, None) => {}
    }
    if came.left_out > 0 {
        let entries = counted(came.left_out, "entry", "entries");
        writeln!(out, "skipped: {entries} with an unreadable name, code or formula")?;
    }
    for (file, why) in came.unread.iter().take(MOST_UNREAD) {
        writeln!(out, "skipped: {file}: {why}")?;
    }
    match came.unread.len().saturating_sub(MOST_UNREAD) {
        0 => Ok(()),
        more => writeln!(out, "not read: {}", counted(more, "more file", "more files")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: &'static str, opens: EventAvailability) -> CatalogEntry {
        CatalogEntry {
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
            manual: None,
        }
    }

    fn written(columns: Option<usize>, entries: &[CatalogEntry]) -> String {
        let mut out = Vec::new();
        let mut writer = ListWriter::new(&mut out, columns, false);
        for entry in entries {
            writer.entry(entry).unwrap();
        }
        writer.finish(&[]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn same_reason_is_explained_once() {
        let why = |cause: &str| {
            Some(MissingReason {
                missing: "",
                errno: Some("ENOENT"),
                cause: cause.to_owned(),
                remedy: "x".to_owned(),
            })
        };
        let refused = |name, cause| CatalogEntry {
            reason: why(cause),
            ..entry(name, "hardware", EventAvailability::No)
        };
        let text = written(None, &[refused("a", "gone"), refused("b", "gone"), refused("c", "other")]);
        assert_eq!(text.matches("gone").count(), 1);
        assert!(text.contains("no 2: other (ENOENT)\n        try: x\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains(" no 1 ")).count(), 2, "{text}");
    }

    #[test]
    fn columns_align_after_the_longest_name() {
        let long = "offcore_response.demand_data_rd.l3_miss";
        let mut entries =
            [entry("a", "software", EventAvailability::Yes), entry(long, "vendor", EventAvailability::Yes)]
                .to_vec();
        entries.push(entry("b", "vendor", EventAvailability::No));
        let text = written(None, &entries);
        let at = |line: usize, word: &str| text.lines().nth(line).unwrap().find(word);
        assert_eq!((at(1, "counts"), at(1, "yes")), (Some(43), Some(36)), "{text}");
        let columns = (Some(4 + long.len()), Some(11 + long.len()));
        assert_eq!((at(4, "yes"), at(4, "counts")), columns, "{text}");
        assert_eq!((at(5, "no"), at(5, "counts")), columns, "{text}");
        // Half of the terminal is reserved for the text, so the longest name gets a separate line.
        let text = written(Some(70), &entries);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[5], format!("  {long}"), "{text}");
        assert_eq!((lines[6].find("yes"), lines[8].find("no")), (Some(39), Some(39)), "{text}");
    }

    #[test]
    fn lines_are_wrapped_on_terminals_only() {
        let entries = [entry("a", "software", EventAvailability::Yes)];
        assert!(written(Some(60), &entries).lines().all(|line| width(line) <= 60));
        assert_eq!(written(None, &entries).lines().count(), 2);
    }
}
