//! `pmc data convert --to-json` produces the same JSON values as perf.

use std::path::Path;

use serde_json::Value;

use super::lab::{DEEP, Lab};
use crate::kit::{self, oracle};

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ours(file: &Path, options: &[&str]) -> Value {
    let file = file.to_str().unwrap();
    document(
        &kit::run(&[&["data", "convert", "--to-json", "-", "-i", file], options].concat()).expect(0).stdout,
    )
}

/// The document without a value that perf omits: the module of an address without a symbol.
fn as_perf_has_it(mut document: Value) -> Value {
    for sample in document["samples"].as_array_mut().unwrap() {
        for call in sample["callchain"].as_array_mut().unwrap() {
            let call = call.as_object_mut().unwrap();
            if !call.contains_key("symbol") {
                call.remove("dso");
            }
            // If an address has several names, the tools choose different ones, and kernel names may be
            // hidden.
            if call["ip"].as_str().unwrap().starts_with("0xffffffff") {
                call.remove("symbol");
            }
        }
    }
    document
}

/// The document with only the fields that every sample has.
fn without_fields(mut document: Value) -> Value {
    for sample in document["samples"].as_array_mut().unwrap() {
        let common = ["callchain", "comm", "cpu", "pid", "tid", "timestamp"];
        sample.as_object_mut().unwrap().retain(|key, _| common.contains(&key.as_str()));
    }
    document
}

#[test]
fn json_document_matches_perf() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let deep = deep.to_str().unwrap();
    let kinds: &[(&str, &[&str])] = &[
        ("chains", &["-e", "cpu-clock:u", "-c", "20000000", "-g"]),
        ("events", &["-e", "cpu-clock:u,page-faults:u", "-c", "20000000", "--sample-cpu"]),
        ("traces", &["-e", "sched:sched_process_exec,sched:sched_process_exit"]),
    ];
    for (name, options) in kinds {
        let file = lab.record(name, options, &[deep], false);
        let ours = as_perf_has_it(ours(&file, &[]));
        assert!(ours["samples"].as_array().unwrap().len() > 1, "{name}");
        for perf in oracle::perfs() {
            let to = lab.path("theirs.json");
            let convert =
                ["data", "convert", "-f", "--to-json", to.to_str().unwrap(), "-i", file.to_str().unwrap()];
            oracle::says(&perf, &convert);
            let mut theirs = as_perf_has_it(document(&std::fs::read_to_string(&to).unwrap()));
            // perf 7.2 writes a tracepoint's field `pid` under the same name as the sample's own.
            for sample in theirs["samples"].as_array_mut().unwrap() {
                if let Some(pid) = sample["pid"].as_str() {
                    sample["pid"] = pid.parse::<i64>().unwrap().into();
                }
            }
            // Debian's perf 6.1 prints no tracepoint fields.
            let has_fields = theirs["samples"][0].get("filename").is_some();
            let ours = if has_fields { ours.clone() } else { without_fields(ours.clone()) };
            let samples =
                ours["samples"].as_array().unwrap().iter().zip(theirs["samples"].as_array().unwrap());
            for (a, b) in samples {
                assert_eq!(a, b, "{perf:?} {name}");
            }
            assert_eq!(ours, theirs, "{perf:?} {name}");
        }
    }
}

#[test]
fn json_conversion_refuses_to_overwrite_and_requires_samples() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perfdata/fp.data");
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("samples.json");
    let convert = |options: &[&str]| {
        let files = ["data", "convert", "-i", stored.to_str().unwrap()];
        kit::run(&[&files, options].concat())
    };
    let to = to.to_str().unwrap();
    convert(&["--to-json", to]).expect(0);
    let first = std::fs::read_to_string(to).unwrap();
    assert_eq!(document(&first)["linux-perf-json-version"], 1);
    convert(&["--to-json", to]).expect(1).says(&["EEXIST", "-f"]);
    convert(&["--to-json", to, "-f"]).expect(0);
    assert_eq!(std::fs::read_to_string(to).unwrap(), first);
    convert(&["--to-ctf", to]).expect(2).says(&["--to-json"]);
    convert(&["--to-json", to, "-f", "--all"]).expect(2).says(&["script --json"]);
    convert(&["--to-json", to, "-f", "--tod"]).expect(2).says(&["-k mono"]);
    convert(&[]).expect(2).says(&["--to-json"]);
    assert_eq!(std::fs::read_to_string(to).unwrap(), first, "what is refused writes nothing");

    // An incomplete document replaces nothing. Here the temporary file cannot be created, because its name
    // is too long.
    let folder = folder.path();
    let long = folder.join("x".repeat(250));
    std::fs::write(&long, "former").unwrap();
    convert(&["-f", "--to-json", long.to_str().unwrap()]).expect(1).says(&["ENAMETOOLONG"]);
    assert_eq!(std::fs::read(&long).unwrap(), b"former");
    // A target that is not a regular file is written to and stays.
    let link = folder.join("link");
    std::os::unix::fs::symlink("/dev/stdout", &link).unwrap();
    let ran = convert(&["-f", "--to-json", link.to_str().unwrap()]).expect(0);
    assert_eq!((ran.stdout, link.is_symlink()), (first, true));
    // The recording itself is refused as a target.
    let own = folder.join("own.data");
    std::fs::copy(&stored, &own).unwrap();
    let own = own.to_str().unwrap();
    kit::run(&["data", "convert", "-f", "-i", own, "--to-json", own])
        .expect(2)
        .says(&["the recording itself"]);
    assert_eq!(std::fs::read(own).unwrap(), std::fs::read(&stored).unwrap());
    let kept: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept.len(), 4, "{kept:?}");
}
