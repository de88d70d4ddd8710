//! Placeholder names for code without a symbol: `git+0x4a2d0`, `[git .plt]`.
//!
//! Takes a module's own file and addresses in it. Finds functions with the unwind tables, which survive
//! stripping and contain an entry for each function. A name consists of the module and the function's start
//! address, so that all samples in a function are in one row. Code without an entry is named after its
//! section. Code without a file is left to the views.

use gimli::{EhFrame, EhFrameHdr, EndianSlice, RunTimeEndian};
use object::read::{File, Object, ObjectSection};

use crate::symbol::archive::ArchivedModule;
use crate::symbol::files::elf::is_code;
use crate::symbol::tables::plt;
use crate::unwind::short_cie;

/// Bytes of an ELF section.
type SectionSlice<'a> = EndianSlice<'a, RunTimeEndian>;

/// A name for code without a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::symbol) struct Placeholder {
    pub(in crate::symbol) name: String,
    /// Start and end (exclusive) of the function, as addresses in the file. `None` if the name refers to a
    /// section, which may contain several functions.
    pub(in crate::symbol) function: Option<(u64, u64)>,
}

/// Finds placeholders in a file without symbols, or in an archive.
pub(in crate::symbol) enum Placeholders<'a> {
    File(Box<CodeAreas<'a>>),
    Archive(&'a ArchivedModule),
}

/// The functions and sections in a file without symbols.
pub(in crate::symbol) struct CodeAreas<'a> {
    module: &'a str,
    /// Start, end and name of each section.
    sections: Vec<(u64, u64, &'a str)>,
    stubs: Vec<(u64, u64)>,
    functions: Option<UnwindFunctions<'a>>,
}

/// The unwind tables, with the index created by the linker.
struct UnwindFunctions<'a> {
    frames: EhFrame<SectionSlice<'a>>,
    index: gimli::ParsedEhFrameHdr<SectionSlice<'a>>,
    bases: gimli::BaseAddresses,
}

impl<'a> Placeholders<'a> {
    /// Creates placeholders for a parsed file. `module` is the part of the names that identifies the module.
    pub(in crate::symbol) fn new(module: &'a str, file: &File<'a>) -> Self {
        let section = |section: object::read::Section<'a, '_>| {
            let end = section.address().saturating_add(section.size());
            Some((section.address(), end, str::from_utf8(section.name_bytes().ok()?).ok()?))
        };
        let code = file.sections().filter(|section| is_code(section.flags()));
        Self::File(Box::new(CodeAreas {
            module,
            sections: code.filter_map(section).collect(),
            stubs: plt::places(file),
            functions: UnwindFunctions::from_elf(file),
        }))
    }

    pub(in crate::symbol) fn archived(module: &'a ArchivedModule) -> Self {
        Self::Archive(module)
    }

    /// Returns the placeholder for an address in the file.
    pub(in crate::symbol) fn find(&self, address: u64) -> Option<Placeholder> {
        match self {
            Self::File(areas) => areas.find(address),
            Self::Archive(module) => {
                let (name, function) = module.placeholder(address)?;
                Some(Placeholder { name: name.to_owned(), function })
            }
        }
    }
}

impl CodeAreas<'_> {
    fn find(&self, address: u64) -> Option<Placeholder> {
        let module = self.module;
        // All stubs share one entry, so it does not represent a function.
        let is_stub = self.stubs.iter().any(|(start, end)| (*start..*end).contains(&address));
        if let Some((start, end)) = self.functions.as_ref().filter(|_| !is_stub).and_then(|f| f.find(address))
        {
            return Some(Placeholder { name: format!("{module}+{start:#x}"), function: Some((start, end)) });
        }
        let mut sections = self.sections.iter();
        let (.., section) = sections.find(|(start, end, _)| (*start..*end).contains(&address))?;
        let module = module.trim_matches(['[', ']']);
        Some(Placeholder { name: format!("[{module} {section}]"), function: None })
    }
}

impl<'a> UnwindFunctions<'a> {
    fn from_elf(file: &File<'a>) -> Option<Self> {
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let address_size = if file.is_64() { 8 } else { 4 };
        let (frames, index) = (file.section_by_name(".eh_frame")?, file.section_by_name(".eh_frame_hdr")?);
        let start = |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
        let bases = gimli::BaseAddresses::default()
            .set_eh_frame(frames.address())
            .set_eh_frame_hdr(index.address())
            .set_text(start(".text"))
            .set_got(start(".got"));
        let index = EhFrameHdr::new(index.data().ok()?, endian).parse(&bases, address_size).ok()?;
        let mut frames = EhFrame::new(frames.data().ok()?, endian);
        frames.set_address_size(address_size);
        Some(Self { frames, index, bases })
    }

    fn find(&self, address: u64) -> Option<(u64, u64)> {
        let table = self.index.table()?;
        let entry = table.fde_for_address(&self.frames, &self.bases, address, short_cie);
        let entry = entry.ok().filter(|entry| entry.contains(address))?;
        Some((entry.initial_address(), entry.end_address()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::ObjectSymbol;
    use proptest::prelude::*;

    use crate::symbol::files::locate;
    use crate::symbol::{SymbolModule, SymbolOptions};

    #[test]
    fn placeholders_split_functions_like_the_symbol_table() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let file = File::parse(&*program).unwrap();
        let placeholders = Placeholders::new("prog", &file);
        let mut checked = 0;
        let functions = file.symbols().filter(|symbol| symbol.size() > 0 && symbol.is_definition());
        for symbol in functions.filter(|symbol| symbol.name().is_ok_and(|name| name.contains("placeholder")))
        {
            if symbol.kind() != object::SymbolKind::Text {
                continue;
            }
            let (start, end) = (symbol.address(), symbol.address() + symbol.size());
            let name = format!("prog+{start:#x}");
            for address in [start, start + symbol.size() / 2, end - 1] {
                let expected = Placeholder { name: name.clone(), function: Some((start, end)) };
                assert_eq!(placeholders.find(address), Some(expected), "{:?}", symbol.name());
            }
            checked += 1;
        }
        assert!(checked > 5, "{checked}");
        let init = file.section_by_name(".init").unwrap();
        let expected = Placeholder { name: "[prog .init]".to_owned(), function: None };
        assert_eq!(placeholders.find(init.address()), Some(expected));
        for (start, end) in plt::places(&file) {
            let name = placeholders.find(start).map(|found| found.name).unwrap_or_default();
            assert!(start == end || name.starts_with("[prog .plt"), "{name}");
        }
        assert_eq!(placeholders.find(u64::MAX), None);
    }

    /// Looks up an address in a small file with one byte changed.
    fn ask_changed(at: usize, byte: u8, address: u64) {
        let vdso = locate::locate(&SymbolModule::vdso(), &SymbolOptions::from_environment()).binary;
        let mut bytes = vdso.map(|image| image.to_vec()).unwrap_or_default();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        if let Ok(file) = File::parse(&*bytes) {
            let _ = Placeholders::new("x", &file).find(address);
        }
    }

    proptest! {
        #[test]
        fn hostile_tables_do_not_panic(at in 0usize..8192, byte: u8, address in 0u64..0x4000) {
            ask_changed(at, byte, address);
        }
    }

    #[test]
    fn any_function_index_does_not_panic() {
        // Change the bytes of the vDSO's index, which results in entries that point before the table, and in
        // huge counts.
        for at in 1500..1700 {
            for byte in [0, 1, 0x7f, 0xff] {
                ask_changed(at, byte, 0);
                ask_changed(at, byte, 0x800);
            }
        }
    }
}
