//! `perf_event_attr` in files: at least 64 bytes, in the file's byte order (converted to native here).
//!
//! Decodes an [`Attr`]. Drops words that only newer kernels define, and zeroes words that older kernels lack.

use pmc_sys::abi::attr::{Attr, WORDS};

/// `PERF_ATTR_SIZE_VER0`: the minimum size in bytes.
pub const SMALLEST: usize = 64;
/// Maximum size in bytes. The kernel rejects attrs larger than a small page.
const LARGEST: usize = 1 << 12;

/// The words that hold two `u32` fields: type and size, wakeup and bp_type, stack size and clockid, aux
/// watermark and max_stack, …
const HALVES: [usize; 5] = [0, 6, 11, 13, 14];
/// The word of flag bits.
const FLAGS: usize = 5;

/// Decodes an attr in native byte order that states its own size. Also returns this size in bytes.
pub fn parse(bytes: &[u8]) -> Option<(Attr, usize)> {
    let size = bytes.get(4..8)?.first_chunk().map(|s| u32::from_ne_bytes(*s))? as usize;
    let size = if size == 0 { SMALLEST } else { size };
    if !(SMALLEST..=LARGEST).contains(&size) {
        return None;
    }
    Some((of_size(bytes.get(..size)?), size))
}

/// Decodes an attr in native byte order that occupies all of `bytes`, regardless of the size that it states.
pub fn of_size(bytes: &[u8]) -> Attr {
    let mut attr = Attr::default();
    for (index, word) in bytes.as_chunks().0.iter().take(WORDS).enumerate() {
        attr.set_word(index, u64::from_ne_bytes(*word));
    }
    attr
}

/// Encodes the attr in `size` bytes, and sets its size field accordingly.
pub fn to_bytes(attr: &Attr, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    for index in 0..size / 8 {
        let word = attr.word(index).unwrap_or(0);
        let word = if index == 0 { word & 0xffff_ffff | (size as u64) << 32 } else { word };
        bytes.extend_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Converts an attr from the opposite byte order in place. There, the flag bits are numbered from the other
/// end of each byte.
pub fn swap(bytes: &mut [u8]) {
    for (index, word) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        match index {
            FLAGS => *word = word.map(u8::reverse_bits),
            _ if HALVES.contains(&index) => {
                word[..4].reverse();
                word[4..].reverse();
            }
            _ => word.reverse(),
        }
        if index == 13 {
            // The upper half holds two `u16` fields: sample_max_stack and a reserved one.
            word[4..].rotate_left(2);
        }
    }
}
