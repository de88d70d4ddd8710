//! Finds functions, variables, and `<sys/sdt.h>` markers in program files.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use object::{
    Architecture, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind,
};

use pmc_sys::host::Host;
use pmc_sys::sys::regular_file::open_regular;

/// A parsed program file.
pub(super) type Elf<'a> = object::File<'a, &'a ReadCache<File>>;

/// Files in which names are looked up. Each file is read only once for all words of a request.
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
    /// Creates an empty cache, without reading any file.
    pub(in crate::event) fn new(host: &'h Host) -> Self {
        Self { host, kallsyms: OnceCell::new(), files: RefCell::default() }
    }

    /// The kernel's symbol list, which takes the kernel about 0.17 s to generate; `None` if the kernel hides
    /// it.
    pub(super) fn kallsyms(&self) -> Option<&[u8]> {
        self.kallsyms.get_or_init(|| self.host.kallsyms()).as_deref()
    }

    /// Calls `question` with a program file. Relative paths start at this process's working directory.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be read, as text.
    pub(super) fn ask<T>(&self, path: &Path, question: impl FnOnce(&Elf<'_>) -> T) -> Result<T, String> {
        let known = self.files.borrow().get(path).cloned();
        let cache = known.map_or_else(|| self.open(path), Ok)?;
        let elf = object::File::parse(&*cache).map_err(|error| error.to_string())?;
        Ok(question(&elf))
    }

    fn open(&self, path: &Path) -> Result<Rc<ReadCache<File>>, String> {
        let real = if path.is_absolute() { self.host.path(path) } else { path.to_owned() };
        let said = |error: std::io::Error| pmc_sys::error::kernel_message(&error);
        let cache = Rc::new(ReadCache::new(open_regular(&real, true).map_err(said)?));
        let mut files = self.files.borrow_mut();
        if files.len() >= MOST_FILES {
            files.clear();
        }
        files.insert(path.to_owned(), cache.clone());
        Ok(cache)
    }
}

/// Whether the file is always loaded at its link-time addresses, so that they are valid in the process.
pub(super) fn is_fixed(elf: &Elf<'_>) -> bool {
    elf.kind() == ObjectKind::Executable
}

/// The result of looking up a name in a file.
#[derive(Debug, Default)]
pub(super) struct ElfLookup {
    /// The symbols with this name: address in the file, size, and whether it is a function. Each address
    /// appears only once.
    pub(super) symbols: Vec<(u64, u64, bool)>,
    /// Whether the file imports the name.
    pub(super) imported: bool,
    /// Candidates for suggestions if the symbol does not exist.
    pub(super) names: Vec<String>,
}

/// Maximum number of names to consider for suggestions. A browser has a million symbols.
const GUESSED_FROM: usize = 50_000;

/// Finds the functions named `wanted` and, if `variables` is set, also the variables with this name.
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

/// The load bias of a file in a process: the difference between addresses in the process and in the file.
/// `mapped_at` is the address of the file's first mapping, and `offset` is that mapping's file offset.
pub(super) fn load_bias(elf: &Elf<'_>, mapped_at: u64, offset: u64) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let (start, length) = segment.file_range();
        let first = start - start % segment.align().max(1);
        let holds = first <= offset && offset < start.checked_add(length)?;
        let address = segment.address().wrapping_add(offset).wrapping_sub(start);
        holds.then(|| mapped_at.wrapping_sub(address))
    })
}

/// Returns the contents of a section that the program loads into its memory. Such sections are never
/// compressed.
pub(super) fn loaded_section<'a>(elf: &Elf<'a>, name: &str) -> Option<&'a [u8]> {
    elf.section_by_name(name)?.data().ok()
}

/// A marker placed in a program by `<sys/sdt.h>`: a no-op instruction and a note with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SdtMarker {
    pub(super) provider: String,
    pub(super) name: String,
    /// File offset of the instruction.
    pub(super) offset: u64,
    /// File offset of the semaphore, a counter that is above 0 while a tool watches the marker; 0 if there is
    /// no semaphore.
    pub(super) semaphore: u64,
}

/// `NT_STAPSDT`, the type of these notes.
const STAPSDT: u64 = 3;

/// Reads the markers. `prelink` and similar tools may have moved the instructions after the linker wrote the
/// notes. They move `.stapsdt.base` too, and each note contains its original address.
///
/// ```text
/// u32 8 | u32 bytes | u32 3 | "stapsdt\0" | word place | word base | word semaphore | provider\0 name\0 …\0
/// ```
pub(super) fn markers(elf: &Elf<'_>) -> Vec<SdtMarker> {
    let Some(data) = loaded_section(elf, ".note.stapsdt") else { return Vec::new() };
    let base = elf.section_by_name(".stapsdt.base").map(|section| section.address());
    let mut left = ElfReader::new(elf, data);
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

    /// Reads `count` bytes, and skips padding to a multiple of 4 if there is any.
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

/// Architecture and word size (`true` for 64 bits). A program can only use libraries that match in both.
pub(super) fn machine(elf: &Elf<'_>) -> (Architecture, bool) {
    (elf.architecture(), elf.is_64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file with one segment, which has these notes.
    fn with_notes(flags: u64, notes: &[u8]) -> Vec<u8> {
        let names = b"\0.note.stapsdt\0.shstrtab\0";
        let (notes_at, names_at) = (120, 120 + notes.len());
        let headers_at = names_at + names.len();
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend([[3u16, 62].map(u16::to_le_bytes).concat(), 1u32.to_le_bytes().to_vec()].concat());
        file.extend([0u64, 64, headers_at as u64].map(u64::to_le_bytes).concat());
        file.extend([0u16, 0, 64, 56, 1, 64, 3, 2].map(u16::to_le_bytes).concat());
        file.extend([1u32, 5].map(u32::to_le_bytes).concat());
        file.extend([0u64, 0, 0, 0x1000, 0x1000, 1].map(u64::to_le_bytes).concat());
        file.extend([notes, names, &[0; 64]].concat());
        for (name, kind, flags, at, size) in
            [(1u32, 7u32, flags, notes_at, notes.len()), (15, 3, 0, names_at, names.len())]
        {
            file.extend([name, kind].map(u32::to_le_bytes).concat());
            file.extend([flags, 0, at as u64, size as u64, 0, 1, 0].map(u64::to_le_bytes).concat());
        }
        file
    }

    #[test]
    fn compressed_notes_are_not_read() {
        const COMPRESSED: u64 = 0x800;
        let count = |flags, notes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), with_notes(flags, notes)).unwrap();
            let host = Host::rooted("/");
            ProbeSources::new(&host).ask(file.path(), |elf| markers(elf).len()).unwrap()
        };
        let text = b"shop\0sell\0\0";
        let mut note = [8u32, 24 + text.len() as u32, 3].map(u32::to_le_bytes).concat();
        note.extend([&b"stapsdt\0"[..], &[0; 24], text].concat());
        assert_eq!(count(0, &note), 1);
        // A header (zlib, size, alignment), then an uncompressed zlib block, which a bomb would replace.
        let len = note.len() as u16;
        let (low, high) = note.iter().fold((1u32, 0u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65_521;
            (low, (high + low) % 65_521)
        });
        let mut packed = [1u64, u64::from(len), 1].map(u64::to_le_bytes).concat();
        packed.extend([&[0x78, 1, 1][..], &len.to_le_bytes(), &(!len).to_le_bytes(), &note].concat());
        packed.extend((high << 16 | low).to_be_bytes());
        assert_eq!(count(COMPRESSED, &packed), 0);
    }

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
