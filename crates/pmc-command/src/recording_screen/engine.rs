//! Answers the queries of the full-screen interface with the newest stage of the recording.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::loader::NewestStage;
use crate::screen;
use pmc_analysis::profile::sampled::{FunctionRef, Query, QueryAnswer};
use pmc_formats::export::ExportFormat;
use pmc_sys::error::{Error, Result};
use pmc_tui::{Engine, LiveCommand, ViewFormat};
use pmc_view::report::ReportLayout;

pub(super) struct RecordingEngine {
    newest: NewestStage,
    query: Option<Query>,
    answer: Option<Arc<QueryAnswer>>,
    /// Channel to the loader thread, which owns the symbolizer.
    code: Sender<FunctionRef>,
    layout: ReportLayout,
    title: String,
}

impl RecordingEngine {
    pub(super) fn new(
        newest: NewestStage,
        code: Sender<FunctionRef>,
        layout: ReportLayout,
        title: String,
    ) -> Self {
        Self { newest, query: None, answer: None, code, layout, title }
    }
}

impl Engine for RecordingEngine {
    fn ask(&mut self, query: Query) {
        self.query = Some(query);
    }

    fn answer(&mut self) -> Option<Arc<QueryAnswer>> {
        self.answer = Some(Arc::new(self.newest.get()?.answer(self.query.as_ref()?)));
        self.answer.clone()
    }

    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>> {
        let times = self.answer.as_ref()?.times.as_ref()?;
        let FunctionRef { dso, symbol } = function;
        Some(self.newest.get()?.history(self.query.as_ref()?, (dso, symbol), times))
    }

    fn annotate(&mut self, function: FunctionRef) {
        let _ = self.code.send(function);
    }

    fn export(&mut self, form: ViewFormat, path: &Path) -> Result<()> {
        let ViewFormat::Format(format) = form else {
            return Err(Error::new("this is already a recording: copy the file, or choose another format")
                .try_this(ExportFormat::endings()));
        };
        let Some((stage, query)) = self.newest.get().zip(self.query.as_ref()) else {
            return Err(Error::new("nothing to write yet"));
        };
        // Write all rows, including those that are too small for the screen.
        let query = Query { limit: 0.0, row_limit: 0.0, ..query.clone() };
        let answer = if format.is_table() { stage.answer(&query).profile } else { stage.quality() };
        stage.with_stacks(&query, |stacks| {
            screen::export((stacks, query.event), &answer, (&self.title, &self.layout), format, path)
        })
    }

    fn command(&mut self, _: LiveCommand) -> Option<String> {
        Some("only a live view can be paused or reset".to_owned())
    }
}
