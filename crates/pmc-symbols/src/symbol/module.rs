//! Modules as recordings describe them: path, build-id, and a process that mapped them.
//!
//! The reader of a recording creates them before pmc opens any file; the [`Symbolizer`](super::Symbolizer)
//! finds the matching file. A [`SymbolQuery`] is the number by which an address is looked up in a module.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::BuildId;
use crate::address::{Avma, FileOffset, Mapping};

/// A module's number, assigned by [`Symbolizer::add`](super::Symbolizer::add).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// A module as the recording describes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SymbolModule {
    /// The kind of code.
    pub kind: SymbolModuleKind,
    /// The file's path in the process, or a name in brackets. Not escaped.
    pub path: Arc<Path>,
    /// The build-id in the recording.
    pub build_id: Option<BuildId>,
    /// A process that mapped it; gives access to files that were deleted or are in another mount namespace.
    /// `None` if the recording is from another machine, or the processes are known to have exited.
    pub pid: Option<u32>,
    /// The process's mapping; gives access to the content of a deleted file (`/proc/PID/map_files`).
    pub mapping: Option<Mapping>,
    /// Inode number of the process's mount namespace, if recorded.
    pub mount: Option<NonZeroU64>,
}

/// The kinds of code, each with its own way of lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SymbolModuleKind {
    /// A program or library.
    File,
    /// The kernel's own text.
    Kernel {
        /// A symbol and its address at recording time (perf's `[kernel.kallsyms]_text` and `pgoff`): the
        /// kernel's address may change with a reboot.
        reference: Option<Arc<(String, Avma)>>,
    },
    /// A loadable kernel module.
    KernelModule {
        /// Start of its text.
        start: Avma,
    },
    /// The code that the kernel maps into every process.
    Vdso,
    /// Memory without a file: JIT code.
    Anonymous {
        /// The process.
        pid: u32,
    },
    /// BPF programs and trampolines, known from the recording's ksymbol records.
    Bpf,
}

/// The lookup key of an address: a file offset for modules with a file, otherwise the memory address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolQuery(pub(super) u64);

impl SymbolModuleKind {
    /// Whether lookups use file offsets.
    pub fn by_file_offset(&self) -> bool {
        matches!(self, Self::File | Self::Vdso)
    }

    /// Returns the lookup key of an address in a mapping of this kind of module.
    ///
    /// For a caller's frame pass the return address minus 1, so that the lookup finds the line of the call.
    pub fn query(&self, mapping: &Mapping, address: Avma) -> Option<SymbolQuery> {
        if self.by_file_offset() {
            mapping.file_offset(address).map(SymbolQuery::from)
        } else {
            Some(address.into())
        }
    }
}

impl From<FileOffset> for SymbolQuery {
    fn from(offset: FileOffset) -> Self {
        Self(offset.0)
    }
}

impl From<Avma> for SymbolQuery {
    fn from(address: Avma) -> Self {
        Self(address.0)
    }
}

impl SymbolModule {
    /// A file on this machine, known only by its path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            kind: SymbolModuleKind::File,
            path: path.into().into(),
            build_id: None,
            pid: None,
            mapping: None,
            mount: None,
        }
    }

    /// A module with the name that recordings use for it, a path or a word in brackets.
    pub fn of_name(name: impl Into<PathBuf>) -> Self {
        let name = name.into();
        let kind = if name.as_os_str() == "[vdso]" { SymbolModuleKind::Vdso } else { SymbolModuleKind::File };
        Self { kind, ..Self::file(name) }
    }

    /// The running kernel.
    pub fn kernel() -> Self {
        Self { kind: SymbolModuleKind::Kernel { reference: None }, ..Self::file("[kernel.kallsyms]") }
    }

    /// The vdso of this machine's kernel.
    pub fn vdso() -> Self {
        Self { kind: SymbolModuleKind::Vdso, ..Self::file("[vdso]") }
    }

    /// JIT code in a process.
    pub fn anonymous(pid: u32) -> Self {
        Self { kind: SymbolModuleKind::Anonymous { pid }, ..Self::file("//anon") }
    }
}
