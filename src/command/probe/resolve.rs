//! Converts definitions to the probes that they create.

use std::cell::LazyCell;
use std::path::Path;

use super::request::{ProbeRequest, ProbeTarget};
use pmc_events::event::{
    KernelFunction, ProbeArgument, ProbeNames, ProbePoint, ProbeSyntax, kernel_functions, probe_event_name,
    probe_group,
};
use pmc_symbols::symbol::{
    FetchedValue, FoundPlace, PlaceRequest, ProbeError, ProbeFile, ProbedProgram, SymbolOptions,
};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::probe_event::{ProbeEvent, ProbeList};
use pmc_text::text::{glob, nearest};

/// The value that a probe reads if the variable does not exist at one of its places. As in perf, this is
/// needed because all probes of an event must read the same arguments.
const UNAVAILABLE: &str = "\\0xdeade12d";
/// Like [`UNAVAILABLE`], for a string. The kernel shows it as an empty string.
const UNAVAILABLE_TEXT: &str = "\\\"unavailable\"";

/// Finds the places and values of definitions, and chooses names for the probes.
pub(super) fn resolve(
    definitions: &[ProbeSyntax],
    request: &ProbeRequest,
    host: &Host,
    names: &mut ProbeNames,
) -> Result<Vec<NewProbe>> {
    let mut all = |find: &dyn Fn(&ProbeSyntax) -> Result<Vec<ResolvedPlace>>| {
        let mut all = Vec::new();
        for definition in definitions {
            let found = find(definition)?;
            if found.len() > request.most_places {
                let count = found.len();
                return Err(Error::new(format!("{count} places match, more than {}", request.most_places))
                    .try_options(format!("--max-probes {count}, or a narrower pattern")));
            }
            name(definition, request, found, names, &mut all)?;
        }
        Ok(all)
    };
    match &request.target {
        ProbeTarget::Program(path) => open(path)?
            .examine(|program| all(&|definition| in_program(definition, request, program, path)))?,
        ProbeTarget::Kernel { module } => {
            let kallsyms = LazyCell::new(|| host.kallsyms());
            all(&|definition| in_kernel(definition, module.as_deref(), || kallsyms.as_deref()))
        }
    }
}

/// Opens the program to probe.
pub(super) fn open(path: &Path) -> Result<ProbeFile> {
    Ok(ProbeFile::open(path, &SymbolOptions::from_environment())?)
}

/// A probe to be added.
pub(super) struct NewProbe {
    pub(super) event: ProbeEvent,
    /// The place as the user typed it.
    pub(super) place: String,
}

/// A place with its values. The probe does not have a name yet.
struct ResolvedPlace {
    function: String,
    place: String,
    arguments: Vec<String>,
}

/// Chooses the names of a definition's probes. Probes in the same function share a name.
fn name(
    definition: &ProbeSyntax,
    request: &ProbeRequest,
    places: Vec<ResolvedPlace>,
    names: &mut ProbeNames,
    all: &mut Vec<NewProbe>,
) -> Result<()> {
    let (list, program) = match &request.target {
        ProbeTarget::Program(path) => (ProbeList::Programs, Some(path.as_path())),
        ProbeTarget::Kernel { .. } => (ProbeList::Kernel, None),
    };
    let group = definition.group.clone().unwrap_or_else(|| probe_group(program));
    let mut chosen: Vec<(String, String)> = Vec::new();
    for place in places {
        let key = definition.event.clone().unwrap_or_else(|| place.function.clone());
        let name = match chosen.iter().find(|(function, _)| *function == key) {
            Some((_, name)) => name.clone(),
            None => {
                let line = definition.point.line.filter(|_| definition.point.function.is_some());
                let wanted = match &definition.event {
                    Some(event) => event.clone(),
                    None => probe_event_name(&place.function, line, definition.point.returns),
                };
                let is_pattern = definition.point.function.as_deref().is_some_and(glob::is_pattern);
                let name = names.reserve(&group, &wanted, request.forces || is_pattern);
                let name = name.ok_or_else(|| {
                    Error::new(format!("the event {group}:{wanted} exists"))
                        .try_this(format!("pmc probe -d {group}:{wanted} deletes it"))
                        .try_options("-f adds another one, with a suffix; NAME=PLACE chooses a name")
                })?;
                chosen.push((key, name.clone()));
                name
            }
        };
        let event = ProbeEvent {
            list,
            returns: definition.point.returns,
            group: group.clone(),
            name,
            place: place.place,
            arguments: place.arguments,
        };
        all.push(NewProbe { event, place: typed_place(&definition.point, &place.function) });
    }
    Ok(())
}

/// The place as the user typed it.
pub(super) fn typed_place(point: &ProbePoint, function: &str) -> String {
    let mut text = match (&point.function, &point.file, point.address) {
        (Some(name), _, _) if glob::is_pattern(name) => function.to_owned(),
        (Some(name), Some(file), _) => format!("{name}@{file}"),
        (Some(name), None, _) => name.clone(),
        (None, Some(file), _) => file.clone(),
        (None, None, address) => format!("{:#x}", address.unwrap_or(0)),
    };
    if let Some(line) = point.line {
        text += &format!(":{line}");
    }
    if let Some(offset) = point.offset {
        text += &format!("+{offset}");
    }
    if point.returns {
        text += "%return";
    }
    text
}

/// Returns the request that searches a program for a place.
pub(super) fn place_request<'p>(point: &'p ProbePoint, request: &ProbeRequest) -> PlaceRequest<'p> {
    PlaceRequest {
        function: point.function.as_deref(),
        file: point.file.as_deref(),
        line: point.line,
        offset: point.offset,
        returns: point.returns,
        address: point.address,
        reads_variables: false,
        without_inlined: !request.probes_inlined,
    }
}

fn in_program(
    definition: &ProbeSyntax,
    request: &ProbeRequest,
    program: &ProbedProgram<'_>,
    path: &Path,
) -> Result<Vec<ResolvedPlace>> {
    let reads_variables = definition.reads_variables();
    let places =
        program.places(&PlaceRequest { reads_variables, ..place_request(&definition.point, request) })?;
    if let Some(entry) = places.iter().find_map(|place| place.before_prologue) {
        say::note(format!(
            "the program is not optimized: probing after the prologue, where parameters are valid (use {entry:#x} to probe the first instruction)"
        ));
    }
    let mut values: Vec<Vec<Result<ResolvedValue, ProbeError>>> = Vec::new();
    let arguments = expand(definition, program, &places)?;
    for place in &places {
        values.push(arguments.iter().map(|argument| value(argument, program, place)).collect());
    }
    let mut found = Vec::new();
    for (place, values_here) in places.iter().zip(&values) {
        let mut texts = Vec::new();
        for (number, here) in values_here.iter().enumerate() {
            let text = match here {
                Ok(value) => value.text(),
                Err(error) => {
                    let elsewhere = values.iter().find_map(|values| values[number].as_ref().ok());
                    let Some(elsewhere) = elsewhere.filter(|_| error.is_location()) else {
                        return Err(error.clone().into());
                    };
                    say::note(format!("{}: {error}; the probe shows 0xdeade12d", position(program, place)));
                    elsewhere.unavailable()
                }
            };
            texts.push(text);
        }
        make_names_distinct(&mut texts, &arguments)?;
        found.push(ResolvedPlace {
            function: place.function.clone(),
            place: format!("{}:{:#x}", path.display(), place.file_offset),
            arguments: texts,
        });
    }
    Ok(found)
}

/// Describes an address by its function and the offset within it, such as `main+491`.
pub(super) fn position(program: &ProbedProgram<'_>, place: &FoundPlace<'_>) -> String {
    match program.source_place(place.address) {
        Some(source) => format!("{}+{}", source.function, source.offset),
        None => format!("{:#x}", place.address),
    }
}

/// Makes the names of values distinct: appends `_1`, `_2` and so on to names that pmc chose.
///
/// # Errors
/// Fails if the user gave the same name twice. The kernel would reject it too, but without a reason.
fn make_names_distinct(texts: &mut [String], arguments: &[ProbeArgument]) -> Result<()> {
    let mut taken: Vec<String> = Vec::new();
    for (at, argument) in arguments.iter().enumerate() {
        let name = match argument {
            ProbeArgument::Variable { name, .. } => name.clone(),
            // The kernel names a value without a name by its position.
            ProbeArgument::Verbatim(text) => Some(match text.split_once('=') {
                Some((name, _)) => name.to_owned(),
                None => format!("arg{}", at + 1),
            }),
            ProbeArgument::Parameters | ProbeArgument::Variables => None,
        };
        let Some(name) = name else { continue };
        if taken.contains(&name) {
            return Err(Error::usage(format!("two arguments are named {name}"))
                .try_this(format!("{name}2=… gives one of them another name")));
        }
        taken.push(name);
    }
    for (text, argument) in texts.iter_mut().zip(arguments) {
        let ProbeArgument::Variable { name: None, .. } = argument else { continue };
        let Some((wanted, value)) = text.split_once('=') else { continue };
        let mut name = wanted.to_owned();
        let mut suffix = 0;
        while taken.contains(&name) {
            suffix += 1;
            name = format!("{wanted}_{suffix}");
        }
        *text = format!("{name}={value}");
        taken.push(name);
    }
    Ok(())
}

/// A value in the kernel's notation.
enum ResolvedValue {
    Verbatim(String),
    Fetched { name: String, fetched: FetchedValue },
}

impl ResolvedValue {
    fn text(&self) -> String {
        match self {
            Self::Verbatim(text) => text.clone(),
            Self::Fetched { name, fetched } => with_kind(name, &fetched.place, fetched.kind.as_deref()),
        }
    }

    /// Returns the value to use at places where the variable does not exist.
    fn unavailable(&self) -> String {
        match self {
            Self::Verbatim(text) => text.clone(),
            Self::Fetched { name, fetched } => {
                let kind = fetched.kind.as_deref();
                let is_text = kind.is_some_and(|kind| kind.ends_with("string"));
                with_kind(name, if is_text { UNAVAILABLE_TEXT } else { UNAVAILABLE }, kind)
            }
        }
    }
}

fn with_kind(name: &str, place: &str, kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("{name}={place}:{kind}"),
        None => format!("{name}={place}"),
    }
}

fn value<'a>(
    argument: &ProbeArgument,
    program: &ProbedProgram<'a>,
    place: &FoundPlace<'a>,
) -> Result<ResolvedValue, ProbeError> {
    match argument {
        ProbeArgument::Variable { name, expression, kind } => {
            let fetched = program.fetch(place, expression, kind.as_deref())?;
            let name = name.clone().unwrap_or_else(|| fetched.name.clone());
            Ok(ResolvedValue::Fetched { name, fetched })
        }
        ProbeArgument::Verbatim(text) => Ok(ResolvedValue::Verbatim(text.clone())),
        ProbeArgument::Parameters | ProbeArgument::Variables => Ok(ResolvedValue::Verbatim(String::new())),
    }
}

/// Replaces `$params` and `$vars` with the variables that a probe can read at the first place.
fn expand<'a>(
    definition: &ProbeSyntax,
    program: &ProbedProgram<'a>,
    places: &[FoundPlace<'a>],
) -> Result<Vec<ProbeArgument>> {
    let mut arguments = Vec::new();
    for argument in &definition.arguments {
        let all = match argument {
            ProbeArgument::Variables => true,
            ProbeArgument::Parameters => false,
            argument => {
                arguments.push(argument.clone());
                continue;
            }
        };
        let Some(first) = places.first() else { continue };
        let mut omitted = Vec::new();
        for name in program.local_names(first, all)? {
            match program.fetch(first, &name, None) {
                Ok(_) => {
                    arguments.push(ProbeArgument::Variable { name: None, expression: name, kind: None });
                }
                Err(error) => omitted.push(error.to_string()),
            }
        }
        omitted.iter().for_each(|reason| say::note(format!("omitted a variable: {reason}")));
    }
    Ok(arguments)
}

fn in_kernel<'k>(
    definition: &ProbeSyntax,
    module: Option<&str>,
    kallsyms: impl FnOnce() -> Option<&'k [u8]>,
) -> Result<Vec<ResolvedPlace>> {
    let point = &definition.point;
    let no_debug = |what: &str| {
        Error::new(format!("pmc cannot find {what} of the kernel"))
            .why("pmc does not read the kernel's debug information")
            .try_this("FUNCTION, FUNCTION+OFFSET or FUNCTION%return, with %REGISTER, $argN or $retval")
            .try_options("-x FILE, if you mean a program")
    };
    let mut arguments = Vec::new();
    for argument in &definition.arguments {
        match argument {
            ProbeArgument::Verbatim(text) => arguments.push(text.clone()),
            _ => return Err(no_debug("variables")),
        }
    }
    make_names_distinct(&mut arguments, &definition.arguments)?;
    if point.needs_lines() {
        return Err(no_debug("source lines"));
    }
    let resolved =
        |place: String, function: String| ResolvedPlace { function, place, arguments: arguments.clone() };
    if let Some(address) = point.address {
        return Ok(vec![resolved(format!("{address:#x}"), format!("abs_{address:x}"))]);
    }
    let wanted = point.function.as_deref().unwrap_or_default();
    let offset = point.offset.unwrap_or(0);
    match kernel_functions(kallsyms(), module, wanted) {
        Ok(found) => {
            let place = |function: KernelFunction| resolved(function.place(offset), function.name);
            Ok(found.into_iter().map(place).collect())
        }
        Err(all) => {
            let whose =
                module.map_or_else(|| "the kernel".to_owned(), |module| format!("the module {module}"));
            let error = Error::new(format!("{whose} has no function `{wanted}`"))
                .why("inlined kernel functions cannot be probed without the kernel's debug information");
            let near = nearest(wanted, all.iter().map(String::as_str), 3);
            let error = near.into_iter().fold(error, |error, name| error.try_this(name.to_owned()));
            Err(error.try_options("-x FILE, if you mean a program"))
        }
    }
}
