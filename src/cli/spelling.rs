//! perf's spellings that clap does not have: rules that rewrite the words before clap reads them.
//!
//! ```text
//!   stat -a record -- ls     stat-record -a -- ls     a subcommand after options
//!   trace record ls          record -e raw_syscalls:… ls
//!   record -z3               record -z=3              an optional value in the same word
//!   record -g dwarf ls       record -g --call-graph=dwarf ls
//! ```

use std::ffi::OsString;

use clap::{Arg, Command};

use pmc_events::counter::request::sampling::CallGraph;

/// Rewrites the words of one command.
struct SpellingRule {
    /// The commands to which the rule applies.
    commands: &'static [&'static str],
    /// Changes the words of the command line, of which `name` is the command's name.
    rewrite: fn(words: &mut Vec<OsString>, name: usize, parser: &mut Command),
}

/// The rules, in the order in which they apply.
const RULES: &[SpellingRule] = &[
    SpellingRule { commands: &["trace"], rewrite: record_system_calls },
    SpellingRule { commands: &["stat"], rewrite: join_subcommand },
    SpellingRule {
        commands: &["record"],
        rewrite: |words, name, parser| separate_optional_values(words, name, parser),
    },
    SpellingRule {
        commands: &["record", "top"],
        rewrite: |words, name, parser| join_mode_after_g(words, name, parser),
    },
];

/// Rewrites perf's spellings in a command line, which begins with the program's name.
pub(crate) fn rewrite(words: &mut Vec<OsString>, parser: &mut Command) {
    for rule in RULES {
        if let Some(name) = command_name(words, parser)
            && rule.commands.iter().any(|command| words[name] == **command)
        {
            (rule.rewrite)(words, name, parser);
        }
    }
}

/// Returns the index of the command's name. `record` counts as the command in `sched record`, because it has
/// the options of `record`.
pub(crate) fn command_name(words: &[OsString], parser: &Command) -> Option<usize> {
    let name = scan(parser, words, 1).operand?;
    let is_sched = words[name] == "sched" && words.get(name + 1).is_some_and(|word| word == "record");
    Some(name + usize::from(is_sched))
}

/// `trace record` is `record` with the events of system calls.
fn record_system_calls(words: &mut Vec<OsString>, name: usize, _: &mut Command) {
    if words.get(name + 1).is_some_and(|word| word == "record") {
        let record = ["record", "-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit"];
        words.splice(name..name + 2, record.map(OsString::from));
    }
}

/// `stat OPTIONS record` and `stat OPTIONS report` are subcommands, if they have these options.
fn join_subcommand(words: &mut Vec<OsString>, name: usize, parser: &mut Command) {
    let is_subcommand = |word: &OsString| word == "record" || word == "report";
    if !words[name + 1..].iter().any(is_subcommand) {
        return;
    }
    let typed = scan(&options_of("stat", parser), words, name + 1);
    let Some(operand) = typed.operand.filter(|&at| is_subcommand(&words[at])) else { return };
    let joined = ["stat-", &words[operand].to_string_lossy()].concat();
    let subcommand = options_of(&joined, parser);
    let has = |id: &clap::Id| subcommand.get_arguments().any(|option| option.get_id() == id);
    if typed.options.iter().all(|typed| has(&typed.option)) {
        words.remove(operand);
        words[name] = joined.into();
    }
}

/// Inserts `=` before the value of a short option with an optional value: `-z=3`.
fn separate_optional_values(words: &mut [OsString], name: usize, parser: &mut Command) {
    let is_glued = |word: &OsString| {
        let word = word.as_encoded_bytes();
        word.len() > 2 && word[0] == b'-' && word[1] != b'-'
    };
    if !words[name + 1..].iter().any(is_glued) {
        return;
    }
    for typed in scan(&options_of("record", parser), words, name + 1).options {
        let Some(word) = words[typed.at].to_str().filter(|word| !word.starts_with("--")) else { continue };
        let (option, value) = word.split_at(typed.value);
        if typed.has_optional_value && !value.is_empty() && !value.starts_with('=') {
            words[typed.at] = format!("{option}={value}").into();
        }
    }
}

/// A call-chain method directly after `-g` is its value, and not a command to run.
fn join_mode_after_g(words: &mut [OsString], name: usize, parser: &mut Command) {
    let is_mode = |word: &OsString| word.to_str().is_some_and(|mode| mode.parse::<CallGraph>().is_ok());
    if !words[name + 1..].iter().any(is_mode) {
        return;
    }
    let typed = scan(&options_of(&words[name].to_string_lossy(), parser), words, name + 1);
    let Some(operand) = typed.operand.filter(|&at| is_mode(&words[at])) else { return };
    let is_g = |last: &TypedOption| last.at + 1 == operand && last.option == "stacks";
    if typed.options.last().is_some_and(is_g) {
        let mode = std::mem::replace(&mut words[operand], "--call-graph=".into());
        words[operand].push(mode);
    }
}

/// Returns the definition of a command with its options. The list of commands defines only their names until
/// one of them is used.
fn options_of(name: &str, parser: &mut Command) -> Command {
    let mut command = parser.find_subcommand_mut(name).expect("a command of this list").clone();
    command.build();
    command
}

/// The options in front of a command's first operand.
struct TypedOptions {
    options: Vec<TypedOption>,
    /// Index of the first operand, unless `--` precedes it.
    operand: Option<usize>,
}

/// An option in a word. A word of several letters contains several options.
pub(crate) struct TypedOption {
    /// Index of the word.
    at: usize,
    pub(crate) option: clap::Id,
    /// Offset in the word after the option's name.
    pub(crate) value: usize,
    /// Whether the option has a value only if it is in the same word.
    has_optional_value: bool,
}

/// Finds the options of `command` in the words that begin at `start`, up to the first operand.
fn scan(command: &Command, words: &[OsString], start: usize) -> TypedOptions {
    let mut options = Vec::new();
    let mut at = start;
    while let Some(word) = words.get(at) {
        let word = word.to_string_lossy();
        let value_follows = match word.strip_prefix("--") {
            Some("") => return TypedOptions { options, operand: None },
            Some(long) => scan_long(command, at, long, &mut options),
            None if word.len() > 1 && word.starts_with('-') => scan_letters(command, at, &word, &mut options),
            None => return TypedOptions { options, operand: Some(at) },
        };
        at += 1 + usize::from(value_follows);
    }
    TypedOptions { options, operand: None }
}

/// Returns the options in a word that begins with `-`, and whether the next word is the value of the last
/// one.
pub(crate) fn options_in(command: &Command, word: &str) -> (Vec<TypedOption>, bool) {
    let mut options = Vec::new();
    let value_follows = match word.strip_prefix("--") {
        Some(long) => scan_long(command, 0, long, &mut options),
        None => scan_letters(command, 0, word, &mut options),
    };
    (options, value_follows)
}

/// Adds the long option in a word. Returns whether the next word is its value.
fn scan_long(command: &Command, at: usize, long: &str, options: &mut Vec<TypedOption>) -> bool {
    let name = long.split('=').next().unwrap_or_default();
    let Some(option) = long_option(command, name) else { return false };
    options.push(typed(option, at, "--".len() + name.len()));
    takes_value(option) && !option.is_require_equals_set() && name.len() == long.len()
}

/// Adds the options in a word of letters. Returns whether the next word is the value of the last one.
fn scan_letters(command: &Command, at: usize, word: &str, options: &mut Vec<TypedOption>) -> bool {
    for (place, letter) in word.char_indices().skip(1) {
        let of =
            |option: &&Arg| option.get_short_and_visible_aliases().is_some_and(|all| all.contains(&letter));
        let Some(option) = command.get_arguments().find(of) else { continue };
        let end = place + letter.len_utf8();
        options.push(typed(option, at, end));
        if takes_value(option) {
            return end == word.len() && !option.is_require_equals_set();
        }
    }
    false
}

fn typed(option: &Arg, at: usize, value: usize) -> TypedOption {
    let has_optional_value = takes_value(option) && option.is_require_equals_set();
    TypedOption { at, option: option.get_id().clone(), value, has_optional_value }
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Returns the option with this long name, or with the only long name that begins like this.
fn long_option<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    let named = |option: &Arg, is_it: &dyn Fn(&str) -> bool| {
        option.get_long().is_some_and(is_it)
            || option.get_all_aliases().is_some_and(|all| all.into_iter().any(is_it))
    };
    let exact = command.get_arguments().find(|option| named(option, &|long| long == name));
    exact.or_else(|| {
        let mut near = command.get_arguments().filter(|option| named(option, &|long| long.starts_with(name)));
        near.next().filter(|_| near.next().is_none())
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, perf_options};

    fn rewritten(line: &str) -> String {
        let mut words = ["pmc"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
        rewrite(&mut words, &mut perf_options::add(Cli::command()));
        let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
        words.join(" ")
    }

    #[test]
    fn perf_spellings_become_those_of_clap() {
        for (typed, clap) in [
            ("stat record ls", "stat-record ls"),
            ("stat --no-pager -A report -i x", "stat-report --no-pager -A -i x"),
            ("stat -r 3 --interval-p 100 record ls", "stat-record -r 3 --interval-p 100 ls"),
            ("--buildid-dir record stat -a record", "--buildid-dir record stat-record -a"),
            ("trace record ls", "record -e raw_syscalls:sys_enter,raw_syscalls:sys_exit ls"),
            ("record -z3 -az5 -I=ax ls", "record -z=3 -az=5 -I=ax ls"),
            ("sched record -z3 ls -z3", "sched record -z=3 ls -z3"),
            ("record -g dwarf,4096 ls", "record -g --call-graph=dwarf,4096 ls"),
            ("top -ag lbr", "top -ag --call-graph=lbr"),
        ] {
            assert_eq!(rewritten(typed), clap, "{typed}");
        }
    }

    #[test]
    fn other_words_stay() {
        for typed in [
            "stat ls record",
            "stat -- record",
            "stat -r x report",
            "stat -a report",
            "stat -o record ls",
            "trace ls",
            "trace -a record",
            "record ls -z3",
            "record -ez3 -o z3 ls",
            "record -- -z3",
            "record -g -- dwarf",
            "record -g ls fp",
            "record -a fp",
            "record -F 99 fp",
            "report -gfp",
        ] {
            assert_eq!(rewritten(typed), typed);
        }
    }

    #[test]
    fn words_that_are_not_utf8_stay() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"-z\xff".to_vec());
        let mut words: Vec<OsString> = vec!["pmc".into(), "record".into(), "-g".into(), odd.clone()];
        rewrite(&mut words, &mut Cli::command());
        assert_eq!(words.last(), Some(&odd));
    }
}
