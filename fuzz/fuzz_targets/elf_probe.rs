//! ELF files: places of probes and the variables there.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::probe, pmc_fuzz::mutation::elf::change);
