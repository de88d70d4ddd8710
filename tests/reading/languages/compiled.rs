//! Ahead-of-time compiled languages: C++, Rust, Go.

use super::*;

/// The frames up to `main`; stacks may continue after it.
const CPP: &[Wanted] = &[
    inlined("shop::Till<long>::ring", "ring"),
    at("shop::serve", "serve"),
    at("day", "day"),
    at("main", "main"),
];

#[track_caller]
fn cpp(flags: &[&str], options: &[&str]) {
    if !ready(&["g++"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.cpp"));
    let program = lab.text("prog");
    lab.run("g++", &[&["-O2", "-g", source.to_str().unwrap(), "-o", &program], flags].concat());
    let file = lab.record(options, &[&program]);
    expect_stack(&file, &source, CPP);
    expect_row(&file, &source, "prog", "shop::serve", "ring");
}

const FP: &[&str] = &["--call-graph", "fp"];
const DWARF: &[&str] = &["--call-graph", "dwarf"];

#[test]
fn cpp_with_frame_pointers_pie() {
    cpp(&["-fno-omit-frame-pointer", "-pie", "-fPIE"], FP);
}

#[test]
fn cpp_with_frame_pointers_static() {
    cpp(&["-fno-omit-frame-pointer", "-static", "-no-pie", "-fno-pie"], FP);
}

#[test]
fn cpp_without_frame_pointers_pie() {
    cpp(&["-fomit-frame-pointer", "-pie", "-fPIE"], DWARF);
}

#[test]
fn cpp_without_frame_pointers_static() {
    cpp(&["-fomit-frame-pointer", "-static", "-no-pie", "-fno-pie"], DWARF);
}

#[test]
fn cpp_without_frame_pointers_static_pie() {
    cpp(&["-fomit-frame-pointer", "-static-pie", "-fPIE"], DWARF);
}

#[test]
fn cpp_with_compressed_dwarf_4() {
    cpp(&["-fno-omit-frame-pointer", "-gdwarf-4", "-gz=zlib"], FP);
}

#[track_caller]
fn rust(flags: &[&str], options: &[&str], ring: &'static str) {
    if !ready(&["rustc", "cc"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.rs"));
    let program = lab.text("prog");
    let always = ["--edition", "2021", "-O", "-g", source.to_str().unwrap(), "-o", &program];
    lab.run("rustc", &[&always, flags].concat());
    let file = lab.record(options, &[&program]);
    let wanted = [
        inlined(ring, "ring"),
        at("shop::serve", "serve"),
        at("shop::week::day", "day"),
        at("shop::main", "main"),
    ];
    expect_stack(&file, &source, &wanted);
    expect_row(&file, &source, "prog", "shop::serve", "ring");
}

#[test]
fn rust_with_frame_pointers() {
    rust(&["-Cforce-frame-pointers=yes"], FP, "shop::Till<T>::ring");
}

#[test]
fn rust_without_frame_pointers_v0_mangling() {
    rust(&["-Cforce-frame-pointers=no", "-Csymbol-mangling-version=v0"], DWARF, "<shop::Till<u32>>::ring");
}

#[test]
fn go_with_frame_pointers_and_unwind_tables() {
    if !ready(&["go"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.go"));
    let program = lab.text("prog");
    // Go compresses its debug information.
    lab.run("go", &["build", "-o", &program, source.to_str().unwrap()]);
    let below = [
        at("main.serve", "serve"),
        at("main.day", "day"),
        at("main.main", "main"),
        named("runtime.main"),
        named("runtime.goexit.abi0"),
    ];
    for options in [FP, DWARF] {
        let file = lab.record(options, &[&program]);
        let document = report(&file);
        let trust = &document["trust"];
        let (rooted, whole) = (trust["rooted"].as_u64().unwrap(), trust["stacks"].as_u64().unwrap());
        assert!(rooted * 10 > whole * 9, "goexit begins a stack: {trust}");
        // The loop and the code inlined into it, which does most of the work, alternate as the innermost
        // frame. Their callers are the same.
        let lines = ["ring", "serve", "loop"].map(|mark| place(&source, mark));
        let stacks = stacks(&file);
        let hot = |stack: &&Vec<Frame>| stack.iter().any(|frame| frame.symbol == "main.serve");
        let hot: Vec<&Vec<Frame>> = stacks.iter().filter(hot).collect();
        let inner = |frame: &Frame| frame.place.as_ref().is_some_and(|place| lines.contains(place));
        let good = hot.iter().filter(|stack| inner(&stack[0])).count();
        assert!(hot.len() * 10 >= stacks.len() * 6 && good * 10 >= hot.len() * 6, "{good} of {}", hot.len());
        assert!(stacks.iter().any(|stack| stack[0].symbol == "main.(*Till).ring" && stack[0].inlined));
        expect_callers_of(&hot, &source, &below);
    }
}

#[test]
fn go_without_symbols() {
    if !ready(&["go"]) {
        return;
    }
    let (lab, source) = (Lab::new(), source("shop.go"));
    let callers =
        [at("main.day", "day"), at("main.main", "main"), named("runtime.main"), named("runtime.goexit")];
    for (mode, has_headers) in [("exe", true), ("pie", true), ("exe", false), ("pie", false)] {
        let program = lab.text(&format!("{mode}-{has_headers}"));
        let mode = format!("-buildmode={mode}");
        lab.run("go", &["build", "-ldflags=-s -w", &mode, "-o", &program, source.to_str().unwrap()]);
        if !has_headers {
            // e_shoff, e_shnum and e_shstrndx.
            let mut bytes = std::fs::read(&program).unwrap();
            bytes[40..48].fill(0);
            bytes[60..64].fill(0);
            std::fs::write(&program, bytes).unwrap();
        }
        for options in [FP, DWARF] {
            let stacks = stacks(&lab.record(options, &[&program]));
            let is_hot = |stack: &&Vec<Frame>| stack.iter().any(|frame| frame.symbol == "main.serve");
            let hot: Vec<&Vec<Frame>> = stacks.iter().filter(is_hot).collect();
            let lines = ["ring", "serve", "loop"].map(|mark| place(&source, mark));
            let is_good =
                |stack: &&&Vec<Frame>| stack[0].place.as_ref().is_some_and(|place| lines.contains(place));
            let good = hot.iter().filter(is_good).count();
            assert!(
                hot.len() * 10 >= stacks.len() * 6 && good * 10 >= hot.len() * 6,
                "{program}: {good} of {} of {}",
                hot.len(),
                stacks.len()
            );
            let is_inlined = |stack: &Vec<Frame>| {
                let [ring, serve, ..] = &stack[..] else { return false };
                ring.symbol == "main.(*Till).ring"
                    && ring.inlined
                    && ring.place.as_ref() == Some(&lines[0])
                    && serve.symbol == "main.serve"
                    && serve.place.as_ref() == Some(&lines[1])
            };
            assert!(stacks.iter().any(is_inlined), "{program}: {:#?}", hot[0]);
            expect_callers_of(&hot, &source, &callers);
        }
    }
}

/// Checks that the stacks continue with these frames, starting at the first of these functions.
#[track_caller]
fn expect_callers_of(stacks: &[&Vec<Frame>], source: &Path, wanted: &[Wanted]) {
    let whole = |stack: &Vec<Frame>| {
        let from = stack.iter().position(|frame| frame.symbol == wanted[0].symbol).unwrap_or(0);
        // The line in the loop may differ from the line of the inlined call.
        stack[from + 1..].iter().zip(&wanted[1..]).all(|(frame, wanted)| {
            let line = wanted.mark.map(|mark| place(source, mark));
            frame.symbol == wanted.symbol && (line.is_none() || frame.place == line)
        }) && stack.len() - from == wanted.len()
    };
    let good = stacks.iter().filter(|stack| whole(stack)).count();
    let other = stacks.iter().find(|stack| !whole(stack));
    assert!(good * 10 >= stacks.len() * 9, "{good} of {} have {wanted:?}; one is {other:#?}", stacks.len());
}
