//! Modules: the distinct programs, libraries, parts of the kernel and areas of generated code in a recording.
//!
//! Determines the kind of each module from the names and file identities in mmap and ksymbol records. Does
//! not open files; `symbol` finds them.

use std::ffi::OsStr;
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashTable;

use pmc_symbols::symbol::kernel::kernel_module_name;
use pmc_symbols::symbol::{BuildId, SymbolModule, SymbolModuleKind};

use super::intern::{HashKeys, KeyedMap};
use pmc_perfdata::record::{MappedFileId, MappingAccess};
use pmc_symbols::address::{Avma, Mapping};

/// The kind of code that a module contains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// A program or library.
    File,
    /// The kernel's own code, with the recorder's reference symbol and its address.
    Kernel(Option<Arc<(String, Avma)>>),
    /// A kernel module and its start address.
    KernelModule(Avma),
    /// `[vdso]`.
    Vdso,
    /// Memory of this process that is not backed by a file: generated code, `[heap]`, `[stack]`.
    Anonymous(u32),
    /// A BPF program or trampoline.
    Bpf,
    /// Opaque code: `[vsyscall]` or a guest's code.
    Opaque,
}

/// A module as the recording describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The kind of code.
    pub kind: ModuleKind,
    /// A path or a name in brackets, as untrusted text.
    pub path: Arc<Path>,
    /// The build-id, if recorded.
    pub build_id: Option<Box<[u8]>>,
    /// The first process that mapped the module.
    pub(crate) pid: Option<u32>,
    /// The mapping of the module in that process.
    pub mapping: Option<Mapping>,
    /// Size of the module's code in bytes, from its first mapping; `None` if unknown.
    pub(crate) mapped: Option<NonZeroU64>,
    /// Inode number of this process's mount namespace at the time of the mapping, if recorded.
    pub(crate) mount: Option<NonZeroU64>,
}

impl Module {
    #[cfg(test)]
    pub(crate) fn of_file(path: &Path) -> Self {
        let (build_id, pid, mapping, mapped, mount) = Default::default();
        Self { kind: ModuleKind::File, path: path.into(), build_id, pid, mapping, mapped, mount }
    }

    /// Returns the last component of the name, as in perf's `dso` column.
    pub fn short_name(&self) -> String {
        match &self.kind {
            ModuleKind::KernelModule(_) => format!("[{}]", kernel_module_name(&self.path)),
            ModuleKind::Kernel(_) => "[kernel.kallsyms]".to_owned(),
            ModuleKind::Anonymous(pid) if !is_bracketed(&self.path) => format!("[JIT] tid {pid}"),
            _ => match self.path.file_name() {
                Some(name) if !is_bracketed(&self.path) => name.to_string_lossy().into_owned(),
                _ => self.path.to_string_lossy().into_owned(),
            },
        }
    }
}

impl Module {
    /// Converts the module for the symbolizer; `None` for opaque code. `live` permits reading files through
    /// the module's process.
    pub fn for_symbols(&self, live: bool) -> Option<SymbolModule> {
        let kind = match &self.kind {
            ModuleKind::File => SymbolModuleKind::File,
            ModuleKind::Kernel(reference) => SymbolModuleKind::Kernel { reference: reference.clone() },
            ModuleKind::KernelModule(start) => SymbolModuleKind::KernelModule { start: *start },
            ModuleKind::Vdso => SymbolModuleKind::Vdso,
            ModuleKind::Anonymous(pid) => SymbolModuleKind::Anonymous { pid: *pid },
            ModuleKind::Bpf => SymbolModuleKind::Bpf,
            ModuleKind::Opaque => return None,
        };
        Some(SymbolModule {
            kind,
            path: self.path.clone(),
            build_id: self.build_id.as_deref().and_then(BuildId::new),
            pid: self.pid.filter(|_| live),
            mapping: self.mapping,
            mount: self.mount,
        })
    }

    /// Whether the module is the stack of a thread.
    pub(crate) fn is_stack(&self) -> bool {
        let name = self.path.as_os_str().as_bytes();
        name == b"[stack]" || name.starts_with(b"[stack:")
    }

    /// Returns the name that `perf script` prints: the whole path.
    pub(crate) fn name_in_script(&self) -> String {
        match &self.kind {
            ModuleKind::Anonymous(pid) if matches!(self.path.to_str(), Some("" | "//anon" | "/dev/zero")) => {
                format!("/tmp/perf-{pid}.map")
            }
            ModuleKind::Kernel(_) => self.short_name(),
            // perf takes the paths of modules from the list of build-ids.
            ModuleKind::KernelModule(..) if self.build_id.is_none() => self.short_name(),
            _ => self.path.to_string_lossy().into_owned(),
        }
    }
}

fn is_bracketed(path: &std::path::Path) -> bool {
    path.as_os_str().as_bytes().first() == Some(&b'[')
}

/// Device, inode and generation of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Inode {
    major: u32,
    minor: u32,
    inode: NonZeroU64,
    generation: u64,
}

/// The properties that identify a module.
#[derive(PartialEq, Eq, Hash)]
struct ModuleIdentity<'a> {
    kind: &'a ModuleKind,
    path: &'a OsStr,
    inode: Option<Inode>,
    build_id: Option<&'a [u8]>,
    access: Option<MappingAccess>,
}

/// The identity of a mapped file, and the access permissions of the mapping.
pub(crate) type FileAndAccess<'a> = (MappedFileId<'a>, MappingAccess);

/// All modules of a recording.
///
/// A recording may contain a million files, so the table stores only numbers.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    keys: HashKeys,
    table: HashTable<u32>,
    all: Vec<Module>,
    /// Indexed by module number.
    inodes: Vec<Option<Inode>>,
    /// Indexed by module number; `None` unless modules are distinguished by access permissions.
    accesses: Option<Vec<Option<MappingAccess>>>,
    /// Build-ids by name, from the recording's build-id list.
    build_ids: KeyedMap<Vec<u8>, Vec<u8>>,
}

impl Modules {
    /// Creates an empty list of modules. `list` contains the recording's build-ids by name.
    pub(crate) fn with_build_ids<'a>(list: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let build_ids = list.map(|(name, id)| (name.to_vec(), id.to_vec())).collect();
        Self { build_ids, ..Self::default() }
    }

    /// Also keeps each mapping's access permissions from now on.
    pub(super) fn keep_access(&mut self) {
        self.accesses.get_or_insert_default();
    }

    /// Returns a module's inode number, if recorded.
    pub(super) fn inode(&self, module: u32) -> Option<u64> {
        self.inodes[module as usize].map(|inode| inode.inode.get())
    }

    /// Returns a module's access permissions, if recorded and kept.
    pub(super) fn access(&self, module: u32) -> Option<MappingAccess> {
        self.accesses.as_ref()?[module as usize]
    }

    fn identity(&self, number: u32) -> ModuleIdentity<'_> {
        let module = &self.all[number as usize];
        ModuleIdentity {
            kind: &module.kind,
            path: module.path.as_os_str(),
            inode: self.inodes[number as usize],
            build_id: module.build_id.as_deref(),
            access: self.access(number),
        }
    }

    /// Returns the module number for a mapping. Adds the module if it is new.
    pub(crate) fn add(
        &mut self,
        kind: ModuleKind,
        name: &[u8],
        file: Option<FileAndAccess<'_>>,
        pid: u32,
        mapping: Mapping,
        mount: Option<u64>,
    ) -> u32 {
        let access = self.accesses.as_ref().and_then(|_| Some(file?.1));
        let (inode, build_id) = match file.map(|(id, _)| id) {
            Some(MappedFileId::Inode { major, minor, inode, generation }) => {
                let inode = NonZeroU64::new(inode);
                (inode.map(|inode| Inode { major, minor, inode, generation }), None)
            }
            Some(MappedFileId::BuildId(id)) => (None, Some(id)),
            None => (None, None),
        };
        let shown: &[u8] = if matches!(kind, ModuleKind::Kernel(_)) { b"[kernel.kallsyms]" } else { name };
        let build_id = build_id.or_else(|| self.build_ids.get(shown).map(Vec::as_slice));
        let new = ModuleIdentity { kind: &kind, path: OsStr::from_bytes(shown), inode, build_id, access };
        let hash = self.keys.hash_one(&new);
        if let Some(number) = self.table.find(hash, |number| self.identity(*number) == new) {
            return *number;
        }
        let number = self.all.len() as u32;
        let mut table = std::mem::take(&mut self.table);
        table.insert_unique(hash, number, |number| self.keys.hash_one(self.identity(*number)));
        self.table = table;
        if let Some(accesses) = &mut self.accesses {
            accesses.push(access);
        }
        let in_process = matches!(kind, ModuleKind::File | ModuleKind::Anonymous(_));
        self.inodes.push(inode);
        self.all.push(Module {
            path: Path::new(OsStr::from_bytes(shown)).into(),
            build_id: build_id.map(Box::from),
            pid: in_process.then_some(pid),
            mapping: in_process.then_some(mapping),
            mapped: None,
            mount: mount.and_then(NonZeroU64::new),
            kind,
        });
        number
    }

    /// Records the number of executable bytes in a module's mapping.
    pub(crate) fn note_code(&mut self, module: u32, len: u64) {
        let mapped = &mut self.all[module as usize].mapped;
        *mapped = mapped.or(NonZeroU64::new(len));
    }

    /// Returns all modules, indexed by number.
    pub(crate) fn all(&self) -> &[Module] {
        &self.all
    }
}

/// Whether a mapping has the name of a jitdump file. JIT compilers map the file to announce it.
pub(crate) fn is_jitdump(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    last.starts_with(b"jit-") && last.ends_with(b".dump")
}

/// Determines the kind of a process's mapping from its name.
pub(super) fn kind_in_process(name: &[u8], pid: u32) -> ModuleKind {
    match name {
        b"[vdso]" | b"[vdso32]" => ModuleKind::Vdso,
        b"[vsyscall]" | b"[vectors]" | b"[uprobes]" => ModuleKind::Opaque,
        b"" | b"//anon" | b"[heap]" | b"[stack]" => ModuleKind::Anonymous(pid),
        // Other names of anonymous memory: shared memory, huge pages, memfd, names set with prctl(2).
        _ if [
            &b"/memfd:"[..],
            b"/dev/zero",
            b"/SYSV",
            b"/anon_hugepage",
            b"[anon:",
            b"[anon_shmem:",
            b"[stack:",
        ]
        .iter()
        .any(|start| name.starts_with(start)) =>
        {
            ModuleKind::Anonymous(pid)
        }
        _ if name.first() == Some(&b'[') => ModuleKind::Opaque,
        _ => ModuleKind::File,
    }
}

/// Determines the kind of a kernel mapping from its name.
pub(super) fn kind_in_kernel(name: &[u8], mapping: &Mapping) -> ModuleKind {
    if let Some(mark) = name.strip_prefix(b"[kernel.kallsyms]") {
        let mark = String::from_utf8_lossy(mark).into_owned();
        // In this mapping, `pgoff` is not an offset but the address of the symbol after the bracket.
        return ModuleKind::Kernel((!mark.is_empty()).then(|| Arc::new((mark, Avma(mapping.offset.0)))));
    }
    if name.starts_with(b"[guest.") {
        return ModuleKind::Opaque;
    }
    ModuleKind::KernelModule(mapping.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_symbols::address::FileOffset;

    #[test]
    fn kernel_modules_in_the_build_id_table_print_their_path() {
        let path = b"/lib/modules/6.1.0/kernel/net/ath9k.ko";
        let mut modules = Modules::with_build_ids([(&path[..], &[1; 20][..])].into_iter());
        let mapping = Mapping { start: Avma(0x1000), len: 0x1000, offset: FileOffset(0) };
        for name in [&path[..], b"/lib/modules/6.1.0/kernel/net/mac80211.ko"] {
            modules.add(kind_in_kernel(name, &mapping), name, None, 0, mapping, None);
        }
        let names = modules.all().iter().map(|module| (module.name_in_script(), module.short_name()));
        let names: Vec<_> = names.collect();
        assert_eq!(names[0], ("/lib/modules/6.1.0/kernel/net/ath9k.ko".to_owned(), "[ath9k]".to_owned()));
        assert_eq!(names[1].0, "[mac80211]");
    }
}
