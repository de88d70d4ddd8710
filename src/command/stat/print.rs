//! Formats results as requested, and writes the text to the sink.

use super::serve::MetricsServer;
use super::sink::{self, ResultSink};
use pmc_analysis::profile::counts::StatCounts;
use pmc_analysis::profile::gate::ComparisonVerdict;
use pmc_analysis::profile::versus::CommandComparison;
use pmc_command::gate;
use pmc_recording::recording::plan::MeasurementScope;
use pmc_recording::recording::stat_request::StatRequest;
use pmc_sys::error::{Result, Warning, say};
use pmc_view::gate::CiFormat;
use pmc_view::openmetrics;
use pmc_view::stat::{
    StatFormat, StatLayout, StatStyle, StatSubject, TopdownTree, csv, document, json, text, versus,
};

/// Prints the results of one `pmc stat` command.
pub(super) struct StatPrinter {
    layout: StatLayout,
    subject: StatSubject,
    style: StatStyle,
    sink: ResultSink,
    server: Option<MetricsServer>,
    intervals: usize,
    warnings: Vec<Warning>,
}

impl StatPrinter {
    /// Opens the sink and starts the server. `tree` is set for the top-down analysis.
    pub(super) fn new(layout: StatLayout, subject: StatSubject, tree: Option<TopdownTree>) -> Result<Self> {
        let sink = ResultSink::open(&layout)?;
        let server = layout.listen.as_deref().map(MetricsServer::start).transpose()?;
        if let Some(server) = &server {
            say::note(format!("metrics at http://{}/metrics", server.address()));
        }
        let style = StatStyle {
            big_num: layout.big_num,
            metric_only: layout.metric_only,
            table: layout.table,
            tree,
            summary: false,
            colour: sink.has_colour(),
            paint: sink.paint(),
            width: sink.width(),
            separator: match &layout.format {
                StatFormat::Csv(separator) => separator.clone(),
                _ => ",".into(),
            },
        };
        Ok(Self { layout, subject, style, sink, server, intervals: 0, warnings: Vec::new() })
    }

    /// Returns how and where the results are printed.
    pub(super) fn layout(&self) -> &StatLayout {
        &self.layout
    }

    /// Prints each warning once. The document of `--json=2` also contains the warnings.
    pub(super) fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            say::warn(warning.clone());
            self.warnings.push(warning);
        }
    }

    /// Whether [`StatPrinter::totals`] must be called at each interval.
    pub(super) fn wants_totals(&self) -> bool {
        self.server.is_some() || self.scrape_file().is_some()
    }

    /// Updates the scrape file and the server's page.
    pub(super) fn totals(&mut self, totals: &StatCounts) -> Result<()> {
        let page = openmetrics::exposition(totals);
        if let Some(path) = self.scrape_file() {
            sink::replace(path, &page)?;
        }
        if let Some(server) = &self.server {
            server.show(page);
        }
        Ok(())
    }

    /// Prints an interval.
    pub(super) fn interval(&mut self, counts: &StatCounts) -> Result<()> {
        let number = self.intervals;
        self.intervals += 1;
        if self.layout.quiet || self.layout.is_openmetrics() {
            return Ok(());
        }
        let Self { layout, style, sink, subject, .. } = self;
        let clear = layout.interval_clear && sink.is_screen();
        match layout.format {
            StatFormat::Text => sink.print(|out| {
                if clear {
                    out.write_all(b"\x1b[H\x1b[2J")?;
                }
                // After the screen is cleared, the heading must be printed again.
                text::interval(out, counts, if clear { 0 } else { number }, style)
            }),
            StatFormat::Csv(_) => sink.print(|out| {
                if number == 0 {
                    csv::titles(out, counts, style)?;
                }
                csv::write(out, counts, style)
            }),
            StatFormat::JsonLines => sink.print(|out| json::write(out, counts, style)),
            StatFormat::Document => sink.print(|out| {
                if number == 0 {
                    document::begin(out, subject, counts)?;
                }
                document::interval(out, counts, number)
            }),
        }
    }

    /// Prints the results of a whole run or, if requested, the totals after intervals.
    pub(super) fn whole(&mut self, counts: &StatCounts) -> Result<()> {
        if self.wants_totals() {
            self.totals(counts)?;
        }
        let Self { layout, style, sink, subject, .. } = self;
        if layout.is_openmetrics() {
            let page = openmetrics::exposition(counts);
            return sink.print(|out| out.write_all(page.as_bytes()));
        }
        if let StatFormat::Document = layout.format {
            let warnings = &self.warnings;
            return sink.print(|out| match self.intervals {
                0 => document::write(out, subject, counts, warnings),
                _ => document::end(out, counts, warnings),
            });
        }
        if layout.quiet || self.intervals > 0 && !layout.summary {
            return Ok(());
        }
        style.summary = self.intervals > 0 && layout.csv_summary;
        match layout.format {
            StatFormat::Text => sink.print(|out| text::run(out, counts, subject, style)),
            StatFormat::Csv(_) => sink.print(|out| {
                if self.intervals == 0 {
                    csv::titles(out, counts, style)?;
                }
                csv::write(out, counts, style)
            }),
            StatFormat::JsonLines | StatFormat::Document => sink.print(|out| json::write(out, counts, style)),
        }
    }

    /// Prints the result of `--vs`, and the answer of `--fail-if`.
    pub(super) fn comparison(
        &mut self,
        comparison: &CommandComparison,
        verdict: &ComparisonVerdict,
    ) -> Result<()> {
        let Self { layout, style, sink, .. } = self;
        match (&layout.format, &verdict.gate) {
            (StatFormat::Text, Some(report)) if layout.ci == Some(CiFormat::JUnit) => {
                sink.print(|out| pmc_view::gate::junit(out, verdict, report))
            }
            (StatFormat::Text | StatFormat::Csv(_), _) => sink.print(|out| {
                versus::text(out, comparison, verdict, style)?;
                let Some(report) = &verdict.gate else { return Ok(()) };
                pmc_view::gate::text(out, report, style.width)?;
                gate::write_annotations(out, verdict, layout.ci)
            }),
            (StatFormat::JsonLines | StatFormat::Document, _) => {
                sink.print(|out| versus::json(out, comparison, Some(verdict)))
            }
        }
    }

    fn scrape_file(&self) -> Option<&std::path::Path> {
        self.layout.openmetrics.as_deref().filter(|path| path.as_os_str() != "-")
    }
}

/// Returns the description of the targets.
pub(super) fn subject(request: &StatRequest) -> StatSubject {
    let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match &request.scope {
        MeasurementScope::Processes(pids) | MeasurementScope::Families(pids) => {
            StatSubject::Processes(list(pids))
        }
        MeasurementScope::Threads(tids) => StatSubject::Threads(list(tids)),
        MeasurementScope::User(user) => StatSubject::User(user.clone()),
        MeasurementScope::AllThreads => StatSubject::SystemWide,
        MeasurementScope::Cpus(_) if request.is_whole_machine => StatSubject::SystemWide,
        MeasurementScope::Cpus(cpus) => StatSubject::Cpus(cpus.to_string()),
        MeasurementScope::Command => {
            StatSubject::Command(request.command.iter().map(|w| w.to_string_lossy().into_owned()).collect())
        }
    }
}
