//! Speed of reading records: `cargo bench --bench perfdata`. The writer makes the recording, always the same
//! one.

use std::path::PathBuf;

use pmc_perfdata::perfdata::{Buffer, Features, Reader, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::kind;
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::sample_type;

const SAMPLES: u64 = 400_000;
const DEPTH: u64 = 30;

fn main() {
    divan::main();
}

/// Samples of two events with call chains of 30 addresses, about 130 MB.
fn recording(options: WriteOptions) -> (tempfile::TempDir, PathBuf) {
    let lab = tempfile::tempdir().expect("a temporary folder");
    let path = lab.path().join("perf.data");
    let events = [1u64, 2].map(|id| {
        let mut attr = Attr::new(1, id - 1);
        attr.set_sample_type(
            sample_type::IDENTIFIER
                | sample_type::IP
                | sample_type::TID
                | sample_type::TIME
                | sample_type::CPU
                | sample_type::PERIOD
                | sample_type::CALLCHAIN,
        );
        attr.set(Flag::SampleIdAll, true);
        RecordedEvent { attr, ids: vec![id], name: None }
    });
    let mut writer = Writer::create(&path, &events, &Features::default(), options).expect("it begins");
    let mut batch = Vec::new();
    for n in 0..SAMPLES {
        let size = (8 + 8 * (7 + DEPTH)) as u16;
        batch.extend(kind::SAMPLE.to_ne_bytes());
        batch.extend(2u16.to_ne_bytes());
        batch.extend(size.to_ne_bytes());
        for word in [1 + n % 2, 0x40_0000 + n % 977, 7 << 32 | 7, n * 1000, n % 8, 1000, DEPTH] {
            batch.extend(word.to_ne_bytes());
        }
        for frame in 0..DEPTH {
            batch.extend((0x40_0000 + (n * 31 + frame * 7919) % 65_536).to_ne_bytes());
        }
        if batch.len() > 1 << 18 {
            writer.append(&[&batch]).expect("it appends");
            batch.clear();
        }
    }
    writer.append(&[&batch]).expect("it appends");
    writer.finish(&Features { hostname: Some("bench".into()), ..Features::default() }).expect("it ends");
    (lab, path)
}

/// The first pass: all record headers, but contents only of side-band records.
#[divan::bench(sample_count = 10)]
fn scan(bencher: divan::Bencher<'_, '_>) {
    let (_lab, path) = recording(WriteOptions::default());
    let reader = Reader::open(path).expect("it opens");
    bencher.counter(divan::counter::BytesCount::new(reader.data_size())).bench(|| {
        let index = reader.scan(|record| {
            divan::black_box(record.kind);
        });
        assert_eq!(index.expect("it reads").count(kind::SAMPLE), SAMPLES);
    });
}

/// The second pass, in one thread: event, time, thread and chain of every sample.
#[divan::bench(sample_count = 10)]
fn samples(bencher: divan::Bencher<'_, '_>) {
    let (_lab, path) = recording(WriteOptions::default());
    let reader = Reader::open(path).expect("it opens");
    let index = reader.scan(|_| {}).expect("it reads");
    bencher.counter(divan::counter::BytesCount::new(reader.data_size())).bench(|| {
        let mut buffer = Buffer::default();
        let mut sum = 0;
        for chunk in &index.chunks {
            for raw in reader.load(chunk, &mut buffer).expect("it loads") {
                let Some((event, sample)) = reader.layouts().sample(&raw) else { continue };
                sum += event as u64 + sample.time().map_or(0, |t| t.ns());
                sum += sample.thread().map_or(0, |t| t.tid as u64);
                sum += sample.callchain().map_or(0, |chain| chain.iter().fold(0, u64::wrapping_add));
            }
        }
        divan::black_box(sum)
    });
}

/// Opening a compressed recording, which decompresses it.
#[divan::bench(sample_count = 5)]
fn unpack(bencher: divan::Bencher<'_, '_>) {
    let (_lab, path) = recording(WriteOptions { compress: Some(1), ..WriteOptions::default() });
    let size = Reader::open(&path).expect("it opens").data_size();
    bencher.counter(divan::counter::BytesCount::new(size)).bench(|| Reader::open(&path).expect("it opens"));
}
