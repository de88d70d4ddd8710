//! `struct perf_event_attr`, stored as an array of u64 words.
//!
//! Fields are set by name, or as words by index (as in the `attr<num>:bits` formats of the persistent-events
//! patch series). [`Attr`] also produces the memory block to pass to the kernel. `event` and `counter`
//! validate the request.
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

/// Number of u64 words in the largest attr that pmc supports (`PERF_ATTR_SIZE_VER9`).
pub const WORDS: usize = 18;

/// The smallest size that pmc passes to the kernel. Kernels with a smaller attr accept it if the excess bytes
/// are zero. Kernels with a larger attr accept it too.
const SIZE_VER7: usize = 128;

macro_rules! flags {
    ($($flag:ident = $bit:literal $name:literal,)*) => {
        /// The flag bits of word 5, with the kernel's names; perf_event_open(2) explains each. Bits 15 and 16
        /// form one two-bit field, `precise_ip`: see [`Attr::set_precise_ip`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the kernel's names; perf_event_open(2) explains each")]
        pub enum Flag { $($flag = $bit),* }

        impl Flag {
            /// All flags, in bit order.
            pub const ALL: &[Self] = &[$(Self::$flag),*];

            /// The field's name in the kernel's struct.
            pub fn name(self) -> &'static str {
                match self { $(Self::$flag => $name),* }
            }
        }
    };
}

flags! {
    Disabled = 0 "disabled",
    Inherit = 1 "inherit",
    Pinned = 2 "pinned",
    Exclusive = 3 "exclusive",
    ExcludeUser = 4 "exclude_user",
    ExcludeKernel = 5 "exclude_kernel",
    ExcludeHv = 6 "exclude_hv",
    ExcludeIdle = 7 "exclude_idle",
    Mmap = 8 "mmap",
    Comm = 9 "comm",
    Freq = 10 "freq",
    InheritStat = 11 "inherit_stat",
    EnableOnExec = 12 "enable_on_exec",
    Task = 13 "task",
    Watermark = 14 "watermark",
    MmapData = 17 "mmap_data",
    SampleIdAll = 18 "sample_id_all",
    ExcludeHost = 19 "exclude_host",
    ExcludeGuest = 20 "exclude_guest",
    ExcludeCallchainKernel = 21 "exclude_callchain_kernel",
    ExcludeCallchainUser = 22 "exclude_callchain_user",
    Mmap2 = 23 "mmap2",
    CommExec = 24 "comm_exec",
    UseClockid = 25 "use_clockid",
    ContextSwitch = 26 "context_switch",
    WriteBackward = 27 "write_backward",
    Namespaces = 28 "namespaces",
    Ksymbol = 29 "ksymbol",
    BpfEvent = 30 "bpf_event",
    AuxOutput = 31 "aux_output",
    Cgroup = 32 "cgroup",
    TextPoke = 33 "text_poke",
    BuildId = 34 "build_id",
    InheritThread = 35 "inherit_thread",
    RemoveOnExec = 36 "remove_on_exec",
    Sigtrap = 37 "sigtrap",
    DeferCallchain = 38 "defer_callchain",
    DeferOutput = 39 "defer_output",
}

/// `attr.type`: selects the PMU driver.
pub mod kind {
    use perf_event_open_sys::bindings as b;
    /// Generic hardware events (`PERF_TYPE_HARDWARE`).
    pub const HARDWARE: u32 = b::PERF_TYPE_HARDWARE;
    /// Kernel software events (`PERF_TYPE_SOFTWARE`).
    pub const SOFTWARE: u32 = b::PERF_TYPE_SOFTWARE;
    /// Tracepoints (`PERF_TYPE_TRACEPOINT`); config is the tracepoint's id.
    pub const TRACEPOINT: u32 = b::PERF_TYPE_TRACEPOINT;
    /// Generic cache events (`PERF_TYPE_HW_CACHE`).
    pub const HW_CACHE: u32 = b::PERF_TYPE_HW_CACHE;
    /// Raw codes of the core PMU (`PERF_TYPE_RAW`).
    pub const RAW: u32 = b::PERF_TYPE_RAW;
    /// Hardware breakpoints (`PERF_TYPE_BREAKPOINT`).
    pub const BREAKPOINT: u32 = b::PERF_TYPE_BREAKPOINT;
    /// The smallest number that the kernel assigns at run time: see `/sys/bus/event_source/devices/*/type`.
    pub const FIRST_DYNAMIC: u32 = 6;
}

/// Values of `aux_action` (Linux 6.13), with perf's names. A tracing event with `start-paused` waits for the
/// first `resume`. Other events of its group pause or resume the trace when they overflow.
pub const AUX_ACTIONS: [(&str, u32); 3] = [("start-paused", 1), ("pause", 2), ("resume", 4)];

/// Maximum number of trace bytes in one sample (perf's `MAX_AUX_SAMPLE_SIZE`). Leaves room for the other
/// fields.
pub const LARGEST_AUX_SAMPLE: u32 = 60 << 10;

/// Maximum number of stack bytes in one sample: a multiple of 8 below `USHRT_MAX` (`perf_copy_attr` in the
/// kernel's `kernel/events/core.c`).
pub const LARGEST_STACK_COPY: u32 = 65_528;

/// A request to the kernel for one event.
///
/// Word indices refer to the table in the module documentation. `size` is set when the event is opened.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Attr {
    words: [u64; WORDS],
    /// Path or function name that word 7 will point to (uprobe and kprobe PMUs).
    pointed: Option<Arc<CString>>,
}

impl Attr {
    /// Creates an empty request for an event of this type and config.
    pub fn new(kind: u32, config: u64) -> Self {
        let mut attr = Self::default();
        attr.set_kind(kind);
        attr.set_config(config);
        attr
    }

    /// Returns the word at this index, or `None` if the index is out of range. See the table in the module
    /// documentation.
    pub fn word(&self, index: usize) -> Option<u64> {
        self.words.get(index).copied()
    }

    /// Sets additional bits in the word with this index. Returns `false` if the index is out of range.
    pub fn or_word(&mut self, index: usize, bits: u64) -> bool {
        self.words.get_mut(index).map(|word| *word |= bits).is_some()
    }

    /// Replaces the word at this index. Returns `false` if the index is out of range.
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
    /// Requests a sample every `period` events.
    pub fn set_period(&mut self, period: u64) {
        self.words[2] = period;
        self.set(Flag::Freq, false);
    }
    /// Requests `hertz` samples per second.
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
    /// Excludes the task's child processes and threads from the measurement.
    pub fn inherit_nothing(&mut self) {
        self.set(Flag::Inherit, false);
        self.set(Flag::InheritThread, false);
    }
    /// `precise_ip`: 0 arbitrary skid, 1 constant skid, 2 zero skid requested, 3 zero skid required.
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
    /// `bp_type`: the sum of 1 (read), 2 (write) and 4 (execute).
    pub fn bp_type(&self) -> u32 {
        (self.words[6] >> 32) as u32
    }
    /// Makes this a breakpoint request: `bp_type` (1 read, 2 write, 4 execute), address, and length in bytes.
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
    /// Makes `config1` of the request point to this string: the path of a uprobe, or the function of a
    /// kprobe.
    pub fn set_config1_text(&mut self, text: CString) {
        self.pointed = Some(Arc::new(text));
    }
    /// Returns the string to which `config1` will point.
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
    /// Sets `sample_stack_user`: bytes of user stack in a sample, at most [`LARGEST_STACK_COPY`].
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
    /// Sets `sample_regs_intr`: the mask of registers to sample at the interrupt.
    pub fn set_sample_regs_intr(&mut self, mask: u64) {
        self.words[12] = mask;
    }
    /// `sample_regs_intr`.
    pub fn sample_regs_intr(&self) -> u64 {
        self.words[12]
    }
    /// `sample_max_stack`: maximum number of frames in a call chain.
    pub fn sample_max_stack(&self) -> u16 {
        (self.words[13] >> 32) as u16
    }
    /// Sets `sample_max_stack`.
    pub fn set_sample_max_stack(&mut self, frames: u16) {
        self.words[13] = self.words[13] & !(0xffff << 32) | u64::from(frames) << 32;
    }

    /// `aux_watermark`: bytes of trace after which the kernel wakes the reader.
    pub fn aux_watermark(&self) -> u32 {
        self.words[13] as u32
    }
    /// Sets `aux_watermark`; 0 means half of the AUX area.
    pub fn set_aux_watermark(&mut self, bytes: u32) {
        self.set_low(13, bytes);
    }
    /// `aux_sample_size`: number of bytes copied into a sample, from the newest part of the group's trace.
    pub fn aux_sample_size(&self) -> u32 {
        self.words[14] as u32
    }
    /// Sets `aux_sample_size`.
    pub fn set_aux_sample_size(&mut self, bytes: u32) {
        self.set_low(14, bytes);
    }
    /// `aux_action`, bits of [`AUX_ACTIONS`].
    pub fn aux_action(&self) -> u32 {
        (self.words[14] >> 32) as u32
    }
    /// Sets `aux_action`.
    pub fn set_aux_action(&mut self, bits: u32) {
        self.set_high(14, bits);
    }

    /// Number of bytes to pass to the kernel: the smallest size that contains every word in use, at least
    /// `SIZE_VER7`.
    pub fn size(&self) -> usize {
        let used = self.words.iter().rposition(|&w| w != 0).map_or(0, |last| (last + 1) * 8);
        used.max(SIZE_VER7)
    }

    /// Returns the attr as the kernel expects it, with `size` filled in and `config1` pointing to the text.
    ///
    /// The block is valid as long as `self` exists, because the string does not move.
    pub(crate) fn image(&self, size: usize) -> [u64; WORDS] {
        let mut words = self.words;
        words[0] = words[0] & 0xffff_ffff | (size as u64) << 32;
        if let Some(text) = &self.pointed {
            words[7] = text.as_ptr() as u64;
        }
        words
    }

    /// Sets the low half of a word, which is the first field on little-endian machines. Big-endian machines
    /// swap the halves.
    fn set_low(&mut self, index: usize, value: u32) {
        self.words[index] = self.words[index] & !0xffff_ffff | u64::from(value);
    }

    fn set_high(&mut self, index: usize, value: u32) {
        self.words[index] = self.words[index] & 0xffff_ffff | u64::from(value) << 32;
    }
}

#[cfg(target_endian = "big")]
compile_error!(
    "the halves of attr words are swapped on big-endian machines; pmc runs only on x86-64 and aarch64"
);

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
    use std::mem::offset_of;

    #[test]
    fn layout_matches_the_kernel_header() {
        // Words past the end of the bindings' struct belong to a newer kernel's attr.
        assert!(size_of::<perf_event_attr>() <= WORDS * 8);
        macro_rules! lies {
            ($field:ident $(. $inner:ident)* at $word:literal) => {
                assert_eq!(offset_of!(perf_event_attr, $field $(. $inner)*), $word * 8, stringify!($field));
            };
            ($field:ident $(. $inner:ident)* above $word:literal) => {
                assert_eq!(offset_of!(perf_event_attr, $field $(. $inner)*), $word * 8 + 4, stringify!($field));
            };
        }
        lies!(type_ at 0);
        lies!(size above 0);
        lies!(config at 1);
        lies!(__bindgen_anon_1 at 2);
        lies!(sample_type at 3);
        lies!(read_format at 4);
        lies!(_bitfield_1 at 5);
        lies!(__bindgen_anon_2 at 6);
        lies!(bp_type above 6);
        lies!(__bindgen_anon_3 at 7);
        lies!(__bindgen_anon_4 at 8);
        lies!(branch_sample_type at 9);
        lies!(sample_regs_user at 10);
        lies!(sample_stack_user at 11);
        lies!(clockid above 11);
        lies!(sample_regs_intr at 12);
        lies!(aux_watermark at 13);
        lies!(sample_max_stack above 13);
        lies!(aux_sample_size at 14);
        lies!(sig_data at 15);
        lies!(config3 at 16);
    }

    #[test]
    fn flags_match_the_header_bits() {
        macro_rules! set_by_bindings {
            ($($flag:ident $set:ident)*) => { vec![$({
                let mut theirs = perf_event_attr::default();
                theirs.$set(1);
                assert_eq!(concat!("set_", stringify!($set)).replacen("set_set_", "", 1), Flag::$flag.name());
                assert!(theirs._bitfield_1.get_bit(Flag::$flag as usize), stringify!($flag));
                Flag::$flag
            }),*] };
        }
        let seen = set_by_bindings!(
            Disabled set_disabled Inherit set_inherit Pinned set_pinned Exclusive set_exclusive
            ExcludeUser set_exclude_user ExcludeKernel set_exclude_kernel ExcludeHv set_exclude_hv
            ExcludeIdle set_exclude_idle Mmap set_mmap Comm set_comm Freq set_freq
            InheritStat set_inherit_stat EnableOnExec set_enable_on_exec Task set_task
            Watermark set_watermark MmapData set_mmap_data SampleIdAll set_sample_id_all
            ExcludeHost set_exclude_host ExcludeGuest set_exclude_guest
            ExcludeCallchainKernel set_exclude_callchain_kernel
            ExcludeCallchainUser set_exclude_callchain_user Mmap2 set_mmap2 CommExec set_comm_exec
            UseClockid set_use_clockid ContextSwitch set_context_switch WriteBackward set_write_backward
            Namespaces set_namespaces Ksymbol set_ksymbol BpfEvent set_bpf_event
            AuxOutput set_aux_output Cgroup set_cgroup TextPoke set_text_poke BuildId set_build_id
            InheritThread set_inherit_thread RemoveOnExec set_remove_on_exec Sigtrap set_sigtrap
            DeferCallchain set_defer_callchain DeferOutput set_defer_output
        );
        assert_eq!(seen, Flag::ALL);
        let mut theirs = perf_event_attr::default();
        theirs.set_precise_ip(2);
        let mut own = Attr::default();
        own.set_precise_ip(2);
        assert_eq!(theirs._bitfield_1.get(0, 64), own.words[5]);
    }

    #[test]
    fn set_values_are_read_back() {
        let mut attr = Attr::new(kind::BREAKPOINT, 7);
        attr.set_breakpoint(3, 0x1234, 4);
        attr.set_clockid(-1);
        attr.set_sample_stack_user(8192);
        attr.set_sample_max_stack(127);
        attr.set_wakeup(9);
        let image = attr.image(attr.size());
        assert_eq!((image[0], image[1]), (128 << 32 | 5, 7));
        assert_eq!((image[6], image[7], image[8]), (3 << 32 | 9, 0x1234, 4));
        assert_eq!((attr.clockid(), attr.sample_stack_user(), attr.sample_max_stack()), (-1, 8192, 127));
    }

    #[test]
    fn attr_size_grows_only_when_needed() {
        let mut attr = Attr::new(0, 0);
        assert_eq!(attr.size(), 128);
        assert!(attr.or_word(16, 1));
        assert_eq!(attr.size(), 136);
        assert!(!attr.or_word(18, 1));
    }
}
