//! Contents of the files.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::kit::burn::{burn_flags, busy_shell, least_samples, share_error};
use pmc_perfdata::record::{Record, Task};

/// Name and options of each recording.
const KINDS: &[(&str, &[&str])] = &[
    ("flat", &["-e", "cpu-clock"]),
    ("fp", &["-e", "cpu-clock", "-g"]),
    ("dwarf", &["-e", "cpu-clock", "--call-graph", "dwarf,4096"]),
    ("many", &["-e", "cpu-clock,page-faults,minor-faults", "-g"]),
    ("group", &["-e", "{cpu-clock,page-faults}:S"]),
    ("grouped", &["-e", "{cpu-clock,page-faults}", "-g"]),
    ("auto", &["-e", "cpu-clock", "--call-graph", "auto,4096"]),
    ("latency", &["-e", "cpu-clock", "--latency"]),
    ("tracepoints", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
    ("everywhere", &["-e", "cpu-clock", "-a", "-g"]),
    ("compressed", &["-e", "cpu-clock", "-g", "-z"]),
    ("thread", &["-e", "cpu-clock", "--per-thread"]),
    ("told", &["-e", "cpu-clock", "--switch-events", "--namespaces", "--all-cgroups", "-k", "mono"]),
    ("data", &["-e", "page-faults", "-c", "1", "-d", "--phys-data", "--data-page-size", "--code-page-size"]),
    ("fields", &["-e", "cpu-clock", "-W", "-T", "-P", "-s", "--intr-regs=ip,sp", "--user-regs=ip,sp,bp"]),
    ("overwrite", &["-e", "cpu-clock", "--overwrite"]),
    ("all-ids", &["-e", "cpu-clock", "--buildid-all"]),
    ("deferred", &["-e", "cpu-clock", "--call-graph", "dwarf,4096", "--unwind", "deferred"]),
    // Long enough for build-ids to appear among the records.
    (NOTED, &["-e", "cpu-clock", "-a", "-F", "100"]),
];

const NOTED: &str = "noted";

#[test]
fn all_readers_see_the_same_samples() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    for (name, options) in KINDS {
        let file = lab.path(name);
        let run = record(&file, options, if *name == NOTED { &["sleep", "1.5"] } else { &*WORK }).expect(0);
        let samples = told(&run.stderr, " samples");
        assert!(samples > 0, "{name}: {}", run.stderr);
        assert!(run.stderr.contains("none lost"), "{name}: {}", run.stderr);
        assert_eq!(our_samples(&file), samples, "{name}");
        assert_eq!(second_opinion(&file), samples, "{name}");
        for asked in oracle::perfs() {
            let stats = ask_perf(&asked, &["report", "--stats"], &file);
            let line = stats.lines().find(|line| line.trim_start().starts_with("SAMPLE events:"));
            let theirs = line.and_then(|l| l.split_whitespace().nth(2)).and_then(|n| n.parse().ok());
            assert_eq!(theirs, Some(samples), "{} {name}: {stats}", asked.display());
        }
        let reader = Reader::open(&file).expect("pmc reads it");
        let notes = reader.scan(|_| {}).expect("the scan reads").count(kind::HEADER_BUILD_ID);
        // Other recordings also have them if they last as long, or meet a program in another mount
        // namespace.
        assert!(*name != NOTED || notes > 0, "{notes} build-ids among the records");
        assert!(reader.notes().is_empty(), "{name}: {:?}", reader.notes());
        assert!(!perf(&["report", "--stdio"], &file).is_empty());
        let events = perf(&["evlist", "-v"], &file);
        assert!(reader.events().iter().all(|event| events.contains(&event.name())), "{name}: {events}");
        assert!(perf(&["report", "--header-only"], &file).contains("# cpudesc"), "{name}");
    }
}

/// Records with perf.
#[track_caller]
fn perf_record(file: &Path, options: &[&str], work: &[&str]) {
    let folder = file.parent().expect("a folder");
    oracle::Recording { file, options, work, folder, is_stream: false }.make();
}

/// Percentage of samples by command and module, from perf's report.
fn shares(file: &Path) -> BTreeMap<String, f64> {
    let text = perf(
        &["report", "--stdio", "--no-children", "-g", "none", "-s", "comm,dso", "-F", "overhead,comm,dso"],
        file,
    );
    let rows = text.lines().filter(|line| !line.starts_with('#') && line.contains('%'));
    rows.filter_map(|line| {
        let (share, what) = line.trim().split_once('%')?;
        Some((what.split_whitespace().collect::<Vec<_>>().join(" "), share.parse().ok()?))
    })
    .collect()
}

#[test]
fn perf_attributes_our_samples_like_its_own() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (ours, theirs) = (lab.path("ours"), lab.path("theirs"));
    // The same instructions twice, so the results differ only by sampling noise.
    let work = ["sh", "-c", busy_shell(400)];
    record(&ours, &["-e", "cpu-clock:u"], &work).expect(0);
    perf_record(&theirs, &["-e", "cpu-clock:u"], &work);
    let error = 100.0 * [&ours, &theirs].map(|file| share_error(our_samples(file))).iter().sum::<f64>();
    let (ours, theirs) = (shares(&ours), shares(&theirs));
    for (what, share) in theirs.iter().filter(|(_, share)| **share > 5.0) {
        let mine = ours.get(what).copied().unwrap_or(0.0);
        assert!((mine - share).abs() < error, "{what}: perf {share}%, pmc {mine}%\n{ours:?}\n{theirs:?}");
    }
    assert!(!ours.keys().any(|what| what.contains("[unknown]")), "{ours:?}");
}

#[test]
fn build_ids_match_perf() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (ours, theirs) = (lab.path("ours"), lab.path("theirs"));
    record(&ours, &["-e", "cpu-clock"], &*WORK).expect(0);
    perf_record(&theirs, &["-e", "cpu-clock"], &*WORK);
    let ids = |file: &Path| -> BTreeMap<String, String> {
        let text = perf(&["buildid-list"], file);
        let rows = text.lines().filter_map(|line| line.split_once(' '));
        rows.map(|(id, name)| (name.trim().to_owned(), id.to_owned())).collect()
    };
    let (ours_ids, theirs) = (ids(&ours), ids(&theirs));
    assert!(ours_ids.keys().any(|name| name.contains("kernel.kallsyms")), "{ours_ids:?}");
    for name in ["/libc.so.6", "/ls"] {
        let of = |ids: &BTreeMap<String, String>| {
            ids.iter().find(|(n, _)| n.ends_with(name)).map(|(_, id)| id.clone())
        };
        assert!(of(&ours_ids).is_some() && of(&ours_ids) == of(&theirs), "{name}: {ours_ids:?} {theirs:?}");
    }
    let without = lab.path("without");
    record(&without, &["-e", "cpu-clock", "-B"], &*WORK).expect(0);
    assert!(Reader::open(&without).expect("pmc reads it").features().build_ids.is_none());
    let all = lab.path("all");
    record(&all, &["-e", "cpu-clock", "--buildid-all"], &["true"]).expect(0);
    assert!(ids(&all).keys().any(|name| name.ends_with("/true")));
}

#[test]
fn running_tasks_are_synthesized_before_the_first_sample() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("running");
    let mut target = Command::new("sh").args(["-c", SPIN]).spawn().expect("sh starts");
    let pid = target.id();
    let run = record(&file, &["-e", "cpu-clock", "-p", &pid.to_string(), "--timeout", "300"], &[]);
    target.kill().expect("it runs");
    target.wait().expect("it ends");
    run.expect(0);
    let reader = Reader::open(&file).expect("pmc reads it");
    let (mut comm, mut maps, mut fork, mut kernel, mut first) = (false, 0, false, false, None);
    let mut number = 0;
    reader
        .scan(|raw| {
            number += 1;
            match raw.parse() {
                Some(Record::Sample(_)) => first = first.or(Some(number)),
                _ if first.is_some() => {}
                Some(Record::Comm(c)) => comm |= c.thread.pid as u32 == pid && c.comm == b"sh",
                Some(Record::Mmap2(map)) => maps += usize::from(map.map.thread.pid as u32 == pid),
                Some(Record::Mmap(map)) => kernel |= map.name.starts_with(b"[kernel.kallsyms]"),
                Some(Record::Fork(Task { thread, .. })) => fork |= thread.pid as u32 == pid,
                _ => {}
            }
        })
        .expect("the scan reads");
    assert!(
        comm && fork && kernel && maps >= 3,
        "comm {comm}, fork {fork}, kernel {kernel}, {maps} mappings"
    );
    assert!(first.is_some(), "no sample");
    assert!(!perf(&["script"], &file).contains("[unknown] ([unknown])"));
}

#[test]
fn perf_reads_streams_without_command_output() {
    if !ready() {
        return;
    }
    let binary = crate::kit::binary();
    for options in ["-g", "-z", "-e page-faults,cpu-clock"] {
        for perf in oracle::perfs() {
            let line = format!(
                "{binary} record -q -e cpu-clock {options} -o - -- sh -c 'echo of the command; ls -R /usr/share/doc >/dev/null' | {} script -i -",
                perf.display()
            );
            let run = oracle::ask("sh", &["-c", &line]);
            let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
            assert!(out.contains("cpu-clock") && out.contains("ls "), "{options}: {out} {err}");
            assert!(err.contains("of the command") && !err.contains("rror"), "{options}: {err}");
        }
    }
}

#[test]
fn switch_output_writes_consecutive_files() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let base = lab.path("row.data");
    record(&base, &["-e", "cpu-clock", "--switch-output=1s", "-a"], &["sleep", "3.2"]).expect(0);
    let files = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(base.parent().expect("a folder")).expect("the folder");
        let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        files.sort();
        files
    };
    // Four if the machine has enough time.
    assert!((2..8).contains(&files().len()), "{:?}", files());
    for file in files() {
        let samples = perf_samples(&file);
        assert!(samples > 0, "{}", file.display());
        // Each file lists the tasks that ran before it began; perf shows `:TID` for others. A task that
        // starts and ends during the switch of files is in neither list. On a busy machine there are one or
        // two, and they may have run all that time.
        let names = perf(&["script", "-F", "comm,ip,sym"], &file);
        let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
        for tid in names.lines().filter_map(|line| line.split_whitespace().next()) {
            if tid.starts_with(':') && !tid.starts_with(":-1") {
                *unknown.entry(tid).or_default() += 1;
            }
        }
        let mut unknown: Vec<usize> = unknown.into_values().collect();
        unknown.sort_unstable_by(|a, b| b.cmp(a));
        let unknown: usize = unknown.into_iter().skip(2).sum();
        assert!(unknown * 50 < samples + 100, "{unknown} of {samples}: {names}");
        std::fs::remove_file(file).expect("it goes");
    }
    let shell = format!(
        "for i in 1 2 3; do sleep 0.3; kill -USR2 $PPID; done; sleep 0.3; {}",
        "ls -R /usr/share/doc"
    );
    record(
        &base,
        &["-e", "cpu-clock", "--switch-output", "--switch-max-files", "2", "-a"],
        &["sh", "-c", &shell],
    )
    .expect(0);
    assert_eq!(files().len(), 2, "{:?}", files());
    assert!(files().iter().all(|file| our_samples(file) > 0));
}

#[test]
fn recordings_contain_the_date() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let now = || std::time::UNIX_EPOCH.elapsed().expect("a time after 1970").as_nanos() as u64;
    let begin = now();
    let default = lab.path("default.data");
    record(&default, &["-e", "cpu-clock"], &*WORK).expect(0);
    let selected = lab.path("selected.data");
    record(&selected, &["-e", "cpu-clock", "-k", "boottime"], &*WORK).expect(0);
    let stream = lab.path("stream.data");
    let words = ["record", "-q", "-e", "cpu-clock", "-o", "-", "--"];
    let piped = kit::pmc().args(words).args(&*WORK).output().expect("pmc starts");
    std::fs::write(&stream, piped.stdout).expect("the stream is written");
    // Each file of a series relates its clock to the date anew.
    switch(&lab, 2, "[ $(cat log 2>/dev/null | wc -l) -ge $i ]", "echo \"$1\" >>log", &[]).expect(0);
    let log = std::fs::read_to_string(lab.path("log")).expect("the list of files");
    let series: Vec<PathBuf> = log.lines().map(|name| lab.path(name)).collect();
    let end = now();

    let mut last = (begin, 0);
    for (file, clock) in [(&default, u32::MAX), (&selected, 7), (&stream, u32::MAX)]
        .into_iter()
        .chain(series.iter().map(|file| (file, u32::MAX)))
    {
        let reader = Reader::open(file).expect("pmc reads it");
        let data = reader.features().clock_data.clone().expect("a reference to the wall clock");
        assert_eq!(data.clockid, clock, "{}", file.display());
        let uncertainty = data.uncertainty_ns.expect("it is stored");
        assert!(last.0 <= data.wall_clock_ns + uncertainty && data.wall_clock_ns <= end + uncertainty);
        if clock == u32::MAX && last.1 > 0 {
            // The default clock and the wall clock run at nearly the same rate.
            let [own, wall] = [data.clockid_time_ns - last.1, data.wall_clock_ns - last.0];
            assert!(own.abs_diff(wall) <= wall / 100 + 1_000_000, "{own} {wall}");
        }
        if clock == u32::MAX {
            last = (data.wall_clock_ns, data.clockid_time_ns);
        }
        let span = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let fields = ["script", "-F", "tid,time,tod"];
        let ours = kit::run(&[&fields[..], &["-i", file.to_str().expect("UTF-8")]].concat()).expect(0);
        let ours: Vec<Vec<String>> = ours.stdout.lines().map(span).collect();
        assert!(!ours.is_empty(), "{}", file.display());
        for perf in oracle::perfs() {
            if file == &stream && perf == Path::new("perf") {
                // perf 6.1 crashes on some streams, its own included.
                continue;
            }
            let theirs: Vec<Vec<String>> = ask_perf(&perf, &fields, file).lines().map(span).collect();
            assert_eq!(ours, theirs, "{} {}", perf.display(), file.display());
            let header = ask_perf(&perf, &["report", "--header-only"], file);
            assert!(header.contains("# reference time: "), "{header}");
        }
        let header = kit::run(&["report", "--header-only", "-i", file.to_str().expect("UTF-8")]).expect(0);
        header.prints(&["# wall-clock reference : ", " ± ", " ns\n"]);
    }
}

/// Records a shell that switches to another file `times` times, and waits after each one until the loop
/// condition `until` holds, in which `$i` is the number of the switch.
fn switch(lab: &Lab, times: usize, until: &str, command: &str, options: &[&str]) -> kit::Ran {
    let shell = format!(
        "i=0; while [ $i -lt {times} ]; do i=$((i+1)); kill -USR2 $PPID; until {until}; do sleep 0.01; done; done; touch done"
    );
    let words = ["record", "-e", "cpu-clock", "-o", "a.data", "--switch-output", "--switch-exec", command];
    let mut pmc = kit::pmc();
    pmc.args(words).args(options).args(["--", "sh", "-c", &shell]).current_dir(lab.path(""));
    pmc.output().expect("pmc starts").into()
}

#[test]
fn each_finished_file_is_passed_to_a_command() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    // The first command fails. A second command at the same time would find the folder `running`.
    let command = format!(
        "mkdir running || echo twice >>log; {} report --stdio -i \"$1\" >/dev/null || exit 9
        ls /proc/$$/fd >fds; grep SigBlk /proc/self/status >>blocked; rmdir running; echo \"$1\" >>log
        [ -e failed ] || {{ touch failed; exit 3; }}",
        kit::binary()
    );
    let ran = switch(&lab, 3, "[ $(cat log 2>/dev/null | wc -l) -ge $i ]", &command, &[]).expect(0);
    assert_eq!(ran.stderr.matches("the file is kept: it ended with status 3").count(), 1, "{}", ran.stderr);
    let read = |name: &str| std::fs::read_to_string(lab.path(name)).unwrap();
    let log = read("log");
    let files: BTreeSet<&str> = log.lines().collect();
    assert_eq!((files.len(), log.lines().count()), (4, 4), "{log}");
    assert!(files.iter().all(|file| file.starts_with("a.data.2") && lab.path(file).exists()), "{log}");
    // The test itself may have inherited descriptors, and the shell opens some for redirections.
    let fds = read("fds");
    let own = ["-c", "ls /proc/$$/fd >fds; :"];
    assert!(
        Command::new("sh")
            .args(own)
            .current_dir(lab.path(""))
            .stdin(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(fds, read("fds"));
    assert!(read("blocked").lines().all(|line| line.ends_with("\t0000000000000000")), "{}", read("blocked"));
}

#[test]
fn files_that_the_command_removes_do_not_count_as_kept() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let command = "[ -s log ] && rm \"$1\"; echo \"$1\" >>log";
    let until = "[ $(cat log 2>/dev/null | wc -l) -ge $i ]";
    let ran = switch(&lab, 5, until, command, &["--switch-max-files", "2"]).expect(0);
    assert!(!ran.stderr.contains("ENOENT"), "{}", ran.stderr);
    let log = std::fs::read_to_string(lab.path("log")).unwrap();
    let exist: Vec<bool> = log.lines().map(|file| lab.path(file).exists()).collect();
    // The first file is kept, however many files come after it.
    assert_eq!(exist, [true, false, false, false, false, false]);
}

#[test]
fn slow_command_for_finished_files_does_not_delay_the_recording() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    // The first command ends only after all switches.
    let command = "until [ -e done ]; do sleep 0.01; done; echo \"$1\" >>log";
    let ran = switch(&lab, 9, "[ $(ls a.data.2* 2>/dev/null | wc -l) -ge $i ]", command, &[]).expect(0);
    ran.says(&["8 finished files wait for --switch-exec"]);
    assert_eq!(std::fs::read_to_string(lab.path("log")).unwrap().lines().count(), 10);
}

#[test]
fn recording_replaces_one_in_perfs_directory_form() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (file, old) = (lab.path("rec"), lab.path("rec.old"));
    let again = || record(&file, &["-e", "cpu-clock"], &["true"]);
    again().expect(0);
    // As `perf record --threads` leaves it, twice.
    for _ in 0..2 {
        let data = lab.path("data");
        std::fs::rename(&file, &data).unwrap();
        std::fs::create_dir(&file).unwrap();
        std::fs::rename(&data, file.join("data")).unwrap();
        again().expect(0);
        assert!(file.is_file() && old.join("data").is_file());
    }
    again().expect(0);
    assert!(file.is_file() && old.is_file(), "a file replaces the old directory");
    // A directory with other files is the user's own, even next to a recording.
    let mixed = lab.path("mixed");
    std::fs::create_dir(&mixed).unwrap();
    std::fs::copy(&file, mixed.join("data")).unwrap();
    std::fs::write(mixed.join("notes.txt"), "mine").unwrap();
    record(&mixed, &["-e", "cpu-clock"], &["true"]).expect(1).says(&["a directory with this name exists"]);
    // Nor is an old one removed.
    let old_of_plain = lab.path("plain.old");
    std::fs::rename(&mixed, &old_of_plain).unwrap();
    record(&lab.path("plain"), &["-e", "cpu-clock"], &["true"]).expect(0);
    record(&lab.path("plain"), &["-e", "cpu-clock"], &["true"]).expect(1);
    assert_eq!(std::fs::read_to_string(old_of_plain.join("notes.txt")).unwrap(), "mine");
    // Other directories are not recordings.
    let folder = lab.path("folder");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("data"), "mine").unwrap();
    record(&folder, &["-e", "cpu-clock"], &["true"]).expect(1).says(&["a directory with this name exists"]);
    assert_eq!(std::fs::read_to_string(folder.join("data")).unwrap(), "mine");
}

#[test]
fn trailing_slash_in_output_path_is_ignored_for_directories() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (file, old) = (lab.path("rec"), lab.path("rec.old"));
    let [file_slash, absent_slash, folder_slash] = ["rec/", "absent/", "folder/"].map(|name| lab.path(name));
    record(&file, &["-e", "cpu-clock"], &["true"]).expect(0);
    // As `perf record --threads` writes it.
    let data = lab.path("data");
    std::fs::rename(&file, &data).unwrap();
    std::fs::create_dir(&file).unwrap();
    std::fs::rename(&data, file.join("data")).unwrap();
    std::fs::write(file.join("data.0"), "").unwrap();
    let ran = record(&file_slash, &["-e", "cpu-clock"], &["true"]).expect(0);
    assert!(!ran.stderr.contains("rec/"), "{}", ran.stderr);
    assert!(file.is_file() && old.join("data").is_file() && old.join("data.0").is_file());
    // The name of a file, no name, and a directory that is not a recording.
    let before = std::fs::read(&file).unwrap();
    for (path, options) in [(&file_slash, "rec"), (&absent_slash, "absent")] {
        let ran = record(path, &["-e", "cpu-clock"], &["true"]).expect(1);
        let remedy = format!("try: -o {}", lab.path(options).display());
        ran.says(&[&format!("creating {}: ", path.display()), "there is no such directory", &remedy]);
    }
    std::fs::create_dir(&folder_slash).unwrap();
    record(&folder_slash, &["-e", "cpu-clock"], &["true"])
        .expect(1)
        .says(&["a directory with this name exists"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert!(!lab.path("absent").exists() && std::fs::read_dir(&folder_slash).unwrap().next().is_none());
}

#[test]
fn only_recordings_are_replaced_by_the_existing_recording() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (file, directory) = (lab.path("rec"), lab.path("dir"));
    let (file_old, directory_old) = (lab.path("rec.old"), lab.path("dir.old"));
    record(&file, &["-e", "cpu-clock"], &["true"]).expect(0);
    std::fs::create_dir(&directory).unwrap();
    std::fs::copy(&file, directory.join("data")).unwrap();
    let before = std::fs::read(&file).unwrap();
    let make = |what: &str, path: &Path| match what {
        "link" => std::os::unix::fs::symlink(&file, path).unwrap(),
        "dangling link" => std::os::unix::fs::symlink("nowhere", path).unwrap(),
        "text" => std::fs::write(path, "my notes").unwrap(),
        "directory" => std::fs::create_dir(path).unwrap(),
        _ => {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
    };
    for what in ["link", "dangling link", "text", "directory", "FIFO"] {
        for (recording, old) in [(&file, &file_old), (&directory, &directory_old)] {
            make(what, old);
            let kind = || std::fs::symlink_metadata(old).unwrap().file_type();
            let kind_before = kind();
            let ran = record(recording, &["-e", "cpu-clock"], &["true"]).expect(1);
            let old_name = old.display();
            let (doing, why) =
                (format!("recording as {old_name}: "), format!("why: {old_name} is not a recording"));
            ran.says(&[&doing, &why, "try: -o FILE"]);
            assert_eq!(kind(), kind_before, "{what}");
            assert_eq!(std::fs::read(&file).unwrap(), before, "{what}");
            assert_eq!(std::fs::read(directory.join("data")).unwrap(), before, "{what}");
            if kind().is_dir() { std::fs::remove_dir(old) } else { std::fs::remove_file(old) }.unwrap();
        }
    }
    // An empty file loses nothing.
    for (recording, old) in [(&file, &file_old), (&directory, &directory_old)] {
        std::fs::write(old, "").unwrap();
        record(recording, &["-e", "cpu-clock"], &["true"]).expect(0);
        assert!(recording.is_file());
    }
}

#[test]
fn snapshot_contains_the_newest_samples() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let base = lab.path("snap.data");
    // Far more samples than a ring of one page holds, then two snapshots.
    let shell = format!("{}; kill -USR2 $PPID; sleep 0.3; exec ls /", busy_shell(200));
    record(&base, &["-e", "cpu-clock", "-S", "-m", "1", "-F", "10000"], &["sh", "-c", &shell]).expect(0);
    let entries = std::fs::read_dir(base.parent().expect("a folder")).expect("the folder");
    let files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let most = files.iter().map(|file| our_samples(file)).max();
    // The ring is full: 2000 samples are due, and it holds about a hundred.
    assert!(least_samples(200, 10_000) > 500 && most.is_some_and(|most| most > 20 && most < 500), "{most:?}");
    assert!(files.iter().all(|file| perf_samples(file) == our_samples(file)));
}

#[test]
fn only_filtered_records_are_recorded() {
    if !ready() || !kit::need_tracefs("sched") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("filtered");
    let switch = "sched:sched_switch";
    let sleeps = ["sh", "-c", "for i in 1 2 3 4 5; do sleep 0.02; done"];
    let options = ["-e", switch, "--filter", "prev_comm == \"sleep\"", "-a"];
    let switches = |options: &[&str]| -> Vec<String> {
        record(&file, options, &sleeps).expect(0);
        let lines = perf(&["script"], &file);
        lines.lines().filter_map(|line| Some(line.split_once("sched_switch:")?.1.to_string())).collect()
    };
    let lines = switches(&options);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("prev_comm=sleep")), "{lines:#?}");
    // The filter misses none: the same event without a filter records each switch once more. (The number
    // itself is up to the kernel, which sometimes omits switches from idle CPUs, in ftrace too.)
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let lines = switches(&[&options[..], &["-e", switch]].concat());
    for line in &lines {
        *times.entry(line).or_default() += 1;
    }
    let of_sleep: Vec<_> = times.iter().filter(|(line, _)| line.contains("prev_comm=sleep")).collect();
    assert!(!of_sleep.is_empty() && of_sleep.iter().all(|(_, times)| *times % 2 == 0), "{of_sleep:#?}");
    assert!(of_sleep.len() < times.len(), "{times:#?}");
    record(&file, &["-e", "sched:sched_switch", "--filter", "nonsense == 1"], &["true"])
        .expect(1)
        .says(&["--filter", "EINVAL", "pmc list"]);
    record(&file, &["-e", "cpu-clock", "--filter", "x == 1"], &["true"])
        .expect(2)
        .says(&["not a tracepoint"]);
    // A filter applies to the `-e` before it, as in perf.
    record(&file, &["--filter", "x == 1", "-e", "sched:sched_switch"], &["true"])
        .expect(2)
        .says(&["must follow"]);
    let exec = "sched:sched_process_exec";
    let shell = ["sh", "-c", "sleep 0.02; ls / >/dev/null; sleep 0.02"];
    let options = ["-e", exec, "--filter", "filename ~ \"*sleep\"", "-e", "sched:sched_process_exit"];
    for tool in ["pmc", "perf"] {
        match tool {
            "pmc" => drop(record(&file, &options, &shell).expect(0)),
            _ => perf_record(&file, &options, &shell),
        }
        let lines = perf(&["script"], &file);
        let execs: Vec<&str> = lines.lines().filter(|line| line.contains(exec)).collect();
        assert!(execs.len() == 2 && execs.iter().all(|line| line.contains("sleep")), "{tool}: {lines}");
        assert!(lines.contains("sched_process_exit") && lines.contains("comm=ls"), "{tool}: {lines}");
    }
    let both = ["-e", exec, "--filter", "filename ~ \"*sleep\"", "--filter", "filename ~ \"*ls\""];
    record(&file, &both, &shell).expect(0);
    assert_eq!(our_samples(&file), 0, "no name ends in both");
}

/// Calls a function of each of the given number of libraries, for some milliseconds of CPU time each.
const CALLS_ALL: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  for (int i = 0; i < atoi(argv[2]); i++) {
    char name[4096];
    snprintf(name, sizeof name, "%s/lib-%d.so", argv[1], i * i * i);
    void *library = dlopen(name, RTLD_NOW);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
    ((void (*)(void))dlsym(library, "spin"))();
  }
  return 0;
}
"#;
const SPINS: &str = "void spin(void) { burn_ms(8); }";

/// A zombie has no mappings. Another record about it would make perf treat it as a copy of its parent.
#[test]
fn exited_processes_are_not_synthesized() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let mut ended = std::process::Command::new("true").spawn().expect("it starts");
    let pid = ended.id();
    let is_zombie = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is still there");
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
    };
    kit::wait_for("its end", is_zombie);
    let file = lab.path("ended.data");
    record(&file, &["-e", "cpu-clock", "-a"], &["true"]).expect(0);
    let told = perf(&["script", "--show-task-events", "-F", "comm,tid,event,ip"], &file);
    let own = format!("({}:{})", std::process::id(), std::process::id());
    assert!(told.contains(&own), "the test itself is told of: {told}");
    assert!(!told.contains(&format!("({pid}:{pid})")), "{told}");
    ended.wait().expect("it has ended");
}

/// The recording has build-id records of hundreds of files with names of all lengths. The newest perf
/// rejects a file with a record whose size is not a multiple of 8 bytes.
#[test]
fn both_perfs_read_recordings_with_hundreds_of_modules() {
    if !ready() || !crate::kit::need_program("gcc") {
        return;
    }
    const MODULES: usize = 240;
    let lab = Lab::new();
    let gcc = |source: &str, name: &str, flags: &[&str]| {
        std::fs::write(lab.path("source.c"), source).expect("it is written");
        let mut gcc = Command::new("gcc");
        gcc.arg("-O1").args(burn_flags()).args(flags).arg("-o").arg(lab.path(name)).arg(lab.path("source.c"));
        assert!(gcc.status().expect("gcc starts").success());
    };
    gcc(CALLS_ALL, "calls", &[]);
    gcc(SPINS, "lib.so", &["-shared", "-fPIC", "-Wl,--build-id=0x1111111111111111111111111111111111111111"]);
    let library = std::fs::read(lab.path("lib.so")).expect("gcc made it");
    let id = library.windows(20).position(|bytes| bytes == [0x11; 20]).expect("its build-id");
    for number in 0..MODULES {
        let mut copy = library.clone();
        copy[id..id + 8].copy_from_slice(&(number as u64 + 1).to_ne_bytes());
        std::fs::write(lab.path(&format!("lib-{}.so", number * number * number)), copy)
            .expect("it is written");
    }
    let file = lab.path("modules.data");
    let folder = file.parent().expect("a folder").to_str().expect("plain").to_owned();
    let calls = lab.path("calls");
    let work = [calls.to_str().expect("plain"), &folder, &MODULES.to_string()];
    let run = record(&file, &["-e", "cpu-clock", "-a", "-g", "-F", "2000", "--buildid-all"], &work).expect(0);
    let samples = told(&run.stderr, " samples");
    assert_eq!((our_samples(&file), perf_samples(&file)), (samples, samples));
    let reader = Reader::open(&file).expect("pmc reads it");
    let mut noted = 0;
    let uneven = |raw: &pmc_perfdata::record::RawRecord<'_>| {
        noted += usize::from(raw.kind == kind::HEADER_BUILD_ID);
        assert_eq!(raw.bytes.len() % 8, 0, "kind {}", raw.kind);
    };
    reader.scan(uneven).expect("the scan reads");
    let listed = reader.features().build_ids.iter().flat_map(|list| &list.0);
    // Other processes that ran meanwhile have their modules too.
    let own = format!("{folder}/lib-");
    let listed = listed.filter(|row| row.name.starts_with(own.as_bytes())).count();
    assert!(noted > 0 && listed == MODULES, "{noted} among the records, {listed} in the list");
}
