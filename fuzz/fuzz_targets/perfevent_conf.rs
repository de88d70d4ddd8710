//! PCP's perfevent.conf.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::events::perfevent);
