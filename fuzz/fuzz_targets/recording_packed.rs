//! `pmc report` of a recording that is packed with gzip or zstd.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::packed, pmc_fuzz::commands::mutate_packed);
