//! The current view, written to a file that only its owner can read.

use std::path::Path;

use super::plan::Shown;
use crate::analysis::live::export;
use crate::analysis::live::snapshot::{Snapshot, SnapshotMaker};
use crate::command::screen;
use crate::error::Result;
use crate::host::Host;
use crate::profile::sampled::{Order, Query};
use crate::record::encode::Encoder;
use crate::recording::synthesize;
use crate::tui::ExportForm;

/// Writes what a query shows of a snapshot.
pub(super) fn write(
    maker: &SnapshotMaker,
    snapshot: &Snapshot,
    shown: &Shown,
    query: &Query,
    form: ExportForm,
    path: &Path,
) -> Result<()> {
    if form == ExportForm::PerfData {
        // What is hidden is hidden in the recording too.
        let kernel = |host: &Host, out: &mut Encoder| {
            synthesize::kernel(host, out);
        };
        return export::write(maker, snapshot, &kernel, path);
    }
    let tree = match form {
        ExportForm::Folded => shown.has_chains.then_some(Order::Caller),
        _ => query.tree,
    };
    // Everything: what is too small for the screen is not too small for a file.
    let answer = maker.answer(snapshot, &Query { limit: 0.0, tree, ..query.clone() });
    screen::export(&answer.profile, query.event, &shown.layout, form, path)
}
