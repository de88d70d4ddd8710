//! Options of `pmc help`.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Error};

/// List the commands, or show the options of one command.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// Command, such as `record` or `stat report`
    #[arg(value_name = "COMMAND", value_parser = CommandName, hide_possible_values = true)]
    pub(crate) command: Vec<String>,
}

/// Accepts any word, because `pmc help` also explains what to use instead of perf's other commands. Shells
/// complete only the names of pmc's commands.
#[derive(Debug, Clone)]
struct CommandName;

impl TypedValueParser for CommandName {
    type Value = String;

    fn parse_ref(&self, parser: &clap::Command, of: Option<&Arg>, word: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(parser, of, word)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = super::Command::NAMES.iter().filter(|name| !super::HIDDEN.contains(name));
        Some(Box::new(names.map(PossibleValue::new)))
    }
}
