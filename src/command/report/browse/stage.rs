//! Everything that answers are made of, as far as it is known: samples, and what stands at their addresses.

use std::sync::{Arc, Mutex, PoisonError};

use crate::analysis::names::Names;
use crate::profile::sampled::query::Source;
use crate::profile::sampled::table::Input;
use crate::profile::sampled::trust::Ends;
use crate::profile::sampled::{Code, ModuleTrust, StringTable, Trust};
use crate::session::samples::SampleAttribute;
use crate::session::{Resolved, Samples, Session};

/// What does not change from stage to stage.
pub(super) struct Ground {
    /// The recording.
    pub(super) session: Arc<Session>,
    /// What pass 2 found; its rows and stacks are in `resolved`.
    pub(super) samples: Samples,
    /// Rows, and their stacks looked up.
    pub(super) resolved: Resolved,
    /// What rows are told apart by.
    pub(super) attributes: Vec<SampleAttribute>,
    /// Where stacks ended that were unwound here.
    pub(super) ends: Ends,
    /// The events.
    pub(super) sources: Vec<Source>,
}

/// A stage.
pub(super) struct Stage {
    /// What all stages have.
    pub(super) ground: Arc<Ground>,
    /// What stands at the locations.
    pub(super) code: Arc<Code>,
    /// The words of `code`.
    pub(super) texts: StringTable,
    /// What is known of the modules.
    pub(super) modules: Vec<ModuleTrust>,
    /// What is known of the quality.
    pub(super) trust: Trust,
}

impl Stage {
    /// Has something done with the input of answers.
    pub(super) fn with<T>(&self, names: &Names<'_>, work: impl FnOnce(&Input<'_>) -> T) -> T {
        let ground = &*self.ground;
        work(&Input {
            rows: &ground.resolved.rows,
            resolved: &ground.resolved,
            attributes: &ground.samples.attributes,
            attribute_kinds: &ground.attributes,
            code: &self.code,
            words: names,
        })
    }
}

/// Where the newest stage lies.
#[derive(Clone, Default)]
pub(super) struct Newest(Arc<Mutex<Option<Arc<Stage>>>>);

impl Newest {
    pub(super) fn get(&self) -> Option<Arc<Stage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, stage: Stage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(stage));
    }
}
