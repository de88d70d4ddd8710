//! How far a profile can be trusted: what was lost, which stacks are whole, which names are missing and why.

use rustc_hash::FxHashMap;

use super::interpreters::{self, NamelessLanguage};
use super::{Code, StringId, StringTable};
use crate::session::Resolved;

/// The facts of the trust line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataQuality {
    /// Samples read.
    pub samples: u64,
    /// Samples that the kernel dropped.
    pub lost_samples: u64,
    /// Records of any kind that found the ring full.
    pub lost_records: u64,
    /// How often an event was stopped because it came too fast.
    pub throttled: u64,
    /// Nanoseconds in which the hardware events were left to somebody's reservation.
    pub yielded_ns: u64,
    /// Samples of no known event.
    pub unknown: u64,
    /// The file is damaged: nobody knows how many samples are missing.
    pub is_damaged: bool,
    /// Samples with a call chain; 0 when none were recorded.
    pub stacks: u64,
    /// Those whose outermost function is where programs, threads or the kernel's own work begin.
    pub rooted: u64,
    /// Samples whose outermost callers, where nothing was mapped, were cut off.
    pub cut_off: u64,
    /// Samples whose stack ended with its copy and was joined with what was seen of the thread before.
    pub joined: u64,
    /// Frames of all samples.
    pub frames: u64,
    /// Those that no symbol names.
    pub unnamed: u64,
    /// Where stacks end that do not reach a root: the module of the outermost frame, and how many samples;
    /// most first.
    pub broken: Vec<(String, u64)>,
    /// Why copied stacks end.
    pub ends: Ends,
    /// There are call chains, and nobody asked for callers: what they are worth is not known.
    pub chains_unread: bool,
    /// What the recorded command counted, and what of it lies in samples; `None` where that is not known.
    pub unsampled: Option<Unsampled>,
    /// Stacks were copied and unwound while recording, in this way (`dwarf` or `auto`): why they end was said
    /// there.
    pub unwound_live: Option<&'static str>,
    /// Copies of stacks were as large as the kernel makes them.
    pub largest_copies: bool,
    /// Interpreters in the samples whose languages' functions have no names.
    pub nameless_languages: Vec<NamelessLanguage>,
    /// Samples whose stack ends where Erlang called code in C.
    pub erlang_ends: u64,
    /// What is worth knowing about the file.
    pub notes: Vec<String>,
}

/// An event of a recorded command, counted and sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsampled {
    /// What it counted.
    pub counted: u64,
    /// Sum of the periods of its samples.
    pub sampled: u64,
    /// Whether both are nanoseconds of CPU time.
    pub is_time: bool,
}

/// How the unwinding of copied stacks ended, in samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// Copied stacks, all.
    pub copied: u64,
    /// The next frame lies beyond the copied bytes.
    pub cut: u64,
    /// The unwind tables led nowhere: they are wrong, or the stack is damaged.
    pub lost: u64,
    /// As long as chains are allowed to be (`--max-stack`).
    pub long: u64,
    /// Those of 32-bit Arm processes, which are not unwound.
    pub compat: u64,
    /// Code without unwind tables stood in the way: its module (`None` where nothing was mapped), and how
    /// many; most first.
    pub no_tables: Vec<(Option<String>, u64)>,
}

impl Ends {
    /// Copied stacks that end before the program's own beginning.
    pub fn early(&self) -> u64 {
        self.cut
            + self.lost
            + self.long
            + self.compat
            + self.no_tables.iter().map(|(_, samples)| samples).sum::<u64>()
    }
}

/// What is known about a module with samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleQuality {
    /// Its path; foreign text.
    pub path: String,
    /// Its short name.
    pub name: String,
    /// Build-id in hexadecimal.
    pub build_id: Option<String>,
    /// The file its names came from.
    pub binary: Option<String>,
    /// The separate debug file.
    pub debug: Option<String>,
    /// Entries of its symbol tables.
    pub symbols: usize,
    /// Whether it has lines.
    pub lines: bool,
    /// Frames of all samples in it.
    pub frames: u64,
    /// Those that no symbol names.
    pub unnamed: u64,
    /// What is missing, worst first.
    pub missing: Vec<String>,
    /// What would bring it.
    pub remedy: Option<String>,
}

/// Counts of stacks and frames.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StackCounts {
    /// Samples with at least one caller, or whose only function is a root.
    pub stacks: u64,
    /// See [`DataQuality::rooted`].
    pub rooted: u64,
    /// See [`DataQuality::cut_off`].
    pub cut_off: u64,
    /// See [`DataQuality::joined`].
    pub joined: u64,
    /// Of the stacks that do not reach one: samples by the module of the outermost frame that lies in one.
    pub broken: FxHashMap<Option<u32>, u64>,
    /// Frames and unnamed frames by module; `None` is memory where nothing was mapped.
    pub modules: FxHashMap<Option<u32>, (u64, u64)>,
    /// See [`DataQuality::nameless_languages`].
    pub nameless_languages: Vec<NamelessLanguage>,
    /// See [`DataQuality::erlang_ends`].
    pub erlang_ends: u64,
}

/// The functions in which stacks begin: of programs, of threads, of the kernel. What a compiler adds behind a
/// dot, and versions behind `@`, are ignored.
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
    // Erlang's processes return to it; the call of a caller's frame lies just before it.
    "erts_beamasm:normal_exit/0",
    "erts_beamasm:normal_exit/0-CodeInfoPrologue",
];

/// Counts what the rows' stacks are worth; without callers, their innermost functions.
pub fn count(resolved: &Resolved, code: &Code, texts: &StringTable, has_callers: bool) -> StackCounts {
    let is_root: Vec<bool> = {
        let mut roots: FxHashMap<StringId, bool> = FxHashMap::default();
        let mut ask = |id: StringId| {
            *roots.entry(id).or_insert_with(|| {
                let name = texts.get(id);
                let plain = name.split(['@']).next().unwrap_or(name);
                // Go's names have a dot in them, and say behind another how they are called.
                let plain = match plain.strip_prefix("runtime.") {
                    Some(of_go) => {
                        &plain[..plain.len() - of_go.len() + of_go.find('.').unwrap_or(of_go.len())]
                    }
                    None => plain.split('.').next().unwrap_or(plain),
                };
                ROOTS.contains(&plain)
            })
        };
        code.calls().iter().map(|call| ask(call.symbol)).collect()
    };
    let mut quality = StackCounts {
        nameless_languages: interpreters::nameless(resolved, code, texts, has_callers),
        erlang_ends: if has_callers { interpreters::erlang_ends(resolved, code, texts) } else { 0 },
        ..StackCounts::default()
    };
    for (key, value) in &resolved.rows {
        let stack = || resolved.stack(key.stack);
        quality.stacks += value.samples;
        quality.cut_off += if resolved.is_cut(key.stack) { value.samples } else { 0 };
        quality.joined += if resolved.is_joined(key.stack) { value.samples } else { 0 };
        // What lies behind the root is the chase of a frame pointer that nobody set: it has no name.
        let mut outward = stack().rev().map(|location| code.own(location));
        if outward.find(|call| code.calls()[*call].named).is_some_and(|call| is_root[call]) {
            quality.rooted += value.samples;
        } else {
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
