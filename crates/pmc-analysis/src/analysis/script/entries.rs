//! Converts records to entries: finds the thread, the names and the other fields of each record, and passes
//! the entry to the visitor.

use std::borrow::Cow;

use super::blocks::{BlockLines, BlockReader};
use super::dump::{DumpOrder, Dumper};
use super::instructions::SampledInstructions;
use super::{CODE_FIELDS, NamedRecording, ScriptLine};
use crate::analysis::counts;
use crate::analysis::names::RecordingNames;
use crate::analysis::unwinding::RecordingUnwinder;
use crate::profile::script::{BLOCK_FIELDS, BranchLine, ScriptBranch, ScriptEntry, ScriptField};
use crate::session::location::SampledAddress;
use crate::session::order::SampleUnwinding;
use crate::session::samples::{ChainCompleter, Readings};
use crate::session::{CommId, Session, Timestamp, location, order};
use pmc_perfdata::record::{self, RawRecord, Record, Sample, SampleParts, Thread};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::generic::{BPF_OUTPUT, MAJOR_FAULTS, MINOR_FAULTS, PAGE_FAULTS};
use pmc_sys::abi::sample_type;
use pmc_sys::error::Result;

/// Software events whose address is a data address: all page-fault events, but not the alignment-fault event.
const FAULTS: [u64; 3] = [PAGE_FAULTS, MINOR_FAULTS, MAJOR_FAULTS];

/// The sample fields that are available without parsing the whole sample.
const EARLY: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::ADDR
    | sample_type::ID
    | sample_type::STREAM_ID
    | sample_type::CPU
    | sample_type::PERIOD
    | sample_type::READ
    | sample_type::CALLCHAIN
    | sample_type::STACK_USER
    | sample_type::AUX;

impl NamedRecording<'_> {
    /// Visits all requested samples and records in time order.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if `visit` fails.
    pub fn entries(&self, visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>) -> Result<()> {
        let (session, request) = (&*self.session, self.request);
        let mut unwinder = self.unwinder();
        if request.stitches {
            unwinder = unwinder.stitching(session)?;
        }
        let wants =
            |sample: &Sample<'_>, timestamp| self.wanted.accepts_sample_of(session, sample, timestamp);
        let unwinder = unwinder.if_needed().filter(|_| self.kinds.chains);
        let unwinding = unwinder.map(|unwinder| SampleUnwinding { unwinder, wants: &wants });
        let is_of_data = |event: &pmc_perfdata::perfdata::RecordedEvent| {
            request.everything || event.attr.kind() == kind::SOFTWARE && FAULTS.contains(&event.attr.config())
        };
        let mut maker = ScriptEntryBuilder {
            script: self,
            session,
            names: RecordingNames::new(session).with_symbols(&self.symbols),
            completer: self.completer(),
            readings: Readings::default(),
            has_data: session.reader.events().iter().map(is_of_data).collect(),
            leaves: self.leaves(),
            numbers: Vec::new(),
            branches: Vec::new(),
            instructions: SampledInstructions::default(),
            blocks: BlockReader::default(),
            trace: String::new(),
        };
        let dumper = request.dump.map(|_| Dumper::new(session));
        let tells_ends = counts::holds_slices(session);
        let is_line = |kind| {
            kind == record::kind::SAMPLE
                || request.records.contains(&kind)
                || kind == record::kind::READ && tells_ends
        };
        // Records that the recorder wrote when it finished have no time.
        let has_no_time =
            |raw: &RawRecord<'_>| session.reader.layouts().time(raw).is_none_or(|time| time.0 == 0);
        let mut at_the_end: Vec<u8> = Vec::new();
        let by_time = request.dump != Some(DumpOrder::File);
        order::records_unwound(
            session,
            by_time,
            unwinding,
            |kind| dumper.is_some() || is_line(kind),
            |raw, place, unwound| {
                if let Some(dumper) = &dumper {
                    dumper.show(raw, place, visit)?;
                }
                match raw.kind {
                    record::kind::READ if is_line(raw.kind) && has_no_time(raw) => {
                        at_the_end.extend_from_slice(raw.bytes);
                        Ok(())
                    }
                    record::kind::SAMPLE => maker.sample(raw, place.position, unwound, visit),
                    kind if is_line(kind) => maker.record(raw, place.position, visit),
                    _ => Ok(()),
                }
            },
        )?;
        let mut rest = &at_the_end[..];
        while let Some(raw) = RawRecord::first(rest) {
            maker.record(&raw, Timestamp::MAX, visit)?;
            rest = &rest[raw.bytes.len()..];
        }
        dumper.map_or(Ok(()), |dumper| dumper.visit_damage(visit))
    }
}

impl NamedRecording<'_> {
    /// Returns a completer for use with [`Self::chain_places`].
    pub fn completer(&self) -> ChainCompleter<'_> {
        ChainCompleter::new(self.wanted.ignore_stacks)
            .joining(&self.session.deferred)
            .like_perf(&self.session)
    }

    /// Returns an unwinder for stack copies.
    pub fn unwinder(&self) -> RecordingUnwinder<'_> {
        RecordingUnwinder::new(&self.session, &self.symbols, self.request.max_stack, self.request.joins)
    }

    /// Appends the numbers of the addresses in a sample's call chain, innermost first.
    pub fn chain_places(
        &self,
        completer: &mut ChainCompleter<'_>,
        sample: &Sample<'_>,
        unwound: &[u64],
        timestamp: Timestamp,
        numbers: &mut Vec<u32>,
    ) {
        let thread = sample.thread().unwrap_or_default();
        let epoch = self.session.history.epoch(thread.pid, timestamp);
        let chain = completer.chain(sample, unwound);
        let steps_back = self.kinds.steps_back(&chain);
        location::walk(chain.words, self.request.max_stack, |level, address, is_caller| {
            let sampled = SampledAddress::code(epoch, level, address).returned_to(steps_back && is_caller);
            numbers.extend(self.addresses.find(&sampled));
        });
    }
}

/// Converts records to entries.
struct ScriptEntryBuilder<'a> {
    script: &'a NamedRecording<'a>,
    session: &'a Session,
    names: RecordingNames<'a>,
    completer: ChainCompleter<'a>,
    readings: Readings,
    /// For each event, whether the sampled addresses are data addresses.
    has_data: Vec<bool>,
    leaves: Option<Vec<bool>>,
    numbers: Vec<u32>,
    branches: Vec<ScriptBranch>,
    instructions: SampledInstructions,
    blocks: BlockReader,
    /// The formatted payload of a tracepoint.
    trace: String,
}

impl ScriptEntryBuilder<'_> {
    fn sample(
        &mut self,
        raw: &RawRecord<'_>,
        position: Timestamp,
        unwound: &[u64],
        visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>,
    ) -> Result<()> {
        let (script, request) = (self.script, self.script.request);
        let Some((event, sample)) = self.session.reader.layouts().sample(raw) else { return Ok(()) };
        let fields = script.fields[event];
        let time = sample.time().map(|time| time.0);
        if !script.wanted.takes(&sample, time) || fields.is_empty() && !request.everything {
            return Ok(());
        }
        let timestamp = self.session.timestamp(time, position);
        let thread = sample.thread();
        let who = thread.unwrap_or_default();
        let comm = self.session.history.comm(who.pid, who.tid, timestamp);
        if !script.wanted.takes_thread(who, comm) {
            return Ok(());
        }
        let asked = &self.session.reader.events()[event].attr;
        let sample_type = sample.layout().sample_type();
        let has_chain = sample_type & sample_type::CALLCHAIN != 0 && request.callers;
        self.find_chain(&sample, unwound, timestamp);
        if let Some(leaves) = &self.leaves {
            let leaf = self.numbers.first().and_then(|number| leaves.get(*number as usize));
            if !leaf.copied().unwrap_or(false) {
                return Ok(());
            }
        }
        let parts = if sample_type & !EARLY != 0 { sample.parts() } else { None }.unwrap_or_default();
        self.find_branches(&parts, who, timestamp);
        let comm = comm.and_then(|comm| self.names.named(comm.0));
        let comm = comm.unwrap_or_else(|| format!(":{}", who.tid).into());
        let payload = parts.raw.filter(|_| {
            asked.kind() == kind::TRACEPOINT && (request.everything || fields.has(ScriptField::Trace))
        });
        self.trace.clear();
        let has_trace = payload.is_some_and(|bytes| self.names.trace(event, bytes, &mut self.trace));
        let named_fields = payload.filter(|_| request.trace_fields);
        let trace_fields = named_fields.and_then(|bytes| self.names.trace_fields(event, bytes));
        let is_bpf = asked.kind() == kind::SOFTWARE && asked.config() == BPF_OUTPUT;
        let cgroup = parts.cgroup.map(|id| self.cgroup(id));
        let period = sample.period().unwrap_or_else(|| asked.period());
        let blocks = match fields.has_any(&BLOCK_FIELDS) {
            true => self.blocks(&sample, asked.branch_sample_type(), who, timestamp),
            false => Vec::new(),
        };
        let leaf = self.numbers.first().filter(|_| fields.has_any(&CODE_FIELDS));
        let addr_at = self.data_address(event, &sample, who, timestamp);
        let entry = ScriptEntry {
            comm: &comm,
            pid: thread.map(|thread| thread.pid),
            tid: thread.map(|thread| thread.tid),
            cpu: sample.cpu(),
            time,
            period: Some(period),
            event,
            misc: raw.misc,
            addr: sample.addr(),
            addr_at,
            parts,
            stream_id: sample.stream_id(),
            cgroup: cgroup.as_deref(),
            branches: &self.branches,
            trace: has_trace.then_some(&self.trace),
            trace_fields: trace_fields.as_deref().unwrap_or_default(),
            payload: parts.raw.filter(|_| asked.kind() == kind::TRACEPOINT),
            bpf: parts.raw.filter(|_| is_bpf),
            places: &self.numbers,
            has_chain,
            blocks: &blocks,
            instruction: leaf.and_then(|number| self.instructions.at(script, *number)),
        };
        if sample_type & sample_type::READ == 0 {
            return visit(ScriptLine::Sample(&entry));
        }
        let members = self.readings.events(self.session.reader.layouts(), event, &sample).unwrap_or_default();
        for (event, period) in members {
            let entry = ScriptEntry { event, period: Some(period), ..entry };
            visit(ScriptLine::Sample(&entry))?;
        }
        Ok(())
    }

    fn find_chain(&mut self, sample: &Sample<'_>, unwound: &[u64], timestamp: Timestamp) {
        self.numbers.clear();
        if self.script.kinds.chains {
            self.script.chain_places(&mut self.completer, sample, unwound, timestamp, &mut self.numbers);
        }
    }

    fn find_branches(&mut self, parts: &SampleParts<'_>, who: Thread, timestamp: Timestamp) {
        let script = self.script;
        self.branches.clear();
        let Some(branches) = parts.branches.filter(|_| script.kinds.branches || script.request.everything)
        else {
            return;
        };
        let epoch = self.session.history.epoch(who.pid, timestamp);
        let number = |address| {
            script
                .addresses
                .find(&SampledAddress::in_user_or_kernel(epoch, address, false))
                .unwrap_or(u32::MAX)
        };
        self.branches.extend(branches.iter().map(|branch| ScriptBranch {
            from: branch.from,
            to: branch.to,
            flags: branch.flags,
            from_at: number(branch.from),
            to_at: number(branch.to),
        }));
    }

    fn blocks(
        &mut self,
        sample: &Sample<'_>,
        branch_types: u64,
        who: Thread,
        timestamp: Timestamp,
    ) -> Vec<BranchLine> {
        let lines = BlockLines::new(self.script, self.session.history.epoch(who.pid, timestamp));
        let shown = self.branches.len().min(self.script.request.max_blocks.saturating_add(1));
        lines.of_sample(&mut self.blocks, &self.branches[..shown], sample.ip(), branch_types)
    }

    fn data_address(
        &self,
        event: usize,
        sample: &Sample<'_>,
        who: Thread,
        timestamp: Timestamp,
    ) -> Option<u32> {
        if !self.script.kinds.data || !self.has_data[event] {
            return None;
        }
        let epoch = self.session.history.data_epoch(who.pid, timestamp);
        self.script.addresses.find(&SampledAddress::in_user_or_kernel(epoch, sample.addr()?, true))
    }

    fn cgroup(&self, id: u64) -> String {
        match self.session.cgroups.get(&id) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => "unknown".to_owned(),
        }
    }

    /// Visits a record that is not a sample. The thread is taken from the record's contents or its trailer.
    fn record(
        &mut self,
        raw: &RawRecord<'_>,
        position: Timestamp,
        visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(record) = raw.parse() else { return Ok(()) };
        let id = self.session.reader.layouts().sample_id(raw);
        let owner = match &record {
            Record::Mmap(map) => Some(map.thread),
            Record::Mmap2(map) => Some(map.map.thread),
            Record::Comm(comm) => Some(comm.thread),
            Record::Fork(task) | Record::Exit(task) => Some(task.thread),
            Record::Namespaces(spaces) => Some(spaces.thread),
            Record::Read(read) => Some(read.thread),
            _ => id.thread,
        };
        let who = owner.unwrap_or_default();
        let time = id.time.map(|time| time.0);
        let is_round = matches!(record, Record::FinishedRound);
        let wanted = &self.script.wanted;
        let in_time = wanted.times.is_empty()
            || wanted.times.iter().any(|(from, to)| (*from..=*to).contains(&time.unwrap_or(0)));
        let timestamp = self.session.timestamp(time, position);
        // A task starts with its parent's name; a record with its own name may have the same time.
        let named = if let Record::Fork(task) = &record { task.parent } else { who };
        let number = self.session.history.comm(named.pid, named.tid, timestamp);
        if !is_round && (!in_time || !wanted.takes_thread(who, number)) {
            return Ok(());
        }
        let own = match &record {
            Record::Comm(comm) => Some(String::from_utf8_lossy(comm.comm).into_owned()),
            _ => None,
        };
        let named = own.or_else(|| number.and_then(|CommId(n)| self.names.named(n)).map(Cow::into_owned));
        let comm = named.unwrap_or_else(|| format!(":{}", who.tid));
        let mut event = id.id.and_then(|id| self.session.reader.layouts().event_of(id)).unwrap_or(0);
        let mut counted = None;
        if let Record::Read(_) = record {
            let Some(read) = self.session.reader.layouts().counter_read(raw) else { return Ok(()) };
            event = read.event;
            let count = self.readings.last(who, &read);
            let is_asked =
                self.script.fields[event].has(ScriptField::Period) || self.script.request.everything;
            if count == 0 || !is_asked {
                return Ok(());
            }
            counted = Some(count);
        }
        let entry = ScriptEntry {
            comm: &comm,
            pid: id.thread.or(owner).map(|thread| thread.pid),
            tid: id.thread.or(owner).map(|thread| thread.tid),
            cpu: id.cpu,
            time,
            event,
            period: counted,
            misc: raw.misc,
            ..ScriptEntry::default()
        };
        visit(ScriptLine::Record(&entry, raw.kind, &record))
    }
}
