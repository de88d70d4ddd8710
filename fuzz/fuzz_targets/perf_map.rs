//! /tmp/perf-PID.map.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::names::perf_map);
