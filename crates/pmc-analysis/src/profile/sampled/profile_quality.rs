//! Quality of a profile: lost samples, incomplete stacks, and missing names with the reasons.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::code::LocationCalls;
use super::interpreters::{self, NamelessLanguage};
use super::strings::{StringId, StringTable};
use crate::session::ResolvedStacks;
use pmc_symbols::symbol::ModuleDataQuality;

/// The numbers that the data quality statement is based on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProfileQuality {
    /// Number of samples read.
    pub samples: u64,
    /// Number of samples dropped by the kernel.
    pub lost_samples: u64,
    /// Number of records of any kind that did not fit into the ring buffer.
    pub lost_records: u64,
    /// Number of times that an event was throttled.
    pub throttled: u64,
    /// Nanoseconds during which the hardware events were off because another program had reserved the
    /// counters.
    pub yielded_ns: u64,
    /// Number of samples of unknown events.
    pub unknown: u64,
    /// Whether the file is damaged. The number of missing samples is then unknown.
    pub is_damaged: bool,
    /// Number of samples with a call chain; 0 if none were recorded.
    pub stacks: u64,
    /// Number of stacks whose outermost function is an entry point of a program, a thread or the kernel.
    pub rooted: u64,
    /// Whether another program recorded the stacks. Where they end then says nothing about unwinding.
    pub is_imported: bool,
    /// Number of samples whose outermost callers were unmapped and therefore removed.
    pub cut_off: u64,
    /// Number of samples with a truncated stack that was completed from earlier samples of the thread.
    pub joined: u64,
    /// Number of frames in all samples.
    pub frames: u64,
    /// Number of frames without a symbol.
    pub unnamed: u64,
    /// For stacks that do not reach a root: the module of the outermost frame, with its number of samples,
    /// largest first.
    pub broken: Vec<(String, u64)>,
    /// How the unwinding of copied stacks ended.
    pub ends: UnwindEnds,
    /// Whether call chains exist but were not requested. Their quality is then unknown.
    pub chains_unread: bool,
    /// The event count of the recorded command, compared with its samples; `None` if unknown.
    pub unsampled: Option<UnsampledEvent>,
    /// How stacks were unwound during recording (`dwarf` or `auto`). In this case, the recorder has already
    /// reported why stacks end.
    pub unwound_live: Option<&'static str>,
    /// Percentage of the stacks unwound during recording that end at the end of their copy. `None` if
    /// unknown.
    pub cut_live: Option<f64>,
    /// Whether stack copies had the kernel's maximum size.
    pub largest_copies: bool,
    /// Languages that were interpreted in the samples and whose functions have no names.
    pub nameless_languages: Vec<NamelessLanguage>,
    /// Number of samples whose stack ends where Erlang called C code.
    pub erlang_ends: u64,
    /// Notes about the file.
    pub notes: Vec<String>,
}

/// An event of a recorded command that was both counted and sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsampledEvent {
    /// Number of events counted.
    pub counted: u64,
    /// Sum of the periods of the samples.
    pub sampled: u64,
    /// Whether both values are nanoseconds of CPU time.
    pub(crate) is_time: bool,
}

/// How the unwinding of copied stacks ended: the number of samples for each case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnwindEnds {
    /// Number of all copied stacks.
    pub copied: u64,
    /// Number of samples in which the next frame is beyond the copied bytes.
    pub cut: u64,
    /// Number of samples in which unwinding failed, because the unwind tables are wrong or the stack is
    /// damaged.
    pub lost: u64,
    /// Modules in which these stacks end, each with its number of samples, largest first. `None` means
    /// unmapped code.
    pub lost_in: Vec<(Option<String>, u64)>,
    /// Number of samples whose chain reached its maximum length (`--max-stack`).
    pub long: u64,
    /// Number of samples of 32-bit Arm processes, which pmc does not unwind.
    pub compat: u64,
    /// Modules that stopped the unwinding because they have no unwind tables, each with its number of
    /// samples, largest first. `None` means unmapped code.
    pub no_tables: Vec<(Option<String>, u64)>,
}

impl UnwindEnds {
    /// Returns the number of copied stacks that end before the program's entry point.
    pub(crate) fn early(&self) -> u64 {
        self.cut
            + self.lost
            + self.long
            + self.compat
            + self.no_tables.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// A module with samples, its symbols, and its missing data.
///
/// A recording may have a million modules, so the strings are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleQuality {
    /// The module's path; untrusted text.
    pub path: Arc<Path>,
    /// The module's short name.
    pub name: StringId,
    /// Build ID in hexadecimal.
    pub build_id: Option<Box<str>>,
    /// The files that were found, and the data that is missing.
    pub data: Arc<ModuleDataQuality>,
    /// Number of frames in this module, over all samples.
    pub frames: u64,
    /// Number of frames without a symbol.
    pub unnamed: u64,
    /// How to get the missing data.
    pub remedy: Option<Box<str>>,
}

/// Counts of stacks and frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StackCounts {
    /// Number of samples with at least one caller, or whose only function is a root.
    pub(crate) stacks: u64,
    /// See [`ProfileQuality::rooted`].
    pub(crate) rooted: u64,
    /// See [`ProfileQuality::cut_off`].
    pub(crate) cut_off: u64,
    /// See [`ProfileQuality::joined`].
    pub(crate) joined: u64,
    /// For stacks that do not reach a root: number of samples by the module of the outermost frame with a
    /// module.
    pub(crate) broken: FxHashMap<Option<u32>, u64>,
    /// Number of frames and of unnamed frames by module; `None` is unmapped memory.
    pub(crate) modules: FxHashMap<Option<u32>, (u64, u64)>,
    /// See [`ProfileQuality::nameless_languages`].
    pub(crate) nameless_languages: Vec<NamelessLanguage>,
    /// See [`ProfileQuality::erlang_ends`].
    pub(crate) erlang_ends: u64,
}

/// Functions in which stacks start: entry points of programs, of threads and of the kernel. A suffix after a
/// dot (added by a compiler) or after `@` (a version) is ignored.
const ROOTS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "thread_start",
    "_dl_start_user",
    "_dl_start",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.clone",
    "ret_from_fork",
    "ret_from_fork_asm",
    "secondary_startup_64",
    "secondary_startup_64_no_verify",
    "start_kernel",
    "x86_64_start_kernel",
    "cpu_startup_entry",
    "secondary_start_kernel",
    "entry_SYSCALL_64_after_hwframe",
    "entry_SYSCALL_64",
    "el0t_64_sync",
    // Erlang processes return to `normal_exit`. Callers are looked up by the return address minus one, which
    // is in the preceding symbol, its `CodeInfoPrologue`.
    "erts_beamasm:normal_exit/0",
    "erts_beamasm:normal_exit/0-CodeInfoPrologue",
];

/// Counts the stacks and frames of the rows. If no callers were recorded, counts only the innermost
/// functions.
pub(crate) fn count(
    resolved: &ResolvedStacks,
    code: &LocationCalls,
    texts: &StringTable,
    has_callers: bool,
) -> StackCounts {
    let is_root: Vec<bool> = {
        let mut roots: FxHashMap<StringId, bool> = FxHashMap::default();
        let mut ask = |id: StringId| {
            *roots.entry(id).or_insert_with(|| {
                let name = texts.get(id);
                let plain = name.split(['@']).next().unwrap_or(name);
                // Go's names contain a dot, and a second dot starts a suffix for the calling convention.
                let plain = match plain.strip_prefix("runtime.") {
                    Some(of_go) => {
                        &plain[..plain.len() - of_go.len() + of_go.find('.').unwrap_or(of_go.len())]
                    }
                    None => plain.split('.').next().unwrap_or(plain),
                };
                ROOTS.contains(&plain)
            })
        };
        code.calls().iter().map(|call| ask(call.short)).collect()
    };
    let mut quality = StackCounts {
        nameless_languages: interpreters::nameless(resolved, code, texts, has_callers),
        erlang_ends: if has_callers { interpreters::erlang_ends(resolved, code, texts) } else { 0 },
        ..StackCounts::default()
    };
    for (key, value) in &resolved.rows {
        let stack = || resolved.stack(key.stack);
        if stack().all(|location| resolved.locations[location as usize].missing_stack().is_some()) {
            continue;
        }
        quality.stacks += value.samples;
        quality.cut_off += if resolved.is_cut(key.stack) { value.samples } else { 0 };
        quality.joined += if resolved.is_joined(key.stack) { value.samples } else { 0 };
        // Frames beyond the root are caused by an uninitialized frame pointer and have no name.
        let mut outward = stack().rev().map(|location| code.own(location));
        if outward.find(|call| code.calls()[*call].named).is_some_and(|call| is_root[call]) {
            quality.rooted += value.samples;
        } else if has_callers {
            let outermost = stack().rev().find_map(|location| code.module(location));
            *quality.broken.entry(outermost).or_default() += value.samples;
        }
        for location in stack() {
            let counts = quality.modules.entry(code.module(location)).or_default();
            counts.0 += value.samples;
            if !code.calls()[code.own(location)].named {
                counts.1 += value.samples;
            }
        }
    }
    quality
}
