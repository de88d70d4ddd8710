//! Symbols: from addresses in modules to functions, source lines and inlined frames.
//!
//! Receives modules as a recording names them ([`Module`]) and sorted addresses in them ([`Request`]); finds the files that belong to them,
//! whatever mount namespace they live in, and hands on [`Frame`]s, with the reasons where names are missing ([`Trust`]).
//! Decides which file is believed (the build-id decides) and which name stands at an address.
//! Leaves reading of recordings to `session`, adding up to `profile`, and wording to `view`.
//!
//! ```text
//!   Module --locate--> files --elf, kernel, perf_map, jitdump--> Table      stage 1: names
//!                        '-----lines (DWARF, split, dwz)-------> inlines    stage 2: lines and inlined functions
//!                                                                 '--cache--> next time at once
//! ```

pub mod build_id;
pub mod cache;
mod cache_file;
pub mod code;
pub mod demangle;
pub mod disassemble;
pub mod elf;
pub mod frame;
pub mod image;
pub mod jitdump;
pub mod kernel;
pub mod lines;
pub mod locate;
pub mod module;
pub mod mount;
pub mod name_list;
mod nesting;
pub mod options;
pub mod painted;
pub mod perf_map;
pub mod plt;
mod source;
pub mod source_text;
mod sparse;
pub mod symbolizer;
pub mod table;
pub mod trust;

pub use build_id::BuildId;
pub use frame::{Answer, FileId, Frame, Function, FunctionId, Names, Source};
pub use image::Image;
pub use module::{Kind, Module, ModuleId, Probe};
pub use options::Options;
pub use symbolizer::{Depth, Progress, Request, Symbolizer};
pub use table::Table;
pub use trust::{Missing, Trust};
