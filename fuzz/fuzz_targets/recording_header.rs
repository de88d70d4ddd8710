//! `pmc evlist`, `pmc buildid-list` and `--header-only` of a recording.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::commands::header, pmc_fuzz::mutation::perfdata::mutate);
