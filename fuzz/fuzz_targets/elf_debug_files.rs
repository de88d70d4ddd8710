//! Programs whose debug information is in other files: split DWARF, debug links and dwz.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::programs::debug_files, pmc_fuzz::programs::mutate_debug_files);
