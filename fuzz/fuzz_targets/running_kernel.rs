//! Files of the running kernel: symbols, modules, notes and image, and pmc's cached list of the symbols.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::names::running_kernel, pmc_fuzz::mutation::one_part);
