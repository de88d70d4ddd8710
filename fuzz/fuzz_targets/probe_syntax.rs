//! Definitions of probes.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::events::probe_syntax);
