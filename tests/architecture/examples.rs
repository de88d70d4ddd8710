//! Checks that the commands shown in README.md and `docs/*.md` parse. A command is a line of code that begins
//! with `$ pmc`, or with `pmc` and a command's name. It ends before a pipe, a redirection or a comment of the
//! shell, or before an explanation that follows two spaces.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use pmc::cli::Cli;

use super::heritage::words;
use super::links::pages;
use super::sources::root;

/// Returns the lines of code of a page, with their numbers. A backslash at the end joins two lines.
fn code(page: &str) -> Vec<(usize, String)> {
    let (mut is_fenced, mut is_joined) = (false, false);
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            let text = line.trim().trim_end_matches('\\');
            match lines.last_mut().filter(|_| is_joined) {
                Some((_, before)) => before.push_str(text),
                None => lines.push((index + 1, text.to_owned())),
            }
        }
        is_joined = line.ends_with('\\');
    }
    lines
}

/// Returns the part of a line that pmc would receive, or `None` if the line is not such a command.
fn command<'a>(parser: &Command, line: &'a str) -> Option<&'a str> {
    let prompted = line.strip_prefix("$ ").or_else(|| line.strip_prefix("guest# "));
    let typed = prompted.unwrap_or(line);
    let first = typed.strip_prefix("pmc ")?.split(' ').next()?;
    // The title of a screen begins with `pmc`, too.
    if typed.contains('…') || (prompted.is_none() && parser.find_subcommand(first).is_none()) {
        return None;
    }
    let mut quote = None;
    let end = typed.char_indices().find(|&(at, letter)| {
        match quote {
            Some(open) if open == letter => quote = None,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            _ => {}
        }
        let is_end = matches!(letter, '|' | '>' | ';' | '&')
            || (letter == '#' && typed[..at].ends_with(' '))
            || typed[at..].starts_with("  ");
        quote.is_none() && is_end
    });
    Some(typed[..end.map_or(typed.len(), |(at, _)| at)].trim())
}

/// Returns the parser's message if it refuses a command.
fn refusal(parser: &mut Command, command: &str) -> Option<String> {
    // `$!` and `$$` are process IDs.
    let mut words = words(&command.replace("$!", "1").replace("$$", "1"));
    // Commands of two words.
    if words.len() > 2 && words[1] == "stat" && (words[2] == "record" || words[2] == "report") {
        let second = words.remove(2);
        words[1].push("-");
        words[1].push(second);
    }
    parser.try_get_matches_from_mut(words).err().filter(clap::Error::use_stderr).map(|e| e.to_string())
}

/// Returns the faults of one page.
fn faults(parser: &mut Command, page: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in code(text) {
        if let Some(refusal) = command(parser, &line).and_then(|command| refusal(parser, command)) {
            faults.push(format!("{}:{number}: {line}\n{refusal}", page.display()));
        }
    }
    faults
}

#[test]
fn commands_in_the_documentation_parse() {
    let mut parser = Cli::command();
    let pages = pages(&root());
    let shown = pages.iter().flat_map(|(_, text)| code(text));
    let count = shown.filter(|(_, line)| command(&parser, line).is_some()).count();
    assert!(count > 60, "{count} commands");
    let faults: Vec<String> = pages.iter().flat_map(|(page, text)| faults(&mut parser, page, text)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_that_do_not_parse_are_found() {
    let mut parser = Cli::command();
    let mut found = |text: &str| faults(&mut parser, Path::new("page.md"), text).len();
    assert_eq!(found("    $ pmc stat --vs 'a >b' --vs 'c | d' -r 5 >out --none\n    pmc: --none\n"), 0);
    assert_eq!(found("pmc stat --none\n    # pmc stat --none\n    pmc stat … --none\n    pmc a title\n"), 0);
    assert_eq!(found("    pmc report   an explanation\n"), 0);
    assert_eq!(
        found("    $ pmc stat --none -- true\n    $ pmc nothing\n```\npmc stat \\\n  --none\n```\n"),
        3
    );
}
