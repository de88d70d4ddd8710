//! Recordings made by the installed perf, read by pmc and compared with perf's output.

use crate::Lab;
use crate::kit::oracle::{self, Recording};
use crate::kit::{self, burn::busy_shell_with};

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use pmc_perfdata::perfdata::{
    Buffer, Features, Reader, RecordedEvent, RecordingLayout, RecordingNote, WriteOptions, Writer,
};
use pmc_perfdata::record::kind;

/// Records a shell with perf that maps files, starts processes and takes 50 ms of CPU time.
#[track_caller]
fn record(file: &Path, options: &[&str]) {
    let folder = file.parent().expect("a folder");
    let list = "ls -R /usr/share/doc /etc >/dev/null 2>&1";
    let work = ["sh", "-c", busy_shell_with(50, list)];
    Recording { file, options, work: &work, folder, is_stream: false }.make();
}

#[track_caller]
fn perf(arguments: &[&str], file: &Path) -> String {
    oracle::perf_of(file, arguments)
}

/// Number of records of each kind in perf's dump.
fn perf_counts(file: &Path) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in perf(&["report", "-D"], file).lines() {
        // `…: PERF_RECORD_X …` follows numbers. Text in payloads does not follow `0x… [0x…]`.
        let Some((before, after)) = line.split_once(": PERF_RECORD_") else { continue };
        if !before.contains("[0x") {
            continue;
        }
        let name = after.split(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').next();
        *counts.entry(name.unwrap_or("").to_owned()).or_default() += 1;
    }
    counts
}

/// Number of records of each kind that pmc reads, in a scan and then chunk by chunk.
fn our_counts(reader: &Reader) -> BTreeMap<String, u64> {
    let index = reader.scan(|_| {}).expect("the scan reads");
    let mut buffer = Buffer::default();
    let (mut samples, mut by_chunk) = (0, 0);
    for chunk in &index.chunks {
        for raw in reader.load(chunk, &mut buffer).expect("the chunk loads") {
            assert!(
                raw.parse().is_some(),
                "{:?} of {} bytes does not parse",
                kind::name(raw.kind),
                raw.bytes.len()
            );
            by_chunk += 1;
            if raw.kind == kind::SAMPLE {
                let (_, sample) = reader.layouts().sample(&raw).expect("a sample of a known event");
                let parts = sample.parts().expect("sizes inside the sample");
                assert_eq!(parts.callchain, sample.callchain());
                samples += 1;
            } else if raw.kind < kind::FIRST_USER {
                let timed =
                    reader.layouts().iter().all(|l| l.sample_type() & pmc_sys::abi::sample_type::TIME != 0);
                assert_eq!(reader.layouts().sample_id(&raw).time.is_some(), timed);
            }
        }
    }
    assert_eq!(samples, index.count(kind::SAMPLE));
    // Chunks and perf's dump contain the content of compressed records. A test of `report --stats` compares
    // the number of compressed records.
    let counts = || index.counts().filter(|(kind, _)| *kind != kind::COMPRESSED);
    assert_eq!(by_chunk, counts().map(|(_, n)| n).sum::<u64>());
    let named = counts().map(|(kind, n)| (kind::name(kind).expect("a known kind").to_owned(), n));
    named.map(|(name, n)| (name.trim_start_matches("HEADER_").to_owned(), n)).collect()
}

/// Checks that pmc and perf's dump count the same records, except a few that perf omits or renames.
#[track_caller]
fn agree(file: &Path) -> Reader {
    let reader = Reader::open(file).expect("pmc reads it");
    let (ours, mut theirs) = (our_counts(&reader), perf_counts(file));
    theirs.remove("COMPRESSED");
    let theirs: BTreeMap<_, _> =
        theirs.into_iter().map(|(name, n)| (name.trim_start_matches("HEADER_").to_owned(), n)).collect();
    assert_eq!(ours, theirs, "{}", file.display());
    reader
}

#[test]
fn all_recordings_have_the_records_perf_counts() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let kinds: &[(&str, &[&str])] = &[
        ("fp", &["-e", "cpu-clock", "-g"]),
        ("dwarf", &["-e", "cpu-clock", "--call-graph", "dwarf,4096"]),
        ("flat", &["-e", "task-clock"]),
        ("many", &["-e", "cpu-clock,task-clock,page-faults,context-switches,minor-faults", "-g"]),
        ("groups", &["-e", "{cpu-clock,page-faults}:S"]),
        ("tracepoints", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
        ("everywhere", &["-e", "cpu-clock", "-a", "-g"]),
        ("compressed", &["-e", "cpu-clock", "-g", "-z"]),
        ("thread", &["-e", "cpu-clock", "--per-thread"]),
        ("switches", &["-e", "cpu-clock", "--switch-events", "--namespaces", "--all-cgroups"]),
        (
            "data",
            &["-e", "page-faults", "-d", "--phys-data", "--data-page-size", "--code-page-size", "-c", "1"],
        ),
        ("weights", &["-e", "cpu-clock", "-W", "--sample-cpu", "-T", "-P", "--sample-identifier"]),
        ("registers", &["-e", "cpu-clock", "--user-regs=ip,sp,bp,ax", "--intr-regs=ip,sp"]),
        ("build-ids", &["-e", "cpu-clock", "--buildid-mmap"]),
        ("clock", &["-e", "cpu-clock", "-k", "CLOCK_MONOTONIC", "--buildid-all"]),
    ];
    for (name, options) in kinds {
        let file = lab.path(name);
        record(&file, options);
        let reader = agree(&file);
        assert!(reader.notes().is_empty(), "{name}: {:?}", reader.notes());
    }
}

/// Copies all records of a recording to another file.
fn rewrite(from: &Reader, to: &Path, options: WriteOptions) -> u64 {
    let features = Features { compressed: None, ..from.features().clone() };
    let mut writer = Writer::create(to, from.events(), &features, options).expect("the writer begins");
    let index = from.scan(|_| {}).expect("the scan reads");
    let mut buffer = Buffer::default();
    for chunk in &index.chunks {
        let records = from.load(chunk, &mut buffer).expect("the chunk loads");
        // Append two slices, like a ring buffer that wraps. The writer makes the headers of perf's streams
        // itself.
        let bytes = records.rest();
        let (first, second) = bytes.split_at(bytes.len() / 16 * 8);
        writer.append(&[first, second]).expect("the writer appends");
    }
    writer.finish(&features).expect("the writer finishes")
}

/// The header without the lines that depend on the file's layout.
fn header_text(file: &Path) -> String {
    let text = perf(&["report", "--header-only", "-I"], file);
    let placed =
        ["# captured on", "# data offset", "# data size", "# feat offset", "# compressed", "# missing"];
    let kept = text.lines().filter(|line| !placed.iter().any(|word| line.starts_with(word)));
    kept.map(|line| format!("{line}\n")).collect()
}

fn second_opinion(file: &Path) -> usize {
    let open = std::fs::File::open(file).expect("the file opens");
    let linux_perf_data::PerfFileReader { mut perf_file, mut record_iter } =
        linux_perf_data::PerfFileReader::parse_file(std::io::BufReader::new(open))
            .expect("linux-perf-data reads it");
    let mut samples = 0;
    while let Some(record) = record_iter.next_record(&mut perf_file).expect("its records are whole") {
        if let linux_perf_data::PerfFileRecord::EventRecord { record, .. } = record {
            samples += usize::from(record.record_type.0 == kind::SAMPLE);
        }
    }
    samples
}

#[test]
fn rewritten_recordings_are_identical() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let kinds: &[(&str, &[&str])] = &[
        ("fp", &["-e", "cpu-clock,page-faults", "-g"]),
        ("groups", &["-e", "{cpu-clock,page-faults}"]),
        ("tracepoints", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
        ("packed", &["-e", "cpu-clock", "-g", "-z", "-k", "CLOCK_MONOTONIC"]),
    ];
    for (name, options) in kinds {
        let file = lab.path(name);
        record(&file, options);
        let reader = Reader::open(&file).expect("pmc reads it");
        let counts = our_counts(&reader);
        let (script, header) = (perf(&["script"], &file), header_text(&file));
        assert!(script.lines().count() > 10 && header.contains("# cpudesc"), "{name}");
        for compress in [None, Some(3)] {
            let copy = lab.path(&format!("{name}-{compress:?}"));
            let size = rewrite(&reader, &copy, WriteOptions { compress, ..WriteOptions::default() });
            assert_eq!(std::fs::metadata(&copy).expect("it is there").len(), size);
            let again = agree(&copy);
            let mut recounted = our_counts(&again);
            // The writer adds FEATURE records: the features known at the start, for readers of unfinished
            // files, and the extent of the unpacked records.
            assert!(recounted.remove("FEATURE").is_some_and(|count| count > 10), "{recounted:?}");
            let mut counts = counts.clone();
            counts.remove("FEATURE");
            assert_eq!(recounted, counts);
            assert_eq!(again.events(), reader.events());
            let plain = |features: &Features| Features { compressed: None, ..features.clone() };
            assert_eq!(plain(again.features()), plain(reader.features()));
            assert!(perf(&["script"], &copy) == script, "perf script differs: {name} {compress:?}");
            assert_eq!(header_text(&copy), header);
            assert!(!perf(&["report", "--stdio"], &copy).is_empty());
            assert_eq!(second_opinion(&copy) as u64, counts["SAMPLE"]);
            assert_eq!(Reader::count_samples(&copy).expect("pmc reads it"), counts["SAMPLE"]);
        }
    }
}

#[test]
fn pipe_directory_and_compressed_recordings_are_read() {
    if !kit::need_program("perf") || !kit::need_root() || !kit::need_program("zstd") {
        return;
    }
    let lab = Lab::new();
    let shell = |line: &str| {
        let run =
            Command::new("sh").args(["-c", line]).current_dir(lab.0.path()).stdin(Stdio::null()).output();
        let run = run.expect("sh starts");
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    };
    let record = |name: &str, options: &[&str], is_stream| {
        let work = ["sh", "-c", "ls -R /usr/share/doc >/dev/null"];
        let file = lab.path(name);
        Recording { file: &file, options, work: &work, folder: lab.0.path(), is_stream }.make();
    };
    record("pipe", &["-e", "cpu-clock,page-faults", "-g"], true);
    let reader = agree(&lab.path("pipe"));
    assert_eq!(reader.form(), RecordingLayout::Pipe);
    assert_eq!(reader.events().iter().map(|e| e.name()).collect::<Vec<_>>(), ["cpu-clock", "page-faults"]);
    assert!(reader.features().cpu_desc.is_some() && reader.features().cmdline.is_some());
    record("traces", &["-e", "sched:sched_switch", "-a"], true);
    let reader = agree(&lab.path("traces"));
    assert_eq!(reader.events()[0].name(), "sched:sched_switch");
    assert!(reader.features().tracing_data.as_ref().is_some_and(|t| t.0.starts_with(b"\x17\x08\x44tracing")));

    record("plain", &["-e", "cpu-clock", "-g"], false);
    shell("gzip -k plain; zstd -q plain; cat plain > fed");
    let plain = our_counts(&Reader::open(lab.path("plain")).expect("the plain file"));
    for wrapped in ["plain.gz", "plain.zst"] {
        assert_eq!(our_counts(&Reader::open(lab.path(wrapped)).expect(wrapped)), plain);
    }
    record("many", &["-e", "cpu-clock", "-g", "--threads"], false);
    let reader = agree(&lab.path("many"));
    assert_eq!(reader.form(), RecordingLayout::Directory);
    assert!(our_counts(&reader)["SAMPLE"] > 0);
}

#[test]
fn perf_reads_our_streams() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    for (name, options) in [
        ("clocks", &["-e", "cpu-clock,page-faults", "-g"] as &[&str]),
        ("traces", &["-e", "sched:sched_switch,sched:sched_process_exec", "-a"]),
    ] {
        let file = lab.path(name);
        record(&file, options);
        let reader = Reader::open(&file).expect("pmc reads it");
        let index = reader.scan(|_| {}).expect("the scan reads");
        for compress in [None, Some(1)] {
            let copy = lab.path(&format!("{name}-stream-{compress:?}"));
            let stream = std::fs::File::create(&copy).expect("it can be made");
            let options = WriteOptions { compress, ..WriteOptions::default() };
            let writer = Writer::stream(stream, &copy, reader.events(), reader.features(), options);
            let mut writer = writer.expect("the writer begins");
            let mut buffer = Buffer::default();
            for chunk in &index.chunks {
                writer
                    .append(&[reader.load(chunk, &mut buffer).expect("it loads").rest()])
                    .expect("it appends");
            }
            writer.finish(reader.features()).expect("it finishes");
            let again = agree(&copy);
            assert_eq!(our_counts(&again)["SAMPLE"], our_counts(&reader)["SAMPLE"]);
            assert_eq!(names(&again), names(&reader));
            assert!(
                perf(&["script"], &copy) == perf(&["script"], &file),
                "perf script differs: {name} {compress:?}"
            );
        }
    }
}

fn names(reader: &Reader) -> Vec<String> {
    reader.events().iter().map(RecordedEvent::name).collect()
}

#[test]
fn unnamed_events_get_perfs_names() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("named");
    record(&file, &["-e", "sched:sched_switch,cpu-clock:u,page-faults:k,mem:0x1000:w", "-a"]);
    let reader = Reader::open(&file).expect("pmc reads it");
    // A stream that has the events' attrs but not their names. A tracepoint's name is in its format.
    let events: Vec<RecordedEvent> =
        reader.events().iter().map(|event| RecordedEvent { name: None, ..event.clone() }).collect();
    let features = Features { event_desc: None, ..reader.features().clone() };
    let copy = lab.path("unnamed");
    let stream = std::fs::File::create(&copy).expect("it can be made");
    let writer = Writer::stream(stream, &copy, &events, &features, WriteOptions::default());
    writer.expect("the writer begins").finish(&features).expect("it finishes");
    let unnamed = names(&Reader::open(&copy).expect("pmc reads it"));
    // With `u`, perf also excludes guests and shows this as `H`.
    assert_eq!(unnamed[..4], ["sched:sched_switch", "cpu-clock:uH", "page-faults:k", "mem:0x1000:w"]);
}

#[test]
fn killed_recorder_leaves_a_readable_file() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    // perf, killed: its header says that there is no data.
    let file = lab.path("killed");
    let options = ["record", "-N", "-e", "cpu-clock", "-a", "-F", "4000", "-o"];
    let make = || {
        let mut perf = Command::new("perf");
        perf.args(options).arg(&file).args(["--", "sh", "-c", "ls -R / >/dev/null 2>&1; exec sleep 600"]);
        perf
    };
    let is_full = || std::fs::metadata(&file).is_ok_and(|meta| meta.len() > 200_000);
    drop(kit::ProcessGuard(oracle::start(make, is_full)));
    let reader = Reader::open(&file).expect("pmc reads it");
    assert_eq!(reader.notes(), [RecordingNote::Unfinished { lost: 0 }]);
    assert!(our_counts(&reader)["SAMPLE"] > 100);

    // pmc's writer, never finished, with and without compression. perf reads the file too.
    let file = lab.path("fp");
    record(&file, &["-e", "cpu-clock,page-faults", "-g"]);
    let reader = Reader::open(&file).expect("pmc reads it");
    let index = reader.scan(|_| {}).expect("the scan reads");
    let script = perf(&["script"], &file);
    for compress in [None, Some(1)] {
        let copy = lab.path(&format!("dropped-{compress:?}"));
        let mut writer = Writer::create(
            &copy,
            reader.events(),
            reader.features(),
            WriteOptions { compress, ..WriteOptions::default() },
        )
        .expect("it begins");
        let mut buffer = Buffer::default();
        for chunk in &index.chunks {
            writer.append(&[reader.load(chunk, &mut buffer).expect("it loads").rest()]).expect("it appends");
        }
        drop(writer);
        assert_eq!(our_counts(&Reader::open(&copy).expect("it opens"))["SAMPLE"], index.count(kind::SAMPLE));
        assert!(perf(&["script"], &copy) == script, "perf script differs: {compress:?}");

        // Readers ignore half a record after the data size.
        let mut torn = std::fs::read(&copy).expect("it is there");
        torn.extend([9, 0, 0, 0, 0, 0, 64, 0, 1, 2, 3, 4]);
        std::fs::write(&copy, torn).expect("it can be written");
        let reader = Reader::open(&copy).expect("it opens");
        assert_eq!(our_counts(&reader)["SAMPLE"], index.count(kind::SAMPLE));
        assert!(perf(&["script"], &copy) == script, "perf script differs: {compress:?}");
    }
}

#[test]
fn full_disk_leaves_a_readable_file() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let small = lab.path("small");
    std::fs::create_dir(&small).expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&small).status();
    if !kit::need("mount", mounted.is_ok_and(|s| s.success()), "tmpfs cannot be mounted here") {
        return;
    }
    let file = lab.path("fp");
    record(&file, &["-e", "cpu-clock,page-faults", "-g", "-F", "20000"]);
    let reader = Reader::open(&file).expect("pmc reads it");
    let index = reader.scan(|_| {}).expect("the scan reads");
    assert!(index.bytes > 100_000, "{} bytes do not fill the disk", index.bytes);
    let copy = small.join("perf.data");
    let mut writer = Writer::create(&copy, reader.events(), reader.features(), WriteOptions::default())
        .expect("it begins");
    let mut buffer = Buffer::default();
    let mut failure = None;
    for chunk in &index.chunks {
        if let Err(error) = writer.append(&[reader.load(chunk, &mut buffer).expect("it loads").rest()]) {
            failure = Some(pmc_sys::error::Error::from(error).to_string());
            break;
        }
    }
    assert!(writer.append(&[&[]]).is_err() || failure.is_some());
    // With free space again, the writer puts the sections after the last whole record.
    Command::new("mount").args(["-o", "remount,size=1m"]).arg(&small).status().expect("mount starts");
    let ended = writer.finish(&Features { hostname: Some("here".into()), ..Features::default() });
    let read = Reader::open(&copy)
        .map(|reader| (our_counts(&reader), reader.notes().to_vec(), reader.features().hostname.clone()));
    let script = perf(&["script"], &copy);
    Command::new("umount").arg(&small).status().expect("umount starts");
    let failure = failure.expect("the disk is full");
    assert!(failure.contains("No space left on device (ENOSPC)") && failure.contains("try:"), "{failure}");
    ended.expect("there is room for the sections");
    let (counts, notes, hostname) = read.expect("pmc reads it");
    assert_eq!((notes, hostname.as_deref()), (vec![], Some("here")));
    assert!(counts["SAMPLE"] > 100 && counts["SAMPLE"] < index.count(kind::SAMPLE));
    assert!(
        script.lines().filter(|l| l.contains("cpu-clock") || l.contains("page-faults")).count() as u64
            == counts["SAMPLE"]
    );
}

#[test]
fn existing_recording_is_kept_and_new_one_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    let file = lab.path("perf.data");
    std::fs::write(&file, "former").expect("it can be written");
    let events = [RecordedEvent::default()];
    let writer =
        Writer::create(&file, &events, &Features::default(), WriteOptions::default()).expect("it begins");
    writer.finish(&Features { hostname: Some("here".into()), ..Features::default() }).expect("it finishes");
    assert_eq!(std::fs::read_to_string(lab.path("perf.data.old")).expect("it is kept"), "former");
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let reader = Reader::open(&file).expect("it opens");
    assert_eq!(reader.features().hostname.as_deref(), Some("here"));
    assert_eq!(reader.notes(), []);
}

/// The text that `perf script` prints of each payload.
fn perf_traces(file: &Path) -> Vec<String> {
    perf(&["script", "-F", "trace"], file).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn tracepoint_text_matches_perf_script() {
    if !kit::need_program("perf") || !kit::need_root() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("traces");
    let wanted = [
        "sched:sched_switch",
        "sched:sched_process_exec",
        "sched:sched_wakeup",
        "sched:sched_stat_runtime",
        "kmem:kmalloc",
        "kmem:mm_page_alloc",
        "syscalls:sys_enter_openat",
        "raw_syscalls:sys_enter",
        "irq:softirq_entry",
        "timer:hrtimer_start",
        "writeback:writeback_dirty_inode",
        "block:block_rq_issue",
        "signal:signal_generate",
        "workqueue:workqueue_execute_start",
        "rcu:rcu_utilization",
        "exceptions:page_fault_user",
        "mmap:vm_unmapped_area",
        "task:task_newtask",
        "ext4:ext4_da_write_begin",
        "sched:sched_process_fork",
        "kmem:mm_page_free",
        "skb:kfree_skb",
        "filemap:mm_filemap_add_to_page_cache",
    ];
    if !kit::need_tracefs("sched") {
        return;
    }
    let tracefs = kit::tracefs().expect("it was found");
    let here = |event: &&&str| tracefs.join(event.replace(':', "/")).exists();
    let events: Vec<&str> = wanted.iter().filter(here).copied().collect();
    assert!(events.len() > 10, "the kernel has only {events:?}");
    let all = events.join(",");
    let options = ["-a", "-m", "8M", "-e", &all];
    let work = ["sh", "-c", "ls -R /usr/share/doc >/dev/null; echo x >x; sync; rm x"];
    Recording { file: &file, options: &options, work: &work, folder: lab.0.path(), is_stream: false }.make();
    let reader = Reader::open(&file).expect("pmc reads it");
    let data = reader.features().tracing_data.as_ref().expect("tracing data");
    let data = pmc_perfdata::record::tracepoint::TracingData::parse(&data.0).expect("they parse");
    assert!(data.formats().filter(|f| f.system != "ftrace").count() >= events.len());
    let kallsyms = std::fs::read_to_string("/proc/kallsyms").expect("kallsyms");
    let mut symbols = BTreeMap::new();
    for line in kallsyms.lines() {
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|a| u64::from_str_radix(a, 16).ok()).unwrap_or(0);
        symbols.insert(address, words.nth(1).unwrap_or("").to_owned());
    }
    let name_of = |address: u64| {
        let (start, name) = symbols.range(..=address).next_back()?;
        (address - start < 1 << 20).then(|| (name.clone(), address - start))
    };
    let names = pmc_perfdata::record::tracepoint::KernelNames { code: &name_of, texts: Some(&data.texts) };
    let mut ours = Vec::new();
    let index = reader.scan(|_| {}).expect("the scan reads");
    let mut buffer = Buffer::default();
    for chunk in &index.chunks {
        for raw in reader.load(chunk, &mut buffer).expect("it loads") {
            let Some((event, sample)) = reader.layouts().sample(&raw) else { continue };
            let bytes = sample.parts().and_then(|p| p.raw).expect("a payload");
            let format = data.format(reader.events()[event].attr.config()).expect("a format");
            let payload = pmc_perfdata::record::tracepoint::Payload {
                bytes,
                is_byte_swapped: reader.is_byte_swapped(),
            };
            let mut line = String::new();
            format.print(payload, names, &mut line);
            ours.push((format.name.clone(), line));
        }
    }
    // Records with equal timestamps on two CPUs have no defined order, so the lines are compared as a
    // multiset.
    let theirs = perf_traces(&file);
    assert_eq!(ours.len(), theirs.len());
    let mut bag: BTreeMap<&str, i64> = BTreeMap::new();
    theirs.iter().for_each(|line| *bag.entry(line.as_str()).or_default() += 1);
    let mut by_event: BTreeMap<&str, (u64, u64, &str)> = BTreeMap::new();
    for (name, line) in &ours {
        let row = by_event.entry(name).or_default();
        row.0 += 1;
        let left = bag.entry(line.trim()).or_default();
        *left -= 1;
        if *left < 0 {
            (row.1, row.2) = (row.1 + 1, line);
        }
    }
    assert!(by_event.len() >= 10, "{by_event:?}");
    let only_theirs: Vec<_> = bag.iter().filter(|(_, n)| **n > 0).take(10).collect();
    assert!(by_event.values().all(|(_, differ, _)| *differ == 0), "{by_event:#?}\n{only_theirs:#?}");
}

#[test]
fn most_kernel_tracepoint_formats_parse() {
    if !kit::need_root() || !kit::need_tracefs("sched") {
        return;
    }
    let events = kit::tracefs().expect("it was found");
    let (mut all, mut printable, mut not) = (0, 0, Vec::new());
    for system in std::fs::read_dir(events).expect("tracefs lists").flatten().filter(|e| e.path().is_dir()) {
        for event in std::fs::read_dir(system.path()).expect("a system lists").flatten() {
            let Ok(text) = std::fs::read_to_string(event.path().join("format")) else { continue };
            let format = pmc_perfdata::record::tracepoint::TracepointFormat::parse(
                &system.file_name().to_string_lossy(),
                &text,
            );
            let format = format.unwrap_or_else(|| panic!("{} does not parse", event.path().display()));
            all += 1;
            if format.is_printable() {
                printable += 1
            } else {
                not.push(format!("{}:{}", format.system, format.name))
            }
        }
    }
    assert!(printable * 100 >= all * 97, "{printable} of {all}: not {not:?}");
}
