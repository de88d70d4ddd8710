//! Synthesizes records that describe the state before the recording: the kernel and its modules, threads,
//! mappings.
//!
//! Receives the [`Host`] and the targets; appends records to an [`Encoder`]. Once the events are open, the
//! kernel reports all changes. Changes during the scan may therefore be recorded twice, but are never missed.

use crate::recording::plan::Synthesis;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Namespaces, RecordWords, Task, Thread};
use pmc_symbols::symbol::RunningKernel;
use pmc_symbols::symbol::kernel::loaded_modules;
use pmc_sys::host::maps::mappings;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::host::{CpuList, Host};
use pmc_text::units::PerfTime;

/// Number of buffered bytes at which records are written to the output.
const ENOUGH: usize = 1 << 16;

/// Which records to synthesize.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SynthesisOptions {
    pub(crate) what: Synthesis,
    pub(crate) data_mappings: bool,
    pub(crate) namespaces: bool,
}

/// Writes mappings for the kernel's text and its modules. Returns `false` if their addresses are hidden.
pub fn kernel(host: &Host, out: &mut Encoder) -> bool {
    let Some((start, end)) = kernel_text(host) else { return false };
    out.kernel_mmap(start, end - start, start, b"[kernel.kallsyms]_text");
    let modules = host.text("/proc/modules").unwrap_or_default();
    let loaded = loaded_modules(&modules);
    let release = host.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let files = if loaded.is_empty() {
        Default::default()
    } else {
        RunningKernel::below("/", release).module_files()
    };
    for module in loaded.iter().filter(|module| module.start != 0) {
        let file = files.get(&module.name).map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        let name = file.unwrap_or_else(|| format!("[{}]", module.name).into_bytes());
        out.kernel_mmap(module.start, module.size, 0, &name);
    }
    true
}

/// Returns the range from `_text` to `_etext`. `_text` is near the beginning of `/proc/kallsyms`, but
/// `_etext` can be anywhere. The kernel generates that file while it is being read (about 20 ms in total), so
/// the size is taken from `/proc/iomem` if possible.
fn kernel_text(host: &Host) -> Option<(u64, u64)> {
    let size = kernel_code_size(host);
    use std::io::Read;
    let mut file = std::fs::File::open(host.path("/proc/kallsyms")).ok()?;
    let (mut start, mut end) = (None, None);
    let mut buffer = vec![0; 1 << 14];
    let mut kept = 0;
    while end.is_none() {
        let got = file.read(&mut buffer[kept..]).ok()?;
        if got == 0 {
            break;
        }
        let filled = kept + got;
        let whole = buffer[..filled].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        for line in buffer[..whole].split(|&b| b == b'\n') {
            // `ffffffff81000000 T _text`
            let name = line.get(19..).unwrap_or_default();
            if name == b"_text" || name == b"_stext" && start.is_none() {
                start = address(line);
                end = start.zip(size).map(|(start, size)| start.saturating_add(size));
                if end.is_some() {
                    break;
                }
            } else if name == b"_etext" {
                end = address(line);
                break;
            }
        }
        buffer.copy_within(whole..filled, 0);
        kept = filled - whole;
        if kept == buffer.len() {
            return None;
        }
    }
    let (start, end) = (start?, end?);
    (start != 0 && end > start).then_some((start, end))
}

/// Returns the size of the range in the line `01000000-0220bb07 : Kernel code`. Unprivileged users see zeros
/// instead of the addresses.
fn kernel_code_size(host: &Host) -> Option<u64> {
    let text = host.text("/proc/iomem")?;
    let range = text.lines().find_map(|line| line.trim().strip_suffix(" : Kernel code"))?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    end.checked_sub(start).filter(|&size| size > 0).map(|size| size + 1)
}

fn address(line: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(line.get(..16)?).ok()?, 16).ok()
}

/// Writes records for the kernel and its modules, and for every cgroup if `with_cgroups`.
pub(crate) fn machine(host: &Host, with_cgroups: bool, out: &mut Encoder) {
    kernel(host, out);
    if with_cgroups {
        cgroups(host, out);
    }
}

/// Returns the processes of these threads, without duplicates.
pub(crate) fn pids(threads: &[Alive]) -> Vec<u32> {
    let mut pids: Vec<u32> = threads.iter().map(|thread| thread.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Writes records for the threads and mappings of these processes. When many records have accumulated, calls
/// `full` and then clears `out`. The last records stay in `out`.
///
/// # Errors
/// Fails if `full` fails.
pub(crate) fn processes<E>(
    host: &Host,
    pids: Vec<u32>,
    extent: SynthesisOptions,
    out: &mut Encoder,
    mut full: impl FnMut(&Encoder) -> Result<(), E>,
) -> Result<(), E> {
    let pids = if extent.what.tasks || extent.what.mappings { pids } else { Vec::new() };
    for pid in pids {
        if let Some(threads) = host.threads(pid) {
            process(host, pid, &threads, extent, out);
        }
        if out.bytes().len() >= ENOUGH {
            full(out)?;
            out.clear();
        }
    }
    Ok(())
}

/// Writes records for the threads and mappings of a process. Skips a process that is exiting and has no
/// mappings left, because its earlier records are more complete.
fn process(host: &Host, pid: u32, threads: &[Alive], extent: SynthesisOptions, out: &mut Encoder) {
    let text = host.maps(pid).filter(|_| extent.what.mappings).unwrap_or_default();
    let is_alone = threads.iter().all(|thread| thread.tid == pid);
    if text.is_empty() && is_alone && host.is_ending(pid) {
        return;
    }
    let parent = host.parent(pid).unwrap_or(0) as i32;
    let main = Thread { pid: pid as i32, tid: pid as i32 };
    for thread in threads.iter().filter(|_| extent.what.tasks) {
        let this = Thread { pid: pid as i32, tid: thread.tid as i32 };
        let by = if thread.tid == pid { Thread { pid: parent, tid: parent } } else { main };
        out.fork(&Task { thread: this, parent: by, time: PerfTime(0) });
        if extent.namespaces {
            namespaces(host, this, out);
        }
        out.comm(this, thread.comm.as_bytes());
    }
    for map in mappings(&text) {
        let is_data = map.prot & 4 == 0;
        // A mapping without a name is anonymous memory, which may contain code from a JIT compiler.
        if is_data && (!extent.data_mappings || map.prot & 1 == 0) {
            continue;
        }
        let name = if map.name.is_empty() { b"//anon".as_slice() } else { map.name };
        let (major, minor) = map.device;
        let flags = if map.is_shared { 1 } else { 2 };
        out.mmap2(&Mmap2 {
            map: Mmap {
                thread: main,
                addr: map.start,
                len: map.end - map.start,
                pgoff: map.offset,
                is_data,
                name,
            },
            file: MappedFileId::Inode { major, minor, inode: map.inode, generation: 0 },
            prot: map.prot,
            flags,
        });
    }
}

fn namespaces(host: &Host, thread: Thread, out: &mut Encoder) {
    let links: Vec<u8> = host
        .namespaces(thread.tid as u32)
        .iter()
        .flat_map(|(device, inode)| [device.to_ne_bytes(), inode.to_ne_bytes()].concat())
        .collect();
    out.namespaces(&Namespaces { thread, links: RecordWords::new(&links) });
}

fn cgroups(host: &Host, out: &mut Encoder) {
    for (id, path) in host.cgroups() {
        out.cgroup(id, path.as_bytes());
    }
}

/// Writes the name of the CPUs' idle tasks.
pub(crate) fn idle(cpus: &CpuList, out: &mut Encoder) {
    if !cpus.is_empty() {
        out.comm(Thread { pid: 0, tid: 0 }, b"swapper");
    }
}
