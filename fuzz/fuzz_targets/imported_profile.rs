//! Profiles in other formats, recognized by their content.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::import);
