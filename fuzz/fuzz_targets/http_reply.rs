//! Replies of servers to export --push.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::services::http_reply);
