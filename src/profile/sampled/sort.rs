//! Sort keys: what rows are told apart by, under perf's names.

use super::TextId;
use crate::session::samples::Extra;

/// A sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "perf's names")]
pub enum SortKey {
    Comm,
    Pid,
    Tid,
    Dso,
    Symbol,
    SrcLine,
    SrcFile,
    Cpu,
    Socket,
    Time,
    Cgroup,
    Trace,
    Period,
    Weight,
    LocalWeight,
    Addr,
}

/// Names that are typed, the key, the heading perf gives it.
const KEYS: &[(&str, SortKey, &str)] = &[
    ("comm", SortKey::Comm, "Command"),
    ("pid", SortKey::Pid, "Pid"),
    ("tid", SortKey::Tid, "Tid"),
    ("dso", SortKey::Dso, "Shared Object"),
    ("sym", SortKey::Symbol, "Symbol"),
    ("symbol", SortKey::Symbol, "Symbol"),
    ("srcline", SortKey::SrcLine, "Source:Line"),
    ("srcfile", SortKey::SrcFile, "Source File"),
    ("cpu", SortKey::Cpu, "CPU"),
    ("socket", SortKey::Socket, "Socket"),
    ("time", SortKey::Time, "Time"),
    ("cgroup", SortKey::Cgroup, "Cgroup"),
    ("trace", SortKey::Trace, "Trace output"),
    ("weight", SortKey::Weight, "Weight"),
    ("local_weight", SortKey::LocalWeight, "Local Weight"),
    ("addr", SortKey::Addr, "Data Address"),
];

impl SortKey {
    /// The key of a name.
    pub fn of(name: &str) -> Option<Self> {
        KEYS.iter().find(|(typed, ..)| *typed == name).map(|(_, key, _)| *key)
    }

    /// All names, for those who mistyped one.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(|(name, ..)| *name)
    }

    /// The name in documents: the first of its names.
    pub fn name(self) -> &'static str {
        KEYS.iter().find(|(_, key, _)| *key == self).map_or("period", |(name, ..)| name)
    }

    /// The heading.
    pub fn heading(self) -> &'static str {
        KEYS.iter().find(|(_, key, _)| *key == self).map_or("Period", |(.., heading)| heading)
    }

    /// Whether it is a property of the code, so that callers have values of their own.
    pub fn is_of_code(self) -> bool {
        matches!(self, Self::Dso | Self::Symbol | Self::SrcLine | Self::SrcFile)
    }

    /// What pass 2 must keep for it.
    pub fn extra(self, slice: u64) -> Option<Extra> {
        Some(match self {
            Self::Comm | Self::Dso | Self::Symbol | Self::SrcLine | Self::SrcFile => return None,
            Self::Pid => Extra::Pid,
            Self::Tid => Extra::Tid,
            Self::Cpu | Self::Socket => Extra::Cpu,
            Self::Time => Extra::Time(slice),
            Self::Cgroup => Extra::Cgroup,
            Self::Trace => Extra::Payload,
            Self::Period => Extra::Period,
            Self::Weight | Self::LocalWeight => Extra::Weight,
            Self::Addr => Extra::Addr,
        })
    }
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    /// Words.
    Text(TextId),
    /// A function, after the letter of where it ran.
    Symbol(char, TextId),
    /// A place in a source file.
    Line(TextId, u32),
    /// A number.
    Number(i64),
    /// An address.
    Address(u64),
    /// Nanoseconds.
    Time(u64),
    /// Nothing is known.
    Unknown,
}
