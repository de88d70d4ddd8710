//! Chunks of a JFR file: their types, constants and events.
//!
//! A chunk describes the types of its events and constants, so a reader needs to know only the names of the
//! fields that it uses. This module reads the description and decodes values by it; [`jfr`](super::jfr)
//! decides which events and fields matter.
//!
//! ```text
//!   header: "FLR\0" version size ... | event | metadata | event | constants | event | ...   | next chunk
//!           68 bytes
//!   event      size, number of its class, a value per field of the class
//!   metadata   texts, then a tree:  class (number, name) -- field (name, class, flags) -- annotation (unit)
//!   constants  per class: key, value; key, value; ...
//!
//!   value      number, text, a value per field, or a reference: the key of a constant of the field's class
//! ```
//!
//! The offsets and deltas that link metadata and constants are not followed: a scan over the sizes of all
//! events finds both. Limits apply to the number of constants, to the nesting of values, and to the work of
//! resolving references. Each value takes at least one byte of the file.
//!
//! JFR has no specification. Sources: OpenJDK's `jdk.jfr.internal.consumer` and
//! `jdk.jfr.internal.MetadataReader`, and async-profiler's `JfrReader.java` and `flightRecorder.cpp`. The
//! crate `jfrs` (0.2.5) is not safe for hostile files: it allocates the sizes that a file states, recurses
//! without a limit, and follows deltas in circles.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use super::error::ImportError;
use super::jfr_cursor::{JfrCursor, JfrText};

/// How a chunk starts.
pub(super) const MAGIC: &[u8; 4] = b"FLR\0";
/// Size of the header of a chunk.
const HEADER: usize = 68;
/// Numbers of the classes of metadata and constants.
const METADATA: i64 = 0;
const CONSTANTS: i64 = 1;
/// Maximum depth of values in values, and length of chains of references.
const MOST_NESTED: usize = 16;
/// Maximum number of constants of a chunk.
const MOST_CONSTANTS: usize = 1 << 24;
/// Maximum number of times that a chunk is read again to resolve references.
const MOST_WORK: u64 = 1 << 10;

/// How the values of a class are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JfrEncoding {
    /// One byte: `byte` and `boolean`.
    Byte,
    /// An integer of this many bytes, or LEB128.
    Integer(usize),
    /// A floating-point number of this many bytes.
    Float(usize),
    Text,
    /// A value per field.
    Fields,
}

/// The unit of a field that is a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JfrUnit {
    Unknown,
    Ticks,
    Nanoseconds(i64),
}

/// A field of a class.
#[derive(Debug)]
pub(super) struct JfrField {
    pub(super) name: String,
    class: i64,
    /// Whether values are keys of constants.
    is_reference: bool,
    is_list: bool,
    pub(super) unit: JfrUnit,
}

/// A type of values or events.
#[derive(Debug)]
pub(super) struct JfrClass {
    pub(super) name: String,
    pub(super) fields: Vec<JfrField>,
    encoding: JfrEncoding,
    /// Offsets of the constants of this class in the file, by their keys.
    constants: HashMap<i64, usize>,
}

/// A value, or the position of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JfrValue<'a> {
    /// A null text, a reference to a missing constant, or a missing field.
    Null,
    /// An integer, or a truth value.
    Number(i64),
    Text(Cow<'a, str>),
    Reference {
        class: i64,
        key: i64,
    },
    /// Values of the fields of a class, from this offset in the file.
    Fields {
        class: i64,
        at: usize,
    },
    /// A list of values, from this offset in the file.
    List {
        class: i64,
        is_reference: bool,
        count: usize,
        at: usize,
    },
}

/// An event.
pub(super) struct JfrEvent<'c> {
    pub(super) class: &'c JfrClass,
    position: EventPosition,
}

impl JfrEvent<'_> {
    /// Returns the offset of the event in the file.
    pub(super) fn at(&self) -> usize {
        self.position.at
    }
}

/// A chunk.
pub(super) struct JfrChunk<'a> {
    /// The file up to the end of the chunk.
    bytes: &'a [u8],
    /// Offset of the chunk in the file.
    start: usize,
    is_compressed: bool,
    /// Whether its writer may still append to it, or was killed.
    pub(super) is_unfinished: bool,
    start_ns: i64,
    start_ticks: i64,
    ticks_per_second: i64,
    /// Classes by their numbers.
    classes: HashMap<i64, JfrClass>,
    /// Number of bytes that were read again.
    work: Cell<u64>,
}

impl<'a> JfrChunk<'a> {
    /// Reads the types and constants of the chunk at this offset in the file.
    pub(super) fn read(file: &'a [u8], start: usize) -> Result<Self, ImportError> {
        let invalid = |what: String| ImportError::byte(start, what);
        let mut header = JfrCursor { bytes: file, at: start, is_compressed: false };
        if header.take(MAGIC.len())? != MAGIC {
            return Err(invalid("a chunk must start with FLR".to_owned()));
        }
        let (major, minor) = (header.integer(2)?, header.integer(2)?);
        if !(1..=2).contains(&major) {
            return Err(invalid(format!(
                "version {major}.{minor} of the format is not supported (1 and 2 are)"
            )));
        }
        let size = header.integer(8)?;
        let constants_offset = header.integer(8)?;
        let metadata_offset = header.integer(8)?;
        if constants_offset == 0 || metadata_offset == 0 {
            return Err(invalid(
                "this chunk is incomplete: the recording was not stopped, or its program was killed"
                    .to_owned(),
            ));
        }
        let end = usize::try_from(size).ok().filter(|size| *size >= HEADER);
        let end = end.ok_or_else(|| invalid(format!("invalid size of a chunk ({size})")))?;
        let bytes = file.get(..start.saturating_add(end)).ok_or_else(|| {
            invalid(format!(
                "the file is truncated: this chunk has {size} bytes, but only {} are left",
                file.len() - start
            ))
        })?;
        let start_ns = header.integer(8)?;
        header.integer(8)?;
        let start_ticks = header.integer(8)?;
        let ticks_per_second = header.integer(8)?;
        if ticks_per_second <= 0 {
            return Err(invalid(format!("invalid number of ticks per second ({ticks_per_second})")));
        }
        let flags = header.integer(4)?;
        let mut chunk = Self {
            bytes,
            start,
            is_compressed: flags & 1 == 1,
            is_unfinished: flags >> 24 != 0,
            start_ns,
            start_ticks,
            ticks_per_second,
            classes: HashMap::new(),
            work: Cell::new(0),
        };
        for position in chunk.positions() {
            let position = position?;
            if position.class == METADATA {
                chunk.classes = chunk.read_metadata(&position)?;
            }
        }
        if chunk.classes.is_empty() {
            return Err(invalid("this chunk does not describe its events".to_owned()));
        }
        chunk.read_constants()?;
        Ok(chunk)
    }

    /// Returns the offset of the end of the chunk in the file.
    pub(super) fn end(&self) -> usize {
        self.bytes.len()
    }

    fn cursor(&self, at: usize) -> JfrCursor<'a> {
        JfrCursor { bytes: self.bytes, at, is_compressed: self.is_compressed }
    }

    /// Returns a cursor at the first field of an event, which cannot leave the event.
    fn cursor_in(&self, event: &EventPosition) -> JfrCursor<'a> {
        JfrCursor { bytes: &self.bytes[..event.end], ..self.cursor(event.fields) }
    }

    /// Iterates over the positions of all events. Ends at the first error.
    fn positions(&self) -> impl Iterator<Item = Result<EventPosition, ImportError>> + use<'a> {
        let (mut cursor, end) = (self.cursor(self.start + HEADER), self.bytes.len());
        std::iter::from_fn(move || {
            if cursor.at >= end {
                return None;
            }
            let position = event_position(&mut cursor);
            if position.is_err() {
                cursor.at = end;
            }
            Some(position)
        })
    }

    /// Iterates over the events of known classes.
    pub(super) fn events(&self) -> impl Iterator<Item = Result<JfrEvent<'_>, ImportError>> {
        self.positions().filter_map(|position| match position {
            Ok(position) => {
                let is_event = !matches!(position.class, METADATA | CONSTANTS);
                let class = self.classes.get(&position.class).filter(|_| is_event);
                class.map(|class| Ok(JfrEvent { class, position }))
            }
            Err(error) => Some(Err(error)),
        })
    }

    fn read_metadata(&self, event: &EventPosition) -> Result<HashMap<i64, JfrClass>, ImportError> {
        let mut cursor = self.cursor_in(event);
        // Start, duration, and number of the metadata.
        for _ in 0..3 {
            cursor.integer(8)?;
        }
        let mut texts = Vec::new();
        for _ in 0..cursor.count()? {
            texts.push(match cursor.text()? {
                JfrText::Text(text) => text,
                JfrText::Null | JfrText::Reference(_) => Cow::Borrowed(""),
            });
        }
        let mut tree = MetadataTree::default();
        // Numbers of children that are still to come, of the elements above.
        let mut left: Vec<usize> = vec![1];
        while let Some(children) = left.last_mut() {
            if *children == 0 {
                left.pop();
                continue;
            }
            *children -= 1;
            let element = cursor.text_of(&texts)?;
            let mut attributes = Vec::new();
            for _ in 0..cursor.count()? {
                attributes.push((cursor.text_of(&texts)?, cursor.text_of(&texts)?));
            }
            tree.add(element, &attributes, left.len());
            left.push(cursor.count()?);
        }
        Ok(tree.classes.into_iter().collect())
    }

    fn read_constants(&mut self) -> Result<(), ImportError> {
        let mut count = 0;
        for position in self.positions() {
            let position = position?;
            if position.class != CONSTANTS {
                continue;
            }
            let mut cursor = self.cursor_in(&position);
            // Start, duration, delta to the constants before, and kind.
            for _ in 0..3 {
                cursor.integer(8)?;
            }
            cursor.byte()?;
            for _ in 0..cursor.count()? {
                let class = cursor.integer(8)?;
                for _ in 0..cursor.count()? {
                    let key = cursor.integer(8)?;
                    let at = cursor.at;
                    self.skip(&mut cursor, class, 0)?;
                    count += 1;
                    if count > MOST_CONSTANTS {
                        return Err(ImportError::Limit {
                            what: "constants of a chunk",
                            most: MOST_CONSTANTS as u64,
                        });
                    }
                    if let Some(class) = self.classes.get_mut(&class) {
                        class.constants.insert(key, at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Skips a value of a class.
    fn skip(&self, cursor: &mut JfrCursor<'a>, class: i64, depth: usize) -> Result<(), ImportError> {
        let at = cursor.at;
        let invalid = |what: &str| Err(ImportError::byte(at, what));
        let Some(known) = self.classes.get(&class) else {
            return invalid("a value of a class that the chunk does not describe");
        };
        match known.encoding {
            JfrEncoding::Fields if depth >= MOST_NESTED => invalid("the values are nested too deeply"),
            JfrEncoding::Fields if known.fields.is_empty() => invalid("a value of a class without fields"),
            JfrEncoding::Fields => {
                known.fields.iter().try_for_each(|field| self.value(cursor, field, depth + 1).map(drop))
            }
            JfrEncoding::Byte => cursor.byte().map(drop),
            JfrEncoding::Integer(size) => cursor.integer(size).map(drop),
            JfrEncoding::Float(size) => cursor.take(size).map(drop),
            JfrEncoding::Text => cursor.skip_text(),
        }
    }

    /// Reads the value of a field, or skips it and returns its position.
    fn value(
        &self,
        cursor: &mut JfrCursor<'a>,
        field: &JfrField,
        depth: usize,
    ) -> Result<JfrValue<'a>, ImportError> {
        let (class, is_reference) = (field.class, field.is_reference);
        if !field.is_list {
            return self.element(cursor, class, is_reference, depth);
        }
        let count = cursor.count()?;
        let at = cursor.at;
        for _ in 0..count {
            match is_reference {
                true => cursor.integer(8).map(drop)?,
                false => self.skip(cursor, class, depth)?,
            }
        }
        Ok(JfrValue::List { class, is_reference, count, at })
    }

    fn element(
        &self,
        cursor: &mut JfrCursor<'a>,
        class: i64,
        is_reference: bool,
        depth: usize,
    ) -> Result<JfrValue<'a>, ImportError> {
        if is_reference {
            return Ok(JfrValue::Reference { class, key: cursor.integer(8)? });
        }
        let at = cursor.at;
        match self.classes.get(&class).map(|class| class.encoding) {
            Some(JfrEncoding::Byte) => cursor.byte().map(|byte| JfrValue::Number(i64::from(byte as i8))),
            Some(JfrEncoding::Integer(size)) => cursor.integer(size).map(JfrValue::Number),
            Some(JfrEncoding::Text) => Ok(match cursor.text()? {
                JfrText::Null => JfrValue::Null,
                JfrText::Text(text) => JfrValue::Text(text),
                JfrText::Reference(key) => JfrValue::Reference { class, key },
            }),
            Some(JfrEncoding::Float(size)) => cursor.take(size).map(|_| JfrValue::Null),
            Some(JfrEncoding::Fields) | None => {
                self.skip(cursor, class, depth)?;
                Ok(JfrValue::Fields { class, at })
            }
        }
    }

    /// Calls `visit` with each field of an event and its value.
    pub(super) fn event_fields(
        &self,
        event: &JfrEvent<'_>,
        mut visit: impl FnMut(&JfrField, JfrValue<'a>),
    ) -> Result<(), ImportError> {
        let mut cursor = self.cursor_in(&event.position);
        for field in &event.class.fields {
            let value = self.value(&mut cursor, field, 0)?;
            visit(field, value);
        }
        Ok(())
    }

    /// Returns the first `most` elements of a list.
    pub(super) fn elements(
        &self,
        list: &JfrValue<'a>,
        most: usize,
    ) -> Result<Vec<JfrValue<'a>>, ImportError> {
        let JfrValue::List { class, is_reference, count, at } = *list else { return Ok(Vec::new()) };
        let mut cursor = self.cursor(at);
        (0..count.min(most)).map(|_| self.element(&mut cursor, class, is_reference, 0)).collect()
    }

    /// Replaces a reference by the constant to which it refers.
    fn resolve(&self, value: JfrValue<'a>) -> Result<JfrValue<'a>, ImportError> {
        let mut value = value;
        for _ in 0..MOST_NESTED {
            let JfrValue::Reference { class, key } = value else { return Ok(value) };
            let constant = self.classes.get(&class).and_then(|class| class.constants.get(&key));
            let Some(at) = constant else { return Ok(JfrValue::Null) };
            value = self.element(&mut self.cursor(*at), class, false, 0)?;
        }
        Ok(JfrValue::Null)
    }

    /// Returns the value at the end of a path of fields, which may be a reference.
    pub(super) fn get(&self, value: &JfrValue<'a>, path: &[&str]) -> Result<JfrValue<'a>, ImportError> {
        let mut value = value.clone();
        for name in path {
            let JfrValue::Fields { class, at } = self.resolve(value)? else { return Ok(JfrValue::Null) };
            value = JfrValue::Null;
            let mut cursor = self.cursor(at);
            for field in self.classes.get(&class).map(|class| &*class.fields).unwrap_or_default() {
                let found = self.value(&mut cursor, field, 0)?;
                if field.name == *name {
                    value = found;
                    break;
                }
            }
            self.add_work(cursor.at - at)?;
        }
        Ok(value)
    }

    /// Counts bytes that were read again because an event or constant refers to them.
    fn add_work(&self, bytes: usize) -> Result<(), ImportError> {
        let work = self.work.get().saturating_add(bytes as u64);
        self.work.set(work);
        match work > (self.bytes.len() as u64).saturating_mul(MOST_WORK) {
            true => Err(ImportError::byte(self.start, "too many references to large constants")),
            false => Ok(()),
        }
    }

    /// Returns the text at the end of a path of fields; `None` if it is missing or null. A class that only
    /// wraps a text, such as `jdk.types.Symbol`, counts as this text.
    pub(super) fn text(
        &self,
        value: &JfrValue<'a>,
        path: &[&str],
    ) -> Result<Option<Cow<'a, str>>, ImportError> {
        let mut value = self.resolve(self.get(value, path)?)?;
        if let JfrValue::Fields { .. } = value {
            value = self.resolve(self.get(&value, &["string"])?)?;
        }
        Ok(if let JfrValue::Text(text) = value { Some(text) } else { None })
    }

    /// Returns the number at the end of a path of fields.
    pub(super) fn number(&self, value: &JfrValue<'a>, path: &[&str]) -> Result<Option<i64>, ImportError> {
        let value = self.get(value, path)?;
        Ok(if let JfrValue::Number(number) = value { Some(number) } else { None })
    }

    /// Returns references to all constants of a class.
    pub(super) fn constants(&self, name: &str) -> Vec<(i64, JfrValue<'a>)> {
        let of = self.classes.iter().filter(|(_, class)| class.name == name);
        of.flat_map(|(class, of)| {
            of.constants.keys().map(|key| (*key, JfrValue::Reference { class: *class, key: *key }))
        })
        .collect()
    }

    /// Converts a point in time, in ticks, to nanoseconds since the epoch.
    pub(super) fn time(&self, ticks: i64) -> u64 {
        let since = self.nanoseconds(i128::from(ticks) - i128::from(self.start_ticks));
        u64::try_from(i128::from(self.start_ns) + since).unwrap_or(0)
    }

    /// Converts a span of time to nanoseconds.
    pub(super) fn span(&self, value: i64, unit: JfrUnit) -> i128 {
        match unit {
            JfrUnit::Ticks => self.nanoseconds(i128::from(value)),
            JfrUnit::Nanoseconds(factor) => i128::from(value) * i128::from(factor),
            JfrUnit::Unknown => i128::from(value),
        }
    }

    fn nanoseconds(&self, ticks: i128) -> i128 {
        ticks * 1_000_000_000 / i128::from(self.ticks_per_second)
    }
}

/// The position of an event.
struct EventPosition {
    /// Number of its class.
    class: i64,
    /// Offsets of the event, its first field, and its end in the file.
    at: usize,
    fields: usize,
    end: usize,
}

/// Reads the size and class of the event at the cursor, and moves the cursor behind it.
fn event_position(cursor: &mut JfrCursor<'_>) -> Result<EventPosition, ImportError> {
    let at = cursor.at;
    let size = cursor.integer(4)?;
    let class = cursor.integer(8)?;
    let fields = cursor.at;
    let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size));
    match end.filter(|end| (fields..=cursor.bytes.len()).contains(end)) {
        Some(end) => {
            cursor.at = end;
            Ok(EventPosition { class, at, fields, end })
        }
        None => Err(ImportError::byte(at, format!("invalid size of an event ({size})"))),
    }
}

/// The classes of the metadata's tree, which is read from its root down.
#[derive(Default)]
struct MetadataTree {
    classes: Vec<(i64, JfrClass)>,
    /// Depth of the last field.
    field_depth: usize,
}

impl MetadataTree {
    /// Adds an element, with the names and values of its attributes.
    fn add(&mut self, element: &str, attributes: &[(&str, &str)], depth: usize) {
        let attribute =
            |name: &str| attributes.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| *value);
        let number = |name: &str| attribute(name).parse::<i64>().unwrap_or(-1);
        let name = attribute("name").to_owned();
        match element {
            "class" => {
                let encoding = encoding_of(&name);
                let class = JfrClass { name, fields: Vec::new(), encoding, constants: HashMap::new() };
                self.classes.push((number("id"), class));
                self.field_depth = 0;
            }
            "field" => {
                let field = JfrField {
                    name,
                    class: number("class"),
                    is_reference: attribute("constantPool") == "true",
                    is_list: number("dimension") > 0,
                    unit: JfrUnit::Unknown,
                };
                self.field_depth = depth;
                if let Some((_, class)) = self.classes.last_mut() {
                    class.fields.push(field);
                }
            }
            "annotation" if self.field_depth > 0 && depth == self.field_depth + 1 => {
                let field = self.classes.last_mut().and_then(|(_, class)| class.fields.last_mut());
                // Only `jdk.jfr.Timespan` and `jdk.jfr.Timestamp` have these values.
                let unit = match attribute("value") {
                    "TICKS" => JfrUnit::Ticks,
                    "NANOSECONDS" => JfrUnit::Nanoseconds(1),
                    "MICROSECONDS" => JfrUnit::Nanoseconds(1_000),
                    "MILLISECONDS" => JfrUnit::Nanoseconds(1_000_000),
                    "SECONDS" => JfrUnit::Nanoseconds(1_000_000_000),
                    _ => return,
                };
                if let Some(field) = field {
                    field.unit = unit;
                }
            }
            _ => {}
        }
    }
}

fn encoding_of(class: &str) -> JfrEncoding {
    match class {
        "boolean" | "byte" => JfrEncoding::Byte,
        "short" | "char" => JfrEncoding::Integer(2),
        "int" => JfrEncoding::Integer(4),
        "long" => JfrEncoding::Integer(8),
        "float" => JfrEncoding::Float(4),
        "double" => JfrEncoding::Float(8),
        "java.lang.String" => JfrEncoding::Text,
        _ => JfrEncoding::Fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of the class of texts in [`chunk`].
    const TEXT: i64 = 20;

    /// Returns a chunk of texts and of one other class, number 30.
    fn chunk<'a>(bytes: &'a [u8], fields: Vec<JfrField>) -> JfrChunk<'a> {
        let class = |name: &str, fields| JfrClass {
            name: name.to_owned(),
            fields,
            encoding: encoding_of(name),
            constants: HashMap::new(),
        };
        let classes = [(TEXT, class("java.lang.String", Vec::new())), (30, class("Other", fields))];
        JfrChunk {
            bytes,
            start: 0,
            is_compressed: true,
            is_unfinished: false,
            start_ns: 1_000,
            start_ticks: 10,
            ticks_per_second: 1_000_000,
            classes: classes.into(),
            work: Cell::new(0),
        }
    }

    fn field(class: i64, is_list: bool) -> JfrField {
        JfrField { name: "field".to_owned(), class, is_reference: false, is_list, unit: JfrUnit::Ticks }
    }

    #[test]
    fn hostile_types_and_references_end() {
        let skipped = |fields, bytes: &[u8]| {
            let chunk = chunk(bytes, fields);
            chunk.skip(&mut chunk.cursor(0), 30, 0).map_err(|error| error.to_string())
        };
        assert!(skipped(vec![field(30, false)], &[0; 9]).unwrap_err().contains("nested too deeply"));
        assert!(skipped(vec![field(30, true)], &[1; 99]).unwrap_err().contains("nested too deeply"));
        assert!(skipped(vec![], &[0; 9]).unwrap_err().contains("without fields"));
        assert!(skipped(vec![field(99, false)], &[0; 9]).unwrap_err().contains("does not describe"));
        assert!(skipped(vec![field(TEXT, true)], &[9, 0, 0]).unwrap_err().contains("exceeds the chunk"));
        assert_eq!(skipped(vec![field(TEXT, true)], &[2, 0, 1]), Ok(()));
        // A text that refers to itself.
        let mut chunk = chunk(&[2, 7], Vec::new());
        chunk.classes.get_mut(&TEXT).unwrap().constants.insert(7, 0);
        let text = JfrValue::Reference { class: TEXT, key: 7 };
        assert_eq!(chunk.text(&text, &[]), Ok(None));
    }

    #[test]
    fn ticks_become_nanoseconds() {
        let chunk = chunk(&[], Vec::new());
        assert_eq!((chunk.time(12), chunk.time(9)), (3_000, 0));
        assert_eq!(chunk.time(i64::MIN), 0);
        assert_eq!(chunk.span(3, JfrUnit::Ticks), 3_000);
        assert_eq!(chunk.span(3, JfrUnit::Nanoseconds(1_000_000)), 3_000_000);
        assert_eq!(chunk.span(3, JfrUnit::Unknown), 3);
    }
}
