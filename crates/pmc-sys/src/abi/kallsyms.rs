//! A line of `/proc/kallsyms`: `ffffffff816b89f0 T vfs_read`, optionally followed by the module in brackets.

/// A kernel symbol, parsed from one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KallsymsLine<'a> {
    /// The symbol's start address; 0 if the kernel hides addresses from this user.
    pub address: u64,
    /// The type letter, as printed by `nm`: `t T w W` are code.
    pub kind: u8,
    /// The symbol's name.
    pub name: &'a [u8],
    /// The module in brackets; empty for the kernel itself.
    pub module: &'a [u8],
}

impl<'a> KallsymsLine<'a> {
    /// Parses a line that has no trailing newline. Returns `None` if the line is malformed.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let address = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()?;
        let &[kind] = words.next()? else { return None };
        Some(Self { address, kind, name: words.next()?, module: words.next().unwrap_or_default() })
    }

    /// Whether the symbol is code.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}
