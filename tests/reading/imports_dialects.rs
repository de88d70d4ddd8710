//! Dialects of the formats of other programs, and files of which a part is odd: every whole record is read, and
//! a message names what was skipped. `fuzz/README.md` lists the writers of the files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::imports::{folded, run, sums, theirs};
use crate::kit::burn::busy_shell;
use crate::kit::{self, Ran};

/// Writes a profile into a temporary folder.
fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile");
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// Returns the folded stacks of a profile, as text.
fn stacks_of(content: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(content);
    text_of(&path)
}

fn text_of(path: &Path) -> String {
    let stacks = folded(path, "");
    stacks.into_iter().map(|(stack, sum)| format!("{stack} {sum}\n")).collect()
}

/// Reports a profile, which must end with this status.
fn report(content: impl AsRef<[u8]>, status: i32) -> Ran {
    let (_folder, path) = file(content);
    run("report --stdio -g none", &path).expect(status)
}

#[test]
fn perf_script_text_may_lack_any_field() {
    for (name, expected) in [
        ("nocomm", "main;spin 250000\n"),
        ("noevent", "shop;main;spin 250000\n"),
        ("srcline", "shop;start;main;spin 250000\n"),
        ("stacksonly", "main;spin 2\n"),
        ("no-ip", "a;[not mapped] 20\n"),
        ("hash-comm", "#1_pool;spin 250000\nworker;spin 250000\n"),
        ("empty-comm", "spin 250000\n"),
    ] {
        assert_eq!(text_of(&theirs(&format!("perf-{name}.script.txt"))), expected, "{name}");
    }
    let lines = run("report --stdio -s srcline -g none", &theirs("perf-srcline.script.txt")).expect(0);
    lines.prints(&["shop.c:12", "shop.c:30"]);
    // Thread IDs and times are kept without a name, and the name without an ID.
    let script = run("script -F tid,time,period", &theirs("perf-nocomm.script.txt")).expect(0);
    script.prints(&["101", "10.000100:", "250000"]);
    assert_eq!(
        stacks_of("\t          401136 spin\n\t          401200 main\n\n\t          401200 main\n"),
        "main 1\nmain;spin 1\n"
    );
    assert_eq!(
        stacks_of("io \n\t          401136 spin\n\nweb me \n\t          401200 main\n\n"),
        "io;spin 1\nweb_me;main 1\n"
    );
    assert_eq!(stacks_of("  70000000 cycles: \n\t          401136 spin (/bin/a)\n\n"), "spin 70000000\n");
    // A name that looks like a comment, before comments and without a time.
    let hash = "# cmdline : perf record\n# 7 is a number\n\n# a 12/13 [001] 1.5: 3 cycles:u: \n\t          401136 f (/bin/a)\n\n\
                #b 12 cycles:u: \n\t          401136 f (/bin/a)\n";
    assert_eq!(stacks_of(hash), "#_a;f 3\n#b;f 1\n");
    // A name that is empty or a number, in lines without a call chain.
    let flat = "                 103 10.5: cycles:   401136 f (/bin/a)\n              77 104 10.6: cycles:   401136 f (/bin/a)\n";
    assert_eq!(stacks_of(flat), "77;f 1\nf 1\n");
    // FlameGraph's Java sample: frames are not indented.
    let java = "java 25607 4794564.109216: cycles:\n7f94c1cc9a4d Interpreter (/tmp/perf-25607.map)\n\
                7f94c1cc9b00 Lorg/a/B;::run (/tmp/perf-25607.map)\n\njava 25607 4794564.2: cycles:\n\
                7f94c1cc9a4d Interpreter (/tmp/perf-25607.map)\n";
    assert_eq!(stacks_of(java), "java;Interpreter 1\njava;Lorg/a/B:::run;Interpreter 1\n");
}

#[test]
fn perf_script_text_keeps_symbols_with_one_address_apart() {
    let expected = "dot;IA__FcFontSetList;FcListAppend 774224\n\
                    dot;main;FcPatternObjectInsertElt;__GI___libc_malloc 774224\n";
    assert_eq!(text_of(&theirs("perf-alias-inlined.script.txt")), expected);
    let inlined = |first: &str| {
        format!(
            "a 1 1.5: cycles: \n\t          {first} inner (inlined)\n\t          401136 outer (/bin/a)\n\t          401200 main (/bin/b)\n"
        )
    };
    let modules = |text: &str| {
        let (_folder, path) = file(text);
        run("report --csv -s dso,sym -g none --no-children", &path).expect(0).stdout
    };
    assert!(modules(&inlined("401136")).contains("a,[.] outer"));
    assert!(modules(&inlined("401137")).contains("unknown,[.] inner"));
}

/// perf itself prints a recording with each selection of fields.
#[test]
fn perf_script_text_of_perf_is_read_with_all_fields() {
    if !kit::need_program("perf") {
        return;
    }
    let recording = kit::data("perfdata/fp.data");
    let imported = |fields: &[&str]| {
        let ran = Command::new("perf").arg("script").args(fields).arg("-i").arg(&recording).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let (_folder, path) = file(ran.stdout);
        let ran = run("report --csv -n -s comm,sym -g none --no-children", &path).expect(0);
        assert!(!ran.stderr.contains("skipped"), "{fields:?}: {}", ran.stderr);
        // Without the name of the event, which may be missing.
        let rows: Vec<String> =
            ran.stdout.lines().filter_map(|row| Some(row.split_once(',')?.1.to_owned())).collect();
        (rows, folded(&path, "").values().sum::<u64>())
    };
    let (rows, sum) = imported(&[]);
    assert!(rows.len() > 3 && sum > 0, "{rows:?}");
    for fields in ["+pid", "+misc", "+srcline", "+misc,+srcline,+pid", "comm,tid,time,period,ip,sym,dso"] {
        let fields = ["-F", fields];
        assert_eq!(imported(&fields), (rows.clone(), sum), "{fields:?}");
    }
    let (_, samples) = imported(&["-F", "comm,tid,time,event,ip,sym,dso"]);
    for fields in
        ["ip,sym", "comm,ip,sym", "tid,time,event,ip,sym", "time,ip,sym,dso", "event,ip,sym", "comm,time"]
    {
        assert_eq!(imported(&["-F", fields]).1, samples, "{fields}");
    }
}

#[test]
fn odd_lines_are_skipped_counted_and_named() {
    // A field that pmc does not import is no loss.
    let fields = "a 1 1.5: 7 cycles: \n\t          401136 f (/bin/a)\n insn: 48 3d e8 03\na 1 1.6: 7 cycles: \n\
                  \t          401136 f (/bin/a)\n ilen: 4 insn: 48\n";
    report(fields, 0).says(&["line 3: pmc does not import this field; 2 records skipped, this is the first"]);
    let odd = "a 1 1.5: 7 cycles: \n\t          401136 f (/bin/a)\n\nSegmentation fault\n\na 1 1.6: 7 cycles: \n\
               \t          401136 f (/bin/a)\n\t          401137 g (/bin/a)\n";
    let ran = report(odd, 1);
    let ran = ran.says(&["as perf script text: line 4: a sample must begin with", "1 record skipped"]);
    ran.prints(&["Event count (approx.): 14"]);
    // A frame without an address.
    let frame = "a 1 1.5: 7 cycles: \n\t          401136 f (/bin/a)\n\t          zz g\n\t          401200 main (/bin/a)\n";
    report(frame, 1).says(&["as perf script text: line 3: "]);
    assert_eq!(lossy_stacks_of(frame), "a;main;f 7\n");
    let lines = format!("{}a;b\n{}a;c\n", "a;b 1\n".repeat(20), "a;b 2\n".repeat(20));
    let ran = report(&lines, 1);
    let ran = ran.says(&[
        "as folded stacks: line 21: a folded stack must end with",
        "2 records skipped, this is the first",
    ]);
    ran.prints(&["Event count (approx.): 60"]);
    // Other commands end in the same way.
    let (_folder, path) = file(&lines);
    run("export -q --format folded -o -", &path).expect(1).prints(&["b 60"]);
    run("script", &path).expect(1).says(&["line 21"]);
    let archive = path.with_extension("data");
    let path = path.to_str().unwrap();
    kit::run(&["diff", path, path]).expect(1).says(&["line 21"]);
    kit::run(&["archive", path, "-o", archive.to_str().unwrap()]).expect(1).says(&["line 21"]);
    assert_eq!(stacks_of(fs::read(&archive).unwrap()), "a;b 60\n");
    report("a;b 1\na;c\na;d 2\n", 1).says(&["line 2: a folded stack must end with", "1 record skipped"]);
    report("a 1\nb\nc 2\n", 1).says(&["not a perf.data file"]);
    report("a;b 1\na;c 2\nd;e -3\n", 1).says(&["line 3: a weight must not be negative", "1 record skipped"]);
}

#[test]
fn folded_stacks_of_py_spy_keep_processes_and_threads() {
    let ran = run("report --stdio -g none", &theirs("py-spy-empty-stack.folded")).expect(0);
    ran.clone().prints(&["Event count (approx.): 211"]);
    ran.says(&["line 2: this line has a weight, but no stack; 1 record skipped"]);
    let path = theirs("py-spy-subprocesses.folded");
    run("report --csv -n -s pid,comm -g none", &path).expect(0).prints(&["18632", "117", "MainThread"]);
    let stacks = text_of(&path);
    assert!(stacks.contains("MainThread;<module>;worker;mid 3\n") && !stacks.contains("process"), "{stacks}");
    // Several empty stacks, one at the start; parents, commands with separators, and Python's own IDs.
    let ran = report(" 4\nf (a.py:1) 1\n;; 2\n", 0);
    ran.says(&["line 1: this line has a weight, but no stack; 2 records skipped"]);
    let nested = "process 1:\"sh -c a; b\";process 7:\"/usr/bin/python3 x.py\";f (x.py:1) 2\n\
                  process 1:\"sh -c a; b\";process 8:\"python3 y.py\";thread (0x7F31C2FFD6C0): io;g (y.py:2) 3\n";
    assert_eq!(stacks_of(nested), "io;g 3\npython3;f 2\n");
    let (_folder, path) = file(nested);
    run("script -F comm,pid,tid", &path).expect(0).prints(&["7/7", "8/8"]);
}

#[test]
fn folded_stacks_may_begin_with_a_number_sign_or_an_address() {
    assert_eq!(text_of(&theirs("hash.folded")), "#hash;main;f 3\nb;main;f 4\n");
    let stacks = "# a comment\n# 12 stacks; of 12\n# pool;f 3\n#1 4\n##\n";
    assert_eq!(stacks_of(stacks), "#1;[not mapped] 4\n#_pool;f 3\n");
    // Threads whose form is certain are threads, although others have no name.
    assert_eq!(
        stacks_of("thread (7): io;f (a.py:1) 2\n<module> (a.py:3);g (a.py:1) 3\n"),
        "<module>;g 3\nio;f 2\n"
    );
    assert_eq!(stacks_of("[main tid=7];a/B.run 2\nstart_thread;g 3\n"), "main;a/B.run 2\nstart_thread;g 3\n");
    // Functions may be called like the header of a sample in perf's text.
    let odd = "app;main;a 6\napp;main;b+0x7 (/lib/x.7):   2000 cpu-clock:u:;main;c 2\napp;main;  116d c 3\n";
    assert!(stacks_of(odd).contains("cpu-clock:u:;main;c 2\n"), "{}", stacks_of(odd));
    // The roots of LuaJIT's profiler are addresses and lines.
    assert_eq!(stacks_of("@0x00405a10;f 2\n@0x00405a10;g 3\n"), "@0x00405a10;f 2\n@0x00405a10;g 3\n");
    assert_eq!(stacks_of("main.lua:3;f 2\nmain.lua:3;g 3\n"), "main.lua:3;f 2\nmain.lua:3;g 3\n");
}

#[test]
fn fractions_of_weights_are_kept() {
    for (text, sums, unit) in [
        ("main;a 0.25\nmain;b 0.5\n", [25, 50], "1/100"),
        ("main;a 1e-05\nmain;b 3\n", [1, 300_000], "1/100000"),
    ] {
        let (_folder, path) = file(text);
        let expected = [("main;a".to_owned(), sums[0]), ("main;b".to_owned(), sums[1])];
        assert_eq!(folded(&path, ""), BTreeMap::from(expected));
        run("report --stdio", &path).expect(0).says(&["weights have fractions", unit]);
    }
    assert_eq!(stacks_of("main;a 2.0\nmain;b 3.00\n"), "main;a 2\nmain;b 3\n");
}

#[test]
fn stacks_of_bpftrace_and_bcc_are_read() {
    let expected = "main;work;schedule;finish_task_switch.isra.0 12\nmain;work;spin 30\n";
    assert_eq!(text_of(&theirs("bpftrace.txt")), expected);
    let maps = "@on[app, 7,\n    work+20\n    main+12\n]: 3\n@off[app, 7,\n    do_wait+1\n,\n    main+12\n]: 5\n@on[\n    work+20\n";
    let ran = report(maps, 1);
    ran.clone().prints(&["event 'on'", "event 'off'"]);
    ran.says(&[
        "as bpftrace and bcc stacks: line 10: the stack that begins here does not end",
        "1 record skipped",
    ]);
    let bcc = "Tracing off-CPU time (us) of PID 7 by user + kernel stack... Hit Ctrl-C to end.\n\n    b'schedule'\n    --\n    \
               b'main'\n    -                app (7)\n        12\n\n";
    assert_eq!(stacks_of(bcc), "app;main;schedule 12000\n");
    report(bcc, 0).prints(&["event 'time (nanoseconds)'"]);
}

#[test]
fn callgrind_jumps_define_names() {
    let path = theirs("collect-jumps.callgrind");
    assert_eq!(folded(&path, "").values().sum::<u64>(), 100);
    run("report --csv -s srcline -g none --no-children", &path).expect(0).prints(&["b.h:9", "a.c:5"]);
    let jfn = "events: Ir\nfl=(1) a.c\nfn=(1) main\njfn=(2) other\njump=3 +4\n3\n5 1\nfn=(2)\n7 2\n";
    assert_eq!(stacks_of(jfn), "main 1\nother 2\n");
    // A broken line is skipped, and so are the costs of a function without a name.
    let ran = report("events: Ir\nfn=(1) a\n1 5\nfn=(9)\n1 7\nfn=(1)\n2 x\n2 8\n", 1);
    let ran =
        ran.says(&["as callgrind: line 4: fn= refers to a number without a name: (9)", "3 records skipped"]);
    ran.prints(&["Event count (approx.): 13"]);
}

#[test]
fn callgrind_recursion_keeps_inclusive_costs() {
    let path = theirs("pyprof2calltree-cycle.callgrind");
    let stacks = folded(&path, "");
    let (own, inclusive) = sums(&stacks);
    let total = stacks.values().sum::<u64>();
    assert_eq!((total, own["leaf"], own["main"]), (77_123_034, 76_537_612, 130_904));
    // The costs of the calls of these functions in the file.
    for (name, cost) in
        [("main", 76_730_371), ("work", 76_599_467), ("<module>", 77_112_969), ("get_code", 115_672)]
    {
        assert!(inclusive[name].abs_diff(cost) < total / 5_000, "{name}: {}", inclusive[name]);
    }
    // The costs of calls of active functions are missing, as callgrind writes them.
    let mutual = "events: Ir\nfn=main\n1 5\ncfn=f\ncalls=1 2\n1 100\nfn=f\n2 70\ncfn=g\ncalls=2 3\n2 60\nfn=g\n3 30\n\
                  cfn=f\ncalls=1 2\n3 0\n";
    assert_eq!(stacks_of(mutual), "main 5\nmain;f 40\nmain;f;g 30\nmain;f;g;f 30\n");
    // With an own caller of the other function, and with a function that the recursive ones call.
    let shared = "events: Ir\nfn=main\n1 5\ncfn=f\ncalls=1 2\n1 100\ncfn=h\ncalls=1 4\n1 50\nfn=f\n2 10\ncfn=f\ncalls=9 2\n2 0\n\
                  cfn=h\ncalls=2 4\n2 90\nfn=h\n4 140\n";
    assert_eq!(stacks_of(shared), "main 5\nmain;f 10\nmain;f;h 90\nmain;h 50\n");
}

/// Each event's inclusive costs equal those in the file.
#[test]
fn callgrind_events_are_divided_separately() {
    let text = "events: Ir Dr\nfn=main\n1 1 1\ncfn=a\ncalls=1 2\n1 10 90\ncfn=b\ncalls=1 3\n1 90 10\nfn=a\n2 0 0\ncfn=c\n\
                calls=1 4\n2 10 90\nfn=b\n3 0 0\ncfn=c\ncalls=1 4\n3 90 10\nfn=c\n4 100 100\n";
    let (_folder, path) = file(text);
    for (event, a, b) in [("Ir", 10, 90), ("Dr", 90, 10)] {
        let stacks = folded(&path, event);
        let (_, inclusive) = sums(&stacks);
        assert_eq!((inclusive["a"], inclusive["b"]), (a, b), "{event}");
    }
}

/// callgrind itself, of a program with jumps, recursion, and functions that call each other.
#[test]
fn callgrind_costs_of_a_recursive_program_equal_those_of_callgrind_annotate() {
    if !kit::need_program("valgrind") || !kit::need_program("callgrind_annotate") || !kit::need_program("cc")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [program, out] = ["recursive", "out"].map(|name| folder.path().join(name));
    let done = |command: &mut Command| {
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let flags = ["-g", "-O1", "-fno-inline", "-fno-optimize-sibling-calls", "-o"];
    done(Command::new("cc").args(flags).arg(&program).arg(kit::data("recursive.c")));
    let options = ["-q", "--tool=callgrind", "--collect-jumps=yes", "--callgrind-out-file"];
    let options = options.map(|option| match option {
        "--callgrind-out-file" => format!("{option}={}", out.display()),
        _ => option.to_owned(),
    });
    done(Command::new("valgrind").args(options).arg(&program));
    // Its rows: `12,345 (1.23%)  file:function [object]`.
    let annotated = |option: &str| -> BTreeMap<String, u64> {
        let text =
            done(Command::new("callgrind_annotate").args([option, "--threshold=100", "--auto=no"]).arg(&out));
        let row = |line: &str| {
            let (cost, rest) = line.trim().split_once(" (")?;
            let (_, name) = rest.split_once("recursive.c:")?;
            let name = name.split(" [").next()?.trim().to_owned();
            Some((name, cost.replace(',', "").parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    };
    let stacks = folded(&out, "");
    let (own, inclusive) = sums(&stacks);
    let total = stacks.values().sum::<u64>();
    let own_costs = annotated("--inclusive=no");
    assert!(own_costs.len() >= 8, "{own_costs:?}");
    for (name, cost) in &own_costs {
        assert_eq!(own.get(&**name), Some(cost), "{name}");
    }
    // callgrind counts the inner calls of recursive functions several times, but not those of their callers.
    for (name, cost) in annotated("--inclusive=yes").iter().filter(|(name, _)| !name.contains('\'')) {
        let error = inclusive[&**name].abs_diff(*cost) as f64 / total as f64;
        let most = if ["even", "odd"].contains(&&**name) { 0.02 } else { 0.0005 };
        assert!(error < most, "{name}: {} instead of {cost} of {total}", inclusive[&**name]);
    }
}

#[test]
fn slices_of_traces_keep_their_lengths() {
    let inclusive = |path: &Path| -> BTreeMap<String, u64> {
        let stacks = folded(path, "");
        sums(&stacks).1.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect()
    };
    let expected = |lengths: &[(&str, u64)]| -> BTreeMap<String, u64> {
        lengths.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect()
    };
    let path = theirs("overlap.trace.json");
    assert_eq!(inclusive(&path), expected(&[("A", 50_000), ("B", 50_000), ("C", 10_000)]));
    // An end closes the slice of its name and ID; without a name, it closes the last one.
    let begins_and_ends = r#"[{"name":"A","ph":"B","ts":0,"pid":1,"tid":1},{"name":"B","ph":"B","ts":10,"pid":1,"tid":1},
        {"name":"A","ph":"E","ts":40,"pid":1,"tid":1},{"name":"B","ph":"E","ts":45,"pid":1,"tid":1},
        {"name":"D","id":1,"ph":"B","ts":50,"pid":1,"tid":1},{"name":"D","id":2,"ph":"B","ts":51,"pid":1,"tid":1},
        {"name":"D","id":1,"ph":"E","ts":53,"pid":1,"tid":1},{"ph":"E","ts":55,"pid":1,"tid":1}]"#;
    let (_folder, path) = file(begins_and_ends);
    assert_eq!(inclusive(&path), expected(&[("A", 40_000), ("B", 35_000), ("D", 5_000)]));
    // One nanosecond of overlap.
    let close = r#"[{"name":"A","ph":"X","ts":0,"dur":161.001,"pid":1,"tid":1},{"name":"B","ph":"X","ts":161,"dur":50,"pid":1,"tid":1}]"#;
    let (_folder, path) = file(close);
    assert_eq!(inclusive(&path), expected(&[("A", 161_001), ("B", 50_000)]));
    // Ends and begins without a counterpart are counted.
    let cut = r#"[{"name":"A","ph":"E","ts":1,"pid":1,"tid":1},{"name":"B","ph":"B","ts":2,"pid":1,"tid":1},
        {"name":"C","ph":"X","ts":3,"dur":4,"pid":1,"tid":1},{"name":"i","ph":"i","ts":3},{"name":"i","ph":"C","ts":3}]"#;
    report(cut, 0).says(&[
        "at 1.000 µs: the trace does not contain the begin",
        "at 7.000 µs: the trace does not contain the end",
        "event 3: only slices of a thread (B, E, X) and samples are imported; 2 records skipped",
    ]);
}

#[test]
fn times_and_threads_of_traces_may_be_texts() {
    let path = theirs("text-times.trace.json");
    assert_eq!(text_of(&path), "main;A 14500\nmain;A;B 5500\n");
    let null = r#"[{"name":"A","ph":"X","ts":null,"dur":5,"pid":1,"tid":"io"},{"name":"B","ph":"X","ts":"7","dur":"x","pid":1,"tid":"io"},
        {"name":"C","ph":"X","ts":7,"dur":"1e1","pid":1,"tid":"io"},{"name":"D","ph":"X","ts":7,"dur":2,"pid":1,"tid":"web"}]"#;
    let ran = report(null, 1);
    ran.says(&["as Chrome trace: event 0: its time (ts) must be a number; 2 records skipped"]);
    assert_eq!(lossy_stacks_of(null), "io;C 10000\nweb;D 2000\n");
    // The whole events of a file that ends in the middle.
    for (start, end) in [("[", ""), (r#"{"otherData":{},"traceEvents":["#, "")] {
        let cut = format!(
            r#"{start}{{"name":"A","ph":"X","ts":1,"dur":5,"pid":1,"tid":1}},{{"name":"B","ph":{end}"#
        );
        report(&cut, 1).says(&["the file is damaged or cut off in or after this record", "1 record skipped"]);
        assert_eq!(lossy_stacks_of(&cut), "A 5000\n");
    }
}

/// Returns the folded stacks of a profile of which a part cannot be read.
fn lossy_stacks_of(content: impl AsRef<[u8]>) -> String {
    let (_folder, path) = file(content);
    run("export -q --format folded -o -", &path).expect(1).stdout
}

#[test]
fn sums_in_traces_of_clang_are_no_time() {
    let path = theirs("clang-14.trace.json.gz");
    let stacks = folded(&path, "");
    assert_eq!(stacks.values().sum::<u64>(), 69_602_000);
    let (_, inclusive) = sums(&stacks);
    assert_eq!(inclusive["ExecuteCompiler"], 69_602_000);
    assert!(inclusive.contains_key("/usr/include/stdlib.h"), "{inclusive:?}");
    assert!(!inclusive.keys().any(|name| name.starts_with("Total ")));
    // A function may have such a name.
    let named = r#"[{"name":"Total cost","ph":"X","ts":1,"dur":5,"pid":1,"tid":1,"args":{"detail":"x y"}},
        {"name":"Total Source","ph":"X","ts":0,"dur":99,"pid":1,"tid":2,"args":{"count":3,"avg ms":1}}]"#;
    assert_eq!(stacks_of(named), "Total cost;x y 5000\n");
}

#[test]
fn sampled_profiles_of_one_thread_are_separate_events() {
    let path = theirs("node-two-profiles.trace.json.gz");
    let ran = run("report --stdio -g none", &path).expect(0);
    ran.says(&["the trace has samples, so its slices are not imported; 4 records skipped"]).prints(&[
        "event 'time (nanoseconds)'\n# Event count (approx.): 223474000",
        "event 'time of profile 2 (nanoseconds)'\n# Event count (approx.): 202255000",
    ]);
}

#[test]
fn v8_profiles_are_read_out_of_answers_of_the_protocol() {
    let profile = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3,4]},
        {"id":2,"callFrame":{"functionName":"(garbage collector)"}},{"id":3,"callFrame":{"functionName":"(program)"}},
        {"id":4,"callFrame":{"functionName":"main","url":"a.js","lineNumber":1}}],
        "startTime":0,"endTime":60,"samples":[2,3,4],"timeDeltas":[10,20,10]}"#;
    let stacks = "(garbage collector) 20000\n(program) 10000\nmain 20000\n";
    for text in [
        profile.to_owned(),
        format!(r#"{{"id":5,"result":{{"profile":{profile}}}}}"#),
        format!(r#"{{"profile":{profile}}}"#),
    ] {
        assert_eq!(stacks_of(&text), stacks);
        report(&text, 0).prints(&["[.] (garbage collector)", "[.] (program)"]);
    }
    let unpaired = profile.replace("[10,20,10]", "[10,20]");
    report(&unpaired, 1).says(&["as V8 CPU profile: sample 2: each sample must have an entry in timeDeltas"]);
}

/// Returns a profile with the types `alloc_space`, `inuse_space` and `objects`, of one function for each sample.
fn pprof(default: i64, samples: &[(u64, [i64; 3])], label: Option<&str>) -> Vec<u8> {
    let field = |number: u64, bytes: &[u8]| {
        let mut out = Vec::new();
        put_varint(&mut out, number << 3 | 2);
        put_varint(&mut out, bytes.len() as u64);
        out.extend(bytes);
        out
    };
    let numbers = |fields: &[(u64, u64)]| {
        let mut out = Vec::new();
        for (number, value) in fields {
            put_varint(&mut out, number << 3);
            put_varint(&mut out, *value);
        }
        out
    };
    let mut out = Vec::new();
    for kind in 1..=3 {
        out.extend(field(1, &numbers(&[(1, kind)])));
    }
    for (function, values) in samples {
        let mut sample = numbers(&[(1, *function)]);
        values.iter().for_each(|value| sample.extend(numbers(&[(2, *value as u64)])));
        if label.is_some() {
            sample.extend(field(3, &numbers(&[(1, 6), (2, 5)])));
        }
        out.extend(field(2, &sample));
    }
    for id in [1, 2] {
        out.extend(field(4, &[numbers(&[(1, id)]), field(4, &numbers(&[(1, id)]))].concat()));
        out.extend(field(5, &numbers(&[(1, id), (2, id + 3)])));
    }
    for text in ["", "alloc_space", "inuse_space", "objects", "f", "g", label.unwrap_or_default()] {
        out.extend(field(6, text.as_bytes()));
    }
    out.extend(numbers(&[(14, default as u64)]));
    out
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[test]
fn default_sample_type_of_pprof_comes_first() {
    let samples = [(1, [10, 5, 1]), (2, [20, 7, 2])];
    // The second type, no default (then it is the last type), and the first type.
    for (default, expected) in [(2, "f 5\ng 7\n"), (0, "f 1\ng 2\n"), (1, "f 10\ng 20\n")] {
        assert_eq!(stacks_of(pprof(default, &samples, None)), expected, "{default}");
    }
    report(pprof(2, &samples, None), 0).prints(&[
        "event 'alloc_space'",
        "event 'inuse_space'",
        "event 'objects'",
    ]);
    // Go's heap profile names `inuse_space`.
    let heap = run("export -q --format svg -o -", &theirs("go.heap.pb.gz")).expect(0);
    heap.prints(&["all (3,442,312 "]);
}

#[test]
fn labels_and_negative_values_of_pprof_are_counted() {
    let samples = [(1, [10, 5, 1]), (2, [20, -7, 2])];
    let ran = report(pprof(2, &samples, Some("endpoint")), 1);
    let ran = ran.says(&[
        "as pprof: sample 1: a value is negative, as in the difference of two profiles; 1 record skipped",
        "labels were not imported: endpoint (2 samples)",
    ]);
    // Only the negative value is skipped, not the other values of the sample.
    ran.prints(&[
        "event 'inuse_space'\n# Event count (approx.): 5\n",
        "event 'alloc_space'\n# Event count (approx.): 30\n",
        "event 'objects'\n# Event count (approx.): 3\n",
    ]);
    let thread = report(pprof(0, &samples[..1], Some("thread")), 0);
    assert!(!thread.stderr.contains("labels"), "{}", thread.stderr);
    let difference = [(1, [-10, -5, -1]), (2, [20, -7, 2])];
    report(pprof(0, &difference, None), 1).says(&["difference of two profiles", "pmc diff"]);
    report(pprof(0, &samples[..1], Some("pprof::base")), 1).says(&["difference of two profiles"]);
}

/// Go itself: the totals of its default types, and the functions with the largest costs.
#[test]
fn pictures_of_go_profiles_show_what_go_tool_pprof_shows() {
    if !kit::need_program("go") {
        return;
    }
    for name in ["go.heap.pb.gz", "go.cpu.pb.gz"] {
        let path = theirs(name);
        let ran = Command::new("go").args(["tool", "pprof", "-top", "-unit=B"]).arg(&path).output().unwrap();
        let ran = match ran.status.success() {
            true => ran,
            false => Command::new("go").args(["tool", "pprof", "-top"]).arg(&path).output().unwrap(),
        };
        let text = String::from_utf8(ran.stdout).unwrap();
        let stacks = folded(&path, "");
        let (own, inclusive) = sums(&stacks);
        let rows = text.lines().skip_while(|line| !line.contains("flat%")).skip(1).take(10);
        let mut compared = 0;
        for row in rows {
            let words: Vec<&str> = row.split_whitespace().collect();
            let [flat, _, _, cum, _, function, ..] = words[..] else { continue };
            let about = |shown: &str, got: u64| {
                let Some(expected) = amount(shown) else { return };
                assert!((got as f64 - expected).abs() <= expected * 0.01 + 1.0, "{name} {row}: {got}");
            };
            about(flat, own.get(function).copied().unwrap_or(0));
            about(cum, inclusive[function]);
            compared += 1;
        }
        assert!(compared >= 2, "{text}");
    }
}

/// Parses an amount of `go tool pprof`: bytes, or nanoseconds.
fn amount(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" | "ns" => 1.0,
        "kB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(digits.parse::<f64>().ok()? * factor)
}

#[test]
fn whole_chunks_of_a_cut_jfr_file_are_read() {
    let whole = fs::read(theirs("async-profiler-form.jfr")).unwrap();
    let second = whole.windows(4).rposition(|bytes| bytes == b"FLR\0").unwrap();
    let first_only = report(&whole[..second], 0).stdout;
    // Cut in the second chunk: in its header, and later. Then with a whole chunk behind it.
    for end in [second + 20, whole.len() - 10] {
        let ran = report(&whole[..end], 1).says(&["as JFR: byte ", "1 record skipped"]);
        for line in first_only.lines().filter(|line| line.contains("Event count")) {
            assert!(ran.stdout.contains(line), "{line}");
        }
    }
    let joined = [&whole[..whole.len() - 10], &whole[..]].concat();
    report(&joined, 1).says(&["as JFR: byte"]);
    // Not even one chunk is whole.
    report(&whole[..second - 10], 1).says(&["cannot import", "the file is truncated"]);
}

#[test]
fn names_in_parentheses_are_names() {
    let script = "a 1 1.5: cycles: \n\t          401136 (garbage collector)\n\t          401200 main\n\na 1 1.6: cycles: \n\
                  \t          401136 (program) (/bin/node)\n\na 1 1.7: cycles: \n\t          401136 (/bin/node)\n";
    assert_eq!(stacks_of(script), "a;(program) 1\na;[node] 1\na;main;(garbage collector) 1\n");
    assert_eq!(stacks_of("main;(garbage collector) 3\n(idle) 2\n"), "(idle) 2\nmain;(garbage collector) 3\n");
    let callgrind = "events: Ir\nfn=(1) (program)\n1 2\nfn=(idle)\n1 3\nfn=(1)\n2 4\n";
    assert_eq!(stacks_of(callgrind), "(idle) 3\n(program) 6\n");
    // The module of one function is unknown, and that of the other is called so.
    let speedscope = r#"{"$schema":"x","shared":{"frames":[{"name":"(program)","file":"unknown"},{"name":"main"}]},
        "profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":3,"samples":[[1,0],[1]],"weights":[1,2]}]}"#;
    assert_eq!(stacks_of(speedscope), "t;main 2\nt;main;(program) 1\n");
    // The pprof of gperftools and jemalloc appends addresses.
    assert_eq!(stacks_of("f<0000000000401106>;g<0000000000401129> 5\nT<int> 1\n"), "T<int> 1\nf;g 5\n");
}

#[test]
fn invalid_records_of_other_formats_are_skipped() {
    let frames = r#"{"$schema":"x","shared":{"frames":[{"name":"f"}]},"profiles":["#;
    let sampled =
        r#"{"type":"sampled","name":"t","unit":"none","samples":[[0],[7],[0]],"weights":[1,2,-3]}]}"#;
    let node = r#"{"id":1,"callFrame":{"functionName":"f"}}"#;
    let firefox = r#"{"meta":{"preprocessedProfileVersion":55},"threads":[{"name":"t","pid":1,"tid":1,"samples":{"stack":[0,4]},
        "stackTable":{"frame":[0],"prefix":[null]},"frameTable":{"func":[0]},"funcTable":{"name":[0]},"stringArray":["f"]}]}"#;
    for (text, place) in [
        (format!("{frames}{sampled}"), "as speedscope: profile 0: there is no frame 7; 2 records skipped"),
        (
            format!(r#"{{"nodes":[{node}],"samples":[1,9],"timeDeltas":[0,1],"endTime":1}}"#),
            "as V8 CPU profile: sample 1: it refers to the missing node 9; 1 record skipped",
        ),
        (firefox.to_owned(), "as Firefox profile: thread 0: sample 1: there is no stack 4"),
        (
            r#"{"traceEvents":[],"stackFrames":{"1":{"name":"f"}},"samples":[{"tid":1,"sf":1,"ts":"5"},{"tid":1,"sf":2}]}"#.to_owned(),
            "as Chrome trace: sample 1: it refers to the missing stack frame \"2\"; 1 record skipped",
        ),
        (
            "  a`f+0x1\n    3\n\nodd\n  a`g\n".to_owned(),
            "as DTrace stacks: line 4: a frame of a stack must be indented; 2 records skipped",
        ),
        (
            "Call graph:\n    5 Thread_1\n    + 5 f  (in a)\n    + odd\n\n".to_owned(),
            "as macOS sample text: line 4: a line of the call graph must begin with a number of samples",
        ),
    ] {
        let ran = report(&text, 1).says(&[place]);
        assert!(ran.stdout.contains("[.] f"), "{}", ran.stdout);
    }
}

/// Returns the sum of each stack, or `None` if the file cannot be imported.
fn sums_of_stacks(ran: &Ran) -> Option<BTreeMap<String, u64>> {
    if ran.stdout.is_empty() {
        return None;
    }
    let split = |line: &str| {
        let (stack, sum) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), sum.parse().unwrap())
    };
    Some(ran.stdout.lines().map(split).collect())
}

/// A file is cut at many places. pmc reads the records before each cut, warns once, and reports no stack that the
/// whole file does not have.
#[test]
fn whole_records_of_cut_files_are_read() {
    let export = |format: &str, from: &Path| {
        let words = ["export", "-q", "--format", format, "-o", "-", "-i", from.to_str().unwrap()];
        kit::run(&words).expect(0).stdout.into_bytes()
    };
    let read = |name: &str| fs::read(theirs(name)).unwrap();
    let (_folder, two_threads) = file(
        "a 1/1 1.0: 5 cycles: \n\t1 f (/bin/a)\n\t2 main (/bin/a)\n\nb 1/2 1.5: 7 cycles: \n\t3 g (/bin/a)\n\n",
    );
    for (name, whole) in [
        ("speedscope", export("speedscope", &theirs("go.heap.pb.gz"))),
        ("Firefox profile", export("firefox", &two_threads)),
        ("Firefox profile, gecko", read("perf-gecko.json")),
        ("V8 CPU profile", read("node-20.cpuprofile")),
        ("Chrome trace, samples", read("node-20.trace.json")),
        ("Chrome trace, slices", read("py-spy.trace.json")),
        ("pprof", read("go.cpu.pb")),
        ("pprof, packed", read("go.heap.pb.gz")),
    ] {
        let (_folder, path) = file(&whole);
        let command = "export --format folded -o -";
        let complete = sums_of_stacks(&run(command, &path).expect(0)).unwrap();
        let end = whole.trim_ascii_end().len();
        // The first part of Node's trace contains only slices, which a whole trace with samples does not show.
        let parts = (2..16).map(|part| end * part / 16);
        let mut cuts_read = 0;
        for end in parts.chain([end - 60, end - 4]) {
            fs::write(&path, &whole[..end]).unwrap();
            let ran = run(command, &path).expect(1);
            let place = format!("{name}, cut after {end} bytes: {}", ran.stderr);
            let Some(stacks) = sums_of_stacks(&ran) else {
                let reasons = ["no sample is whole: ", "before the keys that show its format"];
                assert!(reasons.iter().any(|reason| ran.stderr.contains(reason)), "{place}");
                continue;
            };
            let lost = format!("imported as {}: byte ", name.split(',').next().unwrap());
            assert!(ran.stderr.contains(&lost) && ran.stderr.matches("cut off").count() == 1, "{place}");
            for (stack, sum) in &stacks {
                // Traces have the names of threads at their end.
                let is_same = |whole: &str| whole == stack || whole.ends_with(&format!(";{stack}"));
                let whole = complete.iter().find(|(whole, _)| is_same(whole));
                assert!(whole.is_some_and(|(_, whole)| sum <= whole), "{place}: {stack} {sum}");
            }
            cuts_read += 1;
        }
        assert!(cuts_read > 0, "{name}");
    }
}

/// perf prints a recording without call chains, and one with them, with each field and each pair of fields.
/// pmc reads each sample, or names what the text lacks. It never takes one field for another.
#[test]
fn perf_script_text_is_read_with_any_two_fields() {
    if !kit::need_program("perf") {
        return;
    }
    let fields = [
        "comm", "tid", "pid", "time", "cpu", "event", "ip", "sym", "dso", "srcline", "period", "flags",
        "insn", "insnlen", "misc",
    ];
    let pairs = fields
        .iter()
        .enumerate()
        .flat_map(|(at, one)| fields[at + 1..].iter().map(move |other| format!("{one},{other}")));
    let selections: Vec<String> = fields.iter().map(|field| (*field).to_owned()).chain(pairs).collect();
    let chains = kit::data("perfdata/fp.data");
    let folder = tempfile::tempdir().unwrap();
    let (flat, text) = (folder.path().join("flat.data"), folder.path().join("text"));
    let mut recordings = vec![chains];
    if kit::need_perf_events() {
        let shell = ["sh", "-c", busy_shell(50)];
        let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "500", "-o", flat.to_str().unwrap(), "--"];
        kit::run(&[&record[..], &shell].concat()).expect(0);
        recordings.push(flat);
    }
    for recording in &recordings {
        let perf = |fields: &str| {
            let mut command = Command::new("perf");
            let ran = command.args(["script", "-F", fields, "-i"]).arg(recording).output().unwrap();
            ran.status.success().then_some(ran.stdout).filter(|text| !text.trim_ascii().is_empty())
        };
        let samples =
            perf("time").unwrap().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        for fields in &selections {
            let Some(printed) = perf(fields) else { continue };
            fs::write(&text, &printed).unwrap();
            let ran = run("report --json", &text);
            if ran.status == Some(1) && ran.stderr.contains("if this is text of perf script: print a time") {
                let has_enough = ["time", "ip", "tid,event"].iter().any(|enough| fields.contains(enough));
                assert!(!has_enough, "{fields}: {}", ran.stderr);
                continue;
            }
            let document: serde_json::Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
            let events = document["events"].as_array().unwrap();
            let read: u64 = events.iter().map(|event| event["samples"].as_u64().unwrap()).sum();
            assert_eq!(read, samples as u64, "{fields}");
            let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
            assert!(fields.contains("event") || names == ["samples"], "{fields}: {names:?}");
        }
    }
}
