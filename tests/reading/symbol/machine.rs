//! Files and code of this machine: its C library, kernel, vdso, and JIT code of a process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::{Object, ObjectSection, ObjectSymbol};
use pmc_symbols::address::{Avma, FileOffset, Mapping};
use pmc_symbols::symbol::{
    BuildId, Depth, MissingDataReason, SymbolModule, SymbolModuleKind, SymbolOptions, SymbolQuery,
    SymbolRequest, Symbolizer,
};

use super::{kit, offsets, plain, resolve};

#[test]
fn libc_symbols_match_nm() {
    let Some(libc) = own_libc() else { return };
    let libc = libc.as_path();
    let bytes = std::fs::read(libc).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let functions: Vec<(u64, u64, String)> = file
        .dynamic_symbols()
        .filter(|s| s.kind() == object::SymbolKind::Text && s.size() > 0 && !s.is_undefined())
        .map(|s| (s.address(), s.size(), s.name().unwrap().to_owned()))
        .collect();
    assert!(functions.len() > 1000);
    let middles: Vec<u64> = functions.iter().map(|(start, size, _)| start + size / 2).collect();
    let (symbolizer, _, answer) =
        resolve(plain(), SymbolModule::file(libc), &offsets(libc, &middles), Depth::Names);
    for (index, (start, _, name)) in functions.iter().enumerate() {
        let frame = answer.frames(index).first().unwrap_or_else(|| panic!("nothing in {name}"));
        let function = symbolizer.names().function(frame.function);
        // A function may have many names with the same start address. It may contain a smaller function.
        let alias = functions.iter().any(|(s, _, n)| **n == *function.raw && Some(*s) == function.start);
        assert!(alias, "{name} at {start:#x} became {} at {:?}", function.raw, function.start);
    }
}

/// Path of the C library that this process has mapped.
fn own_libc() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.lines().find_map(|line| {
        Some(&line[line.find('/')?..]).filter(|path| path.contains("libc.so")).map(PathBuf::from)
    });
    kit::need("libc", libc.is_some(), "no libc.so is mapped");
    libc
}

#[test]
fn batched_lookups_match_the_full_table() {
    let Some(libc) = own_libc() else { return };
    let bytes = std::fs::read(&libc).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    // Functions, gaps between them, and the PLT stubs before them.
    let sections: Vec<(u64, u64)> = [".plt", ".plt.got", ".plt.sec", ".text"]
        .iter()
        .filter_map(|name| file.section_by_name(name))
        .map(|section| (section.address(), section.size()))
        .collect();
    let mut seed = 7u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let new = |alone, placeholders| {
        let mut symbolizer = Symbolizer::new(SymbolOptions { alone, placeholders, ..plain() }).unwrap();
        let module = symbolizer.add(SymbolModule::file(&libc));
        (symbolizer, module)
    };
    let name = |symbolizer: &mut Symbolizer, module, query: SymbolQuery| {
        let request = SymbolRequest { module, queries: &[query] };
        let answer = symbolizer.resolve(&[request], Depth::Names, &|_| {});
        let function = answer.frames(0).first().map(|frame| symbolizer.names().function(frame.function));
        let symbol = function.filter(|function| !function.is_placeholder).map(|function| &*function.raw);
        assert_eq!(symbol, symbolizer.find(module, query).map(|(name, _)| name));
        function.map(|function| function.raw.to_string())
    };
    let ((mut whole, mut of_whole), (mut few, mut of_few)) = (new(false, false), new(true, false));
    let (mut stubs, mut placeholders) = (0, 0);
    for round in 0..80 {
        if round == 60 {
            ((whole, of_whole), (few, of_few)) = (new(false, true), new(true, true));
        }
        let addresses: Vec<u64> = (0..1 + next(12))
            .map(|_| {
                let (start, size) = sections[next(sections.len() as u64) as usize];
                start + next(size)
            })
            .collect();
        let queries = offsets(&libc, &addresses);
        let answers =
            few.resolve(&[SymbolRequest { module: of_few, queries: &queries }], Depth::Names, &|_| {});
        for (at, query) in queries.iter().enumerate() {
            let frame = answers.frames(at).first();
            let found = frame.map(|frame| few.names().function(frame.function).raw.to_string());
            let wanted = name(&mut whole, of_whole, *query);
            assert_eq!(found, wanted, "at {:#x}", addresses[at]);
            stubs += usize::from(wanted.as_ref().is_some_and(|name| name.ends_with("@plt")));
            placeholders += usize::from(wanted.as_ref().is_some_and(|name| name.contains("+0x")));
            // The answer holds for the whole range that `around` returns.
            let around = few.around(of_few, *query);
            let is_of_section = wanted.is_some_and(|name| name.starts_with('['));
            assert_eq!(around.is_none(), is_of_section);
            let Some((from, to)) = around else { continue };
            let (first, last) = (from.max(1), to.min(bytes.len() as u64) - 1);
            for place in [first, last, first + next(last - first + 1), first + next(last - first + 1)] {
                let there = name(&mut whole, of_whole, FileOffset(place).into());
                assert_eq!(there, found, "at {place:#x}, of {from:#x} to {to:#x}");
            }
        }
    }
    assert!(stubs > 10 && placeholders > 10, "{stubs}, {placeholders}");
}

#[test]
fn cached_kernel_symbols_match_kallsyms() {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let functions = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
        matches!(words.next()?, "t" | "T" | "w" | "W").then_some(address)
    });
    // The second byte of each function, because labels may share the first address.
    let mut queries: Vec<SymbolQuery> =
        functions.step_by(61).map(|address| SymbolQuery::from(Avma(address + 1))).collect();
    if !kit::need("kallsyms", !queries.is_empty(), "the kernel hides the addresses of its functions") {
        return;
    }
    // An unused address.
    queries.push(SymbolQuery::from(Avma(0xffff_ffff_ffff_f000)));
    let cache = tempfile::tempdir().unwrap();
    let names = |cache: Option<&Path>| {
        let options = SymbolOptions { cache: cache.map(Path::to_path_buf), ..plain() };
        let (symbolizer, _, answer) = resolve(options, SymbolModule::kernel(), &queries, Depth::Names);
        let name =
            |at| Some(symbolizer.names().function(answer.frames(at).first()?.function).raw.to_string());
        (0..queries.len()).map(name).collect::<Vec<_>>()
    };
    let said = names(None);
    assert!(said.iter().flatten().count() > 1000);
    let kept = || {
        let folder = std::fs::read_dir(cache.path().join("kernel")).unwrap();
        let files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    };
    for _ in 0..2 {
        assert_eq!(names(Some(cache.path())), said);
    }
    let sound = std::fs::read(kept()).unwrap();
    // A truncated list is rejected and rebuilt.
    std::fs::write(kept(), &sound[..sound.len() / 2]).unwrap();
    assert_eq!(names(Some(cache.path())), said);
    assert_eq!(std::fs::read(kept()).unwrap().len(), sound.len());
    // If the cache is not writable, the result is the same as without a cache.
    let file = cache.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(names(Some(&file)), said);
}

#[test]
fn kernel_symbols_match_kallsyms() {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let functions: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|l| {
            let mut words = l.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            matches!(words.next()?, "t" | "T").then_some((address, words.next()?))
        })
        .collect();
    let seen = functions.iter().any(|(address, _)| *address > 0);
    if !kit::need("kallsyms", seen, "the kernel hides the addresses of its functions") {
        return;
    }
    let end = text
        .lines()
        .find(|l| l.ends_with(" _etext"))
        .and_then(|l| u64::from_str_radix(l.split(' ').next()?, 16).ok())
        .unwrap();
    let some: Vec<(u64, &str)> = functions.into_iter().filter(|(a, _)| *a < end).step_by(97).collect();
    let queries: Vec<SymbolQuery> =
        some.iter().map(|(address, _)| SymbolQuery::from(Avma(*address))).collect();
    let (symbolizer, id, answer) = resolve(plain(), SymbolModule::kernel(), &queries, Depth::Inlines);
    for (index, (address, _)) in some.iter().enumerate() {
        let function = symbolizer.names().function(answer.frames(index)[0].function);
        assert_eq!(function.start, Some(*address));
        let line = format!("{address:016x} ");
        assert!(
            text.lines().any(|l| l.starts_with(&line) && l.split_whitespace().nth(2) == Some(&*function.raw))
        );
    }
    assert!(symbolizer.quality(id).found().symbols > 10_000);
    // A kernel that was 16 MiB lower when it was recorded.
    let text_start = text
        .lines()
        .find(|l| l.ends_with(" _text"))
        .and_then(|l| u64::from_str_radix(l.split(' ').next()?, 16).ok())
        .unwrap();
    let lower = 16 << 20;
    let module = SymbolModule {
        kind: SymbolModuleKind::Kernel {
            reference: Some(Arc::new(("_text".into(), Avma(text_start - lower)))),
        },
        ..SymbolModule::kernel()
    };
    let moved: Vec<SymbolQuery> =
        some.iter().map(|(address, _)| SymbolQuery::from(Avma(*address - lower))).collect();
    let (again, _, other) = resolve(plain(), module, &moved, Depth::Names);
    for index in 0..some.len() {
        let name = |s: &Symbolizer, a: &pmc_symbols::symbol::AddressFrames| {
            s.names().function(a.frames(index)[0].function).raw.clone()
        };
        assert_eq!(name(&again, &other), name(&symbolizer, &answer));
    }
}

#[test]
fn hidden_kernel_addresses_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = folder.path().join("kallsyms");
    std::fs::write(&hidden, "0000000000000000 T _text\n0000000000000000 T do_it\n").unwrap();
    let options = SymbolOptions { kallsyms: Some(hidden), ..plain() };
    let query = SymbolQuery::from(Avma(0xffff_ffff_8100_0000));
    let (symbolizer, id, answer) = resolve(options, SymbolModule::kernel(), &[query], Depth::Names);
    assert!(answer.frames(0).is_empty());
    let trust = symbolizer.quality(id);
    assert!(matches!(&trust.missing[..], [MissingDataReason::KernelAddressesHidden { .. }]), "{trust:?}");
}

#[test]
fn vdso_functions_are_named() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|l| l.ends_with("[vdso]")) else {
        kit::need("vdso", false, "this kernel lends no vdso");
        return;
    };
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let (start, end) = (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
    let mapping = Mapping { start: Avma(start), len: end - start, offset: FileOffset(0) };
    let module = SymbolModule::vdso();
    let queries: Vec<SymbolQuery> =
        (start..end).step_by(16).filter_map(|a| module.kind.query(&mapping, Avma(a))).collect();
    let (symbolizer, _, _) = resolve(plain(), module, &queries, Depth::Inlines);
    let names: Vec<&str> = symbolizer.names().functions().iter().map(|f| &*f.raw).collect();
    assert!(names.iter().any(|n| n.contains("clock_gettime")), "{names:?}");
}

/// A process without a perf map, and the path of the map. A process of another user that had the same number
/// may have left one.
fn process_without_map() -> (kit::ProcessGuard, String) {
    loop {
        let process = kit::ProcessGuard::start(std::process::Command::new("sleep").arg("1000"));
        let path = format!("/tmp/perf-{}.map", process.id());
        if std::fs::symlink_metadata(&path).is_err() {
            return (process, path);
        }
    }
}

#[test]
fn jit_code_is_named_by_its_perf_map() {
    let (process, path) = process_without_map();
    let pid = process.id();
    std::fs::write(&path, "7f1230000000 40 LazyCompile:*hot /app.js:3\n7f1230000040 10 stub\nrubbish\n")
        .unwrap();
    let queries =
        [0x7f12_3000_0010u64, 0x7f12_3000_0044, 0x7f12_3000_0050].map(|a| SymbolQuery::from(Avma(a)));
    let (symbolizer, id, answer) = resolve(plain(), SymbolModule::anonymous(pid), &queries, Depth::Inlines);
    std::fs::remove_file(&path).unwrap();
    let name =
        |index: usize| answer.frames(index).first().map(|f| &*symbolizer.names().function(f.function).name);
    assert_eq!([name(0), name(1), name(2)], [Some("LazyCompile:*hot /app.js:3"), Some("stub"), None]);
    assert!(symbolizer.quality(id).missing.is_empty());

    let (symbolizer, id, _) = resolve(plain(), SymbolModule::anonymous(pid), &queries, Depth::Names);
    let missing = symbolizer.quality(id).missing.clone();
    assert!(
        matches!(&missing[..], [MissingDataReason::PerfMap { said, .. }] if said.contains("No such file")),
        "{missing:?}"
    );
}

/// Why a given `--vmlinux` is not used for a kernel with this build-id.
fn vmlinux_is_unused(path: &Path, build_id: Option<BuildId>) -> String {
    pmc_command::advice::install();
    let mut symbolizer =
        Symbolizer::new(SymbolOptions { vmlinux: Some(path.to_owned()), ..plain() }).unwrap();
    let id = symbolizer.add(SymbolModule { build_id, ..SymbolModule::kernel() });
    let missing = symbolizer.quality(id).missing.clone();
    let why = missing.iter().find(|reason| matches!(reason, MissingDataReason::GivenVmlinux(_)));
    let why = why.unwrap_or_else(|| panic!("{missing:?}"));
    assert!(symbolizer.failures().contains(why), "{why}");
    why.to_string()
}

#[test]
fn unused_vmlinux_option_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no kernel").unwrap();
    for (path, why) in [
        (folder.path().join("absent"), "No such file"),
        (folder.path().to_owned(), "not a regular file"),
        (text, "not a valid ELF file (Could not read file magic)"),
    ] {
        let told = vmlinux_is_unused(&path, None);
        assert!(told.starts_with(&format!("--vmlinux is not used: {}: {why}", path.display())), "{told}");
    }
    // A program of another build than the recorded kernel.
    let other = std::env::current_exe().unwrap();
    let told = vmlinux_is_unused(&other, Some(BuildId::new(&[7; 20]).unwrap()));
    assert!(told.contains("is another build (recorded 0707"), "{told}");
}

#[test]
fn vmlinux_without_the_reference_symbol_is_reported() {
    let other = std::env::current_exe().unwrap();
    let reference = Some(Arc::new(("no_such_symbol".into(), Avma(0xffff_ffff_8100_0000))));
    let module = SymbolModule { kind: SymbolModuleKind::Kernel { reference }, ..SymbolModule::kernel() };
    let mut symbolizer = Symbolizer::new(SymbolOptions { vmlinux: Some(other), ..plain() }).unwrap();
    let id = symbolizer.add(module);
    let missing = symbolizer.quality(id).missing.clone();
    assert!(
        missing.iter().any(|one| one.to_string().ends_with(": it has no symbol no_such_symbol")),
        "{missing:?}"
    );
}

#[test]
fn perf_map_that_is_a_link_or_fifo_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let tmp = folder.path().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    std::fs::write(folder.path().join("real"), "1000 10 evil\n").unwrap();
    std::os::unix::fs::symlink(folder.path().join("real"), tmp.join("perf-77.map")).unwrap();
    let options = SymbolOptions { symfs: Some(folder.path().into()), ..plain() };
    let (_, _, answer) = resolve(
        options.clone(),
        SymbolModule::anonymous(77),
        &[SymbolQuery::from(Avma(0x1004))],
        Depth::Names,
    );
    assert!(answer.frames(0).is_empty());
    if kit::need_program("mkfifo") {
        super::run("mkfifo", &["perf-78.map"], &tmp);
        let (_, _, answer) =
            resolve(options, SymbolModule::anonymous(78), &[SymbolQuery::from(Avma(0x1004))], Depth::Names);
        assert!(answer.frames(0).is_empty());
    }
}

/// A jitdump file with two functions, the second moved, following the specification.
fn jitdump() -> Vec<u8> {
    let mut out = Vec::new();
    let u32s = |out: &mut Vec<u8>, list: &[u32]| list.iter().for_each(|n| out.extend(n.to_le_bytes()));
    let u64s = |out: &mut Vec<u8>, list: &[u64]| list.iter().for_each(|n| out.extend(n.to_le_bytes()));
    u32s(&mut out, &[0x4a69_5444, 1, 40, 62, 0, 77]);
    u64s(&mut out, &[1, 0]);
    let mut record = |id: u32, time: u64, body: &[u8]| {
        u32s(&mut out, &[id, 16 + body.len() as u32]);
        u64s(&mut out, &[time]);
        out.extend(body);
    };
    let load = |address: u64, index: u64, name: &str, code: &[u8]| {
        let mut body = Vec::new();
        u32s(&mut body, &[77, 77]);
        u64s(&mut body, &[address, address, code.len() as u64, index]);
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(code);
        body
    };
    let mut lines = Vec::new();
    u64s(&mut lines, &[0x1000, 2]);
    for (address, line) in [(0x1000u64, 3u32), (0x1008, 4)] {
        u64s(&mut lines, &[address]);
        u32s(&mut lines, &[line, 0]);
        lines.extend(b"app.js\0");
    }
    record(2, 5, &lines);
    record(0, 5, &load(0x1000, 1, "hot", &[0x90; 16]));
    record(0, 6, &load(0x2000, 2, "cold", &[0xcc; 8]));
    record(99, 6, &[1, 2, 3, 4]);
    let mut moved = Vec::new();
    u32s(&mut moved, &[77, 77]);
    u64s(&mut moved, &[0x3000, 0x2000, 0x3000, 8, 2]);
    record(1, 7, &moved);
    record(0, 8, &load(0x1000, 3, "newer", &[0xc3; 4]));
    record(3, 9, &[]);
    out
}

#[test]
fn jitdump_provides_names_lines_bytes_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jit-77.dump");
    std::fs::write(&path, jitdump()).unwrap();
    let dump = pmc_symbols::symbol::jit::jitdump::Jitdump::read(&path).unwrap();
    let names: Vec<&str> = dump.codes().iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["hot", "cold", "cold", "newer"]);
    let hot = &dump.codes()[0];
    let line = dump.lines(hot).take_while(|(from, ..)| *from <= 0x100a).last();
    assert!(hot.time <= 7 && (hot.start..hot.start + hot.size).contains(&0x100a));
    assert_eq!(
        (line.map(|(_, file, line)| (file, line)), dump.bytes(hot)),
        (Some(("app.js", 4)), &[0x90; 16][..])
    );
    assert_eq!(&*dump.latest(0x1002).unwrap().name, "newer");
    assert_eq!(dump.bytes(dump.latest(0x3000).unwrap()), [0xcc; 8]);
    let mut symbolizer = Symbolizer::new(SymbolOptions { live: false, ..plain() }).unwrap();
    let id = symbolizer.add(SymbolModule::anonymous(77));
    symbolizer.add_jitdump(77, path.clone());
    let queries =
        [SymbolQuery::from(Avma(0x1002)), SymbolQuery::from(Avma(0x3004)), SymbolQuery::from(Avma(0x100a))];
    let answer =
        symbolizer.resolve(&[SymbolRequest { module: id, queries: &queries }], Depth::Names, &|_| {});
    let name =
        |index: usize| answer.frames(index).first().map(|f| &*symbolizer.names().function(f.function).name);
    assert_eq!([name(0), name(1), name(2)], [Some("newer"), Some("cold"), None]);
    // A file truncated at any point gives the complete records before the cut.
    let whole = jitdump();
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let torn =
            pmc_symbols::symbol::jit::jitdump::Jitdump::read(&path).map_or(0, |dump| dump.codes().len());
        assert!(torn <= 4);
    }
}

#[test]
fn recorded_symbols_are_used_only_for_missing_files() {
    let here = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&here).unwrap();
    let offset =
        object::File::parse(&*bytes).unwrap().section_by_name(".text").unwrap().file_range().unwrap().0;
    let gone = PathBuf::from("/nowhere/lib.so");
    for alone in [false, true] {
        let mut symbolizer = Symbolizer::new(SymbolOptions { live: false, alone, ..plain() }).unwrap();
        for path in [&here, &gone] {
            let functions = [(0..u64::MAX, "recorded".into())].into_iter();
            symbolizer.add_recorded(path.clone(), functions);
        }
        let name = |path: &Path, query: SymbolQuery, symbolizer: &mut Symbolizer| {
            let id = symbolizer.add(SymbolModule::file(path));
            let request = SymbolRequest { module: id, queries: &[query] };
            let answer = symbolizer.resolve(&[request], Depth::Names, &|_| {});
            answer.frames(0).first().map(|frame| symbolizer.names().function(frame.function).name.to_string())
        };
        let query = SymbolQuery::from(FileOffset(offset));
        let own = name(&here, query, &mut symbolizer);
        assert!(own.is_some_and(|name| name != "recorded"), "{offset:x}");
        assert_eq!(name(&gone, query, &mut symbolizer).as_deref(), Some("recorded"));
    }
}

#[test]
fn bpf_programs_are_named_by_their_records() {
    let mut symbolizer = Symbolizer::new(SymbolOptions { live: false, ..plain() }).unwrap();
    symbolizer.add_ksymbol(Avma(0xffff_ffff_c000_1000), 0x80, Path::new("bpf_prog_abc_count").into());
    let id = symbolizer
        .add(SymbolModule { kind: SymbolModuleKind::Bpf, ..SymbolModule::file("bpf_prog_abc_count") });
    let queries =
        [SymbolQuery::from(Avma(0xffff_ffff_c000_1010)), SymbolQuery::from(Avma(0xffff_ffff_c000_1080))];
    let answer =
        symbolizer.resolve(&[SymbolRequest { module: id, queries: &queries }], Depth::Names, &|_| {});
    assert_eq!(&*symbolizer.names().function(answer.frames(0)[0].function).name, "bpf_prog_abc_count");
    assert!(answer.frames(1).is_empty());
}
