//! Chooses names for the tracepoints that probes create, in the same way as perf.

use std::collections::HashSet;
use std::path::Path;

/// Maximum length of a name in the kernel.
const MOST_LETTERS: usize = 63;
/// Maximum number of suffixes to try for one name.
const MOST_SUFFIXES: u32 = 1024;

/// The group of probes in a program: `probe_libc` for `/lib/libc.so.6`; `probe` for the kernel.
pub fn probe_group(program: Option<&Path>) -> String {
    let Some(program) = program else { return "probe".to_owned() };
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let mut group = format!("probe_{}", &name[..stem.unwrap_or(name.len())]);
    group.truncate(MOST_LETTERS);
    group
}

/// The name of a probe's event: the function, `FUNCTION_L3` for a line, `FUNCTION__return` for its return.
pub fn probe_event_name(function: &str, line: Option<u32>, returns: bool) -> String {
    // Compilers append suffixes (`.isra.0`), and libraries append versions (`@GLIBC_2.2`).
    let end = function.char_indices().skip(1).find(|(_, letter)| matches!(letter, '.' | '@'));
    let plain = &function[..end.map_or(function.len(), |(at, _)| at)];
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut name: String = plain.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect();
    if name.starts_with(|letter: char| letter.is_ascii_digit()) || name.is_empty() {
        name.insert(0, '_');
    }
    let suffix = match (line, returns) {
        (Some(line), _) => format!("_L{line}"),
        (None, true) => "__return".to_owned(),
        (None, false) => String::new(),
    };
    name.truncate(MOST_LETTERS - suffix.len());
    name + &suffix
}

/// The names in use, as pairs of group and event.
#[derive(Debug, Default)]
pub struct ProbeNames(HashSet<(String, String)>);

impl ProbeNames {
    /// Creates the set from the existing events.
    pub fn new(existing: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(existing.into_iter().collect())
    }

    /// Reserves a name. If the name is in use and `may_differ` is true, appends `_1`, `_2` and so on. Returns
    /// `None` if no name is free.
    pub fn reserve(&mut self, group: &str, name: &str, may_differ: bool) -> Option<String> {
        let last = if may_differ { MOST_SUFFIXES } else { 0 };
        (0..=last).find_map(|number| {
            let suffix = if number == 0 { String::new() } else { format!("_{number}") };
            let mut name = name.to_owned();
            name.truncate(MOST_LETTERS - suffix.len());
            name += &suffix;
            self.0.insert((group.to_owned(), name.clone())).then_some(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_perf() {
        let group = |path: &str| probe_group(Some(Path::new(path)));
        assert_eq!(group("/lib/x86_64-linux-gnu/libc.so.6"), "probe_libc");
        assert_eq!(group("/usr/lib/libstdc++.so.6"), "probe_libstdc");
        assert_eq!(probe_group(None), "probe");
        assert_eq!(probe_event_name("price", Some(3), false), "price_L3");
        assert_eq!(probe_event_name("price", None, true), "price__return");
        assert_eq!(probe_event_name("helper.isra.0", None, false), "helper");
        assert_eq!(probe_event_name("ns::Class::run", None, false), "ns__Class__run");
        assert_eq!(probe_event_name(&"x".repeat(99), None, true).len(), MOST_LETTERS);
    }

    #[test]
    fn used_names_get_a_suffix_only_if_allowed() {
        let mut names = ProbeNames::new([("g".to_owned(), "f".to_owned())]);
        assert_eq!(names.reserve("g", "f", false), None);
        assert_eq!(names.reserve("h", "f", false).as_deref(), Some("f"));
        assert_eq!(names.reserve("g", "f", true).as_deref(), Some("f_1"));
        assert_eq!(names.reserve("g", "f", true).as_deref(), Some("f_2"));
    }
}
