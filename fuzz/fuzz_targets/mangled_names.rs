//! Mangled names, one in each line.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::names::mangled);
