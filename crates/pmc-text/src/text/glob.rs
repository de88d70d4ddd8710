//! Shell patterns for names: `sys_enter_*`, `uncore_imc_?`, `[ab]*`.
//!
//! For any pattern, matching takes time at most proportional to the product of the two lengths.

/// Whether the word contains pattern characters.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// Whether `name` matches `pattern`. `*` matches any text, `?` one character, `[a-c]` one character of a set,
/// and `[!a-c]` one that is not in the set.
pub fn matches(pattern: &str, name: &str) -> bool {
    let [pattern, name] = [pattern, name].map(|text| text.chars().collect::<Vec<char>>());
    fits(&pattern, &name)
}

/// Like [`matches()`], for text that may not be valid UTF-8: `?` and sets match single bytes.
pub fn matches_bytes(pattern: &[u8], name: &[u8]) -> bool {
    fits(pattern, name)
}

fn fits<T: Copy + PartialOrd + From<u8>>(pattern: &[T], name: &[T]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Backtracking point of the last star: position in the pattern, and how far the star extends in the
    // name.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(&c) if c == b'*'.into() => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(&c) if c == b'?'.into() => Some(p + 1),
            Some(&c) if c == b'['.into() => set(pattern, p, name[n]),
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
    pattern[p..].iter().all(|&c| c == b'*'.into())
}

/// Returns the position after the set that starts at `open`, if the set matches `c`. An unclosed `[` is
/// literal.
fn set<T: Copy + PartialOrd + From<u8>>(pattern: &[T], open: usize, c: T) -> Option<usize> {
    let negated = pattern.get(open + 1).is_some_and(|&c| c == b'!'.into() || c == b'^'.into());
    let first = open + 1 + usize::from(negated);
    let Some(close) = (first + 1..pattern.len()).find(|&i| pattern[i] == b']'.into()) else {
        return (c == b'['.into()).then_some(open + 1);
    };
    let mut found = false;
    let mut i = first;
    while i < close {
        if i + 2 < close && pattern[i + 1] == b'-'.into() {
            found |= (pattern[i]..=pattern[i + 2]).contains(&c);
            i += 3;
        } else {
            found |= pattern[i] == c;
            i += 1;
        }
    }
    (found != negated).then_some(close + 1)
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
            ("[a", "[a"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
            assert!(matches_bytes(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
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
