//! The messages of pprof's files, for the import and the export.
//!
//! Format: <https://github.com/google/pprof/blob/main/proto/profile.proto>, whose names the fields have.
//! All texts are indexes into the string table, whose first entry is empty. Other writers' strings may not be
//! UTF-8.

use prost::Message;

/// A file.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<PprofValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) location: Vec<PprofLocation>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) function: Vec<PprofFunction>,
    #[prost(bytes = "vec", repeated, tag = "6")]
    pub(crate) string_table: Vec<Vec<u8>>,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<PprofValueType>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub(crate) comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub(crate) default_sample_type: i64,
}

/// The type and the unit of values. `type` is a word of Rust, so it is called `kind`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofValueType {
    #[prost(int64, tag = "1")]
    pub(crate) kind: i64,
    #[prost(int64, tag = "2")]
    pub(crate) unit: i64,
}

/// Samples with the same stack and labels.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    pub(crate) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) label: Vec<PprofLabel>,
}

/// A text or a number that describes a sample.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofLabel {
    #[prost(int64, tag = "1")]
    pub(crate) key: i64,
    #[prost(int64, tag = "2")]
    pub(crate) str: i64,
    #[prost(int64, tag = "3")]
    pub(crate) num: i64,
}

/// A module.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofMapping {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) memory_start: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) memory_limit: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) file_offset: u64,
    #[prost(int64, tag = "5")]
    pub(crate) filename: i64,
    #[prost(int64, tag = "6")]
    pub(crate) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(crate) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(crate) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(crate) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(crate) has_inline_frames: bool,
}

/// An address, or code without one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofLocation {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) address: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) line: Vec<PprofLine>,
}

/// A function at a location.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub(crate) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PprofFunction {
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    #[prost(int64, tag = "2")]
    pub(crate) name: i64,
    #[prost(int64, tag = "3")]
    pub(crate) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(crate) filename: i64,
}
