//! Writes an imported profile as a recording with an archive, which all commands read like any other
//! recording.
//!
//! Each location gets a separate address in a mapping that represents its module. The archive contains the
//! names and lines at these addresses, so that no file of this machine is consulted.
//!
//! ```text
//!   module --> mapping | function: slot slot slot | function: slot | ...    a slot per location, 16 bytes
//!   sample --> SAMPLE records: a period, and a call chain of addresses in slots
//! ```

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::error::ImportError;
use super::profile::{ImportId, ImportedCall, ImportedProfile, ImportedSample, ImportedThread};
use pmc_perfdata::perfdata::feature::{ClockData, EventDesc, RawSection, SampleTime};
use pmc_perfdata::perfdata::{Features, Reader, RecordedEvent, RecordingNote, Writer};
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{MappedFileId, Mmap, Mmap2, Thread};
use pmc_symbols::address::Avma;
use pmc_symbols::symbol::{
    ImportedCode, ImportedFrame, ImportedSymbols, OriginalFacts, SymbolModule, SymbolModuleKind,
};
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::{Attr, CpuMode, context, generic, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::replacement::create_temporary;
use pmc_text::units::thousands;

/// Number of bytes of a slot. An archive's answer applies to at most this many bytes.
const SLOT: u64 = 16;
/// Offset of the recorded address in a slot. A return address is one higher, and readers subtract 1 from it.
const INSIDE: u64 = 7;
/// Address of the first mapping of a process, and of the kernel.
const USER_START: u64 = 1 << 20;
const KERNEL_START: u64 = 0xffff_8000_0000_0000;
/// Mappings start at multiples of this.
const PAGE: u64 = 1 << 12;
/// Maximum number of records into which rows of several samples are split, and of words in them.
const MOST_RECORDS: u64 = 2_000_000;
const MOST_SPLIT_WORDS: u64 = 1 << 26;
/// Maximum number of words in all records.
const MOST_WORDS: u64 = 1 << 28;
/// Number of words of a record without its call chain.
const RECORD_WORDS: u64 = 10;
/// Name of the module of code whose module is unknown.
const UNKNOWN_MODULE: &str = "unknown";
/// Name of the kernel's module.
const KERNEL: &str = "[kernel.kallsyms]";
/// The clock of times since the epoch (`CLOCK_REALTIME`).
const WALL_CLOCK: ClockData =
    ClockData { version: 1, clockid: 0, wall_clock_ns: 0, clockid_time_ns: 0, uncertainty_ns: None };
/// Number of bytes to write at a time.
const PIECE: usize = 1 << 20;

/// Writes the profile into an unnamed temporary file, and opens it. `path` is the name of the imported file.
/// A note of the recording names the records that could not be read.
pub(super) fn write(profile: &ImportedProfile, facts: OriginalFacts, path: &Path) -> Result<Reader> {
    let lost = profile.lost().map(|lost| format!("imported as {}: {lost}", facts.form));
    let layout = AddressLayout::new(profile);
    let has_time = profile.samples.iter().all(|sample| sample.time.is_some());
    let has_cpu = profile.samples.iter().all(|sample| sample.cpu.is_some());
    let optional = |is_there: bool, bit: u64| if is_there { bit } else { 0 };
    let fields = sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::PERIOD
        | sample_type::CALLCHAIN
        | optional(has_time, sample_type::TIME)
        | optional(has_cpu, sample_type::CPU);
    let events: Vec<RecordedEvent> = (1..)
        .zip(&profile.events)
        .map(|(id, event)| RecordedEvent {
            attr: attr_of(&event.name, id, fields),
            ids: vec![id],
            name: Some(event.name.clone()),
        })
        .collect();
    let failed = |error| Error::io("making a temporary file", error);
    let file = create_temporary().map_err(failed)?;
    let writer = Writer::file(file.try_clone().map_err(failed)?, path, &events)?;
    let mut out = RecordWriter {
        writer,
        buffer: Vec::new(),
        profile,
        layout: &layout,
        has_time,
        has_cpu,
        trailer: 16 + 8 * (usize::from(has_time) + usize::from(has_cpu)),
        mapped: HashSet::new(),
        comms: HashMap::new(),
    };
    out.kernel_modules()?;
    out.samples()?;
    let section = layout.symbols(profile).encode(&facts);
    let section =
        section.map_err(|error| Error::new(format!("cannot convert {}: {error}", path.display())))?;
    let described = events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone()));
    let features = Features {
        event_desc: Some(EventDesc(described.collect())),
        archive: Some(RawSection(section)),
        clock_data: profile.has_dates.then_some(WALL_CLOCK),
        sample_time: sample_time(profile).filter(|_| has_time),
        ..Features::default()
    };
    out.flush()?;
    out.writer.finish(&features)?;
    Ok(Reader::of_file(file, path, lost.map(|what| RecordingNote::Import { what }))?)
}

/// Returns the attributes of an event: those of perf's event with this name, or else a raw event.
fn attr_of(name: &str, id: u64, fields: u64) -> Attr {
    let (plain, modifiers) = name.split_once(':').unwrap_or((name, ""));
    let known = generic::find(plain).map(|event| (event.kind, event.config));
    let wait = plain.starts_with("offcpu-").then_some((kind::SOFTWARE, generic::BPF_OUTPUT));
    let (kind, config) = known.or(wait).unwrap_or((kind::RAW, id));
    let mut attr = Attr::new(kind, config);
    attr.set_sample_type(fields);
    attr.set(Flag::SampleIdAll, true);
    attr.set(Flag::ExcludeKernel, modifiers == "u");
    attr.set(Flag::ExcludeUser, modifiers == "k");
    attr
}

/// A module, and the slots of its locations.
struct MappedModuleLayout {
    is_kernel: bool,
    name: String,
    start: u64,
    len: u64,
    /// Locations in the order of their slots.
    locations: Vec<ImportId>,
}

/// The addresses of all locations.
struct AddressLayout {
    modules: Vec<MappedModuleLayout>,
    /// The recorded address of each location.
    addresses: Vec<u64>,
    /// The module of each location.
    module_of: Vec<u32>,
}

impl AddressLayout {
    fn new(profile: &ImportedProfile) -> Self {
        let mut numbers: HashMap<(ImportId, bool), u32> = HashMap::new();
        // Different texts can become the same name: none, `unknown` and `[unknown]`.
        let mut named: HashMap<(String, bool), u32> = HashMap::new();
        let mut modules: Vec<MappedModuleLayout> = Vec::new();
        let mut module_of = Vec::with_capacity(profile.locations.len());
        for (location, calls) in (0..).zip(&profile.locations) {
            let own = own_call(profile, calls);
            let key = (own.module, own.is_kernel);
            let number = *numbers.entry(key).or_insert_with(|| {
                let (name, is_kernel) = (module_name(profile.get_text(key.0), key.1), key.1);
                *named.entry((name, is_kernel)).or_insert_with_key(|(name, _)| {
                    let (name, locations) = (name.clone(), Vec::new());
                    modules.push(MappedModuleLayout { is_kernel, name, start: 0, len: 0, locations });
                    modules.len() as u32 - 1
                })
            });
            modules[number as usize].locations.push(location);
            module_of.push(number);
        }
        let mut addresses = vec![0; profile.locations.len()];
        let (mut user, mut kernel) = (USER_START, KERNEL_START);
        for module in &mut modules {
            // The locations of a function are consecutive.
            let order = |location: &ImportId| own_call(profile, &profile.locations[*location as usize]);
            module.locations.sort_by_key(order);
            let next = if module.is_kernel { &mut kernel } else { &mut user };
            module.start = *next;
            module.len = (module.locations.len() as u64 * SLOT).next_multiple_of(PAGE);
            *next += module.len + PAGE;
            for (slot, location) in (0..).zip(&module.locations) {
                addresses[*location as usize] = module.start + slot * SLOT + INSIDE;
            }
        }
        Self { modules, addresses, module_of }
    }

    /// Returns the names and lines at all addresses.
    fn symbols(&self, profile: &ImportedProfile) -> ImportedSymbols {
        let mut symbols = ImportedSymbols::default();
        for module in &self.modules {
            let call = |location: &ImportId| own_call(profile, &profile.locations[*location as usize]);
            let mut code: Vec<(u64, ImportedCode)> = Vec::with_capacity(module.locations.len());
            let mut start = module.start;
            for of_function in module.locations.chunk_by(|a, b| call(a).name == call(b).name) {
                let size = of_function.len() as u64 * SLOT;
                for location in of_function {
                    let own = call(location);
                    let address = self.addresses[*location as usize];
                    if own.name != 0 {
                        let calls = profile.locations[*location as usize].iter();
                        let frames =
                            calls.map(|call| frame(profile, &profile.calls[*call as usize])).collect();
                        code.push((address, ImportedCode::Function { start, size, frames }));
                    } else if own.address != 0 {
                        let name = Path::new(&module.name).file_name().unwrap_or_default().to_string_lossy();
                        let text = format!("{name}+{:#x}", own.address);
                        code.push((address, ImportedCode::Nameless(text)));
                    }
                }
                start += size;
            }
            symbols.add(&module.for_symbols(), code.into_iter());
        }
        symbols
    }
}

impl MappedModuleLayout {
    fn is_vmlinux(&self) -> bool {
        self.is_kernel && self.name == KERNEL
    }

    /// Returns the module as the session describes it to the symbolizer.
    fn for_symbols(&self) -> SymbolModule {
        let kind = match self.is_kernel {
            true if self.is_vmlinux() => SymbolModuleKind::Kernel { reference: None },
            true => SymbolModuleKind::KernelModule { start: Avma(self.start) },
            false => SymbolModuleKind::File,
        };
        SymbolModule { kind, ..SymbolModule::file(&self.name) }
    }
}

/// Returns the function of a location into which all others were inlined.
fn own_call(profile: &ImportedProfile, calls: &[ImportId]) -> ImportedCall {
    calls.last().map_or_else(ImportedCall::default, |call| profile.calls[*call as usize])
}

fn frame(profile: &ImportedProfile, call: &ImportedCall) -> ImportedFrame {
    let text = |number: ImportId| Arc::clone(profile.get_text(number));
    let file = (call.file != 0).then(|| text(call.file));
    ImportedFrame { name: text(call.name), file, line: call.line }
}

/// Returns a name that readers take for a file, or for kernel code.
fn module_name(name: &str, is_kernel: bool) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if is_kernel {
        let is_module = clean.starts_with('[') && clean.len() > 2 && !clean.starts_with("[kernel");
        let is_module = is_module && !clean.starts_with("[guest");
        return if is_module { clean } else { KERNEL.to_owned() };
    }
    // Readers take these names for memory without a file, which has no names in an archive.
    let plain = clean.trim_start_matches('[').trim_end_matches(']');
    let is_special = ["//anon", "/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"];
    match plain {
        "" => UNKNOWN_MODULE.to_owned(),
        _ if is_special.iter().any(|start| plain.starts_with(start)) => format!("({plain})"),
        _ if plain.ends_with(".dump") => format!("({plain})"),
        _ => plain.to_owned(),
    }
}

/// Writes the records.
struct RecordWriter<'a> {
    writer: Writer,
    buffer: Vec<u8>,
    profile: &'a ImportedProfile,
    layout: &'a AddressLayout,
    has_time: bool,
    has_cpu: bool,
    /// Size of the `sample_id` of records that are not samples, in bytes.
    trailer: usize,
    /// Modules that a process has mapped.
    mapped: HashSet<(i32, u32)>,
    /// The current name of each thread.
    comms: HashMap<(i32, i32), ImportId>,
}

impl RecordWriter<'_> {
    fn kernel_modules(&mut self) -> Result<()> {
        for module in self.layout.modules.iter().filter(|module| module.is_kernel) {
            let mut encoder = Encoder::new(self.trailer);
            encoder.kernel_mmap(module.start, module.len, 0, module.name.as_bytes());
            self.push(encoder.bytes())?;
        }
        Ok(())
    }

    fn samples(&mut self) -> Result<()> {
        let mut order: Vec<u32> = (0..self.profile.samples.len() as u32).collect();
        if self.has_time {
            order.sort_by_key(|number| self.profile.samples[*number as usize].time);
        }
        let is_split = is_split(self.profile);
        for number in order {
            let sample = &self.profile.samples[number as usize];
            self.thread(sample)?;
            let count = if is_split { sample.samples } else { 1 };
            let mut rest = sample.value;
            for left in (1..=count).rev() {
                let period = rest / left;
                rest -= period;
                self.sample(sample, period)?;
            }
        }
        Ok(())
    }

    /// Writes the mappings and the name of a sample's thread, if they are new.
    fn thread(&mut self, sample: &ImportedSample) -> Result<()> {
        let ImportedThread { pid, tid, comm } = self.profile.threads[sample.thread as usize];
        let thread = Thread { pid, tid };
        if self.comms.insert((pid, tid), comm) != Some(comm) {
            let mut encoder = Encoder::new(self.trailer);
            encoder.long_comm(thread, self.profile.get_text(comm).as_bytes());
            let mut trailer = Vec::new();
            trailer.extend(pid.to_ne_bytes());
            trailer.extend(tid.to_ne_bytes());
            trailer.extend(self.has_time.then(|| sample.time.unwrap_or(0).to_ne_bytes()).iter().flatten());
            trailer.extend(self.has_cpu.then_some(0u64.to_ne_bytes()).iter().flatten());
            trailer.extend(1u64.to_ne_bytes());
            self.push(&encoder.with_trailer(&trailer))?;
        }
        let (profile, layout) = (self.profile, self.layout);
        for location in &profile.stacks[sample.stack as usize] {
            let number = layout.module_of[*location as usize];
            let module = &layout.modules[number as usize];
            if module.is_kernel || !self.mapped.insert((pid, number)) {
                continue;
            }
            let name = module.name.as_bytes();
            let (addr, len) = (module.start, module.len);
            let map = Mmap { thread: Thread { pid, tid: pid }, addr, len, pgoff: addr, is_data: false, name };
            let file = MappedFileId::Inode { major: 0, minor: 0, inode: 0, generation: 0 };
            let mut encoder = Encoder::new(self.trailer);
            encoder.mmap2(&Mmap2 { map, file, prot: 5, flags: 2 });
            self.push(encoder.bytes())?;
        }
        Ok(())
    }

    fn sample(&mut self, sample: &ImportedSample, period: u64) -> Result<()> {
        let stack = &self.profile.stacks[sample.stack as usize];
        let mut chain = Vec::with_capacity(stack.len() + 2);
        let mut level = None;
        for location in stack {
            let is_kernel = self.layout.modules[self.layout.module_of[*location as usize] as usize].is_kernel;
            let address = self.layout.addresses[*location as usize];
            if level != Some(is_kernel) {
                chain.push(if is_kernel { context::KERNEL } else { context::USER });
                chain.push(address);
                level = Some(is_kernel);
            } else {
                chain.push(address + 1);
            }
        }
        let ImportedThread { pid, tid, .. } = self.profile.threads[sample.thread as usize];
        let ip = chain.get(1).copied().unwrap_or(0);
        let ids = u64::from(pid as u32) | u64::from(tid as u32) << 32;
        let mut fields = vec![u64::from(sample.event) + 1, ip, ids];
        fields.extend(sample.time.filter(|_| self.has_time));
        fields.extend(sample.cpu.filter(|_| self.has_cpu).map(u64::from));
        fields.extend([period, chain.len() as u64]);
        fields.extend(chain);
        let is_kernel = ip >> 63 == 1;
        let mode = if is_kernel { CpuMode::Kernel } else { CpuMode::User };
        let mut encoder = Encoder::new(0);
        encoder.sample(mode.bits(), &fields);
        self.push(encoder.bytes())
    }

    fn push(&mut self, record: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(record);
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.writer.append(&[&self.buffer])?;
        self.buffer.clear();
        Ok(())
    }
}

/// Returns the number of words of the records, if each sample becomes `count` records.
fn words(profile: &ImportedProfile, count: impl Fn(&ImportedSample) -> u64) -> u64 {
    let of = |sample: &ImportedSample| {
        let chain = profile.stacks[sample.stack as usize].len() as u64;
        count(sample).saturating_mul(chain + RECORD_WORDS)
    };
    profile.samples.iter().map(of).fold(0, u64::saturating_add)
}

/// Returns the times of the first and last sample.
fn sample_time(profile: &ImportedProfile) -> Option<SampleTime> {
    let times = || profile.samples.iter().filter_map(|sample| sample.time);
    Some(SampleTime { first: times().min()?, last: times().max()? })
}

/// Whether rows of several samples become several records.
fn is_split(profile: &ImportedProfile) -> bool {
    sample_count(profile) <= MOST_RECORDS && words(profile, |sample| sample.samples) <= MOST_SPLIT_WORDS
}

fn sample_count(profile: &ImportedProfile) -> u64 {
    profile.samples.iter().map(|sample| sample.samples).fold(0, u64::saturating_add)
}

/// Returns notes on what the conversion dropped.
pub(super) fn notes(profile: &ImportedProfile) -> Vec<String> {
    let mut notes = profile.notes.clone();
    notes.extend(profile.needless().map(ToString::to_string));
    let cut = profile.cut_stacks();
    if cut > 0 {
        let most = thousands(super::profile::MOST_FRAMES as u64);
        notes.push(format!(
            "{} stacks deeper than {most} frames were cut at their outermost callers",
            thousands(cut)
        ));
    }
    let samples = sample_count(profile);
    if !is_split(profile) && samples > profile.samples.len() as u64 {
        notes.push(format!(
            "{} samples are shown as {}, one per stack and thread; the sums of their values are exact",
            thousands(samples),
            thousands(profile.samples.len() as u64)
        ));
    }
    notes
}

/// Checks that the sums of the values and the records fit.
pub(super) fn check(profile: &ImportedProfile) -> std::result::Result<(), ImportError> {
    if words(profile, |_| 1) > MOST_WORDS {
        return Err(ImportError::Limit { what: "frames of all samples", most: MOST_WORDS });
    }
    let sum = profile.samples.iter().try_fold(0u64, |sum, sample| sum.checked_add(sample.value));
    match sum.filter(|sum| *sum < 1 << 62) {
        Some(_) => Ok(()),
        None => Err(ImportError::Limit { what: "the sum of all values", most: 1 << 62 }),
    }
}
