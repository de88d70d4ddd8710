//! Finds a module's files and reads their symbol tables, depending on the kind of module.
//!
//! Takes a module and the places to search; returns its [`ModuleSources`], including reasons for missing
//! data. Decides which sources to use, and in which order.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use object::read::Object;

use super::{LiveMemory, ModuleSources, Numbering, OpenedFiles, SharedSources};
use crate::address::{Avma, IntervalMap};
use crate::go_table::GoTable;
use crate::symbol::archive::ArchivedModule;
use crate::symbol::build_id::BuildId;
use crate::symbol::dwarf::cache::Cache;
use crate::symbol::files::elf::{self, Segments};
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::{self, ModuleFiles};
use crate::symbol::jit::jitdump::Jitdump;
use crate::symbol::kernel::{KallsymsError, KallsymsTable, kernel_module_name};
use crate::symbol::missing_data::{FoundData, MissingDataReason};
use crate::symbol::module::{SymbolModule, SymbolModuleKind};
use crate::symbol::options::RunningKernel;
use crate::symbol::tables::sparse::SparseTable;
use crate::symbol::tables::table::SymbolTable;
use pmc_sys::sys::regular_file::path_in_process;

impl ModuleSources {
    /// Searches for the module's files and reads its symbol tables.
    pub(in crate::symbol) fn load(module: &SymbolModule, shared: &SharedSources) -> Self {
        if let Some(archive) = &shared.archive {
            return Self::of_archive(archive.module(module));
        }
        let mut loaded = match &module.kind {
            SymbolModuleKind::File | SymbolModuleKind::Vdso => Self::file(module, shared),
            SymbolModuleKind::Kernel { reference } => Self::kernel(module, reference.as_deref(), shared),
            SymbolModuleKind::KernelModule { start } => Self::kernel_module(module, *start, shared),
            SymbolModuleKind::Anonymous { pid } => Self::anonymous(*pid, shared),
            SymbolModuleKind::Bpf => Self::bpf(shared),
        };
        let has_names = |loaded: &Self| loaded.kallsyms().is_some() || !loaded.table().is_empty();
        if let Some(recorded) = shared.recorded.get(&*module.path).filter(|_| !has_names(&loaded)) {
            if let Numbering::Offset(_) = loaded.numbering {
                loaded.numbering = Numbering::default();
            }
            loaded.opened = None;
            // pmc can resolve names without this file, but users want to know why their file is not used.
            loaded
                .quality_mut()
                .missing
                .retain(|reason| matches!(reason, MissingDataReason::GivenVmlinux(_)));
            loaded.quality_mut().found_mut().symbols = recorded.len();
            loaded.other_mut().recorded = Some(recorded.clone());
            return loaded;
        }
        let (kernel, own) = (loaded.kallsyms(), loaded.table.get());
        let (kernel, own) =
            (kernel.map_or(0, |(kallsyms, _)| kallsyms.len()), own.map_or(0, |table| table.len()));
        if kernel.max(own) > loaded.quality.found().symbols {
            loaded.quality_mut().found_mut().symbols = kernel.max(own);
        }
        loaded
    }

    fn of_archive(module: ArchivedModule) -> Self {
        let numbering = match module.slide() {
            Some(slide) => Numbering::Slide(slide),
            None => Numbering::Offset(module.segments()),
        };
        let quality = module.quality();
        let mut loaded = Self { numbering, quality, ..Self::default() };
        loaded.other_mut().archived = Some(module);
        loaded
    }

    fn file(module: &SymbolModule, shared: &SharedSources) -> Self {
        let files = locate::locate(module, &shared.options);
        let headers = files.images().next();
        let segments =
            headers.and_then(|image| Some(Segments::from_elf(&image.elf().ok()?))).unwrap_or_default();
        let mut loaded = Self { numbering: Numbering::Offset(segments), ..Self::default() };
        loaded.read_files(files, module, shared);
        loaded
    }

    /// Examines the files that were found, and records which data they lack.
    fn read_files(&mut self, mut files: ModuleFiles, module: &SymbolModule, shared: &SharedSources) {
        self.quality_mut().missing.append(&mut files.missing);
        if files.images().next().is_none() {
            // Save memory, since a recording may contain a million modules whose files are missing.
            self.quality_mut().missing.shrink_to_fit();
            return;
        }
        let sparse = SparseTable::default();
        let (mut full, mut dynamic, mut lines, mut build_id) = (0, 0, false, module.build_id);
        for file in files.images().filter_map(|image| image.elf().ok()) {
            full += file.symbols().count();
            dynamic += file.dynamic_symbols().count();
            lines |= elf::has_lines(&file);
            if let Some(go) = GoTable::find(&file) {
                full += if elf::has_symtab(&file) { 0 } else { go.len() };
                lines = true;
            }
            build_id = build_id.or(elf::build_id(&file));
        }
        let mini = sparse.mini(&files).iter().filter_map(|mini| mini.elf().ok());
        full += mini.map(|file| file.symbols().count()).sum::<usize>();
        // Users know a file by its path in the process, not by a path below /proc.
        let shown = |image: &Image| match image.path.starts_with("/proc") {
            true => locate::strip_deleted(&module.path).to_owned(),
            false => image.path.clone(),
        };
        let binary = files.binary.as_ref().map(shown);
        let debug = files.debug.as_ref().map(|image| path_in_process(&image.path).into_owned());
        *self.quality_mut().found_mut() =
            FoundData { binary: binary.clone(), debug, symbols: full + dynamic, lines };
        if let Some(path) = binary {
            if full == 0 && module.kind != SymbolModuleKind::Vdso {
                self.lacks(MissingDataReason::Stripped { path, build_id });
            } else if !lines && module.kind != SymbolModuleKind::Vdso {
                self.lacks(MissingDataReason::Lines { path, build_id });
            }
        }
        let source = files.debug.as_ref().or(files.binary.as_ref()).filter(|_| lines);
        let cache = match (&shared.options.cache, build_id, source) {
            (Some(folder), Some(build_id), Some(source)) => Some(Cache::open(folder, build_id, &source.path)),
            _ => None,
        };
        let cache = cache.map(Mutex::new);
        self.opened = Some(Box::new(OpenedFiles { files, sparse, cache, ..OpenedFiles::default() }));
    }

    fn kernel(module: &SymbolModule, reference: Option<&(String, Avma)>, shared: &SharedSources) -> Self {
        let mut loaded = Self::default();
        let (running, unreadable) = match shared.running() {
            Ok(running) => (running, None),
            Err(why) => (None, Some(why)),
        };
        let given = shared.options.kallsyms.is_some();
        let same = module.build_id.is_none_or(|recorded| running.is_some_and(|id| id.same(&recorded)));
        let kept = module.build_id.and_then(|id| locate::cached_kallsyms(id, &shared.options));
        let kallsyms = if given || same && shared.options.live {
            Some(shared.kallsyms())
        } else {
            kept.map(|path| KallsymsTable::read(&path).map(Arc::new))
        };
        match kallsyms {
            Some(Ok(kallsyms)) => {
                let moved = kallsyms.moved_from(reference);
                if same && shared.options.live && !given {
                    loaded.other_mut().memory = LiveMemory::Kernel(moved);
                }
                loaded.other_mut().kallsyms = Some((kallsyms, moved));
            }
            Some(Err(error)) => loaded.lacks(hidden(error, &shared.options.kernel)),
            None => match module.build_id {
                Some(_) if unreadable.is_some() => {}
                Some(recorded) => loaded.lacks(MissingDataReason::OtherKernel { recorded, running }),
                None => loaded.lacks(MissingDataReason::Unknown),
            },
        }
        // Names may come from another source, but the kernel's code is missing.
        if let Some(why) = unreadable {
            loaded.lacks(why);
        }
        loaded.vmlinux(module, reference, running, shared);
        loaded
    }

    /// Adds the kernel image: the one that the user specified, or one with the recorded kernel's build-id.
    fn vmlinux(
        &mut self,
        module: &SymbolModule,
        reference: Option<&(String, Avma)>,
        running: Option<BuildId>,
        shared: &SharedSources,
    ) {
        let options = &shared.options;
        let mut found = None;
        if let Some(path) = &options.vmlinux {
            match self.given_vmlinux(path, module.build_id, reference) {
                Ok(given) => found = Some(given),
                Err(why) => self.lacks(MissingDataReason::GivenVmlinux(why.into())),
            }
        }
        let mut failed = Vec::new();
        let mut search = || {
            let wanted = module.build_id.or(running.filter(|_| options.live))?;
            let by_id =
                options.debug_dirs.iter().map(|dir| dir.join(format!(".build-id/{}.debug", wanted.path())));
            // Ordinary users often cannot enter `/boot`, which rarely contains this file.
            let usual = options.kernel.vmlinux_places(&options.debug_dirs);
            let usual = usual.into_iter().filter(|place| place.symlink_metadata().is_ok());
            by_id.chain(usual).find_map(|path| {
                let image = locate::open_optional(&path, &mut failed)?;
                locate::check(&image, Some(wanted)).ok()?;
                let slide = self.kernel_slide(&image.elf().ok()?, reference).ok()?;
                Some((image, slide))
            })
        };
        let Some((image, slide)) = found.or_else(&mut search) else {
            self.quality_mut().missing.extend(failed);
            return;
        };
        self.numbering = Numbering::Slide(slide);
        let mut files = ModuleFiles { binary: Some(image), ..ModuleFiles::default() };
        locate::complete(module, options, &mut files);
        self.read_files(files, module, shared);
        if self.quality.found().symbols > 0 {
            self.quality_mut().missing.retain(|m| {
                !matches!(
                    m,
                    MissingDataReason::OtherKernel { .. } | MissingDataReason::KernelAddressesHidden { .. }
                )
            });
        }
    }

    /// Opens the kernel image that the user specified. Returns it with its slide, or the reason why it is not
    /// used.
    fn given_vmlinux(
        &self,
        path: &Path,
        recorded: Option<BuildId>,
        reference: Option<&(String, Avma)>,
    ) -> Result<(Image, u64), MissingDataReason> {
        let unusable = |why| MissingDataReason::NotElf { path: path.to_owned(), why };
        let image = Image::open(path).map_err(|error| MissingDataReason::unreadable(path, &error))?;
        locate::check(&image, recorded)?;
        let file = image.elf().map_err(|error| unusable(error.to_string()))?;
        let slide = self.kernel_slide(&file, reference).map_err(unusable)?;
        drop(file);
        Ok((image, slide))
    }

    /// Returns how many bytes the recorded kernel was loaded above the address in its file.
    ///
    /// # Errors
    /// Returns the name of the missing symbol.
    fn kernel_slide(
        &self,
        file: &object::File<'_>,
        reference: Option<&(String, Avma)>,
    ) -> Result<u64, String> {
        use object::read::ObjectSymbol;
        let stated = |name: &str| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
            symbol.map(|symbol| symbol.address()).ok_or_else(|| format!("it has no symbol {name}"))
        };
        match (reference, self.kallsyms()) {
            (Some((name, recorded)), _) => Ok(recorded.0.wrapping_sub(stated(name)?)),
            (None, Some((kallsyms, _))) => {
                let text = kallsyms.mark("_text").ok_or("kallsyms has no symbol _text")?;
                Ok(text.wrapping_sub(stated("_text")?))
            }
            (None, None) => Ok(0),
        }
    }

    fn kernel_module(module: &SymbolModule, start: Avma, shared: &SharedSources) -> Self {
        let name = kernel_module_name(&module.path);
        let mut loaded = Self { numbering: Numbering::Slide(start.0), ..Self::default() };
        let kernel = &shared.options.kernel;
        let still = shared.options.live
            && kernel.modules().iter().any(|loaded| loaded.name == name && loaded.start == start.0);
        if still {
            loaded.other_mut().memory = LiveMemory::Kernel(0);
        }
        if still || shared.options.kallsyms.is_some() {
            match shared.kallsyms() {
                Ok(kallsyms) => loaded.other_mut().kallsyms = Some((kallsyms, 0)),
                Err(error) => loaded.lacks(hidden(error, kernel)),
            }
        }
        let mut file = module.clone();
        // In another kernel, the file with this name contains different functions.
        let may_be_here = shared.options.live || module.build_id.is_some();
        if !file.path.is_absolute()
            && may_be_here
            && let Some(path) = kernel.module_files().remove(&name)
        {
            file.path = path.into();
        }
        if file.path.is_absolute() {
            loaded.read_files(locate::locate(&file, &shared.options), &file, shared);
        } else if loaded.kallsyms().is_none() {
            loaded.lacks(MissingDataReason::Unknown);
        }
        loaded
    }

    fn anonymous(pid: u32, shared: &SharedSources) -> Self {
        let mut loaded = Self::default();
        if shared.options.live {
            loaded.other_mut().memory = LiveMemory::Process(pid);
        }
        let mut dumped = IntervalMap::default();
        for (_, path) in shared.jitdumps.iter().filter(|(owner, _)| *owner == pid) {
            match Jitdump::read(&shared.options.below_symfs(path)) {
                Ok(dump) => {
                    loaded.quality_mut().found_mut().binary = Some(path.clone());
                    for code in dump.codes() {
                        dumped.replace(code.start..code.start.saturating_add(code.size), code.name.clone());
                    }
                    loaded.other_mut().dumps.push((path.clone(), dump));
                }
                Err(error) => {
                    loaded.lacks(MissingDataReason::NotElf { path: path.clone(), why: error.to_string() });
                }
            }
        }
        let mut listed = Arc::default();
        match shared.perf_maps.read(pid, shared.options.live, shared.options.symfs.as_deref()) {
            Ok((path, table)) => {
                let path = path_in_process(&path).into_owned();
                loaded.quality_mut().found_mut().binary.get_or_insert(path);
                listed = table;
            }
            // A process with a jitdump does not need a map.
            Err(MissingDataReason::PerfMap { .. }) if loaded.quality.found().binary.is_some() => {}
            Err(missing) => loaded.lacks(missing),
        }
        if !dumped.is_empty() {
            let mut names = IntervalMap::default();
            for symbol in listed.iter() {
                names.replace(symbol.start..symbol.end, Cow::Borrowed(symbol.name));
            }
            // The dump contains the time at which each function was generated, so it takes precedence over
            // the map.
            for (range, name) in dumped.iter() {
                names.replace(range, Cow::Borrowed(&**name));
            }
            listed = Arc::new(SymbolTable::from_functions(
                names.iter().map(|(range, name)| (range, name.clone())),
            ));
        }
        loaded.table = OnceLock::from(listed);
        loaded
    }

    fn bpf(shared: &SharedSources) -> Self {
        let mut loaded = Self {
            table: OnceLock::from(Arc::new(SymbolTable::from_functions(
                shared.ksymbols.iter().map(|(range, name)| (range, name.to_string_lossy())),
            ))),
            ..Self::default()
        };
        if shared.options.live || shared.options.kallsyms.is_some() {
            loaded.other_mut().kallsyms = shared.kallsyms().ok().map(|kallsyms| (kallsyms, 0));
            if shared.options.live {
                loaded.other_mut().memory = LiveMemory::Kernel(0);
            }
        }
        if loaded.table().is_empty() && loaded.kallsyms().is_none() {
            loaded.lacks(MissingDataReason::Unknown);
        }
        loaded
    }
}

fn hidden(error: KallsymsError, kernel: &RunningKernel) -> MissingDataReason {
    match error {
        KallsymsError::Hidden => {
            MissingDataReason::KernelAddressesHidden { kptr_restrict: kernel.kptr_restrict() }
        }
        KallsymsError::Unreadable { path, said } => {
            MissingDataReason::Unreadable { path: path.into(), said: said.into() }
        }
    }
}
