//! The formats of tracepoint records, in the layout of perf's recordings. Readers need the formats to print
//! the records.
//!
//! Builds the bytes of perf's `TRACING_DATA` section for a set of tracepoints. The texts come from the
//! kernel.
//!
//! ```text
//! 17 08 44 "tracing" "0.6\0" | endian | bytes of a long | u32 page size
//! "header_page\0"  u64 size, text   "header_event\0"  u64 size, text
//! u32 0 (formats of ftrace itself)
//! u32 systems { name\0, u32 events { u64 size, text } }
//! u32 0 (kallsyms)   u32 size, text (printk formats)   u64 size, text (names of tasks)
//! ```
//! Source: `tools/perf/util/trace-event-info.c`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::Host;

impl Host {
    /// The section for these tracepoints, given by name and ID; `None` if tracefs cannot be read.
    pub fn tracing_data(&self, tracepoints: &[(&str, u64)]) -> Option<Vec<u8>> {
        let events = self.tracefs().ok()?;
        let mut formats: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for &(name, id) in tracepoints {
            let named = name.split_once(':').map(|(system, name)| (system.to_owned(), name.to_owned()));
            let named = named.filter(|(system, name)| self.tracepoint_id(system, name) == Ok(id));
            let (system, name) = named.or_else(|| self.tracepoint_name(id))?;
            let text = read(&events.join(&system).join(&name).join("format"))?;
            formats.entry(system).or_default().push(text);
        }
        let mut out = b"\x17\x08\x44tracing0.6\0".to_vec();
        out.push(u8::from(cfg!(target_endian = "big")));
        out.push(size_of::<std::ffi::c_long>() as u8);
        out.extend((crate::sys::page_size() as u32).to_ne_bytes());
        for name in ["header_page", "header_event"] {
            let text = read(&events.join(name)).unwrap_or_default();
            out.extend(name.as_bytes());
            out.push(0);
            sized(&text, &mut out);
        }
        out.extend(0u32.to_ne_bytes());
        out.extend((formats.len() as u32).to_ne_bytes());
        for (system, texts) in &formats {
            out.extend(system.as_bytes());
            out.push(0);
            out.extend((texts.len() as u32).to_ne_bytes());
            texts.iter().for_each(|text| sized(text, &mut out));
        }
        out.extend(0u32.to_ne_bytes());
        let printk = read(&events.with_file_name("printk_formats")).unwrap_or_default();
        out.extend((printk.len() as u32).to_ne_bytes());
        out.extend(&printk);
        sized(&read(&events.with_file_name("saved_cmdlines")).unwrap_or_default(), &mut out);
        Some(out)
    }

    /// Subsystem and name of the tracepoint with this ID. Searches all of tracefs.
    fn tracepoint_name(&self, id: u64) -> Option<(String, String)> {
        self.tracepoint_systems().ok()?.into_iter().find_map(|system| {
            let names = self.tracepoint_names(&system).unwrap_or_default();
            let name = names.into_iter().find(|name| self.tracepoint_id(&system, name) == Ok(id))?;
            Some((system, name))
        })
    }
}

/// Reads a tracefs file into a buffer that is larger than any of these files, because some of them return no
/// data after the first call.
fn read(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let mut text = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(text),
            got => text.extend_from_slice(&piece[..got]),
        }
    }
}

fn sized(text: &[u8], out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_ne_bytes());
    out.extend(text);
}
