//! Metrics that refer to each other.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::metrics::expressions);
