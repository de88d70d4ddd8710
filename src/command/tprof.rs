//! The `tprof` personality: under that name, pmc accepts the subcommands of NetBSD's tprof(8), and translates
//! each into a pmc command.

use crate::cli::{Command, defaults, report, stat, top};
use pmc_analysis::profile::sampled::SortKey;
use pmc_command::options::{recording_options, sample_filter, stack_options};
use pmc_command::record::args::RecordArgs;
use pmc_compat::tprof::{CommandLine, FILE, Subcommand, USAGE};
use pmc_compat::words_if_named;
use pmc_sys::error::{Error, Exit, say};

const NAME: &str = "tprof";

/// Returns the pmc command to run if this process was started under the name `tprof`; `None` otherwise.
/// [`status`] converts its exit status.
pub(super) fn if_named() -> Option<Result<Command, Exit>> {
    Some(match CommandLine::parse(words_if_named(NAME)?) {
        Ok(CommandLine { action: Subcommand::Help, .. }) => {
            let written = std::io::Write::write_all(&mut std::io::stdout(), USAGE.as_bytes());
            Err(written.map_or(Exit::Failure, |()| Exit::Done))
        }
        Ok(typed) => Ok(command(typed)),
        Err(wrong) => {
            let usage = "tprof list, monitor, count, analyze or top; docs/coming-from-netbsd.md";
            say::error(&Error::usage(wrong).try_this(usage));
            Err(Exit::Failure)
        }
    })
}

fn command(typed: CommandLine) -> Command {
    let CommandLine { action, events, output, interval_ms, pid, flags, operands } = typed;
    let has = |letter| flags.contains(&letter);
    let interval = interval_ms.map(std::time::Duration::from_millis);
    match action {
        Subcommand::Help | Subcommand::List => Command::List(defaults()),
        // `record` prints a summary at the end, as tprof does.
        Subcommand::Monitor => Command::Record(Box::new(RecordArgs {
            all_cpus: true,
            events,
            recording: recording_options::RecordingOptions {
                output: output.unwrap_or(FILE.to_owned()).into(),
                ..defaults()
            },
            command: operands,
            ..defaults()
        })),
        Subcommand::Count => {
            let stat::StatArgs { counted, to, shown } = defaults();
            let counted = stat::CountArgs { all_cpus: true, events, interval, command: operands, ..counted };
            let shown = stat::StatDisplayArgs { no_aggr: true, ..shown };
            Command::Stat(Box::new(stat::StatArgs { counted, to, shown }))
        }
        Subcommand::Analyze => {
            // Samples that differ only in attributes that no option selects are added up. Without -s, each
            // address has its own row.
            let place = if has('s') { SortKey::Symbol } else { SortKey::SymbolOffset };
            let keys = [
                (!has('P'), SortKey::Thread),
                (!has('L'), SortKey::Tid),
                (!has('C'), SortKey::Cpu),
                (true, SortKey::Dso),
                (true, place),
            ];
            let shown = keys.into_iter().filter(|(is_shown, _)| *is_shown);
            let kernel = has('k').then(|| "[kernel.kallsyms]".to_owned());
            Command::Report(Box::new(report::ReportArgs {
                stdio: true,
                show_nr_samples: true,
                sort: shown.map(|(_, key)| key.into()).collect(),
                stacks: stack_options::StackOptions { dsos: kernel.into_iter().collect(), ..defaults() },
                filter: sample_filter::SampleFilter {
                    pid: pid.map(u32::cast_signed).into_iter().collect(),
                    ..defaults()
                },
                input: Some(operands.into_iter().next().unwrap_or(FILE.into()).into()),
                ..defaults()
            }))
        }
        Subcommand::Top => {
            let top: top::TopArgs = defaults();
            let cpu = has('c').then_some(SortKey::Cpu);
            let keys = cpu.into_iter().chain([SortKey::Dso, SortKey::Symbol]);
            Command::Top(Box::new(top::TopArgs {
                show_nr_samples: true,
                sort: keys.map(SortKey::into).collect(),
                accumulate: has('a'),
                hide_user_symbols: !has('u'),
                events,
                delay: interval.unwrap_or(top.delay),
                command: operands,
                ..defaults()
            }))
        }
    }
}

/// Converts an exit status to tprof's.
pub(super) fn status(exit: Exit) -> Exit {
    if exit == Exit::Usage { Exit::Failure } else { exit }
}
