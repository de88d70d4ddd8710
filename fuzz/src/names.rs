//! Names of code outside ELF files: perf maps, jitdumps, kallsyms, and mangled names.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};
use std::sync::Arc;

use pmc_symbols::address::Avma;
use pmc_symbols::symbol::RunningKernel;
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_symbols::symbol::jit::elf_file;
use pmc_symbols::symbol::jit::jitdump::Jitdump;
use pmc_symbols::symbol::kernel::{LoadedModule, loaded_modules};
use pmc_symbols::symbol::{
    BuildId, Depth, SymbolModule, SymbolModuleKind, SymbolOptions, SymbolQuery, SymbolRequest, Symbolizer,
    demangle,
};

use crate::mutation::parts;
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
        let file = elf_file::build(&dump, code, &id);
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
    with_text(data, |text| drop(loaded_modules(text)));
}

/// The release of the made-up kernel of [`running_kernel`].
const RELEASE: &str = "6.1-fuzz";

/// Files of a running kernel: its `kallsyms`, `modules`, notes, `modules.dep`, an image for `/boot`, and where to
/// damage pmc's cached list. The names must be the same with a cached list and without.
pub fn running_kernel(data: &[u8]) {
    let parts = parts(data);
    let [kallsyms, modules, notes, listed, image, damage] =
        std::array::from_fn(|at| parts.get(at).map_or(&[][..], Vec::as_slice));
    let folder = crate::folder();
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    };
    write("proc/kallsyms", kallsyms);
    write("proc/modules", modules);
    write("proc/sys/kernel/random/boot_id", b"6c1b0e1a-0000\n");
    write("proc/sys/kernel/kptr_restrict", &notes[..notes.len().min(2)]);
    write("sys/kernel/notes", notes);
    write(&format!("boot/vmlinux-{RELEASE}"), image);
    write(&format!("lib/modules/{RELEASE}/modules.dep"), listed);
    let kernel = RunningKernel::below(folder.path(), RELEASE);
    for path in kernel.module_files().values().take(4) {
        let below = path.strip_prefix(folder.path()).ok().filter(|below| {
            below.components().all(|part| matches!(part, Component::Normal(name) if name.len() < 50))
        });
        if below.and_then(Path::to_str).is_some_and(|below| !below.contains('\0') && below.len() < 200) {
            // One module's file may be another one's folder.
            let _ = fs::create_dir_all(path.parent().expect("it has a folder"))
                .and_then(|()| fs::write(&path, image));
        }
    }
    let loaded = kernel.modules();
    for module in
        loaded.iter().take(4).filter(|module| !module.name.contains(['/', '\0']) && module.name.len() < 50)
    {
        write(&format!("sys/module/{}/notes/.note.gnu.build-id", module.name), notes);
    }
    if let Ok(maps) = kernel.maps() {
        assert!(maps.iter().all(|map| map.start <= map.end) && maps[1..].is_sorted_by_key(|map| map.start));
        assert_eq!(maps.len(), 1 + loaded.len());
    }
    let names = ["_text", "do_one", "probe", "some_data"].map(str::to_owned);
    if let Ok(symbols) = kernel.symbols(&names) {
        assert!(symbols.is_sorted_by_key(|symbol| symbol.start), "{symbols:x?}");
        assert!(symbols.iter().all(|symbol| symbol.start <= symbol.end && names.contains(&symbol.name)));
    }

    let cache = folder.path().join("cache");
    let with = |cached: bool| SymbolOptions {
        cache: cached.then(|| cache.clone()),
        live: true,
        kernel: kernel.clone(),
        debug_dirs: vec![folder.path().join("debug")],
        ..options()
    };
    let found = kernel_names(with(false), kernel.build_id(), &loaded);
    // The first run with a cache writes the list, and the second one reads it.
    for _ in 0..2 {
        assert_eq!(kernel_names(with(true), kernel.build_id(), &loaded), found);
    }
    // A list that the user's other programs damaged may have other names, but does no harm.
    if let Ok(file) = fs::File::options().read(true).write(true).open(cache.join("kernel/6c1b0e1a-0000"))
        && let Some((place, bytes)) = damage.split_first_chunk::<2>()
    {
        const BODY: u64 = 12;
        let place = BODY + u64::from(u16::from_le_bytes(*place));
        let mut body = vec![0; file.metadata().map_or(0, |about| about.len().saturating_sub(BODY)) as usize];
        let damaged = file.write_all_at(bytes, place).and_then(|()| file.read_exact_at(&mut body, BODY));
        let mut sum = flate2::Crc::new();
        sum.update(&body);
        damaged.and_then(|()| file.write_all_at(&sum.sum().to_le_bytes(), 8)).expect("a cache file");
        kernel_names(with(true), kernel.build_id(), &loaded);
    }
}

/// Looks up addresses of the kernel and of its modules. Returns the names and the missing data, as text.
fn kernel_names(options: SymbolOptions, id: Option<BuildId>, loaded: &[LoadedModule]) -> Vec<String> {
    let mut symbolizer = Symbolizer::new(options).expect("worker threads");
    let reference = Some(Arc::new(("_text".to_owned(), Avma(0xffff_ffff_8000_0000))));
    let of_kernel = |reference, build_id| SymbolModule {
        kind: SymbolModuleKind::Kernel { reference },
        build_id,
        ..SymbolModule::kernel()
    };
    let mut modules = vec![
        of_kernel(None, id),
        of_kernel(reference, id),
        of_kernel(None, BuildId::new(&[7; 20])),
        SymbolModule { kind: SymbolModuleKind::Bpf, ..SymbolModule::file("[bpf]") },
    ];
    modules.extend(loaded.iter().take(4).map(|module| SymbolModule {
        kind: SymbolModuleKind::KernelModule { start: Avma(module.start) },
        ..SymbolModule::file(format!("[{}]", module.name))
    }));
    let mut found = Vec::new();
    for module in modules {
        let id = symbolizer.add(module);
        let symbols: HashSet<u64> = symbolizer
            .symbols(id)
            .take(MOST_FUNCTIONS)
            .flat_map(|symbol| [symbol.start, symbol.end.wrapping_sub(1), symbol.end])
            .collect();
        let near = loaded.iter().take(4).flat_map(|module| [module.start, module.start.wrapping_add(4095)]);
        let mut addresses: Vec<u64> = symbols.into_iter().chain(near).chain([0, u64::MAX]).collect();
        addresses.sort_unstable();
        for address in addresses {
            let name = symbolizer.find(id, SymbolQuery::from(Avma(address)));
            found.push(format!("{address:x} {name:?}"));
        }
        let quality = symbolizer.quality(id);
        found.extend(quality.missing.iter().map(ToString::to_string));
    }
    found
}

/// A mangled name in each line.
pub fn mangled(data: &[u8]) {
    with_text(data, |text| text.lines().for_each(|line| drop(demangle::demangle(line))));
}
