//! ELF files: function names, lines, inlined functions and variables.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::symbols, pmc_fuzz::mutation::elf::change);
