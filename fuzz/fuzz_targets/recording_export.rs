//! `pmc export` and `pmc data convert` of a recording.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::export, pmc_fuzz::mutation::perfdata::mutate);
