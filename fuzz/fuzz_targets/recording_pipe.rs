//! `pmc report` and `pmc script` of a recording on standard input.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::pipe, pmc_fuzz::mutation::perfdata::mutate);
