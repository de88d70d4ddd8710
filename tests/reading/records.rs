//! Every kernel record and every sample field, as perf_event_open(2) lays them out. The bytes are written by
//! hand because no single machine produces all of them.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use pmc_perfdata::record::{Layouts, MappedFileId, RawRecord, Record, Thread, kind};
use pmc_sys::abi::attr::kind as event;
use pmc_sys::abi::{Attr, read_format, sample_type};
use pmc_text::units::PerfTime;

/// Concatenates fields of 1, 2, 4 or 8 bytes and text, padded to words.
macro_rules! body {
    ($($field:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend_from_slice(&$field.bytes());)*
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }};
}

trait Field {
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! fields {
    ($($number:ty)*) => { $(impl Field for $number {
        fn bytes(&self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
    })* };
}
fields!(u8 u16 u32 u64);

impl Field for &[u8] {
    fn bytes(&self) -> Vec<u8> {
        self.to_vec()
    }
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), body].concat()
}

const THREAD: Thread = Thread { pid: 7, tid: 8 };

#[test]
fn every_kernel_record_type_parses() {
    let parse = |kind: u32, misc: u16, body: Vec<u8>, check: &dyn Fn(Record<'_>) -> bool| {
        let bytes = record(kind, misc, &body);
        let parsed = RawRecord::first(&bytes).unwrap().parse();
        let text = format!("{parsed:?}");
        assert!(parsed.is_some_and(check), "record {kind}: {text}");
        // A record that is too short for its fields does not parse.
        let bytes = record(kind, misc, &[]);
        let empty = RawRecord::first(&bytes).unwrap().parse();
        assert!(empty.is_none() || matches!(kind, 9 | 14), "record {kind}: {empty:?}");
    };
    let (pid, tid) = (7u32, 8u32);
    let name = &b"/lib/x\0"[..];
    parse(kind::MMAP, 1 << 13, body![pid, tid, 1u64, 2u64, 3u64, name], &|r| {
        matches!(r, Record::Mmap(m) if (m.thread, m.addr, m.len, m.pgoff, m.is_data, m.name)
            == (THREAD, 1, 2, 3, true, &b"/lib/x"[..]))
    });
    parse(kind::LOST, 0, body![5u64, 6u64], &|r| matches!(r, Record::Lost(l) if (l.id, l.lost) == (5, 6)));
    parse(
        kind::COMM,
        1 << 13,
        body![pid, tid, &b"sh\0"[..]],
        &|r| matches!(r, Record::Comm(c) if (c.thread, c.is_exec, c.comm) == (THREAD, true, &b"sh"[..])),
    );
    for kind in [kind::EXIT, kind::FORK] {
        parse(kind, 0, body![pid, 1u32, tid, 2u32, 99u64], &|r| {
            let (Record::Exit(task) | Record::Fork(task)) = r else { return false };
            (task.thread, task.parent, task.time) == (THREAD, Thread { pid: 1, tid: 2 }, PerfTime(99))
        });
    }
    for kind in [kind::THROTTLE, kind::UNTHROTTLE] {
        parse(kind, 0, body![99u64, 5u64, 6u64], &|r| {
            let (Record::Throttle(t) | Record::Unthrottle(t)) = r else { return false };
            (t.time, t.id, t.stream_id) == (PerfTime(99), 5, 6)
        });
    }
    parse(
        kind::READ,
        0,
        body![pid, tid, 41u64, 42u64],
        &|r| matches!(r, Record::Read(read) if read.thread == THREAD && read.values.iter().eq([41, 42])),
    );
    parse(kind::SAMPLE, 2, body![1u64], &|r| matches!(r, Record::Sample(body) if body.len() == 8));
    let inode = body![pid, tid, 1u64, 2u64, 3u64, 8u32, 1u32, 4711u64, 9u64, 5u32, 2u32, name];
    parse(kind::MMAP2, 0, inode, &|r| {
        let file = MappedFileId::Inode { major: 8, minor: 1, inode: 4711, generation: 9 };
        matches!(r, Record::Mmap2(m) if (m.file, m.prot, m.flags, m.map.pgoff) == (file, 5, 2, 3))
    });
    let id = [0xab; 20];
    let build_id = body![pid, tid, 1u64, 2u64, 3u64, 20u8, 0u8, 0u16, &id[..], 5u32, 2u32, name];
    parse(
        kind::MMAP2,
        1 << 14,
        build_id,
        &|r| matches!(r, Record::Mmap2(m) if m.file == MappedFileId::BuildId(&id) && m.map.name == b"/lib/x"),
    );
    parse(
        kind::AUX,
        0,
        body![1u64, 2u64, 8u64],
        &|r| matches!(r, Record::Aux(aux) if (aux.offset, aux.size, aux.flags) == (1, 2, 8)),
    );
    parse(kind::ITRACE_START, 0, body![pid, tid], &|r| r == Record::ItraceStart(THREAD));
    parse(kind::LOST_SAMPLES, 0, body![3u64], &|r| r == Record::LostSamples(3));
    parse(
        kind::SWITCH,
        1 << 13,
        body![],
        &|r| matches!(r, Record::Switch(s) if s.is_out && !s.is_preempted && s.other.is_none()),
    );
    parse(
        kind::SWITCH_CPU_WIDE,
        3 << 13,
        body![pid, tid],
        &|r| matches!(r, Record::SwitchCpuWide(s) if s.is_out && s.is_preempted && s.other == Some(THREAD)),
    );
    parse(
        kind::NAMESPACES,
        0,
        body![pid, tid, 2u64, 1u64, 11u64, 2u64, 22u64],
        &|r| matches!(r, Record::Namespaces(n) if n.thread == THREAD && n.links.iter().eq([1, 11, 2, 22])),
    );
    parse(kind::KSYMBOL, 0, body![1u64, 2u32, 2u16, 1u16, &b"bpf_prog\0"[..]], &|r| {
        matches!(r, Record::Ksymbol(k) if (k.addr, k.len, k.kind, k.is_unregister, k.name)
            == (1, 2, 2, true, &b"bpf_prog"[..]))
    });
    parse(
        kind::BPF_EVENT,
        0,
        body![1u16, 0u16, 77u32, &[9u8; 8][..]],
        &|r| matches!(r, Record::BpfEvent(b) if (b.kind, b.flags, b.id, b.tag) == (1, 0, 77, [9; 8])),
    );
    parse(
        kind::CGROUP,
        0,
        body![4u64, &b"/a\0"[..]],
        &|r| matches!(r, Record::Cgroup(c) if (c.id, c.path) == (4, &b"/a"[..])),
    );
    parse(
        kind::TEXT_POKE,
        0,
        body![0xff00u64, 1u16, 2u16, &[1u8, 2, 3][..]],
        &|r| matches!(r, Record::TextPoke(p) if (p.addr, p.old, p.new) == (0xff00, &[1u8][..], &[2u8, 3][..])),
    );
    parse(kind::AUX_OUTPUT_HW_ID, 0, body![6u64], &|r| r == Record::AuxOutputHwId(6));
    parse(
        kind::CALLCHAIN_DEFERRED,
        0,
        body![5u64, 2u64, 1u64, 2u64],
        &|r| matches!(r, Record::CallchainDeferred(d) if d.cookie == 5 && d.chain.iter().eq([1, 2])),
    );
}

#[test]
fn every_sample_field_parses_in_order() {
    let all = (1u64 << 25) - 1;
    let both_weights = sample_type::WEIGHT_STRUCT;
    let mut attr = Attr::new(event::SOFTWARE, 0);
    attr.set_sample_type(all & !both_weights);
    attr.set_read_format(
        read_format::TOTAL_TIME_ENABLED
            | read_format::TOTAL_TIME_RUNNING
            | read_format::ID
            | read_format::LOST,
    );
    attr.set_branch_sample_type(1 << 17);
    attr.set_sample_regs_user(0b101);
    attr.set_sample_regs_intr(0b1);
    attr.set_sample_stack_user(8);
    let body = body![
        77u64, // IDENTIFIER
        0x40u64,
        7u32,
        8u32,
        99u64,
        0xadu64, // IP, TID, TIME, ADDR
        77u64,
        78u64,
        3u32,
        0u32,
        1000u64, // ID, STREAM_ID, CPU, PERIOD
        41u64,
        50u64,
        40u64,
        77u64,
        2u64, // READ: value, enabled, running, id, lost
        2u64,
        0x40u64,
        0x41u64, // CALLCHAIN
        4u32,
        &b"RAW!"[..], // RAW
        1u64,
        5u64,
        0xf0u64,
        0x70u64,
        1u64, // BRANCH_STACK: number, hw_idx, from, to, flags
        2u64,
        0x11u64,
        0x22u64, // REGS_USER
        8u64,
        0x5au64,
        8u64, // STACK_USER
        123u64,
        0x21u64,
        4u64, // WEIGHT, DATA_SRC, TRANSACTION
        2u64,
        0x33u64, // REGS_INTR
        0xfeu64,
        9u64,
        4096u64,
        8192u64, // PHYS_ADDR, CGROUP, DATA_PAGE_SIZE, CODE_PAGE_SIZE
        8u64,
        0xa5u64, // AUX
    ];
    let bytes = record(kind::SAMPLE, 2, &body);
    let layouts = Layouts::new([(&attr, &[77u64][..])]);
    let raw = RawRecord::first(&bytes).unwrap();
    let (event, sample) = layouts.sample(&raw).unwrap();
    assert_eq!((event, sample.excess()), (0, Some(0)), "every byte belongs to a field");
    assert_eq!((sample.ip(), sample.thread(), sample.time()), (Some(0x40), Some(THREAD), Some(PerfTime(99))));
    assert_eq!((sample.addr(), sample.id(), sample.stream_id()), (Some(0xad), Some(77), Some(78)));
    assert_eq!((sample.cpu(), sample.period()), (Some(3), Some(1000)));
    let parts = sample.parts().unwrap();
    let read = parts.read.unwrap();
    let value = read.iter().next().unwrap();
    assert_eq!((read.enabled_ns(), read.running_ns()), (Some(50), Some(40)));
    assert_eq!((value.value, value.id, value.lost), (41, Some(77), Some(2)));
    assert!(parts.callchain.unwrap().iter().eq([0x40, 0x41]));
    assert_eq!(parts.raw, Some(&b"RAW!"[..]));
    let branch = parts.branches.unwrap().iter().next().unwrap();
    assert_eq!((branch.from, branch.to, branch.flags.is_mispredicted()), (0xf0, 0x70, true));
    assert_eq!(parts.user_regs.unwrap().get(2), Some(0x22));
    assert_eq!(parts.user_stack.unwrap().bytes, 0x5au64.to_ne_bytes());
    assert_eq!(parts.weight.unwrap().value(), 123);
    assert_eq!((parts.data_src, parts.transaction), (Some(0x21), Some(4)));
    assert_eq!(parts.intr_regs.unwrap().get(0), Some(0x33));
    assert_eq!((parts.phys_addr, parts.cgroup), (Some(0xfe), Some(9)));
    assert_eq!((parts.data_page_size, parts.code_page_size), (Some(4096), Some(8192)));

    attr.set_sample_type(both_weights);
    let body = body![5u32, 6u16, 7u16];
    let bytes = record(kind::SAMPLE, 2, &body);
    let layouts = Layouts::new([(&attr, &[77u64][..])]);
    let raw = RawRecord::first(&bytes).unwrap();
    let weight = layouts.sample(&raw).unwrap().1.parts().unwrap().weight.unwrap();
    assert_eq!((weight.value(), weight.more()), (5, Some((6, 7))));
}
