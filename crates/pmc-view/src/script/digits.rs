//! Appends numbers to a buffer, padded to a column's width.

use pmc_text::text::Digits;

/// Appends a decimal number, padded on the left to `width`.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, number: u64, width: usize, pad: u8) {
    padded(out, Digits::decimal(number).as_bytes(), width, pad);
}

/// Appends a signed decimal number, padded on the left to `width`.
#[inline]
pub(super) fn signed(out: &mut Vec<u8>, number: i32, width: usize) {
    if number >= 0 {
        decimal(out, number as u64, width, b' ');
    } else {
        padded(out, number.to_string().as_bytes(), width, b' ');
    }
}

/// Appends a hexadecimal number, padded on the left with spaces to `width`.
pub(super) fn hex(out: &mut Vec<u8>, number: u64, width: usize) {
    padded(out, Digits::hex(number).as_bytes(), width, b' ');
}

/// Appends bytes, padded on the left to `width`.
#[inline]
pub(super) fn padded(out: &mut Vec<u8>, text: &[u8], width: usize, pad: u8) {
    out.resize(out.len() + width.saturating_sub(text.len()), pad);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_matches_std_fmt() {
        let mut out = Vec::new();
        for n in [0, 7, 10, 999, 123_456, u64::MAX] {
            out.clear();
            decimal(&mut out, n, 10, b' ');
            decimal(&mut out, n, 3, b'0');
            hex(&mut out, n, 16);
            assert_eq!(String::from_utf8_lossy(&out), format!("{n:10}{n:03}{n:16x}"));
        }
        out.clear();
        signed(&mut out, -1, 5);
        signed(&mut out, 42, 5);
        assert_eq!(out, b"   -1   42");
    }
}
