//! The code that ran between the branches of a sample, in the order and with the limits of perf's
//! `brstackinsn` field.
//!
//! ```text
//!   branches, oldest first   A→B, C→D, and the sample at E
//!   lines                    the branch at A; the code from B to the branch at C; the code from D to E
//! ```

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{MOST_CACHED, NamedRecording, instructions};
use crate::profile::script::{BranchEnd, BranchLine, Flow, Instruction, ScriptBranch};
use crate::session::location::{self, SampledAddress};
use crate::session::{CodeLocation, Epoch};
use pmc_symbols::symbol::demangle::demangle;
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_symbols::symbol::{LONGEST_INSTRUCTION, ModuleId};
use pmc_sys::abi::branch_sample_type;

/// perf's maximum size of a block in bytes.
const MOST_BYTES: u64 = 16384 - LONGEST_INSTRUCTION;

/// Number of bytes in which to look for the next branch if the sampled address is before the newest branch's
/// target.
const SEARCHED: u64 = 128;

/// Maximum number of bytes of code per sample. Hardware records at most 64 branches, which need far less.
const MOST_OF_SAMPLE: u64 = 128 << 10;

/// The instructions from the start of a block to at least the end.
type BlockCode = Arc<[Arc<Instruction>]>;

/// Reads the code between branches. Caches recently read blocks by location and size.
#[derive(Debug, Default)]
pub(super) struct BlockReader {
    known: FxHashMap<(CodeLocation, u64), Option<BlockCode>>,
    cached: usize,
}

impl BlockReader {
    fn code(&mut self, of: &mut BlockLines<'_>, start: u64, end: u64) -> Option<BlockCode> {
        let size = end.checked_sub(start).filter(|size| *size <= MOST_BYTES && start != 0)?;
        of.budget = of.budget?.checked_sub(size + LONGEST_INSTRUCTION);
        if of.budget.is_none() {
            of.lines.push(BranchLine::TooLong);
            return None;
        }
        let location = of.locate(start);
        if let Some(code) = self.known.get(&(location, size)) {
            return code.clone();
        }
        if self.cached > MOST_CACHED {
            *self = Self::default();
        }
        let code = read(of.script, &location, size + LONGEST_INSTRUCTION);
        self.cached += 1 + code.as_ref().map_or(0, |code| code.len());
        self.known.insert((location, size), code.clone());
        code
    }
}

fn read(script: &NamedRecording<'_>, location: &CodeLocation, size: u64) -> Option<BlockCode> {
    let symbolizer = &script.symbols.symbolizer;
    let (id, query) = script.symbols.query(location)?;
    let code = symbolizer.code_at(id, symbolizer.address(id, query)?, size)?;
    let mut all = symbolizer.disassemble(id, &code, Syntax::default()).ok()?;
    if !script.request.raw_names {
        all.iter_mut().for_each(instructions::demangle_target);
    }
    Some(all.into_iter().map(Arc::new).collect())
}

/// Builds the lines of one sample.
pub(super) struct BlockLines<'a> {
    script: &'a NamedRecording<'a>,
    epoch: Epoch,
    lines: Vec<BranchLine>,
    /// Module and start address of the function that was last named.
    function: Option<(ModuleId, u64)>,
    total_cycles: u32,
    /// Number of bytes of code that may still be read; `None` after the limit has been reached.
    budget: Option<u64>,
}

impl<'a> BlockLines<'a> {
    pub(super) fn new(script: &'a NamedRecording<'a>, epoch: Epoch) -> Self {
        Self {
            script,
            epoch,
            lines: Vec::new(),
            function: None,
            total_cycles: 0,
            budget: Some(MOST_OF_SAMPLE),
        }
    }

    /// Returns the lines for a sample at `ip` with these branches, newest first. `branch_types` are the types
    /// of branches that the event records.
    pub(super) fn of_sample(
        mut self,
        reader: &mut BlockReader,
        branches: &[ScriptBranch],
        ip: Option<u64>,
        branch_types: u64,
    ) -> Vec<BranchLine> {
        let (Some(oldest), Some(newest)) = (branches.last(), branches.first()) else { return self.lines };
        if let Some(code) = reader.code(&mut self, oldest.from, oldest.from) {
            self.name(oldest.from);
            self.branch(oldest, &code[0], 0);
        }
        let mut next = branches.len() - 1;
        while next > 0 && self.budget.is_some() {
            let start = branches[next].to;
            next -= 1;
            // The kernel reports an address as zero if this user may not see it.
            if start == 0 || branches[next].from == 0 {
                continue;
            }
            // The branch into the kernel may be missing even though the branch out of it was recorded.
            if location::level(start) != location::level(branches[next].from) && next > 0 {
                next -= 1;
            }
            if location::level(start) == location::level(branches[next].from)
                && let Some(code) = reader.code(&mut self, start, branches[next].from)
            {
                self.block(start, &code, &branches[next]);
            }
        }
        match ip {
            Some(ip) if ip != newest.from && !newest.flags.is_abort() && self.budget.is_some() => {
                self.last_block(reader, newest.to, ip, branch_types);
            }
            _ => {}
        }
        self.lines
    }

    /// Adds the code between `start` and a branch.
    fn block(&mut self, start: u64, code: &[Arc<Instruction>], branch: &ScriptBranch) {
        let mut address = start;
        for (before, instruction) in (1..).zip(code) {
            self.name(address);
            if address == branch.from {
                self.branch(branch, instruction, before);
                return;
            }
            self.instruction(address, instruction);
            if instruction.is_data() {
                break;
            }
            address = address.wrapping_add(instruction.bytes.len() as u64);
        }
        self.lines.push(BranchLine::Mismatch);
    }

    /// Adds the code between the newest branch's target and the sampled address.
    fn last_block(&mut self, reader: &mut BlockReader, start: u64, ip: u64, branch_types: u64) {
        let end = if ip < start { start.saturating_add(SEARCHED) } else { ip };
        let is_within = location::level(start) == location::level(end);
        let code = if is_within { reader.code(self, start, end) } else { None };
        self.name(start);
        let Some(code) = code else {
            if let Some(code) = reader.code(self, ip, ip) {
                self.instruction(ip, &code[0]);
            }
            return;
        };
        let records_all = branch_types == 0 || branch_types & branch_sample_type::ANY != 0;
        let mut address = start;
        for instruction in code.iter() {
            if address > end {
                return;
            }
            self.instruction(address, instruction);
            if instruction.is_data() {
                return;
            }
            if records_all && always_branches(instruction) && address != ip {
                self.lines.push(BranchLine::NotReached);
                return;
            }
            address = address.wrapping_add(instruction.bytes.len() as u64);
        }
    }

    /// Adds the name of the function at an address, unless it was the last one added.
    fn name(&mut self, address: u64) {
        let symbols = &self.script.symbols;
        let Some((id, query)) = symbols.query(&self.locate(address)) else { return };
        let Some((name, into)) = symbols.symbolizer.find(id, query) else { return };
        let function = Some((id, address.wrapping_sub(into)));
        if self.function == function {
            return;
        }
        self.function = function;
        let readable = if self.script.request.raw_names { None } else { demangle(name) };
        let name = readable.unwrap_or_else(|| name.to_owned());
        self.lines.push(BranchLine::Function { name, into });
    }

    fn locate(&self, address: u64) -> CodeLocation {
        location::locate(
            &self.script.session.history,
            SampledAddress::in_user_or_kernel(self.epoch, address, false),
        )
    }

    fn instruction(&mut self, address: u64, code: &Arc<Instruction>) {
        self.lines.push(BranchLine::Instruction { address, code: code.clone(), branch: None });
    }

    /// Adds the instruction that branched. `instructions` is the number of instructions in the block.
    fn branch(&mut self, branch: &ScriptBranch, code: &Arc<Instruction>, instructions: u32) {
        self.total_cycles = self.total_cycles.saturating_add(branch.flags.cycles().into());
        let end = BranchEnd { flags: branch.flags, total_cycles: self.total_cycles, instructions };
        let (address, code) = (branch.from, code.clone());
        self.lines.push(BranchLine::Instruction { address, code, branch: Some(end) });
    }
}

/// Whether the instruction always transfers control: a call, a return, an unconditional jump or an interrupt.
fn always_branches(instruction: &Instruction) -> bool {
    const OTHERS: [&str; 5] = ["syscall", "sysenter", "sysexit", "sysret", "iret"];
    let mnemonic = &*instruction.mnemonic;
    match instruction.flow {
        Flow::Call | Flow::Return => true,
        Flow::Jump => mnemonic.starts_with("jmp"),
        Flow::Next => mnemonic.starts_with("int") || OTHERS.iter().any(|other| mnemonic.starts_with(other)),
    }
}
