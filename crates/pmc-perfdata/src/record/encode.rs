//! Encodes the records with which a recorder describes the state before the recording.
//!
//! Receives typed fields; appends the bytes that the kernel would have written, followed by a `sample_id` of
//! zeros, as perf does when it synthesizes records. Their time of 0 sorts them before all other records. The
//! recorder collects the data.
//!
//! ```text
//! | type | misc| size| fields | text, NUL, padded to 8 | zeros: the sample_id |
//! ```

use super::kernel::{MappedFileId, Mmap2, Namespaces, Task, Thread, Throttle};
use super::user::{Auxtrace, StatCount, StatRound, TimeConv};
use super::{HEADER, kind};
use pmc_sys::abi::misc;

/// Maximum length of a string, which leaves room for the other fields of its record.
const LONGEST_TEXT: usize = 1 << 15;

/// Maximum number of threads in one [`Encoder::thread_map`], since a record's size is a 16-bit field.
pub const MOST_THREADS: usize = (u16::MAX as usize - 16) / 24;

/// Content of an [`Encoder::event_update`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventUpdateField<'a> {
    /// The unit of the counts.
    Unit(&'a str),
    /// The factor by which to multiply the counts.
    Scale(f64),
    /// The event's name.
    Name(&'a str),
    /// The CPUs on which the event counts.
    Cpus(&'a [u32]),
}

/// Encodes consecutive records into a buffer.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
    trailer: usize,
    start: usize,
}

impl Encoder {
    /// Creates an encoder. `trailer` is the size of the `sample_id` in every record, in bytes.
    pub fn new(trailer: usize) -> Self {
        Self { out: Vec::new(), trailer, start: 0 }
    }

    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Drops the bytes written so far.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    fn begin(&mut self, kind: u32, misc: u16) {
        self.start = self.out.len();
        self.out.extend(kind.to_ne_bytes());
        self.out.extend(misc.to_ne_bytes());
        self.out.extend(0u16.to_ne_bytes());
    }

    fn thread(&mut self, thread: Thread) {
        self.out.extend(thread.pid.to_ne_bytes());
        self.out.extend(thread.tid.to_ne_bytes());
    }

    fn word(&mut self, word: u64) {
        self.out.extend(word.to_ne_bytes());
    }

    fn half(&mut self, half: u32) {
        self.out.extend(half.to_ne_bytes());
    }

    /// Writes the string with at least one NUL, padded to a multiple of 8 bytes.
    fn text(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(LONGEST_TEXT)];
        self.out.extend(text);
        self.out.resize(self.out.len() + (text.len() + 1).next_multiple_of(8) - text.len(), 0);
    }

    fn end(&mut self, has_trailer: bool) {
        if has_trailer {
            self.out.resize(self.out.len() + self.trailer, 0);
        }
        let size = (self.out.len() - self.start) as u16;
        self.out[self.start + HEADER - 2..self.start + HEADER].copy_from_slice(&size.to_ne_bytes());
    }

    /// Returns the only record written, with this `sample_id` instead of zeros.
    pub fn with_trailer(mut self, trailer: &[u8]) -> Vec<u8> {
        self.out.truncate(self.out.len() - self.trailer);
        self.out.extend(trailer);
        let size = (self.out.len() - self.start) as u16;
        self.out[self.start + HEADER - 2..self.start + HEADER].copy_from_slice(&size.to_ne_bytes());
        self.out
    }

    /// Writes a thread's name.
    pub fn comm(&mut self, thread: Thread, comm: &[u8]) {
        // The kernel's field has 16 bytes.
        self.long_comm(thread, &comm[..comm.len().min(15)]);
    }

    /// Writes a thread's name of any length, which only other profilers' threads have.
    pub fn long_comm(&mut self, thread: Thread, comm: &[u8]) {
        self.begin(kind::COMM, 0);
        self.thread(thread);
        self.text(comm);
        self.end(true);
    }

    /// Writes a sample with this CPU mode (the number of a [`super::CpuMode`]). `fields` are the sample's
    /// words, in the order of the bits of `sample_type`.
    pub fn sample(&mut self, mode: u16, fields: &[u64]) {
        self.begin(kind::SAMPLE, mode);
        fields.iter().for_each(|field| self.word(*field));
        self.end(false);
    }

    /// Writes a thread and its parent.
    pub fn fork(&mut self, task: &Task) {
        self.begin(kind::FORK, 0);
        for id in [task.thread.pid, task.parent.pid, task.thread.tid, task.parent.tid] {
            self.out.extend(id.to_ne_bytes());
        }
        self.word(task.time.ns());
        self.end(true);
    }

    /// Writes a mapping of a process.
    pub fn mmap2(&mut self, mmap: &Mmap2<'_>) {
        let data = if mmap.map.is_data { misc::MMAP_DATA } else { 0 };
        let by_build_id = matches!(mmap.file, MappedFileId::BuildId(_));
        self.begin(kind::MMAP2, USER | data | if by_build_id { misc::MMAP_BUILD_ID } else { 0 });
        self.thread(mmap.map.thread);
        self.word(mmap.map.addr);
        self.word(mmap.map.len);
        self.word(mmap.map.pgoff);
        match mmap.file {
            MappedFileId::Inode { major, minor, inode, generation } => {
                self.half(major);
                self.half(minor);
                self.word(inode);
                self.word(generation);
            }
            MappedFileId::BuildId(id) => {
                let id = &id[..id.len().min(20)];
                let mut field = [0; 24];
                field[0] = id.len() as u8;
                field[4..4 + id.len()].copy_from_slice(id);
                self.out.extend(field);
            }
        }
        self.half(mmap.prot);
        self.half(mmap.flags);
        self.text(mmap.map.name);
        self.end(true);
    }

    /// Writes a mapping of the kernel's own code or of a module.
    pub fn kernel_mmap(&mut self, addr: u64, len: u64, pgoff: u64, name: &[u8]) {
        self.begin(kind::MMAP, KERNEL);
        self.thread(Thread { pid: -1, tid: 0 });
        self.word(addr);
        self.word(len);
        self.word(pgoff);
        self.text(name);
        self.end(true);
    }

    /// Writes a task's namespaces: device and inode of net, uts, ipc, pid, user, mnt, cgroup.
    pub fn namespaces(&mut self, namespaces: &Namespaces<'_>) {
        self.begin(kind::NAMESPACES, 0);
        self.thread(namespaces.thread);
        self.word(namespaces.links.len() as u64 / 2);
        self.out.extend(namespaces.links.as_bytes());
        self.end(true);
    }

    /// Writes a cgroup's id and path.
    pub fn cgroup(&mut self, id: u64, path: &[u8]) {
        self.begin(kind::CGROUP, 0);
        self.word(id);
        self.text(path);
        self.end(true);
    }

    /// Writes the number of lost records that the kernel did not report in the ring.
    pub fn lost(&mut self, id: u64, lost: u64) {
        self.begin(kind::LOST, 0);
        self.word(id);
        self.word(lost);
        self.end(true);
    }

    /// Writes the number of samples that an event lost in total, as perf does at the end of a recording.
    /// `identifier` is the event's id, if the trailer ends with it.
    pub fn lost_samples(&mut self, lost: u64, identifier: Option<u64>) {
        self.begin(kind::LOST_SAMPLES, 0);
        self.word(lost);
        self.end_with(identifier);
    }

    /// Writes a record that an event was paused or resumed. The time is on the recording's clock.
    pub fn throttle(&mut self, throttle: &Throttle, is_off: bool) {
        self.begin(if is_off { kind::THROTTLE } else { kind::UNTHROTTLE }, 0);
        [throttle.time.0, throttle.id, throttle.stream_id].into_iter().for_each(|word| self.word(word));
        self.end(true);
    }

    /// Writes a thread's counts. `words` has the layout that the event's `read_format` selects; `identifier`
    /// is the event's id, if the trailer ends with it.
    pub fn read(&mut self, thread: Thread, words: &[u64], identifier: Option<u64>) {
        self.begin(kind::READ, 0);
        self.thread(thread);
        words.iter().for_each(|&word| self.word(word));
        self.end_with(identifier);
    }

    /// Ends a record whose trailer ends with this event id, if any.
    fn end_with(&mut self, identifier: Option<u64>) {
        self.end(true);
        if let Some(id) = identifier.filter(|_| self.trailer >= size_of::<u64>()) {
            let at = self.out.len() - size_of::<u64>();
            self.out[at..].copy_from_slice(&id.to_ne_bytes());
        }
    }

    /// Writes the ring, CPU and thread of each id (−1: any), in as many records as needed.
    pub fn id_index(&mut self, rows: &[[u64; 4]]) {
        for rows in rows.chunks(1000) {
            self.begin(kind::ID_INDEX, 0);
            self.word(rows.len() as u64);
            rows.as_flattened().iter().for_each(|&word| self.word(word));
            self.end(false);
        }
    }

    /// Writes the settings of `stat record`: pairs of a term's number in perf and its value.
    pub fn stat_config(&mut self, terms: &[[u64; 2]]) {
        self.begin(kind::STAT_CONFIG, 0);
        self.word(terms.len() as u64);
        terms.as_flattened().iter().for_each(|&word| self.word(word));
        self.end(false);
    }

    /// Writes the counted threads by id (−1: any thread on the CPUs) and name; at most [`MOST_THREADS`].
    pub fn thread_map<'t>(&mut self, threads: impl ExactSizeIterator<Item = (i64, &'t str)>) {
        self.begin(kind::THREAD_MAP, 0);
        self.word(threads.len() as u64);
        for (tid, comm) in threads {
            self.word(tid as u64);
            let mut name = [0; 16];
            let comm = &comm.as_bytes()[..comm.len().min(name.len() - 1)];
            name[..comm.len()].copy_from_slice(comm);
            self.out.extend(name);
        }
        self.end(false);
    }

    /// Writes the counted CPUs; an empty list means any CPU.
    pub fn cpu_map(&mut self, cpus: &[u32]) {
        self.begin(kind::CPU_MAP, 0);
        self.cpus(cpus);
        self.end(false);
    }

    /// Writes additional properties of the event with this id.
    pub fn event_update(&mut self, id: u64, what: &EventUpdateField<'_>) {
        self.begin(kind::EVENT_UPDATE, 0);
        match what {
            EventUpdateField::Unit(unit) => self.update(0, id, |it| it.text(unit.as_bytes())),
            EventUpdateField::Scale(scale) => self.update(1, id, |it| it.word(scale.to_bits())),
            EventUpdateField::Name(name) => self.update(2, id, |it| it.text(name.as_bytes())),
            EventUpdateField::Cpus(cpus) => self.update(3, id, |it| it.cpus(cpus)),
        }
        self.end(false);
    }

    fn update(&mut self, what: u64, id: u64, value: impl FnOnce(&mut Self)) {
        self.word(what);
        self.word(id);
        value(self);
    }

    /// Writes a list of CPUs, two bytes each, padded.
    fn cpus(&mut self, cpus: &[u32]) {
        const ANY: u16 = u16::MAX;
        let start = self.out.len();
        let numbers = cpus.iter().map(|&cpu| cpu as u16);
        let any = cpus.is_empty().then_some(ANY);
        let head = [0, numbers.len().max(1) as u16];
        self.out.extend(head.into_iter().chain(numbers).chain(any).flat_map(u16::to_ne_bytes));
        let used = self.out.len() - start;
        self.out.resize(start + used.next_multiple_of(8), 0);
    }

    /// Writes one count.
    pub fn stat(&mut self, stat: &StatCount) {
        self.begin(kind::STAT, 0);
        self.word(stat.id);
        self.half(stat.cpu);
        self.half(stat.thread);
        [stat.value, stat.enabled, stat.running].into_iter().for_each(|word| self.word(word));
        self.end(false);
    }

    /// Writes the record that ends one round of `STAT` records.
    pub fn stat_round(&mut self, round: StatRound) {
        self.begin(kind::STAT_ROUND, 0);
        self.word(round.is_final.into());
        self.word(round.time);
        self.end(false);
    }

    /// Writes the parameters for converting the CPU's TSC to perf's timestamps.
    pub fn time_conv(&mut self, times: &TimeConv) {
        let more = times.more.unwrap_or_default();
        self.begin(kind::TIME_CONV, 0);
        [times.shift, times.mult, times.zero, more.cycles, more.mask]
            .into_iter()
            .for_each(|word| self.word(word));
        self.out.extend([u8::from(more.has_zero), u8::from(more.is_short), 0, 0, 0, 0, 0, 0]);
        self.end(false);
    }

    /// Writes the settings with which `decoder`, one of perf's decoders, decodes the traces that follow.
    pub fn auxtrace_info(&mut self, decoder: u32, private: &[u64]) {
        self.begin(kind::AUXTRACE_INFO, 0);
        self.half(decoder);
        self.half(0);
        private.iter().for_each(|&word| self.word(word));
        self.end(false);
    }

    /// Writes the header of one chunk of trace data. The caller appends the chunk itself, `trace.size` bytes.
    pub fn auxtrace(&mut self, trace: &Auxtrace) {
        self.begin(kind::AUXTRACE, 0);
        [trace.size, trace.offset, trace.reference].into_iter().for_each(|word| self.word(word));
        [trace.idx, trace.tid, trace.cpu, 0].into_iter().for_each(|half| self.half(half));
        self.end(false);
    }

    /// Writes the record that ends a pass over all rings.
    pub fn finished_round(&mut self) {
        self.begin(kind::FINISHED_ROUND, 0);
        self.end(false);
    }

    /// Writes the record that ends the synthesized records.
    pub fn finished_init(&mut self) {
        self.begin(kind::FINISHED_INIT, 0);
        self.end(false);
    }
}

/// `misc` of records about the kernel, and about processes.
const KERNEL: u16 = 1;
const USER: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EventUpdate, Mmap, Record, Records, Update};
    use pmc_text::units::PerfTime;

    #[test]
    fn encoded_records_parse_back() {
        let thread = Thread { pid: 7, tid: 8 };
        let map =
            Mmap { thread, addr: 0x1000, len: 0x2000, pgoff: 0x3000, is_data: false, name: b"/bin/\xff" };
        let by_id = Mmap2 { map, file: MappedFileId::BuildId(&[1, 2, 3]), prot: 5, flags: 2 };
        let inode = MappedFileId::Inode { major: 8, minor: 1, inode: 77, generation: 0 };
        let by_inode = Mmap2 { file: inode, map: Mmap { is_data: true, ..map }, ..by_id };
        let task = Task { thread, parent: Thread { pid: 1, tid: 2 }, time: PerfTime(0) };
        let mut encoder = Encoder::new(24);
        encoder.comm(thread, b"a name that is far too long");
        encoder.fork(&task);
        encoder.mmap2(&by_id);
        encoder.mmap2(&by_inode);
        encoder.kernel_mmap(1 << 63, 5, 6, b"[kernel.kallsyms]_text");
        encoder.finished_round();
        let mut records = Records::new(encoder.bytes());
        let parsed: Vec<_> = records.by_ref().map(|r| (r.bytes.len() % 8, r.parse())).collect();
        assert!(records.rest().is_empty() && parsed.iter().all(|(rest, _)| *rest == 0));
        let parsed: Vec<Record<'_>> = parsed.into_iter().filter_map(|(_, record)| record).collect();
        assert!(matches!(&parsed[0], Record::Comm(comm) if comm.comm == b"a name that is "));
        assert_eq!(parsed[1..4], [Record::Fork(task), Record::Mmap2(by_id), Record::Mmap2(by_inode)]);
        assert!(matches!(&parsed[4], Record::Mmap(map) if map.thread.pid == -1 && map.len == 5));
        assert_eq!(parsed[5], Record::FinishedRound);
    }

    #[test]
    fn encoded_counts_parse_back() {
        let stat = StatCount { id: 5, cpu: 3, thread: 1, value: 10, enabled: 20, running: 15 };
        let round = StatRound { is_final: true, time: 99 };
        let mut encoder = Encoder::new(24);
        encoder.stat_config(&[[0, 1], [2, 1]]);
        encoder.thread_map([(-1, ""), (7, "a name that is far too long")].into_iter());
        encoder.cpu_map(&[]);
        encoder.cpu_map(&[0, 2, 5]);
        encoder.event_update(5, &EventUpdateField::Unit("msec"));
        encoder.event_update(5, &EventUpdateField::Scale(1e-6));
        encoder.event_update(5, &EventUpdateField::Name("msr/tsc/"));
        encoder.event_update(5, &EventUpdateField::Cpus(&[4]));
        encoder.stat(&stat);
        encoder.stat_round(round);
        let mut records = Records::new(encoder.bytes());
        let parsed: Vec<_> = records.by_ref().map(|r| (r.bytes.len() % 8, r.parse())).collect();
        assert!(records.rest().is_empty() && parsed.iter().all(|(rest, _)| *rest == 0));
        let parsed: Vec<Record<'_>> = parsed.into_iter().filter_map(|(_, record)| record).collect();
        assert!(matches!(&parsed[0], Record::StatConfig(terms)
            if terms.rows().collect::<Vec<[u64; 2]>>() == [[0, 1], [2, 1]]));
        assert!(matches!(&parsed[1], Record::ThreadMap(map)
            if map.iter().collect::<Vec<_>>() == [(-1, &b""[..]), (7, b"a name that is ")]));
        let cpus = |record: &Record<'_>| match record {
            Record::CpuMap(map) => map.cpus(),
            Record::EventUpdate(EventUpdate { id: 5, what: Update::Cpus(map) }) => map.cpus(),
            other => panic!("{other:?}"),
        };
        assert_eq!([2, 3, 7].map(|at| cpus(&parsed[at])), [vec![-1], vec![0, 2, 5], vec![4]]);
        let update = |what| Record::EventUpdate(EventUpdate { id: 5, what });
        let texts = [Update::Unit(b"msec"), Update::Scale(1e-6), Update::Name(b"msr/tsc/")].map(update);
        assert_eq!(parsed[4..7], texts);
        assert_eq!(parsed[8..], [Record::Stat(stat), Record::StatRound(round)]);
    }
}
