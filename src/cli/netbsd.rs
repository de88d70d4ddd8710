//! Options of the `pmc` command of NetBSD 2 to 7: `-c EVENT COMMAND` and `-C`. (`-h` is also an option of
//! this pmc.)
//!
//! Receives the words after the program's name, and returns the parsed command.

use std::ffi::OsString;

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum NetbsdCommand {
    /// `-C`: clean up after a `pmc` that was killed.
    Cancel,
    /// `-c EVENT COMMAND …`.
    Count {
        /// The event as the user typed it.
        event: String,
        /// The command with its arguments.
        command: Vec<OsString>,
    },
}

/// Parses the words. Returns `None` if they do not have the form of NetBSD's command.
///
/// # Errors
/// Returns the message to print for an invalid command line.
pub fn parse(words: &[OsString]) -> Option<Result<NetbsdCommand, &'static str>> {
    match words.split_first()? {
        (first, []) if first == "-C" => Some(Ok(NetbsdCommand::Cancel)),
        (first, _) if first == "-C" => Some(Err("-C stands alone")),
        (first, rest) if first == "-c" => Some(match rest {
            [event, command @ ..] if !command.is_empty() => {
                let event = event.to_string_lossy().into_owned();
                Ok(NetbsdCommand::Count { event, command: command.to_vec() })
            }
            [_] => Err("no command given"),
            _ => Err("option requires an argument -- c"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Result<NetbsdCommand, &'static str>> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn netbsd_pmc_options_parse() {
        assert_eq!(read("-C"), Some(Ok(NetbsdCommand::Cancel)));
        let count = |command: &[&str]| {
            let command = command.iter().map(OsString::from).collect();
            Some(Ok(NetbsdCommand::Count { event: "cycles".into(), command }))
        };
        assert_eq!(read("-c cycles ls -l"), count(&["ls", "-l"]));
        assert_eq!(read("-c cycles"), Some(Err("no command given")));
        assert_eq!(read("-c"), Some(Err("option requires an argument -- c")));
        assert_eq!(read("-C x"), Some(Err("-C stands alone")));
        assert_eq!((read("stat -C 0"), read("")), (None, None));
    }
}
