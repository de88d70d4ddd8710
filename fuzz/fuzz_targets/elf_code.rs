//! ELF files: machine code of functions, with names in it.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::code, pmc_fuzz::mutation::elf::change);
