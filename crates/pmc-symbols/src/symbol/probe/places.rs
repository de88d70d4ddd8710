//! Converts functions and lines to addresses at which to place probes.
//!
//! An inlined function has one address for each copy of its code. A line has one for each address at which
//! one of its statements begins.

use std::collections::BTreeSet;
use std::rc::Rc;

use gimli::{AttributeValue, Range, constants as dw};
use rustc_hash::FxHashSet;

use super::ProbedProgram;
use super::error::ProbeError;
use super::scopes::{ScopeKind, UnitScopes, has_name};
use super::variables::{AvailableVariable, FetchedValue, VariableScope};
use crate::address::{FileOffset, Svma};
use crate::symbol::demangle::demangle;
use crate::symbol::dwarf::units::holds_any;
use pmc_text::text::glob;

/// Where the user wants a probe. Requires `function`, `file` with `line`, or `address`.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlaceRequest<'r> {
    /// The function, or a pattern.
    pub function: Option<&'r str>,
    /// The source file, or the last components of its path.
    pub file: Option<&'r str>,
    /// The line number, relative to the function's first line if a function is given.
    pub line: Option<u32>,
    /// Bytes from the function's first instruction.
    pub offset: Option<u64>,
    /// Whether the probe is at the function's return.
    pub returns: bool,
    /// An address in the file.
    pub address: Option<u64>,
    /// Whether the probe reads variables. In unoptimized code, variables are valid only after the function's
    /// prologue.
    pub reads_variables: bool,
    /// Whether to ignore inlined copies of functions.
    pub without_inlined: bool,
}

/// An address for a probe.
pub struct FoundPlace<'a> {
    /// The requested function, or the function that contains the line.
    pub function: String,
    /// The address in the file.
    pub address: u64,
    /// The offset of the instruction in the file.
    pub file_offset: u64,
    /// The address of the function's first instruction, if the probe was moved past the prologue.
    pub before_prologue: Option<u64>,
    scope: Option<PlaceScope<'a>>,
}

#[derive(Clone)]
struct PlaceScope<'a> {
    unit: Rc<UnitScopes<'a>>,
    node: usize,
}

/// The source position of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// The function that contains the address, not an inlined one.
    pub function: String,
    /// Offset in bytes from the function's first instruction.
    pub offset: u64,
    /// The line number, relative to the function's first line; `None` if no line begins at the address.
    pub line: Option<u32>,
    /// The source file.
    pub file: Option<String>,
}

/// Whether a path ends in these components.
pub(super) fn is_file(path: &str, wanted: &str) -> bool {
    path.strip_suffix(wanted)
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || wanted.starts_with('/'))
}

/// Maximum length of names that are suggested. Many entries of a hostile file may share one long name.
const LONGEST_SUGGESTION: usize = 255;

/// Returns the last component of a path, for suggestions.
pub(super) fn file_name(path: &str) -> Option<String> {
    let (_, name) = path.rsplit_once('/')?;
    (name.len() <= LONGEST_SUGGESTION).then(|| name.to_owned())
}

impl<'a> ProbedProgram<'a> {
    /// Finds the addresses for a probe.
    ///
    /// # Errors
    /// Returns the reason why no address matches.
    pub fn places(&self, request: &PlaceRequest<'_>) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        let mut places = self.within_limit(|| match *request {
            PlaceRequest { address: Some(address), .. } => Ok(vec![self.at_address(address)?]),
            PlaceRequest { function: Some(function), line: Some(line), .. } => {
                self.at_function_line(function, request.file, line)
            }
            PlaceRequest { function: Some(function), .. } => self.at_function(function, request),
            PlaceRequest { file: Some(file), line: Some(line), .. } => self.at_file_line(file, line),
            _ => Ok(Vec::new()),
        })?;
        let mut seen = FxHashSet::default();
        places.retain(|place| seen.insert(place.address));
        Ok(places)
    }

    fn file_offset(&self, address: u64) -> Result<u64, ProbeError> {
        let offset = self.segments.offset(Svma(address)).map(|offset| offset.0);
        offset.ok_or(ProbeError::NoCode { path: self.path.clone(), address })
    }

    fn place(
        &self,
        function: String,
        address: u64,
        scope: Option<PlaceScope<'a>>,
    ) -> Result<FoundPlace<'a>, ProbeError> {
        let file_offset = self.file_offset(address)?;
        Ok(FoundPlace { function, address, file_offset, before_prologue: None, scope })
    }

    /// Iterates over the scopes of each unit.
    pub(super) fn scopes(&self) -> impl Iterator<Item = Rc<UnitScopes<'a>>> + '_ {
        self.dies.units().map(|unit| Rc::new(UnitScopes::read(unit)))
    }

    /// Returns the function whose code contains an address.
    fn function_at(&self, address: u64) -> Option<(Rc<UnitScopes<'a>>, usize)> {
        let may_read = || self.dies.work.steps.take(1);
        let units = self.dies.units().filter(|unit| holds_any(unit.dwarf, &unit.unit, &[address], may_read));
        units.map(|unit| Rc::new(UnitScopes::read(unit))).find_map(|unit| {
            let function = unit.function_at(address)?;
            Some((unit, function))
        })
    }

    /// Adds the first components to a name that lacks them: `m::S::get` may be `n::m::S::get`. Returns the
    /// name unchanged if a function has it, or if no name ends in it.
    ///
    /// # Errors
    /// Fails if the names of several functions end in it.
    pub(super) fn whole_name(&self, name: &str) -> Result<String, ProbeError> {
        if !name.contains("::") || glob::is_pattern(name) {
            return Ok(name.to_owned());
        }
        let mut names = self.elf_functions().names();
        for unit in self.scopes() {
            let linked =
                unit.of_kind(ScopeKind::Function).filter_map(|f| self.dies.linkage_name(&unit.die(f)));
            names.extend(linked.filter_map(|name| demangle(&name)));
        }
        let is_end = |whole: &String| whole.strip_suffix(name).is_some_and(|first| first.ends_with("::"));
        let mut found: Vec<String> = match names.iter().any(|whole| whole == name) {
            true => Vec::new(),
            false => names.into_iter().filter(is_end).collect(),
        };
        found.sort_unstable();
        found.dedup();
        match &*found {
            [] => Ok(name.to_owned()),
            [whole] => Ok(whole.clone()),
            _ => Err(ProbeError::AmbiguousFunction { path: self.path.clone(), name: name.to_owned(), found }),
        }
    }

    /// Returns the functions with this name, both those with code and abstract ones. If `file` is given,
    /// returns only functions declared in this file.
    pub(super) fn named_functions(&self, name: &str, file: Option<&str>) -> Vec<(Rc<UnitScopes<'a>>, usize)> {
        let mut found = Vec::new();
        for unit in self.scopes() {
            for node in unit.of_kind(ScopeKind::Function) {
                let die = unit.die(node);
                let is_declared = die.own(dw::DW_AT_declaration).is_some();
                let is_in_file = || {
                    let path = unit.declared(&self.dies, node).map(|(path, _)| path);
                    file.is_none_or(|file| path.is_some_and(|path| is_file(&path, file)))
                };
                if !is_declared && has_name(&self.dies, &die, name) && is_in_file() {
                    found.push((unit.clone(), node));
                }
            }
        }
        if found.is_empty() && file.is_none() {
            found = self.aliased_functions(name);
        }
        found
    }

    /// The functions that have this name only in the symbol table, such as `malloc` for `__libc_malloc`.
    fn aliased_functions(&self, name: &str) -> Vec<(Rc<UnitScopes<'a>>, usize)> {
        let mut entries: BTreeSet<u64> =
            self.elf_functions().find(name).into_iter().map(|function| function.address).collect();
        let mut found = Vec::new();
        for unit in self.scopes() {
            if entries.is_empty() {
                break;
            }
            entries.retain(|&address| {
                let function = unit.function_at(address);
                let function = function.filter(|&node| unit.die(node).entry_address() == Some(address));
                found.extend(function.map(|node| (unit.clone(), node)));
                function.is_none()
            });
        }
        found
    }

    /// Returns the inlined copies of these abstract functions.
    pub(super) fn inlined_copies(
        &self,
        functions: &[(Rc<UnitScopes<'a>>, usize)],
    ) -> Vec<(Rc<UnitScopes<'a>>, usize)> {
        let abstract_ones: FxHashSet<(bool, usize)> = functions
            .iter()
            .filter(|(unit, node)| !unit.die(*node).has_code())
            .map(|(unit, node)| unit.die(*node).position())
            .collect();
        if abstract_ones.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for unit in self.scopes() {
            for node in unit.of_kind(ScopeKind::Inlined) {
                let origin = self.dies.origin(&unit.die(node));
                if abstract_ones.contains(&origin.position()) {
                    found.push((unit.clone(), node));
                }
            }
        }
        found
    }

    fn name_of(&self, unit: &UnitScopes<'a>, node: usize) -> String {
        self.dies.name(&unit.die(node)).unwrap_or_default()
    }

    fn at_function(&self, name: &str, request: &PlaceRequest<'_>) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        let name = &*self.whole_name(name)?;
        let functions = self.named_functions(name, request.file);
        let mut copies = self.inlined_copies(&functions);
        let count = copies.len();
        if request.returns || request.without_inlined {
            copies.clear();
        }
        let shown = |unit: &UnitScopes<'a>, node| match glob::is_pattern(name) {
            true => self.name_of(unit, node),
            false => name.to_owned(),
        };
        // The first instruction, and the end of the code that follows it.
        let code = |unit: &UnitScopes<'a>, node| {
            let (die, holds) = (unit.die(node), |r: &Range, at| r.begin <= at && at < r.end);
            let entry = die.entry_address()?;
            let range = die.ranges().find(|range| holds(range, entry)).or_else(|| die.ranges().next())?;
            Some((entry, range.end.max(entry.saturating_add(1))))
        };
        let mut places = Vec::new();
        for (unit, node) in &functions {
            let Some((entry, end)) = code(unit, *node) else { continue };
            let scope = PlaceScope { unit: unit.clone(), node: *node };
            let after = unit.rows().after_prologue(entry, end).filter(|_| {
                request.reads_variables && !request.returns && request.offset.is_none() && !unit.is_optimized
            });
            let address = self.checked_offset(name, entry, end, request.offset)?;
            let place = self.place(shown(unit, *node), after.unwrap_or(address), Some(scope))?;
            places.push(FoundPlace { before_prologue: after.map(|_| entry), ..place });
        }
        for (unit, node) in copies {
            let Some((entry, end)) = code(&unit, node) else { continue };
            let address = self.checked_offset(name, entry, end, request.offset)?;
            places.push(self.place(shown(&unit, node), address, Some(PlaceScope { unit, node }))?);
        }
        if !places.is_empty() {
            return Ok(places);
        }
        if count > 0 && !request.without_inlined {
            return Err(ProbeError::InlinedReturn { name: name.to_owned(), count });
        }
        self.at_symbol(name, request)
    }

    fn checked_offset(
        &self,
        name: &str,
        entry: u64,
        end: u64,
        offset: Option<u64>,
    ) -> Result<u64, ProbeError> {
        let address = entry.checked_add(offset.unwrap_or(0)).filter(|address| *address < end);
        address.ok_or_else(|| ProbeError::OffsetBeyond {
            name: name.to_owned(),
            size: end.saturating_sub(entry),
        })
    }

    /// Finds a function without debug information.
    fn at_symbol(&self, name: &str, request: &PlaceRequest<'_>) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        let all = self.elf_functions();
        let found = all.find(name);
        if found.is_empty() || request.file.is_some() {
            return Err(self.no_function(name));
        }
        if request.reads_variables {
            return Err(self.no_debug_information(&format!("reading variables of {name}")));
        }
        found
            .into_iter()
            .map(|function| {
                let end = function.address.saturating_add(function.size.max(1));
                let address = self.checked_offset(name, function.address, end, request.offset)?;
                let shown = match glob::is_pattern(name) {
                    true => demangle(&function.name).unwrap_or_else(|| function.name.clone()),
                    false => name.to_owned(),
                };
                self.place(shown, address, None)
            })
            .collect()
    }

    pub(super) fn no_function(&self, name: &str) -> ProbeError {
        let all = self.elf_functions();
        let mut near = all.names();
        // Symbols may have a compiler's suffix (`price.constprop.0`).
        for unit in self.scopes() {
            let names = unit.of_kind(ScopeKind::Function).map(|node| self.name_of(&unit, node));
            near.extend(names.filter(|name| name.len() <= LONGEST_SUGGESTION));
        }
        near.sort_unstable();
        near.dedup();
        ProbeError::NoFunction {
            path: self.path.clone(),
            name: name.to_owned(),
            near,
            is_stripped: all.is_stripped,
            is_imported: all.is_imported(name),
            remedy: if all.is_stripped { self.remedy() } else { None },
        }
    }

    /// Returns the functions with this name, for finding their lines.
    pub(super) fn described_functions(
        &self,
        name: &str,
        file: Option<&str>,
    ) -> Result<Vec<(Rc<UnitScopes<'a>>, usize)>, ProbeError> {
        let name = &*self.whole_name(name)?;
        let functions = self.named_functions(name, file);
        if !functions.is_empty() {
            return Ok(functions);
        }
        Err(match file.is_none() && !self.elf_functions().find(name).is_empty() {
            true => self.no_debug_information(&format!("finding the lines of {name}")),
            false => self.no_function(name),
        })
    }

    fn at_function_line(
        &self,
        name: &str,
        file: Option<&str>,
        line: u32,
    ) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        let functions = self.described_functions(name, file)?;
        let mut search = LineSearch::default();
        for (unit, node) in &functions {
            let Some((path, first)) = unit.declared(&self.dies, *node) else { continue };
            let base = Some((name, first));
            self.search_line(unit, (&path, first.saturating_add(line)), base, &mut search)?;
        }
        let name = name.to_owned();
        search.places(&format!("{name}:{line}")).map(|mut places| {
            places.iter_mut().for_each(|place| place.function.clone_from(&name));
            places
        })
    }

    fn at_file_line(&self, file: &str, line: u32) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        if self.dies.is_empty() {
            return Err(self.no_debug_information("finding lines"));
        }
        let (mut search, mut known) = (LineSearch::default(), BTreeSet::new());
        let mut is_known = false;
        for unit in self.scopes() {
            let paths: BTreeSet<String> = unit.rows().paths().map(str::to_owned).collect();
            for path in paths.iter().filter(|path| is_file(path, file)) {
                is_known = true;
                self.search_line(&unit, (path, line), None, &mut search)?;
            }
            known.extend(paths.iter().filter_map(|path| file_name(path)));
        }
        if !is_known {
            let near = known.into_iter().collect();
            return Err(ProbeError::NoSourceFile { path: self.path.clone(), file: file.to_owned(), near });
        }
        search.places(&format!("{file}:{line}"))
    }

    /// Searches a unit for statements of a line. `base` is the function to which the user's line number is
    /// relative.
    fn search_line(
        &self,
        unit: &Rc<UnitScopes<'a>>,
        (path, line): (&str, u32),
        base: Option<(&str, u32)>,
        search: &mut LineSearch<'a>,
    ) -> Result<(), ProbeError> {
        let spelled = |line: u32| match base {
            Some((name, first)) => format!("{name}:{}", line.saturating_sub(first)),
            None => format!("{}:{line}", path.rsplit('/').next().unwrap_or(path)),
        };
        let rows = unit.rows();
        let mut addresses = BTreeSet::new();
        for row in rows.rows().filter(|row| row.is_statement && rows.path_of(row) == path) {
            match row.line {
                at if at == line => _ = addresses.insert(row.address),
                at if at > line && search.next.as_ref().is_none_or(|(next, _)| at < *next) => {
                    search.next = Some((at, spelled(at)));
                }
                _ => {}
            }
        }
        addresses.extend(self.code_of_declaration(unit, path, line));
        for address in addresses {
            if let Some(other) = self.other_line(unit, address, path, line) {
                search.shared.get_or_insert_with(|| spelled(other));
                continue;
            }
            let Some(function) = unit.function_at(address) else { continue };
            let node = self.scope_of_line(unit, address, path, line).unwrap_or(function);
            let scope = PlaceScope { unit: unit.clone(), node };
            search.found.push(self.place(self.name_of(unit, function), address, Some(scope))?);
        }
        Ok(())
    }

    /// Returns the addresses of the first instructions of functions that are declared on this line or inlined
    /// into it.
    fn code_of_declaration(&self, unit: &UnitScopes<'a>, path: &str, line: u32) -> Vec<u64> {
        let declared = unit.of_kind(ScopeKind::Function).filter(|&node| {
            unit.die(node).has_code()
                && unit.declared(&self.dies, node).is_some_and(|(file, at)| at == line && file == path)
        });
        let called = unit
            .of_kind(ScopeKind::Inlined)
            .filter(|&node| self.call_line(unit, node).is_some_and(|(file, at)| at == line && file == path));
        declared.chain(called).filter_map(|node| unit.die(node).entry_address()).collect()
    }

    /// Returns the file and line of the call that was inlined.
    pub(super) fn call_line<'u>(&self, unit: &'u UnitScopes<'a>, node: usize) -> Option<(&'u str, u32)> {
        let die = unit.die(node);
        let file = match die.own(dw::DW_AT_call_file)? {
            AttributeValue::FileIndex(file) => file,
            value => value.udata_value()?,
        };
        let line = die.own(dw::DW_AT_call_line)?.udata_value()?;
        Some((unit.rows().path(file)?, u32::try_from(line).ok()?))
    }

    /// Returns the line to which an instruction belongs, if this is another line of the same file. A
    /// function's first instruction belongs to the line of its declaration, and any other instruction to the
    /// line of its first statement.
    pub(super) fn other_line(
        &self,
        unit: &UnitScopes<'a>,
        address: u64,
        path: &str,
        line: u32,
    ) -> Option<u32> {
        let function = unit.function_at(address)?;
        let (file, own) = match unit.die(function).entry_address() == Some(address) {
            true => unit.declared(&self.dies, function)?,
            false => {
                let row = unit.rows().first_at(address)?;
                (unit.rows().path_of(row).to_owned(), row.line)
            }
        };
        (file == path && own != line).then_some(own)
    }

    /// Returns the function, which may be inlined, whose source contains the line.
    fn scope_of_line(&self, unit: &UnitScopes<'a>, address: u64, path: &str, line: u32) -> Option<usize> {
        let scopes = unit.scopes_at(address).into_iter();
        let begins = |scope: usize| {
            let declared = unit.declared(&self.dies, scope);
            declared.filter(|(file, first)| file == path && *first <= line).map(|(_, first)| first)
        };
        let functions = scopes.filter(|&scope| unit.nodes[scope].kind != ScopeKind::Block);
        functions.filter_map(|scope| Some((begins(scope)?, scope))).max().map(|(_, scope)| scope)
    }

    fn at_address(&self, address: u64) -> Result<FoundPlace<'a>, ProbeError> {
        let Some((unit, function)) = self.function_at(address) else {
            let function = self.elf_functions().at(address);
            let name = function.map_or_else(|| format!("abs_{address:x}"), |function| function.name.clone());
            return self.place(name, address, None);
        };
        let node = unit.innermost_function_at(address).unwrap_or(function);
        let name = self.name_of(&unit, function);
        self.place(name, address, Some(PlaceScope { unit, node }))
    }

    fn variables_at<T>(
        &self,
        place: &FoundPlace<'a>,
        ask: impl FnOnce(&VariableScope<'_, 'a>) -> T,
    ) -> Option<T> {
        let scope = place.scope.as_ref()?;
        Some(ask(&VariableScope {
            dies: &self.dies,
            frames: &self.frames,
            unit: &scope.unit,
            scope: scope.node,
            address: place.address,
            static_base: place.address.wrapping_sub(place.file_offset),
        }))
    }

    /// Returns what a probe must read to get the value of an expression at an address.
    ///
    /// # Errors
    /// Fails if the variable does not exist or a probe cannot read it.
    pub fn fetch(
        &self,
        place: &FoundPlace<'a>,
        expression: &str,
        cast: Option<&str>,
    ) -> Result<FetchedValue, ProbeError> {
        let purpose = || format!("reading variables of {}", place.function);
        self.within_limit(|| {
            let fetched = self.variables_at(place, |scope| scope.fetch(expression, cast));
            fetched.unwrap_or_else(|| Err(self.no_debug_information(&purpose())))
        })
    }

    /// Returns the parameters that a probe can read at an address and, if `all` is set, the other local
    /// variables too.
    ///
    /// # Errors
    /// Fails if there is no debug information.
    pub fn local_names(&self, place: &FoundPlace<'a>, all: bool) -> Result<Vec<String>, ProbeError> {
        self.described_at(place, |scope| scope.local_names(all))
    }

    /// Returns the types and names of the variables that a probe can read at an address.
    ///
    /// # Errors
    /// Fails if there is no debug information.
    pub fn available(
        &self,
        place: &FoundPlace<'a>,
        globals: bool,
    ) -> Result<Vec<AvailableVariable>, ProbeError> {
        self.described_at(place, |scope| scope.available(globals))
    }

    fn described_at<T>(
        &self,
        place: &FoundPlace<'a>,
        ask: impl FnOnce(&VariableScope<'_, 'a>) -> T,
    ) -> Result<T, ProbeError> {
        let purpose = || format!("finding the variables of {}", place.function);
        self.within_limit(|| {
            self.variables_at(place, ask).ok_or_else(|| self.no_debug_information(&purpose()))
        })
    }

    /// Returns the source position of an address.
    pub fn source_place(&self, address: u64) -> Option<SourcePlace> {
        self.dies.work.steps.restart();
        let Some((unit, function)) = self.function_at(address) else {
            let function = self.elf_functions().at(address)?;
            let offset = address - function.address;
            return Some(SourcePlace { function: function.name.clone(), offset, line: None, file: None });
        };
        let entry = unit.die(function).entry_address()?;
        let declared = unit.declared(&self.dies, function);
        let row = unit.rows().covering(address);
        let line = match &declared {
            Some((path, first)) => row
                .filter(|row| row.address == address && unit.rows().path_of(row) == path)
                .and_then(|row| row.line.checked_sub(*first)),
            None => None,
        };
        Some(SourcePlace {
            function: self.name_of(&unit, function),
            offset: address.wrapping_sub(entry),
            line: if address == entry { Some(0) } else { line },
            file: declared.map(|(path, _)| path),
        })
    }

    /// Returns the address of the instruction at this file offset.
    pub fn address_of(&self, file_offset: u64) -> Option<u64> {
        self.segments.address(FileOffset(file_offset)).map(|address| address.0)
    }
}

/// The results of a search for a line.
#[derive(Default)]
struct LineSearch<'a> {
    found: Vec<FoundPlace<'a>>,
    /// The next line with code, as a number and as the user would type it.
    next: Option<(u32, String)>,
    /// Another line to which an instruction of the requested line belongs, as the user would type it.
    shared: Option<String>,
}

impl<'a> LineSearch<'a> {
    fn places(mut self, typed: &str) -> Result<Vec<FoundPlace<'a>>, ProbeError> {
        self.found.sort_by_key(|place| place.address);
        match (self.found.is_empty(), self.shared) {
            (false, _) => Ok(self.found),
            (true, Some(instead)) => Err(ProbeError::SharedLine { place: typed.to_owned(), instead }),
            (true, None) => {
                let next = self.next.map(|(_, spelled)| spelled);
                Err(ProbeError::NoLine { place: typed.to_owned(), next })
            }
        }
    }
}
