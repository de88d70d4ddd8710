//! The table of `pmc lock contention`, with the column widths and number formats of `perf lock contention`.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::{
    ContentionField, ContentionRequest, ContentionRow, ContentionRows, KernelContention, type_names,
};
use crate::lock::{event_counts, losses};
use pmc_text::json_document::list_up_to;
use pmc_text::text::{as_json, clean};

/// Writes the table.
pub(super) fn write(
    out: &mut dyn Write,
    contention: &KernelContention,
    request: &ContentionRequest,
) -> io::Result<()> {
    let rows = contention.rows.iter().take(request.rows);
    match &request.separator {
        _ if request.json => return json(out, contention, request),
        Some(separator) => {
            separated_titles(out, contention.by, request, separator)?;
            return rows
                .into_iter()
                .try_for_each(|row| separated(out, contention.by, row, request, separator));
        }
        None => {}
    }
    for column in &request.columns {
        write!(out, "{:>1$} ", title(*column), width(*column))?;
    }
    match contention.by {
        ContentionRows::Thread => writeln!(out, "  {:>10}   comm\n", "pid")?,
        ContentionRows::Owner => writeln!(out, "  {:>10}   owner\n", "pid")?,
        ContentionRows::Caller => writeln!(out, "  {:>10}   caller\n", "type")?,
        ContentionRows::Address => writeln!(out, "  {:>16}   symbol\n", "address")?,
    }
    for row in rows {
        for column in &request.columns {
            let value = column.value(row);
            match column {
                ContentionField::Contended => write!(out, "{value:>10} ")?,
                _ => write!(out, "{} ", time(value, width(*column)))?,
            }
        }
        let name = clean(&row.name);
        let (of_access, of_lock) = type_names(row.flags);
        match contention.by {
            ContentionRows::Thread | ContentionRows::Owner => writeln!(out, "  {:>10}   {name}", row.tid)?,
            ContentionRows::Caller => writeln!(out, "  {of_access:>10}   {name}")?,
            ContentionRows::Address => writeln!(out, "  {:016x}   {name} ({of_lock})", row.address)?,
        }
        if request.stacks && contention.by == ContentionRows::Caller {
            for (address, name) in &row.stack {
                writeln!(out, "\t\t\t{address:#x}  {}", clean(name))?;
            }
        }
    }
    if contention.unfinished > 0 {
        writeln!(out, "# {} waits were still in progress when the recording ended", contention.unfinished)?;
    }
    losses(out, &contention.counts, "waits")
}

fn title(column: ContentionField) -> &'static str {
    match column {
        ContentionField::Contended => "contended",
        ContentionField::Total => "total wait",
        ContentionField::Max => "max wait",
        ContentionField::Min => "min wait",
        ContentionField::Average => "avg wait",
    }
}

fn width(column: ContentionField) -> usize {
    if column == ContentionField::Contended { 10 } else { 12 }
}

/// Formats a time as perf does, in single precision.
fn time(ns: u64, width: usize) -> String {
    const UNITS: [(f32, &str); 5] = [(3600e9, "h "), (60e9, "m "), (1e9, "s "), (1e6, "ms"), (1e3, "us")];
    let width = width - 3;
    match UNITS.iter().find(|(unit, _)| ns as f32 >= *unit) {
        Some((unit, name)) => format!("{:>width$.2} {name}", f64::from(ns as f32 / unit)),
        None => format!("{ns:>width$} ns"),
    }
}

fn separated_titles(
    out: &mut dyn Write,
    by: ContentionRows,
    request: &ContentionRequest,
    separator: &str,
) -> io::Result<()> {
    let last: &[&str] = match by {
        ContentionRows::Thread => &["pid", "comm"],
        ContentionRows::Owner => &["pid", "owner"],
        ContentionRows::Caller => &["type", "caller"],
        ContentionRows::Address => &["address", "symbol", "type"],
    };
    let titles = request.columns.iter().map(|column| title(*column)).chain(last.iter().copied());
    let titles: Vec<&str> = titles.collect();
    writeln!(out, "# output: {}", titles.join(&format!("{separator} ")))
}

fn separated(
    out: &mut dyn Write,
    by: ContentionRows,
    row: &ContentionRow,
    request: &ContentionRequest,
    separator: &str,
) -> io::Result<()> {
    let (of_access, of_lock) = type_names(row.flags);
    let name = clean(&row.name).into_owned();
    let last = match by {
        ContentionRows::Thread | ContentionRows::Owner => vec![row.tid.to_string(), name],
        ContentionRows::Caller => vec![of_access.to_owned(), name],
        ContentionRows::Address => vec![format!("{:016x}", row.address), name, of_lock.to_owned()],
    };
    let numbers = request.columns.iter().map(|column| column.value(row).to_string());
    let mut values: Vec<String> = numbers.chain(last).collect();
    if request.stacks && by == ContentionRows::Caller {
        values.extend(row.stack.iter().map(|(_, name)| clean(name).into_owned()));
    }
    writeln!(out, "{}", values.join(&format!("{separator} ")))
}

fn json(out: &mut dyn Write, contention: &KernelContention, request: &ContentionRequest) -> io::Result<()> {
    let by = match contention.by {
        ContentionRows::Thread => "thread",
        ContentionRows::Owner => "owner",
        ContentionRows::Caller => "caller",
        ContentionRows::Address => "lock",
    };
    write!(out, "{{\n\"version\": 1,\n\"by\": \"{by}\",\n\"rows\": ")?;
    let row = |row: &ContentionRow| -> Json {
        let mut object = json!({
            "contended": row.contended, "waits": row.waits, "wait_total_ns": row.total,
            "wait_max_ns": row.max, "wait_min_ns": row.min,
            "avg_wait_ns": ContentionField::Average.value(row),
        });
        if contention.by != ContentionRows::Owner {
            object["type"] = json!(type_names(row.flags).0);
        }
        match contention.by {
            ContentionRows::Thread | ContentionRows::Owner => {
                object["tid"] = json!(row.tid);
                object["comm"] = json!(row.name);
            }
            ContentionRows::Caller => object["caller"] = json!(row.name),
            ContentionRows::Address => {
                object["address"] = json!(format!("{:#x}", row.address));
                object["symbol"] = json!(row.name);
            }
        }
        if request.stacks {
            object["stack"] = row.stack.iter().map(|(_, name)| json!(name)).collect();
        }
        object
    };
    let omitted = list_up_to(out, &contention.rows, request.rows, row)?;
    let mut events = event_counts(&contention.counts);
    events["nested"] = json!(contention.nested);
    events["unfinished"] = json!(contention.unfinished);
    writeln!(out, ",\n\"events\": {},\n\"omitted\": {{\"rows\": {omitted}}}\n}}", as_json(&events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_in_perf() {
        let formatted = |ns| time(ns, 12);
        assert_eq!(formatted(48_147_452), "    48.15 ms");
        assert_eq!(formatted(40_730), "    40.73 us");
        assert_eq!(formatted(999), "      999 ns");
        assert_eq!(formatted(1_500_000_000), "     1.50 s ");
        assert_eq!(formatted(90_000_000_000), "     1.50 m ");
    }
}
