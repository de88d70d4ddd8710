//! `pmc stat report` of a recording.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::stat, pmc_fuzz::mutation::perfdata::mutate);
