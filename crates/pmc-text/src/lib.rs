//! Text for people and for programs: quantities, widths, tables, JSON and terminals.
//!
//! - [`text`]: untrusted text made harmless, widths, names that fit, patterns, JSON strings.
//! - [`units`]: times, counts, sizes, dates, lists of numbers.
//! - [`table`], [`json_document`]: aligned columns, and long JSON lists written item by item.
//! - [`terminal`]: what the terminal can show, and its colours.

#![forbid(unsafe_code)]

pub mod json_document;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read files of the checkout")]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod table;
pub mod terminal;
pub mod text;
pub mod units;
