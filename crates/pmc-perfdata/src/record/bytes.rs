//! Bounds-checked reads of native-endian fields. All code that decodes records uses this module.
//!
//! Receives unchecked slices; returns numbers, strings and sequences of words that borrow from them. Reading
//! past the end returns `None` and never panics. Callers first convert records in the opposite byte order
//! (see `swap`).

/// A read position in a slice.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    left: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// The unread bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// Reads the next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, left) = self.left.split_first_chunk::<N>()?;
        self.left = left;
        Some(*taken)
    }

    /// Reads the next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_ne_bytes)
    }
    /// Reads the next two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }
    /// Reads the next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }
    /// Reads the next four bytes as a signed number.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_ne_bytes)
    }
    /// Reads the next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Takes a count, then that many pairs of words.
    pub fn pairs(&mut self) -> Option<RecordWords<'a>> {
        let count = self.u64()?;
        self.words(count.checked_mul(2)?)
    }

    /// Reads the next `count` words; `None` if there are fewer.
    #[inline]
    pub fn words(&mut self, count: u64) -> Option<RecordWords<'a>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.take(bytes).map(RecordWords::new)
    }

    /// Reads all remaining whole words.
    pub fn all_words(&mut self) -> RecordWords<'a> {
        let words = RecordWords::new(self.left);
        self.left = &self.left[words.len() * 8..];
        words
    }

    /// Reads the string up to the next NUL or the end, without the NUL. Consumes all remaining bytes, because
    /// a string is always the last field of its record.
    pub fn text(&mut self) -> &'a [u8] {
        let text = until_nul(self.left);
        self.left = &[];
        text
    }

    /// Like [`text`](Self::text), but requires a NUL.
    pub fn terminated(&mut self) -> Option<&'a [u8]> {
        self.left.contains(&0).then(|| self.text())
    }
}

/// Returns the bytes before the first NUL, or all of them.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|&b| b == 0).map_or(bytes, |end| &bytes[..end])
}

/// A sequence of `u64` words in a record. The words are not copied and need not be aligned.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordWords<'a>(&'a [[u8; 8]]);

impl<'a> RecordWords<'a> {
    /// Creates the sequence of all whole words in `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }
    /// Number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The first `count` words, or all of them.
    pub fn first(&self, count: usize) -> Self {
        Self(self.0.get(..count).unwrap_or(self.0))
    }
    /// The word at this index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|word| u64::from_ne_bytes(*word))
    }
    /// Iterates over the words.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone + use<'a> {
        self.0.iter().map(|word| u64::from_ne_bytes(*word))
    }
    /// Iterates over rows of `N` words. Ignores an incomplete last row.
    pub fn rows<const N: usize>(&self) -> impl Iterator<Item = [u64; N]> + use<'a, N> {
        self.0.as_chunks::<N>().0.iter().map(|row| row.map(u64::from_ne_bytes))
    }
    /// The words as bytes, which can serve as a key for interning.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

impl std::fmt::Debug for RecordWords<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|w| format!("{w:#x}"))).finish()
    }
}
