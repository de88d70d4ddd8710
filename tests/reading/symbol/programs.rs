//! Programs of several compilers and kinds: names, lines and inlined functions at every address.

use pmc_symbols::symbol::{Depth, SymbolModule};

use super::{Built, C, CPP, build, compare, kit, offsets, plain, resolve};

/// Checks that addresses with lines agree. After the end of a function addr2line guesses that function's
/// name.
#[track_caller]
fn agrees(built: &Built, step: u64, least: usize, tolerated: f64) {
    let (all, other) = compare(built, plain(), step);
    let real: Vec<_> = other
        .iter()
        .filter(|(_, _, theirs)| !theirs.iter().all(|t| t.ends_with(":?") || t.ends_with(":0")))
        .collect();
    assert!(all >= least, "only {all} addresses");
    let share = real.len() as f64 / all as f64;
    assert!(
        share <= tolerated,
        "{} of {all} differ, the first: {:#x?}",
        real.len(),
        &real[..real.len().min(3)]
    );
}

#[test]
fn c_inlines_match_addr2line_at_every_address() {
    if !kit::need_program("gcc") || !kit::need_program("addr2line") {
        return;
    }
    for args in [
        &["-O2", "-g", "-pie", "-fPIE"][..],
        &["-O2", "-g", "-no-pie"],
        &["-O1", "-gdwarf-4", "-fPIE", "-pie"],
    ] {
        agrees(&build("gcc", ("a.c", C), args), 1, 300, 0.0);
    }
}

#[test]
fn compressed_debug_sections_are_read() {
    if !kit::need_program("gcc") || !kit::need_program("addr2line") {
        return;
    }
    agrees(&build("gcc", ("a.c", C), &["-O2", "-g", "-gz=zlib"]), 1, 300, 0.0);
}

#[test]
fn static_program_is_resolved() {
    if !kit::need_program("gcc") || !kit::need_program("addr2line") {
        return;
    }
    let built = build("gcc", ("a.c", C), &["-O2", "-g", "-static"]);
    let symbols = built.run("nm", &["-S", "--defined-only", "prog"]);
    let outer = symbols.lines().find(|l| l.ends_with(" outer")).unwrap();
    let start = u64::from_str_radix(outer.split(' ').next().unwrap(), 16).unwrap();
    assert!(start >= 0x40_0000);
    let queries = offsets(&built.path, &[start]);
    let (symbolizer, id, answer) = resolve(plain(), SymbolModule::file(&built.path), &queries, Depth::Names);
    assert_eq!(&*symbolizer.names().function(answer.frames(0)[0].function).raw, "outer");
    assert_eq!(symbolizer.address(id, queries[0]), Some(start));
}

#[test]
fn cpp_templates_match_addr2line() {
    if !kit::need_program("g++") || !kit::need_program("addr2line") {
        return;
    }
    agrees(&build("g++", ("a.cc", CPP), &["-O2", "-g"]), 1, 1000, 0.0);
}

#[test]
fn rust_matches_addr2line() {
    if !kit::need_program("rustc") || !kit::need_program("addr2line") {
        return;
    }
    let source = r#"
use std::collections::HashMap;
#[inline(always)]
fn weigh(x: u64) -> u64 { x.wrapping_mul(31) ^ (x >> 3) }
#[inline(never)]
pub fn busy(n: u64) -> u64 {
    let mut seen: HashMap<u64, Vec<u64>> = HashMap::new();
    for i in 0..n { seen.entry(weigh(i) % 7).or_default().push(i); }
    seen.values().flat_map(|v| v.iter()).map(|x| weigh(*x)).sum()
}
fn main() { println!("{}", busy(std::env::args().count() as u64 * 100)); }
"#;
    for mangling in [&[][..], &["-Csymbol-mangling-version=v0"]] {
        let built = build("rustc", ("a.rs", source), &[&["-O", "-g"], mangling].concat());
        // The standard library is compared too; the tools disagree on a few addresses of merged functions.
        agrees(&built, 7, 1000, 0.02);
        let listed = built.run("nm", &["--defined-only", "prog"]);
        let busy = listed.lines().find(|l| l.contains("4busy")).unwrap();
        let start = u64::from_str_radix(busy.split(' ').next().unwrap(), 16).unwrap();
        let (symbolizer, _, answer) =
            resolve(plain(), SymbolModule::file(&built.path), &offsets(&built.path, &[start]), Depth::Names);
        let function = symbolizer.names().function(answer.frames(0)[0].function);
        assert_eq!(&*function.name, "a::busy", "{mangling:?}");
        assert_eq!(function.start, Some(start));
    }
}

#[test]
fn cpp_names_match_cppfilt() {
    if !kit::need_program("g++") || !kit::need_program("c++filt") {
        return;
    }
    let built = build("g++", ("a.cc", CPP), &["-O1", "-g"]);
    let listed = built.run("nm", &["--defined-only", "-j", "prog"]);
    let mangled: Vec<&str> =
        listed.lines().filter(|n| n.starts_with("_Z") && !n.contains(['.', '@'])).collect();
    assert!(mangled.len() > 20);
    let mut args = vec!["-p"];
    args.extend(&mangled);
    let theirs = built.run("c++filt", &args);
    let functions = mangled.iter().zip(theirs.lines()).filter(|(raw, _)| !raw.starts_with("_ZT"));
    let (mut same, mut all) = (0, 0);
    for (raw, their) in functions {
        all += 1;
        same += usize::from(pmc_symbols::symbol::demangle::demangle(raw).as_deref() == Some(their));
    }
    assert!(same * 10 >= all * 9, "{same} of {all}");
}

#[test]
fn plt_stubs_are_named_after_their_target() {
    if !kit::need_program("gcc") || !kit::need_program("objdump") {
        return;
    }
    for args in [&["-O2"][..], &["-O2", "-fcf-protection=full", "-Wl,-z,lazy"], &["-O2", "-Wl,-z,now"]] {
        let built = build("gcc", ("a.c", C), args);
        let listed = built.run("objdump", &["-d", "prog"]);
        let stubs: Vec<(u64, &str)> = listed
            .lines()
            .filter_map(|l| l.strip_suffix(">:"))
            .filter_map(|l| l.split_once(" <"))
            .filter(|(_, name)| name.ends_with("@plt"))
            .filter_map(|(address, name)| Some((u64::from_str_radix(address, 16).ok()?, name)))
            .collect();
        let addresses: Vec<u64> = stubs.iter().map(|(address, _)| *address + 4).collect();
        let queries = offsets(&built.path, &addresses);
        let (symbolizer, _, answer) =
            resolve(plain(), SymbolModule::file(&built.path), &queries, Depth::Names);
        assert!(!stubs.is_empty());
        for (index, (address, name)) in stubs.iter().enumerate() {
            let frame =
                answer.frames(index).first().unwrap_or_else(|| panic!("nothing at {address:#x} {name}"));
            assert_eq!(&*symbolizer.names().function(frame.function).raw, *name);
        }
    }
}
