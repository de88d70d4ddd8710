//! `pmc diff` of a recording with a whole one.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::diff, pmc_fuzz::mutation::perfdata::mutate);
