//! The kernel's functions: `/proc/kallsyms`, a copy of it, and where kernel and modules lie.
//!
//! Receives the text of those files; hands on one table over the whole kernel address space. Says when the addresses
//! are hidden, which looks like success to the unwary: every line is there, with zeros.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::BuildId;
use super::name_list::NameList;

/// The functions of a kernel with its modules and BPF programs.
#[derive(Debug, Default)]
pub struct Kallsyms {
    /// Functions by their address in memory.
    pub table: NameList,
    /// Addresses of the marks by which a moved kernel is recognised (`_text`, `_stext`).
    marks: Vec<(String, u64)>,
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KallsymsError {
    /// The file cannot be read.
    #[error("{path}: {said}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        said: String,
    },
    /// Names without addresses: `kernel.kptr_restrict` or `kernel.perf_event_paranoid` forbids them.
    #[error("the addresses in /proc/kallsyms are hidden")]
    Hidden,
}

/// The kernel's own lines have at most some 600 bytes (`KSYM_NAME_LEN` is 512).
const LONGEST_LINE: u64 = 4 << 10;
/// A function of unknown size reaches at most this far: the last one of a module or of a BPF region.
const MOST_OPEN: u64 = 64 << 10;

impl Kallsyms {
    /// Reads the file.
    ///
    /// # Errors
    /// When it cannot be read, or shows no addresses.
    pub fn read(path: &Path) -> Result<Self, KallsymsError> {
        let unreadable = |error: std::io::Error| KallsymsError::Unreadable {
            path: path.to_owned(),
            said: crate::error::kernel_words(&error),
        };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        // The text is twenty times what is kept of it: it is read piece by piece.
        Self::from_lines(std::io::BufReader::with_capacity(1 << 16, file)).map_err(unreadable)?
    }

    /// Parses lines of `ADDRESS TYPE NAME [MODULE]`.
    ///
    /// # Errors
    /// [`KallsymsError::Hidden`] when no address is above zero.
    pub fn parse(text: &[u8]) -> Result<Self, KallsymsError> {
        Self::from_lines(text).unwrap_or(Err(KallsymsError::Hidden))
    }

    fn from_lines(mut lines: impl BufRead) -> std::io::Result<Result<Self, KallsymsError>> {
        let mut table = NameList::new(MOST_OPEN);
        let mut marks = Vec::new();
        let mut is_hidden = true;
        let mut line = Vec::new();
        loop {
            line.clear();
            // A line without an end is no list of names.
            if lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, kind, name, module)) = fields(line.strip_suffix(b"\n").unwrap_or(&line))
            else {
                continue;
            };
            match name {
                b"_text" | b"_stext" if !module => {
                    marks.push((String::from_utf8_lossy(name).into_owned(), address));
                }
                // The kernel's own text is one piece, whose end is a symbol; the last function stops there.
                b"_etext" | b"_einittext" if !module => table.end_at(address),
                _ => {}
            }
            // Only text: what lies in data is not executed.
            if matches!(kind, b't' | b'T' | b'w' | b'W') {
                is_hidden &= address == 0;
                table.add(address, &String::from_utf8_lossy(name));
            }
        }
        if is_hidden {
            return Ok(Err(KallsymsError::Hidden));
        }
        table.finish();
        Ok(Ok(Self { table, marks }))
    }

    /// The address of a mark (`_text`, `_stext`).
    pub fn mark(&self, name: &str) -> Option<u64> {
        self.marks.iter().find(|(mark, _)| mark == name).map(|(_, address)| *address)
    }

    /// By how much this kernel lies higher than one whose mark was seen at `recorded`; 0 when that is not known.
    pub fn moved_from(&self, reference: Option<&(String, crate::address::Avma)>) -> u64 {
        let moved = reference.and_then(|(name, recorded)| Some(self.mark(name)?.wrapping_sub(recorded.0)));
        moved.unwrap_or(0)
    }
}

fn fields(line: &[u8]) -> Option<(u64, u8, &[u8], bool)> {
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let address = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()?;
    let &[kind] = words.next()? else { return None };
    Some((address, kind, words.next()?, words.next().is_some()))
}

/// The running kernel's build-id (`/sys/kernel/notes`).
pub fn running_build_id() -> Option<BuildId> {
    BuildId::in_notes(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// Where a kernel's file with symbols usually lies.
pub fn vmlinux_places(release: &str, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for dir in debug_dirs {
        places.push(dir.join("boot").join(format!("vmlinux-{release}")));
        places.push(dir.join("lib/modules").join(release).join("vmlinux"));
    }
    places.push(format!("/boot/vmlinux-{release}").into());
    places.push(format!("/lib/modules/{release}/build/vmlinux").into());
    places.push(format!("/lib/modules/{release}/vmlinux").into());
    places
}

/// A loaded module, a line of `/proc/modules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Name, with underscores.
    pub name: String,
    /// Where it lies; 0 when hidden.
    pub start: u64,
    /// Bytes of memory.
    pub size: u64,
}

/// Parses `/proc/modules`: `NAME SIZE USERS DEPENDENTS STATE ADDRESS [TAINTS]`.
pub fn loaded_modules(text: &str) -> Vec<Loaded> {
    let module = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let size = words.next()?.parse().ok()?;
        let start = u64::from_str_radix(words.nth(3)?.strip_prefix("0x")?, 16).ok()?;
        Some(Loaded { name, start, size })
    };
    text.lines().filter_map(module).collect()
}

/// The files of all modules of a kernel, by name with underscores: `modules.dep` lists them.
pub fn module_files(release: &str) -> FxHashMap<String, PathBuf> {
    let folder = PathBuf::from(format!("/lib/modules/{release}"));
    let listed = std::fs::read_to_string(folder.join("modules.dep")).unwrap_or_default();
    let file = |line: &str| {
        let path = line.split(':').next()?;
        Some((module_name(Path::new(path))?, folder.join(path)))
    };
    listed.lines().filter_map(file).collect()
}

/// A module's name, from its file's: `nf-nat.ko.xz` is `nf_nat`.
pub fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.split(".ko").next()?.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;

    const TEXT: &[u8] = b"ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t do_one\n\
        ffffffff81000200 T do_two\nffffffff81000280 D some_data\nffffffff81000300 T _etext\n\
        ffffffffc0100000 t probe\t[thing]\nffffffffc0200000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\nrubbish\n";

    #[test]
    fn functions_of_kernel_modules_and_bpf_are_in_one_table() {
        let kallsyms = Kallsyms::parse(TEXT).unwrap();
        let name = |address| kallsyms.table.find(address).map_or("-", |s| s.name);
        assert_eq!(name(0xffff_ffff_8100_0150), "do_one");
        assert_eq!(name(0xffff_ffff_8100_02f0), "do_two");
        assert_eq!(name(0xffff_ffff_c010_0010), "probe");
        assert_eq!(name(0xffff_ffff_c020_0010), "bpf_prog_6deef7357e7b4530_x");
        assert_eq!(name(0xffff_ffff_c012_0000), "-");
        let moved = kallsyms.moved_from(Some(&("_text".into(), Avma(0xffff_ffff_8000_0000))));
        assert_eq!(moved, 0x100_0000);
    }

    #[test]
    fn zeros_are_a_refusal() {
        let hidden = b"0000000000000000 T _text\n0000000000000000 t do_one\n";
        assert_eq!(Kallsyms::parse(hidden).unwrap_err(), KallsymsError::Hidden);
        assert_eq!(Kallsyms::parse(b"").unwrap_err(), KallsymsError::Hidden);
    }

    #[test]
    fn modules_have_places_and_names() {
        let modules = loaded_modules("nf_nat 40960 2 a,b, Live 0xffffffffc0a00000 (OE)\nrubbish\n");
        assert_eq!(modules, [Loaded { name: "nf_nat".into(), start: 0xffff_ffff_c0a0_0000, size: 40960 }]);
        assert_eq!(module_name(Path::new("kernel/net/nf-nat.ko.xz")).as_deref(), Some("nf_nat"));
    }
}
