//! Records as `pmc top` receives them from the kernel, for as long as it runs.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::live::top, pmc_fuzz::live::mutate_top);
