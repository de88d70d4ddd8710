//! Looks up source lines and inlined functions in DWARF.
//!
//! Takes the files of a module and sorted addresses in them; returns the functions at each address. Parses
//! only the units that contain an address. If there are many addresses, they are divided among threads in
//! contiguous runs, so that few units are parsed more than once. Each thread has its own view of the shared
//! sections.
//!
//! Follows split DWARF to `.dwp` packages and `.dwo` files ([`split`]), and dwz references to their
//! supplementary file. Since files may be hostile, the uncompressed size of sections is limited, and units
//! are checked before addr2line reads them ([`units`]).

use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::Dwarf;
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::abbreviations;
use super::sections::{DwarfSlice, LINE_SECTIONS, endian, load, unsplit_name};
use super::split::{self, SplitUnits};
use super::units;
use crate::symbol::files::elf;
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::ModuleFiles;
use crate::symbol::tables::table::most_names;

/// One of the functions at an address. Functions are listed innermost first; the last one contains the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFrame {
    /// The linkage name if the compiler recorded one, else the source name.
    pub(crate) name: Option<Arc<str>>,
    /// The source file, as passed to the compiler.
    pub(crate) file: Option<Arc<str>>,
    /// 0 if unknown.
    pub(crate) line: u32,
    /// 0 if unknown.
    pub(crate) column: u32,
}

/// Maximum number of functions at one address. Any further functions are omitted.
const MOST_FRAMES: usize = 1000;
/// Minimum number of addresses per thread; for fewer, an additional thread is not worthwhile.
const FEW: usize = 64;

/// Returns the functions at each address, in the order of the addresses.
///
/// # Errors
/// Fails if there is no line information, or if none of it can be read.
pub(crate) fn resolve(
    found: &ModuleFiles,
    addresses: &[u64],
    done: &(dyn Fn(usize) + Sync),
) -> Result<Vec<Vec<LineFrame>>, String> {
    let has_lines = |image: &&Image| image.elf().is_ok_and(|file| elf::has_lines(&file));
    let Some(image) = [found.debug.as_ref(), found.binary.as_ref()].into_iter().flatten().find(has_lines)
    else {
        return Err("no line information".into());
    };
    let file = image.elf().map_err(|error| error.to_string())?;
    let endian = endian(&file);
    let sections = load(&file, &LINE_SECTIONS, unsplit_name)?;
    let supplement = match &found.supplement {
        Some(image) => {
            Some(load(&image.elf().map_err(|error| error.to_string())?, &LINE_SECTIONS, unsplit_name)?)
        }
        None => None,
    };
    let mut dwarf = sections.borrow_with_sup(supplement.as_ref(), |section| DwarfSlice::new(section, endian));
    abbreviations::read(&mut dwarf);
    let references = units::check(&dwarf, addresses)?;
    let package = found.package.as_ref().and_then(split::load_package);
    let package = package.as_ref().and_then(split::open_package);
    let files = split::open_files(&references, package.as_ref());
    let files = split::load_files(&files);
    let split = split::read(&dwarf, &references, package.as_ref(), &files)?;
    let dwarf = Arc::new(dwarf);
    let threads = if addresses.len() < 2 * FEW { 1 } else { rayon::current_num_threads() };
    let run = addresses.len().div_ceil(threads).max(1);
    let parts: Result<Vec<Vec<Vec<LineFrame>>>, String> = addresses
        .par_chunks(run)
        .map(|run| {
            let mut reader =
                LineReader::new(dwarf.clone(), &split, found).map_err(|error| error.to_string())?;
            Ok(run
                .iter()
                .map(|address| {
                    let frames = reader.frames(*address);
                    done(1);
                    frames
                })
                .collect())
        })
        .collect();
    Ok(parts?.into_iter().flatten().collect())
}

/// One thread's view of the debug information.
struct LineReader<'a> {
    context: Context<DwarfSlice<'a>>,
    split: &'a SplitUnits<'a>,
    strings: FxHashSet<Arc<str>>,
    /// Number of bytes that may still be added to `strings`.
    room: usize,
}

impl<'a> LineReader<'a> {
    fn new(
        dwarf: Arc<Dwarf<DwarfSlice<'a>>>,
        split: &'a SplitUnits<'a>,
        found: &ModuleFiles,
    ) -> Result<Self, gimli::Error> {
        let context = Context::from_arc_dwarf(dwarf)?;
        let images = found.images().chain(&found.supplement).chain(&found.package);
        let room = most_names(images.map(|image| image.len()).sum());
        Ok(Self { context, split, strings: FxHashSet::default(), room })
    }

    /// Returns the functions at an address, up to the first malformed one.
    fn frames(&mut self, address: u64) -> Vec<LineFrame> {
        let mut list = Vec::new();
        // addr2line looks up the bytes from this address to the next one. The last address has no next one.
        if address == u64::MAX {
            return list;
        }
        let mut lookup = self.context.find_frames(address);
        let found = loop {
            match lookup {
                LookupResult::Output(output) => break output,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split.get(&load.dwo_id).cloned());
                }
            }
        };
        let Ok(mut found) = found else { return list };
        while let Ok(Some(frame)) = found.next() {
            if list.len() == MOST_FRAMES {
                break;
            }
            let Self { strings, room, .. } = self;
            let mut keep = |text: &str| match strings.get(text) {
                Some(kept) => Some(kept.clone()),
                None => {
                    *room = room.checked_sub(text.len())?;
                    let kept: Arc<str> = text.into();
                    strings.insert(kept.clone());
                    Some(kept)
                }
            };
            let name = frame.function.as_ref().and_then(|f| keep(&f.raw_name().ok()?));
            let location = frame.location.as_ref();
            list.push(LineFrame {
                name,
                file: location.and_then(|l| l.file).and_then(&mut keep),
                line: location.and_then(|l| l.line).unwrap_or(0),
                column: location.and_then(|l| l.column).unwrap_or(0),
            });
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use object::{Object, ObjectSymbol};

    use super::*;
    use crate::kit::need;
    use crate::symbol::dwarf::hostile::{self, Sharing};

    fn resolve_at_code(elf: Vec<u8>) -> Result<Vec<Vec<LineFrame>>, String> {
        let binary = Image::held("hostile", elf);
        let files = ModuleFiles { binary: Some(binary), ..ModuleFiles::default() };
        resolve(&files, &[hostile::CODE], &|_| {})
    }

    #[test]
    fn files_whose_entries_share_much_are_rejected() {
        for (sharing, why) in [
            (Sharing::Functions, "the same lists"),
            (Sharing::Units, "the same lists"),
            (Sharing::Lines, "the same line program"),
            (Sharing::Headers, "the same line program"),
            (Sharing::Folders, "share long texts"),
        ] {
            let found = resolve_at_code(hostile::elf(sharing, 3, 4)).unwrap();
            assert!(!found[0].is_empty(), "{sharing:?}");
            let error = resolve_at_code(hostile::elf(sharing, 1000, 6000)).unwrap_err();
            assert!(error.contains(why), "{sharing:?}: {error}");
        }
    }

    #[test]
    fn usual_files_whose_units_share_line_programs_are_read() {
        for (sharing, entries) in [
            // dwz shares them among partial units.
            (Sharing::Partial, 6000),
            // The assembler writes one for all units that are optimized together.
            (Sharing::Lines, 60),
            (Sharing::Headers, 15),
            (Sharing::Base, 6000),
        ] {
            let found = resolve_at_code(hostile::elf(sharing, entries, 6000));
            let lines = found.map(|found| found[0].iter().map(|frame| frame.line).collect());
            assert_eq!(lines, Ok(vec![1]), "{sharing:?}");
        }
    }

    #[test]
    fn names_in_partial_units_are_found() {
        let found = resolve_at_code(hostile::elf(Sharing::Partial, 3, 4)).unwrap();
        assert_eq!(found[0][0].name.as_deref(), Some("g"));
        assert_eq!(found[0][0].file.as_deref(), Some("/d/f"));
    }

    /// clang's `-gsplit-dwarf=single` writes the split unit into the object file of its skeleton.
    #[test]
    fn split_units_in_object_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("u.c"), "int main(void) { return 0; }").unwrap();
        let run = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let done = std::process::Command::new(words[0]).args(&words[1..]).current_dir(&folder).output();
            done.is_ok_and(|done| done.status.success())
        };
        let is_made = run("gcc -g -gsplit-dwarf -c u.c") && run("gcc u.o -o u") && {
            let parts =
                ["info", "abbrev", "str", "str_offsets"].map(|part| format!(".debug_{part}.dwo={part}"));
            let all = |option: &str| parts.iter().map(|part| format!("{option} {part} ")).collect::<String>();
            run(&format!("objcopy {}u.dwo unused", all("--dump-section")))
                && run(&format!("objcopy {}u.o u.dwo", all("--add-section")))
        };
        if !need("gcc", is_made, "gcc and objcopy are required") {
            return;
        }
        let binary = Image::open(&folder.path().join("u")).unwrap();
        let main =
            binary.elf().unwrap().symbols().find(|symbol| symbol.name() == Ok("main")).unwrap().address();
        let files = ModuleFiles { binary: Some(binary), ..ModuleFiles::default() };
        let found = resolve(&files, &[main], &|_| {}).unwrap();
        assert_eq!(found[0][0].name.as_deref(), Some("main"));
    }

    #[test]
    fn files_whose_skeletons_share_a_split_unit_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let resolved = |skeletons, functions| {
            let [elf, dwo] = hostile::split(folder.path().to_str().unwrap(), skeletons, functions);
            std::fs::write(folder.path().join("u.dwo"), dwo).unwrap();
            resolve_at_code(elf)
        };
        assert_eq!(resolved(3, 4).unwrap()[0][0].name.as_deref(), Some("f"));
        let error = resolved(1000, 6000).unwrap_err();
        assert!(error.contains("the same split units"), "{error}");
    }

    #[test]
    fn last_address_has_no_functions() {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/elf_symbols/o2-dwarf5");
        let binary = Image::open(Path::new(program)).unwrap();
        let files = ModuleFiles { binary: Some(binary), ..ModuleFiles::default() };
        let found = resolve(&files, &[0x300, u64::MAX], &|_| {}).unwrap();
        assert!(!found[0].is_empty() && found[1].is_empty(), "{found:?}");
    }
}
