//! `attr.branch_sample_type`: the branches that a sample contains, and the details of each branch
//! (`PERF_SAMPLE_BRANCH_*`, `enum perf_branch_sample_type`).

use perf_event_open_sys::bindings as b;

/// User mode.
pub const USER: u64 = b::PERF_SAMPLE_BRANCH_USER as u64;
/// The three privilege levels: user, kernel, hypervisor.
pub(crate) const LEVELS: u64 = USER | (b::PERF_SAMPLE_BRANCH_KERNEL | b::PERF_SAMPLE_BRANCH_HV) as u64;
/// Any taken branch.
pub const ANY: u64 = b::PERF_SAMPLE_BRANCH_ANY as u64;
/// Calls that have not returned yet: the current call stack.
pub const CALL_STACK: u64 = b::PERF_SAMPLE_BRANCH_CALL_STACK as u64;
/// Omits the misprediction flags.
pub const NO_FLAGS: u64 = b::PERF_SAMPLE_BRANCH_NO_FLAGS as u64;
/// Omits the cycle counts.
pub const NO_CYCLES: u64 = b::PERF_SAMPLE_BRANCH_NO_CYCLES as u64;
/// Adds the index into the hardware's ring of branches, before the entries.
pub const HW_INDEX: u64 = b::PERF_SAMPLE_BRANCH_HW_INDEX as u64;
/// Adds event counts after the entries, one word per entry.
pub const COUNTERS: u64 = b::PERF_SAMPLE_BRANCH_COUNTERS as u64;

/// Names of the filters in perf's `-j`, with their bits.
pub const FILTERS: [(&str, u64); 21] = [
    ("u", USER),
    ("k", b::PERF_SAMPLE_BRANCH_KERNEL as u64),
    ("hv", b::PERF_SAMPLE_BRANCH_HV as u64),
    ("any", ANY),
    ("any_call", b::PERF_SAMPLE_BRANCH_ANY_CALL as u64),
    ("any_ret", b::PERF_SAMPLE_BRANCH_ANY_RETURN as u64),
    ("ind_call", b::PERF_SAMPLE_BRANCH_IND_CALL as u64),
    ("abort_tx", b::PERF_SAMPLE_BRANCH_ABORT_TX as u64),
    ("in_tx", b::PERF_SAMPLE_BRANCH_IN_TX as u64),
    ("no_tx", b::PERF_SAMPLE_BRANCH_NO_TX as u64),
    ("cond", b::PERF_SAMPLE_BRANCH_COND as u64),
    ("stack", CALL_STACK),
    ("ind_jmp", b::PERF_SAMPLE_BRANCH_IND_JUMP as u64),
    ("call", b::PERF_SAMPLE_BRANCH_CALL as u64),
    ("no_flags", NO_FLAGS),
    ("no_cycles", NO_CYCLES),
    ("save_type", b::PERF_SAMPLE_BRANCH_TYPE_SAVE as u64),
    ("hw_index", HW_INDEX),
    ("priv", b::PERF_SAMPLE_BRANCH_PRIV_SAVE as u64),
    ("counter", COUNTERS),
    ("any_return", b::PERF_SAMPLE_BRANCH_ANY_RETURN as u64),
];

/// Returns the bits for a comma-separated list of filters (`any_call,u`). Ignores case. A list that names no
/// kind of branch selects any branch.
///
/// # Errors
/// Returns the first word that is not a filter.
pub fn filter(words: &str) -> Result<u64, &str> {
    let mut mask = 0;
    for word in words.split(',') {
        let known = FILTERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.trim()));
        mask |= known.ok_or(word)?.1;
    }
    Ok(if mask & !LEVELS == 0 { mask | ANY } else { mask })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_kinds_have_names() {
        assert_eq!(filter("any_call,u"), Ok(1 << 4 | USER));
        assert_eq!(filter("u"), Ok(ANY | USER));
        assert_eq!(filter("any,sideways"), Err("sideways"));
    }
}
