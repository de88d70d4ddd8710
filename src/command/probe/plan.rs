//! Converts the parsed options of `pmc probe` into a plan.

use std::path::{Path, PathBuf};

use crate::cli::probe::ProbeArgs;
use pmc_events::event::{LineRange, ProbePoint, ProbeSyntax, parse_point};
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

/// Settings of `pmc probe`.
pub(in crate::command) struct ProbePlan {
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
    pub(super) filter: NameFilter,
    pub(super) is_quiet: bool,
    pub(super) is_verbose: bool,
}

impl ProbePlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if a definition is invalid, no action is given, or the program does not exist.
    pub(in crate::command) fn new(mut typed: ProbeArgs) -> Result<Self> {
        // As in perf, an absolute path before the definition is the program.
        let is_path = typed.definition.first().is_some_and(|first| first.starts_with('/'));
        if is_path && typed.exec.is_none() && typed.module.is_none() {
            typed.exec = Some(typed.definition.remove(0).into());
        }
        let target = match &typed.exec {
            Some(path) => ProbeTarget::Program(real_path(path)?),
            None => ProbeTarget::Kernel { module: typed.module.clone() },
        };
        let is_function_list = typed.funcs.is_some();
        let pattern = typed.funcs.clone().flatten().or_else(|| typed.filter.clone());
        let filter = match (pattern, is_function_list) {
            (Some(pattern), _) => NameFilter::parse(&pattern),
            (None, true) => NameFilter::parse("!_*"),
            (None, false) => NameFilter::default(),
        };
        let deletes = std::mem::take(&mut typed.del);
        Ok(Self {
            is_dry_run: typed.dry_run,
            forces: typed.force,
            shows_globals: typed.externs,
            probes_inlined: !typed.no_inlines,
            most_places: typed.max_probes,
            is_quiet: typed.quiet,
            is_verbose: typed.verbose > 0,
            action: action(typed, !deletes.is_empty())?,
            deletes,
            target,
            filter,
        })
    }
}

fn action(typed: ProbeArgs, deletes: bool) -> Result<Option<ProbeAction>> {
    let parse = |text: &String| ProbeSyntax::parse(text).map_err(Error::from);
    if let Some(pattern) = typed.list {
        let pattern = pattern.or_else(|| typed.definition.into_iter().next());
        return Ok(Some(ProbeAction::List(pattern)));
    }
    if let Some(lines) = typed.line {
        return Ok(Some(ProbeAction::Lines(LineRange::parse(&lines)?)));
    }
    if !typed.vars.is_empty() {
        let points: std::result::Result<_, _> = typed.vars.iter().map(|text| parse_point(text)).collect();
        return Ok(Some(ProbeAction::Variables(points?)));
    }
    if typed.funcs.is_some() {
        return Ok(Some(ProbeAction::Functions));
    }
    if !typed.print.is_empty() {
        let definitions: Result<_> = typed.print.iter().map(parse).collect();
        return Ok(Some(ProbeAction::Print(definitions?)));
    }
    let mut definitions: Vec<ProbeSyntax> = typed.add.iter().map(parse).collect::<Result<_>>()?;
    if !typed.definition.is_empty() {
        definitions.push(parse(&typed.definition.join(" "))?);
    }
    match (definitions.is_empty(), deletes) {
        (true, true) => Ok(None),
        (true, false) => Err(Error::usage("no probe is given")
            .try_this("pmc probe -x FILE FUNCTION adds a probe, pmc probe -l lists all probes")),
        (false, _) => Ok(Some(ProbeAction::Add(definitions))),
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
