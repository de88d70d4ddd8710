//! A recording's tracing data: the format files of its tracepoints, kallsyms, printk formats, thread names.
//!
//! ```text
//! | 23 8 68 "tracing" | version NUL | endian u8 | long size u8 | page size u32 |
//! | "header_page" NUL | u64 size, text | "header_event" NUL | u64 size, text |
//! | u32 count | {u64 size, ftrace format} | u32 systems | { name NUL | u32 count | {u64 size, format} } |
//! | u32 size, kallsyms | u32 size, printk formats | u64 size, saved cmdlines (from version 0.6) |
//! ```
//! Source: `tools/perf/util/trace-event-info.c`.

use rustc_hash::FxHashMap;

use super::TracepointFormat;
use crate::record::bytes::Cursor;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// A recording's information about its tracepoints.
#[derive(Debug, Clone, Default)]
pub struct TracingData {
    formats: FxHashMap<u64, TracepointFormat>,
    /// Whether the data is in the opposite byte order.
    pub is_byte_swapped: bool,
    /// The kernel's symbols, in the format of `/proc/kallsyms` (empty if perf could not read it).
    pub kallsyms: Vec<u8>,
    /// The kernel's constant strings that tracepoints point to, by address.
    pub texts: FxHashMap<u64, String>,
}

struct PayloadFields<'a> {
    bytes: Cursor<'a>,
    is_byte_swapped: bool,
}

impl<'a> PayloadFields<'a> {
    fn u32(&mut self) -> Option<u32> {
        self.bytes.u32().map(|n| if self.is_byte_swapped { n.swap_bytes() } else { n })
    }
    fn u64(&mut self) -> Option<u64> {
        self.bytes.u64().map(|n| if self.is_byte_swapped { n.swap_bytes() } else { n })
    }
    /// Reads a u64 size and that many bytes.
    fn file(&mut self) -> Option<&'a [u8]> {
        let size = self.u64()?;
        self.bytes.take(usize::try_from(size).ok()?)
    }
    /// Reads the bytes up to a NUL, and skips the NUL.
    fn word(&mut self) -> Option<&'a [u8]> {
        let end = self.bytes.rest().iter().position(|&b| b == 0)?;
        let word = self.bytes.take(end)?;
        self.bytes.take(1)?;
        Some(word)
    }
}

/// Reads the start of the section; `None` if it is invalid.
fn after_head(bytes: &[u8]) -> Option<PayloadFields<'_>> {
    let mut f = PayloadFields { bytes: Cursor::new(bytes), is_byte_swapped: false };
    if f.bytes.take(MAGIC.len())? != MAGIC {
        return None;
    }
    f.word()?;
    f.is_byte_swapped = (f.bytes.u8()? == 1) == cfg!(target_endian = "little");
    f.bytes.u8()?;
    f.u32()?;
    Some(f)
}

impl TracingData {
    /// Parses the section, skipping truncated parts; `None` if its beginning is invalid.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut f = after_head(bytes)?;
        let mut data = Self { is_byte_swapped: f.is_byte_swapped, ..Self::default() };
        let _ = data.parse_files(&mut f);
        Some(data)
    }

    /// Returns the section without what follows the formats: the kernel's symbols, its constant strings, and
    /// the names of threads. `None` if the section is damaged.
    pub fn formats_only(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut f = after_head(bytes)?;
        Self::default().parse_formats(&mut f)?;
        let formats = &bytes[..bytes.len() - f.bytes.rest().len()];
        // Symbols and strings have 32-bit sizes. In newer versions, names of threads follow (64-bit size).
        Some([formats, &[0; 16]].concat())
    }

    fn parse_files(&mut self, f: &mut PayloadFields<'_>) -> Option<()> {
        self.parse_formats(f)?;
        let size = f.u32()?;
        self.kallsyms = f.bytes.take(usize::try_from(size).ok()?)?.to_vec();
        let size = f.u32()?;
        let texts = String::from_utf8_lossy(f.bytes.take(usize::try_from(size).ok()?)?);
        self.texts.extend(texts.lines().filter_map(text));
        Some(())
    }

    fn parse_formats(&mut self, f: &mut PayloadFields<'_>) -> Option<()> {
        for _ in ["header_page", "header_event"] {
            f.word()?;
            f.file()?;
        }
        for _ in 0..f.u32()? {
            let file = f.file()?;
            self.add("ftrace", file);
        }
        for _ in 0..f.u32()? {
            let system = String::from_utf8_lossy(f.word()?).into_owned();
            for _ in 0..f.u32()? {
                let file = f.file()?;
                self.add(&system, file);
            }
        }
        Some(())
    }

    fn add(&mut self, system: &str, file: &[u8]) {
        if let Some(format) = TracepointFormat::parse(system, &String::from_utf8_lossy(file)) {
            self.formats.insert(format.id, format);
        }
    }

    /// Returns the tracepoint with this id (`attr.config`).
    pub fn format(&self, id: u64) -> Option<&TracepointFormat> {
        self.formats.get(&id)
    }

    /// Iterates over all tracepoints, in no particular order.
    pub fn formats(&self) -> impl Iterator<Item = &TracepointFormat> {
        self.formats.values()
    }
}

/// Parses a line of printk formats: `0xADDRESS : "text"`.
fn text(line: &str) -> Option<(u64, String)> {
    let (address, text) = line.split_once(':')?;
    let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
    let text = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    Some((address, text.trim_end_matches("\\n").to_owned()))
}
