//! The JSON document: functions with their instructions, lines and costs. docs/annotate.md explains each
//! field.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::{AnnotateFacts, AnnotateLayout, operands, window};
use pmc_analysis::profile::annotate::{
    Listing, ListingRow, RowContent, SampleValue, Skid, SourceLine, VERSION,
};
use pmc_text::json_document::{list, list_with, percent};
use pmc_text::text::as_json;

pub(super) fn write(
    out: &mut dyn Write,
    listings: &[Listing],
    facts: &AnnotateFacts,
    layout: &AnnotateLayout,
) -> io::Result<()> {
    write!(out, "{{\n\"version\": {VERSION},\n\"functions\": ")?;
    list_with(out, listings, |out, listing| {
        write!(out, "{{")?;
        for (name, value) in head(listing) {
            writeln!(out, "\"{name}\": {},", as_json(&value))?;
        }
        write!(out, "\"lines\": ")?;
        let lines = listing.lines.iter().filter(|line| line.instructions > 0 || !line.values.is_empty());
        let lines: Vec<&SourceLine> = lines.collect();
        let shown_lines = window(layout.rows, lines.len(), |at| lines[at].value(0).period);
        list(out, lines[shown_lines.clone()].iter().map(|line| self::line(listing, line, layout)))?;
        write!(out, ",\n\"instructions\": ")?;
        let code: Vec<CodeRow<'_>> = code_rows(listing).collect();
        let shown_code = window(layout.rows, code.len(), |at| code[at].row.value(0).period);
        list(out, code[shown_code.clone()].iter().map(|row| instruction(listing, row, layout)))?;
        let omitted = json!({
            "lines": lines.len() - shown_lines.len(), "instructions": code.len() - shown_code.len(),
        });
        write!(out, ",\n\"omitted\": {omitted}}}")
    })?;
    let trust = json!({"samples": facts.samples, "lost": facts.lost, "notes": facts.notes});
    write!(out, ",\n\"functions_with_samples\": {},\n\"trust\": {}\n}}\n", facts.functions, as_json(&trust))
}

fn head(listing: &Listing) -> Vec<(&'static str, Json)> {
    let events = listing.events.iter().map(|event| {
        let (share, error) = event.of_all();
        json!({
            "name": event.name,
            "skid": match event.skid {
                Skid::Any => "any",
                Skid::Interrupt => "interrupt",
                Skid::Constant => "constant",
                Skid::None => "none",
            },
            "samples": event.total.samples, "period": event.total.period,
            "function": {
                "percent": percent(share), "error": percent(error),
                "samples": event.own.samples, "period": event.own.period,
            },
        })
    });
    let notes = listing.notes.iter().map(|note| json!({"text": note.text, "try": note.remedy}));
    vec![
        ("symbol", json!(listing.symbol)),
        ("raw", json!(listing.raw)),
        ("dso", json!(listing.dso)),
        ("path", json!(listing.path)),
        ("start", json!(listing.start)),
        ("size", json!(listing.size)),
        ("bytes_from", json!(listing.bytes_from)),
        ("events", events.collect()),
        ("notes", notes.collect()),
    ]
}

/// Returns one cost per event; null for an event without samples.
fn costs(listing: &Listing, value: impl Fn(usize) -> SampleValue, layout: &AnnotateLayout) -> Json {
    let cost = |event: usize| {
        let value = value(event);
        if value.samples == 0 {
            return Json::Null;
        }
        let (share, error) = listing.share(event, &value, layout.basis);
        json!({"percent": percent(share), "error": percent(error), "samples": value.samples, "period": value.period})
    };
    (0..listing.events.len()).map(cost).collect()
}

fn line(listing: &Listing, line: &SourceLine, layout: &AnnotateLayout) -> Json {
    json!({
        "file": listing.files.get(line.file).map(|file| &*file.path),
        "line": line.line,
        "text": listing.text(line.file, line.line),
        "instructions": line.instructions,
        "costs": costs(listing, |event| line.value(event), layout),
    })
}

/// A row with an instruction or an address, and the function and line that it belongs to.
struct CodeRow<'a> {
    row: &'a ListingRow,
    /// The name and depth of the inlined function.
    function: Option<(&'a str, usize)>,
    /// The file's index, and the line.
    source: Option<(usize, u32)>,
}

fn code_rows(listing: &Listing) -> impl Iterator<Item = CodeRow<'_>> {
    let mut function: Option<(&str, usize)> = None;
    let mut source: Option<(usize, u32)> = None;
    listing.rows.iter().filter_map(move |row| {
        match &row.kind {
            RowContent::Function { name, depth } => {
                function = Some((name, *depth));
                source = None;
            }
            RowContent::Source { file, line, has_code: true, .. } => source = Some((*file, *line)),
            RowContent::Source { .. } => {}
            RowContent::Instruction(_) | RowContent::Address(_) => {
                return Some(CodeRow { row, function, source });
            }
        }
        None
    })
}

fn instruction(listing: &Listing, code: &CodeRow<'_>, layout: &AnnotateLayout) -> Json {
    let CodeRow { row, function, source } = *code;
    let file = source.and_then(|(file, _)| Some(&*listing.files.get(file)?.path));
    let (inside, depth) = function.unwrap_or((&listing.symbol, 0));
    let mut object = match &row.kind {
        RowContent::Instruction(of) => json!({
            "address": of.address,
            "offset": of.address.wrapping_sub(listing.start),
            "bytes": pmc_text::text::hex(&of.bytes, ""),
            "mnemonic": of.mnemonic,
            "operands": operands(listing, of),
            "target": of.target.as_ref().map(|target| json!({
                "address": target.address,
                "symbol": target.name.as_ref().map(|(name, _)| name),
                "offset": target.name.as_ref().map(|(_, into)| into),
            })),
        }),
        RowContent::Address(address) => {
            json!({"address": address, "offset": address.wrapping_sub(listing.start)})
        }
        _ => json!({}),
    };
    object["function"] = json!(inside);
    object["inlined"] = json!(depth > 0);
    object["file"] = json!(file);
    object["line"] = json!(source.map(|(_, line)| line));
    object["costs"] = costs(listing, |event| row.value(event), layout);
    object
}
