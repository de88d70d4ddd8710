//! The schemas in `docs/schemas`: every JSON document that pmc prints has one and follows it, and `--limit` cuts
//! documents as they say. Tests of other commands check their documents, too.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command as Parser, CommandFactory as _};
use pmc::cli::Cli;
use serde_json::Value as Json;

use crate::kit;
use crate::kit::schema::{document, fault, folder, schema};

/// Checks a document, or each line of it if the schema describes lines.
#[track_caller]
fn check(name: &str, text: &str, what: &str) {
    let schema = schema(name);
    let is_lines = schema["title"].as_str().is_some_and(|title| title.ends_with("one document per line"));
    let documents: Vec<&str> = if is_lines { text.lines().collect() } else { vec![text] };
    for text in documents {
        let document = serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
        if let Some(fault) = fault(&schema, &schema, &document, "") {
            panic!("{what}: {name}: {fault}");
        }
    }
}

/// Recordings by perf, simpleperf and pmc, with all kinds of samples.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording");
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// Command lines that print JSON about any recording, which is the last word, and the names of their schemas.
const READERS: [(&str, &[&str]); 16] = [
    ("report", &["report", "--json", "-i"]),
    ("report", &["report", "--json", "--show-cpu-utilization", "-s", "comm,tid,cpu,srcline", "-i"]),
    ("annotate", &["annotate", "--json", "-i"]),
    ("script", &["script", "--json", "-i"]),
    ("script", &["script", "--json", "--show-mmap-events", "--show-task-events", "--show-lost-events", "-i"]),
    (
        "script",
        &["script", "--json", "--show-switch-events", "--show-cgroup-events", "-F", "+insn,+disasm", "-i"],
    ),
    ("data-convert", &["data", "convert", "--to-json", "-", "-i"]),
    ("info-recording", &["info", "--json"]),
    ("info-recording", &["info", "--json", "--header"]),
    ("sched-latency", &["sched", "latency", "--json", "-p", "-i"]),
    ("sched-timehist", &["sched", "timehist", "--json", "-w", "-M", "-n", "--blame", "-S", "-i"]),
    ("lock-contention", &["lock", "contention", "--json", "-v", "-i"]),
    ("lock-contention", &["lock", "contention", "--json", "-t", "-i"]),
    ("lock-contention", &["lock", "contention", "--json", "-l", "-i"]),
    ("trace", &["trace", "--json", "-i"]),
    ("trace-summary", &["trace", "--json", "-s", "-i"]),
];

#[test]
fn documents_about_recordings_follow_their_schemas() {
    let mut checked: BTreeSet<(usize, PathBuf)> = BTreeSet::new();
    for path in recordings() {
        let file = path.to_str().unwrap();
        let diff: &[&str] = &["diff", "--json", "--tree", "-c", "ratio", file];
        for (number, (name, words)) in READERS.into_iter().chain([("diff", diff)]).enumerate() {
            let words = [words, &[file]].concat();
            let ran = kit::run(&words);
            // Some recordings lack samples, the requested keys or events.
            if !ran.stdout.trim().is_empty() {
                check(name, &ran.stdout, &words.join(" "));
                checked.insert((number, path.clone()));
            }
        }
    }
    for number in 0..=READERS.len() {
        let of: Vec<&PathBuf> =
            checked.iter().filter(|(by, _)| *by == number).map(|(_, path)| path).collect();
        assert!(!of.is_empty(), "no recording for {:?}", READERS.get(number));
    }
    assert!(checked.len() > 400, "only {} documents", checked.len());
}

/// Returns the list of a document's object to which a number in `omitted` refers.
fn cut_list<'a>(object: &'a Json, name: &str) -> &'a [Json] {
    let list = match name {
        "nodes" if object["tree"].is_array() => &object["tree"],
        "nodes" => &object["tree"]["nodes"],
        "calls" if object.get("total").is_some() => &object["total"],
        _ => &object[name],
    };
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Compares a document with the same one cut to `limit` items per list. Returns the number of omitted items.
fn compare_cut(whole: &Json, cut: &Json, limit: usize, what: &str) -> usize {
    match (whole, cut) {
        (Json::Object(fields), Json::Object(_)) => {
            let mut sum = 0;
            for (name, omitted) in cut["omitted"].as_object().into_iter().flatten() {
                let [all, kept] = [whole, cut].map(|object| cut_list(object, name).len());
                assert_eq!(kept, all.min(limit), "{what}: {name}");
                assert_eq!(omitted.as_u64(), Some((all - kept) as u64), "{what}: {name}");
                assert_eq!(whole["omitted"][name], 0, "{what}: {name}");
                sum += all - kept;
            }
            sum + fields.iter().map(|(name, one)| compare_cut(one, &cut[name], limit, what)).sum::<usize>()
        }
        (Json::Array(whole), Json::Array(cut)) => {
            whole.iter().zip(cut).map(|(whole, cut)| compare_cut(whole, cut, limit, what)).sum()
        }
        _ => 0,
    }
}

#[test]
fn limit_cuts_the_lists_of_documents() {
    let corpus = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording").join(name);
    let mut omitted = BTreeSet::new();
    for file in ["simpleperf-132.data", "made-archive.data", "pmc-lock.data", "pmc-syscalls.data"] {
        let file = corpus(file).to_str().unwrap().to_owned();
        let own: [(&str, &[&str]); 2] = [
            ("report", &["report", "--json", "-s", "sym,srcline", "-i"]),
            ("diff", &["diff", "--json", "--tree", &corpus("simpleperf-128.data").display().to_string()]),
        ];
        for (name, words) in READERS.into_iter().chain(own) {
            let lines = schema(name)["title"].as_str().unwrap().ends_with("per line");
            if lines || name == "data-convert" {
                continue;
            }
            let words = [words, &[&file]].concat();
            let whole = kit::run(&words).stdout;
            if whole.trim().is_empty() {
                continue;
            }
            let cut = kit::run(&[&words[..], &["--limit", "1"]].concat()).stdout;
            let [whole, cut] = [whole, cut].map(|text| document(name, &text));
            if compare_cut(&whole, &cut, 1, &words.join(" ")) > 0 {
                omitted.insert(name);
            }
            if let Some(rows) = whole["events"][0]["rows"].as_array() {
                let kept = cut["events"][0]["rows"].as_array().unwrap();
                assert_eq!(rows[..kept.len()], kept[..], "the most important rows are kept");
            }
        }
    }
    for name in ["report", "diff", "trace-summary", "info-recording"] {
        assert!(omitted.contains(name), "no recording has enough for {name}: {omitted:?}");
    }
    let header = kit::run(&["info", &corpus("pmc-lock.data").display().to_string(), "--limit", "1"]);
    header.expect(0).prints(&["Events\n", "more (--limit 0 shows all)"]);
    let [all, cut] = [&[][..], &["--limit", "3"]]
        .map(|more| kit::run(&[&["list", "--json", "sw", "metric"], more].concat()).stdout);
    let [all, cut] = [all, cut].map(|text| document("list", &text));
    assert!(compare_cut(&all, &cut, 3, "list") > 3);
    assert_eq!(all["events"].as_array().unwrap()[..3], cut["events"].as_array().unwrap()[..]);
}

#[test]
fn limit_cuts_lines_and_counts_the_rest() {
    let corpus = |name: &str| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording").join(name).display().to_string()
    };
    for (name, words, count) in [
        ("script", &["script", "--json", "-i", &corpus("simpleperf-132.data")][..], "lines"),
        ("trace", &["trace", "--json", "-i", &corpus("pmc-syscalls.data")], "calls"),
    ] {
        let whole = kit::run(words).expect(0).stdout;
        let whole: Vec<&str> = whole.lines().collect();
        let cut = kit::run(&[words, &["--limit", "3"]].concat()).expect(0).stdout;
        check(name, &cut, &words.join(" "));
        let cut: Vec<&str> = cut.lines().collect();
        assert!(whole.len() > 4, "{words:?}");
        assert_eq!(cut[..3], whole[..3], "{words:?}");
        let rest = document(name, cut[3]);
        assert_eq!(
            (cut.len(), rest["omitted"][count].as_u64()),
            (4, Some(whole.len() as u64 - 3)),
            "{words:?}"
        );
        // 0 and a number that suffices cut nothing.
        for limit in ["0", "100000"] {
            let same = kit::run(&[words, &["--limit", limit]].concat()).expect(0).stdout;
            assert!(same.lines().eq(whole.iter().copied()), "{words:?} --limit {limit}");
        }
    }
    let text = kit::run(&["script", "-F", "comm,ip", "-i", &corpus("simpleperf-132.data"), "--limit", "1"])
        .expect(0);
    text.says(&["more samples and records (--limit 0 shows all)"]);
}

#[test]
fn descriptions_of_machines_follow_their_schemas() {
    let descriptions: [(&str, &[&str]); 4] = [
        ("info", &["info", "--json"]),
        ("info-counters", &["info", "--json", "--counters"]),
        ("list", &["list", "--json", "hw", "sw", "cache", "tool", "vendor", "metric", "freebsd", "raw"]),
        ("list", &["list", "--json", "--long", "--deprecated", "pmu", "probe", "breakpoint", "metricgroup"]),
    ];
    for (name, words) in descriptions {
        check(name, &kit::run(words).expect(0).stdout, "this machine");
        for cpu in kit::CPUS {
            let output = kit::pmc_on(cpu).args(words).output().unwrap();
            check(name, &String::from_utf8(output.stdout).unwrap(), cpu);
        }
    }
    if kit::need_tracefs("sched") {
        check("list", &kit::run(&["list", "--json", "--long", "sched:*"]).expect(0).stdout, "tracepoints");
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
    for words in [
        &["-e", events, "--", "true"][..],
        &["-r", "3", "-e", events, "--", "true"],
        &["-e", events, "-I", "50", "--", "sleep", "0.2"],
        &["-A", "-e", "cpu-clock", "--timeout", "20ms"],
        &["--per-socket", "-e", "cpu-clock", "-M", "ipc", "--timeout", "20ms"],
        &["--metric-only", "-M", "ipc", "--", "true"],
    ] {
        let words = [&["stat", "--json", "-o", "-"][..], words].concat();
        let ran = kit::run(&words);
        // An ordinary user cannot measure whole CPUs.
        if !words.contains(&"cpu-clock") || ran.status == Some(0) {
            check("stat-lines", &ran.expect(0).stdout, &words.join(" "));
        }
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
    let annotated = ["annotate", "--json", "--functions", "0", "-i", &old];
    let whole = kit::run(&annotated).expect(0).stdout;
    let cut = kit::run(&[&annotated[..], &["--limit", "2"]].concat()).expect(0).stdout;
    let [whole, cut] = [whole, cut].map(|text| document("annotate", &text));
    assert!(compare_cut(&whole, &cut, 2, "annotate") > 0, "{whole:#}");
    let measured = folder.path().join("measured").to_str().unwrap().to_owned();
    for more in [&[][..], &["--timeout", "1ms"]] {
        let record = ["record", "--json", "-q", "-e", events, "-o", &measured];
        let words = [&record[..], more, &["--", "sh", "-c", "true; true"]].concat();
        check("record", &kit::run(&words).stdout, &words.join(" "));
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

/// Returns the commands below `parser` that have `--json` or `--to-json`, and whether each has `--limit`.
fn commands_with_json(parser: &Parser) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut open = vec![parser];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        let longs: Vec<&str> = command
            .get_arguments()
            .flat_map(|arg| arg.get_long_and_visible_aliases().unwrap_or_default())
            .collect();
        if let Some(option) = ["json", "to-json"].into_iter().find(|option| longs.contains(option)) {
            let name = command.get_bin_name().unwrap().replace("stat-", "stat ");
            found.push((format!("`{name} --{option}"), longs.contains(&"limit")));
        }
    }
    found
}

#[test]
fn every_command_with_json_has_schemas() {
    let mut parser = Cli::command();
    parser.build();
    let page = fs::read_to_string(folder().join("README.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let commands = commands_with_json(&parser);
    assert!(commands.len() > 20, "{commands:?}");
    let mut faults = Vec::new();
    for (command, has_limit) in &commands {
        // `pmc stat --vs … --json` is a command with other options in between.
        let name = command.split(" --").next().unwrap();
        let starts = [command, &format!("{name} -"), &format!("{name} FILE -")];
        let files = rows.iter().filter(|row| starts.iter().any(|start| row.contains(*start)));
        let files: Vec<&str> =
            files.map(|row| row.split_once("](").unwrap().1.split_once(".json").unwrap().0).collect();
        if files.is_empty() {
            faults.push(format!("{command} has no row in docs/schemas/README.md"));
        }
        for file in files {
            let limits = schema(file).to_string().contains("\"omitted\"");
            // `info` has `--limit` only for recordings.
            let is_of_machine = ["info", "info-counters"].contains(&file);
            if limits != (*has_limit && !is_of_machine) {
                faults.push(format!(
                    "{command}: --limit is {has_limit}, but omitted in {file}.json is {limits}"
                ));
            }
        }
    }
    for shown in rows.iter().flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)) {
        let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_lowercase());
        let name = shown.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
        if !commands.iter().any(|(command, _)| command.starts_with(&format!("`{name} --"))) {
            faults.push(format!("docs/schemas/README.md lists {shown}, which does not exist"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let listed: BTreeSet<&str> =
        rows.iter().map(|row| row.split_once("](").unwrap().1.split_once(".json").unwrap().0).collect();
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(files.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn schemas_are_strict() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        // Every object with known fields forbids others, or gives their type.
        let mut open = vec![schema(path.file_stem().unwrap().to_str().unwrap())];
        while let Some(value) = open.pop() {
            if let Json::Object(fields) = &value {
                let is_open =
                    fields.get("properties").is_some_and(|of| of.is_object() && fields.contains_key("type"))
                        && !fields.contains_key("additionalProperties");
                assert!(!is_open, "{}: {value}", path.display());
            }
            match value {
                Json::Object(fields) => open.extend(fields.into_iter().map(|(_, value)| value)),
                Json::Array(all) => open.extend(all),
                _ => {}
            }
        }
    }
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
