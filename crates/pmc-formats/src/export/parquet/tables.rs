//! The two Parquet tables of schema 1: their columns, a writer for each, and a reader for `stacks`.
//!
//! Receives rows; writes them in row groups, so that memory does not grow with the number of rows. Does not
//! open files. The columns follow what DuckDB, ClickHouse and Spark can all read: times in microseconds, no
//! unsigned numbers, keys that are never null, and parallel lists instead of a list of structs.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::column::writer::get_typed_column_writer_mut as typed;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;

const SAMPLES: &str = "message samples {
    REQUIRED INT64 time (TIMESTAMP(MICROS, true));
    REQUIRED INT64 duration_us;
    REQUIRED BYTE_ARRAY event (STRING);
    REQUIRED BYTE_ARRAY unit (STRING);
    REQUIRED BYTE_ARRAY service (STRING);
    REQUIRED BYTE_ARRAY version (STRING);
    REQUIRED BYTE_ARRAY host (STRING);
    REQUIRED BYTE_ARRAY comm (STRING);
    OPTIONAL BYTE_ARRAY container (STRING);
    OPTIONAL INT32 pid;
    OPTIONAL INT32 tid;
    OPTIONAL INT32 cpu;
    REQUIRED INT64 stack_id;
    REQUIRED INT32 samples;
    REQUIRED INT64 value;
    OPTIONAL group labels (MAP) {
        REPEATED group key_value { REQUIRED BYTE_ARRAY key (STRING); REQUIRED BYTE_ARRAY value (STRING); }
    }
}";

const STACKS: &str = "message stacks {
    REQUIRED INT64 stack_id;
    REQUIRED group function (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (STRING); } }
    REQUIRED group module (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (STRING); } }
    REQUIRED group build_id (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (STRING); } }
    REQUIRED group file (LIST) { REPEATED group list { REQUIRED BYTE_ARRAY element (STRING); } }
    REQUIRED group address (LIST) { REPEATED group list { REQUIRED INT64 element; } }
    REQUIRED group line (LIST) { REPEATED group list { REQUIRED INT64 element; } }
    REQUIRED group inlined (LIST) { REPEATED group list { REQUIRED BOOLEAN element; } }
    REQUIRED BOOLEAN symbolized;
}";

/// Key of the schema version in the metadata of both files.
pub const SCHEMA_KEY: &str = "pmc.schema";
/// Version of the tables; incremented when a column changes its meaning.
pub const SCHEMA: &str = "1";
/// Key of the metadata that tells how exact the times are.
pub(super) const CLOCK_KEY: &str = "pmc.clock";

/// Number of rows in a row group.
const ROWS: usize = 128 << 10;
/// Maximum number of frames in a row group of `stacks`, whose memory they determine.
const FRAMES: usize = 1 << 20;
/// Maximum size of a column's dictionary in bytes. The usual limit of 1 MB makes writers store each name
/// again for each of its frames.
const DICTIONARY: usize = 64 << 20;
/// zstd's default level, which compresses faster than it can be sent.
const LEVEL: i32 = 3;

/// A row of `samples`.
#[derive(Debug, Clone)]
pub(super) struct SampleColumns {
    /// Microseconds since 1970.
    pub(super) time: i64,
    /// Length of the time bucket in microseconds; 0 for a single sample.
    pub(super) duration_us: i64,
    pub(super) event: ByteArray,
    pub(super) unit: ByteArray,
    pub(super) service: ByteArray,
    pub(super) version: ByteArray,
    pub(super) host: ByteArray,
    pub(super) comm: ByteArray,
    pub(super) container: Option<ByteArray>,
    pub(super) pid: Option<i32>,
    pub(super) tid: Option<i32>,
    pub(super) cpu: Option<i32>,
    pub(super) stack_id: i64,
    pub(super) samples: i32,
    pub(super) value: i64,
    pub(super) labels: Arc<[(ByteArray, ByteArray)]>,
}

/// A frame of a row of `stacks`.
#[derive(Debug, Clone, PartialEq)]
pub struct StackFrameColumns {
    pub function: ByteArray,
    /// A file's path, or the name of the kernel or other code in brackets.
    pub module: ByteArray,
    /// In hexadecimal; empty if unknown.
    pub build_id: ByteArray,
    /// Source file; empty if unknown.
    pub file: ByteArray,
    /// Offset in the module's file; 0 for code that is identified by its name.
    pub address: i64,
    /// Source line; 0 if unknown.
    pub line: i64,
    /// Whether the function is inlined into the frame before it.
    pub inlined: bool,
}

/// A row of `stacks`.
#[derive(Debug, Clone, PartialEq)]
pub struct StackColumns {
    pub id: i64,
    /// The frames; the root comes first.
    pub frames: Vec<StackFrameColumns>,
    /// Whether all functions in files have names.
    pub symbolized: bool,
}

/// A file under construction. The crate requires an output that can move between threads, so it writes to
/// memory, and each finished row group moves on to the real output.
struct TableWriter<'a> {
    writer: SerializedFileWriter<Vec<u8>>,
    out: &'a mut dyn Write,
}

impl<'a> TableWriter<'a> {
    fn new(out: &'a mut dyn Write, schema: &str, metadata: &[(&str, &str)]) -> io::Result<Self> {
        let pair = |(key, value): &(&str, &str)| KeyValue::new((*key).to_owned(), (*value).to_owned());
        let properties = WriterProperties::builder()
            .set_created_by(concat!("pmc ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).map_err(failed)?))
            .set_dictionary_page_size_limit(DICTIONARY)
            // A dictionary of ids that are all different doubles their size.
            .set_column_dictionary_enabled(ColumnPath::from("stack_id"), schema != STACKS)
            .set_key_value_metadata(Some(metadata.iter().map(pair).collect()));
        let schema = Arc::new(parse_message_type(schema).map_err(failed)?);
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()));
        Ok(Self { writer: writer.map_err(failed)?, out })
    }

    /// Writes a row group. `columns` writes all its columns.
    fn group(
        &mut self,
        columns: impl FnOnce(&mut ColumnSequence<'_, '_>) -> Result<(), ParquetError>,
    ) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(failed)?;
        columns(&mut ColumnSequence(&mut group)).map_err(failed)?;
        group.close().map_err(failed)?;
        self.writer.flush()?;
        self.out.write_all(self.writer.inner())?;
        self.writer.inner_mut().clear();
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        let rest = self.writer.into_inner().map_err(failed)?;
        self.out.write_all(&rest)
    }
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// Writes the columns of a row group in the order of the schema.
struct ColumnSequence<'a, 'w>(&'a mut SerializedRowGroupWriter<'w, Vec<u8>>);

impl ColumnSequence<'_, '_> {
    /// Writes a column. The levels mark missing values and the starts of lists, as Parquet defines them.
    fn put<T: DataType>(
        &mut self,
        values: &[T::T],
        definition: Option<&[i16]>,
        repetition: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let missing = || ParquetError::General("more columns than the schema has".to_owned());
        let mut column = self.0.next_column()?.ok_or_else(missing)?;
        typed::<T>(column.untyped()).write_batch(values, definition, repetition)?;
        column.close()
    }

    /// Writes a column of optional values.
    fn put_optional<T: DataType>(
        &mut self,
        values: impl Iterator<Item = Option<T::T>>,
    ) -> Result<(), ParquetError> {
        let (mut definition, mut there) = (Vec::new(), Vec::new());
        for value in values {
            definition.push(i16::from(value.is_some()));
            there.extend(value);
        }
        self.put::<T>(&there, Some(&definition), None)
    }
}

/// Writes the table `samples`.
pub(super) struct SamplesWriter<'a> {
    table: TableWriter<'a>,
    rows: Vec<SampleColumns>,
}

impl<'a> SamplesWriter<'a> {
    pub(super) fn new(out: &'a mut dyn Write, metadata: &[(&str, &str)]) -> io::Result<Self> {
        Ok(Self { table: TableWriter::new(out, SAMPLES, metadata)?, rows: Vec::new() })
    }

    pub(super) fn push(&mut self, row: SampleColumns) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() == ROWS { self.flush() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        self.table.finish()
    }

    fn flush(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.table.group(|group| {
            let long = |pick: fn(&SampleColumns) -> i64| rows.iter().map(pick).collect::<Vec<_>>();
            let text = |pick: fn(&SampleColumns) -> &ByteArray| {
                rows.iter().map(|row| pick(row).clone()).collect::<Vec<_>>()
            };
            let texts: [fn(&SampleColumns) -> &ByteArray; 6] = [
                |row| &row.event,
                |row| &row.unit,
                |row| &row.service,
                |row| &row.version,
                |row| &row.host,
                |row| &row.comm,
            ];
            let numbers: [fn(&SampleColumns) -> Option<i32>; 3] =
                [|row| row.pid, |row| row.tid, |row| row.cpu];
            group.put::<Int64Type>(&long(|row| row.time), None, None)?;
            group.put::<Int64Type>(&long(|row| row.duration_us), None, None)?;
            for pick in texts {
                group.put::<ByteArrayType>(&text(pick), None, None)?;
            }
            group.put_optional::<ByteArrayType>(rows.iter().map(|row| row.container.clone()))?;
            for pick in numbers {
                group.put_optional::<Int32Type>(rows.iter().map(pick))?;
            }
            group.put::<Int64Type>(&long(|row| row.stack_id), None, None)?;
            let samples: Vec<i32> = rows.iter().map(|row| row.samples).collect();
            group.put::<Int32Type>(&samples, None, None)?;
            group.put::<Int64Type>(&long(|row| row.value), None, None)?;
            // 0: no map, 2: an entry. Only the first entry of a row starts a new map.
            let (mut definition, mut repetition) = (Vec::new(), Vec::new());
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for row in &rows {
                if row.labels.is_empty() {
                    definition.push(0);
                    repetition.push(0);
                }
                for (at, (key, value)) in row.labels.iter().enumerate() {
                    definition.push(2);
                    repetition.push(i16::from(at > 0));
                    keys.push(key.clone());
                    values.push(value.clone());
                }
            }
            for texts in [keys, values] {
                group.put::<ByteArrayType>(&texts, Some(&definition), Some(&repetition))?;
            }
            Ok(())
        })
    }
}

/// Writes the table `stacks`.
pub struct StacksWriter<'a> {
    table: TableWriter<'a>,
    ids: Vec<i64>,
    symbolized: Vec<bool>,
    frames: Vec<StackFrameColumns>,
    /// 0: an empty list, 1: an element.
    definition: Vec<i16>,
    /// 0: the first element of a list, 1: another element.
    repetition: Vec<i16>,
}

impl<'a> StacksWriter<'a> {
    pub fn new(out: &'a mut dyn Write, metadata: &[(&str, &str)]) -> io::Result<Self> {
        let table = TableWriter::new(out, STACKS, metadata)?;
        let (ids, symbolized, frames, definition, repetition) = <_>::default();
        Ok(Self { table, ids, symbolized, frames, definition, repetition })
    }

    /// Adds a stack.
    pub fn push(&mut self, stack: StackColumns) -> io::Result<()> {
        self.ids.push(stack.id);
        self.symbolized.push(stack.symbolized);
        let before = self.frames.len();
        for frame in stack.frames {
            self.definition.push(1);
            self.repetition.push(i16::from(self.frames.len() > before));
            self.frames.push(frame);
        }
        if self.frames.len() == before {
            self.definition.push(0);
            self.repetition.push(0);
        }
        if self.ids.len() == ROWS || self.frames.len() >= FRAMES { self.flush() } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<()> {
        if !self.ids.is_empty() {
            self.flush()?;
        }
        self.table.finish()
    }

    fn flush(&mut self) -> io::Result<()> {
        let (ids, symbolized) = (std::mem::take(&mut self.ids), std::mem::take(&mut self.symbolized));
        let frames = std::mem::take(&mut self.frames);
        let definition = std::mem::take(&mut self.definition);
        let repetition = std::mem::take(&mut self.repetition);
        let (definition, repetition) = (Some(&definition[..]), Some(&repetition[..]));
        self.table.group(|group| {
            let texts: [fn(&StackFrameColumns) -> &ByteArray; 4] = [
                |frame| &frame.function,
                |frame| &frame.module,
                |frame| &frame.build_id,
                |frame| &frame.file,
            ];
            let numbers: [fn(&StackFrameColumns) -> i64; 2] = [|frame| frame.address, |frame| frame.line];
            group.put::<Int64Type>(&ids, None, None)?;
            for pick in texts {
                let column: Vec<ByteArray> = frames.iter().map(|frame| pick(frame).clone()).collect();
                group.put::<ByteArrayType>(&column, definition, repetition)?;
            }
            for pick in numbers {
                let column: Vec<i64> = frames.iter().map(pick).collect();
                group.put::<Int64Type>(&column, definition, repetition)?;
            }
            let inlined: Vec<bool> = frames.iter().map(|frame| frame.inlined).collect();
            group.put::<BoolType>(&inlined, definition, repetition)?;
            group.put::<BoolType>(&symbolized, None, None)
        })
    }
}

/// Number of rows to read in one step.
const STEP: usize = 5000;

/// Reads a table `stacks`, including one that another engine has rewritten. Calls `visit` with each row.
///
/// # Errors
/// Fails if the file is not such a table, or if `visit` fails.
pub fn read_stacks(
    file: impl ChunkReader + 'static,
    mut visit: impl FnMut(StackColumns) -> io::Result<()>,
) -> io::Result<()> {
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    for number in 0..reader.num_row_groups() {
        let group = &*reader.get_row_group(number).map_err(failed)?;
        let mut ids = ColumnLists::<Int64Type>::new(group, "stack_id")?;
        let [mut function, mut module] =
            [ColumnLists::new(group, "function")?, ColumnLists::new(group, "module")?];
        let [mut build_id, mut file] =
            [ColumnLists::new(group, "build_id")?, ColumnLists::new(group, "file")?];
        let [mut address, mut line] =
            [ColumnLists::<Int64Type>::new(group, "address")?, ColumnLists::new(group, "line")?];
        let mut inlined = ColumnLists::<BoolType>::new(group, "inlined")?;
        let mut symbolized = ColumnLists::<BoolType>::new(group, "symbolized")?;
        loop {
            let rows = ids.step()?;
            let texts: [&mut ColumnLists<ByteArrayType>; 4] =
                [&mut function, &mut module, &mut build_id, &mut file];
            let mut is_short = false;
            for column in texts {
                is_short |= column.step()? != rows;
            }
            is_short |= address.step()? != rows || line.step()? != rows;
            is_short |= inlined.step()? != rows || symbolized.step()? != rows;
            if is_short {
                return Err(invalid("its columns have different numbers of rows"));
            }
            if rows == 0 {
                break;
            }
            for row in 0..rows {
                let (&[id], &[symbolized]) = (ids.row(row), symbolized.row(row)) else {
                    return Err(invalid("it has a row without stack_id or symbolized"));
                };
                let (function, module, build_id) = (function.row(row), module.row(row), build_id.row(row));
                let (file, address, line, inlined) =
                    (file.row(row), address.row(row), line.row(row), inlined.row(row));
                let lengths =
                    [module.len(), build_id.len(), file.len(), address.len(), line.len(), inlined.len()];
                if lengths.iter().any(|length| *length != function.len()) {
                    return Err(invalid(&format!("the lists of stack_id {id} have different lengths")));
                }
                let frame = |at: usize| StackFrameColumns {
                    function: function[at].clone(),
                    module: module[at].clone(),
                    build_id: build_id[at].clone(),
                    file: file[at].clone(),
                    address: address[at],
                    line: line[at],
                    inlined: inlined[at],
                };
                visit(StackColumns { id, frames: (0..function.len()).map(frame).collect(), symbolized })?;
            }
        }
    }
    Ok(())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

/// A column of a row group, read in steps. The values of a row are a list, which has one element if the
/// column contains no lists.
struct ColumnLists<T: DataType> {
    reader: ColumnReaderImpl<T>,
    definition: i16,
    has_lists: bool,
    values: Vec<T::T>,
    /// End of each row in `values`.
    ends: Vec<usize>,
}

impl<T: DataType> ColumnLists<T> {
    fn new(group: &dyn RowGroupReader, name: &str) -> io::Result<Self> {
        let schema = group.metadata().schema_descr();
        let at = schema.columns().iter().position(|column| {
            column.path().parts().first().is_some_and(|first| first == name)
                && column.physical_type() == T::get_physical_type()
                && column.max_rep_level() <= 1
        });
        let at = at.ok_or_else(|| invalid(&format!("it has no column `{name}` of the right type")))?;
        let column = schema.column(at);
        let reader = get_typed_column_reader::<T>(group.get_column_reader(at).map_err(failed)?);
        Ok(Self {
            reader,
            definition: column.max_def_level(),
            has_lists: column.max_rep_level() > 0,
            values: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Reads the next rows. Returns their number, which is 0 at the end.
    fn step(&mut self) -> io::Result<usize> {
        let (mut definition, mut repetition) = (Vec::new(), Vec::new());
        self.values.clear();
        self.ends.clear();
        let read =
            self.reader.read_records(STEP, Some(&mut definition), Some(&mut repetition), &mut self.values);
        let (rows, _, levels) = read.map_err(failed)?;
        let mut end = 0;
        for level in 0..levels.max(rows) {
            if level > 0 && (!self.has_lists || repetition.get(level) == Some(&0)) {
                self.ends.push(end);
            }
            let is_there = definition.get(level).is_none_or(|found| *found == self.definition);
            end += usize::from(is_there);
        }
        if rows > 0 {
            self.ends.push(end);
        }
        if self.ends.len() != rows || end != self.values.len() {
            return Err(invalid("its lists are damaged"));
        }
        Ok(rows)
    }

    fn row(&self, row: usize) -> &[T::T] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[row]]
    }
}

/// Strings as Parquet values. Equal strings share their memory.
#[derive(Default)]
pub struct TextPool(FxHashMap<String, ByteArray>);

impl TextPool {
    pub fn get(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = ByteArray::from(text);
        self.0.insert(text.to_owned(), new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks() -> Vec<StackColumns> {
        let mut texts = TextPool::default();
        let mut frame = |at: i64| StackFrameColumns {
            function: texts.get(&format!("f{at}")),
            module: texts.get("/bin/x"),
            build_id: texts.get("0011"),
            file: texts.get(""),
            address: at * 16,
            line: at,
            inlined: at % 3 == 2,
        };
        (0..10_000)
            .map(|id| StackColumns {
                id: id * 7 - 100,
                frames: (0..id % 5).map(&mut frame).collect(),
                symbolized: id % 2 == 0,
            })
            .collect()
    }

    fn written() -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = StacksWriter::new(&mut out, &[(SCHEMA_KEY, SCHEMA)]).unwrap();
        stacks().into_iter().for_each(|stack| writer.push(stack).unwrap());
        writer.finish().unwrap();
        out
    }

    #[test]
    fn stacks_are_read_as_they_were_written() {
        let mut read = Vec::new();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&written()).unwrap();
        read_stacks(file, |stack| {
            read.push(stack);
            Ok(())
        })
        .unwrap();
        assert_eq!(read, stacks());
    }
}
