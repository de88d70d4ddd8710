//! Exports a snapshot as a recording: rows become samples that `pmc report` and `perf report` can read.
//!
//! Rows contain modules and offsets instead of addresses in a process. Each module is therefore mapped at a
//! separate address range, which is the same in all processes. The kernel and generated code keep their
//! addresses.
//!
//! ```text
//!   row (pid, tid, name; event; stack; n samples, period p)  ─►  n samples of p / n
//!   module 7, offset 0x1234                               ─►  BASE + 7 · STRIDE + 0x1234, mapped as its file
//! ```

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use super::snapshot::{LiveSnapshot, SnapshotMaker, SnapshotOptions};
use crate::profile::sampled::SampleValue;
use crate::session::intern::words;
use crate::session::samples::{NAMELESS, RowKey, SampleAttribute};
use crate::session::{CodeLocation, Module, ModuleKind};
use pmc_perfdata::perfdata::feature::EventDesc;
use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Thread};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{context, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::sys::page_size;

/// Address of the first module, and the distance between modules, which exceeds the size of any file.
const BASE: u64 = 0x1000_0000_0000;
const STRIDE: u64 = 1 << 36;
/// Maximum number of samples to write individually. Beyond it, each row becomes a single sample.
const MOST_SAMPLES: u64 = 1_000_000;
/// Number of bytes of records to buffer before writing.
const ENOUGH: usize = 1 << 16;

/// Writes a snapshot as a new recording. `kernel` writes the records that locate the kernel.
///
/// # Errors
/// Fails if the file already exists or cannot be written.
pub fn write(
    maker: &SnapshotMaker,
    snapshot: &LiveSnapshot,
    kernel: &dyn Fn(&Host, &mut Encoder),
    path: &Path,
) -> Result<()> {
    if path.exists() {
        return Err(Error::new(format!("{} already exists", path.display())));
    }
    let (host, modules) = (&maker.host, &maker.names.table().modules().to_vec());
    let events: Vec<RecordedEvent> = maker
        .shared
        .events
        .iter()
        .enumerate()
        .map(|(number, event)| {
            let mut attr = event.attr.clone();
            let chains = attr.sample_type() & sample_type::CALLCHAIN;
            attr.set_sample_type(FIELDS | chains);
            attr.set_read_format(0);
            attr.set(Flag::SampleIdAll, true);
            RecordedEvent { attr, ids: vec![number as u64 + 1], name: Some(event.name.clone()) }
        })
        .collect();
    let features = Features {
        hostname: host.text("/proc/sys/kernel/hostname"),
        os_release: host.text("/proc/sys/kernel/osrelease"),
        version: Some(concat!("pmc ", env!("CARGO_PKG_VERSION")).to_owned()),
        arch: Some(std::env::consts::ARCH.to_owned()),
        cmdline: Some(std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()),
        event_desc: Some(EventDesc(
            events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone())).collect(),
        )),
        ..Features::default()
    };
    let mut writer = Writer::create(path, &events, &features, WriteOptions::default())?;
    let mut out = Encoder::new(TRAILER);
    kernel(host, &mut out);
    let mut written = WrittenRecords { modules, known: FxHashSet::default(), ends: ends(snapshot) };
    let rows = snapshot.rows();
    let is_large = rows.iter().map(|(_, value)| value.samples).sum::<u64>() > MOST_SAMPLES;
    for (key, value) in rows {
        let thread = thread(&maker.options, snapshot, key);
        written.thread(thread, &snapshot.comm(key.comm), &mut out);
        let stack: Vec<CodeLocation> = snapshot.stack(key.stack).collect();
        let Some(leaf) = stack.first() else { continue };
        let has_chain = events[key.event as usize].attr.sample_type() & sample_type::CALLCHAIN != 0;
        let chain = written.chain(thread, &stack, &mut out);
        let ip = chain.get(1).copied().unwrap_or(0);
        let times = if is_large { 1 } else { value.samples.max(1) };
        for n in 0..times {
            let period = part(value, n, times);
            let mut fields = vec![u64::from(key.event) + 1, ip, packed(thread), period];
            if has_chain {
                fields.push(chain.len() as u64);
                fields.extend(&chain);
            }
            out.sample(leaf.level.bits(), &fields);
            if out.bytes().len() >= ENOUGH {
                writer.append(&[out.bytes()])?;
                out.clear();
            }
        }
    }
    writer.append(&[out.bytes()])?;
    writer.finish(&features)?;
    Ok(())
}

/// The fields of each sample: one word per field, in this order, then the call chain.
const FIELDS: u64 = sample_type::IDENTIFIER | sample_type::IP | sample_type::TID | sample_type::PERIOD;
/// Size of the trailer of other records, in bytes: thread and identifier.
const TRAILER: usize = 16;

/// Returns the `n`-th of `times` nearly equal parts of the period.
fn part(value: &SampleValue, n: u64, times: u64) -> u64 {
    value.period / times + u64::from(n < value.period % times)
}

fn packed(thread: Thread) -> u64 {
    let [a, b, c, d] = thread.pid.to_ne_bytes();
    let [e, f, g, h] = thread.tid.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn thread(options: &SnapshotOptions, snapshot: &LiveSnapshot, key: &RowKey) -> Thread {
    let list = words(snapshot.attributes(key.attributes));
    let word = |wanted: SampleAttribute| {
        let at = options.attributes.iter().position(|attribute| *attribute == wanted)?;
        list.get(at).map(|word| word as i32)
    };
    // If there is no pid, each command name becomes a separate process.
    let otherwise = (key.comm & !NAMELESS) as i32 + 1;
    let pid = word(SampleAttribute::Pid).unwrap_or(otherwise);
    Thread { pid, tid: word(SampleAttribute::Tid).unwrap_or(pid) }
}

/// Returns the highest offset that occurs in each module.
fn ends(snapshot: &LiveSnapshot) -> FxHashMap<u32, u64> {
    let mut ends = FxHashMap::default();
    for location in snapshot.locations() {
        if let Some(module) = location.module() {
            let end = ends.entry(module).or_insert(0);
            *end = location.offset.max(*end);
        }
    }
    ends
}

/// The mappings and threads written so far.
struct WrittenRecords<'a> {
    modules: &'a [Module],
    /// Items that have been written: threads (with module `u32::MAX`), modules per process, and pages of
    /// generated code.
    known: FxHashSet<(i32, u32, u64)>,
    ends: FxHashMap<u32, u64>,
}

impl WrittenRecords<'_> {
    fn thread(&mut self, thread: Thread, comm: &str, out: &mut Encoder) {
        if self.known.insert((thread.pid, u32::MAX, thread.tid as u64)) {
            out.comm(thread, comm.as_bytes());
        }
    }

    /// Returns the context markers and addresses of a stack, innermost first, and writes the mappings that
    /// they need.
    fn chain(&mut self, thread: Thread, stack: &[CodeLocation], out: &mut Encoder) -> Vec<u64> {
        let mut chain = Vec::with_capacity(stack.len() + 2);
        let mut level = None;
        for location in stack {
            let is_caller = level == Some(location.level);
            if !is_caller {
                level = Some(location.level);
                chain.push(context::marker(location.level));
            }
            // A caller's location is inside its call instruction, but call chains contain the return address
            // after it.
            chain.push(self.address(thread, location, out).wrapping_add(is_caller.into()));
        }
        chain
    }

    fn address(&mut self, thread: Thread, location: &CodeLocation, out: &mut Encoder) -> u64 {
        let Some(number) = location.module() else { return location.offset };
        let Some(module) = self.modules.get(number as usize) else { return location.offset };
        let place = location.offset;
        let page = page_size() as u64;
        let (addr, len, at, name) = match module.kind {
            ModuleKind::File | ModuleKind::Vdso => {
                let base = BASE + u64::from(number) * STRIDE;
                let end = self.ends.get(&number).copied().unwrap_or(place);
                let len = (end.min(STRIDE - page) / page + 1) * page;
                (base, len, base.wrapping_add(place), module.path.as_os_str().as_encoded_bytes())
            }
            ModuleKind::Anonymous(_) => (place / page * page, page, place, &b"//anon"[..]),
            // The kernel's mappings have already been written; opaque code keeps its address.
            ModuleKind::Kernel(_) | ModuleKind::KernelModule(_) | ModuleKind::Bpf | ModuleKind::Opaque => {
                return place;
            }
        };
        if self.known.insert((thread.pid, number, addr)) {
            let map = Mmap {
                thread: Thread { pid: thread.pid, tid: thread.pid },
                addr,
                len,
                pgoff: if addr >= BASE && !matches!(module.kind, ModuleKind::Anonymous(_)) {
                    0
                } else {
                    addr
                },
                is_data: false,
                name,
            };
            let file = match &module.build_id {
                Some(id) => MappedFileId::BuildId(id),
                None => MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 },
            };
            out.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
        }
        at
    }
}
