//! perf's settings.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::services::settings);
