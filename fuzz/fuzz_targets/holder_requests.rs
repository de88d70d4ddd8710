//! Messages to a holder of persistent events.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::services::holder_requests);
