//! The text of long values: registers, branches, the output of BPF programs, source lines.

use std::io::Write as _;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::ScriptWriter;
use super::digits::{hex, padded};
use super::places::{dso, symbol};
use pmc_analysis::profile::script::{
    AddressFunction, BranchEnd, BranchLine, Instruction, ScriptBranch, ScriptField, ScriptFields,
};
use pmc_perfdata::record::sample::SampledRegisters;
use pmc_symbols::symbol::source_text::SourceLines;
use pmc_text::text::{self, clean};
use pmc_text::units::CalendarTime;

/// Width of the field `flags` in columns.
pub(super) const FLAGS: usize = 24;

impl ScriptWriter<'_> {
    /// Writes the code between branches.
    pub(super) fn blocks(&mut self, lines: &[BranchLine], fields: ScriptFields) {
        self.out.push(b'\n');
        for line in lines {
            let _ = match line {
                BranchLine::Function { name, into: 0 } => writeln!(self.out, "\t{}:", clean(name)),
                BranchLine::Function { name, into } => writeln!(self.out, "\t{}+{into}:", clean(name)),
                BranchLine::Mismatch => writeln!(self.out, "\tmismatch of LBR data and executable"),
                BranchLine::NotReached => writeln!(self.out, "\t... not reaching sample ..."),
                BranchLine::TooLong => writeln!(self.out, "\t... too much code for one sample ..."),
                BranchLine::Instruction { address, code, branch } => {
                    let text = match (code.is_data(), fields.has(ScriptField::BrStackDisasm)) {
                        (true, _) => "<bad>".to_owned(),
                        (_, true) => clean(&disassembly(code)).into_owned(),
                        _ => format!("insn: {} ", text::hex(&code.bytes, " ")),
                    };
                    let length = if code.is_data() { 0 } else { code.bytes.len() };
                    let length = format!("ilen: {length}");
                    let length = if fields.has(ScriptField::BrStackInsnLen) { &length } else { "" };
                    let tab = if length.is_empty() { "" } else { "\t" };
                    match branch {
                        None => writeln!(self.out, "\t{address:016x}\t{text}{tab}{length}"),
                        Some(branch) => {
                            let end = branch_end(branch);
                            writeln!(self.out, "\t{address:016x}\t{text:30}\t{length}{tab}{end}")
                        }
                    }
                }
            };
        }
    }

    pub(super) fn registers(&mut self, registers: &SampledRegisters<'_>) {
        let _ = write!(self.out, " ABI:{} ", registers.abi);
        let numbers = (0..64).filter(|number| registers.mask >> number & 1 == 1);
        for (number, value) in numbers.zip(registers.values.iter()) {
            let name = register(number, self.layout.is_aarch64);
            let _ = write!(self.out, "{name:>5}:{value:#x} ");
        }
    }

    pub(super) fn branch(&mut self, branch: &ScriptBranch, fields: ScriptFields) {
        // perf prints the file offset only if it could not read the file.
        let wants_offset = fields.has(ScriptField::BrStackOff);
        let end = |out: &mut Vec<u8>, address: u64, place: Option<&AddressFunction>| {
            let place_in_file = place.filter(|place| wants_offset && !(place.has_file || place.in_kernel));
            out.extend(b"0x");
            hex(out, place_in_file.map_or(address, |place| place.offset), 0);
            if fields.has(ScriptField::Dso) {
                dso(out, place);
            }
        };
        let (from, to) = (self.places.at(branch.from_at).last(), self.places.at(branch.to_at).last());
        self.out.push(b' ');
        end(&mut self.out, branch.from, from);
        self.out.push(b'/');
        end(&mut self.out, branch.to, to);
        self.flags(branch);
    }

    pub(super) fn named_branch(&mut self, branch: &ScriptBranch, fields: ScriptFields) {
        let nothing = AddressFunction::default();
        let (from, to) = (self.places.at(branch.from_at).last(), self.places.at(branch.to_at).last());
        for (place, behind) in [(from, b"/".as_slice()), (to, b"")] {
            symbol(&mut self.out, place.unwrap_or(&nothing), place.is_some_and(|p| p.symbol.is_some()));
            if fields.has(ScriptField::Dso) {
                dso(&mut self.out, place);
            }
            self.out.extend(behind);
        }
        self.flags(branch);
    }

    fn flags(&mut self, branch: &ScriptBranch) {
        let flags = branch.flags;
        let guess = match (flags.is_mispredicted(), flags.is_predicted()) {
            (false, false) => '-',
            (_, true) => 'P',
            (true, false) => 'M',
        };
        let mark = |is: bool, letter: char| if is { letter } else { '-' };
        let (in_tx, abort) = (mark(flags.in_tx(), 'X'), mark(flags.is_abort(), 'A'));
        let _ = write!(self.out, "/{guess}/{in_tx}/{abort}/{}/{} ", flags.cycles(), flags.kind());
    }
}

/// Returns the flags, cycles and instructions per cycle of a block's last branch.
fn branch_end(branch: &BranchEnd) -> String {
    let BranchEnd { flags, total_cycles, instructions } = *branch;
    let marks = [
        (flags.is_predicted(), " PRED"),
        (flags.is_mispredicted(), " MISPRED"),
        (flags.in_tx(), " INTX"),
        (flags.is_abort(), " ABORT"),
    ];
    let mut text = "#".to_owned();
    marks.iter().filter(|(is_set, _)| *is_set).for_each(|(_, mark)| text.push_str(mark));
    let cycles = flags.cycles();
    if cycles > 0 {
        text += &format!(" {cycles} cycles [{total_cycles}]");
        if instructions > 0 {
            let ratio = instructions as f32 / f32::from(cycles);
            text += &format!(" {ratio:.2} IPC");
        }
    }
    text
}

/// Returns an instruction in assembly. As in perf, a jump shows the name of its target instead of the
/// address.
pub(super) fn disassembly(instruction: &Instruction) -> String {
    let operands = match instruction.target.as_ref().and_then(|target| target.name.as_ref()) {
        Some((name, 0)) => instruction.operands_with_target(name),
        Some((name, into)) => instruction.operands_with_target(&format!("{name}+{into:#x}")),
        None => instruction.operands.to_string(),
    };
    format!("{} {operands}", instruction.mnemonic).trim_end().to_owned()
}

/// Returns perf's name for a register.
pub(super) fn register(number: u32, is_aarch64: bool) -> String {
    const X86: [&str; 24] = [
        "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS", "GS",
        "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
    ];
    match (is_aarch64, number) {
        (true, 0..30) => format!("x{number}"),
        (true, 30) => "lr".to_owned(),
        (true, 31) => "sp".to_owned(),
        (true, 32) => "pc".to_owned(),
        (true, 46) => "vg".to_owned(),
        (false, 32..64) => format!("XMM{}", (number - 32) / 2),
        (false, _) if (number as usize) < X86.len() => X86[number as usize].to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// Writes date and time in UTC; perf uses the local time zone.
pub(super) fn time_of_day(out: &mut Vec<u8>, time: u64, offset: i64, nanoseconds: bool) {
    let at = (time as i128 + i128::from(offset)).max(0);
    let (date, ns) = (CalendarTime::new((at / 1_000_000_000) as i64), at % 1_000_000_000);
    let _ =
        if nanoseconds { write!(out, "{date}.{ns:09} ") } else { write!(out, "{date}.{:06} ", ns / 1000) };
}

/// Writes eight bytes per line, then all bytes as a string if they are text.
pub(super) fn bpf_output(out: &mut Vec<u8>, bytes: &[u8]) {
    const WIDE: usize = 8;
    out.push(b'\n');
    let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    for (line, row) in bytes.chunks(WIDE).enumerate() {
        padded(out, if line == 0 { b"BPF output:" } else { b"           " }, 17, b' ');
        let _ = write!(out, " {:04x}:", line * WIDE);
        row.iter().for_each(|byte| {
            let _ = write!(out, " {byte:02x}");
        });
        out.resize(out.len() + 3 * (WIDE - row.len()), b' ');
        out.extend(b"  ");
        out.extend(row.iter().map(|byte| if printable(*byte) { *byte } else { b'.' }));
        out.resize(out.len() + WIDE - row.len() + 1, b' ');
        out.pop();
        out.push(b'\n');
    }
    let text = bytes.iter().position(|byte| *byte == 0).map(|end| &bytes[..end]);
    if let Some(text) = text.filter(|text| text.iter().all(|byte| printable(*byte))) {
        padded(out, b"BPF string:", 17, b' ');
        let _ = writeln!(out, " \"{}\"", String::from_utf8_lossy(text));
    }
}

/// Returns the lines of a source file, given the number of its module and the path in the debug information.
/// `None` if the file is not available.
pub type ReadSource<'a> = Box<dyn Fn(u32, &str) -> Option<SourceLines> + 'a>;

/// Lines of source files, and the last line printed for each thread, so that the same line is not printed
/// again.
pub(super) struct SourceCode<'a> {
    read: ReadSource<'a>,
    files: FxHashMap<(u32, Arc<str>), Option<SourceLines>>,
    last: FxHashMap<Option<i32>, (Arc<str>, u32)>,
}

impl<'a> SourceCode<'a> {
    pub(super) fn new(read: ReadSource<'a>) -> Self {
        Self { read, files: FxHashMap::default(), last: FxHashMap::default() }
    }

    pub(super) fn print(&mut self, out: &mut Vec<u8>, thread: Option<i32>, place: &AddressFunction) {
        let (Some((file, line)), Some(module)) = (&place.source, place.module) else { return };
        if self.last.get(&thread).is_some_and(|last| (&last.0, last.1) == (file, *line)) {
            return;
        }
        let lines = self.files.entry((module, file.clone())).or_insert_with(|| (self.read)(module, file));
        if let Some(text) = lines.as_ref().and_then(|lines| lines.get(*line)) {
            let _ = writeln!(out, "|{line:<8} {}", clean(text));
            self.last.insert(thread, (file.clone(), *line));
        }
    }
}
