//! Profiles that real tools write while the test runs. The total of an import, and the ten functions with the
//! largest own and inclusive costs, equal those of the tool's own report of the same profile. py-spy and Xdebug
//! have no reports of their files, so `imports_tools/sums.py` adds up their costs without pmc.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::imports::{folded, run, sums};
use crate::kit::{self, oracle};

/// Maximum number of tries for py-spy if it gives up.
const TRIES: u32 = 10;
/// Number of functions that are compared.
const LARGEST: usize = 10;

/// Path of a program that the tools profile, or of a script that prints a report.
fn source(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/imports_tools");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Folder of the Python packages that `.ci/run` installs.
fn packages() -> PathBuf {
    std::env::var_os("PMC_TEST_PROFILERS").unwrap_or_default().into()
}

/// Runs a tool.
#[track_caller]
fn output(words: &[&str]) -> Output {
    oracle::ask_until_answered(|_| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("PYTHONPATH", packages());
        command
    })
}

/// Runs a tool. Returns its stdout.
#[track_caller]
fn tool(words: &[&str]) -> String {
    let Output { status, stdout, stderr } = output(words);
    assert!(status.success(), "{words:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Runs py-spy. Returns what it prints. On a busy machine, py-spy may give up before the program has loaded
/// the interpreter. This is no answer, so it is run again.
#[track_caller]
fn py_spy_says(words: &[&str]) -> String {
    for try_ in 1..=TRIES {
        let Output { status, stdout, stderr } = output(words);
        let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        if status.success() {
            return text;
        }
        assert!(text.contains("Failed to find python version"), "{words:?}: {text}");
        let _ = writeln!(io::stderr().lock(), "py-spy gave up, try {try_} of {TRIES}: {words:?}");
    }
    panic!("py-spy gave up {TRIES} times, so there is nothing to compare: {words:?}");
}

/// Whether a command succeeds, as it does if the tool is installed.
fn works(words: &[&str]) -> bool {
    let output = Command::new(words[0]).args(&words[1..]).env("PYTHONPATH", packages()).output();
    output.is_ok_and(|output| output.status.success())
}

/// Requires a Python package.
#[track_caller]
fn need_python_package(name: &str) -> bool {
    let is_there = works(&["python3", "-c", &format!("import {name}")]);
    kit::need(name, is_there, &format!("the Python package {name} is not installed"))
}

/// The sums of a function: own, inclusive.
type Report = BTreeMap<String, (f64, f64)>;

/// Parses lines `own inclusive name`, in units of `unit`.
fn report(text: &str, unit: f64) -> Report {
    let row = |line: &str| {
        let (own, rest) = line.split_once(' ')?;
        let (inclusive, name) = rest.split_once(' ')?;
        // Folded stacks have no blanks.
        Some((name.replace(' ', "_"), own.parse::<f64>().ok()?, inclusive.parse::<f64>().ok()?))
    };
    let mut rows = Report::new();
    for (name, own, inclusive) in text.lines().filter_map(row) {
        // A function may have the name of one of its callers.
        let sums = rows.entry(name).or_default();
        *sums = (sums.0 + own * unit, sums.1.max(inclusive * unit));
    }
    assert!(rows.len() >= 5, "{text}");
    rows
}

/// Runs `sums.py`.
fn python_report(words: &[&str]) -> Report {
    report(&tool(&[&["python3", &source("sums.py")], words].concat()), 1.0)
}

/// Compares the total and the largest functions. Values may differ by `most`.
#[track_caller]
fn compare(stacks: &BTreeMap<String, u64>, report: &Report, most: f64) {
    let (own, inclusive) = sums(stacks);
    let total: f64 = stacks.values().map(|sum| *sum as f64).sum();
    let expected: f64 = report.values().map(|(own, _)| own).sum();
    assert!((total - expected).abs() <= most * report.len() as f64, "{total} instead of {expected}");
    let compare = |kind: &str, sums: &BTreeMap<&str, u64>, expected: fn(&(f64, f64)) -> f64| {
        let mut rows: Vec<(&String, f64)> = report.iter().map(|(name, row)| (name, expected(row))).collect();
        rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        for (name, expected) in rows.into_iter().take(LARGEST) {
            let got = sums.get(name.as_str()).map_or(0.0, |sum| *sum as f64);
            let is_equal = (got - expected).abs() <= most;
            assert!(is_equal, "{kind} {name}: {got} instead of {expected}\n{sums:?}\n{report:?}");
        }
    };
    compare("own", &own, |(own, _)| *own);
    compare("inclusive", &inclusive, |(_, inclusive)| *inclusive);
}

/// Returns folded stacks without spaces in the names of functions.
fn stacks_of(path: &Path, event: &str) -> BTreeMap<String, u64> {
    folded(path, event).into_iter().map(|(stack, sum)| (stack.replace(' ', "_"), sum)).collect()
}

/// Fails if pmc's error for a file does not name the command that converts it.
#[track_caller]
fn refuses(file: &str, words: &[&str]) {
    run("report --stdio", Path::new(file)).expect(1).says(words);
}

/// A folder, and the paths of files in it.
fn files<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, [String; N]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = names.map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    (folder, paths)
}

#[test]
fn py_spy_profiles_equal_their_sums() {
    if !kit::need_program("python3") {
        return;
    }
    let in_packages = packages().join("bin/py-spy");
    let py_spy = if in_packages.is_file() { in_packages } else { "py-spy".into() };
    let py_spy = py_spy.to_str().unwrap();
    if !kit::need("py-spy", works(&[py_spy, "--version"]), "py-spy is not installed") {
        return;
    }
    // Not a shim, which loads the interpreter late.
    let python = tool(&["python3", "-c", "import sys; print(sys.executable)"]);
    let (_folder, paths) = files(["raw", "native", "speedscope", "chrometrace"]);
    for (path, format, options) in [
        (&paths[0], "raw", &["--threads"][..]),
        (&paths[1], "raw", &["--nolineno", "--native"]),
        (&paths[2], "speedscope", &[]),
        (&paths[3], "chrometrace", &[]),
    ] {
        let record = [py_spy, "record", "-r", "200", "-f", format, "-o", path];
        let said =
            py_spy_says(&[&record, options, &["--", python.trim(), &source("app.py"), "0.3"]].concat());
        let mut sums = python_report(&[&format!("py-spy-{format}"), path]);
        let stacks = stacks_of(Path::new(path), "");
        // Folded stacks without a thread and a stack are skipped. py-spy counts them.
        let has_threads = format != "raw" || options.contains(&"--threads");
        let empty = if has_threads { 0.0 } else { sums.remove("[not_mapped]").map_or(0.0, |(own, _)| own) };
        // Times are sums of fractions.
        let most = if format == "raw" { 0.0 } else { 1000.0 };
        compare(&stacks, &sums, most);
        let samples = said.split("Samples: ").nth(1).unwrap().split(' ').next().unwrap();
        let samples: f64 = samples.parse().unwrap();
        let total: f64 = stacks.values().map(|sum| *sum as f64).sum();
        match format {
            "raw" => assert_eq!(total + empty, samples, "{said}"),
            "speedscope" => assert_eq!((total / 5e6).round(), samples, "{said}"),
            _ => {}
        }
    }
    // py-spy does not find the names of all threads.
    for path in [&paths[0], &paths[2]] {
        let text = fs::read_to_string(path).unwrap();
        let names = ["worker; 0", "worker; 1"].into_iter().filter(|name| text.contains(name));
        run("report --stdio -s comm -g none", Path::new(path)).expect(0).prints(&names.collect::<Vec<_>>());
    }
    // Native code has a library, and Python's a file.
    run("report --stdio -s dso,sym -g none", Path::new(&paths[1])).expect(0).prints(&["libc.so.6", "fib"]);
}

#[test]
fn pyinstrument_profiles_equal_its_report() {
    if !need_python_package("pyinstrument") {
        return;
    }
    let (_folder, [profile, session, json]) = files(["profile", "session", "json"]);
    let sums = python_report(&["pyinstrument", &source("app.py"), &profile]);
    // A function's own time is a frame, too.
    let stacks = stacks_of(Path::new(&profile), "").into_iter();
    let mut merged = BTreeMap::new();
    for (stack, sum) in stacks {
        *merged.entry(stack.trim_end_matches(";[self]").to_owned()).or_default() += sum;
    }
    // The report has microseconds.
    let most = 1000.0 * fs::read_to_string(&profile).unwrap().matches("\"O\"").count() as f64;
    compare(&merged, &sums, most);
    for (format, file) in [("pyisession", &session), ("json", &json)] {
        tool(&["python3", "-m", "pyinstrument", "-r", format, "-o", file, &source("app.py"), "0.1"]);
    }
    refuses(&session, &["a session of pyinstrument", "pyinstrument --load FILE -r speedscope"]);
    refuses(&json, &["a report of pyinstrument in JSON", "-r speedscope instead of -r json"]);
}

#[test]
fn memray_profiles_equal_its_records() {
    if !need_python_package("memray") {
        return;
    }
    let (_folder, [file, profile, table]) = files(["memray.bin", "profile", "table"]);
    let memray = ["python3", "-m", "memray"];
    tool(&[&memray[..], &["run", "-q", "-o", &file, &source("memory.py")]].concat());
    for (format, to) in [("speedscope", &profile), ("csv", &table)] {
        tool(&[&memray[..], &["transform", "-o", to, format, &file]].concat());
    }
    let bytes = "'Memory (bytes)'";
    run("report --stdio -g none", Path::new(&profile)).expect(0).prints(&[bytes, "'Allocations'"]);
    compare(&stacks_of(Path::new(&profile), ""), &python_report(&["memray", &file]), 0.0);
    let hint = "memray transform speedscope FILE -o";
    refuses(&file, &["a profile of memray", hint]);
    refuses(&table, &["a table of memray", hint]);
}

#[test]
fn xdebug_profiles_equal_callgrind_annotate_and_the_calls_in_them() {
    let php = ["php", "-n", "-d", "zend_extension=xdebug.so", "-d", "xdebug.use_compression=0"];
    let is_there = works(&[&php[..], &["-r", "exit(extension_loaded('xdebug') ? 0 : 1);"]].concat());
    if !kit::need("xdebug", is_there, "PHP's Xdebug is not installed") || !kit::need_program("python3") {
        return;
    }
    let (folder, [profile]) = files(["cachegrind.out"]);
    let output = format!("xdebug.output_dir={}", folder.path().display());
    let written = |mode: &str, name: &str| {
        let (mode, name) = (format!("xdebug.mode={mode}"), name.to_owned());
        let options = ["-d", &output, "-d", "xdebug.start_with_request=yes", "-d", &mode, "-d", &name];
        tool(&[&php[..], &options, &[&source("app.php"), "0.02"]].concat());
    };
    written("profile", "xdebug.profiler_output_name=cachegrind.out");
    let path = Path::new(&profile);
    let stacks = stacks_of(path, "");
    compare(&stacks, &python_report(&["xdebug", &profile]), 0.0);
    written("trace", "xdebug.trace_output_name=trace");
    let trace = folder.path().join("trace.xt");
    refuses(trace.to_str().unwrap(), &["a trace of PHP's Xdebug", "xdebug.mode=profile"]);
    if !kit::need_program("callgrind_annotate") {
        return;
    }
    let text = tool(&["callgrind_annotate", "--threshold=100", "--auto=no", &profile]);
    let (own, _) = sums(&stacks);
    // Rows: `cost (share) cost (share)  file:function`.
    let rows = text.lines().skip_while(|line| !line.contains("file:function")).filter_map(|line| {
        let (cost, rest) = line.trim().split_once(" (")?;
        let name = rest.split_once("php:")?.1.trim_start_matches("internal:").trim().replace(' ', "_");
        Some((name, cost.replace(',', "").parse::<u64>().ok()?))
    });
    let rows: Vec<(String, u64)> = rows.take(LARGEST).collect();
    assert_eq!(rows.len(), LARGEST, "{text}");
    for (name, cost) in rows {
        assert_eq!(own.get(&*name), Some(&cost), "{name}\n{text}");
    }
}

#[test]
fn excimer_profiles_equal_its_report() {
    let php = ["php", "-n", "-d", "extension=excimer.so"];
    let is_there = works(&[&php[..], &["-r", "exit(extension_loaded('excimer') ? 0 : 1);"]].concat());
    if !kit::need("excimer", is_there, "PHP's Excimer is not installed") {
        return;
    }
    let (_folder, [profile, sums]) = files(["profile", "sums"]);
    tool(&[&php[..], &[&source("excimer.php"), "0.3", &profile, &sums]].concat());
    let sums = fs::read_to_string(sums).unwrap();
    compare(&stacks_of(Path::new(&profile), ""), &report(&sums, 1.0), 0.0);
}

#[test]
fn nytprof_profiles_equal_its_report() {
    let is_there =
        works(&["perl", "-MDevel::NYTProf::Data", "-e", "1"]) && kit::on_path("nytprofcg").is_some();
    if !kit::need("nytprof", is_there, "Perl's Devel::NYTProf is not installed") {
        return;
    }
    let (_folder, [file, calls, graph]) = files(["nytprof.out", "calls", "graph"]);
    let output = oracle::ask_until_answered(|_| {
        let mut perl = Command::new("perl");
        perl.args(["-d:NYTProf", &source("app.pl"), "50"]).env("NYTPROF", format!("file={file}"));
        perl
    });
    assert!(output.status.success(), "{output:?}");
    fs::write(&calls, tool(&["nytprofcalls", &file])).unwrap();
    tool(&["nytprofcg", "-f", &file, "-o", &graph]);
    let text = tool(&["perl", &source("nytprof.pl"), &file]);
    compare(&stacks_of(Path::new(&calls), ""), &report(&text, 1.0), 20.0);
    // Whole microseconds, rounded down for each function and each of its callers.
    compare(&stacks_of(Path::new(&graph), ""), &report(&text, 0.1), 20.0);
    refuses(&file, &["a profile of Perl's NYTProf", "nytprofcalls FILE > profile.folded"]);
}

#[test]
fn stackprof_profiles_equal_its_report() {
    let is_there = works(&["ruby", "-e", "require 'stackprof'"]) && works(&["stackprof", "--help"]);
    if !kit::need("stackprof", is_there, "Ruby's stackprof is not installed") {
        return;
    }
    let (_folder, [dump, profile, graph]) = files(["dump", "profile", "graph"]);
    for mode in ["object", "cpu"] {
        tool(&["ruby", &source("app.rb"), "0.3", mode, &dump]);
        fs::write(&profile, tool(&["stackprof", "--stackcollapse", &dump])).unwrap();
        // Rows: `total (share)  own (share)  name`.
        let text = tool(&["stackprof", "--text", "--limit", "0", &dump]);
        let row = |line: &str| {
            let (total, rest) = line.trim().split_once(" (")?;
            let (own, name) = rest.split_once(')')?.1.trim().split_once(" (")?;
            Some(format!("{} {} {}\n", own.trim(), total.trim(), name.split_once(')')?.1.trim()))
        };
        let sums = report(&text.lines().filter_map(row).collect::<String>(), 1.0);
        compare(&stacks_of(Path::new(&profile), ""), &sums, 0.0);
        // This format lacks the own costs of functions in C.
        fs::write(&graph, tool(&["stackprof", "--callgrind", &dump])).unwrap();
        run("report --stdio -g none", Path::new(&graph))
            .expect(0)
            .says(&["the costs of its functions are only", "its writer left out the rest"]);
        let stacks = stacks_of(Path::new(&graph), "");
        let (own, _) = self::sums(&stacks);
        assert!(own.len() >= 3, "{stacks:?}");
        for (name, cost) in own {
            assert_eq!(cost as f64, sums[name].0, "{name}");
        }
    }
    refuses(&dump, &["a profile of Ruby's stackprof", "stackprof --stackcollapse FILE > profile.folded"]);
}
