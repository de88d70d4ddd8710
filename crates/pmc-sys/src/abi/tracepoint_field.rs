//! One line of a tracepoint's format file, as found in tracefs and in recordings.
//!
//! ```text
//! field:char prev_comm[16];   offset:8;   size:16;   signed:0;
//! ```
//! This module only parses the line; `record` decodes payloads.

/// Location of a field's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldStorage {
    /// At the field's offset.
    Inline,
    /// `__data_loc`: the field contains the location (low half: offset in the payload, high half: length).
    DataLoc,
    /// `__rel_loc`: like `__data_loc`, with an offset relative to the end of the field.
    RelLoc,
}

/// One field of a tracepoint's payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointField {
    /// The field's name, as used in filters.
    pub name: String,
    /// The complete C declaration: `char comm[16]`, `__data_loc char[] name`.
    pub declaration: String,
    /// The C type, without array bounds.
    pub c_type: String,
    /// Offset in the payload, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Whether the field's values are signed.
    pub is_signed: bool,
    /// Whether the field is an array.
    pub is_array: bool,
    /// Location of the bytes.
    pub storage: FieldStorage,
}

impl TracepointField {
    /// Parses a line. Returns `None` if the line is not a field, or if the field exceeds a payload's maximum
    /// size.
    pub fn parse(line: &str) -> Option<Self> {
        let mut parts = line.trim().split(';').map(str::trim);
        let whole = parts.next()?.strip_prefix("field:")?;
        let mut number =
            |key: &str| parts.next().and_then(|p| p.strip_prefix(key)).and_then(|n| n.parse::<usize>().ok());
        let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:").unwrap_or(0));
        // A payload is at most 64 KiB, so larger numbers are invalid.
        if offset > 1 << 16 || size > 1 << 16 {
            return None;
        }
        let (storage, declaration) = if let Some(rest) = whole.strip_prefix("__data_loc ") {
            (FieldStorage::DataLoc, rest)
        } else if let Some(rest) = whole.strip_prefix("__rel_loc ") {
            (FieldStorage::RelLoc, rest)
        } else {
            (FieldStorage::Inline, whole)
        };
        let bare = declaration.split('[').next().unwrap_or(declaration).trim_end();
        // An inline field is declared as `char comm[16]`, a `__data_loc` field as `char[] name`.
        let named = if storage == FieldStorage::Inline { bare } else { declaration };
        let (c_type, name) = named.rsplit_once([' ', '*'])?;
        let star = if bare.contains('*') && !c_type.contains('*') { " *" } else { "" };
        Some(Self {
            name: name.trim().to_owned(),
            declaration: whole.to_owned(),
            c_type: c_type.trim().to_owned() + star,
            offset,
            size,
            is_signed: signed == 1,
            is_array: declaration.contains('['),
            storage,
        })
    }

    /// Whether every tracepoint has this field: `common_type`, `common_pid` and so on.
    pub fn is_common(&self) -> bool {
        self.name.starts_with("common_")
    }

    /// Whether the field is a string, that is, an array of `char`.
    pub fn is_text(&self) -> bool {
        let base = self.c_type.trim_end_matches("[]").trim();
        self.is_array && (base == "char" || base == "const char")
    }

    /// Size of one element in bytes.
    pub fn element_size(&self) -> usize {
        match self.c_type.trim_end_matches("[]").trim() {
            c_type if c_type.contains('*') => 8,
            "char" | "unsigned char" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "bool" => 1,
            "short" | "unsigned short" | "u16" | "s16" | "__u16" | "__s16" | "__be16" | "__le16" => 2,
            "long" | "unsigned long" | "u64" | "s64" | "__u64" | "__s64" | "size_t" | "long long" => 8,
            "unsigned long long" => 8,
            _ => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoint_fields_parse() {
        let got =
            TracepointField::parse("\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;").unwrap();
        assert_eq!((got.name.as_str(), got.offset, got.size, got.is_signed), ("prev_comm", 8, 16, false));
        assert!(got.is_text());
        let got = TracepointField::parse("field:const char * name;\toffset:8;\tsize:8;\tsigned:1;").unwrap();
        assert_eq!((got.name.as_str(), got.is_signed, got.element_size()), ("name", true, 8));
        let got = TracepointField::parse("field:__data_loc char[] path;\toffset:8;\tsize:4;\tsigned:0;");
        let got = got.unwrap();
        assert_eq!((got.name.as_str(), got.storage), ("path", FieldStorage::DataLoc));
        assert_eq!(got.declaration, "__data_loc char[] path");
        assert_eq!(TracepointField::parse("print fmt: \"x\""), None);
        assert_eq!(TracepointField::parse("field:int a;\toffset:8;\tsize:99999;\tsigned:0;"), None);
    }
}
