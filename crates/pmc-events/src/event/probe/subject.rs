//! The programs or processes to measure. Markers and variables without a file name are looked up in their
//! files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf::{self, ElfReader, ProbeSources};
use pmc_sys::host::Host;
use pmc_sys::host::maps::mappings;

/// Finds the executable of a command.
pub type FindProgram = fn(&[OsString]) -> Option<PathBuf>;

/// The programs, processes or CPUs that the events measure.
#[derive(Debug, Clone, Default)]
pub struct EventTarget {
    /// The command to start.
    pub command: Vec<OsString>,
    /// Finds the command's executable. Called only if a word of the event text requires the file.
    pub find_program: Option<FindProgram>,
    /// Running processes or threads.
    pub tasks: Vec<u32>,
    /// Whether whole CPUs are measured.
    pub cpus: bool,
    /// `LD_LIBRARY_PATH` of the program.
    pub library_path: String,
}

/// A file that a process has mapped.
pub(super) struct MappedFile {
    /// The path by which pmc can open it.
    pub(super) path: PathBuf,
    /// The lowest mapping: address and file offset.
    pub(super) at: (u64, u64),
}

/// The files that a task has mapped, without duplicates, in address order. The program comes first, because
/// it is mapped below its libraries.
pub(super) fn mapped(host: &Host, task: u32) -> Vec<MappedFile> {
    let text = host.maps(task).unwrap_or_default();
    let mut files: Vec<MappedFile> = Vec::new();
    let mut seen = Vec::new();
    for mapping in mappings(&text).filter(|mapping| mapping.inode != 0 && mapping.name.starts_with(b"/")) {
        let file = (mapping.device, mapping.inode);
        if seen.contains(&file) {
            continue;
        }
        seen.push(file);
        let path = Path::new(OsStr::from_bytes(mapping.name));
        // In another mount namespace, the path may refer to a different file or not exist.
        let is_same = std::fs::metadata(host.path(path)).is_ok_and(|meta| meta.ino() == mapping.inode);
        let path = if is_same {
            path.to_owned()
        } else {
            Path::new("/proc").join(format!("{task}/root")).join(path.strip_prefix("/").unwrap_or(path))
        };
        files.push(MappedFile { path, at: (mapping.start, mapping.offset) });
    }
    files
}

impl EventTarget {
    /// The program that will be executed.
    pub(super) fn program(&self) -> Option<PathBuf> {
        (self.find_program?)(&self.command)
    }

    /// The files of the target, programs first.
    pub(super) fn files(&self, sources: &ProbeSources<'_>) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        let mapped = self.tasks.iter().flat_map(|&task| mapped(sources.host, task)).map(|file| file.path);
        for file in
            mapped.chain(self.program().iter().flat_map(|program| self.with_libraries(sources, program)))
        {
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// The program and its required libraries, found in the same way as by the dynamic linker (`ld.so(8)`).
    /// Libraries that the program loads with `dlopen` are not included.
    fn with_libraries(&self, sources: &ProbeSources<'_>, program: &Path) -> Vec<PathBuf> {
        let cache = std::fs::read(sources.host.path("/etc/ld.so.cache")).unwrap_or_default();
        let mut files = vec![program.to_owned()];
        let mut next = 0;
        while let Some(file) = files.get(next).filter(|_| next < MOST_LIBRARIES).cloned() {
            next += 1;
            let Ok((machine, needed, folders)) = sources.ask(&file, |elf| {
                let [needed, rpath, runpath] = [1, 15, 29].map(|tag| dynamic(elf, tag));
                (elf::machine(elf), needed, [rpath, runpath].concat())
            }) else {
                continue;
            };
            let origin = file.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
            let origin = |folder: &str| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
            let own = folders.iter().flat_map(|list| list.split(':')).map(origin);
            let chosen = self.library_path.split(':');
            let own: Vec<String> = chosen.filter(|f| !f.is_empty()).map(str::to_owned).chain(own).collect();
            for name in needed {
                let in_folder = |folder: &str| Path::new(folder).join(&name);
                let places = own.iter().map(|folder| in_folder(folder));
                let places = places.chain(cached(&cache, &name)).chain(DEFAULT.iter().map(|f| in_folder(f)));
                let fits = |file: &PathBuf| sources.ask(file, elf::machine) == Ok(machine);
                let found = places.into_iter().find(fits);
                files.extend(found.filter(|found| !files.contains(found)));
            }
        }
        files
    }
}

/// Returns a program and its required libraries, as found by the dynamic linker with this `LD_LIBRARY_PATH`.
pub fn with_libraries(host: &Host, program: &Path, library_path: &str) -> Vec<PathBuf> {
    let subject = EventTarget { library_path: library_path.to_owned(), ..EventTarget::default() };
    subject.with_libraries(&ProbeSources::new(host), program)
}

/// Maximum number of libraries of a program.
const MOST_LIBRARIES: usize = 1000;
/// The default library directories.
const DEFAULT: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The strings to which the dynamic section's entries with this tag refer.
fn dynamic(elf: &elf::Elf<'_>, tag: u64) -> Vec<String> {
    let section = |name| elf::loaded_section(elf, name);
    let (Some(entries), Some(texts)) = (section(".dynamic"), section(".dynstr")) else { return Vec::new() };
    let mut left = ElfReader::new(elf, entries);
    let entries = std::iter::from_fn(|| Some((left.word()?, left.word()?))).take_while(|entry| entry.0 != 0);
    let text = |at: u64| ElfReader::new(elf, texts.get(usize::try_from(at).ok()?..)?).text();
    entries.filter(|entry| entry.0 == tag).filter_map(|entry| text(entry.1)).collect()
}

/// The paths of a library in the dynamic linker's cache, for all architectures.
///
/// ```text
/// "glibc-ld.so.cache1.1" | u32 libraries | 24 bytes | { i32 flags | u32 name | u32 path | 12 bytes }
/// ```
fn cached(cache: &[u8], name: &str) -> Vec<PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const FIRST: usize = 48;
    const ENTRY: usize = 24;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 4)?.try_into().ok().map(|bytes| u32::from_ne_bytes(bytes) as usize)
    };
    let text = |at: usize| cache.get(at..)?.split(|&byte| byte == 0).next();
    if !cache.starts_with(MAGIC) {
        return Vec::new();
    }
    let entries = cache.get(FIRST..).unwrap_or_default().chunks_exact(ENTRY);
    let entries = entries.take(number(cache, MAGIC.len()).unwrap_or(0));
    let named = entries.filter(|entry| number(entry, 4).and_then(text) == Some(name.as_bytes()));
    let paths = named.filter_map(|entry| number(entry, 8).and_then(text));
    paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()
}
