//! Answers of a hostile holder.
#![cfg_attr(fuzzing, no_main)]

pmc_fuzz::target!(pmc_fuzz::services::holder_answers);
