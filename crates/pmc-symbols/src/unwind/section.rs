//! Sections with call frame information: `.eh_frame` and `.debug_frame`.

use std::sync::Arc;

use gimli::{
    AArch64, BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, LittleEndian, Reader,
    Register, Section, UnwindOffset, UnwindSection, X86, X86_64,
};

use super::arch::Arch;

/// Bytes shared between unwinders.
pub(super) type SharedBytes = Arc<[u8]>;

/// The bytes of a section.
#[derive(Debug, Clone)]
pub(super) enum CallFrameSection {
    /// `.eh_frame`.
    Eh(SharedBytes),
    /// `.debug_frame`.
    Debug(SharedBytes),
}

/// Returns the number of the frame-pointer register.
pub(super) fn frame_pointer(arch: Arch) -> Register {
    match arch {
        Arch::X86_64 => X86_64::RBP,
        Arch::X86 => X86::EBP,
        Arch::Aarch64 => AArch64::X29,
    }
}

/// Returns the size of an address in bytes.
pub(super) fn address_size(arch: Arch) -> u8 {
    if arch == Arch::X86 { 4 } else { 8 }
}

/// Maximum size of a CIE, which is read again for each function that refers to it. Those of compilers take
/// less than 100 bytes.
const LONGEST_CIE: usize = 1 << 10;
/// The error for a longer CIE.
pub(crate) const LONG_CIE: gimli::Error = gimli::Error::UnsupportedOffset;

/// Parses the CIE at an offset of a section.
///
/// # Errors
/// Fails if it is malformed or too long.
pub(crate) fn short_cie<R, S>(
    section: &S,
    bases: &BaseAddresses,
    at: S::Offset,
) -> gimli::Result<CommonInformationEntry<R>>
where
    R: Reader<Offset = usize>,
    S: UnwindSection<R> + Section<R>,
    S::Offset: UnwindOffset<usize>,
{
    let mut bytes = section.reader().clone();
    bytes.skip(UnwindOffset::into(at))?;
    match bytes.read_initial_length()? {
        (..=LONGEST_CIE, _) => S::cie_from_offset(section, bases, at),
        _ => Err(LONG_CIE),
    }
}

/// Parses these bytes as `.eh_frame`.
pub(super) fn eh_frame(bytes: &[u8], arch: Arch) -> EhFrame<EndianSlice<'_, LittleEndian>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(address_size(arch));
    section
}

/// Parses these bytes as `.debug_frame`.
pub(super) fn debug_frame(bytes: &[u8], arch: Arch) -> DebugFrame<EndianSlice<'_, LittleEndian>> {
    let mut section = DebugFrame::new(bytes, LittleEndian);
    section.set_address_size(address_size(arch));
    section
}
