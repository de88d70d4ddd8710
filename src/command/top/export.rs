//! Writes the current view to a new file.

use std::path::Path;

use pmc_analysis::analysis::live::export;
use pmc_analysis::analysis::live::snapshot::{LiveSnapshot, SnapshotMaker};
use pmc_analysis::profile::sampled::{Profile, Query};
use pmc_command::screen;
use pmc_perfdata::record::encode::Encoder;
use pmc_recording::recording::synthesize;
use pmc_sys::error::Result;
use pmc_sys::host::Host;
use pmc_tui::ViewFormat;
use pmc_view::report::ReportLayout;

/// Writes the part of a snapshot that the query selects.
pub(super) fn write(
    maker: &SnapshotMaker,
    snapshot: &LiveSnapshot,
    layout: &ReportLayout,
    query: &Query,
    form: ViewFormat,
    path: &Path,
) -> Result<()> {
    let ViewFormat::Format(format) = form else {
        // A recording must not contain data that the view hides.
        let kernel = |host: &Host, out: &mut Encoder| {
            synthesize::kernel(host, out);
        };
        return export::write(maker, snapshot, &kernel, path);
    };
    // Write all rows, including those that are too small for the screen.
    let query = Query { limit: 0.0, row_limit: 0.0, ..query.clone() };
    let answer = if format.is_table() { maker.answer(snapshot, &query).profile } else { Profile::default() };
    maker.with_stacks(snapshot, &query, |stacks| {
        screen::export((stacks, query.event), &answer, ("pmc top", layout), format, path)
    })
}
