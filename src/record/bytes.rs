//! Bounds-checked reading of native-endian fields: every byte of a record passes through here.
//!
//! Receives slices that nobody has looked at yet; hands on numbers, texts and rows of words that borrow from
//! them. Running out of bytes is `None`, never a panic. Knows nothing of records; byte order is made native
//! before (see `swap`).

/// A place in a slice that moves on with what is read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    left: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.left
    }

    /// The next `count` bytes.
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

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_ne_bytes)
    }
    /// The next two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }
    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }
    /// The next four bytes, signed.
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_ne_bytes)
    }
    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// The next `count` words; a count that the bytes cannot hold is `None`.
    #[inline]
    pub fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.take(bytes).map(Words::new)
    }

    /// All whole words that are left.
    pub fn all_words(&mut self) -> Words<'a> {
        let words = Words::new(self.left);
        self.left = &self.left[words.len() * 8..];
        words
    }

    /// The text up to the next NUL (or the end), without it. Everything left is used up: texts end records.
    pub fn text(&mut self) -> &'a [u8] {
        let text = until_nul(self.left);
        self.left = &[];
        text
    }

    /// The same, where a NUL must end the text.
    pub fn terminated(&mut self) -> Option<&'a [u8]> {
        self.left.contains(&0).then(|| self.text())
    }
}

/// The bytes before the first NUL, or all.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|&b| b == 0).map_or(bytes, |end| &bytes[..end])
}

/// A row of u64 in a record, wherever it lies: no copy, no alignment needed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Words<'a>(&'a [[u8; 8]]);

impl<'a> Words<'a> {
    /// The whole words of these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }
    /// Number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The first so many words, or all.
    pub fn first(&self, count: usize) -> Self {
        Self(self.0.get(..count).unwrap_or(self.0))
    }
    /// The word with this index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|word| u64::from_ne_bytes(*word))
    }
    /// The words in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone + use<'a> {
        self.0.iter().map(|word| u64::from_ne_bytes(*word))
    }
    /// Rows of `N` words each; an incomplete last row is dropped.
    pub fn rows<const N: usize>(&self) -> impl Iterator<Item = [u64; N]> + use<'a, N> {
        self.0.as_chunks::<N>().0.iter().map(|row| row.map(u64::from_ne_bytes))
    }
    /// The bytes below: equal bytes are equal words, which makes them a key for interning.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }
}

impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|w| format!("{w:#x}"))).finish()
    }
}
