//! What stands at each location: the calls that it stands for, inlined ones included.
//!
//! Receives locations and the symbolizer's answers; decides what is shown where a name or a module is
//! missing.

use std::num::NonZeroU64;

use rustc_hash::FxHashMap;

use super::{StringId, StringTable};
use crate::abi::CpuMode;
use crate::session::{Kind, Location, Module};
use crate::symbol::{Frame, FunctionId, Names};

/// One function at a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// Short name of the module.
    pub dso: StringId,
    /// The function.
    pub symbol: StringId,
    /// Its source file.
    pub file: Option<StringId>,
    /// Line in that file; 0 where it is not known.
    pub line: u32,
    /// Bytes of the function's code; 0 where that is not known.
    pub size: u32,
    /// Where that starts, as [`Location::offset`] counts; `None` where it is not known or inlined.
    pub start: Option<NonZeroU64>,
    /// Where it ran.
    pub level: CpuMode,
    /// Inlined into the next outer call.
    pub inlined: bool,
    /// Whether a symbol names the function; otherwise its name says where it is.
    pub named: bool,
}

impl Call {
    /// One of which nothing else is known.
    pub fn new(dso: StringId, symbol: StringId, level: CpuMode, named: bool) -> Self {
        Self { dso, symbol, file: None, line: 0, size: 0, start: None, level, inlined: false, named }
    }
}

/// The calls of all locations.
#[derive(Debug, Default)]
pub struct Code {
    calls: Vec<Call>,
    /// By location: the first of its calls, and the one behind its last.
    ranges: Vec<(u32, u32)>,
    modules: Vec<Option<u32>>,
    /// Names are shown as the compiler wrote them.
    pub raw_names: bool,
    /// Words that many locations share: a module's name and the placeholder for its code, and a function's.
    of_module: FxHashMap<Option<u32>, (StringId, Option<StringId>)>,
    of_function: FxHashMap<FunctionId, StringId>,
}

/// Stands for a module that is not known.
pub const UNKNOWN: &str = "[unknown]";
/// Stands for the name of what lies at an address where nothing is mapped.
pub const UNMAPPED: &str = "[not mapped]";

/// The name of code of which nothing but its module is known: that, in brackets.
fn placeholder(module: &Module) -> String {
    let name = module.short_name();
    if name.starts_with('[') { name } else { format!("[{name}]") }
}

impl Code {
    /// Forgets all locations.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.ranges.clear();
        self.modules.clear();
        self.of_module.clear();
        self.of_function.clear();
    }

    /// Writes down one location after the other, of one list of modules, one of names and one of words.
    /// `frames` are the symbolizer's, innermost first; `address` is
    /// the location's in the module's own numbering, as functions' starts are.
    pub fn add(
        &mut self,
        location: &Location,
        module: Option<&Module>,
        (frames, address): (&[Frame], Option<u64>),
        names: Option<&Names>,
        texts: &mut StringTable,
    ) {
        let start = self.calls.len() as u32;
        let dso = || (texts.add(&module.map_or_else(|| UNKNOWN.to_owned(), Module::short_name)), None);
        let (dso, unnamed) = self.of_module.entry(location.module()).or_insert_with(dso);
        let dso = *dso;
        let level = location.level;
        match names {
            Some(names) if !frames.is_empty() => {
                for frame in frames {
                    let function = names.function(frame.function);
                    let name = if self.raw_names { &function.raw } else { &function.name };
                    let into = address.zip(function.start).filter(|_| !frame.inlined);
                    let into = into.and_then(|(address, start)| address.checked_sub(start));
                    let start = into.and_then(|into| location.offset.checked_sub(into));
                    let file = frame.source.map(|source| texts.add(names.file(source.file)));
                    let symbol = self.of_function.entry(frame.function).or_insert_with(|| texts.add(name));
                    self.calls.push(Call {
                        dso,
                        symbol: *symbol,
                        file,
                        line: frame.source.map_or(0, |source| source.line),
                        size: u32::try_from(function.size).unwrap_or(u32::MAX),
                        start: start.and_then(NonZeroU64::new),
                        level,
                        inlined: frame.inlined,
                        named: !function.is_placeholder,
                    });
                }
            }
            _ => {
                let word = || texts.add(&module.map_or_else(|| UNMAPPED.to_owned(), placeholder));
                self.calls.push(Call::new(dso, *unnamed.get_or_insert_with(word), level, false));
            }
        }
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(location.module());
    }

    /// Writes down a location of data: a variable and the distance from its start, or the address.
    pub fn add_data(
        &mut self,
        location: &Location,
        module: Option<&Module>,
        variable: Option<(&str, u64)>,
        texts: &mut StringTable,
    ) {
        let start = self.calls.len() as u32;
        // Memory without a file has the name that it was mapped with: nobody generates code there.
        let name = |module: &Module| match module.kind {
            Kind::Anonymous(_) => module.path.to_string_lossy().into_owned(),
            _ => module.short_name(),
        };
        let symbol = match variable {
            Some((name, into)) => format!("{name}+{into:#x}"),
            None => format!("{:#018x}", location.data().unwrap_or(location.offset)),
        };
        let (dso, symbol) = (texts.add(&module.map_or_else(|| UNKNOWN.to_owned(), name)), texts.add(&symbol));
        self.calls.push(Call::new(dso, symbol, location.level, variable.is_some()));
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(location.module());
    }

    /// Writes down one location whose calls are known, innermost first; there is at least one.
    pub fn push(&mut self, calls: &[Call], module: Option<u32>) {
        let start = self.calls.len() as u32;
        self.calls.extend_from_slice(calls);
        self.ranges.push((start, self.calls.len() as u32));
        self.modules.push(module);
    }

    /// Other calls stand at a location from now on.
    pub fn replace(&mut self, location: u32, calls: &[Call]) {
        let start = self.calls.len() as u32;
        self.calls.extend_from_slice(calls);
        self.ranges[location as usize] = (start, self.calls.len() as u32);
    }

    /// Indices of the calls at a location, innermost first. There is always one.
    pub fn range(&self, location: u32) -> std::ops::Range<usize> {
        let (start, end) = self.ranges[location as usize];
        start as usize..end as usize
    }

    /// The function whose code it is: the outermost call.
    pub fn own(&self, location: u32) -> usize {
        self.range(location).end - 1
    }

    /// All calls, by index.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The module of a location.
    pub fn module(&self, location: u32) -> Option<u32> {
        self.modules[location as usize]
    }

    /// Number of locations.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

/// Whose code a function is, as far as colours and marks tell it.
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
    /// By a row's letter and its module's short name.
    pub fn of_row(letter: char, module: &str) -> Self {
        let level = if matches!(letter, 'k' | 'g' | 'H') { CpuMode::Kernel } else { CpuMode::User };
        Self::of(level, module)
    }

    /// By where it ran and its module's short name.
    pub fn of(level: CpuMode, module: &str) -> Self {
        match level {
            CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor => Self::Kernel,
            _ if is_generated_module(module) => Self::Generated,
            _ if module == "[vdso]" || is_library(module) => Self::Library,
            _ if module.starts_with('[') => Self::Unknown,
            _ => Self::Program,
        }
    }
}

/// Whether a module is memory that runtimes generate code into, or what `inject --jit` made of such code. An
/// address space may have names for its anonymous memory (`prctl(2)`), as V8 has them.
pub fn is_generated_module(module: &str) -> bool {
    module.starts_with("[JIT]")
        || module.starts_with("[anon:")
        || (module.starts_with("jitted-") && is_library(module))
}

/// Whether a file's name is one that libraries have.
pub fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so.")
}
