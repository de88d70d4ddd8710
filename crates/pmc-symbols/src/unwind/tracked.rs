//! The registers that a walk passes from frame to frame: framehop's for 64-bit code, and pmc's for 32-bit
//! x86. The walker changes them by one set of functions, whichever rules have found the caller.

use framehop::aarch64::UnwindRegsAarch64;
use framehop::x86_64::UnwindRegsX86_64;
use gimli::Register;

use super::callers::CallerRegisters;
use super::signal_frame::SignalFrame;
use super::x86;

/// The registers that framehop passes from frame to frame.
pub(super) trait TrackedRegisters {
    fn fp(&self) -> u64;

    /// Changes the registers to the caller's. Returns the caller's address without a signature.
    fn go_to(&mut self, found: &CallerRegisters) -> u64;
}

impl TrackedRegisters for UnwindRegsX86_64 {
    fn fp(&self) -> u64 {
        self.bp()
    }

    fn go_to(&mut self, found: &CallerRegisters) -> u64 {
        *self = Self::new(found.caller.address, found.sp, found.fp);
        found.caller.address
    }
}

impl TrackedRegisters for UnwindRegsAarch64 {
    fn fp(&self) -> u64 {
        Self::fp(self)
    }

    fn go_to(&mut self, found: &CallerRegisters) -> u64 {
        let address = found.caller.address & self.lr_mask().0;
        *self = Self::new_with_ptr_auth_mask(self.lr_mask(), address, found.sp, found.fp);
        address
    }
}

/// The registers that an unwinder updates from frame to frame.
pub(super) trait FrameRegisters: Copy {
    fn sp(self) -> u64;

    /// Changes the registers to those that a signal interrupted.
    fn interrupt(&mut self, frame: &SignalFrame, word: impl Fn(u64) -> Option<u64>);

    /// Returns the return address and the caller's registers, assuming that the function has a frame of one
    /// word and does not change the frame pointer. `None` on architectures without such functions.
    fn behind_small_frame(self, copied: impl Fn(u64) -> Option<u64>) -> Option<(u64, Self)> {
        let _ = copied;
        None
    }
}

impl FrameRegisters for UnwindRegsX86_64 {
    fn sp(self) -> u64 {
        Self::sp(&self)
    }

    fn interrupt(&mut self, frame: &SignalFrame, _: impl Fn(u64) -> Option<u64>) {
        *self = Self::new(frame.ip, frame.sp, frame.fp);
    }

    /// Python's trampolines have this form: `sub $8,%rsp; call *%rcx; add $8,%rsp; ret`.
    fn behind_small_frame(self, copied: impl Fn(u64) -> Option<u64>) -> Option<(u64, Self)> {
        let sp = Self::sp(&self);
        let address = copied(sp.checked_add(8)?)?;
        Some((address, Self::new(address, sp.checked_add(16)?, self.bp())))
    }
}

impl FrameRegisters for UnwindRegsAarch64 {
    fn sp(self) -> u64 {
        Self::sp(&self)
    }

    fn interrupt(&mut self, frame: &SignalFrame, _: impl Fn(u64) -> Option<u64>) {
        *self = Self::new_with_ptr_auth_mask(self.lr_mask(), frame.lr, frame.sp, frame.fp);
    }
}

impl FrameRegisters for x86::DwarfRegisters {
    fn sp(self) -> u64 {
        Self::sp(&self).into()
    }

    fn interrupt(&mut self, frame: &SignalFrame, mut word: impl Fn(u64) -> Option<u64>) {
        let saved: [u64; 8] =
            std::array::from_fn(|number| frame.register(Register(number as u16), &mut word).unwrap_or(0));
        *self = Self::new(frame.ip, frame.sp, frame.fp, &saved);
    }
}
