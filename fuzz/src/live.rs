//! Records as `top` receives them from rings, round after round: it must forget what has ended, and count every
//! sample.

use std::sync::Arc;
use std::time::Duration;

use pmc_analysis::analysis::live::names::{self, NameOptions};
use pmc_analysis::analysis::live::snapshot::{Retention, SnapshotMaker, SnapshotOptions};
use pmc_analysis::profile::sampled::{Query, SortKey, StackDirection};
use pmc_analysis::session::SampleQuery;
use pmc_analysis::session::live::{Batch, Live, LiveState, SampledEvent};
use pmc_analysis::session::samples::SampleAttribute;
use pmc_perfdata::perfdata::{Buffer, Reader};
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{Layouts, MappedFileId, Mmap, Mmap2, RawRecord, Records, Task, Thread, kind};
use pmc_symbols::symbol::Depth;
use pmc_text::units::PerfTime;

use crate::in_process::MemoryFile;
use crate::mutation::{Random, perfdata};
use crate::programs::options;

/// Number of bytes before the recording: options, and the number of processes in a storm, in hundreds.
const HEAD: usize = 2;

/// Bits of the first byte.
const WITHOUT_STACKS: u8 = 1;
const WITHOUT_NAMES: u8 = 2;
const BY_THREAD: u8 = 4;
const LASTS: u8 = 8;
const CLEARS: u8 = 16;
const OTHER_PERIODS: u8 = 32;

/// Options, then a recording, whose records arrive in rounds. Each round ends with a table.
pub fn top(data: &[u8]) {
    let Some((&[how, storm], recording)) = data.split_first_chunk::<HEAD>() else { return };
    let has = |bit: u8| how & bit != 0;
    let file = MemoryFile::new(recording);
    let Ok(reader) = Reader::open(file.path()) else { return };
    let Ok(index) = reader.scan(|_| {}) else { return };
    let all = || reader.events().iter().chain(reader.fallback_events());
    let layouts = Arc::new(Layouts::new(all().map(|event| (&event.attr, event.ids.as_slice()))));
    let attributes = match has(BY_THREAD) {
        true => {
            vec![SampleAttribute::Pid, SampleAttribute::Tid, SampleAttribute::Cpu, SampleAttribute::Cgroup]
        }
        false => Vec::new(),
    };
    let query = SampleQuery {
        attributes: attributes.clone(),
        ignore_stacks: has(WITHOUT_STACKS),
        ignore_comms: has(WITHOUT_NAMES),
        ..SampleQuery::default()
    };
    let events = reader.events().iter().enumerate().map(|(number, event)| SampledEvent {
        name: event.name.clone().unwrap_or_default(),
        attr: event.attr.clone(),
        leader: number,
    });
    let periods = all().map(|event| event.attr.period()).collect();
    let mut live = Live::new(layouts.clone(), periods, query, 127);
    live.name([1]);
    if has(OTHER_PERIODS) {
        live.set_period(0, 0, 1000);
    }
    let state = Arc::new(LiveState::new(live, events.collect(), Duration::from_secs(2)));
    let names = NameOptions { options: options(), depth: Depth::Names, raw_names: false };
    let (mut requests, names) = names::start(names).expect("a thread");
    names.lift_time_limit();
    let snapshots =
        SnapshotOptions { attributes, with_sockets: false, with_idle: false, ignore_callees: None };
    let mut maker = SnapshotMaker::new(state.clone(), names, snapshots);
    let retention = match (has(LASTS), has(CLEARS)) {
        (true, _) => Retention::Lasts,
        (_, true) => Retention::None,
        _ => Retention::Decays,
    };
    let asked = Query {
        keys: vec![SortKey::Comm, SortKey::Dso, SortKey::Symbol],
        tree: Some(StackDirection::Callee).filter(|_| !has(WITHOUT_STACKS)),
        ..Query::default()
    };

    let (mut batch, mut buffer, mut last, mut sent) = (Batch::default(), Buffer::default(), None, 0);
    let mut round = |bytes: &[u8], horizon: u64| {
        sent += Records::new(bytes).filter(|raw| layouts.sample(raw).is_some()).count() as u64;
        // The ring's contents wrap around, within a record.
        let (before, after) = bytes.split_at(bytes.len() / 2);
        batch.take(&[before, after], &layouts, None);
        {
            let mut live = state.live();
            live.process_until(&mut batch, horizon);
            live.settle(horizon);
            requests.ask(&mut live, true);
        }
        state.set_settled(horizon);
        let mut snapshot = maker.take(last.take());
        let profile = maker.answer(&snapshot, &asked).profile;
        let head = maker.head(&snapshot, 0);
        assert!(head.samples <= sent, "{} of {sent} samples", head.samples);
        for event in &profile.events {
            let rows = event.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.own.period));
            assert!(rows <= event.total.period, "{rows} in the rows, {} in all", event.total.period);
        }
        snapshot.release();
        maker.end_interval(retention);
        last = Some(snapshot);
        (head.samples, sent)
    };

    let mut first_sample = Vec::new();
    for (number, chunk) in index.chunks.iter().enumerate() {
        let Ok(records) = reader.load(chunk, &mut buffer) else { continue };
        let (mut bytes, mut latest) = (Vec::new(), 0);
        for raw in records {
            if raw.kind == kind::SAMPLE && first_sample.is_empty() {
                first_sample = raw.bytes.to_vec();
            }
            latest = latest.max(layouts.time(&raw).map_or(0, |time| time.0));
            bytes.extend_from_slice(raw.bytes);
        }
        if number == 0 {
            state.live().take_synthesized(&bytes[..bytes.len() / 2]);
            state.live().end_synthesized();
        }
        // The latest records wait for the next round.
        round(&bytes, latest.saturating_sub(1000));
    }
    for part in 0..2 * usize::from(storm > 0) {
        round(&processes(&first_sample, &layouts, part, 100 * usize::from(storm)), u64::MAX - 1);
    }
    let (samples, sent) = round(&[], u64::MAX);
    assert_eq!(samples, sent, "samples that never arrived");
}

/// Records of this many processes that begin, map two files, are sampled and end. The second part replaces a
/// mapping of each, and has other processes.
fn processes(sample: &[u8], layouts: &Layouts, part: usize, count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let first = 100_000 + part * count / 2;
    let raw = RawRecord::first(sample);
    let recorded = raw.as_ref().and_then(|raw| layouts.sample(raw)).map(|(_, sample)| {
        let thread = sample.thread().unwrap_or_default();
        (sample.ip().unwrap_or(0), thread.pid as u32 as u64 | u64::from(thread.tid as u32) << 32)
    });
    for pid in (first..first + count).map(|pid| pid as i32) {
        let thread = Thread { pid, tid: pid };
        let task = Task { thread, parent: Thread { pid: pid - 1, tid: pid - 1 }, time: PerfTime(0) };
        let mut encoder = Encoder::new(0);
        encoder.fork(&task);
        encoder.comm(thread, format!("storm{}", pid % 100).as_bytes());
        for (addr, name) in
            [(0x1000, b"/bin/first".as_slice()), (0x1800 * part as u64 + 0x5000, b"/bin/second")]
        {
            let map = Mmap { thread, addr, len: 0x2000, pgoff: 0, is_data: false, name };
            let file = MappedFileId::Inode { major: 8, minor: 1, inode: 7, generation: 0 };
            encoder.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
        }
        out.extend(encoder.bytes());
        if let Some((ip, ids)) = recorded {
            let words =
                sample.chunks(8).map(|word| match word.first_chunk().map(|word| u64::from_ne_bytes(*word)) {
                    Some(word) if word == ip => (0x1000 + pid as u64 % 0x1fff).to_ne_bytes().to_vec(),
                    Some(word) if word == ids => (pid as u64 | (pid as u64) << 32).to_ne_bytes().to_vec(),
                    _ => word.to_vec(),
                });
            out.extend(words.flatten());
        }
        if pid % 8 != 0 {
            let mut ended = Encoder::new(0);
            ended.fork(&task);
            out.extend(kind::EXIT.to_ne_bytes());
            out.extend(&ended.bytes()[4..]);
        }
    }
    out
}

/// Changes the recording, and rarely the options. A storm of processes takes as long as 50 other inputs, so few
/// inputs keep it.
pub fn mutate_top(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let Some((head, recording)) = input.split_first_chunk::<HEAD>() else { return };
    let mut head = *head;
    let mut recording = recording.to_vec();
    perfdata::mutate(&mut recording, max, random);
    head[0] ^= (1 << random.below(8)) & 0x3f;
    if random.below(50) > 0 {
        head[1] = 0;
    }
    *input = [&head[..], &recording].concat();
    input.truncate(max);
}
