//! `pmc archive --perf`: packs the symbol files of a recording for another machine, in perf's format.
//!
//! Connects the reader, the build-id cache and the system's tar, like the script `perf-archive`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pmc_analysis::analysis::header;
use pmc_formats::import;
use pmc_symbols::symbol::{BuildId, BuildIdCache, SymbolModule, SymbolOptions};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::sys::clock;
use pmc_sys::sys::helper_program::helper;
use pmc_sys::sys::output_file::{self, OutputPlace};
use pmc_sys::sys::replacement::Replacement;

/// Name of the symbol archive inside the archive that `--all` creates.
const SYMBOLS: &str = "perf.symbols.tar.bz2";
/// Name prefix of the archives that `--all` creates.
const ALL: &str = "perf.all";

/// Returns the build-id cache.
///
/// # Errors
/// Fails if its location is unknown.
pub(super) fn cache() -> Result<BuildIdCache> {
    BuildIdCache::usual().ok_or_else(|| {
        Error::new("no build-id cache directory")
            .why("HOME is not set, is not a directory, or belongs to another user")
            .try_this("pmc --buildid-dir DIR archive --perf …")
    })
}

/// Packs the files of a recording.
///
/// # Errors
/// Fails if the recording cannot be read or has no build IDs, or tar fails.
pub(super) fn pack(
    recording: &Path,
    all: bool,
    excluded: &HashSet<String>,
    symbols: &SymbolOptions,
    cache: &BuildIdCache,
) -> Result<()> {
    let places = places(recording, excluded, symbols, cache)?;
    let list = places.iter().flat_map(|place| [place.as_os_str().as_bytes(), b"\0"].concat());
    let list: Vec<u8> = list.collect();
    let from_cache =
        ["-C".as_ref(), cache.folder().as_os_str(), "--null".as_ref(), "-T".as_ref(), "-".as_ref()];
    let mut own = recording.as_os_str().to_owned();
    own.push(".tar.bz2");
    let made = if all {
        let host = rustix::system::uname().nodename().to_string_lossy().replace('/', "_");
        let name = format!("{ALL}-{host}-{}.tar.bz2", clock::local_stamp());
        pack_into(Path::new(SYMBOLS), &from_cache, &list)?;
        let packed = pack_into(Path::new(&name), &[recording.as_os_str(), SYMBOLS.as_ref()], &[]);
        let _ = std::fs::remove_file(SYMBOLS);
        packed?;
        name.into()
    } else {
        pack_into(Path::new(&own), &from_cache, &list)?;
        own
    };
    let made = Path::new(&made).display();
    let how = if all {
        format!("pmc archive --perf --unpack {made}")
    } else {
        format!("tar xvf {made} -C ~/.debug")
    };
    let said =
        format!("Now please run:\n\n$ {how}\n\nwherever you need to run 'pmc report' or 'perf report' on.\n");
    std::io::stdout().write_all(said.as_bytes()).map_err(|error| Error::output("how to unpack it", error))
}

/// Returns the paths to archive, relative to the cache. Before that, copies missing files into the cache if
/// they still exist.
fn places(
    recording: &Path,
    excluded: &HashSet<String>,
    symbols: &SymbolOptions,
    cache: &BuildIdCache,
) -> Result<Vec<PathBuf>> {
    let rows = header::build_ids(&import::open_recording(recording, "build-ids")?, true)?;
    if rows.is_empty() {
        return Err(Error::new(format!("no build-ids found in {}", recording.display()))
            .why("it was recorded without build-ids (-B), or has no samples"));
    }
    let (mut places, mut missing) = (Vec::new(), Vec::new());
    for (hex, name) in rows.iter().filter(|(hex, _)| !excluded.contains(hex)) {
        let Some(id) = BuildId::parse(hex) else { continue };
        cache.keep(&SymbolModule { build_id: Some(id), ..SymbolModule::of_name(name) }, symbols)?;
        match cache.named(id).filter(|_| cache.holds(id)) {
            Some(entry) => places.extend(BuildIdCache::places(&entry)),
            None => missing.push(name.as_str()),
        }
    }
    if !missing.is_empty() {
        say::note(format!("not archived because they were deleted or rebuilt: {}", missing.join(", ")));
    }
    if places.is_empty() {
        return Err(Error::new(format!("none of the files for {} exist", recording.display()))
            .try_this("pmc buildid-cache -M RECORDING, on the machine of the recording"));
    }
    Ok(places)
}

/// Unpacks an archive.
///
/// # Errors
/// Fails if the cache cannot be created, or tar fails.
pub(super) fn unpack(archive: &Path, cache: &BuildIdCache) -> Result<()> {
    let folder = cache.folder();
    output_file::create_folder(folder, 0o777)
        .map_err(|error| Error::io(format!("making {}", folder.display()), error))?;
    let into_cache = ["-C".as_ref(), folder.as_os_str()];
    let name = archive.file_name().unwrap_or_default();
    if !name.as_bytes().starts_with(ALL.as_bytes()) {
        return tar("-xvf", archive, &into_cache, &[]);
    }
    tar("-xvf", archive, &[], &[])?;
    let unpacked = tar("-xvf", Path::new(SYMBOLS), &into_cache, &[]);
    let _ = std::fs::remove_file(SYMBOLS);
    unpacked
}

/// Creates an archive that only its owner can read, since it may contain kernel addresses. A failure
/// leaves no partial archive.
fn pack_into(archive: &Path, words: &[&OsStr], input: &[u8]) -> Result<()> {
    let failed = |error| Error::io(format!("creating {}", archive.display()), error);
    let place = output_file::resolve_links(archive).and_then(OutputPlace::file_path).map_err(failed)?;
    let new = Replacement::new(&place);
    let file = new.create(0o600).map_err(failed)?;
    let mut command = helper("tar");
    run_tar(command.arg("-cj").args(words).stdout(file), archive, input)?;
    new.put().map_err(failed)
}

/// Runs the system's tar on an existing archive.
fn tar(what: &str, archive: &Path, words: &[&OsStr], input: &[u8]) -> Result<()> {
    // tar would interpret a name such as host:file as a file on another machine.
    let mut command = helper("tar");
    run_tar(command.arg("--force-local").arg(what).arg(archive).args(words), archive, input)
}

fn run_tar(command: &mut Command, archive: &Path, input: &[u8]) -> Result<()> {
    let run = || -> std::io::Result<bool> {
        let mut tar = command.stdin(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = tar.stdin.take() {
            // If tar exits early, its exit status reports the failure.
            let _ = pipe.write_all(input);
        }
        // Status 1 only warns that a file changed, which happens because each new hard link to a cached file
        // changes the file's metadata.
        tar.wait().map(|status| matches!(status.code(), Some(0 | 1)))
    };
    let error = match { run }() {
        Ok(true) => return Ok(()),
        Ok(false) => Error::new(format!("tar failed with {}", archive.display())),
        Err(error) => Error::io("starting tar", error),
    };
    Err(error.try_this("apt install tar bzip2, or your system's equivalent"))
}
