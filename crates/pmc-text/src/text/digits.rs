//! Formats integers faster than `fmt`: `script` prints several numbers on each of millions of lines.

/// Maximum number of digits: the length of `u64::MAX` in base 8.
const MAX_DIGITS: usize = 22;

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// The digits of a number.
#[derive(Debug, Clone, Copy)]
pub struct Digits {
    bytes: [u8; MAX_DIGITS],
    start: usize,
}

impl Digits {
    /// Formats in base 10.
    #[inline]
    pub fn decimal(number: u64) -> Self {
        Self::new::<10>(number, LOWER)
    }

    /// Formats in base 16.
    #[inline]
    pub fn hex(number: u64) -> Self {
        Self::new::<16>(number, LOWER)
    }

    /// Formats in base 16, with capital letters.
    pub fn upper_hex(number: u64) -> Self {
        Self::new::<16>(number, UPPER)
    }

    /// Formats in base 8.
    pub fn octal(number: u64) -> Self {
        Self::new::<8>(number, LOWER)
    }

    #[inline]
    fn new<const BASE: u64>(number: u64, symbols: &[u8; 16]) -> Self {
        let mut digits = Self { bytes: [0; MAX_DIGITS], start: MAX_DIGITS };
        let mut left = number;
        loop {
            digits.start -= 1;
            digits.bytes[digits.start] = symbols[(left % BASE) as usize];
            left /= BASE;
            if left == 0 {
                return digits;
            }
        }
    }

    /// Returns the digits as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the digits as text.
    #[inline]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_matches_std_fmt() {
        for n in [0, 7, 10, 999, 123_456, u64::MAX] {
            assert_eq!(Digits::decimal(n).as_str(), n.to_string());
            assert_eq!(Digits::hex(n).as_str(), format!("{n:x}"));
            assert_eq!(Digits::upper_hex(n).as_str(), format!("{n:X}"));
            assert_eq!(Digits::octal(n).as_str(), format!("{n:o}"));
        }
    }
}
