//! Broken and hostile ELF files must not cause a panic or a hang.

use std::process::Command;
use std::time::Instant;

use object::{Object, ObjectSection};
use pmc_symbols::address::FileOffset;
use pmc_symbols::symbol::{Depth, PlaceRequest, ProbeFile, SymbolModule, SymbolQuery, elf};

use super::{C, build, kit, plain, resolve, text};

/// A small random number generator with a fixed seed (xorshift64).
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

#[test]
fn mutated_elf_files_do_not_panic() {
    if !kit::need_program("gcc") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-Wl,--build-id"]);
    let (start, end) = text(&built.path);
    let queries: Vec<SymbolQuery> =
        (start..end).step_by(5).map(|a| SymbolQuery::from(FileOffset(a))).collect();
    let sound = std::fs::read(&built.path).unwrap();
    let path = built.folder().join("mutant");
    let mut dice = Dice(0x5eed_0000_0001);
    for round in 0..300 {
        let mut bytes = sound.clone();
        for _ in 0..=dice.next(20) {
            // Half of the changes hit the headers at both ends, where they do the most damage.
            let at = match dice.next(4) {
                0 => dice.next(0x400),
                1 => bytes.len() as u64 - 1 - dice.next(0x900),
                _ => dice.next(bytes.len() as u64),
            };
            bytes[at as usize] = [0, 0xff, 0x7f, 0x80, dice.next(256) as u8][dice.next(5) as usize];
        }
        if round % 10 == 0 {
            bytes.truncate(dice.next(bytes.len() as u64) as usize);
        }
        std::fs::write(&path, &bytes).unwrap();
        let one = Instant::now();
        let _ = resolve(plain(), SymbolModule::file(&path), &queries, Depth::Inlines);
        assert!(one.elapsed() < kit::PATIENCE, "round {round} took {:?}", one.elapsed());
    }
}

#[test]
fn implausible_compressed_section_sizes_are_rejected() {
    if !kit::need_program("gcc") || !kit::need_program("objcopy") {
        return;
    }
    // Six times 16 MiB of zeros compress to about 100 KiB.
    let zeros: String = ["str", "line_str", "loclists", "rnglists", "addr", "macro"]
        .iter()
        .map(|name| {
            format!("__asm__(\".section .debug_{name},\\\"\\\",@progbits\\n.zero 0x1000000\\n.text\");\n")
        })
        .collect();
    let bomb = build("gcc", ("bomb.c", &format!("{zeros}{C}")), &["-O2", "-g0"]);
    let honest = build("gcc", ("honest.c", C), &["-O2", "-g"]);
    for (built, name, is_unpacked) in [(bomb, ".debug_str", false), (honest, ".debug_info", true)] {
        let packed = Command::new("objcopy").arg("--compress-debug-sections=zlib").arg(&built.path).status();
        assert!(packed.expect("objcopy starts").success());
        let mut bytes = std::fs::read(&built.path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(elf::section(&file, name).is_some(), is_unpacked, "{name} of {} bytes", bytes.len());
        // An empty section far behind the end does not make the file larger.
        let index = file.section_by_name(".comment").expect("gcc writes it").index().0;
        let headers = u64::from_le_bytes(*bytes[40..].first_chunk().unwrap()) as usize;
        let place = headers + index * 64 + 24;
        bytes[place..place + 16].copy_from_slice(&[1 << 56, 0].map(u64::to_le_bytes).concat());
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!(file.section_by_name(".comment").unwrap().file_range(), Some((1 << 56, 0)));
        assert_eq!(elf::section(&file, name).is_some(), is_unpacked, "{name} of {} bytes", bytes.len());
    }
}

/// A program in assembly, whose debug information consists of one unit: abbreviations from number 2 on, and
/// entries in the unit. Label `unit` is the start of the unit.
fn assembly(abbreviations: &str, entries: &str) -> String {
    format!(
        r#"
        .section .debug_abbrev,"",@progbits
        .uleb128 1; .uleb128 0x11; .byte 1
        .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0
        {abbreviations}
        .uleb128 0
        .section .debug_info,"",@progbits
        unit: .long end-1f
        1: .short 4; .long 0; .byte 8
        .uleb128 1; .quad main; .quad 64
        {entries}
        .byte 0
        end:
        .text
        .globl main
        .type main,@function
        main: .fill 64,1,0x90
        .size main,64
        "#
    )
}

/// One unit whose entries nest `levels` deep, each one byte long.
fn nested(levels: usize) -> String {
    let abbreviations = "
        .uleb128 2; .uleb128 0x2e; .byte 1
        .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0
        .uleb128 3; .uleb128 0x1d; .byte 1; .uleb128 0; .uleb128 0";
    let entries = format!(
        "
        .uleb128 2; .quad main; .quad 64
        .fill {levels},1,3
        .fill {levels},1,0
        .byte 0"
    );
    assembly(abbreviations, &entries)
}

#[test]
fn excessive_inline_nesting_is_rejected_and_the_symbol_name_stays() {
    if !kit::need_program("gcc") {
        return;
    }
    for (levels, lines) in [(9_000, true), (3_000_000, false)] {
        let built = build("gcc", ("a.s", &nested(levels)), &["-no-pie"]);
        let start = built
            .run("nm", &["prog"])
            .lines()
            .find(|l| l.ends_with(" main"))
            .and_then(|l| u64::from_str_radix(l.split(' ').next()?, 16).ok())
            .unwrap();
        let queries = super::offsets(&built.path, &[start + 4]);
        let (symbolizer, id, answer) =
            resolve(plain(), SymbolModule::file(&built.path), &queries, Depth::Inlines);
        assert_eq!(&*symbolizer.names().function(answer.frames(0)[0].function).raw, "main");
        assert_eq!(symbolizer.quality(id).found().lines, lines, "{:?}", symbolizer.quality(id));
    }
}

/// A function `f` with a parameter `v`, whose structure has a member `late` in its second unnamed part. The
/// first part contains `entries` indirect entries. The function has nested blocks, and the variable `deep` in
/// the innermost one.
fn hidden_member(entries: usize, blocks: usize) -> String {
    let abbreviations = "
        .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 3; .uleb128 8
        .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0
        .uleb128 3; .uleb128 0x34; .byte 0; .uleb128 3; .uleb128 8
        .uleb128 0x49; .uleb128 0x13; .uleb128 2; .uleb128 0x18; .uleb128 0; .uleb128 0
        .uleb128 4; .uleb128 0x13; .byte 1; .uleb128 0; .uleb128 0
        .uleb128 5; .uleb128 0x0d; .byte 0; .uleb128 0x49; .uleb128 0x13; .uleb128 0; .uleb128 0
        .uleb128 6; .uleb128 0x0d; .byte 0; .uleb128 3; .uleb128 8
        .uleb128 0x49; .uleb128 0x13; .uleb128 0; .uleb128 0
        .uleb128 7; .uleb128 0x24; .byte 0; .uleb128 0x0b; .uleb128 0x0b; .uleb128 0; .uleb128 0
        .uleb128 8; .uleb128 0x0b; .byte 1; .uleb128 0; .uleb128 0
        .uleb128 9; .uleb128 0x21; .byte 0; .uleb128 0; .uleb128 0
        .uleb128 10; .uleb128 0x0b; .byte 1
        .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0";
    let entries = format!(
        r#"
        number: .uleb128 7; .byte 4
        whole: .uleb128 4; .uleb128 5; .long big-unit; .uleb128 5; .long small-unit; .byte 0
        big: .uleb128 4; .uleb128 8; .fill {entries},1,9; .byte 0,0
        small: .uleb128 4; .uleb128 6; .asciz "late"; .long number-unit; .byte 0
        .uleb128 2; .asciz "f"; .quad main; .quad 64
        .uleb128 3; .asciz "v"; .long whole-unit; .uleb128 2; .byte 0x77,0
        .rept {blocks}; .uleb128 10; .quad main; .quad 64; .endr
        .uleb128 3; .asciz "deep"; .long number-unit; .uleb128 2; .byte 0x77,8
        .fill {blocks},1,0
        .byte 0"#
    );
    assembly(abbreviations, &entries)
}

#[test]
fn search_for_a_variable_reads_a_bounded_number_of_entries() {
    if !kit::need_program("gcc") {
        return;
    }
    for (entries, is_found) in [(1000, true), (1_100_000, false)] {
        let built = build("gcc", ("a.s", &hidden_member(entries, 500_000)), &["-no-pie"]);
        let file = ProbeFile::open(&built.path, &plain()).unwrap();
        file.examine(|program| {
            let request = PlaceRequest { function: Some("f"), ..PlaceRequest::default() };
            let places = program.places(&request).unwrap();
            let fetch = |text| program.fetch(&places[0], text, None).map(|fetched| fetched.place);
            assert_eq!(fetch("v.late").is_ok(), is_found, "{entries}: {:?}", fetch("v.late"));
            assert_eq!(fetch("deep").unwrap(), "+8(%sp)");
        })
        .unwrap();
    }
}
