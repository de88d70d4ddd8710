//! `pmc sched`, `pmc lock` and `pmc trace` of a recording.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::events, pmc_fuzz::mutation::perfdata::mutate);
