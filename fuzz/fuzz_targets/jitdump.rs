//! jitdump files: names, lines, code, and the ELF files made of them.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::names::jitdump);
