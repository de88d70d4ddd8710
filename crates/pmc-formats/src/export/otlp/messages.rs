//! The messages of OTLP's profiles signal that pmc writes, and those of its replies, as [`prost`] structs.
//!
//! Field numbers are those of `opentelemetry-proto` [`PROTO_VERSION`]. The signal is in development:
//! version 1.10 changed the numbers of 1.9. `tests/reading/otlp.rs` reads the output with the official types
//! of the same version. Fields that pmc never sets are left out.

use prost::Message;

/// Version of the protocol's definitions.
pub(super) const PROTO_VERSION: &str = "1.10.0";

/// `ProfilesData` in a file, `ExportProfilesServiceRequest` in a request: both have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpProfiles {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_profiles: Vec<OtlpResourceProfiles>,
    #[prost(message, optional, tag = "2")]
    pub(super) dictionary: Option<OtlpDictionary>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpResourceProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<OtlpResource>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_profiles: Vec<OtlpScopeProfiles>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpResource {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<OtlpKeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpKeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<OtlpAnyValue>,
}

/// At most one field is set: in the definition, they are one `oneof`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct OtlpAnyValue {
    #[prost(string, optional, tag = "1")]
    pub(super) string_value: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub(super) int_value: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpScopeProfiles {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) profiles: Vec<OtlpProfile>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<OtlpKeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpProfile {
    #[prost(message, optional, tag = "1")]
    pub(super) sample_type: Option<OtlpValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<OtlpSample>,
    #[prost(fixed64, tag = "3")]
    pub(super) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(super) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(super) period_type: Option<OtlpValueType>,
    #[prost(int64, tag = "6")]
    pub(super) period: i64,
    #[prost(int32, repeated, tag = "11")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpValueType {
    #[prost(int32, tag = "1")]
    pub(super) type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(super) unit_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpSample {
    #[prost(int32, tag = "1")]
    pub(super) stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(super) attribute_indices: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub(super) values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    pub(super) timestamps_unix_nano: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpDictionary {
    #[prost(message, repeated, tag = "1")]
    pub(super) mapping_table: Vec<OtlpMapping>,
    #[prost(message, repeated, tag = "2")]
    pub(super) location_table: Vec<OtlpLocation>,
    #[prost(message, repeated, tag = "3")]
    pub(super) function_table: Vec<OtlpFunction>,
    #[prost(message, repeated, tag = "4")]
    pub(super) link_table: Vec<OtlpLink>,
    #[prost(string, repeated, tag = "5")]
    pub(super) string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(super) attribute_table: Vec<OtlpAttribute>,
    #[prost(message, repeated, tag = "7")]
    pub(super) stack_table: Vec<OtlpStack>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpMapping {
    #[prost(uint64, tag = "1")]
    pub(super) memory_start: u64,
    #[prost(uint64, tag = "2")]
    pub(super) memory_limit: u64,
    #[prost(uint64, tag = "3")]
    pub(super) file_offset: u64,
    #[prost(int32, tag = "4")]
    pub(super) filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpLocation {
    #[prost(int32, tag = "1")]
    pub(super) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub(super) address: u64,
    #[prost(message, repeated, tag = "3")]
    pub(super) lines: Vec<OtlpLine>,
    #[prost(int32, repeated, tag = "4")]
    pub(super) attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpLine {
    #[prost(int32, tag = "1")]
    pub(super) function_index: i32,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct OtlpFunction {
    #[prost(int32, tag = "1")]
    pub(super) name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub(super) filename_strindex: i32,
}

/// A link to a trace. Only the zero value is used.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpLink {}

#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub(super) struct OtlpAttribute {
    #[prost(int32, tag = "1")]
    pub(super) key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<OtlpAnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpStack {
    #[prost(int32, repeated, tag = "1")]
    pub(super) location_indices: Vec<i32>,
}

/// The reply to an accepted request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpReply {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<OtlpPartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpPartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected_profiles: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// `google.rpc.Status`, the reply to a refused request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpStatus {
    #[prost(string, tag = "2")]
    pub message: String,
}
