//! Event lists, and command lines of pmcstat, tprof, perfalloc and NetBSD's pmc.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::events::text);
