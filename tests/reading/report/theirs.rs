//! Recordings made by perf, of every kind that this machine can make: pmc's totals, shares and lines are
//! perf's.
//!
//! With those of `options` and `branches` these are the twelve of issue 3: frame pointers, copied stacks, no
//! stacks, many events, groups (with and without counts), tracepoints, the whole machine, compressed, a
//! stream, a thread alone, raw samples, a JIT with a map.

use super::against::{agree, children_agree, pmc_json, scripts_agree, shares, totals_agree};
use super::lab::{DEEP, JIT, Lab, MANY};

#[test]
fn recordings_of_perf_give_perfs_numbers_and_lines() {
    let Some(lab) = Lab::new() else { return };
    let (deep, many) = (lab.build("deep", DEEP), lab.build("many", MANY));
    let (deep, many) = (deep.to_str().expect("plain"), many.to_str().expect("plain"));
    let kinds: &[(&str, &[&str], &str, bool)] = &[
        ("fp", &["-e", "cpu-clock", "-F", "4000", "-g"], deep, false),
        ("flat", &["-e", "task-clock", "-F", "2000"], many, false),
        ("events", &["-e", "cpu-clock,task-clock,page-faults,context-switches", "-g"], many, false),
        ("group", &["-e", "{cpu-clock,task-clock}", "-g"], many, false),
        ("counts", &["-e", "{cpu-clock,page-faults}:S", "-F", "2000"], many, false),
        ("packed", &["-e", "cpu-clock", "-F", "2000", "-g", "-z"], many, false),
        ("stream", &["-e", "cpu-clock", "-F", "2000", "-g"], many, true),
        ("thread", &["-e", "cpu-clock", "-F", "2000", "--per-thread"], deep, false),
        ("timed", &["-e", "cpu-clock", "-F", "2000", "-T", "-d", "--sample-cpu"], many, false),
        ("raw", &["-e", "cpu-clock", "-F", "2000", "-R", "-W", "--phys-data", "-g"], deep, false),
        ("counted", &["-e", "context-switches", "-c", "1", "-g"], many, false),
    ];
    for (name, options, program, pipe) in kinds {
        let file = lab.record(name, options, &[program], *pipe);
        agree(&file, &[]);
        totals_agree(&file);
        scripts_agree(&file, &[]);
        if options.contains(&"-g") {
            scripts_agree(&file, &["-G"]);
            // perf does not see in a stream that there are chains before it makes its tables.
            if !pipe {
                children_agree(&file);
            }
        }
    }
    let file = lab.path("fp");
    scripts_agree(&file, &["--ns"]);
    scripts_agree(&file, &["-F", "comm,pid,tid,time,event,ip,sym"]);
    scripts_agree(&lab.path("timed"), &["-F", "comm,tid,cpu,time,period"]);
}

#[test]
fn copied_stacks_are_unwound() {
    let Some(lab) = Lab::new() else { return };
    let deep = lab.build("deep", DEEP);
    // So many samples that one more or less is no half point.
    let options = ["-e", "cpu-clock", "-F", "4000", "-m", "8M", "--call-graph", "dwarf,8192"];
    let file = lab.record("dwarf", &options, &[deep.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file);
    totals_agree(&file);
    let document = pmc_json(&file, &[]);
    let trust = &document["trust"];
    let (stacks, rooted) = (trust["stacks"].as_f64().unwrap(), trust["rooted"].as_f64().unwrap());
    assert!(rooted / stacks > 0.95, "{trust}");
    // Inlined code has a row of its own, whose cost is its callers'.
    let inlined =
        document["events"][0]["rows"].as_array().unwrap().iter().find(|row| row["sym"] == "inlined");
    assert!(inlined.expect("a row for it")["total"]["percent"].as_f64().unwrap() > 1.0);
}

#[test]
fn the_whole_machine_and_tracepoints() {
    let Some(lab) = Lab::new() else { return };
    let many = lab.build("many", MANY);
    let many = many.to_str().expect("plain");
    let file = lab.record("all", &["-e", "cpu-clock", "-F", "1000", "-a", "-g"], &[many], false);
    // Whatever else runs here is demangled in its own way by each.
    agree(&file, &["many", "worker", "swapper"]);
    totals_agree(&file);
    let work = ["sh", "-c", "for i in 1 2 3 4 5; do ls / >/dev/null; done"];
    let events = "sched:sched_switch,sched:sched_process_exec,sched:sched_process_fork";
    let file = lab.record("traces", &["-e", events, "-a"], &work, false);
    agree(&file, &[]);
    totals_agree(&file);
    scripts_agree(&file, &[]);
}

#[test]
fn code_of_a_jit_has_the_names_of_its_map() {
    let Some(lab) = Lab::new() else { return };
    let jit = lab.build("jit", JIT);
    let file = lab.record("jit.data", &["-e", "cpu-clock", "-g"], &[jit.to_str().expect("plain")], false);
    agree(&file, &[]);
    children_agree(&file);
    scripts_agree(&file, &[]);
    let rows = shares(&pmc_json(&file, &[])["events"][0]);
    assert!(rows.keys().any(|(_, dso, symbol)| symbol == "[.] the second one" && dso.starts_with("[JIT]")));
}
