//! The data of a module in an archive, for lookups.
//!
//! Takes a decoded message; answers the lookups that otherwise read a module's files. All numbers in the
//! message are untrusted.

use crate::hint::Hint;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::answers::{AnswerTable, SharedTexts, TextTable};
use super::format::{FrameColumns, ModuleData, SymbolColumns};
use crate::symbol::dwarf::lines::LineFrame;
use crate::symbol::files::elf::Segments;
use crate::symbol::files::source_text::{SourceExcerpt, SourceLines};
use crate::symbol::missing_data::{FoundData, MissingDataReason, ModuleDataQuality};
use crate::symbol::tables::table::Symbol;

/// Machine code of a module.
pub(in crate::symbol) struct ArchivedCode {
    /// Address of the first byte in the module's own address space.
    pub(in crate::symbol) start: u64,
    /// ELF `e_machine`.
    pub(in crate::symbol) machine: u16,
    pub(in crate::symbol) bytes: Vec<u8>,
    /// The file from which the bytes were read.
    pub(in crate::symbol) from: PathBuf,
    pub(in crate::symbol) is_unlinked: bool,
    /// Address, file and line of generated code.
    pub(in crate::symbol) lines: Vec<(u64, String, u32)>,
}

/// A module in an archive.
#[derive(Debug, Default)]
pub(in crate::symbol) struct ArchivedModule {
    quality: Arc<ModuleDataQuality>,
    texts: TextTable,
    symbols: SymbolColumns,
    frames: FrameColumns,
    functions: AnswerTable,
    placeholders: AnswerTable,
    variables: AnswerTable,
    slots: AnswerTable,
    lines: AnswerTable,
    /// For each piece of code: the row in the message, and the offset of its bytes.
    code: Vec<([u64; 5], usize)>,
    /// The rest of the message.
    data: ModuleData,
}

impl ArchivedModule {
    pub(super) fn new(mut data: ModuleData) -> Self {
        let texts = TextTable::read(std::mem::take(&mut data.texts), &data.text_lengths);
        let text = |number: u64| usize::try_from(number).map_or("", |number| texts.get(number));
        let missing = rows(&data.missing).map(|[why, remedy, is_failure]| MissingDataReason::Archived {
            why: text(why).into(),
            remedy: remedy.checked_sub(1).map(|remedy| text(remedy).into()),
            is_failure: is_failure != 0,
        });
        let path = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(|path| OsStr::from_bytes(path).into());
        let found = FoundData {
            binary: path(&data.binary),
            debug: path(&data.debug),
            symbols: data.symbols_found as usize,
            lines: data.has_lines,
        };
        let quality = ModuleDataQuality::new(found, missing.collect()).into();
        let mut end = 0usize;
        let code = rows(&data.code).map(|row| {
            let start = end;
            end = end.saturating_add(usize::try_from(row[1]).unwrap_or(usize::MAX));
            (row, start)
        });
        let code = code.collect();
        Self {
            quality,
            texts,
            symbols: data.symbols.take().unwrap_or_default(),
            frames: data.frames.take().unwrap_or_default(),
            functions: AnswerTable::read(data.functions.take()),
            placeholders: AnswerTable::read(data.placeholders.take()),
            variables: AnswerTable::read(data.variables.take()),
            slots: AnswerTable::read(data.slots.take()),
            lines: AnswerTable::read(data.lines.take()),
            code,
            data,
        }
    }

    /// Creates a module without data.
    pub(super) fn lacking(why: String) -> Self {
        let reason = MissingDataReason::Archived { why: why.into(), remedy: None, is_failure: false };
        Self { quality: ModuleDataQuality::lacking(reason).into(), ..Self::default() }
    }

    pub(in crate::symbol) fn quality(&self) -> Arc<ModuleDataQuality> {
        self.quality.clone()
    }

    /// Memory address minus address in the file, in bytes; `None` if queries are file offsets.
    pub(in crate::symbol) fn slide(&self) -> Option<u64> {
        self.data.slide
    }

    pub(in crate::symbol) fn segments(&self) -> Segments {
        Segments::of_rows(rows(&self.data.segments))
    }

    pub(in crate::symbol) fn has_short_addresses(&self) -> bool {
        self.data.has_short_addresses
    }

    /// Whether this is the path of the module's own file, from which code was read.
    pub(in crate::symbol) fn is_image(&self, path: &Path) -> bool {
        self.data.image.as_deref() == Some(path.as_os_str().as_bytes())
    }

    fn symbol(&self, table: &AnswerTable, address: u64) -> Option<Symbol<'_>> {
        let symbol = self.symbols.get(table.get(address)?, &self.texts)?;
        (symbol.start..symbol.end).contains(&address).then_some(symbol)
    }

    /// Returns the function at an address in the module's own address space.
    pub(in crate::symbol) fn function(&self, address: u64) -> Option<Symbol<'_>> {
        self.symbol(&self.functions, address)
    }

    /// Iterates over the functions, by start address.
    pub(in crate::symbol) fn functions(&self) -> impl Iterator<Item = Symbol<'_>> {
        let numbers = self.functions.areas().filter_map(|(_, number)| number).collect::<BTreeSet<usize>>();
        let mut all: Vec<Symbol<'_>> =
            numbers.into_iter().filter_map(|number| self.symbols.get(number, &self.texts)).collect();
        all.sort_unstable_by_key(|symbol| (symbol.start, symbol.end));
        all.into_iter()
    }

    /// Iterates over the variables in the file, each of which applies up to the next address.
    pub(in crate::symbol) fn variables(&self) -> impl Iterator<Item = (u64, Option<Symbol<'_>>)> {
        let symbol = |number: usize| self.symbols.get(number, &self.texts);
        self.variables.areas().map(move |(address, number)| (address, number.and_then(symbol)))
    }

    /// Returns the variable at an address in the file.
    pub(in crate::symbol) fn variable(&self, address: u64) -> Option<Symbol<'_>> {
        self.symbol(&self.variables, address)
    }

    /// Returns the function whose address is in a slot. The difference between the slot's address and the
    /// symbol's start is the offset into the function.
    pub(in crate::symbol) fn slot(&self, address: u64) -> Option<Symbol<'_>> {
        self.symbol(&self.slots, address)
    }

    /// Returns the placeholder at an address in the file: its name, and the bounds of its function.
    pub(in crate::symbol) fn placeholder(&self, address: u64) -> Option<(&str, Option<(u64, u64)>)> {
        let symbol = self.symbols.get(self.placeholders.get(address)?, &self.texts)?;
        let function = (symbol.start < symbol.end).then_some((symbol.start, symbol.end));
        Some((symbol.name, function))
    }

    /// Returns the frames at addresses in the file.
    pub(in crate::symbol) fn lines(
        &self,
        addresses: impl Iterator<Item = u64>,
    ) -> FxHashMap<u64, Vec<LineFrame>> {
        let shared = &mut SharedTexts::default();
        let frames = addresses.map(|address| {
            let frames = self.lines.get(address).map(|at| self.frames.get(at, &self.texts, shared));
            (address, frames.unwrap_or_default())
        });
        frames.collect()
    }

    fn text(&self, number: u64) -> &str {
        usize::try_from(number).map_or("", |number| self.texts.get(number))
    }

    /// Returns the code from an address in the module's own address space on; generated code from the start
    /// of the function. `Err` contains the reason and the remedy if there is no code.
    pub(in crate::symbol) fn code(
        &self,
        start: u64,
        size: u64,
    ) -> Result<ArchivedCode, (String, Option<Hint>)> {
        let at = self.code.partition_point(|([from, ..], _)| *from <= start).checked_sub(1);
        let found = at.and_then(|at| Some((at, self.piece(at, start, size)?)));
        let Some((at, mut code)) = found else {
            let reason = rows(&self.data.no_code).find(|[from, _, _]| *from == start);
            let remedy = |remedy: u64| remedy.checked_sub(1).map(|number| Hint::from(self.text(number)));
            return Err(reason.map_or_else(
                || ("the archive does not contain this code".to_owned(), Some(Hint::ArchiveMore)),
                |[_, why, with]| (self.text(why).to_owned(), remedy(with)),
            ));
        };
        let lines = rows(&self.data.code_lines).filter(|[piece, _, _, _]| *piece == at as u64);
        code.lines = lines
            .map(|[_, address, file, line]| (address, self.text(file).to_owned(), line as u32))
            .collect();
        Ok(code)
    }

    fn piece(&self, at: usize, start: u64, size: u64) -> Option<ArchivedCode> {
        let ([from, length, machine, file, is_unlinked], offset) = *self.code.get(at)?;
        let bytes = self.data.code_bytes.get(offset..)?;
        let bytes = bytes.get(..usize::try_from(length).ok()?)?;
        let skipped = usize::try_from(start - from).ok()?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let bytes = bytes.get(skipped..)?;
        let bytes = &bytes[..bytes.len().min(size)];
        (!bytes.is_empty()).then(|| ArchivedCode {
            start,
            machine: machine as u16,
            bytes: bytes.to_vec(),
            from: self.text(file).into(),
            is_unlinked: is_unlinked != 0,
            lines: Vec::new(),
        })
    }

    /// Returns the lines of a source file, and whether it is newer than the program.
    ///
    /// # Errors
    /// Returns the reason why the file was missing when the archive was written.
    pub(in crate::symbol) fn source(&self, path: &str) -> Result<(SourceLines, bool), MissingDataReason> {
        let mut files = (0..).zip(rows(&self.data.sources));
        let file = files.find(|(_, [name, _, _, _, _])| self.text(*name) == path);
        let Some((number, [_, missing, is_failure, is_newer, count])) = file else {
            let why = format!("{path}: the archive does not contain it").into();
            return Err(MissingDataReason::Archived { why, remedy: None, is_failure: false });
        };
        if let Some(missing) = missing.checked_sub(1) {
            let why = self.text(missing).into();
            return Err(MissingDataReason::Archived { why, remedy: None, is_failure: is_failure != 0 });
        }
        let of_file = rows(&self.data.excerpts).filter(|[file, _, _, _]| *file == number);
        // Each excerpt refers to separate texts, so together they contain at most as many lines as texts.
        let mut room = self.data.text_lengths.len() as u64;
        let excerpts = of_file.map_while(|[_, first, lines, text]| {
            room = room.checked_sub(lines)?;
            let lines = (text..text.checked_add(lines)?).map(|number| self.text(number).to_owned());
            Some(SourceExcerpt { first: first as u32, lines: lines.collect() })
        });
        Ok((SourceLines::excerpts(excerpts.collect(), count as u32), is_newer != 0))
    }
}

/// Splits a column into rows of `N` cells.
fn rows<const N: usize>(column: &[u64]) -> impl Iterator<Item = [u64; N]> {
    column.as_chunks().0.iter().copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::symbol::archive::answers::{
        AnswerRun, FrameWriter, SymbolWriter, TextColumnWriter, answers_of,
    };

    fn sample() -> ModuleData {
        let (mut texts, mut symbols, mut frames) =
            (TextColumnWriter::default(), SymbolWriter::default(), FrameWriter::default());
        let [name, why, path] = ["main", "gone", "a.c"].map(|text| texts.add(text));
        let symbol = symbols.add(0x1000, 0x20, name);
        let placeholder = symbols.add(0, 0, name);
        let frame = LineFrame { name: Some("main".into()), file: Some("a.c".into()), line: 3, column: 0 };
        let frame = frames.add(&[frame.clone(), frame], &mut texts);
        let line = texts.push("int main(void)");
        ModuleData {
            symbols: Some(symbols.columns),
            frames: Some(frames.columns),
            functions: Some(answers_of(vec![AnswerRun {
                first: 0x1000,
                last: 0x1008,
                answer: Some(symbol),
            }])),
            placeholders: Some(answers_of(vec![AnswerRun::at(0x2000, Some(placeholder))])),
            variables: Some(answers_of(vec![AnswerRun::at(0x1010, Some(symbol))])),
            slots: Some(answers_of(vec![AnswerRun::at(0x1018, Some(symbol))])),
            lines: Some(answers_of(vec![AnswerRun::at(0x1000, frame)])),
            missing: vec![why.into(), 0, 1],
            segments: vec![0, 0x2000, 0x1000, 0x2000, 1, 0x1000],
            code: vec![0x1000, 3, 62, path.into(), 0],
            code_bytes: vec![0x90; 3],
            code_lines: vec![0, 0x1000, path.into(), 3],
            no_code: vec![0x3000, why.into(), u64::from(why) + 1],
            sources: vec![path.into(), 0, 0, 1, 9],
            excerpts: vec![0, 3, 1, line.into()],
            texts: texts.texts,
            text_lengths: texts.lengths,
            ..ModuleData::default()
        }
    }

    #[test]
    fn lookups_give_the_stored_answers() {
        let module = ArchivedModule::new(sample());
        let main = Symbol { start: 0x1000, end: 0x1020, name: "main" };
        assert_eq!((module.function(0x1009), module.function(0x2000)), (Some(main), None));
        assert_eq!(module.placeholder(0x2000), Some(("main", None)));
        assert_eq!(module.lines([0x1000, 0x5000].into_iter())[&0x1000].len(), 2);
        assert_eq!(module.quality().missing[0].to_string(), "gone");
        let code = module.code(0x1001, 10).ok().unwrap();
        assert_eq!((code.bytes.len(), code.lines), (2, vec![(0x1000, "a.c".to_owned(), 3)]));
        assert_eq!(module.code(0x3000, 1).err(), Some(("gone".to_owned(), Some("gone".into()))));
        assert!(module.code(0x4000, 1).err().unwrap().0.contains("does not contain"));
        let (lines, is_newer) = module.source("a.c").unwrap();
        assert_eq!(
            (lines.get(3), lines.get(9), lines.get(10), is_newer),
            (Some("int main(void)"), Some(""), None, true)
        );
        assert!(module.source("b.c").is_err());
    }

    proptest! {
        #[test]
        fn hostile_messages_do_not_panic(changes in prop::collection::vec((0usize..400, any::<u8>()), 1..6)) {
            let mut bytes = sample().encode_to_vec();
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            let Ok(data) = ModuleData::decode(&*bytes) else { return Ok(()) };
            let module = ArchivedModule::new(data);
            for address in [0, 0x1000, 0x1008, 0x2000, 0x3000, u64::MAX] {
                let _ = (module.function(address), module.variable(address), module.slot(address));
                let _ = (module.placeholder(address), module.code(address, 20).is_ok());
                module.lines([address].into_iter());
            }
            let _ = (module.source("a.c").is_ok(), module.segments(), module.quality());
        }
    }
}
