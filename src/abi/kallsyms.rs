//! A line of `/proc/kallsyms`: `ffffffff816b89f0 T vfs_read`, and the module in brackets behind it.

/// A symbol of the kernel as the line has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KallsymsLine<'a> {
    /// Where it begins; 0 where addresses are hidden from this user.
    pub address: u64,
    /// `nm`'s letter: `t T w W` are code.
    pub kind: u8,
    /// Its name.
    pub name: &'a [u8],
    /// The module in brackets; empty for the kernel itself.
    pub module: &'a [u8],
}

impl<'a> KallsymsLine<'a> {
    /// The line without its end; `None` for what is no such line.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let address = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()?;
        let &[kind] = words.next()? else { return None };
        Some(Self { address, kind, name: words.next()?, module: words.next().unwrap_or_default() })
    }

    /// Whether it is code: what lies in data is not executed.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}
