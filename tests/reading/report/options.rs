//! Options of `report` that perf also has: their effects, and perf's numbers if perf shows any.

use std::collections::BTreeMap;
use std::path::Path;

use super::against::{pmc_json, shares};
use super::lab::{DEEP, Lab, MANY};
use crate::kit::{self, oracle};

/// Rows of `-t TAB`: percentages by the other columns.
#[track_caller]
pub(crate) fn table(tool: &str, file: &Path, options: &[&str]) -> BTreeMap<Vec<String>, f64> {
    let all = [&["report", "--stdio", "-t", "\t", "--percent-limit", "0", "--no-children"], options].concat();
    let text = match tool {
        "perf" => oracle::perf_of(file, &all),
        _ => kit::Ran::from(kit::pmc().args(all).arg("-i").arg(file).output().unwrap()).stdout,
    };
    let mut rows: BTreeMap<Vec<String>, f64> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split('\t').map(|word| word.trim().to_owned());
        let share = words.next().and_then(|word| word.trim_end_matches('%').parse::<f64>().ok());
        if let Some(share) = share {
            *rows.entry(words.collect()).or_default() += share;
        }
    }
    rows
}

#[track_caller]
pub(crate) fn tables_agree(file: &Path, options: &[&str]) {
    let (theirs, ours) = (table("perf", file, options), table("pmc", file, options));
    assert!(!theirs.is_empty(), "perf report {options:?} shows nothing");
    for key in theirs.keys().chain(ours.keys()) {
        let share = |rows: &BTreeMap<Vec<String>, f64>| rows.get(key).copied().unwrap_or(0.0);
        // Rows with the same words are summed, and each was rounded separately.
        assert!((share(&theirs) - share(&ours)).abs() < 0.5, "{options:?} {key:?}\n{theirs:#?}\n{ours:#?}");
    }
}

#[test]
fn filters_on_unrecorded_fields_are_errors() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    // perf records CPU numbers only when it measures CPUs.
    let file = lab.record("plain", &["-e", "cpu-clock", "-F", "999"], &[deep.to_str().unwrap()], false);
    let file = file.to_str().unwrap();
    for command in
        [&["report", "--stdio"] as &[&str], &["script"], &["annotate", "--stdio"], &["report", "--json"]]
    {
        let all = [command, &["--no-cache", "-C", "0", "-i", file]].concat();
        let refused =
            kit::run(&all).expect(1).says(&["-C matches no sample: the recording has no CPU numbers"]);
        assert_eq!(refused.stdout, "", "{all:?}");
    }
    kit::run(&["report", "--stdio", "--socket-filter", "0", "-i", file]).expect(1).says(&["no CPU numbers"]);
    // Filters on recorded fields work.
    kit::run(&["report", "--stdio", "--no-cache", "--comms", "deep", "--time", "0,", "-i", file]).expect(0);
    for other in ["x.html", "x.folded"] {
        let out = lab.path(other);
        let all = ["export", "--no-cache", "-C", "0", "-o", out.to_str().unwrap(), "-i", file];
        kit::run(&all).expect(1).says(&["no CPU numbers"]);
    }
}

#[test]
fn piped_report_states_lost_samples_like_perf() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("plain", &["-e", "cpu-clock", "-F", "999"], &[deep.to_str().unwrap()], false);
    let said = |text: &str| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.starts_with("# Total Lost Samples: "));
        let at = at.unwrap_or_else(|| panic!("{text}"));
        lines[at - 1..=at + 1].iter().map(|line| (*line).to_owned()).collect()
    };
    let ours = kit::run(&["report", "--stdio", "--no-cache", "-i", file.to_str().unwrap()]).expect(0).stdout;
    assert_eq!(said(&ours), said(&oracle::perf_of(&file, &["report", "--stdio"])));
    let fields = ["report", "--stdio", "-t", ";"];
    let all = [&fields as &[&str], &["--no-cache", "-i", file.to_str().unwrap()]].concat();
    assert_eq!(said(&kit::run(&all).expect(0).stdout), said(&oracle::perf_of(&file, &fields)));
}

#[test]
fn parent_callee_and_filter_options() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], &[deep.to_str().unwrap()], false);
    tables_agree(&file, &["-g", "none", "-p", "^down$"]);
    tables_agree(&file, &["-g", "none", "-p", "^(leaf|other)$", "-s", "parent,sym"]);
    tables_agree(&file, &["-g", "none", "-U", "-s", "sym"]);
    tables_agree(&file, &["-g", "none", "-s", "+comm", "--hide-unresolved"]);

    // Everything that `middle` called counts as `middle`.
    let document = pmc_json(&file, &["--no-inline", "--ignore-callees", "^middle$"]);
    let rows = shares(&document["events"][0]);
    let own = |rows: &super::against::Shares, name: &str| -> f64 {
        rows.iter().filter(|(key, _)| key.2 == format!("[.] {name}")).map(|(_, (_, own))| own).sum()
    };
    let whole = shares(&pmc_json(&file, &["--no-inline"])["events"][0]);
    assert!(own(&rows, "leaf") == 0.0 && own(&rows, "middle") > 60.0, "{rows:?}");
    assert!(own(&whole, "leaf") > 20.0, "{whole:?}");

    let header = |option: &str| {
        let mut pmc = kit::pmc();
        pmc.args(["report", "--stdio", "--no-cache", option, "-i"]).arg(&file);
        kit::Ran::from(pmc.output().unwrap()).expect(0).prints(&["# hostname : "]).stdout
    };
    assert_eq!(header("-I"), header("--header"));

    let only = pmc_json(&file, &["-p", "^down$", "--exclude-other", "--no-inline"]);
    let event = &only["events"][0];
    let below: u64 =
        event["rows"].as_array().unwrap().iter().map(|row| row["self"]["samples"].as_u64().unwrap()).sum();
    assert_eq!(event["filtered"]["samples"].as_u64().unwrap() + below, event["samples"].as_u64().unwrap());
    let part = pmc_json(&file, &["--symbol-filter", "eaf", "--no-inline", "--no-children"]);
    assert!(shares(&part["events"][0]).keys().all(|key| key.2.contains("eaf")));
    let file = file.to_str().unwrap();
    kit::run(&["report", "-i", file, "-p", "(", "-s", "sym"]).expect(2).says(&["regular expression"]);
    kit::run(&["report", "-i", file, "-b"]).expect(1).says(&["no branches", "pmc record -b"]);
    for option in ["--total-cycles", "--itrace", "--branch-history"] {
        kit::run(&["report", "-i", file, option]).expect(2).says(&["has no", "why:", "try:"]);
    }
    for options in
        [&["-f", "-v", "-m"][..], &["--stdio-color", "never", "--pretty", "raw"], &["--demangle-kernel"]]
    {
        let mut all = vec!["report", "-i", file, "--stdio"];
        all.extend(options);
        assert_eq!(kit::run(&all).expect(0).stderr, "", "{options:?}");
    }
}

#[test]
fn name_filters_apply_to_the_tree_and_columns_set_the_order() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], &[deep.to_str().unwrap()], false);
    for options in [&["-S", "leaf"][..], &["-d", "deep"], &["--symbol-filter", "eaf"]] {
        let event = &pmc_json(&file, &[&["--no-inline", "--no-children"], options].concat())["events"][0];
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        let rows: u64 =
            event["rows"].as_array().unwrap().iter().map(|row| number(&row["self"]["samples"])).sum();
        assert_eq!(number(&event["filtered"]["samples"]) + rows, number(&event["samples"]), "{options:?}");
        let nodes = event["tree"]["nodes"].as_array().unwrap();
        let roots = nodes.iter().filter(|node| node["parent"].is_null());
        let tree: u64 = roots.map(|node| number(&node["samples"])).sum();
        // The JSON document omits branches of 0.05 %.
        assert!(tree <= rows && tree * 100 >= rows * 99 && rows > 0, "{options:?}: {tree} of {rows}");
        let is_leaf = |node: &&serde_json::Value| number(&node["self"]["samples"]) > 0;
        let all_leaf =
            nodes.iter().filter(is_leaf).all(|node| node["symbol"].as_str().unwrap().contains("leaf"));
        assert!(options[0] == "-d" || all_leaf, "{options:?}");
    }
    // perf sorts by the shown columns, and by name if the first column is a name.
    let column = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        rows.map(|line| line.split('\t').next().unwrap().trim().to_owned()).collect()
    };
    let form = ["report", "--stdio", "-t", "\t", "-g", "none", "--children", "--no-inline"];
    let ours = |options: &[&str]| {
        let rows = kit::pmc().args(form).args(options).arg("-i").arg(&file).output().unwrap();
        column(&kit::Ran::from(rows).stdout)
    };
    for options in [
        &["-F", "sample,sym"][..],
        &["-F", "overhead,overhead_children,sym"],
        &["-F", "period,sym", "-s", "overhead_children"],
    ] {
        let (theirs, ours) = (oracle::perf_of(&file, &[&form, options].concat()), ours(options));
        let theirs = column(&theirs);
        // Rows with little cost are addresses without a symbol, which perf lists separately.
        let cost = |cell: &String| cell.trim_end_matches('%').parse::<f64>().unwrap();
        let most = theirs.iter().map(cost).fold(0.0, f64::max);
        let large = theirs.iter().rposition(|cell| cost(cell) * 100.0 > most).unwrap().min(2);
        assert!(ours[..=large] == theirs[..=large], "{options:?}: {ours:?} {theirs:?}");
    }
    let names = ours(&["-F", "sym,overhead"]);
    assert!(names.len() > 3 && names.is_sorted_by_key(|cell| cell[4..].to_owned()), "{names:?}");
}

#[test]
fn call_graph_layouts() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], &[deep.to_str().unwrap()], false);
    let file = file.to_str().unwrap();
    let report = |options: &[&str]| {
        let mut all = vec!["report", "-i", file, "--no-inline", "--stdio", "--tree"];
        all.extend(options);
        kit::run(&all).expect(0).stdout
    };
    let folded = report(&["-g", "folded,0.1"]);
    let share: f64 = folded
        .lines()
        .filter(|line| line.contains("main;"))
        .map(|line| line.split('%').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert!(share > 90.0, "{folded}");
    // The compiler sometimes omits a leaf's frame, so its caller may be missing.
    assert!(folded.lines().any(|line| line.contains("main;") && line.ends_with(";other")), "{folded}");
    let upwards = report(&["-g", "folded,callee,0.1"]);
    assert!(upwards.lines().any(|line| line.contains(" other;") && line.contains(";main;")), "{upwards}");
    let flat = report(&["-g", "flat,count,5"]);
    assert!(flat.contains("\n      main\n") && flat.contains("\n      other\n"), "{flat}");
    // In a fractal tree, percentages of siblings are relative to their parent.
    let (graph, fractal) = (report(&["-g", "graph"]), report(&["-g", "fractal"]));
    assert_ne!(graph, fractal);
    assert!(fractal.contains("of the parent branch"));
    assert!(report(&["-g", "period"]).contains("000"));
    assert!(!report(&["-g", "none"]).contains("Call tree"));
    let few = report(&["-g", "caller,0.5,1"]);
    assert!(few.lines().count() < graph.lines().count(), "{few}");
    kit::run(&["report", "-i", file, "-g", "address"]).expect(2).says(&["srcline"]);

    let nested = report(&["--hierarchy", "-g", "none", "-n"]);
    let at = |word: &str| nested.lines().position(|line| line.trim_end().ends_with(word)).unwrap();
    assert!(nested.contains("Command / Shared Object / Symbol") && at("  deep") < at("[.] leaf"), "{nested}");
}

#[test]
fn event_and_task_lists_are_printed() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let file = lab.record("tasks", &["-e", "task-clock", "-F", "1000"], &[many.to_str().unwrap()], false);
    let path = file.to_str().unwrap();
    let numbers = |text: &str| -> BTreeMap<String, u64> {
        let rows = text.lines().filter_map(|line| line.split_once(" events:"));
        rows.filter_map(|(name, rest)| {
            Some((name.trim().to_owned(), rest.split_whitespace().next()?.parse().ok()?))
        })
        .collect()
    };
    let theirs = oracle::perf_of(&file, &["report", "--stats"]);
    // After the totals, perf prints the counts of each event.
    let theirs = numbers(theirs.split("task-clock stats").next().unwrap());
    assert!(theirs["SAMPLE"] > 20);
    assert_eq!(numbers(&kit::run(&["report", "--stats", "-i", path]).expect(0).stdout), theirs);
    let tasks = kit::run(&["report", "--tasks", "-i", path]).expect(0).stdout;
    assert!(tasks.lines().filter(|line| line.ends_with("worker")).count() == 3, "{tasks}");
    assert!(tasks.lines().filter(|line| line.ends_with("many")).count() >= 6, "{tasks}");
    tables_agree(&file, &["-g", "none", "-s", "pid,dso"]);
    let by_process = kit::run(&["report", "--json", "-s", "pid", "-i", path]).expect(0).stdout;
    let by_process: serde_json::Value = serde_json::from_str(&by_process).expect("JSON");
    // The key `pid` separates threads, so its field is `tid`.
    let row = &by_process["events"][0]["rows"][0];
    assert!(row["tid"].is_u64() && row["pid"].is_null(), "{by_process}");
    let of_processes = kit::run(&["report", "--json", "-s", "tgid", "-i", path]).expect(0).stdout;
    let of_processes: serde_json::Value = serde_json::from_str(&of_processes).expect("JSON");
    assert!(of_processes["events"][0]["rows"][0]["tgid"].is_u64(), "{of_processes}");
    let diff = kit::run(&["diff", "--json", "-s", "pid", path, path]).expect(0).stdout;
    let diff: serde_json::Value = serde_json::from_str(&diff).expect("JSON");
    let row = &diff["events"][0]["rows"][0];
    assert!(row["tid"].is_u64() && row["pid"].is_null(), "{diff}");
    let text = kit::run(&["report", "--stdio", "-s", "pid", "-i", path]).expect(0).stdout;
    assert_eq!(text.lines().filter(|line| line.trim_end().ends_with(":worker")).count(), 3, "{text}");
    kit::run(&["report", "--mmaps", "-i", path]).expect(0).prints(&["| many", "/many", "libc.so"]);

    // Compressed records are counted in addition to the records inside them.
    let packed = lab.record("packed", &["-e", "task-clock", "-z"], &[many.to_str().unwrap()], false);
    let theirs = oracle::perf_of(&packed, &["report", "--stats"]);
    let theirs = numbers(theirs.split("task-clock stats").next().unwrap());
    assert!(theirs["COMPRESSED"] > 0, "{theirs:?}");
    let ours = kit::run(&["report", "--stats", "-i", packed.to_str().unwrap()]).expect(0).stdout;
    assert_eq!(numbers(&ours), theirs);

    // Per-thread counts, which the kernel reports when a thread ends.
    let file =
        lab.record("threads", &["-e", "page-faults", "-s", "-c", "1"], &[many.to_str().unwrap()], false);
    let counts = kit::run(&["report", "--stdio", "-T", "-i", file.to_str().unwrap()]).expect(0);
    assert!(counts.stdout.contains("PID") || counts.stdout.contains("no thread counts"), "{}", counts.stdout);
}

#[test]
fn event_groups_share_a_table() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let deep = deep.to_str().unwrap();
    // The number of cost columns of each table.
    let tables = |file: &std::path::Path, options: &[&str]| -> Vec<usize> {
        let form =
            ["report", "--stdio", "--no-children", "-g", "none", "-s", "sym", "-i", file.to_str().unwrap()];
        let text = kit::run(&[&form[..], options].concat()).expect(0).stdout;
        let columns = text.lines().map(|line| line.matches("Overhead").count());
        columns.filter(|count| *count > 0).collect()
    };
    let group = lab.record("group", &["-e", "{cpu-clock,task-clock}"], &[deep], false);
    assert_eq!(tables(&group, &[]), [2]);
    assert_eq!(tables(&group, &["--no-group"]), [1, 1]);
    let apart = lab.record("apart", &["-e", "cpu-clock,task-clock"], &[deep], false);
    assert_eq!(tables(&apart, &[]), [1, 1]);
    assert_eq!(tables(&apart, &["--group"]), [2]);
}

#[test]
fn tracepoint_fields_are_sort_keys() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let file = lab.record("switches", &["-e", "sched:sched_switch"], &[many.to_str().unwrap()], false);
    tables_agree(&file, &["-s", "next_pid"]);
    tables_agree(&file, &["-s", "sched_switch.prev_state,comm"]);
    tables_agree(&file, &["-s", "prev_prio/raw,sched:sched_switch.next_prio"]);
    let path = file.to_str().unwrap();
    let all = kit::run(&["report", "-t", ",", "-s", "sched_switch.*", "-i", path]).expect(0);
    let all =
        all.prints(&["# Overhead,prev_comm,prev_pid,prev_prio,prev_state,next_comm,next_pid,next_prio"]);
    assert!(all.stdout.lines().any(|line| line.contains(",many,")), "{}", all.stdout);
    let document = pmc_json(&file, &["-s", "next_prio"]);
    assert!(document["events"][0]["rows"][0]["next_prio"].is_i64(), "{document}");
    kit::run(&["report", "-i", path, "-s", "sched_switch.next_pit"])
        .expect(2)
        .says(&["neither a sort key nor a tracepoint field", "did you mean next_pid"]);
    kit::run(&["report", "-i", path, "-s", "foo"]).expect(2).says(&[
        "try: a sort key: comm, pid, tid, dso, sym,",
        "try: a field: common_flags, ",
        "next_pid, ",
    ]);
    kit::run(&["report", "-i", path, "-F", "overhead,sched_switch.*"]).expect(2).says(&["list tracepoint \
                                                                                         fields \
                                                                                         individually"]);
}

#[test]
fn header_times_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.record("plain", &["-e", "cpu-clock"], &["true"], false);
    let theirs = oracle::perf_of(&file, &["report", "--header-only"]);
    let ours = kit::run(&["report", "--header-only", "-i", file.to_str().unwrap()]).expect(0).stdout;
    for label in ["# captured on ", "# data offset ", "# data size ", "# hostname ", "# nrcpus online "] {
        let line = |text: &str| text.lines().find(|line| line.starts_with(label)).map(str::to_owned);
        assert!(line(&theirs).is_some() && line(&theirs) == line(&ours), "{label}\n{theirs}\n{ours}");
    }
}

#[test]
fn cpu_mode_and_symbol_size_are_columns() {
    let Some(lab) = Lab::new() else { return };
    // A workload with kernel time.
    let work = ["sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true; done"];
    let file = lab.record("modes", &["-e", "cpu-clock", "-F", "4000", "-g"], &work, false);
    tables_agree(&file, &["-g", "none", "-F", "overhead,overhead_sys,overhead_us,comm"]);
    tables_agree(&file, &["-g", "none", "-s", "comm", "--show-cpu-utilization"]);
    let deep = lab.build("deep", DEEP);
    let sizes = lab.record("sizes", &["-e", "cpu-clock:u", "-F", "4000"], &[deep.to_str().unwrap()], false);
    tables_agree(&sizes, &["-F", "overhead,symbol_size,sym", "-d", "deep"]);
    tables_agree(&sizes, &["-s", "dso,dso_size"]);
    // perf has offsets as a sort key since version 7, and truncates them. Its scripts print them in full.
    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for line in oracle::perf_of(&sizes, &["script", "--comms", "deep", "-F", "ip,sym,symoff"]).lines() {
        let place = line.split_whitespace().last().unwrap_or_default();
        let is_ours = ["leaf+", "other+", "down+", "middle+"].iter().any(|name| place.starts_with(name));
        *theirs.entry(place.to_owned()).or_default() += u64::from(is_ours);
    }
    theirs.retain(|_, samples| *samples > 0);
    let document = pmc_json(&sizes, &["-s", "symoff", "--comms", "deep"]);
    let rows = document["events"][0]["rows"].as_array().expect("rows");
    let samples = |place: &str| rows.iter().find(|row| row["symoff"] == *place)?["self"]["samples"].as_u64();
    assert!(theirs.len() > 2, "{theirs:?}");
    for (place, theirs) in &theirs {
        assert_eq!(samples(place), Some(*theirs), "{place} {rows:?}");
    }
    let rows = table("pmc", &file, &["-g", "none", "-F", "overhead,overhead_sys,overhead_us,comm"]);
    let percent = |word: &String| word.trim_end_matches('%').parse::<f64>().expect("a percentage");
    assert!(!rows.is_empty());
    for (words, share) in &rows {
        let (system, user) = (percent(&words[0]), percent(&words[1]));
        assert!(system > 0.0 && (system + user - share).abs() < 0.05, "{words:?} {share}");
    }
    // Common aliases for two columns.
    assert_eq!(
        table("pmc", &file, &["-g", "none", "-F", "self,function"]),
        table("pmc", &file, &["-g", "none", "-F", "overhead,sym"])
    );
    let event = &pmc_json(&file, &["-s", "comm", "--show-cpu-utilization", "--no-children"])["events"][0];
    assert!(event["rows"][0]["overhead_sys"].as_f64().is_some_and(|share| share > 0.0), "{event}");
}

#[test]
fn code_without_debug_lines_shows_the_symbol_offset() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let bare = lab.path("bare");
    let stripped = std::process::Command::new("strip").arg("-g").arg(&deep).arg("-o").arg(&bare).status();
    assert!(stripped.expect("binutils come with the compiler").success());
    let file =
        lab.record("bare.data", &["-e", "cpu-clock:u", "-F", "4000"], &[bare.to_str().unwrap()], false);
    // perf supports this only for the kernel.
    let rows = table("pmc", &file, &["-g", "none", "-s", "srcline", "-d", "bare"]);
    assert!(rows.keys().any(|words| words[0].starts_with("leaf+")), "{rows:?}");
    if kit::need_kernel_mode() {
        let work = ["sh", "-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); /bin/true; done"];
        let file = lab.record("kernel.data", &["-e", "cpu-clock", "-F", "4000"], &work, false);
        tables_agree(&file, &["-g", "none", "-s", "srcline", "-d", "[kernel.kallsyms]"]);
    }
}

#[test]
fn short_options_match_perf() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    let file = lab.record("flat", &["-e", "cpu-clock", "-F", "4000"], &[deep.to_str().unwrap()], false);
    let name = file.to_str().unwrap();
    let text =
        |options: &[&str]| kit::run(&[&["report", "--stdio", "-i", name], options].concat()).expect(0).stdout;
    let rows = |text: &str| text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();

    // Only rows.
    let (quiet, whole) = (text(&["-q"]), text(&[]));
    assert!(!quiet.contains('#') && rows(&quiet) == rows(&whole), "{quiet}");
    assert!(!text(&["-q", "-t,"]).contains('#'));

    // An argument that is not a file is a part of function names.
    let mut part = kit::pmc();
    part.args(["report", "--stdio", "-q", "-i", name, "eaf"]);
    let part = kit::Ran::from(part.output().unwrap()).expect(0).stdout;
    assert!(rows(&part) > 0 && part.lines().all(|line| line.is_empty() || line.contains("eaf")), "{part}");

    // A filter for one value appears above the table instead of in a column.
    for (option, value, key) in [("-c", "deep", "comm"), ("-d", "deep", "dso"), ("-S", "leaf", "symbol")] {
        let ours = text(&["-t,", option, value]);
        let theirs = oracle::perf_of(&file, &["report", "--stdio", "-t,", option, value]);
        let above = format!("# {key}: {value}\n");
        assert!(theirs.contains(&above) && ours.contains(&above.replace("symbol", "sym")), "{ours}");
        let columns = |text: &str| {
            text.lines().find(|line| line.starts_with("# Overhead")).map(|line| line.split(',').count())
        };
        assert_eq!(columns(&ours), columns(&theirs), "{ours}\n{theirs}");
    }

    // -x is --exclude-other, and -H is --hierarchy.
    assert_eq!(text(&["-p", "^down$", "-x"]), text(&["-p", "^down$", "--exclude-other"]));
    assert_eq!(text(&["-H"]), text(&["--hierarchy"]));
    assert_eq!(text(&["--showcpuutilization"]), text(&["--show-cpu-utilization"]));

    // With unresolved rows hidden, the rest adds up to 100 %.
    let share = |text: &str| -> f64 {
        let shares = text.lines().filter_map(|line| line.split('%').next()?.trim().parse::<f64>().ok());
        shares.sum()
    };
    let named = text(&["-U", "-s", "sym"]);
    assert!((share(&named) - 100.0).abs() < 1.0, "{named}");
}

#[test]
fn empty_tables_say_why() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/recording/simpleperf-132.data");
    for (options, why) in [
        (&["--comms", "other"][..], "# No rows: no samples pass --comms other."),
        (&["--comms", "other", "--symbols", "f"], "# No rows: no samples pass --comms other --symbols f."),
    ] {
        let shown = kit::run(&[&["report", "-g", "none", "-i", file], options].concat());
        assert!(
            shown.stdout.lines().any(|line| line == why),
            "{options:?}: {}{}",
            shown.stdout,
            shown.stderr
        );
    }
    let full = kit::run(&["report", "-g", "none", "-i", file]);
    assert!(!full.stdout.contains("No rows"), "{}", full.stdout);
}

/// A process of three threads, a process that runs the same function, and one whose first thread is unknown.
const THREADS: &str = "\
server 100/100 1.0: 250000 cpu-clock:
\t1000 main (/bin/server)

worker-1 100/101 1.0: 250000 cpu-clock:
\t2000 burn (/bin/server)

worker-2 100/102 1.0: 250000 cpu-clock:
\t2000 burn (/bin/server)

other 200/200 1.0: 250000 cpu-clock:
\t2000 burn (/bin/server)

lonely 300/301 1.0: 250000 cpu-clock:
\t2000 burn (/bin/server)

";

#[test]
fn threads_of_a_process_share_rows_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.txt");
    std::fs::write(&file, THREADS).unwrap();
    let rows = |options: &[&str]| -> Vec<String> {
        let all =
            [&["report", "--stdio", "--no-children", "-g", "none", "-i", file.to_str().unwrap()], options];
        let text = kit::run(&all.concat()).expect(0).stdout;
        let rows = text
            .lines()
            .filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()) && line.contains('%'));
        let mut rows: Vec<String> = rows
            .map(|line| {
                let words = line.split_whitespace().filter(|word| !word.starts_with('±') && *word != "[.]");
                words.collect::<Vec<_>>().join(" ")
            })
            .collect();
        rows.sort();
        rows
    };
    let coloured: &[&str] = &["--stdio-color", "always"];
    assert_eq!(
        rows(coloured),
        [
            "20.0% lonely server burn",
            "20.0% other server burn",
            "20.0% server server main",
            "40.0% server server burn"
        ]
    );
    assert_eq!(
        rows(&[coloured, &["-s", "+comm", "-S", "burn"]].concat()),
        [
            "20.0% lonely server burn lonely",
            "20.0% other server burn other",
            "20.0% server server burn worker-1",
            "20.0% server server burn worker-2",
        ]
    );
    // perf's rows.
    assert_eq!(
        rows(&[]),
        [
            "20.00% lonely server burn",
            "20.00% other server burn",
            "20.00% server server main",
            "20.00% worker-1 server burn",
            "20.00% worker-2 server burn",
        ]
    );
}
