//! The calls at each location, including inlined ones.
//!
//! Receives locations and the symbolizer's results. Decides which placeholder to show if a name or a module
//! is missing.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::strings::{StringId, StringTable};
use crate::session::{CodeLocation, Module, ModuleKind};
use pmc_symbols::symbol::{FunctionId, ResolvedFrame, SymbolNames};
use pmc_sys::abi::CpuMode;

/// One function at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocationCall {
    /// The module's short name.
    pub dso: StringId,
    /// The function, with its parameters if another function has the same name without.
    pub symbol: StringId,
    /// The function without parameters, by which functions of runtimes and libraries are recognized.
    pub(crate) short: StringId,
    /// The function's source file.
    pub file: Option<StringId>,
    /// Line in that file; 0 if unknown.
    pub line: u32,
    /// Size of the function's code in bytes; 0 if unknown.
    pub(crate) size: u32,
    /// Start address of the function's code, in the same address space as [`CodeLocation::offset`]; `None` if
    /// unknown or inlined.
    pub start: Option<NonZeroU64>,
    /// CPU mode of the code.
    pub level: CpuMode,
    /// Whether the call is inlined into the next outer function.
    pub inlined: bool,
    /// Whether the function's name comes from a symbol. Otherwise the name is a placeholder that describes
    /// the function's location.
    pub named: bool,
}

impl LocationCall {
    /// Creates a call without further details.
    pub(crate) fn new(dso: StringId, symbol: StringId, level: CpuMode, named: bool) -> Self {
        Self {
            dso,
            symbol,
            short: symbol,
            file: None,
            line: 0,
            size: 0,
            start: None,
            level,
            inlined: false,
            named,
        }
    }
}

/// How functions and modules are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameStyle {
    /// Whether names are shown in their mangled form.
    pub raw: bool,
    /// Whether generated code has the same names in all runs of a program, for comparisons of recordings.
    pub shared: bool,
    /// Functions that are shown with parameters, because another recording has several of this name.
    pub spelled_out: Arc<BTreeSet<Arc<str>>>,
}

/// The calls of all locations.
#[derive(Debug, Default)]
pub struct LocationCalls {
    calls: Vec<LocationCall>,
    /// For each location, the index range of its calls (end exclusive).
    ranges: Vec<(u32, u32)>,
    modules: Vec<Option<u32>>,
    style: NameStyle,
    /// Whether the calls are those of an imported profile. The import made up their addresses and sizes.
    pub(crate) is_imported: bool,
    /// Cached strings that many locations share: the names of modules and the placeholders for their code.
    /// The first entry is for unmapped code. The modules follow in the order of their numbers.
    of_module: Vec<Option<(StringId, Option<StringId>)>>,
    /// Cached names of functions.
    of_function: FxHashMap<FunctionId, (StringId, StringId)>,
}

/// Name shown for an unknown module.
pub const UNKNOWN: &str = "[unknown]";
/// Name shown for unmapped code.
pub(crate) const UNMAPPED: &str = "[not mapped]";

/// Returns the name of code whose module is known but whose function is not: the module's name in brackets.
fn placeholder(name: String) -> String {
    if name.starts_with('[') { name } else { format!("[{name}]") }
}

impl LocationCalls {
    /// Creates an empty list.
    pub(crate) fn new(style: NameStyle, is_imported: bool) -> Self {
        Self { style, is_imported, ..Self::default() }
    }

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.ranges.clear();
        self.modules.clear();
        self.of_module.clear();
        self.of_function.clear();
    }

    /// Adds the next location. All locations must use the same lists of modules, names and strings. `frames`
    /// are the frames from the symbolizer, innermost first. `address` is the location's address in the
    /// module's own address space, like the start addresses of functions.
    pub(crate) fn add(
        &mut self,
        location: &CodeLocation,
        module: Option<&Module>,
        (frames, address): (&[ResolvedFrame], Option<u64>),
        names: Option<&SymbolNames>,
        texts: &mut StringTable,
    ) {
        let start = self.calls.len() as u32;
        let shared = self.style.shared;
        let module_name = |module: &Module| if shared { shared_name(module) } else { module.short_name() };
        let dso = || (texts.add(&module.map_or_else(|| UNKNOWN.to_owned(), module_name)), None);
        let cached = location.module().map_or(0, |module| module as usize + 1);
        if cached >= self.of_module.len() {
            self.of_module.resize(cached + 1, None);
        }
        let (dso, unnamed) = self.of_module[cached].get_or_insert_with(dso);
        let dso = *dso;
        let level = location.level;
        match names {
            Some(names) if !frames.is_empty() => {
                for frame in frames {
                    let function = names.function(frame.function);
                    let NameStyle { raw, shared, spelled_out } = &self.style;
                    let address = address.filter(|_| !frame.inlined && !self.is_imported);
                    let into = address.zip(function.start);
                    let into = into.and_then(|(address, start)| address.checked_sub(start));
                    let start = into.and_then(|into| location.offset.checked_sub(into));
                    let size = u32::try_from(function.size).unwrap_or(u32::MAX);
                    let file = frame.source.map(|source| texts.add(names.file(source.file)));
                    let of_function = || {
                        let is_generated = |module: &Module| is_generated_module(&module.short_name());
                        let name = match &function.name {
                            _ if *raw => function.raw.clone(),
                            name if spelled_out.contains(name) => names.with_parameters(frame.function),
                            _ => names.shown(frame.function).clone(),
                        };
                        let short = if *raw { &name } else { &function.name };
                        if *shared && module.is_some_and(is_generated) {
                            let symbol = texts.add(&without_addresses(&name));
                            return (symbol, symbol);
                        }
                        (texts.add(&name), texts.add(short))
                    };
                    let (symbol, short) = *self.of_function.entry(frame.function).or_insert_with(of_function);
                    self.calls.push(LocationCall {
                        dso,
                        symbol,
                        short,
                        file,
                        line: frame.source.map_or(0, |source| source.line),
                        size: if self.is_imported { 0 } else { size },
                        start: start.and_then(NonZeroU64::new),
                        level,
                        inlined: frame.inlined,
                        named: !function.is_placeholder,
                    });
                }
            }
            _ => match location.missing_stack() {
                Some(missing) => {
                    self.calls.push(LocationCall::new(dso, texts.add(missing.name()), level, true));
                }
                None => {
                    let word = |module| placeholder(module_name(module));
                    let word = || texts.add(&module.map_or_else(|| UNMAPPED.to_owned(), word));
                    self.calls.push(LocationCall::new(dso, *unnamed.get_or_insert_with(word), level, false));
                }
            },
        }
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(location.module());
    }

    /// Adds a data location: a variable and the offset in it, or the address.
    pub(crate) fn add_data(
        &mut self,
        location: &CodeLocation,
        module: Option<&Module>,
        variable: Option<(&str, u64)>,
        texts: &mut StringTable,
    ) {
        let start = self.calls.len() as u32;
        // Anonymous memory keeps the name with which it was mapped, because data is not generated code.
        let name = |module: &Module| match module.kind {
            ModuleKind::Anonymous(_) => module.path.to_string_lossy().into_owned(),
            _ => module.short_name(),
        };
        let symbol = match variable {
            Some((name, into)) => format!("{name}+{into:#x}"),
            None => format!("{:#018x}", location.data().unwrap_or(location.offset)),
        };
        let (dso, symbol) = (texts.add(&module.map_or_else(|| UNKNOWN.to_owned(), name)), texts.add(&symbol));
        self.calls.push(LocationCall::new(dso, symbol, location.level, variable.is_some()));
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(location.module());
    }

    /// Adds a location whose calls are already known, innermost first. There must be at least one call.
    pub(crate) fn push(&mut self, calls: &[LocationCall], module: Option<u32>) {
        let start = self.calls.len() as u32;
        self.calls.extend_from_slice(calls);
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(module);
    }

    pub(crate) fn replace(&mut self, location: u32, calls: &[LocationCall]) {
        let start = self.calls.len() as u32;
        self.calls.extend_from_slice(calls);
        self.ranges[location as usize] = (start, self.calls.len() as u32);
    }

    /// Returns the index range of the calls at a location, innermost first. The range is never empty.
    pub fn range(&self, location: u32) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[location as usize];
        start as usize..end as usize
    }

    /// Returns the index of the outermost call at a location: the function that contains the code.
    pub(crate) fn own(&self, location: u32) -> usize {
        self.range(location).end - 1
    }

    /// Returns all calls, by index.
    pub fn calls(&self) -> &[LocationCall] {
        &self.calls
    }

    pub(crate) fn module(&self, location: u32) -> Option<u32> {
        self.modules[location as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }
}

/// Kind of a function's code, which selects its colour and mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "as they are called")]
pub enum CodeKind {
    Program,
    Library,
    Kernel,
    Generated,
    Unknown,
}

impl CodeKind {
    /// Returns the kind for a row, given the letter of its CPU mode and its module's short name.
    pub fn of_row(letter: char, module: &str) -> Self {
        let level = if matches!(letter, 'k' | 'g' | 'H') { CpuMode::Kernel } else { CpuMode::User };
        Self::from_mode(level, module)
    }

    /// Returns the kind for code, given its CPU mode and its module's short name.
    pub fn from_mode(level: CpuMode, module: &str) -> Self {
        match level {
            CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor => Self::Kernel,
            _ if is_generated_module(module) => Self::Generated,
            _ if module == "[vdso]" || is_library(module) => Self::Library,
            _ if module.starts_with('[') => Self::Unknown,
            _ => Self::Program,
        }
    }
}

/// Returns the name of a module in all runs of a program. The memory or the file of generated code has the
/// number of its process in its name.
pub fn shared_name(module: &Module) -> String {
    let name = module.short_name();
    if is_generated_module(&name) && !name.starts_with("[anon:") { "[JIT]".to_owned() } else { name }
}

/// Replaces addresses in the name of a function, which differ from run to run, with `0x…`. Java's hidden
/// classes have them: `Shop$$Lambda/0x00007f1c8c000a00.apply`.
fn without_addresses(name: &str) -> Cow<'_, str> {
    /// Minimum number of digits of an address.
    const DIGITS: usize = 8;
    let mut kept = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("0x") {
        let digits = after.bytes().take_while(u8::is_ascii_hexdigit).count();
        kept += before;
        kept += if digits >= DIGITS { "0x…" } else { &rest[before.len()..before.len() + 2 + digits] };
        rest = &after[digits..];
    }
    if kept.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(kept + rest) }
}

/// Whether a module is memory that contains a runtime's generated code, or a file that `inject --jit` created
/// from such code. V8 gives its anonymous memory a name (`prctl(2)`).
pub(crate) fn is_generated_module(module: &str) -> bool {
    module.starts_with("[JIT]")
        || module.starts_with("[anon:")
        || (module.starts_with("jitted-") && is_library(module))
}

/// Whether a file name is the name of a library.
pub fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.")
}
