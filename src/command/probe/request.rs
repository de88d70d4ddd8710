//! What `pmc probe` does, and how its options request it.

use std::path::{Path, PathBuf};

use crate::cli::probe::ProbeArgs;
use pmc_events::event::{LineRange, ProbePoint, ProbeSyntax};
use pmc_sys::error::{Error, Result};
use pmc_view::probe::NameFilter;

/// What to probe.
#[derive(Debug)]
pub(super) enum ProbeTarget {
    /// A program or library, by its real path.
    Program(PathBuf),
    /// The kernel, or one of its modules.
    Kernel { module: Option<String> },
}

/// What to do.
#[derive(Debug)]
pub(super) enum ProbeAction {
    Add(Vec<ProbeSyntax>),
    /// Print the definitions.
    Print(Vec<ProbeSyntax>),
    List(Option<String>),
    Lines(LineRange),
    Variables(Vec<ProbePoint>),
    Functions,
}

/// What `pmc probe` does, and where.
#[derive(Debug)]
pub(in crate::command) struct ProbeRequest {
    /// The events to delete first, as names or patterns.
    pub(super) deletes: Vec<String>,
    /// What to do after deleting events; `None` to delete only.
    pub(super) action: Option<ProbeAction>,
    pub(super) target: ProbeTarget,
    pub(super) is_dry_run: bool,
    /// Whether a probe gets a suffix if its name is already in use.
    pub(super) forces: bool,
    /// Whether to show variables outside of functions.
    pub(super) shows_globals: bool,
    pub(super) probes_inlined: bool,
    pub(super) most_places: usize,
    /// The functions or variables to show.
    pub(super) filter: NameFilter,
    pub(super) is_quiet: bool,
    pub(super) is_verbose: bool,
}

impl ProbeArgs {
    /// Converts the options.
    ///
    /// # Errors
    /// Fails if the definition in the operands is invalid, no action is given, or the program does not exist.
    pub(in crate::command) fn request(mut self) -> Result<ProbeRequest> {
        // As in perf, an absolute path before the definition is the program.
        let is_path = self.words.first().is_some_and(|first| first.starts_with('/'));
        if is_path && self.exec.is_none() && self.module.is_none() {
            self.exec = Some(self.words.remove(0).into());
        }
        let usual = if self.funcs.is_some() { "!_*".into() } else { NameFilter::default() };
        Ok(ProbeRequest {
            target: match &self.exec {
                Some(path) => ProbeTarget::Program(real_path(path)?),
                None => ProbeTarget::Kernel { module: self.module.clone() },
            },
            filter: self.funcs.clone().flatten().or(self.filter.clone()).unwrap_or(usual),
            is_dry_run: self.dry_run,
            forces: self.force,
            shows_globals: self.externs,
            probes_inlined: !self.no_inlines,
            most_places: self.max_probes,
            is_quiet: self.quiet,
            is_verbose: self.verbose > 0,
            deletes: self.del.clone(),
            action: self.action()?,
        })
    }

    fn action(self) -> Result<Option<ProbeAction>> {
        if let Some(pattern) = self.list {
            return Ok(Some(ProbeAction::List(pattern.or_else(|| self.words.into_iter().next()))));
        }
        if let Some(lines) = self.line {
            return Ok(Some(ProbeAction::Lines(lines)));
        }
        if !self.vars.is_empty() {
            return Ok(Some(ProbeAction::Variables(self.vars)));
        }
        if self.funcs.is_some() {
            return Ok(Some(ProbeAction::Functions));
        }
        if !self.print.is_empty() {
            return Ok(Some(ProbeAction::Print(self.print)));
        }
        let mut definitions = self.add;
        if !self.words.is_empty() {
            definitions.push(self.words.join(" ").parse()?);
        }
        match (definitions.is_empty(), self.del.is_empty()) {
            (true, false) => Ok(None),
            (true, true) => Err(Error::usage("no probe is given")
                .try_this("pmc probe -x FILE FUNCTION adds a probe, pmc probe -l lists all probes")),
            (false, _) => Ok(Some(ProbeAction::Add(definitions))),
        }
    }
}

/// Returns the path that the kernel and other tools use for the program.
fn real_path(path: &Path) -> Result<PathBuf> {
    let real =
        path.canonicalize().map_err(|error| Error::io(format!("opening {}", path.display()), error))?;
    // The kernel splits the line at white space, and treats everything after a # as a comment.
    let is_plain = real.to_str().is_some_and(|text| !text.contains(|c: char| c.is_whitespace() || c == '#'));
    match is_plain {
        true => Ok(real),
        false => Err(Error::new(format!("{} cannot be probed", real.display()))
            .why("a kernel probe definition cannot contain a path with white space or #")
            .try_this("copy or rename the file")),
    }
}
