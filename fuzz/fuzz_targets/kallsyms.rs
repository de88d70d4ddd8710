//! A copy of /proc/kallsyms.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::names::kallsyms);
