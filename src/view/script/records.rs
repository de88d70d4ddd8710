//! Records that are no samples, in perf's words.

use std::io::Write as _;

use crate::abi::misc;
use crate::record::{FileId, Record, kind};
use crate::text::clean;

/// Names of the namespaces in their order.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];

fn text_of(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes)).into_owned()
}

/// `%#lx`: zero has no prefix.
fn hex(number: u64) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

/// Appends the record's line.
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
                FileId::Inode { major, minor, inode, generation } => {
                    format!("{major:02x}:{minor:02x} {inode} {generation}")
                }
                FileId::BuildId(id) => {
                    format!("<{}>", crate::text::hex(id, ""))
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
        _ => writeln!(out),
    };
}
