//! Integers and texts of a JFR file.
//!
//! An integer is LEB128 or big-endian. A text starts with its encoding:
//!
//! ```text
//!   0  null      1  empty      2  key of a constant      3  UTF-8      4  UTF-16      5  Latin-1
//! ```

use std::borrow::Cow;

use super::error::ImportError;

/// A text, or a reference to it.
#[derive(Debug, PartialEq)]
pub(super) enum JfrText<'a> {
    Null,
    Text(Cow<'a, str>),
    /// Key of a constant.
    Reference(i64),
}

/// A position in a file, from which values are read.
pub(super) struct JfrCursor<'a> {
    /// The file up to the end of the part that may be read.
    pub(super) bytes: &'a [u8],
    /// Offset in the file.
    pub(super) at: usize,
    /// Whether integers are LEB128.
    pub(super) is_compressed: bool,
}

impl<'a> JfrCursor<'a> {
    pub(super) fn take(&mut self, size: usize) -> Result<&'a [u8], ImportError> {
        let end = self.at.saturating_add(size);
        let taken = self.bytes.get(self.at..end);
        let taken = taken.ok_or_else(|| {
            ImportError::byte(
                self.at,
                format!("{size} bytes expected, but the chunk ends at byte {}", self.bytes.len()),
            )
        })?;
        self.at = end;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ImportError> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads an integer that has `size` bytes if it is not compressed.
    pub(super) fn integer(&mut self, size: usize) -> Result<i64, ImportError> {
        if !self.is_compressed {
            let bytes = self.take(size)?;
            let is_negative = bytes.first().is_some_and(|byte| byte >> 7 == 1);
            return Ok(bytes
                .iter()
                .fold(if is_negative { -1 } else { 0 }, |sum, byte| sum << 8 | i64::from(*byte)));
        }
        let mut value = 0u64;
        for at in 0..9 {
            let byte = self.byte()?;
            // The ninth byte has eight bits of the number.
            let is_last = at == 8 || byte & 0x80 == 0;
            let bits = if at == 8 { byte } else { byte & 0x7f };
            value |= u64::from(bits) << (7 * at);
            if is_last {
                break;
            }
        }
        // Negative numbers of 2 and 4 bytes are written without sign extension.
        Ok(match size {
            2 if value <= 0xffff => i64::from(value as u16 as i16),
            4 => i64::from(value as u32 as i32),
            _ => value as i64,
        })
    }

    /// Reads the number of values that follow. Each value takes at least one byte.
    pub(super) fn count(&mut self) -> Result<usize, ImportError> {
        let at = self.at;
        let count = self.integer(4)?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(count).ok().filter(|count| *count <= left) {
            Some(count) => Ok(count),
            None => Err(ImportError::byte(at, format!("a count of {count} exceeds the chunk"))),
        }
    }

    /// Reads the number of a text of the metadata.
    pub(super) fn text_of<'t>(&mut self, texts: &'t [Cow<'a, str>]) -> Result<&'t str, ImportError> {
        let at = self.at;
        let number = self.integer(4)?;
        let text = usize::try_from(number).ok().and_then(|number| texts.get(number));
        text.map(|text| &**text)
            .ok_or_else(|| ImportError::byte(at, format!("text {number} of the metadata is missing")))
    }

    /// Reads a text.
    pub(super) fn text(&mut self) -> Result<JfrText<'a>, ImportError> {
        let at = self.at;
        Ok(match self.byte()? {
            0 => JfrText::Null,
            1 => JfrText::Text(Cow::Borrowed("")),
            2 => JfrText::Reference(self.integer(8)?),
            3 => {
                let size = self.count()?;
                JfrText::Text(String::from_utf8_lossy(self.take(size)?))
            }
            4 => {
                let mut units = Vec::new();
                for _ in 0..self.count()? {
                    units.push(self.integer(2)? as u16);
                }
                JfrText::Text(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let size = self.count()?;
                JfrText::Text(self.take(size)?.iter().map(|byte| char::from(*byte)).collect())
            }
            other => return Err(ImportError::byte(at, format!("invalid encoding of a text ({other})"))),
        })
    }

    pub(super) fn skip_text(&mut self) -> Result<(), ImportError> {
        let mut ahead = Self { ..*self };
        if let 3 | 5 = ahead.byte()? {
            let size = ahead.count()?;
            ahead.take(size)?;
            self.at = ahead.at;
            return Ok(());
        }
        self.text().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(bytes: &[u8], is_compressed: bool) -> JfrCursor<'_> {
        JfrCursor { bytes, at: 0, is_compressed }
    }

    #[test]
    fn integers_are_compressed_or_big_endian() {
        let compressed = |bytes: &[u8], size| cursor(bytes, true).integer(size).unwrap();
        assert_eq!(compressed(&[0x85, 0xb0, 0x03], 8), 55_301);
        assert_eq!(compressed(&[0xff; 9], 8), -1);
        assert_eq!(compressed(&[0xff, 0xff, 0xff, 0xff, 0x0f], 4), -1);
        assert_eq!(compressed(&[0x80, 0x80, 0x80, 0x00], 4), 0);
        let fixed = |bytes: &[u8], size| cursor(bytes, false).integer(size).unwrap();
        assert_eq!(fixed(&[0, 0, 1, 2], 4), 258);
        assert_eq!(fixed(&[0xff, 0xfe], 2), -2);
        assert_eq!(
            cursor(&[0x80], true).integer(8).unwrap_err().to_string().split(':').next(),
            Some("byte 1")
        );
    }

    #[test]
    fn texts_have_five_encodings() {
        let text = |bytes: &[u8]| match cursor(bytes, true).text().unwrap() {
            JfrText::Text(text) => text.into_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(text(&[0]), "Null");
        assert_eq!(text(&[1]), "");
        assert_eq!(text(b"\x03\x03\xc3\xb6x"), "öx");
        assert_eq!(text(&[4, 2, 0xf6, 0x01, 0x78]), "öx");
        assert_eq!(text(b"\x05\x02\xf6x"), "öx");
        assert!(cursor(&[6], true).text().unwrap_err().to_string().contains("encoding"));
        assert!(cursor(&[3, 9, b'a'], true).text().unwrap_err().to_string().contains("exceeds the chunk"));
    }
}
