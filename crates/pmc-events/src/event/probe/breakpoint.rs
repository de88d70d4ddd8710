//! Hardware breakpoints: `mem:0x7f001000/8:w`, and `mem:&counter:w` at a symbol.

use crate::hint::Hint;
use pmc_sys::error::Advice;
use std::path::Path;

use super::super::error::{Fault, ParseResult};
use super::super::syntax::{EventWord, number};
use super::super::{EventSource, EventSpec};
use super::elf::{self, Elf, ElfLookup, ProbeSources};
use super::subject::{EventTarget, mapped};
use pmc_sys::abi::KallsymsLine;
use pmc_sys::abi::attr::kind;

/// A memory location that a breakpoint watches.
struct WatchedMemory {
    address: u64,
    /// Size in bytes; 0 if unknown.
    size: u64,
    is_function: bool,
}

/// Creates a breakpoint. `access` is a subset of `rwx`. By default, functions are watched for execution, and
/// other addresses for reads and writes. `&SYMBOL` is a kernel symbol if only kernel levels are counted or if
/// whole CPUs are measured; otherwise it is a symbol of the measured program.
pub(in crate::event) fn breakpoint(
    (sources, subject): (&ProbeSources<'_>, &EventTarget),
    (address, length, access): (EventWord<'_>, Option<EventWord<'_>>, Option<EventWord<'_>>),
    kernel_alone: bool,
    name: &str,
) -> ParseResult<EventSpec> {
    let place = match (number(address.text), address.text.strip_prefix('&')) {
        (Some(address), _) => WatchedMemory { address, size: 0, is_function: false },
        (None, Some(text)) if !text.is_empty() => {
            let (symbol, beyond) = EventWord { text, at: address.at + 1 }.symbol_and_offset();
            let place = match kernel_alone || subject.cpus {
                true => in_kernel(sources, symbol)?,
                false => in_program(sources, subject, symbol)?,
            };
            match beyond {
                0 => place,
                // The address is inside the symbol, so the size of the watched object is unknown.
                _ => WatchedMemory { address: place.address.wrapping_add(beyond), size: 0, ..place },
            }
        }
        _ => {
            return Err(Fault::at(&address.span(), "a breakpoint requires an address")
                .expected("a number, as in mem:0x7f001000/8:w, or '&SYMBOL' (quoted for the shell)"));
        }
    };
    let mut kinds = 0;
    for (offset, letter) in
        access.map_or(if place.is_function { "x" } else { "rw" }, |word| word.text).char_indices()
    {
        let bit = match letter {
            'r' => 1,
            'w' => 2,
            _ => 4,
        };
        if kinds & bit != 0 {
            let at = access.map_or(0, |word| word.at) + offset;
            return Err(Fault::at(&(at..at + 1), format!("duplicate access `{letter}`")));
        }
        kinds |= bit;
    }
    let bytes = match length {
        // For instructions, the kernel requires a length of exactly one machine word, regardless of the
        // instruction's size.
        None if kinds == 4 => size_of::<std::ffi::c_long>() as u64,
        None if matches!(place.size, 1 | 2 | 4 | 8) => place.size,
        None => 4,
        Some(word) => number(word.text).filter(|bytes| (1..=8).contains(bytes)).ok_or_else(|| {
            Fault::at(&word.span(), format!("a breakpoint cannot be `{}` bytes long", word.text))
                .expected("1 to 8 (hardware usually supports 1, 2, 4 and 8)")
        })?,
    };
    let mut spec = EventSpec::kernel(name, kind::BREAKPOINT, 0);
    if let EventSource::Kernel(attr) = &mut spec.source {
        attr.set_breakpoint(kinds, place.address, bytes);
        attr.set_period(1);
    }
    spec.pmu = Some("breakpoint".to_owned());
    Ok(spec)
}

/// Finds a symbol of the running kernel.
fn in_kernel(sources: &ProbeSources<'_>, symbol: EventWord<'_>) -> ParseResult<WatchedMemory> {
    let text = sources.kallsyms().unwrap_or_default();
    let all = || text.split(|&byte| byte == b'\n').filter_map(KallsymsLine::read);
    let found: Vec<_> = all().filter(|line| line.name == symbol.text.as_bytes()).collect();
    match found.as_slice() {
        [] => {
            let said = format!("the kernel has no symbol `{}`", symbol.text);
            let names = all().filter_map(|line| std::str::from_utf8(line.name).ok());
            Err(Fault::at(&symbol.span(), said)
                .why(Advice::from(Hint::KernelSymbolOnly).to_string())
                .meant(symbol.text, names)
                .try_this(Hint::ChooseProcess))
        }
        [line] if line.address > 0 => {
            Ok(WatchedMemory { address: line.address, size: 0, is_function: line.is_code() })
        }
        [_] => Err(Fault::at(&symbol.span(), "the kernel hides its addresses from this user")
            .why("kernel.kptr_restrict or kernel.perf_event_paranoid hides kernel addresses")
            .try_this("run as root, or sysctl kernel.kptr_restrict=0")),
        many => Err(several(symbol, "the kernel", many.iter().map(|line| line.address))),
    }
}

fn several(symbol: EventWord<'_>, whose: &str, addresses: impl Iterator<Item = u64>) -> Fault {
    let places: Vec<String> = addresses.map(|address| format!("mem:{address:#x}")).collect();
    let said = format!("{} symbols of {whose} are named `{}`", places.len(), symbol.text);
    Fault::at(&symbol.span(), said).expected(format!("one of {}", places.join(", ")))
}

/// Finds a symbol of the measured program. For a running process, returns the symbol's address in memory. For
/// a command, the address is known in advance only if the file is loaded at a fixed address.
fn in_program(
    sources: &ProbeSources<'_>,
    subject: &EventTarget,
    symbol: EventWord<'_>,
) -> ParseResult<WatchedMemory> {
    if let Some(program) = subject.program() {
        let question = |elf: &Elf<'_>| (elf::symbols(elf, symbol.text, true), elf::is_fixed(elf));
        let (found, is_fixed) = sources.ask(&program, question).map_err(|why| {
            Fault::at(&symbol.span(), format!("cannot read the symbols of {}: {why}", program.display()))
        })?;
        let place =
            only(symbol, &program, &found, 0)?.ok_or_else(|| missing(symbol, &program, &found.names))?;
        return if is_fixed { Ok(place) } else { Err(moves(symbol, &program)) };
    }
    let mut places: Vec<(u32, WatchedMemory)> = Vec::new();
    for &task in &subject.tasks {
        let files = mapped(sources.host, task);
        let mut names = Vec::new();
        let place = files.iter().find_map(|file| {
            let bias = |elf: &Elf<'_>| elf::load_bias(elf, file.at.0, file.at.1);
            let question = |elf: &Elf<'_>| Some((elf::symbols(elf, symbol.text, true), bias(elf)?));
            let (found, bias) = sources.ask(&file.path, question).ok()??;
            let place = only(symbol, &file.path, &found, bias).transpose();
            names.extend(found.names);
            place
        });
        let first = files.first().map_or(Path::new("/"), |file| &file.path);
        let place = place.unwrap_or_else(|| Err(missing(symbol, first, &names)))?;
        if let Some((other, before)) = places.first()
            && before.address != place.address
        {
            let said = format!("processes {other} and {task} have `{}` at different addresses", symbol.text);
            return Err(Fault::at(&symbol.span(), said).try_this("measure only one of them"));
        }
        places.push((task, place));
    }
    places.into_iter().next().map(|(_, place)| place).ok_or_else(|| {
        Fault::at(&symbol.span(), format!("no program to search for `{}`", symbol.text))
            .why(Advice::from(Hint::SymbolSearch).to_string())
            .try_this(format!("use mem:&{}:k for a kernel symbol", symbol.text))
    })
}

/// Returns the address of the only symbol with this name, plus `bias`; `None` if the file does not have the
/// symbol.
fn only(
    symbol: EventWord<'_>,
    file: &Path,
    found: &ElfLookup,
    bias: u64,
) -> ParseResult<Option<WatchedMemory>> {
    match found.symbols.as_slice() {
        [] => Ok(None),
        &[(address, size, is_function)] => {
            Ok(Some(WatchedMemory { address: address.wrapping_add(bias), size, is_function }))
        }
        many => {
            let addresses = many.iter().map(|(address, ..)| address.wrapping_add(bias));
            Err(several(symbol, &file.display().to_string(), addresses))
        }
    }
}

fn missing(symbol: EventWord<'_>, file: &Path, names: &[String]) -> Fault {
    Fault::at(&symbol.span(), format!("{} has no symbol `{}`", file.display(), symbol.text))
        .why("stripped programs have no symbols; thread-local and local variables have no fixed address")
        .meant(symbol.text, names.iter().map(String::as_str))
        .try_this(format!("use mem:&{}:k for a kernel symbol", symbol.text))
}

fn moves(symbol: EventWord<'_>, program: &Path) -> Fault {
    let said = format!("the address of `{}` is known only while {} runs", symbol.text, program.display());
    Fault::at(&symbol.span(), said)
        .why("it is position-independent (PIE): the kernel loads it at a different address each time")
        .try_this(Hint::StartProgramFirst)
}
