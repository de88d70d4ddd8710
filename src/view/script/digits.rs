//! Numbers as bytes, without the detour through `fmt`: a script prints several on each of millions of lines.

/// Appends a decimal number, padded on the left to a width.
pub(super) fn decimal(out: &mut Vec<u8>, number: u64, width: usize, pad: u8) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    padded(out, &digits[at..], width, pad);
}

/// The same with a sign.
pub(super) fn signed(out: &mut Vec<u8>, number: i32, width: usize) {
    if number >= 0 {
        decimal(out, number as u64, width, b' ');
    } else {
        padded(out, number.to_string().as_bytes(), width, b' ');
    }
}

/// Appends a number in base 16, padded with spaces on the left.
pub(super) fn hex(out: &mut Vec<u8>, number: u64, width: usize) {
    let mut digits = [0u8; 16];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b"0123456789abcdef"[(left & 15) as usize];
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    padded(out, &digits[at..], width, b' ');
}

/// Appends bytes, padded on the left to a width.
pub(super) fn padded(out: &mut Vec<u8>, text: &[u8], width: usize, pad: u8) {
    out.resize(out.len() + width.saturating_sub(text.len()), pad);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_fmt_would_write() {
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
