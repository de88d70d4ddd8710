//! What NetBSD's `pmc` of 2 to 7 took: `-c EVENT COMMAND` and `-C`. (`-h` is ours already.)
//!
//! Receives the words after the program's name; hands on what they mean there.

use std::ffi::OsString;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub enum Old {
    /// `-C`: stop what a killed `pmc` left over.
    Cancel,
    /// `-c EVENT COMMAND …`.
    Count {
        /// As typed.
        event: String,
        /// With its arguments.
        command: Vec<OsString>,
    },
}

/// Reads the words; `None` where they are not of that kind.
///
/// # Errors
/// What is wrong with them.
pub fn parse(words: &[OsString]) -> Option<Result<Old, &'static str>> {
    match words.split_first()? {
        (first, []) if first == "-C" => Some(Ok(Old::Cancel)),
        (first, _) if first == "-C" => Some(Err("-C stands alone")),
        (first, rest) if first == "-c" => Some(match rest {
            [event, command @ ..] if !command.is_empty() => {
                let event = event.to_string_lossy().into_owned();
                Ok(Old::Count { event, command: command.to_vec() })
            }
            [_] => Err("no command to count in"),
            _ => Err("option requires an argument -- c"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Result<Old, &'static str>> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_of_the_old_pmc_are_read() {
        assert_eq!(read("-C"), Some(Ok(Old::Cancel)));
        let count = |command: &[&str]| {
            let command = command.iter().map(OsString::from).collect();
            Some(Ok(Old::Count { event: "cycles".into(), command }))
        };
        assert_eq!(read("-c cycles ls -l"), count(&["ls", "-l"]));
        assert_eq!(read("-c cycles"), Some(Err("no command to count in")));
        assert_eq!(read("-c"), Some(Err("option requires an argument -- c")));
        assert_eq!(read("-C x"), Some(Err("-C stands alone")));
        assert_eq!((read("stat -C 0"), read("")), (None, None));
    }
}
