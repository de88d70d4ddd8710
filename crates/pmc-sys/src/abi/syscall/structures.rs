//! Data to which the arguments of system calls point: numbers, structures, and arrays of them.
//!
//! Reads `structures.tsv` (name, size in bytes, fields). The fields are in the order in which strace prints
//! them, with strace's names; the offsets are those of the kernel's headers for 64-bit programs. `...` at
//! the end means that there are more fields. Layouts that differ on arm64 have a row of their own. The
//! tracer reads the data, and the view formats it.

use std::sync::OnceLock;

use super::flags::FlagSet;

/// A condition on another field or register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The index of the field or register.
    pub index: usize,
    test: ConditionTest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionTest {
    AnyOf(u64),
    Equals(u64),
}

impl Condition {
    /// Splits the condition after `?` off, if there is one. Returns `None` if it is invalid.
    pub(super) fn split_off(word: &str) -> Option<(&str, Option<Self>)> {
        match word.split_once('?') {
            Some((rest, condition)) => Some((rest, Some(Self::parse(condition)?))),
            None => Some((word, None)),
        }
    }

    /// Parses `INDEX&0xMASK` (any of these bits is set) or `INDEX=VALUE`.
    fn parse(word: &str) -> Option<Self> {
        let (index, test) = match word.split_once('=') {
            Some((index, value)) => (index, ConditionTest::Equals(number(value)?)),
            None => {
                let (index, mask) = word.split_once('&')?;
                (index, ConditionTest::AnyOf(number(mask)?))
            }
        };
        Some(Self { index: index.parse().ok()?, test })
    }

    /// Whether the condition holds for this value of the field or register.
    pub fn holds(self, value: Option<u64>) -> bool {
        match self.test {
            ConditionTest::AnyOf(mask) => value.is_some_and(|value| value & mask != 0),
            ConditionTest::Equals(wanted) => value == Some(wanted),
        }
    }
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
pub(super) fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The kind of a value in memory. Sizes are in bytes.
#[derive(Debug, Clone, Copy)]
pub enum DataKind {
    /// A signed number of this size.
    Signed(usize),
    /// An unsigned number of this size.
    Unsigned(usize),
    /// A number of this size, in hexadecimal.
    Hex(usize),
    /// A number of this size, in base 8.
    Octal(usize),
    /// A number of this size with named values.
    Flags(&'static FlagSet, usize),
    /// The type of a file, and its permissions, of this size.
    FileMode(usize),
    /// A resource limit.
    Limit,
    /// One bit of a 64-bit word. It is shown only if it is set.
    Bit(u32),
    /// The allowed skid of a sampled event, in a word of bits.
    Skid,
    /// The status of a child process.
    WaitStatus,
    /// An address that is not followed.
    Address,
    /// The data of an epoll event.
    EpollData,
    /// A NUL-terminated string in an array of this size.
    Text(usize),
    /// A set of signals.
    SignalSet,
    /// A set of descriptors. The array's length is the number of bits.
    FdSet,
    /// A set of CPUs. The array's length is in bytes.
    CpuSet,
    /// A socket address. The array's length is in bytes.
    SocketAddress,
    /// A structure.
    Structure(&'static Structure),
    /// This many values of a kind.
    Repeated(&'static DataKind, usize),
    /// Address of values. The field with this index is their number.
    Pointer(PointerTarget, usize),
}

/// The kind of data to which a field points.
#[derive(Debug, Clone, Copy)]
pub enum PointerTarget {
    /// Bytes.
    Bytes,
    /// A socket address.
    SocketAddress,
    /// An array of structures.
    Structures(&'static Structure),
}

/// Maximum size of a socket address (`struct sockaddr_storage`).
const SOCKET_ADDRESS: usize = 128;

impl DataKind {
    /// Returns the kind with this name; `None` if the name is unknown. The kind is kept for the life of the
    /// program, like the tables that it comes from.
    pub(super) fn named(word: &'static str) -> Option<&'static Self> {
        Some(Box::leak(Box::new(Self::parse(word, structures())?)))
    }

    fn parse(word: &'static str, known: &[&'static Structure]) -> Option<Self> {
        if let Some((kind, count)) = word.split_once('*') {
            return Some(Self::Repeated(Box::leak(Box::new(Self::parse(kind, known)?)), count.parse().ok()?));
        }
        let exactly = |name: &str| known.iter().find(|structure| structure.name == name).copied();
        let on_arm = |name: &str| exactly(&format!("{name}.arm")).filter(|_| cfg!(target_arch = "aarch64"));
        let structure = |name: &str| on_arm(name).or_else(|| exactly(name));
        if let Some((target, index)) = word.strip_suffix(']').and_then(|word| word.split_once('[')) {
            let target = match target {
                "bytes" => PointerTarget::Bytes,
                "sockaddr" => PointerTarget::SocketAddress,
                name => PointerTarget::Structures(structure(name)?),
            };
            return Some(Self::Pointer(target, index.parse().ok()?));
        }
        let simple = match word {
            "limit" => Self::Limit,
            "skid" => Self::Skid,
            "waitstatus" => Self::WaitStatus,
            "ptr" => Self::Address,
            "epoll_data" => Self::EpollData,
            "sigset" => Self::SignalSet,
            "fdset" => Self::FdSet,
            "cpuset" => Self::CpuSet,
            "sockaddr" => Self::SocketAddress,
            _ => return Self::with_size(word).or_else(|| structure(word).map(Self::Structure)),
        };
        Some(simple)
    }

    /// Parses a kind that ends with a size, such as `u8` or `open_flags/8`. Flags have 4 bytes by default.
    fn with_size(word: &'static str) -> Option<Self> {
        let end = word.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let size = || word[end.len()..].parse::<usize>().ok();
        match end {
            "i" => size().map(Self::Signed),
            "u" => size().map(Self::Unsigned),
            "x" => size().map(Self::Hex),
            "octal" => size().map(Self::Octal),
            "mode" => size().map(Self::FileMode),
            "text" => size().map(Self::Text),
            "bit" => size().map(|bit| Self::Bit(bit as u32)),
            _ => match end.strip_suffix('/') {
                Some(set) => Some(Self::Flags(FlagSet::named(set)?, size()?)),
                None => FlagSet::named(word).map(|set| Self::Flags(set, 4)),
            },
        }
    }

    /// Returns the size of one value.
    pub fn size(&self) -> usize {
        match self {
            Self::Signed(size) | Self::Unsigned(size) | Self::Hex(size) | Self::Octal(size) => *size,
            Self::Flags(_, size) | Self::FileMode(size) | Self::Text(size) => *size,
            Self::WaitStatus => 4,
            Self::Limit | Self::Bit(_) | Self::Skid | Self::Address | Self::EpollData => 8,
            Self::SignalSet | Self::Pointer(..) => 8,
            Self::FdSet | Self::CpuSet | Self::SocketAddress => 1,
            Self::Structure(structure) => structure.size,
            Self::Repeated(kind, count) => kind.size() * count,
        }
    }

    /// Returns the size of an array with this length, and whether the array is cut there. At most `most`
    /// structures are read.
    pub fn array_size(&self, count: usize, most: usize) -> (usize, bool) {
        match self {
            Self::FdSet => (count.min(MOST_BITS).div_ceil(64) * 8, count > MOST_BITS),
            Self::CpuSet => (count.min(MOST_BITS / 8), count > MOST_BITS / 8),
            Self::SocketAddress => (count.min(SOCKET_ADDRESS), false),
            _ => (count.min(most) * self.size(), count > most),
        }
    }

    /// Whether 32-bit programs have the same layout. Only wide fields and pointers make the difference.
    pub fn is_same_in_32_bits(&self) -> bool {
        match self {
            Self::Structure(structure) => structure.fields.iter().all(|field| field.kind.size() <= 4),
            Self::Repeated(kind, _) => kind.is_same_in_32_bits(),
            Self::Pointer(..) | Self::Address => false,
            _ => true,
        }
    }
}

/// Maximum number of bits in a set of descriptors or CPUs.
const MOST_BITS: usize = 1 << 13;

/// A structure of the kernel's interface.
#[derive(Debug)]
pub struct Structure {
    name: &'static str,
    /// The size in bytes, as far as fields are shown.
    size: usize,
    /// The fields to show.
    pub fields: Vec<StructureField>,
    /// Whether there are more fields.
    pub has_more: bool,
}

/// A field of a structure.
#[derive(Debug)]
pub struct StructureField {
    /// The name.
    pub name: &'static str,
    /// The offset in bytes.
    pub offset: usize,
    /// The kind of value.
    pub kind: DataKind,
    /// The field is used only if this holds. The index is that of another field.
    pub condition: Option<Condition>,
}

impl Structure {
    /// Returns the structure with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        structures().iter().find(|structure| structure.name == name).copied()
    }

    /// Returns the variant of this structure that shows the call's answer.
    pub fn result(&'static self) -> &'static Self {
        if self.name == "pollfd" { Self::named("pollfd.result").unwrap_or(self) } else { self }
    }

    /// Returns the number in a field of an element that starts at `start`.
    pub fn number(&self, index: usize, bytes: &[u8], start: usize) -> Option<u64> {
        let field = self.fields.get(index)?;
        let word = unsigned(bytes, start + field.offset, field.kind.size())?;
        Some(match field.kind {
            DataKind::Bit(bit) => word >> bit & 1,
            _ => word,
        })
    }

    fn parse(line: &'static str, known: &[&'static Self]) -> Option<Self> {
        let mut columns = line.split('\t');
        let (name, size) = (columns.next()?, columns.next()?.parse().ok()?);
        let mut structure = Self { name, size, fields: Vec::new(), has_more: false };
        for word in columns.next()?.split(' ') {
            if word == "..." {
                structure.has_more = true;
                continue;
            }
            let (name, rest) = word.split_once('@')?;
            let (offset, rest) = rest.split_once(':')?;
            let (kind, condition) = Condition::split_off(rest)?;
            let kind = DataKind::parse(kind, known)?;
            structure.fields.push(StructureField { name, offset: offset.parse().ok()?, kind, condition });
        }
        Some(structure)
    }
}

/// Reads an unsigned number of up to 8 bytes.
pub fn unsigned(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..size)?;
    let mut word = [0; 8];
    match cfg!(target_endian = "big") {
        true => word.get_mut(8 - size..)?.copy_from_slice(bytes),
        false => word.get_mut(..size)?.copy_from_slice(bytes),
    }
    Some(u64::from_ne_bytes(word))
}

/// Returns all structures. A row may contain the structures of earlier rows.
fn structures() -> &'static [&'static Structure] {
    static TABLE: OnceLock<Vec<&'static Structure>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut known: Vec<&'static Structure> = Vec::new();
        for line in include_str!("structures.tsv").lines() {
            if let Some(structure) = Structure::parse(line, &known) {
                known.push(Box::leak(Box::new(structure)));
            }
        }
        known
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_parsed_and_fields_are_inside() {
        for line in include_str!("structures.tsv").lines() {
            let name = line.split('\t').next().unwrap();
            let structure = Structure::named(name).unwrap_or_else(|| panic!("{line}"));
            for (at, field) in structure.fields.iter().enumerate() {
                assert!(field.offset + field.kind.size() <= structure.size, "{name}.{}", field.name);
                let index = match field.kind {
                    DataKind::Pointer(_, index) => Some(index),
                    _ => field.condition.map(|condition| condition.index),
                };
                assert!(index.is_none_or(|index| index != at && index < structure.fields.len()), "{name}");
            }
        }
    }

    #[test]
    fn conditions_test_bits_or_values() {
        let holds = |condition: &str, value| Condition::parse(condition).unwrap().holds(Some(value));
        assert!(holds("1&0x6", 4) && !holds("1&0x6", 8) && holds("0=1", 1) && !holds("0=1", 3));
        assert_eq!(Condition::parse("2=5").unwrap().index, 2);
        assert!(Condition::parse("x").is_none());
    }

    #[test]
    fn layouts_of_32_bit_programs_are_known() {
        let is_same = |name| DataKind::named(name).unwrap().is_same_in_32_bits();
        assert_eq!(["pollfd", "i4*2", "sigset", "sockaddr"].map(is_same), [true; 4]);
        assert_eq!(["timespec", "msghdr", "timespec*2"].map(is_same), [false; 3]);
    }

    #[test]
    fn arrays_are_limited() {
        let size = |name, count| DataKind::named(name).unwrap().array_size(count, 16);
        assert_eq!(size("pollfd", 3), (24, false));
        assert_eq!(size("pollfd", 100), (128, true));
        assert_eq!(size("fdset", 65), (16, false));
        assert_eq!(size("sockaddr", usize::MAX), (128, false));
    }
}
