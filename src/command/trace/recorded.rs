//! Shows the system calls in a recording.

use std::path::Path;
use std::sync::Arc;

use super::output::TraceOutput;
use super::plan::TraceCommandPlan;
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::analysis::script::{NamedRecording, ScriptRequest};
use pmc_analysis::session::Session;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Exit, Result};
use pmc_tools::trace;

/// Reads the recording and prints its calls.
pub(super) fn run(plan: &TraceCommandPlan, input: &Path) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open_recording(input, "system calls")?)?);
    // The recorded processes no longer run, so their descriptors cannot be looked up.
    let mut output = TraceOutput::open(plan, Box::new(|_, _| None))?;
    let (counts, elapsed_ns) = match plan.stacks.filter(|_| output.prints_calls()) {
        None => trace::recorded(&session, &mut |call| output.call(call, None))?,
        Some(max_stack) => {
            let request = request(max_stack);
            let script = NamedRecording::load(Arc::clone(&session), &request, &Bars)?;
            let functions = script.places();
            trace::recorded_with_stacks(&session, &script, &mut |call| output.call(call, Some(functions)))?
        }
    };
    output.finish(elapsed_ns, counts)?;
    Ok(recording_quality::warn_of_damage(&session))
}

/// Returns the request for the data to read in addition to the calls: the functions in their stacks, and the
/// tasks.
fn request(max_stack: usize) -> ScriptRequest {
    ScriptRequest {
        fields: vec!["comm,tid,time,event,ip,sym,dso".to_owned()],
        records: trace::TASK_RECORDS.to_vec(),
        ..ScriptRequest::with_callers(max_stack, SymbolOptions::from_environment())
    }
}
