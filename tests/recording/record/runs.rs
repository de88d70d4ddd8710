//! How recordings start and end: exit statuses, signals, control commands, users, terminals.

use std::io::{BufRead, BufReader, Read, Write};

use super::*;
use crate::kit::burn::{busy_shell, least_samples};
use crate::top::Running;
use crate::top::screen::shell_line;

#[test]
fn exit_status_is_the_commands() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("status");
    let clock = ["-e", "cpu-clock"];
    record(&file, &clock, &["true"]).expect(0);
    record(&file, &clock, &["sh", "-c", "exit 7"]).expect(7);
    record(&file, &clock, &["sh", "-c", "kill -9 $$"]).expect(137);
    record(&file, &clock, &["/nowhere/at/all"]).expect(127).says(&["/nowhere/at/all"]);
    record(&lab.path("no/such/folder"), &clock, &["true"]).expect(1).says(&[
        "directory does not exist",
        "mkdir -p",
        "-o FILE",
    ]);
    record(lab.0.path().to_path_buf().as_path(), &clock, &["true"])
        .expect(1)
        .says(&["a directory with this name", "-o FILE"]);
    record(&file, &["-e", "cpu-clock", "-p", "4194304"], &[]).expect(1).says(&["no process 4194304"]);
    record(&file, &["-e", "cpu-clock", "-F", "0"], &["true"]).expect(2).says(&["-F 0"]);
    record(&file, &["-e", "cpu-clock", "-F", "9999999", "--strict-freq"], &["true"])
        .expect(2)
        .says(&["sysctl"]);
    record(&file, &["-e", "cpu-clock", "-F", "9999999"], &["true"]).expect(0).says(&["using that"]);
    record(&file, &["-e", "cpu-clock", "--call-graph", "guess"], &["true"])
        .expect(2)
        .says(&["expected auto[,BYTES], dwarf[,BYTES]"]);
    record(&file, &["-e", "cpu-clock", "-j", "sideways"], &["true"]).expect(2).says(&["any_call"]);
    record(&file, &["-e", "cpu-clock", "-b"], &["true"]).expect(1).says(&["EOPNOTSUPP"]);
    let nothing = ["-e", "cpu-clock", "--threads", "--aio=2", "--affinity=cpu"];
    let run = record(&file, &nothing, &["true"]).expect(0);
    run.says(&["--threads has no effect", "--aio has no effect", "--affinity has no effect"]);
    let twice = ["-q", "-q", "-F", "99", "-F", "1000", "-e", "cpu-clock", "--sample-identifier"];
    record(&file, &twice, &["true"]).expect(0);
    let events = perf(&["evlist", "-v"], &file);
    assert!(
        events.contains("{ sample_period, sample_freq }: 1000") && events.contains("IDENTIFIER"),
        "{events}"
    );
    record(&file, &["--group", "-e", "cpu-clock", "-e", "page-faults"], &*WORK).expect(0);
    assert!(perf(&["evlist", "-g"], &file).contains("{cpu-clock,page-faults}"));
    record(&lab.path("stamped"), &["-e", "cpu-clock", "--timestamp-filename"], &["true"]).expect(0);
    let names: Vec<_> = std::fs::read_dir(lab.0.path()).expect("the folder").flatten().collect();
    assert!(
        names.iter().any(|name| name.file_name().to_string_lossy().starts_with("stamped.20")),
        "{names:?}"
    );
    record(&file, &["-e", "cpu-clock", "--dry-run"], &["sh", "-c", "echo ran >&2"]).expect(0);
}

/// `-g` takes no mode, but users who type one expect it to work.
#[test]
fn mode_after_g_is_not_a_command() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("mode");
    record(&file, &["--unwind", "deferred", "-e", "cpu-clock", "-g", "dwarf,4096"], &["true"]).expect(0);
    let events = perf(&["evlist", "-v"], &file);
    assert!(events.contains("STACK_USER") && events.contains("sample_stack_user: 4096"), "{events}");
    record(&file, &["-e", "cpu-clock", "-g", "guess"], &["true"]).expect(127).says(&["running `guess`"]);
    record(&file, &["-e", "cpu-clock", "-g", "--", "dwarf"], &["true"])
        .expect(127)
        .says(&["running `dwarf`"]);
}

/// Every process of a recording with `-s` has a row, whichever process the kernel gave the events to.
#[test]
fn per_thread_counts_are_complete() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("stat");
    let script = "echo $$; for m in 20 40 60; do sh -c 'echo $$; exec dd if=/dev/zero of=/dev/null bs='$m'M count=1' 2>/dev/null; done";
    let ran = record(&file, &["-s", "-e", "task-clock,page-faults"], &["sh", "-c", script]).expect(0);
    let pids: Vec<&str> = ran.stdout.split_whitespace().collect();
    let text = kit::run(&["report", "-T", "-i", file.to_str().unwrap()]).expect(0).stdout;
    let is_heading = |line: &&str| line.starts_with('#') && line.contains("PID");
    let header = text.lines().find(is_heading).unwrap_or_else(|| panic!("{text}"));
    // The heading line begins with an extra word.
    let column = header.split_whitespace().position(|word| word == "page-faults").unwrap() - 1;
    let faults = |pid: &str| {
        let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.into_iter().find(|row| row.len() == 4 && row[0] == pid && row[1] == pid);
        row.unwrap_or_else(|| panic!("no {pid} in {text}"))[column].parse::<u64>().unwrap()
    };
    assert_eq!(pids.len(), 4, "{text}");
    let page = rustix::param::page_size();
    for (pid, megabytes) in pids.iter().zip([0, 20, 40, 60]) {
        let least = (megabytes << 20) / page;
        let own = faults(pid) as usize;
        assert!((least.max(10)..least + 2000).contains(&own), "{pid}: {own} of {least} faults: {text}");
    }
    // perf identifies the event by the record's trailer.
    let perfs = perf(&["report", "--stdio", "-T"], &file);
    let root = perfs.lines().find(|line| line.split_whitespace().next() == Some(pids[0]));
    let counts: Vec<u64> =
        root.unwrap().split_whitespace().skip(2).map(|word| word.parse().unwrap()).collect();
    assert!(counts.contains(&faults(pids[0])) && !counts.contains(&0), "{perfs}{text}");
}

/// The counts of a group that is read with its leader's samples are per thread. Children have separate
/// counts.
#[test]
fn group_read_by_leader_includes_children() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("group");
    let script = "for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; done; :";
    let group = ["-e", "{cpu-clock,page-faults}:S", "-F", "4000"];
    let ran = record(&file, &group, &["sh", "-c", script]).expect(0);
    let newer = !ran.stderr.contains("this kernel can read groups (:S) only for a single thread");
    if !kit::need("inherited-reads", newer, "this kernel reads no counts of children with samples") {
        return;
    }
    let path = file.to_str().unwrap();
    let rows = kit::run(&["report", "-i", path, "--sort", "comm", "--json"]).expect(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let faults = &report["events"][1];
    let pages = (3 * (64 << 20) / rustix::param::page_size()) as f64;
    let total = faults["period"].as_f64().unwrap_or_else(|| panic!("{rows}"));
    // The counts after each thread's last sample are missing. The shell itself touches few pages.
    assert!(total > pages * 0.2 && total < pages * 1.2 + 2000.0, "{total} of {pages}: {rows}");
    let dd = faults["rows"].as_array().unwrap().iter().any(|row| row.to_string().contains("\"dd\""));
    assert!(dd, "{rows}");
}

#[test]
fn clock_replaces_cycles_without_pmu() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("perf.data");
    let run = record(&file, &["-e", "cycles:up"], &["true"]).expect(0);
    let strict = record(&lab.path("strict"), &["--strict", "-e", "cycles:up"], &["true"]);
    let (sampled, status) = match run.stderr.contains(
        "sampling cpu-clock, because cycles is not available: \
                                                       ",
    ) {
        true => ("cpu-clock:u\n", 1),
        false => ("cycles:up\n", 0),
    };
    assert_eq!(kit::run(&["evlist", "-i", file.to_str().expect("a plain path")]).expect(0).stdout, sampled);
    let strict = strict.expect(status);
    assert!(status == 0 || strict.stderr.contains("opening cycles:up: "), "{}", strict.stderr);
    // Events other than cycles have no clock to replace them.
    let other = record(&lab.path("other"), &["-e", "branches"], &["true"]);
    other.expect(status);
}

#[test]
fn existing_recording_is_renamed() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let (file, old) = (lab.path("perf.data"), lab.path("perf.data.old"));
    record(&file, &["-e", "cpu-clock"], &*WORK).expect(0);
    let before = std::fs::read(&file).expect("it is there");
    record(&file, &["-e", "cpu-clock"], &["true"]).expect(0);
    assert!(std::fs::read(&old).expect("it is kept") == before);
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    // A command that cannot be started removes no recording and leaves no file.
    let kept = [&file, &old].map(|path| std::fs::read(path).expect("it is there"));
    record(&file, &["-e", "cpu-clock"], &["/nowhere/at/all"]).expect(127);
    assert!([&file, &old].map(|path| std::fs::read(path).expect("it is there")) == kept);
    record(&lab.path("fresh"), &["-e", "cpu-clock"], &["/nowhere/at/all"]).expect(127);
    let names = std::fs::read_dir(lab.0.path()).expect("the folder").count();
    assert_eq!(names, 2, "no other file is left");
}

/// Starts a recording and waits until it runs: its file has a header, and its counters are open.
#[track_caller]
fn start(file: &Path, options: &[&str], command: &[&str]) -> std::process::Child {
    let mut pmc = kit::pmc();
    pmc.args(["record", "-e", "cpu-clock"]).args(options).arg("-o").arg(file);
    if !command.is_empty() {
        pmc.arg("--").args(command);
    }
    let child = pmc.stderr(Stdio::piped()).spawn().expect("pmc starts");
    kit::wait_for("the file", || std::fs::metadata(file).is_ok_and(|meta| meta.len() >= 1000));
    kit::wait_for_counters(child.id(), 1);
    child
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill starts").success());
}

#[track_caller]
fn ended(mut child: std::process::Child) -> (std::process::ExitStatus, String) {
    kit::wait_for("the end of pmc", || child.try_wait().expect("it is ours").is_some());
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    (child.wait().expect("it ended"), said)
}

#[test]
fn signals_end_recording_cleanly() {
    use std::os::unix::process::ExitStatusExt;
    if !ready() {
        return;
    }
    let lab = Lab::new();
    for (signal, number) in [("-INT", None), ("-TERM", Some(15)), ("-HUP", Some(1))] {
        let file = lab.path(&format!("system{signal}"));
        let mut spin = Command::new("sh").args(["-c", SPIN]).spawn().expect("sh starts");
        let pmc = start(&file, &["-a"], &[]);
        kit::wait_until_idle(pmc.id());
        kit::wait_for_ticks(spin.id(), 10);
        kill(signal, pmc.id());
        spin.kill().expect("it runs");
        spin.wait().expect("it ends");
        let (status, said) = ended(pmc);
        assert_eq!(status.signal(), number, "{signal}: {said}");
        assert_eq!(our_samples(&file), told(&said, " samples"), "{signal}");
        assert!(Reader::open(&file).expect("pmc reads it").notes().is_empty(), "{signal}");
        assert!(perf_samples(&file) > 10);
    }
    let file = lab.path("command");
    let pmc = start(&file, &[], &["sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"]);
    let child = kit::wait_for_child(pmc.id());
    kit::wait_for_program(child, "sh");
    kit::wait_for_handler(child, 15);
    kill("-TERM", pmc.id());
    let (status, said) = ended(pmc);
    assert_eq!(status.code(), Some(5), "the command took the signal and ended in its own way: {said}");
}

/// `command &` in a shell without job control: pmc and its children start with SIGINT ignored.
#[test]
fn sigint_works_in_background_of_a_script() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("file");
    let script = "trap '' INT; exec \"$0\" record -e cpu-clock -o \"$1\" -- sleep 1000";
    let pmc = Command::new("sh")
        .args(["-c", script, kit::binary()])
        .arg(&file)
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh starts");
    kit::wait_for("the file", || std::fs::metadata(&file).is_ok_and(|meta| meta.len() >= 1000));
    kit::wait_for_counters(pmc.id(), 1);
    kit::wait_until_idle(pmc.id());
    kill("-INT", pmc.id());
    let (_, said) = ended(pmc);
    assert_eq!(our_samples(&file), told(&said, " samples"), "{said}");
}

#[test]
fn recording_ends_when_its_target_exits() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("died");
    for options in [&["-p"][..], &["--per-thread", "-p"]] {
        let mut target = Command::new("sh").args(["-c", SPIN]).spawn().expect("sh starts");
        let pid = target.id().to_string();
        let pmc = start(&file, &[options, &[pid.as_str()]].concat(), &[]);
        kit::wait_until_idle(pmc.id());
        kit::wait_for_ticks(target.id(), 10);
        target.kill().expect("it runs");
        target.wait().expect("it ends");
        let (status, said) = ended(pmc);
        assert!(status.success(), "{said}");
        assert!(our_samples(&file) > 100 && perf_samples(&file) == our_samples(&file), "{said}");
    }
}

#[test]
fn time_and_size_limits_end_recording() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("limited");
    // The command never exits.
    record(&file, &["-e", "cpu-clock", "--timeout", "300"], &["sh", "-c", SPIN]).expect(0);
    // The limit is elapsed time, in which a busy machine may run the command for any time.
    assert!(our_samples(&file) > 0);
    let run = record(
        &file,
        &["-e", "cpu-clock", "-a", "-g", "-F", "5000", "--max-size", "200K"],
        &["sh", "-c", SPIN],
    );
    run.expect(0).says(&["--max-size"]);
    assert!((200 << 10..8 << 20).contains(&std::fs::metadata(&file).expect("it is there").len()));
    assert!(perf_samples(&file) > 0);
    record(&file, &["-e", "cpu-clock", "-D", "3600000"], &["sh", "-c", "ls -R /etc >/dev/null"]).expect(0);
    assert_eq!(our_samples(&file), 0, "the work was over when the recording would have begun");
}

#[test]
fn time_ranges_are_recorded_and_end_recording() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("ranges");
    let spin = "while :; do :; done";
    let run = record(&file, &["--json", "-e", "cpu-clock", "-D", "100-400,1.4s-1.7s"], &["sh", "-c", spin]);
    let json: serde_json::Value = serde_json::from_str(&run.expect(0).stdout).expect("a document");
    assert_eq!(json["ended_by"], "timeout");
    let script = kit::run(&["script", "-F", "time", "-i", file.to_str().expect("UTF-8")]).expect(0);
    let times: Vec<f64> =
        script.stdout.lines().map(|line| line.trim_matches([':', ' ']).parse().expect("a time")).collect();
    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] > 0.4).count();
    assert_eq!(gaps, 1, "{} samples on both sides of a second without: {times:?}", times.len());
}

/// Starts a recording that waits for control commands. Also returns a function that sends a command and
/// returns the answer line.
#[track_caller]
fn ordered(
    lab: &Lab,
    file: &Path,
    options: &[&str],
) -> (std::process::Child, impl FnMut(&str) -> String + use<>) {
    let (orders, answers) = (lab.path("orders"), lab.path("answers"));
    assert!(Command::new("mkfifo").args([&orders, &answers]).status().expect("mkfifo starts").success());
    let control = format!("fifo:{},{}", orders.display(), answers.display());
    let options = [options, &["-D", "-1", "--control", &control]].concat();
    let pmc = start(file, &options, &["sh", "-c", SPIN]);
    let mut ctl = std::fs::OpenOptions::new().write(true).open(&orders).expect("the fifo opens");
    let ack = std::fs::OpenOptions::new().read(true).write(true).open(&answers).expect("the fifo opens");
    let mut ack = BufReader::new(ack);
    let order = move |word: &str| {
        writeln!(ctl, "{word}").expect("the order is taken");
        let mut answer = String::new();
        ack.read_line(&mut answer).expect("an answer comes");
        answer
    };
    (pmc, order)
}

#[test]
fn control_commands_are_executed() {
    if !ready() || !kit::need_program("mkfifo") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("ordered");
    let (pmc, mut order) = ordered(&lab, &file, &[]);
    assert_eq!(order("ping"), "ack\n");
    let command = kit::wait_for_child(pmc.id());
    let ticks = || kit::ticks(command).expect("it runs");
    kit::wait_for_ticks(command, 30);
    let before = ticks();
    assert_eq!(order("enable"), "ack\n");
    kit::wait_for_ticks(command, 40);
    assert_eq!(order("disable"), "ack\n");
    // A tick is 10 ms. The first and the last tick may have begun earlier.
    let most = 4000.0 * 1.2 * 0.01 * (ticks() + 2 - before) as f64;
    kit::wait_for_ticks(command, 40);
    assert_eq!(order("stop"), "ack\n");
    let (_, said) = ended(pmc);
    let samples = told(&said, " samples");
    let least = least_samples(390, 4000);
    assert!(samples >= least && (samples as f64) < most, "{least} to {most:.0}, 4000 a second: {said}");
    assert_eq!(perf_samples(&file), samples);
}

#[test]
fn control_commands_select_events() {
    if !ready() || !kit::need_program("mkfifo") {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("ordered");
    let (pmc, mut order) = ordered(&lab, &file, &["-e", "task-clock", "-e", "page-faults"]);
    assert_eq!(order("evlist"), "ack\n");
    assert_eq!(order("evlist -F"), "ack\n");
    let refusal = order("enable nonsense");
    assert!(refusal.starts_with("refused: "), "{refusal}");
    assert_eq!(order("enable task-clock"), "ack\n");
    kit::wait_for_ticks(kit::wait_for_child(pmc.id()), 50);
    assert_eq!(order("disable task-clock"), "ack\n");
    assert_eq!(order("stop"), "ack\n");
    let (_, said) = ended(pmc);
    let lists = [
        "cpu-clock\ntask-clock\npage-faults\n",
        "cpu-clock: sample_freq=4000\ntask-clock: sample_freq=4000\n",
    ];
    assert!(lists.iter().all(|list| said.contains(list)), "{said}");
    assert!(said.contains("`nonsense`: unknown event name"), "{said}");
    let script = kit::run(&["script", "-F", "event", "-i", file.to_str().expect("UTF-8")]).expect(0).stdout;
    let rows: Vec<Vec<&str>> = script.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(
        rows.len() >= least_samples(490, 4000) && rows.iter().all(|row| *row == ["task-clock:"]),
        "{script}"
    );
}

#[test]
fn unprivileged_user_records_own_programs() {
    if !ready() || !kit::need_program("setpriv") {
        return;
    }
    let lab = Lab::new();
    let folder = lab.path("theirs");
    std::fs::create_dir(&folder).expect("a folder");
    for path in [lab.0.path(), folder.as_path()] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("ours");
    }
    let file = folder.join("user.data");
    // The built binary may be where only root can read it.
    let binary = folder.join("pmc");
    kit::copy_program(kit::binary(), &binary);
    let user = |arguments: &[&str]| -> kit::Ran {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&binary).arg("record");
        command.args(["-e", "cpu-clock", "-o"]).arg(&file).args(arguments).current_dir(&folder);
        command.stdin(Stdio::null()).output().expect("setpriv starts").into()
    };
    let run = user(&["-g", "--", "sh", "-c", busy_shell(100)]).expect(0);
    let run = run.says(&["user mode only", "none lost"]);
    assert_eq!(our_samples(&file), told(&run.stderr, " samples"));
    assert!(our_samples(&file) >= least_samples(100, 4000));
    // A size above the user's limit of locked memory: pmc uses smaller rings and says so.
    user(&["-m", "64M", "--", "true"]).expect(0).says(&["ring buffers of", "instead of"]);
    // Stack copies use the memory that the user may lock in addition. (One user's rings share the kernel's
    // allowance, so this user id has no other rings.)
    let text = |file: &str| std::fs::read_to_string(file).expect("the kernel tells");
    let kb: u64 = text("/proc/sys/kernel/perf_event_mlock_kb").trim().parse().expect("a number");
    let cpus = std::thread::available_parallelism().expect("some").get() as u64;
    for locked in [0, 4096] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -l $0 && exec \"$@\"", &locked.to_string(), "setpriv", "--reuid=61999"]);
        command.args(["--regid=61999", "--clear-groups", "--"]).arg(&binary).args(["record", "-v", "-o"]);
        command.arg(folder.join("rings.data")).args([
            "-e",
            "cpu-clock",
            "--call-graph",
            "dwarf,65528",
            "--",
            "true",
        ]);
        let each = (((kb * cpus + locked) << 10) / cpus - 4096).ilog2();
        let ran: kit::Ran = command.current_dir(&folder).output().expect("sh starts").into();
        ran.expect(0).says(&[&format!("{cpus} ring buffers of {}", pmc_text::units::bytes(1 << each))]);
    }
    user(&["-a", "--", "true"]).expect(1).says(&["EACCES", "perf_event_paranoid"]);
}

/// Runs a shell line with standard output and error on a terminal.
pub(super) fn on_a_terminal(line: &str, lab: &Lab) -> kit::Ran {
    let mut script = Command::new("script");
    script.args(["-qec", line, "/dev/null"]).current_dir(lab.0.path()).stdin(Stdio::null());
    script.output().expect("script starts").into()
}

#[test]
fn binary_output_to_a_terminal_is_rejected() {
    if !ready() || !kit::need_program("script") {
        return;
    }
    let lab = Lab::new();
    let line = format!("{} record -e cpu-clock -o - -- true", crate::kit::binary());
    let run = on_a_terminal(&line, &lab);
    let run = run.expect(2);
    assert!(
        run.stdout.contains("standard output is a terminal") && !run.stdout.contains("PERFILE2"),
        "{}",
        run.stdout
    );
}

#[test]
fn status_line_appears_only_on_terminals_without_a_command() {
    if !ready() || !kit::need_program("tmux") {
        return;
    }
    let lab = Lab::new();
    let record = |lab: &Lab, options: &str| {
        format!("cd {}; {} record {options}", lab.0.path().display(), kit::binary())
    };
    // The command has the terminal to itself, even if it prints nothing for a long time.
    let asks = "echo $$ >pid; printf \"your name? \"; while :; do :; done";
    let tmux =
        shell_line(lab.0.path(), &record(&lab, &format!("-e cpu-clock -o x -- sh -c '{asks}'")), 100, 20);
    tmux.until_shown("your name?");
    let pid = std::fs::read_to_string(lab.path("pid")).expect("its number").trim().to_owned();
    kit::wait_for_ticks(pid.parse().expect("a number"), 130);
    assert_eq!(tmux.shown().trim(), "your name?");
    drop(tmux);
    // With targets that already run, pmc shows a status line and clears it at the end.
    let spins = Running::start(Command::new("sh").args(["-c", SPIN]));
    let line = record(&lab, &format!("-e cpu-clock -o y -p {}", spins.pid()));
    let tmux = shell_line(lab.0.path(), &line, 100, 20);
    tmux.until("a status line", |shown| {
        ["recording ", " samples, ", "/s, ", " lost, ", "own CPU "].iter().all(|word| shown.contains(word))
    });
    tmux.keys(&["C-c"]);
    let shown = tmux.until("its end", |shown| shown.contains("of CPU a sample"));
    assert!(!shown.contains("recording "), "{shown}");
}

#[test]
fn empty_recording_is_explained() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("empty");
    let sleeper = Running::start(Command::new("sleep").arg("1000"));
    let pid = sleeper.pid();
    let nobody = ["-e", "sched:sched_switch", "--filter", "prev_pid == -7"];
    for (options, command, why) in [
        (
            &["-e", "page-faults", "-c", "1000000"][..],
            &["true"][..],
            "takes one sample per 1000000 in each thread (use a smaller -c",
        ),
        (&["-e", "cpu-clock", "-F", "1"], &["true"], "takes one sample every 1.00 s in each thread ("),
        (&["-e", "cpu-clock", "-p", &pid, "--timeout", "50ms"], &[], "did not run on a CPU for"),
        (&["-e", "page-faults", "-p", &pid, "--timeout", "50ms"], &[], "page-faults did not occur in"),
        (&["-e", "cpu-clock", "-D", "1h"], &["true"], "before the delay (-D, 60 min 0 s) expired"),
        // The delay has passed, although the time recorded after it was shorter.
        (
            &["-e", "cpu-clock", "-p", &pid, "-D", "300ms", "--timeout", "50ms"],
            &[],
            "did not run on a CPU for",
        ),
        (&nobody, &["true"], "no sched:sched_switch passed --filter"),
    ] {
        let run = record(&file, options, command).expect(0);
        run.says(&[": 0 samples, ", "warning: no samples: ", why]);
        assert_eq!(our_samples(&file), 0);
    }
    for (options, command) in
        [(&["-n", "-e", "cpu-clock"][..], &["true"][..]), (&["-e", "page-faults", "-c", "1"], &*WORK)]
    {
        let run = record(&file, options, command);
        assert!(!run.stderr.contains("no samples"), "{}", run.stderr);
    }
    // Counts are not samples.
    let mut counts = Command::new("perf");
    counts.args(["stat", "record", "-e", "task-clock", "-o"]).arg(&file).arg("true");
    assert!(counts.output().expect("perf starts").status.success());
    for command in ["report", "annotate"] {
        let name = file.display().to_string();
        kit::run(&[command, "--stdio", "-i", &name]).expect(1).says(&["has no samples", "pmc stat report"]);
    }
}

#[test]
fn json_summary_is_printed() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("object");
    let object = |run: &kit::Ran| -> serde_json::Value {
        assert!(!run.stderr.contains("of CPU"), "said twice: {}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
    };
    let run = record(&file, &["--json", "-e", "cpu-clock,page-faults"], &*WORK).expect(0);
    let all = object(&run);
    assert_eq!((&all["version"], &all["samples"]), (&1.into(), &our_samples(&file).into()));
    assert_eq!(all["files"], serde_json::json!([file.display().to_string()]));
    assert_eq!((&all["ended_by"], &all["status"]), (&"command".into(), &0.into()));
    assert_eq!(all["events"][1]["name"], "page-faults");
    assert!(all["events"][0]["count"].as_u64() > Some(0) && all["no_samples"].is_null(), "{all}");
    assert_eq!(all["bytes"], std::fs::metadata(&file).expect("the file").len());
    let run = record(&file, &["--json", "-e", "page-faults", "-c", "1000000"], &["sh", "-c", "exit 7"]);
    let all = object(&run.expect(7));
    assert_eq!((&all["status"], &all["samples"]), (&7.into(), &0.into()));
    assert!(all["no_samples"].as_str().is_some_and(|why| why.contains("page-faults occurred only")), "{all}");
    record(Path::new("-"), &["--json", "-e", "page-faults"], &["true"]).expect(2).says(&["standard output"]);
}

#[test]
fn times_accept_units() {
    for (line, why) in [
        ("record --timeout 0 -- true", "--timeout 0: must be a time of at least 1.00 ms"),
        ("record --duration 5x -- true", "bare number means milliseconds"),
        ("record -D 5x -- true", "-D 5x: not a time"),
        ("record -D 10-20,15-30 -- true", "-D 10-20,15-30: not a list of increasing time ranges"),
        ("record -D 10-20,30 -- true", "-D 10-20,30: not a list of increasing time ranges"),
        ("record -D -5 -- true", "-D -5: not a time"),
        ("record --switch-output=5x -- true", "--switch-output=100M"),
        ("stat -I 0 -- true", "-I 0: must be a time"),
        ("stat -D -5 -- true", "or -1 to wait"),
        ("stat --timeout 50us -- true", "--timeout 50us: must be a time of at least 1.00 ms"),
        ("top --stdio --duration 0.1", "--timeout 0.1: must be a time"),
        ("top --stdio -d 1ms", "bare number means seconds"),
        ("report --time-quantum=5x", "--time-quantum 5x: must be a time"),
    ] {
        kit::run(&line.split(' ').collect::<Vec<_>>()).expect(2).says(&[why]);
    }
    if !kit::need_perf_events() {
        return;
    }
    let lab = Lab::new();
    for time in ["--timeout=60", "--timeout=60ms", "--duration=0.06s"] {
        // The timeout ends the recording, not the command.
        record(&lab.path("timed"), &["-e", "task-clock", time], &["sleep", "3600"]).expect(0);
        kit::run(&["stat", "-e", "task-clock", time, "--", "sleep", "3600"]).expect(0);
    }
    let intervals =
        ["stat", "-x,", "-e", "task-clock", "-I", "0.02s", "--interval-count", "2", "--", "sleep", "0.1"];
    assert_eq!(kit::run(&intervals).expect(0).stderr.matches("task-clock").count(), 2);
}

#[test]
fn ring_is_drained_after_its_first_thread_exits() {
    if !ready() {
        return;
    }
    let lab = Lab::new();
    let file = lab.path("heirs");
    let spin = || Command::new("sh").args(["-c", SPIN]).spawn().expect("sh starts");
    let (mut first, mut second) = (spin(), spin());
    let pids = format!("{},{}", first.id(), second.id());
    // Without wakeups, pmc would poll only a few times per second, and these small rings would overflow.
    let pmc = start(&file, &["-p", &pids, "-F", "10000", "-g", "-m", "64K"], &[]);
    first.kill().expect("it runs");
    first.wait().expect("it ends");
    kit::wait_for_ticks(second.id(), 150);
    kill("-INT", pmc.id());
    let (_, said) = ended(pmc);
    second.kill().expect("it runs");
    second.wait().expect("it ends");
    assert!(said.contains("none lost"), "{said}");
    assert!(told(&said, " samples") > 500, "{said}");
}

#[test]
fn without_target_the_whole_machine_is_recorded() {
    let lab = Lab::new();
    if !ready() || !kit::need_root() {
        return;
    }
    let file = lab.path("whole");
    let mut command = kit::pmc();
    command.args(["record", "-e", "cpu-clock", "-o"]).arg(&file).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("pmc starts");
    let cpus = std::thread::available_parallelism().expect("a number").get();
    kit::wait_for_counters(child.id(), cpus);
    kit::wait_for_handler(child.id(), 2);
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let ran = kit::Ran::from(child.wait_with_output().expect("it ends")).expect(0);
    ran.says(&["no command, process or CPU given: measuring the whole machine", "-a measures the same"]);
}

#[test]
fn perfs_summary_lines_are_printed_for_scripts() {
    let lab = Lab::new();
    if !ready() {
        return;
    }
    let file = lab.path("lines");
    let clock = ["-e", "cpu-clock"];
    let ran = record(&file, &clock, &*WORK).expect(0);
    let captured = |line: &&str| line.starts_with("[ perf record: Captured and wrote ");
    let line = ran.stderr.lines().find(captured).expect("perf's line");
    assert!(line.contains(&format!(" MB {} (", file.display())) && line.ends_with(" samples) ]"), "{line}");
    ran.says(&["[ perf record: Woken up ", " times to write data ]"]);
    let quiet = record(&file, &["-q", "-e", "cpu-clock"], &["true"]).expect(0);
    assert!(!quiet.stderr.contains("[ perf record"), "{}", quiet.stderr);
    // Each file by its real name.
    let parts = lab.path("parts");
    let ran = record(&parts, &["-e", "cpu-clock", "--switch-output=100ms"], &["sleep", "0.35"]).expect(0);
    let names: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("[ perf record: ") && !line.contains("Woken"))
        .filter_map(|line| line.split(' ').find(|word| word.contains("/parts")))
        .collect();
    assert!(
        names.len() > 1 && names.iter().all(|name| std::path::Path::new(name).exists()),
        "{}",
        ran.stderr
    );
}

#[test]
fn short_options_accept_attached_values() {
    let lab = Lab::new();
    if !ready() {
        return;
    }
    let file = lab.path("glued");
    record(&file, &["-e", "cpu-clock:u", "-Iax", "-z3"], &["true"]).expect(0);
    let header = kit::run(&["report", "--header-only", "-i", file.to_str().expect("a plain path")]).expect(0);
    assert!(header.stdout.contains("compressed : Zstd, level = 3"), "{}", header.stdout);
    record(&file, &["-I?"], &["true"]).expect(2).says(&["registers available on this machine"]);
}
