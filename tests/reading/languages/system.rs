//! Kernel and vdso frames, followed by the program's own lines.

use super::*;

#[test]
fn kernel_and_vdso_frames_are_named_and_callers_have_lines() {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let seen = text.lines().any(|line| !line.starts_with("0000000000000000"));
    let has_vdso = std::fs::read_to_string("/proc/self/maps").unwrap().contains("[vdso]");
    if !ready(&["gcc"])
        || !kit::need_root()
        || !kit::need("kallsyms", seen, "the kernel hides the addresses of its functions")
        || !kit::need("vdso", has_vdso, "this kernel lends no vdso")
    {
        return;
    }
    let (lab, source) = (Lab::new(), source("kernel.c"));
    let program = lab.text("prog");
    lab.run("gcc", &["-O1", "-g", source.to_str().unwrap(), "-o", &program]);
    let file = lab.record(&["--call-graph", "dwarf"], &[&program]);
    let stacks = stacks(&file);

    // A read of zeros: the kernel's own functions, then read(2) in the C library, then the program.
    let (fetch, look) = (place(&source, "fetch"), place(&source, "look"));
    let calls = |stack: &Vec<Frame>, symbol: &str, line: &(String, u64)| {
        stack.iter().position(|frame| frame.symbol == symbol && frame.place.as_ref() == Some(line))
    };
    let kernel_names: std::collections::HashSet<&str> =
        text.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    let in_kernel = |frame: &Frame| frame.dso.starts_with("[kernel") || frame.dso.starts_with("[guest");
    let reads: Vec<(&Vec<Frame>, usize)> =
        stacks.iter().filter_map(|stack| Some((stack, calls(stack, "fetch", &fetch)?))).collect();
    let deep = reads.iter().filter(|(stack, _)| in_kernel(&stack[0])).count();
    assert!(
        deep >= least_samples(150, 2000),
        "{deep} of {} stacks lead from the kernel to fetch",
        stacks.len()
    );
    for (stack, fetch) in &reads {
        for frame in stack[..*fetch].iter().filter(|frame| in_kernel(frame)) {
            assert!(kernel_names.contains(&*frame.symbol), "{frame:?} is no function of this kernel");
        }
        assert_eq!(stack[fetch + 1].symbol, "main");
        assert_eq!(stack[fetch + 1].place, Some(place(&source, "main fetch")));
    }

    let in_vdso: Vec<&Vec<Frame>> = stacks.iter().filter(|stack| stack[0].dso.contains("[vdso]")).collect();
    // A quarter of the time in `look`, or more.
    assert!(
        in_vdso.len() >= least_samples(100, 2000),
        "{} of {} stacks begin in the vdso",
        in_vdso.len(),
        stacks.len()
    );
    let named = in_vdso.iter().filter(|stack| stack[0].symbol.contains("clock_gettime")).count();
    let led = in_vdso.iter().filter(|stack| calls(stack, "look", &look).is_some()).count();
    let last = in_vdso.last();
    assert!(named * 10 >= in_vdso.len() * 9, "{named} of {} have a name: {last:#?}", in_vdso.len());
    assert!(led * 10 >= in_vdso.len() * 9, "{led} of {} lead to look: {last:#?}", in_vdso.len());
}
