//! No recorded data is lost: killed recorders, full disks, thousands of processes and threads.

use super::*;
use crate::kit::burn::busy_shell;
use pmc_perfdata::record::Record;

fn name_of(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Pseudo-random numbers with a fixed seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn monotonic() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Number of recorders to kill: `PMC_TEST_KILLS`, which `.ci/run` sets.
fn kills() -> usize {
    std::env::var("PMC_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// Options of the recordings whose recorder is killed.
const KILLED: &[&[&str]] = &[
    &["-e", "cpu-clock", "-g"],
    &["-e", "cpu-clock"],
    &["-e", "cpu-clock", "-g", "-z"],
    &["-e", "cpu-clock,page-faults", "-a"],
    &["-e", "cpu-clock", "--call-graph", "dwarf"],
    &["-e", "cpu-clock", "--call-graph", "dwarf", "-a"],
    &["-e", "cpu-clock", "--call-graph", "dwarf,1024", "--unwind", "deferred"],
];

fn times(text: &str) -> Vec<f64> {
    text.lines().filter_map(|line| line.trim().trim_end_matches(':').parse().ok()).collect()
}

/// Timestamps of the samples that pmc finds in a file, which may still be written.
fn times_by_pmc(file: &Path) -> Vec<f64> {
    let ran = kit::pmc().args(["script", "-F", "time", "-G", "-i"]).arg(file).output().expect("pmc starts");
    times(&kit::Ran::from(ran).stdout)
}

fn last_of(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

/// End of the data in bytes according to the file's header (`struct perf_file_header`). perf reads no
/// further.
fn end_in_header(file: &Path) -> u64 {
    let bytes = std::fs::read(file).unwrap_or_default();
    let field = |at: usize| bytes.get(at..)?.first_chunk().map(|field| u64::from_le_bytes(*field));
    field(40).zip(field(48)).map_or(0, |(start, size)| start + size)
}

/// Number of build-ids in a file's header.
fn build_ids(file: &Path) -> usize {
    let reader = Reader::open(file).ok();
    reader.and_then(|reader| Some(reader.features().build_ids.as_ref()?.0.len())).unwrap_or(0)
}

/// Starts a recording, kills the recorder at a random time, and reads the file.
fn kill_one(lab: &Lab, number: usize, dice: &mut Dice) {
    let file = lab.path(&format!("killed-{number}"));
    let shape = KILLED[number % KILLED.len()];
    let mut pmc = kit::pmc();
    pmc.args(["record", "-q", "-k", "mono", "-F", "1000"]).args(shape).arg("-o").arg(&file);
    let mut pmc = kit::ProcessGuard::start(pmc.args(["--", "sh", "-c", SPIN]));
    kit::wait_for("the file", || {
        assert!(pmc.0.try_wait().expect("it is ours").is_none(), "{number}: pmc exited before it was killed");
        file.exists()
    });
    // Some recorders are killed before they write a sample. The others write their data without a request.
    let (with_samples, with_build_ids) = (!number.is_multiple_of(3), number % 3 == 2);
    let seen = monotonic();
    if with_samples {
        kit::wait_for("samples in the file", || last_of(&times_by_pmc(&file)) > seen);
        let written = file.metadata().expect("it is there").len();
        kit::wait_for("a header that covers them", || end_in_header(&file) >= written);
    }
    if with_build_ids {
        kit::wait_for("build-ids in the header", || build_ids(&file) > 0);
    }
    kit::let_pass(std::time::Duration::from_millis(dice.roll(700)));
    drop(pmc);
    let perfs = times(&perf(&["script", "-F", "time", "-G"], &file));
    assert_eq!(perf_samples(&file), perfs.len(), "{number} {shape:?}");
    let ours = times_by_pmc(&file);
    if with_samples {
        for (who, times) in [("perf", &perfs), ("pmc", &ours)] {
            assert!(last_of(times) > seen, "{number} {shape:?}: {who} does not see what had been written");
        }
    }
    assert!(ours.len() >= perfs.len(), "{number}: pmc {}, perf {}", ours.len(), perfs.len());
    let reader = Reader::open(&file).expect("pmc reads it");
    assert!(reader.features().hostname.is_some() && reader.features().cmdline.is_some(), "{number}");
    assert_eq!(reader.events()[0].name(), "cpu-clock");
    assert!(!with_build_ids || build_ids(&file) > 0, "{number}: the build-ids are gone");
    std::fs::remove_file(&file).expect("it goes");
}

#[test]
fn killed_recorder_loses_no_written_data() {
    /// Number of concurrent recorders; they mostly wait.
    const LANES: usize = 5;
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (lab, next) = (&lab, &next);
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                let mut dice = Dice(20_261_121 + lane as u64);
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= kills() {
                        return;
                    }
                    kill_one(lab, number, &mut dice);
                }
            });
        }
    });
}

#[test]
fn full_disk_ends_the_recording_and_keeps_the_data() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let disk = lab.path("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(&disk).status();
    if !kit::need("mount", mount.is_ok_and(|s| s.success()), "a tmpfs cannot be mounted") {
        return;
    }
    for shape in [&["-g"][..], &["-z"], &["--unwind=deferred"]] {
        let file = disk.join(format!("full{}", shape[0]));
        let options = [&["-e", "cpu-clock", "-a", "-F", "20000", "--call-graph", "dwarf"], shape].concat();
        let run = record(&file, &options, &["sh", "-c", SPIN]);
        let samples = (perf_samples(&file), our_samples(&file));
        let _ = std::fs::remove_file(&file);
        let run = run.expect(1).says(&[
            "No space left",
            "ENOSPC",
            "the file contains all records written so far",
            "-o",
        ]);
        assert!(samples.0 > 20 && samples.0 == samples.1, "{samples:?} {}", run.stderr);
        // The last line describes the contents of the file.
        let truth = run.stderr.lines().find(|line| line.contains("of CPU")).expect("the line of truth");
        let said = format!("{}: {} samples, ", file.display(), samples.0);
        assert!(truth.contains(&said) && !truth.contains(" 0 B;"), "{said}\n{truth}");
    }
    let _ = Command::new("umount").arg(&disk).status();
}

/// Number of forks, names set by exec, and exits in a file.
#[track_caller]
fn tasks(file: &Path) -> (usize, usize, usize) {
    let (mut forks, mut execs, mut exits) = (0, 0, 0);
    let reader = Reader::open(file).expect("pmc reads it");
    reader
        .scan(|raw| match raw.parse() {
            Some(Record::Fork(_)) => forks += 1,
            Some(Record::Exit(_)) => exits += 1,
            Some(Record::Comm(comm)) => execs += usize::from(comm.is_exec),
            _ => {}
        })
        .expect("the scan reads");
    (forks, execs, exits)
}

#[test]
fn recording_5000_short_processes_loses_nothing() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("processes");
    let shell = "i=0; while [ $i -lt 5000 ]; do /bin/true; i=$((i+1)); done";
    let run = record(&file, &["-e", "cpu-clock", "-g"], &["sh", "-c", shell]).expect(0).says(&["none lost"]);
    let (forks, execs, exits) = tasks(&file);
    assert!(forks >= 5000 && execs >= 5000 && exits >= 5000, "{forks} forks, {execs} execs, {exits} exits");
    assert_eq!(perf_samples(&file).min(1), 1);
    assert_eq!(our_samples(&file), told(&run.stderr, " samples"));
}

#[test]
fn recording_2000_threads_loses_nothing() {
    if !ready() || !kit::need_program("python3") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("threads");
    let program = "import threading\n\
        gate = threading.Event()\n\
        threads = [threading.Thread(target=gate.wait) for _ in range(2000)]\n\
        [t.start() for t in threads]; gate.set(); [t.join() for t in threads]";
    let run =
        record(&file, &["-e", "cpu-clock", "-g"], &["python3", "-c", program]).expect(0).says(&["none lost"]);
    let (forks, _, exits) = tasks(&file);
    assert!(forks >= 2000 && exits >= 2000, "{forks} forks, {exits} exits");
    assert_eq!(our_samples(&file), told(&run.stderr, " samples"));
    assert!(!perf(&["report", "--stdio"], &file).is_empty());
}

#[test]
fn lost_records_are_counted() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("lossy");
    // One page for copies of 32 KiB: none of them fits.
    let options = ["-e", "cpu-clock", "-m", "1", "--call-graph", "dwarf,32768"];
    let work = ["sh", "-c", busy_shell(100)];
    record(&file, &[&["-q"], &options[..]].concat(), &work)
        .expect(0)
        .says(&["pmc: warning: ", "lost because the ring buffers were full"]);
    let run = record(&file, &options, &work).expect(0);
    let lost = told(&run.stderr, " records lost");
    assert!(lost > 0, "{}", run.stderr);
    assert_eq!(losses_in(&file), (lost, lost));
}

#[test]
fn reports_print_the_losses_of_a_recording() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("lossy");
    // Two pages for copies of 4 KiB: only one of them fits.
    let options = ["-e", "cpu-clock", "-F", "20000", "-m", "2", "--call-graph", "dwarf,4096"];
    let run = record(&file, &options, &*WORK).expect(0);
    let lost = told(&run.stderr, " records lost");
    let total = format!("# Total Lost Samples: {lost}\n");
    for perf in oracle::perfs() {
        let report = ask_perf(&perf, &["report", "--stdio"], &file);
        assert!(report.contains(&total), "{}: {total}{report}", perf.display());
    }
    kit::run(&["report", "--stdio", "-i", name_of(&file)]).expect(0).prints(&[&total]);
    let report = kit::run(&["report", "-i", name_of(&file)]).expect(0);
    assert!(digits(&report.stdout).contains(&format!(" {lost} lost")), "{}", report.stdout);
}

/// A text with its numbers without separators.
fn digits(text: &str) -> String {
    text.replace(',', "")
}

/// Losses in the `LOST` and the `LOST_SAMPLES` records of a file.
fn losses_in(file: &Path) -> (usize, usize) {
    let (mut records, mut samples) = (0, 0);
    let reader = Reader::open(file).expect("pmc reads it");
    reader
        .scan(|raw| match raw.parse() {
            Some(Record::Lost(record)) => records += record.lost as usize,
            Some(Record::LostSamples(lost)) => samples += lost as usize,
            _ => {}
        })
        .expect("the scan reads");
    (records, samples)
}

#[test]
fn each_file_of_a_series_reports_its_losses_once() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let options = ["-e", "cpu-clock,page-faults", "-c", "10000", "-m", "2", "--switch-output=100K"];
    let options = [&options[..], &["--call-graph", "dwarf,4096", "--unwind", "deferred"]].concat();
    let run = record(&lab.path("series"), &options, &*WORK).expect(0);
    let files = std::fs::read_dir(lab.0.path()).expect("a folder").map(|file| file.expect("a file").path());
    let losses: Vec<(usize, usize)> = files.map(|file| losses_in(&file)).collect();
    assert!(losses.len() > 2 && losses.iter().all(|(records, samples)| records == samples), "{losses:?}");
    let lost = told(&run.stderr, " records lost");
    assert!(lost > 0, "{}", run.stderr);
    assert_eq!(losses.iter().map(|(_, samples)| samples).sum::<usize>(), lost);
}

#[test]
fn commands_count_each_loss_once() {
    if !ready() || !kit::need_tracefs("raw_syscalls") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("lossy");
    let events = "raw_syscalls:sys_enter,raw_syscalls:sys_exit,sched:sched_switch";
    let options = ["-e", events, "-R", "-c", "1", "-a", "-m", "1"];
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000"];
    let run = record(&file, &options, &command).expect(0);
    let lost = told(&run.stderr, " records lost");
    assert!(lost > 0, "{}", run.stderr);
    let [begin, end] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];
    for (command, words) in [
        (&["trace", "-s"][..], format!(" {lost} records lost")),
        (&["latency", begin, end], format!(" {lost} lost ")),
        (&["sched", "latency", "--json"], format!("\"lost_records\":{lost}")),
    ] {
        let ran = kit::run(&[command, &["-i", name_of(&file)]].concat()).expect(0);
        let said = digits(&(ran.stdout + &ran.stderr)).replace("\": ", "\":");
        assert!(said.contains(&words), "{words}: {said}");
    }
}

#[test]
fn concurrent_recorders_do_not_disturb_each_other() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    // The kernel gives one recorder's page-fault samples the ids of another recorder.
    let faults = "for i in 1 2 3; do ls -R /usr/share/doc >/dev/null; done";
    let files: Vec<PathBuf> = (0..3).map(|number| lab.path(&format!("both-{number}"))).collect();
    let recorders: Vec<_> = files
        .iter()
        .map(|file| {
            let mut pmc = kit::pmc();
            pmc.args(["record", "-e", "cpu-clock,page-faults", "-a", "-F", "2000", "-o"]).arg(file);
            pmc.args(["--", "sh", "-c", faults]).stderr(Stdio::piped()).spawn().expect("pmc starts")
        })
        .collect();
    for (recorder, file) in recorders.into_iter().zip(&files) {
        let run: kit::Ran = recorder.wait_with_output().expect("it ends").into();
        let samples = told(&run.expect(0).stderr, " samples");
        assert_eq!((perf_samples(file), our_samples(file)), (samples, samples));
        assert!(perf(&["report", "--stdio"], file).contains("page-faults"));
    }
}

/// Starts a thread every 0.3 ms, 600 in all; each sleeps and wakes.
const SPREADING: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *idle(void *none) { for (;;) usleep(20000); return none; }
int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 600; i++) {
        pthread_t thread;
        pthread_create(&thread, &small, idle, 0);
        usleep(300);
    }
    pause();
}
"#;

#[test]
fn threads_started_while_opening_are_recorded_once() {
    if !ready() || !kit::need_program("gcc") {
        return;
    }
    let lab = Lab::new();
    let (source, program, file) = (lab.path("spreading.c"), lab.path("spreading"), lab.path("file"));
    std::fs::write(&source, SPREADING).expect("a source");
    let built = Command::new("gcc").arg("-pthread").arg("-o").args([&program, &source]).status();
    assert!(built.expect("gcc starts").success());
    let mut target = Command::new(&program).spawn().expect("it starts");
    let threads = || std::fs::read_dir(format!("/proc/{}/task", target.id())).map_or(0, Iterator::count);
    kit::wait_for("its first threads", || threads() > 20);
    let pid = target.id().to_string();
    let options = ["-e", "context-switches", "-c", "1", "-p", &pid, "--timeout", "5000"];
    let run = record(&file, &options, &[]).expect(0).says(&["none lost"]);
    let threads: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("it runs")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    target.kill().expect("it runs");
    target.wait().expect("it ends");
    let lines = perf(&["script", "-F", "tid,time", "-G"], &file);
    let mut samples: Vec<(&str, &str)> =
        lines.lines().filter_map(|line| line.trim().split_once(' ')).collect();
    let seen: std::collections::BTreeSet<&str> = samples.iter().map(|(tid, _)| *tid).collect();
    let missing = threads.iter().filter(|tid| **tid != pid && !seen.contains(tid.as_str())).count();
    assert!(threads.len() > 300 && missing == 0, "{missing} of {} threads have no sample", threads.len());
    // A thread with its events opened twice would have each sample twice.
    let all = samples.len();
    samples.sort_unstable();
    samples.dedup();
    let twice = all - samples.len();
    // The child of a thread whose events are being opened may have them twice. This is rare, but less so on a
    // busy machine.
    assert!(twice * 5 < all, "{twice} of {all} samples twice: {}", run.stderr);
}
