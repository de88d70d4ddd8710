//! Samples at every stub and at thousands of other addresses of the C library and the loader. This way the
//! comparison with perf does not depend on where the samples of other tests hit.

use std::path::Path;

use object::{Object, ObjectSection, ObjectSegment, SectionKind, SegmentFlags};
use pmc_perfdata::perfdata::{Features, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, SampleLayout, Thread, encode};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::sample_type;

use super::against::scripts_agree;
use super::branches::Dice;
use super::lab::{DEEP, Lab};

const WHO: Thread = Thread { pid: 100, tid: 100 };
const ID: u64 = 7;
const USER: u16 = 2;
const EXECUTABLE: u32 = 1;

/// Maps a file's code at `base` and returns addresses in it: stubs in steps of four bytes, and `count`
/// others.
fn places(records: &mut encode::Encoder, path: &Path, base: u64, count: usize, dice: &mut Dice) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & EXECUTABLE != 0);
    for segment in file.segments().filter(|segment| code(segment.flags())) {
        let (pgoff, size) = segment.file_range();
        let name = path.as_os_str().as_encoded_bytes();
        let map =
            Mmap { thread: WHO, addr: base + segment.address(), len: size, pgoff, is_data: false, name };
        let file = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
        records.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
    }
    let mut places = Vec::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let (start, size) = (base + section.address(), section.size());
        match section.name() {
            Ok(".text") => places.extend((0..count).map(|_| start + dice.below(size))),
            _ => places.extend((start..start + size).step_by(4)),
        }
    }
    places
}

#[test]
fn script_lines_match_perf_at_every_kind_of_address() {
    let Some(lab) = Lab::new() else { return };
    let mut attr = Attr::new(1, 0);
    attr.set_sample_type(
        sample_type::IDENTIFIER
            | sample_type::IP
            | sample_type::TID
            | sample_type::TIME
            | sample_type::PERIOD,
    );
    attr.set_period(1000);
    for flag in [Flag::Mmap, Flag::Mmap2, Flag::Comm, Flag::SampleIdAll] {
        attr.set(flag, true);
    }
    let mut records = encode::Encoder::new(SampleLayout::new(&attr).trailer_size());
    records.comm(WHO, b"everywhere");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = |part: &str| {
        maps.lines().find_map(|line| line.find('/').map(|at| &line[at..]).filter(|p| p.contains(part)))
    };
    let program = lab.build("deep", DEEP);
    let files = [mapped("/libc.so"), mapped("/ld-linux"), program.to_str()];
    let mut dice = Dice(20_261_122);
    let mut all = Vec::new();
    for (number, path) in files.into_iter().flatten().enumerate() {
        all.extend(places(
            &mut records,
            Path::new(path),
            0x7f00_0000_0000 + ((number as u64) << 32),
            20_000,
            &mut dice,
        ));
    }
    assert!(all.len() > 40_000, "{}", all.len());
    for (number, place) in all.iter().enumerate() {
        let time = 1000 + 10 * number as u64;
        records.sample(USER, &[ID, *place, u64::from(WHO.pid as u32) | (WHO.tid as u64) << 32, time, 1000]);
    }
    let event = RecordedEvent { attr, ids: vec![ID], name: Some("cpu-clock".to_owned()) };
    let path = lab.path("everywhere");
    let mut writer = Writer::create(&path, &[event], &Features::default(), WriteOptions::default()).unwrap();
    writer.append(&[records.bytes()]).unwrap();
    writer.finish(&Features::default()).unwrap();
    scripts_agree(&path, &["-F", "ip,sym,symoff,dso"]);
}
