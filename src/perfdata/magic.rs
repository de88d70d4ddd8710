//! The first eight bytes of a recording.

/// The magic number, as it lies in a file of a machine with our byte order.
pub(super) const MAGIC: [u8; 8] = *b"PERFILE2";
/// The same from the others.
pub(super) const FOREIGN: [u8; 8] = *b"2ELIFREP";
/// The one before Linux 2.6.36, the same in either byte order; what follows has not changed since.
pub(super) const OLD: [u8; 8] = *b"PERFFILE";

/// Whether a recording may begin so.
pub(super) fn is_magic(bytes: &[u8]) -> bool {
    [MAGIC, FOREIGN, OLD].iter().any(|magic| bytes == magic)
}
