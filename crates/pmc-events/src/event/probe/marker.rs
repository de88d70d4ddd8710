//! Static markers in programs: `sdt_libstdcxx:throw`, `sdt:PATH:PROVIDER:NAME`.
//!
//! A marker becomes a uprobe at its instruction. If the marker has a semaphore, the kernel increments it
//! while the uprobe is open, so that the program can tell that the marker is in use.

use crate::hint::Hint;
use pmc_sys::error::Advice;
use std::path::{Path, PathBuf};

use super::super::error::{Fault, ParseResult};
use super::super::syntax::EventWord;
use super::super::{EventSource, EventSpec};
use super::elf::{self, ProbeSources, SdtMarker};
use super::function::{at, pmu};
use super::subject::EventTarget;
use pmc_sys::host::Host;
use pmc_text::text::{glob, shell_word};

/// Finds the markers whose provider and name match these patterns, in the given file or in the first file of
/// the measured program or process that has one. A marker may have several locations, since the compiler may
/// duplicate it. Markers that match a pattern are shown with their own names; a single marker is shown as the
/// user typed it.
pub(in crate::event) fn markers(
    sources: &ProbeSources<'_>,
    subject: &EventTarget,
    path: Option<EventWord<'_>>,
    (provider, name): (EventWord<'_>, EventWord<'_>),
    typed: &str,
) -> ParseResult<Vec<Vec<EventSpec>>> {
    let span = path.unwrap_or(provider).at..name.span().end;
    let files = match path {
        Some(path) => vec![PathBuf::from(path.text)],
        None => subject.files(sources),
    };
    let mut others: Vec<String> = Vec::new();
    for file in &files {
        let markers = match sources.ask(file, elf::markers) {
            Ok(markers) => markers,
            Err(_) if path.is_none() => continue,
            Err(why) => {
                let said = format!("cannot read the markers of {}: {why}", file.display());
                return Err(Fault::at(&span, said).expected("an ELF program or library"));
            }
        };
        let fits = |marker: &SdtMarker| {
            glob::matches(provider.text, &marker.provider) && glob::matches(name.text, &marker.name)
        };
        let (fitting, rest): (Vec<_>, Vec<_>) = markers.into_iter().partition(fits);
        if !fitting.is_empty() {
            let is_pattern = glob::is_pattern(provider.text) || glob::is_pattern(name.text);
            let own = |marker: &SdtMarker| match (is_pattern, path) {
                (false, _) => typed.to_owned(),
                (true, None) => format!("sdt_{}:{}", marker.provider, marker.name),
                (true, Some(path)) => format!("sdt:{}:{}:{}", path.text, marker.provider, marker.name),
            };
            return specs(sources.host, file, fitting, provider, own);
        }
        others.extend(rest.iter().map(|marker| format!("{}:{}", marker.provider, marker.name)));
    }
    others.sort_unstable();
    others.dedup();
    Err(missing(&files, &others, provider, name, path.is_some()))
}

/// Creates uprobes for the markers, and merges uprobes with the same name.
fn specs(
    host: &Host,
    file: &Path,
    mut markers: Vec<SdtMarker>,
    word: EventWord<'_>,
    shown: impl Fn(&SdtMarker) -> String,
) -> ParseResult<Vec<Vec<EventSpec>>> {
    let pmu = pmu(host, "uprobe", &word.span())?;
    let text = file.to_string_lossy();
    let path = EventWord { text: &text, at: word.at };
    markers.sort_by(|a, b| (&a.provider, &a.name, a.offset).cmp(&(&b.provider, &b.name, b.offset)));
    markers.dedup();
    let of_one_name = markers.chunk_by(|a, b| (&a.provider, &a.name) == (&b.provider, &b.name));
    let spec = |marker: &SdtMarker| {
        let mut spec = at(&pmu, &shown(marker), path, marker.offset)?;
        if marker.semaphore != 0 {
            let format = pmu.format("ref_ctr_offset");
            let (Some(Ok(format)), EventSource::Kernel(attr)) = (format, &mut spec.source) else {
                let said = format!("`{}:{}` has a semaphore", marker.provider, marker.name);
                return Err(Fault::at(&word.span(), said).why("requires Linux 4.20 or newer"));
            };
            attr.or_word(format.word, format.place(marker.semaphore));
        }
        Ok(spec)
    };
    of_one_name.map(|places| places.iter().map(spec).collect()).collect()
}

fn missing(
    files: &[PathBuf],
    others: &[String],
    provider: EventWord<'_>,
    name: EventWord<'_>,
    is_named: bool,
) -> Fault {
    let span = provider.at..name.span().end;
    let wanted = format!("{}:{}", provider.text, name.text);
    let Some((first, rest)) = files.split_first() else {
        return Fault::at(&span, format!("no program to search for the marker `{wanted}`"))
            .why(Advice::from(Hint::MarkerSearch).to_string())
            .try_this(format!("specify the file: sdt:PATH:{wanted}"));
    };
    let said = match rest.len() {
        0 => format!("{} has no marker `{wanted}`", first.display()),
        count => {
            format!("neither {} nor its {count} libraries have a marker named `{wanted}`", first.display())
        }
    };
    let fault = Fault::at(&span, said);
    let fault = match others.is_empty() {
        true => fault.why("no markers found: only programs built with <sys/sdt.h> have them"),
        false => fault.meant(&wanted, others.iter().map(String::as_str)),
    };
    match is_named {
        true => fault.try_this(format!("readelf -n {} lists its markers", shell_word(first))),
        false => fault.try_this(format!("specify the file that contains it: sdt:PATH:{wanted}")),
    }
}
