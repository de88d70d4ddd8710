//! Named values of the arguments of system calls: flags, and numbers of which each has a name.
//!
//! Reads `flags.tsv` (name of the set, style, names and values), and formats words in strace's notation.

use std::sync::OnceLock;

/// How the named values of a [`FlagSet`] combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlagStyle {
    /// Each value is a set of bits; a word may combine several values.
    Bits,
    /// The word is one of the values.
    Value,
    /// The word is one of the values, or another number of 32 bits.
    Number,
    /// The word is one of the values, or an address.
    Address,
    /// The word is one of the values, or another request of `ioctl`.
    Request,
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
            "number" => FlagStyle::Number,
            "address" => FlagStyle::Address,
            "ioctl" => FlagStyle::Request,
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

    /// Returns the value with this name.
    pub fn value(&self, name: &str) -> Option<u64> {
        Some(self.values.iter().find(|(own, _)| *own == name)?.1)
    }

    /// Returns the bits of a word that hold one of the values, rather than flags.
    pub fn value_bits(&self, word: u64) -> u64 {
        match self.style {
            FlagStyle::Mask(mask) => word & mask,
            _ => word,
        }
    }

    /// Returns the variant of this set for Arm, where some bits differ.
    pub fn on_arm(&'static self) -> &'static Self {
        if self.name == "open_flags" { Self::named("open_flags.arm").unwrap_or(self) } else { self }
    }

    /// Formats a word as strace does: the names of its values joined by `|`, and the remaining bits in
    /// hexadecimal. A word without any name is followed by a comment, such as `/* SEEK_??? */`.
    pub fn names(&self, word: u64) -> String {
        let exact = self.values.iter().find(|(_, value)| *value == self.value_bits(word));
        match (self.style, exact) {
            (FlagStyle::Clone, _) => self.clone_names(word),
            (FlagStyle::Mask(mask), exact) => {
                let name = exact.map(|(name, _)| (*name).to_owned());
                let rest = if exact.is_some() { word & !mask } else { word };
                self.joined(name, rest, mask)
            }
            (_, Some((name, _))) => (*name).to_owned(),
            (FlagStyle::Value, None) => self.unnamed(word),
            (FlagStyle::Number, None) => (word as u32 as i32).to_string(),
            (FlagStyle::Address, None) => hexadecimal(word),
            (FlagStyle::Request, None) => request(word),
            (FlagStyle::Bits, None) => self.joined(None, word, 0),
        }
    }

    /// Returns the name of the value, if any, and the names of the flags in the rest of the word. `mask` are
    /// the bits that are not flags.
    fn joined(&self, value: Option<String>, word: u64, mask: u64) -> String {
        let mut parts: Vec<String> = value.into_iter().collect();
        let (names, rest) = self.flags(word, mask);
        parts.extend(names);
        match (parts.is_empty(), rest) {
            (true, rest) => self.unnamed(rest),
            (false, 0) => parts.join("|"),
            (false, rest) => format!("{}|{rest:#x}", parts.join("|")),
        }
    }

    /// Returns the names of the flags in a word, in the order of the table, and the remaining bits.
    fn flags(&self, word: u64, mask: u64) -> (Vec<String>, u64) {
        let mut rest = word;
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
        (found.into_iter().map(|at| self.values[at].0.to_owned()).collect(), rest)
    }

    fn clone_names(&self, word: u64) -> String {
        let (mut parts, rest) = self.flags(word & !SIGNAL, SIGNAL);
        parts.extend((rest != 0).then(|| format!("{rest:#x}")));
        match Self::named("signal") {
            Some(signal) if word & SIGNAL != 0 => parts.push(signal.names(word & SIGNAL)),
            _ if parts.is_empty() => parts.push("0".to_owned()),
            _ => {}
        }
        parts.join("|")
    }

    /// Formats a word without names. The comment contains the words that all names of the set start with.
    fn unnamed(&self, word: u64) -> String {
        let number = hexadecimal(word);
        let first = self.values.first().map_or("", |(name, _)| name);
        let is_common = |end: &usize| self.values.iter().all(|(name, _)| name.starts_with(&first[..=*end]));
        let end = first.rmatch_indices('_').map(|(at, _)| at).find(is_common).filter(|end| *end > 0);
        match end {
            Some(end) if word != 0 => format!("{number} /* {}??? */", &first[..=end]),
            _ => number,
        }
    }
}

/// The bits of the flags of `clone` that hold a signal.
const SIGNAL: u64 = 0xff;

/// Formats a number as C's `%#x` does.
pub fn hexadecimal(word: u64) -> String {
    if word == 0 { "0".to_owned() } else { format!("{word:#x}") }
}

/// Formats an unknown request of `ioctl` by its parts (`asm-generic/ioctl.h`).
fn request(word: u64) -> String {
    let direction =
        ["_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"][(word >> 30 & 3) as usize];
    let [kind, number, size] = [word >> 8 & 0xff, word & 0xff, word >> 16 & 0x3fff].map(hexadecimal);
    format!("_IOC({direction}, {kind}, {number}, {size})")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names("seek_whence", 77), "0x4d /* SEEK_??? */");
        assert_eq!(names("wait_options", 0), "0");
        assert_eq!(names("futex_op", 129), "FUTEX_WAKE_PRIVATE");
        assert_eq!(names("clone_flags", 0x120_0011), "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD");
        assert_eq!(names("clone_flags", 0), "0");
        assert_eq!(names("socket_type", 0x80002), "SOCK_DGRAM|SOCK_CLOEXEC");
        assert_eq!(names("at_flags", 0x1100), "AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH");
        assert_eq!(names("unshare_flags", 0x8000_0000), "0x80000000 /* CLONE_??? */");
        assert_eq!(names("membarrier_command", 0x201), "MEMBARRIER_CMD_GLOBAL|0x200");
        assert_eq!(names("ioctl_request", 0x5401_abcd), "_IOC(_IOC_WRITE, 0xab, 0xcd, 0x1401)");
        assert_eq!(names("key_serial", 0xffff_fffd), "KEY_SPEC_SESSION_KEYRING");
        assert_eq!([10, 33, 77].map(|signal| names("signal", signal)), ["SIGUSR1", "SIGRT_1", "77"]);
        let arm = FlagSet::named("open_flags").unwrap().on_arm();
        assert_eq!(arm.names(0x4000), "O_RDONLY|O_DIRECTORY");
    }
}
