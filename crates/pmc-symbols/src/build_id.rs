//! Build-ids: identifiers of a file's content, written by the linker and stored by the kernel and in
//! recordings.
//!
//! Takes note sections or hexadecimal text; returns a small value. [`elf`](crate::symbol::files::elf) finds
//! the notes in a file.

use std::fmt;

/// A build-id of at most 20 bytes (SHA-1), which is the maximum in the kernel and in perf.data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId {
    len: u8,
    bytes: [u8; BuildId::MAX_BYTES],
}

/// Type of the note that holds a build-id (`NT_GNU_BUILD_ID`, elf.h).
const NOTE_BUILD_ID: u32 = 3;

impl BuildId {
    /// Maximum length in bytes.
    pub(crate) const MAX_BYTES: usize = 20;

    /// Creates a build-id from raw bytes, truncated to [`BuildId::MAX_BYTES`] bytes as in the kernel. Returns
    /// `None` if `raw` is empty or all bytes are zero, which means "unknown".
    pub fn new(raw: &[u8]) -> Option<Self> {
        let raw = &raw[..raw.len().min(Self::MAX_BYTES)];
        if raw.iter().all(|byte| *byte == 0) {
            return None;
        }
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..raw.len()].copy_from_slice(raw);
        Some(Self { len: raw.len() as u8, bytes })
    }

    /// Parses hexadecimal digits.
    pub fn parse(hex: &str) -> Option<Self> {
        if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
            return None;
        }
        let bytes: Option<Vec<u8>> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
        Self::new(&bytes?)
    }

    /// Finds the build-id among ELF notes in native byte order, for example in `/sys/kernel/notes`.
    ///
    /// ```text
    ///   u32 name size | u32 content size | u32 type | name, padded to 4 | content, padded to 4 | next …
    /// ```
    pub(crate) fn in_notes(mut notes: &[u8]) -> Option<Self> {
        while notes.len() >= 12 {
            let word =
                |at: usize| u32::from_ne_bytes([notes[at], notes[at + 1], notes[at + 2], notes[at + 3]]);
            let (name, content, kind) = (word(0) as usize, word(4) as usize, word(8));
            let content_at = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
            let next = content_at.checked_add(content.checked_next_multiple_of(4)?)?;
            if kind == NOTE_BUILD_ID && notes.get(12..12 + 4) == Some(b"GNU\0") && name == 4 {
                return Self::new(notes.get(content_at..content_at.checked_add(content)?)?);
            }
            notes = notes.get(next..)?;
        }
        None
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the build-id's path below folders organized by build-id (`/usr/lib/debug/.build-id`,
    /// `~/.debug/.build-id`): `ab/cdef...`.
    pub fn path(&self) -> String {
        let hex = self.to_string();
        let (folder, rest) = hex.split_at(2);
        format!("{folder}/{rest}")
    }

    /// Whether both identify the same content. Ignores trailing zeros, because recordings may contain a
    /// shorter id padded to 20 bytes (perf before 5.12 did not store the length).
    pub fn same(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&pmc_text::text::hex(self.bytes(), ""))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_round_trips() {
        let id = BuildId::parse("aabbcc0102").unwrap();
        assert_eq!(id.to_string(), "aabbcc0102");
        assert_eq!(id.path(), "aa/bbcc0102");
        assert!(BuildId::parse("abc").is_none());
        assert!(BuildId::parse("0000").is_none());
        assert!(BuildId::parse("zz").is_none());
        assert!(id.same(&BuildId::new(&[0xaa, 0xbb, 0xcc, 1, 2, 0, 0, 0]).unwrap()));
    }

    #[test]
    fn notes_are_parsed_and_truncated_notes_are_tolerated() {
        let mut notes = Vec::new();
        for (kind, name, content) in [(6u32, b"Lin\0", &[1u8, 2, 3][..]), (3, b"GNU\0", &[9, 8, 7, 6])] {
            notes.extend(4u32.to_ne_bytes());
            notes.extend((content.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            notes.extend(name);
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(BuildId::in_notes(&notes).unwrap().to_string(), "09080706");
        for cut in 0..notes.len() {
            assert!(BuildId::in_notes(&notes[..cut]).is_none());
        }
        assert!(BuildId::in_notes(&[0xff; 64]).is_none());
    }
}
