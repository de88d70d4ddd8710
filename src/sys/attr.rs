//! `struct perf_event_attr` as what it is: a row of u64 words.
//!
//! Receives values for named fields or for numbered words (the `attr<num>:bits` formats of the
//! persistent-events series name words by their index); hands the kernel a block of memory. Does not check
//! whether the request makes sense: `event` and `counter` do.
//!
//! ```text
//! word  low 32 bits            high 32 bits          since size
//!  0    type                   size                     64
//!  1    config
//!  2    sample_period or sample_freq
//!  3    sample_type
//!  4    read_format
//!  5    flag bits (disabled = bit 0)
//!  6    wakeup_events          bp_type
//!  7    config1 / bp_addr / uprobe path
//!  8    config2 / bp_len / probe offset                 72
//!  9    branch_sample_type                              80
//! 10    sample_regs_user                                96
//! 11    sample_stack_user      clockid
//! 12    sample_regs_intr                               104
//! 13    aux_watermark          sample_max_stack (16)   112
//! 14    aux_sample_size        aux_action              120
//! 15    sig_data                                       128
//! 16    config3                                        136
//! 17    config4                                        144
//! ```
//! Source: `include/uapi/linux/perf_event.h`.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

/// Number of u64 words in the largest attr that pmc knows (`PERF_ATTR_SIZE_VER9`).
pub const WORDS: usize = 18;

/// The smallest size handed to the kernel. Older kernels accept a larger one whose excess is zero, newer ones a smaller one.
const SIZE_VER7: usize = 128;

/// The flag bits of word 5, by the kernel's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the kernel's names; perf_event_open(2) explains each")]
pub enum Flag {
    Disabled = 0,
    Inherit = 1,
    Pinned = 2,
    Exclusive = 3,
    ExcludeUser = 4,
    ExcludeKernel = 5,
    ExcludeHv = 6,
    ExcludeIdle = 7,
    Mmap = 8,
    Comm = 9,
    Freq = 10,
    InheritStat = 11,
    EnableOnExec = 12,
    Task = 13,
    Watermark = 14,
    // 15 and 16: precise_ip, a number: see `Attr::set_precise_ip`.
    MmapData = 17,
    SampleIdAll = 18,
    ExcludeHost = 19,
    ExcludeGuest = 20,
    ExcludeCallchainKernel = 21,
    ExcludeCallchainUser = 22,
    Mmap2 = 23,
    CommExec = 24,
    UseClockid = 25,
    ContextSwitch = 26,
    WriteBackward = 27,
    Namespaces = 28,
    Ksymbol = 29,
    BpfEvent = 30,
    AuxOutput = 31,
    Cgroup = 32,
    TextPoke = 33,
    BuildId = 34,
    InheritThread = 35,
    RemoveOnExec = 36,
    Sigtrap = 37,
}

/// `attr.type`: which PMU driver takes the request.
pub mod kind {
    use perf_event_open_sys::bindings as b;
    /// Generic hardware events (`PERF_TYPE_HARDWARE`).
    pub const HARDWARE: u32 = b::PERF_TYPE_HARDWARE;
    /// Events of the kernel itself (`PERF_TYPE_SOFTWARE`).
    pub const SOFTWARE: u32 = b::PERF_TYPE_SOFTWARE;
    /// Tracepoints (`PERF_TYPE_TRACEPOINT`); config is the tracepoint's id.
    pub const TRACEPOINT: u32 = b::PERF_TYPE_TRACEPOINT;
    /// Generic cache events (`PERF_TYPE_HW_CACHE`).
    pub const HW_CACHE: u32 = b::PERF_TYPE_HW_CACHE;
    /// Raw codes of the core PMU (`PERF_TYPE_RAW`).
    pub const RAW: u32 = b::PERF_TYPE_RAW;
    /// Hardware breakpoints (`PERF_TYPE_BREAKPOINT`).
    pub const BREAKPOINT: u32 = b::PERF_TYPE_BREAKPOINT;
    /// Numbers from here on are given by the kernel at run time: see `/sys/bus/event_source/devices/*/type`.
    pub const FIRST_DYNAMIC: u32 = 6;
}

/// A request to the kernel for one event.
///
/// Words are indexed as in the table above. The size field is filled in when the request is made.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Attr {
    words: [u64; WORDS],
    /// The path or function name to which word 7 will point (uprobe and kprobe PMUs).
    pointed: Option<Arc<CString>>,
}

impl Attr {
    /// An empty request for an event of this type and config.
    pub fn new(kind: u32, config: u64) -> Self {
        let mut attr = Self::default();
        attr.set_kind(kind);
        attr.set_config(config);
        attr
    }

    /// The u64 with this index, as in the table of this module; `None` past the last.
    pub fn word(&self, index: usize) -> Option<u64> {
        self.words.get(index).copied()
    }

    /// Sets further bits in the u64 with this index; `false` if there is no such word.
    pub fn or_word(&mut self, index: usize, bits: u64) -> bool {
        self.words.get_mut(index).map(|word| *word |= bits).is_some()
    }

    /// Replaces the u64 with this index; `false` if there is no such word.
    pub fn set_word(&mut self, index: usize, value: u64) -> bool {
        self.words.get_mut(index).map(|word| *word = value).is_some()
    }

    /// `type`.
    pub fn kind(&self) -> u32 {
        self.words[0] as u32
    }
    /// Sets `type`.
    pub fn set_kind(&mut self, kind: u32) {
        self.set_low(0, kind);
    }
    /// `config`.
    pub fn config(&self) -> u64 {
        self.words[1]
    }
    /// Sets `config`.
    pub fn set_config(&mut self, config: u64) {
        self.words[1] = config;
    }
    /// `sample_period`, or `sample_freq` in hertz when [`Flag::Freq`] is set.
    pub fn period(&self) -> u64 {
        self.words[2]
    }
    /// Asks for a sample every `period` occurrences.
    pub fn set_period(&mut self, period: u64) {
        self.words[2] = period;
        self.set(Flag::Freq, false);
    }
    /// Asks for `hertz` samples a second.
    pub fn set_freq(&mut self, hertz: u64) {
        self.words[2] = hertz;
        self.set(Flag::Freq, true);
    }
    /// `sample_type`, bits `PERF_SAMPLE_*`.
    pub fn sample_type(&self) -> u64 {
        self.words[3]
    }
    /// Sets `sample_type`.
    pub fn set_sample_type(&mut self, bits: u64) {
        self.words[3] = bits;
    }
    /// `read_format`, bits `PERF_FORMAT_*`.
    pub fn read_format(&self) -> u64 {
        self.words[4]
    }
    /// Sets `read_format`.
    pub fn set_read_format(&mut self, bits: u64) {
        self.words[4] = bits;
    }
    /// Whether a flag is set.
    pub fn get(&self, flag: Flag) -> bool {
        self.words[5] >> flag as u8 & 1 == 1
    }
    /// Sets or clears a flag.
    pub fn set(&mut self, flag: Flag, on: bool) {
        let bit = 1u64 << flag as u8;
        if on { self.words[5] |= bit } else { self.words[5] &= !bit }
    }
    /// `precise_ip`: 0 any skid, 1 constant, 2 requested zero, 3 must be zero.
    pub fn precise_ip(&self) -> u8 {
        (self.words[5] >> 15 & 3) as u8
    }
    /// Sets `precise_ip`, 0 to 3.
    pub fn set_precise_ip(&mut self, level: u8) {
        self.words[5] = self.words[5] & !(3 << 15) | u64::from(level.min(3)) << 15;
    }
    /// `wakeup_events`, or `wakeup_watermark` in bytes with [`Flag::Watermark`].
    pub fn set_wakeup(&mut self, wakeup: u32) {
        self.set_low(6, wakeup);
    }
    /// `bp_type`: 1 read, 2 write, 4 execute, added.
    pub fn bp_type(&self) -> u32 {
        (self.words[6] >> 32) as u32
    }
    /// Makes this a breakpoint request: `bp_type` (1 read, 2 write, 4 execute), address, length in bytes.
    pub fn set_breakpoint(&mut self, bp_type: u32, address: u64, length: u64) {
        self.set_high(6, bp_type);
        self.words[7] = address;
        self.words[8] = length;
    }
    /// `config1`.
    pub fn config1(&self) -> u64 {
        self.words[7]
    }
    /// `config2`.
    pub fn config2(&self) -> u64 {
        self.words[8]
    }
    /// Makes `config1` point to this text (path of a uprobe, function of a kprobe) when the request is made.
    pub fn set_config1_text(&mut self, text: CString) {
        self.pointed = Some(Arc::new(text));
    }
    /// The text `config1` will point to.
    pub fn config1_text(&self) -> Option<&CString> {
        self.pointed.as_deref()
    }
    /// Sets `config2`.
    pub fn set_config2(&mut self, value: u64) {
        self.words[8] = value;
    }
    /// Sets `branch_sample_type`, bits `PERF_SAMPLE_BRANCH_*`.
    pub fn set_branch_sample_type(&mut self, bits: u64) {
        self.words[9] = bits;
    }
    /// `branch_sample_type`.
    pub fn branch_sample_type(&self) -> u64 {
        self.words[9]
    }
    /// Sets `sample_regs_user`: the mask of user registers in a sample.
    pub fn set_sample_regs_user(&mut self, mask: u64) {
        self.words[10] = mask;
    }
    /// `sample_regs_user`.
    pub fn sample_regs_user(&self) -> u64 {
        self.words[10]
    }
    /// Sets `sample_stack_user`: bytes of user stack in a sample.
    pub fn set_sample_stack_user(&mut self, bytes: u32) {
        self.set_low(11, bytes);
    }
    /// `sample_stack_user`.
    pub fn sample_stack_user(&self) -> u32 {
        self.words[11] as u32
    }
    /// Sets `clockid` (with [`Flag::UseClockid`]).
    pub fn set_clockid(&mut self, clock: i32) {
        self.set_high(11, clock as u32);
    }
    /// `clockid`.
    pub fn clockid(&self) -> i32 {
        (self.words[11] >> 32) as i32
    }
    /// Sets `sample_regs_intr`: the mask of registers at the interrupt.
    pub fn set_sample_regs_intr(&mut self, mask: u64) {
        self.words[12] = mask;
    }
    /// `sample_regs_intr`.
    pub fn sample_regs_intr(&self) -> u64 {
        self.words[12]
    }
    /// `sample_max_stack`: greatest number of frames in a call chain.
    pub fn sample_max_stack(&self) -> u16 {
        (self.words[13] >> 32) as u16
    }
    /// Sets `sample_max_stack`.
    pub fn set_sample_max_stack(&mut self, frames: u16) {
        self.words[13] = self.words[13] & !(0xffff << 32) | u64::from(frames) << 32;
    }

    /// Bytes to hand to the kernel: the smallest published size that holds every word in use.
    pub fn size(&self) -> usize {
        let used = self.words.iter().rposition(|&w| w != 0).map_or(0, |last| (last + 1) * 8);
        used.max(SIZE_VER7)
    }

    /// The memory the kernel reads: size filled in, `config1` pointing to its text.
    ///
    /// The block is valid as long as `self` lives, since the text stays where it is.
    pub(super) fn image(&self, size: usize) -> [u64; WORDS] {
        let mut words = self.words;
        words[0] = words[0] & 0xffff_ffff | (size as u64) << 32;
        if let Some(text) = &self.pointed {
            words[7] = text.as_ptr() as u64;
        }
        words
    }

    /// Words are defined by value, not by memory: the low half is the first field on little endian. Big endian swaps.
    fn set_low(&mut self, index: usize, value: u32) {
        self.words[index] = self.words[index] & !0xffff_ffff | u64::from(value);
    }

    fn set_high(&mut self, index: usize, value: u32) {
        self.words[index] = self.words[index] & 0xffff_ffff | u64::from(value) << 32;
    }
}

#[cfg(target_endian = "big")]
compile_error!("the halves of attr words swap on big-endian machines; pmc runs on x86-64 and aarch64");

impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attr {{ type {}, config {:#x}", self.kind(), self.config())?;
        for (index, word) in self.words.iter().enumerate().skip(2).filter(|(_, w)| **w != 0) {
            write!(f, ", word{index} {word:#x}")?;
        }
        if let Some(text) = &self.pointed {
            write!(f, ", config1 -> {text:?}")?;
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event_open_sys::bindings::perf_event_attr;

    /// Reads our words through the bindings' struct, so that the two tables check each other.
    fn seen_by_bindings(attr: &Attr) -> perf_event_attr {
        let words = attr.image(attr.size());
        let mut theirs = perf_event_attr::default();
        let bytes = size_of::<perf_event_attr>().min(WORDS * 8);
        // SAFETY: both are plain old data, and `bytes` fits in each.
        unsafe {
            std::ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), (&raw mut theirs).cast::<u8>(), bytes);
        }
        theirs
    }

    #[test]
    fn fields_lie_where_the_header_has_them() {
        let mut attr = Attr::new(kind::BREAKPOINT, 7);
        attr.set(Flag::Inherit, true);
        attr.set(Flag::ExcludeGuest, true);
        attr.set(Flag::Sigtrap, true);
        attr.set_precise_ip(2);
        attr.set_breakpoint(3, 0x1234, 4);
        attr.set_clockid(-1);
        attr.set_sample_stack_user(8192);
        attr.set_sample_max_stack(127);
        attr.set_wakeup(9);
        let theirs = seen_by_bindings(&attr);
        assert_eq!(theirs.type_, 5);
        assert_eq!(theirs.size, 128);
        assert_eq!(theirs.config, 7);
        assert_eq!(
            (theirs.inherit(), theirs.exclude_guest(), theirs.sigtrap(), theirs.disabled()),
            (1, 1, 1, 0)
        );
        assert_eq!(theirs.precise_ip(), 2);
        assert_eq!(theirs.bp_type, 3);
        assert_eq!(theirs.clockid, -1);
        assert_eq!(theirs.sample_stack_user, 8192);
        assert_eq!(theirs.sample_max_stack, 127);
    }

    #[test]
    fn the_size_grows_only_when_needed() {
        let mut attr = Attr::new(0, 0);
        assert_eq!(attr.size(), 128);
        assert!(attr.or_word(16, 1));
        assert_eq!(attr.size(), 136);
        assert!(!attr.or_word(18, 1));
    }
}
