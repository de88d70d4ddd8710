//! Names of code outside ELF files: perf maps, jitdumps, kallsyms, and mangled names.

use std::fs;
use std::sync::Arc;

use pmc_symbols::address::Avma;
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_symbols::symbol::jit::elf_file;
use pmc_symbols::symbol::jit::jitdump::Jitdump;
use pmc_symbols::symbol::{
    Depth, SymbolModule, SymbolModuleKind, SymbolOptions, SymbolQuery, SymbolRequest, Symbolizer, demangle,
    kernel,
};

use crate::programs::{Written, options};
use crate::with_text;

/// Number of functions of which a target looks at everything.
const MOST_FUNCTIONS: usize = 64;

/// The process that the files belong to.
const PID: u32 = 7;

/// Looks up the first functions of a module, and addresses between them.
fn look_up(symbolizer: &mut Symbolizer, module: SymbolModule) {
    let id = symbolizer.add(module);
    let mut queries: Vec<SymbolQuery> = vec![Avma(0).into(), Avma(u64::MAX).into()];
    for symbol in symbolizer.symbols(id).take(MOST_FUNCTIONS) {
        queries.extend(
            [symbol.start, symbol.end.wrapping_sub(1)].map(|address| SymbolQuery::from(Avma(address))),
        );
    }
    let request = [SymbolRequest { module: id, queries: &queries }];
    let _ = symbolizer.resolve(&request, Depth::Inlines, &|_| {});
    for query in &queries {
        let _ = (symbolizer.find(id, *query), symbolizer.around(id, *query), symbolizer.knows(id, *query));
    }
    let _ = symbolizer.quality(id).missing.iter().map(|reason| reason.to_string().len()).sum::<usize>();
}

/// The text of `/tmp/perf-PID.map`.
pub fn perf_map(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("tmp")).expect("a folder");
    fs::write(folder.path().join(format!("tmp/perf-{PID}.map")), data).expect("a file");
    let options = SymbolOptions { symfs: Some(folder.path().to_owned()), ..options() };
    let mut symbolizer = Symbolizer::new(options).expect("worker threads");
    look_up(&mut symbolizer, SymbolModule::anonymous(PID));
}

/// A jitdump: its names, lines and code, and the ELF files that `inject` makes of it.
pub fn jitdump(data: &[u8]) {
    let file = Written::new(data);
    let dump = match Jitdump::read(&file.path()) {
        Ok(dump) => dump,
        Err(error) => return drop(error.to_string()),
    };
    for code in dump.codes().iter().take(MOST_FUNCTIONS) {
        let id = elf_file::build_id(&dump, code);
        let file = elf_file::of(&dump, code, &id);
        assert!(file.len() >= dump.bytes(code).len());
        let _ = (dump.latest(code.start), dump.lines(code).count());
    }
    let mut symbolizer = Symbolizer::new(options()).expect("worker threads");
    symbolizer.add_jitdump(PID, file.path());
    look_up(&mut symbolizer, SymbolModule::anonymous(PID));
    let id = symbolizer.add(SymbolModule::anonymous(PID));
    for code in dump.codes().iter().take(MOST_FUNCTIONS) {
        if let Ok(bytes) = symbolizer.code(id, code.start, code.size, None) {
            let _ = symbolizer.disassemble(id, &bytes, Syntax::Att);
        }
    }
}

/// A copy of `/proc/kallsyms`, which an image of the kernel may follow.
pub fn kallsyms(data: &[u8]) {
    let image = data.windows(4).position(|four| four == b"\x7fELF").unwrap_or(data.len());
    let (data, image) = data.split_at(image);
    let (file, image) = (Written::new(data), (!image.is_empty()).then(|| Written::new(image)));
    let vmlinux = image.as_ref().map(Written::path);
    let options = SymbolOptions { kallsyms: Some(file.path()), vmlinux, ..options() };
    let mut symbolizer = Symbolizer::new(options).expect("worker threads");
    let reference = Some(Arc::new(("_text".to_owned(), Avma(0xffff_ffff_8000_0000))));
    let kernel = SymbolModule { kind: SymbolModuleKind::Kernel { reference }, ..SymbolModule::kernel() };
    look_up(&mut symbolizer, kernel);
    look_up(&mut symbolizer, SymbolModule::kernel());
    look_up(&mut symbolizer, SymbolModule { kind: SymbolModuleKind::Bpf, ..SymbolModule::file("[bpf]") });
    let start = Avma(0xffff_ffff_c000_0000);
    look_up(
        &mut symbolizer,
        SymbolModule { kind: SymbolModuleKind::KernelModule { start }, ..SymbolModule::file("[thing]") },
    );
    with_text(data, |text| drop(kernel::loaded_modules(text)));
}

/// A mangled name in each line.
pub fn mangled(data: &[u8]) {
    with_text(data, |text| text.lines().for_each(|line| drop(demangle::demangle(line))));
}
