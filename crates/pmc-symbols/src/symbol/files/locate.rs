//! Finds the files of a module: its own file, its separate debug file, and the files to which these refer.
//!
//! Takes a module and the places to search. Opens candidates in order, and uses the first one with the
//! recorded build-id. pmc never uses a file from a different build, but reports it. [`elf`](super::elf) reads
//! the files.
//!
//! ```text
//!   own file    symfs/PATH | /proc/PID/root/PATH | PATH | /proc/PID/map_files/.. | /proc/PID/exe
//!               caches by build-id | debuginfod
//!   debug file  DEBUGDIR/.build-id/ab/cd.debug | debug-link next to the file, in .debug, in DEBUGDIR/DIR
//!               caches | debuginfod
//!   dwz file    .gnu_debugaltlink, relative to the debug file | DEBUGDIR/.build-id | debuginfod
//! ```

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::Object;

use super::elf;
use super::image::Image;
use super::mount::FileRoot;
use crate::symbol::build_id::BuildId;
use crate::symbol::debuginfod::Artifact;
use crate::symbol::missing_data::{MissingDataReason, is_absence};
use crate::symbol::module::{SymbolModule, SymbolModuleKind};
use crate::symbol::options::SymbolOptions;
use pmc_sys::sys::deleted_file;
use pmc_sys::sys::errno;
use pmc_sys::sys::regular_file::process_root;

/// The result of a search.
#[derive(Debug, Default)]
pub struct ModuleFiles {
    /// The module's own file.
    pub binary: Option<Image>,
    /// The separate debug file.
    pub debug: Option<Image>,
    /// The file with the shared parts that dwz extracted (`.gnu_debugaltlink`).
    pub(crate) supplement: Option<Image>,
    /// The package with split DWARF (`.dwp`).
    pub(crate) package: Option<Image>,
    /// Why the binary is missing, and which debug files cannot be read.
    pub(crate) missing: Vec<MissingDataReason>,
}

impl ModuleFiles {
    /// Iterates over the module's own file and its debug file, if found.
    pub(crate) fn images(&self) -> impl Iterator<Item = &Image> {
        [&self.binary, &self.debug].into_iter().flatten()
    }
}

/// Searches for all files of a module, which must be of a kind that has files.
pub fn locate(module: &SymbolModule, options: &SymbolOptions) -> ModuleFiles {
    let mut found = ModuleFiles::default();
    match module.kind {
        SymbolModuleKind::Vdso if options.live || module.build_id.is_some() => {
            vdso(module, options, &mut found)
        }
        SymbolModuleKind::Vdso => found.missing.push(MissingDataReason::Unknown),
        SymbolModuleKind::File
        | SymbolModuleKind::Kernel { .. }
        | SymbolModuleKind::KernelModule { .. }
        | SymbolModuleKind::Anonymous { .. }
        | SymbolModuleKind::Bpf => own_file(module, options, &mut found),
    }
    if module.kind != SymbolModuleKind::Vdso {
        complete(module, options, &mut found);
    }
    found
}

/// Searches for the other files that belong to a binary that is already open, or to a build-id.
pub(crate) fn complete(module: &SymbolModule, options: &SymbolOptions, found: &mut ModuleFiles) {
    let build_id =
        found.binary.as_ref().and_then(|image| elf::build_id(&image.elf().ok()?)).or(module.build_id);
    let complete =
        found.binary.as_ref().is_some_and(|image| image.elf().is_ok_and(|file| elf::has_lines(&file)));
    if !complete {
        let mut failed = Vec::new();
        found.debug = debug_file(module, found.binary.as_ref(), build_id, options, &mut failed);
        if found.debug.is_none() {
            found.missing.splice(0..0, failed);
        }
    }
    let mut failed = Vec::new();
    let lines = found.debug.as_ref().or(found.binary.as_ref());
    found.supplement = lines.and_then(|image| supplement(image, options, &mut failed));
    if found.supplement.is_some() {
        failed.clear();
    }
    let package = found.images().find_map(|image| {
        let mut path = image.path.clone().into_os_string();
        path.push(".dwp");
        open_optional(Path::new(&path), &mut failed)
    });
    found.package = package;
    found.missing.extend(failed);
}

fn own_file(module: &SymbolModule, options: &SymbolOptions, found: &mut ModuleFiles) {
    let path = strip_deleted(&module.path);
    let mut said: Option<(PathBuf, io::Error)> = None;
    for candidate in own_candidates(module, path, options) {
        match Image::open(&candidate) {
            Ok(image) => match check(&image, module.build_id) {
                Ok(()) => {
                    found.binary = Some(image);
                    found.missing.clear();
                    return;
                }
                Err(missing) => found.missing.push(missing),
            },
            // The error for an existing file is more informative than the error for a missing file.
            Err(error) if said.as_ref().is_none_or(|(_, said)| is_absence(said) && !is_absence(&error)) => {
                said = Some((candidate, error));
            }
            Err(_) => {}
        }
    }
    if let Some(image) = module.build_id.and_then(|id| fetch(Artifact::Executable, id, options)) {
        found.binary = Some(image);
        found.missing.clear();
        return;
    }
    if found.missing.is_empty() {
        // Users know a file by its path in the process, not by its path in a cache.
        let unreadable = said.as_ref().filter(|(_, error)| !is_absence(error));
        let elsewhere = unreadable.map(|(candidate, _)| candidate.clone());
        let elsewhere = elsewhere.filter(|candidate| !candidate.starts_with("/proc") && candidate != path);
        let is_absent = unreadable.is_none();
        let mut said: Cow<'static, str> = match &said {
            None => "not searched for".into(),
            Some((_, error)) if error.kind() == io::ErrorKind::NotFound => "No such file or directory".into(),
            Some((_, error)) => pmc_sys::error::kernel_message(error).into(),
        };
        if FileRoot::for_module(module, options) == FileRoot::Gone {
            said += " (it was in another mount namespace, which has no processes left)";
        }
        // If the path has no " (deleted)" suffix, reuse the module's string instead of allocating one.
        let path = if path == &*module.path { module.path.clone() } else { path.into() };
        found.missing.push(match is_absent {
            true => MissingDataReason::File { path, said },
            false => {
                let path = elsewhere.map_or(path, |place| place.into());
                MissingDataReason::Unreadable { path, said: said.into() }
            }
        });
    }
}

/// Opens an optional file. Reports errors unless the file does not exist.
pub(in crate::symbol) fn open_optional(path: &Path, failed: &mut Vec<MissingDataReason>) -> Option<Image> {
    let error = match Image::open(path) {
        Ok(image) => return Some(image),
        Err(error) => error,
    };
    // A file whose name is too long, such as a long name with ".dwp" appended, cannot exist.
    if !is_absence(&error) && error.raw_os_error() != Some(errno::ENAMETOOLONG) {
        let refusing = if error.raw_os_error() == Some(errno::EACCES) { refusing(path) } else { path };
        let reason = MissingDataReason::unreadable(refusing, &error);
        if !failed.contains(&reason) {
            failed.push(reason);
        }
    }
    None
}

/// Returns the file or folder that denies access to a path. If one folder denies access to the debug files of
/// all modules, reporting that folder results in a single message.
fn refusing(path: &Path) -> &Path {
    path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(path)
}

fn own_candidates(module: &SymbolModule, path: &Path, options: &SymbolOptions) -> Vec<PathBuf> {
    let mut candidates = Vec::new();
    if path.is_absolute() {
        if let Some(symfs) = &options.symfs {
            candidates.push(below(symfs, path));
        } else {
            let root = FileRoot::for_module(module, options).path();
            candidates.extend(root.map(|root| below(&root, path)));
            candidates.push(path.to_owned());
        }
    }
    if let Some(pid) = module.pid.filter(|_| options.live && options.symfs.is_none()) {
        if let Some(m) = module.mapping {
            candidates.push(
                format!("/proc/{pid}/map_files/{:x}-{:x}", m.start, m.start.0.wrapping_add(m.len)).into(),
            );
        }
        // The process's own program stays accessible after its deletion.
        let exe = PathBuf::from(format!("/proc/{pid}/exe"));
        if std::fs::read_link(&exe).is_ok_and(|target| strip_deleted(&target) == path) {
            candidates.push(exe);
        }
    }
    if let Some(build_id) = module.build_id {
        candidates.extend(cached(build_id, "elf", options));
        candidates.extend(downloaded(build_id, "executable", options));
    }
    candidates
}

/// Returns candidates in perf's caches. An entry is a folder with the file `elf`, `debug`, `vdso` or
/// `kallsyms`; in older caches, it is the file itself.
fn cached<'a>(
    build_id: BuildId,
    what: &'a str,
    options: &'a SymbolOptions,
) -> impl Iterator<Item = PathBuf> + 'a {
    options.build_id_caches.iter().flat_map(move |cache| {
        let place = cache.join(".build-id").join(build_id.path());
        [place.join(what), place].into_iter().filter(|path| !path.is_dir())
    })
}

/// Returns a file from the cache of elfutils' client, where an empty file means that no server had it.
fn downloaded(build_id: BuildId, what: &str, options: &SymbolOptions) -> Option<PathBuf> {
    let path = options.debuginfod_cache.as_ref()?.join(build_id.to_string()).join(what);
    std::fs::metadata(&path).is_ok_and(|file| file.len() > 0).then_some(path)
}

/// Downloads a file from the debuginfod servers, if any are configured.
fn fetch(artifact: Artifact<'_>, build_id: BuildId, options: &SymbolOptions) -> Option<Image> {
    let path = options.debuginfod.as_ref()?.fetch(artifact, build_id)?;
    Image::open(&path).ok().filter(|image| check(image, Some(build_id)).is_ok())
}

/// Returns the cached `kallsyms` of another kernel, if there is one.
pub(crate) fn cached_kallsyms(build_id: BuildId, options: &SymbolOptions) -> Option<PathBuf> {
    cached(build_id, "kallsyms", options).find(|path| path.is_file())
}

/// Checks that an image is an ELF file and has the recorded build-id, if there is one.
pub(in crate::symbol) fn check(image: &Image, recorded: Option<BuildId>) -> Result<(), MissingDataReason> {
    let invalid = |error: object::Error| {
        let why = format!("not a valid ELF file ({error})");
        MissingDataReason::NotElf { path: image.path.clone(), why }
    };
    let file = image.elf().map_err(invalid)?;
    let Some(recorded) = recorded else { return Ok(()) };
    let there = elf::build_id(&file);
    if there.is_some_and(|there| there.same(&recorded)) {
        return Ok(());
    }
    Err(MissingDataReason::OtherBuild { path: image.path.clone(), recorded, found: there.map(Box::new) })
}

/// Reads the vdso of pmc's own process, which is the same for all processes with the same kernel and word
/// size. Falls back to a cached vdso for other kernels.
fn vdso(module: &SymbolModule, options: &SymbolOptions, found: &mut ModuleFiles) {
    let kept = || cached(module.build_id?, "vdso", options).find_map(|path| Image::open(&path).ok());
    match read_own_vdso() {
        Ok(bytes) => {
            let image = Image::held("[vdso]", bytes);
            match check(&image, module.build_id) {
                Ok(()) => found.binary = Some(image),
                Err(missing) => match kept().filter(|image| check(image, module.build_id).is_ok()) {
                    Some(image) => found.binary = Some(image),
                    None => found.missing.push(missing),
                },
            }
        }
        Err(error) => found.missing.push(MissingDataReason::unreadable(Path::new("[vdso]"), &error)),
    }
}

fn read_own_vdso() -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let range = maps.lines().find(|line| line.ends_with("[vdso]")).and_then(|line| {
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    });
    let (start, end) = range.ok_or(io::ErrorKind::NotFound)?;
    let mut bytes = vec![0; end.saturating_sub(start) as usize];
    std::fs::File::open("/proc/self/mem")?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Maximum size of a debug file that is identified by its checksum, so that a user's huge file cannot keep
/// pmc busy.
const MOST_HASHED: usize = 4 << 30;

/// Searches for the separate debug file.
fn debug_file(
    module: &SymbolModule,
    binary: Option<&Image>,
    build_id: Option<BuildId>,
    options: &SymbolOptions,
    failed: &mut Vec<MissingDataReason>,
) -> Option<Image> {
    let useful =
        |image: &Image| image.elf().is_ok_and(|file| elf::has_lines(&file) || elf::has_symtab(&file));
    if let Some(build_id) = build_id {
        let by_id = debug_by_build_id(build_id, module, options)
            .chain(cached(build_id, "debug", options))
            .chain(downloaded(build_id, "debuginfo", options));
        for path in by_id {
            let Some(image) = open_optional(&path, failed) else { continue };
            if check(&image, Some(build_id)).is_ok() && useful(&image) {
                return Some(image);
            }
        }
    }
    if let Some((image, (name, crc))) = binary.and_then(|image| Some((image, debug_link(image)?))) {
        for path in link_candidates(&name, module, image, options) {
            let Some(debug) = open_optional(&path, failed) else { continue };
            // Comparing build-ids avoids a checksum over hundreds of megabytes.
            let same = match build_id {
                Some(id) => check(&debug, Some(id)).is_ok(),
                None => debug.len() <= MOST_HASHED && crc32fast::hash(&debug) == crc,
            };
            if same && useful(&debug) {
                return Some(debug);
            }
        }
    }
    fetch(Artifact::DebugInfo, build_id?, options)
}

fn debug_by_build_id(
    build_id: BuildId,
    module: &SymbolModule,
    options: &SymbolOptions,
) -> impl Iterator<Item = PathBuf> {
    let place = format!(".build-id/{}.debug", build_id.path());
    roots(module, options)
        .into_iter()
        .flat_map(|root| options.debug_dirs.iter().map(move |dir| below(&root, dir)).collect::<Vec<_>>())
        .map(move |dir| dir.join(&place))
}

/// Returns the root folders in which to search for debug files: the copy of the recorded machine, the
/// process's root, and our own root.
fn roots(module: &SymbolModule, options: &SymbolOptions) -> Vec<PathBuf> {
    // Ordinary users cannot enter the root folders of other users' processes, most of which are the same as
    // our own.
    let process = FileRoot::for_module(module, options).path().filter(|root| root.metadata().is_ok());
    options.symfs.clone().into_iter().chain(process).chain([PathBuf::from("/")]).collect()
}

/// Reads the file name and checksum from `.gnu_debuglink`. Accepts only a plain file name.
fn debug_link(image: &Image) -> Option<(Vec<u8>, u32)> {
    let file = image.elf().ok()?;
    let (name, crc) = file.gnu_debuglink().ok()??;
    (!name.is_empty() && !name.contains(&b'/') && name != b"..").then(|| (name.to_vec(), crc))
}

fn link_candidates(
    name: &[u8],
    module: &SymbolModule,
    binary: &Image,
    options: &SymbolOptions,
) -> Vec<PathBuf> {
    let name = OsStr::from_bytes(name);
    let mut candidates = Vec::new();
    let beside = binary.path.parent().unwrap_or(Path::new("/"));
    candidates.push(beside.join(name));
    candidates.push(beside.join(".debug").join(name));
    let folder = strip_deleted(&module.path).parent().unwrap_or(Path::new("/"));
    // On systems with a merged /usr, a library is loaded as /lib/…, while its debug file is below /usr/lib/….
    let real = std::fs::canonicalize(&binary.path).ok();
    let real = real.as_deref().and_then(Path::parent);
    for root in roots(module, options) {
        for dir in &options.debug_dirs {
            for folder in [Some(folder), real].into_iter().flatten() {
                candidates.push(below(&below(&root, dir), folder).join(name));
            }
        }
    }
    candidates.retain(|path| *path != binary.path);
    candidates
}

/// Opens the file from `.gnu_debugaltlink`, if it has the required build-id.
fn supplement(image: &Image, options: &SymbolOptions, failed: &mut Vec<MissingDataReason>) -> Option<Image> {
    let file = image.elf().ok()?;
    let (path, id) = file.gnu_debugaltlink().ok()??;
    let id = BuildId::new(id)?;
    let path = Path::new(OsStr::from_bytes(path));
    let by_id = options.debug_dirs.iter().map(|dir| dir.join(format!(".build-id/{}.debug", id.path())));
    alternate_places(&image.path, path)
        .chain(by_id)
        .chain(downloaded(id, "debuginfo", options))
        .filter_map(|path| open_optional(&path, failed))
        .find(|image| check(image, Some(id)).is_ok())
        .or_else(|| fetch(Artifact::DebugInfo, id, options))
}

/// Returns the places of the file that a debug file names in `.gnu_debugaltlink`. A file in a process's root
/// refers to files in the same root.
fn alternate_places(image: &Path, named: &Path) -> impl Iterator<Item = PathBuf> {
    let root = process_root(image).map_or_else(|| "/".into(), |(root, _)| root);
    let beside = match named.is_absolute() {
        true => below(&root, named),
        false => image.parent().unwrap_or(&root).join(named),
    };
    // The path is relative to the debug file's real location, even if a build-id symlink leads to that file.
    // A canonical path begins at the process's root.
    let real = std::fs::canonicalize(image).ok();
    let real = real.and_then(|real| Some(below(&root, &real.parent()?.join(named))));
    [Some(beside), real].into_iter().flatten()
}

/// Maps an absolute path to another root folder.
pub(in crate::symbol) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Removes the ` (deleted)` suffix that the kernel appends to the path of a deleted file.
pub(crate) fn strip_deleted(path: &Path) -> &Path {
    deleted_file::path_before(path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternate_files_are_in_the_same_root() {
        let places = |image: &str, named: &str| -> Vec<PathBuf> {
            alternate_places(Path::new(image), Path::new(named)).collect()
        };
        assert_eq!(places("/none/a.debug", "/etc/shadow"), [Path::new("/etc/shadow")]);
        assert_eq!(places("/none/a.debug", "../b"), [Path::new("/none/../b")]);
        let root = Path::new("/proc/self/root");
        assert_eq!(places("/proc/self/root/none/a", "/etc/shadow"), [root.join("etc/shadow")]);
        // Both the path and the real location.
        let both = [root.join("etc/passwd"), root.join("etc/passwd")];
        assert_eq!(places("/proc/self/root/proc/self/exe", "/etc/passwd"), both);
    }
}
