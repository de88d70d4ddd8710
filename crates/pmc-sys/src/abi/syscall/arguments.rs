//! Arguments of system calls: their names, kinds and registers, and the kinds of results.
//!
//! Parses the lists of arguments in `calls.tsv` and `commands.tsv`. The view formats the arguments, and the
//! tracer reads the memory to which they point.

use super::flags::FlagSet;
use super::structures::{Condition, DataKind};

/// An argument of a system call.
#[derive(Debug, Clone, Copy)]
pub struct SyscallArgument {
    /// The name in the manual page or in the kernel.
    pub name: &'static str,
    /// The kind of value in the register.
    pub kind: ArgumentKind,
    /// The index of the register.
    pub register: usize,
    /// Whether strace prints the name before the value.
    pub has_label: bool,
    condition: Option<Condition>,
}

impl SyscallArgument {
    /// Whether the call uses the argument. Some arguments are used only with certain flags in another one.
    pub fn is_used(&self, words: &[u64; 6]) -> bool {
        self.condition.is_none_or(|condition| condition.holds(words.get(condition.index).copied()))
    }
}

/// The kind of value in an argument's register. Numbers in the variants are indices of other registers.
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
    /// Address of a NULL-terminated array of string addresses, of which only the number is shown.
    Variables,
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
    /// The type of a file, and its permissions.
    FileMode,
    /// The number of a device.
    Device,
    /// The priority of input and output.
    IoPriority,
    /// Address of bytes that the call reads. The argument with this index is their number.
    Input(usize),
    /// Address of bytes that the call writes. The result of the call is their number.
    Output,
    /// Like [`Output`](Self::Output), with bytes that are always shown in hexadecimal.
    HexOutput,
    /// Address of a NUL-terminated path that the call writes.
    OutputText,
    /// Address of a `stat` that the call writes.
    Stat,
    /// Address of one or several values.
    Data(DataAccess, &'static DataKind, Option<DataCount>),
    /// A number with named values.
    Flags(&'static FlagSet),
}

/// Whether a call reads or writes the data to which an argument points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataAccess {
    /// The call reads the data.
    Read,
    /// The call writes the data.
    Write,
    /// The call reads the data and writes its answer to the same memory. The answer is shown with the result.
    Answer,
    /// The call reads the data and writes new data to the same memory. Both are shown.
    Replace,
}

/// The number of elements in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataCount {
    /// The value of the register with this index.
    Register(usize),
    /// The 32-bit number to which the register with this index points after the call.
    Pointed(usize),
    /// The result of the call.
    Result,
}

impl ArgumentKind {
    /// Whether the argument is formatted after the call, because the call writes to the memory at this
    /// address.
    pub fn is_output(self) -> bool {
        match self {
            Self::Data(access, ..) => matches!(access, DataAccess::Write | DataAccess::Replace),
            _ => matches!(self, Self::Output | Self::HexOutput | Self::OutputText | Self::Stat),
        }
    }

    /// Whether the argument is the address of strings whose contents are lost when the call executes a
    /// program.
    pub fn is_program_argument(self) -> bool {
        matches!(self, Self::Texts)
    }
}

/// How the result of a successful call is formatted.
#[derive(Debug, Clone, Copy, Default)]
pub enum ResultKind {
    /// A decimal number.
    #[default]
    Number,
    /// Permissions, in base 8.
    Octal,
    /// An address.
    Hex,
    /// A hexadecimal number, and its names after the word `flags`. 0 has no names unless the set names it.
    Flags(&'static FlagSet),
    /// A hexadecimal number, and its names.
    Bits(&'static FlagSet),
    /// A decimal number, and its name.
    Name(&'static FlagSet),
    /// The number of descriptors that are ready, and which they are; 0 after a timeout.
    Ready,
    /// The priority of input and output.
    IoPriority,
}

/// The arguments and the result of a call, or of one command of a call.
#[derive(Debug, Default)]
pub struct SyscallSignature {
    /// The arguments, in the order in which strace prints them.
    pub arguments: Vec<SyscallArgument>,
    /// The kind of the result.
    pub result: ResultKind,
}

/// Parses a list `NAME:KIND NAME:KIND …`; `-` is the empty list. Returns `None` for `?`, which means that the
/// arguments are unknown. Each kind may end with `@REGISTER`, if that is not the argument's position, and
/// with a [`Condition`] after `?`. The name `=` marks the result.
pub(super) fn parse(list: &'static str) -> Option<SyscallSignature> {
    let mut signature = SyscallSignature::default();
    match list {
        "?" | "" => return None,
        "-" => return Some(signature),
        _ => {}
    }
    for (position, word) in list.split(' ').enumerate() {
        match word.strip_prefix("=:") {
            Some(kind) => signature.result = result(kind)?,
            None => signature.arguments.push(argument(position, word)?),
        }
    }
    Some(signature)
}

fn argument(position: usize, word: &'static str) -> Option<SyscallArgument> {
    let (name, rest) = word.split_once(':')?;
    let (rest, condition) = Condition::split_off(rest)?;
    let (kind, register) = match rest.split_once('@') {
        Some((kind, register)) => (kind, register.parse().ok()?),
        None => (rest, position),
    };
    let has_label = name.starts_with('+');
    let name = name.trim_start_matches('+');
    (register < 6).then_some(SyscallArgument {
        name,
        kind: self::kind(kind)?,
        register,
        has_label,
        condition,
    })
}

fn kind(word: &'static str) -> Option<ArgumentKind> {
    let accesses = [
        ("<>", DataAccess::Answer),
        ("=>", DataAccess::Replace),
        ("<", DataAccess::Read),
        (">", DataAccess::Write),
    ];
    for (sign, access) in accesses {
        if let Some(data) = word.strip_prefix(sign) {
            let (kind, count) = match data.strip_suffix(']').and_then(|data| data.split_once('[')) {
                Some((kind, count)) => (kind, Some(self::count(count)?)),
                None => (data, None),
            };
            return Some(ArgumentKind::Data(access, DataKind::named(kind)?, count));
        }
    }
    Some(match word {
        "fd" => ArgumentKind::Fd,
        "dirfd" => ArgumentKind::DirFd,
        "path" => ArgumentKind::Path,
        "str" => ArgumentKind::Text,
        "strv" => ArgumentKind::Texts,
        "vars" => ArgumentKind::Variables,
        "int" => ArgumentKind::Int,
        "uint" => ArgumentKind::Uint,
        "long" => ArgumentKind::Long,
        "size" => ArgumentKind::Size,
        "hex" => ArgumentKind::Hex,
        "ptr" => ArgumentKind::Address,
        "octal" => ArgumentKind::Mode,
        "file_mode" => ArgumentKind::FileMode,
        "dev" => ArgumentKind::Device,
        "ioprio" => ArgumentKind::IoPriority,
        "out" => ArgumentKind::Output,
        "outhex" => ArgumentKind::HexOutput,
        "outstr" => ArgumentKind::OutputText,
        "stat" => ArgumentKind::Stat,
        word => match word.strip_prefix("in.") {
            Some(index) => ArgumentKind::Input(index.parse().ok()?),
            None => ArgumentKind::Flags(FlagSet::named(word)?),
        },
    })
}

fn count(word: &str) -> Option<DataCount> {
    match word.strip_prefix('*') {
        Some(register) => register.parse().ok().map(DataCount::Pointed),
        None if word == "=" => Some(DataCount::Result),
        None => word.parse().ok().map(DataCount::Register),
    }
}

fn result(word: &str) -> Option<ResultKind> {
    let set = |prefix: &str| word.strip_prefix(prefix).and_then(FlagSet::named);
    let named = set("flags.").map(ResultKind::Flags).or_else(|| set("bits.").map(ResultKind::Bits));
    named.or_else(|| set("name.").map(ResultKind::Name)).or(match word {
        "octal" => Some(ResultKind::Octal),
        "hex" => Some(ResultKind::Hex),
        "ready" => Some(ResultKind::Ready),
        "ioprio" => Some(ResultKind::IoPriority),
        _ => None,
    })
}
