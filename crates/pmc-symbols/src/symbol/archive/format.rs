//! The protobuf messages in an archive.
//!
//! All lists are columns of numbers, and all strings share one buffer. The memory for a decoded message is
//! therefore at most a small multiple of its encoded size, even if the message is hostile. Readers check
//! every number.
//!
//! ```text
//!   ArchiveData --> ModuleData per module
//!     addresses --AnswerColumns--> numbers of symbols (SymbolColumns) or frames (FrameColumns) --> texts
//! ```

/// The whole archive.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ArchiveData {
    /// Encoded [`ModuleData`], decoded when a lookup first needs the module.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) modules: Vec<Vec<u8>>,
}

/// Facts about the original recording that the archive's copy of it lacks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OriginalFacts {
    /// The modification time, in nanoseconds since 1970.
    #[prost(int64, tag = "1")]
    pub modified_ns: i64,
    /// The layout: `file`, `pipe` or `directory`.
    #[prost(string, tag = "2")]
    pub form: String,
    /// Offset of the records in the file.
    #[prost(uint64, tag = "3")]
    pub data_offset: u64,
    /// Size of the records in bytes.
    #[prost(uint64, tag = "4")]
    pub data_size: u64,
    /// How stack copies were converted to call chains, if the recording had any.
    #[prost(message, optional, tag = "5")]
    pub stacks: Option<ConvertedStacks>,
    /// Numbers of the feature sections.
    #[prost(uint32, repeated, tag = "6")]
    pub features: Vec<u32>,
}

/// How unwinding ended for the stack copies that were replaced by call chains: the number of samples for each
/// case.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ConvertedStacks {
    /// Number of all copied stacks.
    #[prost(uint64, tag = "1")]
    pub copied: u64,
    /// Number of stacks in which the next frame is beyond the copied bytes.
    #[prost(uint64, tag = "2")]
    pub cut: u64,
    /// Number of stacks in which unwinding failed.
    #[prost(uint64, tag = "3")]
    pub lost: u64,
    /// Number of stacks whose chain reached its maximum length.
    #[prost(uint64, tag = "4")]
    pub long: u64,
    /// Number of stacks of 32-bit Arm processes.
    #[prost(uint64, tag = "5")]
    pub compat: u64,
    /// Modules without unwind tables; an empty name means unmapped code.
    #[prost(string, repeated, tag = "6")]
    pub no_tables: Vec<String>,
    /// Number of stacks that end in each of these modules.
    #[prost(uint64, repeated, tag = "7")]
    pub no_tables_samples: Vec<u64>,
    /// The size of the largest copies, in bytes.
    #[prost(uint32, tag = "8")]
    pub copy_size: u32,
    /// Whether all events had stack copies. Archives of older versions have only this.
    #[prost(bool, tag = "9")]
    pub all_events: bool,
    /// For each layout of samples, whether it had stack copies.
    #[prost(bool, repeated, tag = "12")]
    pub layouts: Vec<bool>,
    /// Modules in which unwinding failed; an empty name means unmapped code.
    #[prost(string, repeated, tag = "10")]
    pub lost_in: Vec<String>,
    /// Number of stacks that end in each of these modules.
    #[prost(uint64, repeated, tag = "11")]
    pub lost_in_samples: Vec<u64>,
}

/// The fields of a module that identify it in the recording.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(in crate::symbol) struct ModuleKey {
    /// The path or name in brackets.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) path: Vec<u8>,
    /// The kind of code, as in [`super::kind_number`].
    #[prost(uint32, tag = "2")]
    pub(super) kind: u32,
    /// The process of generated code, or the start address of a kernel module.
    #[prost(uint64, tag = "3")]
    pub(super) owner: u64,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) build_id: Vec<u8>,
    /// Inode number of the mount namespace, or 0.
    #[prost(uint64, tag = "5")]
    pub(super) mount: u64,
}

/// A module's data.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::symbol) struct ModuleData {
    #[prost(message, optional, tag = "1")]
    pub(in crate::symbol) key: Option<ModuleKey>,
    /// The path of the module's own file, if it was found.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(in crate::symbol) binary: Option<Vec<u8>>,
    /// The path of the separate debug file, if it was found.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(in crate::symbol) debug: Option<Vec<u8>>,
    /// Number of symbols that were found.
    #[prost(uint64, tag = "4")]
    pub(in crate::symbol) symbols_found: u64,
    /// Whether line information was found.
    #[prost(bool, tag = "5")]
    pub(in crate::symbol) has_lines: bool,
    /// Rows of the missing data: text, remedy (text + 1, or 0), whether it is a failure.
    #[prost(uint64, repeated, tag = "6")]
    pub(in crate::symbol) missing: Vec<u64>,
    /// Memory address minus address in the file, in bytes; `None` if the module's addresses are file offsets.
    #[prost(uint64, optional, tag = "7")]
    pub(in crate::symbol) slide: Option<u64>,
    /// Rows of the program headers: see `Segments::to_rows`.
    #[prost(uint64, repeated, tag = "8")]
    pub(in crate::symbol) segments: Vec<u64>,
    /// Whether the file has 32-bit addresses.
    #[prost(bool, tag = "9")]
    pub(in crate::symbol) has_short_addresses: bool,
    /// The path from which machine code was read, if it is the module's own file.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub(in crate::symbol) image: Option<Vec<u8>>,
    /// All texts, without separators.
    #[prost(string, tag = "11")]
    pub(in crate::symbol) texts: String,
    /// The length of each text in bytes.
    #[prost(uint32, repeated, tag = "12")]
    pub(in crate::symbol) text_lengths: Vec<u32>,
    #[prost(message, optional, tag = "13")]
    pub(in crate::symbol) symbols: Option<SymbolColumns>,
    #[prost(message, optional, tag = "14")]
    pub(in crate::symbol) frames: Option<FrameColumns>,
    /// From addresses in the module's own address space to symbols.
    #[prost(message, optional, tag = "15")]
    pub(in crate::symbol) functions: Option<AnswerColumns>,
    /// From addresses in the file to symbols that are placeholders.
    #[prost(message, optional, tag = "16")]
    pub(in crate::symbol) placeholders: Option<AnswerColumns>,
    /// From addresses in the file to symbols.
    #[prost(message, optional, tag = "17")]
    pub(in crate::symbol) variables: Option<AnswerColumns>,
    /// From the addresses of slots, through which functions are called, to symbols.
    #[prost(message, optional, tag = "18")]
    pub(in crate::symbol) slots: Option<AnswerColumns>,
    /// From addresses in the file to frames.
    #[prost(message, optional, tag = "19")]
    pub(in crate::symbol) lines: Option<AnswerColumns>,
    /// Rows of the pieces of machine code: start, size, ELF machine, file (text), whether it is unlinked.
    #[prost(uint64, repeated, tag = "20")]
    pub(in crate::symbol) code: Vec<u64>,
    /// The bytes of all pieces of code.
    #[prost(bytes = "vec", tag = "21")]
    pub(in crate::symbol) code_bytes: Vec<u8>,
    /// Rows of the lines of generated code: piece of code, address, file (text), line.
    #[prost(uint64, repeated, tag = "22")]
    pub(in crate::symbol) code_lines: Vec<u64>,
    /// Rows of functions without code: start, reason (text), remedy (text + 1, or 0).
    #[prost(uint64, repeated, tag = "23")]
    pub(in crate::symbol) no_code: Vec<u64>,
    /// Rows of source files: path (text), reason why it is missing (text + 1, or 0), whether this is a
    /// failure, whether the file is newer than the program, number of lines.
    #[prost(uint64, repeated, tag = "24")]
    pub(in crate::symbol) sources: Vec<u64>,
    /// Rows of excerpts: source file, first line, number of lines, text of the first line.
    #[prost(uint64, repeated, tag = "25")]
    pub(in crate::symbol) excerpts: Vec<u64>,
}

/// Answers by address. An answer applies from its address to the next address in the list.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::symbol) struct AnswerColumns {
    /// The difference between each address and the one before it.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) steps: Vec<u64>,
    /// The number of the answer plus 1, or 0 without an answer.
    #[prost(uint32, repeated, tag = "2")]
    pub(super) answers: Vec<u32>,
}

/// Symbols by number.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::symbol) struct SymbolColumns {
    #[prost(uint64, repeated, tag = "1")]
    pub(super) starts: Vec<u64>,
    #[prost(uint64, repeated, tag = "2")]
    pub(super) sizes: Vec<u64>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) names: Vec<u32>,
}

/// Frames by number. A frame precedes the frames that were inlined into it.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::symbol) struct FrameColumns {
    /// The function's name (text + 1, or 0).
    #[prost(uint32, repeated, tag = "1")]
    pub(super) names: Vec<u32>,
    /// The source file (text + 1, or 0).
    #[prost(uint32, repeated, tag = "2")]
    pub(super) files: Vec<u32>,
    #[prost(uint32, repeated, tag = "3")]
    pub(super) lines: Vec<u32>,
    /// The next outer frame (number + 1, or 0).
    #[prost(uint32, repeated, tag = "4")]
    pub(super) outers: Vec<u32>,
}
