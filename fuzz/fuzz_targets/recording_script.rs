//! `pmc script` of a recording.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::script, pmc_fuzz::mutation::perfdata::mutate);
