//! The answer as a JUnit report, which most CI systems show: a test case for each measure.
//!
//! A measure for which the condition holds is a failed test. A measure that is too noisy is a skipped test.
//! If the comparison is unusable, the test case `comparison is usable` reports the reasons as an error.

use std::io::{self, Write};

use super::headline::headlines;
use super::{answer, explain, failing, statement};
use pmc_analysis::profile::gate::{ComparisonVerdict, GateReport, GateRow};
use pmc_text::text::{clean, xml_escaped};

/// Writes the report.
pub fn junit(out: &mut dyn Write, verdict: &ComparisonVerdict, report: &GateReport) -> io::Result<()> {
    let (failures, errors) = (failing(report).count(), usize::from(!report.reasons.is_empty()));
    let skipped = report.rows.iter().filter(|row| is_skipped(row)).count();
    let tests = report.rows.len() + 1;
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pmc\" {counts}>")?;
    let name = attribute(&report.condition);
    writeln!(out, "  <testsuite name=\"{name}\" {counts} skipped=\"{skipped}\">")?;
    write!(out, "    <testcase classname=\"pmc\" name=\"comparison is usable\"")?;
    match &report.reasons[..] {
        [] => writeln!(out, "/>")?,
        reasons => {
            let lines: Vec<String> = reasons
                .iter()
                .map(|reason| {
                    let (why, remedy) = explain(reason);
                    format!("{}\ntry: {}", attribute(&why), attribute(&remedy))
                })
                .collect();
            let message = attribute(&answer(report));
            writeln!(
                out,
                ">\n      <error type=\"unusable\" message=\"{message}\">{}</error>\n    </testcase>",
                lines.join("\n")
            )?;
        }
    }
    report.rows.iter().try_for_each(|row| test_case(out, row))?;
    let lines: Vec<String> = headlines(verdict).iter().map(|line| attribute(line)).collect();
    writeln!(out, "    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>", lines.join("\n"))
}

/// Whether the noise hides a change of the size in the condition.
fn is_skipped(row: &GateRow) -> bool {
    !row.fails && row.hidden.is_some()
}

fn test_case(out: &mut dyn Write, row: &GateRow) -> io::Result<()> {
    write!(out, "    <testcase classname=\"pmc\" name=\"{}\"", attribute(&row.name))?;
    if let Some(at) = &row.location {
        write!(out, " file=\"{}\" line=\"{}\"", attribute(&at.file), at.line)?;
    }
    let statement = attribute(&statement(row));
    if row.fails {
        writeln!(out, ">\n      <failure type=\"regression\" message=\"{statement}\"/>\n    </testcase>")
    } else if is_skipped(row) {
        writeln!(out, ">\n      <skipped message=\"too noisy: {statement}\"/>\n    </testcase>")
    } else {
        writeln!(out, "/>")
    }
}

/// Escapes text for an XML attribute or element. XML 1.0 cannot represent control characters, U+FFFE and
/// U+FFFF.
fn attribute(text: &str) -> String {
    xml_escaped(&clean(text)).replace(['\u{fffe}', '\u{ffff}'], "?")
}
