//! The columns of samples: for each field, its text and its JSON.
//!
//! [`COLUMNS`] has a row for each [`ScriptField`], in the order in which the text shows them. A field that
//! only changes the text of another column has no text of its own.

use std::io::Write as _;

use serde_json::{Value, json};

use super::digits::{decimal, hex, padded, signed};
use super::places::{dso, symbol};
use super::{ScriptLayout, ScriptWriter, parts};
use ScriptField::{
    Addr, BpfOutput, BrStack, BrStackDisasm, BrStackInsn, BrStackInsnLen, BrStackOff, BrStackSym, CallIndent,
    Cgroup, CodePageSize, Comm, Cpu, DataPageSize, DataSrc, Disasm, DsOff, Dso, Event, Flags, InsLat, Insn,
    InsnLen, IntrRegs, Ip, Ipc, MachinePid, Misc, Period, PhysAddr, Pid, RetireLat, SrcCode, SrcLine,
    StreamId, Sym, SymOff, Synth, Tid, Time, Tod, Trace, UserRegs, Vcpu, Weight,
};
use pmc_analysis::profile::script::{
    AddressFunction, AddressFunctions, ScriptBranch, ScriptEntry, ScriptField, ScriptFields,
};
use pmc_perfdata::record::decode::{DataSource, page_size};
use pmc_perfdata::record::sample::SampledRegisters;
use pmc_text::text::{self, clean};

/// A column.
pub(super) struct ScriptColumn {
    pub(super) field: ScriptField,
    /// Writes the text to the writer's buffer.
    pub(super) text: Option<ColumnText>,
    pub(super) json: Option<ColumnJson>,
}

/// Writes the text of a sample's column. Also receives the other fields that are shown.
pub(super) type ColumnText = fn(&mut ScriptWriter<'_>, &ScriptEntry<'_>, ScriptFields);

/// A value in a JSON object.
pub(super) struct ColumnJson {
    pub(super) name: &'static str,
    /// Returns the value; `None` if the sample does not have it.
    pub(super) value: fn(&ScriptEntry<'_>, JsonContext<'_>) -> Option<Value>,
    /// Whether a missing value is written as `null` instead of being omitted.
    pub(super) is_nullable: bool,
}

/// The recording's data that JSON needs.
#[derive(Clone, Copy)]
pub(super) struct JsonContext<'a> {
    pub(super) layout: &'a ScriptLayout,
    pub(super) places: &'a AddressFunctions,
}

type JsonValue = fn(&ScriptEntry<'_>, JsonContext<'_>) -> Option<Value>;

impl ScriptColumn {
    const fn new(field: ScriptField, text: ColumnText) -> Self {
        Self { field, text: Some(text), json: None }
    }

    /// Creates a column whose text is always empty, or that only changes another column.
    const fn without_text(field: ScriptField) -> Self {
        Self { field, text: None, json: None }
    }

    /// Adds a value that is `null` if it was not recorded.
    const fn json(self, name: &'static str, value: JsonValue) -> Self {
        Self { json: Some(ColumnJson { name, value, is_nullable: true }), ..self }
    }

    /// Adds a value that is omitted if it was not recorded.
    const fn rare_json(self, name: &'static str, value: JsonValue) -> Self {
        Self { json: Some(ColumnJson { name, value, is_nullable: false }), ..self }
    }
}

/// The columns at the start of a line. Records other than samples also have them.
pub(super) const START: &[ScriptField] = &[Comm, Pid, Tid, Cpu, Misc, Tod, Time];

/// All columns, in the order of the text.
pub(super) const COLUMNS: [ScriptColumn; ScriptField::ALL.len()] = [
    ScriptColumn::new(Comm, comm).json("comm", |entry, _| Some(entry.comm.into())),
    ScriptColumn::new(Pid, pid).json("pid", |entry, _| entry.pid.map(Value::from)),
    ScriptColumn::new(Tid, tid).json("tid", |entry, _| entry.tid.map(Value::from)),
    ScriptColumn::new(Cpu, cpu).json("cpu", |entry, _| entry.cpu.map(Value::from)),
    ScriptColumn::new(Misc, |writer, entry, _| writer.misc(entry.misc)),
    ScriptColumn::new(Tod, time_of_day),
    ScriptColumn::new(Time, time).json("time", |entry, _| entry.time.map(Value::from)),
    ScriptColumn::new(Period, period).json("period", |entry, _| entry.period.map(Value::from)),
    ScriptColumn::new(Event, event)
        .json("event", |entry, context| Some(context.layout.events[entry.event].as_str().into())),
    ScriptColumn::new(Flags, flags),
    ScriptColumn::new(Trace, trace).json("trace", |entry, _| entry.trace.map(Value::from)),
    ScriptColumn::new(Addr, addr).json("addr", |entry, _| entry.addr.map(Value::from)),
    ScriptColumn::new(DataSrc, data_src)
        .rare_json("data_src", |entry, _| entry.parts.data_src.map(Value::from)),
    ScriptColumn::new(Weight, weight)
        .json("weight", |entry, _| entry.parts.weight.map(|weight| weight.value().into())),
    ScriptColumn::new(InsLat, instruction_latency),
    ScriptColumn::new(RetireLat, retire_latency),
    ScriptColumn::new(Ip, |writer, entry, fields| writer.places(entry, fields)).json("stack", stack),
    ScriptColumn::new(Sym, places_without_address).rare_json("addr_symbol", addr_symbol),
    ScriptColumn::without_text(SymOff),
    ScriptColumn::without_text(Dso),
    ScriptColumn::without_text(DsOff),
    ScriptColumn::without_text(SrcLine),
    ScriptColumn::new(IntrRegs, interrupt_registers)
        .rare_json("intr_regs", |entry, context| Some(registers(entry.parts.intr_regs?, context.layout))),
    ScriptColumn::new(UserRegs, user_registers)
        .rare_json("user_regs", |entry, context| Some(registers(entry.parts.user_regs?, context.layout))),
    ScriptColumn::new(BrStack, branches).rare_json("branches", branches_json),
    ScriptColumn::new(BrStackOff, branch_offsets),
    ScriptColumn::new(BrStackSym, branch_symbols),
    ScriptColumn::new(BpfOutput, bpf_output),
    ScriptColumn::new(InsnLen, instruction_length),
    ScriptColumn::new(Insn, instruction_bytes)
        .rare_json("insn", |entry, _| Some(text::hex(&entry.instruction?.bytes, " ").into())),
    ScriptColumn::new(Disasm, disassembly)
        .rare_json("disasm", |entry, _| Some(parts::disassembly(entry.instruction?).into())),
    ScriptColumn::new(BrStackInsn, blocks),
    ScriptColumn::new(BrStackInsnLen, block_lengths),
    ScriptColumn::new(BrStackDisasm, block_disassembly),
    ScriptColumn::new(PhysAddr, physical_address)
        .json("phys_addr", |entry, _| entry.parts.phys_addr.map(Value::from)),
    ScriptColumn::new(DataPageSize, data_page_size)
        .rare_json("data_page_size", |entry, _| entry.parts.data_page_size.map(Value::from)),
    ScriptColumn::new(CodePageSize, code_page_size)
        .rare_json("code_page_size", |entry, _| entry.parts.code_page_size.map(Value::from)),
    ScriptColumn::new(StreamId, stream_id)
        .rare_json("stream_id", |entry, _| entry.stream_id.map(Value::from)),
    ScriptColumn::new(Cgroup, cgroup).rare_json("cgroup", |entry, _| entry.cgroup.map(Value::from)),
    // Printed below the line.
    ScriptColumn::without_text(SrcCode),
    // pmc reads neither instruction traces nor samples of guests.
    ScriptColumn::without_text(Synth),
    ScriptColumn::without_text(Ipc),
    ScriptColumn::without_text(CallIndent),
    ScriptColumn::without_text(MachinePid),
    ScriptColumn::without_text(Vcpu),
];

fn comm(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    let comm = clean(entry.comm);
    if fields.has(Ip) && writer.layout.has_chains {
        writer.out.extend_from_slice(comm.as_bytes());
    } else {
        padded(&mut writer.out, comm.as_bytes(), 16, b' ');
    }
    writer.out.push(b' ');
}

fn pid(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    let Some(pid) = entry.pid else { return };
    signed(&mut writer.out, pid, 5);
    writer.out.push(if entry.tid.is_some() && fields.has(Tid) { b'/' } else { b' ' });
}

fn tid(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    let Some(tid) = entry.tid else { return };
    if entry.pid.is_none() || !fields.has(Pid) {
        signed(&mut writer.out, tid, 5);
        writer.out.push(b' ');
        return;
    }
    let start = writer.out.len();
    signed(&mut writer.out, tid, 0);
    let used = writer.out.len() - start;
    writer.out.resize(writer.out.len() + 5usize.saturating_sub(used) + 1, b' ');
}

fn cpu(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    let Some(cpu) = entry.cpu else { return };
    writer.out.push(b'[');
    decimal(&mut writer.out, cpu.into(), 3, b'0');
    writer.out.extend(b"] ");
}

fn time_of_day(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some((time, offset)) = entry.time.zip(writer.layout.wall) {
        parts::time_of_day(&mut writer.out, time, offset, writer.layout.nanoseconds);
    }
}

fn time(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    let Some(time) = entry.time else { return };
    let time = writer.shown(time);
    let (seconds, ns) = (time / 1_000_000_000, time % 1_000_000_000);
    decimal(&mut writer.out, seconds, 5, b' ');
    writer.out.push(b'.');
    match writer.layout.nanoseconds {
        true => decimal(&mut writer.out, ns, 9, b'0'),
        false => decimal(&mut writer.out, ns / 1000, 6, b'0'),
    }
    writer.out.extend(b": ");
}

fn period(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    let Some(period) = entry.period else { return };
    decimal(&mut writer.out, period, 10, b' ');
    writer.out.push(b' ');
}

fn event(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    padded(&mut writer.out, writer.events[entry.event].as_bytes(), writer.width, b' ');
    writer.out.extend(b": ");
}

/// Leaves the flags blank: they come from instruction traces, which pmc does not read.
fn flags(writer: &mut ScriptWriter<'_>, _: &ScriptEntry<'_>, _: ScriptFields) {
    writer.out.resize(writer.out.len() + parts::FLAGS, b' ');
}

fn trace(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(trace) = entry.trace {
        writer.out.extend_from_slice(clean(trace).as_bytes());
    }
}

fn addr(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    let Some(addr) = entry.addr else { return };
    hex(&mut writer.out, addr, 16);
    let Some(number) = entry.addr_at else { return };
    let (place, nothing) = (writer.places.at(number).last(), AddressFunction::default());
    if fields.has(Sym) {
        writer.out.push(b' ');
        symbol(&mut writer.out, place.unwrap_or(&nothing), fields.has(SymOff));
    }
    if fields.has(Dso) {
        writer.out.push(b' ');
        dso(&mut writer.out, place);
    }
}

fn data_src(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    let Some(source) = entry.parts.data_src else { return };
    let text = format!("{source:16x} {}", DataSource(source).in_perfs_words());
    // As in perf, pad to the widest value so far.
    writer.data_src_width = writer.data_src_width.max(text.len());
    let _ = write!(writer.out, "{text:<0$}", writer.data_src_width);
}

fn weight(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(weight) = entry.parts.weight {
        decimal(&mut writer.out, weight.value(), 16, b' ');
    }
}

fn instruction_latency(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(weight) = entry.parts.weight {
        decimal(&mut writer.out, weight.more().map_or(0, |(latency, _)| latency).into(), 16, b' ');
    }
}

fn retire_latency(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(weight) = entry.parts.weight {
        decimal(&mut writer.out, weight.more().map_or(0, |(_, latency)| latency).into(), 16, b' ');
    }
}

/// Writes the functions if the column of addresses, which includes them, is not shown.
fn places_without_address(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !fields.has_any(&[Ip, Addr]) {
        writer.places(entry, fields);
    }
}

fn interrupt_registers(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    entry.parts.intr_regs.iter().for_each(|registers| writer.registers(registers));
}

fn user_registers(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    entry.parts.user_regs.iter().for_each(|registers| writer.registers(registers));
}

fn branches(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    entry.branches.iter().for_each(|branch| writer.branch(branch, fields));
}

fn branch_offsets(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !fields.has_any(&[BrStack, BrStackSym]) {
        branches(writer, entry, fields);
    }
}

fn branch_symbols(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !fields.has(BrStack) {
        entry.branches.iter().for_each(|branch| writer.named_branch(branch, fields));
    }
}

fn bpf_output(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    entry.bpf.iter().for_each(|bytes| parts::bpf_output(&mut writer.out, bytes));
}

fn instruction_length(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    let _ = write!(writer.out, " ilen: {}", entry.instruction.map_or(0, |found| found.bytes.len()));
}

fn instruction_bytes(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(instruction) = entry.instruction {
        let _ = write!(writer.out, " insn: {}", text::hex(&instruction.bytes, " "));
    }
}

fn disassembly(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(instruction) = entry.instruction {
        let _ = write!(writer.out, "\t\t{}", clean(&parts::disassembly(instruction)));
    }
}

/// Writes the code between branches, with the other columns for it.
fn blocks(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !entry.branches.is_empty() {
        writer.blocks(entry.blocks, fields);
    }
}

fn block_lengths(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !fields.has(BrStackInsn) {
        blocks(writer, entry, fields);
    }
}

fn block_disassembly(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, fields: ScriptFields) {
    if !fields.has_any(&[BrStackInsn, BrStackInsnLen]) {
        blocks(writer, entry, fields);
    }
}

fn physical_address(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    entry.parts.phys_addr.iter().for_each(|addr| hex(&mut writer.out, *addr, 16));
}

fn data_page_size(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(size) = entry.parts.data_page_size {
        let _ = write!(writer.out, " {}", page_size(size));
    }
}

fn code_page_size(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(size) = entry.parts.code_page_size {
        let _ = write!(writer.out, " {}", page_size(size));
    }
}

fn stream_id(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(id) = entry.stream_id {
        let _ = write!(writer.out, " {id}");
    }
}

fn cgroup(writer: &mut ScriptWriter<'_>, entry: &ScriptEntry<'_>, _: ScriptFields) {
    if let Some(path) = entry.cgroup {
        let _ = write!(writer.out, " {}", clean(path));
    }
}

fn stack(entry: &ScriptEntry<'_>, context: JsonContext<'_>) -> Option<Value> {
    let place = |place: &AddressFunction| {
        json!({
            "ip": place.address, "symbol": place.symbol.as_deref(), "dso": place.dso.as_deref(),
            "offset": (!place.is_imported).then_some(place.into),
            "inlined": place.inlined,
            "file": place.source.as_ref().map(|(file, _)| &**file),
            "line": place.source.as_ref().map(|(_, line)| line),
        })
    };
    Some(entry.places.iter().flat_map(|number| context.places.at(*number)).map(place).collect())
}

/// Returns the name of the function at an address.
fn name_at(number: u32, context: JsonContext<'_>) -> Option<&str> {
    context.places.at(number).last().and_then(|place| place.symbol.as_deref())
}

fn addr_symbol(entry: &ScriptEntry<'_>, context: JsonContext<'_>) -> Option<Value> {
    name_at(entry.addr_at?, context).map(Value::from)
}

fn registers(registers: SampledRegisters<'_>, layout: &ScriptLayout) -> Value {
    let numbers = (0..64).filter(|number| registers.mask >> number & 1 == 1);
    let pairs = numbers.zip(registers.values.iter());
    let named = pairs.map(|(number, value)| (parts::register(number, layout.is_aarch64), Value::from(value)));
    Value::Object(named.collect())
}

fn branches_json(entry: &ScriptEntry<'_>, context: JsonContext<'_>) -> Option<Value> {
    let branch = |branch: &ScriptBranch| {
        let flags = branch.flags;
        json!({
            "from": branch.from, "to": branch.to, "from_symbol": name_at(branch.from_at, context),
            "to_symbol": name_at(branch.to_at, context), "mispredicted": flags.is_mispredicted(),
            "predicted": flags.is_predicted(), "in_tx": flags.in_tx(), "abort": flags.is_abort(),
            "cycles": flags.cycles(), "type": flags.kind(),
        })
    };
    (!entry.branches.is_empty()).then(|| entry.branches.iter().map(branch).collect())
}
