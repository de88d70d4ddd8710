//! The schemas in `docs/schemas`: the JSON documents that pmc prints follow them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::kit;

/// The documents with a schema, by the name of its file.
const DOCUMENTS: [&str; 9] =
    ["annotate", "compare", "diff", "diff-vs", "info", "report", "stat", "stat-vs", "top"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas")
}

fn schema(name: &str) -> Json {
    serde_json::from_slice(&fs::read(folder().join(format!("{name}.json"))).unwrap()).unwrap()
}

/// Whether a value has a type of JSON Schema.
fn is_of(value: &Json, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has an unknown type {other}"),
    }
}

/// Returns the first place in which a value does not follow a schema. Understands the keywords that the schemas
/// use, and panics for others, so that nothing stays unchecked.
fn fault(root: &Json, schema: &Json, value: &Json, place: &str) -> Option<String> {
    for (keyword, rule) in schema.as_object().unwrap() {
        let list = || rule.as_array().unwrap().iter();
        let follows = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let target = rule.as_str().unwrap().strip_prefix('#').unwrap();
                let found = fault(root, root.pointer(target).unwrap(), value, place);
                if found.is_some() {
                    return found;
                }
                true
            }
            "anyOf" => list().any(|one| fault(root, one, value, place).is_none()),
            "const" => value == rule,
            "enum" => list().any(|one| one == value),
            "type" => match rule {
                Json::String(kind) => is_of(value, kind),
                _ => list().any(|kind| is_of(value, kind.as_str().unwrap())),
            },
            "required" => value
                .as_object()
                .is_none_or(|object| list().all(|name| object.contains_key(name.as_str().unwrap()))),
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let found = items.map(|(at, one)| fault(root, rule, one, &format!("{place}/{at}")));
                if let Some(found) = found.flatten().next() {
                    return Some(found);
                }
                true
            }
            "properties" | "additionalProperties" => {
                let known = &schema["properties"];
                for (name, one) in value.as_object().into_iter().flatten() {
                    let rule = match (keyword == "properties", known.get(name)) {
                        (true, Some(rule)) => rule,
                        (false, None) => rule,
                        _ => continue,
                    };
                    let place = format!("{place}/{name}");
                    if rule == &json!(false) {
                        return Some(format!("{place}: the schema has no such field"));
                    }
                    if let Some(found) = fault(root, rule, one, &place) {
                        return Some(found);
                    }
                }
                true
            }
            other => panic!("the schema has an unknown keyword {other}"),
        };
        if !follows {
            return Some(format!("{place}: {keyword} {rule}: {value}"));
        }
    }
    None
}

/// Checks a document against its schema.
#[track_caller]
fn check(name: &str, text: &str, what: &str) {
    let schema = schema(name);
    let document: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
    if let Some(fault) = fault(&schema, &schema, &document, "") {
        panic!("{name} of {what}: {fault}");
    }
}

/// Recordings by perf, simpleperf and pmc, with all kinds of samples.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording");
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn documents_about_recordings_follow_their_schemas() {
    let mut checked = 0;
    for path in recordings() {
        let file = path.to_str().unwrap();
        for (name, words) in [
            ("report", &["report", "--json", "-i", file][..]),
            (
                "report",
                &["report", "--json", "--show-cpu-utilization", "-s", "comm,tid,cpu,srcline", "-i", file],
            ),
            ("annotate", &["annotate", "--json", "-i", file]),
            ("diff", &["diff", "--json", "--tree", "-c", "ratio", file, file]),
        ] {
            let ran = kit::run(words);
            // Some recordings lack samples or the requested keys.
            if !ran.stdout.is_empty() {
                check(name, &ran.stdout, &words.join(" "));
                checked += 1;
            }
        }
    }
    assert!(checked > 150, "only {checked} documents");
}

#[test]
fn descriptions_of_machines_follow_their_schema() {
    check("info", &kit::run(&["info", "--json"]).expect(0).stdout, "this machine");
    for cpu in kit::CPUS {
        let output = kit::pmc_on(cpu).args(["info", "--json"]).output().unwrap();
        check("info", &String::from_utf8(output.stdout).unwrap(), cpu);
    }
}

#[test]
fn documents_of_measurements_follow_their_schemas() {
    if !kit::need_perf_events() {
        return;
    }
    let events = "task-clock:u,page-faults:u,cycles:u";
    let pid = std::process::id().to_string();
    for words in [
        &["-e", events, "--", "true"][..],
        &["-r", "3", "-e", events, "--", "true"],
        &["-e", events, "-I", "50", "--", "sleep", "0.2"],
        &["--per-thread", "-p", &pid, "-e", events, "--timeout", "50ms"],
        &["--user-kernel", "-e", "page-faults", "--", "true"],
        &["--children", "-e", events, "--", "sh", "-c", "true; true"],
    ] {
        let words = [&["stat", "--json=2", "-o", "-"][..], words].concat();
        check("stat", &kit::run(&words).expect(0).stdout, &words.join(" "));
    }
    for runs in ["1", "3"] {
        let words =
            ["stat", "--json", "-o", "-", "-e", events, "-r", runs, "--vs", "true", "--vs", "sleep 0.01"];
        check("stat-vs", &kit::run(&words).expect(0).stdout, &words.join(" "));
    }
    let gate = ["--fail-if", "worse > 3%", "--vs", "true", "--vs", "true"];
    let words = [&["stat", "--json", "-o", "-", "-e", events, "-r", "3"][..], &gate].concat();
    // The exit status is the answer.
    check("stat-vs", &kit::run(&words).stdout, &words.join(" "));
    let sampled = ["--sample", "cpu-clock:u", "-r", "3"];
    for gate in [&[][..], &["--fail-if", "total > 3%"]] {
        let words = [&["compare", "--json", "-e", events, "true", "sleep 0.01"], &sampled[..], gate].concat();
        check("compare", &kit::run(&words).stdout, &words.join(" "));
    }
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    for file in [&old, &new] {
        kit::run(&["record", "-q", "-e", "cpu-clock:u", "-o", file, "--", "sh", "-c", "echo $((1+1))"])
            .expect(0);
    }
    for more in [&[][..], &["--fail-if", "total > 3%"]] {
        let words = [&["diff", "--json", &old, "--vs", &new], more].concat();
        check("diff-vs", &kit::run(&words).stdout, &words.join(" "));
    }
    let ran =
        kit::run(&["top", "--json", "-e", "cpu-clock:u", "-p", &pid, "-d", "100ms", "--duration", "500ms"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(!lines.is_empty(), "{}", ran.stderr);
    lines.iter().for_each(|line| check("top", line, "this process"));
}

#[test]
fn every_schema_is_listed_and_strict() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let names: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, DOCUMENTS.map(str::to_owned).into());
    // A field that the schema does not know, or that is missing, is a fault.
    let file = recordings().into_iter().find(|path| path.ends_with("perf6-fp.data")).unwrap();
    let text = kit::run(&["report", "--json", "-i", file.to_str().unwrap()]).stdout;
    let schema = schema("report");
    let whole: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(fault(&schema, &schema, &whole, ""), None);
    let mut more = whole.clone();
    more["trust"]["new"] = 1.into();
    assert!(fault(&schema, &schema, &more, "").unwrap().contains("/trust/new"));
    let mut less = whole.clone();
    less["events"][0].as_object_mut().unwrap().remove("rows");
    assert!(fault(&schema, &schema, &less, "").unwrap().contains("required"));
    let mut other = whole;
    other["events"][0]["rows"][0]["self"]["samples"] = "many".into();
    assert!(fault(&schema, &schema, &other, "").unwrap().contains("/self/samples"));
}
