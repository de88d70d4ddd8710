//! Event tables of Intel, Arm and the kernel.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::metrics::vendor_import);
