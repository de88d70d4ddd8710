//! A self-contained HTML page with flame graph, call tree, timeline and code, for sharing results.
//!
//! Receives a title, an HTML result and the data that the page's script draws. `pmc compare` and the export
//! of a recording write such a page.
//!
//! ```text
//!   page.html ── page.css, page.js ── data
//!                                      '── JSON, gzipped, base64
//! ```
//!
//! The page must not load anything; its content security policy enforces this in the browser. Untrusted text
//! is either part of the data, which the script inserts only as text, or the title, which this module
//! escapes.

use std::io::{self, BufWriter, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use pmc_text::json_document::Streamed;
use pmc_text::text::{DisplayName, clean, write_json, xml_escaped};

const PAGE: &str = include_str!("page.html");
/// The style of the page, with the colours of code.
pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes a page. `result` is HTML for the first tab, which is hidden if it is empty. `data` writes the JSON
/// document that the page's script reads.
pub fn write(
    out: &mut dyn Write,
    title: &str,
    result: &str,
    data: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let parts = PAGE.split(['⟦', '⟧']);
    for part in parts {
        match part {
            "title" => write!(out, "{}", xml_escaped(&clean(title)))?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            "result" => out.write_all(result.as_bytes())?,
            "data" => {
                let text = EncoderWriter::new(&mut *out, &STANDARD);
                // Buffer the output, because numbers are written one by one, and each write to the compressor
                // has a high fixed cost.
                let mut zipped = BufWriter::new(GzEncoder::new(text, Compression::fast()));
                data(&mut zipped)?;
                zipped.into_inner()?.finish()?.finish()?;
            }
            text => out.write_all(text.as_bytes())?,
        }
    }
    Ok(())
}

/// Writes a field that contains a list.
pub fn list(
    out: &mut dyn Write,
    name: &str,
    values: impl Iterator<Item: Serialize> + Clone,
) -> io::Result<()> {
    write!(out, ",\"{name}\":")?;
    write_json(out, &Streamed(values))
}

/// Returns a name without template arguments and return type, as the full-screen view shows it; `None` if it
/// has neither.
pub fn brief(name: &str) -> Option<String> {
    Some(DisplayName::new(name).text()).filter(|brief| brief != name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_have_a_short_form() {
        let long = "std::vector<int, std::allocator<int> >::push_back(int const&)";
        let brief_name = brief(long).expect("it is shorter");
        assert!(brief_name.contains("push_back") && !brief_name.contains("allocator"), "{brief_name}");
        assert_eq!(brief("main"), None);
    }
}
