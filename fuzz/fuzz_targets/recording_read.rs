//! Reads all records and feature sections of a recording with the library.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::recordings::read, pmc_fuzz::mutation::perfdata::mutate);
