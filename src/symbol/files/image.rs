//! A file's bytes with its name, mapped or held in memory.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sys::file_map::FileMap;

/// The bytes of a file that symbols or unwind tables are read from.
#[derive(Debug, Clone)]
pub struct Image {
    /// Where it was found; a name in brackets for what never was a file.
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
    /// As [`FileMap::open`].
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::mapped(path, FileMap::open(path)?))
    }

    /// What is mapped already.
    pub fn mapped(path: impl Into<PathBuf>, map: FileMap) -> Self {
        Self { path: path.into(), bytes: ImageBytes::Mapped(map).into() }
    }

    /// Bytes that are already there.
    pub fn held(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes: ImageBytes::Held(bytes).into() }
    }

    /// Gives the memory of what was read back to the kernel; it is read again when it is looked at.
    pub fn release(&self) {
        if let ImageBytes::Mapped(map) = &*self.bytes {
            map.release();
        }
    }

    /// Whether the file was shortened while it was read: see [`FileMap::is_cut`].
    pub fn is_cut(&self) -> bool {
        matches!(&*self.bytes, ImageBytes::Mapped(map) if map.is_cut())
    }

    /// Where in it these bytes of it stand; `None` of others.
    pub fn position_of(&self, part: &[u8]) -> Option<usize> {
        let at = part.as_ptr().addr().checked_sub(self.as_ptr().addr())?;
        (at.saturating_add(part.len()) <= self.len()).then_some(at)
    }

    /// The parsed headers.
    ///
    /// # Errors
    /// What is wrong with them.
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
