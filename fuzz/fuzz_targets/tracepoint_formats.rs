//! Parses tracepoint formats and prints payloads with them.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::recordings::formats, pmc_fuzz::commands::mutate_formats);
