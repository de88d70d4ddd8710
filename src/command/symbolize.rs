//! `pmc symbolize`: adds names to a table of stacks, which an export wrote without them or on a machine
//! without symbols.
//!
//! Reads each table twice: to collect the code without names, and to rewrite it. Memory depends on the number
//! of distinct addresses, not on the number of stacks.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::cli::symbolize::SymbolizeArgs;
use pmc_analysis::analysis::{ProgressSink, recording_quality};
use pmc_command::destination::{Destination, is_standard};
use pmc_command::progress::Bars;
use pmc_formats::export::parquet::late_symbols::LateSymbols;
use pmc_formats::export::parquet::tables::{SCHEMA, SCHEMA_KEY, StacksWriter, read_stacks};
use pmc_symbols::symbol::{SymbolOptions, SymbolProgress};
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, say};

/// Which tables to add names to.
#[derive(Debug)]
pub(super) struct SymbolizeRequest {
    /// Each table, and the file to write.
    tables: Vec<(PathBuf, PathBuf)>,
    symbols: SymbolOptions,
    is_quiet: bool,
}

impl SymbolizeArgs {
    /// # Errors
    /// Fails if several tables have one output, or an option is invalid.
    pub(super) fn request(self) -> Result<SymbolizeRequest> {
        let Self { files, output, symfs, lookup, quiet } = self;
        if output.is_some() && files.len() > 1 {
            return Err(Error::usage("-o requires a single table"));
        }
        if files.iter().chain(&output).any(|path| is_standard(path)) {
            return Err(Error::usage("pmc symbolize requires files, not standard input or output"));
        }
        let target = |file: PathBuf| {
            let to = output.clone().unwrap_or_else(|| file.clone());
            (file, to)
        };
        Ok(SymbolizeRequest {
            tables: files.into_iter().map(target).collect(),
            symbols: SymbolOptions { symfs, ..lookup.symbol_options()? },
            is_quiet: quiet,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if a file is not a table of stacks, or cannot be written. Files are replaced only when complete.
pub(super) fn run(request: &SymbolizeRequest) -> Result<Exit> {
    for (table, output) in &request.tables {
        report_panics(table);
        let open =
            || File::open(table).map_err(|error| Error::io(format!("opening {}", table.display()), error));
        let unreadable = |error| {
            Error::io(format!("reading {}", table.display()), error)
                .try_this("a table of stacks: pmc export --format parquet -o NAME writes NAME.stacks.parquet")
        };
        let mut symbols = LateSymbols::default();
        read_stacks(open()?, |stack| {
            symbols.collect(&stack);
            Ok(())
        })
        .map_err(unreadable)?;
        let failures = {
            let meter = Bars.begin("finding names", 0);
            let at = |p: SymbolProgress| meter.at(p.done as u64, p.total as u64);
            symbols.resolve(request.symbols.clone(), &at)?
        };
        let (mut added, mut missing) = (0u64, 0u64);
        let to = Destination { path: output, option: AdvisedOption::ExportFile, keeps: false };
        to.write(|out| {
            let written = |error| Error::output(output.display(), error);
            let mut writer = StacksWriter::new(out, &[(SCHEMA_KEY, SCHEMA)]).map_err(written)?;
            read_stacks(open()?, |stack| {
                let was_symbolized = stack.symbolized;
                let stack = symbols.apply(stack);
                added += u64::from(stack.symbolized && !was_symbolized);
                missing += u64::from(!stack.symbolized);
                writer.push(stack)
            })
            .map_err(|error| Error::io(format!("rewriting {}", table.display()), error))?;
            writer.finish().map_err(written)
        })?;
        if !request.is_quiet {
            say::note(summary(output, added, missing));
        }
        recording_quality::warn_of_names(failures);
    }
    Ok(Exit::Done)
}

/// Reports panics of the crate parquet as an error in this table, and ends pmc with this error's status. The
/// crate panics on some damaged tables. The table is replaced only later, when the new one is complete.
fn report_panics(table: &Path) {
    let name = table.display().to_string();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_some_and(|place| place.file().contains("parquet-")) {
            let error = Error::new(format!("{name} is damaged, or not a table of stacks that pmc wrote"));
            say::error(&error.try_this("export the recording again: pmc export --format parquet"));
            #[expect(clippy::exit, reason = "a panic cannot return an error")]
            std::process::exit(i32::from(Exit::Failure.code()));
        }
        before(panic);
    }));
}

fn summary(output: &Path, added: u64, missing: u64) -> String {
    let rest = match missing {
        0 => String::new(),
        _ => format!("; {missing} still lack some, because files with their build-ids were not found"),
    };
    format!("{}: added names to {added} stacks{rest}", output.display())
}
