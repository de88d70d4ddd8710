//! Machine code.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::instructions);
