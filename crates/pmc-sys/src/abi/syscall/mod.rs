//! System calls: names, numbers by architecture, arguments, and strace's classes.
//!
//! The tables are text: `calls.tsv` (name, number on x86-64, i386, arm64 and arm, classes, arguments),
//! `commands.tsv` (arguments of single commands, such as `F_SETFL` of `fcntl`), `structures.tsv` (data to
//! which arguments point) and `flags.tsv` (named values of arguments). `tests/syscall-tables` takes the
//! numbers and values from the kernel's headers. The arguments were taken from the format files of the
//! system-call tracepoints; their kinds were then refined by hand. The classes are taken from strace 6.1.

mod arguments;
mod flags;
mod structures;

use std::sync::OnceLock;

pub use arguments::{ArgumentKind, DataAccess, DataCount, ResultKind, SyscallArgument, SyscallSignature};
pub use flags::{FlagSet, hexadecimal};
pub use structures::{DataKind, PointerTarget, Structure, StructureField, unsigned};

/// The ABI of a system call, which determines its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SyscallAbi {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86, and the 32-bit calls of x86-64.
    I386,
    /// 64-bit Arm.
    Arm64,
    /// 32-bit Arm, and the 32-bit calls of arm64.
    Arm,
}

impl SyscallAbi {
    /// The 64-bit ABI of this machine.
    pub const NATIVE: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::X86_64 };

    /// Returns the ABI of a machine, given its name as printed by `uname -m`.
    pub fn of_machine(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" | "arm64" => Some(Self::Arm64),
            "i386" | "i486" | "i586" | "i686" => Some(Self::I386),
            _ if name.starts_with("arm") => Some(Self::Arm),
            _ => None,
        }
    }

    /// Returns the ABI of 32-bit calls on the same machine.
    pub fn of_32_bits(self) -> Self {
        match self {
            Self::X86_64 | Self::I386 => Self::I386,
            Self::Arm64 | Self::Arm => Self::Arm,
        }
    }

    /// Whether pointers and numbers are 32 bits wide.
    pub fn is_32_bit(self) -> bool {
        matches!(self, Self::I386 | Self::Arm)
    }
}

/// A system call.
#[derive(Debug)]
pub struct Syscall {
    /// The kernel's name, such as `openat`.
    pub name: &'static str,
    /// The number in each ABI, in the order of [`SyscallAbi`].
    numbers: [Option<u16>; 4],
    classes: &'static str,
    /// The arguments and the result; `None` if they are unknown.
    signature: Option<SyscallSignature>,
    /// Arguments and results of single commands. The first one that fits is used.
    commands: Vec<SyscallCommand>,
}

/// A command of a call, such as `F_SETFL` of `fcntl`.
#[derive(Debug)]
struct SyscallCommand {
    /// Indices of registers, each with the values that it must have, and the set that names them.
    values: Vec<(usize, Vec<u64>, Option<&'static FlagSet>)>,
    signature: SyscallSignature,
}

impl SyscallCommand {
    /// Parses a row: `NAME=VALUE,VALUE …` for the arguments that select the command, and all arguments.
    fn parse(selectors: &str, list: &'static str) -> Option<Self> {
        let signature = arguments::parse(list)?;
        let mut values = Vec::new();
        for selector in selectors.split(' ') {
            let (name, words) = selector.split_once('=')?;
            let argument = signature.arguments.iter().find(|argument| argument.name == name)?;
            let set = match argument.kind {
                ArgumentKind::Flags(set) => Some(set),
                _ => None,
            };
            let value = |word: &str| set.and_then(|set| set.value(word)).or_else(|| structures::number(word));
            values.push((argument.register, words.split(',').map(value).collect::<Option<_>>()?, set));
        }
        Some(Self { values, signature })
    }

    fn fits(&self, words: &[u64; 6]) -> bool {
        self.values.iter().all(|(register, values, set)| {
            // Commands have 32 bits.
            let word = u64::from(words[*register] as u32);
            values.contains(&set.map_or(word, |set| set.value_bits(word)))
        })
    }
}

impl Syscall {
    /// Returns the number of the call in this ABI; `None` if the ABI does not have the call.
    pub fn number(&self, abi: SyscallAbi) -> Option<u16> {
        self.numbers[abi as usize]
    }

    /// Returns the arguments in general, regardless of the command; empty if they are unknown.
    pub fn arguments(&self) -> &[SyscallArgument] {
        self.signature.as_ref().map_or(&[], |signature| &signature.arguments)
    }

    /// Returns the arguments and the result of a call with these words in its registers; `None` if they are
    /// unknown.
    pub fn signature(&self, words: &[u64; 6]) -> Option<&SyscallSignature> {
        let command = self.commands.iter().find(|command| command.fits(words));
        command.map(|command| &command.signature).or(self.signature.as_ref())
    }

    /// Returns the call's name in the kernel's tracepoints, such as `newstat` in
    /// `syscalls:sys_enter_newstat`.
    pub fn tracepoint_name(&self) -> &'static str {
        match self.name {
            "stat" => "newstat",
            "fstat" => "newfstat",
            "lstat" => "newlstat",
            "uname" => "newuname",
            "umount2" => "umount",
            "sendfile" => "sendfile64",
            name => name,
        }
    }

    /// Whether the call belongs to one of strace's classes, such as `file`.
    pub fn is_in(&self, class: &str) -> bool {
        self.classes.split(',').any(|own| own == class)
    }
}

/// All system calls.
#[derive(Debug)]
pub struct SyscallTable {
    calls: Vec<Syscall>,
    /// Index into `calls` for each number, per ABI; `u16::MAX` for unused numbers.
    by_number: [Vec<u16>; 4],
}

/// Alternative names of strace's classes.
const CLASS_ALIASES: [(&str, &str); 2] = [("net", "network"), ("sig", "signal")];

impl SyscallTable {
    /// Returns the table, which is parsed on first use.
    pub fn get() -> &'static Self {
        static TABLE: OnceLock<SyscallTable> = OnceLock::new();
        TABLE.get_or_init(|| Self::parse(include_str!("calls.tsv"), include_str!("commands.tsv")))
    }

    fn parse(text: &'static str, commands: &'static str) -> Self {
        let mut table = Self { calls: Vec::new(), by_number: Default::default() };
        for line in text.lines() {
            let mut fields = line.split('\t');
            let mut field = || fields.next().unwrap_or_default();
            let name = field();
            let numbers = [field(), field(), field(), field()].map(|number| number.parse().ok());
            let (classes, list) = (field(), field());
            for (by_number, number) in table.by_number.iter_mut().zip(numbers) {
                let Some(number) = number.map(|number: u16| usize::from(number)) else { continue };
                if by_number.len() <= number {
                    by_number.resize(number + 1, u16::MAX);
                }
                by_number[number] = table.calls.len() as u16;
            }
            let (signature, commands) = (arguments::parse(list), Vec::new());
            table.calls.push(Syscall { name, numbers, classes, signature, commands });
        }
        for line in commands.lines() {
            let mut fields = line.split('\t');
            let [names, selectors, list] = [(); 3].map(|()| fields.next().unwrap_or_default());
            for name in names.split(',') {
                let call = table.calls.iter_mut().find(|call| call.name == name);
                if let (Some(call), Some(command)) = (call, SyscallCommand::parse(selectors, list)) {
                    call.commands.push(command);
                }
            }
        }
        table
    }

    /// Returns all calls, sorted by name.
    pub fn calls(&self) -> &[Syscall] {
        &self.calls
    }

    /// Returns the call with this number.
    pub fn by_number(&self, abi: SyscallAbi, number: u64) -> Option<&Syscall> {
        let index = *self.by_number[abi as usize].get(usize::try_from(number).ok()?)?;
        self.calls.get(usize::from(index))
    }

    /// Returns the call with this name.
    pub fn by_name(&self, name: &str) -> Option<&Syscall> {
        self.calls.binary_search_by_key(&name, |call| call.name).ok().map(|at| &self.calls[at])
    }

    /// Returns the calls of one of strace's classes, without `%`; `None` if there is no such class.
    pub fn class(&self, name: &str) -> Option<Vec<&Syscall>> {
        let name = CLASS_ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        let calls: Vec<&Syscall> = self.calls.iter().filter(|call| call.is_in(name)).collect();
        (!calls.is_empty()).then_some(calls)
    }

    /// Returns the names of all classes, sorted.
    pub fn class_names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.calls.iter().flat_map(|call| call.classes.split(',')).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_to_names_in_every_abi() {
        let table = SyscallTable::get();
        let name = |abi, number| table.by_number(abi, number).map(|call| call.name);
        assert_eq!(name(SyscallAbi::X86_64, 257), Some("openat"));
        assert_eq!(name(SyscallAbi::I386, 295), Some("openat"));
        assert_eq!(name(SyscallAbi::Arm64, 56), Some("openat"));
        assert_eq!(name(SyscallAbi::Arm, 322), Some("openat"));
        assert_eq!(name(SyscallAbi::X86_64, 100_000), None);
        for abi in [SyscallAbi::X86_64, SyscallAbi::I386, SyscallAbi::Arm64, SyscallAbi::Arm] {
            let numbered = table.calls().iter().filter_map(|call| Some((call, call.number(abi)?)));
            for (call, number) in numbered {
                assert_eq!(name(abi, number.into()), Some(call.name));
            }
        }
    }

    #[test]
    fn names_are_sorted_and_lead_to_calls() {
        let table = SyscallTable::get();
        assert!(table.calls().is_sorted_by_key(|call| call.name));
        assert_eq!(table.by_name("read").and_then(|call| call.number(SyscallAbi::X86_64)), Some(0));
        assert!(table.by_name("nosuch").is_none());
    }

    #[test]
    fn every_row_is_parsed() {
        let table = SyscallTable::get();
        for line in include_str!("calls.tsv").lines() {
            let (name, list) = (line.split('\t').next().unwrap(), line.rsplit('\t').next().unwrap());
            let call = table.by_name(name).unwrap();
            assert_eq!(call.signature.is_none(), list == "?", "{name}: {list}");
            assert!(call.arguments().len() <= 6, "{name}");
        }
        for line in include_str!("commands.tsv").lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert!(SyscallCommand::parse(fields[1], fields[2]).is_some(), "{line}");
            assert!(fields[0].split(',').all(|name| table.by_name(name).is_some()), "{line}");
        }
    }

    #[test]
    fn commands_select_the_arguments() {
        let names = |call: &str, words: [u64; 6]| {
            let signature = SyscallTable::get().by_name(call).unwrap().signature(&words).unwrap();
            signature.arguments.iter().map(|argument| argument.name).collect::<Vec<_>>()
        };
        assert_eq!(names("fcntl", [3, 1, 7, 0, 0, 0]), ["fd", "cmd"]);
        assert_eq!(names("fcntl", [3, 77, 7, 0, 0, 0]), ["fd", "cmd", "arg"]);
        assert_eq!(names("futex", [0, 0x189, 2, 0, 0, 5]), ["uaddr", "futex_op", "val", "timeout", "val3"]);
        assert_eq!(names("prctl", [0xf, 1, 1, 1, 1, 0]), ["option", "name"]);
    }

    #[test]
    fn classes_are_those_of_strace() {
        let table = SyscallTable::get();
        let has = |class: &str, name: &str| table.class(class).unwrap().iter().any(|call| call.name == name);
        assert!(has("file", "openat") && has("file", "execve") && !has("file", "read"));
        assert!(has("desc", "read") && has("net", "connect") && has("network", "connect"));
        assert!(has("process", "clone3") && has("memory", "mmap") && has("signal", "kill"));
        assert!(table.class("nosuch").is_none());
        assert!(table.class_names().contains(&"ipc"));
    }
}
