//! The JSON writer for all output that may appear on a terminal. Uses serde, and escapes untrusted text
//! without losing information.

use std::fmt::{self, Display};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use super::hostile;

/// Returns a value that prints as JSON on one line, or indented with `{:#}`. Characters that a terminal would
/// interpret become `\u` escapes, from which parsers restore the original string.
pub fn as_json<T: Serialize + ?Sized>(value: &T) -> JsonDisplay<'_, T> {
    JsonDisplay(value)
}

/// Writes a value on one line, as printed by [`as_json`].
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_json(out: &mut dyn Write, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, EscapingFormatter(CompactFormatter)))?)
}

/// See [`as_json`].
#[derive(Debug)]
pub struct JsonDisplay<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Display for JsonDisplay<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_indented = out.alternate();
        let out = TextWriter(out);
        let written = match is_indented {
            true => self
                .0
                .serialize(&mut Serializer::with_formatter(out, EscapingFormatter(PrettyFormatter::new()))),
            false => {
                self.0.serialize(&mut Serializer::with_formatter(out, EscapingFormatter(CompactFormatter)))
            }
        };
        written.map_err(|_| fmt::Error)
    }
}

/// Passes serde's bytes to a formatter; serde writes only complete characters.
struct TextWriter<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for TextWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A serde formatter that also escapes characters that a terminal would interpret. JSON requires this
/// only below U+0020.
struct EscapingFormatter<F>(F);

macro_rules! forward {
    ($($method:ident($($argument:ident: $kind:ty)?)),+ $(,)?) => {
        $(fn $method<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $kind)?) -> io::Result<()> {
            self.0.$method(out $(, $argument)?)
        })+
    };
}

impl<F: Formatter> Formatter for EscapingFormatter<F> {
    forward!(
        begin_array(),
        end_array(),
        begin_array_value(first: bool),
        end_array_value(),
        begin_object(),
        end_object(),
        begin_object_key(first: bool),
        end_object_key(),
        begin_object_value(),
        end_object_value(),
    );

    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, character)) = rest.char_indices().find(|(_, character)| hostile(*character)) {
            out.write_all(&rest.as_bytes()[..at])?;
            write!(out, "\\u{:04x}", u32::from(character))?;
            rest = &rest[at + character.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_characters_are_escaped_and_parse_back() {
        let name = "a\u{9b}31m\u{202e}\u{7f}\u{1b}\"ü";
        let value = serde_json::json!({ name: [name, 1, null] });
        for text in [as_json(&value).to_string(), format!("{:#}", as_json(&value))] {
            assert!(text.contains(r#"a\u009b31m\u202e\u007f\u001b\"ü"#), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
        assert_eq!(format!("{:#}", as_json(&serde_json::json!({"a": 1}))), "{\n  \"a\": 1\n}");
    }
}
