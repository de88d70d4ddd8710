//! The warnings that several commands have in common. The others are made where the problem is detected.

use pmc_sys::error::{Advice, Warning};
use pmc_text::units::{counted, duration};

/// The target defaults to the whole machine.
pub fn measures_whole_machine() -> Warning {
    Warning::note("no command, process or CPU given: measuring the whole machine until Ctrl-C")
        .advise(Advice::options("-a measures the same without this note; use -- COMMAND or -p PID for less"))
}

/// The hardware events were off for part of the measurement. Both times are in nanoseconds.
pub fn counters_yielded(off_ns: u64, elapsed_ns: u64) -> Warning {
    let [off, of] = [off_ns, elapsed_ns].map(|ns| duration(ns as f64));
    Warning::note(format!(
        "the hardware events were off for {off} of {of}, while another process held the reservation"
    ))
}

/// Samples are missing.
pub fn records_lost(records: u64) -> Warning {
    Warning::loss(lost(records))
        .advise(Advice::options("lower the frequency (-F), or use larger ring buffers (-m)"))
}

/// Returns the number of lost records and the reason, for a warning about what is missing without them.
pub fn lost(records: u64) -> String {
    let were = if records == 1 { "was" } else { "were" };
    format!("{} {were} lost because the ring buffers were full", counted(records, "record"))
}
