//! The first eight bytes of a recording.

/// The magic number in this machine's byte order.
pub(super) const MAGIC: [u8; 8] = *b"PERFILE2";
/// The magic number in the opposite byte order.
pub(super) const FOREIGN: [u8; 8] = *b"2ELIFREP";
/// The magic number before Linux 2.6.36, which is the same in both byte orders. The rest of the format is
/// unchanged.
pub(super) const OLD: [u8; 8] = *b"PERFFILE";

/// Whether the bytes are the magic number of a recording.
pub(super) fn is_magic(bytes: &[u8]) -> bool {
    [MAGIC, FOREIGN, OLD].iter().any(|magic| bytes == magic)
}
