//! `pmc man`: writes the manual, which consists of a page for pmc and one for each command.
//!
//! A page is made from the definitions of the options (`page`), and written as a man page (`roff`) or as
//! Markdown (`markdown`).

mod markdown;
mod page;
mod roff;

use std::io::{Write, stdout};
use std::path::Path;

use crate::cli::man::ManArgs;
use crate::command::man::page::Page;
use pmc_command::destination::Destination;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result};
use pmc_sys::sys::output_file;

/// Writes the page of a command to standard output, or all pages into a directory. `parser` is pmc's parser.
///
/// # Errors
/// Fails if a file cannot be written.
pub(super) fn run(typed: &ManArgs, mut parser: clap::Command) -> Result<Exit> {
    parser.build();
    let (text, extension): (fn(&Page) -> String, _) =
        if typed.markdown { (markdown::text, "md") } else { (roff::text, "1") };
    let Some(folder) = &typed.output else {
        let command = typed.command.as_ref().and_then(|name| parser.find_subcommand(name));
        let page =
            command.map_or_else(|| Page::of_pmc(&parser), |command| Page::of_command(&parser, command));
        stdout().write_all(text(&page).as_bytes()).map_err(|error| Error::output("the page", error))?;
        return Ok(Exit::Done);
    };
    let option = AdvisedOption::Named("--output");
    output_file::create_folder(folder, 0o777).map_err(|error| Error::create(option, folder, error))?;
    let commands = parser.get_subcommands().filter(|command| !command.is_hide_set());
    let pages = commands.map(|command| Page::of_command(&parser, command));
    for page in std::iter::once(Page::of_pmc(&parser)).chain(pages) {
        write(&folder.join(format!("{}.{extension}", page.name)), option, &text(&page))?;
    }
    Ok(Exit::Done)
}

fn write(path: &Path, option: AdvisedOption, text: &str) -> Result<()> {
    let to = Destination { path, option, keeps: false };
    to.write(|out| out.write_all(text.as_bytes()).map_err(|error| Error::output(path.display(), error)))
}
