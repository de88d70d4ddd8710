//! What a recording knows of a piece of code: which file, whose build-id, seen in which process.
//!
//! Received from the reader of a recording, before any file is touched; the [`Symbolizer`](super::Symbolizer)
//! finds the file that belongs to it. A [`SymbolQuery`] is the number under which an address is looked up in
//! a module.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::BuildId;
use crate::address::{Avma, FileOffset, Mapping};
use crate::session;

/// A module's number, given by [`Symbolizer::add`](super::Symbolizer::add).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// A piece of code as the recording names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// What it is.
    pub kind: Kind,
    /// The file as the process saw it, or the name in brackets. It is not cleaned.
    pub path: Arc<Path>,
    /// The build-id that the recording holds.
    pub build_id: Option<BuildId>,
    /// A process that had it mapped: the way to its file when that lives in another mount namespace or was
    /// deleted. `None` when the recording was made on another machine, or the processes are known to be gone.
    pub pid: Option<u32>,
    /// Where the process had it mapped: the way to the bytes of a deleted file (`/proc/PID/map_files`).
    pub mapping: Option<Mapping>,
    /// Number (inode) of that process's mount namespace, where the recording says it.
    pub mount: Option<NonZeroU64>,
}

impl Module {
    /// A module of a recording or of what runs; `None` for code that nobody can look into. `live`: its
    /// process may be asked for its files.
    pub fn of(module: &session::Module, live: bool) -> Option<Self> {
        let kind = match &module.kind {
            session::Kind::File => Kind::File,
            session::Kind::Kernel(reference) => Kind::Kernel { reference: reference.clone() },
            session::Kind::KernelModule(start) => Kind::KernelModule { start: *start },
            session::Kind::Vdso => Kind::Vdso,
            session::Kind::Anonymous(pid) => Kind::Anonymous { pid: *pid },
            session::Kind::Bpf => Kind::Bpf,
            session::Kind::Opaque => return None,
        };
        Some(Self {
            kind,
            path: module.path.clone(),
            build_id: module.build_id.as_deref().and_then(BuildId::new),
            pid: module.pid.filter(|_| live),
            mapping: module.mapping,
            mount: module.mount,
        })
    }
}

/// The kinds of code, each looked up in its own way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A program or library.
    File,
    /// The kernel's own text.
    Kernel {
        /// A symbol and its address while the recording was made (perf's `[kernel.kallsyms]_text` and
        /// `pgoff`): the kernel may lie elsewhere after a reboot.
        reference: Option<Arc<(String, Avma)>>,
    },
    /// A loadable module of the kernel.
    KernelModule {
        /// Where its text started.
        start: Avma,
    },
    /// The code that the kernel lends to every process.
    Vdso,
    /// Memory without a file: code made by a JIT.
    Anonymous {
        /// The process.
        pid: u32,
    },
    /// BPF programs and trampolines, known by the recording's ksymbol records.
    Bpf,
}

/// An address as its module is asked for it: a file offset for what has a file, else the address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolQuery(pub(super) u64);

impl Kind {
    /// Whether addresses are looked up by their place in a file.
    pub fn by_file_offset(&self) -> bool {
        matches!(self, Self::File | Self::Vdso)
    }

    /// How to ask for an address seen in a mapping of a module of this kind.
    ///
    /// For a caller's frame give the return address less one, so that the call's line is found.
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

impl Module {
    /// A file on this machine, known by nothing but its path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            kind: Kind::File,
            path: path.into().into(),
            build_id: None,
            pid: None,
            mapping: None,
            mount: None,
        }
    }

    /// What recordings call by this name, a path or a word in brackets.
    pub fn of_name(name: impl Into<PathBuf>) -> Self {
        let name = name.into();
        let kind = if name.as_os_str() == "[vdso]" { Kind::Vdso } else { Kind::File };
        Self { kind, ..Self::file(name) }
    }

    /// The running kernel.
    pub fn kernel() -> Self {
        Self { kind: Kind::Kernel { reference: None }, ..Self::file("[kernel.kallsyms]") }
    }

    /// The vdso of this machine's kernel.
    pub fn vdso() -> Self {
        Self { kind: Kind::Vdso, ..Self::file("[vdso]") }
    }

    /// Code made by a JIT in a process.
    pub fn anonymous(pid: u32) -> Self {
        Self { kind: Kind::Anonymous { pid }, ..Self::file("//anon") }
    }

    /// The last part of the path, as perf's `dso` column shows it.
    pub fn short_name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }
}
