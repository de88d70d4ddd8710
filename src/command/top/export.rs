//! The current view, written to a file that only its owner can read.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::picture::{Painter, Picture};
use super::recording;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::profile::sampled::{Order, Query};
use crate::tui::ExportForm;
use crate::view;
use crate::view::report::{Form, Layout};

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
    let doing = || format!("writing {}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut out = BufWriter::new(file.map_err(|error| Error::io(doing(), error))?);
    let tree = match form {
        ExportForm::Folded => plan.shown.has_chains.then_some(Order::Caller),
        _ => query.tree,
    };
    // Everything: what is too small for the screen is not too small for a file.
    let answer = painter.answer(picture, &Query { limit: 0.0, tree, ..query.clone() });
    let written = match form {
        ExportForm::Folded => view::folded::write(&mut out, &answer.profile, query.event.unwrap_or(0)),
        _ => {
            let layout = Layout { form: Form::Json, rows: usize::MAX, ..plan.shown.layout.clone() };
            view::report::write(&mut out, &answer.profile, &layout)
        }
    };
    written.and_then(|()| out.flush()).map_err(|error| Error::io(doing(), error))
}
