//! Probes in functions of programs and the kernel: `uprobe:PATH:FUNCTION`, `kprobe:FUNCTION`.

use std::ffi::CString;
use std::path::Path;

use super::super::error::{Fault, ParseResult, TextSpan};
use super::super::syntax::{EventWord, number};
use super::super::{EventSource, EventSpec};
use super::elf::{self, Elf, ProbeSources};
use pmc_sys::abi::KallsymsLine;
use pmc_sys::host::Host;
use pmc_sys::host::pmu::Pmu;

/// Creates a uprobe for the kernel's uprobe PMU. `place` is `FUNCTION`, `FUNCTION+0x10` or `0xOFFSET`; a
/// `%return` suffix probes the return from the function.
pub(in crate::event) fn uprobe(
    sources: &ProbeSources<'_>,
    path: EventWord<'_>,
    place: EventWord<'_>,
    name: &str,
) -> ParseResult<EventSpec> {
    let span = path.at..place.span().end;
    let host = sources.host;
    let pmu = pmu(host, "uprobe", &span)?;
    let (target, returns) = without_return(place);
    let offset = match number(target.text) {
        Some(offset) => offset,
        None => offset_of(sources, path, target)?,
    };
    let mut spec = at(&pmu, name, path, offset)?;
    if returns {
        returning(host, &mut spec, &span)?;
    }
    Ok(spec)
}

/// Creates a kprobe for the kernel's kprobe PMU. `place` is `FUNCTION` or `FUNCTION+0x10`, with an optional
/// `MODULE:` prefix. A `%return` suffix or `returns` probes the return from the function.
pub(in crate::event) fn kprobe(
    sources: &ProbeSources<'_>,
    place: EventWord<'_>,
    returns: bool,
    name: &str,
) -> ParseResult<EventSpec> {
    let host = sources.host;
    let span = place.span();
    let pmu = pmu(host, "kprobe", &span)?;
    let (target, percent) = without_return(place);
    let (function, offset) = target.symbol_and_offset();
    if (returns || percent) && offset > 0 {
        return Err(Fault::at(&span, "a return probe does not support an offset")
            .expected(format!("kretprobe:{}", function.text)));
    }
    in_kernel(sources, function)?;
    let mut spec = at(&pmu, name, function, offset)?;
    if returns || percent {
        returning(host, &mut spec, &span)?;
    }
    Ok(spec)
}

/// The file offset of `FUNCTION` or `FUNCTION+OFFSET`.
fn offset_of(sources: &ProbeSources<'_>, path: EventWord<'_>, place: EventWord<'_>) -> ParseResult<u64> {
    let (EventWord { text: symbol, .. }, beyond) = place.symbol_and_offset();
    let cannot = |why: String| {
        Fault::at(&path.span(), format!("cannot read the symbols of {}: {why}", path.text))
            .expected("an ELF program or library")
    };
    let question = |elf: &Elf<'_>| {
        let found = elf::symbols(elf, symbol, false);
        let offsets = found.symbols.iter().filter_map(|symbol| elf::file_offset(elf, symbol.0));
        (offsets.collect::<Vec<u64>>(), found)
    };
    let (offsets, found) = sources.ask(Path::new(path.text), question).map_err(cannot)?;
    match offsets.as_slice() {
        [offset] => Ok(offset.saturating_add(beyond)),
        [] if found.imported => Err(Fault::at(
            &place.span(),
            format!(
                "{} imports `{symbol}` but does not \
                                                                      define it",
                path.text
            ),
        )
        .try_this(format!(
            "specify the library that defines it: uprobe:LIBRARY:{symbol} (ldd {} lists the \
                               libraries)",
            path.text
        ))),
        [] => Err(Fault::at(&place.span(), format!("{} has no function `{symbol}`", path.text))
            .meant(symbol, found.names.iter().map(String::as_str))
            .try_this(
                "specify the file that defines the function (a stripped file has only exported functions), or use 0xOFFSET",
            )),
        many => {
            let places: Vec<String> = many.iter().map(|offset| format!("{offset:#x}")).collect();
            Err(Fault::at(
                &place.span(),
                format!("{} functions of {} are named `{symbol}`", many.len(), path.text),
            )
            .expected(format!("one of the offsets {}", places.join(", "))))
        }
    }
}

/// The PMU for this kind of probe.
pub(super) fn pmu(host: &Host, name: &str, span: &TextSpan) -> ParseResult<Pmu> {
    host.pmu(name).ok_or_else(|| {
        Fault::at(span, format!("this kernel has no {name} PMU"))
            .why(format!("it requires Linux 4.17 or newer and CONFIG_{}_EVENTS", name.to_uppercase()))
    })
}

fn without_return(place: EventWord<'_>) -> (EventWord<'_>, bool) {
    match place.text.strip_suffix("%return") {
        Some(text) => (EventWord { text, ..place }, true),
        None => (place, false),
    }
}

/// Creates a probe of this PMU at an offset in a file or function.
pub(super) fn at(
    pmu: &Pmu,
    name: &str,
    file_or_function: EventWord<'_>,
    offset: u64,
) -> ParseResult<EventSpec> {
    let text = CString::new(file_or_function.text)
        .map_err(|_| Fault::at(&file_or_function.span(), "a name cannot contain a NUL character"))?;
    let mut spec = EventSpec::kernel(name, pmu.kind, 0);
    super::super::terms::place(&mut spec, pmu);
    if let EventSource::Kernel(attr) = &mut spec.source {
        attr.set_config1_text(text);
        attr.set_config2(offset);
        attr.set_period(1);
    }
    Ok(spec)
}

/// Makes a probe fire on return from the function instead of on entry.
pub(in crate::event) fn returning(host: &Host, spec: &mut EventSpec, span: &TextSpan) -> ParseResult<()> {
    let pmu = spec.pmu.as_deref().and_then(|name| host.pmu(name));
    let format = pmu.as_ref().and_then(|pmu| pmu.format("retprobe"));
    let (Some(Ok(format)), EventSource::Kernel(attr)) = (format, &mut spec.source) else {
        let pmu = pmu.map_or_else(String::new, |pmu| format!(" {}", pmu.name));
        return Err(Fault::at(span, format!("this kernel's{pmu} PMU does not support return probes")));
    };
    attr.or_word(format.word, format.place(1));
    Ok(())
}

/// The start of the kernel's code. A probe can be placed at any kernel address, as an offset from this
/// symbol.
const START: &str = "_stext";

/// Checks that the kernel has exactly one function with this name (`MODULE:FUNCTION` in a module). If the
/// kernel hides its symbol list, this is checked only when the probe is opened.
fn in_kernel(sources: &ProbeSources<'_>, function: EventWord<'_>) -> ParseResult<()> {
    let Some(text) = sources.kallsyms() else { return Ok(()) };
    let (module, wanted) = match function.text.split_once(':') {
        Some((module, name)) => (Some(format!("[{module}]")), name),
        None => (None, function.text),
    };
    let all = text.split(|&byte| byte == b'\n').filter_map(KallsymsLine::read);
    let all = all.filter(|line| module.as_ref().is_none_or(|own| own.as_bytes() == line.module));
    let (mut start, mut found, mut near) = (0, Vec::new(), Vec::new());
    for line in all.filter(KallsymsLine::is_code) {
        if line.name == START.as_bytes() {
            start = line.address;
        }
        match line.name {
            name if name == wanted.as_bytes() => found.push(line),
            name => near.extend(std::str::from_utf8(name)),
        }
    }
    match (found.as_slice(), module) {
        ([_], _) => Ok(()),
        ([], Some(module)) if near.is_empty() => {
            let module = module.trim_matches(['[', ']']);
            Err(Fault::at(&function.span(), format!("no loaded module named `{module}` contains functions"))
                .try_this(format!("modprobe {module}, or kprobe:{wanted} for the kernel's own function")))
        }
        ([], _) => Err(Fault::at(&function.span(), format!("the kernel has no function `{wanted}`"))
            .why("inlined functions cannot be probed")
            .meant(wanted, near)
            .try_this("look for it in /proc/kallsyms")),
        (many, _) => {
            let said = format!("{} kernel functions are named `{wanted}`", many.len());
            let fault = Fault::at(&function.span(), said);
            // Hidden addresses are all zero.
            if start == 0 {
                return Err(fault.try_this("run as root: the error then lists the offsets"));
            }
            let place = |line: &KallsymsLine<'_>| match line.module {
                [] => format!("{START}+{:#x}", line.address.saturating_sub(start)),
                module => format!("{}:{wanted}", String::from_utf8_lossy(module).trim_matches(['[', ']'])),
            };
            Err(fault.expected(format!("one of {}", many.iter().map(place).collect::<Vec<_>>().join(", "))))
        }
    }
}
