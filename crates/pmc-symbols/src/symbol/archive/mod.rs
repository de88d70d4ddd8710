//! Symbols, lines, code and source excerpts that a recording contains (`pmc archive`).
//!
//! Takes the bytes of a recording's `ARCHIVE` section; returns the data of its modules
//! ([`ArchivedModule`]), with the same answers that the recorded machine's files gave. [`collect`] writes
//! archives. The bytes are untrusted: sizes are limited, numbers are checked, and the memory is proportional
//! to the section.
//!
//! ```text
//!   "pmcA" | u8 version | u32 size | OriginalFacts | zstd( ArchiveData: each module an encoded ModuleData )
//! ```
//!
//! [`collect`]: super::collect

pub(in crate::symbol) mod answers;
pub(in crate::symbol) mod format;
mod imported;
mod module;

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use prost::Message;
use rustc_hash::FxHashMap;

use answers::TextTable;
use format::{ArchiveData, ModuleData, ModuleKey};
pub use format::{ConvertedStacks, OriginalFacts};
pub use imported::{ImportedCode, ImportedFrame, ImportedSymbols};
pub(in crate::symbol) use module::ArchivedModule;

use super::module::{SymbolModule, SymbolModuleKind};

/// The start of a section.
const MAGIC: &[u8; 4] = b"pmcA";
/// Version of the format. Additions that older versions of pmc can ignore do not change it.
const VERSION: u8 = 1;
/// Maximum number of unpacked bytes per byte of a section.
const MOST_RATIO: usize = 24;
/// Number of additional unpacked bytes that are allowed.
const SLACK: usize = 1 << 20;
/// Compression level of archives on disk. For 33 MB of code and names of a compiler, level 3 takes 0.16 s of
/// CPU time and gives 14.6 MB, level 6 takes 0.4 s and gives 13.6 MB, and level 12 takes 1.9 s and gives 12.8
/// MB.
pub(in crate::symbol) const LEVEL: i32 = 3;
/// Encoded key of the field [`ArchiveData::modules`]: its number, and that its size precedes it.
const MODULE_FIELD: &[u8] = &[1 << 3 | 2];
/// Binary logarithm of the maximum window size of the compression, in bytes.
const WINDOW: u32 = 23;

/// Why an archive cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is not an archive.
    #[error("it does not start like an archive")]
    NotAnArchive,
    /// A newer version of pmc wrote it.
    #[error("it has version {0}, and this pmc reads version {VERSION}")]
    Version(u8),
    /// It cannot be compressed.
    #[error("compression failed: {0}")]
    Pack(String),
    /// It cannot be unpacked.
    #[error("unpacking failed: {0}")]
    Unpack(String),
    /// It unpacks to too many bytes.
    #[error("its {packed} bytes unpack to more than {most} bytes")]
    Bomb {
        /// Size of the archive in bytes.
        packed: usize,
        /// The limit in bytes.
        most: usize,
    },
    /// Its contents are damaged.
    #[error("its contents are damaged: {0}")]
    Damaged(String),
}

/// The symbols that a recording contains, by module.
#[derive(Default)]
pub struct SymbolArchive {
    modules: FxHashMap<ModuleKey, Vec<u8>>,
}

impl fmt::Debug for SymbolArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolArchive").field("modules", &self.modules.len()).finish_non_exhaustive()
    }
}

impl SymbolArchive {
    /// Reads a section.
    ///
    /// # Errors
    /// Fails if the section is damaged, or if a newer version of pmc wrote it.
    pub fn read(section: &[u8]) -> Result<Self, ArchiveError> {
        let (_, packed) = split(section)?;
        let unpacked = unpack(packed)?;
        let ArchiveData { modules } = ArchiveData::decode(&*unpacked).map_err(damaged)?;
        let mut archive = Self::default();
        for module in modules {
            let key = KeyOnly::decode(&*module).map_err(damaged)?.key.unwrap_or_default();
            archive.modules.insert(key, module);
        }
        Ok(archive)
    }

    /// Returns the data of a module; an empty one if the archive does not contain it or its data is damaged.
    pub(in crate::symbol) fn module(&self, module: &SymbolModule) -> ArchivedModule {
        let data = self.modules.get(&key_of(module)).map(|bytes| ModuleData::decode(&**bytes));
        match data {
            Some(Ok(data)) => ArchivedModule::new(data),
            Some(Err(error)) => ArchivedModule::lacking(format!("the archive's data is damaged: {error}")),
            None => ArchivedModule::lacking("the archive does not contain it".to_owned()),
        }
    }
}

/// Reads the facts about the original recording from a section.
///
/// # Errors
/// Fails if the section is damaged, or if a newer version of pmc wrote it.
pub fn original_facts(section: &[u8]) -> Result<OriginalFacts, ArchiveError> {
    split(section).map(|(facts, _)| facts)
}

/// Splits a section into the facts and the compressed modules.
fn split(section: &[u8]) -> Result<(OriginalFacts, &[u8]), ArchiveError> {
    let rest = section.strip_prefix(MAGIC).ok_or(ArchiveError::NotAnArchive)?;
    let (version, rest) = rest.split_first().ok_or(ArchiveError::NotAnArchive)?;
    if *version != VERSION {
        return Err(ArchiveError::Version(*version));
    }
    let (size, rest) = rest.split_first_chunk().ok_or(ArchiveError::NotAnArchive)?;
    let facts = rest.split_at_checked(u32::from_le_bytes(*size) as usize);
    let (facts, packed) = facts.ok_or(ArchiveError::NotAnArchive)?;
    Ok((OriginalFacts::decode(facts).map_err(damaged)?, packed))
}

fn damaged(error: prost::DecodeError) -> ArchiveError {
    ArchiveError::Damaged(error.to_string())
}

/// Only the key of a [`ModuleData`].
#[derive(Clone, PartialEq, Message)]
struct KeyOnly {
    #[prost(message, optional, tag = "1")]
    key: Option<ModuleKey>,
}

/// Returns the fields by which an archive finds a module.
pub(in crate::symbol) fn key_of(module: &SymbolModule) -> ModuleKey {
    let (kind, owner) = match &module.kind {
        SymbolModuleKind::File => (1, 0),
        SymbolModuleKind::Kernel { .. } => (2, 0),
        SymbolModuleKind::KernelModule { start } => (3, start.0),
        SymbolModuleKind::Vdso => (4, 0),
        SymbolModuleKind::Anonymous { pid } => (5, u64::from(*pid)),
        // All BPF programs share one list of names, under the name of the first one.
        SymbolModuleKind::Bpf => return ModuleKey { kind: 6, ..ModuleKey::default() },
    };
    ModuleKey {
        path: module.path.as_os_str().as_bytes().to_vec(),
        kind,
        owner,
        build_id: module.build_id.map(|id| id.bytes().to_vec()).unwrap_or_default(),
        mount: module.mount.map_or(0, u64::from),
    }
}

/// Writes a section, one module after the other, so that only one of them is in memory uncompressed.
pub(in crate::symbol) struct SectionWriter {
    packed: zstd::stream::write::Encoder<'static, Vec<u8>>,
    /// Size of the facts and everything before them, in bytes.
    start: usize,
    /// Size of the modules before compression, in bytes.
    unpacked: usize,
}

impl SectionWriter {
    /// # Errors
    /// Fails if compression cannot be set up.
    pub(in crate::symbol) fn new(facts: &OriginalFacts, level: i32) -> Result<Self, ArchiveError> {
        let facts = facts.encode_to_vec();
        let section = [MAGIC, &[VERSION][..], &(facts.len() as u32).to_le_bytes(), &facts].concat();
        let start = section.len();
        let mut packed = zstd::stream::write::Encoder::new(section, level).map_err(pack_failed)?;
        packed.window_log(WINDOW).map_err(pack_failed)?;
        Ok(Self { packed, start, unpacked: 0 })
    }

    /// # Errors
    /// Fails if compression fails.
    pub(in crate::symbol) fn add(&mut self, module: &ModuleData) -> Result<(), ArchiveError> {
        // `ArchiveData` has no other fields.
        let module = module.encode_length_delimited_to_vec();
        self.unpacked += MODULE_FIELD.len() + module.len();
        [MODULE_FIELD, &module].iter().try_for_each(|part| self.packed.write_all(part)).map_err(pack_failed)
    }

    /// Returns the section.
    ///
    /// # Errors
    /// Fails if compression fails.
    pub(in crate::symbol) fn finish(self) -> Result<Vec<u8>, ArchiveError> {
        let mut section = self.packed.finish().map_err(pack_failed)?;
        // Readers limit the ratio. They ignore the padding, which follows the compressed data.
        let least = self.unpacked.saturating_sub(SLACK).div_ceil(MOST_RATIO);
        section.resize(section.len().max(least + self.start), 0);
        Ok(section)
    }
}

fn pack_failed(error: std::io::Error) -> ArchiveError {
    ArchiveError::Pack(error.to_string())
}

/// Replaces the names of files and the other texts in a section by the results of `path` and `text`, and the
/// facts about the recording by `facts`.
///
/// # Errors
/// Fails if the section is damaged.
pub fn rename(
    section: &[u8],
    facts: &OriginalFacts,
    path: &mut dyn FnMut(&[u8]) -> Vec<u8>,
    text: &mut dyn FnMut(&str) -> String,
) -> Result<Vec<u8>, ArchiveError> {
    let (_, packed) = split(section)?;
    let ArchiveData { modules } = ArchiveData::decode(&*unpack(packed)?).map_err(damaged)?;
    let mut renamed = SectionWriter::new(facts, LEVEL)?;
    for module in modules {
        let mut data = ModuleData::decode(&*module).map_err(damaged)?;
        let names = [&mut data.binary, &mut data.debug, &mut data.image].into_iter().flatten();
        names.chain(data.key.as_mut().map(|key| &mut key.path)).for_each(|name| *name = path(name));
        let texts = TextTable::read(std::mem::take(&mut data.texts), &data.text_lengths);
        for (number, length) in data.text_lengths.iter_mut().enumerate() {
            let new = text(texts.get(number));
            *length = u32::try_from(new.len()).unwrap_or_default();
            data.texts.push_str(&new);
        }
        renamed.add(&data)?;
    }
    renamed.finish()
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let failed = |error: std::io::Error| ArchiveError::Unpack(error.to_string());
    let most = packed.len().saturating_mul(MOST_RATIO).saturating_add(SLACK);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(failed)?.single_frame();
    decoder.window_log_max(WINDOW).map_err(failed)?;
    let mut content = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() > most {
        return Err(ArchiveError::Bomb { packed: packed.len(), most });
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section_of(module: &ModuleData, facts: &OriginalFacts) -> Vec<u8> {
        let mut section = SectionWriter::new(facts, LEVEL).unwrap();
        section.add(module).unwrap();
        section.finish().unwrap()
    }

    #[test]
    fn section_survives_a_round_trip() {
        let key = key_of(&SymbolModule::file("/bin/true"));
        let data = ModuleData { key: Some(key), symbols_found: 7, ..ModuleData::default() };
        let stacks = ConvertedStacks { copied: 3, ..ConvertedStacks::default() };
        let facts = OriginalFacts { stacks: Some(stacks), modified_ns: -5, ..OriginalFacts::default() };
        let section = section_of(&data, &facts);
        assert_eq!(original_facts(&section), Ok(facts.clone()));
        let archive = SymbolArchive::read(&section).unwrap();
        let quality = |name: &str| archive.module(&SymbolModule::file(name)).quality();
        assert_eq!(quality("/bin/true").found().symbols, 7);
        assert!(quality("/bin/false").missing[0].to_string().contains("does not contain"));
        // Very repetitive contents remain readable.
        let texts = "x".repeat(64 << 20);
        let data = ModuleData { texts, ..ModuleData::default() };
        let section = section_of(&data, &OriginalFacts::default());
        assert!(section.len() > (62 << 20) / MOST_RATIO);
        assert_eq!(SymbolArchive::read(&section).unwrap().modules.len(), 1);
    }

    #[test]
    fn bad_sections_are_rejected() {
        let read = |bytes: &[u8]| SymbolArchive::read(bytes).err();
        assert_eq!(read(b""), Some(ArchiveError::NotAnArchive));
        assert_eq!(read(b"pmcB\x01"), Some(ArchiveError::NotAnArchive));
        assert_eq!(read(b"pmcA\x01\xff\0\0\0"), Some(ArchiveError::NotAnArchive));
        assert_eq!(read(b"pmcA\x09"), Some(ArchiveError::Version(9)));
        assert!(matches!(read(b"pmcA\x01\0\0\0\0nothing"), Some(ArchiveError::Unpack(_))));
        let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
        let bomb = [&b"pmcA\x01\0\0\0\0"[..], &zeros].concat();
        assert!(matches!(read(&bomb), Some(ArchiveError::Bomb { .. })));
        let noise = zstd::bulk::compress(&[0xff; 100], 1).unwrap();
        assert!(matches!(read(&[&b"pmcA\x01\0\0\0\0"[..], &noise].concat()), Some(ArchiveError::Damaged(_))));
    }
}
