//! Registers, a stack copy and an ELF file with unwind tables.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::unwind, pmc_fuzz::mutation::elf::change);
