//! Mappings and namespaces of a process: a snapshot from `/proc`.
//!
//! Paths are the bytes from `/proc`, in which the kernel writes a newline as `\012`.
//!
//! ```text
//! 7f5a…000-7f5a…000 r-xp 00026000 fe:00 1234   /usr/lib/libc.so.6
//! start    end      perm offset   dev   inode  name
//! ```

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Host;

/// A mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessMapping<'a> {
    /// Start address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// `PROT_*` bits: 1 read, 2 write, 4 execute.
    pub prot: u32,
    /// Whether the mapping is shared rather than private.
    pub is_shared: bool,
    /// Major and minor number of the file's device.
    pub device: (u32, u32),
    /// The file's inode; 0 if there is no file.
    pub inode: u64,
    /// Path or bracketed name; empty for anonymous memory.
    pub name: &'a [u8],
}

/// Parses the text of `/proc/PID/maps`. Skips invalid lines.
pub fn mappings(text: &[u8]) -> impl Iterator<Item = ProcessMapping<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(mapping)
}

fn mapping(line: &[u8]) -> Option<ProcessMapping<'_>> {
    let mut left = line;
    let mut word = || {
        let end = left.iter().position(|&b| b == b' ').unwrap_or(left.len());
        let (word, rest) = left.split_at(end);
        left = rest.get(1..).unwrap_or_default();
        std::str::from_utf8(word).ok()
    };
    let (start, end) = word()?.split_once('-')?;
    let perm = word()?;
    let offset = word()?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok()?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let (start, end) = (hex(start)?, hex(end)?);
    if end <= start {
        return None;
    }
    let has = |letter: char, bit: u32| if perm.contains(letter) { bit } else { 0 };
    Some(ProcessMapping {
        start,
        end,
        offset: hex(offset)?,
        prot: has('r', 1) | has('w', 2) | has('x', 4),
        is_shared: perm.ends_with('s'),
        device: (hex(major)? as u32, hex(minor)? as u32),
        inode,
        name: left.trim_ascii_start(),
    })
}

/// The namespaces, in the kernel's order.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];

impl Host {
    /// The text of `/proc/PID/maps`; `None` if the process no longer exists or cannot be examined.
    pub fn maps(&self, pid: u32) -> Option<Vec<u8>> {
        std::fs::read(self.path(format!("/proc/{pid}/maps"))).ok()
    }

    /// Device and inode of each of a thread's namespaces, in the order of `PERF_RECORD_NAMESPACES`.
    pub fn namespaces(&self, tid: u32) -> [(u64, u64); 7] {
        NAMESPACES.map(|name| {
            let meta = std::fs::metadata(self.path(format!("/proc/{tid}/ns/{name}")));
            meta.map_or((0, 0), |meta| (meta.dev(), meta.ino()))
        })
    }

    /// All cgroups of perf's hierarchy: ID (the inode of the directory) and path within the hierarchy.
    pub fn cgroups(&self) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        if let Some(root) = self.cgroup("/") {
            walk(&root, &root, &mut all, 0);
        }
        all
    }
}

/// Maximum depth of the search. Real hierarchies are shallower (`cgroup.max.depth`).
const DEEPEST: usize = 64;

fn walk(root: &Path, folder: &Path, all: &mut Vec<(u64, String)>, depth: usize) {
    let Ok(meta) = std::fs::symlink_metadata(folder) else { return };
    let below = folder.strip_prefix(root).unwrap_or(folder);
    all.push((meta.ino(), format!("/{}", below.display())));
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if depth < DEEPEST && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(root, &entry.path(), all, depth + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_maps_lines_become_mappings() {
        let text = b"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a name\n\
            7fff0000-7fff1000 rw-s 00000000 00:00 0 \nrubbish\n9-5 r--p 0 0:0 0 /x\n\
            ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
        let all: Vec<_> = mappings(text).collect();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].start, all[0].end, all[0].offset, all[0].prot), (0x40_0000, 0x45_2000, 0x1000, 5));
        assert_eq!((all[0].device, all[0].inode, all[0].name), ((8, 2), 173_521, &b"/usr/bin/a name"[..]));
        assert!(all[1].is_shared && all[1].name.is_empty());
        assert_eq!(all[2].name, b"[vsyscall]");
    }

    #[test]
    fn our_own_mappings_are_found() {
        let host = Host::live();
        let text = host.maps(std::process::id()).unwrap();
        assert!(mappings(&text).any(|m| m.prot & 4 != 0 && m.inode != 0));
        assert!(host.maps(0).is_none());
        assert_ne!(host.namespaces(std::process::id())[5].1, 0);
    }
}
