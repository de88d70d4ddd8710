//! Profiles of other programs: files that pmc did not write, and round trips through pmc's own exports.
//! `fuzz/README.md` lists the writers of the files. The expected numbers are those that the writers' own
//! tools print for them (perf, `go tool pprof`, `callgrind_annotate`, py-spy).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use fxprof_processed_profile as fxprof;

use crate::kit::{self, Ran};

/// Returns the path of a profile that another program wrote.
pub(crate) fn theirs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/imported_profile").join(name)
}

pub(crate) fn run(command: &str, file: &Path) -> Ran {
    let mut words: Vec<&str> = command.split(' ').collect();
    words.extend(["-i", file.to_str().unwrap()]);
    kit::run(&words)
}

/// Returns the sum of each folded stack of the file.
pub(crate) fn folded(file: &Path, event: &str) -> BTreeMap<String, u64> {
    let command = match event {
        "" => "export -q --format folded -o -".to_owned(),
        _ => format!("export -q --format folded -o - --event {event}"),
    };
    let ran = run(&command, file).expect(0);
    let split = |line: &str| {
        let (stack, sum) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), sum.parse().unwrap())
    };
    ran.stdout.lines().map(split).collect()
}

/// Returns the sums of the values of the innermost functions, and of all functions.
pub(crate) fn sums(stacks: &BTreeMap<String, u64>) -> (BTreeMap<&str, u64>, BTreeMap<&str, u64>) {
    let (mut own, mut inclusive) = (BTreeMap::new(), BTreeMap::new());
    for (stack, sum) in stacks {
        let functions: Vec<&str> = stack.split(';').collect();
        *own.entry(*functions.last().unwrap()).or_default() += sum;
        let distinct: std::collections::BTreeSet<&str> = functions.into_iter().collect();
        distinct.into_iter().for_each(|function| *inclusive.entry(function).or_default() += sum);
    }
    (own, inclusive)
}

#[test]
fn perf_script_text_is_read_in_all_dialects() {
    let stack = "app2;__libc_start_call_main;main;inner".to_owned();
    let expected = BTreeMap::from([(stack, 120_000_000)]);
    assert_eq!(folded(&theirs("perf-6.1.script.txt"), ""), expected);
    assert_eq!(folded(&theirs("perf-7-srcline.script.txt"), ""), expected);
    let flat = BTreeMap::from([("app2;inner".to_owned(), 6)]);
    assert_eq!(folded(&theirs("perf-6.1-flat.script.txt"), ""), flat);
    run("report --stdio --no-children -n -g none", &theirs("perf-6.1.script.txt")).expect(0).prints(&[
        "Samples: 6 of event 'cpu-clock:u'",
        "100.00%             6  app2     app2           [.] inner",
    ]);
    let script = run("script -F comm,tid,time,period,event", &theirs("perf-6.1.script.txt")).expect(0);
    let theirs_text = fs::read_to_string(theirs("perf-6.1.script.txt")).unwrap();
    let words = |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let ours: Vec<_> = script.stdout.lines().map(words).collect();
    let perfs: Vec<_> = theirs_text.lines().filter(|line| line.starts_with("app2")).map(words).collect();
    assert_eq!(ours, perfs);
    run("report --stdio -s sym,srcline -g none --no-children", &theirs("perf-7-srcline.script.txt"))
        .expect(0)
        .prints(&["app2.c:1"]);
}

#[test]
fn py_spy_files_keep_functions_lines_and_threads() {
    run("report --stdio -s comm -g none", &theirs("py-spy.folded")).expect(0).prints(&[
        "Samples: 64 of event 'weight'",
        "MainThread",
        "helper",
    ]);
    let stacks = folded(&theirs("py-spy.folded"), "");
    assert!(
        stacks.keys().any(|stack| stack.starts_with("MainThread;<module>;worker;outer;inner")),
        "{stacks:?}"
    );
    run("report --stdio -s comm,sym,srcline -g none --no-children", &theirs("py-spy.folded"))
        .expect(0)
        .prints(&["app.py:6"]);
    run("report --stdio -s comm,sym -g none --no-children", &theirs("py-spy.speedscope.json"))
        .expect(0)
        .prints(&["Samples: 72 of event", "Event count (approx.): 1440000000", "helper", "inner"]);
    run("report --stdio -s comm,sym -g none --no-children", &theirs("py-spy.trace.json"))
        .expect(0)
        .prints(&["'time (nanoseconds)'", "inner"]);
}

#[test]
fn go_profiles_have_an_event_per_value() {
    run("report --stdio -s dso,sym -n -g none --no-children", &theirs("go.cpu.pb.gz")).expect(0).prints(&[
        "Samples: 8 of event 'cpu (nanoseconds)'",
        "Event count (approx.): 80000000",
        "75.00%             6  main           [.] runtime.asyncPreempt",
        "25.00%             2  main           [.] main.inner",
    ]);
    let (packed, unpacked) = (folded(&theirs("go.cpu.pb.gz"), ""), folded(&theirs("go.cpu.pb"), ""));
    assert_eq!(packed, unpacked);
    assert_eq!(sums(&packed).1["main.outer"], 80_000_000);
    let heap = run("report --stdio -s sym -g none --no-children", &theirs("go.heap.pb.gz")).expect(0);
    heap.prints(&[
        "of event 'alloc_objects'\n# Event count (approx.): 178\n",
        "of event 'alloc_space (bytes)'\n# Event count (approx.): 3482184\n",
        "of event 'inuse_objects'\n# Event count (approx.): 24\n",
        "of event 'inuse_space (bytes)'\n# Event count (approx.): 3442312\n",
        "33.89%  [.] runtime/pprof.StartCPUProfile",
    ]);
}

#[test]
fn callgrind_costs_equal_those_of_callgrind_annotate() {
    let stacks = folded(&theirs("valgrind-3.19.callgrind"), "");
    let (own, inclusive) = sums(&stacks);
    assert_eq!(stacks.values().sum::<u64>(), 56_212);
    assert_eq!(own["inner"], 52_521);
    let about = |name: &str, expected: u64| {
        // Rounding moves a few units between the callers of a function.
        assert!(inclusive[name].abs_diff(expected) < 20, "{name}: {}", inclusive[name]);
    };
    about("outer", 22_528);
    about("other", 30_009);
    assert_eq!(inclusive["main"], 56_212);
    let ran = run("report --stdio -g none", &theirs("valgrind-3.19.callgrind"));
    ran.expect(0).says(&["callgrind's format has no stacks"]);
}

#[test]
fn v8_profiles_and_traces_are_read() {
    run("report --stdio -s sym,srcline -n -g none --no-children", &theirs("node-20.cpuprofile"))
        .expect(0)
        .prints(&["Samples: 293 of event 'time (nanoseconds)'", "inner", "app.js:1"]);
    run("report --stdio -s comm,sym -g none --no-children", &theirs("node-20.trace.json"))
        .expect(0)
        .prints(&["JavaScriptMainThread", "inner"]);
}

#[test]
fn gecko_sample_and_dtrace_files_are_read() {
    let stack = "app2;__libc_start_call_main;main;inner".to_owned();
    assert_eq!(folded(&theirs("perf-gecko.json"), ""), BTreeMap::from([(stack, 6)]));
    let sampled = folded(&theirs("macos-sample.txt"), "");
    assert_eq!(sampled["com.apple.main-thread;start;main;outer;inner"], 512);
    assert_eq!(sampled["worker;thread_start;[app]"], 3);
    assert_eq!(sampled.values().sum::<u64>(), 855);
    let traced = folded(&theirs("dtrace-ustack.txt"), "");
    assert_eq!(traced["_start;main;fill_buffer;__read"], 3);
    assert_eq!(traced.values().sum::<u64>(), 21);
    // Kernel and user stacks of one sample, names of Rust that were demangled in part, and mere addresses.
    let traced = folded(&theirs("dtrace-stack-ustack.txt"), "");
    let stack = "_lwp_start;core::ops::function::FnOnce::call_once{{vtable.shim}};store::serve::{{closure}};\
                 <store::disk::Disk as store::Region>::write;__pwrite;sys_syscall;pwrite;fop_write;zfs_write";
    assert_eq!(traced[stack], 4);
    assert_eq!(traced["thread_start;taskq_thread"], 1);
    let java = "thread_start;JavaThread::run();JavaCalls::call_helper(JavaValue*, methodHandle*, Thread*)";
    assert_eq!(traced[&format!("{java};unknown+0x104d08831")], 5);
    assert_eq!(traced["unix+0xfffffffffb800c91;post_syscall"], 2);
    let sampled = folded(&theirs("macos-sample-rust.txt"), "");
    let thread = "Thread_15758535;thread_start;std::panicking::try::do_call;seek::walk::Worker::run";
    for (rest, count) in [
        ("seek::open;__open;cerror", 60),
        ("seek::open", 1),
        ("_platform_memmove$VARIANT$Haswell", 9),
        ("readdir_r$INODE64", 12),
    ] {
        assert_eq!(sampled[&format!("{thread};{rest}")], count, "{rest}");
    }
    let main = "com.apple.main-thread;start;main;std::rt::lang_start::{{closure}};seek::main;\
                <std::thread::JoinHandle<T>>::join;__ulock_wait";
    assert_eq!(sampled[main], 82);
}

/// A profile that the library of the Firefox Profiler's authors writes, with native frames.
#[test]
fn firefox_profiles_of_the_fxprof_library_are_read() {
    let reference = fxprof::ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let mut profile = fxprof::Profile::new("app", reference, fxprof::SamplingInterval::from_millis(1));
    let start = fxprof::Timestamp::from_millis_since_reference(0.0);
    let process = profile.add_process("app", 12, start);
    let thread = profile.add_thread(process, 13, start, false);
    profile.set_thread_name(thread, "worker");
    let category = profile.add_category("User", fxprof::CategoryColor::Blue);
    let names = ["main", "work"].map(|name| profile.intern_string(name));
    let frame = |name| fxprof::FrameInfo {
        frame: fxprof::Frame::Label(name),
        category_pair: category.into(),
        flags: fxprof::FrameFlags::empty(),
    };
    for (at, weight, depth) in [(1.5, 2, 2), (4.25, 1, 1)] {
        let frames: Vec<_> = names[..depth].iter().map(|name| frame(*name)).collect();
        let stack = profile.intern_stack_frames(thread, frames.into_iter());
        let at = fxprof::Timestamp::from_millis_since_reference(at);
        profile.add_sample(thread, at, stack, fxprof::CpuDelta::ZERO, weight);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("profile.json");
    fs::write(&file, serde_json::to_vec(&profile).unwrap()).unwrap();
    let expected = [("worker;main".to_owned(), 1), ("worker;main;work".to_owned(), 2)];
    assert_eq!(folded(&file, ""), BTreeMap::from(expected));
    let script = run("script -F comm,pid,tid,time", &file).expect(0);
    script.prints(&["worker", "12/13", "0.001500:", "0.004250:"]);
}

/// A recording with threads, kernel code, inlined functions, code without names, and two events.
const OURS: &str = "\
io  7/8  [000]  1.000001:  1000000 cpu-clock:u:
\tffffffff81000010 vfs_read+0x1 ([kernel.kallsyms])
\t    55d000000010 read_all (inlined)
\t    55d000000010 parse+0x1 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)

web  7/7  [001]  1.500000:  3000000 cpu-clock:u:
\t    7f1200000010 [unknown] (/usr/lib/libz.so.1)
\t    55d000000020 main+0x1 (/usr/bin/app)

web  7/7  [001]  2.500000:  250 page-faults:u:
\t    55d000000020 main+0x1 (/usr/bin/app)

io  7/8  [000]  3.000000:  1000000 cpu-clock:u:
\t    55d000000030 parse+0x9 (/usr/bin/app)
\t    55d000000020 main+0x1 (/usr/bin/app)
";

/// Writes a profile, and exports it to a format. Returns the folder, the profile and the export.
fn exported(format: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (ours, export) = (folder.path().join("ours.txt"), folder.path().join("export"));
    fs::write(&ours, OURS).unwrap();
    run(&format!("export -q --format {format} -o {}", export.to_str().unwrap()), &ours).expect(0);
    (folder, ours, export)
}

#[test]
fn round_trips_keep_sums_names_and_threads() {
    for format in ["folded", "pprof", "speedscope"] {
        let (_folder, ours, export) = exported(format);
        assert_eq!(folded(&export, ""), folded(&ours, ""), "{format}");
    }
    for format in ["pprof", "speedscope"] {
        let (_folder, ours, export) = exported(format);
        assert_eq!(folded(&export, "page-faults:u"), folded(&ours, "page-faults:u"), "{format}");
        let threads = "report --csv -n -s comm,tid";
        let rows = |file: &Path| run(threads, file).expect(0).stdout;
        if format == "pprof" {
            assert_eq!(rows(&export), rows(&ours), "{format}");
        }
    }
    // Firefox's format has numbers of samples instead of periods, and times in milliseconds.
    let (_folder, ours, export) = exported("firefox");
    let names = |file: &Path| folded(file, "").into_keys().collect::<Vec<_>>();
    assert_eq!(names(&export), names(&ours));
    assert_eq!(folded(&export, "").values().sum::<u64>(), 3);
    let times = run("script -F comm,pid,tid,time", &export).expect(0).stdout;
    for line in ["7/8", "0.000000:", "0.499999:", "1.999999:"] {
        assert!(times.contains(line), "{line} in {times}");
    }
    // Callgrind's format has no threads and no stacks.
    let (_folder, ours, export) = exported("callgrind");
    let (theirs, ours) = (folded(&export, ""), folded(&ours, ""));
    assert_eq!(sums(&theirs).0, sums(&ours).0);
    assert_eq!(theirs.values().sum::<u64>(), ours.values().sum::<u64>());
}

#[test]
fn perf_script_text_of_pmc_is_read() {
    let (folder, ours, _) = exported("folded");
    let text = folder.path().join("script.txt");
    fs::write(&text, run("script", &ours).expect(0).stdout).unwrap();
    // `pmc script` does not print inlined functions.
    let without_inlined = |stacks: BTreeMap<String, u64>| {
        stacks
            .into_iter()
            .map(|(stack, sum)| (stack.replace(";read_all", ""), sum))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(folded(&text, ""), without_inlined(folded(&ours, "")));
    // Addresses are not imported.
    let fields = "script -F comm,pid,tid,cpu,time,period,event,sym,dso";
    fs::write(&text, run(fields, &ours).expect(0).stdout).unwrap();
    assert_eq!(run(fields, &text).expect(0).stdout, run(fields, &ours).expect(0).stdout);
}

#[test]
fn imported_profiles_work_with_all_commands() {
    let (folder, ours, _) = exported("folded");
    let go = theirs("go.cpu.pb.gz");
    let [ours_path, go_path] = [&ours, &go].map(|path| path.to_str().unwrap());
    kit::run(&["diff", ours_path, ours_path]).expect(0).prints(&["parse"]);
    kit::run(&["diff", go_path, go_path]).expect(0).prints(&["main.inner"]);
    // The only event of an imported profile is compared with the only one of a recording.
    let [base, other] = ["perf-6.1.script.txt", "perf-gecko.json"].map(theirs);
    let [base, other] = [&base, &other].map(|path| path.to_str().unwrap());
    let ran = kit::run(&["diff", base, other]).expect(0);
    ran.prints(&["samples is compared with cpu-clock:u", "inner"]);
    let page = folder.path().join("page.html");
    run(&format!("export -q --format html -o {}", page.to_str().unwrap()), &go).expect(0);
    assert!(fs::read_to_string(&page).unwrap().starts_with("<!"));
    run("export -q --format svg -o -", &go).expect(0).prints(&["main.inner"]);
    let listing = run("annotate --stdio main.inner", &go).expect(0);
    listing.clone().prints(&["no instructions: imported profiles contain no code"]);
    assert!(!listing.stdout.contains("precise level"), "{}", listing.stdout);
    run("report --stdio --header-only", &go).expect(0).prints(&["form : pprof"]);
    // Converted to a recording, which perf reads too.
    let archive = folder.path().join("archive.data");
    kit::run(&["archive", go_path, "-o", archive.to_str().unwrap()]).expect(0);
    assert!(fs::read(&archive).unwrap().starts_with(b"PERFILE2"));
    assert_eq!(folded(&archive, ""), folded(&go, ""));
    if kit::need_program("perf") {
        let perfs = std::process::Command::new("perf").args(["script", "-i"]).arg(&archive).output().unwrap();
        let headers = String::from_utf8(perfs.stdout).unwrap();
        assert_eq!(headers.lines().filter(|line| line.contains("10000000 cpu (nanoseconds):")).count(), 8);
    }
    // Times.
    run("report --stdio --time 1.2,2", &ours).expect(0).prints(&["Event count (approx.): 3000000"]);
    for time in ["0,1", "10%-20%"] {
        run(&format!("report --stdio --time {time}"), &theirs("py-spy.folded")).expect(1).says(&[
            "no timestamps",
            "imported from a file of the format folded stacks",
            "perf script text, JFR",
        ]);
    }
    let lacks = [("parquet", "no times"), ("gmon", "no addresses")];
    for (format, what) in lacks {
        let out = folder.path().join(format);
        let command = format!("export --format {format} -o {}", out.to_str().unwrap());
        run(&command, &theirs("py-spy.folded")).expect(1).says(&[
            what,
            "imported from a file of the format folded stacks",
            "another format",
        ]);
    }
    // Advice on how to record does not help with a file of another program.
    for command in ["report --stdio --time 0,1", "report --stdio -C 0", "export --format otlp -o /dev/null"] {
        let ran = run(command, &theirs("py-spy.folded"));
        assert!(!ran.stderr.contains("pmc record"), "{}", ran.stderr);
    }
    let ran = run("report --stdio", &theirs("go.cpu.pb")).expect(0);
    assert!(
        !ran.stdout.contains("stacks complete") && !ran.stdout.contains("--call-graph"),
        "{}",
        ran.stdout
    );
}

#[test]
fn percentages_of_the_time_work_if_samples_have_times() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours.txt");
    fs::write(&ours, OURS).unwrap();
    let names = [
        "perf-6.1.script.txt",
        "jvm-17.jfr.gz",
        "perf-gecko.json",
        "node-20.cpuprofile",
        "node-20.trace.json",
        "py-spy.speedscope.json",
    ];
    for file in names.map(theirs).iter().chain([&ours]) {
        let times = |options: &str| -> Vec<f64> {
            let text = run(&format!("script -F time{options}"), file).expect(0).stdout;
            text.lines().map(|line| line.trim().trim_end_matches(':').parse().unwrap()).collect()
        };
        let all = times("");
        let (first, last) = (all[0], all[all.len() - 1]);
        let span = [format!("time of first sample : {first:.6}"), format!("time of last sample : {last:.6}")];
        run("report --stdio --header-only", file).expect(0).prints(&span.each_ref().map(String::as_str));
        // A third, so that no sample is exactly at the end.
        let end = first + (last - first) * 0.33;
        let within: Vec<f64> = all.iter().copied().filter(|time| *time <= end).collect();
        assert!(within.len() < all.len(), "{}", file.display());
        assert_eq!(times(" --time 0%-33%"), within, "{}", file.display());
    }
    let part = "--time 20%-30%";
    run(&format!("report --stdio {part}"), &ours).expect(0).prints(&["Event count (approx.): 3000000"]);
    let stacks = run(&format!("export -q --format folded -o - {part}"), &ours).expect(0).stdout;
    assert_eq!(stacks, "web;main;[libz.so.1] 3000000\n");
    let path = ours.to_str().unwrap();
    let ran = kit::run(&["diff", "-s", "comm", "--time", "20%-30%", path, path]).expect(0);
    assert!(ran.stdout.contains("too few samples  web\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("  io\n"), "{}", ran.stdout);
}

#[test]
fn addresses_that_the_import_made_up_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.folded");
    fs::write(&file, "main;work 3\nmain 1\n").unwrap();
    let keys = "sym,srcline,symoff,symbol_size,dso_size,srcfile";
    run(&format!("report -t, -s {keys}"), &file).expect(0).prints(&[
        ",[.] main,main,[.] main,[unknown],[unknown],[unknown]\n",
        ",[.] work,work,[.] work,[unknown],[unknown],[unknown]\n",
    ]);
    let script = run("script -F comm,ip,sym,symoff,srcline,dso,dsoff", &file).expect(0).stdout;
    assert!(script.contains(" work (unknown)\n") && !script.contains('+'), "{script}");
    let json = run("script --json --limit 1", &file).expect(0).stdout;
    assert!(json.contains(r#""offset":null"#), "{json}");
    // Lines that the profile has are shown.
    run("script -F ip,sym,symoff,srcline", &theirs("py-spy.folded")).expect(0).prints(&["inner\n  app.py:6"]);
}

#[test]
fn profiles_are_read_from_standard_input() {
    let mut child = kit::pmc()
        .args(["export", "-q", "--format", "folded", "-o", "-", "-i", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"sh;main;work 3\nsh;main 4\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "sh;main 4\nsh;main;work 3\n");
}

#[test]
fn commands_that_read_only_recordings_name_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let stacks = b"sh;main;work 3\n";
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let commands = [
        ("sched latency -i", "scheduler events"),
        ("sched timehist -i", "scheduler events"),
        ("lock contention -i", "waits for locks"),
        ("lock user -i", "waits for locks"),
        ("trace -i", "system calls"),
        ("stat report -i", "counts"),
        ("buildid-list -i", "build-ids"),
        ("buildid-cache -M", "build-ids"),
        ("archive --perf", "build-ids"),
    ];
    for (command, content) in commands {
        let run = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            let words: Vec<&str> = command.split(' ').chain([file.to_str().unwrap()]).collect();
            let mut pmc = kit::pmc();
            Ran::from(pmc.args(words).env("HOME", folder.path()).output().unwrap()).expect(1)
        };
        let why = format!("pmc does not import {content} from other formats");
        let zstd = zstd::encode_all(&stacks[..], 0).unwrap();
        for bytes in [&stacks[..], &gzip(stacks), &zstd] {
            run(bytes).says(&[
                "a profile in another format (folded stacks), not a recording",
                &why,
                "pmc report -i",
            ]);
        }
        run(br#"{"nodes":[],"samples":[]}"#).says(&["(V8 CPU profile)", &why]);
        run(b"\xfd7zXZ\0\x04 12\n").says(&["compressed with xz", "xz -dc FILE"]);
        run(b"hello, this is a letter\n").says(&["not a perf.data file", "written by pmc record"]);
        run(b"").says(&["the file is empty"]);
    }
    // Compressed recordings are read.
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perfdata/fp.data");
    fs::write(&file, gzip(&fs::read(&recording).unwrap())).unwrap();
    let rows = run("buildid-list", &recording).expect(0).stdout;
    assert!(!rows.is_empty());
    assert_eq!(run("buildid-list", &file).expect(0).stdout, rows);
}

#[test]
fn files_that_cannot_be_imported_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let fails = |content: &[u8], words: &[&str]| {
        fs::write(&file, content).unwrap();
        run("report --stdio", &file).expect(1).says(words);
    };
    fails(b"hello, this is a letter\n", &["not a perf.data file", "PERFILE2", "folded stacks", "speedscope"]);
    fails(b"a;b 1\na;b\n", &["not a perf.data file"]);
    let long = format!("{}a;b\n", "a;b 1\n".repeat(20_000));
    fails(long.as_bytes(), &["as folded stacks: line 20001: a folded stack must end with"]);
    fails(b"{\"meta\":{},\"threads\":[{", &["as Firefox profile", "line 1 column"]);
    fails(b"{\"nodes\":[{", &["invalid JSON: EOF while parsing", "truncated or damaged"]);
    fails(b"{\"a\":1}", &["not a perf.data file", "speedscope"]);
    fails(b"\xfd7zXZ\0\x04 12\n", &["compressed with xz", "xz -dc FILE"]);
    fails(b"PK\x03\x04", &["compressed with zip", "unzip -p FILE"]);
    fails(b"BZh91AY&SY\xb9\xac", &["compressed with bzip2"]);
    fs::write(&file, "BZhandler;main 12\n").unwrap();
    run("report --stdio", &file).expect(0).prints(&["main"]);
    // These files are not damaged.
    for (content, words) in [("a;b 1 2\n", "two weights"), (r#"{"nodes":[],"samples":[]}"#, "no samples")] {
        fs::write(&file, content).unwrap();
        let ran = run("report --stdio", &file).expect(1);
        assert!(ran.stderr.contains(words) && !ran.stderr.contains("damaged"), "{}", ran.stderr);
    }
    fails(b"events: Ir\nfn=a\n1 x\n", &["as callgrind: line 3: invalid cost"]);
    fails(b"heap_v2/524288\n", &["a heap dump of jemalloc in text form", "jeprof --collapsed PROGRAM FILE"]);
    let heap = b"heap profile: 1: 1024 [ 3: 4096] @ heap_v2/524288\n";
    fails(
        heap,
        &["a heap dump in text form", "google-pprof --collapsed PROGRAM FILE", "go tool pprof -proto"],
    );
    let words: Vec<u8> = [0u64, 3, 0, 10_000, 0, 5].iter().flat_map(|word| word.to_le_bytes()).collect();
    fails(&words, &["a CPU profile of gperftools", "google-pprof --collapsed PROGRAM FILE"]);
    // Text in other encodings.
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let swapped = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    for (bytes, encoding) in [
        (wide("\u{feff}a;b 1\n"), "UTF-16"),
        (swapped("\u{feff}a;b 1\n"), "UTF-16"),
        (wide("a;b 1\na;c 2\n"), "UTF-16LE"),
        (swapped("a;b 1\na;c 2\n"), "UTF-16BE"),
    ] {
        let command = format!("iconv -f {encoding} -t UTF-8 FILE");
        fails(&bytes, &[&format!("text in {encoding}"), "pmc reads text in UTF-8", &command]);
    }
    let packed = fs::read(theirs("go.heap.pb.gz")).unwrap();
    fails(&packed[..packed.len() / 2], &["incomplete deflate stream"]);
    let unpacked = fs::read(theirs("go.cpu.pb")).unwrap();
    fails(&unpacked[..unpacked.len() - 40], &["as pprof"]);
    fs::write(&file, b"\xef\xbb\xbfmain;b 1\n").unwrap();
    assert_eq!(folded(&file, ""), BTreeMap::from([("main;b".to_owned(), 1)]));
    // Names are data: their control characters reach neither the terminal nor a page.
    fs::write(&file, b"shell;evil\x1b[31m;b 1\n").unwrap();
    let ran = run("report --stdio", &file).expect(0);
    assert!(!ran.stdout.contains('\x1b') && ran.stdout.contains("evil"));
}
