//! Writes archives for profiles of other programs, whose frames have names but no code.
//!
//! Takes the frames of each module, at addresses that the importer has assigned; returns a section as
//! [`archive`](super) describes it. The importer writes the samples, whose call chains contain these
//! addresses.

use std::sync::Arc;

use super::answers::{AnswerRun, FrameWriter, SymbolWriter, TextColumnWriter, answers_of};
use super::format::{ModuleData, OriginalFacts};
use super::{ArchiveError, SectionWriter, key_of};
use crate::symbol::dwarf::lines::LineFrame;
use crate::symbol::module::{SymbolModule, SymbolModuleKind};

/// Compression level. The archive is read only once, so speed matters more than size.
const LEVEL: i32 = 1;

/// A function at an imported address: the function itself, or one that was inlined into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFrame {
    /// The function's name.
    pub name: Arc<str>,
    /// The source file, if known.
    pub file: Option<Arc<str>>,
    /// Line number; 0 if unknown.
    pub line: u32,
}

/// The code at an imported address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportedCode {
    /// Code of a function, which occupies `size` bytes from `start`.
    Function {
        /// The function's first address.
        start: u64,
        /// Size of its code in bytes.
        size: u64,
        /// The inlined functions, innermost first, and last the function itself.
        frames: Vec<ImportedFrame>,
    },
    /// Code without a name, and text that describes its position.
    Nameless(String),
}

/// The modules of an imported profile.
#[derive(Debug, Default)]
pub struct ImportedSymbols {
    modules: Vec<ModuleData>,
}

impl ImportedSymbols {
    /// Adds a module and its code by address. For files, addresses are also file offsets.
    pub fn add(&mut self, module: &SymbolModule, code: impl Iterator<Item = (u64, ImportedCode)>) {
        let (mut texts, mut symbols, mut frames) =
            (TextColumnWriter::default(), SymbolWriter::default(), FrameWriter::default());
        let (mut functions, mut placeholders, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for (address, code) in code {
            match code {
                ImportedCode::Nameless(text) => {
                    let name = texts.add(&text);
                    placeholders.push(AnswerRun::at(address, Some(symbols.add(0, 0, name))));
                }
                ImportedCode::Function { start, size, frames: list } => {
                    let Some(own) = list.last() else { continue };
                    let name = texts.add(&own.name);
                    functions.push(AnswerRun::at(address, Some(symbols.add(start, size, name))));
                    if list.len() == 1 && own.file.is_none() && own.line == 0 {
                        continue;
                    }
                    let frame = |frame: ImportedFrame| LineFrame {
                        name: Some(frame.name),
                        file: frame.file,
                        line: frame.line,
                        column: 0,
                    };
                    let list: Vec<LineFrame> = list.into_iter().map(frame).collect();
                    lines.push(AnswerRun::at(address, frames.add(&list, &mut texts)));
                }
            }
        }
        let is_file = module.kind == SymbolModuleKind::File;
        self.modules.push(ModuleData {
            key: Some(key_of(module)),
            symbols_found: functions.len() as u64,
            has_lines: !lines.is_empty(),
            // One segment in which each file offset is also an address.
            segments: if is_file { vec![0, i64::MAX as u64, 0, i64::MAX as u64, 1, 1] } else { Vec::new() },
            slide: (!is_file).then_some(0),
            functions: Some(answers_of(functions)),
            placeholders: Some(answers_of(placeholders)),
            lines: Some(answers_of(lines)),
            symbols: Some(symbols.columns),
            frames: Some(frames.columns),
            texts: texts.texts,
            text_lengths: texts.lengths,
            ..ModuleData::default()
        });
    }

    /// Encodes the section of the recording.
    ///
    /// # Errors
    /// Fails if compression fails.
    pub fn encode(&self, facts: &OriginalFacts) -> Result<Vec<u8>, ArchiveError> {
        let mut section = SectionWriter::new(facts, LEVEL)?;
        self.modules.iter().try_for_each(|module| section.add(module))?;
        section.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::archive::SymbolArchive;

    #[test]
    fn imported_code_is_found_by_address() {
        let frame = |name: &str, line| ImportedFrame { name: name.into(), file: Some("a.py".into()), line };
        let module = SymbolModule::file("app");
        let mut symbols = ImportedSymbols::default();
        let function = |frames| ImportedCode::Function { start: 0x100, size: 0x20, frames };
        let code = [
            (0x107, function(vec![frame("work", 3)])),
            (0x117, function(vec![frame("inner", 9), frame("work", 4)])),
            (0x127, ImportedCode::Nameless("app+0x5".into())),
        ];
        symbols.add(&module, code.into_iter());
        let archive = SymbolArchive::read(&symbols.encode(&OriginalFacts::default()).unwrap()).unwrap();
        let module = archive.module(&module);
        assert_eq!(module.function(0x107), module.function(0x117));
        assert_eq!(module.function(0x107).map(|symbol| symbol.name), Some("work"));
        assert_eq!((module.function(0x127), module.placeholder(0x127)), (None, Some(("app+0x5", None))));
        let lines = module.lines([0x117].into_iter());
        let names: Vec<_> = lines[&0x117].iter().map(|frame| (frame.name.as_deref(), frame.line)).collect();
        assert_eq!(names, [(Some("inner"), 9), (Some("work"), 4)]);
    }
}
