//! Records as bytes and as fields, in the format of `perf script -D`.
//!
//! ```text
//!
//! 0xd70@perf.data [0x80]: event: 9                              offset, file, size, kind
//! .
//! . ... raw event: size 128 bytes
//! .  0000:  09 00 00 00 01 00 80 00 30 7d 1c 82 ff ff ff ff  ........0}......
//!
//! 1042425166 0xd70 [0x80]: PERF_RECORD_SAMPLE(IP, 0x1): 1527/1527: 0xffffffff821c7d30 period: 250000 addr: 0
//! ... FP chain: nr:10                                            CPU, time; then the fields
//! ```

use std::io::{self, Write};

use super::parts::register;
use super::records;
use pmc_analysis::profile::script::{DumpedRecord, SampleOwner};
use pmc_perfdata::record::decode::page_size;
use pmc_perfdata::record::sample::{Branches, ReadValues, SampledRegisters};
use pmc_perfdata::record::{Record, RecordWords, Sample, kind};
use pmc_sys::abi::{Context, context, read_format};
use pmc_text::text::clean;

/// Bytes per line.
const WIDE: usize = 16;

/// Writes a record.
pub fn record(out: &mut dyn Write, dumped: &DumpedRecord<'_>) -> io::Result<()> {
    let DumpedRecord { raw, offset, .. } = dumped;
    let size = raw.bytes.len();
    let at = records::hex(*offset);
    writeln!(out, "\n{at}@{} [{size:#x}]: event: {}", clean(dumped.file), raw.kind)?;
    writeln!(out, ".\n. ... raw event: size {size} bytes")?;
    hex_lines(out, raw.bytes)?;
    writeln!(out)?;
    for stamp in [dumped.cpu, dumped.time].into_iter().flatten() {
        match stamp {
            Some(stamp) => write!(out, "{stamp} ")?,
            None => write!(out, "-1 ")?,
        }
    }
    write!(out, "{at} [{size:#x}]: ")?;
    match (&dumped.record, &dumped.sample) {
        (Some(Record::Sample(_)), Some(sample)) => self::sample(out, dumped, sample),
        (Some(Record::Sample(_)), None) => {
            writeln!(out, "PERF_RECORD_SAMPLE: too short, or from an unknown event")
        }
        // `perf script` prints this record differently.
        (Some(Record::Lost(lost)), _) => {
            writeln!(out, "PERF_RECORD_LOST: id:{}: lost:{}", lost.id, lost.lost)
        }
        (Some(Record::Unknown(number)), _) => writeln!(out, "PERF_RECORD_{number}: unknown record type"),
        (Some(record), _) => {
            let mut text = Vec::new();
            records::text(&mut text, raw.kind, raw.misc, record);
            if let Some(words) = &dumped.words {
                text.pop();
                writeln!(text, ", {}", clean(words))?;
            }
            if let (Record::Read(_), Some(values)) = (record, &dumped.values) {
                text.pop();
                read(&mut text, dumped.event.unwrap_or("unknown"), values)?;
            }
            out.write_all(&text)
        }
        (None, _) => {
            let name = kind::name(raw.kind).unwrap_or("UNKNOWN");
            writeln!(out, "PERF_RECORD_{name}: too short for its contents")
        }
    }
}

/// Reports the offset at which the records end prematurely.
pub fn torn(out: &mut dyn Write, offset: u64, file: &str, words: &str) -> io::Result<()> {
    writeln!(out, "\n{offset:#x}@{}: {words}", clean(file))
}

fn hex_lines(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut line = Vec::with_capacity(80);
    for (number, row) in bytes.chunks(WIDE).enumerate() {
        line.clear();
        write!(line, ".  {:04x}: ", number * WIDE)?;
        for byte in row {
            line.extend([b' ', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        line.resize(line.len() + 3 * (WIDE - row.len()) + 2, b' ');
        let printable = |byte: &u8| if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'.' };
        line.extend(row.iter().map(printable));
        line.resize(line.len() + WIDE - row.len(), b' ');
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

fn sample(out: &mut dyn Write, dumped: &DumpedRecord<'_>, sample: &Sample<'_>) -> io::Result<()> {
    let who = sample.thread().unwrap_or_default();
    write!(out, "PERF_RECORD_SAMPLE(IP, {:#x}): {}/{}: ", dumped.raw.misc, who.pid, who.tid)?;
    let (ip, addr) = (sample.ip().unwrap_or(0), sample.addr().unwrap_or(0));
    writeln!(out, "{} period: {} addr: {}", records::hex(ip), dumped.period, records::hex(addr))?;
    if let Some(id) = sample.stream_id() {
        writeln!(out, "... stream_id: {id}")?;
    }
    match sample.excess() {
        None => writeln!(out, "... damaged: its fields exceed its size")?,
        Some(0) => {}
        Some(more) => writeln!(out, "... damaged: {more} bytes after its last field")?,
    }
    let parts = sample.parts().unwrap_or_default();
    if let Some(chain) = parts.callchain {
        if let Some(branches) = parts.branches.filter(|_| dumped.calls_are_branches) {
            calls(out, chain, branches)?;
        }
        writeln!(out, "... FP chain: nr:{}", chain.len())?;
        words(out, 0, chain.iter())?;
    }
    if let Some(branches) = parts.branches {
        self::branches(out, branches, dumped.calls_are_branches)?;
    }
    for (whose, registers) in [("user", parts.user_regs), ("intr", parts.intr_regs)] {
        if let Some(registers) = registers {
            self::registers(out, whose, &registers, dumped.is_aarch64)?;
        }
    }
    if let Some(stack) = parts.user_stack {
        // Offset of the stack field, which starts with the size of the copied stack.
        let at = stack.bytes.as_ptr() as usize - dumped.raw.bytes.as_ptr() as usize - size_of::<u64>();
        writeln!(out, "... ustack: size {}, offset {at:#x}", stack.bytes.len())?;
    }
    if let Some(weight) = parts.weight {
        write!(out, "... weight: {}", weight.value())?;
        if let Some((latency, third)) = weight.more() {
            write!(out, ",{latency:#x},{third:#x}")?;
        }
        writeln!(out)?;
    }
    if let Some(source) = parts.data_src {
        writeln!(out, " . data_src: {source:#x}")?;
    }
    if let Some(addr) = parts.phys_addr {
        writeln!(out, " .. phys_addr: {addr:#x}")?;
    }
    for (of, size) in [("data", parts.data_page_size), ("code", parts.code_page_size)] {
        if let Some(size) = size {
            writeln!(out, " .. {of} page size: {}", page_size(size))?;
        }
    }
    if let Some(flags) = parts.transaction {
        writeln!(out, "... transaction: {flags:x}")?;
    }
    if let Some(values) = parts.read {
        sample_read(out, &values, sample)?;
    }
    if let Some(SampleOwner { comm, dso }) = &dumped.owner {
        writeln!(out, " ... thread: {}:{}", clean(comm), who.tid)?;
        writeln!(out, " ...... dso: {}", clean(dso.as_deref().unwrap_or("<not found>")))?;
    }
    Ok(())
}

fn words(out: &mut dyn Write, first: usize, words: impl Iterator<Item = u64>) -> io::Result<()> {
    for (number, word) in words.enumerate() {
        write!(out, "..... {:2}: {word:016x}", first + number)?;
        match Context::from_word(word).and_then(name) {
            Some(name) => writeln!(out, " ({name})")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Returns the kernel's name for a context marker. Returns `None` for any other value among the last 4095
/// addresses, because such values come from broken frame pointers.
fn name(context: Context) -> Option<&'static str> {
    Some(match context {
        Context::Hypervisor => "PERF_CONTEXT_HV",
        Context::Kernel => "PERF_CONTEXT_KERNEL",
        Context::User => "PERF_CONTEXT_USER",
        Context::UserDeferred => "PERF_CONTEXT_USER_DEFERRED",
        Context::Guest => "PERF_CONTEXT_GUEST",
        Context::GuestKernel => "PERF_CONTEXT_GUEST_KERNEL",
        Context::GuestUser => "PERF_CONTEXT_GUEST_USER",
        Context::Unknown => return None,
    })
}

/// Writes the callers that the CPU recorded (LBR), after the kernel's part of the chain.
fn calls(out: &mut dyn Write, chain: RecordWords<'_>, branches: Branches<'_>) -> io::Result<()> {
    let kernel = chain.iter().position(|word| word == context::USER).map(|at| at + 1);
    let (Some(kernel), Some(newest)) = (kernel, branches.iter().next()) else { return Ok(()) };
    writeln!(out, "... LBR call chain: nr:{}", kernel + 1 + branches.len())?;
    words(out, 0, chain.iter().take(kernel))?;
    words(out, kernel, std::iter::once(newest.to).chain(branches.iter().map(|branch| branch.from)))
}

fn branches(out: &mut dyn Write, branches: Branches<'_>, are_calls: bool) -> io::Result<()> {
    if are_calls {
        writeln!(out, "... branch callstack: nr:{}", branches.len() + 1)?;
        let newest = branches.iter().take(1).map(|branch| branch.to);
        return words(out, 0, newest.chain(branches.iter().map(|branch| branch.from)));
    }
    writeln!(out, "... branch stack: nr:{}", branches.len())?;
    for (number, branch) in branches.iter().enumerate() {
        let flags = branch.flags;
        let mark = |is: bool, letter: char| if is { letter } else { ' ' };
        let marks: String = [
            mark(flags.is_mispredicted(), 'M'),
            mark(flags.is_predicted(), 'P'),
            mark(flags.is_abort(), 'A'),
            mark(flags.in_tx(), 'T'),
        ]
        .iter()
        .collect();
        let (from, to, cycles) = (branch.from, branch.to, flags.cycles());
        let (kind, speculation) = (flags.kind(), flags.speculation());
        write!(out, "..... {number:2}: {from:016x} -> {to:016x} {cycles} cycles {marks} ")?;
        writeln!(out, "{:x} {kind} {speculation}", flags.reserved())?;
    }
    Ok(())
}

fn registers(
    out: &mut dyn Write,
    whose: &str,
    registers: &SampledRegisters<'_>,
    is_aarch64: bool,
) -> io::Result<()> {
    let abi = ["none", "32-bit", "64-bit"].get(registers.abi as usize).unwrap_or(&"unknown");
    writeln!(out, "... {whose} regs: mask {:#x} ABI {abi}", registers.mask)?;
    let numbers = (0..64).filter(|number| registers.mask >> number & 1 == 1);
    for (number, value) in numbers.zip(registers.values.iter()) {
        writeln!(out, ".... {:<5} {value:#018x}", register(number, is_aarch64))?;
    }
    Ok(())
}

/// Writes the counts in a sample.
fn sample_read(out: &mut dyn Write, values: &ReadValues<'_>, sample: &Sample<'_>) -> io::Result<()> {
    writeln!(out, "... sample_read:")?;
    for (of, ns) in [("enabled", values.enabled_ns()), ("running", values.running_ns())] {
        if let Some(ns) = ns {
            writeln!(out, "...... time {of} {ns:016x}")?;
        }
    }
    if values.format() & read_format::GROUP != 0 {
        writeln!(out, ".... group nr {}", values.iter().count())?;
    }
    for value in values.iter() {
        let id = value.id.or(sample.id()).unwrap_or(0);
        write!(out, "..... id {id:016x}, value {:016x}", value.value)?;
        match value.lost {
            Some(lost) => writeln!(out, ", lost {lost}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Writes a thread's count at exit.
fn read(out: &mut Vec<u8>, event: &str, values: &ReadValues<'_>) -> io::Result<()> {
    let first = values.iter().next();
    writeln!(out, " {} {}", clean(event), first.map_or(0, |value| value.value))?;
    let id = first.and_then(|value| value.id);
    let lost = first.and_then(|value| value.lost);
    let rows = [
        ("time enabled", values.enabled_ns()),
        ("time running", values.running_ns()),
        ("id          ", id),
        ("lost        ", lost),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            writeln!(out, "... {name} : {value}")?;
        }
    }
    Ok(())
}
