//! Finds the kernel's functions: parses `/proc/kallsyms` or a copy of it, and locates the kernel and its
//! modules.
//!
//! Takes the text of these files; returns one table for the whole kernel address space. [`RunningKernel`]
//! knows where the running kernel's files are. Reports hidden addresses, which are easy to overlook: all
//! lines are present, but their addresses are zero. `name_sources/load.rs` determines the order of the
//! sources for kernel names.

use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::build_id::BuildId;
use super::files::cache_file::{self, BODY};
use super::missing_data::MissingDataReason;
use super::options::RunningKernel;
use super::tables::name_list::{NameList, NameListBuilder};
use super::tables::table::Symbol;
use pmc_sys::abi::KallsymsLine;
use pmc_sys::sys::regular_file::open_regular;

/// The functions of a kernel with its modules and BPF programs.
#[derive(Debug, Default)]
pub(crate) struct KallsymsTable {
    /// Functions by memory address.
    table: NameList,
    /// Addresses of the symbols that show how far a kernel was relocated (`_text`, `_stext`).
    marks: Vec<(String, u64)>,
    /// The complete list, if `table` comes from the cache and so contains only permanent symbols. Read when
    /// an address is not in `table`.
    complete: Option<CompleteList>,
}

/// A complete list of symbols, which is read on first use.
#[derive(Debug)]
struct CompleteList {
    path: PathBuf,
    table: OnceLock<Option<Box<KallsymsTable>>>,
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KallsymsError {
    /// The file cannot be read.
    #[error("{path}: {said}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        said: String,
    },
    /// The file has names without addresses, because of `kernel.kptr_restrict` or
    /// `kernel.perf_event_paranoid`.
    #[error("the addresses in /proc/kallsyms are hidden")]
    Hidden,
}

/// Maximum length of a line. The kernel writes at most about 600 bytes per line (`KSYM_NAME_LEN` is 512).
const LONGEST_LINE: u64 = 4 << 10;
/// Maximum size to assume for a function of unknown size, such as the last function of a module or of a BPF
/// region.
const MOST_OPEN: u64 = 64 << 10;

/// The symbol list of the running kernel.
const KALLSYMS: &str = "/proc/kallsyms";
/// The loaded modules of the running kernel.
const MODULES: &str = "/proc/modules";
const MAGIC: &[u8; 8] = b"pmcksy01";
/// Maximum size of a cached list. A typical list is about 5 MB.
const MOST_KEPT: u64 = 64 << 20;
/// Maximum size of all cached lists.
const MOST_ALL_KEPT: u64 = 64 << 20;

impl KallsymsTable {
    /// Reads a list from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or shows no addresses.
    pub(crate) fn read(path: &Path) -> Result<Self, KallsymsError> {
        Ok(Self::read_list(path, KallsymsScope::All)?.into_table())
    }

    fn read_list(path: &Path, kept: KallsymsScope) -> Result<KallsymsList, KallsymsError> {
        let unreadable = |error: std::io::Error| KallsymsError::Unreadable {
            path: path.to_owned(),
            said: pmc_sys::error::kernel_message(&error),
        };
        let file = open_regular(path, true).map_err(unreadable)?;
        // The text is 20 times as large as the resulting list, so parse it as a stream.
        KallsymsList::read(std::io::BufReader::with_capacity(1 << 16, file), kept).map_err(unreadable)?
    }

    /// Parses lines of `ADDRESS TYPE NAME [MODULE]`.
    ///
    /// # Errors
    /// Returns [`KallsymsError::Hidden`] if all addresses are zero.
    #[cfg(test)]
    pub(crate) fn parse(text: &[u8]) -> Result<Self, KallsymsError> {
        Ok(KallsymsList::read(text, KallsymsScope::All).unwrap_or(Err(KallsymsError::Hidden))?.into_table())
    }

    /// Opens a cached list. `complete` is the file that it was made from.
    fn kept(path: &Path, machine: &str, complete: &Path) -> Option<Self> {
        let image = cache_file::open(path, MAGIC, MOST_KEPT)?;
        let (len, rest) = image[BODY..].split_first_chunk()?;
        let head = rest.get(..u32::from_le_bytes(*len) as usize)?;
        let marks = std::str::from_utf8(head).ok()?.strip_prefix(machine)?.lines();
        let mark = |line: &str| {
            let (name, address) = line.split_once(' ')?;
            Some((name.to_owned(), u64::from_str_radix(address, 16).ok()?))
        };
        let marks = marks.filter_map(mark).collect();
        let at = BODY + 4 + head.len();
        Some(Self { table: NameList::open(image, at)?, marks, complete: Some(CompleteList::read(complete)) })
    }

    /// Returns the function that contains an address.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        self.table.find(address).or_else(|| self.complete.as_ref()?.table()?.find(address))
    }

    /// Releases the memory of pages that were read.
    pub(crate) fn release(&self) {
        self.table.release();
    }

    /// Iterates over all permanent functions, by start address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.table.iter()
    }

    /// Returns the number of permanent functions.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the address of `_text` or `_stext`.
    pub(crate) fn mark(&self, name: &str) -> Option<u64> {
        self.marks.iter().find(|(mark, _)| mark == name).map(|(_, address)| *address)
    }

    /// Returns the distance in bytes from the recorded kernel's load address to this kernel's, given a symbol
    /// and its recorded address; 0 if unknown.
    pub(crate) fn moved_from(&self, reference: Option<&(String, crate::address::Avma)>) -> u64 {
        let moved = reference.and_then(|(name, recorded)| Some(self.mark(name)?.wrapping_sub(recorded.0)));
        moved.unwrap_or(0)
    }
}

impl CompleteList {
    fn read(path: &Path) -> Self {
        Self { path: path.to_owned(), table: OnceLock::new() }
    }

    fn table(&self) -> Option<&KallsymsTable> {
        let read = || KallsymsTable::read(&self.path).ok().map(Box::new);
        self.table.get_or_init(read).as_deref()
    }
}

/// Which lines to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KallsymsScope {
    All,
    /// Symbols that do not change while the kernel runs with the same modules.
    Lasting,
}

/// Parsed lines.
struct KallsymsList {
    names: NameListBuilder,
    marks: Vec<(String, u64)>,
}

impl KallsymsList {
    fn read(mut lines: impl BufRead, kept: KallsymsScope) -> std::io::Result<Result<Self, KallsymsError>> {
        let mut list = Self { names: NameListBuilder::new(MOST_OPEN), marks: Vec::new() };
        let mut is_hidden = true;
        let mut line = Vec::new();
        // The module of the preceding functions, and the highest start address among them.
        let (mut owner, mut highest) = (Vec::new(), 0);
        loop {
            line.clear();
            // Lines are cut at the limit, because a longer one does not come from kallsyms.
            if lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some(line) = KallsymsLine::read(line.strip_suffix(b"\n").unwrap_or(&line)) else { continue };
            let KallsymsLine { address, name, module, .. } = line;
            match name {
                b"_text" | b"_stext" if module.is_empty() => {
                    list.marks.push((String::from_utf8_lossy(name).into_owned(), address));
                }
                // The kernel's own code is contiguous. These symbols mark its end, and so the end of the last
                // function.
                b"_etext" | b"_einittext" if module.is_empty() => list.names.end_at(address),
                _ => {}
            }
            if !line.is_code() {
                continue;
            }
            is_hidden &= address == 0;
            if kept == KallsymsScope::Lasting {
                if passes(module) {
                    continue;
                }
                if owner != module {
                    list.end_module(&owner, highest);
                    (owner, highest) = (module.to_vec(), 0);
                }
                highest = highest.max(address);
            }
            list.names.add(address, &String::from_utf8_lossy(name));
        }
        list.end_module(&owner, highest);
        Ok(if is_hidden { Err(KallsymsError::Hidden) } else { Ok(list) })
    }

    /// Ends the last function of a module at the end of its page, since other code may be loaded in the page
    /// after it.
    fn end_module(&mut self, module: &[u8], highest: u64) {
        if !module.is_empty() {
            self.names.end_at((highest | (pmc_sys::sys::page_size() as u64 - 1)).saturating_add(1));
        }
    }

    fn into_table(self) -> KallsymsTable {
        KallsymsTable { table: self.names.finish(), marks: self.marks, complete: None }
    }

    /// Serializes the list: length of the header, header with fingerprint and marks, names.
    fn encode(self, machine: &str) -> Vec<u8> {
        let mut head = machine.to_owned();
        for (name, address) in &self.marks {
            head += &format!("{name} {address:x}\n");
        }
        let mut body = (head.len() as u32).to_le_bytes().to_vec();
        body.extend(head.as_bytes());
        body.append(&mut self.names.encode());
        body
    }
}

/// Whether this module's functions are transient: BPF programs, and trampolines of ftrace and kprobes.
fn passes(module: &[u8]) -> bool {
    module == b"[bpf]" || module.starts_with(b"[__builtin__")
}

impl RunningKernel {
    /// Reads the kernel's symbol list. The kernel takes longer to generate it than pmc takes for most
    /// reports, so pmc caches the part that does not change while the kernel runs with the same modules. The
    /// result is the same without a cache.
    ///
    /// # Errors
    /// Fails in the same cases as [`KallsymsTable::read`].
    pub(crate) fn kallsyms(&self, cache: Option<&Path>) -> Result<KallsymsTable, KallsymsError> {
        let list = self.path(KALLSYMS);
        let read = || KallsymsTable::read_list(&list, KallsymsScope::Lasting);
        let in_memory = |lasting: KallsymsList| KallsymsTable {
            complete: Some(CompleteList::read(&list)),
            ..lasting.into_table()
        };
        let place = cache.and_then(|folder| Some((self.kept_place(folder)?, self.fingerprint()?)));
        let Some((path, machine)) = place else { return read().map(in_memory) };
        let kept = || KallsymsTable::kept(&path, &machine, &list);
        if let Some(kept) = kept() {
            return Ok(kept);
        }
        if cache_file::write(&path, MAGIC, &read()?.encode(&machine)).is_ok() {
            let folder = path.parent().map(Path::to_path_buf);
            cache_file::prune(cache_file::files(folder.into_iter()), MOST_ALL_KEPT);
        }
        // A mapped list takes no memory. If the cache is not writable, read the list again.
        kept().map_or_else(|| read().map(in_memory), Ok)
    }

    /// Returns the path of the cached list. Each boot has a separate list, since the kernel's address
    /// changes.
    fn kept_place(&self, folder: &Path) -> Option<PathBuf> {
        let boot = self.text("/proc/sys/kernel/random/boot_id").ok()?;
        let boot = boot.trim_end();
        let is_plain = !boot.is_empty() && boot.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_plain.then(|| folder.join("kernel").join(boot))
    }

    /// Returns the state for which a cached list is valid: the loaded modules, with their addresses and
    /// sizes.
    fn fingerprint(&self) -> Option<String> {
        let modules = match self.text(MODULES) {
            // The kernel was built without support for modules.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.ok()?,
        };
        let line = |m: &LoadedModule| format!("{} {:x} {:x}\n", m.name, m.start, m.size);
        let mut text: String = loaded_modules(&modules).iter().map(line).collect();
        text += "\n";
        Some(text)
    }

    /// Returns the value of `kernel.kptr_restrict`, which can hide addresses.
    pub(crate) fn kptr_restrict(&self) -> Option<u32> {
        self.text("/proc/sys/kernel/kptr_restrict").ok()?.trim().parse().ok()
    }

    /// Returns the kernel's build-id.
    pub fn build_id(&self) -> Option<BuildId> {
        self.read_build_id().ok().flatten()
    }

    /// Reads the kernel's build-id from `/sys/kernel/notes`. `None` if there is no such file, or no build-id
    /// in it.
    ///
    /// # Errors
    /// Returns why the file cannot be read.
    pub(crate) fn read_build_id(&self) -> Result<Option<BuildId>, MissingDataReason> {
        let path = self.path("/sys/kernel/notes");
        match std::fs::read(&path) {
            Ok(notes) => Ok(BuildId::in_notes(&notes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(MissingDataReason::unreadable(&path, &error)),
        }
    }

    /// Returns the loaded modules.
    pub fn modules(&self) -> Vec<LoadedModule> {
        loaded_modules(&self.text(MODULES).unwrap_or_default())
    }

    /// Returns the build-id of a loaded module, given its file or its name in brackets. Reads
    /// `/sys/module/NAME/notes`, so it does not matter whether the file is compressed.
    pub(crate) fn module_build_id(&self, name: &str) -> Option<BuildId> {
        let module = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).map(str::to_owned);
        let module = module.or_else(|| module_name(Path::new(name)))?;
        if module.contains('/') || module.starts_with('.') {
            return None;
        }
        let notes = self.path(format!("/sys/module/{module}/notes/.note.gnu.build-id"));
        BuildId::in_notes(&std::fs::read(notes).ok()?)
    }

    /// Returns the files of the kernel's modules as listed in `modules.dep`, by module name with underscores.
    pub fn module_files(&self) -> FxHashMap<String, PathBuf> {
        let folder = self.path(format!("/lib/modules/{}", self.release));
        let listed = std::fs::read_to_string(folder.join("modules.dep")).unwrap_or_default();
        let file = |line: &str| {
            let path = line.split(':').next()?;
            Some((module_name(Path::new(path))?, folder.join(path)))
        };
        listed.lines().filter_map(file).collect()
    }

    /// Returns the usual paths of a kernel image with symbols (`vmlinux`).
    pub(crate) fn vmlinux_places(&self, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
        let release = &self.release;
        let mut places: Vec<PathBuf> = Vec::new();
        for dir in debug_dirs {
            places.push(dir.join("boot").join(format!("vmlinux-{release}")));
            places.push(dir.join("lib/modules").join(release).join("vmlinux"));
        }
        places.push(self.path(format!("/boot/vmlinux-{release}")));
        places.push(self.path(format!("/lib/modules/{release}/build/vmlinux")));
        places.push(self.path(format!("/lib/modules/{release}/vmlinux")));
        places
    }

    /// Returns the symbols with these names in the kernel and its modules, sorted by address.
    ///
    /// # Errors
    /// Fails in the same cases as [`KallsymsTable::read`].
    pub fn symbols(&self, names: &[String]) -> Result<Vec<KernelSymbol>, KallsymsError> {
        let path = self.path(KALLSYMS);
        let text = std::fs::read(&path).map_err(|error| KallsymsError::Unreadable {
            path,
            said: pmc_sys::error::kernel_message(&error),
        })?;
        let mut symbols = symbols_named(&text, names, &self.modules())?;
        if symbols.iter().any(|symbol| symbol.module.is_some()) {
            let files = self.module_files();
            for symbol in &mut symbols {
                let name = symbol.module.as_ref().map(|(name, _)| name.trim_matches(['[', ']']));
                symbol.file = name.and_then(|name| files.get(name).cloned());
            }
        }
        Ok(symbols)
    }

    /// Returns the kernel, followed by its modules sorted by address.
    ///
    /// # Errors
    /// Fails in the same cases as [`KallsymsTable::read`].
    pub fn maps(&self) -> Result<Vec<KernelMap>, KallsymsError> {
        let marks = self.symbols(&["_stext", "_etext"].map(str::to_owned))?;
        // A module may have symbols with these names.
        let own = |name: &str| marks.iter().find(|symbol| symbol.name == name && symbol.module.is_none());
        let mark = |name: &str| own(name).map_or(0, |symbol| symbol.start);
        let (id, name, start) = (self.build_id(), PathBuf::from("[kernel.kallsyms]"), mark("_stext"));
        let mut maps = vec![KernelMap { id, name, start, end: mark("_etext").max(start) }];
        let mut modules = self.modules();
        modules.sort_by_key(|module| module.start);
        let mut files = self.module_files();
        maps.extend(modules.into_iter().map(|module| {
            let in_brackets = format!("[{}]", module.name);
            KernelMap {
                id: self.module_build_id(&in_brackets),
                name: files.remove(&module.name).unwrap_or_else(|| in_brackets.into()),
                start: module.start,
                end: module.start.saturating_add(module.size),
            }
        }));
        Ok(maps)
    }
}

/// A kernel symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSymbol {
    /// The name.
    pub name: String,
    /// The module's name in brackets and its start address; `None` for the kernel itself.
    pub module: Option<(String, u64)>,
    /// The module's file, if known.
    pub file: Option<PathBuf>,
    /// Start address.
    pub start: u64,
    /// End address (exclusive), derived from the next symbol.
    pub end: u64,
}

fn symbols_named(
    text: &[u8],
    names: &[String],
    modules: &[LoadedModule],
) -> Result<Vec<KernelSymbol>, KallsymsError> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(KallsymsLine::read);
    // Absolute symbols are not addresses.
    let mut all: Vec<_> = lines.filter(|line| !matches!(line.kind, b'a' | b'A')).collect();
    if all.iter().all(|line| line.address == 0) {
        return Err(KallsymsError::Hidden);
    }
    all.sort_unstable();
    let symbol = |at: usize| {
        let KallsymsLine { address: start, name, module, .. } = all[at];
        let name = std::str::from_utf8(name).ok().filter(|name| names.iter().any(|asked| asked == name))?;
        let next = all[at..].iter().find(|next| next.address > start).filter(|next| next.module == module);
        let page_end = (start | (pmc_sys::sys::page_size() as u64 - 1)).saturating_add(1);
        let module = (!module.is_empty()).then(|| String::from_utf8_lossy(module).into_owned());
        let module = module.map(|module| {
            let own = modules.iter().find(|loaded| loaded.name == module.trim_matches(['[', ']']));
            (module, own.map_or(0, |loaded| loaded.start))
        });
        let end = next.map_or(page_end, |next| next.address);
        Some(KernelSymbol { name: name.to_owned(), module, file: None, start, end })
    };
    Ok((0..all.len()).filter_map(symbol).collect())
}

/// The running kernel or one of its loaded modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelMap {
    /// The build-id, if known.
    pub id: Option<BuildId>,
    /// `[kernel.kallsyms]`, a module's file, or its name in brackets.
    pub name: PathBuf,
    /// Start address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
}

/// A loaded module: a line of `/proc/modules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedModule {
    /// The name, with underscores.
    pub name: String,
    /// Start address; 0 if hidden.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

/// Parses `/proc/modules`: `NAME SIZE USERS DEPENDENTS STATE ADDRESS [TAINTS]`.
pub fn loaded_modules(text: &str) -> Vec<LoadedModule> {
    let module = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let size = words.next()?.parse().ok()?;
        let start = u64::from_str_radix(words.nth(3)?.strip_prefix("0x")?, 16).ok()?;
        Some(LoadedModule { name, start, size })
    };
    text.lines().filter_map(module).collect()
}

/// Converts the file name of a module to its name: `nf-nat.ko.xz` becomes `nf_nat`.
pub(crate) fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.split(".ko").next()?.replace('-', "_"))
}

/// Derives a kernel module's name from its path or its name in brackets.
pub fn kernel_module_name(path: &Path) -> String {
    let name = path.as_os_str().as_bytes();
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let last = last.strip_prefix(b"[").and_then(|n| n.strip_suffix(b"]")).unwrap_or(last);
    let end = last.windows(3).position(|three| three == b".ko").unwrap_or(last.len());
    String::from_utf8_lossy(&last[..end]).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;

    const TEXT: &[u8] = b"ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t do_one\n\
        ffffffff81000200 T do_two\nffffffff81000280 D some_data\nffffffff81000300 T _etext\n\
        ffffffffc0100000 t probe\t[thing]\nffffffffc0200000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\nrubbish\n";

    #[test]
    fn kernel_module_and_bpf_functions_share_one_table() {
        let kallsyms = KallsymsTable::parse(TEXT).unwrap();
        let name = |address| kallsyms.find(address).map_or("-", |s| s.name);
        assert_eq!(name(0xffff_ffff_8100_0150), "do_one");
        assert_eq!(name(0xffff_ffff_8100_02f0), "do_two");
        assert_eq!(name(0xffff_ffff_c010_0010), "probe");
        assert_eq!(name(0xffff_ffff_c020_0010), "bpf_prog_6deef7357e7b4530_x");
        assert_eq!(name(0xffff_ffff_c012_0000), "-");
        let moved = kallsyms.moved_from(Some(&("_text".into(), Avma(0xffff_ffff_8000_0000))));
        assert_eq!(moved, 0x100_0000);
    }

    #[test]
    fn kept_symbols_match_the_full_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel/boot");
        let list = KallsymsList::read(TEXT, KallsymsScope::Lasting).unwrap().unwrap();
        cache_file::write(&path, MAGIC, &list.encode("thing c0100000 4096\n\n")).unwrap();
        // A different set of modules requires a different list.
        for machine in ["", "thing c0100000 4096\nmore c0300000 1\n\n", "thing c0100000 4097\n\n"] {
            assert!(machine.is_empty() || KallsymsTable::kept(&path, machine, &path).is_none(), "{machine}");
        }
        let mut kept = KallsymsTable::kept(&path, "thing c0100000 4096\n\n", &path).unwrap();
        kept.complete = None;
        let whole = KallsymsTable::parse(TEXT).unwrap();
        assert_eq!(kept.marks, whole.marks);
        let name = |address| kept.find(address).map_or("-", |s| s.name);
        assert_eq!(name(0xffff_ffff_8100_0150), "do_one");
        assert_eq!(name(0xffff_ffff_8100_02f0), "do_two");
        assert_eq!(name(0xffff_ffff_c010_0010), "probe");
        // The rest of the module's last page belongs to it. Later addresses and transient symbols are only in
        // the complete list.
        assert_eq!(name(0xffff_ffff_c010_0fff), "probe");
        assert_eq!(name(0xffff_ffff_c010_1000), "-");
        assert_eq!(whole.find(0xffff_ffff_c010_1000).unwrap().name, "probe");
        assert_eq!(name(0xffff_ffff_c020_0010), "-");
    }

    #[test]
    fn symbols_end_at_the_next_symbol() {
        let names = ["_text", "do_two", "probe", "some_data", "gone"].map(str::to_owned);
        let modules = loaded_modules("thing 40960 0 - Live 0xffffffffc0100000");
        let found = symbols_named(TEXT, &names, &modules).unwrap();
        let shown = |s: &KernelSymbol| format!("{} {:x}-{:x} {:?}", s.name, s.start, s.end, s.module);
        assert_eq!(
            found.iter().map(shown).collect::<Vec<_>>(),
            [
                "_text ffffffff81000000-ffffffff81000100 None",
                "do_two ffffffff81000200-ffffffff81000280 None",
                "some_data ffffffff81000280-ffffffff81000300 None",
                "probe ffffffffc0100000-ffffffffc0101000 Some((\"[thing]\", 18446744072636858368))",
            ]
        );
        let hidden = symbols_named(b"0000000000000000 T _text\n", &names, &[]);
        assert_eq!(hidden, Err(KallsymsError::Hidden));
    }

    #[test]
    fn maps_of_the_kernel_do_not_end_before_they_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        let kernel = RunningKernel::below(folder.path(), "6.1");
        let map = |list: &str| {
            std::fs::write(folder.path().join(KALLSYMS.trim_start_matches('/')), list).unwrap();
            let maps = kernel.maps().unwrap();
            (maps.len(), maps[0].start, maps[0].end)
        };
        assert_eq!(map("ffff1000 T _stext\n"), (1, 0xffff_1000, 0xffff_1000));
        // On Arm, modules are below the kernel.
        let list = "1000 t _stext\t[a]\n2000 t _etext\t[a]\nffff1000 T _stext\nffff2000 T _etext\n";
        assert_eq!(map(list), (1, 0xffff_1000, 0xffff_2000));
    }

    #[test]
    fn zero_addresses_mean_kallsyms_is_restricted() {
        let hidden = b"0000000000000000 T _text\n0000000000000000 t do_one\n";
        assert_eq!(KallsymsTable::parse(hidden).unwrap_err(), KallsymsError::Hidden);
        assert_eq!(KallsymsTable::parse(b"").unwrap_err(), KallsymsError::Hidden);
    }

    #[test]
    fn modules_have_address_and_name() {
        let modules = loaded_modules("nf_nat 40960 2 a,b, Live 0xffffffffc0a00000 (OE)\nrubbish\n");
        assert_eq!(
            modules,
            [LoadedModule { name: "nf_nat".into(), start: 0xffff_ffff_c0a0_0000, size: 40960 }]
        );
        assert_eq!(module_name(Path::new("kernel/net/nf-nat.ko.xz")).as_deref(), Some("nf_nat"));
    }
}
