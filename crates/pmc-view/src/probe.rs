//! Probes as text, in the format of `perf probe`.

use std::fmt::Display;
use std::io::{self, Write};

use pmc_symbols::symbol::source_text::SourceLines;
use pmc_symbols::symbol::{AvailableVariable, ProbeableLines, SourcePlace};
use pmc_text::text::{clean, glob};

/// Number of lines to show after the last line with code.
const LINES_AFTER: u32 = 3;

/// A probe, as `perf probe` describes it.
#[derive(Debug)]
pub struct ProbeRow {
    /// `GROUP:EVENT`
    pub event: String,
    /// The place as the user typed it, or as found in the source code.
    pub place: String,
    /// The program; `None` for the kernel.
    pub file: Option<String>,
    /// The names of the values.
    pub arguments: Vec<String>,
}

/// The variables available at a place.
#[derive(Debug)]
pub struct PlaceVariables {
    pub place: String,
    pub variables: Vec<AvailableVariable>,
}

/// A filter for names: patterns, optionally negated with `!`, combined with `&` and `|`.
#[derive(Debug, Clone, Default)]
pub struct NameFilter(Vec<Vec<(bool, String)>>);

impl From<&str> for NameFilter {
    /// Parses a filter. `&` has a higher precedence than `|`.
    fn from(text: &str) -> Self {
        let rule = |rule: &str| match rule.trim().strip_prefix('!') {
            Some(pattern) => (false, pattern.trim().to_owned()),
            None => (true, rule.trim().to_owned()),
        };
        Self(text.split('|').map(|all| all.split('&').map(rule).collect()).collect())
    }
}

impl NameFilter {
    /// Whether a name passes the filter.
    pub fn fits(&self, name: &str) -> bool {
        let all = |rules: &Vec<(bool, String)>| {
            rules.iter().all(|(wanted, pattern)| glob::matches(pattern, name) == *wanted)
        };
        self.0.is_empty() || self.0.iter().any(all)
    }
}

/// Writes a probe as a row of a list.
pub fn row(out: &mut dyn Write, probe: &ProbeRow) -> io::Result<()> {
    let file = probe.file.as_ref().map(|file| format!(" in {file}")).unwrap_or_default();
    let with = match probe.arguments.is_empty() {
        true => String::new(),
        false => format!(" with {}", probe.arguments.join(" ")),
    };
    let line = format!("  {:<20} (on {}{file}{with})", probe.event, probe.place);
    writeln!(out, "{}", clean(&line))
}

/// Writes the new probes, and explains how to use them.
pub fn added(out: &mut dyn Write, probes: &[ProbeRow]) -> io::Result<()> {
    let Some(last) = probes.last() else { return Ok(()) };
    writeln!(out, "Added new event{}:", if probes.len() == 1 { "" } else { "s" })?;
    probes.iter().try_for_each(|probe| row(out, probe))?;
    writeln!(out, "\nYou can now use it in all pmc and perf tools, such as:\n")?;
    writeln!(out, "        pmc record -e {} -aR sleep 1\n", last.event)
}

/// Describes a probe's place in the source code, as `perf probe -l` does.
pub fn source_position(place: &SourcePlace, returns: bool) -> String {
    let at = match place.line {
        Some(0) => String::new(),
        Some(line) => format!(":{line}"),
        None if place.offset == 0 => String::new(),
        None => format!("+{}", place.offset),
    };
    let returns = if returns { "%return" } else { "" };
    let source = place.file.as_ref().map(|file| format!("@{file}")).unwrap_or_default();
    format!("{}{at}{returns}{source}", place.function)
}

/// Writes source lines, and numbers the lines that can be probed. If the user asked for a function, lines are
/// counted from its declaration.
pub fn lines(
    out: &mut dyn Write,
    function: Option<&str>,
    found: &ProbeableLines,
    source: &SourceLines,
    (first, last): (Option<u32>, Option<u32>),
) -> io::Result<()> {
    let base = found.first.filter(|_| function.is_some()).unwrap_or(0);
    let start = first.unwrap_or(0);
    let file = clean(&found.file);
    match function {
        Some(function) => writeln!(out, "<{}@{file}:{start}>", clean(function))?,
        None => writeln!(out, "<{file}:{start}>")?,
    }
    // The text ends with a newline, so its last part is empty.
    let is_ended = source.get(source.count()).is_some_and(str::is_empty);
    let end = source.count() - u32::from(is_ended);
    let last = match (last, function) {
        (Some(last), _) => base.saturating_add(last),
        (None, Some(_)) => found.lines.last().map_or(base, |line| line.saturating_add(LINES_AFTER)),
        (None, None) => end,
    };
    for line in base.saturating_add(start).max(1)..=last.min(end) {
        let text = source.get(line).unwrap_or_default();
        // Keep tabs, as perf does.
        let text = text.split('\t').map(|part| clean(part)).collect::<Vec<_>>().join("\t");
        match found.lines.contains(&line) {
            true => writeln!(out, "{:7}  {text}", line - base)?,
            false => writeln!(out, "         {text}")?,
        }
    }
    Ok(())
}

/// Writes the variables available at each place. `typed` is the place that the user asked for.
pub fn variables(out: &mut dyn Write, typed: &str, places: &[PlaceVariables]) -> io::Result<()> {
    writeln!(out, "Available variables at {}", clean(typed))?;
    for PlaceVariables { place, variables } in places {
        writeln!(out, "\t@<{}>", clean(place))?;
        if variables.is_empty() {
            writeln!(out, "\t\t(No matched variables)")?;
        }
        for AvailableVariable { kind, name } in variables {
            writeln!(out, "\t\t{}\t{}", clean(kind), clean(name))?;
        }
    }
    Ok(())
}

/// Writes names or definitions, one per line.
pub fn each<T: Display>(out: &mut dyn Write, all: &[T]) -> io::Result<()> {
    all.iter().try_for_each(|one| writeln!(out, "{}", clean(&one.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_combine_patterns() {
        let fits = |filter: &str, name: &str| NameFilter::from(filter).fits(name);
        assert!(fits("!_*", "main") && !fits("!_*", "_start"));
        assert!(fits("a* | b*", "bar") && !fits("a* | b*", "car"));
        assert!(fits("!foo* & *bar", "fizzbar") && !fits("!foo* & *bar", "foobar"));
    }
}
