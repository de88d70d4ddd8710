//! Finds the build-id of a mapped file, for mmap records that do not contain one.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::build_id::BuildId;
use super::files::elf;
use super::files::image::Image;
use super::options::RunningKernel;
use pmc_sys::sys::deleted_file;
use pmc_sys::sys::file_map::FileMap;

/// Whether the name of a mapping is the path of a file.
pub fn is_path(name: &[u8]) -> bool {
    name.starts_with(b"/") && !name.starts_with(b"//") && !name.starts_with(b"/dev/zero")
}

/// Returns the build-id of the running kernel, of a kernel module, or of a file as seen by process `pid`.
pub fn build_id(name: &[u8], is_kernel: bool, pid: i32) -> Option<BuildId> {
    match is_kernel {
        true if name.starts_with(b"[kernel.kallsyms]") => RunningKernel::live().build_id(),
        true => RunningKernel::live().module_build_id(&String::from_utf8_lossy(name)),
        false if is_path(name) => of_file(name, pid),
        false => None,
    }
}

/// Reads the file as seen by its process, which may be in another mount namespace. If the process no longer
/// exists or cannot be inspected, reads it in our own namespace. If only the file is missing, its path might
/// lead to an unrelated file there.
fn of_file(name: &[u8], pid: i32) -> Option<BuildId> {
    let path = Path::new(OsStr::from_bytes(name));
    let root = Path::new("/proc").join(pid.to_string()).join("root");
    let image = match root.metadata() {
        Ok(_) => Image::open(&root.join(path.strip_prefix("/").ok()?)),
        Err(_) => Image::open(path),
    };
    match image {
        Ok(image) => elf::build_id(&image.elf().ok()?),
        Err(_) => of_open(&deleted_file::open(path, pid)?),
    }
}

/// Returns the build-id of an open file.
pub fn of_open(file: &File) -> Option<BuildId> {
    let image = Image::mapped(Path::new(""), FileMap::new(file).ok()?);
    elf::build_id(&image.elf().ok()?)
}
