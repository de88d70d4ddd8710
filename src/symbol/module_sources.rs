//! What a module's names come from, opened once.
//!
//! Receives a module and the places to look; holds the open files and tables; answers for single addresses. Decides, by the kind of the
//! module, which sources are asked and in which order, and collects what was missing on the way.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::code::Memory;
use super::dwarf::cache::Cache;
use super::dwarf::lines::{self, LineFrame};
use super::files::elf::{self, Segments};
use super::files::locate::{self, Found};
use super::generated::jitdump::Jitdump;
use super::generated::perf_map;
use super::kernel::{self, Kallsyms, KallsymsError};
use super::tables::overlay_map::OverlayMap;
use super::tables::plt;
use super::tables::sparse::{Named, Sparse};
use super::tables::table::{Builder, Symbol, Table};
use super::{BuildId, DataQuality, Image, Kind, Missing, Module, Options, SymbolQuery};
use crate::address::{Avma, FileOffset, Svma};

/// What all modules share: the options, the kernel's symbols, what records announced.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Options,
    kallsyms: OnceLock<Result<Arc<Kallsyms>, KallsymsError>>,
    running: OnceLock<Option<BuildId>>,
    ksymbols: OverlayMap<String>,
    jitdumps: Vec<(u32, PathBuf)>,
}

impl Shared {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            kallsyms: OnceLock::new(),
            running: OnceLock::new(),
            ksymbols: OverlayMap::default(),
            jitdumps: Vec::new(),
        }
    }

    pub(super) fn add_ksymbol(&mut self, start: Avma, size: u64, name: &str) {
        self.ksymbols.lay(start.0, start.0.saturating_add(size), name.to_owned());
    }

    pub(super) fn add_jitdump(&mut self, pid: u32, path: PathBuf) {
        self.jitdumps.push((pid, path));
    }

    /// The kernel's functions: a given copy, or the running kernel's.
    fn kallsyms(&self) -> Result<Arc<Kallsyms>, KallsymsError> {
        let read = || {
            let kallsyms = match self.options.kallsyms.as_deref() {
                Some(given) => Kallsyms::read(given),
                None => Kallsyms::running(self.options.cache.as_deref()),
            };
            kallsyms.map(Arc::new)
        };
        self.kallsyms.get_or_init(read).clone()
    }

    /// Gives memory back that is only in use while names are looked for.
    pub(super) fn release(&self) {
        if let Some(Ok(kallsyms)) = self.kallsyms.get() {
            kallsyms.release();
        }
    }

    fn running(&self) -> Option<BuildId> {
        *self.running.get_or_init(kernel::running_build_id)
    }
}

/// A module whose files were looked for.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    trust: DataQuality,
    /// What line lookup said when it failed as a whole.
    bad_lines: OnceLock<String>,
    found: Found,
    numbering: Numbering,
    /// Functions by the file's addresses, or by memory addresses where there is no file.
    table: Table,
    /// Variables, read when first asked for.
    variables: OnceLock<Table>,
    /// The kernel's functions, and by how much it lies higher now than in the recording.
    kallsyms: Option<(Arc<Kallsyms>, u64)>,
    cache: Option<Mutex<Cache>>,
    /// Stands in for `table` where that would be too large to keep.
    sparse: Option<Sparse>,
    /// Where the code may be read while it runs.
    memory: Memory,
    /// Dumps of generated code.
    dumps: Vec<(PathBuf, Jitdump)>,
}

/// How a probe becomes an address of the file.
#[derive(Debug)]
enum Numbering {
    /// It is a place in the file.
    Offset(Segments),
    /// It is an address in memory, this much above the file's.
    Slide(u64),
}

impl Default for Numbering {
    fn default() -> Self {
        Self::Slide(0)
    }
}

impl Loaded {
    /// Looks for the module's files and reads its symbol tables.
    pub(super) fn load(module: &Module, shared: &Shared) -> Self {
        let mut loaded = match &module.kind {
            Kind::File | Kind::Vdso => Self::file(module, shared),
            Kind::Kernel { reference } => Self::kernel(module, reference.as_ref(), shared),
            Kind::KernelModule { name, start } => Self::kernel_module(module, name, *start, shared),
            Kind::Anonymous { pid } => Self::anonymous(*pid, shared),
            Kind::Bpf => Self::bpf(shared),
        };
        loaded.trust.symbols = loaded.table.len().max(loaded.kallsyms.as_ref().map_or(0, |(k, _)| k.len()));
        loaded
    }

    fn file(module: &Module, shared: &Shared) -> Self {
        let found = locate::locate(module, &shared.options);
        let mut loaded = Self { found, ..Self::default() };
        let headers = loaded.found.binary.as_ref().or(loaded.found.debug.as_ref());
        let segments = headers.and_then(|image| Some(Segments::of(&image.elf().ok()?))).unwrap_or_default();
        loaded.numbering = Numbering::Offset(segments);
        loaded.read_files(module, shared);
        loaded
    }

    /// Reads the tables of the files that were found, and notes what they lack.
    fn read_files(&mut self, module: &Module, shared: &Shared) {
        if shared.options.sparse {
            self.sparse = Some(Sparse::default());
            return;
        }
        let mut builder = Builder::default();
        let mut full = false;
        let (mut lines, mut build_id) = (false, module.build_id);
        for image in [&self.found.binary, &self.found.debug].into_iter().flatten() {
            let Ok(file) = image.elf() else { continue };
            full |= elf::add_symbols(&file, &mut builder) > 0;
            lines |= elf::has_lines(&file);
            build_id = build_id.or(elf::build_id(&file));
            plt::add_stubs(&file, &mut builder);
            if let Some(mini) = elf::mini_debug(&file).map(|bytes| Image::held(".gnu_debugdata", bytes)) {
                full |= mini.elf().is_ok_and(|file| elf::add_symbols(&file, &mut builder) > 0);
            }
        }
        self.table = builder.finish();
        // People know a file by the name that its process used, not by the way through /proc.
        let shown = |image: &Image| {
            let path = if image.path.starts_with("/proc") {
                locate::strip_deleted(&module.path)
            } else {
                &image.path
            };
            path.to_owned()
        };
        self.trust.binary = self.found.binary.as_ref().map(shown);
        self.trust.debug = self.found.debug.as_ref().map(|image| image.path.clone());
        self.trust.lines = lines;
        self.trust.missing.append(&mut self.found.missing);
        if let Some(path) = self.trust.binary.clone() {
            if !full && module.kind != Kind::Vdso {
                self.trust.missing.push(Missing::Stripped { path, build_id });
            } else if !lines && module.kind != Kind::Vdso {
                self.trust.missing.push(Missing::Lines { path, build_id });
            }
        }
        let source = self.found.debug.as_ref().or(self.found.binary.as_ref()).filter(|_| lines);
        if let (Some(folder), Some(build_id), Some(source)) = (&shared.options.cache, build_id, source) {
            self.cache = Some(Mutex::new(Cache::open(folder, build_id, &source.path)));
        }
    }

    fn kernel(module: &Module, reference: Option<&(String, Avma)>, shared: &Shared) -> Self {
        let mut loaded = Self::default();
        let running = shared.running();
        let given = shared.options.kallsyms.is_some();
        let same = module.build_id.is_none_or(|recorded| running.is_some_and(|id| id.same(&recorded)));
        let kept = module.build_id.and_then(|id| locate::cached_kallsyms(id, &shared.options));
        let kallsyms = if given || same && shared.options.live {
            Some(shared.kallsyms())
        } else {
            kept.map(|path| Kallsyms::read(&path).map(Arc::new))
        };
        match kallsyms {
            Some(Ok(kallsyms)) => {
                let moved = kallsyms.moved_from(reference);
                if same && shared.options.live && !given {
                    loaded.memory = Memory::Kernel(moved);
                }
                loaded.kallsyms = Some((kallsyms, moved));
            }
            Some(Err(error)) => loaded.trust.missing.push(hidden(error)),
            None => match module.build_id {
                Some(recorded) => loaded.trust.missing.push(Missing::OtherKernel { recorded, running }),
                None => loaded.trust.missing.push(Missing::Unknown),
            },
        }
        loaded.vmlinux(module, reference, running, shared);
        loaded
    }

    /// Adds the kernel's file, if one is there whose build-id is the recorded kernel's.
    fn vmlinux(
        &mut self,
        module: &Module,
        reference: Option<&(String, Avma)>,
        running: Option<BuildId>,
        shared: &Shared,
    ) {
        let wanted = module.build_id.or(running.filter(|_| shared.options.live));
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let by_id = wanted.map(|id| format!(".build-id/{}.debug", id.path()));
        let by_id =
            by_id.iter().flat_map(|place| shared.options.debug_dirs.iter().map(move |dir| dir.join(place)));
        let usual = kernel::vmlinux_places(&release, &shared.options.debug_dirs);
        let places: Vec<PathBuf> =
            shared.options.vmlinux.clone().into_iter().chain(by_id).chain(usual).collect();
        for path in places {
            let Ok(image) = Image::open(&path) else { continue };
            let Ok(file) = image.elf() else { continue };
            let chosen = shared.options.vmlinux.as_ref() == Some(&path) && module.build_id.is_none();
            let same = wanted.is_some_and(|id| elf::build_id(&file).is_some_and(|there| there.same(&id)));
            if !chosen && !same {
                continue;
            }
            let Some(slide) = self.kernel_slide(&file, reference) else { continue };
            drop(file);
            self.numbering = Numbering::Slide(slide);
            self.found.binary = Some(image);
            locate::complete(module, &shared.options, &mut self.found);
            self.read_files(module, shared);
            if !self.table.is_empty() {
                self.trust.missing.retain(|m| {
                    !matches!(m, Missing::OtherKernel { .. } | Missing::KernelAddressesHidden { .. })
                });
            }
            return;
        }
    }

    /// How much higher the recorded kernel lay than its file says.
    fn kernel_slide(&self, file: &object::File<'_>, reference: Option<&(String, Avma)>) -> Option<u64> {
        use object::read::{Object, ObjectSymbol};
        let stated = |name: &str| file.symbols().find(|s| s.name() == Ok(name)).map(|s| s.address());
        match (reference, &self.kallsyms) {
            (Some((name, recorded)), _) => Some(recorded.0.wrapping_sub(stated(name)?)),
            (None, Some((kallsyms, _))) => Some(kallsyms.mark("_text")?.wrapping_sub(stated("_text")?)),
            (None, None) => Some(0),
        }
    }

    fn kernel_module(module: &Module, name: &str, start: Avma, shared: &Shared) -> Self {
        let mut loaded = Self { numbering: Numbering::Slide(start.0), ..Self::default() };
        let there =
            |text: String| kernel::loaded_modules(&text).iter().any(|m| m.name == name && m.start == start.0);
        let still = shared.options.live && std::fs::read_to_string("/proc/modules").is_ok_and(there);
        if still {
            loaded.memory = Memory::Kernel(0);
        }
        if still || shared.options.kallsyms.is_some() {
            match shared.kallsyms() {
                Ok(kallsyms) => loaded.kallsyms = Some((kallsyms, 0)),
                Err(error) => loaded.trust.missing.push(hidden(error)),
            }
        }
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut file = module.clone();
        if !file.path.is_absolute()
            && let Some(path) = kernel::module_files(&release).remove(name)
        {
            file.path = path;
        }
        if file.path.is_absolute() {
            loaded.found = locate::locate(&file, &shared.options);
            loaded.read_files(&file, shared);
        } else if loaded.kallsyms.is_none() {
            loaded.trust.missing.push(Missing::Unknown);
        }
        loaded
    }

    fn anonymous(pid: u32, shared: &Shared) -> Self {
        let mut loaded = Self::default();
        if shared.options.live {
            loaded.memory = Memory::Process(pid);
        }
        let mut painted = OverlayMap::default();
        let dumps = shared.jitdumps.iter().filter(|(owner, _)| *owner == pid);
        for (_, path) in dumps {
            match Jitdump::read(path) {
                Ok(dump) => {
                    loaded.trust.binary = Some(path.clone());
                    for code in dump.codes() {
                        painted.lay(code.start, code.start.saturating_add(code.size), code.name.clone());
                    }
                    loaded.dumps.push((path.clone(), dump));
                }
                Err(error) => {
                    loaded.trust.missing.push(Missing::NotElf { path: path.clone(), why: error.to_string() });
                }
            }
        }
        match perf_map::read(pid, shared.options.live, shared.options.symfs.as_deref()) {
            Ok((path, table)) => {
                loaded.trust.binary.get_or_insert(path);
                // The dump tells when code was there, so it is believed where both speak.
                let mut all = OverlayMap::default();
                for symbol in table.iter() {
                    all.lay(symbol.start, symbol.end, symbol.name.to_owned());
                }
                for (start, end, name) in painted.iter() {
                    all.lay(start, end, name.clone());
                }
                painted = all;
            }
            Err(said) if loaded.trust.binary.is_none() => {
                loaded.trust.missing.push(Missing::PerfMap { pid, said })
            }
            Err(_) => {}
        }
        loaded.table = painted.table(|name| name.into());
        loaded
    }

    fn bpf(shared: &Shared) -> Self {
        let mut loaded = Self { table: shared.ksymbols.table(|name| name.into()), ..Self::default() };
        if shared.options.live || shared.options.kallsyms.is_some() {
            loaded.kallsyms = shared.kallsyms().ok().map(|kallsyms| (kallsyms, 0));
            if shared.options.live {
                loaded.memory = Memory::Kernel(0);
            }
        }
        if loaded.table.is_empty() && loaded.kallsyms.is_none() {
            loaded.trust.missing.push(Missing::Unknown);
        }
        loaded
    }

    /// What was found and what is missing.
    pub(super) fn trust(&self) -> DataQuality {
        let mut trust = self.trust.clone();
        if let Some(why) = self.bad_lines.get() {
            trust.lines = false;
            let path = trust.debug.as_ref().or(trust.binary.as_ref()).cloned().unwrap_or_default();
            trust.missing.push(Missing::BadLines { path, why: why.clone() });
        }
        trust
    }

    pub(super) fn binary(&self) -> Option<&Image> {
        self.found.binary.as_ref()
    }

    pub(super) fn debug(&self) -> Option<&Image> {
        self.found.debug.as_ref()
    }

    pub(super) fn memory(&self) -> Memory {
        self.memory
    }

    pub(super) fn dumps(&self) -> &[(PathBuf, Jitdump)] {
        &self.dumps
    }

    /// The probe that [`Loaded::address`] turns into this address.
    pub(super) fn probe_of(&self, address: u64) -> Option<SymbolQuery> {
        match &self.numbering {
            Numbering::Offset(segments) => segments.offset(Svma(address)).map(SymbolQuery::from),
            Numbering::Slide(_) => Some(Avma(address).into()),
        }
    }

    /// The address that a person reads: the file's, or that in memory.
    pub(super) fn address(&self, probe: SymbolQuery) -> Option<u64> {
        match &self.numbering {
            Numbering::Offset(segments) => segments.address(FileOffset(probe.0)).map(|svma| svma.0),
            Numbering::Slide(_) => Some(probe.0),
        }
    }

    /// The address in the file, under which its debug information has it.
    pub(super) fn file_address(&self, probe: SymbolQuery) -> Option<u64> {
        match &self.numbering {
            Numbering::Offset(_) => self.address(probe),
            Numbering::Slide(slide) => Some(probe.0.wrapping_sub(*slide)),
        }
    }

    /// The function at a probe, in the numbering of [`Loaded::address`].
    pub(super) fn find(&self, probe: SymbolQuery) -> Option<Symbol<'_>> {
        self.in_kernel(probe).or_else(|| {
            let symbol = self.table.find(self.file_address(probe)?)?;
            let slide = if let Numbering::Slide(slide) = self.numbering { slide } else { 0 };
            Some(moved(symbol, slide))
        })
    }

    fn in_kernel(&self, probe: SymbolQuery) -> Option<Symbol<'_>> {
        let (kallsyms, by) = self.kallsyms.as_ref()?;
        Some(moved(kallsyms.find(probe.0.wrapping_add(*by))?, by.wrapping_neg()))
    }

    /// The variable at a probe, in the file's numbering.
    pub(super) fn find_variable(&self, probe: SymbolQuery) -> Option<Symbol<'_>> {
        let Numbering::Offset(_) = self.numbering else { return None };
        let read = || {
            let mut builder = Builder::default();
            for image in [&self.found.binary, &self.found.debug].into_iter().flatten() {
                if let Ok(file) = image.elf() {
                    elf::add_variables(&file, &mut builder);
                }
            }
            builder.finish()
        };
        self.variables.get_or_init(read).find(self.file_address(probe)?)
    }

    /// Whether an answer costs no walk through a symbol table.
    pub(super) fn knows(&self, probe: SymbolQuery) -> bool {
        let Some(sparse) = &self.sparse else { return true };
        self.file_address(probe).is_none_or(|address| sparse.knows(address)) || self.find(probe).is_some()
    }

    /// The probes around this one that [`Loaded::find_all`] names as it does this one, first and first behind, as far as that
    /// is known by now.
    pub(super) fn around(&self, probe: SymbolQuery) -> Option<(u64, u64)> {
        if let Some(symbol) = self.in_kernel(probe) {
            return Some((symbol.start, symbol.end));
        }
        let (from, to) = self.sparse.as_ref()?.around(self.file_address(probe)?)?;
        let by = self.file_address(probe)?.wrapping_sub(probe.0);
        let Numbering::Offset(segments) = &self.numbering else { return None };
        let (first, behind) = segments.around(FileOffset(probe.0))?;
        // A stretch of addresses may begin before the segment's, and end behind them.
        let from = if from < first.wrapping_add(by) { first } else { from.wrapping_sub(by) };
        let to = if to > behind.wrapping_add(by) { behind } else { to.wrapping_sub(by) };
        (from..to).contains(&probe.0).then_some((from, to))
    }

    /// The functions at these probes: start and end in the numbering of [`Loaded::address`], and the name.
    pub(super) fn find_all(&self, probes: &[SymbolQuery]) -> Vec<Option<Named>> {
        let owned = |symbol: Symbol<'_>| (symbol.start, symbol.end, symbol.name.into());
        let mut all: Vec<Option<Named>> = probes.iter().map(|probe| self.find(*probe).map(owned)).collect();
        let Some(sparse) = &self.sparse else { return all };
        let lacking = |(probe, named): (&SymbolQuery, &Option<Named>)| match named {
            None => self.file_address(*probe),
            Some(_) => None,
        };
        let addresses: Vec<Option<u64>> = probes.iter().zip(&all).map(lacking).collect();
        let slide = if let Numbering::Slide(slide) = self.numbering { slide } else { 0 };
        for (named, found) in all.iter_mut().zip(sparse.find(&addresses, &self.found)) {
            if let Some((start, end, name)) = found {
                *named = Some((start.wrapping_add(slide), end.wrapping_add(slide), name));
            }
        }
        all
    }

    /// All functions by start, in the numbering of the table.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        let kernel = self.kallsyms.as_ref().map(|(kallsyms, _)| kallsyms.iter());
        let own = kernel.is_none().then(|| self.table.iter());
        kernel.into_iter().flatten().chain(own.into_iter().flatten())
    }

    /// Lines and inlined functions at addresses of the file; `None` when the module has none.
    pub(super) fn lines(
        &self,
        addresses: &[Option<u64>],
        done: &(dyn Fn(usize) + Sync),
    ) -> Option<FxHashMap<u64, Vec<LineFrame>>> {
        if !self.trust.lines {
            return None;
        }
        let mut wanted: Vec<u64> = addresses.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut known = FxHashMap::default();
        let mut cache = self.cache.as_ref().and_then(|cache| cache.lock().ok());
        if let Some(cache) = &cache {
            wanted.retain(|address| match cache.get(*address) {
                Some(frames) => {
                    known.insert(*address, frames);
                    false
                }
                None => true,
            });
            done(known.len());
        }
        if wanted.is_empty() {
            return Some(known);
        }
        match lines::resolve(&self.found, &wanted, done) {
            Ok(list) => {
                if let Some(cache) = &mut cache {
                    cache.add(wanted.iter().copied().zip(list.iter()));
                }
                known.extend(wanted.into_iter().zip(list));
            }
            Err(why) => {
                let _ = self.bad_lines.set(why);
            }
        }
        Some(known)
    }
}

/// A symbol that lies so much higher.
fn moved(symbol: Symbol<'_>, by: u64) -> Symbol<'_> {
    Symbol { start: symbol.start.wrapping_add(by), end: symbol.end.wrapping_add(by), ..symbol }
}

fn hidden(error: KallsymsError) -> Missing {
    match error {
        KallsymsError::Hidden => Missing::KernelAddressesHidden {
            kptr_restrict: std::fs::read_to_string("/proc/sys/kernel/kptr_restrict")
                .ok()
                .and_then(|text| text.trim().parse().ok()),
        },
        KallsymsError::Unreadable { path, said } => Missing::File { path, said },
    }
}
