//! ELF files: symbols, lines, inlined functions, unwinding, probes, and machine code.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pmc_perfdata::record::bytes::RecordWords;
use pmc_perfdata::record::sample::{SampledRegisters, UserStack};
use pmc_perfdata::record::{SampleParts, Thread};
use pmc_symbols::address::{Avma, FileOffset, Mapping};
use pmc_symbols::symbol::RunningKernel;
use pmc_symbols::symbol::disassemble::{InstructionSet, Syntax, disassemble};
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_symbols::symbol::{
    Depth, ModuleId, PlaceRequest, ProbeFile, SymbolModule, SymbolOptions, SymbolQuery, SymbolRequest,
    Symbolizer,
};
use pmc_symbols::unwind::{Arch, Space, StackUnwinder, UnwindTables};

use crate::events;
use crate::mutation::{Random, bytes, elf, joined, parts};

/// Number of functions of which a target looks at everything.
const MOST_FUNCTIONS: usize = 32;

/// Options that look at no other file than the one given.
pub(crate) fn options() -> SymbolOptions {
    SymbolOptions {
        symfs: None,
        debug_dirs: Vec::new(),
        build_id_caches: Vec::new(),
        debuginfod_cache: None,
        debuginfod: None,
        kallsyms: None,
        vmlinux: None,
        cache: None,
        alone: false,
        placeholders: true,
        files: true,
        live: false,
        kernel: RunningKernel::below("/nonexistent", ""),
        owners: Default::default(),
    }
}

/// A file in a temporary folder that exists as long as this value.
pub(crate) struct Written(tempfile::TempDir);

impl Written {
    pub(crate) fn new(data: &[u8]) -> Self {
        let written = Self(crate::folder());
        fs::write(written.path(), data).expect("a file");
        written
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("file")
    }
}

/// Function names, lines, inlined functions, variables and source files, as in a report; the second time, lines
/// come from the cache.
pub fn symbols(data: &[u8]) {
    let file = Written::new(data);
    let cache = file.0.path().join("cache");
    for _ in 0..2 {
        let options = SymbolOptions { cache: Some(cache.clone()), ..options() };
        look_up_all(&mut Symbolizer::new(options).expect("worker threads"), file.0.path(), data.len());
    }
}

/// A program whose debug information is in other files: the program, its package of split debug information
/// (`file.dwp`), the file that its debug link names (`file.debug`), and the one for its alternate link
/// (`file.alt`).
pub fn debug_files(data: &[u8]) {
    let parts = parts(data);
    let Some(program) = parts.first() else { return };
    let file = Written::new(program);
    for (name, part) in ["file.dwp", "file.debug", "file.alt"].iter().zip(&parts[1..]) {
        fs::write(file.0.path().join(name), part).expect("a file");
    }
    for alone in [false, true] {
        let options = SymbolOptions { alone, debug_dirs: vec![file.0.path().to_owned()], ..options() };
        look_up_all(&mut Symbolizer::new(options).expect("worker threads"), file.0.path(), program.len());
    }
}

/// Changes one of the files.
pub fn mutate_debug_files(input: &mut Vec<u8>, max: usize, random: &mut Random) {
    let mut parts = parts(input);
    let at = random.below(parts.len());
    match parts.get_mut(at) {
        Some(part) => elf::change(part, max, random),
        None => return bytes(input, max, random),
    }
    *input = joined(&parts);
    input.truncate(max);
}

/// Number of source files of which a target reads the text.
const MOST_SOURCES: usize = 4;

/// Reads the text of a source file, whose copy below the folder contains any bytes, here those of the program.
fn check_source(symbolizer: &Symbolizer, id: ModuleId, name: &str, folder: &Path) {
    let below = folder.join("sources");
    let copy = below.join(Path::new(name).strip_prefix("/").unwrap_or(Path::new(name)));
    let is_inside = Path::new(name).components().all(|part| {
        matches!(part, Component::RootDir | Component::CurDir)
            || matches!(part, Component::Normal(part) if part.len() < 100)
    });
    let is_written = is_inside
        && name.len() < 1000
        && copy.parent().is_some_and(|parent| fs::create_dir_all(parent).is_ok())
        && fs::copy(folder.join("file"), &copy).is_ok();
    for folders in [
        SourceFolders { symfs: Some(below.clone()), ..SourceFolders::default() },
        SourceFolders { prefix: Some(below.clone()), strip: name.len() % 3, ..SourceFolders::default() },
    ] {
        match symbolizer.source(id, name, &folders) {
            Ok(source) => {
                let lines = source.lines;
                assert!(lines.get(0).is_none() && lines.get(lines.count().saturating_add(1)).is_none());
                let mut all = (1..=lines.count()).map(|line| lines.get(line).expect("a line"));
                // Bytes that are not UTF-8 become characters of three bytes.
                assert!(all.all(|line| line.len() <= 3000 && !line.contains('\n')));
            }
            Err(missing) => {
                assert!(!is_written || folders.prefix.is_some(), "{name}: {missing}");
            }
        }
    }
}

fn look_up_all(symbolizer: &mut Symbolizer, folder: &Path, len: usize) {
    let id = symbolizer.add(SymbolModule::file(folder.join("file")));
    let mut sources = Vec::new();
    let mut queries: Vec<SymbolQuery> =
        (0..len as u64).step_by(len / 128 + 1).map(|at| FileOffset(at).into()).collect();
    let names = [SymbolRequest { module: id, queries: &queries.clone() }];
    let _ = symbolizer.resolve(&names, Depth::Names, &|_| {});
    let starts: Vec<u64> =
        symbolizer.symbols(id).take(8 * MOST_FUNCTIONS).map(|symbol| symbol.start).collect();
    queries.extend(starts.iter().filter_map(|start| symbolizer.query_at(id, *start)));
    let request = [SymbolRequest { module: id, queries: &queries }];
    for depth in [Depth::Inlines, Depth::Data] {
        let found = symbolizer.resolve(&request, depth, &|_| {});
        for (index, query) in queries.iter().enumerate() {
            let _ = (found.frames(index), found.address(index), symbolizer.around(id, *query));
            if let Some(address) = symbolizer.file_address(id, *query) {
                let variable = symbolizer.variable(id, address);
                assert!(variable.is_none_or(|(_, offset)| offset <= address));
            }
            sources.extend(found.frames(index).iter().filter_map(|frame| Some(frame.source.as_ref()?.file)));
        }
    }
    let _ = symbolizer.has_short_addresses(id);
    sources.sort_unstable();
    sources.dedup();
    for source in sources.into_iter().take(MOST_SOURCES) {
        let name = symbolizer.names().file(source).clone();
        check_source(symbolizer, id, &name, folder);
    }
    let quality = symbolizer.quality(id);
    let _ = quality.missing.iter().map(|reason| reason.to_string().len()).sum::<usize>();
}

/// Machine code of the first functions, as in `annotate`.
pub fn code(data: &[u8]) {
    let file = Written::new(data);
    let mut symbolizer = Symbolizer::new(options()).expect("worker threads");
    let id = symbolizer.add(SymbolModule::file(file.path()));
    let functions: Vec<(u64, u64)> = symbolizer
        .symbols(id)
        .take(MOST_FUNCTIONS)
        .map(|symbol| (symbol.start, symbol.end.wrapping_sub(symbol.start)))
        .collect();
    for (number, (start, size)) in functions.into_iter().enumerate() {
        let syntax = if number % 2 == 0 { Syntax::Att } else { Syntax::Intel };
        match symbolizer.code(id, start, size.min(4096), None) {
            Ok(code) => {
                let all = symbolizer.disassemble(id, &code, syntax).expect("a decoder");
                let bytes: usize = all.iter().map(|instruction| instruction.bytes.len()).sum();
                assert_eq!(bytes, code.bytes.len(), "the instructions cover the code");
            }
            Err(error) => drop(error.why),
        }
        let _ = symbolizer.instructions(&[(id, start.wrapping_add(1))]);
    }
}

/// Places and variables, as in `probe`, and events in the program.
pub fn probe(data: &[u8]) {
    let file = Written::new(data);
    let opened = match ProbeFile::open(&file.path(), &options()) {
        Ok(opened) => opened,
        Err(error) => return drop(error.to_string()),
    };
    let mut functions = vec!["*".to_owned()];
    let examined = opened.examine(|program| {
        let names = program.functions();
        functions.extend(names.iter().take(8).cloned());
        for name in names.iter().take(MOST_FUNCTIONS) {
            let lines = program.function_lines(name, None);
            let _ = lines.map_err(|error| error.to_string());
            for (line, returns) in [(None, false), (None, true), (Some(1), false)] {
                let request = PlaceRequest {
                    function: Some(name),
                    line,
                    returns,
                    reads_variables: true,
                    ..Default::default()
                };
                let places = match program.places(&request) {
                    Ok(places) => places,
                    Err(error) => {
                        drop(error.to_string());
                        continue;
                    }
                };
                for place in places.iter().take(4) {
                    let _ = program.available(place, true).map_err(|error| error.to_string());
                    let _ = program.source_place(place.address);
                    for variable in program.local_names(place, true).unwrap_or_default().iter().take(8) {
                        for access in ["", "->next", ".a", "[1]", "->name[0]"] {
                            let expression = format!("{variable}{access}");
                            let _ =
                                program.fetch(place, &expression, None).map_err(|error| error.to_string());
                        }
                    }
                }
            }
        }
        let _ = program.places(&PlaceRequest { function: Some("*"), ..Default::default() });
        let _ = program.places(&PlaceRequest { file: Some("a.c"), line: Some(3), ..Default::default() });
        let _ = program.places(&PlaceRequest { address: Some(0x1139), ..Default::default() });
        let _ = program.file_lines("a.c");
    });
    let _ = examined.map_err(|error| error.to_string());
    events::in_program(file.0.path(), &functions);
}

/// Number of registers in an input: as many as Arm has.
const REGISTERS: usize = 33;

/// Architecture, size of the stack copy and of the kernel's chain, the place of the program, registers,
/// stack, chain, and the program: unwinds the stack.
pub fn unwind(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<16>() else { return };
    let Some((registers, rest)) = rest.split_at_checked(8 * REGISTERS) else { return };
    let size = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (stack, rest) = rest.split_at(size(2).min(rest.len()));
    let (chain, program) = rest.split_at((8 * size(4)).min(rest.len()));
    let start = u64::from_le_bytes(std::array::from_fn(|byte| head[8 + byte]));
    let (arch, mask) = match head[0] % 3 {
        0 => (Arch::X86_64, 0xff_0fff),
        1 => (Arch::Aarch64, 0x1_ffff_ffff),
        _ => (Arch::X86, 0xff_0fff),
    };
    let Some(tables) = UnwindTables::read(program, None) else { return };
    let tables = tables.with_program(Arc::new(program.to_vec()));
    let mut space = Space::new(arch);
    let mapping = |start, len| Mapping { start: Avma(start), len, offset: FileOffset(0) };
    space.add(&mapping(start, 1 << 20), Some(&tables));
    space.add(&mapping(start.wrapping_add(1 << 20), 1 << 12), None);
    let parts = SampleParts {
        user_regs: Some(SampledRegisters { abi: 2, mask, values: RecordWords::new(registers) }),
        user_stack: Some(UserStack::from_bytes(stack)),
        callchain: Some(RecordWords::new(chain)),
        ..SampleParts::default()
    };
    let most = 1 + usize::from(head[1]);
    let mut unwinder = StackUnwinder::new(most, true);
    let thread = Thread { pid: 1, tid: 1 };
    let mut walked: Option<Vec<u64>> = None;
    // The second walk uses what the first one remembered, and must not differ.
    for _ in 0..2 {
        unwinder
            .walk(&[()], false, |walker, ()| walker.walk(thread, Some((&space, 1)), arch, &parts, |_| true));
        let Some(stack) = unwinder.stack(0) else { return };
        // A marker may be added.
        assert!(stack.chain.len() <= most + 1, "{} of {most} frames", stack.chain.len());
        let chain = stack.chain.to_vec();
        assert!(walked.as_ref().is_none_or(|before| *before == chain), "{walked:x?} {chain:x?}");
        walked = Some(chain);
    }
}

/// Instruction set and syntax, then machine code.
pub fn instructions(data: &[u8]) {
    let [how, code @ ..] = data else { return };
    let machine =
        [InstructionSet::X86_64, InstructionSet::Aarch64, InstructionSet::X86][usize::from(*how) % 3];
    let syntax = if how & 0x80 == 0 { Syntax::Att } else { Syntax::Intel };
    let start = if how & 0x40 == 0 { 0x1000 } else { u64::MAX - 16 };
    let all = disassemble(machine, syntax, code, start).expect("a decoder");
    let bytes: Vec<u8> = all.iter().flat_map(|instruction| instruction.bytes.iter().copied()).collect();
    assert_eq!(bytes, code, "the instructions cover the code");
    let _ = all.iter().map(|instruction| instruction.operands_with_target("x").len()).sum::<usize>();
}
