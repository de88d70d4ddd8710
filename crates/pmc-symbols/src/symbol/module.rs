//! Modules as described in recordings: path, build-id, and a process that mapped them.
//!
//! They are created from a recording before any file is opened; the [`Symbolizer`](super::Symbolizer) finds
//! the matching file. A [`SymbolQuery`] is the key for looking up an address in a module.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build_id::BuildId;
use crate::address::{Avma, FileOffset, Mapping};

/// Identifies a module; assigned by [`Symbolizer::add`](super::Symbolizer::add).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// A module as described in the recording.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SymbolModule {
    /// The kind of code.
    pub kind: SymbolModuleKind,
    /// The file's path in the process, or a name in brackets. Not escaped.
    pub path: Arc<Path>,
    /// The build-id in the recording.
    pub build_id: Option<BuildId>,
    /// A process that mapped the module, through which deleted files and files in other mount namespaces are
    /// accessible. `None` if the recording comes from another machine, or if all such processes have exited.
    pub pid: Option<u32>,
    /// The process's mapping, through which a deleted file's contents are accessible (`/proc/PID/map_files`).
    pub mapping: Option<Mapping>,
    /// Inode number of the process's mount namespace, if recorded.
    pub mount: Option<NonZeroU64>,
}

/// The kinds of code, which are looked up in different ways.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SymbolModuleKind {
    /// A program or library.
    File,
    /// The kernel's own code.
    Kernel {
        /// A symbol and its address when the recording was made (perf's `[kernel.kallsyms]_text` and
        /// `pgoff`), since the kernel's address may change at each boot.
        reference: Option<Arc<(String, Avma)>>,
    },
    /// A loadable kernel module.
    KernelModule {
        /// Start of its code.
        start: Avma,
    },
    /// The code that the kernel maps into every process.
    Vdso,
    /// Memory without a file, which contains JIT-compiled code.
    Anonymous {
        /// The process.
        pid: u32,
    },
    /// BPF programs and trampolines, as announced by the recording's ksymbol records.
    Bpf,
}

/// The lookup key for an address: a file offset for modules with a file, otherwise the memory address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolQuery(pub(super) u64);

impl SymbolModuleKind {
    /// Whether lookups use file offsets.
    pub fn by_file_offset(&self) -> bool {
        matches!(self, Self::File | Self::Vdso)
    }

    /// Returns the lookup key for an address in a mapping of this kind of module.
    ///
    /// For a caller's frame, pass the return address minus 1, so that the lookup finds the line of the call.
    pub fn query(&self, mapping: &Mapping, address: Avma) -> Option<SymbolQuery> {
        if self.by_file_offset() {
            mapping.file_offset(address).map(SymbolQuery::from)
        } else {
            Some(address.into())
        }
    }
}

impl SymbolQuery {
    /// Returns the lookup key for an offset in the file of a program or library.
    pub fn in_file(offset: u64) -> Self {
        FileOffset(offset).into()
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
    /// Creates a module for a file on this machine, known only by its path.
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

    /// Creates a module from its name in a recording: a path or a word in brackets.
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

    /// Creates a module for JIT-compiled code in a process.
    pub fn anonymous(pid: u32) -> Self {
        Self { kind: SymbolModuleKind::Anonymous { pid }, ..Self::file("//anon") }
    }
}
