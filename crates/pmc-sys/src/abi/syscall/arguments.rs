//! Arguments of system calls: their names, their kinds, and the named values of flags.

use std::sync::OnceLock;

/// An argument of a system call.
#[derive(Debug, Clone, Copy)]
pub struct SyscallArgument {
    /// The name in the manual page or in the kernel.
    pub name: &'static str,
    /// The kind of value in the register.
    pub kind: ArgumentKind,
}

/// The kind of value in an argument's register. Numbers in the variants are indices of other arguments.
#[derive(Debug, Clone, Copy)]
pub enum ArgumentKind {
    /// A file descriptor.
    Fd,
    /// The descriptor of a directory, or `AT_FDCWD`.
    DirFd,
    /// Address of a path.
    Path,
    /// Address of a NUL-terminated string that is not a path.
    Text,
    /// Address of a NULL-terminated array of string addresses.
    Texts,
    /// Signed 32-bit number.
    Int,
    /// Unsigned 32-bit number.
    Uint,
    /// Signed number as wide as a register.
    Long,
    /// Unsigned number as wide as a register.
    Size,
    /// Number that is usually written in hexadecimal.
    Hex,
    /// Address of any other data.
    Address,
    /// Permissions, in base 8.
    Mode,
    /// Permissions, used if the flags in this argument create a file.
    CreateMode(usize),
    /// Address of bytes that the call reads. The argument with this index is their number.
    Input(usize),
    /// Address of bytes that the call writes. The result of the call is their number.
    Output,
    /// Address of a NUL-terminated path that the call writes.
    OutputText,
    /// Address of a socket address. The argument with this index is its size.
    SocketAddress(usize),
    /// Address of a `timespec`.
    Timespec,
    /// Address of a `timespec` that the call writes.
    TimespecOutput,
    /// Address of a `stat` that the call writes.
    Stat,
    /// Address of two descriptors that the call writes.
    FdPair,
    /// Address of a set of signals.
    SignalSet,
    /// Address of an array of `pollfd`. The argument with this index is its length.
    PollFds(usize),
    /// A number with named values.
    Flags(&'static FlagSet),
}

impl ArgumentKind {
    /// Whether the call writes to the memory at this address, so that the contents are known only after the
    /// call.
    pub fn is_output(self) -> bool {
        matches!(self, Self::Output | Self::OutputText | Self::Stat | Self::TimespecOutput | Self::FdPair)
    }
}

/// How the named values of a [`FlagSet`] combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagStyle {
    /// Each value is a set of bits; a word may combine several values.
    Bits,
    /// The word is one of the values.
    Value,
    /// The bits in this mask hold one of the values; each of the remaining values is a set of flags.
    Mask(u64),
    /// The flags of `clone`: the low 8 bits are a signal.
    Clone,
}

/// The named values of an argument.
#[derive(Debug)]
pub struct FlagSet {
    name: &'static str,
    style: FlagStyle,
    values: Vec<(&'static str, u64)>,
    /// Indices into `values`, starting with the values that have the most bits.
    most_bits_first: Vec<usize>,
}

impl FlagSet {
    /// Returns the set with this name, such as `open_flags`.
    pub fn named(name: &str) -> Option<&'static Self> {
        static SETS: OnceLock<Vec<FlagSet>> = OnceLock::new();
        let sets = SETS.get_or_init(|| include_str!("flags.tsv").lines().filter_map(Self::parse).collect());
        sets.iter().find(|set| set.name == name)
    }

    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let name = fields.next()?;
        let style = match fields.next()? {
            "enum" => FlagStyle::Value,
            "open" => FlagStyle::Mask(3),
            "clone" => FlagStyle::Clone,
            style => style
                .strip_prefix("mask")
                .and_then(|mask| mask.parse().ok())
                .map_or(FlagStyle::Bits, FlagStyle::Mask),
        };
        let value = |word: &'static str| {
            let (name, value) = word.split_once("=0x")?;
            Some((name, u64::from_str_radix(value, 16).ok()?))
        };
        let values: Vec<(&str, u64)> = fields.next()?.split(' ').filter_map(value).collect();
        let mut most_bits_first: Vec<usize> = (0..values.len()).collect();
        most_bits_first.sort_by_key(|at| std::cmp::Reverse(values[*at].1.count_ones()));
        Some(Self { name, style, values, most_bits_first })
    }

    /// Returns the variant of this set for Arm, where some bits differ.
    pub fn on_arm(&'static self) -> &'static Self {
        if self.name == "open_flags" { Self::named("open_flags.arm").unwrap_or(self) } else { self }
    }

    /// Formats a word as strace does: the names of its values joined by `|`, and the remaining bits in
    /// hexadecimal.
    pub fn names(&self, word: u64) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = word;
        let exactly = |word: u64| self.values.iter().find(|(_, value)| *value == word);
        let mask = match self.style {
            FlagStyle::Value => u64::MAX,
            FlagStyle::Mask(mask) => mask,
            FlagStyle::Clone => 0xff,
            FlagStyle::Bits => 0,
        };
        let is_signal = self.style == FlagStyle::Clone;
        match self.style {
            FlagStyle::Value | FlagStyle::Mask(_) => {
                if let Some((name, value)) = exactly(word & mask) {
                    parts.push((*name).to_owned());
                    rest &= !value;
                }
            }
            FlagStyle::Bits => {
                if let Some((name, _)) = exactly(word) {
                    return (*name).to_owned();
                }
            }
            FlagStyle::Clone => rest &= !0xff,
        }
        if self.style != FlagStyle::Value {
            // Values with several bits are matched before values with some of the same bits.
            let mut found: Vec<usize> = Vec::new();
            for &at in &self.most_bits_first {
                let value = self.values[at].1;
                if value != 0 && value & mask == 0 && rest & value == value {
                    rest &= !value;
                    found.push(at);
                }
            }
            found.sort_unstable();
            parts.extend(found.into_iter().map(|at| self.values[at].0.to_owned()));
        }
        if rest != 0 || parts.is_empty() && !is_signal {
            parts.push(if rest == 0 { "0".to_owned() } else { format!("{rest:#x}") });
        }
        if is_signal && (word & mask != 0 || parts.is_empty()) {
            let signal = Self::named("signal").filter(|_| word & mask != 0);
            parts.push(signal.map_or_else(|| "0".to_owned(), |signal| signal.names(word & mask)));
        }
        parts.join("|")
    }
}

/// Parses a list `name:kind name:kind.INDEX …`; `-` is the empty list. Returns `None` for `?`, which means
/// that the arguments are unknown.
pub(super) fn parse(list: &'static str) -> Option<Vec<SyscallArgument>> {
    match list {
        "?" | "" => None,
        "-" => Some(Vec::new()),
        _ => Some(list.split(' ').filter_map(argument).collect()),
    }
}

fn argument(word: &'static str) -> Option<SyscallArgument> {
    let (name, kind) = word.split_once(':')?;
    let (kind, index) = kind.split_once('.').map_or((kind, 0), |(kind, at)| (kind, at.parse().unwrap_or(0)));
    let kind = match kind {
        "fd" => ArgumentKind::Fd,
        "dirfd" => ArgumentKind::DirFd,
        "path" => ArgumentKind::Path,
        "str" => ArgumentKind::Text,
        "strv" => ArgumentKind::Texts,
        "int" => ArgumentKind::Int,
        "uint" => ArgumentKind::Uint,
        "long" => ArgumentKind::Long,
        "size" => ArgumentKind::Size,
        "hex" => ArgumentKind::Hex,
        "ptr" => ArgumentKind::Address,
        "octal" => ArgumentKind::Mode,
        "create_mode" => ArgumentKind::CreateMode(index),
        "in" => ArgumentKind::Input(index),
        "out" => ArgumentKind::Output,
        "outstr" => ArgumentKind::OutputText,
        "sockaddr" => ArgumentKind::SocketAddress(index),
        "timespec" => ArgumentKind::Timespec,
        "timespecout" => ArgumentKind::TimespecOutput,
        "stat" => ArgumentKind::Stat,
        "fdpair" => ArgumentKind::FdPair,
        "sigset" => ArgumentKind::SignalSet,
        "pollfd" => ArgumentKind::PollFds(index),
        set => ArgumentKind::Flags(FlagSet::named(set)?),
    };
    Some(SyscallArgument { name, kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::syscall::SyscallTable;

    #[test]
    fn words_are_named_as_in_strace() {
        let names = |set: &str, word| FlagSet::named(set).unwrap().names(word);
        assert_eq!(names("open_flags", 0x8_0000), "O_RDONLY|O_CLOEXEC");
        assert_eq!(names("open_flags", 0o1101), "O_WRONLY|O_CREAT|O_TRUNC");
        assert_eq!(names("open_flags", 0x10_1002), "O_RDWR|O_SYNC");
        assert_eq!(names("access_mode", 0), "F_OK");
        assert_eq!(names("access_mode", 6), "R_OK|W_OK");
        assert_eq!(names("mmap_prot", 0), "PROT_NONE");
        assert_eq!(names("mmap_flags", 0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(names("seek_whence", 1), "SEEK_CUR");
        assert_eq!(names("seek_whence", 77), "0x4d");
        assert_eq!(names("wait_options", 0), "0");
        assert_eq!(names("futex_op", 129), "FUTEX_WAKE|FUTEX_PRIVATE_FLAG");
        assert_eq!(names("clone_flags", 0x120_0011), "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD");
        assert_eq!(names("clone_flags", 0), "0");
        assert_eq!(names("socket_type", 0x80002), "SOCK_DGRAM|SOCK_CLOEXEC");
        assert_eq!(names("at_flags", 0x1100), "AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH");
        let arm = FlagSet::named("open_flags").unwrap().on_arm();
        assert_eq!(arm.names(0x4000), "O_RDONLY|O_DIRECTORY");
    }

    #[test]
    fn every_kind_in_the_table_is_known() {
        for line in include_str!("calls.tsv").lines() {
            let (name, list) = (line.split('\t').next().unwrap(), line.rsplit('\t').next().unwrap());
            let words = if matches!(list, "-" | "?") { 0 } else { list.split(' ').count() };
            let call = SyscallTable::get().by_name(name).unwrap();
            assert_eq!(call.arguments.as_ref().map_or(0, Vec::len), words, "{name}: {list}");
            assert!(words <= 6, "{name}");
        }
    }
}
