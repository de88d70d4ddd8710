//! Bytes with random access: a plain file, bytes in memory, or a stream that has been unpacked into a
//! temporary file.
//!
//! Receives a path, bytes or an open stream; returns a [`ByteSource`]. Files are read into buffers with
//! `pread(2)` and never mapped, because truncating a mapped file would kill the reader with SIGBUS. Streams
//! and packed files are first unpacked into an unnamed temporary file, because recordings are read twice and
//! in parallel. Bytes in memory are unpacked in memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::PerfdataError;
use super::magic::is_magic;
use pmc_sys::sys::regular_file::{open_input, open_regular};
use pmc_sys::sys::replacement::create_temporary;

/// Maximum number of unpacked bytes per packed byte. Recordings compress by a factor of 5 to 100, and gzip
/// compresses by at most 1,032.
const RATIO: u64 = 1_100;
/// Number of additional unpacked bytes that are allowed, because small files of repeated records compress
/// very well.
const SLACK: u64 = 64 << 20;

/// Number of bytes by which a file that is not a recording is recognized.
pub(super) const HEAD: u64 = 1 << 16;

/// Maximum number of unpacked bytes to keep in memory.
const MOST_IN_MEMORY: u64 = 1 << 30;

/// Returns the maximum size to which `packed` bytes may expand.
pub(super) fn limit(packed: u64) -> u64 {
    packed.saturating_mul(RATIO).saturating_add(SLACK)
}

/// Bytes with random access.
#[derive(Debug)]
pub(super) struct ByteSource {
    content: Content,
    len: u64,
    path: PathBuf,
    /// Why the packed bytes could be unpacked only in part.
    torn: Option<String>,
}

#[derive(Debug)]
enum Content {
    File(File),
    Memory(Arc<[u8]>),
}

impl Content {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(buffer, at),
            Self::Memory(bytes) => {
                let rest = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let got = rest.len().min(buffer.len());
                buffer[..got].copy_from_slice(&rest[..got]);
                Ok(got)
            }
        }
    }
}

impl ByteSource {
    /// Opens a path, or standard input for `-`. Unpacks gzip and zstd. Rejects streams that are not
    /// recordings, unless it `accepts` their first bytes (at most [`HEAD`]) and returns their maximum size.
    pub(super) fn open(path: &Path, accepts: impl Fn(&[u8]) -> Option<u64>) -> Result<Self, PerfdataError> {
        if path.as_os_str() == "-" {
            return Self::stream(io::stdin().lock(), Path::new("standard input"), accepts);
        }
        Self::from_file(open_input(path).map_err(PerfdataError::io("opening", path))?, path, accepts)
    }

    /// Opens a file in a directory, whose contents the sender of the directory chose: not a link, FIFO or
    /// device.
    pub(super) fn open_part(path: &Path) -> Result<Self, PerfdataError> {
        Self::from_file(open_regular(path, false).map_err(PerfdataError::io("opening", path))?, path, |_| {
            None
        })
    }

    /// Reads an open file, like [`ByteSource::open`].
    pub(super) fn from_file(
        file: File,
        path: &Path,
        accepts: impl Fn(&[u8]) -> Option<u64>,
    ) -> Result<Self, PerfdataError> {
        let meta = file.metadata().map_err(PerfdataError::io("opening", path))?;
        if !meta.is_file() {
            return Self::stream(file, path, accepts);
        }
        let mut magic = [0; 4];
        let got = file.read_at(&mut magic, 0).map_err(PerfdataError::io("reading", path))?;
        if got == 4 && Packing::from_magic(&magic).is_some() {
            return Self::stream(file, path, accepts);
        }
        Ok(Self { content: Content::File(file), len: meta.len(), path: path.to_owned(), torn: None })
    }

    /// Reads bytes in memory, unpacking them if necessary. Errors contain `name` instead of a path.
    pub(super) fn memory(bytes: Arc<[u8]>, name: &Path) -> Result<Self, PerfdataError> {
        if Packing::from_magic(bytes.get(..4).unwrap_or_default()).is_some() {
            return Self::unpack(&*bytes, TempFile::in_memory(name), name, |_| None);
        }
        let len = bytes.len() as u64;
        Ok(Self { len, content: Content::Memory(bytes), path: name.to_owned(), torn: None })
    }

    /// Reads a stream to its end, unpacking it if necessary.
    pub(super) fn stream(
        stream: impl Read,
        path: &Path,
        accepts: impl Fn(&[u8]) -> Option<u64>,
    ) -> Result<Self, PerfdataError> {
        Self::unpack(stream, TempFile::new(path)?, path, accepts)
    }

    fn unpack(
        mut stream: impl Read,
        mut temp_file: TempFile,
        path: &Path,
        accepts: impl Fn(&[u8]) -> Option<u64>,
    ) -> Result<Self, PerfdataError> {
        let mut magic = Vec::new();
        stream.by_ref().take(4).read_to_end(&mut magic).map_err(PerfdataError::io("reading", path))?;
        let packing = Packing::from_magic(&magic);
        let mut counted = CountingReader { stream: io::Cursor::new(magic).chain(stream), count: 0 };
        let torn = match packing {
            None => copy(&mut counted, &mut temp_file, |_| u64::MAX, path, &accepts),
            Some(Packing::Gzip) => {
                let mut unpacked = flate2::read::MultiGzDecoder::new(counted);
                copy(
                    &mut unpacked,
                    &mut temp_file,
                    |unpacked| limit(unpacked.get_ref().count),
                    path,
                    &accepts,
                )
            }
            Some(Packing::Zstd) => {
                let mut unpacked = zstd::stream::read::Decoder::new(counted)
                    .map_err(PerfdataError::io("unpacking", path))?;
                copy(
                    &mut unpacked,
                    &mut temp_file,
                    |unpacked| limit(unpacked.get_ref().get_ref().count),
                    path,
                    &accepts,
                )
            }
        };
        match torn {
            Ok(()) => {}
            Err(CopyError::Bomb { limit }) => {
                let packed = limit.saturating_sub(SLACK) / RATIO;
                return Err(PerfdataError::Bomb { path: path.to_owned(), packed, limit });
            }
            // If a packed file is truncated or damaged, keep the part that was unpacked.
            Err(CopyError::Read(e)) if packing.is_some() && temp_file.len > 0 => {
                return Ok(Self { torn: Some(e.to_string()), ..temp_file.finish()? });
            }
            Err(CopyError::Read(e)) if packing.is_some() => {
                return Err(PerfdataError::io("unpacking", path)(e));
            }
            Err(CopyError::Read(e)) => return Err(PerfdataError::io("reading", path)(e)),
            Err(CopyError::Write(e)) => return Err(e),
        }
        temp_file.finish()
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the path or name of the original source.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns why a packed file could be unpacked only in part.
    pub(super) fn torn(&self) -> Option<&str> {
        self.torn.as_deref()
    }

    /// Reads from `at` until the buffer is full or the file ends. Returns the number of bytes read.
    pub(super) fn read_at(&self, mut buffer: &mut [u8], mut at: u64) -> Result<usize, PerfdataError> {
        let mut total = 0;
        while !buffer.is_empty() {
            match self.content.read_at(buffer, at) {
                Ok(0) => break,
                Ok(got) => {
                    total += got;
                    at += got as u64;
                    buffer = &mut buffer[got..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(PerfdataError::io("reading", &self.path)(e)),
            }
        }
        Ok(total)
    }

    /// Returns the bytes of a section, or `None` if it is not entirely inside the file.
    pub(super) fn section(&self, at: u64, size: u64) -> Result<Option<Vec<u8>>, PerfdataError> {
        if at.checked_add(size).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let Ok(size) = usize::try_from(size) else { return Ok(None) };
        let mut bytes = vec![0; size];
        let got = self.read_at(&mut bytes, at)?;
        Ok((got == size).then_some(bytes))
    }
}

#[derive(Clone, Copy)]
enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    fn from_magic(magic: &[u8]) -> Option<Self> {
        match magic {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A reader that counts the bytes that it reads.
struct CountingReader<R> {
    stream: R,
    count: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.stream.read(buffer)?;
        self.count += got as u64;
        Ok(got)
    }
}

enum CopyError {
    Read(io::Error),
    Write(PerfdataError),
    Bomb { limit: u64 },
}

/// Copies a stream that starts like a recording, or whose start is accepted. Rejects any other stream at its
/// start, since it may never end.
fn copy<R: Read>(
    from: &mut R,
    to: &mut TempFile,
    limit: impl Fn(&R) -> u64,
    path: &Path,
    accepts: impl Fn(&[u8]) -> Option<u64>,
) -> Result<(), CopyError> {
    let mut magic = Vec::new();
    let mut torn = from.by_ref().take(8).read_to_end(&mut magic).err();
    let mut most_other = None;
    if !is_magic(&magic) {
        torn = torn.or_else(|| from.by_ref().take(HEAD - 8).read_to_end(&mut magic).err());
        most_other = accepts(&magic);
    }
    if !is_magic(&magic[..magic.len().min(8)]) && most_other.is_none() {
        let other = CopyError::Write(PerfdataError::NotPerfData {
            path: path.to_owned(),
            is_empty: magic.is_empty(),
        });
        return Err(torn.map_or(other, CopyError::Read));
    }
    to.write(&magic).map_err(CopyError::Write)?;
    if let Some(error) = torn {
        return Err(CopyError::Read(error));
    }
    let mut buffer = vec![0; 1 << 18];
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(CopyError::Read(e)),
        };
        let limit = limit(from);
        if to.len + got as u64 > limit {
            return Err(CopyError::Bomb { limit });
        }
        if let Some(most) = most_other.filter(|most| to.len + got as u64 > *most) {
            return Err(CopyError::Write(PerfdataError::LargeInput { path: path.to_owned(), most }));
        }
        if to.len + got as u64 > to.most {
            return Err(CopyError::Write(PerfdataError::TooLong { path: path.to_owned(), most: to.most }));
        }
        to.write(&buffer[..got]).map_err(CopyError::Write)?;
    }
}

/// An unnamed temporary file, which is removed when closed and not accessible to other users; or memory.
pub(super) struct TempFile {
    /// The file, unless the bytes are in `memory`.
    file: Option<io::BufWriter<File>>,
    memory: Vec<u8>,
    pub(super) len: u64,
    /// Maximum size of a stream in bytes, chosen to leave disk space for other programs.
    most: u64,
    path: PathBuf,
}

impl TempFile {
    /// Creates the file in the folder for temporary files, or in memory if that folder does not support
    /// unnamed files.
    pub(super) fn new(path: &Path) -> Result<Self, PerfdataError> {
        let file = create_temporary();
        let file = file.map_err(PerfdataError::io("making a temporary file in", &std::env::temp_dir()))?;
        // The file system of an in-memory file does not report a size.
        let free = rustix::fs::fstatvfs(&file).map_or(0, |system| system.f_bavail * system.f_frsize);
        let most = if free == 0 { MOST_IN_MEMORY } else { free / 2 };
        let file = Some(io::BufWriter::with_capacity(1 << 18, file));
        Ok(Self { file, most, ..Self::in_memory(path) })
    }

    /// Creates a substitute for the file in memory.
    fn in_memory(path: &Path) -> Self {
        Self { file: None, memory: Vec::new(), len: 0, most: MOST_IN_MEMORY, path: path.to_owned() }
    }

    /// Creates a place for bytes unpacked from a source: in memory if the source is there.
    pub(super) fn for_unpacked_bytes(source: &ByteSource) -> Result<Self, PerfdataError> {
        match source.content {
            Content::File(_) => Self::new(&source.path),
            Content::Memory(_) => Ok(Self::in_memory(&source.path)),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), PerfdataError> {
        self.len += bytes.len() as u64;
        match &mut self.file {
            Some(file) => file
                .write_all(bytes)
                .map_err(PerfdataError::io("unpacking into a temporary file:", &self.path)),
            None => {
                self.memory.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<ByteSource, PerfdataError> {
        let Self { file, memory, len, path, .. } = self;
        let content =
            match file {
                Some(file) => Content::File(file.into_inner().map_err(|e| {
                    PerfdataError::io("unpacking into a temporary file:", &path)(e.into_error())
                })?),
                None => Content::Memory(memory.into()),
            };
        Ok(ByteSource { content, len, path, torn: None })
    }
}
