//! The bytes of a file, either mapped or in memory, with the file's name.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmc_sys::sys::file_map::FileMap;

/// The bytes of a file that contains symbols or unwind tables.
#[derive(Debug, Clone)]
pub struct Image {
    /// The file's path, or a name in brackets for bytes that do not come from a file.
    pub path: PathBuf,
    bytes: Arc<ImageBytes>,
}

#[derive(Debug)]
enum ImageBytes {
    Mapped(FileMap),
    Held(Vec<u8>),
}

impl Image {
    /// Maps the regular file at a path.
    ///
    /// # Errors
    /// Fails in the same cases as [`FileMap::open`].
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::mapped(path, FileMap::open(path)?))
    }

    /// Wraps an existing map.
    pub(crate) fn mapped(path: impl Into<PathBuf>, map: FileMap) -> Self {
        Self { path: path.into(), bytes: ImageBytes::Mapped(map).into() }
    }

    /// Wraps bytes in memory.
    pub(crate) fn held(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes: ImageBytes::Held(bytes).into() }
    }

    /// Releases the memory of mapped pages, which the next access reads again.
    pub(crate) fn release(&self) {
        if let ImageBytes::Mapped(map) = &*self.bytes {
            map.release();
        }
    }

    /// Whether the file was truncated while pmc read it; see [`FileMap::is_cut`].
    pub(crate) fn is_cut(&self) -> bool {
        matches!(&*self.bytes, ImageBytes::Mapped(map) if map.is_cut())
    }

    /// Returns the offset of `part` in these bytes; `None` if it is not part of them.
    pub(crate) fn position_of(&self, part: &[u8]) -> Option<usize> {
        let at = part.as_ptr().addr().checked_sub(self.as_ptr().addr())?;
        (at.saturating_add(part.len()) <= self.len()).then_some(at)
    }

    /// Parses the file's headers.
    ///
    /// # Errors
    /// Fails if the file's headers are invalid.
    pub fn elf(&self) -> object::Result<object::File<'_>> {
        object::File::parse(&**self)
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &*self.bytes {
            ImageBytes::Mapped(map) => map,
            ImageBytes::Held(bytes) => bytes,
        }
    }
}
