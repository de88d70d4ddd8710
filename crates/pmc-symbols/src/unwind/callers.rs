//! Finds the caller of a 64-bit frame whose rules are not simple: rules that read memory or other registers,
//! signal frames, and functions that only the second table of a file describes.
//!
//! framehop passes only the stack pointer, the frame pointer and the link register from frame to frame. Other
//! registers are rarely needed, so they are not tracked. Their values are found by going inwards to the frame
//! that saved them:
//!
//! ```text
//!   sampled   frame 1          frame 2     frame 3: its CFA is rbx + 8
//!             saves rbx        does not
//!             <--- read it --- change it <---
//! ```
//!
//! If no frame saved the register, it still has the sampled value. Registers that every function may change
//! have no known value in a caller, except in code that a signal interrupted.

use gimli::{AArch64, Register, UnwindContext, X86_64};

use super::arch::Arch;
use super::frame::StackFrame;
use super::registers::UnwindRegisters;
use super::row::{CallerValue, FrameValues};
use super::section::frame_pointer;
use super::signal_frame::SignalFrame;
use super::space::Space;

/// Maximum number of rows to read for one frame.
const MOST_ROWS: u32 = 64;
/// Maximum number of registers whose rules refer to each other.
const MOST_NESTED: u32 = 4;

/// The caller of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) address: u64,
    /// Whether a signal interrupted the caller at the address. Otherwise, it is a return address.
    pub(super) is_interrupted: bool,
}

impl Caller {
    pub(super) fn returned_to(address: u64) -> Self {
        Self { address, is_interrupted: false }
    }
}

/// The caller, and the registers with which to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallerRegisters {
    pub(super) caller: Caller,
    pub(super) sp: u64,
    pub(super) fp: u64,
}

/// The frames of a walk up to the one whose caller is wanted.
pub(super) struct InnerFrames<'a, R> {
    space: &'a Space,
    arch: Arch,
    chain: &'a [StackFrame],
    sampled: &'a UnwindRegisters,
    /// The frame pointer in the last frame.
    fp: u64,
    read: R,
    rows: u32,
    nested: u32,
}

impl<'a, R: FnMut(u64) -> Result<u64, ()>> InnerFrames<'a, R> {
    pub(super) fn new(
        space: &'a Space,
        chain: &'a [StackFrame],
        sampled: &'a UnwindRegisters,
        fp: u64,
        read: R,
    ) -> Self {
        Self { space, arch: space.arch(), chain, sampled, fp, read, rows: 0, nested: 0 }
    }

    /// Finds the caller of the last frame; `None` at the root.
    ///
    /// # Errors
    /// Fails if the rules do not lead to a caller.
    pub(super) fn caller(
        &mut self,
        context: &mut UnwindContext<usize>,
    ) -> Result<Option<CallerRegisters>, ()> {
        let at = self.chain.len().checked_sub(1).ok_or(())?;
        let frame = self.chain[at];
        let (entries, slide) = self.space.entries(frame.lookup()).ok_or(())?;
        let row = entries.row(frame.lookup().wrapping_sub(slide), context).ok_or(())?;
        if row.is_root() {
            return Ok(None);
        }
        let (arch, same_fp) = (self.arch, self.fp);
        let mut values = FrameAt { frames: self, at };
        let cfa = row.cfa(&mut values).ok_or(())?;
        let address = match row.caller_value(row.return_address, cfa, &mut values).ok_or(())? {
            CallerValue::Known(address) => address,
            // On arm64, it is in a register until a function saves it.
            CallerValue::Same => values.register(row.return_address).ok_or(())?,
            CallerValue::Undefined => return Ok(None),
        };
        let sp = match row.caller_value(stack_pointer(arch), cfa, &mut values) {
            Some(CallerValue::Known(sp)) => sp,
            _ => cfa,
        };
        // If the frame pointer's place cannot be read, an epilogue may have popped it already.
        let fp = match row.caller_value(frame_pointer(arch), cfa, &mut values) {
            Some(CallerValue::Known(fp)) => fp,
            _ => same_fp,
        };
        // Only a function that was just entered, or has popped its return address, has no frame. A handler
        // may have a separate stack.
        let is_further_out =
            sp > frame.sp || (frame.is_exact() && sp == frame.sp && address != frame.address.0);
        if !is_further_out && !row.is_signal_frame {
            return Err(());
        }
        let caller = Caller { address, is_interrupted: row.is_signal_frame };
        Ok(Some(CallerRegisters { caller, sp, fp }))
    }

    /// Returns the value of a register in a frame.
    fn value(&mut self, register: Register, at: usize) -> Option<u64> {
        let frame = self.chain[at];
        if register == stack_pointer(self.arch) {
            return Some(frame.sp);
        }
        if register == program_counter(self.arch) {
            return Some(frame.address.0);
        }
        if register == frame_pointer(self.arch) && at + 1 == self.chain.len() {
            return Some(self.fp);
        }
        self.nested += 1;
        let value = if self.nested > MOST_NESTED { None } else { self.saved(register, at) };
        self.nested -= 1;
        value
    }

    /// Searches the frames inside of `at` for the one that saved the register.
    fn saved(&mut self, register: Register, at: usize) -> Option<u64> {
        for inner in (0..at).rev() {
            self.rows += 1;
            if self.rows > MOST_ROWS {
                return None;
            }
            let StackFrame { address, sp, .. } = self.chain[inner];
            let lookup = self.chain[inner].lookup();
            if self.chain[inner].is_of_signal() {
                let mut word = |address| (self.read)(address).ok();
                if let Some(frame) = SignalFrame::find(self.space, address.0, sp, &mut word) {
                    return frame.register(register, &mut word);
                }
            }
            let (entries, slide) = self.space.entries(lookup)?;
            let mut context = UnwindContext::new();
            let row = entries.row(lookup.wrapping_sub(slide), &mut context)?;
            let is_lost = !row.is_signal_frame && is_changed_by_calls(self.arch, register);
            let mut frame = FrameAt { frames: self, at: inner };
            let cfa = row.cfa(&mut frame)?;
            match row.caller_value(register, cfa, &mut frame)? {
                CallerValue::Known(value) => return Some(value),
                CallerValue::Same if !is_lost => {}
                CallerValue::Same | CallerValue::Undefined => return None,
            }
        }
        self.sampled.by_dwarf_number(self.arch, register.0)
    }
}

/// One of the frames of a walk.
struct FrameAt<'f, 'a, R> {
    frames: &'f mut InnerFrames<'a, R>,
    at: usize,
}

impl<R: FnMut(u64) -> Result<u64, ()>> FrameValues for FrameAt<'_, '_, R> {
    fn register(&mut self, register: Register) -> Option<u64> {
        self.frames.value(register, self.at)
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        (self.frames.read)(address).ok()
    }
}

fn stack_pointer(arch: Arch) -> Register {
    if arch == Arch::Aarch64 { AArch64::SP } else { X86_64::RSP }
}

fn program_counter(arch: Arch) -> Register {
    if arch == Arch::Aarch64 { AArch64::PC } else { X86_64::RA }
}

/// Whether a function may change the register without saving it (System V ABI for x86-64, table 3.4; AAPCS64,
/// section 6.1.1).
fn is_changed_by_calls(arch: Arch, register: Register) -> bool {
    match arch {
        Arch::Aarch64 => register.0 <= 18 || register == AArch64::X30,
        Arch::X86_64 | Arch::X86 => {
            ![X86_64::RBX, X86_64::RBP, X86_64::R12, X86_64::R13, X86_64::R14, X86_64::R15]
                .contains(&register)
        }
    }
}
