//! pmc called `pmcstat`: FreeBSD's options, examples from its manual, and statuses of sysexits(3).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::kit::burn::busy_shell;
use crate::kit::{self, Ran, oracle};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        symlink(kit::binary(), dir.path().join("pmcstat")).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(self.file("pmcstat"));
        command.args(line).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("PERF_CONFIG", "/dev/null").env("PERF_BUILDID_DIR", "/dev/null").env("LC_ALL", "C");
        command
    }

    #[track_caller]
    fn run(&self, line: &[&str]) -> Ran {
        self.command(line).output().unwrap().into()
    }

    /// Returns the names of the columns and the rows of numbers.
    #[track_caller]
    fn table(&self, line: &[&str]) -> (Vec<String>, Vec<Vec<u64>>) {
        let text = self.run(line).expect(0).stderr;
        let mut lines = text.lines();
        let names = lines.next().unwrap().strip_prefix('#').unwrap_or_else(|| panic!("{text}"));
        let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        (names.split_whitespace().map(str::to_owned).collect(), lines.map(numbers).collect())
    }
}

#[test]
fn pmcstat_counters_are_columns() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    let script = "/bin/true; /bin/true; /bin/true; exit 3";
    // From the manual: pmcstat -d -w 12 -p k7-dc-misses firefox
    let (names, with) = place.table(&["-d", "-w", "12", "-p", "page_fault.all,usr", "sh", "-c", script]);
    assert_eq!(names, ["p/page_fault.all,usr"]);
    let (_, without) = place.table(&["-p", "page_fault.all,usr", "sh", "-c", script]);
    assert_eq!((with.len(), without.len()), (1, 1));
    assert!(with[0][0] > without[0][0] + 60, "three children: {with:?}, {without:?}");
    // The increments add up to the cumulative count.
    let line = ["-w", "0.05", "-p", "page_fault.all,usr", "-C", "-p", "page_fault.all,usr", "sh", "-c"];
    let (names, rows) = place.table(&[&line[..], &["for i in 1 2 3 4 5 6; do sleep 0.03; done"]].concat());
    assert_eq!(names.len(), 2);
    let sum: u64 = rows.iter().map(|row| row[0]).sum();
    assert_eq!(Some(sum), rows.last().map(|row| row[1]), "{rows:?}");
}

#[test]
fn each_cpu_has_its_own_columns() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    // From the manual: pmcstat -c 0,2 -s p6-itlb-miss
    let (names, rows) = Place::new().table(&["-c", "0", "-l", "0.05", "-s", "clock.hard"]);
    assert_eq!(names, ["s/00/clock.hard"]);
    assert!(rows[0][0] > 0);
}

#[test]
fn processes_and_cpus_are_counted_in_one_run() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    // From the manual: pmcstat -s instructions -p dc-misses -t '^firefox$'
    let line = ["-c", "0", "-s", "clock.hard", "-p", "page_fault.all,usr", "sh", "-c", "/bin/true; exit 0"];
    let (names, rows) = Place::new().table(&line);
    assert_eq!(names, ["s/00/clock.hard", "p/page_fault.all,usr"]);
    assert!(rows[0].iter().all(|count| *count > 0), "{rows:?}");
    let line = ["-p", "page_fault.all,usr", "-s", "page_fault.all,usr", "sh", "-c", "/bin/true; exit 0"];
    let (names, rows) = Place::new().table(&line);
    // One column for each CPU, which together saw all the command's faults.
    assert!(names.len() >= 2 && names[1].starts_with("s/00/"), "{names:?}");
    assert!(rows[0][1..].iter().sum::<u64>() >= rows[0][0], "{rows:?}");
}

#[test]
fn processes_are_found_by_name() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    let napper = place.file("pmc-napper");
    kit::copy_program("/bin/sleep", &napper);
    let mut asleep = Command::new(&napper).arg("1000").spawn().unwrap();
    kit::wait_until_idle(asleep.id());
    // From the manual: pmcstat -t '^emacs$' -p instructions
    let line = ["-t", "^pmc-napper$", "-l", "0.05", "-p", "page_fault.all,usr"];
    let (names, rows) = place.table(&line);
    assert_eq!((names.len(), rows.len()), (1, 1));
    asleep.kill().unwrap();
    asleep.wait().unwrap();
    place.run(&line).expect(65).says(&["No matching target processes."]);
}

#[test]
fn exit_status_follows_sysexits() {
    let place = Place::new();
    for (line, status, words) in [
        (&[][..], 64, "at least one of -p"),
        (&["-p", "page_fault.all"], 64, "require a command"),
        (&["-Z", "-x"], 64, "illegal option -- x"),
        (&["-g", "-S", "clock.hard", "-O", "x"], 64, "-R log -g"),
        (&["-T", "-P", "page_fault.all", "-S", "clock.hard", "true"], 64, "-T shows processes or CPUs"),
        (&["-T", "-P", "page_fault.all", "-p", "clock.hard", "-O", "x", "true"], 64, "not counters"),
        (&["-p", "page_fault.all,usr", "-o", "no/such/folder", "true"], 71, "for writing"),
        (&["-R", "missing"], 71, "missing"),
    ] {
        place.run(line).expect(status).says(&[words]);
    }
    place.run(&["-u", "page-faults"]).expect(0).prints(&["page-faults"]);
    if kit::need_perf_events() {
        place.run(&["-p", "page_fault.all,usr", "./no-such-command"]).expect(69);
    }
}

#[test]
fn sampling_log_is_written_and_read() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    // From the manual: pmcstat -P ic-misses -t 1234 -O sample.stat
    let script = "for i in 1 2 3; do /bin/true; done";
    place.run(&["-d", "-n", "1", "-P", "page_fault.all", "-O", "sample.stat", "sh", "-c", script]).expect(0);
    place.run(&["-R", "sample.stat"]).expect(0).prints(&["page_fault.all"]);
    place.run(&["-R", "sample.stat", "-m", "-"]).expect(0).prints(&[" __libc_early_init "]);
    let first = |letter: &str| {
        let lines = place.run(&["-R", "sample.stat", letter, "-m", "-"]).expect(0).stdout;
        lines.lines().next().unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    // The address, the function, its start and its end.
    let [address, name, start, end] = &first("-I")[..] else { panic!("{:?}", first("-I")) };
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap();
    assert!(name.contains("+0x") && (number(start)..number(end)).contains(&number(address)));
    assert_eq!(first("-A")[0], first("-A")[1]);
    place.run(&["-R", "sample.stat", "-G", "foo.graph", "-z", "8"]).expect(0);
    assert!(std::fs::read_to_string(place.file("foo.graph")).unwrap().starts_with("@ page_fault.all ["));
    place.run(&["-R", "sample.stat", "-F", "tree"]).expect(0);
    assert!(std::fs::read_to_string(place.file("tree")).unwrap().contains("fn="));
    place.run(&["-R", "sample.stat", "-g", "-D", "profiles", "-M", "map"]).expect(0);
    let map = std::fs::read_to_string(place.file("map")).unwrap();
    let (_, gmon) =
        map.lines().find(|line| line.starts_with('/')).and_then(|line| line.split_once(' ')).expect(&map);
    assert!(gmon.starts_with("profiles/page_fault.all/"), "{map}");
    assert_eq!(&std::fs::read(place.file(gmon)).unwrap()[..4], b"gmon");
    // pmcstat -S instructions -O remotehost:port
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let taken = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut listener.accept().unwrap().0, &mut bytes).unwrap();
        bytes
    });
    place.run(&["-n", "1", "-N", "-l", "0.1", "-S", "clock.hard", "-O", &address]).expect(0);
    std::fs::write(place.file("remote.stat"), taken.join().unwrap()).unwrap();
    place.run(&["-R", "remote.stat"]).expect(0).prints(&["clock.hard"]);
}

/// One log contains the command's events and all activity on a CPU at that time.
#[test]
fn processes_and_cpus_are_sampled_into_one_log() {
    if !kit::need_perf_events()
        || !kit::need_root()
        || !kit::need_program("taskset")
        || !kit::need_program("perf")
    {
        return;
    }
    let place = Place::new();
    let busy = place.file("pmc-busy");
    kit::copy_program(kit::on_path("sh").expect("a shell"), &busy);
    let busy =
        Command::new("taskset").args(["-c", "0"]).arg(busy).args(["-c", "while :; do :; done"]).spawn();
    let mut busy = busy.unwrap();
    let line = ["-d", "-n", "1", "-P", "page_fault.all,usr", "-n", "1", "-c", "0", "-S", "clock.hard"];
    let script = "echo > began; until [ -e go ]; do sleep 0.02; done; /bin/true";
    let mut pmcstat = place.command(&[&line[..], &["-O", "log", "sh", "-c", script]].concat());
    let pmcstat = pmcstat.stderr(Stdio::piped()).spawn().unwrap();
    kit::wait_for("its command", || place.file("began").exists());
    kit::wait_for_ticks(busy.id(), 20);
    std::fs::write(place.file("go"), "").unwrap();
    let ran: Ran = pmcstat.wait_with_output().unwrap().into();
    busy.kill().unwrap();
    busy.wait().unwrap();
    ran.expect(0).says(&["none lost"]);
    let log = place.file("log");
    let log = log.to_str().unwrap();
    let script = kit::run(&["script", "-F", "comm,cpu,event", "-i", log]).expect(0).stdout;
    let of = |event: &str| script.lines().filter(|line| line.contains(event)).collect::<Vec<_>>();
    let (faults, clock) = (of("page_fault.all"), of("clock.hard"));
    // The process's events come from it and its children. The CPU's events come from any process, on that
    // CPU.
    let is_own = |line: &&str| ["sh ", "sleep ", "true "].iter().any(|name| line.trim().starts_with(name));
    assert!(!faults.is_empty() && faults.iter().all(is_own), "{faults:?}");
    assert!(faults.iter().any(|line| line.trim().starts_with("true ")), "{faults:?}");
    let busy = clock.iter().filter(|line| line.trim().starts_with("pmc-busy "));
    assert!(busy.count() > 10 && clock.iter().all(|line| line.contains("[000]")), "{clock:?}");
    // It is an ordinary log, and perf can read it.
    place.run(&["-R", "log"]).expect(0).prints(&["page_fault.all", "clock.hard", "callchain", "closelog"]);
    place.run(&["-R", "log", "-G", "graph"]).expect(0);
    for perf in oracle::perfs() {
        let script = oracle::says(&perf, &["script", "-F", "comm,event", "-i", log]);
        let counts = ["page_fault.all", "clock.hard"].map(|event| script.matches(event).count());
        assert_eq!(counts, [faults.len(), clock.len()], "{}", perf.display());
        assert!(script.contains("pmc-busy"), "{}", perf.display());
    }
    // Counts at exits, and counts of CPUs.
    place
        .run(&[
            "-E",
            "-d",
            "-p",
            "page_fault.all,usr",
            "-s",
            "clock.hard",
            "-O",
            "counts",
            "sh",
            "-c",
            "/bin/true; exit 0",
        ])
        .expect(0);
    let counts = place.file("counts");
    let said = kit::run(&["stat", "report", "--log-exit", "-i", counts.to_str().unwrap()]).expect(0);
    said.says(&["true-", "sh-"]);
    // A kernel group must be of one kind.
    kit::run(&["record", "-o", "/dev/null", "-e", "{page-faults,cpu-clock,system}", "--", "true"])
        .expect(2)
        .says(&["some events count whole CPUs", "use one group per PMU"]);
}

#[test]
fn counting_events_next_to_sampling_have_columns() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    let script = "for i in 1 2 3 4 5 6; do /bin/true; sleep 0.03; done";
    let line = ["-w", "0.05", "-d", "-n", "1", "-P", "page_fault.all,usr", "-O", "log", "-d"];
    let counted = ["-p", "page_fault.all,usr", "-C", "-p", "page_fault.all,usr", "-s", "clock.hard"];
    let ran = place.run(&[&line[..], &counted, &["-o", "columns", "sh", "-c", script]].concat()).expect(0);
    ran.says(&["samples, none lost"]);
    let columns = std::fs::read_to_string(place.file("columns")).unwrap();
    let mut lines = columns.lines();
    assert!(lines.next().unwrap().starts_with("# p/page_fault.all,usr "), "{columns}");
    let rows: Vec<Vec<u64>> =
        lines.map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect();
    let sum: u64 = rows.iter().map(|row| row[0]).sum();
    assert_eq!(Some(sum), rows.last().map(|row| row[1]), "{columns}");
    // The count covers only the shell's own faults; the samples also cover its children (`-d`).
    let log = place.file("log");
    let log = kit::run(&["script", "-F", "comm,event", "-i", log.to_str().unwrap()]).expect(0).stdout;
    let of_shell = log.lines().filter(|line| line.trim().starts_with("sh ")).count();
    assert!(sum > 0 && sum <= of_shell as u64, "{sum} counted, {of_shell} sampled");
    // If the counts cannot be written any further, the recording ends with what it has.
    let script = format!(
        "exec {:?} -w 0.05 -n 1 -P page_fault.all,usr -O cut -p page_fault.all,usr sleep 30 2>&1 | true",
        place.file("pmcstat")
    );
    let ended = Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).status().unwrap();
    assert!(ended.success());
    place.run(&["-R", "cut"]).expect(0).prints(&["page_fault.all"]);
}

#[test]
fn exit_counts_are_logged() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    place
        .run(&["-E", "-d", "-p", "page_fault.all,usr", "-O", "log", "sh", "-c", "/bin/true; exit 0"])
        .expect(0);
    let log = place.file("log");
    let said = kit::run(&["stat", "report", "--log-exit", "-i", log.to_str().unwrap()]).expect(0);
    said.says(&["true-", "sh-"]);
}

/// Touches 1,000 pages in each of four threads: after reading a line, or immediately if it has an argument.
const THREADS: &str = "
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
static void *touch(void *unused)
{
    char *pages = mmap(0, 1000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 1000 * 4096, MADV_NOHUGEPAGE);
    for (int page = 0; page < 1000; page++)
        pages[page * 4096] = 1;
    return unused;
}
int main(int arguments, char **unused)
{
    pthread_t threads[4];
    if (arguments < 2)
        getchar();
    for (int at = 0; at < 4; at++)
        pthread_create(&threads[at], 0, touch, 0);
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], 0);
    return 0;
}
";

#[test]
fn all_threads_of_a_process_are_measured() {
    if !kit::need_perf_events() || !kit::need_program("gcc") {
        return;
    }
    let place = Place::new();
    std::fs::write(place.file("threads.c"), THREADS).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-pthread", "-o", "threads", "threads.c"]).current_dir(place.0.path());
    assert!(gcc.status().unwrap().success());
    let whole = 4000..4400;
    // Without -d: its threads are counted, but its children are not.
    let spec = "page_fault.all,usr";
    let (_, rows) = place.table(&["-p", spec, "./threads", "now"]);
    assert!(whole.contains(&rows[0][0]), "{rows:?}");
    let (_, rows) = place.table(&["-p", spec, "sh", "-c", "./threads now; exit 0"]);
    assert!(rows[0][0] < 1000, "{rows:?}");
    place.run(&["-n", "1", "-P", spec, "-O", "log", "./threads", "now"]).expect(0);
    let samples = place.run(&["-R", "log"]).expect(0).stdout.matches("callchain ").count();
    assert!(whole.contains(&(samples as u64)), "{samples}");
    // Threads that begin after the attach.
    let mut threads = Command::new(place.file("threads")).stdin(Stdio::piped()).spawn().unwrap();
    kit::wait_until_idle(threads.id());
    let attached = place
        .command(&["-t", &threads.id().to_string(), "-w", "0.05", "-p", spec])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    kit::wait_for_counters(attached.id(), 1);
    std::io::Write::write_all(threads.stdin.as_mut().unwrap(), b"\n").unwrap();
    threads.wait().unwrap();
    let ran: Ran = attached.wait_with_output().unwrap().into();
    let numbers = ran.expect(0).stderr;
    let sum: u64 = numbers.lines().skip(1).map(|line| line.trim().parse::<u64>().unwrap()).sum();
    assert!((3900..4400).contains(&sum), "{numbers}");
}

#[test]
fn each_spec_is_one_event() {
    let place = Place::new();
    for (line, words) in [
        (
            &["-p", "page_fault.all,clock.hard", "true"][..],
            ["`clock.hard` is not a qualifier", "-p once per event"],
        ),
        (&["-n", "9", "-P", "{page_fault.all,clock.hard}", "-O", "x", "true"], ["clock.hard", "-P once"]),
        (&["-p", "page_fault.all,ussr", "true"], ["`ussr` is not a qualifier", "did you mean `usr`?"]),
        // The message shows the typed text, and nothing else.
        (&["-p", "nosuch", "true"], ["  nosuch\n", "pmc list"]),
    ] {
        // pmc_allocate(3) refuses these requests with this status.
        place.run(line).expect(71).says(&words);
    }
    for (line, words) in [
        (&["-c", "a", "-s", "clock.hard"][..], ["-c a: `a` is not a CPU number", "0,2, or *"]),
        (
            &["-t", "1", "-d", "-p", "page_fault.all", "-d", "-p", "clock.hard"],
            ["-d applies to only some", "first"],
        ),
    ] {
        let ran = place.run(line).expect(64);
        ran.says(&words);
    }
}

#[test]
fn every_log_output_format_is_written() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    place.run(&["-d", "-n", "1", "-P", "page_fault.all", "-O", "log", "sh", "-c", "/bin/true; :"]).expect(0);
    let read = |name: &str| std::fs::read_to_string(place.file(name)).unwrap_or_default();
    let ran = place.run(&["-R", "log", "-G", "graph", "-F", "tree", "-o", "lines"]).expect(0);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    assert!(read("graph").starts_with("@ page_fault.all ["), "{}", read("graph"));
    assert!(read("tree").contains("fn=") && read("lines").ends_with("closelog\n"));
    // `-` writes to the file given with -o.
    let ran = place.run(&["-R", "log", "-G", "-", "-F", "-", "-o", "both"]).expect(0);
    assert!(ran.stdout.is_empty() && read("both").contains("@ page_fault.all ["), "{}", read("both"));
    let ran = place.run(&["-R", "log", "-m", "-", "-a", "chains", "-F", "again"]).expect(0);
    assert!(!ran.stdout.is_empty() && read("chains").len() > ran.stdout.len());
    assert_eq!(read("again"), read("tree"));
    place.run(&["-R", "log", "-g", "-D", "profiles", "-G", "graph2", "-M", "map"]).expect(0);
    assert_eq!(read("graph2"), read("graph"));
    assert!(read("map").contains("profiles/page_fault.all/"), "{}", read("map"));
    // A table of entries above a limit.
    let all = place.run(&["-R", "log", "-T"]).expect(0).stdout;
    let most = place.run(&["-R", "log", "-T", "-f", "threshold=20"]).expect(0).stdout;
    assert!(most.len() < all.len(), "{most}");
    for (line, words) in [
        (&["-R", "log", "-M", "x"][..], "option -M without -g"),
        (&["-R", "log", "-C"], "option -C with -R"),
        (&["-R", "log", "-T", "-w", "5"], "option -w with -R"),
        (&["-R", "log", "-g", "-D", "log"], "use another name for -D"),
        (&["-R", "log", "-z", "0"], "Illegal callchain depth \"0\""),
        (&["-R", "log", "-i", "x"], "Illegal thread id \"x\""),
        (&["-R", "log", "-T", "-f", "threshold=x"], "-f threshold=x: not a percentage"),
        (&["-R", "-", "-G", "x", "-F", "y"], "a log on standard input"),
        (&["-P", "clock.hard", "-O", "log2", "-G", "out", "true"], "option -G without -R"),
        (&["-P", "clock.hard", "-O", "log2", "-i", "7", "true"], "option -i without -R"),
        (&["-T", "-P", "clock.hard", "-O", "log2", "true"], "-T and -O cannot be combined"),
        (&["-T", "-p", "clock.hard", "true"], "-T shows samples"),
    ] {
        place.run(line).expect(64).says(&[words]);
    }
    // Advice from pmc's commands uses pmcstat's letters, and a file that cannot be created has pmcstat's
    // status.
    for (line, status, words) in [
        (&["-O", "no/such", "-P", "clock.hard", "true"][..], 71, "try: -O FILE, in a writable directory"),
        (&["-R", "log", "-F", "no/such"], 71, "try: -F FILE, in a writable directory"),
        (&["-R", "missing"], 71, "or name a file with -R"),
        (
            &["-n", "100000", "-P", "page_fault.all", "-O", "none", "true"],
            0,
            "(use a smaller -n, or record longer)",
        ),
    ] {
        place.run(line).expect(status).says(&[words]);
    }
}

#[test]
fn logged_counters_have_columns_on_request() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    let line = ["-d", "-E", "-w", "0.05", "-C", "-o", "columns", "-p", "page_fault.all,usr", "-O", "log"];
    let script = "/bin/true; sleep 0.2; exit 0";
    let ran = place.run(&[&line[..], &["sh", "-c", script]].concat()).expect(0);
    assert!(!ran.stderr.contains("Performance counter stats"), "{}", ran.stderr);
    let columns = std::fs::read_to_string(place.file("columns")).unwrap();
    let rows: Vec<u64> = columns.lines().skip(1).map(|line| line.trim().parse().unwrap()).collect();
    assert!(rows.len() > 1 && rows.is_sorted() && rows[0] > 0, "{columns}");
    let log = place.file("log");
    let said = kit::run(&["stat", "report", "--log-exit", "-i", log.to_str().unwrap()]).expect(0);
    said.says(&["true-", "sleep-", "sh-"]);
    // Counts that are not logged are printed next to the log.
    let line = ["-E", "-p", "page_fault.all,usr", "-c", "0", "-s", "clock.hard", "-O", "log", "true"];
    let (names, _) = place.table(&[&["-q"], &line[..]].concat());
    assert_eq!(names, ["p/page_fault.all,usr", "s/00/clock.hard"]);
}

#[test]
fn messages_name_the_log_host() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let taken = std::thread::spawn(move || {
        std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()).unwrap();
    });
    let ran = place.run(&["-n", "1", "-l", "0.1", "-S", "clock.hard", "-O", &address]).expect(0);
    ran.says(&[&format!("{address}: ")]);
    taken.join().unwrap();
}

#[test]
fn terminal_output_repeats_the_header_per_screen() {
    if !kit::need_perf_events() || !kit::need_program("script") {
        return;
    }
    let place = Place::new();
    let line = "stty rows 10 cols 80; exec ./pmcstat -w 0.01 -p page_fault.all,usr sleep 1.5";
    let mut shell = Command::new("script");
    shell.args(["-qec", line, "/dev/null"]).current_dir(place.0.path()).stdin(Stdio::null());
    let ran: Ran = shell.output().unwrap().into();
    let headers: Vec<usize> = ran
        .stdout
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("p/page_fault"))
        .map(|(at, _)| at)
        .collect();
    assert!(headers.len() > 2, "{}", ran.stdout);
    assert!(headers.windows(2).all(|pair| pair[1] - pair[0] == 10), "{}", ran.stdout);
}

/// Returns each line of the text that begins with this word, without the word.
fn entries<'a>(text: &'a str, word: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn cpus_are_measured_while_a_command_runs() {
    if !kit::need_perf_events() || !kit::need_root() {
        return;
    }
    let place = Place::new();
    let (names, rows) = place.table(&["-s", "page_fault.all", "sh", "-c", "/bin/true; exit 0"]);
    assert!(names.iter().all(|name| name.starts_with("s/")), "{names:?}");
    assert!(rows.len() == 1 && rows[0].iter().sum::<u64>() > 0, "{rows:?}");
    place
        .run(&["-S", "clock.hard", "-O", "f", "sh", "-c", busy_shell(50)])
        .expect(0)
        .says(&["samples, none lost"]);
    place.run(&["-R", "f", "-m", "-"]).expect(0).prints(&["0x"]);
}

#[test]
fn uncounted_events_do_not_print_zero() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    // These happen in the kernel only.
    for spec in ["context-switches,usr", "cpu-migrations,usr"] {
        let words = [&*format!("Cannot allocate process-mode pmc with specification \"{spec}\""), "omit usr"];
        place.run(&["-p", spec, "true"]).expect(71).says(&words);
    }
}

#[test]
fn clocks_count_ticks() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    let line = ["-p", "clock.hard", "-p", "clock.stat", "-p", "clock.prof", "-p", "task-clock", "sh", "-c"];
    let (_, rows) = place.table(&[&line[..], &[busy_shell(200)]].concat());
    let [hard, stat, prof, ns] = rows[0][..] else { panic!("{rows:?}") };
    // All cover the same time, except for the moments at which each starts.
    for (ticks, rate) in [(hard, 1000), (stat, 127), (prof, 8128)] {
        let expected = ns * rate / 1_000_000_000;
        assert!(ticks.abs_diff(expected) <= 2 + expected / 50, "{rate} Hz: {rows:?}");
    }
    for (line, period) in [(&["-n", "5"][..], 5_000_000), (&[], 1_000_000)] {
        place.run(&[line, &["-P", "clock.hard", "-O", "log", "true"]].concat()).expect(0);
        let log = place.file("log");
        let events = kit::run(&["evlist", "-v", "-i", log.to_str().unwrap()]).expect(0).stdout;
        assert!(events.contains(&format!("sample_freq }}: {period}")), "{events}");
    }
}

#[test]
fn samples_without_log_are_printed_as_text() {
    if !kit::need_perf_events() {
        return;
    }
    let place = Place::new();
    let script = "/bin/true; /bin/true; exit 0";
    let text = place.run(&["-d", "-n", "1", "-P", "page_fault.all,usr", "sh", "-c", script]).expect(0).stderr;
    assert!(entries(&text, "allocate ").len() == 1 && text.ends_with("closelog\n"), "{text}");
    assert_eq!(entries(&text, "exec     ").len(), 3, "{text}");
    let chains = entries(&text, "callchain");
    let frames: usize = chains.iter().map(|chain| chain[3].parse::<usize>().unwrap()).sum();
    assert!(!chains.is_empty() && entries(&text, "...      ").len() == frames, "{text}");
    let line = ["-N", "-n", "1", "-P", "page_fault.all,usr", "-o", "text", "true"];
    assert_eq!(place.run(&line).expect(0).stderr, "");
    let text = std::fs::read_to_string(place.file("text")).unwrap();
    assert!(!entries(&text, "sample   ").is_empty() && entries(&text, "callchain").is_empty(), "{text}");
    // Counts at exits: each process's own count.
    let text = place.run(&["-E", "-d", "-p", "page_fault.all,usr", "sh", "-c", script]).expect(0).stderr;
    let exits = entries(&text, "exitval  ");
    assert!(exits.len() == 3 && entries(&text, "exit     ").len() == 3, "{text}");
    let pids: std::collections::HashSet<&str> = exits.iter().map(|exit| exit[1]).collect();
    assert_eq!(pids.len(), 3, "{text}");
    assert!(!std::env::temp_dir().join(format!("pmcstat-{}", std::process::id())).exists());
}

#[test]
fn log_total_is_not_assigned_to_a_thread() {
    if !kit::need_perf_events() || !kit::need_program("perf") {
        return;
    }
    let place = Place::new();
    place
        .run(&["-E", "-d", "-p", "page_fault.all,usr", "-O", "log", "sh", "-c", "/bin/true; exit 0"])
        .expect(0);
    let log = place.file("log");
    let rows = |text: String| -> Vec<(i64, u64)> {
        let words = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        words.map(|words| (words[1].parse().unwrap(), words[2].parse().unwrap())).collect()
    };
    let shown = rows(kit::run(&["script", "-i", log.to_str().unwrap()]).expect(0).stdout);
    let (total, threads) = shown.split_last().unwrap();
    assert_eq!((total.0, threads.len()), (-1, 2), "{shown:?}");
    assert_eq!(total.1, threads.iter().map(|row| row.1).sum::<u64>(), "{shown:?}");
    for perf in oracle::perfs() {
        let script = oracle::says(&perf, &["script", "-i", log.to_str().unwrap()]);
        assert_eq!(rows(script).last(), Some(total), "{}", perf.display());
    }
}

#[test]
fn usage_is_printed() {
    let place = Place::new();
    place.run(&["-h"]).expect(64).says(&["illegal option -- h", "usage: pmcstat [options]", "-R FILE"]);
}

#[test]
fn freebsd_commands_work_or_are_explained() {
    let place = Place::new();
    symlink(kit::binary(), place.file("pmccontrol")).unwrap();
    let control = |line: &[&str]| -> Ran {
        let mut command = Command::new(place.file("pmccontrol"));
        command.args(line).stdin(Stdio::null()).output().unwrap().into()
    };
    control(&["-l"]).expect(0).prints(&["NUMBER"]);
    control(&["-L"]).expect(0).prints(&["page-faults"]);
    for (line, status, words) in [
        (&["-d*"][..], 69, ["option -d is not available", "pmc reserve"]),
        (&["-c2", "-e0", "-d1"], 69, ["option -c is not available", "pmc reserve"]),
        (&["-s"], 69, ["option -s is not available", "pmc report --stats"]),
        (&[], 64, ["one of -l", "pmccontrol -l"]),
        (&["-l", "-L"], 64, ["cannot be combined", "pmccontrol -l"]),
        (&["-e"], 64, ["requires an argument -- e", "pmccontrol -l"]),
    ] {
        control(line).expect(status).says(&words);
    }
    for (command, instead) in [
        ("filter", "pmc report"),
        ("summary", "pmc report -s tgid,comm"),
        ("list-events", "pmc list"),
        ("stat-system", "pmc stat -a"),
        ("view", "pmc report -i LOG"),
    ] {
        kit::run(&[command, "x"]).expect(2).says(&[&format!("FreeBSD's pmc {command}"), instead]);
    }
}
