//! Tracepoint payloads: parses the kernel's `format` files; finds and prints the fields of a payload.
//!
//! Receives the text of a format file (from tracefs, or from a recording's [`TracingData`]) and the raw bytes
//! of samples. Returns fields, and the line that perf script prints. A format file's `print fmt` is C code
//! from the kernel. If `print` can evaluate this code, the line is what the kernel would print; otherwise, it
//! is a list of `name=value`. The caller resolves code addresses to names.
//!
//! ```text
//! name: sched_switch
//! ID: 372
//! format:
//!     field:char prev_comm[16];   offset:8;   size:16;   signed:0;
//!     …
//! print fmt: "prev_comm=%s …", REC->prev_comm, …
//! ```

mod data;
mod print;

pub use data::TracingData;

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::bytes::until_nul;
use pmc_sys::abi::TracepointField;
use pmc_sys::abi::tracepoint_field::FieldStorage;

/// Resolves addresses in the recorded kernel.
#[derive(Clone, Copy)]
pub struct KernelNames<'a> {
    /// Returns the function at a code address and the offset in it, for `%pS`.
    pub code: &'a dyn Fn(u64) -> Option<(String, u64)>,
    /// The kernel's constant strings by address, for a `%s` whose argument is a pointer; see
    /// [`TracingData::texts`].
    pub texts: Option<&'a FxHashMap<u64, String>>,
}

impl KernelNames<'_> {
    /// Resolves nothing, so addresses are printed as numbers.
    pub const NONE: KernelNames<'static> = KernelNames { code: &|_| None, texts: None };
}

/// A payload and its byte order.
#[derive(Debug, Clone, Copy)]
pub struct Payload<'a> {
    /// The sample's raw bytes.
    pub bytes: &'a [u8],
    /// Whether the payload is in the opposite byte order.
    pub is_byte_swapped: bool,
}

impl<'a> Payload<'a> {
    #[inline]
    fn bytes_of(self, field: &TracepointField) -> Option<&'a [u8]> {
        let here = self.bytes.get(field.offset..)?.get(..field.size)?;
        let location =
            || self.number(here.get(..4)?).map(|word| (word as usize & 0xffff, word as usize >> 16 & 0xffff));
        let (offset, len) = match field.storage {
            FieldStorage::Inline => return Some(here),
            FieldStorage::DataLoc => location()?,
            FieldStorage::RelLoc => {
                location().map(|(offset, len)| (offset + field.offset + field.size, len))?
            }
        };
        self.bytes.get(offset..)?.get(..len)
    }

    /// Reads an unsigned number of 1, 2, 4 or 8 bytes.
    #[inline]
    fn number(self, bytes: &[u8]) -> Option<u64> {
        let number = match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            _ => return None,
        };
        let unused = 64 - 8 * bytes.len() as u32;
        Some(if self.is_byte_swapped { number.swap_bytes() >> unused } else { number })
    }

    /// Reads a number of 1, 2, 4 or 8 bytes, and sign-extends it if it is signed.
    #[inline]
    pub fn integer(self, bytes: &[u8], is_signed: bool) -> Option<i64> {
        let number = self.number(bytes)?;
        let unused = 64 - 8 * bytes.len() as u32;
        Some(if is_signed { (number << unused) as i64 >> unused } else { number as i64 })
    }

    /// Returns the number in a field; `None` for arrays and for fields beyond the payload's end.
    #[inline]
    pub fn number_in(self, field: &TracepointField) -> Option<i64> {
        if field.is_array {
            return None;
        }
        self.integer(self.bytes_of(field)?, field.is_signed)
    }

    /// Returns the string in a field, up to the first NUL.
    pub fn text_in(self, field: &TracepointField) -> Option<&'a [u8]> {
        if field.is_text() { self.bytes_of(field).map(until_nul) } else { None }
    }

    /// Appends a field's value in the default format of its type.
    pub fn print_field(self, field: &TracepointField, out: &mut String) {
        if let Some(text) = self.text_in(field) {
            out.push_str(&String::from_utf8_lossy(text));
        } else if let Some(number) = self.number_in(field) {
            let _ = if field.c_type.contains('*') {
                write!(out, "0x{number:x}")
            } else if field.is_signed {
                write!(out, "{number}")
            } else {
                write!(out, "{}", number as u64)
            };
        } else if let Some(bytes) = self.bytes_of(field) {
            out.push('[');
            for (at, element) in bytes.chunks(field.element_size()).enumerate() {
                let separator = if at > 0 { ", " } else { "" };
                let _ = write!(out, "{separator}{:x}", self.number(element).unwrap_or(0));
            }
            out.push(']');
        }
    }
}

/// A parsed format file.
#[derive(Debug, Clone)]
pub struct TracepointFormat {
    /// The subsystem, such as `sched`.
    pub system: String,
    /// The tracepoint, such as `sched_switch`.
    pub name: String,
    /// The tracepoint's id: `attr.config`, and the payload's first two bytes.
    pub id: u64,
    /// The fields, the common ones first.
    pub fields: Vec<TracepointField>,
    /// The parsed `print fmt`; `None` if it is not supported.
    print: Option<print::Print>,
}

impl TracepointFormat {
    /// Parses a format file of this subsystem; `None` if the name, the id or the fields are missing.
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let mut name = None;
        let mut id = None;
        let mut fields = Vec::new();
        let mut print_text = None;
        let mut at = 0;
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some(rest) = trimmed.strip_prefix("name:") {
                name = name.or(Some(rest.trim().to_owned()));
            } else if let Some(rest) = trimmed.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if trimmed.starts_with("field:") {
                fields.extend(TracepointField::parse(trimmed));
            } else if let Some(found) = line.find("print fmt:") {
                // `print fmt` comes last and may contain line breaks.
                print_text = text.get(at + found + "print fmt:".len()..);
                break;
            }
            at += line.len() + 1;
        }
        let print = print_text.and_then(|text| print::Print::parse(text, &fields));
        (!fields.is_empty()).then_some(Self {
            system: system.to_owned(),
            name: name?,
            id: id?,
            fields,
            print,
        })
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&TracepointField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Whether `print fmt` is supported; otherwise [`TracepointFormat::print`] prints the fields by name.
    pub fn is_printable(&self) -> bool {
        self.print.is_some()
    }

    /// Appends the line that describes the payload. Does not escape control characters.
    pub fn print(&self, payload: Payload<'_>, names: KernelNames<'_>, out: &mut String) {
        let start = out.len();
        let printed = self.print.as_ref().and_then(|print| print.evaluate(&self.fields, payload, names, out));
        if printed.is_none() {
            out.truncate(start);
            self.print_fields(payload, out);
        }
    }

    /// Prints one field as it appears after `NAME=` in the payload's line, or in the default format of its
    /// type if it does not appear there. `None` if there is no field with this name.
    pub fn print_field(&self, name: &str, payload: Payload<'_>, names: KernelNames<'_>) -> Option<String> {
        let field = self.field(name)?;
        let mut out = String::new();
        let labelled = self
            .print
            .as_ref()
            .and_then(|print| print.evaluate_labelled(name, &self.fields, payload, names, &mut out));
        if labelled.is_none() {
            out.clear();
            payload.print_field(field, &mut out);
        }
        Some(out)
    }

    /// Appends the fields as `name=value`, regardless of `print fmt`.
    pub fn print_fields(&self, payload: Payload<'_>, out: &mut String) {
        for (number, field) in self.own_fields().enumerate() {
            let _ = write!(out, "{}{}=", if number == 0 { "" } else { " " }, field.name);
            payload.print_field(field, out);
        }
    }

    /// The fields that are not common to all tracepoints.
    fn own_fields(&self) -> impl Iterator<Item = &TracepointField> {
        self.fields.iter().filter(|field| !field.is_common())
    }

    /// Iterates over the names and values of these fields.
    pub fn fields_of(&self, payload: Payload<'_>) -> impl Iterator<Item = (&str, String)> {
        self.own_fields().map(move |field| {
            let mut value = String::new();
            payload.print_field(field, &mut value);
            (&*field.name, value)
        })
    }
}

#[cfg(test)]
mod tests;
