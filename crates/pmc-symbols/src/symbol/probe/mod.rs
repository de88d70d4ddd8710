//! Finds the locations in programs where probes can be placed, and the variables that probes can read there.
//!
//! Takes a program file and a description of a location: a function, a line, or an address. Returns addresses
//! with their file offsets ([`places`]), the kernel's notation of variables ([`variables`]), and the lines
//! that can be probed ([`source_lines`]). Without debug information, the symbol tables still provide
//! functions. `event` parses the syntax of probes, and `host` writes to tracefs.
//!
//! ```text
//!   file --dies--> scopes, rows --places--> address, scope --variables--> locations, types
//! ```

mod dies;
mod elf_functions;
pub(in crate::symbol) mod error;
mod expression;
mod locations;
pub(in crate::symbol) mod places;
mod registers;
mod rows;
mod scopes;
pub(in crate::symbol) mod source_lines;
mod types;
pub(in crate::symbol) mod variables;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use self::dies::Dies;
use self::elf_functions::ElfFunctions;
use self::error::ProbeError;
use self::locations::FrameTables;
use crate::hint::Hint;
use crate::symbol::dwarf::abbreviations;
use crate::symbol::dwarf::sections::{DwarfSlice, endian, load_with_locations};
use crate::symbol::files::elf::{self, Segments};
use crate::symbol::files::image::Image;
use crate::symbol::files::locate::{self, ModuleFiles};
use crate::symbol::missing_data::{DebugPackages, MissingDataReason};
use crate::symbol::module::SymbolModule;
use crate::symbol::options::SymbolOptions;

/// A program or library in which to place probes.
#[derive(Debug)]
pub struct ProbeFile {
    path: PathBuf,
    files: ModuleFiles,
}

/// The opened parts of a [`ProbeFile`].
pub struct ProbedProgram<'a> {
    path: String,
    elf: &'a object::File<'a>,
    debug: Option<&'a object::File<'a>>,
    segments: Segments,
    dies: Dies<'a>,
    frames: FrameTables<'a>,
    functions: OnceCell<ElfFunctions>,
    /// The reason why debug information is missing, with the package that contains it.
    missing: Option<MissingDataReason>,
}

impl ProbeFile {
    /// Opens a program, and searches for its debug file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not an ELF file.
    pub fn open(path: &Path, options: &SymbolOptions) -> Result<Self, ProbeError> {
        let failed = |why: String| ProbeError::Unreadable { path: path.display().to_string(), why };
        let image = Image::open(path).map_err(|error| failed(pmc_sys::error::kernel_message(&error)))?;
        image.elf().map_err(|error| failed(format!("the file is not in ELF format ({error})")))?;
        let mut files = ModuleFiles { binary: Some(image), ..ModuleFiles::default() };
        locate::complete(&SymbolModule::file(path), options, &mut files);
        Ok(Self { path: path.to_owned(), files })
    }

    /// Reads the headers and the debug information, and passes them to `question`.
    ///
    /// # Errors
    /// Fails if the files are invalid.
    pub fn examine<T>(&self, question: impl FnOnce(&ProbedProgram<'_>) -> T) -> Result<T, ProbeError> {
        let failed = |why: String| ProbeError::Unreadable { path: self.path.display().to_string(), why };
        let elf = parsed(self.files.binary.as_ref())
            .ok_or_else(|| failed("the file is not in ELF format".into()))?;
        let debug = parsed(self.files.debug.as_ref());
        let described = debug.as_ref().filter(|file| elf::has_lines(file));
        let described = described.or_else(|| Some(&elf).filter(|file| elf::has_lines(file)));
        let sections = match described {
            Some(file) => load_with_locations(file).map_err(failed)?,
            None => gimli::DwarfSections::default(),
        };
        let supplement = match parsed(self.files.supplement.as_ref()) {
            Some(file) => Some(load_with_locations(&file).map_err(failed)?),
            None => None,
        };
        let endian = endian(&elf);
        let mut dwarf =
            sections.borrow_with_sup(supplement.as_ref(), |section| DwarfSlice::new(section, endian));
        abbreviations::read(&mut dwarf);
        let missing = described.is_none().then(|| {
            let build_id = elf::build_id(&elf);
            MissingDataReason::Lines { path: self.path.clone(), build_id }
        });
        Ok(question(&ProbedProgram {
            path: self.path.display().to_string(),
            segments: Segments::from_elf(&elf),
            frames: FrameTables::new(&elf, debug.as_ref()),
            debug: debug.as_ref(),
            elf: &elf,
            dies: Dies::new(&dwarf),
            functions: OnceCell::new(),
            missing,
        }))
    }
}

fn parsed(image: Option<&Image>) -> Option<object::File<'_>> {
    image?.elf().ok()
}

impl ProbedProgram<'_> {
    /// Whether the program has debug information.
    pub fn has_debug_information(&self) -> bool {
        !self.dies.is_empty()
    }

    /// Answers a request within its [`RequestLimits`](dies::RequestLimits).
    fn within_limit<T>(&self, answer: impl FnOnce() -> Result<T, ProbeError>) -> Result<T, ProbeError> {
        self.dies.work.restart();
        let answer = answer();
        if self.dies.work.are_exceeded() {
            return Err(ProbeError::TooMuchWork { path: self.path.clone() });
        }
        answer
    }

    fn elf_functions(&self) -> &ElfFunctions {
        self.functions.get_or_init(|| ElfFunctions::read(self.elf, self.debug))
    }

    /// Returns the demangled names of all functions in the symbol tables, sorted.
    pub fn functions(&self) -> Vec<String> {
        self.elf_functions().names()
    }

    /// Returns a remedy for missing debug information.
    fn remedy(&self) -> Option<Hint> {
        self.missing.as_ref()?.remedy(&DebugPackages::default())
    }

    fn no_debug_information(&self, purpose: &str) -> ProbeError {
        let remedy = self.remedy();
        ProbeError::NoDebugInformation { path: self.path.clone(), purpose: purpose.to_owned(), remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::dies::BYTES_PER_RANGE;
    use super::places::PlaceRequest;
    use super::*;
    use crate::symbol::dwarf::hostile::{self, Sharing};
    use crate::symbol::dwarf::sections::FREE_WORK;
    use object::{Object, ObjectSection};

    /// Returns the number of variables at an address of a file whose entries share a list.
    fn count_variables(sharing: Sharing, entries: u32, items: u32) -> Result<usize, ProbeError> {
        let image = Image::held("hostile", hostile::elf(sharing, entries, items));
        let files = ModuleFiles { binary: Some(image), ..ModuleFiles::default() };
        ProbeFile { path: "hostile".into(), files }.examine(|program| {
            let request = PlaceRequest { address: Some(hostile::CODE + 0x20), ..PlaceRequest::default() };
            let answer = program.places(&request).and_then(|places| program.local_names(&places[0], true));
            // A later request is not affected.
            assert_eq!(program.within_limit(|| Ok(())), Ok(()));
            // All stored ranges are released.
            let ranges = &program.dies.work.ranges;
            let sections = ["info", "rnglists"].map(|name| {
                let section = program.elf.section_by_name(&format!(".debug_{name}"));
                section.expect("a section").size() as usize
            });
            let most = sections.iter().sum::<usize>() / BYTES_PER_RANGE + FREE_WORK;
            assert!(ranges.take(most) && !ranges.take(1), "{sharing:?}: {ranges:?}");
            answer.map(|names| names.len())
        })?
    }

    #[test]
    fn work_is_in_proportion_to_the_file_if_entries_share_a_list() {
        for sharing in [Sharing::Blocks, Sharing::Bases, Sharing::Variables] {
            assert_eq!(count_variables(sharing, 3, 4), Ok(0), "{sharing:?}");
        }
        for sharing in [Sharing::Functions, Sharing::Units] {
            let found = count_variables(sharing, 3, 4);
            assert!(matches!(found, Err(ProbeError::NoDebugInformation { .. })), "{sharing:?}: {found:?}");
        }
        for sharing in
            [Sharing::Functions, Sharing::Blocks, Sharing::Bases, Sharing::Variables, Sharing::Units]
        {
            let found = count_variables(sharing, 1000, 6000);
            assert!(matches!(found, Err(ProbeError::TooMuchWork { .. })), "{sharing:?}: {found:?}");
        }
    }

    #[test]
    fn partial_units_that_share_a_line_program_are_read() {
        let image = Image::held("dwz", hostile::elf(Sharing::Partial, 6000, 6000));
        let files = ModuleFiles { binary: Some(image), ..ModuleFiles::default() };
        let file = ProbeFile { path: "dwz".into(), files };
        let found = file.examine(|program| (program.file_lines("f"), program.function_lines("g", None)));
        let (of_file, of_function) = found.unwrap();
        // The line of the declaration.
        assert_eq!(of_file.unwrap().lines, [7].into());
        let of_function = of_function.unwrap();
        assert_eq!((&*of_function.file, of_function.first), ("/d/f", Some(7)));
    }

    #[test]
    fn work_is_in_proportion_to_the_file_if_units_share_a_line_program() {
        let lines = |sharing, entries, items| {
            let image = Image::held("hostile", hostile::elf(sharing, entries, items));
            let files = ModuleFiles { binary: Some(image), ..ModuleFiles::default() };
            let file = ProbeFile { path: "hostile".into(), files };
            file.examine(|program| (program.file_lines("f"), program.function_lines("f", None))).unwrap()
        };
        let is_too_much = |result| matches!(result, Err(ProbeError::TooMuchWork { .. }));
        for sharing in [Sharing::Lines, Sharing::Headers, Sharing::Folders] {
            let (of_file, of_function) = lines(sharing, 3, 4);
            assert!(of_file.is_ok(), "{sharing:?}: {of_file:?}");
            assert!(
                matches!(of_function, Err(ProbeError::NoFunction { .. })),
                "{sharing:?}: {of_function:?}"
            );
            let (of_file, of_function) = lines(sharing, 1000, 6000);
            assert!(is_too_much(of_file), "{sharing:?}");
            // Opens the units, but does not read rows or paths.
            assert_eq!(is_too_much(of_function), sharing == Sharing::Headers, "{sharing:?}");
        }
    }
}
