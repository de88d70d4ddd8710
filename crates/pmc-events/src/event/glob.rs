//! Shell patterns for names: `sys_enter_*`, `uncore_imc_?`, `[ab]*`.
//!
//! Matching takes at most time proportional to pattern × name, for any pattern.

/// Whether the word contains pattern characters.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Whether `name` matches `pattern`: `*` any text, `?` one character, `[a-c]` and `[!a-c]` one of a set.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Backtracking point of the last star: position in the pattern, and how far the star extends in the
    // name.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') => Some(p + 1),
            Some('[') => set(&pattern, p, name[n]),
            Some(&c) if c == name[n] => Some(p + 1),
            _ => None,
        };
        match (step, retry) {
            (Some(next), _) => (p, n) = (next, n + 1),
            (None, Some((after, taken))) => {
                retry = Some((after, taken + 1));
                (p, n) = (after, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The position after the set that starts at `open`, if `c` is in the set. An unclosed `[` is literal.
fn set(pattern: &[char], open: usize, c: char) -> Option<usize> {
    let negated = matches!(pattern.get(open + 1), Some('!' | '^'));
    let first = open + 1 + usize::from(negated);
    let Some(close) = (first + 1..pattern.len()).find(|&i| pattern[i] == ']') else {
        return (c == '[').then_some(open + 1);
    };
    let mut found = false;
    let mut i = first;
    while i < close {
        if i + 2 < close && pattern[i + 1] == '-' {
            found |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= pattern[i] == c;
            i += 1;
        }
    }
    (found != negated).then_some(close + 1)
}

/// Whether `wanted` matches this PMU, as a pattern or as the common stem of numbered instances. A leading
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_patterns_match() {
        for (pattern, name) in [
            ("*", ""),
            ("a*", "abc"),
            ("*imc*", "uncore_imc_0"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a]", "b"),
            ("[", "["),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*d", "abc"), ("[a-c]", "d"), ("[!a]", "a"), ("?", "")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn hostile_patterns_terminate() {
        let pattern = "a*".repeat(1000) + "b";
        assert!(!matches(&pattern, &"a".repeat(5000)));
    }
}
