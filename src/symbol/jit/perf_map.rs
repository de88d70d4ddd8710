//! `/tmp/perf-PID.map`: the names that a JIT writes for profilers, one line a function.
//!
//! ```text
//!   START SIZE NAME...        hexadecimal, with or without 0x; the newest line about an address holds
//! ```
//!
//! Anybody may write into `/tmp`: a file is believed only if it is a regular one (no link) and belongs to
//! root, to us, or to the user of the process; its size and its lines are bounded, and lines that cannot be
//! read are left out.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::address::IntervalMap;
use crate::symbol::tables::table::Table;
use crate::sys::file_map::open_regular;

/// More is not read.
const MOST_BYTES: u64 = 512 << 20;
/// A longer name is cut.
const MOST_NAME: usize = 4 << 10;

/// Parses a map; what cannot be read is left out.
pub fn parse(text: &[u8]) -> Table {
    let mut names = IntervalMap::default();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some((start, end, name)) = parse_line(line) {
            names.replace(start..end, name);
        }
    }
    Table::of(
        names
            .iter()
            .map(|(range, name)| (range, String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]))),
    )
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, start.checked_add(size)?, name))
}

/// Reads the map of a process; the error says where it was looked for and why it was not used.
///
/// # Errors
/// A sentence for the user.
pub fn read(pid: u32, live: bool, symfs: Option<&Path>) -> Result<(PathBuf, Table), String> {
    let mut said = Vec::new();
    for path in places(pid, live, symfs) {
        match read_one(&path, pid) {
            Ok(text) => return Ok((path, parse(&text))),
            Err(why) => said.push(format!("{}: {why}", path.display())),
        }
    }
    // The last place is the one that everybody expects.
    Err(said.pop().unwrap_or_default())
}

/// Bytes of the map of a process, if it has one: it grows as code is made.
pub fn size(pid: u32, live: bool, symfs: Option<&Path>) -> Option<u64> {
    places(pid, live, symfs).iter().find_map(|path| Some(std::fs::metadata(path).ok()?.len()))
}

/// In a container the process knows itself by another number and has its own `/tmp`.
fn places(pid: u32, live: bool, symfs: Option<&Path>) -> Vec<PathBuf> {
    if let Some(symfs) = symfs {
        return vec![symfs.join(format!("tmp/perf-{pid}.map"))];
    }
    let mut places = Vec::new();
    if live {
        let inner = inner_pid(pid).unwrap_or(pid);
        places.push(format!("/proc/{pid}/root/tmp/perf-{inner}.map").into());
    }
    places.push(format!("/tmp/perf-{pid}.map").into());
    places
}

/// The process's number in its innermost pid namespace (`NSpid`, the last).
fn inner_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

fn read_one(path: &Path, pid: u32) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| crate::error::kernel_words(&error);
    let file = open_regular(path, false).map_err(words)?;
    let owner = file.metadata().map_err(words)?.uid();
    let process = std::fs::metadata(format!("/proc/{pid}")).ok().map(|m| m.uid());
    if owner != 0 && owner != rustix::process::geteuid().as_raw() && Some(owner) != process {
        return Err(format!(
            "belongs to user {owner}, who is neither root, nor you, nor the user of the process"
        ));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).map_err(words)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_the_newest_holds() {
        let table = parse(
            b"7f00 10 first one\n0x7f10 0x20 LazyCompile:~f /a.js:1\n\nrubbish\n7f20 zz bad\nffffffffffffffff 10 over\n7f00 8 moved\n7f40 0 empty\n9 9\n",
        );
        let name = |address| table.find(address).map_or("-", |s| s.name);
        assert_eq!(name(0x7f04), "moved");
        assert_eq!(name(0x7f0a), "-");
        assert_eq!(name(0x7f12), "LazyCompile:~f /a.js:1");
        assert_eq!(table.len(), 2);
    }
}
