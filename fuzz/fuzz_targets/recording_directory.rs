//! `pmc report` and `pmc script` of a directory of `record --threads`.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::directory, pmc_fuzz::commands::mutate_directory);
