//! Events at a place: breakpoints on an address, uprobes on a function of a file, tracepoints of the kernel.
//!
//! Receives words and the [`Host`]; hands on specs. A function's name is turned into its offset in the file
//! here, since the kernel knows only files and offsets; nothing is written to tracefs.

use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile, ElfFile32, ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, ReadCache, ReadRef, SymbolKind};

use super::error::{Fault, Result, Span};
use super::syntax::{Word, number};
use super::{EventSpec, Source, glob};
use crate::abi::attr::kind;
use crate::host::Host;
use crate::host::tracepoint::TracepointError;

/// A breakpoint: `access` is some of `rwx`, read and write where it is not said.
pub(super) fn breakpoint(
    address: Word<'_>,
    length: Option<Word<'_>>,
    access: Option<Word<'_>>,
    name: &str,
) -> Result<EventSpec> {
    let Some(at) = number(address.text) else {
        return Err(Fault::at(&address.span(), "a breakpoint needs an address")
            .expected("a number, as in mem:0x7f001000/8:w"));
    };
    let mut kinds = 0;
    for (offset, letter) in access.map_or("rw", |word| word.text).char_indices() {
        let bit = match letter {
            'r' => 1,
            'w' => 2,
            _ => 4,
        };
        if kinds & bit != 0 {
            let at = access.map_or(0, |word| word.at) + offset;
            return Err(Fault::at(&(at..at + 1), format!("the access `{letter}` is there twice")));
        }
        kinds |= bit;
    }
    let bytes = match length {
        // The kernel takes exactly a word of the machine for an instruction, whatever its length.
        None if kinds == 4 => size_of::<std::ffi::c_long>() as u64,
        None => 4,
        Some(word) => number(word.text).filter(|bytes| (1..=8).contains(bytes)).ok_or_else(|| {
            Fault::at(&word.span(), format!("a breakpoint cannot be `{}` bytes long", word.text))
                .expected("1 to 8 (the hardware usually takes 1, 2, 4 and 8)")
        })?,
    };
    let mut spec = EventSpec::kernel(name, kind::BREAKPOINT, 0);
    if let Source::Kernel(attr) = &mut spec.source {
        attr.set_breakpoint(kinds, at, bytes);
        attr.set_period(1);
    }
    spec.pmu = Some("breakpoint".to_owned());
    Ok(spec)
}

/// The tracepoint, or all that fit if one of the words is a pattern.
pub(super) fn tracepoints(host: &Host, system: Word<'_>, name: Word<'_>) -> Result<Vec<EventSpec>> {
    let span = system.at..name.span().end;
    let no_tracefs = |error: TracepointError| fault_of(error, &span);
    if !glob::is_pattern(system.text) && !glob::is_pattern(name.text) {
        return match host.tracepoint_id(system.text, name.text) {
            Ok(id) => Ok(vec![tracepoint(system.text, name.text, id)]),
            Err(TracepointError::Absent) => Err(unknown_tracepoint(host, system, name)),
            Err(error) => Err(no_tracefs(error)),
        };
    }
    let systems = if glob::is_pattern(system.text) {
        let mut systems = host.tracepoint_systems().map_err(no_tracefs)?;
        systems.retain(|s| glob::matches(system.text, s));
        systems
    } else {
        vec![system.text.to_owned()]
    };
    let mut specs = Vec::new();
    for system in &systems {
        let mut names = host.tracepoint_names(system).map_err(no_tracefs)?;
        names.retain(|n| glob::matches(name.text, n));
        for name in names {
            // Some entries (ftrace's own) have no id: they cannot be opened.
            if let Ok(id) = host.tracepoint_id(system, &name) {
                specs.push(tracepoint(system, &name, id));
            }
        }
    }
    if specs.is_empty() {
        if systems.len() == 1 && !glob::is_pattern(system.text) {
            return Err(unknown_tracepoint(host, system, name));
        }
        return Err(Fault::at(&span, "no tracepoint fits this pattern")
            .try_this("pmc list tracepoint shows what there is"));
    }
    Ok(specs)
}

fn tracepoint(system: &str, name: &str, id: u64) -> EventSpec {
    let mut spec = EventSpec::kernel(format!("{system}:{name}"), kind::TRACEPOINT, id);
    if let Source::Kernel(attr) = &mut spec.source {
        attr.set_period(1);
    }
    spec.pmu = Some("tracepoint".to_owned());
    spec
}

fn unknown_tracepoint(host: &Host, system: Word<'_>, name: Word<'_>) -> Fault {
    let names = host.tracepoint_names(system.text).unwrap_or_default();
    if names.is_empty() {
        let systems = host.tracepoint_systems().unwrap_or_default();
        return Fault::at(&system.span(), format!("there are no tracepoints called `{}:…`", system.text))
            .meant(system.text, systems.iter().map(String::as_str))
            .try_this("pmc list tracepoint shows what there is");
    }
    Fault::at(&name.span(), format!("`{}` has no tracepoint `{}`", system.text, name.text))
        .meant(name.text, names.iter().map(String::as_str))
        .try_this(format!("pmc list '{}:*' shows what there is", system.text))
}

fn fault_of(error: TracepointError, span: &Span) -> Fault {
    let fault = Fault::at(span, format!("tracepoints cannot be looked up: {error}"));
    match error {
        TracepointError::NotMounted => fault
            .why("tracepoint names become numbers through tracefs")
            .try_this("mount -t tracefs nodev /sys/kernel/tracing"),
        TracepointError::Denied(_) => fault
            .why("tracefs belongs to root unless it is mounted for others")
            .try_this("mount -o remount,mode=755 /sys/kernel/tracing, or run as root"),
        TracepointError::Absent => fault,
    }
}

/// A uprobe through the kernel's uprobe PMU: `place` is `FUNCTION`, `FUNCTION+0x10` or `0xOFFSET`, and
/// `%return` behind it asks for the return from the function.
pub(super) fn uprobe(host: &Host, path: Word<'_>, place: Word<'_>, name: &str) -> Result<EventSpec> {
    let span = path.at..place.span().end;
    let Some(pmu) = host.pmu("uprobe") else {
        return Err(Fault::at(&span, "this kernel has no uprobe PMU")
            .why("it came with Linux 4.17 and needs CONFIG_UPROBE_EVENTS"));
    };
    let (target, returns) = match place.text.strip_suffix("%return") {
        Some(target) => (Word { text: target, at: place.at }, true),
        None => (place, false),
    };
    let offset = match number(target.text) {
        Some(offset) => offset,
        None => offset_of(host, path, target)?,
    };
    let file =
        CString::new(path.text).map_err(|_| Fault::at(&path.span(), "a path cannot hold a NUL character"))?;
    let mut spec = EventSpec::kernel(name, pmu.kind, 0);
    super::terms::place(&mut spec, &pmu);
    if let Source::Kernel(attr) = &mut spec.source {
        attr.set_config1_text(file);
        attr.set_config2(offset);
        attr.set_period(1);
    }
    if returns {
        returning(host, &mut spec, &span)?;
    }
    Ok(spec)
}

/// Makes a uprobe fire at the return from the function instead of its entry.
pub(super) fn returning(host: &Host, spec: &mut EventSpec, span: &Span) -> Result<()> {
    let format = host.pmu("uprobe").and_then(|pmu| pmu.format("retprobe"));
    let (Some(Ok(format)), Source::Kernel(attr)) = (format, &mut spec.source) else {
        return Err(Fault::at(span, "the uprobe PMU of this kernel has no return probes"));
    };
    attr.or_word(format.word, format.place(1));
    Ok(())
}

/// The offset in the file of `FUNCTION` or `FUNCTION+OFFSET`.
fn offset_of(host: &Host, path: Word<'_>, place: Word<'_>) -> Result<u64> {
    let (symbol, beyond) = match place.text.split_once('+') {
        Some((symbol, beyond)) => match number(beyond) {
            Some(beyond) => (symbol, beyond),
            None => (place.text, 0),
        },
        None => (place.text, 0),
    };
    let cannot = |why: String| {
        Fault::at(&path.span(), format!("the functions of {} cannot be read: {why}", path.text))
            .expected("an ELF program or library")
    };
    let real: PathBuf =
        if Path::new(path.text).is_absolute() { host.path(path.text) } else { PathBuf::from(path.text) };
    // A FIFO or a device must not be waited for.
    let metadata = std::fs::metadata(&real).map_err(|error| cannot(crate::error::kernel_words(&error)))?;
    if !metadata.is_file() {
        return Err(cannot("it is no regular file".to_owned()));
    }
    let file = File::open(&real).map_err(|error| cannot(crate::error::kernel_words(&error)))?;
    let cache = ReadCache::new(file);
    let found = match object::FileKind::parse(&cache) {
        Ok(object::FileKind::Elf64) => {
            ElfFile64::<Endianness, _>::parse(&cache).map(|elf| functions(&elf, symbol))
        }
        Ok(object::FileKind::Elf32) => {
            ElfFile32::<Endianness, _>::parse(&cache).map(|elf| functions(&elf, symbol))
        }
        Ok(_) => return Err(cannot("it is no ELF file".to_owned())),
        Err(error) => return Err(cannot(error.to_string())),
    }
    .map_err(|error| cannot(error.to_string()))?;
    match found.offsets.as_slice() {
        [offset] => Ok(offset.saturating_add(beyond)),
        [] if found.imported => Err(Fault::at(&place.span(), format!("{} uses `{symbol}` and does not hold it", path.text))
            .try_this(format!("name the library that holds it: uprobe:LIBRARY:{symbol} (ldd {} lists them)", path.text))),
        [] => Err(Fault::at(&place.span(), format!("{} has no function `{symbol}`", path.text))
            .meant(symbol, found.names.iter().map(String::as_str))
            .try_this("name the file that holds the function (a stripped one has only its exported ones), or give 0xOFFSET")),
        many => {
            let places: Vec<String> = many.iter().map(|offset| format!("{offset:#x}")).collect();
            Err(Fault::at(&place.span(), format!("{} functions of {} are called `{symbol}`", many.len(), path.text))
                .expected(format!("one of the offsets {}", places.join(", "))))
        }
    }
}

/// What a file says about a function.
struct Found {
    /// Where in the file functions of this name begin, each once.
    offsets: Vec<u64>,
    /// The file needs it from elsewhere.
    imported: bool,
    /// Names to guess from, if there is no such function.
    names: Vec<String>,
}

/// As many names as a guess may look at: a browser has a million.
const GUESSED_FROM: usize = 50_000;

fn functions<'data, E: FileHeader, R: ReadRef<'data>>(elf: &ElfFile<'data, E, R>, wanted: &str) -> Found {
    let mut found = Found { offsets: Vec::new(), imported: false, names: Vec::new() };
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if name == wanted && symbol.is_undefined() {
            found.imported = true;
        }
        if symbol.is_undefined() || symbol.kind() != SymbolKind::Text {
            continue;
        }
        if name == wanted {
            found.offsets.extend(file_offset(elf, symbol.address()));
        } else if found.names.len() < GUESSED_FROM {
            found.names.push(name.to_owned());
        }
    }
    found.offsets.sort_unstable();
    found.offsets.dedup();
    found
}

/// Where the segment that is mapped at this address keeps it in the file.
fn file_offset<'data, E: FileHeader, R: ReadRef<'data>>(
    elf: &ElfFile<'data, E, R>,
    address: u64,
) -> Option<u64> {
    elf.segments().find_map(|segment| {
        let within = address.checked_sub(segment.address())?;
        let (start, length) = segment.file_range();
        (within < length).then(|| start.checked_add(within))?
    })
}
