//! Names for stacks that were exported without them, by build-id and file offset.
//!
//! Receives the rows of a table `stacks` twice: first to collect the code without names, then to fill in what
//! the symbolizer found. Gives the same frames as an export with symbols would.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use parquet::data_type::ByteArray;

use super::tables::{StackColumns, StackFrameColumns, TextPool};
use pmc_symbols::symbol::{
    BuildId, Depth, MissingDataReason, SymbolModule, SymbolOptions, SymbolProgress, SymbolQuery,
    SymbolRequest, Symbolizer,
};
use pmc_sys::error::Result;
use pmc_text::text::clean;

/// A module: build-id in hexadecimal, and path.
type StackModuleKey = (Vec<u8>, Vec<u8>);

/// Names by module and file offset.
#[derive(Default)]
pub struct LateSymbols {
    wanted: BTreeMap<StackModuleKey, BTreeSet<u64>>,
    /// The frames at each offset, from the outermost function to the innermost, and whether the function has
    /// a name.
    found: BTreeMap<StackModuleKey, BTreeMap<u64, (Vec<FoundFrame>, bool)>>,
    texts: TextPool,
}

/// A function at an address.
#[derive(Clone)]
struct FoundFrame {
    function: ByteArray,
    file: ByteArray,
    line: i64,
    inlined: bool,
}

/// Returns the groups of frames that share an address: a function, and the functions inlined into it.
fn addresses(frames: &[StackFrameColumns]) -> impl Iterator<Item = &[StackFrameColumns]> {
    frames.chunk_by(|_, next| next.inlined)
}

/// Whether the frame's code is found by its address: it belongs to a file with a known content.
fn is_in_file(frame: &StackFrameColumns) -> bool {
    !frame.build_id.is_empty() && !frame.module.data().starts_with(b"[")
}

fn key(frame: &StackFrameColumns) -> StackModuleKey {
    (frame.build_id.data().to_vec(), frame.module.data().to_vec())
}

impl LateSymbols {
    /// Collects the addresses of a stack without names.
    pub fn collect(&mut self, stack: &StackColumns) {
        if stack.symbolized {
            return;
        }
        for frame in addresses(&stack.frames).filter_map(|group| group.first()).filter(|at| is_in_file(at)) {
            self.wanted.entry(key(frame)).or_default().insert(frame.address as u64);
        }
    }

    /// Looks up all collected addresses. Returns the errors that occurred while reading symbol files.
    ///
    /// # Errors
    /// Fails if the symbolizer cannot be started.
    pub fn resolve(
        &mut self,
        options: SymbolOptions,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> Result<Vec<MissingDataReason>> {
        // The recorded processes do not belong to this machine.
        let mut symbolizer = Symbolizer::new(SymbolOptions { live: false, ..options })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let modules: Vec<_> = std::mem::take(&mut self.wanted)
            .into_iter()
            .filter_map(|(key, offsets)| {
                let build_id = Some(BuildId::parse(&text(&key.0))?);
                let id = symbolizer
                    .add(SymbolModule { build_id, ..SymbolModule::file(PathBuf::from(text(&key.1))) });
                let queries: Vec<SymbolQuery> =
                    offsets.iter().map(|offset| SymbolQuery::in_file(*offset)).collect();
                Some((key, id, offsets, queries))
            })
            .collect();
        let requests: Vec<SymbolRequest<'_>> =
            modules.iter().map(|(_, id, _, queries)| SymbolRequest { module: *id, queries }).collect();
        let answers = symbolizer.resolve(&requests, Depth::Inlines, progress);
        let names = symbolizer.names();
        let mut next = 0;
        for (key, _, offsets, _) in modules {
            let found = self.found.entry(key).or_default();
            for offset in offsets {
                let frames = answers.frames(next);
                next += 1;
                let is_named = frames.last().is_some_and(|own| !names.function(own.function).is_placeholder);
                let frames = frames.iter().rev().map(|frame| {
                    let file = frame.source.map_or("", |source| names.file(source.file));
                    FoundFrame {
                        function: self.texts.get(&clean(names.shown(frame.function))),
                        file: self.texts.get(&clean(file)),
                        line: frame.source.map_or(0, |source| source.line.into()),
                        inlined: frame.inlined,
                    }
                });
                let frames: Vec<FoundFrame> = frames.collect();
                if !frames.is_empty() {
                    found.insert(offset, (frames, is_named));
                }
            }
        }
        Ok(symbolizer.failures())
    }

    /// Fills in the names of a stack. Frames that were not found stay as they are.
    pub fn apply(&self, stack: StackColumns) -> StackColumns {
        if stack.symbolized {
            return stack;
        }
        let mut symbolized = true;
        let mut frames = Vec::with_capacity(stack.frames.len());
        for group in addresses(&stack.frames) {
            let first = &group[0];
            let found = Some(first)
                .filter(|first| is_in_file(first))
                .and_then(|first| self.found.get(&key(first))?.get(&(first.address as u64)));
            match found {
                Some((names, is_named)) => {
                    symbolized &= is_named;
                    frames.extend(names.iter().cloned().map(
                        |FoundFrame { function, file, line, inlined }| StackFrameColumns {
                            function,
                            file,
                            line,
                            inlined,
                            ..first.clone()
                        },
                    ));
                }
                None => {
                    symbolized &= first.module.data().starts_with(b"[");
                    frames.extend_from_slice(group);
                }
            }
        }
        StackColumns { frames, symbolized, ..stack }
    }
}
