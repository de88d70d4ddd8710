//! The call chains of switches: where each task left its CPU.

use pmc_symbols::symbol::SymbolOptions;

use super::replay::ReplayedRecord;
use pmc_analysis::analysis::script::{NamedRecording, ScriptRequest};
use pmc_analysis::session::Session;
use pmc_analysis::session::samples::ChainCompleter;

/// The scheduler's own functions at the start of each chain. perf omits the same ones.
const SCHEDULER: [&str; 3] = ["schedule", "__schedule", "preempt_schedule"];

/// Number of frames that belong to the scheduler's own functions.
const OWN_FRAMES: usize = 2;

/// Returns the request that symbolizes the callers in call chains.
pub(super) fn request(max_stack: usize, symbols: SymbolOptions) -> ScriptRequest {
    ScriptRequest::with_callers(max_stack.saturating_add(OWN_FRAMES), symbols)
}

/// Symbolizes the call chains of a recording.
pub(super) struct SwitchChains<'a> {
    session: &'a Session,
    recording: &'a NamedRecording<'a>,
    completer: ChainCompleter<'a>,
    numbers: Vec<u32>,
}

impl<'a> SwitchChains<'a> {
    pub(super) fn new(session: &'a Session, recording: &'a NamedRecording<'a>) -> Self {
        Self { session, recording, completer: recording.completer(), numbers: Vec::new() }
    }

    /// Returns the functions in a switch's call chain, innermost first, without the scheduler's own; `None`
    /// for functions without a name.
    pub(super) fn functions(&mut self, record: &ReplayedRecord<'_>) -> Vec<Option<&'a str>> {
        let ReplayedRecord { raw, position, unwound } = record;
        let Some((_, sample)) = self.session.reader.layouts().sample(raw) else { return Vec::new() };
        let timestamp = self.session.timestamp(sample.time().map(|time| time.0), *position);
        self.numbers.clear();
        let (completer, numbers) = (&mut self.completer, &mut self.numbers);
        self.recording.chain_places(completer, &sample, unwound, timestamp, numbers);
        let recording = self.recording;
        let functions = self.numbers.iter().flat_map(|number| {
            let places = recording.places().at(*number);
            let named = places.iter().map(|place| place.symbol.as_deref());
            named.chain(places.is_empty().then_some(None))
        });
        functions.filter(|name| !name.is_some_and(|name| SCHEDULER.contains(&name))).collect()
    }
}
