//! Tests rounds, decay, downsampling and cleanup with handmade records.

use super::*;
use crate::session::samples::SampleAttribute;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Task, Thread, kind};
use pmc_sys::abi::{Attr, sample_type};
use pmc_text::units::PerfTime;

const FIELDS: u64 = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::PERIOD;

fn live() -> (Live, Arc<Layouts>) {
    live_of(SampleQuery::default())
}

fn live_of(query: SampleQuery) -> (Live, Arc<Layouts>) {
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(FIELDS);
    attr.set(pmc_sys::abi::attr::Flag::SampleIdAll, true);
    let layouts = Arc::new(Layouts::new([(&attr, &[1u64][..])]));
    (Live::new(layouts.clone(), vec![1], query, 127), layouts)
}

/// Returns a sample in user mode. `pid` is also the thread id.
fn sample(ip: u64, pid: i32, time: u64, period: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(kind::SAMPLE.to_ne_bytes());
    out.extend(2u16.to_ne_bytes());
    out.extend(40u16.to_ne_bytes());
    out.extend(ip.to_ne_bytes());
    out.extend(pid.to_ne_bytes());
    out.extend(pid.to_ne_bytes());
    out.extend(time.to_ne_bytes());
    out.extend(period.to_ne_bytes());
    out
}

fn mapped(pid: i32, addr: u64, name: &str) -> Vec<u8> {
    let mut out = Encoder::new(0);
    let map = Mmap {
        thread: Thread { pid, tid: pid },
        addr,
        len: 0x1000,
        pgoff: 0,
        is_data: false,
        name: name.as_bytes(),
    };
    let file = MappedFileId::Inode { major: 1, minor: 2, inode: addr, generation: 0 };
    out.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
    out.bytes().to_vec()
}

/// Appends a `sample_id` with this time to the record.
fn at(mut record: Vec<u8>, time: u64) -> Vec<u8> {
    record.extend([0; 8]);
    record.extend(time.to_ne_bytes());
    let size = (record.len() as u16).to_ne_bytes();
    record[6..8].copy_from_slice(&size);
    record
}

/// Returns the exit record of a process.
fn exit(pid: i32, time: u64) -> Vec<u8> {
    let mut out = Encoder::new(0);
    let thread = Thread { pid, tid: pid };
    out.fork(&Task { thread, parent: Thread { pid: 1, tid: 1 }, time: PerfTime(time) });
    let mut record = out.bytes().to_vec();
    record[..4].copy_from_slice(&kind::EXIT.to_ne_bytes());
    at(record, time)
}

fn modules(live: &Live) -> Vec<(String, u64)> {
    let look = live.rows();
    let mut all: Vec<(String, u64)> = look
        .resolved
        .rows
        .iter()
        .map(|(key, value)| {
            let leaf = look.resolved.stack(key.stack).next().unwrap();
            let module = look.resolved.locations[leaf as usize].module();
            let name = module.map(|m| live.history().modules()[m as usize].short_name());
            (name.unwrap_or_default(), value.period)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn sample_waits_for_side_band_records_of_other_rings() {
    let (mut live, layouts) = live();
    live.take_synthesized(&mapped(7, 0x1000, "/bin/old"));
    live.end_synthesized();
    let mut batch = Batch::default();
    // Ring 0 was drained before ring 1: it has the sample at time 30, but the mapping at time 20 is missing.
    batch.take(&[&sample(0x1800, 7, 10, 5), &sample(0x1800, 7, 30, 7)], &layouts, None);
    live.process_until(&mut batch, 15);
    assert_eq!(modules(&live), [("old".to_owned(), 5)]);
    assert!(!batch.is_empty());
    batch.take(&[&at(mapped(7, 0x1000, "/bin/new"), 20)], &layouts, None);
    live.process_until(&mut batch, 100);
    assert_eq!(modules(&live), [("new".to_owned(), 7), ("old".to_owned(), 5)]);
    assert!(batch.is_empty());
    assert_eq!((live.counts().samples, live.counts().user), (2, 2));
}

#[test]
fn clock_samples_weigh_their_period_at_the_time() {
    let (mut live, layouts) = live();
    live.end_synthesized();
    let mut batch = Batch::default();
    // The kernel still writes the original period.
    let samples = [(10, 5), (20, 5), (30, 5)].map(|(time, period)| sample(0x1000, 7, time, period));
    samples.iter().for_each(|sample| batch.take(&[sample], &layouts, None));
    live.set_period(0, 15, 10);
    live.set_period(0, 25, 20);
    live.process_until(&mut batch, u64::MAX);
    let periods: u64 = live.rows().resolved.rows.iter().map(|(_, value)| value.period).sum();
    assert_eq!(periods, 5 + 10 + 20);
}

#[test]
fn decayed_rows_are_removed_and_others_keep_their_ids() {
    let (mut live, layouts) = live();
    live.take_synthesized(&mapped(7, 0x10_0000, "/bin/a"));
    live.end_synthesized();
    let mut batch = Batch::default();
    for n in 0..20_000u64 {
        batch.take(&[&sample(0x10_0000 + n % 0x1000, 7, n, 1)], &layouts, None);
        batch.take(&[&sample(0x9000_0000 + n, 7, n, 1)], &layouts, None);
    }
    live.process_until(&mut batch, u64::MAX);
    let stacks = live.resolver.stacks().len();
    for round in 0..40 {
        live.decay(0.875);
        for n in 0..100 {
            batch.take(&[&sample(0x10_0000 + n, 7, 30_000 + round, 8)], &layouts, None);
        }
        live.process_until(&mut batch, u64::MAX);
        live.forget(u64::MAX, |_| true);
    }
    assert!(live.resolver.stacks().len() < stacks / 4, "{} of {stacks} stacks", live.resolver.stacks().len());
    let rows = modules(&live);
    // 100 rows of 8 per round converge to 8 / (1 − 7/8) each; hardly any of the 40,000 samples survive 40
    // rounds.
    assert!(rows.iter().filter(|(_, period)| (50..=66).contains(period)).count() >= 100);
    assert!(rows.iter().filter(|(name, _)| name != "a").count() < 300, "{}", rows.len());
}

#[test]
fn decay_and_downsampling_are_unbiased_for_rare_rows() {
    let (mut live, layouts) = live();
    live.end_synthesized();
    let mut batch = Batch::default();
    let sum =
        |live: &Live| live.rows().resolved.rows.iter().map(|(_, value)| value.period).sum::<u64>() as f64;
    // Half of the total is in one row, and half is in 20,000 rows of one sample each.
    for n in 0..20_000u64 {
        batch.take(&[&sample(0x1000, 7, n, 10), &sample(0x10_0000 + n, 7, n, 10)], &layouts, None);
    }
    live.process_until(&mut batch, u64::MAX);
    let all = sum(&live);
    for _ in 0..5 {
        live.decay(0.875);
    }
    let faded = all * 0.875f64.powi(5);
    assert!((sum(&live) / faded - 1.0).abs() < 0.02, "{} of {faded}", sum(&live));
    assert!(live.table.len() < 12_000, "{}", live.table.len());
    let rows = live.table.len();
    live.downsample();
    assert!((sum(&live) / faded - 1.0).abs() < 0.03, "{} of {faded}", sum(&live));
    assert!(
        live.table.len() < rows * 6 / 10 && live.counts().downsampled > 0,
        "{} of {rows}",
        live.table.len()
    );
}

#[test]
fn rows_of_exited_threads_are_merged() {
    let query = SampleQuery {
        attributes: vec![SampleAttribute::Cpu, SampleAttribute::Pid, SampleAttribute::Tid],
        ..SampleQuery::default()
    };
    let (mut live, layouts) = live_of(query);
    live.end_synthesized();
    let mut batch = Batch::default();
    for pid in 1..3000 {
        batch.take(&[&sample(0x1000, pid, 5, 2)], &layouts, None);
    }
    live.process_until(&mut batch, u64::MAX);
    assert_eq!(live.table.len(), 2999);
    for pid in 11..3000 {
        batch.take(&[&exit(pid, 6)], &layouts, None);
    }
    // A process whose exit was recorded no longer has rows.
    batch.take(&[&sample(0x1000, 20, 5, 2)], &layouts, None);
    live.process_until(&mut batch, u64::MAX);
    assert_eq!(live.table.len(), 3000);
    live.forget(u64::MAX, |_| panic!("nobody need be asked"));
    // The rows of the ended processes are gone, or never existed.
    let look = live.rows();
    let pids: Vec<u64> = look
        .resolved
        .rows
        .iter()
        .filter_map(|(key, _)| {
            pmc_perfdata::record::RecordWords::new(look.attributes.get(key.attributes).1).get(1)
        })
        .collect();
    assert_eq!(pids.iter().filter(|pid| **pid != ENDED).count(), 10);
    assert_eq!(look.resolved.rows.iter().map(|(_, value)| value.period).sum::<u64>(), 2 * 3000);
}

#[test]
fn exited_processes_do_not_accumulate() {
    let (mut live, layouts) = live();
    live.take_synthesized(&mapped(1, 0x1000, "/bin/sh"));
    live.end_synthesized();
    let mut batch = Batch::default();
    let mut most = 0;
    for pid in 2..60_000 {
        let mut out = Encoder::new(0);
        let thread = |pid| Thread { pid, tid: pid };
        out.fork(&Task { thread: thread(pid), parent: thread(1), time: PerfTime(pid as u64) });
        out.comm(thread(pid), b"child");
        let now = pid as u64 * 1_000_000;
        for raw in Records::new(out.bytes()) {
            batch.take(&[&at(raw.bytes.to_vec(), now)], &layouts, None);
        }
        // Every tenth exit record is lost.
        if pid % 10 != 0 {
            batch.take(&[&exit(pid - 1, now)], &layouts, None);
        }
        batch.take(&[&at(mapped(pid, 0x1000, "/bin/child"), now)], &layouts, None);
        live.process_until(&mut batch, now);
        live.forget(now, |other| other == 1 || other == pid);
        // Counting is slower than the rest of the test, so count only rarely.
        if pid % 64 == 0 {
            most = most.max(live.history().removable_len() + live.history().tasks().count());
        }
    }
    assert!(most < 4 * CLEANUP_GROWTH, "{most}");
}

#[test]
fn single_address_resolves_like_a_one_frame_stack() {
    let rows = |ignore_stacks: bool| {
        let (mut live, layouts) = live_of(SampleQuery { ignore_stacks, ..SampleQuery::default() });
        live.take_synthesized(&mapped(7, 0x10_0000, "/bin/a"));
        live.take_synthesized(&mapped(8, 0x10_0000, "/bin/b"));
        live.end_synthesized();
        let mut batch = Batch::default();
        for n in 0..300u64 {
            batch.take(&[&sample(0x10_0000 + n % 90, 7 + (n % 3 == 0) as i32, n, 2)], &layouts, None);
            batch.take(&[&sample(0x9000_0000, 7, n, 1)], &layouts, None);
        }
        live.process_until(&mut batch, u64::MAX);
        // Renumbering changes the numbers, but not the rows.
        live.renumber();
        batch.take(&[&sample(0x10_0001, 7, 400, 2)], &layouts, None);
        live.process_until(&mut batch, u64::MAX);
        modules(&live)
    };
    assert_eq!(rows(true), rows(false));
    assert_eq!(rows(true).len(), 60 + 30 + 1);
}

#[test]
fn remaining_threads_keep_name_and_space_after_cleanup() {
    let (mut live, layouts) = live();
    live.take_synthesized(&mapped(1, 0x10_0000, "/bin/sh"));
    live.end_synthesized();
    let mut batch = Batch::default();
    // The same raw stack, before and after its epoch is renumbered.
    for pid in 2..20_000 {
        let now = pid as u64 * 1_000_000;
        batch.take(&[&at(mapped(pid, 0x10_0000, "/bin/child"), now)], &layouts, None);
        batch.take(&[&sample(0x10_0010, 1, now, 1), &sample(0x10_0010, pid, now, 1)], &layouts, None);
        batch.take(&[&exit(pid, now)], &layouts, None);
        if pid % 100 == 0 {
            live.process_until(&mut batch, now);
            live.forget(now, |other| other == 1 || other == pid);
        }
    }
    live.process_until(&mut batch, u64::MAX);
    assert!(live.history().removable_len() < 4 * CLEANUP_GROWTH);
    let of =
        |name: &str| modules(&live).iter().filter(|(module, _)| module == name).map(|row| row.1).sum::<u64>();
    assert_eq!((of("sh"), of("child")), (19_998, 19_998));
}
