//! Matches PMU names that the user gives as patterns or without an instance number.

use pmc_text::text::glob::{is_pattern, matches};

/// Whether `wanted` matches this PMU, as a pattern or as the common name of numbered instances. A leading
/// `uncore_` is optional: `imc` and `*imc*` match `uncore_imc_0`, `uncore_imc_1` …
pub(super) fn fits_pmu(wanted: &str, pmu: &str) -> bool {
    let short = pmu.strip_prefix("uncore_").unwrap_or(pmu);
    if is_pattern(wanted) {
        return matches(wanted, pmu) || matches(wanted, short);
    }
    [pmu, short].into_iter().any(|name| {
        name.strip_prefix(wanted).is_some_and(|rest| {
            let digits = rest.strip_prefix('_').unwrap_or(rest);
            rest.is_empty() || (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        })
    })
}
