//! jitdump files: code from a JIT compiler, with its names, bytes, lines and times.
//!
//! ```text
//!   header  u32 magic "JiTD" | u32 version | u32 size | u32 ELF machine | u32 pad | u32 pid
//!           u64 time | u64 flags (1: times are the CPU's)
//!   record  u32 id | u32 size | u64 time | ...
//!     0 load    u32 pid | u32 tid | u64 vma | u64 address | u64 size | u64 index | name \0 | code
//!     1 move    u32 pid | u32 tid | u64 vma | u64 old address | u64 new address | u64 size | u64 index
//!     2 lines   u64 address | u64 count | count × (u64 address | u32 line | u32 discriminator | file \0)
//!               before its load
//!     3 close, 4 unwinding information
//! ```
//!
//! Source: `tools/perf/Documentation/jitdump-specification.txt` in the kernel tree. Supports both byte
//! orders. A truncated file yields the records before the cut.
//!
//! `linux_perf_data::jitdump` (0.13) reads the same records, but trusts their sizes. Its subtraction
//! overflows for a record shorter than its header. It also allocates as many lines as a record claims, which
//! aborts the process.

use std::io;
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::address::IntervalMap;
use pmc_sys::sys::file_map::{FileMap, open_regular};

/// Address, line, and index of the file.
type JitLine = (u64, u32, u32);

/// A piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitCode {
    /// Start address in the process.
    pub start: u64,
    /// Size of the code in bytes.
    pub size: u64,
    /// The name, as written by the compiler.
    pub name: String,
    /// Index of its load record among those of the file, from 0. A move keeps it.
    pub number: u32,
    /// Time of the load or move, on the compiler's clock (by convention perf's `-k mono`).
    pub time: u64,
    /// Range of its bytes in the file.
    bytes: std::ops::Range<usize>,
    /// Lines, sorted by address.
    lines: Vec<JitLine>,
}

/// A parsed file.
#[derive(Debug)]
pub struct Jitdump {
    map: FileMap,
    machine: u16,
    /// Whether its numbers are big-endian.
    pub(crate) is_big_endian: bool,
    /// Whether its times are CPU timestamps rather than a clock's.
    pub has_cpu_times: bool,
    codes: Vec<JitCode>,
    files: Vec<String>,
    latest: IntervalMap<u32>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JitdumpError {
    /// The file cannot be opened or read.
    #[error("{}", pmc_sys::error::kernel_words(.0))]
    Unreadable(#[from] io::Error),
    /// The file does not start with a jitdump header.
    #[error("not a jitdump file")]
    NotJitdump,
}

const MAGIC: u32 = 0x4a69_5444;

/// Reads numbers of either byte order; each read fails at the end of the data.
struct JitBytes<'a> {
    left: &'a [u8],
    big: bool,
}

impl<'a> JitBytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&mut self) -> Option<u64> {
        let bytes: [u8; 8] = self.take(8)?.try_into().ok()?;
        Some(if self.big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    fn text(&mut self) -> Option<String> {
        let end = self.left.iter().position(|byte| *byte == 0)?;
        let text = String::from_utf8_lossy(&self.left[..end]).into_owned();
        self.left = &self.left[end + 1..];
        Some(text)
    }
}

impl Jitdump {
    /// Opens and parses a file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a jitdump.
    pub fn read(path: &Path) -> Result<Self, JitdumpError> {
        Self::parse(FileMap::of(&open_regular(path, true)?)?)
    }

    fn parse(map: FileMap) -> Result<Self, JitdumpError> {
        let big = match map.get(..4) {
            Some(magic) if magic == MAGIC.to_le_bytes() => false,
            Some(magic) if magic == MAGIC.to_be_bytes() => true,
            _ => return Err(JitdumpError::NotJitdump),
        };
        let mut header = JitBytes { left: map.get(12..).unwrap_or_default(), big };
        let mut dump = Self {
            map: FileMap::default(),
            machine: header.u32().unwrap_or(0) as u16,
            is_big_endian: big,
            has_cpu_times: (JitBytes { left: map.get(32..).unwrap_or_default(), big }).u64().unwrap_or(0) & 1
                != 0,
            codes: Vec::new(),
            files: Vec::new(),
            latest: IntervalMap::default(),
        };
        dump.records(&map, big);
        dump.map = map;
        Ok(dump)
    }

    fn records(&mut self, all: &[u8], big: bool) -> Option<()> {
        let mut header = JitBytes { left: all.get(8..)?, big };
        let mut at = header.u32()? as usize;
        let mut by_index: FxHashMap<u64, u32> = FxHashMap::default();
        let mut file_numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut pending: FxHashMap<u64, Vec<JitLine>> = FxHashMap::default();
        let mut loads = 0;
        loop {
            let mut head = JitBytes { left: all.get(at..)?, big };
            let (id, size, time) = (head.u32()?, head.u32()? as usize, head.u64()?);
            let end = at.checked_add(size).filter(|_| size >= 16)?;
            let mut record = JitBytes { left: all.get(at + 16..end)?, big };
            match id {
                0 => {
                    if let Some((mut code, index)) = load(&mut record, time, end) {
                        code.number = loads;
                        loads += 1;
                        code.lines = pending.remove(&code.start).unwrap_or_default();
                        by_index.insert(index, self.codes.len() as u32);
                        self.put(code);
                    }
                }
                1 => {
                    if let Some((start, index)) = moved(&mut record)
                        && let Some(code) = by_index.get(&index).map(|at| self.codes[*at as usize].clone())
                    {
                        let shift = start.wrapping_sub(code.start);
                        let lines =
                            code.lines.iter().map(|(a, l, f)| (a.wrapping_add(shift), *l, *f)).collect();
                        by_index.insert(index, self.codes.len() as u32);
                        self.put(JitCode { start, time, lines, ..code });
                    }
                }
                2 => {
                    if let Some((start, lines)) = self.line_table(&mut record, &mut file_numbers) {
                        pending.insert(start, lines);
                    }
                }
                3 => return Some(()),
                _ => {}
            }
            at = end;
        }
    }

    fn put(&mut self, code: JitCode) {
        self.latest.replace(code.start..code.start.saturating_add(code.size), self.codes.len() as u32);
        self.codes.push(code);
    }

    fn line_table(
        &mut self,
        record: &mut JitBytes<'_>,
        numbers: &mut FxHashMap<String, u32>,
    ) -> Option<(u64, Vec<JitLine>)> {
        let (start, count) = (record.u64()?, record.u64()?);
        let mut lines = Vec::new();
        for _ in 0..count {
            let Some((address, line, file)) = (|| {
                let (address, line, _discriminator) = (record.u64()?, record.u32()?, record.u32()?);
                Some((address, line, record.text()?))
            })() else {
                break;
            };
            let next = numbers.len() as u32;
            let number = *numbers.entry(file).or_insert_with_key(|file| {
                self.files.push(file.clone());
                next
            });
            lines.push((address, line, number));
        }
        lines.sort_by_key(|(address, ..)| *address);
        Some((start, lines))
    }

    /// All pieces of code, in the order of their creation.
    pub fn codes(&self) -> &[JitCode] {
        &self.codes
    }

    /// Returns the latest code at an address.
    pub fn latest(&self, address: u64) -> Option<&JitCode> {
        let (_, number) = self.latest.find(address)?;
        self.codes.get(*number as usize)
    }

    /// Returns the machine code.
    pub fn bytes(&self, code: &JitCode) -> &[u8] {
        self.map.get(code.bytes.clone()).unwrap_or_default()
    }

    /// The code's machine, as an ELF number.
    pub(crate) fn machine(&self) -> u16 {
        self.machine
    }

    /// Iterates over the lines of a piece of code: start address, file, line.
    pub fn lines<'a>(&'a self, code: &'a JitCode) -> impl Iterator<Item = (u64, &'a str, u32)> {
        let named = |(address, line, file): &JitLine| {
            Some((*address, self.files.get(*file as usize)?.as_str(), *line))
        };
        code.lines.iter().filter_map(named)
    }
}

fn load(record: &mut JitBytes<'_>, time: u64, end: usize) -> Option<(JitCode, u64)> {
    let (_pid, _tid, _vma) = (record.u32()?, record.u32()?, record.u64()?);
    let (start, size, index) = (record.u64()?, record.u64()?, record.u64()?);
    let name = record.text()?;
    // The code is the rest of the record; some writers omit it.
    let held = (record.left.len() as u64).min(size) as usize;
    let bytes = end - record.left.len()..end - record.left.len() + held;
    Some((JitCode { start, size, name, number: 0, time, bytes, lines: Vec::new() }, index))
}

fn moved(record: &mut JitBytes<'_>) -> Option<(u64, u64)> {
    record.take(16)?;
    let (_old, new, _size, index) = (record.u64()?, record.u64()?, record.u64()?, record.u64()?);
    Some((new, index))
}
