//! Functions, variables, and `<sys/sdt.h>` markers in program files.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::{
    Architecture, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind,
};

use pmc_sys::host::Host;

/// A parsed program file.
pub(super) type Elf<'a> = object::File<'a, &'a ReadCache<File>>;

/// Files used for name lookups, read once for all words of a request.
#[derive(Debug)]
pub(in crate::event) struct ProbeSources<'h> {
    /// The machine.
    pub(super) host: &'h Host,
    kallsyms: OnceCell<Option<Vec<u8>>>,
    files: RefCell<HashMap<PathBuf, Rc<ReadCache<File>>>>,
}

/// Maximum number of files kept open.
const MOST_FILES: usize = 32;

impl<'h> ProbeSources<'h> {
    /// Creates an empty cache; nothing is read yet.
    pub(in crate::event) fn new(host: &'h Host) -> Self {
        Self { host, kallsyms: OnceCell::new(), files: RefCell::default() }
    }

    /// The kernel's symbol list, which takes it about 0.17 s to write; `None` if it shows none.
    pub(super) fn kallsyms(&self) -> Option<&[u8]> {
        self.kallsyms.get_or_init(|| self.host.kallsyms()).as_deref()
    }

    /// Runs `question` on a program file. Relative paths start at this process's working directory.
    ///
    /// # Errors
    /// The reason why the file cannot be read, as text.
    pub(super) fn ask<T>(&self, path: &Path, question: impl FnOnce(&Elf<'_>) -> T) -> Result<T, String> {
        let known = self.files.borrow().get(path).cloned();
        let cache = known.map_or_else(|| self.open(path), Ok)?;
        let elf = object::File::parse(&*cache).map_err(|error| error.to_string())?;
        Ok(question(&elf))
    }

    fn open(&self, path: &Path) -> Result<Rc<ReadCache<File>>, String> {
        let real = if path.is_absolute() { self.host.path(path) } else { path.to_owned() };
        let said = |error: std::io::Error| pmc_sys::error::kernel_words(&error);
        // Opening a FIFO or a device could block.
        if !std::fs::metadata(&real).map_err(said)?.is_file() {
            return Err("it is not a regular file".to_owned());
        }
        let cache = Rc::new(ReadCache::new(File::open(&real).map_err(said)?));
        let mut files = self.files.borrow_mut();
        if files.len() >= MOST_FILES {
            files.clear();
        }
        files.insert(path.to_owned(), cache.clone());
        Ok(cache)
    }
}

/// Whether the file is loaded at its own addresses, so that they are valid in the process.
pub(super) fn is_fixed(elf: &Elf<'_>) -> bool {
    elf.kind() == ObjectKind::Executable
}

/// Result of looking up a name in a file.
#[derive(Debug, Default)]
pub(super) struct ElfLookup {
    /// The symbols of this name: address in the file, size, and whether it is a function. Each address
    /// appears once.
    pub(super) symbols: Vec<(u64, u64, bool)>,
    /// Whether the file imports the name.
    pub(super) imported: bool,
    /// Names for suggestions, if the symbol does not exist.
    pub(super) names: Vec<String>,
}

/// Maximum number of names considered for suggestions; a browser has a million.
const GUESSED_FROM: usize = 50_000;

/// Finds the functions named `wanted`, and also variables of that name if `variables` is set.
pub(super) fn symbols(elf: &Elf<'_>, wanted: &str, variables: bool) -> ElfLookup {
    let mut found = ElfLookup::default();
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if name == wanted && symbol.is_undefined() {
            found.imported = true;
        }
        let is_function = symbol.kind() == SymbolKind::Text;
        let fits = is_function || variables && symbol.kind() == SymbolKind::Data;
        if symbol.is_undefined() || !fits {
            continue;
        }
        if name == wanted {
            found.symbols.push((symbol.address(), symbol.size(), is_function));
        } else if found.names.len() < GUESSED_FROM {
            found.names.push(name.to_owned());
        }
    }
    found.symbols.sort_unstable();
    found.symbols.dedup_by_key(|symbol| symbol.0);
    found
}

/// The file offset of this address, from the segment that contains it.
pub(super) fn file_offset(elf: &Elf<'_>, address: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address())?;
        let (start, length) = segment.file_range();
        (within < length).then(|| start.checked_add(within))?
    })
}

/// The load bias of a process: the difference between its addresses and those in the file. `mapped_at` is
/// the address of its first mapping and `offset` that mapping's file offset.
pub(super) fn load_bias(elf: &Elf<'_>, mapped_at: u64, offset: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let first = start - start % segment.align().max(1);
        let holds = first <= offset && offset < start.checked_add(length)?;
        let address = segment.address().wrapping_add(offset).wrapping_sub(start);
        holds.then(|| mapped_at.wrapping_sub(address))
    })
}

/// A marker placed in a program by `<sys/sdt.h>`: a no-op instruction and a note with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SdtMarker {
    pub(super) provider: String,
    pub(super) name: String,
    /// File offset of the instruction.
    pub(super) offset: u64,
    /// File offset of the semaphore, a word above 0 while a tool watches the marker; 0 if there is none.
    pub(super) semaphore: u64,
}

/// `NT_STAPSDT`, the type of these notes.
const STAPSDT: u64 = 3;

/// Reads the markers. The linker wrote the notes; `prelink` and similar tools may have moved the
/// instructions since, along with `.stapsdt.base`, whose original address is in the notes.
///
/// ```text
/// u32 8 | u32 bytes | u32 3 | "stapsdt\0" | word place | word base | word semaphore | provider\0 name\0 …\0
/// ```
pub(super) fn markers(elf: &Elf<'_>) -> Vec<SdtMarker> {
    let section = elf.section_by_name(".note.stapsdt");
    let Some(data) = section.and_then(|section| section.uncompressed_data().ok()) else { return Vec::new() };
    let base = elf.section_by_name(".stapsdt.base").map(|section| section.address());
    let mut left = ElfReader::new(elf, &data);
    let next = || {
        let (name, bytes, kind) = (left.number(4)?, left.number(4)?, left.number(4)?);
        let owner = left.padded(name)?;
        let note = ElfReader { bytes: left.padded(bytes)?, ..left };
        let is_marker = kind == STAPSDT && owner == b"stapsdt\0";
        Some(is_marker.then(|| marker(elf, note, base)).flatten())
    };
    std::iter::from_fn(next).flatten().collect()
}

fn marker(elf: &Elf<'_>, mut note: ElfReader<'_>, base: Option<u64>) -> Option<SdtMarker> {
    let (place, own_base, semaphore) = (note.word()?, note.word()?, note.word()?);
    let moved = |address: u64| address.wrapping_add(base.map_or(0, |base| base.wrapping_sub(own_base)));
    let semaphore = if semaphore == 0 { 0 } else { file_offset(elf, moved(semaphore))? };
    Some(SdtMarker {
        provider: note.text()?,
        name: note.text()?,
        offset: file_offset(elf, moved(place))?,
        semaphore,
    })
}

/// Reads numbers and strings in the file's byte order.
#[derive(Clone, Copy)]
pub(super) struct ElfReader<'a> {
    bytes: &'a [u8],
    is_little: bool,
    is_64: bool,
}

impl<'a> ElfReader<'a> {
    pub(super) fn new(elf: &Elf<'_>, bytes: &'a [u8]) -> Self {
        Self { bytes, is_little: elf.is_little_endian(), is_64: elf.is_64() }
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Reads `count` bytes and skips the padding to a multiple of 4, if present.
    fn padded(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok()?;
        let taken = self.take(count)?;
        self.take((count.wrapping_neg() & 3).min(self.bytes.len()));
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let taken = self.take(bytes)?.iter();
        Some(if self.is_little { taken.rev().fold(0, fold) } else { taken.fold(0, fold) })
    }

    pub(super) fn word(&mut self) -> Option<u64> {
        self.number(if self.is_64 { 8 } else { 4 })
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.bytes.iter().position(|&byte| byte == 0)?;
        let text = String::from_utf8_lossy(self.take(length)?).into_owned();
        self.take(1);
        Some(text)
    }
}

/// Architecture and word size, which determine whether a program can use a library.
pub(super) fn machine(elf: &Elf<'_>) -> (Architecture, bool) {
    (elf.architecture(), elf.is_64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_file_is_read_once_for_all_lookups() {
        let root = tempfile::tempdir().unwrap();
        let (list, program) = (root.path().join("proc/kallsyms"), root.path().join("program"));
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(&list, "ffffffff81000000 T _stext\n").unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let host = Host::rooted(root.path());
        let sources = ProbeSources::new(&host);
        let read = || {
            let is_elf = sources.ask(Path::new("/program"), machine).is_ok();
            sources.kallsyms().is_some_and(|text| text.ends_with(b"_stext\n")) && is_elf
        };
        assert!(read());
        std::fs::remove_file(list).unwrap();
        std::fs::remove_file(program).unwrap();
        assert!(read());
    }
}
