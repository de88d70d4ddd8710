//! Copies the current contents of a holder's rings into an ordinary recording.
//!
//! Receives an entry and a path. A [`Relay`] fetches the contents of the rings; synthesized records for the
//! running processes are written before them.

use std::path::Path;

use super::features;
use super::output::{OutputEvents, RecordOutput};
use crate::persistent::PersistentEntry;
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::RingSnapshot;
use crate::recording::plan::{BuildIdChoice, FilePlan, MeasurementScope, SamplePlan, Synthesis};
use crate::recording::relay::Relay;
use crate::recording::synthesize::{self, SynthesisOptions};
use crate::recording::{handover, open};
use pmc_perfdata::record::encode::Encoder;
use pmc_sys::error::Result;
use pmc_sys::host::Host;
use pmc_sys::sys::standard_output;
use pmc_text::units::thousands;

/// Writes a snapshot of an entry. Returns a line that summarizes it.
///
/// # Errors
/// Fails if the holder refuses, or if the file cannot be written.
pub fn write(directory: &RunDirectory, entry: &PersistentEntry, path: &Path, host: &Host) -> Result<String> {
    let mut relay = Relay::open(directory.clone(), entry.id, true)?;
    let plan = SamplePlan::on(relay.scope()?, open::held_options());
    let events = relay.events.clone();
    let events = OutputEvents::new(&plan, events);
    let groups: Vec<Vec<usize>> = (0..events.written.len()).map(|index| vec![index]).collect();
    let features = features::at_the_start(host, &groups, &events.written);
    let file = FilePlan { build_ids: BuildIdChoice::Hit, ..FilePlan::at(path.to_owned()) };
    let owners = relay.snapshot.owners.clone();
    let mut output = RecordOutput::create(&file, None, events, features, owners, plan.options.clock)?;
    synthesize_current_state(&mut output, &relay.snapshot, &plan, host)?;
    relay.take_all(|ring, records| output.take_ring(ring, &[records]))?;
    output.end_round()?;
    output.replace_target()?;
    output.finish()?;
    let totals = output.totals();
    let lost = match relay.snapshot.lost {
        0 => String::new(),
        lost => format!("; {} lost since it was added", thousands(lost)),
    };
    let to = if file.is_stream() { standard_output::name() } else { path.display().to_string() };
    Ok(format!("{to}: {} samples of {}{lost}", thousands(totals.samples), entry.definition.name))
}

/// Synthesizes records for the currently running processes. The state before the first record in the rings is
/// unknown, and the current state is the best approximation.
fn synthesize_current_state(
    output: &mut RecordOutput<'_>,
    snapshot: &RingSnapshot,
    plan: &SamplePlan,
    host: &Host,
) -> Result<()> {
    let mut out = Encoder::new(output.trailer());
    out.id_index(&snapshot.open.instances);
    synthesize::machine(host, false, &mut out);
    let pids = match &plan.scope {
        MeasurementScope::Cpus(cpus) => {
            synthesize::idle(cpus, &mut out);
            host.processes()
        }
        scope => synthesize::pids(&handover::threads(scope, host)),
    };
    let extent = SynthesisOptions { what: Synthesis::ALL, data_mappings: false, namespaces: false };
    synthesize::processes(host, pids, extent, &mut out, |out| output.write_synthesized(out.bytes()))?;
    out.finished_init();
    output.write_synthesized(out.bytes())?;
    Ok(())
}
