//! Symbolization: maps addresses in modules to functions, source lines and inlined frames.
//!
//! Takes modules with their names in recordings ([`SymbolModule`]), and addresses in them
//! ([`SymbolRequest`]). Finds the modules' files in any mount namespace. Returns [`ResolvedFrame`]s, and
//! reasons why names are missing ([`ModuleDataQuality`]). Decides which file to trust (by its build-id), and
//! which name belongs to an address. `session` reads recordings, `profile` aggregates samples, and `view`
//! prints.
//!
//! ```text
//!   Module --files--> Image --tables, kernel, jit--> Table     stage 1: names
//!                       '-----dwarf (split, dwz too)-----> inlines   stage 2: lines and inlined functions
//!                       |                                     '--cache--> later runs
//!                       '-----code-----------------------> instructions
//! ```

pub mod archive;
pub mod build_id_cache;
pub mod code;
mod collect;
mod cplusplus;
pub(crate) mod debuginfod;
pub mod demangle;
pub(crate) mod dwarf;
pub(crate) mod files;
pub(crate) mod frame;
pub mod identify;
pub mod jit;
pub mod kernel;
pub(crate) mod missing_data;
pub(crate) mod module;
mod name_sources;
pub mod options;
pub(crate) mod probe;
pub mod runtime_names;
mod sources;
pub(crate) mod symbolizer;
pub(crate) mod tables;

pub use crate::build_id::{self, BuildId};
pub use archive::{
    ArchiveError, ConvertedStacks, ImportedCode, ImportedFrame, ImportedSymbols, OriginalFacts,
    SymbolArchive, rename as rename_archive,
};
pub use build_id_cache::{BuildIdCache, CacheEntry};
pub use code::{LONGEST_INSTRUCTION, disassemble};
pub use collect::{ArchiveContent, ArchiveRequest};
pub use debuginfod::Debuginfod;
pub use files::image::Image;
pub use files::{elf, locate, source_text};
pub use frame::{
    AddressFrames, Function, FunctionId, ResolvedFrame, SourceFileId, SourcePosition, SymbolNames,
};
pub use jit::perf_map;
pub use missing_data::{FoundData, MissingDataReason, ModuleDataQuality};
pub use module::{ModuleId, SymbolModule, SymbolModuleKind, SymbolQuery};
pub use options::{RunningKernel, SymbolOptions};
pub use probe::error::ProbeError;
pub use probe::places::{FoundPlace, PlaceRequest, SourcePlace};
pub use probe::source_lines::ProbeableLines;
pub use probe::variables::{AvailableVariable, FetchedValue};
pub use probe::{ProbeFile, ProbedProgram};
pub use sources::ModuleSource;
pub use symbolizer::{Depth, SymbolProgress, SymbolRequest, Symbolizer};
