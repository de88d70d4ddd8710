//! The current view, written to a file that only its owner can read.

use std::path::Path;

use super::picture::{Painter, Picture};
use super::recording;
use crate::command::screen;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::profile::sampled::{Order, Query};
use crate::tui::ExportForm;

/// Writes what a query shows of a picture.
pub(super) fn write(
    painter: &Painter,
    picture: &Picture,
    query: &Query,
    form: ExportForm,
    path: &Path,
) -> Result<()> {
    let plan = &*painter.plan;
    if form == ExportForm::PerfData {
        if path.exists() {
            return Err(Error::new(format!("{} is there already", path.display())));
        }
        let modules = painter.known.named().modules().to_vec();
        return recording::write(picture, plan, &painter.shared, &modules, &Host::live(), path);
    }
    let tree = match form {
        ExportForm::Folded => plan.shown.has_chains.then_some(Order::Caller),
        _ => query.tree,
    };
    // Everything: what is too small for the screen is not too small for a file.
    let answer = painter.answer(picture, &Query { limit: 0.0, tree, ..query.clone() });
    screen::export(&answer.profile, query.event, &plan.shown.layout, form, path)
}
