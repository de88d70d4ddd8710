//! Replaces all addresses in a recording, so that it does not reveal where the kernel placed code and data.
//!
//! Receives a plain recording, and writes another one with the same samples. Every mapping keeps its size,
//! and an address keeps its offset in its mapping, so readers find the same functions. Fields that may
//! contain addresses in other forms, such as registers and raw data, are overwritten with zeros.
//!
//! ```text
//! old  |....[prog]........[libc][vdso]......|   ranges of mappings, of all processes and times
//! new  |[prog].[libc][vdso].                |   in the same order; adjacent ranges stay adjacent
//! ```

use std::path::Path;

use rustc_hash::FxHashMap;

use super::anonymous::{AnonymousNames, NamelessRecord};
use super::{InjectOutput, described};
use crate::analysis::ProgressSink;
use pmc_perfdata::perfdata::{Features, Reader, RecordedEvent, WriteOptions, Writer};
use pmc_perfdata::record::{Mmap, Mmap2, RawRecord, Record, kind, replace_addresses, replace_words};
use pmc_sys::abi::context;
use pmc_sys::error::{Error, Result, say};

/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;
/// Size of the pieces that keep their addresses together outside mappings. All page sizes are multiples.
const PAGE: u64 = 1 << 12;
/// Addresses below are never random.
const LOW: u64 = 0x40_0000;
/// The new start of the first range of user-space mappings, and the end of the space for them.
const USER: u64 = 0x1000_0000;
const USER_END: u64 = 0x6000_0000_0000;
/// Distance between ranges.
const GAP: u64 = 0x1_0000;
/// The new start of pages outside mappings, in user space and in the kernel's half.
const USER_PAGES: u64 = 0x7000_0000_0000;
const KERNEL_PAGES: u64 = 0xffff_9000_0000_0000;
/// Addresses of `_text` without randomization.
const TEXT_X86: u64 = 0xffff_ffff_8100_0000;
const TEXT_ARM: u64 = 0xffff_8000_8000_0000;
/// Offsets of the address and of `pgoff` in mappings, and of the address in `KSYMBOL`.
const MAP_ADDRESS: usize = 16;
const MAP_LENGTH: usize = 24;
const MAP_OFFSET: usize = 32;
const SYMBOL_ADDRESS: usize = 8;
/// Offset of the chain in `CALLCHAIN_DEFERRED`.
const DEFERRED_CHAIN: usize = 24;

/// Where the new recording has the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analysis) enum KernelPosition {
    /// Where an unrandomized kernel is.
    Unrandomized,
    /// Where the old recording has it. An import made up this address, and knows the names of code by it.
    Unchanged,
}

/// Writes the recording with other addresses and, if `names` is given, without the names that it hides.
///
/// # Errors
/// Fails if the recording cannot be read, its mappings are too large, or the output cannot be written.
pub(in crate::analysis) fn replace(
    reader: &Reader,
    output: &Path,
    kernel: KernelPosition,
    mut names: Option<&mut AnonymousNames>,
    progress: &dyn ProgressSink,
) -> Result<()> {
    let mut map = AddressMap::from_recording(reader, kernel)?;
    let events: Vec<RecordedEvent> =
        reader.events().iter().chain(reader.fallback_events()).cloned().collect();
    let mut events: Vec<RecordedEvent> =
        events.into_iter().map(|event| without_address(event, &mut map)).collect();
    let mut features = reader.features().clone();
    // These contain addresses.
    (features.bpf_prog_info, features.archive) = (None, None);
    if let Some(names) = names.as_deref_mut() {
        names.hide_events(&mut events, features.pmu_mappings.as_deref().unwrap_or_default());
        names.hide_features(&mut features)?;
    }
    features.event_desc = Some(described(&events));
    let options = WriteOptions {
        hold: true,
        whole: true,
        replaced: Some(|path, was| say::note(format!("replaced {}, which was {was}", path.display()))),
        ..WriteOptions::default()
    };
    let writer = Writer::create(output, &events, &Features::default(), options)?;
    let mut output = InjectOutput { writer, bytes: Vec::new() };
    let meter = progress.begin("replacing addresses", 0);
    let mut written = Ok(());
    let mut record = Vec::new();
    reader.scan(|raw| {
        if written.is_err() || !map.rewrite(reader, raw, &mut record) {
            return;
        }
        let nameless = match names.as_deref_mut() {
            None => NamelessRecord::Kept,
            Some(names) => names.hide_in_record(&mut record),
        };
        if nameless == NamelessRecord::Kept {
            written = output.push(&record);
        }
        meter.more(1);
    })?;
    written?;
    output.flush()?;
    output.writer.finish(&features)?;
    Ok(())
}

/// Removes the address that a breakpoint's attr contains.
fn without_address(mut event: RecordedEvent, map: &mut AddressMap) -> RecordedEvent {
    if event.attr.kind() == pmc_sys::abi::attr::kind::BREAKPOINT {
        let address = event.attr.config1();
        event.attr.set_word(7, map.of_address(address));
        // The name contains the address too.
        event.name = Some(format!("mem:{:#x}", event.attr.config1()));
    }
    event
}

/// From old addresses to new ones.
///
/// One map for all processes suffices: it is the union of their mappings that moves, so mappings that replace
/// or inherit others still do. The kernel's mappings all move by the same distance, to where an unrandomized
/// kernel is, because readers compute the addresses of its modules from the address of its text. Pages
/// outside mappings get consecutive numbers.
struct AddressMap {
    /// Ranges of user-space mappings, sorted: start, end (exclusive) and new start.
    user: Vec<(u64, u64, u64)>,
    /// Ranges of mappings in the kernel's half, sorted, with their last address.
    kernel: Vec<(u64, u64)>,
    /// The distance by which the kernel's mappings move.
    distance: u64,
    /// The new numbers of pages outside mappings.
    pages: FxHashMap<u64, u64>,
    /// Numbers of pages used so far, in user space and in the kernel's half.
    used: [u64; 2],
}

impl AddressMap {
    fn from_recording(reader: &Reader, position: KernelPosition) -> Result<Self> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut text = None;
        reader.scan(|raw| {
            let (start, len) = match raw.parse() {
                Some(Record::Mmap(map) | Record::Mmap2(Mmap2 { map, .. })) => {
                    let stated = text_of(&map).map(|offset| if offset == 0 { map.addr } else { offset });
                    text = text.or(stated);
                    (map.addr, map.len)
                }
                Some(Record::Ksymbol(symbol)) => (symbol.addr, symbol.len.into()),
                _ => return,
            };
            ranges.push((start, start.saturating_add(len.max(1) - 1)));
        })?;
        ranges.sort_unstable();
        // Merge ranges that touch.
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if start <= end.saturating_add(1) && (start < KERNEL) == (*end < KERNEL) => {
                    *end = last.max(*end);
                }
                _ => merged.push((start, last)),
            }
        }
        let at = merged.partition_point(|(start, _)| *start < KERNEL);
        let kernel = merged.split_off(at);
        let mut next = USER;
        let mut user = Vec::new();
        for (start, last) in merged {
            let new = next + start % PAGE;
            user.push((start, last.saturating_add(1), new));
            next = new.saturating_add(last - start).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
            next = next.saturating_add(GAP);
            if next > USER_END {
                return Err(Error::new("cannot replace the addresses: the recorded mappings are too large")
                    .why("the recording may be damaged"));
            }
        }
        let is_arm = reader.features().arch.as_deref().is_some_and(|arch| arch.starts_with("aarch64"));
        let new_text = if is_arm { TEXT_ARM } else { TEXT_X86 };
        let text = text.filter(|_| position == KernelPosition::Unrandomized);
        let distance = text.map_or(0, |text| new_text.wrapping_sub(text));
        Ok(Self { user, kernel, distance, pages: FxHashMap::default(), used: [0; 2] })
    }

    /// Returns the new address.
    fn of_address(&mut self, address: u64) -> u64 {
        if address >= context::MAX {
            return address;
        }
        if address < KERNEL {
            let at = self.user.partition_point(|(start, ..)| *start <= address);
            let range = at.checked_sub(1).map(|at| self.user[at]).filter(|(_, end, _)| address < *end);
            if let Some((start, _, new)) = range {
                return new + (address - start);
            }
            return if address < LOW { address } else { self.of_page(address, 0, USER_PAGES) };
        }
        let at = self.kernel.partition_point(|(start, _)| *start <= address);
        let is_mapped = at.checked_sub(1).is_some_and(|at| address <= self.kernel[at].1);
        let moved = address.wrapping_add(self.distance);
        match is_mapped && (KERNEL..context::MAX).contains(&moved) {
            true => moved,
            false => self.of_page(address, 1, KERNEL_PAGES),
        }
    }

    fn of_page(&mut self, address: u64, half: usize, base: u64) -> u64 {
        let used = &mut self.used[half];
        let page = *self.pages.entry(address / PAGE).or_insert_with(|| {
            *used += 1;
            *used - 1
        });
        base.wrapping_add(page.wrapping_mul(PAGE)) + address % PAGE
    }

    /// Fills `record` with the record and its new addresses. Returns `false` for records that must be
    /// dropped.
    fn rewrite(&mut self, reader: &Reader, raw: &RawRecord<'_>, record: &mut Vec<u8>) -> bool {
        record.clear();
        record.extend_from_slice(raw.bytes);
        match raw.parse() {
            Some(Record::Sample(_)) => {
                // Samples of unknown events cannot be decoded.
                let Some((_, sample)) = reader.layouts().sample(raw) else { return false };
                let layout = sample.layout();
                replace_addresses(&mut record[pmc_perfdata::record::HEADER..], layout, &mut |address| {
                    self.of_address(address)
                })
                .is_some()
            }
            Some(Record::Mmap(map) | Record::Mmap2(Mmap2 { map, .. })) => self.mapping(&map, record),
            Some(Record::Ksymbol(_)) => {
                self.word(record, SYMBOL_ADDRESS);
                true
            }
            Some(Record::CallchainDeferred(chain)) => {
                let end = DEFERRED_CHAIN + chain.chain.len() * 8;
                let words = record.get_mut(DEFERRED_CHAIN..end).unwrap_or_default();
                replace_words(words, &mut |address| self.of_address(address));
                true
            }
            Some(
                Record::Lost(_)
                | Record::Comm(_)
                | Record::Exit(_)
                | Record::Throttle(_)
                | Record::Unthrottle(_)
                | Record::Fork(_)
                | Record::Read(_)
                | Record::Aux(_)
                | Record::ItraceStart(_)
                | Record::LostSamples(_)
                | Record::Switch(_)
                | Record::SwitchCpuWide(_)
                | Record::Namespaces(_)
                | Record::BpfEvent(_)
                | Record::Cgroup(_)
                | Record::AuxOutputHwId(_)
                | Record::HeaderAttr(_)
                | Record::EventType(_)
                | Record::TracingData(_)
                | Record::BuildId(_)
                | Record::FinishedRound
                | Record::IdIndex(_)
                | Record::AuxtraceInfo(_)
                | Record::Auxtrace(_)
                | Record::AuxtraceError(_)
                | Record::ThreadMap(_)
                | Record::CpuMap(_)
                | Record::StatConfig(_)
                | Record::Stat(_)
                | Record::StatRound(_)
                | Record::EventUpdate(_)
                | Record::TimeConv(_)
                | Record::HeaderFeature(_)
                | Record::Compressed(_)
                | Record::FinishedInit
                | Record::Schedstat(_),
            ) => true,
            // Bytes of kernel code contain addresses, and so may data of BPF programs and new types of
            // records.
            Some(_) => false,
            // Damaged records may contain anything.
            None => raw.kind == kind::FINISHED_ROUND,
        }
    }

    fn mapping(&mut self, map: &Mmap<'_>, record: &mut [u8]) -> bool {
        self.word(record, MAP_ADDRESS);
        // The end of the address space does not move.
        let start = self.of_address(map.addr);
        put(record, MAP_LENGTH, map.len.min(u64::MAX - start));
        // For memory without a file, the kernel states the address at which it was mapped first.
        let is_memory = map.name.starts_with(b"//") || map.name.starts_with(b"[");
        if map.pgoff != 0 && is_memory {
            self.word(record, MAP_OFFSET);
        }
        true
    }

    fn word(&mut self, record: &mut [u8], at: usize) {
        let old = record.get(at..at + 8).and_then(|word| word.first_chunk());
        if let Some(old) = old.map(|word| u64::from_ne_bytes(*word)) {
            let new = self.of_address(old);
            put(record, at, new);
        }
    }
}

fn put(record: &mut [u8], at: usize, word: u64) {
    if let Some(place) = record.get_mut(at..at + 8) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
}

/// Returns the offset of the mapping of a kernel's text, which is the address of a symbol.
fn text_of(map: &Mmap<'_>) -> Option<u64> {
    let is_text = [&b"[kernel.kallsyms]"[..], b"[guest.kernel.kallsyms"]
        .iter()
        .any(|start| map.name.starts_with(start));
    (is_text && map.addr >= KERNEL).then_some(map.pgoff)
}
