//! Messages of an AI agent to `pmc mcp`.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::agents::messages, pmc_fuzz::agents::mutate);
