//! The commands. Each turns its options into a request, runs it, and passes the result to a view.
//!
//! Each command has its own file or folder. Commands connect the layers; they do not compute or format
//! anything themselves.

mod annotate;
mod archive;
mod buildid_cache;
mod buildid_list;
mod compare;
mod complete;
mod config;
mod data;
mod diff;
mod evlist;
mod export;
mod info;
mod inject;
mod kallsyms;
mod list;
mod listings;
mod man;
mod mcp;
mod probe;
mod profile;
mod report;
mod script;
mod stat;
mod symbolize;
mod top;
mod usage;
mod version;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use self::info::InfoRequest;
use self::list::{EventList, ListRequest};
use crate::cli::perf_only::{FREEBSD_ONLY, PERF_ONLY};
use crate::cli::perf_options::{self, OptionTreatment};
use crate::cli::sched::SchedCommand;
use crate::cli::top::TopArgs;
use crate::cli::{Cli, Command, spelling};
use crate::config::{Config, ConfigFiles};
use crate::settings;
use pmc_command::record::RecordDisplay;
use pmc_command::{gate, pager, record};
use pmc_compat::pmcstat::counters::{Columns, while_recording};
use pmc_compat::pmcstat::{self, Personality};
use pmc_compat::{Action, netbsd, perfalloc, pmccontrol, reserve, tprof, words_if_named};
use pmc_persist::options::PersistCommand;
use pmc_symbols::symbol::{disassemble, options};
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::replacement;
use pmc_text::units;

/// Parses the command line, runs one command, prints its error, and returns the exit status.
pub fn main() -> Exit {
    pmc_command::advice::install();
    if words_if_named(disassemble::PROCESS_NAME).is_some() {
        disassemble::serve();
        return Exit::Done;
    }
    let _disassembler = disassemble::decode_in("/proc/self/exe".into());
    units::follow_locale(|name| std::env::var_os(name));
    if let Some(exit) = perfalloc::main_if_named() {
        return exit;
    }
    match tprof::if_named() {
        Some(Ok(action)) => return tprof::status(carry_out_action(action, None)),
        Some(Err(exit)) => return exit,
        None => {}
    }
    match pmccontrol::if_named() {
        Some(Ok(action)) => return pmcstat::status(carry_out_action(action, None)),
        Some(Err(exit)) => return exit,
        None => {}
    }
    match pmcstat::if_named() {
        None => carry_out(std::env::args_os().collect()),
        Some(Personality::Done(exit)) => exit,
        Some(Personality::Steps(steps, columns)) => {
            pmcstat::carry_out(steps, |action| carry_out_action(action, columns.as_ref()))
        }
    }
}

/// Runs what a personality asks for, and prints its error. `columns` are the counters that pmcstat prints
/// while it records.
fn carry_out_action(action: Action, columns: Option<&Columns>) -> Exit {
    say::be_quiet(action.is_quiet());
    let settings = load_settings();
    report_skipped(&settings);
    pager::allow(true);
    use_build_id_folder(settings::build_id_folder(&settings));
    ended(act(action, columns))
}

fn act(action: Action, columns: Option<&Columns>) -> Result<Exit> {
    match action {
        Action::List { words, long } => {
            list::run(&ListRequest::List(EventList { words, long, ..EventList::default() }))
        }
        Action::ListCounters => info::run(&InfoRequest::Machine { only_counters: true, json: false }),
        Action::Report(request) => report::run(&request),
        Action::Export(request) => export::run(&request),
        Action::Record(request, display) => match columns {
            None => record::run(*request, display, None),
            Some(columns) => {
                let display = RecordDisplay { perf_summary: false, ..display };
                while_recording(columns, |counted| record::run(*request, display, Some(counted)))
            }
        },
        Action::Stat(request, layout) => match columns {
            None => stat::run(*request, layout, None),
            Some(columns) => while_recording(columns, |counted| stat::run(*request, layout, Some(counted))),
        },
        Action::Top(view) => top::run(TopArgs::from(view).request(&Host::live())?),
    }
}

/// Parses and runs the command line `words`, which begin with the program's name. Prints its error, and
/// returns the exit status.
pub fn carry_out(mut words: Vec<OsString>) -> Exit {
    if let Some(exit) = words.get(1..).and_then(netbsd::if_old) {
        return exit;
    }
    if let Some(answered) = words.get(1).and_then(|word| listings::answer(word, &parser)) {
        return ended(answered);
    }
    let mut parser = parser();
    spelling::rewrite(&mut words, &mut parser);
    let settings = load_settings();
    // A broken setting does not block the help.
    let set = settings::put_in_front(&mut words, &settings, &parser);
    let (cli, matches) = match parse(&words, parser) {
        Ok(typed) => typed,
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => return ended(print_help(&words)),
        Err(answer) => return show(&answer),
    };
    let ran = answer_perf_options(&matches)
        .inspect(|()| report_skipped(&settings))
        .and(set)
        .and_then(|()| run(cli));
    ended(ran)
}

/// Prints the error, if there is one, and which files of killed processes were removed. Returns the exit
/// status.
fn ended(ran: Result<Exit>) -> Exit {
    for path in replacement::take_removed() {
        say::note(format!("removed {}, which a killed pmc had left", path.display()));
    }
    ran.unwrap_or_else(|error| {
        say::error(&error);
        error.exit_status()
    })
}

/// Prints the help that this command line requests. `-h` lists only the common options of a command, which
/// are those without `hide_short_help`.
fn print_help(words: &[OsString]) -> Result<Exit> {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    let is_brief = own.iter().any(|word| word == "-h");
    let mut parser = parser();
    parser.build();
    let command = usage::command_of(&parser, words).clone();
    let has_more = command.get_arguments().any(clap::Arg::is_hide_short_help_set);
    let mut command = match (has_more, is_brief) {
        (false, _) => command,
        (true, true) => {
            let name = command.get_bin_name().unwrap_or_default().trim_start_matches("pmc ");
            let more = format!("All options: pmc help {name}, or --help");
            let examples = command.get_after_help().map(|examples| format!("{examples}\n\n"));
            let command = command.after_help(examples.unwrap_or_default() + &more);
            // Options of every command are not specific to this one.
            command.mut_args(|option| match option.get_id().as_str() {
                "help" | "no_pager" => option.hide(true),
                _ => option,
            })
        }
        // clap's own long help needs several lines for each option.
        (true, false) => command.mut_args(|option| option.hide_short_help(false)),
    };
    let printed = command.print_help().and_then(|()| std::io::stdout().flush());
    printed.map(|()| Exit::Done).map_err(|error| Error::output("the help", error))
}

/// Prints the parser's output: help, the version or an error.
fn show(answer: &clap::Error) -> Exit {
    // It is not an error to print the help or the version, or to print the list of commands if no command is
    // given.
    let wants_command = matches!(
        answer.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !answer.use_stderr() || wants_command {
        let printed = answer.print().and_then(|()| std::io::stdout().flush());
        if answer.use_stderr() {
            return Exit::Usage;
        }
        return ended(printed.map(|()| Exit::Done).map_err(|error| Error::output("the help", error)));
    }
    say::error(&usage::error(answer, [PERF_ONLY, FREEBSD_ONLY], parser()));
    Exit::Usage
}

/// Prints the `--help` of this command, or of pmc if `command` is empty.
fn help(command: &[String]) -> Exit {
    let words = ["pmc"].into_iter().chain(command.iter().map(String::as_str)).chain(["--help"]);
    let mut words = words.map(OsString::from).collect();
    spelling::rewrite(&mut words, &mut parser());
    match parser().try_get_matches_from(&words) {
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => ended(print_help(&words)),
        Err(answer) => show(&answer),
        // The second word is a command to run rather than a pmc command, and `--help` was an argument of that
        // command.
        Ok(_) => {
            say::error(
                &Error::usage(format!("pmc has no command {}", command.join(" "))).try_this("pmc help"),
            );
            Exit::Usage
        }
    }
}

/// Parses the command line. Also returns clap's matches, which tell perf's own options.
fn parse(
    words: &[OsString],
    for_words: clap::Command,
) -> std::result::Result<(Cli, ArgMatches), clap::Error> {
    let parsed = for_words.try_get_matches_from(words);
    let matches = parsed.map_err(|error| usage::with_command(error, words, parser()))?;
    Ok((Cli::from_arg_matches(&matches)?, matches))
}

/// Returns the parser, including perf's global options.
fn parser() -> clap::Command {
    perf_options::add(Cli::command())
}

/// Handles options that perf implements and pmc does not: ignores or rejects them.
///
/// # Errors
/// Fails if an option requests something that pmc does not support.
fn answer_perf_options(matches: &ArgMatches) -> Result<()> {
    let Some((command, typed)) = matches.subcommand() else { return Ok(()) };
    let innermost = typed.subcommand().map_or(typed, |(_, typed)| typed);
    say::be_quiet(matches!(innermost.try_get_one("quiet"), Ok(Some(true))));
    let of_pmc = perf_options::typed("pmc", matches).map(|option| ("", option));
    let of_command = perf_options::typed(command, typed).map(|option| (command, option));
    for (command, option) in of_pmc.chain(of_command) {
        match option.answer {
            OptionTreatment::AlreadySo(_) => {}
            OptionTreatment::Ignored(why) => say::note(format!("{} has no effect: {why}", option.typed())),
            OptionTreatment::Refused(why, instead) => {
                let name = ["pmc", command].join(" ");
                let refused = Error::usage(format!("{} has no {}", name.trim_end(), option.typed()));
                return Err(refused.why(why).try_options(instead));
            }
        }
    }
    Ok(())
}

/// Reads perf's settings.
fn load_settings() -> Config {
    Config::load(&ConfigFiles::Usual.paths())
}

/// Prints which lines of the settings' files are not settings.
fn report_skipped(settings: &Config) {
    for what in &settings.left_out {
        say::warn(
            Warning::note(format!("ignored a setting: {what}"))
                .advise("set PERF_CONFIG=/dev/null to ignore all settings"),
        );
    }
}

/// Uses a build-id cache in another directory than the usual one.
fn use_build_id_folder(folder: Option<PathBuf>) {
    if let Some(folder) = folder {
        options::choose_build_id_folder(std::path::absolute(&folder).unwrap_or(folder));
    }
}

fn run(cli: Cli) -> Result<Exit> {
    pager::allow(!cli.no_pager);
    use_build_id_folder(cli.buildid_dir);
    match cli.command {
        Command::Stat(typed) => {
            let has_condition = typed.counted.fail_if.is_some();
            let ran =
                typed.request(&Host::live()).and_then(|(request, layout)| stat::run(request, layout, None));
            gate::unusable_if_failed(has_condition, ran)
        }
        Command::StatRecord(typed) => {
            let (request, layout) = typed.request(&Host::live())?;
            stat::run(request, layout, None)
        }
        Command::StatReport(typed) => {
            let (request, layout) = typed.request()?;
            stat::report(&request, layout)
        }
        Command::Record(typed) => {
            let display = typed.display();
            record::run(typed.request(&Host::live())?, display, None)
        }
        Command::Info(typed) => info::run(&typed.request()),
        Command::Report(typed) => report::run(&typed.request()?),
        Command::Top(typed) => top::run(typed.request(&Host::live())?),
        Command::Trace(typed) => pmc_tools::trace::run(typed.request(&Host::live())?),
        Command::Annotate(typed) => annotate::run(typed.request()?),
        Command::Diff(typed) => {
            let has_condition = typed.fail_if.is_some();
            let ran = typed.request().and_then(|(request, output)| diff::run(&request, &output));
            gate::unusable_if_failed(has_condition, ran)
        }
        Command::Compare(typed) => {
            let has_condition = typed.fail_if.is_some();
            gate::unusable_if_failed(has_condition, compare::run(*typed))
        }
        Command::Latency(typed) => pmc_tools::latency::run(&typed.request(&Host::live())?),
        Command::Sched(typed) => match typed.command {
            SchedCommand::Record(record) => {
                typed.group.check()?;
                let display = record.display();
                record::run(pmc_tools::sched::record_request(*record, &Host::live())?, display, None)
            }
            SchedCommand::Script(mut script) => {
                typed.group.check()?;
                script.recording = script.recording.or(typed.group.input);
                let (input, request, output) = script.request()?;
                script::run(&input, &request, &output)
            }
            SchedCommand::Show(view) => pmc_tools::sched::show(&view.request(typed.group)?),
        },
        Command::Script(typed) => {
            let (input, request, output) = typed.request()?;
            script::run(&input, &request, &output)
        }
        Command::Lock(typed) => pmc_tools::lock::run(typed.request(&Host::live())?),
        Command::Export(typed) => export::run(&typed.request()?),
        Command::Flamegraph(typed) => export::run(&typed.request()?),
        Command::Evlist(typed) => evlist::run(&typed.request()),
        Command::BuildidList(typed) => buildid_list::run(&typed.request()),
        Command::Profile(typed) => profile::run(*typed),
        Command::Data(typed) => data::run(&typed.request()?),
        Command::Inject(typed) => {
            let (input, request) = typed.request()?;
            inject::run(&input, &request)
        }
        Command::BuildidCache(typed) => buildid_cache::run(&typed.request()?),
        Command::Symbolize(typed) => symbolize::run(&typed.request()?),
        Command::Archive(typed) => archive::run(&typed.request()?),
        Command::Mcp(typed) => mcp::run(&typed.request()),
        Command::Probe(typed) => probe::run(&typed.request()?),
        Command::Kallsyms(typed) => kallsyms::run(&typed.symbols),
        Command::Config(typed) => config::run(&typed),
        Command::Help(typed) => Ok(help(&typed.command)),
        Command::Complete(typed) => complete::run(&typed.words, parser()),
        Command::Man(typed) => man::run(&typed, parser()),
        Command::Version(typed) => version::run(typed.build_options),
        Command::Persist(typed) => match typed.command {
            PersistCommand::Holding(typed) => pmc_persist::run::run(typed.request(&Host::live())?),
            PersistCommand::Attach(typed) => {
                let (request, display) = typed.request()?;
                record::run(request, display, None)
            }
        },
        Command::Start(typed) => pmc_persist::run::run(typed.into()),
        Command::Stop(typed) => pmc_persist::run::run(typed.into()),
        Command::Reserve(typed) => reserve::run(typed.request()),
        Command::List(typed) => list::run(&typed.request()),
    }
}

/// Answers the messages of an MCP client, as `pmc mcp` without `--allow-record` does, but on these streams.
///
/// # Errors
/// Fails if reading or writing fails.
pub fn answer_mcp(input: &mut impl BufRead, output: &mut impl Write) -> Result<()> {
    mcp::serve(&mcp::McpRequest::default(), input, output).map(|_| ())
}
