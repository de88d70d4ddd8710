//! Separate debug files, split DWARF, compressed symbol tables, and files of another build.

use std::path::Path;

use pmc_symbols::symbol::{BuildId, Depth, MissingDataReason, SymbolModule, SymbolOptions};

use super::{Built, C, build, kit, offsets, plain, resolve, spelled};

fn outer(built: &Built) -> u64 {
    let listed = built.run("nm", &["--defined-only", "prog"]);
    let line = listed.lines().find(|l| l.ends_with(" outer")).unwrap();
    u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
}

fn build_id(built: &Built) -> BuildId {
    let notes = built.run("readelf", &["-n", "prog"]);
    BuildId::parse(notes.lines().find_map(|l| l.split_once("Build ID: ")).unwrap().1.trim()).unwrap()
}

/// The frames at the first address of `outer`.
fn at_outer(
    built: &Built,
    address: u64,
    options: SymbolOptions,
    id: Option<BuildId>,
) -> (Vec<String>, std::sync::Arc<pmc_symbols::symbol::ModuleDataQuality>) {
    let module = SymbolModule { build_id: id, ..SymbolModule::file(&built.path) };
    let (symbolizer, id, answer) =
        resolve(options, module, &offsets(&built.path, &[address]), Depth::Inlines);
    (spelled(&symbolizer, &answer, 0), symbolizer.quality(id))
}

#[test]
fn stripped_program_uses_its_debug_file() {
    if !kit::need_program("gcc") || !kit::need_program("objcopy") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, id) = (outer(&built), build_id(&built));
    let (whole, trust) = at_outer(&built, start, plain(), Some(id));
    assert!(whole.last().unwrap().starts_with("outer "), "{whole:?}");
    assert!(trust.found().lines && trust.missing.is_empty(), "{trust:?}");
    let place = built.folder().join("debug/.build-id").join(format!("{}.debug", id.path()));
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    built.run("objcopy", &["--only-keep-debug", "prog", place.to_str().unwrap()]);
    built.run("strip", &["prog"]);

    let (bare, trust) = at_outer(&built, start, plain(), Some(id));
    assert!(bare.is_empty(), "{bare:?}");
    assert!(
        matches!(&trust.missing[..], [MissingDataReason::Stripped { build_id: Some(b), .. }] if *b == id),
        "{trust:?}"
    );

    let with = SymbolOptions { debug_dirs: vec![built.folder().join("debug")], ..plain() };
    let (named, trust) = at_outer(&built, start, with.clone(), Some(id));
    assert_eq!(named, whole);
    assert_eq!(trust.found().debug.as_deref(), Some(&*place));

    // Without the program itself, its build-id is enough to find the debug file.
    std::fs::rename(&built.path, built.folder().join("moved")).unwrap();
    let module = SymbolModule { build_id: Some(id), ..SymbolModule::file(&built.path) };
    let queries = offsets(&built.folder().join("moved"), &[start]);
    let (symbolizer, module, answer) = resolve(with, module, &queries, Depth::Inlines);
    assert_eq!(spelled(&symbolizer, &answer, 0), whole);
    assert!(symbolizer.quality(module).found().binary.is_none());
}

#[test]
fn unreadable_debug_file_is_reported() {
    if !kit::need_program("gcc") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-Wl,--build-id"]);
    let (start, id) = (outer(&built), build_id(&built));
    let debug = built.folder().join("debug");
    let place = debug.join(format!(".build-id/{}.debug", id.path()));
    let with = SymbolOptions { debug_dirs: vec![debug.clone()], ..plain() };
    let missing = || at_outer(&built, start, with.clone(), Some(id)).1.missing.clone();
    // A folder or a file in the place of the folder: the debug file does not exist.
    std::fs::write(&debug, "").unwrap();
    assert!(matches!(&missing()[..], [MissingDataReason::Lines { .. }]), "{:?}", missing());
    std::fs::remove_file(&debug).unwrap();
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    assert!(matches!(&missing()[..], [MissingDataReason::Lines { .. }]), "{:?}", missing());
    // Links that lead to each other cannot be opened, by root neither.
    std::os::unix::fs::symlink(&place, &place).unwrap();
    let told = missing();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].is_failure(), "{told:?}");
    assert!(told[0].to_string().starts_with(&format!("{}: ", place.display())), "{told:?}");
    assert!(told[0].to_string().ends_with("(ELOOP)"), "{told:?}");
}

#[test]
fn unreadable_cached_program_is_reported_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let id = BuildId::new(&[7; 20]).unwrap();
    let place = folder.path().join(".build-id").join(id.path());
    std::fs::create_dir_all(&place).unwrap();
    let elf = place.join("elf");
    std::os::unix::fs::symlink(&elf, &elf).unwrap();
    let options = SymbolOptions { build_id_caches: vec![folder.path().to_owned()], ..plain() };
    let module = SymbolModule { build_id: Some(id), ..SymbolModule::file(Path::new("/nowhere/prog")) };
    let (symbolizer, module, _) = resolve(options, module, &[], Depth::Names);
    let told = symbolizer.quality(module).missing.clone();
    assert!(told.iter().any(|one| one.to_string().starts_with(&format!("{}: ", elf.display()))), "{told:?}");
}

#[test]
fn debug_link_is_followed_if_the_checksum_matches() {
    if !kit::need_program("gcc") || !kit::need_program("objcopy") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id=none"]);
    let start = outer(&built);
    let (whole, _) = at_outer(&built, start, plain(), None);
    std::fs::create_dir(built.folder().join(".debug")).unwrap();
    built.run("objcopy", &["--only-keep-debug", "prog", ".debug/prog.debug"]);
    built.run("strip", &["prog"]);
    built.run("objcopy", &["--add-gnu-debuglink=.debug/prog.debug", "prog"]);
    let (named, _) = at_outer(&built, start, plain(), None);
    assert_eq!(named, whole);
    // One more byte changes the checksum, so the file does not match.
    let debug = built.folder().join(".debug/prog.debug");
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    assert!(at_outer(&built, start, plain(), None).0.is_empty());
}

#[test]
fn debug_file_of_another_build_is_rejected_with_a_note() {
    if !kit::need_program("gcc") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, found) = (outer(&built), build_id(&built));
    let recorded = BuildId::new(&[7; 20]).unwrap();
    let (frames, trust) = at_outer(&built, start, plain(), Some(recorded));
    assert!(frames.is_empty());
    let want =
        MissingDataReason::OtherBuild { path: built.path.clone(), recorded, found: Some(found.into()) };
    assert_eq!(trust.missing, [want]);
}

#[test]
fn perfs_build_id_cache_is_used() {
    if !kit::need_program("gcc") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, id) = (outer(&built), build_id(&built));
    let (whole, _) = at_outer(&built, start, plain(), Some(id));
    let place = built.folder().join("cache/.build-id").join(id.path());
    std::fs::create_dir_all(&place).unwrap();
    let queries = offsets(&built.path, &[start]);
    std::fs::rename(&built.path, place.join("elf")).unwrap();
    let options = SymbolOptions { build_id_caches: vec![built.folder().join("cache")], ..plain() };
    let module = SymbolModule { build_id: Some(id), ..SymbolModule::file(&built.path) };
    let (symbolizer, _, answer) = resolve(options, module, &queries, Depth::Inlines);
    assert_eq!(spelled(&symbolizer, &answer, 0), whole);
}

#[test]
fn split_dwarf_is_read_from_dwo_and_dwp_files() {
    if !kit::need_program("gcc") || !kit::need_program("addr2line") || !kit::need_program("dwp") {
        return;
    }
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let built = build("gcc", ("a.c", C), &["-O2", "-g", version, "-gsplit-dwarf"]);
        let (start, whole) = (outer(&built), build("gcc", ("a.c", C), &["-O2", "-g", version]));
        let (want, _) = at_outer(&whole, outer(&whole), plain(), None);
        let names = |frames: &[String]| -> Vec<String> {
            frames.iter().map(|f| f.split(' ').next().unwrap().to_owned()).collect()
        };
        let lines = |frames: &[String]| -> Vec<String> {
            frames.iter().map(|f| f.rsplit(':').next().unwrap().to_owned()).collect()
        };
        let (split, _) = at_outer(&built, start, plain(), None);
        assert_eq!((names(&split), lines(&split)), (names(&want), lines(&want)), "{version}");
        if version == "-gdwarf-5" {
            continue; // The dwp of binutils cannot pack it yet.
        }
        built.run("dwp", &["-e", "prog"]);
        for entry in std::fs::read_dir(built.folder()).unwrap().flatten() {
            if entry.path().extension().is_some_and(|e| e == "dwo") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        let (packed, _) = at_outer(&built, start, plain(), None);
        assert_eq!(packed, split, "{version}");
    }
}

#[test]
fn gnu_debugdata_names_a_stripped_program() {
    if !kit::need_program("gcc") || !kit::need_program("xz") || !kit::need_program("objcopy") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-Wl,--build-id"]);
    let start = outer(&built);
    built.run("objcopy", &["--only-keep-debug", "prog", "mini"]);
    built.run("xz", &["mini"]);
    built.run("strip", &["prog"]);
    assert!(at_outer(&built, start, plain(), None).0.is_empty());
    built.run("objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "prog"]);
    let (named, trust) = at_outer(&built, start, plain(), None);
    assert_eq!(named, ["outer ??:?"]);
    assert!(matches!(&trust.missing[..], [MissingDataReason::Lines { .. }]), "{trust:?}");
}

#[test]
fn dwz_common_files_are_followed() {
    if !kit::need_program("gcc") || !kit::need_program("dwz") || !kit::need_program("addr2line") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, (whole, _)) = (outer(&built), at_outer(&built, outer(&built), plain(), None));
    std::fs::copy(&built.path, built.folder().join("twin")).unwrap();
    built.run("dwz", &["-m", "common.debug", "-M", "common.debug", "prog", "twin"]);
    let (moved, trust) = at_outer(&built, start, plain(), None);
    assert_eq!(moved, whole, "{trust:?}");
}

#[test]
fn second_lookup_uses_the_cache() {
    if !kit::need_program("gcc") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, id) = (outer(&built), build_id(&built));
    let cache = built.folder().join("cache");
    let options = SymbolOptions { cache: Some(cache.clone()), ..plain() };
    let (first, _) = at_outer(&built, start, options.clone(), Some(id));
    let kept = cache.join("symbols").join(id.path());
    assert!(kept.is_file());
    assert_eq!(at_outer(&built, start, options.clone(), Some(id)).0, first);
    // Garbage in the cache does no harm.
    std::fs::write(&kept, b"pmcsym01\0\0\0\0rubbish").unwrap();
    assert_eq!(at_outer(&built, start, options, Some(id)).0, first);
}

#[test]
fn deleted_program_is_read_through_its_process() {
    if !kit::need_program("gcc") || !kit::need_root() {
        return;
    }
    let source =
        "#include <unistd.h>\nint waits(void) { return pause(); }\nint main(void) { return waits(); }\n";
    let built = build("gcc", ("a.c", source), &["-O0", "-g", "-Wl,--build-id"]);
    let listed = built.run("nm", &["--defined-only", "prog"]);
    let line = listed.lines().find(|l| l.ends_with(" waits")).unwrap();
    let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let (id, queries) = (build_id(&built), offsets(&built.path, &[start]));
    let mut child = std::process::Command::new(&built.path).spawn().unwrap();
    // Wait until the child has executed the program, then delete it.
    let exe = format!("/proc/{}/exe", child.id());
    let program = std::fs::canonicalize(&built.path).unwrap();
    kit::wait_for("the program", || std::fs::read_link(&exe).is_ok_and(|exe| exe == program));
    std::fs::remove_file(&built.path).unwrap();
    let module = SymbolModule {
        build_id: Some(id),
        pid: Some(child.id()),
        ..SymbolModule::file(Path::new(&format!("{} (deleted)", built.path.display())))
    };
    let (symbolizer, _, answer) = resolve(plain(), module, &queries, Depth::Inlines);
    let got = spelled(&symbolizer, &answer, 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(got.len() == 1 && got[0].starts_with("waits ") && got[0].ends_with("a.c:2"), "{got:?}");
}
