//! `pmc export --format parquet` and the queries in docs/fleet.md, run by engines from PyPI: sums match `report`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::kit;
use crate::kit::burn::busy_shell;
use crate::kit::lab::{CHAIN, Lab};

/// A program with inlined and other functions, at addresses that differ in each run.
const PROGRAM: &str = r#"
static inline __attribute__((always_inline)) unsigned long tiny(unsigned long x) { return chain(x, 50 * uneven()); }
static __attribute__((noinline)) unsigned long fast(unsigned long x) { return tiny(x) + 1; }
static __attribute__((noinline)) unsigned long slow(unsigned long x) { return chain(x, 150 * uneven()) + 2; }
int main(void) { for_cpu_ms(250) sink = slow(fast(sink)); return 0; }
"#;
const FLAGS: [&str; 5] = ["-O1", "-g", "-fno-omit-frame-pointer", "-fPIE", "-pie"];

/// Recordings of two runs on two hosts, each with its tables in the folder `fleet`.
struct Fleet {
    lab: Lab,
    recordings: [PathBuf; 2],
}

const HOSTS: [(&str, &str); 2] = [("web7", "1.4"), ("web8", "1.5")];

impl Fleet {
    fn new() -> Option<Self> {
        let lab = Lab::new()?;
        let program = lab.build("walk", &[CHAIN, PROGRAM].concat(), &FLAGS);
        let recordings = HOSTS.map(|(host, version)| {
            let file = lab.path(&format!("{host}.data"));
            let words = ["record", "-q", "-N", "-e", "cpu-clock", "-F", "2000", "-g", "--sample-cpu"];
            let output = ["-o", file.to_str().unwrap(), "--"];
            kit::run(&[&words[..], &output, &[program.to_str().unwrap()]].concat()).expect(0);
            let out = lab.path("fleet").join(host);
            let origin = ["--service", "web", "--service-version", version, "--host", host];
            export(&file, &out, &[&origin[..], &["--label", "zone=b"]].concat());
            file
        });
        Some(Self { lab, recordings })
    }

    /// Runs the queries of a section of docs/fleet.md, and others.
    fn query(&self, engine: &str, more: &[Statement]) -> Json {
        let mut statements = page(engine);
        statements.extend(more);
        query(&self.lab.path(""), engine, &statements)
    }

    /// Returns the sums in the reports of both recordings: by function, and of all.
    fn reported(&self) -> (BTreeMap<String, [u64; 4]>, [u64; 2]) {
        let (mut functions, mut sums) = (BTreeMap::<String, [u64; 4]>::new(), [0; 2]);
        for file in &self.recordings {
            let out = kit::run(&["report", "--json", "--no-cache", file.to_str().unwrap()]).expect(0).stdout;
            let report: Json = serde_json::from_str(&out).unwrap();
            let event = &report["events"][0];
            let number = |of: &Json, name: &str| of[name].as_u64().unwrap();
            sums = [sums[0] + number(event, "samples"), sums[1] + number(event, "period")];
            for row in event["rows"].as_array().unwrap() {
                let sum = functions.entry(row["sym"].as_str().unwrap().to_owned()).or_default();
                for (at, (part, name)) in
                    [("self", "samples"), ("self", "period"), ("total", "samples"), ("total", "period")]
                        .into_iter()
                        .enumerate()
                {
                    sum[at] += number(&row[part], name);
                }
            }
        }
        (functions, sums)
    }
}

/// A name and an SQL statement.
type Statement = (&'static str, &'static str);

/// Exports the tables of a recording.
fn export(recording: &Path, out: &Path, more: &[&str]) {
    let words = ["export", recording.to_str().unwrap(), "--format", "parquet", "--no-cache", "-o"];
    kit::run(&[&words[..], &[out.to_str().unwrap()], more].concat()).expect(0).says(&["are written"]);
}

/// Returns the statements of an engine's section of docs/fleet.md, by the name in their first line, in order.
fn page(engine: &str) -> Vec<Statement> {
    let page = include_str!("../../docs/fleet.md");
    let heading = match engine {
        "duckdb" => "### DuckDB\n",
        "chdb" => "### ClickHouse\n",
        "pyspark" => "### Spark\n",
        other => panic!("{other}"),
    };
    let section = page.split_once(heading).unwrap().1;
    let section = section.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let mut statements = Vec::new();
    for block in section.split("```sql\n-- ").skip(1) {
        let name = block.split([':', '\n']).next().unwrap();
        let sql = block.split_once('\n').unwrap().1.split("```").next().unwrap();
        statements.push((name, sql.trim()));
    }
    assert!(statements.len() > 3, "{statements:?}");
    statements
}

/// Runs statements on an engine, with the folder as current directory. Returns the rows by statement.
fn query(folder: &Path, engine: &str, statements: &[Statement]) -> Json {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reading/fleet/query.py");
    let mut child = python().arg(script).arg(engine).current_dir(folder).spawn().unwrap();
    let text = json!(statements).to_string();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{engine}: {errors}\n{text}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{engine}: {output:?}"))
}

/// Python with the packages that `.ci/run` installs into a separate folder.
fn python() -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", std::env::var("PMC_TEST_FLEET").unwrap_or_default());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether a Python package is installed.
fn need(package: &str) -> bool {
    if !kit::need_program("python3") {
        return false;
    }
    let is_there = python().args(["-c", &format!("import {package}")]).output().unwrap().status.success();
    kit::need(package, is_there, &format!("the Python package {package} is not installed"))
}

/// Compares rows of name, samples and value with a part of the report's sums.
#[track_caller]
fn assert_sums(rows: &Json, functions: &BTreeMap<String, [u64; 4]>, part: usize) {
    let number = |value: &Json| value.as_u64().or_else(|| value.as_str()?.parse().ok()).expect("a number");
    let found: BTreeMap<&str, [u64; 2]> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row[0].as_str().unwrap(), [number(&row[1]), number(&row[2])]))
        .collect();
    let expected: BTreeMap<&str, [u64; 2]> = functions
        .iter()
        .map(|(name, sums)| (name.as_str(), [sums[part], sums[part + 1]]))
        .filter(|(_, [samples, _])| *samples > 0)
        .collect();
    assert_eq!(found, expected);
}

/// Checks the queries that all sections of the page have.
fn check_sums(fleet: &Fleet, rows: &Json) {
    let (functions, sums) = fleet.reported();
    assert!(functions["slow"][0] > 0 && functions["tiny"][0] == 0 && functions["tiny"][2] > 0);
    assert_sums(&rows["self"], &functions, 0);
    assert_sums(&rows["total"], &functions, 2);
    // ClickHouse prints 64-bit numbers as strings.
    let flame = rows["flame"].as_array().unwrap().iter();
    let value = |value: &Json| value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap();
    assert_eq!(flame.clone().map(|row| value(&row[1])).sum::<u64>(), sums[1]);
    assert!(flame.clone().any(|row| row[0].as_str().unwrap().ends_with("main;fast;tiny;chain")), "{rows}");
}

#[test]
fn duckdb_returns_the_sums_of_report() {
    if !need("duckdb") {
        return;
    }
    let Some(fleet) = Fleet::new() else { return };
    let compact = include_str!("../../docs/fleet.md").split_once("## Compact").unwrap().1;
    let block = |name: &str| {
        let block = compact.split_once(&format!("```sql\n-- {name}\n")).unwrap().1;
        block.split("```").next().unwrap()
    };
    let rows = fleet.query(
        "duckdb",
        &[
            ("files", "SELECT host, version, service, labels['zone'], count(*), sum(samples), max(duration_us) FROM samples GROUP BY ALL ORDER BY host"),
            ("unaligned", "SELECT count(*) FROM samples WHERE epoch_us(time) % 60000000 <> 0 OR pid IS NOT NULL"),
            ("ids", "SELECT count(*) - count(DISTINCT stack_id) FROM read_parquet('fleet/web7.stacks.parquet')"),
            ("shared", "SELECT count(*) FROM read_parquet('fleet/web7.stacks.parquet') a JOIN read_parquet('fleet/web8.stacks.parquet') b USING (stack_id) WHERE a.function = b.function AND a.function[-1] = 'chain'"),
            ("different", "SELECT count(*) FROM read_parquet('fleet/web7.stacks.parquet') a JOIN read_parquet('fleet/web8.stacks.parquet') b USING (function, module, build_id, address, line) WHERE a.stack_id <> b.stack_id"),
            ("orphans", "SELECT count(*) FROM samples ANTI JOIN stacks USING (stack_id)"),
            ("metadata", "SELECT DISTINCT decode(key), decode(value) FROM parquet_kv_metadata('fleet/*.parquet') ORDER BY 1"),
            ("nullable", "SELECT name FROM parquet_schema('fleet/web7.samples.parquet') WHERE repetition_type = 'OPTIONAL' ORDER BY name"),
            ("compact_samples", block("compact_samples")),
            ("compact_stacks", block("compact_stacks")),
            ("compacted", "SELECT (SELECT count(*) FROM 'day.stacks.parquet') - (SELECT count(*) FROM stacks), (SELECT sum(value) FROM 'day.samples.parquet') - (SELECT sum(value) FROM samples)"),
        ],
    );
    check_sums(&fleet, &rows);
    let files = rows["files"].as_array().unwrap();
    let origin = |at: usize| [&files[at][0], &files[at][1], &files[at][2], &files[at][3]].map(|v| v.as_str());
    for (at, (host, version)) in HOSTS.into_iter().enumerate() {
        assert_eq!(origin(at), [Some(host), Some(version), Some("web"), Some("b")]);
        assert_eq!(files[at][6], 60_000_000);
    }
    for (name, expected) in [
        ("unaligned", json!([[0]])),
        ("ids", json!([[0]])),
        ("different", json!([[0]])),
        ("orphans", json!([[0]])),
        ("compacted", json!([[0, 0]])),
        ("metadata", json!([["pmc.clock", "recorded"], ["pmc.schema", "1"]])),
        ("nullable", json!([["container"], ["cpu"], ["labels"], ["pid"], ["tid"]])),
    ] {
        assert_eq!(rows[name], expected, "{name}");
    }
    assert!(rows["shared"][0][0].as_u64().unwrap() > 0, "{}", rows["shared"]);
    // The machine may be too slow for the versions to be equal, but the shares add up.
    for side in [1, 2] {
        let shares: f64 =
            rows["diff"].as_array().unwrap().iter().map(|row| row[side].as_f64().unwrap()).sum();
        assert!((shares - 100.0).abs() < 1e-6, "{}", rows["diff"]);
    }
    assert_eq!(rows["host"][0][0], "walk");
}

#[test]
fn each_sample_keeps_its_time_thread_and_cpu() {
    if !need("duckdb") {
        return;
    }
    let Some(fleet) = Fleet::new() else { return };
    export(&fleet.recordings[0], &fleet.lab.path("each/"), &["--bucket", "none"]);
    let script = kit::run(&[
        "script",
        "-i",
        fleet.recordings[0].to_str().unwrap(),
        "-F",
        "pid,tid,cpu,time,period",
        "--ns",
        "-G",
    ])
    .expect(0)
    .stdout;
    let statements = [(
        "each",
        "SELECT pid, tid, cpu, value, samples, duration_us, epoch_us(time) FROM 'each/web7.samples.parquet' ORDER BY time",
    )];
    let rows = query(&fleet.lab.path(""), "duckdb", &statements);
    let rows = rows["each"].as_array().unwrap();
    let lines: Vec<Vec<&str>> = script
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|words: &Vec<&str>| words.len() >= 4)
        .collect();
    assert_eq!(rows.len(), lines.len(), "{script}");
    let micros = |text: &str| {
        let (seconds, ns) = text.trim_end_matches(':').split_once('.').unwrap();
        (seconds.parse::<i64>().unwrap() * 1_000_000_000 + ns.parse::<i64>().unwrap()) / 1000
    };
    let offset = rows[0][6].as_i64().unwrap() - micros(lines[0][2]);
    for (row, words) in rows.iter().zip(&lines) {
        let (pid, tid) = words[0].split_once('/').unwrap();
        let cpu = words[1].trim_matches(['[', ']']).trim_start_matches('0');
        let cpu = if cpu.is_empty() { "0" } else { cpu };
        let expected = [pid, tid, cpu, words[3]].map(|word| word.parse::<i64>().unwrap());
        assert_eq!([0, 1, 2, 3].map(|at| row[at].as_i64().unwrap()), expected);
        assert_eq!((row[4].as_i64(), row[5].as_i64()), (Some(1), Some(0)));
        // Both times are rounded down to microseconds.
        assert!((row[6].as_i64().unwrap() - micros(words[2]) - offset).abs() <= 1);
    }
}

#[test]
fn late_names_equal_early_ones() {
    if !need("duckdb") {
        return;
    }
    let Some(fleet) = Fleet::new() else { return };
    let lab = &fleet.lab;
    let (early, late) = (lab.path("early"), lab.path("late"));
    export(&fleet.recordings[0], &early, &[]);
    export(&fleet.recordings[0], &late, &["--no-symbols"]);
    let compare = |step: &str| {
        let rows = query(
            &lab.path(""),
            "duckdb",
            &[
                (
                    "added",
                    "SELECT count(*) FROM (FROM 'late.stacks.parquet' EXCEPT FROM 'early.stacks.parquet')",
                ),
                (
                    "missing",
                    "SELECT count(*) FROM (FROM 'early.stacks.parquet' EXCEPT FROM 'late.stacks.parquet')",
                ),
                (
                    "ids",
                    "SELECT count(*) FROM 'early.stacks.parquet' ANTI JOIN 'late.stacks.parquet' USING (stack_id)",
                ),
                (
                    "samples",
                    "SELECT count(*) FROM (FROM 'early.samples.parquet' EXCEPT FROM 'late.samples.parquet')",
                ),
                (
                    "unnamed",
                    "SELECT (SELECT count(*) FROM 'late.stacks.parquet' WHERE NOT symbolized) - (SELECT count(*) FROM 'early.stacks.parquet' WHERE NOT symbolized)",
                ),
                (
                    "merged",
                    "COPY (FROM 'late.stacks.parquet' ORDER BY stack_id) TO 'merged.stacks.parquet' (FORMAT parquet, COMPRESSION zstd)",
                ),
            ],
        );
        assert_eq!((&rows["ids"], &rows["samples"]), (&json!([[0]]), &json!([[0]])), "{step}: {rows}");
        ["added", "missing", "unnamed"].map(|name| rows[name][0][0].as_u64().unwrap())
    };
    let [added, missing, unnamed] = compare("exported");
    assert!(added == missing && added == unnamed && added > 0, "{added} {missing} {unnamed}");
    // Another machine, which has the program in its build-id cache, and another program at its path.
    let cache = lab.path("cache");
    let cache = cache.to_str().unwrap();
    let program = lab.path("walk");
    let copy = lab.path("copy");
    std::fs::rename(&program, &copy).unwrap();
    let other = lab.build("other", &format!("{CHAIN}int main(void) {{ return 0; }}"), &FLAGS);
    std::fs::rename(other, &program).unwrap();
    let symbolize = |table: &str, more: &[&str]| {
        let file = lab.path(table);
        let words = ["symbolize", "--no-cache", "--no-debuginfod", file.to_str().unwrap()];
        // The user's own cache may contain the program, if a test records this machine.
        let mut pmc = kit::pmc();
        pmc.args(["--buildid-dir", cache]).args(words).args(more).env("HOME", lab.path(""));
        kit::Ran::from(pmc.output().unwrap())
    };
    symbolize("late.stacks.parquet", &[]).expect(0).says(&["still lack some"]);
    kit::run(&["--buildid-dir", cache, "buildid-cache", "--add", copy.to_str().unwrap()]).expect(0);
    // A table that another engine has rewritten is accepted too.
    let again = lab.path("again.stacks.parquet");
    symbolize("merged.stacks.parquet", &["-o", again.to_str().unwrap()]).expect(0);
    symbolize("late.stacks.parquet", &[]).expect(0).says(&["added names to "]);
    assert_eq!(compare("symbolized"), [0, 0, 0]);
    let difference = "SELECT count(*) FROM (FROM 'again.stacks.parquet' EXCEPT FROM 'late.stacks.parquet')";
    assert_eq!(query(&lab.path(""), "duckdb", &[("again", difference)])["again"], json!([[0]]));
    // Other files.
    let samples = lab.path("late.samples.parquet");
    let wrong = kit::run(&["symbolize", samples.to_str().unwrap()]).expect(1);
    wrong.says(&["late.samples.parquet", "no column `function`", "NAME.stacks.parquet"]);
    let source = lab.path("walk.c");
    kit::run(&["symbolize", source.to_str().unwrap()]).expect(1).says(&["walk.c"]);
    kit::run(&["symbolize", "a", "b", "-o", "c"]).expect(2).says(&["-o requires a single table"]);
}

#[test]
fn damaged_tables_are_rejected() {
    let Some(lab) = Lab::new() else { return };
    let read = kit::data("perfdata").join("fp.data");
    export(&read, &lab.path("fp"), &["--no-symbols"]);
    let table = std::fs::read(lab.path("fp.stacks.parquet")).unwrap();
    let (file, out) = (lab.path("changed.stacks.parquet"), lab.path("out.stacks.parquet"));
    let mut dice = 88_172_645_463_325_252u64;
    let mut random = |below: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        dice as usize % below
    };
    for round in 0..150 {
        let mut changed = table.clone();
        for _ in 0..1 + random(8) {
            let at = random(changed.len());
            changed[at] = random(256) as u8;
        }
        std::fs::write(&file, &changed).unwrap();
        let words = ["symbolize", "--no-cache", "--no-debuginfod", file.to_str().unwrap(), "-o"];
        let ran = kit::run(&[&words[..], &[out.to_str().unwrap()]].concat());
        let is_said = ran.status == Some(0) || (ran.status == Some(1) && ran.stderr.starts_with("pmc: "));
        assert!(is_said && !ran.stderr.contains("panicked"), "round {round}: {ran:?}");
        assert_eq!(std::fs::read(&file).unwrap(), changed);
    }
}

#[test]
fn options_that_do_not_fit_the_tables_are_explained() {
    let Some(lab) = Lab::new() else { return };
    let program = lab.build("walk", &[CHAIN, PROGRAM].concat(), &FLAGS);
    let file = lab.record("perf.data", &["-e", "cpu-clock", "-F", "500"], &program);
    let fails = |more: &[&str], status, words: &[&str]| {
        let export = ["export", file.to_str().unwrap()];
        kit::run(&[&export, more].concat()).expect(status).says(words);
    };
    fails(&["--format", "parquet", "-o", "-"], 2, &["two files", "OUT.samples.parquet"]);
    fails(
        &["-o", "a.svg", "--service", "web"],
        2,
        &["--service requires --push, or the format otlp or parquet"],
    );
    fails(&["-o", "a.parquet", "--label", "zone"], 2, &["\"zone\"", "KEY=VALUE"]);
    fails(&["-o", "a.parquet", "--bucket", "5ms"], 2, &["at least one second", "none"]);
    // perf records no date without -k, so times are estimated.
    let out = lab.path("out.parquet");
    let ran = kit::run(&["export", file.to_str().unwrap(), "-o", out.to_str().unwrap()]).expect(0);
    ran.says(&["modification time", "-k CLOCK_MONOTONIC", "out.samples.parquet and "]);
    assert!(lab.path("out.samples.parquet").exists() && lab.path("out.stacks.parquet").exists());
}

/// Runs the recorder of an example in docs briefly, with its folder below the lab. Returns the names of
/// the files in the folder `fleet`.
fn run_example(lab: &Lab, command_line: &str, variables: &[(&str, &str)]) -> Vec<String> {
    let state = lab.path("state");
    std::fs::create_dir_all(&state).unwrap();
    let programs = Path::new(kit::binary()).parent().unwrap();
    let line = command_line.replace("/usr/bin/", "").replace("/var/lib/pmc", state.to_str().unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {line} -- sh -c '{}'", busy_shell(150))]);
    shell.env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()));
    let ran: kit::Ran = shell.envs(variables.iter().copied()).output().unwrap().into();
    let ran = ran.expect(0);
    assert!(!ran.stderr.contains("warning"), "{line}\n{}", ran.stderr);
    let names = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // The recordings have been removed.
    assert_eq!(names(state.clone()), ["fleet"]);
    names(state.join("fleet"))
}

#[test]
fn systemd_unit_writes_tables() {
    let Some(lab) = Lab::new() else { return };
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/systemd/pmc-fleet.service");
    if kit::on_path("systemd-analyze").is_some() {
        let output = Command::new("systemd-analyze").arg("verify").arg(&unit).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        // The program and its man pages are not installed here.
        let wrong = |line: &&str| !line.contains("not executable") && !line.contains("Command 'man ");
        assert_eq!(text.lines().filter(wrong).count(), 0, "{text}");
    }
    let text = std::fs::read_to_string(unit).unwrap().replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    // systemd replaces `$$` by `$`.
    let files = run_example(&lab, &line.replace("$$", "$"), &[]);
    assert!(files.len() >= 2 && files[0].starts_with("last.data.2"), "{files:?}");
    assert!(files.iter().any(|name| name.ends_with(".stacks.parquet")), "{files:?}");
}

#[test]
fn daemon_set_writes_tables() {
    if !need("yaml") {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes/pmc-fleet.yaml");
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let output = python().args(["-c", script]).arg(file).output().unwrap();
    let set: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(set["kind"], "DaemonSet");
    assert_eq!(set["spec"]["selector"]["matchLabels"], set["spec"]["template"]["metadata"]["labels"]);
    let container = &set["spec"]["template"]["spec"]["containers"][0];
    let words =
        [&container["command"], &container["args"]].into_iter().flat_map(|list| list.as_array().unwrap());
    let quoted = |word: &Json| format!("'{}'", word.as_str().unwrap().replace('\'', r"'\''"));
    let line = words.map(quoted).collect::<Vec<_>>().join(" ");
    // The listed capabilities suffice.
    let numbers = [("PERFMON", 38), ("SYS_PTRACE", 19), ("SYSLOG", 34), ("DAC_READ_SEARCH", 2)];
    let added = container["securityContext"]["capabilities"]["add"].as_array().unwrap();
    let number = |name: &Json| numbers.iter().find(|(known, _)| name == known).expect("a known name").1;
    let set: String = added.iter().map(|name| format!(",+cap_{}", number(name))).collect();
    let files = run_example(&lab, &format!("setpriv --bounding-set -all{set} {line}"), &[("NODE", "node3")]);
    assert!(files.iter().any(|name| name.ends_with(".samples.parquet")), "{files:?}");
}

#[test]
fn clickhouse_returns_the_sums_of_report() {
    if !need("chdb") {
        return;
    }
    let Some(fleet) = Fleet::new() else { return };
    let rows = fleet.query(
        "chdb",
        &[(
            "origin",
            "SELECT host, labels['zone'], sum(samples) > 0 FROM samples GROUP BY 1, 2 ORDER BY host",
        )],
    );
    check_sums(&fleet, &rows);
    assert_eq!(rows["origin"], json!([["web7", "b", 1], ["web8", "b", 1]]));
}

#[test]
fn spark_returns_the_sums_of_report() {
    if !need("pyspark") || !kit::need_program("java") {
        return;
    }
    let Some(fleet) = Fleet::new() else { return };
    let rows = fleet.query(
        "pyspark",
        &[
            ("origin", "SELECT host, labels['zone'], sum(samples) > 0 FROM samples GROUP BY 1, 2 ORDER BY host"),
            // Reads every column.
            ("all", "SELECT count(*), min(time) > '2026-01-01', max(duration_us) FROM samples WHERE to_json(struct(*)) IS NOT NULL"),
            ("all_stacks", "SELECT count(*) > 0 FROM stack_files WHERE to_json(struct(*)) IS NOT NULL"),
        ],
    );
    check_sums(&fleet, &rows);
    assert_eq!(rows["origin"], json!([["web7", "b", true], ["web8", "b", true]]));
    assert_eq!((&rows["all"][0][1], &rows["all_stacks"][0][0]), (&json!(true), &json!(true)), "{rows}");
}
