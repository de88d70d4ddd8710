//! Records other than samples, in perf's format.

use std::io::{self, Write as _};

use pmc_perfdata::record::{MappedFileId, Record, Update, kind};
use pmc_sys::abi::aux_flag;
use pmc_sys::abi::misc;
use pmc_text::text::clean;
use pmc_text::units::ranges;

/// Names of the namespaces, in the order of their numbers.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];

fn text_of(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes)).into_owned()
}

/// Formats a number like `%#lx`: zero has no prefix.
pub(super) fn hex(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

/// Appends a record's kind and fields.
pub(super) fn text(out: &mut Vec<u8>, number: u32, flags: u16, record: &Record<'_>) {
    let name = kind::name(number).unwrap_or("UNKNOWN");
    let _ = write!(out, "PERF_RECORD_{name}");
    let _ = match record {
        Record::Mmap(map) => {
            let kind = if flags & misc::MMAP_DATA != 0 { 'r' } else { 'x' };
            let (addr, len, offset) = (hex(map.addr), hex(map.len), hex(map.pgoff));
            let (pid, tid, name) = (map.thread.pid, map.thread.tid, text_of(map.name));
            writeln!(out, " {pid}/{tid}: [{addr}({len}) @ {offset}]: {kind} {name}")
        }
        Record::Mmap2(map2) => {
            let map = &map2.map;
            let file = match map2.file {
                MappedFileId::Inode { major, minor, inode, generation } => {
                    format!("{major:02x}:{minor:02x} {inode} {generation}")
                }
                MappedFileId::BuildId(id) => {
                    format!("<{}>", pmc_text::text::hex(id, ""))
                }
            };
            let bit = |bit: u32, letter: char| if map2.prot & bit != 0 { letter } else { '-' };
            let (r, w, x) = (bit(1, 'r'), bit(2, 'w'), bit(4, 'x'));
            let shared = if map2.flags & 1 != 0 { 's' } else { 'p' };
            let (addr, len, offset) = (hex(map.addr), hex(map.len), hex(map.pgoff));
            let (pid, tid, name) = (map.thread.pid, map.thread.tid, text_of(map.name));
            writeln!(out, " {pid}/{tid}: [{addr}({len}) @ {offset} {file}]: {r}{w}{x}{shared} {name}")
        }
        Record::Comm(comm) => {
            let exec = if comm.is_exec { " exec" } else { "" };
            writeln!(out, "{exec}: {}:{}/{}", text_of(comm.comm), comm.thread.pid, comm.thread.tid)
        }
        Record::Fork(task) | Record::Exit(task) => writeln!(
            out,
            "({}:{}):({}:{})",
            task.thread.pid, task.thread.tid, task.parent.pid, task.parent.tid
        ),
        Record::Switch(switch) | Record::SwitchCpuWide(switch) => {
            let way = match (switch.is_out, switch.is_preempted) {
                (false, _) => "IN         ",
                (true, false) => "OUT        ",
                (true, true) => "OUT preempt",
            };
            match switch.other {
                None => writeln!(out, " {way}"),
                Some(other) => {
                    let which = if switch.is_out { "next" } else { "prev" };
                    writeln!(out, " {way}  {which} pid/tid: {:5}/{:<5}", other.pid, other.tid)
                }
            }
        }
        Record::Lost(lost) => writeln!(out, " lost {}", lost.lost),
        Record::LostSamples(lost) => writeln!(out, " lost {lost}"),
        Record::Namespaces(spaces) => {
            let rows: Vec<[u64; 2]> = spaces.links.rows().collect();
            let _ = write!(
                out,
                " {}/{} - nr_namespaces: {}\n\t\t[",
                spaces.thread.pid,
                spaces.thread.tid,
                rows.len()
            );
            for (at, [device, inode]) in rows.iter().enumerate() {
                let name = NAMESPACES.get(at).unwrap_or(&"unknown");
                let line = if at > 0 && at % 4 == 0 { "\n\t\t " } else { "" };
                let behind = if at + 1 == rows.len() { "]\n" } else { ", " };
                let _ = write!(out, "{line}{at}/{name}: {device}/{}{behind}", hex(*inode));
            }
            if rows.is_empty() { writeln!(out, "]") } else { Ok(()) }
        }
        Record::Cgroup(cgroup) => writeln!(out, " cgroup: {} {}", cgroup.id, text_of(cgroup.path)),
        Record::Ksymbol(symbol) => writeln!(
            out,
            " addr {:x} len {} type {} flags 0x{:x} name {}",
            symbol.addr,
            symbol.len,
            symbol.kind,
            u16::from(symbol.is_unregister),
            text_of(symbol.name)
        ),
        Record::BpfEvent(event) => {
            writeln!(out, " type {}, flags {}, id {}", event.kind, event.flags, event.id)
        }
        Record::TextPoke(poke) => {
            let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
            let (old, new) = (poke.old, poke.new);
            let _ = writeln!(out, " {:x} old len {} new len {}", poke.addr, old.len(), new.len());
            writeln!(out, "    old bytes:{}\n    new bytes:{}", bytes(old), bytes(new))
        }
        Record::Read(read) => writeln!(out, " {} {}", read.thread.pid, read.thread.tid),
        Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
            let whose = if throttle.is_reservation() { ", off because of a reservation" } else { "" };
            writeln!(out, " id {}{whose}", throttle.id)
        }
        Record::Aux(aux) => {
            let (offset, size, flags) = (hex(aux.offset), hex(aux.size), hex(aux.flags));
            let mark = |bit: u64, letter: &'static str| if aux.flags & bit != 0 { letter } else { "" };
            let marks = [
                mark(aux_flag::TRUNCATED, "T"),
                mark(aux_flag::OVERWRITE, "O"),
                mark(aux_flag::PARTIAL, "P"),
                mark(aux_flag::COLLISION, "C"),
            ];
            let marks = marks.concat();
            writeln!(out, " offset: {offset} size: {size} flags: {flags} [{marks}]")
        }
        Record::ItraceStart(thread) => writeln!(out, " pid: {} tid: {}", thread.pid, thread.tid),
        Record::AuxOutputHwId(id) => writeln!(out, " hw_id: {id:#x}"),
        Record::CallchainDeferred(part) => {
            let (cookie, entries) = (part.cookie, part.chain.len());
            let _ = writeln!(out, ": cookie {cookie:#x}, nr:{entries}");
            let mut entries = part.chain.iter().enumerate();
            entries.try_for_each(|(number, entry)| writeln!(out, "..... {number:2}: {entry:016x}"))
        }
        _ => users(out, record),
    };
}

/// Appends the fields of a record that perf itself wrote, rather than the kernel.
fn users(out: &mut Vec<u8>, record: &Record<'_>) -> io::Result<()> {
    match record {
        Record::EventType(event) => writeln!(out, " id: {} name: {}", event.id, text_of(event.name)),
        Record::TracingData(size) => writeln!(out, " size: {size}"),
        Record::BuildId(file) => {
            writeln!(out, " {} {}", pmc_text::text::hex(file.id, ""), text_of(file.name))
        }
        Record::IdIndex(index) => {
            let rows: Vec<_> = index.iter().collect();
            writeln!(out, " nr: {}", rows.len())?;
            rows.iter().try_for_each(|row| {
                writeln!(out, " ... id: {}  idx: {}  cpu: {}  tid: {}", row.id, row.idx, row.cpu, row.tid)
            })
        }
        Record::AuxtraceInfo(info) => writeln!(out, " type: {}", info.kind),
        Record::Auxtrace(aux) => {
            let (size, offset, reference) = (hex(aux.size), hex(aux.offset), hex(aux.reference));
            let (idx, tid, cpu) = (aux.idx, aux.tid as i32, aux.cpu as i32);
            write!(out, " size: {size}  offset: {offset}  ref: {reference}  ")?;
            writeln!(out, "idx: {idx}  tid: {tid}  cpu: {cpu}")
        }
        Record::AuxtraceError(error) => {
            let (pid, tid, ip) = (error.thread.pid, error.thread.tid, hex(error.ip));
            write!(out, " type {} cpu {} pid {pid} tid {tid} ip {ip} ", error.kind, error.cpu)?;
            writeln!(out, "code {}: {}", error.code, text_of(error.message))
        }
        Record::ThreadMap(threads) => {
            let threads: Vec<_> = threads.iter().collect();
            write!(out, " nr: {}", threads.len())?;
            threads.iter().try_for_each(|(pid, comm)| {
                let comm = if comm.is_empty() { String::new() } else { format!("({})", text_of(comm)) };
                write!(out, " thread: {pid}{comm}")
            })?;
            writeln!(out)
        }
        Record::CpuMap(cpus) => writeln!(out, ": {}", ranges(cpus.cpus())),
        Record::StatConfig(pairs) => {
            const NAMES: [&str; 4] = ["aggr_mode", "interval", "scale", "aggr_level"];
            writeln!(out)?;
            pairs.rows().try_for_each(|[tag, value]| {
                writeln!(out, "... {}: {value}", NAMES.get(tag as usize).unwrap_or(&"unknown"))
            })
        }
        Record::Stat(stat) => {
            let (cpu, thread) = (stat.cpu as i32, stat.thread as i32);
            writeln!(out, "\n... id {}, cpu {cpu}, thread {thread}", stat.id)?;
            writeln!(out, "... value {}, enabled {}, running {}", stat.value, stat.enabled, stat.running)
        }
        Record::StatRound(round) => {
            writeln!(
                out,
                "\n... time {}, type {}",
                round.time,
                if round.is_final { "FINAL" } else { "INTERVAL" }
            )
        }
        Record::EventUpdate(update) => {
            writeln!(out, "\n... id:    {}", update.id)?;
            match &update.what {
                Update::Unit(unit) => writeln!(out, "... unit:  {}", text_of(unit)),
                Update::Scale(scale) => writeln!(out, "... scale: {scale}"),
                Update::Name(name) => writeln!(out, "... name:  {}", text_of(name)),
                Update::Cpus(cpus) => {
                    writeln!(out, "... cpus:  {}", ranges(cpus.cpus()))
                }
            }
        }
        Record::TimeConv(conv) => {
            let (shift, mult, zero) = (conv.shift, conv.mult, conv.zero);
            writeln!(
                out,
                "\n... Time Shift      {shift}\n... Time Muliplier  {mult}\n... Time Zero       {zero}"
            )?;
            let Some(more) = conv.more else { return Ok(()) };
            let (has_zero, is_short) = (u8::from(more.has_zero), u8::from(more.is_short));
            writeln!(
                out,
                "... Time Cycles     {}\n... Time Mask       {:#x}\n... Cap Time Zero   {has_zero}\n... Cap Time Short  {is_short}",
                more.cycles, more.mask
            )
        }
        Record::BpfMetadata(metadata) => {
            writeln!(out, " prog {}", text_of(metadata.program))?;
            metadata.iter().enumerate().try_for_each(|(number, (key, value))| {
                writeln!(out, "  entry {number}: {:>20} = {}", text_of(key), text_of(value))
            })
        }
        _ => writeln!(out),
    }
}
